/* SPDX-License-Identifier: MIT */
/*
 * A task's purse: what is left of its budget, beyond what the fuel word holds, and what else few
 * tasks have. A task without one has the scheduler's implicit budget and has touched nothing of it
 * but ops, of which it has not used up its first slice. The essay is in purse.c.
 */
#ifndef JRT_TASK_PURSE_H
#define JRT_TASK_PURSE_H

#include "budget/account.h"
#include "fiber/fuel.h"
#include "heap/heap.h"
#include "task/task.h"
#include "task/ward.h"

#include <janusrt/charge.h>

struct jrt_runner;
struct jrt_seat;
struct jrt_terms;

struct jrt_purse {
    struct jrt_purse        *next;      /* put aside for another task, [purse-spare] */
    janus_budget             left;      /* without the fuel; under way: guarded by nothing, the
                                           task's own; exhausted: by the nursery's lock */
    janus_budget             granted;   /* all it got, for the books and for messages */
    janus_budget             recharged; /* of that, by itself under a capability */
    janus_budget             minted;    /* of granted, made for it alone, [purse-allowance] */
    uint64_t                 allowed;   /* of that, ops to clean up with, [purse-allowance] */
    uint64_t                 allowance; /* ops to clean up with that are not in the word yet */
    uint64_t                 shield_ns; /* when its plain shields end, [shield-grace]; 0: not yet */
    struct jrt_pool_account *account;   /* hard: where it came from and goes back to */
    struct jrt_terms        *terms;     /* owned; what it was restricted to at its spawn, or NULL */
    struct jrt_heap         *heap;      /* owned; NULL: it never allocated */
    struct jrt_wards         wards;     /* what ends with it */
    struct jrt_ledger       *ledger;    /* a reference; NULL: the library holds nothing for it */
    uint64_t                 held;      /* of the memory that is not left, for that */
    uint32_t                 slice;     /* ops of its next slice, [turn-pace]; 0: the first */
    int64_t                  handed;    /* ops: the fuel word began its slice with so many */
    uint32_t                 owed_rounds;   /* it lets the others go first so often, */
    uint64_t                 owed_until_ns; /* until then; [aside-owe] */
    struct jrt_seat         *seat;          /* THREADED: where it runs, or NULL; borrowed */
    struct jrt_runner       *runner;        /* BLOCKING: who waits for its end, or NULL; borrowed */
    uint64_t                 stack;     /* memory that it pays for a larger stack, [spawn-stack] */
    uint32_t                 defers;    /* it has asked for, from the second on */
    bool                     has_wards; /* or had some */
    uint32_t                 unpaid;    /* nurseries with terms that are open and not charged */
    bool                     hard;      /* explicit: finite and conserved */
    bool                     started;   /* some of it is in the fuel word, or on a strand */
    bool                     cleaning;  /* got its allowance to clean up with */
    bool                     asking; /* its supervisor's callback runs, with a slice of its own */
    bool                     dismissed; /* its supervisor cancelled it alone */

    /* While it is exhausted, under the nursery's lock. */
    struct jrt_list_node exhausted; /* on the nursery's list */
    struct jrt_task     *task;
    bool                 listed, reported;
    janus_component      lacks;
    uint64_t             needs; /* of that */
    uint64_t             limit; /* of that, all it had got */
    janus_budget         had;   /* all it had then */
};

/* What a child was let in with. */
struct jrt_entry {
    janus_budget             share;
    janus_budget             booked;  /* of that, what the account knows of */
    struct jrt_pool_account *account; /* of the share; NULL: an implicit budget */
    bool                     split;   /* from a pool, which has paid for the spawn */
    struct jrt_terms        *full;    /* TASK_LIMIT: of these; NULL: the scheduler's */
};

/* In place of a component: the system refused memory for the books of the task. Only a task on an
 * implicit budget has no books yet. */
#define JRT_NO_BOOKS ((janus_component)(JANUS_COMPONENT_SYSCALLS + 1))

static inline int64_t jrt_purse_slice(const struct jrt_purse *purse)
{
    return purse->slice != 0 ? (int64_t)purse->slice : JRT_FIRST_SLICE;
}

/* The worker has ended: the purses that it has put aside go. */
void jrt_purses_drop(struct jrt_worker *worker);

/* The purse of the current task, or of one that has not started; NULL: no memory. */
struct jrt_purse *jrt_purse_need(struct jrt_task *task);

/* A purse for a task that is being started, with its share in it. NULL: no memory. */
struct jrt_purse *jrt_purse_make(struct jrt_task *task, const struct jrt_entry *entry);

/* The task has ended, or is not started after all: frees what it has, settles. Nobody knows it. */
void jrt_purse_close(struct jrt_worker *worker, struct jrt_task *task);

/* What the task may still do: the current one, or one that does not run. */
janus_budget jrt_purse_read(const struct jrt_task *task);

/*
 * Pays for something the current task does, all or nothing; if it cannot, it waits or ends there,
 * as its policy says. Where the fuel word does not have the ops its turn is over. OK, CANCELLED,
 * NO_MEMORY: [purse-none].
 */
janus_status jrt_pay(struct jrt_task *task, const janus_budget *price);

/* Pays if it can be paid at once; else what is short, or JRT_NO_BOOKS. */
janus_component jrt_pay_now(struct jrt_task *task, const janus_budget *price);

/* One op that the fuel word did not have: as jrt_pay. */
janus_status jrt_pay_ops(struct jrt_task *task, uint64_t ops);

/* A task that cannot pay: waits for more, gets it, or ends. OK: try again. From exhaust.c. */
janus_status jrt_exhaust(struct jrt_task *task, janus_component lacks, uint64_t needs);

/* Ops that a task with a small explicit budget gets to clean up with, [purse-allowance]. */
enum { JRT_CLEANUP_MIN = 32 };

/*
 * The current task is cancelled and cannot, or shall not, pay: it gets something to clean up with
 * and CANCELLED. A task that goes on all the same ends when that is used up, too.
 */
janus_status jrt_purse_stop(struct jrt_task *task);

/* The current task is ending: something to clean up with. False: it has used that up. */
bool jrt_purse_clean_up(struct jrt_task *task);

/* The current task is told once more that it was cancelled: one op of what it cleans up with. A
 * task that has used that up ends here. */
void jrt_purse_bear(struct jrt_task *task);

/* It goes to the back of the queue, having got more. */
void jrt_task_requeue(struct jrt_task *task);

/* The owner waits for n's end and gives nothing any more: exhausted children end. Locked. */
void jrt_exhausted_abandon_locked(struct jrt_nursery *n);

/* The nursery is cancelled: also those that cannot be interrupted wait no longer. */
void jrt_exhausted_cancel_locked(struct jrt_nursery *n);

/* What a child on n's list has, and of what too little; false: it is not on it. Under the lock. */
bool jrt_exhausted_read(const struct jrt_task *task, janus_budget *out, janus_component *lacks);

/* What the owner is told of an exhausted child; from supervise.c. */
void jrt_exhausted_describe(const struct jrt_purse *purse, janus_exhausted *out);

/* It waits for this child. */
void jrt_exhausted_abandon_one_locked(struct jrt_nursery *n, janus_task_id child);

/* What the purse can get before its sum exceeds UINT64_MAX. */
janus_budget jrt_purse_room(const struct jrt_purse *purse);

/* Gives the current task, or one on the list of exhausted ones, so much; it is in the books of its
 * account. */
void jrt_purse_put_in(struct jrt_purse *purse, const janus_budget *amount);

#endif
