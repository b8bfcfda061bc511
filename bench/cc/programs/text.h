/* SPDX-License-Identifier: MIT */
/* Text with words that repeat, the same each time, for the programs that pack. */
#ifndef JANUSRT_BENCH_TEXT_H
#define JANUSRT_BENCH_TEXT_H

#include <stddef.h>
#include <stdint.h>

enum { TEXT_BYTES = 4 << 20 };

static inline void text_fill(unsigned char *text)
{
    static const char words[] =
        "the budget of a task counts rounds calls and bytes while others wait ";
    uint32_t seed = 12345;
    for (size_t i = 0; i < TEXT_BYTES;) {
        seed = seed * 1664525 + 1013904223;
        size_t from = (seed >> 8) % (sizeof words - 12), length = 2 + (seed >> 20) % 9;
        for (size_t k = 0; k < length && i < TEXT_BYTES; k++)
            text[i++] = (unsigned char)words[from + k];
        if ((seed & 15) == 0 && i < TEXT_BYTES) text[i++] = (unsigned char)(seed >> 24);
    }
}

static inline uint64_t text_hash(const unsigned char *text, size_t bytes)
{
    uint64_t hash = bytes;
    for (size_t i = 0; i < bytes; i += 64) hash = hash * 31 + text[i];
    return hash;
}

#endif
