/* SPDX-License-Identifier: MIT */
/* How actors end: by themselves, by janus_actor_stop, and what terminate learns. G3, G16. */
#include "play.h"

/* Whether the stopped actor says so. What a drained one says is for the header to decide. */
static bool is_stopped(janus_end_kind kind)
{
    return kind == JANUS_END_KIND_STOPPED || kind == JANUS_END_KIND_NORMAL ||
           kind == JANUS_END_KIND_NEVER; /* await_end */
}

static int64_t scene_return_stop(void *argument)
{
    struct solo solo = {.role = {0}};
    (void)argument;
    OPEN_SOLO(&solo, .restart = JANUS_RESTART_TRANSIENT);
    for (int i = 0; i < 3; i++) tell(solo.actor, act_note, NULL, i);
    tell(solo.actor, act_return, NULL, JANUS_ACTOR_STOP);
    await_kind(solo.actor, JANUS_END_KIND_NORMAL);
    MUST_EQ(solo.role.ends, 1);
    MUST_EQ(solo.role.last.kind, JANUS_END_KIND_NORMAL);
    LOGGED(&solo.role, 0, 1, 2);
    close_stage(solo.stage);
    return 0;
}

TEST("an actor that returns STOP has handled what came before, and ends normally")
{
    PLAY(scene_return_stop);
}

static int64_t scene_after_this(void *argument)
{
    struct solo solo = {.role = {0}};
    (void)argument;
    OPEN_SOLO(&solo, .restart = JANUS_RESTART_TEMPORARY);
    keep_busy(&solo, 1);
    for (int i = 0; i < 5; i++) tell(solo.actor, act_note, NULL, 2);
    MUST_EQ(janus_actor_stop(solo.actor, JANUS_STOP_HOW_AFTER_THIS, 0), JANUS_OK);
    MUST_EQ(say(solo.actor, act_note, NULL, 3), JANUS_CLOSED);
    let_go(&solo);
    await_kind(solo.actor, JANUS_END_KIND_STOPPED);
    LOGGED(&solo.role, 1);
    MUST_EQ(solo.role.last.kind, JANUS_END_KIND_STOPPED);
    janus_supervisor_result result = close_stage(solo.stage);
    MUST_EQ(result.dead, 5);
    MUST_EQ(result.handled, 1);
    return 0;
}

TEST("AFTER_THIS ends the letter in hand; what is queued becomes dead letters")
{
    PLAY(scene_after_this);
}

static int64_t scene_drain(void *argument)
{
    struct solo solo = {.role = {0}};
    (void)argument;
    OPEN_SOLO(&solo, .restart = JANUS_RESTART_PERMANENT);
    keep_busy(&solo, 1);
    for (int i = 2; i < 7; i++) tell(solo.actor, act_note, NULL, i);
    MUST_EQ(janus_actor_stop(solo.actor, JANUS_STOP_HOW_DRAIN, 0), JANUS_OK);
    MUST_EQ(say(solo.actor, act_note, NULL, 9), JANUS_CLOSED);
    let_go(&solo);
    MUST(is_stopped(await_end(solo.actor).kind));
    LOGGED(&solo.role, 1, 2, 3, 4, 5, 6);
    MUST_EQ(solo.role.starts, 1); /* for good, though it is PERMANENT */
    MUST_EQ(close_stage(solo.stage).dead, 0);
    return 0;
}

TEST("DRAIN takes no more messages, handles those that wait, and ends even a permanent actor")
{
    PLAY(scene_drain);
}

static int64_t act_hang(struct self *self, janus_letter *letter, const struct line *line)
{
    struct door *gate = line->argument;
    (void)letter;
    janus_event_set(&gate->inside);
    note(self, janus_event_wait(&gate->open)); /* nobody opens */
    return JANUS_CANCELLED;
}

static int64_t scene_at_once(void *argument)
{
    struct solo solo = {.role = {0}};
    (void)argument;
    OPEN_SOLO(&solo, .restart = JANUS_RESTART_TEMPORARY);
    tell(solo.actor, act_hang, &solo.gate, 0);
    await_inside(&solo.gate);
    for (int i = 0; i < 3; i++) tell(solo.actor, act_note, NULL, 2);
    MUST_EQ(janus_actor_stop(solo.actor, JANUS_STOP_HOW_AT_ONCE, 0), JANUS_OK);
    janus_end end = await_end(solo.actor);
    MUST(end.kind == JANUS_END_KIND_STOPPED || end.kind == JANUS_END_KIND_CANCELLED ||
         end.kind == JANUS_END_KIND_NEVER);
    LOGGED(&solo.role, JANUS_CANCELLED);
    MUST_EQ(solo.role.ends, 1);
    MUST_EQ(close_stage(solo.stage).dead, 3);
    return 0;
}

TEST("AT_ONCE ends a handler's wait with CANCELLED, and terminate runs") { PLAY(scene_at_once); }

