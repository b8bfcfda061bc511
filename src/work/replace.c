/* SPDX-License-Identifier: MIT */
/*
 * Threads that end under their workers.
 *
 * What is scheduled on is the worker: the struct with its queues, its timers' turn, its stacks. A
 * thread merely executes it. So a thread that ends is replaced by another that executes the same
 * worker; whatever is queued there stays where it is.
 *
 * [replace-doom]  a worker that is doomed does one thing more: in its loop, before it looks for
 *   work or instead of going to sleep, it leaves the loop for the thread's own stack, where the
 *   thread starts its successor and returns. Tests doom a worker from outside.
 *
 * In the middle of a task (pthread_exit, pthread_cancel) the walk up the stack is stopped where the
 * task began, [exit-boundary] in fiber/exit.c. There, on its own strand, the task yields: it is
 * queued as one that is ready, and the worker goes on in a fresh loop, doomed. Whoever takes the
 * task from the queue goes on right behind that yield, which is a panic. So its nurseries end, its
 * defers run, and the task it ran on top of goes on, all by the ways that are there already.
 *
 * [replace-join]  every thread is joined once. The worker has the one that executes it; those that
 *   were replaced are on `formers`, and are joined by the next replacement if they have ended by
 *   then, else when the scheduler stops. threads_lock guards both, and `stopping` is set under it:
 *   who finds it set starts nobody, so that the threads to be joined stay the same.
 *
 * [replace-arrive]  a thread that was started may still be refused what it needs: an alternate
 *   signal stack, or memory for its exit hook. So whoever starts it waits until it has said which,
 *   and a thread that was refused counts as one that could not be started. The word lies in the
 *   starter's frame; the thread's last touch is the count. In a world all threads are one, which
 *   has what it needs. A seat's thread is not waited for: without it the workers run its task.
 *
 * [replace-lost]  where no thread can be started, the one that ends moves what is queued to where
 *   all workers look. Then the worker counts as lost: not as one that could still find something,
 *   for those who look for a deadlock. The others try again, at most ten times a second, while
 *   they have work. If it was the last one, nobody is left to go on: it tries for a second, and
 *   then that is the end, with a sentence.
 *
 * No lock of ours is held while code that is not ours runs, so a thread cannot take one along:
 * entries and defers run without, and so do callbacks of tokens. In the latter it is the end, as
 * is a panic there: they belong to no task that could fail. Our own code has no cancellation points
 * (plat/ makes its system calls without).
 *
 * Locks: threads_lock, around starting a thread and what that takes.
 */
#include "work/replace.h"

#include "fiber/fiber.h"
#include "plat/signal.h"
#include "task/state.h"
#include "work/seat.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct jrt_former {
    struct jrt_former   *next;
    struct jrt_os_thread thread;
};

static const uint64_t revive_every_ns = 100000000;
static const uint64_t patience_ns = 1000000000; /* of the last one, [replace-lost] */
static const uint64_t pause_ns = 1000000;

static _Atomic(uint32_t) refusals; /* jrt_replacements_refuse */

/* Visible, as nothing here happens to a healthy program. */
static void say(uint32_t index, const char *what)
{
    char line[128];
    int  length = snprintf(line, sizeof line, "janusrt: worker %u: %s\n", index, what);
    (void)jrt_write_all(STDERR_FILENO, line, (size_t)length);
}

/* In the middle of a task. */

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
    jrt_store_relaxed(&worker->doomed, true); /* relaxed: our own, [replace-doom]. */
    jrt_task_move(task, JANUS_TASK_READY);
    jrt_task_leave_to_loop(worker, task);
    janus_panic(message); /* the task, or the fiber that it runs */
}

/* Coming, [replace-arrive]. */

void jrt_arrivals_tell(struct jrt_worker *worker, bool ready)
{
    struct jrt_arrivals *arrivals = worker->arrivals;
    if (arrivals == NULL) return;
    worker->arrivals = NULL;
    if (!ready) jrt_store_relaxed(&arrivals->refused, true); /* relaxed: the count follows. */
    jrt_fetch_add_acq_rel(&arrivals->came, 1u);              /* acq_rel: the last touch. */
    jrt_futex_wake(&arrivals->came, 1);                      /* it looks at the address only */
}

bool jrt_arrivals_wait(struct jrt_arrivals *arrivals, uint32_t count)
{
    uint32_t came = jrt_load_acquire(&arrivals->came); /* acquire: what was refused. */
    while (came < count) {
        jrt_futex_wait(&arrivals->came, came);
        came = jrt_load_acquire(&arrivals->came); /* acquire: as above. */
    }
    return !jrt_load_relaxed(&arrivals->refused); /* relaxed: set before the count. */
}

/* Starts a thread that executes the worker. False: it, or what it needs, was refused. */
static bool start_and_wait(struct jrt_worker *worker, const char *name)
{
    struct jrt_arrivals arrivals = {0};
    bool                waits = worker->seat == NULL && worker->scheduler->world == NULL;
    worker->arrivals = waits ? &arrivals : NULL;
    if (!jrt_os_thread_start(&worker->os_thread, jrt_worker_main, worker, name)) {
        worker->arrivals = NULL;
        return false;
    }
    if (!waits || jrt_arrivals_wait(&arrivals, 1)) return true;
    jrt_os_thread_join(&worker->os_thread);
    return false;
}

/* Starting the next; under threads_lock. */

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

