/* SPDX-License-Identifier: MIT */
/*
 * The table of handles.
 *
 * [io-table]  As [chan-table]: a handle names a place in one mapping. The mapping is as large as it
 *   can become, and is committed as it is used. Places stay for the life of the process. So the
 *   library refuses a stale or forged handle without following it anywhere. A late event of the
 *   system meets memory that is a place, too.
 *
 * [io-key]  The two words of a handle are its name (place and rights) and the name XOR a key. The
 *   key is a keyed function (SipHash-2-4) of the place's serial number and the rights. Its secret
 *   comes from the kernel. Each new handle of a place has another serial number. The key of all the
 *   rights that the first handle has is kept in the record, and compared. The key of fewer rights
 *   is computed at each use. So a holder of a narrowed handle cannot make a wider one.
 *
 * Locks: the pool's.
 */
#include "base/siphash.h"
#include "io/io.h"
#include "look/places.h"
#include "plat/memory.h"
#include "sim/net.h"

enum {
    PLACES = 1 << 20,
    PLACES_LEAST = 1 << 10, /* with fewer there is no table */
};

static struct {
    pthread_mutex_t    lock; /* guards the rest; the secret is written once, before any use */
    struct jrt_io     *free;
    struct jrt_io    **free_end; /* where the next free place goes: old ones are used last */
    uint32_t           places, used;
    bool               seeded;
    struct jrt_sip_key secret;
    uint64_t           serials;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool make_table(void)
{
    for (uint32_t places = PLACES; places >= PLACES_LEAST; places /= 2) {
        char *base = jrt_map_reserve_for_ever((size_t)places * sizeof(struct jrt_io));
        if (base == NULL) continue;
        pool.places = places;
        pool.free_end = &pool.free;
        jrt_ready_table.stride = sizeof(struct jrt_io);
        jrt_store_relaxed(&jrt_ready_table.base, base); /* relaxed: `places` follows. */
        /* release, both: the table. */
        jrt_store_release(&jrt_places_here[JRT_PLACES_HANDLES], jrt_io_tell_waits);
        jrt_store_release(&jrt_sim_orphaned, jrt_io_orphaned); /* release: as above. */
        return true;
    }
    return false;
}

static struct jrt_io *at_place(uint32_t place)
{
    /* relaxed: the caller has read `places`. */
    char *base = jrt_load_relaxed(&jrt_ready_table.base);
    return (struct jrt_io *)(void *)base + place;
}

uint32_t jrt_io_place(const struct jrt_io *io) { return (uint32_t)(io - at_place(0)); }

static janus_status take(struct jrt_io **out)
{
    if (!pool.seeded && !jrt_random_fill(&pool.secret, sizeof pool.secret)) {
        return JANUS_UNAVAILABLE;
    }
    pool.seeded = true;
    if (pool.places == 0 && !make_table()) return JANUS_NO_MEMORY;
    if (pool.free != NULL) {
        *out = pool.free;
        pool.free = (*out)->next_free;
        if (pool.free == NULL) pool.free_end = &pool.free;
    } else if (pool.used < pool.places) {
        jrt_debug_invariant("io-table", pool.used < pool.places);
        *out = at_place(pool.used);
        pool.used++;
        /* release: a thread that reads the number reads the base. */
        jrt_store_release(&jrt_ready_table.places, pool.used);
    } else {
        return JANUS_FULL;
    }
    jrt_store_relaxed(&(*out)->serial, ++pool.serials); /* relaxed: the key follows. */
    return JANUS_OK;
}

janus_status jrt_io_place_take(struct jrt_io **out)
{
    /* Decided here, not where memory is needed: what earlier worlds left has no influence. */
    if (jrt_fails(JRT_FAULT_MEMORY)) return JANUS_NO_MEMORY;
    jrt_lock(&pool.lock);
    janus_status status = take(out);
    jrt_unlock(&pool.lock);
    return status;
}

void jrt_io_place_give(struct jrt_io *io)
{
    jrt_debug_invariant("io-key", jrt_load_relaxed(&io->key) == 0); /* relaxed: nobody's. */
    jrt_lock(&pool.lock);
    io->next_free = NULL;
    *pool.free_end = io;
    pool.free_end = &io->next_free;
    jrt_unlock(&pool.lock);
}

static uint64_t key_for(const struct jrt_io *io, uint32_t rights)
{
    uint64_t serial = jrt_load_relaxed(&io->serial); /* relaxed: a stale one gives another key. */
    uint64_t key = jrt_siphash(&pool.secret, serial, rights);
    return key != 0 ? key : 1; /* no handle matches zero */
}

static janus_io name_of(const struct jrt_io *io, uint32_t rights, uint64_t key)
{
    uint64_t name = (uint64_t)jrt_io_place(io) << JRT_IO_PLACE_AT | rights;
    return (janus_io){{name, name ^ key}};
}

janus_io jrt_io_name(struct jrt_io *io)
{
    uint32_t rights = jrt_io_first_rights(io);
    uint64_t key = key_for(io, rights);
    /* release: a thread that finds the key finds the record complete. */
    jrt_store_release(&io->key, key);
    return name_of(io, rights, key);
}

janus_io jrt_io_name_with(const struct jrt_io *io, uint32_t rights)
{
    return name_of(io, rights, key_for(io, rights));
}

struct jrt_io *jrt_io_of(janus_io handle)
{
    uint64_t place = handle.opaque[0] >> JRT_IO_PLACE_AT;
    uint64_t key = handle.opaque[0] ^ handle.opaque[1];
    uint32_t rights = jrt_io_rights(handle);
    /* acquire: the base. */
    if (jrt_unlikely(place >= jrt_load_acquire(&jrt_ready_table.places))) return NULL;
    if (jrt_unlikely((handle.opaque[0] & 0xf0u) != 0 || key == 0)) return NULL;
    struct jrt_io *io = at_place((uint32_t)place);
    uint64_t       all = jrt_load_acquire(&io->key); /* acquire: the record. */
    uint32_t       first = jrt_io_first_rights(io);
    if (jrt_likely(all == key && rights == first)) return io;
    if (all == 0 || rights == 0 || (rights & ~first) != 0) return NULL;
    return key_for(io, rights) == key ? io : NULL;
}

struct jrt_io *jrt_io_place_of(janus_io handle)
{
    return at_place((uint32_t)(handle.opaque[0] >> JRT_IO_PLACE_AT));
}

bool jrt_io_was(const struct jrt_io *io, janus_io handle)
{
    return key_for(io, jrt_io_rights(handle)) == (handle.opaque[0] ^ handle.opaque[1]);
}
