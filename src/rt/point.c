/* SPDX-License-Identifier: MIT */
/*
 * Waitpoints.
 *
 * [point-word]  one word says all, so that an opener changes what it has seen or nothing:
 *
 *     CLOSED        nobody waits
 *     a task        it waits; the address of its record, whose low bits are 0
 *     THREAD        a plain thread waits
 *     OPEN          for good
 *
 *     the waiter    CLOSED -> a task or THREAD; back to CLOSED when its wait has ended otherwise
 *     the opener    anything -> OPEN
 *
 *   A task says PARKING before it writes the word, so that an opener who reads the word can wake
 *   it ([task-park]), however far it is on its way off the CPU. An opener who comes before finds
 *   CLOSED, and the waiter's step fails, and it does not wait.
 *
 * [point-last]  the opener's last touch. From CLOSED it is the step to OPEN itself. From a task,
 *   the opener wakes it next. If its wake was the one that ended the wait, the task goes on after
 *   it, with OK, and the opener has no more business with the waitpoint. Otherwise the wait was
 *   ended by somebody else, a cancel or an alarm; then the task finds OPEN where it wants to step
 *   back to CLOSED, and stays, awake, until the opener, whose wake has met an awake task and done
 *   nothing, sets `done` as its last touch. So no wake comes late and meets another wait, and
 *   nothing is touched that the waiter may have freed. A thread always waits for `done`, on which
 *   it sleeps; waking the futex needs the address only. models/waitpoint.pml tries all orders.
 *
 * [point-guest]  an opener on a thread that is no worker of the task's scheduler touches that after
 *   the task can run on (it looks for a sleeping worker). It counts itself as a guest before it
 *   wakes, when the task and so the scheduler are certainly there; closing waits for guests.
 *
 * [point-reason]  the text is written before the task says PARKING and read by dumps under the lock
 *   of the nursery. Older ones may be seen, never none: linking has cleared it. As every text
 *   outlives its task, and a task leaves the list under the lock, what is seen can be read.
 */
#include "task/nursery.h"

#include <janusrt/waitpoint.h>

enum {
    POINT_CLOSED = 0,
    POINT_THREAD = 1,
    POINT_OPEN = 2,
};

struct point {
    _Atomic(uint64_t) word; /* [point-word] */
    _Atomic(uint32_t) done; /* futex: 1: the opener has let go, [point-last] */
    uint32_t          opener;
};

_Static_assert(sizeof(struct point) <= sizeof(janus_waitpoint), "it fits its storage");

static struct point *point_of(janus_waitpoint *point) { return (struct point *)(void *)point; }

void janus_waitpoint_init(janus_waitpoint *given, janus_opener opener)
{
    struct point *point = point_of(given);
    jrt_contract(point != NULL && (unsigned)opener <= JANUS_OPENED_BY_TASKS,
                 "janus_waitpoint_init with what is none");
    /* relaxed, both: nobody knows it yet. */
    jrt_store_relaxed(&point->word, (uint64_t)POINT_CLOSED);
    jrt_store_relaxed(&point->done, 0u); /* relaxed: as above. */
    point->opener = (uint32_t)opener;
}

/* Opening. */

static void wake_task(struct point *point, struct jrt_task *task)
{
    /* Not woken: it stays until we say so, and with it its scheduler. */
    if (!jrt_task_serve_from_anywhere(task)) {
        jrt_store_release(&point->done, 1u); /* release: [point-last]. */
    }
}

void janus_waitpoint_open(janus_waitpoint *given)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct point *point = point_of(given);
    uint64_t      word = jrt_load_relaxed(&point->word); /* relaxed: the cas decides. */
    do {
        if (word == POINT_OPEN) return;
        /* acq_rel: what we wrote before is the waiter's to read; the waiter's PARKING is seen. */
    } while (!jrt_cas_acq_rel(&point->word, &word, (uint64_t)POINT_OPEN));
    if (word == POINT_CLOSED) return;
    if (word != POINT_THREAD) {
        wake_task(point, (struct jrt_task *)(uintptr_t)word);
        return;
    }
    jrt_store_release(&point->done, 1u); /* release: [point-last]. */
    jrt_futex_wake(&point->done, 1);
}

/* Waiting. */

static bool is_open(const struct point *point)
{
    return jrt_load_acquire(&point->word) == POINT_OPEN; /* acquire: what the opener wrote. */
}

/* One step of the waiter's; false: the word was another. */
static bool step(struct point *point, uint64_t from, uint64_t to)
{
    /* acq_rel: PARKING before the opener's look; failing, what the opener wrote. */
    return jrt_cas_acq_rel(&point->word, &from, to);
}

