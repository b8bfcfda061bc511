/* SPDX-License-Identifier: MIT */
/* How actors start, and what is left if an init fails. G1, G2, G12. */
#include "play.h"

static uint64_t specified(janus_supervisor *stage)
{
    janus_supervisor_info info = JANUS_SUPERVISOR_INFO();
    MUST_EQ(janus_supervisor_inspect(stage, &info), JANUS_OK);
    MUST_EQ(janus_supervisor_children(stage, NULL, 0), info.specified);
    return info.specified;
}

static void check_no_name(const char *name)
{
    janus_actor found;
    MUST_EQ(janus_actor_find(name, &found), JANUS_NOT_FOUND);
}

/* Starts and answers. */

static int64_t scene_start(void *argument)
{
    struct role       role = {0};
    int64_t           sum = 0;
    janus_supervisor *stage = open_stage();
    janus_actor       actor = ADD(stage, .argument = &role);
    (void)argument;
    MUST_EQ(role.starts, 1); /* add waits for init */
    janus_actor_info info = look(actor);
    MUST_EQ(info.state, JANUS_ACTOR_STATE_RUNNING);
    MUST_EQ(info.incarnation, 1);
    MUST(strcmp(info.behaviour, "player") == 0);
    MUST_EQ(info.max_messages, 64);
    tell(actor, act_add, NULL, 3);
    MUST_EQ(request(actor, act_add, NULL, 4, &sum), JANUS_OK);
    MUST_EQ(sum, 7);
    janus_supervisor_result result = close_stage(stage);
    MUST_EQ(result.sent, 2);
    MUST_EQ(result.handled, 2);
    MUST_EQ(role.ends, 1);
    return 0;
}

TEST("an actor is running when it has been added, and answers") { PLAY(scene_start); }

static int64_t handle_plain(void *state, janus_letter *letter)
{
    int64_t *count = state;
    *count += 1;
    if (janus_letter_is_call(letter)) MUST_EQ(janus_reply(letter, count), JANUS_OK);
    return JANUS_ACTOR_GO_ON;
}

static const janus_behaviour plain = {.struct_bytes = sizeof plain,
                                      .state_bytes = sizeof(int64_t),
                                      .message_bytes = 1,
                                      .reply_bytes = sizeof(int64_t),
                                      .handle = handle_plain};

static int64_t scene_plain(void *argument)
{
    int64_t           count = 0;
    janus_supervisor *stage = open_stage();
    janus_actor       actor = add_child(stage, JANUS_CHILD(.behaviour = &plain));
    (void)argument;
    MUST(strcmp(look(actor).behaviour, "actor") == 0);
    for (int i = 0; i < 3; i++) MUST_EQ(janus_cast(actor, "a"), JANUS_OK);
    MUST_EQ(janus_call(actor, "b", &count, play_late()), JANUS_OK);
    MUST_EQ(count, 4);
    close_stage(stage);
    return 0;
}

/* G16, first half. */
TEST("an actor needs neither init nor terminate nor describe nor a name") { PLAY(scene_plain); }

/* Ways not to start. */

static int64_t start_ignore(struct self *self)
{
    (void)self;
    return JANUS_ACTOR_IGNORE;
}

static int64_t start_fail(struct self *self)
{
    (void)self;
    return -123;
}

static int64_t start_panic(struct self *self)
{
    (void)self;
    janus_panic("in init");
}

/* Waits for an hour; a cancelled init returns CANCELLED. */
static int64_t start_slowly(struct self *self)
{
    (void)self;
    return janus_sleep(3600 * JANUS_SECONDS);
}

struct way {
    int64_t      (*start)(struct self *self);
    janus_status wanted;
    const char  *id;
};

static const struct way ways[] = {{start_ignore, JANUS_IGNORED, NULL},
                                  {start_fail, JANUS_CHILD_FAILED, "failing"},
                                  {start_panic, JANUS_CHILD_FAILED, "panicking"},
                                  {start_slowly, JANUS_DEADLINE, "slow"}};

static int64_t scene_fail_to_start(void *argument)
{
    janus_supervisor *stage = open_stage();
    (void)argument;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        for (int times = 0; times < 5; times++) {
            struct role  role = {.start = ways[i].start};
            janus_actor  actor = {{0, 0}};
            janus_status status = janus_supervisor_add(
                stage,
                JANUS_CHILD(.id = ways[i].id, .behaviour = &player, .argument = &role,
                            .start_within_ns = JANUS_SECONDS,
                            .options = JANUS_ACTOR_OPTIONS(.name = "ghost")),
                &actor);
            MUST_EQ(status, ways[i].wanted);
            MUST_EQ(role.starts, 1);
            MUST_EQ(role.ends, 0); /* terminate is for those that started */
            MUST_EQ(specified(stage), 0);
            check_no_name("ghost");
        }
    }
    close_stage(stage);
    return 0;
}

TEST("an actor that ignores, fails, panics or is too slow in init leaves neither child nor name")
{
    PLAY(scene_fail_to_start, .panics = true, .timed = true);
}

static int64_t scene_explain_start(void *argument)
{
    struct role       role = {.start = start_fail};
    char              text[500];
    janus_supervisor *stage = open_stage();
    (void)argument;
    MUST_EQ(janus_supervisor_add(
                stage, JANUS_CHILD(.id = "till", .behaviour = &player, .argument = &role), NULL),
            JANUS_CHILD_FAILED);
    MUST(janus_explain(text, sizeof text) > 0);
    MUST(strstr(text, "till") != NULL || strstr(text, "player") != NULL);
    MUST(strstr(text, "-123") != NULL);
    close_stage(stage);
    return 0;
}

