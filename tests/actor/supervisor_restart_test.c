/* SPDX-License-Identifier: MIT */
/* Which ends a supervisor answers with a restart, and how many restarts are too many. */
#include "play.h"

#define PATIENT(...) JANUS_SUPERVISOR_OPTIONS(.max_restarts = 10, .period_ns = AN_HOUR, __VA_ARGS__)

/* S20. */

static int64_t permanent(void *argument)
{
    static play_act *const acts[] = {act_end, act_return, act_panic};
    struct play            play;
    struct role            a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    janus_supervisor      *supervisor = play_open(&play, PATIENT(.name = "permanent"));
    janus_actor            actors[2] = {add_child(supervisor, CHILD(&a, .id = "a")),
                                        add_child(supervisor, CHILD(&b))};
    (void)argument;
    for (int i = 0; i < 6; i++) {
        count_up(actors[i % 2]);
        tell(actors[i % 2], acts[i / 2], NULL, -100);
        MUST_EQ(settle(actors[i % 2]), 0);
        MUST_EQ(look(actors[i % 2]).incarnation, 2 + i / 2);
    }
    MUST_EQ(look_in(supervisor).restarts, 6);
    MUST_EQ(look(actors[0]).failures, 2);
    (void)play_end(&play, supervisor, JANUS_OK);
    MUST_LOG(&play, "+a+b-a+a-b+bfa+afb+b+a+b-b-a");
    return 0;
}

TEST("a PERMANENT child is started again after a normal end, a failure and a panic")
{
    PLAY(permanent, .panics = true);
}

static int64_t stopped_for_good(void *argument)
{
    struct play       play;
    struct role       players[3];
    janus_supervisor *supervisor = play_open(&play, PATIENT(.name = "stopped"));
    (void)argument;
    for (int i = 0; i < 3; i++) {
        struct watcher watcher = {.status = JANUS_OK};
        janus_nursery  n;
        players[i] = (struct role){.play = &play, .name = (char)('a' + i)};
        watcher.actor =
            add_child(supervisor,
                      CHILD(&players[i], .restart = (janus_restart)(JANUS_RESTART_PERMANENT + i)));
        MUST_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        MUST_EQ(janus_spawn(&n, watch_end, &watcher), JANUS_OK);
        MUST_EQ(janus_actor_stop(watcher.actor, JANUS_STOP_HOW_AFTER_THIS, JANUS_ANY_TIME),
                JANUS_OK);
        MUST_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        MUST(watcher.status == JANUS_OK || watcher.status == JANUS_STALE); /* it was faster */
        if (watcher.status == JANUS_STALE) continue;
        MUST_EQ(watcher.end.kind, JANUS_END_KIND_STOPPED);
        MUST(watcher.end.final);
    }
    MUST_EQ(look_in(supervisor).restarts, 0);
    MUST_EQ(look_in(supervisor).running, 0);
    (void)play_end(&play, supervisor, JANUS_OK);
    MUST_LOG(&play, "+a-a+b-b+c-c");
    return 0;
}

TEST("janus_actor_stop ends a child for good, whatever its restart type")
{
    PLAY(stopped_for_good, .panics = true);
}

/* S21, S22. */

static int64_t transient_normal(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'};
    janus_supervisor *supervisor = play_open(&play, PATIENT(.name = "transient"));
    janus_actor       actor =
        add_child(supervisor, CHILD(&a, .id = "a", .restart = JANUS_RESTART_TRANSIENT));
    (void)argument;
    tell(actor, act_end, NULL, 0);
    until_state(actor, JANUS_ACTOR_STATE_EMPTY);
    MUST_EQ(look(actor).last.kind, JANUS_END_KIND_NORMAL);
    MUST_EQ(look_in(supervisor).restarts, 0);
    MUST(same_actor(find(supervisor, "a"), actor));
    MUST_EQ(say(actor, act_add, NULL, 1), JANUS_CLOSED);
    MUST_EQ(janus_supervisor_start_child(supervisor, actor), JANUS_OK);
    MUST_EQ(janus_supervisor_stop_child(supervisor, actor), JANUS_OK);
    MUST_EQ(look(actor).last.kind, JANUS_END_KIND_STOPPED);
    MUST_EQ(look_in(supervisor).specified, 1);
    (void)play_end(&play, supervisor, JANUS_OK);
    MUST_LOG(&play, "+a-a+a-a");
    return 0;
}

TEST("a TRANSIENT child that ended NORMAL or STOPPED is not started again; its place stays")
{
    PLAY(transient_normal, .panics = true);
}

