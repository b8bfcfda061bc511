/* SPDX-License-Identifier: MIT */
/*
 * The table of places.
 *
 * [actor-place]  A handle names a place in one table of the process, as a channel's does. Any
 *   number names a place, or a place that is never used. A look-up needs no lock, and may come
 *   after the actor has ended. The table stays for the life of the process. Places are given out
 *   again.
 *
 * [actor-key]  The second word of a handle is a keyed function (SipHash-2-4) of the place's serial
 *   number and the rights that the handle claims. So a holder cannot compute the key of other
 *   rights, or of another actor. A place keeps the keys of the two common sets of rights, that of
 *   janus_actor_find once it was needed. The others are computed at each call. A serial number
 *   never comes again, so a handle is stale when its place is given out again. Calls compare
 *   without the lock to refuse early, and under the lock to be certain.
 *
 * [place-price]  The ledger of the task that added the child pays for the place, its state and its
 *   specification. The rare part is often made by others, so the ledger's terms bear it.
 *
 * [actor-past]  A place that is free keeps its last serial number, instead of the second key, and
 *   how its last incarnation ended. So the end can be learned until the place is used again.
 */
#include "actor/place.h"

#include "base/siphash.h"
#include "means/call.h"
#include "means/ledger.h"
#include "means/terms.h"
#include "means/trouble.h"
#include "plat/memory.h"

#include <stdlib.h>

enum {
    PLACES = 1 << 22,
    PLACES_LEAST = 1 << 10,
    FIND_RIGHTS = JANUS_ACTOR_MAY_CAST | JANUS_ACTOR_MAY_CALL | JANUS_ACTOR_MAY_WATCH,
};

