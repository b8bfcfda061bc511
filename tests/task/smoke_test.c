/* SPDX-License-Identifier: MIT */
#include "town.h"
#include <stdio.h>
#include <string.h>
static int64_t spin(void *a)
{
    (void)a;
    for (;;)
        if (janus_check() != JANUS_OK) return JANUS_CANCELLED;
}
static int64_t spin_hard(void *a)
{
    atomic_int *n = a;
    for (;;) {
        (void)janus_check();
        atomic_fetch_add(n, 1);
    }
    return 0;
}
static int64_t explicit_pool(void *a)
{
    (void)a;
    janus_nursery        n;
    atomic_int           ops = 0;
    janus_nursery_result r;
    janus_failure        f[4];
    char                 t[400];
    janus_budget         pool = JANUS_BUDGET(.ops = 10001, .spawn_count = 1);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool, .name = "pool")),
             JANUS_OK);
    CHECK_EQ(janus_spawn(&n, spin_hard, &ops), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, spin_hard, &ops), JANUS_SPAWN_BUDGET);
    janus_explain(t, sizeof t);
    puts(t);
    CHECK_EQ(janus_nursery_wait(&n, &r), JANUS_CHILD_FAILED);
    CHECK_EQ(r.error, JANUS_BUDGET_EXHAUSTED);
    CHECK_EQ(janus_nursery_failures(&n, f, 4), 1);
    janus_failure_text(&n, &f[0], t, sizeof t);
    puts(t);
    CHECK_EQ(ops, 10000);
    janus_pool_books b;
    CHECK_EQ(janus_nursery_books(&n, &b), JANUS_OK);
    char q[200];
    janus_budget_text(&b.spent, q, sizeof q);
    puts(q);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    return 0;
}
TEST("explicit") { town_all(explicit_pool, NULL, 3); }
static int64_t implicit(void *a)
{
    (void)a;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_spawn(&n, spin, NULL), JANUS_OK);
    CHECK_EQ(janus_sleep(20000000), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}
TEST("implicit spinners") { town_all(implicit, NULL, 3); }
static int64_t ignoring(void *a)
{
    atomic_int x = 0;
    (void)a;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_spawn(&n, spin_hard, &x), JANUS_OK);
    CHECK_EQ(janus_sleep(20000000), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}
TEST("spinners that ignore cancellation end") { town_all(ignoring, NULL, 3); }
static int64_t alloc_bomb(void *a)
{
    (void)a;
    for (;;) CHECK(janus_alloc(1000) != NULL);
    return 0;
}
static int64_t bombs(void *a)
{
    (void)a;
    janus_nursery        n;
    janus_nursery_result r;
    janus_failure        f[4];
    char                 t[400];
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, alloc_bomb, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_wait(&n, &r), JANUS_CHILD_FAILED);
    CHECK_EQ(r.error, JANUS_BUDGET_EXHAUSTED);
    CHECK_EQ(janus_nursery_failures(&n, f, 4), 1);
    janus_failure_text(&n, &f[0], t, sizeof t);
    puts(t);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    return 0;
}
TEST("alloc bomb") { town_all(bombs, NULL, 3); }
static int64_t fork_bomb(void *a)
{
    atomic_int   *refused = a;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 20; i++) {
        janus_status s = janus_spawn(&n, fork_bomb, a);
        if (s != JANUS_OK) {
            CHECK_EQ(s, JANUS_TASK_LIMIT);
            atomic_fetch_add(refused, 1);
            break;
        }
    }
    if (atomic_load(refused) < 1000) (void)janus_sleep(1000);
    (void)janus_nursery_end(&n, NULL);
    return 0;
}
TEST("fork bomb")
{
    for (uint32_t w = 1; w <= 4; w *= 2) {
        atomic_int   refused = 0;
        janus_status s =
            janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = w), fork_bomb, &refused, NULL);
        CHECK_EQ(s, JANUS_OK);
        CHECK(refused > 0);
        printf("%d refused\n", refused);
    }
}
static int64_t child10k(void *a)
{
    janus_budget b = janus_budget_get_current();
    *(janus_budget *)a = b;
    return 0;
}
static int64_t sovereign(void *a)
{
    (void)a;
    janus_authority *root;
    janus_cap        spawn;
    janus_budget     got;
    char             t[400];
    janus_nursery    n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, child10k, &got), JANUS_NO_SPAWN_CAP);
    janus_explain(t, sizeof t);
    puts(t);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_authority_take(NULL, &root), JANUS_OK);
    CHECK_EQ(janus_authority_take(NULL, &root), JANUS_NO_AUTHORITY);
    janus_cap_limits limits = {
        .spawn = {.max_tasks = 3, .task_budget = {.ops = 10000, .memory = 1 << 20}}};
    CHECK_EQ(janus_own_mint(root, 0,
                            JANUS_CAP_GRANT(.kind = JANUS_CAP_SPAWN, .rights = JANUS_RIGHTS_ALL,
                                            .limits = &limits),
                            &spawn),
             JANUS_OK);
    CHECK_EQ(
        janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.spawn_cap = spawn, .policy = JANUS_WAIT_ALL)),
        JANUS_OK);
    CHECK_EQ(janus_spawn(&n, child10k, &got), JANUS_OK);
    atomic_int x = 0;
    CHECK_EQ(janus_spawn(&n, spin_hard, &x), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, spin_hard, &x), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    CHECK_EQ(got.ops, 10000);
    CHECK_EQ(got.memory, 1 << 20);
    CHECK_EQ(got.syscalls, 0);
    return 0;
}
TEST("sovereign")
{
    for (uint32_t w = 1; w <= 4; w *= 2)
        CHECK_EQ(
            janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = w, .profile = JANUS_PROFILE_SOVEREIGN,
                                              .yield_interval = 7),
                      sovereign, NULL, NULL),
            JANUS_OK);
}
static int64_t supervised(void *a)
{
    (void)a;
    janus_nursery   n;
    janus_exhausted e;
    atomic_int      x = 0;
    int             rounds = 0;
    janus_budget    pool = JANUS_BUDGET(.ops = 100000, .spawn_count = 5);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool,
                                                          .exhaustion = JANUS_EXHAUSTION_SUPERVISE,
                                                          .policy = JANUS_WAIT_ALL)),
             JANUS_OK);
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_spawn(&n, spin_hard, &x), JANUS_OK);
    janus_status s;
    while ((s = janus_nursery_exhausted_wait(&n, &e)) == JANUS_OK) {
        CHECK_EQ(e.lacks, JANUS_COMPONENT_OPS);
        if (++rounds < 4)
            CHECK_EQ(janus_nursery_recharge(&n, e.task, janus_budget_of(100, 0, 0, 0, 0)),
                     JANUS_OK);
        else
            CHECK_EQ(janus_nursery_cancel_exhausted(&n, e.task), JANUS_OK);
    }
    CHECK_EQ(s, JANUS_CLOSED);
    CHECK_EQ(x, 20300);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}
TEST("supervised") { town_all(supervised, NULL, 3); }
