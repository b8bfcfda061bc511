/* SPDX-License-Identifier: MIT */
/* Actors that fail: what callers learn, and what the next incarnation has. G4, A2. */
#include "play.h"

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

struct crash {
    play_act      *act;
    int64_t        number;
    janus_end_kind kind;
};

static const struct crash crashes[] = {{act_return, -101, JANUS_END_KIND_FAILED},
                                       {act_panic, 0, JANUS_END_KIND_PANICKED},
                                       {act_overflow, 0, JANUS_END_KIND_OVERFLOWED}};
enum { CRASHES = JRT_TSAN ? 2 : 3 };

/* The caller. */

static int64_t scene_caller(void *argument)
{
    (void)argument;
    for (int i = 0; i < CRASHES; i++) {
        struct role       role = {0}, other = {0};
        int64_t           reply = 77;
        janus_supervisor *stage = open_stage();
        janus_actor       actor = ADD(stage, .argument = &role);
        janus_actor mortal = ADD(stage, .argument = &other, .restart = JANUS_RESTART_TEMPORARY);
        MUST_EQ(request(actor, crashes[i].act, NULL, crashes[i].number, &reply), JANUS_RESTARTED);
        MUST_EQ(request(mortal, crashes[i].act, NULL, crashes[i].number, &reply), JANUS_GONE);
        MUST_EQ(reply, 77); /* untouched */
        MUST_EQ(settle(actor), 0);
        janus_actor_info info = look(actor);
        MUST_EQ(info.incarnation, 2);
        MUST_EQ(info.failures, 1);
        MUST_EQ(info.last.kind, crashes[i].kind);
        MUST_EQ(info.last.incarnation, 1);
        MUST(!info.last.final);
        MUST_EQ(info.last.error, i == 0 ? -101 : 0);
        close_stage(stage);
    }
    return 0;
}

TEST("a caller learns that the actor failed: RESTARTED if it goes on, GONE if not")
{
    PLAY(scene_caller, .panics = true, .schedules = 200);
}

/* Reports. */

static int reports;

static void count_panic(void *argument, const janus_panic_report *report)
{
    (void)argument, (void)report;
    reports++;
}

static int64_t scene_reports(void *argument)
{
    struct role        role = {0}, other = {0};
    janus_restart_info history[8];
    janus_supervisor  *stage = open_stage();
    janus_actor        actor = ADD(stage, .id = "clown", .argument = &role);
    janus_actor        quiet = ADD(stage, .argument = &other, .restart = JANUS_RESTART_TEMPORARY);
    (void)argument;
    for (int i = 0; i < 8; i++) history[i] = JANUS_RESTART_INFO();
    reports = 0;
    for (int i = 0; i < 2; i++) {
        tell(actor, crashes[i].act, NULL, crashes[i].number);
        MUST_EQ(settle(actor), 0);
    }
    MUST_EQ(janus_actor_stop(quiet, JANUS_STOP_HOW_AFTER_THIS, 0), JANUS_OK);
    (void)await_end(quiet);
    MUST(janus_supervisor_history(stage, history, 8) >= 2);
    int found = 0;
    for (int i = 0; i < 8; i++) {
        if (!history[i].restarted) continue;
        MUST(strcmp(history[i].child, "clown") == 0);
        MUST_EQ(history[i].end.kind, crashes[1 - found].kind); /* the newest first */
        found++;
    }
    MUST_EQ(found, 2);
    MUST_EQ(reports, 1); /* of the panic, not of the stop */
    close_stage(stage);
    return 0;
}

TEST("each failure is in the history once, each panic is reported once, a stop is not")
{
    PLAY(scene_reports, .panics = true,
         .scheduler = JANUS_SCHEDULER_OPTIONS(.on_panic = count_panic));
}

/* State and mailbox. */

static int64_t act_break_state(struct self *self, janus_letter *letter, const struct line *line)
{
    (void)letter;
    self->sum = 99;
    self->words[0] = 99; /* player_init finds it if it is not scrubbed */
    return line->number;
}

