/* SPDX-License-Identifier: MIT */
/* Loops that ignore CANCELLED, and units from nothing: both end, and neighbours go on. */
#include "rig.h"

/* Cancelled tasks that go on. */

struct deaf {
    const char     *name;
    int             kind;
    atomic_int      begun, cleaned;
    janus_channel   channel;
    janus_mutex     mutex;
    janus_event     event;
    janus_semaphore semaphore;
    janus_waitpoint point;
};

enum deaf_kind {
    YIELD,
    SLEEP,
    CHECK_IT,
    CHARGE,
    SEND,
    RECEIVE,
    SELECT,
    LOCK,
    EVENT,
    SEMAPHORE,
    POINT,
    BLOCKING,
    KINDS,
};

static janus_status call_again(struct deaf *deaf)
{
    uint64_t          value = 0;
    janus_select_case chosen = {.channel = deaf->channel, .value = &value};
    switch (deaf->kind) {
    case SLEEP: return janus_sleep(3600 * 1000 * rig_ms);
    case CHECK_IT: return janus_check();
    case CHARGE: return janus_charge(janus_price_send());
    case SEND: return janus_channel_send(deaf->channel, &value);
    case RECEIVE: return janus_channel_recv(deaf->channel, &value);
    case SELECT: return janus_select(&chosen, 1, NULL);
    case LOCK: return janus_mutex_lock(&deaf->mutex);
    case EVENT: return janus_event_wait(&deaf->event);
    case SEMAPHORE: return janus_semaphore_acquire(&deaf->semaphore);
    case POINT: return janus_waitpoint_wait(&deaf->point, "nothing");
    case BLOCKING: return janus_blocking(nothing, NULL, NULL);
    default: return janus_yield();
    }
}

static void say_cleaned(void *argument) { atomic_store((atomic_int *)argument, 1); }

static int64_t go_on(void *argument)
{
    struct deaf *deaf = argument;
    CHECK_EQ(janus_defer(say_cleaned, &deaf->cleaned), JANUS_OK);
    atomic_store(&deaf->begun, 1);
    for (;;) (void)call_again(deaf);
}

static void go_on_in_defer(void *argument)
{
    for (;;) (void)call_again(argument);
}

static int64_t go_on_afterwards(void *argument)
{
    struct deaf *deaf = argument;
    CHECK_EQ(janus_defer(say_cleaned, &deaf->cleaned), JANUS_OK);
    CHECK_EQ(janus_defer(go_on_in_defer, deaf), JANUS_OK);
    atomic_store(&deaf->begun, 1);
    return yield_for_ever(NULL);
}

static int64_t go_on_shielded(void *argument)
{
    janus_shield_begin();
    return go_on(argument);
}

struct deaf_run {
    janus_entry *entry;
    int          kind;
};

static int64_t cancel_deaf(void *argument)
{
    const struct deaf_run *run = argument;
    struct deaf            deaf = {.kind = run->kind};
    janus_nursery          n;
    CHECK_EQ(janus_channel_create(8, 0, NULL, &deaf.channel), JANUS_OK);
    janus_mutex_init(&deaf.mutex, NULL);
    janus_event_init(&deaf.event, JANUS_WAKER_TASKS, NULL);
    janus_semaphore_init(&deaf.semaphore, 0, JANUS_WAKER_TASKS, NULL);
    janus_waitpoint_init(&deaf.point, JANUS_WAKER_TASKS);
    CHECK_EQ(janus_mutex_lock(&deaf.mutex), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, run->entry, &deaf), JANUS_OK);
    CHECK(rig_wait(&deaf.begun));
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    janus_status ended = janus_nursery_end(&n, NULL);
    CHECK(ended == JANUS_CANCELLED || ended == JANUS_CHILD_FAILED);
    CHECK_EQ(atomic_load(&deaf.cleaned), 1);
    CHECK_EQ(janus_mutex_unlock(&deaf.mutex), JANUS_OK);
    CHECK_EQ(janus_channel_destroy(deaf.channel), JANUS_OK);
    return 0;
}

static void cancel_all(janus_entry *entry, uint64_t grace_ns)
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        janus_scheduler *scheduler =
            rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .grace_ns = grace_ns));
        for (int kind = 0; kind < KINDS; kind++) {
            struct deaf_run run = {entry, kind};
            rig_do(scheduler, cancel_deaf, &run);
        }
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

TEST("a loop of any call that ignores CANCELLED ends, its defers run, and its nursery ends")
{
    cancel_all(go_on, 0);
}

TEST("with grace_ns a defer that ignores CANCELLED ends, and the next one runs")
{
    cancel_all(go_on_afterwards, rig_ms);
}

/* In a shield a wait that began before the cancel goes on: only calls that return count. */
TEST("with grace_ns a shield of a task that yields for ever ends")
{
    janus_scheduler *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .grace_ns = rig_ms));
    struct deaf_run run = {go_on_shielded, YIELD};
    rig_do(scheduler, cancel_deaf, &run);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* A loop inside of nurseries. Those must be awaited when the task is broken off. */
