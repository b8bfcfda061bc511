/* SPDX-License-Identifier: MIT */
/*
 * Barriers.
 *
 * [barrier-count]  `arrived` is the length of the queue. A party that joins the queue counts
 *   itself, and a party that leaves it ungranted uncounts itself, both while BUSY. The last party
 *   never joins. It grants all in the queue, sets the count to 0, and leads. So a meeting is one
 *   step, and the next one begins with an empty queue.
 */
#include "nursery/nursery.h"
#include "sync/queue.h"
#include "task/task.h"

#include <janusrt/barrier.h>

struct barrier {
    struct jrt_sync sync;
    uint32_t        parties; /* constant; 0: never initialised */
    uint32_t        arrived; /* while BUSY, [barrier-count] */
};

_Static_assert(sizeof(struct barrier) <= sizeof(janus_barrier), "it fits its storage");
_Static_assert(offsetof(struct barrier, parties) == offsetof(janus_barrier, opaque[2]) &&
                   __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "JANUS_BARRIER_INIT");

static struct barrier *barrier_of(struct jrt_sync *sync) { return (struct barrier *)sync; }

static bool take_last(struct jrt_sync *sync, uint64_t *word, struct jrt_waiter *waiter)
{
    struct barrier *barrier = barrier_of(sync);
    (void)word;
    if (barrier->arrived + 1 < barrier->parties) return false;
    while (jrt_sync_first(sync) != NULL) jrt_sync_grant(sync, jrt_sync_first(sync), JANUS_OK);
    barrier->arrived = 0;
    waiter->number = 1; /* it leads */
    return true;
}

static bool joined(struct jrt_sync *sync, uint64_t word, struct jrt_waiter *waiter)
{
    barrier_of(sync)->arrived++;
    jrt_sync_count(waiter, (word & JRT_SYNC_TASKS) == 0);
    return true;
}

static void left(struct jrt_sync *sync, uint64_t word, struct jrt_waiter *waiter)
{
    (void)word, (void)waiter;
    jrt_invariant("barrier-count", barrier_of(sync)->arrived > 0);
    barrier_of(sync)->arrived--;
}

static const struct jrt_sync_kind kind = {.reason = JRT_WAIT_BARRIER,
                                          .what = "barrier",
                                          .take = take_last,
                                          .joined = joined,
                                          .left = left};

janus_status janus_barrier_init(janus_barrier *barrier, uint32_t parties, janus_waker waker,
                                const char *name)
{
    if (barrier == NULL || parties == 0 || parties > JANUS_PARTIES_MAX) return JANUS_INVALID;
    *barrier = (janus_barrier)JANUS_BARRIER_INIT(parties, waker, name);
    return JANUS_OK;
}

janus_status janus_barrier_wait_until(janus_barrier *given, bool *out_leads, uint64_t deadline_ns)
{
    struct jrt_task     *task = jrt_sync_begin();
    struct barrier      *barrier = (struct barrier *)(void *)given;
    struct jrt_waiter    waiter = {.task = task, .number = 0};
    struct jrt_sync_call call = {.kind = &kind, .deadline_ns = deadline_ns};
    if (barrier == NULL || barrier->parties == 0) return JANUS_INVALID;
    call.sync = &barrier->sync;
    if (jrt_sync_cancelled(task)) return jrt_task_cancelled_or_end(task);
    janus_status status = jrt_sync_wait(&call, &waiter);
    if (status == JANUS_OK && out_leads != NULL) *out_leads = waiter.number != 0;
    return jrt_sync_end(task, status);
}

janus_status janus_barrier_wait(janus_barrier *barrier, bool *out_leads)
{
    return janus_barrier_wait_until(barrier, out_leads, JRT_NEVER);
}
