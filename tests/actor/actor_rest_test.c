/* SPDX-License-Identifier: MIT */
/* Actors at rest, long mailboxes, and senders that are threads or callbacks. G13, G15, A11.16. */
#include "play.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* At rest. */

enum { MANY = JRT_TSAN || JRT_ASAN ? 300 : 3000, SPARE = 128 };

static size_t stacks_used(void)
{
    janus_scheduler_stacks_info info = JANUS_SCHEDULER_STACKS_INFO();
    MUST_EQ(janus_scheduler_stacks_inspect(janus_scheduler_current(), &info), JANUS_OK);
    return info.stacks_used;
}

static int64_t act_yield(struct self *self, janus_letter *letter, const struct line *line)
{
    for (int i = 0; i < 3; i++) MUST_EQ(janus_yield(), JANUS_OK);
    return act_add(self, letter, line);
}

static struct role many_roles[MANY];
static janus_actor many[MANY];

static int64_t scene_rest(void *argument)
{
    janus_supervisor *stage = open_stage();
    size_t            before = stacks_used();
    (void)argument;
    memset(many_roles, 0, sizeof many_roles);
    for (int i = 0; i < MANY; i++) many[i] = ADD(stage, .argument = &many_roles[i]);
    MUST(stacks_used() <= before + SPARE); /* workers keep some at hand */
    for (int i = 0; i < MANY; i++) tell(many[i], act_yield, NULL, i); /* now they need one */
    for (int i = 0; i < MANY; i++) MUST_EQ(settle(many[i]), i);
    MUST(stacks_used() <= before + SPARE);
    for (int i = 0; i < MANY; i++) MUST_EQ(settle(many[i]), i); /* and they answer on */
    janus_supervisor_result result = close_stage(stage);
    MUST_EQ(result.sent, 3 * MANY);
    MUST_EQ(result.handled, result.sent);
    for (int i = 0; i < MANY; i++) MUST_EQ(many_roles[i].ends, 1);
    return 0;
}

TEST("thousands of actors at rest have no stack, and answer afterwards")
{
    /* The task pays for the records of its actors. */
    const janus_budget             rich = {100000, UINT64_C(1) << 30, 100, 1000, 100};
    const janus_scheduler_options *scheduler =
        JANUS_SCHEDULER_OPTIONS(.max_tasks = JANUS_UNLIMITED, .task_budget = &rich,
                                .max_budget = &rich);
    play_for_real(&(struct performance){.entry = scene_rest, .scheduler = scheduler});
}

/* Dumps. */

static int64_t scene_dump(void *argument)
{
    static struct role roles[20];
    char               text[8192];
    janus_supervisor  *stage = open_stage();
    (void)argument;
    memset(roles, 0, sizeof roles);
    for (int i = 0; i < 20; i++) (void)ADD(stage, .argument = &roles[i]);
    int ends[2];
    MUST_EQ(pipe(ends), 0);
    MUST_EQ(janus_scheduler_dump(janus_scheduler_current(), ends[1]), JANUS_OK);
    ssize_t bytes = read(ends[0], text, sizeof text - 1);
    MUST(bytes > 0);
    text[bytes] = '\0';
    MUST(strstr(text, "letters, without a stack") != NULL);
    MUST(strstr(text, "more like it") != NULL);
    int lines = 0;
    for (const char *at = text; (at = strstr(at, "letters,")) != NULL; at++) lines++;
    MUST(lines <= 20 / 2); /* runs of actors at rest are folded */
    (void)close(ends[0]);
    (void)close(ends[1]);
    close_stage(stage);
    return 0;
}

TEST("a dump shows the first actors at rest, and counts those whose lines would be the same")
{
    play_for_real(&(struct performance){.entry = scene_dump});
}

/* A long mailbox. */

enum { LONG = JRT_TSAN || JRT_ASAN ? 20000 : 500000, CALLS = 1000 };

static int64_t act_call_often(struct self *self, janus_letter *letter, const struct line *line)
{
    janus_actor *other = self->role->stage;
    struct door *gate = line->argument;
    (void)letter;
    janus_event_set(&gate->inside);
    MUST_EQ(janus_event_wait(&gate->open), JANUS_OK);
    for (int64_t i = 1, sum = 0; i <= CALLS; i++) {
        MUST_EQ(request(*other, act_add, NULL, 1, &sum), JANUS_OK);
        MUST_EQ(sum, i);
    }
    note(self, 1);
    return JANUS_ACTOR_GO_ON;
}

