/* SPDX-License-Identifier: MIT */
/* What becomes of a child that has ended: restarts, delays, giving up. The essay is in step.c. */
#include "actor/supervisor.h"

#include "cancel/cancel.h"
#include "means/terms.h"
#include "nursery/nursery.h"
#include "plat/seam.h"

#define AGAIN_NS (1 * JANUS_MS)

void jrt_history_add(janus_supervisor *supervisor, const struct jrt_actor_place *place,
                     bool restarted)
{
    if (supervisor->history == NULL) return;
    janus_restart_info *at = &supervisor->history[supervisor->history_next];
    supervisor->history_next = (supervisor->history_next + 1) % supervisor->history_room;
    if (supervisor->history_count < supervisor->history_room) supervisor->history_count++;
    *at = (janus_restart_info){.struct_bytes = sizeof *at,
                               .actor = jrt_place_handle(place, JANUS_ACTOR_MAY_ALL),
                               .end = place->end,
                               .restarted = restarted,
                               .at_ns = jrt_clock_now_ns()};
    jrt_place_label(place, at->child, sizeof at->child);
    if (place->rare != NULL) {
        at->tag = place->rare->tag;
        at->spent = place->rare->last_spent;
    }
}

/* Whether the supervisor starts nothing any more. */
bool jrt_supervisor_is_ending(janus_supervisor *supervisor)
{
    struct jrt_nursery *n = jrt_supervisor_nursery(supervisor);
    return supervisor->plan >= JRT_PLAN_STOP || supervisor->abandoned ||
           jrt_nursery_state(n) != JANUS_NURSERY_STATE_OPEN || jrt_nursery_cancelled_above(n);
}

static bool is_normal(const janus_end *end)
{
    return end->kind == JANUS_END_KIND_NORMAL || end->kind == JANUS_END_KIND_STOPPED;
}

janus_restart jrt_place_restart(const struct jrt_actor_place *place)
{
    janus_restart restart = place->spec->child.restart;
    return restart == JANUS_RESTART_DEFAULT ? JANUS_RESTART_PERMANENT : restart;
}

/* Whether the place is kept when nothing runs there. */
bool jrt_place_is_kept(const struct jrt_actor_place *place)
{
    return place->spec->id != NULL && jrt_place_restart(place) != JANUS_RESTART_TEMPORARY;
}

/* The supervisor gives up because of this child. */
static void give_up(struct jrt_actor_place *place, janus_status status)
{
    jrt_supervisor_give_up(place->supervisor, status, place);
    jrt_place_settle(place);
}

/* Restarting. */

/* Counts a restart. False: there were too many. */
static bool count_restart(janus_supervisor *supervisor)
{
    uint32_t max = supervisor->options.max_restarts;
    uint64_t now = jrt_clock_now_ns(), period = supervisor->options.period_ns;
    if (max == JANUS_NO_RESTARTS) return false;
    supervisor->restarts[supervisor->restarts_next] = now;
    supervisor->restarts_next = (supervisor->restarts_next + 1) % supervisor->restarts_room;
    if (supervisor->restarts_count < supervisor->restarts_room) supervisor->restarts_count++;
    if (supervisor->restarts_count <= max) return true;
    /* The oldest of the last max + 1. */
    uint64_t oldest = supervisor->restarts[supervisor->restarts_next];
    return now - oldest >= period;
}

/* The ring is in the order of time, and may have 2^20 entries: a search, and no walk. */
uint32_t jrt_supervisor_recent(const janus_supervisor *supervisor)
{
    uint64_t now = jrt_clock_now_ns();
    uint32_t room = supervisor->restarts_room, count = supervisor->restarts_count;
    uint32_t recent = 0, too_many = count + 1; /* of the newest */
    while (too_many - recent > 1) {
        uint32_t middle = recent + (too_many - recent) / 2;
        uint64_t at = supervisor->restarts[(supervisor->restarts_next + room - middle) % room];
        if (now - at < supervisor->options.period_ns) {
            recent = middle;
        } else {
            too_many = middle;
        }
    }
    return recent;
}

