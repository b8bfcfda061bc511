/* SPDX-License-Identifier: MIT */
/* Spawns that wait for room under TASK_LIMIT. */
#include "caps.h"
#include "task/worker.h"

enum { MAX = 4, CHILDREN = 100 };

/* On a scheduler of `max` tasks. */
static janus_status run_limited(uint32_t workers, uint64_t max, janus_entry *entry, void *argument)
{
    return janus_run(
        JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .max_tasks = max, .quiet_panics = true),
        entry, argument, NULL);
}

static uint32_t wishes(void)
{
    return atomic_load_explicit(&jrt_worker_self()->scheduler->wishes, memory_order_relaxed);
}

struct crowd {
    atomic_int done, alive, most;
    int        yields;
};

static int64_t be_counted(void *argument)
{
    struct crowd *crowd = argument;
    int           alive = atomic_fetch_add(&crowd->alive, 1) + 1;
    if (alive > atomic_load(&crowd->most)) atomic_store(&crowd->most, alive);
    for (int i = 0; i < crowd->yields; i++) JANUS_IGNORE(janus_yield());
    atomic_fetch_sub(&crowd->alive, 1);
    atomic_fetch_add(&crowd->done, 1);
    return 0;
}

static int64_t spawn_crowd(void *argument)
{
    janus_status status;
    JANUS_NURSERY(n, status)
    {
        for (int i = 0; i < CHILDREN; i++) {
            CHECK_EQ(janus_spawn_wait(n, be_counted, argument), JANUS_OK);
        }
    }
    return status;
}

TEST("a task starts any number of children under a limit of four, and none is refused")
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        for (int yields = 0; yields < 3; yields++) {
            struct crowd crowd = {.yields = yields};
            CHECK_EQ(run_limited(workers, MAX, spawn_crowd, &crowd), JANUS_OK);
            CHECK_EQ(crowd.done, CHILDREN);
            CHECK(crowd.most < MAX); /* the first task is one of them */
        }
    }
}

static int64_t spawn_by_many(void *argument)
{
    struct crowd *crowd = argument;
    janus_status  status;
    JANUS_NURSERY(n, status)
    {
        for (int i = 0; i < 3; i++) CHECK_EQ(janus_spawn_wait(n, spawn_crowd, crowd), JANUS_OK);
    }
    return status;
}

TEST("several tasks that wait for room under one limit all get it")
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        struct crowd crowd = {.yields = 1};
        CHECK_EQ(run_limited(workers, 6, spawn_by_many, &crowd), JANUS_OK);
        CHECK_EQ(crowd.done, 3 * CHILDREN);
    }
}

TEST("a thread that owns a nursery waits for room, too")
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        struct crowd     crowd = {.yields = 1};
        janus_nursery    n;
        janus_scheduler *scheduler =
            rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .max_tasks = 3));
        CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_OK);
        for (int i = 0; i < CHILDREN; i++) {
            CHECK_EQ(janus_spawn_wait(&n, be_counted, &crowd), JANUS_OK);
        }
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        CHECK_EQ(crowd.done, CHILDREN);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

/* Under a capability: the limit of its terms. */

static int64_t spawn_under_cap(void *argument)
{
    janus_nursery n, inner;
    struct crowd  crowd = {.yields = 1};
    (void)argument;
    janus_authority *root = caps_root();
    caps_open(&n, caps_spawn(root, 3));
    for (int i = 0; i < CHILDREN; i++) CHECK_EQ(janus_spawn_wait(&n, be_counted, &crowd), JANUS_OK);
    caps_open(&inner, caps_spawn(root, 2)); /* beside those that live outside */
    for (int i = 0; i < CHILDREN; i++) {
        CHECK_EQ(janus_spawn_wait(i % 2 == 0 ? &inner : &n, be_counted, &crowd), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(crowd.done, 2 * CHILDREN);
    CHECK(crowd.most <= 3);
    return 0;
}

TEST("a spawn waits for room under a capability, even one inside another")
{
    caps_all(spawn_under_cap, NULL);
}

/* In order. */

struct line {
    janus_nursery *n;
    atomic_int     turn, got;
    int            order[3];
};

struct place {
    struct line *line;
    int          number;
};

/* Until it ends there is no room for the next. */
static int64_t note_place(void *argument)
{
    struct place *place = argument;
    place->line->order[atomic_fetch_add(&place->line->got, 1)] = place->number;
    return 0;
}

static int64_t stand_in_line(void *argument)
{
    struct place *place = argument;
    struct line  *line = place->line;
    janus_status  status;
    while (atomic_load(&line->turn) < place->number) CHECK_EQ(janus_yield(), JANUS_OK);
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn_wait(n, note_place, place), JANUS_OK);
        while (atomic_load(&line->got) < 3) CHECK_EQ(janus_yield(), JANUS_OK); /* makes no room */
    }
    return status;
}

