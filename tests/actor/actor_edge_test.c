/* SPDX-License-Identifier: MIT */
/* Edges that a bug could move unseen: limits of mailboxes, notices that wait, what a restart ends.
 * tools/actor_mutants.py moves them. */
#include "play.h"

#include "actor/supervisor.h"

#include <stdatomic.h>

/* Mailboxes. */

static int64_t scene_limit(void *argument)
{
    (void)argument;
    for (uint32_t most = 1; most <= 9; most++) {
        struct solo solo = {.role = {0}};
        uint32_t    taken = 0;
        OPEN_SOLO(&solo, .options = JANUS_ACTOR_OPTIONS(.max_messages = most,
                                                        .overflow = JANUS_OVERFLOW_FAIL));
        keep_busy(&solo, 1);
        while (say(solo.actor, act_note, NULL, 2) == JANUS_OK) taken++;
        MUST_EQ(taken, most);
        MUST_EQ(say(solo.actor, act_note, NULL, 2), JANUS_FULL);
        let_go(&solo);
        close_stage(solo.stage);
        MUST_EQ(solo.role.logged, most + 1);
    }
    return 0;
}

TEST("a mailbox takes max_messages and not one more, whatever the number") { PLAY(scene_limit); }

enum { NARROW = 2, SENDERS = 3, LETTERS = 4 };

static int64_t act_yield(struct self *self, janus_letter *letter, const struct line *line)
{
    JANUS_IGNORE(janus_yield());
    return act_note(self, letter, line);
}

/* Casts, and looks whether more lies there than there is room for. */
static int64_t send_narrow(void *argument)
{
    const struct solo *solo = argument;
    for (int i = 0; i < LETTERS; i++) {
        tell(solo->actor, act_yield, NULL, i);
        MUST(look(solo->actor).messages <= NARROW);
        JANUS_IGNORE(try_say(solo->actor, act_yield, NULL, i));
        MUST(look(solo->actor).messages <= NARROW);
    }
    return 0;
}

static int64_t scene_reserved(void *argument)
{
    struct solo  solo = {.role = {0}};
    janus_status ended;
    (void)argument;
    OPEN_SOLO(&solo, .options = JANUS_ACTOR_OPTIONS(.max_messages = NARROW));
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < SENDERS; i++) MUST_EQ(janus_spawn(n, send_narrow, &solo), JANUS_OK);
    }
    MUST_EQ(ended, JANUS_OK);
    close_stage(solo.stage);
    return 0;
}

TEST("room that was made for a waiting sender is not given to another") { PLAY(scene_reserved); }

/* DROP_OLDEST. */

struct asking {
    janus_actor  actor;
    janus_status status;
    int64_t      reply;
};

static int64_t ask_note(void *argument)
{
    struct asking *asking = argument;
    asking->status = request(asking->actor, act_note, NULL, 7, &asking->reply);
    return 0;
}

static int64_t scene_drop_spares_calls(void *argument)
{
    struct solo  solo = {.role = {0}};
    janus_status ended;
    (void)argument;
    OPEN_SOLO(&solo, .options = JANUS_ACTOR_OPTIONS(.max_messages = 2,
                                                    .overflow = JANUS_OVERFLOW_DROP_OLDEST));
    struct asking asking = {.actor = solo.actor};
    keep_busy(&solo, 1);
    JANUS_NURSERY(n, ended)
    {
        MUST_EQ(janus_spawn(n, ask_note, &asking), JANUS_OK);
        while (look(solo.actor).messages == 0) MUST_EQ(janus_yield(), JANUS_OK);
        for (int i = 10; i < 13; i++) tell(solo.actor, act_note, NULL, i);
        let_go(&solo);
    }
    MUST_EQ(ended, JANUS_OK);
    MUST_EQ(asking.status, JANUS_OK);
    MUST_EQ(asking.reply, 7);
    janus_supervisor_result result = close_stage(solo.stage);
    MUST_EQ(result.dead, 2);
    LOGGED(&solo.role, 1, 7, 12);
    return 0;
}

TEST("a full mailbox that drops keeps the calls") { PLAY(scene_drop_spares_calls); }

static int64_t act_free(struct self *self, janus_letter *letter, const struct line *line)
{
    if (letter->block != NULL) janus_free(letter->block);
    return act_note(self, letter, line);
}

