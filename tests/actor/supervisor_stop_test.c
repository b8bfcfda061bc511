/* SPDX-License-Identifier: MIT */
/* How supervisors stop their children: in order, in time, and all of them. */
#include "stage.h"

/* S47. */

static int64_t stops_in_reverse(void *argument)
{
    struct play       play;
    struct player     players[5];
    janus_supervisor *supervisor = play_open(&play, NULL);
    (void)argument;
    for (int i = 0; i < 5; i++) {
        players[i] = (struct player){.play = &play, .name = (char)('a' + i)};
        (void)enter(supervisor, CHILD(&players[i], .id = i % 2 ? NULL : &"a\0b\0c\0d\0e"[2 * i]));
    }
    (void)play_end(&play, supervisor, JANUS_OK);
    EXPECT_LOG(&play, "+a+b+c+d+e-e-d-c-b-a");
    return 0;
}

TEST("children start in the order of adding and end in reverse, named and anonymous alike")
{
    stage_run(stops_in_reverse);
}

/* Messages that lie in a mailbox are handled before the end. */

static int64_t handles_what_is_queued(void *argument)
{
    struct play       play;
    struct player     a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    janus_supervisor *supervisor = play_open(&play, NULL);
    janus_actor       first = enter(supervisor, CHILD(&a)), second = enter(supervisor, CHILD(&b));
    (void)argument;
    for (int i = 0; i < 10; i++) {
        tell(first, ACT_COUNT, 1);
        tell(second, ACT_COUNT, 1);
    }
    janus_supervisor_result result = play_end(&play, supervisor, JANUS_OK);
    EXPECT_EQ(result.sent, 20);
    EXPECT_EQ(result.handled, 20);
    EXPECT_LOG(&play, "+a+b-b-a");
    return 0;
}

TEST("a supervisor that ends lets its actors handle what is queued")
{
    stage_run(handles_what_is_queued);
}

/* S11. */

static int64_t waits_any_time(void *argument)
{
    struct play                    play;
    struct player                  a = {.play = &play, .name = 'a', .end_ns = stage_while()};
    struct player                  b = {.play = &play, .name = 'b', .end_ns = stage_while()};
    const janus_child              below = *CHILD(&b, .stop_within_ns = JANUS_ANY_TIME);
    const janus_supervisor_options inner = {
        .struct_bytes = sizeof inner, .children = &below, .child_count = 1};
    janus_supervisor *supervisor = play_open(&play, NULL);
    uint64_t          begin;
    (void)argument;
    (void)enter(supervisor, CHILD(&a, .stop_within_ns = JANUS_ANY_TIME));
    (void)enter(supervisor, JANUS_CHILD(.id = "inner", .supervisor = &inner)); /* its default */
    begin = janus_now_ns();
    (void)play_end(&play, supervisor, JANUS_OK);
    EXPECT(janus_now_ns() - begin >= 2 * stage_while());
    EXPECT_LOG(&play, "+a+b-b-a"); /* neither was cancelled */
    return 0;
}

TEST("with JANUS_ANY_TIME an actor, and by default a supervisor, may take any time to end")
{
    stage_run(waits_any_time);
}

/* S12. */

static void stop_one_that_sleeps(const char *id)
{
    struct play       play;
    struct player     a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    janus_supervisor *supervisor = play_open(&play, NULL);
    (void)enter(supervisor, CHILD(&a, .id = id, .stop_within_ns = AN_HOUR / 2));
    janus_actor sleeper = enter(supervisor, CHILD(&b, .stop_within_ns = 10 * JANUS_MS));
    lull(&play, &b, sleeper, ACT_OBEY);
    uint64_t begin = janus_now_ns();
    (void)play_end(&play, supervisor, JANUS_OK);
    uint64_t took = janus_now_ns() - begin;
    EXPECT(took >= 10 * JANUS_MS);
    EXPECT(!stage_is_virtual() || took < JANUS_SECONDS);
    EXPECT_LOG(&play, "+a+bzbcb-a");
    EXPECT(a.ended == JANUS_END_KIND_NORMAL || a.ended == JANUS_END_KIND_STOPPED);
    EXPECT_EQ(b.ended, JANUS_END_KIND_CANCELLED);
}

static int64_t sleeps_too_long(void *argument)
{
    (void)argument;
    stop_one_that_sleeps("a");
    stop_one_that_sleeps(NULL);
    return 0;
}

