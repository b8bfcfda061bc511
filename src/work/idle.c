/* SPDX-License-Identifier: MIT */
/*
 * Idle workers: which search, which sleep, which are woken.
 *
 * A worker without work first searches: a few rounds of stealing with growing pauses, some 100 us
 * in all. Then it sleeps on a word of its own, without a timeout. So an idle scheduler makes no
 * system call at all. A thread that queues a task wakes one sleeper, unless a worker searches.
 * That searcher will find the task. The last searcher that stops because it found a task wakes the
 * next sleeper. Where there are more workers than processors, crew.c says which sleep.
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
 *   - A worker that retreated from a herd dozes, too, [herd-gather]. New NORMAL tasks that wait at
 *     two glances end that doze.
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
#include "work/crew.h"
#include "work/herd.h"
#include "work/limit.h"
#include "work/poll.h"
#include "work/seat.h"
#include "work/work.h"

enum {
    SEARCH_ROUNDS = 8,
    FIRST_PAUSE = 8, /* relaxes; doubled every round */
    FEED_PAUSE = 32, /* relaxes before a raid */
    LOOK_EVERY = 16, /* relaxes in a doze */
    FIRST_RAID = 3,  /* round; earlier rounds wait to be fed, which is cheaper */
    RAID_EVERY = 64, /* searches; each such search raids at once */
    SOON = 4,        /* rounds; a task found before was waiting for the thief */
    SHORT_MAX = JRT_SHORT_STEALS + 5,
};

static const uint64_t worth_ns = 250; /* a task at least this long is worth stealing */
static const uint64_t doze_ns = 2000; /* after JRT_SHORT_STEALS; doubled for each more, to 64 us */
static const uint64_t glance_ns = 4000;
static const uint64_t wishes_ns = 1000000;
static const uint64_t return_ns = 200000; /* [depot-later] */
static const uint64_t lost_ns = 10000000; /* the sets of lost workers, [poll-others] */

/* The worker is no longer the keeper, nor is it to become the keeper; under idle_lock. */
static void resign(struct jrt_worker *worker)
{
    janus_scheduler *scheduler = worker->scheduler;
    if (scheduler->keeper != worker && scheduler->keeper != NULL) return;
    scheduler->keeper = NULL;
    scheduler->patrols = false;
}

/* Takes a sleeper off the list, under idle_lock. NULL: nobody sleeps. */
static struct jrt_worker *take_sleeper(janus_scheduler *scheduler)
{
    struct jrt_worker *worker = scheduler->sleepers;
    if (worker == NULL) return NULL;
    scheduler->sleepers = worker->next_sleeper;
    jrt_crew_rises(scheduler);
    resign(worker);
    /* release: the sleeper sees the queued task. */
    jrt_store_release(&worker->signal, 1u);
    return worker;
}

void jrt_idle_rouse(struct jrt_worker *worker, bool in_set)
{
    if (jrt_unlikely(in_set)) {
        jrt_net()->set_ring(&jrt_poll_of(worker)->set); /* [poll-sleep] */
    } else {
        jrt_futex_wake(&worker->signal, 1);
    }
}

/* Whether there was a sleeper to wake. */
static bool wake_one(janus_scheduler *scheduler)
{
    jrt_lock(&scheduler->idle_lock);
    struct jrt_worker *worker = jrt_crew_is_full(scheduler) ? NULL : take_sleeper(scheduler);
    bool               in_set = worker != NULL && worker->in_set;
    jrt_unlock(&scheduler->idle_lock);
    if (worker != NULL) jrt_idle_rouse(worker, in_set);
    return worker != NULL;
}

/* Whether it woke one. */
static bool notify(janus_scheduler *scheduler)
{
    jrt_fence_light_seq_cst();                              /* seq_cst: [idle-submit]. */
    uint64_t idlers = jrt_load_relaxed(&scheduler->idlers); /* relaxed: after the fence. */
    return jrt_sleeping(idlers) != 0 && jrt_searching(idlers) == 0 && wake_one(scheduler);
}

void jrt_idle_notify(janus_scheduler *scheduler) { (void)notify(scheduler); }

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

