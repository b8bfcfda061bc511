/* SPDX-License-Identifier: MIT */
/*
 * Purses: where a task's budget is.
 *
 * [purse-fuel]  A task's ops are in two places, the fuel word and `left.ops`. Their sum is what the
 *   task has.
 *   - The word lies in the thread that runs the task. While the task is off the CPU, its strand
 *     keeps the word. While a child runs on top of it, the frame below the child keeps the word.
 *   - The word holds at most a slice, so that a task with a large budget yields now and then. An
 *     empty word is filled from `left.ops`.
 *   - The word may hold less ([turn-pace]), and goes back into `left.ops` when a turn is over
 *     ([turn-toll]).
 *   - `handed` is what the word held when it was last filled. So `handed` minus the word is what
 *     the task used since.
 *
 * [purse-allowance]  A task that is cancelled, or exhausted, cleans up with JANUS_SLICE ops, once
 *   in its life. Its own ops come first; the rest is made from nothing. A task with an explicit
 *   budget gets no more than it was granted before, but at least JRT_CLEANUP_MIN. Otherwise a pool
 *   that is divided among many small children would multiply. The word gets the allowance in
 *   slices, as it gets all ops. Made ops that the task does not use are lost. If they went back to
 *   the pool, cancelling children would fill it. Ops that a task recharged under a capability are
 *   lost, too. Otherwise children that recharge themselves and end would fill the pool beyond any
 *   limit.
 *
 * A task without an explicit budget has no purse until it needs one. Its whole budget is the
 * scheduler's task_budget, and a first slice of it is in the fuel word.
 *
 * Only the task itself, or the code that ends it, changes a purse. The fields that the header
 * marks as shared are under the nursery's lock while the task is exhausted.
 */
#include "means/purse.h"

#include "heap/poison.h"
#include "means/ledger.h"
#include "means/terms.h"
#include "means/ward.h"
#include "task/note.h"
#include "task/nursery.h"
#include "task/purse.h"
#include "task/task.h"
#include "task/worker.h"

#include <stdlib.h>
#include <string.h>

static uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }

/*
 * [preempt-check]  Code that only checks makes no library calls, so a deterministic run would find
 *   none of its races. If the scheduler preempts checks, every task starts with an empty word. Each
 *   time the word is filled, the world chooses the length of the slice. At its end other parts of
 *   the world may go on, and the turn ends. So a schedule can stop a task at every check. The usual
 *   answer is a whole slice: only the choices that matter are in a schedule to replay.
 */
int64_t jrt_choose_slice(void)
{
    struct jrt_world *world = jrt_world_now();
    jrt_debug_invariant("preempt-check", world != NULL);
    return jrt_slice_answer(world->choose(world, JRT_CHOOSE_SLICE, JRT_SLICE_ANSWERS));
}

/* Fills the word from `left.ops`, up to a slice. */
void jrt_purse_fill(struct jrt_purse *purse, int64_t fuel)
{
    int64_t full = jrt_purse_slice(purse);
    if (jrt_unlikely(purse->task->nursery->scheduler->preempts)) {
        int64_t most = jrt_choose_slice();
        if (full > most) full = most;
    }
    uint64_t more = min_u64((uint64_t)(fuel < full ? full - fuel : 0), purse->left.ops);
    purse->left.ops -= more;
    purse->handed = fuel + (int64_t)more;
    jrt_debug_invariant("purse-word", !JRT_CHECKED || purse->handed <= JANUS_SLICE_MAX);
    jrt_fuel_set(purse->handed);
}

int64_t jrt_purse_first_fuel(struct jrt_worker *worker, struct jrt_task *task)
{
    struct jrt_purse *purse = task->purse;
    if (purse == NULL) return worker->slice;
    uint64_t first = min_u64(purse->left.ops, (uint64_t)jrt_purse_slice(purse));
    if (jrt_unlikely(worker->preempts)) first = 0; /* [preempt-check] */
    purse->left.ops -= first;
    purse->handed = (int64_t)first;
    purse->started = true;
    return (int64_t)first;
}

static void drop_minted(struct jrt_purse *purse)
{
#define X(name, field) purse->left.field -= min_u64(purse->left.field, purse->rare->minted.field);
    JANUS_COMPONENT_MAP(X)
#undef X
}

