/* SPDX-License-Identifier: MIT */
/* The four profiles: what each gives to tasks that ask for nothing, and what it refuses. */
#include "caps.h"

#include <dirent.h>

enum { ALL_KINDS = 510 }; /* 1 << kind, for the eight kinds */

static const uint64_t mib = 1 << 20;

/* Names and stacks. */

/* R:profiles, G:profileStackSize, C28 (constants). */
TEST("each profile has a name, a stack and limits, and an invalid profile has none")
{
    CHECK_STR(janus_profile_name(JANUS_PROFILE_CORE), ":core");
    CHECK_STR(janus_profile_name(JANUS_PROFILE_SERVICE), ":service");
    CHECK_STR(janus_profile_name(JANUS_PROFILE_CLUSTER), ":cluster");
    CHECK_STR(janus_profile_name(JANUS_PROFILE_SOVEREIGN), ":sovereign");
    CHECK_EQ(janus_profile_stack_bytes(JANUS_PROFILE_CORE), 64 << 10);
    CHECK_EQ(janus_profile_stack_bytes(JANUS_PROFILE_SERVICE), 256 << 10);
    CHECK_EQ(janus_profile_stack_bytes(JANUS_PROFILE_CLUSTER), 256 << 10);
    CHECK_EQ(janus_profile_stack_bytes(JANUS_PROFILE_SOVEREIGN), 512 << 10);
    CHECK(janus_profile_cap_defaults(JANUS_PROFILE_CORE) != NULL);
    CHECK_STR(janus_profile_name((janus_profile)5), ":?");
    CHECK_EQ(janus_profile_stack_bytes((janus_profile)5), 0);
    CHECK(janus_profile_cap_defaults((janus_profile)5) == NULL);
}

/* :core. */

static int threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    int  count = -2; /* . and .. */
    CHECK(folder != NULL);
    while (readdir(folder) != NULL) count++;
    (void)closedir(folder);
    return count;
}

static int64_t never(void *argument)
{
    (void)argument;
    CHECK(false); /* no task runs in :core */
    return 0;
}

/* SCHED:10.1/core, SCHED:10.2.1, CAP:7.1.1/core, CAP:7.2.1/sync, R:prof/core, C28. */
TEST(":core has no scheduler, and no thread but the caller's")
{
    const janus_cap_defaults *core = janus_profile_cap_defaults(JANUS_PROFILE_CORE);
    janus_scheduler          *scheduler = NULL;
    int                       before = threads();
    CHECK_EQ(janus_scheduler_create_with(JANUS_SCHEDULER_OPTIONS(.profile = JANUS_PROFILE_CORE),
                                         &scheduler),
             JANUS_PROFILE);
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.profile = JANUS_PROFILE_CORE), never, NULL, NULL),
             JANUS_PROFILE);
    CHECK(scheduler == NULL);
    CHECK_EQ(threads(), before);
    CHECK_EQ(core->kinds, 1 << JANUS_CAP_KIND_EXECUTOR);
    CHECK_EQ(core->executor.allowed_backends, JANUS_BACKEND_SET(JANUS_BACKEND_BLOCKING));
    CHECK_EQ(core->spawn.max_tasks, 0);
}

/* CAP:7.2.1/caps. */
TEST("in :core not even the authority mints a capability to spawn, for budget or for channels")
{
    const janus_cap_limits limits = {.words = {0}};
    janus_cap_table       *table;
    janus_authority       *root;
    janus_cap              cap;
    CHECK_EQ(janus_cap_table_create(JANUS_CAP_TABLE_OPTIONS(.profile = JANUS_PROFILE_CORE), &table,
                                    &root),
             JANUS_OK);
    for (int kind = JANUS_CAP_KIND_SPAWN; kind <= JANUS_CAP_KIND_NAME; kind++) {
        if (kind == JANUS_CAP_KIND_EXECUTOR) continue;
        CHECK_EQ(janus_cap_mint_in(table, root, 1,
                                   JANUS_CAP_GRANT(.kind = (janus_cap_kind)kind,
                                                   .rights = JANUS_RIGHTS_ALL, .limits = &limits),
                                   &cap),
                 JANUS_PROFILE);
    }
    CHECK_EQ(janus_cap_table_destroy(table, root), JANUS_OK);
}

/* :service. */

static int64_t tell_budget(void *argument)
{
    *(janus_budget *)argument = janus_budget_get_current();
    return 0;
}

