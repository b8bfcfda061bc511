/* SPDX-License-Identifier: MIT */
/*
 * A server of HTTP/1.1. Link with libjanusrt-http. A server that greets is:
 *
 *     static int64_t greet(janus_http *http, const janus_http_request *request)
 *     {
 *         (void)request;
 *         return janus_http_answer(http, 200, "text/plain", "Hello!\n", 7);
 *     }
 *
 *     int main(void)
 *     {
 *         return janus_http_run("127.0.0.1:8080", greet, NULL, NULL) == JANUS_OK ? 0 : 1;
 *     }
 *
 * A task that has a listener calls janus_http_serve instead.
 *
 * Each connection has a task. A request runs in a child of that task, in a nursery with a pool of
 * its own (options.request_budget). A handler that panics, loops, leaks or floods ends alone. Its
 * client gets the status 500, or a closed connection if the answer has begun. Nobody else notices.
 *
 * While a handler leaves nothing behind, the same child runs the next request of the connection. If
 * it leaves a block of memory, a handle, a defer or a used budget, the child ends after the answer.
 * So a handler may count on its end: its defers run, its blocks of janus_alloc are freed, its
 * handles are closed. Blocks of malloc are not. A handler that ends with a lock held abandons it
 * (janus_mutex_is_abandoned), and its connection ends after the answer.
 *
 * A handler does not notice that its client has left until it writes. A stop of the server cancels
 * it only after options.grace_ns. A stream of events is cancelled at once (janus_http_event).
 *
 * The parser is strict, as RFC 9112 permits, and nothing loosens it. Limits and deadlines are on by
 * default. Answers keep the order of their requests. Answers to requests that came together leave
 * together.
 *
 * An answer is whole (janus_http_answer), or a stream (janus_http_begin, janus_http_write). The
 * return of the handler ends it. A handler that returns 0 without an answer gives the status 204. A
 * handler that returns a negative number gives 500. If an answer has begun, a negative number cuts
 * it off, and the client learns that the answer is incomplete.
 *
 * Only one task at a time uses a janus_http: the handler's own, or a child that the handler awaits.
 * When the handler has returned, every call with its janus_http returns STATE, until the server
 * ends. If another task is inside of such a call at that moment, the connection is closed. Plain
 * threads, blocking calls and callbacks of tokens get STATE.
 */
#ifndef JANUSRT_HTTP_H
#define JANUSRT_HTTP_H

#include <janusrt/budget.h>
#include <janusrt/export.h>
#include <janusrt/io.h>
#include <janusrt/net.h>
#include <janusrt/options.h>
#include <janusrt/status.h>
#include <janusrt/task.h>
#include <janusrt/wire.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A request and its answer, while the handler runs. */
typedef struct janus_http janus_http;

/* Some bytes of a request. No NUL ends them. They are valid until the handler returns. */
typedef struct janus_http_text {
    const char *at;
    size_t      bytes;
} janus_http_text;

typedef enum janus_http_method {
    JANUS_HTTP_METHOD_OTHER = 0, /* any other method, and in a route every method */
    JANUS_HTTP_METHOD_GET,
    JANUS_HTTP_METHOD_HEAD,
    JANUS_HTTP_METHOD_POST,
    JANUS_HTTP_METHOD_PUT,
    JANUS_HTTP_METHOD_DELETE,
    JANUS_HTTP_METHOD_OPTIONS,
    JANUS_HTTP_METHOD_PATCH,
    JANUS_HTTP_METHOD_TRACE,
} janus_http_method;

/* A length that nobody knows yet. */
#define JANUS_HTTP_UNKNOWN UINT64_MAX

/* The most parts of a path that a route captures. */
#define JANUS_HTTP_CAPTURES 8

