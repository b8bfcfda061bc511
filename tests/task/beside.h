/* SPDX-License-Identifier: MIT */
/*
 * A task beside a neighbour on one worker, and the neighbour's share of the CPU.
 *
 * The neighbour repeats some microseconds of work and a check, and adds up the work. It counts CPU
 * time of the worker's thread, so that other processes of the machine do not count. What the
 * neighbour gets alone counts as the whole: all but the checks and the looks at the clock.
 */
#ifndef JANUSRT_TESTS_TASK_BESIDE_H
#define JANUSRT_TESTS_TASK_BESIDE_H

#define RIG_TURN_NS JANUS_TURN_NS
#include "rig.h"

#include <time.h>

/* What the task beside the neighbour gets as its argument. */
struct beside {
    janus_entry *entry;
    void        *argument;         /* for the entry's own use */
    uint64_t     cpu_ns;           /* shortest length of the measurement */
    atomic_bool  over;             /* set by the first task that finds the time over */
    uint64_t     began_ns, own_ns; /* own_ns: the neighbour's */
    double       whole, share;
};

static inline uint64_t beside_cpu_ns(void)
{
    struct timespec now;
    CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Whether the measurement is over. The entry asks in its loop; this makes no library call. */
static inline bool beside_over(struct beside *beside)
{
    return atomic_load_explicit(&beside->over, memory_order_relaxed);
}

/* Native work that takes `ns` of CPU time. */
static inline void beside_work(uint64_t ns)
{
    for (uint64_t until = beside_cpu_ns() + ns; beside_cpu_ns() < until;) continue;
}

static inline void beside_begin(struct beside *beside)
{
    atomic_store(&beside->over, false);
    beside->own_ns = 0;
    beside->began_ns = beside_cpu_ns();
}

/* The neighbour's share of all time since it began. */
static inline double beside_part(const struct beside *beside)
{
    return (double)beside->own_ns / (double)(beside_cpu_ns() - beside->began_ns);
}

static inline int64_t beside_neighbour(void *argument)
{
    enum { WORK_NS = 5000 };
    struct beside *beside = argument;
    for (uint64_t now = beside_cpu_ns(); now - beside->began_ns < beside->cpu_ns;) {
        uint64_t start = now;
        while (now - start < WORK_NS) now = beside_cpu_ns();
        beside->own_ns += now - start;
        CHECK_EQ(janus_check(), JANUS_OK);
        now = beside_cpu_ns();
    }
    beside->share = beside_part(beside);
    atomic_store(&beside->over, true);
    return 0;
}

static inline int64_t beside_alone(void *argument)
{
    struct beside *beside = argument;
    beside_begin(beside);
    (void)beside_neighbour(beside);
    beside->whole = beside->share;
    return 0;
}

/* The nursery's result does not matter: the library may end the entry. */
static inline int64_t beside_both(void *argument)
{
    struct beside *beside = argument;
    janus_nursery  n;
    beside_begin(beside);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
    CHECK_EQ(janus_spawn(&n, beside_neighbour, beside), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, beside->entry, beside), JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    return 0;
}

/* The neighbour's share beside `entry`, which gets a struct beside and ends when the measurement is
 * over. */
static inline double beside_share(janus_scheduler *scheduler, janus_entry *entry, void *argument,
                                  uint64_t cpu_ns)
{
    struct beside beside = {.entry = entry, .argument = argument, .cpu_ns = cpu_ns};
    rig_do(scheduler, beside_alone, &beside);
    rig_do(scheduler, beside_both, &beside);
    return beside.share / beside.whole;
}

#endif
