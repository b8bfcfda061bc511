/* SPDX-License-Identifier: MIT */
/*
 * What several rooms decide together. A loop counts crowds off at once, and their children wait in
 * all ways. Herds gather at channels that outlive schedulers. Tasks sleep where there are more
 * workers than processors. The waits of resting tasks end for several reasons at once.
 *
 * Every child ends exactly once and before its nursery does. No sleep is late by seconds, and no
 * task that comes from outside waits for ever. 1, 2 and 8 workers in turn.
 */
#include "rests.h"

#include "base/rng.h"
#include "work/work.h"

#include <fcntl.h>
#include <pthread.h>

enum {
    ROUNDS = RIG_SLOW ? 3 : 5,
    CHILDREN = RIG_SLOW ? 3 * JRT_CROWD / 2 : 3 * JRT_CROWD,
    GRANDCHILDREN = 3,
    SLEEPERS = 24,
    SLEEPS = RIG_SLOW ? 60 : 150,
    INJECTIONS = RIG_SLOW ? 50 : 150,
    PAIRS = 3,
    TURNS = RIG_SLOW ? 3000 : 20000,
};

static const uint64_t us = 1000;
static const uint64_t late_ns = 60 * JANUS_SECONDS; /* a busy machine stops threads for seconds */

static _Atomic(uint64_t) seeds;

static void seed(struct jrt_rng *rng) { jrt_rng_seed(rng, atomic_fetch_add(&seeds, 1)); }

/* Crowds. */

struct sea {
    janus_channel channel;
    atomic_int    ran, rested, dropped;
};

struct resting_one {
    struct sea *sea;
    int64_t     item;
    int         left;
};

static janus_rest rest_on(void *state, janus_status woke)
{
    struct resting_one *self = state;
    if (woke == JANUS_CANCELLED || self->left-- == 0) {
        atomic_fetch_add(&self->sea->rested, 1);
        return janus_rest_done(0);
    }
    if (self->left % 2 == 0) return janus_rest_sleep(20 * us);
    return janus_rest_recv_until(self->sea->channel, &self->item, janus_now_ns() + 30 * us);
}

static void drop_one(void *argument)
{
    atomic_fetch_add(&((struct resting_one *)argument)->sea->dropped, 1);
}

static void start_family(struct sea *sea, struct jrt_rng *rng)
{
    struct resting_one        resting[GRANDCHILDREN];
    janus_nursery             n;
    const janus_spawn_options options = {.struct_bytes = sizeof options, .drop = drop_one};
    bool                      ends = jrt_rng_below(rng, 2) == 0;
    int                       started = 0;
    uint64_t                  end = janus_now_ns() + jrt_rng_below(rng, 100) * us;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.deadline_ns = ends ? end : 0)),
             JANUS_OK);
    int before = atomic_load(&sea->rested) + atomic_load(&sea->dropped);
    for (int i = 0; i < GRANDCHILDREN; i++) {
        resting[i] = (struct resting_one){.sea = sea, .left = 1 + (int)jrt_rng_below(rng, 4)};
        janus_rest first = janus_rest_sleep(jrt_rng_below(rng, 50) * us);
        if (janus_spawn_resting(&n, first, rest_on, &resting[i], &options, NULL) != JANUS_OK) break;
        started++;
    }
    if (jrt_rng_below(rng, 4) == 0) JANUS_IGNORE(janus_nursery_cancel(&n));
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    CHECK(atomic_load(&sea->rested) + atomic_load(&sea->dropped) >= before + started);
}

static int64_t do_anything(void *argument)
{
    struct sea    *sea = argument;
    struct jrt_rng rng;
    int64_t        item = 1;
    janus_nursery  n;
    seed(&rng);
    atomic_fetch_add(&sea->ran, 1);
    switch (jrt_rng_below(&rng, 24)) {
    case 0: JANUS_IGNORE(janus_yield()); break;
    case 1: JANUS_IGNORE(janus_sleep(jrt_rng_below(&rng, 60) * us)); break;
    case 2: JANUS_IGNORE(janus_channel_try_send(sea->channel, &item)); break;
    case 3:
        JANUS_IGNORE(janus_channel_send_until(sea->channel, &item, janus_now_ns() + 20 * us));
        break;
    case 4:
        JANUS_IGNORE(janus_channel_recv_until(sea->channel, &item, janus_now_ns() + 20 * us));
        break;
    case 5: start_family(sea, &rng); break;
    case 6:
        CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)),
                 JANUS_OK);
        for (int i = 0; i < GRANDCHILDREN; i++) {
            if (janus_spawn(&n, do_anything, sea) != JANUS_OK) atomic_fetch_add(&sea->ran, 1);
            atomic_fetch_sub(&sea->ran, 1);
        }
        JANUS_IGNORE(janus_nursery_end(&n, NULL));
        break;
    case 7: janus_panic("one of a crowd");
    default: break;
    }
    return 0;
}

