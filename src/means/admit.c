/* SPDX-License-Identifier: MIT */
/* Admission: what a spawn takes from the terms it is made under, and what a task's end returns. The
 * essay is in terms.c. */
#include "base/outside.h"
#include "means/call.h"
#include "means/callback.h"
#include "means/terms.h"
#include "means/trouble.h"
#include "task/nursery.h"
#include "task/purse.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/limit.h"
#include "work/turn.h"

/* Refusals for which no capability was asked. */

janus_status jrt_terms_deny(janus_scheduler *scheduler, const struct jrt_cap_actor *actor,
                            janus_cap_kind kind, uint32_t right, janus_status status)
{
    return jrt_terms_deny_at(scheduler, actor, kind, right, status, NULL);
}

janus_status jrt_terms_deny_at(janus_scheduler *scheduler, const struct jrt_cap_actor *actor,
                               janus_cap_kind kind, uint32_t right, janus_status status,
                               const struct jrt_cap_target *target)
{
    bool limit = status == JANUS_TASK_LIMIT || status == JANUS_CHANNEL_LIMIT ||
                 status == JANUS_HANDLE_LIMIT || status == JANUS_CAP_LIMIT;
    jrt_cap_count(scheduler->caps, limit ? JRT_CAP_REFUSED_LIMIT : JRT_CAP_REFUSED_NONE);
    return jrt_cap_deny_at(scheduler->caps, actor, (janus_cap){0}, kind, right, status, target);
}

janus_status jrt_terms_full(janus_scheduler *scheduler, const struct jrt_worker *worker)
{
    struct jrt_cap_actor actor = jrt_actor_in(scheduler, worker);
    uint64_t             max = (uint64_t)scheduler->limit.max;
    (void)jrt_terms_deny(scheduler, &actor, JANUS_CAP_KIND_SPAWN, JANUS_RIGHT_SPAWN_TASK,
                         JANUS_TASK_LIMIT);
    return jrt_trouble(JANUS_TASK_LIMIT, JANUS_COMPONENT_NONE, max, max);
}

/* Room for children. */

/* A spawn may have been refused the room that is returned here, and may wait for it. */
static void tell_room(janus_scheduler *scheduler, struct jrt_terms *terms)
{
    jrt_fence_light_seq_cst(); /* seq_cst: [limit-wish]. */
    /* relaxed: after the fence. */
    if (jrt_unlikely(jrt_load_relaxed(&scheduler->wishes) != 0))
        jrt_wish_freed(scheduler, &terms->wishes);
}

/* Returns room in `terms` and in all terms around them, up to `end`. */
static void give_room(janus_scheduler *scheduler, struct jrt_terms *terms,
                      const struct jrt_terms *end)
{
    for (; terms != end; terms = terms->outer) {
        if ((terms->bound & 1u << JANUS_CAP_KIND_SPAWN) == 0) continue;
        jrt_cap_give_task(&terms->use);
        tell_room(scheduler, terms);
    }
}

/* Whether all terms that must count a task have counted one. */
static bool is_counted(const struct jrt_terms *terms)
{
    for (; terms != NULL; terms = terms->outer) {
        bool counts = (terms->bound & 1u << JANUS_CAP_KIND_SPAWN) != 0;
        /* relaxed: the caller's own count is in it. */
        if (counts && jrt_load_relaxed(&terms->use.tasks) == 0) return false;
    }
    return true;
}

/* Takes room in all terms that count it, [terms-count]. On any error it takes none, and *full names
 * the terms without room. */
static janus_status take_room(struct jrt_terms *terms, janus_scheduler *scheduler,
                              struct jrt_worker *worker, struct jrt_terms **full)
{
    struct jrt_cap_actor actor = jrt_actor_in(scheduler, worker);
    janus_cap_limits     limits;
    struct jrt_terms    *at = terms;
    for (; at != NULL; at = at->outer) {
        if ((at->bound & 1u << JANUS_CAP_KIND_SPAWN) == 0) continue;
        actor.holder = at->held[JANUS_CAP_KIND_SPAWN].holder;
        janus_status status = jrt_cap_gate_spawn(
            scheduler->caps, at->held[JANUS_CAP_KIND_SPAWN].cap, &actor, &at->use, &limits);
        if (status == JANUS_OK) continue;
        *full = at;
        jrt_point(); /* [sim-point]: others may be refused meanwhile */
        give_room(scheduler, terms, at);
        /* The gate may have returned room. */
        if (status != JANUS_TASK_LIMIT) tell_room(scheduler, at);
        /* relaxed: for the message. */
        uint64_t used = jrt_load_relaxed(&at->use.tasks);
        return jrt_trouble(status, JANUS_COMPONENT_NONE, used, used);
    }
    jrt_debug_invariant("terms-count", is_counted(terms));
    return JANUS_OK;
}

