/* SPDX-License-Identifier: MIT */
/*
 * Finds the end of a run of bytes, sixteen at a time. SSE2 is part of every x86_64. The last bytes
 * of a buffer are read together with bytes before them, so that no load passes `end`. scan_plain.h
 * says what the functions promise; tests/http compares both.
 */
#ifndef JANUSRT_HTTP_SCAN_X86_64_H
#define JANUSRT_HTTP_SCAN_X86_64_H

#define JRT_HTTP_SCAN_OWN
#include "http/scan_plain.h"

#include <emmintrin.h>

static inline __m128i scan_load(const char *at) { return _mm_loadu_si128((const __m128i *)at); }

/* All ones in each byte from `low` to `high`. */
static inline __m128i scan_range(__m128i bytes, char low, char high)
{
    __m128i offset = _mm_sub_epi8(bytes, _mm_set1_epi8(low));
    return _mm_cmpeq_epi8(_mm_min_epu8(offset, _mm_set1_epi8((char)(high - low))), offset);
}

static inline __m128i scan_equal(__m128i bytes, char byte)
{
    return _mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte));
}

static inline __m128i scan_letter(__m128i bytes)
{
    return scan_range(_mm_or_si128(bytes, _mm_set1_epi8(0x20)), 'a', 'z');
}

/* One bit for each of 16 bytes: 1 for a byte that ends the run. */
static inline unsigned scan_stops_value(__m128i bytes)
{
    __m128i control = scan_range(bytes, 0, 0x1f);
    control = _mm_andnot_si128(scan_equal(bytes, '\t'), control);
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(control, scan_equal(bytes, 0x7f)));
}

static inline unsigned scan_stops_name(__m128i bytes)
{
    __m128i common = _mm_or_si128(scan_letter(bytes), scan_equal(bytes, '-'));
    return (unsigned)_mm_movemask_epi8(common) ^ 0xffffu;
}

static inline unsigned scan_stops_host(__m128i bytes)
{
    __m128i common = _mm_or_si128(scan_letter(bytes), scan_range(bytes, '0', '9'));
    common = _mm_or_si128(common, scan_range(bytes, '-', '.'));
    return (unsigned)_mm_movemask_epi8(common) ^ 0xffffu;
}

/* A slash stands between . and 0, so one range has all but letters, _ and ~. */
static inline unsigned scan_stops_target(__m128i bytes)
{
    __m128i common = _mm_or_si128(scan_letter(bytes), scan_range(bytes, '-', '9'));
    common = _mm_or_si128(common, scan_equal(bytes, '_'));
    return (unsigned)_mm_movemask_epi8(common) ^ 0xffffu;
}

/* The bits of the bytes from `at` to `end`, which are fewer than 16, out of the last 16 bytes. */
#define SCAN_LAST(stops, at, end) (stops(scan_load((end) - 16)) >> (16 - ((end) - (at))))

static inline const char *scan_first(unsigned stops, const char *at, const char *end)
{
    return stops != 0 ? at + __builtin_ctz(stops) : end;
}

static inline const char *jrt_http_scan_token(const char *floor, const char *at, const char *end)
{
    if (end - at >= 16) {
        unsigned stops = scan_stops_name(scan_load(at)) | 0x10000u;
        at += __builtin_ctz(stops);
        if (at < end && *at == ':') return at; /* the end of most names */
    } else if (end - floor >= 16) {
        at = scan_first(SCAN_LAST(scan_stops_name, at, end), at, end);
    }
    return jrt_http_scan_plain(at, end, JRT_HTTP_TOKEN); /* digits, _ and names above 16 bytes */
}

static inline const char *jrt_http_scan_value(const char *floor, const char *at, const char *end)
{
    for (; end - at >= 16; at += 16) {
        unsigned stops = scan_stops_value(scan_load(at));
        if (stops != 0) return at + __builtin_ctz(stops);
    }
    if (end - floor >= 16) return scan_first(SCAN_LAST(scan_stops_value, at, end), at, end);
    return jrt_http_scan_plain(at, end, JRT_HTTP_VALUE);
}

static inline const char *jrt_http_scan_target(const char *floor, const char *at, const char *end)
{
    for (; end - at >= 16; at += 16) {
        unsigned stops = scan_stops_target(scan_load(at));
        if (stops != 0) return at + __builtin_ctz(stops);
    }
    if (end - floor >= 16) return scan_first(SCAN_LAST(scan_stops_target, at, end), at, end);
    return at;
}

static inline const char *jrt_http_scan_host(const char *floor, const char *at, const char *end)
{
    for (; end - at >= 16; at += 16) {
        unsigned stops = scan_stops_host(scan_load(at));
        if (stops != 0) return at + __builtin_ctz(stops);
    }
    if (end - floor >= 16) return scan_first(SCAN_LAST(scan_stops_host, at, end), at, end);
    return at;
}

#undef SCAN_LAST
#endif
