/* SPDX-License-Identifier: MIT */
/*
 * Idle workers: which search, which sleep, which are woken.
 *
 * A worker without work first searches: a few rounds of stealing with growing pauses, some 100 us
 * in all. Then it sleeps on a word of its own, without a timeout. So an idle scheduler makes no
 * system call at all. A thread that queues a task wakes one sleeper, unless a worker searches.
 * That searcher will find the task. The last searcher that stops because it found a task wakes the
 * next sleeper.
 *
 * [idle-submit]  A submitter queues a task, passes a light fence, and then reads `idlers`.
 *
 * [idle-sleep]  A worker counts itself as sleeping and no longer as searching, passes a heavy
 *   fence, and then looks at every queue once more. This mirrors [idle-submit]: whichever comes
 *   second sees the other. The fences are the asymmetric pair, so that queueing, the frequent
 *   side, pays nothing. models/park_wake.pml tries all orders. models/shelf_feed.pml tries those
 *   of tasks that are in no queue while they move.
 *
 * [idle-doze]  A theft costs thief and victim some 200 ns together. The record's cache lines move
 *   there and back, a locked instruction counts the task's end, and both workers lose their
 *   rhythm. Where tasks are shorter, a second worker makes all of them slower. So thieves learn.
 *   - The thief times the tasks it stole until they have run. After a few short steals in a row,
 *     each found at once, the thief dozes before it searches again. It dozes 2 us, doubled up to
 *     64, until a steal is worth it or nothing is found at once. Then it raids, for a few tasks
 *     only.
 *   - A dozing thief counts neither as searching nor as asleep, so spawners neither feed nor wake
 *     anybody. To all others it is a worker that runs a task for that long.
 *   - An injected task ends the doze at once. Tasks that ran before, and tasks of other lanes, end
 *     it after some 4 us, if none like them has left a queue meanwhile. The thief looks after
 *     timers as often.
 *   - So a task is late by at most 64 us, while the thief has a CPU. Usually it is a new task of
 *     the NORMAL lane, behind short ones, on a worker that then runs something long.
 *   - Work that divides itself is not short: a stolen task's children are part of its time. In a
 *     world nobody dozes, because no time passes while tasks run.
 *
 * One sleeper, the keeper, sleeps only until the next timer. Arming an earlier timer wakes it.
 *
 * When the last worker goes to sleep, it looks for a deadlock (deadlock.c). In a deadlock no timer
 * is armed, no helper thread runs a blocking call, and no plain thread can act on a nursery.
 *
 * Locks: idle_lock. Under it, code only looks at deques, counters and the timers' own data.
 */
#include "task/task.h"
#include "task/upcalls.h"
#include "task/worker.h"
#include "work/poll.h"
#include "work/replace.h"
#include "work/seat.h"
#include "work/work.h"

enum {
    SEARCH_ROUNDS = 8,
    FIRST_PAUSE = 8, /* relaxes; doubled every round */
    LOOK_EVERY = 16, /* relaxes in a pause */
    FIRST_RAID = 3,  /* round; earlier rounds wait to be fed, which is cheaper */
    RAID_EVERY = 64, /* searches; each such search raids at once */
    SOON = 4,        /* rounds; a task found before was waiting for the thief */
    SHORT_MAX = JRT_SHORT_STEALS + 5,
};

static const uint64_t worth_ns = 250; /* a task at least this long is worth stealing */
static const uint64_t doze_ns = 2000; /* after JRT_SHORT_STEALS; doubled for each more, to 64 us */
static const uint64_t glance_ns = 4000;
static const uint64_t wishes_ns = 1000000;
static const uint64_t lost_ns = 10000000; /* the sets of lost workers, [poll-others] */

/* Takes a sleeper off the list, under idle_lock. NULL: nobody sleeps. */
static struct jrt_worker *take_sleeper(janus_scheduler *scheduler)
{
    struct jrt_worker *worker = scheduler->sleepers;
    if (worker == NULL) return NULL;
    scheduler->sleepers = worker->next_sleeper;
    scheduler->epoch += 2;
    /* relaxed: under the lock. For [idle-submit] it is a hint. */
    jrt_fetch_sub_relaxed(&scheduler->idlers, JRT_SLEEPER);
    if (scheduler->keeper == worker) scheduler->keeper = NULL;
    /* release: the sleeper sees the queued task. */
    jrt_store_release(&worker->signal, 1u);
    return worker;
}

