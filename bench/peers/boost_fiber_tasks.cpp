/* SPDX-License-Identifier: MIT */
/*
 * The works of janusrt_tasks.c with Boost.Fiber: round robin on one thread, work stealing on more.
 *
 * Timed: spawn, yield, skynet. Whatever starts or joins goes to the back of the queue, so that a
 *        tree is alive breadth first: skynet takes gigabytes; fib and a batch of a million would
 *        take more than there is and are left out.
 * Moves it: stacks, pooled where one thread reuses them; else from malloc, as the pool has no lock.
 */
#include "runner.h"

#include <boost/fiber/all.hpp>
#include <boost/version.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace fibers = boost::fibers;

namespace
{

constexpr std::size_t stack_bytes = 64 * 1024;

__attribute__((noinline)) void nothing() { __asm__ volatile(""); }

template <typename Function> fibers::fiber start(Function &&function)
{
    static fibers::pooled_fixedsize_stack pool(stack_bytes);
    if (runner.workers == 1) {
        return fibers::fiber(fibers::launch::post, std::allocator_arg, pool,
                             std::forward<Function>(function));
    }
    return fibers::fiber(fibers::launch::post, std::allocator_arg,
                         fibers::fixedsize_stack(stack_bytes), std::forward<Function>(function));
}

void batch()
{
    std::vector<fibers::fiber> children;
    children.reserve(RUNNER_BATCH);
    for (int i = 0; i < RUNNER_BATCH; i++) {
        children.push_back(start(nothing));
    }
    for (fibers::fiber &child : children) child.join();
}

double spawn()
{
    batch();
    uint64_t begin = bench_now_ns();
    for (int i = 0; i < runner_batches(); i++) batch();
    return (double)(bench_now_ns() - begin) / ((double)runner_batches() * (double)RUNNER_BATCH);
}

double yields()
{
    std::vector<fibers::fiber> tasks;
    uint64_t                   begin = bench_now_ns();
    for (unsigned i = 0; i < 2 * runner.workers; i++) {
        tasks.push_back(start([] {
            for (int k = 0; k < runner_yields(); k++) boost::this_fiber::yield();
        }));
    }
    for (fibers::fiber &task : tasks) task.join();
    return (double)(bench_now_ns() - begin) / (2.0 * runner_yields());
}

int64_t skynet_node(int64_t first, int64_t leaves)
{
    if (leaves == 1) return first;
    int64_t                    sums[RUNNER_SKYNET_WIDTH], sum = 0;
    int64_t                    part = leaves / RUNNER_SKYNET_WIDTH;
    std::vector<fibers::fiber> children;
    children.reserve(RUNNER_SKYNET_WIDTH);
    for (int i = 0; i < RUNNER_SKYNET_WIDTH; i++) {
        children.emplace_back(
            fibers::launch::dispatch, std::allocator_arg, fibers::fixedsize_stack(stack_bytes),
            [&sums, i, first, part] { sums[i] = skynet_node(first + i * part, part); });
    }
    for (fibers::fiber &child : children) child.join();
    for (int64_t part_sum : sums) sum += part_sum;
    return sum;
}

double skynet()
{
    uint64_t begin = bench_now_ns();
    int64_t  sum = skynet_node(0, RUNNER_SKYNET_LEAVES);
    double   spent = (double)(bench_now_ns() - begin) / 1e6;
    runner_need(sum == (int64_t)RUNNER_SKYNET_LEAVES * (RUNNER_SKYNET_LEAVES - 1) / 2,
                "the sum is wrong");
    return spent;
}

/* The other threads lend themselves to the scheduler until the end. */
class Helpers
{
  public:
    Helpers()
    {
        for (unsigned i = 1; i < runner.workers; i++) threads.emplace_back([this] { lend(); });
        if (runner.workers > 1) {
            fibers::use_scheduling_algorithm<fibers::algo::work_stealing>(runner.workers);
        }
    }
    ~Helpers()
    {
        {
            std::lock_guard<fibers::mutex> guard(lock);
            done = true;
        }
        wake.notify_all();
        for (std::thread &thread : threads) thread.join();
    }

  private:
    void lend()
    {
        fibers::use_scheduling_algorithm<fibers::algo::work_stealing>(runner.workers);
        std::unique_lock<fibers::mutex> guard(lock);
        wake.wait(guard, [this] { return done; });
    }
    std::vector<std::thread>   threads;
    fibers::mutex              lock;
    fibers::condition_variable wake;
    bool                       done = false;
};

void turns(const char *metric, const char *unit, double (*run)())
{
    Helpers helpers;
    runner_turns(metric, unit, run);
}

void run_spawn() { turns("a task, batches of 1000", "ns", spawn); }
void run_yield() { turns("a yield", "ns", yields); }
void run_skynet() { turns("1000000 leaves", "ms", skynet); }

} // namespace

int main(int argc, char **argv)
{
    static const runner_work works[] = {
        {"spawn", 0, run_spawn},
        {"yield", 0, run_yield},
        {"skynet", 0, run_skynet},
        {nullptr, 0, nullptr},
    };
    std::string version =
        std::to_string(BOOST_VERSION / 100000) + "." + std::to_string(BOOST_VERSION / 100 % 1000);
    return runner_main(argc, argv, "Boost.Fiber", version.c_str(), works);
}
