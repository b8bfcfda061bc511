/* SPDX-License-Identifier: MIT */
/* Parallel calls under limits, budgets, cancellation, in shields, fibers and other backends. */
#include "backends.h"
#include "energy.h"

enum { ROUNDS = RIG_SLOW ? 5 : 50 };

static const uint64_t an_hour_ns = UINT64_C(3600000000000);

/* Counts indices, and those that another task than the given one reached. */
struct tally {
    janus_task_id caller;
    atomic_int    indices, elsewhere;
    void         *local;
};

static int64_t count(void *argument, uint64_t begin, uint64_t end)
{
    struct tally *tally = argument;
    atomic_fetch_add(&tally->indices, (int)(end - begin));
    if (janus_task_current_id() != tally->caller) atomic_fetch_add(&tally->elsewhere, 1);
    if (tally->local != NULL) CHECK_EQ(*janus_task_local(), tally->local);
    return 0;
}

static int64_t count_once(void *argument) { return count(argument, 0, 1); }

static void go(struct tally *tally)
{
    tally->caller = janus_task_current_id();
    for (int i = 0; i < 8; i++) {
        CHECK_EQ(janus_both(count_once, tally, count_once, tally), 0);
        CHECK_EQ(janus_for(janus_range_by(0, 30, 2), count, tally), 0);
    }
    CHECK_EQ(tally->indices, 8 * 32);
}

static int64_t alone(void *argument)
{
    struct tally tally = {0};
    (void)argument;
    go(&tally);
    CHECK_EQ(tally.elsewhere, 0);
    return 0;
}

TEST("if only one task may live, everything runs in the caller, and no refusal is counted")
{
    janus_scheduler *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 4, .max_tasks = 1));
    janus_worker_info stats = JANUS_WORKER_INFO();
    for (uint64_t i = 0; i < rig_few(ROUNDS); i++) rig_do(scheduler, alone, NULL);
    CHECK_EQ(janus_worker_inspect(scheduler, JANUS_ALL_WORKERS, &stats), JANUS_OK);
    CHECK_EQ(stats.refusals, 0);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

TEST("without stealing everything runs in the caller")
{
    janus_scheduler *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 4, .no_stealing = true));
    for (uint64_t i = 0; i < rig_few(ROUNDS); i++) rig_do(scheduler, alone, NULL);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

static int64_t in_shield(void *argument)
{
    janus_shield_begin();
    (void)alone(argument);
    janus_shield_end();
    return 0;
}

TEST("in a shield everything runs in the caller") { rig_all(in_shield, NULL, ROUNDS); }

static int64_t in_fiber(void *argument)
{
    janus_fiber_pool *pool = NULL;
    janus_fiber      *fiber = NULL;
    (void)argument;
    CHECK_EQ(janus_fiber_pool_create(NULL, &pool), JANUS_OK);
    CHECK_EQ(janus_fiber_create(pool, alone, NULL, NULL, &fiber), JANUS_OK);
    int ended = 0;
    while (janus_fiber_resume(fiber, NULL, NULL) == JANUS_OK) CHECK(++ended == 1);
    janus_fiber_destroy(fiber);
    CHECK_EQ(janus_fiber_pool_destroy(pool), JANUS_OK);
    return 0;
}

TEST("in a fiber of the task's own everything runs in the caller")
{
    rig_all(in_fiber, NULL, ROUNDS);
}

