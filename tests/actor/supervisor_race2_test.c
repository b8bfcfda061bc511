/* SPDX-License-Identifier: MIT */
/* Starts, ends and waits of supervisors and actors that cross each other. */
#include "play.h"

static int64_t go_on(void *state, janus_letter *letter)
{
    (void)state;
    (void)letter;
    return JANUS_ACTOR_GO_ON;
}

static int64_t answer_one(void *state, janus_letter *letter)
{
    int64_t reply = 1;
    (void)state;
    if (janus_letter_is_call(letter)) JANUS_IGNORE(janus_reply(letter, &reply));
    return JANUS_ACTOR_GO_ON;
}

/* A supervisor that gives up while it is started. */

static int64_t gives_up_at_once(void *argument)
{
    const janus_child              child = *JANUS_CHILD(.task = minus_seven);
    const janus_supervisor_options inner =
        *JANUS_SUPERVISOR_OPTIONS(.max_restarts = JANUS_NO_RESTARTS, .children = &child,
                                  .child_count = 1);
    janus_supervisor *supervisor;
    janus_actor       actor;
    (void)argument;
    MUST_EQ(janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.max_restarts = JANUS_NO_RESTARTS),
                                  &supervisor),
            JANUS_OK);
    if (janus_supervisor_add(supervisor, JANUS_CHILD(.supervisor = &inner, .id = "n"), &actor) ==
        JANUS_OK) {
        MUST_EQ(janus_supervisor_wait(supervisor, janus_now_ns() + play_while()), JANUS_OK);
    }
    JANUS_IGNORE(janus_supervisor_end(supervisor, NULL));
    return 0;
}

TEST("a supervisor learns that one below it gave up, however early") { RACE(gives_up_at_once); }

static int64_t init_slowly(void *state, void *argument)
{
    (void)state;
    (void)argument;
    JANUS_IGNORE(janus_sleep(3 * JANUS_SECONDS));
    return JANUS_ACTOR_GO_ON;
}

static void terminate_slowly(void *state, const janus_end *end)
{
    (void)state;
    (void)end;
    JANUS_IGNORE(janus_sleep(10 * JANUS_SECONDS));
}

static const janus_behaviour slow = {.struct_bytes = sizeof slow,
                                     .message_bytes = sizeof(int64_t),
                                     .init = init_slowly,
                                     .handle = go_on,
                                     .terminate = terminate_slowly};

static int64_t fails_before_its_brother_starts(void *argument)
{
    const janus_child children[] = {*JANUS_CHILD(.task = minus_seven),
                                    *JANUS_CHILD(.behaviour = &slow)};
    janus_supervisor *supervisor = NULL;
    (void)argument;
    MUST(janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.max_restarts = JANUS_NO_RESTARTS,
                                                        .children = children, .child_count = 2),
                               &supervisor) != JANUS_OK);
    return 0;
}

TEST("opening a supervisor fails when a child fails while the next one starts")
{
    RACE(fails_before_its_brother_starts);
}

static int64_t add_slow(void *argument)
{
    JANUS_IGNORE(janus_supervisor_add(
        argument, JANUS_CHILD(.behaviour = &slow, .id = "a", .stop_within_ns = JANUS_ANY_TIME),
        NULL));
    return 0;
}

static int64_t stopped_in_init(void *argument)
{
    janus_supervisor *supervisor;
    janus_nursery     nursery;
    (void)argument;
    MUST_EQ(janus_supervisor_open(NULL, &supervisor), JANUS_OK);
    MUST_EQ(janus_nursery_open(&nursery, NULL), JANUS_OK);
    MUST_EQ(janus_spawn(&nursery, add_slow, supervisor), JANUS_OK);
    MUST_EQ(janus_sleep(JANUS_SECONDS), JANUS_OK);
    MUST_EQ(janus_supervisor_stop_child(supervisor, find(supervisor, "a")), JANUS_OK);
    MUST_EQ(janus_nursery_end(&nursery, NULL), JANUS_OK);
    MUST_EQ(janus_supervisor_end(supervisor, NULL), JANUS_OK);
    return 0;
}

