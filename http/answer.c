/* SPDX-License-Identifier: MIT */
/* Answers as a whole, the heads of all answers, and the end of what a handler has begun. */
#include "http/server.h"

#include <janusrt/task.h>

enum {
    HEAD_BYTES_MAX = 512, /* without the handler's fields and the type */
    GATHERED_MAX = 4096,  /* a longer body is sent from where it lies */
};

/* Copies bytes to a place that has room for them, and returns what is behind them. */
static char *put(char *at, const char *bytes, size_t count)
{
    memcpy(at, bytes, count);
    return at + count;
}

#define PUT(at, literal) put(at, literal, sizeof(literal) - 1)

static void append(struct jrt_http_out *out, const char *bytes, size_t count)
{
    memcpy(out->at + out->bytes, bytes, count);
    out->bytes += count;
}

#define APPEND(out, literal) append(out, literal, sizeof(literal) - 1)

static char *put_number(char *at, uint64_t number)
{
    char   digits[20];
    size_t first = sizeof digits;
    while (number >= 10) {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    }
    *at++ = (char)('0' + number); /* most significant */
    while (first < sizeof digits) *at++ = digits[first++];
    return at;
}

static bool is_bodiless(unsigned status) { return status == 204 || status == 304; }

/* Whether the next request can follow. If the body cannot be read to its end, it cannot. */
static bool can_keep(const struct janus_http *http)
{
    if (!http->head.keep_alive || http->fault != 0 || http->body_status != JANUS_OK) return false;
    /* relaxed: of this task. */
    uint32_t requests = atomic_load_explicit(&http->requests, memory_order_relaxed);
    if (requests >= http->server->options.max_requests || jrt_http_is_used_up(http)) return false;
    /* relaxed: a stop that is missed here is seen after the answer. */
    if (atomic_load_explicit(&http->server->stopping, memory_order_relaxed)) return false;
    /* relaxed: as above. */
    if (atomic_load_explicit(&http->server->crowded, memory_order_relaxed) &&
        janus_now_ns() - http->connection->since >= JRT_HTTP_TURN_NS) {
        return false;
    }
    return http->body_over || (!http->continue_due && http->left <= JRT_HTTP_DRAIN_BYTES);
}

static char *put_status(char *at, unsigned status)
{
    struct jrt_http_out out = {at, HEAD_BYTES_MAX, 0};
    if (status == 200) return PUT(at, "HTTP/1.1 200 OK\r\n");
    JANUS_IGNORE(jrt_http_put_status(&out, status));
    return at + out.bytes;
}

/* The fields that frame the answer, and the end of the head. */
static char *put_framing(struct janus_http *http, char *at, unsigned status, uint64_t length)
{
    http->chunked = false;
    if (is_bodiless(status)) {
        /* it has no framing */
    } else if (length != JANUS_HTTP_UNKNOWN) {
        at = PUT(at, "Content-Length: ");
        at = put_number(at, length);
        at = PUT(at, "\r\n");
    } else if (http->head.minor >= 1) {
        http->chunked = true;
        at = PUT(at, "Transfer-Encoding: chunked\r\n");
    } else {
        http->keep = false; /* the end of the connection is the end of the answer */
    }
    if (!http->keep)
        at = PUT(at, "Connection: close\r\n");
    else if (http->head.minor == 0)
        at = PUT(at, "Connection: keep-alive\r\n");
    return PUT(at, "\r\n");
}

/* Whether a text may be the value of a field: eight bytes at a time, if none can be a control. */
static bool is_value(struct jrt_http_text text)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones << 7;
    size_t         i = 0;
    for (; text.bytes - i >= 8; i += 8) {
        uint64_t word, low, rubout;
        memcpy(&word, text.at + i, 8);
        low = (word - ones * 0x20) & ~word; /* the top bit: a byte below 0x20 */
        rubout = (word ^ ones * 0x7f) - ones;
        if (((low | (rubout & ~word)) & tops) != 0) break;
    }
    for (; i < text.bytes; i++) {
        if (!jrt_http_is(text.at[i], JRT_HTTP_VALUE)) return false;
    }
    return true;
}

janus_status jrt_http_answer_head(struct janus_http *http, unsigned status,
                                  struct jrt_http_text type, uint64_t length)
{
    const struct jrt_http_server *server = http->server;
    if (type.bytes > JRT_HTTP_TYPE_BYTES || !is_value(type)) return JANUS_INVALID;
    janus_status room = jrt_http_make_room(http, HEAD_BYTES_MAX + type.bytes + http->lines_bytes);
    if (room != JANUS_OK) return room;
    http->keep = can_keep(http);
    http->status = (uint16_t)status;
    http->promised = length;
    http->bodiless = http->head.method == JRT_HTTP_HEAD || is_bodiless(status);
    char *at = put_status(http->out.at + http->out.bytes, status);
    jrt_http_date_get(http->server, at);
    at += JRT_HTTP_DATE_LINE_BYTES;
    if (server->server_line_bytes > 0 && !jrt_http_has_line(http, JRT_HTTP_TEXT("server"))) {
        at = put(at, server->server_line, server->server_line_bytes);
    }
    if (http->lines_bytes > 0) {
        if (jrt_http_has_line(http, JRT_HTTP_TEXT("content-type"))) type.bytes = 0;
        at = put(at, http->rare->lines, http->lines_bytes);
        http->lines_bytes = 0; /* from now on these are trailers */
    }
    if (type.bytes > 0) {
        at = PUT(at, "Content-Type: ");
        at = put(at, type.at, type.bytes);
        at = PUT(at, "\r\n");
    }
    at = put_framing(http, at, status, length);
    http->out.bytes = (size_t)(at - http->out.at);
    return JANUS_OK;
}