void jrt_idle_notify_lone(struct jrt_worker *worker)
{
    janus_scheduler *scheduler = worker->scheduler;
    jrt_fence_light_seq_cst();                              /* seq_cst: [idle-submit]. */
    uint64_t idlers = jrt_load_relaxed(&scheduler->idlers); /* relaxed: after the fence. */
    if (jrt_sleeping(idlers) == 0 || jrt_searching(idlers) != 0) return;
    if (scheduler->stealing) (void)jrt_publish(worker);
    jrt_idle_notify(scheduler); /* a worker may have looked while the task was nowhere */
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
    while ((worker = take_sleeper(scheduler)) != NULL) jrt_idle_rouse(worker, worker->in_set);
    jrt_unlock(&scheduler->idle_lock);
}

void jrt_idle_wake_keeper(janus_scheduler *scheduler, uint64_t deadline_ns)
{
    jrt_lock(&scheduler->idle_lock);
    struct jrt_worker *keeper = deadline_ns < scheduler->keeper_until ? scheduler->keeper : NULL;
    bool               in_set = keeper != NULL && keeper->in_set;
    if (keeper != NULL) scheduler->keeper_until = deadline_ns;  /* once is enough */
    if (keeper != NULL) jrt_store_release(&keeper->signal, 2u); /* release: the new timer. */
    jrt_unlock(&scheduler->idle_lock);
    if (keeper != NULL) jrt_idle_rouse(keeper, in_set);
}

void jrt_idle_wake_up(struct jrt_worker *worker)
{
    jrt_lock(&worker->scheduler->idle_lock);
    bool in_set = worker->in_set;
    jrt_store_release(&worker->signal, 2u); /* release: what it is to see. */
    jrt_unlock(&worker->scheduler->idle_lock);
    jrt_idle_rouse(worker, in_set);
}

/* Notes a steal of new tasks, for time_steal. */
static struct jrt_task *noted(struct jrt_worker *worker, struct jrt_task *task)
{
    if (task != NULL && !jrt_task_began(task)) {
        worker->stolen = 1 + (uint32_t)jrt_shelf_size(&worker->fresh_shelf);
    }
    return task;
}

static struct jrt_task *steal(struct jrt_worker *worker, bool raid)
{
    return noted(worker, jrt_steal(worker, raid));
}

/* The worker whose deque a searcher watches: its last victim. It sees a task there one transfer of
 * a cache line sooner than `fed` changes. */
static struct jrt_worker *prey_of(const struct jrt_worker *worker)
{
    janus_scheduler *scheduler = worker->scheduler;
    uint32_t         index = worker->prey != worker->index ? worker->prey : worker->index + 1;
    return &scheduler->workers[index % scheduler->worker_count];
}

/* Pauses, unless a worker has fed tasks since `fed` was read. Whether one has. */
static bool pause_a_while(const struct jrt_worker *worker, uint32_t fed, int relaxes)
{
    const janus_scheduler  *scheduler = worker->scheduler;
    const struct jrt_deque *watched = &prey_of(worker)->fresh[JRT_LANE_NORMAL];
    for (int i = 0; i < relaxes; i++) {
        if (!jrt_deque_seems_empty(watched) && scheduler->stealing) return true;
        if (jrt_load_relaxed(&scheduler->fed) != fed) return true;    /* relaxed, both: hints. */
        if (jrt_load_relaxed(&scheduler->injected) != 0) return true; /* relaxed: as above. */
        jrt_cpu_relax();
    }
    return false;
}

/* Takes the task that the pause was ended for, if it was in the watched deque. */
static struct jrt_task *steal_fed(struct jrt_worker *worker)
{
    struct jrt_worker *prey = prey_of(worker);
    if (prey == worker || jrt_deque_seems_empty(&prey->fresh[JRT_LANE_NORMAL])) return NULL;
    return noted(worker, jrt_steal_from(worker, prey, false));
}

/* A worker that has just put a task on its shelf is about to feed it. A raid at that moment would
 * only hold it up for the length of a heavy fence. So a searcher raids if nobody feeds it soon. */
