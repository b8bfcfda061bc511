/* SPDX-License-Identifier: MIT */
/*
 * A task that waits for a mutex that a thread has, or is about to have, is not in a deadlock. Tasks
 * that wait only for each other do not count as waiting for somebody outside, [mutex-outside]. For
 * every other object its maker declares whether a thread may come, [sync-outside].
 */
#include "../task/slumber.h"
#include "listen.h"

#include "sync/mutex.h"

#include <pthread.h>

enum { TIMES = RIG_SLOW ? 3 : 15 };

struct outside {
    janus_mutex                lock;
    bool                       abandoned; /* when the thread gets it */
    uint32_t                   behind; /* tasks that wait for the thread once it holds the mutex */
    bool                       leaves; /* the thread ends while it holds the mutex */
    atomic_int                 go, taken;
    _Atomic(janus_scheduler *) scheduler;
    pthread_t                  thread;
};

static int queue_length(janus_mutex *lock)
{
    struct jrt_sync         *sync = (struct jrt_sync *)(void *)lock;
    uint64_t                 word = jrt_sync_enter(sync);
    const struct jrt_waiter *first = jrt_sync_first(sync), *at = first;
    int                      length = first != NULL;
    for (; first != NULL && at->next != first; at = at->next) length++;
    jrt_sync_leave(sync, word);
    return length;
}

static void await_queue(struct outside *outside, int length)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    while (queue_length(&outside->lock) < length) {
        CHECK(janus_now_ns() < limit);
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
}

static void *hold_for_a_while(void *argument)
{
    struct outside *outside = argument;
    while (!atomic_load(&outside->go)) sched_yield();
    CHECK_EQ(janus_mutex_lock(&outside->lock), JANUS_OK);
    CHECK_EQ(janus_mutex_is_abandoned(&outside->lock), outside->abandoned);
    atomic_store(&outside->taken, 1);
    while (atomic_load(&outside->scheduler) == NULL) sched_yield();
    slumber_until(atomic_load(&outside->scheduler), outside->behind);
    if (!outside->leaves) CHECK_EQ(janus_mutex_unlock(&outside->lock), JANUS_OK);
    return NULL;
}

static int64_t wait_for_it(void *argument)
{
    struct outside *outside = argument;
    CHECK_EQ(janus_mutex_lock(&outside->lock), JANUS_OK);
    CHECK_EQ(janus_mutex_unlock(&outside->lock), JANUS_OK);
    return 0;
}

/* `entry` is the first task. It starts the thread that holds the mutex for a while. */
static void happen(uint32_t workers, janus_entry *entry, struct outside outside)
{
    for (int i = 0; i < TIMES; i++) {
        struct outside now = outside;
        janus_mutex_init(&now.lock, "outside");
        listen_to(workers, entry, &now);
        CHECK_EQ(pthread_join(now.thread, NULL), 0);
        CHECK_EQ(said[0], '\0');
    }
}

static void start_thread(struct outside *outside, bool goes)
{
    atomic_store(&outside->scheduler, jrt_worker_self()->scheduler);
    atomic_store(&outside->go, goes);
    CHECK_EQ(pthread_create(&outside->thread, NULL, hold_for_a_while, outside), 0);
}

/* A thread holds the mutex. */

static int64_t have_it_taken(void *argument)
{
    struct outside *outside = argument;
    start_thread(outside, true);
    CHECK(rig_wait(&outside->taken));
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < 2; i++) CHECK_EQ(janus_spawn(n, wait_for_it, outside), JANUS_OK);
    }
    CHECK_EQ(ended, JANUS_OK);
    return 0;
}

TEST("waiting for a mutex that a thread holds is no deadlock")
{
    happen(1, have_it_taken, (struct outside){.behind = 2});
    happen(2, have_it_taken, (struct outside){.behind = 2});
}

/* A task unlocks it, and a thread is first in the queue. */

static int64_t hand_to_thread(void *argument)
{
    struct outside *outside = argument;
    CHECK_EQ(janus_mutex_lock(&outside->lock), JANUS_OK);
    start_thread(outside, true);
    await_queue(outside, 1);
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < 2; i++) CHECK_EQ(janus_spawn(n, wait_for_it, outside), JANUS_OK);
        await_queue(outside, 3);
        CHECK_EQ(janus_mutex_unlock(&outside->lock), JANUS_OK);
    }
    CHECK_EQ(ended, JANUS_OK);
    return 0;
}

