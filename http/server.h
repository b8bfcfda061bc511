/* SPDX-License-Identifier: MIT */
/*
 * Inside the server. The files, from the outside in:
 *
 *     run.c         a whole program
 *     serve.c       the options, the loop that accepts, the graceful stop
 *     connection.c  the task of a connection: cold, warm, and what remains of a request that failed
 *     shake.c       the wire that lies before a connection, as TLS
 *     name.c        the calls of handlers: they check whose request it is
 *     exchange.c    the child of that task: one request after the other
 *     request.c     what a handler reads from the head
 *     body.c        what a handler reads behind the head
 *     answer.c      what a handler answers
 *     stream.c      answers in parts, events
 *     send.c        bytes to the client, gathered
 *     static.c      files
 *     route.c       routes
 *     tick.c        what a task does once a second: idle and slow clients, the date
 *     log.c         the access log
 *     blame.c       why a request failed, for the standard error and the log
 *
 * Warm and cold. A connection is warm while requests come: it has a block (struct janus_http), a
 * child, and a nursery with a pool for that child. After a second without a request the child ends,
 * and the connection is cold: a task that waits with one page of stack. The first byte makes it
 * warm again. In a crowd, connections go cold at once, those with only one request first.
 *
 * Deadlines. Reads and writes are fastest on a handle without deadlines, and they need no clock. So
 * a warm connection has none while its client is quick. Once a second a task looks at all warm
 * connections. It ends the wait of an idle or stalled one by a deadline that has passed. Cold
 * connections, incomplete heads and bodies have deadlines of their own. A call that gets DEADLINE
 * for another reason than its own goes on.
 */
#ifndef JANUSRT_HTTP_SERVER_H
#define JANUSRT_HTTP_SERVER_H

#include "http/chunk.h"
#include "http/head.h"
#include "http/pay.h"
#include "http/wire.h"
#include "http/write.h"

#include <janusrt/channel.h>
#include <janusrt/http.h>
#include <janusrt/nursery.h>
#include <janusrt/sync.h>
#include <janusrt/task.h>
#include <janusrt/token.h>
#include <stdatomic.h>

enum {
    JRT_HTTP_DATE_LINE_BYTES = 6 + 29 + 2,
    JRT_HTTP_DATE_WORDS = 5,
    JRT_HTTP_DATE_ROOM = 8 * JRT_HTTP_DATE_WORDS,
    JRT_HTTP_SMALL_BYTES = 1024,  /* the first buffer for answers */
    JRT_HTTP_OUT_BYTES = 8192,    /* answers that leave together, short parts of streams */
    JRT_HTTP_LINES_BYTES = 4096,  /* fields that the handler sets */
    JRT_HTTP_TYPE_BYTES = 256,    /* of the field Content-Type */
    JRT_HTTP_SPARE_BYTES = 4096,  /* of the input buffer, beyond the longest head */
    JRT_HTTP_DRAIN_BYTES = 65536, /* of an unread body; a longer one ends the connection */
    JRT_HTTP_TRAILERS_MAX = 32,   /* fields behind a chunked body */
    JRT_HTTP_WARM_MAX = 1024,     /* above it, connections without a request go cold at once */
    JRT_HTTP_GUESTS_MAX = 96,     /* above it, those that had only one request do, too */
    JRT_HTTP_STACKS_KEPT = 32,    /* unused stacks of children, when few children start */
    JRT_HTTP_BLOCKS_KEPT = 64,    /* unused blocks of a server */
    JRT_HTTP_PATIENCE = 1000,     /* milliseconds, for a task to leave a request that is over */
    JRT_HTTP_SIGNALS = 2,         /* SIGTERM and SIGINT */
    JRT_HTTP_ERROR_BYTES = 256,   /* what the server's own answers need at most */
    JRT_HTTP_MARK_BYTES = 32,     /* why a request failed: in a word, in a sentence */
    JRT_HTTP_REASON_BYTES = 384,
    JRT_HTTP_WHY_BYTES = 96,
};

