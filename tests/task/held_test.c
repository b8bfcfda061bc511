/* SPDX-License-Identifier: MIT */
/* What the library holds for a task: that task pays for it, or its nursery alone has a bound. */
#include "caps.h"

#include <string.h>

/* Nurseries on the heap. */

enum { FREE_ONES = 16, PAID_ONES = 5 };

static uint64_t memory(void) { return janus_budget_get_current().memory; }

static int64_t open_many(void *argument)
{
    janus_nursery *n[FREE_ONES + PAID_ONES];
    uint64_t       before = memory();
    (void)argument;
    for (int i = 0; i < FREE_ONES; i++) CHECK((n[i] = janus_nursery_create()) != NULL);
    CHECK_EQ(memory(), before);
    for (int i = FREE_ONES; i < FREE_ONES + PAID_ONES; i++) {
        CHECK((n[i] = janus_nursery_create()) != NULL);
    }
    CHECK_EQ((before - memory()) / PAID_ONES, (before - memory() + PAID_ONES - 1) / PAID_ONES);
    CHECK(before - memory() >= PAID_ONES * sizeof(janus_nursery));
    for (int i = FREE_ONES + PAID_ONES; i-- > 0;) {
        CHECK_EQ(janus_nursery_destroy(n[i]), JANUS_OK);
    }
    CHECK_EQ(memory(), before);
    return 0;
}

static int64_t open_more_than_it_has(void *argument)
{
    int open = 0;
    (void)argument;
    while (janus_nursery_create() != NULL) open++;
    CHECK_EQ(open, FREE_ONES);
    janus_panic("with nurseries open"); /* they are ended, and refunded */
}

static int64_t heap_nurseries(void *argument)
{
    janus_nursery           n;
    janus_nursery_pool_info books = JANUS_NURSERY_POOL_INFO();
    const janus_budget      pool = janus_budget_of(100000, 1 << 16, 10, 0, 0);
    const janus_budget      rich = janus_budget_of(10000, 1 << 15, 0, 0, 0);
    const janus_budget      poor = janus_budget_of(10000, sizeof(janus_nursery), 0, 0, 0);
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, open_many, NULL, JANUS_SPAWN_OPTIONS(.budget = &rich), NULL),
             JANUS_OK);
    CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, open_more_than_it_has, NULL, JANUS_SPAWN_OPTIONS(.budget = &poor),
                              NULL),
             JANUS_OK);
    CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_CHILD_FAILED);
    CHECK_EQ(janus_nursery_pool_inspect(&n, &books), JANUS_OK);
    CHECK_EQ(books.left.memory, books.granted.memory);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    return 0;
}

TEST("a task pays for nurseries on the heap from the 17th on, and gets a refund when they end")
{
    rig_all(heap_nurseries, NULL, 5);
}

/* What tasks leave behind. */

enum { POOL_BYTES = 1 << 16, LEFT_BYTES = 4000, LEAVERS = 40 };

static atomic_int left_behind;
static void      *blocks[LEAVERS];

static int64_t leave_a_block(void *argument)
{
    void *block;
    char  text[400];
    (void)argument;
    CHECK_EQ(janus_try_alloc(LEFT_BYTES, &block), JANUS_OK);
    void *loose = janus_detach(block);
    if (loose != NULL) {
        blocks[atomic_fetch_add(&left_behind, 1)] = loose;
        return 0;
    }
    CHECK(janus_explain(text, sizeof text) < sizeof text);
    CHECK(strstr(text, "bytes that the library holds of nursery \"leavers\"") != NULL);
    janus_free(block);
    return 0;
}

static int64_t leave_behind(void *argument)
{
    janus_nursery      n;
    const janus_budget pool = janus_budget_of(1 << 20, POOL_BYTES, LEAVERS, 0, 0);
    const janus_budget share = janus_budget_of(1000, 2 * LEFT_BYTES, 0, 0, 0);
    (void)argument;
    atomic_store(&left_behind, 0);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool, .name = "leavers")),
             JANUS_OK);
    for (int i = 0; i < LEAVERS; i++) { /* one after another: each has the whole share */
        janus_task_id id;
        CHECK_EQ(
            janus_spawn_with(&n, leave_a_block, NULL, JANUS_SPAWN_OPTIONS(.budget = &share), &id),
            JANUS_OK);
        CHECK_EQ(janus_join(&n, id, NULL), JANUS_OK);
    }
    CHECK_EQ(atomic_load(&left_behind), POOL_BYTES / LEFT_BYTES);
    for (int i = 0; i < POOL_BYTES / LEFT_BYTES; i++) janus_discard(blocks[i]);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("tasks of a pool, one after another, leave no more behind than the pool's memory")
{
    rig_all(leave_behind, NULL, 5);
}

