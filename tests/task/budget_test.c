/* SPDX-License-Identifier: MIT */
/* What calls cost a task, where its budget comes from, and when it yields. */
#include "energy.h"

/* What a task has. */

static int64_t tell_budget(void *argument)
{
    *(janus_budget *)argument = janus_budget_get_current();
    return 0;
}

static int64_t defaults(void *argument)
{
    janus_budget got;
    (void)argument;
    janus_status ended;
    JANUS_NURSERY(n, ended) CHECK_EQ(janus_spawn(n, tell_budget, &got), JANUS_OK);
    CHECK_EQ(ended, JANUS_OK);
    check_budget(got, 10000, 1 << 20, 0, 100, 10);
    CHECK(janus_budget_equal(got, janus_budget_child_default()));
    return 0;
}

/* SCHED:3.1.1, 12.1.1/get, C41, G:budget/child. */
TEST("a task without an explicit budget has the five documented numbers")
{
    rig_all(defaults, NULL, 3);
    check_budget(janus_budget_get_current(), 0, 0, 0, 0, 0);
}

static int64_t large_numbers(void *argument)
{
    janus_budget        got;
    janus_nursery       n;
    const janus_budget *given = argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, tell_budget, &got, JANUS_SPAWN_OPTIONS(.budget = given), NULL),
             JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK(janus_budget_equal(got, *given));
    return 0;
}

/* SCHED:3.1.1, C3, G:budget/fields. */
TEST("every component of a task's budget can exceed 32 bits and is reported exactly")
{
    const uint64_t     big = UINT64_C(1) << 40;
    const janus_budget given = janus_budget_of(big + 1, big + 2, big + 3, big + 4, big + 5);
    const janus_budget most = janus_budget_scale(given, 2);
    rig_first(JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .max_budget = &most), large_numbers,
              (void *)(uintptr_t)&given);
}

/* Prices. */

static void costs(janus_budget before, janus_budget price)
{
    janus_budget after = janus_budget_get_current();
    CHECK(janus_budget_equal(less(before, price), after));
}

static int64_t prices(void *argument)
{
    (void)argument;
    const janus_budget operations[] = {janus_price_send(), janus_price_recv(),
                                       janus_price_file_io(), janus_price_network_io()};
    janus_budget       before = janus_budget_get_current();
    CHECK_EQ(janus_check(), JANUS_OK);
    costs(before, janus_budget_of(1, 0, 0, 0, 0));
    before = janus_budget_get_current();
    CHECK_EQ(janus_charge(janus_price_call()), JANUS_OK);
    costs(before, janus_budget_of(1, 0, 0, 0, 0));
    before = janus_budget_get_current();
    char *block = janus_alloc(100);
    costs(before, janus_budget_of(1, 112, 0, 0, 0)); /* in sixteens */
    CHECK(block != NULL);
    janus_free(block);
    costs(before, janus_budget_of(1, 0, 0, 0, 0));
    for (int i = 0; i < 4; i++) {
        before = janus_budget_get_current();
        CHECK_EQ(janus_charge(operations[i]), JANUS_OK);
        costs(before, janus_budget_of(1, 0, 0, i < 2, i >= 2));
    }
    return 0;
}

/* SCHED:3.3.1/loop-iteration, function-call, allocation, channel-send, channel-recv, file-I/O,
 * network-I/O (the last four as charges). */
TEST("each operation takes exactly its price from the five numbers") { rig_all(prices, NULL, 3); }

static int64_t spawn_price(void *argument)
{
    janus_nursery n;
    janus_budget  pool = JANUS_BUDGET(.ops = 30000, .spawn_count = 5), got;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    janus_budget before = janus_budget_get_current();
    CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_OK);
    costs(before, janus_budget_of(1, 0, 0, 0, 0));
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);

    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    before = janus_budget_get_current();
    CHECK_EQ(janus_spawn(&n, tell_budget, &got), JANUS_OK);
    costs(before, janus_budget_zero()); /* the pool pays */
    CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_OK);
    CHECK(janus_budget_equal(books_of(&n).spent, janus_price_spawn()));
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

/* SCHED:3.3.1/spawn. */
TEST("a spawn costs an op, and from a pool an op and a spawn") { rig_all(spawn_price, NULL, 3); }

