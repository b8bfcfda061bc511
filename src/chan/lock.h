/* SPDX-License-Identifier: MIT */
/*
 * The lock of a channel. It is held for a few instructions and never across a wait.
 *
 * [chan-lock]  a word that is taken by exchange and given back by a store. Who finds it taken spins
 *   for a moment and then lets other threads have the core: the holder may be off the CPU.
 *
 * [chan-bias]  a channel that was opened where there is one worker is that worker's own until
 *   somebody else comes. The owner's way in is two stores and a load:
 *
 *     owner    busy = 1; light fence; owner == me?  in.  else busy = 0, and the word as everybody
 *     another  takes the word; owner = none; heavy fence; waits while busy != 0
 *
 *   Mirror images: whichever comes second sees the other. Once taken away it is not given again:
 *   the heavy fence costs microseconds. The owner is a worker, that is one thread at a time; a
 *   later worker at the same address inherits, which is as good. tests/chan/lock_model.c tries all
 *   orders.
 */
#ifndef JRT_CHAN_LOCK_H
#define JRT_CHAN_LOCK_H

#include "plat/seam.h"

struct jrt_chan_lock {
    _Atomic(uint32_t) word; /* 1: taken */
    _Atomic(uint32_t) busy; /* 1: the owner is inside */
    _Atomic(void *)   owner;
};

/* The slow ways in. */
void jrt_chan_lock_wait(struct jrt_chan_lock *lock);
void jrt_chan_lock_disown(struct jrt_chan_lock *lock);

/* True: as its owner. The unlock is told. */
static inline bool jrt_chan_lock(struct jrt_chan_lock *lock, const void *self)
{
    void *owner = jrt_load_relaxed(&lock->owner); /* relaxed: looked at again below. */
    if (owner != NULL && owner == self) {
        jrt_store_relaxed(&lock->busy, 1u); /* relaxed: the fence follows. */
        jrt_fence_light_seq_cst();          /* seq_cst: [chan-bias]. */
        /* relaxed: while it is ours nobody else was inside. */
        if (jrt_likely(jrt_load_relaxed(&lock->owner) == self)) return true;
        jrt_store_release(&lock->busy, 0u); /* release: as in unlock; nothing happened. */
    }
    /* acquire: what the last holder did. */
    if (jrt_unlikely(jrt_exchange_acquire(&lock->word, 1u) != 0)) jrt_chan_lock_wait(lock);
    /* relaxed: under the lock only. */
    if (jrt_unlikely(jrt_load_relaxed(&lock->owner) != NULL)) jrt_chan_lock_disown(lock);
    return false;
}

/* The same where that takes no waiting: the word that is to be zero again, or NULL. */
static inline _Atomic(uint32_t) *jrt_chan_lock_at_once(struct jrt_chan_lock *lock, const void *self)
{
    void *owner = jrt_load_relaxed(&lock->owner); /* relaxed: looked at again below. */
    if (jrt_likely(owner == self)) {
        jrt_store_relaxed(&lock->busy, 1u); /* relaxed: the fence follows. */
        jrt_fence_light_seq_cst();          /* seq_cst: [chan-bias]. */
        /* relaxed: while it is ours nobody else was inside. */
        if (jrt_likely(jrt_load_relaxed(&lock->owner) == self)) return &lock->busy;
        jrt_store_release(&lock->busy, 0u); /* release: as in unlock; nothing happened. */
        return NULL;
    }
    if (owner != NULL) return NULL;
    /* acquire: what the last holder did. */
    if (jrt_unlikely(jrt_exchange_acquire(&lock->word, 1u) != 0)) return NULL;
    if (jrt_likely(jrt_load_relaxed(&lock->owner) == NULL)) return &lock->word; /* relaxed: under */
    jrt_store_release(&lock->word, 0u); /* release: nothing happened; it is to be taken away. */
    return NULL;
}

static inline void jrt_chan_let_go(_Atomic(uint32_t) *held)
{
    jrt_store_release(held, 0u); /* release: what we did. */
}

static inline void jrt_chan_unlock(struct jrt_chan_lock *lock, bool as_owner)
{
    if (as_owner) {
        jrt_store_release(&lock->busy, 0u); /* release: what we did, for who takes it away. */
    } else {
        jrt_store_release(&lock->word, 0u); /* release: what we did. */
    }
}

#endif
