/* SPDX-License-Identifier: MIT */
/* The audit log, for the rooms that write to it. The essay is in audit.c. */
#ifndef JRT_AUDIT_AUDIT_H
#define JRT_AUDIT_AUDIT_H

#include "base/assert.h"
#include "base/atomic.h"
#include "plat/seam.h"

#include <janusrt/audit.h>
#include <janusrt/budget.h>
#include <pthread.h>

/* The kinds of events, and their names in the log. */
#define JRT_AUDIT_MAP(X)                                                                           \
    X(CREATION, "creation")                                                                        \
    X(USE, "use")                                                                                  \
    X(DENIAL, "denial")                                                                            \
    X(ATTENUATION, "attenuation")                                                                  \
    X(DELEGATION, "delegation")                                                                    \
    X(REVOCATION, "revocation")                                                                    \
    X(RELEASE, "release")                                                                          \
    X(EXHAUSTION, "exhaustion")                                                                    \
    X(RECHARGE, "recharge")

enum jrt_audit_what {
#define X(name, text) JRT_AUDIT_##name,
    JRT_AUDIT_MAP(X)
#undef X
};

/* A component of a budget. */
enum jrt_audit_component {
    JRT_AUDIT_OPS,
    JRT_AUDIT_MEMORY,
    JRT_AUDIT_SPAWN_COUNT,
    JRT_AUDIT_CHANNEL_OPS,
    JRT_AUDIT_SYSCALLS,
};

enum { JRT_AUDIT_NAME_BYTES = 39, JRT_AUDIT_LINE_BYTES = 2048 };

/* Fields that do not apply to an event are zero, and zeros are not written. */
struct jrt_audit_event {
    uint64_t seq;     /* set by the log */
    uint64_t mono_ns; /* set by the log, from the clock */
    uint64_t cap;     /* generation << 32 | slot, never the nonce */
    uint64_t origin;  /* what it was derived from; a revocation has the revoker's */
    uint64_t holder, to_holder;
    uint64_t count;      /* uses; capabilities revoked */
    uint64_t first;      /* time of the first use; budgets have the amount before */
    uint64_t after;      /* of a budget, the amount after; of a denial, the port + 1 */
    uint32_t rights;     /* of the capability */
    uint32_t wanted;     /* requested */
    int32_t  status;     /* of a refusal */
    uint8_t  what;       /* enum jrt_audit_what */
    uint8_t  kind;       /* janus_cap_kind */
    uint8_t  component;  /* enum jrt_audit_component */
    uint8_t  name_bytes; /* length of the name */
    char     name[JRT_AUDIT_NAME_BYTES + 1]; /* any bytes */
};
_Static_assert(sizeof(struct jrt_audit_event) == 128, "two cache lines");

/* Uses of one capability that are not written yet. */
struct jrt_audit_use {
    uint64_t cap; /* 0: none */
    uint64_t count;
    uint64_t first_ns;
    uint64_t holder;
    uint32_t rights;
    uint32_t kind;
};

enum { JRT_AUDIT_USES = 64 };

/* One producer: a worker, or if `shared` any thread, under the lock. */
struct jrt_audit_writer { /* NOLINT(clang-analyzer-optin.performance.Padding): lines apart */
    /* The producer writes these. The consumer reads head and lost. */
    _Alignas(64) _Atomic(uint64_t) head; /* events ever put in */
    _Atomic(uint64_t)       lost;        /* events without room */
    _Atomic(uint64_t)       refused;     /* operations refused for lack of room */
    uint64_t                tail_seen;   /* some old value of tail */
    uint64_t                mask;
    struct jrt_audit_event *events; /* owned */
    struct jrt_audit_event *open;   /* between begin and commit; NULL otherwise */
    uint64_t                flush_seen;
    janus_audit            *audit;
    uint32_t                id;
    bool                    shared, party; /* constant; a party's ring is shared, [audit-party] */
    bool                    in_use;        /* guarded by list_lock */
    char                    name[32];      /* of the party; guarded by the lock */
    pthread_mutex_t         lock;          /* if shared: held from begin to commit */
    struct jrt_audit_event  spare; /* used instead of a place for an event that will be lost */
    struct jrt_audit_use    uses[JRT_AUDIT_USES];

    /* The consumer writes these. */
    _Alignas(64) _Atomic(uint64_t) tail; /* events ever taken out */
    _Atomic(uint64_t)        told;       /* a drain has reported all numbers below */
    uint64_t                 next_seq;   /* the next expected number */
    struct jrt_audit_writer *next;       /* in the log's list; constant */
};

struct janus_audit { /* NOLINT(clang-analyzer-optin.performance.Padding): lines apart */
    /* Each drain raises it. Producers then write the uses that they have counted. */
    _Alignas(64) _Atomic(uint64_t) flush;
    janus_audit_options      options;  /* defaults filled in */
    _Atomic(uint32_t)        poked;    /* the thread sleeps on it */
    _Atomic(bool)            stopping; /* asks the thread to end */
    struct jrt_audit_writer *shared;   /* in the list too */

