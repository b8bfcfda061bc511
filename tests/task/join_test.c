/* SPDX-License-Identifier: MIT */
/* Joins by plain threads, refusals for all others, and many joins at once. Joins by tasks are in
 * scope_test. */
#include "rig.h"

#include <pthread.h>
#include <string.h>
#include <sys/resource.h>

enum { MANY = RIG_SLOW ? 200 : 2000, REPEATS = RIG_SLOW ? 5 : 50 };

static int64_t nap_then_give(void *argument)
{
    int64_t number = *(int64_t *)argument;
    if (number % 3 == 0) CHECK_EQ(janus_sleep((uint64_t)number % 50 * 1000), JANUS_OK);
    if (number % 3 == 1) CHECK_EQ(janus_yield(), JANUS_OK);
    return number;
}

TEST("a plain thread joins its children, in any order, each once")
{
    static int64_t       numbers[MANY];
    static janus_task_id ids[MANY];
    for (uint32_t workers = 1; workers <= 4; workers *= 2) {
        janus_nursery    n;
        janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers));
        CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_OK);
        for (int i = 0; i < MANY; i++) {
            numbers[i] = i;
            CHECK_EQ(janus_spawn_with(&n, nap_then_give, &numbers[i], NULL, &ids[i]), JANUS_OK);
        }
        for (int i = 0; i < MANY; i++) {
            int     at = i % 2 == 0 ? i / 2 : MANY - 1 - i / 2;
            int64_t result = -1;
            CHECK_EQ(janus_join(&n, ids[at], &result), JANUS_OK);
            CHECK_EQ(result, at);
            CHECK_EQ(janus_join(&n, ids[at], &result), JANUS_STALE);
        }
        CHECK_EQ(janus_nursery_state_of(&n), JANUS_NURSERY_STATE_OPEN);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

TEST("a thread's join returns a failure, and distinguishes a cancelled child")
{
    janus_nursery    n;
    janus_task_id    id;
    int64_t          result = 0;
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    CHECK_EQ(janus_nursery_open_in(scheduler, &n,
                                   JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, minus_seven, NULL, NULL, &id), JANUS_OK);
    CHECK_EQ(janus_join(&n, id, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result, -7);
    CHECK_EQ(janus_spawn_with(&n, sleep_an_hour, NULL, NULL, &id), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_join(&n, id, &result), JANUS_CHILD_CANCELLED);
    CHECK_EQ(result, JANUS_CANCELLED);
    CHECK_EQ(janus_join(&n, 0, &result), JANUS_STALE);
    CHECK_EQ(janus_join(&n, UINT64_MAX, &result), JANUS_STALE);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* Refused to others. */

struct foreign {
    janus_scheduler *scheduler;
    janus_nursery   *nursery;
    janus_task_id    id;
};

static int64_t join_as_task(void *argument)
{
    struct foreign *foreign = argument;
    CHECK_EQ(janus_join(foreign->nursery, foreign->id, NULL), JANUS_STATE);
    return 0;
}

static void *join_as_thread(void *argument)
{
    struct foreign *foreign = argument;
    janus_nursery   own;
    int64_t         result = 5;
    CHECK_EQ(janus_join(foreign->nursery, foreign->id, &result), JANUS_STATE);
    CHECK_EQ(janus_nursery_open_in(foreign->scheduler, &own, NULL), JANUS_OK);
    CHECK_EQ(janus_join(&own, foreign->id, &result), JANUS_STALE); /* not its child */
    CHECK_EQ(janus_nursery_end(&own, NULL), JANUS_OK);
    CHECK_EQ(result, 5);
    return NULL;
}

TEST("only the owning thread joins its child, and only through the child's nursery")
{
    RIG_REAL("a thread outside takes part");
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    for (int i = 0; i < REPEATS; i++) {
        janus_nursery  n;
        struct gate    gate = {.result = 3};
        struct foreign foreign = {scheduler, &n, 0};
        pthread_t      thread;
        int64_t        result = 0;
        CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn_with(&n, at_gate, &gate, NULL, &foreign.id), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, join_as_task, &foreign), JANUS_OK);
        CHECK_EQ(pthread_create(&thread, NULL, join_as_thread, &foreign), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        atomic_store(&gate.open, 1);
        CHECK_EQ(janus_join(&n, foreign.id, &result), JANUS_OK);
        CHECK_EQ(result, 3);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    }
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* No polling, and no wake-up for the ends of others. */

static int64_t nap(void *argument)
{
    (void)argument;
    return janus_sleep(20 * rig_ms) == JANUS_OK ? 0 : -1;
}

TEST("a thread that joins is woken by the child it joins, not by others, and does not poll")
{
    RIG_REAL("threads of the system are looked at");
#if JRT_TSAN
    SKIP("with the thread sanitizer, waits are short so that handlers of signals run");
#endif
    janus_nursery    n;
    janus_task_id    id, others[50];
    struct rusage    before, after;
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, nap, NULL, NULL, &id), JANUS_OK);
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(janus_spawn_with(&n, nothing, NULL, NULL, &others[i]), JANUS_OK);
    }
    getrusage(RUSAGE_THREAD, &before);
    CHECK_EQ(janus_join(&n, id, NULL), JANUS_OK);
    getrusage(RUSAGE_THREAD, &after);
    CHECK(after.ru_nvcsw - before.ru_nvcsw <= 3);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* A child ends at the moment it is joined. */

