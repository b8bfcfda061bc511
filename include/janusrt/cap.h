/* SPDX-License-Identifier: MIT */
/*
 * Capabilities: rights that a task holds. To start a task, ask for budget, open a channel or choose
 * an executor, the holder presents a handle. So it does for a socket, a file, a child process or
 * the name of an actor. A table in the library knows the holder of each handle and what it allows.
 *
 *     janus_cap_table *table;
 *     janus_authority *root;
 *     janus_cap        spawn, half;
 *     janus_cap_limits limits = {.spawn = {.max_tasks = 50, .task_budget = {.ops = 10000}}};
 *     if (janus_cap_table_create(NULL, &table, &root) != JANUS_OK) ...
 *     janus_cap_mint_in(table, root, 1, JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_SPAWN,
 *                    .rights = JANUS_RIGHTS_ALL, .limits = &limits), &spawn);
 *     limits.spawn.max_tasks = 25;
 *     janus_cap_attenuate_in(table, spawn, 1, JANUS_CAP_GRANT(.rights = JANUS_RIGHT_SPAWN_TASK,
 *                         .limits = &limits), &half);
 *     janus_cap_check_in(table, half, JANUS_CAP_KIND_SPAWN, JANUS_RIGHT_SPAWN_NURSERY, 1) ==
 *     CAP_RIGHT
 *
 * A capability comes from the root authority (mint) or from another capability (derive). A derived
 * capability is never wider, in rights, in limits or in delegation. Revoking a capability also
 * revokes everything derived from it, at once.
 *
 * A program may copy a handle, but a copy moves no right: the table refuses every holder but its
 * own. A right moves only by janus_cap_delegate_in. The grant must have allowed that, and the audit
 * log records it.
 *
 * The caller names the holder, as any number but 0. So code with the table's address speaks for
 * every holder, and code with the authority can make rights. Give neither to code that should have
 * neither. Tasks call grant.h, which fills in the holder.
 *
 * The table refuses a handle that is stale, altered, guessed or copied from another holder. This
 * protects correct and merely buggy programs. It does not protect against native code that corrupts
 * memory on purpose; SECURITY.md says what does.
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

/*
 * Names a capability; all zero names none. The nonce makes it hard to guess. The library never
 * prints or logs it.
 */
typedef struct janus_cap {
    uint32_t slot, generation;
    uint64_t nonce;
} janus_cap;

/* The place where capabilities live. */
typedef struct janus_cap_table janus_cap_table;

/* The right to make rights. The creator of a table gets it. */
typedef struct janus_authority janus_authority;

#define JANUS_CAP_KIND_MAP(X)                                                                      \
    X(SPAWN, 1, "spawn")                                                                           \
    X(BUDGET, 2, "budget")                                                                         \
    X(CHANNEL, 3, "channel")                                                                       \
    X(EXECUTOR, 4, "executor")                                                                     \
    X(NET, 5, "net")                                                                               \
    X(FILE, 6, "file")                                                                             \
    X(PROCESS, 7, "process")                                                                       \
    X(NAME, 8, "name")

typedef enum janus_cap_kind {
    JANUS_CAP_KIND_NONE = 0, /* in a grant that derives: the original's */
#define JANUS_CAP_KIND_ENUM(name, value, text) JANUS_CAP_KIND_##name = (value),
    JANUS_CAP_KIND_MAP(JANUS_CAP_KIND_ENUM)
#undef JANUS_CAP_KIND_ENUM
} janus_cap_kind;