static struct jrt_task *raid_late(struct jrt_worker *worker, uint32_t fed)
{
    if (worker->scheduler->world == NULL) {
        if (!jrt_work_for(worker)) return NULL;
        bool             fed_now = pause_a_while(worker, fed, FEED_PAUSE);
        struct jrt_task *task = fed_now ? jrt_pick(worker, false) : NULL;
        if (task == NULL && fed_now) task = steal(worker, false);
        if (task != NULL) return task;
    }
    return steal(worker, true);
}

/* `fed`: as read before the last look or pause. */
static struct jrt_task *look(struct jrt_worker *worker, bool raid, uint32_t fed)
{
    jrt_sched_timers_fire_all(worker->scheduler);
    /* After a sleep that brought tasks the set was just looked at. */
    if (worker->lanes == 0 && jrt_poll_look(worker)) jrt_poll_share(worker);
    struct jrt_task *task = jrt_pick(worker, false);
    if (task == NULL) task = steal(worker, false);
    if (task == NULL && raid) task = raid_late(worker, fed);
    /* What others have not looked at: its tasks come here. */
    if (task == NULL && raid && jrt_poll_look_at_others(worker->scheduler, worker)) {
        task = jrt_pick(worker, false);
    }
    return task;
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

/* Whether a new NORMAL task waits. A thief that dozes because of them ignores them. */
static bool somebody_is_new(const janus_scheduler *scheduler)
{
    bool some = false;
    for (uint32_t i = 0; i < scheduler->worker_count; i++) {
        some |= jrt_count_fresh(&scheduler->workers[i], JRT_LANE_NORMAL) > 0;
    }
    return some;
}

/* Dozes, and then raids. The thief is not fed first: that would make a worker give away the task
 * that spawns, if that task has just given way. NULL: nothing was found, or there is no time to
 * doze. */
static struct jrt_task *doze(struct jrt_worker *worker)
{
    janus_scheduler *scheduler = worker->scheduler;
    if (worker->stolen != 0) jrt_idle_judge(worker);
    uint32_t doublings = jrt_herd_doublings(worker);
    if (worker->short_steals >= JRT_SHORT_STEALS) {
        uint32_t more = worker->short_steals - JRT_SHORT_STEALS + 1;
        if (more > doublings) doublings = more;
    }
    if (jrt_likely(doublings == 0)) return NULL;
    jrt_debug_invariant("idle-doze", scheduler->world == NULL && worker->short_steals <= SHORT_MAX);
    uint64_t now = jrt_clock_now_ns();
    uint64_t until = now + (doze_ns << (doublings - 1));
    uint64_t glance = now + glance_ns;
    uint64_t left = 0;       /* nothing has waited yet */
    bool     waited = false; /* at the last glance */
    for (; now < until; now = jrt_clock_now_ns()) {
        for (int i = 0; i < LOOK_EVERY; i++) jrt_cpu_relax();
        if (jrt_load_relaxed(&scheduler->injected) != 0) return NULL; /* relaxed: a hint. */
        if (now < glance) continue;
        glance = now + glance_ns;
        jrt_sched_timers_fire_all(scheduler);
        if (worker->herd.retreats != 0) { /* [herd-gather] */
            bool more = jrt_count_again(worker, JRT_LANE_NORMAL) > 0 || somebody_is_new(scheduler);
            if (more && waited) return NULL;
            waited = more;
        }
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
    bool was_fed = false;
    for (int round = simulated ? FIRST_RAID : 0; round < last; round++) {
        uint32_t         fed = jrt_load_relaxed(&worker->scheduler->fed); /* relaxed: a hint. */
        struct jrt_task *task = was_fed ? steal_fed(worker) : NULL;
        if (task == NULL) task = look(worker, raids || round >= FIRST_RAID, fed);
        if (task != NULL) {
            time_steal(worker, round);
            if (poller != NULL && !woken) poller->found = true;
            return task;
        }
        if (simulated) {
            jrt_thread_yield();
        } else if (poller == NULL || round + 1 < last) { /* the sleep in a set looks at once */
            was_fed = pause_a_while(worker, fed, FIRST_PAUSE << round);
        }
    }
    worker->short_steals = 0;
    if (poller != NULL) poller->found = false;
    return NULL;
}

/* Adds the worker to the sleepers. `spare`: only if it is, [crew-full]. False: not added. */
static bool lie_down(struct jrt_worker *worker, bool spare)
{
    janus_scheduler *scheduler = worker->scheduler;
    jrt_store_relaxed(&worker->signal, 0u); /* relaxed: nobody wakes it before it is listed. */
    jrt_lock(&scheduler->idle_lock);
    bool lies = !spare || jrt_crew_is_spare(scheduler);
    if (lies) {
        worker->next_sleeper = scheduler->sleepers;
        scheduler->sleepers = worker;
        jrt_crew_sleeps(scheduler);
    }
    jrt_unlock(&scheduler->idle_lock);
    return lies;
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
        jrt_crew_rises(scheduler);
        listed = true;
        break;
    }
    /* In either case: a worker woken just before it fell asleep may have become the keeper
     * since. */
    resign(worker);
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
        jrt_load_relaxed(&scheduler->asleep) + lost == scheduler->worker_count && /* relaxed. */
        jrt_sched_timers_next(scheduler) == JRT_NEVER &&
        !scheduler->patrols && /* the keeper gets up soon, and asks then, [crew-patrol] */
        jrt_load_relaxed(&scheduler->outside) == 0 &&        /* relaxed: as above. */
        jrt_load_relaxed(&scheduler->blocking_calls) == 0 && /* relaxed: as above. */
        !jrt_poll_can_come(scheduler);                       /* all workers sleep */
    if (stuck) jrt_fence_heavy_seq_cst();                    /* seq_cst: [idle-sleep]. */
    /* relaxed: once more, because a seat's thread counts itself there before it fires timers. */
    stuck = stuck && jrt_load_relaxed(&scheduler->outside) == 0;
    for (uint32_t i = 0; i < scheduler->worker_count && stuck; i++) {
        stuck = !jrt_work_for(&scheduler->workers[i]);
    }
    uint32_t epoch = scheduler->epoch;
    jrt_unlock(&scheduler->idle_lock);
    return stuck ? epoch | 1u : 0;
}

/* Whether this worker is the first of all that find the same deadlock. The report may take long. */
static bool may_tell(struct jrt_worker *worker, uint32_t epoch)
{
    janus_scheduler *scheduler = worker->scheduler;
    bool             stuck = jrt_idle_stuck(scheduler) == epoch;
    jrt_lock(&scheduler->idle_lock);
    bool first = stuck && scheduler->told != epoch;
    if (first) scheduler->told = epoch;
    if (first) jrt_crew_wake_last(worker);
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
    uint32_t asleep = jrt_load_relaxed(&scheduler->asleep); /* relaxed: as above. */
    if (scheduler->world != NULL || asleep == scheduler->worker_count) return until;
    uint64_t by = jrt_clock_now_ns() + wishes_ns;
    return by < until ? by : until;
}

/* Returns stacks past the limit, [depot-later], until the worker is woken. False: there are more.
 * Nobody keeps the timers meanwhile, and packets wait. So the worker looks again after a while. */
static bool return_stacks(struct jrt_worker *worker)
{
    struct jrt_depot *depot = worker->scheduler->depot;
    if (jrt_likely(!jrt_depot_is_over(depot))) return true;
    uint64_t until = jrt_clock_now_ns() + return_ns;
    while (jrt_load_relaxed(&worker->signal) == 0) { /* relaxed: the sleep looks again. */
        if (!jrt_depot_return_some(depot)) return true;
        if (jrt_clock_now_ns() >= until) return false;
    }
    return true;
}

/* Sleeps until another thread wakes it or, as the keeper, until the next timer. It may return
 * before. */
static void sleep_now(struct jrt_worker *worker)
{
    janus_scheduler *scheduler = worker->scheduler;
    uint64_t         until = JRT_NEVER;
    if (worker->audit != NULL) (void)jrt_audit_flush(worker->audit); /* without room: later */
    jrt_worker_trim(worker); /* it is listed: a later request wakes it */
    if (jrt_unlikely(!return_stacks(worker))) return;
    jrt_lock(&scheduler->idle_lock);
    if (scheduler->keeper == NULL) {
        scheduler->keeper = worker;
        until = look_again_by(scheduler, jrt_sched_timers_next(scheduler)); /* [timer-keeper] */
        until = jrt_crew_patrol_by(scheduler, until);
        scheduler->keeper_until = until;
        worker->patrols = scheduler->patrols;
    }
    struct jrt_poller *poller = jrt_poll_of(worker);
    /* relaxed: under the lock, [poll-sleep]. */
    worker->in_set = poller != NULL && jrt_load_relaxed(&worker->signal) == 0;
    jrt_unlock(&scheduler->idle_lock);
    jrt_crew_patrol(scheduler); /* the keeper may have lain down when the crew was not full */
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

/* The worker stops searching because it has found a task. `last`: nobody searches now. If this
 * worker wakes another, or others still search, the next worker that finds a task makes sure of the
 * patrol. */
static struct jrt_task *found(struct jrt_worker *worker, struct jrt_task *task, bool last)
{
    janus_scheduler *scheduler = worker->scheduler;
    /* More tasks may be where this was found. */
    if (last && !notify(scheduler)) jrt_crew_patrol(scheduler);
    bool polls = jrt_load_relaxed(&scheduler->polls); /* relaxed: a hint. */
    if (jrt_unlikely(polls && !worker->alone)) jrt_poll_watch(worker);
    /* The keeper may sleep as long as if no worker computed; see look_again_by. */
    bool wished = jrt_load_relaxed(&scheduler->wishes) != 0; /* relaxed: a hint. */
    if (jrt_unlikely(wished) && scheduler->world == NULL) jrt_idle_wake_keeper(scheduler, 0);
    if (jrt_unlikely(worker->herd.retreats != 0)) jrt_herd_begin(worker); /* [herd-gather] */
    return task;
}

/* A spare worker looks once and sleeps, [crew-full]. NULL: the worker is not spare, stopped
 * being spare, or must end. */
static struct jrt_task *spare(struct jrt_worker *worker)
{
    janus_scheduler *scheduler = worker->scheduler;
    while (jrt_crew_is_spare(scheduler) && !must_end(worker)) {
        struct jrt_task *task = jrt_crew_look(worker);
        if (task != NULL) return found(worker, task, true);
        if (!lie_down(worker, true)) break;
        jrt_fence_heavy_seq_cst(); /* seq_cst: [timer-keeper]. */
        /* After the listing: the end, and a thread that dooms the worker, wake listed workers. */
        if (!must_end(worker)) sleep_now(worker);
        (void)get_up(worker);
    }
    return NULL;
}

struct jrt_task *jrt_idle(struct jrt_worker *worker)
{
    janus_scheduler *scheduler = worker->scheduler;
    if (jrt_unlikely(worker->seat != NULL)) return jrt_seat_idle(worker);
    struct jrt_task *raided = jrt_crew_is_spare(scheduler) ? NULL : doze(worker);
    if (worker->herd.retreats != 0) jrt_herd_begin(worker);
    if (raided != NULL) return raided;
    jrt_quota_level(worker);
    for (;;) {
        struct jrt_task *task = spare(worker);
        if (task != NULL) return task;
        /* relaxed: a hint to submitters. */
        jrt_fetch_add_relaxed(&scheduler->idlers, (uint64_t)1);
        task = search(worker);
        if (task == NULL) (void)lie_down(worker, false);
        /* seq_cst: not to be seen before lying down; [idle-sleep]. */
        uint32_t searchers = jrt_searching(jrt_fetch_sub_seq_cst(&scheduler->idlers, (uint64_t)1));
        if (task != NULL) return found(worker, task, searchers == 1);
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
        if (epoch != 0 && jrt_upcalls.anybody_waits(scheduler) && may_tell(worker, epoch) &&
            jrt_upcalls.break_deadlock(scheduler)) {
            (void)get_up(worker);
            continue;
        }
        sleep_now(worker);
        (void)get_up(worker);
        if (must_end(worker)) return NULL;
    }
}
