/* SPDX-License-Identifier: MIT */
/*
 * A refused call takes nothing but the op of the attempt. The test repeats every call that charges
 * in a simulated world. Each time the world refuses another of the things that the call asks for.
 */
#include "plat/world.h"
#include "rig.h"

#include <stdio.h>
#include <string.h>

enum { ASKED_MAX = 60, CASES = 3, BIG = 1 << 20 };

/* The world refuses the nth request. */
static struct {
    int  nth, asked;
    bool armed;
} refusal;

static bool refuse(struct jrt_world *world, enum jrt_fault fault)
{
    (void)world;
    if (!refusal.armed || fault == JRT_FAULT_WAKE || fault == JRT_FAULT_DEATH) return false;
    return refusal.asked++ == refusal.nth;
}

/* One attempt, and the books before it. */
struct attempt {
    void                    (*row)(struct attempt *attempt);
    const char             *name;
    janus_nursery          *pool; /* its books are compared, too; NULL: none */
    janus_budget            before;
    janus_nursery_pool_info books;
    janus_status            status;
    bool                    ran;
};

static void same_but_an_op(const char *name, janus_budget before, janus_budget after)
{
    bool paid = before.ops - after.ops <= CASES; /* a select: one for each case */
    bool same = before.memory == after.memory && before.spawn_count == after.spawn_count &&
                before.channel_ops == after.channel_ops && before.syscalls == after.syscalls;
    if (paid && same) return;
    printf("# %s, refused at %d: ops %llu -> %llu, memory %llu -> %llu, spawns %llu -> %llu, "
           "channel %llu -> %llu, syscalls %llu -> %llu\n",
           name, refusal.nth, (unsigned long long)before.ops, (unsigned long long)after.ops,
           (unsigned long long)before.memory, (unsigned long long)after.memory,
           (unsigned long long)before.spawn_count, (unsigned long long)after.spawn_count,
           (unsigned long long)before.channel_ops, (unsigned long long)after.channel_ops,
           (unsigned long long)before.syscalls, (unsigned long long)after.syscalls);
    CHECK(paid && same);
}

static void begin(struct attempt *attempt)
{
    if (attempt->pool != NULL) {
        attempt->books = JANUS_NURSERY_POOL_INFO();
        CHECK_EQ(janus_nursery_pool_inspect(attempt->pool, &attempt->books), JANUS_OK);
    }
    attempt->before = janus_budget_get_current();
    attempt->ran = true;
    refusal.asked = 0;
    refusal.armed = true;
}

static janus_status finish(struct attempt *attempt, janus_status status)
{
    janus_nursery_pool_info books = JANUS_NURSERY_POOL_INFO();
    refusal.armed = false;
    attempt->status = status;
    if (status == JANUS_OK) return status;
    same_but_an_op(attempt->name, attempt->before, janus_budget_get_current());
    if (attempt->pool == NULL) return status;
    CHECK_EQ(janus_nursery_pool_inspect(attempt->pool, &books), JANUS_OK);
    same_but_an_op(attempt->name, attempt->books.left, books.left);
    CHECK(janus_budget_equal(attempt->books.shares, books.shares));
    CHECK(janus_budget_equal(attempt->books.nested, books.nested));
    return status;
}

#define ATTEMPT(attempt, call) (begin(attempt), finish(attempt, call))

static janus_status got(const void *block) { return block != NULL ? JANUS_OK : JANUS_NO_MEMORY; }

static int64_t idle(void *argument) { return argument == NULL ? 0 : -1; }

static void do_nothing(void *argument) { (void)argument; }

/* Rows: children. */

static void in_nursery(struct attempt *attempt, const janus_nursery_options *options,
                       const janus_spawn_options *spawn, bool pool)
{
    janus_nursery n;
    janus_status  opened = janus_nursery_open(&n, options);
    if (opened != JANUS_OK) printf("# %s: %s\n", attempt->name, janus_status_name(opened));
    CHECK_EQ(opened, JANUS_OK);
    if (pool) attempt->pool = &n;
    janus_task_id id;
    (void)ATTEMPT(attempt, janus_spawn_with(&n, idle, NULL, spawn, &id));
    attempt->pool = NULL;
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
}

static void row_spawn(struct attempt *attempt) { in_nursery(attempt, NULL, NULL, false); }

static void row_spawn_budget(struct attempt *attempt)
{
    const janus_budget budget = {.ops = 100, .memory = 1000};
    in_nursery(attempt, NULL, JANUS_SPAWN_OPTIONS(.budget = &budget), false);
}

