/* SPDX-License-Identifier: MIT */
/*
 * What does dividing work cost, with and without a thief?
 *
 * Timed:
 *        both  fib(32), every call makes its two calls by janus_both; for each janus_both
 *        loop  janus_for over 1,000,000 nearly empty bodies, and over bodies of 100 ns, both as a
 *              multiple of the plain loop on one thread: 1 is as fast, 0.5 is twice as fast
 * Moves it: for both the note that a call leaves in its frame, and a look at the shelf every 64
 *        forks. For loop a look at the clock for every strip of 10 us, and pieces that are split
 *        off.
 * Expect: about 6 ns a fork on one worker, 4 on two. Empty bodies 1.0, and bodies of 100 ns 0.5 on
 *        two.
 */
#include "bodies.h"

#include <janusrt/janus.h>

static int64_t fib(void *argument)
{
    int64_t *n = argument;
    if (*n < 2) return 0;
    int64_t left = *n - 1;
    int64_t right = *n - 2;
    int64_t status = janus_both(fib, &left, fib, &right);
    *n = left + right;
    return status;
}

static double forks(void)
{
    int64_t  n = runner_fib();
    uint64_t start = bench_now_ns();
    int64_t  status = fib(&n);
    uint64_t spent = bench_now_ns() - start;
    runner_need(status == 0 && (double)n == runner_fib_spawns(runner_fib() - 1) + 1,
                "fib is wrong");
    return (double)spent / runner_fib_spawns(runner_fib());
}

static int64_t empty_body(void *argument, uint64_t begin, uint64_t end)
{
    (void)argument;
    bodies_empty(begin, end);
    return 0;
}

static int64_t long_body(void *argument, uint64_t begin, uint64_t end)
{
    (void)argument;
    bodies_long(begin, end);
    return 0;
}

static void empty_loop(void)
{
    runner_need(janus_for(janus_range_of(0, BODIES_EMPTY), empty_body, NULL) == 0, "a loop failed");
}

static void long_loop(void)
{
    runner_need(janus_for(janus_range_of(0, bodies_count()), long_body, NULL) == 0,
                "a loop failed");
}

static double empty_ratio(void) { return bodies_ratio(empty_loop, bodies_empty, BODIES_EMPTY); }
static double long_ratio(void) { return bodies_ratio(long_loop, bodies_long, bodies_count()); }

static int64_t turns_both(void *argument)
{
    runner_turns("a fork of fib", "ns", forks);
    return argument == NULL ? 0 : -1;
}

static int64_t turns_loop(void *argument)
{
    runner_turns("1000000 empty bodies", "of serial", empty_ratio);
    runner_turns("bodies of 100 ns", "of serial", long_ratio);
    return argument == NULL ? 0 : -1;
}

static void run(janus_entry *turns)
{
    janus_status status =
        janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = runner.workers), turns, NULL, NULL);
    runner_need(status == JANUS_OK, "the run failed");
}

static void run_both(void) { run(turns_both); }
static void run_loop(void) { run(turns_loop); }

int main(int argc, char **argv)
{
    static const struct runner_work works[] = {
        {"both", 0, run_both},
        {"loop", 0, run_loop},
        {NULL, 0, NULL},
    };
    return runner_main(argc, argv, "janusrt", JANUS_VERSION_STRING, works);
}
