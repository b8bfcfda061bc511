/* SPDX-License-Identifier: MIT */
/* Which ends a supervisor answers with a restart, and how many restarts are too many. */
#include "stage.h"

#define PATIENT(...) JANUS_SUPERVISOR_OPTIONS(.max_restarts = 10, .period_ns = AN_HOUR, __VA_ARGS__)

/* S20. */

static int64_t permanent(void *argument)
{
    static const enum act acts[] = {ACT_END, ACT_FAIL, ACT_PANIC};
    struct play           play;
    struct player         a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    janus_supervisor     *supervisor = play_open(&play, PATIENT(.name = "permanent"));
    janus_actor actors[2] = {enter(supervisor, CHILD(&a, .id = "a")), enter(supervisor, CHILD(&b))};
    (void)argument;
    for (int i = 0; i < 6; i++) {
        count_up(actors[i % 2]);
        tell(actors[i % 2], acts[i / 2], -100);
        EXPECT_EQ(ask(actors[i % 2]), 0);
        EXPECT_EQ(look_at(actors[i % 2]).incarnation, 2 + i / 2);
    }
    EXPECT_EQ(look_in(supervisor).restarts, 6);
    EXPECT_EQ(look_at(actors[0]).failures, 2);
    (void)play_end(&play, supervisor, JANUS_OK);
    EXPECT_LOG(&play, "+a+b-a+a-b+bfa+afb+b+a+b-b-a");
    return 0;
}

TEST("a PERMANENT child is started again after a normal end, a failure and a panic")
{
    stage_run(permanent);
}

static int64_t stopped_for_good(void *argument)
{
    struct play       play;
    struct player     players[3];
    janus_supervisor *supervisor = play_open(&play, PATIENT(.name = "stopped"));
    (void)argument;
    for (int i = 0; i < 3; i++) {
        struct watcher watcher = {.status = JANUS_OK};
        janus_nursery  n;
        players[i] = (struct player){.play = &play, .name = (char)('a' + i)};
        watcher.actor =
            enter(supervisor,
                  CHILD(&players[i], .restart = (janus_restart)(JANUS_RESTART_PERMANENT + i)));
        EXPECT_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        EXPECT_EQ(janus_spawn(&n, watch_end, &watcher), JANUS_OK);
        EXPECT_EQ(janus_actor_stop(watcher.actor, JANUS_STOP_HOW_AFTER_THIS, JANUS_ANY_TIME),
                  JANUS_OK);
        EXPECT_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        EXPECT(watcher.status == JANUS_OK || watcher.status == JANUS_STALE); /* it was faster */
        if (watcher.status == JANUS_STALE) continue;
        EXPECT_EQ(watcher.end.kind, JANUS_END_KIND_STOPPED);
        EXPECT(watcher.end.final);
    }
    EXPECT_EQ(look_in(supervisor).restarts, 0);
    EXPECT_EQ(look_in(supervisor).running, 0);
    (void)play_end(&play, supervisor, JANUS_OK);
    EXPECT_LOG(&play, "+a-a+b-b+c-c");
    return 0;
}

TEST("janus_actor_stop ends a child for good, whatever its restart type")
{
    stage_run(stopped_for_good);
}

/* S21, S22. */

static int64_t transient_normal(void *argument)
{
    struct play       play;
    struct player     a = {.play = &play, .name = 'a'};
    janus_supervisor *supervisor = play_open(&play, PATIENT(.name = "transient"));
    janus_actor actor = enter(supervisor, CHILD(&a, .id = "a", .restart = JANUS_RESTART_TRANSIENT));
    (void)argument;
    tell(actor, ACT_END, 0);
    until_state(actor, JANUS_ACTOR_STATE_EMPTY);
    EXPECT_EQ(look_at(actor).last.kind, JANUS_END_KIND_NORMAL);
    EXPECT_EQ(look_in(supervisor).restarts, 0);
    EXPECT(same_actor(find(supervisor, "a"), actor));
    EXPECT_EQ(janus_cast(actor, &(struct cue){ACT_COUNT, 1}), JANUS_CLOSED);
    EXPECT_EQ(janus_supervisor_start_child(supervisor, actor), JANUS_OK);
    EXPECT_EQ(janus_supervisor_stop_child(supervisor, actor), JANUS_OK);
    EXPECT_EQ(look_at(actor).last.kind, JANUS_END_KIND_STOPPED);
    EXPECT_EQ(look_in(supervisor).specified, 1);
    (void)play_end(&play, supervisor, JANUS_OK);
    EXPECT_LOG(&play, "+a-a+a-a");
    return 0;
}