static struct {
    pthread_mutex_t         lock; /* guards the rest */
    struct jrt_actor_place *free;
    uint32_t                used;
    bool                    seeded;
    struct jrt_sip_key      secret; /* written once, before any use */
    uint64_t                serial;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct jrt_actor_table jrt_actor_table;

static uint64_t key_of(uint64_t serial, unsigned rights)
{
    uint64_t key = jrt_siphash(&table.secret, serial, rights);
    return key != 0 ? key : 1;
}

static bool make_table(void)
{
    for (uint32_t places = PLACES; places >= PLACES_LEAST; places /= 2) {
        void *base = jrt_map_reserve_for_ever((size_t)places * sizeof(struct jrt_actor_place));
        if (base == NULL) continue;
        jrt_store_relaxed(&jrt_actor_table.base, base); /* relaxed: the number follows. */
        /* release: a thread that reads the number reads the base. */
        jrt_store_release(&jrt_actor_table.places, places);
        return true;
    }
    return false;
}

static janus_status take(struct jrt_actor_place **out)
{
    if (!table.seeded && !jrt_random_fill(&table.secret, sizeof table.secret))
        return JANUS_UNAVAILABLE;
    table.seeded = true;
    if (table.free != NULL) {
        *out = table.free;
        table.free = (*out)->next;
    } else {
        /* relaxed, both: under the lock. */
        uint32_t places = jrt_load_relaxed(&jrt_actor_table.places);
        if (places == 0 && !make_table()) return JANUS_NO_MEMORY;
        places = jrt_load_relaxed(&jrt_actor_table.places); /* relaxed: as above. */
        if (table.used == places) return JANUS_FULL;
        *out = jrt_load_relaxed(&jrt_actor_table.base) + table.used; /* relaxed: as above. */
        (*out)->resident.site.line = (int)table.used++;
    }
    (*out)->serial = ++table.serial;
    return JANUS_OK;
}

static void put_back(struct jrt_actor_place *place)
{
    jrt_lock(&table.lock);
    place->next = table.free;
    table.free = place;
    jrt_unlock(&table.lock);
}

/* Counts a place for the pools of the task that pays, [common-share]. FULL: it is put back. */
static janus_status count(struct jrt_actor_place *place, const struct jrt_ledger *ledger)
{
    struct jrt_terms *full;
    /* relaxed: the table exists, and its size stays. */
    uint32_t places = jrt_load_relaxed(&jrt_actor_table.places);
    if (ledger == NULL || jrt_common_take(ledger->terms, JRT_COMMON_PLACES, places, &full))
        return JANUS_OK;
    put_back(place);
    return jrt_trouble_full(JANUS_FULL, JRT_TABLE_PLACES, full, places / 4, places / 4);
}

janus_status jrt_place_take(struct jrt_ledger *ledger, struct jrt_actor_place **out)
{
    /* Here, not where memory is needed: what earlier executions left has no influence. */
    jrt_debug_invariant("place-price", ledger != NULL);
    if (jrt_fails(JRT_FAULT_MEMORY)) return JANUS_NO_MEMORY;
    jrt_lock(&table.lock);
    janus_status status = take(out);
    jrt_unlock(&table.lock);
    if (status == JANUS_OK) status = count(*out, ledger);
    if (status != JANUS_OK) {
        *out = NULL;
        return status;
    }
    struct jrt_actor_place *place = *out;
    uint64_t                serial = place->serial;
    /* A late holder of a stale handle may hold the lock for a moment. */
    jrt_place_lock(place);
    size_t kept = offsetof(struct jrt_actor_place, sent);
    bool   as_owner = place->as_owner; /* how the lock is held now */
    memset((char *)place + kept, 0, sizeof *place - kept);
    place->as_owner = as_owner;
    place->resident.rules = NULL;
    place->serial = serial;
    place->ledger = ledger;
    jrt_place_unlock(place);
    return JANUS_OK;
}

void jrt_place_publish(struct jrt_actor_place *place)
{
    struct jrt_worker *worker = jrt_worker_self();
    jrt_place_lock(place);
    /* The word is held, so no other thread is inside, [chan-bias]. */
    if (worker != NULL && worker->alone && !place->as_owner)
        jrt_chan_lock_adopt(&place->lock, worker->bias);
    jrt_place_unlock(place);
    /* relaxed: nobody knows the place. */
    jrt_debug_invariant("actor-key", place->serial != 0 && jrt_load_relaxed(&place->keys[0]) == 0);
    /* relaxed: [actor-key]; the lock orders the rest. */
    jrt_store_relaxed(&place->keys[0], key_of(place->serial, JANUS_ACTOR_MAY_ALL));
}

void jrt_place_hide(struct jrt_actor_place *place)
{
    jrt_store_relaxed(&place->keys[0], (uint64_t)0);   /* relaxed, both: [actor-key]. */
    jrt_store_relaxed(&place->keys[1], place->serial); /* relaxed: as above; [actor-past] */
}

void jrt_place_give(struct jrt_actor_place *place)
{
    jrt_place_lock(place);
    jrt_place_forget_due(place);
    /* relaxed: under the lock. 0: nobody ever knew it. */
    uint64_t past = jrt_load_relaxed(&place->keys[1]);
    jrt_debug_invariant("actor-past", past == 0 || past == place->serial);
    (void)past;
    place->serial = 0;
    struct jrt_actor_rare *rare = place->rare;
    place->rare = NULL;
    jrt_debug_invariant("actor-place", place->notices == NULL && jrt_mail_count(place) == 0 &&
                                           place->task == NULL);
    jrt_place_unlock(place);
    if (rare != NULL) {
        free(rare->asks.list);
        free(rare->kept.list);
        free(rare->aside);
        free(rare);
        jrt_ledger_unbear(place->ledger, sizeof *rare);
    }
    if (place->ledger != NULL) jrt_common_give(place->ledger->terms, JRT_COMMON_PLACES);
    put_back(place);
}

/* Handles: index << 32 | rights, key. */

janus_actor jrt_place_handle(const struct jrt_actor_place *place, unsigned rights)
{
    /* relaxed: [actor-key]. */
    uint64_t all = jrt_load_relaxed(&place->keys[0]);
    bool     known = rights == JANUS_ACTOR_MAY_ALL && all != 0;
    uint64_t key = known ? all : key_of(place->serial, rights);
    return (janus_actor){{(uint64_t)(jrt_place_index(place) + 1) << 32 | rights, key}};
}

/* Whether the key belongs to what the place is now. */
static bool fits(struct jrt_actor_place *place, unsigned rights, uint64_t key)
{
    /* relaxed, both: [actor-key]. */
    uint64_t all = jrt_load_relaxed(&place->keys[0]);
    if (all == 0 || key == 0) return false;
    if (jrt_likely(rights == JANUS_ACTOR_MAY_ALL)) return key == all;
    if (rights != FIND_RIGHTS) return key == key_of(place->serial, rights);
    uint64_t found = jrt_load_relaxed(&place->keys[1]); /* relaxed: under the lock. */
    if (found == 0) {
        found = key_of(place->serial, rights);
        jrt_store_relaxed(&place->keys[1], found); /* relaxed: as above. */
    }
    return key == found;
}

struct jrt_actor_place *jrt_place_find(janus_actor actor, unsigned rights, janus_status *out_status)
{
    uint64_t first = actor.opaque[0], key = actor.opaque[1];
    unsigned has = (unsigned)(uint32_t)first;
    *out_status = JANUS_STALE;
    if (has == 0 || has > JANUS_ACTOR_MAY_ALL || first >> 32 == 0) return NULL;
    struct jrt_actor_place *place = jrt_place_at((uint32_t)(first >> 32) - 1);
    /* relaxed: a first look. */
    if (place == NULL || jrt_load_relaxed(&place->keys[0]) == 0) return NULL;
    jrt_place_lock(place);
    if (jrt_unlikely(!fits(place, has, key))) {
        jrt_place_unlock(place);
        return NULL;
    }
    if (jrt_likely((has & rights) == rights)) return place;
    jrt_place_unlock(place);
    *out_status = JANUS_CAP_RIGHT;
    return NULL;
}

bool jrt_place_past(janus_actor actor, unsigned rights, janus_end *out)
{
    uint64_t                first = actor.opaque[0];
    unsigned                has = (unsigned)(uint32_t)first;
    struct jrt_actor_place *place = jrt_place_at((uint32_t)(first >> 32) - 1);
    if (place == NULL || has > JANUS_ACTOR_MAY_ALL || (has & rights) != rights) return false;
    jrt_place_lock(place);
    /* relaxed, both: under the lock. */
    uint64_t serial = jrt_load_relaxed(&place->keys[1]);
    bool     past = jrt_load_relaxed(&place->keys[0]) == 0 && serial != 0; /* relaxed */
    past = past && key_of(serial, has) == actor.opaque[1];
    if (past) *out = place->end;
    jrt_place_unlock(place);
    return past;
}

janus_status janus_actor_attenuate(janus_actor actor, unsigned rights, janus_actor *out)
{
    janus_status status;
    jrt_stack_check(); /* [stack-reserve] */
    if (out == NULL || rights == 0 || rights > JANUS_ACTOR_MAY_ALL) return JANUS_INVALID;
    struct jrt_actor_place *place = jrt_place_find(actor, 0, &status);
    if (place == NULL) return jrt_actor_explain(status, "janus_actor_attenuate");
    bool narrower = ((unsigned)(uint32_t)actor.opaque[0] & rights) == rights;
    if (narrower) *out = jrt_place_handle(place, rights);
    jrt_place_unlock(place);
    if (narrower) return JANUS_OK;
    (void)jrt_trouble_said(JANUS_CAP_WIDENS,
                           "the handle lacks a right that the new one should have");
    return jrt_trouble_end(JANUS_CAP_WIDENS, "janus_actor_attenuate");
}

struct jrt_actor_rare *jrt_place_rare(struct jrt_actor_place *place)
{
    if (place->rare != NULL) return place->rare;
    janus_scheduler *scheduler = jrt_supervisor_scheduler(place->supervisor);
    if (!jrt_ledger_bear(place->ledger, sizeof(struct jrt_actor_rare), scheduler->unowned_max))
        return NULL;
    struct jrt_actor_rare *rare = jrt_calloc(1, sizeof *rare);
    if (rare != NULL) {
        rare->senders_end = &rare->senders;
    } else {
        jrt_ledger_unbear(place->ledger, sizeof *rare);
    }
    place->rare = rare;
    return rare;
}

const char *jrt_spec_sort(const struct jrt_spec *spec)
{
    const janus_child *child = &spec->child;
    if (child->task != NULL) return "task";
    if (child->supervisor != NULL) return "supervisor";
    return child->behaviour->name != NULL ? child->behaviour->name : "actor";
}

janus_status janus_actor_current(janus_actor *out)
{
    const struct jrt_actor_place *place = jrt_place_current();
    if (out == NULL) return JANUS_INVALID;
    if (place == NULL) return JANUS_STATE;
    *out = jrt_place_handle(place, JANUS_ACTOR_MAY_ALL);
    return JANUS_OK;
}