TEST("a child with any time to end can be stopped during its init") { RACE(stopped_in_init); }

static int64_t init_deaf(void *state, void *argument)
{
    (void)state;
    (void)argument;
    janus_shield_begin();
    JANUS_IGNORE(janus_sleep(100 * JANUS_SECONDS));
    janus_shield_end();
    return JANUS_ACTOR_GO_ON;
}

static const janus_behaviour deaf = {.struct_bytes = sizeof deaf,
                                     .message_bytes = sizeof(int64_t),
                                     .init = init_deaf,
                                     .handle = go_on};

static int64_t does_not_obey(void *argument)
{
    janus_supervisor *supervisor;
    uint64_t          begin;
    (void)argument;
    MUST_EQ(janus_supervisor_open(NULL, &supervisor), JANUS_OK);
    begin = janus_now_ns();
    MUST_EQ(janus_supervisor_add(supervisor,
                                 JANUS_CHILD(.behaviour = &deaf, .restart = JANUS_RESTART_TEMPORARY,
                                             .start_within_ns = 10 * JANUS_MS),
                                 NULL),
            JANUS_DEADLINE);
    MUST(janus_now_ns() - begin < 2 * JANUS_SECONDS);
    MUST_EQ(janus_supervisor_end(supervisor, NULL), JANUS_OK);
    return 0;
}

TEST("adding a child whose init does not obey returns DEADLINE within about a second")
{
    RACE(does_not_obey);
}

/* Waits for the end. */

static int64_t awaits_kept_place(void *argument)
{
    struct play       play;
    struct role       a = {.play = &play, .name = 'a'};
    janus_nursery     nursery;
    janus_end         end;
    janus_supervisor *supervisor = play_open(&play, NULL);
    struct watcher    watcher = {.actor = add_child(supervisor, CHILD(&a, .id = "a"))};
    (void)argument;
    MUST_EQ(janus_nursery_open(&nursery, NULL), JANUS_OK);
    MUST_EQ(janus_spawn(&nursery, watch_end, &watcher), JANUS_OK);
    MUST_EQ(janus_sleep(JANUS_SECONDS), JANUS_OK);
    MUST_EQ(janus_actor_stop(watcher.actor, JANUS_STOP_HOW_AFTER_THIS, 0), JANUS_OK);
    MUST_EQ(janus_actor_await(watcher.actor, &end, janus_now_ns() + play_while()), JANUS_OK);
    MUST_EQ(janus_nursery_end(&nursery, NULL), JANUS_OK);
    MUST_EQ(watcher.status, JANUS_OK);
    (void)play_end(&play, supervisor, JANUS_OK);
    return 0;
}

TEST("awaiting an actor returns when it was stopped, although its specification stays")
{
    RACE(awaits_kept_place);
}

static int64_t sleep_long(void *state, janus_letter *letter)
{
    (void)state;
    if (letter->message != NULL) JANUS_IGNORE(janus_sleep(1000 * AN_HOUR));
    return JANUS_ACTOR_GO_ON;
}

static const janus_behaviour sleeper = {
    .struct_bytes = sizeof sleeper, .message_bytes = sizeof(int64_t), .handle = sleep_long};

static int64_t ends_suspended(void *argument)
{
    janus_supervisor *supervisor;
    uint64_t          begin;
    (void)argument;
    MUST_EQ(janus_supervisor_open(NULL, &supervisor), JANUS_OK);
    janus_actor actor = add_child(supervisor, JANUS_CHILD(.behaviour = &sleeper));
    MUST_EQ(janus_actor_suspend(actor), JANUS_OK);
    MUST_EQ(janus_cast(actor, &(int64_t){0}), JANUS_OK);
    MUST_EQ(janus_sleep(JANUS_SECONDS), JANUS_OK);
    begin = janus_now_ns();
    JANUS_IGNORE(janus_supervisor_end(supervisor, NULL));
    MUST(janus_now_ns() - begin < 100 * JANUS_SECONDS);
    return 0;
}

