/* SPDX-License-Identifier: MIT */
/*
 * What does a stack overflow cost, and does it leak memory?
 *
 * Timed: 100,000 fibers in a row that each overflow a 16 KiB stack, beside as many that return at
 *        once. Memory is measured before and after.
 * Moves it: signal delivery, and filling 16 KiB with frames.
 * Expect: a few microseconds and no leak.
 */
#include "bench.h"

#include <janusrt/janus.h>

enum { ROUNDS = 100000 };

static volatile int bottomless = 1;

__attribute__((noinline)) static int64_t dig(int64_t depth)
{
    volatile char room[400];
    room[0] = (char)depth;
    return (bottomless ? dig(depth + 1) : 0) + room[0];
}

static int64_t overflow(void *argument)
{
    (void)argument;
    return dig(0);
}

static int64_t return_at_once(void *argument)
{
    (void)argument;
    return 0;
}

/* Nanoseconds for each fiber. Counts the panics by overflow. */
static double run(janus_fiber_pool *pool, janus_entry *entry, int *overflows)
{
    uint64_t start = bench_now_ns();
    for (int i = 0; i < ROUNDS; i++) {
        janus_fiber  *fiber;
        janus_outcome outcome;
        if (janus_fiber_create(pool, entry, NULL, NULL, &fiber) != JANUS_OK) abort();
        if (janus_fiber_resume(fiber, NULL, &outcome) != JANUS_OK) abort();
        if (outcome.state == JANUS_FIBER_STATE_PANICKED &&
            outcome.panic.kind == JANUS_PANIC_KIND_STACK_OVERFLOW &&
            outcome.panic.fiber_id == janus_fiber_id(fiber)) {
            ++*overflows;
        }
        janus_fiber_destroy(fiber);
    }
    return (double)(bench_now_ns() - start) / (double)ROUNDS;
}

int main(void)
{
    janus_fiber_pool *pool;
    int               reported = 0, none = 0;
    if (janus_fiber_pool_create(JANUS_FIBER_POOL_OPTIONS(.stack_bytes = 16 * 1024), &pool) !=
        JANUS_OK)
        return 1;
    (void)run(pool, return_at_once, &none);
    janus_fiber_pool_info before = JANUS_FIBER_POOL_INFO();
    janus_fiber_pool_info after = before;
    JANUS_IGNORE(janus_fiber_pool_inspect(pool, &before));
    double plain = run(pool, return_at_once, &none);
    double each = run(pool, overflow, &reported);
    JANUS_IGNORE(janus_fiber_pool_inspect(pool, &after));
    bench_say("overflow", "fiber that returns, whole life", plain, "ns");
    bench_say("overflow", "fiber that overflows, whole life", each, "ns");
    bench_say("overflow", "reported, of 100000", reported, "");
    bench_say("overflow", "stacks and records left behind",
              (double)(after.reserved_bytes - before.reserved_bytes + after.record_bytes -
                       before.record_bytes + after.stacks_attached),
              "");
    return janus_fiber_pool_destroy(pool) == JANUS_OK && reported == ROUNDS && none == 0 ? 0 : 1;
}
