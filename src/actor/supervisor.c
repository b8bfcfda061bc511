/* SPDX-License-Identifier: MIT */
/* Supervisors: the public calls. The essay is in step.c. */
#include "actor/supervisor.h"

#include "base/options.h"
#include "cancel/cancel.h"
#include "means/call.h"
#include "means/ledger.h"
#include "means/terms.h"
#include "means/trouble.h"
#include "nursery/nursery.h"
#include "work/work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HISTORY = 16, HISTORY_MAX = 1024, RESTARTS_MAX = 1 << 20, EXHAUSTIONS = 100, PRICE = 100 };

#define PERIOD_NS (5 * JANUS_SECONDS)

janus_scheduler *jrt_supervisor_scheduler(const janus_supervisor *supervisor)
{
    return supervisor->scheduler;
}

/* Opening. */

janus_status jrt_supervisor_decode(const janus_supervisor_options *given,
                                   janus_supervisor_options       *options)
{
    memset(options, 0, sizeof *options);
    if (given != NULL) {
        if (!jrt_struct_sane(given->struct_bytes, sizeof *options))
            return jrt_trouble_said(JANUS_INVALID, "struct_bytes is no size of the options");
        memcpy(options, given, given->struct_bytes);
    }
    options->struct_bytes = sizeof *options;
    const char *wrong = NULL;
    if ((unsigned)options->strategy > JANUS_SUPERVISION_REST_FOR_ONE) wrong = "strategy is none";
    if ((unsigned)options->auto_stop > JANUS_AUTO_STOP_ALL) wrong = "auto_stop is none";
    if (options->max_restarts > RESTARTS_MAX && options->max_restarts != JANUS_NO_RESTARTS)
        wrong = "max_restarts is above 1048576";
    if (options->history > HISTORY_MAX) wrong = "history is above 1024";
    if (options->children == NULL && options->child_count != 0) wrong = "children is NULL";
    if (wrong != NULL) return jrt_trouble_said(JANUS_INVALID, wrong);
    if (options->max_restarts == 0) options->max_restarts = 1;
    if (options->period_ns == 0) options->period_ns = PERIOD_NS;
    if (options->max_delay_ns == 0) options->max_delay_ns = options->delay_ns * 60;
    if (options->healthy_ns == 0) options->healthy_ns = options->period_ns;
    if (options->price == 0) options->price = PRICE;
    if (options->history == 0) options->history = HISTORY;
    if (options->max_exhaustions == 0) options->max_exhaustions = EXHAUSTIONS;
    return JANUS_OK;
}

static void set_nursery(const janus_supervisor *supervisor, janus_nursery_options *out)
{
    const janus_supervisor_options *options = &supervisor->options;
    const janus_scheduler          *scheduler = supervisor->scheduler;
    *out = (janus_nursery_options){.struct_bytes = sizeof *out,
                                   .policy = JANUS_POLICY_WAIT_ALL,
                                   .name = options->name != NULL ? options->name : "supervisor",
                                   .budget = options->budget,
                                   .granted = options->granted,
                                   .spawn_cap = options->spawn_cap,
                                   .budget_cap = options->budget_cap,
                                   .channel_cap = options->channel_cap,
                                   .executor_cap = options->executor_cap,
                                   .net_cap = options->net_cap,
                                   .file_cap = options->file_cap,
                                   .process_cap = options->process_cap,
                                   .name_cap = options->name_cap,
                                   .cancel_by_owner = true,
                                   .hidden = true};
    bool decides = options->on_exhausted != NULL || options->allowance.period_ns != 0 ||
                   options->polls || options->budget != NULL ||
                   scheduler->profile == JANUS_PROFILE_CLUSTER;
    if (!decides) return;
    out->exhaustion = JANUS_EXHAUSTION_SUPERVISE;
    if (options->polls) return;
    out->on_exhausted = jrt_supervisor_on_exhausted;
    out->on_exhausted_argument = (void *)(uintptr_t)supervisor;
}

static void free_parts(janus_supervisor *supervisor)
{
    struct jrt_ledger *ledger = supervisor->ledger;
    size_t             bytes = supervisor->bytes;
    /* acquire: the visitors' last touch, [step-visit]. */
    while (jrt_load_acquire(&supervisor->visitors) != 0) jrt_thread_yield();
    if (supervisor->spec != NULL) jrt_spec_put(supervisor->spec);
    jrt_ids_free(supervisor);
    free(supervisor->restarts);
    free(supervisor->history);
    pthread_mutex_destroy(&supervisor->lock);
    free(supervisor);
    jrt_ledger_refund(ledger, bytes);
}

