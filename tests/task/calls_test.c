/* SPDX-License-Identifier: MIT */
/*
 * Calls that take no op. A task that repeats one of them, and never checks, leaves half of the CPU
 * to its neighbour. The shares are of the worker's CPU time, so that the machine's other work
 * counts little.
 */
#include "repeat.h"

/* What the calls are made with. */
struct things {
    janus_nursery   nursery, full;
    janus_token    *token, *cancelled;
    janus_channel   channel, closed;
    janus_mutex     free, held;
    janus_event     event;
    janus_condition condition;
    janus_broadcast broadcast;
    janus_semaphore semaphore, empty;
    janus_group     group;
    janus_task_id   neighbour;
    janus_cap       forged;
    janus_batch     batch;
    char            text[256];
};

static int64_t answer(void *argument, void *value)
{
    (void)value;
    return argument == NULL ? 0 : 1;
}

static int64_t body(void *argument, uint64_t begin, uint64_t end)
{
    (void)argument;
    return begin < end ? 0 : -1;
}

static int64_t fold(void *argument, uint64_t begin, uint64_t end, void *value)
{
    (void)argument;
    *(uint64_t *)value += end - begin;
    return 0;
}

static int64_t combine(void *argument, void *value, const void *right)
{
    (void)argument;
    *(uint64_t *)value += *(const uint64_t *)right;
    return 0;
}

/* Budgets and memory. */
CALL(failing_try_charge, (void)!janus_try_charge(janus_budget_of(0, UINT64_MAX, 0, 0, 0), NULL))
CALL(budget_get_current, (void)janus_budget_get_current())
CALL(failing_try_alloc, void *block; (void)!janus_try_alloc(SIZE_MAX / 4, &block))
CALL(alloc_small, janus_free(janus_alloc(64)))
CALL(alloc_large, janus_free(janus_alloc(500000)))
CALL(detach_discard, janus_discard(janus_detach(janus_alloc(64))))
CALL(memory_read, janus_memory_info info = JANUS_MEMORY_INFO(); (void)!janus_memory_inspect(&info))
CALL(recharge_self, (void)!janus_budget_recharge_current(janus_budget_of(1, 0, 0, 0, 0), NULL))
CALL(failing_defer, (void)!janus_defer(NULL, NULL))
CALL(defer_undefer,
     if (janus_defer(repeat_ignore, t) == JANUS_OK)(void) !janus_undefer(repeat_ignore, t))

/* Cancellation. */
CALL(cancelled, (void)janus_cancelled())
CALL(cancelled_reason, (void)janus_cancelled_reason())
CALL(shield, janus_shield_begin(); janus_shield_end())
CALL(shield_until, janus_shield s; janus_shield_begin_until(&s, UINT64_MAX); janus_shield_end())
CALL(token_create, janus_token *made;
     if (janus_token_create(&made) == JANUS_OK) janus_token_release(made))
CALL(token_child, janus_token *made;
     if (janus_token_create_child(t->token, &made) == JANUS_OK) janus_token_release(made))
CALL(token_hook, janus_token_handle h;
     if (janus_token_on_cancel(t->token, repeat_ignore, NULL, &h) == JANUS_OK)(void)
         janus_token_remove(t->token, h))
CALL(token_late_hook, (void)!janus_token_on_cancel(t->cancelled, repeat_ignore, NULL, NULL))
CALL(token_cancel_again, (void)janus_token_cancel(t->cancelled, JANUS_CANCEL_REASON_EXPLICIT))
CALL(token_remove_stale, (void)janus_token_remove(t->token, 77))
CALL(nursery_token, janus_token *made;
     if (janus_nursery_token(&t->nursery, &made) == JANUS_OK) janus_token_release(made))

/* Nurseries and children. */
CALL(nursery_plain, janus_nursery n;
     if (janus_nursery_open(&n, NULL) == JANUS_OK) JANUS_IGNORE(janus_nursery_end(&n, NULL)))
CALL(nursery_deadline, janus_nursery n;
     if (janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.deadline_ns = UINT64_C(1) << 60)) ==
         JANUS_OK) JANUS_IGNORE(janus_nursery_end(&n, NULL)))
