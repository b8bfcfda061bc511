/* SPDX-License-Identifier: MIT */
/*
 * The floor of wake: two plain threads, a mutex and a condition variable, without a library.
 *
 * Timed: wake, from before the lock to the waiting thread's first instruction after its wait.
 * Moves it: the futex, and the kernel's way to a sleeping thread.
 */
#include "peer.h"

#include <gnu/libc-version.h>
#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  arrived = PTHREAD_COND_INITIALIZER;
static int             letters; /* under the lock */
static uint64_t        woken;
static double          samples[PEER_ROUNDS_FULL];

static int rounds_all(void) { return PEER_WARM + peer_rounds(); }

static void *receiver(void *argument)
{
    for (int i = 0; i < rounds_all(); i++) {
        pthread_mutex_lock(&lock);
        while (letters == 0) pthread_cond_wait(&arrived, &lock);
        uint64_t now = bench_now_ns();
        letters--;
        pthread_mutex_unlock(&lock);
        peer_set(&woken, now);
    }
    return argument;
}

static void run_wake(void)
{
    pthread_t thread;
    runner_need(pthread_create(&thread, NULL, receiver, NULL) == 0, "no thread");
    for (int i = -PEER_WARM; i < peer_rounds(); i++) {
        peer_until_others_sleep();
        peer_set(&woken, 0);
        uint64_t start = bench_now_ns();
        pthread_mutex_lock(&lock);
        letters++;
        pthread_mutex_unlock(&lock);
        pthread_cond_signal(&arrived);
        uint64_t end = peer_spin_until_set(&woken);
        if (i >= 0) samples[i] = (double)(end - start);
    }
    pthread_join(thread, NULL);
    peer_tell("a sleeping worker wakes", samples);
}

int main(int argc, char **argv)
{
    static const struct runner_work works[] = {{"wake", 2, run_wake}, {NULL, 0, NULL}};
    return runner_main(argc, argv, "pthread condvar", gnu_get_libc_version(), works);
}
