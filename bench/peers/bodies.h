/* SPDX-License-Identifier: MIT */
/* The bodies of the parallel loops, the same for all contestants, and the plain loops. */
#ifndef JANUSRT_BENCH_BODIES_H
#define JANUSRT_BENCH_BODIES_H

#include "runner.h"

enum { BODIES_EMPTY = 1000000, BODIES_CELLS = 1024, BODIES_ROUNDS = 150 };

static uint64_t bodies_cells[BODIES_CELLS];

/* Nearly empty: the loop itself is the cost. */
static inline void bodies_empty(uint64_t begin, uint64_t end)
{
    for (uint64_t i = begin; i < end; i++) {
        bodies_cells[i % BODIES_CELLS] = i;
        __asm__ volatile("" : : "r"(i)); /* each index separately */
    }
}

/* About 100 ns: a chain that no CPU can shorten. */
static inline void bodies_long(uint64_t begin, uint64_t end)
{
    for (uint64_t i = begin; i < end; i++) {
        uint64_t value = i;
        for (int k = 0; k < BODIES_ROUNDS; k++) {
            value = value * UINT64_C(6364136223846793005) + 1;
            __asm__ volatile("" : "+r"(value));
        }
        bodies_cells[i % BODIES_CELLS] = value;
    }
}

static inline uint64_t bodies_count(void) { return runner.quick ? 20000 : 100000; }

/* The time of a loop by `run`, as a multiple of the same loop on one thread. The two take turns,
 * and the shortest of ten times counts. */
static inline double bodies_ratio(void (*run)(void), void (*serial)(uint64_t, uint64_t),
                                  uint64_t count)
{
    uint64_t best = UINT64_MAX, best_serial = UINT64_MAX;
    for (int i = 0; i < 10; i++) {
        uint64_t start = bench_now_ns();
        serial(0, count);
        uint64_t middle = bench_now_ns();
        run();
        uint64_t end = bench_now_ns();
        if (middle - start < best_serial) best_serial = middle - start;
        if (end - middle < best) best = end - middle;
    }
    return (double)best / (double)best_serial;
}

#endif
