/* SPDX-License-Identifier: MIT */
/*
 * Helper threads for calls that block.
 *
 *     submit ──► queue ──► a helper: run, done ──► next job ──► nothing left: idle
 *                  │                                               │ woken by a submit
 *               withdraw                                           │ or ends after idle_ns
 *
 * A submit wakes the helper that went idle last, so that surplus helpers stay idle long enough to
 * end. If none is idle, the submit starts one, up to max_threads. If all are busy, the job waits. A
 * helper always takes the first job that may run, not the job whose submit woke it.
 *
 * [blocking-share]  a call that never returns keeps its thread, so no party may have all threads. A
 *   party begins a job only while it runs fewer jobs than there are free threads. One party alone
 *   gets half, a second one half of the rest. An inner party sees as free what is free to the outer
 *   one, minus what the outer one runs. Jobs without a party have no share.
 *   Waiting jobs form a tree of lists. A search skips a party only if it runs at least one job. So
 *   a search skips at most max_threads + firsts_max parties on each level.
 *
 * [blocking-first]  shares alone do not protect a party: seven parties together take 64 threads. So
 *   a party that runs nothing may begin one job on a thread above max_threads. The jobs without a
 *   party may do the same. Inner parties may do this only while the outer party runs fewer than
 *   FIRSTS_INSIDE jobs. Otherwise one party could divide itself and take any number of threads.
 *   There are at most firsts_max such threads.
 *
 * [blocking-wait]  a waiting job takes no memory of the pool. So queue_max bounds each outermost
 *   party separately, and the jobs without a party together. An inner party may have fewer jobs
 *   waiting than the outer one has room for.
 *
 * [blocking-chain]  the end of one job can allow two others to begin. So a helper that takes a job
 *   summons another helper if one more job may run and no helper is arriving.
 *
 * [blocking-arriving]  a woken or started helper needs time until it looks at the queue. A job that
 *   such a helper will take does not wait, so only queued - arriving counts towards queue_max.
 *   Otherwise a burst on an idle pool would find it full. If a busy helper takes such a job first,
 *   the arriving one finds nothing and goes idle. If it finds another job, the pool has room for
 *   one more.
 *
 * [blocking-idle]  a helper is on the idle list exactly while its `woken` is 0 and it sleeps or is
 *   about to. Both change only under the lock. So a helper whose time is up and a submit that wakes
 *   it agree on which came first.
 *
 * [blocking-spoilt]  a call that tried to end its thread (pthread_exit) was stopped on the way out,
 *   so that its task learns of it. But the thread must end. It leaves the waiting jobs to other
 *   helpers, or starts one. If neither is possible, it runs them first.
 *
 * The thread that starts the next helper in the same place, or fini, joins an ended thread.
 *
 * A submit starts threads under the lock. That takes about 15 us, once for each thread and idle
 * period. So "no thread, and none can be started" is a definite answer, given before anything
 * happened.
 *
 * Rejected:
 * - A thread for each call: it has no bound.
 * - Growing while jobs wait too long, by a timer: the bound is what protects the system.
 * - One futex for all: it wakes the wrong helper.
 *
 * Locks: blocking->lock alone. Jobs run without it. Shutdown: fini wakes all, joins all.
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
    HELPER_ALIVE, /* its thread and the lock own it */
    HELPER_ENDED, /* its thread touches nothing any more and can be joined */
};

struct jrt_blocking_helper {
    struct jrt_blocking        *pool;
    struct jrt_blocking_helper *next;  /* on the idle list */
    _Atomic(uint32_t)           woken; /* futex */
    enum helper_state           state;
    bool                        spoilt; /* its own: the thread must end, [blocking-spoilt] */
    struct jrt_os_thread        thread;
};

/* One more than can run: [blocking-spoilt]. */
static size_t places(const struct jrt_blocking *blocking)
{
    return (size_t)blocking->max_threads + blocking->firsts_max + 1;
}

janus_status jrt_blocking_init(struct jrt_blocking *blocking, unsigned max_threads,
                               unsigned firsts_max, unsigned queue_max)
{
    jrt_demand(max_threads > 0, "a pool for blocking calls needs at least one thread");
    *blocking = (struct jrt_blocking){.max_threads = max_threads,
                                      .firsts_max = firsts_max,
                                      .queue_max = queue_max,
                                      .idle_ns = default_idle_ns,
                                      .thread_name = "janus-blocking"};
    blocking->helpers = jrt_calloc(places(blocking), sizeof blocking->helpers[0]);
    if (blocking->helpers == NULL) return JANUS_NO_MEMORY;
    if (pthread_mutex_init(&blocking->lock, NULL) != 0) {
        free(blocking->helpers);
        return JANUS_NO_MEMORY;
    }
    jrt_list_init(&blocking->all.waiting);
    return JANUS_OK;
}

