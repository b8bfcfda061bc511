/* SPDX-License-Identifier: MIT */
/* Fibers as a user sees them. */
#include "world.h"

#include <stdio.h>

static int64_t answer(void *argument)
{
    (void)argument;
    return 42;
}

TEST("a fiber runs its entry with its argument, and its outcome has what the entry returned")
{
    janus_fiber_pool *pool = pool_new();
    janus_fiber      *fiber = fiber_new(pool, answer, NULL);
    janus_outcome     outcome = resume(fiber, NULL);
    CHECK_EQ(outcome.state, JANUS_FIBER_STATE_COMPLETED);
    CHECK_EQ(outcome.result, 42);
    CHECK_EQ(janus_fiber_state_of(fiber), JANUS_FIBER_STATE_COMPLETED);
    CHECK_EQ(janus_fiber_destroy(fiber), JANUS_OK);
    pool_close(pool);
}

static int64_t accumulate(void *argument)
{
    intptr_t sum = 0;
    void    *value = argument;
    while (value != NULL) {
        sum += (intptr_t)value;
        if (janus_fiber_suspend((void *)sum, &value) != JANUS_OK) return -1;
    }
    return sum;
}

TEST("values travel by resume and suspend")
{
    janus_fiber_pool *pool = pool_new();
    janus_fiber      *fiber = fiber_new(pool, accumulate, (void *)1);
    CHECK_EQ((intptr_t)resume(fiber, (void *)999).value, 1); /* a new fiber sees no value */
    CHECK_EQ((intptr_t)resume(fiber, (void *)2).value, 3);
    CHECK_EQ((intptr_t)resume(fiber, (void *)3).value, 6);
    janus_outcome last = resume(fiber, NULL);
    CHECK_EQ(last.state, JANUS_FIBER_STATE_COMPLETED);
    CHECK_EQ(last.result, 6);
    janus_fiber_destroy(fiber);
    pool_close(pool);
}

TEST("resuming a fiber that has ended or runs is refused, and nothing happens")
{
    janus_fiber_pool *pool = pool_new();
    janus_fiber      *fiber = fiber_new(pool, answer, NULL);
    (void)resume(fiber, NULL);
    janus_outcome outcome;
    memset(&outcome, 0x5a, sizeof outcome);
    janus_outcome untouched = outcome;
    CHECK_EQ(janus_fiber_resume(fiber, NULL, &outcome), JANUS_STATE);
    CHECK(memcmp(&outcome, &untouched, sizeof outcome) == 0);
    janus_fiber_destroy(fiber);
    pool_close(pool);
}

static int64_t meddle(void *argument)
{
    (void)argument;
    janus_fiber *self = janus_fiber_current();
    CHECK(self != NULL);
    CHECK_EQ(janus_fiber_state_of(self), JANUS_FIBER_STATE_RUNNING);
    CHECK_EQ(janus_fiber_resume(self, NULL, NULL), JANUS_STATE);
    CHECK_EQ(janus_fiber_destroy(self), JANUS_STATE);
    return 0;
}

TEST("a fiber can neither resume nor destroy itself")
{
    janus_fiber_pool *pool = pool_new();
    janus_fiber      *fiber = fiber_new(pool, meddle, NULL);
    CHECK_EQ(resume(fiber, NULL).state, JANUS_FIBER_STATE_COMPLETED);
    janus_fiber_destroy(fiber);
    pool_close(pool);
}

TEST("outside a fiber there is no current fiber, and suspend returns STATE")
{
    CHECK(janus_fiber_current() == NULL);
    CHECK_EQ(janus_fiber_suspend(NULL, NULL), JANUS_STATE);
}

TEST("an unstarted fiber has no stack and can be destroyed without running")
{
    janus_fiber_pool      *pool = pool_new();
    janus_fiber           *fiber = fiber_new(pool, answer, NULL);
    janus_fiber_stack_info info = JANUS_FIBER_STACK_INFO();
    CHECK_EQ(janus_fiber_stack_inspect(fiber, &info), JANUS_OK);
    CHECK(info.low == NULL);
    CHECK_EQ(info.guard, JANUS_GUARD_AUTO);
    CHECK_EQ(stats_of(pool).stacks_attached, 0);
    CHECK_EQ(stats_of(pool).reserved_bytes, 0);
    CHECK_EQ(janus_fiber_destroy(fiber), JANUS_OK);
    pool_close(pool);
}

