/* SPDX-License-Identifier: MIT */
/* Capability tables, for other rooms. The essays are in entry.h and table.c. */
#ifndef JRT_CAP_CAP_H
#define JRT_CAP_CAP_H

#include "audit/audit.h"
#include "base/assert.h"
#include "cap/entry.h"

#include <pthread.h>

/* The reasons of refusals, each with a counter. */
#define JRT_CAP_REFUSAL_MAP(X)                                                                     \
    X(NONE, none)                                                                                  \
    X(FORGED, forged)                                                                              \
    X(STALE, stale)                                                                                \
    X(FOREIGN, foreign)                                                                            \
    X(REVOKED, revoked)                                                                            \
    X(KIND, kind)                                                                                  \
    X(RIGHT, right)                                                                                \
    X(LIMIT, limit)                                                                                \
    X(WIDENS, widens)                                                                              \
    X(DELEGATION, delegation)                                                                      \
    X(AUTHORITY, authority)                                                                        \
    X(AUDIT, audit)

enum jrt_cap_refusal {
#define X(name, field) JRT_CAP_REFUSED_##name,
    JRT_CAP_REFUSAL_MAP(X)
#undef X
        JRT_CAP_REFUSALS
};

enum { JRT_CAP_NONCES = 32 };

struct janus_authority {
    janus_cap_table *table;
};

struct janus_cap_table {
    /* Constant. */
    struct jrt_cap_entry *entries; /* slots_max places; pages are committed when touched */
    uint32_t              slots_max;
    uint32_t              slots_unlogged; /* slots_max; 0 if an audit log sees every check */
    janus_profile         profile;
    janus_audit          *audit;     /* borrowed, or NULL */
    janus_authority      *authority; /* owned */
    char                 *map;       /* owned; the places between two guards */
    size_t                map_bytes;

    char apart[64]; /* checks read the fields above and must not wait for writers of those below */

    _Atomic(uint64_t) refused[JRT_CAP_REFUSALS];

    pthread_mutex_t      lock;             /* guards what follows */
    uint32_t             slots;            /* places ever used; these are touched */
    uint32_t             first_generation; /* of a new place; 1, except in tests */
    uint32_t             free_first, free_last, free_count; /* queue, oldest first; number + 1 */
    uint32_t             nonces_left;
    uint64_t             nonces[JRT_CAP_NONCES]; /* wiped when used */
    janus_cap_table_info stats;                  /* live, retired, minted … released */
};

/* How many capabilities a party has derived; quota.c. All zero except `outer` and `max`. */
struct jrt_cap_quota {
    struct jrt_cap_quota *outer; /* the quota around it; NULL: the table */
    uint32_t              max;
    _Atomic(uint32_t)     live;  /* capabilities derived here and in inner quotas */
    uint32_t              first; /* the last place derived here; 0: none */
    bool                  used;  /* set by the first derivation here or inside; [quota-gone] */
};

/* The task or thread that asks, and the writer of its audit events. */
struct jrt_cap_actor {
    uint64_t                 holder;
    struct jrt_audit_writer *writer; /* NULL: the log's shared one, if there is a log */
    struct jrt_cap_quota    *quota;  /* counts what it derives; NULL: not counted */
};

/* As janus_cap_table_create and janus_cap_table_destroy, for the scheduler. These do not end a
 * turn. */
janus_status jrt_cap_table_create(const janus_cap_table_options *options,
                                  janus_cap_table **out_table, janus_authority **out_authority);
void         jrt_cap_table_destroy(janus_cap_table *table);

/* The slow path of jrt_cap_check: finds out what is wrong and counts it. NO_KIND: any kind is
 * right. */
__attribute__((cold)) janus_status jrt_cap_refuse(janus_cap_table *table, janus_cap cap,
                                                  struct jrt_cap_view view, janus_cap_kind kind,
                                                  uint32_t rights, uint64_t holder);

/* Reads a place. An impossible slot reads as a place that was never used. */
static inline struct jrt_cap_view jrt_cap_look(const janus_cap_table *table, janus_cap cap,
                                               janus_cap_limits *out_limits)
{
    if (jrt_unlikely(cap.slot >= table->slots_max)) return (struct jrt_cap_view){0};
    return jrt_cap_entry_read(&table->entries[cap.slot], out_limits);
}

/* janus_cap_check_in without the audit log. It locks nothing and, unless it refuses, writes
 * nothing. */
static inline janus_status jrt_cap_check(janus_cap_table *table, janus_cap cap, janus_cap_kind kind,
                                         uint32_t rights, uint64_t holder)
{
    struct jrt_cap_view view = jrt_cap_look(table, cap, NULL);
    if (jrt_likely(jrt_cap_view_allows(&view, cap, kind, rights, holder))) return JANUS_OK;
    return jrt_cap_refuse(table, cap, view, kind, rights, holder);
}

/* Checks, and reads the limits of that moment. On an error *out is undefined: copying it only on
 * success would cost more than the check. */
janus_status jrt_cap_check_limits(janus_cap_table *table, janus_cap cap, janus_cap_kind kind,
                                  uint32_t rights, uint64_t holder, janus_cap_limits *out);

