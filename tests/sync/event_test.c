/* SPDX-License-Identifier: MIT */
/* Events, wait groups, broadcasts, once: all waiters are released, once and not before. */
#include "../task/rig.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { TASKS = 8, ROUNDS = RIG_SLOW ? 100 : 2000 };

#define BY_TASKS JANUS_WAKER_TASKS

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
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < TASKS; i++) CHECK_EQ(janus_spawn(n, wait_to_start, &start), JANUS_OK);
        while (start.waiting < TASKS) CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK(!janus_event_is_set(&start.go));
        CHECK_EQ(start.gone, 0);
        janus_event_set(&start.go);
        janus_event_set(&start.go);
        CHECK(janus_event_is_set(&start.go));
    }
    CHECK_EQ(ended, JANUS_OK);
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

TEST("an event wakes all waiters until it is reset") { rig_all(start_all, NULL, 10); }

/* A waiter frees the object at once. */

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
    janus_status ended;
    JANUS_NURSERY(n, ended)
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
    CHECK_EQ(ended, JANUS_OK);
    return 0;
}

TEST("the only waiter may free an event or a group as soon as its wait returns")
{
    rig_all(free_at_once, NULL, 2);
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
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < TASKS; i++) CHECK_EQ(janus_spawn(n, done_it, &group), JANUS_OK);
        CHECK_EQ(janus_group_wait(&group), JANUS_OK);
        CHECK_EQ(janus_group_done(&group), JANUS_STATE);
    }
    CHECK_EQ(ended, JANUS_OK);
    return 0;
}

TEST("a group's wait ends when everything that was added is done")
{
    rig_all(count_down, NULL, 20);
}

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
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < TASKS; i++) CHECK_EQ(janus_spawn(n, listener, &radio), JANUS_OK);
        while (radio.listening < TASKS) CHECK_EQ(janus_yield(), JANUS_OK);
        for (int i = 0; i < ROUNDS; i++) {
            janus_broadcast_send(&radio.news);
            if (i % 3 == 0) CHECK_EQ(janus_yield(), JANUS_OK);
        }
    }
    CHECK_EQ(ended, JANUS_OK);
    CHECK_EQ(radio.heard, TASKS);
    CHECK_EQ(janus_broadcast_count(&radio.news), ROUNDS);
    CHECK_EQ(janus_broadcast_wait(&radio.news, &seen), JANUS_OK);
    CHECK_EQ(seen, ROUNDS);
    CHECK_EQ(janus_broadcast_wait_until(&radio.news, &seen, 1), JANUS_DEADLINE);
    CHECK_EQ(seen, ROUNDS);
    CHECK_EQ(janus_broadcast_wait(&radio.news, NULL), JANUS_INVALID);
    return 0;
}

TEST("every listener hears the last value sent") { rig_all(on_air, NULL, 2); }

static int64_t from_elsewhere(void *argument)
{
    (void)argument;
    janus_broadcast news = JANUS_BROADCAST_INIT(BY_TASKS, "news");
    const uint64_t  ahead[] = {3, 4, UINT64_C(1) << 58, UINT64_C(1) << 63, UINT64_MAX};
    const uint64_t  limit = janus_now_ns() + rig_patience;
    const uint64_t  until[] = {0, limit, UINT64_MAX};
    uint64_t        seen = 2;
    janus_broadcast_send(&news);
    janus_broadcast_send(&news);
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 3; k++) {
            seen = ahead[i];
            CHECK_EQ(janus_broadcast_wait_until(&news, &seen, until[k]), JANUS_INVALID);
            CHECK_EQ(seen, ahead[i]);
        }
    }
    CHECK_EQ(janus_broadcast_count(&news), 2);
    seen = 3;
    janus_broadcast_send(&news);
    CHECK_EQ(janus_broadcast_wait_until(&news, &seen, 1), JANUS_DEADLINE); /* it has caught up */
    seen = 1;
    CHECK_EQ(janus_broadcast_wait(&news, &seen), JANUS_OK);
    CHECK_EQ(seen, 3);
    CHECK(janus_now_ns() < limit);
    return 0;
}

TEST("a listener with a number that the broadcast never had gets INVALID and does not wait")
{
    CHECK_EQ(from_elsewhere(NULL), 0);
    rig_all(from_elsewhere, NULL, 5);
}

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
        CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)),
                 JANUS_OK);
        for (int i = 0; i < TASKS; i++) CHECK_EQ(janus_spawn(&n, call_once, &first), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), kind == 2 ? JANUS_CHILD_FAILED : JANUS_OK);
        CHECK_EQ(first.runs, 1 + bad);
        CHECK_EQ(first.calls, TASKS - bad);
    }
    return 0;
}

TEST("a once runs its function until it succeeds, and never again")
{
    rig_all(only_once, NULL, 10);
}

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

TEST("a once that is called inside itself returns STATE")
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, inside_on_thread, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}
