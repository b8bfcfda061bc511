/* SPDX-License-Identifier: MIT */
/* The body of a request: by its length or by chunks, with a limit and a lowest speed. */
#include "http/block.h"
#include "http/server.h"

#include <janusrt/memory.h>
#include <stdio.h>

enum { ALL_FIRST_BYTES = 4096 }; /* the first block for a body of unknown length */

void jrt_http_body_begin(struct janus_http *http)
{
    const struct jrt_http_head *head = &http->head;
    http->left = head->framing == JRT_HTTP_LENGTH ? head->content_length : 0;
    http->body_got = 0;
    http->max_body = http->server->options.max_body_bytes;
    http->credit_ns = JRT_HTTP_RATE_NS;
    http->credited = 0;
    http->piece = 0;
    http->body_over = head->framing != JRT_HTTP_CHUNKED && http->left == 0;
    http->continue_due = head->expect_continue && !http->body_over;
    http->body_status = JANUS_OK;
    http->fault = 0;
    http->why = NULL;
    http->last_chunk = false;
    http->trailers.field_count = 0;
    if (head->framing == JRT_HTTP_CHUNKED) jrt_http_chunks_begin(&http->chunks);

    http->given = janus_budget_zero();
    http->stage = JRT_HTTP_STAGE_NONE;
    http->keep = http->failed = http->blamed = http->eventful = false;
    http->lines_bytes = 0;
    http->status = 0;
    http->sent = 0;
    if (http->server->log != NULL) http->began_ns = janus_now_ns();
}

/* The body cannot be read on. Returns `status`. */
static janus_status fail(struct janus_http *http, janus_status status, uint16_t fault,
                         const char *why)
{
    http->body_status = status;
    if (http->fault == 0) {
        http->fault = fault;
        http->why = why;
    }
    return status;
}

/*
 * Until when the client may let us wait. Each byte gives it credit, by the lowest speed. The credit
 * never exceeds body_ns, so bytes that came fast do not pay for a long trickle.
 */
static uint64_t body_end(struct janus_http *http, uint64_t now)
{
    const janus_http_options *options = &http->server->options;
    uint64_t                  got = http->body_got - http->credited, rate = options->min_rate;
    http->credited = http->body_got;
    http->credit_ns += got / rate * JANUS_SECONDS + got % rate * JANUS_SECONDS / rate;
    if (http->credit_ns > options->body_ns) http->credit_ns = options->body_ns;
    return jrt_http_after(now, http->credit_ns);
}

/* Reads bytes of the body, to `to`, or into the buffer if that is NULL. */
static janus_status receive(struct janus_http *http, void *to, size_t max, size_t *got)
{
    janus_status status;
    if (http->continue_due) {
        static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
        http->continue_due = false;
        if (http->stage == JRT_HTTP_STAGE_NONE &&
            jrt_http_make_room(http, sizeof text) == JANUS_OK) {
            memcpy(http->out.at + http->out.bytes, text, sizeof text - 1);
            http->out.bytes += sizeof text - 1;
        }
    }
    if ((status = jrt_http_flush_all(http)) != JANUS_OK) return fail(http, status, 0, NULL);
    uint64_t now = janus_now_ns();
    jrt_http_read_until(http, body_end(http, now));
    if (to == NULL) {
        size_t before = http->end;
        status = jrt_http_fill(http);
        *got = http->end - before;
    } else {
        do {
            status = jrt_wire_read(http->wire, http->io, to, max, got);
        } while (status == JANUS_DEADLINE && janus_now_ns() < http->read_deadline &&
                 janus_io_set_deadline(http->io, JANUS_IO_READ, http->read_deadline) == JANUS_OK);
    }
    uint64_t waited = janus_now_ns() - now;
    http->credit_ns -= waited < http->credit_ns ? waited : http->credit_ns;
    if (status == JANUS_OK) return status;
    if (status == JANUS_DEADLINE) return fail(http, status, 408, "the body came too slowly");
    /* What is no doing of the client, as a cancel, is answered as such. */
    if (status != JANUS_CLOSED && status != JANUS_RESET) return fail(http, status, 0, NULL);
    return fail(http, JANUS_RESET, 400, "the body was cut off");
}

