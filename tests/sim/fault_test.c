/* SPDX-License-Identifier: MIT */
/*
 * The system refuses something to a program, wakes it for no reason, or ends its threads. The
 * program meets documented statuses and nothing else. The explorer checks for crashes, hangs, leaks
 * and books that do not balance.
 */
#include "harness.h"

#include <janusrt/janus.h>
#include <stdlib.h>
#include <string.h>

enum {
    SCHEDULES = JRT_TSAN                ? 12
                : JRT_ASAN || JRT_DEBUG ? 30
                                        : 200,
    ALL = JANUS_FAULT_MEMORY | JANUS_FAULT_MAPPING | JANUS_FAULT_THREAD | JANUS_FAULT_BLOCKING |
          JANUS_FAULT_WAKE | JANUS_FAULT_DEATH,
};

static const uint64_t ms = 1000000;
static uint64_t       ended; /* schedules that reached the end of their program */

/* What happened, so that a fault that never occurs is noticed. */
static struct seen {
    int no_memory, no_stack, no_thread, no_scheduler, refused, slow;
} seen;

/* Whether it is one of these statuses. */
#define ONE_OF(status, ...)                                                                        \
    one_of(status, (const janus_status[]){__VA_ARGS__},                                            \
           sizeof((const janus_status[]){__VA_ARGS__}) / sizeof(janus_status))

static bool one_of(janus_status status, const janus_status *known, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (known[i] == status) return true;
    }
    return false;
}

struct market {
    janus_channel   goods, money, news;
    janus_mutex     till;
    janus_semaphore stalls;
    janus_event     opening;
    janus_token    *closing;
    int             sold, in_till, called_off, deferred, defers, came;
};

static void count_defer(void *argument) { ++*(int *)argument; }

static int64_t fetch(void *argument)
{
    JANUS_IGNORE(janus_sleep(ms)); /* on a thread of its own: it only waits */
    return (int64_t)(intptr_t)argument * 2;
}

static int64_t produce(void *argument)
{
    struct market *market = argument;
    for (int i = 0; i < 5; i++) {
        int64_t      value = 0;
        uint64_t     began_ns = janus_now_ns();
        janus_status status = janus_blocking(fetch, (void *)(intptr_t)(i + 1), &value);
        seen.refused += status == JANUS_FULL;
        seen.slow += janus_now_ns() - began_ns >= 15 * ms;
        JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_CANCELLED, JANUS_FULL, JANUS_NO_MEMORY));
        JANUS_EXPECT(status != JANUS_OK || value == (i + 1) * 2);
        status = janus_channel_send_until(market->goods, &value, janus_now_ns() + 50 * ms);
        JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_CANCELLED, JANUS_CLOSED, JANUS_NO_MEMORY,
                            JANUS_DEADLINE));
        if (status == JANUS_CANCELLED || status == JANUS_CLOSED) return 0;
        status = janus_sleep(ms / 2);
        JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_CANCELLED, JANUS_NO_MEMORY));
    }
    return 0;
}

static int64_t sell(void *argument)
{
    struct market *market = argument;
    for (;;) {
        int64_t           value = 0;
        size_t            which = 0;
        janus_select_case cases[] = {
            {.kind = JANUS_SELECT_KIND_RECV, .channel = market->goods, .value = &value},
            {.kind = JANUS_SELECT_KIND_RECV, .channel = market->news, .value = &value}};
        janus_status status = janus_select_until(cases, 2, &which, janus_now_ns() + 200 * ms);
        JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_CLOSED, JANUS_CANCELLED, JANUS_NO_MEMORY,
                            JANUS_DEADLINE));
        if (ONE_OF(status, JANUS_CLOSED, JANUS_CANCELLED, JANUS_DEADLINE)) return 0;
        if (status != JANUS_OK) continue;
        status = janus_channel_send(market->money, &value); /* unbounded: it grows */
        JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_CANCELLED, JANUS_NO_MEMORY));
        status = janus_mutex_lock(&market->till);
        JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_CANCELLED, JANUS_NO_MEMORY));
        if (status != JANUS_OK) continue;
        int sold = market->sold;
        JANUS_IGNORE(janus_yield());
        market->sold = sold + 1;
        market->in_till++;
        JANUS_EXPECT(janus_mutex_unlock(&market->till) == JANUS_OK);
    }
}