static void check_context(const janus_budget *each, janus_exhaustion policy)
{
    janus_context_info info = caps_context();
    janus_budget       got;
    janus_nursery      n;
    CHECK_EQ(info.kinds, ALL_KINDS);
    CHECK_EQ(info.implicit, ALL_KINDS);
    for (int kind = 1; kind < JANUS_CAP_KINDS; kind++) CHECK_EQ(info.cap_ids[kind], 0);
    CHECK_EQ(info.tasks_alive, 1);
    CHECK_EQ(info.backend, JANUS_BACKEND_COOPERATIVE);
    CHECK_EQ(info.exhaustion, policy);
    CHECK(janus_budget_equal(info.task_budget, *each));
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, tell_budget, &got), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK(janus_budget_equal(got, *each));
}

static int64_t service(void *argument)
{
    const janus_budget each = janus_budget_of(10000, mib, 0, 100, 10);
    (void)argument;
    check_context(&each, JANUS_EXHAUSTION_AUTO);
    CHECK_EQ(janus_yield_interval(), 1024);
    return 0;
}

/* SCHED:10.1/service, SCHED:10.2.2, CAP:7.1.1/service, CAP:7.3.1, R:prof/service, C41. */
TEST("a task in :service holds everything implicitly, and its child has the default budget")
{
    CHECK_EQ(janus_run(NULL, service, NULL, NULL), JANUS_OK);
    CHECK_EQ(
        janus_run(JANUS_SCHEDULER_OPTIONS(.profile = JANUS_PROFILE_SERVICE), service, NULL, NULL),
        JANUS_OK);
}

struct full {
    struct gate gate;
    atomic_int  poor; /* children with less than the default */
};

static int64_t full_budget(void *argument)
{
    struct full *full = argument;
    janus_budget got = janus_budget_get_current();
    if (!janus_budget_equal(got, janus_budget_default())) atomic_fetch_add(&full->poor, 1);
    return at_gate(&full->gate);
}

/* The asking task is one of `max`. */
static void fill_to(uint64_t max, janus_entry *entry, struct full *full)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (uint64_t i = 1; i < max; i++) CHECK_EQ(janus_spawn(&n, entry, full), JANUS_OK);
    for (int i = 0; i < 10; i++) CHECK_EQ(janus_spawn(&n, entry, full), JANUS_TASK_LIMIT);
    CHECK_EQ(caps_context().tasks_alive, max);
    CHECK_EQ(caps_context().max_tasks, max);
    CHECK_EQ(janus_spawn_with(&n, entry, full, NULL, NULL), JANUS_TASK_LIMIT);
    atomic_store(&full->gate.open, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(full->gate.arrived, max - 1);
    CHECK_EQ(full->poor, 0);
    CHECK_EQ(caps_context().tasks_alive, 1);
}

static int64_t hundred(void *argument)
{
    struct full full = {.poor = 0};
    (void)argument;
    fill_to(100, full_budget, &full);
    return 0;
}

/* CAP:3.2.2/implicit, CAP:7.3.2/values, C6, C7. */
TEST("in :service a hundred tasks live, each with a full budget, and the next is refused")
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers), hundred, NULL, NULL),
                 JANUS_OK);
    }
}

static int64_t accept_loop(void *argument)
{
    atomic_int   *ran = argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 10000; i++) {
        janus_task_id child;
        CHECK_EQ(janus_spawn_with(&n, count_me, ran, NULL, &child), JANUS_OK);
        CHECK_EQ(janus_join(&n, child, NULL), JANUS_OK);
    }
    return janus_nursery_end(&n, NULL);
}

/* C7. */
TEST("ten thousand tasks one after another stay below the limit")
{
    atomic_int ran = 0;
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 2), accept_loop, &ran, NULL),
             JANUS_OK);
    CHECK_EQ(ran, 10000);
}

/* :cluster. */

static int64_t cluster(void *argument)
{
    const janus_budget each = janus_budget_of(100000, 10 * mib, 0, 1000, 100);
    (void)argument;
    check_context(&each, JANUS_EXHAUSTION_SUPERVISE);
    CHECK_EQ(janus_yield_interval(), 512);
    return 0;
}

/* Needs three times the channel operations that the profile gives to a task. */
static int64_t send_often(void *argument)
{
    janus_channel channel;
    int           value = 1;
    (void)argument;
    CHECK_EQ(janus_channel_create(sizeof value, 1, NULL, &channel), JANUS_OK);
    for (int i = 0; i < 1500; i++) {
        CHECK_EQ(janus_channel_send(channel, &value), JANUS_OK);
        CHECK_EQ(janus_channel_recv(channel, &value), JANUS_OK);
    }
    CHECK_EQ(janus_channel_destroy(channel), JANUS_OK);
    return 42;
}

