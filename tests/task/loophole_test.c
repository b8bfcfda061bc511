/* SPDX-License-Identifier: MIT */
/*
 * Ways around a budget, a capability or a wait that were open once: units from nothing, lives
 * after a cancel, waits that nobody ends. Each is closed.
 */
#include "energy.h"

static janus_authority *root;

static janus_cap minted(janus_cap_kind kind, const janus_cap_limits *limits, uint64_t holder)
{
    janus_cap cap;
    CHECK_EQ(janus_cap_mint(root, holder,
                            JANUS_CAP_GRANT(.kind = kind, .rights = JANUS_RIGHTS_ALL,
                                            .limits = limits, .delegation_depth = 3),
                            &cap),
             JANUS_OK);
    return cap;
}

static void run(uint32_t workers, janus_entry *entry)
{
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers), entry, NULL, NULL),
             JANUS_OK);
}

/* Memory of a scope stays with its task. */

enum { SCOPES = 8 };

static int64_t keep_of_scopes(void *argument)
{
    (void)argument;
    const size_t           mib = (size_t)1 << 20;
    const janus_cap_limits limits = {
        .spawn = {.max_tasks = 2, .task_budget = {.ops = 10000, .memory = mib}}};
    void *kept[SCOPES] = {0};
    CHECK_EQ(janus_authority_take(NULL, &root), JANUS_OK);
    janus_cap          cap = minted(JANUS_CAP_KIND_SPAWN, &limits, 0);
    const janus_budget before = janus_budget_get_current();
    int                got = 0;
    for (int i = 0; i < SCOPES; i++) {
        janus_nursery n;
        CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.spawn_cap = cap, .scope = true)),
                 JANUS_OK);
        if (janus_try_alloc(mib * 3 / 8, &kept[i]) == JANUS_OK) got++; /* its terms cost, too */
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    }
    CHECK_EQ(got, 2); /* what it has itself */
    for (int i = 0; i < SCOPES; i++) janus_free(kept[i]);
    CHECK_EQ(janus_budget_get_current().memory, before.memory);
    return 0;
}

TEST("a task that keeps memory from a scope is charged for it") { run(2, keep_of_scopes); }

/* A scope is no new life. */

static janus_cap   handed;
static atomic_int  ready;
static atomic_long after_cancel;

static int64_t live_on_scopes(void *argument)
{
    (void)argument;
    CHECK(rig_wait(&ready)); /* it may be cancelled by then */
    while (!janus_cancelled()) JANUS_IGNORE(janus_yield());
    janus_nursery n;
    janus_status  status =
        janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.spawn_cap = handed, .scope = true));
    CHECK_EQ(status, JANUS_CANCELLED);
    for (;;) { /* its allowance is all it has */
        atomic_fetch_add(&after_cancel, 1);
        JANUS_IGNORE(janus_check());
    }
    return 0;
}

static int64_t cancel_the_stubborn(void *argument)
{
    (void)argument;
    const janus_cap_limits limits = {.spawn = {.max_tasks = 2, .task_budget = {.ops = 9000}}};
    janus_nursery          n;
    janus_task_id          id;
    atomic_store(&ready, 0);
    atomic_store(&after_cancel, 0);
    CHECK_EQ(janus_authority_take(NULL, &root), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, live_on_scopes, NULL, NULL, &id), JANUS_OK);
    handed = minted(JANUS_CAP_KIND_SPAWN, &limits, id);
    atomic_store(&ready, 1);
    CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    CHECK(after_cancel <= 3 * JANUS_SLICE);
    return 0;
}

TEST("a cancelled task enters no scope, and ends with its allowance")
{
    run(1, cancel_the_stubborn);
    run(2, cancel_the_stubborn);
}

/* Recharging fills no pool. */

static int64_t recharge_and_go(void *argument)
{
    janus_budget got;
    (void)argument;
    janus_status status = janus_budget_recharge_current(janus_budget_of(1000, 0, 5, 0, 0), &got);
    return status >= 0 ? 0 : status;
}

static int64_t fill_pool(void *argument)
{
    (void)argument;
    const janus_cap_limits  limits = {.budget = {.cpu_budget = 10000, .spawn_limit = 50}};
    const janus_budget      pool = {5000, 0, 20, 0, 0};
    janus_nursery           n;
    janus_nursery_pool_info books = JANUS_NURSERY_POOL_INFO();
    CHECK_EQ(janus_authority_take(NULL, &root), JANUS_OK);
    janus_cap cap = minted(JANUS_CAP_KIND_BUDGET, &limits, 0);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool, .budget_cap = cap)),
             JANUS_OK);
    for (int i = 0; i < 20; i++) {
        janus_task_id id;
        CHECK_EQ(janus_spawn_with(&n, recharge_and_go, NULL, NULL, &id), JANUS_OK);
        CHECK_EQ(janus_join(&n, id, NULL), JANUS_OK);
    }
    CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_SPAWN_BUDGET);
    CHECK_EQ(janus_nursery_pool_inspect(&n, &books), JANUS_OK);
    CHECK(books.left.ops <= pool.ops && books.left.spawn_count == 0);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("units that children recharge themselves with do not fill the pool") { run(2, fill_pool); }

