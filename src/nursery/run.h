/* SPDX-License-Identifier: MIT */
/*
 * Running a task: its entry is called, on the strand that is there, and how the call ended is what
 * comes of the task. The essay is in ending.c; the loop that runs tasks is in loop.c.
 */
#ifndef JRT_NURSERY_RUN_H
#define JRT_NURSERY_RUN_H

#include "cancel/cancel.h"
#include "fiber/exception.h"
#include "fiber/fuel.h"
#include "means/purse.h"
#include "task/state.h"
#include "work/limit.h"
#include "work/work.h"

/* How a task's call ended. */
enum jrt_ending {
    JRT_ENDED_RETURNED = 0,
    JRT_ENDED_PANICKED = JRT_ARRIVED_PANICKED,
    JRT_ENDED_OVERFLOWED = JRT_ARRIVED_OVERFLOWED,
    JRT_ENDED_UNWOUND = 16,
    JRT_ENDED_EXHAUSTED = 17,
    JRT_ENDED_NO_MEMORY = 19, /* for its books, [purse-none] */
    JRT_ENDED_RESCUED = 18,   /* a panic that the rescue strand has handled, [ending-open] */
};

/*
 * Goes right after jrt_ctx_call, in the same function and before any other call. If the task has
 * left a nursery open, `how` becomes JRT_ENDED_RESCUED. It is a macro because a function would
 * write on the stack, [ending-open].
 */
#define JRT_TASK_LEFT_OPEN(task, how)                                                              \
    do {                                                                                           \
        if (jrt_unlikely((task)->innermost != NULL && (how) == JRT_ENDED_RETURNED)) {              \
            void **rescue_ = JRT_CTX_OWN_WORD(offsetof(struct jrt_thread, rescue));                \
            if (rescue_ == NULL) jrt_die("out of memory", "no stack", __FILE__, __LINE__);         \
            (how) = jrt_ctx_switch(&(task)->landing.sp, *rescue_, JRT_ENDED_RESCUED);              \
        }                                                                                          \
    } while (0)

/* janus_panic calls this in a task. In ending.c. */
void jrt_task_on_panic(const char *message);

/* The rare cases of jrt_task_run: a task that was cancelled before it started, and a call that did
 * not end in the plainest way. They return the worker. */
struct jrt_worker *jrt_task_skip(struct jrt_worker *worker, struct jrt_task *task,
                                 struct jrt_task *below);
struct jrt_worker *jrt_task_ran_slow(struct jrt_task *task, int how, struct jrt_task *owner,
                                     int64_t below);

/* Calls a task's entry where exceptions may exist: puts those that the thread is handling aside. */
int jrt_task_call_aside(struct jrt_task *task);

/* Ends a child for which nothing else is to be done. The caller counts it off. */
static inline void jrt_task_over_here(struct jrt_worker *worker, struct jrt_task *task)
{
    /* Otherwise nobody sees it: the record is free. */
    if (JRT_DEBUG) jrt_task_move(task, JANUS_TASK_STATE_COMPLETED);
    jrt_task_free_here(worker, task);
    jrt_quota_give(&worker->quota);
}

/* It has run, for n's owner or NULL, whose fuel `below` was, and ended so; `traced` is a constant.
 */
static inline __attribute__((always_inline)) struct jrt_worker *jrt_task_ran(struct jrt_task *task,
                                                                             struct jrt_nursery *n,
                                                                             struct jrt_task *owner,
                                                                             int how, int64_t below,
                                                                             bool traced)
{
    bool plain = jrt_task_ended_fast(task, how);
    if (jrt_unlikely(owner == NULL || !plain || jrt_nursery_is_apart(n))) {
        return jrt_task_ran_slow(task, how, owner, below);
    }
    struct jrt_worker *worker = jrt_worker_self(); /* [worker-again] */
    worker->current = owner;
    if (traced && worker->trace != NULL) jrt_note_complete(worker, task);
    jrt_task_over_here(worker, task);
    jrt_debug_invariant("nursery-count", n->local > 0);
    n->local--;
    jrt_fuel_set(below);
    return worker;
}

/* Checks the canary after a call on a watched strand, and returns how the call
 * counts, [strand-canary]. */
int jrt_task_look_below(struct jrt_task *task, const struct jrt_strand *strand, int how);

/* Calls a task's entry, cancelled or not. `traced` is a constant; if true, the strand may be
 * watched, too. */
static inline __attribute__((always_inline)) struct jrt_worker *jrt_task_run_anyway(
    struct jrt_worker *worker, struct jrt_task *task, struct jrt_nursery *n, struct jrt_task *owner,
    bool traced)
{
    int64_t below = jrt_fuel_get(); /* the owner's, [purse-fuel] */
    worker->current = task;
    jrt_count(&worker->stats.tasks_executed);
    jrt_task_move(task, JANUS_TASK_STATE_RUNNING);
    jrt_fuel_set(jrt_likely(task->any_flag == 0) ? worker->slice
                                                 : jrt_purse_first_fuel(worker, task));
    jrt_debug_invariant("fuel-sign", jrt_fuel_get() >= 0);
    if (traced && worker->trace != NULL) jrt_note_start(worker, task, owner);
    const struct jrt_strand *strand = worker->strand;
    int                      how = 0;
    if (jrt_unlikely(jrt_exceptions_exist())) {
        how = jrt_task_call_aside(task);
    } else {
        how = jrt_ctx_call(&task->landing, task->entry, task->argument);
        JRT_TASK_LEFT_OPEN(task, how);
    }
    if (traced && strand->watched) how = jrt_task_look_below(task, strand, how);
    return jrt_task_ran(task, n, owner, how, below, traced);
}

/* Both halves of jrt_task_run. */
static inline __attribute__((always_inline)) struct jrt_worker *jrt_task_run_as(
    struct jrt_worker *worker, struct jrt_task *task, struct jrt_nursery *n, struct jrt_task *owner,
    bool traced)
{
    jrt_debug_invariant("strand-canary", traced || !worker->strand->watched);
    if (jrt_unlikely(jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE)) {
        return jrt_task_skip(worker, task, owner);
    }
    return jrt_task_run_anyway(worker, task, n, owner, traced);
}

/* Runs a task where there is a trace, or a canary. In ending.c. */
struct jrt_worker *jrt_task_run_traced(struct jrt_worker *worker, struct jrt_task *task,
                                       struct jrt_nursery *n, struct jrt_task *owner);

/*
 * Runs a task that never ran, here and now, on the current strand. The task is a child of n. It
 * runs for n's owner, or for the loop, if `owner` is NULL. Returns the worker, which may be
 * another one.
 */
static inline __attribute__((always_inline)) struct jrt_worker *jrt_task_run(
    struct jrt_worker *worker, struct jrt_task *task, struct jrt_nursery *n, struct jrt_task *owner)
{
    if (jrt_unlikely(worker->trace != NULL || worker->strand->watched)) {
        return jrt_task_run_traced(worker, task, n, owner);
    }
    return jrt_task_run_as(worker, task, n, owner, false);
}

/* What lies at the bottom of every strand: the worker's loop. In loop.c. */
void jrt_loop_main(void *strand, int message);

/* The thread of a worker. In loop.c. */
void jrt_worker_main(void *worker);

/* What runs on a rescue strand. In ending.c. */
void jrt_rescue_main(void *strand, int message);

#endif
