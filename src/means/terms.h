/* SPDX-License-Identifier: MIT */
/*
 * Terms: under which capabilities, from which pool and with which policy a nursery's children are
 * started. A nursery without terms has the scheduler's implicit ones. The essay is in terms.c.
 */
#ifndef JRT_MEANS_TERMS_H
#define JRT_MEANS_TERMS_H

#include "budget/account.h"
#include "cap/gate.h"
#include "task/nursery.h"
#include "task/ward.h"

#include <janusrt/grant.h>

struct jrt_admission;
struct jrt_purse;

enum { JRT_KINDS = JANUS_CAP_KIND_NAME + 1 };

/* Tables that the whole process shares; a pool has at most a quarter, [common-share]. */
enum jrt_common {
    JRT_COMMON_PLACES,    /* of actors */
    JRT_COMMON_QUESTIONS, /* calls and asks that wait for an answer */
    JRT_COMMONS,
};

/* A capability, and the holder that bound it to the terms. The library checks it for that
 * holder. */
struct jrt_held {
    janus_cap cap;
    uint64_t  holder; /* 0: no capability is held */
};

struct jrt_terms {
    _Atomic(uint32_t)         refs;  /* the owner, channels made under them, terms within them */
    const struct jrt_nursery *of;    /* the nursery that they belong to; NULL: a task's */
    struct jrt_terms         *outer; /* the terms that they narrow; NULL: the scheduler's */
    struct jrt_held           held[JRT_KINDS]; /* by janus_cap_kind */
    uint32_t                  implicit; /* bits 1 << kind: the profile's, where none is held */
    uint32_t                  bound;    /* bits 1 << kind: bound here, not inherited */
    /* Tasks, channels and handles under capabilities bound here; channels and handles in an own
     * pool. */
    struct jrt_cap_use        use;
    struct jrt_wards          wards;    /* wards that end with the terms, [ward-life] */
    _Atomic(uint64_t)         kept;     /* bytes held for tasks, [ledger-pool] */
    struct jrt_blocking_party blocking; /* blocking calls of its tasks, [blocking-share] */
    struct jrt_blocking_party names;    /* look-ups of its tasks, [resolve-share] */
    _Atomic(uint64_t)         common[JRT_COMMONS]; /* with a pool: entries, [common-share] */
    unsigned                  depth;               /* number of terms around these */
    struct jrt_list_node      wishes;      /* spawns that wait for room here, [limit-wish] */
    struct jrt_ledger        *payer;       /* the opening task's ledger; NULL: nobody pays */
    bool                      unpaid;      /* counted in the owner's purse instead */
    bool                      counts;      /* these terms, or terms around them, have max_tasks */
    bool                      places;      /* these terms, or terms around them, have max_handles */
    janus_budget              task_budget; /* a child's share, if it asks for nothing */
    struct jrt_pool_account  *account;     /* the source of shares; NULL: no pool */
    struct jrt_pool_account   own;         /* the account, if owns_account */
    bool                      owns_account;
    uint8_t                   exhaustion;  /* janus_exhaustion */
    bool                      draws_none;  /* END does not ask the pool's supervisor, so it gets
                                               nothing from the pool */
    uint8_t                   backend;     /* janus_backend */
    uint32_t                  max_threads; /* live children with their own thread; 0: no limit */
    _Atomic(uint32_t)         threads;     /* with max_threads or a pool: threads here and below */
    uint64_t                  max_tasks;   /* live tasks here and below; 0: no limit */
    _Atomic(uint64_t)         tasks;       /* with max_tasks: tasks here and below, [terms-place] */
    uint64_t                  max_handles; /* live handles here and below, of each kind; 0: any */
    _Atomic(uint64_t)         handles[JRT_CAP_HANDLES]; /* with max_handles, [handle-place] */
    janus_on_exhausted       *on_exhausted;             /* NULL: no function is called */
    void                     *argument;
    bool                      scope; /* the owner uses the scope's purse; its own is aside */
    struct jrt_purse         *aside;
    int64_t                   aside_fuel;
    uint64_t                  aside_live; /* bytes of its heap when the scope began */

