/* SPDX-License-Identifier: MIT */
/*
 * Nothing can happen any more: every worker sleeps, no timer is armed, no blocking call runs, and
 * every plain thread that could act waits itself. Then the tree of those who wait is printed, and
 * every wait that can be ended is ended with DEADLOCK.
 */
#include "task/dump.h"

/* Wakes the linked children of a nursery and what is below; under its lock's parent. */
static unsigned break_below(struct jrt_nursery *n)
{
    unsigned woken = 0;
    pthread_mutex_lock(&n->lock);
    struct jrt_list_node *node = n->children.next;
    for (; node != &n->children; node = node->next) {
        struct jrt_task      *task = jrt_list_entry(node, struct jrt_task, sibling);
        struct jrt_list_node *inner = task->nurseries.next;
        for (; inner != &task->nurseries; inner = inner->next) {
            woken += break_below(jrt_list_entry(inner, struct jrt_nursery, link));
        }
        if (jrt_task_interrupt(task, JANUS_DEADLOCK)) woken++;
    }
    pthread_mutex_unlock(&n->lock);
    return woken;
}

bool jrt_anybody_waits(janus_scheduler *scheduler);
bool jrt_anybody_waits(janus_scheduler *scheduler)
{
    bool waits = false;
    pthread_mutex_lock(&scheduler->roots_lock);
    /* relaxed: it grows under this lock only; somebody outside may act after all. */
    bool                  outside = jrt_load_relaxed(&scheduler->outside) != 0;
    struct jrt_list_node *node = scheduler->roots.next;
    for (; node != &scheduler->roots && !waits; node = node->next) {
        struct jrt_nursery *n = jrt_list_entry(node, struct jrt_nursery, link);
        pthread_mutex_lock(&n->lock);
        waits = !jrt_list_empty(&n->children);
        pthread_mutex_unlock(&n->lock);
    }
    pthread_mutex_unlock(&scheduler->roots_lock);
    return waits && !outside;
}

bool jrt_deadlock_break(janus_scheduler *scheduler)
{
    unsigned woken = 0;
    jrt_dump_deadlock(scheduler, "janusrt: deadlock: every task waits\n");
    pthread_mutex_lock(&scheduler->roots_lock);
    struct jrt_list_node *node = scheduler->roots.next;
    for (; node != &scheduler->roots; node = node->next) {
        woken += break_below(jrt_list_entry(node, struct jrt_nursery, link));
    }
    pthread_mutex_unlock(&scheduler->roots_lock);
    return woken > 0;
}
