/* SPDX-License-Identifier: MIT */
/*
 * Supervised children that cannot pay.
 *
 * [allowance]  An allowance is an amount for each period. A child that runs out takes it at most
 *   once in a period. If it has taken it, it waits, exhausted, and the place's alarm gives it the
 *   next one when the period is over. A child that is exhausted more than max_exhaustions times
 *   within the supervisor's period has failed.
 *
 *   If there is a pool, an allowance comes out of it. The child gets the part that the pool has: a
 *   pool without syscalls does not keep ops from a child. A child without an allowance draws small
 *   portions from the pool. These do not count as exhaustions, because the pool bounds them.
 *
 *   A recharge that the pool cannot pay at all ends the child, EXHAUSTED: nobody else would give it
 *   more, and it would wait for ever.
 */
#include "actor/supervisor.h"

#include "means/purse.h"
#include "means/terms.h"
#include "nursery/nursery.h"
#include "plat/seam.h"

enum { PORTION = 1000, SIBLINGS = 16 };

/* The allowance of a place: its own, its supervisor's, or the profile's. */
static janus_allowance allowance_of(const struct jrt_actor_place *place)
{
    const janus_supervisor *supervisor = place->supervisor;
    janus_allowance         allowance = place->spec->options.allowance;
    if (allowance.period_ns == 0) allowance = supervisor->options.allowance;
    if (allowance.period_ns != 0 || supervisor->scheduler->profile != JANUS_PROFILE_CLUSTER)
        return allowance;
    janus_budget whole = supervisor->scheduler->task_budget;
#define X(name, field) allowance.amount.field = whole.field / 10;
    JANUS_COMPONENT_MAP(X)
#undef X
    allowance.period_ns = 100 * JANUS_MS;
    return allowance;
}

/* Counts an exhaustion. False: too many in this period. */
static bool count_short(struct jrt_actor_place *place, struct jrt_actor_rare *rare, uint64_t now)
{
    const janus_supervisor_options *options = &place->supervisor->options;
    if (rare->short_since == 0 || now - rare->short_since >= options->period_ns) {
        rare->short_since = now;
        rare->short_count = 0;
    }
    return ++rare->short_count <= options->max_exhaustions;
}

static bool has_pool(janus_supervisor *supervisor)
{
    const struct jrt_terms *terms = jrt_supervisor_nursery(supervisor)->terms;
    return terms != NULL && terms->account != NULL;
}

/* The part of `amount` that the pool can pay now; without a pool all of it. */
static janus_budget affordable(janus_supervisor *supervisor, const janus_budget *amount)
{
    struct jrt_account_books books;
    if (!has_pool(supervisor)) return *amount;
    jrt_account_read(jrt_supervisor_nursery(supervisor)->terms->account, &books);
    return janus_budget_min(books.left, *amount);
}

/* What a child without an allowance draws from the pool at once. It is a tenth of a task's default,
 * more if the pool has much, and PORTION at most. With more it could take from its siblings all
 * channel operations that the pool has. */
static uint64_t portion_of(janus_supervisor *supervisor, janus_component lacks)
{
    const janus_budget all = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    const janus_budget pool = affordable(supervisor, &all);
    uint64_t           portion = janus_budget_get(&pool, lacks) / SIBLINGS;
    uint64_t           least = janus_budget_get(&supervisor->scheduler->task_budget, lacks) / 10;
    if (portion < least) portion = least;
    if (portion > PORTION) portion = PORTION;
    return portion > 0 ? portion : 1;
}

