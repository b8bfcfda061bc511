/* SPDX-License-Identifier: MIT */
/* Nurseries inside nurseries: how many a task may have open, and the cost of a look-up deep
 * down. */
#include "rig.h"

#include <stdio.h>
#include <time.h>

enum { NESTING_MAX = 1000 };

/* Opens nurseries in an array, upwards or downwards in memory, until one is refused. */
static int64_t open_all(void *argument)
{
    const int     *limit = argument;
    int            most = *limit < 0 ? -*limit : *limit;
    janus_nursery *all = malloc((size_t)(most + 1) * sizeof *all);
    CHECK(all != NULL);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i <= most; i++) {
            janus_nursery *n = *limit < 0 ? &all[most - i] : &all[i];
            CHECK_EQ(janus_nursery_open(n, i == 7 ? JANUS_NURSERY_OPTIONS(.name = "x") : NULL),
                     i < most ? JANUS_OK : JANUS_FULL);
        }
        CHECK(janus_nursery_create() == NULL);
        CHECK_EQ(janus_nursery_open(&all[0], NULL), *limit < 0 ? JANUS_FULL : JANUS_STATE);
        for (int i = most - 1; i >= 0; i--) {
            janus_nursery *n = *limit < 0 ? &all[most - i] : &all[i];
            CHECK_EQ(janus_spawn(n, nothing, NULL), JANUS_OK);
            CHECK_EQ(janus_nursery_end(n, NULL), JANUS_OK);
        }
    }
    free(all);
    return 0;
}

TEST("a task can open a thousand nurseries, and one more is refused with FULL, wherever they lie")
{
    rig_all(open_all, &(int){NESTING_MAX}, 1);
    rig_all(open_all, &(int){-NESTING_MAX}, 1);
}

TEST("the scheduler's max_nesting limits the nurseries that a task has open")
{
    for (int most = 1; most < 12; most++) {
        int              down = -most;
        janus_scheduler *scheduler =
            rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .max_nesting = (uint32_t)most));
        rig_do(scheduler, open_all, &most);
        rig_do(scheduler, open_all, &down);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

/* A chain of tasks, each in a nursery of the task above. */

struct chain {
    int      depth, level;
    bool     cancelled;
    uint64_t began_ns, spent_ns; /* CPU time of the only worker */
};

static uint64_t cpu_ns(void)
{
    struct timespec now;
    CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* At the bottom: something far up and elsewhere is cancelled, then each task looks. */
static int64_t go_down(void *argument)
{
    struct chain *chain = argument;
    janus_status  status;
    CHECK_EQ(janus_yield(), JANUS_OK); /* a stack of its own */
    if (++chain->level == chain->depth) {
        while (!chain->cancelled) CHECK_EQ(janus_yield(), JANUS_OK);
        chain->began_ns = cpu_ns();
        return 0;
    }
    JANUS_NURSERY(n, status) { CHECK_EQ(janus_spawn(n, go_down, chain), JANUS_OK); }
    CHECK(!janus_cancelled());
    return status;
}

static void cancel_shallow(void)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
}

static int64_t look_up_chain(void *argument)
{
    struct chain *chain = argument;
    janus_status  status;
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn(n, go_down, chain), JANUS_OK);
        while (chain->level < chain->depth) CHECK_EQ(janus_yield(), JANUS_OK);
        cancel_shallow();
        chain->cancelled = true;
    }
    chain->spent_ns = cpu_ns() - chain->began_ns;
    return status;
}

static uint64_t time_chain(int depth)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 3; i++) {
        struct chain chain = {.depth = depth};
        rig_run(1, look_up_chain, &chain, 1);
        if (chain.spent_ns < least) least = chain.spent_ns;
    }
    return least;
}

TEST("after a cancel far up, all looks in a chain of nurseries together cost its length once")
{
    RIG_REAL("CPU time is measured");
    if (RIG_SLOW) SKIP("too slow to tell");
    uint64_t some = 0, many = 1;
    /* Eight times as many; if each look cost the depth, 64 times. A busy machine may disturb some
     * measurements. */
    for (int i = 0; i < 10 && many >= some * 24; i++) {
        some = time_chain(1000), many = time_chain(8000);
        printf("# %llu ns and %llu ns\n", (unsigned long long)some, (unsigned long long)many);
    }
    CHECK(many < some * 24);
}
