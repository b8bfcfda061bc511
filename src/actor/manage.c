/* SPDX-License-Identifier: MIT */
/* Managing children, and waiting for them: the public calls. The essay is in step.c. */
#include "actor/supervisor.h"

#include "cancel/cancel.h"
#include "means/call.h"
#include "means/terms.h"
#include "means/trouble.h"
#include "nursery/nursery.h"
#include "work/turn.h"
#include "work/work.h"

#include <stdio.h>

/* Waiting at a place. */

/* Adds a waiter; the caller holds the place's lock. */
void jrt_waiter_begin(struct jrt_actor_place *place, struct jrt_actor_waiter *waiter,
                      enum jrt_awaited what)
{
    *waiter = (struct jrt_actor_waiter){.what = what};
    janus_waitpoint_init(&waiter->point, JANUS_WAKER_TASKS);
    jrt_waiter_link(place, waiter);
}

/* Waits. The place may be used by another meanwhile; then the waiter is done. */
janus_status jrt_waiter_wait(struct jrt_actor_place *place, struct jrt_actor_waiter *waiter,
                             const char *reason, uint64_t deadline_ns)
{
    janus_status status = janus_waitpoint_wait_until(&waiter->point, reason, deadline_ns);
    if (status == JANUS_OK) return waiter->status;
    jrt_place_lock(place);
    bool done = waiter->done;
    if (!done) jrt_waiter_unlink(waiter);
    jrt_place_unlock(place);
    if (!done) return status;
    janus_shield_begin();
    while (janus_waitpoint_wait(&waiter->point, reason) != JANUS_OK) {
    } /* it is about to come */
    janus_shield_end();
    return waiter->status;
}

/* Whether the terms take something away. A policy of exhaustion alone takes nothing: janus_serve
 * has one for its connections, and these may add actors. */
static bool is_narrower(const struct jrt_terms *terms)
{
    return terms->owns_account || terms->bound != 0 || terms->max_tasks != 0 ||
           terms->max_handles != 0 || terms->max_threads != 0 || terms->scope ||
           !jrt_backend_on_workers(terms->backend);
}

/* Explains what makes the caller's terms narrower. Returns CAP_WIDENS. */
static janus_status tell_narrower(const struct jrt_nursery *n, const struct jrt_terms *terms)
{
    char clause[240], whose[48] = "this task";
    if (terms->of != NULL)
        (void)snprintf(whose, sizeof whose, "nursery \"%.31s\"", jrt_nursery_name(terms->of));
    (void)snprintf(clause, sizeof clause,
                   "%s has a budget, a capability or a limit, and children of supervisor \"%.31s\" "
                   "are outside of it. Open a supervisor inside, or add from outside",
                   whose, jrt_nursery_name(n));
    return jrt_trouble_said(JANUS_CAP_WIDENS, clause);
}

/* Whether the current task is the owner, or below it, on no narrower terms. */
/* [supervisor-around]  A program may show the pointer of a supervisor that has ended. So nothing is
 * read of it until it was found among the scopes around the current task. Those cannot end while
 * the task runs. */
bool jrt_supervisor_is_around(const janus_supervisor *supervisor)
{
    const struct jrt_task *task = jrt_task_current();
    if (task == NULL) return false;
    const struct jrt_nursery *wanted =
        jrt_nursery_of((janus_nursery *)(uintptr_t)&supervisor->nursery);
    const struct jrt_nursery *n = task->innermost;
    uint32_t                  steps = 0;
    bool                      found = false;
    while (task != NULL && !found) {
        for (; n != NULL && !found; n = jrt_nursery_outer_of_other(n), steps++)
            found = n == wanted && n->on_heap == JRT_SUPERVISED;
        n = task->nursery;
        task = n->owner;
    }
    jrt_turn_toll(jrt_worker_self(), steps / 4);
    return found;
}

janus_status jrt_supervisor_may_manage(const janus_supervisor *supervisor)
{
    if (!jrt_supervisor_is_around(supervisor))
        return jrt_trouble_said(JANUS_STATE, "the supervisor has ended, or this task lies outside "
                                             "of it. Open the supervisor before the nursery of "
                                             "the task");
    const struct jrt_nursery *n = jrt_nursery_of((janus_nursery *)(uintptr_t)&supervisor->nursery);
    const struct jrt_terms   *here = jrt_terms_here(jrt_task_current());
    while (here != NULL && here != n->terms && here != n->scheduler->terms) {
        if (here->of != n && is_narrower(here)) return tell_narrower(n, here);
        here = here->outer;
    }
    return JANUS_OK;
}

/* Managing. */

