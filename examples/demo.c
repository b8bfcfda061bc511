/* SPDX-License-Identifier: MIT */
/* What `make run` shows: a crowd of fibers, one that digs too deep, and a crowd that lives on. */
#include <janusrt/janus.h>
#include <stdio.h>
#include <time.h>

enum { CROWD = 100000, DIGGER = 4711 };

static janus_fiber *crowd[CROWD];

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int64_t dig(int64_t depth)
{
    volatile char room[1000] = {1}; /* every level needs its room */
    int64_t       below = depth < 0 ? 0 : dig(depth + 1);
    return below + room[0];
}

static int64_t member(void *argument)
{
    if (janus_fiber_suspend(NULL, NULL) != JANUS_OK) return -1;
    return argument == &crowd[DIGGER] ? dig(0) : 1;
}

static void panicked(const janus_panic_info *panic)
{
    char text[256];
    janus_panic_text(panic, text, sizeof text);
    printf("  %s\n", text);
}

int main(void)
{
    janus_pool   *pool;
    janus_outcome outcome;
    int64_t       finished = 0;
    double        start = seconds();
    printf("%s\n", janus_build_text());
    if (janus_pool_create(NULL, &pool) != JANUS_OK) return 1;
    for (int i = 0; i < CROWD; i++) {
        if (janus_fiber_create(pool, member, &crowd[i],
                               JANUS_FIBER_OPTIONS(.name = i == DIGGER ? "digger" : "member"),
                               &crowd[i]) != JANUS_OK)
            return 1;
        if (janus_fiber_resume(crowd[i], NULL, NULL) != JANUS_OK) return 1;
    }
    janus_pool_stats stats = {.struct_bytes = sizeof stats};
    if (janus_pool_stats_read(pool, &stats) != JANUS_OK) return 1;
    printf("%zu fibers parked, each on a stack of its own (%zu KiB, %s guard), in %.2f s\n",
           stats.stacks_attached, janus_profile_stack_bytes(JANUS_PROFILE_DEFAULT) / 1024,
           janus_guard_name(stats.guard), seconds() - start);
    for (int i = 0; i < CROWD; i++) {
        if (janus_fiber_resume(crowd[i], NULL, &outcome) != JANUS_OK) return 1;
        if (outcome.state == JANUS_FIBER_PANICKED) panicked(&outcome.panic);
        if (outcome.state == JANUS_FIBER_COMPLETED) finished += outcome.result;
        if (janus_fiber_destroy(crowd[i]) != JANUS_OK) return 1;
    }
    printf("%d fibers finished, 1 ended by its own fault, nobody else noticed (%.2f s in all)\n",
           (int)finished, seconds() - start);
    return janus_pool_destroy(pool) == JANUS_OK && finished == CROWD - 1 ? 0 : 1;
}
