/* SPDX-License-Identifier: MIT */
#include "kernel.h"
uint64_t kernel(void)
{
    uint64_t best = 0;
    for (uint64_t i = 1; i < ROUNDS(400000, 4000); i++) {
        uint64_t n = i, k = 0;
        while (n != 1) {
            n = n & 1 ? 3 * n + 1 : n / 2;
            k++;
        }
        if (k > best) best = k;
    }
    return best;
}
