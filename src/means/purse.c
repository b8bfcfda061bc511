/* SPDX-License-Identifier: MIT */
/*
 * Purses: where a task's budget is.
 *
 * [purse-fuel]  A task's ops are in two places, the fuel word and `left.ops`. Their sum is what the
 *   task has.
 *   - The word lies in the thread that runs the task. While the task is off the CPU, its strand
 *     keeps the word. While a child runs on top of it, the frame below the child keeps the word.
 *   - The word holds at most JANUS_SLICE, so that a task with a large budget yields now and then.
 *     An empty word is filled from `left.ops`.
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
 * [purse-spare]  A worker keeps the purses of tasks that ended on it for tasks that it starts.
 *   Allocated and freed by the thousand, malloc would return them to the system every time.
 *
 * Only the task itself, or the code that ends it, changes a purse. The fields that the header
 * marks as shared are under the nursery's lock while the task is exhausted.
 */
#include "task/purse.h"

#include "heap/poison.h"
#include "means/ledger.h"
#include "means/terms.h"
#include "task/nursery.h"
#include "task/trouble.h"
#include "task/turn.h"

#include <stdlib.h>
#include <string.h>

enum { PURSES_MAX = 1024 }; /* spare purses of a worker, [purse-spare]; some 350 KiB */

static uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Only the link of a spare purse is touched; AddressSanitizer guards the rest. */
static struct jrt_purse *take(struct jrt_worker *worker)
{
    if (worker == NULL || worker->purses == NULL) return jrt_calloc(1, sizeof(struct jrt_purse));
    struct jrt_purse *purse = worker->purses;
    jrt_debug_invariant("purse-spare", worker->purses_count > 0);
    worker->purses = purse->next;
    worker->purses_count--;
    jrt_unpoison(purse, sizeof *purse);
    memset(purse, 0, sizeof *purse);
    return purse;
}

static void put_aside(struct jrt_worker *worker, struct jrt_purse *purse)
{
    if (worker == NULL || worker->purses_count == PURSES_MAX) {
        free(purse);
        return;
    }
    purse->next = worker->purses;
    worker->purses = purse;
    worker->purses_count++;
    jrt_poison(&purse->left, sizeof *purse - offsetof(struct jrt_purse, left));
}

void jrt_purses_drop(struct jrt_worker *worker)
{
    while (worker->purses != NULL) {
        struct jrt_purse *purse = worker->purses;
        worker->purses = purse->next;
        jrt_unpoison(purse, sizeof *purse);
        free(purse);
    }
    worker->purses_count = 0;
}

static struct jrt_purse *make(struct jrt_task *task)
{
    struct jrt_purse *purse = take(jrt_worker_self());
    if (purse == NULL) return NULL;
    purse->task = task;
    task->purse = purse;
    task->touched = true;
    return purse;
}

struct jrt_purse *jrt_purse_need(struct jrt_task *task)
{
    if (task->purse != NULL) return task->purse;
    struct jrt_purse *purse = make(task);
    if (purse == NULL) return NULL;
    const janus_budget *given = &task->nursery->scheduler->task_budget;
    purse->left = purse->granted = *given;
    purse->handed = (int64_t)min_u64(given->ops, JRT_FIRST_SLICE); /* [purse-fuel] */
    purse->left.ops -= (uint64_t)purse->handed;
    purse->started = true;
    return purse;
}

/* Whether the books have no more of a share than the share has: without limits, they have none. */
static bool is_booked(const struct jrt_entry *entry)
{
    if (entry->account == NULL) return true;
    return janus_budget_lacks(entry->share, entry->booked) == JANUS_COMPONENT_NONE;
}

struct jrt_purse *jrt_purse_make(struct jrt_task *task, const struct jrt_entry *entry)
{
    struct jrt_purse *purse = make(task);
    if (purse == NULL) return NULL;
    jrt_debug_invariant("terms-energy", is_booked(entry));
    purse->left = entry->share;
    purse->granted = entry->account != NULL ? entry->booked : entry->share;
    purse->account = entry->account;
    purse->hard = entry->account != NULL;
    return purse;
}

