/* SPDX-License-Identifier: MIT */
/* A schedule that failed, run again: with a trace, and from a text under other options. */
#include "harness.h"
#include "task/nursery.h"

#include <janusrt/janus.h>
#include <stdint.h>
#include <stdlib.h>

static janus_explore_result explore(janus_explore_options options, janus_entry *entry)
{
    janus_explore_result result = {.struct_bytes = sizeof result};
    options.struct_bytes = sizeof options;
    options.quiet = true;
    janus_status status = janus_explore(&options, entry, NULL, &result);
    CHECK_EQ(status, result.failing == JANUS_FAILING_NOT ? JANUS_OK : JANUS_CHILD_FAILED);
    return result;
}

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
    JANUS_NURSERY(n)
    {
        JANUS_EXPECT(janus_spawn(n, add_ten, &shared) == JANUS_OK);
        JANUS_EXPECT(janus_spawn(n, add_ten, &shared) == JANUS_OK);
    }
    JANUS_EXPECT(shared == 20);
    return 0;
}

static int64_t go_round(void *argument)
{
    while (argument == NULL) (void)janus_yield();
    return 0;
}

static int64_t use_an_old_channel(void *argument)
{
    janus_channel channel;
    int64_t       value = 0;
    (void)argument;
    if (janus_channel_open(8, 1, NULL, &channel) != JANUS_OK) return -1;
    (void)janus_channel_destroy(channel);
    return janus_channel_try_send(channel, &value) == JANUS_STALE ? 0 : -1;
}

TEST("a trace that schedules share is free after one that failed, and tells of it")
{
    janus_trace          *trace = NULL;
    janus_trace_info      info = {.struct_bytes = sizeof info};
    janus_explore_options options = {.schedules = JRT_TSAN ? 20 : 1000, .no_minimising = JRT_TSAN};
    CHECK_EQ(janus_trace_open(NULL, &trace), JANUS_OK);
    janus_explore_result without = explore(options, add_twice);
    options.scheduler = JANUS_SCHEDULER_OPTIONS(.trace = trace);
    janus_explore_result with = explore(options, add_twice);
    CHECK(!with.unsteady);
    CHECK_EQ(with.failing, JANUS_FAILING_EXPECTATION);
    CHECK_EQ(with.hash, without.hash);
    CHECK_STR(with.replay, without.replay);
    CHECK_EQ(janus_trace_inspect(trace, &info), JANUS_OK);
    CHECK(info.events > 5);
    free(with.replay);
    free(without.replay);
    options.stale_allowed = true;
    CHECK_EQ(explore(options, use_an_old_channel).failing, JANUS_FAILING_NOT);
    CHECK_EQ(janus_trace_close(trace), JANUS_OK);
}

TEST("how many steps there may be, and whether handles may be stale, is in the text")
{
    janus_explore_options few = {.steps_max = 2000, .no_minimising = true};
    janus_explore_result  first = explore(few, go_round);
    janus_explore_result again = explore((janus_explore_options){.replay = first.replay}, go_round);
    CHECK_EQ(again.failing, JANUS_FAILING_STEPS);
    CHECK_STR(again.message, first.message);
    CHECK_EQ(again.hash, first.hash);
    CHECK_STR(again.replay, first.replay);
    free(first.replay);
    free(again.replay);
    again = explore((janus_explore_options){.replay = "1/w4/a/s1"}, use_an_old_channel);
    CHECK_EQ(again.failing, JANUS_FAILING_NOT);
    again = explore((janus_explore_options){.replay = "1/w4/s1"}, use_an_old_channel);
    CHECK_EQ(again.failing, JANUS_FAILING_STALE);
    free(again.replay);
}

/* Units that nobody has, as a fault of the library would leave them. */

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

TEST("books that do not balance when a schedule has ended are a failure")
{
    janus_entry *const entries[] = {keep_units, lose_units};
    for (int i = 0; i < 2; i++) {
        janus_explore_result result =
            explore((janus_explore_options){.schedules = 1, .no_minimising = true}, entries[i]);
        CHECK_EQ(result.failing, JANUS_FAILING_LEAK);
        free(result.replay);
    }
}
