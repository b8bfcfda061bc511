/* SPDX-License-Identifier: MIT */
/* Exploring: strategies, what counts as a failure, replaying, minimising. */
#include "scout.h"

#include <janusrt/janus.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static const uint64_t ms = 1000000;

/* Under ThreadSanitizer every first switch to a stack costs milliseconds. */
enum { SEEDS = JRT_TSAN || JRT_ASAN ? 2 : 20, FEW = JRT_TSAN ? 5 : 200 };

/* Finds a failure, replays it from its text, and checks that both are the same. */
static void find(janus_explore_options options, janus_entry *entry, janus_failing failing,
                 const char *message)
{
    if (JRT_TSAN) options.no_minimising = true;
    janus_explore_result first = scout(options, entry);
    CHECK_EQ(first.failing, failing);
    CHECK(!first.unsteady);
    if (strstr(first.message, message) == NULL) CHECK_STR(first.message, message);
    options.replay = first.replay;
    janus_explore_result again = scout(options, entry);
    CHECK_EQ(again.failing, failing);
    CHECK_STR(again.message, first.message);
    CHECK_EQ(again.hash, first.hash);
    CHECK_EQ(again.schedules, 1);
    CHECK_STR(again.replay, first.replay);
    free(first.replay);
    free(again.replay);
}

/* A lost update, if another task comes between. */
static int shared;

static int64_t add_ten(void *argument)
{
    (void)argument;
    int before = shared;
    janus_point();
    shared = before + 10;
    return 0;
}

static int64_t idle_about(void *argument)
{
    (void)argument;
    for (int i = 0; i < 5; i++) JANUS_IGNORE(janus_yield());
    return 0;
}

static int64_t add_twice(void *argument)
{
    (void)argument;
    shared = 0;
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < 3; i++) JANUS_EXPECT(janus_spawn(n, idle_about, NULL) == JANUS_OK);
        JANUS_EXPECT(janus_spawn(n, add_ten, NULL) == JANUS_OK);
        JANUS_EXPECT(janus_spawn(n, add_ten, NULL) == JANUS_OK);
    }
    CHECK_EQ(ended, JANUS_OK);
    JANUS_EXPECT(shared == 20);
    return 0;
}

/* What happened in which order. */
static uint64_t events[2000];
static size_t   event_count;

static int64_t note_some(void *argument)
{
    for (uint64_t i = 0; i < 5; i++) {
        events[event_count++] = (uint64_t)(uintptr_t)argument * 100 + i;
        if (i == 2) JANUS_IGNORE(janus_sleep(ms));
        JANUS_IGNORE(janus_yield());
    }
    return 0;
}

static int64_t note_all(void *argument)
{
    (void)argument;
    event_count = 0;
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (uintptr_t i = 0; i < 8; i++) {
            JANUS_EXPECT(janus_spawn(n, note_some, (void *)i) == JANUS_OK);
        }
    }
    CHECK_EQ(ended, JANUS_OK);
    return 0;
}

TEST("a random schedule is the execution that its seed gives elsewhere")
{
    uint64_t kept[2000];
    int      different = 0;
    for (uint64_t seed = 1; seed <= (JRT_TSAN ? 5 : 20); seed++) {
        CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 3, .deterministic_seed = seed),
                           note_all, NULL, NULL),
                 JANUS_OK);
        size_t count = event_count;
        if (seed > 1) different += memcmp(kept, events, count * sizeof kept[0]) != 0;
        memcpy(kept, events, count * sizeof kept[0]);
        janus_explore_result result = scout(
            (janus_explore_options){.schedules = 1, .seed = seed, .worker_count = 3}, note_all);
        CHECK_EQ(result.schedules, 1);
        CHECK_EQ(event_count, count);
        CHECK(memcmp(kept, events, count * sizeof kept[0]) == 0);
    }
    CHECK(different >= (JRT_TSAN ? 3 : 18));
}

TEST("every strategy finds a lost update, and its text replays it")
{
    find((janus_explore_options){.strategy = JANUS_STRATEGY_RANDOM}, add_twice,
         JANUS_FAILING_EXPECTATION, "shared == 20 (");
    find((janus_explore_options){.strategy = JANUS_STRATEGY_PCT}, add_twice,
         JANUS_FAILING_EXPECTATION, "shared == 20 (");
    if (JRT_TSAN) return; /* it takes hundreds */
    find((janus_explore_options){.strategy = JANUS_STRATEGY_EXHAUSTIVE, .schedules = 50000},
         add_twice, JANUS_FAILING_EXPECTATION, "shared == 20 (");
}

