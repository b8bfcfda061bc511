/* SPDX-License-Identifier: MIT */
/*
 * The works of janusrt_tasks.c with OpenMP tasks, once by gcc (libgomp), once by clang (libomp).
 *
 * Timed: spawn, million, fib, skynet, growth. steal: from the directive until the task runs on the
 *        other thread, which ran out of work 1 to 20 us before. Tasks have no stacks and cannot
 *        yield, so yield is left out. both: a task and a call. loop: parallel for. Idle threads
 *        wait as by default (OMP_WAIT_POLICY not set).
 * Moves it: with one thread libgomp runs every task in place. With more, one lock for the team.
 */
#include "bodies.h"
#include "peer.h"

#include <omp.h>

#if defined(__clang__)
#define SYSTEM "OpenMP clang"
#define VERSION __clang_version__
#else
#define SYSTEM "OpenMP gcc"
#define VERSION __VERSION__
#endif

static __attribute__((noinline)) void nothing(void) { __asm__ volatile(""); }

static double timed_batches(int batches, int children)
{
    uint64_t start = 0;
    for (int i = -1; i < batches; i++) {
        if (i == 0) start = bench_now_ns();
        int tasks = i < 0 && children > RUNNER_BATCH ? RUNNER_BATCH : children; /* warms up */
        for (int k = 0; k < tasks; k++) {
#pragma omp task
            nothing();
        }
#pragma omp taskwait
    }
    return (double)(bench_now_ns() - start) / ((double)batches * (double)children);
}

static double spawn(void) { return timed_batches(runner_batches(), RUNNER_BATCH); }
static double million(void) { return timed_batches(1, RUNNER_MILLION); }

static int growth_children;

static double growth(void)
{
    int batches = RUNNER_MILLION / growth_children;
    return timed_batches(batches > 300 ? 300 : batches, growth_children);
}

static int64_t fib(int n)
{
    int64_t left, right;
    if (n < 2) return n;
#pragma omp task shared(left)
    left = fib(n - 1);
    right = fib(n - 2);
#pragma omp taskwait
    return left + right;
}

static double fibs(void)
{
    uint64_t start = bench_now_ns();
    int64_t  result = fib(runner_fib());
    uint64_t spent = bench_now_ns() - start;
    runner_need((double)result == runner_fib_spawns(runner_fib() - 1) + 1, "fib is wrong");
    return (double)spent / runner_fib_spawns(runner_fib());
}

/* A loop that a team shares. */

static void empty_loop(void)
{
#pragma omp parallel for num_threads(runner.workers)
    for (uint64_t i = 0; i < BODIES_EMPTY; i++) bodies_empty(i, i + 1);
}

static void long_loop(void)
{
    uint64_t count = bodies_count();
#pragma omp parallel for num_threads(runner.workers)
    for (uint64_t i = 0; i < count; i++) bodies_long(i, i + 1);
}

static double empty_ratio(void) { return bodies_ratio(empty_loop, bodies_empty, BODIES_EMPTY); }
static double long_ratio(void) { return bodies_ratio(long_loop, bodies_long, bodies_count()); }

static int64_t skynet_node(int64_t first, int64_t leaves)
{
    int64_t sums[RUNNER_SKYNET_WIDTH], sum = 0;
    if (leaves == 1) return first;
    int64_t part = leaves / RUNNER_SKYNET_WIDTH;
    for (int i = 0; i < RUNNER_SKYNET_WIDTH; i++) {
#pragma omp task shared(sums)
        sums[i] = skynet_node(first + i * part, part);
    }
#pragma omp taskwait
    for (int i = 0; i < RUNNER_SKYNET_WIDTH; i++) sum += sums[i];
    return sum;
}

static double skynet(void)
{
    uint64_t start = bench_now_ns();
    int64_t  sum = skynet_node(0, RUNNER_SKYNET_LEAVES);
    double   spent = (double)(bench_now_ns() - start) / 1e6;
    runner_need(sum == (int64_t)RUNNER_SKYNET_LEAVES * (RUNNER_SKYNET_LEAVES - 1) / 2,
                "the sum is wrong");
    return spent;
}

static double   samples[PEER_ROUNDS_FULL];
static uint64_t began;
static int      began_on;

static double steal(void)
{
    for (int i = -PEER_WARM; i < peer_rounds(); i++) {
        peer_vary_pause(i);
        peer_set(&began, 0);
        uint64_t start = bench_now_ns();
#pragma omp task
        {
            uint64_t now = bench_now_ns();
            began_on = omp_get_thread_num();
            peer_set(&began, now);
        }
        uint64_t end = peer_spin_until_set(&began);
        runner_need(began_on != omp_get_thread_num(), "nobody stole a task");
        if (i >= 0) samples[i] = (double)(end - start);
    }
    return 0;
}

static double (*body)(void);

static double in_team(void)
{
    double value = 0;
#pragma omp parallel num_threads(runner.workers)
#pragma omp single
    value = body();
    return value;
}

static void turns(const char *metric, const char *unit, double (*run)(void))
{
    body = run;
    if (run == million) runner_say("a task, first batch of 1000000", unit, in_team());
    runner_turns(metric, unit, in_team);
}

static void run_spawn(void) { turns("a task, batches of 1000", "ns", spawn); }
static void run_million(void) { turns("a task, one batch of 1000000", "ns", million); }
static void run_fib(void) { turns("a spawn of fib", "ns", fibs); }
static void run_both(void) { turns("a fork of fib", "ns", fibs); }

static void run_loop(void)
{
    runner_turns("1000000 empty bodies", "of serial", empty_ratio);
    runner_turns("bodies of 100 ns", "of serial", long_ratio);
}

static void run_skynet(void) { turns("1000000 leaves", "ms", skynet); }

static void run_growth(void)
{
    for (growth_children = 100; growth_children <= RUNNER_MILLION; growth_children *= 10) {
        char metric[64];
        snprintf(metric, sizeof metric, "a task, batches of %d", growth_children);
        turns(metric, "ns", growth);
    }
}

static void run_steal(void)
{
    body = steal;
    (void)in_team();
    peer_tell("a thief takes a task", samples);
}

int main(int argc, char **argv)
{
    static const struct runner_work works[] = {
        {"spawn", 0, run_spawn},   {"million", 0, run_million}, {"fib", 0, run_fib},
        {"skynet", 0, run_skynet}, {"growth", 0, run_growth},   {"steal", 2, run_steal},
        {"both", 0, run_both},     {"loop", 0, run_loop},       {NULL, 0, NULL},
    };
    return runner_main(argc, argv, SYSTEM, VERSION, works);
}
