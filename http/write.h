/* SPDX-License-Identifier: MIT */
/*
 * Writes heads into a buffer. Nothing that the caller passes can end a line or begin a field. The
 * calls refuse a name that is no token, and a value with CR, LF, NUL or another control byte. Each
 * call writes a whole line or nothing.
 *
 *     struct jrt_http_out out = {buffer, sizeof buffer, 0};
 *     status = jrt_http_put_status(&out, 200);
 *     status = jrt_http_put_field(&out, JRT_HTTP_TEXT("Server"), JRT_HTTP_TEXT("janusrt"));
 *     status = jrt_http_put_end(&out);
 *     the first out.bytes of the buffer are the head
 */
#ifndef JANUSRT_HTTP_WRITE_H
#define JANUSRT_HTTP_WRITE_H

#include "http/text.h"

#include <janusrt/status.h>

struct jrt_http_out {
    char  *at; /* the caller's buffer */
    size_t room, bytes;
};

/* All of these return OK, FULL if the buffer has too little room, or INVALID for what must not be
 * sent. Then the buffer is as before. */

/* "HTTP/1.1 200 OK". INVALID: not between 100 and 599. */
janus_status jrt_http_put_status(struct jrt_http_out *out, unsigned status);

/* "GET /path HTTP/1.1". INVALID: no token, or no target that a parser of ours accepts. */
janus_status jrt_http_put_request(struct jrt_http_out *out, struct jrt_http_text method,
                                  struct jrt_http_text target);

/* "Name: value". The value is written without the spaces around it. */
janus_status jrt_http_put_field(struct jrt_http_out *out, struct jrt_http_text name,
                                struct jrt_http_text value);

/* "Content-Length: 13" */
janus_status jrt_http_put_number(struct jrt_http_out *out, struct jrt_http_text name,
                                 uint64_t number);

/* The empty line that ends a head. */
janus_status jrt_http_put_end(struct jrt_http_out *out);

/* "Not Found" for 404; "" for a status without a phrase of its own. */
struct jrt_http_text jrt_http_reason(unsigned status);

/* Whether this field says how the message is framed or how the connection goes on. The library
 * writes such fields itself: a handler that wrote one could contradict it. */
bool jrt_http_is_framing(struct jrt_http_text name);

#endif
