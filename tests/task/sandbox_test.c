/* SPDX-License-Identifier: MIT */
/* The documents' example programs with capabilities, in C; and the scope of a capability. */
#include "caps.h"

#include <string.h>

static const uint64_t mib = 1 << 20;

static int64_t tell_budget(void *argument)
{
    *(janus_budget *)argument = janus_budget_get_current();
    return 0;
}

/* CAP:7.5.2. */

static void worker(janus_cap cap)
{
    janus_budget  got = janus_budget_zero();
    janus_nursery n;
    caps_open(&n, cap);
    CHECK_EQ(janus_spawn(&n, tell_budget, &got), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(got.ops, 10000);
    CHECK_EQ(got.memory, mib);
}

static int64_t example_main(void *argument)
{
    const janus_cap_limits limits = {
        .spawn = {.max_tasks = 50, .task_budget = JANUS_BUDGET(.ops = 10000, .memory = 1 << 20)}};
    (void)argument;
    worker(caps_mint(caps_root(), JANUS_CAP_KIND_SPAWN, JANUS_RIGHTS_ALL, &limits));
    return 0;
}

/* CAP:7.5.2, C31: passing within a module is no delegation. */
TEST("a function that was passed a capability spawns with that capability's budget")
{
    caps_all(example_main, NULL);
}

/* CAP:3.4. */

static void two_tasks(const janus_nursery_options *options)
{
    janus_nursery n;
    atomic_int    ran = 0;
    CHECK_EQ(janus_nursery_open(&n, options), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, count_me, &ran), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, count_me, &ran), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(ran, 2);
}

static int64_t sovereign_worker(void *argument)
{
    (void)argument;
    two_tasks(JANUS_NURSERY_OPTIONS(.spawn_cap = caps_spawn(caps_root(), 2)));
    return 0;
}

static int64_t service_main(void *argument)
{
    (void)argument;
    two_tasks(NULL);
    return 0;
}

/* CAP:3.4/ex1. */
TEST("a worker with a spawn capability starts two tasks") { caps_all(sovereign_worker, NULL); }

/* CAP:3.4/ex2. */
TEST("in :service two tasks start without a capability")
{
    CHECK_EQ(janus_run(NULL, service_main, NULL, NULL), JANUS_OK);
}

/* CAP:14.3. */

struct plugin {
    int64_t (*process)(struct plugin *self, const char *data);
    int     denied_io, denied_spawns;
};

static janus_budget without_syscalls(janus_budget budget)
{
    budget.syscalls = 0;
    return budget;
}

static int64_t plugin_process(struct plugin *self, const char *data)
{
    struct gate     gate = {.open = 0};
    janus_component missing = JANUS_COMPONENT_NONE;
    janus_nursery   n;
    if (janus_try_charge(janus_price_file_io(), &missing) == JANUS_BUDGET_EXHAUSTED) {
        CHECK_EQ(missing, JANUS_COMPONENT_SYSCALLS);
        self->denied_io++;
    }
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 11; i++) {
        janus_status status = janus_spawn(&n, at_gate, &gate);
        CHECK_EQ(status, i < 10 ? JANUS_OK : JANUS_TASK_LIMIT);
        self->denied_spawns += status != JANUS_OK;
    }
    atomic_store(&gate.open, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return (int64_t)strlen(data);
}

static int64_t run_plugin(const janus_authority *root, struct plugin *plugin, const char *data,
                          janus_cap cap)
{
    janus_cap_info   info = JANUS_CAP_INFO();
    janus_cap_limits limits = {.spawn = {.max_tasks = 10}};
    janus_budget     before = janus_budget_get_current();
    janus_nursery    n;
    CHECK_EQ(janus_cap_inspect(cap, &info), JANUS_OK);
    limits.spawn.task_budget = without_syscalls(janus_budget_limits_to_budget(&info.limits.budget));
    janus_cap restricted = caps_mint(root, JANUS_CAP_KIND_SPAWN, JANUS_RIGHTS_ALL, &limits);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.spawn_cap = restricted, .scope = true)),
             JANUS_OK);
    CHECK(janus_budget_equal(janus_budget_get_current(), limits.spawn.task_budget));
    int64_t result = plugin->process(plugin, data);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK); /* `return` joins first */
    /* The plugin paid, not this task. */
    CHECK(janus_budget_equal(janus_budget_get_current(), before));
    return result;
}

