/* SPDX-License-Identifier: MIT */
/* Looking at tasks, workers and nurseries while they change. The essay is in peek.c. */
#ifndef JRT_LOOK_PEEK_H
#define JRT_LOOK_PEEK_H

#include "task/nursery.h"

/* What is known of a task at a moment. */
struct jrt_sight {
    janus_task_state state;
    char             wait[JANUS_NAME_BYTES]; /* BLOCKED: what it waits for; otherwise "nothing" */
    enum jrt_wait    kind;                   /* what it waits for */
    bool             rests;                  /* it has no stack meanwhile */
    uint32_t         worker;   /* that runs it, or that it last left to wait; UINT32_MAX: unknown */
    uint64_t         state_ns; /* 0: unknown */
    bool             at_most;  /* state_ns is an upper bound, [peek-time] */
};

/* Looks at a task that cannot go away meanwhile; under the lock of its nursery. */
void jrt_peek_task(const struct jrt_task *task, struct jrt_sight *out);

/* The task that a worker runs; 0: none. */
janus_task_id jrt_peek_current(const struct jrt_worker *worker);

/* The number of tasks in a worker's own queues. */
uint64_t jrt_peek_queued(const struct jrt_worker *worker);

/* The number of children that seem not to have ended: [nursery-count]. */
int64_t jrt_peek_children(const struct jrt_nursery *n);

/* The number of the seat on which a task runs now; UINT32_MAX: none. */
uint32_t jrt_seat_running(janus_scheduler *scheduler, janus_task_id id);

/* Calls `show` with the number of each seat and the task there; 0: none. `show` runs under a
 * lock. */
void jrt_seats_show(janus_scheduler *scheduler,
                    void             (*show)(void *argument, uint32_t number, janus_task_id id),
                    void            *argument);

#endif
