/* SPDX-License-Identifier: MIT */
/* The queue of a worker: its owner works at the bottom, thieves at the top. The essay is in
 * deque.c. */
#ifndef JRT_SCHED_DEQUE_H
#define JRT_SCHED_DEQUE_H

#include "base/assert.h"
#include "base/atomic.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Slots of the first ring, a power of two. Models make it small. */
#ifndef JRT_DEQUE_FIRST_SLOTS
#define JRT_DEQUE_FIRST_SLOTS 64
#endif

struct jrt_deque_ring {
    uint64_t               mask;  /* slots - 1 */
    struct jrt_deque_ring *older; /* owned; the ring that this one replaced, for late readers */
    _Atomic(void *)        slot[];
};

struct jrt_deque {
    /* Written by thieves and, for the last item, by the owner. It only grows. */
    _Alignas(64) _Atomic(uint64_t) top;

    /* Only the owner writes these. Thieves read the first two. */
    _Alignas(64) _Atomic(uint64_t) bottom;
    _Atomic(struct jrt_deque_ring *) ring; /* owned, with all older rings */
    uint64_t                         room; /* [deque-room] bottom at which the ring may be full */
};

/* Allocates the first ring. False: no memory, and there is nothing to fini. */
bool jrt_deque_init(struct jrt_deque *d);

/* The deque must be empty, and no other thread may use it. */
void jrt_deque_fini(struct jrt_deque *d);

/* Any thread, also the owner. Takes the oldest item. NULL: the deque was empty. If *lost_race,
 * another thread was faster, and there may be more. */
void *jrt_deque_steal(struct jrt_deque *d, bool *lost_race);

/* The slow paths of jrt_deque_push and jrt_deque_pop. The ring may be full, or one item is left. */
bool  jrt_deque_push_slow(struct jrt_deque *d, void *item);
void *jrt_deque_pop_last(struct jrt_deque *d, uint64_t bottom, uint64_t top);

/* Any thread. May be out of date when it returns. */
static inline bool jrt_deque_seems_empty(const struct jrt_deque *d)
{
    uint64_t top = jrt_load_relaxed(&d->top);   /* relaxed: a hint. Callers check again. */
    return jrt_load_relaxed(&d->bottom) <= top; /* relaxed: a hint. */
}

/* Any thread. May be out of date when it returns. */
static inline uint32_t jrt_deque_size(const struct jrt_deque *d)
{
    uint64_t top = jrt_load_relaxed(&d->top);       /* relaxed: a hint. Callers check again. */
    uint64_t bottom = jrt_load_relaxed(&d->bottom); /* relaxed: a hint. */
    return bottom > top ? (uint32_t)(bottom - top) : 0;
}

/* Owner only. Adds the newest item, not NULL. Returns false if the ring is full and there is no
 * memory for a larger one. Then nothing changed. */
static inline bool jrt_deque_push(struct jrt_deque *d, void *item)
{
    uint64_t bottom = jrt_load_relaxed(&d->bottom); /* relaxed: only this thread writes it. */
    if (jrt_unlikely(bottom == d->room)) return jrt_deque_push_slow(d, item);
    /* relaxed: only this thread writes it. */
    struct jrt_deque_ring *ring = jrt_load_relaxed(&d->ring);
    /* relaxed: [push-publish] makes it visible. */
    jrt_store_relaxed(&ring->slot[bottom & ring->mask], item);
    /* release [push-publish]: a thread that sees the new bottom sees the slot, its ring and what
     * the item points to. */
    jrt_store_release(&d->bottom, bottom + 1);
    return true;
}

/* Owner only. Takes the newest item; NULL: empty. */
static inline void *jrt_deque_pop(struct jrt_deque *d)
{
    uint64_t bottom = jrt_load_relaxed(&d->bottom); /* relaxed: only this thread writes it. */
    /* relaxed: an old value only makes the deque seem fuller, and [pop-claim] reads it again. */
    if (jrt_load_relaxed(&d->top) == bottom) return NULL;
    bottom--;
    /* seq_cst [pop-claim]: the owner lowers bottom before it reads top. Thieves read top before
     * bottom ([steal-look]). With less, both could miss the other's move and take the item. */
    jrt_store_seq_cst(&d->bottom, bottom);
    uint64_t top = jrt_load_seq_cst(&d->top); /* seq_cst: the second half of [pop-claim]. */
    if (jrt_unlikely(top >= bottom)) return jrt_deque_pop_last(d, bottom, top);
    /* relaxed: this thread wrote the ring and the slot. */
    struct jrt_deque_ring *ring = jrt_load_relaxed(&d->ring);
    return jrt_load_relaxed(&ring->slot[bottom & ring->mask]); /* relaxed: this thread wrote it. */
}

#endif
