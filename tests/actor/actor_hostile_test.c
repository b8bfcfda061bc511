/* SPDX-License-Identifier: MIT */
/* Actors, and tasks in a pool that use them, that want more than they were given. */
#include "play.h"

#include <malloc.h>

/* A plugin: a task in a pool of its own. */

static janus_actor       victim;
static janus_supervisor *host;
static atomic_int        reached; /* how far the plugin came */

static janus_status run_in(const janus_nursery_options *options, janus_entry *entry,
                           uint64_t channel_ops)
{
    const janus_budget own = janus_budget_of(1000000, 1 << 20, 4, channel_ops, 10);
    janus_nursery      nursery;
    atomic_store(&reached, 0);
    CHECK_EQ(janus_nursery_open(&nursery, options), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&nursery, entry, NULL, JANUS_SPAWN_OPTIONS(.budget = &own), NULL),
             JANUS_OK);
    return janus_nursery_end(&nursery, NULL);
}

static janus_status run_plugin(janus_entry *entry)
{
    const janus_budget pool = janus_budget_of(10000000, 4 << 20, 100, 10000, 100);
    return run_in(JANUS_NURSERY_OPTIONS(.budget = &pool), entry, 1000);
}

/* With a budget, and no pool that gives more. */
static janus_status run_alone(janus_entry *entry, uint64_t channel_ops)
{
    return run_in(NULL, entry, channel_ops);
}

static int64_t answer_one(void *state, janus_letter *letter)
{
    int64_t reply = 1;
    (void)state;
    if (janus_letter_is_call(letter)) JANUS_IGNORE(janus_reply(letter, &reply));
    return JANUS_ACTOR_GO_ON;
}

static const janus_behaviour honest = {.struct_bytes = sizeof honest,
                                       .name = "honest",
                                       .message_bytes = sizeof(int64_t),
                                       .reply_bytes = sizeof(int64_t),
                                       .handle = answer_one};

static void open_host(void)
{
    CHECK_EQ(janus_supervisor_open(NULL, &host), JANUS_OK);
    victim = add_child(host, JANUS_CHILD(.behaviour = &honest, .id = "victim"));
}

/* The victim runs and answers, and never failed. */
static void end_host(void)
{
    int64_t reply = 0;
    CHECK_EQ(janus_call(victim, &(int64_t){0}, &reply, NEVER), JANUS_OK);
    CHECK_EQ(reply, 1);
    CHECK_EQ(look(victim).failures, 0);
    CHECK_EQ(janus_supervisor_end(host, NULL), JANUS_OK);
}

/* Blocks. */

static int64_t cast_twice(void *argument)
{
    void                     *block = janus_detach(janus_alloc(100));
    const janus_cast_options *options = JANUS_CAST_OPTIONS(.block = block);
    (void)argument;
    CHECK_EQ(janus_cast_with(victim, &(int64_t){1}, options), JANUS_OK);
    atomic_store(&reached, 1);
    JANUS_IGNORE(janus_cast_with(victim, &(int64_t){1}, options));
    atomic_store(&reached, 2);
    return 0;
}

static int64_t casts_twice(void *argument)
{
    (void)argument;
    open_host();
    CHECK_EQ(janus_actor_suspend(victim), JANUS_OK);
    CHECK_EQ(run_plugin(cast_twice), JANUS_CHILD_FAILED);
    CHECK_EQ(atomic_load(&reached), 1);
    CHECK_EQ(look(victim).sent, 1);
    CHECK_EQ(janus_actor_resume(victim), JANUS_OK);
    end_host();
    return 0;
}

TEST("a task that casts a block twice panics, and its receiver does not")
{
    rig_all(casts_twice, NULL, 10);
}

/* Many calls at once. */

static int64_t call_all(void *state, janus_letter *letter)
{
    janus_status status = JANUS_OK;
    int64_t      reply = 0, told;
    (void)state;
    if (!janus_letter_is_call(letter)) return JANUS_ACTOR_GO_ON;
    told = janus_call_all(&victim, 1, &(int64_t){2}, &reply, sizeof reply, &status, 0);
    CHECK_EQ(janus_reply(letter, &told), JANUS_OK);
    return JANUS_ACTOR_GO_ON;
}

static const janus_behaviour caller = {.struct_bytes = sizeof caller,
                                       .message_bytes = sizeof(int64_t),
                                       .reply_bytes = sizeof(int64_t),
                                       .handle = call_all};

