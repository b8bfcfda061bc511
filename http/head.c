/* SPDX-License-Identifier: MIT */
/* The first lines of requests and answers. fields.c has the lines below. */
#include "http/head.h"
#include "http/parse.h"

#include <stddef.h>

const char *jrt_http_fail(struct jrt_http_head *head, const struct jrt_http_line *line,
                          const char *at, uint16_t status, const char *why)
{
    head->stage = JRT_HTTP_STAGE_BAD;
    head->status = head->kind == JRT_HTTP_ANSWER ? 502 : status;
    head->wrong = (uint16_t)(at - line->floor);
    head->why = why;
    return NULL;
}

const char *jrt_http_cut(struct jrt_http_head *head, const struct jrt_http_line *line)
{
    size_t start = (size_t)(line->start - line->floor);
    size_t stop = (size_t)(line->end - line->floor);
    head->next = (uint16_t)start;
    if (stop == start + head->max_line_bytes) {
        if (head->stage != JRT_HTTP_STAGE_FIELDS && head->kind == JRT_HTTP_REQUEST)
            return jrt_http_fail(head, line, line->end, 414, "the request line is too long");
        return jrt_http_fail(head, line, line->end, 431, "a line of the head is too long");
    }
    if (stop == head->limit)
        return jrt_http_fail(head, line, line->end, 431, "the head is too long");
    return NULL;
}

/* Whether the bytes at `at` begin `text`, as far as the line goes. */
static bool may_be(const struct jrt_http_line *line, const char *at, const char *text, size_t bytes)
{
    size_t left = (size_t)(line->end - at);
    return memcmp(at, text, left < bytes ? left : bytes) == 0;
}

static bool is_at(const struct jrt_http_line *line, const char *at, const char *text, size_t bytes)
{
    return (size_t)(line->end - at) >= bytes && memcmp(at, text, bytes) == 0;
}

/* CR LF at `at`. */
static const char *line_end(struct jrt_http_head *head, const struct jrt_http_line *line,
                            const char *at, const char *why)
{
    if (is_at(line, at, "\r\n", 2)) return at + 2;
    if (may_be(line, at, "\r\n", 2)) return jrt_http_cut(head, line);
    return jrt_http_fail(head, line, at, 400, why);
}

/* "HTTP/1.1" or "HTTP/1.0"; `at` may be line->end. */
__attribute__((noinline, cold)) static const char *version(struct jrt_http_head       *head,
                                                           const struct jrt_http_line *line,
                                                           const char                 *at)
{
    if (is_at(line, at, "HTTP/1.1", 8)) {
        head->minor = 1;
        return at + 8;
    }
    size_t      left = (size_t)(line->end - at);
    const char *digit = at + 5;
    if (!may_be(line, at, "HTTP/", 5))
        return jrt_http_fail(head, line, at, 400, "HTTP/1.1 is expected here");
    if (left > 5 && !jrt_http_is_digit(digit[0]))
        return jrt_http_fail(head, line, digit, 400, "the version needs a digit here");
    if (left > 6 && digit[1] != '.')
        return jrt_http_fail(head, line, digit + 1, 400, "the version needs a dot here");
    if (left > 7 && !jrt_http_is_digit(digit[2]))
        return jrt_http_fail(head, line, digit + 2, 400, "the version needs a digit here");
    if (left < 8) return jrt_http_cut(head, line);
    if (digit[0] != '1' || digit[2] > '1')
        return jrt_http_fail(head, line, at, 505, "the version is neither 1.0 nor 1.1");
    head->minor = (uint8_t)(digit[2] - '0');
    return at + 8;
}

