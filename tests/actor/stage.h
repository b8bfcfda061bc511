/* SPDX-License-Identifier: MIT */
/*
 * A stage for tests of supervisors. stage_run plays a scene under many schedules, then once on two
 * workers. A scene is the entry of a task: it makes all that it needs, and checks with EXPECT.
 *
 *     static int64_t scene(void *argument)
 *     {
 *         struct play       play;
 *         struct player     anna = {.play = &play, .name = 'a'};
 *         janus_supervisor *supervisor = play_open(&play, NULL);
 *         janus_actor       actor = enter(supervisor, CHILD(&anna, .id = "a"));
 *         crash(actor);
 *         EXPECT_EQ(ask(actor), 0);                    // it is new
 *         play_end(&play, supervisor, JANUS_OK);
 *         EXPECT_LOG(&play, "+afa+a-a");
 *         return 0;
 *     }
 *
 * The actors are players. A player logs what happens to it, two letters for each event:
 *
 *     +a  its init succeeded           na, sa, fa, ca  its terminate ran: NORMAL, STOPPED, FAILED,
 *     !a  its init did not             CANCELLED. EXPECT_LOG takes - for n and s
 *
 * SCHEDULES=100000 plays more schedules. JANUSRT_REPLAY plays the schedule that failed.
 */
#ifndef JANUSRT_TESTS_ACTOR_STAGE_H
#define JANUSRT_TESTS_ACTOR_STAGE_H

#include "../task/rig.h"

#include <janusrt/actor.h>
#include <janusrt/explore.h>
#include <janusrt/supervisor.h>
#include <stdio.h>
#include <string.h>

enum {
    STAGE_SCHEDULES = JRT_TSAN                ? 20
                      : JRT_ASAN || JRT_DEBUG ? 200
                                              : 1000,
    PLAY_EVENTS = 256,
};

#define NEVER UINT64_MAX
#define AN_HOUR (3600 * JANUS_SECONDS)

static bool stage_exploring; /* written while no scheduler runs */

/* Whether waiting takes no time: only such a scene judges durations. */
static inline bool stage_is_virtual(void) { return stage_exploring || rig_simulated(); }

/* A while: longer than any default of a supervisor, on a clock that jumps. */
static inline uint64_t stage_while(void)
{
    return stage_is_virtual() ? 1000 * JANUS_SECONDS : 20 * JANUS_MS;
}

/* Under exploring a false check fails the schedule, so that it can be replayed. */
static inline void stage_expect(bool holds, const char *file, int line, const char *text,
                                long long left, long long right)
{
    static char told[256];
    if (holds) return;
    if (!stage_exploring) harness_fail_eq(file, line, text, left, right);
    snprintf(told, sizeof told, "%s: %lld, %lld", text, left, right);
    janus_expect_failed(told, file, line);
}

static inline void stage_expect_text(const char *file, int line, const char *found,
                                     const char *wanted)
{
    static char told[256];
    if (strcmp(found, wanted) == 0) return;
    if (!stage_exploring) harness_fail_str(file, line, "the log is as expected", found, wanted);
    snprintf(told, sizeof told, "\"%.110s\" is not \"%.110s\"", found, wanted);
    janus_expect_failed(told, file, line);
}

#define EXPECT(condition) stage_expect((condition), __FILE__, __LINE__, #condition, 0, 1)
#define EXPECT_EQ(left, right)                                                                     \
    do {                                                                                           \
        const long long stage_left = (long long)(left);                                            \
        const long long stage_right = (long long)(right);                                          \
        stage_expect(stage_left == stage_right, __FILE__, __LINE__, #left " == " #right,           \
                     stage_left, stage_right);                                                     \
    } while (0)
#define EXPECT_STR(found, wanted) stage_expect_text(__FILE__, __LINE__, (found), (wanted))

