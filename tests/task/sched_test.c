/* SPDX-License-Identifier: MIT */
/* Schedulers: numbers of workers, stealing, stacks, identities, statistics, and idleness. */
#include "plat/cpus.h"
#include "rig.h"
#include "task/worker.h"
#include "work/work.h"

#include <stdlib.h>
#include <unistd.h>

enum { BATCH = RIG_SLOW ? 300 : 3000 };

static janus_worker_info books(const janus_scheduler *scheduler)
{
    janus_worker_info stats = JANUS_WORKER_INFO();
    CHECK_EQ(janus_worker_inspect(scheduler, JANUS_ALL_WORKERS, &stats), JANUS_OK);
    return stats;
}

/* Children that run at once, that yield and that sleep; all must have run. */
static int64_t count_and_yield(void *argument)
{
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_yield(), JANUS_OK);
    atomic_fetch_add((atomic_int *)argument, 1);
    return 0;
}

static int64_t count_and_sleep(void *argument)
{
    CHECK_EQ(janus_sleep(1000), JANUS_OK);
    atomic_fetch_add((atomic_int *)argument, 1);
    return 0;
}

static int64_t batch(void *argument)
{
    (void)argument;
    static janus_entry *const entries[] = {count_me, count_and_yield, count_me, count_and_sleep};
    atomic_int                count = 0;
    janus_nursery             n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < BATCH; i++) CHECK_EQ(janus_spawn(&n, entries[i % 4], &count), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(count, BATCH);
    return 0;
}

TEST("1, 2, 7, 64 and 300 workers run a batch")
{
    static const uint32_t counts[] = {1, 2, 7, 64, 300};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = counts[i]));
        CHECK_EQ(janus_scheduler_worker_count(scheduler), counts[i]);
        rig_do(scheduler, batch, NULL);
        janus_worker_info one = JANUS_WORKER_INFO();
        CHECK_EQ(janus_worker_inspect(scheduler, counts[i] - 1, &one), JANUS_OK);
        CHECK_EQ(janus_worker_inspect(scheduler, counts[i], &one), JANUS_INVALID);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

TEST("options out of range are refused")
{
    janus_scheduler *scheduler = NULL;
    CHECK_EQ(janus_scheduler_create_with(JANUS_SCHEDULER_OPTIONS(.worker_count = 1025), &scheduler),
             JANUS_INVALID);
    CHECK_EQ(janus_scheduler_create_with(JANUS_SCHEDULER_OPTIONS(.worker_count = UINT32_MAX),
                                         &scheduler),
             JANUS_INVALID);
    CHECK_EQ(janus_scheduler_create_with(JANUS_SCHEDULER_OPTIONS(.profile = JANUS_PROFILE_CORE),
                                         &scheduler),
             JANUS_PROFILE);
    CHECK_EQ(janus_scheduler_create_with(JANUS_SCHEDULER_OPTIONS(.victims = (janus_victims)9),
                                         &scheduler),
             JANUS_INVALID);
    CHECK(scheduler == NULL);
    CHECK_EQ(janus_scheduler_create_with(NULL, &scheduler), JANUS_OK);
    CHECK(janus_scheduler_worker_count(scheduler) >= 1);
    janus_nursery n;
    CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_STATE);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* SCHED:6.2.1. */
TEST("a scheduler opened without a worker count has one worker for each available CPU")
{
    RIG_REAL("simulated schedulers have four workers by default");
    janus_scheduler *scheduler = NULL;
    CHECK_EQ(janus_scheduler_create_with(NULL, &scheduler), JANUS_OK);
    CHECK_EQ(janus_scheduler_worker_count(scheduler), jrt_cpus_available());
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

TEST("a scheduler does not close while one of its nurseries is open, and its tasks have ended then")
{
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    janus_nursery    n, m;
    CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_OK);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(janus_spawn(&n, i % 2 ? sleep_an_hour : yield_for_ever, NULL), JANUS_OK);
    }
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_STATE);
    CHECK_EQ(janus_nursery_state_of(&n), JANUS_NURSERY_STATE_CANCELLED);
    CHECK_EQ(janus_nursery_open_in(scheduler, &m, NULL), JANUS_STATE);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

