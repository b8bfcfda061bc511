/* SPDX-License-Identifier: MIT */
/* What a purse holds, and paying from it. The essay is in purse.c. */
#ifndef JRT_MEANS_PURSE_H
#define JRT_MEANS_PURSE_H

#include "task/nursery.h"
#include "task/purse.h"

/* The first fuel of a task that is not clean. In purse.c. */
int64_t jrt_purse_first_fuel(struct jrt_worker *worker, struct jrt_task *task);

/* Frees and settles the purse of a task that has ended, or does not start. Nobody knows the
 * task. */
void jrt_purse_close(struct jrt_worker *worker, struct jrt_task *task);

/* Closes the purse of a scope as jrt_purse_close does. Its task gets the outer purse back, with
 * what it recharged, and with why it was exhausted. */
void jrt_purse_close_scope(struct jrt_worker *worker, struct jrt_task *task,
                           struct jrt_purse *outer);

/* The budget left of the current task, or of a task that does not run. */
janus_budget jrt_purse_read(const struct jrt_task *task);

/* Pays if the task can pay at once. Otherwise returns what is short, or JRT_NO_BOOKS. */
janus_component jrt_pay_now(struct jrt_task *task, const janus_budget *price);

/* The least allowance of a task with a small explicit budget, [purse-allowance]. */
enum { JRT_CLEANUP_MIN = 32 };

/* Gives the current task, which is ending, its allowance. False: it has used it up. */
bool jrt_purse_clean_up(struct jrt_task *task);

/* Ends n's exhausted children: the owner waits for n's end and gives nothing any more. Under the
 * lock. */
void jrt_exhausted_abandon_locked(struct jrt_nursery *n);

/* Ends the waits of n's exhausted children, because n is cancelled, even if they cannot be
 * interrupted. */
void jrt_exhausted_cancel_locked(struct jrt_nursery *n);

/* What a child on n's list has, and what is short. False: it is not on the list. Under the lock. */
bool jrt_exhausted_read(const struct jrt_task *task, janus_budget *out, janus_component *lacks);

/* Ends the wait of one exhausted child, because the owner waits for it. */
void jrt_exhausted_abandon_one_locked(struct jrt_nursery *n, janus_task_id child);

/* What the purse can get before its sum exceeds UINT64_MAX. */
janus_budget jrt_purse_room(const struct jrt_purse *purse);

/* Adds `amount` to the purse of the current task, or of a listed exhausted one. The account's books
 * already have it. */
void jrt_purse_put_in(struct jrt_purse *purse, const janus_budget *amount);

/* Fills the word from the rest, up to a slice, [purse-fuel]. */
void jrt_purse_fill(struct jrt_purse *purse, int64_t fuel);

/* Where checks are preempted: the most ops of the next slice, [preempt-check]. */
int64_t jrt_choose_slice(void);

/* The word of the current task, not below zero; [purse-word]. */
int64_t jrt_purse_word(const struct jrt_task *task);

/* A slice of what there is to clean up with. False: that is used up. */
bool jrt_purse_refuel(struct jrt_purse *purse);

/* Allows the task to clean up, once: see [purse-allowance]. */
void jrt_purse_allow_cleanup(struct jrt_purse *purse);

/* In a world the operations since the word was filled take a nanosecond each, [sim-time]. */
void jrt_purse_spend(const struct jrt_task *task);

/* The entry of a child on the list of exhausted ones; under the lock. NULL: it is not there. */
struct jrt_purse *jrt_exhausted_find(struct jrt_nursery *n, janus_task_id child);

/* Takes an entry off the list and wakes its task; under the lock. */
void jrt_exhausted_release(struct jrt_purse *purse, janus_status status);

#endif
