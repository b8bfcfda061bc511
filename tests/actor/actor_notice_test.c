/* SPDX-License-Identifier: MIT */
/* Timers, IDLE and CONTINUE: notices overtake messages. G8, G9, G10, A11.5. */
#include "play.h"

/* Logs 1000 times the kind, and the tag. */
static int64_t log_notice(struct self *self, janus_letter *letter)
{
    note(self, (int64_t)letter->kind * 1000 + (int64_t)letter->tag);
    return JANUS_ACTOR_GO_ON;
}

enum {
    DOWN = JANUS_LETTER_KIND_DOWN * 1000,
    TIMER = JANUS_LETTER_KIND_TIMER * 1000,
    IDLE = JANUS_LETTER_KIND_IDLE * 1000,
    CONTINUE = JANUS_LETTER_KIND_CONTINUE * 1000,
};

/* Continue. */

static int64_t start_to_continue(struct self *self)
{
    (void)self;
    MUST_EQ(janus_actor_continue(7), JANUS_OK);
    MUST_EQ(janus_actor_continue(8), JANUS_STATE); /* one is pending */
    return JANUS_ACTOR_GO_ON;
}

static int64_t act_fail_once(struct self *self, janus_letter *letter, const struct line *line)
{
    (void)letter, (void)line;
    note(self, 1);
    return self->role->starts == 1 ? -100 : JANUS_ACTOR_GO_ON;
}

static int64_t scene_continue(void *argument)
{
    struct role       role = {.start = start_to_continue, .notice = log_notice};
    janus_supervisor *stage = open_stage();
    janus_actor       actor = ADD(stage, .argument = &role);
    (void)argument;
    for (int i = 2; i < 5; i++) tell(actor, i == 2 ? act_fail_once : act_note, NULL, i);
    MUST_EQ(settle(actor), 0);
    /* The second incarnation finds messages waiting. */
    LOGGED(&role, CONTINUE + 7, 1, CONTINUE + 7, 3, 4);
    MUST_EQ(look(actor).notices, 2);
    MUST_EQ(janus_actor_continue(1), JANUS_STATE);
    close_stage(stage);
    return 0;
}

TEST("the CONTINUE of init comes before the first message, even if messages wait")
{
    PLAY(scene_continue);
}

static int64_t act_continue(struct self *self, janus_letter *letter, const struct line *line)
{
    (void)letter;
    MUST_EQ(janus_actor_after(0, 5, NULL), JANUS_OK);
    MUST_EQ(janus_actor_continue((uint64_t)line->number), JANUS_OK);
    note(self, line->number);
    return JANUS_ACTOR_GO_ON;
}

static int64_t scene_continue_first(void *argument)
{
    struct role       role = {.notice = log_notice};
    janus_supervisor *stage = open_stage();
    janus_actor       actor = ADD(stage, .argument = &role);
    (void)argument;
    tell(actor, act_continue, NULL, 1);
    tell(actor, act_note, NULL, 2);
    MUST_EQ(settle(actor), 0);
    MUST_EQ(role.log[0], 1);
    MUST_EQ(role.log[1], CONTINUE + 1); /* before the timer, and before the message */
    close_stage(stage);
    return 0;
}

TEST("CONTINUE comes before every other letter") { PLAY(scene_continue_first); }

/* Timers. */

static int64_t act_timer(struct self *self, janus_letter *letter, const struct line *line)
{
    janus_actor_timer *out = line->argument;
    (void)self, (void)letter;
    MUST_EQ(janus_actor_after((uint64_t)line->number * JANUS_MS, (uint64_t)line->number, out),
            JANUS_OK);
    return JANUS_ACTOR_GO_ON;
}

static int64_t act_cancel_timer(struct self *self, janus_letter *letter, const struct line *line)
{
    (void)letter;
    note(self, janus_actor_cancel_timer(*(janus_actor_timer *)line->argument));
    return JANUS_ACTOR_GO_ON;
}

static int64_t scene_timers(void *argument)
{
    struct role       role = {.notice = log_notice};
    janus_actor_timer timers[4];
    uint64_t          begin = janus_now_ns();
    janus_supervisor *stage = open_stage();
    janus_actor       actor = ADD(stage, .argument = &role);
    (void)argument;
    const int64_t delays[] = {30, 10, 20, 15};
    for (int i = 0; i < 4; i++) tell(actor, act_timer, &timers[i], delays[i]);
    tell(actor, act_cancel_timer, &timers[3], 0);
    MUST_EQ(settle(actor), 0);
    MUST_EQ(janus_sleep_until(begin + 100 * JANUS_MS), JANUS_OK);
    for (int i = 0; i < 4; i++) tell(actor, act_cancel_timer, &timers[i], 0);
    MUST_EQ(settle(actor), 0);
    LOGGED(&role, JANUS_OK, TIMER + 10, TIMER + 20, TIMER + 30, JANUS_STALE, JANUS_STALE,
           JANUS_STALE, JANUS_STALE);
    MUST_EQ(look(actor).notices, 3);
    close_stage(stage);
    return 0;
}

