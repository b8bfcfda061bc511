/* SPDX-License-Identifier: MIT */
/* Supervisors: the owner of a nursery learns which children are exhausted. The essay on exhaustion
 * is in exhaust.c. */
#include "task/nursery.h"
#include "task/purse.h"

static struct jrt_task *current(void)
{
    struct jrt_worker *worker = jrt_worker_self();
    return worker != NULL ? worker->current : NULL;
}

void jrt_exhausted_describe(const struct jrt_purse *purse, janus_exhausted *out)
{
    const struct jrt_task *task = purse->task;
    *out = (janus_exhausted){.task = jrt_task_id(task),
                             .lacks = purse->lacks,
                             .needs = purse->needs,
                             .left = purse->had,
                             .granted = purse->granted};
    jrt_name_again(out->name, sizeof out->name, jrt_task_name(task));
    if (task->site != NULL) out->site = *task->site;
}

/* The oldest that was not reported; under the lock. */
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

bool janus_nursery_exhausted_poll(janus_nursery *nursery, janus_exhausted *out)
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
    const struct jrt_task *task = current();
    janus_exhausted        child = {.task = 0};
    if (task == NULL) return 0;
    for (struct jrt_nursery *n = task->innermost; n != NULL; n = jrt_nursery_outer(n)) {
        if (janus_nursery_exhausted_poll((janus_nursery *)(void *)n, &child)) break;
    }
    return child.task;
}

janus_status janus_nursery_exhausted_wait(janus_nursery *nursery, janus_exhausted *out)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_nursery *n = jrt_nursery_of(nursery);
    struct jrt_task    *task = current();
    if (nursery == NULL || out == NULL) return JANUS_INVALID;
    if (task == NULL || !jrt_nursery_is_mine(n)) return JANUS_STATE;
    jrt_nursery_close_for_wait(n);
    for (;;) {
        if (jrt_task_cancel_reason(task) != JANUS_CANCEL_NONE) return jrt_task_obey(task);
        struct jrt_worker *worker = jrt_worker_self();
        if (!jrt_worker_can_leave(worker)) return JANUS_NO_MEMORY;
        jrt_task_park_begin(task, JRT_WAIT_EXHAUSTED);
        jrt_nursery_lock(n);
        bool found = report(n, out);
        bool over = jrt_nursery_state(n) >= JANUS_NURSERY_CLOSED;
        n->supervised = !found && !over;
        n->waiter = n->supervised ? task : NULL;
        jrt_nursery_unlock(n);
        if (found || over) {
            (void)jrt_task_park_cancel(task);
            return found ? JANUS_OK : JANUS_CLOSED;
        }
        jrt_nursery_register(n);
        janus_status status = jrt_task_park_cancellable(task);
        jrt_nursery_lock(n);
        n->supervised = false;
        n->waiter = NULL;
        jrt_nursery_unlock(n);
        if (status == JANUS_CANCELLED) return jrt_task_obey(task);
        if (status != JANUS_OK) return status;
    }
}