TEST("a join at the moment of the child's end returns")
{
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    uint64_t         end = janus_now_ns() + rig_few((RIG_SLOW ? 1500 : 800) * rig_ms);
    janus_nursery    n;
    CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_OK);
    for (int64_t round = 0; janus_now_ns() < end; round++) {
        janus_task_id id, other;
        int64_t       number = round % 7, result = -1;
        CHECK_EQ(janus_spawn_with(&n, nap_then_give, &number, NULL, &id), JANUS_OK);
        CHECK_EQ(janus_spawn_with(&n, nothing, NULL, NULL, &other), JANUS_OK);
        CHECK_EQ(janus_join(&n, id, &result), JANUS_OK);
        CHECK_EQ(result, number);
        CHECK_EQ(janus_join(&n, other, NULL), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* A thread that joins cannot act. */

static int64_t wait_for_nobody(void *argument)
{
    janus_waitpoint point;
    (void)argument;
    janus_waitpoint_init(&point, JANUS_WAKER_TASKS);
    return janus_waitpoint_wait(&point, "nobody");
}

static void join_deadlocked(void *argument)
{
    janus_nursery    n;
    janus_task_id    id;
    int64_t          result = 0;
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    (void)argument;
    CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, wait_for_nobody, NULL, NULL, &id), JANUS_OK);
    CHECK_EQ(janus_join(&n, id, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result, JANUS_DEADLOCK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

TEST("a deadlock is reported while a thread joins")
{
    int         status = 0;
    const char *text = harness_child(join_deadlocked, NULL, &status);
    CHECK_EQ(status, 0);
    CHECK(strstr(text, "janusrt: deadlock: every task waits\n") != NULL);
}

/* Unwinding at the end of a nursery. */

struct unwound {
    atomic_int ready, defers, went_on, began;
    bool       wait; /* janus_nursery_await_with first */
    bool       heap; /* made and ended by the entry points for generated code */
};

static void note_defer(void *argument)
{
    atomic_fetch_add(&((struct unwound *)argument)->defers, 1);
}

static int64_t unwind_at_end(void *argument)
{
    struct unwound *unwound = argument;
    janus_nursery   n;
    CHECK_EQ(janus_defer(note_defer, unwound), JANUS_OK);
    if (unwound->heap) {
        janus_nursery *heap = janus_nursery_create();
        CHECK(janus_nursery_spawn(heap, sleep_an_hour, &unwound->ready) != NULL);
        (void)janus_nursery_destroy(heap);
    } else {
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, sleep_an_hour, &unwound->ready), JANUS_OK);
        if (unwound->wait) JANUS_IGNORE(janus_nursery_await_with(&n, NULL));
        if (unwound->wait) atomic_fetch_add(&unwound->went_on, 1);
        JANUS_IGNORE(janus_nursery_end(&n, NULL));
    }
    atomic_fetch_add(&unwound->went_on, 1);
    return 7;
}

static int64_t cancel_unwound(void *argument)
{
    (void)argument;
    for (int way = 0; way < 3; way++) {
        struct unwound unwound = {.wait = way == 1, .heap = way == 2};
        janus_nursery  n;
        janus_task_id  id;
        int64_t        result = 0;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn_with(&n, unwind_at_end, &unwound,
                                  JANUS_SPAWN_OPTIONS(.cancel = JANUS_CANCEL_MODE_UNWIND), &id),
                 JANUS_OK);
        CHECK(rig_wait(&unwound.ready));
        CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
        CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_CANCELLED);
        CHECK_EQ(janus_join(&n, id, &result), JANUS_CHILD_CANCELLED);
        CHECK_EQ(result, JANUS_CANCELLED);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
        CHECK_EQ(unwound.went_on, 0);
        CHECK_EQ(unwound.defers, 1);
    }
    return 0;
}

