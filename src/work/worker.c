/* SPDX-License-Identifier: MIT */
/*
 * Workers: the loop, and the way from one strand to another.
 *
 *     loop:  a task from the own queues, the injected ones, another worker; else sleep
 *            never ran   call it here, on this strand
 *            waited      its strand goes on; this one's stack is free
 *
 * A task that has to wait in the middle (leave) takes its strand off the CPU. The worker goes on
 * in the strand of the next task, directly, or in a loop on a fresh stack. Some work must wait
 * until the left strand is off the CPU: to queue the task, mark it as parked, or free the stack.
 * The code that arrives on the next strand does it.
 *
 * [worker-again]  After anything that may leave the CPU, the worker may be another one. Code asks
 *   for it again and never keeps it.
 *
 * [task-errno]  errno belongs to the thread, and a task may go on on another thread. So the strand
 *   keeps errno while the task is off the CPU. Code that leaves saves it, through the worker's
 *   pointer to its thread's errno. A switch from one task straight to another also restores the
 *   next task's errno, before the switch: the thread stays the same. Otherwise the next task gets
 *   its errno when it arrives. Children that run in place run inside their owner's call. The owner
 *   saves its errno before the first of them and restores it after the last.
 *
 * Fresh tasks come newest first, because their parent's data is warm. Tasks that ran before come
 * oldest first, so that yielding tasks take turns. Every 61st pick looks at the second kind and at
 * injected tasks first, so that neither starves. Lanes: HIGH before NORMAL before LOW, but every
 * 8th pick starts at NORMAL and every 32nd at LOW.
 */
#include "task/worker.h"

#include "fiber/exception.h"
#include "task/nursery.h"
#include "task/state.h"
#include "task/turn.h"
#include "work/replace.h"
#include "work/seat.h"
#include "work/straight.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Arriving: the strand that was left is off the CPU now. */

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

/* Runs on the entered strand: the left one is off the CPU now. It is the worker that switched,
 * because a switch changes stacks and not threads. */
