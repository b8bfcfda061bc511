/* SPDX-License-Identifier: MIT */
/* How supervisors and their children start: all of it, in order, or nothing. */
#include "stage.h"

/* S1. */

static int64_t opens_and_ends(void *argument)
{
    struct play       play;
    struct player     a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    struct player     c = {.play = &play, .name = 'c'};
    janus_supervisor *supervisor = play_open(&play, JANUS_SUPERVISOR_OPTIONS(.name = "family"));
    janus_actor_info  info = JANUS_ACTOR_INFO();
    (void)argument;
    EXPECT_EQ(look_in(supervisor).specified, 0);
    janus_actor actors[3] = {enter(supervisor, CHILD(&a, .id = "a")),
                             enter(supervisor, CHILD(&b, .id = "b")), enter(supervisor, CHILD(&c))};
    EXPECT_EQ(janus_supervisor_children(supervisor, NULL, 0), 3);
    for (int i = 0; i < 3; i++) EXPECT_EQ(look_at(actors[i]).state, JANUS_ACTOR_STATE_RUNNING);
    for (int i = 0; i < 3; i++) count_up(actors[i]);
    janus_supervisor_result result = play_end(&play, supervisor, JANUS_OK);
    EXPECT(!result.by_itself);
    EXPECT_EQ(result.restarts, 0);
    EXPECT_EQ(result.sent, 3);
    EXPECT_EQ(result.handled, 3);
    EXPECT_LOG(&play, "+a+b+c-c-b-a");
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(janus_cast(actors[i], &(struct cue){ACT_COUNT, 1}), JANUS_STALE);
        janus_status status = janus_actor_inspect(actors[i], &info);
        EXPECT(status == JANUS_STALE ||
               (status == JANUS_OK && info.state == JANUS_ACTOR_STATE_GONE));
    }
    return 0;
}

TEST("a supervisor starts its children in order, ends them in reverse, and leaves nothing")
{
    stage_run(opens_and_ends);
}

/* S2 in the form that the calls allow: a supervisor has no init of its own. */

static int64_t opens_with_idle_children(void *argument)
{
    struct play       play;
    struct player     a = {.play = &play, .name = 'a', .inits = "i"};
    struct player     b = {.play = &play, .name = 'b', .inits = "i"};
    const janus_child children[] = {*CHILD(&a, .id = "a"), *CHILD(&b, .id = "b")};
    janus_supervisor *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.children = children, .child_count = 2));
    (void)argument;
    EXPECT_EQ(look_in(supervisor).specified, 2);
    EXPECT_EQ(look_in(supervisor).running, 0);
    (void)play_end(&play, supervisor, JANUS_OK);
    EXPECT_LOG(&play, "!a!b");
    return 0;
}

TEST("a supervisor opens although each of its children has nothing to do")
{
    stage_run(opens_with_idle_children);
}

/* S3, S4, S5. */

static int64_t ignored_child_stays(void *argument)
{
    struct play       play;
    struct player     a = {.play = &play, .name = 'a', .inits = "iio"};
    janus_supervisor *supervisor = play_open(&play, NULL);
    (void)argument;
    for (janus_restart type = JANUS_RESTART_PERMANENT; type <= JANUS_RESTART_TRANSIENT; type++) {
        atomic_store(&a.starts, 0);
        EXPECT_EQ(janus_supervisor_add(supervisor, CHILD(&a, .id = "a", .restart = type), NULL),
                  JANUS_IGNORED);
        janus_actor actor = find(supervisor, "a");
        EXPECT_EQ(look_at(actor).state, JANUS_ACTOR_STATE_EMPTY);
        EXPECT_EQ(look_at(actor).task, 0);
        EXPECT_EQ(look_in(supervisor).specified, 1);
        EXPECT_EQ(look_in(supervisor).running, 0);
        EXPECT_EQ(janus_supervisor_start_child(supervisor, actor), JANUS_IGNORED);
        EXPECT_EQ(look_at(actor).state, JANUS_ACTOR_STATE_EMPTY);
        EXPECT_EQ(janus_supervisor_start_child(supervisor, actor), JANUS_OK);
        EXPECT_EQ(ask(actor), 0);
        EXPECT_EQ(janus_supervisor_stop_child(supervisor, actor), JANUS_OK);
        EXPECT_EQ(janus_supervisor_remove_child(supervisor, actor), JANUS_OK);
    }
    (void)play_end(&play, supervisor, JANUS_OK);
    EXPECT_LOG(&play, "!a!a+a-a!a!a+a-a");
    return 0;
}

TEST("a child whose init returns IGNORE keeps its specification, and start_child tries again")
{
    stage_run(ignored_child_stays);
}

