/* SPDX-License-Identifier: MIT */
/*
 * Calls that pay nothing and end no turn, because they are too cheap to matter. A loop of them is
 * like native code. Each row makes one or more of them, and must take little more CPU time than a
 * look at the clock. tools/costs.py reads the rows.
 */
#include "repeat.h"

struct things {
    janus_token      *token;
    janus_fiber_pool *pool;
    janus_fiber      *fiber;
    janus_cap_table  *table;
    janus_authority  *authority;
    janus_cap         cap;
    janus_nursery     nursery;
    janus_mutex       mutex;
    janus_once        once;
    janus_semaphore   semaphore;
    janus_condition   condition;
    janus_event       event;
    janus_group       group;
    janus_broadcast   broadcast;
    janus_rwlock      lock;
    janus_barrier     barrier;
    janus_waitpoint   point;
    janus_async       call;
    janus_scheduler  *scheduler;
    volatile size_t   sink;
};

enum { HOLDER = 7, TIMES = 500, ROUNDS = 9, MOST_NS = 250 };

/* Look-ups. */
CALL(texts, t->sink = (size_t)janus_status_name(JANUS_OK);
     t->sink = (size_t)janus_status_text(JANUS_OK);
     t->sink = (size_t)janus_cancel_reason_text(JANUS_CANCEL_REASON_NONE);
     t->sink = (size_t)janus_result_kind_text(JANUS_RESULT_KIND_SUCCESS);
     t->sink = (size_t)janus_explain_as(JANUS_INVALID, "call", "it is a test");
     t->sink = (size_t)janus_build_text(); t->sink = janus_version())
CALL(names, t->sink = (size_t)janus_component_name(JANUS_COMPONENT_OPS);
     t->sink = (size_t)janus_cap_kind_name(JANUS_CAP_KIND_SPAWN);
     t->sink = (size_t)janus_right_name(1);
     t->sink = (size_t)janus_backend_name(JANUS_BACKEND_COOPERATIVE);
     t->sink = (size_t)janus_guard_name(JANUS_GUARD_AUTO);
     t->sink = (size_t)janus_task_state_name(JANUS_TASK_STATE_READY);
     t->sink = (size_t)janus_nursery_state_name(JANUS_NURSERY_STATE_OPEN);
     t->sink = (size_t)janus_fiber_state_name(JANUS_FIBER_STATE_NEW);
     t->sink = (size_t)janus_profile_name(JANUS_PROFILE_SERVICE))
CALL(actor_names, t->sink = (size_t)janus_actor_state_name(JANUS_ACTOR_STATE_RUNNING);
     t->sink = (size_t)janus_end_kind_name(JANUS_END_KIND_NORMAL);
     t->sink = janus_letter_is_call(NULL))
CALL(profiles, t->sink = (size_t)janus_profile_limits(JANUS_PROFILE_SERVICE);
     t->sink = janus_profile_pool(JANUS_PROFILE_SERVICE).ops;
     t->sink = janus_profile_yield_interval(JANUS_PROFILE_SERVICE, 0);
     t->sink = janus_profile_stack_bytes(JANUS_PROFILE_SERVICE);
     t->sink = (size_t)janus_profile_cap_defaults(JANUS_PROFILE_SERVICE);
     t->sink = janus_cap_kind_rights(JANUS_CAP_KIND_SPAWN))
CALL(budgets, janus_budget budget = janus_budget_default();
     const janus_budget_limits limits = {.cpu_budget = 1};
     t->sink = janus_budget_get(&budget, JANUS_COMPONENT_OPS);
     JANUS_IGNORE(janus_budget_limits_clamp(&budget, &limits, &budget));
     t->sink = janus_budget_limits_to_budget(&limits).ops)

/* Questions of a task about itself. */
CALL(counted_code, janus_counted_code())
CALL(self, t->sink = janus_in_task(); t->sink = (size_t)janus_task_current();
     t->sink = janus_task_current_id(); t->sink = janus_task_id_of(janus_task_current());
     t->sink = janus_task_is_finished(JANUS_TASK_STATE_COMPLETED);
     t->sink = (size_t)janus_task_local(); t->sink = janus_yield_interval();
     t->sink = (size_t)janus_fiber_current())
CALL(now, t->sink = janus_now_ns())
CALL(actor_current, janus_actor self; t->sink = (size_t)janus_actor_current(&self))
CALL(point, janus_point())
CALL(hold_pass, CHECK(!janus_hold_pass()))
CALL(batch_begin, janus_batch batch = janus_batch_begin(); t->sink = batch.interval)
CALL(scheduler_reads, t->sink = janus_scheduler_worker_count(t->scheduler))
CALL(trace_hash, t->sink = janus_scheduler_trace_hash(t->scheduler))
CALL(nursery_deadline, t->sink = janus_nursery_deadline(&t->nursery))

/* Questions about others' objects. */
CALL(token_reads, t->sink = janus_token_is_cancelled(t->token);
     t->sink = (size_t)janus_token_check(t->token); t->sink = janus_token_reason(t->token))
