/* SPDX-License-Identifier: MIT */
/* The body of an answer: by its length, by chunks, or until the server closes. */
#include "http/block.h"
#include "http/client.h"

#include <janusrt/memory.h>

enum { ALL_FIRST_BYTES = 4096 }; /* the first block for a body of unknown length */

/* Gives the connection back: at the end of the body, or after an error. */
static void let_go(janus_http_reply *reply)
{
    struct jrt_client_line *line = reply->line;
    if (line == NULL) return;
    reply->line = NULL;
    bool whole = reply->body_over && reply->body_status == JANUS_OK;
    jrt_client_give(reply->client, line, whole && reply->keep && reply->body == reply->end);
}

static janus_status over(janus_http_reply *reply)
{
    reply->body_over = true;
    let_go(reply);
    return JANUS_CLOSED;
}

/* The body cannot be read on. */
static janus_status fail(janus_http_reply *reply, janus_status status)
{
    if (reply->dry) return status;
    reply->body_status = jrt_client_status(status);
    let_go(reply);
    return reply->body_status;
}

void jrt_client_body_begin(janus_http_reply *reply)
{
    const struct jrt_http_head *head = &reply->head;
    reply->body = head->bytes;
    reply->keep = head->keep_alive;
    reply->left = head->framing == JRT_HTTP_LENGTH ? head->content_length : 0;
    if (head->framing == JRT_HTTP_CHUNKED) jrt_http_chunks_begin(&reply->chunks);
    if (head->status == 101) return;
    bool none = head->framing == JRT_HTTP_NO_BODY;
    if (none || (head->framing == JRT_HTTP_LENGTH && reply->left == 0)) (void)over(reply);
}

/* Reads from the connection, to `to`, or into the buffer if that is NULL. */
static janus_status receive(janus_http_reply *reply, void *to, size_t max, size_t *got)
{
    if (reply->dry) return JANUS_WOULD_WAIT;
    struct jrt_client_line *line = reply->line;
    if (to != NULL) return jrt_wire_read(line->wire, line->io, to, max, got);
    size_t room = reply->client->in_bytes - reply->end;
    if (room == 0) return JANUS_INVALID; /* the trailers are too long */
    janus_status status = jrt_wire_read(line->wire, line->io, reply->in + reply->end, room, got);
    if (status == JANUS_OK) reply->end += *got;
    return status;
}

/* Takes bytes that have come, or reads others. */
static janus_status read_plain(janus_http_reply *reply, char *to, size_t max, size_t *got)
{
    size_t there = reply->end - reply->body;
    if (there == 0) return receive(reply, to, max, got);
    *got = there < max ? there : max;
    memcpy(to, reply->in + reply->body, *got);
    reply->body += *got;
    return JANUS_OK;
}

static janus_status read_length(janus_http_reply *reply, char *to, size_t max, size_t *got)
{
    if (max > reply->left) max = (size_t)reply->left;
    janus_status status = read_plain(reply, to, max, got);
    if (status != JANUS_OK) return fail(reply, status == JANUS_CLOSED ? JANUS_RESET : status);
    reply->left -= *got;
    if (reply->left == 0) (void)over(reply);
    return JANUS_OK;
}

static janus_status read_to_close(janus_http_reply *reply, char *to, size_t max, size_t *got)
{
    janus_status status = read_plain(reply, to, max, got);
    if (status == JANUS_CLOSED) return over(reply);
    return status == JANUS_OK ? status : fail(reply, status);
}

/* Reads on into the buffer, behind the head and, with `keep`, behind what is there. */
static janus_status refill(janus_http_reply *reply, bool keep)
{
    size_t floor = reply->head.bytes, got = 0;
    if (!keep) reply->body = reply->end = floor;
    if (reply->end == reply->client->in_bytes && reply->body > floor) {
        memmove(reply->in + floor, reply->in + reply->body, reply->end - reply->body);
        reply->end -= reply->body - floor;
        reply->body = floor;
    }
    janus_status status = receive(reply, NULL, 0, &got);
    if (status == JANUS_OK) return status;
    return fail(reply, status == JANUS_CLOSED ? JANUS_RESET : status);
}

