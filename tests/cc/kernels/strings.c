/* SPDX-License-Identifier: MIT */
/* Words of 1 to 12 letters are hashed, copied and compared. Most loops run a few rounds. */
#include "kernel.h"
static size_t len(const char *s)
{
    size_t n = 0;
    while (s[n]) n++;
    return n;
}
static int same(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}
static uint32_t hash(const char *s)
{
    uint32_t h = 2166136261u;
    while (*s) h = (h ^ (uint8_t)*s++) * 16777619u;
    return h;
}
uint64_t kernel(void)
{
    enum { W = 4096 };
    static char w[W][16], buckets[1024][16];
    uint64_t    s = 8, sum = 0;
    for (int i = 0; i < W; i++) {
        int n = 1 + (int)(random_next(&s) % 12);
        for (int k = 0; k < n; k++) w[i][k] = (char)('a' + random_next(&s) % 26);
    }
    for (int r = 0; r < ROUNDS(600, 4); r++)
        for (int i = 0; i < W; i++) {
            char *b = buckets[hash(w[i]) & 1023];
            if (!same(b, w[i])) {
                size_t n = len(w[i]);
                for (size_t k = 0; k <= n; k++) b[k] = w[i][k];
                sum += n;
            }
        }
    return sum;
}
