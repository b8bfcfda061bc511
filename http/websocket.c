/* SPDX-License-Identifier: MIT */
/* Messages of WebSocket: reading, sending, pings, the close. */
#include "http/websocket.h"

#include "http/block.h"
#include "http/client.h"
#include "http/server.h"

#include <janusrt/memory.h>
#include <sys/random.h>

#define CLOSE_NS (2 * JANUS_SECONDS) /* for the other end to close, too */

enum { BLOCK_FIRST_BYTES = 1024, DROPPED_MAX = 1 << 20 };

janus_status jrt_websocket_make(const janus_websocket_options *options, janus_io io,
                                janus_wire *wire, bool server, const char *bytes, size_t count,
                                janus_websocket **out)
{
    size_t           room = count > JRT_WEBSOCKET_IN_BYTES ? count : JRT_WEBSOCKET_IN_BYTES;
    janus_websocket *socket = NULL;
    janus_status     status = jrt_http_alloc(sizeof *socket + room, (void **)&socket);
    if (status != JANUS_OK) return status;
    memset(socket, 0, sizeof *socket);
    socket->options = *options;
    socket->io = io;
    socket->wire = wire;
    socket->task = janus_task_current_id();
    socket->room = room;
    socket->end = count;
    socket->heard_ns = janus_now_ns();
    if (count > 0) memcpy(socket->in, bytes, count);
    jrt_http_frames_init(&socket->frames, server, options->max_bytes, options->max_frames);
    janus_mutex_init(&socket->writing, "websocket");
    *out = socket;
    return JANUS_OK;
}

/* How many bytes the connection has taken. */
static uint64_t written(const janus_websocket *socket)
{
    janus_io_info info = JANUS_IO_INFO();
    return janus_io_inspect(socket->io, &info) == JANUS_OK ? info.written_bytes : 0;
}

/* Writes all. An end that takes some bytes in write_ns may take as long for others. */
static janus_status write_all(janus_websocket *socket, const char *bytes, size_t count,
                              size_t *done)
{
    janus_io_piece piece = {(void *)(uintptr_t)bytes, count};
    bool           wired = jrt_wire_is(socket->wire);
    for (;;) {
        size_t   now_done = 0;
        uint64_t before = wired ? written(socket) : 0;
        uint64_t end = jrt_http_after(janus_now_ns(), socket->options.write_ns);
        JANUS_IGNORE(janus_io_set_deadline(socket->io, JANUS_IO_WRITE, end));
        janus_status status =
            jrt_wire_write(socket->wire, socket->io, &piece, piece.count > 0, &now_done);
        *done += now_done;
        if (status != JANUS_DEADLINE) return status;
        /* A deadline before `end` is an old one of the server's tick. */
        bool taken = wired ? written(socket) != before : now_done > 0;
        if (!taken && janus_now_ns() >= end) return status;
        piece.bytes = (char *)piece.bytes + now_done;
        piece.count -= now_done;
        if (piece.count == 0 && !wired) return JANUS_OK;
    }
}

/* Copies bytes into the buffer behind `have`, and masks them if `key` is not NULL. */
static size_t fill_out(janus_websocket *socket, size_t have, const char *bytes, size_t count,
                       const uint8_t *key, size_t phase)
{
    size_t here = sizeof socket->out - have;
    if (here > count) here = count;
    if (here > 0) memcpy(socket->out + have, bytes, here);
    if (key != NULL) jrt_http_mask(socket->out + have, here, key, phase);
    return here;
}

/* Takes a mask that nobody can foresee. */
static bool take_key(janus_websocket *socket, uint8_t key[4])
{
    if (socket->keys_left < 4) {
        ssize_t got = getrandom(socket->keys, sizeof socket->keys, 0);
        if (got < 4) return false;
        socket->keys_left = (size_t)got;
    }
    socket->keys_left -= 4;
    memcpy(key, socket->keys + socket->keys_left, 4);
    return true;
}

static janus_status write_frame(janus_websocket *socket, enum jrt_http_frame_kind kind,
                                const char *bytes, size_t count, size_t *done)
{
    uint8_t  key_bytes[4];
    uint8_t *key = socket->frames.masked ? NULL : key_bytes; /* a client masks, a server does not */
    if (key != NULL && !take_key(socket, key)) return JANUS_UNAVAILABLE;
    size_t       head = jrt_http_frame_head((uint8_t *)socket->out, kind, true, count, key);
    size_t       here = fill_out(socket, head, bytes, count, key, 0), sent = here;
    janus_status status = write_all(socket, socket->out, head + here, done);
    while (status == JANUS_OK && sent < count) {
        if (key == NULL) {
            status = write_all(socket, bytes + sent, count - sent, done);
            sent = count;
        } else {
            here = fill_out(socket, 0, bytes + sent, count - sent, key, sent);
            status = write_all(socket, socket->out, here, done);
            sent += here;
        }
    }
    return status;
}

