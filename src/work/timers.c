/* SPDX-License-Identifier: MIT */
/*
 * Timers: a set for each worker. A worker that looks at the clock fires what is due.
 *
 * [timer-sets]  Each worker has a set of timers with a lock of its own. A timer joins the set of
 *   the worker that arms it, and remembers that set. Threads without a set use the first one. An
 *   armed timer that is armed again stays in its set. So sleepers on different workers meet in no
 *   lock. A task goes on on the worker where it fell asleep, whose caches have its stack.
 *
 * [timer-late]  A worker that computes without a call fires nothing. So an idle worker fires what
 *   is due in any set, and the keeper sleeps until the earliest deadline of all. A busy worker
 *   looks at one other set at each look, in turn, and fires what is late there by more than
 *   LATE_NS. Then the set's worker has missed two looks. The set of a lost worker needs no other
 *   care.
 *
 * [timer-keeper]  A thread that arms the first timer of a set writes `next`, passes a light fence,
 *   and reads whether anybody sleeps. A worker that lies down counts itself as asleep and passes
 *   the heavy fence of [idle-sleep]. As the keeper it then reads `next` of all sets under
 *   idle_lock. So either the keeper sees the deadline, or the thread sees a sleeper and takes
 *   idle_lock. If the keeper was there first, the thread wakes it. Otherwise the keeper reads the
 *   deadline later, under the lock. models/timer_keeper.pml tries all orders.
 *
 * [timer-last]  A timer is taken out and rung under the lock of its set. So after a disarm nobody
 *   touches it. The ring of a wait ends in the step that ends the wait, and touches the timer only
 *   before. So a sleeper that was woken by its timer need not disarm it.
 *
 * [timer-world]  In a world all timers fire in the order of deadlines and, of equal deadlines, of
 *   arming, whatever set they are in. A thread that fires there holds all locks.
 *
 * A set's `next` changes only after the tasks that were woken are in a queue. Actors and nurseries
 * whose time has come are in none until `after`. So a search for a deadlock could miss them while a
 * seat's thread fires. Therefore that thread counts as a plain thread that may act, [seat-outside].
 *
 * Locks: a set's lock. Rings take others under it. Only in a world does a thread hold several of
 * them, and it takes them in order.
 */
#include "base/assert.h"
#include "base/atomic.h"
#include "plat/seam.h"
#include "plat/world.h"
#include "sched/timer.h"
#include "task/note.h"
#include "task/upcalls.h"
#include "task/worker.h"
#include "work/crew.h"
#include "work/limit.h"
#include "work/poll.h"
#include "work/seat.h"
#include "work/work.h"

enum { AT_ONCE = 256 }; /* timers that are fired without letting others have the lock */

static const uint64_t near_ns = 200000000; /* picks look at once for a deadline this near */
static const uint64_t late_ns = 100000;    /* [timer-late] */

void jrt_sched_timers_open(janus_scheduler *scheduler)
{
    for (uint32_t i = 0; i < scheduler->worker_count; i++) {
        struct jrt_timer_set *set = &scheduler->workers[i].timers;
        jrt_store_relaxed(&set->next, JRT_NEVER); /* relaxed: nobody knows it. */
        pthread_mutex_init(&set->lock, NULL);
        jrt_timers_init(&set->timers);
    }
}

void jrt_sched_timers_close(janus_scheduler *scheduler)
{
    jrt_sched_timer_disarm(scheduler, &scheduler->watch.timer);
    for (uint32_t i = 0; i < scheduler->worker_count; i++) {
        struct jrt_timer_set *set = &scheduler->workers[i].timers;
        jrt_timers_fini(&set->timers);
        pthread_mutex_destroy(&set->lock);
    }
}

static void note_next(struct jrt_timer_set *set)
{
    uint64_t next = jrt_timers_next(&set->timers);
    /* relaxed, both: written under the lock. A hint, or see [timer-keeper]. */
    if (jrt_load_relaxed(&set->next) != next) jrt_store_relaxed(&set->next, next);
}

/* The number of the set in which a thread arms timers. */
static uint32_t set_for(const struct jrt_worker *worker, const janus_scheduler *scheduler)
{
    bool own = worker != NULL && worker->scheduler == scheduler && worker->seat == NULL;
    return own ? worker->index : 0;
}

/* Takes the lock of the set that a timer is in, if it is armed, or else of `own`. */
static struct jrt_timer_set *lock_set(janus_scheduler *scheduler, const struct jrt_timer *timer,
                                      uint32_t own)
{
    /* Only calls for this timer write `set`, and they do not overlap. */
    uint32_t              number = timer->set != 0 ? timer->set - 1 : own;
    struct jrt_timer_set *set = &scheduler->workers[number].timers;
    jrt_debug_invariant("timer-sets", number < scheduler->worker_count);
    jrt_lock(&set->lock);
    if (jrt_likely(number == own || jrt_timer_armed(timer))) return set;
    jrt_unlock(&set->lock);
    set = &scheduler->workers[own].timers;
    jrt_lock(&set->lock);
    return set;
}