TEST("without minimising the text is the seed, and replays the failure too")
{
    janus_explore_options options = {.no_minimising = true, .seed = 3};
    janus_explore_result  result = scout(options, add_twice);
    char                  text[64];
    CHECK_EQ(result.failing, JANUS_FAILING_EXPECTATION);
    snprintf(text, sizeof text, "1/w4/s%llu", (unsigned long long)result.seed);
    CHECK_STR(result.replay, text);
    CHECK_EQ(result.seed, 3 + result.schedules - 1);
    free(result.replay);
    find(options, add_twice, JANUS_FAILING_EXPECTATION, "shared == 20");
    options.strategy = JANUS_STRATEGY_PCT;
    find(options, add_twice, JANUS_FAILING_EXPECTATION, "shared == 20");
}

TEST("minimising leaves few choices of many")
{
    if (JRT_TSAN) SKIP("too slow: it has no time to");
    janus_explore_result result = scout((janus_explore_options){.seed = 1}, add_twice);
    CHECK(result.choices > 20);
    CHECK(result.choices_kept >= 1);
    CHECK(result.choices_kept <= 16);
    free(result.replay);
}

static int runs;

static int64_t fail_once(void *argument)
{
    (void)argument;
    return ++runs == 3 ? -1 : 0;
}

TEST("an influence that no schedule decides is reported")
{
    janus_explore_result result = scout((janus_explore_options){0}, fail_once);
    CHECK_EQ(result.failing, JANUS_FAILING_RESULT);
    CHECK_EQ(result.schedules, 3);
    CHECK(result.unsteady);
    free(result.replay);
}

/* The kinds. */

static int64_t return_minus_seven(void *argument)
{
    (void)argument;
    return JANUS_CLOSED;
}

static int64_t panic_at_once(void *argument)
{
    (void)argument;
    janus_panic("by itself");
}

static int64_t wait_for_nobody(void *argument)
{
    janus_channel channel;
    int64_t       value;
    (void)argument;
    if (janus_channel_create(8, 0, NULL, &channel) != JANUS_OK) return -1;
    /* The deadlock counts, even though the call reports it. */
    return janus_channel_recv(channel, &value) == JANUS_DEADLOCK ? 0 : -1;
}

static int64_t go_round(void *argument)
{
    (void)argument;
    for (;;) JANUS_IGNORE(janus_yield());
    return 0;
}

static int64_t sleep_long(void *argument)
{
    (void)argument;
    for (;;) JANUS_IGNORE(janus_sleep(60000 * ms));
    return 0;
}

static int64_t break_a_contract(void *argument)
{
    (void)argument;
    janus_free((char *)janus_alloc(64) + 16);
    return 0;
}

static int64_t leave_a_channel(void *argument)
{
    janus_channel channel;
    (void)argument;
    return janus_channel_create(8, 1, JANUS_CHANNEL_OPTIONS(.kept = true), &channel);
}

static int64_t join_twice(void *argument)
{
    (void)argument;
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        janus_task_id id;
        JANUS_EXPECT(janus_spawn_with(n, idle_about, NULL, NULL, &id) == JANUS_OK);
        JANUS_EXPECT(janus_join(n, id, NULL) == JANUS_OK);
        JANUS_IGNORE(janus_join(n, id, NULL));
    }
    CHECK_EQ(ended, JANUS_OK);
    return 0;
}

static int64_t panic_below(void *argument)
{
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        JANUS_IGNORE(janus_spawn(n, panic_at_once, argument));
    } /* no code looks at it */
    CHECK_EQ(ended, JANUS_CHILD_FAILED);
    return 0;
}

TEST("a panic that no code inspects is a failure, unless panics are allowed")
{
    find((janus_explore_options){0}, panic_below, JANUS_FAILING_PANIC, "by itself");
    janus_explore_result result =
        scout((janus_explore_options){.panics_allowed = true, .schedules = 10}, panic_below);
    CHECK_EQ(result.failing, JANUS_FAILING_NOT);
}

