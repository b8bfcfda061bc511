/* SPDX-License-Identifier: MIT */
/*
 * Repeated calls of channels and synchronisation that could wait but need not: what they wait for
 * is there, or their deadline has passed. repeat.h explains the measurement.
 */
#include "repeat.h"

enum { CASES = 64 };

struct things {
    janus_channel     room, full, closed, forged;
    janus_mutex       mutex, nested;
    janus_rwlock      lock, written;
    janus_event       set, unset;
    janus_group       group;
    janus_semaphore   empty;
    janus_condition   condition;
    janus_broadcast   broadcast;
    janus_barrier     barrier, pair;
    janus_once        once;
    janus_waitpoint   open, closed_point;
    janus_select_case cases[CASES];
    uint64_t          value;
};

/* Channels. */
CALL(channel_pass, (void)!janus_channel_send(t->room, &t->value);
     (void)!janus_channel_recv(t->room, &t->value))
CALL(channel_pass_until, (void)!janus_channel_send_until(t->room, &t->value, 1);
     (void)!janus_channel_recv_until(t->room, &t->value, 1))
CALL(channel_send_late, (void)!janus_channel_send_until(t->full, &t->value, 1))
CALL(channel_try_send, (void)!janus_channel_try_send(t->full, &t->value))
CALL(channel_try_closed, (void)!janus_channel_try_send(t->closed, &t->value))
CALL(channel_send_closed, (void)!janus_channel_send(t->closed, &t->value))
CALL(channel_send_forged, (void)!janus_channel_send(t->forged, &t->value))
CALL(channel_recv_forged, (void)!janus_channel_recv(t->forged, &t->value))
CALL(channel_send_until_forged, (void)!janus_channel_send_until(t->forged, &t->value, 1))
CALL(channel_try_send_forged, (void)!janus_channel_try_send(t->forged, &t->value))
CALL(channel_try_recv_forged, (void)!janus_channel_try_recv(t->forged, &t->value))
CALL(channel_send_nothing, (void)!janus_channel_send(t->room, NULL))
CALL(channel_unbounded, janus_channel c; if (janus_channel_create_unbounded(8, 1000, NULL, &c) ==
                                             JANUS_OK)(void) janus_channel_destroy(c))
CALL(select_many, size_t chosen; (void)!janus_try_select(t->cases, CASES, &chosen))
CALL(select_late, size_t chosen; (void)!janus_select_until(t->cases, CASES, &chosen, 1))
CALL(select_timer, size_t chosen; janus_select_case cases[] = {janus_case_at(1)};
     (void)!janus_select(cases, 1, &chosen))
CALL(select_event, size_t chosen; janus_select_case cases[] = {janus_case_event(&t->set)};
     (void)!janus_select(cases, 1, &chosen))
CALL(select_none, size_t chosen; (void)!janus_try_select(NULL, 0, &chosen))
CALL(select_forged, size_t chosen;
     janus_select_case cases[] = {janus_case_recv(t->forged, &t->value)};
     (void)!janus_try_select(cases, 1, &chosen))

/* Locks. */
CALL(mutex_until,
     if (janus_mutex_lock_until(&t->mutex, 1) == JANUS_OK)(void) !janus_mutex_unlock(&t->mutex))
CALL(mutex_nested, (void)!janus_mutex_lock(&t->nested); (void)!janus_mutex_lock(&t->nested);
     (void)!janus_mutex_unlock(&t->nested); (void)!janus_mutex_unlock(&t->nested))
CALL(mutex_invalid, (void)!janus_mutex_lock(NULL))
CALL(mutex_repaired, (void)!janus_mutex_repaired(&t->mutex))
CALL(rwlock_read, (void)!janus_rwlock_read_lock(&t->lock); (void)!janus_rwlock_unlock(&t->lock))
CALL(rwlock_write, (void)!janus_rwlock_write_lock(&t->lock); (void)!janus_rwlock_unlock(&t->lock))
CALL(rwlock_until, if (janus_rwlock_read_lock_until(&t->lock, 1) ==
                       JANUS_OK)(void) !janus_rwlock_unlock(&t->lock);
     if (janus_rwlock_write_lock_until(&t->lock, 1) ==
         JANUS_OK)(void) !janus_rwlock_unlock(&t->lock))
CALL(rwlock_try_read, (void)!janus_rwlock_try_read_lock(&t->written))
CALL(rwlock_try_write, (void)!janus_rwlock_try_write_lock(&t->written))
CALL(rwlock_again, (void)!janus_rwlock_write_lock(&t->written))
CALL(rwlock_unlock_free, (void)!janus_rwlock_unlock(&t->lock))
CALL(rwlock_repaired, (void)!janus_rwlock_repaired(&t->lock))
CALL(condition_late, (void)!janus_mutex_lock(&t->mutex);
     (void)!janus_condition_wait_until(&t->condition, &t->mutex, 1);
     (void)!janus_mutex_unlock(&t->mutex))
CALL(condition_unlocked, (void)!janus_condition_wait(&t->condition, &t->mutex))

/* Meetings. */
CALL(event_wait, (void)!janus_event_wait(&t->set))
CALL(group_wait, (void)!janus_group_wait(&t->group))
CALL(group_wait_until, (void)!janus_group_wait_until(&t->group, 1))
CALL(semaphore_late, (void)!janus_semaphore_acquire_until(&t->empty, 1))
CALL(broadcast_wait, uint64_t seen = UINT64_MAX; janus_broadcast_send(&t->broadcast);
     seen = janus_broadcast_count(&t->broadcast) - 1;
     (void)!janus_broadcast_wait(&t->broadcast, &seen))
CALL(broadcast_late, uint64_t seen = janus_broadcast_count(&t->broadcast);
     (void)!janus_broadcast_wait_until(&t->broadcast, &seen, 1))
