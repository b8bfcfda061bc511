/* SPDX-License-Identifier: MIT */
/* What head.c and fields.c share. Functions that advance return NULL where the head ends: the
 * stage is then BAD, or bytes are missing and the line will be parsed again. */
#ifndef JANUSRT_HTTP_PARSE_H
#define JANUSRT_HTTP_PARSE_H

#include "http/head.h"

#include JRT_HTTP_SCAN /* scan_x86_64.h or scan_plain.h: CMakeLists.txt chooses */

enum jrt_http_stage {
    JRT_HTTP_STAGE_EMPTY,  /* an empty line may come, then the first line */
    JRT_HTTP_STAGE_FIRST,  /* the first line */
    JRT_HTTP_STAGE_FIELDS, /* fields, or the empty line that ends the head */
    JRT_HTTP_STAGE_DONE,
    JRT_HTTP_STAGE_BAD,
};

/* Bits of head->seen. */
enum {
    JRT_HTTP_SEEN_HOST = 1,
    JRT_HTTP_SEEN_LENGTH = 2,
    JRT_HTTP_SEEN_CHUNKED = 4,
    JRT_HTTP_SEEN_UPGRADE = 8,
    JRT_HTTP_SEEN_ABSOLUTE = 16, /* the target names a host */
};

/* The line that is parsed. `end` is where the bytes or the limits end, whichever comes first. */
struct jrt_http_line {
    const char *floor, *start, *end;
    size_t      count;
    bool        is_short; /* no line can reach a limit: `end` is that of the bytes */
};

static inline void jrt_http_line_set(struct jrt_http_line *line, const struct jrt_http_head *head,
                                     const char *start)
{
    line->start = start;
    if (line->is_short) return;
    size_t stop = (size_t)(start - line->floor) + head->max_line_bytes;
    if (stop > head->limit) stop = head->limit;
    if (stop > line->count) stop = line->count;
    line->end = line->floor + stop;
}

static inline struct jrt_http_part jrt_http_part_of(const struct jrt_http_line *line,
                                                    const char *from, const char *to)
{
    return (struct jrt_http_part){(uint16_t)(from - line->floor), (uint16_t)(to - from)};
}

/* Refuses the head at the byte `at`. A refused answer always has the status 502. */
__attribute__((cold)) const char *jrt_http_fail(struct jrt_http_head       *head,
                                                const struct jrt_http_line *line, const char *at,
                                                uint16_t status, const char *why);

/* The line goes on beyond line->end: more bytes must come, or a limit is reached. */
__attribute__((cold)) const char *jrt_http_cut(struct jrt_http_head       *head,
                                               const struct jrt_http_line *line);

/* Parses fields up to the empty line, and then judges the head as a whole. */
const char *jrt_http_fields_parse(struct jrt_http_head *head, struct jrt_http_line *line);

#endif