static int64_t scene_drop_blocks(void *argument)
{
    struct solo solo = {.role = {0}};
    (void)argument;
    OPEN_SOLO(&solo, .options = JANUS_ACTOR_OPTIONS(.max_messages = 2, .max_bytes = 20000,
                                                    .overflow = JANUS_OVERFLOW_DROP_OLDEST));
    keep_busy(&solo, 1);
    for (int i = 0; i < 20; i++) { /* three at a time would be too many bytes */
        void *block = janus_detach(janus_alloc(5000));
        MUST_EQ(janus_cast_with(solo.actor, &(struct line){act_free, NULL, i},
                                JANUS_CAST_OPTIONS(.block = block)),
                JANUS_OK);
    }
    let_go(&solo);
    close_stage(solo.stage);
    LOGGED(&solo.role, 1, 18, 19);
    return 0;
}

TEST("a block that was dropped takes no more bytes of the mailbox") { PLAY(scene_drop_blocks); }

/* Callers whose letters die are returned, and no dead letters. */

static int64_t scene_calls_return(void *argument)
{
    struct solo  solo = {.role = {0}};
    janus_status ended;
    (void)argument;
    OPEN_SOLO(&solo, .restart = JANUS_RESTART_TEMPORARY);
    struct asking asking = {.actor = solo.actor};
    keep_busy(&solo, 1);
    JANUS_NURSERY(n, ended)
    {
        MUST_EQ(janus_spawn(n, ask_note, &asking), JANUS_OK);
        while (look(solo.actor).messages == 0) MUST_EQ(janus_yield(), JANUS_OK);
        tell(solo.actor, act_note, NULL, 2);
        MUST_EQ(janus_actor_stop(solo.actor, JANUS_STOP_HOW_AFTER_THIS, 0), JANUS_OK);
        let_go(&solo);
    }
    MUST_EQ(ended, JANUS_OK);
    MUST_EQ(asking.status, JANUS_GONE);
    janus_supervisor_result result = close_stage(solo.stage);
    MUST_EQ(result.returned, 1);
    MUST_EQ(result.dead, 1);
    MUST_EQ(result.handled, 1);
    return 0;
}

TEST("a call to an actor that ends is returned, and a cast is a dead letter")
{
    PLAY(scene_calls_return);
}

/* Stopping. */

static int64_t scene_harder(void *argument)
{
    struct solo solo = {.role = {0}};
    (void)argument;
    OPEN_SOLO(&solo, .restart = JANUS_RESTART_TEMPORARY);
    keep_busy(&solo, 1);
    for (int i = 0; i < 3; i++) tell(solo.actor, act_note, NULL, 2);
    MUST_EQ(janus_actor_stop(solo.actor, JANUS_STOP_HOW_DRAIN, 0), JANUS_OK);
    MUST_EQ(janus_actor_stop(solo.actor, JANUS_STOP_HOW_AFTER_THIS, 0), JANUS_OK);
    let_go(&solo);
    await_kind(solo.actor, JANUS_END_KIND_STOPPED);
    MUST_EQ(close_stage(solo.stage).dead, 3);
    LOGGED(&solo.role, 1);
    return 0;
}

TEST("an actor that drains and gets the order to end after this letter drains no more")
{
    PLAY(scene_harder);
}

/* What a restart ends. */

static int64_t act_door_fail(struct self *self, janus_letter *letter, const struct line *line)
{
    (void)act_door(self, letter, line);
    return -100;
}

static int64_t scene_suspended_restart(void *argument)
{
    struct solo solo = {.role = {0}};
    (void)argument;
    OPEN_SOLO(&solo, .id = "a");
    tell(solo.actor, act_door_fail, &solo.gate, 1);
    await_inside(&solo.gate);
    MUST_EQ(janus_actor_suspend(solo.actor), JANUS_OK);
    let_go(&solo);
    MUST_EQ(settle(solo.actor), 0); /* nobody resumes it */
    MUST_EQ(solo.role.starts, 2);
    MUST_EQ(janus_actor_resume(solo.actor), JANUS_STATE);
    close_stage(solo.stage);
    return 0;
}

TEST("a restart ends a suspension") { PLAY(scene_suspended_restart); }

static int64_t act_idle_fail(struct self *self, janus_letter *letter, const struct line *line)
{
    (void)self, (void)letter;
    MUST_EQ(janus_actor_idle_after(JANUS_SECONDS, 5), JANUS_OK);
    return line->number;
}

static int64_t act_continue_fail(struct self *self, janus_letter *letter, const struct line *line)
{
    (void)self, (void)letter;
    MUST_EQ(janus_actor_continue(6), JANUS_OK);
    return line->number;
}

