/* SPDX-License-Identifier: MIT */
/*
 * Exhaustion: a task that cannot pay gets more, waits for it, or ends.
 *
 * [exhaust-list]  A task that waits for budget is on its nursery's list, under the nursery's lock.
 *   While it is there, only a holder of that lock may change its purse. The thread that takes it
 *   off the list wakes it, under the same lock. A task whose wait ended otherwise (a cancel, a
 *   deadlock) takes itself off. The task joins the tree ([tree-lazy]) before the list, because the
 *   owner may inspect a task as soon as it is reported.
 *
 * [exhaust-await]  An owner that waits for the nursery's end can give nothing any more. It sets
 *   `awaited` and then, under the lock, sends all tasks on the list away. A task that joins the
 *   list reads `awaited` under the lock. So no task stays on the list, and no wait lasts for ever.
 *   The fast path of janus_nursery_end sets `awaited` without the lock, passes a light fence, and
 *   reads `starving`. If that is set, it takes the lock at once: a child that it runs in place may
 *   wait for a task on the list. A joining task sets `starving`, passes a heavy fence, and reads
 *   `awaited`.
 *   A cancel does the same, using the nursery's state; otherwise a shielded task would wait for
 *   ever.
 *
 * <janusrt/charge.h> describes the policies.
 */
#include "cancel/cancel.h"
#include "cancel/wait.h"
#include "means/call.h"
#include "means/purse.h"
#include "means/terms.h"
#include "means/trouble.h"
#include "nursery/nursery.h"
#include "nursery/pay.h"
#include "nursery/run.h"
#include "task/note.h"
#include "task/nursery.h"
#include "task/purse.h"
#include "task/roster.h"
#include "task/state.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/turn.h"
#include "work/work.h"

enum { SIBLINGS = 8 }; /* a long slice takes at most one part in this many from a pool */

void jrt_task_requeue(struct jrt_task *task)
{
    struct jrt_worker *worker = jrt_worker_self();
    jrt_count(&worker->stats.recharges);
    jrt_task_move(task, JANUS_TASK_STATE_BUDGET_EXHAUSTED);
    jrt_task_move(task, JANUS_TASK_STATE_READY);
    jrt_task_move(task, JANUS_TASK_STATE_RUNNING);
    jrt_turn_end(task);
}

static janus_budget only(janus_component component, uint64_t amount)
{
    switch (component) {
    case JANUS_COMPONENT_OPS: return janus_budget_of(amount, 0, 0, 0, 0);
    case JANUS_COMPONENT_MEMORY: return janus_budget_of(0, amount, 0, 0, 0);
    case JANUS_COMPONENT_SPAWN_COUNT: return janus_budget_of(0, 0, amount, 0, 0);
    case JANUS_COMPONENT_CHANNEL_OPS: return janus_budget_of(0, 0, 0, amount, 0);
    case JANUS_COMPONENT_SYSCALLS: return janus_budget_of(0, 0, 0, 0, amount);
    case JANUS_COMPONENT_NONE: break;
    }
    return janus_budget_zero();
}

/* The writer for events about the task, which the acting thread uses; NULL: no log. */
static struct jrt_audit_writer *writer_for(const struct jrt_task *task)
{
    const janus_scheduler   *scheduler = task->nursery->scheduler;
    const struct jrt_worker *worker = jrt_worker_self();
    if (scheduler->audit == NULL) return NULL;
    bool mine = worker != NULL && worker->scheduler == scheduler;
    return jrt_terms_writer(task, mine ? worker->audit : scheduler->audit->shared);
}

static void tell_exhausted(const struct jrt_task *task, const struct jrt_purse *purse)
{
    struct jrt_audit_writer *writer = writer_for(task);
    uint64_t                 rest = janus_budget_get(&purse->rare->had, purse->lacks);
    if (writer == NULL || purse->lacks == JANUS_COMPONENT_NONE) return;
    (void)jrt_audit_budget(writer, JRT_AUDIT_EXHAUSTION, jrt_task_id(task),
                           (enum jrt_audit_component)(purse->lacks - JANUS_COMPONENT_OPS), rest,
                           rest, task->name);
}

