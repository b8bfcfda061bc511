/* SPDX-License-Identifier: MIT */
/* Ends a nursery: runs its children in place and takes it apart. The essay is in nursery.c. */
#include "books/books.h"
#include "cancel/cancel.h"
#include "cancel/token.h"
#include "means/call.h"
#include "means/terms.h"
#include "nursery/nursery.h"
#include "nursery/plain.h"
#include "nursery/run.h"
#include "task/nursery.h"
#include "task/state.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/turn.h"
#include "work/work.h"

#include <stdlib.h>

/* Puts back a child that is not plain: jrt_nursery_run_children runs it. */
__attribute__((noinline)) static void put_back(struct jrt_worker *worker, struct jrt_task *task)
{
    jrt_submit_fresh(worker, task);
}

/* Takes the newest child. False: there is no child, or it is not plain and stays. */
static inline __attribute__((always_inline)) bool take_fast(const struct jrt_nursery *n,
                                                            struct jrt_worker *worker, bool full,
                                                            struct jrt_task **out)
{
    void *taken;
    if (jrt_unlikely(worker->lanes & JRT_IN_HIGH)) return false;
    if (jrt_unlikely(!jrt_shelf_pop_newest_fast(&worker->fresh_shelf, full, &taken))) {
        return false;
    }
    *out = taken;
    if (jrt_likely(jrt_child_is_ordinary(n, taken))) return true;
    put_back(worker, taken);
    return false;
}

/* Yields if others come first. The owner calls this between two children, with its own fuel. */
__attribute__((noinline)) static struct jrt_worker *look_around(struct jrt_worker *worker,
                                                                struct jrt_task   *owner,
                                                                int64_t            fuel)
{
    worker->current = owner;
    jrt_fuel_set(fuel);
    if (jrt_look_for_others(worker)) jrt_task_give_way(worker, owner);
    return jrt_worker_self(); /* [worker-again] */
}

/* Runs children that are not plain, with the owner's fuel around them. */
__attribute__((noinline)) static struct jrt_worker *run_others(struct jrt_nursery *n,
                                                               struct jrt_worker  *worker,
                                                               int64_t             fuel)
{
    worker->current = n->owner;
    jrt_fuel_set(fuel);
    return jrt_nursery_run_children(n, worker, n->owner);
}

__attribute__((noinline)) static int64_t fuel_left(void) { return jrt_fuel_get(); }

/* A plain child that did not end plainly. */
__attribute__((noinline)) static struct jrt_worker *ran_slow(struct jrt_nursery *n,
                                                             struct jrt_task *task, int how,
                                                             int64_t fuel)
{
    struct jrt_worker *worker = jrt_task_ran_slow(task, how, n->owner, fuel);
    if (--worker->until_others == 0) worker = look_around(worker, n->owner, fuel_left());
    return worker;
}

/*
 * Runs a plain child in place on a plain worker, [worker-plain], without the checks that cannot
 * apply. Afterwards the fuel word is the child's, and *owner_fuel the owner's, [purse-fuel]. Also
 * `current` is still the child: the next child, or the caller, replaces it. Returns whether
 * children are left.
 */
static inline __attribute__((always_inline)) bool run_fast(struct jrt_nursery *n,
                                                           struct jrt_worker **on,
                                                           struct jrt_task    *task,
                                                           int64_t            *owner_fuel)
{
    struct jrt_worker *worker = *on;
    worker->current = task;
    jrt_count(&worker->stats.tasks_executed);
    jrt_task_move(task, JANUS_TASK_STATE_RUNNING);
    jrt_fuel_set(worker->slice);
    int how = jrt_ctx_call(&task->landing, task->entry, task->argument);
    JRT_TASK_LEFT_OPEN(task, how);
    /* Nobody can have set it apart: its owner is here. */
    jrt_debug_invariant("nursery-closing", !jrt_nursery_is_apart(n));
    if (jrt_unlikely(!jrt_task_ended_fast(task, how))) {
        *on = ran_slow(n, task, how, *owner_fuel);
        *owner_fuel = fuel_left();
        return n->local > 0;
    }
    *on = worker = jrt_worker_self(); /* [worker-again] */
    jrt_task_over_here(worker, task);
    jrt_debug_invariant("nursery-count", n->local > 0);
    if (jrt_unlikely(--worker->until_others == 0)) {
        n->local--;
        *on = look_around(worker, n->owner, *owner_fuel);
        *owner_fuel = fuel_left();
        return n->local > 0;
    }
    return --n->local != 0;
}

/* Whether all children have ended, in place or at least without anything to report or take
 * apart. */
