/* SPDX-License-Identifier: MIT */
/* Infos about actors and supervisors, reports, and names. */
#include "actor/supervisor.h"

#include "base/options.h"
#include "means/call.h"
#include "means/terms.h"
#include "means/trouble.h"
#include "nursery/nursery.h"
#include "plat/name.h"
#include "sched/names.h"
#include "task/tell.h"

#include <stdio.h>
#include <string.h>

const char *janus_end_kind_name(janus_end_kind kind)
{
    static const char *const names[] = {"normal",     "stopped",   "failed",    "panicked",
                                        "overflowed", "exhausted", "cancelled", "never"};
    return (unsigned)kind <= JANUS_END_KIND_NEVER ? names[kind] : "?";
}

const char *janus_actor_state_name(janus_actor_state state)
{
    static const char *const names[] = {"empty",    "starting", "running", "delayed",
                                        "stopping", "stuck",    "gone"};
    return (unsigned)state <= JANUS_ACTOR_STATE_GONE ? names[state] : "?";
}

void jrt_place_label(const struct jrt_actor_place *place, char *out, size_t size)
{
    jrt_name_again(out, size, place->spec->title);
}

/* Reports. */

#define REPORT_NS (10 * JANUS_SECONDS)

void jrt_actor_tell(const struct jrt_actor_place *place, const char *what)
{
    char label[JANUS_NAME_BYTES], sort[JANUS_NAME_BYTES], name[3 * JANUS_NAME_BYTES];
    jrt_place_label(place, label, sizeof label);
    (void)jrt_name_copy(sort, sizeof sort, jrt_place_sort(place));
    (void)snprintf(name, sizeof name, "%s \"%s\", place %u of supervisor \"%s\"", sort, label,
                   jrt_place_index(place),
                   jrt_nursery_name(jrt_supervisor_nursery(place->supervisor)));
    jrt_tell_line(place->supervisor->scheduler, name, what);
}

/* How an incarnation ended: "failed (error -100, incarnation 1, 12 ops spent)". */
static void write_end(const struct jrt_actor_place *place, char *out, size_t size)
{
    const janus_end *end = &place->end;
    uint64_t         spent = place->rare != NULL ? place->rare->last_spent.ops : 0;
    char             why[48] = "";
    if (end->kind == JANUS_END_KIND_FAILED) {
        (void)snprintf(why, sizeof why, "error %lld, ", (long long)end->error);
    } else if (end->kind == JANUS_END_KIND_EXHAUSTED) {
        (void)snprintf(why, sizeof why, "no %s left, ", janus_component_name(end->lacks));
    }
    (void)snprintf(out, size, "%s (%sincarnation %u, %llu ops spent)",
                   janus_end_kind_name(end->kind), why, end->incarnation,
                   (unsigned long long)spent);
}

/* What the supervisor does now. */
static void write_outcome(const janus_supervisor *supervisor, bool restarts, janus_status gives_up,
                          char *out, size_t size)
{
    const janus_supervisor_options *options = &supervisor->options;
    uint32_t max = options->max_restarts == JANUS_NO_RESTARTS ? 0 : options->max_restarts;
    if (gives_up == JANUS_TOO_OFTEN) {
        (void)snprintf(out, size,
                       "the supervisor gives up, with JANUS_TOO_OFTEN: max_restarts is %u within "
                       "%llu ms",
                       max, (unsigned long long)(options->period_ns / JANUS_MS));
    } else if (gives_up == JANUS_BUDGET_EXHAUSTED) {
        (void)snprintf(out, size,
                       "the supervisor gives up, with JANUS_BUDGET_EXHAUSTED: its pool has no %llu "
                       "ops for a restart",
                       (unsigned long long)options->price);
    } else if (gives_up != JANUS_OK) {
        (void)snprintf(out, size, "the supervisor gives up, as on_end decided");
    } else {
        (void)snprintf(out, size, "%s", restarts ? "it is started again" : "it stays ended");
    }
}