/* Ends the sleep of a worker whose signal is set. `in_set`: as read under the lock. */
static void end_sleep(struct jrt_worker *worker, bool in_set)
{
    if (jrt_unlikely(in_set)) {
        jrt_net()->set_ring(&jrt_poll_of(worker)->set); /* [poll-sleep] */
    } else {
        jrt_futex_wake(&worker->signal, 1);
    }
}

static void wake_one(janus_scheduler *scheduler)
{
    jrt_lock(&scheduler->idle_lock);
    struct jrt_worker *worker = take_sleeper(scheduler);
    bool               in_set = worker != NULL && worker->in_set;
    jrt_unlock(&scheduler->idle_lock);
    if (worker != NULL) end_sleep(worker, in_set);
}

void jrt_idle_notify(janus_scheduler *scheduler)
{
    jrt_fence_light_seq_cst();                              /* seq_cst: [idle-submit]. */
    uint64_t idlers = jrt_load_relaxed(&scheduler->idlers); /* relaxed: after the fence. */
    if (jrt_sleeping(idlers) != 0 && jrt_searching(idlers) == 0) wake_one(scheduler);
}

void jrt_idle_feed(struct jrt_worker *worker)
{
    janus_scheduler *scheduler = worker->scheduler;
    if (!scheduler->stealing) return; /* the worker's own tasks are for nobody else */
    if (jrt_publish(worker)) {
        jrt_fetch_add_relaxed(&scheduler->fed, 1u); /* relaxed: a hint, see pause_a_while. */
    }
    /* For sleepers, and for a searcher whose last look came while the tasks were neither on the
     * shelf nor on the deque. */
    jrt_idle_notify(scheduler);
}

void jrt_outside_less(janus_scheduler *scheduler)
{
    /* relaxed: the fence in notify follows. */
    if (jrt_fetch_sub_relaxed(&scheduler->outside, 1u) != 1) return;
    if (scheduler->deadlock_check) jrt_idle_notify(scheduler);
}

void jrt_idle_wake_all(janus_scheduler *scheduler)
{
    jrt_lock(&scheduler->idle_lock);
    struct jrt_worker *worker;
    /* All under one lock: a woken worker may lie down again before the next is woken. */
    while ((worker = take_sleeper(scheduler)) != NULL) end_sleep(worker, worker->in_set);
    jrt_unlock(&scheduler->idle_lock);
}

void jrt_idle_wake_keeper(janus_scheduler *scheduler)
{
    jrt_lock(&scheduler->idle_lock);
    struct jrt_worker *keeper = scheduler->keeper;
    bool               in_set = keeper != NULL && keeper->in_set;
    if (keeper != NULL) jrt_store_release(&keeper->signal, 2u); /* release: the new timer. */
    jrt_unlock(&scheduler->idle_lock);
    if (keeper != NULL) end_sleep(keeper, in_set);
}

void jrt_idle_wake_up(struct jrt_worker *worker)
{
    jrt_lock(&worker->scheduler->idle_lock);
    bool in_set = worker->in_set;
    jrt_store_release(&worker->signal, 2u); /* release: what it is to see. */
    jrt_unlock(&worker->scheduler->idle_lock);
    end_sleep(worker, in_set);
}

static struct jrt_task *steal(struct jrt_worker *worker, bool raid)
{
    struct jrt_task *task = jrt_steal(worker, raid);
    if (task != NULL && !jrt_task_began(task)) {
        worker->stolen = 1 + (uint32_t)jrt_shelf_size(&worker->fresh_shelf);
    }
    return task;
}

static struct jrt_task *look(struct jrt_worker *worker, bool raid)
{
    jrt_sched_timers_fire(worker->scheduler);
    /* After a sleep that brought tasks the set was just looked at. */
    if (worker->lanes == 0 && jrt_poll_look(worker)) jrt_poll_share(worker);
    struct jrt_task *task = jrt_pick(worker, false);
    if (task == NULL) task = steal(worker, raid);
    /* What others have not looked at: its tasks come here. */
    if (task == NULL && raid && jrt_poll_look_at_others(worker->scheduler, worker)) {
        task = jrt_pick(worker, false);
    }
    return task;
}