static janus_supervisor *make(const janus_supervisor_options *options, struct jrt_worker *worker)
{
    janus_supervisor *supervisor = jrt_calloc(1, sizeof *supervisor);
    if (supervisor == NULL) return NULL;
    supervisor->scheduler = worker->scheduler;
    supervisor->owner = worker->current;
    pthread_mutex_init(&supervisor->lock, NULL);
    supervisor->options = *options;
    if (options->budget != NULL) {
        supervisor->pool = *options->budget;
        supervisor->options.budget = &supervisor->pool;
    }
    uint32_t max = options->max_restarts;
    supervisor->restarts_room = max == JANUS_NO_RESTARTS ? 1 : max + 1;
    supervisor->history_room = options->history;
    supervisor->restarts = jrt_calloc(supervisor->restarts_room, sizeof *supervisor->restarts);
    supervisor->history = jrt_calloc(supervisor->history_room, sizeof *supervisor->history);
    uint64_t seed = 0;
    if (worker->scheduler->world != NULL) {
        seed = jrt_rng_next(&worker->choices); /* the same seed, the same delays */
    } else {
        (void)jrt_random_fill(&seed, sizeof seed); /* jitter without it is as good */
    }
    jrt_rng_seed(&supervisor->rng, seed);
    if (supervisor->restarts != NULL && supervisor->history != NULL) return supervisor;
    free_parts(supervisor);
    return NULL;
}

static size_t bytes_of(const janus_supervisor_options *options)
{
    uint64_t restarts = options->max_restarts == JANUS_NO_RESTARTS ? 1 : options->max_restarts + 1u;
    return sizeof(janus_supervisor) + restarts * 8 + options->history * sizeof(janus_restart_info);
}

/* Whether workers run the children that the task starts. */
static bool has_workers(const struct jrt_task *task)
{
    const struct jrt_terms *terms = jrt_terms_here(task);
    return terms == NULL || jrt_backend_on_workers(terms->backend);
}

static janus_status open_in(const janus_supervisor_options *options, struct jrt_actor_place *host,
                            janus_supervisor **out)
{
    struct jrt_worker    *worker = jrt_worker_self();
    struct jrt_ledger    *ledger;
    janus_nursery_options nursery;
    if (!has_workers(worker->current)) return JANUS_UNAVAILABLE;
    janus_status status = jrt_ledger_charge(bytes_of(options), &ledger);
    if (status != JANUS_OK) return status;
    janus_supervisor *supervisor = make(options, jrt_worker_self());
    if (supervisor == NULL) {
        jrt_ledger_refund(ledger, bytes_of(options));
        return JANUS_NO_MEMORY;
    }
    supervisor->ledger = ledger;
    supervisor->bytes = bytes_of(options);
    supervisor->host = host;
    set_nursery(supervisor, &nursery);
    status = janus_nursery_open(&supervisor->nursery, &nursery);
    if (status != JANUS_OK) {
        free_parts(supervisor);
        return status;
    }
    jrt_nursery_of(&supervisor->nursery)->on_heap = JRT_SUPERVISED;
    supervisor->owner = jrt_task_current();
    *out = supervisor;
    return JANUS_OK;
}

void jrt_supervisor_release(janus_supervisor *supervisor) { free_parts(supervisor); }

/* Whether all specifications can be used. */
static janus_status check_children(janus_supervisor *supervisor, const janus_child *children,
                                   size_t count)
{
    janus_status status = JANUS_OK;
    jrt_lock(&supervisor->lock);
    for (size_t i = 0; i < count && status == JANUS_OK; i++) {
        struct jrt_spec *spec;
        bool             made;
        status = jrt_spec_make(supervisor, &children[i], &spec, &made);
        if (status != JANUS_OK) break;
        jrt_spec_forget(supervisor, spec); /* nobody has paid for it */
        jrt_spec_put(spec);
    }
    jrt_supervisor_unlock(supervisor);
    return status;
}

static janus_status start_children(janus_supervisor *supervisor, const janus_child *children,
                                   size_t count)
{
    janus_status status = check_children(supervisor, children, count);
    for (size_t i = 0; i < count && (status == JANUS_OK || status == JANUS_IGNORED); i++) {
        status = janus_supervisor_add(supervisor, &children[i], NULL);
    }
    return status == JANUS_IGNORED ? JANUS_OK : status;
}

/* A child did not start: ends what has. The explanation stays that of the child. */
static janus_status undo(janus_supervisor *supervisor, janus_status status)
{
    struct jrt_trouble trouble = jrt_thread_self()->trouble;
    janus_status       ended = janus_supervisor_end(supervisor, NULL);
    jrt_thread_self()->trouble = trouble;
    return status == JANUS_CLOSED && ended != JANUS_OK ? ended : status; /* it gave up before */
}

/* Asks init whether there is something to do. 0: there is, IGNORE, or a failure. */
static int64_t ask_init(const janus_supervisor_options *options)
{
    int64_t result = options->init != NULL ? options->init(options->init_argument) : 0;
    return result <= 0 || result == JANUS_ACTOR_IGNORE ? result : JANUS_INVALID;
}

