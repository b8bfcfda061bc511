/* SPDX-License-Identifier: MIT */
/* Turns: a task with expensive operations keeps its worker no longer than others, and repays what
 * it owes. */
#define RIG_TURN_NS JANUS_TURN_NS
#include "rig.h"

/* A task that yields all the time, and counts how often it ran. */
struct watcher {
    atomic_int  turns;
    atomic_bool over;
};

static int64_t watch(void *argument)
{
    struct watcher *watcher = argument;
    while (!atomic_load(&watcher->over)) {
        atomic_fetch_add(&watcher->turns, 1);
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    return 0;
}

/* Runs `entry` beside a watcher on one worker; returns how often the watcher ran. */
struct beside {
    janus_entry   *entry;
    struct watcher watcher;
    int            turns;
};

static int64_t run_beside(void *argument)
{
    struct beside *beside = argument;
    janus_nursery  outer, inner;
    CHECK_EQ(janus_nursery_open(&outer, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&outer, watch, &beside->watcher), JANUS_OK);
    while (atomic_load(&beside->watcher.turns) == 0) CHECK_EQ(janus_yield(), JANUS_OK);
    int before = atomic_load(&beside->watcher.turns);
    CHECK_EQ(janus_nursery_open(&inner, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&inner, beside->entry, &beside->watcher), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    beside->turns = atomic_load(&beside->watcher.turns) - before;
    atomic_store(&beside->watcher.over, true);
    CHECK_EQ(janus_nursery_end(&outer, NULL), JANUS_OK);
    return 0;
}

static int beside(janus_entry *entry, uint64_t max_tasks)
{
    struct beside    run = {.entry = entry};
    janus_budget     most = janus_budget_scale(janus_budget_cluster_default(), 1000000);
    janus_scheduler *scheduler = rig_open(
        JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .max_tasks = max_tasks, .max_budget = &most));
    rig_do(scheduler, run_beside, &run);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    return run.turns;
}

static int64_t asleep(void *argument)
{
    (void)argument;
    return janus_sleep(UINT64_MAX);
}

/* Until the watcher has run this often; a runtime that forgets it makes the test time out. */
static bool seen(const struct watcher *watcher, int turns)
{
    return atomic_load(&watcher->turns) >= turns;
}

enum { ENOUGH = 50 };

static int64_t refused_by_pool(void *argument)
{
    janus_budget  pool = JANUS_BUDGET(.spawn_count = 0);
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    while (!seen(argument, ENOUGH)) CHECK_EQ(janus_spawn(&n, asleep, NULL), JANUS_SPAWN_BUDGET);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a task whose pool refuses every spawn, at no cost to it, lets others run")
{
    CHECK(beside(refused_by_pool, 0) >= ENOUGH - 2);
}

static int64_t charging(void *argument)
{
    while (!seen(argument, ENOUGH)) CHECK_EQ(janus_charge(janus_price_send()), JANUS_OK);
    return 0;
}

static int64_t charging_from_pool(void *argument)
{
    janus_budget pool = {UINT64_C(1) << 40, 0, 1, UINT64_C(1) << 40, 0}, share = pool;
    share.ops -= 1;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, charging, argument, JANUS_SPAWN_OPTIONS(.budget = &share), NULL),
             JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a task with a large budget that only charges lets others run")
{
    CHECK(beside(charging_from_pool, 0) >= ENOUGH - 2);
}

/* Thirty thousand refusals are three slices, and at least half a millisecond. */
static int64_t refused_by_limit(void *argument)
{
    (void)argument;
    janus_nursery n;
    janus_status  status = JANUS_OK;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    while (status == JANUS_OK) status = janus_spawn(&n, asleep, NULL);
    for (int i = 0; i < 30000; i++) CHECK_EQ(janus_spawn(&n, asleep, NULL), JANUS_TASK_LIMIT);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("refused spawns end a turn by their time, long before a slice is used up")
{
    CHECK(beside(refused_by_limit, 20) >= 10);
}

static int64_t large_blocks(void *argument)
{
    (void)argument;
    for (int i = 0; i < 1000; i++) {
        char *block = janus_alloc(500000);
        CHECK(block != NULL);
        for (size_t at = 0; at < 500000; at += 4096) block[at] = 1;
        janus_free(block);
    }
    return 0;
}

TEST("large blocks end a turn by their time")
{
    RIG_REAL("touching memory takes no time");
    CHECK(beside(large_blocks, 0) >= 20);
}

/* Four slices of units that take a microsecond each. */
static int64_t long_units(void *argument)
{
    (void)argument;
    for (int i = 0; i < 4 * JANUS_SLICE; i++) {
        uint64_t until = janus_now_ns() + 1000;
        CHECK_EQ(janus_check(), JANUS_OK);
        while (janus_now_ns() < until) continue;
    }
    return 0;
}

TEST("after a slice that lasted long the next ones are shorter")
{
    /* Of forty milliseconds the first slice has ten, and nobody knows when it began. The second has
     * ten and is measured. Then turns are at most twice as long as they should be. */
    CHECK(beside(long_units, 0) >= 20000000 / (int)JANUS_TURN_NS / 4);
}

/* How long a turn lasts: an option. */

static int64_t calls_only(void *argument)
{
    uint64_t        end = janus_now_ns() + 20 * rig_ms;
    const int       before = atomic_load(&((struct watcher *)argument)->turns);
    janus_task_info info = JANUS_TASK_INFO();
    while (janus_now_ns() < end) CHECK_EQ(janus_task_inspect_current(&info), JANUS_OK);
    return atomic_load(&((struct watcher *)argument)->turns) == before ? 0 : 1;
}

static int64_t nobody_ran(void *argument)
{
    CHECK_EQ(calls_only(argument), 0);
    return 0;
}

static int64_t somebody_ran(void *argument)
{
    while (calls_only(argument) == 0) {
    } /* a library that forgets turns makes the test time out */
    return 0;
}

static void beside_turns(janus_entry *entry, uint64_t turn_ns)
{
    struct beside    run = {.entry = entry};
    janus_scheduler *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .turn_ns = turn_ns));
    rig_do(scheduler, run_beside, &run);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

TEST("a task that only calls the library yields after turn_ns, not before")
{
    RIG_REAL("the time of a turn is measured");
    beside_turns(nobody_ran, 3600 * JANUS_SECONDS);
    beside_turns(somebody_ran, 1000);
    beside_turns(somebody_ran, 0);
}

TEST("a turn of less than a microsecond, or of more than an hour, is refused")
{
    static const uint64_t wrong[] = {1, 999, 3600 * JANUS_SECONDS + 1, UINT64_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        janus_scheduler *scheduler = NULL;
        CHECK_EQ(
            janus_scheduler_create_with(JANUS_SCHEDULER_OPTIONS(.turn_ns = wrong[i]), &scheduler),
            JANUS_INVALID);
        CHECK(scheduler == NULL);
    }
}

/* Exactness. */

enum { SPENT = 30000 };

struct spender {
    uint64_t checks;
    bool     dear;
};

static int64_t spend(void *argument)
{
    struct spender *spender = argument;
    janus_budget    none = janus_budget_of(1, 0, 0, 0, 0);
    janus_nursery   n;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &none)), JANUS_OK);
    for (;;) {
        janus_budget before = janus_budget_get_current();
        if (spender->dear) CHECK_EQ(janus_spawn(&n, asleep, NULL), JANUS_SPAWN_BUDGET);
        janus_budget now = janus_budget_get_current();
        CHECK_EQ(now.ops, before.ops);
        JANUS_IGNORE(janus_check());
        spender->checks++;
        now = janus_budget_get_current();
        CHECK_EQ(now.ops, before.ops - 1);
    }
}