static int64_t try_charges(void *argument)
{
    (void)argument;
    janus_component missing = JANUS_COMPONENT_NONE;
    janus_budget    before = janus_budget_get_current();
    for (unsigned c = JANUS_COMPONENT_OPS; c <= JANUS_COMPONENT_SYSCALLS; c++) {
        uint64_t     too_much = janus_budget_get(&before, (janus_component)c) + 1;
        janus_budget price = janus_budget_of(c == JANUS_COMPONENT_OPS ? too_much : 1,
                                             c == JANUS_COMPONENT_MEMORY ? too_much : 0,
                                             c == JANUS_COMPONENT_SPAWN_COUNT ? too_much : 0,
                                             c == JANUS_COMPONENT_CHANNEL_OPS ? too_much : 0,
                                             c == JANUS_COMPONENT_SYSCALLS ? too_much : 0);
        CHECK_EQ(janus_try_charge(price, &missing), JANUS_BUDGET_EXHAUSTED);
        CHECK_EQ(missing, c);
        CHECK(janus_budget_equal(janus_budget_get_current(), before));
    }
    CHECK_EQ(janus_try_charge(janus_budget_of(UINT64_MAX, UINT64_MAX, 0, 0, 0), NULL),
             JANUS_BUDGET_EXHAUSTED);
    CHECK(janus_budget_equal(janus_budget_get_current(), before));
    CHECK_EQ(janus_try_charge(before, &missing), JANUS_OK);
    CHECK_EQ(missing, JANUS_COMPONENT_NONE);
    check_budget(janus_budget_get_current(), 0, 0, 0, 0, 0);
    return 0;
}

/* SCHED:3.1.2, C4. */
TEST("a charge beyond any component is refused, names the component and changes nothing")
{
    rig_all(try_charges, NULL, 3);
}

static int64_t batches(void *argument)
{
    static const uint32_t counts[] = {1, 1023, 1024, 1025, 9000};
    uint32_t              interval = *(uint32_t *)argument;
    CHECK_EQ(janus_yield_interval(), interval);
    for (int k = 0; k < 5; k++) {
        uint64_t    start = janus_budget_get_current().ops, paid = 0;
        janus_batch batch = janus_batch_begin();
        for (uint32_t i = 1; i <= counts[k]; i++) {
            CHECK_EQ(janus_batch_next(&batch), JANUS_OK);
            uint64_t now = janus_budget_get_current().ops;
            if (now == start) now = start - paid; /* nothing was paid just now */
            CHECK_EQ(start - now, (uint64_t)(i / interval) * interval);
            paid = start - now;
            CHECK(i - paid < interval);
        }
        CHECK_EQ(janus_batch_end(&batch), JANUS_OK);
        CHECK_EQ(start - janus_budget_get_current().ops, counts[k]);
    }
    return 0;
}

/* SCHED:4.1.1/1 (in C), 4.3.1/service, cluster, sovereign, C9. */
TEST("a loop in batches pays for its iterations exactly, and is never more than an interval behind")
{
    static uint32_t            intervals[] = {1024, 512, 7};
    static const janus_profile profiles[] = {JANUS_PROFILE_SERVICE, JANUS_PROFILE_CLUSTER,
                                             JANUS_PROFILE_SOVEREIGN};
    const janus_budget         plenty = janus_budget_of(1 << 20, 0, 0, 0, 0);
    for (int i = 0; i < 3; i++) {
        rig_first(JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .profile = profiles[i],
                                          .task_budget = &plenty, .yield_interval = i == 2 ? 7 : 0),
                  batches, &intervals[i]);
    }
    janus_scheduler *none = NULL;
    CHECK_EQ(janus_scheduler_create_with(
                 JANUS_SCHEDULER_OPTIONS(.profile = JANUS_PROFILE_SOVEREIGN), &none),
             JANUS_INVALID);
    CHECK(none == NULL);
    CHECK_EQ(janus_yield_interval(), 1024);
}

static int64_t ten_thousand(void *argument)
{
    janus_batch batch = janus_batch_begin();
    for (int i = 0; i < 10000; i++) {
        janus_status status = janus_batch_next(&batch);
        if (status != JANUS_OK) return status;
    }
    janus_status status = janus_batch_end(&batch);
    *(janus_budget *)argument = janus_budget_get_current();
    return status;
}

