/* SPDX-License-Identifier: MIT */
/*
 * Repeated calls of actors and supervisors, by a plain task and by the handler of an actor.
 * repeat.h explains the measurement.
 */
#include "repeat.h"

/* What the calls are made with. The actors live under a supervisor of the task that repeats. */
struct things {
    janus_supervisor *supervisor;
    janus_actor       actor, full, kept, gone;
    janus_letter     *letter; /* in a handler; NULL: the calls are a plain task's */
    char              text[256];
};

static const uint64_t no_message;

/* Answers calls. */
static int64_t answer(void *state, janus_letter *letter)
{
    (void)state;
    if (janus_letter_is_call(letter)) JANUS_IGNORE(janus_reply(letter, &no_message));
    return JANUS_ACTOR_GO_ON;
}

static size_t describe(const void *state, char *buffer, size_t size)
{
    (void)state;
    return (size_t)snprintf(buffer, size, "fine");
}

static const janus_behaviour busy = {.struct_bytes = sizeof busy,
                                     .name = "busy",
                                     .message_bytes = sizeof(uint64_t),
                                     .reply_bytes = sizeof(uint64_t),
                                     .handle = answer,
                                     .describe = describe};

/* Calls of anybody. */
CALL(cast, (void)!janus_cast(t->actor, &no_message))
CALL(cast_stale, (void)!janus_cast(t->gone, &no_message))
CALL(cast_full, (void)!janus_cast(t->full, &no_message))
CALL(try_cast, (void)!janus_try_cast(t->full, &no_message))
CALL(cast_with, (void)!janus_cast_with(t->actor, &no_message, JANUS_CAST_OPTIONS(.refuses = true)))
CALL(cast_block, void *block = janus_detach(janus_alloc(64));
     if (janus_cast_with(t->actor, &no_message, JANUS_CAST_OPTIONS(.block = block)) != JANUS_OK)
         janus_discard(block))
CALL(call, uint64_t reply; (void)!janus_call(t->actor, &no_message, &reply, 0))
CALL(call_deadline, uint64_t reply;
     (void)!janus_call(t->actor, &no_message, &reply, UINT64_C(1) << 60))
CALL(call_all, janus_actor actors[2] = {t->actor, t->gone}; janus_status statuses[2];
     (void)!janus_call_all(actors, 2, &no_message, NULL, 0, statuses, 0))
CALL(attenuate, janus_actor narrow;
     (void)!janus_actor_attenuate(t->actor, JANUS_ACTOR_MAY_CAST, &narrow))
CALL(await_ended, janus_end end; (void)!janus_actor_await(t->gone, &end, 0))
CALL(await_late, janus_end end; (void)!janus_actor_await(t->actor, &end, 1))
CALL(stop_again, (void)!janus_actor_stop(t->gone, JANUS_STOP_HOW_AT_ONCE, 0))
CALL(suspend_resume, (void)!janus_actor_suspend(t->actor); (void)!janus_actor_resume(t->actor))
CALL(describe_one, (void)!janus_actor_describe(t->actor, t->text, sizeof t->text, 0))
CALL(inspect, janus_actor_info info = JANUS_ACTOR_INFO();
     (void)!janus_actor_inspect(t->actor, &info))
CALL(find, janus_actor found; (void)!janus_actor_find("busy", &found))
CALL(find_none, janus_actor found; (void)!janus_actor_find("nobody", &found))
CALL(reply_to_stale, janus_kept_reply kept = {{1, 2}}; (void)!janus_reply_to(kept, &no_message))

/* Supervisors. */
CALL(supervisor_life, janus_supervisor *made; if (janus_supervisor_open(NULL, &made) == JANUS_OK)
         JANUS_IGNORE(janus_supervisor_end(made, NULL)))
CALL(child_life, janus_actor actor;
     if (janus_supervisor_add(t->supervisor,
                              JANUS_CHILD(.behaviour = &busy, .restart = JANUS_RESTART_TEMPORARY),
                              &actor) == JANUS_OK)(void) !janus_supervisor_stop_child(t->supervisor,
                                                                                      actor))
CALL(add_again, janus_actor actor;
     (void)!janus_supervisor_add(t->supervisor, JANUS_CHILD(.id = "kept", .behaviour = &busy),
                                 &actor))