static int64_t scene_restart_ends_notices(void *argument)
{
    struct solo solo = {.role = {0}};
    (void)argument;
    OPEN_SOLO(&solo, .id = "a");
    tell(solo.actor, act_idle_fail, NULL, -100);
    tell(solo.actor, act_continue_fail, NULL, -100);
    MUST_EQ(settle(solo.actor), 0);
    MUST_EQ(solo.role.starts, 3);
    MUST_EQ(janus_sleep(10 * JANUS_SECONDS), JANUS_OK);
    MUST_EQ(solo.role.logged, 0); /* neither IDLE nor CONTINUE */
    tell(solo.actor, act_idle_fail, NULL, 0);
    MUST_EQ(janus_sleep(10 * JANUS_SECONDS), JANUS_OK);
    LOGGED(&solo.role, 5);
    close_stage(solo.stage);
    return 0;
}

TEST("a restart ends IDLE and CONTINUE of the incarnation before")
{
    PLAY(scene_restart_ends_notices, .timed = true);
}

/* Describing an actor that fails. */

struct describing {
    janus_actor  actor;
    janus_status status;
};

static int64_t describe(void *argument)
{
    struct describing *describing = argument;
    char               text[64];
    describing->status = janus_actor_describe(describing->actor, text, sizeof text, play_late());
    return 0;
}

static int64_t scene_describe_fails(void *argument)
{
    struct solo  solo = {.role = {0}};
    janus_status ended;
    (void)argument;
    OPEN_SOLO(&solo, .id = "a");
    struct describing describing = {.actor = solo.actor};
    tell(solo.actor, act_door_fail, &solo.gate, 1);
    await_inside(&solo.gate);
    JANUS_NURSERY(n, ended)
    {
        MUST_EQ(janus_spawn(n, describe, &describing), JANUS_OK);
        MUST_EQ(janus_yield(), JANUS_OK);
        let_go(&solo);
    }
    MUST_EQ(ended, JANUS_OK);
    /* The wish came before the failure, while the actor was started again, or afterwards. */
    MUST(describing.status == JANUS_NO_REPLY || describing.status == JANUS_GONE ||
         describing.status == JANUS_OK);
    close_stage(solo.stage);
    return 0;
}

TEST("a wish to be described ends with the actor that fails") { PLAY(scene_describe_fails); }

/* Watches. */

struct watching {
    struct solo target, watcher;
    janus_watch watch;
    janus_end   end;
    int         downs;
};

static int64_t on_down(struct self *self, janus_letter *letter)
{
    struct watching *watching = self->role->stage;
    MUST_EQ(letter->kind, JANUS_LETTER_KIND_DOWN);
    watching->end = letter->end;
    watching->downs++;
    return JANUS_ACTOR_GO_ON;
}

static int64_t act_watch(struct self *self, janus_letter *letter, const struct line *line)
{
    struct watching *watching = self->role->stage;
    MUST_EQ(janus_actor_watch(watching->target.actor, 1, &watching->watch), JANUS_OK);
    answer(letter, line->number);
    return JANUS_ACTOR_GO_ON;
}

/* Waits at the gate; meanwhile the target ends. */
static int64_t act_unwatch_late(struct self *self, janus_letter *letter, const struct line *line)
{
    struct watching *watching = self->role->stage;
    int64_t          result = act_door(self, letter, line);
    MUST_EQ(janus_actor_unwatch(watching->watch), JANUS_OK);
    MUST_EQ(janus_actor_unwatch(watching->watch), JANUS_STALE);
    return result;
}

static void open_watching(struct watching *watching, janus_restart restart)
{
    *watching = (struct watching){.watcher.role = {.stage = watching, .notice = on_down}};
    OPEN_SOLO(&watching->target, .restart = restart, .id = "target");
    OPEN_SOLO(&watching->watcher, .id = "watcher");
    MUST_EQ(request(watching->watcher.actor, act_watch, NULL, 0, NULL), JANUS_OK);
}

static void close_watching(struct watching *watching)
{
    close_stage(watching->watcher.stage);
    close_stage(watching->target.stage);
}

static int64_t scene_unwatch_late(void *argument)
{
    struct watching watching;
    (void)argument;
    open_watching(&watching, JANUS_RESTART_TEMPORARY);
    tell(watching.watcher.actor, act_unwatch_late, &watching.watcher.gate, 1);
    await_inside(&watching.watcher.gate);
    MUST_EQ(janus_actor_stop(watching.target.actor, JANUS_STOP_HOW_AFTER_THIS, 0), JANUS_OK);
    (void)await_end(watching.target.actor);
    let_go(&watching.watcher);
    (void)settle(watching.watcher.actor);
    MUST_EQ(watching.downs, 0);
    close_watching(&watching);
    return 0;
}