static int64_t scene_long_mailbox(void *argument)
{
    struct role       role = {0}, serving = {0};
    struct door       gate;
    janus_supervisor *stage = open_stage();
    janus_actor       other = ADD(stage, .argument = &serving);
    (void)argument;
    door_init(&gate);
    role.stage = &other;
    janus_actor actor =
        ADD(stage, .argument = &role, .options = JANUS_ACTOR_OPTIONS(.max_messages = LONG));
    tell(actor, act_call_often, &gate, 0);
    await_inside(&gate);
    for (int i = 0; i < LONG; i++) MUST_EQ(try_say(actor, act_add, NULL, 1), JANUS_OK);
    MUST_EQ(try_say(actor, act_add, NULL, 1), JANUS_WOULD_WAIT);
    MUST_EQ(look(actor).messages, LONG);
    janus_event_set(&gate.open);
    MUST_EQ(settle(actor), LONG);
    LOGGED(&role, 1);
    close_stage(stage);
    return 0;
}

TEST("an actor with half a million messages waiting calls another one")
{
    /* The task pays for a mailbox that large. */
    const janus_budget             rich = {100000, UINT64_C(1) << 30, 100, 1000, 100};
    const janus_scheduler_options *scheduler =
        JANUS_SCHEDULER_OPTIONS(.task_budget = &rich, .max_budget = &rich);
    play_for_real(&(struct performance){.entry = scene_long_mailbox, .scheduler = scheduler});
}

/* Plain threads. */

struct outside {
    janus_actor actor, full;
    struct door gate;
    atomic_int  ready, done;
    janus_event over;
};

static int64_t live_inside(void *argument)
{
    struct outside   *outside = argument;
    struct role       role = {0}, other = {0};
    janus_supervisor *stage = open_stage();
    outside->actor = ADD(stage, .argument = &role, .restart = JANUS_RESTART_TEMPORARY);
    outside->full =
        ADD(stage, .argument = &other, .options = JANUS_ACTOR_OPTIONS(.max_messages = 1));
    tell(outside->full, act_door, &outside->gate, 0);
    await_inside(&outside->gate);
    tell(outside->full, act_note, NULL, 1);
    atomic_store(&outside->ready, 1);
    MUST_EQ(janus_event_wait(&outside->over), JANUS_OK);
    janus_event_set(&outside->gate.open);
    close_stage(stage);
    return 0;
}

static void *speak(void *argument)
{
    struct outside *outside = argument;
    int64_t         sum = 0;
    janus_end       end;
    while (!atomic_load(&outside->ready)) (void)janus_now_ns();
    for (int i = 0; i < 100; i++) {
        janus_status sent = say(outside->actor, act_add, NULL, 1);
        if (sent == JANUS_FULL) i--; /* a thread does not wait */
        CHECK(sent == JANUS_OK || sent == JANUS_FULL);
    }
    janus_status asked;
    do { /* the call blocks, but not for room */
        asked = request(outside->actor, act_add, NULL, 1, &sum);
    } while (asked == JANUS_FULL);
    CHECK_EQ(asked, JANUS_OK);
    CHECK_EQ(sum, 101);
    CHECK_EQ(say(outside->full, act_note, NULL, 1), JANUS_FULL);
    CHECK_EQ(try_say(outside->full, act_note, NULL, 1), JANUS_WOULD_WAIT);
    CHECK_EQ(janus_actor_stop(outside->actor, JANUS_STOP_HOW_AFTER_THIS, 0), JANUS_OK);
    janus_status status = janus_actor_await(outside->actor, &end, play_late());
    CHECK(status == JANUS_OK || status == JANUS_STALE); /* as await_end */
    if (status == JANUS_OK) CHECK_EQ(end.kind, JANUS_END_KIND_STOPPED);
    CHECK_EQ(say(outside->actor, act_add, NULL, 1), JANUS_STALE);
    janus_event_set(&outside->over);
    return NULL;
}

TEST("a plain thread casts without waiting, calls, awaits and stops")
{
    RIG_REAL("a thread races with a clock that jumps to the next deadline");
    for (int i = 0; i < PLAY_ROUNDS; i++) {
        static struct outside outside;
        pthread_t             thread;
        memset(&outside, 0, sizeof outside);
        door_init(&outside.gate);
        janus_event_init(&outside.over, JANUS_WAKER_ANYBODY, "over");
        CHECK_EQ(pthread_create(&thread, NULL, speak, &outside), 0);
        CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 2), live_inside, &outside, NULL),
                 JANUS_OK);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
}

/* A right to answer that a plain thread has. */

