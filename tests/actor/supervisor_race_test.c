/* SPDX-License-Identifier: MIT */
/* Restarts of several children, and what happens to one of them meanwhile. */
#include "play.h"

/* A delay that is over while the supervisor ends. */

static int64_t ends_in_delay(janus_supervision strategy)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'};
    struct role       b = {.play = &play, .name = 'b', .end_ns = JANUS_SECONDS};
    janus_supervisor *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.strategy = strategy, .max_restarts = 5,
                                                  .delay_ns = 100 * JANUS_MS));
    janus_actor first = add_child(supervisor, CHILD(&a, .id = "a"));
    (void)add_child(supervisor, CHILD(&b, .id = "b"));
    tell(first, act_return, NULL, -100);
    until_state(first, JANUS_ACTOR_STATE_DELAYED);
    (void)play_end(&play, supervisor, JANUS_OK);
    MUST_EQ(atomic_load(&a.starts), 1);
    return 0;
}

static int64_t one_ends_in_delay(void *argument)
{
    (void)argument;
    return ends_in_delay(JANUS_SUPERVISION_ONE_FOR_ONE);
}

static int64_t all_end_in_delay(void *argument)
{
    (void)argument;
    return ends_in_delay(JANUS_SUPERVISION_ONE_FOR_ALL);
}

TEST("a delay that is over while the supervisor ends starts no child") { RACE(one_ends_in_delay); }

TEST("a delay that is over while the supervisor ends does not start all children")
{
    RACE(all_end_in_delay);
}

/* Failures during a restart. */

struct trio {
    struct play       play;
    struct role       players[3];
    janus_actor       actors[3];
    janus_supervisor *supervisor;
};

/* Three children. The last takes `end_ns` to end. */
static void trio_open(struct trio *trio, janus_supervision strategy, uint64_t end_ns)
{
    static const char *const ids[] = {"a", "b", "c"};
    trio->supervisor =
        play_open(&trio->play, JANUS_SUPERVISOR_OPTIONS(.strategy = strategy, .max_restarts = 5));
    for (int i = 0; i < 3; i++) {
        trio->players[i] =
            (struct role){.play = &trio->play, .name = ids[i][0], .end_ns = i == 2 ? end_ns : 0};
        trio->actors[i] = add_child(trio->supervisor, CHILD(&trio->players[i], .id = ids[i]));
    }
}

static void trio_end(struct trio *trio) { (void)play_end(&trio->play, trio->supervisor, JANUS_OK); }

static int64_t fails_in_restart(void *argument)
{
    struct trio trio;
    (void)argument;
    trio_open(&trio, JANUS_SUPERVISION_REST_FOR_ONE, 2 * JANUS_SECONDS);
    tell(trio.actors[0], act_return, NULL, -100);
    until_state(trio.actors[2], JANUS_ACTOR_STATE_STOPPING);
    tell(trio.actors[1], act_return, NULL, -100);
    play_out();
    for (int i = 0; i < 3; i++) MUST_EQ(look(trio.actors[i]).state, JANUS_ACTOR_STATE_RUNNING);
    trio_end(&trio);
    return 0;
}

TEST("with REST_FOR_ONE a child that fails while later ones are stopped starts with them")
{
    RACE(fails_in_restart);
}

static int64_t removed_in_restart(void *argument)
{
    struct trio trio;
    (void)argument;
    trio_open(&trio, JANUS_SUPERVISION_REST_FOR_ONE, JANUS_SECONDS);
    tell(trio.actors[1], act_return, NULL, -100);
    until_state(trio.actors[2], JANUS_ACTOR_STATE_STOPPING);
    JANUS_IGNORE(janus_actor_stop(trio.actors[1], JANUS_STOP_HOW_AFTER_THIS, 0));
    JANUS_IGNORE(janus_supervisor_remove_child(trio.supervisor, trio.actors[1]));
    play_out();
    MUST_EQ(look(trio.actors[0]).state, JANUS_ACTOR_STATE_RUNNING);
    MUST_EQ(look(trio.actors[0]).failures, 0);
    MUST_EQ(atomic_load(&trio.players[0].starts), 1);
    trio_end(&trio);
    return 0;
}

TEST("removing the child that began a restart leaves the children before it alone")
{
    RACE(removed_in_restart);
}

