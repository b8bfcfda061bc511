/* SPDX-License-Identifier: MIT */
/* What a user's first server and client do; must compile as C11 and as C++17. */
#include <janusrt/http_client.h>
#include <janusrt/janus.h>
#include <janusrt/websocket.h>
#include <stdio.h>
#include <string.h>

static int64_t greet(janus_http *http, const janus_http_request *request)
{
    (void)request;
    return janus_http_answer_text(http, 200, "installed and working");
}

static int64_t serve(void *argument)
{
    return janus_http_serve(*(janus_io *)argument, greet, NULL, NULL);
}

static int64_t visit(janus_io listener)
{
    janus_address      at;
    janus_http_client *client = NULL;
    janus_http_reply  *reply = NULL;
    char               url[64], *text = NULL;
    size_t             bytes = 0;
    if (janus_io_local(listener, &at) != JANUS_OK) return -102;
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/", (unsigned)at.port);
    if (janus_http_client_create(NULL, &client) != JANUS_OK) return -103;
    if (janus_http_call(client, "GET", url, NULL, &reply) != JANUS_OK) return -104;
    if (janus_http_reply_read_all(reply, 100, &text, &bytes) != JANUS_OK) return -105;
    puts(text);
    janus_free(text);
    janus_http_reply_destroy(reply);
    return janus_websocket_protocol(NULL)[0] == '\0' ? 0 : -106;
}

static int64_t first_task(void *argument)
{
    janus_address at;
    janus_io      listener;
    janus_nursery nursery;
    (void)argument;
    if (janus_address_parse("127.0.0.1:0", &at) != JANUS_OK) return -100;
    if (janus_listen(&at, NULL, &listener) != JANUS_OK) return -101;
    if (janus_nursery_open(&nursery, NULL) < JANUS_OK) return -107;
    int64_t result = janus_spawn(&nursery, serve, &listener) == JANUS_OK ? visit(listener) : -108;
    (void)janus_io_close(listener);
    return janus_nursery_end(&nursery, NULL) == JANUS_OK ? result : -109;
}

int main(void) { return janus_run(NULL, first_task, NULL, NULL) == JANUS_OK ? 0 : 1; }
