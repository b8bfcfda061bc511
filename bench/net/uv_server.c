/* SPDX-License-Identifier: MIT */
/*
 * libuv (protocol.h): a loop for each thread, and a listener of its own (SO_REUSEPORT), because a
 * loop belongs to one thread. uv_try_write sends answers, and uv_write if the socket is full.
 */
#include "protocol.h"

#include <pthread.h>
#include <uv.h>

struct connection {
    uv_tcp_t stream;
    size_t   have;
    char     bytes[NET_BUFFER_BYTES];
};

struct late {
    uv_write_t request;
    char       bytes[NET_BUFFER_BYTES];
};

static struct net_order order;

static void closed(uv_handle_t *handle) { free(handle->data); }

static void drop(struct connection *c)
{
    if (!uv_is_closing((uv_handle_t *)&c->stream)) uv_close((uv_handle_t *)&c->stream, closed);
}

static void allocate(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    struct connection *c = handle->data;
    (void)suggested;
    *out = uv_buf_init(c->bytes + c->have, (unsigned)(sizeof c->bytes - c->have));
}

static void written(uv_write_t *request, int status)
{
    struct connection *c = request->handle->data;
    free(request->data);
    if (status < 0) drop(c);
}

static void answer(struct connection *c, const char *bytes, size_t count)
{
    uv_buf_t buffer = uv_buf_init((char *)(uintptr_t)bytes, (unsigned)count);
    int      done = uv_try_write((uv_stream_t *)&c->stream, &buffer, 1);
    if (done == UV_EAGAIN) done = 0;
    if (done < 0) {
        drop(c);
    } else if ((size_t)done < count) {
        struct late *late = malloc(sizeof *late);
        net_need(late != NULL, "malloc");
        late->request.data = late;
        memcpy(late->bytes, bytes + done, count - (size_t)done);
        buffer = uv_buf_init(late->bytes, (unsigned)(count - (size_t)done));
        if (uv_write(&late->request, (uv_stream_t *)&c->stream, &buffer, 1, written) < 0) drop(c);
    }
}

static void arrived(uv_stream_t *stream, ssize_t got, const uv_buf_t *buffer)
{
    struct connection *c = stream->data;
    (void)buffer;
    if (got == 0) return;
    if (got < 0) {
        drop(c);
        return;
    }
    c->have += (size_t)got;
    if (!order.hello) {
        answer(c, c->bytes, c->have);
    } else if (net_head_end(c->bytes, c->have) != 0) {
        answer(c, NET_ANSWER, sizeof NET_ANSWER - 1);
    } else {
        return;
    }
    c->have = 0;
}

static void knocked(uv_stream_t *listener, int status)
{
    struct connection *c = malloc(sizeof *c);
    net_need(c != NULL && status == 0, "a connection");
    c->have = 0;
    c->stream.data = c;
    net_need(uv_tcp_init(listener->loop, &c->stream) == 0, "uv_tcp_init");
    c->stream.data = c;
    if (uv_accept(listener, (uv_stream_t *)&c->stream) != 0) {
        drop(c);
        return;
    }
    uv_tcp_nodelay(&c->stream, 1);
    if (uv_read_start((uv_stream_t *)&c->stream, allocate, arrived) != 0) drop(c);
}

static void *run(void *argument)
{
    uv_loop_t loop;
    uv_tcp_t  listener;
    net_need(uv_loop_init(&loop) == 0, "uv_loop_init");
    net_need(uv_tcp_init(&loop, &listener) == 0, "uv_tcp_init");
    net_need(uv_tcp_open(&listener, *(int *)argument) == 0, "uv_tcp_open");
    net_need(uv_listen((uv_stream_t *)&listener, NET_BACKLOG, knocked) == 0, "uv_listen");
    uv_run(&loop, UV_RUN_DEFAULT);
    return NULL;
}

int main(int argc, char **argv)
{
    uint16_t port = 0;
    order = net_order_read(argc, argv);
    int *listeners = calloc(order.workers, sizeof *listeners);
    net_need(listeners != NULL, "calloc");
    for (unsigned i = 0; i < order.workers; i++) listeners[i] = net_listener(&port);
    for (unsigned i = 1; i < order.workers; i++) {
        pthread_t thread;
        net_need(pthread_create(&thread, NULL, run, &listeners[i]) == 0, "pthread_create");
    }
    net_announce(port, "libuv", uv_version_string());
    run(&listeners[0]);
    return 0;
}
