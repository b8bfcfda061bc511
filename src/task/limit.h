/* SPDX-License-Identifier: MIT */
/*
 * The limit of tasks that were started without a capability. It is exact over all workers, and
 * needs no locked instruction where a worker starts and ends its own tasks. The essay is in
 * limit.c.
 */
#ifndef JRT_TASK_LIMIT_H
#define JRT_TASK_LIMIT_H

#include "base/assert.h"
#include "base/atomic.h"
#include "base/list.h"
#include "fiber/fuel.h"
#include "plat/seam.h"

#include <janusrt/budget.h>
#include <janusrt/status.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* One worker's part. */
struct jrt_quota {
    _Atomic(int64_t) used; /* tasks started less tasks ended here; its thread writes it */
    _Atomic(int64_t) base; /* [limit-seize]; it may start tasks until `used` reaches this */
};

struct jrt_limit {
    pthread_mutex_t      lock;    /* guards the rest, and every change of a base */
    int64_t              max;     /* constant; INT64_MAX: none */
    int64_t              central; /* room that is with no worker */
    struct jrt_list_node wishes;  /* waiting spawns, [limit-wish]; next NULL: none yet */
};

struct jrt_worker;
struct jrt_nursery;
struct jrt_terms;
struct jrt_entry;

/* The slow path: from the centre, or from other workers. False: TASK_LIMIT. In limit.c. */
bool jrt_limit_take_slow(struct jrt_worker *worker);

/* Take and return room on a thread that is no worker. */
struct janus_scheduler;
bool jrt_limit_take_outside(struct janus_scheduler *scheduler);
void jrt_limit_give_outside(struct janus_scheduler *scheduler);

/* Moves the room of a worker without a thread, or of an ending seat, to the centre. */
void jrt_quota_close(struct jrt_worker *worker);

/* Waits until jrt_terms_take_child, which returned TASK_LIMIT or was not called, takes a child.
 * Returns its status, or CANCELLED, DEADLOCK, NO_MEMORY; TASK_LIMIT if the caller cannot wait. In
 * wish.c. */
janus_status jrt_wish_wait(struct jrt_nursery *n, const janus_budget *want, struct jrt_entry *out);

/* Whether other spawns already wait for room under the scheduler's limit. */
bool jrt_wish_is_behind(const struct jrt_nursery *n);

/* Wakes the first waiting spawn, if there is room under the scheduler's limit. */
void jrt_wish_serve(struct janus_scheduler *scheduler);

/* Serves under the lock, when room has just come to the centre. */
void jrt_wish_serve_locked(struct janus_scheduler *scheduler);

/* Wakes the first spawn that waits for room under these terms, which was returned. */
void jrt_wish_freed(struct janus_scheduler *scheduler, struct jrt_terms *terms);

/* Whether the limit's quotas have any room; under the lock. */
bool jrt_limit_has_room(struct janus_scheduler *scheduler);

/* The number of live tasks; exact while no task starts or ends. */
int64_t jrt_limit_alive(struct janus_scheduler *scheduler);

/* Takes room in the easy case. `full`: as in jrt_fence_light_as. */
static inline __attribute__((always_inline)) bool jrt_quota_take_fast(struct jrt_quota *quota,
                                                                      bool              full)
{
    if (!JRT_CHECKED) return true;
    int64_t used = jrt_load_relaxed(&quota->used) + 1; /* relaxed: its own. */
    jrt_store_relaxed(&quota->used, used);             /* relaxed: the fence follows. */
    jrt_fence_light_as_seq_cst(full);                  /* seq_cst: [limit-seize]. */
    /* relaxed: [limit-seize]. */
    if (jrt_likely(used <= jrt_load_relaxed(&quota->base))) return true;
    jrt_store_relaxed(&quota->used, used - 1); /* relaxed: the lock follows. */
    return false;
}

/* Takes room for the calling worker. False: the limit is reached. */
static inline bool jrt_quota_take(struct jrt_quota *quota, struct jrt_worker *worker)
{
    return jrt_quota_take_fast(quota, !jrt_fences_are_light()) || jrt_limit_take_slow(worker);
}

static inline void jrt_quota_give(struct jrt_quota *quota)
{
    if (!JRT_CHECKED) return;
    /* relaxed, both: its own. A late reader sees too much. */
    int64_t used = jrt_load_relaxed(&quota->used);
    jrt_store_relaxed(&quota->used, used - 1); /* relaxed: as above. */
}

#endif
