/* SPDX-License-Identifier: MIT */
/* Every kind of object that a task can wait for, before every kind that it can hold when it
 * ends. */
#include "../task/rig.h"

#include "sync/mutex.h"

#include <pthread.h>
#include <sched.h>

enum { ASKERS = 2 };

/* Waits: each makes the task's holder record, and ends without success. */

struct firsts {
    janus_mutex     mutex; /* held by the parent */
    janus_semaphore semaphore;
    janus_condition condition;
    janus_mutex     guard;
    janus_event     event;
    janus_group     group;
    janus_broadcast broadcast;
    janus_once      once;
    janus_barrier   barrier;
    janus_rwlock    table; /* held by the parent, to read */
};

static void first_nothing(struct firsts *firsts) { (void)firsts; }

static void first_mutex(struct firsts *firsts)
{
    CHECK_EQ(janus_mutex_lock_until(&firsts->mutex, 1), JANUS_DEADLINE);
}

static void first_semaphore(struct firsts *firsts)
{
    CHECK_EQ(janus_semaphore_acquire_until(&firsts->semaphore, 1), JANUS_DEADLINE);
}

static void first_condition(struct firsts *firsts)
{
    CHECK_EQ(janus_mutex_lock(&firsts->guard), JANUS_OK);
    CHECK_EQ(janus_condition_wait_until(&firsts->condition, &firsts->guard, 1), JANUS_DEADLINE);
    CHECK_EQ(janus_mutex_unlock(&firsts->guard), JANUS_OK);
}

static void first_event(struct firsts *firsts)
{
    CHECK_EQ(janus_event_wait_until(&firsts->event, 1), JANUS_DEADLINE);
}

static void first_group(struct firsts *firsts)
{
    CHECK_EQ(janus_group_wait_until(&firsts->group, 1), JANUS_DEADLINE);
}

static void first_broadcast(struct firsts *firsts)
{
    uint64_t seen = 0;
    CHECK_EQ(janus_broadcast_wait_until(&firsts->broadcast, &seen, 1), JANUS_DEADLINE);
}

static int64_t call_again(void *argument)
{
    CHECK_EQ(janus_once_call(argument, nothing, NULL, NULL), JANUS_STATE);
    return -1;
}

static void first_once(struct firsts *firsts)
{
    CHECK_EQ(janus_once_call(&firsts->once, call_again, &firsts->once, NULL), JANUS_CHILD_FAILED);
}

static void first_barrier(struct firsts *firsts)
{
    CHECK_EQ(janus_barrier_wait_until(&firsts->barrier, NULL, 1), JANUS_DEADLINE);
}

static void first_rwlock(struct firsts *firsts)
{
    CHECK_EQ(janus_rwlock_write_lock_until(&firsts->table, 1), JANUS_DEADLINE);
    CHECK_EQ(janus_rwlock_read_lock(&firsts->table), JANUS_OK);
    CHECK_EQ(janus_rwlock_unlock(&firsts->table), JANUS_OK);
}

static void (*const waits[])(struct firsts *) = {
    first_nothing, first_mutex,     first_semaphore, first_condition, first_event,
    first_group,   first_broadcast, first_once,      first_barrier,   first_rwlock,
};

enum { WAITS = sizeof waits / sizeof waits[0] };

/* What is held at the end. */

struct hold {
    struct firsts firsts;
    janus_mutex   mutex;
    janus_once    once;
    janus_rwlock  table;
    int           first, panics;
    void          (*keep)(struct hold *hold);
    void          (*ask)(struct hold *hold);
    atomic_int    has, got;
};

/* Whether all askers are in the queue of an object, which begins with a jrt_sync. */
static bool all_wait(void *object)
{
    struct jrt_sync         *sync = object;
    uint64_t                 word = jrt_sync_enter(sync);
    const struct jrt_waiter *first = jrt_sync_first(sync), *at = first;
    int                      length = first != NULL;
    for (; first != NULL && at->next != first; at = at->next) length++;
    jrt_sync_leave(sync, word);
    return length == ASKERS;
}

