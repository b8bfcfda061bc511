/* SPDX-License-Identifier: MIT */
/* What a server of files needs to know about a request: the name, the range, the version, the type.
 * Nothing here opens a file. */
#ifndef JANUSRT_HTTP_FILE_H
#define JANUSRT_HTTP_FILE_H

#include "http/text.h"

#include <janusrt/status.h>

/*
 * Makes a name below a directory from the path of a target: "/a/../b%20c/" becomes "b c/". The name
 * does not begin with a slash, has no segments "." and "..", and no two slashes in a row. A slash
 * at the end of the path stays. The path "/" gives "". A NUL follows the name, uncounted.
 *
 * Errors: INVALID  the path does not begin with a slash, has a bad escape, leaves the directory by
 *                  "..", or hides a slash, a backslash, a NUL or another control byte by an escape
 *         FULL     the name and its NUL need more than `room` bytes
 *         On any error *out_bytes is as before.
 *
 * An escaped slash (%2F) is refused and not decoded: a proxy in front sees one segment where the
 * file system would see two. A backslash is refused because other systems take it for a slash.
 */
janus_status jrt_http_path_decode(struct jrt_http_text path, char *out, size_t room,
                                  size_t *out_bytes);

enum jrt_http_range {
    JRT_HTTP_RANGE_WHOLE, /* answer with all: several ranges, or a mistake */
    JRT_HTTP_RANGE_PART,  /* 206 with the part */
    JRT_HTTP_RANGE_NONE,  /* 416: nothing of it exists */
};

/* Reads "bytes=0-499" for something of `size` bytes. PART sets *out_first and *out_bytes, not 0. */
enum jrt_http_range jrt_http_range_read(struct jrt_http_text value, uint64_t size,
                                        uint64_t *out_first, uint64_t *out_bytes);

/*
 * Whether the list of an If-None-Match or If-Match names `etag`, which has its quotes: "\"abc\"".
 * The list "*" names every tag. With `weak`, W/"abc" and "abc" are the same, as If-None-Match asks.
 * Otherwise a tag with W/ is the same as no other. A list with a mistake names what stands before.
 */
bool jrt_http_etag_in(struct jrt_http_text list, struct jrt_http_text etag, bool weak);

/* The media type by the suffix of a name: "image/png" for "a/b.PNG". "application/octet-stream" if
 * the suffix is unknown. */
struct jrt_http_text jrt_http_type_of(struct jrt_http_text name);

#endif
