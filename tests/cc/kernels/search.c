/* SPDX-License-Identifier: MIT */
#include "kernel.h"
static const char *find(const char *h, size_t n, const char *w, size_t m)
{
    for (size_t i = 0; i + m <= n; i++) {
        size_t j = 0;
        while (j < m && h[i + j] == w[j]) j++;
        if (j == m) return h + i;
    }
    return NULL;
}
uint64_t kernel(void)
{
    enum { N = ROUNDS(1 << 22, 1 << 16) };
    static char text[N + 1];
    uint64_t    s = 99, sum = 0;
    for (size_t i = 0; i < N; i++) text[i] = (char)('a' + random_next(&s) % 6);
    static const char *volatile w[] = {"abcdefabcx", "fedcbax", "aaaaaaaaaax", "bcbcbcbcx"};
    for (int r = 0; r < 4; r++) {
        const char *x = w[r], *p = find(text, N, x, strlen(x));
        sum += p ? (uint64_t)(p - text) : 7;
    }
    return sum;
}
