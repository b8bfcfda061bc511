/* SPDX-License-Identifier: MIT */
/*
 * Ours, with libjanusrt-http (protocol.h). Each hello passes through the whole server: the parser,
 * the deadlines, a child with a budget, a Date. There is no log.
 * Everything but the numbers of connections and requests is as by default.
 */
#include "protocol.h"

#include <janusrt/http.h>
#include <janusrt/janus.h>

static struct net_order order;

static inline void need(janus_status status)
{
    if (status == JANUS_OK) return;
    fprintf(stderr, "janusrt-http: %s\n", janus_status_text(status));
    exit(1);
}

static int64_t hello(janus_http *http, const janus_http_request *request)
{
    (void)request;
    return janus_http_answer(http, 200, "text/plain", NET_BODY, sizeof NET_BODY - 1);
}

/* Computes, with a check for each stride, as every loop of a task has one. */
static int64_t burn(janus_http *http, const janus_http_request *request)
{
    uint64_t state = request->path.bytes;
    for (int i = 0; i < NET_BURN_ROUNDS / NET_BURN_STRIDE; i++) {
        state = net_burn(state);
        if (janus_check() != JANUS_OK) return JANUS_CANCELLED;
    }
    return state == 0 ? -1 : hello(http, request);
}

static int64_t stream(janus_http *http)
{
    static const char part[65536];
    janus_status      status = janus_http_begin(http, 200, NULL, NET_STREAM_BYTES);
    for (uint64_t sent = 0; status == JANUS_OK && sent < NET_STREAM_BYTES; sent += sizeof part) {
        status = janus_http_write(http, part, sizeof part);
    }
    return status;
}

static bool is_path(const janus_http_request *request, const char *path, size_t bytes)
{
    return request->path.bytes == bytes && memcmp(request->path.at, path, bytes) == 0;
}

static int64_t route(janus_http *http, const janus_http_request *request)
{
    if (is_path(request, "/hello", 6)) return hello(http, request);
    if (is_path(request, "/burn", 5)) return burn(http, request);
    if (is_path(request, "/stream", 7)) return stream(http);
    return janus_http_answer_text(http, 404, "no such path\n");
}

static int64_t serve(void *argument)
{
    janus_address at;
    janus_io      listener;
    need(janus_address_parse("127.0.0.1:0", &at));
    need(janus_listen(&at, JANUS_LISTEN_OPTIONS(.backlog = NET_BACKLOG), &listener));
    need(janus_io_local(listener, &at));
    net_announce(at.port, "janusrt", JANUS_VERSION_STRING);
    need(janus_http_serve(listener, route, argument,
                          JANUS_HTTP_OPTIONS(.max_connections = 200000, .max_requests = UINT32_MAX,
                                             .server = "bench")));
    return 0;
}

int main(int argc, char **argv)
{
    order = net_order_read(argc, argv);
    need(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = order.workers,
                                           .max_tasks = JANUS_UNLIMITED, .stack_bytes = 16384),
                   serve, NULL, NULL));
    return 0;
}