/* Pays for a restart. */
static bool pay_restart(janus_supervisor *supervisor)
{
    const struct jrt_terms *terms = jrt_supervisor_nursery(supervisor)->terms;
    const janus_budget      price = janus_price_loop(supervisor->options.price);
    if (terms == NULL || terms->account == NULL) return true;
    return jrt_account_charge(terms->account, &price) == JANUS_COMPONENT_NONE;
}

/* The delay before the next restart of this child. */
uint64_t jrt_place_next_delay(struct jrt_actor_place *place)
{
    janus_supervisor *supervisor = place->supervisor;
    uint64_t          now = jrt_clock_now_ns(), first = supervisor->options.delay_ns;
    if (first == 0) return 0;
    jrt_place_lock(place);
    struct jrt_actor_rare *rare = jrt_place_rare(place);
    jrt_place_unlock(place);
    if (rare == NULL) return first;
    bool healthy = rare->failed_at == 0 || now - rare->failed_at >= supervisor->options.healthy_ns;
    uint64_t delay = healthy ? first : rare->delay_ns * 2;
    if (delay > supervisor->options.max_delay_ns || delay < first)
        delay = supervisor->options.max_delay_ns;
    rare->delay_ns = delay;
    rare->failed_at = now + delay;
    uint64_t tenth = delay / 10 < UINT32_MAX ? delay / 10 : UINT32_MAX - 1;
    return delay + (tenth > 0 ? jrt_rng_below(&supervisor->rng, (uint32_t)tenth + 1) : 0);
}

/* Starts it again, now. */
static void start_again(struct jrt_actor_place *place)
{
    if (place->state != JANUS_ACTOR_STATE_EMPTY) jrt_place_move(place, JANUS_ACTOR_STATE_EMPTY);
    if (jrt_place_start(place) != JANUS_OK) jrt_place_start_failed(place);
}

/* The children from this one on are stopped and started again. */
void jrt_place_plan_restart(struct jrt_actor_place *place)
{
    janus_supervisor       *supervisor = place->supervisor;
    bool                    all = supervisor->options.strategy == JANUS_SUPERVISION_ONE_FOR_ALL;
    struct jrt_actor_place *from = place;
    if (supervisor->plan == JRT_PLAN_RESTART_STOP) { /* a plan from further up goes on */
        struct jrt_actor_place *at = supervisor->from;
        while (at != NULL && at != place) at = at->next;
        if (at == place) from = supervisor->from;
    }
    supervisor->from = all ? supervisor->first : from;
    for (struct jrt_actor_place *at = supervisor->from; at != NULL; at = at->next) {
        if (at == place || at->state == JANUS_ACTOR_STATE_STARTING ||
            at->state == JANUS_ACTOR_STATE_RUNNING || at->state == JANUS_ACTOR_STATE_DELAYED) {
            at->starts = jrt_place_restart(at) != JANUS_RESTART_TEMPORARY;
        }
    }
    place->starts = true;
    supervisor->plan = JRT_PLAN_RESTART_STOP;
    supervisor->cursor = supervisor->last;
    jrt_supervisor_go_on(supervisor);
}

/* Begins the restart of a child that has ended. */
static void restart(struct jrt_actor_place *place, uint64_t delay)
{
    janus_supervisor *supervisor = place->supervisor;
    if (place->spec->child.drops_mail) jrt_mail_drop(place, JANUS_RESTARTED);
    if (delay != 0) {
        if (place->state != JANUS_ACTOR_STATE_DELAYED)
            jrt_place_move(place, JANUS_ACTOR_STATE_DELAYED);
        if (!jrt_place_set_time(place, delay)) give_up(place, JANUS_NO_MEMORY);
        return;
    }
    place->starts = true;
    jrt_place_move(place, JANUS_ACTOR_STATE_EMPTY);
    if (supervisor->options.strategy == JANUS_SUPERVISION_ONE_FOR_ONE) {
        start_again(place);
    } else {
        jrt_place_plan_restart(place);
    }
}

/* A significant child has ended by itself, and is not started again. */
static void auto_stop(janus_supervisor *supervisor, const struct jrt_actor_place *ended)
{
    if (supervisor->options.auto_stop == JANUS_AUTO_STOP_NEVER) return;
    bool left = false;
    for (const struct jrt_actor_place *at = supervisor->first; at != NULL; at = at->next) {
        bool runs = jrt_place_runs(at) || at->state == JANUS_ACTOR_STATE_DELAYED;
        left = left || (at != ended && at->spec->child.significant && runs);
    }
    if (supervisor->options.auto_stop == JANUS_AUTO_STOP_ALL && left) return;
    jrt_supervisor_give_up(supervisor, JANUS_OK, NULL);
}

