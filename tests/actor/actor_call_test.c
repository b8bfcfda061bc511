/* SPDX-License-Identifier: MIT */
/* Calls, and replies now, later, from other tasks, too late and never. G5, G17. */
#include "play.h"

/* Now. */

static int64_t scene_reply_now(void *argument)
{
    struct solo solo = {.role = {0}};
    (void)argument;
    OPEN_SOLO(&solo);
    for (int64_t i = 1, sum = 0, reply = 0; i <= 5; i++) {
        sum += i;
        MUST_EQ(request(solo.actor, act_add, NULL, i, &reply), JANUS_OK);
        MUST_EQ(reply, sum);
    }
    MUST_EQ(request(solo.actor, act_add, NULL, 1, NULL), JANUS_OK); /* the reply is not wanted */
    MUST_EQ(settle(solo.actor), 16);
    close_stage(solo.stage);
    return 0;
}

TEST("a call returns the reply to this message") { PLAY(scene_reply_now); }

static int64_t act_reply_twice(struct self *self, janus_letter *letter, const struct line *line)
{
    janus_kept_reply kept;
    int64_t          again = line->number + 1;
    MUST(janus_letter_is_call(letter));
    MUST_EQ(janus_reply(letter, NULL), JANUS_INVALID);
    MUST_EQ(janus_reply(letter, &line->number), JANUS_OK);
    MUST_EQ(janus_reply(letter, &again), JANUS_STALE);
    MUST_EQ(janus_reply_keep(letter, &kept), JANUS_STATE);
    (void)self;
    return JANUS_ACTOR_GO_ON;
}

static int64_t act_reply_to_cast(struct self *self, janus_letter *letter, const struct line *line)
{
    janus_kept_reply kept;
    MUST(!janus_letter_is_call(letter));
    MUST_EQ(janus_reply(letter, &line->number), JANUS_STATE);
    MUST_EQ(janus_reply_keep(letter, &kept), JANUS_STATE);
    note(self, line->number);
    return JANUS_ACTOR_GO_ON;
}

static int64_t scene_reply_once(void *argument)
{
    struct solo solo = {.role = {0}};
    int64_t     reply = 0;
    (void)argument;
    OPEN_SOLO(&solo);
    MUST_EQ(request(solo.actor, act_reply_twice, NULL, 5, &reply), JANUS_OK);
    MUST_EQ(reply, 5);
    tell(solo.actor, act_reply_to_cast, NULL, 6);
    MUST_EQ(settle(solo.actor), 0);
    LOGGED(&solo.role, 6);
    close_stage(solo.stage);
    return 0;
}

TEST("a call is answered once, and a cast cannot be answered") { PLAY(scene_reply_once); }

static int64_t act_silent(struct self *self, janus_letter *letter, const struct line *line)
{
    (void)letter;
    note(self, line->number);
    return line->number;
}

static int64_t scene_no_reply(void *argument)
{
    struct solo solo = {.role = {0}};
    int64_t     reply = 5;
    (void)argument;
    OPEN_SOLO(&solo, .restart = JANUS_RESTART_TEMPORARY);
    MUST_EQ(request(solo.actor, act_silent, NULL, JANUS_ACTOR_GO_ON, &reply), JANUS_NO_REPLY);
    MUST_EQ(reply, 5);
    MUST_EQ(settle(solo.actor), 0);
    close_stage(solo.stage);
    return 0;
}

TEST("a handler that returns without an answer gives NO_REPLY at once") { PLAY(scene_no_reply); }

static int64_t scene_stop_without_reply(void *argument)
{
    struct solo solo = {.role = {0}};
    (void)argument;
    OPEN_SOLO(&solo, .restart = JANUS_RESTART_TEMPORARY);
    janus_status status = request(solo.actor, act_silent, NULL, JANUS_ACTOR_STOP, NULL);
    MUST(status == JANUS_NO_REPLY || status == JANUS_GONE);
    (void)await_end(solo.actor);
    close_stage(solo.stage);
    return 0;
}

TEST("the caller of an actor that stops without an answer does not wait")
{
    PLAY(scene_stop_without_reply);
}

/* Later. */

struct asker {
    janus_actor      actor;
    janus_event      is_kept;
    janus_kept_reply kept;
    int64_t          reply;
    janus_status     status;
    uint64_t         within;
};

static void asker_init(struct asker *asker, janus_actor actor)
{
    *asker = (struct asker){.actor = actor, .reply = 77};
    janus_event_init(&asker->is_kept, JANUS_WAKER_TASKS, "kept");
}

static int64_t act_keep(struct self *self, janus_letter *letter, const struct line *line)
{
    struct asker *asker = line->argument;
    MUST_EQ(janus_reply_keep(letter, &asker->kept), JANUS_OK);
    janus_event_set(&asker->is_kept);
    (void)self;
    return JANUS_ACTOR_GO_ON;
}