/* Does the work of jrt_purse_close, but for the rare part. */
static void close_all(struct jrt_worker *worker, struct jrt_task *task)
{
    struct jrt_purse *purse = task->purse;
    if (jrt_unlikely(purse->has_wards)) jrt_wards_end(purse);
    if (purse->started) {
        uint64_t rest = jrt_purse_settled(purse, jrt_fuel_get());
        purse->left.ops = janus_units_add(purse->left.ops, rest);
    }
    purse->left.ops = janus_units_add(purse->left.ops, purse->allowance);
    purse->left.memory = janus_units_add(purse->left.memory, purse->stack); /* [spawn-stack] */
    if (purse->heap != NULL) {
        jrt_heap_close(purse->heap, worker != NULL ? &worker->heaps : NULL);
    }
    if (purse->ledger != NULL) jrt_ledger_end(purse);
    if (purse->account != NULL) {
        purse->left.ops -= min_u64(purse->left.ops, purse->allowed); /* [purse-allowance] */
        if (jrt_unlikely(purse->rare != NULL)) drop_minted(purse);
        jrt_account_settle(purse->account, &purse->granted, &purse->left);
    }
    if (jrt_unlikely(purse->terms != NULL)) {
        jrt_terms_over(task->nursery->scheduler, purse->terms);
        jrt_terms_put(purse->terms);
    }
    jrt_debug_invariant("ward-life", purse->wards.first == NULL);
    jrt_purse_put_aside(worker, purse);
    task->purse = NULL;
}

void jrt_purse_close(struct jrt_worker *worker, struct jrt_task *task)
{
    struct jrt_purse_rare *rare = task->purse->rare;
    close_all(worker, task);
    free(rare);
}

void jrt_purse_close_scope(struct jrt_worker *worker, struct jrt_task *task,
                           struct jrt_purse *outer)
{
    struct jrt_purse_rare *rare = task->purse->rare;
    janus_component        lacks = task->purse->lacks;
    close_all(worker, task);
    task->purse = outer;
    if (rare == NULL) return;
    rare->minted = outer->rare != NULL ? outer->rare->minted : janus_budget_zero();
    if (lacks != JANUS_COMPONENT_NONE) {
        outer->lacks = lacks; /* explains later why the task ended */
    } else if (outer->rare != NULL) {
        rare->needs = outer->rare->needs;
        rare->limit = outer->rare->limit;
        rare->had = outer->rare->had;
    }
    free(outer->rare);
    outer->rare = rare;
}

janus_budget jrt_purse_read(const struct jrt_task *task)
{
    const struct jrt_worker *worker = jrt_worker_self();
    janus_budget             left = task->nursery->scheduler->task_budget;
    bool                     started = true;
    if (task->purse != NULL) {
        left = task->purse->left;
        started = task->purse->started;
    } else {
        left.ops -= (uint64_t)jrt_first_slice(task->nursery->scheduler);
    }
    int64_t fuel = 0;
    if (worker != NULL && worker->current == task) {
        fuel = jrt_fuel_get();
    } else if (started && jrt_task_began(task)) {
        fuel = task->strand->fuel;
    } else if (task->purse == NULL) {
        fuel = jrt_first_slice(task->nursery->scheduler);
    }
    left.ops = janus_units_add(left.ops, (uint64_t)(fuel > 0 ? fuel : 0));
    return left;
}

int64_t jrt_purse_word(const struct jrt_task *task)
{
    int64_t fuel = jrt_fuel_get();
    if (jrt_unlikely(fuel > JANUS_SLICE) && fuel > jrt_purse_word_max(task->purse) && JRT_CHECKED) {
        jrt_fuel_set(0);
        if (!task->ending)
            janus_panic(
                "the fuel word holds more than the library wrote: the program overwrote it");
        fuel = 0;
    }
    return fuel > 0 ? fuel : 0;
}

janus_component jrt_pay_now(struct jrt_task *task, const janus_budget *price)
{
    int64_t fuel = jrt_purse_word(task); /* [purse-word] */
    bool    ops_only =
        (price->memory | price->spawn_count | price->channel_ops | price->syscalls) == 0;
    if (ops_only && price->ops <= (uint64_t)fuel) {
        jrt_fuel_set(fuel - (int64_t)price->ops);
        return JANUS_COMPONENT_NONE;
    }
    struct jrt_purse *purse = jrt_purse_need(task);
    if (purse == NULL)
        return JRT_NO_BOOKS; /* NOLINT(clang-analyzer-optin.core.EnumCastOutOfRange) */
    if (jrt_unlikely(price->memory > purse->left.memory)) jrt_ledger_settle(purse);
    janus_budget left = purse->left;
    left.ops = janus_units_add(left.ops, (uint64_t)fuel);
    janus_component lacks = janus_budget_charge(&left, *price);
    if (lacks != JANUS_COMPONENT_NONE) return lacks;
    uint64_t from_word = min_u64(price->ops, (uint64_t)fuel); /* not negative */
    purse->left = left;
    purse->left.ops -= (uint64_t)fuel - from_word;
    jrt_fuel_set(fuel - (int64_t)from_word);
    return JANUS_COMPONENT_NONE;
}