/* Returns the places in `terms` and in all terms around them, up to `end`. */
static void give_places(janus_scheduler *scheduler, struct jrt_terms *terms,
                        const struct jrt_terms *end)
{
    for (; terms != end; terms = terms->outer) {
        if (terms->max_tasks == 0) continue;
        jrt_cap_give(&terms->tasks);
        tell_room(scheduler, terms);
    }
}

/* Takes a place in all terms with max_tasks, [terms-place]. On TASK_LIMIT it takes none, and *full
 * names the terms without a place. */
static janus_status take_places(struct jrt_terms *terms, janus_scheduler *scheduler,
                                struct jrt_worker *worker, struct jrt_terms **full)
{
    for (struct jrt_terms *at = terms; at != NULL; at = at->outer) {
        if (at->max_tasks == 0) continue;
        bool taken = jrt_cap_take(&at->tasks, at->max_tasks);
        /* relaxed: only the number counts. */
        jrt_debug_invariant("terms-place", jrt_load_relaxed(&at->tasks) <= at->max_tasks);
        if (taken) continue;
        struct jrt_cap_actor actor = jrt_actor_in(scheduler, worker);
        *full = at;
        jrt_point(); /* [sim-point]: others may be refused meanwhile */
        give_places(scheduler, terms, at);
        (void)jrt_terms_deny(scheduler, &actor, JANUS_CAP_KIND_SPAWN, JANUS_RIGHT_SPAWN_TASK,
                             JANUS_TASK_LIMIT);
        return jrt_trouble(JANUS_TASK_LIMIT, JANUS_COMPONENT_NONE, at->max_tasks, at->max_tasks);
    }
    return JANUS_OK;
}

static bool has_places(const struct jrt_nursery *n)
{
    return jrt_unlikely(n->terms != NULL && n->terms->counts);
}

static bool is_implicit(const struct jrt_terms *terms, const janus_scheduler *scheduler)
{
    uint32_t implicit = terms != NULL ? terms->implicit : scheduler->implicit;
    return (implicit & 1u << JANUS_CAP_KIND_SPAWN) != 0;
}

static janus_status take_implicit(janus_scheduler *scheduler, struct jrt_worker *worker)
{
    bool mine = worker != NULL && worker->scheduler == scheduler && worker->seat == NULL;
    bool room = mine ? jrt_quota_take(&worker->quota, worker) : jrt_limit_take_outside(scheduler);
    return room ? JANUS_OK : jrt_terms_full(scheduler, mine ? worker : NULL);
}

/* Returns the room that take_child took. */
static void leave_room(struct jrt_nursery *n, struct jrt_worker *worker)
{
    if (!is_implicit(n->terms, n->scheduler)) {
        give_room(n->scheduler, n->terms, NULL);
    } else if (worker != NULL && worker->scheduler == n->scheduler && worker->seat == NULL) {
        jrt_quota_give(&worker->quota);
    } else {
        jrt_limit_give_outside(n->scheduler);
    }
}

void jrt_terms_leave(struct jrt_nursery *n, struct jrt_worker *worker)
{
    leave_room(n, worker);
    if (has_places(n)) give_places(n->scheduler, n->terms, NULL);
}

/* Takes the child's share, [terms-energy]. */
static janus_status take_entry(struct jrt_nursery *n, const janus_budget *want,
                               struct jrt_admission *out)
{
    struct jrt_terms *terms = n->terms;
    janus_scheduler  *scheduler = n->scheduler;
    bool              implicit = is_implicit(terms, scheduler);
    janus_component   lacks = JANUS_COMPONENT_NONE;
    janus_budget      most = terms != NULL ? terms->task_budget : scheduler->task_budget;
    *out = (struct jrt_admission){.account = NULL};
    if (terms != NULL && terms->account != NULL) {
        out->share = most;
        if (want != NULL) out->share = implicit ? *want : janus_budget_min(*want, most);
        out->account = terms->account;
        lacks = jrt_account_split(terms->account, &out->share, &out->share);
        out->split = true;
        out->booked = out->share;
    } else if (!implicit || want != NULL) {
        out->share = most;
        if (want != NULL && !implicit) out->share = janus_budget_min(*want, most);
        if (want != NULL && implicit) { /* a request */
            janus_status status =
                jrt_terms_request(scheduler, terms, JANUS_RIGHT_BUDGET_REQUEST, want, &out->share);
            if (status < 0) return status;
        }
        out->account = &scheduler->bank;
        out->booked = jrt_share_booked(&out->share);
        lacks = jrt_account_take(out->account, &out->booked);
    }
    if (lacks == JANUS_COMPONENT_NONE) return JANUS_OK;
    struct jrt_account_books books;
    jrt_account_read(out->account, &books);
    uint64_t granted = janus_budget_get(&books.granted, lacks);
    return jrt_trouble(JANUS_SPAWN_BUDGET, lacks, granted - janus_budget_get(&books.left, lacks),
                       granted);
}