static void row_spawn_pool(struct attempt *attempt)
{
    const janus_budget pool = {.ops = 1000, .memory = 10000, .spawn_count = 5, .channel_ops = 3};
    in_nursery(attempt, JANUS_NURSERY_OPTIONS(.budget = &pool), NULL, true);
}

static void row_spawn_pool_stack(struct attempt *attempt)
{
    const janus_budget pool = {.ops = 1000, .memory = 10000, .spawn_count = 5};
    in_nursery(attempt, JANUS_NURSERY_OPTIONS(.budget = &pool),
               JANUS_SPAWN_OPTIONS(.stack_bytes = BIG), true);
    CHECK_EQ(attempt->status, JANUS_SPAWN_BUDGET);
}

static void row_spawn_pool_full(struct attempt *attempt)
{
    const janus_budget pool = {.ops = 1000, .memory = 10000, .spawn_count = 5};
    janus_nursery      n;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool, .max_children = 1,
                                                          .when_full = JANUS_WHEN_FULL_REFUSE)),
             JANUS_OK);
    CHECK_EQ(janus_spawn(&n, idle, NULL), JANUS_OK);
    attempt->pool = &n;
    CHECK_EQ(ATTEMPT(attempt, janus_spawn(&n, idle, NULL)), JANUS_FULL);
    attempt->pool = NULL;
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
}

static void row_spawn_closed(struct attempt *attempt)
{
    const janus_budget pool = {.ops = 1000, .memory = 10000, .spawn_count = 5};
    janus_nursery      n;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    janus_nursery_close(&n);
    attempt->pool = &n;
    CHECK_EQ(ATTEMPT(attempt, janus_spawn(&n, idle, NULL)), JANUS_CLOSED);
    attempt->pool = NULL;
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
}

/* Nurseries. */

static void row_nursery(struct attempt *attempt)
{
    const janus_budget outer = {.ops = 1000, .memory = 10000, .spawn_count = 5};
    const janus_budget inner = {.ops = 100, .memory = 1000, .spawn_count = 2};
    janus_nursery      n, m;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &outer)), JANUS_OK);
    attempt->pool = &n;
    janus_status status = ATTEMPT(
        attempt, janus_nursery_open(&m, JANUS_NURSERY_OPTIONS(.budget = &inner,
                                                              .deadline_ns = UINT64_C(1) << 60)));
    attempt->pool = NULL;
    if (status == JANUS_OK) JANUS_IGNORE(janus_nursery_end(&m, NULL));
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
}

