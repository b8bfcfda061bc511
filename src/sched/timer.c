/* SPDX-License-Identifier: MIT */
/*
 * A heap with four children for each node, in one array.
 *
 * The array holds the deadline beside the pointer. So moving up or down compares only entries of
 * the array, and touches a timer only to store its new place. The root stands at 3, which puts each
 * group of four siblings into one cache line of 64 bytes:
 *
 *     slot        0 1 2  3  | 4 5 6 7 | 8 9 10 11 | 12 …
 *                 unused root  its     the children   of 5
 *                              children of 4
 *     parent of s: s / 4 + 2            first child of s: 4 * s - 8
 *
 * [timer-index]  for every armed timer, entries[timer->index] is its entry. Index 0 means no place.
 *
 * [timer-order]  no entry is due before its parent. Of two equal deadlines the timer with the lower
 *   sequence is due first, so the order of arming holds. A deterministic run, in which equal
 *   deadlines are common, repeats for this reason. Only for equal deadlines does a comparison read
 *   a timer.
 *
 * Memory: the array doubles when full. It halves when three quarters are unused, but not below what
 * was reserved, so that a burst of a million does not stay for ever. If the system refuses a
 * halving, nothing changes. Doubling copies: 4 ms on the way to the millionth timer, once.
 *
 * Rejected:
 * - A wheel: it is coarse, or cascades, and the sleeper must know the next deadline exactly.
 * - Two children for each node: 1.2 to 1.4 times as long for a sleep (bench/timer_bench.c).
 * - Choosing the least of four without branches: slower in the cache, and no faster outside.
 * - A pairing heap: it chases a pointer at each step.
 *
 * Locks: none. The owner locks.
 */
#include "sched/timer.h"

#include "base/assert.h"
#include "plat/world.h"

#include <stdlib.h>
#include <string.h>

enum {
    CAPACITY_MIN = 61,
    FANOUT = 4,
    LINE_BYTES = 64,
    CACHED = 1024, /* up to this child, the grandchildren are in the cache anyway */
};

_Static_assert(sizeof(struct jrt_timer_entry) * FANOUT == LINE_BYTES, "siblings share a line");

void jrt_timers_init(struct jrt_timers *timers) { *timers = (struct jrt_timers){0}; }

void jrt_timers_fini(struct jrt_timers *timers)
{
    jrt_demand(timers->count == 0, "jrt_timers_fini with armed timers");
    free(timers->entries);
    *timers = (struct jrt_timers){0};
}

