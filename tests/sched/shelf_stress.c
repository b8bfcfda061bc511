/* SPDX-License-Identifier: MIT */
/*
 * One owner and raiders that never stop, with millions of items. Each item is taken exactly once.
 * The owner adds and takes from both ends in bursts. Long bursts let the ring grow. Short bursts
 * keep the shelf nearly empty, where all threads compete for the last item. At the old end, a taker
 * always gets newer items than before.
 */
#include "harness.h"

#include "base/rng.h"
#include "sched/shelf.h"

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
enum { RAIDERS_MAX = 4, RAID_MAX = 16 };

static struct jrt_shelf       shelf;
static _Atomic(unsigned char) taken[ITEMS + 1];
static atomic_bool            stop;

struct taker {
    _Alignas(64) uint64_t count;
    uint64_t  sum, visits;
    uintptr_t oldest; /* the last that was taken from the old end */
};

static void take(struct taker *taker, uintptr_t got)
{
    CHECK(got > 0 && got <= ITEMS);
    CHECK_EQ(atomic_exchange_explicit(&taken[got], 1, memory_order_relaxed), 0);
    taker->count++;
    taker->sum += got;
}

static void take_oldest(struct taker *taker, void **items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uintptr_t got = (uintptr_t)items[i];
        CHECK(got > taker->oldest);
        taker->oldest = got;
        take(taker, got);
    }
    taker->visits += count > 0;
}

static void *run_raider(void *argument)
{
    struct taker *taker = argument;
    void         *items[RAID_MAX];
    bool          stopping = false;
    for (size_t count = 0; count > 0 || !stopping;) {
        stopping = atomic_load(&stop); /* read first: then nothing is added afterwards */
        count = jrt_shelf_size(&shelf) > 0 ? jrt_shelf_raid(&shelf, items, RAID_MAX) : 0;
        take_oldest(taker, items, count);
        if (count == 0) sched_yield();
    }
    return NULL;
}

static uintptr_t push_burst(uintptr_t next, uint32_t length)
{
    for (uint32_t i = 0; i < length && next <= ITEMS; i++) {
        CHECK(jrt_shelf_push(&shelf, (void *)next));
        next++;
    }
    return next;
}

static void pop_burst(struct taker *taker, uint32_t length)
{
    for (uint32_t i = 0; i < length; i++) {
        uintptr_t got = (uintptr_t)jrt_shelf_pop_newest(&shelf);
        if (got == 0) break;
        CHECK(got > taker->oldest);
        take(taker, got);
    }
}

static void run_owner(struct taker *taker, uint64_t seed)
{
    struct jrt_rng rng;
    uintptr_t      next = 1;
    void          *items[RAID_MAX];
    jrt_rng_seed(&rng, seed);
    while (next <= ITEMS) {
        /* Mostly a few at a time, and now and then more than any ring so far can hold. */
        uint32_t longest = jrt_rng_below(&rng, 64) == 0 ? 2000 : 4;
        next = push_burst(next, 1 + jrt_rng_below(&rng, longest));
        switch (jrt_rng_below(&rng, 6)) {
        case 0: break;
        case 1:
            for (uint32_t i = jrt_rng_below(&rng, 3); i > 0; i--) {
                items[0] = jrt_shelf_pop_oldest(&shelf);
                take_oldest(taker, items, items[0] != NULL);
            }
            break;
        case 2: take_oldest(taker, items, jrt_shelf_pop_half(&shelf, items, RAID_MAX)); break;
        default: pop_burst(taker, 1 + jrt_rng_below(&rng, longest + 2)); break;
        }
    }
    pop_burst(taker, UINT32_MAX);
    atomic_store(&stop, true);
}

static void run(int raiders, uint64_t seed)
{
    static struct taker takers[RAIDERS_MAX + 1];
    pthread_t           threads[RAIDERS_MAX];
    struct taker        all = {0};
    CHECK(jrt_shelf_init(&shelf));
    atomic_store(&stop, false);
    for (int i = 0; i <= ITEMS; i++) atomic_store_explicit(&taken[i], 0, memory_order_relaxed);
    for (int i = 0; i <= raiders; i++) takers[i] = (struct taker){0};
    for (int i = 0; i < raiders; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, run_raider, &takers[i + 1]), 0);
    }
    run_owner(&takers[0], seed);
    for (int i = 0; i < raiders; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i <= raiders; i++) {
        all.count += takers[i].count;
        all.sum += takers[i].sum;
        all.visits += takers[i].visits;
    }
    printf("# %d items: owner took %llu, raiders %llu in %llu raids\n", ITEMS,
           (unsigned long long)takers[0].count, (unsigned long long)(all.count - takers[0].count),
           (unsigned long long)(all.visits - takers[0].visits));
    CHECK_EQ(all.count, ITEMS);
    CHECK_EQ(all.sum, (uint64_t)ITEMS * (ITEMS + 1) / 2);
    jrt_shelf_fini(&shelf);
}

TEST("each item is taken exactly once by the owner or its one raider") { run(1, 1); }

TEST("each item is taken exactly once by the owner or one of four raiders") { run(4, 2); }
