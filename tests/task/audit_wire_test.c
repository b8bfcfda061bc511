/* SPDX-License-Identifier: MIT */
/* The audit log of a scheduler: what tasks do with capabilities and budgets, line by line. */
#include "caps.h"

#include "plat/seam.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A log in memory. The drain takes lines one at a time, under its lock. */

enum { TEXT_BYTES = 1 << 22 };

static char        text[TEXT_BYTES];
static size_t      text_bytes;
static atomic_bool sink_is_shut;

static bool keep(void *argument, const char *line, size_t bytes)
{
    (void)argument;
    if (atomic_load(&sink_is_shut)) return false;
    CHECK(text_bytes + bytes < sizeof text);
    memcpy(text + text_bytes, line, bytes + 1);
    text_bytes += bytes;
    return true;
}

static janus_audit *begin_log(uint32_t ring_events, uint64_t max_use_count, bool fail_closed)
{
    janus_audit *audit = NULL;
    text_bytes = 0;
    text[0] = 0;
    atomic_store(&sink_is_shut, false);
    CHECK_EQ(janus_audit_create(JANUS_AUDIT_OPTIONS(.sink = keep, .ring_events = ring_events,
                                                    .max_use_count = max_use_count,
                                                    .fail_closed = fail_closed),
                                &audit),
             JANUS_OK);
    return audit;
}

static bool has(const char *line, size_t bytes, const char *what)
{
    return memmem(line, bytes, what, strlen(what)) != NULL;
}

/* Over all lines with both texts: their number, or the sum of the numbers behind `key`. */
static uint64_t sum(const char *one, const char *two, const char *key)
{
    uint64_t total = 0;
    for (const char *line = text; *line != 0;) {
        size_t bytes = (size_t)(strchr(line, '\n') + 1 - line);
        if (has(line, bytes, one) && has(line, bytes, two)) {
            total += key == NULL ? 1 : strtoull(strstr(line, key) + strlen(key), NULL, 10);
        }
        line += bytes;
    }
    return total;
}

static uint64_t lines(const char *one, const char *two) { return sum(one, two, NULL); }

static const char *const use = "\"event\":\"use\"", *const denial = "\"event\":\"denial\"";
static const char *const spawn_task = "\"wanted\":\"spawn.task\"";

static janus_audit_info stats_of(janus_audit *audit)
{
    janus_audit_info stats = JANUS_AUDIT_INFO();
    CHECK_EQ(janus_audit_inspect(audit, &stats), JANUS_OK);
    return stats;
}

static void run(janus_audit *audit, uint32_t workers, janus_profile profile, janus_entry *entry,
                void *argument)
{
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .profile = profile,
                                               .yield_interval = 512, .audit = audit),
                       entry, argument, NULL),
             JANUS_OK);
}

/* Every kind. */

struct story {
    janus_cap  caps[6]; /* their nonces must not be shown */
    atomic_int ops;
};

static int64_t spend(void *argument)
{
    for (;;) {
        if (janus_check() != JANUS_OK) return JANUS_CANCELLED;
        atomic_fetch_add((atomic_int *)argument, 1);
    }
}

static janus_verdict decide(void *argument, const janus_exhausted *child, janus_budget *grant)
{
    atomic_int *asked = argument;
    (void)child;
    *grant = janus_budget_of(10, 3, 0, 0, 0);
    return atomic_fetch_add(asked, 1) == 0 ? JANUS_VERDICT_RECHARGE : JANUS_VERDICT_CANCEL;
}

static void be_exhausted(janus_cap spawn, janus_cap budget, atomic_int *ops)
{
    atomic_int      asked = 0;
    janus_nursery   n;
    janus_exhausted child;
    CHECK_EQ(
        janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.spawn_cap = spawn, .budget_cap = budget,
                                                     .exhaustion = JANUS_EXHAUSTION_SUPERVISE)),
        JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, spend, ops, JANUS_SPAWN_OPTIONS(.name = "spender"), NULL),
             JANUS_OK);
    CHECK_EQ(janus_nursery_wait_exhausted(&n, &child), JANUS_OK);
    CHECK_EQ(janus_nursery_recharge(&n, child.task, janus_budget_of(50, 7, 0, 0, 0)), JANUS_OK);
    CHECK_EQ(janus_nursery_wait_exhausted(&n, &child), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel_exhausted(&n, child.task), JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    CHECK_EQ(janus_nursery_open(
                 &n, JANUS_NURSERY_OPTIONS(.spawn_cap = spawn, .budget_cap = budget,
                                           .on_exhausted = decide, .on_exhausted_argument = &asked,
                                           .exhaustion = JANUS_EXHAUSTION_SUPERVISE)),
             JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, spend, ops, JANUS_SPAWN_OPTIONS(.name = "asker"), NULL),
             JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    CHECK_EQ(asked, 2);
}

