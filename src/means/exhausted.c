/* SPDX-License-Identifier: MIT */
/* The list of a nursery's exhausted children, and how a child leaves it: [exhaust-list]. */
#include "base/assert.h"
#include "base/atomic.h"
#include "base/list.h"
#include "means/purse.h"
#include "task/nursery.h"
#include "task/purse.h"
#include "task/task.h"
#include "work/work.h"

/* Takes a task off the list and wakes it; under the lock. */
void jrt_exhausted_release(struct jrt_purse *purse, janus_status status)
{
    jrt_debug_invariant("exhaust-list", purse->listed);
    jrt_list_remove(&purse->exhausted);
    purse->listed = false;
    (void)jrt_task_wake(purse->task, status);
}

void jrt_exhausted_abandon_locked(struct jrt_nursery *n)
{
    jrt_store_relaxed(&n->awaited, true); /* relaxed: under the lock, [exhaust-await]. */
    jrt_exhausted_cancel_locked(n);
}

void jrt_exhausted_cancel_locked(struct jrt_nursery *n)
{
    while (n->exhausted.next != NULL && !jrt_list_empty(&n->exhausted)) {
        jrt_exhausted_release(jrt_list_entry(n->exhausted.next, struct jrt_purse, exhausted),
                              JANUS_BUDGET_EXHAUSTED);
    }
}

/* The entry of a child on the list; under the lock. NULL: it is not there. */
struct jrt_purse *jrt_exhausted_find(struct jrt_nursery *n, janus_task_id child)
{
    if (n->exhausted.next == NULL) return NULL;
    for (struct jrt_list_node *at = n->exhausted.next; at != &n->exhausted; at = at->next) {
        struct jrt_purse *purse = jrt_list_entry(at, struct jrt_purse, exhausted);
        if (jrt_task_id(purse->task) == child) return purse;
    }
    return NULL;
}

bool jrt_exhausted_read(const struct jrt_task *task, janus_budget *out, janus_component *lacks)
{
    const struct jrt_purse *purse = jrt_exhausted_find(task->nursery, jrt_task_id(task));
    if (purse == NULL) return false;
    *out = purse->rare->had;
    *lacks = purse->lacks;
    return true;
}

void jrt_exhausted_abandon_one_locked(struct jrt_nursery *n, janus_task_id child)
{
    struct jrt_purse *purse = jrt_exhausted_find(n, child);
    if (purse != NULL) jrt_exhausted_release(purse, JANUS_BUDGET_EXHAUSTED);
}
