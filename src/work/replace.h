/* SPDX-License-Identifier: MIT */
/* Threads that end under their workers, and those that go on. The essay is in replace.c. */
#ifndef JRT_WORK_REPLACE_H
#define JRT_WORK_REPLACE_H

#include "task/worker.h"

/* Whether this thread is to end before it looks for work again. */
static inline bool jrt_worker_doomed(struct jrt_worker *worker)
{
    return jrt_load_relaxed(&worker->doomed); /* relaxed: a flag, it comes with nothing. */
}

/* Threads that were started: how many have come, and whether each can run tasks. */
struct jrt_arrivals {
    _Atomic(uint32_t) came; /* futex */
    _Atomic(bool)     refused;
};

/* By the thread of a worker, first of all: whether it can run tasks; if not, it ends. */
void jrt_arrivals_tell(struct jrt_worker *worker, bool ready);

/* By whoever started `count` threads: waits for all. False: one of them cannot run tasks. */
bool jrt_arrivals_wait(struct jrt_arrivals *arrivals, uint32_t count);

/* The thread of a worker is being ended in the middle of a task. Does not return to there. */
void jrt_worker_on_exit(void);

/* The last thing a worker's thread does: sees to it that another goes on, unless the scheduler
 * has stopped. The worker is not touched any more. */
void jrt_worker_retire(struct jrt_worker *worker);

/* Tries again to find threads for workers that have lost theirs; now and then. */
void jrt_workers_revive(janus_scheduler *scheduler);

/* Tells the threads of the first `count` workers to end, and waits until they, and those they
 * replaced, have. */
void jrt_workers_end(janus_scheduler *scheduler, uint32_t count);

/* For tests. The thread of a worker ends when it next looks for work, or now if it sleeps. */
void jrt_worker_doom(janus_scheduler *scheduler, uint32_t index);

/* For tests. The next `count` threads that would replace one cannot be started. */
void jrt_replacements_refuse(uint32_t count);

#endif
