/* SPDX-License-Identifier: MIT */
/* Semaphores and conditions: permits add up, signals are not missed, and waits end as they
 * should. */
#include "../task/rig.h"

#include <pthread.h>
#include <stdlib.h>

enum { TASKS = 8, ROUNDS = RIG_SLOW ? 100 : 2000 };

#define BY_TASKS JANUS_WAKER_TASKS

/* Semaphores. */

struct pool {
    janus_semaphore permits;
    atomic_int      out, most, arrived;
    janus_status    want;
};

static int64_t take_and_give(void *argument)
{
    struct pool *pool = argument;
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_EQ(janus_semaphore_acquire(&pool->permits), JANUS_OK);
        CHECK(atomic_fetch_add(&pool->out, 1) < pool->most);
        if (i % 4 == 0) CHECK_EQ(janus_yield(), JANUS_OK);
        atomic_fetch_sub(&pool->out, 1);
        CHECK_EQ(janus_semaphore_release(&pool->permits, 1), JANUS_OK);
    }
    return 0;
}

static int64_t use_pool(void *argument)
{
    (void)argument;
    for (uint32_t permits = 1; permits <= 3; permits++) {
        struct pool pool = {.most = (int)permits};
        janus_semaphore_init(&pool.permits, permits, BY_TASKS, "pool");
        janus_status ended;
        JANUS_NURSERY(n, ended)
        {
            for (int i = 0; i < TASKS; i++) {
                CHECK_EQ(janus_spawn(n, take_and_give, &pool), JANUS_OK);
            }
        }
        CHECK_EQ(ended, JANUS_OK);
        CHECK_EQ(janus_semaphore_permits(&pool.permits), permits);
    }
    return 0;
}

TEST("there are never more permits out than there were") { rig_all(use_pool, NULL, 1); }

static int64_t want_permit(void *argument)
{
    struct pool *pool = argument;
    atomic_fetch_add(&pool->arrived, 1);
    janus_status status = janus_semaphore_acquire(&pool->permits);
    CHECK_EQ(status, pool->want);
    return status == JANUS_CANCELLED ? JANUS_CANCELLED : 0;
}

static int64_t permits_and_errors(void *argument)
{
    (void)argument;
    struct pool      pool = {.permits = JANUS_SEMAPHORE_INIT(1, BY_TASKS, NULL)};
    janus_semaphore *permits = &pool.permits;
    CHECK_EQ(janus_semaphore_try_acquire(permits), JANUS_OK);
    CHECK_EQ(janus_semaphore_try_acquire(permits), JANUS_WOULD_WAIT);
    CHECK_EQ(janus_semaphore_acquire_until(permits, 1), JANUS_DEADLINE);
    uint64_t deadline_ns = janus_now_ns() + rig_ms / 10;
    CHECK_EQ(janus_semaphore_acquire_until(permits, deadline_ns), JANUS_DEADLINE);
    CHECK(janus_now_ns() >= deadline_ns);
    CHECK_EQ(janus_semaphore_release(permits, 0), JANUS_INVALID);
    CHECK_EQ(janus_semaphore_release(permits, JANUS_PERMITS_MAX), JANUS_OK);
    CHECK_EQ(janus_semaphore_release(permits, 1), JANUS_FULL);
    CHECK_EQ(janus_semaphore_permits(permits), JANUS_PERMITS_MAX);
    CHECK_EQ(janus_semaphore_acquire(NULL), JANUS_INVALID);
    CHECK_EQ(janus_semaphore_try_acquire(NULL), JANUS_INVALID);
    CHECK_EQ(janus_semaphore_release(NULL, 1), JANUS_INVALID);
    janus_semaphore_init(permits, 0, BY_TASKS, NULL);
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < 3; i++) CHECK_EQ(janus_spawn(n, want_permit, &pool), JANUS_OK);
        while (pool.arrived < 3) CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK_EQ(janus_semaphore_release(permits, 5), JANUS_OK);
    }
    CHECK_EQ(ended, JANUS_OK);
    CHECK_EQ(janus_semaphore_permits(permits), 2);
    return 0;
}

