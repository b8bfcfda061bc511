/* SPDX-License-Identifier: MIT */
/*
 * The idle stacks of tasks are bounded. A worker returns them when it has nothing to do or after a
 * second, and at once where the system refuses more.
 */
#include "rig.h"
#include "task/worker.h"

#include <stdio.h>

enum { MIB = 1 << 20 };

struct hall {
    atomic_int in, open;
    size_t     deep;
};

static int64_t dive(void *argument)
{
    struct hall   *hall = argument;
    volatile char *deep = __builtin_alloca(hall->deep);
    for (size_t i = 0; i < hall->deep; i += 4096) deep[i] = 1;
    atomic_fetch_add(&hall->in, 1);
    while (atomic_load(&hall->open) == 0) CHECK_EQ(janus_yield(), JANUS_OK);
    return deep[0] == 1 ? 0 : -1;
}

enum { DIVERS = 100 };

static int64_t dive_together(void *argument)
{
    struct hall  *hall = argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < DIVERS; i++) CHECK_EQ(janus_spawn(&n, dive, hall), JANUS_OK);
    while (atomic_load(&hall->in) < DIVERS) CHECK_EQ(janus_yield(), JANUS_OK);
    atomic_store(&hall->open, 1);
    return janus_nursery_end(&n, NULL);
}

static size_t resident(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long  pages = 0, all = 0;
    CHECK(file != NULL && fscanf(file, "%ld %ld", &all, &pages) == 2);
    (void)fclose(file);
    return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

static janus_scheduler_stacks_info stacks_of(janus_scheduler *scheduler)
{
    janus_scheduler_stacks_info stats = JANUS_SCHEDULER_STACKS_INFO();
    CHECK_EQ(janus_scheduler_stacks_inspect(scheduler, &stats), JANUS_OK);
    return stats;
}

TEST("idle stacks hold no more memory than the option says, however large they are")
{
    struct hall      hall = {.deep = 900 * 1024};
    janus_scheduler *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .stack_bytes = MIB,
                                         .idle_stack_bytes = 8 * MIB));
    rig_do(scheduler, dive_together, &hall);
    /* The workers return the rest when they have nothing to do. */
    uint64_t limit = janus_now_ns() + rig_patience;
    while (stacks_of(scheduler).idle_bytes > 8 * MIB && janus_now_ns() < limit) {
        JANUS_IGNORE(janus_sleep(rig_ms));
    }
    janus_scheduler_stacks_info stats = stacks_of(scheduler);
    CHECK_EQ(stats.max_idle_bytes, 8 * MIB);
    CHECK(stats.idle_bytes <= 8 * MIB);
    CHECK(stats.stacks_idle > 0);
    if (!RIG_SLOW && !rig_simulated()) { /* 2 workers cache at most 8 MiB each */
        CHECK(resident() < (size_t)40 * MIB);
    }
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

enum { SIZES = 4, TOGETHER = 64 * MIB };

/* Crowds of one size after the other. The only worker is never idle. */
static int64_t dive_in_all_sizes(void *argument)
{
    janus_scheduler *scheduler = argument;
    size_t           first = 0;
    for (int i = 0; i < SIZES; i++) {
        size_t        bytes = (size_t)65536 << i;
        struct hall   hall = {.deep = 4096};
        int           count = (int)(TOGETHER / bytes);
        janus_nursery n;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        for (int k = 0; k < count; k++) {
            CHECK_EQ(
                janus_spawn_with(&n, dive, &hall, JANUS_SPAWN_OPTIONS(.stack_bytes = bytes), NULL),
                JANUS_OK);
        }
        while (atomic_load(&hall.in) < count) CHECK_EQ(janus_yield(), JANUS_OK);
        atomic_store(&hall.open, 1);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        if (i == 0) first = stacks_of(scheduler).idle_bytes;
        CHECK(stacks_of(scheduler).idle_bytes <= first * 3 / 2 + 8 * MIB);
    }
    return 0;
}

TEST("idle stacks of one size make way for those of another, even if no worker is ever idle")
{
    janus_scheduler *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .stack_bytes = 65536, .max_tasks = 4000,
                                         .idle_stack_bytes = 8 * MIB));
    rig_do(scheduler, dive_in_all_sizes, scheduler);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

enum { MANY = 1500 }; /* some slabs full */

/* Leaves the stacks of a crowd idle, far past the limit of 1 MiB. */
static void have_had_a_crowd(void)
{
    struct hall   hall = {.deep = 4096};
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < MANY; i++) CHECK_EQ(janus_spawn(&n, dive, &hall), JANUS_OK);
    while (atomic_load(&hall.in) < MANY) CHECK_EQ(janus_yield(), JANUS_OK);
    atomic_store(&hall.open, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
}

static janus_scheduler *open_frugal(janus_guard guard)
{
    return rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .guard = guard, .stack_bytes = 32768,
                                            .idle_stack_bytes = MIB));
}

/* It inspects in a task: there the only worker is busy. */
static int64_t return_when_idle(void *argument)
{
    janus_scheduler *scheduler = argument;
    have_had_a_crowd();
    CHECK(stacks_of(scheduler).idle_bytes > (size_t)MANY * 3 / 4 * 32768);
    CHECK_EQ(stacks_of(scheduler).slabs_released, 0);
    uint64_t limit = janus_now_ns() + rig_patience;
    while (stacks_of(scheduler).idle_bytes > MIB && janus_now_ns() < limit) {
        CHECK_EQ(janus_sleep(rig_ms), JANUS_OK);
    }
    CHECK(stacks_of(scheduler).idle_bytes <= MIB);
    return 0;
}