static int64_t in_backends(void *argument)
{
    (void)argument;
    for (int i = 0; i < BACKENDS; i++) {
        janus_nursery n;
        CHECK_EQ(janus_nursery_open(
                     &n, JANUS_NURSERY_OPTIONS(.spawn_cap = first_caps.spawn,
                                               .executor_cap = first_caps.executor,
                                               .backend = JANUS_BACKEND_SET(every_backend[i]))),
                 JANUS_OK);
        CHECK_EQ(janus_spawn(&n, alone, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    }
    return 0;
}

TEST("a child under a capability runs everything itself, under every backend")
{
    backend_run(1, in_backends, NULL);
    backend_run(4, in_backends, NULL);
}

static int64_t somewhere(void *argument)
{
    struct tally tally = {.local = argument};
    *janus_task_local() = argument;
    go(&tally);
    CHECK_EQ(*janus_task_local(), argument);
    return 0;
}

TEST("a piece sees the caller's local value")
{
    int value = 0;
    rig_all(somewhere, &value, ROUNDS);
}

/* Splitting. */

static int64_t arrive(void *argument)
{
    struct gate *gate = argument;
    atomic_fetch_add(&gate->arrived, 1);
    return 0;
}

/* Ends when the second branch has begun, which then runs elsewhere. */
static int64_t wait_for_arrival(void *argument)
{
    struct gate *gate = argument;
    CHECK(rig_wait(&gate->arrived));
    return 0;
}

static int64_t is_stolen(void *argument)
{
    struct gate gate = {0};
    (void)argument;
    CHECK_EQ(janus_both(wait_for_arrival, &gate, arrive, &gate), 0);
    return 0;
}

TEST("an idle worker takes the second branch while the first still runs")
{
    RIG_REAL("whether a branch is split off is for the seed to decide");
    rig_run(2, is_stolen, NULL, ROUNDS);
}

/* The nursery of a call. */

static int64_t end_own_call(void *argument)
{
    janus_task_info      me = JANUS_TASK_INFO();
    janus_nursery_result result;
    CHECK_EQ(janus_task_inspect_current(&me), JANUS_OK);
    if (me.owned == NULL) return 0; /* nothing was split off */
    CHECK_EQ(janus_nursery_destroy(me.owned), JANUS_STATE);
    CHECK_EQ(janus_nursery_end(me.owned, NULL), JANUS_STATE);
    CHECK_EQ(janus_nursery_end(me.owned, &result), JANUS_STATE);
    atomic_fetch_add((atomic_int *)argument, 1);
    return 0;
}

static int64_t call_that_is_ended(void *argument)
{
    CHECK_EQ(janus_both_with(end_own_call, argument, nothing, NULL, NULL), 0);
    return 0;
}

TEST("a task cannot end or free the nursery of its own parallel call")
{
    atomic_int refused = 0;
    rig_run(2, call_that_is_ended, &refused, ROUNDS);
    CHECK(refused > 0 || rig_simulated());
}

/* Cancelling. */

static atomic_int begun; /* the caller of the loop runs */

static int64_t body_waits(void *argument, uint64_t begin, uint64_t end)
{
    (void)argument, (void)begin, (void)end;
    return janus_sleep(an_hour_ns);
}

static int64_t loop_that_waits(void *argument)
{
    (void)argument;
    atomic_store(&begun, 1);
    int64_t status = janus_for(janus_range_by(0, 16, 1), body_waits, NULL);
    CHECK_EQ(status, JANUS_CANCELLED);
    return status;
}

static int64_t body_checks(void *argument, uint64_t begin, uint64_t end)
{
    (void)argument, (void)begin, (void)end;
    rig_spin();
    return 0;
}

static int64_t loop_that_runs(void *argument)
{
    (void)argument;
    atomic_store(&begun, 1);
    int64_t status = janus_for(janus_range_of(0, UINT64_MAX), body_checks, NULL);
    CHECK_EQ(status, JANUS_CANCELLED);
    return status;
}

/* The deadline is set when the caller runs: an earlier one could pass before the spawn. */
static void check_cancelled(janus_entry *entry)
{
    janus_nursery        n;
    janus_nursery_result result;
    atomic_store(&begun, 0);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, entry, NULL), JANUS_OK);
    CHECK(rig_wait(&begun));
    CHECK_EQ(janus_nursery_set_deadline(&n, janus_now_ns() + rig_ms), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CANCELLED);
    CHECK_EQ(result.kind, JANUS_RESULT_KIND_CANCELLED);
    CHECK_EQ(result.reason, JANUS_CANCEL_REASON_DEADLINE);
}

static int64_t cancelled(void *argument)
{
    (void)argument;
    check_cancelled(loop_that_waits);
    check_cancelled(loop_that_runs);
    return 0;
}

TEST("a cancel of the caller cancels all pieces, even of a loop that never waits")
{
    rig_all(cancelled, NULL, ROUNDS / 5);
}

/* Two branches. In the first, a nursery has a waiting child before the call is divided. */
struct branches {
    janus_event child_fails, second_ends;
    atomic_int  child_waits, second_waits;
};

