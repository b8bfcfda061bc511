/* SPDX-License-Identifier: MIT */
/* One thread at a time. shelf_stress.c uses more, and shelf_model.c tries all orders. Includes the
 * code itself, so that the test can refuse it memory. */
#include "harness.h"
#include "plat/world.h"

#include <stdlib.h>
#include <string.h>

static int allocations_left = -1; /* negative: no limit */

static void *limited_alloc(size_t alignment, size_t bytes)
{
    if (allocations_left == 0) return NULL;
    if (allocations_left > 0) allocations_left--;
    return aligned_alloc(alignment, bytes);
}

#define jrt_aligned_alloc limited_alloc
#include "sched/shelf.c"
#undef jrt_aligned_alloc

enum { FIRST = JRT_SHELF_FIRST_SLOTS, MANY = 64 };

static void *item(uintptr_t number) { return (void *)number; }

static struct jrt_shelf shelf_new(void)
{
    struct jrt_shelf shelf;
    CHECK(jrt_shelf_init(&shelf));
    return shelf;
}

static void push(struct jrt_shelf *shelf, uintptr_t first, uintptr_t last)
{
    for (uintptr_t i = first; i <= last; i++) CHECK(jrt_shelf_push(shelf, item(i)));
}

static uintptr_t newest(struct jrt_shelf *shelf) { return (uintptr_t)jrt_shelf_pop_newest(shelf); }
static uintptr_t oldest(struct jrt_shelf *shelf) { return (uintptr_t)jrt_shelf_pop_oldest(shelf); }

typedef size_t take_function(struct jrt_shelf *shelf, void **out, size_t max);

/* Takes items and checks that they are first, first + 1, …; nothing beyond is written. */
static void take(take_function *taker, struct jrt_shelf *shelf, size_t max, uintptr_t first,
                 size_t count)
{
    void *out[MANY + 1];
    memset(out, 0, sizeof out);
    CHECK(max <= MANY);
    CHECK_EQ(taker(shelf, out, max), count);
    for (size_t i = 0; i < count; i++) CHECK_EQ((uintptr_t)out[i], first + i);
    for (size_t i = count; i <= MANY; i++) CHECK(out[i] == NULL);
}

static void close(struct jrt_shelf *shelf)
{
    CHECK_EQ(jrt_shelf_size(shelf), 0);
    CHECK_EQ(newest(shelf), 0);
    CHECK_EQ(oldest(shelf), 0);
    take(jrt_shelf_pop_half, shelf, MANY, 0, 0);
    take(jrt_shelf_raid, shelf, MANY, 0, 0);
    CHECK_EQ(jrt_shelf_size(shelf), 0);
    jrt_shelf_fini(shelf);
}

TEST("a new shelf is empty from both ends, for its owner and for raiders")
{
    struct jrt_shelf shelf = shelf_new();
    close(&shelf);
}

TEST("the owner takes the newest or the oldest item")
{
    struct jrt_shelf shelf = shelf_new();
    push(&shelf, 1, 50);
    CHECK_EQ(jrt_shelf_size(&shelf), 50);
    for (uintptr_t i = 1; i <= 25; i++) {
        CHECK_EQ(oldest(&shelf), i);
        CHECK_EQ(newest(&shelf), 51 - i);
        CHECK_EQ(jrt_shelf_size(&shelf), 50 - 2 * i);
    }
    close(&shelf);
}

TEST("the owner sees the next items, also where the slots begin again, and no further")
{
    struct jrt_shelf shelf = shelf_new();
    push(&shelf, 1, FIRST);
    for (uintptr_t i = 1; i <= FIRST - 2; i++) CHECK_EQ(oldest(&shelf), i);
    push(&shelf, FIRST + 1, FIRST + 3);
    jrt_shelf_enter(&shelf);
    for (uintptr_t i = 0; i < 5; i++) {
        CHECK_EQ((uintptr_t)jrt_shelf_see(&shelf, i), FIRST - 1 + i);
    }
    CHECK(jrt_shelf_see(&shelf, 5) == NULL);
    CHECK(jrt_shelf_see(&shelf, FIRST) == NULL);
    jrt_shelf_leave(&shelf);
    for (uintptr_t i = 0; i < 5; i++) CHECK_EQ(oldest(&shelf), FIRST - 1 + i);
    close(&shelf);
}

static void take_halves(take_function *taker)
{
    struct jrt_shelf shelf = shelf_new();
    push(&shelf, 1, 9);
    take(taker, &shelf, MANY, 1, 5); /* rounded up */
    take(taker, &shelf, MANY, 6, 2);
    take(taker, &shelf, 0, 0, 0);
    CHECK_EQ(jrt_shelf_size(&shelf), 2);
    take(taker, &shelf, MANY, 8, 1);
    take(taker, &shelf, MANY, 9, 1); /* the last one, too */
    push(&shelf, 10, 30);
    take(taker, &shelf, 3, 10, 3); /* no more than asked for */
    CHECK_EQ(newest(&shelf), 30);
    take(taker, &shelf, MANY, 13, 9);
    for (uintptr_t i = 29; i >= 22; i--) CHECK_EQ(newest(&shelf), i);
    close(&shelf);
}

TEST("half a shelf is its oldest items, rounded up, and no more than asked for")
{
    take_halves(jrt_shelf_pop_half);
}

TEST("a raid takes the oldest half too") { take_halves(jrt_shelf_raid); }