CALL(barrier_wait, (void)!janus_barrier_wait(&t->barrier, NULL))
CALL(barrier_late, (void)!janus_barrier_wait_until(&t->pair, NULL, 1))
CALL(once_call, (void)!janus_once_call(&t->once, repeat_quickly, NULL, NULL))
CALL(waitpoint_open, janus_waitpoint_wake(&t->open))
CALL(waitpoint_wait, (void)!janus_waitpoint_wait(&t->open, NULL))
CALL(waitpoint_late, (void)!janus_waitpoint_wait_until(&t->closed_point, NULL, 1))

/* The clock. */
CALL(yield, (void)!janus_yield())
CALL(scheduler_yield, (void)!janus_scheduler_yield())
CALL(sleep_nothing, (void)!janus_sleep(0))
CALL(sleep_past, (void)!janus_sleep_until(1))

static const struct repeat_call calls[] = {
    ROW(channel_pass),
    ROW(channel_pass_until),
    ROW(channel_send_late),
    ROW(channel_try_send),
    ROW(channel_try_closed),
    ROW(channel_send_closed),
    ROW(channel_send_forged),
    ROW(channel_recv_forged),
    ROW(channel_send_until_forged),
    ROW(channel_try_send_forged),
    ROW(channel_try_recv_forged),
    ROW(channel_send_nothing),
    ROW(channel_unbounded),
    ROW(select_many),
    ROW(select_late),
    ROW(select_timer),
    ROW(select_event),
    ROW(select_none),
    ROW(select_forged),
    ROW(mutex_until),
    ROW(mutex_nested),
    ROW(mutex_invalid),
    ROW(mutex_repaired),
    ROW(rwlock_read),
    ROW(rwlock_write),
    ROW(rwlock_until),
    ROW(rwlock_try_read),
    ROW(rwlock_try_write),
    ROW(rwlock_again),
    ROW(rwlock_unlock_free),
    ROW(rwlock_repaired),
    ROW(condition_late),
    ROW(condition_unlocked),
    ROW(event_wait),
    ROW(group_wait),
    ROW(group_wait_until),
    ROW(semaphore_late),
    ROW(broadcast_wait),
    ROW(broadcast_late),
    ROW(barrier_wait),
    ROW(barrier_late),
    ROW(once_call),
    ROW(waitpoint_open),
    ROW(waitpoint_wait),
    ROW(waitpoint_late),
    ROW(yield),
    ROW(scheduler_yield),
    ROW(sleep_nothing),
    ROW(sleep_past),
};

static void open_channels(struct things *things)
{
    const uint64_t value = 0;
    CHECK_EQ(janus_channel_create(sizeof value, 1, NULL, &things->room), JANUS_OK);
    CHECK_EQ(janus_channel_create(sizeof value, 1, NULL, &things->full), JANUS_OK);
    CHECK_EQ(janus_channel_create(sizeof value, 1, NULL, &things->closed), JANUS_OK);
    CHECK_EQ(janus_channel_send(things->full, &value), JANUS_OK);
    CHECK_EQ(janus_channel_close(things->closed), JANUS_OK);
    things->forged = (janus_channel){{1, 2}};
    for (size_t i = 0; i < CASES; i++) {
        things->cases[i] = janus_case_recv(things->room, &things->value);
    }
}

static void open_things(struct things *things)
{
    open_channels(things);
    janus_mutex_init(&things->mutex, "mutex");
    janus_mutex_init_recursive(&things->nested, "nested");
    CHECK_EQ(janus_rwlock_init(&things->lock, "lock"), JANUS_OK);
    CHECK_EQ(janus_rwlock_init(&things->written, "written"), JANUS_OK);
    CHECK_EQ(janus_rwlock_write_lock(&things->written), JANUS_OK);
    janus_event_init(&things->set, JANUS_WAKER_ANYBODY, "set");
    janus_event_set(&things->set);
    janus_event_init(&things->unset, JANUS_WAKER_ANYBODY, "unset");
    janus_group_init(&things->group, JANUS_WAKER_ANYBODY, "group");
    janus_semaphore_init(&things->empty, 0, JANUS_WAKER_ANYBODY, "empty");
    janus_condition_init(&things->condition, JANUS_WAKER_ANYBODY, "condition");
    janus_broadcast_init(&things->broadcast, JANUS_WAKER_ANYBODY, "broadcast");
    CHECK_EQ(janus_barrier_init(&things->barrier, 1, JANUS_WAKER_ANYBODY, "one"), JANUS_OK);
    CHECK_EQ(janus_barrier_init(&things->pair, 2, JANUS_WAKER_ANYBODY, "two"), JANUS_OK);
    janus_once_init(&things->once, "once");
    janus_waitpoint_init(&things->open, JANUS_WAKER_ANYBODY);
    janus_waitpoint_wake(&things->open);
    janus_waitpoint_init(&things->closed_point, JANUS_WAKER_ANYBODY);
}

static void close_things(struct things *things)
{
    CHECK_EQ(janus_rwlock_unlock(&things->written), JANUS_OK);
    CHECK_EQ(janus_channel_destroy(things->room), JANUS_OK);
    CHECK_EQ(janus_channel_destroy(things->full), JANUS_OK);
    CHECK_EQ(janus_channel_destroy(things->closed), JANUS_OK);
}

TEST("beside a task that repeats any call that could wait, a neighbour has half of the worker")
{
    static const struct repeat_kit kit = {open_things, close_things};
    struct things                  things = {.value = 0};
    RIG_REAL("shares of real time are compared");
    if (RIG_SLOW) SKIP("calls take other times under sanitizers and emulation");
    CHECK_EQ(repeat_all(calls, sizeof calls / sizeof *calls, &kit, &things), 0);
}