static janus_status wait_as_thread(struct point *point, uint64_t deadline_ns)
{
    if (!is_open(point) && jrt_thread_self()->calls_back) return JANUS_DEADLINE;
    if (!step(point, POINT_CLOSED, POINT_THREAD)) {
        return is_open(point) ? JANUS_OK : JANUS_STATE;
    }
    while (jrt_load_acquire(&point->done) == 0) { /* acquire: what the opener wrote. */
        if (jrt_futex_wait_until(&point->done, 0, deadline_ns)) continue;
        if (step(point, POINT_THREAD, POINT_CLOSED)) return JANUS_DEADLINE;
        deadline_ns = JRT_NEVER; /* the opener is about to let go */
    }
    return JANUS_OK;
}

static void ring_deadline(struct jrt_alarm *alarm)
{
    (void)jrt_task_wake(alarm->subject, JANUS_DEADLINE);
}

/* Says PARKING, and arms the alarm if there is a deadline. */
static janus_status begin(struct jrt_task *task, const char *reason, struct jrt_alarm *alarm,
                          uint64_t deadline_ns)
{
    jrt_task_link(task);
    jrt_store_release(&task->reason, reason); /* release: its bytes, [point-reason]. */
    jrt_task_park_begin(task, JRT_WAIT_POINT);
    if (deadline_ns == JRT_NEVER) return JANUS_OK;
    *alarm = (struct jrt_alarm){.ring = ring_deadline, .subject = task};
    if (jrt_sched_timer_arm(task->nursery->scheduler, &alarm->timer, deadline_ns)) return JANUS_OK;
    (void)jrt_task_park_cancel(task);
    return JANUS_NO_MEMORY;
}

/* The wait has ended so: what is to be told. */
static janus_status come_back(struct point *point, struct jrt_task *task, janus_status ended)
{
    if (ended == JANUS_OK) return JANUS_OK; /* the opener's word, [point-last] */
    if (step(point, (uintptr_t)task, POINT_CLOSED)) {
        return ended == JANUS_CANCELLED ? jrt_task_told(task) : ended;
    }
    /* acquire: the opener's last touch, and what it wrote. */
    while (jrt_load_acquire(&point->done) == 0) jrt_thread_yield();
    return JANUS_OK;
}

static janus_status wait_as_task(struct point *point, struct jrt_worker *worker, const char *reason,
                                 uint64_t deadline_ns)
{
    struct jrt_task *task = worker->current;
    janus_scheduler *scheduler = worker->scheduler;
    struct jrt_alarm alarm;
    if (jrt_task_cancel_reason(task) != JANUS_CANCEL_NONE) return jrt_task_remind(task);
    if (deadline_ns != JRT_NEVER && jrt_clock_now_ns() >= deadline_ns) return JANUS_DEADLINE;
    if (!jrt_worker_can_leave(worker)) return JANUS_NO_MEMORY;
    janus_status status = begin(task, reason, &alarm, deadline_ns);
    if (status != JANUS_OK) return status;
    bool anybody = point->opener == JANUS_OPENED_BY_ANYBODY;
    if (step(point, POINT_CLOSED, (uintptr_t)task)) {
        /* relaxed, both: a count; we run, so nobody looks for a deadlock now. */
        if (anybody) jrt_fetch_add_relaxed(&scheduler->outside, 1u);
        status = come_back(point, task, jrt_task_park_cancellable(task));
        if (anybody) jrt_fetch_sub_relaxed(&scheduler->outside, 1u); /* relaxed: as above. */
    } else {
        (void)jrt_task_park_cancel(task);
        status = is_open(point) ? JANUS_OK : JANUS_STATE;
    }
    if (deadline_ns != JRT_NEVER) jrt_sched_timer_disarm(scheduler, &alarm.timer);
    return status;
}

janus_status janus_waitpoint_wait_until(janus_waitpoint *given, const char *reason,
                                        uint64_t deadline_ns)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct point      *point = point_of(given);
    struct jrt_worker *worker = jrt_worker_self();
    if (point == NULL) return JANUS_INVALID;
    if (is_open(point)) return JANUS_OK;
    if (worker == NULL) return wait_as_thread(point, deadline_ns);
    return wait_as_task(point, worker, reason, deadline_ns);
}

janus_status janus_waitpoint_wait(janus_waitpoint *point, const char *reason)
{
    return janus_waitpoint_wait_until(point, reason, JRT_NEVER);
}
