/* SPDX-License-Identifier: MIT */
/*
 * Semaphores.
 *
 * [semaphore-word]  the value is the number of permits. With a queue it is 0: a permit that is
 *   returned while a task waits goes to the first waiter and never enters the word. A waiter whose
 *   wait ends otherwise either leaves the queue with nothing, or has its permit ([sync-grant]). So
 *   permits given and taken always add up. tests/sync/queue_model.c tries all orders.
 *
 *     acquire   n -> n - 1           one compare-and-swap; not on BUSY or WAITERS
 *     release   n -> n + k           one compare-and-swap; not on BUSY or WAITERS
 *     release   0|WAITERS -> rest    while BUSY, the first min(k, queue) are granted
 */
#include "means/call.h"
#include "nursery/nursery.h"
#include "sync/queue.h"
#include "task/task.h"

#include <janusrt/sync.h>

_Static_assert(sizeof(struct jrt_sync) <= sizeof(janus_semaphore), "it fits its storage");

static struct jrt_sync *sync_in(janus_semaphore *semaphore)
{
    return (struct jrt_sync *)(void *)semaphore;
}

static bool take_permit(struct jrt_sync *sync, uint64_t *word, struct jrt_waiter *waiter)
{
    (void)waiter;
    jrt_invariant("semaphore-word", jrt_sync_first(sync) == NULL || jrt_sync_value(*word) == 0);
    if (jrt_sync_value(*word) == 0) return false;
    *word -= JRT_SYNC_ONE;
    return true;
}

static const struct jrt_sync_kind semaphore_kind = {
    .reason = JRT_WAIT_SEMAPHORE, .what = "semaphore", .take = take_permit};

/* Takes one permit if there is one, without BUSY or WAITERS. */
static bool take_fast(struct jrt_sync *sync)
{
    uint64_t word = jrt_load_relaxed(&sync->word); /* relaxed: the cas decides. */
    do {
        if ((word & (JRT_SYNC_BUSY | JRT_SYNC_WAITERS)) != 0 || jrt_sync_value(word) == 0)
            return false;
        /* acquire: what was done before the permit was returned. */
    } while (!jrt_cas_acquire(&sync->word, &word, word - JRT_SYNC_ONE));
    return true;
}

/* Adds permits if they fit, without BUSY or WAITERS. */
static bool give_fast(struct jrt_sync *sync, uint32_t count)
{
    uint64_t word = jrt_load_relaxed(&sync->word); /* relaxed: the cas decides. */
    do {
        if ((word & (JRT_SYNC_BUSY | JRT_SYNC_WAITERS)) != 0) return false;
        if (jrt_sync_value(word) + count > JANUS_PERMITS_MAX) return false;
        /* release: publishes what was done before to the taker of the permit. */
    } while (!jrt_cas_release(&sync->word, &word, word + count * JRT_SYNC_ONE));
    return true;
}

void janus_semaphore_init(janus_semaphore *semaphore, uint32_t permits, janus_waker waker,
                          const char *name)
{
    jrt_contract(semaphore != NULL && permits <= JANUS_PERMITS_MAX, "janus_semaphore_init");
    *semaphore = (janus_semaphore)JANUS_SEMAPHORE_INIT(permits, waker, name);
}

janus_status janus_semaphore_acquire_until(janus_semaphore *semaphore, uint64_t deadline_ns)
{
    struct jrt_task *task = jrt_sync_begin();
    if (semaphore == NULL) return JANUS_INVALID;
    if (jrt_sync_cancelled(task)) return jrt_task_cancelled_or_end(task);
    if (jrt_likely(take_fast(sync_in(semaphore)))) return JANUS_OK;
    return jrt_sync_wait_plain(sync_in(semaphore), &semaphore_kind, task, deadline_ns);
}

janus_status janus_semaphore_acquire(janus_semaphore *semaphore)
{
    return janus_semaphore_acquire_until(semaphore, JRT_NEVER);
}

janus_status janus_semaphore_try_acquire(janus_semaphore *semaphore)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (semaphore == NULL) return JANUS_INVALID;
    struct jrt_sync *sync = sync_in(semaphore);
    if (jrt_likely(take_fast(sync))) return JANUS_OK;
    uint64_t word = jrt_sync_enter(sync);
    bool     taken = take_permit(sync, &word, NULL);
    jrt_sync_leave(sync, word);
    return taken ? JANUS_OK : JANUS_WOULD_WAIT;
}

janus_status janus_semaphore_release(janus_semaphore *semaphore, uint32_t count)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (semaphore == NULL || count == 0) return JANUS_INVALID;
    struct jrt_sync *sync = sync_in(semaphore);
    if (jrt_likely(give_fast(sync, count))) return JANUS_OK;
    uint64_t word = jrt_sync_enter(sync);
    bool     fits = jrt_sync_value(word) + count <= JANUS_PERMITS_MAX;
    for (; fits && count > 0 && jrt_sync_first(sync) != NULL; count--) {
        jrt_sync_grant(sync, jrt_sync_first(sync), JANUS_OK);
    }
    if (fits) word = jrt_sync_marked(sync, word + count * JRT_SYNC_ONE);
    jrt_sync_leave(sync, word);
    return fits ? JANUS_OK : JANUS_FULL;
}

uint32_t janus_semaphore_permits(const janus_semaphore *semaphore)
{
    const struct jrt_sync *sync = (const struct jrt_sync *)(const void *)semaphore;
    jrt_point();
    if (semaphore == NULL) return 0;
    /* relaxed: out of date at once. */
    return (uint32_t)jrt_sync_value(jrt_load_relaxed(&sync->word));
}
