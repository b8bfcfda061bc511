/* SPDX-License-Identifier: MIT */
/*
 * Terms: what tasks start children under, and how it is inherited, restricted and counted.
 * Spawning, budgets, channels and executors, each with its capability.
 */
#include "caps.h"
#include "task/worker.h"

/* Inheritance. */

static int64_t same_context(void *argument)
{
    const janus_context_info *mine = argument;
    janus_context_info        info = caps_context();
    janus_nursery             n;
    CHECK_EQ(info.kinds, mine->kinds);
    CHECK_EQ(info.implicit, 0);
    for (int kind = 1; kind < JANUS_CAP_KINDS; kind++)
        CHECK_EQ(info.cap_ids[kind], mine->cap_ids[kind]);
    CHECK_EQ(info.backend, mine->backend);
    CHECK(janus_budget_equal(info.task_budget, mine->task_budget));
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    info = caps_context();
    for (int kind = 1; kind < JANUS_CAP_KINDS; kind++)
        CHECK_EQ(info.cap_ids[kind], mine->cap_ids[kind]);
    if (janus_budget_get_current().syscalls == 1) { /* the first of two generations */
        const janus_budget less = janus_budget_of(100, 0, 0, 0, 0);
        CHECK_EQ(janus_spawn_with(&n, same_context, argument, JANUS_SPAWN_OPTIONS(.budget = &less),
                                  NULL),
                 JANUS_OK);
    }
    return janus_nursery_end(&n, NULL);
}

static int64_t hold_all_four(void *argument)
{
    const janus_authority *root = caps_root();
    const janus_cap_limits spawns = {.spawn = {9, {5000, 4096, 0, 0, 1}}};
    const janus_cap_limits channels = {.channel = {8, 2}};
    const janus_cap_limits backends = {.executor = {JANUS_BACKEND_SET(JANUS_BACKEND_COOPERATIVE)}};
    janus_cap              of[JANUS_CAP_KINDS] = {0};
    janus_nursery          n;
    (void)argument;
    of[JANUS_CAP_KIND_SPAWN] = caps_mint(root, JANUS_CAP_KIND_SPAWN, JANUS_RIGHTS_ALL, &spawns);
    of[JANUS_CAP_KIND_BUDGET] = caps_budget(root, JANUS_RIGHTS_ALL, 1000, 1000);
    of[JANUS_CAP_KIND_CHANNEL] =
        caps_mint(root, JANUS_CAP_KIND_CHANNEL, JANUS_RIGHTS_ALL, &channels);
    of[JANUS_CAP_KIND_EXECUTOR] =
        caps_mint(root, JANUS_CAP_KIND_EXECUTOR, JANUS_RIGHTS_ALL, &backends);
    CHECK_EQ(
        janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.spawn_cap = of[JANUS_CAP_KIND_SPAWN],
                                                     .budget_cap = of[JANUS_CAP_KIND_BUDGET],
                                                     .channel_cap = of[JANUS_CAP_KIND_CHANNEL],
                                                     .executor_cap = of[JANUS_CAP_KIND_EXECUTOR])),
        JANUS_OK);
    janus_context_info info = caps_context();
    CHECK_EQ(info.kinds, 30); /* all four */
    CHECK_EQ(info.implicit, 0);
    for (int kind = 1; kind < JANUS_CAP_KINDS; kind++)
        CHECK_EQ(info.cap_ids[kind], caps_id(of[kind]));
    CHECK(janus_budget_equal(info.task_budget, spawns.spawn.task_budget));
    CHECK_EQ(janus_spawn(&n, same_context, &info), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    info = caps_context();
    CHECK_EQ(info.kinds, 0); /* the children have what was bound to the nursery */
    return 0;
}

/* CAP:9.1.1, CAP:9.2.1, CAP:6.2.2, C5. */
TEST("children and their children have the four capabilities of the nursery, by their ids")
{
    caps_all(hold_all_four, NULL);
}

/* with_cap. */

struct wish {
    janus_cap   narrow, wide, more_rights; /* of the child's */
    struct gate gate;
    atomic_int  ready;
};

static int64_t live_restricted(void *argument)
{
    struct wish  *wish = argument;
    janus_nursery n, inner;
    CHECK_EQ(caps_context().cap_ids[JANUS_CAP_KIND_SPAWN], caps_id(wish->narrow));
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_spawn(&n, at_gate, &wish->gate), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, at_gate, &wish->gate), JANUS_TASK_LIMIT);
    CHECK(rig_wait(&wish->ready));
    CHECK_EQ(janus_nursery_open(&inner, JANUS_NURSERY_OPTIONS(.spawn_cap = wish->wide)),
             JANUS_CAP_WIDENS);
    CHECK_EQ(janus_nursery_open(&inner, JANUS_NURSERY_OPTIONS(.spawn_cap = wish->more_rights)),
             JANUS_OK); /* no more rights than all, and no more tasks than two */
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    CHECK_EQ(
        janus_spawn_with(&n, nothing, NULL, JANUS_SPAWN_OPTIONS(.spawn_cap = wish->wide), NULL),
        JANUS_CAP_WIDENS);
    atomic_store(&wish->gate.open, 1);
    return janus_nursery_end(&n, NULL);
}