TEST("unwatch takes back a DOWN that waits behind the letter in hand") { PLAY(scene_unwatch_late); }

static int64_t scene_final(void *argument)
{
    struct watching watching;
    (void)argument;
    open_watching(&watching, JANUS_RESTART_TRANSIENT);
    MUST_EQ(request(watching.target.actor, act_return, NULL, -100, NULL), JANUS_RESTARTED);
    MUST_EQ(settle(watching.target.actor), 0);
    (void)settle(watching.watcher.actor);
    MUST_EQ(watching.downs, 1);
    MUST(!watching.end.final);
    MUST_EQ(watching.end.incarnation, 1);
    MUST_EQ(request(watching.watcher.actor, act_watch, NULL, 0, NULL), JANUS_OK);
    tell(watching.target.actor, act_return, NULL, JANUS_ACTOR_STOP);
    (void)await_end(watching.target.actor);
    while (watching.downs == 1) (void)settle(watching.watcher.actor);
    MUST_EQ(watching.downs, 2);
    MUST(watching.end.final); /* its specification stays, but nothing will run there by itself */
    MUST_EQ(watching.end.incarnation, 2);
    close_watching(&watching);
    return 0;
}

TEST("DOWN says whether the end is final, also where the specification stays")
{
    PLAY(scene_final);
}

/* Alarms. */

enum { RINGS = 20000, RINGERS = 4 };

struct ringing {
    _Atomic(int64_t) rang;
    janus_event      done;
};

static int64_t ring_on(struct self *self, janus_letter *letter)
{
    struct ringing *ringing = self->role->stage;
    (void)letter;
    int64_t rang = atomic_fetch_add(&ringing->rang, 1) + 1;
    if (rang == RINGS) janus_event_set(&ringing->done);
    if (rang >= RINGS) return JANUS_ACTOR_GO_ON;
    MUST_EQ(janus_actor_after((uint64_t)rang % 3, 1, NULL), JANUS_OK);
    return JANUS_ACTOR_GO_ON;
}

static int64_t act_ring(struct self *self, janus_letter *letter, const struct line *line)
{
    (void)line;
    return ring_on(self, letter);
}

static int64_t scene_alarms(void *argument)
{
    struct ringing    ringing = {.rang = 0};
    struct role       roles[RINGERS];
    janus_supervisor *stage = open_stage();
    janus_actor       actors[RINGERS];
    (void)argument;
    janus_event_init(&ringing.done, JANUS_WAKER_TASKS, "done");
    for (int i = 0; i < RINGERS; i++) {
        roles[i] = (struct role){.stage = &ringing, .notice = ring_on};
        actors[i] = ADD(stage, .argument = &roles[i]);
        tell(actors[i], act_ring, NULL, 0);
    }
    MUST_EQ(janus_event_wait(&ringing.done), JANUS_OK);
    for (int i = 0; i < RINGERS; i++) (void)settle(actors[i]);
    close_stage(stage);
    return 0;
}

TEST("timers that an actor sets again when they ring all ring")
{
    PLAY(scene_alarms, .schedules = 2);
}

/* Two threads may fire timers. The first has fired an alarm, and has not flushed it yet. The actor
 * sets a timer, and the second thread fires the alarm again. Here the actor does it all,
 * [actor-due]. */
static int64_t act_ring_twice(struct self *self, janus_letter *letter, const struct line *line)
{
    MUST_EQ(janus_actor_after(JANUS_SECONDS, 3, NULL), JANUS_OK);
    struct jrt_alarm *alarm = &jrt_place_current()->rare->alarm;
    alarm->ring(alarm);
    MUST_EQ(janus_actor_after(2 * JANUS_SECONDS, 4, NULL), JANUS_OK);
    alarm->ring(alarm);
    jrt_actors_flush();
    return act_note(self, letter, line);
}

static int64_t scene_rings_twice(void *argument)
{
    struct solo solo = {.role = {0}};
    (void)argument;
    OPEN_SOLO(&solo);
    tell(solo.actor, act_ring_twice, NULL, 1);
    MUST_EQ(janus_sleep(10 * JANUS_SECONDS), JANUS_OK);
    LOGGED(&solo.role, 1, 3, 4); /* neither early, nor twice */
    close_stage(solo.stage);
    return 0;
}

TEST("an alarm that is armed and rings again before its flush is flushed once")
{
    PLAY(scene_rings_twice, .timed = true);
}
