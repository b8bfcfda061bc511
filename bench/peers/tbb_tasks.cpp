/* SPDX-License-Identifier: MIT */
/*
 * The works of janusrt_tasks.c with oneTBB's task_group, in an arena of the requested number of
 * threads.
 *
 * Timed: spawn, million, fib, skynet, growth. steal: from run() until the task runs on the other
 *        thread, which ran out of work 1 to 20 us before. Tasks have no stacks and cannot yield, so
 *        yield is left out. both: parallel_invoke. loop: parallel_for, automatic grain.
 * Moves it: the allocation of a task, the group's shared count of them.
 */
#include "bodies.h"
#include "peer.h"

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/parallel_invoke.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>
#include <oneapi/tbb/version.h>
#include <string>

using oneapi::tbb::task_group;

namespace
{

__attribute__((noinline)) void nothing() { __asm__ volatile(""); }

void batch(int children)
{
    task_group group;
    for (int i = 0; i < children; i++) group.run([] { nothing(); });
    group.wait();
}

double timed_batches(int batches, int children)
{
    batch(children < RUNNER_BATCH ? children : RUNNER_BATCH);
    uint64_t start = bench_now_ns();
    for (int i = 0; i < batches; i++) batch(children);
    return (double)(bench_now_ns() - start) / ((double)batches * (double)children);
}

int64_t fib(int n)
{
    if (n < 2) return n;
    int64_t    left = 0;
    task_group group;
    group.run([&left, n] { left = fib(n - 1); });
    int64_t right = fib(n - 2);
    group.wait();
    return left + right;
}

double fibs()
{
    uint64_t start = bench_now_ns();
    int64_t  result = fib(runner_fib());
    uint64_t spent = bench_now_ns() - start;
    runner_need((double)result == runner_fib_spawns(runner_fib() - 1) + 1, "fib is wrong");
    return (double)spent / runner_fib_spawns(runner_fib());
}

int64_t fork_fib(int n)
{
    if (n < 2) return n;
    int64_t left = 0, right = 0;
    oneapi::tbb::parallel_invoke([&left, n] { left = fork_fib(n - 1); },
                                 [&right, n] { right = fork_fib(n - 2); });
    return left + right;
}

double forks()
{
    uint64_t start = bench_now_ns();
    int64_t  result = fork_fib(runner_fib());
    uint64_t spent = bench_now_ns() - start;
    runner_need((double)result == runner_fib_spawns(runner_fib() - 1) + 1, "fib is wrong");
    return (double)spent / runner_fib_spawns(runner_fib());
}

using range = oneapi::tbb::blocked_range<uint64_t>;

void empty_loop()
{
    oneapi::tbb::parallel_for(range(0, BODIES_EMPTY),
                              [](const range &r) { bodies_empty(r.begin(), r.end()); });
}

void long_loop()
{
    oneapi::tbb::parallel_for(range(0, bodies_count()),
                              [](const range &r) { bodies_long(r.begin(), r.end()); });
}

double empty_ratio() { return bodies_ratio(empty_loop, bodies_empty, BODIES_EMPTY); }
double long_ratio() { return bodies_ratio(long_loop, bodies_long, bodies_count()); }

int64_t skynet_node(int64_t first, int64_t leaves)
{
    if (leaves == 1) return first;
    int64_t    sums[RUNNER_SKYNET_WIDTH], sum = 0;
    int64_t    part = leaves / RUNNER_SKYNET_WIDTH;
    task_group group;
    for (int i = 0; i < RUNNER_SKYNET_WIDTH; i++) {
        group.run([&sums, i, first, part] { sums[i] = skynet_node(first + i * part, part); });
    }
    group.wait();
    for (int64_t part_sum : sums) sum += part_sum;
    return sum;
}

double skynet()
{
    uint64_t start = bench_now_ns();
    int64_t  sum = skynet_node(0, RUNNER_SKYNET_LEAVES);
    double   spent = (double)(bench_now_ns() - start) / 1e6;
    runner_need(sum == (int64_t)RUNNER_SKYNET_LEAVES * (RUNNER_SKYNET_LEAVES - 1) / 2,
                "the sum is wrong");
    return spent;
}

double spawn() { return timed_batches(runner_batches(), RUNNER_BATCH); }
double million() { return timed_batches(1, RUNNER_MILLION); }

int growth_children;

double growth()
{
    int batches = RUNNER_MILLION / growth_children;
    return timed_batches(batches > 300 ? 300 : batches, growth_children);
}

double   samples[PEER_ROUNDS_FULL];
uint64_t began;

double steal()
{
    task_group group;
    for (int i = -PEER_WARM; i < peer_rounds(); i++) {
        peer_vary_pause(i);
        peer_set(&began, 0);
        uint64_t start = bench_now_ns();
        group.run([] { peer_set(&began, bench_now_ns()); });
        uint64_t end = peer_spin_until_set(&began); /* only a thief can set it */
        if (i >= 0) samples[i] = (double)(end - start);
    }
    group.wait();
    return 0;
}

double (*body)();

double in_arena()
{
    static oneapi::tbb::task_arena arena((int)runner.workers);
    return arena.execute([] { return body(); });
}

void turns(const char *metric, const char *unit, double (*run)())
{
    oneapi::tbb::global_control limit(oneapi::tbb::global_control::max_allowed_parallelism,
                                      runner.workers);
    body = run;
    if (run == million) runner_say("a task, first batch of 1000000", unit, in_arena());
    runner_turns(metric, unit, in_arena);
}

void run_spawn() { turns("a task, batches of 1000", "ns", spawn); }
void run_million() { turns("a task, one batch of 1000000", "ns", million); }
void run_fib() { turns("a spawn of fib", "ns", fibs); }
void run_both() { turns("a fork of fib", "ns", forks); }

void run_loop()
{
    turns("1000000 empty bodies", "of serial", empty_ratio);
    turns("bodies of 100 ns", "of serial", long_ratio);
}

void run_skynet() { turns("1000000 leaves", "ms", skynet); }

void run_growth()
{
    for (growth_children = 100; growth_children <= RUNNER_MILLION; growth_children *= 10) {
        std::string metric = "a task, batches of " + std::to_string(growth_children);
        turns(metric.c_str(), "ns", growth);
    }
}

void run_steal()
{
    oneapi::tbb::global_control limit(oneapi::tbb::global_control::max_allowed_parallelism,
                                      runner.workers);
    body = steal;
    (void)in_arena();
    peer_tell("a thief takes a task", samples);
}

} // namespace

int main(int argc, char **argv)
{
    static const runner_work works[] = {
        {"spawn", 0, run_spawn},   {"million", 0, run_million}, {"fib", 0, run_fib},
        {"skynet", 0, run_skynet}, {"growth", 0, run_growth},   {"steal", 2, run_steal},
        {"both", 0, run_both},     {"loop", 0, run_loop},       {nullptr, 0, nullptr},
    };
    return runner_main(argc, argv, "oneTBB", TBB_runtime_version(), works);
}
