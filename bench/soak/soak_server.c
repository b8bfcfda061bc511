/* SPDX-License-Identifier: MIT */
/*
 * The server of `make soak` (soak.c): all that a handler can do, good and bad. It starts as the
 * servers of bench/net/protocol.h do. SOAK_FOLDER names the folder of its files.
 *
 *     /hello        a short answer             /file/NAME  a file of the folder
 *     /upload       counts the body            /echo       a WebSocket
 *     /events       ten events                 /stream     chunks, 64 KiB together
 *     /leak         leaves memory and a handle behind
 *     /fail         fails                      /loop       computes until its budget is used up
 *     /tasks        how many lines a dump of all tasks has
 *     /tls          the port of the same server over TLS, or 0
 */
#include "../net/protocol.h"

#include <janusrt/file.h>
#include <janusrt/http.h>
#include <janusrt/janus.h>
#if SOAK_TLS
#include <janusrt/tls.h>
#endif
#include <janusrt/websocket.h>
#include <sys/mman.h>
#include <unistd.h>

enum { EVENTS = 10, PART = 4096, PARTS = 16, LEAK_BYTES = 5000, CONNECTIONS = 1000 };

static const char      *path;
static struct net_order order;
static janus_io         folder;
static unsigned         tls_port;
static janus_scheduler *scheduler; /* a handler may not ask for it */

static inline void need(janus_status status)
{
    if (status == JANUS_OK) return;
    fprintf(stderr, "soak: %s\n", janus_status_text(status));
    exit(1);
}

static int64_t hello(janus_http *http, const janus_http_request *request)
{
    (void)request;
    return janus_http_answer(http, 200, "text/plain", NET_BODY, sizeof NET_BODY - 1);
}

static int64_t upload(janus_http *http, const janus_http_request *request)
{
    char         bytes[PART], text[32];
    size_t       got = 0, all = 0;
    janus_status status;
    (void)request;
    while ((status = janus_http_read(http, bytes, sizeof bytes, &got)) == JANUS_OK) all += got;
    if (status != JANUS_CLOSED) return status;
    snprintf(text, sizeof text, "%zu", all);
    return janus_http_answer_text(http, 200, text);
}

static int64_t events(janus_http *http, const janus_http_request *request)
{
    janus_status status = JANUS_OK;
    (void)request;
    for (int i = 0; i < EVENTS && status == JANUS_OK; i++) {
        status = janus_http_event(http, "tick", NULL, "a line\nand another");
    }
    return status;
}

static int64_t stream(janus_http *http, const janus_http_request *request)
{
    static const char part[PART];
    janus_status      status = janus_http_begin(http, 200, NULL, JANUS_HTTP_UNKNOWN);
    (void)request;
    for (int i = 0; i < PARTS && status == JANUS_OK; i++) {
        status = janus_http_write(http, part, sizeof part);
    }
    return status;
}

static int64_t file(janus_http *http, const janus_http_request *request)
{
    return janus_http_answer_file(http, folder, request->captured[0]);
}

static int64_t echo(janus_http *http, const janus_http_request *request)
{
    janus_websocket        *socket;
    janus_websocket_message message;
    (void)request;
    if (janus_websocket_accept(http, NULL, &socket) != JANUS_OK) return 0;
    while (janus_websocket_read(socket, &message) == JANUS_OK) {
        janus_status status =
            janus_websocket_send(socket, message.kind, message.bytes, message.count);
        janus_free(message.bytes);
        if (status != JANUS_OK) break;
    }
    janus_websocket_destroy(socket);
    return 0;
}

static int64_t leak(janus_http *http, const janus_http_request *request)
{
    janus_io ends[2];
    char    *block = janus_alloc(LEAK_BYTES);
    if (block != NULL) block[0] = 1;
    if (janus_io_pair(NULL, ends) != JANUS_OK) return -100;
    return hello(http, request);
}

static int64_t fail(janus_http *http, const janus_http_request *request)
{
    (void)http;
    (void)request;
    return -100;
}

static int64_t loop(janus_http *http, const janus_http_request *request)
{
    (void)http;
    (void)request;
    while (janus_check() == JANUS_OK) {
    }
    return JANUS_CANCELLED;
}

