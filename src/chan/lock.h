/* SPDX-License-Identifier: MIT */
/*
 * The lock of a channel. A thread holds it for a few instructions and never across a wait.
 *
 * [chan-lock]  a word that a thread takes by an exchange and releases by a store. A thread that
 *   finds it taken spins for a moment and then yields its core, because the holder may be off the
 *   CPU.
 *
 * [chan-bias]  a channel that was opened in a scheduler with one worker belongs to that worker
 *   until another thread comes. The owner enters with two stores and a load:
 *
 *     owner    busy = 1; light fence; owner == me?  in.  else busy = 0, and the word as everybody
 *     another  takes the word; owner = none; heavy fence; waits while busy != 0
 *
 *   The two mirror each other: the second one sees the first. Once taken away, ownership does not
 *   return, because the heavy fence costs microseconds. The owner is a worker, that is, one thread
 *   at a time. A later worker at the same address inherits it, which is as good.
 *   tests/chan/lock_model.c tries all orders.
 */
#ifndef JRT_CHAN_LOCK_H
#define JRT_CHAN_LOCK_H

#include "plat/seam.h"

struct jrt_chan_lock {
    _Atomic(uint32_t) word; /* 1: taken */
    _Atomic(uint32_t) busy; /* 1: the owner holds the lock */
    _Atomic(void *)   owner;
};

/* The slow paths. */
void jrt_chan_lock_wait(struct jrt_chan_lock *lock);
void jrt_chan_lock_disown(struct jrt_chan_lock *lock);

/* True: locked as its owner. The unlock needs this. */
static inline bool jrt_chan_lock(struct jrt_chan_lock *lock, const void *self)
{
    void *owner = jrt_load_relaxed(&lock->owner); /* relaxed: read again below. */
    if (owner != NULL && owner == self) {
        jrt_store_relaxed(&lock->busy, 1u); /* relaxed: the fence follows. */
        jrt_fence_light_seq_cst();          /* seq_cst: [chan-bias]. */
        /* relaxed: no other thread was inside while it is ours. */
        if (jrt_likely(jrt_load_relaxed(&lock->owner) == self)) return true;
        jrt_store_release(&lock->busy, 0u); /* release: as in unlock; nothing happened. */
    }
    /* acquire: what the last holder did. */
    if (jrt_unlikely(jrt_exchange_acquire(&lock->word, 1u) != 0)) jrt_chan_lock_wait(lock);
    /* relaxed: under the lock only. */
    if (jrt_unlikely(jrt_load_relaxed(&lock->owner) != NULL)) jrt_chan_lock_disown(lock);
    return false;
}

/* Takes the lock if that needs no waiting. Returns the word to clear for the unlock, or NULL. */
static inline _Atomic(uint32_t) *jrt_chan_lock_fast(struct jrt_chan_lock *lock, const void *self)
{
    void *owner = jrt_load_relaxed(&lock->owner); /* relaxed: read again below. */
    if (jrt_likely(owner == self)) {
        jrt_store_relaxed(&lock->busy, 1u); /* relaxed: the fence follows. */
        jrt_fence_light_seq_cst();          /* seq_cst: [chan-bias]. */
        /* relaxed: no other thread was inside while it is ours. */
        if (jrt_likely(jrt_load_relaxed(&lock->owner) == self)) return &lock->busy;
        jrt_store_release(&lock->busy, 0u); /* release: as in unlock; nothing happened. */
        return NULL;
    }
    if (owner != NULL) return NULL;
    /* acquire: what the last holder did. */
    if (jrt_unlikely(jrt_exchange_acquire(&lock->word, 1u) != 0)) return NULL;
    if (jrt_likely(jrt_load_relaxed(&lock->owner) == NULL)) return &lock->word; /* relaxed: under */
    jrt_store_release(&lock->word, 0u); /* release: nothing happened; the slow path follows. */
    return NULL;
}

/* Whether the word that jrt_chan_lock_fast returned means: locked as its owner. */
static inline bool jrt_chan_lock_owned(const struct jrt_chan_lock *lock,
                                       const _Atomic(uint32_t)    *held)
{
    return held == &lock->busy;
}

static inline void jrt_chan_let_go(_Atomic(uint32_t) *held)
{
    jrt_store_release(held, 0u); /* release: what we did. */
}

static inline void jrt_chan_unlock(struct jrt_chan_lock *lock, bool as_owner)
{
    if (as_owner) {
        jrt_store_release(&lock->busy, 0u); /* release: what we did, for the next thread. */
    } else {
        jrt_store_release(&lock->word, 0u); /* release: what we did. */
    }
}

#endif
