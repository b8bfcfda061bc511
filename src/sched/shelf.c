/* SPDX-License-Identifier: MIT */
/*
 * The queue in front of the deque.
 *
 *               oldest                   newest
 *                 v                         v
 *     ... gone    | . . . . . . . . . . . . | free ...
 *      raiders take, and the owner          the owner adds and takes
 *
 * Most tasks run on the worker that started them. For these the deque's locked instruction is a
 * waste. So tasks lie on a shelf first, and go to the deque only when another worker looks for
 * work. If a worker runs one long task and cannot be asked, another worker raids its shelf.
 *
 * [shelf-lock]  the owner's lock costs two stores and a load:
 *
 *     owner    busy = 1; light fence; raiding != 0?  then busy = 0, wait, again
 *     raider   raiding = 1 (one at a time); heavy fence; wait while busy != 0
 *
 *   The two mirror each other: the second one sees the first. The owner gives way, so a raider
 *   waits only a few instructions, unless the owner's thread is preempted there. The fences are the
 *   asymmetric pair of plat/seam.h. The heavy one interrupts every CPU that runs this process, for
 *   some microseconds. That is why an idle worker raids only as the last resort.
 *
 *   Adding needs no lock: it writes a slot beyond newest, then newest. A raider sees the item or
 *   does not. Only growing, which moves the slots, takes the lock.
 *
 * Rejected: claiming an item by moving newest, and looking for raiders afterwards, without busy. It
 * saves one store. But taking the oldest then cannot be undone when a raider has seen it.
 *
 * tests/sched/shelf_model.c tries all orders of small histories.
 *
 * Locks: [shelf-lock].
 */
#include "sched/shelf.h"

#include <stdlib.h>

_Static_assert((JRT_SHELF_FIRST_SLOTS & (JRT_SHELF_FIRST_SLOTS - 1)) == 0, "a power of two");

bool jrt_shelf_init(struct jrt_shelf *shelf)
{
    *shelf = (struct jrt_shelf){.mask = JRT_SHELF_FIRST_SLOTS - 1, .room = JRT_SHELF_FIRST_SLOTS};
    shelf->slots = jrt_aligned_alloc(64, JRT_SHELF_FIRST_SLOTS * sizeof *shelf->slots);
    return shelf->slots != NULL;
}

void jrt_shelf_fini(struct jrt_shelf *shelf)
{
    jrt_demand(jrt_shelf_size(shelf) == 0, "jrt_shelf_fini: items would be lost");
    free((void *)shelf->slots);
    shelf->slots = NULL;
}

void jrt_shelf_enter_slow(struct jrt_shelf *shelf)
{
    do {
        jrt_store_release(&shelf->busy, 0u); /* release: as in leave. */
        for (unsigned i = 0; jrt_load_relaxed(&shelf->raiding) != 0; i++) { /* relaxed: a hint. */
            if (i % 64 == 63) jrt_thread_yield(); /* the raider's thread may be off the CPU */
            jrt_cpu_relax();
        }
        jrt_store_relaxed(&shelf->busy, 1u); /* relaxed: as in enter. */
        jrt_fence_light_seq_cst();           /* seq_cst: [shelf-lock]. */
        /* acquire: what the last raider did. */
    } while (jrt_load_acquire(&shelf->raiding) != 0);
}

/* Doubles the slots. The caller holds the lock. */
static bool grow(struct jrt_shelf *shelf, uint64_t oldest, uint64_t newest)
{
    uint64_t         slots = (shelf->mask + 1) * 2;
    _Atomic(void *) *larger = jrt_aligned_alloc(64, slots * sizeof *larger);
    if (larger == NULL) return false;
    for (uint64_t i = oldest; i != newest; i++) {
        /* relaxed, both: inside. */
        void *item = jrt_load_relaxed(&shelf->slots[i & shelf->mask]);
        jrt_store_relaxed(&larger[i & (slots - 1)], item);
    }
    free((void *)shelf->slots);
    shelf->slots = larger;
    shelf->mask = slots - 1;
    return true;
}

bool jrt_shelf_push_slow(struct jrt_shelf *shelf, void *item)
{
    if (shelf->slots == NULL) return false; /* all zeros: it refuses everything */
    jrt_shelf_enter(shelf);
    uint64_t newest = jrt_load_relaxed(&shelf->newest); /* relaxed: our own. */
    uint64_t oldest = jrt_load_relaxed(&shelf->oldest); /* relaxed: inside. */
    bool     fits = newest - oldest <= shelf->mask || grow(shelf, oldest, newest);
    if (fits) shelf->room = oldest + shelf->mask + 1;
    jrt_shelf_leave(shelf);
    return fits && jrt_shelf_push(shelf, item);
}

/* The caller holds the lock. */
static size_t take_half(struct jrt_shelf *shelf, void **out, size_t max)
{
    uint64_t oldest = jrt_load_relaxed(&shelf->oldest); /* relaxed: inside. */
    uint64_t newest = jrt_load_acquire(&shelf->newest); /* acquire: pairs with push. */
    uint64_t count = (newest - oldest + 1) / 2;
    if (count > max) count = max;
    for (uint64_t i = 0; i < count; i++) {
        out[i] = jrt_load_relaxed(&shelf->slots[(oldest + i) & shelf->mask]); /* relaxed: inside. */
    }
    jrt_store_relaxed(&shelf->oldest, oldest + count); /* relaxed: leaving releases it. */
    return (size_t)count;
}

/* Leaves the lock with nothing. A call, so that the callers' own code stays short. */
void jrt_shelf_give_up(struct jrt_shelf *shelf) { jrt_shelf_leave(shelf); }

size_t jrt_shelf_pop_half(struct jrt_shelf *shelf, void **out, size_t max)
{
    if (jrt_shelf_size(shelf) == 0) return 0;
    jrt_shelf_enter(shelf);
    size_t count = take_half(shelf, out, max);
    jrt_shelf_leave(shelf);
    return count;
}

size_t jrt_shelf_raid(struct jrt_shelf *shelf, void **out, size_t max)
{
    uint32_t nobody = 0;
    /* acquire: what the last raider did. The owner orders the rest, so relaxed would do. */
    if (!jrt_cas_acquire(&shelf->raiding, &nobody, 1u)) return 0;
    jrt_fence_heavy_seq_cst(); /* seq_cst: [shelf-lock]. */
    /* acquire: what the owner did inside. */
    for (unsigned i = 0; jrt_load_acquire(&shelf->busy) != 0; i++) {
        if (i % 64 == 63) jrt_thread_yield();
        jrt_cpu_relax();
    }
    size_t count = take_half(shelf, out, max);
    jrt_store_release(&shelf->raiding, 0u); /* release: what we took. */
    return count;
}
