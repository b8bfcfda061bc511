/* SPDX-License-Identifier: MIT */
#include "harness.h"

#include "base/rng.h"
#include "budget/account.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static janus_budget budget(uint64_t ops, uint64_t memory, uint64_t spawn_count)
{
    return janus_budget_of(ops, memory, spawn_count, 10, 10);
}

static void open_root(struct jrt_pool_account *account, janus_budget amount)
{
    CHECK_EQ(jrt_account_open(account, NULL, &amount), JANUS_COMPONENT_NONE);
}

static struct jrt_account_books books(struct jrt_pool_account *account)
{
    struct jrt_account_books now;
    jrt_account_read(account, &now);
    return now;
}

static void check(struct jrt_pool_account *root)
{
    struct jrt_account_fault fault;
    bool                     balanced = jrt_account_check(root, &fault);
    if (!balanced) printf("# %s, %s\n", fault.what, janus_component_name(fault.component));
    CHECK(balanced);
}

static void close_account(struct jrt_pool_account *account)
{
    jrt_account_close(account);
    jrt_account_fini(account);
}

TEST("a share is taken whole or not at all, and unused units come back")
{
    struct jrt_pool_account pool;
    janus_budget            share = budget(60, 100, 0), unused = budget(20, 100, 0), more;
    open_root(&pool, budget(100, 200, 5));
    CHECK_EQ(jrt_account_take(&pool, &share), JANUS_COMPONENT_NONE);
    CHECK_EQ(books(&pool).left.ops, 40);
    more = budget(41, 1, 0);
    CHECK_EQ(jrt_account_take(&pool, &more), JANUS_COMPONENT_OPS);
    CHECK_EQ(books(&pool).left.memory, 100);
    jrt_account_settle(&pool, &share, &unused);
    CHECK_EQ(books(&pool).left.ops, 60);
    CHECK_EQ(books(&pool).left.memory, 200);
    CHECK_EQ(books(&pool).spent.ops, 40);
    CHECK(janus_budget_is_zero(books(&pool).shares));
    check(&pool);
    close_account(&pool);
    CHECK_EQ(pool.books.refunded.ops, 60);
}

TEST("a task never returns more than it got")
{
    struct jrt_pool_account pool;
    janus_budget            share = budget(10, 10, 0), unused = budget(11, 5, 1);
    open_root(&pool, budget(100, 100, 5));
    CHECK_EQ(jrt_account_take(&pool, &share), JANUS_COMPONENT_NONE);
    jrt_account_settle(&pool, &share, &unused);
    CHECK_EQ(books(&pool).left.ops, 100);
    CHECK_EQ(books(&pool).left.memory, 95);
    CHECK_EQ(books(&pool).left.spawn_count, 5);
    check(&pool);
    close_account(&pool);
}

TEST("an account splits as a plain pool does, and books the price of the spawn")
{
    for (uint64_t ops = 0; ops < 4; ops++) {
        for (uint64_t spawns = 0; spawns < 3; spawns++) {
            struct jrt_pool_account pool;
            janus_budget plain = budget(ops, 3, spawns), want = budget(2, 2, 1), mine = {0},
                         its = {0};
            open_root(&pool, plain);
            CHECK_EQ(jrt_account_split(&pool, &want, &its),
                     janus_budget_split(&plain, want, &mine));
            CHECK(janus_budget_equal(mine, its));
            CHECK(janus_budget_equal(plain, books(&pool).left));
            check(&pool);
            jrt_account_settle(&pool, &its, &its);
            close_account(&pool);
        }
    }
}

TEST("an explicit service pool feeds ten children, and the eleventh after a refund")
{
    struct jrt_pool_account pool;
    janus_budget            want = janus_budget_child_default(), shares[10], late;
    open_root(&pool, janus_budget_service_default());
    for (int i = 0; i < 10; i++) CHECK_EQ(jrt_account_split(&pool, &want, &shares[i]), 0);
    CHECK_EQ(shares[8].ops, 10000);
    CHECK_EQ(shares[9].ops, 9990);
    CHECK_EQ(jrt_account_split(&pool, &want, &late), JANUS_COMPONENT_OPS);
    jrt_account_settle(&pool, &shares[0], &shares[0]);
    CHECK_EQ(jrt_account_split(&pool, &want, &late), JANUS_COMPONENT_NONE);
    CHECK_EQ(late.ops, 9999);
    check(&pool);
    jrt_account_settle(&pool, &late, &late);
    for (int i = 1; i < 10; i++) jrt_account_settle(&pool, &shares[i], &shares[i]);
    CHECK_EQ(books(&pool).spent.ops, 11);
    CHECK_EQ(books(&pool).spent.spawn_count, 11);
    close_account(&pool);
}