static int64_t tell_everything(void *argument)
{
    struct story          *story = argument;
    const janus_authority *root = caps_root();
    const janus_cap_limits limits = {.spawn = {5, janus_budget_of(1000, 10, 0, 0, 0)}};
    janus_nursery          n;
    janus_cap             *cap = story->caps;
    CHECK_EQ(janus_cap_mint(root, 0,
                            JANUS_CAP_GRANT(.kind = JANUS_CAP_KIND_SPAWN,
                                            .rights = JANUS_RIGHTS_ALL, .limits = &limits,
                                            .delegation_depth = 1, .name = "storyteller's"),
                            &cap[0]),
             JANUS_OK);
    cap[1] = caps_budget(root, JANUS_RIGHTS_ALL, 1000, 1000);
    CHECK_EQ(
        janus_cap_attenuate(cap[0], JANUS_CAP_GRANT(.rights = JANUS_RIGHT_SPAWN_TASK), &cap[2]),
        JANUS_OK);
    CHECK_EQ(janus_cap_delegate(cap[0], janus_task_current_id() + 1, NULL, &cap[3]), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_NO_SPAWN_CAP);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    be_exhausted(cap[0], cap[1], &story->ops);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget_cap = cap[1])), JANUS_OK);
    CHECK_EQ(janus_budget_recharge_current(janus_budget_of(0, 0, 0, 0, 5), NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_cap_revoke(cap[3], cap[0]), JANUS_OK);
    CHECK_EQ(janus_cap_release(cap[2]), JANUS_OK);
    return 0;
}

static void check_story(void)
{
    const char *recharge = "\"event\":\"recharge\"", *exhaustion = "\"event\":\"exhaustion\"";
    CHECK_EQ(lines("\"event\":\"creation\"", ""), 2);
    CHECK_EQ(lines("\"event\":\"creation\"", "\"name\":\"storyteller's\""), 1);
    CHECK_EQ(lines("\"event\":\"attenuation\"", "\"origin\":"), 1);
    CHECK_EQ(lines("\"event\":\"delegation\"", "\"to_holder\":"), 1);
    CHECK_EQ(lines("\"event\":\"revocation\"", "\"count\":1"), 1);
    CHECK_EQ(lines("\"event\":\"release\"", ""), 1);
    CHECK_EQ(lines(denial, ""), 1);
    CHECK_EQ(lines(denial, "\"status\":\"JANUS_NO_SPAWN_CAP\""), 1);
    CHECK_EQ(sum(use, spawn_task, "\"count\":"), 2);
    CHECK_EQ(sum(use, "\"wanted\":\"spawn.nursery\"", "\"count\":"), 2);
    CHECK_EQ(sum(use, "\"wanted\":\"budget.transfer\"", "\"count\":"), 2);
    CHECK_EQ(sum(use, "\"wanted\":\"budget.recharge\"", "\"count\":"), 1);
    CHECK_EQ(lines(exhaustion, "\"component\":\"ops\""), 4);
    CHECK_EQ(lines(exhaustion, "\"name\":\"spender\""), 2);
    CHECK_EQ(lines(exhaustion, "\"name\":\"asker\""), 2);
    CHECK_EQ(lines(recharge, ""), 5);
    CHECK_EQ(lines(recharge, "\"component\":\"ops\",\"before\":0,\"after\":50"), 1);
    CHECK_EQ(lines(recharge, "\"component\":\"memory\",\"before\":10,\"after\":17"), 1);
    CHECK_EQ(lines(recharge, "\"component\":\"ops\",\"before\":0,\"after\":10"), 1);
    CHECK_EQ(lines(recharge, "\"component\":\"memory\",\"before\":10,\"after\":13"), 1);
    CHECK_EQ(lines(recharge, "\"component\":\"syscalls\""), 1);
    CHECK_EQ(lines("\"event\":\"gap\"", ""), 0);
}

