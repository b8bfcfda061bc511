/* SPDX-License-Identifier: MIT */
/* Joins the tree of tasks and nurseries, from the top down. The essay is in nursery.c. */
#include "cancel/cancel.h"
#include "task/nursery.h"
#include "task/task.h"

/*
 * [tree-path]  [tree-lazy] demands that the tree is joined from the top down, but a task knows only
 *   the way up. Recursion would need stack for every task around the caller. So this code cuts the
 *   way up in halves until a piece fits in an array, and joins the upper half first. At most as
 *   many pieces wait as the depth has bits. The walk passes each task once for each of these
 *   pieces.
 *
 *   Other threads may join the same tasks at the same time, so each step looks again, under its
 *   lock. All tasks on the way live at least as long as the caller, whose nursery they keep open.
 */
enum { PIECE_MAX = 8, PIECES_MAX = 32 };

struct piece {
    struct jrt_task *lowest;
    uint64_t         length; /* tasks from `lowest` upwards */
};

/* The task around this one; NULL: a plain thread owns its nursery. */
static struct jrt_task *above(const struct jrt_task *task) { return task->nursery->owner; }

/* The place on the owner's list for n and for all unregistered nurseries around n. It is before the
 * next registered nursery around. Under the lock. */
static struct jrt_list_node *place_of(struct jrt_nursery *n)
{
    const struct jrt_nursery *at = n;
    do at = jrt_nursery_outer_of_other(at); /* n itself is not registered */
    while (at != NULL && !jrt_load_relaxed(&at->registered)); /* relaxed: locked. */
    return at != NULL ? at->link.prev : n->owner->nurseries.prev;
}

/*
 * Puts a nursery on the list of its owner, which is linked.
 *
 * [tree-order]  The list shows which nursery lies inside which: innermost first. So a nursery is
 *   registered together with the nurseries around it. A parallel call may have put its nursery
 *   around nurseries that were registered before ([fork-nursery]). It belongs behind these.
 */
static void register_one(struct jrt_nursery *n)
{
    if (n->owner == NULL || jrt_load_acquire(&n->registered)) return; /* acquire: as below. */
    struct jrt_task    *owner = n->owner;
    struct jrt_nursery *outer = owner->nursery;
    /* acquire: as jrt_task_link. */
    jrt_debug_invariant("tree-lazy", jrt_load_acquire(&owner->linked));
    jrt_nursery_lock(outer);
    struct jrt_list_node *place = place_of(n), *before = place;
    for (; n != NULL; n = jrt_nursery_outer_of_other(n)) {
        if (jrt_load_relaxed(&n->registered)) break; /* relaxed: locked. */
        jrt_nursery_ready(n);                        /* others can find it from now on */
        jrt_list_push_front(place, &n->link);
        place = &n->link;
        jrt_store_release(&n->registered, true); /* release: the way up is there. */
    }
    struct jrt_list_node *next = n != NULL ? &n->link : &owner->nurseries;
    jrt_debug_invariant("tree-order", place == before || place->next == next); /* or another did */
    jrt_nursery_unlock(outer);
}

/* Puts a task on its nursery's list. The task around it is linked. */
static void link_one(struct jrt_task *task)
{
    register_one(task->nursery);
    jrt_nursery_lock(task->nursery);
    if (!jrt_load_relaxed(&task->linked)) { /* relaxed: under the lock. */
        jrt_list_init(&task->nurseries);
        jrt_list_push_front(&task->nursery->children, &task->sibling);
        jrt_store_release(&task->linked, true); /* release: the way up is there. */
    }
    jrt_nursery_unlock(task->nursery);
}

static void link_piece(struct piece piece)
{
    struct jrt_task *path[PIECE_MAX];
    for (uint64_t i = 0; i < piece.length; i++) {
        path[i] = piece.lowest;
        piece.lowest = above(piece.lowest);
    }
    for (uint64_t i = piece.length; i-- > 0;) link_one(path[i]);
}

/* Links a task and the tasks around it, up to the first linked one, [tree-path]. */
__attribute__((noinline)) static void link_path(struct jrt_task *task)
{
    struct piece waiting[PIECES_MAX];
    unsigned     count = 1;
    waiting[0] = (struct piece){task, 0};
    /* acquire: the way up is there. */
    for (; task != NULL && !jrt_load_acquire(&task->linked); task = above(task)) {
        waiting[0].length++;
    }
    while (count > 0) {
        struct piece piece = waiting[--count];
        if (piece.length <= PIECE_MAX) {
            link_piece(piece);
            continue;
        }
        jrt_debug_invariant("tree-path", count + 2 <= PIECES_MAX);
        struct piece upper = {piece.lowest, piece.length - piece.length / 2};
        for (uint64_t i = 0; i < piece.length / 2; i++) upper.lowest = above(upper.lowest);
        waiting[count++] = (struct piece){piece.lowest, piece.length / 2};
        waiting[count++] = upper;
    }
}

void jrt_nursery_register(struct jrt_nursery *n)
{
    if (n->owner == NULL || jrt_load_acquire(&n->registered)) return; /* acquire: as below. */
    jrt_task_link(n->owner);
    register_one(n);
}

void jrt_task_link(struct jrt_task *task)
{
    if (jrt_load_acquire(&task->linked)) return; /* acquire: the way up is there. */
    const struct jrt_nursery *n = task->nursery;
    /* acquire: as above. */
    if (jrt_likely(n->owner == NULL || jrt_load_acquire(&n->registered))) {
        link_one(task);
    } else {
        link_path(task);
    }
}

/* Whether an id names a child: a record may belong to another nursery. */

/* Whether the record itself shows, for certain, a child that can be joined. */
__attribute__((noinline, no_sanitize("thread"))) bool jrt_task_peek_joinable(
    const struct jrt_task *task, const struct jrt_nursery *n, janus_task_id id)
{
    /* acquire: what the task was given came before its id. */
    if ((uint32_t)id != jrt_load_acquire(&task->record.generation)) return false;
    struct jrt_nursery *nursery = *(struct jrt_nursery *const volatile *)&task->nursery;
    bool                joinable = *(const volatile bool *)&task->joinable;
    jrt_fence_seq_cst(); /* seq_cst: the second look comes after these reads. */
    /* relaxed: after the fence. */
    if ((uint32_t)id != jrt_load_relaxed(&task->record.generation)) return false;
    return joinable && nursery == n;
}

__attribute__((noinline, no_sanitize("thread"))) bool jrt_task_peek_child(
    const struct jrt_task *task, const struct jrt_nursery *n, janus_task_id id, bool *out_linked)
{
    /* acquire: what the task was given came before its id. */
    if ((uint32_t)id != jrt_load_acquire(&task->record.generation)) return false;
    struct jrt_nursery *nursery = *(struct jrt_nursery *const volatile *)&task->nursery;
    bool                kept = *(const volatile bool *)&task->kept;
    *out_linked = *(const volatile bool *)(const volatile void *)&task->linked;
    jrt_fence_seq_cst(); /* seq_cst: the second look comes after these reads. */
    /* relaxed: after the fence. */
    if ((uint32_t)id != jrt_load_relaxed(&task->record.generation)) return false;
    return nursery == n && !kept;
}