TEST("requests are granted until the limit is used up, and then refused")
{
    struct jrt_pool_account limit;
    janus_budget            want = budget(60, 0, 0), got;
    open_root(&limit, budget(100, 0, 0));
    want.channel_ops = want.syscalls = 0;
    CHECK(!jrt_account_take_some(&limit, &want, &got));
    CHECK_EQ(got.ops, 60);
    CHECK(jrt_account_take_some(&limit, &want, &got));
    CHECK_EQ(got.ops, 40);
    CHECK(jrt_account_take_some(&limit, &want, &got));
    CHECK(janus_budget_is_zero(got));
    got = budget(100, 0, 0);
    got.channel_ops = got.syscalls = 0;
    jrt_account_settle(&limit, &got, &want);
    close_account(&limit);
}

TEST("a nested pool is carved from its parent, and returns what is left and what was spent")
{
    struct jrt_pool_account outer, inner;
    janus_budget amount = budget(50, 50, 2), price = janus_price_spawn(), back = budget(9, 0, 0);
    open_root(&outer, budget(100, 100, 5));
    CHECK_EQ(jrt_account_open(&inner, &outer, &amount), JANUS_COMPONENT_NONE);
    CHECK_EQ(books(&outer).left.ops, 50);
    CHECK_EQ(books(&outer).nested.ops, 50);
    CHECK_EQ(jrt_account_charge(&inner, &price), JANUS_COMPONENT_NONE);
    check(&outer);
    back.channel_ops = back.syscalls = 0;
    CHECK_EQ(jrt_account_refund(&inner, &back), JANUS_COMPONENT_NONE);
    CHECK_EQ(books(&outer).left.ops, 59);
    CHECK_EQ(jrt_account_grant(&inner, &back), JANUS_COMPONENT_NONE);
    check(&outer);
    close_account(&inner);
    CHECK_EQ(books(&outer).left.ops, 99);
    CHECK_EQ(books(&outer).spent.spawn_count, 1);
    CHECK(janus_budget_is_zero(books(&outer).nested));
    check(&outer);
    close_account(&outer);
}

TEST("a carve that the parent cannot pay changes nothing")
{
    struct jrt_pool_account outer, inner;
    janus_budget            amount = budget(1, 101, 0);
    open_root(&outer, budget(100, 100, 5));
    CHECK_EQ(jrt_account_open(&inner, &outer, &amount), JANUS_COMPONENT_MEMORY);
    CHECK_EQ(books(&outer).left.ops, 100);
    CHECK(jrt_list_empty(&outer.children));
    close_account(&outer);
}

TEST("minted units appear in every account above, and a full tree takes no more")
{
    struct jrt_pool_account outer, inner;
    janus_budget            amount = budget(10, 0, 0), slice = budget(UINT64_MAX, 7, 0), got;
    open_root(&outer, budget(100, 0, 0));
    amount.channel_ops = amount.syscalls = slice.channel_ops = slice.syscalls = 0;
    CHECK_EQ(jrt_account_open(&inner, &outer, &amount), JANUS_COMPONENT_NONE);
    jrt_account_mint(&inner, &slice, &got);
    CHECK_EQ(got.ops, UINT64_MAX - 100);
    CHECK_EQ(got.memory, 7);
    CHECK_EQ(books(&inner).left.ops, UINT64_MAX - 90);
    CHECK_EQ(books(&outer).granted.memory, 7);
    check(&outer);
    jrt_account_mint(&outer, &slice, &got);
    CHECK_EQ(got.ops, 0);
    close_account(&inner);
    CHECK_EQ(books(&outer).left.ops, UINT64_MAX);
    check(&outer);
    close_account(&outer);
}

TEST("a bank refuses no request, whatever others took, and its books balance to the end")
{
    struct jrt_pool_account bank, pools[3];
    const janus_budget all = budget(UINT64_MAX, UINT64_MAX, UINT64_MAX), some = budget(5, 5, 5);
    janus_budget       got;
    jrt_account_open_bank(&bank);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(jrt_account_open(&pools[i], &bank, &all), JANUS_COMPONENT_NONE);
        CHECK_EQ(books(&pools[i]).left.ops, UINT64_MAX);
        CHECK_EQ(jrt_account_take(&bank, &all), JANUS_COMPONENT_NONE);
        check(&bank);
    }
    jrt_account_mint_share(&pools[1], &some, &got);
    CHECK_EQ(got.ops, 0); /* the sum of one pool fits its numbers */
    jrt_account_settle(&pools[1], &got, &got);
    CHECK_EQ(jrt_account_take(&pools[0], &some), JANUS_COMPONENT_NONE);
    jrt_account_settle(&pools[0], &some, &some);
    for (int i = 0; i < 3; i++) {
        jrt_account_settle(&bank, &all, &some);
        close_account(&pools[i]);
        check(&bank);
    }
    CHECK_EQ(books(&bank).left.ops, UINT64_MAX);
    CHECK_EQ(books(&bank).shares.ops, 0);
    CHECK_EQ(books(&bank).nested.ops, 0);
    close_account(&bank);
}