TEST("a negative number, a panic and a deadlock are failures")
{
    janus_explore_options options = {.schedules = 3};
    find(options, return_minus_seven, JANUS_FAILING_RESULT, "-7 (JANUS_CLOSED)");
    find(options, panic_at_once, JANUS_FAILING_PANIC, "by itself");
    find(options, wait_for_nobody, JANUS_FAILING_DEADLOCK, "all tasks wait");
}

TEST("a schedule that does not end is a failure")
{
    janus_explore_options options = {.max_time_ns = 600000 * ms};
    find(options, sleep_long, JANUS_FAILING_TIME, "600000 ms");
    options.max_steps = 2000;
    for (int strategy = JANUS_STRATEGY_RANDOM; strategy <= JANUS_STRATEGY_EXHAUSTIVE; strategy++) {
        options.strategy = (janus_strategy)strategy;
        find(options, go_round, JANUS_FAILING_STEPS, "2000 steps; raise --steps, or make");
    }
}

TEST("a broken contract, a leaked channel and a stale handle are failures")
{
    janus_explore_options options = {.schedules = 3};
    find(options, break_a_contract, JANUS_FAILING_CONTRACT, "contract broken");
    find(options, leave_a_channel, JANUS_FAILING_LEAK, "1 channels");
    find(options, use_an_old_channel, JANUS_FAILING_STALE, "used after its end");
    find(options, join_twice, JANUS_FAILING_STALE, "join");
    options.stale_allowed = true;
    CHECK_EQ(scout(options, use_an_old_channel).failing, JANUS_FAILING_NOT);
}

/* Faults of any kind: the result is equal only if the same ones are injected each time. */
static int64_t contend(void *argument)
{
    static janus_mutex mutex;
    (void)argument;
    if (janus_mutex_lock(&mutex) != JANUS_OK) return 0;
    JANUS_IGNORE(janus_sleep(ms));
    (void)janus_mutex_unlock(&mutex);
    return 0;
}

static int64_t sit_on_a_stack(void *argument)
{
    (void)argument;
    return janus_sleep(ms);
}

static int64_t want_much(void *argument)
{
    janus_channel        channels[4] = {0};
    janus_nursery_result result = {0};
    janus_nursery        n;
    int64_t              refused = 0;
    (void)argument;
    for (int i = 0; i < 4; i++) {
        refused += janus_channel_create(8, 1, NULL, &channels[i]) != JANUS_OK;
    }
    refused += janus_blocking(sit_on_a_stack, NULL, NULL) != JANUS_OK;
    if (janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)) !=
        JANUS_OK) {
        return -1;
    }
    for (int i = 0; i < 4; i++) {
        refused += janus_spawn(&n, contend, NULL) != JANUS_OK;
        refused += janus_spawn_with(&n, sit_on_a_stack, NULL,
                                    JANUS_SPAWN_OPTIONS(.stack_bytes = (size_t)65536 << i),
                                    NULL) != JANUS_OK;
    }
    JANUS_IGNORE(janus_nursery_end(&n, &result));
    for (int i = 0; i < 4; i++) (void)janus_channel_destroy(channels[i]);
    refused += (int64_t)result.errors;
    return refused > 0 ? -100 - refused : 0;
}

TEST("faults are choices: a schedule with faults replays, whatever ran before it")
{
    static const uint32_t faults[] = {JANUS_FAULT_MEMORY, JANUS_FAULT_MAPPING, JANUS_FAULT_THREAD,
                                      JANUS_FAULT_BLOCKING, JANUS_FAULT_ALL};
    if (JRT_TSAN) SKIP("too slow: what it looks for is seen without");
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        for (uint64_t seed = 1; seed < SEEDS; seed += 6) {
            janus_explore_options options = {.faults = faults[i], .faults_every = 10, .seed = seed};
            find(options, want_much, JANUS_FAILING_RESULT, "returned -1");
            options.no_minimising = true;
            find(options, want_much, JANUS_FAILING_RESULT, "returned -1");
        }
    }
}

/* A task that polls for what another task does. */
static _Bool flag;

static int64_t raise_flag(void *argument)
{
    (void)argument;
    flag = true;
    return 0;
}

