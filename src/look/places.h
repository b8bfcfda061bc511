/* SPDX-License-Identifier: MIT */
/* The channels and handles at which tasks wait, for dumps. The essay is in places.c. */
#ifndef JRT_LOOK_PLACES_H
#define JRT_LOOK_PLACES_H

#include "task/task.h"

struct jrt_place {
    const struct jrt_task *task;  /* only for comparison */
    unsigned               order; /* in the order of collection */
    char                   name[JANUS_NAME_BYTES];
};

struct jrt_places {
    struct jrt_place *list; /* owned; NULL: none */
    size_t            count;
};

/* Adds one place. False: there is no room for more. */
typedef bool jrt_place_told(void *subject, const struct jrt_task *task, const char *name);

/* Calls `told` for each task that waits at a named channel, or at a handle. */
typedef void jrt_places_teller(jrt_place_told *told, void *subject);

/* The tellers, set by the rooms of channels and of handles with their first object. */
enum { JRT_PLACES_CHANNELS, JRT_PLACES_HANDLES, JRT_PLACES_TELLERS };
extern _Atomic(jrt_places_teller *) jrt_places_here[JRT_PLACES_TELLERS];

/* Collects the places. The caller holds no lock. Without memory the list is empty. */
void jrt_places_collect(struct jrt_places *places);
void jrt_places_free(struct jrt_places *places);

/* The channel at which a task waits, or the first of several, or the handle. NULL: neither. */
const char *jrt_places_find(const struct jrt_places *places, const struct jrt_task *task);

#endif
