/* SPDX-License-Identifier: MIT */
/*
 * The limit of live tasks while all start and end some. The limits are small, so that workers
 * seize each other's room all the time.
 *
 *     limit_stress [CPU seconds for each number of workers [seed]]
 *
 * Every task counts itself in and out, and there are never more than the limit. After a refusal a
 * task tries again later. When no task is left, all of the room is back.
 */
#include <janusrt/janus.h>

#include "work/limit.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "storm.h" /* last: its names are short */

enum { STARTERS = 4, THREADS = 2 };

static atomic_long alive, most, started, refused;
static long        limit;
static atomic_bool stop;

static void count_in(void)
{
    long now = atomic_fetch_add(&alive, 1) + 1, seen = atomic_load(&most);
    MUST(now <= limit, "%ld alive, limit %ld", now, limit);
    while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now)) continue;
}

static int64_t child(void *argument)
{
    uintptr_t yields = (uintptr_t)argument;
    count_in();
    for (; yields > 0; yields--) JANUS_IGNORE(janus_yield());
    atomic_fetch_sub(&alive, 1); /* before the library does */
    return 0;
}

static void start_some(janus_nursery *n, uint64_t *random)
{
    for (uint64_t i = next_random(random) % 12; i > 0; i--) {
        void *yields = (void *)(uintptr_t)(next_random(random) % 4);
        if (janus_spawn(n, child, yields) == JANUS_OK) {
            atomic_fetch_add(&started, 1);
            continue;
        }
        atomic_fetch_add(&refused, 1);
        return;
    }
}

static int64_t starter(void *argument)
{
    uint64_t random = *(uint64_t *)argument;
    count_in();
    while (!atomic_load(&stop)) {
        janus_nursery n;
        MUST(janus_nursery_open(&n, NULL) == JANUS_OK);
        start_some(&n, &random);
        if (next_random(&random) % 4 == 0) JANUS_IGNORE(janus_yield());
        MUST(janus_nursery_end(&n, NULL) == JANUS_OK);
        if (next_random(&random) % 8 == 0) JANUS_IGNORE(janus_sleep(1000));
    }
    atomic_fetch_sub(&alive, 1);
    return 0;
}

struct thread {
    janus_scheduler *scheduler;
    uint64_t         random;
};

static void *outside(void *argument)
{
    struct thread *thread = argument;
    while (!atomic_load(&stop)) {
        janus_nursery n;
        MUST(janus_nursery_open_in(thread->scheduler, &n, NULL) == JANUS_OK);
        start_some(&n, &thread->random);
        MUST(janus_nursery_end(&n, NULL) == JANUS_OK);
    }
    return NULL;
}

/* One scheduler and one limit, for this long. */
static void one_round(uint32_t workers, uint64_t *random)
{
    janus_scheduler *scheduler = NULL;
    janus_nursery    n;
    uint64_t         seeds[STARTERS];
    struct thread    threads[THREADS];
    pthread_t        handles[THREADS];
    limit = STARTERS + 1 + (long)(next_random(random) % 20);
    atomic_store(&stop, false);
    MUST(janus_scheduler_create_with(
             JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .max_tasks = (uint64_t)limit),
             &scheduler) == JANUS_OK);
    MUST(janus_scheduler_start(scheduler) == JANUS_OK);
    MUST(janus_nursery_open_in(scheduler, &n, NULL) == JANUS_OK);
    for (int i = 0; i < STARTERS; i++) {
        seeds[i] = next_random(random);
        janus_status status; /* those before have children already */
        while ((status = janus_spawn(&n, starter, &seeds[i])) == JANUS_TASK_LIMIT) continue;
        MUST(status == JANUS_OK);
    }
    /* In a world there is no outside thread. */
    int threads_used = storm_simulated() != 0 ? 0 : THREADS;
    for (int i = 0; i < threads_used; i++) {
        threads[i] = (struct thread){scheduler, next_random(random)};
        MUST(pthread_create(&handles[i], NULL, outside, &threads[i]) == 0);
    }
    JANUS_IGNORE(janus_sleep(UINT64_C(100000000) / (storm_simulated() != 0 ? 100 : 1)));
    atomic_store(&stop, true);
    for (int i = 0; i < threads_used; i++) MUST(pthread_join(handles[i], NULL) == 0);
    MUST(janus_nursery_end(&n, NULL) == JANUS_OK);
    MUST(atomic_load(&alive) == 0);
    MUST(jrt_limit_alive(scheduler) == 0);
    MUST(janus_scheduler_destroy(scheduler) == JANUS_OK);
}

int main(int argc, char **argv)
{
    static const uint32_t worker_counts[] = {2, 4, 8};
    double                seconds = storm_seconds(argc, argv, 0.25);
    storm_begin(argc > 2 ? argv[2] : NULL);
    signal(SIGALRM, storm_hangs);
    for (int i = 0; i < 3; i++) {
        uint64_t random = seed + worker_counts[i];
        uint64_t end = storm_end(seconds);
        for (uint64_t number = 0; storm_again(number, end); number++) {
            alarm(STORM_PATIENCE_S);
            one_round(worker_counts[i], &random);
        }
        printf("# %u workers: %ld started, %ld refused, at most %ld alive\n", worker_counts[i],
               atomic_load(&started), atomic_load(&refused), atomic_load(&most));
        fflush(stdout);
    }
    alarm(0);
    bool raced = atomic_load(&refused) > 0 && atomic_load(&started) > 0;
    printf("%s 1 - there are never more tasks than the limit, and all room comes back\n1..1\n",
           raced ? "ok" : "not ok");
    return !raced;
}
