/* SPDX-License-Identifier: MIT */
/*
 * Paying from a budget, what happens when it runs out, and recharging.
 *
 * Every task has a budget (budget.h). Each operation costs one op. An allocation also costs its
 * bytes, a send one channel operation. If the task cannot pay, the library takes nothing. The task
 * leaves the CPU in the state BUDGET_EXHAUSTED, and the policy of its nursery decides:
 *
 *     AUTO       An implicit budget (from the profile) gets another portion, and the task goes to
 *                the back of the queue. Only memory is a hard limit. An explicit budget is filled
 *                from the nursery's pool, then from the task's budget capability, while they last.
 *     SUPERVISE  The nursery's owner learns of it by a callback, janus_nursery_wait_exhausted or
 *                _poll. It recharges the task, cancels it, or does nothing.
 *     MANUAL     Nobody is notified. The owner looks for exhausted children and recharges them.
 *     END        As AUTO, and when there is no more, the task ends. In a pool around it that has
 *                SUPERVISE or MANUAL, it draws nothing, because nobody would be asked.
 *
 * An owner that waits for the nursery's end, or joins the exhausted child, cannot recharge it. Then
 * the child ends as if it had returned JANUS_BUDGET_EXHAUSTED: its defers run, its memory is freed.
 * So no policy makes these waits last for ever. An owner that waits for something else may wait for
 * the exhausted child indirectly; if nothing else can happen, the library reports a deadlock.
 *
 *     static int64_t plugin(void *argument) { for (;;) janus_check_or_end(1); }
 *
 *     janus_budget pool = JANUS_BUDGET(.ops = 50000, .spawn_count = 1);
 *     status = janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool));
 *     if (status == JANUS_OK) status = janus_spawn(&n, plugin, NULL);
 *     janus_nursery_end(&n, &result)  // CHILD_FAILED, result.error JANUS_BUDGET_EXHAUSTED
 *
 * A pool binds a nursery's children and everything below them. A budget of one child
 * (janus_spawn_options.budget) binds that child alone; its own children get what their nursery
 * gives. Limits of budget capabilities hold for each request and each transfer. What a task
 * recharges itself with counts over its life.
 *
 * A refused call costs the ops of the attempt: one op, or one for each case of a select. So a loop
 * of refusals pays for its time. The task gets everything else back, whatever the reason:
 * NO_MEMORY, FULL, CLOSED, WOULD_WAIT, DEADLINE, CANCELLED. If a pool paid for the spawn, it loses
 * that op and gets the share back.
 *
 * A task on an implicit budget gets its books when it first needs them. If the system refuses
 * memory for the books, the call returns NO_MEMORY. A check has no such status: under AUTO the task
 * goes on for another slice, else the task ends as if it had returned JANUS_NO_MEMORY. This is not
 * exhaustion: nobody can recharge the task.
 *
 * Explicit budgets are conserved. The sum of what the children spent, what they hold and what is
 * left is always the grant of the pool. A nested pool takes its budget from the pool around it.
 * When a child ends, what it did not use goes back.
 */
#ifndef JANUSRT_CHARGE_H
#define JANUSRT_CHARGE_H

#include <janusrt/budget.h>
#include <janusrt/cap.h>
#include <janusrt/export.h>
#include <janusrt/nursery.h>
#include <janusrt/options.h>
#include <janusrt/status.h>
#include <janusrt/task.h>
#include <janusrt/yield.h>

/* The books of a pool. granted == left + shares + nested + spent + refunded, in each component. */
typedef struct janus_nursery_pool_info {
    size_t       struct_bytes; /* sizeof this struct; JANUS_NURSERY_POOL_INFO sets it */
    janus_budget granted;      /* all that the pool ever got */
    janus_budget left;         /* in the pool */
    janus_budget shares;       /* with children that have not ended */
    janus_budget nested;       /* with pools carved from this one */
    janus_budget spent;        /* used up */
    janus_budget refunded;     /* given back to the pool around it */
} janus_nursery_pool_info;
#define JANUS_NURSERY_POOL_INFO() JANUS_SIZED_(janus_nursery_pool_info)

JANUS_BEGIN_DECLS

/*
 * Pays, all or nothing. A task that cannot pay is exhausted until somebody recharges it, see above.
 * A price above janus_scheduler_options.max_budget ends the task, because nobody could recharge it.
 *
 * Context: inside a task; elsewhere it costs nothing.
 * Yields:  when the budget, or the turn, is used up.
 * Owns:    nothing.
 * Cost:    some ns.
 * Errors:  CANCELLED  the task was cancelled; nothing was taken
 *          NO_MEMORY  memory for the task's books was refused; nothing was taken
 */