static enum jrt_http_method method_of(struct jrt_http_text text)
{
    static const struct {
        uint8_t method, bytes;
        char    text[8];
    } known[] = {
        {JRT_HTTP_GET, 3, "GET"},       {JRT_HTTP_HEAD, 4, "HEAD"},
        {JRT_HTTP_POST, 4, "POST"},     {JRT_HTTP_PUT, 3, "PUT"},
        {JRT_HTTP_DELETE, 6, "DELETE"}, {JRT_HTTP_OPTIONS, 7, "OPTIONS"},
        {JRT_HTTP_PATCH, 5, "PATCH"},   {JRT_HTTP_TRACE, 5, "TRACE"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (text.bytes == known[i].bytes && memcmp(text.at, known[i].text, text.bytes) == 0)
            return known[i].method;
    return JRT_HTTP_OTHER;
}

/* "GET ": the method and the space behind it. */
static const char *method(struct jrt_http_head *head, const struct jrt_http_line *line)
{
    const char *at = line->start;
    if (is_at(line, at, "GET ", 4)) {
        head->method = JRT_HTTP_GET;
        head->method_text = jrt_http_part_of(line, at, at + 3);
        return at + 4;
    }
    const char *stop = jrt_http_scan_token(line->floor, at, line->end);
    if (stop - at > JRT_HTTP_METHOD_BYTES)
        return jrt_http_fail(head, line, at, 501, "the method has more than 32 bytes");
    if (stop == line->end) return jrt_http_cut(head, line);
    if (stop == at)
        return jrt_http_fail(head, line, at, 400, "a method is expected at the beginning");
    if (*stop != ' ')
        return jrt_http_fail(head, line, stop, 400, "one space is expected after the method");
    if (stop - at == 7 && memcmp(at, "CONNECT", 7) == 0)
        return jrt_http_fail(head, line, at, 501, "CONNECT is for proxies, and this is a server");
    head->method = (uint8_t)method_of((struct jrt_http_text){at, (size_t)(stop - at)});
    head->method_text = jrt_http_part_of(line, at, stop);
    return stop + 1;
}

/* "/path?query" up to the space behind it. Sets path and query. */
static const char *origin_form(struct jrt_http_head *head, const struct jrt_http_line *line,
                               const char *at)
{
    const char *path = at, *query = NULL;
    uint8_t class = JRT_HTTP_PATH;
    if (*at == '/') at++; /* many paths are nothing else */
    for (;;) {
        if (at == line->end || *at != ' ') at = jrt_http_scan_target(line->floor, at, line->end);
        if (at == line->end) return jrt_http_cut(head, line);
        if (*at == ' ') break;
        if (*at == '%') {
            if (line->end - at < 3) return jrt_http_cut(head, line);
            if (!jrt_http_is(at[1], JRT_HTTP_HEX) || !jrt_http_is(at[2], JRT_HTTP_HEX))
                return jrt_http_fail(head, line, at, 400, "two digits must follow % in a target");
            at += 3;
        } else if (*at == '?' && query == NULL) {
            class = JRT_HTTP_QUERY;
            query = ++at;
        } else if (jrt_http_is(*at, class)) {
            at++;
        } else {
            return jrt_http_fail(head, line, at, 400, "a byte must not stand in a target");
        }
    }
    head->path = jrt_http_part_of(line, path, query != NULL ? query - 1 : at);
    head->has_query = query != NULL;
    if (query != NULL) head->query = jrt_http_part_of(line, query, at);
    return at;
}

/* The bytes of "http://" or "https://" at `at`, in any case. 0: neither. -1: too few bytes. */
static int scheme_bytes(const struct jrt_http_line *line, const char *at)
{
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < 2; i++) {
        for (int byte = 0;; byte++) {
            if (schemes[i][byte] == '\0') return byte;
            if (at + byte == line->end) return -1;
            if (jrt_http_lower(at[byte]) != schemes[i][byte]) break;
        }
    }
    return 0;
}

/* "http://host/path". If there is no path, it is "/": the second slash of the scheme stands in. */
__attribute__((noinline, cold)) static const char *absolute_form(struct jrt_http_head       *head,
                                                                 const struct jrt_http_line *line,
                                                                 const char                 *at)
{
    int bytes = scheme_bytes(line, at);
    if (bytes < 0) return jrt_http_cut(head, line);
    if (bytes == 0)
        return jrt_http_fail(head, line, at, 400,
                             "the target is neither /path nor http://host/path");
    const char *host = at + bytes, *stop = host;
    while (stop < line->end && *stop != '/' && *stop != '?' && *stop != ' ') {
        if (!jrt_http_is(*stop, JRT_HTTP_VALUE))
            return jrt_http_fail(head, line, stop, 400, "a byte must not stand in a target");
        stop++;
    }
    if (stop == line->end) return jrt_http_cut(head, line);
    if (!jrt_http_is_authority((struct jrt_http_text){host, (size_t)(stop - host)}))
        return jrt_http_fail(head, line, host, 400, "the host in the target is not a host");
    head->host = jrt_http_part_of(line, host, stop);
    head->seen |= JRT_HTTP_SEEN_ABSOLUTE;
    const char *end = origin_form(head, line, stop);
    if (end != NULL && *stop != '/') head->path = jrt_http_part_of(line, host - 1, host);
    return end;
}

/* The target and the space behind it. */
static const char *target(struct jrt_http_head *head, const struct jrt_http_line *line,
                          const char *at)
{
    const char *stop;
    if (at == line->end) return jrt_http_cut(head, line);
    if (*at == '/') {
        stop = origin_form(head, line, at);
    } else if (*at == '*') {
        stop = at + 1;
        if (stop == line->end) return jrt_http_cut(head, line);
        if (*stop != ' ')
            return jrt_http_fail(head, line, stop, 400, "nothing may follow * in a target");
        head->path = jrt_http_part_of(line, at, stop);
    } else {
        stop = absolute_form(head, line, at);
    }
    if (stop == NULL) return NULL;
    head->target = jrt_http_part_of(line, at, stop);
    return stop + 1;
}

static const char *request_line(struct jrt_http_head *head, const struct jrt_http_line *line)
{
    const char *at = method(head, line);
    if (at == NULL) return NULL;
    const char *first = at;
    at = target(head, line, at);
    if (at == NULL) return NULL;
    if (is_at(line, at, "HTTP/1.1\r\n", 10)) {
        head->minor = 1;
        at += 10;
    } else {
        at = version(head, line, at);
        if (at == NULL) return NULL;
        at = line_end(head, line, at, "CR LF must follow the version");
        if (at == NULL) return NULL;
    }
    if (*first == '*' && head->method != JRT_HTTP_OPTIONS)
        return jrt_http_fail(head, line, first, 400, "only OPTIONS may have the target *");
    return at;
}

/* "HTTP/1.1 200 OK" */
__attribute__((noinline)) static const char *status_line(struct jrt_http_head       *head,
                                                         const struct jrt_http_line *line)
{
    const char *at = version(head, line, line->start);
    if (at == NULL) return NULL;
    unsigned status = 0;
    for (int i = 0; i < 5; i++, at++) {
        if (at == line->end) return jrt_http_cut(head, line);
        bool right = i == 0 || i == 4 ? *at == ' ' : jrt_http_is_digit(*at);
        if (!right)
            return jrt_http_fail(head, line, at, 400, "one space and three digits are expected");
        if (*at != ' ') status = status * 10 + (unsigned)(*at - '0');
    }
    if (status < 100 || status > 599)
        return jrt_http_fail(head, line, at - 4, 400, "the status is not between 100 and 599");
    const char *stop = jrt_http_scan_value(line->floor, at, line->end);
    head->status = (uint16_t)status;
    head->reason = jrt_http_part_of(line, at, stop);
    return line_end(head, line, stop, "a control byte must not stand in a reason");
}

/* Skips one empty line, if there is one. False: it is not complete, or wrong. */
static bool empty_line(struct jrt_http_head *head, struct jrt_http_line *line)
{
    if (line->start < line->end && *line->start != '\r') return true;
    const char *next = line_end(head, line, line->start, "LF must follow CR");
    if (next != NULL) jrt_http_line_set(line, head, next);
    return next != NULL;
}

enum jrt_http_step jrt_http_parse(struct jrt_http_head *head, const char *bytes, size_t count)
{
    struct jrt_http_line line = {.floor = bytes, .end = bytes + count, .count = count};
    const char          *at;
    line.is_short = count <= head->max_line_bytes && count <= head->limit;
    jrt_http_line_set(&line, head, bytes + head->next);
    switch ((enum jrt_http_stage)head->stage) {
    case JRT_HTTP_STAGE_DONE: return JRT_HTTP_DONE;
    case JRT_HTTP_STAGE_BAD: return JRT_HTTP_BAD;
    case JRT_HTTP_STAGE_EMPTY:
        if (!empty_line(head, &line)) break;
        head->stage = JRT_HTTP_STAGE_FIRST;
        __attribute__((fallthrough));
    case JRT_HTTP_STAGE_FIRST:
        at = head->kind == JRT_HTTP_REQUEST ? request_line(head, &line) : status_line(head, &line);
        if (at == NULL) break;
        head->stage = JRT_HTTP_STAGE_FIELDS;
        jrt_http_line_set(&line, head, at);
        __attribute__((fallthrough));
    case JRT_HTTP_STAGE_FIELDS:
        at = jrt_http_fields_parse(head, &line);
        if (at == NULL) break;
        head->stage = JRT_HTTP_STAGE_DONE;
        head->bytes = (uint16_t)(at - bytes);
        return JRT_HTTP_DONE;
    }
    return head->stage == JRT_HTTP_STAGE_BAD ? JRT_HTTP_BAD : JRT_HTTP_MORE;
}

void jrt_http_head_init(struct jrt_http_head *head, struct jrt_http_field *fields, uint16_t room,
                        const struct jrt_http_limits *limits)
{
    static const struct jrt_http_limits none;
    if (limits == NULL) limits = &none;
    memset(head, 0, sizeof *head);
    head->fields = fields;
    head->max_line_bytes = limits->line_bytes != 0 ? limits->line_bytes : JRT_HTTP_LINE_BYTES;
    head->max_head_bytes = limits->head_bytes != 0 ? limits->head_bytes : JRT_HTTP_HEAD_BYTES;
    head->max_fields = limits->fields != 0 && limits->fields < room ? limits->fields : room;
}

static void begin(struct jrt_http_head *head, enum jrt_http_kind kind, enum jrt_http_stage stage)
{
    memset((char *)head + offsetof(struct jrt_http_head, next), 0,
           sizeof *head - offsetof(struct jrt_http_head, next));
    head->kind = (uint8_t)kind;
    head->stage = (uint8_t)stage;
    head->limit = head->max_head_bytes;
}

void jrt_http_request_begin(struct jrt_http_head *head)
{
    begin(head, JRT_HTTP_REQUEST, JRT_HTTP_STAGE_EMPTY);
}

void jrt_http_answer_begin(struct jrt_http_head *head, bool to_head)
{
    begin(head, JRT_HTTP_ANSWER, JRT_HTTP_STAGE_FIRST);
    head->to_head = to_head;
}

void jrt_http_trailers_begin(struct jrt_http_head *head)
{
    begin(head, JRT_HTTP_TRAILERS, JRT_HTTP_STAGE_FIELDS);
    if (head->limit > JRT_HTTP_TRAILER_BYTES) head->limit = JRT_HTTP_TRAILER_BYTES;
}