static void row_token_bind(struct attempt *attempt)
{
    janus_nursery n;
    janus_token  *token;
    CHECK_EQ(janus_token_create(&token), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    (void)ATTEMPT(attempt, janus_nursery_cancel_on(&n, token));
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    janus_token_release(token);
}

static void row_token(struct attempt *attempt)
{
    janus_token *token = NULL;
    if (ATTEMPT(attempt, janus_token_create(&token)) == JANUS_OK) janus_token_release(token);
}

static void row_token_hook(struct attempt *attempt)
{
    janus_token       *token;
    janus_token_handle handle;
    CHECK_EQ(janus_token_create(&token), JANUS_OK);
    (void)ATTEMPT(attempt, janus_token_on_cancel(token, do_nothing, NULL, &handle));
    janus_token_release(token);
}

static void row_defer(struct attempt *attempt)
{
    CHECK_EQ(janus_defer(do_nothing, NULL), JANUS_OK);
    CHECK_EQ(janus_defer(do_nothing, NULL), JANUS_OK);
    (void)ATTEMPT(attempt, janus_defer(do_nothing, NULL));
}

static int64_t return_7(void *argument) { return argument == NULL ? 7 : 0; }

static void row_blocking(struct attempt *attempt)
{
    int64_t result;
    (void)ATTEMPT(attempt, janus_blocking(return_7, NULL, &result));
}

/* Memory. */

static void row_alloc(struct attempt *attempt) { (void)ATTEMPT(attempt, got(janus_alloc(100))); }

static void row_zeroed(struct attempt *attempt)
{
    (void)ATTEMPT(attempt, got(janus_alloc_zeroed(10, 20000)));
}

static void row_aligned(struct attempt *attempt)
{
    (void)ATTEMPT(attempt, got(janus_alloc_aligned(256, 100)));
}

static void row_try_alloc(struct attempt *attempt)
{
    void *block;
    (void)ATTEMPT(attempt, janus_try_alloc(100, &block));
}

static void row_try_alloc_large(struct attempt *attempt)
{
    void *block;
    (void)ATTEMPT(attempt, janus_try_alloc(200000, &block));
}

static void row_try_alloc_short(struct attempt *attempt)
{
    void *block;
    (void)janus_alloc(1);
    janus_status status = ATTEMPT(attempt, janus_try_alloc((size_t)1 << 40, &block));
    CHECK_EQ(status, JANUS_BUDGET_EXHAUSTED);
}

static void row_realloc(struct attempt *attempt)
{
    void *block = janus_alloc(100);
    CHECK(block != NULL);
    (void)ATTEMPT(attempt, got(janus_realloc(block, 200000)));
}

static void row_realloc_large(struct attempt *attempt)
{
    void *block = janus_alloc(100000);
    CHECK(block != NULL);
    (void)ATTEMPT(attempt, got(janus_realloc(block, 300000)));
}

static void row_detach(struct attempt *attempt)
{
    void *block = janus_alloc(100), *apart;
    CHECK(block != NULL);
    janus_status status = ATTEMPT(attempt, got(apart = janus_detach(block)));
    if (status == JANUS_OK) janus_discard(apart);
}

static void row_adopt(struct attempt *attempt)
{
    void *block = janus_detach(janus_alloc(100));
    CHECK(block != NULL);
    if (ATTEMPT(attempt, janus_adopt(block)) != JANUS_OK) janus_discard(block);
}

/* Channels. */

static void row_channel(struct attempt *attempt)
{
    janus_channel channel;
    janus_status  status = ATTEMPT(attempt, janus_channel_create(8, 100, NULL, &channel));
    if (status == JANUS_OK) (void)janus_channel_destroy(channel);
}

static void row_channel_short(struct attempt *attempt)
{
    janus_channel channel;
    janus_status  status = ATTEMPT(attempt, janus_channel_create(1 << 20, 900, NULL, &channel));
    CHECK(status != JANUS_OK);
}

static janus_channel channel_of(uint64_t capacity, janus_overflow overflow)
{
    janus_channel channel;
    CHECK_EQ(
        janus_channel_create(8, capacity, JANUS_CHANNEL_OPTIONS(.overflow = overflow), &channel),
        JANUS_OK);
    return channel;
}

static void row_send(struct attempt *attempt)
{
    uint64_t      value = 1;
    janus_channel channel;
    CHECK_EQ(janus_channel_create_unbounded(8, 1 << 16, NULL, &channel), JANUS_OK);
    (void)ATTEMPT(attempt, janus_channel_send(channel, &value));
}

static void row_try_send(struct attempt *attempt)
{
    uint64_t      value = 1;
    janus_channel channel;
    CHECK_EQ(janus_channel_create_unbounded(8, 1 << 16, NULL, &channel), JANUS_OK);
    (void)ATTEMPT(attempt, janus_channel_try_send(channel, &value));
}

static void row_select_send(struct attempt *attempt)
{
    uint64_t      value = 1;
    janus_channel channel;
    CHECK_EQ(janus_channel_create_unbounded(8, 1 << 16, NULL, &channel), JANUS_OK);
    janus_select_case cases[] = {janus_case_send(channel, &value)};
    (void)ATTEMPT(attempt, janus_select(cases, 1, NULL));
}

static void row_send_full(struct attempt *attempt)
{
    uint64_t      value = 1;
    janus_channel channel = channel_of(1, JANUS_OVERFLOW_FAIL);
    CHECK_EQ(janus_channel_send(channel, &value), JANUS_OK);
    CHECK_EQ(ATTEMPT(attempt, janus_channel_send(channel, &value)), JANUS_FULL);
}

static void row_would_wait(struct attempt *attempt)
{
    uint64_t      value;
    janus_channel channel = channel_of(1, JANUS_OVERFLOW_BLOCK);
    CHECK_EQ(ATTEMPT(attempt, janus_channel_try_recv(channel, &value)), JANUS_WOULD_WAIT);
}

static void row_closed(struct attempt *attempt)
{
    uint64_t      value = 1;
    janus_channel channel = channel_of(1, JANUS_OVERFLOW_BLOCK);
    CHECK_EQ(janus_channel_close(channel), JANUS_OK);
    CHECK_EQ(ATTEMPT(attempt, janus_channel_send(channel, &value)), JANUS_CLOSED);
    CHECK_EQ(ATTEMPT(attempt, janus_channel_recv(channel, &value)), JANUS_CLOSED);
}

static void row_stale(struct attempt *attempt)
{
    uint64_t      value = 1;
    janus_channel channel = channel_of(1, JANUS_OVERFLOW_BLOCK);
    CHECK_EQ(janus_channel_destroy(channel), JANUS_OK);
    CHECK_EQ(ATTEMPT(attempt, janus_channel_send(channel, &value)), JANUS_STALE);
}

static void row_late(struct attempt *attempt)
{
    uint64_t      value = 1;
    janus_channel channel = channel_of(1, JANUS_OVERFLOW_BLOCK);
    uint64_t      soon = janus_now_ns() + rig_ms;
    janus_status  status = ATTEMPT(attempt, janus_channel_recv_until(channel, &value, soon));
    CHECK(status == JANUS_DEADLINE || status == JANUS_NO_MEMORY);
}

static void row_select(struct attempt *attempt)
{
    uint64_t          values[CASES];
    janus_select_case cases[CASES];
    for (int i = 0; i < CASES; i++) {
        cases[i] = janus_case_recv(channel_of(1, JANUS_OVERFLOW_BLOCK), &values[i]);
    }
    CHECK_EQ(ATTEMPT(attempt, janus_try_select(cases, CASES, NULL)), JANUS_WOULD_WAIT);
    uint64_t     soon = janus_now_ns() + rig_ms;
    janus_status status = ATTEMPT(attempt, janus_select_until(cases, CASES, NULL, soon));
    CHECK(status == JANUS_DEADLINE || status == JANUS_NO_MEMORY);
}

static int64_t close_it(void *argument)
{
    return janus_channel_close(*(const janus_channel *)argument);
}

static void row_closed_waiting(struct attempt *attempt)
{
    uint64_t      value;
    janus_nursery n;
    janus_channel channel = channel_of(1, JANUS_OVERFLOW_BLOCK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, close_it, &channel), JANUS_OK);
    janus_status status = ATTEMPT(attempt, janus_channel_recv(channel, &value));
    CHECK(status == JANUS_CLOSED || status == JANUS_NO_MEMORY);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
}

