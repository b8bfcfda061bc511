/* SPDX-License-Identifier: MIT */
/*
 * Seats: backend THREADED. A child has a thread of its own, on which nothing runs but the child and
 * what it runs synchronously (backend BLOCKING inside).
 *
 * A seat is a worker that is in no list of workers: nobody steals from it, and it takes nothing
 * that was queued for all. Its thread executes the same loop. So all calls work there as they do
 * elsewhere: when the task waits, the loop goes to sleep until the task is ready again.
 *
 * [seat-lane]  a task that belongs to a seat has a bit in its lane, by which it leaves the fast
 *   ways into queues: no other task pays for the question. The seat's own queues have no place for
 *   anything, so what is made ready by a seat's thread for others leaves the fast ways there, too,
 *   and goes to the queue for everybody.
 *
 * [seat-one]  at most one task of a seat is ready at a time. There is the task it was made for; on
 *   top of it, or on another strand for which it waits, a child that it runs synchronously, and so
 *   on. All but the last of these wait for the next.
 *
 * [seat-hand]  by the worker's signal:
 *
 *     EMPTY   -> HANDED  whoever made the task ready, having written `handed`: its last touch
 *     HANDED  -> EMPTY   the seat's thread, having read `handed`
 *     any     -> GONE    its thread ends in the middle and cannot be replaced; what was handed is
 *                        queued for all
 *
 *   Who finds GONE queues the task for all. By [seat-one] there is one hander at a time,
 *   and as the task that is handed has not ended, the seat is there until HANDED is written.
 *   models/seat.pml tries all orders.
 *
 * [seat-outside]  a seat whose thread does not sleep is one who can act though no worker runs, and
 *   counts in `outside`: from its making, or from the moment a task is handed, counted by the
 *   hander, until its thread has nothing to do. So a deadlock is seen when all workers and all
 *   seats sleep, and not before.
 *
 * Timers are kept by the workers. As these may be busy with something long, a seat's thread also
 * wakes up when a timer is due that it has armed itself.
 *
 * [seat-end]  `over`: nobody will come back. `vacant`: the thread is about to return. Seats of
 *   which both is true are joined and freed when the next is made, the others when the scheduler
 *   stops, which it does after the last task. Closing a seat is its own thread's last work, so
 *   what it had at hand is back before that.
 *
 * Locks: seats_lock, inside of which none is taken.
 */
#include "work/seat.h"

#include "task/nursery.h"
#include "task/purse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 60000 }; /* of seats, behind those of the workers; they fit task->worker */

static _Atomic(uint32_t) refusals; /* jrt_seats_refuse */

void jrt_seats_refuse(uint32_t count)
{
    jrt_store_relaxed(&refusals, count); /* relaxed: a count; tests order the rest. */
}

static bool refused(void)
{
    uint32_t left = jrt_load_relaxed(&refusals); /* relaxed: a count; tests order the rest. */
    do {
        if (left == 0) return false;
    } while (!jrt_cas_relaxed(&refusals, &left, left - 1)); /* relaxed: as above. */
    return true;
}

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
    if (jrt_worker_open(worker)) return seat;
    jrt_worker_close(worker);
    free(seat);
    return NULL;
}

/* Where dumps find it. */
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
    jrt_worker_close(&seat->worker);
    free(seat);
}

struct jrt_seat *jrt_seat_open(janus_scheduler *scheduler)
{
    char name[24];
    reap(scheduler);
    if (refused()) return NULL;
    struct jrt_seat *seat = make(scheduler);
    if (seat == NULL) return NULL;
    enlist(seat, scheduler);
    struct jrt_worker *worker = &seat->worker;
    snprintf(name, sizeof name, "janus-t%u", worker->index);
    jrt_fetch_add_relaxed(&scheduler->outside, 1u); /* relaxed: a count, [seat-outside]. */
    if (jrt_os_thread_start(&worker->os_thread, jrt_worker_main, worker, name)) return seat;
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
    /* acq_rel: what is handed; its thread's reading of what was handed before. */
    if (jrt_cas_acq_rel(&seat->worker.signal, &signal, (uint32_t)JRT_SEAT_HANDED)) {
        jrt_futex_wake(&seat->worker.signal, 1); /* the seat may be gone: only the address */
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
            jrt_sched_timers_fire(scheduler);
            /* relaxed: a hint; the workers look too. */
            seat->wake_ns = jrt_load_relaxed(&scheduler->timer_next);
        }
        signal = jrt_load_acquire(&seat->worker.signal); /* acquire: what was handed. */
    }
    struct jrt_task *task = seat->handed;
    /* release: we have read it; the next hander writes it, [seat-one]. */
    jrt_store_release(&worker->signal, (uint32_t)JRT_SEAT_EMPTY);
    return task;
}

/* Ending. */

void jrt_seat_lose(struct jrt_seat *seat)
{
    janus_scheduler *scheduler = seat->worker.scheduler;
    /* acq_rel: what was handed; who finds it GONE does without us. */
    uint32_t signal = jrt_exchange_acq_rel(&seat->worker.signal, (uint32_t)JRT_SEAT_GONE);
    if (signal == JRT_SEAT_HANDED) {
        jrt_submit_to_all(scheduler, seat->handed);
        jrt_outside_less(scheduler); /* its hander's */
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
    jrt_worker_close(worker);
    jrt_store_release(&seat->vacant, true); /* release: [seat-end]. */
}

void jrt_seats_end(janus_scheduler *scheduler)
{
    /* Without the lock: whoever makes one has a child that is counted, and there is none. */
    struct jrt_list_node *node = scheduler->seats.next;
    while (node != &scheduler->seats) {
        struct jrt_seat *seat = jrt_list_entry(node, struct jrt_seat, link);
        node = node->next;
        jrt_os_thread_join(&seat->worker.os_thread);
        free(seat);
    }
    jrt_list_init(&scheduler->seats);
}