typedef struct janus_http_request {
    janus_http_method method;
    uint32_t          minor;          /* 0 or 1: HTTP/1.0, HTTP/1.1 */
    janus_http_text   method_text;    /* "GET" */
    janus_http_text   path;           /* as sent, with its escapes; or "*" */
    janus_http_text   query;          /* behind the "?", as sent; at is NULL without a "?" */
    janus_http_text   host;           /* with its port, as sent; may be empty in 1.0 */
    uint64_t          content_length; /* of the body, 0 without a body; UNKNOWN: chunked */
    void             *argument;       /* of janus_http_serve, or of the route */
    uint32_t          captured_count;
    janus_http_text   captured[JANUS_HTTP_CAPTURES]; /* by the route, as sent */
} janus_http_request;

/* Answers a request. Returns 0, or a negative number if it failed. */
typedef int64_t janus_http_handler(janus_http *http, const janus_http_request *request);

/* One row of a table of routes, see janus_http_routes. The last row has the pattern NULL. */
typedef struct janus_http_route {
    janus_http_method   method;  /* GET also serves HEAD; OTHER serves every method */
    const char         *pattern; /* "/user/{name}/files/{*}" */
    janus_http_handler *handler;
    void               *argument; /* of the handler. NULL: the server's */
} janus_http_route;

/* A request that failed. */
typedef struct janus_http_failure {
    janus_task_id task;                   /* of the request; it may have ended */
    const char   *method, *target, *peer; /* escaped; "" if the head was not read */
    unsigned      status;                 /* of the answer; 0: no answer was sent */
    bool          cut;                    /* the client did not get the whole answer */
    const char   *reason;                 /* "its handler returned -100" */
    const char   *text;                   /* all of it in one line, as stderr would get it */
} janus_http_failure;

/*
 * The server calls it in a task of its own or of the request, when the request is over. The texts
 * end with the call. It must not wait. The task pays for what it calls.
 */
typedef void janus_http_on_failure(void *argument, const janus_http_failure *failure);

/* A good max_tasks of a scheduler for a server: two for each connection, and 100 tasks that the
 * handlers can start. */
#define JANUS_HTTP_TASKS(connections) (2 * (uint64_t)(connections) + 100)

