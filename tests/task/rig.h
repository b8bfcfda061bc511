/* SPDX-License-Identifier: MIT */
/* Helpers for tests of tasks: a scheduler around a first task, and children of all sorts. */
#ifndef JANUSRT_TESTS_TASK_RIG_H
#define JANUSRT_TESTS_TASK_RIG_H

#include "harness.h"
#include "part.h"

#include <janusrt/janus.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#if JRT_ASAN || JRT_TSAN || defined(__aarch64__)
enum { RIG_SLOW = 1 };
#else
enum { RIG_SLOW = 0 };
#endif

static const uint64_t rig_ms = 1000000;

/* A wait that takes this long hangs. It is long because a busy machine may stop a thread for
 * seconds. */
static const uint64_t rig_patience = UINT64_C(300) * 1000 * 1000000;

/*
 * A turn ends after JANUS_SLICE operations, or when it has lasted for `turn_ns`. On a busy machine
 * the second may happen at any call. Most tests mean only the first; tests of time define
 * RIG_TURN_NS before they include this.
 */
#ifndef RIG_TURN_NS
#define RIG_TURN_NS (3600 * JANUS_SECONDS)
#endif

/* While turns last for an hour, all slices are short in time. Tests of long ones define this. */
#ifndef RIG_MAX_SLICE
#define RIG_MAX_SLICE JANUS_SLICE
#endif

/* This holds for every scheduler with options, also for the scheduler of a janus_run. A test may
 * still set turn_ns. */
#pragma GCC diagnostic ignored "-Woverride-init"
#undef JANUS_SCHEDULER_OPTIONS
#define JANUS_SCHEDULER_OPTIONS(...)                                                               \
    JANUS_OPTIONS_(janus_scheduler_options, .turn_ns = RIG_TURN_NS, .max_slice = RIG_MAX_SLICE,    \
                   __VA_ARGS__)

/* Comes first in a test whose stack ends: ThreadSanitizer's own code runs on it, too. */
#define RIG_OVERFLOWS()                                                                            \
    do {                                                                                           \
        if (JRT_TSAN) SKIP("ThreadSanitizer's own code dies where the stack ends, locks held");    \
    } while (0)

/* Whether JANUSRT_SEED makes every scheduler deterministic: one thread, a clock of its own. */
static inline bool rig_simulated(void)
{
    const char *text = getenv("JANUSRT_SEED");
    return text != NULL && strtoull(text, NULL, 0) != 0;
}

/* Comes first in a test that needs real threads or real time. */
#define RIG_REAL(reason)                                                                           \
    do {                                                                                           \
        if (rig_simulated()) SKIP("simulated: " reason);                                           \
    } while (0)

/* The number of rounds, or the length: in a world each costs more, and other seeds go other
 * ways. */
static inline uint64_t rig_few(uint64_t count)
{
    return rig_simulated() ? (count + 49) / 50 : count;
}

/* For a loop that waits without yielding: in a world others go on at library calls. */
static inline void rig_spin(void) { (void)janus_now_ns(); }

/* Tells one worker's thread from another's, in a task. */
static inline int rig_place(void)
{
    janus_task_info info = JANUS_TASK_INFO();
    if (!rig_simulated()) return gettid(); /* pthread_self() may be kept across a yield */
    CHECK_EQ(janus_task_inspect_current(&info), JANUS_OK);
    return (int)info.worker;
}

/* A started scheduler, for as many tasks as a test wants, unless it sets a limit. */
static inline janus_scheduler *rig_open(const janus_scheduler_options *given)
{
    janus_scheduler        *scheduler = NULL;
    janus_scheduler_options options = {.struct_bytes = sizeof options};
    if (given != NULL) options = *given;
    if (options.max_tasks == 0) options.max_tasks = JANUS_UNLIMITED;
    if (options.turn_ns == 0) options.turn_ns = RIG_TURN_NS;
    if (options.max_slice == 0) options.max_slice = RIG_MAX_SLICE;
    options.quiet_panics = true; /* many panic on purpose */
    CHECK_EQ(janus_scheduler_create_with(&options, &scheduler), JANUS_OK);
    CHECK_EQ(janus_scheduler_start(scheduler), JANUS_OK);
    return scheduler;
}

/* Runs `entry(argument)` as a task of the scheduler; the task must succeed. */
static inline void rig_do(janus_scheduler *scheduler, janus_entry *entry, void *argument)
{
    janus_nursery root;
    CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&root, entry, argument), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_OK);
}

/* Runs it `times` times on a scheduler of its own with this many workers. */
static inline void rig_run(uint32_t workers, janus_entry *entry, void *argument, int times)
{
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers));
    for (uint64_t i = 0; i < rig_few((uint64_t)times); i++) rig_do(scheduler, entry, argument);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* Runs it on one worker, two and eight. */
static inline void rig_all(janus_entry *entry, void *argument, int times)
{
    rig_run(1, entry, argument, times);
    rig_run(2, entry, argument, times);
    rig_run(8, entry, argument, times);
}

/* Yields until `flag` is set, even in a cancelled task. False: it took too long. */
static inline bool rig_wait(const atomic_int *flag)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    janus_shield_begin();
    while (!atomic_load(flag) && janus_now_ns() < limit) JANUS_IGNORE(janus_yield());
    janus_shield_end();
    return atomic_load(flag) != 0;
}

/* Yields until the nursery is in that state. False: it took too long. */
static inline bool rig_wait_state(const janus_nursery *nursery, janus_nursery_state state)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    janus_shield_begin();
    while (janus_nursery_state_of(nursery) != state && janus_now_ns() < limit)
        JANUS_IGNORE(janus_yield());
    janus_shield_end();
    return janus_nursery_state_of(nursery) == state;
}

/* A child that ends with `result` when the gate is opened, cancelled or not. */
struct gate {
    atomic_int open;
    atomic_int arrived;
    int64_t    result;
};

static inline int64_t at_gate(void *argument)
{
    struct gate *gate = argument;
    atomic_fetch_add(&gate->arrived, 1);
    CHECK(rig_wait(&gate->open));
    return gate->result;
}

/* A child that keeps its worker to itself until the gate is opened. */
static inline int64_t keep_worker(void *argument)
{
    struct gate *gate = argument;
    uint64_t     limit = janus_now_ns() + rig_patience;
    atomic_fetch_add(&gate->arrived, 1);
    while (!atomic_load(&gate->open)) CHECK(janus_now_ns() < limit);
    return gate->result;
}

static inline int64_t nothing(void *argument)
{
    (void)argument;
    return 0;
}

static inline int64_t count_me(void *argument)
{
    atomic_fetch_add((atomic_int *)argument, 1);
    return 0;
}

static inline int64_t minus_seven(void *argument)
{
    (void)argument;
    return -7;
}

/* Yields until it is cancelled, and returns CANCELLED. */
static inline int64_t yield_for_ever(void *argument)
{
    if (argument != NULL) atomic_fetch_add((atomic_int *)argument, 1);
    for (;;) {
        janus_status status = janus_yield();
        if (status != JANUS_OK) return status;
    }
}

static inline int64_t sleep_an_hour(void *argument)
{
    if (argument != NULL) atomic_fetch_add((atomic_int *)argument, 1);
    return janus_sleep(3600 * 1000 * rig_ms);
}

#endif
