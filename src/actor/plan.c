/* SPDX-License-Identifier: MIT */
/* Plans for several children, stopping one, and the times of places. The essay is in step.c. */
#include "actor/supervisor.h"

#include "cancel/cancel.h"
#include "nursery/nursery.h"
#include "rt/inside.h"

#include <string.h>

#define START_NS (5 * JANUS_SECONDS)
#define STOP_NS (5 * JANUS_SECONDS)
#define GRACE_NS (1 * JANUS_SECONDS)

void jrt_supervisor_stop_all(janus_supervisor *supervisor, janus_stop_how how)
{
    if (supervisor->plan >= JRT_PLAN_STOP) {
        /* A supervisor that drains stops doing so. */
        if (how != JANUS_STOP_HOW_DRAIN) supervisor->stop_how = how;
        return;
    }
    supervisor->plan = JRT_PLAN_STOP;
    supervisor->stop_how = how;
    supervisor->cursor = supervisor->last;
    for (struct jrt_actor_place *at = supervisor->first; at != NULL; at = at->next) {
        bool planned = at->starts && at->state == JANUS_ACTOR_STATE_EMPTY;
        at->starts = false;
        if (!planned) continue;
        jrt_place_close(at);
        jrt_mail_drop(at, JANUS_GONE);
    }
}

void jrt_supervisor_give_up(janus_supervisor *supervisor, janus_status status,
                            const struct jrt_actor_place *cause)
{
    janus_supervisor_result *result = &supervisor->result;
    bool                     first = supervisor->plan < JRT_PLAN_STOP;
    jrt_supervisor_stop_all(supervisor, JANUS_STOP_HOW_AFTER_THIS);
    if (!first) return;
    supervisor->gives_up = result->by_itself = true;
    result->status = status;
    if (cause == NULL) return;
    result->cause = cause->end;
    jrt_place_label(cause, result->child, sizeof result->child);
}

/* All children have ended for good. */
static void over(janus_supervisor *supervisor)
{
    struct jrt_nursery *n = jrt_supervisor_nursery(supervisor);
    supervisor->plan = JRT_PLAN_OVER;
    janus_waitpoint *point = supervisor->over;
    supervisor->over = NULL;
    /* The owner learns of it in whatever it waits for. */
    if (supervisor->gives_up && supervisor->host == NULL && point == NULL && !supervisor->abandoned)
        (void)jrt_nursery_cancel_locked(n, JANUS_CANCEL_REASON_SIBLING_ERROR);
    if (supervisor->gives_up && supervisor->host != NULL)
        jrt_place_notify(supervisor->host, JRT_AWAIT_TOLD, JANUS_OK);
    if (point != NULL) jrt_waitpoint_wake(point);
}

/* Stops one child, if it runs. */
static void stop_one(struct jrt_actor_place *place, janus_stop_how how)
{
    if (place->state == JANUS_ACTOR_STATE_DELAYED) {
        (void)jrt_place_set_time(place, 0);
        jrt_place_move(place, JANUS_ACTOR_STATE_EMPTY);
        if (place->starts) return;
        jrt_mail_drop(place, JANUS_GONE);
        jrt_place_notify(place, JRT_AWAIT_START, JANUS_GONE);
        jrt_place_notify(place, JRT_AWAIT_END, JANUS_OK);
    } else if (place->state == JANUS_ACTOR_STATE_STARTING ||
               place->state == JANUS_ACTOR_STATE_RUNNING) {
        jrt_place_stop(place, how, 0);
    }
}

/* Stops the children from the cursor back to `from`. False: some have not ended yet. */
static bool stop_back_to(janus_supervisor *supervisor, const struct jrt_actor_place *from,
                         janus_stop_how how)
{
    bool together = supervisor->options.stop_together;
    while (supervisor->cursor != NULL && (together || supervisor->stopping == 0)) {
        struct jrt_actor_place *at = supervisor->cursor;
        supervisor->cursor = at != from ? at->before : NULL;
        stop_one(at, how);
    }
    return supervisor->cursor == NULL && supervisor->stopping == 0;
}

