/* SPDX-License-Identifier: MIT */
/*
 * What do the ends of slices cost a vector loop that pays in strips, as compiled code does?
 *
 * Timed: a sum of 32-bit numbers, and y += a * x, in the first-level cache, for each number. They
 *        run plain, and in strips of 1024 numbers: alone on one worker with an implicit budget,
 *        with a pool, and beside a task that does the same. Each runs with slices that grow, and
 *        with slices of at most JANUS_SLICE. "beside" counts the numbers of both tasks.
 * Moves it: the width of the vectors. A slice of 10,000 numbers takes 0.7 to 2 us, its end 0.18.
 * Expect: 1.02 to 1.04 of the plain loop with slices that grow. 1.10 to 1.30 without.
 */
#include "bench.h"

#include <janusrt/janus.h>

enum { NUMBERS = 4096, STRIP = 1024, PASSES = 4000 };

static uint32_t          numbers[NUMBERS];
static float             xs[NUMBERS], ys[NUMBERS];
static volatile uint32_t sink;

/* The inner loops. A pointer calls them, so that counted and plain runs use the same code. */

__attribute__((noinline, optimize("O3"))) static void sum(uint64_t at, uint64_t count)
{
    uint32_t all = 0;
    for (uint64_t i = 0; i < count; i++) all += numbers[at + i];
    sink += all;
}

__attribute__((noinline, optimize("O3"))) static void axpy(uint64_t at, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) ys[at + i] += 0.5f * xs[at + i];
}

static void (*volatile inner)(uint64_t at, uint64_t count);

static void pass_plain(void)
{
    for (uint64_t i = 0; i < NUMBERS; i += STRIP) inner(i, STRIP);
}

/* Pays for a strip as compiled code does. */
static inline __attribute__((always_inline)) uint64_t pay(uint64_t rounds)
{
#if defined(__x86_64__)
    uint64_t at;
    JANUS_FUEL_OFFSET(at);
    __asm__ goto("subq %1, %%fs:(%0)\n\tjb %l[slow]" : : "r"(at), "r"(rounds) : "cc" : slow);
    return rounds;
slow:
    return janus_strip_slow(rounds, 1);
#else
    return janus_fuel_take((uint32_t)rounds) >= 0 ? rounds : janus_strip_slow(rounds, 1);
#endif
}

static void pass_counted(void)
{
    for (uint64_t i = 0; i < NUMBERS;) {
        uint64_t rounds = pay(NUMBERS - i < STRIP ? NUMBERS - i : STRIP);
        inner(i, rounds);
        i += rounds;
    }
}

static uint32_t max_slice;

struct work {
    void     (*pass)(void);
    uint64_t pool; /* 0: implicit */
    int      tasks;
    double   ns;
};

static int64_t many_passes(void *argument)
{
    const struct work *work = argument;
    for (int i = 0; i < PASSES; i++) work->pass();
    return 0;
}

static int64_t run_work(void *argument)
{
    struct work  *work = argument;
    janus_nursery n;
    janus_budget  pool = JANUS_BUDGET(.ops = work->pool, .spawn_count = 10);
    if (janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = work->pool > 0 ? &pool : NULL)) !=
        JANUS_OK)
        return -1;
    uint64_t begin = bench_now_ns();
    for (int i = 0; i < work->tasks; i++) JANUS_IGNORE(janus_spawn(&n, many_passes, work));
    if (janus_nursery_end(&n, NULL) != JANUS_OK) return -1;
    work->ns = (double)(bench_now_ns() - begin) / ((double)PASSES * NUMBERS * work->tasks);
    return 0;
}

static double timed(struct work work)
{
    janus_budget most = janus_budget_of(UINT64_C(1) << 40, 1 << 30, 1000, 1000, 1000);
    janus_status status =
        janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .max_slice = max_slice,
                                          .max_budget = work.pool > 0 ? &most : NULL),
                  run_work, &work, NULL);
    if (status != JANUS_OK) exit(1);
    return work.ns;
}

static double grows(struct work work)
{
    max_slice = 0;
    return timed(work);
}

static double stays(struct work work)
{
    max_slice = JANUS_SLICE;
    return timed(work);
}

static const struct work plain = {.pass = pass_plain, .tasks = 1},
                         alone = {.pass = pass_counted, .tasks = 1},
                         in_pool = {.pass = pass_counted, .pool = UINT64_C(1) << 36, .tasks = 1},
                         beside = {.pass = pass_counted, .tasks = 2};

static double run_plain(void) { return grows(plain); }
static double run_alone(void) { return grows(alone); }
static double run_in_pool(void) { return grows(in_pool); }
static double run_beside(void) { return grows(beside); }
static double short_alone(void) { return stays(alone); }
static double short_in_pool(void) { return stays(in_pool); }
static double short_beside(void) { return stays(beside); }

static void race(const char *name, void (*loop)(uint64_t at, uint64_t count))
{
    struct contender contenders[] = {
        {.name = "plain", .run = run_plain},
        {.name = "strips", .run = run_alone},
        {.name = "strips, in a pool", .run = run_in_pool},
        {.name = "strips, beside another", .run = run_beside},
        {.name = "strips, slices of 10,000", .run = short_alone},
        {.name = "strips, in a pool, slices of 10,000", .run = short_in_pool},
        {.name = "strips, beside another, slices of 10,000", .run = short_beside},
    };
    inner = loop;
    printf("%s\n", name);
    bench_race(name, contenders, sizeof contenders / sizeof contenders[0]);
}

int main(void)
{
    for (uint32_t i = 0; i < NUMBERS; i++) {
        numbers[i] = i * 2654435761u;
        xs[i] = (float)(i % 7);
    }
    race("counted sum", sum);
    race("counted axpy", axpy);
    return 0;
}
