/* SPDX-License-Identifier: MIT */
/* What the parsers understand of a connection's bytes, as a line of text. requests.txt explains the
 * text. */
#ifndef TESTS_HTTP_UNDERSTAND_H
#define TESTS_HTTP_UNDERSTAND_H

#include "http/chunk.h"
#include "http/head.h"

typedef enum jrt_http_step parse_call(struct jrt_http_head *, const char *, size_t);

/* The parser that looks at one byte at a time, whatever the machine can do: plain.c. */
parse_call plain_parse;

enum { ROOM_FIELDS = 64, ROOM_TEXT = 32768, ROOM_BODY = 256 };

/* One end of a connection that only listens. */
struct listener {
    parse_call            *parse;
    bool                   answers, to_head;
    size_t                 at; /* the first byte that is not used */
    int                    state;
    struct jrt_http_head   head, trailers;
    struct jrt_http_field  fields[ROOM_FIELDS], trailer_fields[ROOM_FIELDS];
    struct jrt_http_chunks chunks;
    size_t                 body_bytes; /* of the current message */
    char                   body[ROOM_BODY];
    int                    messages;
    size_t                 wrong; /* where and why the bytes were refused */
    const char            *why;
    size_t                 text_bytes;
    char                   text[ROOM_TEXT];
};

void listener_begin(struct listener *listener, parse_call *parse, bool answers, bool to_head);

/* Takes all bytes of the connection up to now, those of earlier calls too. They may have moved. */
void listener_hear(struct listener *listener, const char *bytes, size_t count);

/* The peer closes. listener->text is complete. */
void listener_end(struct listener *listener, const char *bytes, size_t count);

/* Whether two listeners understood the same and refused the same byte for the same reason. */
bool listener_same(const struct listener *left, const struct listener *right);

#endif
