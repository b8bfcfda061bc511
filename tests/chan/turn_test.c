/* SPDX-License-Identifier: MIT */
/* Who runs when tasks serve each other. */
#include "quay.h"

/* Taking turns. */

struct hog {
    janus_channel channel;
    atomic_int    others, done;
};

static int64_t talk_to_itself(void *argument)
{
    struct hog *hog = argument;
    int64_t     value = 0;
    uint64_t    limit = janus_now_ns() + 20000 * town_ms;
    while (!atomic_load(&hog->others)) {
        CHECK_EQ(janus_channel_send(hog->channel, &value), JANUS_OK);
        CHECK_EQ(janus_channel_recv(hog->channel, &value), JANUS_OK);
        CHECK(janus_now_ns() < limit);
    }
    return 0;
}

static int64_t run_after_yield(void *argument)
{
    struct hog *hog = argument;
    CHECK_EQ(janus_yield(), JANUS_OK);
    atomic_store(&hog->others, 1);
    return 0;
}

static int64_t share(void *argument)
{
    struct hog hog = {.channel = open_channel(1)};
    (void)argument;
    JANUS_NURSERY(n)
    {
        janus_spawn(n, talk_to_itself, &hog);
        janus_spawn(n, run_after_yield, &hog);
    }
    destroy(hog.channel);
    return 0;
}

TEST("a task whose channel is always ready lets others run") { town_run(1, share, NULL, 3); }

/* Served by a task that does not wait afterwards. */

struct busy {
    janus_channel channel;
    atomic_int    ran;
};

static int64_t be_served(void *argument)
{
    struct busy *busy = argument;
    int64_t      value = 0;
    CHECK_EQ(janus_channel_recv(busy->channel, &value), JANUS_OK);
    atomic_store(&busy->ran, 1);
    return 0;
}

static int64_t serve_and_keep_worker(void *argument)
{
    struct busy *busy = argument;
    int64_t      value = 1;
    uint64_t     limit = janus_now_ns() + 20000 * town_ms;
    await_waiting(busy->channel, 0, 1);
    CHECK_EQ(janus_channel_send(busy->channel, &value), JANUS_OK);
    while (!atomic_load(&busy->ran)) CHECK(janus_now_ns() < limit); /* without giving way */
    return 0;
}

static int64_t keep_all_busy(void *argument)
{
    int         pairs = *(int *)argument;
    struct busy busy[3];
    JANUS_NURSERY(n)
    {
        for (int i = 0; i < pairs; i++) {
            busy[i].channel = open_channel(0);
            atomic_store(&busy[i].ran, 0);
            janus_spawn(n, be_served, &busy[i]);
            janus_spawn(n, serve_and_keep_worker, &busy[i]);
        }
    }
    for (int i = 0; i < pairs; i++) destroy(busy[i].channel);
    return 0;
}

TEST("a task that was served by one that keeps its worker runs on another")
{
    for (int pairs = 1; pairs < 4; pairs++) {
        town_run((uint32_t)pairs + 1, keep_all_busy, &pairs, REPEATS);
    }
}
