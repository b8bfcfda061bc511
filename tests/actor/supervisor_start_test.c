/* SPDX-License-Identifier: MIT */
/* How supervisors and their children start: all of it, in order, or nothing. */
#include "play.h"

/* S1. */

static int64_t opens_and_ends(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    struct role       c = {.play = &play, .name = 'c'};
    janus_supervisor *supervisor = play_open(&play, JANUS_SUPERVISOR_OPTIONS(.name = "family"));
    janus_actor_info  info = JANUS_ACTOR_INFO();
    (void)argument;
    MUST_EQ(look_in(supervisor).specified, 0);
    janus_actor actors[3] = {add_child(supervisor, CHILD(&a, .id = "a")),
                             add_child(supervisor, CHILD(&b, .id = "b")),
                             add_child(supervisor, CHILD(&c))};
    MUST_EQ(janus_supervisor_children(supervisor, NULL, 0), 3);
    for (int i = 0; i < 3; i++) MUST_EQ(look(actors[i]).state, JANUS_ACTOR_STATE_RUNNING);
    for (int i = 0; i < 3; i++) count_up(actors[i]);
    janus_supervisor_result result = play_end(&play, supervisor, JANUS_OK);
    MUST(!result.by_itself);
    MUST_EQ(result.restarts, 0);
    MUST_EQ(result.sent, 3);
    MUST_EQ(result.handled, 3);
    MUST_LOG(&play, "+a+b+c-c-b-a");
    for (int i = 0; i < 3; i++) {
        MUST_EQ(say(actors[i], act_add, NULL, 1), JANUS_STALE);
        janus_status status = janus_actor_inspect(actors[i], &info);
        MUST(status == JANUS_STALE || (status == JANUS_OK && info.state == JANUS_ACTOR_STATE_GONE));
    }
    return 0;
}

TEST("a supervisor starts its children in order, ends them in reverse, and leaves nothing")
{
    PLAY(opens_and_ends, .panics = true);
}

/* S2. */

struct wish {
    int64_t result;
    int     asked;
};

static int64_t as_wished(void *argument)
{
    struct wish *wish = argument;
    wish->asked++;
    return wish->result;
}

static int64_t opens_on_wish(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'};
    struct wish       wish = {.result = JANUS_ACTOR_IGNORE};
    const janus_child child = *CHILD(&a, .id = "a");
    janus_supervisor *outer = play_open(&play, NULL), *inner = NULL;
    janus_actor       place = {{0}};
    char              why[512];
    (void)argument;
    const janus_supervisor_options *options =
        JANUS_SUPERVISOR_OPTIONS(.init = as_wished, .init_argument = &wish, .children = &child,
                                 .child_count = 1);
    MUST_EQ(janus_supervisor_open(options, &inner), JANUS_IGNORED);
    MUST(inner == NULL);
    MUST_EQ(janus_supervisor_add(outer, JANUS_CHILD(.supervisor = options), NULL), JANUS_IGNORED);
    MUST_EQ(look_in(outer).specified, 0);
    MUST_EQ(janus_supervisor_add(outer, JANUS_CHILD(.id = "in", .supervisor = options), &place),
            JANUS_IGNORED);
    MUST_EQ(look(place).state, JANUS_ACTOR_STATE_EMPTY);
    wish.result = -77;
    MUST_EQ(janus_supervisor_open(options, &inner), JANUS_CHILD_FAILED);
    (void)janus_explain(why, sizeof why);
    MUST(strstr(why, "options.init returned -77") != NULL);
    MUST_EQ(janus_supervisor_start_child(outer, place), JANUS_CHILD_FAILED);
    (void)janus_explain(why, sizeof why);
    MUST(strstr(why, "failed, -77") != NULL);
    MUST_EQ(look(place).last.error, -77);
    MUST_EQ(a.starts, 0);
    wish.result = JANUS_ACTOR_GO_ON;
    MUST_EQ(janus_supervisor_start_child(outer, place), JANUS_OK);
    MUST_EQ(a.starts, 1);
    MUST_EQ(wish.asked, 6);
    (void)play_end(&play, outer, JANUS_OK);
    MUST_LOG(&play, "+a-a");
    return 0;
}

