/* SPDX-License-Identifier: MIT */
/*
 * Leaving the CPU: the pieces that calls which yield or park end in. First come the switches
 * straight from one task to another that has run before. The essay is in leave.c, what is done on
 * the other side in arrive.c.
 */
#ifndef JRT_WORK_LEAVE_H
#define JRT_WORK_LEAVE_H

#include "fiber/exception.h"
#include "fiber/fuel.h"
#include "stack/sanitizer.h"
#include "task/state.h"
#include "work/work.h"

/* Queues a task that yielded: it is ready, but others come first. */
static inline void jrt_submit_yielded(struct jrt_worker *worker, struct jrt_task *task)
{
    if (jrt_unlikely(worker->gave_way)) {
        worker->gave_way = false;
        jrt_submit_served(worker, task);
    } else {
        jrt_submit_again(worker, task);
    }
}

/* The status of a wait that has ended. */
static inline janus_status jrt_park_ended(struct jrt_task *task)
{
    uint32_t park = jrt_load_acquire(&task->park); /* acquire: pairs with [park-wake]. */
    jrt_invariant("task-park", (park & JRT_PARK_MASK) == JRT_AWAKE);
    jrt_store_relaxed(&task->wait, (uint8_t)JRT_WAIT_NONE); /* relaxed: for dumps. */
    return (janus_status) - (int)(park >> 8);
}

/* Does the first work of the task that goes on, [task-finish]. */
static inline int jrt_go_on(struct jrt_worker *worker)
{
    struct jrt_strand *strand = worker->strand;
    struct jrt_task   *current = worker->current;
    jrt_finish        *finish = strand->finish;
    if (finish == NULL) return JANUS_OK;
    strand->finish = NULL;
    return finish(worker, current, jrt_park_ended(current));
}

/* Arrives after a switch straight to another task, when nothing was put aside. */
static inline void jrt_arrive_fast(struct jrt_worker *worker)
{
    worker->thread->watch.stack = worker->strand->stack;
}

/* Whether a task that leaves must put something aside: exceptions, or a fiber of its own. */
static inline bool jrt_worker_has_more(const struct jrt_worker *worker)
{
    return worker->thread->current != NULL || jrt_exceptions_exist();
}

/* Switches straight to another task, which has run before. Nothing is put aside. */
static inline __attribute__((always_inline)) janus_status jrt_go_fast(struct jrt_worker *worker,
                                                                      struct jrt_task   *task,
                                                                      struct jrt_task   *next,
                                                                      int (*then)(void *))
{
    struct jrt_strand  *strand = worker->strand;
    struct jrt_strand  *entered = next->strand;
    struct jrt_context *to = entered->left;
    int                *error_at = worker->error_at; /* [task-errno] */
    task->strand = strand;
    task->dirty = true;
    strand->fuel = jrt_fuel_get(); /* [purse-fuel] */
    jrt_debug_invariant("fuel-sign", entered->fuel >= 0);
    jrt_fuel_set(entered->fuel);
    strand->error = *error_at;
    *error_at = entered->error;
    jrt_task_move(next, JANUS_TASK_STATE_RUNNING);
    worker->left_task = task;
    if (JRT_ASAN || JRT_TSAN) { /* arrive_from_* only inform the sanitizer */
        worker->left_context = &strand->context;
        worker->entered_context = to;
    }
    worker->current = next;
    worker->strand = entered;
    jrt_count(&worker->stats.switches);
    jrt_sanitizer_leave(&strand->context.sanitizer, &to->sanitizer, false);
    return (janus_status)jrt_ctx_switch_then(&strand->context.sp, to->sp, then, worker);
}

/* A switch calls one of these on the entered strand. The first serves all; the others serve a task
 * that ran before, after another task yielded or parked. They return what the call there does. */
int jrt_arrive(void *worker);
int jrt_arrive_from_yield(void *worker);
int jrt_arrive_from_park(void *worker);
int jrt_arrive_plain(void *worker); /* from a yield, on a PLAIN worker */

/* On the strand that overflowed, whose task still runs: [rescue-late]. */
void jrt_arrive_from_rescue(void);

static inline __attribute__((always_inline)) janus_status jrt_switch_to(struct jrt_worker  *worker,
                                                                        struct jrt_context *from,
                                                                        struct jrt_context *to)
{
    worker->left_context = from;
    worker->entered_context = to;
    jrt_count(&worker->stats.switches);
    jrt_sanitizer_leave(&from->sanitizer, &to->sanitizer, worker->left == JRT_LEFT_STRAND);
    return (janus_status)jrt_ctx_switch_then(&from->sp, to->sp, jrt_arrive, worker);
}

/* Goes on in a loop on `strand`, with `task` as the first thing to do. */
janus_status jrt_go_to_loop(struct jrt_worker *worker, struct jrt_strand *strand,
                            struct jrt_task *task, struct jrt_context *from);

/* Goes on with a task that has been running. */
static inline __attribute__((always_inline)) janus_status jrt_go_to_task(struct jrt_worker  *worker,
                                                                         struct jrt_task    *task,
                                                                         struct jrt_context *from)
{
    struct jrt_strand *strand = task->strand;
    worker->current = task;
    worker->strand = strand;
    return jrt_switch_to(worker, from, strand->left);
}

/* Takes the current task off the CPU, for `next` or, where that is NULL or new, a loop. */
static inline __attribute__((always_inline)) janus_status jrt_leave(struct jrt_worker *worker,
                                                                    struct jrt_task   *task,
                                                                    struct jrt_task   *next,
                                                                    enum jrt_left      how)
{
    struct jrt_strand *strand = worker->strand;
    task->strand = strand;
    task->dirty = true;
    strand->fuel = jrt_fuel_get(); /* [purse-fuel] */
    strand->error = *worker->error_at;
    worker->left = how;
    worker->left_task = task;
    if (next != NULL && jrt_task_began(next)) return jrt_go_to_task(worker, next, strand->left);
    return jrt_go_to_loop(worker, jrt_strand_take(worker), next, strand->left);
}

/* The same with what has to be put aside and back. */
janus_status jrt_leave_with_more(struct jrt_worker *worker, struct jrt_task *task,
                                 struct jrt_task *next, enum jrt_left how);

/* Yields to `next`; NULL: the easy pick found no task. */
janus_status jrt_give_way_to(struct jrt_worker *worker, struct jrt_task *task,
                             struct jrt_task *next);

/* Ends in the switch, so that the task continues in its caller by a jump. */
static inline __attribute__((always_inline)) janus_status jrt_give_way(struct jrt_worker *worker,
                                                                       struct jrt_task   *task)
{
    struct jrt_task *next = jrt_pick_fast(worker, !jrt_fences_are_light());
    if (jrt_likely(next != NULL && !jrt_worker_has_more(worker) && jrt_task_began(next))) {
        jrt_task_move(task, JANUS_TASK_STATE_READY);
        return jrt_go_fast(worker, task, next, jrt_arrive_from_yield);
    }
    return jrt_give_way_to(worker, task, next);
}

#endif
