/* SPDX-License-Identifier: MIT */
/* Threads that end under their workers, and their successors. The essay is in replace.c. */
#ifndef JRT_WORK_REPLACE_H
#define JRT_WORK_REPLACE_H

#include "task/worker.h"

/* Whether this thread must end before it looks for work again. */
static inline bool jrt_worker_doomed(struct jrt_worker *worker)
{
    return jrt_load_relaxed(&worker->doomed); /* relaxed: a flag, nothing comes with it. */
}

/* The number of started threads that have reported, and whether each can run tasks. */
struct jrt_arrivals {
    _Atomic(uint32_t) came; /* futex */
    _Atomic(bool)     refused;
};

/* The thread of a worker first reports whether it can run tasks; if not, it ends. */
void jrt_arrivals_tell(struct jrt_worker *worker, bool ready);

/* The starter of `count` threads waits for all of them. False: one of them cannot run tasks. */
bool jrt_arrivals_wait(struct jrt_arrivals *arrivals, uint32_t count);

/* Runs when the thread of a worker is ended in the middle of a task. Does not return to the
 * task. */
void jrt_worker_on_exit(void);

/* The last call of a worker's thread: starts a successor, unless the scheduler has stopped.
 * Afterwards the thread does not touch the worker. */
void jrt_worker_retire(struct jrt_worker *worker);

/* Tries now and then to start threads for workers that have lost theirs. */
void jrt_workers_revive(janus_scheduler *scheduler);

/* Ends the threads of the first `count` workers, and waits for them and for those they replaced. */
void jrt_workers_end(janus_scheduler *scheduler, uint32_t count);

/* For tests: the thread of a worker ends when it next looks for work, or now if it sleeps. */
void jrt_worker_doom(janus_scheduler *scheduler, uint32_t index);

/* For tests: the next `count` replacement threads cannot be started. */
void jrt_replacements_refuse(uint32_t count);

#endif
