/* SPDX-License-Identifier: MIT */
/* Shields with a deadline: what holds before it, what ends at it, how they nest. */
#include "rig.h"

#include <string.h>

enum { REPEATS = RIG_SLOW ? 5 : 30 };

/* A child that is cancelled as soon as it has arrived; `body` does the rest. */
struct trial {
    void       (*body)(void);
    bool       stay; /* it is not cancelled */
    atomic_int arrived, ended;
};

static int64_t try_it(void *argument)
{
    struct trial *trial = argument;
    atomic_store(&trial->arrived, 1);
    while (!trial->stay && !janus_cancelled()) JANUS_IGNORE(janus_yield());
    trial->body();
    atomic_store(&trial->ended, 1);
    return janus_cancelled() ? JANUS_CANCELLED : 0;
}

static int64_t run_trial(void *argument)
{
    struct trial trial = *(struct trial *)argument;
    bool         cancel = !trial.stay;
    atomic_store(&trial.arrived, 0);
    atomic_store(&trial.ended, 0);
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, try_it, &trial), JANUS_OK);
    CHECK(rig_wait(&trial.arrived));
    if (cancel) CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), cancel ? JANUS_CANCELLED : JANUS_OK);
    CHECK(atomic_load(&trial.ended));
    return 0;
}

static void try_all(void (*body)(void), bool stay, int times)
{
    struct trial trial = {.body = body, .stay = stay};
    rig_all(run_trial, &trial, times);
}

static uint64_t in_ns(uint64_t duration) { return janus_now_ns() + duration; }

static const uint64_t hour = UINT64_C(3600) * 1000000000;

static void wait_before_and_after(void)
{
    janus_shield shield;
    uint64_t     end = in_ns(2 * rig_ms);
    CHECK_EQ(janus_yield(), JANUS_CANCELLED);
    janus_shield_begin_until(&shield, end);
    if (janus_yield() == JANUS_OK) CHECK(!janus_cancelled() || janus_now_ns() >= end);
    janus_status status = janus_sleep(hour); /* in progress when the deadline comes */
    CHECK_EQ(status, JANUS_CANCELLED);
    CHECK(janus_now_ns() >= end);
    CHECK(janus_cancelled());
    CHECK_EQ(janus_yield(), JANUS_CANCELLED);
    CHECK_EQ(janus_blocking(nothing, NULL, NULL), JANUS_CANCELLED);
    janus_shield_end();
    CHECK_EQ(janus_yield(), JANUS_CANCELLED);
}

TEST("in a shield a cancelled task can wait, and its wait ends at the deadline")
{
    try_all(wait_before_and_after, false, REPEATS);
}

static void short_waits(void)
{
    janus_shield shield;
    janus_shield_begin_until(&shield, in_ns(hour));
    for (int i = 0; i < 20; i++) {
        uint64_t until = in_ns(rig_ms / 50);
        CHECK_EQ(janus_sleep_until(until), JANUS_OK);
        CHECK(janus_now_ns() >= until);
    }
    CHECK_EQ(janus_blocking(nothing, NULL, NULL), JANUS_OK);
    CHECK(!janus_cancelled());
    janus_shield_end();
}

TEST("before the deadline waits in a shield are complete") { try_all(short_waits, false, REPEATS); }

static void wait_through(void)
{
    janus_shield shield;
    uint64_t     end = in_ns(rig_ms / 2), until = end + rig_ms / 2;
    janus_shield_begin_until(&shield, end);
    CHECK_EQ(janus_sleep_until(until), JANUS_OK);
    CHECK(janus_now_ns() >= until);
    CHECK_EQ(janus_yield(), JANUS_OK);
    janus_shield_end();
}

TEST("a shield's deadline does nothing to a task that is not cancelled")
{
    try_all(wait_through, true, REPEATS);
}

static void over_at_once(void)
{
    janus_shield shield;
    janus_shield_begin_until(&shield, 0);
    CHECK_EQ(janus_sleep(hour), JANUS_CANCELLED);
    janus_shield_end();
    janus_shield_begin_until(&shield, UINT64_MAX);
    CHECK_EQ(janus_sleep(rig_ms / 20), JANUS_OK);
    janus_shield_end();
}

