/* SPDX-License-Identifier: MIT */
/*
 * The ring of a mailbox: where messages lie, and how the actor takes them.
 *
 * [mail-lone]  Most letters to an actor at rest come alone, and are short. So a place has room for
 *   one of them in itself, and needs a ring only for the second.
 *
 * [mail-window]  If sender and actor took turns at the lock for each message, two workers would
 *   wait for each other most of the time. So an actor that takes the lock for a message gets all
 *   that lie there, as a window: those from `at` to `head`. It takes them one by one without the
 *   lock, and adds to `at` when it has read one. They count as messages of the mailbox until then.
 *   A sender writes behind the window, and learns from `at` how much room there is. If it makes a
 *   larger ring meanwhile, the actor goes on in the old one, which lies there until the window is
 *   closed.
 *   Whatever goes before messages, or changes which ones come next, sets `urgent` under the lock.
 *   Then the actor closes the window and takes the lock. A sender that waits for room is urgent,
 *   too. It sets the word, passes a heavy fence and looks at `at` once more. The actor writes `at`,
 *   passes a light fence and looks at the word before it calls its handler. So one of them sees the
 *   other, and a handler never waits for a sender for which there is room.
 *   If the oldest message may be dropped, there is no window.
 *
 * [mail-count]  Each message is in exactly one of five counts: sent = handled + returned + dead +
 *   lying in the mailbox + in hand. `handled` counts a message when its handler is called.
 */
#include "actor/ring.h"

#include "work/turn.h"

#include <stdlib.h>
#include <string.h>

enum {
    RING_FIRST_LOG = 2,
    RING_KEPT = 32768, /* bytes with which a new ring begins at most */
};

static void free_ring(const struct jrt_actor_place *place, char *ring)
{
    if (ring != NULL && ring != place->lone) free(ring - JRT_RING_HEAD);
}

static struct jrt_ring_head *head_of(char *ring)
{
    return (struct jrt_ring_head *)(void *)(ring - JRT_RING_HEAD);
}

static uint32_t room_of(const struct jrt_actor_place *place)
{
    return place->ring != NULL ? UINT32_C(1) << place->room_log : 0;
}

/* Makes room for one more in the ring. Messages keep their numbers. */
static bool grow(struct jrt_actor_place *place)
{
    size_t   each = jrt_letter_bytes(place);
    char    *old = place->ring;
    bool     lone = old == NULL || old == place->lone;
    uint8_t  room_log = lone ? place->last_log : place->room_log + 1;
    uint32_t at = jrt_load_acquire(&place->at); /* acquire: as in jrt_mail_count. */
    if (old == NULL && each <= sizeof place->lone) {
        jrt_debug_invariant("mail-lone", (uint32_t)place->sent == at);
        place->ring = place->lone; /* [mail-lone] */
        place->room_log = 0;
        return true;
    }
    if (room_log < RING_FIRST_LOG) room_log = RING_FIRST_LOG;
    while (lone && room_log > RING_FIRST_LOG && each << room_log > RING_KEPT) room_log--;
    char *whole = jrt_malloc(JRT_RING_HEAD + (each << room_log));
    if (whole == NULL) return false;
    char    *ring = whole + JRT_RING_HEAD;
    uint32_t old_room = room_of(place), run;
    for (uint32_t number = at; number != (uint32_t)place->sent; number += run) {
        run = old_room - (number & (old_room - 1)); /* the new room is larger: it ends there, too */
        if (run > (uint32_t)place->sent - number) run = (uint32_t)place->sent - number;
        memcpy(jrt_ring_slot(ring, room_log, each, number), jrt_ring_at(place, number), run * each);
    }
    struct jrt_ring_head *head = head_of(ring);
    *head = (struct jrt_ring_head){.old = NULL};
    if (!lone) head->old = head_of(old)->old;
    if (place->head != at && head->old == NULL && !lone) {
        head->old = old; /* the actor reads there, [mail-window] */
    } else {
        free_ring(place, old);
    }
    place->ring = ring;
    place->room_log = place->last_log = room_log;
    return true;
}

/* How many casts need no closer look. Under the lock. */
static void set_until(struct jrt_actor_place *place)
{
    const struct jrt_actor_rare *rare = place->rare;
    uint32_t                     count = jrt_mail_count(place), used = count + place->reserved;
    uint32_t                     limit = jrt_mail_limit(place), more = room_of(place) - count;
    if (rare != NULL) used += rare->aside_count;
    uint32_t allowed = used < limit ? limit - used : 0;
    if (more > allowed) more = allowed;
    if (!place->open || (rare != NULL && rare->senders != NULL)) more = 0;
    place->until = (uint32_t)place->sent + more;
}