TEST("several schedulers run at once and do not affect each other")
{
    enum { SCHEDULERS = 4 };
    janus_scheduler *schedulers[SCHEDULERS];
    janus_nursery    roots[SCHEDULERS];
    for (int i = 0; i < SCHEDULERS; i++) {
        schedulers[i] = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = (uint32_t)i + 1));
        CHECK_EQ(janus_nursery_open_in(schedulers[i], &roots[i], NULL), JANUS_OK);
    }
    for (int i = 0; i < SCHEDULERS * 3; i++) {
        CHECK_EQ(janus_spawn(&roots[i % SCHEDULERS], batch, NULL), JANUS_OK);
    }
    for (int i = 0; i < SCHEDULERS; i++) {
        CHECK_EQ(janus_nursery_end(&roots[i], NULL), JANUS_OK);
        CHECK_EQ(books(schedulers[i]).tasks_executed, 3 * (BATCH + 1));
        CHECK_EQ(janus_scheduler_destroy(schedulers[i]), JANUS_OK);
    }
}

/* Stealing. */

TEST("without stealing nothing is stolen, and everything runs")
{
    janus_scheduler *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 4, .no_stealing = true));
    for (int i = 0; i < 5; i++) rig_do(scheduler, batch, NULL);
    CHECK_EQ(books(scheduler).tasks_stolen, 0);
    CHECK_EQ(books(scheduler).tasks_executed, 5 * (BATCH + 1));
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* Holds its worker until its child has run, which only another worker can do. */
static int64_t needs_a_thief(void *argument)
{
    (void)argument;
    atomic_int    ran = 0;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, count_me, &ran), JANUS_OK);
    while (atomic_load(&ran) == 0) rig_spin();
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("with every strategy a child is stolen while its parent does not yield")
{
    for (int victims = JANUS_VICTIMS_DEFAULT; victims <= JANUS_VICTIMS_LEAST_LOADED; victims++) {
        for (uint32_t workers = 2; workers <= 8; workers += 3) {
            janus_scheduler *scheduler =
                rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers,
                                                 .victims = (janus_victims)victims));
            for (int i = 0; i < 50; i++) rig_do(scheduler, needs_a_thief, NULL);
            CHECK_EQ(books(scheduler).tasks_stolen >= 50, 1);
            CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
        }
    }
}

/* Judges whether a loot took long enough, [idle-doze]: an eternity, and no time at all. */
static int64_t judge_loot(void *argument)
{
    (void)argument;
    struct jrt_worker *worker = jrt_worker_self();
    for (uint32_t i = 1; i < 100; i++) {
        worker->stolen = UINT32_MAX;
        worker->stolen_ns = jrt_clock_now_ns();
        uint32_t before = worker->short_steals;
        jrt_idle_judge(worker);
        CHECK_EQ(worker->stolen, 0);
        CHECK(worker->short_steals == before + 1 || (worker->short_steals == before && i > 5));
    }
    worker->stolen = 1;
    worker->stolen_ns = jrt_clock_now_ns() - rig_ms;
    jrt_idle_judge(worker);
    CHECK_EQ(worker->short_steals, 0);
    return 0;
}

TEST("one loot that was worth stealing ends the doze") { rig_run(1, judge_loot, NULL, 1); }

/* Thieves that have learned that there are only short tasks. */
static int64_t needs_a_thief_again(void *argument)
{
    for (int i = 0; i < 20; i++) {
        atomic_int    count = 0;
        janus_nursery n;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        for (int j = 0; j < BATCH; j++) CHECK_EQ(janus_spawn(&n, count_me, &count), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        CHECK_EQ(count, BATCH);
        (void)needs_a_thief(argument);
    }
    return 0;
}

TEST("a child behind many short ones is stolen while its parent does not yield")
{
    for (uint32_t workers = 2; workers <= 4; workers++)
        rig_run(workers, needs_a_thief_again, NULL, 1);
}

/* Holds its worker until a sleeper has woken, which needs another worker. */
static int64_t sleep_then_count(void *argument)
{
    CHECK_EQ(janus_sleep(rig_ms / 2), JANUS_OK);
    atomic_fetch_add((atomic_int *)argument, 1);
    return 0;
}

static int64_t hold_until_counted(void *argument)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    while (atomic_load((atomic_int *)argument) == 0 && janus_now_ns() < limit) rig_spin();
    return atomic_load((atomic_int *)argument) ? 0 : -1;
}

TEST("a sleeper wakes in time although a task holds one of two workers")
{
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    for (int i = 0; i < 100; i++) {
        atomic_int    woken = 0;
        janus_nursery n;
        CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, sleep_then_count, &woken), JANUS_OK);
        uint64_t later = janus_now_ns() + (uint64_t)i * 5000;
        while (janus_now_ns() < later) continue;
        CHECK_EQ(janus_spawn(&n, hold_until_counted, &woken), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    }
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* A worker whose task yields in a loop has time for tasks that others have queued. */
static int64_t yield_until_counted(void *argument)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    while (atomic_load((atomic_int *)argument) == 0 && janus_now_ns() < limit) {
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    return atomic_load((atomic_int *)argument) ? 0 : -1;
}