#define JRT_HTTP_TICK_NS JANUS_SECONDS
#define JRT_HTTP_LINGER_NS (2 * JANUS_SECONDS) /* for the client to read our last answer */
#define JRT_HTTP_STOP_NS (250 * JANUS_MS)      /* for an idle client at the graceful stop */
#define JRT_HTTP_SILENT_NS (1 * JANUS_SECONDS) /* crowded: for a first request */
#define JRT_HTTP_SHAKE_NS (3 * JANUS_SECONDS)  /* crowded: for a handshake */
#define JRT_HTTP_TURN_NS (5 * JANUS_SECONDS)   /* crowded: for a busy connection */
#define JRT_HTTP_RATE_NS (5 * JANUS_SECONDS)   /* before min_rate is asked for */

/* What the task of a connection does after its child has ended. */
enum jrt_http_then {
    JRT_HTTP_THEN_FRESH, /* another child goes on: the last one was used up */
    JRT_HTTP_THEN_COLD,  /* wait for the next request */
    JRT_HTTP_THEN_LEAVE, /* the last answer is out: half-close, drain, close */
    JRT_HTTP_THEN_CLOSE, /* the client is gone */
};

struct jrt_http_log;
struct jrt_http_wire_holder;

/*
 * Where a connection stands. A cold one has a time at which it is closed. All in one queue wait
 * equally long, so the first of a queue is due first, and no connection needs a timer.
 *
 *     SHAKING  ->  FRESH, end              its child opens the wire, for head_ns
 *     FRESH    ->  WARM, end               a byte comes; or the tick, the stop, a crowd
 *     WARM     ->  WARM, IDLE, end         its child has ended: THEN_FRESH, THEN_COLD, the others
 *     IDLE     ->  WARM, end               as FRESH
 *
 * Only the connection's task moves it, with the lock.
 */
enum jrt_http_queue_name {
    JRT_HTTP_FRESH,   /* cold: it waits for its first request, for head_ns */
    JRT_HTTP_IDLE,    /* cold: it has had a request, and waits for idle_ns */
    JRT_HTTP_WARM,    /* it has a block */
    JRT_HTTP_SHAKING, /* its wire is being opened, shake.c */
    JRT_HTTP_QUEUES,
};

struct jrt_http_queue {
    struct jrt_http_connection *first, **end;
};

/* A signal that stops the server. */
struct jrt_http_watch {
    janus_io listener;
    int      number;
    bool     caught;
    uint64_t count; /* of signals so far */
};

/* Where a block without memory lies, and how many requests it has had. */
struct jrt_http_place {
    struct janus_http *at;
    uint32_t           serial;
};

/* Shared by all connections. */
struct jrt_http_server {
    janus_http_handler         *handler;
    void                       *argument;
    janus_http_options          options; /* with the defaults filled in */
    struct jrt_http_limits      limits;
    janus_budget                share, pool; /* of a child */
    bool                        supervised;  /* without a pool, see connection.c */
    size_t                      in_bytes, block_bytes;
    size_t                      wire_stack_bytes; /* of a connection's task; 0: the scheduler's */
    char                        server_line[128]; /* "Server: x\r\n" */
    size_t                      server_line_bytes;
    struct jrt_http_log        *log;    /* NULL: none */
    janus_token                *events; /* the stop cancels it, and so all streams of events */
    struct jrt_http_watch       watches[JRT_HTTP_SIGNALS];
    void                        (*began)(void *); /* called once it serves, or NULL */
    void                       *began_argument;
    struct jrt_http_connection *single; /* of janus_http_serve_one: it runs in the same task */
    atomic_bool                 stopping;
    atomic_bool                 crowded;    /* it is full, and another client waits */
    atomic_uint                 warm_count; /* written with the lock */

    /* The field Date. Odd versions are being written. */
    atomic_uint      date_version;
    _Atomic uint64_t date[JRT_HTTP_DATE_WORDS];

    janus_semaphore room; /* permits: connections that may still come */