static void check_no_nonce(const struct story *story)
{
    for (int i = 0; i < 4; i++) {
        char decimal[32], hex[32];
        (void)snprintf(decimal, sizeof decimal, "%llu", (unsigned long long)story->caps[i].nonce);
        (void)snprintf(hex, sizeof hex, "%llx", (unsigned long long)story->caps[i].nonce);
        CHECK(strstr(text, decimal) == NULL);
        CHECK(strstr(text, hex) == NULL);
    }
}

/* CAP:12.3.1, CAP:9.3.1/spawn, CAP:9.3.1/budget. */
TEST("every kind of event that tasks cause is written, and a nonce never")
{
    for (uint32_t workers = 1; workers <= 4; workers *= 2) {
        janus_audit *audit = begin_log(0, 0, false);
        struct story story = {.ops = 0};
        run(audit, workers, JANUS_PROFILE_SOVEREIGN, tell_everything, &story);
        CHECK_EQ(janus_audit_destroy(audit), JANUS_OK);
        CHECK_EQ(story.ops, 2060);
        check_story();
        check_no_nonce(&story);
    }
}

static int64_t mint_elsewhere(void *argument)
{
    (void)caps_spawn(argument, 1);
    return 0;
}

/* CAP:12.3.1. */
TEST("what a task mints with another scheduler's authority is in that scheduler's log")
{
    janus_audit     *audit = begin_log(0, 0, false), *other = NULL;
    janus_scheduler *scheduler;
    janus_authority *root;
    CHECK_EQ(janus_audit_create(JANUS_AUDIT_OPTIONS(.sink = keep), &other), JANUS_OK);
    CHECK_EQ(janus_scheduler_create_with(JANUS_SCHEDULER_OPTIONS(.audit = other), &scheduler),
             JANUS_OK);
    CHECK_EQ(janus_authority_take(scheduler, &root), JANUS_OK);
    run(audit, 1, JANUS_PROFILE_SERVICE, mint_elsewhere, root);
    CHECK_EQ(janus_audit_destroy(audit), JANUS_OK);
    CHECK_EQ(lines("\"event\":\"creation\"", ""), 0);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    CHECK_EQ(janus_audit_destroy(other), JANUS_OK);
    /* The capability for outside threads. */
    CHECK_EQ(lines("\"event\":\"creation\"", "\"holder\":\"1\""), 1);
}

/* Uses. */

static int64_t spawn_thousand(void *argument)
{
    atomic_int    ran = 0;
    janus_nursery n;
    (void)argument;
    caps_open(&n, caps_spawn(caps_root(), 2000));
    for (int i = 0; i < 1000; i++) CHECK_EQ(janus_spawn(&n, count_me, &ran), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(ran, 1000);
    return 0;
}

/* CAP:12.3.1; a scheduler closes its writers, and their places are used again. */
TEST("a thousand uses are a few lines that add up, even over two schedulers with one log")
{
    janus_audit *audit = begin_log(0, 0, false);
    run(audit, 1, JANUS_PROFILE_SOVEREIGN, spawn_thousand, NULL);
    CHECK_EQ(janus_audit_drain(audit), JANUS_OK); /* the scheduler is gone, all uses are written */
    CHECK_EQ(sum(use, spawn_task, "\"count\":"), 1000);
    CHECK(lines(use, spawn_task) <= 3);
    run(audit, 1, JANUS_PROFILE_SOVEREIGN, spawn_thousand, NULL);
    CHECK_EQ(janus_audit_destroy(audit), JANUS_OK);
    CHECK_EQ(sum(use, spawn_task, "\"count\":"), 2000);
    CHECK_EQ(lines("\"writer\":2", ""), 0); /* 0: all threads, 1: the worker, both times */
    CHECK(lines("\"writer\":1", "") > 0);
}

static int64_t burst(void *argument)
{
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 100; i++) CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

/* A scheduler of one sovereign worker, and a capability for threads. */
static janus_scheduler *open_watched(janus_audit *audit, janus_cap *out)
{
    janus_scheduler *scheduler;
    janus_authority *root;
    CHECK_EQ(janus_scheduler_create_with(
                 JANUS_SCHEDULER_OPTIONS(.profile = JANUS_PROFILE_SOVEREIGN, .worker_count = 1,
                                         .yield_interval = 512, .audit = audit),
                 &scheduler),
             JANUS_OK);
    CHECK_EQ(janus_authority_take(scheduler, &root), JANUS_OK);
    *out = caps_spawn(root, 200);
    CHECK_EQ(janus_scheduler_start(scheduler), JANUS_OK);
    return scheduler;
}

/* [audit-uses] of a worker. */
TEST("a worker writes the uses that it has counted before it sleeps")
{
    janus_audit     *audit = begin_log(0, 0, false);
    janus_cap        cap;
    janus_scheduler *scheduler = open_watched(audit, &cap);
    janus_nursery    n;
    uint64_t         limit = janus_now_ns() + rig_patience;
    CHECK_EQ(janus_nursery_open_in(scheduler, &n, JANUS_NURSERY_OPTIONS(.spawn_cap = cap)),
             JANUS_OK);
    CHECK_EQ(janus_spawn(&n, burst, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    do { /* nobody uses a capability any more: only the worker itself can write the uses */
        CHECK(janus_now_ns() < limit);
        CHECK_EQ(janus_audit_drain(audit), JANUS_OK);
        jrt_thread_yield();
    } while (sum(use, spawn_task, "\"count\":") < 101);
    CHECK_EQ(sum(use, spawn_task, "\"count\":"), 101);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    CHECK_EQ(janus_audit_destroy(audit), JANUS_OK);
    CHECK_EQ(sum(use, spawn_task, "\"count\":"), 101);
}

/* Denials. */

static int64_t be_denied(void *argument)
{
    const janus_authority *root = caps_root();
    const janus_cap_limits limits = {.spawn = {2, janus_budget_default()}};
    janus_cap   scopes = caps_mint(root, JANUS_CAP_KIND_SPAWN, JANUS_RIGHT_SPAWN_NURSERY, &limits);
    struct gate gate = {.open = 0};
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 50; i++) CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_NO_SPAWN_CAP);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    caps_open(&n, scopes);
    for (int i = 0; i < 51; i++) CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_CAP_RIGHT);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    caps_open(&n, caps_spawn(root, 2));
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_spawn(&n, at_gate, &gate), JANUS_OK);
    for (int i = 0; i < 52; i++) CHECK_EQ(janus_spawn(&n, at_gate, &gate), JANUS_TASK_LIMIT);
    atomic_store(&gate.open, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    for (int i = 0; i < 53; i++) {
        CHECK_EQ(janus_budget_recharge(janus_budget_default()), JANUS_NO_BUDGET_CAP);
    }
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.backend = 4)), JANUS_NO_EXECUTOR_CAP);
    return 0;
}