static janus_status init_failed(int64_t error)
{
    char clause[64];
    (void)snprintf(clause, sizeof clause, "options.init returned %lld", (long long)error);
    return jrt_trouble_said(JANUS_CHILD_FAILED, clause);
}

janus_status janus_supervisor_open(const janus_supervisor_options *given, janus_supervisor **out)
{
    jrt_stack_check(); /* [stack-reserve] */
    janus_supervisor_options options;
    janus_supervisor        *supervisor = NULL;
    if (out == NULL) return JANUS_INVALID;
    if (jrt_task_current() == NULL) return JANUS_STATE;
    janus_status status = jrt_supervisor_decode(given, &options);
    if (status != JANUS_OK) return status;
    int64_t asked = ask_init(&options);
    if (asked != 0) return asked == JANUS_ACTOR_IGNORE ? JANUS_IGNORED : init_failed(asked);
    status = open_in(&options, NULL, &supervisor);
    if (status != JANUS_OK) return status;
    status = start_children(supervisor, options.children, options.child_count);
    if (status != JANUS_OK) return undo(supervisor, status);
    *out = supervisor;
    return JANUS_OK;
}

int64_t jrt_supervisor_open_below(const janus_supervisor_options *given,
                                  struct jrt_actor_place *host, janus_supervisor **out)
{
    janus_supervisor_options options;
    janus_status             status = jrt_supervisor_decode(given, &options);
    int64_t                  asked = status == JANUS_OK ? ask_init(&options) : status;
    if (asked != 0) return asked;
    status = open_in(&options, host, out);
    if (status != JANUS_OK) return status;
    status = start_children(*out, options.children, options.child_count);
    return status == JANUS_OK ? status : undo(*out, status);
}

/* Adding. */

static void link_place(janus_supervisor *supervisor, struct jrt_actor_place *place)
{
    place->before = supervisor->last;
    place->next = NULL;
    if (supervisor->last != NULL) {
        supervisor->last->next = place;
    } else {
        supervisor->first = place;
    }
    supervisor->last = place;
    supervisor->count++;
}

/* Makes the place of a new child. With the lock. */
static janus_status new_place(janus_supervisor *supervisor, struct jrt_spec *spec,
                              struct jrt_ledger *ledger, struct jrt_actor_place **out)
{
    janus_status status = jrt_place_take(ledger, out);
    if (status != JANUS_OK) return status;
    struct jrt_actor_place *place = *out;
    place->resident.rules = &jrt_actor_rules;
    place->resident.site = (janus_site){.file = "supervisor", .line = (int)jrt_place_index(place)};
    place->supervisor = supervisor;
    place->spec = spec;
    if (spec->child.behaviour != NULL)
        place->message_bytes = (uint16_t)spec->child.behaviour->message_bytes;
    place->fresh = true;
    link_place(supervisor, place);
    if (!jrt_ids_add(supervisor, place)) {
        supervisor->last = place->before;
        if (place->before != NULL)
            place->before->next = NULL;
        else
            supervisor->first = NULL;
        supervisor->count--;
        jrt_place_give(place);
        *out = NULL;
        return JANUS_NO_MEMORY;
    }
    jrt_place_publish(place);
    return JANUS_OK;
}

/* Starts a child for a caller that waits. With the lock. WOULD_WAIT: wait for it. */
janus_status jrt_start_begin(struct jrt_actor_place *place, struct jrt_actor_waiter *waiter)
{
    place->manual = true;
    janus_status status = jrt_place_start(place);
    if (status != JANUS_OK) {
        bool fresh = place->fresh;
        jrt_place_move(place, JANUS_ACTOR_STATE_EMPTY);
        place->manual = false;
        if (fresh) {
            jrt_place_remove(place);
        } else {
            jrt_mail_drop(place, JANUS_GONE);
        }
        return status;
    }
    jrt_place_lock(place);
    bool starting = place->state == JANUS_ACTOR_STATE_STARTING;
    if (starting) jrt_waiter_begin(place, waiter, JRT_AWAIT_START);
    if (starting) jrt_place_label(place, waiter->label, sizeof waiter->label);
    jrt_place_unlock(place);
    return starting ? JANUS_WOULD_WAIT : JANUS_OK;
}

/* Why a start that was awaited failed, for janus_explain. */
static janus_status tell_start(janus_status status, const struct jrt_actor_waiter *waiter)
{
    char clause[160];
    if (status == JANUS_DEADLINE)
        return jrt_trouble_said(status, "init took longer than start_within_ns, and was cancelled");
    if (status != JANUS_CHILD_FAILED) return status;
    (void)snprintf(clause, sizeof clause, "the init of \"%s\" ended: %s, %lld", waiter->label,
                   janus_end_kind_name(waiter->end.kind), (long long)waiter->end.error);
    return jrt_trouble_said(status, clause);
}

