/* SPDX-License-Identifier: MIT */
/* Waits and locks in odd places: in defers, in blocking calls, behind a waiting holder. */
#include "../task/rig.h"
#include "task/worker.h"
#include "work/work.h"

#include <string.h>

/* A wait at a condition whose mutex is held by a task that waits for the waiter. */

static janus_mutex     mutex = JANUS_MUTEX_INIT("m");
static janus_condition condition = JANUS_CONDITION_INIT(JANUS_WAKER_TASKS, "c");
static atomic_int      waits;

static int64_t wait_behind(void *argument)
{
    (void)argument;
    CHECK_EQ(janus_mutex_lock(&mutex), JANUS_OK);
    atomic_store(&waits, 1);
    CHECK_EQ(janus_condition_wait(&condition, &mutex), JANUS_DEADLOCK);
    CHECK_EQ(janus_mutex_unlock(&mutex), JANUS_STATE);
    return 0;
}

static int64_t hold_and_wait(void *argument)
{
    (void)argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, wait_behind, NULL), JANUS_OK);
    while (!atomic_load(&waits)) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_mutex_lock(&mutex), JANUS_OK);
    janus_condition_signal(&condition);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_mutex_unlock(&mutex), JANUS_OK);
    return 0;
}

static void knot(void *argument)
{
    (void)argument;
    atomic_store(&waits, 0);
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 1), hold_and_wait, NULL, NULL),
             JANUS_DEADLOCK);
}

TEST("a task that waits at a condition, then for a holder that waits for it, gets one DEADLOCK")
{
    int         status = 0;
    const char *text = harness_child(knot, NULL, &status);
    CHECK_EQ(status, 0);
    const char *first = strstr(text, "janusrt: deadlock:");
    CHECK(first != NULL && strstr(first + 1, "janusrt: deadlock:") == NULL);
}

/* A send in a defer, after exactly as many as the budget allows. */

static janus_channel done;

static void say_done(void *argument)
{
    uint64_t value = 1;
    CHECK_EQ(janus_channel_send(done, &value), JANUS_OK);
    count_me(argument);
}

struct sender {
    int        sends;
    atomic_int finished;
};

static int64_t send_and_defer(void *argument)
{
    struct sender *sender = argument;
    uint64_t       value = 0;
    CHECK_EQ(janus_defer(say_done, &sender->finished), JANUS_OK);
    for (int i = 0; i < sender->sends; i++) CHECK_EQ(janus_channel_send(done, &value), JANUS_OK);
    return 0;
}

static int64_t send_exactly(void *argument)
{
    (void)argument;
    for (int sends = 98; sends <= 102; sends++) {
        struct sender sender = {.sends = sends};
        janus_nursery n;
        CHECK_EQ(janus_channel_create(8, 200, NULL, &done), JANUS_OK);
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, send_and_defer, &sender), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        CHECK_EQ(sender.finished, 1);
        CHECK_EQ(janus_channel_destroy(done), JANUS_OK);
    }
    return 0;
}

TEST("a budget that replenishes also does so in defers") { rig_all(send_exactly, NULL, 3); }

/* A cancelled task empties a channel. */

enum { LEFT = 1000 };

static int64_t drain(void *argument)
{
    uint64_t value;
    int      taken = 0;
    count_me(argument);
    while (!janus_cancelled()) JANUS_IGNORE(janus_yield());
    while (janus_channel_try_recv(done, &value) == JANUS_OK) taken++;
    CHECK_EQ(taken, LEFT);
    return JANUS_CANCELLED;
}

static int64_t cancel_drainer(void *argument)
{
    (void)argument;
    janus_nursery n;
    atomic_int    begun = 0;
    CHECK_EQ(janus_channel_create(8, LEFT, NULL, &done), JANUS_OK);
    for (uint64_t i = 0; i < LEFT; i++) CHECK_EQ(janus_channel_send(done, &i), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, drain, &begun), JANUS_OK);
    CHECK(rig_wait(&begun));
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    CHECK_EQ(janus_channel_destroy(done), JANUS_OK);
    return 0;
}

TEST("a cancelled task can empty a channel") { rig_all(cancel_drainer, NULL, 3); }

/* A mutex that a blocking call leaves locked. */

static janus_mutex left = JANUS_MUTEX_INIT("left");

static int64_t lock_left(void *argument)
{
    (void)argument;
    return janus_mutex_lock(&left);
}

static int64_t leave_locked(void *argument)
{
    (void)argument;
    int64_t status = -1;
    CHECK_EQ(janus_blocking(lock_left, NULL, &status), JANUS_OK);
    CHECK_EQ(status, JANUS_OK);
    CHECK_EQ(janus_mutex_lock(&left), JANUS_OK);
    CHECK(janus_mutex_is_abandoned(&left));
    CHECK_EQ(janus_mutex_repaired(&left), JANUS_OK);
    CHECK_EQ(janus_mutex_unlock(&left), JANUS_OK);
    return 0;
}

TEST("a mutex that a blocking call leaves locked is abandoned") { rig_all(leave_locked, NULL, 3); }

/* A waiter is woken to take a mutex, is overtaken, and its deadline passes before it tries. Its
 * alarm finds it awake. */

struct overtaken {
    janus_mutex  lock;
    uint64_t     deadline_ns;
    janus_status status;
    atomic_int   asked, returned;
};

static int64_t lock_in_time(void *argument)
{
    struct overtaken *late = argument;
    atomic_store(&late->asked, 1);
    late->status = janus_mutex_lock_until(&late->lock, late->deadline_ns);
    atomic_store(&late->returned, 1);
    return 0;
}

static int64_t overtake(void *argument)
{
    struct overtaken late = {.lock = JANUS_MUTEX_INIT("late"),
                             .deadline_ns = janus_now_ns() + 2 * rig_ms};
    (void)argument;
    CHECK_EQ(janus_mutex_lock(&late.lock), JANUS_OK);
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        CHECK_EQ(janus_spawn(n, lock_in_time, &late), JANUS_OK);
        while (!atomic_load(&late.asked)) CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK_EQ(janus_mutex_unlock(&late.lock), JANUS_OK); /* one worker: it waits by now */
        CHECK_EQ(janus_mutex_lock(&late.lock), JANUS_OK);
        while (janus_now_ns() < late.deadline_ns) continue;
        jrt_sched_timers_fire(jrt_worker_self()->scheduler);
        for (int i = 0; i < 100; i++) CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK(atomic_load(&late.returned));
        CHECK_EQ(late.status, JANUS_DEADLINE);
        CHECK_EQ(janus_mutex_unlock(&late.lock), JANUS_OK);
    }
    CHECK_EQ(ended, JANUS_OK);
    CHECK_EQ(janus_mutex_try_lock(&late.lock), JANUS_OK);
    return 0;
}

TEST("a waiter that was woken for a mutex and overtaken does not miss its deadline")
{
    rig_run(1, overtake, NULL, 20);
}
