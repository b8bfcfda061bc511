/* SPDX-License-Identifier: MIT */
/*
 * A worker's loop, and the thread that runs it.
 *
 *     loop:  a task from the own queues, the injected ones, another worker; else sleep
 *            never ran   call it here, on this strand
 *            waited      its strand goes on; this one's stack is free
 */
#include "base/assert.h"
#include "base/atomic.h"
#include "cancel/cancel.h"
#include "fiber/thread.h"
#include "means/holder.h"
#include "nursery/crowd.h"
#include "nursery/nursery.h"
#include "nursery/run.h"
#include "plat/seam.h"
#include "plat/world.h"
#include "sched/deque.h"
#include "sched/shelf.h"
#include "stack/sanitizer.h"
#include "task/state.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/crew.h"
#include "work/leave.h"
#include "work/seat.h"
#include "work/work.h"

#include <errno.h>
#include <stdlib.h>

static void loop(void);

void jrt_loop_main(void *strand, int message)
{
    (void)strand, (void)message;
    loop();
}

/* Leaves the current strand, which has no task, for a loop that begins with `task`. */
static void run_on(struct jrt_worker *worker, struct jrt_strand *strand, struct jrt_task *task)
{
    worker->left = JRT_LEFT_STRAND;
    (void)jrt_go_to_loop(worker, strand, task, &worker->strand->context);
    jrt_die("invariant [worker-again] broken", "an ended strand was entered", __FILE__, __LINE__);
}

/* A task that rested may hold locks, and may have defers. There is no stack to call them. */
static void abandon(struct jrt_worker *worker, struct jrt_task *task)
{
    while (task->defers != NULL) {
        struct jrt_defer *defer = task->defers;
        task->defers = defer->next;
        free(defer);
    }
    /* relaxed: its own. */
    if (jrt_load_relaxed(&task->record.holder) != NULL) jrt_holder_end(worker, task);
}

/* Ends a child for which there is no stack: its nursery reports how. Most such children have not
 * begun. */
static void fail_without_stack(struct jrt_worker *worker, struct jrt_task *task)
{
    jrt_task_drop_argument(task);
    if (jrt_task_is_resident(task)) abandon(worker, task);
    jrt_task_move(task, JANUS_TASK_STATE_RUNNING);
    task->landing.result = JANUS_NO_MEMORY;
    jrt_nursery_child_done(worker, task, NULL);
}

/* The oldest of the worker's own tasks that ran before and have a stack; NULL: no such task. Tasks
 * that rested have none, and go to the end of their queue. */
static struct jrt_task *take_begun(struct jrt_worker *worker)
{
    for (unsigned lane = 0; lane < JRT_LANES; lane++) {
        for (uint64_t left = jrt_count_again(worker, lane); left > 0; left--) {
            bool             lost = false;
            struct jrt_task *task = jrt_deque_steal(&worker->again[lane], &lost);
            if (task == NULL && lane == JRT_LANE_NORMAL)
                task = jrt_shelf_pop_oldest(&worker->again_shelf);
            if (task == NULL && !lost) break;
            if (task == NULL || jrt_task_began(task)) {
                if (task != NULL) return task;
                continue;
            }
            jrt_submit_again(worker, task);
        }
    }
    return NULL;
}

/* Runs a task that has not begun from the last strand, [strand-last]. */
__attribute__((noinline)) static void run_from_last(struct jrt_worker *worker,
                                                    struct jrt_task   *task)
{
    unsigned class = worker->scheduler->stack_class;
    if (class < task->stack_class) class = task->stack_class;
    struct jrt_strand *strand = jrt_strand_of_class(worker, class);
    if (strand != NULL) run_on(worker, strand, task);
    struct jrt_task *begun = worker->seat == NULL ? take_begun(worker) : NULL;
    if (begun == NULL) {
        fail_without_stack(worker, task);
    } else {
        jrt_submit_fresh(worker, task);
        worker->handoff = begun;
    }
}

/* Whether the task ends without a call. */
static bool is_skipped(struct jrt_task *task)
{
    return !jrt_task_is_resident(task) && jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE;
}

static struct jrt_worker *run_one(struct jrt_worker *worker, struct jrt_task *task)
{
    jrt_count(&worker->stats.tasks_by_loop);
    return jrt_task_run(worker, task, task->nursery, NULL);
}

