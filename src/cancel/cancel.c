/* SPDX-License-Identifier: MIT */
/*
 * Cancelling: downwards by a walk, upwards by a look.
 *
 * A cancelled nursery walks down to every waiting task and ends its wait. Running tasks look up
 * themselves, at every call that may wait: at their nursery, their owner's nursery, and so on to
 * the root. So a cancel visits only tasks that ever waited, and starting a task costs nothing for
 * it.
 *
 * [cancel-park]  A task sets PARKING, passes a light fence, and looks at the states above. A cancel
 *   changes the state, passes a heavy fence, and looks for PARKING or PARKED tasks. Whichever
 *   comes second sees the other. models/cancel.pml tries all orders.
 *
 * [cancel-visit]  A cancel on its way down holds at most one lock. It marks what it visits next
 *   under the lock of the nursery above. An owner that ends its nursery first leaves the list
 *   above, under the same lock, and then waits until the mark is gone.
 *
 * [cancel-epoch]  A look up to the root at every start of a task would cost the depth of the tree.
 *   So the scheduler counts cancels. A nursery remembers the count at which it and all above were
 *   found clean. While the count is the same, the task need not look. It need not look either
 *   while all cancels since then were deeper, [reach-depth].
 *
 * [cancel-path]  A long walk that finds nothing cancelled notes so in every nursery on its way. So
 *   in a chain of n nurseries, all looks after one cancel take n steps together, not n each. A
 *   long walk takes tolls, [turn-toll]: the task that nested so deep yields for it.
 *
 * [cancel-sticky]  A task that once saw its cancel always sees it. One word counts each cancel
 *   twice: as begun before the state changes, in the low bits, and as finished after, in the rest.
 *   While a cancel has begun and not finished, no task remembers anything as clean, and remembered
 *   counts do not hold. So a thread that saw the state also sees a cancel begun or finished in the
 *   counter. A task that remembers something under the later count has seen the state, too.
 *
 * [scope-owner]  The owner of a nursery is inside its scope. Once the nursery is cancelled, the
 *   owner's own waits return CANCELLED until janus_nursery_end. The cancel interrupts the owner's
 *   wait as it does the children's ([cancel-park]). It also cancels the nurseries that the owner
 *   opened inside.
 *   A running owner must not find its nursery clean ([cancel-epoch]), although siblings of the
 *   owner share that word and may look up at any time. So the cancel counts itself in `disturbed`
 *   of the nursery that the owner is a child of, before the epoch moves on. While `disturbed` is
 *   not zero, nobody writes the new epoch into `clean` there, and all its children look up.
 *   janus_nursery_end takes the count back.
 *   The canceller keeps the nursery alive until it has interrupted the owner's wait. So the
 *   interrupt cannot meet a wait after the nursery's end. models/scope.pml tries all orders.
 *
 * [scope-shield]  A shield holds off cancels that come from outside of it. A nursery that was
 *   opened inside the same shields as the wait is not outside. Nor is it outside for a nursery
 *   within it that was opened in the same shields. So a nursery knows how many shields its owner
 *   was in, and a wait in shields says how many.
 *
 * [cancel-single]  The owner of a nursery may cancel one child by its id. The nursery notes the id
 *   (single.c). From then on nobody remembers that nursery as clean. Its tasks look for their own
 *   ids there, and tasks below look for the owners of their nurseries on their way up. A shield
 *   holds such a cancel off as it does a cancel from around the task.
 *   The order is that of any cancel: begun in the counter, the id noted, finished in the counter,
 *   heavy fence. Then the canceller visits the child's wait and its nurseries, if the child is
 *   linked. Under the lock, a linked child has not ended: its end unlinks it and removes its mark
 *   under that lock.
 */
#include "cancel/cancel.h"

#include "cancel/token.h"
#include "means/call.h"
#include "means/purse.h"
#include "means/room.h"
#include "task/note.h"
#include "task/nursery.h"
#include "task/reach.h"
#include "task/roster.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/turn.h"
#include "work/work.h"

#include <stdlib.h>

enum { STEPS_A_TOLL = 8 }; /* [cancel-path] */

static bool is_cancelling(const struct jrt_nursery *n)
{
    uint8_t state = jrt_load_acquire(&n->state); /* acquire: the reason was set before. */
    return state == JANUS_NURSERY_STATE_CANCELLING || state == JANUS_NURSERY_STATE_CANCELLED;
}

