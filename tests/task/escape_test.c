/* SPDX-License-Identifier: MIT */
/*
 * Ways out of a restriction by public calls: a spawn further out, a blocking call, a callback, an
 * own scheduler. All are closed.
 */
#include "caps.h"

static janus_nursery *further_out;
static atomic_int     over; /* children that tried */

/* As the first task, in :service. */
static void alone(uint32_t workers, janus_entry *entry)
{
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers), entry, NULL, NULL),
             JANUS_OK);
}

/* Spawning further out. */

static int64_t spawn_outside(void *argument)
{
    (void)argument;
    return janus_spawn(further_out, nothing, NULL);
}

static int64_t break_out(void *argument)
{
    janus_nursery n;
    int64_t       result = JANUS_OK;
    (void)argument;
    CHECK_EQ(spawn_outside(NULL), JANUS_CAP_WIDENS);
    CHECK_EQ(janus_blocking(spawn_outside, NULL, &result), JANUS_OK);
    CHECK_EQ(result, JANUS_CAP_WIDENS);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    atomic_fetch_add(&over, 1);
    return 0;
}

/* Waits until this many have tried: their nurseries must be open meanwhile. */
static void await_tries(int count)
{
    while (atomic_load(&over) < count) CHECK_EQ(janus_yield(), JANUS_OK);
    atomic_store(&over, 0);
}

static const janus_cap_kind kinds[] = {JANUS_CAP_KIND_SPAWN, JANUS_CAP_KIND_BUDGET,
                                       JANUS_CAP_KIND_CHANNEL, JANUS_CAP_KIND_EXECUTOR};

static janus_cap any_cap(const janus_authority *root, janus_cap_kind kind)
{
    janus_cap_limits limits = {0};
    switch (kind) {
    case JANUS_CAP_KIND_SPAWN:
        limits.spawn = (janus_spawn_limits){.max_tasks = 9, .task_budget = janus_budget_default()};
        break;
    case JANUS_CAP_KIND_BUDGET: limits.budget.cpu_budget = 1000; break;
    case JANUS_CAP_KIND_CHANNEL: limits.channel.max_channels = 1; break;
    case JANUS_CAP_KIND_EXECUTOR:
        limits.executor.allowed_backends = JANUS_BACKEND_SET(JANUS_BACKEND_COOPERATIVE);
        break;
    default: break;
    }
    return caps_mint(root, kind, JANUS_RIGHTS_ALL, &limits);
}

static janus_cap only(janus_cap_kind wanted, janus_cap_kind kind, janus_cap cap)
{
    return wanted == kind ? cap : (janus_cap){0};
}

static int64_t restrict_by_each_kind(void *argument)
{
    const janus_authority *root = caps_root();
    (void)argument;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        janus_cap     cap = any_cap(root, kinds[i]);
        janus_nursery out, in;
        CHECK_EQ(janus_nursery_open(&out, NULL), JANUS_OK);
        further_out = &out;
        CHECK_EQ(
            janus_spawn_with(
                &out, break_out, NULL,
                JANUS_SPAWN_OPTIONS(.spawn_cap = only(JANUS_CAP_KIND_SPAWN, kinds[i], cap),
                                    .budget_cap = only(JANUS_CAP_KIND_BUDGET, kinds[i], cap),
                                    .channel_cap = only(JANUS_CAP_KIND_CHANNEL, kinds[i], cap),
                                    .executor_cap = only(JANUS_CAP_KIND_EXECUTOR, kinds[i], cap)),
                NULL),
            JANUS_OK);
        CHECK_EQ(janus_nursery_open(
                     &in, JANUS_NURSERY_OPTIONS(
                                  .spawn_cap = only(JANUS_CAP_KIND_SPAWN, kinds[i], cap),
                                  .budget_cap = only(JANUS_CAP_KIND_BUDGET, kinds[i], cap),
                                  .channel_cap = only(JANUS_CAP_KIND_CHANNEL, kinds[i], cap),
                                  .executor_cap = only(JANUS_CAP_KIND_EXECUTOR, kinds[i], cap))),
                 JANUS_OK);
        CHECK_EQ(janus_spawn(&in, break_out, NULL), JANUS_OK);
        CHECK_EQ(spawn_outside(NULL), JANUS_OK); /* the owner is not restricted */
        await_tries(2);
        CHECK_EQ(janus_nursery_end(&in, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&out, NULL), JANUS_OK);
    }
    return 0;
}