static janus_budget portion(janus_supervisor *supervisor, const janus_exhausted *child)
{
    uint64_t     amount = portion_of(supervisor, child->lacks);
    janus_budget portion = janus_budget_zero();
    if (amount < child->needs) amount = child->needs;
#define X(name, field)                                                                             \
    if (child->lacks == JANUS_COMPONENT_##name) portion.field = amount;
    JANUS_COMPONENT_MAP(X)
#undef X
    return portion;
}

/* Whether the grant pays for the child's next operation. If not, nobody will: it has failed. */
static bool pays(const janus_exhausted *child, const janus_budget *grant)
{
    uint64_t left = janus_budget_get(&child->left, child->lacks);
    return janus_units_add(left, janus_budget_get(grant, child->lacks)) >= child->needs &&
           janus_budget_get(grant, child->lacks) > 0;
}

static janus_verdict use_allowance(struct jrt_actor_place *place, const janus_exhausted *child,
                                   janus_budget *grant)
{
    janus_allowance allowance = allowance_of(place);
    uint64_t        now = jrt_clock_now_ns();
    janus_verdict   verdict = JANUS_VERDICT_IGNORE;
    jrt_place_lock(place);
    struct jrt_actor_rare *rare = jrt_place_rare(place);
    bool                   draws = allowance.period_ns == 0 && has_pool(place->supervisor);
    if (rare == NULL || (!draws && !count_short(place, rare, now))) {
        verdict = JANUS_VERDICT_RESTART;
    } else if (draws) { /* as AUTO does */
        janus_budget wanted = portion(place->supervisor, child);
        *grant = affordable(place->supervisor, &wanted);
        verdict = pays(child, grant) ? JANUS_VERDICT_RECHARGE : JANUS_VERDICT_RESTART;
    } else if (allowance.period_ns == 0 || janus_budget_get(&allowance.amount, child->lacks) == 0) {
        verdict = JANUS_VERDICT_IGNORE;
    } else if (rare->refilled_at == 0 || now - rare->refilled_at >= allowance.period_ns) {
        rare->refilled_at = now;
        *grant = affordable(place->supervisor, &allowance.amount);
        bool some = janus_budget_get(grant, child->lacks) > 0;
        verdict = some ? JANUS_VERDICT_RECHARGE : JANUS_VERDICT_RESTART;
    } else {
        rare->refill_at = rare->refilled_at + allowance.period_ns;
        if (!jrt_place_arm(place)) verdict = JANUS_VERDICT_RESTART;
    }
    jrt_place_unlock(place);
    return verdict;
}

janus_verdict jrt_supervisor_on_exhausted(void *argument, const janus_exhausted *child,
                                          janus_budget *grant)
{
    janus_supervisor       *supervisor = argument;
    struct jrt_actor_place *place = jrt_place_current();
    janus_verdict           verdict = JANUS_VERDICT_IGNORE;
    if (place == NULL) return JANUS_VERDICT_IGNORE;
    if (supervisor->options.on_exhausted != NULL) {
        verdict = supervisor->options.on_exhausted(supervisor->options.on_exhausted_argument, child,
                                                   grant);
        if (verdict == JANUS_VERDICT_RECHARGE) *grant = affordable(supervisor, grant);
    }
    if (verdict == JANUS_VERDICT_IGNORE) verdict = use_allowance(place, child, grant);
    if (verdict == JANUS_VERDICT_RESTART) {
        jrt_place_lock(place);
        place->forced = supervisor->options.on_exhausted != NULL;
        jrt_place_unlock(place);
    }
    return verdict;
}

void jrt_place_refill(struct jrt_actor_place *place, uint64_t serial)
{
    janus_allowance   allowance = {.period_ns = 0};
    janus_task_id     task = 0;
    janus_supervisor *supervisor = NULL;
    jrt_place_lock(place);
    if (place->serial == serial && place->task != NULL) {
        supervisor = jrt_supervisor_enter(place);
        task = jrt_task_id(place->task);
        allowance = allowance_of(place);
        place->rare->refilled_at = jrt_clock_now_ns();
    }
    jrt_place_unlock(place);
    if (supervisor == NULL) return;
    janus_budget grant = affordable(supervisor, &allowance.amount);
    janus_status status = jrt_nursery_give(jrt_supervisor_nursery(supervisor), task, &grant);
    if (status == JANUS_BUDGET_EXHAUSTED) { /* the pool is empty: try again later */
        jrt_place_lock(place);
        if (place->serial == serial && place->rare != NULL) {
            place->rare->refill_at = place->rare->refilled_at + allowance.period_ns;
            (void)jrt_place_arm(place); /* it was armed: there is memory */
        }
        jrt_place_unlock(place);
    }
    jrt_supervisor_leave(supervisor);
}
