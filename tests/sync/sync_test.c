/* SPDX-License-Identifier: MIT */
/* Semaphores, conditions, events, wait groups, broadcasts, once: waits end as they should. */
#include "../task/town.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { TASKS = 8, ROUNDS = TOWN_SLOW ? 100 : 2000 };

#define BY_TASKS JANUS_OPENED_BY_TASKS

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
        JANUS_NURSERY(n)
        {
            for (int i = 0; i < TASKS; i++) {
                CHECK_EQ(janus_spawn(n, take_and_give, &pool), JANUS_OK);
            }
        }
        CHECK_EQ(janus_semaphore_permits(&pool.permits), permits);
    }
    return 0;
}

TEST("never are there more permits out than there were") { town_all(use_pool, NULL, 1); }

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
    uint64_t deadline_ns = janus_now_ns() + town_ms / 10;
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
    JANUS_NURSERY(n)
    {
        for (int i = 0; i < 3; i++) CHECK_EQ(janus_spawn(n, want_permit, &pool), JANUS_OK);
        while (pool.arrived < 3) CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK_EQ(janus_semaphore_release(permits, 5), JANUS_OK);
    }
    CHECK_EQ(janus_semaphore_permits(permits), 2);
    return 0;
}

TEST("a semaphore gives as many as it has, and refuses more than it can count")
{
    town_all(permits_and_errors, NULL, 5);
}

/* Permits and cancels at the same moment: none is lost, none is made. */

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
        if (i % 2 == 0) (void)janus_yield();
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

TEST("permits that are given while their takers are cancelled are not lost")
{
    town_all(give_and_cancel, NULL, 1);
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
    struct mixed     mixed = {.permits = JANUS_SEMAPHORE_INIT(0, JANUS_OPENED_BY_ANYBODY, NULL)};
    janus_scheduler *scheduler = town_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
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
    CHECK_EQ(janus_scheduler_close(scheduler), JANUS_OK);
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
    JANUS_NURSERY(n)
    {
        for (int i = 0; i < 4; i++) CHECK_EQ(janus_spawn(n, put_items, &belt), JANUS_OK);
        for (int i = 0; i < 4; i++) CHECK_EQ(janus_spawn(n, take_items, &belt), JANUS_OK);
    }
    CHECK_EQ(belt.sum, 4L * ROUNDS * (ROUNDS + 1) / 2);
    return 0;
}

TEST("what is signalled under a mutex is missed by nobody") { town_all(run_belt, NULL, 2); }

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
    CHECK_EQ(janus_mutex_unlock(&room->lock), JANUS_OK); /* it has it, whatever happened */
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
    CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_mutex_unlock(&room.lock), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    room.want = JANUS_DEADLINE;
    room.deadline_ns = janus_now_ns() + town_ms / 10;
    JANUS_NURSERY(late) { CHECK_EQ(janus_spawn(late, wait_in_room, &room), JANUS_OK); }
    CHECK_EQ(janus_mutex_try_lock(&room.lock), JANUS_OK);
    CHECK_EQ(janus_mutex_unlock(&room.lock), JANUS_OK);
    return 0;
}

TEST("a condition's wait that ends otherwise has the mutex again")
{
    town_all(waits_that_end_otherwise, NULL, 10);
}

/* Cancelled where it is to be unwound: the mutex is locked again, and then its defer unlocks it. */

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
                                  JANUS_SPAWN_OPTIONS(.cancel = JANUS_CANCEL_UNWIND), NULL),
                 JANUS_OK);
    }
    while (room.waiting < TASKS) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    CHECK_EQ(janus_mutex_lock(&room.lock), JANUS_OK); /* not OWNER_GONE */
    CHECK_EQ(janus_mutex_unlock(&room.lock), JANUS_OK);
    return 0;
}

TEST("a task that is unwound in a condition's wait has the mutex when its defers run")
{
    town_all(unwound, NULL, 10);
}

/* Events. */

struct start {
    janus_event  go;
    atomic_int   waiting, gone;
    janus_status want;
};

static int64_t wait_to_start(void *argument)
{
    struct start *start = argument;
    atomic_fetch_add(&start->waiting, 1);
    janus_status status = janus_event_wait(&start->go);
    CHECK_EQ(status, start->want);
    atomic_fetch_add(&start->gone, 1);
    return status == JANUS_CANCELLED ? JANUS_CANCELLED : 0;
}