bool jrt_ring_put(struct jrt_actor_place *place, const struct jrt_letter_head *head,
                  const void *message)
{
    if (jrt_mail_count(place) == room_of(place) && !grow(place)) return false;
    jrt_ring_write(place, head, message);
    set_until(place);
    return true;
}

bool jrt_mail_take(struct jrt_actor_place *place, struct jrt_letter_head *head, void *message)
{
    uint32_t number = place->head;
    /* relaxed: as below. */
    jrt_debug_invariant("mail-window", jrt_load_relaxed(&place->at) == number);
    if (number == (uint32_t)place->sent) return false;
    const char *at = jrt_ring_at(place, number);
    memcpy(head, at, sizeof *head);
    if (message != NULL) jrt_letter_copy(message, at + sizeof *head, place->message_bytes);
    place->head = number + 1;
    jrt_store_relaxed(&place->at, number + 1); /* relaxed: the lock orders it. */
    if (jrt_unlikely(!head->is_call && head->block != NULL)) place->rare->block_bytes -= head->key;
    return true;
}

void jrt_mail_close_window(struct jrt_actor_place *place)
{
    place->head = jrt_load_relaxed(&place->at); /* relaxed: only the actor writes. */
    if (place->ring == NULL || place->ring == place->lone) return;
    struct jrt_ring_head *head = head_of(place->ring);
    free_ring(place, head->old);
    head->old = NULL;
}

bool jrt_mail_open_window(struct jrt_actor_place *place)
{
    const struct jrt_actor_rare *rare = place->rare;
    if (place->suspended || place->stops != 0 || place->notices != NULL) return false;
    if (rare != NULL && (rare->continues || rare->describes != NULL || rare->senders != NULL))
        return false;
    if (place->spec->options.overflow == JANUS_OVERFLOW_DROP_OLDEST) return false;
    jrt_store_relaxed(&place->urgent, false); /* relaxed: set under the lock, too. */
    place->head = (uint32_t)place->sent;
    return true;
}

void jrt_mail_rest(struct jrt_actor_place *place)
{
    if (jrt_mail_count(place) != 0) return;
    jrt_mail_close_window(place);
    if (place->ring != place->lone) {
        free_ring(place, place->ring);
        place->ring = jrt_letter_bytes(place) <= sizeof place->lone ? place->lone : NULL;
        place->room_log = 0;
    }
    set_until(place); /* so that the next cast finds room at once, [mail-lone] */
}

janus_status jrt_mail_take_up(struct jrt_actor_place *place)
{
    size_t       each = jrt_letter_bytes(place);
    janus_status status = JANUS_OK;
    jrt_place_lock(place);
    struct jrt_actor_rare *rare = place->rare;
    jrt_mail_close_window(place);
    jrt_mail_urge(place);
    while (rare != NULL && rare->aside_count > 0) { /* the newest first, each to the front */
        if (jrt_mail_count(place) == room_of(place) && !grow(place)) {
            status = JANUS_NO_MEMORY;
            break;
        }
        jrt_store_relaxed(&place->at, --place->head); /* relaxed: the lock orders it. */
        memcpy(jrt_ring_at(place, place->head), rare->aside + --rare->aside_count * each, each);
    }
    set_until(place);
    jrt_place_unlock(place);
    return status;
}

bool jrt_ring_drop_oldest(struct jrt_actor_place *place, struct jrt_letter_head *out)
{
    uint32_t count = jrt_mail_count(place);
    size_t   each = jrt_letter_bytes(place);
    for (uint32_t i = 0; i < count; i++) {
        memcpy(out, jrt_ring_at(place, place->head + i), sizeof *out);
        if (out->is_call) continue;
        jrt_turn_toll(jrt_worker_self(), i / 2); /* calls that it looked at and moves */
        for (; i > 0; i--)
            memcpy(jrt_ring_at(place, place->head + i), jrt_ring_at(place, place->head + i - 1),
                   each);
        jrt_store_relaxed(&place->at, ++place->head); /* relaxed: the lock orders it. */
        place->dead++;
        if (out->block != NULL && place->rare != NULL) place->rare->block_bytes -= out->key;
        return true;
    }
    jrt_turn_toll(jrt_worker_self(), count / 4);
    return false;
}
