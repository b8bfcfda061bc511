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
 * waits. A helper always takes the first job that may run, whoever's submit woke it.
 *
 * [blocking-share]     A call that never returns keeps its thread, so no party may have them all. A
 *                      party begins a job only while it runs fewer than there are free threads: one
 *                      party alone gets half, a second one half of the rest. A party inside another
 *                      sees as free what is free to the other, minus what the other runs. Jobs
 *                      without a party see no share.
 *                      Waiting jobs form a tree of lists. A party that is skipped runs at least one
 *                      job, so a search passes over at most threads_max + firsts_max parties on
 *                      each level.
 *
 * [blocking-first]     Shares alone do not protect a party: seven parties together take 64 threads.
 *                      So a party that runs nothing may begin one job on a thread above
 *                      threads_max, and so may the jobs without a party. Parties inside a party do
 *                      this only while the outer one runs fewer than FIRSTS_INSIDE jobs: otherwise
 *                      one party would divide itself and take any number of threads. All such
 *                      threads together are at most firsts_max.
 *
 * [blocking-wait]      A job that waits takes no memory of the pool. So queue_max bounds each
 *                      outermost party for itself, and the jobs without a party together. A party
 *                      inside another waits with fewer jobs than the other has room for.
 *
 * [blocking-chain]     The end of one job can let two others begin. So a helper that takes a job
 *                      summons another helper if one more job may run and no helper is arriving.
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

enum { FIRSTS_INSIDE = 8 }; /* [blocking-first] */

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

/* One more than ever run: [blocking-spoilt]. */
static size_t places(const struct jrt_blocking *blocking)
{
    return (size_t)blocking->threads_max + blocking->firsts_max + 1;
}

janus_status jrt_blocking_init(struct jrt_blocking *blocking, unsigned threads_max,
                               unsigned firsts_max, unsigned queue_max)
{
    jrt_demand(threads_max > 0, "a pool for blocking calls without threads");
    *blocking = (struct jrt_blocking){.threads_max = threads_max,
                                      .firsts_max = firsts_max,
                                      .queue_max = queue_max,
                                      .idle_ns = default_idle_ns};
    blocking->helpers = jrt_calloc(places(blocking), sizeof blocking->helpers[0]);
    if (blocking->helpers == NULL) return JANUS_NO_MEMORY;
    if (pthread_mutex_init(&blocking->lock, NULL) != 0) {
        free(blocking->helpers);
        return JANUS_NO_MEMORY;
    }
    jrt_list_init(&blocking->all.waiting);
    return JANUS_OK;
}

/* In a simulated system: the call takes long. */
static void linger(void)
{
    _Atomic(uint32_t) never = 0;
    uint64_t          until_ns = jrt_clock_now_ns() + slow_ns;
    while (jrt_futex_wait_until(&never, 0, until_ns)) continue;
}

/* Parties, [blocking-share]. */

/* Whether one more thread may be above threads_max, [blocking-first]. */
static bool has_first(const struct jrt_blocking *blocking)
{
    return blocking->firsts < blocking->firsts_max;
}

/* Threads up to threads_max that run nothing; jobs above it do not count. */
static unsigned free_threads(const struct jrt_blocking *blocking)
{
    unsigned busy = blocking->stats.running - blocking->firsts;
    return busy < blocking->threads_max ? blocking->threads_max - busy : 0;
}

/* The first job in `party` that may run, where `available` threads are free to it; or NULL.
 * `first`: without any a party that runs nothing may begin one, [blocking-first]. */
static struct jrt_blocking_job *search(const struct jrt_blocking_party *party, unsigned available,
                                       bool first)
{
    const struct jrt_list_node *end = &party->waiting;
    for (struct jrt_list_node *at = end->next; at != end; at = at->next) {
        struct jrt_blocking_item *item = jrt_list_entry(at, struct jrt_blocking_item, link);
        if (item->is_job) {
            if (available == 0 && party->running > 0) continue;
            struct jrt_blocking_job *job = jrt_list_entry(item, struct jrt_blocking_job, item);
            job->first = available == 0;
            return job;
        }
        struct jrt_blocking_party *inside = jrt_list_entry(item, struct jrt_blocking_party, item);
        bool                       free = inside->running < available;
        if (!free && !(first && inside->running < FIRSTS_INSIDE)) continue;
        struct jrt_blocking_job *job =
            search(inside, free ? available - inside->running : 0, first);
        if (job != NULL) return job;
    }
    return NULL;
}

