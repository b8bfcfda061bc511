/* SPDX-License-Identifier: MIT */
/*
 * Capability tables: where capabilities live, and which place is used next.
 *
 * A handle is a slot, a generation and a random nonce. It holds nothing itself. The entry of its
 * slot holds what it allows, out of reach of anything but a wild write. Checks read entries without
 * a lock (entry.h). Everything that makes or ends capabilities holds the table's lock.
 *
 *     authority ── mint ──► capability ── attenuate, delegate ──► narrower ones   (derive.c)
 *                               │
 *                               └── revoke: it and its whole branch; release: it alone (revoke.c)
 *
 * [cap-places]  the places are one mapping, as large as the table can become. Its pages are
 *   committed when they are touched. So entries never move, and a check needs no second look-up. A
 *   place that was never used reads as zeros, which no handle matches: generations begin at 1.
 *   Guard pages stand before and behind.
 *
 * [cap-queue]  free places wait in a queue. The oldest is reused only if enough others wait behind
 *   it. So a revoked handle reports REVOKED for a while, before its place is reused (STALE). And
 *   all places wear evenly.
 *
 * [cap-wrap]  a place that has used its last generation is never used again. It takes four billion
 *   capabilities to lose 192 bytes, and no generation ever comes twice.
 *
 * [cap-nonce]  nonces come from the system, 32 at a time, and the table wipes each when it gives it
 *   out. A handle with a matching generation still needs the nonce: one guess in 2^64. No nonce is
 *   0, so a handle of zeros names nothing. After a fork both processes may give out the same
 *   nonces, each for a table of its own.
 *
 * [cap-room]  a table has twice as many places as capabilities. A ghost ([tree-ghost]) has two
 *   children, so there are fewer ghosts than capabilities.
 *
 * Rejected:
 * - A MAC over the handle instead of the table: ten times slower to check, and it cannot be revoked
 *   without a table.
 * - An epoch for each branch, compared on the way up: revoking takes one step, but each check pays
 *   for its depth.
 * - Chunks of places: a second load in each check.
 *
 * Locks: table->lock, then the lock of the audit log's shared writer. Shutdown: the caller promises
 * that nothing uses the table.
 */
#include "cap/cap.h"

#include "base/options.h"
#include "base/outside.h"
#include "fiber/ctx.h"
#include "plat/memory.h"

#include <stdlib.h>
#include <string.h>

enum {
    DEFAULT_CAPS = 1 << 20,
    CAPS_MAX = 1 << 24,
    QUEUE_MIN = 64, /* free places that stay unused, [cap-queue] */
};

static uint32_t generation_of(struct jrt_cap_entry *entry)
{
    /* relaxed: under the lock. */
    return (uint32_t)(jrt_load_relaxed(&entry->state) >> 32);
}

/* A fresh nonce, by [cap-nonce]. */
static bool nonce_find(janus_cap_table *table, uint64_t *out)
{
    for (;;) {
        if (table->nonces_left == 0) {
            if (!jrt_random_fill(table->nonces, sizeof table->nonces)) return false;
            table->nonces_left = JRT_CAP_NONCES;
        }
        *out = table->nonces[table->nonces_left - 1];
        if (*out != 0) return true;
        table->nonces_left--;
    }
}

janus_status jrt_cap_slot_find(janus_cap_table *table, struct jrt_cap_slot *out)
{
    if (table->stats.live >= table->slots_max / 2) return JANUS_FULL; /* [cap-room] */
    bool fresh = table->slots < table->slots_max;
    if (table->free_count > QUEUE_MIN || (table->free_count > 0 && !fresh)) {
        out->place = table->free_first;
        out->generation = generation_of(jrt_cap_at(table, out->place)) + 1;
    } else if (fresh) {
        out->place = table->slots + 1;
        out->generation = table->first_generation;
    } else {
        return JANUS_FULL;
    }
    return nonce_find(table, &out->nonce) ? JANUS_OK : JANUS_UNAVAILABLE;
}

void jrt_cap_slot_take(janus_cap_table *table, const struct jrt_cap_slot *slot)
{
    jrt_debug_invariant("cap-nonce", slot->nonce != 0);
    jrt_debug_invariant("cap-wrap", slot->generation != 0);
    if (slot->place > table->slots) {
        table->slots++;
        jrt_debug_invariant("cap-places", table->slots <= table->slots_max);
    } else {
        struct jrt_cap_entry *entry = jrt_cap_at(table, slot->place);
        jrt_debug_invariant("cap-queue", slot->place == table->free_first);
        table->free_first = entry->next;
        table->free_count--;
        if (table->free_count == 0) table->free_last = 0;
        entry->next = 0;
    }
    table->nonces[--table->nonces_left] = 0;
    table->stats.live++;
    jrt_debug_invariant("cap-room", table->stats.live <= table->slots_max / 2);
}

void jrt_cap_slot_give(janus_cap_table *table, uint32_t place)
{
    struct jrt_cap_entry *entry = jrt_cap_at(table, place);
    /* relaxed: under the lock. */
    jrt_debug_invariant("tree-revoke", (uint32_t)jrt_load_relaxed(&entry->state) != JRT_CAP_LIVE);
    entry->parent = entry->child = entry->next = entry->prev = 0;
    entry->ghost = false;
    if (generation_of(entry) == UINT32_MAX) { /* [cap-wrap] */
        table->stats.retired++;
        return;
    }
    if (table->free_count == 0) {
        table->free_first = place;
    } else {
        jrt_cap_at(table, table->free_last)->next = place;
    }
    table->free_last = place;
    table->free_count++;
}

