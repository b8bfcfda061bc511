/* SPDX-License-Identifier: MIT */
/*
 * Executors: one program, run in three ways.
 *
 *     COOPERATIVE  a child is queued; any worker runs it
 *     BLOCKING     a child runs to its end before its spawn returns
 *     THREADED     a child has a thread of its own, seat.c
 *
 * The same code counts, limits, charges and ends a child under all backends. A backend only
 * decides where the child runs, and when its spawner goes on.
 *
 * The backend takes what it needs after the nursery has counted the child. From then on the
 * scheduler does not stop before the child has ended, or is refused.
 *
 * BLOCKING. A spawning task runs the child on top of itself, as an awaiting owner does
 * (nursery.c). If the child waits, the strand waits with it. If the stack has no room, or the
 * spawner is in a fiber, the child is queued and the spawner waits for it. A plain thread always
 * waits. This wait cannot be interrupted: whatever cancels the spawner either cancels the child
 * too or does not concern it.
 *
 * [launch-tell]  The runner lies in the spawner's frame. The child's last worker reads it from the
 *   purse, closes the purse and makes room for other children. Then it tells the runner, once: it
 *   wakes the task, or changes the word. Both are the last touch.
 *
 * An owner that runs children in this way cannot recharge an exhausted child. Such a child ends as
 * if its owner awaited it ([exhaust-await]).
 *
 * THREADED. A thread counts while its child lives. It counts for the scheduler and for all terms
 * around that have a limit of their own: for all of them or for none.
 */
#include "nursery/executor.h"

#include "cancel/wait.h"
#include "means/terms.h"
#include "means/trouble.h"
#include "nursery/nursery.h"
#include "nursery/run.h"
#include "task/nursery.h"
#include "task/purse.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/seat.h"
#include "work/work.h"

/* Threads. */

static bool count_up(_Atomic(uint32_t) *count, uint32_t max)
{
    uint32_t now = jrt_load_relaxed(count); /* relaxed: a count. It guards no memory. */
    do {
        if (now >= max) return false;
    } while (!jrt_cas_relaxed(count, &now, now + 1)); /* relaxed: as above. */
    return true;
}

/* The number of threads that these terms allow; 0: they do not count. A pool counts its threads
 * alone, so a full pool refuses nobody in another. */
static uint32_t threads_limit(const janus_scheduler *scheduler, const struct jrt_terms *terms)
{
    if (terms->max_threads != 0) return terms->max_threads;
    return terms->owns_account ? scheduler->max_threads : 0;
}

/* Returns what was taken in `terms` and around them, up to `end`. */
static void threads_give(const janus_scheduler *scheduler, struct jrt_terms *terms,
                         const struct jrt_terms *end)
{
    for (; terms != end; terms = terms->outer) {
        /* relaxed: a count. */
        if (threads_limit(scheduler, terms) != 0) jrt_fetch_sub_relaxed(&terms->threads, 1u);
    }
}

static janus_status threads_take(struct jrt_nursery *n)
{
    janus_scheduler *scheduler = n->scheduler;
    uint32_t         max = scheduler->max_threads;
    bool             pooled = jrt_terms_in_pool(n->terms);
    if (!pooled && !count_up(&scheduler->threads, max)) {
        return jrt_trouble_full(JANUS_FULL, JRT_TABLE_THREADS, NULL, max, max);
    }
    for (struct jrt_terms *at = n->terms; at != NULL; at = at->outer) {
        max = threads_limit(scheduler, at);
        if (max == 0 || count_up(&at->threads, max)) continue;
        threads_give(scheduler, n->terms, at);
        if (!pooled) jrt_fetch_sub_relaxed(&scheduler->threads, 1u); /* relaxed: a count. */
        return jrt_trouble_full(JANUS_FULL, JRT_TABLE_THREADS, at, max, max);
    }
    return JANUS_OK;
}

static void threads_give_all(struct jrt_nursery *n)
{
    threads_give(n->scheduler, n->terms, NULL);
    /* relaxed: a count. */
    if (!jrt_terms_in_pool(n->terms)) jrt_fetch_sub_relaxed(&n->scheduler->threads, 1u);
}

static janus_status prepare_seat(struct jrt_launch *launch, struct jrt_nursery *n,
                                 struct jrt_task *task)
{
    janus_status status = threads_take(n);
    if (status != JANUS_OK) return status;
    struct jrt_seat *seat = jrt_seat_open(n->scheduler);
    if (seat == NULL) {
        threads_give_all(n);
        return JANUS_NO_MEMORY;
    }
    launch->how = JRT_LAUNCH_SEATED;
    jrt_seat_assign(seat, task);
    return JANUS_OK;
}

/* BLOCKING. */

static janus_status prepare_to_wait(struct jrt_launch *launch, struct jrt_nursery *n,
                                    struct jrt_worker *worker, struct jrt_task *task)
{
    launch->how = JRT_LAUNCH_AWAITED;
    launch->runner.task = NULL;
    jrt_store_relaxed(&launch->runner.ended, 0u); /* relaxed: nobody knows it yet. */
    task->purse->runner = &launch->runner;
    if (worker == NULL) {
        /* A callback may lie on a worker that the child needs. */
        const struct jrt_thread *thread = jrt_thread_self();
        bool                     may_wait =
            !thread->calls_back && (jrt_nursery_is_mine(n) || thread->helps == n->scheduler);
        return may_wait ? JANUS_OK : JANUS_STATE;
    }
    if (worker->scheduler != n->scheduler) return JANUS_STATE;
    launch->runner.task = worker->current;
    return jrt_worker_can_leave(worker) ? JANUS_OK : JANUS_NO_MEMORY;
}