static struct jrt_blocking_job *next_job(struct jrt_blocking *blocking)
{
    unsigned available = free_threads(blocking);
    bool     first = has_first(blocking);
    return available > 0 || first ? search(&blocking->all, available, first) : NULL;
}

static void item_push(struct jrt_blocking_party *party, struct jrt_blocking_item *item)
{
    jrt_list_push_front(party->waiting.prev, &item->link); /* behind the last */
}

static void enqueue(struct jrt_blocking *blocking, struct jrt_blocking_job *job)
{
    struct jrt_blocking_item *item = &job->item;
    item->is_job = true;
    for (struct jrt_blocking_party *at = job->party; at != NULL; at = at->outer) {
        if (at->queued++ == 0) jrt_list_init(&at->waiting);
        if (item != NULL) item_push(at, item);
        at->item.is_job = false;
        item = at->queued == 1 ? &at->item : NULL; /* else it is on the list already */
    }
    if (item != NULL) item_push(&blocking->all, item);
    if (job->party == NULL) blocking->all.queued++;
    unsigned queued = ++blocking->stats.queued;
    if (queued > blocking->stats.queued_high) blocking->stats.queued_high = queued;
}

/* The job's parties go behind the others, or, where nothing waits in them, off the lists. */
static void dequeue(struct jrt_blocking *blocking, struct jrt_blocking_job *job)
{
    jrt_list_remove(&job->item.link);
    for (struct jrt_blocking_party *at = job->party; at != NULL; at = at->outer) {
        struct jrt_blocking_party *outer = at->outer != NULL ? at->outer : &blocking->all;
        jrt_list_remove(&at->item.link);
        if (--at->queued > 0) item_push(outer, &at->item);
    }
    if (job->party == NULL) blocking->all.queued--;
    blocking->stats.queued--;
}

static void count_running(struct jrt_blocking *blocking, const struct jrt_blocking_job *job,
                          unsigned change)
{
    if (job->first) blocking->firsts += change;
    if (job->party == NULL) blocking->all.running += change;
    for (struct jrt_blocking_party *at = job->party; at != NULL; at = at->outer) {
        at->running += change;
    }
}

/* Jobs of the party that helpers may be on their way to. */
static unsigned soon(const struct jrt_blocking *blocking, const struct jrt_blocking_party *party)
{
    return party->queued < blocking->arriving ? party->queued : blocking->arriving;
}

/* Whether a helper that is called for a new job of the party may begin it. Jobs that helpers are on
 * their way to count as running; if that is too many, one of those helpers calls another. */
static bool may_begin(const struct jrt_blocking *blocking, const struct jrt_blocking_party *party)
{
    uint64_t had = 0;
    /* No share: any thread will do. One above threads_max may be idle and have no right to it. */
    if (party == NULL) return blocking->arriving < free_threads(blocking);
    for (; party != NULL; party = party->outer) had += party->running + soon(blocking, party);
    return had < free_threads(blocking);
}

/* Whether it may on a thread above threads_max, [blocking-first]. */
static bool may_be_first(const struct jrt_blocking *blocking, const struct jrt_blocking_job *job)
{
    const struct jrt_blocking_party *party = job->party != NULL ? job->party : &blocking->all;
    if (party->running + party->queued > 0 || !has_first(blocking)) return false;
    while ((party = party->outer) != NULL) {
        if (party->running + soon(blocking, party) >= FIRSTS_INSIDE) return false;
    }
    return true;
}

static void summon(struct jrt_blocking *blocking);