static int64_t ignored_temporary_goes(void *argument)
{
    struct play       play;
    struct player     a = {.play = &play, .name = 'a', .inits = "i"};
    janus_actor       actor;
    janus_supervisor *supervisor = play_open(&play, NULL);
    (void)argument;
    EXPECT_EQ(janus_supervisor_add(supervisor,
                                   CHILD(&a, .id = "a", .restart = JANUS_RESTART_TEMPORARY), NULL),
              JANUS_IGNORED);
    EXPECT_EQ(janus_supervisor_find_child(supervisor, "a", &actor), JANUS_NOT_FOUND);
    EXPECT_EQ(look_in(supervisor).specified, 0);
    EXPECT_EQ(janus_supervisor_children(supervisor, NULL, 0), 0);
    (void)play_end(&play, supervisor, JANUS_OK);
    EXPECT_LOG(&play, "!a");
    return 0;
}

TEST("a TEMPORARY child whose init returns IGNORE is forgotten")
{
    stage_run(ignored_temporary_goes);
}

static int64_t ignored_anonymous_goes(void *argument)
{
    struct play       play;
    struct player     a = {.play = &play, .name = 'a', .inits = "i"};
    janus_supervisor *supervisor = play_open(&play, NULL);
    (void)argument;
    for (janus_restart type = JANUS_RESTART_DEFAULT; type <= JANUS_RESTART_TEMPORARY; type++) {
        EXPECT_EQ(janus_supervisor_add(supervisor, CHILD(&a, .restart = type), NULL),
                  JANUS_IGNORED);
        EXPECT_EQ(look_in(supervisor).specified, 0);
        EXPECT_EQ(janus_supervisor_children(supervisor, NULL, 0), 0);
    }
    (void)play_end(&play, supervisor, JANUS_OK);
    EXPECT_LOG(&play, "!a!a!a!a");
    return 0;
}

TEST("an anonymous child whose init returns IGNORE is forgotten, whatever its restart type")
{
    stage_run(ignored_anonymous_goes);
}

/* S6, S7. */

static void fail_to_open(const char *inits, const char *log)
{
    struct play       play;
    struct player     a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    struct player     c = {.play = &play, .name = 'c', .inits = inits};
    struct player     d = {.play = &play, .name = 'd'};
    const janus_child children[] = {*CHILD(&a, .id = "a"), *CHILD(&b), *CHILD(&c, .id = "c"),
                                    *CHILD(&d, .id = "d")};
    janus_supervisor *supervisor = NULL;
    char              text[512] = "";
    play_begin(&play);
    EXPECT_EQ(janus_supervisor_open(
                  JANUS_SUPERVISOR_OPTIONS(.children = children, .child_count = 4), &supervisor),
              JANUS_CHILD_FAILED);
    EXPECT(janus_explain(text, sizeof text) > 0);
    EXPECT(strstr(text, inits[0] == 'f' ? "-100" : "panicked") != NULL); /* how init ended */
    play_finish(&play);
    EXPECT_LOG(&play, log);
    EXPECT_EQ(janus_yield(), JANUS_OK); /* the task is not cancelled */
}

static int64_t child_fails_to_start(void *argument)
{
    (void)argument;
    fail_to_open("f", "+a+b!c-b-a");
    fail_to_open("p", "+a+b!c-b-a");
    return 0;
}

TEST("if an init fails or panics, open fails and ends in reverse what it has started")
{
    stage_run(child_fails_to_start);
}

static int64_t first_child_fails(void *argument)
{
    struct play       play;
    struct player     a = {.play = &play, .name = 'a', .inits = "f"};
    struct player     b = {.play = &play, .name = 'b'};
    const janus_child children[] = {*CHILD(&a, .id = "a"), *CHILD(&b, .id = "b")};
    janus_supervisor *supervisor = NULL;
    char              text[512] = "";
    (void)argument;
    play_begin(&play);
    EXPECT_EQ(janus_supervisor_open(
                  JANUS_SUPERVISOR_OPTIONS(.children = children, .child_count = 2), &supervisor),
              JANUS_CHILD_FAILED);
    EXPECT(janus_explain(text, sizeof text) > 0);
    EXPECT(strstr(text, "-100") != NULL); /* what init returned */
    play_finish(&play);
    EXPECT_LOG(&play, "!a");
    return 0;
}

TEST("if the first init fails, open reports its error and starts no other child")
{
    stage_run(first_child_fails);
}

/* S8. */

