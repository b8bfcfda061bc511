/* SPDX-License-Identifier: MIT */
/* How a nursery's children are run: the backend. The essay is in executor.c. */
#ifndef JRT_NURSERY_EXECUTOR_H
#define JRT_NURSERY_EXECUTOR_H

#include "means/terms.h"
#include "work/seat.h"

/* A spawner that waits until its child has ended; lies in the spawner's frame. */
struct jrt_runner {
    struct jrt_task  *task;  /* NULL: a plain thread */
    _Atomic(uint32_t) ended; /* futex: 1 when the child has ended */
};

/* What the backend took for one child before its start. */
struct jrt_launch {
    enum {
        JRT_LAUNCH_QUEUED = 0, /* COOPERATIVE */
        JRT_LAUNCH_IN_PLACE,   /* BLOCKING, on top of the spawner */
        JRT_LAUNCH_AWAITED,    /* BLOCKING, elsewhere, and the spawner waits */
        JRT_LAUNCH_SEATED,     /* THREADED */
    } how;
    struct jrt_runner runner; /* AWAITED */
};

/* Takes what the backend needs for a child that the nursery has counted. On any error nothing
 * happened: FULL, NO_MEMORY, STATE. */
janus_status jrt_launch_prepare(struct jrt_launch *launch, struct jrt_nursery *n,
                                struct jrt_worker *worker, struct jrt_task *task);

/* Starts the child. With BLOCKING the child has ended when this returns. */
void jrt_launch(struct jrt_launch *launch, struct jrt_nursery *n, struct jrt_worker *worker,
                struct jrt_task *task);

/* Returns what was taken for a child with a purse that has ended. The result is its waiting
 * spawner, or NULL. */
struct jrt_runner *jrt_launch_ended(const struct jrt_task *task);

/* Lets the spawner go on. The child has been counted off. */
void jrt_runner_tell(struct jrt_runner *runner);

#endif
