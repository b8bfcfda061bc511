/* SPDX-License-Identifier: MIT */
#include "kernel.h"
static void sort(int32_t *v, long lo, long hi)
{
    while (lo < hi) {
        int32_t p = v[(lo + hi) / 2];
        long    i = lo, j = hi;
        while (i <= j) {
            while (v[i] < p) i++;
            while (v[j] > p) j--;
            if (i <= j) {
                int32_t t = v[i];
                v[i] = v[j];
                v[j] = t;
                i++;
                j--;
            }
        }
        if (j - lo < hi - i) {
            sort(v, lo, j);
            lo = i;
        } else {
            sort(v, i, hi);
            hi = j;
        }
    }
}
uint64_t kernel(void)
{
    enum { N = ROUNDS(1000000, 20000) };
    int32_t *v = malloc(N * sizeof *v);
    uint64_t s = 88172645463325252ull, sum = 0;
    for (long i = 0; i < N; i++) v[i] = (int32_t)random_next(&s);
    sort(v, 0, N - 1);
    for (long i = 0; i < N; i += 1000) sum = sum * 31 + (uint32_t)v[i];
    free(v);
    return sum;
}