/* The place of a child of this supervisor. With the supervisor's lock. NULL: STALE. */
static struct jrt_actor_place *child_of(const janus_supervisor *supervisor, janus_actor actor)
{
    janus_status            status;
    struct jrt_actor_place *place = jrt_place_find(actor, JANUS_ACTOR_MAY_STOP, &status);
    if (place == NULL) return NULL;
    bool mine = place->supervisor == supervisor;
    jrt_place_unlock(place);
    return mine ? place : NULL;
}

janus_status janus_supervisor_stop_child(janus_supervisor *supervisor, janus_actor child)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_actor_waiter waiter;
    if (supervisor == NULL) return JANUS_INVALID;
    janus_status status = jrt_supervisor_may_manage(supervisor);
    if (status != JANUS_OK) return status;
    jrt_lock(&supervisor->lock);
    struct jrt_actor_place *place = child_of(supervisor, child);
    status = place == NULL ? JANUS_STALE : JANUS_OK;
    bool waits = place != NULL && jrt_place_runs(place) && place->state != JANUS_ACTOR_STATE_STUCK;
    if (waits && !jrt_circle_enter(place)) {
        status = JANUS_DEADLOCK;
        waits = false;
    }
    if (waits) {
        place->starts = false;
        jrt_place_stop(place, JANUS_STOP_HOW_AFTER_THIS, 0);
        jrt_place_lock(place);
        jrt_waiter_begin(place, &waiter, JRT_AWAIT_END);
        jrt_place_unlock(place);
    } else if (status == JANUS_OK && place->state == JANUS_ACTOR_STATE_STUCK) {
        status = JANUS_STUCK;
    } else if (status == JANUS_OK && place->state == JANUS_ACTOR_STATE_DELAYED) {
        (void)jrt_place_set_time(place, 0);
        jrt_place_settle(place);
    } else if (status == JANUS_OK && place->starts) {
        jrt_place_close(place);
        jrt_place_settle(place);
    }
    jrt_supervisor_unlock(supervisor);
    if (!waits) return status;
    status = jrt_waiter_wait(place, &waiter, "a child to end", JRT_NEVER);
    jrt_circle_leave();
    if (!waiter.done && status == JANUS_CANCELLED)
        return jrt_task_cancelled_or_end(jrt_task_current());
    return status;
}

janus_status janus_supervisor_start_child(janus_supervisor *supervisor, janus_actor child)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_actor_waiter waiter;
    if (supervisor == NULL) return JANUS_INVALID;
    janus_status status = jrt_supervisor_may_manage(supervisor);
    if (status != JANUS_OK) return status;
    jrt_lock(&supervisor->lock);
    struct jrt_actor_place *place = child_of(supervisor, child);
    uint64_t                serial = place != NULL ? place->serial : 0;
    if (place == NULL) {
        status = JANUS_STALE;
    } else if (supervisor->plan >= JRT_PLAN_STOP) {
        status = JANUS_CLOSED;
    } else if (supervisor->plan != JRT_PLAN_NONE || place->state == JANUS_ACTOR_STATE_STARTING ||
               place->state == JANUS_ACTOR_STATE_DELAYED) {
        status = JANUS_STARTING;
    } else if (place->state != JANUS_ACTOR_STATE_EMPTY) {
        status = JANUS_STATE;
    } else {
        place->fresh = false;
        status = jrt_start_begin(place, &waiter);
    }
    jrt_supervisor_unlock(supervisor);
    if (status == JANUS_WOULD_WAIT) status = jrt_start_wait(supervisor, place, &waiter, serial);
    return status;
}

janus_status janus_supervisor_remove_child(janus_supervisor *supervisor, janus_actor child)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (supervisor == NULL) return JANUS_INVALID;
    janus_status status = jrt_supervisor_may_manage(supervisor);
    if (status != JANUS_OK) return status;
    jrt_lock(&supervisor->lock);
    struct jrt_actor_place *place = child_of(supervisor, child);
    if (place == NULL) {
        status = JANUS_STALE;
    } else if (place->state == JANUS_ACTOR_STATE_STARTING ||
               place->state == JANUS_ACTOR_STATE_DELAYED) {
        status = JANUS_STARTING;
    } else if (place->state != JANUS_ACTOR_STATE_EMPTY || place->starts) {
        status = JANUS_STATE;
    } else {
        jrt_place_remove(place);
    }
    jrt_supervisor_unlock(supervisor);
    return status;
}

/* Calls of actors that need their supervisor. */

