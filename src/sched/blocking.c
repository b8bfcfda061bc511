/* SPDX-License-Identifier: MIT */
/*
 * Helper threads for calls that block.
 *
 *     submit ──► queue ──► a helper: run, done ──► next job ──► nothing left: idle
 *                  │                                               │ woken by a submit
 *               withdraw                                           │ or ends after idle_ns
 *
 * A submit wakes the helper that went idle last, so that those that are too many stay idle long
 * enough to end; where none is idle it starts one, up to threads_max; where all are busy the job
 * waits. A helper always takes the oldest job, whoever's submit woke it.
 *
 * [blocking-arriving]  A woken or started helper needs time until it looks at the queue. Jobs that
 *                      such helpers are on their way to do not wait, so only queued - arriving
 *                      count towards queue_max; else a burst on an idle pool would find it full.
 *                      If a helper that was busy takes such a job first, the other finds nothing
 *                      and goes idle; or, if there is another job, the pool has room for one more.
 *
 * [blocking-idle]      A helper is on the idle list exactly while its `woken` is 0 and it sleeps
 *                      or is about to. Both change under the lock only, so a helper whose time
 *                      is up and a submit that wakes it agree on which came first.
 *
 * [blocking-spoilt]    A call that ended its thread under it (pthread_exit) was stopped on the way
 *                      out, so that its task gets to know; but the thread must end. Jobs that
 *                      wait are left to others, if there are any or one can be started; else
 *                      it does them first.
 *
 * A thread that ended is joined by whoever starts the next in its place, or by fini.
 *
 * Threads are started under the lock. It takes some 15 us, once per thread and idle time, and
 * keeps "no thread and none can be started" a plain answer, given before anything happened.
 *
 * Rejected: a thread for each call (no bound); growing while jobs wait too long, as a timer would
 * have to tell (the bound is what protects the system); one futex for all (wakes the wrong one).
 *
 * Locks: blocking->lock alone; jobs run without it. Shutdown: fini wakes all, joins all.
 */
#include "sched/blocking.h"

#include "base/assert.h"
#include "plat/seam.h"

#include <stdlib.h>

static const uint64_t default_idle_ns = 10000000000u;
static const uint64_t slow_ns = 20000000u;

enum helper_state {
    HELPER_FREE,  /* never started, or joined */
    HELPER_ALIVE, /* its thread owns it, together with the lock */
    HELPER_ENDED, /* its thread touches nothing any more and can be joined */
};

struct jrt_blocking_helper {
    struct jrt_blocking        *pool;
    struct jrt_blocking_helper *next;  /* on the idle list */
    _Atomic(uint32_t)           woken; /* futex */
    enum helper_state           state;
    bool                        spoilt; /* its own: the thread is to end, [blocking-spoilt] */
    struct jrt_os_thread        thread;
};

janus_status jrt_blocking_init(struct jrt_blocking *blocking, unsigned threads_max,
                               unsigned queue_max)
{
    jrt_demand(threads_max > 0, "a pool for blocking calls without threads");
    *blocking = (struct jrt_blocking){
        .threads_max = threads_max, .queue_max = queue_max, .idle_ns = default_idle_ns};
    /* One more than ever run: [blocking-spoilt]. */
    blocking->helpers = jrt_calloc((size_t)threads_max + 1, sizeof blocking->helpers[0]);
    if (blocking->helpers == NULL) return JANUS_NO_MEMORY;
    if (pthread_mutex_init(&blocking->lock, NULL) != 0) {
        free(blocking->helpers);
        return JANUS_NO_MEMORY;
    }
    jrt_list_init(&blocking->queue);
    return JANUS_OK;
}

/* In a simulated system: the call takes long. */
static void linger(void)
{
    _Atomic(uint32_t) never = 0;
    uint64_t          until_ns = jrt_clock_now_ns() + slow_ns;
    while (jrt_futex_wait_until(&never, 0, until_ns)) continue;
}