TEST("a suspended actor with mail has no more time to end than any other") { RACE(ends_suspended); }

static int64_t end_with_sleeper(void *argument)
{
    struct play             play;
    struct role             a = {.play = &play, .name = 'a'};
    janus_supervisor_result result = JANUS_SUPERVISOR_RESULT();
    janus_supervisor       *supervisor = play_open(&play, NULL);
    janus_actor             actor = add_child(supervisor, CHILD(&a, .stop_within_ns = AN_HOUR));
    lull(&play, &a, actor, act_add);
    tell(actor, act_add, NULL, 1);
    *(janus_status *)argument = janus_supervisor_end(supervisor, &result);
    MUST_EQ(result.sent, result.handled + result.returned + result.dead);
    play_finish(&play);
    return 0;
}

static int64_t cancelled_in_end(void *argument)
{
    janus_nursery nursery;
    janus_status  status = JANUS_OK;
    (void)argument;
    MUST_EQ(janus_nursery_open(&nursery, NULL), JANUS_OK);
    MUST_EQ(janus_spawn(&nursery, end_with_sleeper, &status), JANUS_OK);
    MUST_EQ(janus_sleep(10 * JANUS_SECONDS), JANUS_OK);
    MUST_EQ(janus_nursery_cancel(&nursery), JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&nursery, NULL));
    MUST_EQ(status, JANUS_CANCELLED);
    return 0;
}

TEST("ending a supervisor that is cancelled meanwhile returns CANCELLED")
{
    RACE(cancelled_in_end);
}

/* Restarts of an actor at rest. */

static int64_t init_once(void *state, void *argument)
{
    (void)state;
    if (atomic_fetch_add((atomic_int *)argument, 1) > 0) return -7;
    JANUS_IGNORE(janus_actor_continue(1));
    return JANUS_ACTOR_GO_ON;
}

static int64_t fail(void *state, janus_letter *letter)
{
    (void)state;
    (void)letter;
    return -5;
}

static const janus_behaviour starts_once = {
    .struct_bytes = sizeof starts_once, .init = init_once, .handle = fail};

static int64_t restart_fails(void *argument)
{
    janus_supervisor *supervisor;
    atomic_int        starts = 0;
    (void)argument;
    MUST_EQ(janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.max_restarts = 3), &supervisor),
            JANUS_OK);
    if (janus_supervisor_add(supervisor,
                             JANUS_CHILD(.behaviour = &starts_once, .id = "a", .argument = &starts),
                             NULL) == JANUS_OK) {
        janus_status status = janus_supervisor_wait(supervisor, janus_now_ns() + play_while());
        MUST(status == JANUS_OK || status == JANUS_CANCELLED);
    }
    MUST_EQ(janus_supervisor_end(supervisor, NULL), JANUS_TOO_OFTEN);
    return 0;
}

TEST("an init that fails in every restart ends the supervisor with TOO_OFTEN")
{
    RACE(restart_fails);
}

static const janus_behaviour fails = {.struct_bytes = sizeof fails,
                                      .message_bytes = sizeof(int64_t),
                                      .state_bytes = 64,
                                      .handle = fail};