TEST("a shield's deadline of 0 has passed, and one of UINT64_MAX never passes")
{
    try_all(over_at_once, false, REPEATS);
}

static void nested(void)
{
    janus_shield outer, inner;
    janus_shield_begin_until(&outer, 0);
    CHECK_EQ(janus_yield(), JANUS_CANCELLED);
    janus_shield_begin(); /* plain: holds, although the shield around is over */
    CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_sleep(rig_ms / 20), JANUS_OK);
    janus_shield_begin_until(&inner, 0); /* over, although the shield around holds */
    CHECK_EQ(janus_yield(), JANUS_CANCELLED);
    janus_shield_end();
    CHECK_EQ(janus_yield(), JANUS_OK);
    janus_shield_begin_until(&inner, in_ns(hour));
    CHECK_EQ(janus_yield(), JANUS_OK);
    janus_shield_end();
    janus_shield_end();
    CHECK_EQ(janus_yield(), JANUS_CANCELLED);
    janus_shield_begin_until(&inner, in_ns(hour)); /* later than the shield around */
    CHECK_EQ(janus_yield(), JANUS_OK);
    janus_shield_end();
    janus_shield_end();
    CHECK_EQ(janus_yield(), JANUS_CANCELLED);
}

TEST("of nested shields the innermost decides, and after its end the outer one")
{
    try_all(nested, false, REPEATS);
}

static void three_hundred(void)
{
    janus_shield shields[300];
    for (int i = 0; i < 300; i++) {
        if (i % 3 == 0) janus_shield_begin_until(&shields[i], i % 2 == 0 ? 0 : UINT64_MAX);
        if (i % 3 != 0) janus_shield_begin();
    }
    for (int i = 299; i >= 0; i--) {
        CHECK_EQ(janus_yield(), i % 6 == 0 ? JANUS_CANCELLED : JANUS_OK);
        janus_shield_end();
    }
    CHECK_EQ(janus_yield(), JANUS_CANCELLED);
}

TEST("three hundred shields nest") { try_all(three_hundred, false, 3); }

/* Broken contracts. */

static int64_t end_without_begin(void *argument)
{
    (void)argument;
    janus_shield_begin();
    janus_shield_end();
    janus_shield_end();
    return 0;
}

static void end_too_many(void *argument)
{
    (void)argument;
    janus_shield_begin();
    janus_shield_end();
    janus_shield_end();
}

static int64_t end_in_defer(void *argument)
{
    return janus_defer(end_too_many, argument) == JANUS_OK ? 0 : -1;
}

static int64_t too_many(void *argument)
{
    (void)argument;
    for (int i = 0; i < 65536; i++) janus_shield_begin();
    return 0;
}

static void check_panics(janus_entry *entry, const char *words)
{
    janus_nursery        root;
    janus_nursery_result result;
    janus_scheduler     *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.quiet_panics = true));
    CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&root, entry, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&root, &result), JANUS_CHILD_FAILED);
    CHECK(strstr(result.panic.message, words) != NULL);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

TEST("a task that ends a shield that it did not begin, or begins 65536, panics")
{
    check_panics(end_without_begin, "janus_shield_end without janus_shield_begin");
    check_panics(end_in_defer, "janus_shield_end without janus_shield_begin");
    check_panics(too_many, "janus_shield_begin: the task has begun 65535 shields");
    janus_shield shield; /* outside a task they do nothing */
    janus_shield_begin_until(&shield, 0);
    janus_shield_end();
    janus_shield_end();
}

/* Nurseries inside. */

/* The deadline may pass before the spawn. */
static void spawn_in_time(janus_nursery *n, janus_entry *entry, uint64_t end)
{
    janus_status status = janus_spawn(n, entry, NULL);
    if (status == JANUS_CLOSED) CHECK(janus_now_ns() >= end);
    if (status != JANUS_CLOSED) CHECK_EQ(status, JANUS_OK);
}

