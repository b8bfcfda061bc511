/* SPDX-License-Identifier: MIT */
/*
 * Capabilities: a right that is held, not looked up. To start a task, to ask for budget, to make a
 * channel or to choose an executor, a holder shows a handle; a table in the library says whether it
 * is one, whose it is, and what it allows.
 *
 *     janus_cap_table *table;
 *     janus_authority *root;
 *     janus_cap        spawn, half;
 *     janus_cap_limits limits = {.spawn = {.max_tasks = 50, .task_budget = {.ops = 10000}}};
 *     if (janus_cap_table_create(NULL, &table, &root) != JANUS_OK) ...
 *     janus_cap_mint(table, root, 1, JANUS_CAP_GRANT(.kind = JANUS_CAP_SPAWN,
 *                    .rights = JANUS_RIGHTS_ALL, .limits = &limits), &spawn);
 *     limits.spawn.max_tasks = 25;
 *     janus_cap_attenuate(table, spawn, 1, JANUS_CAP_GRANT(.rights = JANUS_RIGHT_SPAWN_TASK,
 *                         .limits = &limits), &half);
 *     janus_cap_check(table, half, JANUS_CAP_SPAWN, JANUS_RIGHT_SPAWN_NURSERY, 1) == CAP_RIGHT
 *
 * A capability comes from the root authority (mint) or from another capability, and then it is
 * narrower or equal in rights, in every limit and in how far it may be delegated. Revoking one
 * revokes everything that was derived from it, at once.
 *
 * A handle is copied freely, but copying moves no right: it is refused for everybody but its
 * holder. A right moves to another holder only by janus_cap_delegate, which must have been allowed
 * when the capability was made, and which is recorded.
 *
 * Who asks is said by the caller, as `holder`, any number but 0. Whoever has the table's address
 * thus speaks for every holder, and whoever has the authority can make rights. Code that should
 * have neither is given neither: it calls the runtime, which fills in who it is.
 *
 * What this is worth: a handle that is stale, altered, guessed or copied from another holder is
 * refused. This protects correct and merely buggy programs. It does not protect against native
 * code that deliberately corrupts memory; SECURITY.md says what does.
 */
#ifndef JANUSRT_CAP_H
#define JANUSRT_CAP_H

#include <janusrt/audit.h>
#include <janusrt/budget.h>
#include <janusrt/export.h>
#include <janusrt/options.h>
#include <janusrt/profile.h>
#include <janusrt/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Names a capability; all zero names none. The nonce is what makes it hard to guess: it is never
 * printed and stands in no log. */
typedef struct janus_cap {
    uint32_t slot, generation;
    uint64_t nonce;
} janus_cap;

/* Where capabilities live. */
typedef struct janus_cap_table janus_cap_table;

/* The right to make rights, given to whoever creates a table. */
typedef struct janus_authority janus_authority;

#define JANUS_CAP_KIND_MAP(X)                                                                      \
    X(SPAWN, 1, "spawn")                                                                           \
    X(BUDGET, 2, "budget")                                                                         \
    X(CHANNEL, 3, "channel")                                                                       \
    X(EXECUTOR, 4, "executor")

typedef enum janus_cap_kind {
    JANUS_CAP_NO_KIND = 0, /* in a grant that derives: the original's */
#define JANUS_CAP_KIND_ENUM(name, value, text) JANUS_CAP_##name = (value),
    JANUS_CAP_KIND_MAP(JANUS_CAP_KIND_ENUM)
#undef JANUS_CAP_KIND_ENUM
} janus_cap_kind;

/* The permission tokens: name, bit, kind, text. */
#define JANUS_RIGHT_MAP(X)                                                                         \
    X(SPAWN_TASK, 0, SPAWN, "spawn.task")                                                          \
    X(SPAWN_NURSERY, 1, SPAWN, "spawn.nursery")                                                    \
    X(BUDGET_REQUEST, 2, BUDGET, "budget.request")                                                 \
    X(BUDGET_RECHARGE, 3, BUDGET, "budget.recharge")                                               \
    X(BUDGET_TRANSFER, 4, BUDGET, "budget.transfer")                                               \
    X(CHANNEL_CREATE, 5, CHANNEL, "channel.create")                                                \
    X(CHANNEL_SEND, 6, CHANNEL, "channel.send")                                                    \
    X(CHANNEL_RECV, 7, CHANNEL, "channel.recv")                                                    \
    X(CHANNEL_CLOSE, 8, CHANNEL, "channel.close")                                                  \
    X(EXECUTOR_SELECT, 9, EXECUTOR, "executor.select")                                             \
    X(EXECUTOR_CONFIGURE, 10, EXECUTOR, "executor.configure")

