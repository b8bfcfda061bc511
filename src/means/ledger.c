/* SPDX-License-Identifier: MIT */
/*
 * Ledgers.
 *
 * A task makes the library hold more than its blocks: tokens, callbacks, bindings, terms of
 * nurseries, detached blocks. Any thread may free such a thing, often after the task has ended.
 * Each thing remembers the ledger of the task that made it.
 *
 * The library takes the bytes from the task's memory budget when the thing is made. The thread
 * that frees it only lowers `held`. The task finds the difference when it is short of memory, or
 * when it asks. So only the task touches its purse, without a lock.
 *
 * [ledger-pool]  When a task ends, its budget is settled as if all had been freed. Otherwise
 *   results that tasks leave behind would drain their pool. The terms bound what tasks leave
 *   behind. All tasks in a pool, dead ones included, hold at most the memory that the pool was
 *   opened with. Without this bound, each task in turn would leave that much.
 *   Tasks under other terms, or under none, hold together what a scheduler's implicit tasks may
 *   have. Terms inside terms count for both, and do not affect other terms.
 *
 * [ledger-over]  A callback of a task runs only while the task lives. The end of the task first
 *   marks the ledger as over, then waits for running callbacks. That wait is short, because
 *   callbacks have a slice (callback.c).
 */
#include "means/ledger.h"

#include "means/terms.h"
#include "means/trouble.h"
#include "means/ward.h"
#include "task/nursery.h"
#include "task/purse.h"
#include "task/task.h"
#include "task/worker.h"

#include <stdlib.h>

/* Nurseries that the task opened itself do not restrict it, so their terms do not count here. */
static struct jrt_terms *terms_of(const struct jrt_task *task)
{
    struct jrt_terms *terms = task->purse != NULL ? task->purse->terms : NULL;
    if (terms == NULL) terms = task->nursery->terms;
    return terms != NULL ? terms : task->nursery->scheduler->counter;
}

static struct jrt_ledger *make(struct jrt_task *task)
{
    struct jrt_ledger *ledger = jrt_calloc(1, sizeof *ledger);
    if (ledger == NULL) return NULL;
    jrt_store_relaxed(&ledger->refs, 1u); /* relaxed: nobody knows it yet. */
    ledger->scheduler = task->nursery->scheduler;
    ledger->terms = terms_of(task);
    ledger->task = task;
    jrt_fetch_add_relaxed(&ledger->terms->refs, 1u); /* relaxed: it is alive. */
    return ledger;
}

static void put(struct jrt_ledger *ledger)
{
    /* acq_rel: what others did with it comes before its end. */
    if (jrt_fetch_sub_acq_rel(&ledger->refs, 1u) != 1) return;
    jrt_terms_put(ledger->terms);
    free(ledger);
}

/* Returns bytes in these terms and in all around them, up to `end`. relaxed: only the numbers
 * count. */
static void give(struct jrt_terms *terms, const struct jrt_terms *end, uint64_t bytes)
{
    for (; terms != end; terms = terms->outer) {
        uint64_t kept = jrt_fetch_sub_relaxed(&terms->kept, bytes); /* relaxed: as above. */
        jrt_debug_invariant("ledger-pool", kept >= bytes);
    }
}

/* The terms that have no room for the bytes; NULL: all have, and took them. */
static struct jrt_terms *take(struct jrt_terms *terms, uint64_t bytes, uint64_t most,
                              uint64_t *out_before, uint64_t *out_limit)
{
    for (struct jrt_terms *at = terms; at != NULL; at = at->outer) {
        uint64_t before = jrt_fetch_add_relaxed(&at->kept, bytes); /* relaxed: only numbers. */
        uint64_t limit = at->owns_account && at->kept_max < most ? at->kept_max : most;
        if (before + bytes <= limit && before + bytes >= before) continue;
        give(terms, at->outer, bytes);
        *out_before = before;
        *out_limit = limit;
        return at;
    }
    return NULL;
}

bool jrt_ledger_bear(struct jrt_ledger *ledger, uint64_t bytes, uint64_t most)
{
    uint64_t before, limit;
    return ledger == NULL || take(ledger->terms, bytes, most, &before, &limit) == NULL;
}

void jrt_ledger_unbear(struct jrt_ledger *ledger, uint64_t bytes)
{
    if (ledger != NULL) give(ledger->terms, NULL, bytes);
}

void jrt_ledger_settle(struct jrt_purse *purse)
{
    if (purse->ledger == NULL) return;
    uint64_t held = jrt_load_relaxed(&purse->ledger->held); /* relaxed: only the number. */
    purse->left.memory = janus_units_add(purse->left.memory, purse->held - held);
    purse->held = held;
}

/* The current task, or the task whose blocking call this thread runs: that task waits. */
static struct jrt_task *payer(void)
{
    const struct jrt_thread *thread = jrt_thread_self();
    const struct jrt_worker *worker = thread->worker;
    return worker != NULL ? worker->current : thread->behalf;
}

