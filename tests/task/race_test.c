/* SPDX-License-Identifier: MIT */
/* Two events at the same moment: wakes that come late, cancels that hit a wait of another kind. */
#include "rig.h"

#include <pthread.h>

enum { CROWD = 16 };

static const uint64_t run_ns = (RIG_SLOW ? UINT64_C(1000) : UINT64_C(600)) * 1000000;

static int64_t give_back(void *argument) { return *(int64_t *)argument; }

/* Changes between kinds of waiting as fast as it can, shielded every now and then. */
static int64_t change_waits(void *argument)
{
    int64_t number = 7, got = 0;
    (void)argument;
    for (;;) {
        if (janus_sleep(1) != JANUS_OK) return JANUS_CANCELLED;
        janus_status status = janus_blocking(give_back, &number, &got);
        if (status != JANUS_OK) return status;
        CHECK_EQ(got, 7);
        janus_shield_begin();
        uint64_t until = janus_now_ns() + 2000;
        CHECK_EQ(janus_sleep_until(until), JANUS_OK);
        CHECK(janus_now_ns() >= until);
        janus_shield_end();
    }
}

static int64_t cancel_changers(void *argument)
{
    uint64_t end = janus_now_ns() + rig_few(run_ns);
    (void)argument;
    for (uint64_t round = 0; janus_now_ns() < end; round++) {
        janus_nursery n;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        for (int i = 0; i < CROWD; i++) CHECK_EQ(janus_spawn(&n, change_waits, NULL), JANUS_OK);
        CHECK_EQ(janus_sleep(round % 64 * 1000), JANUS_OK);
        CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    }
    return 0;
}

TEST("a cancel ends neither a shielded wait nor a blocking call, however close it comes")
{
    rig_run(4, cancel_changers, NULL, 1);
}

/* A child's end wakes its joiner; the joiner was cancelled and already waits for something else. */
static int64_t short_nap(void *argument)
{
    (void)argument;
    return janus_sleep(2000) == JANUS_OK ? 0 : JANUS_CANCELLED;
}

static int64_t join_then_sleep(void *argument)
{
    janus_nursery n;
    janus_task_id id;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, short_nap, NULL, NULL, &id), JANUS_OK);
    janus_status status = janus_join(&n, id, NULL);
    janus_shield_begin();
    for (int i = 0; i < 3; i++) {
        uint64_t until = janus_now_ns() + 3000;
        CHECK_EQ(janus_sleep_until(until), JANUS_OK);
        CHECK(janus_now_ns() >= until);
        int64_t number = 7, got = 0;
        CHECK_EQ(janus_blocking(give_back, &number, &got), JANUS_OK);
        CHECK_EQ(got, 7);
    }
    janus_shield_end();
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    if (status == JANUS_CANCELLED) CHECK(janus_cancelled());
    return status == JANUS_CANCELLED ? JANUS_CANCELLED : 0;
}

static int64_t cancel_joiners(void *argument)
{
    uint64_t end = janus_now_ns() + rig_few(run_ns);
    (void)argument;
    for (uint64_t round = 0; janus_now_ns() < end; round++) {
        janus_nursery n;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        for (int i = 0; i < CROWD; i++) CHECK_EQ(janus_spawn(&n, join_then_sleep, NULL), JANUS_OK);
        CHECK_EQ(janus_sleep(round % 32 * 500), JANUS_OK);
        CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    }
    return 0;
}

TEST("the end of a child never wakes a joiner that waits for something else by now")
{
    rig_run(4, cancel_joiners, NULL, 1);
}

/* A blocking call ends, or a thread begins to wait, at the moment the last worker lies down. */
static int64_t call_again_and_again(void *argument)
{
    int64_t number = 7, got = 0;
    (void)argument;
    for (int i = 0; i < 20; i++) CHECK_EQ(janus_blocking(give_back, &number, &got), JANUS_OK);
    return 0;
}

