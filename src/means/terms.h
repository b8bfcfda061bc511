/* SPDX-License-Identifier: MIT */
/*
 * Terms: under which capabilities, from which pool and with which policy a nursery's children are
 * started. A nursery without any has the scheduler's implicit ones. The essay is in terms.c.
 */
#ifndef JRT_MEANS_TERMS_H
#define JRT_MEANS_TERMS_H

#include "budget/account.h"
#include "cap/gate.h"
#include "task/nursery.h"
#include "task/ward.h"

#include <janusrt/grant.h>

struct jrt_entry;
struct jrt_purse;

enum { JRT_KINDS = JANUS_CAP_EXECUTOR + 1 };

/* A capability, and for whom it is checked: who bound it to the terms. */
struct jrt_held {
    janus_cap cap;
    uint64_t  holder; /* 0: none is held */
};

struct jrt_terms {
    _Atomic(uint32_t)         refs;            /* its owner, channels made under it, terms in it */
    const struct jrt_nursery *of;              /* whose own they are; NULL: a task's */
    struct jrt_terms         *outer;           /* what they narrow; NULL: the scheduler's */
    struct jrt_held           held[JRT_KINDS]; /* by janus_cap_kind */
    uint32_t                  implicit;    /* bits 1 << kind: the profile's, where none is held */
    uint32_t                  bound;       /* bits 1 << kind: held since here, not inherited */
    struct jrt_cap_use        use;         /* what was started under what is bound here, or, of
                                              channels, paid for from a pool of its own */
    struct jrt_wards          wards;       /* what ends with them, [ward-life] */
    _Atomic(uint64_t)         kept;        /* bytes held for tasks, [ledger-pool] */
    struct jrt_blocking_party blocking;    /* blocking calls of its tasks, [blocking-share] */
    unsigned                  depth;       /* terms around these */
    struct jrt_list_node      wishes;      /* spawns that wait for room here, [limit-wish] */
    struct jrt_ledger        *payer;       /* of the owner that opened them; NULL: nobody */
    bool                      unpaid;      /* counted in the owner's purse instead */
    janus_budget              task_budget; /* a child's share, where it asks for nothing */
    struct jrt_pool_account  *account;     /* where shares come from; NULL: from nothing */
    struct jrt_pool_account   own;         /* owns_account: that one */
    bool                      owns_account;
    uint8_t                   exhaustion;   /* janus_exhaustion */
    uint8_t                   backend;      /* janus_backend */
    uint32_t                  threads_max;  /* live children with one of their own; 0: no limit */
    _Atomic(uint32_t)         threads;      /* threads_max, or a pool: how many, here and below */
    janus_on_exhausted       *on_exhausted; /* NULL: nobody is called */
    void                     *argument;
    bool                      scope; /* the owner has a purse of the scope's; its own is aside */
    struct jrt_purse         *aside;
    int64_t                   aside_fuel;
    uint64_t                  aside_live; /* bytes of its heap when the scope began */

    /* Of what all tasks share, what those under these terms have. */
    uint64_t             kept_max;            /* owns_account: the most of `kept` */
    _Atomic(uint32_t)    failures;            /* kept by nurseries here and below, [failure-kept] */
    struct jrt_cap_quota derived;             /* capabilities that they derived */
    _Atomic(struct jrt_audit_writer *) audit; /* outermost terms: their ring; NULL: not yet */
};

/* The four that options of nurseries and spawns carry. */
struct jrt_caps {
    janus_cap of[JRT_KINDS];
};

/* Whether options of a nursery make terms of its own necessary. */
bool jrt_terms_wanted(const janus_nursery_options *options);

/* Makes n's own terms, within those around it, which are n->terms. OK, or an error, on
 * which nothing happened. */
janus_status jrt_terms_open(struct jrt_nursery *n, const janus_nursery_options *options);

/* The nursery has ended; for one that is on terms. */
void jrt_terms_close(struct jrt_nursery *n);

static inline void jrt_nursery_drop_terms(struct jrt_nursery *n)
{
    if (jrt_unlikely(n->terms != NULL)) jrt_terms_close(n);
}

/* A nursery that is opened under the terms around it: whether that is allowed. */
janus_status jrt_terms_inherit(struct jrt_nursery *n);

/* One reference less; a task's own terms when it ends. NULL does nothing. */
void jrt_terms_put(struct jrt_terms *terms);

/* What the current task opens nurseries, makes channels and so on under. NULL: implicit. */
struct jrt_terms *jrt_terms_here(const struct jrt_task *task);

/* The innermost terms that restrict the task: of a scope it is in, of its spawn, or of the nursery
 * it was started in. NULL: only the scheduler's. */
