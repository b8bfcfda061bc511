/* SPDX-License-Identifier: MIT */
/* The audit log, as other rooms write to it. The essay is in audit.c. */
#ifndef JRT_AUDIT_AUDIT_H
#define JRT_AUDIT_AUDIT_H

#include "base/assert.h"
#include "base/atomic.h"
#include "plat/seam.h"

#include <janusrt/audit.h>
#include <janusrt/budget.h>
#include <pthread.h>

/* What can happen, and how the log calls it. */
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

/* Which amount of a budget. */
enum jrt_audit_component {
    JRT_AUDIT_OPS,
    JRT_AUDIT_MEMORY,
    JRT_AUDIT_SPAWN_COUNT,
    JRT_AUDIT_CHANNEL_OPS,
    JRT_AUDIT_SYSCALLS,
};

enum { JRT_AUDIT_NAME_BYTES = 39, JRT_AUDIT_LINE_BYTES = 2048 };

/* Zero in a field that does not belong to the event; zeros are not written. */
struct jrt_audit_event {
    uint64_t seq;     /* the log's */
    uint64_t mono_ns; /* the log's; set from the clock */
    uint64_t cap;     /* generation << 32 | slot, never the nonce */
    uint64_t origin;  /* what it was derived from; for a revocation: with what */
    uint64_t holder, to_holder;
    uint64_t count;      /* uses; capabilities revoked */
    uint64_t first;      /* uses: time of the first; budgets: the amount before */
    uint64_t after;      /* budgets: the amount after */
    uint32_t rights;     /* that it has */
    uint32_t wanted;     /* that were asked for */
    int32_t  status;     /* a refusal's */
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

/* One producer: a worker; or, where `shared`, any thread, under the lock. */
struct jrt_audit_writer { /* NOLINT(clang-analyzer-optin.performance.Padding): lines apart */
    /* Written by the producer; the consumer reads head and lost. */
    _Alignas(64) _Atomic(uint64_t) head; /* events ever put in */
    _Atomic(uint64_t)       lost;        /* events there was no room for */
    _Atomic(uint64_t)       refused;     /* operations there was no room for */
    uint64_t                tail_seen;   /* some old value of tail */
    uint64_t                mask;
    struct jrt_audit_event *events; /* owned */
    struct jrt_audit_event *open;   /* between begin and commit; NULL otherwise */
    uint64_t                flush_seen;
    janus_audit            *audit;
    uint32_t                id;
    bool                    shared, party; /* constant; a party's is shared, [audit-party] */
    bool                    in_use;        /* list_lock */
    char                    name[32];      /* of the party; the lock */
    pthread_mutex_t         lock;          /* where shared: held from begin to commit */
    struct jrt_audit_event  spare;         /* stands for one that is going to be lost */
    struct jrt_audit_use    uses[JRT_AUDIT_USES];

    /* Written by the consumer. */
    _Alignas(64) _Atomic(uint64_t) tail; /* events ever taken out */
    _Atomic(uint64_t)        told;       /* numbers below it were told, at the end of a drain */
    uint64_t                 next_seq;   /* the number expected next */
    struct jrt_audit_writer *next;       /* on the log's list; constant */
};

struct janus_audit { /* NOLINT(clang-analyzer-optin.performance.Padding): lines apart */
    /* Raised by each drain; whoever counts uses then hands them in. */
    _Alignas(64) _Atomic(uint64_t) flush;
    janus_audit_options      options;  /* defaults filled in */
    _Atomic(uint32_t)        poked;    /* futex of the thread */
    _Atomic(bool)            stopping; /* the thread ends */
    struct jrt_audit_writer *shared;   /* on the list too */

    pthread_mutex_t          list_lock; /* guards the list's head and in_use */
    struct jrt_audit_writer *writers;
    uint32_t                 writer_count;
    uint32_t                 parties, parties_free; /* rings of parties, and those not in use */

