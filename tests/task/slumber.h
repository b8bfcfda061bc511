/* SPDX-License-Identifier: MIT */
/* What tests of deadlocks share: a scheduler that sleeps and is not stuck. */
#ifndef JANUSRT_TESTS_TASK_SLUMBER_H
#define JANUSRT_TESTS_TASK_SLUMBER_H

#include "town.h"

#include "task/worker.h"

#include <sched.h>

/*
 * On a thread that is no worker: waits until all workers sleep, and so have looked for a deadlock
 * or are about to, and so many count as waiting for somebody outside, be they tasks or threads.
 */
static inline void slumber_until(janus_scheduler *scheduler, uint32_t outside)
{
    uint64_t limit = janus_now_ns() + 20000 * town_ms;
    while (jrt_sleeping(atomic_load(&scheduler->idlers)) !=
               janus_scheduler_worker_count(scheduler) ||
           atomic_load(&scheduler->outside) != outside) {
        CHECK(janus_now_ns() < limit);
        sched_yield();
    }
    if (outside > 0) CHECK_EQ(jrt_idle_stuck(scheduler), 0);
}

#endif
