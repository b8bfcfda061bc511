/* SPDX-License-Identifier: MIT */
/*
 * Supervisors: the steps.
 *
 * A supervisor is a record with a lock, and has no task. Each event is a step under the lock. The
 * thread that sees the event takes the step. It may be the worker on which a child ended, the actor
 * whose init returned, the thread that fires timers, or a caller. A step never waits. It starts
 * children, tells children to end, arms timers and wakes waiters.
 *
 * [place-moves]  The moves of a place. Row: from. Every other move is a bug.
 *
 *     EMPTY     -> STARTING  it is started
 *               -> GONE      it is removed
 *     STARTING  -> RUNNING   init has returned
 *               -> STOPPING  it is told to end before that
 *               -> EMPTY     init failed, or had nothing to do
 *               -> DELAYED   init failed at a restart
 *     RUNNING   -> STOPPING  it is told to end
 *               -> EMPTY     it has ended, and is not started again
 *               -> DELAYED   it has ended, and is started again later
 *     DELAYED   -> EMPTY     its time has come, or it is told to end
 *     STOPPING  -> EMPTY     it has ended
 *               -> STUCK     it has not, although it was cancelled
 *     STUCK     -> EMPTY     it has ended after all
 *
 * [step-decide]  Only jrt_place_ended decides about a child that ended, once for each end, under
 *   the lock. The child itself only says how it ended.
 *
 * [step-plan]  A plan concerns several children: stop some and start them again, or stop all. It is
 *   a kind and a first child. The states of the places say how far it has come, so an event only
 *   calls jrt_supervisor_go_on, which does what is next. A failure in a plan to restart begins a
 *   new plan.
 *
 * [step-stop]  A child that has to end has a time, then it is cancelled, then after GRACE_NS it is
 *   STUCK. To tell it again gives it no more time. A stuck child keeps nobody waiting but the end
 *   of the supervisor.
 */
#include "actor/supervisor.h"

#include "cancel/cancel.h"
#include "means/callback.h"
#include "means/purse.h"
#include "means/terms.h"
#include "means/trouble.h"
#include "nursery/nursery.h"
#include "rt/inside.h"
#include "task/note.h"
#include "work/work.h"

#include <stdlib.h>
#include <string.h>

/* Moves, [place-moves]. */

#define TO(state) (1u << JANUS_ACTOR_STATE_##state)

static const uint8_t moves[] = {
    [JANUS_ACTOR_STATE_EMPTY] = TO(STARTING) | TO(GONE),
    [JANUS_ACTOR_STATE_STARTING] = TO(RUNNING) | TO(STOPPING) | TO(EMPTY) | TO(DELAYED),
    [JANUS_ACTOR_STATE_RUNNING] = TO(STOPPING) | TO(EMPTY) | TO(DELAYED),
    [JANUS_ACTOR_STATE_DELAYED] = TO(EMPTY),
    [JANUS_ACTOR_STATE_STOPPING] = TO(EMPTY) | TO(STUCK),
    [JANUS_ACTOR_STATE_STUCK] = TO(EMPTY),
    [JANUS_ACTOR_STATE_GONE] = 0,
};

/* Moves the place, and says whether it takes messages. Under both locks. */
static void move(struct jrt_actor_place *place, janus_actor_state to)
{
    jrt_debug_invariant("place-moves", moves[place->state] >> to & 1u);
    jrt_debug_invariant("step-stop", to != JANUS_ACTOR_STATE_STUCK || place->cancelled);
    janus_supervisor *supervisor = place->supervisor;
    supervisor->live -= jrt_place_runs(place);
    supervisor->stopping -= place->state == JANUS_ACTOR_STATE_STOPPING;
    place->state = (uint8_t)to;
    supervisor->live += jrt_place_runs(place);
    supervisor->stopping += to == JANUS_ACTOR_STATE_STOPPING;
    place->open = to == JANUS_ACTOR_STATE_STARTING || to == JANUS_ACTOR_STATE_RUNNING ||
                  to == JANUS_ACTOR_STATE_DELAYED || place->starts;
    if (!place->open) jrt_mail_bar(place);
    if (!place->open && place->rare != NULL) jrt_senders_serve(place, true);
}

void jrt_place_move(struct jrt_actor_place *place, janus_actor_state to)
{
    jrt_place_lock(place);
    move(place, to);
    jrt_place_unlock(place);
}

