/* SPDX-License-Identifier: MIT */
/*
 * Conditions.
 *
 * [condition-wait]  the waiter joins the queue and then unlocks the mutex. So a thread that changes
 *   the condition under the mutex and then signals finds the waiter in the queue. Whatever ends the
 *   wait, the call locks the mutex again before it returns. A cancel cannot end that second wait,
 *   because the caller's code relies on the mutex. Only a deadlock ends it: the holder may be
 *   waiting for this task, and a retry would report the same deadlock for ever.
 *
 *   A granted signal is not lost: the waiter returns OK even if it was cancelled at that moment
 *   ([sync-grant]).
 */
#include "cancel/cancel.h"
#include "means/call.h"
#include "sync/mutex.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/work.h"

_Static_assert(sizeof(struct jrt_sync) <= sizeof(janus_condition), "it fits its storage");

static struct jrt_sync *inside(janus_condition *condition)
{
    return (struct jrt_sync *)(void *)condition;
}

static bool take_never(struct jrt_sync *sync, uint64_t *word, struct jrt_waiter *waiter)
{
    (void)sync, (void)word, (void)waiter;
    return false;
}

static const struct jrt_sync_kind kind = {
    .reason = JRT_WAIT_CONDITION, .what = "condition", .take = take_never};

void janus_condition_init(janus_condition *condition, janus_waker waker, const char *name)
{
    jrt_contract(condition != NULL, "janus_condition_init: `condition` is NULL");
    *condition = (janus_condition)JANUS_CONDITION_INIT(waker, name);
}

struct pause {
    struct jrt_mutex *mutex;
    bool              unlocked;
};

static void unlock(void *argument)
{
    struct pause *pause = argument;
    pause->unlocked = jrt_mutex_unlock(pause->mutex) == JANUS_OK;
}

/* Locks the mutex, however long it takes. DEADLOCK: it is not locked. */
static janus_status lock_again(struct jrt_mutex *mutex, struct jrt_task *task)
{
    janus_status status;
    if (task != NULL) jrt_shield_begin(task);
    do {
        if (task != NULL) jrt_worker_must_leave(jrt_worker_self());
        status = jrt_mutex_lock(mutex, &jrt_mutex_kind, JRT_NEVER);
    } while (status != JANUS_OK && status != JANUS_DEADLOCK);
    if (task != NULL) jrt_shield_end(task);
    return status;
}

janus_status janus_condition_wait_until(janus_condition *condition, janus_mutex *given,
                                        uint64_t deadline_ns)
{
    struct jrt_task     *task = jrt_sync_begin();
    struct pause         pause = {(struct jrt_mutex *)(void *)given, false};
    struct jrt_waiter    waiter = {.task = task};
    struct jrt_sync_call call = {.sync = inside(condition),
                                 .kind = &kind,
                                 .deadline_ns = deadline_ns,
                                 .between = unlock,
                                 .argument = &pause};
    if (condition == NULL || given == NULL) return JANUS_INVALID;
    if (!jrt_mutex_is_mine(pause.mutex) || pause.mutex->depth > 0) return JANUS_STATE;
    janus_status status = jrt_sync_wait(&call, &waiter); /* [condition-wait] */
    janus_status again = pause.unlocked ? lock_again(pause.mutex, task) : JANUS_OK;
    jrt_debug_invariant("condition-wait", again != JANUS_OK || jrt_mutex_is_mine(pause.mutex));
    /* A mutex that is not locked matters more than what ended the wait. */
    return jrt_sync_end(task, again != JANUS_OK ? again : status);
}

janus_status janus_condition_wait(janus_condition *condition, janus_mutex *mutex)
{
    return janus_condition_wait_until(condition, mutex, JRT_NEVER);
}

/* Grants up to `most` waiters. */
static void wake(struct jrt_sync *sync, uint64_t most)
{
    uint64_t word = jrt_sync_enter(sync);
    for (; most > 0 && jrt_sync_first(sync) != NULL; most--) {
        jrt_sync_grant(sync, jrt_sync_first(sync), JANUS_OK);
    }
    jrt_sync_leave(sync, jrt_sync_marked(sync, word));
}

void janus_condition_signal(janus_condition *condition)
{
    jrt_stack_check(); /* [stack-reserve] */
    jrt_contract(condition != NULL, "janus_condition_signal: `condition` is NULL");
    wake(inside(condition), 1);
}

void janus_condition_broadcast(janus_condition *condition)
{
    jrt_stack_check(); /* [stack-reserve] */
    jrt_contract(condition != NULL, "janus_condition_broadcast: `condition` is NULL");
    wake(inside(condition), UINT64_MAX);
}
