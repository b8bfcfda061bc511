/* SPDX-License-Identifier: MIT */
/* Bugs that reading and exploring have found: circles, room in mailboxes, orders to stop. */
#include "play.h"

enum { YIELDS = 4 };

struct two {
    janus_actor a, b;
};

static void yield_often(void)
{
    for (int i = 0; i < YIELDS; i++) JANUS_IGNORE(janus_yield());
}

/* Circles. */

static int64_t act_answer_and_cast(struct self *self, janus_letter *letter, const struct line *line)
{
    const struct two *two = line->argument;
    (void)self;
    answer(letter, 1);
    for (int i = 0; i < 3; i++) tell(two->a, act_note, NULL, i); /* it goes on, and makes room */
    return JANUS_ACTOR_GO_ON;
}

static int64_t act_call(struct self *self, janus_letter *letter, const struct line *line)
{
    const struct two *two = line->argument;
    (void)self, (void)letter;
    MUST_EQ(request(two->b, act_answer_and_cast, line->argument, 0, NULL), JANUS_OK);
    return JANUS_ACTOR_GO_ON;
}

static int64_t scene_answered(void *argument)
{
    struct role       roles[2] = {0};
    struct two        two;
    janus_supervisor *stage = open_stage();
    (void)argument;
    two.a = ADD(stage, .argument = &roles[0], .options = JANUS_ACTOR_OPTIONS(.max_messages = 1));
    two.b = ADD(stage, .argument = &roles[1]);
    tell(two.a, act_call, &two, 0);
    JANUS_IGNORE(settle(two.b));
    JANUS_IGNORE(settle(two.a));
    close_stage(stage);
    return 0;
}

TEST("an actor that was answered waits no more: a cast to it closes no circle")
{
    PLAY(scene_answered);
}

static int64_t act_call_back(struct self *self, janus_letter *letter, const struct line *line)
{
    const struct two *two = line->argument;
    janus_status      status = request(two->a, act_note, NULL, 0, NULL);
    (void)self;
    MUST(status == JANUS_OK || status == JANUS_DEADLOCK);
    answer(letter, 1);
    return JANUS_ACTOR_GO_ON;
}

static int64_t act_call_in(struct self *self, janus_letter *letter, const struct line *line)
{
    const struct two *two = line->argument;
    janus_status      status = request(two->b, act_call_back, line->argument, 0, NULL);
    (void)self, (void)letter;
    MUST(status == JANUS_OK || status == JANUS_DEADLOCK);
    return JANUS_ACTOR_GO_ON;
}

/* The first actor calls the second, which calls back. */
static int64_t call_in_circle(play_act *act, bool full)
{
    struct role       roles[2] = {0};
    struct door       gate;
    struct two        two;
    janus_supervisor *stage = open_stage();
    door_init(&gate);
    two.a = ADD(stage, .argument = &roles[0]);
    two.b = ADD(stage, .argument = &roles[1], .options = JANUS_ACTOR_OPTIONS(.max_messages = 1));
    if (full) {
        tell(two.b, act_door, &gate, 0);
        await_inside(&gate);
        tell(two.b, act_note, NULL, 1);
    }
    uint64_t begun = janus_now_ns();
    tell(two.a, act, &two, 0);
    yield_often();
    janus_event_set(&gate.open);
    JANUS_IGNORE(settle(two.a));
    MUST(janus_now_ns() - begun < JANUS_SECONDS); /* no deadline passed */
    close_stage(stage);
    return 0;
}

static int64_t scene_room_first(void *argument)
{
    (void)argument;
    return call_in_circle(act_call_in, true);
}

TEST("a call that had to wait for room is refused, or seen, when it is in a circle")
{
    PLAY(scene_room_first, .timed = true);
}

/* Room. */

static int64_t send_one(void *argument)
{
    janus_status status = say(*(janus_actor *)argument, act_note, NULL, 2);
    MUST(status == JANUS_OK || status == JANUS_CLOSED || status == JANUS_STALE);
    return 0;
}

static int64_t scene_place_again(void *argument)
{
    struct role       roles[2] = {0};
    struct door       gate;
    janus_status      ended;
    janus_supervisor *stage = open_stage();
    janus_actor       old = ADD(stage, .argument = &roles[0], .restart = JANUS_RESTART_TEMPORARY,
                                .options = JANUS_ACTOR_OPTIONS(.max_messages = 1));
    (void)argument;
    door_init(&gate);
    tell(old, act_door, &gate, 0);
    await_inside(&gate);
    tell(old, act_return, NULL, JANUS_ACTOR_STOP);
    JANUS_NURSERY(n, ended)
    {
        MUST_EQ(janus_spawn(n, send_one, &old), JANUS_OK);
        yield_often();
        janus_event_set(&gate.open);
        JANUS_IGNORE(await_end(old).kind);
        janus_actor new = ADD(stage, .argument = &roles[1], .restart = JANUS_RESTART_TEMPORARY,
                              .options = JANUS_ACTOR_OPTIONS(.max_messages = 1));
        yield_often();
        tell(new, act_note, NULL, 3);
        MUST_EQ(settle(new), 0);
    }
    MUST_EQ(ended, JANUS_OK);
    close_stage(stage);
    return 0;
}

TEST("room that a sender had reserved is not taken from the next actor in that place")
{
    PLAY(scene_place_again, .timed = true);
}