static janus_status read_trailers(janus_http_reply *reply)
{
    for (;;) {
        enum jrt_http_step step =
            jrt_http_parse(&reply->trailers, reply->in + reply->body, reply->end - reply->body);
        if (step == JRT_HTTP_BAD) return fail(reply, JANUS_INVALID);
        if (step == JRT_HTTP_DONE) break;
        janus_status status = refill(reply, true);
        if (status != JANUS_OK) return status;
    }
    reply->trailers_at = reply->body;
    reply->body += reply->trailers.bytes;
    return over(reply);
}

/* Takes up to `max` bytes of the piece that was decoded last. It lies at `body`. */
static janus_status take_piece(janus_http_reply *reply, char *to, size_t max, size_t *got)
{
    *got = reply->piece < max ? reply->piece : max;
    memcpy(to, reply->in + reply->body, *got);
    reply->body += *got;
    reply->piece -= *got;
    return JANUS_OK;
}

static janus_status read_chunks(janus_http_reply *reply, char *to, size_t max, size_t *got)
{
    if (reply->piece > 0) return take_piece(reply, to, max, got);
    while (!reply->last_chunk) {
        struct jrt_http_text     data = {NULL, 0};
        size_t                   used = 0, there = reply->end - reply->body;
        enum jrt_http_chunk_step step =
            jrt_http_chunks_next(&reply->chunks, reply->in + reply->body, there, &used, &data);
        reply->body += used;
        if (step == JRT_HTTP_CHUNK_BAD) return fail(reply, JANUS_INVALID);
        if (step == JRT_HTTP_CHUNK_DATA) {
            reply->body -= data.bytes;
            reply->piece = data.bytes;
            return take_piece(reply, to, max, got);
        }
        if (step == JRT_HTTP_CHUNK_LAST) {
            reply->last_chunk = true;
            jrt_http_trailers_begin(&reply->trailers);
        } else {
            janus_status status = refill(reply, false);
            if (status != JANUS_OK) return status;
        }
    }
    return read_trailers(reply);
}

janus_status janus_http_reply_read(janus_http_reply *reply, void *to, size_t max, size_t *out_got)
{
    if (out_got != NULL) *out_got = 0;
    if (reply == NULL || to == NULL || max == 0 || out_got == NULL) return JANUS_INVALID;
    if (reply->body_status != JANUS_OK) return reply->body_status;
    if (reply->body_over) return JANUS_CLOSED;
    switch (reply->head.framing) {
    case JRT_HTTP_LENGTH: return read_length(reply, to, max, out_got);
    case JRT_HTTP_CHUNKED: return read_chunks(reply, to, max, out_got);
    default: return read_to_close(reply, to, max, out_got);
    }
}

/* Makes the block of a body larger, up to `most` bytes. */
static janus_status grow(char **block, size_t bytes, size_t *room, size_t most)
{
    size_t       larger = *room > most / 2 ? most : 2 * *room;
    char        *anew = NULL;
    janus_status status = jrt_http_alloc(larger, (void **)&anew);
    if (status != JANUS_OK) return status;
    memcpy(anew, *block, bytes);
    janus_free(*block);
    *block = anew;
    *room = larger;
    return JANUS_OK;
}