static int64_t transient_failed(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'};
    janus_supervisor *supervisor = play_open(&play, PATIENT(.name = "transient"));
    janus_actor       actor = add_child(supervisor, CHILD(&a, .restart = JANUS_RESTART_TRANSIENT));
    (void)argument;
    crash(actor);
    MUST_EQ(request(actor, act_panic, NULL, 0, NULL), JANUS_RESTARTED);
    MUST_EQ(settle(actor), 0);
    MUST_EQ(look(actor).incarnation, 3);
    (void)play_end(&play, supervisor, JANUS_OK);
    MUST_LOG(&play, "+afa+a+a-a");
    return 0;
}

TEST("a TRANSIENT child that failed or panicked is started again")
{
    PLAY(transient_failed, .panics = true);
}

/* S23. */

static int64_t temporary(void *argument)
{
    static play_act *const      acts[] = {act_end, act_return, act_panic};
    static const janus_end_kind kinds[] = {JANUS_END_KIND_NORMAL, JANUS_END_KIND_FAILED,
                                           JANUS_END_KIND_PANICKED};
    struct play                 play;
    struct role                 a = {.play = &play, .name = 'a'};
    janus_supervisor           *supervisor = play_open(&play, PATIENT(.name = "temporary"));
    (void)argument;
    for (int i = 0; i < 6; i++) {
        struct watcher watcher = {.status = JANUS_OK};
        janus_actor    found;
        janus_nursery  n;
        MUST_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        watcher.actor = add_child(
            supervisor, CHILD(&a, .id = i % 2 ? "a" : NULL, .restart = JANUS_RESTART_TEMPORARY));
        MUST_EQ(janus_spawn(&n, watch_end, &watcher), JANUS_OK);
        tell(watcher.actor, acts[i / 2], NULL, -100);
        MUST_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        MUST(watcher.status == JANUS_OK || watcher.status == JANUS_STALE); /* it was faster */
        MUST(watcher.status == JANUS_STALE || watcher.end.kind == kinds[i / 2]);
        MUST(watcher.status == JANUS_STALE || watcher.end.final);
        MUST_EQ(look_in(supervisor).specified, 0);
        MUST_EQ(janus_supervisor_find_child(supervisor, "a", &found), JANUS_NOT_FOUND);
    }
    MUST_EQ(look_in(supervisor).restarts, 0);
    (void)play_end(&play, supervisor, JANUS_OK);
    MUST_EQ(play_count(&play, '+', 'a'), 6);
    return 0;
}

TEST("a TEMPORARY child is never started again, and its specification is gone")
{
    PLAY(temporary, .panics = true);
}

static int64_t await_after_the_end(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'};
    janus_end         end = {.kind = JANUS_END_KIND_NEVER};
    janus_supervisor *supervisor = play_open(&play, PATIENT(.name = "late"));
    janus_actor       actor = add_child(supervisor, CHILD(&a, .restart = JANUS_RESTART_TEMPORARY));
    (void)argument;
    tell(actor, act_return, NULL, -321);
    play_await(&play, "fa", 1);
    MUST_EQ(janus_actor_await(actor, &end, NEVER), JANUS_OK); /* nothing else uses the place */
    MUST_EQ(end.kind, JANUS_END_KIND_FAILED);
    MUST_EQ(end.error, -321);
    (void)play_end(&play, supervisor, JANUS_OK);
    return 0;
}

TEST("an await that comes late says how the actor ended, while its place is not used again")
{
    PLAY(await_after_the_end, .panics = true);
}

/* The mailbox outlives the incarnation. */

static int64_t keeps_mail(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'};
    janus_supervisor *supervisor = play_open(&play, PATIENT(.name = "mail"));
    janus_actor       actor = add_child(supervisor, CHILD(&a));
    (void)argument;
    tell(actor, act_add, NULL, 100);
    tell(actor, act_return, NULL, -100);
    for (int i = 0; i < 5; i++) tell(actor, act_add, NULL, 1);
    MUST_EQ(settle(actor), 5); /* the failed message does not come again, the others do */
    MUST_EQ(look(actor).incarnation, 2);
    janus_supervisor_result result = play_end(&play, supervisor, JANUS_OK);
    MUST_EQ(result.handled, 8);
    MUST_EQ(result.dead, 0);
    return 0;
}

TEST("messages that were not handled yet outlive a restart, and the failed one does not return")
{
    PLAY(keeps_mail, .panics = true);
}

/* A sender that waits for room. */

struct sending {
    janus_actor  actor;
    janus_status status;
};

static int64_t send_one_more(void *argument)
{
    struct sending *sending = argument;
    sending->status = say(sending->actor, act_add, NULL, 1);
    return 0;
}

