/* SPDX-License-Identifier: MIT */
/*
 * What the servers of the works `echo`, `accept`, `idle` and `http` and their client share.
 *
 *     SERVER echo|hello|http|https WORKERS
 *
 * A server listens on a port that the system chooses and prints one line: the port, its name with
 * `_` for spaces, its version. Then it serves until somebody kills it.
 *
 * echo:  a client sends NET_ECHO_BYTES at a time, and the server sends back what it reads.
 * hello: a client sends a head that ends with an empty line. The server answers with NET_ANSWER.
 *
 * http:  as hello, and the answer is NET_HEAD, a field Date that names this second, an empty line
 *        and NET_BODY, in one segment. So raw epoll answers the same bytes as a server of HTTP.
 *        nginx says "Server: nginx" and adds "Connection: keep-alive". h2o orders its fields
 *        differently and its file has the fields Last-Modified, ETag and Accept-Ranges as well.
 *        Go and hyper order their fields differently.
 *
 *        Where a server has handlers, it knows two more paths. /burn runs net_burn and answers as
 *        /hello does. /stream answers with NET_STREAM_BYTES.
 *
 * https: as http, over TLS 1.3. NET_TLS names a folder with cert.pem and key.pem.
 *
 * A client has one request under way on a connection. A server closes when the client has closed.
 */
#ifndef JANUSRT_BENCH_NET_PROTOCOL_H
#define JANUSRT_BENCH_NET_PROTOCOL_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum {
    NET_ECHO_BYTES = 64,
    NET_BUFFER_BYTES = 2048, /* what a server keeps for a connection */
    NET_BACKLOG = 4096,
};

#define NET_REQUEST                                                                                \
    "GET /hello HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: janusrt-bench\r\nAccept: */*\r\n\r\n"
#define NET_BODY "Hello, World!"
#define NET_ANSWER                                                                                 \
    "HTTP/1.1 200 OK\r\nServer: bench\r\nContent-Type: text/plain\r\nContent-Length: "             \
    "13\r\n\r\n" NET_BODY

#define NET_HEAD                                                                                   \
    "HTTP/1.1 200 OK\r\nServer: bench\r\nContent-Type: text/plain\r\n"                             \
    "Content-Length: 13\r\n"
enum { NET_DATED_BYTES = sizeof NET_HEAD - 1 + 39 + sizeof NET_BODY - 1 };

#define NET_STREAM_BYTES (UINT64_C(1) << 30)
enum { NET_BURN_ROUNDS = 3000000, NET_BURN_STRIDE = 1000 };

/* Exits with a message, unless all is right. */
static inline void net_need(bool right, const char *what)
{
    if (right) return;
    perror(what);
    exit(1);
}

/* What a server was asked for. */
struct net_order {
    bool     hello; /* or echo; also true for http */
    bool     http;  /* also true for https */
    bool     https;
    unsigned workers;
};

static inline struct net_order net_order_read(int argc, char **argv)
{
    struct net_order order = {.workers = argc == 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0};
    bool             echo = argc == 3 && strcmp(argv[1], "echo") == 0;
    order.https = argc == 3 && strcmp(argv[1], "https") == 0;
    order.http = order.https || (argc == 3 && strcmp(argv[1], "http") == 0);
    order.hello = order.http || (argc == 3 && strcmp(argv[1], "hello") == 0);
    if ((!echo && !order.hello) || order.workers == 0) {
        fprintf(stderr, "usage: %s echo|hello|http|https WORKERS\n", argv[0]);
        exit(2);
    }
    return order;
}

static inline void net_announce(uint16_t port, const char *name, const char *version)
{
    printf("%u %s %s\n", port, name, version);
    fflush(stdout);
}

/* A listener on 127.0.0.1. If *port is 0, the system chooses it. Several may share the port. */
static inline int net_listener(uint16_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(*port)};
    socklen_t          bytes = sizeof at;
    int                yes = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    net_need(fd >= 0, "socket");
    net_need(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes) == 0, "SO_REUSEPORT");
    net_need(bind(fd, (struct sockaddr *)&at, sizeof at) == 0, "bind");
    net_need(listen(fd, NET_BACKLOG) == 0, "listen");
    net_need(getsockname(fd, (struct sockaddr *)&at, &bytes) == 0, "getsockname");
    *port = ntohs(at.sin_port);
    return fd;
}

/* Writes the answer of the work `http`, with the date of this second. */
static inline void net_date(char answer[NET_DATED_BYTES + 1])
{
    time_t    now = time(NULL);
    struct tm parts;
    gmtime_r(&now, &parts);
    size_t have = strlen(strcpy(answer, NET_HEAD));
    have += strftime(answer + have, 40, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n\r\n", &parts);
    memcpy(answer + have, NET_BODY, sizeof NET_BODY);
}

/* A part of a computation that no compiler leaves out: NET_BURN_STRIDE rounds. */
static inline uint64_t net_burn(uint64_t state)
{
    for (int i = 0; i < NET_BURN_STRIDE; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    return state;
}

/* The end of the first head in these bytes, or 0. */
static inline size_t net_head_end(const char *bytes, size_t count)
{
    const char *end = memmem(bytes, count, "\r\n\r\n", 4);
    return end == NULL ? 0 : (size_t)(end - bytes) + 4;
}

#endif
