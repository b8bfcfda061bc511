/* SPDX-License-Identifier: MIT */
/*
 * What do tasks cost: to start and wait for, to yield, to divide work?
 *
 * Timed: batches of 1000 empty children and one batch of 1,000,000, per child; two tasks that yield
 *        to each other, per yield; fib(32) where every call spawns, per spawn; on one worker and
 *        on two. The raw switch is the first line, for the ratio.
 * Moves it: the locked instruction of the deque's pop, the record's cache lines, whether a child
 *        runs in place (it does, unless somebody steals it).
 * Expect: some 20 ns a child and a yield; fib twice as fast with two workers.
 */
#include "bench.h"
#include "fiber/ctx.h"

#include <janusrt/janus.h>

enum { BATCH = 1000, BATCHES = 300, MILLION = 1000000, YIELDS = 1000000, FIB = 30 };

static uint32_t workers = 1;

static double in_scheduler(janus_entry *entry)
{
    double nanoseconds = 0;
    if (janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers), entry, &nanoseconds, NULL) !=
        JANUS_OK) {
        abort();
    }
    return nanoseconds;
}

static int64_t nothing(void *argument)
{
    (void)argument;
    return 0;
}

static int64_t batches(void *argument)
{
    uint64_t start = 0;
    for (int i = -10; i < BATCHES; i++) {
        if (i == 0) start = bench_now_ns();
        JANUS_NURSERY(n)
        {
            for (int k = 0; k < BATCH; k++) janus_spawn(n, nothing, NULL);
        }
    }
    *(double *)argument = (double)(bench_now_ns() - start) / ((double)BATCHES * (double)BATCH);
    return 0;
}

static int64_t million(void *argument)
{
    uint64_t start = bench_now_ns();
    JANUS_NURSERY(n)
    {
        for (int k = 0; k < MILLION; k++) janus_spawn(n, nothing, NULL);
    }
    *(double *)argument = (double)(bench_now_ns() - start) / (double)MILLION;
    return 0;
}

static int64_t yielder(void *argument)
{
    uint64_t start = bench_now_ns();
    for (int i = 0; i < YIELDS; i++) {
        if (janus_yield() != JANUS_OK) return -1;
    }
    *(double *)argument = (double)(bench_now_ns() - start) / ((double)YIELDS * 2.0);
    return 0;
}

static int64_t two_yielders(void *argument)
{
    double other;
    JANUS_NURSERY(n)
    {
        janus_spawn(n, yielder, argument);
        janus_spawn(n, yielder, &other);
    }
    return 0;
}

static int64_t fib(void *argument)
{
    int64_t *n = argument;
    if (*n < 2) return 0;
    int64_t left = *n - 1;
    int64_t right = *n - 2;
    JANUS_NURSERY(nursery)
    {
        janus_spawn(nursery, fib, &left);
        (void)fib(&right);
    }
    *n = left + right;
    return 0;
}

static int64_t fibs(void *argument)
{
    int64_t  n = FIB;
    uint64_t start = bench_now_ns();
    (void)fib(&n);
    uint64_t spent = bench_now_ns() - start;
    if (n != 832040) abort();
    *(double *)argument = (double)spent / 1346268.0; /* fib(31) - 1 spawns */
    return 0;
}

static double run_batches(void) { return in_scheduler(batches); }
static double run_million(void) { return in_scheduler(million); }
static double run_yield(void) { return in_scheduler(two_yielders); }
static double run_fib(void) { return in_scheduler(fibs); }

static _Alignas(64) char stack[65536];
static void *here, *there;

static void bounce(void *argument, int message)
{
    (void)argument;
    for (;;) message = jrt_ctx_switch(&there, here, message);
}

static double run_switch(void)
{
    there = jrt_ctx_make(stack + sizeof stack, bounce, NULL);
    uint64_t start = bench_now_ns();
    for (int i = 0; i < YIELDS; i++) (void)jrt_ctx_switch(&here, there, 0);
    return (double)(bench_now_ns() - start) / (double)(2 * YIELDS);
}

int main(void)
{
    for (workers = 1; workers <= 2; workers++) {
        struct contender contenders[] = {
            {.name = "raw switch", .run = run_switch},
            {.name = "spawn and join, batches of 1000", .run = run_batches},
            {.name = "spawn and join, one batch of 1000000", .run = run_million},
            {.name = "yield, two tasks", .run = run_yield},
            {.name = "fib, every call spawns, per spawn", .run = run_fib},
        };
        printf("\n%u worker%s:\n", workers, workers == 1 ? "" : "s");
        bench_race(workers == 1 ? "task_1" : "task_2", contenders,
                   sizeof contenders / sizeof contenders[0]);
    }
    return 0;
}
