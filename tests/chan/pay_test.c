/* SPDX-License-Identifier: MIT */
/* What channels cost, and how many a task may make: SCHED:3.3.1, CAP:5, and floods of
 * SCHED:15.1.1. */
#include "../task/energy.h"

static janus_channel channel_for(uint64_t capacity, janus_overflow overflow)
{
    janus_channel channel;
    CHECK_EQ(
        janus_channel_create(8, capacity, JANUS_CHANNEL_OPTIONS(.overflow = overflow), &channel),
        JANUS_OK);
    return channel;
}

static void costs(janus_budget before, janus_budget price)
{
    janus_budget after = janus_budget_get_current();
    CHECK_EQ(janus_budget_charge(&before, price), JANUS_COMPONENT_NONE);
    CHECK(janus_budget_equal(before, after));
}

static int64_t nothing_blocking(void *argument)
{
    (void)argument;
    return 7;
}

static int64_t prices(void *argument)
{
    (void)argument;
    uint64_t           value = 1;
    const janus_budget one = janus_budget_of(1, 0, 0, 1, 0);
    janus_channel      channel = channel_for(4, JANUS_OVERFLOW_BLOCK);
    janus_budget       before = janus_budget_get_current();
    CHECK_EQ(janus_channel_send(channel, &value), JANUS_OK);
    costs(before, one);
    before = janus_budget_get_current();
    CHECK_EQ(janus_channel_recv(channel, &value), JANUS_OK);
    costs(before, one);
    before = janus_budget_get_current();
    CHECK_EQ(janus_channel_try_recv(channel, &value), JANUS_WOULD_WAIT);
    costs(before, janus_budget_of(1, 0, 0, 0, 0)); /* the attempt */
    static janus_select_case cases[200];
    for (uint32_t i = 0; i < 200; i++) cases[i] = (janus_select_case){.channel = channel};
    for (uint32_t i = 0; i < 200; i++) cases[i].value = &value;
    for (uint32_t count = 1; count <= 200; count += 66) {
        before = janus_budget_get_current();
        CHECK_EQ(janus_try_select(cases, count, NULL), JANUS_WOULD_WAIT);
        costs(before, janus_budget_of(count, 0, 0, 0, 0));
    }
    before = janus_budget_get_current();
    int64_t result = 0;
    CHECK_EQ(janus_blocking(nothing_blocking, NULL, &result), JANUS_OK);
    costs(before, janus_budget_of(1, 0, 0, 0, 1));
    CHECK_EQ(result, 7);
    CHECK_EQ(janus_channel_destroy(channel), JANUS_OK);
    return 0;
}

/* SCHED:3.3.1/channel-send, channel-recv, file-I/O. */
TEST("a send and a receive cost an op and a channel operation, a failed try an op, a select many")
{
    rig_all(prices, NULL, 3);
}

/* Floods. */

static janus_channel flooded;

static int64_t flood(void *argument)
{
    atomic_int *sent = argument;
    for (uint64_t value = 0;; value++) {
        janus_status status = janus_channel_send(flooded, &value);
        if (status != JANUS_OK) return status;
        atomic_fetch_add(sent, 1);
    }
}

static int64_t contain_flood(void *argument)
{
    (void)argument;
    const janus_budget   pool = {100000, 4096, 1, 5000, 0};
    atomic_int           sent = 0, finished = 0;
    janus_nursery        bad, good;
    janus_nursery_result result;
    flooded = channel_for(8, JANUS_OVERFLOW_DROP_OLDEST);
    CHECK_EQ(janus_nursery_open(&good, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&bad, JANUS_NURSERY_OPTIONS(.budget = &pool, .name = "bad")),
             JANUS_OK); /* the profile allows 1000 operations on channels */
    CHECK_EQ(janus_spawn(&bad, flood, &sent), JANUS_OK);
    for (int i = 0; i < 20; i++) CHECK_EQ(janus_spawn(&good, count_me, &finished), JANUS_OK);
    CHECK_EQ(janus_nursery_await_with(&good, NULL), JANUS_OK);
    CHECK_EQ(finished, 20);
    CHECK_EQ(janus_nursery_await_with(&bad, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.error, JANUS_BUDGET_EXHAUSTED);
    check_failure_says(&bad, "channel_ops", "1000 of 1000 used");
    CHECK_EQ(sent, 1000);
    CHECK_EQ(janus_nursery_end(&bad, NULL), JANUS_CHILD_FAILED);
    CHECK_EQ(janus_nursery_end(&good, NULL), JANUS_OK);
    CHECK_EQ(janus_channel_destroy(flooded), JANUS_OK);
    return 0;
}

/* SCHED:15.1.1, C4. */
TEST("a flood of sends ends when its pool's channel operations are used up, and names them")
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        CHECK_EQ(
            janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers), contain_flood, NULL, NULL),
            JANUS_OK);
    }
}