/* Kept failures. */

enum { NURSERIES = 80, EACH = 64, KEPT = 4096 };

static int64_t fail_in_each(void *argument)
{
    janus_nursery     *n = janus_alloc(NURSERIES * sizeof *n);
    size_t             kept = 0;
    const janus_budget share = janus_budget_of(10, 0, 0, 0, 0);
    (void)argument;
    for (int i = 0; i < NURSERIES; i++) {
        CHECK_EQ(janus_nursery_open(&n[i], JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)),
                 JANUS_OK);
        for (int j = 0; j < EACH; j++) {
            CHECK_EQ(janus_spawn_with(&n[i], minus_seven, NULL,
                                      JANUS_SPAWN_OPTIONS(.budget = &share), NULL),
                     JANUS_OK);
        }
        CHECK_EQ(janus_nursery_await_with(&n[i], NULL), JANUS_CHILD_FAILED);
        size_t here = janus_nursery_failures(&n[i], NULL, 0);
        if (i < KEPT / EACH) CHECK_EQ(here, EACH);
        kept += here;
    }
    CHECK_EQ(kept, KEPT);
    for (int i = NURSERIES; i-- > 0;) {
        CHECK_EQ(janus_nursery_end(&n[i], NULL), JANUS_CHILD_FAILED);
    }
    return 0;
}

static int64_t failures(void *argument)
{
    janus_nursery      n;
    const janus_budget pool = janus_budget_of(UINT64_C(1) << 30, 1 << 20, 1 << 20, 0, 0);
    const janus_budget share = janus_budget_of(1 << 20, 1 << 18, 1 << 16, 0, 0);
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    for (int i = 0; i < 2; i++) { /* the second time all places are free again */
        CHECK_EQ(
            janus_spawn_with(&n, fail_in_each, NULL, JANUS_SPAWN_OPTIONS(.budget = &share), NULL),
            JANUS_OK);
        CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("all nurseries of a pool together keep 4096 failures, and count the rest")
{
    const janus_budget most = janus_budget_of(UINT64_C(1) << 30, 1 << 20, 1 << 20, 0, 0);
    for (uint32_t workers = 1; workers <= 2; workers++) {
        CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .max_budget = &most),
                           failures, NULL, NULL),
                 JANUS_OK);
    }
}

/* Threads of their own. */

static janus_authority *root;

static atomic_int full; /* pools that have all their threads */

static int64_t stay(void *argument)
{
    (void)argument;
    while (atomic_load(&full) < 2) CHECK_EQ(janus_yield(), JANUS_OK);
    return 0;
}

static int64_t take_threads(void *argument)
{
    janus_nursery          n;
    const char            *name = argument;
    const janus_budget     pool = janus_budget_of(1 << 20, 1 << 20, 100, 0, 0);
    char                   text[400];
    const janus_cap_limits backends = {
        .executor = {.allowed_backends = JANUS_BACKEND_SET(JANUS_BACKEND_THREADED)}};
    CHECK_EQ(janus_nursery_open(
                 &n, JANUS_NURSERY_OPTIONS(.budget = &pool, .name = name,
                                           .spawn_cap = caps_spawn(root, 10),
                                           .budget_cap = caps_budget(root, JANUS_RIGHTS_ALL,
                                                                     1 << 20, 1 << 20),
                                           .executor_cap = caps_mint(root, JANUS_CAP_KIND_EXECUTOR,
                                                                     JANUS_RIGHTS_ALL, &backends),
                                           .backend = JANUS_BACKEND_SET(JANUS_BACKEND_THREADED))),
             JANUS_OK);
    for (int i = 0; i < 4; i++) CHECK_EQ(janus_spawn(&n, stay, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, stay, NULL), JANUS_FULL);
    CHECK(janus_explain(text, sizeof text) < sizeof text);
    CHECK(strstr(text, "children with a thread of their own of nursery \"") != NULL);
    CHECK(strstr(text, name) != NULL);
    atomic_fetch_add(&full, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

static int64_t threads(void *argument)
{
    static char   first[] = "first", second[] = "second";
    janus_nursery n;
    (void)argument;
    atomic_store(&full, 0);
    root = caps_root();
    caps_open(&n, caps_spawn(root, 100));
    CHECK_EQ(janus_spawn(&n, take_threads, first), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, take_threads, second), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("each pool has as many threads of its own as the scheduler allows, and FULL names the pool")
{
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .max_threads = 4,
                                               .yield_interval = 512,
                                               .profile = JANUS_PROFILE_SOVEREIGN),
                       threads, NULL, NULL),
             JANUS_OK);
}
