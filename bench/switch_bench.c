/* SPDX-License-Identifier: MIT */
/*
 * How long does it take to leave one stack and enter another?
 *
 * Timed: two stacks on one thread that switch to each other. One switch is half a round trip.
 *        jrt_ctx_switch beside the raw switches of others, in turns; the public resume and suspend;
 *        and a round over 1000 fibers whose frames compete for the cache.
 * Moves it: `stmxcsr` (half of our time on Zen 4), the indirect jump at the end, cache misses.
 * Expect: at most Boost.Context's jump. ucontext takes 40 times as long, because it calls the
 *        kernel.
 */
#include "runner.h"

#include "fiber/ctx.h"

#include <gnu/libc-version.h>
#include <janusrt/janus.h>
#include <ucontext.h>

enum { STACK_BYTES = 64 * 1024, CROWD = 1000 };

/* The slow ones call the kernel. */
static int switches(void) { return runner.quick ? 1000000 : 4000000; }
static int slow_switches(void) { return switches() / 20; }

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
    for (int i = 0; i < switches() / 2; i++) (void)jrt_ctx_switch(&here, there, 0);
    return (double)(bench_now_ns() - start) / (double)switches();
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
    for (int i = 0; i < switches() / 2; i++) from = jump_fcontext(from.context, NULL);
    return (double)(bench_now_ns() - start) / (double)switches();
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
    for (int i = 0; i < slow_switches() / 2; i++) co_call(coroutine);
    double spent = (double)(bench_now_ns() - start) / (double)slow_switches();
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
    for (int i = 0; i < slow_switches() / 2; i++) swapcontext(&uc_here, &uc_there);
    return (double)(bench_now_ns() - start) / (double)slow_switches();
}

static janus_fiber_pool *pool;

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
    for (int i = 0; i < switches() / 2; i++) JANUS_IGNORE(janus_fiber_resume(fiber, NULL, NULL));
    double spent = (double)(bench_now_ns() - start) / (double)switches();
    janus_fiber_destroy(fiber);
    return spent;
}

static double run_crowd(void)
{
    static janus_fiber *crowd[CROWD];
    for (int i = 0; i < CROWD; i++) crowd[i] = started();
    uint64_t start = bench_now_ns();
    for (int round = 0; round < switches() / 2 / CROWD; round++) {
        for (int i = 0; i < CROWD; i++) JANUS_IGNORE(janus_fiber_resume(crowd[i], NULL, NULL));
    }
    double spent = (double)(bench_now_ns() - start) / (double)switches();
    for (int i = 0; i < CROWD; i++) janus_fiber_destroy(crowd[i]);
    return spent;
}

#if JANUS_BENCH_BOOST
#if __has_include(<boost/version.hpp>)
#include <boost/version.hpp>
#endif

static const char *boost_version(void)
{
#ifdef BOOST_VERSION
    static char text[32];
    snprintf(text, sizeof text, "%d.%d", BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000);
    return text;
#else
    return "";
#endif
}
#endif

static void run_switch(void)
{
    static const char *raw = "a raw switch between two stacks";
    const char        *ours = JANUS_VERSION_STRING;
    char               libc[64];
    snprintf(libc, sizeof libc, "glibc %s", gnu_get_libc_version());
    const struct runner_side sides[] = {
        {"janusrt", ours, raw, run_ours},
#if JANUS_BENCH_BOOST
        {"Boost.Context", boost_version(), raw, run_boost},
#endif
        {"ucontext", libc, raw, run_ucontext},
#if JANUS_BENCH_PCL
        {"PCL", "", raw, run_pcl},
#endif
        {"janusrt", ours, "a switch of public fibers", run_fibers},
        {"janusrt", ours, "a switch of public fibers, 1000 in turn", run_crowd},
    };
    runner_need(janus_fiber_pool_create(NULL, &pool) == JANUS_OK, "no pool");
    runner_sides(sides, sizeof sides / sizeof sides[0]);
    runner_need(janus_fiber_pool_destroy(pool) == JANUS_OK, "the pool cannot be destroyed");
}

int main(int argc, char **argv)
{
    static const struct runner_work works[] = {{"switch", 1, run_switch}, {NULL, 0, NULL}};
    return runner_main(argc, argv, "janusrt", JANUS_VERSION_STRING, works);
}
