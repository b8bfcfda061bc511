/* SPDX-License-Identifier: MIT */
/*
 * The queue of a worker (Chase and Lev 2005, with the C11 orders of Lê and others 2013).
 *
 *             top                      bottom
 *              v                         v
 *     ... gone | oldest  . . .   newest  | free ...
 *              thieves take       owner pushes and pops
 *
 * Items have numbers that only grow. Item i lies in slot i mod the size of the ring. The owner
 * needs no locked instruction to push and one to pop. Owner and thieves compete only for the last
 * item, and there a compare-and-swap of top decides.
 *
 * [deque-top]  top only grows, by one with each item that is stolen or popped last. A thread keeps
 *   an item that it read only if it could move top past it. Until then others may have taken the
 *   item and overwritten its slot.
 *
 * [deque-claim]  [pop-claim] and [steal-look] mirror each other: the owner writes bottom, then
 *   reads top, and a thief reads top, then bottom. All seq_cst operations have one order. A thief
 *   that may take item i read a bottom above i, so before the owner claimed it. It read top = i, so
 *   an owner that claims i later sees top >= i and uses the compare-and-swap too.
 *
 * [deque-room]  room is some old value of top plus the size of the ring. While bottom is below room
 *   there is a free slot. Thieves write the cache line of top. So the owner reads top only when
 *   room is used up: once for every turn of the ring, not in each push.
 *
 * [deque-rings]  a full ring is copied into a ring of twice the size. The old one is never written
 *   again and lives until fini. A late thief reads from it the item at top. Items that it lacks
 *   were pushed later, and bring the new ring along ([push-publish]). All old rings together are
 *   smaller than the newest.
 *
 * Rejected:
 * - A fence instead of the seq_cst store of bottom: ThreadSanitizer does not see it. Push and pop
 *   would take 2.2 ns instead of 2.6 with gcc, 19 ns with clang.
 * - Reading top in each push: 2.8 ns.
 * - Cache lines in pairs: no difference.
 * - Shrinking: the rings of a busy worker would come and go.
 * - A bounded ring with an overflow queue: nothing is ever dropped, and one queue is enough.
 *
 * tests/sched/deque_model.c tries all orders of all steps of small histories.
 *
 * Locks: none.
 */
#include "sched/deque.h"

#include "plat/world.h"

#include <stdlib.h>

_Static_assert((JRT_DEQUE_FIRST_SLOTS & (JRT_DEQUE_FIRST_SLOTS - 1)) == 0, "a power of two");

static struct jrt_deque_ring *ring_create(uint64_t slots)
{
    /* Whole cache lines, so that other data does not share a line with the slots. */
    size_t                 bytes = sizeof(struct jrt_deque_ring) + slots * sizeof(_Atomic(void *));
    struct jrt_deque_ring *ring = jrt_aligned_alloc(64, (bytes + 63) & ~(size_t)63);
    if (ring == NULL) return NULL;
    ring->mask = slots - 1;
    ring->older = NULL;
    return ring;
}

bool jrt_deque_init(struct jrt_deque *d)
{
    struct jrt_deque_ring *ring = ring_create(JRT_DEQUE_FIRST_SLOTS);
    if (ring == NULL) return false;
    /* relaxed, all three: no other thread knows the deque yet. */
    jrt_store_relaxed(&d->top, 0);
    jrt_store_relaxed(&d->bottom, 0);
    jrt_store_relaxed(&d->ring, ring);
    d->room = JRT_DEQUE_FIRST_SLOTS;
    return true;
}

void jrt_deque_fini(struct jrt_deque *d)
{
    jrt_demand(jrt_deque_seems_empty(d), "jrt_deque_fini: items would be lost");
    struct jrt_deque_ring *ring = jrt_load_relaxed(&d->ring); /* relaxed: the only thread. */
    while (ring != NULL) {
        struct jrt_deque_ring *older = ring->older;
        free(ring);
        ring = older;
    }
}

/* Replaces the ring by a ring of twice the size, [deque-rings]. */
static bool grow(struct jrt_deque *d, uint64_t top, uint64_t bottom)
{
    struct jrt_deque_ring *old = jrt_load_relaxed(&d->ring); /* relaxed: only we write it. */
    uint64_t               slots = 2 * (old->mask + 1);
    if (slots > UINT32_MAX) return false; /* jrt_deque_size counts in 32 bits */
    struct jrt_deque_ring *ring = ring_create(slots);
    if (ring == NULL) return false;
    for (uint64_t i = top; i != bottom; i++) {
        /* relaxed, both: we wrote the old slot; [ring-publish] makes the new one visible. */
        void *item = jrt_load_relaxed(&old->slot[i & old->mask]);
        jrt_store_relaxed(&ring->slot[i & ring->mask], item);
    }
    ring->older = old;
    /* release [ring-publish]: a thread that sees the ring sees what was copied into it. */
    jrt_store_release(&d->ring, ring);
    return true;
}

bool jrt_deque_push_slow(struct jrt_deque *d, void *item)
{
    uint64_t bottom = jrt_load_relaxed(&d->bottom); /* relaxed: only this thread writes it. */
    /* acquire: pairs with [steal-cas]. Thieves have read the slots below top before the owner
     * overwrites them. */
    uint64_t top = jrt_load_acquire(&d->top);
    /* relaxed, twice: only this thread writes it. */
    struct jrt_deque_ring *ring = jrt_load_relaxed(&d->ring);
    if (bottom - top > ring->mask) {
        if (!grow(d, top, bottom)) return false;
        ring = jrt_load_relaxed(&d->ring);
    }
    d->room = top + ring->mask + 1;
    return jrt_deque_push(d, item);
}

void *jrt_deque_pop_last(struct jrt_deque *d, uint64_t bottom, uint64_t top)
{
    void *item = NULL;
    if (top == bottom) {
        /* relaxed, both: this thread wrote the ring and the slot. */
        struct jrt_deque_ring *ring = jrt_load_relaxed(&d->ring);
        item = jrt_load_relaxed(&ring->slot[bottom & ring->mask]);
        /* seq_cst: the thread that moves top gets the last item. It is this one, or [steal-cas]. */
        if (!jrt_cas_seq_cst(&d->top, &top, top + 1)) item = NULL;
    }
    /* relaxed: empty again. A thief that reads this with an old top cannot move top. */
    jrt_store_relaxed(&d->bottom, bottom + 1);
    return item;
}

void *jrt_deque_steal(struct jrt_deque *d, bool *lost_race)
{
    *lost_race = false;
    uint64_t top = jrt_load_seq_cst(&d->top); /* seq_cst [steal-look]: see [deque-claim]. */
    /* seq_cst: the second half of [steal-look]; as an acquire it pairs with [push-publish]. */
    uint64_t bottom = jrt_load_seq_cst(&d->bottom);
    if (top >= bottom) return NULL;
    /* acquire: pairs with [ring-publish]. Read after bottom, so the ring is no older than the
     * item. */
    struct jrt_deque_ring *ring = jrt_load_acquire(&d->ring);
    /* relaxed: ordered by the loads above. If it is stale, the next step fails ([deque-top]). */
    void *item = jrt_load_relaxed(&ring->slot[top & ring->mask]);
    /* seq_cst [steal-cas]: one thief, or the owner, gets the item. Its release says that this
     * thread is done with the slot. */
    if (jrt_cas_seq_cst(&d->top, &top, top + 1)) return item;
    *lost_race = true;
    return NULL;
}
