/* SPDX-License-Identifier: MIT */
/* A spawner of many children gives way to them, where it may; and the children are counted. */
#include "rig.h"

#include "task/roster.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/work.h"

#include <stdio.h>

enum {
    CROWD = 5 * JRT_CROWD,
    /* Records beyond the bound: those that a worker keeps, one batch under way, the spawner. */
    SPARE = 4 * JRT_ROSTER_BATCH,
};

static int many(void) { return rig_simulated() ? CROWD : RIG_SLOW ? 100000 : 1000000; }

struct crowd {
    janus_scheduler *scheduler;
    atomic_int       ran, dropped, done;
    int              children;
    int              first;  /* children that had run at the first look */
    uint32_t         queued; /* the most that waited at once */
    janus_event      event;
};

static uint32_t queued_of(const struct crowd *crowd)
{
    janus_worker_info info = JANUS_WORKER_INFO();
    CHECK_EQ(janus_worker_inspect(crowd->scheduler, JANUS_ALL_WORKERS, &info), JANUS_OK);
    return (uint32_t)info.queued;
}

static uint64_t alive_in(janus_nursery *nursery)
{
    janus_nursery_info info = JANUS_NURSERY_INFO();
    CHECK_EQ(janus_nursery_inspect(nursery, &info), JANUS_OK);
    return info.children;
}

static int64_t start_many(void *argument)
{
    struct crowd *crowd = argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < crowd->children; i++) {
        CHECK_EQ(janus_spawn(&n, count_me, &crowd->ran), JANUS_OK);
        if (i % 61 != 0) continue;
        uint32_t queued = queued_of(crowd);
        if (queued > crowd->queued) crowd->queued = queued;
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(atomic_load(&crowd->ran), crowd->children);
    return 0;
}

TEST("a spawner of a million children needs the records of a thousand")
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers));
        struct crowd     crowd = {.scheduler = scheduler, .children = many()};
        rig_do(scheduler, start_many, &crowd);
        /* A thief has a shelf of its own, and the spawner may come to it. */
        CHECK(crowd.queued <= workers * (JRT_CROWD + JRT_FREE_MAX));
        CHECK(jrt_roster_count(&scheduler->roster) <= workers * (JRT_CROWD + SPARE));
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

