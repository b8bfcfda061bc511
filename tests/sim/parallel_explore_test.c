/* SPDX-License-Identifier: MIT */
/* Parallel calls under exploration. Some schedules divide them and others do not. Under every
 * schedule they end with the same result. */
#include "scout.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SCHEDULES = JRT_TSAN || JRT_ASAN ? 20 : 300 };

/* What the schedules have done so far. */
static int apart, together;

static int64_t note_task(void *argument)
{
    *(janus_task_id *)argument = janus_task_current_id();
    janus_point();
    return 0;
}

static int64_t count_divided(void *argument)
{
    janus_task_id first = 0, second = 0;
    (void)argument;
    int64_t status = janus_both(note_task, &first, note_task, &second);
    if (first == second) {
        together++;
    } else {
        apart++;
    }
    return status;
}

TEST("a branch is split off in some schedules and not in others, by chance and by priorities")
{
    const janus_strategy strategies[] = {JANUS_STRATEGY_RANDOM, JANUS_STRATEGY_PCT};
    for (int i = 0; i < 2; i++) {
        apart = together = 0;
        janus_explore_options options = {.strategy = strategies[i], .schedules = SCHEDULES};
        CHECK_EQ(scout(options, count_divided).failing, JANUS_FAILING_NOT);
        CHECK(apart > 0);
        CHECK(together > 0);
    }
}

/* A lost update between two branches. */
static int shared;

static int64_t add_ten(void *argument)
{
    (void)argument;
    int before = shared;
    janus_point();
    shared = before + 10;
    return 0;
}

static int64_t add_twice(void *argument)
{
    (void)argument;
    shared = 0;
    int64_t status = janus_both(add_ten, NULL, add_ten, NULL);
    return shared == 20 ? status : -20;
}

TEST("exploring finds an update that is lost between two branches, and replays it")
{
    janus_explore_options options = {.schedules = 1000, .no_minimising = JRT_TSAN};
    janus_explore_result  found = scout(options, add_twice);
    CHECK(found.failing != JANUS_FAILING_NOT);
    options.replay = found.replay;
    janus_explore_result again = scout(options, add_twice);
    CHECK_EQ(again.failing, found.failing);
    CHECK_EQ(again.hash, found.hash);
    free(found.replay);
    free(again.replay);
}

/* Sums that depend on the order of additions, in loops, branches and nurseries. */

static int64_t add_parts(void *argument, uint64_t begin, uint64_t end, void *value)
{
    (void)argument;
    for (uint64_t i = begin; i < end; i++) *(double *)value += 1.0 / (double)(i + 3);
    janus_point();
    return 0;
}

static int64_t plus(void *argument, void *value, const void *right)
{
    (void)argument;
    *(double *)value += *(const double *)right;
    return 0;
}

static double known;

static int64_t same_sum(void *argument)
{
    double sum = 0;
    (void)argument;
    int64_t status =
        janus_reduce(janus_range_by(0, 40, 3), add_parts, plus, NULL, &sum, sizeof sum);
    if (known == 0) known = sum;
    return memcmp(&sum, &known, sizeof sum) == 0 ? status : -30;
}

TEST("a reduction has the same result to the last bit in every schedule")
{
    janus_explore_options options = {.schedules = SCHEDULES};
    known = 0;
    CHECK_EQ(scout(options, same_sum).failing, JANUS_FAILING_NOT);
    options.strategy = JANUS_STRATEGY_PCT;
    CHECK_EQ(scout(options, same_sum).failing, JANUS_FAILING_NOT);
}

/* Failures and refused memory. */

static int ended, begun;

static int64_t body(void *argument, uint64_t begin, uint64_t end)
{
    (void)argument, (void)end;
    begun++;
    janus_status status = janus_yield();
    ended++;
    if (begin == 5) return -5;
    return status;
}

static int64_t branch(void *argument) { return janus_for(janus_range_by(0, 9, 1), body, argument); }

static int64_t fails_as_told(void *argument)
{
    (void)argument;
    begun = ended = 0;
    int64_t status = janus_both(branch, NULL, branch, NULL);
    if (begun != ended) return -31;
    return status == -5 ? 0 : -32;
}

TEST("in every schedule a failed loop has ended all its calls, and its error is returned")
{
    janus_explore_options options = {.schedules = SCHEDULES};
    CHECK_EQ(scout(options, fails_as_told).failing, JANUS_FAILING_NOT);
    options.strategy = JANUS_STRATEGY_PCT;
    CHECK_EQ(scout(options, fails_as_told).failing, JANUS_FAILING_NOT);
}

TEST("if memory is refused, nothing is split off, and the result is the same")
{
    janus_explore_options options = {
        .schedules = SCHEDULES, .faults = JANUS_FAULT_MEMORY, .faults_every = 5};
    CHECK_EQ(scout(options, same_sum).failing, JANUS_FAILING_NOT);
    janus_explore_result found = scout(options, add_twice);
    CHECK(found.failing != JANUS_FAILING_NOT);
    free(found.replay);
}