struct abroad {
    janus_kept_reply kept[2];
    atomic_int       count;
};

static int64_t act_keep(struct self *self, janus_letter *letter, const struct line *line)
{
    struct abroad *abroad = line->argument;
    (void)self;
    MUST_EQ(janus_reply_keep(letter, &abroad->kept[atomic_load(&abroad->count)]), JANUS_OK);
    atomic_fetch_add(&abroad->count, 1);
    return JANUS_ACTOR_GO_ON;
}

static int64_t call_abroad(void *argument)
{
    struct role       role = {0};
    struct line       line = {act_keep, argument, 0};
    int64_t           reply = 0;
    janus_status      status;
    janus_supervisor *stage = open_stage();
    janus_actor       actor =
        ADD(stage, .argument = &role, .options = JANUS_ACTOR_OPTIONS(.outside = true));
    MUST_EQ(janus_call(actor, &line, &reply, 0), JANUS_OK);
    MUST_EQ(reply, 7);
    MUST_EQ(janus_call_all(&actor, 1, &line, &reply, sizeof reply, &status, 0), JANUS_OK);
    MUST_EQ(status, JANUS_OK);
    MUST_EQ(reply, 8);
    close_stage(stage);
    return 0;
}

static void *answer_from_abroad(void *argument)
{
    struct abroad *abroad = argument;
    for (int i = 0; i < 2; i++) {
        while (atomic_load(&abroad->count) <= i) (void)janus_now_ns();
        for (int k = 0; k < 1000000; k++) (void)janus_now_ns(); /* meanwhile every task waits */
        CHECK_EQ(janus_reply_to(abroad->kept[i], &(int64_t){7 + i}), JANUS_OK);
    }
    return NULL;
}

TEST("a plain thread answers calls that were kept, and to wait for it is no deadlock")
{
    static struct abroad abroad;
    pthread_t            thread;
    memset(&abroad, 0, sizeof abroad);
    CHECK_EQ(pthread_create(&thread, NULL, answer_from_abroad, &abroad), 0);
    CHECK_EQ(janus_run(NULL, call_abroad, &abroad, NULL), JANUS_OK);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* Two schedulers: the actor is in one, and its callers in others, which end at once. */

enum { RUNS = 100 };

struct abroad_run {
    janus_actor actor;
    atomic_bool ready, answered;
    janus_event over;
};

static int64_t serve_abroad(void *argument)
{
    struct abroad_run *run = argument;
    struct role        role = {0};
    janus_supervisor  *stage = open_stage();
    run->actor = ADD(stage, .argument = &role);
    atomic_store(&run->ready, true);
    MUST_EQ(janus_event_wait(&run->over), JANUS_OK);
    close_stage(stage);
    return 0;
}

static void *run_server(void *argument)
{
    CHECK_EQ(janus_run(NULL, serve_abroad, argument, NULL), JANUS_OK);
    return NULL;
}

/* Keeps a worker awake, so that it finds the caller as soon as it can run. */
static int64_t stay_awake(void *argument)
{
    const struct abroad_run *run = argument;
    while (!atomic_load(&run->answered)) JANUS_IGNORE(janus_sleep(1));
    return 0;
}

static int64_t call_and_end(void *argument)
{
    struct abroad_run *run = argument;
    janus_status       ended;
    JANUS_NURSERY(n, ended)
    {
        MUST_EQ(janus_spawn(n, stay_awake, run), JANUS_OK);
        MUST_EQ(janus_call(run->actor, &(struct line){act_add, NULL, 1}, NULL, 0), JANUS_OK);
        atomic_store(&run->answered, true);
    }
    MUST_EQ(ended, JANUS_OK);
    return 0;
}

TEST("an actor answers tasks of other schedulers, which end at once")
{
    static struct abroad_run run;
    pthread_t                thread;
    memset(&run, 0, sizeof run);
    janus_event_init(&run.over, JANUS_WAKER_ANYBODY, "over");
    CHECK_EQ(pthread_create(&thread, NULL, run_server, &run), 0);
    while (!atomic_load(&run.ready)) (void)janus_now_ns();
    for (int i = 0; i < RUNS; i++) {
        atomic_store(&run.answered, false);
        CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 2), call_and_end, &run, NULL),
                 JANUS_OK);
    }
    janus_event_set(&run.over);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* Callbacks. */

struct listener {
    janus_actor  full;
    janus_status call, cast, await;
    int          calls;
};