static int64_t keep_order(void *argument)
{
    struct gate  gate = {0};
    struct line  line = {.turn = -1};
    struct place places[3];
    janus_status status;
    (void)argument;
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn(n, at_gate, &gate), JANUS_OK);
        for (int i = 0; i < 3; i++) {
            places[i] = (struct place){&line, i};
            CHECK_EQ(janus_spawn(n, stand_in_line, &places[i]), JANUS_OK);
        }
        CHECK_EQ(janus_spawn(n, nothing, NULL), JANUS_TASK_LIMIT);
        for (uint32_t i = 0; i < 3; i++) { /* one after the other */
            atomic_store(&line.turn, (int)i);
            while (wishes() <= i) CHECK_EQ(janus_yield(), JANUS_OK);
        }
        CHECK_EQ(atomic_load(&line.got), 0);
        atomic_store(&gate.open, 1);
    }
    for (int i = 0; i < 3; i++) CHECK_EQ(line.order[i], i);
    return status;
}

TEST("the first to wait for room is the first to get it")
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        for (uint64_t i = 0; i < rig_few(50); i++) {
            CHECK_EQ(run_limited(workers, 5, keep_order, NULL), JANUS_OK);
        }
    }
}

/* Cancelled. */

static int64_t wait_to_be_cancelled(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_wait(&n, nothing, NULL), JANUS_CANCELLED);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    CHECK_EQ(janus_sleep(JANUS_MS), JANUS_CANCELLED); /* no late wake meets another wait */
    if (argument != NULL) atomic_fetch_add((atomic_int *)argument, 1);
    return JANUS_CANCELLED;
}

static int64_t cancel_the_first(void *argument)
{
    struct gate   gate = {0};
    janus_nursery outer, n;
    atomic_int    told = 0;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&outer, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&outer, at_gate, &gate), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, wait_to_be_cancelled, &told), JANUS_OK);
    while (wishes() < 1) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    CHECK_EQ(told, 1);
    CHECK_EQ(wishes(), 0);
    CHECK_EQ(janus_spawn_wait(&outer, nothing, NULL), JANUS_OK);
    atomic_store(&gate.open, 1);
    CHECK_EQ(janus_nursery_end(&outer, NULL), JANUS_OK);
    return 0;
}

TEST("a spawn that waits is cancelled like every wait, and leaves its place")
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        for (uint64_t i = 0; i < rig_few(50); i++) {
            CHECK_EQ(run_limited(workers, 3, cancel_the_first, NULL), JANUS_OK);
        }
    }
}

static int64_t wait_to_be_unwound(void *argument)
{
    janus_status status = janus_spawn_wait(argument, nothing, NULL);
    CHECK_EQ(status, JANUS_CANCELLED);
    CHECK(false); /* the call does not return */
    return 0;
}

/* A spawner that is unwound holds room in the nursery, which must come back each time. */
static int64_t unwind_spawners(void *argument)
{
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.max_children = 2)), JANUS_OK);
    for (int i = 0; i < 3; i++) {
        janus_task_id child;
        CHECK_EQ(janus_spawn_with(&n, wait_to_be_unwound, &n,
                                  JANUS_SPAWN_OPTIONS(.cancel = JANUS_CANCEL_MODE_UNWIND), &child),
                 JANUS_OK);
        while (wishes() < 1) CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK_EQ(janus_nursery_cancel_child(&n, child), JANUS_OK);
        CHECK_EQ(janus_join(&n, child, NULL), JANUS_CHILD_CANCELLED);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a task that is unwound while its spawn waits gives back the room in the nursery")
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        CHECK_EQ(run_limited(workers, 2, unwind_spawners, NULL), JANUS_OK);
    }
}

/* Deadlock. */

static int64_t wait_for_each_other(void *argument)
{
    atomic_int  *told = argument;
    janus_status status;
    JANUS_NURSERY(n, status)
    {
        janus_status spawned = janus_spawn_wait(n, wait_for_each_other, argument);
        if (spawned == JANUS_DEADLOCK) atomic_fetch_add(told, 1);
        CHECK(spawned == JANUS_OK || spawned == JANUS_DEADLOCK);
    }
    return status;
}

TEST("tasks that all wait for each other's room get DEADLOCK")
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        atomic_int told = 0;
        CHECK_EQ(run_limited(workers, 3, wait_for_each_other, &told), JANUS_DEADLOCK);
        CHECK_EQ(told, 1); /* the last of three; the others wait for their children */
    }
}

/* What is refused. */

static int64_t ask_wrongly(void *argument)
{
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_spawn_wait(NULL, nothing, NULL), JANUS_INVALID);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_wait(&n, NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_spawn_with(&n, nothing, NULL, JANUS_SPAWN_OPTIONS(.when_full = 2), NULL),
             JANUS_INVALID);
    CHECK_EQ(janus_nursery_close(&n), JANUS_OK);
    CHECK_EQ(janus_spawn_wait(&n, nothing, NULL), JANUS_CLOSED);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a waiting spawn refuses the same bad arguments as any spawn")
{
    rig_all(ask_wrongly, NULL, 1);
}