/* Paying. */

static void row_charge(struct attempt *attempt)
{
    (void)ATTEMPT(attempt, janus_charge(janus_budget_of(1, 0, 0, 1, 1)));
}

static void row_try_charge(struct attempt *attempt)
{
    janus_component missing;
    (void)ATTEMPT(attempt, janus_try_charge(janus_budget_of(1, 0, 0, 1, 1), &missing));
}

static void row_try_charge_short(struct attempt *attempt)
{
    janus_component missing;
    janus_status    status =
        ATTEMPT(attempt, janus_try_charge(janus_budget_of(1, UINT64_MAX / 2, 0, 1, 1), &missing));
    CHECK(status == JANUS_BUDGET_EXHAUSTED || status == JANUS_NO_MEMORY);
}

#define ROW(name) {row_##name, #name, false}
#define POOL(name) {row_##name, #name, true} /* only an implicit task may make a pool */

static const struct {
    void        (*row)(struct attempt *attempt);
    const char *name;
    bool        pool;
} rows[] = {
    ROW(spawn),
    ROW(spawn_budget),
    POOL(spawn_pool),
    POOL(spawn_pool_stack),
    POOL(spawn_pool_full),
    POOL(spawn_closed),
    POOL(nursery),
    ROW(token_bind),
    ROW(token),
    ROW(token_hook),
    ROW(defer),
    ROW(blocking),
    ROW(alloc),
    ROW(zeroed),
    ROW(aligned),
    ROW(try_alloc),
    ROW(try_alloc_large),
    ROW(try_alloc_short),
    ROW(realloc),
    ROW(realloc_large),
    ROW(detach),
    ROW(adopt),
    ROW(channel),
    ROW(channel_short),
    ROW(send),
    ROW(try_send),
    ROW(select_send),
    ROW(send_full),
    ROW(would_wait),
    ROW(closed),
    ROW(stale),
    ROW(late),
    ROW(select),
    ROW(closed_waiting),
    ROW(charge),
    ROW(try_charge),
    ROW(try_charge_short),
};

static int64_t attempt_once(void *argument)
{
    struct attempt *attempt = argument;
    attempt->row(attempt);
    return 0;
}