enum {
#define JANUS_RIGHT_ENUM(name, bit, kind, text) JANUS_RIGHT_##name = 1 << (bit),
    JANUS_RIGHT_MAP(JANUS_RIGHT_ENUM)
#undef JANUS_RIGHT_ENUM
};

/* In a grant: every right of the kind, or every right the original has. */
#define JANUS_RIGHTS_ALL UINT32_MAX

/* How code can be run. A set is the sum of JANUS_BACKEND_SET(each). */
typedef enum janus_backend {
    JANUS_BACKEND_BLOCKING = 0, /* synchronously, on one thread */
    JANUS_BACKEND_THREADED,     /* a thread of the system for each task */
    JANUS_BACKEND_COOPERATIVE,  /* fibers on a scheduler */
    JANUS_BACKEND_EVENTED,      /* the same, with an event loop */
    JANUS_BACKENDS
} janus_backend;

#define JANUS_BACKEND_SET(backend) (UINT64_C(1) << (backend))

/* What each kind limits. */
typedef struct janus_spawn_limits {
    uint64_t     max_tasks;   /* children alive at once */
    janus_budget task_budget; /* what each child gets */
} janus_spawn_limits;

typedef struct janus_budget_limits {
    uint64_t cpu_budget;     /* operations */
    uint64_t spawn_limit;    /* children */
    uint64_t memory_budget;  /* bytes */
    uint64_t channel_budget; /* operations on channels */
    uint64_t syscall_budget; /* calls into the system */
} janus_budget_limits;

typedef struct janus_channel_limits {
    uint64_t max_buffer_size; /* capacity of one channel */
    uint64_t max_channels;    /* channels alive at once */
} janus_channel_limits;

typedef struct janus_executor_limits {
    uint64_t allowed_backends; /* a set */
} janus_executor_limits;

/* The member of the capability's kind counts. */
typedef union janus_cap_limits {
    janus_spawn_limits    spawn;
    janus_budget_limits   budget;
    janus_channel_limits  channel;
    janus_executor_limits executor;
    uint64_t              words[6];
} janus_cap_limits;

/* In delegation_depth: as often as one likes. */
#define JANUS_DELEGATION_UNLIMITED UINT32_MAX

/*
 * What a new capability shall be. Rights and limits have no silent default: a computed set of
 * rights that came out empty must not turn into all of them.
 */
typedef struct janus_cap_grant {
    size_t                  struct_bytes;     /* sizeof this struct; JANUS_CAP_GRANT sets it */
    janus_cap_kind          kind;             /* derived ones: 0, or the original's */
    uint32_t                rights;           /* JANUS_RIGHT_ bits, or JANUS_RIGHTS_ALL; never 0 */
    const janus_cap_limits *limits;           /* derived ones: NULL: the original's */
    uint32_t                delegation_depth; /* 0: it cannot be delegated. n: it can, and what is
                                                 delegated from it can be n - 1 times more */
    const char             *name; /* for the audit log; copied, cut after 39 bytes; NULL: none */
} janus_cap_grant;

typedef struct janus_cap_table_options {
    size_t        struct_bytes; /* sizeof this struct; JANUS_CAP_TABLE_OPTIONS sets it */
    uint32_t      caps_max;     /* at once. 0: 1048576; at most 16777216 */
    janus_profile profile;      /* 0: SERVICE. Bounds what can be minted, see janus_cap_mint */
    janus_audit  *audit;        /* NULL: nothing is recorded; borrowed, must outlive the table */
} janus_cap_table_options;

#define JANUS_CAP_GRANT(...) JANUS_OPTIONS_(janus_cap_grant, __VA_ARGS__)
#define JANUS_CAP_TABLE_OPTIONS(...) JANUS_OPTIONS_(janus_cap_table_options, __VA_ARGS__)

/* What a capability is. */
typedef struct janus_cap_info {
    size_t           struct_bytes; /* in: sizeof this struct */
    janus_cap_kind   kind;
    uint32_t         rights;
    uint32_t         delegation_depth;
    uint32_t         depth; /* derivations since it was minted */
    janus_cap_limits limits;
} janus_cap_info;

/* A table's books. */
typedef struct janus_cap_stats {
    size_t   struct_bytes; /* in: sizeof this struct */
    uint64_t live;         /* capabilities that are neither revoked nor released */
    uint64_t slots;        /* places ever used, 128 bytes each */
    uint64_t retired;      /* of these, never to be used again: their generations ran out */
    uint64_t minted, attenuated, delegated, revoked, released;
    /* Refusals, by what was wrong. */
    uint64_t refused_none, refused_forged, refused_stale, refused_foreign, refused_revoked;
    uint64_t refused_kind, refused_right, refused_limit, refused_widens, refused_delegation;
    uint64_t refused_authority, refused_audit;
} janus_cap_stats;

/* What a task of a profile holds without asking. A kind that is missing in `kinds` is not held,
 * and its limits are zero. */
