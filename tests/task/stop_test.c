/* SPDX-License-Identifier: MIT */
/* Stopping a scheduler in the middle of everything: nothing is dropped, and nothing hangs. */
#include "plat/seam.h"
#include "rig.h"
#include "task/worker.h"
#include "work/crew.h"

#include <string.h>

enum { REPEATS = RIG_SLOW ? 5 : 40, OF_EACH = 8, QUEUED = 200 };

/* Tasks of every kind. */
struct scene {
    janus_scheduler *scheduler;
    janus_nursery    root;
    atomic_int       spawned, arrived, ended, defers, released;
    bool             die; /* threads end, too */
};

static void spawn_in(struct scene *scene, janus_nursery *nursery, janus_entry *entry)
{
    janus_status status = janus_spawn(nursery, entry, scene);
    if (status == JANUS_OK) atomic_fetch_add(&scene->spawned, 1);
    CHECK(status == JANUS_OK || status == JANUS_CLOSED);
}

static void note_defer(void *argument) { atomic_fetch_add((atomic_int *)argument, 1); }

static void arrive(struct scene *scene)
{
    CHECK_EQ(janus_defer(note_defer, &scene->defers), JANUS_OK);
    atomic_fetch_add(&scene->arrived, 1);
}

static int64_t end(struct scene *scene, int64_t result)
{
    atomic_fetch_add(&scene->ended, 1);
    return result;
}

/* Tasks that wait. */

static int64_t sleeper(void *argument)
{
    arrive(argument);
    CHECK_EQ(janus_sleep(3600 * 1000 * rig_ms), JANUS_CANCELLED);
    CHECK_EQ(janus_sleep(3600 * 1000 * rig_ms), JANUS_CANCELLED); /* and again */
    return end(argument, JANUS_CANCELLED);
}

static int64_t inner_sleeper(void *argument)
{
    janus_status status = janus_sleep(3600 * 1000 * rig_ms);
    CHECK_EQ(status, JANUS_CANCELLED);
    return end(argument, status);
}

static int64_t joiner(void *argument)
{
    struct scene *scene = argument;
    janus_nursery n;
    janus_task_id id;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, inner_sleeper, scene, NULL, &id), JANUS_OK);
    atomic_fetch_add(&scene->spawned, 1);
    arrive(scene);
    janus_status status = janus_join(&n, id, NULL);
    CHECK(status == JANUS_CANCELLED || status == JANUS_CHILD_CANCELLED); /* it ended first */
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return end(scene, JANUS_CANCELLED);
}

static int64_t awaiter(void *argument)
{
    struct scene *scene = argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 3; i++) spawn_in(scene, &n, inner_sleeper);
    arrive(scene);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return end(scene, JANUS_CANCELLED);
}

static int64_t wait_released(void *argument)
{
    struct scene *scene = argument;
    while (!atomic_load(&scene->released)) jrt_thread_yield();
    return 5;
}

static int64_t blocker(void *argument)
{
    int64_t result = 0;
    arrive(argument);
    janus_status status = janus_blocking(wait_released, argument, &result);
    CHECK(status == JANUS_OK || status == JANUS_CANCELLED); /* its turn may have ended before */
    if (status == JANUS_OK) CHECK_EQ(result, 5);
    CHECK_EQ(janus_blocking(wait_released, argument, &result), JANUS_CANCELLED);
    return end(argument, JANUS_CANCELLED);
}

/* Tasks that ignore cancels. */

static int64_t shielded(void *argument)
{
    struct scene *scene = argument;
    arrive(scene);
    janus_shield_begin();
    while (!atomic_load(&scene->released)) CHECK_EQ(janus_sleep(1000), JANUS_OK);
    CHECK_EQ(janus_sleep(1000), JANUS_OK);
    janus_shield_end();
    CHECK_EQ(janus_yield(), JANUS_CANCELLED);
    return end(scene, JANUS_CANCELLED);
}

static int64_t stubborn(void *argument)
{
    struct scene *scene = argument;
    arrive(scene);
    while (!atomic_load(&scene->released)) jrt_thread_yield(); /* has the worker to itself */
    return end(scene, janus_yield());
}

static int64_t queued(void *argument)
{
    arrive(argument);
    return end(argument, 0);
}

static void await_arrived(struct scene *scene, int wanted)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    while (atomic_load(&scene->arrived) < wanted && janus_now_ns() < limit) jrt_thread_yield();
    CHECK(atomic_load(&scene->arrived) >= wanted);
}

/* Releases the stubborn tasks when the scheduler has begun to stop. */
static void release_in_time(void *argument)
{
    struct scene *scene = argument;
    uint64_t      limit = janus_now_ns() + rig_patience;
    while (janus_nursery_state_of(&scene->root) == JANUS_NURSERY_STATE_OPEN) {
        CHECK(janus_now_ns() < limit);
        jrt_thread_yield();
    }
    for (uint32_t i = 0; i < scene->scheduler->worker_count && scene->die; i++) {
        jrt_worker_doom(scene->scheduler, i);
    }
    atomic_store(&scene->released, 1);
}

