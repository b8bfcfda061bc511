/* SPDX-License-Identifier: MIT */
/*
 * The one way to wait.
 *
 * [wait-order]  A waiting task takes these steps, in this order:
 *   1. It makes sure that it can leave the CPU.
 *   2. It sets PARKING, and arms an alarm if the wait has a deadline.
 *   3. `join` registers it where a waker will find it.
 *   4. It parks.
 *   5. `leave` takes back what `join` registered.
 *   6. It disarms the alarm.
 *
 *   A waker that finds the task registered finds it PARKING or PARKED, so no wake is lost. When
 *   the call returns, no waker knows the task any more, so no late wake meets another wait.
 *
 * [wait-again]  `leave` may return WOULD_WAIT: the waker only meant "look again". Then the task
 *   sets PARKING and joins once more. An alarm that rang meanwhile found it awake and did nothing.
 *   So `join` of such a wait looks at the clock itself.
 *
 * [wait-hand]  `join` may have ended the wait of another task of this worker. That task does what
 *   the first one waits for: a call rouses an actor. If nothing else waits for the worker, the
 *   other task runs next without a queue, as if it had been queued and picked at once. No other
 *   worker has to hear of it.
 *
 * Rooms above wait by jrt_wait. Only the channels' fast path, which ends in the switch
 * ([task-finish]), takes the steps by itself.
 */
#ifndef JRT_CANCEL_WAIT_H
#define JRT_CANCEL_WAIT_H

#include "cancel/cancel.h"
#include "cancel/park.h"
#include "plat/seam.h"
#include "work/work.h"

static inline bool jrt_wait_is_late(uint64_t deadline_ns)
{
    return deadline_ns != JRT_NEVER && jrt_clock_now_ns() >= deadline_ns;
}

/* Whether the current task waits no more: it is AWAKE, and no waker changes that. */
static inline bool jrt_wait_is_over(const struct jrt_task *task)
{
    return (jrt_load_relaxed(&task->park) & JRT_PARK_MASK) == JRT_AWAKE; /* relaxed: its own. */
}

/* `hand` is a constant: NULL, or where `join` leaves the task that it has awoken, [wait-hand]. */
static inline __attribute__((always_inline)) janus_status jrt_wait_once(struct jrt_waiting *waiting,
                                                                        struct jrt_worker  *worker,
                                                                        struct jrt_task    *task,
                                                                        struct jrt_task   **hand)
{
    janus_scheduler *scheduler = worker->scheduler;
    janus_status     status = waiting->join(waiting, task);
    if (jrt_unlikely(status != JANUS_WOULD_WAIT)) {
        /* A waker may have found and woken the task before `join` took its registration back. */
        if (!jrt_task_park_undo(task)) (void)jrt_task_park(worker, task);
        return status;
    }
    /* relaxed, both: a count. This task runs, so nobody looks for a deadlock now. */
    bool outside = waiting->outside;
    if (outside) jrt_fetch_add_relaxed(&scheduler->outside, 1u);
    if (waiting->to_its_end) {
        jrt_task_link(task);
        status = jrt_task_park(worker, task);
    } else if (hand != NULL && *hand != NULL) {
        status = jrt_task_park_for(task, *hand);
    } else {
        status = jrt_task_park_cancellable(task);
    }
    if (outside) jrt_fetch_sub_relaxed(&scheduler->outside, 1u); /* relaxed: as above. */
    return waiting->leave(waiting, task, status);
}

/*
 * Makes the current task of `worker` wait, [wait-order]. NO_MEMORY: nothing happened; a wait
 * `to_its_end` never returns that. It is inline, so that the calls of `join` and `leave` are
 * direct.
 */
static inline __attribute__((always_inline)) janus_status
jrt_wait_handing(struct jrt_worker *worker, struct jrt_waiting *waiting, struct jrt_task **hand)
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
        alarm = (struct jrt_alarm){.status = waiting->sleeps ? JANUS_OK : JANUS_DEADLINE,
                                   .subject = task};
        if (jrt_unlikely(!jrt_sched_timer_arm(scheduler, &alarm.timer, waiting->deadline_ns))) {
            (void)jrt_task_park_undo(task);
            return JANUS_NO_MEMORY;
        }
    }
    janus_status status = jrt_wait_once(waiting, worker, task, hand);
    while (jrt_unlikely(status == JANUS_WOULD_WAIT)) { /* [wait-again] */
        worker = jrt_worker_self();                    /* [worker-again] */
        jrt_worker_must_leave(worker);
        jrt_debug_invariant("wait-again", jrt_wait_is_over(task));
        jrt_task_park_begin(task, waiting->why);
        status = jrt_wait_once(waiting, worker, task, NULL);
    }
    /* Only its timer ends a sleep with OK, and nobody touches the timer again, [timer-last]. */
    if (timed && !(waiting->sleeps && status == JANUS_OK)) {
        jrt_sched_timer_disarm(scheduler, &alarm.timer);
    }
    jrt_debug_invariant("timer-last", !timed || !jrt_timer_armed(&alarm.timer));
    jrt_debug_invariant("wait-order", jrt_wait_is_over(task));
    return status;
}

static inline __attribute__((always_inline)) janus_status jrt_wait(struct jrt_worker  *worker,
                                                                   struct jrt_waiting *waiting)
{
    return jrt_wait_handing(worker, waiting, NULL);
}

/* A plain thread waits until a waker has written a number other than 0. DEADLINE: too late. A
 * callback must not wait and gets DEADLINE at once, [callback-plain]. */
janus_status jrt_wait_as_thread(_Atomic(uint32_t) *word, uint64_t deadline_ns);

#endif