TEST("a supervisor whose init returns IGNORE starts nothing, and a failed init says why")
{
    PLAY(opens_on_wish, .panics = true);
}

static int64_t opens_with_idle_children(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a', .inits = "i"};
    struct role       b = {.play = &play, .name = 'b', .inits = "i"};
    const janus_child children[] = {*CHILD(&a, .id = "a"), *CHILD(&b, .id = "b")};
    janus_supervisor *supervisor =
        play_open(&play, JANUS_SUPERVISOR_OPTIONS(.children = children, .child_count = 2));
    (void)argument;
    MUST_EQ(look_in(supervisor).specified, 2);
    MUST_EQ(look_in(supervisor).running, 0);
    (void)play_end(&play, supervisor, JANUS_OK);
    MUST_LOG(&play, "!a!b");
    return 0;
}

TEST("a supervisor opens although each of its children has nothing to do")
{
    PLAY(opens_with_idle_children, .panics = true);
}

/* S3, S4, S5. */

static int64_t ignored_child_stays(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a', .inits = "iio"};
    janus_supervisor *supervisor = play_open(&play, NULL);
    (void)argument;
    for (janus_restart type = JANUS_RESTART_PERMANENT; type <= JANUS_RESTART_TRANSIENT; type++) {
        atomic_store(&a.starts, 0);
        MUST_EQ(janus_supervisor_add(supervisor, CHILD(&a, .id = "a", .restart = type), NULL),
                JANUS_IGNORED);
        janus_actor actor = find(supervisor, "a");
        MUST_EQ(look(actor).state, JANUS_ACTOR_STATE_EMPTY);
        MUST_EQ(look(actor).task, 0);
        MUST_EQ(look_in(supervisor).specified, 1);
        MUST_EQ(look_in(supervisor).running, 0);
        MUST_EQ(janus_supervisor_start_child(supervisor, actor), JANUS_IGNORED);
        MUST_EQ(look(actor).state, JANUS_ACTOR_STATE_EMPTY);
        MUST_EQ(janus_supervisor_start_child(supervisor, actor), JANUS_OK);
        MUST_EQ(settle(actor), 0);
        MUST_EQ(janus_supervisor_stop_child(supervisor, actor), JANUS_OK);
        MUST_EQ(janus_supervisor_remove_child(supervisor, actor), JANUS_OK);
    }
    (void)play_end(&play, supervisor, JANUS_OK);
    MUST_LOG(&play, "!a!a+a-a!a!a+a-a");
    return 0;
}

TEST("a child whose init returns IGNORE keeps its specification, and start_child tries again")
{
    PLAY(ignored_child_stays, .panics = true);
}

static int64_t ignored_temporary_goes(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a', .inits = "i"};
    janus_actor       actor;
    janus_supervisor *supervisor = play_open(&play, NULL);
    (void)argument;
    MUST_EQ(janus_supervisor_add(supervisor,
                                 CHILD(&a, .id = "a", .restart = JANUS_RESTART_TEMPORARY), NULL),
            JANUS_IGNORED);
    MUST_EQ(janus_supervisor_find_child(supervisor, "a", &actor), JANUS_NOT_FOUND);
    MUST_EQ(look_in(supervisor).specified, 0);
    MUST_EQ(janus_supervisor_children(supervisor, NULL, 0), 0);
    (void)play_end(&play, supervisor, JANUS_OK);
    MUST_LOG(&play, "!a");
    return 0;
}

TEST("a TEMPORARY child whose init returns IGNORE is forgotten")
{
    PLAY(ignored_temporary_goes, .panics = true);
}

static int64_t ignored_anonymous_goes(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a', .inits = "i"};
    janus_supervisor *supervisor = play_open(&play, NULL);
    (void)argument;
    for (janus_restart type = JANUS_RESTART_DEFAULT; type <= JANUS_RESTART_TEMPORARY; type++) {
        MUST_EQ(janus_supervisor_add(supervisor, CHILD(&a, .restart = type), NULL), JANUS_IGNORED);
        MUST_EQ(look_in(supervisor).specified, 0);
        MUST_EQ(janus_supervisor_children(supervisor, NULL, 0), 0);
    }
    (void)play_end(&play, supervisor, JANUS_OK);
    MUST_LOG(&play, "!a!a!a!a");
    return 0;
}