/* Records the recharge of a task. AUDIT_FULL: it must not get it. */
static janus_status tell_recharge(const struct jrt_task *task, const janus_budget *has,
                                  const janus_budget *more)
{
    struct jrt_audit_writer *writer = writer_for(task);
    if (writer == NULL) return JANUS_OK;
    return jrt_audit_recharge(writer, jrt_task_id(task), has, more, task->name);
}

/* AUTO. */

/* A portion of ops fills a long slice, [turn-pace], if the limit allows it. */
static uint64_t longer(const struct jrt_task *task, uint64_t portion, uint64_t most)
{
    uint64_t slice = task->purse != NULL ? task->purse->slice : 0;
    if (slice <= JANUS_SLICE) return portion;
    if (slice > most) slice = most;
    return portion < slice ? slice : portion;
}

/* Gives one more portion of an implicit budget. False: the component has a hard limit. */
static bool replenish(struct jrt_task *task, janus_component lacks, uint64_t needs)
{
    janus_scheduler *scheduler = task->nursery->scheduler;
    if (lacks == JANUS_COMPONENT_MEMORY || lacks == JANUS_COMPONENT_SPAWN_COUNT) return false;
    uint64_t portion = janus_budget_get(&scheduler->task_budget, lacks);
    uint64_t most = janus_budget_get(&scheduler->max_budget, lacks);
    if (portion > most) portion = most;
    if (portion == 0 || needs > most) return false;
    if (lacks == JANUS_COMPONENT_OPS) portion = longer(task, portion, most);
    if (portion < needs) portion = needs; /* at once: 2^60 in portions would take for ever */
    janus_budget more = only(lacks, portion);
    /* Ops only, and no purse holds others. */
    if (task->purse == NULL && portion <= JRT_FIRST_SLICE) {
        jrt_fuel_set(jrt_fuel_get() + (int64_t)portion);
        jrt_note_recharge(task, &more);
        return true;
    }
    struct jrt_purse *purse = jrt_purse_need(task);
    if (purse == NULL) return false;
    jrt_purse_put_in(purse, &more);
    return true;
}

bool jrt_replenish_syscalls(struct jrt_worker *worker, struct jrt_task *task)
{
    const janus_scheduler *scheduler = worker->scheduler;
    const uint64_t         portion = scheduler->task_budget.syscalls;
    struct jrt_purse      *purse = task->purse;
    if (purse->hard || purse->asking || task->ending || worker->trace != NULL) return false;
    if (task->nursery->terms != NULL || scheduler->exhaustion != JANUS_EXHAUSTION_AUTO)
        return false;
    if (portion == 0 || portion > scheduler->max_budget.syscalls) return false;
    if (jrt_turn_is_over(worker) || !jrt_task_is_clean(task)) return false;
    purse->left.syscalls = portion; /* it had none */
    purse->granted.syscalls = janus_units_add(purse->granted.syscalls, portion);
    jrt_count(&worker->stats.exhaustions);
    jrt_count(&worker->stats.recharges);
    return true;
}

/* The portion that a child is given at once. */
static uint64_t portion_of(const struct jrt_task *task, janus_component lacks)
{
    const struct jrt_nursery *n = task->nursery;
    bool                      own = n->terms != NULL;
    return janus_budget_get(own ? &n->terms->task_budget : &n->scheduler->task_budget, lacks);
}

/* Draws from the pool: a portion, or what is left, or more if the task needs more. A pool with less
 * than the task needs keeps it for others. */
static bool draw(struct jrt_task *task, janus_component lacks, uint64_t needs)
{
    struct jrt_purse *purse = task->purse;
    janus_budget      has = jrt_purse_read(task);
    uint64_t          portion = portion_of(task, lacks);
    uint64_t          have = janus_budget_get(&has, lacks), wants = needs - have;
    if (purse->account == &task->nursery->scheduler->bank) return false; /* the bank is no pool */
    struct jrt_account_books books;
    if (lacks == JANUS_COMPONENT_OPS && purse->slice > JANUS_SLICE) {
        jrt_account_read(purse->account, &books);
        portion = longer(task, portion, books.left.ops / SIBLINGS);
    }
    if (wants < portion) wants = portion;
    for (;;) {
        janus_budget want = only(lacks, wants);
        if (jrt_account_take(purse->account, &want) == JANUS_COMPONENT_NONE) {
            jrt_purse_put_in(purse, &want);
            return true;
        }
        jrt_account_read(purse->account, &books);
        uint64_t left = janus_budget_get(&books.left, lacks);
        if (left < needs - have) return false;
        if (left < wants) wants = left;
    }
}