typedef struct janus_cap_defaults {
    uint32_t              kinds; /* bits 1 << kind */
    bool                  supervisor_recharge;
    janus_spawn_limits    spawn;
    janus_budget_limits   budget;
    janus_channel_limits  channel;
    janus_executor_limits executor;
    janus_backend         backend; /* the one in use, where there is a choice */
} janus_cap_defaults;

JANUS_BEGIN_DECLS

/*
 * Makes an empty table, and the authority to fill it.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    *out_table and *out_authority are the library's until janus_cap_table_destroy. Who is
 *          given the authority can make any capability: keep it where it belongs.
 * Cost:    256 bytes of address space for each of caps_max, committed as they are used.
 * Errors:  INVALID      a field is out of range, an argument is NULL
 *          NO_MEMORY    memory was refused
 *          UNAVAILABLE  the system gives no random numbers
 *          NO_EXECUTOR_CAP  a restricted task without executor.configure, see scheduler.h
 */
JANUS_NODISCARD JANUS_API janus_status
janus_cap_table_create(const janus_cap_table_options *options, janus_cap_table **out_table,
                       janus_authority **out_authority);

/*
 * Ends a table with everything in it.
 *
 * Context: any thread; nobody uses the table any more.
 * Yields:  only if the turn is over.
 * Owns:    takes the table and its authority.
 * Cost:    some system calls.
 * Errors:  NO_AUTHORITY  `authority` is not the table's
 *          INVALID       `table` is NULL
 */
JANUS_API janus_status janus_cap_table_destroy(janus_cap_table *table, janus_authority *authority);

/*
 * Makes a capability from nothing but the root authority, for `holder`.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    *out is a name; the capability lives until it is released or revoked.
 * Cost:    a lock, some 60 ns.
 * Errors:  NO_AUTHORITY  `authority` is not the table's
 *          INVALID       no such kind; rights that are not the kind's, or none; a backend that does
 *                        not exist; no limits; `holder` is 0; an argument is NULL
 *          PROFILE       the profile forbids it: in CORE everything but an executor; an executor
 *                        with backends that the profile does not have
 *          FULL          caps_max are there
 *          UNAVAILABLE   the system gives no random numbers
 *          AUDIT_FULL    the audit log fails closed and is full
 */
JANUS_NODISCARD JANUS_API janus_status janus_cap_mint(janus_cap_table       *table,
                                                      const janus_authority *authority,
                                                      uint64_t holder, const janus_cap_grant *grant,
                                                      janus_cap *out);

/*
 * Derives a capability for the same holder. Rights must be a subset, each limit less or equal, a
 * set of backends a subset, delegation_depth less or equal.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    as janus_cap_mint; `cap` stays what it is.
 * Cost:    a lock, some 60 ns.
 * Errors:  as janus_cap_check, and
 *          CAP_WIDENS    it would allow what `cap` does not
 *          INVALID       another kind, no rights, an argument is NULL
 *          FULL          three quarters of caps_max are there: the rest is the authority's
 *          UNAVAILABLE, AUDIT_FULL  as janus_cap_mint
 */
JANUS_NODISCARD JANUS_API janus_status janus_cap_attenuate(janus_cap_table *table, janus_cap cap,
                                                           uint64_t               holder,
                                                           const janus_cap_grant *grant,
                                                           janus_cap             *out);

/*
 * Derives a capability for another holder. `grant` narrows as in janus_cap_attenuate; NULL: the
 * same rights and limits, not to be delegated further.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    as janus_cap_attenuate; the new one is `to_holder`'s, the old one's holder can revoke
 *          it.
 * Cost:    a lock, some 60 ns.
 * Errors:  as janus_cap_attenuate, and
 *          NOT_DELEGATABLE  `cap` must not be given to another holder
 *          CAP_WIDENS       delegation_depth is not below that of `cap`
 */
JANUS_NODISCARD JANUS_API janus_status janus_cap_delegate(janus_cap_table *table, janus_cap cap,
                                                          uint64_t holder, uint64_t to_holder,
                                                          const janus_cap_grant *grant,
                                                          janus_cap             *out);

/*
 * Whether `holder` may: `cap` is a living capability of its, of this kind, with all these rights
 * (0: any). What is refused is counted, and recorded.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    2 to 3 ns, without a lock or a write to shared memory; recording takes more.
 * Errors:  NO_SPAWN_CAP … NO_EXECUTOR_CAP  `cap` names none
 *          CAP_FORGED   no such handle was ever given out
 *          CAP_STALE    it was released, or its place is used again
 *          CAP_FOREIGN  it is another holder's
 *          CAP_REVOKED  it was revoked. From the moment janus_cap_revoke has returned no check
 *                       succeeds; what was checked before may still be under way
 *          CAP_KIND     it is of another kind
 *          CAP_RIGHT    it lacks one of the rights
 *          AUDIT_FULL   the audit log fails closed and is full
 *          INVALID      `table` is NULL
 */
