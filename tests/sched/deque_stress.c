/* SPDX-License-Identifier: MIT */
/*
 * One owner and thieves that never stop, with millions of items. Each item is taken exactly once.
 * The owner pushes, pops and takes from the top in bursts. Long bursts let the ring grow. Short
 * bursts keep the deque nearly empty, where all threads compete for the last item.
 */
#include "harness.h"

#include "base/rng.h"
#include "sched/deque.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>

#if JRT_TSAN || defined(__aarch64__)
enum { ITEMS = 1000000 };
#elif JRT_ASAN || JRT_DEBUG
enum { ITEMS = 2000000 };
#else
enum { ITEMS = 10000000 };
#endif
enum { THIEVES_MAX = 4 };

static struct jrt_deque       deque;
static _Atomic(unsigned char) taken[ITEMS + 1];
static atomic_bool            stop;

struct taker {
    _Alignas(64) uint64_t count;
    uint64_t  sum, lost;
    uintptr_t oldest; /* the last that was taken from the top */
};

static void take(struct taker *taker, uintptr_t got)
{
    CHECK(got <= ITEMS);
    CHECK_EQ(atomic_exchange_explicit(&taken[got], 1, memory_order_relaxed), 0);
    taker->count++;
    taker->sum += got;
}

/* Takes from the top, where numbers only grow. False: it was empty, and no thread was faster. */
static bool take_oldest(struct taker *taker)
{
    bool      lost;
    uintptr_t got = (uintptr_t)jrt_deque_steal(&deque, &lost);
    taker->lost += lost;
    if (got == 0) return lost;
    CHECK(!lost);
    CHECK(got > taker->oldest);
    taker->oldest = got;
    take(taker, got);
    return true;
}

static void *run_thief(void *argument)
{
    struct taker *taker = argument;
    bool          more = true, stopping = false;
    while (more || !stopping) {
        stopping = atomic_load(&stop); /* read first: then nothing is pushed afterwards */
        more = take_oldest(taker);
        if (!more) sched_yield();
    }
    return NULL;
}

static uintptr_t push_burst(uintptr_t next, uint32_t length)
{
    for (uint32_t i = 0; i < length && next <= ITEMS; i++) {
        CHECK(jrt_deque_push(&deque, (void *)next));
        next++;
    }
    return next;
}

static void pop_burst(struct taker *taker, uint32_t length)
{
    for (uint32_t i = 0; i < length; i++) {
        uintptr_t got = (uintptr_t)jrt_deque_pop(&deque);
        if (got == 0) break;
        CHECK(got > taker->oldest);
        take(taker, got);
    }
}

static void run_owner(struct taker *taker, uint64_t seed)
{
    struct jrt_rng rng;
    uintptr_t      next = 1;
    jrt_rng_seed(&rng, seed);
    while (next <= ITEMS) {
        /* Mostly a few at a time, and now and then more than any ring so far can hold. */
        uint32_t longest = jrt_rng_below(&rng, 64) == 0 ? 2000 : 4;
        next = push_burst(next, 1 + jrt_rng_below(&rng, longest));
        switch (jrt_rng_below(&rng, 4)) {
        case 0: break;
        case 1:
            for (uint32_t i = jrt_rng_below(&rng, 3); i > 0; i--) (void)take_oldest(taker);
            break;
        default: pop_burst(taker, 1 + jrt_rng_below(&rng, longest + 2)); break;
        }
    }
    atomic_store(&stop, true);
    pop_burst(taker, UINT32_MAX);
}

static void run(int thieves, uint64_t seed)
{
    static struct taker takers[THIEVES_MAX + 1];
    pthread_t           threads[THIEVES_MAX];
    struct taker        all = {0};
    CHECK(jrt_deque_init(&deque));
    atomic_store(&stop, false);
    for (int i = 0; i <= ITEMS; i++) atomic_store_explicit(&taken[i], 0, memory_order_relaxed);
    for (int i = 0; i <= thieves; i++) takers[i] = (struct taker){0};
    for (int i = 0; i < thieves; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, run_thief, &takers[i + 1]), 0);
    }
    run_owner(&takers[0], seed);
    for (int i = 0; i < thieves; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i <= thieves; i++) {
        all.count += takers[i].count;
        all.sum += takers[i].sum;
        all.lost += takers[i].lost;
    }
    printf("# %d items: owner took %llu, thieves %llu, lost races %llu\n", ITEMS,
           (unsigned long long)takers[0].count, (unsigned long long)(all.count - takers[0].count),
           (unsigned long long)all.lost);
    CHECK_EQ(all.count, ITEMS);
    CHECK_EQ(all.sum, (uint64_t)ITEMS * (ITEMS + 1) / 2);
    jrt_deque_fini(&deque);
}

TEST("each item is taken exactly once by the owner or its one thief") { run(1, 1); }

TEST("each item is taken exactly once by the owner or one of four thieves") { run(4, 2); }