TEST("a task restricted by a capability of any kind starts nothing outside of it")
{
    alone(1, restrict_by_each_kind);
    alone(2, restrict_by_each_kind);
    alone(8, restrict_by_each_kind);
}

static int64_t restrict_by_pool(void *argument)
{
    const janus_budget pool = {60000, 1 << 20, 5, 0, 100};
    const janus_budget share = {20000, 1 << 16, 2, 0, 20};
    janus_nursery      out, in;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&out, NULL), JANUS_OK);
    further_out = &out;
    CHECK_EQ(janus_nursery_open(&in, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&in, break_out, NULL, JANUS_SPAWN_OPTIONS(.budget = &share), NULL),
             JANUS_OK);
    await_tries(1);
    CHECK_EQ(janus_nursery_end(&in, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&out, NULL), JANUS_OK);
    return 0;
}

TEST("a child that a pool pays for starts nothing outside the pool")
{
    alone(1, restrict_by_pool);
    alone(2, restrict_by_pool);
}

static int64_t restrict_by_scope(void *argument)
{
    janus_cap     cap = any_cap(caps_root(), JANUS_CAP_KIND_SPAWN);
    janus_nursery out, in, inner;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&out, NULL), JANUS_OK);
    further_out = &out;
    CHECK_EQ(spawn_outside(NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&in, JANUS_NURSERY_OPTIONS(.spawn_cap = cap, .scope = true)),
             JANUS_OK);
    CHECK_EQ(spawn_outside(NULL), JANUS_CAP_WIDENS);
    CHECK_EQ(janus_nursery_open(&inner, JANUS_NURSERY_OPTIONS(.spawn_cap = cap, .scope = true)),
             JANUS_OK);
    CHECK_EQ(janus_spawn(&in, nothing, NULL), JANUS_CAP_WIDENS);
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    CHECK_EQ(spawn_outside(NULL), JANUS_CAP_WIDENS);
    CHECK_EQ(janus_spawn(&in, nothing, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&in, NULL), JANUS_OK);
    CHECK_EQ(spawn_outside(NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&out, NULL), JANUS_OK);
    return 0;
}

TEST("a task in a scope starts nothing in its own nurseries around the scope")
{
    alone(1, restrict_by_scope);
    alone(2, restrict_by_scope);
}

/* Callbacks of tokens: on the account, and with the authority, of the task that registered them. */

struct caller {
    janus_token *token;
    atomic_int   ready, called, ended_well;
    janus_status spawned, waited, slept, made;
};

static void try_all(void *argument)
{
    struct caller *caller = argument;
    janus_token   *token;
    janus_channel  channel;
    caller->spawned = janus_spawn(further_out, nothing, NULL);
    caller->slept = janus_sleep(UINT64_C(1) << 60);
    caller->made = janus_token_create(&token);
    CHECK(janus_channel_create(4, 4, NULL, &channel) != JANUS_OK);
    atomic_store(&caller->called, 1);
}

static void panic_in_callback(void *argument)
{
    (void)argument;
    janus_panic("not today");
}

static void spin_in_callback(void *argument)
{
    (void)argument;
    for (;;) JANUS_IGNORE(janus_check());
}

static void spin_by_calls(void *argument)
{
    struct caller *caller = argument;
    for (;;) (void)janus_token_remove(caller->token, 12345);
}

static int dig(volatile char *above)
{
    volatile char frame[4096];
    frame[0] = above != NULL ? above[0] : 1;
    return frame[0] != 0 ? dig(frame) + frame[0] : 0;
}

static void overflow_in_callback(void *argument)
{
    (void)argument;
    (void)dig(NULL);
}

static int64_t register_all(void *argument)
{
    struct caller *caller = argument;
    CHECK_EQ(janus_token_on_cancel(caller->token, try_all, caller, NULL), JANUS_OK);
    CHECK_EQ(janus_token_on_cancel(caller->token, panic_in_callback, NULL, NULL), JANUS_OK);
    CHECK_EQ(janus_token_on_cancel(caller->token, spin_in_callback, NULL, NULL), JANUS_OK);
    CHECK_EQ(janus_token_on_cancel(caller->token, spin_by_calls, caller, NULL), JANUS_OK);
    if (!JRT_TSAN) {
        CHECK_EQ(janus_token_on_cancel(caller->token, overflow_in_callback, NULL, NULL), JANUS_OK);
    }
    atomic_store(&caller->ready, 1);
    while (!atomic_load(&caller->called)) CHECK_EQ(janus_yield(), JANUS_OK);
    return 0;
}

