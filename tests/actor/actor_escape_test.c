/* SPDX-License-Identifier: MIT */
/* Pointers of ended supervisors, and budgets that callbacks and allowances might widen. */
#include "play.h"

#include <string.h>

static janus_actor       victim;
static janus_supervisor *host;

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

/* The pointer of a supervisor that has ended, or that lies beside the task. */

static void check_refused(janus_supervisor *stale, janus_actor actor)
{
    janus_supervisor_info info = JANUS_SUPERVISOR_INFO();
    janus_child_info      child = JANUS_CHILD_INFO();
    janus_restart_info    end = JANUS_RESTART_INFO();
    char                  why[300];
    CHECK_EQ(janus_supervisor_add(stale, JANUS_CHILD(.behaviour = &honest), &actor), JANUS_STATE);
    CHECK(janus_explain(why, sizeof why) > 0);
    CHECK(strstr(why, "the supervisor has ended, or this task lies outside") != NULL);
    CHECK_EQ(janus_supervisor_stop_child(stale, actor), JANUS_STATE);
    CHECK_EQ(janus_supervisor_start_child(stale, actor), JANUS_STATE);
    CHECK_EQ(janus_supervisor_remove_child(stale, actor), JANUS_STATE);
    CHECK_EQ(janus_supervisor_find_child(stale, "a", &actor), JANUS_STATE);
    CHECK_EQ(janus_supervisor_inspect(stale, &info), JANUS_STATE);
    CHECK_EQ(janus_supervisor_children(stale, &child, 1), 0);
    CHECK_EQ(janus_supervisor_history(stale, &end, 1), 0);
    CHECK_EQ(janus_supervisor_wait(stale, 1), JANUS_STATE);
    CHECK_EQ(janus_supervisor_end(stale, NULL), JANUS_STATE);
}

static int64_t use_stale(void *argument)
{
    janus_supervisor *stale;
    janus_actor       actor;
    (void)argument;
    CHECK_EQ(janus_supervisor_open(NULL, &stale), JANUS_OK);
    actor = add_child(stale, JANUS_CHILD(.behaviour = &honest, .id = "a"));
    CHECK_EQ(janus_supervisor_end(stale, NULL), JANUS_OK);
    check_refused(stale, actor);
    return 0;
}

TEST("a supervisor that has ended is STATE, whatever is called with its pointer")
{
    rig_all(use_stale, NULL, 10);
}

static janus_event opened;

static int64_t use_from_beside(void *argument)
{
    (void)argument;
    CHECK_EQ(janus_event_wait(&opened), JANUS_OK);
    check_refused(host, victim);
    return 0;
}

static int64_t opens_later(void *argument)
{
    janus_nursery nursery;
    (void)argument;
    janus_event_init(&opened, JANUS_WAKER_TASKS, "opened");
    CHECK_EQ(janus_nursery_open(&nursery, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&nursery, use_from_beside, NULL), JANUS_OK);
    open_host();
    janus_event_set(&opened);
    for (int i = 0; i < 20; i++) CHECK_EQ(janus_yield(), JANUS_OK);
    end_host();
    CHECK_EQ(janus_nursery_end(&nursery, NULL), JANUS_OK);
    return 0;
}

TEST("a task of a nursery around a supervisor is outside of it, and may use it never")
{
    rig_all(opens_later, NULL, 10);
}

/* Allowances of a pool. */

static atomic_ulong burnt; /* ops */

static int64_t burn(void *argument)
{
    (void)argument;
    for (;;) {
        atomic_fetch_add(&burnt, 1000);
        if (janus_charge(janus_price_loop(1000)) != JANUS_OK) return 0;
    }
}

static int64_t allow_much(void *argument)
{
    const janus_allowance allowance = {{1000000000, 1 << 30, 1000, 100000, 1000}, 1};
    janus_supervisor     *own;
    (void)argument;
    CHECK_EQ(janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.allowance = allowance,
                                                            .max_restarts = 1000, .period_ns = 1,
                                                            .max_exhaustions = UINT32_MAX),
                                   &own),
             JANUS_OK);
    CHECK_EQ(janus_supervisor_add(own, JANUS_CHILD(.task = burn), NULL), JANUS_OK);
    JANUS_IGNORE(janus_supervisor_wait(own, 0));
    JANUS_IGNORE(janus_supervisor_end(own, NULL));
    return 0;
}