janus_status jrt_http_do_answer(janus_http *http, unsigned status, const char *type,
                                const void *bytes, size_t count)
{
    if (http == NULL || (bytes == NULL && count > 0) || status < 200 || status > 599) {
        return JANUS_INVALID;
    }
    if (http->stage != JRT_HTTP_STAGE_NONE) return JANUS_STATE;
    if (is_bodiless(status) && count > 0) return JANUS_INVALID;
    janus_status said = jrt_http_answer_head(http, status, jrt_http_type(type), count);
    if (said == JANUS_INVALID) return said;
    http->stage = JRT_HTTP_STAGE_OVER;
    if (said != JANUS_OK || http->bodiless || count == 0) return said;
    http->sent = count;
    if (count <= GATHERED_MAX) {
        said = jrt_http_make_room(http, count);
        if (said == JANUS_OK) append(&http->out, bytes, count);
        return said;
    }
    janus_io_piece body = {(void *)(uintptr_t)bytes, count};
    return jrt_http_send(http, &body, 1);
}

janus_status jrt_http_do_answer_text(janus_http *http, unsigned status, const char *text)
{
    size_t bytes = 0;
    if (text == NULL) return JANUS_INVALID;
    if (http->stage != JRT_HTTP_STAGE_NONE) return JANUS_STATE;
    janus_status measured = jrt_http_measure(text, &bytes);
    if (measured != JANUS_OK) return measured;
    return jrt_http_do_answer(http, status, "text/plain; charset=utf-8", text, bytes);
}

/* The sentence gets its full stop here. */
void jrt_http_answer_error(struct janus_http *http, unsigned status, const char *why)
{
    struct jrt_http_out *out = &http->out;
    struct jrt_http_text text = jrt_http_of(why != NULL ? why : "this request failed");
    http->lines_bytes = 0;
    http->fault = (uint16_t)status; /* the connection ends */
    if (jrt_http_answer_head(http, status, JRT_HTTP_TEXT("text/plain"), text.bytes + 2) != JANUS_OK)
        return;
    http->stage = JRT_HTTP_STAGE_OVER;
    if (http->bodiless) return;
    if (jrt_http_make_room(http, text.bytes + 2) != JANUS_OK) return;
    append(out, text.at, text.bytes);
    APPEND(out, ".\n");
    http->sent = text.bytes + 2;
}

/* Ends a stream as its framing asks. */
static void end_stream(struct janus_http *http, bool whole)
{
    struct jrt_http_out *out = &http->out;
    http->stage = JRT_HTTP_STAGE_OVER;
    if (http->bodiless) return;
    bool enough = http->promised == JANUS_HTTP_UNKNOWN || http->sent == http->promised;
    if (!whole || !enough) {
        http->failed = true;
        http->keep = false;
        if (whole) {
            jrt_http_blame(http, "short", "its handler wrote %llu of the %llu bytes it promised",
                           (unsigned long long)http->sent, (unsigned long long)http->promised);
        }
        return;
    }
    if (!http->chunked) return;
    if (jrt_http_make_room(http, http->lines_bytes + 8) != JANUS_OK) return;
    APPEND(out, "0\r\n");
    append(out, http->rare->lines, http->lines_bytes);
    APPEND(out, "\r\n");
}

/* Whether the stop has ended a stream of events, whose handler obeyed. */
static bool is_stopped(const struct janus_http *http, int64_t result)
{
    return result == JANUS_CANCELLED && http->eventful && http->broken == JANUS_OK &&
           atomic_load(&http->server->stopping);
}

void jrt_http_answer_end(struct janus_http *http, int64_t result)
{
    if (result < 0 && is_stopped(http, result)) {
        result = 0;
        http->keep = false;
    }
    if (result < 0) jrt_http_blame_result(http, result);
    if (http->stage == JRT_HTTP_STAGE_STREAM) {
        end_stream(http, result >= 0);
    } else if (http->stage == JRT_HTTP_STAGE_NONE) {
        unsigned status = http->fault != 0 ? http->fault : result < 0 ? 500 : 204;
        if (result == JANUS_CANCELLED && http->fault == 0 && janus_cancelled()) status = 503;
        if (jrt_http_make_room(http, HEAD_BYTES_MAX + JRT_HTTP_ERROR_BYTES) != JANUS_OK) return;
        if (status != 204) {
            const char *why = http->fault != 0 ? http->why : "the handler of this request failed";
            if (status == 503) jrt_http_blame_result(http, result);
            jrt_http_answer_error(http, status, why);
        } else if (jrt_http_answer_head(http, 204, JRT_HTTP_TEXT(""), 0) == JANUS_OK) {
            http->stage = JRT_HTTP_STAGE_OVER;
        }
    }
}
