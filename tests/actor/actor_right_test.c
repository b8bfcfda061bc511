/* SPDX-License-Identifier: MIT */
/* Rights of handles, handles that nobody gave out, and names. A11.11, A11.12. */
#include "play.h"

/* Fewer rights. */

static void check_rights(janus_actor actor, unsigned rights)
{
    janus_actor_info info = JANUS_ACTOR_INFO();
    char             text[64];
    bool             cast = (rights & JANUS_ACTOR_MAY_CAST) != 0;
    bool             call = (rights & JANUS_ACTOR_MAY_CALL) != 0;
    bool             watch = (rights & JANUS_ACTOR_MAY_WATCH) != 0;
    bool             stop = (rights & JANUS_ACTOR_MAY_STOP) != 0;
    MUST_EQ(say(actor, act_note, NULL, 1), cast ? JANUS_OK : JANUS_CAP_RIGHT);
    MUST_EQ(try_say(actor, act_note, NULL, 1), cast ? JANUS_OK : JANUS_CAP_RIGHT);
    MUST_EQ(request(actor, act_add, NULL, 0, NULL), call ? JANUS_OK : JANUS_CAP_RIGHT);
    MUST_EQ(janus_actor_inspect(actor, &info), watch ? JANUS_OK : JANUS_CAP_RIGHT);
    if (!watch) MUST_EQ(janus_actor_await(actor, NULL, play_late()), JANUS_CAP_RIGHT);
    MUST_EQ(janus_actor_suspend(actor), stop ? JANUS_OK : JANUS_CAP_RIGHT);
    MUST_EQ(janus_actor_resume(actor), stop ? JANUS_OK : JANUS_CAP_RIGHT);
    MUST_EQ(janus_actor_describe(actor, text, sizeof text, play_late()),
            stop ? JANUS_OK : JANUS_CAP_RIGHT);
    if (!stop) MUST_EQ(janus_actor_stop(actor, JANUS_STOP_HOW_AT_ONCE, 0), JANUS_CAP_RIGHT);
}

static int64_t scene_rights(void *argument)
{
    struct role       role = {0};
    janus_actor       narrow, narrower;
    janus_supervisor *stage = open_stage();
    janus_actor       actor = ADD(stage, .argument = &role);
    (void)argument;
    check_rights(actor, JANUS_ACTOR_MAY_ALL);
    for (unsigned rights = 1; rights < JANUS_ACTOR_MAY_ALL; rights++) {
        MUST_EQ(janus_actor_attenuate(actor, rights, &narrow), JANUS_OK);
        check_rights(narrow, rights);
        for (unsigned wanted = 1; wanted <= JANUS_ACTOR_MAY_ALL; wanted++) {
            bool within = (wanted & ~rights) == 0;
            MUST_EQ(janus_actor_attenuate(narrow, wanted, &narrower),
                    within ? JANUS_OK : JANUS_CAP_WIDENS);
        }
    }
    MUST_EQ(janus_actor_attenuate(actor, 16, &narrow), JANUS_INVALID);
    MUST_EQ(janus_actor_attenuate(actor, JANUS_ACTOR_MAY_CAST, NULL), JANUS_INVALID);
    MUST_EQ(look(actor).state, JANUS_ACTOR_STATE_RUNNING);
    close_stage(stage);
    return 0;
}

TEST("a handle does what its rights say, and a narrower one never gets wider")
{
    PLAY(scene_rights, .schedules = 100);
}

static int64_t act_watch_narrow(struct self *self, janus_letter *letter, const struct line *line)
{
    (void)letter;
    note(self, janus_actor_watch(*(janus_actor *)line->argument, 1, NULL));
    return JANUS_ACTOR_GO_ON;
}

static int64_t scene_watch_right(void *argument)
{
    struct role       role = {0}, other = {0};
    janus_actor       narrow;
    janus_supervisor *stage = open_stage();
    janus_actor       actor = ADD(stage, .argument = &role);
    janus_actor       watched = ADD(stage, .argument = &other);
    (void)argument;
    MUST_EQ(janus_actor_attenuate(watched, JANUS_ACTOR_MAY_CAST | JANUS_ACTOR_MAY_CALL, &narrow),
            JANUS_OK);
    tell(actor, act_watch_narrow, &narrow, 0);
    tell(actor, act_watch_narrow, &watched, 0);
    MUST_EQ(settle(actor), 0);
    LOGGED(&role, JANUS_CAP_RIGHT, JANUS_OK);
    close_stage(stage);
    return 0;
}