/* Plays `scene` under many schedules. */
static inline void stage_explore(const char *file, int line, janus_entry *scene,
                                 janus_strategy strategy, uint64_t schedules)
{
    const char                   *more = getenv("SCHEDULES");
    janus_explore_result          result = JANUS_EXPLORE_RESULT();
    const janus_scheduler_options options = {.struct_bytes = sizeof options,
                                             .max_tasks = JANUS_UNLIMITED,
                                             .turn_ns = RIG_TURN_NS,
                                             .quiet_panics = true};
    stage_exploring = true;
    janus_status status = janus_explore(
        JANUS_EXPLORE_OPTIONS(.strategy = strategy, .worker_count = 2, .stale_allowed = true,
                              .panics_allowed = true, .quiet = more == NULL, .scheduler = &options,
                              .schedules = more != NULL ? strtoull(more, NULL, 0) : schedules),
        scene, NULL, &result);
    stage_exploring = false;
    if (status != JANUS_OK) {
        printf("# JANUSRT_REPLAY='%s'\n", result.replay != NULL ? result.replay : "");
        harness_fail(file, line, result.message[0] != '\0' ? result.message : "it was not played");
    }
    free(result.replay);
}

static inline void stage_run_at(const char *file, int line, janus_entry *scene, bool real)
{
    if (!rig_simulated()) {
        stage_explore(file, line, scene, JANUS_STRATEGY_RANDOM, STAGE_SCHEDULES);
        stage_explore(file, line, scene, JANUS_STRATEGY_PCT, STAGE_SCHEDULES / 4);
    }
    if (real || rig_simulated()) rig_run(2, scene, NULL, 1);
}

#define stage_run(scene) stage_run_at(__FILE__, __LINE__, (scene), true)

/* A scene that judges durations: a busy machine would stretch them. */
#define stage_run_simulated(scene) stage_run_at(__FILE__, __LINE__, (scene), false)

/* The log of a scene. Only its task reads it. */
struct play {
    janus_channel told;
    char          text[2 * PLAY_EVENTS + 1];
    size_t        length;
};

struct event {
    char what, who;
};

static inline void play_say(struct play *play, char what, char who)
{
    EXPECT_EQ(janus_channel_try_send(play->told, &(struct event){what, who}), JANUS_OK);
}

static inline void play_write(struct play *play, struct event event)
{
    EXPECT(play->length + 2 < sizeof play->text);
    play->text[play->length++] = event.what;
    play->text[play->length++] = event.who;
    play->text[play->length] = '\0';
}

/* How often an event has happened, of those in the text. '-' is n or s, '?' any player. */
static inline int play_count(const struct play *play, char what, char who)
{
    int count = 0;
    for (size_t i = 0; i < play->length; i += 2) {
        char is = play->text[i];
        if (what == '-' && (is == 'n' || is == 's')) is = '-';
        count += is == what && (who == '?' || play->text[i + 1] == who);
    }
    return count;
}

/* Waits until an event has happened so often. */
static inline void play_await(struct play *play, const char *event, int times)
{
    while (play_count(play, event[0], event[1]) < times) {
        struct event next;
        EXPECT_EQ(janus_channel_recv(play->told, &next), JANUS_OK);
        play_write(play, next);
    }
}

/* Takes all that has been logged so far. */
static inline void play_read(struct play *play)
{
    struct event next;
    while (janus_channel_try_recv(play->told, &next) == JANUS_OK) play_write(play, next);
}

/* The text, with - for the ends that are no failures. */
static inline const char *play_dashed(const struct play *play)
{
    static char dashed[sizeof play->text];
    memcpy(dashed, play->text, sizeof dashed);
    for (size_t i = 0; i < play->length; i += 2) {
        if (dashed[i] == 'n' || dashed[i] == 's') dashed[i] = '-';
    }
    return dashed;
}

#define EXPECT_LOG(play, wanted) EXPECT_STR(play_dashed(play), (wanted))

/* Makes an empty log. */
static inline void play_begin(struct play *play)
{
    *play = (struct play){.length = 0};
    EXPECT_EQ(janus_channel_create(sizeof(struct event), PLAY_EVENTS, NULL, &play->told), JANUS_OK);
}