static int64_t exactly(void *argument)
{
    janus_nursery n;
    janus_budget  left, share = janus_budget_of(10000, 0, 0, 0, 0);
    (void)argument;
    for (int short_of = 0; short_of < 2; short_of++) {
        share.ops -= (uint64_t)short_of;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(
            janus_spawn_with(&n, ten_thousand, &left, JANUS_SPAWN_OPTIONS(.budget = &share), NULL),
            JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), short_of ? JANUS_CHILD_FAILED : JANUS_OK);
        if (!short_of) CHECK_EQ(left.ops, 0);
    }
    return 0;
}

/* C9. */
TEST("ten thousand iterations cost ten thousand ops, and 9,999 are not enough")
{
    rig_all(exactly, NULL, 3);
}

static int64_t check_often(void *argument)
{
    atomic_int *done = argument;
    for (int i = 0; i < 3; i++) {
        JANUS_IGNORE(janus_check());
        atomic_fetch_add(done, 1);
    }
    return 0;
}

static int64_t small_checks(void *argument)
{
    (void)argument;
    for (uint64_t ops = 0; ops <= 3; ops++) {
        janus_nursery n;
        atomic_int    done = 0;
        janus_budget  share = janus_budget_of(ops, 0, 0, 0, 0);
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(
            janus_spawn_with(&n, check_often, &done, JANUS_SPAWN_OPTIONS(.budget = &share), NULL),
            JANUS_OK);
        CHECK_EQ(janus_nursery_await_with(&n, NULL), ops < 3 ? JANUS_CHILD_FAILED : JANUS_OK);
        CHECK_EQ(done, ops);
        if (ops < 3) {
            janus_failure failure = failure_of(&n);
            CHECK_EQ(failure.error, JANUS_BUDGET_EXHAUSTED);
            CHECK_EQ(failure.lacks, JANUS_COMPONENT_OPS);
            CHECK_EQ(failure.used, ops);
            CHECK_EQ(failure.limit, ops);
        }
        JANUS_IGNORE(janus_nursery_end(&n, NULL));
    }
    return 0;
}

/* SCHED:4.1.2. */
TEST("with 0, 1, 2 and 3 ops exactly 0, 1, 2 and 3 checks pass") { rig_all(small_checks, NULL, 3); }

/* Yielding. */

static int64_t many_yields(void *argument)
{
    (void)argument;
    janus_budget before = janus_budget_get_current();
    for (int i = 0; i < 1000; i++) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK(janus_budget_equal(janus_budget_get_current(), before));
    return 0;
}

/* SCHED:4.2.2, C10. */
TEST("a thousand yields cost nothing") { rig_all(many_yields, NULL, 3); }

struct turns {
    atomic_int turn;
    int        apart; /* the largest lead of one over the other */
    int        count[2];
};

struct turner {
    struct turns *turns;
    int           me;
};

static int64_t take_turns(void *argument)
{
    struct turner *turner = argument;
    struct turns  *turns = turner->turns;
    for (int i = 0; i < 1000; i++) {
        int ahead = ++turns->count[turner->me] - turns->count[!turner->me];
        if (ahead > turns->apart) turns->apart = ahead;
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    return 0;
}

static int64_t two_yielders(void *argument)
{
    struct turns  turns = {.apart = 0};
    struct turner turners[2] = {{&turns, 0}, {&turns, 1}};
    (void)argument;
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < 2; i++) CHECK_EQ(janus_spawn(n, take_turns, &turners[i]), JANUS_OK);
        CHECK_EQ(janus_sleep(0), JANUS_OK);
    }
    CHECK_EQ(ended, JANUS_OK);
    CHECK_EQ(turns.count[0] + turns.count[1], 2000);
    /* In real time a turn may be too long, and then its task lets the other run more than once. */
    CHECK(turns.apart <= (rig_simulated() ? 2 : RIG_SLOW ? 500 : 50));
    return 0;
}

/* C10. */
TEST("two tasks that only yield alternate") { rig_run(1, two_yielders, NULL, 5); }

struct busy {
    atomic_int stop, seen;
};

static int64_t busy_until(void *argument)
{
    struct busy *busy = argument;
    atomic_store(&busy->seen, 1);
    while (!atomic_load(&busy->stop)) CHECK_EQ(janus_check(), JANUS_OK);
    return 0;
}

