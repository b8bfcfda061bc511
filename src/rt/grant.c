/* SPDX-License-Identifier: MIT */
/* Capabilities of tasks: the calls of the table, with the current task as the actor. */
#include <janusrt/grant.h>

#include "base/options.h"
#include "means/call.h"
#include "means/terms.h"
#include "means/trouble.h"
#include "task/worker.h"
#include "work/limit.h"
#include "work/turn.h"
#include "work/work.h"

#include <string.h>

_Static_assert(sizeof((janus_context_info){0}.cap_ids) / sizeof(uint64_t) >= JRT_KINDS, "by kind");

__attribute__((noinline)) static janus_cap_table *enter_later(struct jrt_cap_actor *actor)
{
    jrt_turn_call(jrt_worker_self()); /* [turn-call] */
    struct jrt_worker *worker = jrt_worker_self();
    *actor = jrt_actor(worker);
    return worker->scheduler->caps;
}

/* Inside a task: returns its scheduler's table, and the task as the actor. NULL: not inside a
 * task. */
static janus_cap_table *enter(struct jrt_cap_actor *actor)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (worker == NULL || worker->current == NULL) {
        jrt_callback_check();
        return NULL;
    }
    jrt_worker_stack_check(worker); /* [stack-reserve] */
    if (jrt_unlikely(--worker->tolls < 0)) return enter_later(actor);
    *actor = jrt_actor(worker);
    return worker->scheduler->caps;
}

static janus_status tell(janus_status status)
{
    return jrt_trouble(status, JANUS_COMPONENT_NONE, 0, 0);
}

/* Capabilities that the task derives count for the terms that restrict it, [quota-count]. */
static void count_for(struct jrt_cap_actor *actor)
{
    struct jrt_terms *terms = jrt_terms_around(jrt_worker_self()->current);
    if (terms != NULL) actor->quota = &terms->derived;
}

static janus_status tell_derived(const janus_cap_table *table, const struct jrt_cap_actor *actor,
                                 janus_status status)
{
    if (status != JANUS_FULL) return tell(status);
    const struct jrt_cap_quota *full = jrt_cap_quota_full(actor->quota);
    if (full == NULL) {
        /* The table's own limit, for all tasks. */
        uint64_t most = (uint64_t)table->slots_max / 8 * 3;
        return jrt_trouble_full(status, JRT_TABLE_CAPS, NULL, most, most);
    }
    return jrt_trouble_full(status, JRT_TABLE_CAPS, jrt_list_entry(full, struct jrt_terms, derived),
                            full->max, full->max);
}

janus_status janus_authority_take(janus_scheduler *scheduler, janus_authority **out)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_worker *worker = jrt_worker_self();
    if (out == NULL) return JANUS_INVALID;
    bool first = scheduler == NULL && worker != NULL && worker->current == worker->scheduler->first;
    if (scheduler == NULL && !first) return tell(JANUS_NO_AUTHORITY);
    if (first) scheduler = worker->scheduler;
    jrt_lock(&scheduler->roots_lock);
    janus_authority *authority = first || !scheduler->started ? scheduler->authority : NULL;
    if (authority != NULL) scheduler->authority = NULL;
    jrt_unlock(&scheduler->roots_lock);
    if (authority == NULL) return tell(JANUS_NO_AUTHORITY);
    *out = authority;
    return JANUS_OK;
}

janus_status janus_cap_mint(const janus_authority *authority, uint64_t holder,
                            const janus_cap_grant *grant, janus_cap *out)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_worker   *worker = jrt_worker_self();
    struct jrt_cap_actor actor = {.holder = JANUS_HOLDER_OUTSIDE};
    if (authority == NULL) return tell(JANUS_NO_AUTHORITY);
    /* The table of another scheduler treats a task as any thread. */
    if (worker != NULL && worker->scheduler->caps == authority->table) actor = jrt_actor(worker);
    if (holder != 0) actor.holder = holder;
    return tell(jrt_cap_mint(authority->table, authority, &actor, grant, out));
}

