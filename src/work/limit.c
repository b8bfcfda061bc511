/* SPDX-License-Identifier: MIT */
/*
 * [limit-seize]  Room for tasks is with the workers and in the centre:
 *
 *     room of a worker = base - used        never below 0; used = started - ended, here
 *     sum of all rooms + centre + tasks alive = max
 *
 *   A worker that starts a task counts it in `used`, passes a light fence, and reads `base`. If
 *   there was no room, it takes the count back and calls this file.
 *
 *   A worker that wants another's room lowers that `base` by what seems free, passes a heavy
 *   fence, and reads `used`. Either the other worker saw the lower base, or its count is visible
 *   here. The thief returns what was used after all, but no more: the other worker may be taking a
 *   count back. Only a holder of the lock changes a base. A late read of `used` only delays the
 *   end of a task.
 *
 *   A task that ends makes room on the worker where it ends. So where one worker starts tasks that
 *   another ends, the room gathers there. A worker that runs out of tasks returns what it has above
 *   a share to the centre, which needs no fence. A piece of a fork never seizes: without room in
 *   the centre the caller makes that call itself. Otherwise a parallel call under a small limit
 *   would interrupt all workers at every tenth piece.
 *
 *   A refusal needs no fence, so a fork bomb at its limit does not interrupt all others. Without a
 *   fence, a worker's room looks larger than it is, or an end seems later. So a refused spawn has
 *   met a moment with all room in use. Ends that came meanwhile count as not yet there, and starts
 *   under way as done. models/limit.pml tries all orders.
 */
#include "work/limit.h"

#include "task/limit.h"
#include "task/worker.h"
#include "work/work.h"

enum { PORTION = 64 };

static int64_t room_of(struct jrt_quota *quota)
{
    /* relaxed, both: the caller has a fence after this, or needs none. */
    int64_t used = jrt_load_relaxed(&quota->used);
    return jrt_load_relaxed(&quota->base) - used; /* relaxed: as above. */
}

static void change_base(struct jrt_quota *quota, int64_t by)
{
    int64_t base = jrt_load_relaxed(&quota->base); /* relaxed, both: under the lock. */
    jrt_store_relaxed(&quota->base, base + by);    /* relaxed: [limit-seize]. */
}

/* Gathers the room that other workers do not use into the centre; under the lock. */
static void seize(janus_scheduler *scheduler, const struct jrt_worker *self)
{
    int64_t hope = 0;
    for (uint32_t i = 0; i < scheduler->worker_count; i++) {
        struct jrt_quota *quota = &scheduler->workers[i].quota;
        int64_t           room = room_of(quota);
        if (&scheduler->workers[i] != self && room > 0) hope += room;
    }
    if (hope == 0) return;
    for (uint32_t i = 0; i < scheduler->worker_count; i++) {
        struct jrt_worker *worker = &scheduler->workers[i];
        int64_t            room = room_of(&worker->quota);
        worker->seized = worker != self && room > 0 ? room : 0;
        change_base(&worker->quota, -worker->seized);
        scheduler->limit.central += worker->seized;
    }
    jrt_fence_heavy_seq_cst(); /* seq_cst: [limit-seize]. */
    for (uint32_t i = 0; i < scheduler->worker_count; i++) {
        struct jrt_worker *worker = &scheduler->workers[i];
        int64_t            used = -room_of(&worker->quota);
        /* A count above that is about to be taken back. */
        if (used > worker->seized) used = worker->seized;
        if (used <= 0) continue;
        change_base(&worker->quota, used);
        scheduler->limit.central -= used;
    }
    jrt_invariant("limit-seize", scheduler->limit.central >= 0);
}

/* Takes up to `want` from the centre; under the lock. */
static int64_t take_central(janus_scheduler *scheduler, int64_t want)
{
    struct jrt_limit *limit = &scheduler->limit;
    /* Not all at once: others start tasks too, and would have to seize a worker's room. */
    int64_t share = limit->central / (2 * (int64_t)scheduler->worker_count) + 1;
    if (want > share) want = share;
    if (want > limit->central) want = limit->central;
    limit->central -= want;
    return want;
}

/* Counts a task that the worker starts, if the worker or the centre has room. `seizes`: otherwise
 * also takes the room of others. */
