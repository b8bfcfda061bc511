/* SPDX-License-Identifier: MIT */
/* Tables and texts of budgets. The arithmetic is in the header. */
#include <janusrt/budget.h>

#include "base/outside.h"

#include <inttypes.h>
#include <stdio.h>

_Static_assert(sizeof(janus_budget) == 40, "five words, by value");

static const janus_limits limits[] = {
    [JANUS_PROFILE_CORE] = {.max_tasks = 0},
    [JANUS_PROFILE_SERVICE] =
        {
            .max_tasks = 100,
            .task_budget = {JANUS_DEFAULT_OPS, JANUS_DEFAULT_MEMORY, JANUS_DEFAULT_SPAWN_COUNT,
                            JANUS_DEFAULT_CHANNEL_OPS, JANUS_DEFAULT_SYSCALLS},
            .budget = {100000, UINT64_C(10) << 20, 100, 1000, 100},
            .max_channel_values = 10000,
            .max_channels = 1000,
            .yield_interval = JANUS_YIELD_INTERVAL_SERVICE,
        },
    [JANUS_PROFILE_CLUSTER] =
        {
            .max_tasks = 10000,
            .task_budget = {100000, UINT64_C(10) << 20, 0, 1000, 100},
            .budget = {1000000, UINT64_C(100) << 20, 1000, 10000, 1000},
            .max_channel_values = 100000,
            .max_channels = 10000,
            .yield_interval = JANUS_YIELD_INTERVAL_CLUSTER,
        },
    [JANUS_PROFILE_SOVEREIGN] = {.max_tasks = 0},
};

const janus_limits *janus_profile_limits(janus_profile profile)
{
    if (profile == JANUS_PROFILE_DEFAULT) profile = JANUS_PROFILE_SERVICE;
    return (unsigned)profile < sizeof limits / sizeof limits[0] ? &limits[profile] : NULL;
}

janus_budget janus_profile_pool(janus_profile profile)
{
    const janus_limits *l = janus_profile_limits(profile);
    return l == NULL ? janus_budget_zero() : janus_budget_scale(l->task_budget, l->max_tasks);
}

uint32_t janus_profile_yield_interval(janus_profile profile, uint32_t asked)
{
    const janus_limits *l = janus_profile_limits(profile);
    if (l == NULL || profile == JANUS_PROFILE_CORE) return 0;
    return asked != 0 ? asked : l->yield_interval;
}

const char *janus_component_name(janus_component component)
{
    switch (component) {
    case JANUS_COMPONENT_NONE: return "none";
#define X(name, field)                                                                             \
    case JANUS_COMPONENT_##name: return #field;
        JANUS_COMPONENT_MAP(X)
#undef X
    }
    return "?";
}

uint64_t janus_budget_get(const janus_budget *budget, janus_component component)
{
    switch (component) {
    case JANUS_COMPONENT_NONE: break;
#define X(name, field)                                                                             \
    case JANUS_COMPONENT_##name: return budget->field;
        JANUS_COMPONENT_MAP(X)
#undef X
    }
    return 0;
}

enum { UNITS_TEXT_BYTES = 32 };

static const char *units_text(uint64_t units, bool bytes, char text[UNITS_TEXT_BYTES])
{
    static const char *const names[] = {"", " KiB", " MiB", " GiB", " TiB"};
    size_t                   name = 0;
    if (units == UINT64_MAX) return "unlimited";
    while (bytes && units != 0 && units % 1024 == 0 && name + 1 < sizeof names / sizeof names[0]) {
        units /= 1024;
        name++;
    }
    (void)snprintf(text, UNITS_TEXT_BYTES, "%" PRIu64 "%s", units, names[name]);
    return text;
}

size_t janus_budget_text(const janus_budget *budget, char *buffer, size_t size)
{
    jrt_outside_call_long(); /* [turn-call] */
    char ops[UNITS_TEXT_BYTES], memory[UNITS_TEXT_BYTES], spawns[UNITS_TEXT_BYTES];
    char channel[UNITS_TEXT_BYTES], syscalls[UNITS_TEXT_BYTES];
    int  length =
        snprintf(buffer, size, "ops %s, memory %s, spawn_count %s, channel_ops %s, syscalls %s",
                 units_text(budget->ops, false, ops), units_text(budget->memory, true, memory),
                 units_text(budget->spawn_count, false, spawns),
                 units_text(budget->channel_ops, false, channel),
                 units_text(budget->syscalls, false, syscalls));
    return length > 0 ? (size_t)length : 0;
}