TEST("a suspended fiber can be abandoned and its stack is used again")
{
    janus_fiber_pool *pool = pool_new();
    janus_fiber      *first = fiber_new(pool, accumulate, (void *)1);
    (void)resume(first, NULL);
    janus_fiber_stack_info before = JANUS_FIBER_STACK_INFO();
    janus_fiber_stack_info after = JANUS_FIBER_STACK_INFO();
    CHECK_EQ(janus_fiber_stack_inspect(first, &before), JANUS_OK);
    CHECK_EQ(janus_fiber_destroy(first), JANUS_OK);
    janus_fiber *second = fiber_new(pool, accumulate, (void *)1);
    (void)resume(second, NULL);
    CHECK_EQ(janus_fiber_stack_inspect(second, &after), JANUS_OK);
    CHECK(before.low == after.low);
    CHECK_EQ(janus_fiber_destroy(second), JANUS_OK);
    pool_close(pool);
}

TEST("a pool with live fibers refuses to be destroyed and stays whole")
{
    janus_fiber_pool *pool = pool_new();
    janus_fiber      *fiber = fiber_new(pool, answer, NULL);
    CHECK_EQ(janus_fiber_pool_destroy(pool), JANUS_STATE);
    CHECK_EQ(resume(fiber, NULL).result, 42);
    janus_fiber_destroy(fiber);
    pool_close(pool);
}

struct nest {
    janus_fiber_pool *pool;
    int               depth;
};

static int64_t nest(void *argument)
{
    struct nest *outer = argument;
    janus_fiber *self = janus_fiber_current();
    if (outer->depth == 0) return 0;
    struct nest   inner = {outer->pool, outer->depth - 1};
    janus_fiber  *fiber = fiber_new(inner.pool, nest, &inner);
    janus_outcome outcome;
    CHECK_EQ(janus_fiber_resume(fiber, NULL, &outcome), JANUS_OK);
    CHECK_EQ(outcome.state, JANUS_FIBER_STATE_COMPLETED);
    CHECK(janus_fiber_current() == self);
    CHECK_EQ(janus_fiber_destroy(fiber), JANUS_OK);
    return outcome.result + 1;
}

TEST("fibers that resume fibers nest a thousand deep and come back in order")
{
    janus_fiber_pool *pool = pool_new();
    struct nest       outer = {pool, 1000};
    janus_fiber      *fiber = fiber_new(pool, nest, &outer);
    CHECK_EQ(resume(fiber, NULL).result, 1000);
    janus_fiber_destroy(fiber);
    pool_close(pool);
}

static int64_t panic_now(void *argument)
{
    char text[32];
    snprintf(text, sizeof text, "bad %s", (const char *)argument);
    janus_panic(text); /* on a stack that is gone when the outcome is read */
}

TEST("a panic ends only the fiber, and the outcome has its message, name and id")
{
    janus_fiber_pool *pool = pool_new();
    janus_fiber      *fiber = NULL;
    CHECK_EQ(
        janus_fiber_create(pool, panic_now, "input", JANUS_FIBER_OPTIONS(.name = "parser"), &fiber),
        JANUS_OK);
    janus_outcome outcome = resume(fiber, NULL);
    CHECK_EQ(outcome.state, JANUS_FIBER_STATE_PANICKED);
    CHECK_EQ(outcome.panic.kind, JANUS_PANIC_KIND_EXPLICIT);
    CHECK_STR(outcome.panic.message, "bad input");
    CHECK_STR(outcome.panic.name, "parser");
    CHECK_EQ(outcome.panic.fiber_id, janus_fiber_id(fiber));
    char text[256];
    janus_panic_text(&outcome.panic, text, sizeof text);
    CHECK_STR(text, "fiber 1 \"parser\" panicked: bad input");
    CHECK_EQ(janus_fiber_resume(fiber, NULL, NULL), JANUS_STATE);
    janus_fiber_destroy(fiber);
    pool_close(pool);
}

static void panic_outside(void *argument) { janus_panic(argument); }

TEST("a panic outside a fiber prints why and aborts")
{
    int         status = 0;
    const char *text = harness_child(panic_outside, "nobody home", &status);
    CHECK(status != 0);
    CHECK(strstr(text, "panic outside a fiber: nobody home") != NULL);
}

