/* SPDX-License-Identifier: MIT */
/* Suspending, resuming and describing actors. G14. */
#include "play.h"

static int64_t scene_suspend(void *argument)
{
    struct solo solo = {.role = {0}};
    char        text[64];
    (void)argument;
    OPEN_SOLO(&solo);
    tell(solo.actor, act_add, NULL, 5);
    MUST_EQ(settle(solo.actor), 5);
    MUST_EQ(janus_actor_suspend(solo.actor), JANUS_OK);
    MUST(look(solo.actor).suspended);
    for (int i = 1; i <= 3; i++) tell(solo.actor, act_note, NULL, i);
    MUST_EQ(janus_actor_describe(solo.actor, text, sizeof text, play_late()), JANUS_OK);
    MUST(strcmp(text, "sum 5") == 0);
    for (int i = 0; i < 5; i++) MUST_EQ(janus_yield(), JANUS_OK);
    MUST_EQ(solo.role.logged, 0);
    MUST_EQ(look(solo.actor).messages, 3);
    MUST_EQ(janus_actor_resume(solo.actor), JANUS_OK);
    MUST_EQ(settle(solo.actor), 5);
    MUST(!look(solo.actor).suspended);
    LOGGED(&solo.role, 1, 2, 3);
    close_stage(solo.stage);
    return 0;
}

TEST("a suspended actor handles nothing, is described, and goes on when it is resumed")
{
    PLAY(scene_suspend);
}

static int64_t scene_suspend_states(void *argument)
{
    struct solo solo = {.role = {0}};
    (void)argument;
    OPEN_SOLO(&solo);
    MUST_EQ(janus_actor_resume(solo.actor), JANUS_STATE);
    MUST_EQ(janus_actor_suspend(solo.actor), JANUS_OK);
    MUST_EQ(janus_actor_suspend(solo.actor), JANUS_STATE);
    MUST_EQ(janus_actor_resume(solo.actor), JANUS_OK);
    MUST_EQ(janus_actor_resume(solo.actor), JANUS_STATE);
    MUST_EQ(janus_actor_stop(solo.actor, JANUS_STOP_HOW_AT_ONCE, 0), JANUS_OK);
    (void)await_end(solo.actor);
    MUST_EQ(janus_actor_suspend(solo.actor), JANUS_STALE);
    MUST_EQ(janus_actor_resume(solo.actor), JANUS_STALE);
    close_stage(solo.stage);
    return 0;
}

TEST("to suspend a suspended actor, or to resume another, is STATE") { PLAY(scene_suspend_states); }

static int64_t scene_suspend_in_hand(void *argument)
{
    struct solo solo = {.role = {0}};
    (void)argument;
    OPEN_SOLO(&solo);
    keep_busy(&solo, 1);
    tell(solo.actor, act_note, NULL, 2);
    MUST_EQ(janus_actor_suspend(solo.actor), JANUS_OK); /* does not wait for the handler */
    let_go(&solo);
    for (int i = 0; i < 5; i++) MUST_EQ(janus_yield(), JANUS_OK);
    MUST_EQ(look(solo.actor).messages, 1);
    MUST_EQ(janus_actor_resume(solo.actor), JANUS_OK);
    MUST_EQ(settle(solo.actor), 0);
    LOGGED(&solo.role, 1, 2);
    close_stage(solo.stage);
    return 0;
}

TEST("the letter in hand is finished, and the next waits until the actor is resumed")
{
    PLAY(scene_suspend_in_hand);
}

static int64_t scene_suspended_ends(void *argument)
{
    (void)argument;
    for (int how = JANUS_STOP_HOW_AFTER_THIS; how <= JANUS_STOP_HOW_AT_ONCE; how++) {
        struct role       role = {0};
        janus_supervisor *stage = open_stage();
        janus_actor       actor = ADD(stage, .argument = &role);
        MUST_EQ(janus_actor_suspend(actor), JANUS_OK);
        for (int i = 0; i < 3; i++) tell(actor, act_note, NULL, i);
        MUST_EQ(janus_actor_stop(actor, (janus_stop_how)how, 0), JANUS_OK);
        (void)await_end(actor);
        MUST_EQ(role.ends, 1);
        MUST_EQ(role.logged, how == JANUS_STOP_HOW_DRAIN ? 3 : 0);
        close_stage(stage);
    }
    return 0;
}