static bool resize(struct jrt_timers *timers, uint32_t capacity)
{
    size_t bytes = ((size_t)capacity + JRT_TIMERS_ROOT) * sizeof(struct jrt_timer_entry);
    bytes = (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    struct jrt_timer_entry *entries = jrt_aligned_alloc(LINE_BYTES, bytes);
    if (entries == NULL) return false;
    if (timers->count > 0) {
        memcpy(entries + JRT_TIMERS_ROOT, timers->entries + JRT_TIMERS_ROOT,
               timers->count * sizeof entries[0]);
    }
    free(timers->entries);
    timers->entries = entries;
    timers->capacity = capacity;
    return true;
}

bool jrt_timers_reserve(struct jrt_timers *timers, uint32_t count)
{
    if (count > JRT_TIMERS_MAX) return false;
    if (count > timers->capacity && !resize(timers, count)) return false;
    if (count > timers->reserved) timers->reserved = count;
    return true;
}

static bool grow(struct jrt_timers *timers)
{
    if (timers->count >= JRT_TIMERS_MAX) return false;
    uint32_t capacity = timers->capacity * 2 + JRT_TIMERS_ROOT; /* keeps the bytes even */
    if (capacity < CAPACITY_MIN) capacity = CAPACITY_MIN;
    if (capacity > JRT_TIMERS_MAX) capacity = JRT_TIMERS_MAX;
    return resize(timers, capacity);
}

static void shrink(struct jrt_timers *timers)
{
    uint32_t half = timers->capacity / 2;
    if (half < CAPACITY_MIN || half < timers->reserved) return;
    (void)resize(timers, half);
}

static bool before(const struct jrt_timer_entry *left, const struct jrt_timer_entry *right)
{
    if (left->deadline_ns != right->deadline_ns) return left->deadline_ns < right->deadline_ns;
    return left->timer->sequence < right->timer->sequence; /* [timer-order] */
}

static void put(struct jrt_timers *timers, uint32_t slot, struct jrt_timer_entry entry)
{
    timers->entries[slot] = entry;
    entry.timer->index = slot; /* [timer-index] */
}

/* Whether an entry is not due before its parent. */
static bool is_in_order(const struct jrt_timers *timers, uint32_t slot)
{
    if (slot == JRT_TIMERS_ROOT) return true;
    return !before(&timers->entries[slot], &timers->entries[slot / FANOUT + 2]);
}

/* Puts `entry` at `slot` or above. Displaced entries move down. */
static void rise(struct jrt_timers *timers, uint32_t slot, struct jrt_timer_entry entry)
{
    while (slot > JRT_TIMERS_ROOT) {
        uint32_t parent = slot / FANOUT + 2;
        if (!before(&entry, &timers->entries[parent])) break;
        put(timers, slot, timers->entries[parent]);
        slot = parent;
    }
    put(timers, slot, entry);
    jrt_debug_invariant("timer-order", is_in_order(timers, slot));
}

/* The grandchildren of a node are four adjacent cache lines. Prefetching them while the children
 * are compared cuts a sleep among a million others from 370 ns to 240. */
static void prefetch(const struct jrt_timer_entry *grandchildren)
{
    for (int i = 0; i < FANOUT * FANOUT; i += FANOUT) __builtin_prefetch(&grandchildren[i]);
}

/* Puts `entry` at `slot` or below. Displaced entries move up. */
static void sink(struct jrt_timers *timers, uint32_t slot, struct jrt_timer_entry entry)
{
    struct jrt_timer_entry *entries = timers->entries;
    uint64_t                end = (uint64_t)timers->count + JRT_TIMERS_ROOT;
    for (;;) {
        uint64_t child = (uint64_t)slot * FANOUT - 8;
        if (child >= end) break;
        uint64_t last = child + FANOUT < end ? child + FANOUT : end;
        if (child >= CACHED && child * FANOUT < end) prefetch(&entries[child * FANOUT - 8]);
        uint64_t least = child;
        while (++child < last) {
            if (before(&entries[child], &entries[least])) least = child;
        }
        if (!before(&entries[least], &entry)) break;
        put(timers, slot, entries[least]);
        slot = (uint32_t)least;
    }
    put(timers, slot, entry);
    jrt_debug_invariant("timer-order", is_in_order(timers, slot));
}

/* Puts an entry into a freed slot, and moves it up or down as the order requires. */
static void settle(struct jrt_timers *timers, uint32_t slot, struct jrt_timer_entry entry)
{
    if (slot > JRT_TIMERS_ROOT && before(&entry, &timers->entries[slot / FANOUT + 2])) {
        rise(timers, slot, entry);
    } else {
        sink(timers, slot, entry);
    }
}

bool jrt_timer_arm(struct jrt_timers *timers, struct jrt_timer *timer, uint64_t deadline_ns)
{
    bool armed = jrt_timer_armed(timer);
    if (!armed && timers->count == timers->capacity && !grow(timers)) return false;

    timer->deadline_ns = deadline_ns;
    timer->sequence = timers->sequence++;
    struct jrt_timer_entry entry = {.deadline_ns = deadline_ns, .timer = timer};
    if (armed) {
        jrt_invariant("timer-index", timers->entries[timer->index].timer == timer);
        settle(timers, timer->index, entry);
    } else {
        timers->count++;
        rise(timers, timers->count + JRT_TIMERS_ROOT - 1, entry);
    }
    return true;
}

static void take_out(struct jrt_timers *timers, struct jrt_timer *timer)
{
    uint32_t slot = timer->index;
    jrt_invariant("timer-index", slot >= JRT_TIMERS_ROOT &&
                                     slot < timers->count + JRT_TIMERS_ROOT &&
                                     timers->entries[slot].timer == timer);
    timer->index = 0;
    timers->count--;
    uint32_t last = timers->count + JRT_TIMERS_ROOT;
    if (slot != last) settle(timers, slot, timers->entries[last]);
    if (timers->count < timers->capacity / 4) shrink(timers);
}

void jrt_timer_disarm(struct jrt_timers *timers, struct jrt_timer *timer)
{
    if (jrt_timer_armed(timer)) take_out(timers, timer);
}

struct jrt_timer *jrt_timers_pop_due(struct jrt_timers *timers, uint64_t now_ns)
{
    if (timers->count == 0 || timers->entries[JRT_TIMERS_ROOT].deadline_ns > now_ns) return NULL;
    struct jrt_timer *timer = timers->entries[JRT_TIMERS_ROOT].timer;
    take_out(timers, timer);
    return timer;
}
