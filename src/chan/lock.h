/* SPDX-License-Identifier: MIT */
/*
 * The lock of a channel. A thread holds it for a few instructions and never across a wait.
 *
 * [chan-lock]  a word that a thread takes by an exchange and releases by a store. A thread that
 *   finds it taken spins for a moment and then yields its core, because the holder may be off the
 *   CPU.
 *
 * [chan-bias]  a lock may belong to a worker until another thread comes. The owner enters with two
 *   stores and a load, in a slot of its own ([bias-slot]):
 *
 *     owner    inside = lock; light fence; owner == me?  in.  else inside = 0, and the word as
 *              everybody
 *     another  takes the word; owner = none; heavy fence; waits while the old owner's inside = lock
 *
 *   The two mirror each other: the second one sees the first. Ownership is given under the word, so
 *   no other thread is inside. A worker that is off the CPU between its look at `owner` and its
 *   store harms nobody, because it writes its own slot only.
 *   A slot names one lock. So an owner that is already inside another takes the word. It need not
 *   take its own ownership away: no other thread can enter as the owner.
 *   tests/chan/lock_model.c tries all orders.
 *
 * [chan-adopt]  The only worker of a scheduler owns its channels from their opening. Where there
 *   are more workers, a worker that was the last to enter for `adopts_after` fast calls becomes the
 *   owner. Most channels are used by tasks of one worker for long times, and then calls need no
 *   locked instruction. Taking the ownership away costs microseconds, and interrupts other workers.
 *   So each time doubles the number of calls until the next owner.
 */
#ifndef JRT_CHAN_LOCK_H
#define JRT_CHAN_LOCK_H

#include "base/assert.h"
#include "plat/seam.h"
#include "sched/bias.h"

enum { JRT_CHAN_ADOPTS_AFTER = 4096, JRT_CHAN_ADOPTS_AFTER_MAX = 1 << 14 };

struct jrt_chan_lock {
    _Atomic(uint32_t)          word;         /* 1: taken */
    uint32_t                   until_adopts; /* fast calls; under the word */
    _Atomic(struct jrt_bias *) owner;        /* changes under the word */
};

/* The slow paths. */
void jrt_chan_lock_wait(struct jrt_chan_lock *lock);
void jrt_chan_lock_disown(struct jrt_chan_lock *lock, struct jrt_bias *owner);

/* Stands for the lock in its owner's slot. Locks are aligned, so it is not 0. */
static inline uint32_t jrt_chan_lock_name(const struct jrt_chan_lock *lock)
{
    return (uint32_t)((uintptr_t)lock + 1);
}

/* The owner tries to enter. False: it is the owner no more. */
static inline __attribute__((always_inline)) bool jrt_chan_lock_as_owner(struct jrt_chan_lock *lock,
                                                                         struct jrt_bias      *self)
{
    /* relaxed: its own. */
    jrt_debug_invariant("bias-slot", jrt_load_relaxed(&self->inside) == 0);
    jrt_store_relaxed(&self->inside, jrt_chan_lock_name(lock)); /* relaxed: the fence follows. */
    jrt_fence_light_seq_cst();                                  /* seq_cst: [chan-bias]. */
    /* relaxed: no other thread was inside while the lock belongs to this worker. */
    if (jrt_likely(jrt_load_relaxed(&lock->owner) == self)) return true;
    jrt_store_release(&self->inside, 0u); /* release: as in unlock; nothing happened. */
    return false;
}

/* As jrt_chan_lock, for a worker that is no owner, or is inside another lock as its owner. */
static inline void jrt_chan_lock_word(struct jrt_chan_lock *lock, const struct jrt_bias *self)
{
    /* acquire: what the last holder did. */
    if (jrt_unlikely(jrt_exchange_acquire(&lock->word, 1u) != 0)) jrt_chan_lock_wait(lock);
    struct jrt_bias *owner = jrt_load_relaxed(&lock->owner); /* relaxed: the word protects it. */
    if (jrt_unlikely(owner != NULL && owner != self)) jrt_chan_lock_disown(lock, owner);
}

/* `self` is the slot of the worker, which is in no other lock. A thread that is no worker passes
 * NULL. True: locked as the owner. The unlock needs this. */
static inline bool jrt_chan_lock(struct jrt_chan_lock *lock, struct jrt_bias *self)
{
    /* relaxed: read again. */
    if (self != NULL && jrt_load_relaxed(&lock->owner) == self &&
        jrt_likely(jrt_chan_lock_as_owner(lock, self))) {
        return true;
    }
    jrt_chan_lock_word(lock, self);
    return false;
}

/* As jrt_chan_lock, for a worker that may be inside other locks. */
static inline bool jrt_chan_lock_more(struct jrt_chan_lock *lock, struct jrt_bias *self)
{
    /* relaxed: its own. */
    if (self == NULL || jrt_load_relaxed(&self->inside) == 0) return jrt_chan_lock(lock, self);
    jrt_chan_lock_word(lock, self);
    return false;
}

/* Takes the lock if that needs no waiting. The worker is in no other lock. Returns the word to
 * clear for the unlock, or NULL. */
static inline _Atomic(uint32_t) *jrt_chan_lock_fast(struct jrt_chan_lock *lock,
                                                    struct jrt_bias      *self)
{
    const struct jrt_bias *owner = jrt_load_relaxed(&lock->owner); /* relaxed: read again. */
    if (jrt_likely(owner == self)) {
        return jrt_likely(jrt_chan_lock_as_owner(lock, self)) ? &self->inside : NULL;
    }
    if (jrt_unlikely(owner != NULL)) return NULL;
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
    return held != &lock->word;
}

static inline void jrt_chan_let_go(_Atomic(uint32_t) *held)
{
    jrt_store_release(held, 0u); /* release: what we did. */
}

/* `as_owner`: the slot of the worker, if it locked as the owner. */
static inline void jrt_chan_unlock(struct jrt_chan_lock *lock, struct jrt_bias *as_owner)
{
    jrt_chan_let_go(as_owner != NULL ? &as_owner->inside : &lock->word);
}

/* The lock belongs to this worker from now on. It holds the word. */
static inline void jrt_chan_lock_adopt(struct jrt_chan_lock *lock, struct jrt_bias *self)
{
    /* relaxed, both: the word protects it. */
    jrt_debug_invariant("chan-adopt", jrt_load_relaxed(&lock->word) == 1);
    if (self != &jrt_bias_none) jrt_store_relaxed(&lock->owner, self); /* relaxed: as above. */
}

#endif