struct pair {
    atomic_int yielding, counted;
};

static int64_t yield_elsewhere(void *argument)
{
    struct pair *pair = argument;
    atomic_store(&pair->yielding, 1);
    return yield_until_counted(&pair->counted);
}

static int64_t hold_and_queue(void *argument)
{
    struct pair  *pair = argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, yield_elsewhere, pair), JANUS_OK);
    while (!atomic_load(&pair->yielding)) rig_spin(); /* the other worker runs it */
    CHECK_EQ(janus_spawn(&n, count_me, &pair->counted), JANUS_OK);
    int64_t result = hold_until_counted(&pair->counted);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return result;
}

TEST("a worker whose only task yields in a loop still steals from a busy worker")
{
    struct pair pair = {0};
    rig_run(2, hold_and_queue, &pair, 1);
}

/* Moving. */

/* A task that is queued again while another holds its worker, so that a thief must take it. */
struct move {
    atomic_int moved, children;
    int        home; /* where it was */
};

/* Elsewhere it would hold the wrong worker. */
static int64_t hold_until_moved(void *argument)
{
    struct move *move = argument;
    if (rig_place() != move->home) return 0;
    while (!atomic_load(&move->moved)) rig_spin();
    return 0;
}

static int64_t yield_until_moved(void *argument)
{
    struct move  *move = argument;
    void        **local = janus_task_local();
    janus_nursery n;
    *local = move;
    move->home = rig_place();
    janus_task_id self = janus_task_current_id();
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 1000 && rig_place() == move->home; i++) {
        CHECK_EQ(janus_spawn(&n, hold_until_moved, move), JANUS_OK);
        CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK(janus_task_local() == local && *local == move);
        CHECK_EQ(janus_task_current_id(), self);
    }
    CHECK(rig_place() != move->home);
    atomic_store(&move->moved, 1);
    janus_task_info info = JANUS_TASK_INFO();
    CHECK_EQ(janus_task_inspect_current(&info), JANUS_OK);
    CHECK(info.owned == &n && info.nurseries == 1); /* its nurseries have moved with it */
    CHECK_EQ(janus_scheduler_spawn(count_me, &move->children), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(move->children, 1);
    CHECK_EQ(janus_scheduler_spawn(count_me, &move->children), JANUS_NO_NURSERY);
    return 5;
}

static int64_t force_a_move(void *argument)
{
    struct move   move = {0};
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    (void)argument;
    CHECK_EQ(janus_spawn(&n, yield_until_moved, &move), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a task's local pointer, id and open nursery go with it to another thread")
{
    rig_run(2, force_a_move, NULL, RIG_SLOW ? 20 : 200);
}

/* Stacks. */

__attribute__((noinline)) static int64_t large_frame(void *argument)
{
    volatile char room[450 * 1024];
    for (size_t i = 0; i < sizeof room; i += 1024) room[i] = (char)i;
    CHECK_EQ(janus_yield(), JANUS_OK);
    int64_t sum = 0;
    for (size_t i = 0; i < sizeof room; i += 1024) sum += room[i] == (char)i;
    atomic_fetch_add((atomic_int *)argument, 1);
    return sum == 450 ? 0 : -1;
}

static int64_t large_among_small(void *argument)
{
    (void)argument;
    atomic_int    count = 0;
    janus_nursery n, large;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&large, JANUS_NURSERY_OPTIONS(.stack_bytes = 512 * 1024)),
             JANUS_OK);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(janus_spawn_with(&n, large_frame, &count,
                                  JANUS_SPAWN_OPTIONS(.stack_bytes = 512 * 1024), NULL),
                 JANUS_OK);
        CHECK_EQ(janus_spawn(&n, count_and_yield, &count), JANUS_OK);
        CHECK_EQ(janus_spawn(&large, large_frame, &count), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&large, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(count, 60);
    return 0;
}

TEST("a task that asks for a larger stack gets it")
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        janus_scheduler *scheduler =
            rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .stack_bytes = 64 * 1024));
        for (int i = 0; i < 5; i++) rig_do(scheduler, large_among_small, NULL);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

