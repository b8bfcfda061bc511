/* SPDX-License-Identifier: MIT */
/*
 * A child's life: nurseries are opened and ended, children start, wait, learn of a cancel, and
 * end. The essays are in nursery.c, spawn.c and ending.c.
 */
#ifndef JRT_NURSERY_NURSERY_H
#define JRT_NURSERY_NURSERY_H

#include "nursery/run.h"

/* Keeps the failure that was counted last, if there is room. Under the nursery's lock. */
void jrt_failures_keep(struct jrt_nursery *n, const struct jrt_task *task);
void jrt_failures_free(struct jrt_nursery *n);

/* A nursery on the heap that its task pays for. */
struct jrt_paid_nursery {
    janus_nursery      nursery; /* first */
    struct jrt_ledger *payer;
};

/* Frees an ended nursery with this on_heap. Refunds it if its task paid. */
void jrt_nursery_free(struct jrt_nursery *n, enum jrt_on_heap on_heap);

/* Ends a nursery of the caller, also that of a parallel call, which janus_nursery_end refuses. In
 * end.c. */
janus_status jrt_nursery_end(struct jrt_nursery *n, janus_nursery_result *out);

/* The state for any reader: Cancelled as soon as all children have ended, [nursery-seen]. */
janus_nursery_state jrt_nursery_seen(struct jrt_nursery *n);

/* The result; kind PENDING: the nursery has not ended. */
void jrt_nursery_result_of(struct jrt_nursery *n, janus_nursery_result *out);

/* Arms its deadline. In open.c. */
bool jrt_nursery_arm(struct jrt_nursery *n, uint64_t deadline_ns);

static inline void jrt_nursery_disarm(struct jrt_nursery *n)
{
    if (n->timed) jrt_sched_timer_disarm(n->scheduler, &n->deadline.timer);
}

/* Opens a nursery on no terms for `owner`, inside `around` and around all nurseries opened
 * since, [fork-nursery]. The owner runs here or has a child on top. In open.c. */
void jrt_nursery_open_around(struct jrt_nursery *n, struct jrt_worker *worker,
                             struct jrt_task *owner, const struct jrt_nursery *around);

/* Opens a nursery on the heap as the innermost of the current task. Neither yields nor ends the
 * task, unlike janus_nursery_open. False: refused, and nothing happened. In open.c. */
bool jrt_nursery_open_on_heap(struct jrt_nursery *n, struct jrt_worker *worker,
                              enum jrt_on_heap on_heap);

/* Opens a parallel call's nursery as the innermost of the current task, on the terms there. The
 * task does not yield. False: refused, and nothing happened. In open.c. */
bool jrt_nursery_open_on_terms(struct jrt_nursery *n, struct jrt_worker *worker);

/* The innermost nursery that a task has opened itself and does not hide; NULL: none. */
struct jrt_nursery *jrt_nursery_innermost(const struct jrt_task *task);

/* Starts a piece of a parallel call in a nursery that only counts. False: no room, or no memory.
 * The refusal is not recorded. In spawn.c. */
bool jrt_spawn_piece(struct jrt_nursery *n, struct jrt_worker *worker, janus_entry *entry,
                     void *argument, const char *name);

/* Adds the owner's own count, so that the last child can make the nursery final. */
void jrt_nursery_merge(struct jrt_nursery *n);

/* Notes that the count reached zero while the owner lends it, [nursery-lend]; under the lock. */
void jrt_nursery_emptied_locked(struct jrt_nursery *n);

/* Takes room for one more child, where max_children is set: OK, FULL, or if it has to wait what
 * ended that. */
janus_status jrt_room_take(struct jrt_nursery *n);

/* Runs the owner's own children that no thread has taken, newest first, in place. Returns the
 * worker, which may be another one. */
struct jrt_worker *jrt_nursery_run_children(struct jrt_nursery *n, struct jrt_worker *worker,
                                            struct jrt_task *owner);

/* From here on the owner recharges no exhausted child, [exhaust-await]. */
void jrt_nursery_begin_waiting(struct jrt_nursery *n);

/* Wakes the owner: the child that it joins has ended. Under the lock. In join.c. */
void jrt_join_ended(struct jrt_nursery *n);

/* For the deadlock check: the owner, a plain thread, begins and ends a wait for children. */
void jrt_nursery_thread_waits(struct jrt_nursery *n);
void jrt_nursery_thread_goes_on(struct jrt_nursery *n);

/* Counts one child off the shared count. The last one ends the nursery, which may then be gone. */
void jrt_nursery_count_off(struct jrt_nursery *n);

/* Ends a task, however its call ended. The nursery owns the record from here on. `below` is the
 * task that ran it in place, or NULL. In nursery.c. */
void jrt_nursery_child_done(struct jrt_worker *worker, struct jrt_task *task,
                            const struct jrt_task *below);

/* Waits until jrt_terms_take_child, which returned TASK_LIMIT or was not called, takes a child.
 * Returns its status, or CANCELLED, DEADLOCK, NO_MEMORY; TASK_LIMIT if the caller cannot wait. In
 * wish.c. */
janus_status jrt_wish_wait(struct jrt_nursery *n, const janus_budget *want,
                           struct jrt_admission *out);

/* Whether other spawns already wait for room under the scheduler's limit. */
bool jrt_wish_is_behind(const struct jrt_nursery *n);

/* Starts the first task of janus_run in its nursery. In spawn.c. */
janus_status jrt_spawn_first(janus_nursery *nursery, janus_entry *entry, void *argument);

/* Cancels it for a public call. If the owner called, an empty nursery is final at once. OK or
 * STATE. */
janus_status jrt_nursery_cancel_called(struct jrt_nursery *nursery, janus_cancel_reason reason);

/* Frees the record of a child that has ended and that nobody can join. */
void jrt_task_retire(janus_scheduler *scheduler, struct jrt_worker *worker, struct jrt_task *task);

/* Drops the argument of a task that will never start, if its spawn named a function. In
 * ending.c. */
void jrt_task_drop_argument(struct jrt_task *task);

/* Ends the current task here, after its open nurseries. */
__attribute__((noreturn)) void jrt_task_break_off(struct jrt_task *task, enum jrt_ending how);

/* Cancels and awaits the task's open nurseries, innermost first. */
void jrt_nurseries_abandon(struct jrt_task *task);

/*
 * [cancel-patience]  A loop that ignores CANCELLED must neither keep its worker nor last for ever.
 *   Each CANCELLED that a call returns costs one op of the cleanup allowance ([purse-allowance]),
 *   and may end the turn. When the allowance is used up, the task ends in the call: it is unwound,
 *   and its defers run. In a defer, only the defer ends. An owner that gets CANCELLED because its
 *   own nursery was cancelled lives on. So it pays from its budget, like a loop of checks.
 */

/* Returns CANCELLED, or ends the task there, as its mode and its patience demand. */
janus_status jrt_task_cancelled_or_end(struct jrt_task *task);

/* Returns CANCELLED whatever the mode, or ends the task when its patience is used up. */
janus_status jrt_task_cancelled_again(struct jrt_task *task);

/* Returns CANCELLED whatever the mode, for waits that must first release something. */
janus_status jrt_task_cancelled_only(struct jrt_task *task);

#endif
