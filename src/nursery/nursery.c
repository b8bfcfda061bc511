/* SPDX-License-Identifier: MIT */
/*
 * Nurseries: counting children, ending, failing.
 *
 * [nursery-moves]  The moves are Open -> Closing -> Closed, and Open or Closing -> Cancelling ->
 *   Cancelled. No other move exists, and none goes back. The thread that sees the last child end
 *   makes the move to a final state.
 *
 * [nursery-count]  A nursery counts the children that have not ended. Children that the owner
 *   started and ran in place are counted by the owner alone, in `local`, without atomics. All
 *   others are counted in `pending`. It begins with a large bias, so that it cannot reach zero
 *   before the owner has added `local`. Closing merges the counts: it adds `local` and takes the
 *   bias away. From then on zero means that all children have ended, and exactly one operation
 *   brings it there.
 *
 * [nursery-closing]  An owner that waits closes the nursery first. If no other thread is involved,
 *   the owner only sets a mark of its own. The step from Open to Closing would cost a locked
 *   instruction. For all readers, Open with the mark is Closing. The owner makes the real step
 *   when it must do more than run children in place.
 *
 * [tree-lazy]  A task joins its nursery's list of children only when it first has to wait. A
 *   nursery joins its owner's list only when such a child exists. Nobody finds tasks that never
 *   wait, and they cost no lock: they look upwards themselves (jrt_task_cancel_reason). Lists are
 *   joined from the top down, so that a linked task can be reached from the root.
 *
 * Order of locks: a nursery's, then those of nurseries below it. The lock of a task's nursery
 * guards the task's own list of nurseries.
 */
#include "nursery/nursery.h"

#include "books/books.h"
#include "cancel/cancel.h"
#include "cancel/wait.h"
#include "means/call.h"
#include "means/purse.h"
#include "means/room.h"
#include "means/terms.h"
#include "nursery/executor.h"
#include "nursery/run.h"
#include "task/note.h"
#include "task/nursery.h"
#include "task/state.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/limit.h"
#include "work/turn.h"
#include "work/work.h"

#include <stdlib.h>
#include <string.h>

static const int64_t bias = JRT_NURSERY_BIAS;

static bool is_final(janus_nursery_state state) { return state >= JANUS_NURSERY_STATE_CLOSED; }

/* One step of [nursery-moves]. False: the state was another. */
static bool move(struct jrt_nursery *n, janus_nursery_state from, janus_nursery_state to)
{
    uint8_t expected = (uint8_t)from;
    /* seq_cst: a cancel changes the state before it looks for waiting tasks. A task sets PARKING
     * before it looks at the state ([cancel-park] in cancel.c). */
    return jrt_cas_seq_cst(&n->state, &expected, (uint8_t)to);
}

/* Ending. */

/* A root nursery has no children left, or is final. */
static void root_done(janus_scheduler *scheduler)
{
    jrt_fetch_add_acq_rel(&scheduler->root_done, 1u); /* acq_rel: what the children wrote. */
    jrt_futex_wake(&scheduler->root_done, JRT_WAKE_ALL);
}

/* Ends a nursery whose children have all ended. No other thread does so. */
static void finish(struct jrt_nursery *n)
{
    janus_scheduler *scheduler = n->scheduler;
    bool             root = n->owner == NULL;
    jrt_nursery_lock(n);
    janus_nursery_state state = jrt_load_acquire(&n->state); /* acquire: OPEN stays. */
    if (jrt_unlikely(state == JANUS_NURSERY_STATE_OPEN)) {
        jrt_nursery_emptied_locked(n);
        jrt_nursery_unlock(n);
        return;
    }
    bool moved = move(n, JANUS_NURSERY_STATE_CLOSING, JANUS_NURSERY_STATE_CLOSED) ||
                 move(n, JANUS_NURSERY_STATE_CANCELLING, JANUS_NURSERY_STATE_CANCELLED);
    jrt_invariant("nursery-moves", moved);
    struct jrt_task *waiter = n->waiter;
    n->waiter = NULL;
    /* It may be cancelled, and gone: wake it under the lock. */
    if (n->supervised && waiter != NULL) {
        (void)jrt_task_wake(waiter, JANUS_OK);
        waiter = NULL;
    }
    jrt_store_release(&n->done, 1u); /* release: the waiting thread sees what children wrote. */
    jrt_nursery_unlock(n);
    /* From here on the nursery may be gone. The futex uses only the address, and tasks wait in
     * another way. */
    if (root) jrt_futex_wake(&n->done, JRT_WAKE_ALL);
    if (waiter != NULL) (void)jrt_task_wake(waiter, JANUS_OK);
    if (root) root_done(scheduler);
}

