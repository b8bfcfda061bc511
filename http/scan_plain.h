/* SPDX-License-Identifier: MIT */
/*
 * Finds the end of a run of bytes, one byte at a time. Every port has these four functions. They
 * read bytes from `floor` to `end` and nothing else; `at` lies between the two.
 */
#ifndef JANUSRT_HTTP_SCAN_PLAIN_H
#define JANUSRT_HTTP_SCAN_PLAIN_H

#include "http/text.h"

static inline const char *jrt_http_scan_plain(const char *at, const char *end, uint8_t class)
{
    while (at < end && jrt_http_is(*at, class)) at++;
    return at;
}

#ifndef JRT_HTTP_SCAN_OWN
/* The first byte that no token may have, or `end`. */
static inline const char *jrt_http_scan_token(const char *floor, const char *at, const char *end)
{
    (void)floor;
    return jrt_http_scan_plain(at, end, JRT_HTTP_TOKEN);
}

/* The first byte that no field value may have, or `end`. */
static inline const char *jrt_http_scan_value(const char *floor, const char *at, const char *end)
{
    (void)floor;
    return jrt_http_scan_plain(at, end, JRT_HTTP_VALUE);
}

/* A byte at or before the first byte that is neither JRT_HTTP_COMMON nor a slash, or `end`. */
static inline const char *jrt_http_scan_target(const char *floor, const char *at, const char *end)
{
    (void)floor;
    while (at < end && (jrt_http_is(*at, JRT_HTTP_COMMON) || *at == '/')) at++;
    return at;
}

/* A byte at or before the first byte that is not JRT_HTTP_COMMON, or `end`. */
static inline const char *jrt_http_scan_host(const char *floor, const char *at, const char *end)
{
    (void)floor;
    return jrt_http_scan_plain(at, end, JRT_HTTP_COMMON);
}
#endif

#endif
