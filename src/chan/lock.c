/* SPDX-License-Identifier: MIT */
/* The slow ways into a channel, [chan-lock]. */
#include "chan/lock.h"

enum { SPINS = 64 }; /* then the core is somebody else's */

static void rest(unsigned *spins)
{
    if (++*spins % SPINS == 0) {
        jrt_thread_yield();
    } else {
        jrt_cpu_relax();
    }
}

void jrt_chan_lock_wait(struct jrt_chan_lock *lock)
{
    unsigned spins = 0;
    do {
        /* relaxed: the exchange decides. */
        while (jrt_load_relaxed(&lock->word) != 0) rest(&spins);
        /* acquire: what the last holder did. */
    } while (jrt_exchange_acquire(&lock->word, 1u) != 0);
}

void jrt_chan_lock_disown(struct jrt_chan_lock *lock)
{
    unsigned spins = 0;
    jrt_store_relaxed(&lock->owner, NULL);                   /* relaxed: the fence follows. */
    jrt_fence_heavy_seq_cst();                               /* seq_cst: [chan-bias]. */
    while (jrt_load_acquire(&lock->busy) != 0) rest(&spins); /* acquire: what the owner did. */
}