/* Runs the next job; false when none may run. Drops the lock meanwhile. */
static bool run_next(struct jrt_blocking *blocking, struct jrt_blocking_helper *helper)
{
    struct jrt_blocking_job *job = next_job(blocking);
    if (job == NULL) return false;
    dequeue(blocking, job);
    count_running(blocking, job, 1);
    blocking->stats.running++;
    blocking->stats.jobs++;
    summon(blocking);
    jrt_unlock(&blocking->lock);
    job->spoilt = false;
    if (jrt_fails(JRT_FAULT_BLOCKING)) linger();
    job->run(job);
    helper->spoilt |= job->spoilt;
    jrt_lock(&blocking->lock);
    count_running(blocking, job, -1u); /* before done: the parties may be gone after it */
    jrt_unlock(&blocking->lock);
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

/* Starts one more thread. False when there are `most`, or the system refuses. */
static bool helper_start(struct jrt_blocking *blocking, unsigned most)
{
    if (blocking->stats.threads >= most) return false;
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

/* Gets another helper if one more job may run, [blocking-chain]. */
static void summon(struct jrt_blocking *blocking)
{
    if (blocking->stats.queued == 0 || blocking->arriving > 0) return;
    if (next_job(blocking) == NULL) return;
    struct jrt_blocking_helper *woken = idle_pop(blocking);
    if (woken != NULL) {
        jrt_futex_wake(&woken->woken, 1);
    } else {
        /* Without one the job waits for a busy helper. */
        (void)helper_start(blocking, blocking->threads_max + blocking->firsts_max);
    }
}

/* Whether the jobs that wait can be left to others, [blocking-spoilt]. */
static bool can_go(struct jrt_blocking *blocking, const struct jrt_blocking_helper *helper)
{
    if (!helper->spoilt) return false;
    if (blocking->stats.queued == 0) return true;
    blocking->stats.threads--; /* for its successor; it has gone before the lock is dropped */
    bool started = helper_start(blocking, blocking->threads_max + blocking->firsts_max);
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
        while (!can_go(blocking, helper) && run_next(blocking, helper)) continue;
    } while (!helper->spoilt && !blocking->stopping && idle_wait(blocking, helper));
    blocking->stats.threads--;
    helper->state = HELPER_ENDED;
    jrt_unlock(&blocking->lock);
}

/* Whether one more job may wait, [blocking-wait] and [blocking-arriving]; if not, the job says why.
 */
static bool has_room(const struct jrt_blocking *blocking, struct jrt_blocking_job *job)
{
    const struct jrt_blocking_party *party = job->party != NULL ? job->party : &blocking->all;
    uint64_t                         had = 0;
    for (; party != NULL; party = party->outer) {
        had += party->queued - soon(blocking, party);
        if (had < blocking->queue_max) continue;
        job->full = party;
        job->waiting = party->queued;
        return false;
    }
    return true;
}

/* Wakes or starts a helper for a new job. False: there is none, or the job must wait. */
static bool call_helper(struct jrt_blocking *blocking, const struct jrt_blocking_job *job,
                        struct jrt_blocking_helper **out_woken)
{
    bool first = may_be_first(blocking, job);
    *out_woken = NULL;
    if (!first && !may_begin(blocking, job->party)) return false;
    *out_woken = idle_pop(blocking);
    if (*out_woken != NULL) return true;
    return helper_start(blocking, blocking->threads_max + (first ? blocking->firsts_max : 0));
}

janus_status jrt_blocking_submit(struct jrt_blocking *blocking, struct jrt_blocking_job *job)
{
    janus_status                status = JANUS_OK;
    struct jrt_blocking_helper *woken;
    job->full = NULL;
    if (jrt_fails(JRT_FAULT_BLOCKING)) return JANUS_FULL;
    jrt_lock(&blocking->lock);
    jrt_demand(!blocking->stopping, "jrt_blocking_submit during jrt_blocking_fini");
    if (!call_helper(blocking, job, &woken)) {
        if (blocking->stats.threads == 0) {
            status = JANUS_NO_MEMORY;
        } else if (!has_room(blocking, job)) {
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
    bool queued = !jrt_list_empty(&job->item.link);
    if (queued) dequeue(blocking, job);
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
    for (size_t i = 0; i < places(blocking); i++) {
        bool started = blocking->helpers[i].state != HELPER_FREE;
        jrt_unlock(&blocking->lock);
        if (started) jrt_os_thread_join(&blocking->helpers[i].thread);
        jrt_lock(&blocking->lock);
    }
    jrt_unlock(&blocking->lock);
    pthread_mutex_destroy(&blocking->lock);
    free(blocking->helpers);
}