TEST("a worker returns the memory of idle stacks when it has nothing to do, and not before")
{
    janus_scheduler *scheduler = open_frugal(JANUS_GUARD_AUTO);
    rig_do(scheduler, return_when_idle, scheduler);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

static int64_t reuse_first(void *argument)
{
    janus_scheduler *scheduler = argument;
    have_had_a_crowd();
    size_t reserved = stacks_of(scheduler).reserved_bytes;
    for (int i = 0; i < 5; i++) have_had_a_crowd();
    CHECK_EQ(stacks_of(scheduler).reserved_bytes, reserved);
    return 0;
}

TEST("crowd after crowd uses the same memory, though none was returned")
{
    janus_scheduler *scheduler = open_frugal(JANUS_GUARD_AUTO);
    rig_do(scheduler, reuse_first, scheduler);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

static int64_t keep_busy(void *argument)
{
    const atomic_int *busy = argument;
    while (atomic_load(busy) != 0) CHECK_EQ(janus_yield(), JANUS_OK);
    return 0;
}

static int64_t return_while_busy(void *argument)
{
    janus_scheduler *scheduler = argument;
    atomic_int       busy = 1;
    janus_nursery    n;
    have_had_a_crowd();
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, keep_busy, &busy), JANUS_OK);
    uint64_t limit = janus_now_ns() + rig_patience;
    while (stacks_of(scheduler).idle_bytes > MIB && janus_now_ns() < limit) {
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    CHECK(stacks_of(scheduler).idle_bytes <= MIB);
    atomic_store(&busy, 0);
    return janus_nursery_end(&n, NULL);
}

TEST("a worker that is always busy returns the memory of idle stacks a second later")
{
    RIG_REAL("a second of a simulated clock takes too many yields");
    janus_scheduler *scheduler = open_frugal(JANUS_GUARD_AUTO);
    rig_do(scheduler, return_while_busy, scheduler);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

static void refuse_stacks(janus_scheduler *scheduler, bool refuse)
{
    struct jrt_ladder *ladder = &scheduler->depot->ladder;
    jrt_lock(&scheduler->depot->lock);
    ladder->guarded_max = refuse ? ladder->guarded : ladder->process_max;
    jrt_unlock(&scheduler->depot->lock);
}

enum { OTHERS = 20 };

static int64_t want_others(void *argument)
{
    janus_scheduler *scheduler = argument;
    struct hall      hall = {.deep = 4096};
    janus_nursery    n;
    have_had_a_crowd();
    refuse_stacks(scheduler, true);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < OTHERS; i++) {
        CHECK_EQ(
            janus_spawn_with(&n, dive, &hall, JANUS_SPAWN_OPTIONS(.stack_bytes = 131072), NULL),
            JANUS_OK);
    }
    while (atomic_load(&hall.in) < OTHERS) CHECK_EQ(janus_yield(), JANUS_OK);
    atomic_store(&hall.open, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK); /* none was refused a stack */
    refuse_stacks(scheduler, false);
    return 0;
}

TEST("stacks past the limit that were not returned yet make room for others that are refused")
{
    janus_scheduler *scheduler = open_frugal(JANUS_GUARD_MPROTECT);
    rig_do(scheduler, want_others, scheduler);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

TEST("trimming frees idle stacks, including those that workers cache")
{
    struct hall      hall = {.deep = 50000};
    janus_scheduler *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .stack_bytes = 131072));
    rig_do(scheduler, dive_together, &hall);
    size_t used = stacks_of(scheduler).stacks_used;
    CHECK(stacks_of(scheduler).idle_bytes > 0);
    CHECK(janus_scheduler_trim(scheduler, 0) > 0);
    /* Both workers free theirs when they have nothing to do; they keep four each, at most. */
    uint64_t limit = janus_now_ns() + rig_patience;
    while (stacks_of(scheduler).stacks_used > 8 && janus_now_ns() < limit) {
        JANUS_IGNORE(janus_sleep(rig_ms));
    }
    CHECK(stacks_of(scheduler).stacks_used < used);
    CHECK(stacks_of(scheduler).stacks_used <= 8);
    CHECK_EQ(stacks_of(scheduler).idle_bytes, 0);
    CHECK_EQ(janus_scheduler_trim(NULL, 0), 0);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

TEST("stack statistics fill a shorter struct, and refuse a bad size")
{
    janus_scheduler            *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
    janus_scheduler_stacks_info stats = {.struct_bytes =
                                             offsetof(janus_scheduler_stacks_info, idle_bytes)};
    stats.max_idle_bytes = 77;
    CHECK_EQ(janus_scheduler_stacks_inspect(scheduler, &stats), JANUS_OK);
    CHECK(stats.stacks_used > 0);
    CHECK_EQ(stats.max_idle_bytes, 77);
    stats.struct_bytes = 1;
    CHECK_EQ(janus_scheduler_stacks_inspect(scheduler, &stats), JANUS_INVALID);
    CHECK_EQ(janus_scheduler_stacks_inspect(scheduler, NULL), JANUS_INVALID);
    CHECK_EQ(janus_scheduler_stacks_inspect(NULL, &stats), JANUS_INVALID);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}
