/* SPDX-License-Identifier: MIT */
/*
 * [limit-wish]  Spawns may wait for room under TASK_LIMIT, the scheduler's limit or a capability's.
 *   Programs that do not wait pay nothing: the end of a child notifies nobody.
 *
 *   A waiting spawn has a wish on the list of its limit, under the lock of the scheduler's limit.
 *   The wish is there from the begin of the wait until the spawn has room or gives up. The
 *   scheduler counts all wishes. A wish is *poked* when there may be room. Only the first of a
 *   list tries, and it clears `poked` before it does. So room that comes during a try pokes it
 *   again. A wish that leaves a list pokes the next one: it may have been poked itself, and have
 *   used up that room.
 *
 *   One atomic step returns room under a capability. Its giver passes a light fence, reads the
 *   count of wishes, and pokes. A spawn does so, too, if it took room under one capability and was
 *   refused under the next: others may have found no room meanwhile. Room under the scheduler's
 *   limit is a plain store of the worker where a child ends. That worker reads the count when it
 *   looks after timers: at the end of a turn, every few dozen tasks, and before it sleeps. A
 *   worker that computes without a call does not. So while a spawn waits, one sleeper wakes up
 *   every millisecond and looks in its place.
 *
 *   A spawn counts its wish, passes a heavy fence, and then tries first. So either this try sees
 *   the room, or the worker sees the count. models/wish.pml tries all orders.
 *
 *   Room is not handed over. Until the first wish tries, a spawn that does not wait may take it.
 */
#include "cancel/cancel.h"
#include "cancel/wait.h"
#include "means/terms.h"
#include "nursery/nursery.h"
#include "task/nursery.h"
#include "task/purse.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/limit.h"
#include "work/turn.h"
#include "work/work.h"

bool jrt_wish_is_behind(const struct jrt_nursery *n)
{
    janus_scheduler *scheduler = n->scheduler;
    uint32_t         implicit = n->terms != NULL ? n->terms->implicit : scheduler->implicit;
    if ((implicit & 1u << JANUS_CAP_KIND_SPAWN) == 0) return false; /* the limit is not known yet */
    if (jrt_load_relaxed(&scheduler->wishes) == 0) return false;    /* relaxed: a hint. */
    jrt_lock(&scheduler->limit.lock);
    const struct jrt_list_node *list = &scheduler->limit.wishes;
    bool                        behind = list->next != NULL && !jrt_list_empty(list);
    jrt_unlock(&scheduler->limit.lock);
    return behind;
}

/* Joins the queue of a limit; NULL: the scheduler's. */
static struct jrt_list_node *join(janus_scheduler *scheduler, struct jrt_terms *terms,
                                  struct jrt_wish *wish)
{
    struct jrt_list_node *list = terms != NULL ? &terms->wishes : &scheduler->limit.wishes;
    jrt_lock(&scheduler->limit.lock);
    if (list->next == NULL) jrt_list_init(list);
    jrt_list_push_front(list->prev, &wish->link);  /* at the end */
    jrt_fetch_add_relaxed(&scheduler->wishes, 1u); /* relaxed: the fence follows. */
    jrt_unlock(&scheduler->limit.lock);
    jrt_turn_toll(jrt_worker_self(), JRT_TOLL_FENCE);
    jrt_fence_heavy_seq_cst();          /* seq_cst: [limit-wish]. */
    jrt_idle_wake_keeper(scheduler, 0); /* it looks every now and then */
    return list;
}

static void leave(janus_scheduler *scheduler, struct jrt_list_node *list, struct jrt_wish *wish)
{
    jrt_lock(&scheduler->limit.lock);
    jrt_list_remove(&wish->link);
    /* relaxed: a count that is too high does no harm. */
    jrt_fetch_sub_relaxed(&scheduler->wishes, 1u);
    jrt_wish_poke_first(list);
    jrt_unlock(&scheduler->limit.lock);
}