static int64_t scene_stop_late(void *argument)
{
    static const janus_stop_how hows[] = {JANUS_STOP_HOW_AFTER_THIS, JANUS_STOP_HOW_DRAIN};
    (void)argument;
    for (int i = 0; i < 2; i++) {
        struct role       role = {0};
        struct door       gate;
        janus_supervisor *stage = open_stage();
        janus_actor       actor = ADD(stage, .argument = &role);
        uint64_t          begin = janus_now_ns();
        door_init(&gate);
        tell(actor, act_hang, &gate, 0);
        await_inside(&gate);
        MUST_EQ(janus_actor_stop(actor, hows[i], 3 * JANUS_SECONDS), JANUS_OK);
        await_kind(actor, JANUS_END_KIND_CANCELLED);
        MUST(janus_now_ns() - begin >= 3 * JANUS_SECONDS);
        MUST(janus_now_ns() - begin < 4 * JANUS_SECONDS);
        LOGGED(&role, JANUS_CANCELLED);
        close_stage(stage);
    }
    return 0;
}

TEST("an actor that does not stop within its time is cancelled")
{
    PLAY(scene_stop_late, .timed = true);
}

static int64_t scene_stop_twice(void *argument)
{
    struct solo solo = {.role = {0}};
    (void)argument;
    OPEN_SOLO(&solo);
    MUST_EQ(janus_actor_stop(solo.actor, (janus_stop_how)99, 0), JANUS_INVALID);
    MUST_EQ(settle(solo.actor), 0);
    MUST_EQ(janus_actor_stop(solo.actor, JANUS_STOP_HOW_AFTER_THIS, 0), JANUS_OK);
    (void)await_end(solo.actor);
    MUST_EQ(janus_actor_stop(solo.actor, JANUS_STOP_HOW_AFTER_THIS, 0), JANUS_STALE);
    MUST_EQ(janus_actor_stop(solo.actor, JANUS_STOP_HOW_AT_ONCE, 0), JANUS_STALE);
    MUST_EQ(solo.role.starts, 1);
    MUST_EQ(solo.role.ends, 1);
    close_stage(solo.stage);
    return 0;
}

TEST("a stopped actor is not started again, and to stop it again is STALE")
{
    PLAY(scene_stop_twice);
}

static int64_t act_stop_me(struct self *self, janus_letter *letter, const struct line *line)
{
    janus_actor me;
    (void)letter;
    MUST_EQ(janus_actor_current(&me), JANUS_OK);
    MUST_EQ(janus_actor_stop(me, (janus_stop_how)line->number, 0), JANUS_OK);
    note(self, 1);
    return JANUS_ACTOR_GO_ON;
}

static int64_t scene_stop_itself(void *argument)
{
    (void)argument;
    for (int how = JANUS_STOP_HOW_AFTER_THIS; how <= JANUS_STOP_HOW_AT_ONCE; how++) {
        struct role       role = {0};
        janus_supervisor *stage = open_stage();
        janus_actor       actor = ADD(stage, .argument = &role);
        tell(actor, act_stop_me, NULL, how);
        (void)await_end(actor);
        LOGGED(&role, 1);
        MUST_EQ(role.starts, 1);
        close_stage(stage);
    }
    return 0;
}

TEST("an actor may stop itself, in each way") { PLAY(scene_stop_itself); }

/* Senders that wait when the place ends. */

struct sender {
    janus_actor  actor;
    janus_status status;
};

static int64_t send_one(void *argument)
{
    struct sender *sender = argument;
    sender->status = say(sender->actor, act_note, NULL, 5);
    return 0;
}

static int64_t call_one(void *argument)
{
    struct sender *sender = argument;
    sender->status = request(sender->actor, act_note, NULL, 5, NULL);
    return 0;
}

static int64_t scene_end_wakes_senders(void *argument)
{
    struct solo   solo = {.role = {0}};
    struct sender senders[4];
    janus_status  ended;
    (void)argument;
    OPEN_SOLO(&solo, .restart = JANUS_RESTART_TEMPORARY,
              .options = JANUS_ACTOR_OPTIONS(.max_messages = 1));
    keep_busy(&solo, 1);
    tell(solo.actor, act_note, NULL, 2); /* the mailbox is full */
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < 4; i++) {
            senders[i] = (struct sender){solo.actor, JANUS_OK};
            MUST_EQ(janus_spawn(n, i % 2 == 0 ? send_one : call_one, &senders[i]), JANUS_OK);
        }
        MUST_EQ(janus_actor_stop(solo.actor, JANUS_STOP_HOW_AFTER_THIS, 0), JANUS_OK);
        let_go(&solo);
    }
    MUST_EQ(ended, JANUS_OK);
    for (int i = 0; i < 4; i++) {
        MUST(senders[i].status == JANUS_CLOSED || senders[i].status == JANUS_STALE ||
             (i % 2 == 1 && senders[i].status == JANUS_GONE));
    }
    (void)await_end(solo.actor);
    LOGGED(&solo.role, 1);
    MUST_EQ(close_stage(solo.stage).dead, 1);
    return 0;
}

TEST("when an actor ends, senders that wait for room in its mailbox go on with a status")
{
    PLAY(scene_end_wakes_senders);
}

