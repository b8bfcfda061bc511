/* SPDX-License-Identifier: MIT */
/* The block form of a nursery: its status, and every way out of the block. */
#include "rig.h"

#include <string.h>

static int64_t fail_seven(void *argument)
{
    (void)argument;
    return -7;
}

static int64_t add_one(void *argument)
{
    atomic_fetch_add((atomic_int *)argument, 1);
    return 0;
}

static int64_t status_tells(void *argument)
{
    (void)argument;
    janus_status status = JANUS_STALE;
    JANUS_NURSERY(n, status) { CHECK_EQ(janus_spawn(n, fail_seven, NULL), JANUS_OK); }
    CHECK_EQ(status, JANUS_CHILD_FAILED);
    status = JANUS_STALE;
    JANUS_NURSERY(n, status) CHECK_EQ(janus_nursery_state_of(n), JANUS_NURSERY_STATE_OPEN);
    CHECK_EQ(status, JANUS_OK);
    JANUS_NURSERY(n, status) CHECK_EQ(janus_nursery_cancel(n), JANUS_OK);
    CHECK_EQ(status, JANUS_CANCELLED);
    return 0;
}

TEST("the status of a block says how its nursery ended") { rig_all(status_tells, NULL, 20); }

static int64_t skip_block(void *argument)
{
    (void)argument;
    janus_status status = JANUS_OK;
    bool         ran = false;
    JANUS_NURSERY(n, status, .policy = (janus_policy)99) ran = n != NULL;
    CHECK_EQ(status, JANUS_INVALID);
    CHECK(!ran);
    return 0;
}

TEST("a block whose nursery cannot be opened is skipped, and the status says why")
{
    janus_status status = JANUS_OK;
    bool         ran = false;
    rig_all(skip_block, NULL, 1);
    JANUS_NURSERY(n, status) ran = n != NULL; /* a plain thread has no current task */
    CHECK_EQ(status, JANUS_STATE);
    CHECK(!ran);
}

static int64_t with_options(void *argument)
{
    atomic_int   count = 0;
    janus_status status;
    (void)argument;
    JANUS_NURSERY(n, status, .max_children = 1, .policy = JANUS_POLICY_WAIT_ALL, .name = "one")
    {
        struct gate gate = {0};
        CHECK_EQ(janus_spawn(n, at_gate, &gate), JANUS_OK);
        CHECK_EQ(janus_spawn(n, add_one, &count), JANUS_FULL);
        atomic_store(&gate.open, 1);
        CHECK_EQ(janus_nursery_await_with(n, NULL), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_OK);
    CHECK_EQ(atomic_load(&count), 0);
    return 0;
}

static int64_t with_result(void *argument)
{
    janus_nursery_result result = {.kind = JANUS_RESULT_KIND_PENDING};
    janus_status         status;
    janus_nursery        n;
    (void)argument;
    JANUS_NURSERY(block, status, .result = &result, .name = "told")
    {
        CHECK_EQ(janus_spawn(block, fail_seven, NULL), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_CHILD_FAILED);
    CHECK_EQ(result.kind, JANUS_RESULT_KIND_CHILD_FAILED);
    CHECK_EQ(result.error, -7);
    CHECK_EQ(result.errors, 1);
    JANUS_NURSERY(block, status, .result = &result) CHECK(block != NULL);
    CHECK_EQ(status, JANUS_OK);
    CHECK_EQ(result.kind, JANUS_RESULT_KIND_SUCCESS);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.result = &result)), JANUS_INVALID);
    return 0;
}

TEST("the result of a block has the error of the child that failed first")
{
    rig_all(with_result, NULL, 20);
}

TEST("a block takes the options of a nursery") { rig_all(with_options, NULL, 20); }

static int64_t leave_early(void *argument)
{
    atomic_int  *count = argument;
    janus_status status = JANUS_STALE;
    for (int i = 0; i < 2; i++) {
        JANUS_NURSERY(n, status)
        {
            CHECK_EQ(janus_spawn(n, add_one, count), JANUS_OK);
            if (i == 0) break;
            continue;
        }
        CHECK_EQ(status, JANUS_OK);
        CHECK_EQ(atomic_load(count), i + 1);
    }
    return 0;
}

TEST("break and continue end the nursery of a block")
{
    atomic_int count = 0;
    rig_run(2, leave_early, &count, 1);
    CHECK_EQ(atomic_load(&count), 2);
}

static int64_t return_inside(janus_entry *child, atomic_int *count)
{
    janus_status status;
    JANUS_NURSERY(outer, status)
    {
        JANUS_NURSERY(inner, status)
        {
            CHECK_EQ(janus_spawn(outer, add_one, count), JANUS_OK);
            CHECK_EQ(janus_spawn(inner, child, count), JANUS_OK);
            if (child != NULL) return 5;
        }
    }
    return status;
}

static int64_t jump_out(atomic_int *count)
{
    janus_status status;
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn(n, add_one, count), JANUS_OK);
        goto out;
    }
    return status;
out:
    return 6;
}

static int64_t return_and_jump(void *argument)
{
    CHECK_EQ(return_inside(add_one, argument), 5);
    CHECK_EQ(atomic_load((atomic_int *)argument), 2);
    CHECK_EQ(jump_out(argument), 6);
    CHECK_EQ(atomic_load((atomic_int *)argument), 3);
    CHECK_EQ(janus_scheduler_spawn(add_one, argument), JANUS_NO_NURSERY);
    return 0;
}

TEST("return and goto out of a block wait for the children and end the nurseries")
{
    atomic_int count = 0;
    rig_run(2, return_and_jump, &count, 1);
    CHECK_EQ(atomic_load(&count), 3);
}

static int64_t return_over_failure(void *argument) { return return_inside(fail_seven, argument); }

static int64_t look_at_panic(void *argument)
{
    janus_nursery        n;
    janus_nursery_result result;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, return_over_failure, argument), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.panic.kind, JANUS_PANIC_KIND_EXPLICIT);
    CHECK(strstr(result.panic.message, "return or goto left the block") != NULL);
    return 0;
}

TEST("a return out of a block whose child failed is a panic, so that the failure is reported")
{
    atomic_int count = 0;
    rig_all(look_at_panic, &count, 1);
}