/* Fills the word from the allowance. False: the allowance is used up. */
bool jrt_purse_refuel(struct jrt_purse *purse)
{
    int64_t  fuel = jrt_fuel_get();
    uint64_t more = min_u64((uint64_t)jrt_purse_slice(purse), purse->allowance);
    purse->allowance -= more;
    purse->handed = fuel + (int64_t)more;
    jrt_fuel_set(purse->handed);
    return more > 0;
}

/* Gives the allowance. Ops that the books do not have are minted, [purse-allowance]. */
void jrt_purse_allow_cleanup(struct jrt_purse *purse)
{
    int64_t  fuel = jrt_fuel_get();
    uint64_t most = JANUS_SLICE, has = (uint64_t)(fuel > 0 ? fuel : 0);
    if (purse->cleaning) return;
    jrt_debug_invariant("purse-allowance", purse->allowance == 0 && purse->allowed == 0);
    purse->cleaning = true;
    if (purse->hard && purse->granted.ops < most) most = purse->granted.ops;
    if (most < JRT_CLEANUP_MIN) most = JRT_CLEANUP_MIN;
    if (has > most) { /* a long slice: the rest is not for cleanup */
        purse->left.ops = janus_units_add(purse->left.ops, has - most);
        purse->handed = (int64_t)most;
        jrt_fuel_set(purse->handed);
    }
    if (has >= most) return;
    uint64_t own = min_u64(purse->left.ops, most - has);
    purse->left.ops -= own;
    /* Nor is a long portion, [turn-pace]. */
    if (!purse->hard) purse->left.ops = min_u64(purse->left.ops, JANUS_SLICE);
    janus_budget more = janus_price_loop(most - has - own);
    if (purse->account != NULL) {
        more = janus_budget_min(more, jrt_purse_room(purse));
        jrt_account_mint_share(purse->account, &more, &more);
    }
    purse->granted = janus_budget_add(purse->granted, more);
    purse->allowed = more.ops;
    purse->allowance = own + more.ops;
    (void)jrt_purse_refuel(purse);
}

bool jrt_purse_clean_up(struct jrt_task *task)
{
    struct jrt_purse *purse = jrt_purse_need(task);
    if (purse == NULL) return false;
    if (purse->cleaning) return jrt_purse_refuel(purse);
    jrt_purse_allow_cleanup(purse);
    return true;
}

/* In a world, each op used since the last fill takes a nanosecond, [sim-time]. */
void jrt_purse_spend(const struct jrt_task *task)
{
    int64_t handed =
        task->purse != NULL ? task->purse->handed : jrt_first_slice(task->nursery->scheduler);
    int64_t used = handed - jrt_fuel_get();
    if (used > 0) jrt_spend((uint64_t)used);
}

janus_budget jrt_purse_room(const struct jrt_purse *purse)
{
    const janus_budget *has = &purse->granted;
    return janus_budget_of(UINT64_MAX - has->ops, UINT64_MAX - has->memory,
                           UINT64_MAX - has->spawn_count, UINT64_MAX - has->channel_ops,
                           UINT64_MAX - has->syscalls);
}

/* Puts in the part of a refill that the letter in hand may use, [actor-apart]. The rest waits until
 * the letter ends. */
__attribute__((noinline)) static void put_in_part(struct jrt_purse   *purse,
                                                  const janus_budget *amount)
{
    struct jrt_purse_rare *rare = purse->rare;
    janus_budget           rest = *amount, part = janus_budget_min(*amount, rare->more);
    (void)janus_budget_charge(&rest, part);
    (void)janus_budget_charge(&rare->more, part);
    rare->beyond = janus_budget_add(rare->beyond, rest);
    purse->left = janus_budget_add(purse->left, part);
}

void jrt_purse_put_in(struct jrt_purse *purse, const janus_budget *amount)
{
    jrt_note_recharge(purse->task, amount);
    if (jrt_unlikely(purse->capped && purse->rare != NULL)) {
        put_in_part(purse, amount);
    } else {
        purse->left = janus_budget_add(purse->left, *amount);
    }
    purse->granted = janus_budget_add(purse->granted, *amount);
}
