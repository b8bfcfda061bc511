/* SPDX-License-Identifier: MIT */
/* Paths through the parsers of HTTP: heads as wrk and a browser send them, and a chunked body. */
#include "cost_http.h"

#include "http/chunk.h"
#include "http/head.h"

#include <stdlib.h>

static const char small[] = "GET / HTTP/1.1\r\nHost: localhost:80\r\n\r\n";

static const char large[] =
    "GET /wiki/Special:Search/some/longer/path-to-an.image_of_a_thing.jpeg HTTP/1.1\r\n"
    "Host: images.example.org\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n"
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8\r\n"
    "Accept-Language: en-GB,en;q=0.7,de;q=0.3\r\n"
    "Accept-Encoding: gzip, deflate, br, zstd\r\n"
    "Referer: https://www.example.org/wiki/A_page_that_shows_the_image\r\n"
    "Connection: keep-alive\r\n"
    "Cookie: session=0123456789abcdef0123456789abcdef; theme=dark; last=2026-01-01T00:00:00Z; "
    "visits=000000000012345; "
    "seen=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"
    "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
    "\r\n";

static uint64_t walk(const char *bytes, size_t count, uint64_t size)
{
    struct jrt_http_field fields[64];
    struct jrt_http_head  head;
    jrt_http_head_init(&head, fields, 64, NULL);
    for (uint64_t i = 0; i < size; i++) {
        jrt_http_request_begin(&head);
        if (jrt_http_parse(&head, bytes, count) != JRT_HTTP_DONE) abort();
    }
    return size;
}

uint64_t walk_small_head(uint64_t size) { return walk(small, sizeof small - 1, size); }
uint64_t walk_large_head(uint64_t size) { return walk(large, sizeof large - 1, size); }

uint64_t walk_chunk(uint64_t size)
{
    static const char      chunk[] = "10\r\n0123456789abcdef\r\n";
    struct jrt_http_chunks chunks;
    jrt_http_chunks_begin(&chunks);
    for (uint64_t i = 0; i < size; i++) {
        struct jrt_http_text data;
        size_t               used, rest;
        if (jrt_http_chunks_next(&chunks, chunk, sizeof chunk - 1, &used, &data) !=
                JRT_HTTP_CHUNK_DATA ||
            jrt_http_chunks_next(&chunks, chunk + used, sizeof chunk - 1 - used, &rest, &data) !=
                JRT_HTTP_CHUNK_MORE)
            abort();
    }
    return size;
}
