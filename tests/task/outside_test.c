/* SPDX-License-Identifier: MIT */
/*
 * Objects that no task's limits bound: schedulers, pools of fibers, tables, logs, traces. Only
 * plain threads, unrestricted tasks and holders of executor.configure make them.
 */
#include "caps.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>

static janus_scheduler *running;
static int              nowhere;

/* Tries everything; each call must return the expected status. */
static int64_t make_all(void *argument)
{
    janus_status      expected = *(const janus_status *)argument;
    janus_scheduler  *scheduler = NULL;
    janus_fiber_pool *pool = NULL;
    janus_cap_table  *table = NULL;
    janus_authority  *root = NULL;
    janus_audit      *audit = NULL;
    janus_trace      *trace = NULL;
    CHECK_EQ(janus_scheduler_create_with(NULL, &scheduler), expected);
    CHECK_EQ(janus_fiber_pool_create(NULL, &pool), expected);
    CHECK_EQ(janus_cap_table_create(NULL, &table, &root), expected);
    CHECK_EQ(janus_audit_create(JANUS_AUDIT_OPTIONS(.fd = nowhere), &audit), expected);
    CHECK_EQ(janus_trace_create(NULL, &trace), expected);
    if (expected != JANUS_OK) {
        janus_scheduler_config config = {.worker_count = 1};
        CHECK(janus_scheduler_create(config) == NULL);
        CHECK(scheduler == NULL && pool == NULL && table == NULL && audit == NULL && trace == NULL);
        CHECK_EQ(janus_scheduler_dump_on(running, SIGUSR1), expected);
        return 0;
    }
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    CHECK_EQ(janus_fiber_pool_destroy(pool), JANUS_OK);
    CHECK_EQ(janus_cap_table_destroy(table, root), JANUS_OK);
    CHECK_EQ(janus_audit_destroy(audit), JANUS_OK);
    (void)janus_trace_destroy(trace);
    return 0;
}

static const janus_status may = JANUS_OK, may_not = JANUS_NO_EXECUTOR_CAP;

static int64_t by_blocking(void *argument)
{
    int64_t result = -1;
    CHECK_EQ(janus_blocking(make_all, argument, &result), JANUS_OK);
    return result;
}

static int64_t open_root(void *argument)
{
    janus_nursery n;
    (void)argument;
    return janus_nursery_open_in(running, &n, NULL);
}

static int64_t root_by_blocking(void *argument)
{
    int64_t result = 0;
    (void)argument;
    CHECK_EQ(janus_blocking(open_root, NULL, &result), JANUS_OK);
    CHECK_EQ(result, JANUS_NO_EXECUTOR_CAP);
    return 0;
}

/* Runs each of three tasks, one after another, in a nursery with these options. */
static void in_nursery(const janus_nursery_options *options, const janus_status *expected)
{
    static janus_entry *const entries[] = {make_all, by_blocking, root_by_blocking};
    for (int i = 0; i < (expected == &may ? 2 : 3); i++) {
        janus_nursery n;
        CHECK_EQ(janus_nursery_open(&n, options), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, entries[i], (void *)(uintptr_t)expected), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    }
}

static janus_cap executor_cap(const janus_authority *root, uint32_t rights)
{
    janus_cap_limits limits = {
        .executor = {.allowed_backends = JANUS_BACKEND_SET(JANUS_BACKEND_COOPERATIVE)}};
    return caps_mint(root, JANUS_CAP_KIND_EXECUTOR, rights, &limits);
}

/* Ends the nursery around its parallel call, and clears its memory. The calls that follow make the
 * worker divide the outer one. */
static int64_t forget_around(void *argument)
{
    janus_scheduler *scheduler = NULL;
    janus_shield_end();
    CHECK_EQ(janus_nursery_end(argument, NULL), JANUS_OK);
    memset(argument, 0, sizeof(janus_nursery));
    for (int i = 0; i < 200; i++) {
        CHECK_EQ(janus_both(nothing, NULL, nothing, NULL), 0);
        CHECK_EQ(janus_scheduler_create_with(NULL, &scheduler), JANUS_CAP_RIGHT);
    }
    return 0;
}

static int64_t in_parallel_call(void *argument)
{
    janus_nursery around;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&around, NULL), JANUS_OK);
    janus_shield_begin(); /* the call is not divided before the nursery has ended */
    CHECK_EQ(janus_both(forget_around, &around, nothing, NULL), 0);
    return 0;
}

static int64_t try_all(void *argument)
{
    janus_authority   *root = argument;
    const janus_budget pool = {50000, 1 << 20, 2, 0, 10};
    janus_cap          all = executor_cap(root, JANUS_RIGHTS_ALL);
    janus_cap          select = executor_cap(root, JANUS_RIGHT_EXECUTOR_SELECT);
    in_nursery(NULL, &may);
    in_nursery(JANUS_NURSERY_OPTIONS(.budget = &pool), &may_not);
    in_nursery(JANUS_NURSERY_OPTIONS(.spawn_cap = caps_spawn(root, 5)), &may_not);
    in_nursery(JANUS_NURSERY_OPTIONS(.budget = &pool, .executor_cap = all), &may);
    static const janus_status lacks_right = JANUS_CAP_RIGHT;
    janus_nursery             n;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.executor_cap = select)), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, make_all, (void *)(uintptr_t)&lacks_right), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, in_parallel_call, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("only unrestricted tasks and holders of executor.configure make objects without limits")
{
    nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (uint32_t workers = 1; workers <= 2; workers++) {
        janus_authority *root;
        janus_nursery    n;
        CHECK_EQ(
            janus_scheduler_create_with(JANUS_SCHEDULER_OPTIONS(.worker_count = workers), &running),
            JANUS_OK);
        CHECK_EQ(janus_authority_take(running, &root), JANUS_OK);
        CHECK_EQ(janus_scheduler_start(running), JANUS_OK);
        CHECK_EQ(janus_nursery_open_in(running, &n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, try_all, root), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_scheduler_destroy(running), JANUS_OK);
    }
    (void)close(nowhere);
}
