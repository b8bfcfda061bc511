/* SPDX-License-Identifier: MIT */
/*
 * Crowds of new tasks.
 *
 * A task may start a million children before it awaits them. If all of them waited, each would need
 * a record of its own, and would have left the caches long before it runs. So a spawner stops now
 * and then, and its children run on the records and stacks that are still warm.
 *
 * [crowd-way]  A spawn that finds JRT_CROWD new tasks on its worker's shelf gives way first, as
 *   janus_yield does. The plainest path does not look. But it ends at the latest with the worker's
 *   spare records, after JRT_FREE_MAX spawns. The turn must not end in a callback, in a hold, on a
 *   seat, or without memory for another stack. There the spawn goes on, and the shelf grows.
 *   A spawn may end the turn anyway, so a spawner must be ready for that. The spawn checks the
 *   nursery's state afterwards: a cancel is not lost.
 *
 * [crowd-back]  The spawner lies on the shelf of tasks that ran before, where other workers find
 *   it, too. It would come back after FIFO_EVERY picks. If no other such task waits, the new ones
 *   go on until JRT_CROWD_LEFT of them are left, or until they have had a turn. Only the spawner
 *   waits for that.
 *
 * [crowd-count]  A child that ends in a loop is counted off by a locked instruction. That would be
 *   a third of an empty task. So a loop that runs siblings one after the other notes how many have
 *   ended, in `uncounted`, and counts them off together. That cannot delay the nursery's end: the
 *   sibling that runs is a child, too. When it leaves the CPU in the middle, the way out counts the
 *   others off: the pick (queue.c), or the step to another loop (leave.c). Until then a look at
 *   the nursery from outside finds up to FIFO_EVERY children too many.
 */
#include "nursery/crowd.h"

#include "fiber/fuel.h"
#include "nursery/nursery.h"
#include "nursery/plain.h"
#include "nursery/run.h"
#include "task/purse.h"
#include "task/task.h"
#include "work/leave.h"
#include "work/turn.h"

enum { AGAIN_MAX = 61 }; /* with more tasks that ran before, the two kinds take turns, queue.c */

/* Whether the current task's turn may end here. */
static bool may_give_way(const struct jrt_worker *worker)
{
    const struct jrt_task *task = worker->current;
    if (task == NULL || worker->seat != NULL || jrt_fuel_get() > JRT_FREE_OF_COST) return false;
    const struct jrt_purse *purse = task->dirty ? task->purse : NULL;
    return purse == NULL || !(purse->asking || jrt_purse_held(purse));
}

void jrt_crowd_give_way(struct jrt_worker *worker)
{
    if (!may_give_way(worker)) return; /* [crowd-way] */
    jrt_debug_invariant("crowd-way", worker->seat == NULL && jrt_locks_held() == 0);
    if (jrt_count_again(worker, JRT_LANE_NORMAL) == 0) { /* it will be the only one there */
        /* relaxed: our own. */
        worker->spawner_at = jrt_load_relaxed(&worker->again_shelf.newest) + 1;
        worker->spawner_since_ns = jrt_clock_now_ns();
    }
    jrt_aside_crowd(worker, worker->current);
    int error = *worker->error_at; /* [task-errno]; a pick may call the system */
    (void)jrt_give_way(worker, worker->current);
    worker = jrt_worker_self(); /* [worker-again] */
    *worker->error_at = error;
    jrt_turn_begin(worker);
}

/* The nursery's owner may change its own bits meanwhile, so only those that stay are read. */
bool jrt_crowd_runs(const struct jrt_worker *worker, const struct jrt_task *task)
{
    const struct jrt_nursery *n = task->nursery;
    return worker->plain != JRT_NOT_PLAIN && !worker->strand->watched && n->owner != NULL &&
           jrt_child_is_ordinary(n, task) && !n->limited && !n->on_terms &&
           !jrt_exceptions_exist() && jrt_count_again(worker, JRT_LANE_NORMAL) <= AGAIN_MAX;
}

/* Takes the newest sibling, if no other task has a claim. NULL: the loop picks. */
static inline struct jrt_task *take_sibling(struct jrt_worker *worker, const struct jrt_nursery *n)
{
    void    *taken;
    uint32_t lanes = worker->lanes & ~(uint32_t)(JRT_IN_PUBLIC | JRT_UNCOUNTED);
    if (lanes != JRT_IN_NORMAL || worker->until_others == 1) return NULL;
    if (!jrt_shelf_pop_newest_fast(&worker->fresh_shelf, !jrt_fences_are_light(), &taken))
        return NULL;
    if (jrt_unlikely(!jrt_child_is_ordinary(n, taken))) {
        jrt_submit_fresh(worker, taken);
        return NULL;
    }
    worker->tick++;
    worker->until_others--;
    return taken;
}

/* Notes the plainest end of a child. */
static inline void note_end(struct jrt_worker *worker, struct jrt_nursery *n, struct jrt_task *task)
{
    worker->current = NULL;
    jrt_task_over_here(worker, task);
    worker->uncounted_of = n;
    worker->uncounted++;
    worker->lanes |= JRT_UNCOUNTED;
}

/* The last child of a run has ended. */
static void count_off(struct jrt_worker *worker, struct jrt_nursery *n)
{
    int64_t ended = worker->uncounted;
    worker->uncounted = 0;
    worker->lanes &= ~(uint32_t)JRT_UNCOUNTED;
    jrt_nursery_count_off_some(n, ended);
}

struct jrt_worker *jrt_crowd_run(struct jrt_worker *worker, struct jrt_task *task)
{
    struct jrt_nursery *n = task->nursery;
    int64_t             below = jrt_fuel_get();
    jrt_debug_invariant("crowd-count", worker->uncounted == 0);
    do {
        jrt_count(&worker->stats.tasks_by_loop);
        jrt_count(&worker->stats.tasks_executed);
        worker->current = task;
        jrt_task_move(task, JANUS_TASK_STATE_RUNNING);
        jrt_fuel_set(worker->slice);
        int how = jrt_ctx_call(&task->landing, task->entry, task->argument);
        JRT_TASK_LEFT_OPEN(task, how);
        worker = jrt_worker_self(); /* [worker-again] */
        if (jrt_unlikely(!jrt_task_ended_fast(task, how))) {
            jrt_crowd_count(worker); /* the child may wait in its end */
            return jrt_task_ran_slow(task, how, NULL, below);
        }
        note_end(worker, n, task);
        task = take_sibling(worker, n);
    } while (task != NULL);
    count_off(worker, n);
    jrt_fuel_set(below);
    return worker;
}
