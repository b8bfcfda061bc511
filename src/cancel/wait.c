/* SPDX-License-Identifier: MIT */
/* Waiting: the essay is in wait.h. */
#include "cancel/wait.h"

void jrt_wait_ring(struct jrt_alarm *alarm) { (void)jrt_task_wake(alarm->subject, JANUS_DEADLINE); }

void jrt_wait_ring_sleeper(struct jrt_alarm *alarm)
{
    (void)jrt_task_wake(alarm->subject, JANUS_OK);
}

janus_status jrt_task_park_cancellable(struct jrt_task *task)
{
    jrt_task_link(task);
    if (jrt_unlikely(jrt_load_relaxed(&task->shield) > 0)) { /* relaxed: its own. */
        return jrt_shield_park(task);
    }
    jrt_fence_light_seq_cst(); /* seq_cst: [cancel-park]. */
    bool cancelled = jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE;
    if (cancelled && jrt_task_park_undo(task)) return JANUS_CANCELLED;
    return jrt_task_park(jrt_worker_self(), task);
}

janus_status jrt_wait_as_thread(_Atomic(uint32_t) *word, uint64_t deadline_ns)
{
    if (jrt_thread_self()->calls_back) deadline_ns = 0;
    while (jrt_load_acquire(word) == 0) { /* acquire: what the waker wrote. */
        if (!jrt_futex_wait_until(word, 0, deadline_ns)) return JANUS_DEADLINE;
    }
    return JANUS_OK;
}
