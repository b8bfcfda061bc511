/* SPDX-License-Identifier: MIT */
/*
 * A site for a browser: files, a stream of events, uploads, a WebSocket. `make serve` runs it.
 *   site [ADDRESS [FOLDER]]
 */
#include <janusrt/janus.h>
#include <janusrt/websocket.h>
#include <stdio.h>

struct site {
    const char *at, *path;
    janus_io    folder;
};

static int64_t show_file(janus_http *http, const janus_http_request *request)
{
    const struct site *site = request->argument;
    return janus_http_answer_file(http, site->folder, request->path);
}

/* Counts, twice a second. A browser that comes back says which number it had last. */
static int64_t tick(janus_http *http, const janus_http_request *request)
{
    uint64_t        number = 0;
    janus_http_text last;
    (void)request;
    if (janus_http_field(http, "Last-Event-ID", &last) == JANUS_OK &&
        janus_http_text_number(last, &number) == JANUS_OK) {
        number++;
    }
    for (;; number++) {
        char text[24];
        (void)snprintf(text, sizeof text, "%llu", (unsigned long long)number);
        janus_status status = janus_http_event(http, NULL, text, text);
        if (status == JANUS_OK) status = janus_sleep(500 * JANUS_MS);
        if (status != JANUS_OK) return status;
    }
}

/* Reads a body of any length with one small buffer. */
static int64_t upload(janus_http *http, const janus_http_request *request)
{
    char         bytes[4096], text[64];
    size_t       got, all = 0;
    janus_status status = janus_http_limit_body(http, UINT64_C(1) << 30);
    (void)request;
    while (status == JANUS_OK) {
        status = janus_http_read(http, bytes, sizeof bytes, &got);
        all += got;
    }
    if (status != JANUS_CLOSED) return status;
    (void)snprintf(text, sizeof text, "%zu bytes came\n", all);
    return janus_http_answer_text(http, 200, text);
}

static int64_t echo(janus_http *http, const janus_http_request *request)
{
    janus_websocket        *socket;
    janus_websocket_message message;
    janus_status            status = janus_websocket_accept(http, NULL, &socket);
    (void)request;
    if (status != JANUS_OK) return 0; /* the client has its answer */
    while (janus_websocket_read(socket, &message) == JANUS_OK) {
        status = janus_websocket_send(socket, message.kind, message.bytes, message.count);
        janus_free(message.bytes);
        if (status != JANUS_OK) break;
    }
    janus_websocket_destroy(socket);
    return 0;
}

static const janus_http_route routes[] = {
    {JANUS_HTTP_METHOD_GET, "/ticks", tick, NULL},
    {JANUS_HTTP_METHOD_POST, "/upload", upload, NULL},
    {JANUS_HTTP_METHOD_GET, "/echo", echo, NULL},
    {JANUS_HTTP_METHOD_GET, "/{*}", show_file, NULL},
    {0, NULL, NULL, NULL},
};

static int64_t first_task(void *argument)
{
    struct site  *site = argument;
    janus_address at;
    janus_io      listener;
    char          text[JANUS_ADDRESS_TEXT_BYTES];
    janus_status  status = janus_dir_open(site->path, JANUS_RIGHT_FILE_READ, NULL, &site->folder);
    if (status == JANUS_OK) status = janus_address_parse(site->at, &at);
    if (status == JANUS_OK) status = janus_listen(&at, NULL, &listener);
    if (status == JANUS_OK) status = janus_io_local(listener, &at);
    if (status != JANUS_OK) {
        char why[512];
        if (janus_explain(why, sizeof why) == 0)
            (void)snprintf(why, sizeof why, "%s", janus_status_text(status));
        fprintf(stderr, "cannot serve %s at %s: %s\n", site->path, site->at, why);
        return status;
    }
    printf("open http://%s/ (Ctrl-C stops the server)\n",
           janus_address_text(&at, text, sizeof text));
    (void)fflush(stdout);
    return janus_http_serve(listener, NULL, site,
                            JANUS_HTTP_OPTIONS(.routes = routes, .logs = true,
                                               .stop_on_signals = true, .grace_ns = JANUS_SECONDS));
}

int main(int argc, char **argv)
{
    struct site                    site = {.at = argc > 1 ? argv[1] : "127.0.0.1:8080",
                                           .path = argc > 2 ? argv[2] : "examples/site"};
    const janus_scheduler_options *options = JANUS_SCHEDULER_OPTIONS(.max_tasks = 1000);
    return janus_run(options, first_task, &site, NULL) == JANUS_OK ? 0 : 1;
}
