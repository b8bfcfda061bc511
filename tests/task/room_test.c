/* SPDX-License-Identifier: MIT */
/* Nurseries with a limit at which spawns wait. */
#include "rig.h"

#include <pthread.h>
#include <string.h>

enum { REPEATS = RIG_SLOW ? 5 : 50 };

#define WAIT_AT(limit)                                                                             \
    JANUS_NURSERY_OPTIONS(.max_children = (limit), .when_full = JANUS_WHEN_FULL_WAIT)

/* Never more than the limit. */

struct limit {
    atomic_int alive, most, ran;
    int        max;
};

static int64_t live_a_little(void *argument)
{
    struct limit *limit = argument;
    int           alive = atomic_fetch_add(&limit->alive, 1) + 1;
    CHECK(alive <= limit->max);
    for (int i = 0; i < alive; i++) CHECK_EQ(janus_yield(), JANUS_OK);
    atomic_fetch_sub(&limit->alive, 1);
    atomic_fetch_add(&limit->ran, 1);
    return 0;
}

static int64_t spawn_many(void *argument)
{
    (void)argument;
    for (int max = 1; max <= 4; max++) {
        struct limit  limit = {.max = max};
        janus_nursery n;
        CHECK_EQ(janus_nursery_open(&n, WAIT_AT((uint32_t)max)), JANUS_OK);
        for (int i = 0; i < 100; i++) CHECK_EQ(janus_spawn(&n, live_a_little, &limit), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        CHECK_EQ(limit.ran, 100);
    }
    return 0;
}

TEST("a spawn into a full nursery waits for room, and the limit is never exceeded")
{
    rig_all(spawn_many, NULL, REPEATS);
}

TEST("a plain thread waits for room too")
{
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    for (int i = 0; i < REPEATS; i++) {
        struct limit  limit = {.max = 2};
        janus_nursery n;
        CHECK_EQ(janus_nursery_open_in(scheduler, &n, WAIT_AT(2)), JANUS_OK);
        for (int k = 0; k < 50; k++) CHECK_EQ(janus_spawn(&n, live_a_little, &limit), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        CHECK_EQ(limit.ran, 50);
    }
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

static int64_t run_and_tell(void *argument)
{
    atomic_store((atomic_int *)argument, 1);
    return 0;
}

/* A child that the joiner sees end on another worker. */
static int64_t join_and_spawn_again(void *argument)
{
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.max_children = 1)), JANUS_OK);
    for (uint64_t i = 0; i < rig_few(RIG_SLOW ? 100 : 2000); i++) {
        janus_task_id child;
        atomic_int    ran = 0;
        CHECK_EQ(janus_spawn_with(&n, run_and_tell, &ran, NULL, &child), JANUS_OK);
        for (int k = 0; k < 1000 && atomic_load(&ran) == 0; k++) rig_spin();
        CHECK_EQ(janus_join(&n, child, NULL), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("when a join returns, the nursery has room for another child")
{
    rig_all(join_and_spawn_again, NULL, 1);
}

TEST("when_full has two valid values, and a nursery without a limit never waits")
{
    janus_nursery    n;
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
    CHECK_EQ(janus_nursery_open_in(scheduler, &n, JANUS_NURSERY_OPTIONS(.when_full = 2)),
             JANUS_INVALID);
    CHECK_EQ(janus_nursery_open_in(scheduler, &n, WAIT_AT(0)), JANUS_OK);
    for (int i = 0; i < 100; i++) CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* In the order of arrival. A child of the nursery, the captain, has helpers that spawn into it. */

enum { HELPERS = 8 };

struct queue {
    janus_nursery nursery, helpers;
    struct gate   gate;
    atomic_int    turn, asked, ready, ended, order[HELPERS];
    janus_status  want;
    bool          shielded;
    janus_token  *stop; /* cancels the helpers; NULL: none */
};

struct helper {
    struct queue *queue;
    int           number;
};

static int64_t note_turn(void *argument)
{
    struct helper *helper = argument;
    atomic_store(&helper->queue->order[helper->number], atomic_fetch_add(&helper->queue->turn, 1));
    return 0;
}

static int64_t ask_for_room(void *argument)
{
    struct helper *helper = argument;
    struct queue  *queue = helper->queue;
    while (atomic_load(&queue->asked) != helper->number) CHECK_EQ(janus_yield(), JANUS_OK);
    atomic_fetch_add(&queue->asked, 1); /* one worker: the next asks when this one waits */
    if (queue->shielded) janus_shield_begin();
    janus_status status = janus_spawn(&queue->nursery, note_turn, helper);
    if (queue->shielded) janus_shield_end();
    CHECK_EQ(status, queue->want);
    return status == JANUS_CANCELLED ? JANUS_CANCELLED : 0;
}

static int64_t captain(void *argument)
{
    struct queue *queue = argument;
    struct helper helpers[HELPERS];
    CHECK_EQ(janus_nursery_open(&queue->helpers, NULL), JANUS_OK);
    if (queue->stop != NULL) {
        CHECK_EQ(janus_nursery_cancel_on(&queue->helpers, queue->stop), JANUS_OK);
    }
    for (int i = 0; i < HELPERS; i++) {
        helpers[i] = (struct helper){queue, i};
        CHECK_EQ(janus_spawn(&queue->helpers, ask_for_room, &helpers[i]), JANUS_OK);
    }
    while (atomic_load(&queue->asked) < HELPERS) CHECK_EQ(janus_yield(), JANUS_OK);
    atomic_store(&queue->ready, 1);
    JANUS_IGNORE(janus_nursery_end(&queue->helpers, NULL));
    while (queue->turn != 0 && queue->turn < HELPERS) CHECK_EQ(janus_yield(), JANUS_OK);
    atomic_store(&queue->ended, 1);
    return janus_cancelled() ? JANUS_CANCELLED : 0;
}

static void open_full(struct queue *queue)
{
    CHECK_EQ(janus_nursery_open(&queue->nursery, WAIT_AT(2)), JANUS_OK);
    CHECK_EQ(janus_spawn(&queue->nursery, at_gate, &queue->gate), JANUS_OK);
    CHECK_EQ(janus_spawn(&queue->nursery, captain, queue), JANUS_OK);
    CHECK(rig_wait(&queue->ready));
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(queue->turn, 0);
}

static int64_t in_order(void *argument)
{
    struct queue queue = {.want = JANUS_OK};
    (void)argument;
    open_full(&queue);
    atomic_store(&queue.gate.open, 1);
    CHECK(rig_wait(&queue.ended));
    CHECK_EQ(janus_nursery_end(&queue.nursery, NULL), JANUS_OK);
    for (int i = 0; i < HELPERS; i++) CHECK_EQ(queue.order[i], i);
    return 0;
}

TEST("spawners that wait for room get it in the order of their arrival")
{
    rig_run(1, in_order, NULL, 20);
}

/* Refused while they wait. */

static int64_t cancel_waiters(void *argument)
{
    struct queue queue = {.want = JANUS_CANCELLED};
    (void)argument;
    CHECK_EQ(janus_token_create(&queue.stop), JANUS_OK);
    open_full(&queue);
    CHECK_EQ(janus_token_cancel(queue.stop, JANUS_CANCEL_REASON_EXPLICIT), JANUS_OK);
    janus_token_release(queue.stop);
    CHECK(rig_wait(&queue.ended));
    CHECK_EQ(janus_nursery_state_of(&queue.nursery), JANUS_NURSERY_STATE_OPEN);
    for (int i = 0; i < 9; i++) CHECK_EQ(janus_spawn(&queue.nursery, nothing, NULL), JANUS_OK);
    atomic_store(&queue.gate.open, 1);
    CHECK_EQ(janus_nursery_end(&queue.nursery, NULL), JANUS_OK);
    CHECK_EQ(queue.turn, 0);
    return 0;
}

TEST("a task that is cancelled while it waits for room starts nothing and takes no room")
{
    rig_run(1, cancel_waiters, NULL, 20);
}

static int64_t close_on_waiters(void *argument)
{
    const char  *how = argument;
    bool         cancel = strcmp(how, "close") != 0, shielded = strcmp(how, "shielded") == 0;
    struct queue queue = {.want = cancel && !shielded ? JANUS_CANCELLED : JANUS_CLOSED,
                          .shielded = shielded};
    open_full(&queue);
    janus_nursery *n = &queue.nursery;
    CHECK_EQ(cancel ? janus_nursery_cancel(n) : janus_nursery_close(n), JANUS_OK);
    CHECK(rig_wait(&queue.ended));
    atomic_store(&queue.gate.open, 1);
    CHECK_EQ(janus_nursery_end(n, NULL), cancel ? JANUS_CANCELLED : JANUS_OK);
    CHECK_EQ(queue.turn, 0);
    return 0;
}

TEST("spawners that wait for room are refused when the nursery is closed")
{
    rig_run(1, close_on_waiters, "close", 20);
}

TEST("spawners that wait for room are refused when the nursery is cancelled, even in a shield")
{
    rig_run(1, close_on_waiters, "cancel", 20);
    rig_run(1, close_on_waiters, "shielded", 20);
}

struct owner {
    janus_scheduler *scheduler;
    janus_nursery    nursery;
    atomic_int       full;
    janus_status     status;
};

static void *spawn_when_full(void *argument)
{
    struct owner *owner = argument;
    CHECK_EQ(janus_nursery_open_in(owner->scheduler, &owner->nursery, WAIT_AT(1)), JANUS_OK);
    CHECK_EQ(janus_spawn(&owner->nursery, sleep_an_hour, &owner->full), JANUS_OK);
    owner->status = janus_spawn(&owner->nursery, nothing, NULL);
    CHECK_EQ(janus_nursery_end(&owner->nursery, NULL), JANUS_CANCELLED);
    return NULL;
}

TEST("a thread that waits for room is refused when the scheduler stops")
{
    RIG_REAL("a thread outside takes part");
    for (int i = 0; i < 10; i++) {
        struct owner owner = {.status = JANUS_OK};
        pthread_t    thread;
        owner.scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
        CHECK_EQ(pthread_create(&thread, NULL, spawn_when_full, &owner), 0);
        while (!atomic_load(&owner.full)) rig_spin();
        CHECK_EQ(janus_scheduler_stop(owner.scheduler), JANUS_OK);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        CHECK_EQ(owner.status, JANUS_CLOSED);
        CHECK_EQ(janus_scheduler_destroy(owner.scheduler), JANUS_OK);
    }
}

/* A thread that does not own the nursery. */

static int64_t spawn_in_call(void *argument) { return janus_spawn(argument, nothing, NULL); }

static int64_t call_that_spawns(void *argument)
{
    (void)argument;
    janus_nursery n;
    struct gate   gate = {0};
    int64_t       status = 0;
    CHECK_EQ(janus_nursery_open(&n, WAIT_AT(1)), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, at_gate, &gate), JANUS_OK);
    CHECK_EQ(janus_blocking(spawn_in_call, &n, &status), JANUS_OK);
    CHECK_EQ(status, JANUS_FULL);
    atomic_store(&gate.open, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a thread that does not own the nursery is refused") { rig_all(call_that_spawns, NULL, 5); }

/* Children that wait for each other's end. */

struct siblings {
    janus_nursery *nursery;
    atomic_int     alive, deadlocks;
};

/* Asks for room when all three live, so that no end makes room. */
static int64_t start_sibling(void *argument)
{
    struct siblings *siblings = argument;
    atomic_fetch_add(&siblings->alive, 1);
    while (atomic_load(&siblings->alive) < 3) CHECK_EQ(janus_yield(), JANUS_OK);
    janus_status status = janus_spawn(siblings->nursery, nothing, NULL);
    /* OK: after one got DEADLOCK, and ended. */
    CHECK(status == JANUS_DEADLOCK || status == JANUS_OK);
    atomic_fetch_add(&siblings->deadlocks, status == JANUS_DEADLOCK);
    return 0;
}

static int64_t start_siblings(void *argument)
{
    (void)argument;
    janus_nursery   n;
    struct siblings siblings = {.nursery = &n};
    CHECK_EQ(janus_nursery_open(&n, WAIT_AT(3)), JANUS_OK);
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_spawn(&n, start_sibling, &siblings), JANUS_OK);
    janus_status status = janus_spawn(&n, nothing, NULL);
    CHECK(status == JANUS_DEADLOCK || status == JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK(siblings.deadlocks > 0);
    return 0;
}

static void run_siblings(void *argument)
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers));
        rig_do(scheduler, start_siblings, argument);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

TEST("children that all wait for room in their own nursery get DEADLOCK")
{
    int         status = 0;
    const char *text = harness_child(run_siblings, NULL, &status);
    CHECK_EQ(status, 0);
    CHECK(strstr(text, "janusrt: deadlock: every task waits\n") != NULL);
    CHECK(strstr(text, "blocked, waits for room in its nursery") != NULL);
}

/* All at once: spawners that are cancelled, children that end, a nursery that is closed. */

struct storm {
    janus_nursery *nursery;
    struct limit   limit;
    atomic_int     started, over;
    uint64_t       pause_ns;
    bool           whole; /* the whole nursery is cancelled, not only the spawners */
};

static int64_t live_in_storm(void *argument)
{
    struct limit *limit = argument;
    CHECK(atomic_fetch_add(&limit->alive, 1) + 1 <= limit->max);
    janus_status status = janus_sleep(500);
    atomic_fetch_sub(&limit->alive, 1);
    return status;
}

static int64_t spawn_in_storm(void *argument)
{
    struct storm *storm = argument;
    for (;;) {
        janus_status status = janus_spawn(storm->nursery, live_in_storm, &storm->limit);
        if (status == JANUS_CLOSED) return 0;
        if (status == JANUS_CANCELLED) return JANUS_CANCELLED;
        CHECK_EQ(status, JANUS_OK);
        atomic_fetch_add(&storm->started, 1);
        status = janus_yield();
        if (status != JANUS_OK) return status;
    }
}

/* A child of the nursery, which counts too. */
static int64_t storm_captain(void *argument)
{
    struct storm *storm = argument;
    janus_nursery m;
    CHECK_EQ(janus_nursery_open(&m, NULL), JANUS_OK);
    for (int i = 0; i < 6; i++) {
        janus_spawn_options *options =
            JANUS_SPAWN_OPTIONS(.cancel = i % 2 == 0 ? JANUS_CANCEL_MODE_UNWIND
                                                     : JANUS_CANCEL_MODE_RETURN);
        CHECK_EQ(janus_spawn_with(&m, spawn_in_storm, storm, options, NULL), JANUS_OK);
    }
    JANUS_IGNORE(janus_sleep(storm->pause_ns));
    CHECK(janus_nursery_cancel(storm->whole ? storm->nursery : &m) == JANUS_OK ||
          janus_cancelled());
    JANUS_IGNORE(janus_nursery_end(&m, NULL));
    atomic_store(&storm->over, 1);
    return janus_cancelled() ? JANUS_CANCELLED : 0;
}

/* The storm is over: there is room for as many as before, all at once. */
static void fill_up(janus_nursery *n, uint32_t limit)
{
    struct gate gate = {0};
    for (uint32_t i = 0; i < limit; i++) CHECK_EQ(janus_spawn(n, at_gate, &gate), JANUS_OK);
    CHECK_EQ(janus_nursery_state_of(n), JANUS_NURSERY_STATE_OPEN);
    atomic_store(&gate.open, 1);
    CHECK_EQ(janus_nursery_await_with(n, NULL), JANUS_OK);
}

static int64_t weather(void *argument)
{
    uint64_t last = janus_now_ns() + rig_few((RIG_SLOW ? 1500 : 800) * rig_ms);
    (void)argument;
    for (uint64_t round = 0; janus_now_ns() < last; round++) {
        janus_nursery n;
        struct storm  storm = {.nursery = &n, .limit = {.max = 2}, .whole = round % 2 == 0};
        storm.pause_ns = round % 32 * 2000;
        CHECK_EQ(janus_nursery_open(&n, WAIT_AT(3)), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, storm_captain, &storm), JANUS_OK);
        for (int i = 0; i < 20 && round % 3 == 0; i++) JANUS_IGNORE(janus_spawn(&n, nothing, NULL));
        CHECK(rig_wait(&storm.over));
        if (!storm.whole) fill_up(&n, 3);
        CHECK_EQ(janus_nursery_end(&n, NULL), storm.whole ? JANUS_CANCELLED : JANUS_OK);
        CHECK_EQ(storm.limit.alive, 0);
    }
    return 0;
}

TEST("room is neither lost nor given twice while waiters are cancelled and the nursery closes")
{
    rig_run(4, weather, NULL, 1);
}