/* Size of an array that kinds index. It has room for kinds to come. */
#define JANUS_CAP_KINDS 16

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
    X(EXECUTOR_CONFIGURE, 10, EXECUTOR, "executor.configure")                                      \
    X(NET_LISTEN, 11, NET, "net.listen")                                                           \
    X(NET_CONNECT, 12, NET, "net.connect")                                                         \
    X(NET_DATAGRAM, 13, NET, "net.datagram")                                                       \
    X(NET_RESOLVE, 14, NET, "net.resolve")                                                         \
    X(NET_ADOPT, 15, NET, "net.adopt")                                                             \
    X(FILE_READ, 16, FILE, "file.read")                                                            \
    X(FILE_WRITE, 17, FILE, "file.write")                                                          \
    X(FILE_CREATE, 18, FILE, "file.create")                                                        \
    X(FILE_LIST, 19, FILE, "file.list")                                                            \
    X(FILE_REMOVE, 20, FILE, "file.remove")                                                        \
    X(PROCESS_SPAWN, 21, PROCESS, "process.spawn")                                                 \
    X(PROCESS_SIGNAL, 22, PROCESS, "process.signal")                                               \
    X(FILE_BELOW, 23, FILE, "file.below")                                                          \
    X(NAME_REGISTER, 24, NAME, "name.register")                                                    \
    X(NAME_FIND, 25, NAME, "name.find")

