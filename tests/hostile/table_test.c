/* SPDX-License-Identifier: MIT */
/*
 * Plugins that take all they can get of the tables that every actor of the process needs. Others
 * still add actors and call them meanwhile.
 */
#include "../task/rig.h"

#include "actor/question.h"
#include "actor/supervisor.h"

#include <stdio.h>
#include <string.h>

enum {
    PLACES = 4096, /* of the table, for these tests: the plugin's memory pays for a quarter */
    MEMORY = 8 << 20,
};

static atomic_int  taken;     /* by the plugin */
static janus_event holds;     /* the plugin has all that it can get */
static uint32_t    questions; /* the most that a plugin got */

static int64_t answer(void *state, janus_letter *letter)
{
    (void)state;
    if (janus_letter_is_call(letter)) JANUS_IGNORE(janus_reply(letter, &(int64_t){42}));
    return JANUS_ACTOR_GO_ON;
}

static int64_t ignore(void *state, void *argument)
{
    (void)state, (void)argument;
    return JANUS_ACTOR_IGNORE;
}

static const janus_behaviour honest = {.struct_bytes = sizeof honest,
                                       .name = "honest",
                                       .message_bytes = sizeof(int64_t),
                                       .reply_bytes = sizeof(int64_t),
                                       .handle = answer};

/* Its place stays, and it has no task. */
static const janus_behaviour empty = {
    .struct_bytes = sizeof empty, .name = "empty", .init = ignore, .handle = answer};

/* Runs it on one worker, two and eight, for plugins with large budgets. */
static void run_all(janus_entry *entry, janus_entry *plugin)
{
    static const janus_budget most = {UINT64_C(1) << 50, UINT64_C(1) << 40, 1 << 20,
                                      UINT64_C(1) << 50, 1 << 20};
    for (uint32_t workers = 1; workers <= 8; workers += workers == 1 ? 1 : 6) {
        CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .max_budget = &most,
                                                   .max_tasks = 10000, .quiet_panics = true),
                           entry, &plugin, NULL),
                 JANUS_OK);
    }
}

/* What everybody must be able to do meanwhile. */
static void add_and_call(void)
{
    janus_supervisor *supervisor;
    janus_actor       actor;
    int64_t           reply = 0;
    CHECK_EQ(janus_supervisor_open(NULL, &supervisor), JANUS_OK);
    CHECK_EQ(janus_supervisor_add(supervisor, JANUS_CHILD(.behaviour = &honest), &actor), JANUS_OK);
    CHECK_EQ(janus_call(actor, &(int64_t){0}, &reply, janus_now_ns() + rig_patience), JANUS_OK);
    CHECK_EQ(reply, 42);
    CHECK_EQ(janus_supervisor_end(supervisor, NULL), JANUS_OK);
}

static int64_t add_and_call_once(void *argument)
{
    (void)argument;
    add_and_call();
    return 0;
}

static int64_t add_and_call_in_pool(void *argument)
{
    const janus_budget pool = janus_budget_of(1000000, 1 << 20, 100, 1000, 100);
    const janus_budget own = janus_budget_of(10000, 100000, 10, 100, 10);
    janus_nursery      nursery;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&nursery, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&nursery, add_and_call_once, NULL,
                              JANUS_SPAWN_OPTIONS(.budget = &own), NULL),
             JANUS_OK);
    CHECK_EQ(janus_nursery_end(&nursery, NULL), JANUS_OK);
    return 0;
}

/* Starts the plugin in a pool, and behaves well beside it, outside of pools and in another. */
static int64_t host(void *argument)
{
    const janus_budget pool = janus_budget_of(1000000000, MEMORY, 1 << 20, 1 << 20, 100);
    const janus_budget own = janus_budget_of(500000000, MEMORY / 2, 1 << 19, 1 << 19, 50);
    janus_nursery      bad, good;
    janus_entry       *plugin = *(janus_entry **)argument;
    janus_event_init(&holds, JANUS_WAKER_TASKS, "holds");
    atomic_store(&taken, 0);
    add_and_call(); /* the tables exist */
    /* relaxed: only this scheduler runs. */
    uint32_t places = jrt_load_relaxed(&jrt_actor_table.places);
    jrt_store_relaxed(&jrt_actor_table.places, (uint32_t)PLACES); /* relaxed: as above. */
    CHECK_EQ(janus_nursery_open(&good, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&bad, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&bad, plugin, NULL, JANUS_SPAWN_OPTIONS(.budget = &own), NULL),
             JANUS_OK);
    CHECK_EQ(janus_event_wait(&holds), JANUS_OK);
    CHECK_EQ(janus_spawn(&good, add_and_call_once, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&good, add_and_call_in_pool, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_await_with(&good, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&bad), JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&bad, NULL));
    CHECK_EQ(janus_nursery_end(&good, NULL), JANUS_OK);
    jrt_store_relaxed(&jrt_actor_table.places, places); /* relaxed: as above. */
    return 0;
}

