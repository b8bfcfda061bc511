/* SPDX-License-Identifier: MIT */
/* Tasks that fail during the cleanup after a failure. */
#include "rig.h"

#include <string.h>

enum { REPEATS = RIG_SLOW ? 5 : 50 };

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
    static const janus_panic_kind kinds[] = {JANUS_PANIC_KIND_NONE, JANUS_PANIC_KIND_EXPLICIT,
                                             JANUS_PANIC_KIND_STACK_OVERFLOW};
    const struct plan            *wanted = argument;
    struct plan                   plan = {.task = wanted->task, .defer = wanted->defer};
    janus_nursery                 n;
    janus_nursery_result          result;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, fail_twice, &plan), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(plan.ran, 3);
    /* The first failure counts: the task's, or the defer's if the task itself succeeded. */
    CHECK_EQ(result.panic.kind, kinds[plan.task != RETURN ? plan.task : plan.defer]);
    if (plan.task == PANIC) CHECK_STR(result.panic.message, "in the task");
    if (plan.task == RETURN && plan.defer == PANIC) CHECK_STR(result.panic.message, "in the defer");
    CHECK_EQ(result.errors, 1);
    return 0;
}

static void twice(enum how task, enum how defer)
{
    struct plan plan = {.task = task, .defer = defer};
    rig_run(1, contain_both, &plan, REPEATS);
    rig_run(2, contain_both, &plan, REPEATS);
}

TEST("a panic in a defer after a panic changes nothing") { twice(PANIC, PANIC); }

TEST("a stack overflow in a defer after a panic changes nothing")
{
    RIG_OVERFLOWS();
    twice(PANIC, OVERFLOW);
}

TEST("a panic in a defer after a stack overflow changes nothing")
{
    RIG_OVERFLOWS();
    twice(OVERFLOW, PANIC);
}

TEST("a stack overflow in a defer after another changes nothing")
{
    RIG_OVERFLOWS();
    twice(OVERFLOW, OVERFLOW);
}

TEST("a panic in a defer of a task that succeeded is the task's failure") { twice(RETURN, PANIC); }

TEST("a stack overflow in a defer of a task that succeeded is the task's failure")
{
    RIG_OVERFLOWS();
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
    JANUS_IGNORE(janus_yield());
    if (how == PANIC) janus_panic("with children");
    return dig(0);
}

static int64_t contain_families(void *argument)
{
    janus_nursery        n;
    janus_nursery_result result;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
    for (int i = 0; i < 5; i++) CHECK_EQ(janus_spawn(&n, fail_with_children, argument), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.errors, 5);
    return 0;
}

TEST("a task that panics cancels the children of its open nurseries")
{
    enum how how = PANIC;
    rig_all(contain_families, &how, REPEATS);
}

TEST("a task that overflows cancels the children of its open nurseries")
{
    RIG_OVERFLOWS();
    enum how how = OVERFLOW;
    rig_all(contain_families, &how, REPEATS / 5);
}

/* Each call of a fork and join close to the end of the stack. Either it is done or the task has
 * overflowed, and no child is lost between the two. */

enum { BRINK_STACK = 65536, BRINK_BELOW = 9000, BRINK_STEP = 48, BRINK_CHILDREN = 8 };

enum brink { END, SPAWN, ALL };

struct brink_at {
    enum brink what;
    size_t     deep;
};

static int64_t short_child(void *argument)
{
    for (volatile int i = 0; i < 10; i++) continue;
    return argument == NULL ? 0 : -1;
}

__attribute__((noinline)) static void at_the_brink(janus_nursery *outer, const struct brink_at *at)
{
    volatile char *down = __builtin_alloca(at->deep);
    janus_nursery  inner;
    down[0] = 1;
    switch (at->what) {
    case END: JANUS_IGNORE(janus_nursery_end(outer, NULL)); break;
    case SPAWN:
        for (int i = 0; i < 3; i++) JANUS_IGNORE(janus_spawn(outer, short_child, NULL));
        break;
    case ALL:
        if (janus_nursery_open(&inner, NULL) != JANUS_OK) break;
        JANUS_IGNORE(janus_spawn(&inner, short_child, NULL));
        JANUS_IGNORE(janus_nursery_end(&inner, NULL));
        break;
    }
    down[1] = down[0]; /* not a tail call: it needs a frame */
}

static int64_t go_to_the_brink(void *argument)
{
    const struct brink_at *at = argument;
    janus_nursery          n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < BRINK_CHILDREN; i++) CHECK_EQ(janus_spawn(&n, short_child, NULL), JANUS_OK);
    at_the_brink(&n, at);
    return at->what == END ? 0 : janus_nursery_end(&n, NULL);
}

static int64_t all_brinks(void *argument)
{
    enum { END_OF_STACK = BRINK_STACK + BRINK_STACK / 8 }; /* the most that a task may have */
    struct brink_at at = {*(const enum brink *)argument, END_OF_STACK - BRINK_BELOW};
    int             overflowed = 0;
    for (; at.deep < END_OF_STACK; at.deep += BRINK_STEP) {
        janus_nursery        n;
        janus_nursery_result result;
        CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)),
                 JANUS_OK);
        CHECK_EQ(janus_spawn_with(&n, go_to_the_brink, &at,
                                  JANUS_SPAWN_OPTIONS(.stack_bytes = BRINK_STACK), NULL),
                 JANUS_OK);
        JANUS_IGNORE(janus_nursery_end(&n, &result));
        if (result.kind != JANUS_RESULT_KIND_CHILD_FAILED) continue;
        CHECK_EQ(result.panic.kind, JANUS_PANIC_KIND_STACK_OVERFLOW);
        overflowed++;
    }
    CHECK(rig_simulated() || overflowed > 0); /* in a world strands are larger */
    return 0;
}

static void at_all_brinks(enum brink what)
{
    RIG_OVERFLOWS();
    if (JRT_ASAN) SKIP("instrumented frames have no known size");
    for (uint32_t workers = 1; workers <= 2; workers++) {
        CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .stack_bytes = 16384),
                           all_brinks, &what, NULL),
                 JANUS_OK);
    }
}

TEST("ending a nursery where the stack ends loses no child") { at_all_brinks(END); }
TEST("a spawn where the stack ends happens completely or not at all") { at_all_brinks(SPAWN); }
TEST("a whole nursery where the stack ends loses no child") { at_all_brinks(ALL); }
