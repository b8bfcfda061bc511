/* SPDX-License-Identifier: MIT */
/*
 * Chunked bodies. The first byte of the input chooses the length of the parts.
 *
 * What must hold for all bytes: the length of the parts changes neither the data nor where and why
 * the body ends. Data lies inside of the bytes, and no step stands still. A body that was accepted
 * has the same data after we have written it anew.
 */
#include "fuzz.h"
#include "http/chunk.h"

struct decoded {
    char                    *data;
    size_t                   bytes, used;
    enum jrt_http_chunk_step step;
    const char              *why;
};

/* Decodes in parts of `part` bytes. */
static struct decoded decode(const char *bytes, size_t count, size_t part)
{
    struct jrt_http_chunks chunks;
    struct decoded         decoded = {exact_copy(bytes, count), 0, 0, JRT_HTTP_CHUNK_MORE, NULL};
    jrt_http_chunks_begin(&chunks);
    while (decoded.used < count &&
           (decoded.step == JRT_HTTP_CHUNK_MORE || decoded.step == JRT_HTTP_CHUNK_DATA)) {
        size_t               left = count - decoded.used, used = 0;
        size_t               given = left < part ? left : part;
        char                *copy = exact_copy(bytes + decoded.used, given);
        struct jrt_http_text data = {NULL, 0};
        decoded.step = jrt_http_chunks_next(&chunks, copy, given, &used, &data);
        MUST(used <= given);
        if (decoded.step == JRT_HTTP_CHUNK_MORE) MUST(used == given);
        if (decoded.step == JRT_HTTP_CHUNK_DATA) {
            MUST(data.bytes > 0 && data.at >= copy && data.at + data.bytes == copy + used);
            memcpy(decoded.data + decoded.bytes, data.at, data.bytes);
            decoded.bytes += data.bytes;
        }
        decoded.used += used;
        free(copy);
    }
    MUST((decoded.step == JRT_HTTP_CHUNK_BAD) == (chunks.why != NULL));
    if (decoded.step == JRT_HTTP_CHUNK_DATA) decoded.step = JRT_HTTP_CHUNK_MORE; /* at the end */
    decoded.why = chunks.why;
    return decoded;
}

static void must_be_same(const struct decoded *left, const struct decoded *right)
{
    MUST(left->step == right->step && left->used == right->used && left->bytes == right->bytes);
    MUST(memcmp(left->data, right->data, left->bytes) == 0);
    MUST(left->why == right->why);
}

static void must_survive_writing(const struct decoded *whole)
{
    char  *anew = malloc(whole->bytes + 64);
    size_t bytes = 0;
    MUST(anew != NULL);
    if (whole->bytes > 0) {
        bytes = jrt_http_chunk_head(anew, whole->bytes);
        memcpy(anew + bytes, whole->data, whole->bytes);
        memcpy(anew + bytes + whole->bytes, JRT_HTTP_CHUNK_END, 2);
        bytes += whole->bytes + 2;
    }
    memcpy(anew + bytes, JRT_HTTP_LAST_CHUNK, 3);
    struct decoded again = decode(anew, bytes + 3, bytes + 3);
    MUST(again.step == JRT_HTTP_CHUNK_LAST && again.bytes == whole->bytes);
    MUST(memcmp(again.data, whole->data, whole->bytes) == 0);
    free(again.data);
    free(anew);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) return 0;
    const char    *bytes = (const char *)data + 1;
    struct decoded whole = decode(bytes, size - 1, size);
    struct decoded parts = decode(bytes, size - 1, data[0] % 16 + 1u);
    must_be_same(&whole, &parts);
    if (whole.step == JRT_HTTP_CHUNK_LAST) must_survive_writing(&whole);
    free(whole.data);
    free(parts.data);
    return 0;
}