static int64_t send_often_twice(void *argument)
{
    janus_nursery n;
    CHECK_EQ(send_often(argument), 42);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, send_often, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED); /* nobody recharges the child */
    return 0;
}

/* C8. */
TEST("the first task of a run in :cluster has no supervisor, so its budget replenishes")
{
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(
            janus_run(JANUS_SCHEDULER_OPTIONS(.profile = JANUS_PROFILE_CLUSTER, .worker_count = 2),
                      send_often_twice, NULL, NULL),
            JANUS_OK);
    }
}

/* SCHED:10.1/cluster, CAP:7.1.1/cluster, R:prof/cluster, C35 (set and default). */
TEST("a task in :cluster holds more, and its children are supervised")
{
    const janus_cap_defaults *defaults = janus_profile_cap_defaults(JANUS_PROFILE_CLUSTER);
    CHECK_EQ(
        janus_run(JANUS_SCHEDULER_OPTIONS(.profile = JANUS_PROFILE_CLUSTER), cluster, NULL, NULL),
        JANUS_OK);
    CHECK(defaults->supervisor_recharge);
    CHECK(!janus_profile_cap_defaults(JANUS_PROFILE_SERVICE)->supervisor_recharge);
    CHECK_EQ(defaults->channel.max_channels, 10000);
    CHECK_EQ(defaults->channel.max_buffer_size, 100000);
    CHECK_EQ(defaults->executor.allowed_backends, JANUS_BACKEND_SET(JANUS_BACKEND_COOPERATIVE) |
                                                      JANUS_BACKEND_SET(JANUS_BACKEND_EVENTED));
    CHECK_EQ(defaults->backend, JANUS_BACKEND_COOPERATIVE);
}

static int64_t wait_at_gate(void *argument)
{
    struct full *full = argument;
    return at_gate(&full->gate);
}

static int64_t ten_thousand(void *argument)
{
    struct full full = {.poor = 0};
    (void)argument;
    fill_to(10000, wait_at_gate, &full);
    return 0;
}

/* CAP:7.4.1/limits, CAP:3.2.2/implicit. */
TEST("in :cluster ten thousand tasks live in one nursery, and the next is refused")
{
    if (JRT_TSAN) SKIP("ThreadSanitizer of gcc has no room for so many fibers");
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.profile = JANUS_PROFILE_CLUSTER, .worker_count = 2),
                       ten_thousand, NULL, NULL),
             JANUS_OK);
}

static int64_t spend(void *argument)
{
    atomic_int *ops = argument;
    for (;;) {
        if (janus_check() != JANUS_OK) return JANUS_CANCELLED;
        atomic_fetch_add(ops, 1);
    }
}

static int64_t give_more(void *argument)
{
    const janus_status want = *(janus_status *)argument;
    const janus_budget more = janus_budget_of(1000, 0, 0, 0, 0);
    atomic_int         ops = 0;
    janus_nursery      n;
    janus_exhausted    child;
    CHECK_EQ(
        janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.exhaustion = JANUS_EXHAUSTION_SUPERVISE)),
        JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, spend, &ops, JANUS_SPAWN_OPTIONS(.budget = &more), NULL),
             JANUS_OK);
    CHECK_EQ(janus_nursery_wait_exhausted(&n, &child), JANUS_OK);
    CHECK_EQ(janus_budget_recharge_child(child.task, more, NULL), want);
    if (want == JANUS_OK) CHECK_EQ(janus_nursery_wait_exhausted(&n, &child), JANUS_OK);
    CHECK_EQ(ops, want == JANUS_OK ? 2000 : 1000);
    CHECK_EQ(janus_nursery_cancel_exhausted(&n, child.task), JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    return 0;
}

/* CAP:7.4.1/recharge, CAP:8.1.1, SCHED:10.2.3 (supervisors). */
TEST("supervisors recharge their children in :cluster, and in :service only with a capability")
{
    janus_status can = JANUS_OK, cannot = JANUS_NO_BUDGET_CAP;
    CHECK_EQ(
        janus_run(JANUS_SCHEDULER_OPTIONS(.profile = JANUS_PROFILE_CLUSTER), give_more, &can, NULL),
        JANUS_OK);
    CHECK_EQ(janus_run(NULL, give_more, &cannot, NULL), JANUS_OK);
}

/* :sovereign. */