static int64_t join_callers(void *argument)
{
    janus_nursery n;
    janus_task_id ids[3];
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(janus_spawn_with(&n, call_again_and_again, NULL, NULL, &ids[i]), JANUS_OK);
    }
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_join(&n, ids[i], NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

static void run_callers(void *argument)
{
    (void)argument;
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 4));
    uint64_t         end = janus_now_ns() + rig_few(run_ns);
    while (janus_now_ns() < end) rig_do(scheduler, join_callers, NULL);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

TEST("no deadlock is reported while blocking calls end and threads begin to wait")
{
    int         status = 0;
    const char *text = harness_child(run_callers, NULL, &status);
    CHECK_EQ(status, 0);
    CHECK_STR(text, "");
}

/* Stopping while a thread starts tasks. */

struct spawner {
    janus_scheduler *scheduler;
    atomic_int       started;
    atomic_long      spawned, ran;
};

static int64_t count_run(void *argument)
{
    atomic_fetch_add(&((struct spawner *)argument)->ran, 1);
    return 0;
}

static void *spawn_until_closed(void *argument)
{
    struct spawner *spawner = argument;
    janus_nursery   n;
    CHECK_EQ(janus_nursery_open_in(spawner->scheduler, &n, NULL), JANUS_OK);
    for (;;) {
        janus_status status = janus_spawn(&n, count_run, spawner);
        atomic_store(&spawner->started, 1);
        if (status == JANUS_CLOSED) break;
        CHECK_EQ(status, JANUS_OK);
        atomic_fetch_add(&spawner->spawned, 1);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return NULL;
}

TEST("stopping a scheduler while a thread starts tasks loses none")
{
    RIG_REAL("a thread outside takes part");
    uint64_t end = janus_now_ns() + rig_few(run_ns);
    while (janus_now_ns() < end) {
        pthread_t         thread;
        struct spawner    spawner = {0};
        janus_worker_info stats = JANUS_WORKER_INFO();
        spawner.scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
        CHECK_EQ(pthread_create(&thread, NULL, spawn_until_closed, &spawner), 0);
        while (!atomic_load(&spawner.started)) rig_spin();
        CHECK_EQ(janus_scheduler_stop(spawner.scheduler), JANUS_OK);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        CHECK_EQ(janus_worker_inspect(spawner.scheduler, JANUS_ALL_WORKERS, &stats), JANUS_OK);
        CHECK_EQ(stats.tasks_executed + stats.tasks_cancelled, spawner.spawned);
        CHECK_EQ(stats.tasks_executed, spawner.ran);
        CHECK_EQ(janus_scheduler_destroy(spawner.scheduler), JANUS_OK);
    }
}

/* Eight tasks cancel the same nursery at once; exactly one succeeds. */

struct cancellers {
    janus_nursery *nursery;
    atomic_int     ready, cancelled;
};

static int64_t cancel_together(void *argument)
{
    struct cancellers *cancellers = argument;
    atomic_fetch_add(&cancellers->ready, 1);
    while (atomic_load(&cancellers->ready) < 8) CHECK_EQ(janus_yield(), JANUS_OK);
    janus_status status = janus_nursery_cancel(cancellers->nursery);
    CHECK(status == JANUS_OK || status == JANUS_STATE);
    atomic_fetch_add(&cancellers->cancelled, status == JANUS_OK);
    return 0;
}

static int64_t eight_cancel(void *argument)
{
    janus_nursery n, m;
    (void)argument;
    struct cancellers cancellers = {.nursery = &n};
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.owner_apart = true)), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&m, NULL), JANUS_OK);
    for (int i = 0; i < 4; i++) CHECK_EQ(janus_spawn(&n, sleep_an_hour, NULL), JANUS_OK);
    for (int i = 0; i < 8; i++) CHECK_EQ(janus_spawn(&m, cancel_together, &cancellers), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&m, NULL), JANUS_OK);
    CHECK_EQ(cancellers.cancelled, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("if eight tasks cancel at once, exactly one succeeds")
{
    rig_run(8, eight_cancel, NULL, RIG_SLOW ? 20 : 300);
}

/* A task that once got CANCELLED always gets it, while others are cancelled, so that it has to look
 * each time. */

struct sticky {
    atomic_int stop, told;
};

static int64_t cancel_others(void *argument)
{
    struct sticky *sticky = argument;
    while (!atomic_load(&sticky->stop)) {
        janus_status ended;
        JANUS_NURSERY(n, ended)(void) janus_nursery_cancel(n);
        CHECK_EQ(ended, JANUS_CANCELLED);
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    return 0;
}

static int64_t look_again(void *argument)
{
    struct sticky *sticky = argument;
    uint64_t       limit = janus_now_ns() + rig_patience;
    for (uint64_t i = 0; !janus_cancelled() && janus_now_ns() < limit; i++) {
        if (i % 16 == 0 && janus_yield() != JANUS_OK) break;
    }
    for (int i = 0; i < 200; i++) CHECK(janus_cancelled());
    CHECK_EQ(janus_yield(), JANUS_CANCELLED);
    atomic_fetch_add(&sticky->told, 1);
    return JANUS_CANCELLED;
}

static int64_t cancel_lookers(void *argument)
{
    uint64_t      end = janus_now_ns() + rig_few(run_ns);
    struct sticky sticky = {0};
    janus_nursery m;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&m, NULL), JANUS_OK);
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_spawn(&m, cancel_others, &sticky), JANUS_OK);
    for (uint64_t round = 0; janus_now_ns() < end; round++) {
        janus_nursery n;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        for (int i = 0; i < CROWD; i++) CHECK_EQ(janus_spawn(&n, look_again, &sticky), JANUS_OK);
        for (uint64_t i = 0; i < round % 8; i++) CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    }
    atomic_store(&sticky.stop, 1);
    CHECK_EQ(janus_nursery_end(&m, NULL), JANUS_OK);
    return 0;
}

