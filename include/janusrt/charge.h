/* SPDX-License-Identifier: MIT */
/*
 * What a task may still do, and what happens when it may not: paying, exhaustion, recharging.
 *
 * Every task has a budget (budget.h). Operations take from it: a check one op, a spawn one op, an
 * allocation one op and its bytes, a send one op and one channel operation. When one cannot be paid
 * nothing of it is taken, the task leaves the CPU in the state BUDGET_EXHAUSTED, and the policy of
 * its nursery decides:
 *
 *     AUTO       an implicit budget (the profile's, nobody gave it) gets another portion and the
 *                task goes to the back of the queue: a busy task costs others nothing but its turn.
 *                Only memory is a hard limit. An explicit budget is filled from the nursery's pool,
 *                then from the task's budget capability, until both are empty.
 *     SUPERVISE  whoever owns the nursery is told, by a callback or by janus_nursery_exhausted_wait
 *                and _poll, and recharges, cancels, or does nothing.
 *     MANUAL     nobody is told; the owner looks, and recharges.
 *
 * If the owner waits for the nursery's end, it can give nothing any more: then the task ends, as if
 * it had returned JANUS_BUDGET_EXHAUSTED; its defers run, its memory is freed. The same when the
 * owner joins it. So no policy makes the wait for a child, or for its nursery, last for ever. (An
 * owner that waits for something else, which waits for the exhausted child, has made a knot of its
 * own; where nothing else can happen it is told as a deadlock.)
 *
 *     static int64_t plugin(void *argument) { for (;;) janus_check_or_end(1); }
 *
 *     janus_budget pool = JANUS_BUDGET(.ops = 50000, .spawn_count = 1);
 *     status = janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool));
 *     if (status == JANUS_OK) status = janus_spawn(&n, plugin, NULL);
 *     janus_nursery_end(&n, &result)  // CHILD_FAILED, result.error JANUS_BUDGET_EXHAUSTED
 *
 * A pool binds a nursery's children and everything below them. A budget that is given to one child
 * (janus_spawn_options.budget) binds that child alone: what it starts has what its nursery gives.
 * Limits of budget capabilities hold for each request and each transfer; what a task recharges
 * itself with is counted over its life.
 *
 * A call that is refused takes nothing but the ops of the attempt: one op, of a select one for each
 * case. So a loop of refusals pays for its time. Memory, spawns, channel operations and syscalls
 * come back, whatever the reason: NO_MEMORY, FULL, CLOSED, WOULD_WAIT, DEADLINE, CANCELLED. A spawn
 * that a pool has paid for costs the pool that op, and gives the share back.
 *
 * A task on an implicit budget gets its books when it first needs them. If the system refuses
 * memory for the books, the call returns NO_MEMORY. A check has no such status: under AUTO the task
 * goes on for another slice, else the task ends as if it had returned JANUS_NO_MEMORY. That is no
 * exhaustion: nobody is asked to recharge it.
 *
 * Explicit budgets are conserved: what a nursery's pool was given is what its children have spent,
 * what they hold, and what is left; a nested pool is carved from the one around it; what a child
 * does not use goes back when it ends.
 */
#ifndef JANUSRT_CHARGE_H
#define JANUSRT_CHARGE_H

#include <janusrt/budget.h>
#include <janusrt/cap.h>
#include <janusrt/export.h>
#include <janusrt/nursery.h>
#include <janusrt/status.h>
#include <janusrt/task.h>
#include <janusrt/yield.h>

/* Where units are. granted == left + shares + nested + spent + refunded, in each component. */
typedef struct janus_pool_books {
    janus_budget granted;  /* all it ever got */
    janus_budget left;     /* here */
    janus_budget shares;   /* with children that have not ended */
    janus_budget nested;   /* with pools carved from this one */
    janus_budget spent;    /* gone */
    janus_budget refunded; /* returned to where it came from */
} janus_pool_books;

JANUS_BEGIN_DECLS

/*
 * Pays, all or nothing. A task that cannot is exhausted until it can, see above.
 *
 * Context: inside a task; elsewhere it costs nothing.
 * Yields:  when the budget, or the turn, is used up.
 * Owns:    nothing.
 * Cost:    some ns.
 * Errors:  CANCELLED  the task was cancelled; nothing was taken
 *          A price above what the scheduler gives anybody (options.budget_max) ends the task, as if
 *          nobody would recharge it.
 *          NO_MEMORY  memory for the task's books was refused; nothing was taken
 */
JANUS_API janus_status janus_charge(janus_budget price);

/*
 * Pays if the budget as it is allows it, and never waits.
 *
 * Context: inside a task; elsewhere it costs nothing.
 * Yields:  only if the turn is over.
 * Owns:    *missing (NULL: not wanted) is the component that is short.
 * Cost:    some ns.
 * Errors:  BUDGET_EXHAUSTED  nothing was taken
 *          NO_MEMORY         memory for the task's books was refused; nothing was taken
 */