static int64_t sender_waits_over_a_restart(void *argument)
{
    static const janus_actor_options narrow = {.struct_bytes = sizeof narrow, .max_messages = 2};
    struct play                      play;
    struct role                      a = {.play = &play, .name = 'a'};
    struct sending                   sending = {.status = JANUS_OK};
    janus_nursery                    n;
    janus_supervisor                *supervisor = play_open(&play, PATIENT(.name = "narrow"));
    (void)argument;
    sending.actor = add_child(supervisor, CHILD(&a, .options = &narrow));
    MUST_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    tell(sending.actor, act_return, NULL, -100);
    tell(sending.actor, act_add, NULL, 1); /* the mailbox may be full now */
    MUST_EQ(janus_spawn(&n, send_one_more, &sending), JANUS_OK);
    MUST_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    MUST_EQ(sending.status, JANUS_OK);
    MUST_EQ(settle(sending.actor), 2);
    (void)play_end(&play, supervisor, JANUS_OK);
    return 0;
}

TEST("a sender that waits for room sends its message although the actor is started again")
{
    PLAY(sender_waits_over_a_restart, .panics = true);
}

/* S26: here a few periods; supervisor_scale_test has ten thousand. */

static int64_t one_in_each_period(void *argument)
{
    const uint64_t    period = play_is_virtual() ? 5 * JANUS_SECONDS : JANUS_MS;
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'};
    janus_supervisor *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.max_restarts = 1, .period_ns = period));
    janus_actor actor = add_child(supervisor, CHILD(&a));
    (void)argument;
    for (int i = 0; i < 20; i++) {
        crash(actor);
        MUST_EQ(settle(actor), 0);
        MUST_EQ(janus_sleep(period + 1), JANUS_OK);
    }
    janus_supervisor_result result = play_end(&play, supervisor, JANUS_OK);
    MUST_EQ(result.restarts, 20);
    return 0;
}

TEST("one restart in each period goes on for ever") { PLAY(one_in_each_period, .panics = true); }

static int64_t period_slides(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'};
    janus_supervisor *supervisor = play_open(
        &play, JANUS_SUPERVISOR_OPTIONS(.max_restarts = 2, .period_ns = 10 * JANUS_SECONDS));
    janus_actor actor = add_child(supervisor, CHILD(&a));
    (void)argument;
    for (int i = 0; i < 10; i++) { /* two within any 10 s, three within 11 s */
        crash(actor);
        MUST_EQ(settle(actor), 0);
        MUST_EQ(janus_sleep(i % 2 ? 9 * JANUS_SECONDS : 2 * JANUS_SECONDS), JANUS_OK);
    }
    crash(actor);
    MUST_EQ(settle(actor), 0);
    MUST_EQ(janus_sleep(2 * JANUS_SECONDS), JANUS_OK);
    crash(actor);
    MUST_EQ(settle(actor), 0);
    MUST_EQ(janus_sleep(7 * JANUS_SECONDS), JANUS_OK); /* the third within 9 s */
    MUST_EQ(request(actor, act_return, NULL, -100, NULL), JANUS_GONE);
    MUST_EQ(janus_supervisor_wait(supervisor, NEVER), JANUS_OK);
    (void)play_end(&play, supervisor, JANUS_TOO_OFTEN);
    return 0;
}

TEST("the period slides: only restarts within the last period_ns count")
{
    PLAY(period_slides, .panics = true, .timed = true);
}

/* S27. */

static int64_t third_failure_ends(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    struct role       c = {.play = &play, .name = 'c'};
    janus_supervisor *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.max_restarts = 2, .period_ns = AN_HOUR));
    janus_actor first = add_child(supervisor, CHILD(&a)), second = add_child(supervisor, CHILD(&b));
    janus_actor third = add_child(supervisor, CHILD(&c));
    (void)argument;
    count_up(first);
    count_up(third);
    for (int i = 0; i < 2; i++) {
        count_up(second);
        crash(second);
        MUST_EQ(settle(second), 0);
        MUST_EQ(settle(first), 1);
        MUST_EQ(settle(third), 1);
    }
    MUST_EQ(request(second, act_return, NULL, -333, NULL), JANUS_GONE);
    MUST_EQ(janus_supervisor_wait(supervisor, NEVER), JANUS_OK);
    janus_supervisor_result result = play_end(&play, supervisor, JANUS_TOO_OFTEN);
    MUST(result.by_itself);
    MUST_EQ(result.restarts, 2);
    MUST_EQ(result.cause.kind, JANUS_END_KIND_FAILED);
    MUST_EQ(result.cause.error, -333);
    MUST_STR(result.child, "player");
    MUST_EQ(janus_yield(), JANUS_OK);
    MUST_LOG(&play, "+a+b+cfb+bfb+bfb-c-a");
    return 0;
}

TEST("ONE_FOR_ONE renews only the failed child, and one failure too many ends the supervisor")
{
    PLAY(third_failure_ends, .panics = true);
}