    /*
     * Guards the rest. It is no mutex: each task that locks a mutex has a record until it ends. A
     * task that is broken off would keep the permit. So it makes no call with it that it pays for.
     */
    janus_semaphore        lock;
    struct jrt_http_queue  queues[JRT_HTTP_QUEUES];
    uint64_t               warm_at;   /* the next look at warm ones; NEVER: none is needed */
    uint64_t               tick_at;   /* the next tick */
    janus_event            sooner;    /* the tick must be sooner than it was planned */
    uint32_t               warmed;    /* connections since the last look at warm ones */
    uint32_t               warm_peak; /* of warm_count, since stacks were last given back */
    struct janus_http     *blocks;    /* unused */
    uint32_t               block_count;
    struct jrt_http_place *empty; /* blocks without memory: their places stay the server's */
    uint32_t               empty_count, empty_room;
    uint32_t               tags;    /* names of one block */
    struct janus_http     *haunted; /* blocks that tasks of requests that are over use */
    struct janus_http     *retired; /* blocks that are used up, one page of each */
};

/*
 * A connection. Its record is no memory of its task: if the task is broken off, the record stays in
 * the server's lists until the server ends.
 */
struct jrt_http_connection {
    janus_io                     io;
    struct jrt_http_wire_holder *holder; /* of the wire; NULL: bytes go to `io` as they are */
    struct jrt_http_server      *server;
    struct jrt_http_connection  *next, **link; /* in one of the server's queues */
    union {
        struct janus_http *http; /* in the queue WARM */
        uint64_t           due;  /* cold: when it is closed */
    };
    uint64_t    since;     /* when it was accepted */
    uint32_t    requests;  /* until it was last cold */
    uint8_t     queue : 4; /* enum jrt_http_queue_name */
    uint8_t     then : 4;  /* enum jrt_http_then */
    atomic_bool upgraded;  /* it speaks WebSocket, whose reader sees the stop */
    bool        early;     /* the first byte of a request was read: `first` */
    char        first;
};

_Static_assert(sizeof(struct jrt_http_connection) <= 72, "malloc adds 8 bytes");

/* What the defer of a connection with a wire frees. */
struct jrt_http_wire_holder {
    janus_wire *wire; /* NULL: destroyed already */
};

static inline janus_wire *jrt_http_wire_of(const struct jrt_http_connection *c)
{
    return c->holder != NULL ? c->holder->wire : NULL;
}

/* What has become of the answer: NONE, then maybe STREAM, then OVER. */
enum jrt_http_stage { JRT_HTTP_STAGE_NONE, JRT_HTTP_STAGE_STREAM, JRT_HTTP_STAGE_OVER };

/* What the library holds for a task: bytes of records, and records in frames of the task. */
struct jrt_http_left {
    size_t records, frames, memory, locks; /* memory: of its budget */
};

/* The part of a block that few requests use. */
struct jrt_http_rare {
    char                  peer[JANUS_ADDRESS_TEXT_BYTES]; /* for the log */
    char                  mark[JRT_HTTP_MARK_BYTES], reason[JRT_HTTP_REASON_BYTES];
    char                  why[JRT_HTTP_WHY_BYTES]; /* what http->why may point to */
    char                  lines[JRT_HTTP_LINES_BYTES];
    struct jrt_http_field trailer_fields[JRT_HTTP_TRAILERS_MAX];
};

/*
 * A block: everything that a warm connection needs. The request's part is set anew for each. What a
 * short request and a short answer touch lies in the first page. Then a crowd of connections needs
 * few entries of the TLB.
 */