CALL(nursery_pool, janus_nursery n; janus_budget pool = janus_budget_of(1, 0, 0, 0, 0);
     if (janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)) == JANUS_OK)
         JANUS_IGNORE(janus_nursery_end(&n, NULL)))
CALL(refused_spawn, (void)!janus_spawn(&t->full, repeat_quickly, NULL))
CALL(invalid_spawn, (void)!janus_spawn(NULL, repeat_quickly, NULL))
CALL(failing_join, (void)!janus_join(&t->nursery, 12345, NULL))
CALL(nursery_state, (void)janus_nursery_state_of(&t->nursery))
CALL(nursery_is_cancelled, (void)janus_nursery_is_cancelled(&t->nursery))
CALL(nursery_set_deadline, (void)!janus_nursery_set_deadline(&t->nursery, UINT64_C(1) << 60))
CALL(nursery_failures, janus_failure failure;
     (void)janus_nursery_failures(&t->nursery, &failure, 1))
CALL(exhausted_poll, janus_exhausted out; (void)janus_nursery_poll_exhausted(&t->nursery, &out))
CALL(blocking, (void)!janus_blocking(repeat_quickly, NULL, NULL))

/* Looking at things. */
CALL(inspect_self, janus_task_info info = JANUS_TASK_INFO();
     (void)!janus_task_inspect_current(&info))
CALL(inspect_child, janus_task_info info = JANUS_TASK_INFO();
     (void)!janus_task_inspect(&t->nursery, 12345, &info))
CALL(inspect_nursery, janus_nursery_info info = JANUS_NURSERY_INFO();
     (void)!janus_nursery_inspect(&t->nursery, &info))
CALL(context_read, janus_context_info info = JANUS_CONTEXT_INFO();
     (void)!janus_context_inspect(&info))
CALL(explain, (void)janus_explain(t->text, sizeof t->text))
CALL(explain_failure, (void)!janus_try_charge(janus_budget_of(0, UINT64_MAX, 0, 0, 0), NULL);
     (void)janus_explain(t->text, sizeof t->text))
CALL(channel_inspect, janus_channel_info info = JANUS_CHANNEL_INFO();
     (void)!janus_channel_inspect(t->channel, &info))

/* Channels and capabilities. */
CALL(channel_life, janus_channel c;
     if (janus_channel_create(8, 4, NULL, &c) == JANUS_OK)(void) janus_channel_destroy(c))
CALL(channel_attenuate, janus_channel c;
     (void)!janus_channel_attenuate(t->channel, JANUS_CHANNEL_MAY_SEND, &c))
CALL(channel_forged, janus_channel c = {{1, 2}}; (void)janus_channel_close(c))
CALL(channel_close_again, (void)janus_channel_close(t->closed))
CALL(channel_closed_recv, uint64_t value; (void)!janus_channel_recv(t->closed, &value))
CALL(channel_try_recv, uint64_t value; (void)!janus_channel_try_recv(t->channel, &value))
CALL(own_check_forged, (void)!janus_cap_check(t->forged, JANUS_CAP_KIND_SPAWN, 1))
CALL(own_read_forged, janus_cap_info info = JANUS_CAP_INFO();
     (void)!janus_cap_inspect(t->forged, &info))
CALL(own_release_forged, (void)janus_cap_release(t->forged))

/* Synchronisation. */
CALL(mutex_free, (void)!janus_mutex_lock(&t->free); (void)!janus_mutex_unlock(&t->free))
CALL(mutex_try_held, (void)!janus_mutex_try_lock(&t->held))
CALL(mutex_unlock_other, (void)!janus_mutex_unlock(&t->held))
CALL(event_set, janus_event_set(&t->event); janus_event_reset(&t->event))
CALL(event_past, (void)!janus_event_wait_until(&t->event, 1))
CALL(condition_signal, janus_condition_signal(&t->condition))
CALL(condition_broadcast, janus_condition_broadcast(&t->condition))
CALL(broadcast_send, janus_broadcast_send(&t->broadcast))
CALL(semaphore_pair, (void)!janus_semaphore_acquire(&t->semaphore);
     (void)janus_semaphore_release(&t->semaphore, 1))