static int64_t act_release(struct self *self, janus_letter *letter, const struct line *line)
{
    struct asker *asker = line->argument;
    (void)letter;
    note(self, janus_reply_to(asker->kept, &line->number));
    return JANUS_ACTOR_GO_ON;
}

static int64_t run_asker(void *argument)
{
    struct asker *asker = argument;
    uint64_t      deadline = asker->within != 0 ? janus_now_ns() + asker->within : play_late();
    struct line   line = {act_keep, asker, 0};
    asker->status = janus_call(asker->actor, &line, &asker->reply, deadline);
    return 0;
}

static void await_kept(struct asker *asker)
{
    MUST_EQ(janus_event_wait(&asker->is_kept), JANUS_OK);
}

static int64_t scene_reply_later(void *argument)
{
    struct solo  solo = {.role = {0}};
    struct asker askers[3];
    janus_status ended;
    (void)argument;
    OPEN_SOLO(&solo);
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < 3; i++) {
            asker_init(&askers[i], solo.actor);
            MUST_EQ(janus_spawn(n, run_asker, &askers[i]), JANUS_OK);
        }
        for (int i = 0; i < 3; i++) await_kept(&askers[i]);
        for (int i = 2; i >= 1; i--) tell(solo.actor, act_release, &askers[i], i * 10);
        int64_t reply = 5; /* anyone may answer */
        MUST_EQ(janus_reply_to(askers[0].kept, &reply), JANUS_OK);
        MUST_EQ(janus_reply_to(askers[0].kept, &reply), JANUS_STALE);
    }
    MUST_EQ(ended, JANUS_OK);
    const int64_t wanted[] = {5, 10, 20};
    for (int i = 0; i < 3; i++) {
        MUST_EQ(askers[i].status, JANUS_OK);
        MUST_EQ(askers[i].reply, wanted[i]);
    }
    close_stage(solo.stage);
    LOGGED(&solo.role, JANUS_OK, JANUS_OK);
    return 0;
}

TEST("kept replies are given later, in any order, by the actor or by another task")
{
    PLAY(scene_reply_later);
}

/* An actor that ends with kept replies. */

static int64_t scene_kept_and_ended(void *argument)
{
    static const int64_t how[] = {JANUS_ACTOR_STOP, -100, -100};
    (void)argument;
    for (int i = 0; i < 3; i++) {
        struct role       role = {0};
        struct asker      asker;
        janus_status      ended;
        int64_t           reply = 1;
        janus_supervisor *stage = open_stage();
        janus_actor       actor =
            ADD(stage, .argument = &role,
                .restart = i < 2 ? JANUS_RESTART_TEMPORARY : JANUS_RESTART_PERMANENT);
        asker_init(&asker, actor);
        JANUS_NURSERY(n, ended)
        {
            MUST_EQ(janus_spawn(n, run_asker, &asker), JANUS_OK);
            await_kept(&asker);
            tell(actor, act_return, NULL, how[i]);
        }
        MUST_EQ(ended, JANUS_OK);
        MUST_EQ(asker.status, i < 2 ? JANUS_GONE : JANUS_RESTARTED);
        MUST_EQ(asker.reply, 77);
        MUST_EQ(janus_reply_to(asker.kept, &reply), JANUS_STALE);
        close_stage(stage);
    }
    return 0;
}

TEST("a kept reply ends with its incarnation: the caller gets GONE, or RESTARTED")
{
    PLAY(scene_kept_and_ended);
}

/* Too late. */

static int64_t scene_late_reply(void *argument)
{
    struct solo  solo = {.role = {0}};
    struct asker asker;
    int64_t      reply = 0;
    janus_status ended;
    (void)argument;
    OPEN_SOLO(&solo);
    asker_init(&asker, solo.actor);
    asker.within = JANUS_SECONDS;
    JANUS_NURSERY(n, ended) { MUST_EQ(janus_spawn(n, run_asker, &asker), JANUS_OK); }
    MUST_EQ(ended, JANUS_OK);
    MUST_EQ(asker.status, JANUS_DEADLINE);
    /* The reply comes while the same task waits for another one. */
    tell(solo.actor, act_release, &asker, 13);
    MUST_EQ(request(solo.actor, act_note, NULL, 14, &reply), JANUS_OK);
    MUST_EQ(reply, 14);
    MUST_EQ(asker.reply, 77);
    LOGGED(&solo.role, JANUS_STALE, 14);
    janus_supervisor_result result = close_stage(solo.stage);
    MUST_EQ(result.handled, 3);
    return 0;
}

/* G17. */
TEST("a reply after the deadline is STALE to the replier, and reaches no later call")
{
    PLAY(scene_late_reply, .timed = true);
}

