/* SPDX-License-Identifier: MIT */
/* Room for children in a nursery with max_children, and the queue of spawns that wait for it. */
#include "means/room.h"

#include "base/assert.h"
#include "base/atomic.h"
#include "base/list.h"
#include "plat/seam.h"
#include "task/nursery.h"
#include "work/work.h"

/* Takes an entry off the queue and wakes its spawner; under the lock. */
static void let_go(struct jrt_spawner *spawner, janus_status outcome)
{
    jrt_list_remove(&spawner->link);
    spawner->outcome = outcome;
    jrt_store_relaxed(&spawner->woken, 1u); /* relaxed: under the lock, which the waiter takes. */
    if (spawner->task != NULL) {
        (void)jrt_task_wake(spawner->task, JANUS_OK);
    } else {
        jrt_futex_wake(&spawner->woken, 1);
    }
}

static struct jrt_spawner *first_of(struct jrt_nursery *n)
{
    return jrt_list_entry(n->spawners.next, struct jrt_spawner, link);
}

void jrt_room_give_locked(struct jrt_nursery *n)
{
    if (jrt_list_empty(&n->spawners)) {
        jrt_fetch_sub_relaxed(&n->alive, 1u); /* relaxed: under the lock. */
    } else {
        /* relaxed: under the lock. */
        jrt_debug_invariant("room-hand", jrt_load_relaxed(&n->alive) == n->max_children);
        let_go(first_of(n), JANUS_OK);
    }
}

void jrt_room_give(struct jrt_nursery *n)
{
    if (n->when_full == JANUS_WHEN_FULL_REFUSE) {
        jrt_fetch_sub_relaxed(&n->alive, 1u); /* relaxed: a count. It guards no memory. */
        return;
    }
    jrt_nursery_lock(n);
    jrt_room_give_locked(n);
    jrt_nursery_unlock(n);
}

void jrt_room_close_locked(struct jrt_nursery *n)
{
    while (!jrt_list_empty(&n->spawners)) let_go(first_of(n), JANUS_CLOSED);
}

janus_status jrt_room_take_or_refuse(struct jrt_nursery *n)
{
    uint32_t alive = jrt_load_relaxed(&n->alive); /* relaxed: a count. It guards no memory. */
    do {
        if (alive >= n->max_children) return JANUS_FULL;
    } while (!jrt_cas_relaxed(&n->alive, &alive, alive + 1)); /* relaxed: as above. */
    return JANUS_OK;
}

/* OK, CLOSED or FULL. On FULL, the entry, if given, is on the queue. */
janus_status jrt_room_take_or_queue(struct jrt_nursery *n, struct jrt_spawner *spawner)
{
    janus_status status = JANUS_FULL;
    jrt_nursery_lock(n);
    uint32_t alive = jrt_load_relaxed(&n->alive); /* relaxed: under the lock. */
    if (jrt_nursery_state(n) != JANUS_NURSERY_STATE_OPEN) {
        status = JANUS_CLOSED;
    } else if (alive < n->max_children && jrt_list_empty(&n->spawners)) {
        jrt_store_relaxed(&n->alive, alive + 1); /* relaxed: under the lock. */
        status = JANUS_OK;
    } else if (spawner != NULL) {
        jrt_list_push_front(n->spawners.prev, &spawner->link); /* at the end */
    }
    jrt_nursery_unlock(n);
    return status;
}