struct janus_http {
    struct jrt_http_connection *connection;
    atomic_uint                 tag;    /* of the request that runs; 0: none runs */
    atomic_uint                 guests; /* other tasks inside of calls */
    uint32_t                    serial; /* the tag of its last request */
    _Atomic(janus_task_id)      task;   /* of the request that runs */
    void                       *origin; /* of janus_http_serve_one: what was allocated */
    struct jrt_http_server     *server;
    janus_io                    io;            /* the connection's */
    janus_wire                 *wire;          /* as well */
    uint64_t                    read_deadline; /* as we set it */
    atomic_uint                 requests;
    atomic_uint                 writing; /* counts both ends of each write: odd while it lasts */
    atomic_uint                 stalled; /* the write in which the client took no byte */
    atomic_bool                 idle;    /* no byte of the next request has come */
    struct janus_http          *next;    /* in the server's list of unused blocks */

    /* The last tick: what it saw, and since when nothing has changed. */
    uint32_t tick_requests, tick_writing;
    uint64_t tick_written, tick_since;

    /* Bytes from the client: the head at `at`, behind it what came of the body, from `body` on. */
    char  *in;
    size_t at, body, end;

    /* Bytes for the client. */
    struct jrt_http_out out;
    bool                peer_known;
    bool                littered; /* the handler has left a defer or a nursery */
    bool                began;    /* the child runs, or ran */
    bool                served;   /* it has asked for bytes once */
    bool                intruded; /* another task was inside of a call when the handler returned */
    bool                active;   /* a handler was called, and its answer is not settled */
    /* If the write of a child never returns, `writing` stays odd, and nobody knows the rest. */
    janus_status broken; /* why no byte can be sent any more; OK: it can */

    /* The request. */
    struct jrt_http_head   head;
    janus_http_request     request;
    uint64_t               left;     /* of a body with a length */
    uint64_t               body_got; /* so far */
    uint64_t               max_body;
    uint64_t               credit_ns; /* for which the client may let us wait for the body */
    uint64_t               credited;  /* bytes of the body that credit was given for */
    struct jrt_http_chunks chunks;
    size_t                 piece; /* decoded and not taken, at `body` */
    struct jrt_http_head   trailers;
    size_t                 trailers_at;
    bool                   body_over, continue_due, last_chunk;
    janus_status           body_status; /* OK: the body can be read on */
    uint16_t               fault;       /* the status for the client's mistake; 0: none */
    const char            *why;         /* what was wrong */

    /* The answer. */
    uint8_t  stage; /* enum jrt_http_stage */
    bool     keep;  /* the connection goes on */
    bool     chunked, bodiless;
    bool     failed;   /* the stream is shorter than it promised */
    bool     blamed;   /* the request fails: rare->mark, rare->reason */
    bool     eventful; /* the stream has events: a stop ends it */
    uint16_t status;
    uint64_t promised, sent; /* bytes of the body */
    size_t   lines_bytes;
    int64_t  result;   /* of the handler, if the connection's task is to end the answer */
    uint64_t began_ns; /* with a log */

    /* The child. */
    struct jrt_http_left before;   /* when it began, to see what a handler leaves behind */
    janus_budget         share;    /* what it got */
    janus_budget   portion, given; /* supervised: for each recharge, for this request so far */
    janus_nursery *nursery;        /* around the child */
    janus_nursery *shell;          /* the child's own, around all of its requests */

    struct jrt_http_rare *rare;  /* behind the buffers */
    char                 *large; /* the buffer for more than `small` holds */
    char                  small[JRT_HTTP_SMALL_BYTES];
    struct jrt_http_field fields[]; /* then the buffers */
};

/* Sets the deadline for reading. */
static inline void jrt_http_read_until(struct janus_http *http, uint64_t deadline)
{
    if (http->read_deadline == deadline) return;
    http->read_deadline = deadline;
    JANUS_IGNORE(janus_io_set_deadline(http->io, JANUS_IO_READ, deadline));
}

/* The sum, without overflow. */
static inline uint64_t jrt_http_after(uint64_t now, uint64_t duration)
{
    return now + duration < now ? JANUS_IO_NEVER : now + duration;
}

/* serve.c. As janus_http_serve, and calls `began` when it serves, if that is not NULL. */
janus_status jrt_http_serve_and_tell(janus_io listener, janus_http_handler *handler, void *argument,
                                     const janus_http_options *options, void (*began)(void *),
                                     void *began_argument);