/* Fills the word from `left.ops`, up to a slice. */
static void fill(struct jrt_purse *purse, int64_t fuel)
{
    int64_t  full = jrt_purse_slice(purse);
    uint64_t more = min_u64((uint64_t)(fuel < full ? full - fuel : 0), purse->left.ops);
    purse->left.ops -= more;
    purse->handed = fuel + (int64_t)more;
    jrt_debug_invariant("purse-word", !JRT_CHECKED || purse->handed <= JANUS_SLICE);
    jrt_fuel_set(purse->handed);
}

int64_t jrt_purse_first_fuel(struct jrt_worker *worker, struct jrt_task *task)
{
    struct jrt_purse *purse = task->purse;
    if (purse == NULL) return worker->slice;
    uint64_t first = min_u64(purse->left.ops, (uint64_t)jrt_purse_slice(purse));
    purse->left.ops -= first;
    purse->handed = (int64_t)first;
    purse->started = true;
    return (int64_t)first;
}

/* What an ended task leaves in the word, [purse-word]. */
static uint64_t settled(int64_t fuel)
{
    return fuel > 0 && fuel <= JANUS_SLICE ? (uint64_t)fuel : 0;
}

void jrt_purse_close(struct jrt_worker *worker, struct jrt_task *task)
{
    struct jrt_purse *purse = task->purse;
    if (jrt_unlikely(purse->has_wards)) jrt_wards_end(purse);
    if (purse->started) purse->left.ops = janus_units_add(purse->left.ops, settled(jrt_fuel_get()));
    purse->left.ops = janus_units_add(purse->left.ops, purse->allowance);
    purse->left.memory = janus_units_add(purse->left.memory, purse->stack); /* [spawn-stack] */
    if (purse->heap != NULL) {
        jrt_heap_close(purse->heap, worker != NULL ? &worker->heaps : NULL);
    }
    if (purse->ledger != NULL) jrt_ledger_end(purse);
    if (purse->account != NULL) {
        purse->left.ops -= min_u64(purse->left.ops, purse->allowed); /* [purse-allowance] */
#define X(name, field) purse->left.field -= min_u64(purse->left.field, purse->minted.field);
        JANUS_COMPONENT_MAP(X)
#undef X
        jrt_account_settle(purse->account, &purse->granted, &purse->left);
    }
    if (jrt_unlikely(purse->terms != NULL)) {
        jrt_terms_over(task->nursery->scheduler, purse->terms);
        jrt_terms_put(purse->terms);
    }
    jrt_debug_invariant("ward-life", purse->wards.first == NULL);
    put_aside(worker, purse);
    task->purse = NULL;
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
        left.ops -= min_u64(left.ops, JRT_FIRST_SLICE);
    }
    int64_t fuel = 0;
    if (worker != NULL && worker->current == task) {
        fuel = jrt_fuel_get();
    } else if (started && jrt_task_began(task)) {
        fuel = task->strand->fuel;
    } else if (task->purse == NULL) {
        fuel = (int64_t)min_u64(task->nursery->scheduler->task_budget.ops, JRT_FIRST_SLICE);
    }
    left.ops = janus_units_add(left.ops, (uint64_t)(fuel > 0 ? fuel : 0));
    return left;
}

/*
 * [purse-word]  The word is public, so anybody can write to it. It never holds more than
 *   JANUS_SLICE. A task whose word holds more has made ops from nothing: it panics where the
 *   library finds this. A word below zero counts as empty.
 */
