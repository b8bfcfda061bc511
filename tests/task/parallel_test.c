/* SPDX-License-Identifier: MIT */
/* Parallel calls as a user meets them: what is called, what fails, what is allowed and what it
 * costs. */
#include "rig.h"

#include <string.h>

enum { MANY = RIG_SLOW ? 2000 : 20000, ROUNDS = RIG_SLOW ? 5 : 50 };

static const uint64_t an_hour_ns = UINT64_C(3600000000000);

/* Two calls. */

static int64_t fib(void *argument)
{
    int64_t *n = argument;
    if (*n < 2) return 0;
    int64_t left = *n - 1, right = *n - 2;
    int64_t status = janus_both(fib, &left, fib, &right);
    *n = left + right;
    return status;
}

static int64_t fib_is_right(void *argument)
{
    int64_t n = rig_simulated() ? 9 : 18;
    (void)argument;
    CHECK_EQ(fib(&n), 0);
    CHECK_EQ(n, rig_simulated() ? 34 : 2584);
    return 0;
}

TEST("both calls of janus_both have returned when it returns, at every depth")
{
    rig_all(fib_is_right, NULL, ROUNDS);
}

static int64_t seven(void *argument)
{
    if (argument != NULL) ++*(int *)argument;
    return 7;
}

static int64_t fails(void *argument)
{
    if (argument != NULL) atomic_fetch_add((atomic_int *)argument, 1);
    return -7;
}

static int64_t fails_otherwise(void *argument)
{
    (void)argument;
    return -8;
}

/* Obeys when it is cancelled; nothing else ends it in time. */
static int64_t waits(void *argument)
{
    (void)argument;
    return janus_sleep(an_hour_ns);
}

static int64_t first_fails(void *argument)
{
    janus_parallel_failure failure;
    (void)argument;
    CHECK_EQ(janus_both(fails, NULL, waits, NULL), -7);
    CHECK_EQ(janus_both_with(fails, NULL, waits, NULL, &failure), -7);
    CHECK_EQ(failure.error, -7);
    CHECK_EQ(failure.begin, 0);
    CHECK_EQ(failure.end, 1);
    CHECK_EQ(failure.task, janus_task_current_id());
    CHECK(!janus_cancelled());
    return 0;
}

TEST("a first branch that fails cancels the second, and its error is returned")
{
    rig_all(first_fails, NULL, ROUNDS);
}

static int64_t second_fails(void *argument)
{
    janus_parallel_failure failure;
    int                    calls = 0;
    (void)argument;
    CHECK_EQ(janus_both_with(seven, &calls, fails, NULL, &failure), -7);
    CHECK_EQ(calls, 1);
    CHECK_EQ(failure.begin, 1);
    CHECK_EQ(failure.end, 2);
    CHECK(failure.task != 0);
    CHECK_EQ(janus_both_with(seven, &calls, seven, NULL, &failure), 0);
    CHECK_EQ(failure.error, 0);
    return 0;
}

TEST("a second branch that fails is reported as the second, wherever it ran")
{
    rig_all(second_fails, NULL, ROUNDS);
}

static int64_t both_fail(void *argument)
{
    (void)argument;
    CHECK_EQ(janus_both(fails, NULL, fails_otherwise, NULL), -7);
    CHECK_EQ(janus_both(fails_otherwise, NULL, fails, NULL), -8);
    return 0;
}

TEST("of two failed branches the first in order is reported, whichever failed earlier")
{
    rig_all(both_fail, NULL, ROUNDS);
}

/* An error through many levels is not changed on its way. */
static int64_t fails_deep(void *argument)
{
    int depth = *(int *)argument;
    int below = depth - 1;
    if (depth == 0) return -33;
    int64_t status = janus_both(seven, NULL, fails_deep, &below);
    return status < 0 ? status : 0;
}

static int64_t deep_error(void *argument)
{
    int depth = 12;
    (void)argument;
    CHECK_EQ(fails_deep(&depth), -33);
    return 0;
}

TEST("an error rises through nested calls as it is") { rig_all(deep_error, NULL, ROUNDS); }

/* Loops. */

static atomic_uchar reached[MANY];

static int64_t reach(void *argument, uint64_t begin, uint64_t end)
{
    (void)argument;
    CHECK(begin < end);
    for (uint64_t i = begin; i < end; i++) atomic_fetch_add(&reached[i], 1);
    return 0;
}

static void check_reached(uint64_t begin, uint64_t end)
{
    for (uint64_t i = 0; i < MANY; i++) CHECK_EQ(reached[i], i >= begin && i < end);
    memset(reached, 0, sizeof reached);
}