/* Under faults any call may be refused; what counts is where the actor is when all is quiet. */
static int64_t restarts_without_memory(void *argument)
{
    janus_supervisor *supervisor;
    janus_actor       actor;
    (void)argument;
    if (janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.max_restarts = 100), &supervisor) !=
        JANUS_OK)
        return 0;
    if (janus_supervisor_add(supervisor, JANUS_CHILD(.behaviour = &fails, .id = "a"), &actor) ==
        JANUS_OK) {
        for (int i = 0; i < 20 && janus_cast(actor, &(int64_t){0}) == JANUS_OK; i++) {
            JANUS_IGNORE(janus_sleep(JANUS_SECONDS));
        }
        JANUS_IGNORE(janus_sleep(10 * JANUS_SECONDS));
        if (!janus_cancelled()) MUST_EQ(look(actor).state, JANUS_ACTOR_STATE_RUNNING);
    }
    JANUS_IGNORE(janus_supervisor_end(supervisor, NULL));
    return 0;
}

TEST("an actor whose restart is refused memory is started again or given up")
{
    RACE(restarts_without_memory, .workers = 2, .faults = JANUS_FAULT_MEMORY);
}

static janus_verdict restart_it(void *argument, const janus_exhausted *exhausted,
                                janus_budget *grant)
{
    (void)argument;
    (void)exhausted;
    (void)grant;
    return JANUS_VERDICT_RESTART;
}

static const janus_behaviour answers = {.struct_bytes = sizeof answers,
                                        .message_bytes = sizeof(int64_t),
                                        .reply_bytes = sizeof(int64_t),
                                        .handle = answer_one};

static int64_t cannot_pay_for_call(void *argument)
{
    const janus_budget budget = janus_budget_of(1000000, 1000000, 1000, 3, 100);
    janus_supervisor  *supervisor;
    janus_status       status = JANUS_OK;
    int64_t            reply;
    (void)argument;
    MUST_EQ(
        janus_supervisor_open(
            JANUS_SUPERVISOR_OPTIONS(.max_restarts = 3, .on_exhausted = restart_it), &supervisor),
        JANUS_OK);
    janus_actor actor =
        add_child(supervisor,
                  JANUS_CHILD(.behaviour = &answers, .id = "a", .restart = JANUS_RESTART_TRANSIENT,
                              .options = JANUS_ACTOR_OPTIONS(.budget = &budget)));
    for (int i = 0; i < 6 && status == JANUS_OK; i++) {
        status = janus_call(actor, &(int64_t){0}, &reply, janus_now_ns() + play_while());
    }
    MUST(status != JANUS_DEADLINE && status != JANUS_DEADLOCK);
    JANUS_IGNORE(janus_supervisor_end(supervisor, NULL));
    return 0;
}

TEST("a call returns when the actor cannot pay for it and is to be started again")
{
    RACE(cannot_pay_for_call);
}

/* Room in a mailbox whose place was used again. */

static const janus_behaviour takes = {
    .struct_bytes = sizeof takes, .message_bytes = sizeof(int64_t), .handle = go_on};

static int64_t cast_one(void *argument)
{
    JANUS_IGNORE(janus_cast(*(janus_actor *)argument, &(int64_t){1}));
    return 0;
}

static int64_t room_of_next(void *argument)
{
    const janus_child *child =
        JANUS_CHILD(.behaviour = &takes, .options = JANUS_ACTOR_OPTIONS(.max_messages = 1));
    janus_supervisor *supervisor;
    janus_nursery     nursery;
    (void)argument;
    MUST_EQ(janus_nursery_open(&nursery, NULL), JANUS_OK);
    MUST_EQ(janus_supervisor_open(NULL, &supervisor), JANUS_OK);
    janus_actor actor = add_child(supervisor, child);
    MUST_EQ(janus_actor_suspend(actor), JANUS_OK);
    MUST_EQ(janus_cast(actor, &(int64_t){0}), JANUS_OK);
    MUST_EQ(janus_spawn_with(&nursery, cast_one, &actor,
                             JANUS_SPAWN_OPTIONS(.priority = JANUS_PRIORITY_LOW), NULL),
            JANUS_OK);
    MUST_EQ(janus_sleep(JANUS_SECONDS), JANUS_OK);
    MUST_EQ(janus_actor_resume(actor), JANUS_OK);
    while (look(actor).handled == 0) MUST_EQ(janus_yield(), JANUS_OK);
    MUST_EQ(janus_supervisor_end(supervisor, NULL), JANUS_OK);
    MUST_EQ(janus_supervisor_open(NULL, &supervisor), JANUS_OK);
    janus_actor next = add_child(supervisor, child);
    MUST_EQ(janus_sleep(JANUS_SECONDS), JANUS_OK);
    MUST_EQ(janus_cast_with(next, &(int64_t){0},
                            JANUS_CAST_OPTIONS(.deadline_ns = janus_now_ns() + JANUS_SECONDS)),
            JANUS_OK);
    MUST_EQ(janus_supervisor_end(supervisor, NULL), JANUS_OK);
    MUST_EQ(janus_nursery_end(&nursery, NULL), JANUS_OK);
    return 0;
}