    /* What the tasks under these terms have of the means that all tasks share. */
    uint64_t             kept_max;                     /* owns_account: the limit of `kept` */
    uint64_t             handles_max[JRT_CAP_HANDLES]; /* bound: limits of use.handles */
    uint64_t             written_max;                  /* bound FILE: the limit of use.written */
    _Atomic(uint32_t)    failures;            /* kept by nurseries here and below, [failure-kept] */
    struct jrt_cap_quota derived;             /* capabilities that the tasks derived */
    _Atomic(struct jrt_audit_writer *) audit; /* ring of outermost terms; NULL: not yet */
};

/* Whether workers run such children. EVENTED is COOPERATIVE, and promises a poller. */
static inline bool jrt_backend_on_workers(unsigned backend)
{
    return backend == JANUS_BACKEND_COOPERATIVE || backend == JANUS_BACKEND_EVENTED;
}

/* Whether the terms, or terms around them, have a pool. NULL: no. */
static inline bool jrt_terms_in_pool(const struct jrt_terms *terms)
{
    while (terms != NULL && !terms->owns_account) terms = terms->outer;
    return terms != NULL;
}

/* The capabilities that options of nurseries and spawns carry. */
struct jrt_caps {
    janus_cap of[JRT_KINDS];
};

/* Whether options of a nursery make terms of its own necessary. */
bool jrt_terms_wanted(const janus_nursery_options *options);

/* Makes n's own terms within n->terms, which are those around it. On any error nothing happened. */
janus_status jrt_terms_open(struct jrt_nursery *n, const janus_nursery_options *options,
                            bool cancelled);

/* Closes the terms of a nursery that has ended. Only for a nursery on terms. */
void jrt_terms_close(struct jrt_nursery *n);

static inline void jrt_nursery_drop_terms(struct jrt_nursery *n)
{
    if (jrt_unlikely(n->terms != NULL)) jrt_terms_close(n);
}

/* Whether a nursery may be opened under the terms around it. */
janus_status jrt_terms_inherit(struct jrt_nursery *n);

/* Drops a reference. The end of a task drops its own terms. NULL does nothing. */
void jrt_terms_put(struct jrt_terms *terms);

/* The terms under which the task opens nurseries, makes channels and so on. NULL: implicit. */
struct jrt_terms *jrt_terms_here(const struct jrt_task *task);

/* The innermost terms around both a and b, which may be a or b; NULL: the scheduler's. In
 * admit.c. */
struct jrt_terms *jrt_terms_common(struct jrt_terms *a, struct jrt_terms *b);

/* The innermost terms that restrict the task: of a scope it is in, of its spawn, or of the nursery
 * it was started in. NULL: only the scheduler's. */
struct jrt_terms *jrt_terms_around(const struct jrt_task *task);

/* The writer of the task's events, [audit-party]; `otherwise` where no terms restrict it. Only for
 * a scheduler that has a log. */
struct jrt_audit_writer *jrt_terms_writer(const struct jrt_task   *task,
                                          struct jrt_audit_writer *otherwise);

/* The tasks under the terms have ended. Revokes what they derived, [quota-end], and returns their
 * ring. */
void jrt_terms_over(janus_scheduler *scheduler, struct jrt_terms *terms);

/* The party whose helper threads the task's blocking calls use. NULL: no share. */
struct jrt_blocking_party *jrt_terms_blocking(const struct jrt_task *task);

/* The terms whose party looks up names for the task, with one more reference: jrt_terms_put. */
struct jrt_terms *jrt_terms_names(const struct jrt_task *task);

/* The pool has refused the job with `status`: notes for janus_explain whose queue is full. Returns
 * the status. */
janus_status jrt_terms_blocking_refused(janus_scheduler               *scheduler,
                                        const struct jrt_blocking_job *job, janus_status status);

/* Asks the capability, takes room and takes the share before a child is started in n. `want` is the
 * child's own budget; NULL: the terms'. On any error nothing happened. */
janus_status jrt_terms_take_child(struct jrt_nursery *n, struct jrt_worker *worker,
                                  const janus_budget *want, struct jrt_admission *out);

/* Asks the budget capability of terms for `amount`. Terms NULL: the scheduler's. */
janus_status jrt_terms_request(janus_scheduler *scheduler, const struct jrt_terms *terms,
                               uint32_t right, const janus_budget *amount, janus_budget *out);

