/* SPDX-License-Identifier: MIT */
/*
 * Workers: the loop, and going from one strand to another.
 *
 *     loop:  a task from the own queues, the injected ones, another worker; else sleep
 *            never ran   call it here, on this strand
 *            waited      its strand goes on; this one's stack is free
 *
 * A task that has to wait in the middle (leave) takes its strand off the CPU. The worker goes on in
 * the strand of the next task, directly, or in a loop on a fresh stack. What has to wait until the
 * left strand is off the CPU, queueing the task, marking it parked, freeing the stack, is done
 * by whoever arrives.
 *
 * [worker-again]  after anything that may leave the CPU the worker may be another one: it is asked
 *   for anew, never kept.
 *
 * [task-errno]  errno is the thread's, and a task may go on on another one. So it is kept with the
 *   strand while the task is off the CPU. Whoever leaves saves it, through the address that the
 *   worker has of its thread's errno. A switch from one task straight to another also restores the
 *   next task's, before the switch: the thread stays the same. Otherwise the next task is given its
 *   errno when it arrives. Children that run in place run inside their owner's call: the owner
 *   saves its errno before the first of them and restores it after the last.
 *
 * The order of looking. Fresh tasks come newest first, because their parent's data is warm; tasks
 * that ran before come oldest first, so that those who yield take turns. Every 61st pick looks at
 * the second kind and at injected tasks first, so that neither starves. Lanes: HIGH before NORMAL
 * before LOW, but every 8th pick starts at NORMAL and every 32nd at LOW.
 */
#include "task/worker.h"

#include "fiber/exception.h"
#include "task/nursery.h"
#include "task/state.h"
#include "task/turn.h"
#include "work/replace.h"
#include "work/seat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { /* yields of a worker that has nothing else */
       STEAL_EVERY = 16,
       RAID_EVERY = 4096, /* a multiple */
};

/* Arriving: the strand that was left is off the CPU now. */

/* Somebody has woken it meanwhile. */
__attribute__((noinline)) static void queue_woken(struct jrt_worker *worker, struct jrt_task *task)
{
    jrt_task_move(task, JANUS_TASK_READY);
    jrt_submit_again(worker, task);
}

static inline __attribute__((always_inline)) void park_arrived(struct jrt_worker *worker,
                                                               struct jrt_task   *task)
{
    uint32_t expected = jrt_load_relaxed(&task->park); /* relaxed: the cas decides. */
    while ((expected & JRT_PARK_MASK) == JRT_PARKING) {
        uint32_t parked = (expected & ~(uint32_t)JRT_PARK_MASK) | JRT_PARKED;
        /* acq_rel: who sees PARKED may run the strand, so what was written on it before it was
         * left comes first; failing, the waker's status is seen. [task-park] */
        if (jrt_likely(jrt_cas_acq_rel(&task->park, &expected, parked))) return;
    }
    queue_woken(worker, task);
}

/* It wants to go on, but others come first. */
static inline void submit_yielded(struct jrt_worker *worker, struct jrt_task *task)
{
    if (jrt_unlikely(worker->gave_way)) {
        worker->gave_way = false;
        jrt_submit_served(worker, task);
    } else {
        jrt_submit_again(worker, task);
    }
}

/* On the strand that was entered: the left one is off the CPU now. Of the worker that switched,
 * because a switch changes stacks and not threads. */
int jrt_worker_arrive(void *argument)
{
    struct jrt_worker *worker = argument;
    struct jrt_task   *task = worker->left_task;
    enum jrt_left      left = worker->left;
    worker->left = JRT_LEFT_NOTHING;
    worker->thread->watch = (struct jrt_watch){worker->strand->stack, NULL};
    if (jrt_likely(worker->current != NULL)) {
        jrt_task_move(worker->current, JANUS_TASK_RUNNING);
        jrt_fuel_set(worker->strand->fuel); /* [purse-fuel] */
        *worker->error_at = worker->strand->error;
    }
    if (jrt_unlikely(worker->trace != NULL)) {
        jrt_note_switch(worker, left == JRT_LEFT_YIELDED ? task : NULL);
    }
    switch (left) {
    case JRT_LEFT_NOTHING: break;
    case JRT_LEFT_YIELDED: submit_yielded(worker, task); break;
    case JRT_LEFT_PARKING: park_arrived(worker, task); break;
    case JRT_LEFT_STRAND:
        jrt_strand_give(worker, (struct jrt_strand *)(void *)worker->left_context);
        break;
    }
    return JANUS_OK;
}

/* The wait of this task has ended: its status. */
static inline janus_status ended(struct jrt_task *task)
{
    uint32_t park = jrt_load_acquire(&task->park); /* acquire: pairs with [park-wake]. */
    jrt_invariant("task-park", (park & JRT_PARK_MASK) == JRT_AWAKE);
    jrt_store_relaxed(&task->wait, (uint8_t)JRT_WAIT_NONE); /* relaxed: for those who ask. */
    return (janus_status) - (int)(park >> 8);
}