static int64_t actor_calls_all(void *argument)
{
    int64_t told = 0;
    (void)argument;
    open_host();
    janus_actor actor = add_child(host, JANUS_CHILD(.behaviour = &caller));
    CHECK_EQ(janus_call(actor, &(int64_t){0}, &told, NEVER), JANUS_OK);
    CHECK_EQ(told, JANUS_STATE);
    end_host();
    return 0;
}

TEST("an actor cannot call many at once: it is STATE") { rig_all(actor_calls_all, NULL, 10); }

static int64_t call_too_many(void *argument)
{
    janus_actor  actors[64];
    janus_status statuses[64];
    int64_t      replies[64];
    (void)argument;
    for (int i = 0; i < 64; i++) actors[i] = victim;
    JANUS_IGNORE(
        janus_call_all(actors, 64, &(int64_t){0}, replies, sizeof replies[0], statuses, 0));
    atomic_store(&reached, 1);
    return 0;
}

static int64_t calls_too_many(void *argument)
{
    (void)argument;
    open_host();
    CHECK_EQ(run_alone(call_too_many, 8), JANUS_CHILD_FAILED);
    CHECK_EQ(atomic_load(&reached), 0);
    end_host();
    return 0;
}

TEST("a task that cannot pay for all its calls at once ends, and leaves no call behind")
{
    rig_all(calls_too_many, NULL, 10);
}

/* Behaviours that change. */

static int64_t answer_two(void *state, janus_letter *letter)
{
    int64_t reply = 2;
    (void)state;
    if (janus_letter_is_call(letter)) JANUS_IGNORE(janus_reply(letter, &reply));
    return JANUS_ACTOR_GO_ON;
}

static int64_t changes_behaviour(void *argument)
{
    janus_behaviour behaviour = honest;
    (void)argument;
    CHECK_EQ(janus_supervisor_open(NULL, &host), JANUS_OK);
    victim = add_child(host, JANUS_CHILD(.behaviour = &behaviour, .id = "victim"));
    behaviour.handle = answer_two;
    behaviour.message_bytes = 1 << 16;
    behaviour.state_bytes = (size_t)1 << 40;
    CHECK_EQ(janus_supervisor_stop_child(host, victim), JANUS_OK);
    CHECK_EQ(janus_supervisor_start_child(host, victim), JANUS_OK);
    end_host();
    return 0;
}

TEST("a behaviour that is changed after adding changes nothing")
{
    rig_all(changes_behaviour, NULL, 10);
}

static int64_t refund_too_much(void *argument)
{
    janus_behaviour   behaviour = honest;
    janus_supervisor *supervisor;
    (void)argument;
    CHECK_EQ(janus_supervisor_open(NULL, &supervisor), JANUS_OK);
    janus_actor actor = add_child(supervisor, JANUS_CHILD(.behaviour = &behaviour, .id = "a",
                                                          .restart = JANUS_RESTART_TRANSIENT));
    CHECK_EQ(janus_supervisor_stop_child(supervisor, actor), JANUS_OK);
    behaviour.state_bytes = (size_t)1 << 40;
    CHECK_EQ(janus_supervisor_remove_child(supervisor, actor), JANUS_OK);
    CHECK_EQ(janus_supervisor_end(supervisor, NULL), JANUS_OK);
    while (janus_alloc(100000) != NULL) atomic_fetch_add(&reached, 1);
    return 0;
}

static int64_t refunds_too_much(void *argument)
{
    (void)argument;
    JANUS_IGNORE(run_alone(refund_too_much, 1000));
    CHECK(atomic_load(&reached) > 0);
    CHECK(atomic_load(&reached) <= 10);
    return 0;
}

TEST("removing a child gives back no more memory than adding it took")
{
    rig_all(refunds_too_much, NULL, 10);
}

/* The supervisor of the host. */

static int64_t look_around(void *argument)
{
    janus_actor           actor = {{0}};
    janus_child_info      children[2] = {JANUS_CHILD_INFO(), JANUS_CHILD_INFO()};
    janus_restart_info    history = JANUS_RESTART_INFO();
    janus_supervisor_info info = JANUS_SUPERVISOR_INFO();
    janus_status          status;
    (void)argument;
    CHECK_EQ(janus_supervisor_add(host, JANUS_CHILD(.behaviour = &honest), &actor),
             JANUS_CAP_WIDENS);
    CHECK_EQ(janus_supervisor_find_child(host, "victim", &actor), JANUS_CAP_WIDENS);
    CHECK_EQ(janus_actor_stop(actor, JANUS_STOP_HOW_AT_ONCE, 0), JANUS_STALE);
    CHECK_EQ(janus_supervisor_children(host, children, 2), 0);
    CHECK_EQ(janus_actor_stop(children[0].actor, JANUS_STOP_HOW_AT_ONCE, 0), JANUS_STALE);
    CHECK_EQ(janus_supervisor_history(host, &history, 1), 0);
    status = janus_supervisor_inspect(host, &info);
    CHECK(status == JANUS_CAP_WIDENS || status == JANUS_STATE);
    return 0;
}