TEST("an anonymous child whose init returns IGNORE is forgotten, whatever its restart type")
{
    PLAY(ignored_anonymous_goes, .panics = true);
}

/* S6, S7. */

static void fail_to_open(const char *inits, const char *log)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'}, b = {.play = &play, .name = 'b'};
    struct role       c = {.play = &play, .name = 'c', .inits = inits};
    struct role       d = {.play = &play, .name = 'd'};
    const janus_child children[] = {*CHILD(&a, .id = "a"), *CHILD(&b), *CHILD(&c, .id = "c"),
                                    *CHILD(&d, .id = "d")};
    janus_supervisor *supervisor = NULL;
    char              text[512] = "";
    play_begin(&play);
    MUST_EQ(janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.children = children, .child_count = 4),
                                  &supervisor),
            JANUS_CHILD_FAILED);
    MUST(janus_explain(text, sizeof text) > 0);
    MUST(strstr(text, inits[0] == 'f' ? "-100" : "panicked") != NULL); /* how init ended */
    play_finish(&play);
    MUST_LOG(&play, log);
    MUST_EQ(janus_yield(), JANUS_OK); /* the task is not cancelled */
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
    PLAY(child_fails_to_start, .panics = true);
}

static int64_t first_child_fails(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a', .inits = "f"};
    struct role       b = {.play = &play, .name = 'b'};
    const janus_child children[] = {*CHILD(&a, .id = "a"), *CHILD(&b, .id = "b")};
    janus_supervisor *supervisor = NULL;
    char              text[512] = "";
    (void)argument;
    play_begin(&play);
    MUST_EQ(janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.children = children, .child_count = 2),
                                  &supervisor),
            JANUS_CHILD_FAILED);
    MUST(janus_explain(text, sizeof text) > 0);
    MUST(strstr(text, "-100") != NULL); /* what init returned */
    play_finish(&play);
    MUST_LOG(&play, "!a");
    return 0;
}

TEST("if the first init fails, open reports its error and starts no other child")
{
    PLAY(first_child_fails, .panics = true);
}

/* S8. */

static int64_t restart_by_hand_fails(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a', .inits = "offpo"};
    janus_supervisor *supervisor = play_open(&play, NULL);
    janus_actor       actor = add_child(supervisor, CHILD(&a, .id = "a"));
    (void)argument;
    MUST_EQ(janus_supervisor_stop_child(supervisor, actor), JANUS_OK);
    for (int i = 0; i < 3; i++) {
        MUST_EQ(janus_supervisor_start_child(supervisor, actor), JANUS_CHILD_FAILED);
        MUST_EQ(look(actor).state, JANUS_ACTOR_STATE_EMPTY);
        MUST(same_actor(find(supervisor, "a"), actor));
    }
    MUST_EQ(look_in(supervisor).restarts, 0);
    MUST_EQ(janus_supervisor_start_child(supervisor, actor), JANUS_OK);
    MUST_EQ(settle(actor), 0);
    (void)play_end(&play, supervisor, JANUS_OK);
    MUST_LOG(&play, "+a-a!a!a!a+a-a");
    return 0;
}

TEST("if start_child fails, its caller gets the error and the place stays EMPTY")
{
    PLAY(restart_by_hand_fails, .panics = true);
}

/* S9. */