static bool refused(void)
{
    uint32_t left = jrt_load_relaxed(&refusals); /* relaxed: a count; tests order the rest. */
    do {
        if (left == 0) return false;
    } while (!jrt_cas_relaxed(&refusals, &left, left - 1)); /* relaxed: as above. */
    return true;
}

/* The worker has no thread, or the calling one, which must not touch it any more once this is
 * true. */
static bool start_next(struct jrt_worker *worker)
{
    janus_scheduler   *scheduler = worker->scheduler;
    struct jrt_former *former = jrt_malloc(sizeof *former);
    join_formers(scheduler);
    bool ready = former != NULL && !refused();
    if (ready) {
        jrt_worker_must_leave(worker); /* a strand to begin with, [strand-last] */
        former->thread = worker->os_thread;
        /* relaxed, all: starting a thread orders them; its tasks find themselves counted. */
        uint64_t restarts = jrt_load_relaxed(&worker->stats.restarts);
        jrt_store_relaxed(&worker->stats.restarts, restarts + 1); /* relaxed: as above. */
        jrt_store_relaxed(&worker->doomed, false);
        /* Not later: its thread may lie down at once, and would count twice for those who look for
         * a deadlock. release: who sees it found sees it counted. */
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

/* Nobody executes this worker any more, [replace-lost]. */
static void lose(struct jrt_worker *worker)
{
    janus_scheduler *scheduler = worker->scheduler;
    say(worker->index, "its thread ended, no other could be started; the other workers go on");
    for (unsigned lane = 0; lane < JRT_LANES; lane++) {
        struct jrt_deque *both[] = {&worker->again[lane], &worker->fresh[lane]};
        for (unsigned i = 0; i < 2; i++) {
            bool             lost = false;
            struct jrt_task *task;
            /* As a thief would, oldest first; we are no worker now, so it goes to all. */
            while ((task = jrt_deque_steal(both[i], &lost)) != NULL || lost) {
                if (task != NULL) jrt_submit_outside(scheduler, task);
            }
        }
    }
    move_shelf(scheduler, &worker->again_shelf);
    move_shelf(scheduler, &worker->fresh_shelf);
    worker->lanes = 0;
    jrt_lock(&scheduler->threads_lock);
    worker->lost = true;
    jrt_fetch_add_acq_rel(&scheduler->lost, 1u); /* acq_rel: after the last task was moved. */
    jrt_unlock(&scheduler->threads_lock);
    /* Somebody must keep the timers, and look whether anything can happen at all. */
    jrt_idle_wake_all(scheduler);
}

/* The same for a seat, which has nothing queued but what was handed to it. */
static void retire_seat(struct jrt_seat *seat)
{
    janus_scheduler *scheduler = seat->worker.scheduler;
    uint32_t         index = seat->worker.index; /* once replaced it may be gone */
    if (!jrt_load_acquire(&seat->over)) {        /* acquire: [seat-end]. */
        jrt_lock(&scheduler->threads_lock);
        bool replaced = start_next(&seat->worker);
        jrt_unlock(&scheduler->threads_lock);
        say(index, replaced ? "its thread ended, another goes on"
                            : "its thread ended, no other could be started; the workers go on");
        if (replaced) return;
        jrt_seat_lose(seat);
    }
    jrt_seat_vacate(seat);
}

/* The last one: what was refused may be to be had in a moment. False: it was not. */
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
    jrt_lock(&scheduler->threads_lock);
    /* relaxed: set under the lock, [replace-join]. */
    bool stopping = jrt_load_relaxed(&scheduler->stopping);
    bool replaced = !stopping && start_next(worker);
    if (!stopping && !replaced) last = ++scheduler->threadless == scheduler->worker_count;
    jrt_unlock(&scheduler->threads_lock);
    if (stopping) return;
    if (last && !replace_last(worker)) {
        jrt_die("no thread", "the last worker's thread ended and no other could be started",
                __FILE__, __LINE__);
    }
    if (!replaced && !last) lose(worker);
    if (replaced) say(worker->index, "its thread ended, another goes on"); /* that never changes */
}

void jrt_workers_revive(janus_scheduler *scheduler)
{
    uint64_t now = jrt_clock_now_ns();
    uint64_t next = jrt_load_relaxed(&scheduler->revive_next); /* relaxed: only who tries, and */
    if (now < next) return;                                    /* when. */
    /* relaxed: as above. */
    if (!jrt_cas_relaxed(&scheduler->revive_next, &next, now + revive_every_ns)) return;
    const struct jrt_worker *revived = NULL;
    jrt_ctx_probe(); /* we may be on a task's stack; an overflow comes now or not at all */
    jrt_lock(&scheduler->threads_lock);
    for (uint32_t i = 0; i < scheduler->worker_count && revived == NULL; i++) {
        struct jrt_worker *worker = &scheduler->workers[i];
        if (!worker->lost) continue;
        if (jrt_load_relaxed(&scheduler->stopping)) break; /* relaxed: under the lock. */
        if (!start_next(worker)) break;
        worker->lost = false;
        scheduler->threadless--;
        revived = worker;
    }
    jrt_unlock(&scheduler->threads_lock);
    if (revived != NULL) say(revived->index, "has a thread again");
}

/* The end. */

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

void jrt_replacements_refuse(uint32_t count)
{
    jrt_store_relaxed(&refusals, count); /* relaxed: a count; tests order the rest. */
}
