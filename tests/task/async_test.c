/* SPDX-License-Identifier: MIT */
/* Calls with a value: started, awaited, failed, cancelled. */
#include "rig.h"

#include <string.h>

enum { CALLS = 50 };

/* Values of any size, apart from the status. */

struct wide {
    int64_t words[16];
};

static int64_t fill_wide(void *argument, void *value)
{
    struct wide *wide = value;
    for (int i = 0; i < 16; i++) wide->words[i] = *(int *)argument - i;
    return *(int *)argument % 2;
}

static int64_t many_values(void *argument)
{
    (void)argument;
    janus_async  calls[CALLS];
    struct wide  values[CALLS];
    int          numbers[CALLS];
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < CALLS; i++) {
            numbers[i] = i;
            CHECK_EQ(janus_async_start(n, &calls[i], fill_wide, &numbers[i], &values[i]), JANUS_OK);
        }
        for (int i = CALLS - 1; i >= 0; i--) {
            int64_t status = -99;
            CHECK_EQ(janus_await(&calls[i], &status), JANUS_OK);
            CHECK_EQ(status, i % 2);
            for (int k = 0; k < 16; k++) CHECK_EQ(values[i].words[k], i - k);
            CHECK_EQ(janus_await(&calls[i], NULL), JANUS_STALE);
        }
    }
    CHECK_EQ(ended, JANUS_OK);
    return 0;
}

TEST("an awaited call has written its value, once") { rig_all(many_values, NULL, 10); }

/* A value may be negative, and is then no failure. */

static int64_t minus_five(void *argument)
{
    (void)argument;
    JANUS_IGNORE(janus_yield());
    return -5;
}

static int64_t negative_value(void *argument)
{
    (void)argument;
    janus_nursery        n;
    janus_nursery_result result;
    janus_async          call;
    int64_t              number = 0;
    CHECK_EQ(janus_async_start_number(NULL, &call, minus_five, NULL), JANUS_NO_NURSERY);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_async_start_number(NULL, &call, minus_five, NULL), JANUS_OK); /* of n */
    CHECK_EQ(janus_await(&call, &number), JANUS_OK);
    CHECK_EQ(number, -5);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_OK);
    CHECK_EQ(result.kind, JANUS_RESULT_KIND_SUCCESS);
    return 0;
}

TEST("awaiting a function that returns -5 gives -5, and its nursery succeeds")
{
    rig_all(negative_value, NULL, 10);
}

/* Failures. */

static int64_t fail_after_writing(void *argument, void *value)
{
    (void)argument;
    *(int *)value = 3;
    return -7;
}

static int64_t panic_number(void *argument)
{
    (void)argument;
    janus_panic("no number");
}

static int64_t failures(void *argument)
{
    (void)argument;
    janus_nursery n;
    janus_async   calls[2];
    int           value = 0;
    int64_t       number = 0;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
    CHECK_EQ(janus_async_start(&n, &calls[0], fail_after_writing, NULL, &value), JANUS_OK);
    CHECK_EQ(janus_async_start_number(&n, &calls[1], panic_number, NULL), JANUS_OK);
    CHECK_EQ(janus_await(&calls[0], &number), JANUS_CHILD_FAILED);
    CHECK_EQ(number, -7);
    CHECK_EQ(janus_await(&calls[1], &number), JANUS_CHILD_FAILED);
    CHECK_EQ(number, INT64_MIN);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    return 0;
}

TEST("an await reports a call that failed or panicked, and the nursery has failed")
{
    rig_all(failures, NULL, 10);
}

/* Refused: nothing was started, nothing was written. */

static int64_t of_another(void *argument)
{
    janus_nursery *theirs = argument;
    janus_async    call, same;
    memset(&call, 0x5a, sizeof call);
    same = call;
    CHECK_EQ(janus_async_start_number(theirs, &call, minus_five, NULL), JANUS_STATE);
    CHECK_EQ(memcmp(&call, &same, sizeof call), 0);
    return 0;
}

static int64_t refused(void *argument)
{
    (void)argument;
    janus_nursery n;
    janus_async   call, same;
    memset(&call, 0x5a, sizeof call);
    same = call;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_async_start(&n, &call, NULL, NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_async_start(&n, NULL, fail_after_writing, NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_async_start_number_with(&n, &call, minus_five, NULL,
                                           JANUS_SPAWN_OPTIONS(.unjoinable = true)),
             JANUS_INVALID);
    CHECK_EQ(janus_spawn(&n, of_another, &n), JANUS_OK);
    CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_async_start_number(&n, &call, minus_five, NULL), JANUS_CLOSED);
    CHECK_EQ(memcmp(&call, &same, sizeof call), 0);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_await(NULL, NULL), JANUS_INVALID);
    return 0;
}

TEST("a call that is refused changes nothing") { rig_all(refused, NULL, 10); }

/* Cancelled while it awaits. */

struct waiter {
    struct gate gate;
    atomic_int  awaiting;
};

static int64_t number_at_gate(void *argument)
{
    (void)at_gate(argument);
    return 12;
}

static int64_t await_cancelled(void *argument)
{
    struct waiter *waiter = argument;
    janus_nursery  n;
    janus_async    call;
    int64_t        number = 0;
    janus_shield_begin();
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK); /* so its child is not cancelled */
    janus_shield_end();
    CHECK_EQ(janus_async_start_number(&n, &call, number_at_gate, &waiter->gate), JANUS_OK);
    CHECK(janus_async_task(&call) != 0);
    atomic_store(&waiter->awaiting, 1);
    CHECK_EQ(janus_await(&call, &number), JANUS_CANCELLED);
    CHECK_EQ(number, 0);
    atomic_store(&waiter->gate.open, 1);
    janus_shield_begin();
    CHECK_EQ(janus_await(&call, &number), JANUS_OK); /* it can still be awaited */
    CHECK_EQ(number, 12);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    janus_shield_end();
    return JANUS_CANCELLED;
}

static int64_t cancel_awaiter(void *argument)
{
    (void)argument;
    struct waiter waiter = {.awaiting = 0};
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, await_cancelled, &waiter), JANUS_OK);
    CHECK(rig_wait(&waiter.awaiting));
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("after a cancelled await the call can be awaited later") { rig_all(cancel_awaiter, NULL, 10); }

/* From a plain thread. */

TEST("a plain thread awaits too")
{
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    janus_nursery    root;
    janus_async      call;
    int64_t          number = 0;
    CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
    CHECK_EQ(janus_async_start_number(NULL, &call, minus_five, NULL), JANUS_NO_NURSERY);
    CHECK_EQ(janus_async_start_number(&root, &call, minus_five, NULL), JANUS_OK);
    CHECK_EQ(janus_await(&call, &number), JANUS_OK);
    CHECK_EQ(number, -5);
    CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_OK);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}