static int64_t start_crowd(void *argument)
{
    struct sea   *sea = argument;
    janus_nursery n;
    int           started = 0;
    atomic_store(&sea->ran, 0);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
    const janus_budget budget = {200, 1 << 16, 4, 2, 1};
    for (int i = 0; i < CHILDREN; i++) {
        janus_spawn_options options = {.struct_bytes = sizeof options};
        janus_task_id       id;
        bool                joinable = i % 16 == 1;
        if (i % 8 == 1) options.budget = &budget;
        janus_status status =
            i % 8 != 1 ? janus_spawn(&n, do_anything, sea)
                       : janus_spawn_with(&n, do_anything, sea, &options, joinable ? &id : NULL);
        started += status == JANUS_OK;
    }
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    CHECK_EQ(started, CHILDREN);
    CHECK_EQ(atomic_load(&sea->ran), CHILDREN);
    return 0;
}

struct watch {
    janus_scheduler *scheduler;
    atomic_int       over;
    int              fd;
};

static void *dump_often(void *argument)
{
    struct watch *watch = argument;
    while (!atomic_load(&watch->over)) {
        janus_worker_info info = JANUS_WORKER_INFO();
        JANUS_IGNORE(janus_scheduler_dump(watch->scheduler, watch->fd));
        CHECK_EQ(janus_worker_inspect(watch->scheduler, JANUS_ALL_WORKERS, &info), JANUS_OK);
        JANUS_IGNORE(janus_sleep(200 * us));
    }
    return NULL;
}

static void run_crowds(uint32_t workers, bool watched)
{
    struct sea   sea = {.ran = 0};
    struct watch watch = {.over = 0};
    pthread_t    thread;
    CHECK_EQ(janus_channel_create(sizeof(int64_t), 4, NULL, &sea.channel), JANUS_OK);
    watch.scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers));
    watch.fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    CHECK(watch.fd >= 0);
    if (watched) CHECK_EQ(pthread_create(&thread, NULL, dump_often, &watch), 0);
    for (uint64_t i = 0; i < rig_few(ROUNDS); i++) rig_do(watch.scheduler, start_crowd, &sea);
    atomic_store(&watch.over, 1);
    if (watched) CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(close(watch.fd), 0);
    CHECK_EQ(janus_scheduler_destroy(watch.scheduler), JANUS_OK);
    CHECK_EQ(janus_channel_destroy(sea.channel), JANUS_OK);
}

TEST("children of a crowd that wait in all ways are all counted")
{
    run_crowds(1, false);
    run_crowds(2, false);
    run_crowds(8, false);
}

TEST("a thread looks at such a crowd meanwhile")
{
    RIG_REAL("threads");
    run_crowds(1, true);
    run_crowds(2, true);
    run_crowds(8, true);
}

/* Sleepers, with more workers than processors. */

static int64_t sleep_often(void *argument)
{
    struct jrt_rng rng;
    seed(&rng);
    for (int i = 0; i < SLEEPS; i++) {
        uint64_t ns = jrt_rng_below(&rng, 300) * us, begun = janus_now_ns();
        CHECK_EQ(janus_sleep(ns), JANUS_OK);
        uint64_t passed = janus_now_ns() - begun;
        CHECK(passed >= ns && passed < ns + late_ns);
        if (jrt_rng_below(&rng, 8) != 0) continue;
        while (janus_now_ns() < begun + ns + 100 * us) continue; /* computes without a call */
    }
    atomic_fetch_add((atomic_int *)argument, 1);
    return 0;
}

static int64_t start_sleepers(void *argument)
{
    atomic_int    done = 0;
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < SLEEPERS; i++) CHECK_EQ(janus_spawn(&n, sleep_often, &done), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(atomic_load(&done), SLEEPERS);
    return sleep_often(&done); /* nobody else is awake */
}