TEST("a child that obeys is not cancelled; a child that sleeps past stop_within_ns is")
{
    stage_run(sleeps_too_long);
}

/* S13. */

static void cancel_ten(bool together)
{
    struct play       play;
    struct player     players[10];
    janus_supervisor *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.stop_together = together));
    for (int i = 0; i < 10; i++) {
        players[i] = (struct player){.play = &play, .name = (char)('a' + i)};
        janus_actor actor = enter(supervisor, CHILD(&players[i], .stop_within_ns = JANUS_NO_TIME));
        lull(&play, &players[i], actor, ACT_OBEY);
    }
    uint64_t begin = janus_now_ns();
    (void)play_end(&play, supervisor, JANUS_OK);
    EXPECT(!stage_is_virtual() || janus_now_ns() - begin < JANUS_SECONDS);
    EXPECT_EQ(play_count(&play, '+', '?'), 10);
    EXPECT_EQ(play_count(&play, 'c', '?'), 10);
}

static int64_t cancels_at_once(void *argument)
{
    (void)argument;
    cancel_ten(false);
    cancel_ten(true);
    return 0;
}

TEST("with JANUS_NO_TIME ten children that sleep are cancelled at once")
{
    stage_run(cancels_at_once);
}

/* S14, S15: children that end by themselves while the supervisor stops. */

enum { WAYS = 4 };

static const enum act way_acts[WAYS] = {ACT_END, ACT_FAIL, ACT_PANIC, ACT_OBEY};

static const janus_end_kind way_ends[WAYS] = {JANUS_END_KIND_NORMAL, JANUS_END_KIND_FAILED,
                                              JANUS_END_KIND_PANICKED, JANUS_END_KIND_CANCELLED};

static void end_while_stopping(bool anonymous, bool together)
{
    enum { COUNT = 3 * WAYS };
    struct play       play;
    struct player     players[COUNT];
    struct watcher    watchers[COUNT];
    char              ids[COUNT][2];
    janus_nursery     around;
    janus_supervisor *supervisor = NULL;
    EXPECT_EQ(janus_nursery_open(&around, NULL), JANUS_OK);
    supervisor = play_open(&play, JANUS_SUPERVISOR_OPTIONS(.stop_together = together));
    for (int i = 0; i < COUNT; i++) {
        players[i] = (struct player){.play = &play, .name = (char)('a' + i)};
        memcpy(ids[i], (char[2]){(char)('a' + i), '\0'}, 2);
        watchers[i].actor = enter(
            supervisor,
            CHILD(&players[i], .id = anonymous ? NULL : ids[i], .stop_within_ns = JANUS_NO_TIME,
                  .restart = (janus_restart)(JANUS_RESTART_PERMANENT + i / WAYS)));
        EXPECT_EQ(janus_spawn(&around, watch_end, &watchers[i]), JANUS_OK);
        lull(&play, &players[i], watchers[i].actor, way_acts[i % WAYS]);
    }
    janus_supervisor_result result = play_end(&play, supervisor, JANUS_OK);
    EXPECT_EQ(janus_nursery_end(&around, NULL), JANUS_OK);
    EXPECT_EQ(result.restarts, 0);
    EXPECT_EQ(play_count(&play, '+', '?'), COUNT);
    for (int i = 0; i < COUNT; i++) {
        if (watchers[i].status == JANUS_STALE) continue; /* the end was faster than the watcher */
        EXPECT_EQ(watchers[i].status, JANUS_OK);
        EXPECT_EQ(watchers[i].end.kind, way_ends[i % WAYS]);
        EXPECT(watchers[i].end.final);
        EXPECT_EQ(watchers[i].end.incarnation, 1);
        if (i % WAYS == 1) EXPECT_EQ(watchers[i].end.error, -100);
    }
}

static int64_t children_end_by_themselves(void *argument)
{
    (void)argument;
    end_while_stopping(false, false);
    end_while_stopping(false, true);
    return 0;
}

TEST("children that end in any way while the supervisor stops are not started again")
{
    stage_run(children_end_by_themselves);
}

static int64_t anonymous_end_by_themselves(void *argument)
{
    (void)argument;
    end_while_stopping(true, true);
    return 0;
}

TEST("anonymous children that end in any way while the supervisor stops keep their own reasons")
{
    stage_run(anonymous_end_by_themselves);
}

/* Failures that race with the beginning of the stop. */