static int64_t host(void *argument)
{
    const janus_authority *root = caps_root();
    const janus_cap_limits trusted = {.budget = {.cpu_budget = 1000000,
                                                 .spawn_limit = 100,
                                                 .memory_budget = 100 << 20,
                                                 .syscall_budget = 1000}};
    struct plugin          plugin = {.process = plugin_process};
    (void)argument;
    janus_cap cap = caps_mint(root, JANUS_CAP_KIND_BUDGET, JANUS_RIGHTS_ALL, &trusted);
    CHECK_EQ(run_plugin(root, &plugin, "input data", cap), 10);
    CHECK_EQ(plugin.denied_io, 1);
    CHECK_EQ(plugin.denied_spawns, 1);
    return 0;
}

/* CAP:14.3, C37. */
TEST("a plugin in a sandbox has ten tasks, no system calls, and returns its result")
{
    caps_all(host, NULL);
}

/* C37: charges in the block are the capability's. */

static int64_t read_a_file(void *argument)
{
    const janus_cap *cap = argument;
    janus_nursery    n;
    CHECK_EQ(janus_charge(janus_price_file_io()), JANUS_OK); /* outside: its own ten */
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.spawn_cap = *cap, .scope = true)),
             JANUS_OK);
    JANUS_IGNORE(janus_charge(janus_price_file_io()));
    CHECK(false); /* a charge that cannot be paid does not return */
    return 0;
}

struct host_of {
    janus_cap  cap; /* the child's */
    atomic_int ready;
};

static int64_t wait_then_read(void *argument)
{
    struct host_of *of = argument;
    CHECK(rig_wait(&of->ready));
    return read_a_file(&of->cap);
}

/* Opens a nursery with a child that holds a spawn capability with these limits. */
static void start_plugin(janus_nursery *n, janus_entry *entry, const janus_cap_limits *limits,
                         struct host_of *of)
{
    const janus_authority *root = caps_root();
    janus_task_id          child;
    caps_open(n, caps_spawn(root, 50));
    CHECK_EQ(janus_spawn_with(n, entry, of, NULL, &child), JANUS_OK);
    CHECK_EQ(janus_cap_mint(root, child,
                            JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_SPAWN,
                                            .rights = JANUS_RIGHTS_ALL, .limits = limits),
                            &of->cap),
             JANUS_OK);
    atomic_store(&of->ready, 1);
}

static int64_t watch_plugin(void *argument)
{
    const janus_cap_limits limits = {.spawn = {10, {.ops = 5000, .memory = 4096}}};
    struct host_of         of = {.ready = 0};
    janus_nursery          n;
    janus_nursery_result   result;
    janus_failure          failure;
    (void)argument;
    start_plugin(&n, wait_then_read, &limits, &of);
    CHECK_EQ(janus_nursery_await_with(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.error, JANUS_BUDGET_EXHAUSTED);
    CHECK_EQ(janus_nursery_failures(&n, &failure, 1), 1);
    CHECK_EQ(failure.lacks, JANUS_COMPONENT_SYSCALLS);
    CHECK_EQ(failure.limit, 0); /* the sandbox's, not its own ten */
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    return 0;
}

/* C37. */
TEST("input and output inside the block of a sandbox exhausts syscalls")
{
    caps_all(watch_plugin, NULL);
}

static int64_t bad_scopes(void *argument)
{
    const janus_authority *root = caps_root();
    const janus_cap_limits limits = {.spawn = {1, janus_budget_default()}};
    janus_cap     tasks = caps_mint(root, JANUS_CAP_KIND_SPAWN, JANUS_RIGHT_SPAWN_TASK, &limits);
    janus_budget  before = janus_budget_get_current();
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.scope = true)), JANUS_INVALID);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.spawn_cap = tasks, .scope = true)),
             JANUS_CAP_RIGHT);
    CHECK(janus_budget_equal(janus_budget_get_current(), before));
    CHECK_EQ(caps_context().kinds, 0);
    return 0;
}

/* A cancelled task that opens sandboxes until the library ends it. */
static int64_t open_for_ever(void *argument)
{
    struct host_of *of = argument;
    janus_nursery   n;
    CHECK(rig_wait(&of->ready));
    atomic_store(&of->ready, 2);
    while (janus_yield() == JANUS_OK) continue;
    for (;;) {
        janus_status status = janus_nursery_open(
            &n, JANUS_NURSERY_OPTIONS(.spawn_cap = of->cap, .scope = true,
                                      .deadline_ns = janus_now_ns() + 3600 * JANUS_SECONDS));
        CHECK_EQ(status, JANUS_CANCELLED);
    }
}