/* Sends a frame. A frame that was sent in part breaks the socket. */
static janus_status send_frame(janus_websocket *socket, enum jrt_http_frame_kind kind,
                               const char *bytes, size_t count)
{
    size_t       done = 0;
    janus_status status = janus_mutex_lock(&socket->writing);
    if (status != JANUS_OK) return status;
    status = socket->broken;
    if (status == JANUS_OK && socket->close_sent) status = JANUS_CLOSED;
    if (status == JANUS_OK) {
        if (kind == JRT_HTTP_FRAME_CLOSE) socket->close_sent = true;
        /* A task that ends inside of the write leaves this status. */
        socket->broken = JANUS_BROKEN;
        status = jrt_client_status(write_frame(socket, kind, bytes, count, &done));
        bool none = done == 0 && (status == JANUS_CANCELLED || status == JANUS_UNAVAILABLE);
        if (none && kind == JRT_HTTP_FRAME_CLOSE) socket->close_sent = false;
        socket->broken = none ? JANUS_OK : status;
        if (socket->broken != JANUS_OK) {
            JANUS_IGNORE(janus_io_shutdown(socket->io, JANUS_IO_BOTH)); /* the reader ends, too */
        }
    }
    JANUS_IGNORE(janus_mutex_unlock(&socket->writing));
    return status;
}

static janus_status send_close(janus_websocket *socket, unsigned code, const char *reason,
                               size_t bytes)
{
    char payload[JRT_HTTP_CONTROL_BYTES] = {(char)(code >> 8), (char)code};
    if (bytes > sizeof payload - 2) bytes = sizeof payload - 2;
    if (bytes > 0) memcpy(payload + 2, reason, bytes);
    bool none = code == JRT_HTTP_CLOSE_NO_CODE;
    return send_frame(socket, JRT_HTTP_FRAME_CLOSE, payload, none ? 0 : bytes + 2);
}

/* Whether a text is UTF-8. OK, INVALID, CANCELLED. */
static janus_status check_text(const char *bytes, size_t count)
{
    struct jrt_http_utf8 utf8 = {0, 0, 0};
    for (size_t done = 0; done < count;) {
        size_t here = count - done < JRT_HTTP_PIECE_BYTES ? count - done : JRT_HTTP_PIECE_BYTES;
        if (!jrt_http_utf8_check(&utf8, bytes + done, here)) return JANUS_INVALID;
        done += here;
        janus_status status = jrt_http_pay(&here);
        if (status != JANUS_OK) return status;
    }
    return utf8.left == 0 ? JANUS_OK : JANUS_INVALID;
}

janus_status janus_websocket_send(janus_websocket *socket, janus_websocket_kind kind,
                                  const void *bytes, size_t count)
{
    if (socket == NULL || (bytes == NULL && count > 0)) return JANUS_INVALID;
    if (kind != JANUS_WEBSOCKET_KIND_TEXT && kind != JANUS_WEBSOCKET_KIND_BINARY) {
        return JANUS_INVALID;
    }
    janus_status status = kind == JANUS_WEBSOCKET_KIND_TEXT ? check_text(bytes, count) : JANUS_OK;
    if (status != JANUS_OK) return status;
    return send_frame(socket, (enum jrt_http_frame_kind)kind, bytes, count);
}

janus_status janus_websocket_close(janus_websocket *socket, unsigned code, const char *reason)
{
    struct jrt_http_utf8 utf8 = {0, 0, 0};
    size_t               bytes = reason != NULL ? strnlen(reason, JRT_HTTP_CONTROL_BYTES) : 0;
    if (socket == NULL || !jrt_http_is_close_code(code)) return JANUS_INVALID;
    if (bytes > JRT_HTTP_CONTROL_BYTES - 2) return JANUS_INVALID;
    if (!jrt_http_utf8_check(&utf8, reason, bytes) || utf8.left > 0) return JANUS_INVALID;
    return send_close(socket, code, reason, bytes);
}

/* No message comes any more. */
static janus_status end_reads(janus_websocket *socket, janus_status status, unsigned code)
{
    socket->over = status;
    if (socket->code == 0) socket->code = (uint16_t)code;
    return status;
}

static bool is_stopping(const janus_websocket *socket)
{
    return socket->http != NULL && atomic_load(&socket->http->server->stopping);
}