static void nursery_until(void)
{
    janus_shield         shield;
    janus_nursery        n;
    janus_nursery_result result;
    uint64_t             end = in_ns(3 * rig_ms);
    janus_shield_begin_until(&shield, end);
    janus_status opened = janus_nursery_open(&n, NULL);
    CHECK_EQ(opened, JANUS_OK);
    spawn_in_time(&n, sleep_an_hour, end);
    spawn_in_time(&n, yield_for_ever, end);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CANCELLED);
    CHECK(janus_now_ns() >= end);
    CHECK_EQ(result.reason, JANUS_CANCEL_REASON_PARENT);
    janus_shield_end();
}

TEST("children of a nursery inside are held off until the deadline, then cancelled")
{
    try_all(nursery_until, false, REPEATS);
}

static void nursery_in_time(void)
{
    janus_shield  shield;
    janus_nursery n;
    atomic_int    count = 0;
    janus_shield_begin_until(&shield, in_ns(hour));
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.name = "in time")), JANUS_OK);
    CHECK(!janus_nursery_is_cancelled(&n));
    for (int i = 0; i < 10; i++) CHECK_EQ(janus_spawn(&n, count_me, &count), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(count, 10);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = 77)), JANUS_INVALID);
    janus_shield_end();
    janus_shield_begin_until(&shield, 0);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK); /* too late to be covered */
    CHECK(janus_nursery_is_cancelled(&n));
    CHECK_EQ(janus_spawn(&n, count_me, &count), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    CHECK_EQ(count, 10);
    janus_shield_end();
}

TEST("a nursery that ends before the shield's deadline is not touched by it")
{
    try_all(nursery_in_time, false, REPEATS);
}

/* The deadline passes first, the cancel comes later: it must get through. */

struct late {
    bool       nursery;
    atomic_int waits;
};

static int64_t wait_past_deadline(void *argument)
{
    struct late  *late = argument;
    janus_shield  shield;
    janus_nursery n;
    janus_status  status;
    uint64_t      end = in_ns(rig_ms / 4);
    janus_shield_begin_until(&shield, end);
    if (late->nursery) {
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, sleep_an_hour, &late->waits), JANUS_OK);
        status = janus_nursery_end(&n, NULL);
    } else {
        atomic_store(&late->waits, 1);
        status = janus_sleep(hour);
    }
    CHECK(janus_now_ns() >= end);
    CHECK_EQ(status, JANUS_CANCELLED);
    janus_shield_end();
    return status;
}