TEST("bad options are refused and leave nothing behind")
{
    janus_fiber_pool *pool = NULL;
    janus_fiber      *fiber = NULL;
    CHECK_EQ(janus_fiber_pool_create(JANUS_FIBER_POOL_OPTIONS(.stack_bytes = 8191), &pool),
             JANUS_INVALID);
    CHECK_EQ(janus_fiber_pool_create(JANUS_FIBER_POOL_OPTIONS(.profile = (janus_profile)77), &pool),
             JANUS_INVALID);
    CHECK_EQ(janus_fiber_pool_create(JANUS_FIBER_POOL_OPTIONS(.guard = (janus_guard)9), &pool),
             JANUS_INVALID);
    CHECK_EQ(
        janus_fiber_pool_create(JANUS_FIBER_POOL_OPTIONS(.guard_bytes = (size_t)1 << 40), &pool),
        JANUS_INVALID);
    CHECK_EQ(janus_fiber_pool_create(&(janus_fiber_pool_options){0}, &pool),
             JANUS_INVALID); /* no size */
    CHECK_EQ(janus_fiber_pool_create(&(janus_fiber_pool_options){.struct_bytes = 4096}, &pool),
             JANUS_INVALID);
    CHECK_EQ(janus_fiber_pool_create(NULL, NULL), JANUS_INVALID);
    CHECK(pool == NULL);
    pool = pool_new();
    CHECK_EQ(janus_fiber_create(pool, NULL, NULL, NULL, &fiber), JANUS_INVALID);
    CHECK_EQ(janus_fiber_create(NULL, answer, NULL, NULL, &fiber), JANUS_INVALID);
    CHECK_EQ(janus_fiber_create(pool, answer, NULL, NULL, NULL), JANUS_INVALID);
    CHECK_EQ(
        janus_fiber_create(pool, answer, NULL, JANUS_FIBER_OPTIONS(.stack_bytes = 100), &fiber),
        JANUS_INVALID);
    CHECK_EQ(janus_fiber_create(pool, answer, NULL,
                                JANUS_FIBER_OPTIONS(.stack_bytes = (size_t)2 << 30), &fiber),
             JANUS_INVALID);
    CHECK(fiber == NULL);
    CHECK_EQ(janus_fiber_resume(NULL, NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_fiber_pool_inspect(pool, NULL), JANUS_INVALID);
    CHECK_EQ(stats_of(pool).fibers_created, 0);
    pool_close(pool);
}

TEST("a caller with an older, shorter struct gets the fields that it knows and no more")
{
    struct {
        size_t   struct_bytes, fibers_live;
        uint64_t fence;
    } old = {.struct_bytes = 2 * sizeof(size_t), .fence = 0x1111};
    janus_fiber_pool *pool = pool_new();
    janus_fiber      *fiber = fiber_new(pool, answer, NULL);
    CHECK_EQ(janus_fiber_pool_inspect(pool, (janus_fiber_pool_info *)(void *)&old), JANUS_OK);
    CHECK_EQ(old.fibers_live, 1);
    CHECK_EQ(old.fence, 0x1111);
    janus_fiber_destroy(fiber);
    pool_close(pool);
}

TEST("a full pool refuses one more fiber, and makes it after another was destroyed")
{
    janus_fiber_pool *pool = NULL;
    janus_fiber      *fibers[3], *extra = NULL;
    CHECK_EQ(janus_fiber_pool_create(JANUS_FIBER_POOL_OPTIONS(.max_fibers = 3), &pool), JANUS_OK);
    for (int i = 0; i < 3; i++) fibers[i] = fiber_new(pool, answer, NULL);
    CHECK_EQ(janus_fiber_create(pool, answer, NULL, NULL, &extra), JANUS_FULL);
    CHECK(extra == NULL);
    CHECK_EQ(stats_of(pool).fibers_live, 3);
    janus_fiber_destroy(fibers[0]);
    fibers[0] = fiber_new(pool, answer, NULL);
    for (int i = 0; i < 3; i++) janus_fiber_destroy(fibers[i]);
    pool_close(pool);
}

TEST("ids start at one and are never used again")
{
    janus_fiber_pool *pool = pool_new();
    for (uint64_t id = 1; id <= 3000; id++) {
        janus_fiber *fiber = fiber_new(pool, answer, NULL);
        CHECK_EQ(janus_fiber_id(fiber), id);
        if (id % 2 == 0) (void)resume(fiber, NULL);
        janus_fiber_destroy(fiber);
    }
    pool_close(pool);
}

TEST("statuses, states, rungs and profiles have names, and other numbers have a placeholder")
{
    CHECK_STR(janus_status_text(JANUS_NO_MEMORY), "the system refused memory");
    CHECK_STR(janus_status_name(JANUS_STATE), "JANUS_STATE");
    CHECK_STR(janus_status_text((janus_status)1234), "not a janus_status");
    CHECK_STR(janus_status_name((janus_status)1234), "JANUS_?");
    CHECK_STR(janus_fiber_state_name(JANUS_FIBER_STATE_SUSPENDED), "suspended");
    CHECK_STR(janus_fiber_state_name((janus_fiber_state)99), "?");
    CHECK_STR(janus_guard_name(JANUS_GUARD_MARKER), "marker");
    CHECK_STR(janus_guard_name((janus_guard)99), "?");
    CHECK(!janus_guard_available((janus_guard)99));
    CHECK_STR(janus_profile_name(JANUS_PROFILE_SOVEREIGN), ":sovereign");
    CHECK_STR(janus_profile_name((janus_profile)99), ":?");
    CHECK_EQ(janus_version(), JANUS_VERSION);
    CHECK(strstr(janus_build_text(), JANUS_VERSION_STRING) != NULL);
}