/* What the task that goes on does first, [task-finish]. */
static inline int go_on(struct jrt_worker *worker)
{
    struct jrt_strand *strand = worker->strand;
    struct jrt_task   *current = worker->current;
    jrt_finish        *finish = strand->finish;
    if (finish == NULL) return JANUS_OK;
    strand->finish = NULL;
    return finish(worker, current, ended(current));
}

static int arrive_and_go_on(struct jrt_worker *worker)
{
    (void)jrt_worker_arrive(worker);
    return go_on(worker);
}

/* What the switch calls there. */
JRT_BETWEEN_STACKS static int arrive(void *argument)
{
    struct jrt_worker *worker = argument;
    jrt_sanitizer_arrive(&worker->entered_context->sanitizer, &worker->left_context->sanitizer);
    return arrive_and_go_on(worker);
}

/* The same after going straight to another task, with nothing that was put aside. */
static inline void arrive_straight(struct jrt_worker *worker)
{
    const struct jrt_strand *strand = worker->strand;
    struct jrt_task         *current = worker->current;
    worker->thread->watch.stack = strand->stack;
    jrt_task_move(current, JANUS_TASK_RUNNING);
    jrt_fuel_set(strand->fuel); /* [purse-fuel] */
}

static int arrive_yielded(struct jrt_worker *worker)
{
    arrive_straight(worker);
    if (jrt_unlikely(worker->trace != NULL)) jrt_note_switch(worker, worker->left_task);
    submit_yielded(worker, worker->left_task);
    return go_on(worker);
}

static int arrive_parked(struct jrt_worker *worker)
{
    arrive_straight(worker);
    if (jrt_unlikely(worker->trace != NULL)) jrt_note_switch(worker, NULL);
    park_arrived(worker, worker->left_task);
    return go_on(worker);
}

