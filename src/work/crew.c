/* SPDX-License-Identifier: MIT */
/*
 * The crew: how many workers are awake.
 *
 * A scheduler may have more workers than the process has processors. If all of them search, they
 * take the processors from those that have tasks. A worker whose thread is off the CPU holds up
 * every thief that waits for its shelf. So only as many workers as there are processors look for
 * work and are woken for it.
 *
 * [crew-full]  `beyond` is the number of workers beyond the processors. The sleepers' part of
 *   `idlers` counts only sleepers above that number. So while as many workers as processors are
 *   awake, submitters see no sleeper, and pay nothing. A worker that runs out of work while more
 *   are awake is spare. It looks at its own queues and goes to sleep, even if others have work. It
 *   decides that under idle_lock, together with being counted, so that not all of them think that
 *   they are spare. The others search and sleep by [idle-sleep] as before. Therefore, whenever a
 *   task waits, a worker that has not been spare is awake.
 *
 * [crew-patrol]  That worker may run something long, or sit in a system call, or its task may spin
 *   until another has run. So while the crew is full, one sleeper, the keeper, wakes up every
 *   millisecond. Where tasks wait and none has moved since its last look, it takes some. The next
 *   sleeper then patrols. So as many workers as there are come to run, one each millisecond, if
 *   their tasks are long. Where tasks are short, the patrol takes nothing. When all sleep, nobody
 *   patrols, once the last patrol has come. Until then nobody looks for a deadlock.
 *   Otherwise the keeper would wake during the report and report the same deadlock again.
 *
 * [crew-lost]  A lost worker is neither asleep nor awake. It is rare, and the rest must do its
 *   work. So after the first loss `beyond` is 0. It stays 0 when the worker has a thread again,
 *   because `lost` may be 0 for a moment while another start is refused.
 *
 * In a world all workers are woken: its processors are not those of the machine.
 *
 * models/crew.pml tries all orders.
 *
 * Locks: idle_lock.
 */
#include "work/crew.h"

#include "plat/cpus.h"
#include "work/poll.h"
#include "work/work.h"

static const uint64_t patrol_ns = 1000000;

/* `lost`: a worker is. */
static void set_beyond(janus_scheduler *scheduler, uint32_t beyond, bool lost)
{
    jrt_lock(&scheduler->idle_lock);
    if (lost) scheduler->crew_lost = true;
    if (scheduler->crew_lost) beyond = 0; /* [crew-lost] */
    /* relaxed, all: under the lock. */
    uint64_t asleep = jrt_load_relaxed(&scheduler->asleep);
    uint64_t before = jrt_load_relaxed(&scheduler->beyond);
    uint64_t seen = asleep > before ? asleep - before : 0;
    uint64_t now = asleep > beyond ? asleep - beyond : 0;
    jrt_store_relaxed(&scheduler->beyond, beyond);                         /* relaxed: as above. */
    jrt_fetch_add_relaxed(&scheduler->idlers, (now - seen) * JRT_SLEEPER); /* relaxed: as above. */
    jrt_unlock(&scheduler->idle_lock);
}

void jrt_crew_begin(const struct jrt_worker *worker)
{
    janus_scheduler *scheduler = worker->scheduler;
    if (worker->seat != NULL || worker->index != 0) return;
    if (scheduler->worker_count < 2 || scheduler->world != NULL || !scheduler->stealing) return;
    uint32_t cpus = jrt_cpus_available();
    if (cpus < scheduler->worker_count) {
        set_beyond(scheduler, scheduler->worker_count - cpus, false);
    }
}

void jrt_crew_lost(janus_scheduler *scheduler) { set_beyond(scheduler, 0, true); }

void jrt_crew_sleeps(janus_scheduler *scheduler)
{
    /* relaxed, all: under the lock; the heavy fence follows, [idle-sleep]. */
    uint32_t asleep = jrt_load_relaxed(&scheduler->asleep) + 1;
    jrt_store_relaxed(&scheduler->asleep, asleep); /* relaxed: as above. */
    /* relaxed: a lost worker counts before it can be found again, and not while it sleeps. */
    jrt_debug_invariant("crew-lost",
                        asleep + jrt_load_relaxed(&scheduler->lost) <= scheduler->worker_count);
    if (asleep <= jrt_load_relaxed(&scheduler->beyond)) return;
    jrt_fetch_add_relaxed(&scheduler->idlers, JRT_SLEEPER); /* relaxed: as above. */
}

void jrt_crew_rises(janus_scheduler *scheduler)
{
    /* relaxed, all: under the lock. For [idle-submit] it is a hint. */
    uint32_t asleep = jrt_load_relaxed(&scheduler->asleep);
    jrt_debug_invariant("crew-full", asleep > 0);
    jrt_store_relaxed(&scheduler->asleep, asleep - 1); /* relaxed: as above. */
    scheduler->epoch += 2;
    if (asleep <= jrt_load_relaxed(&scheduler->beyond)) return;
    jrt_fetch_sub_relaxed(&scheduler->idlers, JRT_SLEEPER); /* relaxed: as above. */
}

void jrt_crew_wake_last(struct jrt_worker *worker)
{
    struct jrt_worker **at = &worker->scheduler->sleepers;
    while (*at != NULL && *at != worker) at = &(*at)->next_sleeper;
    if (*at == NULL) return; /* it was woken */
    *at = worker->next_sleeper;
    while (*at != NULL) at = &(*at)->next_sleeper;
    *at = worker;
    worker->next_sleeper = NULL;
}

uint64_t jrt_crew_patrol_by(janus_scheduler *scheduler, uint64_t until)
{
    /* relaxed: constant but for [crew-lost]. */
    scheduler->patrols =
        jrt_load_relaxed(&scheduler->beyond) != 0 && jrt_crew_is_full(scheduler); /* relaxed */
    uint64_t by = scheduler->patrols ? jrt_clock_now_ns() + patrol_ns : until;
    return by < until ? by : until;
}

void jrt_crew_patrol(janus_scheduler *scheduler)
{
    struct jrt_worker *next = NULL;
    bool               in_set = false;
    if (jrt_likely(jrt_load_relaxed(&scheduler->beyond) == 0)) return; /* relaxed: as above. */
    jrt_lock(&scheduler->idle_lock);
    if (!scheduler->patrols && jrt_crew_is_full(scheduler)) {
        next = scheduler->keeper != NULL ? scheduler->keeper : scheduler->sleepers;
    }
    if (next != NULL) {
        scheduler->patrols = true; /* it will be the keeper */
        in_set = next->in_set;
        jrt_store_release(&next->signal, 2u); /* release: as in jrt_idle_wake_up. */
    }
    jrt_unlock(&scheduler->idle_lock);
    if (next != NULL) jrt_idle_rouse(next, in_set);
}

struct jrt_task *jrt_crew_look(struct jrt_worker *worker)
{
    janus_scheduler *scheduler = worker->scheduler;
    bool             patrols = worker->patrols;
    worker->patrols = false;
    jrt_sched_timers_fire_all(scheduler);
    if (worker->lanes == 0 && jrt_poll_look(worker)) jrt_poll_share(worker);
    struct jrt_task *task = jrt_pick(worker, false);
    if (patrols && jrt_poll_look_at_others(scheduler, worker) && task == NULL) {
        task = jrt_pick(worker, false);
    }
    for (uint32_t i = 1; i < scheduler->worker_count && task == NULL; i++) {
        task = jrt_steal_stuck(worker, (worker->index + i) % scheduler->worker_count, patrols);
    }
    return task;
}