struct jrt_nursery *jrt_nursery_above(const struct jrt_nursery *n)
{
    struct jrt_nursery *outer = jrt_nursery_outer_of_other(n);
    while (outer != NULL && jrt_nursery_owner_is_apart(outer)) {
        outer = jrt_nursery_outer_of_other(outer);
    }
    return outer != NULL ? outer : n->owner->nursery;
}

/* Whether a shield keeps a cancel of `outer`, a scope around n, from n: [scope-shield]. */
static bool is_kept_from(const struct jrt_nursery *n, const struct jrt_nursery *outer)
{
    if (!jrt_nursery_is_shielded(n)) return false;
    return outer->owner != n->owner || jrt_nursery_level(outer) < jrt_nursery_level(n);
}

static bool is_one_deeper(const struct jrt_nursery *n)
{
    uint32_t depth = jrt_load_relaxed(&n->depth); /* relaxed, both: it never changes. */
    if (n->owner == NULL) return depth == 1;
    return depth == jrt_load_relaxed(&n->owner->nursery->depth) + 1; /* relaxed: as above. */
}

/* The number of owners around n, plus one. The first call counts; later calls find the number. */
static uint32_t depth_of(struct jrt_nursery *n)
{
    uint32_t steps = 0, known = 0;
    for (struct jrt_nursery *at = n; at != NULL && known == 0; steps++) {
        known = jrt_load_relaxed(&at->depth); /* relaxed, here and below: it never changes. */
        at = at->owner != NULL ? at->owner->nursery : NULL;
    }
    if (jrt_likely(steps == 1 && known != 0)) return known;
    uint32_t depth = known != 0 ? known + steps - 1 : steps;
    for (struct jrt_nursery *at = n; at != NULL && depth > known; depth--) {
        jrt_store_relaxed(&at->depth, depth); /* relaxed: as above. */
        at = at->owner != NULL ? at->owner->nursery : NULL;
    }
    jrt_debug_invariant("reach-depth", is_one_deeper(n));
    return jrt_load_relaxed(&n->depth); /* relaxed: as above. */
}

/* Whether n and all above were found clean, and no later cancel concerns them. */
static bool is_known_clean(struct jrt_nursery *n, uint64_t epoch)
{
    uint64_t clean = jrt_load_relaxed(&n->clean); /* relaxed: written after looking at all above. */
    if (clean == epoch) return true;
    if ((epoch & JRT_CANCELS_BEGUN) != 0) return false; /* [cancel-sticky] */
    return jrt_reach_is_deeper(&n->scheduler->reach, clean, depth_of(n));
}

/* Whether its clean epoch must not be moved on: [scope-owner]. */
static bool is_disturbed(const struct jrt_nursery *n)
{
    /* acquire: what was written then. A nursery that is not ready was never disturbed. */
    if (jrt_load_acquire(&n->ready) != JRT_READY) return false;
    /* relaxed, both: the epoch was acquired after it. */
    return jrt_load_relaxed(&n->disturbed) != 0 || jrt_load_relaxed(&n->singles) != NULL;
}

/* Notes a walk of `steps` from n to below `end` that found nothing cancelled: [cancel-path]. */
__attribute__((noinline)) static void note_path(struct jrt_nursery       *n,
                                                const struct jrt_nursery *end, uint64_t epoch,
                                                uint32_t steps)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (worker != NULL) worker->tolls -= (int32_t)(steps / STEPS_A_TOLL);
    if ((epoch & JRT_CANCELS_BEGUN) != 0) return; /* [cancel-sticky] */
    for (; n != end; n = jrt_nursery_above(n)) {
        jrt_debug_invariant("cancel-path", n->owner != NULL);
        if (!is_disturbed(n)) jrt_store_relaxed(&n->clean, epoch); /* relaxed: [cancel-epoch]. */
    }
}

/* Looks upwards until a nursery is cancelled or known to be clean. NONE: no nursery is
 * cancelled. */