static int64_t defaults(void *argument)
{
    static const janus_behaviour plain = {.struct_bytes = sizeof plain, .handle = player_handle};
    struct play                  play;
    struct role                  a = {.play = &play, .name = 'a'};
    janus_child_info             info[2] = {JANUS_CHILD_INFO(), JANUS_CHILD_INFO()};
    janus_supervisor            *supervisor = play_open(&play, NULL);
    janus_actor                  actor = add_child(supervisor, CHILD(&a));
    janus_actor                  other = add_child(supervisor, JANUS_CHILD(.behaviour = &plain));
    (void)argument;
    MUST_EQ(look(actor).max_messages, 64);
    MUST_EQ(look(actor).incarnation, 1);
    MUST(!look(actor).suspended);
    MUST_STR(look(actor).behaviour, "player");
    MUST_STR(look(other).behaviour, "actor");
    MUST_EQ(janus_supervisor_children(supervisor, info, 2), 2);
    for (int i = 0; i < 2; i++) {
        MUST_STR(info[i].id, "");
        MUST_EQ(info[i].state, JANUS_ACTOR_STATE_RUNNING);
        MUST_EQ(info[i].incarnation, 1);
        MUST_EQ(info[i].restarts, 0);
        MUST_EQ(info[i].restart, JANUS_RESTART_PERMANENT);
        MUST(!info[i].significant);
        MUST_EQ(info[i].start_within_ns, 5 * JANUS_SECONDS);
        MUST_EQ(info[i].stop_within_ns, 5 * JANUS_SECONDS);
    }
    janus_supervisor_info all = look_in(supervisor);
    MUST_EQ(all.strategy, JANUS_SUPERVISION_ONE_FOR_ONE);
    MUST_EQ(all.auto_stop, JANUS_AUTO_STOP_NEVER);
    MUST_EQ(all.max_restarts, 1);
    MUST_EQ(all.period_ns, 5 * JANUS_SECONDS);
    MUST_EQ(all.healthy_ns, all.period_ns);
    MUST(all.delay_ns == 0 && all.max_delay_ns == 0);
    MUST_EQ(all.price, 100);
    MUST_EQ(all.history, 16);
    MUST_EQ(all.max_exhaustions, 100);
    crash(actor); /* PERMANENT, at once, and one restart is allowed */
    MUST_EQ(settle(actor), 0);
    MUST_EQ(look_in(supervisor).restarts, 1);
    MUST_EQ(request(actor, act_return, NULL, -100, NULL), JANUS_GONE);
    MUST_EQ(janus_supervisor_wait(supervisor, NEVER), JANUS_OK);
    (void)play_end(&play, supervisor, JANUS_TOO_OFTEN);
    return 0;
}

TEST("by default a child is PERMANENT, takes 64 messages, and one restart is allowed")
{
    PLAY(defaults, .panics = true);
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
    MUST(janus_explain(text, sizeof text) > 0);
    if (strstr(text, field) == NULL) MUST_STR(text, field);
}

/* A pool without spawns. Then the next call has an explanation of its own. */
static int64_t start_refused(void *argument)
{
    const janus_budget no_spawns = JANUS_BUDGET(.ops = 1000);
    struct play        play;
    struct role        a = {.play = &play, .name = 'a'};
    janus_supervisor  *supervisor = NULL;
    (void)argument;
    play_begin(&play);
    MUST_EQ(janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.budget = &no_spawns), &supervisor),
            JANUS_OK);
    MUST_EQ(janus_supervisor_add(supervisor, CHILD(&a), NULL), JANUS_SPAWN_BUDGET);
    expect_named("janus_supervisor_add: ");
    expect_named("spawn_count");
    MUST_EQ(janus_supervisor_add(supervisor, NULL, NULL), JANUS_INVALID);
    expect_named("JANUS_INVALID");
    MUST_EQ(janus_supervisor_end(supervisor, NULL), JANUS_OK);
    play_finish(&play);
    MUST_LOG(&play, "");
    return 0;
}

TEST("if the pool pays for no child, add returns SPAWN_BUDGET, and janus_explain names spawn_count")
{
    PLAY(start_refused);
}

static int64_t pool_granted(void *argument)
{
    const janus_budget much = JANUS_BUDGET(.ops = 5000000, .syscalls = 7);
    const janus_budget most = janus_profile_limits(JANUS_PROFILE_SERVICE)->budget;
    janus_budget       granted = {0};
    janus_supervisor  *supervisor = NULL;
    (void)argument;
    MUST_EQ(janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.budget = &much, .granted = &granted),
                                  &supervisor),
            JANUS_OK);
    MUST_EQ(granted.ops, most.ops);
    MUST(granted.ops < much.ops);
    MUST_EQ(granted.syscalls, 7);
    MUST_EQ(janus_supervisor_end(supervisor, NULL), JANUS_OK);
    return 0;
}

TEST("a supervisor's pool gets what the profile allows, and granted says how much")
{
    PLAY(pool_granted);
}