/* The deadline for reading has passed. OK: read on. */
static janus_status notice_silence(janus_websocket *socket, uint64_t deadline)
{
    uint64_t now = janus_now_ns();
    if (is_stopping(socket)) {
        JANUS_IGNORE(send_close(socket, JRT_HTTP_CLOSE_AWAY, NULL, 0));
        return end_reads(socket, JANUS_CLOSED, JRT_HTTP_CLOSE_AWAY);
    }
    if (now < deadline) return JANUS_OK; /* the server's stop has set it, and was seen */
    if (socket->pinged_ns != 0) {
        return end_reads(socket, JANUS_DEADLINE, JRT_HTTP_CLOSE_ABNORMAL);
    }
    janus_status status = send_frame(socket, JRT_HTTP_FRAME_PING, NULL, 0);
    if (status == JANUS_CLOSED) status = JANUS_OK; /* we have closed, the other end has not */
    if (status == JANUS_OK) socket->pinged_ns = now;
    return status;
}

/* Reads some bytes, or ends the reads. */
static janus_status receive(janus_websocket *socket, char *to, size_t max, size_t *got)
{
    for (;;) {
        bool     pinged = socket->pinged_ns != 0;
        uint64_t end = jrt_http_after(pinged ? socket->pinged_ns : socket->heard_ns,
                                      pinged ? socket->options.pong_ns : socket->options.ping_ns);
        JANUS_IGNORE(janus_io_set_deadline(socket->io, JANUS_IO_READ, end));
        /* A stop sets its flag and then a deadline, which the line above may have replaced. */
        if (is_stopping(socket)) {
            JANUS_IGNORE(janus_io_set_deadline(socket->io, JANUS_IO_READ, 1));
        }
        janus_status status =
            jrt_client_status(jrt_wire_read(socket->wire, socket->io, to, max, got));
        if (status == JANUS_DEADLINE) {
            status = notice_silence(socket, end);
            if (status == JANUS_OK) continue;
            return status;
        }
        if (status == JANUS_OK) {
            socket->heard_ns = janus_now_ns();
            socket->pinged_ns = 0;
            return status;
        }
        if (status == JANUS_CANCELLED || status == JANUS_STATE) return status;
        if (status == JANUS_CLOSED) status = JANUS_RESET; /* without a close */
        return end_reads(socket, status, JRT_HTTP_CLOSE_ABNORMAL);
    }
}

/* A control frame has come. OK: read on. */
static janus_status obey(janus_websocket *socket)
{
    const struct jrt_http_frames *frames = &socket->frames;
    if (frames->control_kind == JRT_HTTP_FRAME_PONG) return JANUS_OK;
    if (frames->control_kind == JRT_HTTP_FRAME_PING) {
        janus_status status =
            send_frame(socket, JRT_HTTP_FRAME_PONG, frames->control, frames->control_bytes);
        return status == JANUS_CLOSED ? JANUS_OK : status;
    }
    if (frames->control_bytes > 2) {
        memcpy(socket->reason, frames->control + 2, frames->control_bytes - 2u);
    }
    JANUS_IGNORE(send_close(socket, frames->code, NULL, 0)); /* CLOSED: sent before */
    return end_reads(socket, JANUS_CLOSED, frames->code);
}

static janus_status refuse(janus_websocket *socket)
{
    const struct jrt_http_frames *frames = &socket->frames;
    JANUS_IGNORE(send_close(socket, frames->code, frames->why, strlen(frames->why)));
    bool long_one = frames->code == JRT_HTTP_CLOSE_TOO_BIG;
    return end_reads(socket, long_one ? JANUS_FULL : JANUS_INVALID, JRT_HTTP_CLOSE_ABNORMAL);
}

/* A message while it comes. */
struct block {
    char  *bytes;
    size_t count, room;
};

/* Makes room for `more` bytes and a NUL. The block grows as the bytes come, not as they are
 * promised. */
static janus_status make_room(janus_websocket *socket, struct block *block, size_t more)
{
    char  *anew = NULL;
    size_t least = block->count + more + 1, room = block->room * 2;
    if (block->bytes != NULL && block->room >= least) return JANUS_OK;
    if (room < BLOCK_FIRST_BYTES) room = BLOCK_FIRST_BYTES;
    if (room > socket->frames.bytes + 1) room = (size_t)socket->frames.bytes + 1; /* so far */
    if (room < least) room = least;
    janus_status status = jrt_http_alloc(room, (void **)&anew);
    if (status != JANUS_OK) return status;
    if (block->bytes != NULL) memcpy(anew, block->bytes, block->count);
    janus_free(block->bytes);
    block->bytes = anew;
    block->room = room;
    return JANUS_OK;
}