TEST("timers ring in the order of time, once each; a cancelled one does not ring")
{
    PLAY(scene_timers, .timed = true);
}

/* Cancels a timer whose notice may be in the lane already. */
static int64_t act_cancel_at_once(struct self *self, janus_letter *letter, const struct line *line)
{
    janus_actor_timer timer;
    (void)letter, (void)line;
    MUST_EQ(janus_actor_after(0, 9, &timer), JANUS_OK);
    for (int i = 0; i < 3; i++) MUST_EQ(janus_yield(), JANUS_OK);
    MUST_EQ(janus_actor_cancel_timer(timer), JANUS_OK); /* its notice was not handled */
    MUST_EQ(janus_actor_cancel_timer(timer), JANUS_STALE);
    note(self, 1);
    return JANUS_ACTOR_GO_ON;
}

static int64_t scene_cancel_rung(void *argument)
{
    struct role       role = {.notice = log_notice};
    janus_supervisor *stage = open_stage();
    janus_actor       actor = ADD(stage, .argument = &role);
    (void)argument;
    for (int i = 0; i < 3; i++) tell(actor, act_cancel_at_once, NULL, 0);
    MUST_EQ(janus_sleep(JANUS_MS), JANUS_OK); /* time for a notice that must not come */
    MUST_EQ(settle(actor), 0);
    LOGGED(&role, 1, 1, 1);
    MUST_EQ(look(actor).notices, 0);
    close_stage(stage);
    return 0;
}

TEST("after a timer was cancelled no notice of it comes, even if it had rung")
{
    PLAY(scene_cancel_rung);
}

static int64_t scene_timer_restart(void *argument)
{
    struct role       role = {.notice = log_notice};
    janus_actor_timer timer;
    janus_supervisor *stage = open_stage();
    janus_actor       actor = ADD(stage, .argument = &role);
    (void)argument;
    tell(actor, act_timer, &timer, 10);
    tell(actor, act_return, NULL, -100);
    tell(actor, act_cancel_timer, &timer, 0);
    tell(actor, act_timer, NULL, 20);
    MUST_EQ(settle(actor), 0);
    MUST_EQ(janus_sleep(50 * JANUS_MS), JANUS_OK);
    MUST_EQ(settle(actor), 0);
    LOGGED(&role, JANUS_STALE, TIMER + 20);
    close_stage(stage);
    return 0;
}

TEST("a timer ends with its incarnation") { PLAY(scene_timer_restart, .timed = true); }

static int64_t act_many_timers(struct self *self, janus_letter *letter, const struct line *line)
{
    (void)letter, (void)line;
    for (int i = 0; i < 1024; i++) MUST_EQ(janus_actor_after(play_late(), 1, NULL), JANUS_OK);
    MUST_EQ(janus_actor_after(play_late(), 1, NULL), JANUS_FULL);
    note(self, 1);
    return JANUS_ACTOR_STOP;
}

static int64_t scene_many_timers(void *argument)
{
    struct role       role = {.notice = log_notice};
    janus_supervisor *stage = open_stage();
    janus_actor       actor = ADD(stage, .argument = &role, .restart = JANUS_RESTART_TEMPORARY);
    (void)argument;
    tell(actor, act_many_timers, NULL, 0);
    (void)await_end(actor);
    LOGGED(&role, 1);
    close_stage(stage);
    MUST_EQ(janus_actor_after(1, 1, NULL), JANUS_STATE);
    MUST_EQ(janus_actor_idle_after(1, 1), JANUS_STATE);
    MUST_EQ(janus_actor_cancel_timer((janus_actor_timer){{1, 1}}), JANUS_STATE);
    return 0;
}

TEST("an actor has up to 1024 timers, and they end with it")
{
    PLAY(scene_many_timers, .schedules = 50);
}

/* Idle. */

static int64_t act_idle(struct self *self, janus_letter *letter, const struct line *line)
{
    (void)self, (void)letter;
    MUST_EQ(janus_actor_idle_after((uint64_t)line->number * JANUS_MS, (uint64_t)line->number),
            JANUS_OK);
    return JANUS_ACTOR_GO_ON;
}

static int64_t scene_idle(void *argument)
{
    struct role       role = {.notice = log_notice};
    janus_supervisor *stage = open_stage();
    janus_actor       actor = ADD(stage, .argument = &role);
    (void)argument;
    tell(actor, act_idle, NULL, 10);
    MUST_EQ(janus_sleep(50 * JANUS_MS), JANUS_OK);
    MUST_EQ(settle(actor), 0);
    LOGGED(&role, IDLE + 10); /* once */
    tell(actor, act_idle, NULL, 20);
    tell(actor, act_idle, NULL, 0); /* taken back */
    MUST_EQ(janus_sleep(50 * JANUS_MS), JANUS_OK);
    MUST_EQ(settle(actor), 0);
    MUST_EQ(role.logged, 1);
    close_stage(stage);
    return 0;
}

TEST("IDLE comes once after the given time without letters, and not if it was taken back")
{
    PLAY(scene_idle, .timed = true);
}