TEST("a semaphore gives as many permits as it has, and refuses more than it can count")
{
    rig_all(permits_and_errors, NULL, 5);
}

/* Permits and cancels at the same moment: no permit is lost, and none is made. */

static int64_t take_one(void *argument)
{
    struct pool *pool = argument;
    atomic_fetch_add(&pool->arrived, 1);
    janus_status status = janus_semaphore_acquire(&pool->permits);
    CHECK(status == JANUS_OK || status == JANUS_CANCELLED);
    if (status == JANUS_OK) atomic_fetch_add(&pool->out, 1);
    return status;
}

static int64_t give_some(void *argument)
{
    struct pool *pool = argument;
    for (int i = 0; i < TASKS / 2; i++) {
        CHECK_EQ(janus_semaphore_release(&pool->permits, 1), JANUS_OK);
        if (i % 2 == 0) JANUS_IGNORE(janus_yield());
    }
    return 0;
}

static int64_t give_and_cancel(void *argument)
{
    (void)argument;
    for (int i = 0; i < ROUNDS; i++) {
        struct pool   pool = {.permits = JANUS_SEMAPHORE_INIT(0, BY_TASKS, "raced for")};
        janus_nursery takers, givers;
        CHECK_EQ(janus_nursery_open(&givers, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_open(&takers, NULL), JANUS_OK);
        for (int k = 0; k < TASKS; k++) CHECK_EQ(janus_spawn(&takers, take_one, &pool), JANUS_OK);
        for (int k = i % 8; k > 0; k--) CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK_EQ(janus_spawn(&givers, give_some, &pool), JANUS_OK);
        for (int k = i % 4; k > 0; k--) CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK_EQ(janus_nursery_cancel(&takers), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&takers, NULL), JANUS_CANCELLED);
        CHECK_EQ(janus_nursery_end(&givers, NULL), JANUS_OK);
        CHECK_EQ((int)janus_semaphore_permits(&pool.permits) + pool.out, TASKS / 2);
    }
    return 0;
}

TEST("permits given to takers that are cancelled are not lost")
{
    rig_all(give_and_cancel, NULL, 1);
}

/* Threads and tasks, with deadlines that pass while permits come. */

struct mixed {
    janus_semaphore permits;
    atomic_long     given, taken;
    atomic_int      stop;
};

static void take_in_time(struct mixed *mixed, unsigned seed)
{
    for (int i = 0; i < ROUNDS / 4; i++) {
        uint64_t     span_ns = (unsigned)rand_r(&seed) % 20000;
        janus_status status =
            janus_semaphore_acquire_until(&mixed->permits, janus_now_ns() + span_ns);
        CHECK(status == JANUS_OK || status == JANUS_DEADLINE);
        if (status == JANUS_OK) atomic_fetch_add(&mixed->taken, 1);
    }
}

static void *thread_takes(void *mixed)
{
    take_in_time(mixed, 7);
    return NULL;
}

static int64_t task_takes(void *mixed)
{
    take_in_time(mixed, 11);
    return 0;
}

static void *thread_gives(void *argument)
{
    struct mixed *mixed = argument;
    while (!atomic_load(&mixed->stop)) {
        CHECK_EQ(janus_semaphore_release(&mixed->permits, 1), JANUS_OK);
        atomic_fetch_add(&mixed->given, 1);
        sched_yield();
    }
    return NULL;
}

