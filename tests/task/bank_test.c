/* SPDX-License-Identifier: MIT */
/* Budgets near 2^64: a task's request never makes the library refuse another task. */
#include "caps.h"

enum { MANY = 10 };

static const janus_budget all = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
static const janus_budget near_all = {UINT64_MAX - 1, UINT64_MAX - 1, UINT64_MAX - 1,
                                      UINT64_MAX - 1, UINT64_MAX - 1};

/* A scheduler in which any budget may be asked for. */
static void with_bank(janus_entry *entry)
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .max_budget = &all),
                           entry, NULL, NULL),
                 JANUS_OK);
    }
}

struct crowd {
    atomic_int arrived, open;
};

static int64_t stay(void *argument)
{
    struct crowd *crowd = argument;
    atomic_fetch_add(&crowd->arrived, 1);
    while (!atomic_load(&crowd->open)) CHECK_EQ(janus_yield(), JANUS_OK);
    return 0;
}

/* A pool of all units there are, with a task in it. It stays open as long as the others. */
static int64_t take_all(void *argument)
{
    janus_nursery           n;
    janus_nursery_pool_info books = JANUS_NURSERY_POOL_INFO();
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &all)), JANUS_OK);
    CHECK_EQ(janus_nursery_pool_inspect(&n, &books), JANUS_OK);
    CHECK_EQ(books.granted.ops, UINT64_MAX);
    CHECK_EQ(books.left.memory, UINT64_MAX);
    CHECK_EQ(janus_spawn(&n, stay, argument), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

static int64_t pools_of_all(void *argument)
{
    janus_nursery n;
    struct crowd  crowd = {0};
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < MANY; i++) CHECK_EQ(janus_spawn(&n, take_all, &crowd), JANUS_OK);
    while (atomic_load(&crowd.arrived) < MANY) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, nothing, NULL, JANUS_SPAWN_OPTIONS(.budget = &near_all), NULL),
             JANUS_OK);
    atomic_store(&crowd.open, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("ten pools of 2^64 - 1 units each are open at once, and an eleventh budget is still granted")
{
    with_bank(pools_of_all);
}

static int64_t shares_of_all(void *argument)
{
    janus_nursery n;
    struct crowd  crowd = {0};
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(janus_spawn_with(&n, stay, &crowd, JANUS_SPAWN_OPTIONS(.budget = &near_all), NULL),
                 JANUS_OK);
    }
    while (atomic_load(&crowd.arrived) < MANY) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, take_all, &crowd), JANUS_OK);
    atomic_store(&crowd.open, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("after ten tasks with budgets of 2^64 - 2 the bank still serves an eleventh")
{
    with_bank(shares_of_all);
}

static int64_t nested(void *argument)
{
    janus_nursery           outer, inner, none;
    janus_nursery_pool_info books = JANUS_NURSERY_POOL_INFO();
    (void)argument;
    CHECK_EQ(janus_nursery_open(&outer, JANUS_NURSERY_OPTIONS(.budget = &near_all)), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&none, JANUS_NURSERY_OPTIONS(.budget = &all)),
             JANUS_BUDGET_EXHAUSTED);
    CHECK_EQ(janus_nursery_open(&inner, JANUS_NURSERY_OPTIONS(.budget = &near_all)), JANUS_OK);
    CHECK_EQ(janus_nursery_pool_inspect(&outer, &books), JANUS_OK);
    CHECK_EQ(books.left.ops, 0);
    CHECK_EQ(janus_spawn(&inner, nothing, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&outer, nothing, NULL), JANUS_SPAWN_BUDGET);
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_pool_inspect(&outer, &books), JANUS_OK);
    CHECK_EQ(books.granted.ops, books.left.ops + books.spent.ops);
    CHECK_EQ(janus_nursery_end(&outer, NULL), JANUS_OK);
    return 0;
}

TEST("a pool inside a pool near 2^64 gets no more units than the outer pool has")
{
    with_bank(nested);
}

/* Recharges itself past 2^64: it gets CLAMPED and keeps what it had. */
static int64_t recharge(void *argument)
{
    struct crowd *crowd = argument;
    janus_budget  got = all;
    CHECK_EQ(janus_budget_recharge_current(all, &got), JANUS_CLAMPED);
    CHECK(got.ops < UINT64_MAX);
    CHECK(janus_budget_get_current().ops > UINT64_MAX - 100000);
    CHECK_EQ(janus_budget_recharge_current(all, &got), JANUS_CLAMPED);
    CHECK_EQ(got.ops, 0);
    return stay(crowd);
}

static int64_t recharges(void *argument)
{
    janus_nursery      n;
    struct crowd       crowd = {0};
    janus_authority   *root = caps_root();
    const janus_budget share = janus_budget_of(1000, 4096, 0, 0, 0);
    (void)argument;
    CHECK_EQ(janus_nursery_open(
                 &n, JANUS_NURSERY_OPTIONS(.spawn_cap = caps_spawn(root, 100),
                                           .budget_cap = caps_budget(root, JANUS_RIGHTS_ALL,
                                                                     UINT64_MAX, UINT64_MAX))),
             JANUS_OK);
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(
            janus_spawn_with(&n, recharge, &crowd, JANUS_SPAWN_OPTIONS(.budget = &share), NULL),
            JANUS_OK);
    }
    while (atomic_load(&crowd.arrived) < MANY) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_OK);
    atomic_store(&crowd.open, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("tasks that recharge themselves up to 2^64 are clamped, and no other task is refused")
{
    caps_all(recharges, NULL);
}
