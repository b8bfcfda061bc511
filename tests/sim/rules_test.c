/* SPDX-License-Identifier: MIT */
/* What holds in a deterministic scheduler besides the order: which thread owns it, and how its time
 * passes. */
#include "../task/rig.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static janus_scheduler *open_simulated(uint32_t workers)
{
    return rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .deterministic_seed = 7));
}

static void *use_elsewhere(void *argument)
{
    janus_scheduler *scheduler = argument;
    janus_nursery    n;
    CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_STATE);
    CHECK_EQ(janus_scheduler_start(scheduler), JANUS_STATE);
    CHECK_EQ(janus_scheduler_stop(scheduler), JANUS_STATE);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_STATE);
    return NULL;
}

TEST("another thread can neither use, start, stop nor close a simulated scheduler, which goes on")
{
    janus_scheduler *scheduler = open_simulated(2);
    pthread_t        thread;
    atomic_int       ran = 0;
    CHECK_EQ(pthread_create(&thread, NULL, use_elsewhere, scheduler), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    rig_do(scheduler, count_me, &ran);
    CHECK_EQ(ran, 1);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* Locks. */

static int64_t lock_and_leave(void *argument)
{
    return janus_mutex_lock(argument); /* the call's holder ends with it */
}

static int64_t block_twice(void *argument)
{
    janus_mutex mutex = JANUS_MUTEX_INIT("left");
    int64_t     status = 0;
    CHECK_EQ(janus_blocking(nothing, NULL, NULL), JANUS_OK);
    CHECK_EQ(janus_blocking(lock_and_leave, &mutex, &status), JANUS_OK);
    CHECK_EQ(status, JANUS_OK);
    CHECK_EQ(janus_mutex_lock(&mutex), JANUS_OK);
    CHECK(janus_mutex_is_abandoned(&mutex));
    CHECK_EQ(janus_mutex_unlock(&mutex), JANUS_OK);
    CHECK_EQ(janus_mutex_try_lock(argument), JANUS_WOULD_WAIT);
    return 0;
}

TEST("what a thread holds stays held, whatever blocking calls on the same thread hold and leave")
{
    janus_mutex      mutex = JANUS_MUTEX_INIT("held");
    janus_scheduler *scheduler = open_simulated(2);
    CHECK_EQ(janus_mutex_lock(&mutex), JANUS_OK);
    rig_do(scheduler, block_twice, &mutex);
    CHECK_EQ(janus_mutex_unlock(&mutex), JANUS_OK);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* Time. */

static int64_t compute_for_ever(void *argument)
{
    long checks = 0;
    while (janus_check() == JANUS_OK) checks++;
    atomic_fetch_add((atomic_long *)argument, checks);
    return JANUS_CANCELLED;
}

static int64_t end_those_who_compute(void *argument)
{
    janus_nursery n;
    atomic_long   checks = 0;
    uint64_t      soon = janus_now_ns() + rig_ms;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.deadline_ns = soon)), JANUS_OK);
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_spawn(&n, compute_for_ever, &checks), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    CHECK(janus_now_ns() >= soon && janus_now_ns() < soon + rig_ms);
    CHECK(checks < 10 * 1000 * 1000); /* not only the steps between slices took time */
    return 0;
}

TEST("computing takes simulated time: a deadline passes while all tasks only compute")
{
    for (uint32_t workers = 1; workers <= 4; workers *= 2) {
        janus_scheduler *scheduler = open_simulated(workers);
        rig_do(scheduler, end_those_who_compute, NULL);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

/* Tasks that only poll. */

struct asked {
    janus_nursery  *nursery;
    janus_token    *token;
    janus_event     event;
    janus_semaphore permits;
};

static int64_t ask_until_told(void *argument)
{
    struct asked *asked = argument;
    while (!janus_event_is_set(&asked->event)) continue;
    while (janus_semaphore_permits(&asked->permits) == 0) continue;
    while (!janus_token_is_cancelled(asked->token)) continue;
    while (!janus_nursery_is_cancelled(asked->nursery)) continue;
    while (!janus_cancelled()) continue;
    return JANUS_CANCELLED;
}

static int64_t tell(void *argument)
{
    struct asked *asked = argument;
    janus_nursery n;
    asked->nursery = &n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, ask_until_told, asked), JANUS_OK);
    CHECK_EQ(janus_sleep(rig_ms), JANUS_OK);
    janus_event_set(&asked->event);
    CHECK_EQ(janus_semaphore_release(&asked->permits, 1), JANUS_OK);
    CHECK_EQ(janus_token_cancel(asked->token, JANUS_CANCEL_REASON_EXPLICIT), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("a task that polls lets others run at each question")
{
    struct asked asked;
    janus_event_init(&asked.event, JANUS_WAKER_TASKS, "event");
    janus_semaphore_init(&asked.permits, 0, JANUS_WAKER_TASKS, "permits");
    CHECK_EQ(janus_token_create(&asked.token), JANUS_OK);
    janus_scheduler *scheduler = open_simulated(2); /* with one worker it would keep it */
    rig_do(scheduler, tell, &asked);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    janus_token_release(asked.token);
}

/* The environment. */

TEST("a seed in the environment is valid, or no scheduler is made")
{
    static const char *const wrong[] = {"seven", "7x", "0", "-1", "99999999999999999999999"};
    janus_scheduler         *scheduler = NULL;
    const char              *given = getenv("JANUSRT_SEED");
    char                     before[32] = "";
    if (given != NULL) snprintf(before, sizeof before, "%s", given);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_EQ(setenv("JANUSRT_SEED", wrong[i], 1), 0);
        CHECK_EQ(janus_scheduler_create_with(NULL, &scheduler), JANUS_INVALID);
        CHECK(scheduler == NULL);
    }
    CHECK_EQ(setenv("JANUSRT_SEED", "0x10", 1), 0);
    scheduler = rig_open(NULL);
    CHECK_EQ(janus_scheduler_worker_count(scheduler), 4); /* on every machine */
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    CHECK_EQ(before[0] != '\0' ? setenv("JANUSRT_SEED", before, 1) : unsetenv("JANUSRT_SEED"), 0);
}
