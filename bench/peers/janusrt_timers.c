/* SPDX-License-Identifier: MIT */
/*
 * What does a deadline cost where it is used: in a receive that is answered in time, and in a
 * sleep?
 *
 * Timed:
 *        arm and disarm  two tasks ask and answer over channels without room, and every receive has
 *                        a deadline and meets it; for each receive, with the message and the
 *                        switch. 100,000 other tasks sleep meanwhile, for long.
 *        sleeps          100,000 tasks that sleep 1 to 2 ms, again and again; the total time
 *                        divided by the sleeps. The floor is 15 ns, the sleep itself.
 * Moves it: the depth of the heap of timers and its cache lines. For sleeps also parking and
 *        starting again, on stacks that are in no cache.
 * Expect: about 30 ns more than half a round trip of pingpong, with the clock, and about 1 us for a
 *        sleep. timer_bench.c measures the heap alone.
 */
#include "runner.h"

#include <janusrt/janus.h>
#include <stdatomic.h>

/* An explicit limit, above the number of tasks. */
enum { OTHERS = 100000, TASKS_MAX = 4 * OTHERS };

#define HOUR_NS UINT64_C(3600000000000)
#define LONG_NS UINT64_C(1000000000000)

static int sleeps_each(void) { return runner.quick ? 5 : 10; }
static int questions(void) { return runner.quick ? 50000 : 200000; }

static inline void need(janus_status status)
{
    if (status != JANUS_OK) runner_need(false, janus_status_text(status));
}

/* A receive with a deadline of an hour. */
static int64_t receive(janus_channel from)
{
    int64_t value = 0;
    need(janus_channel_recv_until(from, &value, janus_now_ns() + HOUR_NS));
    return value;
}

struct pair {
    janus_channel there, back;
};

static int64_t answer(void *argument)
{
    struct pair *pair = argument;
    for (int i = 0; i < questions(); i++) {
        int64_t value = receive(pair->there) + 1;
        need(janus_channel_send(pair->back, &value));
    }
    return 0;
}

static int64_t ask(void *argument)
{
    struct pair *pair = argument;
    int64_t      value = 0;
    for (int i = 0; i < questions(); i++) {
        need(janus_channel_send(pair->there, &value));
        value = receive(pair->back);
    }
    runner_need(value == questions(), "an answer is missing");
    return 0;
}

static double arm_disarm(void)
{
    struct pair pair;
    need(janus_channel_create(sizeof(int64_t), 0, NULL, &pair.there));
    need(janus_channel_create(sizeof(int64_t), 0, NULL, &pair.back));
    uint64_t     start = bench_now_ns();
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        JANUS_IGNORE(janus_spawn(n, answer, &pair));
        JANUS_IGNORE(janus_spawn(n, ask, &pair));
    }
    need(ended);
    uint64_t spent = bench_now_ns() - start;
    need(janus_channel_destroy(pair.there));
    need(janus_channel_destroy(pair.back));
    return (double)spent / (2.0 * questions());
}

static _Atomic(int64_t) slept;
static _Atomic(int)     standing;

static int64_t nap(void *argument)
{
    uint64_t rest_ns = 1000000 + (uint64_t)(uintptr_t)argument % 1000 * 1000;
    for (int i = 0; i < sleeps_each(); i++) need(janus_sleep(rest_ns));
    slept += sleeps_each();
    return 0;
}

static double sleeps(void)
{
    slept = 0;
    uint64_t     start = bench_now_ns();
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (uintptr_t i = 0; i < OTHERS; i++) need(janus_spawn(n, nap, (void *)i));
    }
    need(ended);
    uint64_t spent = bench_now_ns() - start;
    runner_need(slept == (int64_t)OTHERS * sleeps_each(), "somebody did not sleep");
    return (double)spent / (double)slept;
}

/* Sleeps until it is cancelled. */
static int64_t stand(void *argument)
{
    uint64_t rest_ns = LONG_NS + (uint64_t)(uintptr_t)argument * 7919 % OTHERS * 10000000;
    standing++;
    runner_need(janus_sleep(rest_ns) == JANUS_CANCELLED, "somebody woke");
    return JANUS_CANCELLED;
}

static int64_t turns(void *argument)
{
    janus_nursery n;
    runner_turns("100000 tasks sleep a millisecond or two, a sleep", "ns", sleeps);
    need(janus_nursery_open(&n, NULL));
    for (uintptr_t i = 0; i < OTHERS; i++) need(janus_spawn(&n, stand, (void *)i));
    while (standing < OTHERS) need(janus_yield());
    runner_turns("arm and disarm, 100000 others wait", "ns", arm_disarm);
    need(janus_nursery_cancel(&n));
    runner_need(janus_nursery_end(&n, NULL) == JANUS_CANCELLED, "the others did not obey");
    return argument == NULL ? 0 : -1;
}

static void run_timers(void)
{
    need(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = runner.workers, .max_tasks = TASKS_MAX),
                   turns, NULL, NULL));
}

int main(int argc, char **argv)
{
    static const struct runner_work works[] = {{"timers", 0, run_timers}, {NULL, 0, NULL}};
    return runner_main(argc, argv, "janusrt", JANUS_VERSION_STRING, works);
}