enum janus_right {
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
    JANUS_BACKEND_EVENTED,      /* as COOPERATIVE, with the promise that there is a poller */
    JANUS_BACKEND_COUNT
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

/*
 * One range of addresses and one range of ports. A holder that needs several ranges gets several
 * capabilities. janus_net_limits_parse reads "127.0.0.0/8:8000-8999".
 *
 * An IPv4 address counts as the IPv6 address ::ffff:a.b.c.d, however a program spells it. So an
 * IPv4 prefix of n bits has 96 + n bits. An address that stands for all is allowed only where all
 * are: 0.0.0.0 needs all of IPv4 (::ffff:0:0/96 or less), and :: needs 0 bits. In the same way,
 * port 0, which lets the system choose, needs the ports 1 to 65535. Scopes of IPv6 do not count.
 *
 * Limits of zeros allow nothing. To shut children out of the network where a profile gives it, bind
 * a capability with one right and such limits to their nursery.
 */
typedef struct janus_net_limits {
    uint64_t max_handles;  /* handles alive at once */
    uint8_t  prefix[16];   /* the first bits of every address; the other bits are 0 */
    uint8_t  prefix_bits;  /* how many. 0: every address. At most 128 */
    uint8_t  unix_sockets; /* 1: Unix sockets, too: every path and every abstract name */
    uint16_t reserved;     /* 0 */
    uint16_t port_first, port_last;
} janus_net_limits;

/*
 * The rights but file.below concern the whole file system. A capability with file.below alone
 * reaches only what lies below directories that a task was given, and still limits it.
 */
typedef struct janus_file_limits {
    uint64_t max_handles; /* files and directories open at once; not sockets */
    uint64_t max_written; /* bytes, in all; they do not come back. UINT64_MAX: any number. To make a
                             file empty or shorter counts as one byte */
} janus_file_limits;

typedef struct janus_process_limits {
    uint64_t max_processes; /* alive at once */
} janus_process_limits;

/*
 * A holder may register and find the names that begin with `prefix`. A derived capability has a
 * prefix that begins with the original's. Upper and lower case differ, and no byte is special: with
 * "web", a holder also reaches "website". End a prefix with a separator: "web.".
 *
 * Unlike limits of zeros of other kinds, an empty prefix allows every name. To shut children out of
 * names where a profile gives them, bind a capability with name.find and a prefix that no name has.
 */
typedef struct janus_name_limits {
    char prefix[64]; /* at most 63 bytes and a zero; bytes behind the zero do not count. "": every
                        name */
} janus_name_limits;

/* The member of the capability's kind counts. */
typedef union janus_cap_limits {
    janus_spawn_limits    spawn;
    janus_budget_limits   budget;
    janus_channel_limits  channel;
    janus_executor_limits executor;
    janus_net_limits      net;
    janus_file_limits     file;
    janus_process_limits  process;
    janus_name_limits     name;
    uint64_t              words[8];
} janus_cap_limits;

/* In delegation_depth: without limit. */
#define JANUS_DELEGATION_UNLIMITED UINT32_MAX

/*
 * What a new capability allows. Rights and limits have no silent default: a computed set of rights
 * that came out empty must not become all of them.
 */
typedef struct janus_cap_grant {
    size_t                  struct_bytes;     /* sizeof this struct; JANUS_CAP_GRANT sets it */
    janus_cap_kind          kind;             /* derived ones: 0, or the original's */
    uint32_t                rights;           /* JANUS_RIGHT_ bits, or JANUS_RIGHTS_ALL; never 0 */
    const janus_cap_limits *limits;           /* derived ones: NULL: the original's */
    uint32_t                delegation_depth; /* 0: it cannot be delegated. n: it can, and what is
                                                 delegated from it can be n - 1 times more */
    const char             *name; /* for the audit log, copied, at most 39 bytes; NULL: none */
} janus_cap_grant;

typedef struct janus_cap_table_options {
    size_t        struct_bytes; /* sizeof this struct; JANUS_CAP_TABLE_OPTIONS sets it */
    uint32_t      max_caps;     /* at once. 0: 1048576; at most 16777216 */
    janus_profile profile;      /* 0: SERVICE. Bounds what can be minted, see janus_cap_mint_in */
    janus_audit  *audit;        /* NULL: nothing is recorded; borrowed, must outlive the table */
} janus_cap_table_options;

#define JANUS_CAP_GRANT(...) JANUS_OPTIONS_(janus_cap_grant, __VA_ARGS__)
#define JANUS_CAP_TABLE_OPTIONS(...) JANUS_OPTIONS_(janus_cap_table_options, __VA_ARGS__)

/* What a capability is. */
typedef struct janus_cap_info {
    size_t           struct_bytes; /* sizeof this struct; JANUS_CAP_INFO sets it */
    janus_cap_kind   kind;
    uint32_t         rights;
    uint32_t         delegation_depth;
    uint32_t         depth; /* derivations since it was minted */
    janus_cap_limits limits;
} janus_cap_info;
#define JANUS_CAP_INFO() JANUS_SIZED_(janus_cap_info)

/* The counters of a table. */
typedef struct janus_cap_table_info {
    size_t   struct_bytes; /* sizeof this struct; JANUS_CAP_TABLE_INFO sets it */
    uint64_t live;         /* capabilities that are neither revoked nor released */
    uint64_t slots;        /* places ever used, 192 bytes each */
    uint64_t retired;      /* of these, never to be used again: their generations ran out */
    uint64_t minted, attenuated, delegated, revoked, released;
    /* Refusals, by what was wrong. */
    uint64_t refused_none, refused_forged, refused_stale, refused_foreign, refused_revoked;
    uint64_t refused_kind, refused_right, refused_limit, refused_widens, refused_delegation;
    uint64_t refused_authority, refused_audit;
} janus_cap_table_info;
#define JANUS_CAP_TABLE_INFO() JANUS_SIZED_(janus_cap_table_info)

/*
 * The capabilities that a profile gives to every task. A kind that is not in `kinds` has zero
 * limits.
 */
typedef struct janus_cap_defaults {
    uint32_t              kinds; /* bits 1 << kind */
    bool                  supervisor_recharge;
    janus_spawn_limits    spawn;
    janus_budget_limits   budget;
    janus_channel_limits  channel;
    janus_executor_limits executor;
    janus_net_limits      net;
    janus_file_limits     file;
    janus_process_limits  process;
    janus_backend         backend; /* the backend in use */
    janus_name_limits     name;
} janus_cap_defaults;

JANUS_BEGIN_DECLS

/*
 * Creates an empty table, and the authority to fill it.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    *out_table and *out_authority are the library's until janus_cap_table_destroy. Code that
 *          has the authority can make any capability: keep it safe.
 * Cost:    384 bytes of address space for each of max_caps, committed as they are used.
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
 * Context: any thread. No other thread uses the table any more.
 * Yields:  only if the turn is over.
 * Owns:    takes the table and its authority.
 * Cost:    some system calls.
 * Errors:  NO_AUTHORITY  `authority` is not the table's
 *          INVALID       `table` is NULL
 */
JANUS_API janus_status janus_cap_table_destroy(janus_cap_table *table, janus_authority *authority);

/*
 * Mints a capability for `holder` with the root authority.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    *out is a name; the capability lives until it is released or revoked.
 * Cost:    a lock, some 60 ns.
 * Errors:  NO_AUTHORITY  `authority` is not the table's
 *          INVALID       a kind, right or backend does not exist, there are no rights or no limits,
 *                        `holder` is 0, or an argument is NULL. A prefix has more than 128 bits, or
 *                        bits behind its end; port_first is above port_last. A prefix of names has
 *                        64 bytes and no zero
 *          PROFILE       the profile forbids it. CORE allows an executor alone, and an executor may
 *                        have only the profile's backends
 *          FULL          the table holds max_caps
 *          UNAVAILABLE   the system gives no random numbers
 *          AUDIT_FULL    the audit log fails closed and is full
 */
JANUS_NODISCARD JANUS_API janus_status janus_cap_mint_in(janus_cap_table       *table,
                                                         const janus_authority *authority,
                                                         uint64_t               holder,
                                                         const janus_cap_grant *grant,
                                                         janus_cap             *out);

/*
 * Derives a capability for the same holder. Rights and backends must be a subset. Each limit and
 * delegation_depth must be less or equal. Addresses and ports must lie inside the original's. A
 * prefix of names must begin with the original's.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    as janus_cap_mint_in; `cap` stays what it is.
 * Cost:    a lock, some 60 ns.
 * Errors:  as janus_cap_check_in, and
 *          CAP_WIDENS    it would allow what `cap` does not
 *          INVALID       another kind, no rights, an argument is NULL; limits as in
 *                        janus_cap_mint_in
 *          FULL          the table is three quarters full; the rest is for the authority
 *          UNAVAILABLE, AUDIT_FULL  as janus_cap_mint_in
 */
JANUS_NODISCARD JANUS_API janus_status janus_cap_attenuate_in(janus_cap_table *table, janus_cap cap,
                                                              uint64_t               holder,
                                                              const janus_cap_grant *grant,
                                                              janus_cap             *out);

/*
 * Derives a capability for another holder. `grant` narrows as in janus_cap_attenuate_in. NULL keeps
 * rights and limits, and forbids further delegation.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    as janus_cap_attenuate_in. `to_holder` holds the new capability; `holder` can revoke it.
 * Cost:    a lock, some 60 ns.
 * Errors:  as janus_cap_attenuate_in, and
 *          NOT_DELEGATABLE  `cap` must not be given to another holder
 *          CAP_WIDENS       delegation_depth is not below that of `cap`
 */
JANUS_NODISCARD JANUS_API janus_status janus_cap_delegate_in(janus_cap_table *table, janus_cap cap,
                                                             uint64_t holder, uint64_t to_holder,
                                                             const janus_cap_grant *grant,
                                                             janus_cap             *out);

/*
 * Checks that `cap` is a live capability of `holder`, of this kind, with all these rights (0: any).
 * The table counts and records a refusal.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    2 to 3 ns, without a lock or a write to shared memory; recording takes more.
 * Errors:  NO_SPAWN_CAP … NO_NAME_CAP  `cap` names none
 *          CAP_FORGED   the library never gave out this handle
 *          CAP_STALE    it was released, or its place is used again
 *          CAP_FOREIGN  it is another holder's
 *          CAP_REVOKED  it was revoked. After janus_cap_revoke_in has returned, no check succeeds.
 *                       What was checked before may still be under way
 *          CAP_KIND     it is of another kind
 *          CAP_RIGHT    it lacks one of the rights
 *          AUDIT_FULL   the audit log fails closed and is full
 *          INVALID      `table` is NULL
 */
JANUS_NODISCARD JANUS_API janus_status janus_cap_check_in(janus_cap_table *table, janus_cap cap,
                                                          janus_cap_kind kind, uint32_t rights,
                                                          uint64_t holder);

/*
 * Reads kind, rights and limits of a capability, for its holder.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    some nanoseconds.
 * Errors:  as janus_cap_check_in. INVALID also if an argument is NULL or out->struct_bytes is no
 *          size of it
 */
JANUS_NODISCARD JANUS_API janus_status janus_cap_inspect_in(janus_cap_table *table, janus_cap cap,
                                                            uint64_t holder, janus_cap_info *out);

/*
 * Revokes `victim` and everything derived from it. `with` is a capability of `holder`. `victim` is
 * `with`, or was derived from it by any holder. A full audit log does not prevent it.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    nothing; handles of what was revoked need not be released.
 * Cost:    a lock; some 20 ns for each capability revoked, and as much for each step from `victim`
 *          up to `with`.
 * Errors:  as janus_cap_check_in, for both. CAP_FOREIGN also if `victim` does not come from `with`
 */
JANUS_NODISCARD JANUS_API janus_status janus_cap_revoke_in(janus_cap_table *table, janus_cap victim,
                                                           janus_cap with, uint64_t holder);

/*
 * Revokes any capability, and everything derived from it, with the root authority.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    as janus_cap_revoke_in.
 * Errors:  NO_AUTHORITY  `authority` is not the table's
 *          CAP_FORGED, CAP_STALE, CAP_REVOKED  there is nothing to revoke
 */
JANUS_NODISCARD JANUS_API janus_status janus_authority_revoke(janus_cap_table       *table,
                                                              const janus_authority *authority,
                                                              janus_cap              victim);

/*
 * Gives a capability back. Derived capabilities stay. The capability that this one came from can
 * still revoke them.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    takes the capability; its handle is stale from now on.
 * Cost:    a lock.
 * Errors:  as janus_cap_check_in. A revoked capability is already released: CAP_REVOKED
 */
JANUS_API janus_status janus_cap_release_in(janus_cap_table *table, janus_cap cap, uint64_t holder);

/*
 * Reads the counters of a table at one moment.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a lock.
 * Errors:  INVALID  an argument is NULL, or out->struct_bytes is no size of it
 */
JANUS_NODISCARD JANUS_API janus_status janus_cap_table_inspect(janus_cap_table      *table,
                                                               janus_cap_table_info *out);

/*
 * The capabilities that a profile gives to every task.
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
 * Computes the smaller of `requested` and `limits`, in each component.
 *
 * Context: anyone, any thread.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    five comparisons.
 * Errors:  CLAMPED  a component was cut; *out is the grant
 *          INVALID  an argument is NULL
 */
JANUS_NODISCARD JANUS_API janus_status janus_budget_limits_clamp(const janus_budget *requested,
                                                                 const janus_budget_limits *limits,
                                                                 janus_budget              *out);

/*
 * Reads the addresses and ports of a capability for the network: "127.0.0.0/8:8000-8999",
 * "10.1.2.3:443", "[2001:db8::]/32:1-65535", "[::]/0", "*:80", "unix". Without "/bits" it is one
 * address; "*" is every address. Without ports it is every port. "unix" is no address, but all Unix
 * sockets. "all" is every address, every port and all Unix sockets, and "none" is nothing. Reads no
 * names.
 *
 *     janus_cap_limits limits;
 *     janus_net_limits_parse("127.0.0.0/8:8000-8999", 100, &limits.net);
 *
 * Context: anyone, any thread.
 * Yields:  only if the turn is over.
 * Owns:    nothing. *out has room for `max_handles`.
 * Cost:    some 100 ns.
 * Errors:  INVALID  `text` is no such range, or has bits behind its prefix; *out is not changed
 */
JANUS_NODISCARD JANUS_API janus_status janus_net_limits_parse(const char       *text,
                                                              uint64_t          max_handles,
                                                              janus_net_limits *out);

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
 * Errors:  "?" unless `right` is exactly one right.
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