static int64_t restrict_child(void *argument)
{
    const janus_authority *root = caps_root();
    janus_cap_limits       limits = {.spawn = {2, janus_budget_default()}};
    struct wish            wish = {.ready = 0};
    janus_nursery          n;
    janus_task_id          child;
    (void)argument;
    janus_cap ours = caps_spawn(root, 20), too_wide = caps_spawn(root, 21);
    wish.narrow = caps_spawn(root, 2);
    caps_open(&n, ours);
    CHECK_EQ(janus_spawn_with(&n, nothing, NULL, JANUS_SPAWN_OPTIONS(.spawn_cap = too_wide), NULL),
             JANUS_CAP_WIDENS);
    CHECK_EQ(janus_spawn_with(&n, live_restricted, &wish,
                              JANUS_SPAWN_OPTIONS(.spawn_cap = wish.narrow), &child),
             JANUS_OK);
    CHECK_EQ(janus_cap_mint(root, child,
                            JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_SPAWN,
                                            .rights = JANUS_RIGHTS_ALL, .limits = &limits),
                            &wish.more_rights),
             JANUS_OK);
    limits.spawn.max_tasks = 3;
    CHECK_EQ(janus_cap_mint(root, child,
                            JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_SPAWN,
                                            .rights = JANUS_RIGHTS_ALL, .limits = &limits),
                            &wish.wide),
             JANUS_OK);
    atomic_store(&wish.ready, 1);
    return janus_nursery_end(&n, NULL);
}

/* CAP:9.2.2. */
TEST("a child started with a narrower capability holds that, and cannot show a wider one")
{
    caps_all(restrict_child, NULL);
}

static int64_t keep_rights_narrow(void *argument)
{
    const janus_authority *root = caps_root();
    const janus_cap_limits limits = {.budget = {9, 9, 9, 9, 9}};
    janus_cap request = caps_mint(root, JANUS_CAP_KIND_BUDGET, JANUS_RIGHT_BUDGET_REQUEST, &limits);
    janus_cap all = caps_mint(root, JANUS_CAP_KIND_BUDGET, JANUS_RIGHTS_ALL, &limits);
    janus_nursery    n, inner;
    janus_scheduler *scheduler = jrt_worker_self()->scheduler;
    uint64_t         before = caps_stats(scheduler).refused_widens;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget_cap = request)), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&inner, JANUS_NURSERY_OPTIONS(.budget_cap = all)),
             JANUS_CAP_WIDENS);
    CHECK_EQ(caps_context().cap_ids[JANUS_CAP_KIND_BUDGET], caps_id(request));
    CHECK_EQ(caps_stats(scheduler).refused_widens, before + 1);
    return janus_nursery_end(&n, NULL);
}

/* CAP:9.2.2, C31. */
TEST("a capability with the same limits and more rights is wider")
{
    caps_sovereign(1, keep_rights_narrow, NULL);
}

/* Spawning. */

static int64_t up_to_three(void *argument)
{
    struct gate   gate = {.open = 0}, other = {.open = 0};
    janus_task_id one;
    janus_nursery n, inner;
    (void)argument;
    caps_open(&n, caps_spawn(caps_root(), 3));
    CHECK_EQ(janus_spawn_with(&n, at_gate, &other, NULL, &one), JANUS_OK);
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_spawn(&n, at_gate, &gate), JANUS_OK);
    for (int i = 0; i < 10; i++) CHECK_EQ(janus_spawn(&n, at_gate, &gate), JANUS_TASK_LIMIT);
    CHECK_EQ(caps_context().tasks_alive, 3);
    CHECK_EQ(janus_nursery_open(&inner, JANUS_NURSERY_OPTIONS(.exhaustion = 1)), JANUS_OK);
    CHECK_EQ(caps_context().tasks_alive, 3); /* under the same capability */
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    atomic_store(&other.open, 1);
    CHECK_EQ(janus_join(&n, one, NULL), JANUS_OK);
    while (caps_context().tasks_alive > 2) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, at_gate, &gate), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, at_gate, &gate), JANUS_TASK_LIMIT);
    atomic_store(&gate.open, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(gate.arrived, 3);
    return 0;
}

/* CAP:3.2.1/spawn, CAP:3.2.1/limit, CAP:11.1.1/spawn, CAP:11.2.1/TaskLimitExceeded. */
TEST("with a limit of three the fourth task is refused, and admitted when one has ended")
{
    caps_all(up_to_three, NULL);
}

