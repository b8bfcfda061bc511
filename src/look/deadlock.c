/* SPDX-License-Identifier: MIT */
/*
 * Deadlocks. In a deadlock every worker sleeps, no timer is armed and no blocking call runs. Every
 * plain thread that could act waits, too. The library then prints the tree of waiting tasks, and
 * ends every wait that can be ended with DEADLOCK.
 */
#include "books/books.h"
#include "look/dump.h"
#include "task/nursery.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/work.h"

/* Wakes the linked children of a root and all tasks below, the lowest first. It uses no recursion,
 * as put_tree ([dump-walk]): trees may be deep, and the stack small. */
static unsigned break_below(struct jrt_nursery *root)
{
    unsigned              woken = 0;
    struct jrt_nursery   *n = root;
    struct jrt_list_node *node = NULL;
    for (;;) {
        if (node == NULL) { /* arriving in n */
            jrt_nursery_lock(n);
            node = n->children.next;
        }
        if (node != &n->children) {
            struct jrt_task *task = jrt_list_entry(node, struct jrt_task, sibling);
            if (jrt_list_empty(&task->nurseries)) {
                woken += jrt_task_break_wait(task);
                node = node->next;
            } else {
                n = jrt_list_entry(task->nurseries.next, struct jrt_nursery, link);
                node = NULL;
            }
            continue;
        }
        jrt_nursery_unlock(n);
        if (n == root) return woken;
        struct jrt_task      *owner = n->owner;
        struct jrt_list_node *next = n->link.next;
        if (next != &owner->nurseries) { /* the owner's next nursery */
            n = jrt_list_entry(next, struct jrt_nursery, link);
            node = NULL;
        } else { /* all tasks below the owner are done */
            woken += jrt_task_break_wait(owner);
            n = owner->nursery;
            node = owner->sibling.next;
        }
    }
}

bool jrt_anybody_waits(janus_scheduler *scheduler)
{
    bool waits = false;
    jrt_lock(&scheduler->roots_lock);
    /* relaxed: a thread outside may still act. The breaker of the deadlock looks again. */
    bool                  outside = jrt_load_relaxed(&scheduler->outside) != 0;
    struct jrt_list_node *node = scheduler->roots.next;
    for (; node != &scheduler->roots && !waits; node = node->next) {
        struct jrt_nursery *n = jrt_list_entry(node, struct jrt_nursery, link);
        jrt_nursery_lock(n);
        waits = !jrt_list_empty(&n->children);
        jrt_nursery_unlock(n);
    }
    jrt_unlock(&scheduler->roots_lock);
    return waits && !outside;
}

/*
 * The report takes time. Meanwhile a thread may have opened a root whose tasks wait for something
 * that will come. So this function looks once more, under the lock without which no root opens.
 */
bool jrt_deadlock_break(janus_scheduler *scheduler)
{
    unsigned woken = 0;
    char    *report = jrt_dump_deadlock(scheduler, "janusrt: deadlock: every task waits\n");
    const struct jrt_world *world = jrt_world_now();
    if (jrt_unlikely(world != NULL && world->deadlock != NULL)) world->deadlock();
    jrt_lock(&scheduler->roots_lock);
    bool                  stuck = jrt_idle_stuck(scheduler) != 0;
    struct jrt_list_node *node = scheduler->roots.next;
    for (; node != &scheduler->roots && stuck; node = node->next) {
        woken += break_below(jrt_list_entry(node, struct jrt_nursery, link));
    }
    /* relaxed: an asker has awaited the tasks that were woken. */
    if (woken > 0) jrt_store_relaxed(&scheduler->deadlocked, true);
    jrt_books_deadlock(woken > 0 ? scheduler->books : NULL, report);
    jrt_unlock(&scheduler->roots_lock);
    return woken > 0;
}
