/* SPDX-License-Identifier: MIT */
/* Pools: how they are split, nested and refunded, and which tasks may have one. */
#include "energy.h"

static int64_t tell_budget(void *argument)
{
    if (argument != NULL) *(janus_budget *)argument = janus_budget_get_current();
    return 0;
}

/* Splitting. */

static const struct split {
    janus_budget pool, share;
} splits[] = {
    /* larger than the default in everything */
    {{20000, 2 << 20, 5, 200, 20}, {10000, 1 << 20, 0, 100, 10}},
    /* equal, plus the price of the spawn */
    {{10001, 1 << 20, 1, 100, 10}, {10000, 1 << 20, 0, 100, 10}},
    /* equal: the price is missing */
    {{10000, 1 << 20, 1, 100, 10}, {9999, 1 << 20, 0, 100, 10}},
    /* smaller, each by itself */
    {{500, 2 << 20, 5, 200, 20}, {499, 1 << 20, 0, 100, 10}},
    {{20000, 4096, 5, 200, 20}, {10000, 4096, 0, 100, 10}},
    {{20000, 2 << 20, 5, 7, 20}, {10000, 1 << 20, 0, 7, 10}},
    {{20000, 2 << 20, 5, 200, 0}, {10000, 1 << 20, 0, 100, 0}},
    {{2, 0, 1, 0, 0}, {1, 0, 0, 0, 0}},
};

static int64_t split_pools(void *argument)
{
    struct gate gate = {0};
    (void)argument;
    for (size_t i = 0; i < sizeof splits / sizeof splits[0]; i++) {
        janus_nursery n;
        atomic_store(&gate.open, 0);
        CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &splits[i].pool)),
                 JANUS_OK);
        janus_nursery_pool_info before = books_of(&n);
        CHECK(janus_budget_equal(before.left, splits[i].pool));
        CHECK_EQ(janus_spawn(&n, at_gate, &gate), JANUS_OK);
        janus_nursery_pool_info after = books_of(&n);
        CHECK(janus_budget_equal(after.shares, splits[i].share));
        CHECK(janus_budget_equal(less(before.left, after.left),
                                 janus_budget_add(splits[i].share, janus_price_spawn())));
        atomic_store(&gate.open, 1);
        CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_OK);
        after = books_of(&n);
        CHECK(janus_budget_equal(after.left, less(before.left, janus_price_spawn())));
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    }
    return 0;
}

/* SCHED:8.1.2/3, 8.2.1, C6. */
TEST(
    "a child gets the default or what the pool has of each component, no spawns, and the pool pays")
{
    rig_all(split_pools, NULL, 3);
}

static int64_t service_pool(void *argument)
{
    janus_nursery n;
    janus_budget  pool = janus_budget_service_default();
    struct gate   full = {0}, rest = {0};
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    for (int i = 1; i <= 9; i++) {
        CHECK_EQ(janus_spawn(&n, at_gate, &full), JANUS_OK);
        CHECK_EQ(books_of(&n).shares.ops, (uint64_t)i * 10000);
    }
    CHECK_EQ(janus_spawn(&n, at_gate, &rest), JANUS_OK);
    janus_nursery_pool_info books = books_of(&n);
    CHECK_EQ(books.shares.ops, 90000 + 9990);
    CHECK_EQ(books.shares.memory, UINT64_C(10) << 20);
    CHECK_EQ(books.left.ops, 0);
    CHECK_EQ(books.left.spawn_count, 90);
    CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_SPAWN_BUDGET);
    check_explained("ops", "JANUS_SPAWN_BUDGET");
    CHECK(janus_budget_equal(books_of(&n).left, books.left)); /* nothing happened */
    atomic_store(&rest.open, 1);
    while (books_of(&n).left.ops == 0) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(books_of(&n).left.ops, 9990); /* unused */
    CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_OK);
    atomic_store(&full.open, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

/* C6, SCHED:14.1.1/SpawnBudgetExhausted (ops). */
TEST(
    "a service pool pays nine full children, a tenth with the rest, and an eleventh after a refund")
{
    rig_all(service_pool, NULL, 3);
}

static int64_t lifetime(void *argument)
{
    janus_nursery n;
    janus_budget  pool = JANUS_BUDGET(.ops = 100000, .spawn_count = 3);
    janus_task_id id;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(janus_spawn_with(&n, nothing, NULL, NULL, &id), JANUS_OK);
        CHECK_EQ(janus_join(&n, id, NULL), JANUS_OK);
    }
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_SPAWN_BUDGET);
        check_explained("spawn_count, 3 of 3 given to children or used", "JANUS_SPAWN_BUDGET");
    }
    CHECK_EQ(books_of(&n).spent.spawn_count, 3);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