/* Options of a server. Zero in any field selects the default named beside it. */
typedef struct janus_http_options {
    size_t   struct_bytes;    /* sizeof this struct; JANUS_HTTP_OPTIONS sets it */
    uint32_t max_connections; /* that the server serves at a time; further clients wait in the
                                 backlog. While a client waits, the server closes the connection
                                 that has been idle longest. It closes a busy connection after an
                                 answer, if the connection is 5 s old. Each connection needs two
                                 of the scheduler's max_tasks, see JANUS_HTTP_TASKS. 0: two fifths
                                 of max_tasks, so 40 by default; with janus_http_run 100 */
    uint32_t max_requests;    /* of one connection. 0: 1000 */
    uint32_t max_line_bytes;  /* of a line in a head; a longer one gets 414 or 431. 0: 8192 */
    uint32_t max_head_bytes;  /* at most 57344; a longer head gets 431. 0: 16384 */
    uint32_t max_fields;      /* at most 1024; more get 431. 0: 64 */
    uint64_t max_body_bytes;  /* a longer body gets 413. UNKNOWN: no limit. 0: 1 MiB */

    /* Times. A client that takes longer gets 408, or its connection is closed. */
    uint64_t head_ns;    /* from the first byte of a head to its last. 0: 10 s */
    uint64_t idle_ns;    /* between two requests; up to 2 s more. 0: 60 s */
    uint64_t body_ns;    /* without a byte of the body that the handler waits for. 0: 30 s */
    uint64_t write_ns;   /* in which the client takes no byte of an answer. 0: 30 s */
    uint32_t min_rate;   /* bytes of a body that the client must send in a second. The seconds count
                          while the handler waits for the body, after the first five. 0: 240 */
    uint64_t handler_ns; /* for a request, also for a stream or a WebSocket. Then the server cancels
                            the request. 0: no limit */
    uint64_t grace_ns;   /* after the listener was closed; then requests are cancelled. 0: 30 s */

    /*
     * What a request may use. With a budget, the task of the request gets this budget. The tasks
     * that it starts share as much again. The scheduler's max_budget bounds both together. With a
     * log, the request gets 64 channel operations more, for its line.
     *
     * NULL: the task of the request may use 50 million ops, 100,000 syscalls and a million channel
     * operations. It may use as much memory as max_budget allows, up to 16 MiB. Each event and each
     * message of a WebSocket may use as much again. Tasks that the handler starts have the
     * scheduler's usual budgets then.
     */
    const janus_budget *request_budget;
    uint32_t            request_tasks;   /* live tasks that one request may have started. At the
                                            limit its next spawn returns TASK_LIMIT. 0: with a
                                            request_budget the spawn_count of it. Otherwise a
                                            quarter of the max_tasks that connections leave over,
                                            at least 2 and at most 1000 */
    uint32_t            request_handles; /* live sockets that one request may have opened, and as
                                            many files and processes. The next is refused with
                                            HANDLE_LIMIT. 0: an eighth of the descriptors that
                                            connections leave over, at least 4, at most 1000 */
    size_t              stack_bytes;     /* of a request's task. 0: the scheduler's */
    bool                stop_on_signals; /* SIGTERM and SIGINT close the listener */
    const char         *server;          /* the value of the field Server. NULL: no such field */

    /*
     * The access log. A task writes one line for each request, when the request has ended:
     *     2026-11-16T14:03:22Z 127.0.0.1:40312 GET /a 200 1234 57us 0x200000001
     * These are the time of the end, the client, the method, the target, the status, the bytes of
     * the body, the duration and the task. The status 0 means that no answer was sent.
     *
     * Words at the end of a line say why the request failed:
     *     returned -100  what its handler returned
     *     panicked       its handler panicked
     *     ops            or another component of its budget that it used up
     *     late           it took longer than handler_ns
     *     stopped        the server stopped, and grace_ns had passed
     *     short          its handler wrote less than it promised
     *     room           no task could be started for it
     *     intruded       another task was inside of a call when its handler returned
     *     cut            the client did not get the whole answer
     *
     * If requests are faster than the log, the server drops lines, and the log says how many. A
     * handshake of TLS that fails has no line; janus_tls_server_inspect counts it.
     */
    janus_io log;       /* where lines go. All zero: see `logs` */
    bool     logs;      /* without `log`: lines go to the standard output. In a simulated run, which
                           has no standard output, there is no log then. false: no log */
    uint32_t log_lines; /* the most lines that wait for the log. 0: 1024 */

    /* TLS, as janus_tls_server_wire gives it. It must exist until the call has returned. A
     * handshake has head_ns. NULL: bytes travel as they are. */
    const janus_wire_maker *wire;

    /* A table that janus_http_routes follows. The server's handler must be NULL then. */
    const janus_http_route *routes;

    /*
     * The server writes one line to stderr for each request that fails: method, target, client,
     * status, reason, and which limit to raise. A request fails if its handler panics, returns a
     * negative number, uses up a budget, takes longer than handler_ns, or writes less than it
     * promised. It does not if the client is to blame. The server writes at most 20 lines a second.
     * The next line says how many were left out.
     */
    janus_http_on_failure *on_failure; /* called instead. NULL: stderr */
    void                  *on_failure_argument;
    bool                   quiet_failures; /* write nothing, if on_failure is NULL */
} janus_http_options;
#define JANUS_HTTP_OPTIONS(...) JANUS_OPTIONS_(janus_http_options, __VA_ARGS__)

JANUS_BEGIN_DECLS

