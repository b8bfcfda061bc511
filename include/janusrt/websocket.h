/* SPDX-License-Identifier: MIT */
/*
 * WebSocket (RFC 6455): messages both ways over a connection of HTTP. Link with libjanusrt-http. A
 * handler that returns what it gets is:
 *
 *     static int64_t echo(janus_http *http, const janus_http_request *request)
 *     {
 *         janus_websocket        *socket;
 *         janus_websocket_message message;
 *         janus_status            status = janus_websocket_accept(http, NULL, &socket);
 *         (void)request;
 *         if (status != JANUS_OK) return 0; // the client has its answer
 *         while (janus_websocket_read(socket, &message) == JANUS_OK) {
 *             status = janus_websocket_send(socket, message.kind, message.bytes, message.count);
 *             janus_free(message.bytes);
 *             if (status != JANUS_OK) break;
 *         }
 *         janus_websocket_destroy(socket);
 *         return 0;
 *     }
 *
 * A client calls janus_websocket_connect instead, and then reads and sends in the same way.
 *
 * One task at a time reads, and any number of tasks send. Messages are sent one after the other.
 * The task that accepted or connected owns the socket. Other tasks use it only while that task
 * lives, as its children do.
 *
 * A send waits while the other end reads slowly. So a program that sends each message to many
 * sockets gives each socket a channel, and a task that sends from it. examples/chat.c does so.
 *
 * The reader answers pings, and the close of the other end. If the other end is silent for
 * options.ping_ns, the reader sends a ping. If nothing comes for options.pong_ns, the read returns
 * DEADLINE. So a socket that no task reads does not notice that the other end is gone.
 *
 * The frames are checked strictly: masks, reserved bits, lengths, fragments, UTF-8 in text. No
 * extension is offered or accepted, so nothing is compressed.
 *
 * On a server, each message gives the handler the budget of another request, if the server has no
 * options.request_budget. At a graceful stop, each read that waits for a message, or begins then,
 * sends a close with the code 1001 and returns CLOSED. A socket that no task reads stays open until
 * its handler returns, or until options.grace_ns has passed.
 */
#ifndef JANUSRT_WEBSOCKET_H
#define JANUSRT_WEBSOCKET_H

#include <janusrt/export.h>
#include <janusrt/http.h>
#include <janusrt/http_client.h>
#include <janusrt/options.h>
#include <janusrt/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct janus_websocket janus_websocket;

typedef enum janus_websocket_kind {
    JANUS_WEBSOCKET_KIND_TEXT = 1, /* UTF-8 */
    JANUS_WEBSOCKET_KIND_BINARY = 2,
} janus_websocket_kind;

/* A whole message. */
typedef struct janus_websocket_message {
    janus_websocket_kind kind;
    char                *bytes; /* a NUL follows them, uncounted */
    size_t               count;
} janus_websocket_message;

/* Options of a socket. Zero in any field selects the default named beside it. */
typedef struct janus_websocket_options {
    size_t                 struct_bytes; /* sizeof this struct; JANUS_WEBSOCKET_OPTIONS sets it */
    const char *const     *protocols;    /* that this end speaks, the best first, then NULL */
    uint64_t               max_bytes;    /* of a message that is read. 0: 1 MiB */
    uint32_t               max_frames;   /* of a message that is read. 0: 1024 */
    uint64_t               ping_ns;    /* of silence before a ping. UINT64_MAX: no pings. 0: 30 s */
    uint64_t               pong_ns;    /* of silence after a ping. 0: 10 s */
    uint64_t               write_ns;   /* in which the other end takes no byte. 0: 30 s */
    bool                   any_origin; /* a server accepts pages of other sites. Otherwise the field
                                        Origin must name our host, if there is such a field */
    const janus_http_pair *fields;     /* a client sends these, too */
    size_t                 field_count;
    uint64_t               deadline_ns; /* of the client's handshake. 0: as a call */
    unsigned              *out_status;  /* gets the status that the server answered with, if it is
                                           not 101; NULL: not wanted */
} janus_websocket_options;
#define JANUS_WEBSOCKET_OPTIONS(...) JANUS_OPTIONS_(janus_websocket_options, __VA_ARGS__)

JANUS_BEGIN_DECLS

/*
 * Accepts a request for WebSocket. Afterwards the janus_http has no other use: the connection ends
 * when the handler returns.
 *
 * Context: the handler's own task, once, before any answer. Its children use the socket, but cannot
 *          accept.
 * Yields:  as janus_io_write.
 * Owns:    *out is the calling task's: janus_websocket_destroy gives it back, and so does the end
 *          of the task.
 * Cost:    as a short janus_http_answer; 9 KiB of memory.
 * Errors:  UNAVAILABLE  the client asked for something else. The call has answered with 426 or 400
 *          DENIED       a page of another site asks. The call has answered with 403
 *          INVALID      an argument is NULL, or an option is out of range
 *          STATE        the answer has begun before, or another task calls
 *          BUDGET_EXHAUSTED, NO_MEMORY, and those of janus_io_write
 */
