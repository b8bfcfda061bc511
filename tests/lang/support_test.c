/* SPDX-License-Identifier: MIT */
/* The support library, called as compiled code calls it. */
#include "harness.h"
#include "host/record.h"
#include "host/state.h"

#include <janusrt/scheduler.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 3, COLUMN = 9 };
static const uint64_t place = (uint64_t)LINE << 32 | COLUMN;

static struct jl_world  world = {.source = "a.jan"};
static struct jl_record home = {.world = &world}; /* a panic leaves records in it */

static int64_t nothing(void *record)
{
    (void)record;
    return 0;
}

static int64_t spawn_without(void *argument)
{
    struct jl_nursery nursery;
    (void)argument;
    jl_nursery_begin(&nursery, NULL, false, place);
    (void)jl_spawn(&nursery, nothing, jl_record(&nursery, 0), "nothing", place, NULL, true);
    return jl_nursery_end(&nursery);
}

/* The first task of a scheduler in :sovereign. It holds nothing, and runs the code of a program. */
static int64_t begin(void *argument)
{
    world.program = argument;
    struct jl_task  task = {.world = &world, .name = "main", .home = &home};
    struct jl_task *before = jl_become(&task);
    int64_t         error = jl_guard_task(&task, spawn_without, NULL);
    (void)jl_become(before);
    return error;
}

static janus_run_result result_of(int profile)
{
    struct jl_program program = {.source = "a.jan", .profile = profile};
    janus_run_result  result = JANUS_RUN_RESULT();
    JANUS_IGNORE(janus_run_with(JANUS_SCHEDULER_OPTIONS(.profile = JANUS_PROFILE_SOVEREIGN,
                                                        .worker_count = 1, .yield_interval = 512),
                                begin, &program, &result));
    jl_records_free(&home);
    for (uint32_t i = 0; i < JL_SITES; i++) free(atomic_exchange(&world.sites[i], NULL));
    return result;
}

/* C33. In :service every task may spawn, so code of :service runs without the right only here. */
TEST("compiled code of :service panics if it spawns without a capability, and names the line")
{
    static const char text[] = "this nursery has no capability to start tasks (a.jan:3:9)";
    janus_run_result  result = result_of(JL_PROFILE_SERVICE);
    if (strstr(result.first.text, text) == NULL) CHECK_STR(result.first.text, text);
    CHECK(!result.returned);
    result = result_of(JL_PROFILE_SOVEREIGN); /* there it is the task's error */
    CHECK(result.returned);
    CHECK_EQ(result.result, JANUS_NO_SPAWN_CAP);
}