/* connection.c. Serves the connection, and closes it. The record stays the caller's. */
void jrt_http_connection_run(struct jrt_http_connection *c);

/* Frees a block that is in no list. */
void jrt_http_block_free(struct janus_http *http);

/* Locks the server. Neither a cancel nor the end of a shield (the scheduler's grace_ns) keeps a
 * task from the lock. */
void               jrt_http_lock(struct jrt_http_server *server);
static inline void jrt_http_unlock(struct jrt_http_server *server)
{
    JANUS_IGNORE(janus_semaphore_release(&server->lock, 1));
}

/* shake.c. Makes the wire, if the server has one, and opens it. False: the connection is over. */
bool jrt_http_shake(struct jrt_http_connection *c);
void jrt_http_unwire(struct jrt_http_connection *c);
/* Whether the stack of the current task suffices for the wire. */
bool jrt_http_wire_may(const struct jrt_http_server *server);
/* Makes sure that the stacks of connections and requests suffice for a wire. */
janus_status jrt_http_wire_stack(struct jrt_http_server *server, janus_nursery *nursery);

/* request.c, body.c, answer.c, stream.c, static.c: the public calls, for a block. */
janus_status jrt_http_do_field(const struct janus_http *http, const char *name,
                               janus_http_text *out_value);
janus_status jrt_http_do_field_at(const struct janus_http *http, size_t index,
                                  janus_http_text *out_name, janus_http_text *out_value);
janus_status jrt_http_do_peer(const struct janus_http *http, janus_address *out);
janus_status jrt_http_do_read(struct janus_http *http, void *to, size_t max, size_t *out_got);
janus_status jrt_http_do_read_all(struct janus_http *http, char **out, size_t *out_bytes);
janus_status jrt_http_do_limit_body(struct janus_http *http, uint64_t max_bytes);
janus_status jrt_http_do_trailer(const struct janus_http *http, const char *name,
                                 janus_http_text *out_value);
janus_status jrt_http_do_set_field(struct janus_http *http, const char *name, const char *value);
janus_status jrt_http_do_set_trailer(struct janus_http *http, const char *name, const char *value);
janus_status jrt_http_do_answer(struct janus_http *http, unsigned status, const char *type,
                                const void *bytes, size_t count);
janus_status jrt_http_do_answer_text(struct janus_http *http, unsigned status, const char *text);
janus_status jrt_http_do_begin(struct janus_http *http, unsigned status, const char *type,
                               uint64_t length);
janus_status jrt_http_do_write(struct janus_http *http, const void *bytes, size_t count);
janus_status jrt_http_do_flush(struct janus_http *http);
janus_status jrt_http_do_event(struct janus_http *http, const char *event, const char *id,
                               const char *data);
janus_status jrt_http_do_answer_file(struct janus_http *http, janus_io dir, janus_http_text path);

/*
 * name.c. A handler knows its request by a name, which is no pointer. The name is the address of
 * the block, with a tag in the 12 lowest and 16 highest bits. Addresses of blocks have zeros there.
 * The tag is the block's count of requests. So a name that a handler has kept, or given away, is
 * refused when its request is over.
 *
 * No name comes again while the server lives. A place where a block has been stays the server's,
 * and so does its count, also while the block has no memory. After 2^28 - 1 requests a block
 * retires: its connection ends with that answer, and the server keeps one page of the block. So
 * names cost 4 KiB for each 268 million requests.
 *
 * Other tasks than the request's own are counted while they are inside of a call. If such a task is
 * inside when the request ends, the connection ends. Nobody uses the block until the task has left.
 * A task that ends inside of a call is counted off by a defer. Threads, blocking calls and
 * callbacks have no defers, so they are refused.
 */
enum {
    JRT_HTTP_PLACE_BYTES = 4096, /* blocks lie at multiples of it */
    JRT_HTTP_TAG_SHIFT = 48,     /* of the upper part */
};

/* Names of one block. Tests make it smaller. */
extern uint32_t jrt_http_tags;

