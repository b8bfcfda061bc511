/* SPDX-License-Identifier: MIT */
/* Answers in parts: streams, their trailers, events. And the fields of all answers. */
#include "http/block.h"
#include "http/server.h"

#include <janusrt/memory.h>

enum { CHUNK_FRAME_BYTES = JRT_HTTP_CHUNK_HEAD_BYTES + 2 };

janus_status jrt_http_add_line(struct janus_http *http, struct jrt_http_text name,
                               struct jrt_http_text value)
{
    struct jrt_http_out lines = {http->rare->lines, JRT_HTTP_LINES_BYTES, http->lines_bytes};
    if (jrt_http_is_framing(name) || jrt_http_same(name, JRT_HTTP_TEXT("date"))) {
        return JANUS_INVALID;
    }
    janus_status status = jrt_http_put_field(&lines, name, value);
    if (status == JANUS_OK) http->lines_bytes = lines.bytes;
    return status;
}

bool jrt_http_has_line(const struct janus_http *http, struct jrt_http_text name)
{
    const char *at = http->rare->lines, *end = at + http->lines_bytes;
    while (at < end) {
        const char *colon = memchr(at, ':', (size_t)(end - at));
        const char *next = memchr(at, '\n', (size_t)(end - at));
        if (jrt_http_same((struct jrt_http_text){at, (size_t)(colon - at)}, name)) return true;
        at = next + 1;
    }
    return false;
}

janus_status jrt_http_offer_field(struct janus_http *http, const char *name, const char *value)
{
    if (jrt_http_has_line(http, jrt_http_of(name))) return JANUS_OK;
    return jrt_http_do_set_field(http, name, value);
}

static janus_status add_line(struct janus_http *http, const char *name, const char *value)
{
    if (name == NULL || value == NULL) return JANUS_INVALID;
    struct jrt_http_text names = jrt_http_up_to(name, JRT_HTTP_LINES_BYTES);
    struct jrt_http_text values = jrt_http_up_to(value, JRT_HTTP_LINES_BYTES);
    /* A cancelled task may still answer. */
    JANUS_IGNORE(janus_check_n(1 + (uint32_t)(names.bytes + values.bytes) / JRT_HTTP_OP_BYTES));
    return jrt_http_add_line(http, names, values);
}

janus_status jrt_http_do_set_field(janus_http *http, const char *name, const char *value)
{
    if (http == NULL) return JANUS_INVALID;
    if (http->stage != JRT_HTTP_STAGE_NONE) return JANUS_STATE;
    return add_line(http, name, value);
}

janus_status jrt_http_do_set_trailer(janus_http *http, const char *name, const char *value)
{
    static const char *const refused[] = {"host",          "content-type",  "content-encoding",
                                          "content-range", "authorization", "set-cookie",
                                          "cache-control", "expires",       "location"};
    if (http == NULL || name == NULL) return JANUS_INVALID;
    if (http->stage != JRT_HTTP_STAGE_STREAM || http->promised != JANUS_HTTP_UNKNOWN) {
        return JANUS_STATE;
    }
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        size_t bytes = strlen(refused[i]);
        if (jrt_http_same(jrt_http_up_to(name, bytes), (struct jrt_http_text){refused[i], bytes})) {
            return JANUS_INVALID;
        }
    }
    return add_line(http, name, value);
}

janus_status jrt_http_do_begin(janus_http *http, unsigned status, const char *type, uint64_t length)
{
    if (http == NULL || status < 200 || status > 599) return JANUS_INVALID;
    if (http->stage != JRT_HTTP_STAGE_NONE) return JANUS_STATE;
    if ((status == 204 || status == 304) && length != 0) return JANUS_INVALID;
    janus_status said = jrt_http_answer_head(http, status, jrt_http_type(type), length);
    if (said != JANUS_INVALID) http->stage = JRT_HTTP_STAGE_STREAM;
    return said;
}

janus_status jrt_http_do_write(janus_http *http, const void *bytes, size_t count)
{
    if (http == NULL || (bytes == NULL && count > 0)) return JANUS_INVALID;
    if (http->stage != JRT_HTTP_STAGE_STREAM) return JANUS_STATE;
    bool known = http->promised != JANUS_HTTP_UNKNOWN;
    if (known && count > http->promised - http->sent) return JANUS_FULL;
    if (http->broken != JANUS_OK) return http->broken;
    if (count == 0) return JANUS_OK;
    http->sent += count;
    if (http->bodiless) return JANUS_OK;
    size_t frame = http->chunked ? CHUNK_FRAME_BYTES : 0;
    bool   small = count <= JRT_HTTP_OUT_BYTES / 2 - frame;
    if (small || http->out.room - http->out.bytes < frame) {
        janus_status status = jrt_http_make_room(http, small ? count + frame : frame);
        if (status != JANUS_OK) return status;
    }
    char *at = http->out.at;
    if (http->chunked) http->out.bytes += jrt_http_chunk_head(at + http->out.bytes, count);
    if (!small) {
        const janus_io_piece rest[] = {{(void *)(uintptr_t)bytes, count},
                                       {(void *)(uintptr_t)"\r\n", http->chunked ? 2 : 0}};
        return jrt_http_send(http, rest, 2);
    }
    memcpy(at + http->out.bytes, bytes, count);
    http->out.bytes += count;
    if (http->chunked) {
        memcpy(at + http->out.bytes, "\r\n", 2);
        http->out.bytes += 2;
    }
    return JANUS_OK;
}

