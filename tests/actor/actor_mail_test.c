/* SPDX-License-Identifier: MIT */
/* Mailboxes: order, room, putting aside, dead letters, and where each message goes. A11.3 to 5. */
#include "play.h"

/* One at a time. */

enum { SENDERS = 8, EACH = 5 };

struct sender {
    janus_actor actor;
    int         number, count;
};

/* Loses an update if two handlers run at once. */
static int64_t act_slow_add(struct self *self, janus_letter *letter, const struct line *line)
{
    int64_t before = self->sum;
    (void)letter;
    if (line->number % 2 == 0) MUST_EQ(janus_yield(), JANUS_OK);
    janus_point();
    self->sum = before + 1;
    return JANUS_ACTOR_GO_ON;
}

static int64_t send_many(void *argument)
{
    struct sender *sender = argument;
    for (int i = 0; i < sender->count; i++) tell(sender->actor, act_slow_add, NULL, i);
    return 0;
}

static void send_from_all(janus_actor actor, janus_entry *entry, int count)
{
    struct sender senders[SENDERS];
    janus_status  ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < SENDERS; i++) {
            senders[i] = (struct sender){actor, i, count};
            MUST_EQ(janus_spawn(n, entry, &senders[i]), JANUS_OK);
        }
    }
    MUST_EQ(ended, JANUS_OK);
}

static int64_t scene_one_at_a_time(void *argument)
{
    struct solo solo = {.role = {0}};
    int         count = play_explored ? EACH : 2000;
    (void)argument;
    OPEN_SOLO(&solo, .options = JANUS_ACTOR_OPTIONS(.max_messages = 7));
    send_from_all(solo.actor, send_many, count);
    MUST_EQ(settle(solo.actor), SENDERS * count);
    close_stage(solo.stage);
    return 0;
}

TEST("an actor handles one message at a time: a counter without locks is exact")
{
    PLAY(scene_one_at_a_time);
}

/* Order. */

static int64_t act_in_order(struct self *self, janus_letter *letter, const struct line *line)
{
    int64_t *last = self->role->stage; /* of each sender */
    int64_t  sender = line->number / 1000, number = line->number % 1000;
    (void)letter;
    MUST_EQ(last[sender] + 1, number);
    last[sender] = number;
    if (number % 4 == 3) return -100; /* what is queued goes on with the next incarnation */
    return JANUS_ACTOR_GO_ON;
}

static int64_t send_in_order(void *argument)
{
    struct sender *sender = argument;
    for (int i = 1; i <= sender->count; i++) {
        tell(sender->actor, act_in_order, NULL, sender->number * 1000 + i);
    }
    return 0;
}

static int64_t scene_order(void *argument)
{
    int64_t     last[SENDERS] = {0};
    struct solo solo = {.role = {.stage = last}};
    (void)argument;
    OPEN_SOLO(&solo, .options = JANUS_ACTOR_OPTIONS(.max_messages = 3));
    send_from_all(solo.actor, send_in_order, 9);
    MUST_EQ(settle(solo.actor), 0);
    for (int i = 0; i < SENDERS; i++) MUST_EQ(last[i], 9);
    MUST_EQ(solo.role.starts, 1 + 2 * SENDERS);
    janus_supervisor_result result = close_stage(solo.stage);
    MUST_EQ(result.sent, SENDERS * 9 + 1);
    MUST_EQ(result.handled, result.sent);
    return 0;
}

TEST("messages of one sender keep their order over full mailboxes and restarts")
{
    PLAY(scene_order);
}

/* Putting aside. */

/* Puts odd numbers aside while `sum` is 0. */
static int64_t act_odd_later(struct self *self, janus_letter *letter, const struct line *line)
{
    if (self->sum == 0 && line->number % 2 == 1) return JANUS_ACTOR_LATER;
    return act_note(self, letter, line);
}

static int64_t act_take_up(struct self *self, janus_letter *letter, const struct line *line)
{
    self->sum = line->number;
    MUST_EQ(janus_actor_take_up(), JANUS_OK);
    answer(letter, 0);
    return JANUS_ACTOR_GO_ON;
}

static int64_t scene_later(void *argument)
{
    struct solo solo = {.role = {0}};
    (void)argument;
    OPEN_SOLO(&solo);
    keep_busy(&solo, 100);
    for (int i = 1; i <= 5; i++) tell(solo.actor, act_odd_later, NULL, i);
    tell(solo.actor, act_take_up, NULL, 1);
    tell(solo.actor, act_note, NULL, 200);
    let_go(&solo);
    MUST_EQ(settle(solo.actor), 1);
    LOGGED(&solo.role, 100, 2, 4, 1, 3, 5, 200); /* before those in the mailbox */
    close_stage(solo.stage);
    MUST_EQ(janus_actor_take_up(), JANUS_STATE);
    return 0;
}