/*
 * Runs a whole program that serves: a scheduler, a listener at `at`, as "127.0.0.1:8080", and
 * janus_http_serve. SIGTERM and SIGINT stop it gracefully. The scheduler has the profile :service,
 * with enough tasks for options.max_connections and budgets as large as options.request_budget.
 *
 * When it serves, it prints where: "open http://127.0.0.1:8080/ (Ctrl-C stops the server)". If it
 * cannot serve, it prints why on the standard error. A program that wants another scheduler or
 * other words calls janus_run, janus_listen and janus_http_serve itself. A server that calls other
 * servers must, too, because its first task creates the janus_http_client and outlives all
 * handlers. janus_dir_open and janus_tls_server_create need no task: main calls them before
 * janus_http_run.
 *
 * Context: a plain thread, as main.
 * Yields:  it returns after the stop.
 * Owns:    options.log must be all zero; options.logs logs to the standard output.
 * Cost:    as janus_run and janus_http_serve.
 * Errors:  OK       a signal came, and all connections have ended
 *          INVALID  `at` is no address; and those of janus_run, janus_listen and janus_http_serve
 */
JANUS_NODISCARD JANUS_API janus_status janus_http_run(const char *at, janus_http_handler *handler,
                                                      void                     *argument,
                                                      const janus_http_options *options);

/*
 * Serves the connections of a listener until the listener is closed, or the task is cancelled.
 * Closing the listener stops the server gracefully. The server finishes requests, says "Connection:
 * close", and closes idle connections. After options.grace_ns it cancels what is left.
 *
 * Context: a task.
 * Yields:  always.
 * Owns:    the listener stays the caller's. options.log must stay open until the call has returned.
 * Cost:    a task for each connection; 5 KiB for an idle one.
 * Errors:  OK          the listener was closed, and all connections have ended
 *          INVALID     an option is out of range, or there is no handler and no table of routes, or
 *                      both
 *          TASK_LIMIT  the scheduler's max_tasks is too small for options.max_connections
 *          STATE       it is no listener
 *          STALE, CANCELLED, NO_MEMORY, and those of janus_accept and janus_nursery_open
 */
JANUS_NODISCARD JANUS_API janus_status janus_http_serve(janus_io            listener,
                                                        janus_http_handler *handler, void *argument,
                                                        const janus_http_options *options);

/*
 * Serves one connection, as janus_http_serve does. Returns when it has ended. A program that
 * accepts by itself calls this.
 *
 * Context: a task.
 * Yields:  always.
 * Owns:    takes `io`: the call closes it. On an error `io` stays the caller's.
 * Cost:    as janus_http_serve.
 * Errors:  UNAVAILABLE  options.log, options.logs or options.stop_on_signals is set
 *          INVALID      the stack of the calling task is smaller than options.wire needs. Or as
 *                       janus_http_serve
 *          STATE        `io` is a listener
 *          STALE, CANCELLED, NO_MEMORY, and those of janus_nursery_open
 */
JANUS_NODISCARD JANUS_API janus_status janus_http_serve_one(janus_io                  io,
                                                            janus_http_handler       *handler,
                                                            void                     *argument,
                                                            const janus_http_options *options);

/*
 * Finds the first field of the request with this name, in any case of letters.
 *
 * Context: the handler.
 * Yields:  never.
 * Owns:    *out_value is valid until the handler returns.
 * Cost:    a comparison for each field.
 * Errors:  NOT_FOUND  there is no such field; *out_value is not changed
 *          INVALID    an argument is NULL
 */
JANUS_NODISCARD JANUS_API janus_status janus_http_field(const janus_http *http, const char *name,
                                                        janus_http_text *out_value);

/*
 * Reads field number `index` of the request, from 0, in the order of the head.
 *
 * Context: the handler.
 * Yields:  never.
 * Owns:    as janus_http_field.
 * Cost:    some loads.
 * Errors:  NOT_FOUND  the request has fewer fields
 *          INVALID    an argument is NULL
 */
JANUS_NODISCARD JANUS_API janus_status janus_http_field_at(const janus_http *http, size_t index,
                                                           janus_http_text *out_name,
                                                           janus_http_text *out_value);

/*
 * The address of the client.
 *
 * Context: the handler.
 * Yields:  only if the turn is over.
 * Owns:    *out is the caller's.
 * Cost:    as janus_io_peer.
 * Errors:  as janus_io_peer
 */
