/* SPDX-License-Identifier: MIT */
/*
 * Heads of HTTP/1: requests, answers, and the trailers behind a chunked body.
 *
 * The parser does no input, keeps no copy and allocates nothing. Its caller reads bytes into one
 * buffer and calls jrt_http_parse with all that it has so far:
 *
 *     jrt_http_head_init(&head, fields, 64, NULL);
 *     jrt_http_request_begin(&head);
 *     while ((step = jrt_http_parse(&head, buffer, count)) == JRT_HTTP_MORE) read more;
 *     step == JRT_HTTP_DONE: head.bytes are used, a body or the next request follows them
 *     step == JRT_HTTP_BAD:  answer with head.status, then close; head.why says what is wrong
 *
 * The head names its parts by offsets, so the buffer may move between two calls. A second call
 * continues at the line in which the first call stopped. The verdict depends on the bytes alone and
 * never on how they arrived: a refused beginning stays refused, whatever follows.
 *
 * The parser is strict, and nothing loosens it. RFC 9112 lets a server be lenient in many places.
 * Each of them has made some proxy and some server disagree about where a request ends. So:
 *   - CR LF ends a line; a single CR or LF is refused everywhere
 *   - one empty line before a request is skipped, a second one is refused
 *   - one space separates the parts of the first line
 *   - versions are 1.0 and 1.1
 *   - no space stands before the colon of a field, and no line continues the line before
 *   - values have no control bytes but HTAB
 *   - Host comes exactly once in 1.1, at most once in 1.0, and must be a host
 *   - Content-Length comes at most once: digits only, no list, below 2^63
 *   - Transfer-Encoding comes at most once, is "chunked", and excludes Content-Length and 1.0
 *   - a target is "/path?query", "*" for OPTIONS, or "http://host/path" whose host equals Host
 *   - CONNECT is refused, because this is no proxy
 */
#ifndef JANUSRT_HTTP_HEAD_H
#define JANUSRT_HTTP_HEAD_H

#include "http/text.h"

/* Bytes of the buffer that was parsed: buffer + at. */
struct jrt_http_part {
    uint16_t at, bytes;
};

struct jrt_http_field {
    struct jrt_http_part name, value; /* the value without the spaces around it */
};

/* What a head may need at most. Zero in any field asks for the default beside it. */
struct jrt_http_limits {
    uint16_t line_bytes; /* 8192: of one line with its CR LF; a longer line gets 414 or 431 */
    uint16_t head_bytes; /* 16384: of all lines together; a longer head gets 431 */
    uint16_t fields;     /* as many as the array has; more fields get 431 */
};

enum { JRT_HTTP_LINE_BYTES = 8192, JRT_HTTP_HEAD_BYTES = 16384, JRT_HTTP_TRAILER_BYTES = 8192 };
enum { JRT_HTTP_METHOD_BYTES = 32 }; /* a longer method gets 501 */

enum jrt_http_step {
    JRT_HTTP_MORE, /* good so far, and not complete */
    JRT_HTTP_DONE,
    JRT_HTTP_BAD,
};

enum jrt_http_method {
    JRT_HTTP_OTHER, /* any other token; the head has its text */
    JRT_HTTP_GET,
    JRT_HTTP_HEAD,
    JRT_HTTP_POST,
    JRT_HTTP_PUT,
    JRT_HTTP_DELETE,
    JRT_HTTP_OPTIONS,
    JRT_HTTP_PATCH,
    JRT_HTTP_TRACE,
};

/* How the body that follows the head ends. */
enum jrt_http_framing {
    JRT_HTTP_NO_BODY,
    JRT_HTTP_LENGTH,  /* after content_length bytes, which may be 0 */
    JRT_HTTP_CHUNKED, /* see chunk.h */
    JRT_HTTP_CLOSE,   /* when the peer closes; answers only */
};

/* What kind of head it is; the begin functions set it. */
enum jrt_http_kind { JRT_HTTP_REQUEST, JRT_HTTP_ANSWER, JRT_HTTP_TRAILERS };

struct jrt_http_head {
    /* Set by init, kept by begin. */
    struct jrt_http_field *fields; /* the caller's; the first field_count are valid */
    uint16_t               max_line_bytes, max_head_bytes, max_fields;

    /* Set by begin: only the parser uses these. */
    uint16_t next;  /* the first byte of the line to parse next */
    uint16_t limit; /* of all bytes: max_head_bytes, or less for trailers */
    uint8_t  stage; /* enum stage in head.c */
    uint8_t  kind;  /* enum jrt_http_kind */
    uint8_t  seen;  /* bits of fields that may come once */
    bool     to_head;

    /* Known as soon as their line was parsed; final when the step is DONE. */
    uint8_t  method;  /* enum jrt_http_method; requests only */
    uint8_t  minor;   /* 0 or 1: HTTP/1.0, HTTP/1.1 */
    uint8_t  framing; /* enum jrt_http_framing */
    bool     keep_alive;
    bool     expect_continue; /* the client waits for "100 Continue"; never in 1.0 */
    bool     upgrade;         /* 1.1, with Upgrade and "Connection: upgrade" */
    bool     has_query;       /* there was a ?, maybe with nothing behind it */
    bool     close, stay;     /* Connection has "close", "keep-alive" */
    bool     switching;       /* Connection has "upgrade" */
    uint16_t field_count;
    uint16_t status; /* of an answer; after BAD the status to answer with */
    uint16_t bytes;  /* of the whole head, from the first byte of the buffer; set by DONE */
    uint16_t wrong;  /* after BAD: the offset of the first byte that cannot be right */

    struct jrt_http_part method_text, target, path, query; /* requests */
    struct jrt_http_part host;   /* of the target if it names one, else of Host; else empty */
    struct jrt_http_part reason; /* answers */
    uint64_t             content_length;
    const char          *why; /* after BAD: a sentence without a full stop; else NULL */
};

/* Prepares a head for any number of uses. `fields` has room for `room` fields. limits: or NULL. */
void jrt_http_head_init(struct jrt_http_head *head, struct jrt_http_field *fields, uint16_t room,
                        const struct jrt_http_limits *limits);

/* Begin a head at the first byte of a buffer. `to_head`: the request was HEAD, so no body comes. */
void jrt_http_request_begin(struct jrt_http_head *head);
void jrt_http_answer_begin(struct jrt_http_head *head, bool to_head);

/* The lines behind the last chunk, at most JRT_HTTP_TRAILER_BYTES. Fields that frame, route or
 * authenticate are refused. */
void jrt_http_trailers_begin(struct jrt_http_head *head);

/*
 * Parses the first `count` bytes of a buffer: all that were given before, and new ones. Reads no
 * other byte. After DONE or BAD every further call returns the same.
 */
enum jrt_http_step jrt_http_parse(struct jrt_http_head *head, const char *bytes, size_t count);

static inline struct jrt_http_text jrt_http_text_of(const char *bytes, struct jrt_http_part part)
{
    return (struct jrt_http_text){bytes + part.at, part.bytes};
}

/*
 * The number of the first field with this name, in any case of letters, not before number `from`;
 * -1 if there is no such field.
 */
int jrt_http_find(const struct jrt_http_head *head, const char *bytes, struct jrt_http_text name,
                  int from);

/* Whether any field with this name lists `member`: ("accept-encoding", "gzip"). */
bool jrt_http_has(const struct jrt_http_head *head, const char *bytes, struct jrt_http_text name,
                  struct jrt_http_text member);

#endif
