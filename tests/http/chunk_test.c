/* SPDX-License-Identifier: MIT */
/* Chunks, beyond the verdicts in nasty_test.c. */
#include "harness.h"
#include "http/chunk.h"

#include <stdio.h>

TEST("data comes where it lies, and the bytes behind the last chunk are left alone")
{
    const char            *bytes = "3\r\nabc\r\n2;x\r\nde\r\n0\r\nX: y\r\n\r\n";
    struct jrt_http_chunks chunks;
    struct jrt_http_text   data;
    size_t                 used, count = strlen(bytes);
    jrt_http_chunks_begin(&chunks);
    CHECK_EQ(jrt_http_chunks_next(&chunks, bytes, count, &used, &data), JRT_HTTP_CHUNK_DATA);
    CHECK(data.at == bytes + 3 && data.bytes == 3 && used == 6);
    const char *rest = bytes + used;
    count -= used;
    CHECK_EQ(jrt_http_chunks_next(&chunks, rest, count, &used, &data), JRT_HTTP_CHUNK_DATA);
    CHECK(jrt_http_equal(data, JRT_HTTP_TEXT("de")));
    rest += used;
    count -= used;
    CHECK_EQ(jrt_http_chunks_next(&chunks, rest, count, &used, &data), JRT_HTTP_CHUNK_LAST);
    CHECK(memcmp(rest + used, "X: y", 4) == 0);
    CHECK_EQ(jrt_http_chunks_next(&chunks, "zz", 2, &used, &data), JRT_HTTP_CHUNK_LAST);
    CHECK_EQ(used, 0);
}

TEST("a refused body stays refused and says why")
{
    struct jrt_http_chunks chunks;
    struct jrt_http_text   data;
    size_t                 used;
    jrt_http_chunks_begin(&chunks);
    CHECK_EQ(jrt_http_chunks_next(&chunks, "5\n", 2, &used, &data), JRT_HTTP_CHUNK_BAD);
    CHECK_STR(chunks.why, "a byte must not stand in the line of a chunk");
    CHECK_EQ(jrt_http_chunks_next(&chunks, "5\r\n", 3, &used, &data), JRT_HTTP_CHUNK_BAD);
    CHECK_EQ(used, 0);
}

TEST("a line that we write is read as the size that it had")
{
    static const uint64_t sizes[] = {1,        9, 10, 15, 16, 255, 4096, 0xabcdef0123456789 >> 1,
                                     INT64_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char                   line[JRT_HTTP_CHUNK_HEAD_BYTES], want[32];
        size_t                 bytes = jrt_http_chunk_head(line, sizes[i]), used;
        struct jrt_http_chunks chunks;
        struct jrt_http_text   data;
        snprintf(want, sizeof want, "%llx\r\n", (unsigned long long)sizes[i]);
        CHECK(bytes == strlen(want) && memcmp(line, want, bytes) == 0);
        jrt_http_chunks_begin(&chunks);
        CHECK_EQ(jrt_http_chunks_next(&chunks, line, bytes, &used, &data), JRT_HTTP_CHUNK_MORE);
        CHECK(chunks.left == sizes[i]);
    }
}

TEST("chunks of one byte with short lines never count as excess")
{
    struct jrt_http_chunks chunks;
    struct jrt_http_text   data;
    size_t                 used, last = 0;
    jrt_http_chunks_begin(&chunks);
    for (int i = 0; i < 100000; i++) {
        CHECK_EQ(jrt_http_chunks_next(&chunks, "1\r\nx\r\n", 6, &used, &data), JRT_HTTP_CHUNK_DATA);
        CHECK_EQ(jrt_http_chunks_next(&chunks, "\r\n", 2, &last, &data), JRT_HTTP_CHUNK_MORE);
    }
    CHECK_EQ(chunks.excess, 0);
}

TEST("extensions may come with every chunk as long as the data outweighs them")
{
    struct jrt_http_chunks chunks;
    struct jrt_http_text   data;
    char                   line[160], body[128] = {0};
    size_t                 used;
    int                    bytes = snprintf(line, sizeof line, "80;%0100d\r\n", 0);
    jrt_http_chunks_begin(&chunks);
    for (int i = 0; i < 10000; i++) {
        CHECK_EQ(jrt_http_chunks_next(&chunks, line, (size_t)bytes, &used, &data),
                 JRT_HTTP_CHUNK_MORE);
        CHECK_EQ(jrt_http_chunks_next(&chunks, body, 128, &used, &data), JRT_HTTP_CHUNK_DATA);
        CHECK_EQ(jrt_http_chunks_next(&chunks, "\r\n", 2, &used, &data), JRT_HTTP_CHUNK_MORE);
    }
}
