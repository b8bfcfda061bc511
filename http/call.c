/* SPDX-License-Identifier: MIT */
/* A call: the request's head and body, the wait for the head of the answer, the second try. */
#include "http/block.h"
#include "http/client.h"

#include <janusrt/explain.h>
#include <janusrt/memory.h>

enum { PART_BYTES = 8192 }; /* of a body that comes from a function */

#define EXPECT_NS JANUS_SECONDS /* for the server to say "100 Continue" */

static janus_status wrong(struct jrt_client_request *request, const char *why)
{
    request->why = why;
    return JANUS_INVALID;
}

/* Whether the server may get the request twice (RFC 9110, 9.2.2). */
static bool is_repeatable(const struct jrt_client_request *request)
{
    static const char *const idempotent[] = {"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"};
    if (request->options.source != NULL) return false;
    if (request->options.repeatable) return true;
    for (size_t i = 0; i < sizeof idempotent / sizeof idempotent[0]; i++) {
        if (jrt_http_equal(request->method, jrt_client_text(idempotent[i]))) return true;
    }
    return false;
}

/* Whether a request without a body says so (RFC 9110, 8.6). */
static bool expects_body(struct jrt_http_text method)
{
    return jrt_http_equal(method, JRT_HTTP_TEXT("POST")) ||
           jrt_http_equal(method, JRT_HTTP_TEXT("PUT")) ||
           jrt_http_equal(method, JRT_HTTP_TEXT("PATCH"));
}

/* Whether the body waits until the server asks for it. */
static bool expects(const struct jrt_client_request *request)
{
    return request->options.expects &&
           (request->options.source != NULL || request->options.body_bytes > 0);
}

static janus_status put_target(struct jrt_http_out *out, struct jrt_client_request *request)
{
    struct jrt_http_text target = request->url.target;
    if (target.bytes == 0 && request->options.forwards != NULL) {
        janus_status status = jrt_client_forward_target(out, request, &target);
        if (status != JANUS_OK) return status;
    }
    bool rootless = target.bytes == 0 || (target.at[0] != '/' && target.at[0] != '*');
    if (rootless) { /* "?query", or nothing */
        if (target.bytes > out->room / 4) return JANUS_FULL;
        char *whole = out->at + out->room / 2;       /* behind the line that is written next */
        memmove(whole + 1, target.at, target.bytes); /* a forwarded target lies there */
        whole[0] = '/';
        target = (struct jrt_http_text){whole, target.bytes + 1};
    }
    janus_status status = jrt_http_put_request(out, request->method, target);
    return status == JANUS_INVALID ? wrong(request, "the method or the address is malformed")
                                   : status;
}

static janus_status put_pair(struct jrt_http_out *out, struct jrt_client_request *request,
                             const char *name, const char *value)
{
    if (name == NULL || value == NULL) return wrong(request, "a field has no name or no value");
    struct jrt_http_text field = jrt_client_text(name);
    if (jrt_http_is_framing(field) || jrt_http_same(field, JRT_HTTP_TEXT("host")) ||
        jrt_http_same(field, JRT_HTTP_TEXT("expect"))) {
        return wrong(request, "the client writes one of the fields itself");
    }
    janus_status status = jrt_http_put_field(out, field, jrt_client_text(value));
    return status == JANUS_INVALID ? wrong(request, "a field is malformed") : status;
}

/* Says how long the body is. */
static janus_status put_framing(struct jrt_http_out *out, const struct jrt_client_request *request)
{
    const janus_http_call_options *options = &request->options;
    uint64_t length = options->source != NULL ? options->length : options->body_bytes;
    if (length == JANUS_HTTP_UNKNOWN) {
        return jrt_http_put_field(out, JRT_HTTP_TEXT("Transfer-Encoding"),
                                  JRT_HTTP_TEXT("chunked"));
    }
    if (length == 0 && !expects_body(request->method)) return JANUS_OK;
    return jrt_http_put_number(out, JRT_HTTP_TEXT("Content-Length"), length);
}