bool jrt_place_set_time(struct jrt_actor_place *place, uint64_t after_ns)
{
    bool armed = after_ns == 0;
    /* Only steps set a time, with the supervisor's lock. Without a rare part it has no time. */
    if (armed && place->rare == NULL) return true;
    jrt_place_lock(place);
    struct jrt_actor_rare *rare = after_ns != 0 ? jrt_place_rare(place) : place->rare;
    if (rare != NULL) {
        uint64_t now = after_ns != 0 ? jrt_clock_now_ns() : 0;
        rare->step_at = after_ns == 0 ? 0 : now + after_ns < now ? JRT_NEVER - 2 : now + after_ns;
        armed = jrt_place_arm(place);
    }
    jrt_place_unlock(place);
    return armed;
}

/* A limit of time that is given up where memory is short. */
static void set_limit(struct jrt_actor_place *place, uint64_t after_ns)
{
    (void)jrt_place_set_time(place, after_ns);
}

/* Waiters of a place that are to be woken, without its lock. */
struct woken {
    struct jrt_actor_waiter *first, **end;
};

/* The waiter is done. Under the lock. */
static void be_done(struct jrt_actor_place *place, struct jrt_actor_waiter *waiter,
                    janus_status status, struct woken *woken)
{
    jrt_waiter_unlink(waiter);
    waiter->status = status;
    waiter->end = place->end;
    if (waiter->what == JRT_AWAIT_GONE) waiter->end.final = true;
    waiter->done = true;
    waiter->next = NULL;
    *woken->end = waiter;
    woken->end = &waiter->next;
}

static void wake_all(const struct woken *woken)
{
    for (struct jrt_actor_waiter *waiter = woken->first, *next = NULL; waiter != NULL;
         waiter = next) {
        next = waiter->next;
        jrt_waitpoint_wake(&waiter->point);
    }
}

void jrt_place_notify(struct jrt_actor_place *place, enum jrt_awaited what, janus_status status)
{
    struct woken             woken = {NULL, &woken.first};
    struct jrt_actor_waiter *next = NULL;
    jrt_place_lock(place);
    for (struct jrt_actor_waiter *waiter = place->waiters; waiter != NULL; waiter = next) {
        next = waiter->next;
        if (waiter->what == what) be_done(place, waiter, status, &woken);
    }
    jrt_place_unlock(place);
    wake_all(&woken);
}

/* The place is about to be free: all that wait learn of it, and it has no specification. */
static void clear_out(struct jrt_actor_place *place)
{
    struct woken             woken = {NULL, &woken.first};
    struct jrt_actor_waiter *next = NULL;
    jrt_place_lock(place);
    for (struct jrt_actor_waiter *waiter = place->waiters; waiter != NULL; waiter = next) {
        next = waiter->next;
        if (waiter->what == JRT_AWAIT_TOLD) continue;
        be_done(place, waiter, waiter->what == JRT_AWAIT_START ? JANUS_GONE : JANUS_OK, &woken);
    }
    place->spec = NULL;
    jrt_place_unlock(place);
    wake_all(&woken);
}

/* Starting. */

/* The budget that an incarnation begins with. NULL: no explicit one. */
static const janus_budget *budget_of(const struct jrt_actor_place *place, janus_budget *left)
{
    const struct jrt_spec *spec = place->spec;
    if (spec->options.budget == NULL) return NULL;
    *left = place->spent ? janus_budget_zero() : spec->budget;
    if (place->rare != NULL) {
#define X(name, field)                                                                             \
    left->field -= left->field < place->rare->spent.field ? left->field : place->rare->spent.field;
        JANUS_COMPONENT_MAP(X)
#undef X
    }
    return left;
}

/* [start-rest]  An actor without init, whose name needs no right, is ready before its task has
 * run: the task begins at rest. */
static bool starts_at_rest(const struct jrt_actor_place *place)
{
    const janus_behaviour   *behaviour = jrt_place_behaviour(place);
    const struct jrt_worker *worker = jrt_worker_self();
    return behaviour != NULL && behaviour->init == NULL && place->spec->name == NULL &&
           worker != NULL && worker->scheduler == place->supervisor->scheduler;
}

