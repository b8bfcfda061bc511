/* SPDX-License-Identifier: MIT */
/* Holds: no check gives the thread away, and nobody keeps a worker or escapes a budget by one. */
#include "energy.h"

#include <janusrt/counted.h>
#include <limits.h>
#include <pthread.h>

static void checks(int count)
{
    for (int i = 0; i < count; i++) janus_check_or_end(1);
}

/* Keeping the thread. */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

enum { CRITICAL = 700 }; /* checks with the lock, so that slices end there */

static int64_t lock_often(void *argument)
{
    for (uint64_t i = 0; i < rig_few(5000); i++) {
        janus_hold_begin();
        CHECK_EQ(pthread_mutex_trylock(&lock), 0); /* one worker: nobody was stopped with it */
        checks(CRITICAL);
        CHECK_EQ(pthread_mutex_unlock(&lock), 0);
        janus_hold_end();
        checks(10);
        atomic_fetch_add((atomic_long *)argument, 1);
    }
    return 0;
}

static int64_t lock_in_turns(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, lock_often, argument), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, lock_often, argument), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("two tasks of one worker lock a pthread mutex across checks, and none is stopped with it")
{
    atomic_long rounds = 0;
    rig_run(1, lock_in_turns, &rounds, 1);
    CHECK_EQ(rounds, 2 * rig_few(5000));
}

struct neighbour {
    atomic_int  over;
    atomic_long ran;
};

static int64_t be_neighbour(void *argument)
{
    struct neighbour *neighbour = argument;
    while (!atomic_load(&neighbour->over) && janus_yield() == JANUS_OK)
        atomic_fetch_add(&neighbour->ran, 1);
    return 0;
}

static int64_t hold_alone(void *argument)
{
    struct neighbour *neighbour = argument;
    janus_nursery     n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, be_neighbour, neighbour), JANUS_OK);
    CHECK_EQ(janus_yield(), JANUS_OK);
    for (int i = 0; i < 20; i++) {
        janus_hold_begin();
        long before = atomic_load(&neighbour->ran);
        checks(JANUS_SLICE / 2);
        janus_hold_begin();
        checks(2 * JANUS_SLICE);
        janus_hold_end();                                    /* an inner one */
        for (int k = 0; k < 1000; k++) (void)janus_now_ns(); /* library calls end turns, too */
        for (uint64_t left = 1024; left > 0;) left -= janus_strip_slow(left, 20);
        checks(JANUS_SLICE);
        CHECK_EQ(atomic_load(&neighbour->ran), before);
        janus_hold_end();
        CHECK(atomic_load(&neighbour->ran) > before);
    }
    atomic_store(&neighbour->over, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("in a hold no other task gets the thread, and at its outermost end others run")
{
    struct neighbour neighbour = {0};
    rig_run(1, hold_alone, &neighbour, 1);
}

static int64_t send_later(void *argument)
{
    int value = 7;
    return janus_channel_send(*(janus_channel *)argument, &value);
}

static int64_t wait_in_hold(void *argument)
{
    janus_channel channel;
    janus_nursery n;
    int           value = 0;
    (void)argument;
    CHECK_EQ(janus_channel_create(sizeof value, 0, NULL, &channel), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, send_later, &channel), JANUS_OK);
    janus_hold_begin();
    checks(3 * JANUS_SLICE);
    CHECK_EQ(janus_channel_recv(channel, &value), JANUS_OK);
    CHECK_EQ(value, 7);
    janus_hold_end();
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_channel_destroy(channel), JANUS_OK);
    return 0;
}

TEST("a call that waits is allowed in a hold, and gives the thread away")
{
    rig_all(wait_in_hold, NULL, 20);
}

/* Budgets. */

struct debtor {
    long        in_hold; /* checks to do in it */
    atomic_long done;
    atomic_int  after, defers;
};

static void note_defer(void *argument)
{
    struct debtor *debtor = argument;
    janus_check_or_end(1); /* there is an allowance */
    atomic_fetch_add(&debtor->defers, 1);
}

static int64_t get_into_debt(void *argument)
{
    struct debtor *debtor = argument;
    CHECK_EQ(janus_defer(note_defer, debtor), JANUS_OK);
    janus_hold_begin();
    for (long i = 0; i < debtor->in_hold; i++) {
        janus_check_or_end(1);
        atomic_fetch_add(&debtor->done, 1);
    }
    janus_hold_end();
    atomic_store(&debtor->after, 1);
    return 0;
}

enum { POOL = 20000, LOAN = JANUS_SLICE };

