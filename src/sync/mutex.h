/* SPDX-License-Identifier: MIT */
/* The mutex inside janus_mutex, also for conditions and onces. The essay is in mutex.c. */
#ifndef JRT_SYNC_MUTEX_H
#define JRT_SYNC_MUTEX_H

#include "means/holder.h"
#include "sync/queue.h"

#include <janusrt/sync.h>

struct jrt_mutex {
    struct jrt_sync    sync;
    struct jrt_contest contest; /* in the holder's list while there is a queue */
    uint32_t           depth;   /* locks beyond the first; only the holder uses it */
    bool               recursive;
    _Atomic(uint8_t)   abandoned; /* [mutex-abandoned] */
};

_Static_assert(sizeof(struct jrt_mutex) <= sizeof(janus_mutex), "it fits its storage");

extern const struct jrt_sync_kind jrt_mutex_kind, jrt_once_kind;

/* Locks it. The caller obeys a CANCELLED. `kind`: its name in dumps. */
janus_status jrt_mutex_lock(struct jrt_mutex *mutex, const struct jrt_sync_kind *kind,
                            uint64_t deadline_ns);

/* OK. STATE: the caller does not hold it. */
janus_status jrt_mutex_unlock(struct jrt_mutex *mutex);

bool jrt_mutex_is_mine(const struct jrt_mutex *mutex);

#endif