static int64_t go_on_in_nurseries(void *argument)
{
    struct deaf  *deaf = argument;
    janus_nursery outer, inner;
    CHECK_EQ(janus_nursery_open(&outer, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&outer, yield_for_ever, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&inner, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&inner, yield_for_ever, NULL), JANUS_OK);
    return go_on(deaf);
}

TEST("with grace_ns a loop inside of open nurseries ends, and its children do")
{
    cancel_all(go_on_in_nurseries, 1);
}

static atomic_int deferred;

static void defer_again(void *argument)
{
    (void)argument;
    janus_status status = janus_defer(defer_again, NULL);
    CHECK(status == JANUS_OK || status == JANUS_FULL);
    atomic_fetch_add(&deferred, 1);
}

static int64_t defer_for_ever(void *argument)
{
    (void)argument;
    return janus_defer(defer_again, NULL);
}

TEST("a defer that defers itself runs at most 4096 times")
{
    atomic_store(&deferred, 0);
    rig_run(1, defer_for_ever, NULL, 1);
    CHECK(atomic_load(&deferred) <= 4097);
}

/* Energy. */

static atomic_int calls;

static janus_verdict grant_nothing(void *argument, const janus_exhausted *child,
                                   janus_budget *grant)
{
    (void)argument, (void)child, (void)grant;
    atomic_fetch_add(&calls, 1);
    return JANUS_VERDICT_RECHARGE;
}

static int64_t spend_all(void *argument)
{
    (void)argument;
    while (janus_check() == JANUS_OK) continue;
    return JANUS_CANCELLED;
}

static int64_t recharge_with_zero(void *argument)
{
    janus_budget  pool = JANUS_BUDGET(.ops = 200, .spawn_count = 1);
    janus_budget  share = JANUS_BUDGET(.ops = 50);
    janus_nursery n;
    (void)argument;
    atomic_store(&calls, 0);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool,
                                                          .exhaustion = JANUS_EXHAUSTION_SUPERVISE,
                                                          .on_exhausted = grant_nothing)),
             JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, spend_all, NULL, JANUS_SPAWN_OPTIONS(.budget = &share), NULL),
             JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    CHECK_EQ(atomic_load(&calls), 1);
    return 0;
}

TEST("a callback that recharges with nothing is asked once, and its child ends")
{
    rig_all(recharge_with_zero, NULL, 3);
}

static int64_t defers_run;

static void count_checks(void *argument)
{
    (void)argument;
    for (;;) {
        janus_check_or_end(1);
        defers_run++;
    }
}

static int64_t spend_in_defer(void *argument)
{
    CHECK_EQ(janus_defer(count_checks, argument), JANUS_OK);
    CHECK_EQ(janus_defer(count_checks, argument), JANUS_OK);
    return spend_all(NULL);
}

static int64_t multiply(void *argument)
{
    janus_budget  pool = JANUS_BUDGET(.ops = 200, .spawn_count = 1);
    janus_budget  share = JANUS_BUDGET(.ops = 100);
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(
        janus_spawn_with(&n, spend_in_defer, argument, JANUS_SPAWN_OPTIONS(.budget = &share), NULL),
        JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    return 0;
}

TEST("a task's cleanup allowance is no more than it was granted, once in its life")
{
    defers_run = 0;
    rig_run(1, multiply, NULL, 1);
    CHECK(defers_run <= 200);
}

static int64_t charge_the_most(void *argument)
{
    janus_budget price = janus_budget_zero();
    switch (*(int *)argument) {
    case 0: price.ops = UINT64_MAX; break;
    case 1: price.channel_ops = UINT64_MAX; break;
    case 2: price.syscalls = UINT64_MAX; break;
    case 3: price.memory = UINT64_MAX; break;
    case 4: return janus_check_slow(INT64_MAX);
    default: return janus_check_slow(UINT64_MAX);
    }
    return janus_charge(price);
}

static int64_t charge_beside(void *argument)
{
    for (int i = 0; i < 6; i++) {
        janus_nursery        n;
        janus_nursery_result result;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, charge_the_most, &i), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
        CHECK_EQ(result.error, JANUS_BUDGET_EXHAUSTED);
    }
    (void)argument;
    return 0;
}

TEST("a price that no budget has ends the task that must pay it")
{
    rig_all(charge_beside, NULL, 2);
}

static int64_t make_fuel(void *argument)
{
    (void)argument;
    for (int i = 0; i < 100; i++) (void)janus_fuel_take((uint32_t)-1);
    janus_fuel = INT64_MAX / 2;
    JANUS_IGNORE(janus_charge(janus_price_send()));
    return 0;
}

static int64_t tamper(void *argument)
{
    janus_nursery        n;
    janus_nursery_result result;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, make_fuel, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.panic.kind, JANUS_PANIC_KIND_EXPLICIT);
    return 0;
}

TEST("a task that writes more into the fuel word than it was given panics")
{
    rig_all(tamper, NULL, 2);
}