static int64_t ask_for_flag(void *argument)
{
    (void)argument;
    flag = false;
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        JANUS_EXPECT(janus_spawn(n, raise_flag, NULL) == JANUS_OK);
        while (!flag) JANUS_IGNORE(janus_yield());
    }
    CHECK_EQ(ended, JANUS_OK);
    return 0;
}

TEST("a task that polls does not keep the others from running")
{
    for (int strategy = JANUS_STRATEGY_RANDOM; strategy <= JANUS_STRATEGY_EXHAUSTIVE; strategy++) {
        janus_explore_options options = {.strategy = (janus_strategy)strategy,
                                         .schedules = FEW,
                                         .worker_count = 2,
                                         .max_steps = 20000};
        CHECK_EQ(scout(options, ask_for_flag).failing, JANUS_FAILING_NOT);
    }
}

/* All schedules. */

static unsigned ready_cases, taken[4];

static int64_t choose_one(void *argument)
{
    janus_channel     channels[4];
    janus_select_case cases[4];
    int64_t           value = 7;
    size_t            chosen = 0;
    (void)argument;
    for (unsigned i = 0; i < ready_cases; i++) {
        JANUS_EXPECT(janus_channel_create(8, 1, NULL, &channels[i]) == JANUS_OK);
        JANUS_EXPECT(janus_channel_try_send(channels[i], &value) == JANUS_OK);
        cases[i] = (janus_select_case){.channel = channels[i], .value = &value};
    }
    JANUS_EXPECT(janus_select(cases, ready_cases, &chosen) == JANUS_OK);
    taken[chosen]++;
    for (unsigned i = 0; i < ready_cases; i++) (void)janus_channel_destroy(channels[i]);
    return 0;
}

/* With one worker the scheduler's own choices are the same, whichever case the select takes. */
TEST("an exhaustive search runs every schedule once, and reports that it is complete")
{
    uint64_t base = 0;
    for (ready_cases = 1; ready_cases <= 4; ready_cases++) {
        memset(taken, 0, sizeof taken);
        janus_explore_result result =
            scout((janus_explore_options){.strategy = JANUS_STRATEGY_EXHAUSTIVE,
                                          .worker_count = 1,
                                          .depth = 1,
                                          .schedules = 10000},
                  choose_one);
        CHECK(result.complete);
        if (ready_cases == 1) base = result.schedules;
        CHECK_EQ(result.schedules, base * ready_cases);
        for (unsigned i = 0; i < ready_cases; i++) CHECK_EQ(taken[i], base);
    }
    CHECK(base >= 1 && base <= 16);
}

TEST("an unfinished search does not claim to be complete")
{
    janus_explore_result result = scout(
        (janus_explore_options){.strategy = JANUS_STRATEGY_EXHAUSTIVE, .schedules = 5}, note_all);
    CHECK(!result.complete);
    CHECK_EQ(result.schedules, 5);
}

TEST("a search with one more preemption runs more schedules")
{
    uint64_t before = 0;
    if (JRT_TSAN) SKIP("too slow: it counts schedules");
    for (uint32_t depth = 1; depth <= 2; depth++) {
        janus_explore_result result =
            scout((janus_explore_options){.strategy = JANUS_STRATEGY_EXHAUSTIVE,
                                          .worker_count = 2,
                                          .depth = depth,
                                          .schedules = (uint64_t)FEW * 10},
                  raise_flag);
        CHECK(result.schedules > before);
        before = result.schedules;
    }
}

/* Bad input. */

TEST("a text that is not a schedule is refused")
{
    static const char *const texts[] = {
        "",
        "2/w4/s1",
        "1/w4",
        "1/w0/s1",
        "1/w4/s0",
        "1/w4/s",
        "1/w4/x",
        "1/w4/c",
        "1/w4/s1/",
        "1/w4/s1 ",
        "1/w4/s1/c1:2",
        "1/w4/s1/c1.2",
        "1/w4/s1/c1.2:1,",
        "1/w2000/s1",
        "1/w4/p1",
        "1/w4/p1.0.5",
        "1/w4/f9/s1",
        "1/w4/n0/s1",
        "1/w4/n5s1",
        "1/w4/a",
        "1/w4/s1/c2.1:1,1.1:1",
        "1/w4/s99999999999999999999",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        janus_status status = janus_explore(
            JANUS_EXPLORE_OPTIONS(.replay = texts[i], .quiet = true), note_all, NULL, NULL);
        CHECK_EQ(status, JANUS_INVALID);
    }
}

