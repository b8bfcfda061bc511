/* SPDX-License-Identifier: MIT */
/* Timers: one heap for a scheduler. A worker that looks at the clock fires what is due. */
#include "base/assert.h"
#include "base/atomic.h"
#include "plat/seam.h"
#include "plat/world.h"
#include "sched/timer.h"
#include "task/note.h"
#include "task/upcalls.h"
#include "task/worker.h"
#include "work/limit.h"
#include "work/poll.h"
#include "work/replace.h"
#include "work/seat.h"
#include "work/work.h"

static const uint64_t near_ns = 200000000; /* picks look at once for a deadline this near */

static void note_next(janus_scheduler *scheduler)
{
    /* relaxed: a hint. The keeper rereads it under idle_lock. */
    jrt_store_relaxed(&scheduler->timer_next, jrt_timers_next(&scheduler->timers));
}

/* Whether a task arms the timer on the only worker. Then none sleeps. */
static bool is_only(const struct jrt_worker *worker, const janus_scheduler *scheduler)
{
    return worker != NULL && worker->alone && worker->current != NULL && worker->seat == NULL &&
           worker->scheduler == scheduler;
}

bool jrt_sched_timer_arm(janus_scheduler *scheduler, struct jrt_timer *timer, uint64_t deadline_ns)
{
    jrt_lock(&scheduler->timer_lock);
    bool armed = jrt_timer_arm(&scheduler->timers, timer, deadline_ns);
    bool first = armed && jrt_timers_next(&scheduler->timers) == deadline_ns;
    note_next(scheduler);
    jrt_unlock(&scheduler->timer_lock);
    struct jrt_worker *worker = jrt_worker_self();
    if (first && !is_only(worker, scheduler)) jrt_idle_wake_keeper(scheduler);
    if (worker != NULL && deadline_ns - worker->picked_ns < near_ns) {
        worker->until_others = worker->others_every = 1; /* picks learn the pace, [queue-pace] */
    }
    if (worker != NULL && worker->seat != NULL && deadline_ns < worker->seat->wake_ns) {
        worker->seat->wake_ns = deadline_ns; /* its thread wakes up for its own timers */
    }
    return armed;
}

void jrt_sched_timer_disarm(janus_scheduler *scheduler, struct jrt_timer *timer)
{
    jrt_lock(&scheduler->timer_lock);
    jrt_timer_disarm(&scheduler->timers, timer);
    note_next(scheduler);
    jrt_unlock(&scheduler->timer_lock);
}

/* Looks after missing threads, and after spawns that wait for room. No call waits for these. */
__attribute__((noinline)) static void look_after(janus_scheduler *scheduler)
{
    /* relaxed, both: hints. */
    if (jrt_load_relaxed(&scheduler->lost) != 0) jrt_workers_revive(scheduler);
    if (jrt_load_relaxed(&scheduler->wishes) != 0) jrt_wish_serve(scheduler); /* relaxed: a hint. */
}

uint64_t jrt_sched_timers_fire(janus_scheduler *scheduler)
{
    uint64_t next = jrt_load_relaxed(&scheduler->timer_next); /* relaxed: a hint. */
                                                              /* relaxed: a hint. */
    if (jrt_unlikely(jrt_load_relaxed(&scheduler->cares) != 0)) look_after(scheduler);
    if (next == JRT_NEVER) return 0;
    uint64_t now = jrt_clock_now_ns();
    if (now < next) return now;
    jrt_lock(&scheduler->timer_lock);
    struct jrt_timer *timer;
    /* Under the lock: after a disarm, nobody touches the timer. */
    while ((timer = jrt_timers_pop_due(&scheduler->timers, now)) != NULL) {
        struct jrt_alarm *alarm = (struct jrt_alarm *)timer;
        jrt_note_by_caller(scheduler, JRT_TRACE_TIMER, 0, now - timer->deadline_ns);
        alarm->ring(alarm);
    }
    note_next(scheduler);
    jrt_unlock(&scheduler->timer_lock);
    jrt_upcalls.flush_tokens(); /* of nurseries whose deadline passed */
    jrt_upcalls.flush_actors();
    /* relaxed: set under the lock, by this thread or another. */
    if (jrt_unlikely(jrt_load_relaxed(&scheduler->watching) == 2)) jrt_poll_watched(scheduler);
    return now;
}