/* Whether a task arms the timer on the only worker. Then none sleeps. */
static bool is_only(const struct jrt_worker *worker, const janus_scheduler *scheduler)
{
    return worker != NULL && worker->alone && worker->current != NULL && worker->seat == NULL &&
           worker->scheduler == scheduler;
}

/* A deadline became the first of its set. */
static void tell(janus_scheduler *scheduler, struct jrt_worker *worker, uint64_t deadline_ns)
{
    if (!is_only(worker, scheduler)) {
        jrt_fence_light_seq_cst(); /* seq_cst: [timer-keeper]. */
        /* relaxed: after the fence. */
        bool some = jrt_load_relaxed(&scheduler->asleep) != 0;
        if (some) jrt_idle_wake_keeper(scheduler, deadline_ns);
    }
    if (worker != NULL && deadline_ns - worker->picked_ns < near_ns) {
        worker->until_others = worker->others_every = 1; /* picks learn the pace, [queue-pace] */
    }
}

/* Arms a timer in a set, and releases the set's lock. *out_before: the set's next deadline. */
static bool arm_in(janus_scheduler *scheduler, struct jrt_timer_set *set, struct jrt_timer *timer,
                   uint64_t deadline_ns, uint64_t *out_before)
{
    *out_before = jrt_timers_next(&set->timers);
    if (scheduler->world != NULL) set->timers.sequence = scheduler->armings++; /* [timer-world] */
    bool armed = jrt_timer_arm(&set->timers, timer, deadline_ns);
    if (armed) {
        const struct jrt_worker *owner = jrt_list_entry(set, struct jrt_worker, timers);
        timer->set = owner->index + 1;
    }
    note_next(set);
    jrt_unlock(&set->lock);
    return armed;
}

bool jrt_sched_timer_arm(janus_scheduler *scheduler, struct jrt_timer *timer, uint64_t deadline_ns)
{
    struct jrt_worker    *worker = jrt_worker_self();
    uint32_t              last = timer->set;
    uint64_t              before;
    struct jrt_timer_set *set = lock_set(scheduler, timer, set_for(worker, scheduler));
    bool                  armed = arm_in(scheduler, set, timer, deadline_ns, &before);
    if (jrt_unlikely(!armed && last != 0)) { /* the set that it rang in has room for it */
        set = &scheduler->workers[last - 1].timers;
        jrt_lock(&set->lock);
        armed = arm_in(scheduler, set, timer, deadline_ns, &before);
    }
    if (armed && deadline_ns < before) tell(scheduler, worker, deadline_ns);
    if (worker != NULL && worker->seat != NULL && deadline_ns < worker->seat->wake_ns) {
        worker->seat->wake_ns = deadline_ns; /* its thread wakes up for its own timers */
    }
    return armed;
}

void jrt_sched_timer_disarm(janus_scheduler *scheduler, struct jrt_timer *timer)
{
    if (timer->set == 0) return; /* never armed */
    struct jrt_timer_set *set = &scheduler->workers[timer->set - 1].timers;
    jrt_lock(&set->lock);
    jrt_timer_disarm(&set->timers, timer);
    note_next(set);
    jrt_unlock(&set->lock);
    timer->set = 0; /* it may be armed next in another scheduler */
}

/* Looks after missing threads, and after spawns that wait for room. No call waits for these. */
__attribute__((noinline)) static void look_after(janus_scheduler *scheduler)
{
    /* relaxed, both: hints. */
    if (jrt_load_relaxed(&scheduler->lost) != 0) jrt_workers_revive(scheduler);
    if (jrt_load_relaxed(&scheduler->wishes) != 0) jrt_wish_serve(scheduler); /* relaxed: a hint. */
}

/* Rings the next timer of a set, if it is due. Under the lock: after a disarm, nobody touches the
 * timer. False: none is due. */
static bool ring_next(struct jrt_worker *worker, struct jrt_timers *timers, uint64_t now)
{
    struct jrt_alarm *alarm = (struct jrt_alarm *)jrt_timers_pop_due(timers, now);
    if (alarm == NULL) return false;
    jrt_note_by_caller(worker->scheduler, JRT_TRACE_TIMER, 0, now - alarm->timer.deadline_ns);
    if (alarm->ring == NULL) {
        jrt_task_wake_quietly(worker, alarm->subject, (janus_status)alarm->status);
    } else {
        alarm->ring(alarm);
    }
    return true;
}

static void fire(struct jrt_worker *worker, struct jrt_timer_set *set, uint64_t now)
{
    bool more = true;
    jrt_debug_invariant("timer-world", worker->scheduler->world == NULL);
    /* relaxed: this thread counts there. */
    jrt_debug_invariant("seat-outside",
                        worker->seat == NULL || jrt_load_relaxed(&worker->scheduler->outside) > 0);
    while (more) {
        jrt_lock(&set->lock);
        for (int i = 0; i < AT_ONCE && more; i++) more = ring_next(worker, &set->timers, now);
        note_next(set);
        jrt_unlock(&set->lock);
    }
}

