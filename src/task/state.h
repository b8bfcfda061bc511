/* SPDX-License-Identifier: MIT */
/*
 * The state of a task, for readers. Every change of it goes through these two functions. The state
 * decides nothing: the park word and the queues decide which worker may run a task.
 */
#ifndef JRT_TASK_STATE_H
#define JRT_TASK_STATE_H

#include "fiber/fuel.h"
#include "plat/seam.h"
#include "task/note.h"

/* Whether a task may go from one state to another: [task-moves]. */
bool jrt_task_may_move(janus_task_state from, janus_task_state to);

/* Debug builds: aborts on an illegal transition or a caller that does not own the task. Calls
 * on_move. */
void jrt_task_check_move(const struct jrt_task *task, janus_task_state to);

static inline void jrt_task_move(struct jrt_task *task, janus_task_state to)
{
    if (JRT_DEBUG) jrt_task_check_move(task, to);
    /* relaxed: only for readers. The queues order it for the worker that runs the task. */
    jrt_store_relaxed(&task->state, (uint8_t)to);
}

/* The coarse clock in units that fit the record: ambiguous only after 52 days. */
#define JRT_SINCE_NS (UINT64_C(1) << 20)

static inline uint32_t jrt_since_now(void)
{
    return (uint32_t)(jrt_clock_coarse_ns() / JRT_SINCE_NS) | 1u; /* 0 means never */
}

/* The number of a worker's waits that share one clock reading, and of ops that a task may have used
 * since it went on, [peek-time]. */
enum { JRT_SINCE_WAITS = 16, JRT_SINCE_OPS = 64 };

/* Moves a task that is about to leave the CPU to BLOCKED or BUDGET_EXHAUSTED. Notes the time and
 * the worker. */
static inline void jrt_task_move_to_wait(struct jrt_task *task, struct jrt_worker *worker)
{
    bool exhausted = jrt_load_relaxed(&task->wait) == JRT_WAIT_BUDGET; /* relaxed: its own. */
    janus_task_state to = exhausted ? JANUS_TASK_STATE_BUDGET_EXHAUSTED : JANUS_TASK_STATE_BLOCKED;
    if (JRT_DEBUG) jrt_task_check_move(task, to);
    if (jrt_unlikely(worker->trace != NULL)) jrt_note_park(worker, task);
    worker->since = jrt_since_now();
    worker->until_clock = JRT_SINCE_WAITS;
    jrt_store_relaxed(&task->since, worker->since);            /* relaxed, both: see below. */
    jrt_store_relaxed(&task->worker, (uint16_t)worker->index); /* relaxed: as above. */
    /* release: a reader that sees it blocked sees since when, [peek-time]. */
    jrt_store_release(&task->state, (uint8_t)to);
}

/* Moves a task to BLOCKED with the time of the last look. False: that look is too old. */
static inline bool jrt_task_move_to_wait_fast(struct jrt_task *task, struct jrt_worker *worker)
{
    uint64_t used = (uint64_t)(worker->strand->fuel - jrt_fuel_get());
    if (jrt_unlikely(used > JRT_SINCE_OPS || worker->until_clock <= 1)) return false;
    jrt_debug_invariant("peek-time", worker->until_clock <= JRT_SINCE_WAITS && worker->since != 0);
    worker->until_clock--;
    if (JRT_DEBUG) jrt_task_check_move(task, JANUS_TASK_STATE_BLOCKED);
    jrt_store_relaxed(&task->since, worker->since);            /* relaxed, both: see below. */
    jrt_store_relaxed(&task->worker, (uint16_t)worker->index); /* relaxed: as above. */
    /* release: as above. */
    jrt_store_release(&task->state, (uint8_t)JANUS_TASK_STATE_BLOCKED);
    return true;
}

#endif
