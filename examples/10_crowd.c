/* SPDX-License-Identifier: MIT */
/*
 * 5,000 raw fibers are suspended at the same time, each on its own stack with a guard below. One of
 * them overflows its stack, and all others finish.
 */
#include <janusrt/janus.h>
#include <stdio.h>

enum { CROWD = 5000, DIGGER = 4711 };

static janus_fiber *crowd[CROWD];

static int64_t dig(int64_t depth)
{
    volatile char room[1000] = {1}; /* each level takes a kilobyte of stack */
    int64_t       below = depth < 0 ? 0 : dig(depth + 1);
    return below + room[0];
}

static int64_t member(void *argument)
{
    if (janus_fiber_suspend(NULL, NULL) != JANUS_OK) return -100;
    return argument == &crowd[DIGGER] ? dig(0) : 1;
}

int main(void)
{
    janus_fiber_pool *pool;
    janus_outcome     outcome;
    int64_t           finished = 0;
    if (janus_fiber_pool_create(NULL, &pool) != JANUS_OK) return 1;
    for (int i = 0; i < CROWD; i++) {
        if (janus_fiber_create(pool, member, &crowd[i],
                               JANUS_FIBER_OPTIONS(.name = i == DIGGER ? "digger" : "member"),
                               &crowd[i]) != JANUS_OK)
            return 1;
        if (janus_fiber_resume(crowd[i], NULL, NULL) != JANUS_OK) return 1;
    }
    janus_fiber_pool_info stats = JANUS_FIBER_POOL_INFO();
    if (janus_fiber_pool_inspect(pool, &stats) != JANUS_OK) return 1;
    printf("%zu fibers are parked\n", stats.stacks_attached);
    for (int i = 0; i < CROWD; i++) {
        if (janus_fiber_resume(crowd[i], NULL, &outcome) != JANUS_OK) return 1;
        if (outcome.state == JANUS_FIBER_STATE_PANICKED) printf("number %d has panicked\n", i);
        if (outcome.state == JANUS_FIBER_STATE_COMPLETED) finished += outcome.result;
        if (janus_fiber_destroy(crowd[i]) != JANUS_OK) return 1;
    }
    printf("%d have finished\n", (int)finished);
    return janus_fiber_pool_destroy(pool) == JANUS_OK && finished == CROWD - 1 ? 0 : 1;
}

/* Prints:
 * 5000 fibers are parked
 * number 4711 has panicked
 * 4999 have finished
 */
