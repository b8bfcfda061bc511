/* SPDX-License-Identifier: MIT */
/* Charges, and what is left: the public calls about a task's budget. Checks are in counted.c. */
#include "base/assert.h"
#include "cancel/cancel.h"
#include "fiber/fuel.h"
#include "fiber/thread.h"
#include "means/call.h"
#include "means/ledger.h"
#include "means/purse.h"
#include "means/trouble.h"
#include "nursery/nursery.h"
#include "nursery/pay.h"
#include "nursery/run.h"
#include "task/purse.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/turn.h"
#include "work/work.h"

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