CALL(semaphore_try, (void)!janus_semaphore_try_acquire(&t->empty))
CALL(group_pair, (void)janus_group_add(&t->group, 1); (void)janus_group_done(&t->group))

/* More of budgets and memory. */
CALL(charge, (void)!janus_charge(janus_price_call()))
CALL(charge_nothing, (void)!janus_charge(janus_budget_zero()))
CALL(check, (void)!janus_check())
CALL(check_many, (void)!janus_check_n(3))
CALL(batch, (void)!janus_batch_next(&t->batch))
CALL(batch_end, t->batch.due = 1; (void)!janus_batch_end(&t->batch))
CALL(check_slow, (void)!janus_check_slow(0))
CALL(check_or_end, janus_check_or_end(1))
CALL(check_or_end_slow, janus_check_or_end_slow(0))
CALL(check_stub, janus_check_stub(0))
CALL(strip_slow, (void)janus_strip_slow(4, 16))
CALL(op, janus_op(1))
CALL(hold, janus_hold_begin(); janus_hold_end())
CALL(alloc_zeroed, janus_free(janus_alloc_zeroed(4, 16)))
CALL(alloc_aligned, janus_free(janus_alloc_aligned(64, 64)))
CALL(alloc_refused, janus_free(janus_alloc_aligned(3, 64)))
CALL(realloc_grow, janus_free(janus_realloc(janus_alloc(64), 640)))
CALL(adopt, void *block = janus_detach(janus_alloc(64)); (void)!janus_adopt(block);
     janus_free(block))
CALL(recharge, (void)janus_budget_recharge(janus_budget_of(1, 0, 0, 0, 0)))
CALL(recharge_child, (void)janus_budget_recharge_child(12345, janus_budget_of(1, 0, 0, 0, 0), NULL))
CALL(recharge_nursery,
     (void)!janus_nursery_recharge(&t->nursery, 12345, janus_budget_of(1, 0, 0, 0, 0)))
CALL(exhausted_wait, janus_exhausted out; (void)!janus_nursery_wait_exhausted(&t->nursery, &out))
CALL(poll_exhausted, (void)janus_supervisor_poll_exhausted())
CALL(cancel_exhausted, (void)!janus_nursery_cancel_exhausted(&t->nursery, 12345))
CALL(nursery_books, janus_nursery_pool_info books = JANUS_NURSERY_POOL_INFO();
     (void)!janus_nursery_pool_inspect(&t->nursery, &books))

/* More of nurseries and children. */

static janus_rest rest_no_more(void *state, janus_status woke)
{
    (void)state;
    return janus_rest_done(woke);
}

CALL(spawn_wait, (void)!janus_spawn_wait(&t->nursery, repeat_quickly, NULL);
     (void)!janus_nursery_await_with(&t->nursery, NULL))
CALL(spawn_refused_wait, (void)!janus_spawn_wait(&t->full, repeat_quickly, NULL))
CALL(spawn_await, (void)!janus_spawn(&t->nursery, repeat_quickly, NULL);
     (void)!janus_nursery_await_with(&t->nursery, NULL))
CALL(spawn_with, janus_task_id id;
     if (janus_spawn_with(&t->nursery, repeat_quickly, NULL, NULL, &id) == JANUS_OK)
         JANUS_IGNORE(janus_join(&t->nursery, id, NULL)))
CALL(spawn_resting, janus_task_id id;
     if (janus_spawn_resting(&t->nursery, janus_rest_sleep(0), rest_no_more, NULL, NULL, &id) ==
         JANUS_OK) JANUS_IGNORE(janus_join(&t->nursery, id, NULL)))
CALL(spawn_plainly, (void)janus_scheduler_spawn(repeat_quickly, NULL))
CALL(
    nursery_heap, janus_nursery *made = janus_nursery_create(); if (made != NULL) {
        (void)janus_nursery_spawn(made, repeat_quickly, NULL);
        (void)janus_nursery_await(made);
        (void)janus_nursery_destroy(made);
    })
CALL(nursery_block, janus_status status = JANUS_OK; JANUS_NURSERY(room, status)(void) room;
     (void)status)