TEST("waiting for a mutex that a thread took meanwhile is no deadlock")
{
    happen(1, hand_to_thread, (struct outside){.behind = 2});
    happen(2, hand_to_thread, (struct outside){.behind = 2});
}

/* A task that holds it ends, and a thread is first in the queue. */

static int64_t leave_it_locked(void *argument)
{
    struct outside *outside = argument;
    CHECK_EQ(janus_mutex_lock(&outside->lock), JANUS_OK);
    start_thread(outside, true);
    await_queue(outside, 3);
    return 0;
}

static int64_t leave_to_thread(void *argument)
{
    struct outside *outside = argument;
    janus_status    ended;
    JANUS_NURSERY(n, ended)
    {
        CHECK_EQ(janus_spawn(n, leave_it_locked, outside), JANUS_OK);
        await_queue(outside, 1);
        for (int i = 0; i < 2; i++) CHECK_EQ(janus_spawn(n, wait_for_it, outside), JANUS_OK);
    }
    CHECK_EQ(ended, JANUS_OK);
    return 0;
}

TEST("waiting for a mutex that a task has passed to a thread is no deadlock")
{
    happen(1, leave_to_thread, (struct outside){.abandoned = true, .behind = 2});
    happen(2, leave_to_thread, (struct outside){.abandoned = true, .behind = 2});
}

/* A thread that holds it ends, and tasks are in the queue. */

static int64_t inherit_from_thread(void *argument)
{
    struct outside  *outside = argument;
    janus_scheduler *scheduler = atomic_load(&outside->scheduler);
    janus_status     status = janus_mutex_lock(&outside->lock);
    uint64_t         limit = janus_now_ns() + rig_patience;
    CHECK_EQ(status, JANUS_OK);
    bool abandoned = janus_mutex_is_abandoned(&outside->lock);
    if (abandoned) CHECK_EQ(janus_mutex_repaired(&outside->lock), JANUS_OK);
    while (abandoned && atomic_load(&scheduler->outside) > 0) {
        CHECK(janus_now_ns() < limit); /* the other task waits for us, and no task for a thread */
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    CHECK_EQ(janus_mutex_unlock(&outside->lock), JANUS_OK);
    return 0;
}

static int64_t have_it_left(void *argument)
{
    struct outside *outside = argument;
    start_thread(outside, true);
    CHECK(rig_wait(&outside->taken));
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < 2; i++) {
            CHECK_EQ(janus_spawn(n, inherit_from_thread, outside), JANUS_OK);
        }
    }
    CHECK_EQ(ended, JANUS_OK);
    return 0;
}

TEST("a waiter for a mutex that a thread has passed to a task no longer counts as outside")
{
    happen(1, have_it_left, (struct outside){.behind = 2, .leaves = true});
    happen(2, have_it_left, (struct outside){.behind = 2, .leaves = true});
}

/* A thread grabs it while a task is on its way and has no worker yet. */

static int64_t have_it_grabbed(void *argument)
{
    struct outside *outside = argument;
    uint64_t        limit = janus_now_ns() + rig_patience;
    CHECK_EQ(janus_mutex_lock(&outside->lock), JANUS_OK);
    start_thread(outside, false);
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < 2; i++) CHECK_EQ(janus_spawn(n, wait_for_it, outside), JANUS_OK);
        await_queue(outside, 2);
        CHECK_EQ(janus_mutex_unlock(&outside->lock), JANUS_OK);
        atomic_store(&outside->go, 1);
        while (!atomic_load(&outside->taken)) CHECK(janus_now_ns() < limit); /* no giving way */
    }
    CHECK_EQ(ended, JANUS_OK);
    return 0;
}

TEST("waiting for a mutex that a thread has grabbed is no deadlock")
{
    happen(1, have_it_grabbed, (struct outside){.behind = 2});
}

/* The first in the queue is cancelled while the mutex is free. A thread is next. */

static int64_t wait_to_be_cancelled(void *argument)
{
    struct outside *outside = argument;
    CHECK_EQ(janus_mutex_lock(&outside->lock), JANUS_CANCELLED);
    return JANUS_CANCELLED;
}