/* The owner's part of [nursery-count]. */
static void merge(struct jrt_nursery *n)
{
    if (n->merged) return;
    n->merged = true;
    int64_t change = n->local - bias;
    /* acq_rel: what ended children wrote comes before the final state. */
    if (jrt_fetch_add_acq_rel(&n->pending, change) + change == 0) finish(n);
}

void jrt_nursery_merge(struct jrt_nursery *n) { merge(n); }

/*
 * [nursery-obey]  A child that returns CANCELLED has obeyed, and has not failed, if a call or a
 *   token reported the cancel to it. It has also obeyed if it or its scope is cancelled. It may
 *   have learned of that from a closed channel, or from a spawn that returned CLOSED. From then on
 *   saw_cancel is set.
 */
static bool has_obeyed(struct jrt_task *task)
{
    if (task->panic != JANUS_PANIC_KIND_NONE || task->landing.result != JANUS_CANCELLED)
        return false;
    bool scope = task->saw_cancel || jrt_nursery_cancelled_above(task->nursery);
    if (!scope && !jrt_task_is_singled(task)) return false;
    task->saw_cancel = task->dirty = true;
    return true;
}

static bool is_failure(const struct jrt_task *task, bool obeyed)
{
    if (task->panic != JANUS_PANIC_KIND_NONE) return true;
    jrt_debug_invariant("nursery-obey", !obeyed || task->saw_cancel);
    return task->landing.result < 0 && !obeyed;
}

static void note_failure(struct jrt_nursery *n, struct jrt_task *task)
{
    if (n->scheduler->books != NULL) jrt_books_failure(n, task);
    jrt_nursery_lock(n);
    n->failed = true;
    if (n->errors++ == 0) {
        n->error = task->landing.result;
        n->error_task = jrt_task_id(task);
        /* Where memory is short, only the kind is reported; see result_of. */
        n->panic_kind = (janus_panic_kind)task->panic;
        if (task->panic != JANUS_PANIC_KIND_NONE) n->panic = jrt_calloc(1, sizeof *n->panic);
        if (n->panic != NULL) jrt_panic_describe(n->panic, task);
    }
    jrt_failures_keep(n, task);
    jrt_nursery_unlock(n);
    if (n->policy == JANUS_POLICY_CANCEL_ON_ERROR) {
        (void)jrt_nursery_cancel(n, JANUS_CANCEL_REASON_SIBLING_ERROR);
    }
}

/* Takes a task off the list of children. A joinable child stays, with its result. True: the record
 * is free. */
static bool take_off(struct jrt_nursery *n, struct jrt_task *task)
{
    jrt_nursery_lock(n);
    if (jrt_load_relaxed(&task->linked)) { /* relaxed, both: locked. */
        jrt_list_remove(&task->sibling);
        task->dirty = true;                      /* the third cache line is still not clean */
        jrt_store_relaxed(&task->linked, false); /* relaxed: nobody visits it, [cancel-single]. */
    }
    if (task->joinable) {
        if (!n->kept) jrt_list_init(&n->finished);
        n->kept = task->kept = true;
        jrt_list_push_front(&n->finished, &task->sibling);
        if (n->joining == jrt_task_id(task)) jrt_join_ended(n);
    }
    bool joinable = task->joinable; /* once the lock is free, its owner may retire it */
    jrt_nursery_unlock(n);
    return !joinable;
}

void jrt_nursery_count_off_some(struct jrt_nursery *n, int64_t children)
{
    janus_scheduler *scheduler = n->scheduler;
    bool             root = n->owner == NULL;
    /* acq_rel: these children's writes before the count, all others' before the final state. */
    int64_t left = jrt_fetch_sub_acq_rel(&n->pending, children) - children;
    jrt_debug_invariant("nursery-count", left >= 0);
    if (left == 0) {
        finish(n);
    } else if (left == bias && root) {
        root_done(scheduler); /* a thread may wait for an open root to be empty */
    }
}

void jrt_nursery_count_off(struct jrt_nursery *n) { jrt_nursery_count_off_some(n, 1); }

/* Zeroes what is not clean, [task-clean]. Nobody else knows the task any more. */
static void wipe(struct jrt_task *task)
{
    if (task->panic == JANUS_PANIC_KIND_EXPLICIT) free((void *)(uintptr_t)task->fault_data);
    if (task->owns_name) free((void *)(uintptr_t)task->name);
    size_t from = offsetof(struct jrt_task, any_flag);
    memset((char *)task + from, 0, sizeof *task - from);
}

/* Frees the record of a child that was joined, or that nobody can join. */
void jrt_task_retire(janus_scheduler *scheduler, struct jrt_worker *worker, struct jrt_task *task)
{
    if (task->any_flag != 0) wipe(task);
    jrt_task_free(scheduler, worker, task);
}

