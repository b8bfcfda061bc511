/* SPDX-License-Identifier: MIT */
/*
 * A hash table with open addressing, under a lock.
 *
 *     slot      0     1     2     3     4     5     6     7
 *             "db"    -     -   "web" "log"   -     -   "io"
 *                                       └─ its home is 3, which was taken
 *
 * [names-chain]  between the home of a name and its slot, no slot is free. So a search begins at
 *   the home and ends at the first free slot. A drop moves later names of the chain back over the
 *   gap, and leaves no mark.
 *
 * [names-room]  names and reserved places together take at most three quarters of the slots. So a
 *   search always ends, and a reserved place needs no memory when it is used.
 *
 * The home of a name depends on a secret key (SipHash). Otherwise a program could choose names with
 * the same home, and each look-up would pass all of them under the lock.
 *
 * Memory: a slot has 88 bytes. The table doubles when there is no room. It halves when fewer than
 * an eighth of the slots are needed. If the system refuses a halving, nothing changes. The first 16
 * slots stay.
 *
 * Rejected:
 * - A list for each home: a put would need memory for its node, and a reservation a node of its
 *   own.
 * - Look-ups without a lock: a look-up precedes a message, which takes more locks itself.
 *
 * Locks: names->lock alone. Shutdown: fini, after the last call.
 */
#include "sched/names.h"

#include "base/assert.h"
#include "fiber/ctx.h"
#include "plat/seam.h"
#include "plat/world.h"

#include <stdlib.h>
#include <string.h>

enum { CAPACITY_MIN = 16 };

bool jrt_names_init(struct jrt_names *names)
{
    *names = (struct jrt_names){.slots = NULL};
    if (!jrt_random_fill(&names->key, sizeof names->key)) return false;
    (void)pthread_mutex_init(&names->lock, NULL); /* cannot fail without attributes */
    return true;
}

void jrt_names_fini(struct jrt_names *names)
{
    jrt_demand(names->count == 0 && names->reserved == 0, "jrt_names_fini with names");
    pthread_mutex_destroy(&names->lock);
    free(names->slots);
    explicit_bzero(&names->key, sizeof names->key);
}

static uint64_t hash_of(const struct jrt_names *names, const char *name)
{
    size_t length = strnlen(name, JRT_NAME_BYTES);
    jrt_demand(length > 0 && length < JRT_NAME_BYTES, "a name of 1 to 63 bytes");
    return jrt_siphash_bytes(&names->key, name, length);
}

static bool is_free(const struct jrt_name *slot) { return slot->text[0] == '\0'; }

/* The slot of the name, or the free slot where it belongs. NULL: there are no slots. */
static struct jrt_name *slot_of(const struct jrt_names *names, const char *name, uint64_t hash)
{
    if (names->capacity == 0) return NULL;
    size_t at = hash & (names->capacity - 1);
    while (!is_free(&names->slots[at]) &&
           (names->slots[at].hash != hash || strcmp(names->slots[at].text, name) != 0)) {
        at = (at + 1) & (names->capacity - 1);
    }
    return &names->slots[at];
}

static bool resize(struct jrt_names *names, size_t capacity)
{
    struct jrt_names old = {.slots = names->slots, .capacity = names->capacity};
    struct jrt_name *slots = jrt_calloc(capacity, sizeof *slots);
    if (slots == NULL) return false;
    names->slots = slots;
    names->capacity = capacity;
    for (size_t i = 0; i < old.capacity; i++) {
        const struct jrt_name *slot = &old.slots[i];
        if (!is_free(slot)) *slot_of(names, slot->text, slot->hash) = *slot;
    }
    free(old.slots);
    return true;
}

/* Makes room for one name more, [names-room]. */
static bool make_room(struct jrt_names *names)
{
    size_t needed = names->count + names->reserved + 1;
    if (needed <= names->capacity / 4 * 3) return true;
    return resize(names, names->capacity == 0 ? CAPACITY_MIN : names->capacity * 2);
}

static void shrink(struct jrt_names *names)
{
    if (names->capacity == CAPACITY_MIN) return;
    if (names->count + names->reserved < names->capacity / 8)
        (void)resize(names, names->capacity / 2);
}

static bool is_there(const struct jrt_name *slot) { return slot != NULL && !is_free(slot); }

