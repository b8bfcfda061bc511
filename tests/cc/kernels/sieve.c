/* SPDX-License-Identifier: MIT */
#include "kernel.h"
uint64_t kernel(void)
{
    enum { N = ROUNDS(2000000, 20000) };
    static uint8_t c[N + 1];
    uint64_t       n = 0;
    for (int r = 0; r < ROUNDS(8, 1); r++) {
        memset(c, 0, sizeof c);
        for (int i = 2; i <= N; i++) {
            if (c[i]) continue;
            n++;
            for (int j = i * 2; j <= N; j += i) c[j] = 1;
        }
    }
    return n;
}