static int64_t looks_around(void *argument)
{
    (void)argument;
    open_host();
    CHECK_EQ(run_plugin(look_around), JANUS_OK);
    end_host();
    return 0;
}

TEST("a task in a pool sees nothing of a supervisor outside of it")
{
    rig_all(looks_around, NULL, 10);
}

/* Terms of a caller below the owner of the host's supervisor. */

static janus_status add_here(char *why, size_t size)
{
    janus_actor  actor;
    janus_status status = janus_supervisor_add(host, JANUS_CHILD(.behaviour = &honest), &actor);
    if (status != JANUS_OK) CHECK(janus_explain(why, size) > 0);
    return status;
}

static int64_t add_outside(void *argument)
{
    char why[512] = "";
    CHECK_EQ(add_here(why, sizeof why), JANUS_CAP_WIDENS);
    CHECK(strstr(why, argument) != NULL);
    CHECK(strstr(why, "supervisor \"supervisor\"") != NULL);
    return 0;
}

static int64_t add_freely(void *argument)
{
    char why[512] = "";
    CHECK_EQ(add_here(why, sizeof why), JANUS_OK);
    return argument != NULL;
}

static void run_below(const janus_nursery_options *options, const janus_spawn_options *each,
                      janus_entry *entry, char *argument)
{
    janus_nursery nursery;
    CHECK_EQ(janus_nursery_open(&nursery, options), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&nursery, entry, argument, each, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&nursery, NULL), JANUS_OK);
}

static int64_t add_on_terms(void *argument)
{
    static char            task[] = "this task", cell[] = "nursery \"cell\"";
    const janus_cap_limits nothing = {.net = {.max_handles = 0}};
    janus_authority       *root;
    janus_cap              no_net;
    (void)argument;
    CHECK_EQ(janus_authority_take(NULL, &root), JANUS_OK);
    CHECK_EQ(janus_cap_mint(root, 0,
                            JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_NET, .limits = &nothing,
                                            .rights = JANUS_RIGHT_NET_CONNECT),
                            &no_net),
             JANUS_OK);
    open_host();
    run_below(NULL, JANUS_SPAWN_OPTIONS(.net_cap = no_net), add_outside, task);
    run_below(JANUS_NURSERY_OPTIONS(.name = "cell", .net_cap = no_net), NULL, add_outside, cell);
    run_below(JANUS_NURSERY_OPTIONS(.exhaustion = JANUS_EXHAUSTION_END), NULL, add_freely, NULL);
    run_below(NULL, NULL, add_freely, NULL);
    end_host();
    return 0;
}

TEST("a task whose capabilities are narrower adds no child to a supervisor outside, and learns why")
{
    CHECK_EQ(janus_run(NULL, add_on_terms, NULL, NULL), JANUS_OK);
}

static int64_t add_wide(void *argument)
{
    janus_supervisor *supervisor;
    janus_status      status;
    (void)argument;
    CHECK_EQ(janus_supervisor_open(NULL, &supervisor), JANUS_OK);
    status = janus_supervisor_add(
        supervisor,
        JANUS_CHILD(.behaviour = &honest, .options = JANUS_ACTOR_OPTIONS(.max_messages = 1 << 20)),
        NULL);
    CHECK_EQ(status, JANUS_BUDGET_EXHAUSTED);
    CHECK_EQ(janus_supervisor_end(supervisor, NULL), JANUS_OK);
    return 0;
}

static int64_t adds_wide(void *argument)
{
    (void)argument;
    CHECK_EQ(run_alone(add_wide, 1000), JANUS_OK);
    return 0;
}

TEST("an actor with a mailbox for a million messages is charged to the memory of its adder")
{
    rig_all(adds_wide, NULL, 10);
}

/* Blocking calls. */

