/* SPDX-License-Identifier: MIT */
/* Shares: a neighbour on the same worker gets half of the CPU, whatever a task does. */
#include "beside.h"

#include <stdio.h>

enum { LASTS_MS = 200, TRIES = 20 };

static const double least = 0.45;
/* A debt of a hundred rounds is paid in a hundred turns. What the switches between them take counts
 * for nobody. */
static const double least_in_rounds = 0.42;

/* On a scheduler with one worker. */
static void check_share_of(janus_entry *entry, void *argument, double enough)
{
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
    double           share = 0;
    /* A busy machine may disturb a measurement. A task that starves does so each time. */
    for (int i = 0; i < TRIES && share < enough; i++) {
        share = beside_share(scheduler, entry, argument, LASTS_MS * rig_ms);
        printf("# share %.3f\n", share);
        fflush(stdout);
    }
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    CHECK(share >= enough);
}

static void check_share(janus_entry *entry, void *argument)
{
    check_share_of(entry, argument, least);
}

/* Native work of `argument` ns between two calls. */

static uint64_t work_ns(const struct beside *beside) { return *(const uint64_t *)beside->argument; }

static int64_t yield_between(void *argument)
{
    struct beside *beside = argument;
    while (!beside_over(beside)) {
        beside_work(work_ns(beside));
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    return 0;
}

TEST("a task that works for 5 ms between two yields leaves its neighbour half")
{
    RIG_REAL("shares of real time are compared");
    check_share(yield_between, &(uint64_t){5000000});
}

static int64_t check_between(void *argument)
{
    struct beside *beside = argument;
    while (!beside_over(beside)) {
        beside_work(work_ns(beside));
        CHECK_EQ(janus_check(), JANUS_OK);
    }
    return 0;
}

TEST("a task that works for 100 us, or 1 ms, between two checks leaves its neighbour half")
{
    RIG_REAL("shares of real time are compared");
    check_share(check_between, &(uint64_t){100000});
    check_share_of(check_between, &(uint64_t){1000000}, least_in_rounds);
}

static int64_t child(void *argument)
{
    if (work_ns(argument) > 0) beside_work(work_ns(argument));
    return 0;
}

static int64_t await_fresh(void *argument)
{
    struct beside *beside = argument;
    while (!beside_over(beside)) {
        janus_nursery n;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, child, beside), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    }
    return 0;
}

static int64_t join_fresh(void *argument)
{
    struct beside *beside = argument;
    while (!beside_over(beside)) {
        janus_nursery n;
        janus_task_id id;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn_with(&n, child, beside, NULL, &id), JANUS_OK);
        CHECK_EQ(janus_join(&n, id, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    }
    return 0;
}

static int64_t await_async(void *argument)
{
    struct beside *beside = argument;
    janus_nursery  n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    while (!beside_over(beside)) {
        janus_async call;
        CHECK_EQ(janus_async_start_number(&n, &call, child, beside), JANUS_OK);
        CHECK_EQ(janus_await(&call, NULL), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a parent that awaits one fresh child after another leaves its neighbour half")
{
    RIG_REAL("shares of real time are compared");
    for (int i = 0; i < 3; i++) {
        uint64_t ns = (uint64_t[]){0, 1000, 100000}[i];
        check_share(await_fresh, &ns);
        check_share(join_fresh, &ns);
        check_share(await_async, &ns);
    }
}

/* Sleeps of a millisecond beside tasks that work for 5 ms between two yields. */
struct punctual {
    int           yielders;
    atomic_int    after, late; /* yields since the deadline; the maximum */
    atomic_bool   over;
    atomic_ullong due_ns;
};

static int64_t sleep_on_time(void *argument)
{
    struct punctual *punctual = argument;
    for (int i = 0; i < 10; i++) {
        uint64_t due_ns = janus_now_ns() + rig_ms;
        atomic_store(&punctual->due_ns, due_ns);
        atomic_store(&punctual->after, 0);
        CHECK_EQ(janus_sleep_until(due_ns), JANUS_OK);
        int after = atomic_load(&punctual->after);
        if (i > 0 && after > atomic_load(&punctual->late)) atomic_store(&punctual->late, after);
    }
    atomic_store(&punctual->over, true);
    return 0;
}

static int64_t yield_slowly(void *argument)
{
    struct punctual *punctual = argument;
    while (!atomic_load(&punctual->over)) {
        for (uint64_t until = janus_now_ns() + 5 * rig_ms; janus_now_ns() < until;) continue;
        if (janus_now_ns() >= atomic_load(&punctual->due_ns)) atomic_fetch_add(&punctual->after, 1);
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    return 0;
}

static int64_t sleep_beside(void *argument)
{
    janus_nursery    n;
    struct punctual *punctual = argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < punctual->yielders; i++) {
        CHECK_EQ(janus_spawn(&n, yield_slowly, punctual), JANUS_OK);
    }
    CHECK_EQ(janus_spawn(&n, sleep_on_time, punctual), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a sleep of 1 ms ends at the next yield of a task that works for 5 ms between two")
{
    for (int yielders = 1; yielders <= 2; yielders++) {
        struct punctual punctual = {.yielders = yielders};
        rig_run(1, sleep_beside, &punctual, 1);
        printf("# late by %d yields\n", atomic_load(&punctual.late));
        CHECK(atomic_load(&punctual.late) <= 1 + yielders);
    }
}