void jrt_admission_return(const struct jrt_admission *admission)
{
    if (admission->split) {
        jrt_account_unsplit(admission->account, &admission->booked);
    } else if (admission->account != NULL) {
        jrt_account_settle(admission->account, &admission->booked, &admission->booked);
    }
}

struct jrt_terms *jrt_terms_common(struct jrt_terms *a, struct jrt_terms *b)
{
    while (a != b) {
        bool deeper = b == NULL || (a != NULL && a->depth >= b->depth);
        if (deeper) {
            a = a->outer;
        } else {
            b = b->outer;
        }
    }
    return a;
}

/* Whether these terms restrict the task. The terms of its spawn do, and those of nurseries around
 * it. A nursery's terms restrict its owner only in a scope. A pool restricts like a capability. */
static bool restricts(const struct jrt_terms *terms, const struct jrt_task *task)
{
    if (terms->bound == 0 && !terms->owns_account) return false;
    return terms->of == NULL || terms->of->owner != task || terms->scope;
}

/* The task that spawns, or whose blocking call this thread runs. NULL: a plain thread. */
static const struct jrt_task *spawner_of(const struct jrt_worker *worker)
{
    return worker != NULL ? worker->current : jrt_thread_self()->behalf;
}

/* Whether a restriction of the spawner does not hold in n, [terms-inside]. */
static bool breaks_out(const struct jrt_nursery *n, const struct jrt_worker *worker)
{
    const struct jrt_task     *task = spawner_of(worker);
    const struct jrt_callback *callback = jrt_thread_self()->callback;
    struct jrt_terms          *here = NULL;
    if (task != NULL) here = jrt_terms_here(task);
    if (callback != NULL) here = callback->terms; /* [callback-account] */
    if (here == n->terms) return false;
    const struct jrt_terms *both = jrt_terms_common(here, n->terms);
    for (; here != both && here != NULL; here = here->outer) {
        if (restricts(here, task)) return true;
    }
    return false;
}

/* Whether the task's executor capability has the right to configure. */
static janus_status may_configure(const struct jrt_task *task, const struct jrt_terms *terms)
{
    janus_scheduler       *scheduler = task->nursery->scheduler;
    const struct jrt_held *held = &terms->held[JANUS_CAP_KIND_EXECUTOR];
    struct jrt_cap_actor   actor = jrt_actor_in(scheduler, jrt_worker_self());
    if (held->holder == 0) {
        return jrt_terms_deny(scheduler, &actor, JANUS_CAP_KIND_EXECUTOR,
                              JANUS_RIGHT_EXECUTOR_CONFIGURE, JANUS_NO_EXECUTOR_CAP);
    }
    actor.holder = held->holder;
    return jrt_cap_gate_backend(scheduler->caps, held->cap, &actor, JANUS_RIGHT_EXECUTOR_CONFIGURE,
                                JANUS_BACKEND_COOPERATIVE);
}

janus_status jrt_terms_outside(void)
{
    jrt_stack_check(); /* [turn-call]; the caller pays for a refusal, too */
    const struct jrt_task     *task = spawner_of(jrt_worker_self());
    const struct jrt_callback *callback = jrt_thread_self()->callback;
    const struct jrt_terms    *here = NULL, *at;
    if (task != NULL) here = jrt_terms_here(task);
    if (callback != NULL) here = callback->terms; /* [callback-account] */
    for (at = here; at != NULL && !restricts(at, task); at = at->outer) continue;
    if (at == NULL) return JANUS_OK;
    janus_status status = JANUS_NO_EXECUTOR_CAP; /* a callback has no capability to show */
    if (callback == NULL) status = may_configure(task, here);
    if (status != JANUS_OK) (void)jrt_trouble(status, JANUS_COMPONENT_NONE, 0, 0);
    return status;
}

