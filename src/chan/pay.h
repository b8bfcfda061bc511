/* SPDX-License-Identifier: MIT */
/*
 * What channels cost their users. A call pays before anything happens. A send or a receive costs
 * one op and one channel operation. A select costs an op for each case and one channel operation.
 * If nothing was done, the channel operation is refunded, but not the ops, which paid for the
 * attempt. Opening a channel needs the right, a place under the limit of live channels, and memory.
 * Plain threads pay nothing.
 */
#ifndef JRT_CHAN_PAY_H
#define JRT_CHAN_PAY_H

#include "means/terms.h"
#include "means/trouble.h"
#include "means/ward.h"
#include "nursery/pay.h"
#include "task/purse.h"
#include "task/task.h"
#include "task/ward.h"
#include "task/worker.h"

#include <janusrt/channel.h>

/* Pays for one operation of the current task, which may continue on another worker. On any status
 * but OK the operation must not happen. */
static inline janus_status jrt_chan_pay(struct jrt_worker **worker)
{
    struct jrt_task  *task = (*worker)->current;
    struct jrt_purse *purse = task->purse;
    if (jrt_likely(purse != NULL && purse->left.channel_ops > 0 && jrt_fuel_one())) {
        purse->left.channel_ops--;
        return JANUS_OK;
    }
    const janus_budget price = janus_price_send(); /* the same as a receive's */
    janus_status       status = jrt_pay(task, &price);
    *worker = jrt_worker_self(); /* [worker-again] */
    return status;
}

/* Ends the call of a task that has paid. If nothing was done, refunds the channel operation. */
static inline janus_status jrt_chan_settle(const struct jrt_task *task, janus_status status)
{
    struct jrt_purse *purse = task->purse;
    if (jrt_unlikely(status != JANUS_OK) && purse != NULL) {
        purse->left.channel_ops = janus_units_add(purse->left.channel_ops, 1);
    }
    return status;
}

enum { JRT_CHAN_CASES_PAID = 64 }; /* paid at once, so that an expired turn ends in between */

/* Pays for a select: an op for each case, which is checked, locked and queued, and one channel
 * operation. Pays before anything happens, and gives way if the turn is over. */
static inline janus_status jrt_chan_pay_cases(struct jrt_worker **worker, uint32_t count)
{
    janus_status status = jrt_chan_pay(worker);
    for (uint32_t left = count > 0 ? count - 1 : 0; left > 0 && status == JANUS_OK;) {
        uint32_t           part = left < JRT_CHAN_CASES_PAID ? left : JRT_CHAN_CASES_PAID;
        const janus_budget price = janus_price_loop(part);
        left -= part;
        if (jrt_likely(jrt_fuel_get() >= (int64_t)part)) {
            jrt_fuel_set(jrt_fuel_get() - (int64_t)part);
            continue;
        }
        struct jrt_task *task = (*worker)->current;
        status = jrt_chan_settle(task, jrt_pay(task, &price));
        *worker = jrt_worker_self(); /* [worker-again] */
    }
    return status;
}

/* Pays as jrt_chan_pay if that is easy. False: not paid. The second function refunds it if nothing
 * was done. */

static inline bool jrt_chan_pay_fast(const struct jrt_task *task)
{
    struct jrt_purse *purse = task->purse;
    if (jrt_unlikely(purse == NULL || purse->left.channel_ops == 0)) return false;
    if (jrt_unlikely(!jrt_fuel_one())) return false;
    purse->left.channel_ops--;
    return true;
}

static inline void jrt_chan_pay_back(const struct jrt_task *task)
{
    task->purse->left.channel_ops++;
    jrt_fuel_put_back();
}

/* What counts a channel, and what was charged for it. All NULL: nothing. */
struct jrt_chan_charge {
    struct jrt_terms *terms;
    struct jrt_ward   ward;
};

enum { JRT_CHAN_BYTES = 512 }; /* memory charged for a channel, besides its values */

/* Asks for a channel of `capacity` values in `bytes` bytes. The calling task needs the right, a
 * place under the limit of live channels, and the memory. */
static inline janus_status jrt_chan_may_open(uint64_t capacity, uint64_t bytes, bool kept,
                                             struct jrt_chan_charge *out)
{
    const struct jrt_thread *thread = jrt_thread_self();
    const struct jrt_worker *worker = thread->worker;
    struct jrt_task         *task = worker != NULL ? worker->current : thread->behalf;
    *out = (struct jrt_chan_charge){.ward = {.kept = kept}};
    if (thread->callback != NULL) return JANUS_STATE; /* [callback-account] */
    if (task == NULL) return JANUS_OK;
    struct jrt_purse *purse = jrt_purse_need(task);
    if (purse == NULL) return JANUS_NO_MEMORY;
    janus_status status = jrt_terms_channel(task, capacity, &out->terms);
    if (status != JANUS_OK) return status;
    uint64_t all = bytes + JRT_CHAN_BYTES;
    if (purse->left.memory < all) jrt_wards_collect(purse);
    if (purse->left.memory < all) {
        uint64_t had = purse->granted.memory, left = purse->left.memory;
        jrt_terms_channel_gone(out->terms);
        return jrt_trouble(JANUS_BUDGET_EXHAUSTED, JANUS_COMPONENT_MEMORY,
                           had > left ? had - left : 0, had);
    }
    if (purse->left.memory != JANUS_UNLIMITED) purse->left.memory -= all;
    out->ward.bytes = all;
    out->ward.purse = purse;
    struct jrt_terms *around = out->terms; /* [ward-life] */
    while (around != NULL && around->of == NULL) around = around->outer;
    out->ward.terms = around;
    return JANUS_OK;
}

/* The channel was made. `end` will destroy the channel with that name. *charge stays in place. */
static inline void jrt_chan_opened(struct jrt_chan_charge *charge, janus_channel name,
                                   void (*end)(const uint64_t name[2]))
{
    if (charge->ward.purse == NULL) return;
    charge->ward.name[0] = name.opaque[0];
    charge->ward.name[1] = name.opaque[1];
    charge->ward.end = end;
    jrt_ward_join(&charge->ward, charge->ward.purse);
}

/* The channel was destroyed, or could not be made. */
static inline void jrt_chan_closed(struct jrt_chan_charge *charge)
{
    jrt_ward_leave(&charge->ward);
    if (charge->terms != NULL) jrt_terms_channel_gone(charge->terms);
}

#endif
