/* SPDX-License-Identifier: MIT */
/* More workers than processors: which are awake. Each test gives the process one processor. */
#include "rig.h"
#include "task/worker.h"
#include "work/crew.h"

#include <sched.h>

enum { WORKERS = 4 };

static cpu_set_t all;

static void await_sleep(janus_scheduler *scheduler)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    /* relaxed: a hint, and it counts only up to WORKERS here. */
    while (jrt_load_relaxed(&scheduler->asleep) < WORKERS) {
        CHECK(janus_now_ns() < limit);
        jrt_thread_yield();
    }
}

/* A scheduler with one processor for its four workers, all asleep. */
static janus_scheduler *open_on_one(void)
{
    cpu_set_t one;
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    size_t first = 0;
    while (!CPU_ISSET(first, &all)) first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = WORKERS));
    await_sleep(scheduler);
    CHECK_EQ(jrt_load_relaxed(&scheduler->beyond), WORKERS - 1); /* relaxed: it is constant. */
    return scheduler;
}

static void close_on_all(janus_scheduler *scheduler)
{
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    CHECK(sched_setaffinity(0, sizeof all, &all) == 0);
}

static janus_worker_info sum_of(const janus_scheduler *scheduler)
{
    janus_worker_info sum = JANUS_WORKER_INFO();
    CHECK_EQ(janus_worker_inspect(scheduler, UINT32_MAX, &sum), JANUS_OK);
    return sum;
}

static int64_t batches(void *argument)
{
    enum { BATCHES = 300, CHILDREN = 100 };
    for (int i = 0; i < BATCHES; i++) {
        janus_nursery n;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        for (int k = 0; k < CHILDREN; k++) CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    }
    return argument == NULL ? 0 : -1;
}

TEST("workers that have no processor do not wake up for short tasks")
{
    RIG_REAL("its processors are not the machine's");
    janus_scheduler  *scheduler = open_on_one();
    janus_worker_info before = sum_of(scheduler);
    uint64_t          began = janus_now_ns();
    rig_do(scheduler, batches, NULL);
    uint64_t          patrols = (janus_now_ns() - began) / rig_ms + 1;
    janus_worker_info after = sum_of(scheduler);
    /* The worker of the first task searches before and after it; a patrol may steal. */
    CHECK(after.steals_failed - before.steals_failed <= 100 + patrols);
    CHECK(after.parks - before.parks <= 8 + 2 * patrols);
    close_on_all(scheduler);
}

/* Spins, without a call that lets others run, until all have begun. */
static int64_t meet(void *argument)
{
    atomic_int *begun = argument;
    uint64_t    limit = janus_now_ns() + rig_patience;
    atomic_fetch_add(begun, 1);
    while (atomic_load(begun) < WORKERS) CHECK(janus_now_ns() < limit);
    return 0;
}

static int64_t meet_all(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 1; i < WORKERS; i++) CHECK_EQ(janus_spawn(&n, meet, argument), JANUS_OK);
    (void)meet(argument);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("tasks that spin for one another come to run, one on each worker")
{
    RIG_REAL("a spinning task never gives way there");
    janus_scheduler *scheduler = open_on_one();
    for (int i = 0; i < 20; i++) {
        atomic_int begun = 0;
        rig_do(scheduler, meet_all, &begun);
    }
    close_on_all(scheduler);
}

TEST("injected tasks that spin for one another come to run, one on each worker")
{
    RIG_REAL("a spinning task never gives way there");
    janus_scheduler *scheduler = open_on_one();
    for (int i = 0; i < 20; i++) {
        atomic_int    begun = 0;
        janus_nursery n;
        CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_OK);
        for (int k = 0; k < WORKERS; k++) CHECK_EQ(janus_spawn(&n, meet, &begun), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    }
    close_on_all(scheduler);
}

/* Computes for longer than a patrol's pause, beside a timer of a sleeping worker. */
static int64_t compute(void *argument)
{
    atomic_int *rung = argument;
    uint64_t    limit = janus_now_ns() + rig_patience;
    while (!atomic_load(rung)) CHECK(janus_now_ns() < limit);
    return 0;
}

static int64_t ring(void *argument)
{
    CHECK_EQ(janus_sleep_until(janus_now_ns() + 3 * rig_ms), JANUS_OK);
    atomic_store((atomic_int *)argument, 1);
    return 0;
}

TEST("a timer rings while the only awake worker computes")
{
    RIG_REAL("a spinning task never gives way there");
    janus_scheduler *scheduler = open_on_one();
    for (int i = 0; i < 5; i++) {
        atomic_int    rung = 0;
        janus_nursery n;
        CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, ring, &rung), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, compute, &rung), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    }
    close_on_all(scheduler);
}

/* Waits for all to sleep; then nobody patrols. */
TEST("when all workers sleep, none wakes up to patrol")
{
    RIG_REAL("its processors are not the machine's");
    janus_scheduler *scheduler = open_on_one();
    rig_do(scheduler, batches, NULL);
    uint64_t limit = janus_now_ns() + rig_patience;
    bool     quiet = false;
    while (!quiet) {
        CHECK(janus_now_ns() < limit);
        jrt_thread_yield();
        jrt_lock(&scheduler->idle_lock);
        /* relaxed: under the lock. A keeper that found all asleep has no deadline. */
        quiet = jrt_load_relaxed(&scheduler->asleep) == WORKERS && !scheduler->patrols;
        jrt_unlock(&scheduler->idle_lock);
    }
    close_on_all(scheduler);
}

TEST("after a loss all workers are woken, also when each has a thread again")
{
    RIG_REAL("its processors are not the machine's");
    janus_scheduler *scheduler = open_on_one();
    uint64_t         limit = janus_now_ns() + rig_patience;
    jrt_replacements_refuse(UINT32_MAX);
    jrt_worker_doom(scheduler, 1);
    /* relaxed, all: hints. */
    while (jrt_load_relaxed(&scheduler->lost) == 0) CHECK(janus_now_ns() < limit);
    jrt_replacements_refuse(0);
    while (jrt_load_relaxed(&scheduler->lost) != 0) { /* relaxed: as above. */
        CHECK(janus_now_ns() < limit);
        rig_do(scheduler, nothing, NULL);
    }
    for (uint32_t i = 0; i < WORKERS; i++) jrt_worker_doom(scheduler, i);
    while (sum_of(scheduler).restarts < WORKERS + 1) CHECK(janus_now_ns() < limit);
    await_sleep(scheduler); /* the first worker's new thread has counted the processors */
    CHECK_EQ(jrt_load_relaxed(&scheduler->beyond), 0); /* relaxed: as above. */
    close_on_all(scheduler);
}