static int64_t scene_not_idle(void *argument)
{
    struct role       role = {.notice = log_notice};
    janus_supervisor *stage = open_stage();
    janus_actor       actor = ADD(stage, .argument = &role);
    (void)argument;
    tell(actor, act_idle, NULL, 10);
    for (int i = 1; i <= 5; i++) { /* a letter every 5 ms */
        MUST_EQ(janus_sleep(5 * JANUS_MS), JANUS_OK);
        tell(actor, act_note, NULL, i);
        MUST_EQ(settle(actor), 0);
    }
    LOGGED(&role, 1, 2, 3, 4, 5);
    close_stage(stage);
    return 0;
}

TEST("a letter that comes in time keeps IDLE away") { PLAY(scene_not_idle, .timed = true); }

/* Lanes. */

static int64_t act_watch(struct self *self, janus_letter *letter, const struct line *line)
{
    (void)self;
    MUST_EQ(janus_actor_watch(*(janus_actor *)line->argument, (uint64_t)line->number, NULL),
            JANUS_OK);
    answer(letter, 0);
    return JANUS_ACTOR_GO_ON;
}

static int64_t scene_overtake(void *argument)
{
    struct role       role = {.notice = log_notice}, other = {0};
    struct door       gate;
    janus_supervisor *stage = open_stage();
    janus_actor       actor = ADD(stage, .argument = &role);
    janus_actor       dying = ADD(stage, .argument = &other, .restart = JANUS_RESTART_TEMPORARY);
    (void)argument;
    door_init(&gate);
    MUST_EQ(request(actor, act_watch, &dying, 5, NULL), JANUS_OK);
    tell(actor, act_door, &gate, 100);
    await_inside(&gate);
    for (int i = 0; i < 64; i++) tell(actor, act_note, NULL, i);
    MUST_EQ(try_say(actor, act_note, NULL, 64), JANUS_WOULD_WAIT);
    tell(dying, act_return, NULL, JANUS_ACTOR_STOP);
    (void)await_end(dying);
    janus_event_set(&gate.open);
    MUST_EQ(janus_actor_stop(actor, JANUS_STOP_HOW_DRAIN, 0), JANUS_OK);
    (void)await_end(actor);
    MUST_EQ(role.logged, 66);
    MUST_EQ(role.log[0], 100);
    MUST_EQ(role.log[1], DOWN + 5);
    for (int i = 0; i < 64; i++) MUST_EQ(role.log[2 + i], i);
    close_stage(stage);
    return 0;
}

/* Watchers have their DOWN when janus_actor_await returns. */
TEST("the DOWN of a watched actor overtakes 64 messages that fill the mailbox")
{
    PLAY(scene_overtake);
}

static int64_t answer_nothing(struct self *self, janus_letter *letter)
{
    MUST(!janus_letter_is_call(letter));
    MUST_EQ(janus_reply(letter, &self->sum), JANUS_STATE);
    if (letter->tag == 6) return JANUS_ACTOR_LATER; /* nothing is to be put aside */
    return JANUS_ACTOR_GO_ON;
}

static int64_t scene_unknown_notice(void *argument)
{
    struct role       role = {.notice = answer_nothing};
    janus_supervisor *stage = open_stage();
    janus_actor       actor = ADD(stage, .argument = &role);
    (void)argument;
    for (int i = 1; i <= 3; i++) tell(actor, act_timer, NULL, i);
    MUST_EQ(janus_sleep(20 * JANUS_MS), JANUS_OK);
    MUST_EQ(settle(actor), 0);
    janus_actor_info info = look(actor);
    MUST_EQ(info.notices, 3);
    MUST_EQ(info.incarnation, 1);
    MUST_EQ(info.handled, 4);
    close_stage(stage);
    return 0;
}

/* G8. */
TEST("a notice that the behaviour does not know is counted, and harms nothing")
{
    PLAY(scene_unknown_notice, .timed = true);
}

static int64_t fail_at_notice(struct self *self, janus_letter *letter)
{
    note(self, (int64_t)letter->tag);
    return self->role->starts == 1 ? -100 : JANUS_ACTOR_GO_ON;
}

static int64_t scene_notice_fails(void *argument)
{
    struct role        role = {.notice = fail_at_notice};
    janus_restart_info history = JANUS_RESTART_INFO();
    janus_supervisor  *stage = open_stage();
    janus_actor        actor = ADD(stage, .argument = &role);
    (void)argument;
    tell(actor, act_timer, NULL, 3);
    MUST_EQ(janus_sleep(20 * JANUS_MS), JANUS_OK);
    MUST_EQ(settle(actor), 0);
    LOGGED(&role, 3);
    MUST_EQ(role.starts, 2);
    MUST_EQ(janus_supervisor_history(stage, &history, 1), 1);
    MUST_EQ(history.tag, 3);
    MUST_EQ(history.end.kind, JANUS_END_KIND_FAILED);
    close_stage(stage);
    return 0;
}

TEST("an actor that fails at a notice is restarted, and the history has the tag")
{
    PLAY(scene_notice_fails, .timed = true);
}
