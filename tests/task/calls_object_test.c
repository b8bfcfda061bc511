/* SPDX-License-Identifier: MIT */
/*
 * Repeated calls on objects that are no tasks: fibers, tables of capabilities, logs, traces, pools
 * and schedulers. repeat.h explains the measurement.
 */
#include "repeat.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

struct things {
    janus_fiber_pool *pool;
    janus_fiber      *fiber;
    janus_cap_table  *table, *logged;
    janus_authority  *authority, *logged_authority;
    janus_cap         cap, forged;
    janus_audit      *audit;
    janus_trace      *trace;
    janus_scheduler  *scheduler;
    janus_nursery     nursery;
    int               null;
    char              text[256];
};

static const janus_cap_limits limits = {.spawn = {.max_tasks = 1}};
static const janus_cap_grant  grant = {.struct_bytes = sizeof grant,
                                       .kind = JANUS_CAP_KIND_SPAWN,
                                       .rights = JANUS_RIGHTS_ALL,
                                       .limits = &limits,
                                       .delegation_depth = 3};
enum { HOLDER = 7 };

static bool take_line(void *argument, const char *line, size_t bytes)
{
    (void)argument, (void)line, (void)bytes;
    return true;
}

static int64_t suspend_for_ever(void *argument)
{
    while (argument == NULL) (void)!janus_fiber_suspend(NULL, NULL);
    return 0;
}

/* Fibers. */
CALL(fiber_resume, janus_outcome outcome; (void)!janus_fiber_resume(t->fiber, NULL, &outcome))
CALL(fiber_resume_invalid, janus_outcome outcome; (void)!janus_fiber_resume(NULL, NULL, &outcome))
CALL(
    fiber_life, janus_fiber *fiber; janus_outcome outcome;
    if (janus_fiber_create(t->pool, repeat_quickly, NULL, NULL, &fiber) == JANUS_OK) {
        (void)!janus_fiber_resume(fiber, NULL, &outcome);
        (void)janus_fiber_destroy(fiber);
    })
CALL(fiber_stack, janus_fiber_stack_info info = JANUS_FIBER_STACK_INFO();
     (void)!janus_fiber_stack_inspect(t->fiber, &info))
CALL(pool_life, janus_fiber_pool *pool;
     if (janus_fiber_pool_create(NULL, &pool) == JANUS_OK)(void) janus_fiber_pool_destroy(pool))
CALL(pool_stats, janus_fiber_pool_info stats = JANUS_FIBER_POOL_INFO();
     (void)!janus_fiber_pool_inspect(t->pool, &stats))
CALL(pool_trim, (void)janus_fiber_pool_trim(t->pool, 0))
CALL(guard_available, (void)janus_guard_available(JANUS_GUARD_MARKER))

/* Capabilities. */
CALL(cap_table_life, janus_cap_table *table; janus_authority * authority;
     if (janus_cap_table_create(NULL, &table, &authority) == JANUS_OK)(void)
         janus_cap_table_destroy(table, authority))
CALL(cap_mint_release, janus_cap cap;
     if (janus_cap_mint_in(t->table, t->authority, HOLDER, &grant, &cap) == JANUS_OK)(void)
         janus_cap_release_in(t->table, cap, HOLDER))
CALL(cap_attenuate, janus_cap cap;
     if (janus_cap_attenuate_in(t->table, t->cap, HOLDER, &grant, &cap) ==
         JANUS_OK)(void) !janus_cap_revoke_in(t->table, cap, t->cap, HOLDER))
CALL(cap_delegate, janus_cap cap;
     if (janus_cap_delegate_in(t->table, t->cap, HOLDER, HOLDER + 1, NULL, &cap) ==
         JANUS_OK)(void) !janus_authority_revoke(t->table, t->authority, cap))
CALL(cap_delegate_forged, janus_cap cap;
     (void)!janus_cap_delegate_in(t->table, t->forged, HOLDER, HOLDER + 1, NULL, &cap))
CALL(cap_check_logged,
     (void)!janus_cap_check_in(t->logged, t->forged, JANUS_CAP_KIND_SPAWN, 1, HOLDER))
CALL(cap_read, janus_cap_info info = JANUS_CAP_INFO();
     (void)!janus_cap_inspect_in(t->table, t->cap, HOLDER, &info))
CALL(cap_parse, janus_net_limits range;
     (void)!janus_net_limits_parse("[2001:db8::]/32:8000-8999", 1, &range))