static janus_status options_fill(const janus_cap_table_options *given,
                                 janus_cap_table_options       *options)
{
    *options = (janus_cap_table_options){0};
    if (given != NULL) {
        if (!jrt_struct_sane(given->struct_bytes, sizeof *options)) return JANUS_INVALID;
        memcpy(options, given, given->struct_bytes);
    }
    if (options->max_caps > CAPS_MAX) return JANUS_INVALID;
    if (janus_profile_cap_defaults(options->profile) == NULL) return JANUS_INVALID;
    if (options->max_caps == 0) options->max_caps = DEFAULT_CAPS;
    if (options->profile == JANUS_PROFILE_DEFAULT) options->profile = JANUS_PROFILE_SERVICE;
    return JANUS_OK;
}

/* Maps the places by [cap-places]. */
static bool map_places(janus_cap_table *table)
{
    size_t page = jrt_page_bytes();
    size_t bytes = (size_t)table->slots_max * sizeof(struct jrt_cap_entry);
    bytes = (bytes + page - 1) & ~(page - 1);
    table->map_bytes = bytes + 2 * page;
    /* If the system has no mappings left for guards, the table works without them. */
    table->map = jrt_map_reserve_fenced(table->map_bytes);
    if (table->map == NULL) return false;
    table->entries = (struct jrt_cap_entry *)(void *)(table->map + page);
    return true;
}

static void table_free(janus_cap_table *table)
{
    if (table->map != NULL) {
        /* In a world the mapping may be kept for reuse, so it must be zero again. */
        if (jrt_world_now() != NULL) {
            memset((void *)table->entries, 0, table->slots * sizeof *table->entries);
        }
        jrt_map_release_fenced(table->map, table->map_bytes);
    }
    explicit_bzero(table->nonces, sizeof table->nonces);
    free(table->authority);
    free(table);
}

janus_status jrt_cap_table_create(const janus_cap_table_options *options,
                                  janus_cap_table **out_table, janus_authority **out_authority)
{
    janus_cap_table_options filled;
    uint64_t                nonce;
    if (out_table == NULL || out_authority == NULL) return JANUS_INVALID;
    janus_status status = options_fill(options, &filled);
    if (status == JANUS_OK) status = jrt_outside_ask();
    if (status != JANUS_OK) return status;
    janus_cap_table *table = jrt_malloc(sizeof *table);
    if (table == NULL) return JANUS_NO_MEMORY;
    *table = (janus_cap_table){.slots_max = filled.max_caps * 2,
                               .slots_unlogged = filled.audit == NULL ? filled.max_caps * 2 : 0,
                               .profile = filled.profile,
                               .audit = filled.audit,
                               .first_generation = 1,
                               .authority = jrt_malloc(sizeof *table->authority)};
    if (table->authority == NULL || !map_places(table)) {
        status = JANUS_NO_MEMORY;
    } else if (!nonce_find(table, &nonce)) {
        status = JANUS_UNAVAILABLE;
    }
    if (status != JANUS_OK) {
        table_free(table);
        return status;
    }
    (void)pthread_mutex_init(&table->lock, NULL); /* cannot fail without attributes */
    table->authority->table = table;
    *out_table = table;
    *out_authority = table->authority;
    return JANUS_OK;
}

janus_status janus_cap_table_create(const janus_cap_table_options *options,
                                    janus_cap_table **out_table, janus_authority **out_authority)
{
    jrt_outside_call_long(); /* [turn-call] */
    return jrt_cap_table_create(options, out_table, out_authority);
}

void jrt_cap_table_destroy(janus_cap_table *table)
{
    pthread_mutex_destroy(&table->lock);
    table_free(table);
}

janus_status janus_cap_table_destroy(janus_cap_table *table, janus_authority *authority)
{
    jrt_outside_call_long(); /* [turn-call] */
    if (table == NULL) return JANUS_INVALID;
    if (authority != table->authority) return JANUS_NO_AUTHORITY;
    jrt_cap_table_destroy(table);
    return JANUS_OK;
}

void jrt_cap_count(janus_cap_table *table, enum jrt_cap_refusal refusal)
{
    (void)jrt_fetch_add_relaxed(&table->refused[refusal], 1); /* relaxed: a statistic. */
}

janus_status janus_cap_table_inspect(janus_cap_table *table, janus_cap_table_info *out)
{
    jrt_outside_call(); /* [turn-call] */
    if (table == NULL || out == NULL || !jrt_struct_sane(out->struct_bytes, sizeof *out)) {
        return JANUS_INVALID;
    }
    jrt_ctx_probe(); /* a stack overflow must come before the lock */
    jrt_lock(&table->lock);
    janus_cap_table_info stats = table->stats;
    stats.slots = table->slots;
    jrt_unlock(&table->lock);
#define X(name, field)                                                                             \
    stats.refused_##field =                                                                        \
        jrt_load_relaxed(&table->refused[JRT_CAP_REFUSED_##name]); /* relaxed: a count. */
    JRT_CAP_REFUSAL_MAP(X)
#undef X
    jrt_struct_give(out, &stats);
    return JANUS_OK;
}