/* The part of a share that is in the books: all but unlimited components. */
janus_budget jrt_share_booked(const janus_budget *share);

/* Whether the caller may make objects that no task's limits bound, base/outside.h. */
janus_status jrt_terms_outside(void);

/* Returns the share of a child that was not started. jrt_terms_leave must follow. */
void jrt_admission_return(const struct jrt_admission *admission);

/* Returns the room of a child of n that has ended, or was not started. */
void jrt_terms_leave(struct jrt_nursery *n, struct jrt_worker *worker);

/* with_cap: makes terms for one child, within those of the nursery. OK: the caller owns *out. */
janus_status jrt_terms_narrow(struct jrt_nursery *n, const struct jrt_caps *caps,
                              struct jrt_terms **out);

/* Whether the task's context holds a capability of this kind beyond the profile's. */
bool jrt_terms_holds(const struct jrt_task *task, janus_cap_kind kind);

/* Asks the task's budget capability for `amount`. OK or CLAMPED: *out is what it allows. Other
 * errors as janus_cap_check_in. */
janus_status jrt_terms_budget(const struct jrt_task *task, uint32_t right,
                              const janus_budget *amount, janus_budget *out);

/* Asks n's budget capability for budget.transfer, which n's owner needs to recharge children. Any
 * task or thread may call this. */
janus_status jrt_terms_transfer(const struct jrt_nursery *n, const janus_budget *amount,
                                janus_budget *out);

/* Whether a supervisor may give `amount`: with `cap`, or, if that is NULL or zero, with its
 * profile's right. CAP_LIMIT: the amount is too large. */
janus_status jrt_terms_supervise(const struct jrt_task *task, const janus_cap *cap,
                                 const janus_budget *amount);

/* Counts and records a refusal for which no capability was asked. Returns `status`. */
janus_status jrt_terms_deny(janus_scheduler *scheduler, const struct jrt_cap_actor *actor,
                            janus_cap_kind kind, uint32_t right, janus_status status);

/* As jrt_terms_deny, and names what was asked for; NULL: nothing. */
janus_status jrt_terms_deny_at(janus_scheduler *scheduler, const struct jrt_cap_actor *actor,
                               janus_cap_kind kind, uint32_t right, janus_status status,
                               const struct jrt_cap_target *target);

/* Refuses a spawn at the scheduler's limit of tasks: counts it, records it, and explains
 * TASK_LIMIT. `worker` is one of the scheduler's, or NULL. */
janus_status jrt_terms_full(janus_scheduler *scheduler, const struct jrt_worker *worker);

/* Counts one more channel with this buffer. *out are the terms that count it. They exist until the
 * channel is gone, even if the scheduler ends before. In channels.c. */
janus_status jrt_terms_channel(const struct jrt_task *task, uint64_t buffer,
                               struct jrt_terms **out);
void         jrt_terms_channel_gone(struct jrt_terms *terms);

/* Takes one entry of a common table with room for `entries`, in each pool around; terms NULL: in
 * none. False: *out_full, a pool, has its quarter, and nothing was taken. In channels.c. */
bool jrt_common_take(struct jrt_terms *terms, enum jrt_common table, uint64_t entries,
                     struct jrt_terms **out_full);
void jrt_common_give(struct jrt_terms *terms, enum jrt_common table);

/* Whether the task may use the name: `right` is one of the NAME rights. The task calls this itself,
 * or does not run meanwhile. NULL: a plain thread, which may. Returns as janus_cap_check_in;
 * janus_explain has the sentence. CAP_LIMIT: the name is outside of the prefix. STATE: a callback.
 * In names.c. */
janus_status jrt_terms_name(const struct jrt_task *task, uint32_t right, const char *name);

/* The calling task or thread, as an actor for the table. */
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

/* The caller as an actor in `scheduler`. A task of another scheduler counts as any thread, whatever
 * its id. */
static inline struct jrt_cap_actor jrt_actor_in(const janus_scheduler   *scheduler,
                                                const struct jrt_worker *worker)
{
    return jrt_actor(worker != NULL && worker->scheduler == scheduler ? worker : NULL);
}

/* Whether the caller may cancel it by a public call, [cancel-right]. In admit.c. */
bool jrt_nursery_may_cancel(const struct jrt_nursery *nursery);

#endif
