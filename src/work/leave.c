/* SPDX-License-Identifier: MIT */
/*
 * Leaving: the way from one strand to another.
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
 */
#include "work/leave.h"

#include "base/assert.h"
#include "fiber/context.h"
#include "fiber/ctx.h"
#include "fiber/exception.h"
#include "fiber/fiber.h"
#include "fiber/thread.h"
#include "task/state.h"
#include "task/task.h"
#include "task/upcalls.h"
#include "task/worker.h"
#include "work/turn.h"
#include "work/work.h"

janus_status jrt_go_to_loop(struct jrt_worker *worker, struct jrt_strand *strand,
                            struct jrt_task *task, struct jrt_context *from)
{
    if (jrt_unlikely(worker->uncounted != 0)) jrt_crowd_count(worker);
    worker->handoff = task;
    worker->current = NULL;
    worker->strand = strand;
    strand->context.sp = jrt_ctx_make(strand, jrt_upcalls.loop, strand);
    return jrt_switch_to(worker, from, &strand->context);
}

/* Leaves with more to save and restore: exceptions that are being handled, and a fiber of the
 * task's own. Inside such a fiber, that is the stack that is left. */
janus_status jrt_leave_with_more(struct jrt_worker *worker, struct jrt_task *task,
                                 struct jrt_task *next, enum jrt_left how)
{
    struct jrt_thread    *thread = worker->thread;
    struct jrt_watch      watch = thread->watch;
    struct janus_fiber   *fiber = thread->current;
    struct jrt_strand    *strand = worker->strand;
    struct jrt_exceptions mine = {0};
    if (jrt_exceptions_exist()) mine = jrt_exceptions_take();
    if (fiber != NULL) strand->left = &fiber->context;
    thread->current = NULL;
    (void)jrt_leave(worker, task, next, how);
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
        return jrt_leave_with_more(worker, task, next, how);
    }
    return jrt_leave(worker, task, next, how);
}

enum { /* yields of a worker with no other task */
       STEAL_EVERY = 16,
       RAID_EVERY = 4096, /* a multiple */
};

/* Yields to `next`; NULL: the easy pick found no task. */
janus_status jrt_give_way_to(struct jrt_worker *worker, struct jrt_task *task,
                             struct jrt_task *next)
{
    bool looks = worker->turns.each && worker->until_others == 1; /* the pick looks at timers */
    if (next == NULL) next = jrt_pick(worker, true);
    /* A worker with one yielding task has time to look at the timers at every yield. While it
     * measures turns it does not pick twice for that: a task that stands aside would pay two rounds
     * for one turn, [aside-owe]. */
    if (next == NULL && !looks && jrt_sched_timers_fire(worker->scheduler) != 0) {
        next = jrt_pick(worker, true);
    }
    /* A worker whose task only yields is neither searching nor asleep: now and then it looks
     * around. */
    if (next == NULL && !worker->alone && ++worker->lone_yields % STEAL_EVERY == 0) {
        next = jrt_steal(worker, worker->lone_yields % RAID_EVERY == 0);
    }
    if (next == NULL) return JANUS_OK;
    if (jrt_unlikely(!jrt_worker_can_leave(worker))) {
        jrt_submit_again(worker, next); /* not now: there is no stack to go on with */
        return JANUS_OK;
    }
    jrt_task_move(task, JANUS_TASK_STATE_READY);
    return jrt_task_leave(worker, task, next, JRT_LEFT_YIELDED);
}

void jrt_task_give_way(struct jrt_worker *worker, struct jrt_task *task)
{
    worker->gave_way = true;
    (void)jrt_give_way(worker, task);
    worker = jrt_worker_self(); /* [worker-again] */
    worker->gave_way = false;   /* there may have been no other task */
    jrt_turn_begin(worker);
}
