/* SPDX-License-Identifier: MIT */
#include "cap/gate.h"

#include "cap/net.h"

#include <stdio.h>

/* Counts and records that a limit was reached. */
static janus_status over_limit(janus_cap_table *table, const struct jrt_cap_actor *actor,
                               janus_cap cap, janus_cap_kind kind, uint32_t right,
                               janus_status status)
{
    jrt_cap_count(table, JRT_CAP_REFUSED_LIMIT);
    return jrt_cap_deny(table, actor, cap, kind, right, status);
}

/* Returns the limits if `actor` has the right. Otherwise records a denial. */
static janus_status limits_for(janus_cap_table *table, janus_cap cap, janus_cap_kind kind,
                               uint32_t right, const struct jrt_cap_actor *actor,
                               janus_cap_limits *out)
{
    janus_status status = jrt_cap_check_limits(table, cap, kind, right, actor->holder, out);
    if (jrt_likely(status == JANUS_OK)) return JANUS_OK;
    return jrt_cap_deny(table, actor, cap, kind, right, status);
}

janus_status jrt_cap_gate_spawn(janus_cap_table *table, janus_cap cap,
                                const struct jrt_cap_actor *actor, struct jrt_cap_use *use,
                                janus_cap_limits *out)
{
    const uint32_t right = JANUS_RIGHT_SPAWN_TASK;
    janus_status   status = limits_for(table, cap, JANUS_CAP_KIND_SPAWN, right, actor, out);
    if (status != JANUS_OK) return status;
    status = jrt_cap_take_task(use, out->spawn.max_tasks);
    if (jrt_unlikely(status != JANUS_OK)) {
        return over_limit(table, actor, cap, JANUS_CAP_KIND_SPAWN, right, status);
    }
    status = jrt_cap_used(table, cap, JANUS_CAP_KIND_SPAWN, right, actor);
    if (jrt_unlikely(status != JANUS_OK)) jrt_cap_give_task(use);
    return status;
}

janus_status jrt_cap_gate_channel(janus_cap_table *table, janus_cap cap,
                                  const struct jrt_cap_actor *actor, struct jrt_cap_use *use,
                                  uint64_t buffer_size)
{
    const uint32_t   right = JANUS_RIGHT_CHANNEL_CREATE;
    janus_cap_limits limits;
    janus_status     status = limits_for(table, cap, JANUS_CAP_KIND_CHANNEL, right, actor, &limits);
    if (status != JANUS_OK) return status;
    if (buffer_size > limits.channel.max_buffer_size) {
        status = JANUS_CAP_LIMIT;
    } else {
        status = jrt_cap_take_channel(use, limits.channel.max_channels);
    }
    if (jrt_unlikely(status != JANUS_OK)) {
        return over_limit(table, actor, cap, JANUS_CAP_KIND_CHANNEL, right, status);
    }
    status = jrt_cap_used(table, cap, JANUS_CAP_KIND_CHANNEL, right, actor);
    if (jrt_unlikely(status != JANUS_OK)) jrt_cap_give_channel(use);
    return status;
}

janus_status jrt_cap_gate_budget(janus_cap_table *table, janus_cap cap,
                                 const struct jrt_cap_actor *actor, uint32_t right,
                                 const janus_budget *requested, janus_budget *out)
{
    janus_cap_limits limits;
    janus_status     status = limits_for(table, cap, JANUS_CAP_KIND_BUDGET, right, actor, &limits);
    if (status != JANUS_OK) return status;
    status = jrt_cap_used(table, cap, JANUS_CAP_KIND_BUDGET, right, actor);
    if (jrt_unlikely(status != JANUS_OK)) return status;
    return janus_budget_limits_clamp(requested, &limits.budget, out);
}

janus_status jrt_cap_gate_backend(janus_cap_table *table, janus_cap cap,
                                  const struct jrt_cap_actor *actor, uint32_t right,
                                  janus_backend backend)
{
    janus_cap_limits limits;
    if ((unsigned)backend >= JANUS_BACKEND_COUNT) return JANUS_INVALID;
    janus_status status = limits_for(table, cap, JANUS_CAP_KIND_EXECUTOR, right, actor, &limits);
    if (status != JANUS_OK) return status;
    if ((limits.executor.allowed_backends & JANUS_BACKEND_SET(backend)) == 0) {
        return over_limit(table, actor, cap, JANUS_CAP_KIND_EXECUTOR, right, JANUS_CAP_LIMIT);
    }
    return jrt_cap_used(table, cap, JANUS_CAP_KIND_EXECUTOR, right, actor);
}

void jrt_cap_wish_target(const struct jrt_cap_wish *wish, struct jrt_cap_target *out)
{
    *out = (struct jrt_cap_target){.port = 0};
    if (wish->address != NULL) {
        jrt_net_target(wish->address, out);
    } else if (wish->name != NULL) {
        (void)snprintf(out->name, sizeof out->name, "%s", wish->name);
    }
}

uint64_t jrt_cap_handles_max(janus_cap_kind kind, const janus_cap_limits *limits)
{
    if (kind == JANUS_CAP_KIND_NET) return limits->net.max_handles;
    return kind == JANUS_CAP_KIND_FILE ? limits->file.max_handles : limits->process.max_processes;
}

janus_status jrt_cap_gate_handle(janus_cap_table *table, janus_cap cap,
                                 const struct jrt_cap_actor *actor, struct jrt_cap_use *use,
                                 const struct jrt_cap_wish *wish, janus_cap_limits *out)
{
    janus_cap_kind kind = wish->kind;
    janus_status   status = jrt_cap_check_limits(table, cap, kind, wish->right, actor->holder, out);
    if (jrt_likely(status == JANUS_OK)) {
        if (wish->address != NULL && !jrt_net_limits_allow(&out->net, wish->address)) {
            status = JANUS_CAP_LIMIT;
        } else if (use != NULL) {
            status = jrt_cap_take_handle(use, kind, jrt_cap_handles_max(kind, out));
        }
        if (jrt_unlikely(status != JANUS_OK)) jrt_cap_count(table, JRT_CAP_REFUSED_LIMIT);
    }
    if (jrt_unlikely(status != JANUS_OK)) {
        struct jrt_cap_target target;
        jrt_cap_wish_target(wish, &target);
        return jrt_cap_deny_at(table, actor, cap, kind, wish->right, status, &target);
    }
    status = jrt_cap_used(table, cap, kind, wish->right, actor);
    if (jrt_unlikely(status != JANUS_OK) && use != NULL) jrt_cap_give_handle(use, kind);
    return status;
}

janus_status jrt_cap_gate_name(janus_cap_table *table, janus_cap cap,
                               const struct jrt_cap_actor *actor, uint32_t right, const char *name,
                               janus_cap_limits *out)
{
    const janus_cap_kind kind = JANUS_CAP_KIND_NAME;
    janus_status         status = jrt_cap_check_limits(table, cap, kind, right, actor->holder, out);
    if (status == JANUS_OK && !jrt_name_limits_allow(&out->name, name)) {
        jrt_cap_count(table, JRT_CAP_REFUSED_LIMIT);
        status = JANUS_CAP_LIMIT;
    }
    if (jrt_likely(status == JANUS_OK)) return jrt_cap_used(table, cap, kind, right, actor);
    const struct jrt_cap_wish wish = {.kind = kind, .right = right, .name = name};
    struct jrt_cap_target     target;
    jrt_cap_wish_target(&wish, &target);
    return jrt_cap_deny_at(table, actor, cap, kind, right, status, &target);
}