static int64_t reach_all(void *argument)
{
    (void)argument;
    memset(reached, 0, sizeof reached);
    CHECK_EQ(janus_for(janus_range_of(0, MANY), reach, NULL), 0);
    check_reached(0, MANY);
    CHECK_EQ(janus_for(janus_range_by(3, 1000, 7), reach, NULL), 0);
    check_reached(3, 1000);
    CHECK_EQ(janus_for(janus_range_by(10, 11, 1000), reach, NULL), 0);
    check_reached(10, 11);
    CHECK_EQ(janus_for(janus_range_of(10, 10), reach, NULL), 0);
    CHECK_EQ(janus_for(janus_range_of(11, 10), reach, NULL), 0);
    check_reached(0, 0);
    return 0;
}

TEST("a loop reaches every index exactly once, with an automatic grain and a given one")
{
    rig_all(reach_all, NULL, ROUNDS / 5);
}

static int64_t aligned(void *argument, uint64_t begin, uint64_t end)
{
    const janus_range *range = argument;
    CHECK_EQ((begin - range->begin) % range->grain, 0);
    CHECK(end - begin == range->grain || end == range->end);
    return 0;
}

static int64_t cut_by_grain(void *argument)
{
    (void)argument;
    for (uint64_t grain = 1; grain < 40; grain += 3) {
        janus_range range = janus_range_by(5, 500 + grain, grain);
        CHECK_EQ(janus_for(range, aligned, &range), 0);
    }
    janus_range range = janus_range_by(UINT64_MAX - 100, UINT64_MAX, 7); /* no sum overflows */
    CHECK_EQ(janus_for(range, aligned, &range), 0);
    range = janus_range_by(UINT64_MAX - 100, UINT64_MAX, UINT64_MAX);
    CHECK_EQ(janus_for(range, aligned, &range), 0);
    return 0;
}

TEST("each call of a loop with a grain gets one grain, and the last call gets the rest")
{
    rig_all(cut_by_grain, NULL, ROUNDS / 5);
}

static int64_t inner(void *argument, uint64_t begin, uint64_t end)
{
    atomic_fetch_add((atomic_int *)argument, (int)(end - begin));
    return janus_yield();
}

static int64_t outer(void *argument, uint64_t begin, uint64_t end)
{
    for (uint64_t i = begin; i < end; i++) {
        int64_t status = janus_for(janus_range_by(0, 20, 3), inner, argument);
        if (status < 0) return status;
        janus_nursery n;
        int64_t       here = 5, there = 5; /* the child writes its argument, too */
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, fib, &there), JANUS_OK);
        status = fib(&here);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        if (status < 0) return status;
        CHECK_EQ(here, 5);
        CHECK_EQ(there, 5);
    }
    return 0;
}

static int64_t nested(void *argument)
{
    atomic_int count = 0;
    (void)argument;
    CHECK_EQ(janus_for(janus_range_by(0, 20, 2), outer, &count), 0);
    CHECK_EQ(count, 400);
    return 0;
}

TEST("loops, branches and nurseries nest in each other, and bodies may wait")
{
    rig_all(nested, NULL, ROUNDS);
}

/* Fails in the lower half; the upper half waits until it is cancelled. */
static int64_t low_fails(void *argument, uint64_t begin, uint64_t end)
{
    (void)argument, (void)end;
    return begin < 50 ? -(int64_t)begin - 100 : janus_sleep(an_hour_ns);
}

static int64_t loop_fails(void *argument)
{
    janus_parallel_failure failure;
    (void)argument;
    int64_t status = janus_for_with(janus_range_by(0, 100, 1), low_fails, NULL, &failure);
    CHECK_EQ(status, -100); /* the caller itself begins with index 0 */
    CHECK_EQ(failure.error, -100);
    CHECK_EQ(failure.begin, 0);
    CHECK_EQ(failure.end, 1);
    CHECK(failure.task != 0);
    CHECK(!janus_cancelled());
    return 0;
}

TEST("a body that fails ends the loop: others are cancelled, the lowest failure is reported")
{
    rig_all(loop_fails, NULL, ROUNDS);
}

static int64_t one_fails(void *argument, uint64_t begin, uint64_t end)
{
    uint64_t *bad = argument;
    return begin <= *bad && *bad < end ? -9 : 0;
}

static int64_t any_index_fails(void *argument)
{
    (void)argument;
    for (uint64_t bad = 0; bad < 64; bad++) {
        janus_parallel_failure failure;
        CHECK_EQ(janus_for_with(janus_range_by(0, 64, 4), one_fails, &bad, &failure), -9);
        CHECK_EQ(failure.begin, bad / 4 * 4);
        CHECK_EQ(failure.end, bad / 4 * 4 + 4);
    }
    return 0;
}