static int64_t scene_fresh_state(void *argument)
{
    struct solo solo = {.role = {0}};
    (void)argument;
    OPEN_SOLO(&solo);
    for (int i = 0; i < 5; i++) {
        tell(solo.actor, act_add, NULL, 7);
        tell(solo.actor, act_break_state, NULL, -100);
        MUST_EQ(settle(solo.actor), 0);
    }
    MUST_EQ(solo.role.starts, 6);
    MUST_EQ(solo.role.ends, 5);
    MUST_EQ(look(solo.actor).incarnation, 6);
    MUST_EQ(close_stage(solo.stage).restarts, 5);
    return 0;
}

TEST("an actor that failed begins with zeroed state, and never goes on with the old one")
{
    PLAY(scene_fresh_state);
}

static int64_t scene_mail_survives(void *argument)
{
    struct solo solo = {.role = {0}};
    (void)argument;
    OPEN_SOLO(&solo);
    keep_busy(&solo, 1);
    tell(solo.actor, act_return, NULL, -100);
    tell(solo.actor, act_note, NULL, 2);
    tell(solo.actor, act_panic, NULL, 0);
    tell(solo.actor, act_note, NULL, 3);
    let_go(&solo);
    MUST_EQ(settle(solo.actor), 0);
    LOGGED(&solo.role, 1, 2, 3); /* and what failed did not come again */
    MUST_EQ(solo.role.starts, 3);
    janus_supervisor_result result = close_stage(solo.stage);
    MUST_EQ(result.dead, 0);
    MUST_EQ(result.handled, 6);
    return 0;
}

TEST("messages that were not handled survive a failure; the message that failed does not come back")
{
    PLAY(scene_mail_survives, .panics = true);
}

static int64_t scene_drops_mail(void *argument)
{
    struct solo solo = {.role = {0}};
    (void)argument;
    OPEN_SOLO(&solo, .drops_mail = true);
    keep_busy(&solo, 1);
    tell(solo.actor, act_return, NULL, -100);
    for (int i = 0; i < 4; i++) tell(solo.actor, act_note, NULL, 2);
    let_go(&solo);
    /* The second incarnation may begin before or after this call is queued. */
    janus_status status = request(solo.actor, act_note, NULL, 3, NULL);
    if (status != JANUS_OK) MUST_EQ(status, JANUS_RESTARTED);
    MUST_EQ(settle(solo.actor), 0);
    MUST(solo.role.logged == (status == JANUS_OK ? 2 : 1));
    janus_supervisor_result result = close_stage(solo.stage);
    MUST(result.dead + result.returned == (status == JANUS_OK ? 4 : 5));
    return 0;
}

TEST("with drops_mail a restart makes dead letters of what is queued") { PLAY(scene_drops_mail); }

/* Senders and callers around a restart. */

struct crowd {
    janus_actor actor;
    int         answered, restarted;
};

static int64_t call_often(void *argument)
{
    struct crowd *crowd = argument;
    for (int i = 0; i < 6; i++) {
        int64_t      reply = -1;
        janus_status status = request(crowd->actor, i % 3 == 1 ? act_return : act_note, NULL,
                                      i % 3 == 1 ? -100 : i, &reply);
        if (i % 3 == 1) MUST_EQ(status, JANUS_RESTARTED);
        if (i % 3 != 1) MUST_EQ(status, JANUS_OK);
        crowd->answered += status == JANUS_OK;
        crowd->restarted += status == JANUS_RESTARTED;
    }
    return 0;
}

static int64_t scene_only_one_hurt(void *argument)
{
    struct solo  solo = {.role = {0}};
    struct crowd crowds[3];
    janus_status ended;
    (void)argument;
    OPEN_SOLO(&solo);
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < 3; i++) {
            crowds[i] = (struct crowd){.actor = solo.actor};
            MUST_EQ(janus_spawn(n, call_often, &crowds[i]), JANUS_OK);
        }
    }
    MUST_EQ(ended, JANUS_OK);
    for (int i = 0; i < 3; i++) {
        MUST_EQ(crowds[i].answered, 4);
        MUST_EQ(crowds[i].restarted, 2);
    }
    MUST_EQ(solo.role.starts, 7);
    MUST_EQ(solo.role.logged, 12);
    close_stage(solo.stage);
    return 0;
}