TEST("the checker finds one missing unit and names its account")
{
    struct jrt_pool_account  outer, inner;
    struct jrt_account_fault fault;
    janus_budget             amount = budget(10, 10, 2);
    open_root(&outer, budget(100, 100, 5));
    CHECK_EQ(jrt_account_open(&inner, &outer, &amount), JANUS_COMPONENT_NONE);
    inner.books.left.syscalls--;
    CHECK(!jrt_account_check(&outer, &fault));
    CHECK(fault.account == &inner);
    CHECK_EQ(fault.component, JANUS_COMPONENT_SYSCALLS);
    CHECK_STR(fault.what, "granted");
    inner.books.left.syscalls++;
    inner.books.granted.memory++, inner.books.left.memory++;
    CHECK(!jrt_account_check(&outer, &fault));
    CHECK(fault.account == &outer);
    CHECK_STR(fault.what, "nested");
}

static void close_too_early(void *argument)
{
    struct jrt_pool_account pool;
    janus_budget            share = budget(1, 1, 0), inner_amount = budget(1, 1, 1);
    struct jrt_pool_account inner;
    open_root(&pool, budget(9, 9, 9));
    if (strcmp(argument, "share") == 0) (void)jrt_account_take(&pool, &share);
    if (strcmp(argument, "nested") == 0) (void)jrt_account_open(&inner, &pool, &inner_amount);
    if (strcmp(argument, "settle") == 0) jrt_account_settle(&pool, &share, &share);
    jrt_account_close(&pool);
}

TEST("closing an account too early, and settling a share never taken, end the process")
{
    static const char *const cases[] = {"share", "nested", "settle"};
    static const char *const texts[] = {"before a task settled", "before an account carved",
                                        "never taken"};
    for (int i = 0; i < 3; i++) {
        int         status;
        const char *text = harness_child(close_too_early, (void *)(uintptr_t)cases[i], &status);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        CHECK(strstr(text, texts[i]) != NULL);
    }
}

/* Random trees, beside a plain count of every unit that knows nothing of accounts. */

enum { ACCOUNTS = 24, TASKS = 48, STEPS = 4000 };

struct scene {
    struct jrt_rng          rng;
    struct jrt_pool_account accounts[ACCOUNTS]; /* 0 is the root */
    int                     above[ACCOUNTS];    /* -1: not open */
    struct {
        int          account; /* -1: no task */
        janus_budget share, left;
    } tasks[TASKS];
    janus_budget made;  /* units ever made */
    janus_budget spent; /* units spent */
};

static janus_budget dice(struct scene *scene, uint32_t most)
{
    struct jrt_rng *rng = &scene->rng;
    return janus_budget_of(jrt_rng_below(rng, most), jrt_rng_below(rng, most),
                           jrt_rng_below(rng, most), jrt_rng_below(rng, most),
                           jrt_rng_below(rng, most));
}

static int open_one(struct scene *scene)
{
    int at;
    do at = (int)jrt_rng_below(&scene->rng, ACCOUNTS);
    while (scene->above[at] < 0 && at != 0);
    return at;
}

static bool in_use(const struct scene *scene, int account)
{
    for (int i = 1; i < ACCOUNTS; i++) {
        if (scene->above[i] == account) return true;
    }
    for (int i = 0; i < TASKS; i++) {
        if (scene->tasks[i].account == account) return true;
    }
    return false;
}

static void subtract(janus_budget *from, janus_budget amount)
{
    CHECK_EQ(janus_budget_charge(from, amount), JANUS_COMPONENT_NONE);
}