/* Whether a block can lie there. */
static inline bool jrt_http_is_place(const void *at)
{
    return (uintptr_t)at % JRT_HTTP_PLACE_BYTES == 0 && (uintptr_t)at >> JRT_HTTP_TAG_SHIFT == 0;
}
static inline janus_http *jrt_http_name(struct janus_http *http)
{
    /* relaxed: of this request. */
    uint64_t tag = atomic_load_explicit(&http->tag, memory_order_relaxed);
    uint64_t name = (uintptr_t)http | tag % JRT_HTTP_PLACE_BYTES |
                    tag / JRT_HTTP_PLACE_BYTES << JRT_HTTP_TAG_SHIFT;
    return (janus_http *)(uintptr_t)name;
}
static inline struct janus_http *jrt_http_block(const janus_http *name)
{
    uint64_t at = (uintptr_t)name & ((UINT64_C(1) << JRT_HTTP_TAG_SHIFT) - JRT_HTTP_PLACE_BYTES);
    return (struct janus_http *)(uintptr_t)at;
}
static inline uint32_t jrt_http_tag(const janus_http *name)
{
    return (uint32_t)((uintptr_t)name % JRT_HTTP_PLACE_BYTES | (uintptr_t)name >> JRT_HTTP_TAG_SHIFT
                                                                                      << 12);
}
/* Whether the name is that of the running request, and the caller is its own task. */
static inline bool jrt_http_is_own(const janus_http *name)
{
    struct janus_http *http = jrt_http_block(name);
    uint32_t           tag = jrt_http_tag(name);
    /* relaxed, both: if the caller is the request's own task, it wrote both. */
    return tag != 0 && atomic_load_explicit(&http->tag, memory_order_relaxed) == tag &&
           atomic_load_explicit(&http->task, memory_order_relaxed) == janus_task_current_id();
}
/* A request begins: it gets a name. */
static inline void jrt_http_name_begin(struct janus_http *http)
{
    /* relaxed: only this task knows the new name, until it gives it to others. */
    atomic_store_explicit(&http->tag, ++http->serial, memory_order_relaxed);
}
/* Whether the block has no name for another request. */
static inline bool jrt_http_is_used_up(const struct janus_http *http)
{
    return http->serial >= http->server->tags;
}
/* The name is refused from now on. False: another task is inside of a call. */
bool jrt_http_name_end(struct janus_http *http);
/* connection.c. Gives the memory of a block back, keeps its place. The caller holds the lock.
 * False: the block stays as it is. */
bool jrt_http_block_empty(struct jrt_http_server *server, struct janus_http *http);

/* exchange.c: the child. `argument` is a connection with a block. */
int64_t jrt_http_exchange(void *argument);

/* Reads once into the room behind `end`. As janus_io_read, but DEADLINE is final. */
janus_status jrt_http_fill(struct janus_http *http);

/* Whether a wait of the server's own tasks is tried again: it failed only for lack of memory. */
static inline bool jrt_http_try_again(janus_status status)
{
    return status == JANUS_NO_MEMORY && janus_yield() == JANUS_OK;
}

/* tick.c: a task of the server. `argument` is the server. */
int64_t jrt_http_tick(void *argument);
/* Ends the wait of the connection that has been idle longest. */
void jrt_http_make_way(struct jrt_http_server *server);
/* Asks for a tick at that time, or sooner. The caller holds the lock. */
void jrt_http_tick_by(struct jrt_http_server *server, uint64_t when);
/* Brings the server's date up to date; for one thread at a time. */
void jrt_http_date_set(struct jrt_http_server *server);
/* Writes JRT_HTTP_DATE_LINE_BYTES, and some bytes behind them. */
void jrt_http_date_get(const struct jrt_http_server *server, char out[JRT_HTTP_DATE_ROOM]);

/* body.c */
void jrt_http_body_begin(struct janus_http *http);
/* Reads the rest and drops it. False: the connection cannot go on. */
bool jrt_http_body_drain(struct janus_http *http);

