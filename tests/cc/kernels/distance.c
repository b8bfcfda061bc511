/* SPDX-License-Identifier: MIT */
/* The edit distance of words, row by row: short rows, with minima. */
#include "kernel.h"

static uint32_t min(uint32_t a, uint32_t b) { return a < b ? a : b; }

static uint32_t distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    uint32_t row[64];
    for (size_t j = 0; j <= b_length; j++) row[j] = (uint32_t)j;
    for (size_t i = 1; i <= a_length; i++) {
        uint32_t diagonal = row[0];
        row[0] = (uint32_t)i;
        for (size_t j = 1; j <= b_length; j++) {
            uint32_t above = row[j];
            row[j] = min(min(above, row[j - 1]) + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[b_length];
}

uint64_t kernel(void)
{
    enum { WORDS = 64 };
    static char word[WORDS][40];
    size_t      length[WORDS];
    uint64_t    state = 77, sum = 0;
    for (int i = 0; i < WORDS; i++) {
        length[i] = 1 + random_next(&state) % 38;
        for (size_t k = 0; k < length[i]; k++) word[i][k] = (char)('a' + random_next(&state) % 4);
    }
    for (int r = 0; r < ROUNDS(20, 1); r++)
        for (int i = 0; i < WORDS; i++)
            for (int j = 0; j < i; j++)
                sum = sum * 3 + distance(word[i], length[i], word[j], length[j]);
    return sum;
}