/* Pauses, unless a worker feeds tasks meanwhile. */
static void pause_a_while(janus_scheduler *scheduler, int relaxes)
{
    uint32_t fed = jrt_load_relaxed(&scheduler->fed); /* relaxed, all: hints. */
    for (int i = 0; i < relaxes; i++) {
        jrt_cpu_relax();
        if (i % LOOK_EVERY != 0) continue;
        if (jrt_load_relaxed(&scheduler->fed) != fed) return;    /* relaxed: as above. */
        if (jrt_load_relaxed(&scheduler->injected) != 0) return; /* relaxed: as above. */
    }
}

/* Times the tasks that were stolen in this round of the search. Does not read the clock where that
 * would delay a lone task. */
static void time_steal(struct jrt_worker *worker, int round)
{
    if (round >= SOON || worker->scheduler->world != NULL)
        worker->stolen = worker->short_steals = 0;
    if (worker->stolen != 0) worker->stolen_ns = jrt_clock_now_ns();
}

void jrt_idle_judge(struct jrt_worker *worker)
{
    if (jrt_clock_now_ns() - worker->stolen_ns >= worker->stolen * worth_ns) {
        worker->short_steals = 0;
    } else if (worker->short_steals < SHORT_MAX) {
        worker->short_steals++;
    }
    worker->stolen = 0;
}

/* Whether a task waits that its worker does not run soon: since the last look, no task that ran
 * before has left a queue. Between two looks a task that yielded goes on. */
static bool somebody_waits(const janus_scheduler *scheduler, uint64_t *left_before)
{
    bool     some = false;
    uint64_t left = 0;
    for (uint32_t i = 0; i < scheduler->worker_count; i++) {
        const struct jrt_worker *worker = &scheduler->workers[i];
        left += jrt_load_relaxed(&worker->again_shelf.oldest); /* relaxed, both: hints. */
        for (unsigned lane = 0; lane < JRT_LANES; lane++) {
            left += jrt_load_relaxed(&worker->again[lane].top); /* relaxed: as above. */
            some |= jrt_count_again(worker, lane) > 0;
            some |= lane != JRT_LANE_NORMAL && jrt_count_fresh(worker, lane) > 0;
        }
    }
    bool same = left == *left_before;
    *left_before = left;
    return some && same;
}

/* Dozes, and then raids. The thief is not fed first: that would make a worker give away the task
 * that spawns, if that task has just given way. NULL: nothing was found, or there is no time to
 * doze. */
static struct jrt_task *doze(struct jrt_worker *worker)
{
    janus_scheduler *scheduler = worker->scheduler;
    if (worker->stolen != 0) jrt_idle_judge(worker);
    if (jrt_likely(worker->short_steals < JRT_SHORT_STEALS)) return NULL;
    jrt_debug_invariant("idle-doze", scheduler->world == NULL && worker->short_steals <= SHORT_MAX);
    uint64_t now = jrt_clock_now_ns();
    uint64_t until = now + (doze_ns << (worker->short_steals - JRT_SHORT_STEALS));
    uint64_t glance = now + glance_ns;
    uint64_t left = 0; /* nothing has waited yet */
    for (; now < until; now = jrt_clock_now_ns()) {
        for (int i = 0; i < LOOK_EVERY; i++) jrt_cpu_relax();
        if (jrt_load_relaxed(&scheduler->injected) != 0) return NULL; /* relaxed: a hint. */
        if (now < glance) continue;
        glance = now + glance_ns;
        jrt_sched_timers_fire(scheduler);
        if (somebody_waits(scheduler, &left)) return NULL;
        jrt_thread_yield(); /* to a worker that has no CPU of its own */
    }
    struct jrt_task *task = steal(worker, true);
    if (task != NULL) time_steal(worker, 0);
    return task;
}

static struct jrt_task *search(struct jrt_worker *worker)
{
    bool simulated = worker->scheduler->world != NULL; /* in a world, others go on during a pause */
    int  last = simulated ? FIRST_RAID + 2 : SEARCH_ROUNDS;
    struct jrt_poller *poller = simulated ? NULL : jrt_poll_of(worker);
    bool               woken = worker->lanes != 0; /* by what the sleep in its set brought */
    if (poller != NULL) last = jrt_poll_rounds(worker, poller);
    /* A worker that finds a task in each first round would never raid. Then a task on the shelf of
     * a worker that computes without a call would wait. */
    bool raids = ++worker->searches % RAID_EVERY == 0;
    for (int round = simulated ? FIRST_RAID : 0; round < last; round++) {
        struct jrt_task *task = look(worker, raids || round >= FIRST_RAID);
        if (task != NULL) {
            time_steal(worker, round);
            if (poller != NULL && !woken) poller->found = true;
            return task;
        }
        if (simulated) {
            jrt_thread_yield();
        } else if (poller == NULL || round + 1 < last) { /* the sleep in a set looks at once */
            pause_a_while(worker->scheduler, FIRST_PAUSE << round);
        }
    }
    worker->short_steals = 0;
    if (poller != NULL) poller->found = false;
    return NULL;
}