static int64_t lend(void *argument)
{
    struct debtor       *debtor = argument;
    janus_nursery        n;
    janus_nursery_result result = {.kind = JANUS_RESULT_KIND_PENDING};
    janus_budget         pool = JANUS_BUDGET(.ops = POOL + 1, .spawn_count = 1);
    long                 most = debtor->in_hold;
    if (most > POOL + LOAN) most = POOL + LOAN;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, get_into_debt, debtor), JANUS_OK);
    bool pays = debtor->in_hold <= POOL;
    CHECK_EQ(janus_nursery_end(&n, &result), pays ? JANUS_OK : JANUS_CHILD_FAILED);
    if (!pays) CHECK_EQ(result.error, JANUS_BUDGET_EXHAUSTED);
    CHECK_EQ(atomic_load(&debtor->done), most);
    CHECK_EQ(atomic_load(&debtor->after), pays);
    CHECK_EQ(atomic_load(&debtor->defers), 1);
    return 0;
}

TEST("a task that runs out in a hold owes at most JANUS_SLICE ops, and ends where it should pay")
{
    static const long lengths[] = {POOL,        POOL + 1,        POOL + 500,
                                   POOL + LOAN, POOL + LOAN + 1, LONG_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct debtor debtor = {.in_hold = lengths[i]};
        rig_run(1 + i % 2, lend, &debtor, 1);
    }
}

static int64_t owe_more_than_there_is(void *argument)
{
    struct debtor *debtor = argument;
    janus_hold_begin();
    for (long i = 0; i < debtor->in_hold; i++) janus_op(1);
    atomic_store(&debtor->done, 1);
    janus_op(UINT64_MAX - 100); /* with what it owes, this would be a small sum again */
    atomic_store(&debtor->after, 1);
    janus_hold_end();
    return 0;
}

static int64_t lend_too_much(void *argument)
{
    struct debtor       *debtor = argument;
    janus_nursery        n;
    janus_nursery_result result = {.kind = JANUS_RESULT_KIND_PENDING};
    janus_budget         pool = JANUS_BUDGET(.ops = POOL + 1, .spawn_count = 1);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, owe_more_than_there_is, debtor), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.error, JANUS_BUDGET_EXHAUSTED);
    CHECK_EQ(atomic_load(&debtor->done), 1);
    CHECK_EQ(atomic_load(&debtor->after), 0);
    return 0;
}

TEST("a cost near 2^64 in a hold is no small debt")
{
    struct debtor debtor = {.in_hold = POOL + 500};
    rig_run(1, lend_too_much, &debtor, 1);
}

static int64_t hold_without_end(void *argument)
{
    janus_hold_begin();
    for (;;) {
        janus_check_or_end(1);
        atomic_fetch_add((atomic_long *)argument, 1);
    }
    return 0;
}

/* Many children with one op each, that nobody recharges. */
static int64_t split_and_hold(void *argument)
{
    enum { CHILDREN = 50 };
    janus_nursery outer, n;
    janus_budget  pool = JANUS_BUDGET(.ops = 10000, .spawn_count = CHILDREN);
    janus_budget  one = JANUS_BUDGET(.ops = 1);
    CHECK_EQ(janus_nursery_open(&outer, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.exhaustion = JANUS_EXHAUSTION_SUPERVISE,
                                                          .policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
    for (int i = 0; i < CHILDREN; i++) {
        CHECK_EQ(janus_spawn_with(&n, hold_without_end, argument,
                                  JANUS_SPAWN_OPTIONS(.budget = &one), NULL),
                 JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    CHECK_EQ(janus_nursery_end(&outer, NULL), JANUS_OK);
    CHECK_EQ(atomic_load((atomic_long *)argument), 2 * CHILDREN);
    return 0;
}

TEST("a task is lent at most what it ever got, so that many children do not multiply a budget")
{
    atomic_long done = 0;
    rig_run(1, split_and_hold, &done, 1);
}

static int64_t recharge_debtor(void *argument)
{
    struct debtor *debtor = argument;
    janus_nursery  n;
    janus_budget   share = JANUS_BUDGET(.ops = POOL), left;
    CHECK_EQ(
        janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.exhaustion = JANUS_EXHAUSTION_SUPERVISE)),
        JANUS_OK);
    CHECK_EQ(
        janus_spawn_with(&n, get_into_debt, debtor, JANUS_SPAWN_OPTIONS(.budget = &share), NULL),
        JANUS_OK);
    janus_exhausted child = await_exhausted(&n);
    CHECK_EQ(atomic_load(&debtor->done), debtor->in_hold); /* not in the middle */
    CHECK_EQ(janus_nursery_recharge(&n, child.task, JANUS_BUDGET(.ops = 100)), JANUS_OK);
    child = await_exhausted(&n); /* that did not cover the debt */
    left = child.left;
    CHECK_EQ(left.ops, 100);
    CHECK_EQ(atomic_load(&debtor->after), 0);
    uint64_t owes = (uint64_t)(debtor->in_hold - POOL);
    CHECK_EQ(janus_nursery_recharge(&n, child.task, JANUS_BUDGET(.ops = owes - 100)), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(atomic_load(&debtor->after), 1);
    return 0;
}

TEST("a task that is recharged at the end of its hold pays its debt first")
{
    struct debtor debtor = {.in_hold = POOL + 1234};
    rig_run(1, recharge_debtor, &debtor, 1);
}

/* Holds without end. */

static int64_t hold_for_ever(void *argument)
{
    (void)argument;
    janus_hold_begin();
    for (;;) janus_check_or_end(1);
    return 0;
}

static int64_t beside_holder(void *argument)
{
    janus_nursery n;
    uint64_t      limit = janus_now_ns() + rig_patience;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, hold_for_ever, NULL), JANUS_OK);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK(janus_now_ns() < limit);
    }
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    return 0;
}