static int64_t charge_until(void *argument)
{
    struct busy *busy = argument;
    atomic_store(&busy->seen, 1);
    while (!atomic_load(&busy->stop)) CHECK_EQ(janus_charge(janus_price_call()), JANUS_OK);
    return 0;
}

static int64_t batch_until(void *argument)
{
    struct busy *busy = argument;
    janus_batch  batch = janus_batch_begin();
    atomic_store(&busy->seen, 1);
    while (!atomic_load(&busy->stop)) CHECK_EQ(janus_batch_next(&batch), JANUS_OK);
    return 0;
}

static int64_t set_flag(void *argument)
{
    atomic_store((atomic_int *)argument, 1);
    return 0;
}

/* A busy task with this budget, and on the same worker the task that stops it. */
static void stop_busy(janus_entry *entry, const janus_budget *share)
{
    janus_nursery n;
    struct busy   busy = {0};
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, entry, &busy, JANUS_SPAWN_OPTIONS(.budget = share), NULL),
             JANUS_OK);
    while (!atomic_load(&busy.seen)) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, set_flag, &busy.stop), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
}

static int64_t all_busy(void *argument)
{
    const janus_budget plenty = janus_budget_of(UINT64_C(1) << 60, 0, 0, 0, 0);
    janus_entry *const entries[] = {busy_until, charge_until, batch_until};
    (void)argument;
    for (int i = 0; i < 3; i++) {
        stop_busy(entries[i], NULL);
        stop_busy(entries[i], &plenty);
    }
    return 0;
}

/* SCHED:1.1.1a. No timer is set: the task yields because of what it spends. */
TEST("a loop that only charges lets others run on its worker, however much budget it has")
{
    const janus_budget most = janus_budget_scale(janus_budget_of(1, 1, 1, 1, 1), UINT64_MAX);
    rig_first(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .max_budget = &most), all_busy, NULL);
}

static int64_t wait_at(void *argument)
{
    return janus_waitpoint_wait((janus_waitpoint *)argument, NULL);
}

static int64_t open_it(void *argument)
{
    janus_waitpoint_wake((janus_waitpoint *)argument);
    return 0;
}

static int64_t kinds_of_yield(void *argument)
{
    janus_nursery   n;
    janus_waitpoint point;
    janus_task_id   id;
    atomic_int      ran = 0;
    (void)argument;
    janus_budget before = janus_budget_get_current();
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, count_me, &ran), JANUS_OK);
    while (atomic_load(&ran) == 0) CHECK_EQ(janus_yield(), JANUS_OK); /* a yield */
    janus_waitpoint_init(&point, JANUS_WAKER_TASKS);
    CHECK_EQ(janus_spawn(&n, open_it, &point), JANUS_OK);
    CHECK_EQ(wait_at(&point), JANUS_OK); /* something that blocks */
    CHECK_EQ(janus_spawn_with(&n, count_me, &ran, NULL, &id), JANUS_OK);
    CHECK_EQ(janus_join(&n, id, NULL), JANUS_OK); /* awaiting one */
    CHECK_EQ(janus_spawn(&n, count_me, &ran), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK); /* and all */
    CHECK_EQ(ran, 3);
    costs(before, janus_budget_of(4, 0, 0, 0, 0)); /* of the spawns */
    return 0;
}

/* SCHED:4.2.1, 4.2.2. */
TEST("a yield, a wait and an await each let another task run, and cost nothing")
{
    rig_run(1, kinds_of_yield, NULL, 5);
}

static int64_t spin_for_ever(void *argument)
{
    (void)argument;
    for (;;) janus_check_or_end(1);
    return 0;
}

static int64_t owner_does_not_wait(void *argument)
{
    janus_nursery      n;
    janus_budget       share = janus_budget_of(10, 0, 0, 0, 0);
    janus_nursery_info info = JANUS_NURSERY_INFO();
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.exhaustion = JANUS_EXHAUSTION_END,
                                                          .policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, spin_for_ever, NULL, JANUS_SPAWN_OPTIONS(.budget = &share), NULL),
             JANUS_OK);
    do {
        CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK_EQ(janus_nursery_inspect(&n, &info), JANUS_OK);
    } while (info.children > 0);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    return 0;
}

TEST("END: an exhausted child ends at once, also when its owner does not wait")
{
    rig_all(owner_does_not_wait, NULL, 5);
}
