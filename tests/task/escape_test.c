/* SPDX-License-Identifier: MIT */
/*
 * Ways out of a restriction, by calls that anybody may make: a spawn further out, a blocking call,
 * a callback, a scheduler of one's own. All are closed.
 */
#include "guild.h"

static janus_nursery *further_out;
static atomic_int     over; /* children that tried */

/* As the first task, in :service. */
static void alone(uint32_t workers, janus_entry *entry)
{
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers), entry, NULL, NULL),
             JANUS_OK);
}

/* Spawning further out. */

static int64_t spawn_outside(void *argument)
{
    (void)argument;
    return janus_spawn(further_out, nothing, NULL);
}

static int64_t break_out(void *argument)
{
    janus_nursery n;
    int64_t       result = JANUS_OK;
    (void)argument;
    CHECK_EQ(spawn_outside(NULL), JANUS_CAP_WIDENS);
    CHECK_EQ(janus_blocking(spawn_outside, NULL, &result), JANUS_OK);
    CHECK_EQ(result, JANUS_CAP_WIDENS);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    atomic_fetch_add(&over, 1);
    return 0;
}

/* Until so many have tried: their nurseries must be open meanwhile. */
static void await_tries(int count)
{
    while (atomic_load(&over) < count) CHECK_EQ(janus_yield(), JANUS_OK);
    atomic_store(&over, 0);
}

static const janus_cap_kind kinds[] = {JANUS_CAP_SPAWN, JANUS_CAP_BUDGET, JANUS_CAP_CHANNEL,
                                       JANUS_CAP_EXECUTOR};

static janus_cap any_cap(const janus_authority *root, janus_cap_kind kind)
{
    janus_cap_limits limits = {0};
    switch (kind) {
    case JANUS_CAP_SPAWN:
        limits.spawn = (janus_spawn_limits){.max_tasks = 9, .task_budget = janus_budget_default()};
        break;
    case JANUS_CAP_BUDGET: limits.budget.cpu_budget = 1000; break;
    case JANUS_CAP_CHANNEL: limits.channel.max_channels = 1; break;
    case JANUS_CAP_EXECUTOR:
        limits.executor.allowed_backends = JANUS_BACKEND_SET(JANUS_BACKEND_COOPERATIVE);
        break;
    default: break;
    }
    return guild_mint(root, kind, JANUS_RIGHTS_ALL, &limits);
}

static janus_cap only(janus_cap_kind wanted, janus_cap_kind kind, janus_cap cap)
{
    return wanted == kind ? cap : (janus_cap){0};
}

static int64_t restrict_by_each_kind(void *argument)
{
    const janus_authority *root = guild_root();
    (void)argument;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        janus_cap     cap = any_cap(root, kinds[i]);
        janus_nursery out, in;
        CHECK_EQ(janus_nursery_open(&out, NULL), JANUS_OK);
        further_out = &out;
        CHECK_EQ(janus_spawn_with(
                     &out, break_out, NULL,
                     JANUS_SPAWN_OPTIONS(.spawn_cap = only(JANUS_CAP_SPAWN, kinds[i], cap),
                                         .budget_cap = only(JANUS_CAP_BUDGET, kinds[i], cap),
                                         .channel_cap = only(JANUS_CAP_CHANNEL, kinds[i], cap),
                                         .executor_cap = only(JANUS_CAP_EXECUTOR, kinds[i], cap)),
                     NULL),
                 JANUS_OK);
        CHECK_EQ(
            janus_nursery_open(
                &in,
                JANUS_NURSERY_OPTIONS(.spawn_cap = only(JANUS_CAP_SPAWN, kinds[i], cap),
                                      .budget_cap = only(JANUS_CAP_BUDGET, kinds[i], cap),
                                      .channel_cap = only(JANUS_CAP_CHANNEL, kinds[i], cap),
                                      .executor_cap = only(JANUS_CAP_EXECUTOR, kinds[i], cap))),
            JANUS_OK);
        CHECK_EQ(janus_spawn(&in, break_out, NULL), JANUS_OK);
        CHECK_EQ(spawn_outside(NULL), JANUS_OK); /* the owner is not restricted */
        await_tries(2);
        CHECK_EQ(janus_nursery_end(&in, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&out, NULL), JANUS_OK);
    }
    return 0;
}

TEST("a task restricted by a capability of any kind starts nothing where that does not hold")
{
    alone(1, restrict_by_each_kind);
    alone(2, restrict_by_each_kind);
    alone(8, restrict_by_each_kind);
}

static int64_t restrict_by_pool(void *argument)
{
    const janus_budget pool = {60000, 1 << 20, 5, 0, 100};
    const janus_budget share = {20000, 1 << 16, 2, 0, 20};
    janus_nursery      out, in;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&out, NULL), JANUS_OK);
    further_out = &out;
    CHECK_EQ(janus_nursery_open(&in, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&in, break_out, NULL, JANUS_SPAWN_OPTIONS(.budget = &share), NULL),
             JANUS_OK);
    await_tries(1);
    CHECK_EQ(janus_nursery_end(&in, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&out, NULL), JANUS_OK);
    return 0;
}

TEST("a child that a pool pays for starts nothing outside the pool")
{
    alone(1, restrict_by_pool);
    alone(2, restrict_by_pool);
}

static int64_t restrict_by_scope(void *argument)
{
    janus_cap     cap = any_cap(guild_root(), JANUS_CAP_SPAWN);
    janus_nursery out, in, inner;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&out, NULL), JANUS_OK);
    further_out = &out;
    CHECK_EQ(spawn_outside(NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&in, JANUS_NURSERY_OPTIONS(.spawn_cap = cap, .scope = true)),
             JANUS_OK);
    CHECK_EQ(spawn_outside(NULL), JANUS_CAP_WIDENS);
    CHECK_EQ(janus_nursery_open(&inner, JANUS_NURSERY_OPTIONS(.spawn_cap = cap, .scope = true)),
             JANUS_OK);
    CHECK_EQ(janus_spawn(&in, nothing, NULL), JANUS_CAP_WIDENS);
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    CHECK_EQ(spawn_outside(NULL), JANUS_CAP_WIDENS);
    CHECK_EQ(janus_spawn(&in, nothing, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&in, NULL), JANUS_OK);
    CHECK_EQ(spawn_outside(NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&out, NULL), JANUS_OK);
    return 0;
}

TEST("a task in a scope starts nothing in its own nurseries around the scope")
{
    alone(1, restrict_by_scope);
    alone(2, restrict_by_scope);
}