/* Reads into the buffer, or a long payload into the block, where it is decoded. */
static janus_status read_on(janus_websocket *socket, struct block *block)
{
    const struct jrt_http_frames *frames = &socket->frames;
    size_t                        got = 0, used = 0;
    struct jrt_http_text          data;
    bool inside = frames->in_frame && frames->opcode < 8 && frames->left >= socket->room;
    if (!inside) {
        socket->at = socket->end = 0;
        janus_status status = receive(socket, socket->in, socket->room, &got);
        socket->end = got;
        return status;
    }
    janus_status status = make_room(socket, block, JRT_WEBSOCKET_IN_BYTES);
    if (status != JANUS_OK) return status;
    size_t max = block->room - 1 - block->count;
    if (max > frames->left) max = (size_t)frames->left;
    char *to = block->bytes + block->count;
    status = receive(socket, to, max, &got);
    if (status != JANUS_OK) return status;
    if (jrt_http_frames_next(&socket->frames, to, got, &used, &data) == JRT_HTTP_FRAME_BAD) {
        return refuse(socket);
    }
    block->count += got; /* it was data, all of it */
    return JANUS_OK;
}

/* Decodes what has come. OK: a message is complete. WOULD_WAIT: more is needed. */
static janus_status decode(janus_websocket *socket, struct block *block)
{
    for (;;) {
        size_t                   used = 0;
        struct jrt_http_text     data = {NULL, 0};
        enum jrt_http_frame_step step = jrt_http_frames_next(
            &socket->frames, socket->in + socket->at, socket->end - socket->at, &used, &data);
        janus_status status = JANUS_OK;
        socket->at += used;
        switch (step) {
        case JRT_HTTP_FRAME_DATA:
            status = make_room(socket, block, data.bytes);
            if (status != JANUS_OK) break;
            memcpy(block->bytes + block->count, data.at, data.bytes);
            block->count += data.bytes;
            break;
        case JRT_HTTP_FRAME_MESSAGE: return make_room(socket, block, 0);
        case JRT_HTTP_FRAME_CONTROL: status = obey(socket); break;
        case JRT_HTTP_FRAME_BAD: return refuse(socket);
        default: return JANUS_WOULD_WAIT;
        }
        if (status != JANUS_OK) return status;
    }
}

/* On a server without a budget for requests, a message is another request. */
static void renew_budget(janus_websocket *socket)
{
    if (socket->http == NULL || socket->task != janus_task_current_id()) return;
    socket->http->given = janus_budget_zero();
}

janus_status janus_websocket_read(janus_websocket *socket, janus_websocket_message *out)
{
    struct block block = {NULL, 0, 0};
    if (socket == NULL || out == NULL) return JANUS_INVALID;
    if (socket->over != JANUS_OK) return socket->over;
    renew_budget(socket);
    janus_status status = decode(socket, &block);
    while (status == JANUS_WOULD_WAIT) {
        status = read_on(socket, &block);
        if (status == JANUS_OK) status = decode(socket, &block);
    }
    if (status != JANUS_OK) {
        janus_free(block.bytes);
        bool between = socket->frames.over; /* no message has begun, so no byte is lost */
        if (socket->over == JANUS_OK && !(between && status == JANUS_CANCELLED)) {
            return end_reads(socket, status, JRT_HTTP_CLOSE_ABNORMAL);
        }
        return status;
    }
    block.bytes[block.count] = '\0';
    *out = (janus_websocket_message){(janus_websocket_kind)socket->frames.kind, block.bytes,
                                     block.count};
    return JANUS_OK;
}

const char *janus_websocket_protocol(const janus_websocket *socket)
{
    return socket != NULL ? socket->protocol : "";
}

unsigned janus_websocket_close_code(const janus_websocket *socket, const char **out_reason)
{
    if (out_reason != NULL) *out_reason = socket != NULL ? socket->reason : "";
    return socket != NULL ? socket->code : 0;
}

/* Reads until the other end has closed, and drops what comes. */
static void drain(janus_websocket *socket)
{
    size_t got = 0, dropped = 0;
    JANUS_IGNORE(janus_io_set_deadline(socket->io, JANUS_IO_BOTH, janus_now_ns() + CLOSE_NS));
    JANUS_IGNORE(jrt_wire_end(socket->wire, socket->io));
    while (dropped < DROPPED_MAX &&
           janus_io_read(socket->io, socket->in, socket->room, &got) == JANUS_OK) {
        dropped += got;
    }
}

void janus_websocket_destroy(janus_websocket *socket)
{
    if (socket == NULL) return;
    JANUS_IGNORE(send_close(socket, JRT_HTTP_CLOSE_NORMAL, NULL, 0)); /* CLOSED: sent before */
    if (socket->reply != NULL) {
        bool gone = socket->over == JANUS_RESET || socket->over == JANUS_DEADLINE;
        if (!gone && socket->broken == JANUS_OK) drain(socket);
        janus_http_reply_destroy(socket->reply); /* closes */
    } else {
        atomic_store(&socket->http->connection->upgraded, false);
        /* The server half-closes and drains when the handler returns. */
    }
    janus_free(socket);
}