/* A supervisor's callback has a slice. */

static janus_verdict think_for_ever(void *argument, const janus_exhausted *child,
                                    janus_budget *grant)
{
    (void)argument, (void)child, (void)grant;
    for (;;) JANUS_IGNORE(janus_check());
    return JANUS_VERDICT_IGNORE;
}

static int64_t ask_for_ever(void *argument)
{
    (void)argument;
    const janus_budget   pool = {500, 0, 1, 0, 0};
    janus_nursery        n;
    janus_nursery_result result;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool,
                                                          .exhaustion = JANUS_EXHAUSTION_SUPERVISE,
                                                          .on_exhausted = think_for_ever)),
             JANUS_OK);
    CHECK_EQ(janus_spawn(&n, spin, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.error, JANUS_BUDGET_EXHAUSTED);
    return 0;
}

TEST("a callback that never decides ends with the child that it was asked for")
{
    run(1, ask_for_ever);
    run(2, ask_for_ever);
}

/* The fast end, with a child that waits for an exhausted one, and a clock that ticks. */

static janus_channel between;
static atomic_int    spent;

static void close_between(void *argument)
{
    (void)argument;
    (void)janus_channel_close(between);
}

static int64_t use_up(void *argument)
{
    (void)argument;
    CHECK_EQ(janus_defer(close_between, NULL), JANUS_OK);
    atomic_store(&spent, 1);
    while (janus_check() == JANUS_OK) continue;
    return 0;
}

static int64_t wait_for_close(void *argument)
{
    int value;
    (void)argument;
    CHECK_EQ(janus_channel_recv(between, &value), JANUS_CLOSED);
    return 0;
}

static int64_t tick(void *argument)
{
    (void)argument;
    while (janus_sleep(rig_ms) == JANUS_OK) continue;
    return JANUS_CANCELLED;
}

static int64_t end_fast(void *argument)
{
    (void)argument;
    const janus_budget pool = {50000, 4096, 4, 100, 0}, share = {20000, 0, 0, 10, 0};
    janus_nursery      around, n;
    janus_exhausted    child;
    atomic_store(&spent, 0);
    CHECK_EQ(janus_channel_create(sizeof(int), 4, NULL, &between), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&around, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&around, tick, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool,
                                                          .exhaustion = JANUS_EXHAUSTION_MANUAL,
                                                          .policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, use_up, NULL, JANUS_SPAWN_OPTIONS(.budget = &share), NULL),
             JANUS_OK);
    while (!janus_nursery_poll_exhausted(&n, &child)) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(
        janus_spawn_with(&n, wait_for_close, NULL, JANUS_SPAWN_OPTIONS(.budget = &share), NULL),
        JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    CHECK_EQ(janus_nursery_cancel(&around), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&around, NULL), JANUS_CANCELLED);
    CHECK_EQ(janus_channel_destroy(between), JANUS_OK);
    return 0;
}

TEST("an end that runs children in place first ends the exhausted ones that they may wait for")
{
    run(1, end_fast);
    run(2, end_fast);
}

/* Restrictions, policies, explicit budgets. */

static janus_nursery *further_out;

static int64_t break_out(void *argument)
{
    (void)argument;
    janus_nursery n;
    CHECK_EQ(janus_spawn(further_out, nothing, NULL), JANUS_CAP_WIDENS);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

static int64_t restrict_child(void *argument)
{
    (void)argument;
    const janus_cap_limits limits = {.spawn = {.max_tasks = 2, .task_budget = {.ops = 9000}}};
    janus_nursery          n;
    CHECK_EQ(janus_authority_take(NULL, &root), JANUS_OK);
    janus_cap cap = minted(JANUS_CAP_KIND_SPAWN, &limits, 0);
    further_out = &n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    janus_task_id id;
    CHECK_EQ(janus_spawn_with(&n, break_out, NULL, JANUS_SPAWN_OPTIONS(.spawn_cap = cap), &id),
             JANUS_OK);
    CHECK_EQ(janus_join(&n, id, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a task that was restricted starts nothing in nurseries further out")
{
    run(2, restrict_child);
}

static int64_t loosen(void *argument)
{
    const janus_budget pool = {1000, 0, 2, 0, 0};
    janus_nursery      n;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.exhaustion = JANUS_EXHAUSTION_AUTO)),
             JANUS_CAP_WIDENS);
    CHECK_EQ(janus_nursery_open(
                 &n, JANUS_NURSERY_OPTIONS(.exhaustion = JANUS_EXHAUSTION_AUTO, .budget = &pool)),
             JANUS_OK); /* it may dispose of its own */
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return count_me(argument);
}

static int64_t hard_opens_pool(void *argument)
{
    const janus_budget pool = {1000, 0, 5, 0, 0};
    janus_nursery      n;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_NO_BUDGET_CAP);
    return count_me(argument);
}

