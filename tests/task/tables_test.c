/* SPDX-License-Identifier: MIT */
/*
 * Tables that all tasks of a scheduler share, and that one nursery tries to use up. These are the
 * helper threads of blocking calls, the bank, the capability table, the audit log. Others still get
 * theirs.
 */
#include "caps.h"

#include <string.h>

/* Blocking calls. They wait for an event, which simulated helper threads can do, too. */

static janus_event release;
static atomic_int  inside; /* blocking calls that run */
static atomic_int  called; /* short calls of neighbours that have ended */

static int64_t wait_for_release(void *argument)
{
    (void)argument;
    atomic_fetch_add(&inside, 1);
    CHECK_EQ(janus_event_wait(&release), JANUS_OK);
    atomic_fetch_sub(&inside, 1);
    return 0;
}

static int64_t block(void *argument)
{
    (void)argument;
    CHECK_EQ(janus_blocking(wait_for_release, NULL, NULL), JANUS_OK);
    return 0;
}

static int64_t return_seven(void *argument)
{
    (void)argument;
    return 7;
}

static int64_t block_shortly(void *argument)
{
    int64_t result = 0;
    (void)argument;
    CHECK_EQ(janus_blocking(return_seven, NULL, &result), JANUS_OK);
    CHECK_EQ(result, 7);
    atomic_fetch_add(&called, 1);
    return 0;
}

static void await_inside(int count)
{
    while (atomic_load(&inside) < count) CHECK_EQ(janus_yield(), JANUS_OK);
}

static janus_nursery_options with_pool(void)
{
    static const janus_budget pool = {.ops = 1 << 24,
                                      .memory = 1 << 24,
                                      .spawn_count = 1 << 20,
                                      .channel_ops = 1 << 20,
                                      .syscalls = 1 << 20};
    return (janus_nursery_options){.struct_bytes = sizeof(janus_nursery_options), .budget = &pool};
}

static void spawn_blocked(janus_nursery *n, int count)
{
    const janus_budget share = janus_budget_of(1000, 0, 0, 0, 2);
    for (int i = 0; i < count; i++) {
        CHECK_EQ(janus_spawn_with(n, block, NULL, JANUS_SPAWN_OPTIONS(.budget = &share), NULL),
                 JANUS_OK);
    }
}

/* A child in a nursery with a pool of its own makes a short call. */
static int64_t call_in_pool(void *argument)
{
    janus_nursery         n;
    janus_nursery_options options = with_pool();
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, &options), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, block_shortly, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

/* Starts it in `beside` and waits until it has ended. */
static void call_beside_in(janus_nursery *beside, janus_entry *entry)
{
    atomic_store(&called, 0);
    CHECK_EQ(janus_spawn(beside, entry, NULL), JANUS_OK);
    CHECK(rig_wait(&called));
}

static int64_t call_beside(void *argument)
{
    janus_nursery         beside, n;
    janus_nursery_options options = with_pool();
    (void)argument;
    janus_event_init(&release, JANUS_WAKER_ANYBODY, "release");
    CHECK_EQ(janus_nursery_open(&beside, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, &options), JANUS_OK);
    spawn_blocked(&n, 40);
    await_inside(4); /* half of eight */
    for (int i = 0; i < 20; i++) {
        (void)block_shortly(NULL); /* the owner is not on its nursery's terms */
        call_beside_in(&beside, call_in_pool);
        CHECK_EQ(atomic_load(&inside), 4);
    }
    janus_event_set(&release);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&beside, NULL), JANUS_OK);
    CHECK_EQ(atomic_load(&inside), 0);
    return 0;
}

static void with_helpers(uint32_t workers, uint32_t threads, uint32_t queue, janus_entry *entry)
{
    CHECK_EQ(
        janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .max_blocking_threads = threads,
                                          .max_blocking_queue = queue),
                  entry, NULL, NULL),
        JANUS_OK);
}

TEST("blocking calls of one nursery that do not return leave helper threads to others")
{
    with_helpers(1, 8, 0, call_beside);
    with_helpers(2, 8, 0, call_beside);
    with_helpers(8, 8, 0, call_beside);
}