static int64_t rest(void *argument)
{
    struct market *market = argument;
    if (janus_defer(count_defer, &market->defers) == JANUS_OK) market->deferred++;
    char *block = janus_alloc(3000);
    if (block != NULL) memset(block, 1, 3000);
    seen.no_memory += block == NULL;
    janus_status status = janus_semaphore_acquire(&market->stalls);
    JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_CANCELLED, JANUS_NO_MEMORY));
    if (status == JANUS_OK) {
        status = janus_sleep(2 * ms);
        JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_CANCELLED, JANUS_NO_MEMORY));
        JANUS_EXPECT(janus_semaphore_release(&market->stalls, 1) == JANUS_OK);
    }
    if (block != NULL) janus_free(block);
    return 0;
}

static int64_t spend(void *argument)
{
    (void)argument;
    for (int i = 0; i < 2000; i++) {
        janus_status status = janus_check();
        if (status != JANUS_OK) return 0;
    }
    return 0;
}

static int64_t stumble(void *argument)
{
    (void)argument;
    JANUS_IGNORE(janus_yield());
    janus_panic("stumbled");
}

/* A nursery with a pool, whose children need more than they have. */
static void with_budgets(void)
{
    const janus_budget pool = JANUS_BUDGET(.ops = 3000, .memory = 1 << 20, .spawn_count = 4);
    janus_nursery      n;
    janus_exhausted    child;
    janus_status       status = janus_nursery_open(
        &n, JANUS_NURSERY_OPTIONS(.budget = &pool, .policy = JANUS_POLICY_WAIT_ALL,
                                        .exhaustion = JANUS_EXHAUSTION_SUPERVISE));
    JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_NO_MEMORY));
    if (status != JANUS_OK) return;
    for (int i = 0; i < 3; i++) {
        const janus_budget some = JANUS_BUDGET(.ops = 500);
        status = janus_spawn_with(&n, spend, NULL, JANUS_SPAWN_OPTIONS(.budget = &some), NULL);
        JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_NO_MEMORY, JANUS_SPAWN_BUDGET));
    }
    for (;;) {
        status = janus_nursery_wait_exhausted(&n, &child);
        if (status == JANUS_NO_MEMORY) continue;
        if (status != JANUS_OK) break;
        status = janus_nursery_recharge(&n, child.task, janus_budget_of(300, 0, 0, 0, 0));
        if (status != JANUS_OK) (void)janus_nursery_cancel_exhausted(&n, child.task);
    }
    status = janus_nursery_end(&n, NULL);
    JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_CHILD_FAILED));
}

static bool mint(const janus_authority *root, janus_cap_kind kind, janus_cap_limits limits,
                 janus_cap *out)
{
    janus_status status = janus_cap_mint(
        root, 0, JANUS_CAP_GRANT(.kind = kind, .rights = JANUS_RIGHTS_ALL, .limits = &limits), out);
    JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_NO_MEMORY));
    return status == JANUS_OK;
}

/* Children on threads of their own: one is joined, one panics. */
static void with_threads(struct market *market, const janus_nursery_options *options)
{
    janus_nursery n;
    janus_task_id id = 0;
    int64_t       result = 0;
    janus_status  status = janus_nursery_open(&n, options);
    JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_NO_MEMORY));
    if (status != JANUS_OK) return;
    for (int i = 0; i < 2; i++) {
        status = janus_spawn(&n, rest, market);
        JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_NO_MEMORY));
    }
    status = janus_spawn(&n, stumble, NULL);
    JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_NO_MEMORY));
    seen.no_thread += status == JANUS_NO_MEMORY;
    status = janus_spawn_with(&n, fetch, (void *)21, NULL, &id);
    JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_NO_MEMORY));
    if (status == JANUS_OK) {
        do {
            status = janus_join(&n, id, &result);
        } while (status == JANUS_NO_MEMORY);
        JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_CHILD_FAILED));
        JANUS_EXPECT(status != JANUS_OK || result == 42);
    }
    status = janus_nursery_end(&n, NULL);
    JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_CHILD_FAILED));
}