static int64_t spend_all(void *argument)
{
    /* One for the spawn, one for the pool inside. */
    janus_budget         pool = JANUS_BUDGET(.ops = SPENT + 2, .spawn_count = 1);
    janus_budget         share = JANUS_BUDGET(.ops = SPENT);
    janus_nursery_result result;
    janus_nursery        n;
    struct spender      *spender = argument;
    spender->checks = 0;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, spend, spender, JANUS_SPAWN_OPTIONS(.budget = &share), NULL),
             JANUS_OK);
    CHECK_EQ(janus_nursery_await_with(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.error, JANUS_BUDGET_EXHAUSTED);
    janus_nursery_pool_info books = JANUS_NURSERY_POOL_INFO();
    CHECK_EQ(janus_nursery_pool_inspect(&n, &books), JANUS_OK);
    CHECK_EQ(books.spent.ops, (uint64_t)SPENT + 1);
    CHECK_EQ(books.left.ops, 1);
    CHECK_EQ(books.shares.ops, 0);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    return 0;
}

TEST("turns that are cut short cost no op more or less")
{
    struct spender plain = {.dear = false}, dear = {.dear = true};
    rig_run(1, spend_all, &plain, 1);
    rig_run(1, spend_all, &dear, 1);
    CHECK_EQ(plain.checks, SPENT);
    CHECK_EQ(dear.checks, SPENT);
}

