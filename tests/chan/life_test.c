/* SPDX-License-Identifier: MIT */
/* How long channels live, what pays for them, and how many there may be. */
#include "channels.h"

#include <string.h>

static janus_channel open_kept(uint64_t capacity)
{
    janus_channel channel;
    CHECK_EQ(janus_channel_create(sizeof(int64_t), capacity, JANUS_CHANNEL_OPTIONS(.kept = true),
                                  &channel),
             JANUS_OK);
    return channel;
}

static bool is_gone(janus_channel channel)
{
    janus_channel_info info = JANUS_CHANNEL_INFO();
    janus_status       status = janus_channel_inspect(channel, &info);
    CHECK(status == JANUS_OK || status == JANUS_STALE);
    return status == JANUS_STALE;
}

/* Life. */

struct forgetful {
    janus_channel forgotten, kept;
};

static int64_t forget(void *argument)
{
    struct forgetful *made = argument;
    int64_t           value = 7;
    made->forgotten = open_channel(3);
    made->kept = open_kept(3);
    CHECK_EQ(janus_channel_send(made->forgotten, &value), JANUS_OK);
    CHECK_EQ(janus_channel_send(made->kept, &value), JANUS_OK);
    return 0;
}

static int64_t outlive(void *argument)
{
    struct forgetful made;
    int64_t          value = 0;
    janus_nursery    n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, forget, &made), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK(is_gone(made.forgotten));
    CHECK_EQ(janus_channel_recv(made.forgotten, &value), JANUS_STALE);
    CHECK_EQ(janus_channel_recv(made.kept, &value), JANUS_OK);
    CHECK_EQ(value, 7);
    destroy(made.kept);
    return 0;
}

TEST("a channel that a task forgot ends with the task, and a kept channel does not")
{
    rig_all(outlive, NULL, REPEATS);
}

static int64_t open_and_wait(void *argument)
{
    janus_channel *made = argument;
    made[0] = open_channel(0);
    CHECK_EQ(janus_channel_send(made[1], &(int64_t){1}), JANUS_OK); /* the channel exists */
    await_waiting(made[0], 0, 1);
    return 0;
}

static int64_t wait_for_end(void *argument)
{
    janus_channel *made = argument;
    int64_t        value = 0;
    CHECK_EQ(janus_channel_recv(made[1], &value), JANUS_OK);
    CHECK_EQ(janus_channel_recv(made[0], &value), JANUS_CLOSED);
    CHECK_EQ(janus_channel_recv(made[0], &value), JANUS_STALE);
    return 0;
}

static int64_t end_under_waiter(void *argument)
{
    janus_channel made[2] = {{{0, 0}}, open_channel(1)};
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, wait_for_end, made), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, open_and_wait, made), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    destroy(made[1]);
    return 0;
}

TEST("a task that waits at a channel whose task ends gets CLOSED, and then STALE")
{
    rig_all(end_under_waiter, NULL, REPEATS);
}

/* Two tasks end it at the same moment: its own task by ending, and another by destroying it. */
static int64_t destroy_late(void *argument)
{
    janus_channel *made = argument;
    int64_t        value = 0;
    CHECK_EQ(janus_channel_recv(made[1], &value), JANUS_OK);
    janus_status status = janus_channel_destroy(made[0]);
    CHECK(status == JANUS_OK || status == JANUS_STALE);
    return 0;
}

static int64_t open_and_end(void *argument)
{
    janus_channel *made = argument;
    made[0] = open_channel(8);
    return janus_channel_send(made[1], &(int64_t){1});
}

static int64_t end_twice(void *argument)
{
    janus_channel made[2] = {{{0, 0}}, open_channel(1)};
    janus_nursery n;
    (void)argument;
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, destroy_late, made), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, open_and_end, made), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        CHECK(is_gone(made[0]));
    }
    destroy(made[1]);
    return 0;
}

TEST("a channel may be destroyed at the moment at which its task ends")
{
    rig_all(end_twice, NULL, REPEATS);
}

/* Nothing outlives a nursery under its terms. */

static const janus_budget pool = {100000, 100000, 100, 5000, 0};

static int64_t end_with_terms(void *argument)
{
    struct forgetful made;
    janus_nursery    n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, forget, &made), JANUS_OK);
    CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_OK);
    CHECK(is_gone(made.forgotten));
    CHECK(!is_gone(made.kept));
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK(is_gone(made.kept));
    return 0;
}

TEST("a kept channel ends with the nursery on whose terms it was opened")
{
    rig_all(end_with_terms, NULL, REPEATS);
}

/* Memory. */

static int64_t pay(void *argument)
{
    (void)argument;
    janus_channel channel, none = {{0, 0}};
    uint64_t      before = janus_budget_get_current().memory;
    CHECK_EQ(janus_channel_create(100, 30, NULL, &channel), JANUS_OK);
    CHECK_EQ(janus_budget_get_current().memory, before - 512 - 3000);
    CHECK_EQ(janus_channel_close(channel), JANUS_OK);
    CHECK_EQ(janus_budget_get_current().memory, before - 512 - 3000);
    CHECK_EQ(janus_channel_create(1, before, JANUS_CHANNEL_OPTIONS(.kept = true), &none),
             before > 10000 ? JANUS_CAP_LIMIT : JANUS_BUDGET_EXHAUSTED);
    CHECK_EQ(janus_channel_create(before, 1, NULL, &none), JANUS_BUDGET_EXHAUSTED);
    CHECK_EQ(janus_budget_get_current().memory, before - 512 - 3000);
    destroy(channel);
    CHECK_EQ(janus_budget_get_current().memory, before);
    return 0;
}