static janus_cancel_reason reason_above(struct jrt_nursery *n, uint64_t epoch)
{
    struct jrt_nursery *at = n;
    uint32_t            steps = 0;
    for (;; steps++) {
        if (is_cancelling(at)) {
            if (at != n) return JANUS_CANCEL_REASON_PARENT;
            return (janus_cancel_reason)jrt_load_relaxed(&n->reason); /* relaxed: after the state.*/
        }
        if (at->owner == NULL || is_known_clean(at, epoch)) break;
        if (!jrt_nursery_is_shielded(at) && jrt_task_is_singled(at->owner)) { /* [cancel-single] */
            return at->owner == n->owner ? JANUS_CANCEL_REASON_EXPLICIT
                                         : JANUS_CANCEL_REASON_PARENT;
        }
        struct jrt_nursery *above = jrt_nursery_above(at);
        bool                kept = is_kept_from(at, above);
        at = above;
        if (kept) break;
    }
    if (jrt_unlikely(steps > STEPS_A_TOLL)) note_path(n, at, epoch, steps);
    return JANUS_CANCEL_REASON_NONE;
}

janus_cancel_reason jrt_nursery_reason_above(struct jrt_nursery *n)
{
    uint64_t epoch = jrt_load_acquire(&n->scheduler->cancels); /* acquire: as below. */
    return reason_above(n, epoch);
}

void jrt_nursery_follow(struct jrt_nursery *n)
{
    janus_cancel_reason reason = jrt_nursery_reason_above(n);
    if (reason != JANUS_CANCEL_REASON_NONE) (void)jrt_nursery_cancel(n, reason);
}

janus_cancel_reason jrt_task_look_above(const struct jrt_task *task)
{
    /* relaxed: its own. */
    if (jrt_load_relaxed(&task->shield) > 0 && jrt_shield_holds(task))
        return JANUS_CANCEL_REASON_NONE;
    struct jrt_nursery *n = task->nursery;
    /* acquire: read before looking, so that a missed cancel has a later epoch. */
    uint64_t            epoch = jrt_load_acquire(&n->scheduler->cancels);
    janus_cancel_reason reason = reason_above(n, epoch);
    if (reason != JANUS_CANCEL_REASON_NONE) return reason;
    bool settled = (epoch & JRT_CANCELS_BEGUN) == 0 && !is_disturbed(n);
    if (settled) jrt_store_relaxed(&n->clean, epoch); /* relaxed: [cancel-epoch]. */
    return jrt_task_is_singled(task) ? JANUS_CANCEL_REASON_EXPLICIT : JANUS_CANCEL_REASON_NONE;
}

struct jrt_nursery *jrt_task_cancelled_scope(const struct jrt_task *task)
{
    uint16_t shields = jrt_load_relaxed(&task->shield); /* relaxed: its own. */
    for (struct jrt_nursery *n = task->innermost; n != NULL; n = jrt_nursery_outer(n)) {
        if (!is_cancelling(n) || jrt_nursery_owner_is_apart(n)) continue;
        bool shielded = shields > jrt_nursery_level(n) && jrt_shield_holds(task);
        /* The nurseries further out have fewer shields, [scope-shield]. */
        return shielded ? NULL : n;
    }
    return NULL;
}

void jrt_scopes_tell(struct jrt_task *task, const struct jrt_nursery *scope)
{
    for (struct jrt_nursery *n = task->innermost; n != NULL && n != scope;
         n = jrt_nursery_outer(n)) {
        bool within = scope != NULL && jrt_nursery_level(scope) >= jrt_nursery_level(n);
        if (jrt_nursery_is_shielded(n) && !within) return;
        (void)jrt_nursery_cancel(n, scope != NULL ? JANUS_CANCEL_REASON_PARENT
                                                  : jrt_task_reason_below(task));
    }
}

bool jrt_task_only_in_scope(const struct jrt_task *task)
{
    return jrt_task_cancelled_scope(task) != NULL &&
           jrt_task_look_above(task) == JANUS_CANCEL_REASON_NONE;
}

janus_cancel_reason jrt_task_look_up(const struct jrt_task *task)
{
    const struct jrt_nursery *scope = jrt_task_cancelled_scope(task);
    if (scope == NULL) return jrt_task_look_above(task);
    return (janus_cancel_reason)jrt_load_relaxed(&scope->reason); /* relaxed: after the state. */
}

janus_cancel_reason janus_cancelled_reason(void)
{
    jrt_point();
    struct jrt_worker *worker = jrt_worker_self();
    if (worker == NULL) return JANUS_CANCEL_REASON_NONE;
    struct jrt_task *task = worker->current;
    if (jrt_unlikely(--worker->tolls < 0)) jrt_turn_call(worker); /* [turn-call] */
    return jrt_task_cancel_reason(task);
}

