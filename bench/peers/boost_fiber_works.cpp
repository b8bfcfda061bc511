/* SPDX-License-Identifier: MIT */
/*
 * The works of janusrt_*.c with Boost.Fiber: round robin on one thread, work stealing on more.
 *
 * Timed: switch, spawn, yield, skynet, pingpong, buffered, mpmc, live, wake. A fiber that starts or
 *        joins goes to the back of the queue, so a tree lives breadth first. skynet takes
 *        gigabytes. fib and a batch of a million would take more than there is and are left out.
 *        Boost.Fiber cannot select. A channel for 128 keeps one place free: it has room for 127.
 *        Threads that steal never sleep, so wake uses two threads that do not steal, as by default.
 * Moves it: stacks of 64 KiB, pooled if one thread reuses them, otherwise from malloc, because the
 *        pool has no lock. For live from malloc too: the pool doubles its requests, and they are
 *        refused.
 */
#include "peer.h"

#include <atomic>
#include <boost/context/fiber.hpp>
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

/* Channels. */

constexpr std::size_t room = 128;

int messages() { return runner.quick ? 200000 : 1000000; }

/*
 * Fewer round trips between threads, which spin. Each takes about 0.8 us on free cores, but 20 to
 * 90 us beside other programs, and the work has to end.
 */
int round_trips() { return messages() / (runner.workers > 1 ? 10 : 1); }

double pingpong()
{
    fibers::unbuffered_channel<int64_t> there, back;
    uint64_t                            begin = bench_now_ns();
    fibers::fiber                       answer = start([&] {
        for (int64_t value : there) back.push(value + 1);
    });
    fibers::fiber                       ask = start([&] {
        int64_t value = 0;
        for (int i = 0; i < round_trips(); i++) {
            there.push(value);
            value = back.value_pop();
        }
        runner_need(value == round_trips(), "an answer is missing");
        there.close();
    });
    ask.join();
    answer.join();
    return (double)(bench_now_ns() - begin) / round_trips();
}

double flow(int parties)
{
    fibers::buffered_channel<int64_t> channel(room);
    std::atomic<int>                  senders(parties);
    std::atomic<int64_t>              sum(0);
    std::vector<fibers::fiber>        tasks;
    int64_t                           each = messages() / parties;
    uint64_t                          begin = bench_now_ns();
    for (int k = 0; k < parties; k++) {
        tasks.push_back(start([&] {
            int64_t own = 0;
            for (int64_t value : channel) own += value;
            sum += own;
        }));
        tasks.push_back(start([&] {
            for (int64_t i = 1; i <= each; i++) channel.push(i);
            if (--senders == 0) channel.close();
        }));
    }
    for (fibers::fiber &task : tasks) task.join();
    uint64_t spent = bench_now_ns() - begin;
    runner_need(sum == parties * (each * (each + 1) / 2), "a message is missing");
    return (double)spent / ((double)each * parties);
}

double buffered() { return flow(1); }
double mpmc() { return flow(4); }

/* The other threads join the scheduler until the end. */
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

void run_live()
{
    Helpers                             helpers;
    int                                 count = RUNNER_MILLION / (runner.quick ? 10 : 1);
    fibers::unbuffered_channel<int64_t> gate;
    std::atomic<int>                    standing(0), told(0), ended(0);
    double                              base = runner_footprint();
    uint64_t                            begin = bench_now_ns();
    for (int i = 0; i < count; i++) {
        fibers::fiber(fibers::launch::post, std::allocator_arg,
                      fibers::fixedsize_stack(stack_bytes),
                      [&] {
                          int64_t value = 0;
                          standing++;
                          if (gate.pop(value) == fibers::channel_op_status::closed) told++;
                          ended++;
                      })
            .detach();
    }
    while (standing < count) boost::this_fiber::yield();
    runner_say("create and block", "ns", (double)(bench_now_ns() - begin) / count);
    runner_say("bytes a task", "B", (runner_footprint() - base) / count);
    begin = bench_now_ns();
    gate.close();
    while (ended < count) boost::this_fiber::yield();
    runner_say("wake and end", "ns", (double)(bench_now_ns() - begin) / count);
    runner_need(told == count, "somebody was not told");
}

double samples[PEER_ROUNDS_FULL];

/* The receiver's thread has nothing else to run and sleeps. */
void run_wake()
{
    fibers::buffered_channel<int64_t> letters(2);
    uint64_t                          woken = 0;
    std::thread                       receiver([&] {
        for (int64_t letter : letters) peer_set(&woken, (uint64_t)letter + bench_now_ns());
    });
    for (int i = -PEER_WARM; i < peer_rounds(); i++) {
        peer_until_others_sleep();
        peer_set(&woken, 0);
        uint64_t begin = bench_now_ns();
        letters.push(0);
        uint64_t end = peer_spin_until_set(&woken);
        if (i >= 0) samples[i] = (double)(end - begin);
    }
    letters.close();
    receiver.join();
    peer_tell("a sleeping worker wakes", samples);
}

/* Its floor, boost::context::fiber: a resume there and one back. */
double resumes()
{
    int                   switches = runner.quick ? 400000 : 4000000;
    boost::context::fiber other([](boost::context::fiber &&caller) {
        for (;;) caller = std::move(caller).resume();
        return std::move(caller);
    });
    uint64_t              begin = bench_now_ns();
    for (int i = 0; i < switches / 2; i++) other = std::move(other).resume();
    return (double)(bench_now_ns() - begin) / switches;
}

void run_switch()
{
    static const runner_side side = {"Boost.Context fiber", runner.version,
                                     "a raw switch between two stacks", resumes};
    runner_sides(&side, 1);
}

void run_spawn() { turns("a task, batches of 1000", "ns", spawn); }
void run_yield() { turns("a yield", "ns", yields); }
void run_skynet() { turns("1000000 leaves", "ms", skynet); }

void run_pingpong() { turns("a round trip", "ns", pingpong); }
void run_buffered() { turns("a message, 1 to 1, room for 128", "ns", buffered); }
void run_mpmc() { turns("a message, 4 to 4, room for 128", "ns", mpmc); }

} // namespace

int main(int argc, char **argv)
{
    static const runner_work works[] = {
        {"spawn", 0, run_spawn},       {"yield", 0, run_yield},       {"skynet", 0, run_skynet},
        {"pingpong", 0, run_pingpong}, {"buffered", 0, run_buffered}, {"mpmc", 0, run_mpmc},
        {"live", 0, run_live},         {"wake", 2, run_wake},         {"switch", 1, run_switch},
        {nullptr, 0, nullptr},
    };
    std::string version =
        std::to_string(BOOST_VERSION / 100000) + "." + std::to_string(BOOST_VERSION / 100 % 1000);
    return runner_main(argc, argv, "Boost.Fiber", version.c_str(), works);
}
