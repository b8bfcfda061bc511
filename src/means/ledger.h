/* SPDX-License-Identifier: MIT */
/*
 * Ledgers: what the library holds for a task besides its blocks, and who pays for it. The essay is
 * in ledger.c.
 */
#ifndef JRT_MEANS_LEDGER_H
#define JRT_MEANS_LEDGER_H

#include "task/worker.h"

struct jrt_purse;
struct jrt_terms;

struct jrt_ledger {
    _Atomic(uint32_t) refs;      /* the task, and all that it pays for */
    _Atomic(uint32_t) callbacks; /* of the task that run; futex; JRT_LEDGER_OVER: it has ended */
    _Atomic(uint64_t) held;      /* bytes */
    struct jrt_terms *terms;     /* a reference; whose tasks together are bounded */
    janus_scheduler  *scheduler; /* until the task has ended */
    struct jrt_task  *task;      /* whose it is; until it has ended, [ledger-over] */
};

#define JRT_LEDGER_OVER 0x80000000u

/*
 * Charges the caller for `bytes` that the library is going to hold for it. *out (NULL: the caller
 * is a plain thread, which pays nothing) is for jrt_ledger_refund. OK, BUDGET_EXHAUSTED, NO_MEMORY;
 * STATE: the caller is a callback, which makes nothing.
 */
janus_status jrt_ledger_charge(uint64_t bytes, struct jrt_ledger **out);

/* The bytes are free again. Any thread; NULL does nothing. */
void jrt_ledger_refund(struct jrt_ledger *ledger, uint64_t bytes);

/* Moves bytes that the purse has paid for, and is about to get back, into its ledger. */
janus_status jrt_ledger_take_over(struct jrt_task *task, uint64_t bytes, struct jrt_ledger **out);

/* Takes that back: nothing happened. */
void jrt_ledger_forgo(struct jrt_task *task, struct jrt_ledger *ledger, uint64_t bytes);

/* What the purse's ledger has got back since the last look goes into the purse. */
void jrt_ledger_settle(struct jrt_purse *purse);

/* The task ends: waits for callbacks of it that run; no other will. */
void jrt_ledger_end(struct jrt_purse *purse);

/* A callback of the task begins; false: the task has ended. Then its end. */
bool jrt_ledger_enter(struct jrt_ledger *ledger);
void jrt_ledger_leave(struct jrt_ledger *ledger);

#endif
