/* SPDX-License-Identifier: MIT */
/* Cancelled children that obey, however they learned of it; and NULL arguments. */
#include "rig.h"

/* A child that waits until its nursery is cancelled, without a call that reports it. */

struct scope {
    janus_nursery n;
    janus_channel channel;
    atomic_int    waits;
};

/* It learns of it from a spawn. */
static int64_t learn_by_spawn(void *argument)
{
    struct scope *scope = argument;
    atomic_fetch_add(&scope->waits, 1);
    janus_shield_begin();
    while (janus_spawn(&scope->n, nothing, NULL) != JANUS_CLOSED) JANUS_IGNORE(janus_yield());
    janus_shield_end();
    return JANUS_CANCELLED;
}

/* It learns of it from a channel that is closed meanwhile. */
static int64_t learn_by_channel(void *argument)
{
    struct scope *scope = argument;
    int           value;
    atomic_fetch_add(&scope->waits, 1);
    janus_shield_begin();
    CHECK_EQ(janus_channel_recv(scope->channel, &value), JANUS_CLOSED);
    janus_shield_end();
    return JANUS_CANCELLED;
}

static int64_t cancel_scope(void *argument)
{
    janus_entry *const ways[] = {learn_by_spawn, learn_by_channel};
    (void)argument;
    for (int i = 0; i < 2; i++) {
        struct scope         scope = {.waits = 0};
        janus_nursery_result result;
        CHECK_EQ(janus_channel_create(sizeof(int), 0, NULL, &scope.channel), JANUS_OK);
        CHECK_EQ(janus_nursery_open(&scope.n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&scope.n, ways[i], &scope), JANUS_OK);
        janus_shield_begin();
        while (!atomic_load(&scope.waits)) JANUS_IGNORE(janus_yield());
        CHECK_EQ(janus_nursery_cancel(&scope.n), JANUS_OK);
        CHECK_EQ(janus_channel_close(scope.channel), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&scope.n, &result), JANUS_CANCELLED);
        janus_shield_end();
        CHECK_EQ(result.kind, JANUS_RESULT_KIND_CANCELLED);
        CHECK_EQ(result.errors, 0);
        CHECK_EQ(janus_channel_destroy(scope.channel), JANUS_OK);
    }
    return 0;
}

TEST("a child of a cancelled scope that returns CANCELLED has obeyed, however it learned of it")
{
    rig_all(cancel_scope, NULL, 3);
}

/* Tokens. */

static int64_t ask_token(void *argument) { return janus_token_check(argument); }

static int64_t minus_one(void *argument)
{
    (void)argument;
    return JANUS_CANCELLED;
}

static int64_t obey_token(void *argument)
{
    janus_token         *token = NULL;
    janus_nursery        n;
    janus_nursery_result result;
    janus_task_id        told, other;
    atomic_int           ran = 0;
    int64_t              number = 0;
    (void)argument;
    CHECK_EQ(janus_token_create(&token), JANUS_OK);
    CHECK_EQ(janus_token_cancel(token, JANUS_CANCEL_REASON_EXPLICIT), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, ask_token, token, NULL, &told), JANUS_OK);
    CHECK_EQ(janus_join(&n, told, &number), JANUS_CHILD_CANCELLED);
    CHECK_EQ(number, JANUS_CANCELLED);
    /* No other child ended. */
    CHECK_EQ(janus_spawn_with(&n, count_me, &ran, NULL, &other), JANUS_OK);
    CHECK_EQ(janus_join(&n, other, &number), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_OK);
    CHECK_EQ(result.kind, JANUS_RESULT_KIND_SUCCESS);
    CHECK_EQ(ran, 1);
    janus_token_release(token);
    return 0;
}

TEST("a child that returns a cancelled token's status has obeyed, and its siblings go on")
{
    rig_all(obey_token, NULL, 3);
}

static int64_t fail_with_that_number(void *argument)
{
    janus_nursery        n;
    janus_nursery_result result;
    janus_task_id        id;
    int64_t              number = 0;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, minus_one, NULL, NULL, &id), JANUS_OK);
    CHECK_EQ(janus_join(&n, id, &number), JANUS_CHILD_FAILED);
    CHECK_EQ(number, -1);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    return 0;
}

TEST("a child that returns -1 when nothing is cancelled has failed")
{
    rig_all(fail_with_that_number, NULL, 3);
}

/* Joining and awaiting cancelled children. */

static int64_t sleep_long(void *argument, void *value)
{
    (void)value;
    atomic_fetch_add((atomic_int *)argument, 1);
    return janus_sleep(3600 * 1000 * rig_ms);
}

static int64_t await_cancelled(void *argument)
{
    janus_nursery n;
    janus_async   call;
    atomic_int    waits = 0;
    int64_t       number = 0;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_async_start(&n, &call, sleep_long, &waits, NULL), JANUS_OK);
    janus_shield_begin();
    while (!atomic_load(&waits)) JANUS_IGNORE(janus_yield());
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_await(&call, &number), JANUS_CHILD_CANCELLED);
    janus_shield_end();
    CHECK_EQ(number, JANUS_CANCELLED);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("an await distinguishes a cancelled child, a failed child and its own cancellation")
{
    rig_all(await_cancelled, NULL, 3);
}