TEST("all operations on a shelf may be mixed in any order")
{
    /* Beside a plain array in which the items of the shelf lie from first to last. */
    enum { STEPS = 200000 };
    static uintptr_t array[STEPS + 1];
    uintptr_t        first = 0, last = 0, number = 0;
    unsigned         dice = 1;
    struct jrt_shelf shelf = shelf_new();
    for (int i = 0; i < STEPS; i++) {
        dice = dice * 1103515245u + 12345u;
        unsigned face = (dice >> 16) % 100;
        unsigned pushes = i / 1000 % 2 == 0 ? 70 : 30; /* fills for a while, then drains */
        if (face < pushes) {
            number++;
            push(&shelf, number, number);
            array[last++] = number;
        } else if (face >= 98) { /* rarely: a raid costs a system call */
            void  *out[MANY];
            size_t half = (last - first + 1) / 2;
            size_t count = (face == 98 ? jrt_shelf_raid : jrt_shelf_pop_half)(&shelf, out, MANY);
            CHECK_EQ(count, half < MANY ? half : MANY);
            for (size_t j = 0; j < count; j++) CHECK_EQ((uintptr_t)out[j], array[first++]);
        } else if (face % 2 == 0) {
            CHECK_EQ(newest(&shelf), last > first ? array[--last] : 0);
        } else {
            CHECK_EQ(oldest(&shelf), last > first ? array[first++] : 0);
        }
        CHECK_EQ(jrt_shelf_size(&shelf), last - first);
    }
    while (last > first) CHECK_EQ(newest(&shelf), array[--last]);
    close(&shelf);
}

TEST("a shelf grows far beyond its first ring and keeps every item in order")
{
    enum { ITEMS = 100 * FIRST };
    struct jrt_shelf shelf = shelf_new();
    push(&shelf, 1, 10);
    for (uintptr_t i = 1; i <= 10; i++) CHECK_EQ(oldest(&shelf), i); /* not from slot 0 on */
    push(&shelf, 1, ITEMS);
    CHECK_EQ(jrt_shelf_size(&shelf), ITEMS);
    for (uintptr_t i = 1; i <= ITEMS / 2; i++) CHECK_EQ(oldest(&shelf), i);
    for (uintptr_t i = ITEMS; i > ITEMS / 2; i--) CHECK_EQ(newest(&shelf), i);
    close(&shelf);
}

TEST("a shelf that is never full does not grow, however many items pass through it")
{
    struct jrt_shelf shelf = shelf_new();
    allocations_left = 0;
    for (uintptr_t i = 1; i <= 100000; i++) {
        push(&shelf, i, i);
        if (i >= FIRST) CHECK_EQ(oldest(&shelf), i - FIRST + 1);
    }
    while (newest(&shelf) != 0) continue;
    allocations_left = -1;
    close(&shelf);
}

TEST("a shelf returns false if its first ring is refused")
{
    struct jrt_shelf shelf;
    allocations_left = 0;
    CHECK(!jrt_shelf_init(&shelf));
    allocations_left = -1;
}

TEST("a push without memory changes nothing and may be tried again")
{
    struct jrt_shelf shelf = shelf_new();
    allocations_left = 0;
    push(&shelf, 1, FIRST);
    for (int i = 0; i < 3; i++) CHECK(!jrt_shelf_push(&shelf, item(999)));
    CHECK_EQ(jrt_shelf_size(&shelf), FIRST);
    CHECK_EQ(oldest(&shelf), 1);
    push(&shelf, FIRST + 1, FIRST + 1); /* into the slot that became free */
    CHECK(!jrt_shelf_push(&shelf, item(999)));
    CHECK_EQ(newest(&shelf), FIRST + 1);
    push(&shelf, FIRST + 1, FIRST + 1);
    take(jrt_shelf_raid, &shelf, 1, 2, 1); /* no raider is left inside */
    push(&shelf, FIRST + 2, FIRST + 2);
    allocations_left = 1;
    push(&shelf, FIRST + 3, 2 * FIRST + 2);
    CHECK(!jrt_shelf_push(&shelf, item(999)));
    for (uintptr_t i = 3; i <= 2 * FIRST + 2; i++) CHECK_EQ(oldest(&shelf), i);
    allocations_left = -1;
    close(&shelf);
}

TEST("a raider takes nothing while another one is inside")
{
    struct jrt_shelf shelf = shelf_new();
    push(&shelf, 1, 4);
    atomic_store(&shelf.raiding, 1);
    take(jrt_shelf_raid, &shelf, MANY, 0, 0);
    CHECK_EQ(atomic_load(&shelf.raiding), 1); /* the other raider's */
    atomic_store(&shelf.raiding, 0);
    CHECK_EQ(jrt_shelf_size(&shelf), 4);
    take(jrt_shelf_raid, &shelf, MANY, 1, 2);
    for (uintptr_t i = 4; i >= 3; i--) CHECK_EQ(newest(&shelf), i);
    close(&shelf);
}

TEST("an owner that finds a shelf empty does not wait for a raider")
{
    struct jrt_shelf shelf = shelf_new();
    atomic_store(&shelf.raiding, 1);
    CHECK_EQ(newest(&shelf), 0);
    CHECK_EQ(oldest(&shelf), 0);
    take(jrt_shelf_pop_half, &shelf, MANY, 0, 0);
    push(&shelf, 1, FIRST); /* an owner adds while there is room */
    atomic_store(&shelf.raiding, 0);
    while (oldest(&shelf) != 0) continue;
    close(&shelf);
}

static void fini_with_an_item(void *argument)
{
    (void)argument;
    struct jrt_shelf shelf = shelf_new();
    push(&shelf, 1, 1);
    jrt_shelf_fini(&shelf);
}

TEST("ending a shelf that still holds an item is a broken contract")
{
    int         status = 0;
    const char *text = harness_child(fini_with_an_item, NULL, &status);
    CHECK(status != 0);
    CHECK(strstr(text, "items would be lost") != NULL);
}