/* Notes that the task has learned of its own cancel, if there is one. */
static void note_seen(struct jrt_task *task)
{
    if (jrt_task_cancelled_itself(task) == JANUS_CANCEL_REASON_NONE) return;
    task->saw_cancel = task->dirty = true;
}

bool janus_cancelled(void)
{
    jrt_point();
    struct jrt_worker *worker = jrt_worker_self();
    if (worker == NULL) return false;
    /* A task that polls instead of waiting may run alone. Then nobody else notices
     * that a deadline passes. */
    if (jrt_unlikely(--worker->until_timers == 0)) {
        worker->until_timers = 64;
        jrt_sched_timers_fire(worker->scheduler);
    }
    struct jrt_task *task = worker->current;
    if (jrt_unlikely(--worker->tolls < 0)) jrt_turn_call(worker); /* [turn-call] */
    bool cancelled = jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE;
    if (cancelled) note_seen(task);
    return cancelled;
}

bool janus_nursery_is_cancelled(const janus_nursery *nursery)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_nursery *n = (struct jrt_nursery *)(uintptr_t)nursery;
    struct jrt_worker  *worker = jrt_worker_self();
    jrt_point();
    if (n == NULL) return false;
    bool cancelled = jrt_nursery_cancelled_above(n);
    if (cancelled && worker != NULL) note_seen(worker->current);
    return cancelled;
}

/* Disturbs the nursery above before the cancel counts as finished: [scope-owner]. */
static void disturb(struct jrt_nursery *n)
{
    if (n->owner == NULL || jrt_nursery_owner_is_apart(n)) return;
    struct jrt_nursery *above = n->owner->nursery;
    jrt_nursery_ready(above);
    jrt_fetch_add_relaxed(&above->disturbed, UINT64_C(1)); /* relaxed: the epoch follows. */
}

void jrt_scope_end(struct jrt_nursery *n)
{
    if (n->owner == NULL || !is_cancelling(n) || jrt_nursery_owner_is_apart(n)) return;
    /* relaxed: a task that still sees the old number only looks up once more. */
    jrt_fetch_sub_relaxed(&n->owner->nursery->disturbed, UINT64_C(1));
}

uint64_t jrt_cancels_begin(struct jrt_nursery *n)
{
    /* seq_cst: [cancel-sticky], before the state. */
    uint64_t before = jrt_fetch_add_seq_cst(&n->scheduler->cancels, (uint64_t)1);
    return (before & ~JRT_CANCELS_BEGUN) + JRT_CANCELS_ONE;
}

void jrt_cancels_finish(struct jrt_nursery *n, uint64_t begun, bool took_place)
{
    /* Nurseries found clean before this change have a smaller count than `begun`; those found clean
     * after it have at least `begun`. No count without a begun change lies between. */
    if (took_place) jrt_reach_note(&n->scheduler->reach, begun, depth_of(n));
    /* seq_cst: [cancel-epoch], after the state and before the heavy fence. */
    jrt_fetch_add_seq_cst(&n->scheduler->cancels, took_place ? JRT_CANCELS_ONE - 1 : (uint64_t)-1);
}

static bool become_cancelling(struct jrt_nursery *n, janus_cancel_reason reason)
{
    uint8_t none = JANUS_CANCEL_REASON_NONE;
    uint8_t state = jrt_load_relaxed(&n->state); /* relaxed: the cas decides. */
    bool    can = state == JANUS_NURSERY_STATE_OPEN || state == JANUS_NURSERY_STATE_CLOSING;
    bool    did = false;
    if (!can) return false;
    uint64_t begun = jrt_cancels_begin(n);
    while (!did && (state == JANUS_NURSERY_STATE_OPEN || state == JANUS_NURSERY_STATE_CLOSING)) {
        (void)jrt_cas_relaxed(&n->reason, &none, (uint8_t)reason); /* relaxed: the cas below. */
        /* seq_cst: before the heavy fence of [cancel-park]. */
        did = jrt_cas_seq_cst(&n->state, &state, (uint8_t)JANUS_NURSERY_STATE_CANCELLING);
    }
    if (did) disturb(n);
    jrt_cancels_finish(n, begun, did);
    if (did) {
        janus_task_id owner = n->owner != NULL ? jrt_task_id(n->owner) : 0;
        jrt_note_by_caller(n->scheduler, JRT_TRACE_CANCEL, owner, (uint64_t)reason);
    }
    return did;
}

