/* SPDX-License-Identifier: MIT */
/*
 * Receives of resting tasks.
 *
 * [chan-rest]  An ordinary receive checks, pays and tries, enters the queue, and parks, all in one
 *   frame. A resting task does the first three steps on its stack, and the fourth when it has no
 *   stack any more. In between others may have used the channel. So the join looks once more, under
 *   the lock. If something can be done, the join does nothing, and the task tries again on a stack.
 *   The step itself needs a task: it wakes others, and it is traced.
 *   The entry and the party lie in the task's record. Claimers treat them as those of any other
 *   party ([chan-claim], [chan-last]).
 */
#include "rest/channel.h"

#include "cancel/cancel.h"
#include "chan/step.h"
#include "means/call.h"
#include "nursery/nursery.h"
#include "work/work.h"

janus_status jrt_chan_rest_settle(const struct jrt_task *task, janus_status status)
{
    return jrt_chan_settle(task, status);
}

janus_status jrt_chan_rest_again(struct jrt_chan_rest *rest, janus_channel channel, void *value)
{
    struct jrt_worker *worker = jrt_worker_self();
    janus_status       status = jrt_chan_attempt(rest->chan, channel, worker, JRT_CHAN_RECV, value);
    if (status == JANUS_OK) jrt_chan_took_a_turn(worker);
    return status;
}

janus_status jrt_chan_rest_begin(struct jrt_chan_rest *rest, janus_channel channel, void *value)
{
    struct jrt_worker *worker = jrt_worker_self();
    jrt_worker_stack_check(worker); /* [stack-reserve] */
    janus_status status = jrt_chan_decode(channel, JANUS_CHANNEL_MAY_RECV, &rest->chan);
    if (jrt_unlikely(status != JANUS_OK)) {
        jrt_stack_check(); /* [turn-call] */
        return status;
    }
    struct jrt_task *task = worker->current;
    if (jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE) {
        return jrt_task_cancelled_or_end(task);
    }
    status = jrt_chan_pay(&worker);
    if (jrt_unlikely(status != JANUS_OK)) return status;
    status = jrt_chan_rest_again(rest, channel, value);
    return status == JANUS_WOULD_WAIT ? status : jrt_chan_settle(task, status);
}

bool jrt_chan_rest_join(struct jrt_chan_rest *rest, struct jrt_worker *worker,
                        struct jrt_task *task, janus_channel channel, void *value)
{
    struct jrt_chan *chan = rest->chan;
    rest->party = (struct jrt_chan_party){.task = task};
    rest->entry = (struct jrt_chan_entry){.party = &rest->party, .value = value};
    bool own = jrt_chan_enter(chan, worker);
    bool idle = jrt_chan_is(chan, channel) && !chan->closed && chan->length == 0 &&
                chan->senders.count == 0;
    if (idle) {
        rest->entry.index = worker->waits_at = chan->number;
        rest->outside = chan->outside;
        jrt_chan_enqueue(chan, JRT_CHAN_RECV, &rest->entry);
    }
    jrt_chan_leave(chan, own);
    /* relaxed: a count. This worker runs, so nobody looks for a deadlock now. */
    if (idle && rest->outside) jrt_fetch_add_relaxed(&worker->scheduler->outside, 1u);
    return idle;
}

janus_status jrt_chan_rest_leave(struct jrt_chan_rest *rest, struct jrt_worker *worker,
                                 janus_scheduler *scheduler, janus_status ended)
{
    jrt_debug_invariant("chan-rest", ended != JANUS_OK || rest->entry.queue == NULL);
    if (rest->outside) jrt_fetch_sub_relaxed(&scheduler->outside, 1u); /* relaxed: as above. */
    bool queued = false;
    if (ended != JANUS_OK) {
        bool own = jrt_chan_enter(rest->chan, worker);
        queued = rest->entry.queue != NULL;
        if (queued) jrt_chan_dequeue(rest->entry.queue, &rest->entry);
        jrt_chan_leave(rest->chan, own);
        if (!queued) jrt_chan_await_done(&rest->party); /* [chan-last] */
    }
    janus_status status = queued ? ended : rest->party.outcome;
    if (status == JANUS_OK) jrt_chan_note_waited(worker, JRT_CHAN_RECV, rest->entry.index);
    return status;
}
