/* SPDX-License-Identifier: MIT */
/* Switches straight from one task to another that has run before, for yields and waits. */
#ifndef JRT_WORK_STRAIGHT_H
#define JRT_WORK_STRAIGHT_H

#include "fiber/exception.h"
#include "fiber/fuel.h"
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

#endif