/* Which ends run terminate. */

__attribute__((noinline)) static int64_t dig(int64_t depth)
{
    static volatile bool bottomless = true;
    volatile char        room[400];
    room[0] = (char)depth;
    return (bottomless ? dig(depth + 1) : 0) + room[0];
}

static int64_t act_overflow(struct self *self, janus_letter *letter, const struct line *line)
{
    (void)self, (void)letter;
    return dig(line->number);
}

static int64_t scene_terminate(void *argument)
{
    static play_act *const      acts[] = {act_return, act_return, act_panic, act_overflow};
    static const int64_t        numbers[] = {JANUS_ACTOR_STOP, -7, 0, 0};
    static const janus_end_kind kinds[] = {JANUS_END_KIND_NORMAL, JANUS_END_KIND_FAILED,
                                           JANUS_END_KIND_PANICKED, JANUS_END_KIND_OVERFLOWED};
    (void)argument;
    for (int i = 0; i < (JRT_TSAN ? 3 : 4); i++) {
        struct role       role = {0};
        janus_supervisor *stage = open_stage();
        janus_actor       actor = ADD(stage, .argument = &role, .restart = JANUS_RESTART_TEMPORARY);
        tell(actor, acts[i], NULL, numbers[i]);
        janus_end end = await_end(actor);
        MUST(end.kind == kinds[i] || end.kind == JANUS_END_KIND_NEVER);
        if (end.kind != JANUS_END_KIND_NEVER) MUST_EQ(end.error, i == 1 ? -7 : 0);
        MUST_EQ(role.ends, i < 2 ? 1 : 0);
        if (i < 2) MUST_EQ(role.last.kind, kinds[i]);
        close_stage(stage);
    }
    return 0;
}

TEST("terminate learns how the actor ended, and does not run after a panic or an overflow")
{
    PLAY(scene_terminate, .panics = true, .schedules = 200);
}

static void end_with_panic(struct self *self, const janus_end *end)
{
    (void)self, (void)end;
    janus_panic("in terminate");
}

static int64_t scene_panic_in_terminate(void *argument)
{
    struct solo solo = {.role = {.end = end_with_panic}};
    (void)argument;
    OPEN_SOLO(&solo, .restart = JANUS_RESTART_TEMPORARY);
    tell(solo.actor, act_return, NULL, -55);
    await_kind(solo.actor, JANUS_END_KIND_FAILED);
    solo.actor = ADD(solo.stage, .argument = &solo.role, .restart = JANUS_RESTART_TEMPORARY);
    tell(solo.actor, act_return, NULL, JANUS_ACTOR_STOP);
    await_kind(solo.actor, JANUS_END_KIND_NORMAL);
    MUST_EQ(solo.role.ends, 2);
    close_stage(solo.stage);
    return 0;
}

/* G16, second half. */
TEST("a panic in terminate does not hide how the actor ended")
{
    PLAY(scene_panic_in_terminate, .panics = true);
}

static void end_with_wait(struct self *self, const janus_end *end)
{
    (void)end;
    note(self, janus_yield());
    note(self, janus_sleep(JANUS_MS));
}

static int64_t scene_terminate_waits(void *argument)
{
    struct solo solo = {.role = {.end = end_with_wait}};
    (void)argument;
    OPEN_SOLO(&solo);
    MUST_EQ(janus_actor_stop(solo.actor, JANUS_STOP_HOW_AT_ONCE, 0), JANUS_OK);
    (void)await_end(solo.actor);
    LOGGED(&solo.role, JANUS_OK, JANUS_OK);
    close_stage(solo.stage);
    return 0;
}

TEST("terminate is shielded: it may wait though its actor is cancelled")
{
    PLAY(scene_terminate_waits);
}

/* By its id. */

static int64_t scene_stop_by_id(void *argument)
{
    struct role       role = {0};
    janus_actor       found;
    janus_supervisor *stage = open_stage();
    janus_actor       actor = ADD(stage, .id = "till", .argument = &role);
    (void)argument;
    MUST_EQ(janus_supervisor_find_child(stage, "till", &found), JANUS_OK);
    MUST_EQ(janus_supervisor_stop_child(stage, found), JANUS_OK);
    MUST_EQ(role.ends, 1);
    MUST_EQ(role.last.kind, JANUS_END_KIND_STOPPED);
    MUST_EQ(look(actor).state, JANUS_ACTOR_STATE_EMPTY);
    MUST_EQ(say(actor, act_note, NULL, 1), JANUS_CLOSED);
    MUST_EQ(request(actor, act_note, NULL, 1, NULL), JANUS_GONE);
    MUST_EQ(janus_supervisor_start_child(stage, found), JANUS_OK);
    MUST_EQ(settle(actor), 0); /* the old handle names the place */
    MUST_EQ(look(actor).incarnation, 2);
    close_stage(stage);
    return 0;
}

TEST("a child that was stopped by its id takes no message until it is started again")
{
    PLAY(scene_stop_by_id);
}