static int64_t wrong_options(void *argument)
{
    (void)argument;
    for (size_t i = 0; i < sizeof wrong_supervisors / sizeof wrong_supervisors[0]; i++) {
        janus_supervisor        *supervisor = NULL;
        janus_supervisor_options options = wrong_supervisors[i].options;
        if (options.struct_bytes == 0) options.struct_bytes = sizeof options;
        MUST_EQ(janus_supervisor_open(&options, &supervisor), JANUS_INVALID);
        MUST(supervisor == NULL);
        expect_named(wrong_supervisors[i].field);
    }
    return 0;
}

TEST("open refuses each wrong field of its options, and janus_explain names the field")
{
    PLAY(wrong_options, .panics = true);
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
    {"task", {.behaviour = &player, .task = nothing}},
    {"supervisor", {.behaviour = &player, .supervisor = &right_below}},
    {"id", {.id = "", .behaviour = &player}},
    {"id", {.id = LONG_TEXT, .behaviour = &player}},
    {"restart", {.restart = 99, .behaviour = &player}},
    {"significant", {.significant = true, .behaviour = &player}},
    {"strategy", {.supervisor = &wrong_below}},
    {"handle", {.behaviour = &without_handle}},
    {"state_bytes", {.behaviour = ACTOR(.state_bytes = (1 << 20) + 1)}},
    {"message_bytes", {.behaviour = ACTOR(.message_bytes = 4097)}},
    {"reply_bytes", {.behaviour = ACTOR(.reply_bytes = 4097)}},
    {"struct_bytes", {.behaviour = ACTOR(.struct_bytes = 12)}},
    {"struct_bytes", {.behaviour = &player, .options = OPTIONS(.struct_bytes = 12)}},
    {"overflow", {.behaviour = &player, .options = OPTIONS(.overflow = 99)}},
    {"priority", {.behaviour = &player, .options = OPTIONS(.priority = 99)}},
    {"name", {.behaviour = &player, .options = OPTIONS(.name = "")}},
    {"name", {.behaviour = &player, .options = OPTIONS(.name = LONG_TEXT)}},
    {"message_budget", {.behaviour = &player, .options = OPTIONS(.message_budget = &little)}},
};

static int64_t wrong_specifications(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'};
    janus_supervisor *supervisor = play_open(&play, NULL);
    janus_actor       actor = add_child(supervisor, CHILD(&a, .id = "a"));
    (void)argument;
    for (size_t i = 0; i < sizeof wrong_children / sizeof wrong_children[0]; i++) {
        janus_actor none = {{0}};
        janus_child child = wrong_children[i].child;
        if (child.struct_bytes == 0) child.struct_bytes = sizeof child;
        MUST_EQ(janus_supervisor_add(supervisor, &child, &none), JANUS_INVALID);
        expect_named(wrong_children[i].field);
        MUST(same_actor(none, (janus_actor){{0}}));
        MUST_EQ(look_in(supervisor).specified, 1);
    }
    MUST_EQ(settle(actor), 0);
    (void)play_end(&play, supervisor, JANUS_OK);
    MUST_LOG(&play, "+a-a");
    return 0;
}

TEST("add refuses each wrong field of a specification, names it, and changes nothing")
{
    PLAY(wrong_specifications, .panics = true);
}

static int64_t wrong_children_of_open(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'};
    janus_supervisor *supervisor = NULL;
    (void)argument;
    play_begin(&play);
    for (size_t i = 0; i < sizeof wrong_children / sizeof wrong_children[0]; i++) {
        janus_child children[2] = {*CHILD(&a, .id = "a"), wrong_children[i].child};
        if (children[1].struct_bytes == 0) children[1].struct_bytes = sizeof children[1];
        MUST_EQ(janus_supervisor_open(
                    JANUS_SUPERVISOR_OPTIONS(.children = children, .child_count = 2), &supervisor),
                JANUS_INVALID);
        expect_named(wrong_children[i].field);
    }
    play_finish(&play);
    MUST_LOG(&play, ""); /* refused before anything was started */
    return 0;
}

TEST("open refuses a wrong specification before it starts any child")
{
    PLAY(wrong_children_of_open, .panics = true);
}