/* Recharges the task by the budget capability of its context. *granted is the amount. */
static janus_status recharge_self(struct jrt_task *task, const janus_budget *amount,
                                  janus_budget *granted)
{
    const janus_budget all =
        janus_budget_of(UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX);
    struct jrt_purse *purse = jrt_purse_need(task);
    janus_budget      limit;
    *granted = janus_budget_zero();
    if (purse == NULL || jrt_purse_rare(purse) == NULL) return JANUS_NO_MEMORY;
    /* The profile's implicit capability does not enlarge an explicit budget. */
    if (purse->hard && !jrt_terms_holds(task, JANUS_CAP_KIND_BUDGET)) return JANUS_NO_BUDGET_CAP;
    janus_status status = jrt_terms_budget(task, JANUS_RIGHT_BUDGET_RECHARGE, &all, &limit);
    if (status < 0) return status;
    janus_budget rest = janus_budget_zero();
    for (unsigned c = JANUS_COMPONENT_OPS; c <= JANUS_COMPONENT_SYSCALLS; c++) {
        uint64_t     most = janus_budget_get(&limit, (janus_component)c);
        uint64_t     had = janus_budget_get(&purse->rare->recharged, (janus_component)c);
        janus_budget part = only((janus_component)c, most > had ? most - had : 0);
        rest = janus_budget_add(rest, part);
    }
    if (purse->account != NULL) rest = janus_budget_min(rest, jrt_purse_room(purse));
    *granted = janus_budget_min(*amount, rest);
    const janus_budget has = jrt_purse_read(task);
    status = tell_recharge(task, &has, granted);
    if (status != JANUS_OK) {
        *granted = janus_budget_zero();
        return status;
    }
    if (purse->account != NULL) {
        jrt_account_mint_share(purse->account, granted, granted);
        purse->rare->minted = janus_budget_add(purse->rare->minted, *granted);
    }
    jrt_purse_put_in(purse, granted);
    purse->rare->recharged = janus_budget_add(purse->rare->recharged, *granted);
    return janus_budget_equal(*granted, *amount) ? JANUS_OK : JANUS_CLAMPED;
}

static bool help_itself(struct jrt_task *task, janus_component lacks, uint64_t needs)
{
    uint64_t     portion = portion_of(task, lacks);
    janus_budget want = only(lacks, needs > portion ? needs : portion), got;
    if (!jrt_terms_holds(task, JANUS_CAP_KIND_BUDGET)) return false;
    (void)recharge_self(task, &want, &got);
    return janus_budget_get(&got, lacks) > 0;
}

/* SUPERVISE. The supervisor's calls are in supervise.c. */

/* Gives from the pool. Without a pool, the units are new. */
static janus_status give(struct jrt_purse *purse, const janus_budget *amount)
{
    janus_component lacks = JANUS_COMPONENT_NONE;
    if (purse->account != NULL) {
        janus_budget room = jrt_purse_room(purse);
        lacks = janus_budget_lacks(room, *amount);
        if (lacks == JANUS_COMPONENT_NONE) lacks = jrt_account_take(purse->account, amount);
    }
    if (lacks != JANUS_COMPONENT_NONE) return JANUS_BUDGET_EXHAUSTED;
    janus_status status = tell_recharge(purse->task, &purse->rare->had, amount);
    if (status != JANUS_OK) {
        if (purse->account != NULL) jrt_account_settle(purse->account, amount, amount);
        return status;
    }
    jrt_purse_put_in(purse, amount);
    return JANUS_OK;
}

/* Whether n's owner may give `amount` of new units. */
static janus_status may_give(const struct jrt_nursery *n, const janus_budget *amount)
{
    janus_budget granted;
    if (n->terms != NULL && n->terms->account != NULL) return JANUS_OK; /* from the pool */
    janus_status status = jrt_terms_transfer(n, amount, &granted);
    return status == JANUS_CLAMPED ? JANUS_CAP_LIMIT : status;
}