/* Starts the children of a plan, in order. False: one is being started, or the plan has changed. */
static bool start_all(janus_supervisor *supervisor)
{
    while (supervisor->cursor != NULL) {
        struct jrt_actor_place *at = supervisor->cursor;
        if (at->state == JANUS_ACTOR_STATE_STARTING) return false;
        supervisor->cursor = at->next;
        if (!at->starts || at->state != JANUS_ACTOR_STATE_EMPTY) continue;
        if (jrt_place_start(at) != JANUS_OK) {
            jrt_place_start_failed(at);
            return false;
        }
        if (at->state == JANUS_ACTOR_STATE_STARTING) {
            supervisor->cursor = at; /* until it runs */
            return false;
        }
    }
    return true;
}

void jrt_supervisor_go_on(janus_supervisor *supervisor)
{
    if (supervisor->plan == JRT_PLAN_RESTART_STOP) {
        if (!stop_back_to(supervisor, supervisor->from, JANUS_STOP_HOW_AFTER_THIS)) return;
        supervisor->plan = JRT_PLAN_RESTART_START;
        supervisor->cursor = supervisor->from;
    }
    if (supervisor->plan == JRT_PLAN_RESTART_START) {
        if (!start_all(supervisor)) return;
        if (supervisor->plan == JRT_PLAN_RESTART_START) supervisor->plan = JRT_PLAN_NONE;
    }
    if (supervisor->plan == JRT_PLAN_STOP) {
        if (!stop_back_to(supervisor, NULL, supervisor->stop_how)) return;
        if (supervisor->live == 0) over(supervisor);
    }
}

/* Stopping, [step-stop]. */

uint64_t jrt_place_start_within(const struct jrt_actor_place *place)
{
    uint64_t within = place->spec->child.start_within_ns;
    return within != 0 ? within : START_NS;
}

uint64_t jrt_place_stop_within(const struct jrt_actor_place *place)
{
    uint64_t within = place->spec->child.stop_within_ns;
    if (within != 0) return within;
    return place->spec->child.supervisor != NULL ? JANUS_ANY_TIME : STOP_NS;
}

/* Cancels the task of a place. */
static void cancel(struct jrt_actor_place *place)
{
    struct jrt_nursery *n = jrt_supervisor_nursery(place->supervisor);
    jrt_place_lock(place);
    janus_task_id id = place->task != NULL ? jrt_task_id(place->task) : 0;
    jrt_place_unlock(place);
    /* If the child ends meanwhile, its id is stale, and nothing happens. */
    if (id != 0) (void)jrt_nursery_cancel_one(n, id);
}

/* How long the child has. A second order gives no more time than is left. A limit is given up where
 * memory is short. */
static void limit_stop(struct jrt_actor_place *place, uint64_t within_ns, bool again)
{
    if (again && within_ns == JANUS_ANY_TIME) return;
    if (again) {
        uint64_t now = jrt_clock_now_ns();
        jrt_place_lock(place);
        uint64_t at = place->rare != NULL ? place->rare->step_at : 0;
        jrt_place_unlock(place);
        if (at != 0 && (at <= now || at - now <= within_ns)) return;
    }
    (void)jrt_place_set_time(place, within_ns != JANUS_ANY_TIME ? within_ns : 0);
}

/* Tells the child. True: it rested, and will not wait before it ends. */
static bool order(struct jrt_actor_place *place, janus_stop_how how)
{
    const janus_behaviour *behaviour = jrt_place_behaviour(place);
    jrt_place_lock(place);
    bool stricter = place->stops == 0 || (janus_stop_how)(place->stops - 1) == JANUS_STOP_HOW_DRAIN;
    if (stricter) place->stops = (uint8_t)(how + 1);
    place->suspended = false;
    bool rested = place->resting && jrt_mail_count(place) == 0 && place->notices == NULL &&
                  how != JANUS_STOP_HOW_DRAIN;
    struct jrt_task *task = jrt_place_rouse(place);
    jrt_place_unlock_and_queue(place, task);
    return rested && behaviour != NULL && behaviour->terminate == NULL;
}