TEST("a failure hurts the caller of the failed message only; calls that wait are answered later")
{
    PLAY(scene_only_one_hurt);
}

/* What a handler leaves behind. */

struct mess {
    janus_mutex lock;
    int         defers;
};

static void count_defer(void *argument) { ++*(int *)argument; }

static int64_t act_mess(struct self *self, janus_letter *letter, const struct line *line)
{
    struct mess *mess = line->argument;
    (void)self, (void)letter;
    MUST_EQ(janus_defer(count_defer, &mess->defers), JANUS_OK);
    MUST_EQ(janus_mutex_lock(&mess->lock), JANUS_OK);
    janus_shield_begin();
    return line->number;
}

static int64_t scene_mess(void *argument)
{
    struct solo solo = {.role = {0}};
    struct mess mess = {.defers = 0};
    (void)argument;
    OPEN_SOLO(&solo);
    janus_mutex_init(&mess.lock, "left");
    for (int i = 0; i < 2; i++) { /* after a success, and after a failure */
        tell(solo.actor, act_mess, &mess, i == 0 ? JANUS_ACTOR_GO_ON : -100);
        MUST_EQ(settle(solo.actor), 0);
        MUST_EQ(mess.defers, i + 1);
        MUST_EQ(janus_mutex_lock(&mess.lock), JANUS_OK);
        MUST(janus_mutex_is_abandoned(&mess.lock));
        MUST_EQ(janus_mutex_repaired(&mess.lock), JANUS_OK);
        MUST_EQ(janus_mutex_unlock(&mess.lock), JANUS_OK);
    }
    MUST_EQ(janus_actor_stop(solo.actor, JANUS_STOP_HOW_AT_ONCE, 0),
            JANUS_OK); /* no shield holds it */
    (void)await_end(solo.actor);
    close_stage(solo.stage);
    return 0;
}

TEST("when a handler returns, its defers run, its locks are given up, its shields end")
{
    PLAY(scene_mess);
}

static int64_t act_leave_nursery(struct self *self, janus_letter *letter, const struct line *line)
{
    (void)self, (void)letter;
    return janus_nursery_open(line->argument, NULL);
}

static int64_t scene_open_nursery(void *argument)
{
    struct solo   solo = {.role = {0}};
    janus_nursery nursery;
    (void)argument;
    OPEN_SOLO(&solo, .restart = JANUS_RESTART_TEMPORARY);
    tell(solo.actor, act_leave_nursery, &nursery, 0);
    await_kind(solo.actor, JANUS_END_KIND_PANICKED);
    close_stage(solo.stage);
    return 0;
}

/* The explorer takes it for a broken contract. */
TEST("a handler that leaves a nursery open panics")
{
    play_for_real(&(struct performance){.entry = scene_open_nursery});
}

static int64_t act_alloc(struct self *self, janus_letter *letter, const struct line *line)
{
    janus_memory_info info = JANUS_MEMORY_INFO();
    if (line->number > 0) MUST(janus_alloc((size_t)line->number) != NULL);
    MUST_EQ(janus_memory_inspect(&info), JANUS_OK);
    answer(letter, (int64_t)info.live_bytes);
    (void)self;
    return JANUS_ACTOR_GO_ON;
}

static int64_t scene_memory(void *argument)
{
    struct solo solo = {.role = {0}};
    int64_t     fresh = 0, kept = 0, after = 0;
    (void)argument;
    OPEN_SOLO(&solo);
    MUST_EQ(request(solo.actor, act_alloc, NULL, 0, &fresh), JANUS_OK);
    for (int i = 0; i < 4; i++) tell(solo.actor, act_alloc, NULL, 4096);
    MUST_EQ(request(solo.actor, act_alloc, NULL, 0, &kept), JANUS_OK);
    MUST_EQ(kept, fresh + 4 * 4096);
    tell(solo.actor, act_return, NULL, -100);
    MUST_EQ(request(solo.actor, act_alloc, NULL, 0, &after), JANUS_OK);
    MUST_EQ(after, fresh);
    close_stage(solo.stage);
    return 0;
}

TEST("memory of janus_alloc stays between messages, and is freed at a restart")
{
    PLAY(scene_memory);
}