static void begin_at_rest(struct jrt_actor_place *place)
{
    struct jrt_task *task = NULL;
    jrt_debug_invariant("start-rest", jrt_place_behaviour(place)->init == NULL && !place->named);
    jrt_place_lock(place);
    move(place, JANUS_ACTOR_STATE_RUNNING);
    /* relaxed: under the lock. A cancel may have woken the task, [task-rest]. */
    uint32_t park = place->task != NULL ? jrt_load_relaxed(&place->task->park) : JRT_AWAKE;
    place->resting = (park & JRT_PARK_MASK) == JRT_PARKED;
    if (place->resting) jrt_mail_rest(place);
    if (jrt_place_has_letters(place)) task = jrt_place_rouse(place);
    jrt_place_unlock_and_queue(place, task);
    place->fresh = place->manual = false;
}

static janus_status start_refused(struct jrt_actor_place *place, janus_status status)
{
    place->refused = true;
    jrt_place_lock(place);
    if (place->self != place->small) free(place->self);
    place->self = NULL;
    place->end = (janus_end){
        .kind = JANUS_END_KIND_FAILED, .incarnation = place->incarnation, .error = status};
    jrt_place_unlock(place);
    return status;
}

janus_status jrt_place_start(struct jrt_actor_place *place)
{
    janus_supervisor         *supervisor = place->supervisor;
    const struct jrt_spec    *spec = place->spec;
    janus_budget              left;
    const janus_spawn_options options = {.struct_bytes = sizeof options,
                                         .stack_bytes = spec->options.stack_bytes,
                                         .priority = spec->options.priority,
                                         .budget = budget_of(place, &left)};
    jrt_place_lock(place);
    move(place, JANUS_ACTOR_STATE_STARTING);
    place->incarnation++;
    /* A task that begins at rest may be woken by a cancel before this returns. */
    place->phase = starts_at_rest(place) ? JRT_PHASE_WORK : JRT_PHASE_INIT;
    place->stops = 0;
    place->suspended = place->forced = place->dismissed = false;
    if (spec->options.message_budget != NULL) (void)jrt_place_rare(place); /* [actor-apart] */
    jrt_place_unlock(place);
    place->starts = place->late = place->stopped = place->nameless = place->asked = false;
    /* Where capabilities decide about names, the name is asked for after init: a refusal must not
     * tell whether the name exists. */
    if (jrt_supervisor_nursery(supervisor)->terms == NULL && jrt_place_name_taken(place))
        return start_refused(place, JANUS_EXISTS);
    bool at_rest = starts_at_rest(place); /* [start-rest] */
    if (at_rest && !jrt_place_make_state(place)) return start_refused(place, JANUS_NO_MEMORY);
    janus_status status = jrt_spawn_resident(jrt_supervisor_nursery(supervisor), &place->resident,
                                             spec->title, &options, at_rest);
    if (status != JANUS_OK) return start_refused(place, status);
    place->refused = false;
    if (at_rest) {
        begin_at_rest(place);
    } else if (spec->child.behaviour == NULL || spec->child.behaviour->init != NULL) {
        set_limit(place, jrt_place_start_within(place));
    }
    return JANUS_OK;
}

bool jrt_place_started(struct jrt_actor_place *place, int64_t result)
{
    janus_supervisor *supervisor = place->supervisor;
    bool              runs = result == 0 || result == JANUS_ACTOR_STOP;
    janus_status      named = JANUS_OK;
    if (!runs) {
        jrt_place_lock(place);
        /* A number that means nothing is a failure, too. */
        bool           ignores = result == JANUS_ACTOR_IGNORE;
        janus_end_kind kind = ignores ? JANUS_END_KIND_NORMAL : JANUS_END_KIND_FAILED;
        place->end = (janus_end){.kind = kind, .incarnation = place->incarnation, .error = result};
        jrt_place_unlock(place);
        return false;
    }
    jrt_lock(&supervisor->lock);
    bool wanted = place->state == JANUS_ACTOR_STATE_STARTING;
    if (wanted) named = jrt_place_name(place);
    if (wanted && named == JANUS_OK) {
        set_limit(place, 0);
        jrt_place_lock(place);
        move(place, JANUS_ACTOR_STATE_RUNNING);
        place->phase = JRT_PHASE_WORK;
        jrt_place_unlock(place);
        place->fresh = place->manual = false;
        jrt_place_notify(place, JRT_AWAIT_START, JANUS_OK);
        jrt_supervisor_go_on(supervisor);
    } else if (!wanted) { /* a stop came meanwhile: it ends as a child that runs */
        jrt_place_lock(place);
        place->phase = JRT_PHASE_WORK;
        jrt_place_unlock(place);
    } else {
        jrt_place_lock(place);
        place->end = (janus_end){
            .kind = JANUS_END_KIND_FAILED, .incarnation = place->incarnation, .error = named};
        jrt_place_unlock(place);
        place->nameless = true;
    }
    jrt_supervisor_unlock(supervisor);
    return named == JANUS_OK;
}

