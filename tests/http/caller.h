/* SPDX-License-Identifier: MIT */
/* A client, and a server that sends exactly the bytes that a test wants, in one scheduler. */
#ifndef JANUSRT_TESTS_HTTP_CALLER_H
#define JANUSRT_TESTS_HTTP_CALLER_H

#include "talk.h"

#include <janusrt/http_client.h>
#include <janusrt/memory.h>

enum { URL_BYTES = 128 };

/* "http://127.0.0.1:PORT" and a path. */
static inline const char *url_of(const janus_address *at, const char *path, char url[URL_BYTES])
{
    (void)snprintf(url, URL_BYTES, "http://127.0.0.1:%u%s", (unsigned)at->port, path);
    return url;
}

static inline janus_http_client *client_with(const janus_http_client_options *options)
{
    janus_http_client *client = NULL;
    CHECK_EQ(janus_http_client_create(options, &client), JANUS_OK);
    return client;
}

/* Calls, and compares status and body. */
static inline void call_for(janus_http_client *client, const janus_address *at, const char *path,
                            unsigned status, const char *body)
{
    char              url[URL_BYTES];
    janus_http_reply *reply = NULL;
    char             *text = NULL;
    size_t            bytes = 0;
    CHECK_EQ(janus_http_call(client, "GET", url_of(at, path, url), NULL, &reply), JANUS_OK);
    CHECK_EQ(janus_http_reply_status(reply), status);
    CHECK_EQ(janus_http_reply_read_all(reply, 1 << 20, &text, &bytes), JANUS_OK);
    CHECK_STR(text, body);
    CHECK_EQ(bytes, strlen(body));
    janus_free(text);
    janus_http_reply_destroy(reply);
}

static inline janus_http_client_info look(janus_http_client *client)
{
    janus_http_client_info info = JANUS_HTTP_CLIENT_INFO();
    CHECK_EQ(janus_http_client_inspect(client, &info), JANUS_OK);
    return info;
}

/*
 * A server of plain bytes. For each connection it has some answers. It reads a request up to its
 * empty line, sends the next answer, and so on. After the last answer it closes.
 */
struct script {
    const char *const               *answers[8]; /* of each connection; NULL ends a list */
    void                             (*client)(struct script *script, janus_http_client *client);
    const janus_http_client_options *options;
    bool                             hasty; /* closes without reading the requests */
    janus_address                    at;
    janus_io                         listener;
    atomic_int                       connections;
};

/* Reads up to an empty line. False: the client closed. */
static inline bool script_read(janus_io io)
{
    static const char end[] = "\r\n\r\n";
    size_t            matched = 0, got = 0;
    char              byte;
    while (matched < 4) {
        if (janus_io_read(io, &byte, 1, &got) != JANUS_OK) return false;
        matched = byte == end[matched] ? matched + 1 : byte == '\r';
    }
    return true;
}

static inline int64_t script_serve(void *argument)
{
    struct script *script = argument;
    for (int i = 0; i < 8 && script->answers[i] != NULL; i++) {
        janus_io io;
        if (janus_accept(script->listener, &io, NULL) != JANUS_OK) return 0;
        atomic_store(&script->connections, i + 1);
        for (const char *const *answer = script->answers[i]; *answer != NULL; answer++) {
            if (!script->hasty && !script_read(io)) break;
            if (janus_io_write(io, *answer, strlen(*answer), NULL) != JANUS_OK) break;
        }
        if (!script->hasty) {
            char   rest[256];
            size_t got;
            (void)janus_io_shutdown(io, JANUS_IO_WRITE);
            while (janus_io_read(io, rest, sizeof rest, &got) == JANUS_OK) {
            }
        }
        (void)janus_io_close(io);
    }
    return 0;
}

static inline int64_t script_first(void *argument)
{
    struct script *script = argument;
    janus_status   status;
    CHECK_EQ(janus_address_parse("127.0.0.1:0", &script->at), JANUS_OK);
    CHECK_EQ(janus_listen(&script->at, NULL, &script->listener), JANUS_OK);
    CHECK_EQ(janus_io_local(script->listener, &script->at), JANUS_OK);
    JANUS_NURSERY(n, status)
    {
        janus_http_client *client = client_with(script->options);
        CHECK_EQ(janus_spawn(n, script_serve, script), JANUS_OK);
        script->client(script, client);
        janus_http_client_destroy(client);
        CHECK_EQ(janus_io_close(script->listener), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_OK);
    return 0;
}

static inline void script_run(struct script *script) { rig_run(2, script_first, script, 1); }

#define ANSWERS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define OK_ANSWER(text, bytes) "HTTP/1.1 200 OK\r\nContent-Length: " bytes "\r\n\r\n" text

#endif