int jrt_worker_arrive(void *argument)
{
    struct jrt_worker *worker = argument;
    struct jrt_task   *task = worker->left_task;
    enum jrt_left      left = worker->left;
    worker->left = JRT_LEFT_NOTHING;
    worker->thread->watch = (struct jrt_watch){worker->strand->stack, NULL};
    if (jrt_likely(worker->current != NULL)) {
        jrt_task_move(worker->current, JANUS_TASK_STATE_RUNNING);
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
    return JANUS_OK;
}

static int arrive_and_go_on(struct jrt_worker *worker)
{
    (void)jrt_worker_arrive(worker);
    return jrt_go_on(worker);
}

/* The switch calls this on the new stack. */
JRT_BETWEEN_STACKS static int arrive(void *argument)
{
    struct jrt_worker *worker = argument;
    jrt_sanitizer_arrive(&worker->entered_context->sanitizer, &worker->left_context->sanitizer);
    return arrive_and_go_on(worker);
}

static int arrive_parked(struct jrt_worker *worker)
{
    jrt_arrive_fast(worker);
    if (jrt_unlikely(worker->trace != NULL)) jrt_note_switch(worker, NULL);
    park_arrived(worker, worker->left_task);
    return jrt_go_on(worker);
}

JRT_BETWEEN_STACKS static int arrive_from_park(void *argument)
{
    struct jrt_worker *worker = argument;
    jrt_sanitizer_arrive(&worker->entered_context->sanitizer, &worker->left_context->sanitizer);
    return arrive_parked(worker);
}

static inline __attribute__((always_inline)) janus_status switch_to(struct jrt_worker  *worker,
                                                                    struct jrt_context *from,
                                                                    struct jrt_context *to)
{
    worker->left_context = from;
    worker->entered_context = to;
    jrt_count(&worker->stats.switches);
    jrt_sanitizer_leave(&from->sanitizer, &to->sanitizer, worker->left == JRT_LEFT_STRAND);
    return (janus_status)jrt_ctx_switch_then(&from->sp, to->sp, arrive, worker);
}

/* The loop. */

static void loop(void);

static void loop_main(void *strand, int message)
{
    (void)strand, (void)message;
    loop();
}

/* Goes on in a loop on `strand`, with `task` as the first thing to do. */
static janus_status go_to_loop(struct jrt_worker *worker, struct jrt_strand *strand,
                               struct jrt_task *task, struct jrt_context *from)
{
    worker->handoff = task;
    worker->current = NULL;
    worker->strand = strand;
    strand->context.sp = jrt_ctx_make(strand, loop_main, strand);
    return switch_to(worker, from, &strand->context);
}

static inline __attribute__((always_inline)) janus_status go_to_task(struct jrt_worker  *worker,
                                                                     struct jrt_task    *task,
                                                                     struct jrt_context *from)
{
    struct jrt_strand *strand = task->strand;
    worker->current = task;
    worker->strand = strand;
    return switch_to(worker, from, strand->left);
}

/* Leaves the current strand, which has no task, for a loop that begins with `task`. */
static void run_on(struct jrt_worker *worker, struct jrt_strand *strand, struct jrt_task *task)
{
    worker->left = JRT_LEFT_STRAND;
    (void)go_to_loop(worker, strand, task, &worker->strand->context);
    jrt_die("invariant [worker-again] broken", "an ended strand was entered", __FILE__, __LINE__);
}

/* Ends a child for which there is no stack: it fails before it began, and its nursery reports
 * how. */
static void fail_without_stack(struct jrt_worker *worker, struct jrt_task *task)
{
    jrt_task_drop_argument(task);
    jrt_task_move(task, JANUS_TASK_STATE_RUNNING);
    task->landing.result = JANUS_NO_MEMORY;
    jrt_nursery_child_done(worker, task, NULL);
}

/* Runs a task that needs a larger stack than this strand's. */
static void run_on_larger(struct jrt_worker *worker, struct jrt_task *task)
{
    struct jrt_strand *larger = jrt_strand_of_class(worker, task->stack_class);
    if (larger == NULL) {
        fail_without_stack(worker, task);
    } else {
        run_on(worker, larger, task);
    }
}

/* Takes the oldest of the worker's own tasks that ran before; NULL: no such task. */
static struct jrt_task *take_begun(struct jrt_worker *worker)
{
    struct jrt_task *task = jrt_shelf_pop_oldest(&worker->again_shelf);
    for (unsigned lane = 0; lane < JRT_LANES && task == NULL; lane++) {
        task = jrt_deque_pop(&worker->again[lane]);
    }
    if (task == NULL || jrt_task_began(task)) return task;
    jrt_submit_fresh(worker, task);
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
        if (task == NULL && !doomed) task = jrt_pick(worker, false);
        if (task == NULL && !doomed) task = jrt_idle(worker);
        if (jrt_unlikely(task == NULL)) break;
        if (jrt_likely(!jrt_task_began(task))) {
            /* A cancelled task needs no stack: it must not wait for memory. */
            bool fits = worker->strand->class >= task->stack_class && !worker->strand->last;
            if (jrt_likely(fits) || jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE) {
                jrt_count(&worker->stats.tasks_by_loop);
                worker = jrt_task_run(worker, task, task->nursery, NULL);
            } else if (worker->strand->last) {
                run_from_last(worker, task);
            } else {
                run_on_larger(worker, task);
            }
            continue;
        }
        worker->left = JRT_LEFT_STRAND;
        (void)go_to_task(worker, task, &worker->strand->context);
        jrt_die("invariant [worker-again] broken", "an ended strand was entered", __FILE__,
                __LINE__);
    }
    /* The root frees the strand. */
    (void)switch_to(worker, &worker->strand->context, &worker->root);
    jrt_die("invariant [worker-again] broken", "an ended strand was entered", __FILE__, __LINE__);
}

/* Leaving. */

static inline __attribute__((always_inline)) janus_status leave(struct jrt_worker *worker,
                                                                struct jrt_task   *task,
                                                                struct jrt_task   *next,
                                                                enum jrt_left      how)
{
    struct jrt_strand *strand = worker->strand;
    task->strand = strand;
    task->touched = true;
    strand->fuel = jrt_fuel_get(); /* [purse-fuel] */
    strand->error = *worker->error_at;
    worker->left = how;
    worker->left_task = task;
    if (next != NULL && jrt_task_began(next)) return go_to_task(worker, next, strand->left);
    return go_to_loop(worker, jrt_strand_take(worker), next, strand->left);
}

/* Leaves with more to save and restore: exceptions that are being handled, and a fiber of the
 * task's own. Inside such a fiber, that is the stack that is left. */
__attribute__((noinline)) static janus_status leave_with_more(struct jrt_worker *worker,
                                                              struct jrt_task   *task,
                                                              struct jrt_task   *next,
                                                              enum jrt_left      how)
{
    struct jrt_thread    *thread = worker->thread;
    struct jrt_watch      watch = thread->watch;
    struct janus_fiber   *fiber = thread->current;
    struct jrt_strand    *strand = worker->strand;
    struct jrt_exceptions mine = {0};
    if (jrt_exceptions_exist()) mine = jrt_exceptions_take();
    if (fiber != NULL) strand->left = &fiber->context;
    thread->current = NULL;
    (void)leave(worker, task, next, how);
    thread = jrt_worker_self()->thread; /* [worker-again] */
    strand->left = &strand->context;
    thread->current = fiber;
    if (fiber != NULL) thread->watch = watch;
    if (jrt_exceptions_exist()) jrt_exceptions_put(mine);
    return JANUS_OK;
}