/*
 * [cancel-right]  This rule decides whether a caller of the public API may cancel a nursery.
 *   - The nursery's owner may, and so may plain threads, which belong to the host.
 *   - A task below the nursery may, unless the nursery itself or a nursery on the way up to it
 *     keeps the right. A nursery keeps the right if it was opened with a pool, with capabilities
 *     or with cancel_by_owner.
 *   - A task that was spawned with narrower capabilities may cancel nothing outside of them, just
 *     as it may not spawn there ([terms-inside]).
 *   - All other tasks may not.
 *   - A blocking call has the right of its task. So has a token's callback that a task registered.
 *
 *   The walk goes up from the task, through nurseries that outlive it.
 */
static const struct jrt_task *canceller(const struct jrt_worker *worker)
{
    const struct jrt_callback *callback = jrt_thread_self()->callback;
    return callback != NULL ? callback->ledger->task : spawner_of(worker);
}

static bool keeps_right(const struct jrt_nursery *n)
{
    /* acquire: the options were written before. A nursery without options is not ready at first. */
    if (jrt_load_acquire(&n->ready) == JRT_READY && n->owners_alone) return true;
    const struct jrt_terms *terms = n->terms;
    if (terms == NULL || terms->of != n) return false;
    return terms->bound != 0 || terms->owns_account;
}

static bool may_cancel_from_below(const struct jrt_nursery *n, const struct jrt_task *task)
{
    for (const struct jrt_nursery *at = task->nursery; !keeps_right(at);) {
        jrt_turn_step(); /* [cancel-path] */
        if (at == n) return true;
        if (at->owner == NULL) return false;
        const struct jrt_nursery *outer = jrt_nursery_outer_of_other(at);
        at = outer != NULL ? outer : at->owner->nursery;
    }
    return false;
}

bool jrt_nursery_may_cancel(const struct jrt_nursery *n)
{
    const struct jrt_worker *worker = jrt_worker_self();
    const struct jrt_task   *task = canceller(worker);
    if (task == NULL || n->owner == task || jrt_nursery_is_mine(n)) return true;
    bool may = may_cancel_from_below(n, task) && !breaks_out(n, worker);
    jrt_debug_invariant("cancel-right", !may || !keeps_right(n));
    return may;
}

/* Takes room for a child: of the scheduler's limit, or under the capability. */
static janus_status take_limit(struct jrt_nursery *n, struct jrt_worker *worker,
                               struct jrt_terms **full)
{
    janus_scheduler *scheduler = n->scheduler;
    if (is_implicit(n->terms, scheduler)) return take_implicit(scheduler, worker);
    if (n->terms != NULL && n->terms->held[JANUS_CAP_KIND_SPAWN].holder != 0) {
        return take_room(n->terms, scheduler, worker, full);
    }
    struct jrt_cap_actor actor = jrt_actor_in(scheduler, worker);
    janus_status         status = jrt_terms_deny(scheduler, &actor, JANUS_CAP_KIND_SPAWN,
                                                 JANUS_RIGHT_SPAWN_TASK, JANUS_NO_SPAWN_CAP);
    (void)jrt_trouble(status, JANUS_COMPONENT_NONE, 0, 0);
    return status;
}

janus_status jrt_terms_take_child(struct jrt_nursery *n, struct jrt_worker *worker,
                                  const janus_budget *want, struct jrt_admission *out)
{
    janus_scheduler *scheduler = n->scheduler;
    janus_status     status = JANUS_OK;
    out->full = NULL;
    if (breaks_out(n, worker)) {
        struct jrt_cap_actor actor = jrt_actor_in(scheduler, worker);
        status = jrt_terms_deny(scheduler, &actor, JANUS_CAP_KIND_SPAWN, JANUS_RIGHT_SPAWN_TASK,
                                JANUS_CAP_WIDENS);
        (void)jrt_trouble(status, JANUS_COMPONENT_NONE, 0, 0);
    }
    if (status == JANUS_OK && has_places(n)) {
        status = take_places(n->terms, scheduler, worker, &out->full);
    }
    if (status == JANUS_OK) {
        status = take_limit(n, worker, &out->full);
        if (status != JANUS_OK && has_places(n)) give_places(scheduler, n->terms, NULL);
    }
    if (status == JANUS_OK) {
        status = take_entry(n, want, out);
        if (status != JANUS_OK) jrt_terms_leave(n, worker);
    }
    if (status != JANUS_OK && worker != NULL) jrt_count(&worker->stats.refusals);
    return status;
}
