/* SPDX-License-Identifier: MIT */
/*
 * Tasks at rest.
 *
 * [task-rest]  A resident task whose entry has returned JRT_REST has no frames, and so needs no
 *   stack. It waits like any other task. Its state is BLOCKED, its park word is PARKED, and its
 *   nursery's cancel finds it on the list of children. But it has no strand. The worker that takes
 *   it from a queue calls its entry again, as that of a new task.
 *   A waker needs the keeper's lock. Under it, the keeper has seen that there is nothing to do, and
 *   the task has become PARKED. So a waker that comes later finds it PARKED. A waker ends the wait
 *   under the lock (jrt_task_claim) and queues the task without it. Meanwhile nobody else can run
 *   the task, because a cancel finds it awake.
 *   A cancel may wake the task without that lock. So the entry first takes the lock and says that
 *   the task no longer rests.
 *
 * [rest-books]  A task at rest has no fuel word. What was left of its slice goes back to its purse.
 *   An implicit budget that replenishes by itself says nothing, so its purse goes, too.
 *
 * [rest-end]  The keeper, not the nursery, decides what the end of a resident task means. It is
 *   asked twice: while the record tells how the task ended, and when the room of the task is free
 *   for another. In between nobody can reach the task. The nursery counts the child until the
 *   second call has returned, so it cannot end while the keeper starts another.
 *   The keeper of a resting task (rest/rest.c) has nothing to decide. Such a task is a child like
 *   any other, and its failure is its nursery's.
 *
 * [rest-adopt]  A resting task begins as an ordinary one, so all that restricts a spawn holds for
 *   it, too. It becomes resident when it first runs, and its site becomes that of the resident. At
 *   its end it gets its own site back, because its record may outlive the resident. Others read the
 *   site of a task that is on a list. The parent finds a joinable child by its id, even if no list
 *   has it. So both changes are made under the lock that these readers take.
 */
#include "nursery/nursery.h"

#include "cancel/cancel.h"
#include "cancel/park.h"
#include "cancel/wait.h"
#include "means/purse.h"
#include "means/terms.h"
#include "task/note.h"
#include "task/state.h"
#include "work/turn.h"
#include "work/work.h"

/* Whether the library gives such children more ops when they have used theirs up. Then it does not
 * matter how many they have used. */
static bool ops_are_renewed(const struct jrt_nursery *n)
{
    unsigned policy = n->terms != NULL ? n->terms->exhaustion : n->scheduler->exhaustion;
    return policy == JANUS_EXHAUSTION_AUTO;
}

/* Whether a purse says nothing that a new one would not say. */
static bool is_empty(const struct jrt_nursery *n, const struct jrt_purse *purse)
{
    return ops_are_renewed(n) && purse->left.memory == purse->granted.memory &&
           purse->left.spawn_count == purse->granted.spawn_count && !purse->hard &&
           purse->heap == NULL && purse->terms == NULL && purse->ledger == NULL &&
           !purse->has_wards && purse->stack == 0 && purse->seat == NULL && purse->runner == NULL &&
           purse->rare == NULL && purse->owed_rounds == 0 && purse->defers == 0 && !purse->cleaning;
}

/* Gives the fuel back, [rest-books]. */
static void settle(struct jrt_worker *worker, struct jrt_task *task)
{
    struct jrt_purse *purse = task->purse;
    /* What it used of its first slice must not be forgotten at each rest. */
    if (purse == NULL && !ops_are_renewed(task->nursery)) purse = jrt_purse_need(task);
    if (purse == NULL) return; /* no memory: the ops of this stretch are forgotten */
    if (is_empty(task->nursery, purse)) {
        jrt_purse_close(worker, task);
        return;
    }
    jrt_debug_invariant("purse-lodged", !purse->lodged); /* the stack goes, the purse stays */
    uint64_t rest = purse->started ? jrt_purse_settled(purse, jrt_fuel_get()) : 0;
    purse->left.ops = janus_units_add(purse->left.ops, rest);
    purse->started = false;
    purse->handed = 0;
}

