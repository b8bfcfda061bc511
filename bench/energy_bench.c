/* SPDX-License-Identifier: MIT */
/*
 * What does it cost to start a task that a budget pays for?
 *
 * Timed: starting and awaiting an empty child, in batches of 1000: with the implicit budget and
 *        capability of the profile; from an explicit pool; under an explicit spawn capability,
 *        which gives every child new units; under both; with a budget of its own. Also opening and
 *        ending a nursery: plain, with a pool, with a capability. (The work `spawn` shows the cost
 *        of the implicit checks, beside a library without them.)
 * Moves it: the record of the child's share (its purse). The lock of the pool's account, taken once
 *        to give and once to return. The table of capabilities, read without a lock.
 * Expect: 110 to 150 ns for a child with an explicit budget, 15 for an implicit one.
 */
#include "bench.h"

#include <janusrt/janus.h>

enum { CHILDREN = 1000, BATCHES = 100, SCOPES = 20000 };

static janus_cap spawn_cap;

static int64_t nothing(void *argument)
{
    (void)argument;
    return 0;
}

static void need(janus_status status)
{
    if (status >= 0) return;
    char text[400];
    (void)janus_explain(text, sizeof text);
    fprintf(stderr, "energy_bench: %s. %s\n", janus_status_text(status), text);
    exit(1);
}

static const janus_budget share = {100, 0, 0, 0, 0};
static const janus_budget pool = {CHILDREN * 200, 0, CHILDREN, 0, 0};

/* Runs batches in nurseries with `options`. Each child gets `each`. */
static double batches(const janus_nursery_options *options, const janus_spawn_options *each)
{
    uint64_t start = bench_now_ns();
    for (int b = 0; b < BATCHES; b++) {
        janus_nursery n;
        need(janus_nursery_open(&n, options));
        for (int i = 0; i < CHILDREN; i++) {
            if (each == NULL) need(janus_spawn(&n, nothing, NULL));
            if (each != NULL) need(janus_spawn_with(&n, nothing, NULL, each, NULL));
        }
        need(janus_nursery_end(&n, NULL));
    }
    return (double)(bench_now_ns() - start) / ((double)BATCHES * (double)CHILDREN);
}

static double run_implicit(void) { return batches(NULL, NULL); }
static double run_implicit_with(void) { return batches(NULL, JANUS_SPAWN_OPTIONS(.name = "a")); }
static double run_own(void) { return batches(NULL, JANUS_SPAWN_OPTIONS(.budget = &share)); }

static double run_pool(void)
{
    return batches(JANUS_NURSERY_OPTIONS(.budget = &pool), JANUS_SPAWN_OPTIONS(.budget = &share));
}

static double run_cap(void) { return batches(JANUS_NURSERY_OPTIONS(.spawn_cap = spawn_cap), NULL); }

static double run_both(void)
{
    return batches(JANUS_NURSERY_OPTIONS(.spawn_cap = spawn_cap, .budget = &pool), NULL);
}

static double scopes(const janus_nursery_options *options)
{
    uint64_t start = bench_now_ns();
    for (int i = 0; i < SCOPES; i++) {
        janus_nursery n;
        need(janus_nursery_open(&n, options));
        need(janus_nursery_end(&n, NULL));
    }
    return (double)(bench_now_ns() - start) / (double)SCOPES;
}

static double open_plain(void) { return scopes(NULL); }
static double open_pool(void) { return scopes(JANUS_NURSERY_OPTIONS(.budget = &pool)); }
static double open_cap(void) { return scopes(JANUS_NURSERY_OPTIONS(.spawn_cap = spawn_cap)); }

static struct contender children[] = {
    {"implicit", run_implicit, {0}},       {"implicit, with options", run_implicit_with, {0}},
    {"a budget of its own", run_own, {0}}, {"out of a pool", run_pool, {0}},
    {"under a capability", run_cap, {0}},  {"under a capability, out of a pool", run_both, {0}},
};

static struct contender nurseries[] = {
    {"a nursery", open_plain, {0}},
    {"a nursery with a pool", open_pool, {0}},
    {"a nursery with a capability", open_cap, {0}},
};

static int64_t program(void *argument)
{
    (void)argument;
    janus_authority       *root;
    const janus_cap_limits limits = {.spawn = {.max_tasks = 2 * CHILDREN, .task_budget = share}};
    need(janus_authority_take(NULL, &root));
    need(janus_cap_mint(root, 0,
                        JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_SPAWN, .rights = JANUS_RIGHTS_ALL,
                                        .limits = &limits),
                        &spawn_cap));
    bench_race("energy", children, sizeof children / sizeof children[0]);
    bench_race("energy", nurseries, sizeof nurseries / sizeof nurseries[0]);
    return 0;
}

int main(void)
{
    janus_budget most = janus_budget_scale(janus_budget_cluster_default(), 1000);
    janus_status status = janus_run(
        JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .max_budget = &most, .max_tasks = 2 * CHILDREN),
        program, NULL, NULL);
    return status == JANUS_OK ? 0 : 1;
}