TEST("messages that were put aside come back in their order, before those in the mailbox")
{
    PLAY(scene_later);
}

static int64_t scene_later_again(void *argument)
{
    struct solo solo = {.role = {0}};
    (void)argument;
    OPEN_SOLO(&solo);
    for (int i = 1; i <= 3; i++) tell(solo.actor, act_odd_later, NULL, i);
    tell(solo.actor, act_take_up, NULL, 0); /* they are put aside once more */
    tell(solo.actor, act_odd_later, NULL, 5);
    tell(solo.actor, act_take_up, NULL, 1);
    MUST_EQ(settle(solo.actor), 1);
    LOGGED(&solo.role, 2, 1, 3, 5);
    close_stage(solo.stage);
    return 0;
}

TEST("a message can be put aside again, and keeps its place") { PLAY(scene_later_again); }

static int64_t scene_later_restart(void *argument)
{
    struct solo solo = {.role = {0}};
    (void)argument;
    OPEN_SOLO(&solo);
    for (int i = 1; i <= 4; i++) tell(solo.actor, act_odd_later, NULL, i);
    MUST_EQ(settle(solo.actor), 0);
    janus_actor_info info = look(solo.actor);
    MUST_EQ(info.messages, 2); /* those put aside */
    MUST_EQ(info.handled, 3);
    tell(solo.actor, act_return, NULL, -100);
    MUST_EQ(settle(solo.actor), 0);
    tell(solo.actor, act_take_up, NULL, 1);
    MUST_EQ(settle(solo.actor), 1);
    MUST_EQ(solo.role.starts, 2);
    LOGGED(&solo.role, 2, 4, 1, 3);
    MUST_EQ(close_stage(solo.stage).dead, 0);
    return 0;
}

/* pekko#669: a stash that was lost at a restart. */
TEST("messages that were put aside survive a restart, in their order")
{
    PLAY(scene_later_restart);
}

static int64_t scene_later_fills(void *argument)
{
    struct solo solo = {.role = {0}};
    (void)argument;
    OPEN_SOLO(&solo, .options = JANUS_ACTOR_OPTIONS(.max_messages = 2));
    tell(solo.actor, act_odd_later, NULL, 1);
    tell(solo.actor, act_odd_later, NULL, 3);
    MUST_EQ(try_say(solo.actor, act_odd_later, NULL, 5), JANUS_WOULD_WAIT); /* they take room */
    MUST_EQ(janus_actor_stop(solo.actor, JANUS_STOP_HOW_DRAIN, 0), JANUS_OK);
    (void)await_end(solo.actor);
    janus_supervisor_result result = close_stage(solo.stage);
    MUST_EQ(result.dead, 2);
    MUST_EQ(result.sent, 2);
    return 0;
}

TEST("messages that were put aside take room, and are dead letters when the actor ends")
{
    PLAY(scene_later_fills);
}

static int64_t scene_call_put_aside(void *argument)
{
    struct solo solo = {.role = {0}};
    struct line line = {act_odd_later, NULL, 1};
    (void)argument;
    OPEN_SOLO(&solo);
    MUST_EQ(janus_call(solo.actor, &line, NULL, janus_now_ns() + JANUS_SECONDS), JANUS_DEADLINE);
    tell(solo.actor, act_take_up, NULL, 1);
    MUST_EQ(settle(solo.actor), 1);
    MUST_EQ(solo.role.logged, 0); /* skipped: nobody waits for it */
    MUST_EQ(close_stage(solo.stage).returned, 1);
    return 0;
}

TEST("a call that was put aside waits on, and is skipped after its deadline")
{
    PLAY(scene_call_put_aside, .timed = true);
}

/* Full mailboxes. */

static int64_t scene_refuse(void *argument)
{
    struct solo solo = {.role = {0}};
    (void)argument;
    OPEN_SOLO(&solo,
              .options = JANUS_ACTOR_OPTIONS(.max_messages = 2, .overflow = JANUS_OVERFLOW_FAIL));
    keep_busy(&solo, 0);
    for (int i = 1; i <= 2; i++) tell(solo.actor, act_note, NULL, i);
    MUST_EQ(say(solo.actor, act_note, NULL, 3), JANUS_FULL);
    janus_status status = try_say(solo.actor, act_note, NULL, 3);
    MUST(status == JANUS_FULL || status == JANUS_WOULD_WAIT);
    let_go(&solo);
    MUST_EQ(janus_actor_stop(solo.actor, JANUS_STOP_HOW_DRAIN, 0), JANUS_OK);
    (void)await_end(solo.actor);
    LOGGED(&solo.role, 0, 1, 2);
    MUST_EQ(close_stage(solo.stage).sent, 3);
    return 0;
}

