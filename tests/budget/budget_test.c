/* SPDX-License-Identifier: MIT */
#include "harness.h"

#include <janusrt/budget.h>

#include <string.h>

static const janus_component components[] = {JANUS_COMPONENT_OPS, JANUS_COMPONENT_MEMORY,
                                             JANUS_COMPONENT_SPAWN_COUNT,
                                             JANUS_COMPONENT_CHANNEL_OPS, JANUS_COMPONENT_SYSCALLS};
enum { COMPONENTS = 5 };

static janus_budget with(janus_budget budget, janus_component component, uint64_t units)
{
    switch (component) {
    case JANUS_COMPONENT_NONE: break;
#define X(name, field)                                                                             \
    case JANUS_COMPONENT_##name: budget.field = units; break;
        JANUS_COMPONENT_MAP(X)
#undef X
    }
    return budget;
}

static bool same(janus_budget budget, uint64_t ops, uint64_t memory, uint64_t spawn_count,
                 uint64_t channel_ops, uint64_t syscalls)
{
    return janus_budget_equal(budget,
                              janus_budget_of(ops, memory, spawn_count, channel_ops, syscalls));
}

TEST("a budget is five 64-bit numbers, 40 bytes, and keeps values above 32 bits")
{
    janus_budget big = {1ull << 33, 1ull << 34, 1ull << 35, 1ull << 36, UINT64_MAX};
    CHECK_EQ(sizeof(janus_budget), 40);
    for (int i = 0; i < COMPONENTS; i++) {
        CHECK(janus_budget_get(&big, components[i]) >= 1ull << 33);
        janus_budget one = with(janus_budget_zero(), components[i], 1ull << 40);
        CHECK(janus_budget_get(&one, components[i]) == 1ull << 40);
        for (int j = 0; j < COMPONENTS; j++) {
            if (j != i) CHECK_EQ(janus_budget_get(&one, components[j]), 0);
        }
    }
    CHECK_EQ(janus_budget_get(&big, JANUS_COMPONENT_NONE), 0);
}

TEST("a charge that cannot be paid names the component and changes nothing")
{
    for (int i = 0; i < COMPONENTS; i++) {
        janus_budget price = with(janus_budget_of(1, 1, 1, 1, 1), components[i], 8);
        janus_budget budget = janus_budget_of(7, 7, 7, 7, 7), before = budget;
        CHECK_EQ(janus_budget_charge(&budget, price), components[i]);
        CHECK(janus_budget_equal(budget, before));
        CHECK_EQ(janus_budget_lacks(budget, price), components[i]);

        budget = with(budget, components[i], 8);
        CHECK_EQ(janus_budget_charge(&budget, price), JANUS_COMPONENT_NONE);
        CHECK_EQ(janus_budget_get(&budget, components[i]), 0);
        CHECK_EQ(janus_budget_charge(&budget, price), components[i]); /* no wrap below zero */
    }
}

TEST("of several missing components the first one of the struct is named")
{
    janus_budget none = janus_budget_zero();
    CHECK_EQ(janus_budget_charge(&none, janus_budget_of(0, 1, 1, 1, 1)), JANUS_COMPONENT_MEMORY);
    CHECK_EQ(janus_budget_charge(&none, janus_budget_of(0, 0, 0, 1, 1)),
             JANUS_COMPONENT_CHANNEL_OPS);
    CHECK_EQ(janus_budget_charge(&none, janus_budget_of(1, 1, 1, 1, 1)), JANUS_COMPONENT_OPS);
    CHECK_EQ(janus_budget_charge(&none, none), JANUS_COMPONENT_NONE);
}

