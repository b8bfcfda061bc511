/* SPDX-License-Identifier: MIT */
/* Selects over timers, events and groups, beside channels. */
#include "../chan/channels.h"

#include <string.h>

/* Timers. */

static int64_t time_out(void *argument)
{
    janus_channel     channel = open_outside(0);
    int64_t           value = 0;
    size_t            chosen = 9;
    uint64_t          begun = janus_now_ns();
    janus_select_case cases[] = {janus_case_recv(channel, &value),
                                 janus_case_at(begun + 5 * rig_ms),
                                 janus_case_at(begun + 10000 * rig_ms)};
    (void)argument;
    CHECK_EQ(janus_try_select(cases, 3, &chosen), JANUS_WOULD_WAIT);
    CHECK_EQ(janus_select(cases, 3, &chosen), JANUS_OK);
    CHECK_EQ(chosen, 1);
    CHECK(janus_now_ns() >= begun + 5 * rig_ms);
    CHECK_EQ(janus_try_select(cases, 3, &chosen), JANUS_OK);
    CHECK_EQ(chosen, 1);
    cases[1].deadline_ns = UINT64_MAX;
    CHECK_EQ(janus_select_until(cases, 3, &chosen, janus_now_ns() + rig_ms), JANUS_DEADLINE);
    CHECK_EQ(look(channel).receivers, 0);
    destroy(channel);
    return 0;
}

TEST("a select chooses a timer when the clock has reached it, and not before")
{
    CHECK_EQ(time_out(NULL), 0);
    rig_all(time_out, NULL, 3);
}

static int64_t tick(void *argument)
{
    uint64_t next = janus_now_ns();
    size_t   chosen = 9;
    (void)argument;
    for (int i = 0; i < 5; i++) {
        next += rig_ms;
        janus_select_case one = janus_case_at(next);
        CHECK_EQ(janus_select(&one, 1, &chosen), JANUS_OK);
        CHECK(janus_now_ns() >= next);
    }
    return 0;
}

TEST("a timer alone is a sleep, and a timer that moves by a period is a ticker")
{
    rig_all(tick, NULL, 2);
}

/* Events and groups. */

struct stage {
    janus_channel channel;
    janus_event   event;
    janus_group   group;
    int           act; /* 0: set, 1: done, 2: send */
    size_t        chosen;
};

static int64_t act(void *argument)
{
    struct stage *stage = argument;
    await_waiting(stage->channel, 0, 1);
    if (stage->act == 0) janus_event_set(&stage->event);
    if (stage->act == 1) CHECK_EQ(janus_group_done(&stage->group), JANUS_OK);
    if (stage->act == 2) CHECK_EQ(janus_channel_send(stage->channel, &(int64_t){4}), JANUS_OK);
    return 0;
}

static int64_t choose(void *argument)
{
    struct stage     *stage = argument;
    int64_t           value = 0;
    janus_select_case cases[] = {janus_case_event(&stage->event), janus_case_group(&stage->group),
                                 janus_case_recv(stage->channel, &value),
                                 janus_case_at(janus_now_ns() + 20000 * rig_ms)};
    CHECK_EQ(janus_select(cases, 4, &stage->chosen), JANUS_OK);
    CHECK_EQ(value, stage->act == 2 ? 4 : 0);
    return 0;
}

static int64_t wait_for_each(void *argument)
{
    (void)argument;
    for (int which = 0; which < 3; which++) {
        struct stage  stage = {.channel = open_channel(0), .act = which, .chosen = 9};
        janus_nursery n;
        janus_event_init(&stage.event, JANUS_WAKER_TASKS, "go");
        janus_group_init(&stage.group, JANUS_WAKER_TASKS, "all");
        CHECK_EQ(janus_group_add(&stage.group, 1), JANUS_OK);
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, choose, &stage), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, act, &stage), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        CHECK_EQ(stage.chosen, (size_t)which);
        CHECK_EQ(look(stage.channel).receivers, 0);
        memset(&stage.event, 0x55, sizeof stage.event); /* no task waits there any more */
        destroy(stage.channel);
    }
    return 0;
}

TEST("a select wakes for an event, a finished group or a value, and leaves all queues")
{
    rig_all(wait_for_each, NULL, REPEATS);
}

static int64_t at_once(void *argument)
{
    janus_event event;
    size_t      chosen = 9;
    (void)argument;
    janus_event_init(&event, JANUS_WAKER_TASKS, NULL);
    janus_select_case cases[] = {janus_case_event(&event), janus_case_event(NULL)};
    CHECK_EQ(janus_select(cases, 2, &chosen), JANUS_INVALID);
    CHECK_EQ(chosen, 1);
    CHECK_EQ(janus_try_select(cases, 1, &chosen), JANUS_WOULD_WAIT);
    CHECK_EQ(janus_select_until(cases, 1, &chosen, janus_now_ns() + rig_ms), JANUS_DEADLINE);
    janus_event_set(&event);
    CHECK_EQ(janus_select(cases, 1, &chosen), JANUS_OK);
    CHECK_EQ(chosen, 0);
    cases[0].source = NULL;
    CHECK_EQ(janus_select(cases, 1, &chosen), JANUS_INVALID);
    return 0;
}

TEST("a select tries an event at once, and names the case that has no object")
{
    CHECK_EQ(at_once(NULL), 0);
    rig_all(at_once, NULL, 2);
}

static int64_t for_ever(void *argument)
{
    janus_event      *event = argument;
    janus_select_case one = janus_case_event(event);
    return janus_select(&one, 1, NULL);
}

static int64_t cancel_it(void *argument)
{
    janus_event event;
    (void)argument;
    janus_event_init(&event, JANUS_WAKER_TASKS, NULL);
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, for_ever, &event), JANUS_OK);
    CHECK_EQ(janus_yield(), JANUS_OK);
    (void)janus_nursery_cancel(&n);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    janus_event_set(&event);
    return 0;
}

TEST("a select that waits for an event can be cancelled, and leaves the event")
{
    rig_all(cancel_it, NULL, REPEATS);
}

/* Both come at the same moment, from other workers: one is chosen, and no value is lost. */

struct race {
    janus_channel channel;
    janus_event   event;
    int           received, sent;
};

static int64_t send_one(void *argument)
{
    struct race *race = argument;
    race->sent += janus_channel_try_send(race->channel, &(int64_t){1}) == JANUS_OK;
    return 0;
}

static int64_t set_it(void *argument)
{
    struct race *race = argument;
    janus_event_set(&race->event);
    return 0;
}

static int64_t take_one(void *argument)
{
    struct race      *race = argument;
    int64_t           value = 0;
    size_t            chosen = 9;
    janus_select_case cases[] = {janus_case_recv(race->channel, &value),
                                 janus_case_event(&race->event)};
    CHECK_EQ(janus_select(cases, 2, &chosen), JANUS_OK);
    CHECK(chosen < 2);
    race->received += chosen == 0;
    CHECK_EQ(value, chosen == 0 ? 1 : 0);
    return 0;
}

static int64_t race_them(void *argument)
{
    (void)argument;
    for (int i = 0; i < 100; i++) {
        struct race   race = {.channel = open_channel(0)};
        janus_nursery n;
        janus_event_init(&race.event, JANUS_WAKER_TASKS, NULL);
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, take_one, &race), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, send_one, &race), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, set_it, &race), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        CHECK_EQ(race.received, race.sent);
        destroy(race.channel);
    }
    return 0;
}

TEST("an event and a value that come at the same moment end one select, and no value is lost")
{
    rig_all(race_them, NULL, REPEATS);
}