/* Whether somebody has seen the last child end. A child that is about to end would be one more. */
static bool was_seen_over(struct jrt_nursery *n)
{
    /* acquire, both: a nursery that is not ready has no such mark. */
    return jrt_load_acquire(&n->ready) == JRT_READY && jrt_load_acquire(&n->over); /* acquire */
}

void jrt_nursery_child_done(struct jrt_worker *worker, struct jrt_task *task,
                            const struct jrt_task *below)
{
    struct jrt_nursery *n = task->nursery;
    bool                in_place = below != NULL && below == n->owner && !n->merged;
    jrt_debug_invariant("nursery-seen", !was_seen_over(n));
    jrt_debug_invariant("ending-open", task->innermost == NULL);
    bool                 cancelled = has_obeyed(task);
    struct jrt_resident *resident = jrt_task_is_resident(task) ? jrt_resident_of(task) : NULL;
    if (jrt_unlikely(resident != NULL)) {
        resident->rules->ending(resident, task, cancelled);
    }
    bool is_child = jrt_likely(resident == NULL) || resident->rules->is_child;
    if (jrt_unlikely(is_failure(task, cancelled)) && is_child) note_failure(n, task);
    /* The child obeyed a cancel further up: cancel the nurseries between, too. A child that obeyed
     * a token, or its supervisor, ends alone. */
    if (jrt_unlikely(cancelled)) jrt_nursery_follow(n);
    struct jrt_runner *runner = NULL;
    if (jrt_unlikely(task->dirty && task->purse != NULL)) {
        runner = jrt_launch_ended(task);
        jrt_purse_close(worker, task);
    }
    if (jrt_unlikely(worker->trace != NULL)) jrt_note_complete(worker, task);
    jrt_task_move(task, cancelled ? JANUS_TASK_STATE_CANCELLED : JANUS_TASK_STATE_COMPLETED);
    bool free_record = true;
    /* Before the report, because a joiner may use the child's room. The scheduler's room comes
     * first: a spawn that gets room in the nursery needs both. */
    if (jrt_unlikely(n->on_terms)) {
        jrt_terms_leave(n, worker);
    } else {
        jrt_quota_give(&worker->quota);
    }
    if (jrt_unlikely(n->limited)) jrt_room_give(n);
    /* relaxed: set only while the task waits, which it no longer does. */
    if (jrt_unlikely(jrt_load_relaxed(&task->linked) || task->joinable)) {
        free_record = take_off(n, task);
    }
    if (jrt_likely(free_record)) jrt_task_retire(n->scheduler, worker, task);
    if (jrt_unlikely(runner != NULL)) jrt_runner_tell(runner);
    if (jrt_unlikely(resident != NULL)) {
        resident->rules->ended(resident);
        jrt_debug_invariant("rest-end", !was_seen_over(n));
    }
    if (jrt_likely(in_place)) {
        jrt_debug_invariant("nursery-count", n->local > 0);
        n->local--;
        return;
    }
    jrt_nursery_count_off(n);
}

/* Awaiting. */

/* The owner's newest child that nobody has taken and that can run here; NULL: none. */
static struct jrt_task *take_child(struct jrt_nursery *n, struct jrt_worker *worker)
{
    if (jrt_unlikely(worker->lanes & JRT_IN_HIGH))
        return NULL; /* HIGH tasks come first: the loop runs them */
    struct jrt_task *child = jrt_take_newest(worker, JRT_LANE_NORMAL);
    if (child == NULL) return NULL;
    if (child->nursery == n && jrt_worker_has_room(worker, child)) return child;
    jrt_submit_fresh(worker, child); /* another's child, or no room: the loop runs it */
    return NULL;
}

struct jrt_worker *jrt_nursery_run_children(struct jrt_nursery *n, struct jrt_worker *worker,
                                            struct jrt_task *owner)
{
    if (n->merged || worker->thread->current != NULL) return worker; /* or in a fiber of its own */
    int error = *worker->error_at;                                   /* [task-errno] */
    while (n->local > 0) {
        struct jrt_task *child = take_child(n, worker);
        if (child == NULL) break;
        worker = jrt_task_run(worker, child, n, owner);
        if (jrt_unlikely(jrt_others_wait(worker))) {
            jrt_task_give_way(worker, owner);
            worker = jrt_worker_self();
        }
    }
    *worker->error_at = error;
    return worker;
}

struct last_wait {
    struct jrt_waiting  waiting; /* first */
    struct jrt_nursery *nursery;
};

static janus_status wait_for_last(struct jrt_waiting *waiting, struct jrt_task *task)
{
    struct jrt_nursery *n = ((struct last_wait *)waiting)->nursery;
    jrt_nursery_lock(n);
    bool pending = !is_final(jrt_nursery_state(n));
    if (pending) n->waiter = task;
    jrt_nursery_unlock(n);
    if (!pending) return JANUS_OK;
    jrt_nursery_register(n);
    return JANUS_WOULD_WAIT;
}