TEST("a channel's memory is charged to its task, returned at its end, and refused if it lacks")
{
    rig_all(pay, NULL, 2);
}

struct rich {
    janus_channel channel;
    janus_channel ready;
};

static int64_t destroy_for_it(void *argument)
{
    struct rich *rich = argument;
    destroy(rich->channel);
    return 0;
}

static int64_t use_it_again(void *argument)
{
    struct rich rich;
    uint64_t    before = janus_budget_get_current().memory;
    void       *block = NULL;
    (void)argument;
    CHECK_EQ(janus_channel_create(before - 4096, 1, NULL, &rich.channel), JANUS_OK);
    CHECK_EQ(janus_try_alloc(8192, &block), JANUS_BUDGET_EXHAUSTED);
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, destroy_for_it, &rich), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_try_alloc(8192, &block), JANUS_OK);
    janus_free(block);
    CHECK_EQ(janus_budget_get_current().memory, before);
    return 0;
}

TEST("if another task destroys a channel, its maker gets the memory back")
{
    rig_all(use_it_again, NULL, REPEATS);
}

/* A pool whose children open channels and forget them does not run dry. */
static int64_t open_large(void *argument)
{
    janus_channel channel;
    (void)argument;
    return janus_channel_create(20000, 1, NULL, &channel);
}

static int64_t refill(void *argument)
{
    const janus_budget share = {1000, 40000, 0, 10, 0};
    janus_nursery      n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    for (int i = 0; i < 20; i++) {
        janus_task_id id;
        int64_t       result = 1;
        CHECK_EQ(janus_spawn_with(&n, open_large, NULL, JANUS_SPAWN_OPTIONS(.budget = &share), &id),
                 JANUS_OK);
        CHECK_EQ(janus_join(&n, id, &result), JANUS_OK);
        CHECK_EQ(result, JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("the memory of a forgotten channel goes back to the pool of its task")
{
    rig_all(refill, NULL, 2);
}

/* Limits. */

enum { MOST = 5 };

static void fill(janus_channel *made, int count)
{
    janus_channel more = {{0, 0}};
    for (int i = 0; i < count; i++) made[i] = open_channel(1);
    CHECK_EQ(janus_channel_create(8, 1, NULL, &more), JANUS_CHANNEL_LIMIT);
    char text[400];
    CHECK(janus_explain(text, sizeof text) > 0);
    CHECK(strstr(text, "5 of 5 used") != NULL);
    CHECK(strstr(text, "max_channels") != NULL);
    CHECK(strstr(text, "Destroy unused channels") != NULL);
    CHECK_EQ(janus_channel_close(made[0]), JANUS_OK); /* close frees nothing, as documented */
    CHECK_EQ(janus_channel_create(8, 1, NULL, &more), JANUS_CHANNEL_LIMIT);
    destroy(made[0]);
    made[0] = open_channel(1);
}

static int64_t fill_up(void *argument)
{
    janus_channel made[MOST];
    (void)argument;
    fill(made, MOST);
    return 0;
}

static int64_t set_limits(void *argument)
{
    janus_channel made[MOST], large;
    (void)argument;
    CHECK_EQ(janus_channel_create(1, 20001, NULL, &large), JANUS_CAP_LIMIT);
    CHECK_EQ(janus_channel_create(1, 20000, NULL, &large), JANUS_OK);
    destroy(large);
    fill(made, MOST);
    for (int i = 0; i < MOST; i++) destroy(made[i]);
    for (int i = 0; i < 20; i++) { /* forgotten channels do not count for ever */
        janus_nursery n;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, fill_up, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    }
    return 0;
}

TEST("the options limit a scheduler's channels, and the values in each")
{
    janus_scheduler *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .max_channels = MOST,
                                         .max_channel_values = 20000));
    rig_do(scheduler, set_limits, NULL);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* One pool fills its limit. Others, and tasks outside pools, keep theirs. */
static int64_t fill_pools(void *argument)
{
    janus_channel mine[MOST], more;
    janus_nursery bad, good;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&bad, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    fill(mine, MOST); /* in the innermost nursery: they count for that pool */
    CHECK_EQ(janus_nursery_open(&good, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(janus_channel_create(8, 1, NULL, &more), JANUS_CHANNEL_LIMIT); /* inside the full
                                                                             * pool */
    CHECK_EQ(janus_nursery_end(&good, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&bad, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&good, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(janus_spawn(&good, fill_up, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&good, NULL), JANUS_OK);
    janus_channel outside[MOST];
    fill(outside, MOST);
    return 0;
}

TEST("channels that one pool has used up refuse no task outside it")
{
    janus_scheduler *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .max_channels = MOST));
    rig_do(scheduler, fill_pools, NULL);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* Names. */

static int64_t name_it(void *argument)
{
    char               name[100];
    janus_channel      channel;
    janus_channel_info info = JANUS_CHANNEL_INFO();
    (void)argument;
    memset(name, 'x', sizeof name);
    name[99] = 0;
    CHECK_EQ(janus_channel_create(8, 1, JANUS_CHANNEL_OPTIONS(.name = name), &channel), JANUS_OK);
    memset(name, 'y', sizeof name);
    CHECK_EQ(janus_channel_inspect(channel, &info), JANUS_OK);
    CHECK_EQ(strlen(info.name), 31);
    CHECK_EQ(info.name[0], 'x');
    destroy(channel);
    return 0;
}

TEST("a channel's name is copied, up to 31 bytes")
{
    CHECK_EQ(name_it(NULL), 0);
    rig_run(1, name_it, NULL, 1);
}