static int64_t have_it_passed_on(void *argument)
{
    struct outside *outside = argument;
    janus_nursery   first, last;
    CHECK_EQ(janus_mutex_lock(&outside->lock), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&last, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&first, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&first, wait_to_be_cancelled, outside), JANUS_OK);
    await_queue(outside, 1);
    start_thread(outside, true);
    await_queue(outside, 2);
    CHECK_EQ(janus_spawn(&last, wait_for_it, outside), JANUS_OK);
    await_queue(outside, 3);
    CHECK_EQ(janus_nursery_cancel(&first), JANUS_OK); /* one worker: it cannot leave before */
    CHECK_EQ(janus_mutex_unlock(&outside->lock), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&first, NULL), JANUS_CANCELLED);
    CHECK_EQ(janus_nursery_end(&last, NULL), JANUS_OK);
    return 0;
}

TEST("waiting for a mutex that a cancelled task has passed on to a thread is no deadlock")
{
    happen(1, have_it_passed_on, (struct outside){.behind = 1});
}

/* All other objects. */

enum what { SEMAPHORE, CONDITION, EVENT, GROUP, BROADCAST, WHATS };

struct anybody {
    enum what                  what;
    janus_mutex                lock;
    janus_semaphore            permits;
    janus_condition            change;
    janus_event                event;
    janus_group                group;
    janus_broadcast            news;
    _Atomic(janus_scheduler *) scheduler;
};

static janus_status wait_for(struct anybody *anybody)
{
    uint64_t     seen = janus_broadcast_count(&anybody->news);
    janus_status status = JANUS_STATE;
    switch (anybody->what) {
    case SEMAPHORE: return janus_semaphore_acquire(&anybody->permits);
    case CONDITION:
        CHECK_EQ(janus_mutex_lock(&anybody->lock), JANUS_OK);
        status = janus_condition_wait(&anybody->change, &anybody->lock);
        CHECK_EQ(janus_mutex_unlock(&anybody->lock), JANUS_OK);
        return status;
    case EVENT: return janus_event_wait(&anybody->event);
    case GROUP: return janus_group_wait(&anybody->group);
    case BROADCAST: return janus_broadcast_wait(&anybody->news, &seen);
    case WHATS: break;
    }
    return status;
}

static int64_t wait_for_anybody(void *argument)
{
    struct anybody *anybody = argument;
    atomic_store(&anybody->scheduler, jrt_worker_self()->scheduler);
    for (int i = 0; i < 2; i++) CHECK_EQ(wait_for(anybody), JANUS_OK);
    return 0;
}

static void open_it(struct anybody *anybody)
{
    switch (anybody->what) {
    case SEMAPHORE: CHECK_EQ(janus_semaphore_release(&anybody->permits, 1), JANUS_OK); break;
    case CONDITION: janus_condition_signal(&anybody->change); break;
    case EVENT:
        janus_event_set(&anybody->event);
        janus_event_reset(&anybody->event);
        break;
    case GROUP:
        CHECK_EQ(janus_group_done(&anybody->group), JANUS_OK);
        CHECK_EQ(janus_group_add(&anybody->group, 1), JANUS_OK);
        break;
    case BROADCAST: janus_broadcast_send(&anybody->news); break;
    case WHATS: break;
    }
}

static void *open_late(void *argument)
{
    struct anybody *anybody = argument;
    while (atomic_load(&anybody->scheduler) == NULL) sched_yield();
    for (int i = 0; i < 2; i++) { /* a released task no longer counts */
        slumber_until(atomic_load(&anybody->scheduler), 1);
        open_it(anybody);
    }
    return NULL;
}

TEST("waiting for an object that any thread may open is no deadlock")
{
    for (int i = 0; i < TIMES * WHATS; i++) {
        struct anybody anybody = {.what = (enum what)(i % WHATS)};
        pthread_t      thread;
        janus_semaphore_init(&anybody.permits, 0, JANUS_WAKER_ANYBODY, NULL);
        janus_condition_init(&anybody.change, JANUS_WAKER_ANYBODY, NULL);
        janus_event_init(&anybody.event, JANUS_WAKER_ANYBODY, NULL);
        janus_group_init(&anybody.group, JANUS_WAKER_ANYBODY, NULL);
        janus_broadcast_init(&anybody.news, JANUS_WAKER_ANYBODY, NULL);
        CHECK_EQ(janus_group_add(&anybody.group, 1), JANUS_OK);
        CHECK_EQ(pthread_create(&thread, NULL, open_late, &anybody), 0);
        listen_to(1 + (uint32_t)i % 2, wait_for_anybody, &anybody);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        CHECK_EQ(said[0], '\0');
    }
}