/* Takes what is in the log, and frees the channel. The text stays. */
static inline void play_finish(struct play *play)
{
    play_read(play);
    EXPECT_EQ(janus_channel_destroy(play->told), JANUS_OK);
}

static inline janus_supervisor *play_open(struct play                    *play,
                                          const janus_supervisor_options *options)
{
    janus_supervisor *supervisor = NULL;
    play_begin(play);
    EXPECT_EQ(janus_supervisor_open(options, &supervisor), JANUS_OK);
    return supervisor;
}

/* Ends the supervisor, which returns `wanted`. */
static inline janus_supervisor_result play_end(struct play *play, janus_supervisor *supervisor,
                                               janus_status wanted)
{
    janus_supervisor_result result = JANUS_SUPERVISOR_RESULT();
    EXPECT_EQ(janus_supervisor_end(supervisor, &result), wanted);
    EXPECT_EQ(result.status, wanted);
    EXPECT_EQ(result.sent, result.handled + result.returned + result.dead);
    play_finish(play);
    return result;
}

/* Players. */

struct player {
    struct play   *play;
    char           name;
    const char    *inits;  /* what each init does, the last letter again and again. NULL: "o" */
    uint64_t       end_ns; /* how long terminate takes */
    int64_t        number;
    atomic_int     starts; /* of init */
    janus_actor    self;   /* of the latest init that succeeded */
    janus_end_kind ended;  /* as terminate saw it */
};

enum act {
    ACT_COUNT = 0, /* adds `value` to the count of the incarnation; replies the count */
    ACT_NUMBER,    /* replies the player's number */
    ACT_FAIL,      /* returns `value` */
    ACT_END,       /* returns STOP */
    ACT_PANIC,
    ACT_SLEEP, /* sleeps for an hour; when that is cancelled, does the act in `value` */
    ACT_OBEY,  /* after a sleep: returns CANCELLED */
};

struct cue {
    enum act act;
    int64_t  value;
};

struct role {
    struct player *player;
    int64_t        count;
};

static inline int64_t player_init(void *state, void *argument)
{
    struct player *player = argument;
    struct role   *role = state;
    const char    *inits = player->inits != NULL ? player->inits : "o";
    int            start = atomic_fetch_add(&player->starts, 1);
    char           does = inits[(size_t)start < strlen(inits) ? (size_t)start : strlen(inits) - 1];
    EXPECT(role->player == NULL); /* state begins with zeroes, also after a restart */
    role->player = player;
    if (does != 'o') play_say(player->play, '!', player->name);
    if (does == 'i') return JANUS_ACTOR_IGNORE;
    if (does == 'f') return -100 - start;
    if (does == 'p') janus_panic("in init");
    if (does == 'h') { /* it hangs, then fails */
        JANUS_IGNORE(janus_sleep(AN_HOUR));
        return -99;
    }
    EXPECT_EQ(janus_actor_current(&player->self), JANUS_OK);
    play_say(player->play, '+', player->name);
    return JANUS_ACTOR_GO_ON;
}

static inline int64_t player_act(struct role *role, janus_letter *letter, enum act act,
                                 int64_t value)
{
    int64_t reply = 0;
    switch (act) {
    case ACT_COUNT: reply = role->count += value; break;
    case ACT_NUMBER: reply = role->player->number; break;
    case ACT_FAIL: return value;
    case ACT_END: return JANUS_ACTOR_STOP;
    case ACT_PANIC: janus_panic("on cue");
    case ACT_SLEEP:
        play_say(role->player->play, 'z', role->player->name);
        JANUS_IGNORE(janus_sleep(AN_HOUR));
        return player_act(role, letter, (enum act)value, -100);
    case ACT_OBEY: return JANUS_CANCELLED;
    }
    if (janus_letter_is_call(letter)) EXPECT_EQ(janus_reply(letter, &reply), JANUS_OK);
    return JANUS_ACTOR_GO_ON;
}

static inline int64_t player_handle(void *state, janus_letter *letter)
{
    const struct cue *cue = letter->message;
    return cue != NULL ? player_act(state, letter, cue->act, cue->value) : JANUS_ACTOR_GO_ON;
}

