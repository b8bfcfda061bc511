/* SPDX-License-Identifier: MIT */
/* The path `hello` of cost_paths.c: the server of HTTP for some connections, and their client. */
#ifndef JANUSRT_COST_HELLO_H
#define JANUSRT_COST_HELLO_H

#include <janusrt/http.h>

static const char hello_request[] =
    "GET /hello HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: janusrt-bench\r\nAccept: *\r\n\r\n";

static int64_t hello(janus_http *http, const janus_http_request *head)
{
    (void)head;
    return janus_http_answer(http, 200, "text/plain", "Hello, World!", 13);
}

static int64_t serve_hello(void *argument)
{
    return janus_http_serve_one(*(janus_io *)argument, hello, NULL,
                                JANUS_HTTP_OPTIONS(.max_requests = UINT32_MAX));
}

/* As in echo.h. All answers have the same length. */
static void ask_hello(const int ends[CONNECTIONS], janus_io first)
{
    char   bytes[512];
    size_t got = 0;
    for (int i = 0; i < CONNECTIONS; i++) {
        if (send(ends[i], hello_request, sizeof hello_request - 1, 0) < 0) fail("send");
    }
    need(janus_io_read(first, bytes, sizeof bytes, &got));
    for (int i = 1; i < CONNECTIONS; i++) {
        if (recv(ends[i], bytes, got, MSG_WAITALL) != (ssize_t)got) fail("recv");
    }
    if (memcmp(bytes + got - 13, "Hello, World!", 13) != 0) fail("answer");
}

static uint64_t walk_hello(uint64_t size)
{
    int          ends[CONNECTIONS];
    janus_io     served[CONNECTIONS], first = {{0, 0}};
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < CONNECTIONS; i++) {
            int pair[2];
            if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) fail("socketpair");
            ends[i] = pair[0];
            need(janus_io_adopt(pair[1], NULL, &served[i]));
            need(janus_spawn(n, serve_hello, &served[i]));
        }
        need(janus_io_adopt(ends[0], NULL, &first));
        for (uint64_t done = 0; done < size; done += CONNECTIONS) ask_hello(ends, first);
        need(janus_io_close(first));
        for (int i = 1; i < CONNECTIONS; i++) (void)close(ends[i]);
    }
    need(ended);
    return size;
}

#endif
