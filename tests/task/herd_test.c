/* SPDX-License-Identifier: MIT */
/* What a worker makes of its task's channel operations, [herd-gather]. */
#include "rig.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/herd.h"

static int64_t judge(void *argument)
{
    struct jrt_worker *worker = jrt_worker_self();
    (void)argument;
    worker->herd = (struct jrt_herd){.waited_ns = 5000};
    jrt_herd_judge(worker, worker->current, 1000, 16);
    CHECK(worker->herd.own_ns <= 1000);
    worker->herd.waited_ns = 400;
    jrt_herd_judge(worker, worker->current, 1000, 16);
    CHECK(worker->herd.own_ns >= 600 && worker->herd.own_ns <= 1600);
    worker->herd = (struct jrt_herd){0};
    return 0;
}

TEST("a wait for a channel that began before the last look does not count twice")
{
    rig_run(2, judge, NULL, 1);
}

/* Both tasks are on the CPU at once, so one of them is on worker 1. */
static int64_t retreat(void *argument)
{
    atomic_int *arrived = argument;
    uint64_t    limit = janus_now_ns() + rig_patience;
    atomic_fetch_add(arrived, 1);
    while (atomic_load(arrived) < 2) CHECK(janus_now_ns() < limit);
    struct jrt_worker *worker = jrt_worker_self();
    struct jrt_task   *self = worker->current;
    if (worker->index == 0) return 0;
    worker->herd = (struct jrt_herd){.met = &worker->scheduler->workers[0], .wanted = true};
    worker->lanes |= JRT_IN_PUBLIC; /* as jrt_herd_judge */
    CHECK(jrt_herd_leaves(worker)); /* no task waits here */
    CHECK_EQ(worker->herd.retreats, 0);
    worker->current = NULL; /* as in the loop */
    CHECK(jrt_herd_leaves(worker));
    worker->current = self;
    CHECK_EQ(worker->herd.retreats, 1);
    CHECK_EQ(worker->lanes, 0); /* otherwise it would not look at its set */
    return 0;
}

static int64_t retreat_beside(void *argument)
{
    atomic_int    arrived = 0;
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_spawn(&n, retreat, &arrived), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a worker that retreats without tasks knows that it has none")
{
    RIG_REAL("two workers at once");
    rig_run(2, retreat_beside, NULL, 10);
}

/* A channel is opened, used and destroyed, and its place is free for the next. */
static int64_t use_a_channel(void *argument)
{
    struct jrt_worker *worker = jrt_worker_self();
    janus_channel      channel;
    int64_t            value = 1;
    (void)argument;
    worker->herd = (struct jrt_herd){0};
    CHECK_EQ(janus_channel_create(sizeof value, 1, NULL, &channel), JANUS_OK);
    CHECK_EQ(janus_channel_send(channel, &value), JANUS_OK);
    CHECK_EQ(worker->herd.meets, 0);
    CHECK(worker->herd.met == NULL);
    CHECK_EQ(janus_channel_destroy(channel), JANUS_OK);
    return 0;
}

TEST("a worker does not meet the last worker of a channel that had the same place")
{
    janus_scheduler *first = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
    janus_scheduler *second = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
    rig_do(first, use_a_channel, NULL);
    rig_do(second, use_a_channel, NULL);
    CHECK_EQ(janus_scheduler_destroy(second), JANUS_OK);
    CHECK_EQ(janus_scheduler_destroy(first), JANUS_OK);
}
