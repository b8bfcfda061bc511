/* SPDX-License-Identifier: MIT */
#include "understand.h"

#include <stdarg.h>
#include <stdio.h>

enum { IN_HEAD, IN_BODY, IN_TRAILERS, OVER };

__attribute__((format(printf, 2, 3))) static void say(struct listener *listener, const char *format,
                                                      ...)
{
    va_list arguments;
    va_start(arguments, format);
    int bytes = vsnprintf(listener->text + listener->text_bytes,
                          sizeof listener->text - listener->text_bytes, format, arguments);
    va_end(arguments);
    size_t left = sizeof listener->text - listener->text_bytes - 1;
    listener->text_bytes += (size_t)bytes < left ? (size_t)bytes : left;
}

static void begin_head(struct listener *listener)
{
    listener->state = IN_HEAD;
    listener->body_bytes = 0;
    if (listener->answers)
        jrt_http_answer_begin(&listener->head, listener->to_head);
    else
        jrt_http_request_begin(&listener->head);
}

void listener_begin(struct listener *listener, parse_call *parse, bool answers, bool to_head)
{
    memset(listener, 0, offsetof(struct listener, text) + 1);
    listener->parse = parse;
    listener->answers = answers;
    listener->to_head = to_head;
    jrt_http_head_init(&listener->head, listener->fields, ROOM_FIELDS, NULL);
    jrt_http_head_init(&listener->trailers, listener->trailer_fields, ROOM_FIELDS, NULL);
    begin_head(listener);
}

static void refuse(struct listener *listener, const struct jrt_http_head *head, unsigned status,
                   const char *why)
{
    listener->state = OVER;
    listener->why = why;
    listener->wrong = listener->at + (head != NULL ? head->wrong : 0);
    if (listener->answers)
        say(listener, "refused");
    else
        say(listener, "%u", status);
}

static void say_head(struct listener *listener, const char *bytes)
{
    static const char *const    methods[] = {"other:", "GET",     "HEAD",  "POST", "PUT",
                                             "DELETE", "OPTIONS", "PATCH", "TRACE"};
    static const char *const    framings[] = {"none", "length", "chunked", "until-close"};
    const struct jrt_http_head *head = &listener->head;
    if (listener->answers) {
        say(listener, "%s%u", listener->to_head ? "HEAD " : "", head->status);
    } else {
        say(listener, "%s", methods[head->method]);
        if (head->method == JRT_HTTP_OTHER)
            say(listener, "%.*s", head->method_text.bytes, bytes + head->method_text.at);
        say(listener, " %.*s", head->path.bytes, bytes + head->path.at);
        if (head->has_query) say(listener, " ?%.*s", head->query.bytes, bytes + head->query.at);
    }
    say(listener, " %s", framings[head->framing]);
    if (head->framing == JRT_HTTP_LENGTH)
        say(listener, " %llu", (unsigned long long)head->content_length);
    say(listener, "%s%s%s", head->keep_alive ? " keep" : " close",
        head->expect_continue ? " expect" : "", head->upgrade ? " upgrade" : "");
}

static void next_message(struct listener *listener)
{
    bool stays = listener->head.keep_alive && !(listener->answers && listener->head.status == 101);
    listener->messages++;
    begin_head(listener);
    if (!stays) listener->state = OVER;
}

static void take_body(struct listener *listener, const char *bytes, size_t count)
{
    size_t room = sizeof listener->body - listener->body_bytes;
    memcpy(listener->body + listener->body_bytes, bytes, count < room ? count : room);
    listener->body_bytes += count < room ? count : room;
}

static void say_body(struct listener *listener)
{
    bool empty = listener->head.framing == JRT_HTTP_LENGTH && listener->head.content_length == 0;
    if (empty && !listener->answers) return;
    say(listener, " body \"");
    if (sizeof listener->text - listener->text_bytes > ROOM_BODY + 2) { /* bodies may have NUL */
        memcpy(listener->text + listener->text_bytes, listener->body, listener->body_bytes);
        listener->text_bytes += listener->body_bytes;
    }
    say(listener, "\"");
}

/* These return false if more bytes must come. */

