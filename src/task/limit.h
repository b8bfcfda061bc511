/* SPDX-License-Identifier: MIT */
/*
 * How many tasks may live that nobody gave a capability for: exact, over all workers, and without a
 * locked instruction where a worker starts and ends its own. The essay is in limit.c.
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
    _Atomic(int64_t) used; /* tasks it started less those that ended here; its thread's to write */
    _Atomic(int64_t) base; /* [limit-seize] it may start until `used` is this */
};

struct jrt_limit {
    pthread_mutex_t      lock;    /* guards the rest, and every change of a base */
    int64_t              max;     /* constant; INT64_MAX: none */
    int64_t              central; /* not with any worker */
    struct jrt_list_node wishes;  /* spawns that wait for it, [limit-wish]; next NULL: none yet */
};

struct jrt_worker;
struct jrt_nursery;
struct jrt_terms;
struct jrt_entry;

/* The slow parts: from the centre, from other workers; FULL tells TASK_LIMIT. In limit.c. */
bool jrt_limit_take_slow(struct jrt_worker *worker);

/* From a thread that is no worker; and back. */
struct janus_scheduler;
bool jrt_limit_take_outside(struct janus_scheduler *scheduler);
void jrt_limit_give_outside(struct janus_scheduler *scheduler);

/* The worker's thread is gone, or it is a seat's that ends: its room goes to the centre. */
void jrt_quota_close(struct jrt_worker *worker);

/* Waits until jrt_terms_admit, which said TASK_LIMIT or was not asked, lets a child in. What it
 * says then; or CANCELLED, DEADLOCK, NO_MEMORY; TASK_LIMIT where nobody can wait. From wish.c. */
janus_status jrt_wish_wait(struct jrt_nursery *n, const janus_budget *want, struct jrt_entry *out);

/* Whether others wait already for room under the scheduler's limit. */
bool jrt_wish_is_behind(const struct jrt_nursery *n);

/* Somebody waits: wakes the first, if there is room under the scheduler's limit. */
void jrt_wish_serve(struct janus_scheduler *scheduler);

/* The same under its lock, where room has just come to the centre. */
void jrt_wish_serve_locked(struct janus_scheduler *scheduler);

/* Room under these terms was given back: wakes the first who waits for it. */
void jrt_wish_freed(struct janus_scheduler *scheduler, struct jrt_terms *terms);

/* Whether the limit's quotas have any room; under the lock. */
bool jrt_limit_has_room(struct janus_scheduler *scheduler);

/* Alive now; exact when nobody starts or ends any. */
int64_t jrt_limit_alive(struct janus_scheduler *scheduler);

/* One more, if it is easy; `full`: as in jrt_fence_light_as. */
static inline __attribute__((always_inline)) bool jrt_quota_take_easily(struct jrt_quota *quota,
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

/* One more, for the worker that asks; false: the limit is reached. */
static inline bool jrt_quota_take(struct jrt_quota *quota, struct jrt_worker *worker)
{
    return jrt_quota_take_easily(quota, !jrt_fences_are_light()) || jrt_limit_take_slow(worker);
}

static inline void jrt_quota_give(struct jrt_quota *quota)
{
    if (!JRT_CHECKED) return;
    /* relaxed, both: its own; who reads it late is told too much. */
    int64_t used = jrt_load_relaxed(&quota->used);
    jrt_store_relaxed(&quota->used, used - 1); /* relaxed: as above. */
}

#endif