/* The end of an incarnation. */

static janus_end end_of(const struct jrt_actor_place *place, const struct jrt_task *task,
                        bool cancelled)
{
    janus_end end = {.incarnation = place->incarnation};
    int64_t   result = task->landing.result;
    if (task->panic != JANUS_PANIC_KIND_NONE) {
        end.kind = task->panic == JANUS_PANIC_KIND_STACK_OVERFLOW ? JANUS_END_KIND_OVERFLOWED
                                                                  : JANUS_END_KIND_PANICKED;
    } else if (cancelled) {
        end.kind = place->stops != 0 && task->purse != NULL && !task->purse->dismissed &&
                           place->spec->child.task != NULL
                       ? JANUS_END_KIND_STOPPED
                       : JANUS_END_KIND_CANCELLED;
    } else if (result == JANUS_BUDGET_EXHAUSTED && task->purse != NULL &&
               task->purse->lacks != JANUS_COMPONENT_NONE) {
        end.kind = JANUS_END_KIND_EXHAUSTED;
        end.lacks = task->purse->lacks;
    } else if (result < 0) {
        end.kind = JANUS_END_KIND_FAILED;
        end.error = result;
    }
    return end;
}

/* What the incarnation spent of its explicit budget. */
static void count_spent(struct jrt_actor_place *place, const struct jrt_task *task)
{
    if (task->purse == NULL || !task->purse->hard) return;
    jrt_place_lock(place);
    struct jrt_actor_rare *rare = jrt_place_rare(place);
    place->spent = rare == NULL; /* without memory for the count, all of it is spent */
    jrt_place_unlock(place);
    if (rare == NULL) return;
    jrt_place_together(place, (struct jrt_task *)(uintptr_t)task);
    janus_budget left = task->purse->left;
    int64_t      fuel = jrt_fuel_get(); /* the task's, until its purse is closed */
    if (task->purse->started)
        left.ops = janus_units_add(left.ops, jrt_purse_settled(task->purse, fuel));
    janus_budget spent = janus_budget_zero();
#define X(name, field)                                                                             \
    spent.field =                                                                                  \
        task->purse->granted.field > left.field ? task->purse->granted.field - left.field : 0;
    JANUS_COMPONENT_MAP(X)
#undef X
    spent.memory = 0; /* it all comes back */
    rare->last_spent = spent;
    rare->spent = janus_budget_add(rare->spent, spent);
}

/* Asking on_end, as a callback of the ended child, while its record is there. */

struct asking {
    janus_supervisor *supervisor;
    janus_child_event event;
    uint64_t          delay;
    janus_decision    decision;
};

static void ask(void *argument)
{
    struct asking *asking = argument;
    asking->decision = asking->supervisor->options.on_end(
        asking->supervisor->options.on_end_argument, &asking->event, &asking->delay);
}

static void ask_on_end(struct jrt_actor_place *place, struct jrt_task *task)
{
    janus_supervisor *supervisor = place->supervisor;
    struct asking     asking = {.supervisor = supervisor};
    if (supervisor->options.on_end == NULL) return;
    jrt_lock(&supervisor->lock);
    jrt_place_lock(place);
    bool asks = place->state == JANUS_ACTOR_STATE_RUNNING && jrt_place_rare(place) != NULL;
    jrt_place_unlock(place);
    asks = asks && !jrt_supervisor_is_ending(supervisor);
    if (asks) {
        bool failed = place->end.kind > JANUS_END_KIND_STOPPED;
        asking.delay = failed ? jrt_place_next_delay(place) : 0;
        asking.event = (janus_child_event){.actor = jrt_place_handle(place, JANUS_ACTOR_MAY_ALL),
                                           .id = place->spec->id,
                                           .behaviour = jrt_place_sort(place),
                                           .end = place->end,
                                           .restarts = jrt_supervisor_recent(supervisor),
                                           .spent = place->rare->last_spent,
                                           .tag = place->rare->tag};
    }
    jrt_supervisor_unlock(supervisor);
    if (!asks) return;
    (void)jrt_callback_run_for(task, ask, &asking, "a supervisor's on_end");
    place->rare->decision = (uint8_t)asking.decision;
    place->rare->chosen_ns = asking.delay;
    jrt_lock(&supervisor->lock);
    place->asked = true;
    jrt_supervisor_unlock(supervisor);
}

