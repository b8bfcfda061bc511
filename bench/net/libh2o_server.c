/* SPDX-License-Identifier: MIT */
/*
 * libh2o (protocol.h): a handler in C, and for each thread a loop, a context and a listener of its
 * own (SO_REUSEPORT). libh2o writes Date and Server, and orders its fields.
 */
#include "protocol.h"

#define H2O_USE_LIBUV 0
#include <h2o.h>
#include <h2o/http1.h>
#include <h2o/version.h>
#include <pthread.h>

enum { REQUEST_PATIENCE_MS = 3600 * 1000 };

struct worker {
    h2o_context_t    context;
    h2o_accept_ctx_t accepting;
    h2o_socket_t    *listener;
};

static h2o_globalconf_t config;
static uint16_t         port;

static int hello(h2o_handler_t *handler, h2o_req_t *request)
{
    static h2o_generator_t nothing_more = {NULL, NULL};
    h2o_iovec_t            body = h2o_iovec_init(H2O_STRLIT(NET_BODY));
    (void)handler;
    request->res.status = 200;
    request->res.reason = "OK";
    request->res.content_length = body.len;
    h2o_add_header(&request->pool, &request->res.headers, H2O_TOKEN_CONTENT_TYPE, NULL,
                   H2O_STRLIT("text/plain"));
    h2o_start_response(request, &nothing_more);
    h2o_send(request, &body, 1, H2O_SEND_STATE_FINAL);
    return 0;
}

static void on_accept(h2o_socket_t *listener, const char *wrong)
{
    struct worker *worker = listener->data;
    h2o_socket_t  *socket;
    if (wrong != NULL) return;
    while ((socket = h2o_evloop_socket_accept(listener)) != NULL) {
        h2o_accept(&worker->accepting, socket);
    }
}

static void prepare(struct worker *worker)
{
    int fd = net_listener(&port);
    h2o_context_init(&worker->context, h2o_evloop_create(), &config);
    worker->accepting.ctx = &worker->context;
    worker->accepting.hosts = config.hosts;
    worker->listener =
        h2o_evloop_socket_create(worker->context.loop, fd, H2O_SOCKET_FLAG_DONT_READ);
    worker->listener->data = worker;
    h2o_socket_read_start(worker->listener, on_accept);
}

_Noreturn static void *run(void *argument)
{
    struct worker *worker = argument;
    for (;;) net_need(h2o_evloop_run(worker->context.loop, INT32_MAX) == 0, "h2o_evloop_run");
}

int main(int argc, char **argv)
{
    struct net_order order = net_order_read(argc, argv);
    struct worker   *workers = calloc(order.workers, sizeof *workers);
    net_need(workers != NULL, "calloc");
    h2o_config_init(&config);
    config.server_name = h2o_iovec_init(H2O_STRLIT("bench"));
    config.http1.req_timeout = REQUEST_PATIENCE_MS; /* also of an idle connection */
    h2o_hostconf_t *host =
        h2o_config_register_host(&config, h2o_iovec_init(H2O_STRLIT("default")), 65535);
    h2o_pathconf_t *path = h2o_config_register_path(host, "/", 0);
    h2o_create_handler(path, sizeof(h2o_handler_t))->on_req = hello;
    for (unsigned i = 0; i < order.workers; i++) prepare(&workers[i]);
    for (unsigned i = 1; i < order.workers; i++) {
        pthread_t thread;
        net_need(pthread_create(&thread, NULL, run, &workers[i]) == 0, "pthread_create");
    }
    net_announce(port, "libh2o", H2O_VERSION);
    run(&workers[0]);
}