/* Writes the head of the request. */
static janus_status put_head(struct jrt_http_out *out, struct jrt_client_request *request)
{
    const janus_http_call_options *options = &request->options;
    janus_status                   status = put_target(out, request);
    if (status == JANUS_OK)
        status = jrt_http_put_field(out, JRT_HTTP_TEXT("Host"), request->url.authority);
    for (size_t i = 0; status == JANUS_OK && i < options->field_count; i++) {
        if (!jrt_client_may_send(request, options->fields[i].name)) continue;
        status = put_pair(out, request, options->fields[i].name, options->fields[i].value);
    }
    if (status == JANUS_OK && options->forwards != NULL)
        status = jrt_client_forward_fields(out, request);
    if (status == JANUS_OK && options->type != NULL)
        status = put_pair(out, request, "Content-Type", options->type);
    if (status == JANUS_OK && request->upgrade.bytes > 0) {
        if (out->room - out->bytes < request->upgrade.bytes) return JANUS_FULL;
        memcpy(out->at + out->bytes, request->upgrade.at, request->upgrade.bytes);
        out->bytes += request->upgrade.bytes;
    }
    if (status == JANUS_OK) status = put_framing(out, request);
    if (status == JANUS_OK && expects(request))
        status = jrt_http_put_field(out, JRT_HTTP_TEXT("Expect"), JRT_HTTP_TEXT("100-continue"));
    return status == JANUS_OK ? jrt_http_put_end(out) : status;
}

static janus_status send_pieces(const struct jrt_client_line *line, const janus_io_piece *pieces,
                                uint32_t count)
{
    size_t done = 0;
    return jrt_wire_write(line->wire, line->io, pieces, count, &done);
}

/* Sends a part of a body: as it is, or as a chunk. */
static janus_status send_part(const struct jrt_client_line *line, const char *part, size_t bytes,
                              bool chunked)
{
    char           size[JRT_HTTP_CHUNK_HEAD_BYTES];
    janus_io_piece pieces[3];
    pieces[1] = (janus_io_piece){(void *)(uintptr_t)part, bytes};
    if (!chunked) return send_pieces(line, pieces + 1, 1);
    pieces[0] = (janus_io_piece){size, jrt_http_chunk_head(size, bytes)};
    pieces[2] = (janus_io_piece){(void *)(uintptr_t)JRT_HTTP_CHUNK_END, 2};
    return send_pieces(line, pieces, 3);
}

/* Sends what the source gives. *gave_up: an error of the source, not of the connection. */
static janus_status send_source(const struct jrt_client_line  *line,
                                const janus_http_call_options *options, char *part, bool *gave_up)
{
    bool     chunked = options->length == JANUS_HTTP_UNKNOWN;
    uint64_t left = options->length;
    for (;;) {
        size_t       got = 0;
        janus_status status = options->source(options->argument, part, PART_BYTES, &got);
        *gave_up = true;
        if (status == JANUS_CLOSED) break;
        if (status != JANUS_OK) return status;
        if (got == 0 || got > PART_BYTES) return JANUS_INVALID;
        if (!chunked && got > left) return JANUS_FULL;
        *gave_up = false;
        if (!chunked) left -= got;
        status = send_part(line, part, got, chunked);
        if (status != JANUS_OK) return status;
    }
    if (!chunked && left > 0) return JANUS_FULL;
    *gave_up = false;
    return chunked ? send_part(line, JRT_HTTP_LAST_CHUNK "\r\n", 5, false) : JANUS_OK;
}

