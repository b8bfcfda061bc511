/* SPDX-License-Identifier: MIT */
/* Simulated time: it costs nothing, passes only when no part can run, and keeps its order. */
#include "../task/rig.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const uint64_t second_ns = 1000000000;
static const uint64_t hour_ns = 3600 * (uint64_t)1000000000;

static uint64_t real_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * second_ns + (uint64_t)now.tv_nsec;
}

static pid_t thread_id(void) { return (pid_t)syscall(SYS_gettid); }

/* With several numbers of workers and seeds. */
static void run_all(janus_entry *entry, void *argument)
{
    for (uint32_t i = 0; i < 9; i++) {
        CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 1u << i % 3,
                                                   .deterministic_seed = i + 1),
                           entry, argument, NULL),
                 JANUS_OK);
    }
}

/* Hours. */

static int64_t sleep_for_days(void *argument)
{
    uint64_t begun = janus_now_ns();
    (void)argument;
    for (int i = 0; i < 10; i++) CHECK_EQ(janus_sleep(24 * hour_ns), JANUS_OK);
    CHECK(janus_now_ns() - begun >= 240 * hour_ns);
    return 0;
}

static int64_t many_sleep(void *argument)
{
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < 5; i++) CHECK_EQ(janus_spawn(n, sleep_for_days, argument), JANUS_OK);
    }
    CHECK_EQ(ended, JANUS_OK);
    return 0;
}

TEST("a task that sleeps for days of simulated time takes milliseconds")
{
    uint64_t begun = real_ns();
    run_all(many_sleep, NULL);
    CHECK(real_ns() - begun < 10 * second_ns); /* a busy machine; not 90 days */
}

/* Only when all tasks wait. */

enum { STEPS = 1000 };

struct bench {
    atomic_bool done;
    uint64_t    begun;
};

static int64_t sleeper(void *argument)
{
    struct bench *bench = argument;
    CHECK_EQ(janus_sleep(hour_ns), JANUS_OK);
    CHECK(atomic_load(&bench->done));
    return 0;
}

static int64_t busy(void *argument)
{
    struct bench *bench = argument;
    for (int i = 0; i < STEPS; i++) {
        CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK(janus_now_ns() - bench->begun < second_ns); /* steps, but no jump */
    }
    atomic_store(&bench->done, true);
    return 0;
}

static int64_t one_is_busy(void *argument)
{
    struct bench bench = {.begun = janus_now_ns()};
    (void)argument;
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        CHECK_EQ(janus_spawn(n, sleeper, &bench), JANUS_OK);
        CHECK_EQ(janus_spawn(n, busy, &bench), JANUS_OK);
    }
    CHECK_EQ(ended, JANUS_OK);
    CHECK(janus_now_ns() - bench.begun >= hour_ns);
    CHECK(janus_now_ns() - bench.begun < hour_ns + second_ns); /* and no further than necessary */
    return 0;
}

TEST("time jumps only when no part can run, and to the earliest deadline")
{
    run_all(one_is_busy, NULL);
}

/* In order. */

enum { ALARMS = 24 };

struct alarms {
    janus_channel never;
    atomic_int    count;
    uint64_t      begun, last;
};

struct alarm {
    struct alarms *all;
    int            number; /* of seconds, and of the alarm */
};

static int64_t sleep_until_told(void *argument)
{
    (void)argument;
    return janus_sleep(24 * hour_ns);
}

/* One in three sleeps, one waits at a channel, one in a nursery with a deadline. */
static void wait_for(const struct alarm *alarm, uint64_t deadline_ns)
{
    janus_nursery n;
    switch (alarm->number % 3) {
    case 0: CHECK_EQ(janus_sleep_until(deadline_ns), JANUS_OK); break;
    case 1:
        CHECK_EQ(janus_channel_recv_until(alarm->all->never, NULL, deadline_ns), JANUS_DEADLINE);
        break;
    default:
        CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.deadline_ns = deadline_ns)),
                 JANUS_OK);
        CHECK_EQ(janus_spawn(&n, sleep_until_told, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    }
}