static int64_t word_of(const struct jrt_task *task)
{
    int64_t fuel = jrt_fuel_get();
    if (jrt_unlikely(fuel > JANUS_SLICE) && JRT_CHECKED) {
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
    int64_t fuel = word_of(task); /* [purse-word] */
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
static bool refuel(struct jrt_purse *purse)
{
    int64_t  fuel = jrt_fuel_get();
    uint64_t more = min_u64((uint64_t)jrt_purse_slice(purse), purse->allowance);
    purse->allowance -= more;
    purse->handed = fuel + (int64_t)more;
    jrt_fuel_set(purse->handed);
    return more > 0;
}

/* Gives the allowance. Ops that the books do not have are minted, [purse-allowance]. */
static void allow_cleanup(struct jrt_purse *purse)
{
    int64_t  fuel = jrt_fuel_get();
    uint64_t most = JANUS_SLICE, has = (uint64_t)(fuel > 0 ? fuel : 0);
    if (purse->cleaning) return;
    jrt_debug_invariant("purse-allowance", purse->allowance == 0 && purse->allowed == 0);
    purse->cleaning = true;
    if (purse->hard && purse->granted.ops < most) most = purse->granted.ops;
    if (most < JRT_CLEANUP_MIN) most = JRT_CLEANUP_MIN;
    if (has >= most) return;
    uint64_t own = min_u64(purse->left.ops, most - has);
    purse->left.ops -= own;
    janus_budget more = janus_price_loop(most - has - own);
    if (purse->account != NULL) {
        more = janus_budget_min(more, jrt_purse_room(purse));
        jrt_account_mint_share(purse->account, &more, &more);
    }
    purse->granted = janus_budget_add(purse->granted, more);
    purse->allowed = more.ops;
    purse->allowance = own + more.ops;
    (void)refuel(purse);
}

/* Ends a task that has used up its allowance. */
__attribute__((noreturn)) static void end_for_good(struct jrt_task *task)
{
    (void)jrt_task_cancelled_only(task);
    if (task->ending && task->purse == NULL) jrt_task_break_off(task, JRT_ENDED_NO_MEMORY);
    jrt_task_break_off(task, task->ending ? JRT_ENDED_EXHAUSTED : JRT_ENDED_UNWOUND);
}

janus_status jrt_purse_stop(struct jrt_task *task)
{
    struct jrt_purse *purse = jrt_purse_need(task);
    if (purse == NULL || purse->cleaning) end_for_good(task);
    allow_cleanup(purse);
    return jrt_task_cancelled_or_end(task);
}

bool jrt_purse_clean_up(struct jrt_task *task)
{
    struct jrt_purse *purse = jrt_purse_need(task);
    if (purse == NULL) return false;
    if (purse->cleaning) return refuel(purse);
    allow_cleanup(purse);
    return true;
}

/* In a world, each op used since the last fill takes a nanosecond, [sim-time]. */
static void spend(const struct jrt_task *task)
{
    int64_t handed = task->purse != NULL ? task->purse->handed : JRT_FIRST_SLICE;
    int64_t used = handed - jrt_fuel_get();
    if (used > 0) jrt_spend((uint64_t)used);
}

void jrt_purse_bear(struct jrt_task *task)
{
    jrt_turn_toll(jrt_worker_self(), JRT_TOLL_TOLD);
    (void)word_of(task); /* [purse-word] */
    if (jrt_likely(jrt_fuel_one())) return;
    if (jrt_task_only_in_scope(task)) { /* the task outlives the scope: its own budget pays */
        (void)jrt_pay_ops(task, 1);
        return;
    }
    struct jrt_purse *purse = jrt_purse_need(task);
    if (purse == NULL) end_for_good(task);
    if (purse->asking) (void)jrt_exhaust(task, JANUS_COMPONENT_OPS, 1);
    spend(task);
    jrt_turn_end(task);
    if (!purse->cleaning) {
        allow_cleanup(purse);
    } else if (!refuel(purse)) {
        end_for_good(task);
    }
    (void)jrt_fuel_one();
}

/*
 * A cancelled task has too little in the word. True: it got an allowance to clean up with, and
 * tries again. The first call that finds the word empty reports the cancel (`tell`). A task that
 * already saw it, in a call that does not report, goes on: it may be emptying a channel.
 */
static bool can_clean_up(struct jrt_task *task, bool tell)
{
    struct jrt_purse *purse = jrt_purse_need(task);
    if (purse == NULL || (!purse->cleaning && (tell || !task->saw_cancel))) return false;
    if (purse->cleaning && purse->allowance == 0) return false;
    jrt_turn_end(task);
    return jrt_purse_clean_up(task);
}

/*
 * [purse-none]  The system may refuse memory for a task's books. Only a task on an implicit budget
 *   has no books yet. If it pays ops under policy AUTO, it goes on with one more slice. AUTO would
 *   give it more than that, and the next slice asks for the books again. Any other call returns
 *   NO_MEMORY, or ends the task with NO_MEMORY where the call has no status. The library never
 *   reports this as exhaustion, because no recharge would help.
 */
static bool goes_on_without(const struct jrt_task *task, const janus_budget *price)
{
    const struct jrt_nursery *n = task->nursery;
    uint8_t                   exhaustion =
        n->terms != NULL ? n->terms->exhaustion : (uint8_t)n->scheduler->exhaustion;
    bool ops_only =
        (price->memory | price->spawn_count | price->channel_ops | price->syscalls) == 0;
    if (!ops_only || price->ops > JRT_FIRST_SLICE || task->ending) return false;
    if (exhaustion != JANUS_EXHAUSTION_AUTO) return false;
    jrt_fuel_set(JRT_FIRST_SLICE);
    return true;
}

/* Pays when the word is empty or does not cover the price. The turn ends, once. */
static janus_status pay_slow(struct jrt_task *task, const janus_budget *price, bool tell)
{
    bool went = false; /* an exhausted task has already let others run */
    spend(task);
    if (task->purse != NULL && task->purse->asking) {
        (void)jrt_exhaust(task, JANUS_COMPONENT_OPS, price->ops);
    }
    for (;;) {
        int64_t fuel = jrt_fuel_get();
        /* Only ops bound a cancelled task. */
        bool ops = price->ops > (uint64_t)(fuel > 0 ? fuel : 0);
        if (ops && jrt_task_cancelled_itself(task) != JANUS_CANCEL_REASON_NONE) {
            if (!can_clean_up(task, tell)) return jrt_purse_stop(task);
            went = true;
            continue;
        }
        janus_component lacks = jrt_pay_now(task, price);
        if (lacks == JANUS_COMPONENT_NONE) break;
        /* NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange) */
        if (jrt_unlikely(lacks == JRT_NO_BOOKS)) {
            jrt_debug_invariant("purse-none", task->purse == NULL);
            if (goes_on_without(task, price)) continue;
            return jrt_trouble(JANUS_NO_MEMORY, JANUS_COMPONENT_NONE, 0, 0);
        }
        janus_status status = jrt_exhaust(task, lacks, janus_budget_get(price, lacks));
        if (status != JANUS_OK) return status;
        went = true;
    }
    if (!went) jrt_turn_end(task);
    if (task->purse != NULL && !task->purse->cleaning) fill(task->purse, jrt_fuel_get());
    return JANUS_OK;
}

janus_status jrt_pay(struct jrt_task *task, const janus_budget *price)
{
    int64_t fuel = jrt_fuel_get();
    if (jrt_likely(price->ops <= (uint64_t)(fuel > 0 ? fuel : 0)) &&
        jrt_likely(jrt_pay_now(task, price) == JANUS_COMPONENT_NONE)) {
        return JANUS_OK;
    }
    return pay_slow(task, price, false);
}

janus_status jrt_pay_ops(struct jrt_task *task, uint64_t ops)
{
    const janus_budget price = janus_price_loop(ops);
    return pay_slow(task, &price, true);
}

/* No budget covers this at once, and sums with it do not overflow. */
static const uint64_t most_cost = UINT64_C(1) << 62;

/* Restores the word as it was before `cost` was taken. A word that is not negative was not found
 * empty: the caller took nothing, and gets nothing back. */
static void give_back(uint64_t cost)
{
    int64_t fuel = jrt_fuel_get();
    if (fuel >= 0) return;
    int64_t before = cost < most_cost ? fuel + (int64_t)cost : 0;
    jrt_fuel_set(before > 0 ? before : 0);
}

static janus_status check(uint64_t cost, bool must_end)
{
    struct jrt_worker *worker = jrt_worker_self();
    give_back(cost);
    if (worker == NULL || worker->current == NULL) {
        if (jrt_thread_self()->callback == NULL) jrt_fuel_set(INT64_MAX / 2);
        jrt_plain_check((int64_t)cost);
        return JANUS_OK;
    }
    jrt_worker_stack_check(worker); /* [stack-reserve] */
    struct jrt_task *task = worker->current;
    janus_status     status = jrt_pay_ops(task, cost);
    if (jrt_unlikely(status == JANUS_NO_MEMORY)) jrt_task_break_off(task, JRT_ENDED_NO_MEMORY);
    if (status == JANUS_OK || !must_end || task->ending) return status;
    jrt_task_break_off(task, JRT_ENDED_UNWOUND);
}

janus_status janus_check_slow(uint64_t cost) { return check(cost, false); }

void janus_check_or_end_slow(uint64_t cost) { (void)check(cost, true); }

uint32_t janus_yield_interval(void)
{
    const struct jrt_worker *worker = jrt_worker_self();
    return worker != NULL ? worker->scheduler->yield_interval : JANUS_YIELD_INTERVAL_SERVICE;
}

janus_status janus_charge(janus_budget price)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (jrt_unlikely(worker == NULL)) {
        jrt_callback_check();
        return JANUS_OK;
    }
    jrt_worker_stack_check(worker); /* [stack-reserve] */
    struct jrt_task *task = worker->current;
    int64_t          fuel = jrt_fuel_get();
    bool ops_only = (price.channel_ops | price.syscalls | price.memory | price.spawn_count) == 0;
    bool at_once = fuel >= 0 && price.ops - 1 < (uint64_t)fuel && fuel <= JANUS_SLICE;
    if (jrt_likely(ops_only && at_once)) {
        jrt_fuel_set(fuel - (int64_t)price.ops);
        return JANUS_OK;
    }
    if (price.ops == 0) jrt_call_check(worker); /* [turn-call] */
    if (!ops_only && jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE)
        return jrt_task_cancelled_or_end(task);
    return jrt_pay(task, &price);
}

janus_status janus_try_charge(janus_budget price, janus_component *missing)
{
    struct jrt_worker *worker = jrt_worker_self();
    janus_component    lacks = JANUS_COMPONENT_NONE;
    if (worker != NULL) {
        struct jrt_task *task = worker->current;
        jrt_call_check(worker); /* [stack-reserve] */
        lacks = jrt_pay_now(task, &price);
    } else {
        jrt_callback_check();
    }
    bool books = lacks != JRT_NO_BOOKS; /* NOLINT(clang-analyzer-optin.core.EnumCastOutOfRange) */
    if (missing != NULL) *missing = books ? lacks : JANUS_COMPONENT_NONE;
    if (!books) return jrt_trouble(JANUS_NO_MEMORY, JANUS_COMPONENT_NONE, 0, 0);
    return lacks == JANUS_COMPONENT_NONE ? JANUS_OK : JANUS_BUDGET_EXHAUSTED;
}

janus_budget janus_budget_get_current(void)
{
    jrt_stack_check(); /* [stack-reserve] */
    const struct jrt_worker *worker = jrt_worker_self();
    if (worker == NULL) return janus_budget_zero();
    if (worker->current->purse != NULL) jrt_ledger_settle(worker->current->purse);
    return jrt_purse_read(worker->current);
}

janus_budget jrt_purse_room(const struct jrt_purse *purse)
{
    const janus_budget *has = &purse->granted;
    return janus_budget_of(UINT64_MAX - has->ops, UINT64_MAX - has->memory,
                           UINT64_MAX - has->spawn_count, UINT64_MAX - has->channel_ops,
                           UINT64_MAX - has->syscalls);
}

void jrt_purse_put_in(struct jrt_purse *purse, const janus_budget *amount)
{
    jrt_note_recharge(purse->task, amount);
    purse->left = janus_budget_add(purse->left, *amount);
    purse->granted = janus_budget_add(purse->granted, *amount);
}