static int64_t fails_beside_the_stop(void *argument)
{
    struct play       play;
    struct player     a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    janus_supervisor *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.max_restarts = 10, .period_ns = AN_HOUR));
    janus_actor first = enter(supervisor, CHILD(&a)), second = enter(supervisor, CHILD(&b));
    (void)argument;
    tell(first, ACT_FAIL, -100);
    tell(second, ACT_END, 0);
    janus_supervisor_result result = play_end(&play, supervisor, JANUS_OK);
    EXPECT(!result.by_itself);
    EXPECT_EQ(play_count(&play, '+', '?'), 2 + (int)result.restarts);
    EXPECT_EQ(play_count(&play, '+', 'a'),
              play_count(&play, '-', 'a') + play_count(&play, 'f', 'a'));
    EXPECT_EQ(play_count(&play, '+', 'b'), play_count(&play, '-', 'b'));
    return 0;
}

TEST("a failure beside the beginning of the stop is restarted once or not, and all end")
{
    stage_run(fails_beside_the_stop);
}

/* S16: the task that stops a child is cancelled by a deadline. */

struct stopping {
    janus_supervisor *supervisor;
    janus_actor       actor;
    janus_status      status;
};

static int64_t stop_it(void *argument)
{
    struct stopping *stopping = argument;
    stopping->status = janus_supervisor_stop_child(stopping->supervisor, stopping->actor);
    return stopping->status == JANUS_CANCELLED ? JANUS_CANCELLED : 0;
}

static int64_t stop_outlives_its_caller(void *argument)
{
    struct play       play;
    struct player     a = {.play = &play, .name = 'a', .end_ns = stage_while()};
    struct stopping   stopping = {.status = JANUS_OK};
    janus_nursery     hurried;
    janus_supervisor *supervisor = play_open(&play, NULL);
    (void)argument;
    stopping.supervisor = supervisor;
    stopping.actor = enter(supervisor, CHILD(&a, .id = "a", .stop_within_ns = JANUS_ANY_TIME));
    EXPECT_EQ(janus_nursery_open(&hurried, JANUS_NURSERY_OPTIONS(.owner_apart = true)), JANUS_OK);
    EXPECT_EQ(janus_spawn(&hurried, stop_it, &stopping), JANUS_OK);
    while (look_at(stopping.actor).state == JANUS_ACTOR_STATE_RUNNING) {
        EXPECT_EQ(janus_yield(), JANUS_OK);
    }
    EXPECT_EQ(janus_nursery_cancel(&hurried), JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&hurried, NULL));
    EXPECT(stopping.status == JANUS_CANCELLED || stopping.status == JANUS_OK);
    EXPECT(!stage_is_virtual() || stopping.status == JANUS_CANCELLED);
    play_await(&play, "-a", 1); /* the stop goes on */
    EXPECT_EQ(janus_supervisor_stop_child(supervisor, stopping.actor), JANUS_OK);
    EXPECT_EQ(look_at(stopping.actor).state, JANUS_ACTOR_STATE_EMPTY);
    (void)play_end(&play, supervisor, JANUS_OK);
    EXPECT_LOG(&play, "+a-a");
    return 0;
}

TEST("if the caller of stop_child is cancelled, the stop goes on and completes")
{
    stage_run(stop_outlives_its_caller);
}

/* S36. */

static uint64_t time_to_stop(bool together)
{
    struct play       play;
    struct player     players[10];
    janus_supervisor *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.stop_together = together));
    for (int i = 0; i < 10; i++) {
        players[i] = (struct player){.play = &play,
                                     .name = (char)('a' + i),
                                     .end_ns = (uint64_t)(i + 1) * stage_while() / 50};
        (void)enter(supervisor, CHILD(&players[i], .stop_within_ns = JANUS_ANY_TIME));
    }
    uint64_t begin = janus_now_ns();
    (void)play_end(&play, supervisor, JANUS_OK);
    EXPECT_EQ(play_count(&play, '-', '?'), 10);
    return janus_now_ns() - begin;
}

static int64_t stops_together(void *argument)
{
    (void)argument;
    uint64_t together = time_to_stop(true), one_by_one = time_to_stop(false);
    EXPECT(together >= 10 * stage_while() / 50);
    EXPECT(one_by_one >= 55 * stage_while() / 50);
    EXPECT(!stage_is_virtual() || together < 10 * stage_while() / 50 + JANUS_SECONDS);
    return 0;
}

TEST("with stop_together the end takes as long as the slowest child, not as all in turn")
{
    stage_run(stops_together);
}
