/* SPDX-License-Identifier: MIT */
/* Limits: comparing, clamping, and the defaults of each profile. */
#include "cap/cap.h"
#include "cap/net.h"

#include <string.h>

unsigned jrt_cap_kind_words(janus_cap_kind kind)
{
    switch (kind) {
    case JANUS_CAP_KIND_SPAWN: return sizeof(janus_spawn_limits) / sizeof(uint64_t);
    case JANUS_CAP_KIND_BUDGET: return sizeof(janus_budget_limits) / sizeof(uint64_t);
    case JANUS_CAP_KIND_CHANNEL: return sizeof(janus_channel_limits) / sizeof(uint64_t);
    case JANUS_CAP_KIND_EXECUTOR: return sizeof(janus_executor_limits) / sizeof(uint64_t);
    case JANUS_CAP_KIND_NET: return sizeof(janus_net_limits) / sizeof(uint64_t);
    case JANUS_CAP_KIND_FILE: return sizeof(janus_file_limits) / sizeof(uint64_t);
    case JANUS_CAP_KIND_PROCESS: return sizeof(janus_process_limits) / sizeof(uint64_t);
    case JANUS_CAP_KIND_NAME: return sizeof(janus_name_limits) / sizeof(uint64_t);
    case JANUS_CAP_KIND_NONE: break;
    }
    return 0;
}

_Static_assert(sizeof(janus_net_limits) % sizeof(uint64_t) == 0 &&
                   sizeof(janus_net_limits) <= JRT_CAP_WORDS_MOST * sizeof(uint64_t) &&
                   sizeof(janus_spawn_limits) <= JRT_CAP_WORDS_MOST * sizeof(uint64_t) &&
                   sizeof(janus_name_limits) == sizeof((janus_cap_limits){0}.words),
               "whole words, and few but for names");

/* Whether the prefix ends. */
static bool name_limits_sane(const janus_name_limits *limits)
{
    return memchr(limits->prefix, '\0', sizeof limits->prefix) != NULL;
}

bool jrt_name_limits_allow(const janus_name_limits *limits, const char *name)
{
    return strncmp(name, limits->prefix, strlen(limits->prefix)) == 0;
}

bool jrt_cap_limits_sane(janus_cap_kind kind, const janus_cap_limits *limits)
{
    if (kind == JANUS_CAP_KIND_EXECUTOR) {
        return limits->executor.allowed_backends < JANUS_BACKEND_SET(JANUS_BACKEND_COUNT);
    }
    if (kind == JANUS_CAP_KIND_NAME) return name_limits_sane(&limits->name);
    return kind != JANUS_CAP_KIND_NET || jrt_net_limits_sane(&limits->net);
}

bool jrt_cap_limits_within(janus_cap_kind kind, const janus_cap_limits *narrow,
                           const janus_cap_limits *wide)
{
    if (kind == JANUS_CAP_KIND_EXECUTOR) {
        return (narrow->executor.allowed_backends & ~wide->executor.allowed_backends) == 0;
    }
    if (kind == JANUS_CAP_KIND_NET) return jrt_net_limits_within(&narrow->net, &wide->net);
    if (kind == JANUS_CAP_KIND_NAME) return jrt_name_limits_allow(&wide->name, narrow->name.prefix);
    for (unsigned i = 0; i < jrt_cap_kind_words(kind); i++) {
        if (narrow->words[i] > wide->words[i]) return false;
    }
    return true;
}

janus_budget janus_budget_limits_to_budget(const janus_budget_limits *limits)
{
    if (limits == NULL) return (janus_budget){0};
    return (janus_budget){.ops = limits->cpu_budget,
                          .memory = limits->memory_budget,
                          .spawn_count = limits->spawn_limit,
                          .channel_ops = limits->channel_budget,
                          .syscalls = limits->syscall_budget};
}

static uint64_t clamp(uint64_t requested, uint64_t limit, janus_status *status)
{
    if (requested <= limit) return requested;
    *status = JANUS_CLAMPED;
    return limit;
}

