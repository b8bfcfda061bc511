/* SPDX-License-Identifier: MIT */
/* How a nursery's children are run: the backend. The essay is in executor.c. */
#ifndef JRT_NURSERY_EXECUTOR_H
#define JRT_NURSERY_EXECUTOR_H

#include "means/terms.h"
#include "work/seat.h"

/* Who waits until the child that he started has ended; lies in his frame. */
struct jrt_runner {
    struct jrt_task  *task;  /* NULL: a plain thread */
    _Atomic(uint32_t) ended; /* futex: 1 when it has */
};

/* What was taken for one child before it is started. */
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

/* Starts the child; with BLOCKING it has ended then. */
void jrt_launch(struct jrt_launch *launch, struct jrt_nursery *n, struct jrt_worker *worker,
                struct jrt_task *task);

/* A child that has a purse has ended: gives back what was taken. Who waits for it, or NULL. */
struct jrt_runner *jrt_launch_ended(const struct jrt_task *task);

/* It is counted; the spawner goes on. */
void jrt_runner_tell(struct jrt_runner *runner);

#endif