/* There is room. */
static void enter(struct jrt_names *names, const char *name, uint64_t hash, const uint64_t value[2])
{
    struct jrt_name *slot = slot_of(names, name, hash);
    slot->hash = hash;
    memcpy(slot->value, value, sizeof slot->value);
    memcpy(slot->text, name, strlen(name) + 1);
    names->count++;
    jrt_debug_invariant("names-room", names->count + names->reserved <= names->capacity / 4 * 3);
}

janus_status jrt_names_put(struct jrt_names *names, const char *name, const uint64_t value[2])
{
    janus_status status = JANUS_OK;
    uint64_t     hash = hash_of(names, name);
    jrt_ctx_probe(); /* a stack overflow must come before the lock */
    jrt_lock(&names->lock);
    if (is_there(slot_of(names, name, hash))) {
        status = JANUS_EXISTS;
    } else if (!make_room(names)) {
        status = JANUS_NO_MEMORY;
    } else {
        enter(names, name, hash, value);
    }
    jrt_unlock(&names->lock);
    return status;
}

bool jrt_names_reserve(struct jrt_names *names)
{
    jrt_ctx_probe(); /* a stack overflow must come before the lock */
    jrt_lock(&names->lock);
    bool room = make_room(names);
    names->reserved += room;
    jrt_unlock(&names->lock);
    return room;
}

/* Under the lock. */
static void use_up(struct jrt_names *names)
{
    jrt_demand(names->reserved > 0, "a reserved place");
    names->reserved--;
}

void jrt_names_unreserve(struct jrt_names *names)
{
    jrt_ctx_probe(); /* a stack overflow must come before the lock */
    jrt_lock(&names->lock);
    use_up(names);
    shrink(names);
    jrt_unlock(&names->lock);
}

janus_status jrt_names_put_reserved(struct jrt_names *names, const char *name,
                                    const uint64_t value[2])
{
    uint64_t hash = hash_of(names, name);
    jrt_ctx_probe(); /* a stack overflow must come before the lock */
    jrt_lock(&names->lock);
    use_up(names);
    bool there = is_there(slot_of(names, name, hash));
    if (there) {
        shrink(names);
    } else {
        enter(names, name, hash, value);
    }
    jrt_unlock(&names->lock);
    return there ? JANUS_EXISTS : JANUS_OK;
}

bool jrt_names_find(struct jrt_names *names, const char *name, uint64_t out[2])
{
    uint64_t hash = hash_of(names, name);
    jrt_ctx_probe(); /* a stack overflow must come before the lock */
    jrt_lock(&names->lock);
    const struct jrt_name *slot = slot_of(names, name, hash);
    bool                   there = is_there(slot);
    if (there) memcpy(out, slot->value, sizeof slot->value);
    jrt_unlock(&names->lock);
    return there;
}

/* Frees a slot, and moves names of its chain back over it, [names-chain]. */
static void leave(struct jrt_names *names, struct jrt_name *slot)
{
    size_t mask = names->capacity - 1, gap = (size_t)(slot - names->slots);
    for (size_t at = (gap + 1) & mask; !is_free(&names->slots[at]); at = (at + 1) & mask) {
        size_t home = names->slots[at].hash & mask;
        /* A name may not move before its home. */
        if (((at - home) & mask) < ((at - gap) & mask)) continue;
        names->slots[gap] = names->slots[at];
        gap = at;
    }
    names->slots[gap] = (struct jrt_name){.hash = 0};
    names->count--;
}

/* Whether a search finds every name, [names-chain]. */
static bool is_whole(const struct jrt_names *names)
{
    if (names->capacity > CAPACITY_MIN) return true; /* looking at all would take too long */
    for (size_t i = 0; i < names->capacity; i++) {
        const struct jrt_name *slot = &names->slots[i];
        if (!is_free(slot) && slot_of(names, slot->text, slot->hash) != slot) return false;
    }
    return true;
}

void jrt_names_drop(struct jrt_names *names, const char *name, const uint64_t value[2])
{
    uint64_t hash = hash_of(names, name);
    jrt_ctx_probe(); /* a stack overflow must come before the lock */
    jrt_lock(&names->lock);
    struct jrt_name *slot = slot_of(names, name, hash);
    if (is_there(slot) && memcmp(slot->value, value, sizeof slot->value) == 0) {
        leave(names, slot);
        jrt_debug_invariant("names-chain", is_whole(names));
        shrink(names);
    }
    jrt_unlock(&names->lock);
}
