/* SPDX-License-Identifier: MIT */
/*
 * Worker threads that the test ends between tasks, and threads that cannot be replaced. Tasks that
 * end their own thread are in death_test.c.
 */
#include "cancel/cancel.h"
#include "cancel/park.h"
#include "rig.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/crew.h"
#include "work/work.h"

#include <string.h>

enum { REPEATS = RIG_SLOW ? 2 : 20 };

static const uint32_t counts[] = {1, 2, 8};
enum { COUNTS = sizeof counts / sizeof counts[0] };

static uint64_t restarts(const janus_scheduler *scheduler, uint32_t worker)
{
    janus_worker_info stats = JANUS_WORKER_INFO();
    CHECK_EQ(janus_worker_inspect(scheduler, worker, &stats), JANUS_OK);
    return stats.restarts;
}

static janus_scheduler *open_with(uint32_t workers, bool no_stealing)
{
    return rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .no_stealing = no_stealing));
}

/* On a plain thread: yields until the worker has had this many new threads. */
static void await_restarts(const janus_scheduler *scheduler, uint32_t worker, uint64_t wanted)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    while (restarts(scheduler, worker) < wanted && janus_now_ns() < limit) jrt_thread_yield();
    CHECK_EQ(restarts(scheduler, worker), wanted);
}

/* Asleep. */