TEST("adding and scaling stop at the largest number")
{
    janus_budget most = janus_budget_of(UINT64_MAX, UINT64_MAX - 1, 1, 0, 5);
    janus_budget sum = janus_budget_add(most, janus_budget_of(1, 1, 1, UINT64_MAX, 5));
    CHECK(same(sum, UINT64_MAX, UINT64_MAX, 2, UINT64_MAX, 10));
    CHECK(same(janus_budget_add(sum, sum), UINT64_MAX, UINT64_MAX, 4, UINT64_MAX, 20));

    janus_budget many = janus_budget_scale(janus_budget_of(1ull << 40, 3, 0, 1, 2), 1ull << 30);
    CHECK(same(many, UINT64_MAX, 3ull << 30, 0, 1ull << 30, 2ull << 30));
    CHECK(janus_budget_is_zero(janus_budget_scale(most, 0)));
    CHECK(!janus_budget_is_zero(with(janus_budget_zero(), JANUS_COMPONENT_SYSCALLS, 1)));
}

TEST("a clamp lowers what is above the limit and reports whether it did")
{
    janus_budget limit = janus_budget_of(10, 20, 30, 40, 50);
    for (int i = 0; i < COMPONENTS; i++) {
        uint64_t     most = janus_budget_get(&limit, components[i]);
        janus_budget below = with(limit, components[i], most - 1);
        janus_budget above = with(limit, components[i], most + 1);
        CHECK(!janus_budget_clamp(&below, limit));
        CHECK_EQ(janus_budget_get(&below, components[i]), most - 1);
        CHECK(janus_budget_clamp(&above, limit));
        CHECK(janus_budget_equal(above, limit));
    }
    janus_budget equal = limit;
    CHECK(!janus_budget_clamp(&equal, limit));
    CHECK(janus_budget_equal(equal, limit));
}

TEST("every operation costs what the price list says")
{
    CHECK(same(janus_price_loop(1), 1, 0, 0, 0, 0));
    CHECK(same(janus_price_loop(1024), 1024, 0, 0, 0, 0));
    CHECK(same(janus_price_call(), 1, 0, 0, 0, 0));
    CHECK(same(janus_price_alloc(4096), 1, 4096, 0, 0, 0));
    CHECK(same(janus_price_spawn(), 1, 0, 1, 0, 0));
    CHECK(same(janus_price_send(), 1, 0, 0, 1, 0));
    CHECK(same(janus_price_recv(), 1, 0, 0, 1, 0));
    CHECK(same(janus_price_file_io(), 1, 0, 0, 0, 1));
    CHECK(same(janus_price_network_io(), 1, 0, 0, 0, 1));
}

TEST("the default budgets are the documented numbers")
{
    CHECK(janus_budget_is_zero(janus_budget_zero()));
    CHECK(same(janus_budget_default(), 10000, 1048576, 0, 100, 10));
    CHECK(janus_budget_equal(janus_budget_child_default(), janus_budget_default()));
    CHECK(same(janus_budget_actor_default(), 100000, 10485760, 0, 1000, 100));
    CHECK(same(janus_budget_service_default(), 100000, 10485760, 100, 1000, 100));
    CHECK(same(janus_budget_cluster_default(), 1000000, 104857600, 1000, 10000, 1000));
}

TEST("a budget with some named fields has the default's numbers in the others")
{
    CHECK(same(JANUS_BUDGET(.ops = 500, .syscalls = 0), 500, 1048576, 0, 100, 0));
    CHECK(same(JANUS_BUDGET(.memory = 1), 10000, 1, 0, 100, 10));
}