static int64_t call_blocking(void *argument)
{
    int64_t reply;
    (void)argument;
    return janus_call(victim, &(int64_t){0}, &reply, NEVER);
}

static int64_t cast_blocking(void *argument)
{
    (void)argument;
    return janus_try_cast(victim, &(int64_t){0});
}

static int64_t block_plugin(void *argument)
{
    int64_t status = 0;
    (void)argument;
    CHECK_EQ(janus_blocking(cast_blocking, NULL, &status), JANUS_OK);
    CHECK_EQ(status, JANUS_NO_EXECUTOR_CAP);
    CHECK_EQ(janus_blocking(call_blocking, NULL, &status), JANUS_OK);
    CHECK(status == JANUS_STATE || status == JANUS_NO_EXECUTOR_CAP);
    return 0;
}

static int64_t blocks(void *argument)
{
    int64_t status = 0;
    (void)argument;
    open_host();
    CHECK_EQ(janus_blocking(call_blocking, NULL, &status), JANUS_OK);
    CHECK_EQ(status, JANUS_STATE);
    CHECK_EQ(run_plugin(block_plugin), JANUS_OK);
    CHECK_EQ(look(victim).sent, 0);
    end_host();
    return 0;
}

TEST("a blocking call cannot call an actor, nor cast to one past the budget of its task")
{
    rig_all(blocks, NULL, 3);
}

/* Failures without end. */

static int64_t ask_and_panic(void *state, janus_letter *letter)
{
    (void)state;
    if (letter->kind == JANUS_LETTER_KIND_REPLY) janus_panic("on a notice");
    if (letter->kind != JANUS_LETTER_KIND_CONTINUE) return JANUS_ACTOR_GO_ON;
    return janus_ask(victim, &(int64_t){0}, 0, NEVER);
}

static int64_t init_asking(void *state, void *argument)
{
    (void)state;
    (void)argument;
    return janus_actor_continue(0);
}

static const janus_behaviour panics = {.struct_bytes = sizeof panics,
                                       .name = "panics",
                                       .message_bytes = sizeof(int64_t),
                                       .init = init_asking,
                                       .handle = ask_and_panic};

enum { PANICS = 300 };

static void panic_often(void)
{
    janus_supervisor_result result = JANUS_SUPERVISOR_RESULT();
    janus_supervisor       *supervisor;
    CHECK_EQ(
        janus_supervisor_open(
            JANUS_SUPERVISOR_OPTIONS(.max_restarts = PANICS, .period_ns = AN_HOUR), &supervisor),
        JANUS_OK);
    victim = add_child(supervisor, JANUS_CHILD(.behaviour = &honest));
    (void)add_child(supervisor, JANUS_CHILD(.behaviour = &panics));
    JANUS_IGNORE(janus_supervisor_wait(supervisor, NEVER));
    CHECK_EQ(janus_supervisor_end(supervisor, &result), JANUS_TOO_OFTEN);
    CHECK_EQ(result.restarts, PANICS);
}

static int64_t panics_for_ever(void *argument)
{
    size_t before;
    (void)argument;
    panic_often();
    before = mallinfo2().uordblks;
    for (int i = 0; i < 5; i++) panic_often();
    CHECK(mallinfo2().uordblks < before + (size_t)5 * PANICS * 16);
    return 0;
}

TEST("handlers that panic on notices leave no memory behind")
{
    rig_run(1, panics_for_ever, NULL, 1);
}

static janus_decision restart_at_once(void *argument, const janus_child_event *event,
                                      uint64_t *delay_ns)
{
    (void)argument;
    (void)event;
    *delay_ns = 0;
    return JANUS_DECISION_RESTART;
}

static int64_t fails_at_once(void *argument)
{
    janus_supervisor_result result = JANUS_SUPERVISOR_RESULT();
    janus_supervisor       *supervisor;
    (void)argument;
    CHECK_EQ(
        janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.max_restarts = 5000, .period_ns = AN_HOUR,
                                                       .on_end = restart_at_once),
                              &supervisor),
        JANUS_OK);
    (void)add_child(supervisor, JANUS_CHILD(.task = minus_seven));
    JANUS_IGNORE(janus_supervisor_wait(supervisor, NEVER));
    CHECK_EQ(janus_supervisor_end(supervisor, &result), JANUS_TOO_OFTEN);
    CHECK_EQ(result.restarts, 5000);
    return 0;
}

TEST("a task that fails at once thousands of times needs no deeper stack each time")
{
    rig_run(2, fails_at_once, NULL, 1);
}