/* Cancels the nurseries that a task has opened. Those that were not cancelled yet go on `list`,
 * held by [cancel-visit]. Under the lock of the task's nursery. */
static struct jrt_nursery *cancel_owned(struct jrt_task *task, janus_cancel_reason reason,
                                        struct jrt_nursery *list)
{
    struct jrt_list_node *inner = task->nurseries.next;
    for (; inner != &task->nurseries; inner = inner->next) {
        struct jrt_nursery *below = jrt_list_entry(inner, struct jrt_nursery, link);
        if (jrt_nursery_is_shielded(below) || !become_cancelling(below, reason)) continue;
        /* relaxed: the lock orders it before the owner's look. */
        jrt_fetch_add_relaxed(&below->visitors, 1u);
        below->next_visit = list;
        list = below;
    }
    return list;
}

/* Ends the waits of a nursery's children. Nurseries below that are not cancelled yet go on `list`,
 * held by [cancel-visit]. */
static struct jrt_nursery *cancel_children(struct jrt_nursery *n, struct jrt_nursery *list)
{
    jrt_nursery_lock(n);
    if (n->token != NULL) {
        /* relaxed: set before the state. */
        jrt_token_collect(n->token, (janus_cancel_reason)jrt_load_relaxed(&n->reason));
    }
    if (jrt_unlikely(n->limited)) jrt_room_close_locked(n);
    struct jrt_list_node *node = n->children.next;
    for (; node != &n->children; node = node->next) {
        struct jrt_task *task = jrt_list_entry(node, struct jrt_task, sibling);
        (void)jrt_task_interrupt(task, JANUS_CANCELLED);
        list = cancel_owned(task, JANUS_CANCEL_REASON_PARENT, list);
    }
    jrt_exhausted_cancel_locked(n); /* after the interrupts, which report CANCELLED */
    jrt_nursery_unlock(n);
    return list;
}

/* Cancels the nurseries that the owner opened inside this one. Returns a list of those that were
 * not cancelled before, held by [cancel-visit]. */
static struct jrt_nursery *cancel_inside(struct jrt_nursery *n)
{
    struct jrt_nursery *list = NULL;
    struct jrt_nursery *above = n->owner->nursery;
    jrt_nursery_lock(above);
    /* relaxed, both: under the lock. Inner nurseries come first, [tree-order]. */
    bool found = jrt_load_relaxed(&n->owner->linked) && jrt_load_relaxed(&n->registered);
    struct jrt_list_node *node = found ? n->owner->nurseries.next : &n->link;
    for (; node != &n->link; node = node->next) {
        struct jrt_nursery *inner = jrt_list_entry(node, struct jrt_nursery, link);
        if (is_kept_from(inner, n) || !become_cancelling(inner, JANUS_CANCEL_REASON_PARENT))
            continue;
        /* relaxed: the lock orders it before the owner's look. */
        jrt_fetch_add_relaxed(&inner->visitors, 1u);
        inner->next_visit = list;
        list = inner;
    }
    jrt_nursery_unlock(above);
    return list;
}

/* Goes level by level without recursion: trees may be deep, and the stack small. */
static void cancel_listed(struct jrt_nursery *list)
{
    while (list != NULL) {
        struct jrt_nursery *n = list;
        list = cancel_children(n, n->next_visit);
        /* relaxed: the mark is our own. */
        jrt_debug_invariant("cancel-visit", jrt_load_relaxed(&n->visitors) > 0);
        jrt_fetch_sub_release(&n->visitors, 1u); /* release: the last touch. */
    }
}

/* The caller keeps the nursery alive. */
static void cancel_below(struct jrt_nursery *first)
{
    struct jrt_nursery *list = NULL;
    if (first->owner != NULL && !jrt_nursery_owner_is_apart(first)) {
        list = cancel_inside(first);
        jrt_task_interrupt_owner(first->owner, jrt_nursery_level(first)); /* [scope-owner] */
    }
    cancel_listed(cancel_children(first, list));
}