JANUS_NODISCARD JANUS_API janus_status janus_charge(janus_budget price);

/*
 * Pays if the budget suffices, and never waits.
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
 * Reads the budget that the current task has left.
 *
 * Context: anyone; zeros outside of tasks.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    some ns.
 * Errors:  none.
 */
JANUS_API janus_budget janus_budget_get_current(void);

/*
 * Recharges the current task, if the budget capability of its context has the right
 * budget.recharge. The capability's limit bounds all that a task ever gets this way. For a task
 * with an explicit budget the profile's capability does not suffice. *out_granted (NULL: not
 * wanted) is what it got.
 *
 * Context: inside a task.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a lock.
 * Errors:  CLAMPED        it got less than it asked for, maybe nothing
 *          NO_BUDGET_CAP  the context has no such capability, or it was revoked; see
 *                         janus_cap_check_in
 *          AUDIT_FULL     the audit log fails closed and is full; nothing was given
 *          STATE          not inside a task
 */
JANUS_NODISCARD JANUS_API janus_status janus_budget_recharge_current(janus_budget  amount,
                                                                     janus_budget *out_granted);

/*
 * janus_budget_recharge_current for generated code. Returns 0, 1 (CLAMPED) or a negative status.
 *
 * Context: as janus_budget_recharge_current.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a lock.
 * Errors:  as janus_budget_recharge_current
 */
JANUS_API int janus_budget_recharge(janus_budget amount);

/*
 * Gives an exhausted child more budget, and the child goes on. The budget comes from the nursery's
 * pool. In a nursery without a pool it is new, and the owner's context must have a budget
 * capability with budget.transfer that allows it.
 *
 * Context: the nursery's owner, task or thread.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a lock.
 * Errors:  STATE             not the owner; the child lives and is not exhausted
 *          STALE             no such child any more
 *          BUDGET_EXHAUSTED  the pool has less
 *          NO_BUDGET_CAP …   as janus_cap_check_in; CAP_LIMIT: more than the capability allows
 *          AUDIT_FULL        the audit log fails closed and is full
 *          On any error nothing happened.
 */
JANUS_NODISCARD JANUS_API janus_status janus_nursery_recharge(janus_nursery *nursery,
                                                              janus_task_id  child,
                                                              janus_budget   amount);

/*
 * Recharges an exhausted child of any nursery that the current task has open, with `cap`. If `cap`
 * is all zero, it uses the capability of the task's context, which supervisors have in :cluster.
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
 * Reports the next exhausted child, oldest first. It reports a child once for each time that it is
 * exhausted.
 *
 * Context: the nursery's owner, task or thread.
 * Yields:  only if the turn is over.
 * Owns:    *out is the caller's.
 * Cost:    a lock.
 * Errors:  false if no such child exists, or the caller is not the owner.
 */
JANUS_API bool janus_nursery_poll_exhausted(janus_nursery *nursery, janus_exhausted *out);

/*
 * Waits until a child is exhausted and reports it, as janus_nursery_poll_exhausted. The nursery
 * stays open, so the owner can start more children afterwards.
 *
 * Context: the nursery's owner, inside a task.
 * Yields:  until a child is exhausted.
 * Owns:    *out is the caller's.
 * Cost:    a lock.
 * Errors:  CLOSED     all children have ended
 *          CANCELLED  the task was cancelled
 *          STATE      not the owner, or not inside a task
 *          DEADLOCK   every task waits, and no event can come
 */
JANUS_NODISCARD JANUS_API janus_status janus_nursery_wait_exhausted(janus_nursery   *nursery,
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
 * Cancels an exhausted child. Its waits and its exhausted call return CANCELLED. It gets one slice
 * of ops to clean up.
 *
 * Context: the nursery's owner, task or thread.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a lock.
 * Errors:  STATE  not the owner
 *          STALE  no such child, or it is not exhausted
 */
JANUS_API janus_status janus_nursery_cancel_exhausted(janus_nursery *nursery, janus_task_id child);

/*
 * Reads the books of the pool from which a nursery's children take: its own, or that of a nursery
 * around it.
 *
 * Context: the nursery's owner, or any task below it.
 * Yields:  only if the turn is over.
 * Owns:    *out is the caller's; set out->struct_bytes before.
 * Cost:    a lock.
 * Errors:  STATE    the nursery has no pool: budgets are implicit
 *          INVALID  an argument is NULL, or out->struct_bytes is no size of it
 */
JANUS_NODISCARD JANUS_API janus_status janus_nursery_pool_inspect(janus_nursery           *nursery,
                                                                  janus_nursery_pool_info *out);

JANUS_END_DECLS
#endif