static int64_t cancel_late(void *argument)
{
    struct late   late = {.nursery = argument != NULL};
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, wait_past_deadline, &late), JANUS_OK);
    CHECK(rig_wait(&late.waits));
    CHECK_EQ(janus_sleep(rig_ms), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("a cancel after the deadline ends a wait that began before it")
{
    rig_all(cancel_late, NULL, REPEATS);
}

TEST("a cancel after the deadline reaches a nursery that was opened before it")
{
    rig_all(cancel_late, "nursery", REPEATS);
}

/* The cancel and the deadline at the same moment, again and again: every wait ends. */

enum { CROWD = 12 };

static int64_t race_one(void *argument)
{
    uint64_t     end = *(uint64_t *)argument;
    janus_shield shield;
    janus_status status = JANUS_OK;
    janus_shield_begin_until(&shield, end);
    if (janus_task_current_id() % 2 == 0) {
        janus_nursery n;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        spawn_in_time(&n, sleep_an_hour, end);
        status = janus_nursery_end(&n, NULL);
    } else {
        status = janus_sleep(hour);
    }
    CHECK_EQ(status, JANUS_CANCELLED);
    CHECK(janus_now_ns() >= end);
    janus_shield_end();
    return status;
}

static int64_t race(void *argument)
{
    uint64_t last = in_ns(rig_few((RIG_SLOW ? 1500 : 800) * rig_ms));
    (void)argument;
    for (uint64_t round = 0; janus_now_ns() < last; round++) {
        janus_nursery n;
        uint64_t      end = in_ns(60000 + round % 16 * 4000);
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        for (int i = 0; i < CROWD; i++) CHECK_EQ(janus_spawn(&n, race_one, &end), JANUS_OK);
        CHECK_EQ(janus_sleep_until(end - 4000 + round % 7 * 1000), JANUS_OK);
        CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    }
    return 0;
}

TEST("a cancel at the moment of the deadline ends every wait, and none before it")
{
    rig_run(4, race, NULL, 1);
}

/* Grace. */

struct cleanup {
    atomic_int   ready, ended;
    janus_status slept, nursery;
    bool         plain;
};

static void clean_long(void *argument)
{
    struct cleanup *cleanup = argument;
    janus_nursery   n;
    if (cleanup->plain) janus_shield_begin();
    cleanup->slept = janus_sleep(cleanup->plain ? 20 * rig_ms : hour);
    if (cleanup->plain) janus_shield_end();
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    JANUS_IGNORE(janus_spawn(&n, sleep_an_hour, NULL));
    cleanup->nursery = janus_nursery_end(&n, NULL);
    if (!cleanup->plain) janus_shield_begin(); /* and left so: the next defer begins afresh */
    atomic_fetch_add(&cleanup->ended, 1);
}

static int64_t clean_up_long(void *argument)
{
    struct cleanup *cleanup = argument;
    CHECK_EQ(janus_defer(clean_long, cleanup), JANUS_OK);
    CHECK_EQ(janus_defer(clean_long, cleanup), JANUS_OK);
    atomic_store(&cleanup->ready, 1);
    return yield_for_ever(NULL);
}

static int64_t cancel_cleaner(void *argument)
{
    struct cleanup *cleanup = argument;
    janus_nursery   n;
    atomic_store(&cleanup->ready, 0);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, clean_up_long, cleanup), JANUS_OK);
    CHECK(rig_wait(&cleanup->ready));
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("with grace_ns the defers of a cancelled task wait at most that long")
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        struct cleanup   cleanup = {.slept = JANUS_OK};
        janus_scheduler *scheduler =
            rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .grace_ns = 10 * rig_ms));
        uint64_t start = janus_now_ns();
        rig_do(scheduler, cancel_cleaner, &cleanup);
        CHECK(janus_now_ns() - start >= 10 * rig_ms);
        CHECK_EQ(cleanup.ended, 2);
        CHECK_EQ(cleanup.slept, JANUS_CANCELLED);
        CHECK_EQ(cleanup.nursery, JANUS_CANCELLED);
        cleanup.plain = true; /* its own shield does not either */
        rig_do(scheduler, cancel_cleaner, &cleanup);
        CHECK_EQ(cleanup.slept, JANUS_CANCELLED);
        CHECK_EQ(cleanup.nursery, JANUS_CANCELLED);
        CHECK_EQ(cleanup.ended, 4);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

/* Unwinding. */

static void note_end(void *argument) { atomic_fetch_add((atomic_int *)argument, 1); }

static int64_t unwind_at_deadline(void *argument)
{
    janus_shield shield;
    CHECK_EQ(janus_defer(note_end, argument), JANUS_OK);
    janus_shield_begin_until(&shield, in_ns(rig_ms));
    JANUS_IGNORE(janus_sleep(hour));
    bool went_on = true;
    CHECK(!went_on);
    return 0;
}

/* Panics in a shield: the defers must not meet what is left of it. */
static int64_t panic_in_shield(void *argument)
{
    janus_shield shield;
    CHECK_EQ(janus_defer(note_end, argument), JANUS_OK);
    janus_shield_begin_until(&shield, 0);
    janus_panic("in a shield");
}

static int64_t unwind_in_shield(void *argument)
{
    (void)argument;
    janus_nursery n;
    atomic_int    ended = 0;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, unwind_at_deadline, &ended,
                              JANUS_SPAWN_OPTIONS(.cancel = JANUS_CANCEL_MODE_UNWIND), NULL),
             JANUS_OK);
    CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, panic_in_shield, &ended), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED); /* the panic cancelled the other */
    CHECK(ended == 2 || ended == 1);                           /* it may not have begun */
    return 0;
}

TEST("a cancelled task in unwind mode ends at the deadline of its shield")
{
    rig_all(unwind_in_shield, NULL, REPEATS);
}