JRT_BETWEEN_STACKS static int arrive_from_yield(void *argument)
{
    struct jrt_worker *worker = argument;
    jrt_sanitizer_arrive(&worker->entered_context->sanitizer, &worker->left_context->sanitizer);
    return arrive_yielded(worker);
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

/* The current strand, which has no task, is left for a loop that begins with this one. */
static void run_on(struct jrt_worker *worker, struct jrt_strand *strand, struct jrt_task *task)
{
    worker->left = JRT_LEFT_STRAND;
    (void)go_to_loop(worker, strand, task, &worker->strand->context);
    jrt_die("invariant [worker-again] broken", "an ended strand was entered", __FILE__, __LINE__);
}

/* No stack is to be had: the child has failed before it began, and its nursery says how. */
static void fail_without_stack(struct jrt_worker *worker, struct jrt_task *task)
{
    jrt_task_drop_argument(task);
    jrt_task_move(task, JANUS_TASK_RUNNING);
    task->landing.result = JANUS_NO_MEMORY;
    jrt_nursery_child_done(worker, task, NULL);
}

/* A task that needs a larger stack than this strand's. */
static void run_on_larger(struct jrt_worker *worker, struct jrt_task *task)
{
    struct jrt_strand *larger = jrt_strand_of_class(worker, task->stack_class);
    if (larger == NULL) {
        fail_without_stack(worker, task);
    } else {
        run_on(worker, larger, task);
    }
}

/* The oldest of the worker's own tasks that ran before; NULL: there is none. */
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

/* On the last strand, a task that has not begun, [strand-last]. */
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
            jrt_store_relaxed(&worker->doomed, true); /* relaxed: ours. */
        bool doomed = task == NULL && jrt_worker_doomed(worker);
        if (task == NULL && !doomed) task = jrt_pick(worker, false);
        if (task == NULL && !doomed) task = jrt_idle(worker);
        if (jrt_unlikely(task == NULL)) break;
        if (jrt_likely(!jrt_task_began(task))) {
            /* One that is cancelled needs no stack: it must not wait for memory. */
            bool fits = worker->strand->class >= task->stack_class && !worker->strand->last;
            if (jrt_likely(fits) || jrt_task_cancel_reason(task) != JANUS_CANCEL_NONE) {
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
    (void)switch_to(worker, &worker->strand->context, &worker->root); /* it gives the strand back */
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

/* With what has to be put aside and back: exceptions that are being handled, a fiber of the
 * task's own, inside of which it is that stack which is left. */
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

static inline bool has_more(const struct jrt_worker *worker)
{
    return worker->thread->current != NULL || jrt_exceptions_exist();
}

/* Straight to another task, which has been running; nothing is put aside. */
static inline __attribute__((always_inline)) janus_status go_straight(struct jrt_worker *worker,
                                                                      struct jrt_task   *task,
                                                                      struct jrt_task   *next,
                                                                      int (*then)(void *))
{
    struct jrt_strand  *strand = worker->strand;
    struct jrt_context *to = next->strand->left;
    task->strand = strand;
    task->touched = true;
    int *error_at = worker->error_at; /* [task-errno] */
    strand->fuel = jrt_fuel_get();    /* [purse-fuel] */
    strand->error = *error_at;
    *error_at = next->strand->error;
    worker->left_task = task;
    if (JRT_ASAN || JRT_TSAN) { /* arrive_from_* tell the sanitizer alone */
        worker->left_context = &strand->context;
        worker->entered_context = to;
    }
    worker->current = next;
    worker->strand = next->strand;
    jrt_count(&worker->stats.switches);
    jrt_sanitizer_leave(&strand->context.sanitizer, &to->sanitizer, false);
    return (janus_status)jrt_ctx_switch_then(&strand->context.sp, to->sp, then, worker);
}

/* Ends in the switch, so that a task that goes on does so where it called us, by a jump. */
static inline __attribute__((always_inline)) janus_status give_way(struct jrt_worker *worker,
                                                                   struct jrt_task   *task)
{
    struct jrt_task *next = jrt_pick_easily(worker);
    if (jrt_likely(next != NULL && !has_more(worker) && jrt_task_began(next))) {
        jrt_task_move(task, JANUS_TASK_READY);
        return go_straight(worker, task, next, arrive_from_yield);
    }
    if (next == NULL) next = jrt_pick(worker, true);
    /* A worker with one task that yields has time to look at the timers at every yield. */
    if (next == NULL && jrt_sched_timers_fire(worker->scheduler) != 0) {
        next = jrt_pick(worker, true);
    }
    /* Who only yields is neither searching nor asleep: now and then it looks around. */
    if (next == NULL && !worker->alone && worker->tick % STEAL_EVERY == 0) {
        next = jrt_steal(worker, worker->tick % RAID_EVERY == 0);
    }
    if (next == NULL) return JANUS_OK;
    if (jrt_unlikely(!jrt_worker_can_leave(worker))) {
        jrt_submit_again(worker, next); /* not now: no stack to go on with */
        return JANUS_OK;
    }
    jrt_task_move(task, JANUS_TASK_READY);
    if (jrt_unlikely(has_more(worker))) {
        return leave_with_more(worker, task, next, JRT_LEFT_YIELDED);
    }
    return leave(worker, task, next, JRT_LEFT_YIELDED);
}

void jrt_task_give_way(struct jrt_worker *worker, struct jrt_task *task)
{
    worker->gave_way = true;
    (void)give_way(worker, task);
    worker = jrt_worker_self(); /* [worker-again] */
    worker->gave_way = false;   /* where there was nobody to go to */
    jrt_turn_begin(worker);
}

/* In a cancelled scope of its own a task may have to give way to its children. */
__attribute__((noinline)) static janus_status yield_cancelled(struct jrt_worker *worker,
                                                              struct jrt_task   *task)
{
    if (jrt_task_only_in_scope(task)) jrt_task_give_way(worker, task);
    return jrt_task_obey(task);
}

janus_status janus_yield(void)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (jrt_unlikely(worker == NULL)) return JANUS_STATE;
    jrt_worker_stack_check(worker); /* [stack-reserve] */
    struct jrt_task *task = worker->current;
    if (jrt_unlikely(jrt_task_cancel_reason(task) != JANUS_CANCEL_NONE)) {
        return yield_cancelled(worker, task);
    }
    jrt_count(&worker->stats.yields);
    return give_way(worker, task);
}

void jrt_task_leave_to_loop(struct jrt_worker *worker, struct jrt_task *task)
{
    if (has_more(worker)) {
        (void)leave_with_more(worker, task, NULL, JRT_LEFT_YIELDED);
    } else {
        (void)leave(worker, task, NULL, JRT_LEFT_YIELDED);
    }
}

/* Waiting, [task-park]. */

void jrt_task_park_begin(struct jrt_task *task, enum jrt_wait wait)
{
    bool breakable = wait != JRT_WAIT_NURSERY && wait != JRT_WAIT_BLOCKING && wait != JRT_WAIT_RUN;
    bool can_end = breakable &&
                   /* relaxed: its own. [task-interrupt] */
                   (jrt_load_relaxed(&task->shield) == 0 || !jrt_shield_holds(task));
    jrt_store_relaxed(&task->wait, (uint8_t)wait); /* relaxed: for those who ask. */
    /* relaxed: its own. */
    uint32_t shields = breakable && !can_end ? jrt_load_relaxed(&task->shield) : 0u;
    uint32_t scoped = shields != 0 ? shields << 8 | JRT_SCOPED : 0u; /* [scope-shield] */
    /* relaxed: nobody knows yet that it waits; registering makes it visible. */
    jrt_store_relaxed(&task->park, JRT_PARKING | (can_end ? JRT_INTERRUPTIBLE : 0u) |
                                       (breakable ? JRT_BREAKABLE : 0u) | scoped);
}

bool jrt_task_park_cancel(struct jrt_task *task)
{
    uint32_t expected = jrt_load_relaxed(&task->park); /* relaxed: the cas decides. */
    do {
        if ((expected & JRT_PARK_MASK) != JRT_PARKING) return false;
        /* acq_rel: a waker's writes come before what we do next. */
    } while (!jrt_cas_acq_rel(&task->park, &expected, (uint32_t)JRT_AWAKE));
    jrt_store_relaxed(&task->wait, (uint8_t)JRT_WAIT_NONE); /* relaxed: for those who ask. */
    return true;
}

/* It leaves the CPU, unless somebody has woken it meanwhile. */
static inline bool still_parking(const struct jrt_task *task)
{
    uint32_t park = jrt_load_acquire(&task->park); /* acquire: pairs with [park-wake]. */
    return (park & JRT_PARK_MASK) == JRT_PARKING;
}

static inline struct jrt_task *pick_next(struct jrt_worker *worker)
{
    struct jrt_task *next = jrt_pick_easily(worker);
    return next != NULL ? next : jrt_pick(worker, false);
}

janus_status jrt_task_park(struct jrt_worker *worker, struct jrt_task *task)
{
    if (still_parking(task)) {
        jrt_task_move_to_wait(task, worker);
        struct jrt_task *next = pick_next(worker);
        if (jrt_unlikely(has_more(worker))) {
            (void)leave_with_more(worker, task, next, JRT_LEFT_PARKING);
        } else {
            (void)leave(worker, task, next, JRT_LEFT_PARKING);
        }
    }
    return ended(task);
}

__attribute__((noinline)) static janus_status park_plainly(struct jrt_task *task,
                                                           jrt_finish      *finish)
{
    janus_status status = jrt_task_park_cancellable(task);
    return finish(jrt_worker_self(), task, status); /* [worker-again] */
}

/* It has said that it waits, and there is no task that is easily gone to. */
__attribute__((noinline)) static janus_status leave_to_any(struct jrt_worker *worker,
                                                           struct jrt_task   *task,
                                                           struct jrt_task   *next)
{
    if (next == NULL) next = jrt_pick(worker, false);
    return leave(worker, task, next, JRT_LEFT_PARKING);
}

janus_status jrt_task_park_straight(struct jrt_worker *worker, struct jrt_task *task,
                                    jrt_finish *finish)
{
    jrt_fence_light_seq_cst(); /* seq_cst: [cancel-park]. */
    if (jrt_unlikely(jrt_exceptions_exist() || !jrt_task_is_clean(task) || !still_parking(task) ||
                     !jrt_task_move_to_wait_shortly(task, worker))) {
        return jrt_task_park_then(worker, task, finish);
    }
    worker->strand->finish = finish;
    struct jrt_task *next = jrt_pick_easily(worker);
    if (jrt_unlikely(next == NULL || !jrt_task_began(next))) {
        return leave_to_any(worker, task, next);
    }
    return go_straight(worker, task, next, arrive_from_park);
}

janus_status jrt_task_park_then(struct jrt_worker *worker, struct jrt_task *task,
                                jrt_finish *finish)
{
    /* acquire: the way up is there; relaxed: its own. */
    bool plain = jrt_load_acquire(&task->linked) && jrt_load_relaxed(&task->shield) == 0;
    if (jrt_unlikely(!plain || has_more(worker))) return park_plainly(task, finish);
    jrt_fence_light_seq_cst(); /* seq_cst: [cancel-park]. */
    bool cancelled = jrt_task_cancel_reason(task) != JANUS_CANCEL_NONE;
    if (jrt_unlikely(cancelled || !still_parking(task))) return park_plainly(task, finish);
    jrt_task_move_to_wait(task, worker);
    struct jrt_task *next = pick_next(worker);
    worker->strand->finish = finish;
    if (jrt_likely(next != NULL && jrt_task_began(next))) {
        return go_straight(worker, task, next, arrive_from_park);
    }
    return leave(worker, task, next, JRT_LEFT_PARKING);
}

void jrt_worker_main(void *argument)
{
    struct jrt_worker *worker = argument;
    struct jrt_thread *thread = jrt_thread_self();
    if (!jrt_thread_attach(thread)) {
        if (worker->seat != NULL) { /* its task runs on a worker, then */
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
    /* The loop has ended; its strand and what else is at hand go back. */
    jrt_strand_give(worker, worker->strand);
    thread->worker = NULL;
    thread->on_panic = NULL;
    thread->on_exit = NULL;
    jrt_worker_retire(worker);
}
