/* SPDX-License-Identifier: MIT */
/* The right to cancel a nursery. Its owner and plain threads have it. Tasks below have it if no
 * nursery between keeps the right. All others get STATE, and nothing happens. */
#include "caps.h"

static void alone(uint32_t workers, janus_entry *entry)
{
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers), entry, NULL, NULL),
             JANUS_OK);
}

/* The ways in which a task tries. */
enum way { WAY_CANCEL, WAY_PROPAGATE, WAY_BLOCKING, WAY_CALLBACK, WAYS };

struct attempt {
    janus_nursery *victim;
    enum way       way;
    janus_status   said;
    atomic_bool    done;
};

static int64_t cancel_blocking(void *argument)
{
    struct attempt *attempt = argument;
    attempt->said = janus_nursery_cancel(attempt->victim);
    return 0;
}

static void cancel_called_back(void *argument)
{
    struct attempt *attempt = argument;
    attempt->said = janus_nursery_cancel(attempt->victim);
}

static void try_callback(struct attempt *attempt)
{
    janus_token *token = NULL;
    CHECK_EQ(janus_token_create(&token), JANUS_OK);
    CHECK_EQ(janus_token_on_cancel(token, cancel_called_back, attempt, NULL), JANUS_OK);
    CHECK_EQ(janus_token_cancel(token, JANUS_CANCEL_REASON_EXPLICIT), JANUS_OK);
    janus_token_release(token);
}

/* A task's entry. It must not wait afterwards, because it may be cancelled. */
static int64_t try_it(void *argument)
{
    struct attempt *attempt = argument;
    int64_t         result;
    attempt->said = JANUS_INVALID;
    switch (attempt->way) {
    case WAY_CANCEL: attempt->said = janus_nursery_cancel(attempt->victim); break;
    case WAY_PROPAGATE: attempt->said = janus_nursery_propagate_cancel(attempt->victim); break;
    case WAY_BLOCKING: JANUS_IGNORE(janus_blocking(cancel_blocking, attempt, &result)); break;
    default: try_callback(attempt); break;
    }
    atomic_store(&attempt->done, true);
    return 0;
}

/* Spawns a task, below nurseries of its own, that tries. */
static int64_t try_further_down(void *argument)
{
    janus_nursery outer, inner;
    CHECK_EQ(janus_nursery_open(&outer, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&inner, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&inner, try_it, argument), JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&inner, NULL));
    JANUS_IGNORE(janus_nursery_end(&outer, NULL));
    return 0;
}

/* Opens a nursery with these options, has a child try, and returns the child's status. */
static janus_status from_child(const janus_nursery_options *options, janus_entry *entry,
                               enum way way)
{
    janus_nursery  n;
    struct attempt attempt = {.victim = &n, .way = way};
    CHECK_EQ(janus_nursery_open(&n, options), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, entry, &attempt), JANUS_OK);
    janus_status ended = janus_nursery_end(&n, NULL);
    CHECK_EQ(ended, attempt.said == JANUS_OK ? JANUS_CANCELLED : JANUS_OK);
    return attempt.said;
}

static int64_t allowed_below(void *argument)
{
    (void)argument;
    for (enum way way = 0; way < WAYS; way++) {
        CHECK_EQ(from_child(NULL, try_it, way), JANUS_OK);
        CHECK_EQ(from_child(NULL, try_further_down, way), JANUS_OK);
    }
    return 0;
}

TEST("a task below a nursery may cancel it, at any depth and in every way")
{
    alone(1, allowed_below);
    alone(2, allowed_below);
}

static int64_t kept_by_option(void *argument)
{
    (void)argument;
    for (enum way way = 0; way < WAYS; way++) {
        janus_nursery_options *options = JANUS_NURSERY_OPTIONS(.cancel_by_owner = true);
        CHECK_EQ(from_child(options, try_it, way), JANUS_STATE);
        CHECK_EQ(from_child(options, try_further_down, way), JANUS_STATE);
    }
    return 0;
}

TEST("with cancel_by_owner no task below the nursery may cancel it, in any way")
{
    alone(1, kept_by_option);
    alone(2, kept_by_option);
}

static int64_t kept_by_terms(void *argument)
{
    const janus_authority *root = caps_root();
    janus_budget           pool = janus_budget_of(100000, 100000, 100000, 100000, 100000);
    janus_cap_limits       limits = {.spawn = {.max_tasks = 10, .task_budget = pool}};
    janus_cap              cap = caps_mint(root, JANUS_CAP_KIND_SPAWN, JANUS_RIGHTS_ALL, &limits);
    (void)argument;
    for (enum way way = 0; way < WAYS; way++) {
        CHECK_EQ(from_child(JANUS_NURSERY_OPTIONS(.budget = &pool), try_it, way), JANUS_STATE);
        CHECK_EQ(from_child(JANUS_NURSERY_OPTIONS(.spawn_cap = cap), try_it, way), JANUS_STATE);
        CHECK_EQ(from_child(JANUS_NURSERY_OPTIONS(.spawn_cap = cap), try_further_down, way),
                 JANUS_STATE);
    }
    return 0;
}

TEST("no child can cancel a nursery that has a pool or a capability")
{
    alone(1, kept_by_terms);
    alone(2, kept_by_terms);
}

