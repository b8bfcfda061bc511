/* SPDX-License-Identifier: MIT */
/* What the current task can do about itself: yield, defer, ask for its id. */
#include "base/assert.h"
#include "cancel/cancel.h"
#include "means/call.h"
#include "nursery/nursery.h"
#include "plat/world.h"
#include "task/nursery.h"
#include "task/purse.h"
#include "task/state.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/leave.h"
#include "work/turn.h"
#include "work/work.h"

#include <stdlib.h>

enum {
    DEFERS_MAX = 4096, /* of one task */
    DEFERS_TOLL = 4,   /* of a search, for one toll */
};

/* In a cancelled scope of its own, a task may have to yield to its children. */
__attribute__((noinline)) static janus_status yield_cancelled(struct jrt_worker *worker,
                                                              struct jrt_task   *task)
{
    if (jrt_task_only_in_scope(task)) jrt_task_give_way(worker, task);
    return jrt_task_cancelled_or_end(task);
}

__attribute__((noinline)) static janus_status yield_slow(struct jrt_worker *worker)
{
    if (worker == NULL) return JANUS_STATE;
    jrt_worker_stack_check(worker); /* [stack-reserve] */
    struct jrt_task *task = worker->current;
    if (jrt_unlikely(jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE)) {
        return yield_cancelled(worker, task);
    }
    jrt_count(&worker->stats.yields);
    return jrt_give_way(worker, task);
}

/* Yields if the easy pick found no task, or a task that never ran. */
__attribute__((noinline)) static janus_status yield_to_any(struct jrt_worker *worker,
                                                           struct jrt_task   *next)
{
    return jrt_give_way_to(worker, worker->current, next);
}

/* The fast path switches straight to a task that has run before, without a frame of its own. */
JRT_HOT janus_status janus_yield(void)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (jrt_unlikely(worker == NULL || worker->plain != JRT_PLAIN ||
                     !jrt_worker_stack_is_fine(worker) || !jrt_task_is_clean(worker->current))) {
        return yield_slow(worker);
    }
    jrt_count(&worker->stats.yields);
    struct jrt_task *next = jrt_pick_fast(worker, false);
    if (jrt_unlikely(next == NULL || !jrt_task_began(next))) return yield_to_any(worker, next);
    jrt_task_move(worker->current, JANUS_TASK_STATE_READY);
    return jrt_go_fast(worker, worker->current, next, jrt_arrive_plain);
}

janus_status janus_defer(void (*function)(void *), void *argument)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_task *task = jrt_task_current();
    if (function == NULL) return JANUS_INVALID;
    if (task == NULL) return JANUS_STATE;
    bool counted = task->defers != NULL || task->ending; /* free defers are counted */
    if (counted) {
        struct jrt_purse *purse = jrt_purse_need(task);
        if (purse == NULL) return JANUS_NO_MEMORY;
        if (purse->defers >= DEFERS_MAX) return JANUS_FULL;
    }
    struct jrt_defer *defer = jrt_malloc(sizeof *defer);
    if (defer == NULL) return JANUS_NO_MEMORY;
    if (counted) task->purse->defers++;
    *defer = (struct jrt_defer){task->defers, function, argument};
    task->defers = defer;
    task->dirty = true;
    return JANUS_OK;
}

janus_status janus_undefer(void (*function)(void *), void *argument)
{
    jrt_stack_check(); /* [stack-reserve]; it may end the task, whose defer then runs */
    struct jrt_task *task = jrt_task_current();
    if (function == NULL) return JANUS_INVALID;
    if (task == NULL) return JANUS_STATE;
    struct jrt_defer **at = &task->defers;
    uint32_t           steps = 0;
    for (; *at != NULL && ((*at)->function != function || (*at)->argument != argument); steps++) {
        at = &(*at)->next;
    }
    jrt_turn_toll(jrt_worker_self(), steps / DEFERS_TOLL);
    struct jrt_defer *defer = *at;
    if (defer == NULL) return JANUS_NOT_FOUND;
    *at = defer->next;
    free(defer);
    if (task->purse != NULL && task->purse->defers > 0) task->purse->defers--;
    return JANUS_OK;
}

janus_task_id janus_task_current_id(void)
{
    struct jrt_task *task = jrt_task_current();
    return task != NULL ? jrt_task_id(task) : 0;
}

void **janus_task_local(void)
{
    struct jrt_task *task = jrt_task_current();
    if (task == NULL) return NULL;
    task->dirty = true; /* the caller may write there */
    return &task->local;
}
