/* SPDX-License-Identifier: MIT */
/*
 * What do our tasks cost: to start and await, to yield, to divide work, and as their number grows?
 *
 * Timed:
 *        spawn    batches of 1000 empty children in a nursery, for each child
 *        million  one batch of 1,000,000; the first one separately, which has to get its memory
 *        fib      fib(32), every call starts a child for one half; for each child
 *        yield    two tasks for each worker that only yield; for each yield of one worker
 *        skynet   a tree, ten children a task, 1,000,000 leaves that return a number
 *        growth   one batch of 100, 1000, ... 1,000,000, for each child
 * Moves it: whether a child runs in place (it does, unless a thief takes it), the cache lines of
 *        its record, the locked instruction of the deque's pop, wake-ups of other workers.
 * Expect: about 20 ns for a child and for a yield. Two workers halve fib and skynet. Growth is
 *        flat.
 */
#include "runner.h"

#include <janusrt/janus.h>

static int64_t nothing(void *argument)
{
    (void)argument;
    return 0;
}

static void batch(int children)
{
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < children; i++) JANUS_IGNORE(janus_spawn(n, nothing, NULL));
    }
    runner_need(ended == JANUS_OK, "a child failed");
}

static double timed_batches(int batches, int children)
{
    batch(children < RUNNER_BATCH ? children : RUNNER_BATCH);
    uint64_t start = bench_now_ns();
    for (int i = 0; i < batches; i++) batch(children);
    return (double)(bench_now_ns() - start) / ((double)batches * (double)children);
}

static double spawn(void) { return timed_batches(runner_batches(), RUNNER_BATCH); }
static double million(void) { return timed_batches(1, RUNNER_MILLION); }

static int64_t fib(void *argument)
{
    int64_t *n = argument;
    if (*n < 2) return 0;
    int64_t      left = *n - 1;
    int64_t      right = *n - 2;
    janus_status ended;
    JANUS_NURSERY(nursery, ended)
    {
        JANUS_IGNORE(janus_spawn(nursery, fib, &left));
        (void)fib(&right);
    }
    *n = left + right;
    return ended;
}

static double fibs(void)
{
    int64_t  n = runner_fib();
    uint64_t start = bench_now_ns();
    (void)fib(&n);
    uint64_t spent = bench_now_ns() - start;
    runner_need((double)n == runner_fib_spawns(runner_fib() - 1) + 1, "fib is wrong");
    return (double)spent / runner_fib_spawns(runner_fib());
}

static int64_t yielder(void *argument)
{
    (void)argument;
    for (int i = 0; i < runner_yields(); i++) {
        if (janus_yield() != JANUS_OK) return -1;
    }
    return 0;
}

static double yields(void)
{
    uint64_t     start = bench_now_ns();
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (unsigned i = 0; i < 2 * runner.workers; i++)
            JANUS_IGNORE(janus_spawn(n, yielder, NULL));
    }
    runner_need(ended == JANUS_OK, "a child failed");
    return (double)(bench_now_ns() - start) / (2.0 * runner_yields());
}

struct node {
    int64_t first, leaves, sum;
};

static int64_t skynet_node(void *argument)
{
    struct node *node = argument;
    struct node  children[RUNNER_SKYNET_WIDTH];
    if (node->leaves == 1) {
        node->sum = node->first;
        return 0;
    }
    int64_t      leaves = node->leaves / RUNNER_SKYNET_WIDTH;
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < RUNNER_SKYNET_WIDTH; i++) {
            children[i] = (struct node){node->first + i * leaves, leaves, 0};
            JANUS_IGNORE(janus_spawn(n, skynet_node, &children[i]));
        }
    }
    node->sum = 0;
    for (int i = 0; i < RUNNER_SKYNET_WIDTH; i++) node->sum += children[i].sum;
    return ended;
}

static double skynet(void)
{
    struct node root = {0, RUNNER_SKYNET_LEAVES, 0};
    uint64_t    start = bench_now_ns();
    (void)skynet_node(&root);
    double spent = (double)(bench_now_ns() - start) / 1e6;
    runner_need(root.sum == (int64_t)RUNNER_SKYNET_LEAVES * (RUNNER_SKYNET_LEAVES - 1) / 2,
                "the sum is wrong");
    return spent;
}

static int growth_children;

static double growth(void)
{
    int batches = RUNNER_MILLION / growth_children;
    return timed_batches(batches > 300 ? 300 : batches, growth_children);
}

/* All turns of a work run in one task of one scheduler, because the others keep their threads
 * too. */

static int64_t turns_spawn(void *argument)
{
    runner_turns("a task, batches of 1000", "ns", spawn);
    return argument == NULL ? 0 : -1;
}

static int64_t turns_million(void *argument)
{
    runner_say("a task, first batch of 1000000", "ns", million());
    runner_turns("a task, one batch of 1000000", "ns", million);
    return argument == NULL ? 0 : -1;
}

static int64_t turns_fib(void *argument)
{
    runner_turns("a spawn of fib", "ns", fibs);
    return argument == NULL ? 0 : -1;
}

static int64_t turns_yield(void *argument)
{
    runner_turns("a yield", "ns", yields);
    return argument == NULL ? 0 : -1;
}

static int64_t turns_skynet(void *argument)
{
    runner_turns("1000000 leaves", "ms", skynet);
    return argument == NULL ? 0 : -1;
}

static int64_t turns_growth(void *argument)
{
    for (growth_children = 100; growth_children <= RUNNER_MILLION; growth_children *= 10) {
        char metric[64];
        snprintf(metric, sizeof metric, "a task, batches of %d", growth_children);
        runner_turns(metric, "ns", growth);
    }
    return argument == NULL ? 0 : -1;
}

#ifndef JANUS_BENCH_NAME
#define JANUS_BENCH_NAME "janusrt"
#endif

/* An explicit limit, above the number of tasks of any work. */
enum { TASKS_MAX = 4000000 };

static void in_scheduler(janus_entry *entry)
{
    janus_status status =
        janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = runner.workers, .max_tasks = TASKS_MAX),
                  entry, NULL, NULL);
    runner_need(status == JANUS_OK, janus_status_text(status));
}

static void run_spawn(void) { in_scheduler(turns_spawn); }
static void run_million(void) { in_scheduler(turns_million); }
static void run_fib(void) { in_scheduler(turns_fib); }
static void run_yield(void) { in_scheduler(turns_yield); }
static void run_skynet(void) { in_scheduler(turns_skynet); }
static void run_growth(void) { in_scheduler(turns_growth); }

int main(int argc, char **argv)
{
    static const struct runner_work works[] = {
        {"spawn", 0, run_spawn}, {"million", 0, run_million}, {"fib", 0, run_fib},
        {"yield", 0, run_yield}, {"skynet", 0, run_skynet},   {"growth", 0, run_growth},
        {NULL, 0, NULL},
    };
    return runner_main(argc, argv, JANUS_BENCH_NAME, JANUS_VERSION_STRING, works);
}