TEST("a TRANSIENT child that ended NORMAL or STOPPED is not started again; its place stays")
{
    stage_run(transient_normal);
}

static int64_t transient_failed(void *argument)
{
    struct play       play;
    struct player     a = {.play = &play, .name = 'a'};
    janus_supervisor *supervisor = play_open(&play, PATIENT(.name = "transient"));
    janus_actor       actor = enter(supervisor, CHILD(&a, .restart = JANUS_RESTART_TRANSIENT));
    (void)argument;
    crash(actor);
    EXPECT_EQ(cue(actor, ACT_PANIC, 0, NULL), JANUS_RESTARTED);
    EXPECT_EQ(ask(actor), 0);
    EXPECT_EQ(look_at(actor).incarnation, 3);
    (void)play_end(&play, supervisor, JANUS_OK);
    EXPECT_LOG(&play, "+afa+a+a-a");
    return 0;
}

TEST("a TRANSIENT child that failed or panicked is started again") { stage_run(transient_failed); }

/* S23. */

static int64_t temporary(void *argument)
{
    static const enum act       acts[] = {ACT_END, ACT_FAIL, ACT_PANIC};
    static const janus_end_kind kinds[] = {JANUS_END_KIND_NORMAL, JANUS_END_KIND_FAILED,
                                           JANUS_END_KIND_PANICKED};
    struct play                 play;
    struct player               a = {.play = &play, .name = 'a'};
    janus_supervisor           *supervisor = play_open(&play, PATIENT(.name = "temporary"));
    (void)argument;
    for (int i = 0; i < 6; i++) {
        struct watcher watcher = {.status = JANUS_OK};
        janus_actor    found;
        janus_nursery  n;
        EXPECT_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        watcher.actor = enter(
            supervisor, CHILD(&a, .id = i % 2 ? "a" : NULL, .restart = JANUS_RESTART_TEMPORARY));
        EXPECT_EQ(janus_spawn(&n, watch_end, &watcher), JANUS_OK);
        tell(watcher.actor, acts[i / 2], -100);
        EXPECT_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        EXPECT(watcher.status == JANUS_OK || watcher.status == JANUS_STALE); /* it was faster */
        EXPECT(watcher.status == JANUS_STALE || watcher.end.kind == kinds[i / 2]);
        EXPECT(watcher.status == JANUS_STALE || watcher.end.final);
        EXPECT_EQ(look_in(supervisor).specified, 0);
        EXPECT_EQ(janus_supervisor_find_child(supervisor, "a", &found), JANUS_NOT_FOUND);
    }
    EXPECT_EQ(look_in(supervisor).restarts, 0);
    (void)play_end(&play, supervisor, JANUS_OK);
    EXPECT_EQ(play_count(&play, '+', 'a'), 6);
    return 0;
}

TEST("a TEMPORARY child is never started again, and its specification is gone")
{
    stage_run(temporary);
}

static int64_t await_after_the_end(void *argument)
{
    struct play       play;
    struct player     a = {.play = &play, .name = 'a'};
    janus_end         end = {.kind = JANUS_END_KIND_NEVER};
    janus_supervisor *supervisor = play_open(&play, PATIENT(.name = "late"));
    janus_actor       actor = enter(supervisor, CHILD(&a, .restart = JANUS_RESTART_TEMPORARY));
    (void)argument;
    tell(actor, ACT_FAIL, -321);
    play_await(&play, "fa", 1);
    EXPECT_EQ(janus_actor_await(actor, &end, NEVER), JANUS_OK); /* nothing else uses the place */
    EXPECT_EQ(end.kind, JANUS_END_KIND_FAILED);
    EXPECT_EQ(end.error, -321);
    (void)play_end(&play, supervisor, JANUS_OK);
    return 0;
}

