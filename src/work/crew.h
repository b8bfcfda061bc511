/* SPDX-License-Identifier: MIT */
/* Workers and their threads: how many are awake, and what replaces a thread that ends. The essays
 * are in crew.c and replace.c. */
#ifndef JRT_WORK_CREW_H
#define JRT_WORK_CREW_H

#include "task/worker.h"

/* The worker's thread has begun: finds out how many workers the processors can execute. */
void jrt_crew_begin(const struct jrt_worker *worker);

/* A worker is lost: from now on every sleeper counts, [crew-lost]. */
void jrt_crew_lost(janus_scheduler *scheduler);

/* Count a sleeper that was just added to the list, or taken off it. Under idle_lock. */
void jrt_crew_sleeps(janus_scheduler *scheduler);
void jrt_crew_rises(janus_scheduler *scheduler);

/* Puts a worker that is listed behind all sleepers: others are woken first. Under idle_lock. */
void jrt_crew_wake_last(struct jrt_worker *worker);

/* Whether more workers are awake than there are processors. relaxed: a hint without idle_lock. */
static inline bool jrt_crew_is_spare(const janus_scheduler *scheduler)
{
    uint32_t beyond = jrt_load_relaxed(&scheduler->beyond); /* relaxed: a hint, as above. */
    return jrt_unlikely(beyond != 0) && jrt_load_relaxed(&scheduler->asleep) < beyond; /* relaxed */
}

/* Whether the sleepers are those that have no processor. Under idle_lock. */
static inline bool jrt_crew_is_full(const janus_scheduler *scheduler)
{
    /* relaxed, both: under the lock. */
    return jrt_load_relaxed(&scheduler->asleep) <= jrt_load_relaxed(&scheduler->beyond);
}

/* The keeper goes to sleep, under idle_lock. Returns the latest time until which the keeper may
 * sleep. */
uint64_t jrt_crew_patrol_by(janus_scheduler *scheduler, uint64_t until);

/* A worker leaves idleness, or is about to sleep: makes sure that the keeper patrols, if the crew
 * is full. */
void jrt_crew_patrol(janus_scheduler *scheduler);

/* Returns to a spare worker a task that nobody has moved for a while; NULL: none. */
struct jrt_task *jrt_crew_look(struct jrt_worker *worker);

/* Threads that end under their workers, and their successors. The essay is in replace.c. */

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
