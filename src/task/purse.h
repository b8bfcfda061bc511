/* SPDX-License-Identifier: MIT */
/*
 * A task's purse: what is left of its budget beyond the fuel word, and other fields that few tasks
 * have. A task without a purse has the scheduler's implicit budget. Of that it has used only ops
 * of its first slice. The essay is in means/purse.c.
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

/* What few purses need: made when first needed. Written and read as the purse is. */
struct jrt_purse_rare {
    janus_budget recharged; /* part of granted: by itself under a capability */
    janus_budget minted;    /* part of granted: made for it alone, [purse-allowance] */
    uint64_t     needs;     /* exhausted: amount of `lacks` needed */
    uint64_t     limit;     /* exhausted: amount of `lacks` granted */
    janus_budget had;       /* exhausted: its whole budget then */
    janus_budget more;      /* capped: what refills may still add to `left`, [actor-apart] */
    janus_budget beyond;    /* capped: refills above that */
};

struct jrt_purse {
    union {
        struct jrt_purse *next; /* spare for another task, [purse-spare] */
        struct jrt_task  *task;
    };
    /* Without the fuel; the task's own, or if exhausted under the nursery's lock. */
    janus_budget             left;
    janus_budget             granted;   /* all it got, for the books and for messages */
    struct jrt_purse_rare   *rare;      /* owned; NULL: nothing of it was needed */
    uint64_t                 allowed;   /* part of granted: ops for cleanup, [purse-allowance] */
    uint64_t                 allowance; /* ops for cleanup that are not in the word yet */
    uint64_t                 shield_ns; /* end of its plain shields, [shield-grace]; 0: not yet */
    struct jrt_pool_account *account;   /* hard: source of the budget, which gets the rest back */
    struct jrt_terms        *terms;     /* owned; restrictions of its spawn, or NULL */
    struct jrt_heap         *heap;      /* owned; NULL: it never allocated */
    struct jrt_wards         wards;     /* things that end with it */
    struct jrt_ledger       *ledger;    /* a reference; NULL: the library holds nothing for it */
    uint64_t                 held;      /* bytes of memory that the ledger holds */
    int64_t                  handed;    /* ops in the fuel word when its slice began */
    uint32_t                 slice;     /* ops of its next slice, [turn-pace]; 0: the first */
    uint32_t                 owed_rounds : 24; /* times it lets the others run first */
    uint32_t                 owed_at : 8;   /* end of the number of the worker of owed_until_ns */
    uint64_t                 owed_until_ns; /* it owes nothing after that; [aside-clock] */
    struct jrt_seat         *seat;          /* THREADED: where it runs, or NULL; borrowed */
    struct jrt_runner       *runner;        /* BLOCKING: waits for its end, or NULL; borrowed */
    uint64_t                 stack;         /* memory paid for a larger stack, [spawn-stack] */
    uint16_t                 defers;        /* number of its defers, from the second on */
    uint16_t                 unpaid;        /* open nurseries with terms that are not charged */
    uint16_t                 holds;         /* open ones */
    uint16_t                 owed;          /* ops lent in a hold, [hold-turn] */
    bool                     has_wards;     /* or had some */
    bool                     hard;          /* explicit: finite and conserved */
    bool                     started;       /* some of it is in the fuel word, or on a strand */
    bool                     cleaning;      /* it got its cleanup allowance */
    bool                     asking;        /* its supervisor's callback runs, with an own slice */
    bool                     dismissed;     /* its supervisor cancelled it alone */

    /* While the task is exhausted, under the nursery's lock, like the rare part. */
    bool                 listed : 1, reported : 1;
    bool                 capped : 1;    /* the task's own: a letter has a limit, [actor-apart] */
    bool                 hold_due : 1;  /* the task's own: a slice ended in its hold, [hold-turn] */
    bool                 hold_over : 1; /* the task's own: its hold is void until its end */
    bool                 lodged : 1;    /* never changes, [purse-lodged] */
    janus_component      lacks : 8;
    struct jrt_list_node exhausted; /* on the nursery's list */
};

/* Most tasks with a handle or a pool have a purse. malloc adds 8 bytes. */
_Static_assert(sizeof(struct jrt_purse) <= 264, "a purse");
_Static_assert(sizeof(struct jrt_purse) <= JRT_LODGING_BYTES, "it has room there");

/* What a child was admitted with. */
struct jrt_admission {
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

/* Whether a hold keeps the turn from ending, [hold-turn]. */
static inline bool jrt_purse_held(const struct jrt_purse *purse)
{
    return purse != NULL && purse->holds > 0 && !purse->hold_over;
}

/* A scope of the task has a purse of its own. What belongs to the task itself goes along: its pace,
 * what it owes the others, and its hold. */
static inline void jrt_purse_carry(const struct jrt_purse *from, struct jrt_purse *to)
{
    to->slice = from->slice;
    to->owed_rounds = from->owed_rounds;
    to->owed_until_ns = from->owed_until_ns;
    to->owed_at = from->owed_at;
    to->holds = from->holds;
    to->owed = from->owed;
    to->hold_due = from->hold_due;
    to->hold_over = from->hold_over;
}

/*
 * [purse-word]  The word is public, so anybody can write to it. It never holds more than it was
 *   handed, or than JANUS_SLICE. A task whose word holds more has made ops from nothing: it panics
 *   where the library finds this. A word below zero counts as empty.
 */
static inline int64_t jrt_purse_word_max(const struct jrt_purse *purse)
{
    return purse != NULL && purse->handed > JANUS_SLICE ? purse->handed : JANUS_SLICE;
}

/* What a task that ends, or rests, leaves in the word, [purse-word]. */
static inline uint64_t jrt_purse_settled(const struct jrt_purse *purse, int64_t fuel)
{
    bool fair = jrt_likely(fuel <= JANUS_SLICE) || fuel <= purse->handed;
    return fuel > 0 && fair ? (uint64_t)fuel : 0;
}

/* Frees the spare purses of a worker that has ended. */
void jrt_purses_drop(struct jrt_worker *worker);

/* The purse of the current task, or of a task that has not started; NULL: no memory. */
struct jrt_purse *jrt_purse_need(struct jrt_task *task);

/* The rare part, made if necessary. NULL: no memory. */
struct jrt_purse_rare *jrt_purse_rare(struct jrt_purse *purse);

/* Makes a purse, with the share in it, for a task that is being started. NULL: no memory. */
struct jrt_purse *jrt_purse_make(struct jrt_task *task, const struct jrt_admission *admission);

/* Puts the purse of a task that has ended aside, [purse-spare], or leaves its lodging. Its rare
 * part is gone already. NULL: no worker, it is freed. */
void jrt_purse_put_aside(struct jrt_worker *worker, struct jrt_purse *purse);

#endif
