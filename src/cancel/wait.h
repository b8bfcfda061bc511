/* SPDX-License-Identifier: MIT */
/*
 * The one way to wait.
 *
 * [wait-order]  A task that waits takes these steps, in this order. It makes sure that it can leave
 *   the CPU. It says PARKING, and arms an alarm if the wait has a deadline. `join` registers it
 *   where a waker will find it. It parks. `leave` takes back what `join` registered. It disarms the
 *   alarm. Whoever finds the task registered finds it PARKING or PARKED, so no wake is lost; when
 *   the call returns, nobody knows of the task any more, so no late wake meets another wait.
 *
 * [wait-again]  `leave` may say WOULD_WAIT: the waker only meant "look again". Then the task says
 *   PARKING and joins once more. An alarm that rang meanwhile found it awake and did nothing;
 *   `join` of such a wait looks at the clock itself.
 *
 * Rooms above wait by jrt_wait; only the channels' fast path, which ends in the switch
 * ([task-finish]), takes the steps by itself.
 */
#ifndef JRT_CANCEL_WAIT_H
#define JRT_CANCEL_WAIT_H

#include "plat/seam.h"
#include "task/nursery.h"

struct jrt_waiting {
    enum jrt_wait why;
    bool          to_its_end;  /* no cancel ends it: it waits for children, or for a native call */
    bool          outside;     /* `join` may set it: others than tasks can end it: no deadlock */
    bool          sleeps;      /* the deadline is what it waits for: it says OK, not DEADLINE */
    uint64_t      deadline_ns; /* JRT_NEVER: none */

    /* WOULD_WAIT: the task is registered. Anything else is what the call returns. */
    janus_status (*join)(struct jrt_waiting *waiting, struct jrt_task *task);

    /* The wait ended so, perhaps on another worker. Returns what the call returns; the caller
     * obeys a cancel, which may unwind the task, only after jrt_wait. */
    janus_status (*leave)(struct jrt_waiting *waiting, struct jrt_task *task, janus_status ended);
};

/* The rings of alarms: they end the wait of their subject, a task, with DEADLINE or with OK. */
void jrt_wait_ring(struct jrt_alarm *alarm);
void jrt_wait_ring_sleeper(struct jrt_alarm *alarm);

static inline bool jrt_wait_is_late(uint64_t deadline_ns)
{
    return deadline_ns != JRT_NEVER && jrt_clock_now_ns() >= deadline_ns;
}

static inline __attribute__((always_inline)) janus_status jrt_wait_once(struct jrt_waiting *waiting,
                                                                        struct jrt_worker  *worker,
                                                                        struct jrt_task    *task)
{
    janus_scheduler *scheduler = worker->scheduler;
    janus_status     status = waiting->join(waiting, task);
    if (jrt_unlikely(status != JANUS_WOULD_WAIT)) {
        /* `join` may have been found and woken before it took itself back. */
        if (!jrt_task_park_cancel(task)) (void)jrt_task_park(worker, task);
        return status;
    }
    /* relaxed, both: a count; we run, so nobody looks for a deadlock now. */
    bool outside = waiting->outside;
    if (outside) jrt_fetch_add_relaxed(&scheduler->outside, 1u);
    if (waiting->to_its_end) {
        jrt_task_link(task);
        status = jrt_task_park(worker, task);
    } else {
        status = jrt_task_park_cancellable(task);
    }
    if (outside) jrt_fetch_sub_relaxed(&scheduler->outside, 1u); /* relaxed: as above. */
    return waiting->leave(waiting, task, status);
}

/*
 * The current task of `worker` waits, [wait-order]. NO_MEMORY: nothing happened; a wait to its end
 * never says so. Inline, so that the calls of `join` and `leave` are direct ones.
 */
static inline __attribute__((always_inline)) janus_status jrt_wait(struct jrt_worker  *worker,
                                                                   struct jrt_waiting *waiting)
{
    struct jrt_task *task = worker->current;
    janus_scheduler *scheduler = worker->scheduler;
    bool             timed = waiting->deadline_ns != JRT_NEVER;
    struct jrt_alarm alarm;
    if (waiting->to_its_end) {
        jrt_worker_must_leave(worker);
    } else if (jrt_unlikely(!jrt_worker_can_leave(worker))) {
        return JANUS_NO_MEMORY;
    }
    jrt_task_park_begin(task, waiting->why);
    if (timed) {
        alarm = (struct jrt_alarm){.ring = waiting->sleeps ? jrt_wait_ring_sleeper : jrt_wait_ring,
                                   .subject = task};
        if (jrt_unlikely(!jrt_sched_timer_arm(scheduler, &alarm.timer, waiting->deadline_ns))) {
            (void)jrt_task_park_cancel(task);
            return JANUS_NO_MEMORY;
        }
    }
    janus_status status = jrt_wait_once(waiting, worker, task);
    while (jrt_unlikely(status == JANUS_WOULD_WAIT)) { /* [wait-again] */
        worker = jrt_worker_self();                    /* [worker-again] */
        jrt_worker_must_leave(worker);
        jrt_task_park_begin(task, waiting->why);
        status = jrt_wait_once(waiting, worker, task);
    }
    if (timed) jrt_sched_timer_disarm(scheduler, &alarm.timer);
    return status;
}

/* A plain thread waits until a waker has written another number than 0. DEADLINE; a callback, which
 * must not wait, gets that at once, [callback-plain]. */
janus_status jrt_wait_as_thread(_Atomic(uint32_t) *word, uint64_t deadline_ns);

#endif
