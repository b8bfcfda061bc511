/* SPDX-License-Identifier: MIT */
/* WebSocket on the wire: what a server answers to frames that a client sends byte by byte. */
#include "talk.h"

#include <janusrt/memory.h>
#include <janusrt/websocket.h>

static int64_t echo(janus_http *http, const janus_http_request *request)
{
    janus_websocket        *socket = NULL;
    janus_websocket_message message;
    (void)request;
    janus_status status = janus_websocket_accept(
        http, JANUS_WEBSOCKET_OPTIONS(.max_bytes = 20, .max_frames = 3), &socket);
    if (status != JANUS_OK) return status;
    while (janus_websocket_read(socket, &message) == JANUS_OK) {
        status = janus_websocket_send(socket, message.kind, message.bytes, message.count);
        janus_free(message.bytes);
        if (status != JANUS_OK) break;
    }
    janus_websocket_destroy(socket);
    return 0;
}

/* In hexadecimal: frames of a client, with the mask 0, and what comes back. */
static const struct row {
    const char *sent, *back;
} rows[] = {
    {"8180 00000000 8880 00000000", "8100 8800"},
    {"8185 00000000 48656c6c6f 8882 00000000 03e8", "8105 48656c6c6f 8802 03e8"},
    {"0183 00000000 48656c 8981 00000000 70 8082 00000000 6c6f 8880 00000000",
     "8a01 70 8105 48656c6c6f 8800"},
    {"8a83 00000000 787878 8880 00000000", "8800"}, /* a pong that nobody asked for */
    {"8880 00000000 8181 00000000 61", "8800"},     /* what follows a close is dropped */
    {"8883 00000000 0fa0 41", "8802 0fa0"},         /* the code comes back */
    {"8882 00000000 03ed", "88 1002"},              /* 1005 is never sent */
    {"8101 61", "88 1002"},                         /* no mask */
    {"c180 00000000", "88 1002"},
    {"8080 00000000", "88 1002"},
    {"8183 00000000 eda080", "88 1007"},
    {"8294 00000000 3030303030303030303030303030303030303030 8880 00000000",
     "8214 3030303030303030303030303030303030303030 8800"},
    {"8295 00000000", "88 1009"},
    {"0280 00000000 0080 00000000 0080 00000000 0080 00000000", "88 1009"},
};

static size_t unhex(const char *hex, char *out)
{
    size_t bytes = 0;
    for (; *hex != '\0'; hex++) {
        unsigned byte = 0;
        if (*hex == ' ') continue;
        CHECK_EQ(sscanf(hex++, "%2x", &byte), 1);
        out[bytes++] = (char)byte;
    }
    return bytes;
}

/* Compares what came back with a row. "88 1002" means a close with this code and any reason. */
static void compare(const struct row *row, const char *got, size_t bytes)
{
    char     want[128];
    unsigned code = 0;
    if (strlen(row->back) == 7 && sscanf(row->back, "88 %u", &code) == 1) {
        CHECK(bytes >= 4 && (uint8_t)got[0] == 0x88);
        CHECK_EQ((unsigned)(uint8_t)got[2] << 8 | (uint8_t)got[3], code);
        return;
    }
    size_t wanted = unhex(row->back, want);
    CHECK_EQ(bytes, wanted);
    CHECK(memcmp(got, want, wanted) == 0);
}

/* With `slowly` the frames come byte by byte, otherwise together with the handshake. */
static void send_row(struct talk *talk, const struct row *row, bool slowly)
{
    static const char ask[] = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: "
                              "websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
                              "dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    char              all[sizeof ask + 128];
    size_t            head = sizeof ask - 1, bytes = head, have = 0, got = 0;
    janus_io          io = talk_open(talk);
    memcpy(all, ask, head);
    bytes += unhex(row->sent, all + head);
    CHECK_EQ(janus_io_write(io, all, slowly ? head : bytes, NULL), JANUS_OK);
    for (size_t i = head; slowly && i < bytes; i++) {
        CHECK_EQ(janus_io_write(io, all + i, 1, NULL), JANUS_OK);
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    while (janus_io_read(io, talk->text + have, TALK_BYTES - have, &got) == JANUS_OK) have += got;
    CHECK_EQ(janus_io_close(io), JANUS_OK);
    const char *end = memmem(talk->text, have, "\r\n\r\n", 4);
    CHECK(end != NULL);
    compare(row, end + 4, have - (size_t)(end + 4 - talk->text));
}

static void send_rows(struct talk *talk)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        send_row(talk, &rows[i], false);
        send_row(talk, &rows[i], true);
    }
}

TEST("a server answers frames as RFC 6455 asks, however they arrive")
{
    talk_run(&(struct talk){.handler = echo, .client = send_rows});
}
