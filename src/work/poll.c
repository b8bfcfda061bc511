/* SPDX-License-Identifier: MIT */
/*
 * Workers and descriptors.
 *
 * [poll-set]  Each worker has a set (epoll), made by the first wait for a descriptor. A descriptor
 *   is registered once, for both directions and edges only, in the set with the fewest members. It
 *   is never moved. Any thread may add to any set, and look at any set. The thread that gets an
 *   event wakes the waiter. The woken task runs next on the worker that looked. If the system
 *   refuses a further set, a worker's existing set serves. A nursery with the backend EVENTED makes
 *   the first set when it is opened, so its children never lack one.
 *
 * [poll-sleep]  A worker with a set sleeps in it instead of on its word. It sets `in_set` under
 *   idle_lock, if nobody has woken it by then. A waker sets `signal` and reads `in_set` under the
 *   same lock. So either the sleeper sees the signal and does not sleep, or the waker rings the
 *   set. A ring that comes before the sleep ends it, too. models/poll_sleep.pml tries all orders.
 *   A thread that makes a set for a worker that sleeps on its word wakes that worker.
 *
 * A worker looks at its set when its queues are empty, after each sleep, and every 200 us while it
 * has tasks. A program without descriptors pays for reading one pointer there.
 *
 * [poll-quiet]  The tasks of a look run next on the worker that looked. To wake another worker for
 *   a few of them takes longer than to run them. So the worker puts them on its shelf and wakes no
 *   sleeper, unless they are many. If the worker then computes without a call, the watch wakes
 *   another worker.
 *
 * [poll-others]  A worker that computes without a call does not look at its set. Others do that in
 *   its stead: searchers in their later rounds, and a watch. The watch is a timer. A worker that
 *   leaves idleness arms it, unless it is armed. When it rings, the thread that fires timers looks
 *   at every set at which nobody has looked for a while. The watch is armed again only while a
 *   worker runs. So when all workers sleep, none wakes up for it.
 *
 * [poll-stuck]  A task that waits for a descriptor is no part of a deadlock: somebody outside may
 *   send. In a world only tasks can send, unless bytes are under way.
 */
#include "work/poll.h"

#include "plat/net.h"
#include "work/ready.h"
#include "work/work.h"

#include <errno.h>

enum { QUIET_MAX = 16 }; /* tasks that a worker keeps for itself, [poll-quiet] */

static const uint64_t glance_ns = 200000;  /* between looks of a worker that has tasks */
static const uint64_t stale_ns = 1000000;  /* without a look; then others look at a set */
static const uint64_t watch_ns = 10000000; /* [poll-others] */

bool jrt_poll_look_now(struct jrt_worker *worker, struct jrt_poller *poller)
{
    int count = jrt_net()->set_wait(&poller->set, poller->events, JRT_POLL_EVENTS, 0);
    /* relaxed, both: a hint for others. It is older than now, but costs no look at the clock. */
    uint64_t looked = jrt_load_relaxed(&poller->looked_ns);
    if (worker->picked_ns > looked) {
        jrt_store_relaxed(&poller->looked_ns, worker->picked_ns); /* relaxed: as above. */
    }
    if (count <= 0) return false;
    jrt_ready_tell_all(poller->events, count);
    return true;
}

void jrt_poll_glance_now(struct jrt_worker *worker, struct jrt_poller *poller, uint64_t now)
{
    uint64_t looked = jrt_load_relaxed(&poller->looked_ns); /* relaxed: a hint. */
    if (now < looked + glance_ns) return;
    jrt_store_relaxed(&poller->looked_ns, now); /* relaxed: a hint for others. */
    if (jrt_poll_look_now(worker, poller)) jrt_poll_share(worker);
}

void jrt_poll_share(struct jrt_worker *worker)
{
    if (worker->alone || jrt_shelf_size(&worker->again_shelf) <= QUIET_MAX) return;
    jrt_idle_notify_shelf(worker);
}

