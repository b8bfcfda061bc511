/* SPDX-License-Identifier: MIT */
/* How far up cancels reach: what a nursery that was found clean may conclude later. */
#include "base/rng.h"
#include "rig.h"
#include "task/reach.h"

#include <pthread.h>

enum { ONE = 0x10000, CANCELS = 400, DEEPEST = 70000 };

static uint32_t some_depth(struct jrt_rng *rng)
{
    uint64_t kind = jrt_rng_next(rng) % 3;
    uint64_t most = kind == 0 ? 4 : kind == 1 ? 60 : DEEPEST;
    return 1 + (uint32_t)(jrt_rng_next(rng) % most);
}

TEST("a clean nursery always sees a later cancel that is not deeper than itself")
{
    for (uint64_t seed = 1; seed < 60; seed++) {
        struct jrt_reach reach = {.lock = PTHREAD_MUTEX_INITIALIZER};
        struct jrt_rng   rng;
        uint32_t         depths[CANCELS];
        jrt_rng_seed(&rng, seed);
        for (uint64_t i = 0; i < CANCELS; i++) {
            depths[i] = some_depth(&rng);
            jrt_reach_note(&reach, (i + 1) * ONE, depths[i]);
            uint64_t clean = jrt_rng_next(&rng) % (i + 2);
            uint32_t depth = some_depth(&rng), least = UINT32_MAX;
            for (uint64_t at = clean; at <= i; at++) {
                if (depths[at] < least) least = depths[at];
            }
            if (least <= depth) CHECK(!jrt_reach_is_deeper(&reach, clean * ONE, depth));
        }
    }
}

TEST("while an error rises, the nurseries above it stay clean")
{
    struct jrt_reach reach = {.lock = PTHREAD_MUTEX_INITIALIZER};
    uint64_t         count = ONE;
    for (int round = 0; round < 3; round++) {
        uint64_t before = count;
        for (uint32_t depth = 1000; depth > 1; depth--) {
            count += ONE;
            jrt_reach_note(&reach, count, depth);
            CHECK(jrt_reach_is_deeper(&reach, before, depth - 1));
            CHECK(!jrt_reach_is_deeper(&reach, before, depth));
            CHECK(jrt_reach_is_deeper(&reach, count, DEEPEST));
        }
    }
}

TEST("cancels that overlap may be noted in another order than they began")
{
    struct jrt_reach reach = {.lock = PTHREAD_MUTEX_INITIALIZER};
    jrt_reach_note(&reach, UINT64_C(9) * ONE, 5);
    jrt_reach_note(&reach, UINT64_C(7) * ONE, 3);
    CHECK(!jrt_reach_is_deeper(&reach, UINT64_C(8) * ONE, 5));
    CHECK(!jrt_reach_is_deeper(&reach, UINT64_C(6) * ONE, 3));
}

struct race {
    struct jrt_reach  reach;
    _Atomic(uint64_t) done; /* cancels */
    uint32_t          depths[20000];
};

static void *note_many(void *argument)
{
    struct race   *race = argument;
    struct jrt_rng rng;
    jrt_rng_seed(&rng, 7);
    for (uint64_t i = 0; i < sizeof race->depths / sizeof race->depths[0]; i++) {
        race->depths[i] = some_depth(&rng);
        jrt_reach_note(&race->reach, (i + 1) * ONE, race->depths[i]);
        atomic_store_explicit(&race->done, i + 1, memory_order_release);
    }
    return NULL;
}

TEST("a reader that knows of a cancel finds it, whatever is noted meanwhile")
{
    static struct race race = {.reach = {.lock = PTHREAD_MUTEX_INITIALIZER}};
    const uint64_t     all = sizeof race.depths / sizeof race.depths[0];
    pthread_t          writer;
    uint64_t           done = 0;
    CHECK_EQ(pthread_create(&writer, NULL, note_many, &race), 0);
    while (done < all) {
        done = atomic_load_explicit(&race.done, memory_order_acquire);
        if (done == 0) continue;
        CHECK(!jrt_reach_is_deeper(&race.reach, (done - 1) * ONE, race.depths[done - 1]));
    }
    CHECK_EQ(pthread_join(writer, NULL), 0);
}