janus_status jrt_http_do_flush(janus_http *http)
{
    if (http == NULL) return JANUS_INVALID;
    if (http->stage == JRT_HTTP_STAGE_NONE) return JANUS_STATE;
    return jrt_http_flush_all(http);
}

/* A part of an event. Its text may have several lines, which CR, LF or both end. */
struct part {
    const char *name; /* "data" */
    const char *text; /* NULL: there is no such part */
};

/* Where an event is written to, and what of its text was scanned. */
struct writer {
    char  *at; /* NULL: it is only measured */
    size_t room, bytes, unpaid;
};

/* Another task may change a text while its caller pays. So what has no room is only counted. */
static void put(struct writer *to, const char *bytes, size_t count)
{
    if (to->at != NULL && to->bytes <= to->room && count <= to->room - to->bytes) {
        memcpy(to->at + to->bytes, bytes, count);
    }
    to->bytes += count;
}

/* The bytes before a CR, an LF or the end, at most `max`. */
static size_t span(const char *text, size_t max)
{
    size_t      bytes = strnlen(text, max);
    const char *lf = memchr(text, '\n', bytes);
    if (lf != NULL) bytes = (size_t)(lf - text);
    const char *cr = memchr(text, '\r', bytes);
    return cr != NULL ? (size_t)(cr - text) : bytes;
}

/* Puts what is left of the line at *text, and goes behind it. OK, CANCELLED. A short line costs a
 * short look, and an op. */
static janus_status put_rest(struct writer *to, const char **text)
{
    size_t max = JRT_HTTP_OP_BYTES;
    for (;;) {
        size_t here = span(*text, max);
        put(to, *text, here);
        *text += here;
        to->unpaid += max;
        janus_status status = jrt_http_pay(&to->unpaid);
        if (status != JANUS_OK || here < max) return status;
        if (max < JRT_HTTP_PIECE_BYTES) max *= 2;
    }
}

/* Puts "name: line\n" for each line. OK, CANCELLED. */
static janus_status put_part(struct writer *to, struct part part)
{
    const char *at = part.text;
    while (at != NULL) {
        put(to, part.name, strlen(part.name));
        put(to, ": ", 2);
        janus_status status = put_rest(to, &at);
        if (status != JANUS_OK) return status;
        put(to, "\n", 1);
        bool both = at[0] == '\r' && at[1] == '\n';
        at = at[0] == '\0' ? NULL : at + 1 + both;
    }
    return JANUS_OK;
}

static janus_status put_event(struct writer *to, const struct part parts[3])
{
    janus_status status = JANUS_OK;
    for (int i = 0; i < 3 && status == JANUS_OK; i++) status = put_part(to, parts[i]);
    put(to, "\n", 1);
    return status;
}

/* Whether a text has one line. OK, INVALID, CANCELLED. NULL will do. */
static janus_status check_line(const char *text)
{
    struct writer nowhere = {NULL, 0, 0, 0};
    janus_status  status = text != NULL ? put_rest(&nowhere, &text) : JANUS_OK;
    if (status == JANUS_OK && text != NULL && *text != '\0') status = JANUS_INVALID;
    return status;
}

/* Begins a stream of events, which the stop of the server cancels. */
static janus_status begin_events(struct janus_http *http)
{
    janus_status status = jrt_http_offer_field(http, "Cache-Control", "no-store");
    if (status == JANUS_OK)
        status = jrt_http_do_begin(http, 200, "text/event-stream", JANUS_HTTP_UNKNOWN);
    if (status != JANUS_OK) return status;
    http->eventful = true;
    /* STATE: another task has sent the first event. Then the stream ends after grace_ns. */
    JANUS_IGNORE(janus_nursery_cancel_on(http->shell, http->server->events));
    return JANUS_OK;
}

/* The server stops, and what was written before can still leave whole. */
static bool is_stopped(const struct janus_http *http)
{
    return http->eventful && atomic_load(&http->server->stopping);
}

/* On a server without a budget for requests, an event that was sent is another request. */
static void renew(struct janus_http *http)
{
    bool own = atomic_load(&http->task) == janus_task_current_id();
    if (own && !http->bodiless) http->given = janus_budget_zero();
}

janus_status jrt_http_do_event(janus_http *http, const char *event, const char *id,
                               const char *data)
{
    const struct part parts[3] = {{"event", event}, {"id", id}, {"data", data}};
    struct writer     whole = {NULL, 0, 0, 0};
    if (http == NULL || data == NULL) return JANUS_INVALID;
    janus_status status = check_line(event);
    if (status == JANUS_OK) status = check_line(id);
    if (status == JANUS_OK && is_stopped(http)) status = JANUS_CANCELLED;
    if (status == JANUS_OK && http->stage == JRT_HTTP_STAGE_NONE) status = begin_events(http);
    if (status == JANUS_OK) status = put_event(&whole, parts);
    if (status != JANUS_OK) return status;
    status = jrt_http_alloc(whole.bytes, (void **)&whole.at);
    if (status != JANUS_OK) return status;
    whole.room = whole.bytes;
    whole.bytes = 0;
    status = put_event(&whole, parts);
    if (status == JANUS_OK && whole.bytes != whole.room) status = JANUS_INVALID;
    if (status == JANUS_OK) status = jrt_http_do_write(http, whole.at, whole.bytes);
    if (status == JANUS_OK) status = jrt_http_do_flush(http);
    janus_free(whole.at);
    if (status == JANUS_OK) renew(http);
    return status;
}