/* C7, SCHED:8.1.2/2, 14.1.1/SpawnBudgetExhausted. */
TEST("three spawns are three over the whole life of a pool: the fourth is refused for ever")
{
    rig_all(lifetime, NULL, 3);
}

static int64_t told_share(void *argument)
{
    janus_budget  got, want = janus_budget_of(5, 6, 7, 8, 9);
    janus_budget  pool = janus_budget_of(1000, 1000, 10, 1000, 1);
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, tell_budget, &got, JANUS_SPAWN_OPTIONS(.budget = &want), NULL),
             JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    check_budget(got, 5, 6, 7, 8, 1);
    return 0;
}

TEST("a child with a budget of its own gets that, if the pool has it")
{
    rig_all(told_share, NULL, 3);
}

/* Nesting. */

static int64_t carve(void *argument)
{
    janus_task_id           id;
    janus_nursery           inner;
    janus_nursery          *outer = argument;
    janus_nursery_pool_info before = books_of(outer);
    janus_budget            pool = janus_budget_of(5000, 8192, 2, 10, 1);
    atomic_long             count = 0;
    CHECK_EQ(janus_nursery_open(&inner, JANUS_NURSERY_OPTIONS(.budget = &pool, .name = "inner",
                                                              .policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
    CHECK(janus_budget_equal(books_of(&inner).left, pool));
    CHECK(janus_budget_equal(books_of(outer).nested, pool));
    CHECK(janus_budget_equal(less(before.left, books_of(outer).left), pool));
    CHECK_EQ(janus_spawn_with(&inner, nothing, NULL, NULL, &id), JANUS_OK);
    CHECK_EQ(janus_join(&inner, id, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&inner, spin, &count), JANUS_OK);
    CHECK_EQ(janus_spawn(&inner, nothing, NULL), JANUS_SPAWN_BUDGET);
    CHECK_EQ(janus_nursery_await_with(&inner, NULL), JANUS_CHILD_FAILED);
    CHECK(books_of(&inner).spent.ops == 5000 && atomic_load(&count) == 4998);
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_CHILD_FAILED);
    janus_nursery_pool_info after = books_of(outer);
    CHECK(janus_budget_is_zero(after.nested));
    CHECK(janus_budget_equal(less(after.spent, before.spent), janus_budget_of(5000, 0, 2, 0, 0)));

    pool.ops = after.left.ops + 1;
    CHECK_EQ(janus_nursery_open(&inner, JANUS_NURSERY_OPTIONS(.budget = &pool)),
             JANUS_BUDGET_EXHAUSTED);
    check_explained("ops", "JANUS_BUDGET_EXHAUSTED");
    CHECK(janus_budget_equal(books_of(outer).left, after.left));
    return 0;
}

static int64_t nested(void *argument)
{
    janus_nursery outer;
    janus_task_id id;
    janus_budget  pool = janus_budget_of(50000, UINT64_C(8) << 20, 10, 500, 50);
    (void)argument;
    CHECK_EQ(janus_nursery_open(&outer, JANUS_NURSERY_OPTIONS(.budget = &pool, .name = "outer")),
             JANUS_OK);
    for (int i = 0; i < 3; i++) { /* one at a time: nobody else changes the books */
        CHECK_EQ(janus_spawn_with(&outer, carve, &outer, NULL, &id), JANUS_OK);
        CHECK_EQ(janus_join(&outer, id, NULL), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_await_with(&outer, NULL), JANUS_OK);
    CHECK_EQ(books_of(&outer).spent.ops, 3 + 3 * 5000);
    CHECK_EQ(janus_nursery_end(&outer, NULL), JANUS_OK);
    return 0;
}

/* C5. */
TEST("a nested pool is carved from the pool around it, which gets back what was not spent")
{
    rig_all(nested, NULL, 5);
}

static int64_t leaf(void *argument) { return count_me(argument); }

static int64_t branch(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_spawn(&n, leaf, argument), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

static int64_t guide_tree(void *argument)
{
    atomic_int    leaves = 0;
    janus_nursery n;
    janus_budget  pool = JANUS_BUDGET(.ops = 100000, .spawn_count = 12); /* all at once */
    (void)argument;
    janus_status ended;
    JANUS_NURSERY(root, ended)
    {
        for (int i = 0; i < 3; i++) CHECK_EQ(janus_spawn(root, branch, &leaves), JANUS_OK);
    }
    CHECK_EQ(ended, JANUS_OK);
    CHECK_EQ(leaves, 9);
    /* The tree under a pool, which the branches share. */
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    janus_budget share = janus_budget_of(100, 0, 0, 0, 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(janus_spawn_with(&n, branch, &leaves, JANUS_SPAWN_OPTIONS(.budget = &share), NULL),
                 JANUS_OK);
    }
    CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_OK);
    CHECK_EQ(leaves, 18);
    check_budget(books_of(&n).spent, 12, 0, 12, 0, 0);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

/* C5. */
TEST("a tree of nested nurseries works in :service, although its tasks have no spawns of their own")
{
    rig_all(guide_tree, NULL, 5);
}

static int64_t try_nested(void *argument)
{
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_NO_SPAWN_CAP);
    check_explained("JANUS_NO_SPAWN_CAP", "spawn_cap");
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

static int64_t without_grant(void *argument)
{
    atomic_int       leaves = 0;
    janus_authority *root;
    janus_nursery    n;
    janus_cap_limits limits = {.spawn = {.max_tasks = 20, .task_budget = {.ops = 10000}}};
    (void)argument;
    CHECK_EQ(try_nested(NULL), 0);
    CHECK_EQ(janus_authority_take(NULL, &root), JANUS_OK);
    janus_cap spawn = mint(root, JANUS_CAP_KIND_SPAWN, JANUS_RIGHTS_ALL, limits);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.spawn_cap = spawn)), JANUS_OK);
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_spawn(&n, branch, &leaves), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(leaves, 9); /* the capability was inherited */
    CHECK_EQ(try_nested(NULL), 0);
    return 0;
}

/* SCHED:1.1.2, C5, C33. */
TEST("in :sovereign a tree of nurseries needs a capability, and without one no task starts")
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        rig_first(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .yield_interval = 100,
                                          .profile = JANUS_PROFILE_SOVEREIGN),
                  without_grant, NULL);
    }
}