static void check_books(struct scene *scene, bool all_began)
{
    janus_worker_info stats = JANUS_WORKER_INFO();
    CHECK_EQ(janus_worker_inspect(scene->scheduler, JANUS_ALL_WORKERS, &stats), JANUS_OK);
    CHECK_EQ(stats.tasks_executed + stats.tasks_cancelled, scene->spawned);
    CHECK_EQ(stats.tasks_executed, scene->ended);
    CHECK_EQ(scene->defers, scene->arrived);
    if (!all_began) CHECK(stats.tasks_cancelled > 0);
}

static void stop_scene(uint32_t workers, bool die)
{
    static janus_entry *const waiting[] = {sleeper, joiner, awaiter, blocker, shielded};
    enum { KINDS = sizeof waiting / sizeof waiting[0] };
    struct scene         scene = {.die = die};
    struct jrt_os_thread releaser;
    janus_nursery_result result;
    scene.scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers));
    CHECK_EQ(janus_nursery_open_in(scene.scheduler, &scene.root, NULL), JANUS_OK);
    for (int i = 0; i < OF_EACH * KINDS; i++) spawn_in(&scene, &scene.root, waiting[i % KINDS]);
    await_arrived(&scene, OF_EACH * KINDS);
    for (uint32_t i = 0; i < workers; i++) spawn_in(&scene, &scene.root, stubborn);
    await_arrived(&scene, OF_EACH * KINDS + (int)workers); /* now nobody looks at a queue */
    for (int i = 0; i < QUEUED; i++) spawn_in(&scene, &scene.root, queued);
    CHECK(jrt_os_thread_start(&releaser, release_in_time, &scene, "releaser"));
    CHECK_EQ(janus_scheduler_stop(scene.scheduler), JANUS_OK);
    jrt_os_thread_join(&releaser);
    CHECK_EQ(janus_nursery_end(&scene.root, &result), JANUS_CANCELLED);
    CHECK_EQ(result.reason, JANUS_CANCEL_REASON_SHUTDOWN);
    CHECK_EQ(result.errors, 0);
    check_books(&scene, false);
    CHECK_EQ(janus_scheduler_destroy(scene.scheduler), JANUS_OK);
}

TEST("stopping ends tasks that sleep, join, await, block, are shielded, ignore cancels or are "
     "queued")
{
    for (int i = 0; i < (int)rig_few(REPEATS); i++) {
        stop_scene(1, false);
        stop_scene(2, false);
        stop_scene(8, false);
    }
}

TEST("stopping ends all tasks even while every worker's thread ends")
{
    for (int i = 0; i < (int)rig_few(REPEATS); i++) {
        stop_scene(1, true);
        stop_scene(2, true);
        stop_scene(8, true);
    }
}

/* At a random moment. */

static int64_t anything(void *argument)
{
    struct scene *scene = argument;
    janus_nursery n;
    arrive(scene);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 5; i++) spawn_in(scene, &n, i % 2 == 0 ? queued : inner_sleeper);
    janus_status status = janus_nursery_end(&n, NULL);
    CHECK(status == JANUS_OK || status == JANUS_CANCELLED);
    return end(scene, status);
}

TEST("a scheduler that is stopped as soon as it runs has run or skipped every task")
{
    static const uint32_t counts[] = {1, 2, 8};
    for (int i = 0; i < (int)rig_few(10 * REPEATS); i++) {
        struct scene scene = {.die = i % 2 != 0};
        scene.scheduler = rig_open(
            JANUS_SCHEDULER_OPTIONS(.worker_count = counts[i % 3], .no_stealing = i % 5 == 0));
        CHECK_EQ(janus_nursery_open_in(scene.scheduler, &scene.root, NULL), JANUS_OK);
        for (int j = 0; j < i % 50; j++) spawn_in(&scene, &scene.root, anything);
        for (uint32_t j = 0; j < counts[i % 3] && scene.die; j++)
            jrt_worker_doom(scene.scheduler, j);
        for (int j = 0; j < i % 11; j++) jrt_thread_yield();
        CHECK_EQ(janus_scheduler_stop(scene.scheduler), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&scene.root, NULL), JANUS_CANCELLED);
        check_books(&scene, true);
        CHECK_EQ(janus_scheduler_destroy(scene.scheduler), JANUS_OK);
    }
}

static int64_t stop_it(void *argument) { return janus_scheduler_stop(argument); }

static int64_t stop_in_helper(void *argument)
{
    int64_t result = 0;
    CHECK_EQ(janus_scheduler_stop(argument), JANUS_STATE);
    CHECK_EQ(janus_blocking(stop_it, argument, &result), JANUS_OK);
    CHECK_EQ(result, JANUS_STATE);
    return 0;
}

TEST("a scheduler cannot be stopped inside its own tasks, nor in their blocking calls")
{
    janus_scheduler *scheduler = rig_open(NULL);
    rig_do(scheduler, stop_in_helper, scheduler);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

TEST("a scheduler that was stopped cannot be started")
{
    janus_scheduler *scheduler = NULL;
    CHECK_EQ(janus_scheduler_create_with(NULL, &scheduler), JANUS_OK);
    CHECK_EQ(janus_scheduler_stop(scheduler), JANUS_OK);
    CHECK_EQ(janus_scheduler_start(scheduler), JANUS_STATE);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    scheduler = rig_open(NULL);
    CHECK_EQ(janus_scheduler_stop(scheduler), JANUS_OK);
    CHECK_EQ(janus_scheduler_start(scheduler), JANUS_STATE);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}