static void step_account(struct scene *scene)
{
    int          at = 1 + (int)jrt_rng_below(&scene->rng, ACCOUNTS - 1);
    janus_budget amount = dice(scene, 60), got;
    if (scene->above[at] < 0) {
        int parent = open_one(scene);
        if (jrt_account_open(&scene->accounts[at], &scene->accounts[parent], &amount) == 0) {
            scene->above[at] = parent;
        }
        return;
    }
    switch (jrt_rng_below(&scene->rng, 6)) {
    case 0:
        if (in_use(scene, at)) break;
        close_account(&scene->accounts[at]);
        scene->above[at] = -1;
        break;
    case 1: (void)jrt_account_grant(&scene->accounts[at], &amount); break;
    case 2: (void)jrt_account_refund(&scene->accounts[at], &amount); break;
    case 3:
        if (jrt_account_charge(&scene->accounts[at], &amount) != JANUS_COMPONENT_NONE) break;
        scene->spent = janus_budget_add(scene->spent, amount);
        break;
    case 4:
        amount = janus_budget_min(amount, janus_budget_of(2, 2, 2, 2, 2));
        jrt_account_mint(&scene->accounts[at], &amount, &got);
        CHECK(janus_budget_equal(amount, got));
        scene->made = janus_budget_add(scene->made, got);
        break;
    default: break;
    }
}

static void step_task(struct scene *scene)
{
    int          at = (int)jrt_rng_below(&scene->rng, TASKS), from = open_one(scene);
    janus_budget want = dice(scene, 30), got;
    if (scene->tasks[at].account < 0) {
        if (jrt_account_split(&scene->accounts[from], &want, &got) != JANUS_COMPONENT_NONE) return;
        scene->spent = janus_budget_add(scene->spent, janus_price_spawn());
        scene->tasks[at].account = from;
        scene->tasks[at].share = scene->tasks[at].left = got;
        CHECK_EQ(janus_budget_lacks(want, got), JANUS_COMPONENT_NONE);
        return;
    }
    from = scene->tasks[at].account;
    switch (jrt_rng_below(&scene->rng, 4)) {
    case 0:
        jrt_account_settle(&scene->accounts[from], &scene->tasks[at].share, &scene->tasks[at].left);
        scene->tasks[at].account = -1;
        return;
    case 1: /* works */
        if (janus_budget_charge(&scene->tasks[at].left, want) != JANUS_COMPONENT_NONE) return;
        scene->spent = janus_budget_add(scene->spent, want);
        return;
    case 2: /* recharged exactly */
        if (jrt_account_take(&scene->accounts[from], &want) != JANUS_COMPONENT_NONE) return;
        got = want;
        break;
    default: /* or with what there is */
        (void)jrt_account_take_some(&scene->accounts[from], &want, &got);
        break;
    }
    scene->tasks[at].share = janus_budget_add(scene->tasks[at].share, got);
    scene->tasks[at].left = janus_budget_add(scene->tasks[at].left, got);
}

static void count(struct scene *scene)
{
    janus_budget there = scene->spent;
    for (int i = 0; i < ACCOUNTS; i++) {
        if (i > 0 && scene->above[i] < 0) continue;
        there = janus_budget_add(there, scene->accounts[i].books.left);
    }
    for (int i = 0; i < TASKS; i++) {
        if (scene->tasks[i].account >= 0) there = janus_budget_add(there, scene->tasks[i].left);
    }
    CHECK(janus_budget_equal(there, scene->made));
    check(&scene->accounts[0]);
}

static void wind_up(struct scene *scene)
{
    for (int i = 0; i < TASKS; i++) {
        if (scene->tasks[i].account < 0) continue;
        jrt_account_settle(&scene->accounts[scene->tasks[i].account], &scene->tasks[i].share,
                           &scene->tasks[i].left);
        scene->tasks[i].account = -1;
    }
    for (bool more = true; more;) {
        more = false;
        for (int i = 1; i < ACCOUNTS; i++) {
            if (scene->above[i] < 0) continue;
            more = true;
            if (in_use(scene, i)) continue;
            close_account(&scene->accounts[i]);
            scene->above[i] = -1;
            count(scene);
        }
    }
}

TEST("random trees of carving, taking, charging, refunding and closing neither lose nor make a "
     "unit")
{
    static struct scene scene;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        jrt_rng_seed(&scene.rng, seed);
        scene.made = janus_budget_of(900, 900, 900, 900, 900);
        scene.spent = janus_budget_zero();
        open_root(&scene.accounts[0], scene.made);
        for (int i = 1; i < ACCOUNTS; i++) scene.above[i] = -1;
        scene.above[0] = 0;
        for (int i = 0; i < TASKS; i++) scene.tasks[i].account = -1;
        for (int i = 0; i < STEPS; i++) {
            if (jrt_rng_below(&scene.rng, 2) == 0)
                step_account(&scene);
            else
                step_task(&scene);
            count(&scene);
        }
        wind_up(&scene);
        janus_budget rest = scene.made;
        subtract(&rest, scene.spent);
        CHECK(janus_budget_equal(books(&scene.accounts[0]).left, rest));
        CHECK(janus_budget_equal(books(&scene.accounts[0]).spent, scene.spent));
        close_account(&scene.accounts[0]);
    }
}