CALL(cap_revoke_forged, (void)!janus_cap_revoke_in(t->table, t->forged, t->forged, HOLDER))
CALL(cap_stats, janus_cap_table_info stats = JANUS_CAP_TABLE_INFO();
     (void)!janus_cap_table_inspect(t->table, &stats))
CALL(own_mint_refused, janus_cap cap; (void)!janus_cap_mint(NULL, 0, &grant, &cap))
CALL(own_attenuate_forged, janus_cap cap; (void)!janus_cap_attenuate(t->forged, &grant, &cap))
CALL(own_delegate_forged, janus_cap cap; (void)!janus_cap_delegate(t->forged, 5, NULL, &cap))
CALL(own_revoke_forged, (void)!janus_cap_revoke(t->forged, t->forged))
CALL(authority_take_refused, janus_authority *authority;
     (void)!janus_authority_take(NULL, &authority))

/* Logs and traces. */
CALL(audit_life, janus_audit *audit;
     if (janus_audit_create(JANUS_AUDIT_OPTIONS(.sink = take_line), &audit) == JANUS_OK)(void)
         janus_audit_destroy(audit))
CALL(audit_drain, (void)!janus_audit_drain(t->audit))
CALL(audit_stats, janus_audit_info stats = JANUS_AUDIT_INFO();
     (void)!janus_audit_inspect(t->audit, &stats))
CALL(trace_life, janus_trace *trace;
     if (janus_trace_create(NULL, &trace) == JANUS_OK)(void) janus_trace_destroy(trace))
CALL(trace_write, (void)!janus_trace_write(t->trace, JANUS_TRACE_FORMAT_TEXT, t->null))
CALL(trace_read, janus_trace *trace; (void)!janus_trace_read(t->null, &trace))
CALL(trace_inspect, janus_trace_info info = JANUS_TRACE_INFO();
     (void)!janus_trace_inspect(t->trace, &info))
CALL(budget_text, janus_budget budget = janus_budget_default();
     (void)janus_budget_text(&budget, t->text, sizeof t->text))
CALL(failure_text, janus_failure failure = {.task = 5};
     (void)janus_failure_text(&t->nursery, &failure, t->text, sizeof t->text))

CALL(panic_text, janus_panic_detail panic = {.kind = JANUS_PANIC_KIND_EXPLICIT};
     (void)janus_panic_text(&panic, t->text, sizeof t->text))

/* Schedulers. */
CALL(scheduler_current, (void)janus_scheduler_current())
CALL(scheduler_dump, (void)janus_scheduler_dump(t->scheduler, t->null))
CALL(scheduler_dump_on, (void)!janus_scheduler_dump_on(t->scheduler, -1))
CALL(scheduler_stats, janus_worker_info stats = JANUS_WORKER_INFO();
     (void)!janus_worker_inspect(t->scheduler, JANUS_ALL_WORKERS, &stats))
CALL(scheduler_stacks, janus_scheduler_stacks_info stats = JANUS_SCHEDULER_STACKS_INFO();
     (void)!janus_scheduler_stacks_inspect(t->scheduler, &stats))
CALL(scheduler_trim, (void)janus_scheduler_trim(t->scheduler, 0))
CALL(scheduler_cap_stats, janus_cap_table_info stats = JANUS_CAP_TABLE_INFO();
     (void)!janus_scheduler_caps_inspect(t->scheduler, &stats))
CALL(worker_inspect, janus_worker_info info = JANUS_WORKER_INFO();
     (void)!janus_worker_inspect(t->scheduler, 0, &info))
CALL(
    scheduler_life, janus_scheduler *scheduler;
    if (janus_scheduler_create_with(JANUS_SCHEDULER_OPTIONS(.worker_count = 1), &scheduler) ==
        JANUS_OK) {
        (void)!janus_scheduler_start(scheduler);
        (void)!janus_scheduler_stop(scheduler);
        (void)janus_scheduler_destroy(scheduler);
    })
CALL(scheduler_stop_refused, (void)!janus_scheduler_stop(t->scheduler))
CALL(scheduler_shutdown,
     janus_scheduler *made = janus_scheduler_create((janus_scheduler_config){.worker_count = 1});
     if (made != NULL)(void) janus_scheduler_shutdown(made))
CALL(run_refused, (void)!janus_run(NULL, NULL, NULL, NULL))
CALL(run_with_refused, janus_run_result result = JANUS_RUN_RESULT();
     (void)!janus_run_with(NULL, NULL, NULL, &result))