/* Whether the wish is the first, and so may try. */
static bool may_try(janus_scheduler *scheduler, const struct jrt_list_node *list,
                    struct jrt_wish *wish)
{
    jrt_lock(&scheduler->limit.lock);
    wish->poked = false;
    bool first = list->next == &wish->link;
    jrt_unlock(&scheduler->limit.lock);
    return first;
}

/* Begins a wait. False: the wish was poked meanwhile. */
static bool begin_wait(janus_scheduler *scheduler, struct jrt_wish *wish)
{
    jrt_lock(&scheduler->limit.lock);
    wish->parked = !wish->poked;
    bool parked = wish->parked;
    jrt_store_relaxed(&wish->woken, 0u); /* relaxed: under the lock. */
    jrt_unlock(&scheduler->limit.lock);
    return parked;
}

/* From here on nobody wakes it. */
static void end_wait(janus_scheduler *scheduler, struct jrt_wish *wish)
{
    jrt_lock(&scheduler->limit.lock);
    wish->parked = false;
    jrt_unlock(&scheduler->limit.lock);
}

static janus_status join_wait(struct jrt_waiting *waiting, struct jrt_task *task)
{
    bool waits = begin_wait(task->nursery->scheduler, (struct jrt_wish *)waiting);
    return waits ? JANUS_WOULD_WAIT : JANUS_OK;
}

static janus_status leave_wait(struct jrt_waiting *waiting, struct jrt_task *task,
                               janus_status ended)
{
    end_wait(task->nursery->scheduler, (struct jrt_wish *)waiting);
    return ended;
}

static janus_status wait_as_task(struct jrt_wish *wish)
{
    if (jrt_task_cancel_reason(wish->task) != JANUS_CANCEL_REASON_NONE) return JANUS_CANCELLED;
    wish->waiting = (struct jrt_waiting){
        .why = JRT_WAIT_LIMIT, .deadline_ns = JRT_NEVER, .join = join_wait, .leave = leave_wait};
    return jrt_wait(jrt_worker_self(), &wish->waiting);
}

static janus_status wait_as_thread(struct jrt_nursery *n, struct jrt_wish *wish)
{
    if (!begin_wait(n->scheduler, wish)) return JANUS_OK;
    jrt_nursery_thread_waits(n);
    (void)jrt_wait_as_thread(&wish->woken, JRT_NEVER);
    jrt_nursery_thread_goes_on(n);
    end_wait(n->scheduler, wish);
    return JANUS_OK;
}

static janus_status wait_poked(struct jrt_nursery *n, struct jrt_wish *wish)
{
    return wish->task != NULL ? wait_as_task(wish) : wait_as_thread(n, wish);
}

/* Of plain threads only the owner may wait. Others, such as a callback, must not. */
static bool can_wait(const struct jrt_nursery *n, const struct jrt_worker *worker)
{
    return worker != NULL ? worker->scheduler == n->scheduler : jrt_nursery_is_mine(n);
}

janus_status jrt_wish_wait(struct jrt_nursery *n, const janus_budget *want,
                           struct jrt_admission *out)
{
    janus_scheduler         *scheduler = n->scheduler;
    const struct jrt_worker *worker = jrt_worker_self();
    if (!can_wait(n, worker)) return JANUS_TASK_LIMIT;
    struct jrt_wish       wish = {.task = worker != NULL ? worker->current : NULL};
    struct jrt_terms     *limit = out->full;
    struct jrt_list_node *list = join(scheduler, limit, &wish);
    janus_status          status = JANUS_OK;
    while (status == JANUS_OK) {
        if (may_try(scheduler, list, &wish)) {
            status = jrt_terms_take_child(n, jrt_worker_self(), want, out);
            if (status != JANUS_TASK_LIMIT) break;
            status = JANUS_OK;
            if (out->full != limit) { /* another limit is in the way */
                leave(scheduler, list, &wish);
                limit = out->full;
                list = join(scheduler, limit, &wish);
                continue;
            }
        }
        status = wait_poked(n, &wish);
        if (status == JANUS_OK && jrt_nursery_state(n) != JANUS_NURSERY_STATE_OPEN)
            status = JANUS_CLOSED;
    }
    leave(scheduler, list, &wish);
    return status;
}
