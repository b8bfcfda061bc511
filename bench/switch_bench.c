/* SPDX-License-Identifier: MIT */
/*
 * How long does it take to leave one stack and enter another?
 *
 * Timed: two stacks on one thread that switch to each other; one switch is half a round trip.
 *        jrt_ctx_switch beside the raw switches of others, then the public resume/suspend, then
 *        a round over 1000 fibers whose frames compete for the cache.
 * Moves it: `stmxcsr` (half of our time on Zen 4), the indirect jump at the end, cache misses.
 * Expect: at most Boost.Context's jump; ucontext 40 times as long (it calls the kernel).
 */
#include "bench.h"
#include "fiber/ctx.h"

#include <janusrt/janus.h>
#include <ucontext.h>

enum { SWITCHES = 4000000, SLOW_SWITCHES = 200000, STACK_BYTES = 64 * 1024, CROWD = 1000 };

static _Alignas(64) char stack[STACK_BYTES];

static void *here, *there;

static void bounce(void *argument, int message)
{
    (void)argument;
    for (;;) message = jrt_ctx_switch(&there, here, message);
}

static double run_ours(void)
{
    there = jrt_ctx_make(stack + STACK_BYTES, bounce, NULL);
    uint64_t start = bench_now_ns();
    for (int i = 0; i < SWITCHES / 2; i++) (void)jrt_ctx_switch(&here, there, 0);
    return (double)(bench_now_ns() - start) / (double)SWITCHES;
}

#if JANUS_BENCH_BOOST
struct boost_transfer {
    void *context, *data;
};
extern struct boost_transfer jump_fcontext(void *to, void *data);
extern void *make_fcontext(void *top, size_t bytes, void (*main)(struct boost_transfer));

static void bounce_boost(struct boost_transfer from)
{
    for (;;) from = jump_fcontext(from.context, from.data);
}

static double run_boost(void)
{
    void                 *context = make_fcontext(stack + STACK_BYTES, STACK_BYTES, bounce_boost);
    struct boost_transfer from = {context, NULL};
    uint64_t              start = bench_now_ns();
    for (int i = 0; i < SWITCHES / 2; i++) from = jump_fcontext(from.context, NULL);
    return (double)(bench_now_ns() - start) / (double)SWITCHES;
}
#endif

#if JANUS_BENCH_PCL
#include <pcl.h>

static void bounce_pcl(void *argument)
{
    (void)argument;
    for (;;) co_resume();
}

static double run_pcl(void)
{
    coroutine_t coroutine = co_create(bounce_pcl, NULL, NULL, STACK_BYTES);
    uint64_t    start = bench_now_ns();
    for (int i = 0; i < SLOW_SWITCHES / 2; i++) co_call(coroutine);
    double spent = (double)(bench_now_ns() - start) / (double)SLOW_SWITCHES;
    co_delete(coroutine);
    return spent;
}
#endif

static ucontext_t uc_here, uc_there;

static void bounce_ucontext(void)
{
    for (;;) swapcontext(&uc_there, &uc_here);
}

static double run_ucontext(void)
{
    getcontext(&uc_there);
    uc_there.uc_stack.ss_sp = stack;
    uc_there.uc_stack.ss_size = STACK_BYTES;
    uc_there.uc_link = NULL;
    makecontext(&uc_there, bounce_ucontext, 0);
    uint64_t start = bench_now_ns();
    for (int i = 0; i < SLOW_SWITCHES / 2; i++) swapcontext(&uc_here, &uc_there);
    return (double)(bench_now_ns() - start) / (double)SLOW_SWITCHES;
}

static janus_pool *pool;

static int64_t suspend_forever(void *argument)
{
    (void)argument;
    while (janus_fiber_suspend(NULL, NULL) == JANUS_OK) continue;
    return 0;
}

static janus_fiber *started(void)
{
    janus_fiber *fiber = NULL;
    if (janus_fiber_create(pool, suspend_forever, NULL, NULL, &fiber) != JANUS_OK) abort();
    if (janus_fiber_resume(fiber, NULL, NULL) != JANUS_OK) abort();
    return fiber;
}

static double run_fibers(void)
{
    janus_fiber *fiber = started();
    uint64_t     start = bench_now_ns();
    for (int i = 0; i < SWITCHES / 2; i++) (void)janus_fiber_resume(fiber, NULL, NULL);
    double spent = (double)(bench_now_ns() - start) / (double)SWITCHES;
    janus_fiber_destroy(fiber);
    return spent;
}

static double run_crowd(void)
{
    static janus_fiber *crowd[CROWD];
    for (int i = 0; i < CROWD; i++) crowd[i] = started();
    uint64_t start = bench_now_ns();
    for (int round = 0; round < SWITCHES / 2 / CROWD; round++) {
        for (int i = 0; i < CROWD; i++) (void)janus_fiber_resume(crowd[i], NULL, NULL);
    }
    double spent = (double)(bench_now_ns() - start) / (double)SWITCHES;
    for (int i = 0; i < CROWD; i++) janus_fiber_destroy(crowd[i]);
    return spent;
}

int main(void)
{
    struct contender contenders[] = {
        {.name = "janusrt jrt_ctx_switch", .run = run_ours},
#if JANUS_BENCH_BOOST
        {.name = "Boost.Context jump_fcontext", .run = run_boost},
#endif
        {.name = "ucontext swapcontext", .run = run_ucontext},
#if JANUS_BENCH_PCL
        {.name = "PCL co_call", .run = run_pcl},
#endif
        {.name = "janusrt resume/suspend, 1 fiber", .run = run_fibers},
        {.name = "janusrt resume/suspend, 1000 fibers", .run = run_crowd},
    };
    if (janus_pool_create(NULL, &pool) != JANUS_OK) return 1;
    puts("One switch between two stacks on one thread:");
    bench_race("switch", contenders, sizeof contenders / sizeof contenders[0]);
    return janus_pool_destroy(pool) == JANUS_OK ? 0 : 1;
}
