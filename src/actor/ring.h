/* SPDX-License-Identifier: MIT */
/* The ring of a mailbox. The essay is in ring.c. All of this under the lock of the place. */
#ifndef JRT_ACTOR_RING_H
#define JRT_ACTOR_RING_H

#include "actor/place.h"

static inline char *jrt_ring_at(const struct jrt_actor_place *place, uint32_t number)
{
    return jrt_ring_slot(place->ring, place->room_log, jrt_letter_bytes(place), number);
}

static inline bool jrt_mail_has_senders(const struct jrt_actor_place *place)
{
    return place->rare != NULL && place->rare->senders != NULL;
}

static inline uint32_t jrt_mail_limit(const struct jrt_actor_place *place)
{
    uint32_t limit = place->spec->options.max_messages;
    return limit != 0 ? limit : JRT_ACTOR_MESSAGES;
}

/* Places that are taken: messages, those put aside, and those reserved for served senders. */
static inline uint32_t jrt_mail_taken(const struct jrt_actor_place *place)
{
    uint32_t aside = place->rare != NULL ? place->rare->aside_count : 0;
    return jrt_mail_count(place) + aside + place->reserved;
}

/* Writes a message; there is room in the ring. Under the lock. */
static inline __attribute__((always_inline)) void jrt_ring_write(struct jrt_actor_place *place,
                                                                 const struct jrt_letter_head *head,
                                                                 const void *message)
{
    char *at = jrt_ring_at(place, (uint32_t)place->sent);
    memcpy(at, head, sizeof *head);
    jrt_letter_copy(at + sizeof *head, message, place->message_bytes);
    place->sent++;
}

/* Writes a message, in a larger ring if necessary. False: no memory. */
bool jrt_ring_put(struct jrt_actor_place *place, const struct jrt_letter_head *head,
                  const void *message);
/* Takes the oldest cast out for DROP_OLDEST. False: no cast is queued. */
bool jrt_ring_drop_oldest(struct jrt_actor_place *place, struct jrt_letter_head *out);

#endif