/* A host with a nursery around the plugin's. */
static janus_status from_inside(const janus_nursery_options *options, enum way way)
{
    janus_nursery  around, plugins;
    struct attempt attempt = {.victim = &around, .way = way};
    CHECK_EQ(janus_nursery_open(&around, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&plugins, options), JANUS_OK);
    CHECK_EQ(janus_spawn(&plugins, try_it, &attempt), JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&plugins, NULL));
    CHECK_EQ(janus_nursery_end(&around, NULL),
             attempt.said == JANUS_OK ? JANUS_CANCELLED : JANUS_OK);
    return attempt.said;
}

static int64_t kept_around(void *argument)
{
    janus_budget pool = janus_budget_of(100000, 100000, 100000, 100000, 100000);
    (void)argument;
    for (enum way way = 0; way < WAYS; way++) {
        CHECK_EQ(from_inside(NULL, way), JANUS_OK);
        CHECK_EQ(from_inside(JANUS_NURSERY_OPTIONS(.cancel_by_owner = true), way), JANUS_STATE);
        CHECK_EQ(from_inside(JANUS_NURSERY_OPTIONS(.budget = &pool), way), JANUS_STATE);
    }
    return 0;
}

TEST("children that may not cancel their nursery may not cancel those around it either")
{
    alone(1, kept_around);
    alone(2, kept_around);
}

static int64_t narrowed_child(void *argument)
{
    const janus_authority *root = caps_root();
    janus_budget           pool = janus_budget_of(100000, 100000, 100000, 100000, 100000);
    janus_cap_limits       limits = {.spawn = {.max_tasks = 10, .task_budget = pool}};
    janus_cap              cap = caps_mint(root, JANUS_CAP_KIND_SPAWN, JANUS_RIGHTS_ALL, &limits);
    (void)argument;
    for (enum way way = 0; way < WAYS; way++) {
        janus_nursery  n;
        struct attempt attempt = {.victim = &n, .way = way};
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(
            janus_spawn_with(&n, try_it, &attempt, JANUS_SPAWN_OPTIONS(.spawn_cap = cap), NULL),
            JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        CHECK_EQ(attempt.said, JANUS_STATE);
    }
    return 0;
}

TEST("a child with capabilities of its own cannot cancel the nursery it was started in")
{
    alone(1, narrowed_child);
    alone(2, narrowed_child);
}

/* Pointers from elsewhere in the tree. */

static int64_t stolen_pointers(void *argument)
{
    (void)argument;
    for (enum way way = 0; way < WAYS; way++) {
        janus_nursery  first, second;
        struct attempt attempt = {.victim = &second, .way = way};
        CHECK_EQ(janus_nursery_open(&first, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_open(&second, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&first, try_it, &attempt), JANUS_OK); /* below `first` alone */
        while (!atomic_load(&attempt.done)) CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK_EQ(janus_nursery_state_of(&second), JANUS_NURSERY_STATE_OPEN);
        CHECK_EQ(janus_nursery_end(&second, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&first, NULL), JANUS_OK);
        CHECK_EQ(attempt.said, JANUS_STATE);
    }
    return 0;
}

TEST("a task that is not below a nursery cannot cancel it in any way, even with its pointer")
{
    alone(1, stolen_pointers);
    alone(2, stolen_pointers);
}

/* A task above a nursery that a child of its own has open. It cancels its own nursery instead. */

static janus_nursery *_Atomic lower;

static int64_t open_and_wait(void *argument)
{
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    atomic_store(&lower, &n);
    CHECK_EQ(janus_sleep(UINT64_MAX), JANUS_CANCELLED);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    return JANUS_CANCELLED;
}

static int64_t from_above(void *argument)
{
    janus_nursery n;
    (void)argument;
    atomic_store(&lower, NULL);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, open_and_wait, NULL), JANUS_OK);
    while (atomic_load(&lower) == NULL) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(atomic_load(&lower)), JANUS_STATE);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("a task cannot cancel a nursery that its child has open, but can cancel the child's")
{
    alone(1, from_above);
    alone(2, from_above);
}

/* What stays allowed if the owner keeps the right. */

static int64_t cancel_token(void *argument)
{
    return janus_token_cancel(argument, JANUS_CANCEL_REASON_EXPLICIT);
}

static int64_t owners_ways(void *argument)
{
    (void)argument;
    for (enum way way = 0; way < WAYS; way++) {
        janus_nursery  n;
        struct attempt attempt = {.victim = &n, .way = way};
        CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.cancel_by_owner = true)), JANUS_OK);
        (void)try_it(&attempt);
        CHECK_EQ(attempt.said, JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    }
    janus_nursery n;
    janus_token  *token = NULL;
    CHECK_EQ(janus_token_create(&token), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.cancel_by_owner = true)), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel_on(&n, token), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, cancel_token, token), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    janus_token_release(token);
    return 0;
}

TEST("an owner that keeps the right cancels in every way, and can share the right by a bound token")
{
    alone(1, owners_ways);
    alone(2, owners_ways);
}

static int64_t sleep_long(void *argument)
{
    (void)argument;
    return janus_sleep(UINT64_MAX);
}

TEST("a plain thread cancels a nursery whose owner keeps the right")
{
    janus_scheduler *scheduler = rig_open(NULL);
    janus_nursery    root;
    CHECK_EQ(
        janus_nursery_open_in(scheduler, &root, JANUS_NURSERY_OPTIONS(.cancel_by_owner = true)),
        JANUS_OK);
    CHECK_EQ(janus_spawn(&root, sleep_long, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&root), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_CANCELLED);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}