static int64_t cancel_plugin(void *argument)
{
    const janus_cap_limits limits = {.spawn = {10, janus_budget_default()}};
    struct host_of         of = {.ready = 0};
    janus_nursery          n;
    (void)argument;
    start_plugin(&n, open_for_ever, &limits, &of);
    while (atomic_load(&of.ready) != 2) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

/* C37; an armed timer on its stack would outlive it, and the scheduler would not close. */
TEST("a cancelled task that opens sandboxes with a deadline for ever leaves no timer behind")
{
    caps_all(cancel_plugin, NULL);
}

static int64_t recharge_in_scopes(void *argument)
{
    const janus_authority *root = caps_root();
    janus_cap              spawn = caps_spawn(root, 1);
    janus_cap              budget = caps_budget(root, JANUS_RIGHTS_ALL, 100, 0);
    uint64_t               got = 0;
    (void)argument;
    for (int i = 0; i < 5; i++) {
        janus_budget  granted;
        janus_nursery n;
        CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.spawn_cap = spawn, .scope = true,
                                                              .budget_cap = budget)),
                 JANUS_OK);
        JANUS_IGNORE(janus_budget_recharge_current(janus_budget_of(60, 0, 0, 0, 0), &granted));
        got += granted.ops;
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    }
    CHECK_EQ(got, 100);
    return 0;
}

/* C37, CAP:4.2.1/recharge. */
TEST("a task that enters one sandbox after another does not get a capability's limit twice")
{
    caps_all(recharge_in_scopes, NULL);
}

/* C37; on any error nothing happened. */
TEST("a refused sandbox leaves the task's budget unchanged") { caps_all(bad_scopes, NULL); }

/* The plugin cannot help itself to more. */

static int64_t break_out(void *argument)
{
    const janus_cap *hosts = argument;
    janus_authority *root;
    janus_nursery    n;
    janus_cap        out;
    CHECK_EQ(janus_authority_take(NULL, &root), JANUS_NO_AUTHORITY);
    CHECK_EQ(
        janus_cap_mint(NULL, 0, JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_SPAWN, .rights = 1), &out),
        JANUS_NO_AUTHORITY);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.spawn_cap = *hosts)), JANUS_CAP_FOREIGN);
    CHECK_EQ(janus_cap_attenuate(*hosts, JANUS_CAP_GRANT(.rights = JANUS_RIGHTS_ALL), &out),
             JANUS_CAP_FOREIGN);
    CHECK_EQ(janus_budget_recharge_current(janus_budget_of(1, 1, 1, 1, 1), NULL),
             JANUS_NO_BUDGET_CAP);
    CHECK_EQ(janus_budget_get_current().syscalls, 0);
    return 0;
}

static int64_t host_hostile(void *argument)
{
    const janus_authority *root = caps_root();
    const janus_cap_limits limits = {.spawn = {10, {.ops = 50000, .memory = 4096}}};
    janus_cap              ours = caps_spawn(root, 1000);
    janus_nursery          n;
    (void)argument;
    caps_open(&n, caps_mint(root, JANUS_CAP_KIND_SPAWN, JANUS_RIGHTS_ALL, &limits));
    for (int i = 0; i < 10; i++) CHECK_EQ(janus_spawn(&n, break_out, &ours), JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

/* SCHED:15.1.2, CAP:12.2.1/pass. */
TEST("a task in a sandbox that knows its host's handles gets nothing out of them")
{
    caps_all(host_hostile, NULL);
}

/* C46. */

struct siblings {
    janus_nursery *parents;
    janus_task_id  brother;
};

static int64_t spy(void *argument)
{
    const struct siblings *of = argument;
    janus_failure          failure;
    int64_t                result = 77;
    CHECK_EQ(janus_join(of->parents, of->brother, &result), JANUS_STATE);
    CHECK_EQ(janus_nursery_failures(of->parents, &failure, 1), 0);
    CHECK_EQ(result, 77);
    return 0;
}

static int64_t forty_two(void *argument)
{
    (void)argument;
    return 42;
}

static int64_t family(void *argument)
{
    janus_nursery   n, other;
    struct siblings of = {.parents = &n};
    int64_t         result = 0;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, forty_two, NULL, NULL, &of.brother), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, spy, &of), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&other, NULL), JANUS_OK);
    /* This task's nursery, but not its child. */
    CHECK_EQ(janus_join(&other, of.brother, &result), JANUS_STALE);
    CHECK_EQ(janus_nursery_end(&other, NULL), JANUS_OK);
    CHECK_EQ(janus_join(&n, of.brother, &result), JANUS_OK);
    CHECK_EQ(result, 42);
    return janus_nursery_end(&n, NULL);
}

/* SCHED:15.2.2, C46. */
TEST("only the owner of a child's nursery gets the child's result, and only through that nursery")
{
    rig_all(family, NULL, 5);
}
