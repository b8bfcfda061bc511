/* SPDX-License-Identifier: MIT */
/*
 * Threads that end under their workers.
 *
 * The scheduler schedules on workers: structs with their queues, their share of timers, and their
 * stacks. A thread merely executes a worker. So when a thread ends, another thread executes the
 * same worker, and all queued tasks stay where they are.
 *
 * [replace-doom]  A doomed worker does one more thing. In its loop, before it looks for work or
 *   instead of sleeping, it switches to the thread's own stack. There the thread starts its
 *   successor and returns. Tests doom a worker from outside.
 *
 * A thread may end in the middle of a task (pthread_exit, pthread_cancel). Then [exit-boundary] in
 * fiber/exit.c stops the walk up the stack where the task began. There, on its own strand, the
 * task yields: it is queued as ready, and the worker goes on in a fresh loop, doomed. The worker
 * that takes the task from the queue continues right behind that yield, with a panic. So its
 * nurseries end, its defers run, and the task it ran on top of goes on, all by existing paths.
 *
 * [replace-join]  Every thread is joined once. The worker has the thread that executes it. Replaced
 *   threads are on `formers`. The next replacement joins those that have ended by then; the stop
 *   of the scheduler joins the rest. threads_lock guards both, and `stopping` is set under it. A
 *   thread that finds `stopping` set starts no thread, so that the threads to be joined stay the
 *   same.
 *
 * [replace-arrive]  A started thread may still be refused what it needs: an alternate signal stack,
 *   or memory for its exit hook. So the starter waits until the thread has reported. A refused
 *   thread counts as a thread that could not be started. The word lies in the starter's frame; the
 *   thread's last touch is the count. In a world all threads are one, which has what it needs.
 *   Nobody waits for a seat's thread: without it the workers run its task.
 *
 * [replace-lost]  If no thread can be started, the ending thread moves its queued tasks to the
 *   queue for all workers. Then the worker counts as lost: the search for a deadlock does not
 *   expect it to find work. The others try again, at most ten times a second, while they have
 *   work. If the last worker is lost, no thread is left to go on. It tries for a second, and then
 *   the process ends, with a message.
 *
 * The library holds no lock while foreign code runs, so a thread cannot take one along. Entries,
 * defers and callbacks of tokens run without locks. A thread that ends in a callback ends the
 * process, as a panic there does: callbacks belong to no task that could fail. The library itself
 * has no cancellation points (plat/ makes its system calls without).
 *
 * Locks: threads_lock, while a thread is started and for what that takes.
 */

#include "base/refuse.h"
#include "fiber/fiber.h"
#include "plat/signal.h"
#include "task/state.h"
#include "task/task.h"
#include "task/upcalls.h"
#include "task/worker.h"
#include "work/crew.h"
#include "work/seat.h"
#include "work/work.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct jrt_former {
    struct jrt_former   *next;
    struct jrt_os_thread thread;
};

static const uint64_t revive_every_ns = 100000000;
static const uint64_t patience_ns = 1000000000; /* how long the last worker tries, [replace-lost] */
static const uint64_t pause_ns = 1000000;

static _Atomic(uint32_t) refusals; /* jrt_replacements_refuse */

/* Prints to stderr: none of this happens to a healthy program. */
static void say(uint32_t index, const char *what)
{
    char line[128];
    int  length = snprintf(line, sizeof line, "janusrt: worker %u: %s\n", index, what);
    (void)jrt_write_all(STDERR_FILENO, line, (size_t)length);
}

/* Threads that end in the middle of a task. */

static bool is_on(const struct jrt_stack *stack, const void *address)
{
    const char *at = address;
    return at >= jrt_stack_low(stack) && at < stack->top;
}