/* With capabilities, in a profile that needs them. */
static int64_t open_backend(void *argument)
{
    const janus_budget each =
        JANUS_BUDGET(.ops = 100000, .memory = 1 << 16, .spawn_count = 10, .syscalls = 5);
    struct market    market = {0};
    janus_authority *root;
    janus_cap        spawn, executor;
    janus_nursery    n;
    (void)argument;
    janus_semaphore_init(&market.stalls, 1, JANUS_WAKER_TASKS, "stalls");
    JANUS_EXPECT(janus_authority_take(NULL, &root) == JANUS_OK);
    if (!mint(root, JANUS_CAP_KIND_SPAWN,
              (janus_cap_limits){.spawn = {.max_tasks = 20, .task_budget = each}}, &spawn)) {
        return 0;
    }
    const uint64_t threads = JANUS_BACKEND_SET(JANUS_BACKEND_THREADED);
    if (!mint(root, JANUS_CAP_KIND_EXECUTOR,
              (janus_cap_limits){.executor = {.allowed_backends = threads}}, &executor)) {
        return 0;
    }
    if (janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.spawn_cap = spawn)) == JANUS_OK) {
        for (int i = 0; i < 4; i++) {
            janus_status status = janus_spawn(&n, i % 2 == 0 ? rest : spend, &market);
            JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_NO_MEMORY));
        }
        with_threads(&market,
                     JANUS_NURSERY_OPTIONS(.backend = threads, .executor_cap = executor,
                                           .spawn_cap = spawn, .policy = JANUS_POLICY_WAIT_ALL));
        janus_status status = janus_nursery_end(&n, NULL);
        JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_CHILD_FAILED));
    }
    JANUS_EXPECT(market.deferred == market.defers);
    ended++;
    return 0;
}

static int64_t sleep_a_little(void *argument)
{
    (void)argument;
    JANUS_IGNORE(janus_sleep(ms));
    return 7;
}

/* Makes and closes a scheduler of its own while things fail. */
static int64_t run_another(void *argument)
{
    int64_t      result = 0;
    janus_status status =
        janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 2), sleep_a_little, NULL, &result);
    (void)argument;
    JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_NO_MEMORY, JANUS_UNAVAILABLE, JANUS_CHILD_FAILED));
    JANUS_EXPECT(status != JANUS_OK || result == 7);
    seen.no_scheduler += status != JANUS_OK;
    return 0;
}

static int64_t open_others(void *argument)
{
    (void)argument;
    for (int i = 0; i < 3; i++) {
        janus_status status = janus_blocking(run_another, NULL, NULL);
        JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_FULL, JANUS_NO_MEMORY));
    }
    ended++;
    return 0;
}

static int64_t wait_in_crowd(void *argument)
{
    struct market         *market = argument;
    volatile unsigned char frame[2000];
    frame[0] = 1;
    janus_status status = janus_event_wait(&market->opening);
    JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_CANCELLED, JANUS_NO_MEMORY));
    status = janus_sleep(ms + frame[0] % 2u);
    JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_CANCELLED, JANUS_NO_MEMORY));
    market->came++;
    return 0;
}

static int64_t count_up(void *argument)
{
    ++*(int *)argument;
    return 0;
}

