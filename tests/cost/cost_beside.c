/* SPDX-License-Identifier: MIT */
/*
 * The functions of the C library that would bring time or chance into a count, replaced for the
 * whole program; and the second worker.
 */
#include "cost_beside.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
    (void)clock;
    *now = (struct timespec){.tv_sec = 1000, .tv_nsec = 0};
    return 0;
}

/* For the keys of channels. */
ssize_t getrandom(void *out, size_t bytes, unsigned flags)
{
    (void)flags;
    memset(out, 0x5a, bytes);
    return (ssize_t)bytes;
}

/* Two processors, so that the second worker is woken. */
int sched_getaffinity(pid_t thread, size_t bytes, cpu_set_t *set)
{
    (void)thread;
    CPU_ZERO_S(bytes, set);
    CPU_SET_S(0, bytes, set);
    CPU_SET_S(1, bytes, set);
    return 0;
}

static void need(bool holds)
{
    if (holds) return;
    fprintf(stderr, "cost_beside: something was refused\n");
    exit(1);
}

struct keeper {
    pthread_t walker;
    sem_t     keeps, may_end;
};

/* Keeps the worker that runs it, which must not be the walker's. */
static int64_t keep_worker(void *argument)
{
    struct keeper *keeper = argument;
    while (pthread_equal(pthread_self(), keeper->walker)) need(janus_yield() == JANUS_OK);
    (void)sem_post(&keeper->keeps);
    while (sem_wait(&keeper->may_end) != 0) continue;
    return 0;
}

int64_t cost_beside(void *argument)
{
    const struct cost_beside *walk = argument;
    struct keeper             keeper = {.walker = pthread_self()};
    int64_t                   result = -1;
    janus_status              ended;
    need(sem_init(&keeper.keeps, 0, 0) == 0 && sem_init(&keeper.may_end, 0, 0) == 0);
    JANUS_NURSERY(n, ended)
    {
        need(janus_spawn(n, keep_worker, &keeper) == JANUS_OK);
        while (sem_trywait(&keeper.keeps) != 0) (void)sched_yield();
        result = walk->entry(walk->argument);
        (void)sem_post(&keeper.may_end);
    }
    need(ended == JANUS_OK);
    return result;
}