void jrt_report_failure(janus_supervisor *supervisor, const struct jrt_actor_place *place,
                        bool restarts, janus_status gives_up)
{
    char     text[384], end[96], outcome[128];
    uint64_t now = jrt_clock_now_ns();
    supervisor->untold++;
    /* The first failure has a line; then one for each REPORT_NS, with the number of the others. */
    if (supervisor->told && now - supervisor->told_at < REPORT_NS && restarts) return;
    supervisor->told = true;
    supervisor->told_at = now;
    write_end(place, end, sizeof end);
    write_outcome(supervisor, restarts, gives_up, outcome, sizeof outcome);
    (void)snprintf(text, sizeof text,
                   "%s; %s; failures since the last line: %llu; restarts in all: %llu", end,
                   outcome, (unsigned long long)supervisor->untold,
                   (unsigned long long)supervisor->result.restarts);
    supervisor->untold = 0;
    jrt_actor_tell(place, text);
}

void jrt_report_stuck(const struct jrt_actor_place *place)
{
    jrt_actor_tell(place, "is stuck: it was cancelled a second ago and has not ended. It computes "
                          "without checks, or is in a call that blocks its thread");
}

void jrt_dead_letter_tell(struct jrt_actor_place *place)
{
    if (place->supervisor->plan >= JRT_PLAN_STOP) return; /* then it is no news */
    jrt_place_lock(place);
    bool first = !place->told;
    place->told = true;
    jrt_place_unlock(place);
    if (first) jrt_actor_tell(place, "its first dead letter: it ended, or had no room");
}

janus_supervisor *jrt_supervisor_visit(struct jrt_actor_place *place)
{
    return place->told ? NULL : jrt_supervisor_enter(place);
}

void jrt_supervisor_dropped(janus_supervisor *supervisor, struct jrt_actor_place *place,
                            uint64_t serial)
{
    if (supervisor == NULL) return;
    jrt_lock(&supervisor->lock);
    if (place->serial == serial) jrt_dead_letter_tell(place);
    jrt_supervisor_unlock(supervisor);
    jrt_supervisor_leave(supervisor);
}

/* Explanations. */

janus_status jrt_actor_explain(janus_status status, const char *call)
{
    struct jrt_trouble *trouble = &jrt_thread_self()->trouble;
    const char         *clause = NULL;
    if (status >= 0 || status == JANUS_WOULD_WAIT) return status; /* the caller asked for that */
    switch (status) {
    case JANUS_STALE: clause = "the handle names no actor any more, or never did"; break;
    case JANUS_CAP_RIGHT: clause = "the handle lacks the right for this call"; break;
    case JANUS_NOT_FOUND: clause = "no actor has registered this name"; break;
    case JANUS_CLOSED: clause = "the actor is ending, or nothing runs there"; break;
    case JANUS_GONE: clause = "the actor ended before it answered, or nothing runs there"; break;
    case JANUS_RESTARTED:
    case JANUS_NO_REPLY:
    case JANUS_FULL:
    case JANUS_DEADLINE:
    case JANUS_CANCELLED: trouble->fresh = false; break; /* a note is of another call */
    default: break;
    }
    if (clause != NULL) (void)jrt_trouble_said(status, clause);
    return jrt_trouble_end(status, call);
}

janus_status jrt_actor_outside(const char *call)
{
    (void)jrt_trouble_said(JANUS_STATE, "only the handler or the init of an actor may call this");
    return jrt_trouble_end(JANUS_STATE, call);
}

/* Actors. */

janus_status janus_actor_inspect(janus_actor actor, janus_actor_info *out)
{
    janus_status     status;
    janus_actor_info info = {.struct_bytes = sizeof info};
    jrt_stack_check(); /* [stack-reserve] */
    if (out == NULL || !jrt_struct_sane(out->struct_bytes, sizeof info)) return JANUS_INVALID;
    struct jrt_actor_place *place = jrt_place_find(actor, JANUS_ACTOR_MAY_WATCH, &status);
    if (place == NULL) return jrt_actor_explain(status, "janus_actor_inspect");
    uint32_t max = place->spec->options.max_messages;
    info.state = (janus_actor_state)place->state;
    info.suspended = place->suspended;
    info.incarnation = place->incarnation;
    info.task = place->task != NULL ? jrt_task_id(place->task) : 0;
    info.behaviour = jrt_place_sort(place);
    info.messages = jrt_mail_count(place) + (place->rare != NULL ? place->rare->aside_count : 0);
    info.max_messages = max != 0 ? max : JRT_ACTOR_MESSAGES;
    info.sent = place->sent;
    /* Not the actor's own count: it takes messages meanwhile, [mail-window]. */
    info.handled = info.sent - info.messages - place->returned - place->dead;
    info.returned = place->returned;
    info.dead = place->dead;
    info.notices = place->notice_count;
    info.failures = place->failures;
    info.last = place->end;
    jrt_place_unlock(place);
    jrt_struct_give(out, &info);
    return JANUS_OK;
}

