/* SPDX-License-Identifier: MIT */
/*
 * What happens once a second, while any connection is warm. The waits of idle clients end, and so
 * do those of clients that take no bytes. The date is brought up to date.
 *
 * The date is read without a lock. A reader copies the words and tries again if the version has
 * changed meanwhile. Only the holder of the server's mutex writes.
 */
#include "http/server.h"

#include "http/date.h"

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

void jrt_http_date_get(struct jrt_http_server *server, char out[JRT_HTTP_DATE_LINE_BYTES])
{
    uint64_t words[JRT_HTTP_DATE_WORDS];
    unsigned version;
    do {
        /* acquire: the words are not read before. */
        version = atomic_load_explicit(&server->date_version, memory_order_acquire);
        for (int i = 0; i < JRT_HTTP_DATE_WORDS; i++) {
            /* acquire: the second look comes after. */
            words[i] = atomic_load_explicit(&server->date[i], memory_order_acquire);
        }
        /* relaxed: after the acquires above. */
    } while (version % 2 != 0 ||
             version != atomic_load_explicit(&server->date_version, memory_order_relaxed));
    memcpy(out, words, JRT_HTTP_DATE_LINE_BYTES);
}

/* A connection that had no request since the last tick goes cold. */
static void look_at_reading(struct jrt_http_connection *c)
{
    struct janus_http *http = c->http;
    /* relaxed, both: a tick earlier or later does no harm. */
    uint32_t requests = atomic_load_explicit(&http->requests, memory_order_relaxed);
    bool     idle = atomic_load_explicit(&http->idle, memory_order_relaxed);
    if (idle && requests == c->tick_requests) {
        JANUS_IGNORE(janus_io_set_deadline(c->io, JANUS_IO_READ, 1));
    }
    c->tick_requests = requests;
}

/* A write during which the client took no byte for write_ns ends. */
static void look_at_writing(struct jrt_http_connection *c, uint64_t now)
{
    struct janus_http *http = c->http;
    janus_io_info      info = JANUS_IO_INFO();
    /* relaxed: as above. */
    uint32_t writing = atomic_load_explicit(&http->writing, memory_order_relaxed);
    if (writing % 2 == 0 || janus_io_inspect(c->io, &info) != JANUS_OK) return;
    if (writing != c->tick_writing || info.written_bytes != c->tick_written) {
        c->tick_writing = writing;
        c->tick_written = info.written_bytes;
        c->tick_since = now;
    } else if (now - c->tick_since >= c->server->options.write_ns) {
        atomic_store(&http->stalled, writing); /* seq_cst: before the deadline */
        JANUS_IGNORE(janus_io_set_deadline(c->io, JANUS_IO_WRITE, 1));
    }
}

static void look_at_all(struct jrt_http_server *server)
{
    uint64_t now = janus_now_ns();
    for (struct jrt_http_connection *c = server->warm; c != NULL; c = c->warm_next) {
        look_at_reading(c);
        look_at_writing(c, now);
    }
    if (server->warm == NULL) janus_event_reset(&server->any_warm);
    jrt_http_date_set(server);
}

int64_t jrt_http_tick(void *argument)
{
    struct jrt_http_server *server = argument;
    janus_status            status;
    do {
        status = janus_event_wait(&server->any_warm);
        if (status == JANUS_OK) status = janus_sleep(JRT_HTTP_TICK_NS);
        if (status == JANUS_OK) status = janus_mutex_lock(&server->mutex);
        if (status != JANUS_OK) continue;
        look_at_all(server);
        jrt_http_unlock(server);
    } while (status == JANUS_OK || jrt_http_try_again(status));
    return status;
}