/* The child's grant pays for what the callback used. A grant that does not cover it, or has nothing
 * of what is short, is refused: otherwise the two would go on for ever. */
static bool is_grant(const struct jrt_purse *purse, const janus_budget *grant, uint64_t used)
{
    uint64_t more = janus_budget_get(grant, purse->lacks);
    return more > (purse->lacks == JANUS_COMPONENT_OPS ? used : 0);
}

/* Asks the nursery's on_exhausted function. */
static janus_verdict ask(struct jrt_task *task, struct jrt_terms *terms)
{
    struct jrt_purse *purse = task->purse;
    janus_budget      grant = janus_budget_zero();
    janus_exhausted   child;
    jrt_exhausted_describe(purse, &child);
    int64_t fuel = jrt_fuel_get();
    purse->asking = true; /* a callback that uses up the slice ends, and the child with it */
    jrt_fuel_set(JANUS_SLICE);
    janus_verdict verdict = terms->on_exhausted(terms->argument, &child, &grant);
    int64_t       rest = jrt_fuel_get();
    uint64_t      used = rest < JANUS_SLICE ? (uint64_t)(JANUS_SLICE - rest) : 0;
    jrt_fuel_set(fuel);
    purse->asking = false;
    if (verdict != JANUS_VERDICT_RECHARGE) return verdict;
    bool can = is_grant(purse, &grant, used) && may_give(task->nursery, &grant) == JANUS_OK &&
               give(purse, &grant) == JANUS_OK;
    if (can) purse->left.ops -= used < purse->left.ops ? used : purse->left.ops;
    if (can) return verdict;
    /* Nobody polls the children of a supervisor: the child would wait for ever. */
    bool supervised = task->nursery->on_heap == JRT_SUPERVISED;
    return supervised ? JANUS_VERDICT_RESTART : JANUS_VERDICT_IGNORE;
}

/* Waiting. */

/* Ends the task for good. */
__attribute__((noreturn)) static void run_out(struct jrt_task *task)
{
    (void)jrt_trouble(JANUS_BUDGET_EXHAUSTED,
                      task->purse != NULL ? task->purse->lacks : JANUS_COMPONENT_NONE, 0, 0);
    jrt_task_break_off(task, JRT_ENDED_EXHAUSTED);
}

__attribute__((noreturn)) static void be_dismissed(struct jrt_task *task)
{
    task->saw_cancel = task->dirty = true;
    task->purse->dismissed = true;
    (void)jrt_purse_clean_up(task);
    jrt_task_break_off(task, JRT_ENDED_UNWOUND);
}

static janus_exhaustion policy_of(const struct jrt_nursery *n)
{
    return (janus_exhaustion)(n->terms != NULL ? n->terms->exhaustion : n->scheduler->exhaustion);
}

/* [exhaust-first]  In :cluster supervisors decide about their children. The first task of a run has
 * no supervisor: the thread that runs it only waits. So its implicit budget replenishes, as in
 * :service. */
static janus_exhaustion policy_for(const struct jrt_task *task)
{
    const janus_scheduler *scheduler = task->nursery->scheduler;
    janus_exhaustion       policy = policy_of(task->nursery);
    bool                   first = task == scheduler->first && task->nursery->owner == NULL;
    if (policy != JANUS_EXHAUSTION_SUPERVISE || !first) return policy;
    if (scheduler->profile != JANUS_PROFILE_CLUSTER) return policy; /* the program's wish */
    jrt_debug_invariant("exhaust-first", task->nursery->terms == NULL);
    return JANUS_EXHAUSTION_AUTO;
}

/* Whether nobody will recharge the task; under the lock. */
static bool is_forsaken(struct jrt_nursery *n, const struct jrt_purse *purse)
{
    return jrt_load_relaxed(&n->awaited) || /* relaxed: under the lock, [exhaust-await]. */
           n->joining == jrt_task_id(purse->task) || jrt_nursery_cancelled_above(n) ||
           jrt_task_is_singled(purse->task) || policy_of(n) == JANUS_EXHAUSTION_END ||
           /* A supervisor that decides nothing recharges nobody. */
           (n->on_heap == JRT_SUPERVISED && policy_of(n) == JANUS_EXHAUSTION_AUTO) ||
           (n->terms != NULL && n->terms->backend == JANUS_BACKEND_BLOCKING);
}

