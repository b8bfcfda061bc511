/* SPDX-License-Identifier: MIT */
/* Slices and portions that grow while they are short in time, [turn-pace], and what stays exact. */
#define RIG_MAX_SLICE JANUS_SLICE_MAX
#include "energy.h"

#include <janusrt/counted.h>
#include <janusrt/dump.h>

/* How often tasks of this scheduler could not pay. */
static uint64_t exhaustions(void)
{
    janus_worker_info info = JANUS_WORKER_INFO();
    uint64_t          all = 0;
    janus_scheduler  *scheduler = janus_scheduler_current();
    for (uint32_t i = 0; i < janus_scheduler_worker_count(scheduler); i++) {
        CHECK_EQ(janus_worker_inspect(scheduler, i, &info), JANUS_OK);
        all += info.exhaustions;
    }
    return all;
}

enum { OPS = 5000000 };

static int64_t count_portions(void *argument)
{
    uint64_t before = exhaustions();
    for (int i = 0; i < OPS; i++) janus_check_or_end(1);
    *(uint64_t *)argument = exhaustions() - before;
    return 0;
}

static uint64_t portions_with(uint32_t max_slice)
{
    uint64_t portions = 0;
    rig_first(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .max_slice = max_slice), count_portions,
              &portions);
    return portions;
}

TEST("slices and portions of an implicit budget grow to max_slice while they are short in time")
{
    /* The portions of the profile are JANUS_SLICE, and the most that a task gets is ten times that.
     */
    CHECK(portions_with(JANUS_SLICE) >= OPS / JANUS_SLICE - 1);
    CHECK(portions_with(JANUS_SLICE_MAX) <= OPS / (10 * JANUS_SLICE) + 10);
    CHECK(portions_with(4 * JANUS_SLICE) <= OPS / (4 * JANUS_SLICE) + 10);
    CHECK(portions_with(4 * JANUS_SLICE) >= OPS / (4 * JANUS_SLICE));
}

TEST("a max_slice outside of its range is refused")
{
    janus_scheduler *scheduler = NULL;
    CHECK_EQ(janus_scheduler_create_with(JANUS_SCHEDULER_OPTIONS(.max_slice = JANUS_SLICE - 1),
                                         &scheduler),
             JANUS_INVALID);
    CHECK_EQ(janus_scheduler_create_with(JANUS_SCHEDULER_OPTIONS(.max_slice = JANUS_SLICE_MAX + 1),
                                         &scheduler),
             JANUS_INVALID);
    CHECK(scheduler == NULL);
}

/* Grows the slices of the current task as far as they go. */
static void warm_up(void)
{
    for (int i = 0; i < 8 * JANUS_SLICE_MAX; i++) janus_check_or_end(1);
}

struct counted {
    uint64_t         ops;
    int              children;
    atomic_long      done;
    _Atomic(int64_t) largest; /* word seen; of all children, roughly */
};

static int64_t spend_all(void *argument)
{
    struct counted *counted = argument;
    for (;;) {
        janus_check_or_end(1);
        atomic_fetch_add(&counted->done, 1);
        int64_t word = janus_fuel_take(0);
        if (word > counted->largest) counted->largest = word;
    }
    return 0;
}

static int64_t exactly(void *argument)
{
    struct counted         *counted = argument;
    janus_nursery           n;
    janus_nursery_pool_info info = JANUS_NURSERY_POOL_INFO();
    janus_budget            pool = JANUS_BUDGET(.ops = counted->ops, .spawn_count = 4);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    for (int i = 0; i < counted->children; i++)
        CHECK_EQ(janus_spawn(&n, spend_all, counted), JANUS_OK);
    CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_CHILD_FAILED);
    CHECK_EQ(janus_nursery_pool_inspect(&n, &info), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    /* A spawn costs an op. The first child that is exhausted cancels its siblings, and the cleanup
     * ops that these do not use count as spent. */
    uint64_t did = (uint64_t)atomic_load(&counted->done) + (uint64_t)counted->children;
    CHECK(did <= counted->ops);
    CHECK(did <= info.spent.ops);
    if (counted->children == 1) CHECK_EQ(did, counted->ops);
    if (counted->children == 1) CHECK_EQ(info.spent.ops, counted->ops);
    CHECK(counted->largest > JANUS_SLICE && counted->largest <= JANUS_SLICE_MAX);
    return 0;
}

TEST("a child with long slices spends exactly its pool, and four do not spend more")
{
    janus_budget most = janus_budget_of(UINT64_C(1) << 40, 1 << 30, 1000, 1000, 1000);
    for (uint32_t workers = 1; workers <= 2; workers++) {
        for (int children = 1; children <= 4; children += 3) {
            struct counted counted = {.ops = 4000003, .children = children};
            rig_first(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .max_budget = &most),
                      exactly, &counted);
        }
    }
}

static int64_t forge(void *argument)
{
    warm_up();
    janus_fuel += *(int64_t *)argument;
    JANUS_IGNORE(janus_charge(janus_price_loop(1)));
    return 0;
}

static int64_t forge_words(void *argument)
{
    static int64_t nothing_more = 0, more = JANUS_SLICE_MAX;
    janus_nursery  n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, forge, &nothing_more), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, forge, &more), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    return 0;
}

TEST("a word with more than its long slice was handed is found, and the task panics")
{
    rig_run(1, forge_words, NULL, 1);
}

struct cleanup {
    atomic_int  warm;
    atomic_long after;
};

static void clean_for_ever(void *argument)
{
    for (;;) {
        janus_check_or_end(1);
        atomic_fetch_add(&((struct cleanup *)argument)->after, 1);
    }
}

static int64_t clean_after_long_slice(void *argument)
{
    struct cleanup *cleanup = argument;
    CHECK_EQ(janus_defer(clean_for_ever, cleanup), JANUS_OK);
    warm_up();
    atomic_store(&cleanup->warm, 1);
    for (;;) janus_check_or_end(1);
    return 0;
}

static int64_t cancel_long_slice(void *argument)
{
    struct cleanup *cleanup = argument;
    janus_nursery   n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, clean_after_long_slice, cleanup), JANUS_OK);
    CHECK(rig_wait(&cleanup->warm));
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    CHECK(atomic_load(&cleanup->after) <= 2 * JANUS_SLICE); /* the allowance, and its own rest */
    return 0;
}

TEST("a task with long slices and portions has no more ops to clean up with than others")
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        struct cleanup cleanup = {0};
        rig_run(workers, cancel_long_slice, &cleanup, 1);
    }
}