static int64_t restart_by_hand_fails(void *argument)
{
    struct play       play;
    struct player     a = {.play = &play, .name = 'a', .inits = "offpo"};
    janus_supervisor *supervisor = play_open(&play, NULL);
    janus_actor       actor = enter(supervisor, CHILD(&a, .id = "a"));
    (void)argument;
    EXPECT_EQ(janus_supervisor_stop_child(supervisor, actor), JANUS_OK);
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ(janus_supervisor_start_child(supervisor, actor), JANUS_CHILD_FAILED);
        EXPECT_EQ(look_at(actor).state, JANUS_ACTOR_STATE_EMPTY);
        EXPECT(same_actor(find(supervisor, "a"), actor));
    }
    EXPECT_EQ(look_in(supervisor).restarts, 0);
    EXPECT_EQ(janus_supervisor_start_child(supervisor, actor), JANUS_OK);
    EXPECT_EQ(ask(actor), 0);
    (void)play_end(&play, supervisor, JANUS_OK);
    EXPECT_LOG(&play, "+a-a!a!a!a+a-a");
    return 0;
}

TEST("if start_child fails, its caller gets the error and the place stays EMPTY")
{
    stage_run(restart_by_hand_fails);
}

/* S9: what the calls can read back. */

static int64_t defaults(void *argument)
{
    static const janus_behaviour plain = {.struct_bytes = sizeof plain, .handle = player_handle};
    struct play                  play;
    struct player                a = {.play = &play, .name = 'a'};
    janus_child_info             info[2] = {JANUS_CHILD_INFO(), JANUS_CHILD_INFO()};
    janus_supervisor            *supervisor = play_open(&play, NULL);
    janus_actor                  actor = enter(supervisor, CHILD(&a));
    janus_actor                  other = enter(supervisor, JANUS_CHILD(.behaviour = &plain));
    (void)argument;
    EXPECT_EQ(look_at(actor).max_messages, 64);
    EXPECT_EQ(look_at(actor).incarnation, 1);
    EXPECT(!look_at(actor).suspended);
    EXPECT_STR(look_at(actor).behaviour, "player");
    EXPECT_STR(look_at(other).behaviour, "actor");
    EXPECT_EQ(janus_supervisor_children(supervisor, info, 2), 2);
    for (int i = 0; i < 2; i++) {
        EXPECT_STR(info[i].id, "");
        EXPECT_EQ(info[i].state, JANUS_ACTOR_STATE_RUNNING);
        EXPECT_EQ(info[i].incarnation, 1);
        EXPECT_EQ(info[i].restarts, 0);
    }
    crash(actor); /* PERMANENT, at once, and one restart is allowed */
    EXPECT_EQ(ask(actor), 0);
    EXPECT_EQ(look_in(supervisor).restarts, 1);
    EXPECT_EQ(cue(actor, ACT_FAIL, -100, NULL), JANUS_GONE);
    EXPECT_EQ(janus_supervisor_wait(supervisor, NEVER), JANUS_OK);
    (void)play_end(&play, supervisor, JANUS_TOO_OFTEN);
    return 0;
}

TEST("by default a child is PERMANENT, takes 64 messages, and one restart is allowed")
{
    stage_run(defaults);
}

/* S10. */

struct wrong_supervisor {
    const char              *field; /* that janus_explain names */
    janus_supervisor_options options;
};

static const struct wrong_supervisor wrong_supervisors[] = {
    {"struct_bytes", {.struct_bytes = 12}},
    {"struct_bytes", {.struct_bytes = sizeof(janus_supervisor_options) + 8}},
    {"strategy", {.strategy = 99}},
    {"auto_stop", {.auto_stop = 99}},
    {"history", {.history = 1025}},
    {"children", {.child_count = 1}},
};

static void expect_named(const char *field)
{
    char text[1024] = "";
    EXPECT(janus_explain(text, sizeof text) > 0);
    if (strstr(text, field) == NULL) EXPECT_STR(text, field);
}

static int64_t wrong_options(void *argument)
{
    (void)argument;
    for (size_t i = 0; i < sizeof wrong_supervisors / sizeof wrong_supervisors[0]; i++) {
        janus_supervisor        *supervisor = NULL;
        janus_supervisor_options options = wrong_supervisors[i].options;
        if (options.struct_bytes == 0) options.struct_bytes = sizeof options;
        EXPECT_EQ(janus_supervisor_open(&options, &supervisor), JANUS_INVALID);
        EXPECT(supervisor == NULL);
        expect_named(wrong_supervisors[i].field);
    }
    return 0;
}

TEST("open refuses each wrong field of its options, and janus_explain names the field")
{
    stage_run(wrong_options);
}

