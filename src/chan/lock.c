/* SPDX-License-Identifier: MIT */
/* The slow paths of a channel's lock, [chan-lock]. */
#include "chan/lock.h"

enum {
    PAUSE_MAX = 32, /* relaxes between two looks: the holder may take the lock again meanwhile,
                     * which is cheaper for all than passing the cache line at every step */
    LOOKS_MAX = 16, /* then yield the core */
};

/* Waits while the word has this value. */
static void await_change(_Atomic(uint32_t) *word, uint32_t value)
{
    unsigned looks = 0, pause = 1;
    while (jrt_load_acquire(word) == value) { /* acquire: what its holder did. */
        for (unsigned i = 0; i < pause; i++) jrt_cpu_relax();
        if (pause < PAUSE_MAX) pause *= 2;
        if (++looks % LOOKS_MAX == 0) jrt_thread_yield();
    }
}

void jrt_chan_lock_wait(struct jrt_chan_lock *lock)
{
    do await_change(&lock->word, 1u);
    while (jrt_exchange_acquire(&lock->word, 1u) != 0); /* acquire: what the last holder did. */
}

void jrt_chan_lock_disown(struct jrt_chan_lock *lock, struct jrt_bias *owner)
{
    jrt_store_relaxed(&lock->owner, NULL); /* relaxed: the fence follows. */
    jrt_fence_heavy_seq_cst();             /* seq_cst: [chan-bias]. */
    await_change(&owner->inside, jrt_chan_lock_name(lock));
}