/* Sends the head, and the body behind it. Without bytes of a head: the body alone. */
static janus_status send_request(janus_http_reply *reply, const struct jrt_client_request *request,
                                 size_t head_bytes, bool *gave_up)
{
    const janus_http_call_options *options = &request->options;
    const struct jrt_client_line  *line = reply->line;
    *gave_up = false;
    if (options->source == NULL) {
        const janus_io_piece pieces[] = {{reply->in, head_bytes},
                                         {(void *)(uintptr_t)options->body, options->body_bytes}};
        if (head_bytes == 0) return send_pieces(line, pieces + 1, 1);
        return send_pieces(line, pieces, options->body_bytes > 0 ? 2 : 1);
    }
    char        *part = NULL;
    janus_status status = jrt_http_alloc(PART_BYTES, (void **)&part);
    *gave_up = status != JANUS_OK;
    if (status == JANUS_OK && head_bytes > 0)
        status = send_part(line, reply->in, head_bytes, false);
    if (status == JANUS_OK) status = send_source(line, options, part, gave_up);
    janus_free(part);
    return status;
}

/* Drops an answer below 200, and begins the next. */
static janus_status skip_interim(janus_http_reply *reply)
{
    size_t bytes = reply->head.bytes;
    if (++reply->interim > JRT_CLIENT_INTERIM_MAX) return JANUS_INVALID;
    memmove(reply->in, reply->in + bytes, reply->end - bytes);
    reply->end -= bytes;
    jrt_http_answer_begin(&reply->head, reply->head.to_head);
    return JANUS_OK;
}

/* Reads the head of the answer. `leave`, if it is not NULL: "100 Continue" ends the call, too. */
static janus_status read_head(janus_http_reply *reply, struct jrt_client_request *request,
                              bool *leave)
{
    for (;;) {
        size_t             got = 0;
        janus_status       status;
        enum jrt_http_step step = JRT_HTTP_MORE;
        if (reply->end > 0) step = jrt_http_parse(&reply->head, reply->in, reply->end);
        if (step == JRT_HTTP_BAD) return wrong(request, reply->head.why);
        if (step == JRT_HTTP_DONE) {
            if (reply->head.status >= 200) return JANUS_OK;
            if (reply->head.status == 101) {
                if (request->upgrade.bytes > 0) return JANUS_OK;
                return wrong(request, "the server switches to a protocol that nobody asked for");
            }
            bool may = leave != NULL && reply->head.status == 100;
            if (skip_interim(reply) != JANUS_OK)
                return wrong(request, "too many answers with a status below 200");
            if (!may) continue;
            *leave = true;
            return JANUS_OK;
        }
        size_t room = reply->client->in_bytes - reply->end;
        if (room == 0) return wrong(request, "the head of the answer is too long");
        status =
            jrt_wire_read(reply->line->wire, reply->line->io, reply->in + reply->end, room, &got);
        if (status == JANUS_CLOSED) return JANUS_RESET;
        if (status != JANUS_OK) return status;
        reply->end += got;
        reply->heard = true; /* from now on the buffer does not hold the request any more */
    }
}

/* Waits until the server asks for the body, for a while. *refused: it answers instead. */
static janus_status await_leave(janus_http_reply *reply, struct jrt_client_request *request,
                                bool *refused)
{
    uint64_t soon = janus_now_ns() + EXPECT_NS;
    bool     leave = false, bounded = soon < request->deadline;
    janus_io io = reply->line->io;
    if (bounded) JANUS_IGNORE(janus_io_set_deadline(io, JANUS_IO_READ, soon));
    janus_status status = read_head(reply, request, &leave);
    if (bounded) JANUS_IGNORE(janus_io_set_deadline(io, JANUS_IO_READ, request->deadline));
    *refused = status == JANUS_OK && !leave;
    return status == JANUS_DEADLINE && bounded ? JANUS_OK : status;
}

/* Makes sure that the line has a connection on which nothing has come yet. */
static janus_status prepare(janus_http_reply *reply, struct jrt_client_request *request, bool fresh)
{
    struct jrt_client_line *line = reply->line;
    janus_status            status = JANUS_OK;
    if (line->used && !fresh) {
        char   byte;
        size_t got = 0;
        /* A server that has closed, or that speaks unasked, cannot be asked. */
        JANUS_IGNORE(janus_io_set_deadline(line->io, JANUS_IO_BOTH, JANUS_IO_NEVER));
        fresh = jrt_wire_try_read(line->wire, line->io, &byte, 1, &got) != JANUS_WOULD_WAIT;
    }
    if (fresh || !line->used)
        status = jrt_client_open(reply->client, line, request->deadline, &request->why);
    if (status != JANUS_OK) return status;
    JANUS_IGNORE(janus_io_set_deadline(line->io, JANUS_IO_BOTH, request->deadline));
    return JANUS_OK;
}