janus_status jrt_start_wait(janus_supervisor *supervisor, struct jrt_actor_place *place,
                            struct jrt_actor_waiter *waiter, uint64_t serial)
{
    janus_status status = jrt_waiter_wait(place, waiter, "a child to start", JRT_NEVER);
    if (waiter->done) {
        jrt_lock(&supervisor->lock);
        if (place->serial == serial) place->manual = false;
        jrt_supervisor_unlock(supervisor);
        return tell_start(status, waiter);
    }
    if (status == JANUS_CANCELLED) return jrt_task_cancelled_or_end(jrt_task_current());
    return status;
}

/* With the lock: whether a child can be added, and its place. */
static janus_status add_locked(janus_supervisor *supervisor, struct jrt_spec *spec,
                               struct jrt_ledger *ledger, struct jrt_actor_waiter *waiter,
                               struct jrt_actor_place **out, janus_actor *handle)
{
    if (supervisor->plan >= JRT_PLAN_STOP) return JANUS_CLOSED;
    if (supervisor->plan != JRT_PLAN_NONE) return JANUS_STARTING;
    struct jrt_actor_place *same = spec->id != NULL ? jrt_ids_find(supervisor, spec->id) : NULL;
    if (same != NULL) {
        *handle = jrt_place_handle(same, JANUS_ACTOR_MAY_ALL);
        return JANUS_EXISTS;
    }
    janus_status status = new_place(supervisor, spec, ledger, out);
    if (status != JANUS_OK) return status;
    *handle = jrt_place_handle(*out, JANUS_ACTOR_MAY_ALL);
    return jrt_start_begin(*out, waiter);
}

static janus_status add(janus_supervisor *supervisor, const janus_child *child, janus_actor *out)
{
    struct jrt_spec        *spec = NULL;
    struct jrt_ledger      *ledger = NULL;
    struct jrt_actor_place *place = NULL;
    struct jrt_actor_waiter waiter;
    janus_actor             handle = {{0, 0}};
    if (supervisor == NULL || child == NULL) return JANUS_INVALID;
    janus_status status = jrt_supervisor_may_manage(supervisor);
    if (status != JANUS_OK) return status;
    bool made;
    jrt_lock(&supervisor->lock);
    status = jrt_spec_make(supervisor, child, &spec, &made);
    jrt_supervisor_unlock(supervisor);
    if (status != JANUS_OK) return status;
    size_t bytes = jrt_spec_bytes(spec);
    bool   unpaid = made && (status = jrt_spec_charge(spec)) != JANUS_OK;
    if (status == JANUS_OK) status = jrt_ledger_charge(bytes, &ledger);
    if (status == JANUS_OK && spec->options.priority == JANUS_PRIORITY_HIGH) {
        status = jrt_terms_outside(); /* [spawn-high] */
        if (status != JANUS_OK) jrt_ledger_refund(ledger, bytes);
    }
    jrt_lock(&supervisor->lock);
    uint64_t serial = 0;
    if (status == JANUS_OK) {
        status = add_locked(supervisor, spec, ledger, &waiter, &place, &handle);
        serial = place != NULL ? place->serial : 0;
        if (place == NULL) jrt_ledger_refund(ledger, bytes);
    }
    if (unpaid) jrt_spec_forget(supervisor, spec);
    if (place == NULL) jrt_spec_put(spec);
    jrt_supervisor_unlock(supervisor);
    if (status == JANUS_WOULD_WAIT) status = jrt_start_wait(supervisor, place, &waiter, serial);
    bool same = status == JANUS_EXISTS && place == NULL; /* of that id, not of that name */
    if (out != NULL && (status == JANUS_OK || same || status == JANUS_IGNORED)) *out = handle;
    return status;
}

/* Ends a call with an error, for janus_explain. The refusal of a start is noted without a task,
 * because the supervisor starts the child: it is the caller's. */
static janus_status tell(janus_status status, const char *call)
{
    struct jrt_trouble    *trouble = &jrt_thread_self()->trouble;
    const struct jrt_task *task = jrt_task_current();
    if (status >= 0 || status == JANUS_IGNORED) return status;
    if (trouble->fresh && trouble->status == status && trouble->task == 0 && task != NULL)
        trouble->task = jrt_task_id(task);
    return jrt_trouble_end(status, call);
}

janus_status janus_supervisor_add(janus_supervisor *supervisor, const janus_child *child,
                                  janus_actor *out)
{
    jrt_stack_check(); /* [stack-reserve] */
    jrt_thread_self()->trouble.fresh = false;
    return tell(add(supervisor, child, out), "janus_supervisor_add");
}