TEST("a failure is reported with the indices of its call, whichever task made it")
{
    rig_all(any_index_fails, NULL, ROUNDS / 5);
}

/* Panics. */

static int64_t panics(void *argument)
{
    janus_panic((const char *)argument);
    return 0;
}

static int64_t panics_beside(void *argument)
{
    (void)argument;
    (void)!janus_both(seven, NULL, panics, "the second broke");
    CHECK(false); /* the caller has ended */
    return 0;
}

static int64_t panics_first(void *argument)
{
    (void)argument;
    (void)!janus_both(panics, "the first broke", waits, NULL);
    CHECK(false);
    return 0;
}

static int64_t panics_at(void *argument, uint64_t begin, uint64_t end)
{
    (void)argument, (void)end;
    if (begin == 60) janus_panic("index 60 broke");
    return 0;
}

static int64_t panics_in_loop(void *argument)
{
    (void)argument;
    (void)!janus_for(janus_range_by(0, 100, 1), panics_at, NULL);
    CHECK(false);
    return 0;
}

static void check_panic(janus_entry *entry, const char *message)
{
    janus_nursery        n;
    janus_nursery_result result;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, entry, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.panic.kind, JANUS_PANIC_KIND_EXPLICIT);
    CHECK_STR(result.panic.message, message);
}

static int64_t panics_rise(void *argument)
{
    (void)argument;
    check_panic(panics_beside, "the second broke");
    check_panic(panics_first, "the first broke");
    check_panic(panics_in_loop, "index 60 broke");
    return 0;
}

TEST("a panic in a call is a panic of the caller, with its message, wherever the call ran")
{
    rig_all(panics_rise, NULL, ROUNDS);
}

static int64_t overflows(void *argument)
{
    volatile char frame[512];
    frame[0] = 1;
    if (frame[0] == 0) return argument != NULL;
    return overflows((void *)(uintptr_t)&frame[0]) + frame[0];
}

static int64_t overflows_beside(void *argument)
{
    (void)argument;
    (void)!janus_both(seven, NULL, overflows, NULL);
    CHECK(false);
    return 0;
}

static int64_t overflow_rises(void *argument)
{
    janus_nursery        n;
    janus_nursery_result result;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, overflows_beside, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.panic.kind, JANUS_PANIC_KIND_STACK_OVERFLOW);
    return 0;
}

TEST("a stack overflow in a branch is an overflow of the caller, wherever the branch ran")
{
    RIG_OVERFLOWS();
    rig_all(overflow_rises, NULL, ROUNDS / 5);
}

/* Reductions. */

static double numbers[MANY];

static int64_t add(void *argument, uint64_t begin, uint64_t end, void *value)
{
    (void)argument;
    double sum = 0; /* as compilers that add in lanes: only whole calls are comparable */
    for (uint64_t i = begin; i < end; i++) sum += numbers[i];
    *(double *)value += sum;
    return 0;
}

static int64_t plus(void *argument, void *value, const void *right)
{
    (void)argument;
    *(double *)value += *(const double *)right;
    return 0;
}

static int64_t sum_into(void *argument)
{
    double sum = 0, fine = 0;
    CHECK_EQ(janus_reduce(janus_range_of(0, MANY), add, plus, NULL, &sum, sizeof sum), 0);
    CHECK_EQ(janus_reduce(janus_range_by(0, MANY, 10), add, plus, NULL, &fine, sizeof fine), 0);
    double *known = argument;
    if (known[0] == 0) memcpy(known, (double[]){sum, fine}, 2 * sizeof sum);
    CHECK(memcmp(known, &sum, sizeof sum) == 0 && memcmp(known + 1, &fine, sizeof fine) == 0);
    return 0;
}

TEST("a sum of floating-point numbers is the same to the last bit on any number of workers")
{
    double known[2] = {0, 0};
    for (uint64_t i = 0; i < MANY; i++) numbers[i] = 1.0 / (double)(i + 1) * (i % 3 ? 1 : 1e9);
    rig_all(sum_into, known, ROUNDS / 5);
    CHECK(known[0] != 0 && known[0] != known[1]);
}

/* Ranges of indices: a join in another order is detected. 80 bytes: not a small value. */
struct span {
    uint64_t begin, end;
    char     large[64];
};

