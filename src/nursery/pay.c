/* SPDX-License-Identifier: MIT */
/* Payments that the word does not cover: the turn ends, the task gets more, or the task ends. */
#include "nursery/pay.h"

#include "base/assert.h"
#include "cancel/cancel.h"
#include "fiber/fuel.h"
#include "means/purse.h"
#include "means/terms.h"
#include "means/trouble.h"
#include "nursery/nursery.h"
#include "nursery/run.h"
#include "task/nursery.h"
#include "task/purse.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/turn.h"

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
    jrt_purse_allow_cleanup(purse);
    return jrt_task_cancelled_or_end(task);
}

void jrt_purse_bear(struct jrt_task *task)
{
    jrt_turn_toll(jrt_worker_self(), JRT_TOLL_TOLD);
    (void)jrt_purse_word(task); /* [purse-word] */
    if (jrt_likely(jrt_fuel_one())) return;
    if (jrt_task_only_in_scope(task)) { /* the task outlives the scope: its own budget pays */
        (void)jrt_pay_ops(task, 1);
        return;
    }
    struct jrt_purse *purse = jrt_purse_need(task);
    if (purse == NULL) end_for_good(task);
    if (purse->asking) (void)jrt_exhaust(task, JANUS_COMPONENT_OPS, 1);
    jrt_purse_spend(task);
    jrt_turn_end(task);
    if (!purse->cleaning) {
        jrt_purse_allow_cleanup(purse);
    } else if (!jrt_purse_refuel(purse)) {
        end_for_good(task);
    }
    bool paid = jrt_fuel_one();
    jrt_debug_invariant("cancel-patience", paid);
    (void)paid;
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
    bool gives = exhaustion == JANUS_EXHAUSTION_AUTO || exhaustion == JANUS_EXHAUSTION_END;
    if (!gives) return false;
    jrt_fuel_set(JRT_FIRST_SLICE);
    return true;
}

/* Pays when the word is empty or does not cover the price. The turn ends, once. */
static janus_status pay_slow(struct jrt_task *task, const janus_budget *price, bool tell)
{
    bool went = false; /* an exhausted task has already let others run */
    jrt_purse_spend(task);
    if (task->purse != NULL && task->purse->asking) {
        (void)jrt_exhaust(task, JANUS_COMPONENT_OPS, price->ops);
    }
    for (;;) {
        int64_t fuel = jrt_fuel_get();
        /* Only ops bound a cancelled task. */
        bool ops = price->ops > (uint64_t)(fuel > 0 ? fuel : 0);
        bool held = jrt_purse_held(task->purse); /* it learns of a cancel at the end, [hold-turn] */
        if (ops && !held && jrt_task_cancelled_itself(task) != JANUS_CANCEL_REASON_NONE) {
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
    if (task->purse != NULL && !task->purse->cleaning) jrt_purse_fill(task->purse, jrt_fuel_get());
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

void jrt_task_pay_patience(struct jrt_task *task)
{
    if (jrt_task_cancelled_itself(task) == JANUS_CANCEL_REASON_NONE) return;
    int64_t fuel = jrt_fuel_get(), calls = JRT_TOLLS / 4; /* since it was last here, or fewer */
    if (fuel > 0 && fuel < JRT_FREE_OF_COST) jrt_fuel_set(fuel > calls ? fuel - calls : 0);
    jrt_purse_bear(task); /* [cancel-patience] */
}
