/* SPDX-License-Identifier: MIT */
/*
 * The works of janusrt_tasks.c with State Threads: one thread, no workers, cooperative.
 *
 * Timed: spawn, yield. The queue is first in, first out, so that a tree is alive breadth first:
 *        fib and skynet would need a stack for each of a million tasks and are left out.
 * Moves it: a condition variable for each thread that can be joined; stacks are kept and reused.
 */
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
 * It has no yield: st_sleep(0) goes by the clock and the kernel. Waking the other and waiting is
 * the shortest way to let it run.
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

static void run_spawn(void) { runner_turns("a task, batches of 1000", "ns", spawn); }
static void run_yield(void) { runner_turns("a yield", "ns", yields); }

int main(int argc, char **argv)
{
    static const struct runner_work works[] = {
        {"spawn", 1, run_spawn},
        {"yield", 1, run_yield},
        {NULL, 0, NULL},
    };
    if (st_init() != 0) return 1;
    return runner_main(argc, argv, "State Threads", ST_VERSION, works);
}