TEST("each profile's limits are the documented numbers")
{
    const janus_limits *service = janus_profile_limits(JANUS_PROFILE_SERVICE);
    CHECK(janus_profile_limits(JANUS_PROFILE_DEFAULT) == service);
    CHECK_EQ(service->max_tasks, 100);
    CHECK(janus_budget_equal(service->task_budget, janus_budget_default()));
    CHECK(janus_budget_equal(service->budget, janus_budget_service_default()));
    CHECK_EQ(service->max_channel_values, 10000);
    CHECK_EQ(service->max_channels, 1000);

    const janus_limits *cluster = janus_profile_limits(JANUS_PROFILE_CLUSTER);
    CHECK_EQ(cluster->max_tasks, 10000);
    CHECK(janus_budget_equal(cluster->task_budget, janus_budget_actor_default()));
    CHECK(janus_budget_equal(cluster->budget, janus_budget_cluster_default()));
    CHECK_EQ(cluster->max_channel_values, 100000);
    CHECK_EQ(cluster->max_channels, 10000);

    static const janus_profile without[] = {JANUS_PROFILE_CORE, JANUS_PROFILE_SOVEREIGN};
    for (int i = 0; i < 2; i++) {
        const janus_limits *none = janus_profile_limits(without[i]);
        CHECK_EQ(none->max_tasks, 0);
        CHECK(janus_budget_is_zero(none->task_budget) && janus_budget_is_zero(none->budget));
        CHECK(janus_budget_is_zero(janus_profile_pool(without[i])));
    }
    CHECK(janus_profile_limits((janus_profile)99) == NULL);
    CHECK(janus_budget_is_zero(janus_profile_pool((janus_profile)99)));
}

TEST("the implicit pool holds a full budget for each of the tasks a profile promises")
{
    janus_budget pool = janus_profile_pool(JANUS_PROFILE_SERVICE);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(janus_budget_charge(&pool, janus_budget_default()), JANUS_COMPONENT_NONE);
    }
    CHECK(janus_budget_is_zero(pool));
    CHECK(janus_budget_equal(janus_profile_pool(JANUS_PROFILE_CLUSTER),
                             janus_budget_scale(janus_budget_actor_default(), 10000)));
}

TEST("the yield interval is the profile's unless an option sets it, and :sovereign needs the "
     "option")
{
    CHECK_EQ(janus_profile_yield_interval(JANUS_PROFILE_SERVICE, 0), 1024);
    CHECK_EQ(janus_profile_yield_interval(JANUS_PROFILE_DEFAULT, 0), 1024);
    CHECK_EQ(janus_profile_yield_interval(JANUS_PROFILE_CLUSTER, 0), 512);
    CHECK_EQ(janus_profile_yield_interval(JANUS_PROFILE_CLUSTER, 64), 64);
    CHECK_EQ(janus_profile_yield_interval(JANUS_PROFILE_SOVEREIGN, 7), 7);
    CHECK_EQ(janus_profile_yield_interval(JANUS_PROFILE_SOVEREIGN, 0), 0);
    CHECK_EQ(janus_profile_yield_interval(JANUS_PROFILE_CORE, 7), 0);
    CHECK_EQ(janus_profile_yield_interval((janus_profile)99, 7), 0);
}

