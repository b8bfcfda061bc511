/* SPDX-License-Identifier: MIT */
/*
 * Joining one child.
 *
 * [join-wait]  Under the nursery's lock, the owner finds that the child has not ended and writes
 *   its id into `joining`. The end of a child puts it on `finished` under the same lock. If
 *   `joining` names it, it wakes the owner there. So either the owner finds the child, or the
 *   child finds the owner. A wait that ends otherwise clears `joining` under the lock before it
 *   returns, so no late wake meets another wait. A thread sleeps on `joined`, which the waker
 *   changes. The nursery exists until the child has counted itself off, which it does later.
 */
#include "cancel/cancel.h"
#include "cancel/wait.h"
#include "means/call.h"
#include "means/purse.h"
#include "nursery/nursery.h"
#include "task/nursery.h"
#include "task/roster.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/work.h"

/* The joinable child of this nursery with that id, ended or not; under its lock. */
static struct jrt_task *find_child(struct jrt_nursery *n, janus_task_id id)
{
    uint32_t index = (uint32_t)(id >> 32);
    if (index == 0) return NULL;
    struct jrt_task *task = jrt_roster_find(&n->scheduler->roster, index - 1);
    return task != NULL && jrt_task_peek_joinable(task, n, id) ? task : NULL;
}

/* Returns the child if it has ended. Otherwise *out_running says whether it will; then the owner is
 * announced as waiting. */
static struct jrt_task *take_or_announce(struct jrt_nursery *n, janus_task_id id, bool *out_running)
{
    jrt_nursery_lock(n);
    struct jrt_task *child = find_child(n, id);
    bool             ended = child != NULL && child->kept;
    if (ended) jrt_list_remove(&child->sibling);
    *out_running = child != NULL && !ended;
    n->joining = *out_running ? id : 0;
    if (*out_running) jrt_exhausted_abandon_one_locked(n, id); /* [exhaust-await] */
    jrt_nursery_unlock(n);
    return ended ? child : NULL;
}

static void take_back(struct jrt_nursery *n)
{
    jrt_nursery_lock(n);
    n->joining = 0;
    jrt_nursery_unlock(n);
}

void jrt_join_ended(struct jrt_nursery *n)
{
    n->joining = 0;
    if (n->owner != NULL) {
        (void)jrt_task_wake(n->owner, JANUS_OK); /* under the lock, [join-wait] */
        return;
    }
    jrt_fetch_add_relaxed(&n->joined, 1u); /* relaxed: the lock orders what the child wrote. */
    jrt_futex_wake(&n->joined, 1);
}

static janus_status result_of(struct jrt_nursery *n, struct jrt_task *child, int64_t *out_result)
{
    int64_t result = child->landing.result;
    bool    failed = child->panic != JANUS_PANIC_KIND_NONE || result < 0;
    bool    cancelled = child->panic == JANUS_PANIC_KIND_NONE && result == JANUS_CANCELLED &&
                     child->saw_cancel; /* [nursery-obey] */
    jrt_task_retire(n->scheduler, jrt_worker_self(), child);
    if (out_result != NULL) *out_result = result;
    if (cancelled) return JANUS_CHILD_CANCELLED;
    return failed ? JANUS_CHILD_FAILED : JANUS_OK;
}

/* Once a cancel has reached the child, too, its end is near. The owner can wait for it in a
 * shield. */
static bool is_worth_waiting(struct jrt_nursery *n, const struct jrt_task *task)
{
    return jrt_task_only_in_scope(task) && jrt_nursery_cancelled_above(n);
}

struct join {
    struct jrt_waiting  waiting; /* first */
    struct jrt_nursery *nursery;
    janus_task_id       id;
    int64_t            *out_result;
    bool                shielded;
};

static janus_status take_or_join(struct jrt_waiting *waiting, struct jrt_task *task)
{
    struct join     *join = (struct join *)waiting;
    bool             running;
    struct jrt_task *child = take_or_announce(join->nursery, join->id, &running);
    (void)task;
    if (child != NULL) return result_of(join->nursery, child, join->out_result);
    return running ? JANUS_WOULD_WAIT : jrt_stale(JANUS_STALE, "janus_join");
}

static janus_status look_again(struct jrt_waiting *waiting, struct jrt_task *task,
                               janus_status ended)
{
    struct join *join = (struct join *)waiting;
    jrt_debug_invariant("join-wait", ended != JANUS_OK || join->nursery->joining == 0);
    if (ended == JANUS_OK) return JANUS_WOULD_WAIT;
    take_back(join->nursery);
    /* The child was woken as well, and its end is what the owner waits for. */
    if (ended == JANUS_DEADLOCK) return JANUS_WOULD_WAIT;
    if (ended != JANUS_CANCELLED) return ended;
    if (join->shielded || !is_worth_waiting(join->nursery, task)) return JANUS_CANCELLED;
    jrt_shield_begin(task);
    join->shielded = true;
    return JANUS_WOULD_WAIT;
}

static janus_status join_as_task(struct jrt_nursery *n, janus_task_id id, int64_t *out_result)
{
    struct join  join = {.waiting = {.why = JRT_WAIT_JOIN,
                                     .deadline_ns = JRT_NEVER,
                                     .join = take_or_join,
                                     .leave = look_again},
                         .nursery = n,
                         .id = id,
                         .out_result = out_result};
    janus_status status = jrt_wait(jrt_worker_self(), &join.waiting);
    if (join.shielded) jrt_shield_end(n->owner);
    return status == JANUS_CANCELLED ? jrt_task_cancelled_or_end(n->owner) : status;
}

static janus_status join_as_thread(struct jrt_nursery *n, janus_task_id id, int64_t *out_result)
{
    for (;;) {
        bool             running;
        uint32_t         seen = jrt_load_relaxed(&n->joined); /* relaxed: the lock follows. */
        struct jrt_task *child = take_or_announce(n, id, &running);
        if (child != NULL) return result_of(n, child, out_result);
        if (!running) return jrt_stale(JANUS_STALE, __func__);
        jrt_nursery_thread_waits(n);
        /* relaxed: it is a reason to look again, under the lock. */
        while (jrt_load_relaxed(&n->joined) == seen) jrt_futex_wait(&n->joined, seen);
        jrt_nursery_thread_goes_on(n);
    }
}

janus_status janus_join(janus_nursery *nursery, janus_task_id id, int64_t *out_result)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_nursery *n = jrt_nursery_of(nursery);
    if (nursery == NULL) return JANUS_INVALID;
    if (!jrt_nursery_is_mine(n)) return JANUS_STATE;
    return n->owner != NULL ? join_as_task(n, id, out_result) : join_as_thread(n, id, out_result);
}