TEST("a handle without MAY_WATCH cannot watch") { PLAY(scene_watch_right); }

/* Forged handles. */

static bool is_refused(janus_actor actor)
{
    janus_status status = try_say(actor, act_note, NULL, 1);
    return status == JANUS_STALE || status == JANUS_CAP_RIGHT;
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

/* Changes a few bits of a handle. */
static janus_actor forge(janus_actor actor, uint64_t *state)
{
    uint64_t bits = 1 + next_random(state) % 4;
    for (uint64_t i = 0; i < bits; i++) {
        uint64_t at = next_random(state) % 128;
        actor.opaque[at / 64] ^= UINT64_C(1) << at % 64;
    }
    return actor;
}

static int64_t scene_forged(void *argument)
{
    struct role       role = {0};
    janus_actor       narrow;
    uint64_t          state = 88172645463325252;
    int               rounds = play_explored ? 300 : 1000000 / PLAY_ROUNDS / 2;
    janus_supervisor *stage = open_stage();
    janus_actor       actor = ADD(stage, .argument = &role);
    (void)argument;
    MUST_EQ(janus_actor_attenuate(actor, JANUS_ACTOR_MAY_WATCH, &narrow), JANUS_OK);
    MUST(is_refused((janus_actor){{0, 0}}));
    MUST(is_refused((janus_actor){{UINT64_MAX, UINT64_MAX}}));
    for (int bit = 0; bit < 128; bit++) { /* no bit of it is a right */
        janus_actor changed = narrow;
        changed.opaque[bit / 64] ^= UINT64_C(1) << bit % 64;
        MUST(is_refused(changed));
    }
    for (int i = 0; i < rounds; i++) {
        janus_actor altered = forge(narrow, &state);
        janus_actor guessed = {{next_random(&state), next_random(&state)}};
        MUST(memcmp(&altered, &narrow, sizeof narrow) == 0 || is_refused(altered));
        MUST(is_refused(guessed));
    }
    MUST_EQ(look(actor).sent, 0);
    MUST_EQ(settle(actor), 0);
    close_stage(stage);
    return 0;
}

TEST("a million forged handles are refused, and reach no actor")
{
    PLAY(scene_forged, .schedules = 20);
}

static int64_t scene_stale(void *argument)
{
    struct role       roles[8] = {0};
    janus_actor       old[8];
    janus_supervisor *stage = open_stage();
    (void)argument;
    for (int i = 0; i < 8; i++) { /* each may get the place of the one before */
        janus_actor actor = ADD(stage, .argument = &roles[i], .restart = JANUS_RESTART_TEMPORARY);
        MUST_EQ(settle(actor), 0);
        for (int k = 0; k < i; k++) {
            MUST_EQ(say(old[k], act_note, NULL, 1), JANUS_STALE);
            MUST_EQ(request(old[k], act_note, NULL, 1, NULL), JANUS_STALE);
            MUST_EQ(janus_actor_stop(old[k], JANUS_STOP_HOW_AT_ONCE, 0), JANUS_STALE);
        }
        MUST_EQ(settle(actor), 0);
        MUST_EQ(janus_actor_stop(actor, JANUS_STOP_HOW_AT_ONCE, 0), JANUS_OK);
        (void)await_end(actor);
        old[i] = actor;
    }
    for (int i = 0; i < 8; i++) MUST_EQ(roles[i].logged, 0);
    close_stage(stage);
    return 0;
}

TEST("the handle of an ended actor never names the actor that has its place now")
{
    PLAY(scene_stale);
}

/* Whose handle. */

static int64_t act_who(struct self *self, janus_letter *letter, const struct line *line)
{
    janus_actor *out = line->argument;
    MUST_EQ(janus_actor_current(out), JANUS_OK);
    MUST_EQ(janus_actor_current(NULL), JANUS_INVALID);
    (void)self;
    answer(letter, 0);
    return JANUS_ACTOR_GO_ON;
}

static int64_t scene_current(void *argument)
{
    struct role       role = {0};
    janus_actor       me;
    janus_supervisor *stage = open_stage();
    janus_actor       actor = ADD(stage, .argument = &role);
    (void)argument;
    MUST_EQ(janus_actor_current(&me), JANUS_STATE);
    MUST_EQ(request(actor, act_who, &me, 0, NULL), JANUS_OK);
    check_rights(me, JANUS_ACTOR_MAY_ALL);
    tell(actor, act_return, NULL, -100);
    janus_actor again;
    MUST_EQ(request(actor, act_who, &again, 0, NULL), JANUS_OK);
    MUST(memcmp(&me, &again, sizeof me) == 0); /* the handle is that of the place */
    MUST_EQ(settle(me), 0);
    close_stage(stage);
    return 0;
}

TEST("an actor knows its own handle, which stays the same over restarts") { PLAY(scene_current); }

/* Names. */

static int64_t scene_names(void *argument)
{
    struct role       role = {0};
    char              longest[65];
    janus_actor       found;
    janus_supervisor *stage = open_stage();
    (void)argument;
    memset(longest, 'n', 63);
    longest[63] = '\0';
    janus_actor actor =
        ADD(stage, .argument = &role, .options = JANUS_ACTOR_OPTIONS(.name = longest));
    MUST_EQ(janus_actor_find(longest, &found), JANUS_OK);
    check_rights(found, JANUS_ACTOR_MAY_CAST | JANUS_ACTOR_MAY_CALL | JANUS_ACTOR_MAY_WATCH);
    MUST_EQ(settle(actor), 0);
    strcpy(longest + 63, "n");
    MUST_EQ(janus_actor_find(longest, &found), JANUS_INVALID);
    MUST_EQ(janus_supervisor_add(stage,
                                 JANUS_CHILD(.behaviour = &player, .argument = &role,
                                             .options = JANUS_ACTOR_OPTIONS(.name = longest)),
                                 NULL),
            JANUS_INVALID);
    MUST_EQ(janus_actor_find("", &found), JANUS_INVALID);
    MUST_EQ(janus_actor_find(NULL, &found), JANUS_INVALID);
    MUST_EQ(janus_actor_find("n", NULL), JANUS_INVALID);
    MUST_EQ(janus_actor_find("n", &found), JANUS_NOT_FOUND);
    close_stage(stage);
    return 0;
}

TEST("a name of up to 63 bytes is found, and the found handle may cast, call and watch")
{
    PLAY(scene_names);
    janus_actor found;
    CHECK_EQ(janus_actor_find("n", &found), JANUS_STATE); /* not inside a task */
}

struct seeker {
    janus_actor actor;
    int         found;
};

static int64_t seek(void *argument)
{
    struct seeker *seeker = argument;
    for (int i = 0; i < 10; i++) {
        janus_actor  found;
        janus_status status = janus_actor_find("phoenix", &found);
        MUST(status == JANUS_OK || status == JANUS_NOT_FOUND);
        if (status == JANUS_OK) MUST_EQ(request(found, act_add, NULL, 0, NULL), JANUS_OK);
        seeker->found += status == JANUS_OK;
    }
    return 0;
}

static int64_t scene_name_restart(void *argument)
{
    struct role       role = {0};
    struct seeker     seekers[2];
    janus_status      ended;
    janus_actor       found;
    janus_supervisor *stage = open_stage();
    janus_actor       actor =
        ADD(stage, .argument = &role, .options = JANUS_ACTOR_OPTIONS(.name = "phoenix"));
    (void)argument;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < 2; i++) {
            seekers[i] = (struct seeker){.actor = actor};
            MUST_EQ(janus_spawn(n, seek, &seekers[i]), JANUS_OK);
        }
        for (int i = 0; i < 5; i++) tell(actor, act_return, NULL, -100);
    }
    MUST_EQ(ended, JANUS_OK);
    MUST_EQ(settle(actor), 0);
    MUST_EQ(janus_actor_find("phoenix", &found), JANUS_OK);
    MUST_EQ(role.starts, 6);
    MUST_EQ(janus_actor_stop(actor, JANUS_STOP_HOW_AT_ONCE, 0), JANUS_OK);
    (void)await_end(actor);
    MUST_EQ(janus_actor_find("phoenix", &found), JANUS_NOT_FOUND);
    close_stage(stage);
    return 0;
}