JANUS_NODISCARD JANUS_API janus_status janus_http_peer(const janus_http *http, janus_address *out);

/*
 * Decodes the escapes of a part of a path: "a%20b" becomes "a b". With `form`, a plus becomes a
 * space, as in queries. A NUL follows the text, uncounted.
 *
 * Context: anyone.
 * Yields:  never.
 * Owns:    `out` stays the caller's.
 * Cost:    a step for each byte.
 * Errors:  INVALID  a bad escape, or an escaped NUL
 *          FULL     the text and its NUL need more than `room` bytes
 */
JANUS_NODISCARD JANUS_API janus_status janus_http_decode(janus_http_text text, bool form, char *out,
                                                         size_t room, size_t *out_bytes);

/*
 * Whether a text is these bytes, in the same case of letters.
 *
 * Context: anyone.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a comparison.
 * Errors:  false: `other` is NULL
 */
JANUS_API bool janus_http_text_equal(janus_http_text text, const char *other);

/*
 * Reads a number without a sign: "42".
 *
 * Context: anyone.
 * Yields:  never.
 * Owns:    *out is the caller's.
 * Cost:    a step for each digit.
 * Errors:  INVALID  the text has other bytes than digits, or none, or `out` is NULL
 *          FULL     the number is larger than UINT64_MAX
 */
JANUS_NODISCARD JANUS_API janus_status janus_http_text_number(janus_http_text text, uint64_t *out);

/*
 * Finds a value in the query: of "a=1&b=2" the value of "b" is "2", as sent.
 *
 * Context: the handler.
 * Yields:  never.
 * Owns:    *out_value is valid until the handler returns.
 * Cost:    a step for each byte of the query.
 * Errors:  NOT_FOUND  the query has no such name; *out_value is not changed
 *          INVALID    an argument is NULL
 */
JANUS_NODISCARD JANUS_API janus_status janus_http_query(const janus_http_request *request,
                                                        const char               *name,
                                                        janus_http_text          *out_value);

/*
 * Reads what is there of the body, at least one byte and at most `max`. The first call sends "100
 * Continue" to a client that waits for it. After an error that is the client's fault, the server
 * answers with the status named here, unless the handler answers first. Then it closes.
 *
 * Context: the handler.
 * Yields:  if nothing is there, or the turn is over.
 * Owns:    `to` stays the caller's.
 * Cost:    as janus_io_read, for the request's budget.
 * Errors:  CLOSED    the body has ended; *out_got is 0
 *          FULL      the body is longer than the limit: 413
 *          DEADLINE  the client sends too slowly: 408
 *          INVALID   the chunks of the body are malformed: 400. Or an argument is NULL, or max is 0
 *          RESET     the client is gone before the end of the body
 *          and those of janus_io_read
 */
JANUS_NODISCARD JANUS_API janus_status janus_http_read(janus_http *http, void *to, size_t max,
                                                       size_t *out_got);

/*
 * Reads the whole body into a block of the handler's task. A NUL follows the body, uncounted. If
 * memory runs out in the middle, the body is lost: later calls return the same error.
 *
 * Context: the handler.
 * Yields:  as janus_http_read.
 * Owns:    *out is the task's; janus_free frees it. Without a body it is an empty block.
 * Cost:    as janus_http_read, and memory of the budget.
 * Errors:  as janus_http_read, without CLOSED. BUDGET_EXHAUSTED, NO_MEMORY: no memory for it
 */
JANUS_NODISCARD JANUS_API janus_status janus_http_read_all(janus_http *http, char **out,
                                                           size_t *out_bytes);

/*
 * Changes the limit of this request's body. A handler that takes a stream calls it first.
 *
 * Context: the handler.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a store.
 * Errors:  INVALID  `http` is NULL
 */
JANUS_API janus_status janus_http_limit_body(janus_http *http, uint64_t max_bytes);

