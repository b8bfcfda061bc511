/* SPDX-License-Identifier: MIT */
/* Remarks: a call that acquires something returns OK, or has acquired nothing. An out field has any
 * remark. Also recursive mutexes. */
#include "../task/rig.h"

#include <pthread.h>

TEST("CLAMPED is the only positive status")
{
#define LOOK(name, value, text) CHECK((value) <= 0 || (value) == JANUS_CLAMPED);
    JANUS_STATUS_MAP(LOOK)
#undef LOOK
}

/* Calls that acquire, each with something to remark. */

static int64_t lock_and_end(void *argument)
{
    CHECK_EQ(janus_mutex_lock(argument), JANUS_OK);
    return 0;
}

static void abandon(janus_mutex *mutex)
{
    janus_status ended;
    JANUS_NURSERY(n, ended) { CHECK_EQ(janus_spawn(n, lock_and_end, mutex), JANUS_OK); }
    CHECK_EQ(ended, JANUS_OK);
}

static janus_status call_lock(janus_mutex *mutex) { return janus_mutex_lock(mutex); }
static janus_status call_try(janus_mutex *mutex) { return janus_mutex_try_lock(mutex); }
static janus_status call_until(janus_mutex *mutex)
{
    return janus_mutex_lock_until(mutex, janus_now_ns() + rig_ms);
}

static int64_t abandoned_locks(void *argument)
{
    janus_status (*const calls[])(janus_mutex *) = {call_lock, call_try, call_until};
    (void)argument;
    for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++) {
        janus_mutex mutex = JANUS_MUTEX_INIT("left");
        abandon(&mutex);
        janus_status status = calls[i](&mutex);
        CHECK_EQ(status, JANUS_OK);
        CHECK(janus_mutex_is_abandoned(&mutex));
        CHECK_EQ(janus_mutex_unlock(&mutex), JANUS_OK);
    }
    return 0;
}

TEST("a mutex whose holder has ended is locked with OK, and is abandoned until it is repaired")
{
    rig_all(abandoned_locks, NULL, 3);
}

/* A condition whose mutex is abandoned during the wait. */

struct room {
    janus_mutex     mutex;
    janus_condition changed;
};

static int64_t signal_and_end(void *argument)
{
    struct room *room = argument;
    CHECK_EQ(janus_mutex_lock(&room->mutex), JANUS_OK);
    janus_condition_signal(&room->changed);
    return 0;
}

static int64_t wait_for_signal(void *argument)
{
    (void)argument;
    struct room room = {.mutex = JANUS_MUTEX_INIT("room")};
    CHECK_EQ(janus_mutex_lock(&room.mutex), JANUS_OK);
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        CHECK_EQ(janus_spawn(n, signal_and_end, &room), JANUS_OK);
        CHECK_EQ(janus_condition_wait(&room.changed, &room.mutex), JANUS_OK);
        CHECK(janus_mutex_is_abandoned(&room.mutex));
        CHECK_EQ(janus_mutex_unlock(&room.mutex), JANUS_OK);
    }
    CHECK_EQ(ended, JANUS_OK);
    return 0;
}

TEST("a condition's wait whose mutex was abandoned meanwhile returns OK")
{
    rig_all(wait_for_signal, NULL, 5);
}