static int64_t stuck_in_restart(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'};
    struct role       b = {.play = &play, .name = 'b', .end_ns = 3 * JANUS_SECONDS};
    janus_supervisor *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.strategy = JANUS_SUPERVISION_ONE_FOR_ALL,
                                                  .max_restarts = 5));
    janus_actor first = add_child(supervisor, CHILD(&a, .id = "a"));
    janus_actor second = add_child(supervisor, CHILD(&b, .id = "b", .stop_within_ns = JANUS_MS));
    (void)argument;
    tell(first, act_return, NULL, -100);
    play_out();
    MUST_EQ(look(first).state, JANUS_ACTOR_STATE_RUNNING);
    MUST_EQ(look(second).state, JANUS_ACTOR_STATE_RUNNING);
    (void)play_end(&play, supervisor, JANUS_OK);
    return 0;
}

TEST("a restart of all goes on when a child that was stuck has ended") { RACE(stuck_in_restart); }

/* Stopping during a restart. */

static int64_t stopped_in_restart(void *argument)
{
    struct trio trio;
    (void)argument;
    trio_open(&trio, JANUS_SUPERVISION_ONE_FOR_ALL, JANUS_SECONDS);
    tell(trio.actors[0], act_return, NULL, -100);
    until_state(trio.actors[2], JANUS_ACTOR_STATE_STOPPING);
    MUST_EQ(janus_supervisor_stop_child(trio.supervisor, trio.actors[2]), JANUS_OK);
    play_out();
    MUST_EQ(look(trio.actors[2]).state, JANUS_ACTOR_STATE_EMPTY);
    MUST_EQ(look(trio.actors[0]).state, JANUS_ACTOR_STATE_RUNNING);
    trio_end(&trio);
    return 0;
}

TEST("a child that is stopped by its owner during a restart of all stays stopped")
{
    RACE(stopped_in_restart);
}

static int64_t cause_stopped_in_restart(void *argument)
{
    struct trio trio;
    (void)argument;
    trio_open(&trio, JANUS_SUPERVISION_ONE_FOR_ALL, JANUS_SECONDS);
    tell(trio.actors[0], act_return, NULL, -100);
    until_state(trio.actors[2], JANUS_ACTOR_STATE_STOPPING);
    JANUS_IGNORE(janus_actor_stop(trio.actors[0], JANUS_STOP_HOW_AFTER_THIS, 0));
    play_out();
    MUST_EQ(look(trio.actors[0]).state, JANUS_ACTOR_STATE_EMPTY);
    MUST_EQ(request(trio.actors[0], act_add, NULL, 0, NULL), JANUS_GONE);
    trio_end(&trio);
    return 0;
}

TEST("an actor that is stopped while its restart waits for others stays stopped, and is gone")
{
    RACE(cause_stopped_in_restart);
}

/* A call to a place that a restart has emptied, while the supervisor ends. */

static janus_actor emptied;

static int64_t call_emptied(void *state, janus_letter *letter)
{
    int64_t reply;
    (void)state;
    if (letter->message == NULL) return JANUS_ACTOR_GO_ON;
    if (*(const int64_t *)letter->message < 0) return -5;
    JANUS_IGNORE(janus_sleep(2 * JANUS_SECONDS));
    JANUS_IGNORE(janus_call(emptied, &(int64_t){0}, &reply, NEVER));
    return JANUS_ACTOR_GO_ON;
}

static const janus_behaviour calls_emptied = {.struct_bytes = sizeof calls_emptied,
                                              .message_bytes = sizeof(int64_t),
                                              .reply_bytes = sizeof(int64_t),
                                              .handle = call_emptied};

static int64_t calls_emptied_place(void *argument)
{
    janus_supervisor *supervisor;
    uint64_t          begin;
    (void)argument;
    MUST_EQ(
        janus_supervisor_open(
            JANUS_SUPERVISOR_OPTIONS(.strategy = JANUS_SUPERVISION_ONE_FOR_ALL, .max_restarts = 5),
            &supervisor),
        JANUS_OK);
    emptied = add_child(supervisor, JANUS_CHILD(.behaviour = &calls_emptied, .id = "a"));
    janus_actor caller = add_child(supervisor, JANUS_CHILD(.behaviour = &calls_emptied, .id = "b",
                                                           .stop_within_ns = 1000 * JANUS_SECONDS));
    MUST_EQ(janus_cast(caller, &(int64_t){1}), JANUS_OK);
    MUST_EQ(janus_sleep(JANUS_SECONDS), JANUS_OK);
    MUST_EQ(janus_cast(emptied, &(int64_t){-1}), JANUS_OK);
    until_state(caller, JANUS_ACTOR_STATE_STOPPING);
    begin = janus_now_ns();
    JANUS_IGNORE(janus_supervisor_end(supervisor, NULL));
    MUST(janus_now_ns() - begin < 100 * JANUS_SECONDS);
    return 0;
}

