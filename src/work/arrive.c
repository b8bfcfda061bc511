/* SPDX-License-Identifier: MIT */
/*
 * Arriving: what comes of a task that has left the CPU, in all ways in which one can leave.
 *
 *     yielded     it is queued
 *     parking     it is parked, or, where somebody has woken it meanwhile, queued: [task-park]
 *     a strand    its loop has ended, and the stack is free
 *     a rescuer   the same, and the task that it ended is still the one that runs
 *
 * Only code on another strand knows that the left strand is off the CPU. So the worker does all
 * this there, after the switch: a switch changes stacks and not threads.
 */
#include "base/assert.h"
#include "base/atomic.h"
#include "fiber/fuel.h"
#include "fiber/thread.h"
#include "sched/shelf.h"
#include "stack/sanitizer.h"
#include "task/note.h"
#include "task/state.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/leave.h"
#include "work/work.h"

/* Queues a task that another thread has woken meanwhile. */
__attribute__((noinline)) static void queue_woken(struct jrt_worker *worker, struct jrt_task *task)
{
    jrt_task_move(task, JANUS_TASK_STATE_READY);
    jrt_submit_again(worker, task);
}

static inline __attribute__((always_inline)) void park_arrived(struct jrt_worker *worker,
                                                               struct jrt_task   *task)
{
    uint32_t expected = jrt_load_relaxed(&task->park); /* relaxed: the cas decides. */
    while ((expected & JRT_PARK_MASK) == JRT_PARKING) {
        uint32_t parked = (expected & ~(uint32_t)JRT_PARK_MASK) | JRT_PARKED;
        /* acq_rel: a thread that sees PARKED may run the strand, so everything written on it comes
         * first. On failure, the waker's status is seen. [task-park] */
        if (jrt_likely(jrt_cas_acq_rel(&task->park, &expected, parked))) return;
    }
    queue_woken(worker, task);
}

/* The general way: the next task gets all that was saved when it left. */
static void arrive_any(struct jrt_worker *worker)
{
    struct jrt_task *task = worker->left_task;
    enum jrt_left    left = worker->left;
    worker->left = JRT_LEFT_NOTHING;
    worker->thread->watch = (struct jrt_watch){worker->strand->stack, NULL};
    if (jrt_likely(worker->current != NULL)) {
        jrt_task_move(worker->current, JANUS_TASK_STATE_RUNNING);
        jrt_debug_invariant("fuel-sign", worker->strand->fuel >= 0);
        jrt_fuel_set(worker->strand->fuel); /* [purse-fuel] */
        *worker->error_at = worker->strand->error;
    }
    if (jrt_unlikely(worker->trace != NULL)) {
        jrt_note_switch(worker, left == JRT_LEFT_YIELDED ? task : NULL);
    }
    switch (left) {
    case JRT_LEFT_NOTHING: break;
    case JRT_LEFT_YIELDED: jrt_submit_yielded(worker, task); break;
    case JRT_LEFT_PARKING: park_arrived(worker, task); break;
    case JRT_LEFT_STRAND:
        jrt_strand_give(worker, (struct jrt_strand *)(void *)worker->left_context);
        break;
    }
}

/* The switch calls this on the new stack. */
JRT_BETWEEN_STACKS int jrt_arrive(void *argument)
{
    struct jrt_worker *worker = argument;
    jrt_sanitizer_arrive(&worker->entered_context->sanitizer, &worker->left_context->sanitizer);
    arrive_any(worker);
    return jrt_go_on(worker);
}

static int arrive_parked(struct jrt_worker *worker)
{
    jrt_arrive_fast(worker);
    if (jrt_unlikely(worker->trace != NULL)) jrt_note_switch(worker, NULL);
    park_arrived(worker, worker->left_task);
    return jrt_go_on(worker);
}

JRT_BETWEEN_STACKS int jrt_arrive_from_park(void *argument)
{
    struct jrt_worker *worker = argument;
    jrt_sanitizer_arrive(&worker->entered_context->sanitizer, &worker->left_context->sanitizer);
    return arrive_parked(worker);
}

static int arrive_yielded(struct jrt_worker *worker)
{
    jrt_arrive_fast(worker);
    if (jrt_unlikely(worker->trace != NULL)) jrt_note_switch(worker, worker->left_task);
    jrt_submit_yielded(worker, worker->left_task);
    return jrt_go_on(worker);
}

JRT_BETWEEN_STACKS int jrt_arrive_from_yield(void *argument)
{
    struct jrt_worker *worker = argument;
    jrt_sanitizer_arrive(&worker->entered_context->sanitizer, &worker->left_context->sanitizer);
    return arrive_yielded(worker);
}

/* The rare endings of arrive_plain. */
__attribute__((noinline)) static int submit_and_go_on(struct jrt_worker *worker)
{
    jrt_submit_again(worker, worker->left_task);
    return jrt_go_on(worker);
}

__attribute__((noinline)) static int feed_and_go_on(struct jrt_worker *worker)
{
    jrt_idle_feed(worker);
    return jrt_go_on(worker);
}

/* Arrives on a PLAIN worker, [worker-plain]. Rare work is a last call, so it needs no frame. */
JRT_HOT JRT_BETWEEN_STACKS int jrt_arrive_plain(void *argument)
{
    struct jrt_worker *worker = argument;
    struct jrt_task   *task = worker->left_task;
    jrt_sanitizer_arrive(&worker->entered_context->sanitizer, &worker->left_context->sanitizer);
    jrt_arrive_fast(worker);
    struct jrt_shelf *shelf = &worker->again_shelf;
    uint64_t          newest = jrt_load_relaxed(&shelf->newest); /* relaxed: our own. */
    if (jrt_unlikely(task->lane != JRT_LANE_NORMAL || newest == shelf->room)) {
        return submit_and_go_on(worker);
    }
    jrt_shelf_place(shelf, newest, task); /* the pick has left the lane's bit set */
    if (jrt_unlikely(jrt_idle_somebody(worker, false))) return feed_and_go_on(worker);
    return jrt_go_on(worker);
}

/* Continues on the strand that overflowed, with its task still current. */
void jrt_arrive_from_rescue(void)
{
    struct jrt_worker *worker = jrt_worker_self();
    struct jrt_task   *task = worker->current;
    worker->current = NULL; /* it does not begin to run */
    jrt_sanitizer_arrive(&worker->entered_context->sanitizer, &worker->left_context->sanitizer);
    arrive_any(worker);
    (void)jrt_worker_rescue_ready(worker); /* [rescue-late] */
    worker->current = task;
}