/* Suspends or resumes. */
static janus_status suspend(janus_actor actor, bool suspends, const char *call)
{
    janus_status     status;
    struct jrt_task *task = NULL;
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_actor_place *place = jrt_place_find(actor, JANUS_ACTOR_MAY_STOP, &status);
    if (place == NULL) return jrt_actor_explain(status, call);
    bool can = place->state == JANUS_ACTOR_STATE_RUNNING && jrt_place_behaviour(place) != NULL &&
               place->suspended != suspends;
    if (can) place->suspended = suspends;
    jrt_mail_urge(place);
    if (can && !suspends) task = jrt_place_rouse(place);
    jrt_place_unlock_and_queue(place, task);
    if (can) return JANUS_OK;
    (void)jrt_trouble_said(JANUS_STATE, suspends ? "it does not run, or is suspended"
                                                 : "it does not run, or is not suspended");
    return jrt_trouble_end(JANUS_STATE, call);
}

janus_status janus_actor_suspend(janus_actor actor)
{
    return suspend(actor, true, "janus_actor_suspend");
}

janus_status janus_actor_resume(janus_actor actor)
{
    return suspend(actor, false, "janus_actor_resume");
}

janus_status janus_actor_take_up(void)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_actor_place *self = jrt_place_current();
    if (self == NULL || jrt_place_behaviour(self) == NULL) return JANUS_STATE;
    return jrt_mail_take_up(self);
}

janus_status janus_actor_continue(uint64_t tag)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_actor_place *self = jrt_place_current();
    janus_status            status = JANUS_OK;
    if (self == NULL || jrt_place_behaviour(self) == NULL) return JANUS_STATE;
    jrt_place_lock(self);
    struct jrt_actor_rare *rare = jrt_place_rare(self);
    if (rare == NULL) {
        status = JANUS_NO_MEMORY;
    } else if (rare->continues) {
        status = JANUS_STATE;
    } else {
        rare->continues = true;
        jrt_mail_urge(self);
        rare->continue_tag = tag;
    }
    jrt_place_unlock(self);
    return status;
}

/* Names. */

static bool is_name(const char *name)
{
    size_t length = name != NULL ? strnlen(name, 64) : 0;
    return length > 0 && length < 64;
}

janus_status jrt_place_name(struct jrt_actor_place *place)
{
    janus_supervisor *supervisor = place->supervisor;
    if (place->spec->name == NULL) return JANUS_OK;
    janus_status status =
        jrt_terms_name(jrt_task_current(), JANUS_RIGHT_NAME_REGISTER, place->spec->name);
    if (status != JANUS_OK) return status;
    janus_actor handle = jrt_place_handle(place, JANUS_ACTOR_MAY_CAST | JANUS_ACTOR_MAY_CALL |
                                                     JANUS_ACTOR_MAY_WATCH);
    status = jrt_names_put(&supervisor->scheduler->names, place->spec->name, handle.opaque);
    place->named = status == JANUS_OK;
    return status;
}

bool jrt_place_name_taken(const struct jrt_actor_place *place)
{
    uint64_t holder[2];
    return place->spec->name != NULL &&
           jrt_names_find(&place->supervisor->scheduler->names, place->spec->name, holder);
}

void jrt_place_unname(struct jrt_actor_place *place)
{
    if (!place->named) return;
    janus_actor handle = jrt_place_handle(place, JANUS_ACTOR_MAY_CAST | JANUS_ACTOR_MAY_CALL |
                                                     JANUS_ACTOR_MAY_WATCH);
    jrt_names_drop(&place->supervisor->scheduler->names, place->spec->name, handle.opaque);
    place->named = false;
}

janus_status janus_actor_find(const char *name, janus_actor *out)
{
    jrt_stack_check(); /* [stack-reserve] */
    const struct jrt_worker *worker = jrt_worker_self();
    if (!is_name(name) || out == NULL) return JANUS_INVALID;
    if (worker == NULL || worker->current == NULL) return JANUS_STATE;
    janus_status status = jrt_terms_name(worker->current, JANUS_RIGHT_NAME_FIND, name);
    if (status == JANUS_OK && !jrt_names_find(&worker->scheduler->names, name, out->opaque))
        status = JANUS_NOT_FOUND;
    return jrt_actor_explain(status, "janus_actor_find");
}