TEST("a call to a place that a restart emptied returns when the supervisor ends")
{
    RACE(calls_emptied_place);
}

/* What on_end and others do while it decides. */

static janus_decision stop_the_ended(void *argument, const janus_child_event *event,
                                     uint64_t *delay_ns)
{
    (void)argument;
    (void)delay_ns;
    JANUS_IGNORE(janus_actor_stop(event->actor, JANUS_STOP_HOW_AFTER_THIS, 0));
    return JANUS_DECISION_DEFAULT;
}

static int64_t stopped_by_on_end(uint64_t delay_ns)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'};
    janus_supervisor *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.max_restarts = 5, .on_end = stop_the_ended,
                                                  .delay_ns = delay_ns));
    janus_actor actor = add_child(supervisor, CHILD(&a, .id = "a"));
    tell(actor, act_return, NULL, -100);
    play_out();
    MUST_EQ(look(actor).state, JANUS_ACTOR_STATE_EMPTY);
    MUST_EQ(atomic_load(&a.starts), 1);
    (void)play_end(&play, supervisor, JANUS_OK);
    return 0;
}

static int64_t stopped_by_on_end_at_once(void *argument)
{
    (void)argument;
    return stopped_by_on_end(0);
}

static int64_t stopped_by_on_end_delayed(void *argument)
{
    (void)argument;
    return stopped_by_on_end(100 * JANUS_MS);
}

TEST("an actor that on_end stops is not started again") { RACE(stopped_by_on_end_at_once); }

TEST("an actor that on_end stops is not started again after a delay")
{
    RACE(stopped_by_on_end_delayed);
}

struct window {
    janus_supervisor *supervisor;
    janus_actor       actor;
    bool              describes;
};

static int64_t disturb(void *argument)
{
    const struct window *window = argument;
    char                 text[64];
    if (window->describes) {
        JANUS_IGNORE(janus_actor_describe(window->actor, text, sizeof text, NEVER));
    } else {
        JANUS_IGNORE(janus_supervisor_stop_child(window->supervisor, window->actor));
    }
    return 0;
}

static janus_decision decide_slowly(void *argument, const janus_child_event *event,
                                    uint64_t *delay_ns)
{
    janus_actor_info info = JANUS_ACTOR_INFO();
    (void)delay_ns;
    for (int i = 0; i < 5; i++) JANUS_IGNORE(janus_actor_inspect(event->actor, &info));
    return argument != NULL ? JANUS_DECISION_LEAVE : JANUS_DECISION_RESTART;
}

static int64_t disturbs(bool describes)
{
    struct play   play;
    struct role   a = {.play = &play, .name = 'a'};
    struct window window = {.describes = describes};
    janus_nursery nursery;
    window.supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.max_restarts = 5, .on_end = decide_slowly,
                                                  .on_end_argument = describes ? &window : NULL));
    window.actor = add_child(window.supervisor, CHILD(&a, .id = "a"));
    MUST_EQ(janus_nursery_open(&nursery, NULL), JANUS_OK);
    tell(window.actor, act_return, NULL, -5);
    MUST_EQ(janus_spawn(&nursery, disturb, &window), JANUS_OK);
    MUST_EQ(janus_nursery_end(&nursery, NULL), JANUS_OK);
    if (!describes) MUST_EQ(look(window.actor).state, JANUS_ACTOR_STATE_EMPTY);
    (void)play_end(&play, window.supervisor, JANUS_OK);
    return 0;
}

static int64_t described_in_decision(void *argument)
{
    (void)argument;
    return disturbs(true);
}

static int64_t stopped_in_decision(void *argument)
{
    (void)argument;
    return disturbs(false);
}

TEST("describing an actor returns while on_end decides about it") { RACE(described_in_decision); }

TEST("a child that is stopped while on_end decides to restart it is stopped")
{
    RACE(stopped_in_decision);
}