/* janus_explain says which table is full. */
static void check_explained(const char *table)
{
    char text[500];
    CHECK(janus_explain(text, sizeof text) > 0);
    CHECK(strstr(text, table) != NULL);
}

static void hold(void)
{
    janus_event_set(&holds);
    JANUS_IGNORE(janus_sleep(3600 * JANUS_SECONDS));
}

/* Adds children until a call does not return `wanted`. */
static janus_status add_all(janus_supervisor *supervisor, bool named, janus_status wanted)
{
    janus_status status;
    do {
        char id[16];
        int  number = atomic_load(&taken) + 1;
        (void)snprintf(id, sizeof id, "%d", number);
        status = janus_supervisor_add(
            supervisor,
            JANUS_CHILD(.behaviour = named ? &empty : &honest, .id = named ? id : NULL,
                        .options = JANUS_ACTOR_OPTIONS(.max_messages = (uint32_t)number % 64 + 1)),
            NULL);
        if (status == wanted) atomic_fetch_add(&taken, 1);
    } while (status == wanted);
    return status;
}

/* Places. */

static int64_t take_places(void *argument)
{
    const janus_budget below = janus_budget_of(10000000, MEMORY / 4, 1 << 10, 1 << 10, 10);
    janus_supervisor  *own, *inner;
    (void)argument;
    CHECK_EQ(janus_supervisor_open(NULL, &own), JANUS_OK);
    CHECK_EQ(add_all(own, true, JANUS_IGNORED), JANUS_FULL);
    check_explained("places of actors");
    /* A pool below it has no share of its own. */
    CHECK_EQ(janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.budget = &below), &inner), JANUS_OK);
    CHECK_EQ(add_all(inner, true, JANUS_IGNORED), JANUS_FULL);
    hold();
    return 0;
}

TEST("a plugin in a pool gets a quarter of the places of actors, and the others add theirs")
{
    run_all(host, take_places);
    CHECK_EQ(atomic_load(&taken), PLACES / 4);
}

static int64_t add_and_remove(void *argument)
{
    janus_supervisor *own;
    (void)argument;
    CHECK_EQ(janus_supervisor_open(NULL, &own), JANUS_OK);
    for (int i = 0; i < PLACES; i++) {
        janus_actor actor;
        CHECK_EQ(janus_supervisor_add(own, JANUS_CHILD(.behaviour = &empty, .id = "a"), &actor),
                 JANUS_IGNORED);
        CHECK_EQ(janus_supervisor_remove_child(own, actor), JANUS_OK);
    }
    CHECK_EQ(add_all(own, true, JANUS_IGNORED), JANUS_FULL);
    hold();
    return 0;
}

TEST("a place that is given back leaves the share of its pool")
{
    run_all(host, add_and_remove);
    CHECK_EQ(atomic_load(&taken), PLACES / 4);
}

/* Specifications, and the part of a place that few need. */

enum { SMALL = 256 << 10 };

