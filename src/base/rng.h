/* SPDX-License-Identifier: MIT */
/*
 * Seeded random numbers: xoshiro256** by Blackman and Vigna. splitmix64 fills its state, as they
 * recommend. It is fast and evenly spread, and gives the same numbers on every machine. It is not
 * for secrets.
 */
#ifndef JRT_BASE_RNG_H
#define JRT_BASE_RNG_H

#include "base/assert.h"

#include <stdint.h>

struct jrt_rng {
    uint64_t s[4]; /* not all zero */
};

/* One step of splitmix64. */
static inline uint64_t jrt_splitmix64(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Every seed is good: four steps of splitmix64 are never all zero. */
static inline void jrt_rng_seed(struct jrt_rng *rng, uint64_t seed)
{
    for (int i = 0; i < 4; i++) rng->s[i] = jrt_splitmix64(&seed);
}

static inline uint64_t jrt_rng_rotate(uint64_t x, int by) { return (x << by) | (x >> (64 - by)); }

static inline uint64_t jrt_rng_next(struct jrt_rng *rng)
{
    uint64_t *s = rng->s;
    uint64_t  result = jrt_rng_rotate(s[1] * 5, 7) * 9;
    uint64_t  t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = jrt_rng_rotate(s[3], 45);
    return result;
}

/*
 * Returns a number below n; all are equally likely. It scales the upper half of a draw down to n
 * (Lemire). It rejects draws that would favour the first 2^32 mod n results. Nearly always one draw
 * is enough. In the worst case it takes two on average.
 */
static inline uint32_t jrt_rng_below(struct jrt_rng *rng, uint32_t n)
{
    jrt_demand(n > 0, "jrt_rng_below(0): no number is below 0");
    uint64_t scaled = (jrt_rng_next(rng) >> 32) * n;
    if (jrt_unlikely((uint32_t)scaled < n)) {
        uint32_t surplus = (0u - n) % n;
        while ((uint32_t)scaled < surplus) scaled = (jrt_rng_next(rng) >> 32) * n;
    }
    return (uint32_t)(scaled >> 32);
}

#endif