JANUS_NODISCARD JANUS_API janus_status janus_try_charge(janus_budget     price,
                                                        janus_component *missing);

/*
 * What the current task may still do.
 *
 * Context: anyone; zeros outside of tasks.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    some ns.
 * Errors:  none.
 */
JANUS_API janus_budget janus_budget_get_current(void);

/*
 * Recharges the current task itself, by the budget capability of its context, the right
 * budget.recharge. All that a task ever gets this way is at most the capability's limit. Whoever
 * has an explicit budget needs a capability that was given to it: the profile's is not enough.
 * *out_granted (NULL: not wanted) is what it got.
 *
 * Context: inside a task.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a lock.
 * Errors:  CLAMPED        it got less than it asked for, maybe nothing
 *          NO_BUDGET_CAP  the context has no such capability; or it was revoked, ...: see
 *                         janus_cap_check
 *          AUDIT_FULL     the audit log fails closed and is full; nothing was given
 *          STATE          not inside a task
 */
JANUS_API janus_status janus_budget_recharge_current(janus_budget  amount,
                                                     janus_budget *out_granted);

/* The same for generated code: 0, 1 (CLAMPED) or a negative status.
 *
 * Context: as janus_budget_recharge_current.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a lock.
 * Errors:  as janus_budget_recharge_current
 */
JANUS_API int janus_budget_recharge(janus_budget amount);

/*
 * Gives an exhausted child more, out of the nursery's pool if there is one, and lets it go on. In
 * a nursery without a pool the units are new, and the owner's context must have a budget
 * capability with budget.transfer that allows so many.
 *
 * Context: the nursery's owner, task or thread.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a lock.
 * Errors:  STATE             not the owner; the child lives and is not exhausted
 *          STALE             no such child any more
 *          BUDGET_EXHAUSTED  the pool has less
 *          NO_BUDGET_CAP …   as janus_cap_check; CAP_LIMIT: more than the capability allows
 *          AUDIT_FULL        the audit log fails closed and is full
 *          On any error nothing happened.
 */
JANUS_API janus_status janus_nursery_recharge(janus_nursery *nursery, janus_task_id child,
                                              janus_budget amount);

/*
 * The same for any nursery that the current task has open, with a capability of its own (all zero:
 * that of its context, in :cluster, where supervisors have it).
 *
 * Context: inside a task.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a lock for each nursery that is open.
 * Errors:  as janus_nursery_recharge, negative
 */
JANUS_API int janus_budget_recharge_child(janus_task_id child, janus_budget amount,
                                          const janus_cap *cap);

/*
 * The next child that is exhausted and was not reported yet; oldest first, each once for each time
 * it is exhausted.
 *
 * Context: the nursery's owner, task or thread.
 * Yields:  only if the turn is over.
 * Owns:    *out is the caller's.
 * Cost:    a lock.
 * Errors:  false: there is none, or the caller is not the owner.
 */
JANUS_API bool janus_nursery_exhausted_poll(janus_nursery *nursery, janus_exhausted *out);

/*
 * The same, and waits until there is one. The nursery stays open: more children can be started
 * afterwards.
 *
 * Context: the nursery's owner, inside a task.
 * Yields:  until a child is exhausted.
 * Owns:    *out is the caller's.
 * Cost:    a lock.
 * Errors:  CLOSED     no child is left that could be exhausted
 *          CANCELLED  the task was cancelled
 *          STATE      not the owner, or not inside a task
 *          DEADLOCK   nothing can happen any more
 */
JANUS_NODISCARD JANUS_API janus_status janus_nursery_exhausted_wait(janus_nursery   *nursery,
                                                                    janus_exhausted *out);

/*
 * The id of the next exhausted child of any nursery that the current task has open; 0: none.
 *
 * Context: inside a task; 0 elsewhere.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a lock for each nursery that is open.
 * Errors:  0.
 */
JANUS_API janus_task_id janus_supervisor_poll_exhausted(void);

/*
 * Cancels one child: its waits end with CANCELLED, and so does its exhaustion; it gets a little to
 * clean up with.
 *
 * Context: the nursery's owner, task or thread.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a lock.
 * Errors:  STATE  not the owner; STALE  no such child, or it is not exhausted
 */
JANUS_API janus_status janus_nursery_cancel_exhausted(janus_nursery *nursery, janus_task_id child);

/*
 * The books of the pool that a nursery's children get their budgets from: its own, or the one it
 * shares with those around it.
 *
 * Context: the nursery's owner, or any task below it.
 * Yields:  only if the turn is over.
 * Owns:    *out is the caller's.
 * Cost:    a lock.
 * Errors:  STATE    there is none: budgets are implicit
 *          INVALID  an argument is NULL
 */
JANUS_API janus_status janus_nursery_books(janus_nursery *nursery, janus_pool_books *out);

JANUS_END_DECLS
#endif