/* Counts the lines of a dump. */
static int64_t tasks(janus_http *http, const janus_http_request *request)
{
    char    bytes[PART];
    int     fd = memfd_create("dump", MFD_CLOEXEC), lines = 0;
    ssize_t got;
    (void)request;
    if (fd < 0 || janus_scheduler_dump(scheduler, fd) != JANUS_OK) return -100;
    for (off_t at = 0; (got = pread(fd, bytes, sizeof bytes, at)) > 0; at += got) {
        for (ssize_t i = 0; i < got; i++) lines += bytes[i] == '\n';
    }
    close(fd);
    snprintf(bytes, sizeof bytes, "%d", lines);
    return janus_http_answer_text(http, 200, bytes);
}

static int64_t tell_tls(janus_http *http, const janus_http_request *request)
{
    char text[32];
    (void)request;
    snprintf(text, sizeof text, "%u", tls_port);
    return janus_http_answer_text(http, 200, text);
}

static const janus_http_route routes[] = {
    {JANUS_HTTP_METHOD_GET, "/hello", hello, NULL},
    {JANUS_HTTP_METHOD_POST, "/upload", upload, NULL},
    {JANUS_HTTP_METHOD_GET, "/events", events, NULL},
    {JANUS_HTTP_METHOD_GET, "/stream", stream, NULL},
    {JANUS_HTTP_METHOD_GET, "/file/{*}", file, NULL},
    {JANUS_HTTP_METHOD_GET, "/echo", echo, NULL},
    {JANUS_HTTP_METHOD_GET, "/leak", leak, NULL},
    {JANUS_HTTP_METHOD_GET, "/fail", fail, NULL},
    {JANUS_HTTP_METHOD_GET, "/loop", loop, NULL},
    {JANUS_HTTP_METHOD_GET, "/tasks", tasks, NULL},
    {JANUS_HTTP_METHOD_GET, "/tls", tell_tls, NULL},
    {0, NULL, NULL, NULL},
};

static janus_io listen_here(janus_address *at)
{
    janus_io listener;
    need(janus_address_parse("127.0.0.1:0", at));
    need(janus_listen(at, JANUS_LISTEN_OPTIONS(.backlog = NET_BACKLOG), &listener));
    need(janus_io_local(listener, at));
    return listener;
}

#if SOAK_TLS
static janus_io tls_listener;

static int64_t serve_tls(void *argument)
{
    const janus_tls_certificate own = {.chain_path = SOAK_TLS_FOLDER "/cert.pem",
                                       .key_path = SOAK_TLS_FOLDER "/key.pem"};
    janus_tls_server           *tls;
    need(janus_tls_server_create(&own, 1, NULL, &tls, NULL));
    need(janus_http_serve(tls_listener, NULL, argument,
                          JANUS_HTTP_OPTIONS(.routes = routes, .max_connections = CONNECTIONS,
                                             .wire = janus_tls_server_wire(tls),
                                             .stop_on_signals = true)));
    janus_tls_server_destroy(tls);
    return 0;
}

static void start_tls(janus_nursery *nursery)
{
    janus_address at;
    tls_listener = listen_here(&at);
    tls_port = at.port;
    need(janus_spawn(nursery, serve_tls, NULL));
}
#else
static void start_tls(janus_nursery *nursery) { (void)nursery; }
#endif

static int64_t serve(void *argument)
{
    const janus_budget budget = JANUS_BUDGET(.ops = 200000, .memory = 1 << 20, .spawn_count = 10,
                                             .channel_ops = 10000, .syscalls = 20000);
    janus_address      at;
    janus_status       status;
    scheduler = janus_scheduler_current();
    need(janus_dir_open(path, JANUS_RIGHT_FILE_READ, NULL, &folder));
    JANUS_NURSERY(n, status)
    {
        start_tls(n);
        janus_io listener = listen_here(&at);
        net_announce(at.port, "janusrt", JANUS_VERSION_STRING);
        need(janus_http_serve(listener, NULL, argument,
                              JANUS_HTTP_OPTIONS(.routes = routes, .max_connections = CONNECTIONS,
                                                 .request_budget = &budget,
                                                 .stop_on_signals = true)));
    }
    return status;
}

int main(int argc, char **argv)
{
    order = net_order_read(argc, argv);
    path = getenv("SOAK_FOLDER");
    need(path == NULL ? JANUS_INVALID : JANUS_OK);
    need(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = order.workers,
                                           .max_tasks = 2 * JANUS_HTTP_TASKS(CONNECTIONS)),
                   serve, NULL, NULL));
    return 0;
}
