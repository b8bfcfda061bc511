/* SPDX-License-Identifier: MIT */
/*
 * Helper threads for calls that block: a worker that waited for a disk itself would take all its
 * fibers along. Bounded in threads and in jobs that wait. The essay is in blocking.c.
 */
#ifndef JRT_SCHED_BLOCKING_H
#define JRT_SCHED_BLOCKING_H

#include "base/list.h"

#include <janusrt/status.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* On a party's list: a job, or a party inside that has jobs. */
struct jrt_blocking_item {
    struct jrt_list_node link; /* alone when it is on no list */
    bool                 is_job;
};

/* Whose jobs they are: each party gets a share of the threads and of the queue, [blocking-share].
 * All zero but for `outer`; it exists at least until its last job's `done` is called. */
struct jrt_blocking_party {
    struct jrt_blocking_party *outer;   /* around it; NULL: the pool itself */
    struct jrt_blocking_item   item;    /* on the outer party's list while anything waits here */
    struct jrt_list_node       waiting; /* items, next first; valid while queued > 0 */
    unsigned                   running; /* jobs of this party and of all inside it */
    unsigned                   queued;
};

/* Embedded in what waits for it. From submit on it is the pool's, until `done` is called, which
 * gets it back (and may free it), or until it was withdrawn. */
struct jrt_blocking_job {
    void (*run)(struct jrt_blocking_job *job);  /* may block; on a helper thread */
    void (*done)(struct jrt_blocking_job *job); /* right after it, on the same thread; short */
    struct jrt_blocking_party       *party;     /* NULL: the pool itself, which has no share */
    const struct jrt_blocking_party *full; /* set by submit, FULL: whose queue is; NULL: nobody's */
    unsigned                         waiting; /* and how many jobs wait there */
    bool                             first;   /* the pool's: on a thread above threads_max */
    struct jrt_blocking_item         item;    /* the pool's */
    bool spoilt; /* set by run: its thread is to end, [exit-spoilt] in fiber/exit.c */
};

struct jrt_blocking_stats {
    unsigned threads;      /* alive */
    unsigned running;      /* of them, in a job's run or done */
    unsigned queued;       /* jobs that no thread has begun */
    unsigned threads_high; /* the most there ever were */
    unsigned queued_high;
    uint64_t jobs; /* begun since the beginning */
};

struct jrt_blocking_helper; /* one helper thread, blocking.c */

struct jrt_blocking {
    unsigned threads_max;
    unsigned firsts_max; /* threads above it, [blocking-first] */
    unsigned queue_max;  /* for each outermost party, [blocking-wait] */
    uint64_t idle_ns; /* a thread without work ends after it; may be set before the first submit */

    pthread_mutex_t             lock;    /* guards what follows, and all parties */
    struct jrt_blocking_party   all;     /* the root; it counts jobs without a party */
    struct jrt_blocking_helper *helpers; /* owned; most never started */
    struct jrt_blocking_helper *idle;    /* who sleeps, last come first */
    unsigned                    firsts;  /* jobs that run on threads above threads_max */
    unsigned                  arriving;  /* started or woken, and has not looked at the queue yet */
    bool                      stopping;
    struct jrt_blocking_stats stats;
};

/* At most `threads_max` threads, at least 1, `firsts_max` more for parties that run nothing, and
 * for each party `queue_max` jobs that wait. Starts no thread. OK, NO_MEMORY. */
janus_status jrt_blocking_init(struct jrt_blocking *blocking, unsigned threads_max,
                               unsigned firsts_max, unsigned queue_max);

/* Waits for the jobs that run, ends all threads. Nothing is queued, and nobody submits. */
void jrt_blocking_fini(struct jrt_blocking *blocking);

/*
 * Gives a job to the pool. Jobs of one party begin in the order they came; parties take turns.
 * Waits for nothing but the lock; starts a thread where that is needed and allowed (some 15 us).
 *
 * OK; FULL: the party has its share of threads and queue_max of its jobs wait; NO_MEMORY: there is
 * no thread and none can be started. On any error only job->full and job->waiting are written.
 */
janus_status jrt_blocking_submit(struct jrt_blocking *blocking, struct jrt_blocking_job *job);

/* Takes back a job that no thread has begun: true, and neither run nor done will be called. False:
 * it was begun, `done` is or will be called. The caller knows that the job still exists: it
 * was submitted, and its done, if it frees it, cannot have come that far. */
bool jrt_blocking_withdraw(struct jrt_blocking *blocking, struct jrt_blocking_job *job);

/* The books at one moment. */
struct jrt_blocking_stats jrt_blocking_stats_read(struct jrt_blocking *blocking);

#endif