/* In a world: makes the call take long. */
static void linger(void)
{
    _Atomic(uint32_t) never = 0;
    uint64_t          until_ns = jrt_clock_now_ns() + slow_ns;
    while (jrt_futex_wait_until(&never, 0, until_ns)) continue;
}

/* Parties, [blocking-share]. */

/* Whether one more thread may exceed max_threads, [blocking-first]. */
static bool has_first(const struct jrt_blocking *blocking)
{
    return blocking->firsts < blocking->firsts_max;
}

/* How many of the first max_threads threads run nothing. Jobs above max_threads do not count. */
static unsigned free_threads(const struct jrt_blocking *blocking)
{
    unsigned busy = blocking->stats.running - blocking->firsts;
    return busy < blocking->max_threads ? blocking->max_threads - busy : 0;
}

/* The first job in `party` that may run while `available` threads are free to it, or NULL. `first`:
 * even with none free, a party that runs nothing may begin one, [blocking-first]. */
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
        item = at->queued == 1 ? &at->item : NULL; /* otherwise it is on the list already */
    }
    if (item != NULL) item_push(&blocking->all, item);
    if (job->party == NULL) blocking->all.queued++;
    unsigned queued = ++blocking->stats.queued;
    if (queued > blocking->stats.queued_high) blocking->stats.queued_high = queued;
}

/* Moves the job's parties behind the others, or off the lists if nothing waits in them. */
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

/* How many jobs of the party arriving helpers may take. */
static unsigned soon(const struct jrt_blocking *blocking, const struct jrt_blocking_party *party)
{
    return party->queued < blocking->arriving ? party->queued : blocking->arriving;
}

/* Whether a helper summoned for a new job of the party may begin it. Jobs that arriving helpers
 * will take count as running. If that is too many, one of those helpers summons another. */
static bool may_begin(const struct jrt_blocking *blocking, const struct jrt_blocking_party *party)
{
    uint64_t had = 0;
    /* No share: any thread will do. An idle thread above max_threads may not run it. */
    if (party == NULL) return blocking->arriving < free_threads(blocking);
    for (; party != NULL; party = party->outer) had += party->running + soon(blocking, party);
    return had < free_threads(blocking);
}

/* Whether the job may begin on a thread above max_threads, [blocking-first]. */
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

/* Whether the jobs below max_threads are no more than that. */
static bool stays_below(const struct jrt_blocking *blocking)
{
    return blocking->stats.running - blocking->firsts <= blocking->max_threads;
}