static bool look_at(struct jrt_poller *poller, uint64_t now)
{
    struct jrt_net_event events[JRT_POLL_FEW];
    jrt_store_relaxed(&poller->looked_ns, now); /* relaxed: a hint for others. */
    int count = jrt_net()->set_wait(&poller->set, events, JRT_POLL_FEW, 0);
    if (count > 0) jrt_ready_tell_all(events, count);
    return count > 0;
}

bool jrt_poll_look_at_others(janus_scheduler *scheduler, const struct jrt_worker *self)
{
    bool     some = false;
    uint64_t now = 0;
    if (!jrt_load_relaxed(&scheduler->polls)) return false; /* relaxed: a hint. */
    for (uint32_t i = 0; i < scheduler->worker_count; i++) {
        struct jrt_worker *worker = &scheduler->workers[i];
        struct jrt_poller *poller = worker != self ? jrt_poll_of(worker) : NULL;
        /* relaxed, both: hints. A sleeper is woken by the set itself. */
        if (poller == NULL || jrt_load_relaxed(&poller->members) == 0) continue;
        if (now == 0) now = jrt_clock_now_ns();
        uint64_t looked = jrt_load_relaxed(&poller->looked_ns); /* relaxed: a hint. */
        if (looked != JRT_NEVER && now > looked + stale_ns) some |= look_at(poller, now);
    }
    return some;
}

/* Rings under the timers' lock. */
static void ring(struct jrt_alarm *alarm)
{
    janus_scheduler *scheduler = alarm->subject;
    jrt_store_release(&scheduler->watching, 2u); /* release: the alarm was read. */
}

void jrt_poll_watch(struct jrt_worker *worker)
{
    janus_scheduler *scheduler = worker->scheduler;
    uint32_t         none = 0;
    /* relaxed, both: the worker that takes the step from 0 arms it. */
    if (jrt_load_relaxed(&scheduler->watching) != 0 || scheduler->world != NULL) return;
    if (!jrt_cas_acquire(&scheduler->watching, &none, 1u)) return; /* acquire: of the alarm. */
    jrt_debug_invariant("poll-others", !jrt_timer_armed(&scheduler->watch.timer));
    scheduler->watch.ring = ring;
    scheduler->watch.subject = scheduler;
    uint64_t when = jrt_clock_now_ns() + watch_ns;
    if (!jrt_sched_timer_arm(scheduler, &scheduler->watch.timer, when)) {
        jrt_store_release(&scheduler->watching, 0u); /* release: the next one tries again. */
    }
}

void jrt_poll_watched(janus_scheduler *scheduler)
{
    uint32_t rung = 2;
    /* acq_rel: one of the threads that fire timers looks; the next one may arm it. */
    if (!jrt_cas_acq_rel(&scheduler->watching, &rung, 0u)) return;
    struct jrt_worker *self = jrt_worker_self();
    if (self != NULL && self->scheduler != scheduler) self = NULL;
    (void)jrt_poll_look_at_others(scheduler, self);
    /* relaxed: a hint. */
    uint32_t asleep = jrt_load_relaxed(&scheduler->asleep);
    bool     busy = asleep + (self != NULL ? 1 : 0) < scheduler->worker_count;
    if (busy && self != NULL) jrt_poll_watch(self);
}

void jrt_poll_sleep(struct jrt_worker *worker, struct jrt_poller *poller, uint64_t until)
{
    jrt_store_relaxed(&poller->looked_ns, JRT_NEVER); /* relaxed: others need not look. */
    while (jrt_load_acquire(&worker->signal) == 0) {  /* acquire: pairs with take_sleeper. */
        int count = jrt_net()->set_wait(&poller->set, poller->events, JRT_POLL_EVENTS, until);
        if (count > 0) jrt_ready_tell_all(poller->events, count);
        if (count > 0 || (until != JRT_NEVER && jrt_clock_now_ns() >= until)) break;
    }
    /* relaxed: as above. */
    jrt_store_relaxed(&poller->looked_ns, jrt_clock_now_ns());
}

/* Placing. */