TEST("a thread that ends while its worker sleeps is replaced, and the new one works")
{
    for (int c = 0; c < COUNTS; c++) {
        janus_scheduler *scheduler = open_with(counts[c], false);
        for (uint64_t round = 1; round <= rig_few(REPEATS); round++) {
            atomic_int ran = 0;
            for (uint32_t i = 0; i < counts[c]; i++) jrt_worker_doom(scheduler, i);
            for (uint32_t i = 0; i < counts[c]; i++) await_restarts(scheduler, i, round);
            for (int i = 0; i < 20; i++) rig_do(scheduler, count_me, &ran);
            CHECK_EQ(ran, 20);
        }
        CHECK_EQ(restarts(scheduler, UINT32_MAX), rig_few(REPEATS) * counts[c]);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

TEST("a scheduler can be stopped at any moment of replacing a thread")
{
    for (uint64_t i = 0; i < rig_few(20 * REPEATS); i++) {
        uint32_t         count = counts[i % COUNTS];
        janus_scheduler *scheduler = open_with(count, false);
        if (i % 2 == 0) jrt_worker_doom(scheduler, 0);
        for (uint32_t j = 0; j < count; j++) jrt_worker_doom(scheduler, j);
        for (uint64_t j = 0; j < i % 7; j++) jrt_thread_yield();
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

static int64_t sleep_briefly(void *argument)
{
    CHECK_EQ(janus_sleep(2 * rig_ms), JANUS_OK);
    return count_me(argument);
}

TEST("timers fire although every thread that could wait for them has ended")
{
    for (int c = 0; c < COUNTS; c++) {
        janus_scheduler *scheduler = open_with(counts[c], false);
        for (uint64_t round = 0; round < rig_few(REPEATS); round++) {
            atomic_int    rung = 0;
            janus_nursery root;
            CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
            for (int i = 0; i < 10; i++)
                CHECK_EQ(janus_spawn(&root, sleep_briefly, &rung), JANUS_OK);
            for (uint32_t i = 0; i < counts[c]; i++) jrt_worker_doom(scheduler, i);
            CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_OK);
            CHECK_EQ(rung, 10);
        }
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

/* With tasks queued. */

struct scene {
    janus_scheduler *scheduler;
    bool             doom_others;
    atomic_int       ran;
};

static int64_t go_and_come(void *argument)
{
    CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_sleep(1000), JANUS_OK);
    CHECK_EQ(janus_yield(), JANUS_OK);
    return count_me(argument);
}

enum { CROWD = RIG_SLOW ? 200 : 1000 };

/* Queues its children, then ends the thread on which they, and itself, would go on. */
static int64_t crowd_on_doomed(void *argument)
{
    struct scene *scene = argument;
    janus_nursery n;
    atomic_store(&scene->ran, 0);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < CROWD; i++) CHECK_EQ(janus_spawn(&n, go_and_come, &scene->ran), JANUS_OK);
    uint32_t self = jrt_worker_self()->index;
    jrt_worker_doom(scene->scheduler, self);
    for (uint32_t i = 0; i < scene->scheduler->worker_count && scene->doom_others; i++) {
        if (i != self) jrt_worker_doom(scene->scheduler, i);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(scene->ran, CROWD);
    return 0;
}

TEST("tasks queued on a worker whose thread ends run exactly once, even without stealing")
{
    for (int c = 0; c < COUNTS; c++) {
        for (int quiet = 0; quiet < 2; quiet++) {
            struct scene scene = {.scheduler = open_with(counts[c], quiet != 0)};
            for (uint64_t i = 0; i < rig_few(REPEATS); i++) {
                scene.doom_others = i % 2 != 0;
                rig_do(scene.scheduler, crowd_on_doomed, &scene);
            }
            /* In few rounds it may not have ended before the tasks did. */
            CHECK(rig_simulated() || restarts(scene.scheduler, UINT32_MAX) > 0);
            CHECK_EQ(janus_scheduler_destroy(scene.scheduler), JANUS_OK);
        }
    }
}

static int64_t grow_tree(void *argument)
{
    int64_t       depth = *(int64_t *)argument - 1;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 4 && depth > 0; i++) CHECK_EQ(janus_spawn(&n, grow_tree, &depth), JANUS_OK);
    CHECK_EQ(janus_yield(), JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

TEST("trees of tasks end while threads end at random")
{
    for (int c = 0; c < COUNTS; c++) {
        janus_scheduler *scheduler = open_with(counts[c], false);
        for (uint64_t round = 0; round < rig_few(REPEATS); round++) {
            int64_t       depth = RIG_SLOW ? 4 : 6;
            janus_nursery root;
            CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
            for (int i = 0; i < 3; i++) CHECK_EQ(janus_spawn(&root, grow_tree, &depth), JANUS_OK);
            for (uint32_t i = 0; i < 40; i++) {
                jrt_worker_doom(scheduler, i % counts[c]);
                jrt_thread_yield();
            }
            CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_OK);
        }
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

/* No thread can be started. */

/* First where the doomed thread cannot be replaced, and then on the workers that are left. */
static void lose_one(janus_scheduler *scheduler)
{
    struct scene scene = {.scheduler = scheduler};
    atomic_int   ran = 0;
    jrt_replacements_refuse(UINT32_MAX);
    rig_do(scheduler, crowd_on_doomed, &scene);
    for (int i = 0; i < 20; i++) rig_do(scheduler, go_and_come, &ran);
    CHECK_EQ(ran, 20);
}

TEST("if no thread can be started, the other workers run the queued tasks, even without stealing")
{
    for (int c = 1; c < COUNTS; c++) {
        for (uint64_t i = 0; i < rig_few(REPEATS); i++) {
            janus_scheduler *scheduler = open_with(counts[c], i % 2 != 0);
            lose_one(scheduler);
            CHECK_EQ(restarts(scheduler, UINT32_MAX), 0);
            CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
            jrt_replacements_refuse(0);
        }
    }
}

/* Keeps the workers busy until each has a thread. */
static void await_revival(janus_scheduler *scheduler)
{
    atomic_int ran = 0;
    uint64_t   limit = janus_now_ns() + rig_patience;
    while (atomic_load(&scheduler->lost) != 0 && janus_now_ns() < limit) {
        rig_do(scheduler, go_and_come, &ran);
        if (rig_simulated()) JANUS_IGNORE(janus_sleep(rig_ms)); /* tried ten times a second */
    }
    CHECK_EQ(atomic_load(&scheduler->lost), 0);
}

static void await_lost(janus_scheduler *scheduler, uint32_t wanted)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    while (atomic_load(&scheduler->lost) != wanted && janus_now_ns() < limit) jrt_thread_yield();
    CHECK_EQ(atomic_load(&scheduler->lost), wanted);
}

TEST("a worker that lost its thread gets a new one as soon as one can be started")
{
    for (int c = 1; c < COUNTS; c++) {
        for (int i = 0; i < 4; i++) {
            janus_scheduler *scheduler = open_with(counts[c], i % 2 != 0);
            struct scene     scene = {.scheduler = scheduler};
            jrt_replacements_refuse(UINT32_MAX);
            for (uint32_t w = 1; w < counts[c]; w++) jrt_worker_doom(scheduler, w);
            await_lost(scheduler, counts[c] - 1);
            jrt_replacements_refuse(i % 3 == 2 ? 1 : 0);
            await_revival(scheduler);
            for (uint32_t w = 1; w < counts[c]; w++) CHECK_EQ(restarts(scheduler, w), 1);
            rig_do(scheduler, crowd_on_doomed, &scene);
            CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
        }
    }
}

static int64_t wait_for_ever(void *argument)
{
    (void)argument;
    struct jrt_worker *worker = jrt_worker_self();
    struct jrt_task   *task = worker->current;
    CHECK(jrt_worker_can_leave(worker));
    jrt_task_park_begin(task, JRT_WAIT_JOIN);
    jrt_task_link(task);
    CHECK_EQ(jrt_task_park(worker, task), JANUS_DEADLOCK);
    return 0;
}

TEST("a deadlock is reported although a worker has lost its thread before or meanwhile")
{
    for (uint64_t i = 0; i < rig_few(REPEATS); i++) {
        janus_scheduler *scheduler = open_with(2, false);
        janus_nursery    root;
        jrt_replacements_refuse(UINT32_MAX);
        if (i % 2 == 0) jrt_worker_doom(scheduler, 1);
        if (i % 4 == 0) await_lost(scheduler, 1);
        CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&root, wait_for_ever, NULL), JANUS_OK);
        if (i % 2 != 0) jrt_worker_doom(scheduler, 1);
        CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_OK);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
        jrt_replacements_refuse(0);
    }
}

TEST("timers fire although the thread that waited for them could not be replaced")
{
    for (uint32_t i = 0; i < rig_few(REPEATS); i++) {
        janus_scheduler *scheduler = open_with(2, false);
        atomic_int       rung = 0;
        janus_nursery    root;
        CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&root, sleep_briefly, &rung), JANUS_OK);
        jrt_replacements_refuse(UINT32_MAX);
        jrt_worker_doom(scheduler, i % 2);
        CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_OK);
        CHECK_EQ(rung, 1);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
        jrt_replacements_refuse(0);
    }
}

static void lose_all(void *argument)
{
    uint32_t         workers = *(uint32_t *)argument;
    janus_scheduler *scheduler = open_with(workers, false);
    janus_nursery    root;
    CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&root, sleep_an_hour, NULL), JANUS_OK);
    jrt_replacements_refuse(UINT32_MAX);
    for (uint32_t i = 0; i < workers; i++) jrt_worker_doom(scheduler, i);
    JANUS_IGNORE(janus_nursery_end(&root, NULL));
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

TEST("when the last worker's thread cannot be replaced the process ends with a message")
{
    for (int c = 0; c < COUNTS; c++) {
        uint32_t    workers = counts[c];
        int         status = 0;
        const char *text = harness_child(lose_all, &workers, &status);
        CHECK(strstr(text, "the last worker's thread ended and no new one could be started") !=
              NULL);
        CHECK(status != 0);
    }
}