/* Runs the oldest job; false when there is none. Drops the lock meanwhile. */
static bool run_oldest(struct jrt_blocking *blocking, struct jrt_blocking_helper *helper)
{
    if (jrt_list_empty(&blocking->queue)) return false;
    struct jrt_blocking_job *job =
        jrt_list_entry(blocking->queue.next, struct jrt_blocking_job, link);
    jrt_list_remove(&job->link);
    blocking->stats.queued--;
    blocking->stats.running++;
    blocking->stats.jobs++;
    jrt_unlock(&blocking->lock);
    job->spoilt = false;
    if (jrt_fails(JRT_FAULT_BLOCKING)) linger();
    job->run(job);
    helper->spoilt |= job->spoilt;
    job->done(job); /* the job may be gone now */
    jrt_lock(&blocking->lock);
    blocking->stats.running--;
    return true;
}

static void idle_push(struct jrt_blocking *blocking, struct jrt_blocking_helper *helper)
{
    helper->next = blocking->idle;
    blocking->idle = helper;
    jrt_store_relaxed(&helper->woken, 0); /* relaxed: under the lock, [blocking-idle]. */
}

/* Marks the helper that went idle last as woken; the caller then wakes its futex. */
static struct jrt_blocking_helper *idle_pop(struct jrt_blocking *blocking)
{
    struct jrt_blocking_helper *helper = blocking->idle;
    if (helper == NULL) return NULL;
    blocking->idle = helper->next;
    blocking->arriving++;
    /* relaxed: under the lock; the sleeper takes the lock before it looks at anything else. */
    jrt_store_relaxed(&helper->woken, 1);
    return helper;
}

static void idle_remove(struct jrt_blocking *blocking, struct jrt_blocking_helper *helper)
{
    struct jrt_blocking_helper **at = &blocking->idle;
    while (*at != helper) {
        jrt_invariant("blocking-idle", *at != NULL);
        at = &(*at)->next;
    }
    *at = helper->next;
}

/* Sleeps until somebody wakes the helper: true; false when it was idle for too long. Drops the
 * lock meanwhile. */
static bool idle_wait(struct jrt_blocking *blocking, struct jrt_blocking_helper *helper)
{
    idle_push(blocking, helper);
    jrt_unlock(&blocking->lock);
    uint64_t deadline_ns = jrt_clock_now_ns() + blocking->idle_ns;
    bool     in_time = true;
    /* relaxed: only tells when to stop sleeping; the lock orders the rest. */
    while (in_time && jrt_load_relaxed(&helper->woken) == 0) {
        in_time = jrt_futex_wait_until(&helper->woken, 0, deadline_ns);
    }
    jrt_lock(&blocking->lock);
    /* relaxed: under the lock, [blocking-idle]; a wake-up that came after all counts. */
    if (jrt_load_relaxed(&helper->woken) != 0) return true;
    idle_remove(blocking, helper);
    return false;
}

static void helper_main(void *argument);

/* Starts one more thread. False when there are threads_max, or the system refuses. */
static bool helper_start(struct jrt_blocking *blocking)
{
    if (blocking->stats.threads >= blocking->threads_max) return false;
    struct jrt_blocking_helper *helper = blocking->helpers;
    while (helper->state == HELPER_ALIVE) helper++; /* fewer live than there are */
    if (helper->state == HELPER_ENDED) {
        jrt_os_thread_join(&helper->thread);
        helper->state = HELPER_FREE;
    }
    helper->pool = blocking;
    helper->spoilt = false;
    if (!jrt_os_thread_start(&helper->thread, helper_main, helper, "janus-blocking")) return false;
    helper->state = HELPER_ALIVE;
    blocking->arriving++;
    unsigned threads = ++blocking->stats.threads;
    if (threads > blocking->stats.threads_high) blocking->stats.threads_high = threads;
    return true;
}

