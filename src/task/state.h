/* SPDX-License-Identifier: MIT */
/*
 * The state of a task, for those who ask: every change of it goes through these two. Nothing is
 * decided by it; who may run a task is decided by the park word and the queues.
 */
#ifndef JRT_TASK_STATE_H
#define JRT_TASK_STATE_H

#include "fiber/fuel.h"
#include "plat/seam.h"
#include "task/note.h"

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

/* The coarse clock in units that fit the record: 52 days until it is ambiguous. */
#define JRT_SINCE_NS (UINT64_C(1) << 20)

static inline uint32_t jrt_since_now(void)
{
    return (uint32_t)(jrt_clock_coarse_ns() / JRT_SINCE_NS) | 1u; /* 0 is never */
}

/* How many waits of a worker's have the time of one look, and how many ops a task may have used
 * since it went on, [peek-time]. */
enum { JRT_SINCE_WAITS = 16, JRT_SINCE_OPS = 64 };

/* The same to BLOCKED or BUDGET_EXHAUSTED, when the task is about to leave the CPU: since when, and
 * from where. */
static inline void jrt_task_move_to_wait(struct jrt_task *task, struct jrt_worker *worker)
{
    bool exhausted = jrt_load_relaxed(&task->wait) == JRT_WAIT_BUDGET; /* relaxed: its own. */
    janus_task_state to = exhausted ? JANUS_TASK_BUDGET_EXHAUSTED : JANUS_TASK_BLOCKED;
    if (JRT_DEBUG) jrt_task_check_move(task, to);
    if (jrt_unlikely(worker->trace != NULL)) jrt_note_park(worker, task);
    worker->since = jrt_since_now();
    worker->until_clock = JRT_SINCE_WAITS;
    jrt_store_relaxed(&task->since, worker->since);            /* relaxed, both: see below. */
    jrt_store_relaxed(&task->worker, (uint16_t)worker->index); /* relaxed: as above. */
    /* release: who sees that it is blocked sees since when, [peek-time]. */
    jrt_store_release(&task->state, (uint8_t)to);
}

/* The same to BLOCKED with the time of the last look; false: that is too long ago. */
static inline bool jrt_task_move_to_wait_shortly(struct jrt_task *task, struct jrt_worker *worker)
{
    uint64_t used = (uint64_t)(worker->strand->fuel - jrt_fuel_get());
    if (jrt_unlikely(used > JRT_SINCE_OPS || worker->until_clock <= 1)) return false;
    worker->until_clock--;
    if (JRT_DEBUG) jrt_task_check_move(task, JANUS_TASK_BLOCKED);
    jrt_store_relaxed(&task->since, worker->since);            /* relaxed, both: see below. */
    jrt_store_relaxed(&task->worker, (uint16_t)worker->index); /* relaxed: as above. */
    /* release: as above. */
    jrt_store_release(&task->state, (uint8_t)JANUS_TASK_BLOCKED);
    return true;
}

#endif