TEST("a task that once got CANCELLED always gets it")
{
    rig_run(4, cancel_lookers, NULL, 1);
    rig_run(8, cancel_lookers, NULL, 1);
}

/* Children look up through a nursery while its owner writes its own marks. */
struct marks {
    janus_nursery around, within; /* opened in this order */
    atomic_int    looking;
};

/* A cancel, anywhere, makes every task look up once more. */
static int64_t cancel_and_look(void *argument)
{
    struct marks *marks = argument;
    for (uint64_t i = 0; i < rig_few(200); i++) {
        janus_nursery own;
        CHECK_EQ(janus_nursery_open(&own, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_cancel(&own), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&own, NULL), JANUS_CANCELLED);
        CHECK(!janus_cancelled());
        CHECK(!janus_nursery_is_cancelled(&marks->around));
        janus_token *token = NULL;
        CHECK_EQ(janus_nursery_token(&marks->around, &token), JANUS_OK);
        janus_token_release(token);
    }
    atomic_fetch_sub(&marks->looking, 1);
    return 0;
}

static int64_t write_marks(void *argument)
{
    const uint64_t never_ns = janus_now_ns() + UINT64_C(3600000000000);
    struct marks   marks = {.looking = 3};
    janus_token   *token = NULL;
    (void)argument;
    CHECK_EQ(janus_token_create(&token), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&marks.around, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&marks.within, NULL), JANUS_OK);
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_spawn(&marks.within, cancel_and_look, &marks), 0);
    CHECK_EQ(janus_nursery_cancel_on(&marks.around, token), JANUS_OK);
    for (uint64_t i = 1; atomic_load(&marks.looking) > 0; i++) {
        CHECK_EQ(janus_nursery_set_deadline(&marks.around, never_ns + i), JANUS_OK);
        CHECK_EQ(janus_nursery_set_deadline(&marks.within, never_ns + i), JANUS_OK);
        CHECK_EQ(janus_both(nothing, NULL, nothing, NULL), 0);
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&marks.within, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&marks.around, NULL), JANUS_OK);
    janus_token_release(token);
    return 0;
}

TEST("children look up while the owner moves deadlines, binds tokens and divides calls")
{
    rig_all(write_marks, NULL, 4);
}
