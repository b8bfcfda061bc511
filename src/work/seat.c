/* SPDX-License-Identifier: MIT */
/*
 * Seats: backend THREADED. A child has a thread of its own. On it run only the child and what it
 * runs synchronously (backend BLOCKING inside).
 *
 * A seat is a worker that is in no list of workers. Nobody steals from it, and it takes nothing
 * from the queue for all. Its thread executes the same loop. So all calls work there as they do
 * elsewhere. When the task waits, the loop sleeps until the task is ready again.
 *
 * [seat-lane]  A task that belongs to a seat has a bit in its lane. The bit takes it off the fast
 *   paths into queues, so no other task pays for the question. The seat's own queues hold nothing.
 *   So tasks that a seat's thread makes ready for others leave the fast paths, too, and go to the
 *   queue for all.
 *
 * [seat-one]  At most one task of a seat is ready at a time. The seat was made for one task. On top
 *   of it, or on another strand for which it waits, is a child that it runs synchronously, and so
 *   on. All but the last of these wait for the next.
 *
 * [seat-hand]  The worker's signal hands tasks over:
 *
 *     EMPTY   -> HANDED  the thread that readied the task, after writing `handed`: its last touch
 *     HANDED  -> EMPTY   the seat's thread, after it read `handed`
 *     any     -> GONE    the thread ends in the middle and cannot be replaced; a handed task is
 *                        queued for all
 *
 *   A thread that finds GONE queues the task for all. By [seat-one] there is one hander at a time.
 *   The handed task has not ended, so the seat exists until HANDED is written. models/seat.pml
 *   tries all orders.
 *
 * [seat-outside]  A seat whose thread does not sleep can act although no worker runs, so it counts
 *   in `outside`. It counts from its making, or from the moment a task is handed to it, until its
 *   thread has nothing to do. The hander counts it. So a deadlock is found when all workers and
 *   all seats sleep, and not before.
 *
 * The workers keep the timers. They may be busy with something long, so a seat's thread also wakes
 * up when a timer is due that it has armed itself.
 *
 * [seat-end]  `over`: nobody will come back. `vacant`: the thread is about to return. A seat that
 *   is over and vacant is freed when the next is made, otherwise at scheduler stop, which comes
 *   after the last task. A seat's own thread closes it as its last work, so all its resources are
 *   back before that.
 *
 * Locks: seats_lock, under which no other lock is taken.
 */
#include "work/seat.h"

#include "base/refuse.h"
#include "task/nursery.h"
#include "task/purse.h"
#include "task/task.h"
#include "task/upcalls.h"
#include "task/worker.h"
#include "work/work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 60000 }; /* of seats, after those of the workers; they fit task->worker */

static _Atomic(uint32_t) refusals; /* jrt_seats_refuse */

void jrt_seats_refuse(uint32_t count) { jrt_refuse(&refusals, count); }

/* Making. */

static bool has_ended(const struct jrt_seat *seat)
{
    /* acquire, both: what was done with it came before. */
    return jrt_load_acquire(&seat->vacant) && jrt_load_acquire(&seat->over); /* acquire */
}

/* Frees the seats that nobody needs any more, [seat-end]. */
static void reap(janus_scheduler *scheduler)
{
    jrt_lock(&scheduler->seats_lock);
    struct jrt_list_node *node = scheduler->seats.next;
    while (node != &scheduler->seats) {
        struct jrt_seat *seat = jrt_list_entry(node, struct jrt_seat, link);
        node = node->next;
        if (!has_ended(seat) || !jrt_os_thread_try_join(&seat->worker.os_thread)) continue;
        jrt_list_remove(&seat->link);
        free(seat);
    }
    jrt_unlock(&scheduler->seats_lock);
}

static struct jrt_seat *make(janus_scheduler *scheduler)
{
    struct jrt_seat *seat = jrt_aligned_alloc(64, (sizeof *seat + 63) / 64 * 64);
    if (seat == NULL) return NULL;
    memset(seat, 0, sizeof *seat);
    struct jrt_worker *worker = &seat->worker;
    worker->scheduler = scheduler;
    worker->seat = seat;
    worker->alone = true; /* nobody steals from it */
    seat->wake_ns = JRT_NEVER;
    if (jrt_upcalls.worker_open(worker)) return seat;
    jrt_upcalls.worker_close(worker);
    free(seat);
    return NULL;
}

/* Adds the seat to the list that dumps use. */
static void enlist(struct jrt_seat *seat, janus_scheduler *scheduler)
{
    jrt_lock(&scheduler->seats_lock);
    seat->worker.index = scheduler->worker_count + scheduler->seats_made++ % NUMBERS;
    jrt_rng_seed(&seat->worker.choices, seat->worker.index);
    jrt_list_push_front(&scheduler->seats, &seat->link);
    jrt_unlock(&scheduler->seats_lock);
}

static void unmake(struct jrt_seat *seat, janus_scheduler *scheduler)
{
    jrt_lock(&scheduler->seats_lock);
    jrt_list_remove(&seat->link);
    jrt_unlock(&scheduler->seats_lock);
    jrt_upcalls.worker_close(&seat->worker);
    free(seat);
}