TEST("a hold without end is over after JANUS_HOLD_TURNS turns: others run, and a cancel ends it")
{
    janus_scheduler *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .turn_ns = JANUS_TURN_NS));
    rig_do(scheduler, beside_holder, NULL);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* Cancels. */

struct cancelled {
    atomic_int holding, told, inside, after;
};

static int64_t hold_until_told(void *argument)
{
    struct cancelled *cancelled = argument;
    janus_hold_begin();
    atomic_store(&cancelled->holding, 1);
    while (!atomic_load(&cancelled->told)) {
        janus_check_or_end(1);
        if (rig_simulated()) rig_spin();
    }
    checks(3 * JANUS_SLICE);
    janus_hold_begin();
    janus_hold_end();
    atomic_store(&cancelled->inside, 1);
    janus_hold_end();
    atomic_store(&cancelled->after, 1);
    return 0;
}

static int64_t cancel_holder(void *argument)
{
    struct cancelled *cancelled = argument;
    janus_nursery     n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, hold_until_told, cancelled), JANUS_OK);
    CHECK(rig_wait(&cancelled->holding));
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    atomic_store(&cancelled->told, 1);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    CHECK_EQ(atomic_load(&cancelled->inside), 1);
    CHECK_EQ(atomic_load(&cancelled->after), 0);
    return 0;
}

TEST("a task that is cancelled in a hold ends at the outermost end")
{
    RIG_REAL("the holder keeps its simulated worker, and the canceller needs another");
    struct cancelled cancelled = {0};
    rig_run(2, cancel_holder, &cancelled, 1);
}

/* Mistakes. */

static int64_t leave_open(void *argument)
{
    (void)argument;
    janus_hold_begin();
    checks(10);
    return 0;
}

static int64_t end_too_often(void *argument)
{
    (void)argument;
    janus_hold_end(); /* its books may not exist yet */
    janus_hold_begin();
    janus_hold_end();
    janus_hold_end();
    janus_hold_begin(); /* the ends above were not saved up */
    janus_hold_end();
    return 0;
}

static int64_t nest(void *argument)
{
    long levels = (long)(intptr_t)argument;
    for (long i = 0; i < levels; i++) janus_hold_begin();
    checks(2 * JANUS_SLICE);
    for (long i = 0; i < levels; i++) janus_hold_end();
    return 0;
}

static void leave_open_in_defer(void *argument) { (void)leave_open(argument); }

static int64_t defer_hold(void *argument)
{
    CHECK_EQ(janus_defer(leave_open_in_defer, argument), JANUS_OK);
    return 0;
}

static void fails_with(janus_entry *entry, void *argument, const char *word)
{
    janus_nursery        n;
    janus_nursery_result result = {.kind = JANUS_RESULT_KIND_PENDING};
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, entry, argument), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.panic.kind, JANUS_PANIC_KIND_EXPLICIT);
    check_says(result.panic.message, word);
}

static int64_t make_mistakes(void *argument)
{
    (void)argument;
    fails_with(leave_open, NULL, "janus_hold_end is missing");
    fails_with(defer_hold, NULL, "janus_hold_end is missing");
    fails_with(nest, (void *)(intptr_t)(JANUS_HOLDS_MAX + 1), "JANUS_HOLDS_MAX");
    CHECK_EQ(nest((void *)(intptr_t)JANUS_HOLDS_MAX), 0);
    return 0;
}

TEST("a hold left open and too many holds panic, by name")
{
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
    rig_do(scheduler, make_mistakes, NULL);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

TEST("an end without a begin does nothing: the lock may be another's")
{
    rig_run(1, end_too_often, NULL, 1);
}

TEST("outside of tasks holds do nothing")
{
    janus_hold_begin();
    checks(3 * JANUS_SLICE);
    janus_hold_end();
    janus_hold_end();
}