static janus_status prepare_blocking(struct jrt_launch *launch, struct jrt_nursery *n,
                                     struct jrt_worker *worker, struct jrt_task *task)
{
    if (worker != NULL && worker->seat != NULL) jrt_seat_assign(worker->seat, task);
    if (worker == NULL || worker->scheduler != n->scheduler || worker->thread->current != NULL ||
        !jrt_worker_has_room(worker, task)) {
        return prepare_to_wait(launch, n, worker, task);
    }
    launch->how = JRT_LAUNCH_IN_PLACE;
    return JANUS_OK;
}

static void submit(struct jrt_nursery *n, struct jrt_worker *worker, struct jrt_task *task)
{
    if (worker != NULL && worker->scheduler == n->scheduler) {
        jrt_submit_fresh(worker, task);
    } else {
        jrt_submit_outside(n->scheduler, task);
    }
}

static void run_in_place(struct jrt_nursery *n, struct jrt_worker *worker, struct jrt_task *task)
{
    struct jrt_task *spawner = worker->current;
    int              error = *worker->error_at; /* [task-errno] */
    worker = jrt_task_run(worker, task, n, spawner);
    *worker->error_at = error;
    if (jrt_unlikely(jrt_others_wait(worker))) jrt_task_give_way(worker, spawner);
}

struct run_wait {
    struct jrt_waiting  waiting; /* first */
    struct jrt_nursery *nursery;
    struct jrt_worker  *worker;
    struct jrt_task    *child;
};

static janus_status submit_child(struct jrt_waiting *waiting, struct jrt_task *task)
{
    const struct run_wait *wait = (struct run_wait *)waiting;
    (void)task;
    submit(wait->nursery, wait->worker, wait->child);
    return JANUS_WOULD_WAIT;
}

static janus_status child_ended(struct jrt_waiting *waiting, struct jrt_task *task,
                                janus_status ended)
{
    (void)waiting, (void)task;
    return ended;
}

static void run_and_wait(struct jrt_launch *launch, struct jrt_nursery *n,
                         struct jrt_worker *worker, struct jrt_task *task)
{
    struct jrt_runner *runner = &launch->runner;
    struct run_wait    wait = {.waiting = {.why = JRT_WAIT_RUN,
                                           .to_its_end = true,
                                           .deadline_ns = JRT_NEVER,
                                           .join = submit_child,
                                           .leave = child_ended},
                               .nursery = n,
                               .worker = worker,
                               .child = task};
    if (runner->task != NULL) {
        (void)jrt_wait(worker, &wait.waiting);
        return;
    }
    bool mine = jrt_nursery_is_mine(n); /* otherwise a blocking call, which is counted itself */
    submit(n, worker, task);
    if (mine) jrt_nursery_thread_waits(n);
    (void)jrt_wait_as_thread(&runner->ended, JRT_NEVER);
    if (mine) jrt_nursery_thread_goes_on(n);
}

/* All backends. */

janus_status jrt_launch_prepare(struct jrt_launch *launch, struct jrt_nursery *n,
                                struct jrt_worker *worker, struct jrt_task *task)
{
    launch->how = JRT_LAUNCH_QUEUED;
    janus_backend backend =
        n->terms != NULL ? (janus_backend)n->terms->backend : JANUS_BACKEND_COOPERATIVE;
    if (jrt_backend_on_workers(backend)) return JANUS_OK;
    const struct jrt_admission implicit = {.share = n->scheduler->task_budget};
    if (task->purse == NULL && jrt_purse_make(task, &implicit) == NULL) return JANUS_NO_MEMORY;
    if (backend == JANUS_BACKEND_THREADED) return prepare_seat(launch, n, task);
    return prepare_blocking(launch, n, worker, task);
}

void jrt_launch(struct jrt_launch *launch, struct jrt_nursery *n, struct jrt_worker *worker,
                struct jrt_task *task)
{
    switch (launch->how) {
    case JRT_LAUNCH_QUEUED: submit(n, worker, task); break;
    case JRT_LAUNCH_IN_PLACE: run_in_place(n, worker, task); break;
    case JRT_LAUNCH_AWAITED: run_and_wait(launch, n, worker, task); break;
    case JRT_LAUNCH_SEATED: jrt_seat_hand(task); break;
    }
}

struct jrt_runner *jrt_launch_ended(const struct jrt_task *task)
{
    const struct jrt_purse *purse = task->purse;
    if (purse->seat != NULL && purse->seat->task == task) {
        threads_give_all(task->nursery);
        jrt_seat_over(purse->seat);
    }
    return purse->runner;
}

void jrt_runner_tell(struct jrt_runner *runner)
{
    if (runner->task != NULL) {
        bool woken = jrt_task_wake(runner->task, JANUS_OK); /* nobody else may end that wait */
        jrt_debug_invariant("launch-tell", woken);
        return;
    }
    /* relaxed: only we write it. */
    jrt_debug_invariant("launch-tell", jrt_load_relaxed(&runner->ended) == 0);
    jrt_store_release(&runner->ended, 1u); /* release: what the child wrote. */
    jrt_futex_wake(&runner->ended, 1);
}