/* Asking for more. */

static int64_t clamped(void *argument)
{
    janus_nursery n;
    janus_budget  most = janus_budget_service_default();
    janus_budget  asked = janus_budget_scale(most, 3);
    (void)argument;
    janus_budget got;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &asked, .granted = &got)),
             JANUS_OK);
    CHECK(janus_budget_equal(books_of(&n).granted, most));
    CHECK(janus_budget_equal(got, most));
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &most)), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

/* C32, G:budget/service. */
TEST("a request for a pool beyond the limit is cut to it, and `granted` says so")
{
    rig_all(clamped, NULL, 3);
}

static int64_t recharge_myself(void *argument)
{
    janus_budget granted, before = janus_budget_get_current();
    janus_budget ask = janus_budget_of(60000, 0, 0, 0, 0);
    (void)argument;
    CHECK_EQ(janus_budget_recharge(ask), JANUS_OK);
    CHECK_EQ(janus_budget_get_current().ops, before.ops + 60000);
    CHECK_EQ(janus_budget_recharge_current(ask, &granted), JANUS_CLAMPED);
    check_budget(granted, 40000, 0, 0, 0, 0); /* 100,000 in all */
    CHECK_EQ(janus_budget_recharge_current(ask, &granted), JANUS_CLAMPED);
    check_budget(granted, 0, 0, 0, 0, 0);
    CHECK_EQ(janus_budget_recharge(ask), JANUS_CLAMPED);
    CHECK_EQ(janus_budget_get_current().ops, before.ops + 100000);
    check_budget(less(janus_budget_get_current(), before), 100000, 0, 0, 0, 0);
    return 0;
}