janus_status janus_http_reply_read_all(janus_http_reply *reply, size_t max, char **out,
                                       size_t *out_bytes)
{
    if (reply == NULL || out == NULL || out_bytes == NULL || max > SIZE_MAX / 4) {
        return JANUS_INVALID;
    }
    bool     known = reply->head.framing == JRT_HTTP_LENGTH || reply->body_over;
    uint64_t wanted = known ? reply->left : ALL_FIRST_BYTES;
    if (known && wanted > max) return fail(reply, JANUS_FULL);
    size_t       most = max + 2, bytes = 0, got = 0; /* a byte too much, and the NUL */
    size_t       room = wanted + 2 < most ? (size_t)wanted + 2 : most;
    char        *block = NULL;
    janus_status status = jrt_http_alloc(room, (void **)&block);
    if (status != JANUS_OK) return fail(reply, status);
    while (status == JANUS_OK) {
        if (bytes + 1 == room) status = grow(&block, bytes, &room, most);
        if (status != JANUS_OK) break;
        status = janus_http_reply_read(reply, block + bytes, room - 1 - bytes, &got);
        bytes += got;
        if (bytes > max) status = JANUS_FULL;
    }
    if (status != JANUS_CLOSED || !reply->body_over) {
        janus_free(block);
        return reply->body_over ? status : fail(reply, status);
    }
    block[bytes] = '\0';
    *out = block;
    *out_bytes = bytes;
    return JANUS_OK;
}

unsigned janus_http_reply_status(const janus_http_reply *reply)
{
    return reply != NULL ? reply->head.status : 0;
}

uint64_t janus_http_reply_length(const janus_http_reply *reply)
{
    if (reply == NULL || reply->head.framing == JRT_HTTP_NO_BODY) return 0;
    return reply->head.framing == JRT_HTTP_LENGTH ? reply->head.content_length : JANUS_HTTP_UNKNOWN;
}

/* Finds a field of a head that lies at `bytes`. */
static janus_status find(const struct jrt_http_head *head, const char *bytes, const char *name,
                         janus_http_text *out_value)
{
    int found = jrt_http_find(head, bytes, jrt_client_text(name), 0);
    if (found < 0) return JANUS_NOT_FOUND;
    struct jrt_http_text value = jrt_http_text_of(bytes, head->fields[found].value);
    *out_value = (janus_http_text){value.at, value.bytes};
    return JANUS_OK;
}

janus_status janus_http_reply_field(const janus_http_reply *reply, const char *name,
                                    janus_http_text *out_value)
{
    if (reply == NULL || name == NULL || out_value == NULL) return JANUS_INVALID;
    return find(&reply->head, reply->in, name, out_value);
}

janus_status janus_http_reply_field_at(const janus_http_reply *reply, size_t index,
                                       janus_http_text *out_name, janus_http_text *out_value)
{
    if (reply == NULL || out_name == NULL || out_value == NULL) return JANUS_INVALID;
    if (index >= reply->head.field_count) return JANUS_NOT_FOUND;
    const struct jrt_http_field *field = &reply->head.fields[index];
    struct jrt_http_text         name = jrt_http_text_of(reply->in, field->name);
    struct jrt_http_text         value = jrt_http_text_of(reply->in, field->value);
    *out_name = (janus_http_text){name.at, name.bytes};
    *out_value = (janus_http_text){value.at, value.bytes};
    return JANUS_OK;
}

janus_status janus_http_reply_trailer(const janus_http_reply *reply, const char *name,
                                      janus_http_text *out_value)
{
    if (reply == NULL || name == NULL || out_value == NULL) return JANUS_INVALID;
    if (!reply->body_over) return JANUS_STATE;
    if (reply->trailers.field_count == 0) return JANUS_NOT_FOUND;
    return find(&reply->trailers, reply->in + reply->trailers_at, name, out_value);
}

void janus_http_reply_destroy(janus_http_reply *reply)
{
    char   dropped[512];
    size_t got = 0;
    if (reply == NULL) return;
    reply->dry = true; /* what has come is read, and nothing is waited for */
    while (reply->line != NULL &&
           janus_http_reply_read(reply, dropped, sizeof dropped, &got) == JANUS_OK) {
    }
    let_go(reply);
    janus_free(reply);
}