static janus_status check_limit(struct janus_http *http, uint64_t more)
{
    if (more <= http->max_body && http->body_got <= http->max_body - more) return JANUS_OK;
    (void)snprintf(http->rare->why, sizeof http->rare->why, "the body has more than %llu bytes",
                   (unsigned long long)http->max_body);
    return fail(http, JANUS_FULL, 413, http->rare->why);
}

static janus_status read_length(struct janus_http *http, char *to, size_t max, size_t *got)
{
    janus_status status = check_limit(http, http->left);
    if (status != JANUS_OK) return status;
    if (max > http->left) max = (size_t)http->left;
    size_t there = http->end - http->body;
    if (there > 0) {
        if (there > max) there = max;
        memcpy(to, http->in + http->body, there);
        http->body += there;
        *got = there;
    } else {
        status = receive(http, to, max, got);
        if (status != JANUS_OK) return status;
    }
    http->left -= *got;
    http->body_got += *got;
    http->body_over = http->left == 0;
    return JANUS_OK;
}

/* Reads on into the buffer, behind the head and, with `keep`, behind what is there. */
static janus_status refill(struct janus_http *http, bool keep)
{
    size_t floor = http->at + http->head.bytes, got = 0;
    if (!keep) http->body = http->end = floor;
    if (http->end == http->server->in_bytes && http->body > floor) {
        memmove(http->in + floor, http->in + http->body, http->end - http->body);
        http->end -= http->body - floor;
        http->body = floor;
    }
    if (http->end == http->server->in_bytes) {
        return fail(http, JANUS_INVALID, 431, "the trailers are too long");
    }
    return receive(http, NULL, 0, &got);
}

/* Reads the fields behind the last chunk. */
static janus_status read_trailers(struct janus_http *http)
{
    for (;;) {
        enum jrt_http_step step =
            jrt_http_parse(&http->trailers, http->in + http->body, http->end - http->body);
        if (step == JRT_HTTP_BAD) {
            return fail(http, JANUS_INVALID, http->trailers.status, http->trailers.why);
        }
        if (step == JRT_HTTP_DONE) break;
        janus_status status = refill(http, true);
        if (status != JANUS_OK) return status;
    }
    http->trailers_at = http->body;
    http->body += http->trailers.bytes;
    http->body_over = true;
    return JANUS_CLOSED;
}

/* Takes up to `max` bytes of the piece that was decoded last. It lies at `body`. */
static janus_status take_piece(struct janus_http *http, char *to, size_t max, size_t *got)
{
    *got = http->piece < max ? http->piece : max;
    memcpy(to, http->in + http->body, *got);
    http->body += *got;
    http->piece -= *got;
    http->body_got += *got;
    return JANUS_OK;
}

static janus_status read_chunks(struct janus_http *http, char *to, size_t max, size_t *got)
{
    janus_status status = JANUS_OK;
    if (http->piece > 0) return take_piece(http, to, max, got);
    while (status == JANUS_OK && !http->last_chunk) {
        struct jrt_http_text     data;
        size_t                   used = 0, there = http->end - http->body;
        enum jrt_http_chunk_step step =
            jrt_http_chunks_next(&http->chunks, http->in + http->body, there, &used, &data);
        http->body += used;
        if (step == JRT_HTTP_CHUNK_BAD) return fail(http, JANUS_INVALID, 400, http->chunks.why);
        if (step == JRT_HTTP_CHUNK_DATA) {
            uint64_t whole = data.bytes + http->chunks.left; /* of the chunk */
            if ((status = check_limit(http, whole)) != JANUS_OK) return status;
            http->body -= data.bytes;
            http->piece = data.bytes;
            return take_piece(http, to, max, got);
        }
        if (step == JRT_HTTP_CHUNK_LAST) {
            http->last_chunk = true;
            jrt_http_trailers_begin(&http->trailers);
        } else {
            status = refill(http, false);
        }
    }
    return status == JANUS_OK ? read_trailers(http) : status;
}

