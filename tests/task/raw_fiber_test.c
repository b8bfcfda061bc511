/* SPDX-License-Identifier: MIT */
/* Raw fibers that a task resumes, and that call the scheduler from inside. */
#include "rig.h"

#include <string.h>
#include <unistd.h>

static janus_fiber_pool *pool;

static janus_fiber *make_fiber(janus_entry *entry, void *argument)
{
    janus_fiber *fiber = NULL;
    CHECK_EQ(janus_fiber_create(pool, entry, argument, NULL, &fiber), JANUS_OK);
    return fiber;
}

/* Runs a first task with a pool for its fibers. */
static void with_pool(uint32_t workers, janus_entry *entry, int times)
{
    CHECK_EQ(janus_fiber_pool_create(NULL, &pool), JANUS_OK);
    rig_run(workers, entry, NULL, times);
    CHECK_EQ(janus_fiber_pool_destroy(pool), JANUS_OK);
}

/* A task that is queued again while another holds its worker, so that a thief must take it. */
struct move {
    atomic_int moved;
    int        home; /* where it was */
};

/* Elsewhere it would hold the wrong worker. */
static int64_t hold_until_moved(void *argument)
{
    struct move *move = argument;
    if (rig_place() != move->home) return 0;
    while (!atomic_load(&move->moved)) rig_spin();
    return 0;
}

static int64_t yield_until_moved(void *argument)
{
    struct move  *move = argument;
    janus_nursery n;
    move->home = rig_place();
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 1000 && rig_place() == move->home; i++) {
        CHECK_EQ(janus_spawn(&n, hold_until_moved, move), JANUS_OK);
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    CHECK(rig_place() != move->home);
    atomic_store(&move->moved, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 5;
}

static int64_t yield_in_fiber(void *argument)
{
    janus_fiber *self = janus_fiber_current();
    CHECK(self != NULL);
    int64_t result = yield_until_moved(argument);
    CHECK(janus_fiber_current() == self);
    CHECK_EQ(janus_fiber_suspend(argument, NULL), JANUS_OK);
    CHECK(janus_fiber_current() == self);
    return result;
}

static int64_t resume_fiber(void *argument)
{
    janus_outcome outcome;
    janus_fiber  *fiber = make_fiber(yield_in_fiber, argument);
    CHECK_EQ(janus_fiber_resume(fiber, NULL, &outcome), JANUS_OK);
    CHECK_EQ(outcome.state, JANUS_FIBER_STATE_SUSPENDED);
    CHECK(outcome.value == argument);
    CHECK(janus_fiber_current() == NULL);
    CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_fiber_resume(fiber, NULL, &outcome), JANUS_OK);
    CHECK_EQ(outcome.state, JANUS_FIBER_STATE_COMPLETED);
    CHECK_EQ(outcome.result, 5);
    CHECK(janus_fiber_current() == NULL);
    CHECK_EQ(janus_fiber_destroy(fiber), JANUS_OK);
    return 0;
}

static int64_t force_a_move(void *argument)
{
    struct move   move = {0};
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, resume_fiber, &move), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a fiber inside a task may yield to the scheduler and go on in another thread")
{
    with_pool(2, force_a_move, RIG_SLOW ? 20 : 200);
}

/* Many at once. */

static int64_t yield_and_suspend(void *argument)
{
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(janus_yield(), JANUS_OK);
        if (i % 3 == 0) CHECK_EQ(janus_fiber_suspend(argument, NULL), JANUS_OK);
        if (i % 5 == 0) CHECK_EQ(janus_sleep(1000), JANUS_OK);
    }
    return *(int64_t *)argument;
}

static int64_t resume_to_the_end(void *argument)
{
    int64_t       number = (int64_t)janus_task_current_id();
    janus_outcome outcome = {.state = JANUS_FIBER_STATE_SUSPENDED};
    janus_fiber  *fiber = make_fiber(yield_and_suspend, &number);
    while (outcome.state == JANUS_FIBER_STATE_SUSPENDED) {
        CHECK_EQ(janus_fiber_resume(fiber, NULL, &outcome), JANUS_OK);
        CHECK_EQ(janus_task_current_id(), number);
        if (outcome.state == JANUS_FIBER_STATE_SUSPENDED) CHECK(outcome.value == &number);
    }
    CHECK_EQ(outcome.state, JANUS_FIBER_STATE_COMPLETED);
    CHECK_EQ(outcome.result, number);
    CHECK_EQ(janus_fiber_destroy(fiber), JANUS_OK);
    atomic_fetch_add((atomic_int *)argument, 1);
    return 0;
}