TEST("janus_explain says which init failed, and with what") { PLAY(scene_explain_start); }

static int64_t scene_ignored_spec(void *argument)
{
    struct role       role = {.start = start_ignore};
    janus_actor       actor, found;
    janus_supervisor *stage = open_stage();
    (void)argument;
    MUST_EQ(janus_supervisor_add(
                stage, JANUS_CHILD(.id = "kept", .behaviour = &player, .argument = &role), &actor),
            JANUS_IGNORED);
    MUST_EQ(specified(stage), 1);
    MUST_EQ(janus_supervisor_find_child(stage, "kept", &found), JANUS_OK);
    MUST_EQ(look(found).state, JANUS_ACTOR_STATE_EMPTY);
    MUST_EQ(say(found, act_add, NULL, 1), JANUS_CLOSED);
    MUST_EQ(request(found, act_add, NULL, 1, NULL), JANUS_GONE);
    role.start = NULL;
    MUST_EQ(janus_supervisor_start_child(stage, found), JANUS_OK);
    MUST_EQ(settle(found), 0);
    close_stage(stage);
    return 0;
}

TEST("an ignored child with an id keeps its specification, takes no message and can be started")
{
    PLAY(scene_ignored_spec);
}

/* The second child of the same id or name. */

static int64_t scene_twice(void *argument)
{
    struct role       first = {0}, second = {0};
    janus_actor       again = {{0, 0}};
    janus_supervisor *stage = open_stage();
    janus_actor       actor = ADD(stage, .id = "one", .argument = &first,
                                  .options = JANUS_ACTOR_OPTIONS(.name = "first"));
    (void)argument;
    MUST_EQ(janus_supervisor_add(
                stage, JANUS_CHILD(.id = "one", .behaviour = &player, .argument = &second), &again),
            JANUS_EXISTS);
    MUST(memcmp(&again, &actor, sizeof actor) == 0);
    MUST_EQ(janus_supervisor_add(stage,
                                 JANUS_CHILD(.id = "two", .behaviour = &player, .argument = &second,
                                             .options = JANUS_ACTOR_OPTIONS(.name = "first")),
                                 NULL),
            JANUS_EXISTS);
    MUST_EQ(specified(stage), 1);
    MUST_EQ(second.ends, second.starts);
    tell(again, act_note, NULL, 1);
    MUST_EQ(settle(actor), 0);
    LOGGED(&first, 1);
    close_stage(stage);
    return 0;
}

TEST("a second child of the same id or name is refused, and the first lives on")
{
    PLAY(scene_twice);
}

/* A name and its init. */

static int64_t start_look_for_myself(struct self *self)
{
    janus_actor found;
    (void)self;
    MUST_EQ(janus_actor_find("shy", &found), JANUS_NOT_FOUND);
    return JANUS_ACTOR_GO_ON;
}

static int64_t scene_name_after_init(void *argument)
{
    struct role       role = {.start = start_look_for_myself};
    janus_actor       found;
    janus_supervisor *stage = open_stage();
    check_no_name("shy");
    (void)argument;
    (void)ADD(stage, .argument = &role, .options = JANUS_ACTOR_OPTIONS(.name = "shy"));
    MUST_EQ(janus_actor_find("shy", &found), JANUS_OK);
    MUST_EQ(settle(found), 0);
    close_stage(stage);
    check_no_name("shy");
    return 0;
}

TEST("a name is visible from the end of init until the actor ends") { PLAY(scene_name_after_init); }

/* The end. */

static int64_t scene_call_after_end(void *argument)
{
    struct role       role = {0};
    janus_supervisor *stage = open_stage();
    janus_actor       actor = ADD(stage, .argument = &role, .restart = JANUS_RESTART_TEMPORARY);
    (void)argument;
    tell(actor, act_return, NULL, JANUS_ACTOR_STOP);
    await_kind(actor, JANUS_END_KIND_NORMAL);
    for (int i = 0; i < 3; i++) { /* at once, whatever lies behind */
        MUST_EQ(request(actor, act_add, NULL, 1, NULL), JANUS_STALE);
        MUST_EQ(say(actor, act_add, NULL, 1), JANUS_STALE);
        MUST_EQ(try_say(actor, act_add, NULL, 1), JANUS_STALE);
    }
    MUST_EQ(specified(stage), 0);
    close_stage(stage);
    return 0;
}

/* G1, G7. */
TEST("a call or a cast to an actor that has ended returns STALE at once")
{
    PLAY(scene_call_after_end);
}

static int64_t scene_bad_behaviour(void *argument)
{
    janus_supervisor *stage = open_stage();
    janus_behaviour   bad[4] = {player, player, player, player};
    (void)argument;
    bad[0].handle = NULL;
    bad[1].message_bytes = 4097;
    bad[2].reply_bytes = 4097;
    bad[3].state_bytes = (1 << 20) + 1;
    for (int i = 0; i < 4; i++) {
        MUST_EQ(janus_supervisor_add(stage, JANUS_CHILD(.behaviour = &bad[i]), NULL),
                JANUS_INVALID);
    }
    MUST_EQ(specified(stage), 0);
    close_stage(stage);
    return 0;
}

TEST("a behaviour without a handler, or beyond a limit of the header, is refused")
{
    PLAY(scene_bad_behaviour);
}