janus_status jrt_http_do_read(janus_http *http, void *to, size_t max, size_t *out_got)
{
    if (out_got != NULL) *out_got = 0;
    if (http == NULL || to == NULL || max == 0 || out_got == NULL) return JANUS_INVALID;
    if (http->body_status != JANUS_OK) return http->body_status;
    if (http->body_over) return JANUS_CLOSED;
    if (http->head.framing == JRT_HTTP_CHUNKED) return read_chunks(http, to, max, out_got);
    return read_length(http, to, max, out_got);
}

bool jrt_http_body_drain(struct janus_http *http)
{
    char         dropped[512];
    size_t       got = 0;
    janus_status status = JANUS_OK;
    if (http->continue_due || http->body_status != JANUS_OK) return false;
    http->max_body = http->body_got + JRT_HTTP_DRAIN_BYTES;
    while (status == JANUS_OK) status = jrt_http_do_read(http, dropped, sizeof dropped, &got);
    return status == JANUS_CLOSED;
}

janus_status jrt_http_do_read_all(janus_http *http, char **out, size_t *out_bytes)
{
    if (http == NULL || out == NULL || out_bytes == NULL) return JANUS_INVALID;
    bool     chunked = http->head.framing == JRT_HTTP_CHUNKED;
    uint64_t wanted = chunked ? ALL_FIRST_BYTES : http->left;
    if (!chunked && http->body_status == JANUS_OK && check_limit(http, wanted) != JANUS_OK) {
        return http->body_status;
    }
    size_t       room = (size_t)wanted + 1, bytes = 0, got = 0;
    char        *block = NULL;
    janus_status status = jrt_http_alloc(room, (void **)&block);
    while (status == JANUS_OK) {
        if (bytes + 1 == room && !http->body_over) { /* chunks: twice the room */
            char *larger = NULL;
            status = jrt_http_alloc(2 * room, (void **)&larger);
            if (status != JANUS_OK) break;
            memcpy(larger, block, bytes);
            janus_free(block);
            block = larger;
            room *= 2;
        }
        status =
            jrt_http_do_read(http, block + bytes, room - 1 - bytes + (bytes + 1 == room), &got);
        bytes += got;
    }
    if (status != JANUS_CLOSED) {
        janus_free(block);
        /* The bytes of this block are lost, so no later call may take the rest for the body. */
        if (http->body_status == JANUS_OK && bytes > 0) return fail(http, status, 0, NULL);
        return status;
    }
    block[bytes] = '\0';
    *out = block;
    *out_bytes = bytes;
    return JANUS_OK;
}

janus_status jrt_http_do_limit_body(janus_http *http, uint64_t max_bytes)
{
    if (http == NULL) return JANUS_INVALID;
    http->max_body = max_bytes;
    return JANUS_OK;
}

janus_status jrt_http_do_trailer(const janus_http *http, const char *name,
                                 janus_http_text *out_value)
{
    if (http == NULL || name == NULL || out_value == NULL) return JANUS_INVALID;
    if (!http->body_over) return JANUS_STATE;
    const char *bytes = http->in + http->trailers_at;
    if (http->trailers.field_count == 0) return JANUS_NOT_FOUND;
    int found = jrt_http_find(&http->trailers, bytes, jrt_http_of(name), 0);
    if (found < 0) return JANUS_NOT_FOUND;
    *out_value = jrt_http_public(jrt_http_text_of(bytes, http->trailers.fields[found].value));
    return JANUS_OK;
}