/* Two plugins after each other get the same. */
static int64_t in_small_pool(void *argument)
{
    const janus_budget pool = janus_budget_of(1000000000, SMALL, 1 << 20, 1 << 20, 100);
    const janus_budget own = janus_budget_of(400000000, SMALL - 16384, 1 << 18, 1 << 18, 40);
    janus_nursery      nursery;
    janus_task_id      task;
    int                first = 0;
    CHECK_EQ(janus_nursery_open(&nursery, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    for (int i = 0; i < 2; i++) {
        atomic_store(&taken, 0);
        CHECK_EQ(janus_spawn_with(&nursery, *(janus_entry **)argument, NULL,
                                  JANUS_SPAWN_OPTIONS(.budget = &own), &task),
                 JANUS_OK);
        CHECK_EQ(janus_join(&nursery, task, NULL), JANUS_OK);
        if (i == 0) first = atomic_load(&taken);
    }
    CHECK_EQ(atomic_load(&taken), first); /* the first plugin left nothing behind */
    CHECK_EQ(janus_nursery_end(&nursery, NULL), JANUS_OK);
    return 0;
}

static int64_t add_different(void *argument)
{
    janus_supervisor *own;
    (void)argument;
    CHECK_EQ(janus_supervisor_open(NULL, &own), JANUS_OK);
    CHECK_EQ(add_all(own, false, JANUS_OK), JANUS_BUDGET_EXHAUSTED);
    CHECK_EQ(janus_supervisor_end(own, NULL), JANUS_OK);
    return 0;
}

TEST("children that differ pay for their specifications")
{
    const size_t each = sizeof(struct jrt_actor_place) + sizeof(struct jrt_spec);
    run_all(in_small_pool, add_different);
    CHECK(atomic_load(&taken) > 0);
    CHECK((size_t)atomic_load(&taken) <= SMALL / each);
}

/* Adds actors, and makes the rare part of each: a wish to be described needs it. */
static int64_t make_rare(void *argument)
{
    janus_supervisor *own;
    janus_status      status;
    janus_actor       actor;
    char              text[16];
    (void)argument;
    CHECK_EQ(janus_supervisor_open(NULL, &own), JANUS_OK);
    do {
        status = janus_supervisor_add(own, JANUS_CHILD(.behaviour = &honest), &actor);
        if (status != JANUS_OK) break;
        atomic_fetch_add(&taken, 1);
        status = janus_actor_describe(actor, text, sizeof text, 0);
    } while (status == JANUS_STATE); /* it describes nothing */
    CHECK(status == JANUS_NO_MEMORY || status == JANUS_BUDGET_EXHAUSTED);
    CHECK_EQ(janus_supervisor_end(own, NULL), JANUS_OK);
    return 0;
}

TEST("a pool bears the rare parts of its places, and gets them back")
{
    const size_t each = sizeof(struct jrt_actor_place) + sizeof(struct jrt_actor_rare);
    run_all(in_small_pool, make_rare);
    CHECK((size_t)atomic_load(&taken) > SMALL / each / 2);
    CHECK((size_t)atomic_load(&taken) <= SMALL / each + 1);
}

/* Questions. */

static int64_t take_questions(void *argument)
{
    struct jrt_question *first = NULL, *question;
    uint64_t             key;
    (void)argument;
    questions = 0;
    while ((question = jrt_question_take(&key)) != NULL) {
        question->reply = first; /* nobody answers */
        first = question;
        questions++;
    }
    check_explained("calls that wait for an answer");
    hold();
    while (first != NULL) {
        question = first;
        first = question->reply;
        question->reply = NULL;
        question->key = 0;
        jrt_question_give(question);
    }
    return 0;
}

TEST("a plugin in a pool leaves a quarter of the questions to the others, which call")
{
    run_all(host, take_questions);
    /* Half of the table and a quarter, but for the spare ones of the workers. */
    CHECK(questions <= 3 << 18);
    CHECK(questions >= (3 << 18) - 64);
}

/* The number of a question shows how much of the table was ever used. */

static _Atomic(uint64_t) number;

static int64_t keep(void *state, janus_letter *letter)
{
    janus_kept_reply kept;
    (void)state;
    CHECK_EQ(janus_reply_keep(letter, &kept), JANUS_OK);
    atomic_store(&number, kept.opaque[0]);
    CHECK_EQ(janus_reply_to(kept, &(int64_t){1}), JANUS_OK);
    return JANUS_ACTOR_GO_ON;
}

static const janus_behaviour keeper = {.struct_bytes = sizeof keeper,
                                       .message_bytes = sizeof(int64_t),
                                       .reply_bytes = sizeof(int64_t),
                                       .handle = keep};

static int64_t call_once(void *argument)
{
    janus_supervisor *supervisor;
    janus_actor       actor;
    (void)argument;
    CHECK_EQ(janus_supervisor_open(NULL, &supervisor), JANUS_OK);
    CHECK_EQ(janus_supervisor_add(supervisor, JANUS_CHILD(.behaviour = &keeper), &actor), JANUS_OK);
    CHECK_EQ(janus_call(actor, &(int64_t){0}, NULL, janus_now_ns() + rig_patience), JANUS_OK);
    CHECK_EQ(janus_supervisor_end(supervisor, NULL), JANUS_OK);
    return 0;
}

TEST("a scheduler that ends takes no question with it")
{
    uint64_t most = 0, first = 0;
    for (int i = 0; i < 100; i++) {
        rig_run(2, call_once, NULL, 1);
        if (i == 0) first = atomic_load(&number);
        if (atomic_load(&number) > most) most = atomic_load(&number);
    }
    CHECK(most < first + 8 || most < 16);
}
