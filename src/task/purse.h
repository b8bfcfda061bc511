/* SPDX-License-Identifier: MIT */
/*
 * A task's purse: what is left of its budget beyond the fuel word, and other fields that few tasks
 * have. A task without a purse has the scheduler's implicit budget. Of that it has used only ops
 * of its first slice. The essay is in purse.c.
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
    struct jrt_purse *next; /* spare for another task, [purse-spare] */
    /* Without the fuel; the task's own, or if exhausted under the nursery's lock. */
    janus_budget             left;
    janus_budget             granted;   /* all it got, for the books and for messages */
    janus_budget             recharged; /* part of granted: by itself under a capability */
    janus_budget             minted;    /* part of granted: made for it alone, [purse-allowance] */
    uint64_t                 allowed;   /* part of minted: ops for cleanup, [purse-allowance] */
    uint64_t                 allowance; /* ops for cleanup that are not in the word yet */
    uint64_t                 shield_ns; /* end of its plain shields, [shield-grace]; 0: not yet */
    struct jrt_pool_account *account;   /* hard: source of the budget, which gets the rest back */
    struct jrt_terms        *terms;     /* owned; restrictions of its spawn, or NULL */
    struct jrt_heap         *heap;      /* owned; NULL: it never allocated */
    struct jrt_wards         wards;     /* things that end with it */
    struct jrt_ledger       *ledger;    /* a reference; NULL: the library holds nothing for it */
    uint64_t                 held;      /* bytes of memory that the ledger holds */
    uint32_t                 slice;     /* ops of its next slice, [turn-pace]; 0: the first */
    int64_t                  handed;    /* ops in the fuel word when its slice began */
    uint32_t                 owed_rounds;   /* times it lets the others run first */
    uint64_t                 owed_until_ns; /* it owes nothing after that; [aside-owe] */
    struct jrt_seat         *seat;          /* THREADED: where it runs, or NULL; borrowed */
    struct jrt_runner       *runner;        /* BLOCKING: waits for its end, or NULL; borrowed */
    uint64_t                 stack;         /* memory paid for a larger stack, [spawn-stack] */
    uint32_t                 defers;        /* number of its defers, from the second on */
    bool                     has_wards;     /* or had some */
    uint32_t                 unpaid;        /* open nurseries with terms that are not charged */
    bool                     hard;          /* explicit: finite and conserved */
    bool                     started;       /* some of it is in the fuel word, or on a strand */
    bool                     cleaning;      /* it got its cleanup allowance */
    bool                     asking;        /* its supervisor's callback runs, with an own slice */
    bool                     dismissed;     /* its supervisor cancelled it alone */

    /* While the task is exhausted, under the nursery's lock. */
    struct jrt_list_node exhausted; /* on the nursery's list */
    struct jrt_task     *task;
    bool                 listed, reported;
    janus_component      lacks;
    uint64_t             needs; /* amount of `lacks` needed */
    uint64_t             limit; /* amount of `lacks` granted */
    janus_budget         had;   /* its whole budget then */
};

/* What a child was admitted with. */
struct jrt_entry {
    janus_budget             share;
    janus_budget             booked;  /* the part that is in the account's books */
    struct jrt_pool_account *account; /* source of the share; NULL: an implicit budget */
    bool                     split;   /* from a pool, which has paid for the spawn */
    struct jrt_terms        *full;    /* TASK_LIMIT: the full terms; NULL: the scheduler's */
};

/* Stands for a component: the system refused memory for the books of the task. Only a task on an
 * implicit budget has no books yet. */
#define JRT_NO_BOOKS ((janus_component)(JANUS_COMPONENT_SYSCALLS + 1))

static inline int64_t jrt_purse_slice(const struct jrt_purse *purse)
{
    return purse->slice != 0 ? (int64_t)purse->slice : JRT_FIRST_SLICE;
}

/* Frees the spare purses of a worker that has ended. */
void jrt_purses_drop(struct jrt_worker *worker);

/* The purse of the current task, or of a task that has not started; NULL: no memory. */
struct jrt_purse *jrt_purse_need(struct jrt_task *task);

/* Makes a purse, with the share in it, for a task that is being started. NULL: no memory. */
struct jrt_purse *jrt_purse_make(struct jrt_task *task, const struct jrt_entry *entry);

/* Frees and settles the purse of a task that has ended, or does not start. Nobody knows the
 * task. */
void jrt_purse_close(struct jrt_worker *worker, struct jrt_task *task);

/* The budget left of the current task, or of a task that does not run. */
janus_budget jrt_purse_read(const struct jrt_task *task);

/*
 * Charges the current task, all or nothing. If it cannot pay, it waits or ends there, as its
 * policy says. If the fuel word does not have the ops, its turn is over. OK, CANCELLED,
 * NO_MEMORY: [purse-none].
 */
janus_status jrt_pay(struct jrt_task *task, const janus_budget *price);

/* Pays if the task can pay at once. Otherwise returns what is short, or JRT_NO_BOOKS. */
janus_component jrt_pay_now(struct jrt_task *task, const janus_budget *price);

/* Charges ops that the fuel word did not have, like jrt_pay. */
janus_status jrt_pay_ops(struct jrt_task *task, uint64_t ops);

/* Handles a task that cannot pay: it gets more, waits for more, or ends. OK: try again. In
 * exhaust.c. */
janus_status jrt_exhaust(struct jrt_task *task, janus_component lacks, uint64_t needs);

/* The least allowance of a task with a small explicit budget, [purse-allowance]. */
enum { JRT_CLEANUP_MIN = 32 };

/*
 * The current task is cancelled and cannot, or must not, pay. Gives it its cleanup allowance and
 * returns CANCELLED. A task that goes on ends when the allowance is used up.
 */
janus_status jrt_purse_stop(struct jrt_task *task);

/* Gives the current task, which is ending, its allowance. False: it has used it up. */
bool jrt_purse_clean_up(struct jrt_task *task);

/* Charges one op of the allowance, because a call reports the cancel once more. A task that has
 * used it up ends here. */
void jrt_purse_bear(struct jrt_task *task);

/* Moves a recharged task to the back of the queue. */
void jrt_task_requeue(struct jrt_task *task);

/* Ends n's exhausted children: the owner waits for n's end and gives nothing any more. Under the
 * lock. */
void jrt_exhausted_abandon_locked(struct jrt_nursery *n);

/* Ends the waits of n's exhausted children, because n is cancelled, even if they cannot be
 * interrupted. */
void jrt_exhausted_cancel_locked(struct jrt_nursery *n);

/* What a child on n's list has, and what is short. False: it is not on the list. Under the lock. */
bool jrt_exhausted_read(const struct jrt_task *task, janus_budget *out, janus_component *lacks);

/* Describes an exhausted child for the owner. In supervise.c. */
void jrt_exhausted_describe(const struct jrt_purse *purse, janus_exhausted *out);

/* Ends the wait of one exhausted child, because the owner waits for it. */
void jrt_exhausted_abandon_one_locked(struct jrt_nursery *n, janus_task_id child);

/* What the purse can get before its sum exceeds UINT64_MAX. */
janus_budget jrt_purse_room(const struct jrt_purse *purse);

/* Adds `amount` to the purse of the current task, or of a listed exhausted one. The account's books
 * already have it. */
void jrt_purse_put_in(struct jrt_purse *purse, const janus_budget *amount);

#endif
