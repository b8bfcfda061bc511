/* SPDX-License-Identifier: MIT */
/*
 * What happens once a second, while any connection is warm. The waits of idle clients end, and so
 * do those of clients that take no bytes. The date is brought up to date.
 *
 * While all connections are cold, the tick comes when the first of them is due. A connection that
 * becomes warm, or is due earlier, asks for a sooner tick.
 *
 * The date is read without a lock. A reader copies the words and tries again if the version has
 * changed meanwhile. Only the holder of the server's lock writes.
 */
#include "http/server.h"

#include "http/date.h"

#include <janusrt/memory.h>
#include <janusrt/scheduler.h>
#include <time.h>

_Static_assert(JRT_HTTP_DATE_LINE_BYTES == 6 + JRT_HTTP_DATE_BYTES + 2, "a line");
_Static_assert(JRT_HTTP_DATE_WORDS * 8 >= JRT_HTTP_DATE_LINE_BYTES, "the line in words");

void jrt_http_date_set(struct jrt_http_server *server)
{
    uint64_t words[JRT_HTTP_DATE_WORDS] = {0};
    char    *line = (char *)words;
    memcpy(line, "Date: ", 6);
    jrt_http_date_write(line + 6, (int64_t)time(NULL));
    memcpy(line + 6 + JRT_HTTP_DATE_BYTES, "\r\n", 2);
    /* seq_cst, all: once a second. */
    atomic_fetch_add(&server->date_version, 1);
    for (int i = 0; i < JRT_HTTP_DATE_WORDS; i++) atomic_store(&server->date[i], words[i]);
    atomic_fetch_add(&server->date_version, 1);
}

void jrt_http_date_get(const struct jrt_http_server *server, char out[JRT_HTTP_DATE_ROOM])
{
    unsigned version;
    do {
        /* acquire: the words are not read before. */
        version = atomic_load_explicit(&server->date_version, memory_order_acquire);
#pragma GCC unroll 8
        for (size_t i = 0; i < JRT_HTTP_DATE_WORDS; i++) {
            /* acquire: the second look comes after. */
            uint64_t word = atomic_load_explicit(&server->date[i], memory_order_acquire);
            memcpy(out + 8 * i, &word, 8);
        }
        /* relaxed: after the acquires above. */
    } while (version % 2 != 0 ||
             version != atomic_load_explicit(&server->date_version, memory_order_relaxed));
}

/* A connection that had no request since the last tick goes cold. True: this one does. */
static bool look_at_reading(struct jrt_http_connection *c)
{
    struct janus_http *http = c->http;
    /* relaxed, both: a tick earlier or later does no harm. */
    uint32_t requests = atomic_load_explicit(&http->requests, memory_order_relaxed);
    bool     idle = atomic_load_explicit(&http->idle, memory_order_relaxed);
    bool     cold = idle && requests == http->tick_requests;
    if (cold) JANUS_IGNORE(janus_io_set_deadline(c->io, JANUS_IO_READ, 1));
    http->tick_requests = requests;
    return cold;
}

/* A write during which the client took no byte for write_ns ends. */
static void look_at_writing(struct jrt_http_connection *c, uint64_t now)
{
    struct janus_http *http = c->http;
    janus_io_info      info = JANUS_IO_INFO();
    /* relaxed: as above. */
    uint32_t writing = atomic_load_explicit(&http->writing, memory_order_relaxed);
    if (writing % 2 == 0 || janus_io_inspect(c->io, &info) != JANUS_OK) return;
    if (writing != http->tick_writing || info.written_bytes != http->tick_written) {
        http->tick_writing = writing;
        http->tick_written = info.written_bytes;
        http->tick_since = now;
    } else if (now - http->tick_since >= c->server->options.write_ns) {
        atomic_store(&http->stalled, writing); /* seq_cst: before the deadline */
        JANUS_IGNORE(janus_io_set_deadline(c->io, JANUS_IO_WRITE, 1));
    }
}

/* Ends the waits of cold connections that are due. Returns when the next one is. */
static uint64_t look_at_cold(const struct jrt_http_queue *queue, uint64_t now)
{
    struct jrt_http_connection *c = queue->first;
    for (; c != NULL && c->due <= now; c = c->next) {
        JANUS_IGNORE(janus_io_set_deadline(c->io, JANUS_IO_READ, 1));
    }
    return c != NULL ? c->due : JANUS_IO_NEVER;
}

/* How long the first of a queue has waited for its client. */
static uint64_t waited(const struct jrt_http_server *server, enum jrt_http_queue_name name,
                       uint64_t now)
{
    const janus_http_options         *options = &server->options;
    const struct jrt_http_connection *first = server->queues[name].first;
    if (first == NULL) return 0;
    if (name == JRT_HTTP_SHAKING) return now - first->since;
    return now - (first->due - (name == JRT_HTTP_FRESH ? options->head_ns : options->idle_ns));
}