static int64_t in_little_room(void *argument)
{
    (void)argument;
    atomic_int    count = 0;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 40; i++) {
        CHECK_EQ(janus_spawn(&n, i % 2 ? count_and_yield : count_and_sleep, &count), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(count, 40);
    return 0;
}

TEST("every accepted stack size is enough to run small tasks")
{
    size_t smallest = RIG_SLOW ? 65536 : JANUS_STACK_BYTES_MIN;
    for (size_t bytes = smallest; bytes <= 1024 * 1024; bytes *= 2) {
        janus_scheduler *scheduler =
            rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .stack_bytes = bytes));
        rig_do(scheduler, in_little_room, NULL);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

/* Identities. */

struct ids {
    atomic_int    count;
    janus_task_id ids[BATCH * 4];
};

static int64_t note_id(void *argument)
{
    struct ids *ids = argument;
    ids->ids[atomic_fetch_add(&ids->count, 1)] = janus_task_current_id();
    return 0;
}

static int64_t spawn_noters(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < BATCH * 4; i++) {
        CHECK_EQ(janus_spawn(&n, note_id, argument), JANUS_OK);
        if (i % 50 == 0) CHECK_EQ(janus_yield(), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

static int by_number(const void *left, const void *right)
{
    janus_task_id a = *(const janus_task_id *)left, b = *(const janus_task_id *)right;
    return (a > b) - (a < b);
}

TEST("no two tasks have the same id, and none has 0")
{
    static struct ids ids;
    rig_run(2, spawn_noters, &ids, 1);
    CHECK_EQ(ids.count, BATCH * 4);
    qsort(ids.ids, BATCH * 4, sizeof ids.ids[0], by_number);
    CHECK(ids.ids[0] != 0);
    for (int i = 1; i < BATCH * 4; i++) CHECK(ids.ids[i] != ids.ids[i - 1]);
}

static void set_flag(void *argument) { *(bool *)argument = true; }

TEST("outside a task the calls for tasks return STATE, do nothing or act on the thread")
{
    bool          flag = false;
    janus_nursery n;
    CHECK_EQ(janus_yield(), JANUS_STATE);
    CHECK_EQ(janus_defer(set_flag, &flag), JANUS_STATE);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_STATE);
    CHECK_EQ(janus_task_current_id(), 0);
    CHECK(janus_task_local() == NULL);
    CHECK(!janus_cancelled());
    janus_shield_begin();
    janus_shield_end();
    int64_t result = 1;
    CHECK_EQ(janus_blocking(nothing, NULL, &result), JANUS_OK);
    CHECK_EQ(result, 0);
    uint64_t until = janus_now_ns() + 1000;
    CHECK_EQ(janus_sleep_until(until), JANUS_OK);
    CHECK(janus_now_ns() >= until);
}

static int64_t forbidden_inside(void *argument)
{
    janus_scheduler *scheduler = argument;
    janus_nursery    n;
    CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_STATE);
    CHECK_EQ(janus_run(NULL, nothing, NULL, NULL), JANUS_STATE);
    CHECK_EQ(janus_scheduler_stop(scheduler), JANUS_STATE);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_STATE);
    return 0;
}

TEST("inside a task a scheduler cannot be stopped, nor a root nursery opened")
{
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    rig_do(scheduler, forbidden_inside, scheduler);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* Statistics. */

static int64_t skip_ten(void *argument)
{
    (void)argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 10; i++) CHECK_EQ(janus_spawn(&n, minus_seven, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("every task is counted once in the statistics: executed, or skipped as cancelled")
{
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
    for (int i = 0; i < 7; i++) rig_do(scheduler, skip_ten, NULL);
    CHECK_EQ(books(scheduler).tasks_executed, 7);
    CHECK_EQ(books(scheduler).tasks_cancelled, 70);
    rig_do(scheduler, batch, NULL);
    CHECK_EQ(books(scheduler).tasks_executed, 7 + BATCH + 1);
    CHECK_EQ(books(scheduler).tasks_cancelled, 70);
    CHECK(books(scheduler).tasks_in_place <= BATCH);
    CHECK_EQ(books(scheduler).yields >= (uint64_t)BATCH / 4 * 3, 1);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

TEST("the statistics can be read while they change")
{
    janus_nursery    n;
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_OK);
    for (int i = 0; i < 4; i++) CHECK_EQ(janus_spawn(&n, batch, NULL), JANUS_OK);
    uint64_t executed = 0;
    while (executed < 4 * (BATCH + 1)) {
        uint64_t now = books(scheduler).tasks_executed;
        CHECK(now >= executed);
        executed = now;
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

static int64_t publish_nothing(void *argument)
{
    (void)argument;
    struct jrt_worker *worker = jrt_worker_self();
    CHECK_EQ(janus_yield(), JANUS_OK); /* finds nobody, and notes that */
    CHECK(!jrt_publish(worker));
    CHECK_EQ(worker->lanes, 0);
    return 0;
}

TEST("a worker with nothing to publish does not report that it published")
{
    rig_run(1, publish_nothing, NULL, 1);
}