TEST("an await that comes late says how the actor ended, while its place is not used again")
{
    stage_run(await_after_the_end);
}

/* The mailbox outlives the incarnation. */

static int64_t keeps_mail(void *argument)
{
    struct play       play;
    struct player     a = {.play = &play, .name = 'a'};
    janus_supervisor *supervisor = play_open(&play, PATIENT(.name = "mail"));
    janus_actor       actor = enter(supervisor, CHILD(&a));
    (void)argument;
    tell(actor, ACT_COUNT, 100);
    tell(actor, ACT_FAIL, -100);
    for (int i = 0; i < 5; i++) tell(actor, ACT_COUNT, 1);
    EXPECT_EQ(ask(actor), 5); /* the failed message does not come again, the others do */
    EXPECT_EQ(look_at(actor).incarnation, 2);
    janus_supervisor_result result = play_end(&play, supervisor, JANUS_OK);
    EXPECT_EQ(result.handled, 8);
    EXPECT_EQ(result.dead, 0);
    return 0;
}

TEST("messages that were not handled yet outlive a restart, and the failed one does not return")
{
    stage_run(keeps_mail);
}

/* A sender that waits for room. */

struct sending {
    janus_actor  actor;
    janus_status status;
};

static int64_t send_one_more(void *argument)
{
    struct sending *sending = argument;
    sending->status = janus_cast(sending->actor, &(struct cue){ACT_COUNT, 1});
    return 0;
}

static int64_t sender_waits_over_a_restart(void *argument)
{
    static const janus_actor_options narrow = {.struct_bytes = sizeof narrow, .max_messages = 2};
    struct play                      play;
    struct player                    a = {.play = &play, .name = 'a'};
    struct sending                   sending = {.status = JANUS_OK};
    janus_nursery                    n;
    janus_supervisor                *supervisor = play_open(&play, PATIENT(.name = "narrow"));
    (void)argument;
    sending.actor = enter(supervisor, CHILD(&a, .options = &narrow));
    EXPECT_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    tell(sending.actor, ACT_FAIL, -100);
    tell(sending.actor, ACT_COUNT, 1); /* the mailbox may be full now */
    EXPECT_EQ(janus_spawn(&n, send_one_more, &sending), JANUS_OK);
    EXPECT_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    EXPECT_EQ(sending.status, JANUS_OK);
    EXPECT_EQ(ask(sending.actor), 2);
    (void)play_end(&play, supervisor, JANUS_OK);
    return 0;
}

TEST("a sender that waits for room sends its message although the actor is started again")
{
    stage_run(sender_waits_over_a_restart);
}

/* S26: here a few periods; supervisor_scale_test has ten thousand. */

static int64_t one_in_each_period(void *argument)
{
    const uint64_t    period = stage_is_virtual() ? 5 * JANUS_SECONDS : JANUS_MS;
    struct play       play;
    struct player     a = {.play = &play, .name = 'a'};
    janus_supervisor *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.max_restarts = 1, .period_ns = period));
    janus_actor actor = enter(supervisor, CHILD(&a));
    (void)argument;
    for (int i = 0; i < 20; i++) {
        crash(actor);
        EXPECT_EQ(ask(actor), 0);
        EXPECT_EQ(janus_sleep(period + 1), JANUS_OK);
    }
    janus_supervisor_result result = play_end(&play, supervisor, JANUS_OK);
    EXPECT_EQ(result.restarts, 20);
    return 0;
}

TEST("one restart in each period goes on for ever") { stage_run(one_in_each_period); }

