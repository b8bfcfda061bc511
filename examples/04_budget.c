/* SPDX-License-Identifier: MIT */
/*
 * Budgets: two tasks use up the pool of their nursery and are ended, each by itself. A third task
 * is recharged by its owner each time it has used up its share.
 */
#include <janusrt/janus.h>
#include <stdio.h>

/* Never ends by itself. Each round costs one op. */
static int64_t spin(void *argument)
{
    (void)argument;
    while (janus_check() == JANUS_OK) continue;
    return JANUS_CANCELLED;
}

static int64_t hoard(void *argument)
{
    (void)argument;
    while (janus_alloc(1000) != NULL) continue;
    return -100;
}

/* Needs 25,000 ops. Its first share has 10,000. */
static int64_t work(void *argument)
{
    int *steps = argument;
    for (*steps = 0; *steps < 25000; ++*steps) {
        if (janus_check() != JANUS_OK) return JANUS_CANCELLED;
    }
    return 0;
}

/* Runs `child` in a nursery with a pool of its own. Nobody fills the pool again. */
static void contain(janus_entry *child, const char *name)
{
    const janus_budget   pool = JANUS_BUDGET(.ops = 20000, .memory = 65536, .spawn_count = 1);
    janus_nursery        n;
    janus_nursery_result result;
    janus_failure        failure;
    if (janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)) != JANUS_OK) return;
    if (janus_spawn(&n, child, NULL) != JANUS_OK) printf("%s: refused\n", name);
    JANUS_IGNORE(janus_nursery_await_with(&n, &result));
    if (janus_nursery_failures(&n, &failure, 1) == 1) {
        printf("%s: %s: %llu of %llu\n", name, janus_component_name(failure.lacks),
               (unsigned long long)failure.used, (unsigned long long)failure.limit);
    }
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
}

/* The owner decides each time the child has used up its share. */
static void supervise(void)
{
    const janus_budget pool = JANUS_BUDGET(.ops = 100000, .spawn_count = 1);
    janus_nursery      n;
    janus_exhausted    child;
    int                steps = 0, times = 0;
    if (janus_nursery_open(
            &n, JANUS_NURSERY_OPTIONS(.budget = &pool, .exhaustion = JANUS_EXHAUSTION_SUPERVISE))) {
        return;
    }
    if (janus_spawn(&n, work, &steps) != JANUS_OK) printf("work: refused\n");
    while (janus_nursery_wait_exhausted(&n, &child) == JANUS_OK) {
        JANUS_IGNORE(janus_nursery_recharge(&n, child.task, janus_budget_of(5000, 0, 0, 0, 0)));
        times++;
    }
    janus_status status = janus_nursery_end(&n, NULL);
    printf("work: %s, %d steps, recharged %d times\n", janus_status_name(status), steps, times);
}

static int64_t program(void *argument)
{
    (void)argument;
    contain(spin, "spin");
    contain(hoard, "hoard");
    supervise();
    return 0;
}

int main(void) { return janus_run(NULL, program, NULL, NULL) == JANUS_OK ? 0 : 1; }

/* Prints:
 * spin: ops: 19999 of 19999
 * hoard: memory: 65520 of 65536
 * work: JANUS_OK, 25000 steps, recharged 3 times
 */