static int64_t first_is_too_many(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'};
    janus_supervisor *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.max_restarts = JANUS_NO_RESTARTS));
    janus_actor actor = add_child(supervisor, CHILD(&a, .id = "a"));
    (void)argument;
    MUST_EQ(request(actor, act_return, NULL, -100, NULL), JANUS_GONE);
    MUST_EQ(janus_supervisor_wait(supervisor, NEVER), JANUS_OK);
    janus_supervisor_result result = play_end(&play, supervisor, JANUS_TOO_OFTEN);
    MUST_EQ(result.restarts, 0);
    MUST_STR(result.child, "a");
    MUST_LOG(&play, "+afa");
    return 0;
}

TEST("with JANUS_NO_RESTARTS the first failure ends the supervisor")
{
    PLAY(first_is_too_many, .panics = true);
}

static int64_t giving_up_wakes_the_owner(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'};
    janus_supervisor *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.max_restarts = JANUS_NO_RESTARTS));
    (void)argument;
    tell(add_child(supervisor, CHILD(&a)), act_return, NULL, -100);
    MUST_EQ(janus_sleep(AN_HOUR / 2), JANUS_CANCELLED); /* the task is inside the scope */
    MUST_EQ(janus_yield(), JANUS_CANCELLED);
    (void)play_end(&play, supervisor, JANUS_TOO_OFTEN);
    MUST_EQ(janus_yield(), JANUS_OK);
    MUST_LOG(&play, "+afa");
    return 0;
}

TEST("a supervisor that gives up cancels the scope of its task, until the task has ended it")
{
    PLAY(giving_up_wakes_the_owner, .panics = true);
}

/* S28. */

static int64_t init_keeps_failing(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'};
    struct role       b = {.play = &play, .name = 'b', .inits = "of"};
    struct role       c = {.play = &play, .name = 'c'};
    janus_supervisor *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.max_restarts = 3, .period_ns = AN_HOUR));
    (void)argument;
    (void)add_child(supervisor, CHILD(&a));
    janus_actor actor = add_child(supervisor, CHILD(&b, .id = "b"));
    (void)add_child(supervisor, CHILD(&c));
    tell(actor, act_return, NULL, -77);
    MUST_EQ(janus_supervisor_wait(supervisor, NEVER), JANUS_OK);
    janus_supervisor_result result = play_end(&play, supervisor, JANUS_TOO_OFTEN);
    MUST_EQ(result.restarts, 3);
    MUST_LOG(&play, "+a+b+cfb!b!b!b-c-a");
    return 0;
}

TEST("an init that fails at each restart uses up max_restarts; the siblings are stopped")
{
    PLAY(init_keeps_failing, .panics = true);
}

/* Two failures at once are two restarts, each of its own child. */

static int64_t two_fail_at_once(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    janus_supervisor *supervisor = play_open(&play, PATIENT(.name = "two"));
    janus_actor first = add_child(supervisor, CHILD(&a)), second = add_child(supervisor, CHILD(&b));
    (void)argument;
    tell(first, act_return, NULL, -100);
    tell(second, act_return, NULL, -100);
    MUST_EQ(settle(first), 0);
    MUST_EQ(settle(second), 0);
    MUST_EQ(look(first).incarnation, 2);
    MUST_EQ(look(second).incarnation, 2);
    janus_supervisor_result result = play_end(&play, supervisor, JANUS_OK);
    MUST_EQ(result.restarts, 2);
    return 0;
}

TEST("two children that fail at once are each started again once")
{
    PLAY(two_fail_at_once, .panics = true);
}

/* Delays double, and are reset. */

static int64_t delays_double(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'};
    janus_supervisor *supervisor = play_open(
        &play, JANUS_SUPERVISOR_OPTIONS(.max_restarts = 100, .period_ns = AN_HOUR,
                                        .delay_ns = 10 * JANUS_MS, .max_delay_ns = 80 * JANUS_MS,
                                        .healthy_ns = 5 * JANUS_SECONDS));
    janus_actor    actor = add_child(supervisor, CHILD(&a));
    const uint64_t delays[] = {10, 20, 40, 80, 80, 10, 20}; /* ms */
    (void)argument;
    for (int i = 0; i < 7; i++) {
        if (i == 5) MUST_EQ(janus_sleep(6 * JANUS_SECONDS), JANUS_OK);
        uint64_t begin = janus_now_ns();
        crash(actor);
        MUST_EQ(settle(actor), 0);
        uint64_t took = janus_now_ns() - begin, delay = delays[i] * JANUS_MS;
        MUST(took >= delay - delay / 10);
        MUST(took <= delay + delay / 5);
    }
    (void)play_end(&play, supervisor, JANUS_OK);
    return 0;
}

TEST("the delay doubles with each failure up to max_delay_ns, and is short again after healthy_ns")
{
    PLAY(delays_double, .panics = true, .timed = true);
}