static int64_t scene_late_in_one_task(void *argument)
{
    struct solo  solo = {.role = {0}};
    struct asker first, second;
    int64_t      reply = 0;
    (void)argument;
    OPEN_SOLO(&solo);
    asker_init(&first, solo.actor);
    asker_init(&second, solo.actor);
    first.within = second.within = JANUS_MS;
    MUST_EQ(run_asker(&first), 0);
    MUST_EQ(run_asker(&second), 0);
    MUST_EQ(first.status, JANUS_DEADLINE);
    MUST_EQ(second.status, JANUS_DEADLINE);
    MUST_EQ(janus_reply_to(first.kept, &(int64_t){1}), JANUS_STALE);
    tell(solo.actor, act_release, &second, 2);
    MUST_EQ(request(solo.actor, act_note, NULL, 3, &reply), JANUS_OK);
    MUST_EQ(reply, 3);
    MUST_EQ(first.reply, 77);
    MUST_EQ(second.reply, 77);
    LOGGED(&solo.role, JANUS_STALE, 3);
    close_stage(solo.stage);
    return 0;
}

TEST("an old right to answer never answers a new call of the same task")
{
    PLAY(scene_late_in_one_task, .timed = true);
}

static int64_t scene_expired(void *argument)
{
    struct solo solo = {.role = {0}};
    struct line line = {act_note, NULL, 9};
    (void)argument;
    OPEN_SOLO(&solo);
    keep_busy(&solo, 1);
    uint64_t begin = janus_now_ns();
    MUST_EQ(janus_call(solo.actor, &line, NULL, begin + JANUS_SECONDS), JANUS_DEADLINE);
    MUST(janus_now_ns() - begin >= JANUS_SECONDS);
    MUST_EQ(janus_call(solo.actor, &line, NULL, begin),
            JANUS_DEADLINE); /* too late from the start */
    let_go(&solo);
    MUST_EQ(settle(solo.actor), 0);
    LOGGED(&solo.role, 1); /* 9 was skipped */
    janus_supervisor_result result = close_stage(solo.stage);
    MUST_EQ(result.handled, 2);
    MUST_EQ(result.returned, result.sent - 2);
    return 0;
}

TEST("an actor skips a call whose deadline passed in the mailbox, and the books say returned")
{
    PLAY(scene_expired, .timed = true);
}

static int64_t cancel_me(void *argument)
{
    struct asker *asker = argument;
    JANUS_IGNORE(run_asker(asker));
    return asker->status;
}

static int64_t scene_cancelled_caller(void *argument)
{
    struct solo  solo = {.role = {0}};
    struct asker asker;
    janus_status ended;
    (void)argument;
    OPEN_SOLO(&solo);
    asker_init(&asker, solo.actor);
    JANUS_NURSERY(n, ended, .owner_apart = true)
    {
        MUST_EQ(janus_spawn(n, cancel_me, &asker), JANUS_OK);
        await_kept(&asker);
        MUST_EQ(janus_nursery_cancel(n), JANUS_OK);
    }
    MUST_EQ(ended, JANUS_CANCELLED);
    MUST_EQ(asker.status, JANUS_CANCELLED);
    MUST_EQ(janus_reply_to(asker.kept, &(int64_t){1}), JANUS_STALE);
    MUST_EQ(asker.reply, 77);
    MUST_EQ(settle(solo.actor), 0);
    close_stage(solo.stage);
    return 0;
}

TEST("a cancelled caller stops waiting, and the actor lives on") { PLAY(scene_cancelled_caller); }

struct shielded {
    struct solo *solo;
    janus_event  entered, cancelled;
};

/* Calls in a shield, when its nursery is cancelled. */
static int64_t call_shielded(void *argument)
{
    struct shielded *shielded = argument;
    janus_actor      actor = shielded->solo->actor;
    int64_t          reply = 0;
    janus_shield_begin();
    janus_event_set(&shielded->entered);
    MUST_EQ(janus_event_wait(&shielded->cancelled), JANUS_OK);
    MUST_EQ(request(actor, act_add, NULL, 5, &reply), JANUS_OK);
    MUST_EQ(reply, 5);
    janus_shield_end();
    MUST_EQ(request(actor, act_add, NULL, 1, &reply), JANUS_CANCELLED);
    return 0;
}

static int64_t scene_shielded_caller(void *argument)
{
    struct solo     solo = {.role = {0}};
    struct shielded shielded = {.solo = &solo};
    janus_status    ended;
    (void)argument;
    OPEN_SOLO(&solo);
    janus_event_init(&shielded.entered, JANUS_WAKER_TASKS, "entered");
    janus_event_init(&shielded.cancelled, JANUS_WAKER_TASKS, "cancelled");
    JANUS_NURSERY(n, ended, .owner_apart = true)
    {
        MUST_EQ(janus_spawn(n, call_shielded, &shielded), JANUS_OK);
        MUST_EQ(janus_event_wait(&shielded.entered), JANUS_OK);
        MUST_EQ(janus_nursery_cancel(n), JANUS_OK);
        janus_event_set(&shielded.cancelled);
    }
    MUST_EQ(ended, JANUS_CANCELLED);
    MUST_EQ(settle(solo.actor), 5);
    close_stage(solo.stage);
    return 0;
}

TEST("a cancelled caller in a shield gets its answer") { PLAY(scene_shielded_caller); }