static int64_t explore_inside(void *argument)
{
    (void)argument;
    return janus_explore(NULL, note_all, NULL, NULL);
}

TEST("invalid options, and a call in a task, are refused")
{
    janus_explore_result small = {.struct_bytes = 3};
    int64_t              result = 0;
    CHECK_EQ(janus_explore(NULL, NULL, NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_explore(NULL, note_all, NULL, &small), JANUS_INVALID);
    CHECK_EQ(janus_explore(JANUS_EXPLORE_OPTIONS(.worker_count = 5000), note_all, NULL, NULL),
             JANUS_INVALID);
    CHECK_EQ(janus_explore(JANUS_EXPLORE_OPTIONS(.strategy = 9), note_all, NULL, NULL),
             JANUS_INVALID);
    CHECK_EQ(
        janus_explore(JANUS_EXPLORE_OPTIONS(.faults = JANUS_FAULT_ALL + 1), note_all, NULL, NULL),
        JANUS_INVALID);
    CHECK_EQ(janus_explore(
                 JANUS_EXPLORE_OPTIONS(.quiet = true,
                                       .scheduler =
                                           JANUS_SCHEDULER_OPTIONS(.profile = JANUS_PROFILE_CORE)),
                 note_all, NULL, NULL),
             JANUS_PROFILE);
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 1), explore_inside, NULL, &result),
             JANUS_CHILD_FAILED);
    CHECK_EQ(result, JANUS_STATE);
}

/* What is printed. */

static void explore_loudly(void *argument)
{
    (void)argument;
    JANUS_IGNORE(janus_explore(NULL, add_twice, NULL, NULL));
}

static void replay_loudly(void *argument)
{
    setenv("JANUSRT_REPLAY", argument, 1);
    explore_loudly(NULL);
}

TEST("the report begins with the seed, then has the failure and the command for a replay")
{
    if (JRT_TSAN) SKIP("too slow: it prints the same without");
    int         status;
    char        line[512];
    const char *text = harness_child(explore_loudly, NULL, &status);
    CHECK_EQ(status, 0);
    const char *seed = strstr(text, "seed 1,"), *failed = strstr(text, "failed: expectation: ");
    const char *replay = strstr(text, "JANUSRT_REPLAY=");
    CHECK(seed != NULL && failed != NULL && replay != NULL);
    CHECK(seed < failed && failed < replay);
    CHECK(strstr(text, " goes on instead of ") != NULL);
    CHECK(strstr(replay, "explore_test") != NULL);
    replay += strlen("JANUSRT_REPLAY=");
    snprintf(line, sizeof line, "%.*s", (int)strcspn(replay, " "), replay);
    text = harness_child(replay_loudly, line, &status);
    CHECK(strstr(text, "failed: expectation: shared == 20") != NULL);
    CHECK(strstr(text, line) != NULL);
}

static void deadlock_loudly(void *argument)
{
    (void)argument;
    JANUS_IGNORE(janus_explore(NULL, wait_for_nobody, NULL, NULL));
}

TEST("a deadlock's tree is printed once")
{
    int         status;
    const char *text = harness_child(deadlock_loudly, NULL, &status);
    const char *tree = strstr(text, "janusrt: deadlock: every task waits");
    CHECK(tree != NULL);
    CHECK(strstr(tree + 1, "janusrt: deadlock: every task waits") == NULL);
}

/* Without an explorer. */

static int64_t expect_wrongly(void *argument)
{
    (void)argument;
    JANUS_EXPECT(1 + 1 == 3);
    return 0;
}

static void expect_on_a_thread(void *argument) { (void)expect_wrongly(argument); }

TEST("outside an exploration a failed expectation is a panic of its task, or ends the process")
{
    int status;
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 1), expect_wrongly, NULL, NULL),
             JANUS_CHILD_FAILED);
    const char *text = harness_child(expect_on_a_thread, NULL, &status);
    CHECK(WIFSIGNALED(status));
    CHECK(strstr(text, "expectation failed: 1 + 1 == 3") != NULL);
}