static int64_t act_gate_and_fail(struct self *self, janus_letter *letter, const struct line *line)
{
    struct door *gate = line->argument;
    (void)self, (void)letter;
    janus_event_set(&gate->inside);
    JANUS_IGNORE(janus_event_wait(&gate->open));
    return -100;
}

static int64_t scene_dropped(void *argument)
{
    struct solo  solo = {.role = {0}};
    janus_status ended;
    (void)argument;
    OPEN_SOLO(&solo, .drops_mail = true, .options = JANUS_ACTOR_OPTIONS(.max_messages = 1));
    tell(solo.actor, act_gate_and_fail, &solo.gate, 0);
    await_inside(&solo.gate);
    tell(solo.actor, act_note, NULL, 1);
    JANUS_NURSERY(n, ended)
    {
        MUST_EQ(janus_spawn(n, send_one, &solo.actor), JANUS_OK);
        yield_often();
        let_go(&solo);
    }
    MUST_EQ(ended, JANUS_OK);
    close_stage(solo.stage);
    return 0;
}

TEST("a sender that waits for room goes on when a restart drops the mail")
{
    PLAY(scene_dropped, .timed = true);
}

static int64_t send_or_end(void *argument)
{
    janus_status status = say(*(janus_actor *)argument, act_note, NULL, 2);
    MUST(status == JANUS_OK || status == JANUS_CANCELLED);
    return status;
}

static int64_t scene_passed_on(void *argument)
{
    struct solo   solo = {.role = {0}};
    janus_nursery first, second;
    (void)argument;
    OPEN_SOLO(&solo, .options = JANUS_ACTOR_OPTIONS(.max_messages = 1));
    keep_busy(&solo, 0);
    tell(solo.actor, act_note, NULL, 1);
    MUST_EQ(janus_nursery_open(&second, NULL), JANUS_OK);
    MUST_EQ(janus_nursery_open(&first, JANUS_NURSERY_OPTIONS(.owner_apart = true)), JANUS_OK);
    MUST_EQ(janus_spawn(&first, send_or_end, &solo.actor), JANUS_OK);
    yield_often();
    MUST_EQ(janus_spawn(&second, send_or_end, &solo.actor), JANUS_OK);
    yield_often();
    let_go(&solo);
    janus_point();
    (void)janus_nursery_cancel(&first);
    JANUS_IGNORE(janus_nursery_end(&first, NULL));
    MUST_EQ(janus_nursery_end(&second, NULL), JANUS_OK);
    close_stage(solo.stage);
    return 0;
}

TEST("a sender that gets room and is cancelled passes the room on")
{
    PLAY(scene_passed_on, .timed = true);
}

/* Orders to stop. */

static int64_t start_slowly(struct self *self)
{
    if (self->role->starts > 1) JANUS_IGNORE(janus_sleep(JANUS_MS));
    return JANUS_ACTOR_GO_ON;
}

static int64_t scene_stop_in_plan(void *argument)
{
    struct role       roles[2] = {{.start = start_slowly}, {0}};
    janus_supervisor *stage;
    (void)argument;
    MUST_EQ(
        janus_supervisor_open(
            JANUS_SUPERVISOR_OPTIONS(.strategy = JANUS_SUPERVISION_ONE_FOR_ALL, .max_restarts = 10),
            &stage),
        JANUS_OK);
    janus_actor a = ADD(stage, .id = "a", .argument = &roles[0]);
    janus_actor b = ADD(stage, .id = "b", .argument = &roles[1]);
    MUST_EQ(request(a, act_return, NULL, -100, NULL), JANUS_RESTARTED);
    janus_status status = janus_supervisor_stop_child(stage, b);
    MUST_EQ(janus_sleep(JANUS_SECONDS), JANUS_OK);
    if (status == JANUS_OK) MUST_EQ(look(b).state, JANUS_ACTOR_STATE_EMPTY);
    MUST_EQ(janus_supervisor_end(stage, NULL), JANUS_OK);
    return 0;
}

TEST("a child that was stopped while all are started again stays stopped")
{
    PLAY(scene_stop_in_plan, .timed = true);
}

static int64_t scene_stop_in_delay(void *argument)
{
    struct role       role = {0};
    janus_supervisor *stage;
    (void)argument;
    MUST_EQ(janus_supervisor_open(
                JANUS_SUPERVISOR_OPTIONS(.max_restarts = 10, .delay_ns = JANUS_SECONDS), &stage),
            JANUS_OK);
    janus_actor actor = ADD(stage, .id = "a", .argument = &role);
    MUST_EQ(request(actor, act_return, NULL, -100, NULL), JANUS_RESTARTED);
    MUST_EQ(look(actor).state, JANUS_ACTOR_STATE_DELAYED);
    MUST_EQ(janus_actor_stop(actor, JANUS_STOP_HOW_AFTER_THIS, 0), JANUS_OK);
    MUST_EQ(look(actor).state, JANUS_ACTOR_STATE_EMPTY);
    MUST_EQ(say(actor, act_note, NULL, 1), JANUS_CLOSED);
    MUST_EQ(janus_sleep(5 * JANUS_SECONDS), JANUS_OK);
    MUST_EQ(role.starts, 1);
    MUST_EQ(janus_supervisor_end(stage, NULL), JANUS_OK);
    return 0;
}

TEST("an actor that is stopped during the delay before a restart is not started again")
{
    PLAY(scene_stop_in_delay, .timed = true);
}
