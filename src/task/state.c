/* SPDX-License-Identifier: MIT */
/*
 * [task-moves]  The legal moves of a task's state. Row: from. Bit: to. Every other move is a bug.
 *
 *     READY      -> RUNNING           a worker took it from a queue
 *                -> CANCELLED         skipped: cancelled before it ever ran
 *     RUNNING    -> READY             it yielded
 *                -> BLOCKED           it waits
 *                -> BUDGET_EXHAUSTED  it could not pay a charge
 *                -> COMPLETED         its call has ended: returned, panicked, overflowed
 *                -> CANCELLED         its call has ended, and it obeyed a cancel
 *     BLOCKED    -> READY             a waker came
 *                -> CANCELLED
 *     EXHAUSTED  -> READY             it was recharged
 *                -> CANCELLED
 *
 *   A blocked task that is cancelled is woken, runs, cleans up and ends. The documents allow
 *   BLOCKED -> CANCELLED and EXHAUSTED -> CANCELLED, but the library does not make them.
 *
 * [task-owner]  Only the worker that has the task changes its state. That is the worker that runs
 *   it, that took it from a queue and skips it, or that arrives after the task left the CPU. The
 *   exception is the step to READY. The thread that ended the wait makes it, which may be any
 *   thread. By [task-park] it is exactly one thread, and it owns the task until the task is on a
 *   queue.
 */
#include "task/state.h"

#include "task/nursery.h"
#include "task/task.h"
#include "task/worker.h"

#include <janusrt/dump.h>
#include <stdio.h>

#define TO(state) (1u << JANUS_TASK_STATE_##state)

static const uint8_t moves[] = {
    [JANUS_TASK_STATE_READY] = TO(RUNNING) | TO(CANCELLED),
    [JANUS_TASK_STATE_RUNNING] =
        TO(READY) | TO(BLOCKED) | TO(BUDGET_EXHAUSTED) | TO(COMPLETED) | TO(CANCELLED),
    [JANUS_TASK_STATE_BLOCKED] = TO(READY) | TO(CANCELLED),
    [JANUS_TASK_STATE_BUDGET_EXHAUSTED] = TO(READY) | TO(CANCELLED),
    [JANUS_TASK_STATE_COMPLETED] = 0,
    [JANUS_TASK_STATE_CANCELLED] = 0,
};

bool jrt_task_may_move(janus_task_state from, janus_task_state to)
{
    if ((unsigned)from > JANUS_TASK_STATE_CANCELLED || (unsigned)to > JANUS_TASK_STATE_CANCELLED)
        return false;
    return moves[from] >> to & 1u;
}

static bool is_mine_to_move(const janus_scheduler *scheduler, janus_task_state from,
                            janus_task_state to)
{
    const struct jrt_worker *worker = jrt_worker_self();
    if (to == JANUS_TASK_STATE_READY && from != JANUS_TASK_STATE_RUNNING) return true;
    return worker != NULL && worker->scheduler == scheduler;
}

void jrt_task_check_move(const struct jrt_task *task, janus_task_state to)
{
    const janus_scheduler *scheduler = task->nursery->scheduler;
    /* relaxed: the caller owns the task, [task-owner]. */
    janus_task_state from = (janus_task_state)jrt_load_relaxed(&task->state);
    if (jrt_unlikely(!jrt_task_may_move(from, to))) {
        char what[64];
        snprintf(what, sizeof what, "%s -> %s", janus_task_state_name(from),
                 janus_task_state_name(to));
        jrt_die("invariant [task-moves] broken", what, __FILE__, __LINE__);
    }
    jrt_invariant("task-owner", is_mine_to_move(scheduler, from, to));
    if (jrt_unlikely(scheduler->on_move != NULL)) scheduler->on_move(task, from, to);
}

const char *janus_task_state_name(janus_task_state state)
{
    static const char *const names[] = {"ready",     "running",  "blocked", "budget exhausted",
                                        "completed", "cancelled"};
    return (unsigned)state <= JANUS_TASK_STATE_CANCELLED ? names[state] : "?";
}