/*
 * Reads a trailer: a field that followed a chunked body.
 *
 * Context: the handler, after janus_http_read returned CLOSED.
 * Yields:  never.
 * Owns:    *out_value is valid until the handler returns.
 * Cost:    as janus_http_field.
 * Errors:  STATE      the body has not ended
 *          NOT_FOUND  there is no such trailer; *out_value is not changed
 *          INVALID    an argument is NULL
 */
JANUS_NODISCARD JANUS_API janus_status janus_http_trailer(const janus_http *http, const char *name,
                                                          janus_http_text *out_value);

/*
 * Adds a field to the answer. The library writes Content-Length, Transfer-Encoding, Connection,
 * Date and the like itself. A field that the handler sets replaces a field that a later call would
 * set: Content-Type, Cache-Control, ETag, Last-Modified, Accept-Ranges, Server.
 *
 * Context: the handler, before the answer begins.
 * Yields:  never.
 * Owns:    the texts are copied.
 * Cost:    a copy.
 * Errors:  INVALID  the name is no token, the library writes this field, or the value has a CR, an
 *                   LF, a NUL or another control byte
 *          FULL     the fields have more than 4 KiB together
 *          STATE    the answer has begun
 */
JANUS_NODISCARD JANUS_API janus_status janus_http_set_field(janus_http *http, const char *name,
                                                            const char *value);

/*
 * Answers as a whole. To HEAD the server sends the head alone.
 *
 * Context: the handler, once.
 * Yields:  if the answer is long and the client slow, or the turn is over.
 * Owns:    the texts stay the caller's. `type` is the field Content-Type; NULL: no such field.
 * Cost:    a copy of a short answer, which leaves with others; else as janus_io_write.
 * Errors:  STATE    the answer has begun before
 *          INVALID  the status is not between 200 and 599, is 204 or 304 with a body, or `type` is
 *                   no value of a field
 *          and those of janus_io_write. Then the connection ends with the request.
 */
JANUS_NODISCARD JANUS_API janus_status janus_http_answer(janus_http *http, unsigned status,
                                                         const char *type, const void *bytes,
                                                         size_t count);

/*
 * Answers with a status and a text, as janus_http_answer does. The type is text/plain, in UTF-8.
 *
 * Context: as janus_http_answer.
 * Yields:  as janus_http_answer.
 * Owns:    as janus_http_answer.
 * Cost:    as janus_http_answer.
 * Errors:  as janus_http_answer
 */
JANUS_NODISCARD JANUS_API janus_status janus_http_answer_text(janus_http *http, unsigned status,
                                                              const char *text);

/*
 * Begins an answer of `length` bytes. UNKNOWN: the answer is chunked, or in HTTP/1.0 ends with the
 * connection.
 *
 * Context: the handler, once.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    as a short janus_http_answer.
 * Errors:  STATE    the answer has begun before
 *          INVALID  the status is not between 200 and 599, or is 204 or 304 with a length
 */
JANUS_NODISCARD JANUS_API janus_status janus_http_begin(janus_http *http, unsigned status,
                                                        const char *type, uint64_t length);

/*
 * Writes a part of the body. Short parts wait for others, or for janus_http_flush. After HEAD the
 * server drops all parts.
 *
 * Context: the handler, after janus_http_begin.
 * Yields:  if the client is slow, or the turn is over.
 * Owns:    `bytes` stays the caller's.
 * Cost:    a copy of a short part; else as janus_io_write.
 * Errors:  STATE  there is no stream
 *          FULL   the answer would be longer than janus_http_begin said; nothing was written
 *          and those of janus_io_write. Then the connection ends with the request.
 */
JANUS_NODISCARD JANUS_API janus_status janus_http_write(janus_http *http, const void *bytes,
                                                        size_t count);

/*
 * Sends all that was written.
 *
 * Context: the handler, after the answer has begun.
 * Yields:  as janus_io_write.
 * Owns:    nothing.
 * Cost:    as janus_io_write, if there is anything to send.
 * Errors:  STATE  the answer has not begun
 *          and those of janus_io_write. Then the connection ends with the request.
 */