CALL(child_stop_start, (void)!janus_supervisor_stop_child(t->supervisor, t->kept);
     (void)!janus_supervisor_start_child(t->supervisor, t->kept))
CALL(child_remove_running, (void)!janus_supervisor_remove_child(t->supervisor, t->kept))
CALL(find_child, janus_actor found;
     (void)!janus_supervisor_find_child(t->supervisor, "kept", &found))
CALL(children, janus_child_info infos[4]; (void)janus_supervisor_children(t->supervisor, infos, 4))
CALL(history, janus_restart_info infos[4]; (void)janus_supervisor_history(t->supervisor, infos, 4))
CALL(inspect_supervisor, janus_supervisor_info info = JANUS_SUPERVISOR_INFO();
     (void)!janus_supervisor_inspect(t->supervisor, &info))
CALL(
    supervisor_stop, janus_supervisor *made; if (janus_supervisor_open(NULL, &made) == JANUS_OK) {
        (void)!janus_supervisor_stop(made);
        JANUS_IGNORE(janus_supervisor_end(made, NULL));
    })
CALL(wait_late, (void)!janus_supervisor_wait(t->supervisor, 1))

static const struct repeat_call calls[] = {
    ROW(cast),
    ROW(cast_stale),
    ROW(cast_full),
    ROW(try_cast),
    ROW(cast_with),
    ROW(cast_block),
    ROW(call),
    ROW(call_deadline),
    ROW(call_all),
    ROW(attenuate),
    ROW(await_ended),
    ROW(await_late),
    ROW(stop_again),
    ROW(suspend_resume),
    ROW(describe_one),
    ROW(inspect),
    ROW(find),
    ROW(find_none),
    ROW(reply_to_stale),
    ROW(supervisor_life),
    ROW(child_life),
    ROW(add_again),
    ROW(child_stop_start),
    ROW(child_remove_running),
    ROW(find_child),
    ROW(children),
    ROW(history),
    ROW(inspect_supervisor),
    ROW(supervisor_stop),
    ROW(wait_late),
};

/* Calls of handlers. */
CALL(ask, (void)!janus_ask(t->actor, &no_message, 1, 0))
CALL(ask_deadline, (void)!janus_ask(t->actor, &no_message, 1, UINT64_C(1) << 60))
CALL(reply_again, (void)!janus_reply(t->letter, &no_message))
CALL(reply_keep_again, janus_kept_reply kept; (void)!janus_reply_keep(t->letter, &kept))
CALL(timer, janus_actor_timer timer; if (janus_actor_after(JANUS_SECONDS, 1, &timer) ==
                                         JANUS_OK)(void) janus_actor_cancel_timer(timer))
CALL(timers_full, (void)!janus_actor_after(3600 * JANUS_SECONDS, 1, NULL))
CALL(idle_after, (void)!janus_actor_idle_after(3600 * JANUS_SECONDS, 1))
CALL(continue_again, (void)!janus_actor_continue(1))
CALL(take_up, (void)!janus_actor_take_up())
CALL(watch, janus_watch watch;
     if (janus_actor_watch(t->actor, 1, &watch) == JANUS_OK)(void) janus_actor_unwatch(watch))
CALL(watch_full, (void)!janus_actor_watch(t->actor, 1, NULL))
CALL(call_itself, janus_actor self; JANUS_IGNORE(janus_actor_current(&self));
     (void)!janus_call(self, &no_message, NULL, 0))

static const struct repeat_call handlers[] = {
    ROW(ask),     ROW(ask_deadline), ROW(reply_again), ROW(reply_keep_again),
    ROW(timer),   ROW(timers_full),  ROW(idle_after),  ROW(continue_again),
    ROW(take_up), ROW(watch),        ROW(watch_full),  ROW(call_itself),
};

