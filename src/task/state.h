/* SPDX-License-Identifier: MIT */
/*
 * The state of a task, for those who ask: every change of it goes through jrt_task_move. Nothing
 * is decided by it; who may run a task is decided by the park word and the queues.
 */
#ifndef JRT_TASK_STATE_H
#define JRT_TASK_STATE_H

#include "plat/seam.h"
#include "task/worker.h"

/* Whether a task may go from one state to another: [task-moves]. */
bool jrt_task_may_move(janus_task_state from, janus_task_state to);

/* Debug builds: dies where a move is none or not the caller's to make, tells who watches. */
void jrt_task_check_move(const struct jrt_task *task, janus_task_state to);

static inline void jrt_task_move(struct jrt_task *task, janus_task_state to)
{
    if (JRT_DEBUG) jrt_task_check_move(task, to);
    /* relaxed: told to those who ask; the queues order it for whoever runs the task. */
    jrt_store_relaxed(&task->state, (uint8_t)to);
}

/* The task leaves the CPU to wait: when, and from where, for dumps. */
static inline void jrt_task_note_wait(struct jrt_task *task, const struct jrt_worker *worker)
{
    jrt_store_relaxed(&task->since_ns, jrt_clock_coarse_ns()); /* relaxed, both: for dumps. */
    jrt_store_relaxed(&task->worker, (uint16_t)worker->index); /* relaxed: as above. */
}

#endif