TEST("a full mailbox that refuses returns FULL, and nothing was sent") { PLAY(scene_refuse); }

static int64_t scene_drop_oldest(void *argument)
{
    struct role       role = {0};
    struct door       gate;
    janus_supervisor *stage = open_stage();
    janus_actor       actor = ADD(
        stage, .argument = &role,
        .options = JANUS_ACTOR_OPTIONS(.max_messages = 3, .overflow = JANUS_OVERFLOW_DROP_OLDEST));
    (void)argument;
    door_init(&gate);
    tell(actor, act_door, &gate, 0);
    await_inside(&gate);
    for (int i = 1; i <= 8; i++) tell(actor, act_note, NULL, i);
    MUST_EQ(look(actor).dead, 5);
    janus_event_set(&gate.open);
    MUST_EQ(janus_actor_stop(actor, JANUS_STOP_HOW_DRAIN, 0), JANUS_OK);
    (void)await_end(actor);
    LOGGED(&role, 0, 6, 7, 8);
    janus_supervisor_result result = close_stage(stage);
    MUST_EQ(result.dead, 5);
    MUST_EQ(result.handled, 4);
    return 0;
}

TEST("a full mailbox that drops makes the oldest message a dead letter")
{
    PLAY(scene_drop_oldest);
}

static int64_t scene_cast_deadline(void *argument)
{
    struct solo solo = {.role = {0}};
    struct line line = {act_note, NULL, 9};
    (void)argument;
    OPEN_SOLO(&solo, .options = JANUS_ACTOR_OPTIONS(.max_messages = 1));
    keep_busy(&solo, 0);
    tell(solo.actor, act_note, NULL, 1);
    uint64_t begin = janus_now_ns();
    MUST_EQ(janus_cast_with(solo.actor, &line,
                            JANUS_CAST_OPTIONS(.deadline_ns = begin + JANUS_SECONDS)),
            JANUS_DEADLINE);
    MUST(janus_now_ns() - begin >= JANUS_SECONDS);
    MUST_EQ(janus_cast_with(solo.actor, &line, JANUS_CAST_OPTIONS(.refuses = true)),
            JANUS_WOULD_WAIT);
    let_go(&solo);
    MUST_EQ(settle(solo.actor), 0);
    LOGGED(&solo.role, 0, 1);
    MUST_EQ(close_stage(solo.stage).sent, 3);
    return 0;
}

TEST("a cast waits for room until its deadline, and then nothing was sent")
{
    PLAY(scene_cast_deadline, .timed = true);
}

static int64_t scene_cast_null(void *argument)
{
    struct solo solo = {.role = {0}};
    (void)argument;
    OPEN_SOLO(&solo);
    MUST_EQ(janus_cast(solo.actor, NULL), JANUS_INVALID);
    MUST_EQ(janus_try_cast(solo.actor, NULL), JANUS_INVALID);
    MUST_EQ(janus_call(solo.actor, NULL, NULL, play_late()), JANUS_INVALID);
    MUST_EQ(look(solo.actor).sent, 0);
    close_stage(solo.stage);
    return 0;
}

TEST("a message that is NULL is refused") { PLAY(scene_cast_null); }

/* A sender that is cancelled while it waits for room. */

struct waiting {
    janus_actor  actor;
    janus_status status;
};

static int64_t wait_for_room(void *argument)
{
    struct waiting *waiting = argument;
    waiting->status = say(waiting->actor, act_note, NULL, 5);
    return waiting->status;
}

static int64_t scene_cancelled_sender(void *argument)
{
    struct role       role = {0};
    struct door       gate;
    janus_status      ended;
    janus_supervisor *stage = open_stage();
    janus_actor       actor =
        ADD(stage, .argument = &role, .options = JANUS_ACTOR_OPTIONS(.max_messages = 1));
    struct waiting waiting = {actor, JANUS_OK};
    (void)argument;
    door_init(&gate);
    tell(actor, act_door, &gate, 0);
    await_inside(&gate);
    tell(actor, act_note, NULL, 1);
    JANUS_NURSERY(n, ended, .owner_apart = true)
    {
        MUST_EQ(janus_spawn(n, wait_for_room, &waiting), JANUS_OK);
        MUST_EQ(janus_yield(), JANUS_OK);
        MUST_EQ(janus_nursery_cancel(n), JANUS_OK);
    }
    MUST_EQ(ended, JANUS_CANCELLED);
    janus_event_set(&gate.open);
    MUST_EQ(settle(actor), 0);
    LOGGED(&role, 0, 1);
    MUST_EQ(close_stage(stage).sent, 3);
    return 0;
}