/* Sends the request and reads the head. */
static janus_status exchange(janus_http_reply *reply, struct jrt_client_request *request,
                             size_t head_bytes)
{
    bool gave_up = false, refused = false;
    reply->end = 0;
    reply->interim = 0;
    jrt_http_answer_begin(&reply->head, jrt_http_equal(request->method, JRT_HTTP_TEXT("HEAD")));
    if (expects(request)) {
        janus_status status = send_part(reply->line, reply->in, head_bytes, false);
        if (status == JANUS_OK) status = await_leave(reply, request, &refused);
        if (refused) reply->head.keep_alive = false; /* the server may wait for the body */
        if (status != JANUS_OK || refused) return status == JANUS_BROKEN ? JANUS_RESET : status;
        head_bytes = 0;
    }
    janus_status sent = send_request(reply, request, head_bytes, &gave_up);
    /* A server may refuse a body before it has read it, and then close. */
    bool early = !gave_up && (sent == JANUS_BROKEN || sent == JANUS_RESET);
    if (sent != JANUS_OK && !early) return sent;
    janus_status status = read_head(reply, request, NULL);
    if (early && status != JANUS_OK && status != JANUS_INVALID) status = JANUS_RESET;
    if (early) reply->head.keep_alive = false;
    return status;
}

/* Reads the head of the request as a server of ours does: what it refuses is not sent. */
static janus_status check_head(janus_http_reply *reply, struct jrt_client_request *request,
                               size_t head_bytes)
{
    jrt_http_request_begin(&reply->head);
    if (jrt_http_parse(&reply->head, reply->in, head_bytes) == JRT_HTTP_DONE) return JANUS_OK;
    unsigned status = reply->head.status;
    return status == 414 || status == 431 ? JANUS_FULL : wrong(request, reply->head.why);
}

/* Makes an answer, with the head of the request in its buffer. */
static janus_status make_reply(janus_http_client *client, struct jrt_client_request *request,
                               janus_http_reply **out, size_t *head_bytes)
{
    size_t            fields = client->options.max_fields * sizeof(struct jrt_http_field);
    size_t            bytes = sizeof(struct janus_http_reply) + fields;
    janus_http_reply *reply = NULL;
    janus_status      status = jrt_http_alloc(bytes + client->in_bytes, (void **)&reply);
    if (status != JANUS_OK) return status;
    memset(reply, 0, sizeof *reply);
    reply->client = client;
    reply->in = (char *)reply + bytes;
    jrt_http_head_init(&reply->head, reply->fields, (uint16_t)client->options.max_fields,
                       &client->limits);
    jrt_http_head_init(&reply->trailers, reply->trailer_fields, JRT_CLIENT_TRAILERS_MAX, NULL);
    struct jrt_http_out head = {reply->in, client->options.max_head_bytes, 0};
    status = put_head(&head, request);
    *head_bytes = head.bytes;
    if (status == JANUS_OK) status = check_head(reply, request, head.bytes);
    if (status == JANUS_OK)
        *out = reply;
    else
        janus_free(reply);
    return status;
}