static int64_t start_all(void *argument)
{
    (void)argument;
    struct start start = {.go = JANUS_EVENT_INIT(BY_TASKS, "go")};
    JANUS_NURSERY(n)
    {
        for (int i = 0; i < TASKS; i++) CHECK_EQ(janus_spawn(n, wait_to_start, &start), JANUS_OK);
        while (start.waiting < TASKS) CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK(!janus_event_is_set(&start.go));
        CHECK_EQ(start.gone, 0);
        janus_event_set(&start.go);
        janus_event_set(&start.go);
        CHECK(janus_event_is_set(&start.go));
    }
    CHECK_EQ(janus_event_wait(&start.go), JANUS_OK);
    janus_event_reset(&start.go);
    CHECK(!janus_event_is_set(&start.go));
    CHECK_EQ(janus_event_wait_until(&start.go, 1), JANUS_DEADLINE);
    CHECK_EQ(janus_event_wait(NULL), JANUS_INVALID);
    start.want = JANUS_CANCELLED;
    start.waiting = 0;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < TASKS; i++) CHECK_EQ(janus_spawn(&n, wait_to_start, &start), JANUS_OK);
    while (start.waiting < TASKS) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("an event lets all go who wait, until it is reset") { town_all(start_all, NULL, 10); }

/* A waiter frees what it waited for at once. */

static int64_t set_it(void *event)
{
    janus_event_set(event);
    return 0;
}

static int64_t done_it(void *group)
{
    CHECK_EQ(janus_group_done(group), JANUS_OK);
    return 0;
}

static int64_t free_at_once(void *argument)
{
    (void)argument;
    JANUS_NURSERY(n)
    {
        for (int i = 0; i < ROUNDS; i++) {
            janus_event *event = malloc(sizeof *event);
            janus_group *group = malloc(sizeof *group);
            CHECK(event != NULL && group != NULL);
            janus_event_init(event, BY_TASKS, NULL);
            janus_group_init(group, BY_TASKS, NULL);
            CHECK_EQ(janus_group_add(group, 2), JANUS_OK);
            CHECK_EQ(janus_spawn(n, set_it, event), JANUS_OK);
            for (int k = 0; k < 2; k++) CHECK_EQ(janus_spawn(n, done_it, group), JANUS_OK);
            CHECK_EQ(janus_event_wait(event), JANUS_OK);
            memset(event, 0x5a, sizeof *event);
            free(event);
            CHECK_EQ(janus_group_wait(group), JANUS_OK);
            memset(group, 0x5a, sizeof *group);
            free(group);
        }
    }
    return 0;
}

TEST("the only one that waits may free an event or a group as soon as it returns")
{
    town_all(free_at_once, NULL, 2);
}

/* Groups. */

static int64_t count_down(void *argument)
{
    (void)argument;
    janus_group group;
    janus_group_init(&group, BY_TASKS, "things");
    CHECK_EQ(janus_group_wait(&group), JANUS_OK);
    CHECK_EQ(janus_group_done(&group), JANUS_STATE);
    CHECK_EQ(janus_group_add(&group, JANUS_GROUP_MAX), JANUS_OK);
    CHECK_EQ(janus_group_add(&group, 1), JANUS_FULL);
    CHECK_EQ(janus_group_wait_until(&group, 1), JANUS_DEADLINE);
    janus_group_init(&group, BY_TASKS, "things");
    CHECK_EQ(janus_group_wait(NULL), JANUS_INVALID);
    CHECK_EQ(janus_group_add(NULL, 1), JANUS_INVALID);
    CHECK_EQ(janus_group_done(NULL), JANUS_INVALID);
    CHECK_EQ(janus_group_add(&group, TASKS), JANUS_OK);
    JANUS_NURSERY(n)
    {
        for (int i = 0; i < TASKS; i++) CHECK_EQ(janus_spawn(n, done_it, &group), JANUS_OK);
        CHECK_EQ(janus_group_wait(&group), JANUS_OK);
        CHECK_EQ(janus_group_done(&group), JANUS_STATE);
    }
    return 0;
}

TEST("a group's wait ends when as much is done as was added") { town_all(count_down, NULL, 20); }

/* Broadcasts. */

struct radio {
    janus_broadcast news;
    atomic_int      listening, heard;
};

