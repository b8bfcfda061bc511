/* SPDX-License-Identifier: MIT */
/*
 * The table of channel heads.
 *
 * [chan-table]  a handle names a place in one table. The table is a single mapping, as large as it
 *   can become, and committed as it is used. Every number that fits in a handle names a place of
 *   that mapping, or, before there is a table, a place that is never used. So a forged handle is
 *   refused, and never followed to memory that is not a head. The table stays for the life of the
 *   process. So a look-up needs no lock, and may come after the channel has ended. The table has
 *   PLACES places, or fewer if the system refuses that much address space. When all are used,
 *   janus_channel_create returns CHANNEL_LIMIT.
 *
 * [chan-key]  a head has a key for each set of rights. The XOR of both words of a handle must be
 *   the key of the rights that the handle claims. A keyed function (SipHash-2-4) of a serial number
 *   and the rights gives the keys. Its secret comes from the kernel, once for each process. So a
 *   holder of any number of handles cannot compute the key of other rights or of another channel. A
 *   guess succeeds once in 2^64. A head without a channel, and memory that never was one, has keys
 *   of zero, which no handle matches. A change of any bit of a handle makes it STALE. Calls read a
 *   key without the lock to refuse early, and under the lock to be certain.
 *
 * Rejected:
 * - Keys from a fast generator: a few results reveal its state.
 * - An address in the handle, however well it is checked.
 * - Keys computed at each call: that costs more than a look.
 *
 * Heads belong to the process: tasks of several schedulers and plain threads meet in a channel, and
 * a handle may outlive them all.
 */
#include "base/siphash.h"
#include "chan/chan.h"
#include "look/places.h"
#include "plat/memory.h"

enum {
    PLACES = 1 << 20,
    PLACES_LEAST = 1 << 10, /* with fewer there is no table */
};

static struct jrt_chan never_used; /* its keys are zero */

struct jrt_chan_table jrt_chan_table = {.base = (char *)&never_used};

static struct {
    pthread_mutex_t    lock; /* guards the rest; the secret is written once, before any use */
    struct jrt_chan   *free;
    uint32_t           places; /* of the table; 0: not made yet */
    uint32_t           used;   /* of these, used so far, with the first, which is never a head */
    bool               seeded;
    struct jrt_sip_key secret; /* [chan-key] */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .used = 1};

static _Atomic(uint64_t) serials; /* of keys; never repeated */

/* The memory reads as zeros and is committed as it is used. */
static bool make_table(void)
{
    for (uint32_t places = PLACES; places >= PLACES_LEAST; places /= 2) {
        char *base = jrt_map_reserve_for_ever((size_t)places << JRT_CHAN_PLACE_AT);
        if (base == NULL) continue;
        jrt_store_relaxed(&jrt_chan_table.base, base); /* relaxed: the mask follows. */
        /* release: a thread that reads the mask reads the base that belongs to it. */
        jrt_store_release(&jrt_chan_table.mask, (uint64_t)(places - 1) << JRT_CHAN_PLACE_AT);
        pool.places = places;
        /* release: the table. */
        jrt_store_release(&jrt_places_here[JRT_PLACES_CHANNELS], jrt_chan_tell_waits);
        return true;
    }
    return false;
}

static struct jrt_chan *take_fresh(void)
{
    uint32_t place = pool.used++;
    jrt_debug_invariant("chan-table", place > 0 && place < pool.places);
    char            *base = jrt_load_relaxed(&jrt_chan_table.base); /* relaxed: under the lock. */
    struct jrt_chan *chan = (struct jrt_chan *)(void *)base + place;
    chan->place = place;
    return chan;
}

static janus_status take(struct jrt_chan **out)
{
    if (!pool.seeded && !jrt_random_fill(&pool.secret, sizeof pool.secret)) {
        return JANUS_UNAVAILABLE;
    }
    pool.seeded = true;
    if (pool.free != NULL) {
        *out = pool.free;
        pool.free = (*out)->next_free;
        return JANUS_OK;
    }
    if (pool.places == 0 && !make_table()) return JANUS_NO_MEMORY;
    if (pool.used == pool.places) return JANUS_CHANNEL_LIMIT;
    *out = take_fresh();
    return JANUS_OK;
}

uint32_t jrt_chan_places_used(void)
{
    jrt_lock(&pool.lock);
    uint32_t used = pool.used;
    jrt_unlock(&pool.lock);
    return used;
}

janus_status jrt_chan_take(struct jrt_chan **out)
{
    /* Decided here, not where memory is needed: in a world, what earlier executions left has no
     * influence. */
    if (jrt_fails(JRT_FAULT_MEMORY)) return JANUS_NO_MEMORY;
    jrt_lock(&pool.lock);
    janus_status status = take(out);
    jrt_unlock(&pool.lock);
    return status;
}

void jrt_chan_give(struct jrt_chan *chan)
{
    /* relaxed: [chan-key]. */
    jrt_debug_invariant("chan-key", jrt_load_relaxed(&chan->keys[JANUS_CHANNEL_MAY_ALL]) == 0);
    jrt_lock(&pool.lock);
    chan->next_free = pool.free;
    pool.free = chan;
    jrt_unlock(&pool.lock);
}

static uint64_t key_for(unsigned rights)
{
    uint64_t key = 0;
    while (key == 0) {                                                  /* no handle matches zero */
        uint64_t serial = jrt_fetch_add_relaxed(&serials, (uint64_t)1); /* relaxed: a number. */
        key = jrt_siphash(&pool.secret, serial, rights);
    }
    return key;
}

void jrt_chan_new_keys(struct jrt_chan *chan)
{
    for (unsigned rights = 1; rights <= JANUS_CHANNEL_MAY_ALL; rights++) {
        jrt_store_relaxed(&chan->keys[rights], key_for(rights)); /* relaxed: [chan-key]. */
    }
}

void jrt_chan_drop_keys(struct jrt_chan *chan)
{
    for (unsigned rights = 1; rights <= JANUS_CHANNEL_MAY_ALL; rights++) {
        jrt_store_relaxed(&chan->keys[rights], 0u); /* relaxed: [chan-key]. */
    }
}
