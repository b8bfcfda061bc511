/* SPDX-License-Identifier: MIT */
/*
 * Waitpoints.
 *
 * [point-word]  One word holds the whole state, so a waker changes exactly what it has seen:
 *
 *     CLOSED        nobody waits
 *     a task        it waits; the address of its record, whose low bits are 0
 *     THREAD        a plain thread waits
 *     OPEN          for good
 *
 *     the waiter    CLOSED -> a task or THREAD; back to CLOSED if its wait ended otherwise
 *     the waker    anything -> OPEN
 *
 *   A task sets PARKING before it writes the word. So a waker that reads the word can wake the
 *   task ([task-park]), even if it is still leaving the CPU. If the waker comes first, the waiter
 *   does not find CLOSED. Its step fails, and it does not wait.
 *
 * [point-last]  This rule fixes the waker's last touch.
 *   - From CLOSED, it is the step to OPEN itself.
 *   - From a task, the waker wakes it next. If this wake ended the wait, the task goes on with
 *     OK, and the waker does not touch the waitpoint again.
 *   - A cancel or an alarm may have ended the wait first. Then the task finds OPEN where it wants
 *     to step back to CLOSED, and stays awake. The waker's wake meets an awake task and does
 *     nothing. The waker then sets `done` as its last touch, and the task goes on.
 *   - A thread always waits for `done`, on which it sleeps. Waking the futex needs only the
 *     address.
 *   So no wake comes late and meets another wait, and the waker touches nothing that the waiter
 *   may have freed. models/waitpoint.pml tries all orders.
 *
 * [point-guest]  A waker may be on a thread that is no worker of the task's scheduler. It still
 *   touches that scheduler after the task can run, because it looks for a sleeping worker. So it
 *   counts itself as a guest before it wakes the task, while the task keeps the scheduler open.
 *   Closing waits for guests.
 *
 * [point-reason]  The waiter writes the text before it sets PARKING. Dumps read it under the lock
 *   of the nursery. They may see an older text, but never garbage: linking has cleared the field.
 *   Every text outlives its task, and a task leaves the list under the lock. So a dump can always
 *   read the text that it sees.
 */
#include "cancel/cancel.h"
#include "cancel/wait.h"
#include "means/call.h"
#include "nursery/nursery.h"
#include "rt/inside.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/work.h"

#include <janusrt/waitpoint.h>

enum {
    POINT_CLOSED = 0,
    POINT_THREAD = 1,
    POINT_OPEN = 2,
};

struct point {
    _Atomic(uint64_t) word; /* [point-word] */
    _Atomic(uint32_t) done; /* futex: 1: the waker's last touch, [point-last] */
    uint32_t          waker;
};

_Static_assert(sizeof(struct point) <= sizeof(janus_waitpoint), "it fits its storage");

static struct point *point_of(janus_waitpoint *point) { return (struct point *)(void *)point; }

void janus_waitpoint_init(janus_waitpoint *given, janus_waker waker)
{
    struct point *point = point_of(given);
    jrt_contract(point != NULL && (unsigned)waker <= JANUS_WAKER_TASKS,
                 "janus_waitpoint_init: the waitpoint is NULL or the waker is invalid");
    /* relaxed, both: nobody knows it yet. */
    jrt_store_relaxed(&point->word, (uint64_t)POINT_CLOSED);
    jrt_store_relaxed(&point->done, 0u); /* relaxed: as above. */
    point->waker = (uint32_t)waker;
}

/* Opening. */

static void wake_task(struct point *point, struct jrt_task *task)
{
    /* Not woken: the task, and so its scheduler, stays until it sees `done`. */
    if (!jrt_task_serve_from_anywhere(task)) {
        jrt_store_release(&point->done, 1u); /* release: [point-last]. */
    }
}

void janus_waitpoint_wake(janus_waitpoint *given)
{
    jrt_stack_check(); /* [stack-reserve] */
    jrt_contract(given != NULL, "janus_waitpoint_wake: `point` is NULL");
    jrt_waitpoint_wake(given);
}

void jrt_waitpoint_wake(janus_waitpoint *given)
{
    struct point *point = point_of(given);
    uint64_t      word = jrt_load_relaxed(&point->word); /* relaxed: the cas decides. */
    do {
        if (word == POINT_OPEN) return;
        /* acq_rel: the waiter reads what the waker wrote. The waker sees the waiter's PARKING. */
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
    return jrt_load_acquire(&point->word) == POINT_OPEN; /* acquire: what the waker wrote. */
}

/* One step of the waiter. False: the word had changed. */
static bool step(struct point *point, uint64_t from, uint64_t to)
{
    /* acq_rel: PARKING before the waker's look. On failure, what the waker wrote. */
    return jrt_cas_acq_rel(&point->word, &from, to);
}

static janus_status wait_as_thread(struct point *point, uint64_t deadline_ns)
{
    if (!is_open(point) && jrt_thread_self()->calls_back) return JANUS_DEADLINE;
    if (!step(point, POINT_CLOSED, POINT_THREAD)) {
        return is_open(point) ? JANUS_OK : JANUS_STATE;
    }
    if (jrt_wait_as_thread(&point->done, deadline_ns) == JANUS_OK) return JANUS_OK;
    if (step(point, POINT_THREAD, POINT_CLOSED)) return JANUS_DEADLINE;
    return jrt_wait_as_thread(&point->done, JRT_NEVER); /* the waker is about to set `done` */
}

struct visit {
    struct jrt_waiting waiting; /* first */
    struct point      *point;
};

static janus_status visit(struct jrt_waiting *waiting, struct jrt_task *task)
{
    struct point *point = ((struct visit *)waiting)->point;
    if (step(point, POINT_CLOSED, (uintptr_t)task)) return JANUS_WOULD_WAIT;
    return is_open(point) ? JANUS_OK : JANUS_STATE;
}

/* Turns the way in which the wait ended into a status. */
static janus_status come_back(struct jrt_waiting *waiting, struct jrt_task *task,
                              janus_status ended)
{
    struct point *point = ((struct visit *)waiting)->point;
    if (ended == JANUS_OK) return JANUS_OK; /* the waker woke it, [point-last] */
    if (step(point, (uintptr_t)task, POINT_CLOSED)) {
        return ended == JANUS_CANCELLED ? jrt_task_cancelled_only(task) : ended;
    }
    /* acquire: the waker's last touch, and what it wrote. */
    while (jrt_load_acquire(&point->done) == 0) jrt_thread_yield();
    return JANUS_OK;
}

static bool is_linked_and_awake(const struct jrt_task *task)
{
    uint32_t park = jrt_load_relaxed(&task->park); /* relaxed, both: its own. */
    return jrt_load_relaxed(&task->linked) && (park & JRT_PARK_MASK) == JRT_AWAKE;
}

static janus_status wait_as_task(struct point *point, struct jrt_worker *worker, const char *reason,
                                 uint64_t deadline_ns)
{
    struct jrt_task *task = worker->current;
    struct visit     visitor = {
            .waiting = {.why = JRT_WAIT_POINT,
                        .outside = point->waker == JANUS_WAKER_ANYBODY,
                        .deadline_ns = deadline_ns,
                        .join = visit,
                        .leave = come_back},
            .point = point,
    };
    if (jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE)
        return jrt_task_cancelled_again(task);
    if (jrt_wait_is_late(deadline_ns)) return JANUS_DEADLINE;
    jrt_task_link(task);
    jrt_debug_invariant("point-reason", is_linked_and_awake(task));
    jrt_store_release(&task->reason, reason); /* release: its bytes, [point-reason]. */
    return jrt_wait(worker, &visitor.waiting);
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
