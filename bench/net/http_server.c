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

static int64_t serve(void *argument)
{
    janus_address at;
    janus_io      listener;
    need(janus_address_parse("127.0.0.1:0", &at));
    need(janus_listen(&at, JANUS_LISTEN_OPTIONS(.backlog = NET_BACKLOG), &listener));
    need(janus_io_local(listener, &at));
    net_announce(at.port, "janusrt-http", JANUS_VERSION_STRING);
    need(janus_http_serve(listener, hello, argument,
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