static int64_t open_clamped(void *argument)
{
    janus_budget  most = janus_budget_service_default(), asked = janus_budget_scale(most, 2), got;
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &asked, .granted = &got)),
             JANUS_OK);
    CHECK(janus_budget_equal(got, most));
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.granted = &got)), JANUS_OK);
    CHECK(janus_budget_equal(got, janus_budget_zero())); /* it has no pool of its own */
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a nursery with a smaller pool than requested opens with OK, and reports the pool")
{
    rig_all(open_clamped, NULL, 3);
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
    janus_budget     most = janus_budget_service_default(), asked = janus_budget_scale(most, 2);
    janus_budget     got;
    janus_nursery    n;
    CHECK_EQ(janus_nursery_open_in(scheduler, &n,
                                   JANUS_NURSERY_OPTIONS(.budget = &asked, .granted = &got)),
             JANUS_OK);
    CHECK(janus_budget_equal(got, most));
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* Recursive mutexes. */

struct deep {
    janus_mutex mutex;
    atomic_int  inside, count;
};

static int64_t go_deep(void *argument)
{
    struct deep *deep = argument;
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 3; i++) {
            janus_status status =
                i == 1 ? janus_mutex_try_lock(&deep->mutex) : janus_mutex_lock(&deep->mutex);
            CHECK_EQ(status, JANUS_OK);
            if (i == 0) CHECK_EQ(atomic_fetch_add(&deep->inside, 1), 0);
            JANUS_IGNORE(janus_yield());
        }
        atomic_fetch_add(&deep->count, 1);
        for (int i = 0; i < 3; i++) {
            if (i == 2) CHECK_EQ(atomic_fetch_sub(&deep->inside, 1), 1);
            CHECK_EQ(janus_mutex_unlock(&deep->mutex), JANUS_OK);
        }
        CHECK_EQ(janus_mutex_unlock(&deep->mutex), JANUS_STATE);
    }
    return 0;
}

static int64_t many_deep(void *argument)
{
    struct deep deep = {.mutex = JANUS_MUTEX_RECURSIVE_INIT("deep")};
    (void)argument;
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < 5; i++) CHECK_EQ(janus_spawn(n, go_deep, &deep), JANUS_OK);
    }
    CHECK_EQ(ended, JANUS_OK);
    CHECK_EQ(deep.count, 100);
    return 0;
}

TEST("a recursive mutex belongs to one task until it has unlocked it as often as it locked it")
{
    rig_all(many_deep, NULL, 2);
}

static int64_t lock_twice_and_end(void *argument)
{
    CHECK_EQ(janus_mutex_lock(argument), JANUS_OK);
    CHECK_EQ(janus_mutex_lock(argument), JANUS_OK);
    return 0;
}

static int64_t inherit_deep(void *argument)
{
    struct room room;
    (void)argument;
    janus_mutex_init_recursive(&room.mutex, "deep");
    janus_condition_init(&room.changed, JANUS_WAKER_ANYBODY, NULL);
    janus_status ended;
    JANUS_NURSERY(n, ended) { CHECK_EQ(janus_spawn(n, lock_twice_and_end, &room.mutex), JANUS_OK); }
    CHECK_EQ(ended, JANUS_OK);
    CHECK_EQ(janus_mutex_lock(&room.mutex), JANUS_OK);
    CHECK(janus_mutex_is_abandoned(&room.mutex));
    CHECK_EQ(janus_condition_wait_until(&room.changed, &room.mutex, 1), JANUS_DEADLINE);
    CHECK_EQ(janus_mutex_lock(&room.mutex), JANUS_OK);
    CHECK_EQ(janus_condition_wait(&room.changed, &room.mutex), JANUS_STATE);
    CHECK_EQ(janus_mutex_unlock(&room.mutex), JANUS_OK);
    CHECK_EQ(janus_mutex_unlock(&room.mutex), JANUS_OK);
    CHECK_EQ(janus_mutex_unlock(&room.mutex), JANUS_STATE);
    return 0;
}

TEST("a recursive mutex that was abandoned deep inside is held once by the next holder")
{
    rig_all(inherit_deep, NULL, 3);
}

TEST("a plain mutex is not recursive")
{
    janus_mutex mutex = JANUS_MUTEX_INIT(NULL);
    CHECK_EQ(janus_mutex_lock(&mutex), JANUS_OK);
    CHECK_EQ(janus_mutex_lock(&mutex), JANUS_STATE);
    CHECK_EQ(janus_mutex_try_lock(&mutex), JANUS_STATE);
    CHECK_EQ(janus_mutex_unlock(&mutex), JANUS_OK);
}
