/* SPDX-License-Identifier: MIT */
/*
 * Inside of WebSocket:
 *
 *     handshake.c  both ends of the handshake
 *     websocket.c  messages, pings, the close
 *     frame.c      the bytes
 *
 * A socket is a block of the task that made it. On a server its connection belongs to the
 * janus_http below it, on a client to the janus_http_reply.
 */
#ifndef JANUSRT_HTTP_WEBSOCKET_INTERNAL_H
#define JANUSRT_HTTP_WEBSOCKET_INTERNAL_H

#include "http/frame.h"
#include "http/wire.h"

#include <janusrt/sync.h>
#include <janusrt/task.h>
#include <janusrt/websocket.h>

enum {
    JRT_WEBSOCKET_IN_BYTES = 4096,  /* of the buffer for frames that come */
    JRT_WEBSOCKET_OUT_BYTES = 4096, /* of the buffer for frames that leave */
    JRT_WEBSOCKET_KEYS_BYTES = 64,  /* random bytes for masks, taken together */
    JRT_WEBSOCKET_PROTOCOL_BYTES = 64,
};

struct janus_http;

/*
 * The close:
 *
 *                close_sent  over
 *     open       no          OK
 *     closing    yes         OK        messages of the other end still come
 *     closed     yes         CLOSED    both ends have closed, or the server stops
 *     failed     any         another   no close came, or a wrong frame
 *
 * If `broken` is not OK, no byte can be sent, and the connection is shut down.
 */
struct janus_websocket {
    janus_io                io;
    janus_wire             *wire;  /* NULL: none */
    struct janus_http      *http;  /* on a server; else NULL */
    janus_http_reply       *reply; /* on a client; else NULL */
    janus_task_id           task;  /* the owner */
    janus_websocket_options options;
    char                    protocol[JRT_WEBSOCKET_PROTOCOL_BYTES];

    /* The reader's. */
    struct jrt_http_frames frames;
    size_t                 at, end, room; /* of `in` */
    uint64_t               heard_ns;      /* when the last byte came */
    uint64_t               pinged_ns;     /* when a ping was sent that nothing answered; 0: none */
    janus_status           over;          /* why no message comes any more; OK: one can */
    uint16_t               code;
    char                   reason[JRT_HTTP_CONTROL_BYTES + 1];

    janus_mutex  writing; /* guards the rest */
    janus_status broken;  /* why no byte can be sent any more; OK: it can */
    bool         close_sent;
    size_t       keys_left;
    uint8_t      keys[JRT_WEBSOCKET_KEYS_BYTES];
    char         out[JRT_WEBSOCKET_OUT_BYTES];
    char         in[]; /* bytes that have come, and are not decoded */
};

/* handshake.c. Copies and checks options. */
janus_status jrt_websocket_options(const janus_websocket_options *given,
                                   janus_websocket_options       *out);

/* handshake.c. As janus_websocket_accept, for a block. */
janus_status jrt_websocket_accept(struct janus_http *http, const janus_websocket_options *given,
                                  janus_websocket **out);

/* websocket.c. Makes a socket, with bytes that have come behind the handshake. */
janus_status jrt_websocket_make(const janus_websocket_options *options, janus_io io,
                                janus_wire *wire, bool server, const char *bytes, size_t count,
                                janus_websocket **out);

#endif