void jrt_worker_on_exit(void)
{
    static const char  message[] = "it ended its thread (pthread_exit or pthread_cancel)";
    struct jrt_worker *worker = jrt_worker_self();
    struct jrt_thread *thread = worker->thread;
    struct jrt_task   *task = worker->current;
    jrt_demand(task != NULL && thread->holding == 0,
               "a worker's thread was ended (pthread_exit, pthread_cancel) inside janusrt");
    const struct jrt_stack *stack =
        thread->current ? thread->current->stack : worker->strand->stack;
    jrt_demand(is_on(stack, __builtin_frame_address(0)),
               "a task ended its thread (pthread_exit, pthread_cancel) in a signal handler");
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    jrt_worker_must_leave(worker);
    jrt_store_relaxed(&worker->doomed, true); /* relaxed: its own, [replace-doom]. */
    jrt_task_move(task, JANUS_TASK_STATE_READY);
    (void)jrt_task_leave(worker, task, NULL, JRT_LEFT_YIELDED);
    janus_panic(message); /* the task, or the fiber that it runs */
}

/* Starting, [replace-arrive]. */

void jrt_arrivals_tell(struct jrt_worker *worker, bool ready)
{
    struct jrt_arrivals *arrivals = worker->arrivals;
    if (arrivals == NULL) return;
    worker->arrivals = NULL;
    if (!ready) jrt_store_relaxed(&arrivals->refused, true); /* relaxed: the count follows. */
    jrt_fetch_add_acq_rel(&arrivals->came, 1u);              /* acq_rel: the last touch. */
    jrt_futex_wake(&arrivals->came, 1);                      /* uses only the address */
}

bool jrt_arrivals_wait(struct jrt_arrivals *arrivals, uint32_t count)
{
    uint32_t came = jrt_load_acquire(&arrivals->came); /* acquire: what was refused. */
    while (came < count) {
        jrt_futex_wait(&arrivals->came, came);
        came = jrt_load_acquire(&arrivals->came); /* acquire: as above. */
    }
    jrt_debug_invariant("replace-arrive", came == count);
    return !jrt_load_relaxed(&arrivals->refused); /* relaxed: set before the count. */
}

/* Starts a thread that executes the worker. False: the thread, or what it needs, was refused. */
static bool start_and_wait(struct jrt_worker *worker, const char *name)
{
    struct jrt_arrivals arrivals = {0};
    bool                waits = worker->seat == NULL && worker->scheduler->world == NULL;
    worker->arrivals = waits ? &arrivals : NULL;
    if (!jrt_os_thread_start(&worker->os_thread, jrt_upcalls.worker_main, worker, name)) {
        worker->arrivals = NULL;
        return false;
    }
    if (!waits || jrt_arrivals_wait(&arrivals, 1)) return true;
    jrt_os_thread_join(&worker->os_thread);
    return false;
}

/* Starting a successor; under threads_lock. */

static void join_formers(janus_scheduler *scheduler)
{
    struct jrt_former **at = &scheduler->formers;
    while (*at != NULL) {
        struct jrt_former *former = *at;
        if (!jrt_os_thread_try_join(&former->thread)) {
            at = &former->next;
            continue;
        }
        *at = former->next;
        free(former);
    }
}

/* Starts a successor for a worker without a thread, or for the calling thread's worker. True: the
 * caller must not touch the worker any more. */
static bool start_next(struct jrt_worker *worker)
{
    janus_scheduler   *scheduler = worker->scheduler;
    struct jrt_former *former = jrt_malloc(sizeof *former);
    /* relaxed: set under the lock that we have. */
    jrt_debug_invariant("replace-join", !jrt_load_relaxed(&scheduler->stopping));
    join_formers(scheduler);
    bool ready = former != NULL && !jrt_refused(&refusals);
    if (ready) {
        jrt_worker_must_leave(worker); /* its first strand, [strand-last] */
        former->thread = worker->os_thread;
        /* relaxed, all: starting a thread orders them. Its tasks find themselves counted. */
        uint64_t restarts = jrt_load_relaxed(&worker->stats.restarts);
        jrt_store_relaxed(&worker->stats.restarts, restarts + 1); /* relaxed: as above. */
        jrt_store_relaxed(&worker->doomed, false);
        /* Not later: its thread may lie down at once, and would count twice in the search for a
         * deadlock. release: a thread that sees it found sees it counted. */
        if (worker->lost) jrt_fetch_sub_release(&scheduler->lost, 1u);
        ready = start_and_wait(worker, former->thread.name);
        if (!ready) {
            if (worker->lost) jrt_fetch_add_relaxed(&scheduler->lost, 1u); /* relaxed: as it was. */
            worker->os_thread = former->thread;
            jrt_store_relaxed(&worker->stats.restarts, restarts); /* relaxed: as above. */
        }
    }
    if (!ready) {
        free(former);
        return false;
    }
    former->next = scheduler->formers;
    scheduler->formers = former;
    return true;
}