/* Waits until all askers wait. Then the task ends as requested. */
static int64_t end_with_it(void *argument)
{
    struct hold *hold = argument;
    atomic_store(&hold->has, 1);
    while (!all_wait(&hold->mutex) && !all_wait(&hold->once) && !all_wait(&hold->table)) {
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    if (hold->panics) janus_panic("with something held");
    return 0;
}

static void keep_mutex(struct hold *hold)
{
    CHECK_EQ(janus_mutex_lock(&hold->mutex), JANUS_OK);
    (void)end_with_it(hold);
}

static void ask_mutex(struct hold *hold)
{
    CHECK(janus_mutex_lock(&hold->mutex) >= JANUS_OK);
    CHECK_EQ(janus_mutex_unlock(&hold->mutex), JANUS_OK);
}

static void keep_once(struct hold *hold)
{
    if (hold->panics) JANUS_IGNORE(janus_once_call(&hold->once, end_with_it, hold, NULL));
    if (!hold->panics) keep_mutex(hold); /* otherwise a once cannot outlive its function */
}

static void ask_once(struct hold *hold)
{
    if (!hold->panics) return ask_mutex(hold);
    CHECK_EQ(janus_once_call(&hold->once, nothing, NULL, NULL), JANUS_OK);
}

static void keep_read(struct hold *hold)
{
    CHECK_EQ(janus_rwlock_read_lock(&hold->table), JANUS_OK);
    (void)end_with_it(hold);
}

static void keep_written(struct hold *hold)
{
    CHECK_EQ(janus_rwlock_write_lock(&hold->table), JANUS_OK);
    (void)end_with_it(hold);
}

static void ask_rwlock(struct hold *hold)
{
    CHECK_EQ(janus_rwlock_write_lock(&hold->table), JANUS_OK);
    CHECK_EQ(janus_rwlock_is_abandoned(&hold->table), hold->keep == keep_written);
    CHECK_EQ(janus_rwlock_unlock(&hold->table), JANUS_OK);
}

static const struct {
    void (*keep)(struct hold *hold);
    void (*ask)(struct hold *hold);
} holds[] = {{keep_mutex, ask_mutex},
             {keep_once, ask_once},
             {keep_read, ask_rwlock},
             {keep_written, ask_rwlock}};

enum { HOLDS = sizeof holds / sizeof holds[0] };

static int64_t holder(void *argument)
{
    struct hold *hold = argument;
    waits[hold->first](&hold->firsts);
    hold->keep(hold);
    return 0;
}

static int64_t asker(void *argument)
{
    struct hold *hold = argument;
    CHECK(rig_wait(&hold->has));
    hold->ask(hold);
    atomic_fetch_add(&hold->got, 1);
    return 0;
}

static void one_pair(int first, int kept, int panics)
{
    struct hold hold = {
        .first = first, .panics = panics, .keep = holds[kept].keep, .ask = holds[kept].ask};
    CHECK_EQ(janus_group_add(&hold.firsts.group, 1), JANUS_OK);
    CHECK_EQ(janus_mutex_lock(&hold.firsts.mutex), JANUS_OK);
    CHECK_EQ(janus_rwlock_read_lock(&hold.firsts.table), JANUS_OK);
    CHECK_EQ(janus_barrier_init(&hold.firsts.barrier, 2, JANUS_WAKER_ANYBODY, NULL), JANUS_OK);
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
    CHECK_EQ(janus_spawn(&n, holder, &hold), JANUS_OK);
    for (int i = 0; i < ASKERS; i++) CHECK_EQ(janus_spawn(&n, asker, &hold), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), panics ? JANUS_CHILD_FAILED : JANUS_OK);
    CHECK_EQ(hold.got, ASKERS);
    CHECK_EQ(janus_mutex_unlock(&hold.firsts.mutex), JANUS_OK);
    CHECK_EQ(janus_rwlock_unlock(&hold.firsts.table), JANUS_OK);
}

static int64_t all_pairs(void *argument)
{
    (void)argument;
    for (int first = 0; first < WAITS; first++) {
        for (int kept = 0; kept < HOLDS; kept++) {
            for (int panics = 0; panics < 2; panics++) one_pair(first, kept, panics);
        }
    }
    return 0;
}

TEST("whatever a task waited for first, its mutex goes to a waiter when it ends")
{
    rig_all(all_pairs, NULL, 1);
}

/* The same holder on a plain thread. */

static void *thread_holder(void *argument)
{
    struct hold *hold = argument;
    waits[hold->first](&hold->firsts);
    CHECK_EQ(janus_mutex_lock(&hold->mutex), JANUS_OK);
    atomic_store(&hold->has, 1);
    while (!all_wait(&hold->mutex)) (void)sched_yield();
    return NULL;
}

static void *thread_asker(void *argument)
{
    struct hold *hold = argument;
    while (!atomic_load(&hold->has)) (void)sched_yield();
    ask_mutex(hold);
    return NULL;
}

TEST("whatever a thread waited for first, its mutex goes to a waiter when it ends")
{
    RIG_REAL("threads outside");
    for (int first = 0; first < WAITS; first++) {
        struct hold hold = {.first = first};
        pthread_t   threads[1 + ASKERS];
        CHECK_EQ(janus_group_add(&hold.firsts.group, 1), JANUS_OK);
        CHECK_EQ(janus_mutex_lock(&hold.firsts.mutex), JANUS_OK);
        CHECK_EQ(janus_rwlock_read_lock(&hold.firsts.table), JANUS_OK);
        CHECK_EQ(janus_barrier_init(&hold.firsts.barrier, 2, JANUS_WAKER_ANYBODY, NULL), JANUS_OK);
        CHECK_EQ(pthread_create(&threads[0], NULL, thread_holder, &hold), 0);
        for (int i = 1; i <= ASKERS; i++) {
            CHECK_EQ(pthread_create(&threads[i], NULL, thread_asker, &hold), 0);
        }
        for (int i = 0; i <= ASKERS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
        CHECK_EQ(janus_mutex_unlock(&hold.firsts.mutex), JANUS_OK);
        CHECK_EQ(janus_rwlock_unlock(&hold.firsts.table), JANUS_OK);
    }
}
