/* SPDX-License-Identifier: MIT */
/* The path `echo` of cost_paths.c: a server for some connections, and their client. */
#ifndef JANUSRT_COST_ECHO_H
#define JANUSRT_COST_ECHO_H

#include <janusrt/net.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/* Connections, and bytes of a request. */
enum { CONNECTIONS = 16, REQUEST_BYTES = 64 };

static int64_t echo(void *argument)
{
    janus_io io = *(janus_io *)argument;
    char     bytes[2 * REQUEST_BYTES];
    size_t   got = 0;
    while (janus_io_read(io, bytes, sizeof bytes, &got) == JANUS_OK) {
        need(janus_io_write(io, bytes, got, NULL));
    }
    need(janus_io_close(io));
    return 0;
}

/* The client uses the system's calls, so that a request counts what its server does. It waits for
 * the first answer as a task: then the worker looks at its set, and the servers answer in turn. */
static void request(const int ends[CONNECTIONS], janus_io first)
{
    char   bytes[REQUEST_BYTES] = "a request";
    size_t got = 0;
    for (int i = 0; i < CONNECTIONS; i++) {
        if (send(ends[i], bytes, sizeof bytes, 0) != sizeof bytes) fail("send");
    }
    need(janus_io_read_full(first, bytes, sizeof bytes, &got));
    for (int i = 1; i < CONNECTIONS; i++) {
        if (recv(ends[i], bytes, sizeof bytes, 0) != sizeof bytes) fail("recv");
    }
}

/* Two ends of a connection: the client's, the server's. */
static void connect_pair(int listener, int out[2])
{
    struct sockaddr_in at;
    socklen_t          bytes = sizeof at;
    out[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (getsockname(listener, (struct sockaddr *)&at, &bytes) != 0) fail("getsockname");
    if (connect(out[0], (const struct sockaddr *)&at, bytes) != 0) fail("connect");
    out[1] = accept(listener, NULL, NULL);
    if (out[1] < 0) fail("accept");
}

static uint64_t walk_echo(uint64_t size)
{
    int                ends[CONNECTIONS];
    janus_io           served[CONNECTIONS], first = {{0, 0}};
    janus_status       ended;
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int                listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (const struct sockaddr *)&any, sizeof any) != 0) fail("bind");
    if (listen(listener, CONNECTIONS) != 0) fail("listen");
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < CONNECTIONS; i++) {
            int pair[2];
            connect_pair(listener, pair);
            ends[i] = pair[0];
            need(janus_io_adopt(pair[1], NULL, &served[i]));
            need(janus_spawn(n, echo, &served[i]));
        }
        need(janus_io_adopt(ends[0], NULL, &first));
        for (uint64_t done = 0; done < size; done += CONNECTIONS) request(ends, first);
        need(janus_io_close(first));
        for (int i = 1; i < CONNECTIONS; i++) (void)close(ends[i]);
    }
    need(ended);
    (void)close(listener);
    return size;
}

#endif