TEST("a suspended actor can be stopped, in each way") { PLAY(scene_suspended_ends); }

static int64_t scene_stage_ends(void *argument)
{
    struct solo solo = {.role = {0}};
    (void)argument;
    OPEN_SOLO(&solo);
    MUST_EQ(janus_actor_suspend(solo.actor), JANUS_OK);
    tell(solo.actor, act_note, NULL, 1);
    close_stage(solo.stage); /* it does not hang */
    MUST_EQ(solo.role.ends, 1);
    return 0;
}

TEST("a supervisor ends with a suspended actor") { PLAY(scene_stage_ends); }

/* Describing. */

static size_t describe_longer(const void *state, char *buffer, size_t size)
{
    (void)state;
    return (size_t)snprintf(buffer, size, "%0300d", 7);
}

static size_t describe_panics(const void *state, char *buffer, size_t size)
{
    (void)state, (void)buffer, (void)size;
    janus_panic("in describe");
}

static int64_t scene_describe(void *argument)
{
    struct role       role = {0};
    janus_behaviour   plain = player, wordy = player;
    char              text[300], little[4];
    janus_supervisor *stage = open_stage();
    (void)argument;
    plain.describe = NULL;
    wordy.describe = describe_longer;
    struct role roles[2] = {0};
    janus_actor actor = ADD(stage, .argument = &role);
    janus_actor silent = add_child(stage, JANUS_CHILD(.behaviour = &plain, .argument = &roles[0]));
    janus_actor talker = add_child(stage, JANUS_CHILD(.behaviour = &wordy, .argument = &roles[1]));
    MUST_EQ(request(actor, act_add, NULL, 42, NULL), JANUS_OK);
    MUST_EQ(janus_actor_describe(actor, text, sizeof text, play_late()), JANUS_OK);
    MUST(strcmp(text, "sum 42") == 0);
    MUST_EQ(janus_actor_describe(actor, little, sizeof little, play_late()), JANUS_OK);
    MUST(strcmp(little, "sum") == 0);
    MUST_EQ(janus_actor_describe(silent, text, sizeof text, play_late()), JANUS_STATE);
    MUST_EQ(janus_actor_describe(talker, text, sizeof text, play_late()), JANUS_OK);
    MUST_EQ(strlen(text), 255);
    MUST_EQ(look(actor).sent, 1); /* it is no message */
    close_stage(stage);
    return 0;
}

TEST("describe gives a line about the state, cut to fit") { PLAY(scene_describe); }

static int64_t scene_describe_panics(void *argument)
{
    struct role       role = {0};
    janus_behaviour   broken = player;
    char              text[64] = "as it was";
    janus_supervisor *stage = open_stage();
    (void)argument;
    broken.describe = describe_panics;
    janus_actor actor = add_child(stage, JANUS_CHILD(.behaviour = &broken, .argument = &role));
    tell(actor, act_add, NULL, 5);
    MUST_EQ(janus_actor_describe(actor, text, sizeof text, play_late()), JANUS_NO_REPLY);
    MUST_EQ(settle(actor), 5);
    MUST_EQ(role.starts, 1);
    MUST_EQ(look(actor).failures, 0);
    close_stage(stage);
    return 0;
}

TEST("a describe that panics changes nothing, and the caller gets NO_REPLY")
{
    PLAY(scene_describe_panics, .panics = true);
}

static int64_t scene_suspend_restart(void *argument)
{
    struct solo solo = {.role = {0}};
    (void)argument;
    OPEN_SOLO(&solo);
    /* The letter in hand fails after the suspend: "a suspended actor goes on after a restart". */
    keep_busy(&solo, 1);
    MUST_EQ(janus_actor_suspend(solo.actor), JANUS_OK);
    let_go(&solo);
    tell(solo.actor, act_return, NULL, -100);
    MUST_EQ(janus_actor_resume(solo.actor), JANUS_OK);
    MUST_EQ(settle(solo.actor), 0);
    MUST_EQ(solo.role.starts, 2);
    MUST(!look(solo.actor).suspended);
    close_stage(solo.stage);
    return 0;
}

TEST("an actor that fails after it was suspended and resumed is restarted as any other")
{
    PLAY(scene_suspend_restart);
}