void jrt_place_stop(struct jrt_actor_place *place, janus_stop_how how, uint64_t within_ns)
{
    uint64_t within = within_ns != 0 ? within_ns : jrt_place_stop_within(place);
    bool     again =
        place->state == JANUS_ACTOR_STATE_STOPPING || place->state == JANUS_ACTOR_STATE_STUCK;
    if (how == JANUS_STOP_HOW_AT_ONCE) within = JANUS_NO_TIME;
    if (!again) jrt_place_move(place, JANUS_ACTOR_STATE_STOPPING);
    bool quick = order(place, how);
    if (again && place->cancelled) return; /* no order is harder */
    place->cancelled = within == JANUS_NO_TIME;
    if (within == JANUS_NO_TIME) {
        cancel(place);
        (void)jrt_place_set_time(place, GRACE_NS);
    } else {
        limit_stop(place, quick ? JANUS_ANY_TIME : within, again); /* not that of the start */
    }
    /* Tasks and supervisors have no letters: they learn of it by a cancel. */
    if (place->spec->child.task != NULL && within != JANUS_NO_TIME) cancel(place);
    if (place->spec->child.supervisor != NULL) jrt_place_notify(place, JRT_AWAIT_TOLD, JANUS_OK);
}

/* Times. */

static void step(struct jrt_actor_place *place)
{
    janus_supervisor *supervisor = place->supervisor;
    switch ((janus_actor_state)place->state) {
    case JANUS_ACTOR_STATE_STARTING: /* init takes too long */
        if (!place->late) {
            place->late = true;
            cancel(place);
            (void)jrt_place_set_time(place, GRACE_NS);
            break;
        }
        /* It does not obey: nobody waits for it any longer. */
        jrt_place_lock(place);
        place->stops = JANUS_STOP_HOW_AFTER_THIS + 1;
        jrt_mail_urge(place);
        jrt_place_unlock(place);
        place->starts = place->manual = false;
        place->cancelled = true;
        jrt_place_move(place, JANUS_ACTOR_STATE_STOPPING);
        jrt_place_move(place, JANUS_ACTOR_STATE_STUCK);
        jrt_report_stuck(place);
        jrt_place_notify(place, JRT_AWAIT_START, JANUS_DEADLINE);
        jrt_place_notify(place, JRT_AWAIT_END, JANUS_STUCK);
        break;
    case JANUS_ACTOR_STATE_DELAYED:
        if (jrt_supervisor_is_ending(supervisor)) {
            jrt_place_settle(place);
            break;
        }
        place->starts = true;
        jrt_place_move(place, JANUS_ACTOR_STATE_EMPTY);
        if (supervisor->options.strategy == JANUS_SUPERVISION_ONE_FOR_ONE) {
            if (jrt_place_start(place) != JANUS_OK) jrt_place_start_failed(place);
        } else {
            jrt_place_plan_restart(place);
        }
        break;
    case JANUS_ACTOR_STATE_STOPPING:
        if (!place->cancelled) {
            place->cancelled = true;
            cancel(place);
            (void)jrt_place_set_time(place, GRACE_NS);
            break;
        }
        jrt_place_move(place, JANUS_ACTOR_STATE_STUCK);
        jrt_report_stuck(place);
        jrt_place_notify(place, JRT_AWAIT_END, JANUS_STUCK);
        break;
    default: break;
    }
}

void jrt_place_step(struct jrt_actor_place *place, uint64_t serial)
{
    jrt_place_lock(place);
    janus_supervisor *supervisor = place->serial == serial ? jrt_supervisor_enter(place) : NULL;
    jrt_place_unlock(place);
    if (supervisor == NULL) return;
    jrt_lock(&supervisor->lock);
    if (place->serial == serial && place->state != JANUS_ACTOR_STATE_GONE) {
        step(place);
        jrt_supervisor_go_on(supervisor);
    }
    jrt_supervisor_unlock(supervisor);
    jrt_supervisor_leave(supervisor);
}

void jrt_place_close(struct jrt_actor_place *place)
{
    jrt_place_lock(place);
    place->starts = place->open = false;
    jrt_mail_bar(place);
    jrt_senders_serve(place, true);
    jrt_place_unlock(place);
}
