/* SPDX-License-Identifier: MIT */
/*
 * Where the heads of channels come from.
 *
 * [chan-key]  a handle is the address of a head, its rights, and the key that this head has for
 *   these rights. A head that is given back gets other keys and is used again, but its memory is
 *   never anything else: a handle of a channel that is gone, or whose rights were changed, meets a
 *   head whose key is another one, and is STALE. Keys are 64 bits from a generator with a random
 *   seed; they keep programs from mistakes, not attackers who read memory. They are read without
 *   the lock to refuse early, and under it to be certain.
 *
 * [chan-seal]  before the key can be looked at, the address must be one of a head. The bits above
 *   it are a function of it and the rights, the product with an odd number: changing one bit below
 *   changes the product by that number, shifted, whose upper bits are neither all 0 nor all 1, so
 *   the seal is another one. A single bit that is changed is always noticed, other damage all but
 *   once in 65536 times. It is no secret.
 *
 * Heads belong to the process: tasks of several schedulers and plain threads meet in a channel, and
 * a handle may outlive them all.
 */
#include "base/rng.h"
#include "chan/chan.h"

#include <stdlib.h>

enum { HEADS = 32 }; /* in one piece of memory */

struct piece {
    struct piece *next;
    _Alignas(64) struct jrt_chan heads[HEADS];
};

static struct {
    pthread_mutex_t  lock; /* guards the rest */
    struct jrt_chan *free;
    struct piece    *pieces; /* so that they can be found */
    struct jrt_rng   rng;
    bool             seeded;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool grow(void)
{
    struct piece *piece = aligned_alloc(64, sizeof *piece);
    if (piece == NULL) return false;
    memset(piece, 0, sizeof *piece);
    jrt_invariant("chan-seal", (uintptr_t)(piece + 1) >> JRT_CHAN_SEAL_AT == 0);
    for (int i = 0; i < HEADS; i++) {
        piece->heads[i].next_free = pool.free;
        pool.free = &piece->heads[i];
    }
    piece->next = pool.pieces;
    pool.pieces = piece;
    return true;
}

struct jrt_chan *jrt_chan_take(void)
{
    /* Not where memory is needed: in a simulated system what others have left has no say. */
    if (jrt_fails(JRT_FAULT_MEMORY)) return NULL;
    jrt_lock(&pool.lock);
    struct jrt_chan *chan = pool.free != NULL || grow() ? pool.free : NULL;
    if (chan != NULL) pool.free = chan->next_free;
    jrt_unlock(&pool.lock);
    return chan;
}

void jrt_chan_give(struct jrt_chan *chan)
{
    jrt_lock(&pool.lock);
    chan->next_free = pool.free;
    pool.free = chan;
    jrt_unlock(&pool.lock);
}

void jrt_chan_new_keys(struct jrt_chan *chan)
{
    jrt_lock(&pool.lock);
    if (!pool.seeded) {
        uint64_t seed = 0;
        if (!jrt_random_fill(&seed, sizeof seed)) seed = jrt_clock_now_ns();
        jrt_rng_seed(&pool.rng, seed);
        pool.seeded = true;
    }
    for (int i = 0; i < 8; i++) {
        uint64_t key = jrt_rng_next(&pool.rng) | 1u;          /* never 0, which is no handle */
        jrt_store_relaxed(&chan->keys[i], i != 0 ? key : 0u); /* relaxed: [chan-key]. */
    }
    jrt_unlock(&pool.lock);
}
