/* SPDX-License-Identifier: MIT */
/*
 * What does a child cost under each backend?
 *
 * Timed: spawning an empty child and waiting for it, one after the other, in a nursery of
 *        :sovereign. Beside it, making and joining an empty thread of the system.
 * Moves it: the check of the capability and the bank, the same for all three. For THREADED the
 *        kernel, a strand and its rescue stack, and two wake-ups.
 * Expect: 150 to 250 ns for BLOCKING and COOPERATIVE, several bare threads for THREADED.
 */
#include "bench.h"

#include <janusrt/janus.h>
#include <pthread.h>

enum { MANY = 20000, FEW = 200 };

static janus_cap spawn_cap, executor_cap;

static int64_t nothing(void *argument)
{
    (void)argument;
    return 0;
}

static void must(bool good)
{
    if (!good) abort();
}

static double run_backend(janus_backend backend, int rounds)
{
    janus_nursery n;
    must(janus_nursery_open(
             &n, JANUS_NURSERY_OPTIONS(.spawn_cap = spawn_cap, .executor_cap = executor_cap,
                                       .backend = JANUS_BACKEND_SET(backend))) == JANUS_OK);
    uint64_t begin = bench_now_ns();
    for (int i = 0; i < rounds; i++) {
        janus_task_id id;
        must(janus_spawn_with(&n, nothing, NULL, NULL, &id) == JANUS_OK);
        must(janus_join(&n, id, NULL) == JANUS_OK);
    }
    double ns = (double)(bench_now_ns() - begin) / rounds;
    must(janus_nursery_end(&n, NULL) == JANUS_OK);
    return ns;
}

static double run_cooperative(void) { return run_backend(JANUS_BACKEND_COOPERATIVE, MANY); }
static double run_blocking(void) { return run_backend(JANUS_BACKEND_BLOCKING, MANY); }
static double run_threaded(void) { return run_backend(JANUS_BACKEND_THREADED, FEW); }

static void *no_task(void *argument) { return argument; }

static double run_pthread(void)
{
    uint64_t begin = bench_now_ns();
    for (int i = 0; i < FEW; i++) {
        pthread_t thread;
        must(pthread_create(&thread, NULL, no_task, NULL) == 0);
        must(pthread_join(thread, NULL) == 0);
    }
    return (double)(bench_now_ns() - begin) / (double)FEW;
}

static int64_t race(void *argument)
{
    struct contender contenders[] = {
        {"a cooperative child", run_cooperative, {0}},
        {"a blocking child", run_blocking, {0}},
        {"a child with a thread", run_threaded, {0}},
        {"a thread of the system", run_pthread, {0}},
    };
    janus_authority *authority;
    janus_cap_limits spawn = {.spawn = {.max_tasks = 10, .task_budget = JANUS_BUDGET()}};
    janus_cap_limits executor = {.executor = {JANUS_BACKEND_SET(JANUS_BACKEND_COUNT) - 1}};
    (void)argument;
    must(janus_authority_take(NULL, &authority) == JANUS_OK);
    must(janus_cap_mint(authority, 0,
                        JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_SPAWN, .rights = JANUS_RIGHTS_ALL,
                                        .limits = &spawn),
                        &spawn_cap) == JANUS_OK);
    must(janus_cap_mint(authority, 0,
                        JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_EXECUTOR, .rights = JANUS_RIGHTS_ALL,
                                        .limits = &executor),
                        &executor_cap) == JANUS_OK);
    bench_race("executor", contenders, sizeof contenders / sizeof contenders[0]);
    return 0;
}

int main(void)
{
    janus_status status =
        janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .profile = JANUS_PROFILE_SOVEREIGN,
                                          .yield_interval = 100),
                  race, NULL, NULL);
    return status == JANUS_OK ? 0 : 1;
}
