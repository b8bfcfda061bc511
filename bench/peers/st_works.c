/* SPDX-License-Identifier: MIT */
/*
 * The works of janusrt_*.c with State Threads: one thread, no workers, cooperative.
 *
 * Timed: spawn, yield, pingpong, buffered, mpmc, live, timers (its sleeps). The queue is first in,
 *        first out, so a tree lives breadth first. fib and skynet would need a stack for each of a
 *        million tasks and are left out. State Threads has no channels. These consist of condition
 *        variables, which need no lock, because only one thread runs. Stacks have 64 KiB, are kept
 *        and reused, and have no guards.
 * Moves it: a condition variable for each thread that can be joined, an mmap call for each new
 *        stack, and a heap of sleepers.
 */
#include "peer.h"
#include "runner.h"

#include <st.h>

enum { STACK_BYTES = 64 * 1024 };

static void *nothing(void *argument) { return argument; }

static void batch(void)
{
    static st_thread_t threads[RUNNER_BATCH];
    for (int i = 0; i < RUNNER_BATCH; i++) {
        threads[i] = st_thread_create(nothing, NULL, 1, STACK_BYTES);
        runner_need(threads[i] != NULL, "no thread");
    }
    for (int i = 0; i < RUNNER_BATCH; i++) st_thread_join(threads[i], NULL);
}

static double spawn(void)
{
    batch();
    uint64_t start = bench_now_ns();
    for (int i = 0; i < runner_batches(); i++) batch();
    return (double)(bench_now_ns() - start) / ((double)runner_batches() * (double)RUNNER_BATCH);
}

/*
 * State Threads has no yield: st_sleep(0) uses the clock and the kernel. The shortest way is to
 * wake the other thread and wait.
 */
static st_cond_t turns[2];

static void *yielder(void *argument)
{
    long mine = (long)(intptr_t)argument;
    for (int i = 0; i < runner_yields(); i++) {
        st_cond_signal(turns[1 - mine]);
        st_cond_wait(turns[mine]);
    }
    st_cond_signal(turns[1 - mine]);
    return NULL;
}

static double yields(void)
{
    for (int i = 0; i < 2; i++) turns[i] = st_cond_new();
    uint64_t    start = bench_now_ns();
    st_thread_t one = st_thread_create(yielder, (void *)0, 1, STACK_BYTES);
    st_thread_t two = st_thread_create(yielder, (void *)1, 1, STACK_BYTES);
    runner_need(one != NULL && two != NULL, "no thread");
    st_thread_join(one, NULL);
    st_thread_join(two, NULL);
    double spent = (double)(bench_now_ns() - start) / (2.0 * runner_yields());
    for (int i = 0; i < 2; i++) st_cond_destroy(turns[i]);
    return spent;
}

static void start(void *(*entry)(void *), void *argument)
{
    runner_need(st_thread_create(entry, argument, 0, STACK_BYTES) != NULL, "no thread");
}

/* Counts down to zero and signals. */
static struct {
    st_cond_t reached;
    int       left;
} countdown;

static void count_from(int number)
{
    if (countdown.reached == NULL) countdown.reached = st_cond_new();
    countdown.left = number;
}

static void count_down(void)
{
    if (--countdown.left == 0) st_cond_signal(countdown.reached);
}

static void until_counted(void)
{
    while (countdown.left > 0) st_cond_wait(countdown.reached);
}

/* Channels. A channel without room has a slot, and the sender waits until it is empty again. */

enum { ROOM = 128 };

struct channel {
    st_cond_t arrived, space;
    int64_t   values[ROOM];
    unsigned  first, count, room;
    bool      closed;
};

static struct channel open_channel(unsigned room)
{
    return (struct channel){.arrived = st_cond_new(), .space = st_cond_new(), .room = room};
}

static void destroy(struct channel *channel)
{
    st_cond_destroy(channel->arrived);
    st_cond_destroy(channel->space);
}

static void meet(struct channel *channel, int64_t value) /* one sender only */
{
    channel->values[0] = value;
    channel->count = 1;
    st_cond_signal(channel->arrived);
    while (channel->count > 0) st_cond_wait(channel->space);
}

static void put(struct channel *channel, int64_t value)
{
    while (channel->count == channel->room) st_cond_wait(channel->space);
    channel->values[(channel->first + channel->count++) % ROOM] = value;
    st_cond_signal(channel->arrived);
}

static bool receive(struct channel *channel, int64_t *value)
{
    while (channel->count == 0) {
        if (channel->closed) return false;
        st_cond_wait(channel->arrived);
    }
    *value = channel->values[channel->first];
    channel->count--;
    if (channel->room > 0) channel->first = (channel->first + 1) % ROOM;
    st_cond_signal(channel->space);
    return true;
}

static void close_channel(struct channel *channel)
{
    channel->closed = true;
    st_cond_broadcast(channel->arrived);
}

static int messages(void) { return runner.quick ? 200000 : 1000000; }

