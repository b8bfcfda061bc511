/* SPDX-License-Identifier: MIT */
/* Spawns that wait for room, under exploration: no schedule loses a wake-up. */
#include "scout.h"

#include <stdatomic.h>

enum { SCHEDULES = JRT_TSAN || JRT_ASAN ? 50 : 2000 };

static int64_t yield_once(void *argument)
{
    (void)argument;
    janus_point();
    return janus_yield() == JANUS_CANCELLED ? JANUS_CANCELLED : 0;
}

static int64_t spawn_three(void *argument)
{
    janus_status status;
    (void)argument;
    JANUS_NURSERY(n, status)
    {
        for (int i = 0; i < 3; i++) {
            janus_status spawned = janus_spawn_wait(n, yield_once, NULL);
            if (spawned != JANUS_OK) return janus_cancelled() ? JANUS_CANCELLED : spawned;
        }
    }
    return status;
}

/* Two spawners wait for the room of two others. One of the spawners is cancelled at some point. */
static int64_t crowd(void *argument)
{
    janus_nursery n, other;
    (void)argument;
    if (janus_nursery_open(&n, NULL) != JANUS_OK) return -1;
    if (janus_spawn(&n, spawn_three, NULL) != JANUS_OK) return -1;
    if (janus_nursery_open(&other, JANUS_NURSERY_OPTIONS(.owner_apart = true)) != JANUS_OK) {
        return -1;
    }
    if (janus_spawn_wait(&other, spawn_three, NULL) != JANUS_OK) return -1;
    janus_point();
    (void)janus_nursery_cancel(&other);
    janus_status cancelled = janus_nursery_end(&other, NULL);
    JANUS_EXPECT(cancelled == JANUS_CANCELLED || cancelled == JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

TEST("no schedule of spawns that wait, end and are cancelled leaves a spawn waiting")
{
    const janus_strategy    strategies[] = {JANUS_STRATEGY_RANDOM, JANUS_STRATEGY_PCT};
    janus_scheduler_options limited = {.struct_bytes = sizeof limited, .max_tasks = 4};
    for (int i = 0; i < 2; i++) {
        for (uint32_t workers = 1; workers < 4; workers++) {
            janus_explore_result result = scout((janus_explore_options){.strategy = strategies[i],
                                                                        .schedules = SCHEDULES,
                                                                        .worker_count = workers,
                                                                        .scheduler = &limited},
                                                crowd);
            CHECK_STR(result.message, "");
            CHECK_EQ(result.failing, JANUS_FAILING_NOT);
        }
    }
}