static int64_t many_with_fibers(void *argument)
{
    atomic_int    count = 0;
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 20; i++) CHECK_EQ(janus_spawn(&n, resume_to_the_end, &count), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(count, 20);
    return 0;
}

TEST("fibers of several tasks on one worker each return to their own task")
{
    with_pool(1, many_with_fibers, RIG_SLOW ? 5 : 50);
}

TEST("fibers of several tasks on several workers each return to their own task")
{
    with_pool(4, many_with_fibers, RIG_SLOW ? 5 : 50);
}

/* Ends. */

__attribute__((noinline)) static int64_t dig(int64_t depth)
{
    static volatile bool bottomless = true;
    volatile char        room[400];
    room[0] = (char)depth;
    return (bottomless ? dig(depth + 1) : 0) + room[0];
}

static int64_t overflow_after_yield(void *argument)
{
    (void)argument;
    CHECK_EQ(janus_sleep(1000), JANUS_OK);
    return dig(0);
}

static int64_t panic_after_yield(void *argument)
{
    CHECK_EQ(janus_sleep(1000), JANUS_OK);
    janus_panic(argument);
}

static int64_t contain_ends(void *argument)
{
    janus_outcome outcome;
    (void)argument;
    janus_fiber *fiber = make_fiber(overflow_after_yield, NULL);
    CHECK_EQ(janus_fiber_resume(fiber, NULL, &outcome), JANUS_OK);
    CHECK_EQ(outcome.state, JANUS_FIBER_STATE_PANICKED);
    CHECK_EQ(outcome.panic.kind, JANUS_PANIC_KIND_STACK_OVERFLOW);
    CHECK_EQ(janus_fiber_destroy(fiber), JANUS_OK);
    fiber = make_fiber(panic_after_yield, "in the fiber");
    CHECK_EQ(janus_fiber_resume(fiber, NULL, &outcome), JANUS_OK);
    CHECK_EQ(outcome.state, JANUS_FIBER_STATE_PANICKED);
    CHECK_STR(outcome.panic.message, "in the fiber");
    CHECK_EQ(janus_fiber_destroy(fiber), JANUS_OK);
    return 0;
}

TEST("a fiber that waited in its task and then overflows or panics ends alone")
{
    with_pool(1, contain_ends, 5);
}

static int64_t yield_for_ever_in_fiber(void *argument)
{
    atomic_store((atomic_int *)argument, 1);
    while (argument != NULL) JANUS_IGNORE(janus_yield());
    return 0;
}

static void check_no_fiber(void *argument)
{
    (void)argument;
    CHECK(janus_fiber_current() == NULL);
    CHECK_EQ(janus_yield(), JANUS_OK);
}

static int64_t fiber_for_ever(void *argument)
{
    janus_fiber *fiber = ((void **)argument)[0];
    CHECK_EQ(janus_defer(check_no_fiber, NULL), JANUS_OK);
    return janus_fiber_resume(fiber, NULL, NULL);
}

static int64_t in_no_fiber(void *argument)
{
    (void)argument;
    CHECK(janus_fiber_current() == NULL);
    CHECK_EQ(janus_fiber_suspend(NULL, NULL), JANUS_STATE);
    return 0;
}

static int64_t unwind_from_fiber(void *argument)
{
    (void)argument;
    atomic_int    started = 0;
    janus_nursery n;
    janus_fiber  *fiber = make_fiber(yield_for_ever_in_fiber, &started);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    void *box[] = {fiber};
    CHECK_EQ(janus_spawn_with(&n, fiber_for_ever, box,
                              JANUS_SPAWN_OPTIONS(.cancel = JANUS_CANCEL_MODE_UNWIND), NULL),
             JANUS_OK);
    while (!atomic_load(&started)) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    janus_status ended;
    JANUS_NURSERY(m, ended) CHECK_EQ(janus_spawn(m, in_no_fiber, NULL), JANUS_OK);
    CHECK_EQ(ended, JANUS_OK);
    return in_no_fiber(NULL);
}

TEST("a task unwound from inside a fiber leaves its worker in no fiber")
{
    CHECK_EQ(janus_fiber_pool_create(NULL, &pool), JANUS_OK);
    rig_run(1, unwind_from_fiber, NULL, 1);
    /* The fiber stays in the middle of its call for ever: the pool cannot be destroyed. */
}