/* False: the owner waits, so nobody would recharge the task. */
static bool join_list(struct jrt_nursery *n, struct jrt_purse *purse)
{
    jrt_nursery_lock(n);
    bool forsaken = is_forsaken(n, purse);
    if (!forsaken) {
        jrt_store_relaxed(&n->starving, true); /* relaxed: the fence follows. */
        jrt_fence_heavy_seq_cst();             /* seq_cst: [exhaust-await]. */
        forsaken = is_forsaken(n, purse);
    }
    if (!forsaken) {
        if (n->exhausted.next == NULL) jrt_list_init(&n->exhausted);
        /* relaxed: the task is the current one and linked itself. */
        jrt_debug_invariant("exhaust-list", jrt_load_relaxed(&purse->task->linked));
        purse->listed = true;
        purse->reported = false;
        jrt_list_push_front(n->exhausted.prev, &purse->exhausted); /* at the end */
        /* relaxed: under the lock. An inspection before this finds the task running. */
        jrt_store_relaxed(&purse->task->wait, (uint8_t)JRT_WAIT_BUDGET);
        if (n->supervised && n->waiter != NULL) (void)jrt_task_wake(n->waiter, JANUS_OK);
    }
    jrt_nursery_unlock(n);
    return !forsaken;
}

static void leave_list(struct jrt_nursery *n, struct jrt_purse *purse)
{
    jrt_nursery_lock(n);
    if (purse->listed) jrt_list_remove(&purse->exhausted);
    purse->listed = false;
    jrt_nursery_unlock(n);
}

static janus_status wait_on_list(struct jrt_waiting *waiting, struct jrt_task *task)
{
    (void)waiting;
    if (!join_list(task->nursery, task->purse)) return JANUS_BUDGET_EXHAUSTED;
    jrt_point(); /* the owner may act on the report before the task has left */
    return JANUS_WOULD_WAIT;
}

static janus_status come_back(struct jrt_waiting *waiting, struct jrt_task *task,
                              janus_status ended)
{
    (void)waiting;
    leave_list(task->nursery, task->purse);
    bool known = ended == JANUS_OK || ended == JANUS_CANCELLED || ended == JANUS_STATE;
    return known ? ended : JANUS_BUDGET_EXHAUSTED;
}

/* OK: recharged. CANCELLED. BUDGET_EXHAUSTED: never to be recharged. STATE: dismissed. */
static janus_status wait_for_more(struct jrt_task *task)
{
    struct jrt_waiting waiting = {
        .why = JRT_WAIT_NONE, .deadline_ns = JRT_NEVER, .join = wait_on_list, .leave = come_back};
    jrt_task_link(task); /* [exhaust-list] */
    janus_status status = jrt_wait(jrt_worker_self(), &waiting);
    return status == JANUS_NO_MEMORY ? JANUS_BUDGET_EXHAUSTED : status;
}

static bool get_more(struct jrt_task *task, janus_exhaustion policy, janus_component lacks,
                     uint64_t needs)
{
    bool hard = task->purse != NULL && task->purse->hard;
    bool draws = task->nursery->terms == NULL || !task->nursery->terms->draws_none;
    if (policy != JANUS_EXHAUSTION_AUTO && policy != JANUS_EXHAUSTION_END) return false;
    if (hard ? draws && draw(task, lacks, needs) : replenish(task, lacks, needs)) return true;
    return help_itself(task, lacks, needs);
}

/* Whether no refill could pay for this, because the letter in hand has a limit, [actor-apart]. */
__attribute__((noinline)) static bool is_capped(const struct jrt_task *task, janus_component lacks,
                                                uint64_t needs)
{
    const struct jrt_purse *purse = task->purse;
    if (purse->rare == NULL) return true;
    janus_budget has = jrt_purse_read(task);
    uint64_t     more = janus_budget_get(&purse->rare->more, lacks);
    return janus_units_add(janus_budget_get(&has, lacks), more) < needs;
}