static int64_t ring(void *argument)
{
    const struct alarm *alarm = argument;
    struct alarms      *all = alarm->all;
    uint64_t            deadline_ns = all->begun + (uint64_t)alarm->number * second_ns;
    wait_for(alarm, deadline_ns);
    uint64_t now = janus_now_ns();
    CHECK(now >= deadline_ns);
    CHECK(now < deadline_ns + second_ns / 2);
    CHECK(now >= all->last);
    CHECK_EQ(atomic_fetch_add(&all->count, 1), alarm->number - 1);
    all->last = now;
    return 0;
}

static int64_t ring_all(void *argument)
{
    struct alarms all = {.begun = janus_now_ns()};
    struct alarm  alarms[ALARMS];
    (void)argument;
    CHECK_EQ(janus_channel_create(0, 0, JANUS_CHANNEL_OPTIONS(.outside = true), &all.never),
             JANUS_OK);
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < ALARMS; i++) {
            alarms[i] = (struct alarm){&all, (i * 7) % ALARMS + 1}; /* out of order */
            CHECK_EQ(janus_spawn(n, ring, &alarms[i]), JANUS_OK);
        }
    }
    CHECK_EQ(ended, JANUS_OK);
    CHECK_EQ(all.count, ALARMS);
    return janus_channel_destroy(all.never);
}

TEST("sleeps, waits with a deadline and nurseries with one end in the order of their deadlines")
{
    run_all(ring_all, NULL);
}

/* Blocking calls. */

struct calls {
    pid_t    thread;
    uint64_t seen;
};

static void note(struct calls *calls, uint64_t what)
{
    calls->seen = (calls->seen ^ what ^ janus_now_ns()) * UINT64_C(1099511628211);
}

static int64_t block(void *argument)
{
    struct calls *calls = argument;
    CHECK_EQ(thread_id(), calls->thread);
    note(calls, 1);
    CHECK_EQ(janus_sleep(hour_ns), JANUS_OK); /* as a thread, in simulated time */
    note(calls, 2);
    return 0;
}

static int64_t call_blocking(void *argument)
{
    uint64_t begun = janus_now_ns();
    CHECK_EQ(janus_blocking(block, argument, NULL), JANUS_OK);
    CHECK(janus_now_ns() - begun >= hour_ns);
    note(argument, 3);
    return 0;
}

static int64_t call_all(void *argument)
{
    uint64_t     begun = janus_now_ns();
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < 6; i++) CHECK_EQ(janus_spawn(n, call_blocking, argument), JANUS_OK);
    }
    CHECK_EQ(ended, JANUS_OK);
    CHECK(janus_now_ns() - begun < 7 * hour_ns);
    return 0;
}

static uint64_t calls_of(uint64_t seed)
{
    struct calls calls = {.thread = thread_id(), .seen = 1};
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .deterministic_seed = seed),
                       call_all, &calls, NULL),
             JANUS_OK);
    return calls.seen;
}

TEST("blocking calls run on the same thread, at places that the seed decides")
{
    uint64_t first = calls_of(1);
    for (int i = 0; i < 10; i++) CHECK_EQ(calls_of(1), first);
    CHECK(calls_of(2) != first);
}

/* SCHED:9.2.1/os. */

static int64_t add(void *argument)
{
    for (int i = 0; i < 100; i++) {
        atomic_fetch_add((atomic_long *)argument, i);
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    return 0;
}

static int64_t add_all(void *argument)
{
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < 10; i++) CHECK_EQ(janus_spawn(n, add, argument), JANUS_OK);
    }
    CHECK_EQ(ended, JANUS_OK);
    return 0;
}

TEST("with a seed and without one, on any number of workers, the result is the same")
{
    for (uint64_t seed = 0; seed < 4; seed++) {
        for (uint32_t workers = 1; workers <= 8; workers *= 2) {
            atomic_long sum = 0;
            CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers,
                                                       .deterministic_seed = seed),
                               add_all, &sum, NULL),
                     JANUS_OK);
            CHECK_EQ(sum, 10 * 99 * 100 / 2);
        }
    }
}
