/* SPDX-License-Identifier: MIT */
/*
 * Herds.
 *
 * [herd-gather]  Tasks that do little between two operations on one channel are slower on two
 *   workers than on one. The channel's cache lines move at every operation, and each move takes as
 *   long as several operations. So such tasks gather on one worker.
 *   - A channel knows the worker that entered it last. A worker counts how often it comes where
 *     another worker was before, and for how long it waits to enter.
 *   - At each look at the clock ([queue-pace]) it judges the current task. The task herds if it
 *     met another worker, or waited, for a good part of the last operations, and an operation
 *     took less than FIGHT_NS without the waiting. A task that computes more than that between
 *     two operations gains by a second worker. A task that herded goes on to herd while its
 *     operations are as short, because on one worker it meets nobody.
 *   - When a worker's task herds and all tasks that wait there herd, too, the worker retreats as
 *     soon as the task waits. It offers its tasks to the worker that it met, which takes them at
 *     its next look. Then it dozes ([idle-doze]) for 16 us, doubled after each retreat up to
 *     256 us. Of two workers only that of the higher number retreats.
 *   - After the doze it steals again, like any idle worker, and looks after FIRST_OPS operations
 *     whether the tasks still herd. A look at a task that does not halves the next doze.
 *
 *   Tasks that fight for a channel cannot keep a worker from others. A task that does not herd, or
 *   that never ran, keeps its worker from retreating. A doze after a retreat ends after two glances
 *   that find a new task anywhere, a task that nobody took, or what ends any doze. Offered tasks
 *   lie on the worker's own public queue: if nobody takes them, it finds them there.
 *   In a world nobody retreats, because no time passes while tasks run.
 */
#include "work/herd.h"

#include "task/nursery.h"
#include "task/task.h"
#include "task/worker.h"

enum {
    FIGHT_NS = 70,   /* an operation without the time for which it waited */
    MEETS_PART = 16, /* of the operations */
    WAITED_PART = 4, /* of the time */
    LOOKS = 4,       /* that count */
    FIRST_OPS = 16,  /* until the first look after a doze */
    GIVEN_MAX = 64,  /* tasks; a larger crowd does not move */
};

/* Whether the worker may give its tasks away at all. */
static bool may_retreat(const struct jrt_worker *worker)
{
    const janus_scheduler *scheduler = worker->scheduler;
    return scheduler->stealing && scheduler->world == NULL && worker->seat == NULL;
}

/* The number of the worker that was met. worker_count: that worker is of another scheduler. */
static uint32_t number_of_met(const struct jrt_worker *worker)
{
    const janus_scheduler *scheduler = worker->scheduler;
    uintptr_t              first = (uintptr_t)scheduler->workers;
    uintptr_t              distance = (uintptr_t)worker->herd.met - first;
    uint64_t               number = distance / sizeof *worker;
    return number < scheduler->worker_count ? (uint32_t)number : scheduler->worker_count;
}

/* Whether one worker would do as much as two: the tasks meet others in channels often, and do
 * little in between. The last looks count, the older the less. */
static bool fights(struct jrt_herd *herd, uint64_t lasted_ns, uint64_t ops)
{
    bool met = herd->meets >= ops / MEETS_PART || herd->waited_ns >= lasted_ns / WAITED_PART;
    /* It may have waited before the time began: a sleep is no part of it. */
    uint64_t waited = herd->waited_ns < lasted_ns ? herd->waited_ns : lasted_ns;
    herd->own_ns += lasted_ns - waited - herd->own_ns / LOOKS;
    herd->ops += ops - herd->ops / LOOKS;
    herd->meets = 0;
    herd->waited_ns = 0;
    return met && herd->own_ns < herd->ops * FIGHT_NS;
}

void jrt_herd_judge(struct jrt_worker *worker, struct jrt_task *task, uint64_t lasted_ns,
                    uint64_t ops)
{
    struct jrt_herd *herd = &worker->herd;
    bool             fought = fights(herd, lasted_ns, ops);
    bool             herds = fought || (task->herds && lasted_ns < ops * FIGHT_NS);
    if (task->herds != herds) {
        task->dirty = true; /* [task-clean] */
        task->herds = herds;
    }
    herd->wanted = fought && may_retreat(worker) && number_of_met(worker) < worker->index;
    if (herd->wanted) worker->lanes |= JRT_IN_PUBLIC; /* no easy pick: jrt_pick asks */
    if (!herds) herd->retreats /= 2;
}

/* Whether nothing waits here but tasks that herd. */
static bool all_herd(struct jrt_worker *worker)
{
    struct jrt_shelf *shelf = &worker->again_shelf;
    bool              all = true;
    for (unsigned lane = 0; lane < JRT_LANES; lane++) {
        if (jrt_count_fresh(worker, lane) > 0 || jrt_deque_size(&worker->again[lane]) > 0)
            return false;
    }
    if (jrt_shelf_size(shelf) > GIVEN_MAX) return false;
    jrt_shelf_enter(shelf);
    for (uint64_t i = 0; all; i++) {
        const struct jrt_task *task = jrt_shelf_see(shelf, i);
        if (task == NULL) break;
        all = task->herds;
    }
    jrt_shelf_leave(shelf);
    return all;
}

/* Offers the tasks to the worker of that number. */
static void retreat(struct jrt_worker *worker, uint32_t number)
{
    struct jrt_deque *deque = &worker->again[JRT_LANE_NORMAL];
    struct jrt_task  *task;
    /* All that wait lie there, [herd]. Without any, a look at the worker's set must not think that
     * tasks are here. */
    worker->lanes &= ~(uint32_t)(JRT_IN_NORMAL | JRT_IN_PUBLIC);
    if (jrt_shelf_size(&worker->again_shelf) != 0) worker->lanes |= JRT_IN_NORMAL | JRT_IN_PUBLIC;
    while ((task = jrt_shelf_pop_oldest(&worker->again_shelf)) != NULL) {
        if (!jrt_deque_push(deque, task)) jrt_submit_to_all(worker->scheduler, task);
    }
    worker->herd.wanted = false;
    if (worker->herd.retreats < JRT_RETREATS_MAX) worker->herd.retreats++;
    /* release: the queue. */
    jrt_store_release(&worker->scheduler->workers[number].offered, worker->index + 1);
}

bool jrt_herd_leaves(struct jrt_worker *worker)
{
    uint32_t number = number_of_met(worker);
    if (number >= worker->index || !all_herd(worker)) {
        worker->herd.wanted = false;
        return false;
    }
    jrt_debug_invariant("herd-gather", worker->seat == NULL && worker->scheduler->world == NULL);
    if (worker->current == NULL) retreat(worker, number);
    return true;
}

void jrt_herd_take(struct jrt_worker *worker)
{
    /* acquire: the queue of the worker that offered. */
    uint32_t offered = jrt_exchange_acquire(&worker->offered, 0u);
    if (offered == 0 || offered > worker->scheduler->worker_count) return;
    (void)jrt_pull_public(worker, &worker->scheduler->workers[offered - 1], GIVEN_MAX);
}

void jrt_herd_begin(struct jrt_worker *worker)
{
    worker->picked_ns = jrt_clock_now_ns();
    worker->herd.meets = 0;
    worker->herd.waited_ns = 0;
    if (worker->others_every > FIRST_OPS) worker->others_every = FIRST_OPS;
    if (worker->until_others > FIRST_OPS) worker->until_others = FIRST_OPS;
}