static struct channel there, back;

static void *answer(void *argument)
{
    int64_t value = 0;
    while (receive(&there, &value)) meet(&back, value + 1);
    count_down();
    return argument;
}

static void *ask(void *argument)
{
    int64_t value = 0;
    for (int i = 0; i < messages(); i++) {
        meet(&there, value);
        runner_need(receive(&back, &value), "a channel is closed");
    }
    runner_need(value == messages(), "an answer is missing");
    close_channel(&there);
    count_down();
    return argument;
}

static double pingpong(void)
{
    there = open_channel(0);
    back = open_channel(0);
    count_from(2);
    uint64_t begin = bench_now_ns();
    start(answer, NULL);
    start(ask, NULL);
    until_counted();
    uint64_t spent = bench_now_ns() - begin;
    destroy(&there);
    destroy(&back);
    return (double)spent / messages();
}

static struct {
    struct channel channel;
    int            parties, senders;
    int64_t        sum;
} traffic;

static void *produce(void *argument)
{
    for (int i = 1; i <= messages() / traffic.parties; i++) put(&traffic.channel, i);
    if (--traffic.senders == 0) close_channel(&traffic.channel);
    count_down();
    return argument;
}

static void *consume(void *argument)
{
    int64_t value = 0;
    while (receive(&traffic.channel, &value)) traffic.sum += value;
    count_down();
    return argument;
}

static double flow(int parties)
{
    traffic.channel = open_channel(ROOM);
    traffic.parties = traffic.senders = parties;
    traffic.sum = 0;
    count_from(2 * parties);
    uint64_t begin = bench_now_ns();
    for (int i = 0; i < parties; i++) {
        start(consume, NULL);
        start(produce, NULL);
    }
    until_counted();
    uint64_t spent = bench_now_ns() - begin;
    int64_t  each = messages() / parties;
    runner_need(traffic.sum == parties * (each * (each + 1) / 2), "a message is missing");
    destroy(&traffic.channel);
    return (double)spent / ((double)each * parties);
}

static double buffered(void) { return flow(1); }
static double mpmc(void) { return flow(4); }

/* Crowds. */

static st_cond_t gate;
static int       woken;

static void *stand(void *argument)
{
    count_down();
    st_cond_wait(gate);
    woken++;
    count_down();
    return argument;
}

static void run_live(void)
{
    int    count = runner.quick ? RUNNER_MILLION / 10 : RUNNER_MILLION;
    double base = runner_footprint();
    gate = st_cond_new();
    count_from(count);
    uint64_t begin = bench_now_ns();
    for (int i = 0; i < count; i++) start(stand, NULL);
    until_counted();
    runner_say("create and block", "ns", (double)(bench_now_ns() - begin) / count);
    runner_say("bytes a task", "B", (runner_footprint() - base) / count);
    count_from(count);
    begin = bench_now_ns();
    st_cond_broadcast(gate);
    until_counted();
    runner_say("wake and end", "ns", (double)(bench_now_ns() - begin) / count);
    runner_need(woken == count, "not all ended");
}

enum { SLEEPERS = 100000 };

static int sleeps_each(void) { return runner.quick ? 5 : 10; }

static void *sleeper(void *argument)
{
    for (int i = 0; i < sleeps_each(); i++) {
        runner_need(st_usleep((st_utime_t)(intptr_t)argument) == 0, "a sleep failed");
    }
    count_down();
    return NULL;
}

static double sleeps(void)
{
    count_from(SLEEPERS);
    uint64_t begin = bench_now_ns();
    for (int i = 0; i < SLEEPERS; i++) start(sleeper, (void *)(intptr_t)(1000 + i % 1000));
    until_counted();
    return (double)(bench_now_ns() - begin) / ((double)SLEEPERS * sleeps_each());
}

static void run_spawn(void) { runner_turns("a task, batches of 1000", "ns", spawn); }
static void run_yield(void) { runner_turns("a yield", "ns", yields); }
static void run_pingpong(void) { runner_turns("a round trip", "ns", pingpong); }
static void run_buffered(void) { runner_turns("a message, 1 to 1, room for 128", "ns", buffered); }
static void run_mpmc(void) { runner_turns("a message, 4 to 4, room for 128", "ns", mpmc); }

static void run_timers(void)
{
    runner_turns("100000 tasks sleep a millisecond or two, a sleep", "ns", sleeps);
}

int main(int argc, char **argv)
{
    static const struct runner_work works[] = {
        {"spawn", 1, run_spawn},       {"yield", 1, run_yield}, {"pingpong", 1, run_pingpong},
        {"buffered", 1, run_buffered}, {"mpmc", 1, run_mpmc},   {"live", 1, run_live},
        {"timers", 1, run_timers},     {NULL, 0, NULL},
    };
    if (st_init() != 0) return 1;
    return runner_main(argc, argv, "State Threads", ST_VERSION, works);
}