static inline void player_terminate(void *state, const janus_end *end)
{
    static const char letters[] = "nsfpoec?";
    struct player    *player = ((struct role *)state)->player;
    player->ended = end->kind;
    if (player->end_ns > 0) EXPECT_EQ(janus_sleep(player->end_ns), JANUS_OK);
    play_say(player->play, letters[end->kind], player->name);
}

static const janus_behaviour player_behaviour = {.struct_bytes = sizeof player_behaviour,
                                                 .name = "player",
                                                 .state_bytes = sizeof(struct role),
                                                 .message_bytes = sizeof(struct cue),
                                                 .reply_bytes = sizeof(int64_t),
                                                 .init = player_init,
                                                 .handle = player_handle,
                                                 .terminate = player_terminate};

/* The specification of a player. */
#define CHILD(player, ...)                                                                         \
    JANUS_CHILD(.behaviour = &player_behaviour, .argument = (player), __VA_ARGS__)

/* Adds a child that starts. */
static inline janus_actor enter(janus_supervisor *supervisor, const janus_child *child)
{
    janus_actor actor = {{0}};
    EXPECT_EQ(janus_supervisor_add(supervisor, child, &actor), JANUS_OK);
    return actor;
}

static inline janus_status cue(janus_actor actor, enum act act, int64_t value, int64_t *reply)
{
    return janus_call(actor, &(struct cue){act, value}, reply, NEVER);
}

/* What the incarnation has counted. */
static inline int64_t ask(janus_actor actor)
{
    int64_t count = -1;
    EXPECT_EQ(cue(actor, ACT_COUNT, 0, &count), JANUS_OK);
    return count;
}

static inline void count_up(janus_actor actor)
{
    EXPECT_EQ(cue(actor, ACT_COUNT, 1, NULL), JANUS_OK);
}

static inline void tell(janus_actor actor, enum act act, int64_t value)
{
    EXPECT_EQ(janus_cast(actor, &(struct cue){act, value}), JANUS_OK);
}

/* Lets an actor fail that is started again. */
static inline void crash(janus_actor actor)
{
    EXPECT_EQ(cue(actor, ACT_FAIL, -100, NULL), JANUS_RESTARTED);
}

/* Lets an actor sleep in its handler. When it is cancelled, it does `then`. */
static inline void lull(struct play *play, const struct player *player, janus_actor actor,
                        enum act then)
{
    const char event[2] = {'z', player->name};
    tell(actor, ACT_SLEEP, then);
    play_await(play, event, 1);
}

static inline janus_actor_info look_at(janus_actor actor)
{
    janus_actor_info info = JANUS_ACTOR_INFO();
    EXPECT_EQ(janus_actor_inspect(actor, &info), JANUS_OK);
    return info;
}

static inline janus_supervisor_info look_in(janus_supervisor *supervisor)
{
    janus_supervisor_info info = JANUS_SUPERVISOR_INFO();
    EXPECT_EQ(janus_supervisor_inspect(supervisor, &info), JANUS_OK);
    return info;
}

/* Yields until the place is in that state. */
static inline void until_state(janus_actor actor, janus_actor_state state)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    while (look_at(actor).state != state) {
        EXPECT(janus_now_ns() < limit);
        EXPECT_EQ(janus_yield(), JANUS_OK);
    }
}

/* The child with this id. */
static inline janus_actor find(janus_supervisor *supervisor, const char *id)
{
    janus_actor actor = {{0}};
    EXPECT_EQ(janus_supervisor_find_child(supervisor, id, &actor), JANUS_OK);
    return actor;
}

static inline bool same_actor(janus_actor left, janus_actor right)
{
    return memcmp(&left, &right, sizeof left) == 0;
}

/* A task that waits for the final end of an actor. */
struct watcher {
    janus_actor  actor;
    janus_status status;
    janus_end    end;
};

static inline int64_t watch_end(void *argument)
{
    struct watcher *watcher = argument;
    watcher->status = janus_actor_await(watcher->actor, &watcher->end, NEVER);
    return 0;
}

#endif
