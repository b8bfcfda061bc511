/* SPDX-License-Identifier: MIT */
/* One thread at a time, and growth while others steal. Includes the code itself, so that the test
 * can refuse it memory. */
#include "harness.h"
#include "plat/world.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

static int allocations_left = -1; /* negative: no limit */

static void *limited_alloc(size_t alignment, size_t bytes)
{
    if (allocations_left == 0) return NULL;
    if (allocations_left > 0) allocations_left--;
    return aligned_alloc(alignment, bytes);
}

#define jrt_aligned_alloc limited_alloc
#include "sched/deque.c"
#undef jrt_aligned_alloc

static void *item(uintptr_t number) { return (void *)number; }

static struct jrt_deque deque_new(void)
{
    struct jrt_deque d;
    CHECK(jrt_deque_init(&d));
    return d;
}

static void push(struct jrt_deque *d, uintptr_t first, uintptr_t last)
{
    for (uintptr_t i = first; i <= last; i++) CHECK(jrt_deque_push(d, item(i)));
}

static uintptr_t pop(struct jrt_deque *d) { return (uintptr_t)jrt_deque_pop(d); }

static uintptr_t steal(struct jrt_deque *d)
{
    bool      lost = true;
    uintptr_t got = (uintptr_t)jrt_deque_steal(d, &lost);
    CHECK(!lost);
    return got;
}

static void close(struct jrt_deque *d)
{
    CHECK_EQ(pop(d), 0);
    CHECK_EQ(steal(d), 0);
    CHECK(jrt_deque_seems_empty(d));
    CHECK_EQ(jrt_deque_size(d), 0);
    jrt_deque_fini(d);
}

TEST("a new deque is empty from both ends")
{
    struct jrt_deque d = deque_new();
    close(&d);
}

TEST("the owner takes the newest first")
{
    struct jrt_deque d = deque_new();
    push(&d, 1, 50);
    CHECK_EQ(jrt_deque_size(&d), 50);
    for (uintptr_t i = 50; i >= 1; i--) CHECK_EQ(pop(&d), i);
    close(&d);
}

TEST("a thief takes the oldest first")
{
    struct jrt_deque d = deque_new();
    push(&d, 1, 50);
    for (uintptr_t i = 1; i <= 50; i++) CHECK_EQ(steal(&d), i);
    close(&d);
}

TEST("pushes, pops and steals may be mixed in any order")
{
    /* Beside a plain array in which the items of the deque lie from first to last. */
    enum { STEPS = 200000 };
    static uintptr_t array[STEPS + 1];
    uintptr_t        first = 0, last = 0, number = 0;
    unsigned         dice = 1;
    struct jrt_deque d = deque_new();
    for (int i = 0; i < STEPS; i++) {
        dice = dice * 1103515245u + 12345u;
        unsigned face = (dice >> 16) % 100;
        unsigned pushes = i / 1000 % 2 == 0 ? 60 : 40; /* fills for a while, then drains */
        if (face < pushes) {
            number++;
            push(&d, number, number);
            array[last++] = number;
        } else if (face % 2 == 0) {
            CHECK_EQ(pop(&d), last > first ? array[--last] : 0);
        } else {
            CHECK_EQ(steal(&d), last > first ? array[first++] : 0);
        }
        CHECK_EQ(jrt_deque_size(&d), last - first);
        CHECK_EQ(jrt_deque_seems_empty(&d), last == first);
    }
    while (last > first) CHECK_EQ(pop(&d), array[--last]);
    close(&d);
}

TEST("a deque grows far beyond its first ring and keeps every item in order")
{
    enum { ITEMS = 1000 * JRT_DEQUE_FIRST_SLOTS };
    struct jrt_deque d = deque_new();
    push(&d, 1, ITEMS);
    CHECK_EQ(jrt_deque_size(&d), ITEMS);
    for (uintptr_t i = 1; i <= ITEMS / 2; i++) CHECK_EQ(steal(&d), i);
    for (uintptr_t i = ITEMS; i > ITEMS / 2; i--) CHECK_EQ(pop(&d), i);
    close(&d);
}

TEST("a deque that is never full does not grow, however many items pass through it")
{
    struct jrt_deque d = deque_new();
    allocations_left = 0;
    for (uintptr_t i = 1; i <= 100000; i++) {
        push(&d, i, i);
        if (i >= JRT_DEQUE_FIRST_SLOTS) CHECK_EQ(steal(&d), i - JRT_DEQUE_FIRST_SLOTS + 1);
    }
    while (pop(&d) != 0) continue;
    allocations_left = -1;
    close(&d);
}