static int64_t start_with_options(void *argument)
{
    struct crowd *crowd = argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < CROWD; i++) {
        janus_task_id id;
        janus_status  status = janus_spawn_with(
            &n, count_me, &crowd->ran, JANUS_SPAWN_OPTIONS(.name = "one", .unjoinable = true), &id);
        CHECK_EQ(status, JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(atomic_load(&crowd->ran), CROWD);
    return 0;
}

TEST("a spawn with options gives way, too")
{
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
    struct crowd     crowd = {.scheduler = scheduler};
    rig_do(scheduler, start_with_options, &crowd);
    CHECK(jrt_roster_count(&scheduler->roster) <= JRT_CROWD + SPARE);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

static int64_t hold_and_start(void *argument)
{
    struct crowd *crowd = argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    janus_hold_begin();
    for (int i = 0; i < CROWD; i++) CHECK_EQ(janus_spawn(&n, count_me, &crowd->ran), JANUS_OK);
    CHECK_EQ(atomic_load(&crowd->ran), 0);
    CHECK_EQ(queued_of(crowd), CROWD);
    janus_hold_end();
    CHECK_EQ(janus_spawn(&n, count_me, &crowd->ran), JANUS_OK);
    for (int i = 0; i < JRT_FREE_MAX; i++) {
        CHECK_EQ(janus_spawn(&n, count_me, &crowd->ran), JANUS_OK);
    }
    CHECK(atomic_load(&crowd->ran) > 0); /* it gave way soon after */
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    /* The large shelf is no reason to let the next crowd grow as large. */
    crowd->children = CROWD;
    atomic_store(&crowd->ran, 0);
    return start_many(crowd);
}

TEST("in a hold a spawner does not give way, and afterwards it does")
{
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
    struct crowd     crowd = {.scheduler = scheduler};
    rig_do(scheduler, hold_and_start, &crowd);
    CHECK(crowd.queued <= JRT_CROWD + JRT_FREE_MAX);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

static void drop_one(void *argument) { atomic_fetch_add(&((struct crowd *)argument)->dropped, 1); }

static int64_t fail_at_once(void *argument)
{
    atomic_fetch_add(&((struct crowd *)argument)->ran, 1);
    return -7;
}

static int64_t start_until_closed(void *argument)
{
    struct crowd *crowd = argument;
    janus_nursery n;
    janus_status  status = JANUS_OK;
    int           started = 0;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    while (status == JANUS_OK && started < 2 * CROWD) {
        status =
            janus_spawn_with(&n, fail_at_once, crowd, JANUS_SPAWN_OPTIONS(.drop = drop_one), NULL);
        if (status == JANUS_OK) started++;
    }
    CHECK_EQ(status, JANUS_CLOSED);
    CHECK(started <= JRT_CROWD + JRT_FREE_MAX);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    CHECK_EQ(atomic_load(&crowd->ran) + atomic_load(&crowd->dropped), started);
    return 0;
}

TEST("a spawner that gave way learns that its nursery was cancelled, and no child is lost")
{
    struct crowd crowd = {.children = 0};
    rig_run(1, start_until_closed, &crowd, 1);
}

static int64_t wait_for_event(void *argument)
{
    struct crowd *crowd = argument;
    atomic_fetch_add(&crowd->ran, 1);
    return janus_event_wait(&crowd->event);
}

/* Every hundredth child waits. */
static int64_t some_wait(void *argument)
{
    struct crowd *crowd = argument;
    janus_nursery n;
    int           waiting = 0;
    janus_event_init(&crowd->event, JANUS_WAKER_TASKS, NULL);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < CROWD; i++) {
        bool waits = i % 100 == 50;
        CHECK_EQ(janus_spawn(&n, waits ? wait_for_event : count_me,
                             waits ? (void *)crowd : (void *)&crowd->ran),
                 JANUS_OK);
        waiting += waits;
    }
    uint64_t limit = janus_now_ns() + rig_patience;
    while (atomic_load(&crowd->ran) < CROWD && janus_now_ns() < limit) {
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    /* The others have ended, and no waiting task keeps them from being counted. */
    while (alive_in(&n) != (uint64_t)waiting && janus_now_ns() < limit) {
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    CHECK_EQ(alive_in(&n), waiting);
    janus_event_set(&crowd->event);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("children that wait in the middle of a crowd are the only ones left")
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        struct crowd crowd = {.children = 0};
        rig_run(workers, some_wait, &crowd, 1);
    }
}

/* The oldest child waits, after the others ended in the same run. */
static int64_t oldest_waits(void *argument)
{
    enum { OTHERS = 20 };
    struct crowd *crowd = argument;
    janus_nursery n;
    atomic_store(&crowd->ran, 0);
    janus_event_init(&crowd->event, JANUS_WAKER_TASKS, NULL);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, wait_for_event, crowd), JANUS_OK);
    for (int i = 0; i < OTHERS; i++) CHECK_EQ(janus_spawn(&n, count_me, &crowd->ran), JANUS_OK);
    while (atomic_load(&crowd->ran) <= OTHERS) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(alive_in(&n), 1);
    janus_event_set(&crowd->event);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a child that waits counts those off that ended before it on the same stack")
{
    struct crowd crowd = {.children = 0};
    rig_run(1, oldest_waits, &crowd, 20);
}

struct beside {
    struct crowd crowd;
    int          turns, most; /* of the neighbour; children that ran between two of them */
};

static int64_t yield_beside(void *argument)
{
    struct beside *beside = argument;
    int            before = atomic_load(&beside->crowd.ran);
    while (!atomic_load(&beside->crowd.done)) {
        CHECK_EQ(janus_yield(), JANUS_OK);
        int now = atomic_load(&beside->crowd.ran);
        if (now - before > beside->most) beside->most = now - before;
        before = now;
        beside->turns++;
    }
    return 0;
}

static int64_t start_beside(void *argument)
{
    struct beside *beside = argument;
    int64_t        result = start_many(&beside->crowd);
    atomic_store(&beside->crowd.done, 1);
    return result;
}

static int64_t both_at_once(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, start_beside, argument), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, yield_beside, argument), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a neighbour that yields has its turns between the children of a crowd")
{
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
    struct beside    beside = {.crowd = {.scheduler = scheduler, .children = 20 * JRT_CROWD}};
    rig_do(scheduler, both_at_once, &beside);
    printf("# %d turns, at most %d children between two\n", beside.turns, beside.most);
    CHECK(beside.turns >= 20);
    CHECK(beside.most <= 2 * JRT_CROWD);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* Spawners that hold something while they give way. */

static void start_some(struct crowd *crowd)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 3 * JRT_CROWD; i++) {
        CHECK_EQ(janus_spawn(&n, count_me, &crowd->ran), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
}

static void start_in_defer(void *argument) { start_some(argument); }

static int64_t start_in_branch(void *argument)
{
    start_some(argument);
    return 0;
}

struct locked {
    struct crowd *crowd;
    janus_mutex   mutex;
    int           inside; /* guarded by the mutex, and each task adds before it gives way */
};

static int64_t start_locked(void *argument)
{
    struct locked *locked = argument;
    CHECK_EQ(janus_mutex_lock(&locked->mutex), JANUS_OK);
    CHECK_EQ(locked->inside++, 0);
    start_some(locked->crowd);
    CHECK_EQ(--locked->inside, 0);
    CHECK_EQ(janus_mutex_unlock(&locked->mutex), JANUS_OK);
    CHECK_EQ(janus_defer(start_in_defer, locked->crowd), JANUS_OK);
    janus_shield_begin();
    start_some(locked->crowd);
    janus_shield_end();
    return 0;
}

static int64_t start_everywhere(void *argument)
{
    enum { STARTERS = 3 };
    struct crowd *crowd = argument;
    struct locked locked = {.crowd = crowd};
    janus_nursery n;
    janus_mutex_init(&locked.mutex, "crowd");
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < STARTERS; i++) CHECK_EQ(janus_spawn(&n, start_locked, &locked), JANUS_OK);
    CHECK_EQ(janus_both(start_in_branch, crowd, start_in_branch, crowd), 0);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(atomic_load(&crowd->ran), 3 * JRT_CROWD * (3 * STARTERS + 2));
    atomic_store(&crowd->ran, 0);
    return 0;
}

TEST("a spawner gives way with a lock, in a shield, a defer and a branch, and keeps what it holds")
{
    struct crowd crowd = {.ran = 0};
    rig_all(start_everywhere, &crowd, 2);
}