TEST("a sender that waited for room in a mailbox takes none from the next actor in its place")
{
    RACE(room_of_next, .workers = 1, .faults = 0);
}

/* Callbacks of tokens. */

static janus_supervisor *looked_at;

static void look_at_supervisor(void *argument)
{
    janus_supervisor_info info = JANUS_SUPERVISOR_INFO();
    (void)argument;
    JANUS_IGNORE(janus_supervisor_inspect(looked_at, &info));
}

static int64_t wait_with_callback(void *argument)
{
    janus_nursery      nursery;
    janus_token       *token;
    janus_token_handle handle;
    (void)argument;
    MUST_EQ(janus_nursery_open(&nursery, NULL), JANUS_OK);
    MUST_EQ(janus_nursery_token(&nursery, &token), JANUS_OK);
    MUST_EQ(janus_token_on_cancel(token, look_at_supervisor, NULL, &handle), JANUS_OK);
    JANUS_IGNORE(janus_sleep(AN_HOUR));
    JANUS_IGNORE(janus_nursery_end(&nursery, NULL));
    janus_token_release(token);
    return 0;
}

static int64_t cancels_with_callback(void *argument)
{
    (void)argument;
    MUST_EQ(janus_supervisor_open(NULL, &looked_at), JANUS_OK);
    janus_actor child = add_child(looked_at, JANUS_CHILD(.task = wait_with_callback, .id = "t"));
    MUST_EQ(janus_sleep(JANUS_SECONDS), JANUS_OK);
    MUST_EQ(janus_supervisor_stop_child(looked_at, child), JANUS_OK);
    JANUS_IGNORE(janus_supervisor_end(looked_at, NULL));
    return 0;
}

TEST("a callback of a token may inspect the supervisor that cancels it")
{
    RACE(cancels_with_callback);
}

/* Deadlocks. */

static int64_t deadlock_beside_nested(void *argument)
{
    struct play                    play;
    struct role                    a = {.play = &play, .name = 'a'};
    const janus_child              child = *CHILD(&a, .id = "a");
    const janus_supervisor_options inner =
        *JANUS_SUPERVISOR_OPTIONS(.children = &child, .child_count = 1);
    janus_supervisor *supervisor = play_open(&play, NULL);
    janus_channel     channel;
    int64_t           message;
    (void)argument;
    (void)add_child(supervisor, JANUS_CHILD(.supervisor = &inner, .id = "n"));
    MUST_EQ(janus_channel_create(sizeof message, 1, NULL, &channel), JANUS_OK);
    MUST_EQ(janus_channel_recv(channel, &message), JANUS_DEADLOCK);
    MUST_EQ(janus_channel_recv(channel, &message), JANUS_DEADLOCK);
    MUST_EQ(settle(a.self), 0);
    MUST_EQ(atomic_load(&a.starts), 1);
    MUST_EQ(janus_channel_destroy(channel), JANUS_OK);
    (void)play_end(&play, supervisor, JANUS_OK);
    return 0;
}

TEST("a deadlock of its owner does not end a supervisor below another")
{
    rig_run(2, deadlock_beside_nested, NULL, 1);
}