/* SCHED:3.2.3c, 12.1.1/recharge, C32. */
TEST("a task recharges itself up to its limit in total, and then gets nothing")
{
    rig_all(recharge_myself, NULL, 3);
    CHECK_EQ(janus_budget_recharge(janus_budget_zero()), JANUS_STATE);
}

static int64_t capless(void *argument)
{
    janus_budget granted = janus_budget_default(), before = janus_budget_get_current();
    (void)argument;
    CHECK_EQ(janus_budget_recharge_current(janus_price_call(), &granted), JANUS_NO_BUDGET_CAP);
    CHECK(janus_budget_equal(janus_budget_get_current(), before));
    check_explained("JANUS_NO_BUDGET_CAP", "budget_cap");
    return 0;
}

static int64_t under_cap(void *argument)
{
    janus_budget granted;
    (void)argument;
    CHECK_EQ(janus_budget_recharge_current(janus_price_loop(700), &granted), JANUS_OK);
    CHECK_EQ(janus_budget_recharge_current(janus_price_loop(700), &granted), JANUS_CLAMPED);
    CHECK_EQ(granted.ops, 300);
    return 0;
}

static int64_t without_right(void *argument)
{
    janus_budget granted;
    (void)argument;
    CHECK_EQ(janus_budget_recharge_current(janus_price_loop(1), &granted), JANUS_CAP_RIGHT);
    return 0;
}

static int64_t sovereign_recharge(void *argument)
{
    janus_authority *root;
    janus_nursery    n;
    janus_cap_limits limits = {.spawn = {.max_tasks = 20, .task_budget = {.ops = 10000}}};
    (void)argument;
    CHECK_EQ(janus_authority_take(NULL, &root), JANUS_OK);
    janus_cap spawn = mint(root, JANUS_CAP_KIND_SPAWN, JANUS_RIGHTS_ALL, limits);
    janus_cap all = mint_budget(root, JANUS_RIGHTS_ALL, 1000);
    janus_cap no_recharge = mint_budget(root, JANUS_RIGHT_BUDGET_REQUEST, 1000);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.spawn_cap = spawn)), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, capless, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.spawn_cap = spawn, .budget_cap = all)),
             JANUS_OK);
    CHECK_EQ(janus_spawn(&n, under_cap, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(
                 &n, JANUS_NURSERY_OPTIONS(.spawn_cap = spawn, .budget_cap = no_recharge)),
             JANUS_OK);
    CHECK_EQ(janus_spawn(&n, without_right, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

/* SCHED:1.1.2, 3.2.3c. */
TEST("in :sovereign a task recharges itself only under a capability with that right")
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        rig_first(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .yield_interval = 100,
                                          .profile = JANUS_PROFILE_SOVEREIGN),
                  sovereign_recharge, NULL);
    }
}
