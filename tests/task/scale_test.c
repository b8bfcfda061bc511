/* SPDX-License-Identifier: MIT */
/*
 * Speed and size. Times are CPU time of the measuring thread, the best of some rounds, so that a
 * busy machine changes nothing. The bounds are those of the requirements.
 */
#include "rig.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define OPTIMISED_ONLY()                                                                           \
    do {                                                                                           \
        RIG_REAL("CPU time and memory of the system are measured");                                \
        if (RIG_SLOW || JRT_DEBUG) SKIP("only optimised builds are measured");                     \
    } while (0)

enum { ROUNDS = 5, MOST_NS = 1000 };

static uint64_t cpu_ns(void)
{
    struct timespec time;
    CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time), 0);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* Switches. */

static int64_t suspend_for_ever(void *argument)
{
    for (;;) CHECK_EQ(janus_fiber_suspend(argument, NULL), JANUS_OK);
}

/* SCHED:13.1.1/switch. */
TEST("a switch between two fibers takes less than a microsecond of CPU time")
{
    enum { RESUMES = 20000 };
    janus_fiber_pool *pool;
    janus_fiber      *fiber;
    janus_outcome     outcome;
    uint64_t          best = UINT64_MAX;
    OPTIMISED_ONLY();
    CHECK_EQ(janus_fiber_pool_create(NULL, &pool), JANUS_OK);
    CHECK_EQ(janus_fiber_create(pool, suspend_for_ever, NULL, NULL, &fiber), JANUS_OK);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t before = cpu_ns();
        for (int i = 0; i < RESUMES; i++) {
            CHECK_EQ(janus_fiber_resume(fiber, NULL, &outcome), JANUS_OK);
        }
        uint64_t took = cpu_ns() - before;
        if (took < best) best = took;
    }
    printf("# %llu ns\n", (unsigned long long)(best / (2 * RESUMES))); /* there and back */
    CHECK(best < (uint64_t)MOST_NS * 2 * RESUMES);
    CHECK_EQ(janus_fiber_destroy(fiber), JANUS_OK);
    CHECK_EQ(janus_fiber_pool_destroy(pool), JANUS_OK);
}

/* Spawns. */

static int64_t spawn_batches(void *argument)
{
    enum { BATCHES = 20, BATCH = 1000 };
    uint64_t *best = argument;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t before = cpu_ns();
        for (int i = 0; i < BATCHES; i++) {
            janus_nursery n;
            CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
            for (int k = 0; k < BATCH; k++) CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_OK);
            CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        }
        uint64_t took = (cpu_ns() - before) / (BATCHES * BATCH);
        if (took < *best) *best = took;
    }
    return 0;
}

/* SCHED:13.1.1/spawn. */
TEST("one worker starts, runs and ends more than a million tasks in a second of CPU time")
{
    uint64_t best = UINT64_MAX;
    OPTIMISED_ONLY();
    rig_run(1, spawn_batches, &best, 1);
    printf("# %llu ns\n", (unsigned long long)best);
    CHECK(best < MOST_NS);
}

/* Memory. */

/* Resident memory and page tables of this process, in bytes. */
static size_t footprint(void)
{
    char   line[256];
    size_t sum = 0;
    FILE  *file = fopen("/proc/self/status", "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        size_t kib = 0;
        if (strncmp(line, "VmRSS:", 6) == 0 || strncmp(line, "VmPTE:", 6) == 0) {
            CHECK_EQ(sscanf(line + 6, " %zu", &kib), 1);
            sum += kib * 1024;
        }
    }
    fclose(file);
    return sum;
}

enum { CROWD = 20000 };

static int64_t park_crowd(void *argument)
{
    size_t       *bytes = argument;
    atomic_int    parked = 0;
    janus_nursery n;
    size_t        before = footprint();
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < CROWD; i++) CHECK_EQ(janus_spawn(&n, sleep_an_hour, &parked), JANUS_OK);
    while (atomic_load(&parked) < CROWD) CHECK_EQ(janus_yield(), JANUS_OK);
    *bytes = (footprint() - before) / CROWD;
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

/* SCHED:13.1.1/memory, C2. */
TEST("a task that waits costs less than 16 KiB of memory, its stack and page tables counted")
{
    size_t bytes = 0;
    OPTIMISED_ONLY();
    rig_run(2, park_crowd, &bytes, 1);
    printf("# %zu bytes\n", bytes);
    CHECK(bytes > 0 && bytes < 16 * 1024);
}
