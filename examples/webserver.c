/* SPDX-License-Identifier: MIT */
/* A web server: a page, a stream of events, an upload. `make serve` runs it. Ctrl-C stops it. */
#include <janusrt/http.h>
#include <janusrt/janus.h>
#include <stdio.h>

static int64_t page(janus_http *http, const janus_http_request *request)
{
    static const char text[] =
        "<!doctype html><title>janusrt</title><h1>It works</h1>"
        "<p>Ticks: <b id=t>-</b><p><input type=file id=f> <b id=u></b>"
        "<script>new EventSource('/ticks').onmessage=e=>t.textContent=e.data;"
        "f.onchange=async()=>u.textContent=await(await fetch('/upload',"
        "{method:'POST',body:f.files[0]})).text()</script>";
    (void)request;
    return janus_http_answer(http, 200, "text/html; charset=utf-8", text, sizeof text - 1);
}

static int64_t ticks(janus_http *http, const janus_http_request *request)
{
    char         number[16];
    janus_status status = JANUS_OK;
    (void)request;
    for (int i = 0; status == JANUS_OK; i++) {
        (void)snprintf(number, sizeof number, "%d", i);
        status = janus_http_event(http, NULL, NULL, number);
        if (status == JANUS_OK) status = janus_sleep(JANUS_SECONDS);
    }
    return status;
}

static int64_t upload(janus_http *http, const janus_http_request *request)
{
    char         bytes[4096], text[64];
    size_t       got, all = 0;
    janus_status status = janus_http_limit_body(http, 1 << 30);
    (void)request;
    while (status == JANUS_OK && (status = janus_http_read(http, bytes, sizeof bytes, &got)) == 0)
        all += got;
    if (status != JANUS_CLOSED) return status;
    (void)snprintf(text, sizeof text, "%zu bytes came\n", all);
    return janus_http_answer_text(http, 200, text);
}

static const janus_http_route routes[] = {
    {JANUS_HTTP_METHOD_GET, "/", page, NULL},
    {JANUS_HTTP_METHOD_GET, "/ticks", ticks, NULL},
    {JANUS_HTTP_METHOD_POST, "/upload", upload, NULL},
    {0, NULL, NULL, NULL},
};

static int64_t serve(void *argument)
{
    janus_address at;
    janus_io      listener, log;
    char          text[JANUS_ADDRESS_TEXT_BYTES];
    janus_status  status = janus_address_parse(argument, &at);
    if (status == JANUS_OK) status = janus_listen(&at, NULL, &listener);
    if (status == JANUS_OK) status = janus_io_local(listener, &at);
    if (status == JANUS_OK) status = janus_io_standard(1, NULL, &log);
    if (status != JANUS_OK) {
        fprintf(stderr, "%s: %s\n", (const char *)argument, janus_status_text(status));
        return status;
    }
    printf("open http://%s/ (Ctrl-C stops the server)\n",
           janus_address_text(&at, text, sizeof text));
    (void)fflush(stdout);
    return janus_http_serve(listener, janus_http_routes, (void *)(uintptr_t)routes,
                            JANUS_HTTP_OPTIONS(.max_connections = 1000, .stop_on_signals = true,
                                               .grace_ns = JANUS_SECONDS, .log = log));
}

int main(int argc, char **argv)
{
    const janus_scheduler_options *options = JANUS_SCHEDULER_OPTIONS(.max_tasks = 3000);
    return janus_run(options, serve, argc > 1 ? argv[1] : "127.0.0.1:8080", NULL) == 0 ? 0 : 1;
}
