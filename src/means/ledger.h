/* SPDX-License-Identifier: MIT */
/*
 * Ledgers: what the library holds for a task besides its blocks, and which task pays for it. The
 * essay is in ledger.c.
 */
#ifndef JRT_MEANS_LEDGER_H
#define JRT_MEANS_LEDGER_H

#include "task/worker.h"

struct jrt_purse;
struct jrt_terms;

struct jrt_ledger {
    _Atomic(uint32_t) refs;      /* the task, and each thing that it pays for */
    _Atomic(uint32_t) callbacks; /* futex: the task's running callbacks, JRT_LEDGER_OVER */
    _Atomic(uint64_t) held;      /* bytes */
    _Atomic(uint64_t) owed_ns;   /* [callback-time] */
    struct jrt_terms *terms;     /* a reference; they bound all their tasks together */
    janus_scheduler  *scheduler; /* until the task has ended */
    struct jrt_task  *task;      /* the payer, until it has ended, [ledger-over] */
};

#define JRT_LEDGER_OVER 0x80000000u

/*
 * Charges the caller for `bytes` that the library will hold for it. Pass *out to
 * jrt_ledger_refund. *out is NULL for a plain thread, which pays nothing. OK, BUDGET_EXHAUSTED,
 * NO_MEMORY. STATE: the caller is a callback, which may make nothing.
 */
janus_status jrt_ledger_charge(uint64_t bytes, struct jrt_ledger **out);

/* Refunds the bytes of a freed thing. Any thread may call this; NULL does nothing. */
void jrt_ledger_refund(struct jrt_ledger *ledger, uint64_t bytes);

/* Counts bytes of a thing that the ledger pays for, and that another task made larger. They count
 * for the ledger's terms, not for the task's budget, [ledger-pool]. `most`: the scheduler's bound.
 * False: the terms hold too much. NULL: true. Any thread, until the thing is refunded. */
bool jrt_ledger_bear(struct jrt_ledger *ledger, uint64_t bytes, uint64_t most);
void jrt_ledger_unbear(struct jrt_ledger *ledger, uint64_t bytes);

/* Moves bytes that the purse has paid for, and is about to get back, into its ledger. */
janus_status jrt_ledger_take_over(struct jrt_task *task, uint64_t bytes, struct jrt_ledger **out);

/* Undoes jrt_ledger_take_over. */
void jrt_ledger_forgo(struct jrt_task *task, struct jrt_ledger *ledger, uint64_t bytes);

/* Adds what was refunded since the last call to the purse. */
void jrt_ledger_settle(struct jrt_purse *purse);

/* Takes the time that callbacks of the task have used on other tasks' turns, [callback-time]. */
uint64_t jrt_ledger_take_owed(const struct jrt_purse *purse);

/* Ends the ledger of an ending task: waits for its running callbacks. No other callback starts. */
void jrt_ledger_end(struct jrt_purse *purse);

/* The begin and the end of a callback of the task. False: the task has ended. */
bool jrt_ledger_enter(struct jrt_ledger *ledger);
void jrt_ledger_leave(struct jrt_ledger *ledger);

#endif