janus_status jrt_task_leave(struct jrt_worker *worker, struct jrt_task *task, struct jrt_task *next,
                            enum jrt_left how)
{
    if (jrt_unlikely(jrt_worker_has_more(worker))) {
        return leave_with_more(worker, task, next, how);
    }
    return leave(worker, task, next, how);
}

/* Waiting, [task-park]. */

/* Whether nobody has woken the task meanwhile, so that it leaves the CPU. */
static inline bool still_parking(const struct jrt_task *task)
{
    uint32_t park = jrt_load_acquire(&task->park); /* acquire: pairs with [park-wake]. */
    return (park & JRT_PARK_MASK) == JRT_PARKING;
}

static inline struct jrt_task *pick_next(struct jrt_worker *worker)
{
    struct jrt_task *next = jrt_pick_fast(worker, !jrt_fences_are_light());
    return next != NULL ? next : jrt_pick(worker, false);
}

janus_status jrt_task_park(struct jrt_worker *worker, struct jrt_task *task)
{
    if (still_parking(task)) {
        jrt_task_move_to_wait(task, worker);
        struct jrt_task *next = pick_next(worker);
        (void)jrt_task_leave(worker, task, next, JRT_LEFT_PARKING);
    }
    return jrt_park_ended(task);
}

__attribute__((noinline)) static janus_status park_slow(struct jrt_task *task, jrt_finish *finish)
{
    janus_status status = jrt_task_park_cancellable(task);
    return finish(jrt_worker_self(), task, status); /* [worker-again] */
}

/* Leaves a waiting task when there is no easy task to go to. */
__attribute__((noinline)) static janus_status leave_to_any(struct jrt_worker *worker,
                                                           struct jrt_task   *task,
                                                           struct jrt_task   *next)
{
    if (next == NULL) next = jrt_pick(worker, false);
    return leave(worker, task, next, JRT_LEFT_PARKING);
}

janus_status jrt_task_park_fast(struct jrt_worker *worker, struct jrt_task *task,
                                jrt_finish *finish)
{
    jrt_fence_light_seq_cst(); /* seq_cst: [cancel-park]. */
    if (jrt_unlikely(jrt_exceptions_exist() || !jrt_task_is_clean(task) || !still_parking(task) ||
                     !jrt_task_move_to_wait_fast(task, worker))) {
        return jrt_task_park_then(worker, task, finish);
    }
    jrt_debug_invariant("task-finish", worker->strand->finish == NULL);
    worker->strand->finish = finish;
    struct jrt_task *next = jrt_pick_fast(worker, !jrt_fences_are_light());
    if (jrt_unlikely(next == NULL || !jrt_task_began(next))) {
        return leave_to_any(worker, task, next);
    }
    return jrt_go_fast(worker, task, next, arrive_from_park);
}

janus_status jrt_task_park_then(struct jrt_worker *worker, struct jrt_task *task,
                                jrt_finish *finish)
{
    /* acquire: everything above is linked. relaxed: its own. */
    bool plain = jrt_load_acquire(&task->linked) && jrt_load_relaxed(&task->shield) == 0;
    if (jrt_unlikely(!plain || jrt_worker_has_more(worker))) return park_slow(task, finish);
    jrt_fence_light_seq_cst(); /* seq_cst: [cancel-park]. */
    bool cancelled = jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE;
    if (jrt_unlikely(cancelled || !still_parking(task))) return park_slow(task, finish);
    jrt_task_move_to_wait(task, worker);
    struct jrt_task *next = pick_next(worker);
    worker->strand->finish = finish;
    if (jrt_likely(next != NULL && jrt_task_began(next))) {
        return jrt_go_fast(worker, task, next, arrive_from_park);
    }
    return leave(worker, task, next, JRT_LEFT_PARKING);
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
    worker->thread = thread;
    worker->error_at = &errno;
    worker->picked_ns = worker->turns.looked_ns = worker->turns.asked_ns = jrt_clock_now_ns();
    worker->turns.ran_ns = jrt_thread_cpu_ns(); /* of this thread, [turn-kernel] */
    thread->worker = worker;
    thread->rescue = &worker->rescue->context.sp;
    thread->on_panic = jrt_task_on_panic;
    thread->on_exit = jrt_worker_on_exit;
    jrt_sanitizer_adopt_thread(&worker->root.sanitizer);
    struct jrt_strand *strand = jrt_strand_take(worker); /* made before the thread was started */
    worker->left = JRT_LEFT_NOTHING;
    (void)go_to_loop(worker, strand, NULL, &worker->root);
    thread->watch = (struct jrt_watch){NULL, NULL};
    /* The loop has ended; its strand and other spare resources go back. */
    jrt_strand_give(worker, worker->strand);
    thread->worker = NULL;
    thread->on_panic = NULL;
    thread->on_exit = NULL;
    jrt_worker_retire(worker);
}