static int64_t watch_over(void *argument)
{
    (void)argument;
    const janus_budget pool = {50000, 0, 5, 0, 0}, share = {500, 0, 0, 0, 0};
    janus_nursery      n;
    atomic_int         ran = 0;
    CHECK_EQ(janus_nursery_open(
                 &n, JANUS_NURSERY_OPTIONS(.budget = &pool, .exhaustion = JANUS_EXHAUSTION_MANUAL)),
             JANUS_OK);
    CHECK_EQ(janus_spawn(&n, loosen, &ran), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(
        janus_spawn_with(&n, hard_opens_pool, &ran, JANUS_SPAWN_OPTIONS(.budget = &share), NULL),
        JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(ran, 2);
    return 0;
}

TEST("inside a pool nobody loosens its policy, and an explicit budget opens no pool of its own")
{
    run(2, watch_over);
}

/* What the runtime holds. */

static void do_nothing(void *argument) { (void)argument; }

static int64_t hold_much(void *argument)
{
    (void)argument;
    int defers = 0, blocks = 0;
    while (janus_defer(do_nothing, NULL) == JANUS_OK) defers++;
    CHECK_EQ(defers, 4097);
    void *block;
    while (blocks < 100 && (block = janus_alloc_aligned(32768, 16)) != NULL) {
        CHECK_EQ((uintptr_t)block % 32768, 0);
        blocks++;
        if (janus_budget_get_current().memory < 40000) break;
    }
    CHECK_EQ(blocks, 31); /* of 32 KiB in a MiB */
    return 0;
}

TEST("defers have a limit, and alignment is paid for") { run(2, hold_much); }

/* A pool whose supervisor is not asked. */

static int64_t needs_more(void *argument)
{
    for (int i = 0; i < 25; i++) {
        if (janus_check() != JANUS_OK) return JANUS_CANCELLED;
    }
    return count_me(argument);
}

static void spawn_ten(janus_nursery *n, void *done)
{
    const janus_budget ten = janus_price_loop(10);
    CHECK_EQ(janus_spawn_with(n, needs_more, done, JANUS_SPAWN_OPTIONS(.budget = &ten), NULL),
             JANUS_OK);
}

static int64_t draw_unasked(void *argument)
{
    janus_nursery        n;
    janus_nursery_result result;
    atomic_int          *done = argument;
    janus_nursery        inner;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.exhaustion = JANUS_EXHAUSTION_AUTO)),
             JANUS_CAP_WIDENS);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.exhaustion = JANUS_EXHAUSTION_END)),
             JANUS_OK);
    CHECK_EQ(janus_nursery_open(&inner, JANUS_NURSERY_OPTIONS(.exhaustion = JANUS_EXHAUSTION_AUTO)),
             JANUS_OK);
    spawn_ten(&inner, done);
    CHECK_EQ(janus_nursery_end(&inner, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.error, JANUS_BUDGET_EXHAUSTED);
    spawn_ten(&n, done);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.error, JANUS_BUDGET_EXHAUSTED);
    return 0;
}

static int64_t supervise_drawers(void *argument)
{
    janus_budget  pool = janus_budget_of(10000, 1 << 16, 9, 0, 0), some = {1000, 1 << 14, 4, 0, 0};
    atomic_int    done = 0;
    janus_nursery n;
    (void)argument;
    CHECK_EQ(
        janus_nursery_open(
            &n, JANUS_NURSERY_OPTIONS(.budget = &pool, .exhaustion = JANUS_EXHAUSTION_SUPERVISE)),
        JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, draw_unasked, &done, JANUS_SPAWN_OPTIONS(.budget = &some), NULL),
             JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(done, 0);
    return 0;
}

TEST("in a supervised pool a nursery with END draws nothing, because nobody would be asked")
{
    rig_all(supervise_drawers, NULL, 3);
}