/* Gives ops to a task in a hold: more of its own, or a loan that it pays back at the end. False: it
 * would owe too much, and the hold is over, [hold-turn]. */
static bool is_lent(struct jrt_task *task, janus_exhaustion policy, janus_component lacks,
                    uint64_t needs)
{
    struct jrt_purse *purse = task->purse;
    if (lacks != JANUS_COMPONENT_OPS) return false;
    purse->hold_due = true;
    bool capped = purse->capped && is_capped(task, lacks, needs);
    if (!capped && get_more(task, policy, lacks, needs)) {
        jrt_task_requeue(task);
        return true;
    }
    uint64_t short_of = needs - jrt_purse_read(task).ops;
    uint64_t most = purse->granted.ops < JANUS_SLICE ? purse->granted.ops : JANUS_SLICE;
    if (purse->owed > most || short_of > most - purse->owed) { /* a cost may be 2^64 - 1 */
        purse->hold_over = true;
        return false;
    }
    purse->owed = (uint16_t)(purse->owed + short_of);
    purse->left.ops += short_of;
    jrt_debug_invariant("hold-turn", purse->owed <= JANUS_SLICE);
    return true;
}

janus_status jrt_exhaust(struct jrt_task *task, janus_component lacks, uint64_t needs)
{
    struct jrt_worker *worker = jrt_worker_self();
    struct jrt_terms  *terms = task->nursery->terms;
    janus_exhaustion   policy = policy_for(task);
    jrt_count(&worker->stats.exhaustions);
    jrt_note(worker, JRT_TRACE_EXHAUST, task, lacks, 0);
    if (task->purse != NULL && task->purse->asking && !task->ending) run_out(task);
    if (task->ending) {
        if (lacks == JANUS_COMPONENT_OPS && jrt_purse_clean_up(task)) return JANUS_OK;
        /* Only ops bound a cleanup. Other components are replenished as usual. */
        if (lacks != JANUS_COMPONENT_OPS && get_more(task, policy, lacks, needs)) return JANUS_OK;
        jrt_task_break_off(task, JRT_ENDED_EXHAUSTED);
    }
    if (jrt_purse_held(task->purse) && is_lent(task, policy, lacks, needs)) return JANUS_OK;
    if (jrt_task_cancelled_itself(task) != JANUS_CANCEL_REASON_NONE) {
        /* Only ops bound how long it cleans up. Other components are replenished meanwhile, too. */
        if (lacks != JANUS_COMPONENT_OPS && get_more(task, policy, lacks, needs)) return JANUS_OK;
        return jrt_purse_stop(task);
    }
    bool capped = task->purse != NULL && task->purse->capped && is_capped(task, lacks, needs);
    if (!capped && get_more(task, policy, lacks, needs)) {
        /* Its tolls end the turn in time; io/pay.c. */
        if (lacks == JANUS_COMPONENT_SYSCALLS && !jrt_turn_is_over(worker)) {
            jrt_count(&worker->stats.recharges);
            return JANUS_OK;
        }
        jrt_task_requeue(task);
        return JANUS_OK;
    }
    struct jrt_purse      *purse = jrt_purse_need(task);
    struct jrt_purse_rare *rare = purse != NULL ? jrt_purse_rare(purse) : NULL;
    if (rare == NULL) jrt_task_break_off(task, JRT_ENDED_NO_MEMORY);
    purse->lacks = lacks;
    rare->needs = needs;
    rare->limit = janus_budget_get(&purse->granted, lacks);
    rare->had = jrt_purse_read(task);
    tell_exhausted(task, purse);
    if (capped) run_out(task); /* one letter of an actor has its own limit, [actor-apart] */
    if (policy == JANUS_EXHAUSTION_SUPERVISE && terms != NULL && terms->on_exhausted != NULL) {
        janus_verdict verdict = ask(task, terms);
        if (verdict == JANUS_VERDICT_CANCEL) be_dismissed(task);
        if (verdict == JANUS_VERDICT_RESTART) run_out(task);
        if (verdict == JANUS_VERDICT_RECHARGE) {
            jrt_task_requeue(task);
            return JANUS_OK;
        }
    }
    janus_status status = wait_for_more(task);
    /* An owner that cancels and then waits sends the task away twice: the cancel counts. */
    bool cancelled =
        status == JANUS_CANCELLED || (status == JANUS_BUDGET_EXHAUSTED &&
                                      jrt_task_cancelled_itself(task) != JANUS_CANCEL_REASON_NONE);
    if (cancelled) return jrt_purse_stop(task);
    if (status == JANUS_STATE) be_dismissed(task);
    if (status != JANUS_OK) run_out(task);
    jrt_count(&jrt_worker_self()->stats.recharges);
    return JANUS_OK;
}