CALL(explore_refused, (void)!janus_explore(NULL, repeat_quickly, NULL, NULL))
CALL(nursery_create_in, (void)janus_nursery_create_in(t->scheduler))

static const struct repeat_call calls[] = {
    ROW(fiber_resume),
    ROW(fiber_resume_invalid),
    ROW(fiber_life),
    ROW(fiber_stack),
    ROW(pool_life),
    ROW(pool_stats),
    ROW(pool_trim),
    ROW(guard_available),
    ROW(cap_table_life),
    ROW(cap_mint_release),
    ROW(cap_attenuate),
    ROW(cap_delegate),
    ROW(cap_delegate_forged),
    ROW(cap_check_logged),
    ROW(cap_read),
    ROW(cap_parse),
    ROW(cap_revoke_forged),
    ROW(cap_stats),
    ROW(own_mint_refused),
    ROW(own_attenuate_forged),
    ROW(own_delegate_forged),
    ROW(own_revoke_forged),
    ROW(authority_take_refused),
    ROW(audit_life),
    ROW(audit_drain),
    ROW(audit_stats),
    ROW(trace_life),
    ROW(trace_write),
    ROW(trace_read),
    ROW(trace_inspect),
    ROW(budget_text),
    ROW(failure_text),
    ROW(panic_text),
    ROW(scheduler_current),
    ROW(scheduler_dump),
    ROW(scheduler_dump_on),
    ROW(scheduler_stats),
    ROW(scheduler_stacks),
    ROW(scheduler_trim),
    ROW(scheduler_cap_stats),
    ROW(worker_inspect),
    ROW(scheduler_life),
    ROW(scheduler_stop_refused),
    ROW(scheduler_shutdown),
    ROW(run_refused),
    ROW(run_with_refused),
    ROW(explore_refused),
    ROW(nursery_create_in),
};

static void open_things(struct things *things)
{
    janus_outcome outcome;
    things->scheduler = janus_scheduler_current();
    things->null = open("/dev/null", O_RDWR | O_CLOEXEC);
    CHECK(things->null >= 0);
    CHECK_EQ(janus_nursery_open(&things->nursery, NULL), JANUS_OK);
    CHECK_EQ(janus_fiber_pool_create(NULL, &things->pool), JANUS_OK);
    CHECK_EQ(janus_fiber_create(things->pool, suspend_for_ever, NULL, NULL, &things->fiber),
             JANUS_OK);
    CHECK_EQ(janus_fiber_resume(things->fiber, NULL, &outcome), JANUS_OK);
    CHECK_EQ(janus_audit_create(JANUS_AUDIT_OPTIONS(.sink = take_line), &things->audit), JANUS_OK);
    CHECK_EQ(janus_cap_table_create(NULL, &things->table, &things->authority), JANUS_OK);
    CHECK_EQ(janus_cap_table_create(JANUS_CAP_TABLE_OPTIONS(.audit = things->audit),
                                    &things->logged, &things->logged_authority),
             JANUS_OK);
    CHECK_EQ(janus_cap_mint_in(things->table, things->authority, HOLDER, &grant, &things->cap),
             JANUS_OK);
    CHECK_EQ(janus_trace_create(NULL, &things->trace), JANUS_OK);
    memset(&things->forged, 7, sizeof things->forged);
}

static void close_things(struct things *things)
{
    CHECK_EQ(janus_trace_destroy(things->trace), JANUS_OK);
    CHECK_EQ(janus_cap_table_destroy(things->logged, things->logged_authority), JANUS_OK);
    CHECK_EQ(janus_cap_table_destroy(things->table, things->authority), JANUS_OK);
    CHECK_EQ(janus_audit_destroy(things->audit), JANUS_OK);
    CHECK_EQ(janus_fiber_destroy(things->fiber), JANUS_OK);
    CHECK_EQ(janus_fiber_pool_destroy(things->pool), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&things->nursery, NULL), JANUS_OK);
    CHECK_EQ(close(things->null), 0);
}

TEST("beside a task that repeats any call on channels, tokens or other objects, a neighbour has "
     "half of the worker")
{
    static const struct repeat_kit kit = {open_things, close_things};
    struct things                  things = {.text = ""};
    RIG_REAL("shares of real time are compared");
    if (RIG_SLOW) SKIP("calls take other times under sanitizers and emulation");
    CHECK_EQ(repeat_all(calls, sizeof calls / sizeof *calls, &kit, &things), 0);
}