/* Runs a task that needs a larger stack than this strand's. */
static struct jrt_worker *run_on_larger(struct jrt_worker *worker, struct jrt_task *task)
{
    struct jrt_strand *larger = jrt_strand_of_class(worker, task->stack_class);
    if (larger != NULL) run_on(worker, larger, task);
    struct jrt_resident *resident = jrt_task_is_resident(task) ? jrt_resident_of(task) : NULL;
    if (resident != NULL && resident->rules->refused != NULL) {
        resident->rules->refused(resident);
        return run_one(worker, task);
    }
    fail_without_stack(worker, task);
    return worker;
}

static void loop(void)
{
    struct jrt_worker *worker = jrt_worker_self();
    for (;;) {
        struct jrt_task *task = worker->handoff;
        worker->handoff = NULL;
        jrt_point(); /* [sim-point] */
        if (jrt_fails(JRT_FAULT_DEATH))
            jrt_store_relaxed(&worker->doomed, true); /* relaxed: its own. */
        bool doomed = task == NULL && jrt_worker_doomed(worker);
        if (task == NULL && !doomed && worker->stolen == 0 && !jrt_again_is_crowd(worker))
            task = jrt_pick_fast(worker, !jrt_fences_are_light());
        if (task == NULL && !doomed) task = jrt_pick(worker, false);
        if (task == NULL && !doomed) task = jrt_idle(worker);
        if (jrt_unlikely(task == NULL)) break;
        if (jrt_likely(!jrt_task_began(task))) {
            /* A cancelled task needs no stack: it must not wait for memory. */
            bool fits = worker->strand->class >= task->stack_class && !worker->strand->last;
            if (jrt_likely(fits) || is_skipped(task)) {
                worker = jrt_crowd_runs(worker, task) ? jrt_crowd_run(worker, task)
                                                      : run_one(worker, task);
            } else if (worker->strand->last) {
                run_from_last(worker, task);
            } else {
                worker = run_on_larger(worker, task);
            }
            continue;
        }
        worker->left = JRT_LEFT_STRAND;
        (void)jrt_go_to_task(worker, task, &worker->strand->context);
        jrt_die("invariant [worker-again] broken", "an ended strand was entered", __FILE__,
                __LINE__);
    }
    /* The root frees the strand. */
    (void)jrt_switch_to(worker, &worker->strand->context, &worker->root);
    jrt_die("invariant [worker-again] broken", "an ended strand was entered", __FILE__, __LINE__);
}

void jrt_worker_main(void *argument)
{
    struct jrt_worker *worker = argument;
    struct jrt_thread *thread = jrt_thread_self();
    if (!jrt_thread_attach(thread)) {
        if (worker->seat != NULL) { /* then a worker runs its task */
            jrt_seat_lose(worker->seat);
            jrt_seat_vacate(worker->seat);
            return;
        }
        jrt_arrivals_tell(worker, false);
        return;
    }
    jrt_arrivals_tell(worker, true);
    jrt_crew_begin(worker);
    worker->thread = thread;
    worker->error_at = &errno;
    worker->picked_ns = worker->turns.looked_ns = worker->turns.asked_ns = jrt_clock_now_ns();
    worker->turns.ran_ns = jrt_thread_cpu_ns(); /* of this thread, [turn-kernel] */
    thread->worker = worker;
    thread->rescue = &worker->rescue->context.sp;
    thread->on_panic = jrt_task_on_panic;
    thread->on_exit = jrt_worker_on_exit;
    jrt_sanitizer_adopt_thread(&worker->root.sanitizer);
    if (worker->scheduler->world == NULL) jrt_sanitizer_thread_works();
    struct jrt_strand *strand = jrt_strand_take(worker); /* made before the thread was started */
    worker->left = JRT_LEFT_NOTHING;
    (void)jrt_go_to_loop(worker, strand, NULL, &worker->root);
    thread->watch = (struct jrt_watch){NULL, NULL};
    /* The loop has ended; its strand and other spare resources go back. */
    jrt_strand_give(worker, worker->strand);
    thread->worker = NULL;
    thread->on_panic = NULL;
    thread->on_exit = NULL;
    jrt_worker_retire(worker);
}
