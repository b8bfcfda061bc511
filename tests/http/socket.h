/* SPDX-License-Identifier: MIT */
/* A server of WebSocket that sends back what it gets, and a client for it. */
#ifndef JANUSRT_TESTS_HTTP_SOCKET_H
#define JANUSRT_TESTS_HTTP_SOCKET_H

#include "caller.h"

#include <janusrt/websocket.h>

/* The handshake of RFC 6455, 1.3, and its answer. */
#define ASK(rest) "GET / HTTP/1.1\r\nHost: a:80\r\nConnection: Upgrade, x\r\n" rest "\r\n"
#define SAMPLE "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define V13 "Sec-WebSocket-Version: 13\r\n"
#define WS "Upgrade: websocket\r\n"

#define ACCEPTED                                                                                   \
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"            \
    "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"

static inline const char *ws_url(const janus_address *at, const char *path, char url[URL_BYTES])
{
    (void)snprintf(url, URL_BYTES, "ws://127.0.0.1:%u%s", (unsigned)at->port, path);
    return url;
}

static atomic_int ended, ended_code;

/* Sends back all that comes. */
static inline int64_t echo(janus_http *http, const janus_http_request *request)
{
    static const char *const protocols[] = {"best", "echo", NULL};
    janus_websocket         *socket = NULL;
    janus_websocket_message  message;
    bool                     any = talk_is(request->path, "/any");
    janus_status             status = janus_websocket_accept(
        http, JANUS_WEBSOCKET_OPTIONS(.protocols = protocols, .any_origin = any), &socket);
    if (status != JANUS_OK) return 0;
    CHECK_EQ(janus_websocket_accept(http, NULL, &socket), JANUS_STATE);
    while ((status = janus_websocket_read(socket, &message)) == JANUS_OK) {
        if (message.count == 4 && memcmp(message.bytes, "quit", 4) == 0) {
            janus_free(message.bytes);
            CHECK_EQ(janus_websocket_close(socket, 4000, "as you like"), JANUS_OK);
            CHECK_EQ(janus_websocket_send(socket, JANUS_WEBSOCKET_KIND_TEXT, "x", 1), JANUS_CLOSED);
            continue;
        }
        status = janus_websocket_send(socket, message.kind, message.bytes, message.count);
        janus_free(message.bytes);
        if (status != JANUS_OK) break;
    }
    atomic_store(&ended, status);
    atomic_store(&ended_code, (int)janus_websocket_close_code(socket, NULL));
    janus_websocket_destroy(socket);
    return 0;
}

static janus_http_client *client;

static inline janus_websocket *dial(struct talk *talk, const janus_websocket_options *options)
{
    char             url[URL_BYTES];
    janus_websocket *socket = NULL;
    CHECK_EQ(janus_websocket_connect(client, ws_url(&talk->at, "/", url), options, &socket),
             JANUS_OK);
    return socket;
}

/* Sends a message, and expects it back. */
static inline void bounce(janus_websocket *socket, janus_websocket_kind kind, const char *bytes,
                          size_t count)
{
    janus_websocket_message message;
    CHECK_EQ(janus_websocket_send(socket, kind, bytes, count), JANUS_OK);
    CHECK_EQ(janus_websocket_read(socket, &message), JANUS_OK);
    CHECK_EQ(message.kind, kind);
    CHECK_EQ(message.count, count);
    CHECK(memcmp(message.bytes, bytes, count) == 0);
    CHECK_EQ(message.bytes[count], '\0');
    janus_free(message.bytes);
}

#endif