static int64_t period_slides(void *argument)
{
    struct play       play;
    struct player     a = {.play = &play, .name = 'a'};
    janus_supervisor *supervisor = play_open(
        &play, JANUS_SUPERVISOR_OPTIONS(.max_restarts = 2, .period_ns = 10 * JANUS_SECONDS));
    janus_actor actor = enter(supervisor, CHILD(&a));
    (void)argument;
    for (int i = 0; i < 10; i++) { /* two within any 10 s, three within 11 s */
        crash(actor);
        EXPECT_EQ(ask(actor), 0);
        EXPECT_EQ(janus_sleep(i % 2 ? 9 * JANUS_SECONDS : 2 * JANUS_SECONDS), JANUS_OK);
    }
    crash(actor);
    EXPECT_EQ(ask(actor), 0);
    EXPECT_EQ(janus_sleep(2 * JANUS_SECONDS), JANUS_OK);
    crash(actor);
    EXPECT_EQ(ask(actor), 0);
    EXPECT_EQ(janus_sleep(7 * JANUS_SECONDS), JANUS_OK); /* the third within 9 s */
    EXPECT_EQ(cue(actor, ACT_FAIL, -100, NULL), JANUS_GONE);
    EXPECT_EQ(janus_supervisor_wait(supervisor, NEVER), JANUS_OK);
    (void)play_end(&play, supervisor, JANUS_TOO_OFTEN);
    return 0;
}

TEST("the period slides: only restarts within the last period_ns count")
{
    stage_run_simulated(period_slides);
}

/* S27. */

static int64_t third_failure_ends(void *argument)
{
    struct play       play;
    struct player     a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    struct player     c = {.play = &play, .name = 'c'};
    janus_supervisor *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.max_restarts = 2, .period_ns = AN_HOUR));
    janus_actor first = enter(supervisor, CHILD(&a)), second = enter(supervisor, CHILD(&b));
    janus_actor third = enter(supervisor, CHILD(&c));
    (void)argument;
    count_up(first);
    count_up(third);
    for (int i = 0; i < 2; i++) {
        count_up(second);
        crash(second);
        EXPECT_EQ(ask(second), 0);
        EXPECT_EQ(ask(first), 1);
        EXPECT_EQ(ask(third), 1);
    }
    EXPECT_EQ(cue(second, ACT_FAIL, -333, NULL), JANUS_GONE);
    EXPECT_EQ(janus_supervisor_wait(supervisor, NEVER), JANUS_OK);
    janus_supervisor_result result = play_end(&play, supervisor, JANUS_TOO_OFTEN);
    EXPECT(result.by_itself);
    EXPECT_EQ(result.restarts, 2);
    EXPECT_EQ(result.cause.kind, JANUS_END_KIND_FAILED);
    EXPECT_EQ(result.cause.error, -333);
    EXPECT_STR(result.child, "player");
    EXPECT_EQ(janus_yield(), JANUS_OK);
    EXPECT_LOG(&play, "+a+b+cfb+bfb+bfb-c-a");
    return 0;
}

TEST("ONE_FOR_ONE renews only the failed child, and one failure too many ends the supervisor")
{
    stage_run(third_failure_ends);
}

static int64_t first_is_too_many(void *argument)
{
    struct play       play;
    struct player     a = {.play = &play, .name = 'a'};
    janus_supervisor *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.max_restarts = JANUS_NO_RESTARTS));
    janus_actor actor = enter(supervisor, CHILD(&a, .id = "a"));
    (void)argument;
    EXPECT_EQ(cue(actor, ACT_FAIL, -100, NULL), JANUS_GONE);
    EXPECT_EQ(janus_supervisor_wait(supervisor, NEVER), JANUS_OK);
    janus_supervisor_result result = play_end(&play, supervisor, JANUS_TOO_OFTEN);
    EXPECT_EQ(result.restarts, 0);
    EXPECT_STR(result.child, "a");
    EXPECT_LOG(&play, "+afa");
    return 0;
}

TEST("with JANUS_NO_RESTARTS the first failure ends the supervisor")
{
    stage_run(first_is_too_many);
}