static int64_t tell_budget(void *argument)
{
    *(janus_budget *)argument = janus_budget_get_current();
    return 0;
}

static janus_budget budget_of_child(janus_nursery *n, const janus_budget *want)
{
    janus_budget  got;
    janus_task_id child;
    CHECK_EQ(janus_spawn_with(n, tell_budget, &got, JANUS_SPAWN_OPTIONS(.budget = want), &child),
             JANUS_OK);
    CHECK_EQ(janus_join(n, child, NULL), JANUS_OK);
    return got;
}

static int64_t energy(void *argument)
{
    const janus_authority *root = caps_root();
    const janus_budget     each = janus_budget_of(700, 5000, 3, 2, 1);
    const janus_cap_limits limits = {.spawn = {10, each}};
    const janus_budget     pool = janus_budget_of(501, 1 << 20, 10, 1, 9);
    const janus_budget     more = janus_budget_of(9999, 1, 9, 9, 0);
    janus_cap              spawn = caps_mint(root, JANUS_CAP_KIND_SPAWN, JANUS_RIGHTS_ALL, &limits);
    janus_cap              budget = caps_budget(root, JANUS_RIGHTS_ALL, 1 << 20, 1 << 20);
    janus_nursery          n;
    (void)argument;
    caps_open(&n, spawn);
    CHECK(janus_budget_equal(budget_of_child(&n, NULL), each));
    CHECK(janus_budget_equal(budget_of_child(&n, &more), janus_budget_min(each, more)));
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.spawn_cap = spawn, .budget_cap = budget,
                                                          .budget = &pool)),
             JANUS_OK);
    CHECK(janus_budget_equal(budget_of_child(&n, NULL), janus_budget_of(500, 5000, 3, 1, 1)));
    return janus_nursery_end(&n, NULL);
}

/* CAP:1.1.1, CAP:3.2.1/budget, C6. */
TEST("a child's budget is the capability's task_budget, cut to what it asks for and the pool has")
{
    caps_all(energy, NULL);
}

static int64_t spawn_tokens(void *argument)
{
    const janus_authority *root = caps_root();
    const janus_cap_limits limits = {.spawn = {10, janus_budget_default()}};
    janus_cap tasks = caps_mint(root, JANUS_CAP_KIND_SPAWN, JANUS_RIGHT_SPAWN_TASK, &limits);
    janus_cap scopes = caps_mint(root, JANUS_CAP_KIND_SPAWN, JANUS_RIGHT_SPAWN_NURSERY, &limits);
    janus_nursery n, inner;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.spawn_cap = tasks)), JANUS_CAP_RIGHT);
    caps_open(&n, scopes);
    CHECK_EQ(janus_nursery_open(&inner, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_CAP_RIGHT);
    return janus_nursery_end(&n, NULL);
}

/* CAP:3.3.1/spawn.task, CAP:3.3.1/spawn.nursery. */
TEST("spawn.task starts tasks and opens no nursery, spawn.nursery the other way round")
{
    caps_all(spawn_tokens, NULL);
}

/* Nested. */

struct nest {
    janus_cap   cap;
    struct gate gate;
    atomic_int  ready, tried;
};

static int64_t inner_sandbox(void *argument)
{
    struct nest  *nest = argument;
    janus_nursery n;
    CHECK(rig_wait(&nest->ready));
    caps_open(&n, nest->cap); /* four of them, in six that are around */
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_spawn(&n, at_gate, &nest->gate), JANUS_OK);
    CHECK_EQ(caps_context().tasks_alive, 3);
    atomic_store(&nest->tried, 1);
    CHECK(rig_wait(&nest->gate.open));
    return janus_nursery_end(&n, NULL);
}

