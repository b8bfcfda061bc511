/* SPDX-License-Identifier: MIT */
/* How supervisors stop their children: in order, in time, and all of them. */
#include "play.h"

/* S47. */

static int64_t stops_in_reverse(void *argument)
{
    struct play       play;
    struct role       players[5];
    janus_supervisor *supervisor = play_open(&play, NULL);
    (void)argument;
    for (int i = 0; i < 5; i++) {
        players[i] = (struct role){.play = &play, .name = (char)('a' + i)};
        (void)add_child(supervisor,
                        CHILD(&players[i], .id = i % 2 ? NULL : &"a\0b\0c\0d\0e"[2 * i]));
    }
    (void)play_end(&play, supervisor, JANUS_OK);
    MUST_LOG(&play, "+a+b+c+d+e-e-d-c-b-a");
    return 0;
}

TEST("children start in the order of adding and end in reverse, named and anonymous alike")
{
    PLAY(stops_in_reverse, .panics = true);
}

/* Messages that lie in a mailbox are handled before the end. */

static int64_t handles_what_is_queued(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    janus_supervisor *supervisor = play_open(&play, NULL);
    janus_actor first = add_child(supervisor, CHILD(&a)), second = add_child(supervisor, CHILD(&b));
    (void)argument;
    for (int i = 0; i < 10; i++) {
        tell(first, act_add, NULL, 1);
        tell(second, act_add, NULL, 1);
    }
    janus_supervisor_result result = play_end(&play, supervisor, JANUS_OK);
    MUST_EQ(result.sent, 20);
    MUST_EQ(result.handled, 20);
    MUST_LOG(&play, "+a+b-b-a");
    return 0;
}

TEST("a supervisor that ends lets its actors handle what is queued")
{
    PLAY(handles_what_is_queued, .panics = true);
}

/* S11. */

static int64_t waits_any_time(void *argument)
{
    struct play                    play;
    struct role                    a = {.play = &play, .name = 'a', .end_ns = play_while()};
    struct role                    b = {.play = &play, .name = 'b', .end_ns = play_while()};
    const janus_child              below = *CHILD(&b, .stop_within_ns = JANUS_ANY_TIME);
    const janus_supervisor_options inner = {
        .struct_bytes = sizeof inner, .children = &below, .child_count = 1};
    janus_supervisor *supervisor = play_open(&play, NULL);
    uint64_t          begin;
    (void)argument;
    (void)add_child(supervisor, CHILD(&a, .stop_within_ns = JANUS_ANY_TIME));
    (void)add_child(supervisor, JANUS_CHILD(.id = "inner", .supervisor = &inner)); /* its default */
    begin = janus_now_ns();
    (void)play_end(&play, supervisor, JANUS_OK);
    MUST(janus_now_ns() - begin >= 2 * play_while());
    MUST_LOG(&play, "+a+b-b-a"); /* neither was cancelled */
    return 0;
}

TEST("with JANUS_ANY_TIME an actor, and by default a supervisor, may take any time to end")
{
    PLAY(waits_any_time, .panics = true);
}

/* S12. */

static void stop_one_that_sleeps(const char *id)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    janus_supervisor *supervisor = play_open(&play, NULL);
    (void)add_child(supervisor, CHILD(&a, .id = id, .stop_within_ns = AN_HOUR / 2));
    janus_actor sleeper = add_child(supervisor, CHILD(&b, .stop_within_ns = 10 * JANUS_MS));
    lull(&play, &b, sleeper, act_obey);
    uint64_t begin = janus_now_ns();
    (void)play_end(&play, supervisor, JANUS_OK);
    uint64_t took = janus_now_ns() - begin;
    MUST(took >= 10 * JANUS_MS);
    MUST(!play_is_virtual() || took < JANUS_SECONDS);
    MUST_LOG(&play, "+a+bzbcb-a");
    MUST(a.last.kind == JANUS_END_KIND_NORMAL || a.last.kind == JANUS_END_KIND_STOPPED);
    MUST_EQ(b.last.kind, JANUS_END_KIND_CANCELLED);
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
    PLAY(sleeps_too_long, .panics = true);
}

/* S13. */

static void cancel_ten(bool together)
{
    struct play       play;
    struct role       players[10];
    janus_supervisor *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.stop_together = together));
    for (int i = 0; i < 10; i++) {
        players[i] = (struct role){.play = &play, .name = (char)('a' + i)};
        janus_actor actor =
            add_child(supervisor, CHILD(&players[i], .stop_within_ns = JANUS_NO_TIME));
        lull(&play, &players[i], actor, act_obey);
    }
    uint64_t begin = janus_now_ns();
    (void)play_end(&play, supervisor, JANUS_OK);
    MUST(!play_is_virtual() || janus_now_ns() - begin < JANUS_SECONDS);
    MUST_EQ(play_count(&play, '+', '?'), 10);
    MUST_EQ(play_count(&play, 'c', '?'), 10);
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
    PLAY(cancels_at_once, .panics = true);
}

