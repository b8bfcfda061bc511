/* SPDX-License-Identifier: MIT */
/* What janus_explain says after a call of an actor that failed. */
#include "play.h"

#include <string.h>

/* The last call was `call`, and the sentence has `why`. */
static void must_say(const char *call, const char *why)
{
    char text[500] = "";
    MUST(janus_explain(text, sizeof text) > 0);
    if (strstr(text, call) == NULL || strstr(text, why) == NULL) printf("# %s\n", text);
    MUST(strstr(text, call) != NULL);
    MUST(strstr(text, why) != NULL);
}

static int64_t handle_silently(void *state, janus_letter *letter)
{
    (void)state, (void)letter;
    return JANUS_ACTOR_GO_ON;
}

static const janus_behaviour silent = {.struct_bytes = sizeof silent,
                                       .name = "silent",
                                       .message_bytes = sizeof(int64_t),
                                       .handle = handle_silently};
static const janus_behaviour mute = {.struct_bytes = sizeof mute,
                                     .name = "mute",
                                     .message_bytes = sizeof(int64_t),
                                     .reply_bytes = sizeof(int64_t),
                                     .handle = handle_silently};

static int64_t wait_long(void *state, void *argument)
{
    (void)state, (void)argument;
    return janus_sleep(AN_HOUR);
}

static const janus_behaviour slow =
    JANUS_BEHAVIOUR(.name = "slow", .init = wait_long, .handle = handle_silently);

static void fail_at_handles(janus_supervisor *supervisor)
{
    int64_t     number = 0;
    char        text[10];
    janus_actor actor = add_child(supervisor, JANUS_CHILD(.behaviour = &silent)), narrow;
    MUST_EQ(janus_cast(actor, NULL), JANUS_INVALID);
    must_say("janus_cast", "message is NULL");
    MUST_EQ(janus_call(actor, &number, &number, 0), JANUS_STATE);
    must_say("janus_call", "answers no calls");
    MUST_EQ(janus_actor_describe(actor, text, sizeof text, 0), JANUS_STATE);
    must_say("janus_actor_describe", "no describe");
    MUST_EQ(janus_actor_attenuate(actor, JANUS_ACTOR_MAY_CALL, &narrow), JANUS_OK);
    MUST_EQ(janus_try_cast(narrow, &number), JANUS_CAP_RIGHT);
    must_say("janus_try_cast", "lacks the right");
    MUST_EQ(janus_actor_stop(narrow, JANUS_STOP_HOW_DRAIN, 0), JANUS_CAP_RIGHT);
    must_say("janus_actor_stop", "lacks the right");
    MUST_EQ(janus_actor_resume(actor), JANUS_STATE);
    must_say("janus_actor_resume", "not suspended");
    MUST_EQ(janus_actor_stop(actor, JANUS_STOP_HOW_DRAIN, 0), JANUS_OK);
    MUST_EQ(janus_actor_await(actor, NULL, 0), JANUS_OK);
    MUST_EQ(janus_cast(actor, &number), JANUS_STALE);
    must_say("janus_cast", "names no actor");
}

static int64_t scene_explain(void *argument)
{
    struct play       play;
    int64_t           number = 0;
    janus_actor       found;
    janus_supervisor *supervisor = play_open(&play, NULL);
    (void)argument;
    fail_at_handles(supervisor);
    janus_actor actor = add_child(supervisor, JANUS_CHILD(.behaviour = &mute));
    MUST_EQ(janus_call(actor, &number, &number, 0), JANUS_NO_REPLY);
    must_say("janus_call", "JANUS_NO_REPLY");
    MUST_EQ(janus_call(actor, &number, &number, 1), JANUS_DEADLINE);
    must_say("janus_call", "JANUS_DEADLINE");
    MUST_EQ(janus_actor_find("nobody", &found), JANUS_NOT_FOUND);
    must_say("janus_actor_find", "no actor has registered this name");
    MUST_EQ(janus_ask(actor, &number, 0, 0), JANUS_STATE);
    must_say("janus_ask", "only the handler");
    MUST_EQ(janus_actor_after(1, 0, NULL), JANUS_STATE);
    must_say("janus_actor_after", "only the handler");
    MUST_EQ(janus_supervisor_add(
                supervisor, JANUS_CHILD(.behaviour = &slow, .start_within_ns = JANUS_MS), NULL),
            JANUS_DEADLINE);
    must_say("janus_supervisor_add", "start_within_ns");
    play_end(&play, supervisor, JANUS_OK);
    return 0;
}

TEST("each call of an actor that fails is explained, and not by an earlier call")
{
    PLAY(scene_explain, .schedules = 200);
}