static int64_t fail_later(void *argument)
{
    struct branches *b = argument;
    atomic_store(&b->child_waits, 1);
    CHECK_EQ(janus_event_wait(&b->child_fails), JANUS_OK);
    return -7;
}

static int64_t first_cancels_inside(void *argument)
{
    struct branches *b = argument;
    janus_nursery    n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, fail_later, b), JANUS_OK);
    CHECK(rig_wait(&b->child_waits));
    for (int i = 0; i < 8; i++) CHECK_EQ(janus_yield(), JANUS_OK); /* so that it has left */
    for (int i = 0; i < 500 && !atomic_load(&b->second_waits); i++) {
        CHECK_EQ(janus_both(nothing, NULL, nothing, NULL), 0); /* the call around is divided */
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    janus_event_set(&b->child_fails);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    janus_event_set(&b->second_ends);
    return 0;
}

static int64_t second_goes_on(void *argument)
{
    struct branches *b = argument;
    atomic_store(&b->second_waits, 1);
    CHECK_EQ(janus_event_wait(&b->second_ends), JANUS_OK);
    return 0;
}

static int64_t cancel_inside_first(void *argument)
{
    struct branches b = {0};
    (void)argument;
    janus_event_init(&b.child_fails, JANUS_WAKER_TASKS, "child fails");
    janus_event_init(&b.second_ends, JANUS_WAKER_TASKS, "second ends");
    CHECK_EQ(janus_both(first_cancels_inside, &b, second_goes_on, &b), 0);
    return 0;
}

TEST("a nursery that is cancelled inside the first branch does not affect the second")
{
    rig_all(cancel_inside_first, NULL, 2 * ROUNDS);
}

/* Budgets. */

static int64_t pays(void *argument)
{
    struct tally tally = {.caller = janus_task_current_id()};
    uint64_t     before = janus_budget_get_current().ops;
    (void)argument;
    CHECK_EQ(janus_for(janus_range_by(0, 1000, 10), count, &tally), 0);
    CHECK_EQ(before - janus_budget_get_current().ops, 1000);
    CHECK_EQ(janus_both(count_once, &tally, count_once, &tally), 0);
    CHECK_EQ(before - janus_budget_get_current().ops, 1001);
    CHECK_EQ(tally.elsewhere, 0);
    return janus_for(janus_range_by(0, 1000000, 10), count, argument);
}

static int64_t has_budget(void *argument)
{
    (void)argument;
    struct tally         tally = {0};
    janus_nursery        n;
    janus_nursery_result result;
    janus_budget         budget = JANUS_BUDGET(.ops = 5000, .memory = 1 << 16);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, pays, &tally, JANUS_SPAWN_OPTIONS(.budget = &budget), NULL),
             JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.error, JANUS_BUDGET_EXHAUSTED);
    CHECK(tally.indices <= 4000);
    return 0;
}

TEST("a task with an explicit budget pays for every index, and no piece gets new units")
{
    rig_all(has_budget, NULL, ROUNDS / 5);
}

static int64_t spends(void *argument)
{
    return janus_for(janus_range_by(0, 1000000, 10), count, argument);
}

static int64_t has_pool(void *argument)
{
    struct tally            tally = {0};
    janus_nursery           n;
    janus_nursery_result    result;
    janus_nursery_pool_info books = JANUS_NURSERY_POOL_INFO();
    janus_budget            pool = JANUS_BUDGET(.ops = 50000, .memory = 1 << 20, .spawn_count = 20);
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, spends, &tally), JANUS_OK);
    CHECK_EQ(janus_nursery_await_with(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.error, JANUS_BUDGET_EXHAUSTED);
    CHECK_EQ(janus_nursery_pool_inspect(&n, &books), JANUS_OK);
    CHECK_EQ(books.shares.ops, 0);
    CHECK_EQ(books.granted.ops, books.left.ops + books.spent.ops + books.refunded.ops);
    CHECK((uint64_t)tally.indices <= books.spent.ops);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    return 0;
}

TEST("in a pool all pieces together spend no more than the pool has")
{
    rig_all(has_pool, NULL, ROUNDS / 5);
}
