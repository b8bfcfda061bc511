/* SPDX-License-Identifier: MIT */
/*
 * Ours (protocol.h): a task for each connection, with its buffer on its stack, which has 16 KiB.
 * The profile is :service, and budgets and limits are its defaults, but for the number of tasks.
 */
#include "protocol.h"

#include <janusrt/janus.h>
#include <janusrt/net.h>

static struct net_order order;

static inline void need(janus_status status)
{
    if (status == JANUS_OK) return;
    fprintf(stderr, "janusrt: %s\n", janus_status_text(status));
    exit(1);
}

static int64_t echo(janus_io io, void *argument)
{
    char   bytes[NET_BUFFER_BYTES];
    size_t got = 0;
    (void)argument;
    while (janus_io_read(io, bytes, sizeof bytes, &got) == JANUS_OK) {
        if (janus_io_write(io, bytes, got, NULL) != JANUS_OK) break;
    }
    return janus_io_close(io);
}

static int64_t hello(janus_io io, void *argument)
{
    char   bytes[NET_BUFFER_BYTES];
    size_t got = 0, have = 0;
    (void)argument;
    while (have < sizeof bytes &&
           janus_io_read(io, bytes + have, sizeof bytes - have, &got) == JANUS_OK) {
        have += got;
        if (net_head_end(bytes, have) == 0) continue;
        have = 0;
        if (janus_io_write(io, NET_ANSWER, sizeof NET_ANSWER - 1, NULL) != JANUS_OK) break;
    }
    return janus_io_close(io);
}

static int64_t serve(void *argument)
{
    janus_address at;
    janus_io      listener;
    need(janus_address_parse("127.0.0.1:0", &at));
    need(janus_listen(&at, JANUS_LISTEN_OPTIONS(.backlog = NET_BACKLOG), &listener));
    need(janus_io_local(listener, &at));
    net_announce(at.port, "janusrt", JANUS_VERSION_STRING);
    need(janus_serve(listener, order.hello ? hello : echo, NULL, NULL, NULL));
    return argument == NULL ? 0 : -1;
}

int main(int argc, char **argv)
{
    order = net_order_read(argc, argv);
    need(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = order.workers,
                                           .max_tasks = JANUS_UNLIMITED, .stack_bytes = 16384),
                   serve, NULL, NULL));
    return 0;
}
