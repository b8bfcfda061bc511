/* SPDX-License-Identifier: MIT */
/* The handshake of WebSocket, on both ends. */
#include "http/sha1.h"
#include "socket.h"

static void agree(struct talk *talk)
{
    static const char *const some[] = {"other", "echo", NULL}, *const none[] = {"ECHO", NULL},
                             *const wrong[] = {"a b", NULL};
    char             url[URL_BYTES];
    janus_websocket *socket = NULL;
    client = client_with(NULL);
    socket = dial(talk, JANUS_WEBSOCKET_OPTIONS(.protocols = some));
    CHECK_STR(janus_websocket_protocol(socket), "echo");
    janus_websocket_destroy(socket);
    socket = dial(talk, JANUS_WEBSOCKET_OPTIONS(.protocols = none));
    CHECK_STR(janus_websocket_protocol(socket), "");
    janus_websocket_destroy(socket);
    socket = NULL;
    CHECK_EQ(janus_websocket_connect(client, ws_url(&talk->at, "/", url),
                                     JANUS_WEBSOCKET_OPTIONS(.protocols = wrong), &socket),
             JANUS_INVALID);
    CHECK_EQ(janus_websocket_connect(client, url_of(&talk->at, "/", url), NULL, &socket),
             JANUS_UNAVAILABLE);
    CHECK(socket == NULL);
    janus_http_client_destroy(client);
}

TEST("both ends agree on a protocol that both speak, or on none")
{
    talk_run(&(struct talk){.handler = echo, .client = agree});
}

static void refuse_handshakes(struct talk *talk)
{
    static const struct {
        const char *request, *answer;
    } rows[] = {
        {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "HTTP/1.1 426 "},
        {"POST / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, close\r\nContent-Length: 0\r\n" WS
             SAMPLE V13 "\r\n",
         "HTTP/1.1 426 "},
        {ASK("Connection: close\r\nUpgrade: h2c\r\n" SAMPLE V13), "HTTP/1.1 426 "},
        {ASK("Connection: close\r\n" WS SAMPLE), "HTTP/1.1 426 "},
        {ASK("Connection: close\r\n" WS SAMPLE "Sec-WebSocket-Version: 8\r\n"), "HTTP/1.1 426 "},
        {ASK("Connection: close\r\n" WS V13), "HTTP/1.1 400 "},
        {ASK("Connection: close\r\n" WS SAMPLE SAMPLE V13), "HTTP/1.1 400 "},
        {ASK("Connection: close\r\n" WS "Sec-WebSocket-Key: dGhlIHNhbXBsZQ==\r\n" V13),
         "HTTP/1.1 400 "},
        {ASK("Connection: close\r\nContent-Length: 1\r\n" WS SAMPLE V13) "x", "HTTP/1.1 400 "},
        {ASK("Connection: close\r\n" WS SAMPLE V13 "Origin: http://b\r\n"), "HTTP/1.1 403 "},
        {ASK("Connection: close\r\n" WS SAMPLE V13 "Origin: null\r\n"), "HTTP/1.1 403 "},
        {ASK("Connection: close\r\n" WS SAMPLE V13 "Origin: http://a:81\r\n"), "HTTP/1.1 403 "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *text = talk_ask(talk, rows[i].request);
        CHECK_EQ(strncmp(text, rows[i].answer, strlen(rows[i].answer)), 0);
        CHECK(strstr(text, "HTTP/1.1 101") == NULL);
        bool named = strstr(text, "\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n") != NULL;
        CHECK_EQ(named, strstr(text, "HTTP/1.1 426") != NULL);
    }
    CHECK(strstr(talk_ask(talk, rows[4].request), "Sec-WebSocket-Version: 13\r\n") != NULL);
}

TEST("a server refuses handshakes that are wrong, and pages of other sites")
{
    talk_run(&(struct talk){.handler = echo, .client = refuse_handshakes});
}

static void accept_handshakes(struct talk *talk)
{
    static const char *const rows[] = {ASK(WS SAMPLE V13 "Origin: http://A:80\r\n"),
                                       ASK("Upgrade: x, WebSocket\r\n" SAMPLE V13)};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        janus_io io = talk_open(talk);
        talk_put(io, rows[i]);
        CHECK_STR(talk_until(talk, io, "\r\n\r\n"), ACCEPTED);
        CHECK_EQ(janus_io_write(io, "\x88\x80\0\0\0", 6, NULL), JANUS_OK);
        CHECK_STR(talk_rest(talk, io), "\x88"); /* and a zero */
    }
}

TEST("a server accepts the handshake of RFC 6455")
{
    talk_run(&(struct talk){.handler = echo, .client = accept_handshakes});
}