struct jrt_terms *jrt_terms_around(const struct jrt_task *task);

/* Where the events of the task go, [audit-party]; `otherwise` where no terms restrict it. For a
 * scheduler that has a log. */
struct jrt_audit_writer *jrt_terms_writer(const struct jrt_task   *task,
                                          struct jrt_audit_writer *otherwise);

/* The tasks under the terms have ended: what they derived is revoked, [quota-end], and their ring
 * is given back. */
void jrt_terms_over(janus_scheduler *scheduler, struct jrt_terms *terms);

/* Whose share of the helper threads the task's blocking calls take. NULL: no share. */
struct jrt_blocking_party *jrt_terms_blocking(const struct jrt_task *task);

/* Before a child is started in n, which has terms, or with a budget of its own (NULL: the terms'):
 * asks the capability, takes room and the share. On any error nothing happened. */
janus_status jrt_terms_admit(struct jrt_nursery *n, struct jrt_worker *worker,
                             const janus_budget *want, struct jrt_entry *out);

/* Asks the budget capability of terms for `amount`; NULL: the scheduler's. */
janus_status jrt_terms_request(janus_scheduler *scheduler, const struct jrt_terms *terms,
                               uint32_t right, const janus_budget *amount, janus_budget *out);

/* What of a share is in the books: all but what is unlimited. */
janus_budget jrt_share_booked(const janus_budget *share);

/* Whether the caller may make what no task's limits bound, base/outside.h. */
janus_status jrt_terms_outside(void);

/* Takes back the share of a child that was not started; then jrt_terms_leave. */
void jrt_entry_return(const struct jrt_entry *entry);

/* A child of n has ended, or was not started: room for another. */
void jrt_terms_leave(struct jrt_nursery *n, struct jrt_worker *worker);

/* with_cap: terms for one child, within those of the nursery. OK: *out is the caller's to free. */
janus_status jrt_terms_narrow(struct jrt_nursery *n, const struct jrt_caps *caps,
                              struct jrt_terms **out);

/* Whether the task's context has a capability of the kind that is not the profile's. */
bool jrt_terms_holds(const struct jrt_task *task, janus_cap_kind kind);

/* Asks the task's budget capability for `amount`. OK, CLAMPED: *out is what it allows; or as
 * janus_cap_check. */
janus_status jrt_terms_budget(const struct jrt_task *task, uint32_t right,
                              const janus_budget *amount, janus_budget *out);

/* The same, whoever calls, for what n's owner gives to n's children: budget.transfer. */
janus_status jrt_terms_transfer(const struct jrt_nursery *n, const janus_budget *amount,
                                janus_budget *out);

/* Whether a supervisor may give `amount`: with `cap`, or where that is NULL or zero with what its
 * profile gives supervisors. CAP_LIMIT: not so much. */
janus_status jrt_terms_supervise(const struct jrt_task *task, const janus_cap *cap,
                                 const janus_budget *amount);

/* Counts a refusal for which no capability was asked, and writes it down; returns `status`. */
janus_status jrt_terms_deny(janus_scheduler *scheduler, const struct jrt_cap_actor *actor,
                            janus_cap_kind kind, uint32_t right, janus_status status);

/* As many tasks live as the scheduler allows: TASK_LIMIT, counted, written down, to be explained.
 * `worker`: of the scheduler, or NULL. */
janus_status jrt_terms_full(janus_scheduler *scheduler, const struct jrt_worker *worker);

/* One more channel with such a buffer; *out is who counts it, and is there until the channel is
 * gone, even if the scheduler ends before. In ration.c. */
janus_status jrt_terms_channel(const struct jrt_task *task, uint64_t buffer,
                               struct jrt_terms **out);
void         jrt_terms_channel_gone(struct jrt_terms *terms);

/* Who a caller of ours is, for the table. */
static inline struct jrt_cap_actor jrt_actor(const struct jrt_worker *worker)
{
    struct jrt_cap_actor actor = {.holder = JANUS_HOLDER_OUTSIDE};
    if (worker == NULL) return actor;
    actor.writer = worker->audit;
    if (worker->current == NULL) return actor;
    actor.holder = jrt_task_id(worker->current);
    if (jrt_unlikely(worker->audit != NULL)) {
        actor.writer = jrt_terms_writer(worker->current, worker->audit);
    }
    return actor;
}

/* The same in `scheduler`: for it, another's task is any thread, whatever its id. */
static inline struct jrt_cap_actor jrt_actor_in(const janus_scheduler   *scheduler,
                                                const struct jrt_worker *worker)
{
    return jrt_actor(worker != NULL && worker->scheduler == scheduler ? worker : NULL);
}

#endif