/* CAP:9.3.1/spawn, CAP:9.3.1/budget, CAP:9.3.1/backend, C33. */
TEST("each denial is a line of its own, even if no capability was shown")
{
    janus_audit *audit = begin_log(0, 0, false);
    run(audit, 2, JANUS_PROFILE_SOVEREIGN, be_denied, NULL);
    CHECK_EQ(janus_audit_destroy(audit), JANUS_OK);
    CHECK_EQ(lines(denial, "JANUS_NO_SPAWN_CAP"), 50);
    CHECK_EQ(lines(denial, "JANUS_CAP_RIGHT"), 51);
    CHECK_EQ(lines(denial, "JANUS_TASK_LIMIT"), 52);
    CHECK_EQ(lines(denial, "JANUS_NO_BUDGET_CAP"), 53);
    CHECK_EQ(lines(denial, "JANUS_NO_EXECUTOR_CAP"), 1);
    CHECK_EQ(lines(denial, ""), 207);
}

static int64_t open_channels(void *argument)
{
    const janus_cap_limits limits = {.channel = {8, 1}};
    janus_channel          made, more;
    janus_nursery          n;
    janus_cap cap = caps_mint(caps_root(), JANUS_CAP_KIND_CHANNEL, JANUS_RIGHTS_ALL, &limits);
    (void)argument;
    CHECK_EQ(janus_channel_create(8, 1, NULL, &more), JANUS_NO_CHANNEL_CAP);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.channel_cap = cap)), JANUS_OK);
    CHECK_EQ(janus_channel_create(8, 9, NULL, &more), JANUS_CAP_LIMIT);
    CHECK_EQ(janus_channel_create(8, 8, NULL, &made), JANUS_OK);
    CHECK_EQ(janus_channel_create(8, 8, NULL, &more), JANUS_CHANNEL_LIMIT);
    CHECK_EQ(janus_channel_destroy(made), JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

/* CAP:9.3.1/channel. */
TEST("the audit log records each channel that a task opens, and each refusal")
{
    static const char *const create = "\"wanted\":\"channel.create\"";
    janus_audit             *audit = begin_log(0, 0, false);
    run(audit, 1, JANUS_PROFILE_SOVEREIGN, open_channels, NULL);
    CHECK_EQ(janus_audit_destroy(audit), JANUS_OK);
    CHECK_EQ(sum(use, create, "\"count\":"), 1);
    CHECK_EQ(lines(denial, create), 3);
    CHECK_EQ(lines(denial, "JANUS_NO_CHANNEL_CAP"), 1);
    CHECK_EQ(lines(denial, "JANUS_CAP_LIMIT"), 1);
    CHECK_EQ(lines(denial, "JANUS_CHANNEL_LIMIT"), 1);
}

static int64_t crowd_of_ten(void *argument)
{
    struct gate   gate = {.open = 0};
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 9; i++) CHECK_EQ(janus_spawn(&n, at_gate, &gate), JANUS_OK);
    for (int i = 0; i < 30; i++) {
        CHECK_EQ(janus_spawn(&n, at_gate, &gate), JANUS_TASK_LIMIT);
        CHECK_EQ(janus_spawn_with(&n, at_gate, &gate, NULL, NULL), JANUS_TASK_LIMIT);
    }
    atomic_store(&gate.open, 1);
    return janus_nursery_end(&n, NULL);
}

