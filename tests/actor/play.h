/* SPDX-License-Identifier: MIT */
/*
 * What tests of actors share: a scene runs explored and for real, players do what their messages
 * say, and every stage closes with balanced books.
 *
 * More schedules: SCHEDULES=100000 build/gcc-release/tests/actor/actor_mail_test
 */
#ifndef JANUSRT_TESTS_ACTOR_PLAY_H
#define JANUSRT_TESTS_ACTOR_PLAY_H

#include "harness.h"

#include <janusrt/actor.h>
#include <janusrt/janus.h>
#include <janusrt/supervisor.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLAY_SCHEDULES = JRT_ASAN || JRT_DEBUG ? 100 : 1000, PLAY_ROUNDS = 5, PLAY_LOG = 96 };

/* Whether the explorer runs the scene. It prints the schedule of a failed check. */
static bool play_explored;

/* A check that may stand anywhere in a scene. In an actor it never looks like a failed actor. */
#define MUST(condition)                                                                            \
    (__builtin_expect(!!(condition), 1) ? (void)0 : play_failed(#condition, __FILE__, __LINE__))

/* A check that prints both numbers. */
#define MUST_EQ(left, right)                                                                       \
    do {                                                                                           \
        const long long must_left = (long long)(left);                                             \
        const long long must_right = (long long)(right);                                           \
        if (must_left != must_right)                                                               \
            play_differs(#left " == " #right, must_left, must_right, __FILE__, __LINE__);          \
    } while (0)

__attribute__((noreturn, cold)) static inline void play_failed(const char *text, const char *file,
                                                               int line)
{
    if (play_explored) janus_expect_failed(text, file, line);
    harness_fail(file, line, text);
}

__attribute__((noreturn, cold)) static inline void play_differs(const char *text, long long left,
                                                                long long right, const char *file,
                                                                int line)
{
    static char sentence[200];
    (void)snprintf(sentence, sizeof sentence, "%s: %lld, %lld", text, left, right);
    play_failed(sentence, file, line);
}

/* A scene, and how it is run. */
struct play {
    janus_entry                   *entry;
    bool                           panics;    /* its tasks panic on purpose */
    bool                           timed;     /* it needs the simulated clock */
    uint64_t                       schedules; /* 0: PLAY_SCHEDULES */
    const janus_scheduler_options *scheduler; /* NULL: the defaults */
};

/* Runs a scene under many schedules, then for real on two workers: PLAY(scene, .panics = true). */
#define PLAY(...) play_all(&(struct play){.entry = __VA_ARGS__})

static inline void play_schedules(const struct play *play, janus_strategy strategy)
{
    janus_scheduler_options scheduler = {.struct_bytes = sizeof scheduler};
    janus_explore_result    result = JANUS_EXPLORE_RESULT();
    const char             *more = getenv("SCHEDULES");
    uint64_t                schedules =
        play->schedules != 0 && !JRT_ASAN && !JRT_DEBUG ? play->schedules : PLAY_SCHEDULES;
    if (play->scheduler != NULL) scheduler = *play->scheduler;
    scheduler.quiet_panics = true;
    play_explored = true;
    janus_status status = janus_explore(
        JANUS_EXPLORE_OPTIONS(.strategy = strategy, .worker_count = 2, .stale_allowed = true,
                              .schedules = more != NULL ? strtoull(more, NULL, 0) : schedules,
                              .panics_allowed = play->panics, .max_steps = 500000,
                              .max_time_ns = 40000 * JANUS_SECONDS, .scheduler = &scheduler,
                              .quiet = true),
        play->entry, NULL, &result);
    play_explored = false;
    if (status == JANUS_OK) return;
    printf("# JANUSRT_REPLAY='%s'\n", result.replay != NULL ? result.replay : "");
    (void)fflush(stdout);
    harness_fail(__FILE__, __LINE__,
                 result.failing != JANUS_FAILING_NOT ? result.message : janus_status_name(status));
}

static inline void play_for_real(const struct play *play)
{
    janus_scheduler_options scheduler = {.struct_bytes = sizeof scheduler};
    janus_run_result        run = JANUS_RUN_RESULT();
    if (play->scheduler != NULL) scheduler = *play->scheduler;
    scheduler.worker_count = 2;
    scheduler.quiet_panics = true;
    janus_status status = janus_run_with(&scheduler, play->entry, NULL, &run);
    if (status == JANUS_OK) return;
    if (run.deadlock) printf("# %s\n", run.deadlock_text);
    (void)fflush(stdout);
    harness_fail(__FILE__, __LINE__, run.failures > 0 ? run.first.text : janus_status_name(status));
}

/* Exploring uses one thread: ThreadSanitizer would find nothing, and be slow. */
static inline void play_all(const struct play *play)
{
    if (!JRT_TSAN) {
        play_schedules(play, JANUS_STRATEGY_RANDOM);
        play_schedules(play, JANUS_STRATEGY_PCT);
    }
    for (int i = 0; i < PLAY_ROUNDS && !play->timed; i++) play_for_real(play);
}

/* Players. */

struct self;
struct line;

typedef int64_t play_act(struct self *self, janus_letter *letter, const struct line *line);

/* A message: what the player is to do. */
struct line {
    play_act *act;
    void     *argument;
    int64_t   number;
};

/* What one player is over all its incarnations: the argument of its init. */
struct role {
    int64_t   (*start)(struct self *self);                        /* NULL: nothing to do */
    int64_t   (*notice)(struct self *self, janus_letter *letter); /* NULL: it logs the tag */
    void      (*end)(struct self *self, const janus_end *end);    /* NULL: nothing to do */
    void     *stage;                                              /* whatever the scene shares */
    int       starts, ends;
    janus_end last; /* as terminate got it */
    int64_t   log[PLAY_LOG];
    int       logged;
};

/* The state of one incarnation. */
struct self {
    struct role *role;
    int64_t      sum;
    int64_t      words[4];
};

static inline void note(struct self *self, int64_t number)
{
    MUST(self->role->logged < PLAY_LOG);
    self->role->log[self->role->logged++] = number;
}

static inline int64_t player_init(void *state, void *argument)
{
    struct self *self = state;
    MUST(argument != NULL);
    MUST(self->role == NULL && self->sum == 0 && self->words[0] == 0); /* it was zeroed */
    self->role = argument;
    self->role->starts++;
    return self->role->start != NULL ? self->role->start(self) : JANUS_ACTOR_GO_ON;
}

static inline int64_t player_handle(void *state, janus_letter *letter)
{
    struct self *self = state;
    if (letter->kind == JANUS_LETTER_KIND_MESSAGE) {
        const struct line *line = letter->message;
        return line->act(self, letter, line);
    }
    MUST(letter->message == NULL);
    if (self->role->notice != NULL) return self->role->notice(self, letter);
    note(self, (int64_t)letter->tag);
    return JANUS_ACTOR_GO_ON;
}

static inline void player_terminate(void *state, const janus_end *end)
{
    struct self *self = state;
    self->role->ends++;
    self->role->last = *end;
    if (self->role->end != NULL) self->role->end(self, end);
}

static inline size_t player_describe(const void *state, char *buffer, size_t size)
{
    const struct self *self = state;
    return (size_t)snprintf(buffer, size, "sum %lld", (long long)self->sum);
}

static const janus_behaviour player = {.struct_bytes = sizeof player,
                                       .name = "player",
                                       .state_bytes = sizeof(struct self),
                                       .message_bytes = sizeof(struct line),
                                       .reply_bytes = sizeof(int64_t),
                                       .init = player_init,
                                       .handle = player_handle,
                                       .terminate = player_terminate,
                                       .describe = player_describe};

/* Acts. */

static inline void answer(janus_letter *letter, int64_t number)
{
    if (janus_letter_is_call(letter)) JANUS_IGNORE(janus_reply(letter, &number));
}

/* Adds the number, and answers with the sum. */
static inline int64_t act_add(struct self *self, janus_letter *letter, const struct line *line)
{
    self->sum += line->number;
    answer(letter, self->sum);
    return JANUS_ACTOR_GO_ON;
}

/* Logs the number, and answers with it. */
static inline int64_t act_note(struct self *self, janus_letter *letter, const struct line *line)
{
    note(self, line->number);
    answer(letter, line->number);
    return JANUS_ACTOR_GO_ON;
}

/* Returns the number: a failure, or what the header allows. */
static inline int64_t act_return(struct self *self, janus_letter *letter, const struct line *line)
{
    (void)self, (void)letter;
    return line->number;
}

static inline int64_t act_panic(struct self *self, janus_letter *letter, const struct line *line)
{
    (void)self, (void)letter, (void)line;
    janus_panic("as the message said");
}

/* Waits for the event `argument`, then logs the number and answers. */
static inline int64_t act_wait(struct self *self, janus_letter *letter, const struct line *line)
{
    janus_status status = janus_event_wait(line->argument);
    if (status != JANUS_OK) return status;
    return act_note(self, letter, line);
}

/* Sets the event `argument`. */
static inline int64_t act_set(struct self *self, janus_letter *letter, const struct line *line)
{
    (void)self, (void)letter;
    janus_event_set(line->argument);
    return JANUS_ACTOR_GO_ON;
}

/* A handler that stops in the middle: it sets `inside`, then waits for `open`. */
struct gate {
    janus_event inside, open;
};

static inline void gate_init(struct gate *gate)
{
    janus_event_init(&gate->inside, JANUS_WAKER_TASKS, "inside");
    janus_event_init(&gate->open, JANUS_WAKER_TASKS, "open");
}

static inline int64_t act_gate(struct self *self, janus_letter *letter, const struct line *line)
{
    struct gate *gate = line->argument;
    janus_event_set(&gate->inside);
    janus_status status = janus_event_wait(&gate->open);
    if (status != JANUS_OK) return status;
    return act_note(self, letter, line);
}

/* Talking to players. */

/* A deadline that no scene reaches. */
static inline uint64_t play_late(void) { return janus_now_ns() + 36000 * JANUS_SECONDS; }

static inline janus_status say(janus_actor actor, play_act *act, void *argument, int64_t number)
{
    return janus_cast(actor, &(struct line){act, argument, number});
}

static inline janus_status try_say(janus_actor actor, play_act *act, void *argument, int64_t number)
{
    return janus_try_cast(actor, &(struct line){act, argument, number});
}

static inline void tell(janus_actor actor, play_act *act, void *argument, int64_t number)
{
    MUST_EQ(say(actor, act, argument, number), JANUS_OK);
}

static inline janus_status request(janus_actor actor, play_act *act, void *argument, int64_t number,
                                   int64_t *reply)
{
    return janus_call(actor, &(struct line){act, argument, number}, reply, play_late());
}

/* Returns when the actor has handled all that this task sent before; gives its sum. */
static inline int64_t settle(janus_actor actor)
{
    int64_t sum = -1;
    MUST_EQ(request(actor, act_add, NULL, 0, &sum), JANUS_OK);
    return sum;
}

static inline janus_actor_info look(janus_actor actor)
{
    janus_actor_info info = JANUS_ACTOR_INFO();
    MUST_EQ(janus_actor_inspect(actor, &info), JANUS_OK);
    MUST_EQ(info.sent, info.handled + info.returned + info.dead + info.messages);
    return info;
}

/* Waits for the final end, and learns of it if the place is not gone yet. Else the kind is NEVER:
 * one test of actor_watch_test.c says what must hold then. */
static inline janus_end await_end(janus_actor actor)
{
    janus_end    end = {.kind = JANUS_END_KIND_NEVER};
    janus_status status = janus_actor_await(actor, &end, play_late());
    MUST(status == JANUS_OK || status == JANUS_STALE);
    if (status == JANUS_OK) MUST(end.final);
    return end;
}

/* Waits for the final end, which must be of this kind. */
static inline void await_kind(janus_actor actor, janus_end_kind kind)
{
    janus_end end = await_end(actor);
    if (end.kind != JANUS_END_KIND_NEVER) MUST_EQ(end.kind, kind);
}

/* Waits inside a gate's act, without a sleep. */
static inline void await_inside(struct gate *gate)
{
    MUST_EQ(janus_event_wait(&gate->inside), JANUS_OK);
}

/* Checks the log of a player. */
static inline void check_log(const struct role *role, const int64_t *wanted, int count)
{
    MUST_EQ(role->logged, count);
    for (int i = 0; i < count; i++) MUST_EQ(role->log[i], wanted[i]);
}

#define LOGGED(role, ...)                                                                          \
    check_log(role, (const int64_t[]){__VA_ARGS__},                                                \
              (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

/* Stages. */

/* A supervisor that allows a thousand restarts. */
static inline janus_supervisor *open_stage(void)
{
    janus_supervisor *stage = NULL;
    MUST_EQ(janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.name = "stage", .max_restarts = 1000),
                                  &stage),
            JANUS_OK);
    return stage;
}

static inline janus_actor add_child(janus_supervisor *stage, const janus_child *child)
{
    janus_actor actor = {{0, 0}};
    MUST_EQ(janus_supervisor_add(stage, child, &actor), JANUS_OK);
    return actor;
}

/* Adds a player: ADD(stage, .argument = &role, .restart = JANUS_RESTART_TEMPORARY). */
#define ADD(stage, ...) add_child(stage, JANUS_CHILD(.behaviour = &player, __VA_ARGS__))

/* Ends the stage, which must succeed. Every message was handled, returned or is dead. */
static inline janus_supervisor_result close_stage(janus_supervisor *stage)
{
    janus_supervisor_result result = JANUS_SUPERVISOR_RESULT();
    MUST_EQ(janus_supervisor_end(stage, &result), JANUS_OK);
    MUST_EQ(result.sent, result.handled + result.returned + result.dead);
    return result;
}

#endif
