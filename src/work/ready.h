/* SPDX-License-Identifier: MIT */
/*
 * Readiness: what is known of a descriptor's two directions, and their waiters. The essay is
 * in ready.c.
 */
#ifndef JRT_WORK_READY_H
#define JRT_WORK_READY_H

#include "plat/net.h"
#include "task/task.h"

enum jrt_ready_way { JRT_READY_READ, JRT_READY_WRITE, JRT_READY_WAYS };

/* What a word holds: see [ready-word]. */
enum {
    JRT_READY_NOTHING = 0,
    JRT_READY_EDGE = 1,   /* it is worth trying */
    JRT_READY_THREAD = 2, /* a bit: the rest is a struct jrt_ready_thread * */
};

/* A plain thread that waits, in its frame. */
struct jrt_ready_thread {
    struct jrt_net_bell bell;
};

struct jrt_ready {
    _Atomic(uint64_t) words[JRT_READY_WAYS];  /* [ready-word] */
    _Atomic(uint32_t) let_go[JRT_READY_WAYS]; /* [ready-last] */
    _Atomic(uint32_t) seen;                   /* jrt_net_what bits that stay, [io-drained] */
    _Atomic(uint32_t) generation;             /* of its place, [ready-tag] */
};

/* What is in `seen`: after any of these, a short transfer is no proof of "nothing more". */
enum { JRT_READY_STICKY = JRT_NET_RDHUP | JRT_NET_HUP | JRT_NET_ERR | JRT_NET_PRI };

/* The places of all readiness: one mapping that stays, [ready-tag]. Set once, by the io room. */
struct jrt_ready_table {
    _Atomic(char *)   base;
    _Atomic(uint32_t) places; /* that may be in use */
    size_t            stride;
};
extern struct jrt_ready_table jrt_ready_table;

static inline uint64_t jrt_ready_cookie(uint32_t place, uint32_t generation)
{
    return (uint64_t)generation << 32 | place;
}

/* Tells an edge of one direction: wakes the waiter, or leaves a note. */
void jrt_ready_tell(struct jrt_ready *ready, enum jrt_ready_way way);

/* Makes a waiter look again, at its deadline for example: its wait ends with WOULD_WAIT. Nobody
 * waits: does nothing, [ready-look]. */
void jrt_ready_kick(struct jrt_ready *ready, enum jrt_ready_way way);

/* Tells the events of a look. */
void jrt_ready_tell_all(const struct jrt_net_event *events, int count);

/* Wakes all waiters: a set is gone, and they register elsewhere. */
void jrt_ready_tell_everybody(void);

/* The waiter's steps. `self`: a task's address, or a thread's with JRT_READY_THREAD. */

/* Takes a note, so that the caller may try. False: no edge came. */
static inline bool jrt_ready_take(struct jrt_ready *ready, enum jrt_ready_way way)
{
    uint64_t word = JRT_READY_EDGE;
    /* relaxed: a first look. */
    if (jrt_load_relaxed(&ready->words[way]) != JRT_READY_EDGE) return false;
    /* seq_cst: [ready-try], what the edge's teller saw; then the caller looks at the close. */
    return jrt_cas_seq_cst(&ready->words[way], &word, (uint64_t)JRT_READY_NOTHING);
}

/* Registers the waiter. False: an edge was noted, or somebody waits (a bug above). */
static inline bool jrt_ready_join(struct jrt_ready *ready, enum jrt_ready_way way, uint64_t self)
{
    uint64_t word = JRT_READY_NOTHING;
    /* seq_cst: PARKING before the teller's look, and the deadline after it: see [ready-look]. On
     * failure the edge. */
    return jrt_cas_seq_cst(&ready->words[way], &word, self);
}

/* Takes a waiter back that has joined and will not wait. False: a teller was first, and wakes the
 * waiter: it must wait, [ready-last]. Not for a thread. */
static inline bool jrt_ready_retract(struct jrt_ready *ready, enum jrt_ready_way way, uint64_t self)
{
    uint64_t word = self;
    /* acq_rel: nobody knows the waiter any more; on failure, the teller. */
    return jrt_cas_acq_rel(&ready->words[way], &word, (uint64_t)JRT_READY_NOTHING);
}

/* Takes the waiter back whose wait ended otherwise. If a teller was first, waits for its last touch
 * and leaves the note that the teller meant, [ready-last]. A task calls this only when its wait has
 * ended with another status than OK. */
void jrt_ready_leave(struct jrt_ready *ready, enum jrt_ready_way way, uint64_t self);

#endif