/* CAP:3.2.2/implicit. */
TEST("a spawn over the scheduler's own limit is a denial too, from tasks and from threads")
{
    janus_audit     *audit = begin_log(0, 0, false);
    janus_scheduler *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.max_tasks = 10, .worker_count = 2, .audit = audit));
    struct gate   gate = {.open = 0};
    janus_nursery n;
    rig_do(scheduler, crowd_of_ten, NULL);
    CHECK_EQ(caps_stats(scheduler).refused_limit, 60);
    CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_OK);
    for (int i = 0; i < 10; i++) CHECK_EQ(janus_spawn(&n, at_gate, &gate), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, at_gate, &gate), JANUS_TASK_LIMIT);
    atomic_store(&gate.open, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    CHECK_EQ(janus_audit_destroy(audit), JANUS_OK);
    CHECK_EQ(lines(denial, "JANUS_TASK_LIMIT"), 61);
    CHECK_EQ(lines(denial, "\"holder\":\"1\""), 1); /* the thread */
    CHECK_EQ(lines(use, ""), 0);                    /* implicit rights show no capability */
}

/* Gaps. */

static int64_t be_denied_often(void *argument)
{
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 100; i++) CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_NO_SPAWN_CAP);
    return janus_nursery_end(&n, NULL);
}

/* CAP:12.3.1. */
TEST("a gap in the log says how many records a full ring lost")
{
    janus_audit *audit = begin_log(8, 0, false);
    run(audit, 1, JANUS_PROFILE_SOVEREIGN, be_denied_often, NULL);
    CHECK_EQ(stats_of(audit).lost, 92);
    CHECK_EQ(janus_audit_destroy(audit), JANUS_OK);
    CHECK_EQ(lines(denial, ""), 8);
    CHECK_EQ(lines("\"event\":\"gap\"", "\"lost\":92"), 1);
    CHECK_EQ(lines("\"event\":\"gap\"", ""), 1);
}

/* Failing closed. */

struct closed {
    janus_audit *audit;
    uint64_t     started, refused;
};

static int64_t spawn_until_full(void *argument)
{
    struct closed *closed = argument;
    janus_nursery  n;
    caps_open(&n, caps_spawn(caps_root(), 1000));
    for (int round = 0; round < 3; round++) {
        janus_status status;
        atomic_store(&sink_is_shut, true);
        while ((status = janus_spawn(&n, nothing, NULL)) == JANUS_OK) closed->started++;
        CHECK_EQ(status, JANUS_AUDIT_FULL);
        closed->refused++;
        for (int i = 0; i < 20; i++) {
            status = janus_spawn(&n, nothing, NULL);
            if (status == JANUS_OK) { /* its turn ended, and the next worker's ring had room */
                closed->started++;
            } else {
                CHECK_EQ(status, JANUS_AUDIT_FULL);
                closed->refused++;
            }
        }
        CHECK_EQ(janus_audit_drain(closed->audit), JANUS_UNAVAILABLE);
        atomic_store(&sink_is_shut, false);
        CHECK_EQ(janus_audit_drain(closed->audit), JANUS_OK);
    }
    return janus_nursery_end(&n, NULL);
}