TEST("old rings together are smaller than the newest")
{
    struct jrt_deque d = deque_new();
    push(&d, 1, 5000);
    struct jrt_deque_ring *ring = atomic_load(&d.ring);
    size_t                 newest = ring->mask + 1, older = 0;
    for (ring = ring->older; ring != NULL; ring = ring->older) older += ring->mask + 1;
    CHECK_EQ(newest, 8192);
    CHECK(older < newest);
    while (pop(&d) != 0) continue;
    close(&d);
}

TEST("a deque returns false if its first ring is refused")
{
    struct jrt_deque d;
    allocations_left = 0;
    CHECK(!jrt_deque_init(&d));
    allocations_left = -1;
}

TEST("a push without memory changes nothing and may be tried again")
{
    struct jrt_deque d = deque_new();
    uintptr_t        full = JRT_DEQUE_FIRST_SLOTS;
    allocations_left = 0;
    push(&d, 1, full);
    for (int i = 0; i < 3; i++) CHECK(!jrt_deque_push(&d, item(999)));
    CHECK_EQ(jrt_deque_size(&d), full);
    CHECK_EQ(steal(&d), 1);
    push(&d, full + 1, full + 1); /* into the slot that became free */
    CHECK(!jrt_deque_push(&d, item(999)));
    CHECK_EQ(pop(&d), full + 1);
    push(&d, full + 1, full + 1);
    allocations_left = 1;
    push(&d, full + 2, 2 * full + 1);
    CHECK(!jrt_deque_push(&d, item(999)));
    for (uintptr_t i = 2; i <= 2 * full + 1; i++) CHECK_EQ(steal(&d), i);
    allocations_left = -1;
    close(&d);
}

static void fini_with_an_item(void *argument)
{
    (void)argument;
    struct jrt_deque d = deque_new();
    push(&d, 1, 1);
    jrt_deque_fini(&d);
}

TEST("ending a deque that still holds an item is a broken contract")
{
    int status = 0;
    (void)harness_child(fini_with_an_item, NULL, &status);
    CHECK(status != 0);
}

#if JRT_ASAN || JRT_TSAN || defined(__aarch64__)
enum { GROWING_ITEMS = 50000, THIEVES = 2 };
#else
enum { GROWING_ITEMS = 1000000, THIEVES = 2 };
#endif

struct thief {
    struct jrt_deque *victim;
    atomic_bool      *stop;
    uint64_t          sum, count;
};

static void *steal_until_told(void *argument)
{
    struct thief *thief = argument;
    uintptr_t     before = 0;
    bool          stop = false;
    do {
        stop = atomic_load(thief->stop); /* read first: everything stolen now was pushed before */
        bool      lost;
        uintptr_t got = (uintptr_t)jrt_deque_steal(thief->victim, &lost);
        if (got != 0) {
            CHECK(got > before);
            before = got;
            thief->sum += got;
            thief->count++;
        } else {
            sched_yield();
        }
        stop = stop && got == 0 && !lost;
    } while (!stop);
    return NULL;
}

TEST("a deque that grows while it is stolen from loses nothing")
{
    struct jrt_deque d = deque_new();
    atomic_bool      stop = false;
    struct thief     thieves[THIEVES];
    pthread_t        threads[THIEVES];
    uint64_t         sum = 0, count = 0;
    for (int i = 0; i < THIEVES; i++) {
        thieves[i] = (struct thief){.victim = &d, .stop = &stop};
        CHECK_EQ(pthread_create(&threads[i], NULL, steal_until_told, &thieves[i]), 0);
    }
    for (uintptr_t i = 1; i <= GROWING_ITEMS; i++) {
        CHECK(jrt_deque_push(&d, item(i)));
        if (i % 5 != 0) continue;
        uintptr_t got = pop(&d); /* a thief may have been faster */
        sum += got;
        count += got != 0;
    }
    atomic_store(&stop, true);
    for (int i = 0; i < THIEVES; i++) {
        pthread_join(threads[i], NULL);
        sum += thieves[i].sum;
        count += thieves[i].count;
    }
    CHECK_EQ(count, GROWING_ITEMS);
    CHECK_EQ(sum, (uint64_t)GROWING_ITEMS * (GROWING_ITEMS + 1) / 2);
    close(&d);
}