JANUS_NODISCARD JANUS_API janus_status janus_http_flush(janus_http *http);

/*
 * Adds a trailer to a chunked answer. In HTTP/1.0 and after HEAD the server drops it.
 *
 * Context: the handler, after janus_http_begin with UNKNOWN.
 * Yields:  never.
 * Owns:    the texts are copied.
 * Cost:    a copy.
 * Errors:  as janus_http_set_field. STATE: the answer is not chunked.
 */
JANUS_NODISCARD JANUS_API janus_status janus_http_set_trailer(janus_http *http, const char *name,
                                                              const char *value);

/*
 * Sends a server-sent event. The first call begins the answer, as text/event-stream. `data` may
 * have several lines. `event` and `id` may be NULL.
 *
 * The stop of the server cancels the handler, if its own task has sent the first event. Its waits
 * return CANCELLED. A handler that then returns CANCELLED ends the stream whole. Without
 * options.request_budget, each event gives the handler the budget of another request. With it, the
 * budget holds for the whole stream.
 *
 * Context: the handler.
 * Yields:  as janus_io_write.
 * Owns:    the texts stay the caller's.
 * Cost:    as janus_io_write.
 * Errors:  INVALID  `data` is NULL, or `event` or `id` has a line break
 *          STATE    another answer has begun
 *          CANCELLED  the server stops. Or as janus_http_write
 *          and those of janus_http_write
 */
JANUS_NODISCARD JANUS_API janus_status janus_http_event(janus_http *http, const char *event,
                                                        const char *id, const char *data);

/*
 * Answers with a file below a directory. `path` is a path as sent, with escapes, or a captured
 * part of one. A path that ends with a slash names the file index.html there. Knows one range,
 * If-Modified-Since, If-None-Match, If-Range, and types by suffix. A file that does not exist gives
 * 404, a path that leaves the directory 404, another method than GET and HEAD 405.
 *
 * Context: the handler, once.
 * Yields:  always.
 * Owns:    `dir` stays the caller's.
 * Cost:    three calls of file.h, then one for each 32 KiB.
 * Errors:  STATE    the answer has begun before
 *          INVALID  `dir` is no directory
 *          FULL     the fields do not fit beside those that the handler has set
 *          and those of janus_io_read and janus_io_write. OK also if the answer is 404, 405 or the
 *          like
 */
JANUS_NODISCARD JANUS_API janus_status janus_http_answer_file(janus_http *http, janus_io dir,
                                                              janus_http_text path);

/*
 * A handler that follows a table of routes, which is its argument. options.routes does the same for
 * a whole server:
 *
 *     static const janus_http_route routes[] = {
 *         {JANUS_HTTP_METHOD_GET, "/", greet, NULL},
 *         {JANUS_HTTP_METHOD_GET, "/user/{name}", show_user, NULL},
 *         {JANUS_HTTP_METHOD_GET, "/files/{*}", show_file, &folder},
 *         {0, NULL, NULL, NULL},
 *     };
 *     return janus_http_serve(listener, NULL, &users, JANUS_HTTP_OPTIONS(.routes = routes));
 *
 * A part in braces captures one segment that is not empty. "{*}" at the end captures the rest, with
 * its slashes, which may be empty. The rest of a pattern must equal the path byte by byte, before
 * escapes are decoded. The first row that fits decides. If rows fit only with other methods, the
 * answer is 405 with Allow, or for OPTIONS 204 with Allow. If no row fits, it is 404.
 *
 * Context: as a handler.
 * Yields:  as the handler that it calls.
 * Owns:    the table stays the caller's.
 * Cost:    a comparison for each row.
 * Errors:  what the handler returns
 */
JANUS_API int64_t janus_http_routes(janus_http *http, const janus_http_request *request);

JANUS_END_DECLS
#endif