TEST("no timer is missed while workers fall asleep and wake up")
{
    RIG_REAL("threads");
    rig_all(start_sleepers, NULL, 2);
}

/* Tasks from outside, while others need them. */

static int64_t await_outside(void *argument)
{
    struct gate *gate = argument;
    atomic_fetch_add(&gate->arrived, 1);
    while (!atomic_load(&gate->open)) continue; /* computes without a call */
    return 0;
}

static int64_t open_gate(void *argument)
{
    atomic_store(&((struct gate *)argument)->open, 1);
    return 0;
}

TEST("a task from outside comes to run while workers spin or sleep")
{
    RIG_REAL("threads");
    for (uint32_t workers = 2; workers <= 8; workers += 3) {
        janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers));
        struct jrt_rng   rng;
        seed(&rng);
        for (int i = 0; i < INJECTIONS; i++) {
            struct gate   gate = {0};
            janus_nursery root;
            uint32_t      spinning = (uint32_t)jrt_rng_below(&rng, workers);
            CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
            for (uint32_t k = 0; k < spinning; k++) {
                CHECK_EQ(janus_spawn(&root, await_outside, &gate), JANUS_OK);
            }
            if (jrt_rng_below(&rng, 2) == 0) {
                uint64_t until = janus_now_ns() + jrt_rng_below(&rng, 400) * us;
                while (janus_now_ns() < until) continue;
            }
            CHECK_EQ(janus_spawn(&root, open_gate, &gate), JANUS_OK);
            CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_OK);
        }
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

/* Herds: many tasks fight for few channels, which outlive the schedulers. */

struct fight {
    janus_channel    channels[2];
    _Atomic(int64_t) sent, got;
    atomic_int       senders;
};

static int64_t send_many(void *argument)
{
    struct fight  *fight = argument;
    struct jrt_rng rng;
    seed(&rng);
    for (uint64_t i = 0; i < rig_few(TURNS); i++) {
        int64_t value = (int64_t)jrt_rng_below(&rng, 1000);
        CHECK_EQ(janus_channel_send(fight->channels[i & 1], &value), JANUS_OK);
        atomic_fetch_add_explicit(&fight->sent, value, memory_order_relaxed);
        if (jrt_rng_below(&rng, 512) == 0) CHECK_EQ(janus_sleep(10 * us), JANUS_OK);
        if (jrt_rng_below(&rng, 512) == 0) CHECK_EQ(janus_yield(), JANUS_OK);
    }
    if (atomic_fetch_sub(&fight->senders, 1) != 1) return 0;
    for (int64_t i = 0, end = -1; i < PAIRS; i++) {
        CHECK_EQ(janus_channel_send(fight->channels[0], &end), JANUS_OK);
        CHECK_EQ(janus_channel_send(fight->channels[1], &end), JANUS_OK);
    }
    return 0;
}

static int64_t receive_many(struct fight *fight, int which)
{
    for (;;) {
        int64_t value;
        CHECK_EQ(janus_channel_recv(fight->channels[which], &value), JANUS_OK);
        if (value < 0) return 0;
        atomic_fetch_add_explicit(&fight->got, value, memory_order_relaxed);
    }
}

static int64_t receive_first(void *argument) { return receive_many(argument, 0); }
static int64_t receive_second(void *argument) { return receive_many(argument, 1); }

static int64_t start_fight(void *argument)
{
    struct fight *fight = argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    atomic_store(&fight->senders, PAIRS);
    for (int i = 0; i < PAIRS; i++) {
        CHECK_EQ(janus_spawn(&n, send_many, fight), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, receive_first, fight), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, receive_second, fight), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(atomic_load(&fight->got), atomic_load(&fight->sent));
    return 0;
}

TEST("tasks that fight for channels lose nothing, and the channels outlive the workers")
{
    static const uint32_t workers[] = {2, 8, 1, 3, 2};
    struct fight          fight = {.sent = 0};
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(janus_channel_create(sizeof(int64_t), i == 0 ? 0 : 16, NULL, &fight.channels[i]),
                 JANUS_OK);
    }
    for (int i = 0; i < 5; i++) rig_run(workers[i], start_fight, &fight, 1);
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_channel_destroy(fight.channels[i]), JANUS_OK);
}