TEST("a name leads to the next incarnation after a restart, and to nobody after the end")
{
    PLAY(scene_name_restart);
}

/* Prefixes. */

static janus_supervisor *open_with_prefix(const janus_authority *root, uint32_t rights,
                                          const char *prefix)
{
    janus_cap         cap;
    janus_supervisor *stage = NULL;
    janus_cap_limits  limits = {.words = {0}};
    memcpy(limits.name.prefix, prefix, strlen(prefix) + 1);
    MUST_EQ(janus_cap_mint(
                root, 0,
                JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_NAME, .rights = rights, .limits = &limits),
                &cap),
            JANUS_OK);
    MUST_EQ(janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.name_cap = cap), &stage), JANUS_OK);
    return stage;
}

static janus_status add_named(janus_supervisor *stage, struct role *role, const char *name)
{
    return janus_supervisor_add(stage,
                                JANUS_CHILD(.behaviour = &player, .argument = role,
                                            .options = JANUS_ACTOR_OPTIONS(.name = name)),
                                NULL);
}

/* Finds the name `argument`. */
static int64_t act_find(struct self *self, janus_letter *letter, const struct line *line)
{
    janus_actor found;
    (void)self;
    answer(letter, janus_actor_find(line->argument, &found));
    return JANUS_ACTOR_GO_ON;
}