bool jrt_rest_now(struct jrt_worker *worker, struct jrt_task *task)
{
    uint32_t parking = jrt_load_relaxed(&task->park); /* relaxed: the cas decides. */
    uint32_t parked = (parking & ~(uint32_t)JRT_PARK_MASK) | JRT_PARKED;
    jrt_task_move_to_wait(task, worker);
    bool waits = (parking & JRT_PARK_MASK) == JRT_PARKING;
    /* acq_rel: [park-wake]; the next worker sees the record as it is now. */
    if (waits && jrt_cas_acq_rel(&task->park, &parking, parked)) return true;
    jrt_task_move(task, JANUS_TASK_STATE_READY);
    return false;
}

/* Sets the site of the current task, which others may be reading. */
static void set_site(struct jrt_task *task, const janus_site *site)
{
    /* relaxed: its own. */
    bool known = jrt_load_relaxed(&task->linked) || task->joinable; /* [rest-adopt] */
    if (known) jrt_nursery_lock(task->nursery);
    task->site = site;
    if (known) jrt_nursery_unlock(task->nursery);
}

void jrt_rest_adopt(struct jrt_task *task, struct jrt_resident *resident)
{
    static const janus_site unknown = {.file = NULL};
    /* relaxed: nobody else links it before it has waited. */
    jrt_debug_invariant("rest-adopt", !jrt_load_relaxed(&task->linked));
    resident->site = task->site != NULL ? *task->site : unknown;
    set_site(task, &resident->site);
    task->dirty = task->resident = true;
    task->drop = NULL; /* it begins */
}

void jrt_rest_disown(struct jrt_task *task, const janus_site *site)
{
    set_site(task, site);
    task->resident = false;
}

void jrt_rest_first(struct jrt_worker *worker, struct jrt_task *task)
{
    jrt_task_link(task);
    jrt_task_move(task, JANUS_TASK_STATE_RUNNING);
    jrt_store_relaxed(&task->wait, (uint8_t)JRT_WAIT_MAIL); /* relaxed: for dumps. */
    jrt_task_move_to_wait(task, worker);
    /* release: the record as it is now. */
    jrt_store_release(&task->park, (uint32_t)(JRT_PARKED | JRT_INTERRUPTIBLE));
    jrt_fence_light_seq_cst(); /* seq_cst: [cancel-park]. */
    bool cancelled = jrt_nursery_cancelled_above(task->nursery);
    if (cancelled && jrt_task_claim(task)) jrt_submit_fresh(worker, task);
}

/* Queues the task, which is awake and not PARKED, to run again. */
static void run_again(struct jrt_worker *worker, struct jrt_task *task)
{
    jrt_store_relaxed(&task->wait, (uint8_t)JRT_WAIT_NONE); /* relaxed: for dumps. */
    jrt_debug_invariant("task-rest", jrt_wait_is_over(task));
    /* relaxed: its own. */
    if (jrt_load_relaxed(&task->state) != JANUS_TASK_STATE_READY)
        jrt_task_move(task, JANUS_TASK_STATE_READY);
    jrt_submit_again(worker, task);
}

struct jrt_worker *jrt_rest(struct jrt_task *task, struct jrt_task *below)
{
    struct jrt_worker   *worker = jrt_worker_self();
    struct jrt_resident *resident = jrt_resident_of(task);
    uint32_t may_end = JRT_INTERRUPTIBLE | (resident->rules->is_breakable ? JRT_BREAKABLE : 0u);
    jrt_debug_invariant("task-rest", task->innermost == NULL);
    if (jrt_unlikely(worker->until_others == 1)) jrt_turn_rests(worker, task);
    settle(worker, task);
    jrt_debug_invariant("rest-books", task->purse == NULL || !task->purse->started);
    jrt_task_link(task);
    task->strand = NULL;
    task->entry = resident->rules->entry; /* where the result was */
    task->argument = resident;
    worker->current = below;
    jrt_store_relaxed(&task->wait, (uint8_t)JRT_WAIT_MAIL); /* relaxed: for dumps. */
    /* relaxed: nobody knows yet that it waits. An actor is not BREAKABLE: it may wait for ever. */
    jrt_store_relaxed(&task->park, JRT_PARKING | may_end);
    jrt_fence_light_seq_cst(); /* seq_cst: [cancel-park]. */
    bool cancelled = jrt_task_cancelled_itself(task) != JANUS_CANCEL_REASON_NONE;
    if (!cancelled && resident->rules->rests(resident, worker, task)) return worker;
    (void)jrt_task_park_undo(task); /* false: a cancel came first, which is as good */
    run_again(worker, task);
    return worker;
}
