/* SPDX-License-Identifier: MIT */
/* Yields: a task lets others run and goes on after them. The essay is in worker.c. */
#include "task/nursery.h"
#include "task/state.h"
#include "task/turn.h"
#include "work/straight.h"

enum { /* yields of a worker with no other task */
       STEAL_EVERY = 16,
       RAID_EVERY = 4096, /* a multiple */
};

static int arrive_yielded(struct jrt_worker *worker)
{
    jrt_arrive_fast(worker);
    if (jrt_unlikely(worker->trace != NULL)) jrt_note_switch(worker, worker->left_task);
    jrt_submit_yielded(worker, worker->left_task);
    return jrt_go_on(worker);
}

JRT_BETWEEN_STACKS static int arrive_from_yield(void *argument)
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
JRT_HOT JRT_BETWEEN_STACKS static int arrive_plain(void *argument)
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

/* Yields to `next`; NULL: the easy pick found no task. */
static janus_status give_way_to(struct jrt_worker *worker, struct jrt_task *task,
                                struct jrt_task *next)
{
    if (next == NULL) next = jrt_pick(worker, true);
    /* A worker with one yielding task has time to look at the timers at every yield. */
    if (next == NULL && jrt_sched_timers_fire(worker->scheduler) != 0) {
        next = jrt_pick(worker, true);
    }
    /* A worker whose task only yields is neither searching nor asleep: now and then it looks
     * around. */
    if (next == NULL && !worker->alone && worker->tick % STEAL_EVERY == 0) {
        next = jrt_steal(worker, worker->tick % RAID_EVERY == 0);
    }
    if (next == NULL) return JANUS_OK;
    if (jrt_unlikely(!jrt_worker_can_leave(worker))) {
        jrt_submit_again(worker, next); /* not now: there is no stack to go on with */
        return JANUS_OK;
    }
    jrt_task_move(task, JANUS_TASK_STATE_READY);
    return jrt_task_leave(worker, task, next, JRT_LEFT_YIELDED);
}

/* Ends in the switch, so that the task continues in its caller by a jump. */
static inline __attribute__((always_inline)) janus_status give_way(struct jrt_worker *worker,
                                                                   struct jrt_task   *task)
{
    struct jrt_task *next = jrt_pick_fast(worker, !jrt_fences_are_light());
    if (jrt_likely(next != NULL && !jrt_worker_has_more(worker) && jrt_task_began(next))) {
        jrt_task_move(task, JANUS_TASK_STATE_READY);
        return jrt_go_fast(worker, task, next, arrive_from_yield);
    }
    return give_way_to(worker, task, next);
}

void jrt_task_give_way(struct jrt_worker *worker, struct jrt_task *task)
{
    worker->gave_way = true;
    (void)give_way(worker, task);
    worker = jrt_worker_self(); /* [worker-again] */
    worker->gave_way = false;   /* there may have been no other task */
    jrt_turn_begin(worker);
}

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
    return give_way(worker, task);
}

/* Yields if the easy pick found no task, or a task that never ran. */
__attribute__((noinline)) static janus_status yield_to_any(struct jrt_worker *worker,
                                                           struct jrt_task   *next)
{
    return give_way_to(worker, worker->current, next);
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
    return jrt_go_fast(worker, worker->current, next, arrive_plain);
}