JANUS_NODISCARD JANUS_API janus_status janus_cap_check(janus_cap_table *table, janus_cap cap,
                                                       janus_cap_kind kind, uint32_t rights,
                                                       uint64_t holder);

/*
 * What a capability is, for its holder.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    some nanoseconds.
 * Errors:  as janus_cap_check; INVALID: an argument is NULL, out->struct_bytes cannot be
 */
JANUS_NODISCARD JANUS_API janus_status janus_cap_read(janus_cap_table *table, janus_cap cap,
                                                      uint64_t holder, janus_cap_info *out);

/*
 * Revokes `victim` and everything derived from it. `with` is a capability of `holder`; `victim` is
 * it, or was derived from it, by whomever and for whomever. Never refused for want of room in the
 * audit log.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    nothing; handles of what was revoked need not be released.
 * Cost:    a lock; some 20 ns for each capability revoked, and as much for each step from `victim`
 *          up to `with`.
 * Errors:  as janus_cap_check, of either; CAP_FOREIGN: `victim` does not come from `with`
 */
JANUS_NODISCARD JANUS_API janus_status janus_cap_revoke(janus_cap_table *table, janus_cap victim,
                                                        janus_cap with, uint64_t holder);

/*
 * The same by the root authority, for any capability.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    as janus_cap_revoke.
 * Errors:  NO_AUTHORITY  `authority` is not the table's
 *          CAP_FORGED, CAP_STALE, CAP_REVOKED  there is nothing to revoke
 */
JANUS_NODISCARD JANUS_API janus_status janus_authority_revoke(janus_cap_table       *table,
                                                              const janus_authority *authority,
                                                              janus_cap              victim);

/*
 * Gives a capability back. What was derived from it stays, and stays revocable by what it came
 * from.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    takes the capability; its handle is stale from now on.
 * Cost:    a lock.
 * Errors:  as janus_cap_check; what was revoked is released already: CAP_REVOKED
 */
JANUS_API janus_status janus_cap_release(janus_cap_table *table, janus_cap cap, uint64_t holder);

/*
 * The books of a table at one moment.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a lock.
 * Errors:  INVALID  an argument is NULL, out->struct_bytes cannot be
 */
JANUS_API janus_status janus_cap_stats_read(janus_cap_table *table, janus_cap_stats *out);

/*
 * What the profile's tasks hold without asking.
 *
 * Context: anyone, any thread.
 * Yields:  never.
 * Owns:    the record is the library's, constant for ever.
 * Cost:    a table look-up.
 * Errors:  NULL for a number that is no profile.
 */
JANUS_API const janus_cap_defaults *janus_profile_cap_defaults(janus_profile profile);

/*
 * The budget that a capability's limits allow, field by field.
 *
 * Context: anyone, any thread.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    five loads.
 * Errors:  none; NULL gives a budget of zeros.
 */
JANUS_API janus_budget janus_budget_limits_to_budget(const janus_budget_limits *limits);

/*
 * The smaller of what is asked for and what is allowed, in each amount.
 *
 * Context: anyone, any thread.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    five comparisons.
 * Errors:  CLAMPED  an amount was cut; *out is what is granted
 *          INVALID  an argument is NULL
 */
JANUS_API janus_status janus_budget_limits_clamp(const janus_budget        *requested,
                                                 const janus_budget_limits *limits,
                                                 janus_budget              *out);

/*
 * The kind in a word: "spawn".
 *
 * Context: anyone, any thread, signal handlers too.
 * Yields:  never.
 * Owns:    the text is the library's, constant for ever.
 * Cost:    a table look-up.
 * Errors:  "?" for a number that is no kind.
 */
JANUS_API const char *janus_cap_kind_name(janus_cap_kind kind);

/*
 * All rights of a kind.
 *
 * Context: anyone, any thread.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a table look-up.
 * Errors:  0 for a number that is no kind.
 */
JANUS_API uint32_t janus_cap_kind_rights(janus_cap_kind kind);

/*
 * The permission token of one right: "spawn.task".
 *
 * Context: anyone, any thread, signal handlers too.
 * Yields:  never.
 * Owns:    the text is the library's, constant for ever.
 * Cost:    a table look-up.
 * Errors:  "?" for what is not exactly one right.
 */
JANUS_API const char *janus_right_name(uint32_t right);

/*
 * The backend in a word: "cooperative".
 *
 * Context: anyone, any thread, signal handlers too.
 * Yields:  never.
 * Owns:    the text is the library's, constant for ever.
 * Cost:    a table look-up.
 * Errors:  "?" for a number that is no backend.
 */
JANUS_API const char *janus_backend_name(janus_backend backend);

JANUS_END_DECLS
#endif