static struct jrt_poller *make_set(struct jrt_worker *worker, int *out_error)
{
    struct jrt_poller *none = NULL, *made = jrt_poller_open(out_error);
    if (made == NULL) return NULL;
    jrt_store_relaxed(&made->looked_ns, jrt_clock_now_ns()); /* relaxed: a hint. */
    /* acq_rel: its content; on failure, that of the other thread's. */
    if (!jrt_cas_acq_rel(&worker->poller, &none, made)) {
        jrt_poller_close(made);
        return none;
    }
    jrt_store_relaxed(&worker->scheduler->polls, true);        /* relaxed: a hint. */
    if (worker != jrt_worker_self()) jrt_idle_wake_up(worker); /* [poll-sleep] */
    return made;
}

static uint32_t members_of(const struct jrt_worker *worker)
{
    const struct jrt_poller *poller = jrt_poll_of(worker);
    return poller != NULL ? jrt_load_relaxed(&poller->members) : 0; /* relaxed: a hint. */
}

/* The worker with the fewest members; `self`, if it has at most an eighth more. */
static struct jrt_worker *least(struct jrt_worker *self)
{
    janus_scheduler   *scheduler = self->scheduler;
    struct jrt_worker *best = self->seat != NULL ? &scheduler->workers[0] : self;
    uint32_t           fewest = members_of(best);
    fewest -= fewest / 8;
    for (uint32_t i = 0; i < scheduler->worker_count; i++) {
        struct jrt_worker *worker = &scheduler->workers[i];
        uint32_t           members = members_of(worker);
        if (members >= fewest) continue;
        best = worker;
        fewest = members;
    }
    return best;
}

/* The first set of the scheduler; NULL: it has none. */
static struct jrt_poller *any_set(const janus_scheduler *scheduler)
{
    struct jrt_poller *poller = NULL;
    for (uint32_t i = 0; i < scheduler->worker_count && poller == NULL; i++) {
        poller = jrt_poll_of(&scheduler->workers[i]);
    }
    return poller;
}

janus_status jrt_poll_promise(janus_scheduler *scheduler)
{
    int error = 0;
    if (any_set(scheduler) != NULL) return JANUS_OK;
    if (make_set(&scheduler->workers[0], &error) != NULL) return JANUS_OK;
    return error == -ENOMEM ? JANUS_NO_MEMORY : JANUS_UNAVAILABLE;
}

int jrt_poll_place(struct jrt_worker *worker, int fd, uint64_t cookie, struct jrt_poller_at *out)
{
    int                error = 0;
    struct jrt_worker *best = least(worker);
    struct jrt_poller *poller = jrt_poll_of(best);
    if (poller == NULL) poller = make_set(best, &error);
    if (jrt_unlikely(poller == NULL)) poller = any_set(worker->scheduler);
    if (jrt_unlikely(poller == NULL)) return error;
    jrt_debug_invariant("poll-set", best->seat == NULL && best->scheduler == worker->scheduler);
    return jrt_poller_add(poller, fd, cookie, out);
}

bool jrt_poll_can_come(const janus_scheduler *scheduler)
{
    int64_t waits = 0;
    for (uint32_t i = 0; i < scheduler->worker_count; i++) {
        waits += jrt_load_relaxed(&scheduler->workers[i].io_waits); /* relaxed: all sleep. */
    }
    waits += jrt_load_relaxed(&scheduler->seat_io_waits); /* relaxed: as above. */
    jrt_debug_invariant("poll-stuck", waits >= 0);
    if (waits == 0) return false;
    return scheduler->world == NULL || !jrt_net()->is_quiet();
}

void jrt_poll_close(struct jrt_worker *worker)
{
    /* relaxed, all: nobody else is left. */
    struct jrt_poller *poller = jrt_load_relaxed(&worker->poller);
    if (poller == NULL) return;
    bool others = jrt_load_relaxed(&poller->members) > 0; /* relaxed: as above. */
    jrt_store_relaxed(&worker->poller, NULL);             /* relaxed: as above. */
    jrt_poller_close(poller);
    if (others) jrt_ready_tell_everybody(); /* handles that outlive this scheduler */
}