static inline bool is_over_fast(struct jrt_nursery *n)
{
    if (n->local != 0) return false;
    /* acquire: children that were counted there and ended. */
    if (jrt_load_acquire(&n->pending) != JRT_NURSERY_BIAS || n->any_flag != 0) return false;
    return jrt_load_relaxed(&n->plain) == 0; /* relaxed: nothing follows. */
}

static void unregister(struct jrt_nursery *n)
{
    if (n->owner == NULL) {
        jrt_lock(&n->scheduler->roots_lock);
        jrt_list_remove(&n->link);
        if (jrt_list_empty(&n->scheduler->roots)) {
            jrt_fetch_sub_relaxed(&n->scheduler->outside, 1u); /* relaxed: nobody can wait. */
        } else {
            jrt_outside_less(n->scheduler);
        }
        jrt_unlock(&n->scheduler->roots_lock);
    } else {
        jrt_nursery_lock(n->owner->nursery);
        jrt_list_remove(&n->link);
        jrt_nursery_unlock(n->owner->nursery);
    }
}

static void free_finished(struct jrt_nursery *n)
{
    struct jrt_worker *worker = jrt_worker_self();
    while (!jrt_list_empty(&n->finished)) {
        struct jrt_task *task = jrt_list_entry(n->finished.next, struct jrt_task, sibling);
        jrt_list_remove(&task->sibling);
        jrt_task_retire(n->scheduler, worker, task);
    }
}

janus_status jrt_nursery_end(struct jrt_nursery *n, janus_nursery_result *out)
{
    if (!jrt_nursery_is_mine(n) || (n->owner != NULL && n->owner->innermost != n)) {
        jrt_stack_check(); /* [turn-call] */
        return JANUS_STATE;
    }
    janus_status status = janus_nursery_await_with((janus_nursery *)(void *)n, out);
    if (status == JANUS_STATE) return status;
    jrt_nursery_disarm(n);
    jrt_shield_nursery_leave(n);
    /* acquire: pairs with jrt_nursery_register; all children are gone. */
    if (jrt_load_acquire(&n->registered)) {
        unregister(n);
        jrt_nursery_await_visitors(n); /* [cancel-visit] */
    }
    if (n->kept) free_finished(n);
    if (n->bound) jrt_nursery_tokens_end(n);
    jrt_failures_free(n); /* before its terms, which count them */
    jrt_nursery_drop_terms(n);
    free(n->panic);
    jrt_sanitizer_lock_gone(&n->lock);
    jrt_scope_end(n);
    jrt_debug_invariant("exhaust-await",
                        n->exhausted.next == NULL || jrt_list_empty(&n->exhausted));
    jrt_debug_invariant("nursery-outer", n->owner == NULL || n->owner->innermost == n);
    if (n->owner != NULL) n->owner->innermost = jrt_nursery_outer(n);
    return status;
}

/* Inspections show the nurseries of parallel calls. Such a call ends and frees its nursery itself,
 * so nobody else may. */
__attribute__((noinline)) static janus_status end_slow(struct jrt_nursery   *n,
                                                       janus_nursery_result *out)
{
    if (n != NULL && !n->internal && n->on_heap != JRT_SUPERVISED) return jrt_nursery_end(n, out);
    jrt_stack_check(); /* [turn-call] */
    return n == NULL ? JANUS_INVALID : JANUS_STATE;
}

/* Leaves a nursery after its children ran in place; the slow path does what is left. */
static inline __attribute__((always_inline)) janus_status leave(struct jrt_nursery *n,
                                                                struct jrt_task    *owner)
{
    if (jrt_unlikely(!is_over_fast(n))) return end_slow(n, NULL);
    /* relaxed: nobody else is left. */
    if (JRT_TSAN && jrt_load_relaxed(&n->ready) == JRT_READY) jrt_sanitizer_lock_gone(&n->lock);
    owner->innermost = jrt_nursery_outer(n);
    return JANUS_OK;
}

/* Runs the owner's children in place, and ends the nursery. The owner has set its mark. */
static inline __attribute__((always_inline)) janus_status
end_with_children(struct jrt_nursery *n, struct jrt_worker *worker, bool full)
{
    struct jrt_task *task = NULL;
    int              error = *worker->error_at; /* [task-errno] */
    int64_t          fuel = jrt_fuel_get();
    for (;;) {
        if (jrt_likely(take_fast(n, worker, full, &task))) {
            if (run_fast(n, &worker, task, &fuel)) continue;
            break;
        }
        int64_t left = n->local;
        worker = run_others(n, worker, fuel);
        fuel = fuel_left();
        if (left == n->local || n->local == 0) break;
    }
    worker->current = n->owner;
    jrt_fuel_set(fuel);
    *worker->error_at = error;
    return leave(n, n->owner);
}

