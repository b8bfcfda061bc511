/* SPDX-License-Identifier: MIT */
/* Tasks that fail while they are cleaned up after failing. */
#include "town.h"

#include <string.h>

enum { REPEATS = TOWN_SLOW ? 5 : 50 };

__attribute__((noinline)) static int64_t dig(int64_t depth)
{
    static volatile bool bottomless = true;
    volatile char        room[400];
    room[0] = (char)depth;
    return (bottomless ? dig(depth + 1) : 0) + room[0];
}

enum how { RETURN, PANIC, OVERFLOW };

struct plan {
    enum how   task, defer;
    atomic_int ran;
};

static void count_defer(void *argument) { atomic_fetch_add((atomic_int *)argument, 1); }

static void fail_in_defer(void *argument)
{
    struct plan *plan = argument;
    atomic_fetch_add(&plan->ran, 1);
    if (plan->defer == PANIC) janus_panic("in the defer");
    if (plan->defer == OVERFLOW) (void)dig(0);
}

static int64_t fail_twice(void *argument)
{
    struct plan *plan = argument;
    CHECK_EQ(janus_defer(count_defer, &plan->ran), JANUS_OK);
    CHECK_EQ(janus_defer(fail_in_defer, plan), JANUS_OK);
    CHECK_EQ(janus_defer(count_defer, &plan->ran), JANUS_OK);
    if (plan->task == PANIC) janus_panic("in the task");
    if (plan->task == OVERFLOW) return dig(0);
    return 0;
}

static int64_t contain_both(void *argument)
{
    static const janus_panic_kind kinds[] = {JANUS_PANIC_NONE, JANUS_PANIC_EXPLICIT,
                                             JANUS_PANIC_STACK_OVERFLOW};
    const struct plan            *wanted = argument;
    struct plan                   plan = {.task = wanted->task, .defer = wanted->defer};
    janus_nursery                 n;
    janus_nursery_result          result;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, fail_twice, &plan), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(plan.ran, 3);
    /* The first failure is told: the task's, or the defer's if the task itself was well. */
    CHECK_EQ(result.panic.kind, kinds[plan.task != RETURN ? plan.task : plan.defer]);
    if (plan.task == PANIC) CHECK_STR(result.panic.message, "in the task");
    if (plan.task == RETURN && plan.defer == PANIC) CHECK_STR(result.panic.message, "in the defer");
    CHECK_EQ(result.errors, 1);
    return 0;
}

static void twice(enum how task, enum how defer)
{
    struct plan plan = {.task = task, .defer = defer};
    town_run(1, contain_both, &plan, REPEATS);
    town_run(2, contain_both, &plan, REPEATS);
}

TEST("a panic in a defer after a panic changes nothing") { twice(PANIC, PANIC); }

TEST("a stack overflow in a defer after a panic changes nothing")
{
    TOWN_OVERFLOWS();
    twice(PANIC, OVERFLOW);
}

TEST("a panic in a defer after a stack overflow changes nothing")
{
    TOWN_OVERFLOWS();
    twice(OVERFLOW, PANIC);
}

TEST("a stack overflow in a defer after another changes nothing")
{
    TOWN_OVERFLOWS();
    twice(OVERFLOW, OVERFLOW);
}

TEST("a panic in a defer of a task that was well is its failure") { twice(RETURN, PANIC); }

TEST("a stack overflow in a defer of a task that was well is its failure")
{
    TOWN_OVERFLOWS();
    twice(RETURN, OVERFLOW);
}

/* With nurseries open, in the middle of everything. */

static int64_t fail_with_children(void *argument)
{
    enum how      how = *(enum how *)argument;
    janus_nursery a, b;
    CHECK_EQ(janus_nursery_open(&a, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&b, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&a, sleep_an_hour, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&b, yield_for_ever, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&a, yield_for_ever, NULL), JANUS_OK);
    (void)janus_yield();
    if (how == PANIC) janus_panic("with children");
    return dig(0);
}

static int64_t contain_families(void *argument)
{
    janus_nursery        n;
    janus_nursery_result result;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_WAIT_ALL)), JANUS_OK);
    for (int i = 0; i < 5; i++) CHECK_EQ(janus_spawn(&n, fail_with_children, argument), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.errors, 5);
    return 0;
}

TEST("a task that panics with nurseries open takes their children with it")
{
    enum how how = PANIC;
    town_all(contain_families, &how, REPEATS);
}

TEST("a task that overflows with nurseries open takes their children with it")
{
    TOWN_OVERFLOWS();
    enum how how = OVERFLOW;
    town_all(contain_families, &how, REPEATS / 5);
}