/* Supervisors. */

janus_status janus_supervisor_find_child(janus_supervisor *supervisor, const char *id,
                                         janus_actor *out)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (supervisor == NULL || id == NULL || out == NULL) return JANUS_INVALID;
    janus_status status = jrt_supervisor_may_manage(supervisor);
    if (status != JANUS_OK) return status;
    jrt_lock(&supervisor->lock);
    struct jrt_actor_place *place = jrt_ids_find(supervisor, id);
    if (place != NULL) *out = jrt_place_handle(place, JANUS_ACTOR_MAY_ALL);
    jrt_supervisor_unlock(supervisor);
    return place != NULL ? JANUS_OK : JANUS_NOT_FOUND;
}

size_t janus_supervisor_children(janus_supervisor *supervisor, janus_child_info *out, size_t room)
{
    jrt_stack_check(); /* [stack-reserve] */
    size_t count = 0;
    if (supervisor == NULL || jrt_supervisor_may_manage(supervisor) != JANUS_OK) return 0;
    jrt_lock(&supervisor->lock);
    for (const struct jrt_actor_place *at = supervisor->first; at != NULL; at = at->next, count++) {
        if (out == NULL || count >= room) continue;
        janus_child_info info = {.struct_bytes = sizeof info,
                                 .actor = jrt_place_handle(at, JANUS_ACTOR_MAY_ALL),
                                 .behaviour = jrt_place_sort(at),
                                 .state = (janus_actor_state)at->state,
                                 .incarnation = at->incarnation,
                                 .restarts = at->incarnation > 0 ? at->incarnation - 1 : 0,
                                 .restart = jrt_place_restart(at),
                                 .significant = at->spec->child.significant,
                                 .start_within_ns = jrt_place_start_within(at),
                                 .stop_within_ns = jrt_place_stop_within(at)};
        if (at->spec->id != NULL) (void)jrt_name_copy(info.id, sizeof info.id, at->spec->id);
        out[count] = info;
    }
    jrt_supervisor_unlock(supervisor);
    return count;
}

size_t janus_supervisor_history(janus_supervisor *supervisor, janus_restart_info *out, size_t room)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (supervisor == NULL || jrt_supervisor_may_manage(supervisor) != JANUS_OK) return 0;
    jrt_lock(&supervisor->lock);
    size_t count = supervisor->history_count;
    for (size_t i = 0; i < count && i < room && out != NULL; i++) {
        uint32_t all = supervisor->history_room;
        out[i] = supervisor->history[(supervisor->history_next + all - 1 - (uint32_t)i) % all];
    }
    jrt_supervisor_unlock(supervisor);
    return count;
}

janus_status janus_supervisor_inspect(janus_supervisor *supervisor, janus_supervisor_info *out)
{
    janus_supervisor_info info = {.struct_bytes = sizeof info};
    jrt_stack_check(); /* [stack-reserve] */
    if (supervisor == NULL || out == NULL || !jrt_struct_sane(out->struct_bytes, sizeof info))
        return JANUS_INVALID;
    janus_status status = jrt_supervisor_may_manage(supervisor);
    if (status != JANUS_OK) return status;
    jrt_lock(&supervisor->lock);
    for (const struct jrt_actor_place *at = supervisor->first; at != NULL; at = at->next) {
        info.specified++;
        info.running += jrt_place_runs(at);
        info.actors += at->spec->child.behaviour != NULL;
        info.tasks += at->spec->child.task != NULL;
        info.supervisors += at->spec->child.supervisor != NULL;
        info.stuck += at->state == JANUS_ACTOR_STATE_STUCK;
    }
    info.restarts = supervisor->result.restarts;
    const janus_supervisor_options *options = &supervisor->options;
    info.strategy = options->strategy;
    info.auto_stop = options->auto_stop;
    info.max_restarts = options->max_restarts;
    info.history = options->history;
    info.max_exhaustions = options->max_exhaustions;
    info.period_ns = options->period_ns;
    info.delay_ns = options->delay_ns;
    info.max_delay_ns = options->max_delay_ns;
    info.healthy_ns = options->healthy_ns;
    info.price = options->price;
    jrt_supervisor_unlock(supervisor);
    jrt_struct_give(out, &info);
    return JANUS_OK;
}
