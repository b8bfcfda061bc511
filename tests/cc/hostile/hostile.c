/* SPDX-License-Identifier: MIT */
/*
 * Runs a hostile program as a task, on one worker. Built without the pass.
 *
 *     hostile         prints the names of all programs
 *     hostile NAME    prints what it cost and how it was stopped; exit 1 and a reason: it was not
 *
 * 1. With more ops than it needs, it returns a result and costs T ops.
 * 2. With HOSTILE_BUDGET ops it is exhausted. It has done no work that it did not pay for. With
 *    T - HOSTILE_BUDGET - 1 more ops, it is exhausted again, and with 1 more it returns the same
 *    result. A program that never ends is exhausted again after each recharge.
 * 3. While it runs for ever, a neighbour on the same worker computes. The worker's CPU time tells
 *    the neighbour's share. Then a cancel ends the program, and its defer has run.
 */
#include "hostile.h"

#include <janusrt/janus.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

volatile uint64_t hostile_ticks;
volatile int      hostile_zero, hostile_one = 1;

enum { SHARE_NS = 4000000 }; /* how long the neighbour computes */

static const uint64_t rich = UINT64_C(1) << 60;

#define EXPECT(good, ...)                                                                          \
    do {                                                                                           \
        if (!(good)) {                                                                             \
            printf("%s: " #good " is false: ", chosen->name);                                      \
            printf(__VA_ARGS__);                                                                   \
            puts("");                                                                              \
            fflush(stdout);                                                                        \
            _Exit(1);                                                                              \
        }                                                                                          \
    } while (0)

#define UNSIGNED(value) ((unsigned long long)(value))

static const struct hostile       *chosen;
static const struct hostile *const tables[] = {hostile_loops, hostile_calls, hostile_library,
                                               hostile_cxx};

static atomic_int finished, defers;
static uint64_t   result;

static void note_defer(void *argument)
{
    (void)argument;
    atomic_fetch_add(&defers, 1);
}

static int64_t once(void *argument)
{
    (void)argument;
    EXPECT(janus_defer(note_defer, NULL) == JANUS_OK, "no defer");
    result = chosen->run(chosen->n);
    atomic_store(&finished, 1);
    return 0;
}

static int64_t for_ever(void *argument)
{
    EXPECT(janus_defer(note_defer, NULL) == JANUS_OK, "no defer");
    for (;;) (void)chosen->run(chosen->n);
    return argument != NULL;
}

/* A nursery with ops for anybody, whose owner recharges. */
static void open_rich(janus_nursery *nursery)
{
    janus_budget pool = janus_budget_of(rich * 2, UINT64_C(1) << 40, 10, 0, 0);
    EXPECT(janus_nursery_open(
               nursery, JANUS_NURSERY_OPTIONS(.budget = &pool, .policy = JANUS_POLICY_WAIT_ALL,
                                              .exhaustion = JANUS_EXHAUSTION_SUPERVISE)) ==
               JANUS_OK,
           "no nursery");
}

static janus_task_id spawn(janus_nursery *nursery, janus_entry *entry, uint64_t ops)
{
    janus_task_id task = 0;
    janus_budget  budget = janus_budget_of(ops, 1 << 20, 0, 0, 0);
    EXPECT(janus_spawn_with(nursery, entry, NULL, JANUS_SPAWN_OPTIONS(.budget = &budget), &task) ==
               JANUS_OK,
           "no child");
    return task;
}

/* The ops that children of the nursery have spent, without the price of one spawn. */
static uint64_t spent(janus_nursery *nursery)
{
    janus_nursery_pool_info info = JANUS_NURSERY_POOL_INFO();
    EXPECT(janus_nursery_pool_inspect(nursery, &info) == JANUS_OK, "no pool");
    return info.spent.ops - 1;
}

static uint64_t measure(void)
{
    janus_nursery nursery;
    open_rich(&nursery);
    janus_task_id task = spawn(&nursery, once, rich);
    janus_status  status = janus_join(&nursery, task, NULL);
    EXPECT(status == JANUS_OK, "%s", janus_status_text(status));
    uint64_t ops = spent(&nursery);
    EXPECT(janus_nursery_end(&nursery, NULL) == JANUS_OK, "it failed");
    return ops;
}

struct stop {
    uint64_t left, beyond; /* ops that it did not use; work that it did not pay for */
};

/* Waits until the child is exhausted. */
static struct stop await_stop(janus_nursery *nursery, uint64_t granted)
{
    janus_exhausted child;
    janus_status    status = janus_nursery_wait_exhausted(nursery, &child);
    EXPECT(status == JANUS_OK, "%s", janus_status_text(status));
    EXPECT(child.lacks == JANUS_COMPONENT_OPS, "component %d", child.lacks);
    EXPECT(child.granted.ops == granted, "%llu of %llu", UNSIGNED(child.granted.ops),
           UNSIGNED(granted));
    EXPECT(!atomic_load(&finished), "it has ended");
    struct stop stop = {child.left.ops, 0};
    uint64_t    work = hostile_ticks * chosen->ops;
    if (work > granted - stop.left) stop.beyond = work - (granted - stop.left);
    EXPECT(stop.left < 1024, "%llu", UNSIGNED(stop.left));
    EXPECT(stop.beyond < 1024 || stop.beyond <= chosen->ops, "%llu", UNSIGNED(stop.beyond));
    return stop;
}

static void recharge(janus_nursery *nursery, janus_task_id task, uint64_t ops)
{
    janus_status status = janus_nursery_recharge(nursery, task, janus_budget_of(ops, 0, 0, 0, 0));
    EXPECT(status == JANUS_OK, "%s", janus_status_text(status));
}

static struct stop stop_at_budget(uint64_t all, uint64_t right)
{
    janus_nursery nursery;
    uint64_t      granted = HOSTILE_BUDGET;
    open_rich(&nursery);
    hostile_ticks = 0;
    janus_task_id task = spawn(&nursery, once, granted);
    struct stop   stop = await_stop(&nursery, granted);
    if (chosen->n == HOSTILE_ENDLESS) {
        for (uint64_t more = 1; more < 100000; more = more * 7 + 1) {
            recharge(&nursery, task, more);
            granted += more;
            (void)await_stop(&nursery, granted);
        }
        (void)janus_nursery_cancel(&nursery);
        JANUS_IGNORE(janus_nursery_end(&nursery, NULL));
        return stop;
    }
    if (all - granted > 1) {
        recharge(&nursery, task, all - granted - 1);
        (void)await_stop(&nursery, all - 1);
    }
    recharge(&nursery, task, 1);
    janus_status status = janus_join(&nursery, task, NULL);
    EXPECT(status == JANUS_OK, "%s", janus_status_text(status));
    EXPECT(spent(&nursery) == all, "%llu and %llu", UNSIGNED(spent(&nursery)), UNSIGNED(all));
    EXPECT(result == right, "%llu and %llu", UNSIGNED(result), UNSIGNED(right));
    EXPECT(janus_nursery_end(&nursery, NULL) == JANUS_OK, "it failed");
    return stop;
}

/* The share of a neighbour. */

static double share;

static uint64_t cpu_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * JANUS_SECONDS + (uint64_t)now.tv_nsec;
}