static bool take(struct jrt_worker *worker, bool seizes)
{
    struct jrt_quota *quota = &worker->quota;
    janus_scheduler  *scheduler = worker->scheduler;
    jrt_lock(&scheduler->limit.lock);
    if (room_of(quota) <= 0) {
        if (seizes && scheduler->limit.central == 0) seize(scheduler, worker);
        change_base(quota, take_central(scheduler, PORTION));
    }
    bool room = room_of(quota) > 0;
    if (room) {
        int64_t used = jrt_load_relaxed(&quota->used); /* relaxed, both: its own. */
        jrt_store_relaxed(&quota->used, used + 1);     /* relaxed: as above. */
    }
    jrt_unlock(&scheduler->limit.lock);
    return room;
}

bool jrt_limit_take_slow(struct jrt_worker *worker) { return take(worker, true); }
bool jrt_limit_take_meekly(struct jrt_worker *worker) { return take(worker, false); }

void jrt_quota_level(struct jrt_worker *worker)
{
    janus_scheduler  *scheduler = worker->scheduler;
    struct jrt_limit *limit = &scheduler->limit;
    int64_t           keeps = limit->max / (4 * (int64_t)scheduler->worker_count);
    if (limit->max == JRT_LIMIT_PLENTY) return; /* nobody ever runs out */
    if (keeps > PORTION) keeps = PORTION;
    if (room_of(&worker->quota) <= 2 * keeps) return; /* its own; a seizure only makes it less */
    jrt_lock(&limit->lock);
    int64_t surplus = room_of(&worker->quota) - keeps;
    if (surplus > 0) {
        change_base(&worker->quota, -surplus);
        limit->central += surplus;
        jrt_wish_serve_locked(scheduler);
    }
    jrt_unlock(&limit->lock);
}

bool jrt_limit_take_outside(janus_scheduler *scheduler)
{
    jrt_lock(&scheduler->limit.lock);
    if (scheduler->limit.central == 0) seize(scheduler, NULL);
    bool room = take_central(scheduler, 1) == 1;
    jrt_unlock(&scheduler->limit.lock);
    return room;
}

void jrt_limit_give_outside(janus_scheduler *scheduler)
{
    jrt_lock(&scheduler->limit.lock);
    scheduler->limit.central++;
    jrt_wish_serve_locked(scheduler);
    jrt_unlock(&scheduler->limit.lock);
}

void jrt_quota_close(struct jrt_worker *worker)
{
    struct jrt_limit *limit = &worker->scheduler->limit;
    jrt_lock(&limit->lock);
    int64_t room = room_of(&worker->quota);
    change_base(&worker->quota, -room);
    limit->central += room;
    if (room > 0) jrt_wish_serve_locked(worker->scheduler);
    jrt_unlock(&limit->lock);
}

bool jrt_limit_has_room(janus_scheduler *scheduler)
{
    bool room = scheduler->limit.central > 0;
    for (uint32_t i = 0; i < scheduler->worker_count && !room; i++) {
        room = room_of(&scheduler->workers[i].quota) > 0;
    }
    return room;
}

int64_t jrt_limit_alive(janus_scheduler *scheduler)
{
    jrt_lock(&scheduler->limit.lock);
    int64_t alive = scheduler->limit.max - scheduler->limit.central;
    for (uint32_t i = 0; i < scheduler->worker_count; i++) {
        alive -= room_of(&scheduler->workers[i].quota);
    }
    jrt_unlock(&scheduler->limit.lock);
    return alive;
}

/* Spawns that wait for room. The essay is in nursery/wish.c. */

static void poke(struct jrt_wish *wish)
{
    wish->poked = true;
    if (!wish->parked) return;
    wish->parked = false;
    if (wish->task != NULL) {
        (void)jrt_task_wake(wish->task, JANUS_OK);
    } else {
        jrt_store_relaxed(&wish->woken, 1u); /* relaxed: the lock, which the waiter takes. */
        jrt_futex_wake(&wish->woken, 1);
    }
}

void jrt_wish_poke_first(struct jrt_list_node *wishes)
{
    if (wishes->next == NULL || jrt_list_empty(wishes)) return;
    poke(jrt_list_entry(wishes->next, struct jrt_wish, link));
}

void jrt_wish_serve_locked(janus_scheduler *scheduler)
{
    if (jrt_limit_has_room(scheduler)) jrt_wish_poke_first(&scheduler->limit.wishes);
}

void jrt_wish_serve(janus_scheduler *scheduler)
{
    jrt_lock(&scheduler->limit.lock);
    jrt_wish_serve_locked(scheduler);
    jrt_unlock(&scheduler->limit.lock);
}

void jrt_wish_freed(janus_scheduler *scheduler, struct jrt_list_node *wishes)
{
    jrt_lock(&scheduler->limit.lock);
    jrt_wish_poke_first(wishes);
    jrt_unlock(&scheduler->limit.lock);
}