static int64_t outer_sandbox(void *argument)
{
    const janus_authority *root = caps_root();
    struct nest            nest = {.ready = 0};
    const janus_cap_limits four = {.spawn = {4, janus_budget_default()}};
    janus_nursery          n, narrow;
    janus_task_id          child;
    janus_cap              six = caps_spawn(root, 6), one = caps_spawn(root, 1);
    (void)argument;
    caps_open(&n, six);
    CHECK_EQ(janus_spawn_with(&n, inner_sandbox, &nest, NULL, &child), JANUS_OK);
    CHECK_EQ(janus_cap_mint(root, child,
                            JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_SPAWN,
                                            .rights = JANUS_RIGHTS_ALL, .limits = &four),
                            &nest.cap),
             JANUS_OK);
    atomic_store(&nest.ready, 1);
    CHECK(rig_wait(&nest.tried));
    CHECK_EQ(caps_context().tasks_alive, 4); /* the child and its three */
    caps_open(&narrow, one);
    CHECK_EQ(janus_spawn(&narrow, at_gate, &nest.gate), JANUS_OK);
    CHECK_EQ(janus_spawn(&narrow, at_gate, &nest.gate), JANUS_TASK_LIMIT); /* of the inner one */
    CHECK_EQ(caps_context().tasks_alive, 1);
    CHECK_EQ(janus_spawn(&n, at_gate, &nest.gate), JANUS_OK);         /* the sixth */
    CHECK_EQ(janus_spawn(&n, at_gate, &nest.gate), JANUS_TASK_LIMIT); /* of the outer one */
    atomic_store(&nest.gate.open, 1);
    CHECK_EQ(janus_nursery_end(&narrow, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(nest.gate.arrived, 5);
    return 0;
}

/* CAP:3.2.1/limit, C36. */
TEST("a task in a sandbox counts in every sandbox around it") { caps_all(outer_sandbox, NULL); }

static int64_t refused_inside(void *argument)
{
    const janus_authority *root = caps_root();
    janus_cap              two = caps_spawn(root, 2), same = caps_spawn(root, 2);
    janus_nursery          n, inner;
    struct gate            gate = {.open = 0};
    (void)argument;
    caps_open(&n, two);
    CHECK_EQ(janus_spawn(&n, at_gate, &gate), JANUS_OK);
    caps_open(&inner, same);
    CHECK_EQ(janus_spawn(&inner, at_gate, &gate), JANUS_OK);
    for (int i = 0; i < 50; i++) CHECK_EQ(janus_spawn(&inner, at_gate, &gate), JANUS_TASK_LIMIT);
    CHECK_EQ(caps_context().tasks_alive, 1); /* refused outside: nothing stays taken inside */
    atomic_store(&gate.open, 1);
    CHECK_EQ(janus_nursery_await_with(&inner, NULL), JANUS_OK);
    CHECK_EQ(caps_context().tasks_alive, 0);
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_OK);
    CHECK_EQ(caps_context().tasks_alive, 0);
    return janus_nursery_end(&n, NULL);
}

/* C36; on any error nothing happened. */
TEST("a spawn that an outer sandbox refuses takes no room in the inner one")
{
    caps_all(refused_inside, NULL);
}

/* C36: exact, on all workers. */

struct crowd {
    janus_nursery *in;
    atomic_int     alive, peak, refused;
};

static int64_t be_counted(void *argument)
{
    struct crowd *crowd = argument;
    int           alive = atomic_fetch_add(&crowd->alive, 1) + 1;
    int           peak = atomic_load(&crowd->peak);
    while (alive > peak && !atomic_compare_exchange_weak(&crowd->peak, &peak, alive)) {
    }
    janus_status status = janus_yield();
    atomic_fetch_sub(&crowd->alive, 1);
    return status;
}

static int64_t fill_up(void *argument)
{
    struct crowd *crowd = argument;
    int           started = 0;
    while (started < (RIG_SLOW ? 300 : 3000)) {
        janus_status status = janus_spawn(crowd->in, be_counted, crowd);
        CHECK(status == JANUS_OK || status == JANUS_TASK_LIMIT);
        if (status == JANUS_OK) started++;
        if (status != JANUS_OK) atomic_fetch_add(&crowd->refused, 1);
        if (status != JANUS_OK && janus_yield() != JANUS_OK) return JANUS_CANCELLED;
    }
    return 0;
}

static int64_t crowd_in(void *argument)
{
    enum { LIMIT = 16, MAKERS = 8 };
    const janus_authority *root = caps_root();
    janus_nursery          n, makers;
    struct crowd           crowd = {.in = &n};
    (void)argument;
    const janus_cap_limits few = {.spawn = {LIMIT, {.ops = 100}}};
    const janus_cap_limits rich = {.spawn = {LIMIT + MAKERS, {.ops = 1 << 30}}};
    caps_open(&makers, caps_mint(root, JANUS_CAP_KIND_SPAWN, JANUS_RIGHTS_ALL, &rich));
    caps_open(&n, caps_mint(root, JANUS_CAP_KIND_SPAWN, JANUS_RIGHTS_ALL, &few));
    for (int i = 0; i < MAKERS; i++) CHECK_EQ(janus_spawn(&makers, fill_up, &crowd), JANUS_OK);
    CHECK_EQ(janus_nursery_await_with(&makers, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK(crowd.peak <= LIMIT);
    CHECK(crowd.refused > 0);
    CHECK_EQ(caps_context().tasks_alive, 0);
    return janus_nursery_end(&makers, NULL);
}

/* C36, CAP:3.2.1/limit. */
TEST("eight tasks that spawn into one nursery never have more alive than its capability allows")
{
    caps_sovereign(2, crowd_in, NULL);
    caps_sovereign(8, crowd_in, NULL);
}