CALL(token_retain, janus_token_release(janus_token_retain(t->token)))
CALL(fiber_reads, t->sink = janus_fiber_id(t->fiber); t->sink = (size_t)janus_fiber_name(t->fiber);
     t->sink = janus_fiber_state_of(t->fiber))
CALL(fiber_suspend_outside, (void)!janus_fiber_suspend(NULL, NULL))
CALL(cap_check, (void)!janus_cap_check_in(t->table, t->cap, JANUS_CAP_KIND_SPAWN, 1, HOLDER))
CALL(async_task, t->sink = janus_async_task(&t->call))
CALL(sync_reads, t->sink = janus_event_is_set(&t->event);
     t->sink = janus_semaphore_permits(&t->semaphore);
     t->sink = janus_broadcast_count(&t->broadcast); t->sink = janus_mutex_is_abandoned(&t->mutex);
     t->sink = janus_rwlock_is_abandoned(&t->lock))
CALL(sync_inits, janus_mutex_init(&t->mutex, ""); janus_mutex_init_recursive(&t->mutex, "");
     janus_once_init(&t->once, ""); janus_semaphore_init(&t->semaphore, 1, JANUS_WAKER_ANYBODY, "");
     janus_condition_init(&t->condition, JANUS_WAKER_ANYBODY, "");
     janus_event_init(&t->event, JANUS_WAKER_ANYBODY, "");
     janus_group_init(&t->group, JANUS_WAKER_ANYBODY, "");
     janus_broadcast_init(&t->broadcast, JANUS_WAKER_ANYBODY, "");
     (void)!janus_rwlock_init(&t->lock, "");
     (void)!janus_barrier_init(&t->barrier, 2, JANUS_WAKER_ANYBODY, "");
     janus_waitpoint_init(&t->point, JANUS_WAKER_ANYBODY))
CALL(cases, janus_select_case made = janus_case_event(&t->event); t->sink = made.deadline_ns;
     made = janus_case_group(&t->group); t->sink = made.deadline_ns)
CALL(free_nothing, janus_free(NULL))

static const struct repeat_call calls[] = {
    ROW(texts),
    ROW(names),
    ROW(actor_names),
    ROW(profiles),
    ROW(budgets),
    ROW(counted_code),
    ROW(self),
    ROW(now),
    ROW(actor_current),
    ROW(point),
    ROW(hold_pass),
    ROW(batch_begin),
    ROW(scheduler_reads),
    ROW(trace_hash),
    ROW(nursery_deadline),
    ROW(token_reads),
    ROW(token_retain),
    ROW(fiber_reads),
    ROW(fiber_suspend_outside),
    ROW(cap_check),
    ROW(async_task),
    ROW(sync_reads),
    ROW(sync_inits),
    ROW(cases),
    ROW(free_nothing),
};

static void open_things(struct things *things)
{
    static const janus_cap_limits limits = {.spawn = {.max_tasks = 1}};
    things->scheduler = janus_scheduler_current();
    CHECK_EQ(janus_nursery_open(&things->nursery, NULL), JANUS_OK);
    CHECK_EQ(janus_token_create(&things->token), JANUS_OK);
    CHECK_EQ(janus_fiber_pool_create(NULL, &things->pool), JANUS_OK);
    CHECK_EQ(janus_fiber_create(things->pool, repeat_quickly, NULL, NULL, &things->fiber),
             JANUS_OK);
    CHECK_EQ(janus_cap_table_create(NULL, &things->table, &things->authority), JANUS_OK);
    CHECK_EQ(janus_cap_mint_in(things->table, things->authority, HOLDER,
                               JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_SPAWN,
                                               .rights = JANUS_RIGHTS_ALL, .limits = &limits),
                               &things->cap),
             JANUS_OK);
}

static void close_things(struct things *things)
{
    CHECK_EQ(janus_cap_table_destroy(things->table, things->authority), JANUS_OK);
    CHECK_EQ(janus_fiber_destroy(things->fiber), JANUS_OK);
    CHECK_EQ(janus_fiber_pool_destroy(things->pool), JANUS_OK);
    janus_token_release(things->token);
    CHECK_EQ(janus_nursery_end(&things->nursery, NULL), JANUS_OK);
}

/* The least CPU time of one call, so that disturbed rounds do not count. */
static uint64_t time_of(const struct repeat_call *call, struct things *things)
{
    uint64_t least = UINT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t began = beside_cpu_ns();
        for (int i = 0; i < TIMES; i++) call->make(things);
        uint64_t took = (beside_cpu_ns() - began) / TIMES;
        if (took < least) least = took;
    }
    return least;
}

static int64_t time_all(void *argument)
{
    int          *dear = argument;
    struct things things = {.sink = 0};
    open_things(&things);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        uint64_t took = time_of(&calls[i], &things);
        printf("# %llu ns %s\n", (unsigned long long)took, calls[i].name);
        if (took > MOST_NS) *dear += 1;
    }
    close_things(&things);
    return 0;
}

TEST("a call that pays nothing takes less than a quarter of a microsecond")
{
    int dear = 0;
    RIG_REAL("CPU time is measured");
    if (RIG_SLOW) SKIP("calls take other times under sanitizers and emulation");
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
    rig_do(scheduler, time_all, &dear);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    CHECK_EQ(dear, 0);
}
