/* SPDX-License-Identifier: MIT */
/* Helpers for tests of capabilities in tasks: the authority, and capabilities minted with it. */
#ifndef JANUSRT_TESTS_TASK_CAPS_H
#define JANUSRT_TESTS_TASK_CAPS_H

#include "rig.h"

/* Runs `entry(argument)` as the first task, where every right must be granted. */
static inline void caps_sovereign(uint32_t workers, janus_entry *entry, void *argument)
{
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .yield_interval = 512,
                                               .profile = JANUS_PROFILE_SOVEREIGN),
                       entry, argument, NULL),
             JANUS_OK);
}

/* Runs it on one worker, two and eight. */
static inline void caps_all(janus_entry *entry, void *argument)
{
    caps_sovereign(1, entry, argument);
    caps_sovereign(2, entry, argument);
    caps_sovereign(8, entry, argument);
}

/* In the first task. */
static inline janus_authority *caps_root(void)
{
    janus_authority *root = NULL;
    CHECK_EQ(janus_authority_take(NULL, &root), JANUS_OK);
    CHECK(root != NULL);
    return root;
}

/* For the caller. */
static inline janus_cap caps_mint(const janus_authority *root, janus_cap_kind kind, uint32_t rights,
                                  const janus_cap_limits *limits)
{
    janus_cap cap = {0};
    CHECK_EQ(janus_cap_mint(
                 root, 0, JANUS_CAP_GRANT(.kind = kind, .rights = rights, .limits = limits), &cap),
             JANUS_OK);
    return cap;
}

/* For this many tasks with the default budget. */
static inline janus_cap caps_spawn(const janus_authority *root, uint64_t max_tasks)
{
    const janus_cap_limits limits = {
        .spawn = {.max_tasks = max_tasks, .task_budget = janus_budget_default()}};
    return caps_mint(root, JANUS_CAP_KIND_SPAWN, JANUS_RIGHTS_ALL, &limits);
}

/* A budget capability with these limits and rights. */
static inline janus_cap caps_budget(const janus_authority *root, uint32_t rights, uint64_t ops,
                                    uint64_t rest)
{
    const janus_cap_limits limits = {.budget = {.cpu_budget = ops,
                                                .spawn_limit = rest,
                                                .memory_budget = rest,
                                                .channel_budget = rest,
                                                .syscall_budget = rest}};
    return caps_mint(root, JANUS_CAP_KIND_BUDGET, rights, &limits);
}

/* A nursery whose children are started under a spawn capability. */
static inline void caps_open(janus_nursery *nursery, janus_cap spawn)
{
    CHECK_EQ(janus_nursery_open(nursery, JANUS_NURSERY_OPTIONS(.spawn_cap = spawn)), JANUS_OK);
}

static inline janus_context_info caps_context(void)
{
    janus_context_info info = JANUS_CONTEXT_INFO();
    CHECK_EQ(janus_context_inspect(&info), JANUS_OK);
    return info;
}

static inline janus_cap_table_info caps_stats(janus_scheduler *scheduler)
{
    janus_cap_table_info stats = JANUS_CAP_TABLE_INFO();
    CHECK_EQ(janus_scheduler_caps_inspect(scheduler, &stats), JANUS_OK);
    return stats;
}

static inline uint64_t caps_id(janus_cap cap) { return (uint64_t)cap.generation << 32 | cap.slot; }

#endif
