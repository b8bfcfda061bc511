/* SPDX-License-Identifier: MIT */
/*
 * Supervisors: the owner of a nursery learns which children are exhausted. The essay on exhaustion
 * is in exhaust.c.
 *
 * [nursery-lend]  An owner that waits for exhausted children must wake up when no child is left,
 *   and must be able to start more afterwards. So it lends its part of [nursery-count]: it merges,
 *   but the nursery stays Open. The child that takes the count to zero finds it Open, sets
 *   `emptied` under the lock and wakes the owner. Afterwards the owner takes its part back, under
 *   the lock: it adds the bias again. It finds one of these:
 *    children left        the count is not zero: no child is between count and lock
 *    zero, and emptied    the last child has set it and will not come back
 *    zero, not emptied    the last child is on its way to the lock: the owner lets it pass first
 *    final                it was cancelled meanwhile, and the last child ended it: merged for good
 *   A nursery that was cancelled and emptied while it was lent is Cancelling with no child. The
 *   owner's next merge ends it, as any other.
 */
#include "cancel/cancel.h"
#include "cancel/wait.h"
#include "means/call.h"
#include "nursery/nursery.h"
#include "nursery/pay.h"
#include "task/nursery.h"
#include "task/purse.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/work.h"

void jrt_exhausted_describe(const struct jrt_purse *purse, janus_exhausted *out)
{
    const struct jrt_task *task = purse->task;
    *out = (janus_exhausted){.task = jrt_task_id(task),
                             .lacks = purse->lacks,
                             .needs = purse->rare->needs,
                             .left = purse->rare->had,
                             .granted = purse->granted};
    jrt_name_again(out->name, sizeof out->name, jrt_task_name(task));
    if (task->site != NULL) out->site = *task->site;
}

/* Reports the oldest unreported child; under the lock. */
static bool report(struct jrt_nursery *n, janus_exhausted *out)
{
    if (n->exhausted.next == NULL) return false;
    struct jrt_list_node *node = n->exhausted.next;
    for (; node != &n->exhausted; node = node->next) {
        struct jrt_purse *purse = jrt_list_entry(node, struct jrt_purse, exhausted);
        if (purse->reported) continue;
        purse->reported = true;
        jrt_exhausted_describe(purse, out);
        return true;
    }
    return false;
}

bool janus_nursery_poll_exhausted(janus_nursery *nursery, janus_exhausted *out)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_nursery *n = jrt_nursery_of(nursery);
    if (nursery == NULL || out == NULL || !jrt_nursery_is_mine(n)) return false;
    jrt_nursery_lock(n);
    bool found = report(n, out);
    jrt_nursery_unlock(n);
    return found;
}

janus_task_id janus_supervisor_poll_exhausted(void)
{
    const struct jrt_task *task = jrt_task_current();
    janus_exhausted        child = {.task = 0};
    if (task == NULL) return 0;
    for (struct jrt_nursery *n = task->innermost; n != NULL; n = jrt_nursery_outer(n)) {
        if (janus_nursery_poll_exhausted((janus_nursery *)(void *)n, &child)) break;
    }
    return child.task;
}

/* Lends the count. A nursery that is not Open is merged for good. */
static void lend(struct jrt_nursery *n)
{
    bool again = n->merged;
    jrt_nursery_merge(n);
    if (!again) n->local = 0; /* after the merge, [nursery-seen] */
}

void jrt_nursery_emptied_locked(struct jrt_nursery *n)
{
    n->emptied = true;
    if (n->supervised && n->waiter != NULL) (void)jrt_task_wake(n->waiter, JANUS_OK);
}

/* Takes the count back under the lock. False: the last child is on its way to the lock. */
static bool take_back_locked(struct jrt_nursery *n)
{
    const int64_t bias = JRT_NURSERY_BIAS;
    uint8_t       state = jrt_load_acquire(&n->state);  /* acquire: what led to it. */
    int64_t       left = jrt_load_acquire(&n->pending); /* acquire: what children wrote. */
    if (state == JANUS_NURSERY_STATE_CLOSING || state >= JANUS_NURSERY_STATE_CLOSED) return true;
    jrt_debug_invariant("nursery-lend", n->merged && left < bias / 2);
    if (left == 0 && !n->emptied) return false;
    /* acq_rel: as every change of the count. */
    while (!jrt_cas_acq_rel(&n->pending, &left, left + bias)) {
        if (left == 0) return false;
    }
    n->emptied = false;
    n->merged = false;
    return true;
}

static void take_back(struct jrt_nursery *n)
{
    bool done = false;
    while (!done) {
        jrt_nursery_lock(n);
        done = take_back_locked(n);
        jrt_nursery_unlock(n);
        if (!done) jrt_thread_yield(); /* the child only needs the lock */
    }
}

struct supervisor {
    struct jrt_waiting  waiting; /* first */
    struct jrt_nursery *nursery;
    janus_exhausted    *out;
};

static janus_status look_or_join(struct jrt_waiting *waiting, struct jrt_task *task)
{
    struct supervisor  *supervisor = (struct supervisor *)waiting;
    struct jrt_nursery *n = supervisor->nursery;
    if (jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE) return JANUS_CANCELLED;
    jrt_nursery_lock(n);
    bool found = report(n, supervisor->out);
    bool over = n->emptied || jrt_nursery_state(n) >= JANUS_NURSERY_STATE_CLOSED;
    n->supervised = !found && !over;
    n->waiter = n->supervised ? task : NULL;
    jrt_nursery_unlock(n);
    if (found) return JANUS_OK;
    if (over) return JANUS_CLOSED;
    jrt_nursery_register(n);
    return JANUS_WOULD_WAIT;
}

static janus_status look_again(struct jrt_waiting *waiting, struct jrt_task *task,
                               janus_status ended)
{
    struct jrt_nursery *n = ((struct supervisor *)waiting)->nursery;
    (void)task;
    jrt_nursery_lock(n);
    n->supervised = false;
    n->waiter = NULL;
    jrt_nursery_unlock(n);
    return ended == JANUS_OK ? JANUS_WOULD_WAIT : ended;
}

janus_status janus_nursery_wait_exhausted(janus_nursery *nursery, janus_exhausted *out)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_nursery *n = jrt_nursery_of(nursery);
    struct jrt_task    *task = jrt_task_current();
    struct supervisor   supervisor = {.waiting = {.why = JRT_WAIT_EXHAUSTED,
                                                  .deadline_ns = JRT_NEVER,
                                                  .join = look_or_join,
                                                  .leave = look_again},
                                      .nursery = n,
                                      .out = out};
    if (nursery == NULL || out == NULL) return JANUS_INVALID;
    if (task == NULL || !jrt_nursery_is_mine(n)) return JANUS_STATE;
    bool lends = !n->merged;
    lend(n);
    janus_status status = jrt_wait(jrt_worker_self(), &supervisor.waiting);
    if (lends) take_back(n);
    return status == JANUS_CANCELLED ? jrt_task_cancelled_or_end(task) : status;
}

janus_status janus_nursery_cancel_exhausted(janus_nursery *nursery, janus_task_id child)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_nursery *n = jrt_nursery_of(nursery);
    if (nursery == NULL) return JANUS_INVALID;
    if (!jrt_nursery_is_mine(n)) return JANUS_STATE;
    jrt_nursery_lock(n);
    struct jrt_purse *purse = jrt_exhausted_find(n, child);
    if (purse != NULL) jrt_exhausted_release(purse, JANUS_STATE);
    jrt_nursery_unlock(n);
    return purse != NULL ? JANUS_OK : JANUS_STALE;
}
