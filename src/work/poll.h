/* SPDX-License-Identifier: MIT */
/* Workers and their sets of descriptors. The essay is in poll.c. */
#ifndef JRT_WORK_POLL_H
#define JRT_WORK_POLL_H

#include "sched/poller.h"
#include "task/worker.h"

/* The worker's set; NULL: it has none. */
static inline struct jrt_poller *jrt_poll_of(const struct jrt_worker *worker)
{
    return jrt_load_acquire(&worker->poller); /* acquire: its content. */
}

/* Looks at the worker's own set and wakes tasks. Returns whether something came. */
bool jrt_poll_look_now(struct jrt_worker *worker, struct jrt_poller *poller);

static inline bool jrt_poll_look(struct jrt_worker *worker)
{
    struct jrt_poller *poller = jrt_poll_of(worker);
    return jrt_unlikely(poller != NULL) && jrt_poll_look_now(worker, poller);
}

/* Looks, if the worker has tasks and nobody has looked for a while. */
void jrt_poll_glance_now(struct jrt_worker *worker, struct jrt_poller *poller, uint64_t now);

static inline void jrt_poll_glance(struct jrt_worker *worker, uint64_t now)
{
    struct jrt_poller *poller = jrt_poll_of(worker);
    if (jrt_unlikely(poller != NULL)) jrt_poll_glance_now(worker, poller, now);
}

/* Tells others of the tasks that a look has brought, if these are many, [poll-quiet]. */
void jrt_poll_share(struct jrt_worker *worker);

/*
 * How many rounds a worker with a set searches before it sleeps there, [poll-sleep]. A lone worker
 * has nothing to steal. If its last search found nothing, requests come seldom: it looks once.
 */
static inline int jrt_poll_rounds(const struct jrt_worker *worker, const struct jrt_poller *poller)
{
    if (!worker->alone) return 4;
    return poller->found ? 2 : 1;
}

/* Looks at the sets of workers that have not looked for a while, [poll-others]. */
bool jrt_poll_look_at_others(janus_scheduler *scheduler, const struct jrt_worker *self);

/* The worker got a task and will not look for a while. */
void jrt_poll_watch(struct jrt_worker *worker);

/* The watch has rung: looks in others' stead. Called without a lock. */
void jrt_poll_watched(janus_scheduler *scheduler);

/* Sleeps in the set until it is rung, something comes or the deadline passes; [poll-sleep]. */
void jrt_poll_sleep(struct jrt_worker *worker, struct jrt_poller *poller, uint64_t until);

/* Puts a descriptor into the set with the fewest members, and makes the set if necessary. 0, or
 * -errno. */
int jrt_poll_place(struct jrt_worker *worker, int fd, uint64_t cookie, struct jrt_poller_at *out);

/* Makes sure that the scheduler has a set. OK, UNAVAILABLE: the system refuses one, NO_MEMORY. Any
 * thread. */
janus_status jrt_poll_promise(janus_scheduler *scheduler);

/* Whether tasks wait for descriptors, and something can come. All workers sleep; [poll-stuck]. */
bool jrt_poll_can_come(const janus_scheduler *scheduler);

/* Frees the set of a worker that is being closed. */
void jrt_poll_close(struct jrt_worker *worker);

#endif