/* S14, S15: children that end by themselves while the supervisor stops. */

enum { WAYS = 4 };

static play_act *const way_acts[WAYS] = {act_end, act_return, act_panic, act_obey};

static const janus_end_kind way_ends[WAYS] = {JANUS_END_KIND_NORMAL, JANUS_END_KIND_FAILED,
                                              JANUS_END_KIND_PANICKED, JANUS_END_KIND_CANCELLED};

static void end_while_stopping(bool anonymous, bool together)
{
    enum { COUNT = 3 * WAYS };
    struct play       play;
    struct role       players[COUNT];
    struct watcher    watchers[COUNT];
    char              ids[COUNT][2];
    janus_nursery     around;
    janus_supervisor *supervisor = NULL;
    MUST_EQ(janus_nursery_open(&around, NULL), JANUS_OK);
    supervisor = play_open(&play, JANUS_SUPERVISOR_OPTIONS(.stop_together = together));
    for (int i = 0; i < COUNT; i++) {
        players[i] = (struct role){.play = &play, .name = (char)('a' + i)};
        memcpy(ids[i], (char[2]){(char)('a' + i), '\0'}, 2);
        watchers[i].actor = add_child(
            supervisor,
            CHILD(&players[i], .id = anonymous ? NULL : ids[i], .stop_within_ns = JANUS_NO_TIME,
                  .restart = (janus_restart)(JANUS_RESTART_PERMANENT + i / WAYS)));
        MUST_EQ(janus_spawn(&around, watch_end, &watchers[i]), JANUS_OK);
        lull(&play, &players[i], watchers[i].actor, way_acts[i % WAYS]);
    }
    janus_supervisor_result result = play_end(&play, supervisor, JANUS_OK);
    MUST_EQ(janus_nursery_end(&around, NULL), JANUS_OK);
    MUST_EQ(result.restarts, 0);
    MUST_EQ(play_count(&play, '+', '?'), COUNT);
    for (int i = 0; i < COUNT; i++) {
        if (watchers[i].status == JANUS_STALE) continue; /* the end was faster than the watcher */
        MUST_EQ(watchers[i].status, JANUS_OK);
        MUST_EQ(watchers[i].end.kind, way_ends[i % WAYS]);
        MUST(watchers[i].end.final);
        MUST_EQ(watchers[i].end.incarnation, 1);
        if (i % WAYS == 1) MUST_EQ(watchers[i].end.error, -100);
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
    PLAY(children_end_by_themselves, .panics = true);
}

static int64_t anonymous_end_by_themselves(void *argument)
{
    (void)argument;
    end_while_stopping(true, true);
    return 0;
}

TEST("anonymous children that end in any way while the supervisor stops keep their own reasons")
{
    PLAY(anonymous_end_by_themselves, .panics = true);
}

/* Failures that race with the beginning of the stop. */

static int64_t fails_beside_the_stop(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    janus_supervisor *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.max_restarts = 10, .period_ns = AN_HOUR));
    janus_actor first = add_child(supervisor, CHILD(&a)), second = add_child(supervisor, CHILD(&b));
    (void)argument;
    tell(first, act_return, NULL, -100);
    tell(second, act_end, NULL, 0);
    janus_supervisor_result result = play_end(&play, supervisor, JANUS_OK);
    MUST(!result.by_itself);
    MUST_EQ(play_count(&play, '+', '?'), 2 + (int)result.restarts);
    MUST_EQ(play_count(&play, '+', 'a'), play_count(&play, '-', 'a') + play_count(&play, 'f', 'a'));
    MUST_EQ(play_count(&play, '+', 'b'), play_count(&play, '-', 'b'));
    return 0;
}