void jrt_place_ending(struct jrt_resident *resident, struct jrt_task *task, bool cancelled)
{
    struct jrt_actor_place *place = (struct jrt_actor_place *)resident;
    count_spent(place, task);
    jrt_place_lock(place);
    bool said = place->phase == JRT_PHASE_CLOSE; /* a panic in terminate hides no reason */
    bool none = place->phase == JRT_PHASE_INIT && task->panic == JANUS_PANIC_KIND_NONE &&
                task->landing.result == 0; /* IGNORE: jrt_place_started said so */
    if (!said && !none) place->end = end_of(place, task, cancelled);
    if (task->purse != NULL && task->purse->dismissed) place->dismissed = true;
    place->task = NULL;
    place->resting = false;
    /* relaxed, both: its own, and the version stays, [actor-circle]. */
    jrt_store_relaxed(&place->waits, (uint64_t)((uint32_t)jrt_load_relaxed(&place->waits) + 1));
    jrt_mail_close_window(place);
    void  *self = place->self;
    bool   small = self == place->small;
    size_t bytes = self != NULL ? jrt_place_behaviour(place)->state_bytes : 0;
    place->self = NULL;
    jrt_place_unlock(place);
    if (self != NULL) {
        explicit_bzero(self, bytes);
        if (!small) free(self);
    }
    ask_on_end(place, task);
}

/* Those that wait for an answer of an incarnation that has ended, or whose answers it waits for. */
struct owed {
    struct jrt_letter_head hand;
    struct jrt_debts       kept, asks;
    struct jrt_question   *describes;
    uint64_t               key;
};

static void take_owed(struct jrt_actor_place *place, struct owed *out)
{
    struct jrt_actor_rare *rare = place->rare;
    *out = (struct owed){.hand = place->hand};
    place->hand = (struct jrt_letter_head){.block = NULL};
    if (rare == NULL) return;
    jrt_place_lock(place);
    out->kept = rare->kept;
    out->asks = rare->asks;
    rare->kept = rare->asks = (struct jrt_debts){.list = NULL};
    out->describes = rare->describes;
    out->key = rare->describes_key;
    rare->describes = NULL;
    jrt_place_unlock(place);
}

/* They learn what has become of it. */
static void answer_owed(struct owed *owed, janus_status status)
{
    const struct jrt_letter_head *hand = &owed->hand;
    if (hand->is_call) {
        (void)jrt_question_end(hand->question, hand->key, status, NULL, 0);
    } else if (hand->block != NULL) { /* nobody has adopted it */
        jrt_block_unpost(hand->block);
        jrt_block_discard(hand->block);
    }
    if (owed->describes != NULL)
        (void)jrt_question_end(owed->describes, owed->key, JANUS_NO_REPLY, NULL, 0);
    jrt_debts_end(&owed->kept, status, false);
    jrt_debts_end(&owed->asks, status, true);
}