    pthread_mutex_t          list_lock; /* guards the list's head and in_use */
    struct jrt_audit_writer *writers;
    uint32_t                 writer_count;
    uint32_t                 parties, parties_free; /* rings of parties, and how many are free */

    pthread_mutex_t      drain_lock; /* before list_lock; guards what follows, tails, next_seq */
    bool                 begun;      /* the first line was written */
    _Atomic(uint64_t)    written;
    char                *buffer; /* owned; lines on their way to the fd */
    size_t               buffered;
    struct jrt_os_thread thread;
    char                 line[JRT_AUDIT_LINE_BYTES]; /* the line being made; stacks are small */
};

/* Opens a ring. One thread at a time uses it. OK, NO_MEMORY. */
janus_status jrt_audit_writer_open(janus_audit *audit, struct jrt_audit_writer **out);

/* Writes the counted uses. The ring is kept for the next writer. */
void jrt_audit_writer_close(struct jrt_audit_writer *writer);

/* Opens a ring for a party with this name. If there can be no more rings, returns the log's shared
 * one. In party.c. */
struct jrt_audit_writer *jrt_audit_party_open(janus_audit *audit, const char *name);

/* Called when the party has ended. */
void jrt_audit_party_close(struct jrt_audit_writer *writer);

/* Makes a writer of a kind, in use. OK, NO_MEMORY. For the files of this room. */
janus_status jrt_audit_writer_create(janus_audit *audit, bool shared, bool party,
                                     struct jrt_audit_writer **out);

/*
 * Begins an event. *out is zero except for the log's fields. The caller fills it in, then commits
 * or abandons it. In between it writes no other event and does not switch. AUDIT_FULL comes only if
 * `must` and the log fails closed. Then there is nothing to commit.
 */
janus_status jrt_audit_begin(struct jrt_audit_writer *writer, bool must,
                             struct jrt_audit_event **out);
void         jrt_audit_commit(struct jrt_audit_writer *writer);
void         jrt_audit_abandon(struct jrt_audit_writer *writer);

/* Sets an event's name, cut to what fits. NULL: no name. */
void jrt_audit_name(struct jrt_audit_event *event, const char *name);

/* Records that a budget ran out, or was recharged by `after` - `before`. */
janus_status jrt_audit_budget(struct jrt_audit_writer *writer, enum jrt_audit_what what,
                              uint64_t holder, enum jrt_audit_component component, uint64_t before,
                              uint64_t after, const char *name);

/* Records that a budget will get `more`: an event for each component that grows, all or none.
 * AUDIT_FULL: the recharge must not happen. A ring that fails closed needs room for five. */
janus_status jrt_audit_recharge(struct jrt_audit_writer *writer, uint64_t holder,
                                const janus_budget *before, const janus_budget *more,
                                const char *name);

/* Writes the counted uses. A worker calls it before it sleeps. AUDIT_FULL: some are still
 * counted. */
janus_status jrt_audit_flush(struct jrt_audit_writer *writer);

/* The place where such uses are counted. */
static inline struct jrt_audit_use *jrt_audit_use_at(struct jrt_audit_writer    *writer,
                                                     const struct jrt_audit_use *use)
{
    return &writer->uses[((uint32_t)use->cap * 8 + use->rights) % JRT_AUDIT_USES];
}

/* The slow path of jrt_audit_used. */
janus_status jrt_audit_used_slow(struct jrt_audit_writer *writer, const struct jrt_audit_use *use);

/* Counts one use of a capability: 1 to 2 ns. AUDIT_FULL: the use must not happen. */
static inline janus_status jrt_audit_used(struct jrt_audit_writer    *writer,
                                          const struct jrt_audit_use *use)
{
    if (writer->shared) return jrt_audit_used_slow(writer, use); /* its table is under the lock */
    struct jrt_audit_use *mine = jrt_audit_use_at(writer, use);
    /* relaxed: the next use notices a drain that this one misses. */
    bool due = jrt_load_relaxed(&writer->audit->flush) != writer->flush_seen;
    if (jrt_likely(!due && mine->cap == use->cap && mine->rights == use->rights &&
                   mine->count < writer->audit->options.max_use_count)) {
        mine->count++;
        return JANUS_OK;
    }
    return jrt_audit_used_slow(writer, use);
}

/* Writes one line of JSON with a newline and a zero. Returns its length without the zero. `bytes`
 * is at least JRT_AUDIT_LINE_BYTES. In json.c. */
size_t jrt_audit_format(char *out, size_t bytes, uint32_t writer,
                        const struct jrt_audit_event *event);
size_t jrt_audit_format_gap(char *out, size_t bytes, const struct jrt_audit_writer *writer,
                            uint64_t lost);
size_t jrt_audit_format_begin(char *out, size_t bytes, uint64_t now_ns, bool fail_closed);

#endif