TEST("a child's share is what it wants or what the pool has left, and the sum is conserved")
{
    static const struct {
        janus_budget    pool, share, rest;
        janus_component missing;
    } rows[] = {
        /* larger than the default in every field */
        {{100000, 10 << 20, 100, 1000, 100},
         {10000, 1 << 20, 0, 100, 10},
         {89999, 9 << 20, 99, 900, 90},
         JANUS_COMPONENT_NONE},
        /* equal, the spawn's op on top */
        {{10001, 1 << 20, 1, 100, 10},
         {10000, 1 << 20, 0, 100, 10},
         {0, 0, 0, 0, 0},
         JANUS_COMPONENT_NONE},
        /* equal: the pool pays the spawn's op, so the child gets one less */
        {{10000, 1 << 20, 1, 100, 10},
         {9999, 1 << 20, 0, 100, 10},
         {0, 0, 0, 0, 0},
         JANUS_COMPONENT_NONE},
        /* smaller in every field */
        {{50, 4096, 3, 7, 2}, {49, 4096, 0, 7, 2}, {0, 0, 2, 0, 0}, JANUS_COMPONENT_NONE},
        /* smaller in some */
        {{20001, 0, 2, 500, 1}, {10000, 0, 0, 100, 1}, {10000, 0, 1, 400, 0}, JANUS_COMPONENT_NONE},
        /* the last op that gives a child anything */
        {{2, 0, 1, 0, 0}, {1, 0, 0, 0, 0}, {0, 0, 0, 0, 0}, JANUS_COMPONENT_NONE},
        {{1, 1 << 20, 9, 9, 9}, {0}, {1, 1 << 20, 9, 9, 9}, JANUS_COMPONENT_OPS},
        {{0, 1 << 20, 9, 9, 9}, {0}, {0, 1 << 20, 9, 9, 9}, JANUS_COMPONENT_OPS},
        {{500, 1 << 20, 0, 9, 9}, {0}, {500, 1 << 20, 0, 9, 9}, JANUS_COMPONENT_SPAWN_COUNT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        janus_budget pool = rows[i].pool, share = {0};
        CHECK_EQ(janus_budget_split(&pool, janus_budget_child_default(), &share), rows[i].missing);
        CHECK(janus_budget_equal(share, rows[i].share));
        CHECK(janus_budget_equal(pool, rows[i].rest));
        janus_budget sum = janus_budget_add(pool, share);
        if (rows[i].missing == JANUS_COMPONENT_NONE)
            sum = janus_budget_add(sum, janus_price_spawn());
        CHECK(janus_budget_equal(sum, rows[i].pool));
    }
}

TEST("an explicit service pool feeds nine full children and a tenth with 9,990 ops")
{
    janus_budget pool = janus_budget_service_default(), share;
    for (int i = 0; i < 9; i++) {
        CHECK_EQ(janus_budget_split(&pool, janus_budget_child_default(), &share), 0);
        CHECK(janus_budget_equal(share, janus_budget_default()));
    }
    CHECK_EQ(janus_budget_split(&pool, janus_budget_child_default(), &share), 0);
    CHECK(same(share, 9990, 1 << 20, 0, 100, 10));
    CHECK_EQ(janus_budget_split(&pool, janus_budget_child_default(), &share), JANUS_COMPONENT_OPS);
    pool = janus_budget_add(pool, share); /* the tenth child ends without having done anything */
    CHECK_EQ(janus_budget_split(&pool, janus_budget_child_default(), &share), 0);
    CHECK_EQ(share.ops, 9989);
}

TEST("a child that asks for spawns of its own gets them from the pool")
{
    janus_budget pool = janus_budget_of(100, 0, 10, 0, 0), share;
    CHECK_EQ(janus_budget_split(&pool, janus_budget_of(10, 0, 4, 0, 0), &share), 0);
    CHECK(same(share, 10, 0, 4, 0, 0));
    CHECK(same(pool, 89, 0, 5, 0, 0));
}

TEST("components and budgets have texts")
{
    char         text[200];
    janus_budget budget = janus_budget_of(9990, 3 << 20, 0, 100, UINT64_MAX);
    const char  *whole =
        "ops 9990, memory 3 MiB, spawn_count 0, channel_ops 100, syscalls unlimited";
    CHECK_EQ(janus_budget_text(&budget, text, sizeof text), strlen(whole));
    CHECK_STR(text, whole);
    CHECK_EQ(janus_budget_text(&budget, text, 9), strlen(whole));
    CHECK_STR(text, "ops 9990");
    CHECK_EQ(janus_budget_text(&budget, NULL, 0), strlen(whole));
    budget.memory = 1025;
    (void)janus_budget_text(&budget, text, sizeof text);
    CHECK(strstr(text, "memory 1025,") != NULL);

    CHECK_STR(janus_component_name(JANUS_COMPONENT_NONE), "none");
    CHECK_STR(janus_component_name(JANUS_COMPONENT_SPAWN_COUNT), "spawn_count");
    CHECK_STR(janus_component_name(JANUS_COMPONENT_SYSCALLS), "syscalls");
    CHECK_STR(janus_component_name((janus_component)99), "?");
}
