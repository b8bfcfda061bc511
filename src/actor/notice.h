/* SPDX-License-Identifier: MIT */
/* Notices, inside. The essays are in notice.c and watch.c. */
#ifndef JRT_ACTOR_NOTICE_H
#define JRT_ACTOR_NOTICE_H

#include "actor/place.h"

#include "work/turn.h"

struct jrt_actor_watch {
    struct jrt_actor_watch *next, **link;         /* of the watched place */
    struct jrt_actor_watch *own_next, **own_link; /* of the watcher */
    struct jrt_actor_place *watcher;
    uint64_t                watcher_serial, number;
    uint32_t                watcher_incarnation;
    struct jrt_notice       notice; /* last */
};

/* Memory of `bytes` that the current task pays for. */
void *jrt_notice_room(size_t bytes, struct jrt_ledger **out_ledger, janus_status *out_status);

/* Takes a notice out of the queue. Under the lock. False: it is not there. */
bool jrt_notice_take_out(struct jrt_actor_place *place, const struct jrt_notice *notice);
/* The queued notice of a timer or a watch with this number. Under the lock. Adds to *steps. */
struct jrt_notice *jrt_notice_find(struct jrt_actor_place *place, janus_letter_kind kind,
                                   uint64_t number, uint32_t *steps);

/* Ends the watches that an incarnation made. */
void jrt_watches_end(struct jrt_actor_place *place);

/* A call has walked along a list, and takes longer than its op, [turn-toll]. Without locks. */
static inline void jrt_notice_walked(uint32_t steps)
{
    jrt_turn_toll(jrt_worker_self(), steps / 4);
}

#endif
