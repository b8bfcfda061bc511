/* SPDX-License-Identifier: MIT */
/*
 * Helper threads for calls that block. A worker that waited for a disk itself would stop all its
 * tasks. The number of threads and the number of waiting jobs are bounded. The essay is in
 * blocking.c.
 */
#ifndef JRT_SCHED_BLOCKING_H
#define JRT_SCHED_BLOCKING_H

#include "base/list.h"

#include <janusrt/status.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* An entry in a party's list: a job, or an inner party that has jobs. */
struct jrt_blocking_item {
    struct jrt_list_node link; /* linked to itself when it is on no list */
    bool                 is_job;
};

/* The owner of jobs. Each party gets a share of the threads and of the queue, [blocking-share]. All
 * zero except `outer`. It exists at least until its last job's `done` is called. */
struct jrt_blocking_party {
    struct jrt_blocking_party *outer;   /* the party around it; NULL: the pool itself */
    struct jrt_blocking_item   item;    /* in the outer party's list while anything waits here */
    struct jrt_list_node       waiting; /* items, next first; valid while queued > 0 */
    unsigned                   running; /* jobs of this party and its inner parties */
    unsigned                   queued;
};

/* Embedded in what waits for it. From submit on, the pool owns it. `done` gets it back (and may
 * free it), and so does a withdrawal. */
struct jrt_blocking_job {
    void (*run)(struct jrt_blocking_job *job);  /* may block; on a helper thread */
    void (*done)(struct jrt_blocking_job *job); /* right after run, on the same thread; short */
    struct jrt_blocking_party       *party;     /* NULL: the pool itself, which has no share */
    const struct jrt_blocking_party *full;      /* out, if FULL: the party with the full queue, or
                                                 * NULL */
    unsigned                         waiting;   /* out: how many jobs wait there */
    bool                             first;     /* the pool's: on a thread above max_threads */
    struct jrt_blocking_item         item;      /* the pool's */
    bool spoilt; /* set by run: its thread must end, [exit-spoilt] in fiber/exit.c */
};

struct jrt_blocking_stats {
    unsigned threads;      /* alive */
    unsigned running;      /* of these, in a job's run or done */
    unsigned queued;       /* jobs not begun */
    unsigned threads_high; /* the maximum so far */
    unsigned queued_high;
    uint64_t jobs; /* jobs begun so far */
};

struct jrt_blocking_helper; /* one helper thread, blocking.c */

struct jrt_blocking {
    unsigned max_threads;
    unsigned firsts_max; /* threads beyond it, [blocking-first] */
    unsigned queue_max;  /* for each outermost party, [blocking-wait] */
    /* May be set before the first submit. */
    uint64_t    idle_ns;     /* an idle thread ends after this time */
    const char *thread_name; /* constant */
    bool        for_ever;    /* there is no fini: ended threads are detached, not joined */

    pthread_mutex_t             lock;     /* guards what follows, and all parties */
    struct jrt_blocking_party   all;      /* the root; it counts jobs without a party */
    struct jrt_blocking_helper *helpers;  /* owned; most of them never started */
    struct jrt_blocking_helper *idle;     /* sleeping helpers, the last one first */
    unsigned                    firsts;   /* jobs that run on threads above max_threads */
    unsigned                    arriving; /* started or woken, but not yet at the queue */
    bool                        stopping;
    struct jrt_blocking_stats   stats;
};

/* At most `max_threads` threads, at least 1, and `firsts_max` more for parties that run nothing. At
 * most `queue_max` waiting jobs for each party. Starts no thread. OK, NO_MEMORY. */
janus_status jrt_blocking_init(struct jrt_blocking *blocking, unsigned max_threads,
                               unsigned firsts_max, unsigned queue_max);

/* Waits for the running jobs and ends all threads. Nothing may be queued, and no thread may
 * submit. */
void jrt_blocking_fini(struct jrt_blocking *blocking);

/*
 * Gives a job to the pool. Jobs of one party begin in order, and parties take turns. Waits only for
 * the lock. If needed and allowed, starts a thread (about 15 us).
 *
 * FULL: the party has its share of threads, and queue_max of its jobs wait. NO_MEMORY: there is no
 * thread, and none can be started. On an error it writes only job->full and job->waiting.
 */
janus_status jrt_blocking_submit(struct jrt_blocking *blocking, struct jrt_blocking_job *job);

/* Takes back a job that no thread has begun. True: neither run nor done will be called. False:
 * the job was begun, and `done` is or will be called. The caller must know that the job still
 * exists. */
bool jrt_blocking_withdraw(struct jrt_blocking *blocking, struct jrt_blocking_job *job);

/* The books at one moment. */
struct jrt_blocking_stats jrt_blocking_stats_read(struct jrt_blocking *blocking);

#endif