/*
 * Others wait for a place. A connection that has had a request is cold only after a second. A new
 * connection may need as long for its first request, and longer for its handshake.
 */
void jrt_http_make_way(struct jrt_http_server *server)
{
    static const uint64_t least[] = {[JRT_HTTP_FRESH] = JRT_HTTP_SILENT_NS,
                                     [JRT_HTTP_IDLE] = 1,
                                     [JRT_HTTP_WARM] = JANUS_IO_NEVER,
                                     [JRT_HTTP_SHAKING] = JRT_HTTP_SHAKE_NS};
    uint64_t              most = 0;
    int                   chosen = JRT_HTTP_WARM;
    jrt_http_lock(server);
    uint64_t now = janus_now_ns();
    for (int i = 0; i < JRT_HTTP_QUEUES; i++) {
        if (i == JRT_HTTP_WARM) continue;
        uint64_t time = waited(server, (enum jrt_http_queue_name)i, now);
        if (time < least[i] || time <= most) continue;
        most = time;
        chosen = i;
    }
    if (chosen != JRT_HTTP_WARM) {
        janus_io io = server->queues[chosen].first->io;
        JANUS_IGNORE(janus_io_set_deadline(io, JANUS_IO_BOTH, 1));
    }
    jrt_http_unlock(server);
}

/* Gives stacks of children back to the system. A child has about twice the stack of this task. */
static void give_stacks(const struct jrt_http_server *server, uint32_t kept)
{
    janus_memory_info own = JANUS_MEMORY_INFO();
    size_t            wanted = server->options.stack_bytes;
    if (janus_memory_inspect(&own) != JANUS_OK) return;
    size_t bytes = wanted > own.stack_bytes ? wanted : 2 * own.stack_bytes;
    (void)janus_scheduler_trim(janus_scheduler_current(), bytes * kept);
}

/*
 * Gives back what a crowd has left, if few connections have become warm since the last look: blocks
 * and stacks. What stays suffices for as many again. False: there is more for a later look.
 */
static bool tidy_up(struct jrt_http_server *server, uint32_t warmed)
{
    uint32_t over = server->warm_peak - atomic_load(&server->warm_count);
    /* A single connection's block is memory of its task. */
    while (server->single == NULL && server->block_count > warmed) {
        struct janus_http *block = server->blocks, *next = block->next;
        if (!jrt_http_block_empty(server, block)) break;
        server->blocks = next;
        server->block_count--;
    }
    if (over > JRT_HTTP_STACKS_KEPT && warmed <= over / 4) {
        server->warm_peak -= over;
        give_stacks(server, warmed + JRT_HTTP_STACKS_KEPT);
        over = 0;
    }
    return (server->block_count == 0 || server->single != NULL) && over <= JRT_HTTP_STACKS_KEPT;
}

static void look_at_warm(struct jrt_http_server *server, uint64_t now)
{
    struct jrt_http_connection *first = server->queues[JRT_HTTP_WARM].first;
    uint32_t                    warmed = server->warmed;
    bool                        cooling = false;
    for (struct jrt_http_connection *c = first; c != NULL; c = c->next) {
        cooling |= look_at_reading(c);
        look_at_writing(c, now);
    }
    jrt_http_date_set(server);
    server->warmed = 0;
    bool over = !cooling && tidy_up(server, warmed) && first == NULL;
    server->warm_at = over ? JANUS_IO_NEVER : now + JRT_HTTP_TICK_NS;
}

/* Looks at the connections, and plans the next tick. The caller holds the lock. */
static uint64_t look(struct jrt_http_server *server)
{
    uint64_t now = janus_now_ns();
    uint64_t fresh = look_at_cold(&server->queues[JRT_HTTP_FRESH], now);
    uint64_t idle = look_at_cold(&server->queues[JRT_HTTP_IDLE], now);
    if (now >= server->warm_at) look_at_warm(server, now);
    server->tick_at = server->warm_at;
    if (fresh < server->tick_at) server->tick_at = fresh;
    if (idle < server->tick_at) server->tick_at = idle;
    return server->tick_at;
}

void jrt_http_tick_by(struct jrt_http_server *server, uint64_t when)
{
    if (when >= server->tick_at) return;
    server->tick_at = when;
    janus_event_set(&server->sooner);
}

int64_t jrt_http_tick(void *argument)
{
    struct jrt_http_server *server = argument;
    janus_status            status = JANUS_OK;
    do {
        jrt_http_lock(server);
        janus_event_reset(&server->sooner);
        uint64_t next = look(server);
        jrt_http_unlock(server);
        status = janus_event_wait_until(&server->sooner, next);
    } while (status == JANUS_OK || status == JANUS_DEADLINE || jrt_http_try_again(status));
    return status;
}