/* A worker that does not call. */

struct busy {
    atomic_int begun, started;
};

static int64_t end_when_wished(void *argument)
{
    atomic_store(&((struct busy *)argument)->begun, 1);
    while (wishes() == 0) rig_spin();
    return 0;
}

static int64_t compute_after_child(void *argument)
{
    struct busy *busy = argument;
    janus_status status;
    JANUS_NURSERY(n, status) { CHECK_EQ(janus_spawn(n, end_when_wished, busy), JANUS_OK); }
    while (!atomic_load(&busy->started)) continue; /* no call at all */
    return status;
}

static int64_t say_started(void *argument)
{
    atomic_store(&((struct busy *)argument)->started, 1);
    return 0;
}

static int64_t wait_beside_busy(void *argument)
{
    janus_status status;
    (void)argument;
    struct busy busy = {0};
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn(n, compute_after_child, &busy), JANUS_OK);
        CHECK(rig_wait(&busy.begun));
        CHECK_EQ(janus_spawn_wait(n, say_started, &busy), JANUS_OK);
    }
    return status;
}

TEST("others find room that a child left on a worker that computes for ever")
{
    RIG_REAL("a worker that calls nothing keeps the only thread");
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(run_limited(2, 3, wait_beside_busy, NULL), JANUS_OK);
    }
}

/* Two limits, one inside the other: a spawn that takes room under the inner one, and finds none
 * under the outer one, returns it. */

struct pair {
    janus_authority *root;
    janus_nursery   *inner;
    janus_event      started;
    atomic_int       leave, leaves, tried;
};

static int64_t leave_when_told(void *argument)
{
    struct pair *pair = argument;
    while (!atomic_load(&pair->leave)) JANUS_IGNORE(janus_yield());
    atomic_store(&pair->leaves, 1);
    return 0;
}

static int64_t set_started(void *argument)
{
    (void)janus_event_set(&((struct pair *)argument)->started);
    return 0;
}

static int64_t end_at_once(void *argument)
{
    (void)argument;
    return 0;
}

/* The inner limit has room, the outer one does not yet. Then it stays until another spawn got the
 * room. */
static int64_t try_in_between(void *argument)
{
    struct pair *pair = argument;
    while (wishes() == 0) JANUS_IGNORE(janus_yield());
    atomic_store(&pair->leave, 1);
    while (!atomic_load(&pair->leaves)) JANUS_IGNORE(janus_yield());
    janus_status status = janus_spawn(pair->inner, end_at_once, NULL);
    JANUS_EXPECT(status == JANUS_OK || status == JANUS_TASK_LIMIT || status == JANUS_CLOSED);
    atomic_store(&pair->tried, 1);
    return janus_event_wait(&pair->started);
}

static int64_t fill_until_tried(void *argument)
{
    struct pair *pair = argument;
    while (!atomic_load(&pair->tried)) JANUS_IGNORE(janus_yield());
    return 0;
}

static int64_t wait_under_two(void *argument)
{
    struct pair  *pair = argument;
    janus_nursery inner;
    pair->inner = &inner;
    caps_open(&inner, caps_spawn(pair->root, 2));
    JANUS_EXPECT(janus_spawn(&inner, leave_when_told, pair) == JANUS_OK);
    JANUS_EXPECT(janus_spawn(&inner, try_in_between, pair) == JANUS_OK);
    JANUS_EXPECT(janus_spawn_wait(&inner, set_started, pair) == JANUS_OK);
    return janus_nursery_end(&inner, NULL);
}

static int64_t limit_twice(void *argument)
{
    struct pair   pair = {.root = caps_root()};
    janus_nursery outer;
    (void)argument;
    janus_event_init(&pair.started, JANUS_WAKER_TASKS, NULL);
    caps_open(&outer, caps_spawn(pair.root, 3));
    JANUS_EXPECT(janus_spawn(&outer, wait_under_two, &pair) == JANUS_OK);
    while (!atomic_load(&pair.leave)) JANUS_IGNORE(janus_yield());
    JANUS_EXPECT(janus_spawn_wait(&outer, fill_until_tried, &pair) == JANUS_OK);
    return janus_nursery_end(&outer, NULL);
}

TEST("a waiting spawn finds room that a refused spawn returned")
{
    RIG_REAL("it explores by itself");
    const janus_scheduler_options *sovereign =
        JANUS_SCHEDULER_OPTIONS(.profile = JANUS_PROFILE_SOVEREIGN, .yield_interval = 512);
    janus_explore_result result = JANUS_EXPLORE_RESULT();
    CHECK_EQ(janus_explore(JANUS_EXPLORE_OPTIONS(.schedules = RIG_SLOW ? 50 : 2000,
                                                 .worker_count = 3, .scheduler = sovereign),
                           limit_twice, NULL, &result),
             JANUS_OK);
    CHECK_EQ(result.failing, JANUS_FAILING_NOT);
}
