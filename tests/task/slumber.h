/* SPDX-License-Identifier: MIT */
/* Helper for tests of deadlocks: a scheduler that sleeps and is not stuck. */
#ifndef JANUSRT_TESTS_TASK_SLUMBER_H
#define JANUSRT_TESTS_TASK_SLUMBER_H

#include "rig.h"
#include "task/worker.h"
#include "work/work.h"

#include <sched.h>

/*
 * Waits, on a thread that is no worker, until all workers sleep. Then they have looked for a
 * deadlock or are about to. `outside` tasks or threads must count as waiting for an outside
 * thread.
 */
static inline void slumber_until(janus_scheduler *scheduler, uint32_t outside)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    while (atomic_load(&scheduler->asleep) != janus_scheduler_worker_count(scheduler) ||
           atomic_load(&scheduler->outside) != outside) {
        CHECK(janus_now_ns() < limit);
        sched_yield();
    }
    if (outside > 0) CHECK_EQ(jrt_idle_stuck(scheduler), 0);
}

#endif