/* NULL pointers. */

static int64_t pass_null(void *argument)
{
    janus_nursery n;
    janus_budget  some = janus_budget_of(1, 1, 1, 1, 1);
    int64_t       number;
    (void)argument;
    CHECK_EQ(janus_nursery_open(NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_spawn(NULL, nothing, NULL), JANUS_INVALID);
    CHECK_EQ(janus_spawn_with(NULL, nothing, NULL, NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_nursery_close(NULL), JANUS_INVALID);
    CHECK_EQ(janus_nursery_cancel(NULL), JANUS_INVALID);
    CHECK_EQ(janus_nursery_await_with(NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_nursery_end(NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_join(NULL, 1, &number), JANUS_INVALID);
    CHECK_EQ(janus_nursery_recharge(NULL, 1, some), JANUS_INVALID);
    CHECK_EQ(janus_nursery_cancel_exhausted(NULL, 1), JANUS_INVALID);
    CHECK_EQ(janus_nursery_wait_exhausted(NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_nursery_pool_inspect(NULL, NULL), JANUS_INVALID);
    CHECK(!janus_nursery_try_await(NULL, NULL));
    CHECK_EQ(janus_nursery_failures(NULL, NULL, 0), 0);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_spawn_with(&n, NULL, NULL, NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_mutex_lock(NULL), JANUS_INVALID);
    CHECK_EQ(janus_mutex_try_lock(NULL), JANUS_INVALID);
    CHECK_EQ(janus_mutex_unlock(NULL), JANUS_INVALID);
    CHECK_EQ(janus_mutex_repaired(NULL), JANUS_INVALID);
    CHECK_EQ(janus_semaphore_acquire(NULL), JANUS_INVALID);
    CHECK_EQ(janus_semaphore_try_acquire(NULL), JANUS_INVALID);
    CHECK_EQ(janus_semaphore_release(NULL, 1), JANUS_INVALID);
    CHECK_EQ(janus_condition_wait(NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_event_wait(NULL), JANUS_INVALID);
    CHECK_EQ(janus_group_add(NULL, 1), JANUS_INVALID);
    CHECK_EQ(janus_group_done(NULL), JANUS_INVALID);
    CHECK_EQ(janus_group_wait(NULL), JANUS_INVALID);
    CHECK_EQ(janus_broadcast_wait(NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_once_call(NULL, nothing, NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_await(NULL, NULL), JANUS_INVALID);
    return 0;
}

TEST("calls on nurseries, tasks and locks refuse NULL with INVALID")
{
    rig_all(pass_null, NULL, 2);
}

/* Prices. */

static int64_t pay_any_price(void *argument)
{
    (void)argument;
    int64_t status = janus_check_slow(*(uint64_t *)argument);
    CHECK(status == JANUS_OK || status == JANUS_BUDGET_EXHAUSTED || status == JANUS_CANCELLED);
    return 0;
}

static int64_t pay_much(void *argument)
{
    uint64_t     prices[] = {INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX};
    janus_budget pool = janus_budget_of(100000, 0, 1, 0, 0);
    (void)argument;
    for (int i = 0; i < 3; i++) {
        janus_nursery n;
        CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, pay_any_price, &prices[i]), JANUS_OK);
        JANUS_IGNORE(janus_nursery_end(&n, NULL));
    }
    return 0;
}

TEST("a check of any price, even beyond INT64_MAX, ends without overflow")
{
    rig_all(pay_much, NULL, 2);
}

/* Children that were reported exhausted. */

static int64_t use_up(void *argument)
{
    (void)argument;
    for (;;) {
        if (janus_check() != JANUS_OK) return JANUS_CANCELLED;
    }
}

static int64_t look_at_exhausted(void *argument)
{
    janus_budget    pool = janus_budget_of(20000, 0, 1, 0, 0);
    janus_nursery   n;
    janus_exhausted child;
    (void)argument;
    for (uint64_t i = 0; i < rig_few(50); i++) {
        janus_task_info info = JANUS_TASK_INFO();
        CHECK_EQ(
            janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool,
                                                         .exhaustion = JANUS_EXHAUSTION_SUPERVISE)),
            JANUS_OK);
        CHECK_EQ(janus_spawn(&n, use_up, NULL), JANUS_OK);
        while (!janus_nursery_poll_exhausted(&n, &child)) CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK_EQ(janus_task_inspect(&n, child.task, &info), JANUS_OK);
        CHECK_EQ(info.state, JANUS_TASK_STATE_BUDGET_EXHAUSTED);
        CHECK_EQ(janus_nursery_cancel_exhausted(&n, child.task), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    }
    return 0;
}

TEST("an inspection shows a child as exhausted as soon as it was reported")
{
    rig_all(look_at_exhausted, NULL, 2);
}