/* Repeats some microseconds of work and a check, and adds up the work. */
static int64_t neighbour(void *argument)
{
    uint64_t own = 0, from = 0, now = cpu_ns();
    (void)argument;
    for (int rounds = 0; own < SHARE_NS; rounds++) {
        uint64_t start = now;
        while (now - start < 5000) now = cpu_ns();
        own += now - start;
        janus_check_or_end(1);
        if (rounds == 100) { /* both have begun, and their slices are as long as they will be */
            from = now;
            own = 0;
        }
        now = cpu_ns();
    }
    share = (double)own / (double)(cpu_ns() - from);
    return 0;
}

/* The neighbour's share of its worker's time, beside `entry` or, if that is NULL, alone. */
static double share_beside(janus_entry *entry)
{
    janus_nursery nursery;
    open_rich(&nursery);
    atomic_store(&defers, 0);
    if (entry != NULL) (void)spawn(&nursery, entry, rich);
    janus_task_id other = spawn(&nursery, neighbour, rich / 2);
    janus_status  status = janus_join(&nursery, other, NULL);
    EXPECT(status == JANUS_OK, "%s", janus_status_text(status));
    (void)janus_nursery_cancel(&nursery);
    JANUS_IGNORE(janus_nursery_end(&nursery, NULL));
    EXPECT(atomic_load(&defers) == (entry != NULL), "%d", atomic_load(&defers));
    return share;
}

static int64_t first(void *argument)
{
    uint64_t    all = 0, right = 0;
    double      most = 0;
    struct stop stop;
    (void)argument;
    if (chosen->n != HOSTILE_ENDLESS) {
        all = measure();
        right = result;
        atomic_store(&finished, 0);
        EXPECT(all > HOSTILE_BUDGET, "it costs %llu ops", UNSIGNED(all));
    }
    stop = stop_at_budget(all, right);
    for (int i = 0; i < 60 && most < 0.42; i++) { /* a busy machine may disturb some */
        double now = share_beside(for_ever) / share_beside(NULL);
        if (now > most) most = now;
    }
    EXPECT(most >= 0.42, "%.3f", most);
    printf("%s ops %llu result %llu left %llu beyond %llu share %.3f\n", chosen->name,
           UNSIGNED(all), UNSIGNED(right), UNSIGNED(stop.left), UNSIGNED(stop.beyond), most);
    return 0;
}

int main(int count, char **arguments)
{
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        for (const struct hostile *at = tables[i]; at->name != NULL; at++) {
            if (count < 2)
                puts(at->name);
            else if (strcmp(at->name, arguments[1]) == 0)
                chosen = at;
        }
    }
    if (count < 2) return 0;
    if (chosen == NULL) {
        fprintf(stderr, "hostile: no program '%s'\n", arguments[1]);
        return 2;
    }
    janus_budget most = janus_budget_of(UINT64_C(1) << 62, UINT64_C(1) << 50, 1000, 1000, 1000);
    janus_status status = janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .max_budget = &most),
                                    first, NULL, NULL);
    if (status != JANUS_OK) {
        printf("%s: %s\n", chosen->name, janus_status_text(status));
        return 1;
    }
    return 0;
}
