/* SPDX-License-Identifier: MIT */
/*
 * What channels cost their users, asked before anything happens: a send or a receive one op
 * and one channel operation, a select an op for each case and one channel operation, whether it
 * comes to anything or not; making one, the right to it
 * and room among those that may live. Plain threads pay nothing.
 */
#ifndef JRT_CHAN_TOLL_H
#define JRT_CHAN_TOLL_H

#include "task/purse.h"
#include "task/terms.h"
#include "task/trouble.h"

/* One operation of the current task, which may go on on another worker. Anything but OK: it does
 * not take place. */
static inline janus_status jrt_chan_pay(struct jrt_worker **worker)
{
    struct jrt_task  *task = (*worker)->current;
    struct jrt_purse *purse = task->purse;
    if (jrt_likely(purse != NULL && purse->left.channel_ops > 0 && jrt_fuel_one())) {
        purse->left.channel_ops--;
        return JANUS_OK;
    }
    const janus_budget price = janus_price_send(); /* as a receive's */
    janus_status       status = jrt_pay(task, &price);
    *worker = jrt_worker_self(); /* [worker-again] */
    return status;
}

enum { JRT_CHAN_CASES_PAID = 64 }; /* at a time: so that a turn that is over ends */

/* A select with so many cases costs an op for each, and one channel operation: each case is looked
 * at, locked and queued. It pays before it does anything, and gives way where a turn is over. */
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
        status = jrt_pay((*worker)->current, &price);
        *worker = jrt_worker_self(); /* [worker-again] */
    }
    return status;
}

/* As jrt_chan_pay where that is easy; false: not paid. And back, as nothing was done for it. */

static inline bool jrt_chan_pay_at_once(const struct jrt_task *task)
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
    (void)janus_fuel_take((uint64_t)-1);
}

/* Who counts a channel, and its buffer; all NULL: nobody does. */
struct jrt_toll {
    struct jrt_terms *terms, *counter;
    uint64_t          bytes;
};

/* A channel for so many values is to be made. Its buffer belongs to nobody in particular, so nobody
 * is charged for it; but nobody makes one larger than what he may have himself, and all together
 * have a limit. */
static inline janus_status jrt_chan_may_open(uint64_t capacity, uint64_t bytes,
                                             struct jrt_toll *out)
{
    const struct jrt_thread *thread = jrt_thread_self();
    const struct jrt_worker *worker = thread->worker;
    const struct jrt_task   *task = worker != NULL ? worker->current : thread->behalf;
    *out = (struct jrt_toll){.bytes = bytes};
    if (task == NULL) return JANUS_OK;
    janus_status status = jrt_terms_channel(task, capacity, &out->terms);
    if (status != JANUS_OK) return status;
    uint64_t left = jrt_purse_read(task).memory;
    if (bytes > left) {
        status = jrt_trouble(JANUS_BUDGET_EXHAUSTED, JANUS_COMPONENT_MEMORY, bytes, left);
    } else {
        status = jrt_terms_buffer(task->nursery->scheduler, bytes, &out->counter);
    }
    if (status != JANUS_OK) jrt_terms_channel_gone(out->terms);
    return status;
}

/* It was destroyed, or not made. */
static inline void jrt_chan_closed(const struct jrt_toll *toll)
{
    if (toll->counter != NULL) jrt_terms_buffer_gone(toll->counter, toll->bytes);
    if (toll->terms != NULL) jrt_terms_channel_gone(toll->terms);
}

#endif
