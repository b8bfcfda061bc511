/* SPDX-License-Identifier: MIT */
/* Verbs for tests of fibers. Each fails the test if the library returns an error. */
#ifndef JANUSRT_TESTS_WORLD_H
#define JANUSRT_TESTS_WORLD_H

#include "harness.h"

#include <janusrt/janus.h>
#include <stdint.h>
#include <string.h>

static inline janus_fiber_pool *pool_with(const janus_fiber_pool_options *options)
{
    janus_fiber_pool *pool = NULL;
    CHECK_EQ(janus_fiber_pool_create(options, &pool), JANUS_OK);
    return pool;
}

static inline janus_fiber_pool *pool_new(void) { return pool_with(NULL); }

static inline janus_fiber *fiber_new(janus_fiber_pool *pool, janus_entry *entry, void *argument)
{
    janus_fiber *fiber = NULL;
    CHECK_EQ(janus_fiber_create(pool, entry, argument, NULL, &fiber), JANUS_OK);
    return fiber;
}

static inline janus_outcome resume(janus_fiber *fiber, void *value)
{
    janus_outcome outcome;
    memset(&outcome, 0xee, sizeof outcome);
    CHECK_EQ(janus_fiber_resume(fiber, value, &outcome), JANUS_OK);
    return outcome;
}

static inline janus_fiber_pool_info stats_of(janus_fiber_pool *pool)
{
    janus_fiber_pool_info stats = JANUS_FIBER_POOL_INFO();
    CHECK_EQ(janus_fiber_pool_inspect(pool, &stats), JANUS_OK);
    return stats;
}

/* Everything must be destroyed, and nothing left. */
static inline void pool_close(janus_fiber_pool *pool)
{
    CHECK_EQ(stats_of(pool).fibers_live, 0);
    CHECK_EQ(stats_of(pool).stacks_attached, 0);
    CHECK_EQ(janus_fiber_pool_destroy(pool), JANUS_OK);
}

/* Runs a fiber once, to its end or first suspend, and destroys it. */
static inline janus_outcome run_once(janus_fiber_pool *pool, janus_entry *entry, void *argument)
{
    janus_fiber  *fiber = fiber_new(pool, entry, argument);
    janus_outcome outcome = resume(fiber, NULL);
    CHECK_EQ(janus_fiber_destroy(fiber), JANUS_OK);
    return outcome;
}

/* Makes frames of about 400 bytes, one below the other, until something stops it. */
__attribute__((noinline, unused)) static int64_t dig(int64_t depth)
{
    static volatile bool bottomless = true;
    volatile char        room[400];
    room[0] = (char)depth;
    return (bottomless ? dig(depth + 1) : 0) + room[0];
}

#endif
