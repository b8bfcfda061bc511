/* SPDX-License-Identifier: MIT */
/*
 * A task repeats one call and never checks, beside a neighbour on the same worker. The neighbour
 * must get half of the worker's CPU time. Shares are of the CPU time of the worker's thread, so
 * other processes of the machine count little.
 *
 * tools/costs.py reads the rows of the calls_*_test.c files: CALL(name, what it does), then ROW.
 */
#ifndef JANUSRT_TESTS_TASK_REPEAT_H
#define JANUSRT_TESTS_TASK_REPEAT_H

#include "beside.h"

#include <stdio.h>
#include <string.h>

static const uint64_t repeat_window_ns = 25000000; /* CPU time of one measurement */
static const double   repeat_least = 0.38;

/* What the calls of a file are made with. */
struct things;

struct repeat_call {
    const char *name;
    void        (*make)(struct things *things);
};

/* A file opens and closes its objects with these, inside the task that repeats. */
struct repeat_kit {
    void (*open)(struct things *things);
    void (*close)(struct things *things);
};

struct repeat_pair {
    const struct repeat_call *call;
    const struct repeat_kit  *kit;
    struct things            *things;
};

static inline int64_t repeat_quickly(void *argument) { return argument == NULL ? 0 : 1; }
static inline void    repeat_ignore(void *argument) { (void)argument; }

#define CALL(name, ...)                                                                            \
    static void name(struct things *t)                                                             \
    {                                                                                              \
        (void)t;                                                                                   \
        __VA_ARGS__;                                                                               \
    }
#define ROW(name) {#name, name}

/* A call that starves its neighbour ends after four windows. */
static inline int64_t repeat_one(void *argument)
{
    struct beside      *beside = argument;
    struct repeat_pair *pair = beside->argument;
    pair->kit->open(pair->things);
    for (uint64_t i = 0; !beside_over(beside); i++) {
        pair->call->make(pair->things);
        if (i % 256 == 255 && beside_cpu_ns() - beside->began_ns > 4 * repeat_window_ns) break;
    }
    pair->kit->close(pair->things);
    return 0;
}

static inline double repeat_share(const struct repeat_call *call, const struct repeat_kit *kit,
                                  struct things *things)
{
    struct repeat_pair pair = {call, kit, things};
    janus_scheduler   *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
    double             share = beside_share(scheduler, repeat_one, &pair, repeat_window_ns);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    return share;
}

/* Repeats each call. Returns how many starved the neighbour. */
static inline int repeat_all(const struct repeat_call *calls, size_t count,
                             const struct repeat_kit *kit, struct things *things)
{
    int starved = 0;
    for (size_t i = 0; i < count; i++) {
        double share = repeat_share(&calls[i], kit, things);
        /* Something else may disturb a measurement: a call that really starves does so each
         * time. */
        for (int more = 0; more < 20 && share < repeat_least; more++) {
            share = repeat_share(&calls[i], kit, things);
        }
        printf("# %.3f %s\n", share, calls[i].name);
        fflush(stdout);
        if (share < repeat_least) starved++;
    }
    return starved;
}

#endif
