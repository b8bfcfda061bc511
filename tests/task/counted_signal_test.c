/* SPDX-License-Identifier: MIT */
/* Counted code and holds in signal handlers on an alternate stack. They switch nothing. */
#include "energy.h"

#include <janusrt/counted.h>
#include <pthread.h>
#include <signal.h>

static atomic_int neighbour_ran, handled, other_ran_meanwhile;

static void count_in_handler(int number)
{
    (void)number;
    int before = atomic_load(&neighbour_ran);
    for (int i = 0; i < 100000; i++) janus_check_or_end(1);
    for (int i = 0; i < 100; i++) {
        janus_check_or_end_slow(1);
        if (janus_strip_slow(1024, 3) != 1024) abort();
        janus_op(UINT64_C(1) << 40);
    }
    if (atomic_load(&neighbour_ran) != before) atomic_store(&other_ran_meanwhile, 1);
    atomic_fetch_add(&handled, 1);
}

static int64_t be_neighbour(void *argument)
{
    while (!atomic_load((atomic_int *)argument)) {
        atomic_fetch_add(&neighbour_ran, 1);
        if (janus_yield() != JANUS_OK) break;
    }
    return 0;
}

static int64_t raise_signals(void *argument)
{
    atomic_int    over = 0;
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, be_neighbour, &over), JANUS_OK);
    sigset_t signals;
    CHECK_EQ(sigemptyset(&signals), 0);
    CHECK_EQ(sigaddset(&signals, SIGUSR1), 0);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &signals, NULL), 0); /* workers block signals */
        CHECK_EQ(raise(SIGUSR1), 0);
        CHECK(janus_fuel >= 0);
        CHECK_EQ(janus_yield(), JANUS_OK);
        for (int k = 0; k < 1000; k++) janus_check_or_end(1);
    }
    atomic_store(&over, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

static void hold_in_handler(int number)
{
    (void)number;
    int before = atomic_load(&neighbour_ran);
    janus_hold_end(); /* not the task's */
    for (int i = 0; i < 100000; i++) {
        janus_hold_begin();
        janus_hold_end();
    }
    for (int i = 0; i < 2 * JANUS_HOLDS_MAX; i++) janus_hold_begin();
    if (atomic_load(&neighbour_ran) != before) atomic_store(&other_ran_meanwhile, 1);
    atomic_fetch_add(&handled, 1);
}

static int64_t hold_and_raise(void *argument)
{
    atomic_int    over = 0;
    janus_nursery n;
    sigset_t      signals;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, be_neighbour, &over), JANUS_OK);
    CHECK_EQ(sigemptyset(&signals), 0);
    CHECK_EQ(sigaddset(&signals, SIGUSR1), 0);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &signals, NULL), 0); /* workers block signals */
        janus_hold_begin();
        for (int k = 0; k < 20000; k++) janus_check_or_end(1); /* a slice ends: the hold is due */
        int before = atomic_load(&neighbour_ran);
        CHECK_EQ(raise(SIGUSR1), 0);
        for (int k = 0; k < 20000; k++) janus_check_or_end(1);
        CHECK_EQ(atomic_load(&neighbour_ran), before);
        janus_hold_end();
        CHECK_EQ(raise(SIGUSR1), 0);
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    atomic_store(&over, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a hold in a signal handler on an alternate stack is not the task's, and switches nothing")
{
    struct sigaction action = {.sa_handler = hold_in_handler, .sa_flags = SA_ONSTACK}, before;
    atomic_store(&handled, 0);
    atomic_store(&other_ran_meanwhile, 0);
    CHECK_EQ(sigaction(SIGUSR1, &action, &before), 0);
    rig_run(1, hold_and_raise, NULL, 1);
    CHECK_EQ(sigaction(SIGUSR1, &before, NULL), 0);
    CHECK_EQ(atomic_load(&handled), 40);
    CHECK_EQ(atomic_load(&other_ran_meanwhile), 0);
}

TEST("a signal handler on an alternate stack counts without switching to another task")
{
    struct sigaction action = {.sa_handler = count_in_handler, .sa_flags = SA_ONSTACK}, before;
    atomic_store(&handled, 0);
    atomic_store(&other_ran_meanwhile, 0);
    CHECK_EQ(sigaction(SIGUSR1, &action, &before), 0);
    rig_run(1, raise_signals, NULL, 1);
    CHECK_EQ(sigaction(SIGUSR1, &before, NULL), 0);
    CHECK_EQ(atomic_load(&handled), 20);
    CHECK(atomic_load(&neighbour_ran) > 0);
    CHECK_EQ(atomic_load(&other_ran_meanwhile), 0);
}