    pthread_mutex_t      drain_lock; /* before list_lock; guards what follows, tails, next_seq */
    bool                 begun;      /* the first line was written */
    _Atomic(uint64_t)    written;
    char                *buffer; /* owned; lines on their way to the fd */
    size_t               buffered;
    struct jrt_os_thread thread;
    char                 line[JRT_AUDIT_LINE_BYTES]; /* the one being made; stacks are small */
};

/* A ring of one's own. One thread at a time uses it. OK, NO_MEMORY. */
janus_status jrt_audit_writer_open(janus_audit *audit, struct jrt_audit_writer **out);

/* Hands in the uses that are counted. The ring is kept for the next writer. */
void jrt_audit_writer_close(struct jrt_audit_writer *writer);

/* A ring for a party and its name; the log's shared one where there can be no more. In party.c. */
struct jrt_audit_writer *jrt_audit_party_open(janus_audit *audit, const char *name);

/* The party has ended. */
void jrt_audit_party_close(struct jrt_audit_writer *writer);

/* A writer of a kind, in use. OK, NO_MEMORY. Between the files of this room. */
janus_status jrt_audit_writer_create(janus_audit *audit, bool shared, bool party,
                                     struct jrt_audit_writer **out);

/*
 * Begins an event: *out is to be filled in, all zero but for the log's fields, and committed or
 * abandoned. In between the caller writes no other event and does not switch. AUDIT_FULL: only if
 * `must` and the log fails closed; then there is nothing to commit.
 */
janus_status jrt_audit_begin(struct jrt_audit_writer *writer, bool must,
                             struct jrt_audit_event **out);
void         jrt_audit_commit(struct jrt_audit_writer *writer);
void         jrt_audit_abandon(struct jrt_audit_writer *writer);

/* A name for an event; NULL: none. Cut to what fits. */
void jrt_audit_name(struct jrt_audit_event *event, const char *name);

/* A budget that ran out or was filled up. `after` - `before` is what it got. */
janus_status jrt_audit_budget(struct jrt_audit_writer *writer, enum jrt_audit_what what,
                              uint64_t holder, enum jrt_audit_component component, uint64_t before,
                              uint64_t after, const char *name);

/* A budget that is going to get `more`: an event for each component that does, all or none.
 * AUDIT_FULL: it must not. A ring that fails closed needs room for five. */
janus_status jrt_audit_recharge(struct jrt_audit_writer *writer, uint64_t holder,
                                const janus_budget *before, const janus_budget *more,
                                const char *name);

/* Hands in the uses that are counted; a worker calls it before it sleeps. AUDIT_FULL: some are
 * still there. */
janus_status jrt_audit_flush(struct jrt_audit_writer *writer);

/* The one place where uses like this are counted. */
static inline struct jrt_audit_use *jrt_audit_use_at(struct jrt_audit_writer    *writer,
                                                     const struct jrt_audit_use *use)
{
    return &writer->uses[((uint32_t)use->cap * 8 + use->rights) % JRT_AUDIT_USES];
}

/* Behind jrt_audit_used. */
janus_status jrt_audit_used_slow(struct jrt_audit_writer *writer, const struct jrt_audit_use *use);

/* Counts one use of a capability: 1 to 2 ns. AUDIT_FULL: the use must not happen. */
static inline janus_status jrt_audit_used(struct jrt_audit_writer    *writer,
                                          const struct jrt_audit_use *use)
{
    if (writer->shared) return jrt_audit_used_slow(writer, use); /* all else is under its lock */
    struct jrt_audit_use *mine = jrt_audit_use_at(writer, use);
    /* relaxed: a drain that is not noticed here is noticed at the next use. */
    bool due = jrt_load_relaxed(&writer->audit->flush) != writer->flush_seen;
    if (jrt_likely(!due && mine->cap == use->cap && mine->rights == use->rights &&
                   mine->count < writer->audit->options.use_count_max)) {
        mine->count++;
        return JANUS_OK;
    }
    return jrt_audit_used_slow(writer, use);
}

/* One line of JSON, newline and zero included; returns its length without the zero. `bytes` is at
 * least JRT_AUDIT_LINE_BYTES. In json.c. */
size_t jrt_audit_format(char *out, size_t bytes, uint32_t writer,
                        const struct jrt_audit_event *event);
size_t jrt_audit_format_gap(char *out, size_t bytes, const struct jrt_audit_writer *writer,
                            uint64_t lost);
size_t jrt_audit_format_begin(char *out, size_t bytes, uint64_t now_ns, bool fail_closed);

#endif
