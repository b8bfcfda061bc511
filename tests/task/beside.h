/* SPDX-License-Identifier: MIT */
/*
 * A task beside a neighbour on one worker, and what share of the CPU the neighbour gets.
 *
 * The neighbour repeats a unit of work and a check. What a unit costs is measured alone, in CPU
 * time of the worker's thread, so that other processes of the machine do not count.
 */
#ifndef JANUSRT_TESTS_TASK_BESIDE_H
#define JANUSRT_TESTS_TASK_BESIDE_H

#include "town.h"

#include <time.h>

/* What the task beside the neighbour gets as its argument. */
struct beside {
    janus_entry  *entry;
    void         *argument; /* for the entry's own use */
    uint64_t      cpu_ns;   /* the measurement lasts at least so long */
    atomic_bool   over;     /* set by whoever finds that it has lasted so long */
    atomic_ullong units;    /* done by the neighbour */
    uint64_t      began_ns, unit_ps;
    double        share; /* the neighbour's */
};

static inline uint64_t beside_cpu_ns(void)
{
    struct timespec now;
    CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now), 0);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Whether it is over; the entry asks in its loop. It calls nothing of the library. */
static inline bool beside_over(struct beside *beside)
{
    return atomic_load_explicit(&beside->over, memory_order_relaxed);
}

static inline void beside_unit(void)
{
    for (volatile int i = 0; i < 100; i++) continue;
}

/* Native work of so many nanoseconds of CPU time. */
static inline void beside_work(uint64_t ns)
{
    for (uint64_t until = beside_cpu_ns() + ns; beside_cpu_ns() < until;) continue;
}

static inline int64_t beside_neighbour(void *argument)
{
    struct beside *beside = argument;
    while (!beside_over(beside)) {
        CHECK_EQ(janus_check(), JANUS_OK);
        beside_unit();
        unsigned long long units = atomic_fetch_add(&beside->units, 1);
        if (units % 64 == 0 && beside_cpu_ns() - beside->began_ns >= beside->cpu_ns) {
            atomic_store(&beside->over, true);
        }
    }
    return 0;
}

static inline int64_t beside_alone(void *argument)
{
    struct beside *beside = argument;
    *beside = (struct beside){.entry = beside->entry,
                              .argument = beside->argument,
                              .cpu_ns = beside->cpu_ns,
                              .began_ns = beside_cpu_ns()};
    uint64_t cpu_ns = beside->cpu_ns;
    beside->cpu_ns = cpu_ns / 4;
    (void)beside_neighbour(beside);
    beside->unit_ps = (beside_cpu_ns() - beside->began_ns) * 1000 / atomic_load(&beside->units);
    beside->cpu_ns = cpu_ns;
    return 0;
}

/* The nursery's result is of no interest: the entry may be ended by the library. */
static inline int64_t beside_both(void *argument)
{
    struct beside *beside = argument;
    janus_nursery  n;
    atomic_store(&beside->units, 0);
    atomic_store(&beside->over, false);
    beside->began_ns = beside_cpu_ns();
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_WAIT_ALL)), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, beside_neighbour, beside), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, beside->entry, beside), JANUS_OK);
    (void)janus_nursery_end(&n, NULL);
    uint64_t total = beside_cpu_ns() - beside->began_ns;
    beside->share =
        (double)atomic_load(&beside->units) * (double)beside->unit_ps / 1000. / (double)total;
    return 0;
}

/* The neighbour's share beside `entry`, which gets a struct beside and ends when it is over. */
static inline double beside_share(janus_scheduler *scheduler, janus_entry *entry, void *argument,
                                  uint64_t cpu_ns)
{
    struct beside beside = {.entry = entry, .argument = argument, .cpu_ns = cpu_ns};
    town_do(scheduler, beside_alone, &beside);
    town_do(scheduler, beside_both, &beside);
    return beside.share;
}

#endif