/* The set whose next timer is due first, under all locks. */
static struct jrt_timer_set *first_set(janus_scheduler *scheduler)
{
    struct jrt_timer_set   *best = &scheduler->workers[0].timers;
    const struct jrt_timer *earliest = jrt_timers_first(&best->timers);
    for (uint32_t i = 1; i < scheduler->worker_count; i++) {
        struct jrt_timer_set   *set = &scheduler->workers[i].timers;
        const struct jrt_timer *first = jrt_timers_first(&set->timers);
        if (first == NULL) continue;
        if (earliest != NULL && (first->deadline_ns > earliest->deadline_ns ||
                                 (first->deadline_ns == earliest->deadline_ns &&
                                  first->sequence > earliest->sequence))) {
            continue;
        }
        best = set;
        earliest = first;
    }
    return best;
}

/* Fires what is due in all sets in one order, [timer-world]. */
__attribute__((noinline)) static void fire_in_order(struct jrt_worker *worker, uint64_t now)
{
    janus_scheduler *scheduler = worker->scheduler;
    for (uint32_t i = 0; i < scheduler->worker_count; i++) {
        jrt_lock(&scheduler->workers[i].timers.lock);
    }
    while (ring_next(worker, &first_set(scheduler)->timers, now)) continue;
    for (uint32_t i = 0; i < scheduler->worker_count; i++) {
        note_next(&scheduler->workers[i].timers);
        jrt_unlock(&scheduler->workers[i].timers.lock);
    }
}

/* What must wait until the fired timers' locks are free. */
static void after(struct jrt_worker *worker)
{
    janus_scheduler *scheduler = worker->scheduler;
    jrt_idle_notify_shelf(worker); /* once, for all tasks that were woken */
    jrt_upcalls.flush_tokens();    /* of nurseries whose deadline passed */
    jrt_upcalls.flush_actors();
    /* relaxed: set under the lock, by this thread or another. */
    if (jrt_unlikely(jrt_load_relaxed(&scheduler->watching) == 2)) jrt_poll_watched(scheduler);
}

/* Fires all sets whose next timer is due. */
static void fire_each(struct jrt_worker *worker, uint64_t now)
{
    janus_scheduler *scheduler = worker->scheduler;
    for (uint32_t i = 0; i < scheduler->worker_count; i++) {
        struct jrt_timer_set *set = &scheduler->workers[i].timers;
        if (jrt_load_relaxed(&set->next) <= now) fire(worker, set, now); /* relaxed: a hint. */
    }
}

/* The next other set, in turn. */
static struct jrt_timer_set *another(struct jrt_worker *worker)
{
    uint32_t next = worker->timers_at + 1;
    worker->timers_at = next < worker->scheduler->worker_count ? next : 0;
    jrt_debug_invariant("timer-late", worker->timers_at < worker->scheduler->worker_count);
    return &worker->scheduler->workers[worker->timers_at].timers;
}

uint64_t jrt_sched_timers_fire(janus_scheduler *scheduler)
{
    struct jrt_worker *worker = jrt_worker_self();
    /* relaxed: a hint. */
    if (jrt_unlikely(jrt_load_relaxed(&scheduler->cares) != 0)) look_after(scheduler);
    if (jrt_unlikely(scheduler->world != NULL)) {
        uint64_t next = jrt_sched_timers_next(scheduler);
        uint64_t now = next != JRT_NEVER ? jrt_clock_now_ns() : 0;
        if (now < next) return now;
        fire_in_order(worker, now);
        after(worker);
        return now;
    }
    struct jrt_timer_set *own = &scheduler->workers[set_for(worker, scheduler)].timers;
    struct jrt_timer_set *other = another(worker);
    uint64_t              next = jrt_load_relaxed(&own->next);     /* relaxed, both: hints. */
    uint64_t              theirs = jrt_load_relaxed(&other->next); /* relaxed: as above. */
    if (next == JRT_NEVER && theirs == JRT_NEVER) return 0;
    uint64_t now = jrt_clock_now_ns();
    bool     late = other != own && theirs < now && now - theirs > late_ns;
    if (jrt_likely(now < next && !late)) return now;
    if (now >= next) fire(worker, own, now);
    if (late) fire(worker, other, now);
    after(worker);
    return now;
}

void jrt_sched_timers_fire_all(janus_scheduler *scheduler)
{
    struct jrt_worker *worker = jrt_worker_self();
    /* relaxed: a hint. */
    if (jrt_unlikely(jrt_load_relaxed(&scheduler->cares) != 0)) look_after(scheduler);
    uint64_t next = jrt_sched_timers_next(scheduler);
    if (next == JRT_NEVER) return;
    uint64_t now = jrt_clock_now_ns();
    if (now < next) return;
    if (scheduler->world != NULL) {
        fire_in_order(worker, now);
    } else {
        fire_each(worker, now);
    }
    after(worker);
}