enum { MOST = 1000 };

static int64_t make_many(void *argument)
{
    janus_channel *made = argument;
    janus_channel  more;
    for (int i = 0; i < MOST; i++) made[i] = channel_for(1, JANUS_OVERFLOW_BLOCK);
    CHECK_EQ(janus_channel_create(8, 1, NULL, &more), JANUS_CHANNEL_LIMIT);
    CHECK_EQ(janus_channel_destroy(made[7]), JANUS_OK);
    made[7] = channel_for(1, JANUS_OVERFLOW_BLOCK);
    CHECK_EQ(janus_channel_create(8, 10001, NULL, &more), JANUS_CAP_LIMIT);
    for (int i = 0; i < MOST; i++) CHECK_EQ(janus_channel_destroy(made[i]), JANUS_OK);
    CHECK_EQ(janus_channel_create((size_t)2 << 20, 1, NULL, &more), JANUS_BUDGET_EXHAUSTED);
    CHECK_EQ(janus_channel_create(8, 10000, JANUS_CHANNEL_OPTIONS(.kept = true), &made[0]),
             JANUS_OK);
    return 0;
}

/* CAP:5.2.1/buffer, count, 7.3.2/channels, 11.2.1/ChannelLimitExceeded, 9.3.1/channel. */
TEST("a task makes as many channels as its profile allows, and one outlives the scheduler")
{
    static janus_channel made[MOST];
    uint64_t             value = 3;
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 2), make_many, made, NULL),
             JANUS_OK);
    CHECK_EQ(janus_channel_try_send(made[0], &value), JANUS_OK);
    CHECK_EQ(janus_channel_destroy(made[0]), JANUS_OK);
}

static int64_t use_handle(void *argument)
{
    uint64_t      value = 5;
    janus_channel more;
    CHECK_EQ(janus_channel_create(8, 1, NULL, &more), JANUS_NO_CHANNEL_CAP);
    return janus_channel_send(*(janus_channel *)argument, &value);
}

static int64_t sovereign(void *argument)
{
    janus_channel   *channel = argument;
    janus_authority *root;
    janus_cap        spawn;
    janus_nursery    n;
    CHECK_EQ(janus_authority_take(NULL, &root), JANUS_OK);
    const janus_cap_limits limits = {
        .spawn = {.max_tasks = 3, .task_budget = {.ops = 1000, .channel_ops = 10}}};
    CHECK_EQ(janus_cap_mint(root, 0,
                            JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_SPAWN,
                                            .rights = JANUS_RIGHTS_ALL, .limits = &limits),
                            &spawn),
             JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.spawn_cap = spawn)), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, use_handle, channel), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

/* CAP:1.1.2/channel, 5.2.2. */
TEST("in :sovereign a channel needs a capability to be made, and only a handle to be used")
{
    janus_channel channel = channel_for(4, JANUS_OVERFLOW_BLOCK);
    uint64_t      value = 0;
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .yield_interval = 9,
                                               .profile = JANUS_PROFILE_SOVEREIGN),
                       sovereign, &channel, NULL),
             JANUS_OK);
    CHECK_EQ(janus_channel_try_recv(channel, &value), JANUS_OK);
    CHECK_EQ(value, 5);
    CHECK_EQ(janus_channel_destroy(channel), JANUS_OK);
}