TEST("a failure beside the beginning of the stop is restarted once or not, and all end")
{
    PLAY(fails_beside_the_stop, .panics = true);
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
    struct role       a = {.play = &play, .name = 'a', .end_ns = play_while()};
    struct stopping   stopping = {.status = JANUS_OK};
    janus_nursery     hurried;
    janus_supervisor *supervisor = play_open(&play, NULL);
    (void)argument;
    stopping.supervisor = supervisor;
    stopping.actor = add_child(supervisor, CHILD(&a, .id = "a", .stop_within_ns = JANUS_ANY_TIME));
    MUST_EQ(janus_nursery_open(&hurried, JANUS_NURSERY_OPTIONS(.owner_apart = true)), JANUS_OK);
    MUST_EQ(janus_spawn(&hurried, stop_it, &stopping), JANUS_OK);
    while (look(stopping.actor).state == JANUS_ACTOR_STATE_RUNNING) {
        MUST_EQ(janus_yield(), JANUS_OK);
    }
    MUST_EQ(janus_nursery_cancel(&hurried), JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&hurried, NULL));
    MUST(stopping.status == JANUS_CANCELLED || stopping.status == JANUS_OK);
    MUST(!play_is_virtual() || stopping.status == JANUS_CANCELLED);
    play_await(&play, "-a", 1); /* the stop goes on */
    MUST_EQ(janus_supervisor_stop_child(supervisor, stopping.actor), JANUS_OK);
    MUST_EQ(look(stopping.actor).state, JANUS_ACTOR_STATE_EMPTY);
    (void)play_end(&play, supervisor, JANUS_OK);
    MUST_LOG(&play, "+a-a");
    return 0;
}

TEST("if the caller of stop_child is cancelled, the stop goes on and completes")
{
    PLAY(stop_outlives_its_caller, .panics = true);
}

/* S16: the time of the caller, and that of the children. */

static int64_t waits_in_vain(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    janus_supervisor *supervisor = play_open(&play, NULL);
    janus_actor       first = add_child(supervisor, CHILD(&a));
    janus_actor       last = add_child(supervisor, CHILD(&b, .stop_within_ns = 4 * JANUS_SECONDS));
    (void)argument;
    lull(&play, &b, last, act_obey);
    MUST_EQ(janus_supervisor_stop(supervisor), JANUS_OK);
    MUST_EQ(janus_supervisor_stop(supervisor), JANUS_OK);
    MUST_EQ(janus_supervisor_wait(supervisor, janus_now_ns() + JANUS_SECONDS), JANUS_DEADLINE);
    MUST_EQ(janus_supervisor_add(supervisor, CHILD(&a), NULL), JANUS_CLOSED);
    MUST_EQ(look(first).state, JANUS_ACTOR_STATE_RUNNING); /* the later one comes first */
    MUST_EQ(janus_supervisor_wait(supervisor, 0), JANUS_OK);
    MUST_EQ(look_in(supervisor).running, 0);
    (void)play_end(&play, supervisor, JANUS_OK);
    MUST_LOG(&play, "+a+bzbcb-a");
    return 0;
}

TEST("a deadline of the wait for the end passes, and the stop goes on and completes")
{
    PLAY(waits_in_vain, .timed = true);
}

static int64_t act_stop_all(struct self *self, janus_letter *letter, const struct line *line)
{
    (void)self, (void)letter;
    MUST_EQ(janus_supervisor_stop(line->argument), JANUS_OK);
    return JANUS_ACTOR_GO_ON;
}

static int64_t stopped_from_inside(void *argument)
{
    struct play             play;
    struct role             a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    janus_supervisor       *supervisor = play_open(&play, NULL);
    janus_actor             first = add_child(supervisor, CHILD(&a));
    janus_supervisor_result result;
    (void)argument;
    (void)add_child(supervisor, CHILD(&b));
    tell(first, act_stop_all, supervisor, 0);
    MUST_EQ(janus_supervisor_wait(supervisor, 0), JANUS_OK);
    result = play_end(&play, supervisor, JANUS_OK);
    MUST(!result.by_itself);
    MUST_EQ(result.dead, 0);
    MUST_LOG(&play, "+a+b-b-a");
    return 0;
}

TEST("a child can begin the end of its supervisor") { PLAY(stopped_from_inside); }

/* S36. */

static uint64_t time_to_stop(bool together)
{
    struct play       play;
    struct role       players[10];
    janus_supervisor *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.stop_together = together));
    for (int i = 0; i < 10; i++) {
        players[i] = (struct role){.play = &play,
                                   .name = (char)('a' + i),
                                   .end_ns = (uint64_t)(i + 1) * play_while() / 50};
        (void)add_child(supervisor, CHILD(&players[i], .stop_within_ns = JANUS_ANY_TIME));
    }
    uint64_t begin = janus_now_ns();
    (void)play_end(&play, supervisor, JANUS_OK);
    MUST_EQ(play_count(&play, '-', '?'), 10);
    return janus_now_ns() - begin;
}

static int64_t stops_together(void *argument)
{
    (void)argument;
    uint64_t together = time_to_stop(true), one_by_one = time_to_stop(false);
    MUST(together >= 10 * play_while() / 50);
    MUST(one_by_one >= 55 * play_while() / 50);
    MUST(!play_is_virtual() || together < 10 * play_while() / 50 + JANUS_SECONDS);
    return 0;
}

TEST("with stop_together the end takes as long as the slowest child, not as all in turn")
{
    PLAY(stops_together, .panics = true);
}