TEST("a sender that is cancelled while it waits for room has sent nothing")
{
    PLAY(scene_cancelled_sender);
}

/* A place between two incarnations. */

static int64_t scene_delayed(void *argument)
{
    struct role       role = {0};
    int64_t           sum = 0;
    uint64_t          begin = janus_now_ns();
    janus_supervisor *stage = NULL;
    (void)argument;
    MUST_EQ(
        janus_supervisor_open(
            JANUS_SUPERVISOR_OPTIONS(.max_restarts = 10, .delay_ns = 10 * JANUS_SECONDS), &stage),
        JANUS_OK);
    janus_actor actor = ADD(stage, .argument = &role);
    MUST_EQ(request(actor, act_return, NULL, -100, NULL), JANUS_RESTARTED);
    for (int i = 1; i <= 3; i++) tell(actor, act_add, NULL, i);
    MUST_EQ(look(actor).state, JANUS_ACTOR_STATE_DELAYED);
    MUST_EQ(look(actor).messages, 3);
    MUST_EQ(request(actor, act_add, NULL, 4, &sum), JANUS_OK);
    MUST_EQ(sum, 10);
    MUST(janus_now_ns() - begin >= 10 * JANUS_SECONDS);
    close_stage(stage);
    return 0;
}

TEST("an actor that waits for its restart takes messages, and handles them afterwards")
{
    PLAY(scene_delayed, .timed = true);
}

static void end_at_gate(struct self *self, const janus_end *end)
{
    struct door *gate = self->role->stage;
    if (end->kind != JANUS_END_KIND_FAILED) return;
    janus_event_set(&gate->inside);
    MUST_EQ(janus_event_wait(&gate->open), JANUS_OK);
}

static int64_t scene_terminating(void *argument)
{
    struct door       gate;
    struct role       role = {.end = end_at_gate, .stage = &gate};
    janus_supervisor *stage = open_stage();
    janus_actor       actor = ADD(stage, .argument = &role);
    (void)argument;
    door_init(&gate);
    tell(actor, act_return, NULL, -100);
    await_inside(&gate);
    for (int i = 1; i <= 3; i++) MUST_EQ(say(actor, act_note, NULL, i), JANUS_OK);
    janus_event_set(&gate.open);
    MUST_EQ(settle(actor), 0);
    LOGGED(&role, 1, 2, 3);
    MUST_EQ(role.starts, 2);
    close_stage(stage);
    return 0;
}

TEST("an actor that has failed takes messages while its terminate runs")
{
    PLAY(scene_terminating);
}

static int64_t act_gate_and_fail(struct self *self, janus_letter *letter, const struct line *line)
{
    MUST_EQ(act_door(self, letter, line), JANUS_ACTOR_GO_ON);
    return -100;
}

static int64_t scene_fail_while_full(void *argument)
{
    struct solo    solo = {.role = {0}};
    struct waiting waiting[3];
    janus_status   ended;
    (void)argument;
    OPEN_SOLO(&solo, .options = JANUS_ACTOR_OPTIONS(.max_messages = 1));
    tell(solo.actor, act_gate_and_fail, &solo.gate, 0);
    await_inside(&solo.gate);
    tell(solo.actor, act_note, NULL, 1);
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < 3; i++) {
            waiting[i] = (struct waiting){solo.actor, JANUS_OK};
            MUST_EQ(janus_spawn(n, wait_for_room, &waiting[i]), JANUS_OK);
        }
        MUST_EQ(janus_yield(), JANUS_OK);
        let_go(&solo);
    }
    MUST_EQ(ended, JANUS_OK);
    for (int i = 0; i < 3; i++) MUST_EQ(waiting[i].status, JANUS_OK);
    MUST_EQ(settle(solo.actor), 0);
    LOGGED(&solo.role, 0, 1, 5, 5, 5);
    close_stage(solo.stage);
    return 0;
}

TEST("senders that wait for room wait on when the actor fails and is restarted")
{
    PLAY(scene_fail_while_full);
}