janus_status janus_actor_stop(janus_actor actor, janus_stop_how how, uint64_t within_ns)
{
    janus_status status;
    jrt_stack_check(); /* [stack-reserve] */
    if ((unsigned)how > JANUS_STOP_HOW_AT_ONCE) return JANUS_INVALID;
    struct jrt_actor_place *place = jrt_place_find(actor, JANUS_ACTOR_MAY_STOP, &status);
    if (place == NULL) return jrt_actor_explain(status, "janus_actor_stop");
    uint64_t          serial = place->serial;
    janus_supervisor *supervisor = jrt_supervisor_enter(place);
    jrt_place_unlock(place);
    jrt_lock(&supervisor->lock);
    if (place->serial != serial || place->state == JANUS_ACTOR_STATE_GONE) {
        status = JANUS_STALE;
    } else {
        status = JANUS_OK;
        place->stopped = true;
        bool planned = place->starts;
        place->starts = false;
        if (place->state == JANUS_ACTOR_STATE_DELAYED || place->state == JANUS_ACTOR_STATE_EMPTY) {
            status = place->state == JANUS_ACTOR_STATE_EMPTY && !planned ? JANUS_STALE : JANUS_OK;
            if (status == JANUS_OK) {
                (void)jrt_place_set_time(place, 0);
                jrt_place_close(place);
                jrt_place_settle(place);
            }
        } else {
            jrt_place_stop(place, how, within_ns);
        }
        jrt_supervisor_go_on(supervisor);
    }
    jrt_supervisor_unlock(supervisor);
    jrt_supervisor_leave(supervisor);
    return status;
}

janus_status janus_actor_await(janus_actor actor, janus_end *out, uint64_t deadline_ns)
{
    janus_status            status;
    struct jrt_actor_waiter waiter;
    jrt_stack_check(); /* [stack-reserve] */
    if (jrt_worker_self() == NULL && jrt_thread_self()->calls_back) return JANUS_STATE;
    struct jrt_actor_place *place = jrt_place_find(actor, JANUS_ACTOR_MAY_WATCH, &status);
    if (place == NULL) {
        janus_end past;
        if (status != JANUS_STALE || !jrt_place_past(actor, JANUS_ACTOR_MAY_WATCH, &past))
            return jrt_actor_explain(status, "janus_actor_await");
        if (out != NULL) *out = past;
        return JANUS_OK;
    }
    if (jrt_place_current() == place) {
        jrt_place_unlock(place);
        return JANUS_DEADLOCK;
    }
    bool ended = place->state == JANUS_ACTOR_STATE_EMPTY && !place->open;
    if (ended && out != NULL) {
        *out = place->end;
        out->final = true; /* unless somebody starts it by hand */
    }
    if (!ended) jrt_waiter_begin(place, &waiter, JRT_AWAIT_GONE);
    jrt_place_unlock(place);
    if (ended) return JANUS_OK;
    status = jrt_waiter_wait(place, &waiter, "an actor to end", jrt_deadline(deadline_ns));
    if (waiter.done) {
        if (out != NULL) *out = waiter.end;
        return JANUS_OK;
    }
    if (status == JANUS_CANCELLED && jrt_task_current() != NULL)
        return jrt_task_cancelled_or_end(jrt_task_current());
    return status;
}

/* Ending. */

static bool is_owner(const janus_supervisor *supervisor)
{
    return jrt_supervisor_is_around(supervisor) && jrt_task_current() == supervisor->owner;
}

janus_status janus_supervisor_wait(janus_supervisor *supervisor, uint64_t deadline_ns)
{
    jrt_stack_check(); /* [stack-reserve] */
    janus_waitpoint point;
    if (supervisor == NULL) return JANUS_INVALID;
    if (!is_owner(supervisor)) return JANUS_STATE;
    janus_waitpoint_init(&point, JANUS_WAKER_TASKS);
    jrt_lock(&supervisor->lock);
    bool over = supervisor->plan == JRT_PLAN_OVER;
    if (!over) supervisor->over = &point;
    jrt_supervisor_unlock(supervisor);
    if (over) return JANUS_OK;
    janus_status status =
        janus_waitpoint_wait_until(&point, "a supervisor to end", jrt_deadline(deadline_ns));
    if (status == JANUS_OK) return status;
    jrt_lock(&supervisor->lock);
    bool mine = supervisor->over == &point;
    supervisor->over = NULL;
    jrt_supervisor_unlock(supervisor);
    if (!mine) {
        janus_shield_begin();
        while (janus_waitpoint_wait(&point, "a supervisor to end") != JANUS_OK) {
        }
        janus_shield_end();
        return JANUS_OK;
    }
    return status == JANUS_CANCELLED ? jrt_task_cancelled_or_end(jrt_task_current()) : status;
}