CALL(nursery_timeout, janus_status status = JANUS_OK;
     JANUS_TIMEOUT(status, UINT64_C(1) << 60)(void) status)
CALL(nursery_leave, janus_nursery n;
     if (janus_nursery_open(&n, NULL) == JANUS_OK) janus_nursery_leave(&n))
CALL(nursery_close_again, (void)janus_nursery_close(&t->full))
CALL(nursery_try_result, janus_nursery_result result = {.errors = 0};
     (void)janus_nursery_try_await(&t->full, &result))
CALL(
    nursery_cancelled, janus_nursery n; if (janus_nursery_open(&n, NULL) == JANUS_OK) {
        (void)janus_nursery_cancel(&n);
        (void)janus_nursery_propagate_cancel(&n);
        JANUS_IGNORE(janus_nursery_end(&n, NULL));
    })
CALL(cancel_child, (void)!janus_nursery_cancel_child(&t->nursery, 12345))
CALL(
    cancel_with, janus_nursery n; if (janus_nursery_open(&n, NULL) == JANUS_OK) {
        (void)!janus_nursery_cancel_on(&n, t->token);
        JANUS_IGNORE(janus_nursery_end(&n, NULL));
    })
CALL(async_call, janus_async call; if (janus_async_start(&t->nursery, &call, answer, NULL, NULL) ==
                                       JANUS_OK)(void) !janus_await(&call, NULL))
CALL(async_number, janus_async call; int64_t number;
     if (janus_async_start_number(&t->nursery, &call, repeat_quickly, NULL) ==
         JANUS_OK)(void) !janus_await(&call, &number))

/* Data parallelism. */
CALL(both, (void)!janus_both(repeat_quickly, NULL, repeat_quickly, NULL))
CALL(both_with, (void)!janus_both_with(repeat_quickly, NULL, repeat_quickly, NULL, NULL))
CALL(for_short, (void)!janus_for(janus_range_of(0, 4), body, NULL))
CALL(for_nothing, (void)!janus_for(janus_range_of(4, 4), body, NULL))
CALL(for_long, (void)!janus_for_with(janus_range_of(0, 100000), body, NULL, NULL))
CALL(reduce_short, uint64_t sum = 0;
     (void)!janus_reduce(janus_range_of(0, 4), fold, combine, NULL, &sum, sizeof sum))
CALL(reduce_with, uint64_t sum = 0;
     (void)!janus_reduce_with(janus_range_of(0, 1000), fold, combine, NULL, &sum, sizeof sum, NULL))