static int64_t listener(void *argument)
{
    struct radio *radio = argument;
    uint64_t      seen = 0, last = 0;
    atomic_fetch_add(&radio->listening, 1);
    while (seen < ROUNDS) {
        CHECK_EQ(janus_broadcast_wait(&radio->news, &seen), JANUS_OK);
        CHECK(seen > last);
        last = seen;
    }
    atomic_fetch_add(&radio->heard, 1);
    return 0;
}

static int64_t on_air(void *argument)
{
    (void)argument;
    struct radio radio = {.news = JANUS_BROADCAST_INIT(BY_TASKS, "news")};
    uint64_t     seen = 0;
    JANUS_NURSERY(n)
    {
        for (int i = 0; i < TASKS; i++) CHECK_EQ(janus_spawn(n, listener, &radio), JANUS_OK);
        while (radio.listening < TASKS) CHECK_EQ(janus_yield(), JANUS_OK);
        for (int i = 0; i < ROUNDS; i++) {
            janus_broadcast_send(&radio.news);
            if (i % 3 == 0) CHECK_EQ(janus_yield(), JANUS_OK);
        }
    }
    CHECK_EQ(radio.heard, TASKS);
    CHECK_EQ(janus_broadcast_count(&radio.news), ROUNDS);
    CHECK_EQ(janus_broadcast_wait(&radio.news, &seen), JANUS_OK);
    CHECK_EQ(seen, ROUNDS);
    CHECK_EQ(janus_broadcast_wait_until(&radio.news, &seen, 1), JANUS_DEADLINE);
    CHECK_EQ(seen, ROUNDS);
    CHECK_EQ(janus_broadcast_wait(&radio.news, NULL), JANUS_INVALID);
    return 0;
}

TEST("every listener hears the last that was sent") { town_all(on_air, NULL, 2); }

/* Once. */

struct first {
    janus_once once;
    atomic_int runs, fail, calls;
    bool       dies;
};

static int64_t run_first(void *argument)
{
    struct first *first = argument;
    atomic_fetch_add(&first->runs, 1);
    CHECK_EQ(janus_yield(), JANUS_OK);
    if (first->dies && atomic_load(&first->fail) > 0) {
        atomic_fetch_sub(&first->fail, 1);
        janus_panic("in a once");
    }
    return atomic_fetch_sub(&first->fail, 1) > 0 ? -9 : 5;
}

static int64_t call_once(void *argument)
{
    struct first *first = argument;
    int64_t       result = 77;
    janus_status  status = janus_once_call(&first->once, run_first, first, &result);
    CHECK(status == JANUS_OK ? result == 0 || result == 5 : status == JANUS_CHILD_FAILED);
    if (status == JANUS_CHILD_FAILED) CHECK_EQ(result, -9);
    if (status == JANUS_OK) atomic_fetch_add(&first->calls, 1);
    return 0;
}

static int64_t only_once(void *argument)
{
    (void)argument;
    for (int kind = 0; kind < 3; kind++) { /* it succeeds, fails twice, dies twice */
        int           bad = kind > 0 ? 2 : 0;
        struct first  first = {.once = JANUS_ONCE_INIT("first"), .fail = bad, .dies = kind == 2};
        janus_nursery n;
        CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_WAIT_ALL)), JANUS_OK);
        for (int i = 0; i < TASKS; i++) CHECK_EQ(janus_spawn(&n, call_once, &first), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), kind == 2 ? JANUS_CHILD_FAILED : JANUS_OK);
        CHECK_EQ(first.runs, 1 + bad);
        CHECK_EQ(first.calls, TASKS - bad);
    }
    return 0;
}

TEST("a once runs until it has succeeded, and never after") { town_all(only_once, NULL, 10); }

static int64_t call_inside(void *argument)
{
    CHECK_EQ(janus_once_call(argument, nothing, NULL, NULL), JANUS_STATE);
    CHECK_EQ(janus_once_call(NULL, nothing, NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_once_call(argument, NULL, NULL, NULL), JANUS_INVALID);
    return 0;
}

static void *inside_on_thread(void *argument)
{
    janus_once once;
    (void)argument;
    janus_once_init(&once, NULL);
    CHECK_EQ(janus_once_call(&once, call_inside, &once, NULL), JANUS_OK);
    return NULL;
}

TEST("a once that is called inside itself says STATE")
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, inside_on_thread, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
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
    while (!janus_cancelled()) (void)janus_yield();
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

TEST("a cancelled task is told so before anything else, unless it only tries or is shielded")
{
    town_all(cancel_first, NULL, 5);
}
