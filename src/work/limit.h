/* SPDX-License-Identifier: MIT */
/*
 * The limit on live tasks that have no capability: exact, over all workers. A worker that starts
 * and ends its own tasks needs no locked instruction. The essay is in limit.c.
 */
#ifndef JRT_WORK_LIMIT_H
#define JRT_WORK_LIMIT_H

#include "fiber/fuel.h"
#include "plat/seam.h"
#include "task/worker.h"

/* The slow path: from the centre, or from other workers. False: TASK_LIMIT. In limit.c. */
bool jrt_limit_take_slow(struct jrt_worker *worker);

/* Takes room from the worker or the centre, and leaves the other workers' room to them. */
bool jrt_limit_take_meekly(struct jrt_worker *worker);

/* Returns a worker's room above its share to the centre. Its thread calls this when it has no
 * task. */
void jrt_quota_level(struct jrt_worker *worker);

/* Take and return room on a thread that is no worker. */
bool jrt_limit_take_outside(struct janus_scheduler *scheduler);
void jrt_limit_give_outside(struct janus_scheduler *scheduler);

/* Moves the room of a worker without a thread, or of an ending seat, to the centre. */
void jrt_quota_close(struct jrt_worker *worker);

/* Wakes the first waiting spawn, if there is room under the scheduler's limit. */
void jrt_wish_serve(struct janus_scheduler *scheduler);

/* Serves under the lock, when room has just come to the centre. */
void jrt_wish_serve_locked(struct janus_scheduler *scheduler);

/* A task gave room back under the limit of this queue: wakes the first waiting spawn. */
void jrt_wish_freed(struct janus_scheduler *scheduler, struct jrt_list_node *wishes);

/* A spawn that waits for room, in its frame; all under the limit's lock. The essay is in wish.c. */
struct jrt_wish {
    struct jrt_waiting   waiting; /* first; a task */
    struct jrt_list_node link;
    struct jrt_task     *task;   /* NULL: a plain thread */
    bool                 poked;  /* there may be room since its last try */
    bool                 parked; /* it waits to be poked */
    _Atomic(uint32_t)    woken;  /* a thread's futex */
};

/* Wakes the first of a queue, if there is one. Under the lock. */
void jrt_wish_poke_first(struct jrt_list_node *wishes);

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

/* Takes room for a task that need not start. False also if other workers have the room. */
static inline bool jrt_quota_take_meekly(struct jrt_quota *quota, struct jrt_worker *worker)
{
    return jrt_quota_take_fast(quota, !jrt_fences_are_light()) || jrt_limit_take_meekly(worker);
}

static inline void jrt_quota_give(struct jrt_quota *quota)
{
    if (!JRT_CHECKED) return;
    jrt_own_add(&quota->used, -1); /* a late reader sees too much */
}

#endif