static int64_t extend(void *argument, uint64_t begin, uint64_t end, void *value)
{
    struct span *span = value;
    (void)argument;
    if (span->begin == span->end) span->begin = span->end = begin;
    CHECK_EQ(span->end, begin);
    span->end = end;
    return 0;
}

static int64_t adjoin(void *argument, void *value, const void *right)
{
    struct span       *span = value;
    const struct span *next = right;
    (void)argument;
    CHECK_EQ(span->end, next->begin);
    span->end = next->end;
    return 0;
}

static int64_t in_order(void *argument)
{
    (void)argument;
    for (uint64_t grain = 0; grain < 30; grain += 7) {
        struct span span = {0};
        CHECK_EQ(
            janus_reduce(janus_range_by(3, 700, grain), extend, adjoin, NULL, &span, sizeof span),
            0);
        CHECK_EQ(span.begin, 3);
        CHECK_EQ(span.end, 700);
    }
    struct span span = {0};
    CHECK_EQ(janus_reduce(janus_range_by(UINT64_MAX - 9, UINT64_MAX, UINT64_MAX), extend, adjoin,
                          NULL, &span, sizeof span),
             0);
    CHECK_EQ(span.end - span.begin, 9);
    span = (struct span){0};
    CHECK_EQ(janus_reduce(janus_range_by(UINT64_MAX - 9, UINT64_MAX, 2), extend, adjoin, NULL,
                          &span, sizeof span),
             0);
    CHECK_EQ(span.end - span.begin, 9);
    struct span empty = {.begin = 4, .end = 4};
    CHECK_EQ(janus_reduce(janus_range_of(9, 9), extend, adjoin, NULL, &empty, sizeof empty), 0);
    CHECK_EQ(empty.begin, 4);
    return 0;
}

TEST("a reduction combines neighbours only, lower indices first, in values of any size")
{
    rig_all(in_order, NULL, ROUNDS / 5);
}

static int64_t fold_fails(void *argument, uint64_t begin, uint64_t end, void *value)
{
    (void)argument, (void)value;
    return begin <= 33 && 33 < end ? -12 : 0;
}

static int64_t combine_fails(void *argument, void *value, const void *right)
{
    (void)argument, (void)value, (void)right;
    return -13;
}

static int64_t reduction_fails(void *argument)
{
    janus_parallel_failure failure;
    double                 sum = 0;
    janus_range            range = janus_range_by(0, 64, 8);
    (void)argument;
    CHECK_EQ(janus_reduce_with(range, fold_fails, plus, NULL, &sum, sizeof sum, &failure), -12);
    CHECK_EQ(failure.begin, 32);
    CHECK_EQ(failure.end, 40);
    CHECK_EQ(janus_reduce_with(range, add, combine_fails, NULL, &sum, sizeof sum, &failure), -13);
    CHECK_EQ(failure.error, -13);
    CHECK_EQ(failure.begin, 0);
    CHECK_EQ(failure.end, 16);
    return 0;
}

TEST("a fold or a combination that fails ends the reduction and is reported with its indices")
{
    rig_all(reduction_fails, NULL, ROUNDS / 5);
}

TEST("missing arguments are refused, and no function is called")
{
    double sum = 0;
    int    calls = 0;
    CHECK_EQ(janus_both(NULL, NULL, seven, &calls), JANUS_INVALID);
    CHECK_EQ(janus_both(seven, &calls, NULL, NULL), JANUS_INVALID);
    CHECK_EQ(calls, 0);
    CHECK_EQ(janus_for(janus_range_of(0, 9), NULL, NULL), JANUS_INVALID);
    janus_range range = janus_range_of(0, 9);
    CHECK_EQ(janus_reduce(range, NULL, plus, NULL, &sum, sizeof sum), JANUS_INVALID);
    CHECK_EQ(janus_reduce(range, add, NULL, NULL, &sum, sizeof sum), JANUS_INVALID);
    CHECK_EQ(janus_reduce(range, add, plus, NULL, NULL, sizeof sum), JANUS_INVALID);
    CHECK_EQ(janus_reduce(range, add, plus, NULL, &sum, 0), JANUS_INVALID);
}

TEST("outside of tasks all calls are made by the caller")
{
    janus_parallel_failure failure;
    struct span            span = {0};
    CHECK_EQ(fib_is_right(NULL), 0);
    CHECK_EQ(reach_all(NULL), 0);
    CHECK_EQ(janus_both_with(seven, NULL, fails, NULL, &failure), -7);
    CHECK_EQ(failure.task, 0);
    CHECK_EQ(janus_reduce(janus_range_of(1, 999), extend, adjoin, NULL, &span, sizeof span), 0);
    CHECK_EQ(span.end, 999);
}