#define LONG_TEXT "0123456789012345678901234567890123456789012345678901234567890123" /* 64 */
#define ACTOR(...)                                                                                 \
    (&(const janus_behaviour){                                                                     \
        .struct_bytes = sizeof(janus_behaviour), .handle = player_handle, __VA_ARGS__})
#define OPTIONS(...)                                                                               \
    (&(const janus_actor_options){.struct_bytes = sizeof(janus_actor_options), __VA_ARGS__})

struct wrong_child {
    const char *field;
    janus_child child;
};

static const janus_supervisor_options wrong_below = {.struct_bytes = sizeof wrong_below,
                                                     .strategy = 99};
static const janus_supervisor_options right_below = {.struct_bytes = sizeof right_below};
static const janus_budget             little = {.ops = 10};
static const janus_behaviour          without_handle = {.struct_bytes = sizeof without_handle};

static const struct wrong_child wrong_children[] = {
    {"struct_bytes", {.struct_bytes = 12}},
    {"behaviour", {.behaviour = NULL}}, /* neither, nor */
    {"task", {.behaviour = &player_behaviour, .task = nothing}},
    {"supervisor", {.behaviour = &player_behaviour, .supervisor = &right_below}},
    {"id", {.id = "", .behaviour = &player_behaviour}},
    {"id", {.id = LONG_TEXT, .behaviour = &player_behaviour}},
    {"restart", {.restart = 99, .behaviour = &player_behaviour}},
    {"significant", {.significant = true, .behaviour = &player_behaviour}},
    {"strategy", {.supervisor = &wrong_below}},
    {"handle", {.behaviour = &without_handle}},
    {"state_bytes", {.behaviour = ACTOR(.state_bytes = (1 << 20) + 1)}},
    {"message_bytes", {.behaviour = ACTOR(.message_bytes = 4097)}},
    {"reply_bytes", {.behaviour = ACTOR(.reply_bytes = 4097)}},
    {"struct_bytes", {.behaviour = ACTOR(.struct_bytes = 12)}},
    {"struct_bytes", {.behaviour = &player_behaviour, .options = OPTIONS(.struct_bytes = 12)}},
    {"overflow", {.behaviour = &player_behaviour, .options = OPTIONS(.overflow = 99)}},
    {"priority", {.behaviour = &player_behaviour, .options = OPTIONS(.priority = 99)}},
    {"name", {.behaviour = &player_behaviour, .options = OPTIONS(.name = "")}},
    {"name", {.behaviour = &player_behaviour, .options = OPTIONS(.name = LONG_TEXT)}},
    {"message_budget",
     {.behaviour = &player_behaviour, .options = OPTIONS(.message_budget = &little)}},
};

static int64_t wrong_specifications(void *argument)
{
    struct play       play;
    struct player     a = {.play = &play, .name = 'a'};
    janus_supervisor *supervisor = play_open(&play, NULL);
    janus_actor       actor = enter(supervisor, CHILD(&a, .id = "a"));
    (void)argument;
    for (size_t i = 0; i < sizeof wrong_children / sizeof wrong_children[0]; i++) {
        janus_actor none = {{0}};
        janus_child child = wrong_children[i].child;
        if (child.struct_bytes == 0) child.struct_bytes = sizeof child;
        EXPECT_EQ(janus_supervisor_add(supervisor, &child, &none), JANUS_INVALID);
        expect_named(wrong_children[i].field);
        EXPECT(same_actor(none, (janus_actor){{0}}));
        EXPECT_EQ(look_in(supervisor).specified, 1);
    }
    EXPECT_EQ(ask(actor), 0);
    (void)play_end(&play, supervisor, JANUS_OK);
    EXPECT_LOG(&play, "+a-a");
    return 0;
}

TEST("add refuses each wrong field of a specification, names it, and changes nothing")
{
    stage_run(wrong_specifications);
}

static int64_t wrong_children_of_open(void *argument)
{
    struct play       play;
    struct player     a = {.play = &play, .name = 'a'};
    janus_supervisor *supervisor = NULL;
    (void)argument;
    play_begin(&play);
    for (size_t i = 0; i < sizeof wrong_children / sizeof wrong_children[0]; i++) {
        janus_child children[2] = {*CHILD(&a, .id = "a"), wrong_children[i].child};
        if (children[1].struct_bytes == 0) children[1].struct_bytes = sizeof children[1];
        EXPECT_EQ(
            janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.children = children, .child_count = 2),
                                  &supervisor),
            JANUS_INVALID);
        expect_named(wrong_children[i].field);
    }
    play_finish(&play);
    EXPECT_LOG(&play, ""); /* refused before anything was started */
    return 0;
}

TEST("open refuses a wrong specification before it starts any child")
{
    stage_run(wrong_children_of_open);
}