static int64_t allows_much(void *argument)
{
    const janus_budget pool = janus_budget_of(90000, 4 << 20, 10, 500, 10);
    const janus_budget own = janus_budget_of(20000, 1 << 20, 5, 100, 5);
    janus_nursery      nursery;
    (void)argument;
    atomic_store(&burnt, 0);
    CHECK_EQ(janus_nursery_open(&nursery, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(
        janus_spawn_with(&nursery, allow_much, NULL, JANUS_SPAWN_OPTIONS(.budget = &own), NULL),
        JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&nursery, NULL));
    CHECK(atomic_load(&burnt) >= 10000);
    CHECK(atomic_load(&burnt) <= 100000); /* the pool, and what was begun */
    return 0;
}

TEST("an allowance in a pool gives no more than the pool has") { rig_all(allows_much, NULL, 3); }

/* Operations of describe. */

static size_t check_often(const void *state, char *buffer, size_t size)
{
    (void)state, (void)buffer, (void)size;
    for (int i = 0; i < 900; i++) {
        if (janus_check() == JANUS_OK) atomic_fetch_add(&burnt, 1);
    }
    return 0;
}

static const janus_behaviour talkative =
    JANUS_BEHAVIOUR(.name = "talkative", .handle = answer_one, .describe = check_often);

static int64_t describe_often(void *argument)
{
    janus_supervisor *own;
    char              text[10];
    (void)argument;
    CHECK_EQ(janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.max_restarts = 1000), &own), JANUS_OK);
    janus_actor actor = add_child(own, JANUS_CHILD(.behaviour = &talkative));
    for (int i = 0; i < 200; i++) {
        if (janus_actor_describe(actor, text, sizeof text, 0) != JANUS_OK) break;
    }
    JANUS_IGNORE(janus_supervisor_end(own, NULL));
    return 0;
}

static int64_t describes_often(void *argument)
{
    const janus_budget pool = janus_budget_of(60000, 4 << 20, 10, 500, 10);
    const janus_budget own = janus_budget_of(20000, 1 << 20, 5, 300, 5);
    janus_nursery      nursery;
    (void)argument;
    atomic_store(&burnt, 0);
    CHECK_EQ(janus_nursery_open(&nursery, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(
        janus_spawn_with(&nursery, describe_often, NULL, JANUS_SPAWN_OPTIONS(.budget = &own), NULL),
        JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&nursery, NULL));
    CHECK(atomic_load(&burnt) >= 9000);
    CHECK(atomic_load(&burnt) <= 61000);
    return 0;
}

TEST("an actor pays for the operations of its describe") { rig_all(describes_often, NULL, 3); }

/* Blocks that outlive the pool that paid for them. */

static atomic_int adopted;

static int64_t count_block(void *state, janus_letter *letter)
{
    (void)state;
    if (letter->block != NULL) atomic_fetch_add(&adopted, ((const char *)letter->block)[99] == 7);
    return JANUS_ACTOR_GO_ON;
}

static const janus_behaviour keeper =
    JANUS_BEHAVIOUR(.name = "keeper", .message_bytes = sizeof(int64_t), .handle = count_block);

static int64_t leave_blocks(void *argument)
{
    (void)argument;
    for (int i = 0; i < 20; i++) {
        char *block = janus_alloc(100);
        if (block == NULL) return -100;
        block[99] = 7;
        block = janus_detach(block);
        if (janus_cast_with(victim, &(int64_t){1}, JANUS_CAST_OPTIONS(.block = block)) != JANUS_OK)
            return -101;
    }
    return 0;
}

static int64_t blocks_are_left(void *argument)
{
    const janus_budget pool = janus_budget_of(60000, 1 << 20, 4, 500, 10);
    janus_nursery      nursery;
    (void)argument;
    atomic_store(&adopted, 0);
    CHECK_EQ(janus_supervisor_open(NULL, &host), JANUS_OK);
    victim = add_child(host, JANUS_CHILD(.behaviour = &keeper));
    CHECK_EQ(janus_actor_suspend(victim), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&nursery, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(janus_spawn(&nursery, leave_blocks, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&nursery, NULL), JANUS_OK);
    CHECK_EQ(look(victim).messages, 20);
    CHECK_EQ(janus_actor_resume(victim), JANUS_OK);
    CHECK_EQ(janus_supervisor_end(host, NULL), JANUS_OK);
    CHECK_EQ(atomic_load(&adopted), 20);
    return 0;
}

TEST("blocks in a mailbox outlive the pool of their sender, and are adopted whole")
{
    rig_all(blocks_are_left, NULL, 3);
}