static int64_t giving_up_wakes_the_owner(void *argument)
{
    struct play       play;
    struct player     a = {.play = &play, .name = 'a'};
    janus_supervisor *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.max_restarts = JANUS_NO_RESTARTS));
    (void)argument;
    tell(enter(supervisor, CHILD(&a)), ACT_FAIL, -100);
    EXPECT_EQ(janus_sleep(AN_HOUR / 2), JANUS_CANCELLED); /* the task is inside the scope */
    EXPECT_EQ(janus_yield(), JANUS_CANCELLED);
    (void)play_end(&play, supervisor, JANUS_TOO_OFTEN);
    EXPECT_EQ(janus_yield(), JANUS_OK);
    EXPECT_LOG(&play, "+afa");
    return 0;
}

TEST("a supervisor that gives up cancels the scope of its task, until the task has ended it")
{
    stage_run(giving_up_wakes_the_owner);
}

/* S28. */

static int64_t init_keeps_failing(void *argument)
{
    struct play       play;
    struct player     a = {.play = &play, .name = 'a'};
    struct player     b = {.play = &play, .name = 'b', .inits = "of"};
    struct player     c = {.play = &play, .name = 'c'};
    janus_supervisor *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.max_restarts = 3, .period_ns = AN_HOUR));
    (void)argument;
    (void)enter(supervisor, CHILD(&a));
    janus_actor actor = enter(supervisor, CHILD(&b, .id = "b"));
    (void)enter(supervisor, CHILD(&c));
    tell(actor, ACT_FAIL, -77);
    EXPECT_EQ(janus_supervisor_wait(supervisor, NEVER), JANUS_OK);
    janus_supervisor_result result = play_end(&play, supervisor, JANUS_TOO_OFTEN);
    EXPECT_EQ(result.restarts, 3);
    EXPECT_LOG(&play, "+a+b+cfb!b!b!b-c-a");
    return 0;
}

TEST("an init that fails at each restart uses up max_restarts; the siblings are stopped")
{
    stage_run(init_keeps_failing);
}

/* Two failures at once are two restarts, each of its own child. */

static int64_t two_fail_at_once(void *argument)
{
    struct play       play;
    struct player     a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    janus_supervisor *supervisor = play_open(&play, PATIENT(.name = "two"));
    janus_actor       first = enter(supervisor, CHILD(&a)), second = enter(supervisor, CHILD(&b));
    (void)argument;
    tell(first, ACT_FAIL, -100);
    tell(second, ACT_FAIL, -100);
    EXPECT_EQ(ask(first), 0);
    EXPECT_EQ(ask(second), 0);
    EXPECT_EQ(look_at(first).incarnation, 2);
    EXPECT_EQ(look_at(second).incarnation, 2);
    janus_supervisor_result result = play_end(&play, supervisor, JANUS_OK);
    EXPECT_EQ(result.restarts, 2);
    return 0;
}

TEST("two children that fail at once are each started again once") { stage_run(two_fail_at_once); }

/* Delays double, and are reset. */

static int64_t delays_double(void *argument)
{
    struct play       play;
    struct player     a = {.play = &play, .name = 'a'};
    janus_supervisor *supervisor = play_open(
        &play, JANUS_SUPERVISOR_OPTIONS(.max_restarts = 100, .period_ns = AN_HOUR,
                                        .delay_ns = 10 * JANUS_MS, .max_delay_ns = 80 * JANUS_MS,
                                        .healthy_ns = 5 * JANUS_SECONDS));
    janus_actor    actor = enter(supervisor, CHILD(&a));
    const uint64_t delays[] = {10, 20, 40, 80, 80, 10, 20}; /* ms */
    (void)argument;
    for (int i = 0; i < 7; i++) {
        if (i == 5) EXPECT_EQ(janus_sleep(6 * JANUS_SECONDS), JANUS_OK);
        uint64_t begin = janus_now_ns();
        crash(actor);
        EXPECT_EQ(ask(actor), 0);
        uint64_t took = janus_now_ns() - begin, delay = delays[i] * JANUS_MS;
        EXPECT(took >= delay - delay / 10);
        EXPECT(took <= delay + delay / 5);
    }
    (void)play_end(&play, supervisor, JANUS_OK);
    return 0;
}

TEST("the delay doubles with each failure up to max_delay_ns, and is short again after healthy_ns")
{
    stage_run_simulated(delays_double);
}
