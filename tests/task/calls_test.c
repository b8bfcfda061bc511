/* SPDX-License-Identifier: MIT */
/*
 * Calls that take no op: a task that repeats one of them, and never checks, leaves its neighbour on
 * the same worker half of the CPU. The shares are of the worker's CPU time, so that what else the
 * machine does counts little.
 */
#include "beside.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const uint64_t window_ns = 25000000; /* CPU time of one measurement */
static const double   least = 0.45;

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
    char            text[256];
};

struct call {
    const char *name;
    void        (*make)(struct things *things);
};

struct pair {
    const struct call *call;
    struct things      things;
};

static int64_t quickly(void *argument) { return argument == NULL ? 0 : 1; }
static void    ignore(void *argument) { (void)argument; }

#define CALL(name, ...)                                                                            \
    static void name(struct things *t)                                                             \
    {                                                                                              \
        (void)t;                                                                                   \
        __VA_ARGS__;                                                                               \
    }

/* Budgets and memory. */
CALL(failing_try_charge, (void)!janus_try_charge(janus_budget_of(0, UINT64_MAX, 0, 0, 0), NULL))
CALL(budget_get_current, (void)janus_budget_get_current())
CALL(failing_try_alloc, void *block; (void)!janus_try_alloc(SIZE_MAX / 4, &block))
CALL(alloc_small, janus_free(janus_alloc(64)))
CALL(alloc_large, janus_free(janus_alloc(500000)))
CALL(detach_discard, janus_discard(janus_detach(janus_alloc(64))))
CALL(memory_read, janus_memory_info info = {.struct_bytes = sizeof info};
     (void)janus_memory_read(&info))
CALL(recharge_self, (void)janus_budget_recharge_current(janus_budget_of(1, 0, 0, 0, 0), NULL))
CALL(failing_defer, (void)!janus_defer(NULL, NULL))

/* Cancellation. */
CALL(cancelled, (void)janus_cancelled())
CALL(cancelled_reason, (void)janus_cancelled_reason())
CALL(shield, janus_shield_begin(); janus_shield_end())
CALL(shield_until, janus_shield s; janus_shield_begin_until(&s, UINT64_MAX); janus_shield_end())
CALL(token_create, janus_token *made;
     if (janus_token_create(&made) == JANUS_OK) janus_token_release(made))
CALL(token_child, janus_token *made;
     if (janus_token_child(t->token, &made) == JANUS_OK) janus_token_release(made))
CALL(token_hook, janus_token_handle h; if (janus_token_on_cancel(t->token, ignore, NULL, &h) ==
                                           JANUS_OK)(void) janus_token_remove(t->token, h))
CALL(token_late_hook, (void)!janus_token_on_cancel(t->cancelled, ignore, NULL, NULL))
CALL(token_cancel_again, (void)janus_token_cancel(t->cancelled, JANUS_CANCEL_EXPLICIT))
CALL(token_remove_stale, (void)janus_token_remove(t->token, 77))
CALL(nursery_token, janus_token *made;
     if (janus_nursery_token(&t->nursery, &made) == JANUS_OK) janus_token_release(made))

/* Nurseries and children. */
CALL(nursery_plain, janus_nursery n;
     if (janus_nursery_open(&n, NULL) == JANUS_OK)(void) janus_nursery_end(&n, NULL))
CALL(nursery_deadline, janus_nursery n;
     if (janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.deadline_ns = UINT64_C(1) << 60)) ==
         JANUS_OK)(void) janus_nursery_end(&n, NULL))
CALL(nursery_pool, janus_nursery n; janus_budget pool = janus_budget_of(1, 0, 0, 0, 0);
     if (janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)) == JANUS_OK)(void)
         janus_nursery_end(&n, NULL))
CALL(refused_spawn, (void)!janus_spawn(&t->full, quickly, NULL))
CALL(invalid_spawn, (void)!janus_spawn(NULL, quickly, NULL))
CALL(failing_join, (void)janus_join(&t->nursery, 12345, NULL))
CALL(nursery_state, (void)janus_nursery_state_of(&t->nursery))
CALL(nursery_is_cancelled, (void)janus_nursery_is_cancelled(&t->nursery))
CALL(nursery_set_deadline, (void)!janus_nursery_set_deadline(&t->nursery, UINT64_C(1) << 60))
CALL(nursery_failures, janus_failure failure;
     (void)janus_nursery_failures(&t->nursery, &failure, 1))
CALL(exhausted_poll, janus_exhausted out; (void)janus_nursery_exhausted_poll(&t->nursery, &out))
CALL(blocking, (void)janus_blocking(quickly, NULL, NULL))

/* Looking at things. */
CALL(inspect_self, janus_task_info info = {.struct_bytes = sizeof info};
     (void)janus_task_inspect_current(&info))
CALL(inspect_child, janus_task_info info = {.struct_bytes = sizeof info};
     (void)janus_task_inspect(&t->nursery, 12345, &info))
CALL(inspect_nursery, janus_nursery_info info = {.struct_bytes = sizeof info};
     (void)janus_nursery_inspect(&t->nursery, &info))
