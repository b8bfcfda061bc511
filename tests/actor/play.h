/* SPDX-License-Identifier: MIT */
/*
 * What tests of actors and supervisors share. PLAY runs a scene under many schedules and for real.
 * A scene is the entry of a task: it makes all that it needs, and checks with MUST. The actors are
 * players, which do what their messages say. Every stage closes with balanced books.
 *
 *     static int64_t scene(void *argument)
 *     {
 *         struct play       play;
 *         struct role       anna = {.play = &play, .name = 'a'};
 *         janus_supervisor *supervisor = play_open(&play, NULL);
 *         janus_actor       actor = add_child(supervisor, CHILD(&anna, .id = "a"));
 *         crash(actor);
 *         MUST_EQ(settle(actor), 0);                    // it is new
 *         play_end(&play, supervisor, JANUS_OK);
 *         MUST_LOG(&play, "+afa+a-a");
 *         return 0;
 *     }
 *
 * A player with a name logs what happens to it, two letters for each event:
 *
 *     +a  its init succeeded           na, sa, fa, ca  its terminate ran: NORMAL, STOPPED, FAILED,
 *     !a  its init did not             CANCELLED. MUST_LOG takes - for n and s
 *
 * More schedules: SCHEDULES=100000 build/gcc-release/tests/actor/actor_mail_test. JANUSRT_REPLAY
 * plays the schedule that failed.
 */
#ifndef JANUSRT_TESTS_ACTOR_PLAY_H
#define JANUSRT_TESTS_ACTOR_PLAY_H

#include "scene.h"

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
    int64_t (*start)(struct self *self);                        /* NULL: nothing to do */
    int64_t (*notice)(struct self *self, janus_letter *letter); /* NULL: it logs the tag */
    void    (*end)(struct self *self, const janus_end *end);    /* NULL: nothing to do */
    void   *stage;                                              /* whatever the scene shares */

    /* It logs its starts and ends there, under its name. NULL: it does not. */
    struct play *play;
    char         name;
    const char  *inits;  /* what each init does, the last letter again and again. NULL: "o" */
    uint64_t     end_ns; /* how long terminate takes */
    int64_t      number; /* act_number replies it */

    atomic_int  starts; /* of init */
    int         ends;
    janus_end   last; /* as terminate got it */
    janus_actor self; /* of the latest init that succeeded */
    int64_t     log[PLAY_LOG];
    int         logged;
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

/* An init as one letter of `inits` says. */
static inline int64_t init_as(struct role *role, char does, int start)
{
    if (does != 'o' && role->play != NULL) play_say(role->play, '!', role->name);
    if (does == 'i') return JANUS_ACTOR_IGNORE;
    if (does == 'f') return -100 - start;
    if (does == 'p') janus_panic("in init");
    if (does == 'h') { /* it hangs, then fails */
        JANUS_IGNORE(janus_sleep(AN_HOUR));
        return -99;
    }
    MUST_EQ(janus_actor_current(&role->self), JANUS_OK);
    if (role->play != NULL) play_say(role->play, '+', role->name);
    return JANUS_ACTOR_GO_ON;
}

static inline int64_t player_init(void *state, void *argument)
{
    struct self *self = state;
    struct role *role = argument;
    MUST(argument != NULL);
    MUST(self->role == NULL && self->sum == 0 && self->words[0] == 0); /* it was zeroed */
    self->role = role;
    int         start = atomic_fetch_add(&role->starts, 1);
    const char *inits = role->inits != NULL ? role->inits : "o";
    size_t      last = strlen(inits) - 1;
    int64_t     result = init_as(role, inits[(size_t)start < last ? (size_t)start : last], start);
    return result == JANUS_ACTOR_GO_ON && role->start != NULL ? role->start(self) : result;
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
    if (self->role->play == NULL) note(self, (int64_t)letter->tag);
    return JANUS_ACTOR_GO_ON;
}