/* Checks with the audit log: counts a use, or records a refusal. `out` may be NULL. */
janus_status jrt_cap_use_right(janus_cap_table *table, janus_cap cap, janus_cap_kind kind,
                               uint32_t rights, const struct jrt_cap_actor *actor,
                               janus_cap_limits *out);

/* Counts the use after a check that succeeded. OK, AUDIT_FULL. */
janus_status jrt_cap_used(janus_cap_table *table, janus_cap cap, janus_cap_kind kind,
                          uint32_t rights, const struct jrt_cap_actor *actor);

/* The public calls, for an actor. */
janus_status jrt_cap_mint(janus_cap_table *table, const janus_authority *authority,
                          const struct jrt_cap_actor *actor, const janus_cap_grant *grant,
                          janus_cap *out);
janus_status jrt_cap_attenuate(janus_cap_table *table, janus_cap cap,
                               const struct jrt_cap_actor *actor, const janus_cap_grant *grant,
                               janus_cap *out);
janus_status jrt_cap_delegate(janus_cap_table *table, janus_cap cap,
                              const struct jrt_cap_actor *actor, uint64_t to_holder,
                              const janus_cap_grant *grant, janus_cap *out);
janus_status jrt_cap_revoke(janus_cap_table *table, janus_cap victim, janus_cap with,
                            const struct jrt_cap_actor *actor);
janus_status jrt_cap_release(janus_cap_table *table, janus_cap cap,
                             const struct jrt_cap_actor *actor);

/* The innermost full quota, from this one outwards. NULL: all have room. */
const struct jrt_cap_quota *jrt_cap_quota_full(const struct jrt_cap_quota *quota);

/* Revokes everything that a party derived, after the party has ended, [quota-end]. */
void jrt_cap_quota_end(janus_cap_table *table, struct jrt_cap_quota *quota,
                       const struct jrt_cap_actor *actor);

/* For the files of this room. */

static inline uint64_t jrt_cap_id(janus_cap cap)
{
    return (uint64_t)cap.generation << 32 | cap.slot;
}

/* The entry of a slot by number + 1. */
static inline struct jrt_cap_entry *jrt_cap_at(janus_cap_table *table, uint32_t place)
{
    return &table->entries[place - 1];
}

/* Under the lock: finds a place, its generation and a nonce. Nothing is taken until
 * jrt_cap_slot_take, which cannot fail. OK, FULL, UNAVAILABLE. */
struct jrt_cap_slot {
    uint32_t place, generation;
    uint64_t nonce;
};
janus_status jrt_cap_slot_find(janus_cap_table *table, struct jrt_cap_slot *out);
void         jrt_cap_slot_take(janus_cap_table *table, const struct jrt_cap_slot *slot);

/* Under the lock: frees a place whose capability has ended and that is in no tree. */
void jrt_cap_slot_give(janus_cap_table *table, uint32_t place);

/* Under the lock: starts or stops counting a capability, [quota-count]. */
void jrt_cap_quota_enter(janus_cap_table *table, struct jrt_cap_quota *quota, uint32_t place);
void jrt_cap_quota_leave(janus_cap_table *table, uint32_t place);

/* Under the lock: revokes a place and everything derived from it. Returns how many. */
uint64_t jrt_cap_revoke_branch(janus_cap_table *table, uint32_t root);

/* Counts a refusal. */
void jrt_cap_count(janus_cap_table *table, enum jrt_cap_refusal refusal);

/* Records a denial in the audit log. Returns `status`. */
janus_status jrt_cap_deny(janus_cap_table *table, const struct jrt_cap_actor *actor, janus_cap cap,
                          janus_cap_kind kind, uint32_t wanted, janus_status status);

/* What was denied, for the log: the address without its port, the path, or the name. */
struct jrt_cap_target {
    char     name[JRT_AUDIT_NAME_BYTES + 1];
    uint16_t port;
    bool     has_port;
};

/* As jrt_cap_deny, and names the target; NULL: none. */
janus_status jrt_cap_deny_at(janus_cap_table *table, const struct jrt_cap_actor *actor,
                             janus_cap cap, janus_cap_kind kind, uint32_t wanted,
                             janus_status status, const struct jrt_cap_target *target);

/* NO_SPAWN_CAP … NO_NAME_CAP: no capability of the kind is held. */
janus_status jrt_cap_none(janus_cap_kind kind);

/* The writer for the actor's events; NULL: there is no log. */
static inline struct jrt_audit_writer *jrt_cap_writer(const janus_cap_table      *table,
                                                      const struct jrt_cap_actor *actor)
{
    if (table->audit == NULL) return NULL;
    return actor->writer != NULL ? actor->writer : table->audit->shared;
}

/* How many words of the limits this kind uses. */
unsigned jrt_cap_kind_words(janus_cap_kind kind);

/* Whether limits of this kind mean something. */
bool jrt_cap_limits_sane(janus_cap_kind kind, const janus_cap_limits *limits);

/* Whether `narrow` allows nothing that `wide` forbids. */
bool jrt_cap_limits_within(janus_cap_kind kind, const janus_cap_limits *narrow,
                           const janus_cap_limits *wide);

/* Whether the name begins with the prefix. */
bool jrt_name_limits_allow(const janus_name_limits *limits, const char *name);

#endif