/* Adds the worker to the sleepers. */
static void lie_down(struct jrt_worker *worker)
{
    janus_scheduler *scheduler = worker->scheduler;
    jrt_store_relaxed(&worker->signal, 0u); /* relaxed: nobody wakes it before it is listed. */
    jrt_lock(&scheduler->idle_lock);
    worker->next_sleeper = scheduler->sleepers;
    scheduler->sleepers = worker;
    jrt_fetch_add_relaxed(&scheduler->idlers, JRT_SLEEPER); /* relaxed: the heavy fence follows. */
    jrt_unlock(&scheduler->idle_lock);
}

/* Takes the worker off the sleepers. False: another thread has already woken it. */
static bool get_up(struct jrt_worker *worker)
{
    janus_scheduler *scheduler = worker->scheduler;
    bool             listed = false;
    jrt_lock(&scheduler->idle_lock);
    for (struct jrt_worker **at = &scheduler->sleepers; *at != NULL; at = &(*at)->next_sleeper) {
        if (*at != worker) continue;
        *at = worker->next_sleeper;
        scheduler->epoch += 2;
        jrt_fetch_sub_relaxed(&scheduler->idlers, JRT_SLEEPER); /* relaxed: as in wake_one. */
        listed = true;
        break;
    }
    /* In either case: a worker woken just before it fell asleep may have become the keeper
     * since. */
    if (scheduler->keeper == worker) scheduler->keeper = NULL;
    worker->in_set = false;
    jrt_unlock(&scheduler->idle_lock);
    return listed;
}

uint32_t jrt_idle_stuck(janus_scheduler *scheduler)
{
    if (!scheduler->deadlock_check) return 0;
    jrt_lock(&scheduler->idle_lock);
    /* relaxed, all: under the lock or after the heavy fence. The breaker of the deadlock checks a
     * false alarm again. */
    uint32_t lost = jrt_load_acquire(&scheduler->lost); /* acquire: their tasks are elsewhere. */
    bool     stuck =
        /* relaxed, both: as above. */
        jrt_sleeping(jrt_load_relaxed(&scheduler->idlers)) + lost == scheduler->worker_count &&
        jrt_load_relaxed(&scheduler->timer_next) == JRT_NEVER && /* relaxed: as above. */
        jrt_load_relaxed(&scheduler->outside) == 0 &&            /* relaxed: as above. */
        jrt_load_relaxed(&scheduler->blocking_calls) == 0 &&     /* relaxed: as above. */
        !jrt_poll_can_come(scheduler);                           /* all workers sleep */
    if (stuck) jrt_fence_heavy_seq_cst();                        /* seq_cst: [idle-sleep]. */
    for (uint32_t i = 0; i < scheduler->worker_count && stuck; i++) {
        stuck = !jrt_work_for(&scheduler->workers[i]);
    }
    uint32_t epoch = scheduler->epoch;
    jrt_unlock(&scheduler->idle_lock);
    return stuck ? epoch | 1u : 0;
}

/* Whether this worker is the first of all that find the same deadlock. */
static bool may_tell(janus_scheduler *scheduler, uint32_t epoch)
{
    bool stuck = jrt_idle_stuck(scheduler) == epoch;
    jrt_lock(&scheduler->idle_lock);
    bool first = stuck && scheduler->told != epoch;
    if (first) scheduler->told = epoch;
    jrt_unlock(&scheduler->idle_lock);
    return first;
}

/* A worker that computes without a call does not report children that ended on it before, and a
 * spawn may wait for their room, [limit-wish]. So one sleeper looks now and then. */