janus_status jrt_client_call(janus_http_client *client, struct jrt_client_request *request,
                             janus_http_reply **out)
{
    struct jrt_client_user *user = NULL;
    janus_http_reply       *reply = NULL;
    size_t                  head_bytes = 0;
    janus_status            status = make_reply(client, request, &reply, &head_bytes);
    if (status != JANUS_OK) return status;
    status = jrt_client_user_of(client, &user);
    if (status == JANUS_OK)
        status = jrt_client_take(client, user, &request->url, request->deadline, &reply->line);
    if (status != JANUS_OK) {
        janus_free(reply);
        return status;
    }
    status = prepare(reply, request, false);
    bool kept = reply->line->used;
    if (status == JANUS_OK) {
        status = exchange(reply, request, head_bytes);
        bool lost = status == JANUS_RESET && !reply->heard;
        if (lost && kept && is_repeatable(request)) {
            jrt_client_count(client, &client->repeats);
            status = prepare(reply, request, true);
            if (status == JANUS_OK) status = exchange(reply, request, head_bytes);
        }
    }
    if (status != JANUS_OK) {
        jrt_client_give(client, reply->line, false);
        janus_free(reply);
        return jrt_client_status(status);
    }
    jrt_client_body_begin(reply);
    *out = reply;
    return JANUS_OK;
}

janus_status jrt_client_request_init(janus_http_client *client, const char *method, const char *url,
                                     const char *scheme, struct jrt_client_request *request)
{
    const janus_http_call_options *options = &request->options;
    if (options->field_count > 0 && options->fields == NULL) return JANUS_INVALID;
    if (options->body_bytes > 0 && (options->body == NULL || options->source != NULL)) {
        return wrong(request, "the body is given twice, or not at all");
    }
    if (options->forwards != NULL) {
        if (options->max_redirects > 0) return wrong(request, "a proxy follows no redirect");
        janus_status status = jrt_client_forward_begin(request);
        if (status != JANUS_OK) return status;
    }
    if (method != NULL) request->method = jrt_client_text(method);
    if (jrt_http_equal(request->method, JRT_HTTP_TEXT("CONNECT"))) {
        return wrong(request, "the client makes no tunnels");
    }
    uint64_t now = janus_now_ns(), sum = now + client->options.call_ns;
    request->deadline = options->deadline_ns;
    if (request->deadline == 0) {
        request->deadline = sum < now ? JANUS_IO_NEVER : sum;
    } else if (request->deadline <= now) {
        request->why = "the deadline had passed before the call. deadline_ns is a moment, as "
                       "janus_now_ns() + 5 * JANUS_SECONDS, and no duration";
        return JANUS_DEADLINE;
    }
    janus_status status = jrt_http_url_read(url, scheme, &request->url, &request->why);
    if (status == JANUS_OK && request->url.secure && client->options.wire == NULL) {
        request->why = "the client was made without options.wire, so it has no TLS";
        return JANUS_UNAVAILABLE;
    }
    return status;
}

/* Replaces what an earlier call has left for janus_explain. */
static janus_status explain(janus_status status, const char *why)
{
    return janus_explain_as(status, "janus_http_call", why);
}

janus_status janus_http_call(janus_http_client *client, const char *method, const char *url,
                             const janus_http_call_options *options, janus_http_reply **out)
{
    struct jrt_client_request request = {.why = NULL};
    static const char         missing[] = "an argument is missing, or the options have no size";
    janus_status              status = JANUS_INVALID;
    if (client == NULL || url == NULL || out == NULL) return explain(status, missing);
    if (options != NULL) {
        size_t bytes = options->struct_bytes;
        if (bytes < sizeof bytes || bytes > sizeof *options || bytes % 8 != 0)
            return explain(status, missing);
        memcpy(&request.options, options, bytes);
    }
    if (method == NULL && request.options.forwards == NULL) return explain(status, missing);
    *out = NULL;
    status = jrt_client_request_init(client, method, url, "http", &request);
    if (status == JANUS_OK) {
        request.why = NULL;
        status = jrt_client_call_on(client, &request, out);
    }
    bool told = status == JANUS_INVALID || status == JANUS_DENIED || status == JANUS_UNAVAILABLE;
    if (!told && request.why == NULL) return status; /* a call of io.h has explained it */
    if (request.why == NULL) request.why = janus_status_text(status);
    if (request.options.out_why != NULL && told) {
        *request.options.out_why = request.why;
    }
    return explain(status, request.why);
}