static janus_decision on_end(void *argument, const janus_child_event *event, uint64_t *delay_ns)
{
    struct listener *listener = argument;
    (void)event, (void)delay_ns;
    if (listener->calls++ > 0) return JANUS_DECISION_DEFAULT;
    listener->call = request(listener->full, act_add, NULL, 0, NULL);
    listener->cast = say(listener->full, act_note, NULL, 1);
    listener->await = janus_actor_await(listener->full, NULL, play_late());
    return JANUS_DECISION_DEFAULT;
}

static int64_t scene_callback(void *argument)
{
    struct listener   listener = {.calls = 0};
    struct role       role = {0}, other = {0};
    struct door       gate;
    janus_supervisor *stage = NULL;
    (void)argument;
    door_init(&gate);
    MUST_EQ(janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.max_restarts = 100, .on_end = on_end,
                                                           .on_end_argument = &listener),
                                  &stage),
            JANUS_OK);
    listener.full =
        ADD(stage, .argument = &role, .options = JANUS_ACTOR_OPTIONS(.max_messages = 1));
    janus_actor dying = ADD(stage, .argument = &other, .restart = JANUS_RESTART_TEMPORARY);
    tell(listener.full, act_door, &gate, 0);
    await_inside(&gate);
    tell(listener.full, act_note, NULL, 1);
    tell(dying, act_return, NULL, -100);
    (void)await_end(dying);
    janus_event_set(&gate.open);
    close_stage(stage);
    MUST(listener.calls >= 1);
    MUST_EQ(listener.call, JANUS_STATE);
    MUST_EQ(listener.cast, JANUS_FULL);
    MUST_EQ(listener.await, JANUS_STATE);
    LOGGED(&role, 0, 1);
    return 0;
}

TEST("a callback casts without waiting, and cannot call or await") { PLAY(scene_callback); }

/* Types. */

struct add {
    int64_t amount;
};

JANUS_ACTOR_TYPE(counter, struct add, int64_t);

static int64_t count(void *state, janus_letter *letter)
{
    int64_t          *sum = state;
    const struct add *add = letter->message;
    if (add == NULL) return JANUS_ACTOR_GO_ON;
    *sum += add->amount;
    if (janus_letter_is_call(letter)) MUST_EQ(janus_reply(letter, sum), JANUS_OK);
    return JANUS_ACTOR_GO_ON;
}

static const janus_behaviour counter = {.struct_bytes = sizeof counter,
                                        .name = "counter",
                                        .state_bytes = sizeof(int64_t),
                                        .message_bytes = sizeof(struct add),
                                        .reply_bytes = sizeof(int64_t),
                                        .handle = count};

static const janus_behaviour mute = {.struct_bytes = sizeof mute,
                                     .message_bytes = sizeof(struct add),
                                     .state_bytes = sizeof(int64_t),
                                     .handle = count};

static int64_t scene_types(void *argument)
{
    counter_actor     actor;
    int64_t           sum = 0;
    janus_supervisor *stage = open_stage();
    (void)argument;
    actor.actor = add_child(stage, JANUS_CHILD(.behaviour = &counter));
    MUST_EQ(counter_cast(actor, &(struct add){1}), JANUS_OK);
    MUST_EQ(counter_try_cast(actor, &(struct add){2}), JANUS_OK);
    MUST_EQ(counter_call(actor, &(struct add){3}, &sum, play_late()), JANUS_OK);
    MUST_EQ(sum, 6);
    janus_actor silent = add_child(stage, JANUS_CHILD(.behaviour = &mute));
    MUST_EQ(janus_cast(silent, &(struct add){1}), JANUS_OK);
    MUST_EQ(janus_call(silent, &(struct add){1}, NULL, play_late()), JANUS_STATE);
    close_stage(stage);
    return 0;
}

TEST("typed actors cast and call, and a behaviour without replies answers no calls")
{
    PLAY(scene_types);
}

TEST("each end and each state has its word")
{
    static const char *const ends[] = {"normal",     "stopped",   "failed",    "panicked",
                                       "overflowed", "exhausted", "cancelled", "never"};
    static const char *const states[] = {"empty",    "starting", "running", "delayed",
                                         "stopping", "stuck",    "gone"};
    for (int i = 0; i < 8; i++) CHECK_STR(janus_end_kind_name((janus_end_kind)i), ends[i]);
    for (int i = 0; i < 7; i++) CHECK_STR(janus_actor_state_name((janus_actor_state)i), states[i]);
    CHECK_STR(janus_end_kind_name((janus_end_kind)8), "?");
    CHECK_STR(janus_actor_state_name((janus_actor_state)-1), "?");
}