TEST("threads and tasks take permits in time or not at all, and the permits add up")
{
    RIG_REAL("a thread outside takes part");
    struct mixed     mixed = {.permits = JANUS_SEMAPHORE_INIT(0, JANUS_WAKER_ANYBODY, NULL)};
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    janus_nursery    root;
    pthread_t        taker, giver;
    CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
    CHECK_EQ(pthread_create(&giver, NULL, thread_gives, &mixed), 0);
    CHECK_EQ(pthread_create(&taker, NULL, thread_takes, &mixed), 0);
    for (int i = 0; i < 4; i++) CHECK_EQ(janus_spawn(&root, task_takes, &mixed), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_OK);
    CHECK_EQ(pthread_join(taker, NULL), 0);
    atomic_store(&mixed.stop, 1);
    CHECK_EQ(pthread_join(giver, NULL), 0);
    CHECK_EQ(mixed.given, mixed.taken + (long)janus_semaphore_permits(&mixed.permits));
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* Conditions: a queue of numbers. */

struct belt {
    janus_mutex     lock;
    janus_condition filled, emptied;
    int             items[4], count;
    long            sum, left;
};

static int64_t put_items(void *argument)
{
    struct belt *belt = argument;
    for (int i = 1; i <= ROUNDS; i++) {
        CHECK_EQ(janus_mutex_lock(&belt->lock), JANUS_OK);
        while (belt->count == 4) {
            CHECK_EQ(janus_condition_wait(&belt->emptied, &belt->lock), JANUS_OK);
        }
        belt->items[belt->count++] = i;
        CHECK_EQ(janus_mutex_unlock(&belt->lock), JANUS_OK);
        janus_condition_signal(&belt->filled);
    }
    return 0;
}

static int64_t take_items(void *argument)
{
    struct belt *belt = argument;
    CHECK_EQ(janus_mutex_lock(&belt->lock), JANUS_OK);
    while (belt->left > 0) {
        if (belt->count == 0) {
            CHECK_EQ(janus_condition_wait(&belt->filled, &belt->lock), JANUS_OK);
            continue;
        }
        belt->sum += belt->items[--belt->count];
        if (--belt->left == 0) janus_condition_broadcast(&belt->filled);
        janus_condition_signal(&belt->emptied);
    }
    CHECK_EQ(janus_mutex_unlock(&belt->lock), JANUS_OK);
    return 0;
}

static int64_t run_belt(void *argument)
{
    (void)argument;
    struct belt belt = {.lock = JANUS_MUTEX_INIT("belt"),
                        .filled = JANUS_CONDITION_INIT(BY_TASKS, "filled"),
                        .left = 4L * ROUNDS};
    janus_condition_init(&belt.emptied, BY_TASKS, "emptied");
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < 4; i++) CHECK_EQ(janus_spawn(n, put_items, &belt), JANUS_OK);
        for (int i = 0; i < 4; i++) CHECK_EQ(janus_spawn(n, take_items, &belt), JANUS_OK);
    }
    CHECK_EQ(ended, JANUS_OK);
    CHECK_EQ(belt.sum, 4L * ROUNDS * (ROUNDS + 1) / 2);
    return 0;
}

TEST("no waiter misses a signal that is sent under the mutex") { rig_all(run_belt, NULL, 2); }

struct room {
    janus_mutex     lock;
    janus_condition changed;
    atomic_int      waiting;
    janus_status    want;
    uint64_t        deadline_ns;
};

static int64_t wait_in_room(void *argument)
{
    struct room *room = argument;
    uint64_t     deadline_ns = room->deadline_ns != 0 ? room->deadline_ns : UINT64_MAX;
    CHECK_EQ(janus_mutex_lock(&room->lock), JANUS_OK);
    atomic_fetch_add(&room->waiting, 1);
    janus_status status = janus_condition_wait_until(&room->changed, &room->lock, deadline_ns);
    CHECK_EQ(status, room->want);
    CHECK_EQ(janus_mutex_unlock(&room->lock), JANUS_OK); /* it holds the mutex, whatever happened */
    return status == JANUS_CANCELLED ? JANUS_CANCELLED : 0;
}

static int64_t waits_that_end_otherwise(void *argument)
{
    (void)argument;
    struct room room = {.lock = JANUS_MUTEX_INIT("room"),
                        .changed = JANUS_CONDITION_INIT(BY_TASKS, "change"),
                        .want = JANUS_CANCELLED};
    CHECK_EQ(janus_condition_wait(&room.changed, &room.lock), JANUS_STATE);
    CHECK_EQ(janus_condition_wait(NULL, &room.lock), JANUS_INVALID);
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < TASKS; i++) CHECK_EQ(janus_spawn(&n, wait_in_room, &room), JANUS_OK);
    while (room.waiting < TASKS) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_mutex_lock(&room.lock), JANUS_OK); /* so all of them wait by now */
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_yield(), JANUS_CANCELLED); /* the owner is in the nursery's scope */
    CHECK_EQ(janus_mutex_unlock(&room.lock), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    room.want = JANUS_DEADLINE;
    room.deadline_ns = janus_now_ns() + rig_ms / 10;
    janus_status ended;
    JANUS_NURSERY(late, ended) { CHECK_EQ(janus_spawn(late, wait_in_room, &room), JANUS_OK); }
    CHECK_EQ(ended, JANUS_OK);
    CHECK_EQ(janus_mutex_try_lock(&room.lock), JANUS_OK);
    CHECK_EQ(janus_mutex_unlock(&room.lock), JANUS_OK);
    return 0;
}

