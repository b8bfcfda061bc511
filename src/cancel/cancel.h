/* SPDX-License-Identifier: MIT */
/* Cancels and their reasons, shields, and the paths by which a cancel finds its tasks. The essay is
 * in cancel.c. */
#ifndef JRT_CANCEL_CANCEL_H
#define JRT_CANCEL_CANCEL_H

#include "task/nursery.h"

/* Begins a shield without a deadline, and ends the innermost. In shield.c. */
void jrt_shield_begin(struct jrt_task *task);
void jrt_shield_end(struct jrt_task *task);

/* The first begins the only shield that defers run in; `grace` lives as long as they run. The
 * second ends all shields that a defer has begun and left. */
void jrt_shield_for_cleanup(struct jrt_task *task, struct jrt_shield *grace);
void jrt_shield_only(struct jrt_task *task, struct jrt_shield *grace);

/* Replaces all shields of a broken-off call by one without a deadline, until its nurseries have
 * ended. */
void jrt_shield_whole(struct jrt_task *task);

/* Whether the innermost shield still holds. The task has a shield. */
bool jrt_shield_holds(const struct jrt_task *task);

/* Why the calls of this task must return CANCELLED; the slow path. */
janus_cancel_reason jrt_task_look_up(const struct jrt_task *task);

/* Why the task itself is cancelled, apart from nurseries that it has open. */
janus_cancel_reason jrt_task_look_above(const struct jrt_task *task);

/* The innermost open nursery of the task that is cancelled and holds the task in its scope, or
 * NULL. The caller is the task, or knows that the task waits. */
struct jrt_nursery *jrt_task_cancelled_scope(const struct jrt_task *task);

/* Cancels the nurseries that the task has open inside `scope`, up to a shield. NULL: all. */
void jrt_scopes_tell(struct jrt_task *task, const struct jrt_nursery *scope);

/* Whether only a nursery of its own makes the task's calls return CANCELLED. */
bool jrt_task_only_in_scope(const struct jrt_task *task);

/* Begins a change of what nurseries below n saw. Nothing counts as clean until the change is
 * finished, [cancel-sticky]. Pass the returned count to jrt_cancels_finish. */
uint64_t jrt_cancels_begin(struct jrt_nursery *n);

/* Finishes a change. If it took place, readers that found n or a nursery below it clean look
 * again. */
void jrt_cancels_finish(struct jrt_nursery *n, uint64_t begun, bool took_place);

/* Why its children are cancelled: because of the nursery, its owner, or something around them up to
 * the next shield. NONE: they are not. */
janus_cancel_reason jrt_nursery_reason_above(struct jrt_nursery *n);

static inline bool jrt_nursery_cancelled_above(struct jrt_nursery *n)
{
    return jrt_nursery_reason_above(n) != JANUS_CANCEL_REASON_NONE;
}

/* Cancels it if something above is cancelled, so that its state shows that, too. */
void jrt_nursery_follow(struct jrt_nursery *n);

/* Notes a child, finds it, and frees the table, for [cancel-single]. In single.c. */
bool jrt_single_note(struct jrt_nursery *n, janus_task_id child);
bool jrt_single_find(const struct jrt_nursery *n, janus_task_id child);
void jrt_singles_free(struct jrt_nursery *n);

/* Whether a task was cancelled alone, by its id. */
static inline bool jrt_task_is_singled(const struct jrt_task *task)
{
    const struct jrt_nursery *n = task->nursery;
    /* acquire, both: what was written then. A nursery that is not ready has no table. */
    if (jrt_load_acquire(&n->ready) != JRT_READY) return false;
    if (jrt_likely(jrt_load_acquire(&n->singles) == NULL)) return false; /* acquire: as above. */
    return jrt_single_find(n, jrt_task_id(task));
}

/* Why a cancelled task's own nurseries are cancelled. */
static inline janus_cancel_reason jrt_task_reason_below(const struct jrt_task *task)
{
    return jrt_task_is_singled(task) ? JANUS_CANCEL_REASON_EXPLICIT : JANUS_CANCEL_REASON_PARENT;
}

/* The scope around it. This is the owner's next nursery whose scope holds its owner, or else the
 * nursery that the owner is a child of. The nursery has an owner. */
struct jrt_nursery *jrt_nursery_above(const struct jrt_nursery *n);

/* Ends the scope of a nursery that ends: its owner's siblings may again remember that they are
 * clean. */
void jrt_scope_end(struct jrt_nursery *n);

/* Covers a nursery that is being opened, if its owner is in a shield. In shield.c. */
janus_status jrt_shield_nursery(struct jrt_nursery *n, const struct jrt_task *owner);

/* Ends the shield of a nursery that ends. */
void               jrt_shield_nursery_end(struct jrt_nursery *n);
static inline void jrt_shield_nursery_leave(struct jrt_nursery *n)
{
    /* relaxed: the owner's, except for the step to OVER, which changes nothing here. */
    if (jrt_unlikely(jrt_load_relaxed(&n->shielded) >= JRT_SHIELDED_UNTIL))
        jrt_shield_nursery_end(n);
}

/* Why the task itself is cancelled, apart from nurseries that it has open. NONE: it is not. */
static inline janus_cancel_reason jrt_task_cancelled_itself(const struct jrt_task *task)
{
    return jrt_likely(jrt_task_is_clean(task)) ? JANUS_CANCEL_REASON_NONE
                                               : jrt_task_look_above(task);
}

/* Why the calls of this task must return CANCELLED. NONE: they need not. */
static inline janus_cancel_reason jrt_task_cancel_reason(const struct jrt_task *task)
{
    return jrt_likely(jrt_task_is_clean(task)) ? JANUS_CANCEL_REASON_NONE : jrt_task_look_up(task);
}

/* Cancels it and everything below. False: it was cancelled before or is final. */
bool jrt_nursery_cancel(struct jrt_nursery *nursery, janus_cancel_reason reason);

/* Cancels it while locks are held. The caller calls jrt_tokens_flush once it holds none. */
bool jrt_nursery_cancel_locked(struct jrt_nursery *nursery, janus_cancel_reason reason);

/* Whether a record, free or not, is certainly a joinable child of this nursery with that id. In
 * peek.c. */
bool jrt_task_peek_joinable(const struct jrt_task *task, const struct jrt_nursery *n,
                            janus_task_id id);

/* Whether a record, free or not, is a child of this nursery with that id that has not ended.
 * *out_linked: the child is on the nursery's list. Under the nursery's lock. */
bool jrt_task_peek_child(const struct jrt_task *task, const struct jrt_nursery *n, janus_task_id id,
                         bool *out_linked);

/* Cancels one child, [cancel-single], by the owner or under the lock of the nursery's supervisor.
 * The caller calls jrt_tokens_flush once it holds no lock. OK, STALE or NO_MEMORY. */
janus_status jrt_nursery_cancel_one(struct jrt_nursery *n, janus_task_id child);

/* Waits until no cancel is on its way to the nursery, which is on no list. */
void jrt_nursery_await_visitors(struct jrt_nursery *nursery);

/* Makes it findable from its owner, from the top down. */
void jrt_nursery_register(struct jrt_nursery *nursery);

/* Makes a task, and every nursery around it, findable from above: [tree-lazy]. */
void jrt_task_link(struct jrt_task *task);

#endif