/* send.c: bytes to the client */
janus_status jrt_http_send(struct janus_http *http, const janus_io_piece *more, uint32_t count);
static inline janus_status jrt_http_flush_all(struct janus_http *http)
{
    return http->out.bytes == 0 ? http->broken : jrt_http_send(http, NULL, 0);
}
/* Makes room for `bytes`, at most JRT_HTTP_OUT_BYTES. */
janus_status               jrt_http_make_room_slow(struct janus_http *http, size_t bytes);
static inline janus_status jrt_http_make_room(struct janus_http *http, size_t bytes)
{
    if (http->out.room - http->out.bytes >= bytes) return http->broken;
    return jrt_http_make_room_slow(http, bytes);
}

/* A type that a handler gives; NULL: none. */
static inline struct jrt_http_text jrt_http_type(const char *type)
{
    return type != NULL ? jrt_http_up_to(type, JRT_HTTP_TYPE_BYTES) : JRT_HTTP_TEXT("");
}

/* answer.c. The server's own answer: a sentence. Afterwards the connection ends. The buffer has
 * room for it. */
void jrt_http_answer_error(struct janus_http *http, unsigned status, const char *why);
/* Ends what the handler has begun, or answers for it. */
void jrt_http_answer_end(struct janus_http *http, int64_t result);
/* Writes the head into the buffer. */
janus_status jrt_http_answer_head(struct janus_http *http, unsigned status,
                                  struct jrt_http_text type, uint64_t length);

/* stream.c. Adds a line to the fields of the answer, or later to the trailers. */
janus_status jrt_http_add_line(struct janus_http *http, struct jrt_http_text name,
                               struct jrt_http_text value);

/* Whether the handler has set a field of this name. */
bool jrt_http_has_line(const struct janus_http *http, struct jrt_http_text name);
/* Sets a field, unless the handler has set it. */
janus_status jrt_http_offer_field(struct janus_http *http, const char *name, const char *value);

/* route.c */
int64_t jrt_http_follow(janus_http *http, const janus_http_request *request);
bool    jrt_http_routes_sane(const janus_http_route *route);

/* log.c */
janus_status jrt_http_log_open(struct jrt_http_server *server, janus_nursery *nursery);
void         jrt_http_log_close(struct jrt_http_server *server);
void         jrt_http_log_free(struct jrt_http_server *server);
void         jrt_http_log_line(struct janus_http *http);
/* Escapes what could be taken for another line or another column. Cuts a long text. */
void jrt_http_escape(struct jrt_http_text text, char *out, size_t room);
/* Writes the client's address to rare->peer. */
void jrt_http_find_peer(struct janus_http *http);

/* blame.c. Notes why the request fails, in a word and in a sentence. Only the first note counts. */
void jrt_http_blame(struct janus_http *http, const char *mark, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The handler has returned this, or was too late. */
void jrt_http_blame_result(struct janus_http *http, int64_t result);
/* The child has ended. Its nursery has not. */
void jrt_http_blame_child(struct janus_http *http, janus_nursery *requests);
/* No child could be started. */
void jrt_http_blame_room(struct janus_http *http, janus_status status);
/* Whether the client did not get the whole answer. */
bool jrt_http_is_cut(const struct janus_http *http);
/* Tells what was noted. */
void jrt_http_tell(struct janus_http *http);

/* Once for each request, when it is over. */
static inline void jrt_http_log_request(struct janus_http *http)
{
    if (http->blamed) jrt_http_tell(http);
    if (http->server->log != NULL) jrt_http_log_line(http);
}

static inline janus_http_text jrt_http_public(struct jrt_http_text text)
{
    return (janus_http_text){text.at, text.bytes};
}
static inline struct jrt_http_text jrt_http_private(janus_http_text text)
{
    return (struct jrt_http_text){text.at, text.bytes};
}
static inline struct jrt_http_text jrt_http_of(const char *text)
{
    return (struct jrt_http_text){text, strlen(text)};
}

#endif
