/* SPDX-License-Identifier: MIT */
/* A proxy: a request of a server becomes a call, and the answer of the call becomes its answer. */
#include "http/client.h"
#include "http/server.h"

enum { PART_BYTES = 4096 };

/* Whether a field concerns one connection only (RFC 9110, 7.6.1), or the library writes it. */
static bool is_ours(const struct jrt_http_head *head, const char *bytes, struct jrt_http_text name)
{
    static const char *const ours[] = {"host", "expect", "date", "proxy-authenticate",
                                       "proxy-authorization"};
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
        if (jrt_http_same(name, jrt_http_of(ours[i]))) return true;
    }
    return jrt_http_is_framing(name) ||
           jrt_http_has(head, bytes, JRT_HTTP_TEXT("connection"), name);
}

static janus_status read_body(void *argument, void *to, size_t max, size_t *out_got)
{
    return janus_http_read(argument, to, max, out_got);
}

janus_status jrt_client_forward_begin(struct jrt_client_request *request)
{
    janus_http_call_options *options = &request->options;
    struct janus_http       *http = jrt_http_block(options->forwards);
    if (!jrt_http_is_own(options->forwards)) return JANUS_STATE;
    request->method = jrt_http_private(http->request.method_text);
    bool has_body = http->request.content_length != 0 && !http->body_over;
    if (!has_body || options->source != NULL || options->body_bytes > 0) return JANUS_OK;
    if (http->body_got > 0) {
        request->why = "the body of the request was read before";
        return JANUS_INVALID;
    }
    options->source = read_body;
    options->argument = options->forwards;
    options->length = http->request.content_length;
    return JANUS_OK;
}

janus_status jrt_client_forward_target(const struct jrt_http_out       *out,
                                       const struct jrt_client_request *request,
                                       struct jrt_http_text            *target)
{
    const janus_http_request *from = &jrt_http_block(request->options.forwards)->request;
    size_t                    query = from->query.at != NULL ? from->query.bytes + 1 : 0;
    char                     *at = out->at + out->room / 2;
    if (from->path.bytes > out->room / 4 || query > out->room / 4) return JANUS_FULL;
    memcpy(at, from->path.at, from->path.bytes);
    if (query > 0) {
        at[from->path.bytes] = '?';
        memcpy(at + from->path.bytes + 1, from->query.at, query - 1);
    }
    *target = (struct jrt_http_text){at, from->path.bytes + query};
    return JANUS_OK;
}

/* Whether the caller gives a field of this name. */
static bool is_given(const struct jrt_client_request *request, struct jrt_http_text name)
{
    const janus_http_call_options *options = &request->options;
    for (size_t i = 0; i < options->field_count; i++) {
        if (jrt_http_same(name, jrt_http_of(options->fields[i].name))) return true;
    }
    return options->type != NULL && jrt_http_same(name, JRT_HTTP_TEXT("content-type"));
}

janus_status jrt_client_forward_fields(struct jrt_http_out             *out,
                                       const struct jrt_client_request *request)
{
    const struct janus_http    *http = jrt_http_block(request->options.forwards);
    const struct jrt_http_head *head = &http->head;
    const char                 *bytes = http->in + http->at;
    janus_status                status = JANUS_OK;
    for (size_t i = 0; status == JANUS_OK && i < head->field_count; i++) {
        struct jrt_http_text name = jrt_http_text_of(bytes, head->fields[i].name);
        if (is_ours(head, bytes, name) || is_given(request, name)) continue;
        status = jrt_http_put_field(out, name, jrt_http_text_of(bytes, head->fields[i].value));
    }
    if (status != JANUS_OK) return status;
    return jrt_http_put_field(out, JRT_HTTP_TEXT("Via"),
                              http->request.minor == 0 ? JRT_HTTP_TEXT("1.0 janusrt")
                                                       : JRT_HTTP_TEXT("1.1 janusrt"));
}

/* Whether the handler has set this field, which an answer has at most once. */
static bool is_set(const struct janus_http *http, struct jrt_http_text name)
{
    static const char *const single[] = {"accept-ranges",
                                         "age",
                                         "cache-control",
                                         "content-disposition",
                                         "content-encoding",
                                         "content-range",
                                         "content-type",
                                         "etag",
                                         "expires",
                                         "last-modified",
                                         "location",
                                         "retry-after",
                                         "server"};
    for (size_t i = 0; i < sizeof single / sizeof single[0]; i++) {
        if (jrt_http_same(name, jrt_http_of(single[i]))) return jrt_http_has_line(http, name);
    }
    return false;
}

/* Begins the answer: the status and the fields of another server. */
static janus_status begin(struct janus_http *http, const janus_http_reply *reply)
{
    const struct jrt_http_head *head = &reply->head;
    const size_t                before = http->lines_bytes;
    janus_status                status = JANUS_OK;
    for (size_t i = 0; status == JANUS_OK && i < head->field_count; i++) {
        struct jrt_http_text name = jrt_http_text_of(reply->in, head->fields[i].name);
        if (is_ours(head, reply->in, name) || is_set(http, name)) continue;
        status = jrt_http_add_line(http, name, jrt_http_text_of(reply->in, head->fields[i].value));
    }
    bool     known = jrt_http_find(head, reply->in, JRT_HTTP_TEXT("content-length"), 0) >= 0;
    uint64_t length = known ? head->content_length : JANUS_HTTP_UNKNOWN;
    if (head->status == 204 || head->status == 304) length = 0;
    if (status == JANUS_OK) status = jrt_http_do_begin(http, head->status, NULL, length);
    /* The handler answers by itself then, without the fields of the other server. */
    if (http->stage == JRT_HTTP_STAGE_NONE) http->lines_bytes = before;
    return status;
}

/* Answers with what is left of another server's answer. */
static janus_status pass_back(struct janus_http *http, janus_http_reply *reply)
{
    char         bytes[PART_BYTES];
    size_t       got = 0;
    janus_status status = http->stage == JRT_HTTP_STAGE_NONE ? begin(http, reply) : JANUS_STATE;
    while (status == JANUS_OK) {
        status = janus_http_reply_read(reply, bytes, sizeof bytes, &got);
        if (status == JANUS_OK) status = jrt_http_do_write(http, bytes, got);
        if (status == JANUS_OK) status = jrt_http_do_flush(http);
    }
    return status == JANUS_CLOSED && reply->body_over ? JANUS_OK : status;
}

janus_status janus_http_answer_reply(janus_http *http, janus_http_reply *reply)
{
    janus_status status = JANUS_INVALID;
    if (http != NULL && reply != NULL) {
        status = jrt_http_is_own(http) ? pass_back(jrt_http_block(http), reply) : JANUS_STATE;
    }
    janus_http_reply_destroy(reply);
    return status;
}