JANUS_NODISCARD JANUS_API janus_status janus_websocket_accept(
    janus_http *http, const janus_websocket_options *options, janus_websocket **out);

/*
 * Connects to a server: "ws://host:port/path?query". The connection counts in the client's limits
 * until the socket is destroyed.
 *
 * Context: as janus_http_call.
 * Yields:  always.
 * Owns:    as janus_websocket_accept.
 * Cost:    as janus_http_call, and 9 KiB of memory.
 * Errors:  UNAVAILABLE  the server answered with another status than 101, or `url` has another
 *                       scheme than ws, or it has wss and the client no wire
 *          INVALID      the server's handshake is wrong. Or an argument is, as in janus_http_call
 *          and those of janus_http_call
 */
JANUS_NODISCARD JANUS_API janus_status
janus_websocket_connect(janus_http_client *client, const char *url,
                        const janus_websocket_options *options, janus_websocket **out);

/*
 * The protocol that both ends agreed on, "" if they did not.
 *
 * Context: anyone.
 * Yields:  never.
 * Owns:    the text is valid until the socket is destroyed.
 * Cost:    a load.
 * Errors:  "" for NULL.
 */
JANUS_API const char *janus_websocket_protocol(const janus_websocket *socket);

/*
 * Reads a whole message. After an error every later read returns the same error, except for
 * CANCELLED between two messages.
 *
 * Context: the owner, or a task that it awaits; one at a time.
 * Yields:  if no message has come, or the turn is over.
 * Owns:    out->bytes is a block of the calling task; janus_free frees it.
 * Cost:    as janus_io_read, and memory of the budget.
 * Errors:  CLOSED     a close was received and answered; janus_websocket_close_code has its code.
 *                     Or the server stops, or the client was destroyed
 *          RESET      the connection ended without a close
 *          DEADLINE   the other end is silent, also after a ping
 *          FULL       the message is longer than max_bytes, or has more than max_frames
 *          INVALID    the other end sent what RFC 6455 forbids. Or an argument is NULL
 *          CANCELLED  the task is cancelled. In the middle of a message this ends the socket
 *          BUDGET_EXHAUSTED, NO_MEMORY, and those of janus_io_read
 */
JANUS_NODISCARD JANUS_API janus_status janus_websocket_read(janus_websocket         *socket,
                                                            janus_websocket_message *out);

/*
 * Sends a message, as one frame.
 *
 * Context: as janus_websocket_read; several may send.
 * Yields:  if another task sends, the other end is slow, or the turn is over.
 * Owns:    `bytes` stays the caller's.
 * Cost:    as janus_io_write. A client masks a copy, 4 KiB at a time.
 * Errors:  INVALID    an argument is NULL, `kind` is not in its enum, or the text is no UTF-8
 *          CLOSED     this end has sent a close
 *          CANCELLED  the task is cancelled. If the message was sent in part, the socket is broken
 *          DEADLINE   the other end took no byte for write_ns; the socket is broken
 *          and those of janus_io_write. Then the socket is broken: later calls return the same.
 */
JANUS_NODISCARD JANUS_API janus_status janus_websocket_send(janus_websocket     *socket,
                                                            janus_websocket_kind kind,
                                                            const void *bytes, size_t count);

/*
 * Says that no message follows. Reads go on until the other end has closed, too. The code is 1000
 * for a normal end, or between 3000 and 4999 for a reason of the program's own. `reason` is UTF-8
 * of at most 123 bytes, or NULL.
 *
 * Context: as janus_websocket_send.
 * Yields:  as janus_websocket_send.
 * Owns:    `reason` stays the caller's.
 * Cost:    as janus_websocket_send.
 * Errors:  INVALID  `socket` is NULL, or the code or the reason cannot be sent
 *          and those of janus_websocket_send. CLOSED: a close was sent before
 */
JANUS_NODISCARD JANUS_API janus_status janus_websocket_close(janus_websocket *socket, unsigned code,
                                                             const char *reason);

/*
 * The code of the close that ended the reads, as the other end sent it. It is 1005 if that close
 * had no code, 1006 if no close came, and 1001 if this server stops. *out_reason gets the reason of
 * the close, or ""; NULL: not wanted.
 *
 * Context: the task that read.
 * Yields:  never.
 * Owns:    the text is valid until the socket is destroyed.
 * Cost:    a load.
 * Errors:  0: reads can go on, or `socket` is NULL
 */
JANUS_API unsigned janus_websocket_close_code(const janus_websocket *socket,
                                              const char           **out_reason);

/*
 * Ends a socket. If nobody did before, it sends a close with the code 1000. Then it waits until the
 * other end has closed, too, for two seconds at most, and drops the messages that come.
 *
 * Context: the owner. No other task uses the socket.
 * Yields:  until the other end has closed.
 * Owns:    takes `socket`; NULL does nothing.
 * Cost:    as janus_websocket_send and janus_websocket_read.
 * Errors:  none.
 */
JANUS_API void janus_websocket_destroy(janus_websocket *socket);

JANUS_END_DECLS
#endif