static int64_t call_beside_inside(void *argument)
{
    janus_nursery         host, n;
    janus_nursery_options options = with_pool();
    const janus_budget    part = janus_budget_of(50000, 4096, 45, 0, 90);
    (void)argument;
    janus_event_init(&release, JANUS_WAKER_ANYBODY, "release");
    CHECK_EQ(janus_nursery_open(&host, &options), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &part)), JANUS_OK);
    spawn_blocked(&n, 40);
    await_inside(3); /* of eight: 5 are free, 3 of the host's run, 2 are free to it */
    call_beside_in(&host, block_shortly);
    (void)block_shortly(NULL);
    CHECK_EQ(atomic_load(&inside), 3);
    janus_event_set(&release);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&host, NULL), JANUS_OK);
    return 0;
}

TEST("a nursery inside a nursery leaves helper threads to its siblings")
{
    with_helpers(1, 8, 0, call_beside_inside);
    with_helpers(2, 8, 0, call_beside_inside);
}

static atomic_int refused;

static int64_t block_or_full(void *argument)
{
    (void)argument;
    janus_status status = janus_blocking(wait_for_release, NULL, NULL);
    CHECK(status == JANUS_OK || status == JANUS_FULL);
    if (status == JANUS_OK) return 0;
    char text[400];
    CHECK(janus_explain(text, sizeof text) < sizeof text);
    CHECK(strstr(text, "blocking calls that wait of nursery \"greedy\"") != NULL);
    CHECK(strstr(text, "max_blocking_queue") != NULL);
    atomic_fetch_add(&refused, 1);
    return 0;
}

static int64_t queue_beside(void *argument)
{
    janus_nursery         n, own;
    janus_nursery_options options = with_pool();
    (void)argument;
    options.name = "greedy";
    atomic_store(&refused, 0);
    janus_event_init(&release, JANUS_WAKER_ANYBODY, "release");
    CHECK_EQ(janus_nursery_open(&own, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, &options), JANUS_OK);
    const janus_budget share = janus_budget_of(1000, 0, 0, 0, 2);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(
            janus_spawn_with(&n, block_or_full, NULL, JANUS_SPAWN_OPTIONS(.budget = &share), NULL),
            JANUS_OK);
    }
    await_inside(2);
    /* Two run, eight wait, and up to four more while helpers start. */
    while (atomic_load(&refused) < 6) CHECK_EQ(janus_yield(), JANUS_OK);
    for (int i = 0; i < 10; i++) CHECK_EQ(janus_spawn(&own, block, NULL), JANUS_OK);
    await_inside(4);
    janus_event_set(&release);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&own, NULL), JANUS_OK);
    CHECK(atomic_load(&refused) >= 6 && atomic_load(&refused) <= 10);
    return 0;
}

TEST("blocking calls of one nursery that wait fill its own queue only, and FULL names it")
{
    with_helpers(1, 4, 8, queue_beside);
    with_helpers(2, 4, 8, queue_beside);
}

enum { POOLS = 12 };

/* A pool of its own; three calls do not return. */
static int64_t keep_threads(void *argument)
{
    janus_nursery         n;
    janus_nursery_options options = with_pool();
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, &options), JANUS_OK);
    spawn_blocked(&n, 3);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

static int64_t pools_beside(void *argument)
{
    janus_nursery n;
    (void)argument;
    janus_event_init(&release, JANUS_WAKER_ANYBODY, "release");
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < POOLS; i++) {
        CHECK_EQ(janus_spawn(&n, keep_threads, NULL), JANUS_OK);
        await_inside(i + 1); /* of three threads: each further pool gets one more */
    }
    call_beside_in(&n, call_in_pool);
    (void)block_shortly(NULL); /* in no pool */
    CHECK(atomic_load(&inside) <= POOLS + 3);
    janus_event_set(&release);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(atomic_load(&inside), 0);
    return 0;
}

TEST("a nursery without a blocking call can begin one, although others keep all threads")
{
    with_helpers(1, 3, 0, pools_beside);
    with_helpers(2, 3, 0, pools_beside);
    with_helpers(8, 3, 0, pools_beside);
}
