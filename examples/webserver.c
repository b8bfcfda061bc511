/* SPDX-License-Identifier: MIT */
/*
 * The web server of SPEC-022, 14.1. Each connection has a task, and each request has a budget. The
 * 101st connection waits in the backlog. Try it: curl -d hello http://127.0.0.1:8080/
 */
#include <ctype.h>
#include <janusrt/http.h>

/* What this server is for: capital letters. */
static void process(char *body, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) body[i] = (char)toupper((unsigned char)body[i]);
}

static int64_t handle_request(janus_http *http, const janus_http_request *request)
{
    char        *body;
    size_t       bytes;
    janus_status status = janus_http_read_all(http, &body, &bytes);
    (void)request;
    if (status != JANUS_OK) return status;
    process(body, bytes);
    return janus_http_answer(http, 200, "text/plain", body, bytes);
}

int main(int argc, char **argv)
{
    const char        *at = argc > 1 ? argv[1] : "127.0.0.1:8080";
    const janus_budget limit = JANUS_BUDGET(.ops = 100000, .memory = 4 << 20, .syscalls = 1000);
    janus_status       status =
        janus_http_run(at, handle_request, NULL,
                       JANUS_HTTP_OPTIONS(.max_connections = 100, .request_budget = &limit));
    return status == JANUS_OK ? 0 : 1;
}