/* A cancelled task keeps its cleanup allowance. */

static int64_t tidy_up(void *argument)
{
    atomic_int *reached = argument;
    while (janus_check() == JANUS_OK) continue;
    for (int i = 0; i < 300; i++) {
        char *block = janus_alloc(200000);
        CHECK(block != NULL);
        for (size_t at = 0; at < 200000; at += 4096) block[at] = 1;
        janus_free(block);
    }
    atomic_store(reached, 1);
    return JANUS_CANCELLED;
}

static int64_t cancel_and_wait(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, tidy_up, argument), JANUS_OK);
    CHECK_EQ(janus_sleep(rig_ms), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("a cancelled task that cleans up with expensive operations reaches its end")
{
    atomic_int reached = 0;
    rig_run(1, cancel_and_wait, &reached, 1);
    CHECK_EQ(reached, 1);
}

/* Balance. */

enum { RUNNERS = 24 };

static int64_t run_through(void *argument)
{
    for (int i = 0; i < (RIG_SLOW ? 30 : 300) * 1000; i++) {
        CHECK_EQ(janus_check(), JANUS_OK);
    }
    return count_me(argument);
}

static int64_t many(void *argument)
{
    (void)argument;
    atomic_int   ended = 0;
    janus_status said;
    JANUS_NURSERY(n, said)
    {
        for (int i = 0; i < RUNNERS; i++) CHECK_EQ(janus_spawn(n, run_through, &ended), JANUS_OK);
    }
    CHECK_EQ(said, JANUS_OK);
    CHECK_EQ(ended, RUNNERS);
    return 0;
}

TEST("no task that is moved between busy workers is lost or run twice")
{
    for (uint32_t workers = 2; workers <= 8; workers *= 2) rig_run(workers, many, NULL, 5);
}

/* One task has a worker to itself, without a check, while eight others begin on the other worker.
 * Then it goes on as they do. Its worker always has a task, so it never looks for work. */
struct spinner {
    _Alignas(64) atomic_uint_fast64_t units;
    atomic_bool *over;
    struct gate *gate;
};

static int64_t spin(void *argument)
{
    struct spinner *spinner = argument;
    if (spinner->gate != NULL) CHECK_EQ(keep_worker(spinner->gate), 0);
    while (!atomic_load_explicit(spinner->over, memory_order_relaxed)) {
        CHECK_EQ(janus_check(), JANUS_OK);
        for (volatile int i = 0; i < 10; i++) continue;
        atomic_fetch_add_explicit(&spinner->units, 1, memory_order_relaxed);
    }
    return 0;
}

enum { SPINNERS = 9 };

static int64_t spin_all(void *argument)
{
    double        *ratio = argument;
    struct spinner spinners[SPINNERS] = {0};
    struct gate    gate = {0};
    atomic_bool    over = false;
    janus_nursery  n;
    uint64_t       before[SPINNERS], others = 0;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    spinners[0].gate = &gate;
    for (int i = 0; i < SPINNERS; i++) {
        spinners[i].over = &over;
        CHECK_EQ(janus_spawn(&n, spin, &spinners[i]), JANUS_OK);
        if (i == 0) CHECK(rig_wait(&gate.arrived));
    }
    CHECK_EQ(janus_sleep(5 * rig_ms), JANUS_OK);
    for (int i = 0; i < SPINNERS; i++) before[i] = atomic_load(&spinners[i].units);
    atomic_store(&gate.open, 1);
    CHECK_EQ(janus_sleep(60 * rig_ms), JANUS_OK);
    for (int i = 1; i < SPINNERS; i++) others += atomic_load(&spinners[i].units) - before[i];
    *ratio = (double)atomic_load(&spinners[0].units) * (SPINNERS - 1) / (double)(others + 1);
    atomic_store(&over, true);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a task does not stay alone on its worker while eight share the other")
{
    RIG_REAL("shares of real time are compared");
    double least = 1000, ratio = 0;
    for (int i = 0; i < 100 && least >= 4; i++) {
        rig_run(2, spin_all, &ratio, 1);
        if (ratio < least) least = ratio;
    }
    CHECK(least < 4); /* eight, if no task moves; a busy system may spoil most tries */
}
