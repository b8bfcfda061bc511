/* SPDX-License-Identifier: MIT */
/* A loop of about 20 instructions a round, to measure the cost of a check in it. */
#ifndef JANUSRT_BENCH_CHAIN_H
#define JANUSRT_BENCH_CHAIN_H

#include <stdint.h>

enum { CHAIN = 4096 };

static uint32_t chain[CHAIN];

static inline void chain_make(void)
{
    uint64_t seed = 1;
    for (int i = 0; i < CHAIN; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        chain[i] = (uint32_t)(seed >> 33);
    }
}

/* One round: a step along the chain, mixed with what it finds there. */
static inline __attribute__((always_inline)) uint64_t chain_walk(uint64_t state, uint64_t i)
{
    uint64_t found = chain[(uint32_t)state % CHAIN];
    uint64_t low = found ^ i;
    low = (low << 13) | (low >> 51);
    low += found * 5;
    low ^= low >> 17;
    state = (state >> 12) + found + (low & 3);
    return state ^ (i >> 7);
}

#endif