static janus_status look_again(struct jrt_waiting *waiting, struct jrt_task *task,
                               janus_status ended)
{
    const struct jrt_nursery *n = ((struct last_wait *)waiting)->nursery;
    (void)task, (void)ended;
    return is_final(jrt_nursery_state(n)) ? JANUS_OK : JANUS_WOULD_WAIT;
}

static void wait_as_task(struct jrt_nursery *n)
{
    struct last_wait last = {.waiting = {.why = JRT_WAIT_NURSERY,
                                         .to_its_end = true,
                                         .deadline_ns = JRT_NEVER,
                                         .join = wait_for_last,
                                         .leave = look_again},
                             .nursery = n};
    if (!is_final(jrt_nursery_state(n))) (void)jrt_wait(jrt_worker_self(), &last.waiting);
}

void jrt_nursery_thread_waits(struct jrt_nursery *n)
{
    jrt_outside_less(n->scheduler); /* only now can a deadlock be found */
}

void jrt_nursery_thread_goes_on(struct jrt_nursery *n)
{
    jrt_fetch_add_relaxed(&n->scheduler->outside, 1u); /* relaxed: as above. */
}

static void wait_as_thread(struct jrt_nursery *n)
{
    jrt_nursery_thread_waits(n);
    (void)jrt_wait_as_thread(&n->done, JRT_NEVER);
    jrt_nursery_thread_goes_on(n);
}

/* Open -> Closing. False: it was not Open. */
static bool begin_closing(struct jrt_nursery *n)
{
    if (!move(n, JANUS_NURSERY_STATE_OPEN, JANUS_NURSERY_STATE_CLOSING)) return false;
    if (jrt_unlikely(n->limited)) {
        jrt_nursery_lock(n);
        jrt_room_close_locked(n);
        jrt_nursery_unlock(n);
    }
    return true;
}

void jrt_nursery_begin_waiting(struct jrt_nursery *n)
{
    jrt_nursery_lock(n);
    jrt_exhausted_abandon_locked(n);
    jrt_nursery_unlock(n);
}

janus_status janus_nursery_await_with(janus_nursery *nursery, janus_nursery_result *out)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_nursery *n = jrt_nursery_of(nursery);
    struct jrt_worker  *worker = jrt_worker_self();
    struct jrt_task    *task = worker != NULL ? worker->current : NULL;
    if (jrt_unlikely(nursery == NULL)) return JANUS_INVALID;
    if (jrt_unlikely(!jrt_nursery_is_mine(n))) return JANUS_STATE;
    (void)begin_closing(n);
    jrt_nursery_begin_waiting(n);
    if (task != NULL) (void)jrt_nursery_run_children(n, worker, task);
    if (!is_final(jrt_nursery_state(n))) {
        merge(n);
        if (task != NULL) {
            if (!jrt_task_is_clean(task) && jrt_nursery_cancelled_above(n)) {
                (void)jrt_nursery_cancel(n, jrt_task_reason_below(task));
            }
            wait_as_task(n);
        } else {
            wait_as_thread(n);
        }
    }
    janus_nursery_result result;
    jrt_nursery_result_of(n, &result);
    if (out != NULL) *out = result;
    if (result.kind == JANUS_RESULT_KIND_CHILD_FAILED) return JANUS_CHILD_FAILED;
    if (result.kind != JANUS_RESULT_KIND_CANCELLED) return JANUS_OK;
    /* A cancelled owner that passes this on has obeyed. An owner that must be unwound ends here. */
    bool told = task != NULL && jrt_task_cancelled_itself(task) != JANUS_CANCEL_REASON_NONE;
    return told ? jrt_task_cancelled_or_end(task) : JANUS_CANCELLED;
}

janus_status janus_nursery_close(janus_nursery *nursery)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_nursery *n = jrt_nursery_of(nursery);
    if (nursery == NULL) return JANUS_INVALID;
    if (!jrt_nursery_is_mine(n)) return JANUS_STATE;
    if (!begin_closing(n)) return JANUS_STATE;
    merge(n);
    return JANUS_OK;
}

janus_status jrt_nursery_cancel_called(struct jrt_nursery *n, janus_cancel_reason reason)
{
    jrt_turn_toll(jrt_worker_self(), JRT_TOLL_CANCEL);
    if (!jrt_nursery_may_cancel(n) || !jrt_nursery_cancel(n, reason)) return JANUS_STATE;
    if (jrt_nursery_is_mine(n)) merge(n); /* it may be empty */
    return JANUS_OK;
}

janus_status janus_nursery_cancel(janus_nursery *nursery)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_nursery *n = jrt_nursery_of(nursery);
    if (nursery == NULL) return JANUS_INVALID;
    return jrt_nursery_cancel_called(n, JANUS_CANCEL_REASON_EXPLICIT);
}