/* Recharging. */

/* The status for a child that is not exhausted: STATE if it lives, otherwise STALE. */
static janus_status why_not(struct jrt_nursery *n, janus_task_id child)
{
    const struct jrt_task *task =
        jrt_roster_find(&n->scheduler->roster, (uint32_t)(child >> 32) - 1);
    if (task == NULL) return JANUS_STALE;
    /* relaxed: it may change in the next moment. */
    bool lives = jrt_load_relaxed(&task->record.generation) == (uint32_t)child;
    return lives ? JANUS_STATE : JANUS_STALE;
}

static janus_status recharge_locked(struct jrt_nursery *n, janus_task_id child,
                                    const janus_budget *amount)
{
    struct jrt_purse *purse = jrt_exhausted_find(n, child);
    if (purse == NULL) return why_not(n, child);
    janus_status status = give(purse, amount);
    if (status != JANUS_OK) return status;
    jrt_exhausted_release(purse, JANUS_OK);
    return JANUS_OK;
}

janus_status jrt_nursery_give(struct jrt_nursery *n, janus_task_id child,
                              const janus_budget *amount)
{
    janus_status status = may_give(n, amount);
    if (status != JANUS_OK) return status;
    jrt_nursery_lock(n);
    status = recharge_locked(n, child, amount);
    jrt_nursery_unlock(n);
    return status;
}

janus_status janus_nursery_recharge(janus_nursery *nursery, janus_task_id child,
                                    janus_budget amount)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_nursery *n = jrt_nursery_of(nursery);
    if (nursery == NULL) return JANUS_INVALID;
    if (!jrt_nursery_is_mine(n)) return JANUS_STATE;
    janus_status status = may_give(n, &amount);
    if (status != JANUS_OK) return jrt_trouble(status, JANUS_COMPONENT_NONE, 0, 0);
    jrt_nursery_lock(n);
    status = recharge_locked(n, child, &amount);
    jrt_nursery_unlock(n);
    if (status == JANUS_BUDGET_EXHAUSTED) {
        (void)jrt_trouble(status, JANUS_COMPONENT_NONE, 0, 0);
    }
    return status;
}

int janus_budget_recharge_child(janus_task_id child, janus_budget amount, const janus_cap *cap)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_task *task = jrt_task_current();
    if (task == NULL) return JANUS_STATE;
    janus_status status = jrt_terms_supervise(task, cap, &amount);
    if (status != JANUS_OK) return jrt_trouble(status, JANUS_COMPONENT_NONE, 0, 0);
    status = JANUS_STALE;
    struct jrt_nursery *n = task->innermost;
    for (; n != NULL && (status == JANUS_STALE || status == JANUS_STATE);
         n = jrt_nursery_outer(n)) {
        jrt_nursery_lock(n);
        status = recharge_locked(n, child, &amount);
        jrt_nursery_unlock(n);
    }
    return status;
}

int janus_budget_recharge(janus_budget amount)
{
    return janus_budget_recharge_current(amount, NULL);
}

janus_status janus_budget_recharge_current(janus_budget amount, janus_budget *out_granted)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_task *task = jrt_task_current();
    janus_budget     granted;
    if (task == NULL) return JANUS_STATE;
    janus_status status = recharge_self(task, &amount, &granted);
    if (status < 0) return jrt_trouble(status, JANUS_COMPONENT_NONE, 0, 0);
    if (out_granted != NULL) *out_granted = granted;
    return status;
}
