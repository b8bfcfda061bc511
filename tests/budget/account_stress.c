/* SPDX-License-Identifier: MIT */
/*
 * Threads take shares from the same few pools, spend, settle, and carve pools of their own, all at
 * once. No pool ever gives more than it has. When all are gone, every unit is accounted for.
 */
#include "harness.h"

#include "base/rng.h"
#include "budget/account.h"

#include <pthread.h>
#include <stdatomic.h>

#if JRT_TSAN || defined(__aarch64__)
enum { ROUNDS = 20000 };
#else
enum { ROUNDS = 400000 };
#endif
enum { THREADS = 4, POOLS = 3, POOL_OPS = 1000 };

static struct jrt_pool_account root, pools[POOLS];
static _Atomic(uint64_t)       held[POOLS]; /* ops that threads hold */
static _Atomic(uint64_t)       spent_ops, spent_spawns;

/* The holders of a pool never have more ops than it was given. */
static void hold(int pool, uint64_t ops)
{
    CHECK(atomic_fetch_add(&held[pool], ops) + ops <= POOL_OPS);
}

static void work(struct jrt_rng *rng, int pool)
{
    janus_budget want = janus_budget_of(jrt_rng_below(rng, 400), 8, 0, 1, 1), share;
    janus_budget spent = janus_budget_zero(), minted;
    if (jrt_rng_below(rng, 2) == 0) {
        if (jrt_account_split(&pools[pool], &want, &share) != JANUS_COMPONENT_NONE) return;
        spent = janus_price_spawn();
    } else {
        share = want;
        if (jrt_account_take(&pools[pool], &want) != JANUS_COMPONENT_NONE) return;
    }
    hold(pool, share.ops);
    janus_budget unused = share;
    if (unused.ops > 0) unused.ops--, spent.ops++;
    atomic_fetch_sub(&held[pool], share.ops);
    jrt_account_settle(&pools[pool], &share, &unused);
    jrt_account_mint(&pools[pool], &spent, &minted); /* replaces what was spent */
    atomic_fetch_add(&spent_ops, spent.ops);
    atomic_fetch_add(&spent_spawns, spent.spawn_count);
}

static void carve(struct jrt_rng *rng, int pool)
{
    struct jrt_pool_account inner;
    janus_budget            amount = janus_budget_of(jrt_rng_below(rng, 300), 4, 0, 1, 0);
    janus_budget            part = janus_budget_of(1, 1, 0, 0, 0);
    if (jrt_account_open(&inner, &pools[pool], &amount) != JANUS_COMPONENT_NONE) return;
    hold(pool, amount.ops);
    uint64_t inside = amount.ops; /* what of the pool the inner account has */
    if (jrt_account_take(&inner, &part) == JANUS_COMPONENT_NONE) {
        jrt_account_settle(&inner, &part, &part);
        atomic_fetch_sub(&held[pool], part.ops); /* first: others may take it at once */
        CHECK_EQ(jrt_account_refund(&inner, &part), JANUS_COMPONENT_NONE);
        inside -= part.ops;
        if (jrt_account_grant(&inner, &part) == JANUS_COMPONENT_NONE) {
            hold(pool, part.ops);
            inside += part.ops;
        }
    }
    atomic_fetch_sub(&held[pool], inside);
    jrt_account_close(&inner);
    jrt_account_fini(&inner);
}

static void *run(void *argument)
{
    struct jrt_rng rng;
    jrt_rng_seed(&rng, (uintptr_t)argument);
    for (int i = 0; i < ROUNDS; i++) {
        int pool = (int)jrt_rng_below(&rng, POOLS);
        if (jrt_rng_below(&rng, 8) == 0)
            carve(&rng, pool);
        else
            work(&rng, pool);
    }
    return NULL;
}

TEST("threads that share pools never get more than there is, and every unit comes back")
{
    pthread_t    threads[THREADS];
    janus_budget all = janus_budget_of((uint64_t)POOLS * POOL_OPS, 1000, 3000, 100, 100);
    janus_budget each = janus_budget_of(POOL_OPS, 300, 1000, 30, 30);
    CHECK_EQ(jrt_account_open(&root, NULL, &all), JANUS_COMPONENT_NONE);
    for (int i = 0; i < POOLS; i++) {
        CHECK_EQ(jrt_account_open(&pools[i], &root, &each), JANUS_COMPONENT_NONE);
    }
    for (uintptr_t i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, run, (void *)(i + 1)), 0);
    }
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);

    struct jrt_account_fault fault;
    CHECK(jrt_account_check(&root, &fault));
    for (int i = 0; i < POOLS; i++) {
        CHECK(janus_budget_is_zero(pools[i].books.shares));
        CHECK(janus_budget_is_zero(pools[i].books.nested));
        jrt_account_close(&pools[i]);
        jrt_account_fini(&pools[i]);
    }
    CHECK(jrt_account_check(&root, &fault));
    CHECK_EQ(root.books.spent.ops, atomic_load(&spent_ops));
    CHECK_EQ(root.books.spent.spawn_count, atomic_load(&spent_spawns));
    CHECK(atomic_load(&spent_spawns) > 1000);
    CHECK_EQ(root.books.left.ops, POOLS * POOL_OPS);
    CHECK_EQ(root.books.left.memory, 1000);
    jrt_account_close(&root);
    jrt_account_fini(&root);
}