janus_status janus_budget_limits_clamp(const janus_budget        *requested,
                                       const janus_budget_limits *limits, janus_budget *out)
{
    janus_status status = JANUS_OK;
    if (requested == NULL || limits == NULL || out == NULL) return JANUS_INVALID;
    janus_budget most = janus_budget_limits_to_budget(limits);
    *out = (janus_budget){
        .ops = clamp(requested->ops, most.ops, &status),
        .memory = clamp(requested->memory, most.memory, &status),
        .spawn_count = clamp(requested->spawn_count, most.spawn_count, &status),
        .channel_ops = clamp(requested->channel_ops, most.channel_ops, &status),
        .syscalls = clamp(requested->syscalls, most.syscalls, &status),
    };
    return status;
}

#define MIB (UINT64_C(1024) * 1024)

enum {
    ALL_KINDS = (1 << (JANUS_CAP_KIND_NAME + 1)) - (1 << JANUS_CAP_KIND_SPAWN),
    HANDLES = 65536, /* sockets, and as many files */
    PROCESSES = 1024,
};

/* Everything, as often as it is likely to be meant. Zeros of .name are every name. */
#define WHOLE_WORLD                                                                                \
    .net = {.max_handles = HANDLES, .unix_sockets = 1, .port_last = UINT16_MAX},                   \
    .file = {.max_handles = HANDLES, .max_written = UINT64_MAX},                                   \
    .process = {.max_processes = PROCESSES}

/* A task may only run to its end. */
static const janus_cap_defaults core = {
    .kinds = 1 << JANUS_CAP_KIND_EXECUTOR,
    .executor = {JANUS_BACKEND_SET(JANUS_BACKEND_BLOCKING)},
    .backend = JANUS_BACKEND_BLOCKING,
};

static const janus_cap_defaults service = {
    .kinds = ALL_KINDS,
    .spawn = {.max_tasks = 100,
              .task_budget = {.ops = 10000, .memory = MIB, .channel_ops = 100, .syscalls = 10}},
    .budget = {.cpu_budget = 100000,
               .spawn_limit = 100,
               .memory_budget = 10 * MIB,
               .channel_budget = 1000,
               .syscall_budget = 100},
    .channel = {.max_buffer_size = 10000, .max_channels = 1000},
    WHOLE_WORLD,
    .executor = {JANUS_BACKEND_SET(JANUS_BACKEND_COOPERATIVE)},
    .backend = JANUS_BACKEND_COOPERATIVE,
};

static const janus_cap_defaults cluster = {
    .kinds = ALL_KINDS,
    .supervisor_recharge = true,
    .spawn =
        {.max_tasks = 10000,
         .task_budget = {.ops = 100000, .memory = 10 * MIB, .channel_ops = 1000, .syscalls = 100}},
    .budget = {.cpu_budget = 1000000,
               .spawn_limit = 1000,
               .memory_budget = 100 * MIB,
               .channel_budget = 10000,
               .syscall_budget = 1000},
    .channel = {.max_buffer_size = 100000, .max_channels = 10000},
    WHOLE_WORLD,
    .executor = {JANUS_BACKEND_SET(JANUS_BACKEND_COOPERATIVE) |
                 JANUS_BACKEND_SET(JANUS_BACKEND_EVENTED)},
    .backend = JANUS_BACKEND_COOPERATIVE,
};

/* Every right must be granted: there are no defaults. */
static const janus_cap_defaults sovereign = {.backend = JANUS_BACKEND_COOPERATIVE};

const janus_cap_defaults *janus_profile_cap_defaults(janus_profile profile)
{
    switch (profile) {
    case JANUS_PROFILE_CORE: return &core;
    case JANUS_PROFILE_DEFAULT:
    case JANUS_PROFILE_SERVICE: return &service;
    case JANUS_PROFILE_CLUSTER: return &cluster;
    case JANUS_PROFILE_SOVEREIGN: return &sovereign;
    }
    return NULL;
}
