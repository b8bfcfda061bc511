/* SPDX-License-Identifier: MIT */
/*
 * One place of a capability table, and how a check reads it while other threads write.
 *
 * [entry-state]  `state` is generation << 32 | phase. It is LIVE with generation g from the
 *   publication of the g-th capability of this place until it is revoked or released. It never is
 *   again: generations only grow.
 *
 * [entry-once]  the data of a capability (nonce, scope, holder, limits) is written once, while the
 *   state is not LIVE. It does not change while the state is LIVE.
 *
 * [entry-read]  a check reads the nonce, then the rest, and the state *last*. All loads before the
 *   state are acquires, and all stores of [entry-once] are releases. So a thread that reads data of
 *   a later capability also sees that the state of the earlier one has ended. A thread that reads
 *   the nonce of the g-th reads nothing older. If the state is LIVE with g, then everything before
 *   it was read from the g-th. A check that succeeds happens at the moment of that last load.
 *
 * [entry-gone]  a thread that learns, in any ordered way, that a revocation has returned, also sees
 *   its stores. So its checks read a state that is not LIVE.
 *
 * Rejected:
 * - Reading the state first: the place can be filled again in between, and an old handle would use
 *   new rights.
 * - Reading it twice, as in a sequence lock: once, at the end, is enough, because the nonce names
 *   the capability.
 * - A lock or a count of readers: a check would write.
 *
 * tests/cap/entry_model.c tries all orders of all steps of check, revocation and reuse.
 */
#ifndef JRT_CAP_ENTRY_H
#define JRT_CAP_ENTRY_H

#include "base/assert.h"
#include "base/atomic.h"

#include <janusrt/cap.h>

enum jrt_cap_phase {
    JRT_CAP_FREE,    /* never used, or released */
    JRT_CAP_LIVE,    /* the holder may use it */
    JRT_CAP_REVOKED, /* as FREE, but checks report REVOKED */
};

struct jrt_cap_quota; /* cap.h */

enum { JRT_CAP_WORDS = sizeof(janus_cap_limits) / sizeof(uint64_t) };

/* The limits of all kinds but NAME fit in this many words. The others are used by NAME alone. */
enum { JRT_CAP_WORDS_MOST = 6 };

struct jrt_cap_entry {
    /* Checks read these. */
    _Alignas(64) _Atomic(uint64_t) nonce;
    _Atomic(uint64_t) state;
    _Atomic(uint64_t) scope; /* kind << 32 | rights */
    _Atomic(uint64_t) holder;
    _Atomic(uint64_t) words[JRT_CAP_WORDS]; /* the limits */

    /* Guarded by the table's lock, in a cache line of their own: checks must not wait for writers.
     * Links hold number + 1; 0: none. */
    _Alignas(64) uint32_t parent;     /* what it was derived from */
    uint32_t              child;      /* the last one derived from it */
    uint32_t              next, prev; /* siblings; next also links the queue of free places */
    uint32_t              delegation_depth;
    uint32_t              depth;
    bool                  ghost;      /* released, but kept for what was derived from it */
    struct jrt_cap_quota *quota;      /* the quota that counts it; NULL: none */
    uint32_t              quota_next; /* in the quota's list */
    uint32_t              quota_prev;
};
_Static_assert(sizeof(struct jrt_cap_entry) == 192, "three cache lines");

/* What a check read. */
struct jrt_cap_view {
    uint64_t nonce, state, scope, holder;
};

static inline uint64_t jrt_cap_state(uint32_t generation, enum jrt_cap_phase phase)
{
    return (uint64_t)generation << 32 | phase;
}

static inline uint64_t jrt_cap_scope(janus_cap_kind kind, uint32_t rights)
{
    return (uint64_t)kind << 32 | rights;
}

/* How many words a capability with this scope uses. */
static inline int jrt_cap_scope_words(uint64_t scope)
{
    return jrt_unlikely(scope >> 32 == JANUS_CAP_KIND_NAME) ? JRT_CAP_WORDS : JRT_CAP_WORDS_MOST;
}

/* Reads by [entry-read], without and with the limits. The state is as in [entry-state]. Of limits,
 * only the words that the scope uses are set. */
static inline struct jrt_cap_view jrt_cap_entry_read(const struct jrt_cap_entry *entry,
                                                     janus_cap_limits           *out_limits)
{
    struct jrt_cap_view view;
    view.nonce = jrt_load_acquire(&entry->nonce);   /* acquire: pairs with [entry-publish]. */
    view.scope = jrt_load_acquire(&entry->scope);   /* acquire: before the state. */
    view.holder = jrt_load_acquire(&entry->holder); /* acquire: before the state. */
    if (out_limits != NULL) {
#pragma GCC unroll 6
        for (int i = 0; i < JRT_CAP_WORDS_MOST; i++) {
            out_limits->words[i] = jrt_load_acquire(&entry->words[i]); /* acquire: before state. */
        }
        for (int i = JRT_CAP_WORDS_MOST; i < jrt_cap_scope_words(view.scope); i++) {
            out_limits->words[i] = jrt_load_acquire(&entry->words[i]); /* acquire: before state. */
        }
    }
    view.state = jrt_load_relaxed(&entry->state); /* relaxed: the acquires above keep it last. */
    return view;
}

/* Whether the view is the capability that `cap` names, alive, with this kind, holder and rights.
 * One comparison for all: it takes the same time wherever the difference is. */
static inline bool jrt_cap_view_allows(const struct jrt_cap_view *view, janus_cap cap,
                                       janus_cap_kind kind, uint32_t rights, uint64_t holder)
{
    uint64_t wrong = view->nonce ^ cap.nonce;
    wrong |= view->state ^ jrt_cap_state(cap.generation, JRT_CAP_LIVE);
    wrong |= view->holder ^ holder;
    wrong |= (view->scope >> 32) ^ (uint64_t)kind;
    wrong |= ~view->scope & rights;
    return wrong == 0;
}

/* Fills a place that is not LIVE; [entry-once]. Under the table's lock, as everything below. */
static inline void jrt_cap_entry_publish(struct jrt_cap_entry *entry, uint32_t generation,
                                         uint64_t nonce, uint64_t scope, uint64_t holder,
                                         const janus_cap_limits *limits)
{
    /* release, all: after the end of the place's former capability, [entry-read]. */
    for (int i = 0; i < jrt_cap_scope_words(scope); i++) {
        jrt_store_release(&entry->words[i], limits->words[i]); /* release: [entry-read]. */
    }
    jrt_store_release(&entry->scope, scope);   /* release: [entry-read]. */
    jrt_store_release(&entry->holder, holder); /* release: [entry-read]. */
    /* release [entry-publish]: a thread that reads the nonce reads nothing older. */
    jrt_store_release(&entry->nonce, nonce);
    /* release: a thread that reads LIVE sees all of it. */
    jrt_store_release(&entry->state, jrt_cap_state(generation, JRT_CAP_LIVE));
}

/* Ends the capability, [entry-gone]. */
static inline void jrt_cap_entry_end(struct jrt_cap_entry *entry, uint32_t generation,
                                     enum jrt_cap_phase phase)
{
    /* release: the stores of the next publication come after it anyway. A thread that reads this
     * sees what came before, such as the revocation of the original. */
    jrt_store_release(&entry->state, jrt_cap_state(generation, phase));
}

#endif