janus_status janus_cap_attenuate(janus_cap cap, const janus_cap_grant *grant, janus_cap *out)
{
    struct jrt_cap_actor actor;
    janus_cap_table     *table = enter(&actor);
    if (table == NULL) return JANUS_STATE;
    count_for(&actor);
    return tell_derived(table, &actor, jrt_cap_attenuate(table, cap, &actor, grant, out));
}

janus_status janus_cap_delegate(janus_cap cap, janus_task_id to, const janus_cap_grant *grant,
                                janus_cap *out)
{
    struct jrt_cap_actor actor;
    janus_cap_table     *table = enter(&actor);
    if (table == NULL) return JANUS_STATE;
    count_for(&actor);
    return tell_derived(table, &actor, jrt_cap_delegate(table, cap, &actor, to, grant, out));
}

janus_status janus_cap_check(janus_cap cap, janus_cap_kind kind, uint32_t rights)
{
    struct jrt_cap_actor actor;
    janus_cap_table     *table = enter(&actor);
    if (table == NULL) return JANUS_STATE;
    return tell(jrt_cap_use_right(table, cap, kind, rights, &actor, NULL));
}

janus_status janus_cap_inspect(janus_cap cap, janus_cap_info *out)
{
    struct jrt_cap_actor actor;
    janus_cap_table     *table = enter(&actor);
    if (table == NULL) return JANUS_STATE;
    return tell(janus_cap_inspect_in(table, cap, actor.holder, out));
}

janus_status janus_cap_revoke(janus_cap victim, janus_cap with)
{
    struct jrt_cap_actor actor;
    janus_cap_table     *table = enter(&actor);
    if (table == NULL) return JANUS_STATE;
    return tell(jrt_cap_revoke(table, victim, with, &actor));
}

janus_status janus_cap_release(janus_cap cap)
{
    struct jrt_cap_actor actor;
    janus_cap_table     *table = enter(&actor);
    if (table == NULL) return JANUS_STATE;
    return tell(jrt_cap_release(table, cap, &actor));
}

/* The number of tasks that live under the spawn capability, where it was bound. */
static uint64_t alive_under(const struct jrt_terms *terms)
{
    while (terms != NULL && (terms->bound & 1u << JANUS_CAP_KIND_SPAWN) == 0) terms = terms->outer;
    return terms != NULL ? jrt_load_relaxed(&terms->use.tasks) : 0; /* relaxed: a number to show. */
}

janus_status janus_context_inspect(janus_context_info *out)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_worker *worker = jrt_worker_self();
    if (out == NULL || !jrt_struct_sane(out->struct_bytes, sizeof *out)) return JANUS_INVALID;
    if (worker == NULL || worker->current == NULL) return JANUS_STATE;
    const struct jrt_terms *terms = jrt_terms_here(worker->current);
    janus_scheduler        *scheduler = worker->scheduler;
    janus_context_info      info = {.implicit = scheduler->implicit,
                                    .task_budget = scheduler->task_budget,
                                    .exhaustion = (janus_exhaustion)scheduler->exhaustion,
                                    .backend = JANUS_BACKEND_COOPERATIVE};
    if (terms != NULL) {
        info.implicit = terms->implicit;
        info.task_budget = terms->task_budget;
        info.exhaustion = (janus_exhaustion)terms->exhaustion;
        info.backend = (janus_backend)terms->backend;
        info.tasks_alive = alive_under(terms);
    }
    info.kinds = info.implicit;
    for (unsigned kind = 1; terms != NULL && kind < JRT_KINDS; kind++) {
        if (terms->held[kind].holder == 0) continue;
        info.kinds |= 1u << kind;
        info.cap_ids[kind] = jrt_cap_id(terms->held[kind].cap);
    }
    if ((info.implicit & 1u << JANUS_CAP_KIND_SPAWN) != 0) {
        info.tasks_alive = (uint64_t)jrt_limit_alive(scheduler);
        info.max_tasks = (uint64_t)scheduler->limit.max;
    }
    jrt_struct_give(out, &info);
    return JANUS_OK;
}

janus_status janus_scheduler_caps_inspect(janus_scheduler *scheduler, janus_cap_table_info *out)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (scheduler == NULL) return JANUS_INVALID;
    return janus_cap_table_inspect(scheduler->caps, out);
}
