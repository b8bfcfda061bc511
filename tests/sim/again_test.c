/* SPDX-License-Identifier: MIT */
/* A failed schedule is run again: with a trace, and from a text under other options. */
#include "scout.h"
#include "task/worker.h"

#include <janusrt/janus.h>
#include <stdint.h>
#include <stdlib.h>

static int64_t add_ten(void *argument)
{
    int *shared = argument, before = *shared;
    janus_point();
    *shared = before + 10;
    return 0;
}

static int64_t add_twice(void *argument)
{
    int shared = 0;
    (void)argument;
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        JANUS_EXPECT(janus_spawn(n, add_ten, &shared) == JANUS_OK);
        JANUS_EXPECT(janus_spawn(n, add_ten, &shared) == JANUS_OK);
    }
    CHECK_EQ(ended, JANUS_OK);
    JANUS_EXPECT(shared == 20);
    return 0;
}

static int64_t go_round(void *argument)
{
    while (argument == NULL) JANUS_IGNORE(janus_yield());
    return 0;
}

TEST("a trace shared by schedules is free after a failed one, and describes it")
{
    janus_trace          *trace = NULL;
    janus_trace_info      info = JANUS_TRACE_INFO();
    janus_explore_options options = {.schedules = JRT_TSAN ? 20 : 1000, .no_minimising = JRT_TSAN};
    CHECK_EQ(janus_trace_create(NULL, &trace), JANUS_OK);
    janus_explore_result without = scout(options, add_twice);
    options.scheduler = JANUS_SCHEDULER_OPTIONS(.trace = trace);
    janus_explore_result with = scout(options, add_twice);
    CHECK(!with.unsteady);
    CHECK_EQ(with.failing, JANUS_FAILING_EXPECTATION);
    CHECK_EQ(with.hash, without.hash);
    CHECK_STR(with.replay, without.replay);
    CHECK_EQ(janus_trace_inspect(trace, &info), JANUS_OK);
    CHECK(info.events > 5);
    free(with.replay);
    free(without.replay);
    options.stale_allowed = true;
    CHECK_EQ(scout(options, use_an_old_channel).failing, JANUS_FAILING_NOT);
    CHECK_EQ(janus_trace_destroy(trace), JANUS_OK);
}

TEST("the replay text holds the limit of steps and whether handles may be stale")
{
    janus_explore_options few = {.max_steps = 2000, .no_minimising = true};
    janus_explore_result  first = scout(few, go_round);
    janus_explore_result  again = scout((janus_explore_options){.replay = first.replay}, go_round);
    CHECK_EQ(again.failing, JANUS_FAILING_STEPS);
    CHECK_STR(again.message, first.message);
    CHECK_EQ(again.hash, first.hash);
    CHECK_STR(again.replay, first.replay);
    free(first.replay);
    free(again.replay);
    again = scout((janus_explore_options){.replay = "1/w4/a/s1"}, use_an_old_channel);
    CHECK_EQ(again.failing, JANUS_FAILING_NOT);
    again = scout((janus_explore_options){.replay = "1/w4/s1"}, use_an_old_channel);
    CHECK_EQ(again.failing, JANUS_FAILING_STALE);
    free(again.replay);
}

/* Units without an owner, as a bug of the library would leave them. */

static int64_t keep_units(void *argument)
{
    janus_scheduler *scheduler = jrt_worker_self()->scheduler;
    (void)argument;
    scheduler->bank.books.granted.ops += 5;
    scheduler->bank.books.shares.ops += 5;
    return 0;
}

static int64_t lose_units(void *argument)
{
    (void)argument;
    jrt_worker_self()->scheduler->bank.books.spent.ops += 5;
    return 0;
}

TEST("books that do not balance at the end of a schedule are a failure")
{
    janus_entry *const entries[] = {keep_units, lose_units};
    for (int i = 0; i < 2; i++) {
        janus_explore_result result =
            scout((janus_explore_options){.schedules = 1, .no_minimising = true}, entries[i]);
        CHECK_EQ(result.failing, JANUS_FAILING_LEAK);
        free(result.replay);
    }
}

/* Children that overflow their stack. */

__attribute__((noinline)) static int64_t descend(volatile int64_t depth)
{
    volatile char frame[512];
    frame[0] = (char)depth;
    return depth > 0 ? descend(depth + 1) + frame[0] : 0;
}

static int64_t go_deep(void *argument)
{
    (void)argument;
    return descend(1);
}

static int64_t overflow_below(void *argument)
{
    janus_status ended;
    JANUS_NURSERY(n, ended) { JANUS_IGNORE(janus_spawn(n, go_deep, argument)); } /* ignored */
    CHECK_EQ(ended, JANUS_OK);
    return 0;
}

TEST("a stack overflow is a failure, as a panic is")
{
    if (JRT_TSAN) SKIP("ThreadSanitizer's own code dies where the stack ends, locks held");
    janus_explore_result result = scout((janus_explore_options){.schedules = 1}, overflow_below);
    CHECK_EQ(result.failing, JANUS_FAILING_PANIC);
    free(result.replay);
}