static inline void player_terminate(void *state, const janus_end *end)
{
    static const char letters[] = "nsfpoec?";
    struct self      *self = state;
    struct role      *role = self->role;
    role->ends++;
    role->last = *end;
    if (role->end != NULL) role->end(self, end);
    if (role->end_ns > 0) MUST_EQ(janus_sleep(role->end_ns), JANUS_OK);
    if (role->play != NULL) play_say(role->play, letters[end->kind], role->name);
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

/* Ends it, normally. */
static inline int64_t act_end(struct self *self, janus_letter *letter, const struct line *line)
{
    (void)self, (void)letter, (void)line;
    return JANUS_ACTOR_STOP;
}

/* Answers with the number of the role. */
static inline int64_t act_number(struct self *self, janus_letter *letter, const struct line *line)
{
    (void)line;
    answer(letter, self->role->number);
    return JANUS_ACTOR_GO_ON;
}

/* Sleeps for an hour. When that is cancelled, does the act in `argument` with the number. */
static inline int64_t act_sleep(struct self *self, janus_letter *letter, const struct line *line)
{
    play_say(self->role->play, 'z', self->role->name);
    JANUS_IGNORE(janus_sleep(AN_HOUR));
    return ((play_act *)(uintptr_t)line->argument)(self, letter, line);
}

/* After a sleep: obeys. */
static inline int64_t act_obey(struct self *self, janus_letter *letter, const struct line *line)
{
    (void)self, (void)letter, (void)line;
    return JANUS_CANCELLED;
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
struct door {
    janus_event inside, open;
};

static inline void door_init(struct door *gate)
{
    janus_event_init(&gate->inside, JANUS_WAKER_TASKS, "inside");
    janus_event_init(&gate->open, JANUS_WAKER_TASKS, "open");
}

static inline int64_t act_door(struct self *self, janus_letter *letter, const struct line *line)
{
    struct door *gate = line->argument;
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
static inline void await_inside(struct door *gate)
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

/* Its sum is one more when this returns. */
static inline void count_up(janus_actor actor)
{
    MUST_EQ(request(actor, act_add, NULL, 1, NULL), JANUS_OK);
}

/* Lets an actor fail that is started again. */
static inline void crash(janus_actor actor)
{
    MUST_EQ(request(actor, act_return, NULL, -100, NULL), JANUS_RESTARTED);
}

/* Lets an actor sleep in its handler. When it is cancelled, it does `then`. */
static inline void lull(struct play *play, const struct role *role, janus_actor actor,
                        play_act *then)
{
    const char event[2] = {'z', role->name};
    tell(actor, act_sleep, (void *)(uintptr_t)then, -100);
    play_await(play, event, 1);
}

static inline janus_supervisor_info look_in(janus_supervisor *supervisor)
{
    janus_supervisor_info info = JANUS_SUPERVISOR_INFO();
    MUST_EQ(janus_supervisor_inspect(supervisor, &info), JANUS_OK);
    return info;
}

/* Yields until the place is in that state. */
static inline void until_state(janus_actor actor, janus_actor_state state)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    while (look(actor).state != state) {
        MUST(janus_now_ns() < limit);
        MUST_EQ(janus_yield(), JANUS_OK);
    }
}

/* The child with this id. */
static inline janus_actor find(janus_supervisor *supervisor, const char *id)
{
    janus_actor actor = {{0}};
    MUST_EQ(janus_supervisor_find_child(supervisor, id, &actor), JANUS_OK);
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

/* The specification of a player. */
#define CHILD(role, ...) JANUS_CHILD(.behaviour = &player, .argument = (role), __VA_ARGS__)

/* A stage with one player, whose handler may be kept at a gate. */
struct solo {
    struct role       role;
    struct door       gate;
    janus_supervisor *stage;
    janus_actor       actor;
};

static inline void open_solo_of(struct solo *solo, janus_child *child)
{
    child->behaviour = &player;
    child->argument = &solo->role;
    door_init(&solo->gate);
    solo->stage = open_stage();
    solo->actor = add_child(solo->stage, child);
}

/* Opens it: OPEN_SOLO(&solo, .restart = JANUS_RESTART_TEMPORARY). The role is the scene's. */
#define OPEN_SOLO(solo, ...)                                                                       \
    open_solo_of(solo, &(janus_child){.struct_bytes = sizeof(janus_child), __VA_ARGS__})

/* Keeps the player in a handler, which logs `number` when the gate opens. */
static inline void keep_busy(struct solo *solo, int64_t number)
{
    tell(solo->actor, act_door, &solo->gate, number);
    await_inside(&solo->gate);
}

static inline void let_go(struct solo *solo) { janus_event_set(&solo->gate.open); }

/* Ends the stage, which must succeed. Every message was handled, returned or is dead. */
static inline janus_supervisor_result close_stage(janus_supervisor *stage)
{
    janus_supervisor_result result = JANUS_SUPERVISOR_RESULT();
    MUST_EQ(janus_supervisor_end(stage, &result), JANUS_OK);
    MUST_EQ(result.sent, result.handled + result.returned + result.dead);
    return result;
}

#endif