static janus_status find_in(janus_actor actor, char *name)
{
    int64_t status = 1;
    MUST_EQ(request(actor, act_find, name, 0, &status), JANUS_OK);
    return (janus_status)status;
}

static int64_t scene_prefix(void *argument)
{
    struct role      roles[4] = {0};
    janus_authority *root;
    (void)argument;
    MUST_EQ(janus_authority_take(NULL, &root), JANUS_OK);
    janus_supervisor *outer = open_stage();
    MUST_EQ(add_named(outer, &roles[0], "bank.till"), JANUS_OK);
    janus_supervisor *stage = open_with_prefix(root, JANUS_RIGHTS_ALL, "web.");
    MUST_EQ(add_named(stage, &roles[1], "bank.vault"), JANUS_CAP_LIMIT); /* a squatter */
    MUST_EQ(add_named(stage, &roles[1], "web"), JANUS_CAP_LIMIT);
    MUST_EQ(roles[1].starts, roles[1].ends);
    MUST_EQ(add_named(stage, &roles[2], "web.page"), JANUS_OK);
    janus_actor plain = ADD(stage, .argument = &roles[3]);
    MUST_EQ(find_in(plain, "web.page"), JANUS_OK);
    MUST_EQ(find_in(plain, "web.other"), JANUS_NOT_FOUND);
    MUST_EQ(find_in(plain, "bank.till"), JANUS_CAP_LIMIT);
    MUST_EQ(find_in(plain, "bank.none"), JANUS_CAP_LIMIT); /* it does not learn which exist */
    close_stage(stage);
    close_stage(outer);
    return 0;
}

TEST("a name outside of the capability's prefix can be neither registered nor found")
{
    PLAY(scene_prefix);
}

static int64_t scene_find_only(void *argument)
{
    struct role      roles[2] = {0};
    janus_authority *root;
    (void)argument;
    MUST_EQ(janus_authority_take(NULL, &root), JANUS_OK);
    janus_supervisor *stage = open_with_prefix(root, JANUS_RIGHT_NAME_FIND, "web.");
    MUST_EQ(add_named(stage, &roles[0], "web.page"), JANUS_CAP_RIGHT);
    janus_actor plain = ADD(stage, .argument = &roles[1]);
    MUST_EQ(find_in(plain, "web.page"), JANUS_NOT_FOUND);
    close_stage(stage);
    return 0;
}

TEST("a capability with name.find alone registers no name") { PLAY(scene_find_only); }
