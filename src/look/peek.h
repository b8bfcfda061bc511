/* SPDX-License-Identifier: MIT */
/* Looking at tasks, workers and nurseries while they change. The essay is in peek.c. */
#ifndef JRT_LOOK_PEEK_H
#define JRT_LOOK_PEEK_H

#include "task/nursery.h"

/* What can be said about a task at a moment. */
struct jrt_sight {
    janus_task_state state;
    char             wait[JANUS_NAME_BYTES]; /* BLOCKED: for what; else "nothing"; clean */
    enum jrt_wait    kind;                   /* the same */
    uint32_t         worker;   /* it runs on, or last left to wait; UINT32_MAX: not known */
    uint64_t         state_ns; /* 0: not known */
    bool             at_most;  /* state_ns is no more than a bound, [peek-time] */
};

/* Looks at a task that cannot go away meanwhile; under the lock of its nursery. */
void jrt_peek_task(const struct jrt_task *task, struct jrt_sight *out);

/* The task that a worker runs; 0: none. */
janus_task_id jrt_peek_current(const struct jrt_worker *worker);

/* Tasks in a worker's own queues. */
uint64_t jrt_peek_queued(const struct jrt_worker *worker);

/* Children that have not ended, as far as one can know: [nursery-count]. */
int64_t jrt_peek_children(const struct jrt_nursery *n);

/* The number of the seat on which a task runs now; UINT32_MAX: on none. */
uint32_t jrt_seat_running(janus_scheduler *scheduler, janus_task_id id);

/* Calls `show` with the number of each seat and what runs there; 0: nothing. Under a lock. */
void jrt_seats_show(janus_scheduler *scheduler,
                    void             (*show)(void *argument, uint32_t number, janus_task_id id),
                    void            *argument);

#endif