CALL(context_read, janus_context_info info = {.struct_bytes = sizeof info};
     (void)janus_context_read(&info))
CALL(explain, (void)janus_explain(t->text, sizeof t->text))
CALL(explain_failure, (void)!janus_try_charge(janus_budget_of(0, UINT64_MAX, 0, 0, 0), NULL);
     (void)janus_explain(t->text, sizeof t->text))
CALL(channel_inspect, janus_channel_info info = {.struct_bytes = sizeof info};
     (void)janus_channel_inspect(t->channel, &info))

/* Channels and capabilities. */
CALL(channel_life, janus_channel c;
     if (janus_channel_open(8, 4, NULL, &c) == JANUS_OK)(void) janus_channel_destroy(c))
CALL(channel_attenuate, janus_channel c;
     (void)!janus_channel_attenuate(t->channel, JANUS_CHANNEL_MAY_SEND, &c))
CALL(channel_forged, janus_channel c = {{1, 2}}; (void)janus_channel_close(c))
CALL(channel_close_again, (void)janus_channel_close(t->closed))
CALL(channel_closed_recv, uint64_t value; (void)!janus_channel_recv(t->closed, &value))
CALL(channel_try_recv, uint64_t value; (void)!janus_channel_try_recv(t->channel, &value))
CALL(own_check_forged, (void)!janus_own_check(t->forged, JANUS_CAP_SPAWN, 1))
CALL(own_read_forged, janus_cap_info info = {.struct_bytes = sizeof info};
     (void)!janus_own_read(t->forged, &info))
CALL(own_release_forged, (void)janus_own_release(t->forged))

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

#define ROW(name) {#name, name}
static const struct call calls[] = {
    ROW(failing_try_charge),
    ROW(budget_get_current),
    ROW(failing_try_alloc),
    ROW(alloc_small),
    ROW(alloc_large),
    ROW(detach_discard),
    ROW(memory_read),
    ROW(recharge_self),
    ROW(failing_defer),
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
};

static void open_things(struct things *things)
{
    CHECK_EQ(janus_nursery_open(&things->nursery, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&things->full, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_close(&things->full), JANUS_OK);
    CHECK_EQ(janus_token_create(&things->token), JANUS_OK);
    CHECK_EQ(janus_token_create(&things->cancelled), JANUS_OK);
    CHECK_EQ(janus_token_cancel(things->cancelled, JANUS_CANCEL_EXPLICIT), JANUS_OK);
    CHECK_EQ(janus_channel_open(sizeof(uint64_t), 4, NULL, &things->channel), JANUS_OK);
    CHECK_EQ(janus_channel_open(sizeof(uint64_t), 4, NULL, &things->closed), JANUS_OK);
    CHECK_EQ(janus_channel_close(things->closed), JANUS_OK);
    janus_mutex_init(&things->free, "free");
    janus_event_init(&things->event, JANUS_OPENED_BY_ANYBODY, "event");
    janus_condition_init(&things->condition, JANUS_OPENED_BY_ANYBODY, "condition");
    janus_broadcast_init(&things->broadcast, JANUS_OPENED_BY_ANYBODY, "broadcast");
    janus_semaphore_init(&things->semaphore, 1, JANUS_OPENED_BY_ANYBODY, "semaphore");
    janus_semaphore_init(&things->empty, 0, JANUS_OPENED_BY_ANYBODY, "empty");
    janus_group_init(&things->group, JANUS_OPENED_BY_ANYBODY, "group");
    memset(&things->forged, 7, sizeof things->forged);
}

static void close_things(struct things *things)
{
    janus_token_release(things->token);
    janus_token_release(things->cancelled);
    CHECK_EQ(janus_nursery_end(&things->full, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&things->nursery, NULL), JANUS_OK);
}

/* A call that starves its neighbour ends after four windows. */
static int64_t repeat(void *argument)
{
    struct beside *beside = argument;
    struct pair   *pair = beside->argument;
    janus_mutex_init(&pair->things.held, "held");
    open_things(&pair->things);
    for (uint64_t i = 0; !beside_over(beside); i++) {
        pair->call->make(&pair->things);
        if (i % 256 == 255 && beside_cpu_ns() - beside->began_ns > 4 * window_ns) break;
    }
    close_things(&pair->things);
    return 0;
}

static double share_beside(const struct call *call)
{
    struct pair      pair = {.call = call};
    janus_scheduler *scheduler = town_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
    double           share = beside_share(scheduler, repeat, &pair, window_ns);
    CHECK_EQ(janus_scheduler_close(scheduler), JANUS_OK);
    return share;
}

TEST("beside a task that repeats any call, and never checks, a neighbour has half of the worker")
{
    int starved = 0;
    TOWN_REAL("shares of real time are compared");
    if (TOWN_SLOW) SKIP("calls take other times under sanitizers and emulation");
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        double share = share_beside(&calls[i]);
        printf("# %.3f %s\n", share, calls[i].name);
        fflush(stdout);
        if (share < least) starved++;
    }
    CHECK_EQ(starved, 0);
}