static void open_things(struct things *things)
{
    const janus_actor_options named = {.struct_bytes = sizeof named, .name = "busy"};
    const janus_actor_options small = {
        .struct_bytes = sizeof small, .max_messages = 1, .overflow = JANUS_OVERFLOW_FAIL};
    CHECK_EQ(janus_supervisor_open(NULL, &things->supervisor), JANUS_OK);
    janus_supervisor *in = things->supervisor;
    CHECK_EQ(janus_supervisor_add(in, JANUS_CHILD(.behaviour = &busy, .options = &named),
                                  &things->actor),
             JANUS_OK);
    CHECK_EQ(
        janus_supervisor_add(in, JANUS_CHILD(.behaviour = &busy, .options = &small), &things->full),
        JANUS_OK);
    CHECK_EQ(janus_actor_suspend(things->full), JANUS_OK);
    CHECK_EQ(janus_cast(things->full, &no_message), JANUS_OK);
    CHECK_EQ(janus_supervisor_add(in, JANUS_CHILD(.id = "kept", .behaviour = &busy), &things->kept),
             JANUS_OK);
    CHECK_EQ(janus_supervisor_add(in, JANUS_CHILD(.behaviour = &busy), &things->gone), JANUS_OK);
    CHECK_EQ(janus_supervisor_stop_child(in, things->gone), JANUS_OK);
}

static void close_things(struct things *things)
{
    JANUS_IGNORE(janus_supervisor_end(things->supervisor, NULL));
}

static const struct repeat_kit kit = {open_things, close_things};

TEST("beside a task that repeats any call of actors, a neighbour has half of the worker")
{
    struct things things = {.text = ""};
    RIG_REAL("shares of real time are compared");
    if (RIG_SLOW) SKIP("calls take other times under sanitizers and emulation");
    CHECK_EQ(repeat_all(calls, sizeof calls / sizeof *calls, &kit, &things), 0);
}

/* An actor whose handler repeats: its argument is the struct beside. */

static int64_t take_beside(void *state, void *argument)
{
    *(void **)state = argument;
    return JANUS_ACTOR_GO_ON;
}

static int64_t repeat_in_handler(void *state, janus_letter *letter)
{
    struct beside *beside = *(void **)state;
    if (letter->message == NULL) return JANUS_ACTOR_GO_ON;
    ((struct repeat_pair *)beside->argument)->things->letter = letter;
    JANUS_IGNORE(janus_reply(letter, &no_message)); /* afterwards it is answered */
    (void)repeat_one(beside);
    return JANUS_ACTOR_STOP;
}

static const janus_behaviour repeating = {.struct_bytes = sizeof repeating,
                                          .name = "repeating",
                                          .state_bytes = sizeof(void *),
                                          .message_bytes = sizeof(uint64_t),
                                          .reply_bytes = sizeof(uint64_t),
                                          .init = take_beside,
                                          .handle = repeat_in_handler};

/* As repeat_one, in the handler of an actor. */
static int64_t repeat_as_actor(void *argument)
{
    janus_supervisor *supervisor;
    janus_actor       actor;
    CHECK_EQ(janus_supervisor_open(NULL, &supervisor), JANUS_OK);
    CHECK_EQ(janus_supervisor_add(supervisor,
                                  JANUS_CHILD(.behaviour = &repeating, .argument = argument,
                                              .restart = JANUS_RESTART_TEMPORARY,
                                              .stop_within_ns = JANUS_ANY_TIME),
                                  &actor),
             JANUS_OK);
    CHECK_EQ(janus_call(actor, &no_message, NULL, 0), JANUS_OK);
    CHECK_EQ(janus_actor_await(actor, NULL, 0), JANUS_OK);
    JANUS_IGNORE(janus_supervisor_end(supervisor, NULL));
    return 0;
}

static double share_of(const struct repeat_call *call, struct things *things)
{
    struct repeat_pair pair = {call, &kit, things};
    janus_scheduler   *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
    double             share = beside_share(scheduler, repeat_as_actor, &pair, repeat_window_ns);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    return share;
}

TEST("beside an actor whose handler repeats any call of handlers, a neighbour has half")
{
    struct things things = {.text = ""};
    int           starved = 0;
    RIG_REAL("shares of real time are compared");
    if (RIG_SLOW) SKIP("calls take other times under sanitizers and emulation");
    for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++) {
        double share = share_of(&handlers[i], &things);
        for (int more = 0; more < 20 && share < repeat_least; more++)
            share = share_of(&handlers[i], &things);
        printf("# %.3f %s\n", share, handlers[i].name);
        fflush(stdout);
        if (share < repeat_least) starved++;
    }
    CHECK_EQ(starved, 0);
}