static int64_t call_back(void *argument)
{
    janus_cap     cap = any_cap(caps_root(), JANUS_CAP_KIND_CHANNEL);
    struct caller caller = {.spawned = JANUS_OK};
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_token_create(&caller.token), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    further_out = &n;
    CHECK_EQ(
        janus_spawn_with(&n, register_all, &caller, JANUS_SPAWN_OPTIONS(.channel_cap = cap), NULL),
        JANUS_OK);
    while (!atomic_load(&caller.ready)) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_token_cancel(caller.token, JANUS_CANCEL_REASON_EXPLICIT), JANUS_OK);
    CHECK_EQ(atomic_load(&caller.called), 1);
    CHECK_EQ(caller.spawned, JANUS_CAP_WIDENS);
    CHECK_EQ(caller.slept, JANUS_DEADLINE);
    CHECK_EQ(caller.made, JANUS_STATE);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    janus_token_release(caller.token);
    return 0;
}

TEST("a callback has the authority of its task, waits for nothing, makes nothing and ends alone")
{
    if (JRT_ASAN) SKIP("AddressSanitizer knows one stack where a function does not return");
    alone(1, call_back);
    alone(2, call_back);
    alone(8, call_back);
}

static void set_flag(void *argument) { atomic_store((atomic_int *)argument, 1); }

static int64_t leave_callback(void *argument)
{
    struct caller *caller = argument;
    CHECK_EQ(janus_token_on_cancel(caller->token, set_flag, &caller->called, NULL), JANUS_OK);
    return 0;
}

static int64_t outlive(void *argument)
{
    struct caller caller = {.spawned = JANUS_OK};
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_token_create(&caller.token), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, leave_callback, &caller), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_token_cancel(caller.token, JANUS_CANCEL_REASON_EXPLICIT), JANUS_OK);
    CHECK_EQ(atomic_load(&caller.called), 0);
    janus_token_release(caller.token);
    return 0;
}

TEST("a callback does not outlive the task that registered it")
{
    if (JRT_ASAN) SKIP("AddressSanitizer knows one stack where a function does not return");
    alone(1, outlive);
    alone(2, outlive);
}

TEST("a panic in a callback of a plain thread ends the callback alone")
{
    if (JRT_ASAN) SKIP("AddressSanitizer knows one stack where a function does not return");
    janus_token *token;
    atomic_int   called = 0;
    CHECK_EQ(janus_token_create(&token), JANUS_OK);
    CHECK_EQ(janus_token_on_cancel(token, set_flag, &called, NULL), JANUS_OK);
    CHECK_EQ(janus_token_on_cancel(token, panic_in_callback, NULL, NULL), JANUS_OK);
    CHECK_EQ(janus_token_cancel(token, JANUS_CANCEL_REASON_EXPLICIT), JANUS_OK);
    CHECK_EQ(atomic_load(&called), 1);
    janus_token_release(token);
}

/* Memory that the library holds. */

enum { MANY = 20000 };

static int64_t hoard_tokens(void *argument)
{
    static janus_token *tokens[MANY];
    const janus_budget  before = janus_budget_get_current();
    int                 made = 0;
    (void)argument;
    while (made < MANY && janus_token_create(&tokens[made]) == JANUS_OK) made++;
    CHECK(made > 100 && made < MANY); /* one mebibyte */
    for (int i = 0; i < made; i++) janus_token_release(tokens[i]);
    CHECK_EQ(janus_budget_get_current().memory, before.memory);
    janus_token *token;
    CHECK_EQ(janus_token_create(&token), JANUS_OK);
    janus_status status = JANUS_OK;
    int          hooks = 0;
    for (; hooks < MANY && status == JANUS_OK; hooks++) {
        status = janus_token_on_cancel(token, set_flag, NULL, NULL);
    }
    CHECK_EQ(status, JANUS_BUDGET_EXHAUSTED);
    janus_token_release(token);
    CHECK_EQ(janus_budget_get_current().memory, before.memory);
    janus_nursery n;
    CHECK_EQ(janus_token_create(&token), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    do status = janus_nursery_cancel_on(&n, token);
    while (status == JANUS_OK);
    CHECK_EQ(status, JANUS_BUDGET_EXHAUSTED);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    janus_token_release(token);
    CHECK_EQ(janus_budget_get_current().memory, before.memory);
    return 0;
}

TEST("the task that makes tokens, callbacks and bindings pays for them")
{
    if (JRT_ASAN) SKIP("AddressSanitizer knows one stack where a function does not return");
    alone(1, hoard_tokens);
    alone(2, hoard_tokens);
}