/* Whether the stack has room for ordinary children on top of this frame. */
static inline __attribute__((always_inline)) bool is_ample(const struct jrt_worker *worker)
{
    return (uintptr_t)__builtin_frame_address(0) >= worker->strand->child_floor;
}

/* The same on a worker that is not PLAIN, or on a stack with little room. */
__attribute__((noinline)) static janus_status end_with_others(struct jrt_nursery *n,
                                                              struct jrt_worker  *worker)
{
    bool plain = worker->plain != JRT_NOT_PLAIN && worker->thread->current == NULL &&
                 !jrt_nursery_is_apart(n);
    if (plain && is_ample(worker)) return end_with_children(n, worker, true);
    int error = *worker->error_at; /* [task-errno] */
    worker = jrt_nursery_run_children(n, worker, n->owner);
    *worker->error_at = error;
    return leave(n, n->owner);
}

JRT_HOT __attribute__((noinline)) static janus_status end_with_plain(struct jrt_nursery *n,
                                                                     struct jrt_worker  *worker)
{
    if (jrt_unlikely(!is_ample(worker) || jrt_nursery_is_apart(n))) {
        return end_with_others(n, worker);
    }
    return end_with_children(n, worker, false);
}

/* The rare endings of end_as. */
__attribute__((noinline)) static janus_status end_starving(struct jrt_nursery *n)
{
    jrt_nursery_begin_waiting(n);
    return n->local > 0 ? end_with_others(n, jrt_worker_self()) : leave(n, n->owner);
}

__attribute__((noinline)) static janus_status end_late(struct jrt_nursery *n)
{
    jrt_turn_call(jrt_worker_self()); /* [turn-call] */
    return leave(n, n->owner);
}

/*
 * Usually only the owner has ever seen the nursery. Its children ran in place, so nobody is left
 * to read a final state. The caller has checked the stack: a taken child that finds no room is put
 * back, which needs [stack-reserve].
 */
static inline __attribute__((always_inline)) janus_status end_as(struct jrt_nursery *n,
                                                                 struct jrt_worker  *worker,
                                                                 bool                full)
{
    struct jrt_task *owner = worker->current;
    /* The innermost nursery is the owner's own. */
    if (jrt_unlikely(owner->innermost != n || jrt_nursery_ends_slow(n))) return end_slow(n, NULL);
    jrt_debug_invariant("nursery-closing", jrt_nursery_is_mine(n));
    /* relaxed: [nursery-closing]. The fence follows, [exhaust-await]. */
    jrt_store_relaxed(&n->ending, JRT_ENDING);
    jrt_fence_light_as_seq_cst(full); /* seq_cst: [exhaust-await]. */
    /* relaxed: after the fence. A child that runs in place may wait for an exhausted one. */
    if (jrt_unlikely(jrt_load_relaxed(&n->starving))) return end_starving(n);
    if (n->local > 0) return full ? end_with_others(n, worker) : end_with_plain(n, worker);
    if (jrt_unlikely((worker->tolls -= 2) < 0)) return end_late(n); /* spawns paid for children */
    return leave(n, owner);
}

__attribute__((noinline)) static janus_status end_not_plain(struct jrt_nursery   *n,
                                                            janus_nursery_result *out)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (worker == NULL || out != NULL || n == NULL) return end_slow(n, out);
    jrt_worker_stack_check(worker); /* [stack-reserve]; in a world, others may go on */
    return end_as(n, worker, true);
}

JRT_HOT janus_status janus_nursery_end(janus_nursery *nursery, janus_nursery_result *out)
{
    struct jrt_nursery *n = jrt_nursery_of(nursery);
    struct jrt_worker  *worker = jrt_worker_self();
    if (jrt_unlikely(worker == NULL || out != NULL || worker->plain != JRT_PLAIN ||
                     nursery == NULL || !jrt_worker_stack_is_fine(worker))) {
        return end_not_plain(n, out);
    }
    return end_as(n, worker, false);
}

void janus_nursery_leave(janus_nursery *nursery)
{
    janus_status status = janus_nursery_end(nursery, NULL);
    if (status == JANUS_CHILD_FAILED) {
        janus_panic("return or goto left the block of a nursery whose child failed: use break, and "
                    "then check the block's status");
    }
    if (status == JANUS_STATE)
        janus_panic("a task or thread that does not own a nursery left its block");
}