void jrt_place_remove(struct jrt_actor_place *place)
{
    janus_supervisor *supervisor = place->supervisor;
    jrt_ids_remove(supervisor, place);
    if (place->before != NULL) {
        place->before->next = place->next;
    } else {
        supervisor->first = place->next;
    }
    if (place->next != NULL) {
        place->next->before = place->before;
    } else {
        supervisor->last = place->before;
    }
    if (supervisor->cursor == place) {
        bool starts = supervisor->plan == JRT_PLAN_RESTART_START;
        bool last = supervisor->plan == JRT_PLAN_RESTART_STOP && supervisor->from == place;
        supervisor->cursor = starts ? place->next : last ? NULL : place->before;
    }
    if (supervisor->from == place) supervisor->from = place->next;
    if (supervisor->deciding == place) supervisor->deciding = NULL;
    supervisor->count--;
    struct jrt_ledger *ledger = place->ledger;
    struct jrt_spec   *spec = place->spec;
    size_t             bytes = jrt_spec_bytes(spec);
    jrt_place_lock(place);
    place->end.final = true;
    jrt_place_hide(place);
    move(place, JANUS_ACTOR_STATE_GONE);
    jrt_place_unlock(place);
    jrt_mail_drop(place, JANUS_GONE);
    jrt_watches_tell(place, &place->end);
    clear_out(place);
    supervisor->result.sent += place->sent;
    supervisor->result.handled += jrt_load_relaxed(&place->handled); /* relaxed: it has ended. */
    supervisor->result.returned += place->returned;
    supervisor->result.dead += place->dead;
    /* relaxed: it has ended. */
    jrt_invariant("mail-count",
                  place->sent == jrt_load_relaxed(&place->handled) + place->returned + place->dead);
    jrt_spec_put(spec);
    jrt_place_give(place);
    jrt_ledger_refund(ledger, bytes);
}

/* Nothing runs there and nothing will by itself: the place stays EMPTY, or goes. */
void jrt_place_settle(struct jrt_actor_place *place)
{
    if (place->state != JANUS_ACTOR_STATE_EMPTY) jrt_place_move(place, JANUS_ACTOR_STATE_EMPTY);
    if (!jrt_place_is_kept(place)) {
        jrt_place_remove(place);
        return;
    }
    jrt_place_notify(place, JRT_AWAIT_END, JANUS_OK);
    jrt_mail_drop(place, JANUS_GONE);
    jrt_place_notify(place, JRT_AWAIT_GONE, JANUS_OK);
}

void jrt_place_told_and_ended(struct jrt_actor_place *place)
{
    janus_supervisor *supervisor = place->supervisor;
    (void)jrt_place_set_time(place, 0);
    jrt_history_add(supervisor, place, false);
    if (place->starts) { /* by a plan that starts it again */
        bool stuck = place->state == JANUS_ACTOR_STATE_STUCK;
        jrt_place_move(place, JANUS_ACTOR_STATE_EMPTY);
        jrt_place_notify(place, JRT_AWAIT_END, JANUS_OK);
        /* The plan went on without it. */
        if (stuck && supervisor->plan != JRT_PLAN_RESTART_STOP &&
            jrt_place_start(place) != JANUS_OK)
            jrt_place_start_failed(place);
    } else {
        jrt_place_notify(place, JRT_AWAIT_START, JANUS_GONE);
        jrt_place_settle(place);
    }
}

/* What the end means, [step-decide]. */
static void decide(struct jrt_actor_place *place)
{
    jrt_debug_invariant("step-decide", jrt_place_runs(place) && place->task == NULL);
    switch ((janus_actor_state)place->state) {
    case JANUS_ACTOR_STATE_STARTING: jrt_place_start_failed(place); break;
    case JANUS_ACTOR_STATE_RUNNING: jrt_place_after_end(place); break;
    default: jrt_place_told_and_ended(place); break;
    }
}

void jrt_place_ended(struct jrt_resident *resident)
{
    struct jrt_actor_place *place = (struct jrt_actor_place *)resident;
    janus_supervisor       *supervisor = place->supervisor;
    struct owed             owed;
    jrt_lock(&supervisor->lock);
    janus_end end = place->end;
    set_limit(place, 0);
    jrt_place_unname(place);
    jrt_notices_end(place);
    jrt_watches_collect(place);
    take_owed(place, &owed);
    jrt_debug_invariant("step-decide", supervisor->deciding == NULL);
    supervisor->deciding = place;
    decide(place);
    bool here = supervisor->deciding == place; /* else it is gone, and its watchers know */
    supervisor->deciding = NULL;
    bool again = here && (place->state != JANUS_ACTOR_STATE_EMPTY || place->starts);
    end.final = !again;
    if (here) jrt_watches_tell(place, &end);
    answer_owed(&owed, again ? JANUS_RESTARTED : JANUS_GONE);
    jrt_supervisor_go_on(supervisor);
    jrt_supervisor_unlock(supervisor);
}