static const struct repeat_call calls[] = {
    ROW(failing_try_charge),
    ROW(budget_get_current),
    ROW(failing_try_alloc),
    ROW(alloc_small),
    ROW(alloc_large),
    ROW(detach_discard),
    ROW(memory_read),
    ROW(recharge_self),
    ROW(failing_defer),
    ROW(defer_undefer),
    ROW(cancelled),
    ROW(cancelled_reason),
    ROW(shield),
    ROW(shield_until),
    ROW(token_create),
    ROW(token_child),
    ROW(token_hook),
    ROW(token_late_hook),
    ROW(token_cancel_again),
    ROW(token_remove_stale),
    ROW(nursery_token),
    ROW(nursery_plain),
    ROW(nursery_deadline),
    ROW(nursery_pool),
    ROW(refused_spawn),
    ROW(invalid_spawn),
    ROW(failing_join),
    ROW(nursery_state),
    ROW(nursery_is_cancelled),
    ROW(nursery_set_deadline),
    ROW(nursery_failures),
    ROW(exhausted_poll),
    ROW(blocking),
    ROW(inspect_self),
    ROW(inspect_child),
    ROW(inspect_nursery),
    ROW(context_read),
    ROW(explain),
    ROW(explain_failure),
    ROW(channel_inspect),
    ROW(channel_life),
    ROW(channel_attenuate),
    ROW(channel_forged),
    ROW(channel_close_again),
    ROW(channel_closed_recv),
    ROW(channel_try_recv),
    ROW(own_check_forged),
    ROW(own_read_forged),
    ROW(own_release_forged),
    ROW(mutex_free),
    ROW(mutex_try_held),
    ROW(mutex_unlock_other),
    ROW(event_set),
    ROW(event_past),
    ROW(condition_signal),
    ROW(condition_broadcast),
    ROW(broadcast_send),
    ROW(semaphore_pair),
    ROW(semaphore_try),
    ROW(group_pair),
    ROW(charge),
    ROW(charge_nothing),
    ROW(check),
    ROW(check_many),
    ROW(batch),
    ROW(batch_end),
    ROW(check_slow),
    ROW(check_or_end),
    ROW(check_or_end_slow),
    ROW(check_stub),
    ROW(strip_slow),
    ROW(op),
    ROW(hold),
    ROW(alloc_zeroed),
    ROW(alloc_aligned),
    ROW(alloc_refused),
    ROW(realloc_grow),
    ROW(adopt),
    ROW(recharge),
    ROW(recharge_child),
    ROW(recharge_nursery),
    ROW(exhausted_wait),
    ROW(poll_exhausted),
    ROW(cancel_exhausted),
    ROW(nursery_books),
    ROW(spawn_wait),
    ROW(spawn_refused_wait),
    ROW(spawn_await),
    ROW(spawn_with),
    ROW(spawn_resting),
    ROW(spawn_plainly),
    ROW(nursery_heap),
    ROW(nursery_block),
    ROW(nursery_timeout),
    ROW(nursery_leave),
    ROW(nursery_close_again),
    ROW(nursery_try_result),
    ROW(nursery_cancelled),
    ROW(cancel_child),
    ROW(cancel_with),
    ROW(async_call),
    ROW(async_number),
    ROW(both),
    ROW(both_with),
    ROW(for_short),
    ROW(for_nothing),
    ROW(for_long),
    ROW(reduce_short),
    ROW(reduce_with),
};

static void open_things(struct things *things)
{
    CHECK_EQ(janus_nursery_open(&things->nursery, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&things->full, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_close(&things->full), JANUS_OK);
    CHECK_EQ(janus_token_create(&things->token), JANUS_OK);
    CHECK_EQ(janus_token_create(&things->cancelled), JANUS_OK);
    CHECK_EQ(janus_token_cancel(things->cancelled, JANUS_CANCEL_REASON_EXPLICIT), JANUS_OK);
    CHECK_EQ(janus_channel_create(sizeof(uint64_t), 4, NULL, &things->channel), JANUS_OK);
    CHECK_EQ(janus_channel_create(sizeof(uint64_t), 4, NULL, &things->closed), JANUS_OK);
    CHECK_EQ(janus_channel_close(things->closed), JANUS_OK);
    janus_mutex_init(&things->free, "free");
    janus_mutex_init(&things->held, "held");
    janus_event_init(&things->event, JANUS_WAKER_ANYBODY, "event");
    janus_condition_init(&things->condition, JANUS_WAKER_ANYBODY, "condition");
    janus_broadcast_init(&things->broadcast, JANUS_WAKER_ANYBODY, "broadcast");
    janus_semaphore_init(&things->semaphore, 1, JANUS_WAKER_ANYBODY, "semaphore");
    janus_semaphore_init(&things->empty, 0, JANUS_WAKER_ANYBODY, "empty");
    janus_group_init(&things->group, JANUS_WAKER_ANYBODY, "group");
    things->batch = janus_batch_begin();
    memset(&things->forged, 7, sizeof things->forged);
}

static void close_things(struct things *things)
{
    janus_token_release(things->token);
    janus_token_release(things->cancelled);
    CHECK_EQ(janus_nursery_end(&things->full, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&things->nursery, NULL), JANUS_OK);
}

TEST("beside a task that repeats any call of tasks, a neighbour has half of the worker")
{
    static const struct repeat_kit kit = {open_things, close_things};
    struct things                  things = {.text = ""};
    RIG_REAL("shares of real time are compared");
    if (RIG_SLOW) SKIP("calls take other times under sanitizers and emulation");
    CHECK_EQ(repeat_all(calls, sizeof calls / sizeof *calls, &kit, &things), 0);
}