static void believe_nothing(struct script *script, janus_http_client *caller)
{
    static const char *const protocols[] = {"echo", NULL};
    static const struct {
        janus_status status;
        unsigned     answered;
    } want[] = {{JANUS_UNAVAILABLE, 200},
                {JANUS_UNAVAILABLE, 403},
                {JANUS_INVALID, 0},
                {JANUS_INVALID, 0},
                {JANUS_INVALID, 0}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        char             url[URL_BYTES];
        unsigned         answered = 0;
        janus_websocket *socket = NULL;
        CHECK_EQ(janus_websocket_connect(
                     caller, ws_url(&script->at, "/", url),
                     JANUS_WEBSOCKET_OPTIONS(.protocols = protocols, .out_status = &answered),
                     &socket),
                 want[i].status);
        CHECK_EQ(answered, want[i].answered);
        CHECK(socket == NULL);
        janus_http_client_drop_idle(caller);
        CHECK_EQ(look(caller).connection_count, 0);
    }
}

TEST("a client refuses a server that has not read its key")
{
    struct script script = {
        .answers = {ANSWERS(OK_ANSWER("ok", "2")),
                    ANSWERS("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"),
                    ANSWERS(ACCEPTED),
                    ANSWERS("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                            "Upgrade: websocket\r\n\r\n"),
                    ANSWERS("HTTP/1.1 101 Switching Protocols\r\n\r\n")},
        .client = believe_nothing};
    script_run(&script);
}

struct liar {
    janus_io      listener;
    janus_address at;
    const char   *extra; /* lines of the answer */
};

/* A server that has read the key, and adds lines of its own. */
static int64_t accept_and_add(void *argument)
{
    struct liar *liar = argument;
    char         head[1024] = {0}, proof[64], answer[512], sum_of[64];
    size_t       have = 0, got = 0;
    uint8_t      sum[JRT_HTTP_SHA1_BYTES];
    janus_io     io;
    CHECK_EQ(janus_accept(liar->listener, &io, NULL), JANUS_OK);
    while (strstr(head, "\r\n\r\n") == NULL) {
        CHECK_EQ(janus_io_read(io, head + have, sizeof head - 1 - have, &got), JANUS_OK);
        have += got;
    }
    const char *key = strstr(head, "Sec-WebSocket-Key: ") + 19;
    int bytes = snprintf(sum_of, sizeof sum_of, "%.24s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key);
    jrt_http_sha1(sum_of, (size_t)bytes, sum);
    size_t letters = jrt_http_base64(sum, sizeof sum, proof);
    bytes = snprintf(answer, sizeof answer,
                     "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "
                     "websocket\r\nSec-WebSocket-Accept: %.*s\r\n%s\r\n\x81\x02hi",
                     (int)letters, proof, liar->extra);
    CHECK_EQ(janus_io_write(io, answer, (size_t)bytes, NULL), JANUS_OK);
    while (janus_io_read(io, head, sizeof head, &got) == JANUS_OK) {
    }
    CHECK_EQ(janus_io_close(io), JANUS_OK);
    return 0;
}

#define ECHO_LINE "Sec-WebSocket-Protocol: echo\r\n"

static int64_t meet_liars(void *argument)
{
    static const char *const protocols[] = {"echo", NULL};
    static const char *const lies[] = {"", ECHO_LINE, "Sec-WebSocket-Protocol: other\r\n",
                                       (ECHO_LINE ECHO_LINE),
                                       "Sec-WebSocket-Extensions: permessage-deflate\r\n"};
    struct liar              liar;
    (void)argument;
    client = client_with(NULL);
    CHECK_EQ(janus_address_parse("127.0.0.1:0", &liar.at), JANUS_OK);
    CHECK_EQ(janus_listen(&liar.at, NULL, &liar.listener), JANUS_OK);
    CHECK_EQ(janus_io_local(liar.listener, &liar.at), JANUS_OK);
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        janus_status            status;
        janus_websocket        *socket = NULL;
        janus_websocket_message message;
        char                    url[URL_BYTES];
        liar.extra = lies[i];
        JANUS_NURSERY(n, status)
        {
            CHECK_EQ(janus_spawn(n, accept_and_add, &liar), JANUS_OK);
            CHECK_EQ(janus_websocket_connect(client, ws_url(&liar.at, "/", url),
                                             JANUS_WEBSOCKET_OPTIONS(.protocols = protocols),
                                             &socket),
                     i < 2 ? JANUS_OK : JANUS_INVALID);
            if (i < 2) { /* the first message may come together with the handshake */
                CHECK_STR(janus_websocket_protocol(socket), i == 0 ? "" : "echo");
                CHECK_EQ(janus_websocket_read(socket, &message), JANUS_OK);
                CHECK_STR(message.bytes, "hi");
                janus_free(message.bytes);
            }
            janus_websocket_destroy(socket);
        }
        CHECK_EQ(status, JANUS_OK);
        CHECK_EQ(look(client).connection_count, 0);
    }
    janus_http_client_destroy(client);
    return janus_io_close(liar.listener);
}

TEST("a client refuses protocols that it did not offer, and all extensions")
{
    rig_run(2, meet_liars, NULL, 1);
}