static void move_shelf(janus_scheduler *scheduler, struct jrt_shelf *shelf)
{
    struct jrt_task *task;
    while ((task = jrt_shelf_pop_oldest(shelf)) != NULL) jrt_submit_outside(scheduler, task);
}

static bool has_nothing_queued(const struct jrt_worker *worker)
{
    uint64_t count = 0;
    for (unsigned lane = 0; lane < JRT_LANES; lane++) {
        count += jrt_count_fresh(worker, lane) + jrt_count_again(worker, lane);
    }
    return count == 0;
}

/* Handles the loss of a worker: no thread executes it any more, [replace-lost]. */
static void lose(struct jrt_worker *worker)
{
    janus_scheduler *scheduler = worker->scheduler;
    say(worker->index,
        "its thread ended and no new one could be started; the other workers run its tasks");
    for (unsigned lane = 0; lane < JRT_LANES; lane++) {
        struct jrt_deque *both[] = {&worker->again[lane], &worker->fresh[lane]};
        for (unsigned i = 0; i < 2; i++) {
            bool             lost = false;
            struct jrt_task *task;
            /* Steals the tasks, oldest first. This thread is no worker now, so they go to all. */
            while ((task = jrt_deque_steal(both[i], &lost)) != NULL || lost) {
                if (task != NULL) jrt_submit_outside(scheduler, task);
            }
        }
    }
    move_shelf(scheduler, &worker->again_shelf);
    move_shelf(scheduler, &worker->fresh_shelf);
    jrt_debug_invariant("replace-lost", has_nothing_queued(worker));
    worker->lanes = 0;
    jrt_lock(&scheduler->threads_lock);
    worker->lost = true;
    jrt_fetch_add_acq_rel(&scheduler->lost, 1u); /* acq_rel: after the last task was moved. */
    jrt_unlock(&scheduler->threads_lock);
    jrt_crew_lost(scheduler);
    /* Another worker must keep the timers, and check for a deadlock. */
    jrt_idle_wake_all(scheduler);
}

/* Retires a seat, which has nothing queued but the task handed to it. */
static void retire_seat(struct jrt_seat *seat)
{
    janus_scheduler *scheduler = seat->worker.scheduler;
    uint32_t         index = seat->worker.index; /* once replaced it may be gone */
    if (!jrt_load_acquire(&seat->over)) {        /* acquire: [seat-end]. */
        jrt_lock(&scheduler->threads_lock);
        bool replaced = start_next(&seat->worker);
        jrt_unlock(&scheduler->threads_lock);
        say(index,
            replaced
                ? "its thread ended; a new thread continues"
                : "its thread ended and no new one could be started; the workers run its task");
        if (replaced) return;
        jrt_seat_lose(seat);
    }
    jrt_seat_vacate(seat);
}

/* Tries again for the last worker: the system may give in a moment what it refused. False: it did
 * not. */
static bool replace_last(struct jrt_worker *worker)
{
    janus_scheduler  *scheduler = worker->scheduler;
    uint64_t          now = jrt_clock_now_ns(), limit = now + patience_ns;
    _Atomic(uint32_t) nobody = 0;
    bool              done = false;
    for (; !done && now < limit; now = jrt_clock_now_ns()) {
        (void)jrt_futex_wait_until(&nobody, 0, now + pause_ns);
        jrt_lock(&scheduler->threads_lock);
        /* relaxed: set under the lock, [replace-join]. */
        bool stopping = jrt_load_relaxed(&scheduler->stopping);
        done = stopping || start_next(worker);
        if (done && !stopping) scheduler->threadless--;
        jrt_unlock(&scheduler->threads_lock);
    }
    return done;
}