/* Many tasks that wait at the same time, with stacks of many sizes, more than are kept. */
static int64_t open_crowd(void *argument)
{
    struct market market = {0};
    janus_nursery n;
    int           started = 0, counted = 0;
    (void)argument;
    janus_event_init(&market.opening, JANUS_WAKER_TASKS, "opening");
    if (janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)) !=
        JANUS_OK) {
        return 0;
    }
    for (int i = 0; i < 40; i++) {
        janus_status status =
            janus_spawn_with(&n, wait_in_crowd, &market,
                             JANUS_SPAWN_OPTIONS(.stack_bytes = (size_t)32768 << (i % 5)), NULL);
        JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_NO_MEMORY));
        started += status == JANUS_OK;
        if (i % 8 == 0) JANUS_IGNORE(janus_yield());
    }
    janus_event_set(&market.opening);
    janus_nursery_result result;
    janus_status         status = janus_nursery_end(&n, &result);
    JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_CHILD_FAILED));
    seen.no_stack += (int)result.errors;
    JANUS_EXPECT(market.came + (int)result.errors == started);
    janus_status said;
    JANUS_NURSERY(calls, said)
    {
        janus_async call;
        if (janus_async_start_number(calls, &call, count_up, &counted) == JANUS_OK) {
            do {
                status = janus_await(&call, NULL);
            } while (status == JANUS_NO_MEMORY);
            JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_CHILD_FAILED));
            JANUS_EXPECT(counted == (status == JANUS_OK));
        }
    }
    CHECK_EQ(said, JANUS_OK);
    ended++;
    return 0;
}

static void call_off(void *argument) { ((struct market *)argument)->called_off++; }

/* Cancelled in the middle, by a token. */
static void with_token(struct market *market)
{
    janus_nursery      n;
    janus_token_handle handle = 0;
    janus_status       status = janus_token_create(&market->closing);
    JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_NO_MEMORY));
    if (status != JANUS_OK) return;
    status = janus_token_on_cancel(market->closing, call_off, market, &handle);
    JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_NO_MEMORY));
    bool hooked = status == JANUS_OK;
    if (janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.deadline_ns = janus_now_ns() + 3 * ms)) ==
        JANUS_OK) {
        status = janus_nursery_cancel_on(&n, market->closing);
        JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_NO_MEMORY));
        for (int i = 0; i < 4; i++) {
            status = janus_spawn(&n, i % 2 == 0 ? rest : produce, market);
            JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_NO_MEMORY, JANUS_CLOSED));
        }
        JANUS_IGNORE(janus_sleep(ms));
        JANUS_EXPECT(janus_token_cancel(market->closing, JANUS_CANCEL_REASON_EXPLICIT) == JANUS_OK);
        status = janus_nursery_end(&n, NULL);
        JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_CHILD_FAILED, JANUS_CANCELLED));
        JANUS_EXPECT(!hooked || market->called_off == 1);
    }
    janus_token_release(market->closing);
}

static void trade(struct market *market)
{
    janus_nursery buyers, sellers;
    if (janus_nursery_open(&sellers, NULL) != JANUS_OK) return;
    for (int i = 0; i < 2; i++) JANUS_IGNORE(janus_spawn(&sellers, sell, market));
    if (janus_nursery_open(&buyers, NULL) == JANUS_OK) {
        for (int i = 0; i < 3; i++) {
            janus_status status = janus_spawn(&buyers, produce, market);
            JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_NO_MEMORY, JANUS_CLOSED));
        }
        janus_status status = janus_nursery_end(&buyers, NULL);
        /* A child without a stack to begin with has failed. */
        JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_CHILD_FAILED));
    }
    JANUS_EXPECT(janus_channel_close(market->goods) == JANUS_OK);
    janus_status status = janus_nursery_end(&sellers, NULL);
    JANUS_EXPECT(ONE_OF(status, JANUS_OK, JANUS_CHILD_FAILED));
    JANUS_EXPECT(market->sold == market->in_till);
}

static int64_t open_market(void *argument)
{
    struct market market = {0};
    (void)argument;
    janus_mutex_init(&market.till, "till");
    janus_semaphore_init(&market.stalls, 2, JANUS_WAKER_TASKS, "stalls");
    janus_status first = janus_channel_create(sizeof(int64_t), 2, NULL, &market.goods);
    janus_status second =
        janus_channel_create_unbounded(sizeof(int64_t), 4096, NULL, &market.money);
    janus_status third = janus_channel_create(sizeof(int64_t), 0, NULL, &market.news);
    JANUS_EXPECT(ONE_OF(first, JANUS_OK, JANUS_NO_MEMORY));
    if (first == JANUS_OK && second == JANUS_OK && third == JANUS_OK) {
        trade(&market);
        with_budgets();
        with_token(&market);
        JANUS_EXPECT(market.deferred == market.defers);
        ended++;
    }
    JANUS_EXPECT(janus_channel_destroy(market.goods) == JANUS_OK);
    JANUS_EXPECT(janus_channel_destroy(market.money) == JANUS_OK);
    JANUS_EXPECT(janus_channel_destroy(market.news) == JANUS_OK);
    return 0;
}