/* Whether the jobs that wait can be left to others, [blocking-spoilt]. */
static bool can_go(struct jrt_blocking *blocking, const struct jrt_blocking_helper *helper)
{
    if (!helper->spoilt) return false;
    if (jrt_list_empty(&blocking->queue)) return true;
    blocking->stats.threads--; /* for its successor; it has gone before the lock is dropped */
    bool started = helper_start(blocking);
    blocking->stats.threads++;
    return started || blocking->stats.threads > 1;
}

static void helper_main(void *argument)
{
    struct jrt_blocking_helper *helper = argument;
    struct jrt_blocking        *blocking = helper->pool;
    jrt_lock(&blocking->lock);
    do {
        jrt_invariant("blocking-arriving", blocking->arriving > 0);
        blocking->arriving--;
        while (!can_go(blocking, helper) && run_oldest(blocking, helper)) continue;
    } while (!helper->spoilt && !blocking->stopping && idle_wait(blocking, helper));
    blocking->stats.threads--;
    helper->state = HELPER_ENDED;
    jrt_unlock(&blocking->lock);
}

static void enqueue(struct jrt_blocking *blocking, struct jrt_blocking_job *job)
{
    jrt_list_push_front(blocking->queue.prev, &job->link); /* behind the last */
    unsigned queued = ++blocking->stats.queued;
    if (queued > blocking->stats.queued_high) blocking->stats.queued_high = queued;
}

janus_status jrt_blocking_submit(struct jrt_blocking *blocking, struct jrt_blocking_job *job)
{
    janus_status status = JANUS_OK;
    if (jrt_fails(JRT_FAULT_BLOCKING)) return JANUS_FULL;
    jrt_lock(&blocking->lock);
    jrt_demand(!blocking->stopping, "jrt_blocking_submit during jrt_blocking_fini");
    struct jrt_blocking_helper *woken = idle_pop(blocking);
    if (woken == NULL && !helper_start(blocking)) {
        /* Jobs that nobody is on the way to, [blocking-arriving]. */
        bool room = blocking->stats.queued < blocking->arriving ||
                    blocking->stats.queued - blocking->arriving < blocking->queue_max;
        if (blocking->stats.threads == 0) {
            status = JANUS_NO_MEMORY;
        } else if (!room) {
            status = JANUS_FULL;
        }
    }
    if (status == JANUS_OK) enqueue(blocking, job);
    jrt_unlock(&blocking->lock);
    if (woken != NULL) jrt_futex_wake(&woken->woken, 1);
    return status;
}

bool jrt_blocking_withdraw(struct jrt_blocking *blocking, struct jrt_blocking_job *job)
{
    jrt_lock(&blocking->lock);
    bool queued = !jrt_list_empty(&job->link);
    if (queued) {
        jrt_list_remove(&job->link);
        blocking->stats.queued--;
    }
    jrt_unlock(&blocking->lock);
    return queued;
}

struct jrt_blocking_stats jrt_blocking_stats_read(struct jrt_blocking *blocking)
{
    jrt_lock(&blocking->lock);
    struct jrt_blocking_stats stats = blocking->stats;
    jrt_unlock(&blocking->lock);
    return stats;
}

void jrt_blocking_fini(struct jrt_blocking *blocking)
{
    jrt_lock(&blocking->lock);
    jrt_demand(blocking->stats.queued == 0, "jrt_blocking_fini while jobs wait");
    blocking->stopping = true;
    struct jrt_blocking_helper *woken;
    while ((woken = idle_pop(blocking)) != NULL) jrt_futex_wake(&woken->woken, 1);
    for (unsigned i = 0; i <= blocking->threads_max; i++) {
        bool started = blocking->helpers[i].state != HELPER_FREE;
        jrt_unlock(&blocking->lock);
        if (started) jrt_os_thread_join(&blocking->helpers[i].thread);
        jrt_lock(&blocking->lock);
    }
    jrt_unlock(&blocking->lock);
    pthread_mutex_destroy(&blocking->lock);
    free(blocking->helpers);
}
