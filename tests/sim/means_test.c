/* SPDX-License-Identifier: MIT */
/* What the engine does for its parts: faults that happen, errno of each, turns, other worlds. */
#include "scout.h"

#include <errno.h>
#include <janusrt/janus.h>
#include <pthread.h>
#include <stdint.h>

static janus_explore_result explore(janus_explore_options options, janus_entry *entry)
{
    janus_explore_result result = scout(options, entry);
    CHECK_STR(result.message, "");
    return result;
}

static int64_t nothing(void *argument)
{
    (void)argument;
    return 0;
}

static int64_t wait_often(void *argument)
{
    int64_t result;
    (void)argument;
    for (int i = 0; i < 5; i++) {
        JANUS_IGNORE(janus_sleep(1000));
        JANUS_IGNORE(janus_blocking(nothing, NULL, &result));
        JANUS_IGNORE(janus_yield());
    }
    return 0;
}

static int64_t use_everything(void *argument)
{
    (void)argument;
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < 6; i++) JANUS_IGNORE(janus_spawn(n, wait_often, NULL));
    }
    CHECK(ended == JANUS_OK || ended == JANUS_CHILD_FAILED);
    return 0;
}

TEST("each fault changes what happens")
{
    janus_explore_options options = {.schedules = 10, .faults_every = 5};
    uint64_t              well = explore(options, use_everything).steps;
    for (uint32_t fault = JANUS_FAULT_MEMORY; fault <= JANUS_FAULT_DEATH; fault *= 2) {
        options.faults = fault;
        CHECK(explore(options, use_everything).steps != well);
    }
}

static int64_t keep_errno(void *argument)
{
    for (int i = 0; i < 5; i++) {
        errno = (int)(intptr_t)argument;
        janus_point();
        JANUS_EXPECT(errno == (int)(intptr_t)argument);
    }
    return 0;
}

static int64_t keep_two(void *argument)
{
    (void)argument;
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (intptr_t i = 1; i <= 3; i++) JANUS_IGNORE(janus_spawn(n, keep_errno, (void *)i));
    }
    CHECK_EQ(ended, JANUS_OK);
    return 0;
}

TEST("errno belongs to the part that set it")
{
    (void)explore((janus_explore_options){.schedules = 50}, keep_two);
}

static int raised;

static int64_t raise_it(void *argument)
{
    (void)argument;
    raised = 1;
    return 0;
}

static int64_t await_it(void *argument)
{
    (void)argument;
    raised = 0;
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        if (janus_spawn(n, raise_it, NULL) == JANUS_OK) {
            while (!raised) janus_point();
        }
    }
    CHECK_EQ(ended, JANUS_OK);
    return 0;
}

TEST("a part that polls lets others run, also if no choice was made")
{
    (void)explore((janus_explore_options){.replay = "1/w2/s1/c"}, await_it);
    (void)explore((janus_explore_options){.strategy = JANUS_STRATEGY_PCT, .schedules = 20},
                  await_it);
}

/* Two threads, each in a world of its own, wait for each other. */
static janus_channel there, back;

static int64_t ask(void *argument)
{
    (void)argument;
    for (int64_t i = 0, got = 0; i < 200; i++) {
        if (janus_channel_send(there, &i) != JANUS_OK) return -1;
        if (janus_channel_recv(back, &got) != JANUS_OK || got != i + 1) return -1;
    }
    return 0;
}

static int64_t answer(void *argument)
{
    (void)argument;
    for (int64_t i = 0, got = 0; i < 200; i++) {
        if (janus_channel_recv(there, &got) != JANUS_OK) return -1;
        got++;
        if (janus_channel_send(back, &got) != JANUS_OK) return -1;
    }
    return 0;
}

static void *run_world(void *argument)
{
    janus_status status =
        janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .deterministic_seed = 7,
                                          .no_deadlock_check = true),
                  argument != NULL ? ask : answer, NULL, NULL);
    CHECK_EQ(status, JANUS_OK);
    return NULL;
}

TEST("two worlds wake each other")
{
    pthread_t other;
    CHECK_EQ(janus_channel_create(sizeof(int64_t), 1, NULL, &there), JANUS_OK);
    CHECK_EQ(janus_channel_create(sizeof(int64_t), 1, NULL, &back), JANUS_OK);
    CHECK_EQ(pthread_create(&other, NULL, run_world, NULL), 0);
    (void)run_world(&there);
    CHECK_EQ(pthread_join(other, NULL), 0);
    CHECK_EQ(janus_channel_destroy(there), JANUS_OK);
    CHECK_EQ(janus_channel_destroy(back), JANUS_OK);
}