void jrt_worker_retire(struct jrt_worker *worker)
{
    if (worker->seat != NULL) {
        retire_seat(worker->seat);
        return;
    }
    janus_scheduler *scheduler = worker->scheduler;
    bool             last = false;
    jrt_debug_invariant("replace-doom", worker->current == NULL && worker->handoff == NULL);
    jrt_lock(&scheduler->threads_lock);
    /* relaxed: set under the lock, [replace-join]. */
    bool stopping = jrt_load_relaxed(&scheduler->stopping);
    bool replaced = !stopping && start_next(worker);
    if (!stopping && !replaced) last = ++scheduler->threadless == scheduler->worker_count;
    jrt_unlock(&scheduler->threads_lock);
    if (stopping) return;
    if (last && !replace_last(worker)) {
        jrt_die("no thread",
                "the last worker's thread ended and no new one could be started; raise the limit "
                "of threads",
                __FILE__, __LINE__);
    }
    if (!replaced && !last) lose(worker);
    /* The index never changes. */
    if (replaced) say(worker->index, "its thread ended; a new thread continues");
}

void jrt_workers_revive(janus_scheduler *scheduler)
{
    uint64_t now = jrt_clock_now_ns();
    /* relaxed: it only decides which thread tries, and when. */
    uint64_t next = jrt_load_relaxed(&scheduler->revive_next);
    if (now < next) return;
    /* relaxed: as above. */
    if (!jrt_cas_relaxed(&scheduler->revive_next, &next, now + revive_every_ns)) return;
    const struct jrt_worker *revived = NULL;
    jrt_ctx_probe(); /* this may be a task's stack; an overflow comes now or not at all */
    jrt_lock(&scheduler->threads_lock);
    for (uint32_t i = 0; i < scheduler->worker_count && revived == NULL; i++) {
        struct jrt_worker *worker = &scheduler->workers[i];
        if (!worker->lost) continue;
        if (jrt_load_relaxed(&scheduler->stopping)) break; /* relaxed: under the lock. */
        if (!start_next(worker)) break;
        worker->lost = false;
        jrt_debug_invariant("replace-lost", scheduler->threadless > 0);
        scheduler->threadless--;
        revived = worker;
    }
    jrt_unlock(&scheduler->threads_lock);
    if (revived != NULL) say(revived->index, "has a thread again");
}

/* Ending. */

void jrt_workers_end(janus_scheduler *scheduler, uint32_t count)
{
    jrt_lock(&scheduler->threads_lock);            /* [replace-join] */
    jrt_store_release(&scheduler->stopping, true); /* release: pairs with jrt_idle. */
    jrt_unlock(&scheduler->threads_lock);
    jrt_fence_heavy_seq_cst(); /* seq_cst: as [idle-submit], for workers that lie down now. */
    jrt_idle_wake_all(scheduler);
    for (uint32_t i = 0; i < count; i++) jrt_os_thread_join(&scheduler->workers[i].os_thread);
    jrt_seats_end(scheduler);
    while (scheduler->formers != NULL) {
        struct jrt_former *former = scheduler->formers;
        scheduler->formers = former->next;
        jrt_os_thread_join(&former->thread);
        free(former);
    }
}

/* For tests. */

void jrt_worker_doom(janus_scheduler *scheduler, uint32_t index)
{
    struct jrt_worker *worker = &scheduler->workers[index];
    jrt_store_relaxed(&worker->doomed, true); /* relaxed: the fence follows. */
    jrt_fence_heavy_seq_cst(); /* seq_cst: as [idle-submit], for a worker that lies down now. */
    jrt_store_release(&worker->signal, 2u); /* release: it gets up and finds itself doomed. */
    jrt_futex_wake(&worker->signal, 1);
}

void jrt_replacements_refuse(uint32_t count) { jrt_refuse(&refusals, count); }