struct jrt_seat *jrt_seat_open(janus_scheduler *scheduler)
{
    char name[24];
    reap(scheduler);
    if (jrt_refused(&refusals)) return NULL;
    struct jrt_seat *seat = make(scheduler);
    if (seat == NULL) return NULL;
    enlist(seat, scheduler);
    struct jrt_worker *worker = &seat->worker;
    snprintf(name, sizeof name, "janus-t%u", worker->index);
    jrt_fetch_add_relaxed(&scheduler->outside, 1u); /* relaxed: a count, [seat-outside]. */
    if (jrt_os_thread_start(&worker->os_thread, jrt_upcalls.worker_main, worker, name)) return seat;
    jrt_outside_less(scheduler);
    unmake(seat, scheduler);
    return NULL;
}

void jrt_seat_assign(struct jrt_seat *seat, struct jrt_task *task)
{
    if (seat->task == NULL) seat->task = task;
    task->purse->seat = seat;
    task->lane |= JRT_LANE_SEATED;
}

/* Handing. */

void jrt_seat_hand(struct jrt_task *task)
{
    struct jrt_seat *seat = task->purse->seat;
    janus_scheduler *scheduler = task->nursery->scheduler;
    uint32_t         signal = JRT_SEAT_EMPTY;
    jrt_fetch_add_relaxed(&scheduler->outside, 1u); /* relaxed: a count, [seat-outside]. */
    seat->handed = task;
    /* acq_rel: the handed task, and the thread's read of the one before. */
    if (jrt_cas_acq_rel(&seat->worker.signal, &signal, (uint32_t)JRT_SEAT_HANDED)) {
        /* The seat may be gone: only the address is used. */
        jrt_futex_wake(&seat->worker.signal, 1);
        return;
    }
    jrt_invariant("seat-one", signal == JRT_SEAT_GONE);
    jrt_submit_to_all(scheduler, task);
    jrt_outside_less(scheduler);
}

void jrt_seat_over(struct jrt_seat *seat)
{
    jrt_store_release(&seat->over, true); /* release: [seat-end]. */
}

struct jrt_task *jrt_seat_idle(struct jrt_worker *worker)
{
    struct jrt_seat *seat = worker->seat;
    janus_scheduler *scheduler = worker->scheduler;
    jrt_outside_less(scheduler);                              /* [seat-outside] */
    uint32_t signal = jrt_load_acquire(&seat->worker.signal); /* acquire: what was handed. */
    while (signal == JRT_SEAT_EMPTY) {
        if (jrt_load_acquire(&seat->over)) return NULL; /* acquire: as in reap. */
        jrt_count(&worker->stats.parks);
        if (!jrt_futex_wait_until(&worker->signal, JRT_SEAT_EMPTY, seat->wake_ns)) {
            /* relaxed: a count, [seat-outside]. */
            jrt_fetch_add_relaxed(&scheduler->outside, 1u);
            jrt_fence_light_seq_cst(); /* seq_cst: before a set's `next` changes; jrt_idle_stuck. */
            jrt_sched_timers_fire_all(scheduler);
            jrt_outside_less(scheduler);
            seat->wake_ns = jrt_sched_timers_next(scheduler); /* a hint: the workers look, too */
        }
        signal = jrt_load_acquire(&seat->worker.signal); /* acquire: what was handed. */
    }
    struct jrt_task *task = seat->handed;
    /* release: `handed` was read. The next hander writes it, [seat-one]. */
    jrt_store_release(&worker->signal, (uint32_t)JRT_SEAT_EMPTY);
    return task;
}

/* Ending. */

void jrt_seat_lose(struct jrt_seat *seat)
{
    janus_scheduler *scheduler = seat->worker.scheduler;
    /* acq_rel: the handed task. A thread that finds GONE does without this seat. */
    uint32_t signal = jrt_exchange_acq_rel(&seat->worker.signal, (uint32_t)JRT_SEAT_GONE);
    if (signal == JRT_SEAT_HANDED) {
        jrt_submit_to_all(scheduler, seat->handed);
        jrt_outside_less(scheduler); /* counted by its hander */
    }
    jrt_outside_less(scheduler);
}

static void add(_Atomic(uint64_t) *sum, const _Atomic(uint64_t) *part)
{
    /* relaxed, both: numbers to show. */
    jrt_fetch_add_relaxed(sum, jrt_load_relaxed(part));
}

void jrt_seat_vacate(struct jrt_seat *seat)
{
    struct jrt_worker       *worker = &seat->worker;
    struct jrt_counts       *sum = &worker->scheduler->seat_stats;
    const struct jrt_counts *mine = &worker->stats;
    add(&sum->tasks_executed, &mine->tasks_executed);
    add(&sum->tasks_by_loop, &mine->tasks_by_loop);
    add(&sum->tasks_cancelled, &mine->tasks_cancelled);
    add(&sum->switches, &mine->switches);
    add(&sum->parks, &mine->parks);
    add(&sum->yields, &mine->yields);
    add(&sum->restarts, &mine->restarts);
    add(&sum->exhaustions, &mine->exhaustions);
    add(&sum->recharges, &mine->recharges);
    add(&sum->refusals, &mine->refusals);
    jrt_upcalls.worker_close(worker);
    jrt_store_release(&seat->vacant, true); /* release: [seat-end]. */
}

void jrt_seats_end(janus_scheduler *scheduler)
{
    /* Without the lock: only a counted child makes a seat, and no child is left. */
    struct jrt_list_node *node = scheduler->seats.next;
    while (node != &scheduler->seats) {
        struct jrt_seat *seat = jrt_list_entry(node, struct jrt_seat, link);
        node = node->next;
        jrt_os_thread_join(&seat->worker.os_thread);
        free(seat);
    }
    jrt_list_init(&scheduler->seats);
}