/* The environment may ask for more: JANUSRT_EXPLORE=schedules=10000,every=3. */
static void explore(uint32_t faults, uint32_t every, uint32_t workers, uint32_t schedules,
                    janus_entry *entry, janus_profile profile)
{
    janus_explore_result           result = JANUS_EXPLORE_RESULT();
    const janus_scheduler_options *scheduler =
        JANUS_SCHEDULER_OPTIONS(.profile = profile, .yield_interval = 100);
    ended = 0;
    janus_status status = janus_explore(
        JANUS_EXPLORE_OPTIONS(.schedules = schedules, .faults = faults, .faults_every = every,
                              .worker_count = workers, .quiet = getenv("JANUSRT_EXPLORE") == NULL,
                              .panics_allowed = true, .scheduler = scheduler),
        entry, NULL, &result);
    CHECK_STR(result.message, "");
    CHECK_EQ(status, JANUS_OK);
    CHECK(ended >= result.schedules / 2);
}

static void run_all(uint32_t faults, uint32_t every, uint32_t workers)
{
    seen = (struct seen){0};
    explore(faults, every, workers, SCHEDULES, open_market, JANUS_PROFILE_SERVICE);
    explore(faults, every, workers, SCHEDULES / 2, open_backend, JANUS_PROFILE_SOVEREIGN);
    explore(faults, every, workers, SCHEDULES / 6, open_others, JANUS_PROFILE_SERVICE);
    explore(faults, every, workers, SCHEDULES, open_crowd, JANUS_PROFILE_SERVICE);
}

/* Under ThreadSanitizer every first switch to a stack costs milliseconds. */
#define ONE_FAULT()                                                                                \
    do {                                                                                           \
        if (JRT_TSAN) SKIP("too slow: all faults at once are tried");                              \
    } while (0)

TEST("without faults the program succeeds")
{
    run_all(0, 0, 4);
    CHECK_EQ(seen.no_memory + seen.no_stack + seen.no_thread + seen.no_scheduler + seen.refused +
                 seen.slow,
             0);
}

TEST("refused memory is reported, and nothing is lost")
{
    ONE_FAULT();
    run_all(JANUS_FAULT_MEMORY, 20, 4);
    CHECK(seen.no_memory > 0 && seen.no_scheduler > 0);
}

TEST("refused address space is reported, and nothing is lost")
{
    ONE_FAULT();
    run_all(JANUS_FAULT_MAPPING, 4, 4);
    CHECK(seen.no_scheduler > 0 && seen.no_stack > 0);
}

TEST("a refused thread is reported, and nothing is lost")
{
    ONE_FAULT();
    run_all(JANUS_FAULT_THREAD, 10, 4);
    CHECK(seen.no_thread > 0 && seen.no_scheduler > 0);
}

TEST("blocking calls that are refused or slow do no harm")
{
    ONE_FAULT();
    run_all(JANUS_FAULT_BLOCKING, 3, 4);
    CHECK(seen.refused > 0 && seen.slow > 0);
}

TEST("sleeps that end for no reason do no harm")
{
    ONE_FAULT();
    run_all(JANUS_FAULT_WAKE, 3, 4);
}

TEST("threads that end under their workers are replaced")
{
    ONE_FAULT();
    run_all(JANUS_FAULT_DEATH, 20, 4);
}

TEST("all faults together do no harm, on one worker and on several")
{
    run_all(ALL, 50, 2);
    if (JRT_TSAN) return;
    run_all(ALL, 50, 1);
    run_all(ALL, 20, 4);
}