/* Runs the next job. False: none may run. Drops the lock meanwhile. */
static bool run_next(struct jrt_blocking *blocking, struct jrt_blocking_helper *helper)
{
    struct jrt_blocking_job *job = next_job(blocking);
    if (job == NULL) return false;
    dequeue(blocking, job);
    count_running(blocking, job, 1);
    blocking->stats.running++;
    blocking->stats.jobs++;
    jrt_debug_invariant("blocking-first", blocking->firsts <= blocking->firsts_max);
    jrt_debug_invariant("blocking-share", job->first || stays_below(blocking));
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

/* Marks the helper that went idle last as woken. The caller then wakes its futex. */
static struct jrt_blocking_helper *idle_pop(struct jrt_blocking *blocking)
{
    struct jrt_blocking_helper *helper = blocking->idle;
    if (helper == NULL) return NULL;
    blocking->idle = helper->next;
    blocking->arriving++;
    /* relaxed: under the lock. The sleeper takes the lock before it reads anything else. */
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

/* Sleeps until a submit wakes the helper: true. False: it was idle for too long. Drops the lock
 * meanwhile. */
static bool idle_wait(struct jrt_blocking *blocking, struct jrt_blocking_helper *helper)
{
    /* An arriving helper takes such a job. */
    jrt_debug_invariant("blocking-chain", blocking->arriving > 0 || next_job(blocking) == NULL);
    idle_push(blocking, helper);
    jrt_unlock(&blocking->lock);
    uint64_t deadline_ns = jrt_clock_now_ns() + blocking->idle_ns;
    bool     in_time = true;
    /* relaxed: only ends the sleep. The lock orders everything else. */
    while (in_time && jrt_load_relaxed(&helper->woken) == 0) {
        in_time = jrt_futex_wait_until(&helper->woken, 0, deadline_ns);
    }
    jrt_lock(&blocking->lock);
    /* relaxed: under the lock, [blocking-idle]. A late wake-up counts. */
    if (jrt_load_relaxed(&helper->woken) != 0) return true;
    idle_remove(blocking, helper);
    return false;
}

static void helper_main(void *argument);

/* Starts one more thread. False: there are `most`, or the system refused. */
static bool helper_start(struct jrt_blocking *blocking, unsigned most)
{
    if (blocking->stats.threads >= most) return false;
    struct jrt_blocking_helper *helper = blocking->helpers;
    while (helper->state == HELPER_ALIVE) helper++; /* one is free: fewer live than there are */
    jrt_debug_invariant("blocking-spoilt", helper < blocking->helpers + places(blocking));
    if (helper->state == HELPER_ENDED) {
        jrt_os_thread_join(&helper->thread);
        helper->state = HELPER_FREE;
    }
    helper->pool = blocking;
    helper->spoilt = false;
    if (!jrt_os_thread_start(&helper->thread, helper_main, helper, blocking->thread_name)) {
        return false;
    }
    helper->state = HELPER_ALIVE;
    blocking->arriving++;
    unsigned threads = ++blocking->stats.threads;
    if (threads > blocking->stats.threads_high) blocking->stats.threads_high = threads;
    return true;
}

/* Summons another helper if one more job may run, [blocking-chain]. */
static void summon(struct jrt_blocking *blocking)
{
    if (blocking->stats.queued == 0 || blocking->arriving > 0) return;
    if (next_job(blocking) == NULL) return;
    struct jrt_blocking_helper *woken = idle_pop(blocking);
    if (woken != NULL) {
        jrt_futex_wake(&woken->woken, 1);
    } else {
        /* If that fails, the job waits for a busy helper. */
        (void)helper_start(blocking, blocking->max_threads + blocking->firsts_max);
    }
}

/* Whether the waiting jobs can be left to other helpers, [blocking-spoilt]. */
static bool can_go(struct jrt_blocking *blocking, const struct jrt_blocking_helper *helper)
{
    if (!helper->spoilt) return false;
    if (blocking->stats.queued == 0) return true;
    blocking->stats.threads--; /* for its successor: this one ends before the lock is dropped */
    bool started = helper_start(blocking, blocking->max_threads + blocking->firsts_max);
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
    if (blocking->for_ever) {
        (void)pthread_detach(pthread_self()); /* before another thread may take its place */
        helper->state = HELPER_FREE;
    }
    jrt_unlock(&blocking->lock);
}

/* Whether one more job may wait, by [blocking-wait] and [blocking-arriving]. If not, stores the
 * reason in the job. */
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

/* Whether the jobs that wait beside this one, which waits, are no more than allowed. */
static bool waits_within(const struct jrt_blocking *blocking, const struct jrt_blocking_job *job)
{
    const struct jrt_blocking_party *party = job->party != NULL ? job->party : &blocking->all;
    while (party->outer != NULL) party = party->outer;
    return party->queued - soon(blocking, party) <= blocking->queue_max;
}

/* Wakes or starts a helper for a new job. False: the job must wait. */
static bool call_helper(struct jrt_blocking *blocking, const struct jrt_blocking_job *job,
                        struct jrt_blocking_helper **out_woken)
{
    bool first = may_be_first(blocking, job);
    *out_woken = NULL;
    if (!first && !may_begin(blocking, job->party)) return false;
    *out_woken = idle_pop(blocking);
    if (*out_woken != NULL) return true;
    return helper_start(blocking, blocking->max_threads + (first ? blocking->firsts_max : 0));
}

janus_status jrt_blocking_submit(struct jrt_blocking *blocking, struct jrt_blocking_job *job)
{
    janus_status                status = JANUS_OK;
    struct jrt_blocking_helper *woken;
    job->full = NULL;
    if (jrt_fails(JRT_FAULT_BLOCKING)) return JANUS_FULL;
    jrt_lock(&blocking->lock);
    jrt_demand(!blocking->stopping, "jrt_blocking_submit during jrt_blocking_fini");
    bool waits = !call_helper(blocking, job, &woken);
    if (waits) {
        if (blocking->stats.threads == 0) {
            status = JANUS_NO_MEMORY;
        } else if (!has_room(blocking, job)) {
            status = JANUS_FULL;
        }
    }
    if (status == JANUS_OK) {
        enqueue(blocking, job);
        jrt_debug_invariant("blocking-wait", !waits || waits_within(blocking, job));
    }
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