static int64_t two_grants(void *argument)
{
    const janus_authority *root = caps_root();
    const janus_budget     pool = janus_budget_of(100, 0, 2, 0, 0);
    const janus_cap        none = {0};
    janus_cap              spawn = caps_spawn(root, 3);
    janus_cap              budget = caps_budget(root, JANUS_RIGHTS_ALL, 1000, 1000);
    (void)argument;
    for (int grants = 0; grants < 4; grants++) {
        janus_cap     may_spawn = grants & 1 ? spawn : none;
        janus_cap     may_ask = grants & 2 ? budget : none;
        janus_nursery n;
        CHECK_EQ(janus_nursery_open(
                     &n, JANUS_NURSERY_OPTIONS(.spawn_cap = may_spawn, .budget_cap = may_ask)),
                 JANUS_OK);
        CHECK_EQ(janus_spawn(&n, nothing, NULL), grants & 1 ? JANUS_OK : JANUS_NO_SPAWN_CAP);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        janus_status status =
            janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.spawn_cap = may_spawn,
                                                         .budget_cap = may_ask, .budget = &pool));
        CHECK_EQ(status, grants & 2 ? JANUS_OK : JANUS_NO_BUDGET_CAP);
        if (status != JANUS_OK) continue;
        CHECK_EQ(janus_spawn(&n, nothing, NULL), grants & 1 ? JANUS_OK : JANUS_NO_SPAWN_CAP);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    }
    return 0;
}

/* SCHED:10.1/sovereign, SCHED:10.2.4, CAP:1.1.2/spawn, CAP:7.5.1, R:prof/sovereign, C31. */
TEST("in :sovereign spawning and asking for budget are two grants, and each works alone")
{
    caps_all(two_grants, NULL);
}

static int64_t empty(void *argument)
{
    janus_context_info info = caps_context();
    janus_nursery      n;
    (void)argument;
    CHECK_EQ(info.kinds, 0);
    CHECK_EQ(info.implicit, 0);
    CHECK_EQ(info.exhaustion, JANUS_EXHAUSTION_MANUAL);
    for (int kind = 1; kind < JANUS_CAP_KINDS; kind++) CHECK_EQ(info.cap_ids[kind], 0);
    CHECK_EQ(janus_yield_interval(), 512); /* as asked for */
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_NO_SPAWN_CAP);
    CHECK_EQ(janus_spawn_with(&n, nothing, NULL, NULL, NULL), JANUS_NO_SPAWN_CAP);
    CHECK_EQ(janus_budget_recharge(janus_budget_of(1, 0, 0, 0, 0)), JANUS_NO_BUDGET_CAP);
    return janus_nursery_end(&n, NULL);
}

/* CAP:7.1.1/sovereign, CAP:7.5.1, CAP:11.2.1/NoSpawnCapability and C33 (the status in C). */
TEST("a task in :sovereign holds only what was granted")
{
    janus_scheduler *scheduler;
    CHECK_EQ(janus_scheduler_create_with(
                 JANUS_SCHEDULER_OPTIONS(.profile = JANUS_PROFILE_SOVEREIGN), &scheduler),
             JANUS_INVALID); /* not even a yield interval */
    caps_all(empty, NULL);
}

/* C5: the Guide's tree. */

struct tree {
    janus_status want;
    atomic_int   leaves;
};

static int64_t branch(void *argument)
{
    struct tree  *tree = argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(janus_spawn(&n, count_me, &tree->leaves), tree->want);
    }
    return janus_nursery_end(&n, NULL);
}

static int64_t grow(void *argument)
{
    struct tree  *tree = argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_spawn(&n, branch, tree), tree->want);
    return janus_nursery_end(&n, NULL);
}

static int64_t grow_with_grant(void *argument)
{
    janus_nursery n;
    caps_open(&n, caps_spawn(caps_root(), 100));
    CHECK_EQ(grow(argument), JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

/* C5, SCHED:15.1.2. */
TEST("a tree of nurseries grows in :service, in :sovereign only under a capability")
{
    struct tree tree = {.want = JANUS_OK};
    rig_all(grow, &tree, 1);
    CHECK_EQ(tree.leaves, 27);
    tree = (struct tree){.want = JANUS_NO_SPAWN_CAP};
    caps_all(grow, &tree);
    CHECK_EQ(tree.leaves, 0);
    tree = (struct tree){.want = JANUS_OK};
    caps_all(grow_with_grant, &tree);
    CHECK_EQ(tree.leaves, 27);
}