/* CAP:12.3.1 (nothing unrecorded). */
TEST("with a log that fails closed no task starts unrecorded, and no record is lost")
{
    for (uint32_t workers = 1; workers <= 4; workers *= 4) {
        struct closed closed = {.audit = begin_log(16, 1, true)};
        run(closed.audit, workers, JANUS_PROFILE_SOVEREIGN, spawn_until_full, &closed);
        CHECK(closed.started >= 3 * 8);
        CHECK_EQ(stats_of(closed.audit).lost, 0);
        CHECK_EQ(stats_of(closed.audit).refused, closed.refused);
        CHECK_EQ(janus_audit_destroy(closed.audit), JANUS_OK);
        CHECK_EQ(sum(use, spawn_task, "\"count\":"), closed.started);
        CHECK_EQ(lines("\"event\":\"gap\"", ""), 0);
    }
}

static int64_t recharge_until_full(void *argument)
{
    struct closed *closed = argument;
    janus_cap      cap = caps_budget(caps_root(), JANUS_RIGHTS_ALL, 100000, 100000);
    janus_budget   before, got;
    janus_status   status;
    janus_nursery  n;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget_cap = cap)), JANUS_OK);
    atomic_store(&sink_is_shut, true);
    for (;;) {
        before = janus_budget_get_current();
        got = janus_budget_of(77, 0, 0, 0, 0);
        status = janus_budget_recharge_current(janus_budget_of(1, 1, 0, 0, 0), &got);
        if (status != JANUS_OK) break;
        closed->started++;
    }
    CHECK_EQ(status, JANUS_AUDIT_FULL);
    CHECK_EQ(got.ops, 77); /* nothing was given or recorded */
    CHECK(janus_budget_equal(janus_budget_get_current(), before));
    atomic_store(&sink_is_shut, false);
    CHECK_EQ(janus_audit_drain(closed->audit), JANUS_OK);
    CHECK_EQ(janus_budget_recharge_current(janus_budget_of(1, 1, 0, 0, 0), &got), JANUS_OK);
    closed->started++;
    return janus_nursery_end(&n, NULL);
}

/* CAP:12.3.1. */
TEST("with a log that fails closed no budget grows unrecorded, in part or in whole")
{
    struct closed closed = {.audit = begin_log(16, 0, true)};
    run(closed.audit, 1, JANUS_PROFILE_SOVEREIGN, recharge_until_full, &closed);
    CHECK_EQ(stats_of(closed.audit).lost, 0);
    CHECK_EQ(janus_audit_destroy(closed.audit), JANUS_OK);
    CHECK(closed.started >= 6);
    CHECK_EQ(lines("\"event\":\"recharge\"", "\"component\":\"ops\""), closed.started);
    CHECK_EQ(lines("\"event\":\"recharge\"", "\"component\":\"memory\""), closed.started);
}

/* CAP:12.3.1; a plain thread has no worker's ring. */
TEST("a thread's recharge of a child is in the log")
{
    janus_audit       *audit = begin_log(0, 0, false);
    const janus_budget pool = janus_budget_of(2000, 0, 5, 0, 0);
    janus_scheduler   *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .audit = audit));
    atomic_int      ops = 0;
    janus_nursery   n;
    janus_exhausted child;
    janus_task_id   task;
    uint64_t        limit = janus_now_ns() + rig_patience;
    CHECK_EQ(janus_nursery_open_in(
                 scheduler, &n,
                 JANUS_NURSERY_OPTIONS(.budget = &pool, .exhaustion = JANUS_EXHAUSTION_MANUAL)),
             JANUS_OK);
    const janus_budget some = janus_budget_of(100, 0, 0, 0, 0);
    CHECK_EQ(janus_spawn_with(&n, spend, &ops, JANUS_SPAWN_OPTIONS(.budget = &some), &task),
             JANUS_OK);
    while (!janus_nursery_poll_exhausted(&n, &child)) CHECK(janus_now_ns() < limit);
    CHECK_EQ(janus_nursery_recharge(&n, task, janus_budget_of(11, 0, 0, 0, 0)), JANUS_OK);
    while (!janus_nursery_poll_exhausted(&n, &child)) CHECK(janus_now_ns() < limit);
    CHECK_EQ(ops, 111);
    CHECK_EQ(janus_nursery_cancel_exhausted(&n, task), JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    CHECK_EQ(janus_audit_destroy(audit), JANUS_OK);
    CHECK_EQ(lines("\"event\":\"recharge\"", "\"before\":0,\"after\":11"), 1);
    CHECK_EQ(lines("\"event\":\"exhaustion\"", ""), 2);
}