/* A child has failed to start, or has ended by itself, [step-decide]. */
void jrt_place_after_end(struct jrt_actor_place *place)
{
    janus_supervisor *supervisor = place->supervisor;
    bool              failed = !is_normal(&place->end);
    jrt_place_lock(place);
    bool forced = place->forced, dismissed = place->dismissed;
    if (failed) place->failures++;
    jrt_place_unlock(place);
    bool again = forced || jrt_place_restart(place) == JANUS_RESTART_PERMANENT ||
                 (jrt_place_restart(place) == JANUS_RESTART_TRANSIENT && failed);
    if (dismissed || place->stopped) again = false; /* CANCEL, or janus_actor_stop */
    uint64_t delay = place->asked ? place->rare->chosen_ns
                     : failed     ? jrt_place_next_delay(place)
                                  : 0;
    /* A start that was refused at once is not tried again at once. */
    if (place->incarnation != 0 && place->refused && delay < AGAIN_NS) delay = AGAIN_NS;
    janus_decision decision =
        place->asked ? (janus_decision)place->rare->decision : JANUS_DECISION_DEFAULT;
    place->asked = false;
    if (decision == JANUS_DECISION_RESTART) again = true;
    if (decision == JANUS_DECISION_LEAVE) again = false;
    if (decision == JANUS_DECISION_GIVE_UP && !jrt_supervisor_is_ending(supervisor)) {
        jrt_history_add(supervisor, place, false);
        if (failed) jrt_report_failure(supervisor, place, false, JANUS_CHILD_FAILED);
        give_up(place, JANUS_CHILD_FAILED);
        return;
    }
    if (jrt_supervisor_is_ending(supervisor)) again = false;
    bool paid = true, counted = true;
    if (again) {
        counted = count_restart(supervisor);
        paid = !counted || pay_restart(supervisor);
        if (counted && paid) supervisor->result.restarts++;
    }
    jrt_history_add(supervisor, place, again && counted && paid);
    bool         ending = jrt_supervisor_is_ending(supervisor); /* then it is no news */
    janus_status gives_up = JANUS_OK;
    if (again && !counted) gives_up = JANUS_TOO_OFTEN;
    if (again && !paid) gives_up = JANUS_BUDGET_EXHAUSTED;
    if (failed && !ending)
        jrt_report_failure(supervisor, place, again && counted && paid, gives_up);
    if (gives_up != JANUS_OK) {
        give_up(place, gives_up);
    } else if (again) {
        restart(place, delay);
    } else {
        bool significant = place->spec->child.significant && !jrt_supervisor_is_ending(supervisor);
        if (significant) auto_stop(supervisor, place);
        jrt_place_settle(place);
    }
}

/* A start that somebody waits for has failed: the waiter learns why, and nothing is tried again. */
static void tell_start(struct jrt_actor_place *place)
{
    bool         ignored = place->end.kind == JANUS_END_KIND_NORMAL;
    janus_status status = JANUS_CHILD_FAILED;
    if (ignored) status = JANUS_IGNORED;
    if (place->late) status = JANUS_DEADLINE;
    if (place->nameless) status = (janus_status)place->end.error;
    jrt_place_notify(place, JRT_AWAIT_START, status);
}

void jrt_place_start_failed(struct jrt_actor_place *place)
{
    janus_supervisor *supervisor = place->supervisor;
    bool              ignored = place->end.kind == JANUS_END_KIND_NORMAL;
    if (place->manual) { /* added, or started by hand */
        bool kept = jrt_place_is_kept(place) && (ignored || !place->fresh);
        jrt_history_add(supervisor, place, false);
        tell_start(place);
        jrt_place_move(place, JANUS_ACTOR_STATE_EMPTY);
        if (kept) {
            jrt_mail_drop(place, JANUS_GONE);
        } else {
            jrt_place_remove(place);
        }
        return;
    }
    if (ignored) {
        jrt_place_settle(place);
        return;
    }
    jrt_place_after_end(place);
}
