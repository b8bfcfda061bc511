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
    return jrt_http_add_line(http, jrt_http_of(name), jrt_http_of(value));
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
        if (jrt_http_same(jrt_http_of(name), jrt_http_of(refused[i]))) return JANUS_INVALID;
    }
    return add_line(http, name, value);
}

janus_status jrt_http_do_begin(janus_http *http, unsigned status, const char *type, uint64_t length)
{
    if (http == NULL || status < 200 || status > 599) return JANUS_INVALID;
    if (http->stage != JRT_HTTP_STAGE_NONE) return JANUS_STATE;
    if ((status == 204 || status == 304) && length != 0) return JANUS_INVALID;
    janus_status said =
        jrt_http_answer_head(http, status, jrt_http_of(type != NULL ? type : ""), length);
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

/* "name: value\n" */
static char *put_line(char *at, const char *name, const char *value, size_t bytes)
{
    size_t name_bytes = strlen(name);
    memcpy(at, name, name_bytes);
    memcpy(at + name_bytes, ": ", 2);
    memcpy(at + name_bytes + 2, value, bytes);
    at += name_bytes + 2 + bytes;
    *at++ = '\n';
    return at;
}

/* The bytes of the line at `text`; *next is the line behind it, or NULL. CR, LF and both end it. */
static size_t line_of(const char *text, const char **next)
{
    size_t bytes = strcspn(text, "\r\n");
    *next = NULL;
    if (text[bytes] == '\r') *next = text + bytes + 1 + (text[bytes + 1] == '\n');
    if (text[bytes] == '\n') *next = text + bytes + 1;
    return bytes;
}

static size_t event_bytes(const char *event, const char *id, const char *data)
{
    size_t bytes = 1;
    if (event != NULL) bytes += strlen(event) + 8;
    if (id != NULL) bytes += strlen(id) + 5;
    while (data != NULL) bytes += line_of(data, &data) + 7;
    return bytes;
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

/* On a server without a budget for requests, an event is another request. CANCELLED: the server
 * stops, and what was written before can still leave whole. */
static janus_status renew(struct janus_http *http)
{
    if (http->eventful && atomic_load(&http->server->stopping)) return JANUS_CANCELLED;
    if (atomic_load(&http->task) == janus_task_current_id()) http->given = janus_budget_zero();
    return JANUS_OK;
}

janus_status jrt_http_do_event(janus_http *http, const char *event, const char *id,
                               const char *data)
{
    if (http == NULL || data == NULL) return JANUS_INVALID;
    if ((event != NULL && event[strcspn(event, "\r\n")] != '\0') ||
        (id != NULL && id[strcspn(id, "\r\n")] != '\0')) {
        return JANUS_INVALID;
    }
    janus_status status = renew(http);
    if (status == JANUS_OK && http->stage == JRT_HTTP_STAGE_NONE) status = begin_events(http);
    if (status != JANUS_OK) return status;
    size_t bytes = event_bytes(event, id, data);
    char  *text = NULL;
    status = jrt_http_alloc(bytes, (void **)&text);
    if (status != JANUS_OK) return status;
    char *at = text;
    if (event != NULL) at = put_line(at, "event", event, strlen(event));
    if (id != NULL) at = put_line(at, "id", id, strlen(id));
    while (data != NULL) {
        const char *line = data;
        size_t      line_bytes = line_of(line, &data);
        at = put_line(at, "data", line, line_bytes);
    }
    *at++ = '\n';
    status = jrt_http_do_write(http, text, (size_t)(at - text));
    if (status == JANUS_OK) status = jrt_http_do_flush(http);
    janus_free(text);
    return status;
}
