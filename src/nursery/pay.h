/* SPDX-License-Identifier: MIT */
/* Paying where it may take time: a task waits for more, learns of a cancel, or ends. The essay is
 * in pay.c. */
#ifndef JRT_NURSERY_PAY_H
#define JRT_NURSERY_PAY_H

#include "task/purse.h"

/*
 * Charges the current task, all or nothing. If it cannot pay, it waits or ends there, as its
 * policy says. If the fuel word does not have the ops, its turn is over. OK, CANCELLED,
 * NO_MEMORY: [purse-none].
 */
janus_status jrt_pay(struct jrt_task *task, const janus_budget *price);

/* Charges ops that the fuel word did not have, like jrt_pay. */
janus_status jrt_pay_ops(struct jrt_task *task, uint64_t ops);

/* Handles a task that cannot pay: it gets more, waits for more, or ends. OK: try again. In
 * exhaust.c. */
janus_status jrt_exhaust(struct jrt_task *task, janus_component lacks, uint64_t needs);

/* Gives the current task, whose purse has no syscall left, one more portion of its implicit budget,
 * if jrt_exhaust would do just that. False: it would not. In exhaust.c. */
bool jrt_replenish_syscalls(struct jrt_worker *worker, struct jrt_task *task);

/*
 * The current task is cancelled and cannot, or must not, pay. Gives it its cleanup allowance and
 * returns CANCELLED. A task that goes on ends when the allowance is used up.
 */
janus_status jrt_purse_stop(struct jrt_task *task);

/* Charges one op of the allowance, because a call reports the cancel once more. A task that has
 * used it up ends here. */
void jrt_purse_bear(struct jrt_task *task);

/* Moves a recharged task to the back of the queue. */
void jrt_task_requeue(struct jrt_task *task);

/* Describes an exhausted child for the owner. In supervise.c. */
void jrt_exhausted_describe(const struct jrt_purse *purse, janus_exhausted *out);

/* The tolls of a cancelled task are used up: it pays for its calls, [cancel-patience]. */
void jrt_task_pay_patience(struct jrt_task *task);

#endif