static bool hear_head(struct listener *listener, const char *bytes, size_t count)
{
    if (listener->at == count) return false;
    enum jrt_http_step step =
        listener->parse(&listener->head, bytes + listener->at, count - listener->at);
    if (step == JRT_HTTP_MORE) return false;
    if (listener->messages > 0) say(listener, " | ");
    if (step == JRT_HTTP_BAD) {
        refuse(listener, &listener->head, listener->head.status, listener->head.why);
        return true;
    }
    say_head(listener, bytes + listener->at);
    listener->at += listener->head.bytes;
    listener->state = IN_BODY;
    if (listener->head.framing == JRT_HTTP_NO_BODY) next_message(listener);
    if (listener->head.framing == JRT_HTTP_CHUNKED) jrt_http_chunks_begin(&listener->chunks);
    return true;
}

static bool hear_chunks(struct listener *listener, const char *bytes, size_t count)
{
    struct jrt_http_text     data;
    size_t                   used;
    enum jrt_http_chunk_step step = jrt_http_chunks_next(&listener->chunks, bytes + listener->at,
                                                         count - listener->at, &used, &data);
    if (step == JRT_HTTP_CHUNK_BAD) {
        listener->at += used;
        say(listener, " body ");
        refuse(listener, NULL, 400, listener->chunks.why);
        return true;
    }
    listener->at += used;
    if (step == JRT_HTTP_CHUNK_DATA) take_body(listener, data.at, data.bytes);
    if (step == JRT_HTTP_CHUNK_LAST) {
        listener->state = IN_TRAILERS;
        jrt_http_trailers_begin(&listener->trailers);
    }
    return step != JRT_HTTP_CHUNK_MORE;
}

static bool hear_body(struct listener *listener, const char *bytes, size_t count)
{
    uint64_t length = listener->head.content_length;
    if (listener->head.framing == JRT_HTTP_CHUNKED) return hear_chunks(listener, bytes, count);
    if (listener->head.framing == JRT_HTTP_CLOSE || count - listener->at < length) return false;
    take_body(listener, bytes + listener->at, (size_t)length);
    listener->at += (size_t)length;
    say_body(listener);
    next_message(listener);
    return true;
}

static bool hear_trailers(struct listener *listener, const char *bytes, size_t count)
{
    struct jrt_http_head *trailers = &listener->trailers;
    enum jrt_http_step step = listener->parse(trailers, bytes + listener->at, count - listener->at);
    if (step == JRT_HTTP_MORE) return false;
    if (step == JRT_HTTP_BAD) {
        say(listener, " body ");
        refuse(listener, trailers, trailers->status, trailers->why);
        return true;
    }
    listener->at += trailers->bytes;
    say_body(listener);
    if (trailers->field_count > 0) say(listener, " trailers %u", trailers->field_count);
    next_message(listener);
    return true;
}

void listener_hear(struct listener *listener, const char *bytes, size_t count)
{
    bool on = true;
    while (on) {
        switch (listener->state) {
        case IN_HEAD: on = hear_head(listener, bytes, count); break;
        case IN_BODY: on = hear_body(listener, bytes, count); break;
        case IN_TRAILERS: on = hear_trailers(listener, bytes, count); break;
        default: return;
        }
    }
}

void listener_end(struct listener *listener, const char *bytes, size_t count)
{
    if (listener->state == IN_BODY && listener->head.framing == JRT_HTTP_CLOSE) {
        take_body(listener, bytes + listener->at, count - listener->at);
        say_body(listener);
    } else if (listener->state == IN_BODY || listener->state == IN_TRAILERS) {
        say(listener, " more");
    } else if (listener->state == IN_HEAD && (listener->at < count || listener->messages == 0)) {
        say(listener, "%smore", listener->messages > 0 ? " | " : "");
    }
}

bool listener_same(const struct listener *left, const struct listener *right)
{
    return left->text_bytes == right->text_bytes &&
           memcmp(left->text, right->text, left->text_bytes) == 0 && left->wrong == right->wrong &&
           (left->why == right->why ||
            (left->why != NULL && right->why != NULL && strcmp(left->why, right->why) == 0));
}