static janus_status enter_books(struct jrt_purse *purse, struct jrt_task *task, uint64_t bytes,
                                struct jrt_ledger **out)
{
    if (purse->ledger == NULL) purse->ledger = make(task);
    struct jrt_ledger *ledger = purse->ledger;
    if (ledger == NULL) return JANUS_NO_MEMORY;
    uint64_t          before, limit;
    struct jrt_terms *full =
        take(ledger->terms, bytes, ledger->scheduler->unowned_max, &before, &limit);
    if (full != NULL)
        return jrt_trouble_full(JANUS_BUDGET_EXHAUSTED, JRT_TABLE_KEPT, full, before, limit);
    jrt_fetch_add_relaxed(&ledger->refs, 1u);    /* relaxed: it is alive. */
    jrt_fetch_add_relaxed(&ledger->held, bytes); /* relaxed: only the number. */
    purse->held += bytes;
    *out = ledger;
    return JANUS_OK;
}

janus_status jrt_ledger_take_over(struct jrt_task *task, uint64_t bytes, struct jrt_ledger **out)
{
    return enter_books(task->purse, task, bytes, out);
}

janus_status jrt_ledger_charge(uint64_t bytes, struct jrt_ledger **out)
{
    struct jrt_task *task = payer();
    *out = NULL;
    if (jrt_thread_self()->calls_back) return JANUS_STATE;
    if (task == NULL) return JANUS_OK;
    struct jrt_purse *purse = jrt_purse_need(task);
    if (purse == NULL) return JANUS_NO_MEMORY;
    jrt_ledger_settle(purse);
    if (purse->left.memory < bytes) jrt_wards_collect(purse);
    uint64_t left = purse->left.memory;
    if (left < bytes) {
        uint64_t limit = purse->granted.memory;
        return jrt_trouble(JANUS_BUDGET_EXHAUSTED, JANUS_COMPONENT_MEMORY,
                           limit > left ? limit - left : 0, limit);
    }
    janus_status status = enter_books(purse, task, bytes, out);
    if (status == JANUS_OK && left != JANUS_UNLIMITED) purse->left.memory -= bytes;
    return status;
}

void jrt_ledger_refund(struct jrt_ledger *ledger, uint64_t bytes)
{
    if (ledger == NULL) return;
    give(ledger->terms, NULL, bytes);
    jrt_fetch_sub_relaxed(&ledger->held, bytes); /* relaxed: only the number. */
    put(ledger);
}

void jrt_ledger_forgo(struct jrt_task *task, struct jrt_ledger *ledger, uint64_t bytes)
{
    task->purse->held -= bytes;
    jrt_ledger_refund(ledger, bytes);
}

bool jrt_ledger_enter(struct jrt_ledger *ledger)
{
    uint32_t now = jrt_load_relaxed(&ledger->callbacks); /* relaxed: the exchange looks again. */
    do {
        if ((now & JRT_LEDGER_OVER) != 0) return false;
        /* acquire: the task's actions before the end, which has not come yet. */
    } while (!jrt_cas_acquire(&ledger->callbacks, &now, now + 1));
    return true;
}

void jrt_ledger_leave(struct jrt_ledger *ledger)
{
    /* release: what the callback did comes before the task's end. */
    uint32_t before = jrt_fetch_sub_release(&ledger->callbacks, 1u);
    jrt_debug_invariant("ledger-over", (before & ~JRT_LEDGER_OVER) != 0);
    if (before == (JRT_LEDGER_OVER | 1u)) jrt_futex_wake(&ledger->callbacks, 1);
}

uint64_t jrt_ledger_take_owed(const struct jrt_purse *purse)
{
    struct jrt_ledger *ledger = purse->ledger;
    if (ledger == NULL || jrt_load_relaxed(&ledger->owed_ns) == 0) return 0; /* relaxed: a time. */
    return jrt_exchange_relaxed(&ledger->owed_ns, (uint64_t)0);              /* relaxed: a time. */
}

void jrt_ledger_end(struct jrt_purse *purse)
{
    struct jrt_ledger *ledger = purse->ledger;
    /* acq_rel: [ledger-over]. */
    uint32_t now = jrt_fetch_or_acq_rel(&ledger->callbacks, JRT_LEDGER_OVER) | JRT_LEDGER_OVER;
    while (now != JRT_LEDGER_OVER) {
        jrt_futex_wait(&ledger->callbacks, now);
        now = jrt_load_acquire(&ledger->callbacks); /* acquire: what the callbacks did. */
    }
    purse->left.memory = janus_units_add(purse->left.memory, purse->held); /* [ledger-pool] */
    purse->ledger = NULL;
    purse->held = 0;
    put(ledger);
}