/* Each attempt in a task of its own, which has no books yet, or an explicit budget. */
static int64_t attempt_all(void *argument)
{
    const janus_budget *budget = argument;
    struct jrt_world   *world = jrt_world_now();
    bool                (*fails)(struct jrt_world *, enum jrt_fault) = world->fails;
    int                 refused = 0;
    world->fails = refuse;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (refusal.nth = 0; refusal.nth < ASKED_MAX; refusal.nth++) {
            if (rows[i].pool && budget != NULL) break;
            struct attempt attempt = {.row = rows[i].row, .name = rows[i].name};
            janus_nursery  n;
            CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
            CHECK_EQ(janus_spawn_with(&n, attempt_once, &attempt,
                                      JANUS_SPAWN_OPTIONS(.budget = budget), NULL),
                     JANUS_OK);
            janus_status ended = janus_nursery_end(&n, NULL);
            refusal.armed = false;
            if (ended != JANUS_OK) printf("# %s, refused at %d\n", attempt.name, refusal.nth);
            CHECK_EQ(ended, JANUS_OK);
            CHECK(attempt.ran);
            refused += attempt.status != JANUS_OK;
            if (refusal.asked <= refusal.nth) break;
        }
    }
    world->fails = fails;
    CHECK(refused > 30);
    return 0;
}

static void attempt_with(const janus_budget *budget)
{
    janus_scheduler *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .deterministic_seed = 5));
    rig_do(scheduler, attempt_all, (void *)budget);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

TEST("a refused call of a task with an implicit budget takes nothing but the op of the attempt")
{
    attempt_with(NULL);
}

TEST("a refused call of a task with an explicit budget takes nothing but the op of the attempt")
{
    const janus_budget budget = janus_budget_of(100000, 4 << 20, 100, 100, 100);
    attempt_with(&budget);
}

/* Books. */

static int64_t check_for_long(void *argument)
{
    refusal.armed = true;
    for (int i = 0; i < 5 * JANUS_SLICE; i++) {
        if (janus_check() != JANUS_OK) return -1;
    }
    refusal.armed = false;
    return argument == NULL ? 0 : -1;
}

static bool refuse_all(struct jrt_world *world, enum jrt_fault fault)
{
    (void)world;
    return refusal.armed && fault == JRT_FAULT_MEMORY;
}

/* Runs in a nursery with this policy; returns its status. */
static janus_status without_memory(janus_entry *entry, janus_exhaustion policy,
                                   janus_nursery_result *result)
{
    struct jrt_world *world = jrt_world_now();
    bool              (*fails)(struct jrt_world *, enum jrt_fault) = world->fails;
    janus_nursery     n;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.exhaustion = policy)), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, entry, NULL), JANUS_OK);
    world->fails = refuse_all;
    janus_status status = janus_nursery_end(&n, result);
    refusal.armed = false;
    world->fails = fails;
    return status;
}

static int64_t check_without_books(void *argument)
{
    janus_nursery_result result;
    CHECK_EQ(without_memory(check_for_long, JANUS_EXHAUSTION_AUTO, &result), JANUS_OK);
    CHECK_EQ(without_memory(check_for_long, JANUS_EXHAUSTION_MANUAL, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.error, JANUS_NO_MEMORY);
    return argument == NULL ? 0 : -1;
}

static int64_t pay_without_books(void *argument)
{
    janus_component missing = JANUS_COMPONENT_OPS;
    char            text[400];
    refusal.armed = true;
    CHECK_EQ(janus_try_charge(janus_budget_of(0, 0, 0, 1, 0), &missing), JANUS_NO_MEMORY);
    CHECK_EQ(missing, JANUS_COMPONENT_NONE);
    CHECK_EQ(janus_charge(janus_budget_of(0, 0, 0, 0, 1)), JANUS_NO_MEMORY);
    CHECK(janus_explain(text, sizeof text) > 0);
    CHECK(strstr(text, "the system refused memory (JANUS_NO_MEMORY). Free some") != NULL);
    refusal.armed = false;
    return argument == NULL ? 0 : -1;
}

static int64_t charge_without_books(void *argument)
{
    CHECK_EQ(without_memory(pay_without_books, JANUS_EXHAUSTION_AUTO, NULL), JANUS_OK);
    return argument == NULL ? 0 : -1;
}

static void in_world(janus_entry *entry)
{
    janus_scheduler *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .deterministic_seed = 5));
    rig_do(scheduler, entry, NULL);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

TEST("a task whose books get no memory goes on, or ends with NO_MEMORY, but is never exhausted")
{
    in_world(check_without_books);
}

TEST("a charge that needs books for which there is no memory returns NO_MEMORY, and is explained")
{
    in_world(charge_without_books);
}
