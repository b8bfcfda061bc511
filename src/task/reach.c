/* SPDX-License-Identifier: MIT */
/*
 * How far up cancels reach.
 *
 * [reach-depth]  A cancel concerns a nursery and what lies below it, so never a nursery that is
 *   less deep. A nursery that was found clean stays clean while all later cancels are deeper.
 *   Without this rule an error that rises through n nurseries costs n * n. Each level cancels one
 *   nursery, and each owner then looks up to the root.
 *
 * [reach-places]  The question is: how deep is the least deep cancel after a given count? A cancel
 *   that is followed by one of the same or a lesser depth never answers it. So the places hold
 *   cancels in order of time, each less deep than the next. A new cancel replaces all that are not
 *   less deep. An error that rises needs one place. If the places are full, the last one takes the
 *   new count and keeps its depth. Then it answers "perhaps not" too often, but never too rarely.
 *
 * [reach-order]  Writers have a lock, readers have none. A writer first writes the new cancel to
 *   the lowest place that it replaces, then clears the places above. A reader goes from the last
 *   place down to the first. A reader that finds a place cleared acquires that store. So at a
 *   lower place it finds the cancel that caused the clearing, or a later cancel in its place. It
 *   misses no cancel that was finished when it read the count.
 *
 * [reach-overlap]  Cancels that overlap may note their counts in another order than they began. A
 *   place that replaces others takes the largest of their counts.
 */
#include "task/reach.h"

#include "base/assert.h"
#include "plat/world.h"

/* A place holds the count in the upper bits. The depth is in the bits where counts have zeros. */
static const uint64_t depth_bits = UINT64_C(0xffff);

static uint64_t depth_in(uint64_t place) { return place & depth_bits; }

static uint64_t clamped(uint32_t depth) { return depth < depth_bits ? depth : depth_bits; }

/* The largest count from this place on, [reach-overlap]; under the lock. */
static uint64_t latest_from(const struct jrt_reach *reach, unsigned at, uint64_t count)
{
    for (; at < JRT_REACH_PLACES; at++) {
        uint64_t place = jrt_load_relaxed(&reach->places[at]); /* relaxed: under the lock. */
        if ((place & ~depth_bits) > count) count = place & ~depth_bits;
    }
    return count;
}

/* Each less deep than the next, and nothing behind a place that is free; under the lock. */
static bool is_in_order(const struct jrt_reach *reach)
{
    for (unsigned at = 1; at < JRT_REACH_PLACES; at++) {
        uint64_t before = jrt_load_relaxed(&reach->places[at - 1]); /* relaxed: the lock's. */
        uint64_t place = jrt_load_relaxed(&reach->places[at]);      /* relaxed: the lock's. */
        if (place != 0 && (before == 0 || depth_in(before) >= depth_in(place))) return false;
    }
    return true;
}

/* Whether a lower place answers all that this one does; under the lock. */
static bool is_answered_below(const struct jrt_reach *reach, unsigned at)
{
    uint64_t place = jrt_load_relaxed(&reach->places[at]); /* relaxed: under the lock. */
    for (unsigned below = 0; below < at; below++) {
        uint64_t lower = jrt_load_relaxed(&reach->places[below]); /* relaxed: under the lock. */
        bool     later = (lower & ~depth_bits) >= (place & ~depth_bits);
        if (later && depth_in(lower) <= depth_in(place)) return true;
    }
    return place == 0;
}

void jrt_reach_note(struct jrt_reach *reach, uint64_t count, uint32_t depth)
{
    uint64_t deep = clamped(depth);
    unsigned at = 0;
    jrt_lock(&reach->lock);
    for (; at < JRT_REACH_PLACES; at++) {
        uint64_t place = jrt_load_relaxed(&reach->places[at]); /* relaxed: under the lock. */
        if (place == 0 || depth_in(place) >= deep) break;
        if (at + 1 < JRT_REACH_PLACES) continue;
        deep = depth_in(place); /* full, [reach-places] */
        break;
    }
    count = latest_from(reach, at, count);
    jrt_debug_invariant("reach-overlap", latest_from(reach, at, count) == count);
    jrt_store_release(&reach->places[at], count | deep); /* release: [reach-order]. */
    for (at++; at < JRT_REACH_PLACES; at++) {
        /* relaxed, in the function: under the lock. */
        jrt_debug_invariant("reach-order", is_answered_below(reach, at));
        jrt_store_release(&reach->places[at], UINT64_C(0)); /* release: [reach-order]. */
    }
    jrt_debug_invariant("reach-places", is_in_order(reach));
    jrt_unlock(&reach->lock);
}

bool jrt_reach_is_deeper(const struct jrt_reach *reach, uint64_t count, uint32_t depth)
{
    for (unsigned at = JRT_REACH_PLACES; at-- > 0;) {
        uint64_t place = jrt_load_acquire(&reach->places[at]); /* acquire: [reach-order]. */
        if ((place & ~depth_bits) > count && depth_in(place) <= clamped(depth)) return false;
    }
    return true;
}