TEST("a cancelled task in unwind mode ends where it waits for its nursery")
{
    rig_all(cancel_unwound, NULL, REPEATS);
}

/* Started before the cancel, so that it does fail. */
static int64_t fail_when_told(void *argument)
{
    atomic_store(&((struct unwound *)argument)->began, 1);
    while (!janus_cancelled()) JANUS_IGNORE(janus_yield());
    return minus_seven(argument);
}

/* Only the inner nursery is cancelled, or a child of it failed: the task goes on. */
static int64_t go_on(void *argument)
{
    struct unwound *unwound = argument;
    janus_nursery   n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, yield_for_ever, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, unwound->wait ? fail_when_told : yield_for_ever,
                         unwound->wait ? unwound : NULL),
             JANUS_OK);
    while (unwound->wait && !atomic_load(&unwound->began)) CHECK_EQ(janus_yield(), JANUS_OK);
    atomic_store(&unwound->ready, 1);
    while (!janus_cancelled()) { /* like a task that does not wait */
    }
    if (!unwound->wait) janus_shield_begin();
    CHECK_EQ(janus_nursery_await_with(&n, NULL),
             unwound->wait ? JANUS_CHILD_FAILED : JANUS_CANCELLED);
    if (!unwound->wait) janus_shield_end();
    atomic_store(&unwound->went_on, 1);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    JANUS_IGNORE(janus_yield());
    atomic_store(&unwound->went_on, 2);
    return 0;
}

static int64_t cancel_one_that_goes_on(void *argument)
{
    struct unwound unwound = {.wait = argument != NULL};
    janus_nursery  n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, go_on, &unwound,
                              JANUS_SPAWN_OPTIONS(.cancel = JANUS_CANCEL_MODE_UNWIND), NULL),
             JANUS_OK);
    CHECK(rig_wait(&unwound.ready));
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    CHECK_EQ(unwound.went_on, 1);
    return 0;
}

TEST("a task in unwind mode goes on when only its inner nursery was cancelled, or in a shield")
{
    rig_run(2, cancel_one_that_goes_on, NULL, REPEATS);
    rig_run(8, cancel_one_that_goes_on, NULL, REPEATS);
}

TEST("a cancelled task in unwind mode learns of a child's failure, and ends at its next wait")
{
    rig_run(2, cancel_one_that_goes_on, "failure", REPEATS);
    rig_run(8, cancel_one_that_goes_on, "failure", REPEATS);
}