TEST("a condition's wait that ends otherwise has locked the mutex again")
{
    rig_all(waits_that_end_otherwise, NULL, 10);
}

/* A cancel that unwinds the task: the mutex is locked again, and then a defer unlocks it. */

static void unlock_room(void *argument)
{
    struct room *room = argument;
    CHECK_EQ(janus_mutex_unlock(&room->lock), JANUS_OK);
}

static int64_t wait_to_be_unwound(void *argument)
{
    struct room *room = argument;
    CHECK_EQ(janus_mutex_lock(&room->lock), JANUS_OK);
    CHECK_EQ(janus_defer(unlock_room, room), JANUS_OK);
    atomic_fetch_add(&room->waiting, 1);
    (void)!janus_condition_wait(&room->changed, &room->lock);
    harness_fail(__FILE__, __LINE__, "it goes on");
}

static int64_t unwound(void *argument)
{
    (void)argument;
    struct room   room = {.lock = JANUS_MUTEX_INIT(NULL),
                          .changed = JANUS_CONDITION_INIT(BY_TASKS, NULL)};
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < TASKS; i++) {
        CHECK_EQ(janus_spawn_with(&n, wait_to_be_unwound, &room,
                                  JANUS_SPAWN_OPTIONS(.cancel = JANUS_CANCEL_MODE_UNWIND), NULL),
                 JANUS_OK);
    }
    while (room.waiting < TASKS) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    CHECK_EQ(janus_mutex_lock(&room.lock), JANUS_OK); /* not abandoned */
    CHECK_EQ(janus_mutex_unlock(&room.lock), JANUS_OK);
    return 0;
}

TEST("a task that is unwound in a condition's wait holds the mutex when its defers run")
{
    rig_all(unwound, NULL, 10);
}

/* Cancelled before. */

static int64_t told_first(void *argument)
{
    (void)argument;
    janus_mutex     lock = JANUS_MUTEX_INIT(NULL);
    janus_semaphore permits = JANUS_SEMAPHORE_INIT(1, BY_TASKS, NULL);
    janus_event     event = JANUS_EVENT_INIT(BY_TASKS, NULL);
    janus_once      once = JANUS_ONCE_INIT(NULL);
    janus_event_set(&event);
    while (!janus_cancelled()) JANUS_IGNORE(janus_yield());
    CHECK_EQ(janus_mutex_lock(&lock), JANUS_CANCELLED);
    CHECK_EQ(janus_semaphore_acquire(&permits), JANUS_CANCELLED);
    CHECK_EQ(janus_semaphore_permits(&permits), 1);
    CHECK_EQ(janus_event_wait(&event), JANUS_CANCELLED);
    CHECK_EQ(janus_once_call(&once, nothing, NULL, NULL), JANUS_CANCELLED);
    CHECK_EQ(janus_semaphore_try_acquire(&permits), JANUS_OK);
    CHECK_EQ(janus_mutex_try_lock(&lock), JANUS_OK);
    CHECK_EQ(janus_mutex_unlock(&lock), JANUS_OK);
    janus_shield_begin();
    CHECK_EQ(janus_mutex_lock(&lock), JANUS_OK);
    janus_shield_end();
    CHECK_EQ(janus_mutex_unlock(&lock), JANUS_OK);
    return JANUS_CANCELLED;
}

static int64_t cancel_first(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, told_first, argument), JANUS_OK);
    CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("a cancelled task gets CANCELLED first, unless it only tries or is shielded")
{
    rig_all(cancel_first, NULL, 5);
}