void jrt_nursery_await_visitors(struct jrt_nursery *n)
{
    /* acquire: what the visitor did is over. */
    while (jrt_load_acquire(&n->visitors) != 0) jrt_thread_yield();
}

bool jrt_nursery_cancel_locked(struct jrt_nursery *nursery, janus_cancel_reason reason)
{
    janus_scheduler   *scheduler = nursery->scheduler;
    struct jrt_worker *self = jrt_worker_self();
    bool               foreign = self == NULL || self->scheduler != scheduler;
    if (foreign) jrt_fetch_add_relaxed(&scheduler->outside, 1u); /* relaxed: a count. */
    bool did = become_cancelling(nursery, reason);
    if (did) {
        jrt_fence_heavy_seq_cst(); /* seq_cst: [cancel-park]. */
        cancel_below(nursery);
    }
    if (foreign) jrt_outside_less(scheduler);
    return did;
}

bool jrt_nursery_cancel(struct jrt_nursery *nursery, janus_cancel_reason reason)
{
    bool cancelled = jrt_nursery_cancel_locked(nursery, reason);
    if (cancelled) jrt_tokens_flush(); /* the nursery may be gone */
    return cancelled;
}

/* The record of a child that has not ended; under the lock. */
static struct jrt_task *find_child(struct jrt_nursery *n, janus_task_id id, bool *out_linked)
{
    uint32_t index = (uint32_t)(id >> 32);
    if (index == 0) return NULL;
    struct jrt_task *task = jrt_roster_find(&n->scheduler->roster, index - 1);
    return task != NULL && jrt_task_peek_child(task, n, id, out_linked) ? task : NULL;
}

/* Marks the child, [cancel-single]. OK, STALE or NO_MEMORY. */
static janus_status single_out(struct jrt_nursery *n, janus_task_id id)
{
    bool         linked;
    janus_status status = JANUS_STALE;
    jrt_nursery_lock(n);
    if (find_child(n, id, &linked) != NULL) {
        uint64_t begun = jrt_cancels_begin(n);
        status = jrt_single_note(n, id) ? JANUS_OK : JANUS_NO_MEMORY;
        jrt_cancels_finish(n, begun, status == JANUS_OK);
        jrt_debug_invariant("cancel-single", status != JANUS_OK || jrt_single_find(n, id));
    }
    jrt_nursery_unlock(n);
    return status;
}

/* Ends the child's wait, and cancels the nurseries that it has opened. */
static void visit_child(struct jrt_nursery *n, janus_task_id id)
{
    struct jrt_nursery *list = NULL;
    bool                linked;
    jrt_nursery_lock(n);
    struct jrt_task *task = find_child(n, id, &linked);
    if (task != NULL && linked) {
        (void)jrt_task_interrupt(task, JANUS_CANCELLED);
        list = cancel_owned(task, JANUS_CANCEL_REASON_EXPLICIT, NULL);
    }
    jrt_exhausted_abandon_one_locked(n, id); /* after the interrupt, which reports CANCELLED */
    jrt_nursery_unlock(n);
    cancel_listed(list);
}

janus_status janus_nursery_cancel_child(janus_nursery *nursery, janus_task_id child)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_nursery *n = jrt_nursery_of(nursery);
    if (nursery == NULL) return JANUS_INVALID;
    if (!jrt_nursery_is_mine(n)) return JANUS_STATE;
    janus_status status = jrt_nursery_cancel_one(n, child);
    if (status == JANUS_OK) jrt_tokens_flush();
    return status == JANUS_STALE ? jrt_stale(status, __func__) : status;
}

janus_status jrt_nursery_cancel_one(struct jrt_nursery *n, janus_task_id child)
{
    const struct jrt_worker *worker = jrt_worker_self();
    janus_status             status = single_out(n, child);
    if (status != JANUS_OK) return status;
    bool foreign = worker == NULL || worker->scheduler != n->scheduler;
    if (foreign) jrt_fetch_add_relaxed(&n->scheduler->outside, 1u); /* relaxed: a count. */
    jrt_note_by_caller(n->scheduler, JRT_TRACE_CANCEL, child,
                       (uint64_t)JANUS_CANCEL_REASON_EXPLICIT);
    jrt_fence_heavy_seq_cst(); /* seq_cst: [cancel-park]. */
    visit_child(n, child);
    if (foreign) jrt_outside_less(n->scheduler);
    return JANUS_OK;
}