static uint64_t look_again_by(const janus_scheduler *scheduler, uint64_t until)
{
    /* relaxed, both: nobody sleeps in the set of a lost worker. */
    if (jrt_unlikely(jrt_load_relaxed(&scheduler->lost) != 0) &&
        jrt_load_relaxed(&scheduler->polls)) { /* relaxed: as above. */
        uint64_t soon = jrt_clock_now_ns() + lost_ns;
        if (soon < until) until = soon;
    }
    /* relaxed, both: a spawn that begins to wait wakes the keeper. */
    if (jrt_likely(jrt_load_relaxed(&scheduler->wishes) == 0)) return until;
    uint64_t idlers = jrt_load_relaxed(&scheduler->idlers); /* relaxed: as above. */
    if (scheduler->world != NULL || jrt_sleeping(idlers) == scheduler->worker_count) return until;
    uint64_t by = jrt_clock_now_ns() + wishes_ns;
    return by < until ? by : until;
}

/* Sleeps until another thread wakes it or, as the keeper, until the next timer. */
static void sleep_now(struct jrt_worker *worker)
{
    janus_scheduler *scheduler = worker->scheduler;
    uint64_t         until = JRT_NEVER;
    if (worker->audit != NULL) (void)jrt_audit_flush(worker->audit); /* without room: later */
    jrt_worker_trim(worker); /* it is listed: a later request wakes it */
    jrt_lock(&scheduler->idle_lock);
    if (scheduler->keeper == NULL) {
        scheduler->keeper = worker;
        /* relaxed: a thread that arms an earlier timer takes the lock later and finds this
         * keeper. */
        until = look_again_by(scheduler, jrt_load_relaxed(&scheduler->timer_next));
    }
    struct jrt_poller *poller = jrt_poll_of(worker);
    /* relaxed: under the lock, [poll-sleep]. */
    worker->in_set = poller != NULL && jrt_load_relaxed(&worker->signal) == 0;
    jrt_unlock(&scheduler->idle_lock);
    jrt_count(&worker->stats.parks);
    if (poller != NULL) {
        jrt_poll_sleep(worker, poller, until);
    }
    while (poller == NULL && jrt_load_acquire(&worker->signal) == 0) { /* acquire: wake_one. */
        if (!jrt_futex_wait_until(&worker->signal, 0, until)) break;
    }
    worker->picked_ns = jrt_clock_now_ns(); /* the sleep is no turn, [queue-pace] */
}

static bool must_end(struct jrt_worker *worker)
{
    /* acquire: pairs with the store in jrt_workers_end. */
    return jrt_load_acquire(&worker->scheduler->stopping) || jrt_worker_doomed(worker);
}

struct jrt_task *jrt_idle(struct jrt_worker *worker)
{
    janus_scheduler *scheduler = worker->scheduler;
    if (jrt_unlikely(worker->seat != NULL)) return jrt_seat_idle(worker);
    struct jrt_task *raided = doze(worker);
    if (raided != NULL) return raided;
    for (;;) {
        /* relaxed: a hint to submitters. */
        jrt_fetch_add_relaxed(&scheduler->idlers, (uint64_t)1);
        struct jrt_task *task = search(worker);
        if (task == NULL) lie_down(worker);
        /* seq_cst: not to be seen before lying down; [idle-sleep]. */
        uint32_t searchers = jrt_searching(jrt_fetch_sub_seq_cst(&scheduler->idlers, (uint64_t)1));
        if (task != NULL) {
            /* More tasks may be where this was found. */
            if (searchers == 1) jrt_idle_notify(scheduler);
            bool polls = jrt_load_relaxed(&scheduler->polls); /* relaxed: a hint. */
            if (jrt_unlikely(polls && !worker->alone)) jrt_poll_watch(worker);
            /* The keeper may sleep as long as if no worker computed; see look_again_by. */
            bool wished = jrt_load_relaxed(&scheduler->wishes) != 0; /* relaxed: a hint. */
            if (jrt_unlikely(wished) && scheduler->world == NULL) jrt_idle_wake_keeper(scheduler);
            return task;
        }
        jrt_fence_heavy_seq_cst(); /* seq_cst: [idle-sleep]. */
        if (jrt_work_for(worker)) {
            (void)get_up(worker);
            continue;
        }
        if (must_end(worker)) {
            (void)get_up(worker);
            return NULL;
        }
        uint32_t epoch = jrt_idle_stuck(scheduler);
        if (epoch != 0 && jrt_upcalls.anybody_waits(scheduler) && may_tell(scheduler, epoch) &&
            jrt_upcalls.break_deadlock(scheduler)) {
            (void)get_up(worker);
            continue;
        }
        sleep_now(worker);
        (void)get_up(worker);
        if (must_end(worker)) return NULL;
    }
}
