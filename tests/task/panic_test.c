/* SPDX-License-Identifier: MIT */
/* A task that breaks a contract panics with a message, and the process lives. */
#include "rig.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What a scheduler reported. */
struct seen {
    atomic_int         count;
    janus_panic_report last; /* its pointers are dead */
    char               message[256], text[1200], name[64];
};

static void see(void *argument, const janus_panic_report *report)
{
    struct seen *seen = argument;
    seen->last = *report;
    snprintf(seen->message, sizeof seen->message, "%s", report->message);
    snprintf(seen->text, sizeof seen->text, "%s", report->text);
    snprintf(seen->name, sizeof seen->name, "%s", report->name);
    atomic_fetch_add(&seen->count, 1);
}

/* Runs a first task, which must panic once, with these words. */
static void check_panics_on(uint32_t workers, janus_entry *entry, void *argument, const char *words)
{
    struct seen                    seen = {.count = 0};
    const janus_scheduler_options *options =
        JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .on_panic = see,
                                .on_panic_argument = &seen);
    CHECK_EQ(janus_run(options, entry, argument, NULL), JANUS_CHILD_FAILED);
    CHECK_EQ(atomic_load(&seen.count), 1);
    if (strstr(seen.message, words) == NULL) CHECK_STR(seen.message, words);
    CHECK(strstr(seen.text, words) != NULL);
    CHECK_EQ(seen.last.kind, JANUS_PANIC_KIND_EXPLICIT);
}

static void check_panics(janus_entry *entry, void *argument, const char *words)
{
    check_panics_on(1, entry, argument, words);
    check_panics_on(2, entry, argument, words);
    check_panics_on(8, entry, argument, words);
}

/* Nurseries that are left open. */

static atomic_int alive;

static int64_t wait_for_cancel(void *argument)
{
    (void)argument;
    atomic_fetch_add(&alive, 1);
    janus_status status = janus_sleep(3600000 * rig_ms);
    atomic_fetch_sub(&alive, 1);
    return status;
}

static int64_t yield_until_cancelled(void *argument)
{
    (void)argument;
    atomic_fetch_add(&alive, 1);
    while (janus_yield() == JANUS_OK) continue;
    atomic_fetch_sub(&alive, 1);
    return JANUS_CANCELLED;
}

/* Children that nobody has run yet, that run, and that wait. */
static void open_and_spawn(janus_nursery *nursery, const char *name, bool started)
{
    CHECK_EQ(janus_nursery_open(nursery, JANUS_NURSERY_OPTIONS(.name = name)), JANUS_OK);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(janus_spawn(nursery, wait_for_cancel, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(nursery, yield_until_cancelled, NULL), JANUS_OK);
    }
    for (int i = 0; i < 100 && started; i++) JANUS_IGNORE(janus_yield());
}

static int64_t leave_open(void *argument)
{
    janus_nursery nursery;
    open_and_spawn(&nursery, "plugins", argument != NULL);
    return 7;
}

static int64_t leave_two_open(void *argument)
{
    janus_nursery outer, inner;
    open_and_spawn(&outer, "outer", true);
    open_and_spawn(&inner, "inner", argument != NULL);
    return 7;
}

static int64_t leave_plain_open(void *argument)
{
    janus_nursery nursery;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&nursery, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&nursery, yield_until_cancelled, NULL), JANUS_OK);
    return 0;
}

static int64_t leave_supervisor_open(void *argument)
{
    janus_supervisor *supervisor;
    (void)argument;
    CHECK_EQ(janus_supervisor_open(JANUS_SUPERVISOR_OPTIONS(.name = "crew"), &supervisor),
             JANUS_OK);
    return 0;
}

static int64_t start_careless(void *argument)
{
    janus_nursery        nursery;
    janus_nursery_result result;
    CHECK_EQ(janus_nursery_open(&nursery, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&nursery, (janus_entry *)leave_open, argument), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&nursery, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.panic.kind, JANUS_PANIC_KIND_EXPLICIT);
    CHECK(strstr(result.panic.message, "\"plugins\" open") != NULL);
    CHECK_EQ(atomic_load(&alive), 0);
    return result.error;
}

#define SKIP_IF_FRAMES_ARE_CHECKED()                                                               \
    do {                                                                                           \
        if (JRT_TSAN || JRT_ASAN) SKIP("the sanitizer writes to frames that were left");           \
    } while (0)

TEST("a task that returns with a nursery open panics when its children have ended")
{
    SKIP_IF_FRAMES_ARE_CHECKED();
    for (int started = 0; started < 2; started++) {
        void *argument = started ? &alive : NULL;
        check_panics(leave_open, argument, "it returned with its nursery \"plugins\" open");
        CHECK_EQ(atomic_load(&alive), 0);
        check_panics(leave_two_open, argument, "it returned with its nursery \"inner\" open");
        CHECK_EQ(atomic_load(&alive), 0);
        check_panics(start_careless, argument, "it returned with its nursery \"plugins\" open");
    }
    check_panics(leave_plain_open, NULL, "it returned with its nursery \"nursery\" open");
    check_panics(leave_supervisor_open, NULL, "it returned with its supervisor \"crew\" open");
    CHECK_EQ(atomic_load(&alive), 0);
}

static void leave_open_late(void *argument)
{
    janus_nursery nursery;
    open_and_spawn(&nursery, "late", argument != NULL);
}

static atomic_int defers;

static void count_defer(void *argument)
{
    (void)argument;
    atomic_fetch_add(&defers, 1);
}

static int64_t defer_careless(void *argument)
{
    CHECK_EQ(janus_defer(count_defer, NULL), JANUS_OK);
    CHECK_EQ(janus_defer(leave_open_late, argument), JANUS_OK);
    CHECK_EQ(janus_defer(count_defer, NULL), JANUS_OK);
    return 0;
}

TEST("a defer that leaves a nursery open is a panic of its task, and the other defers run")
{
    SKIP_IF_FRAMES_ARE_CHECKED();
    check_panics(defer_careless, NULL, "it returned with its nursery \"late\" open");
    check_panics(defer_careless, &alive, "it returned with its nursery \"late\" open");
    CHECK_EQ(atomic_load(&alive), 0);
    CHECK_EQ(atomic_load(&defers), 12);
}

/* Shields. */

static int64_t end_without_begin(void *argument)
{
    (void)argument;
    janus_shield_end();
    return 0;
}

static int64_t begin_too_many(void *argument)
{
    janus_nursery nursery;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&nursery, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&nursery, yield_until_cancelled, NULL), JANUS_OK);
    for (int i = 0; i < 65536; i++) janus_shield_begin();
    return janus_nursery_end(&nursery, NULL);
}

static int64_t begin_nowhere(void *argument)
{
    (void)argument;
    janus_shield_begin_until(NULL, 0);
    return 0;
}

TEST("a task that ends a shield that it did not begin, or begins 65536, panics")
{
    check_panics(end_without_begin, NULL, "janus_shield_end without janus_shield_begin");
    check_panics(begin_too_many, NULL, "janus_shield_begin: the task has begun 65535 shields");
    check_panics(begin_nowhere, NULL, "janus_shield_begin_until: shield is NULL");
    CHECK_EQ(atomic_load(&alive), 0);
}

/* Memory. */

enum mistake {
    FREE_WILD,
    FREE_ODD,
    FREE_TWICE,
    FREE_WITHOUT,
    FREE_INSIDE,
    DETACH_WILD,
    REALLOC_WILD,
    ADOPT_WILD,
    ADOPT_OWN,
    DISCARD_WILD,
    DISCARD_OWN,
    MISTAKES,
};

static void *const wild = (void *)0x10; /* an unmapped address */

static int64_t make_mistake(void *argument)
{
    enum mistake mistake = *(enum mistake *)argument;
    if (mistake == FREE_WITHOUT) janus_free(&alive);
    char *block = janus_alloc(64);
    CHECK(block != NULL);
    switch (mistake) {
    case FREE_WILD: janus_free(wild); break;
    case FREE_ODD: janus_free(block + 1); break;
    case FREE_TWICE:
        janus_free(block);
        janus_free(block);
        break;
    case FREE_INSIDE: janus_free(block + 16); break;
    case DETACH_WILD: (void)!janus_detach(wild); break;
    case REALLOC_WILD: (void)!janus_realloc(wild, 100); break;
    case ADOPT_WILD: (void)!janus_adopt(wild); break;
    case ADOPT_OWN: (void)!janus_adopt(block); break;
    case DISCARD_WILD: janus_discard(wild); break;
    case DISCARD_OWN: janus_discard(block); break;
    case FREE_WITHOUT:
    case MISTAKES: break;
    }
    return 0;
}

TEST("a task with a bad free, realloc, detach, adopt or discard panics")
{
    static const char *const words[MISTAKES] = {
        [FREE_WILD] = "not a block of this task",
        [FREE_ODD] = "not aligned",
        [FREE_TWICE] = "freed already",
        [FREE_WITHOUT] = "does not own",
        [FREE_INSIDE] = "not a block of this task",
        [DETACH_WILD] = "not a block of this task",
        [REALLOC_WILD] = "not a block of this task",
        [ADOPT_WILD] = "only memory that was given away",
        [ADOPT_OWN] = "only memory that was given away",
        [DISCARD_WILD] = "only memory that was given away",
        [DISCARD_OWN] = "only memory that was given away",
    };
    for (enum mistake mistake = 0; mistake < MISTAKES; mistake++) {
        check_panics(make_mistake, &mistake, words[mistake]);
    }
}

static int64_t begin_badly(void *argument)
{
    janus_semaphore semaphore;
    (void)argument;
    janus_semaphore_init(&semaphore, UINT32_MAX, JANUS_WAKER_TASKS, NULL);
    return 0;
}

static int64_t point_badly(void *argument)
{
    janus_waitpoint point;
    (void)argument;
    janus_waitpoint_init(&point, (janus_waker)77);
    return 0;
}

TEST("a task that initialises a semaphore or a waitpoint with bad values panics")
{
    check_panics(begin_badly, NULL, "janus_semaphore_init");
    check_panics(point_badly, NULL, "janus_waitpoint_init");
}

/* Callbacks. */

static void panic_in_callback(void *argument) { janus_panic(argument); }

static volatile int bottom = 1000000;

static int recurse(volatile char *above, int depth)
{
    volatile char frame[512];
    frame[0] = above != NULL ? above[0] : 1;
    if (depth == bottom) return 0;
    return recurse(frame, depth + 1) + frame[0];
}

static void overflow_in_callback(void *argument)
{
    (void)argument;
    (void)recurse(NULL, 0);
}

static atomic_int called;

static void count_call(void *argument)
{
    (void)argument;
    atomic_fetch_add(&called, 1);
}

static int64_t cancel_token(void *argument)
{
    janus_token *token = NULL;
    CHECK_EQ(janus_token_create(&token), JANUS_OK);
    CHECK_EQ(janus_token_on_cancel(token, count_call, NULL, NULL), JANUS_OK);
    CHECK_EQ(janus_token_on_cancel(token, *(void (**)(void *))argument, "in a callback", NULL),
             JANUS_OK);
    CHECK_EQ(janus_token_on_cancel(token, count_call, NULL, NULL), JANUS_OK);
    CHECK_EQ(janus_token_cancel(token, JANUS_CANCEL_REASON_EXPLICIT), JANUS_OK);
    janus_token_release(token);
    return janus_yield();
}

TEST("a token's callback that panics or overflows ends alone, and is reported")
{
    void (*broken[])(void *) = {panic_in_callback, overflow_in_callback};
    for (int i = 0; i < 2; i++) {
        if (i == 1 && JRT_TSAN) SKIP("ThreadSanitizer's own code dies where the stack ends");
        struct seen                    seen = {.count = 0};
        const janus_scheduler_options *options =
            JANUS_SCHEDULER_OPTIONS(.on_panic = see, .on_panic_argument = &seen);
        atomic_store(&called, 0);
        CHECK_EQ(janus_run(options, cancel_token, &broken[i], NULL), JANUS_OK);
        CHECK_EQ(atomic_load(&called), 2);
        CHECK_EQ(atomic_load(&seen.count), 1);
        CHECK_STR(seen.message, i == 0 ? "in a callback" : "it overflowed the stack");
        CHECK_EQ(seen.last.task, 0);
    }
}

static int64_t panic_there(void *argument) { janus_panic(argument); }

static int64_t free_there(void *argument)
{
    janus_free(argument);
    return 0;
}

static int64_t block_and_panic(void *argument)
{
    return janus_blocking(panic_there, argument, NULL);
}

static int64_t block_and_free(void *argument) { return janus_blocking(free_there, argument, NULL); }

TEST("a blocking call that panics is a panic of its task")
{
    check_panics(block_and_panic, "on a helper thread", "on a helper thread");
    check_panics(block_and_free, &alive, "does not own");
}

static janus_verdict panic_as_judge(void *argument, const janus_exhausted *child,
                                    janus_budget *grant)
{
    (void)argument, (void)child, (void)grant;
    janus_panic("no verdict");
}

static int64_t spend(void *argument)
{
    (void)argument;
    for (;;) {
        if (janus_check() != JANUS_OK) return JANUS_CANCELLED;
    }
}

static int64_t supervise_badly(void *argument)
{
    janus_nursery        nursery;
    janus_nursery_result result;
    janus_budget         pool = janus_budget_of(100000, 0, 10, 0, 0);
    janus_budget         each = janus_budget_of(1000, 0, 0, 0, 0);
    (void)argument;
    CHECK_EQ(
        janus_nursery_open(&nursery, JANUS_NURSERY_OPTIONS(.budget = &pool,
                                                           .exhaustion = JANUS_EXHAUSTION_SUPERVISE,
                                                           .on_exhausted = panic_as_judge)),
        JANUS_OK);
    CHECK_EQ(janus_spawn_with(&nursery, spend, NULL, JANUS_SPAWN_OPTIONS(.budget = &each), NULL),
             JANUS_OK);
    CHECK_EQ(janus_nursery_end(&nursery, &result), JANUS_CHILD_FAILED);
    CHECK_STR(result.panic.message, "no verdict");
    return JANUS_CHILD_FAILED;
}

TEST("an on_exhausted that panics is a panic of the child it judges")
{
    check_panics(supervise_badly, NULL, "no verdict");
}

/* Reports. */

static int64_t panic_deep(void *argument)
{
    (void)argument;
    if (bottom != 0) janus_panic("deep down");
    return bottom;
}

static int64_t start_named(void *argument)
{
    janus_nursery nursery;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&nursery, NULL), JANUS_OK);
    static const janus_site    site = {"there.c", 41};
    const janus_spawn_options *options = JANUS_SPAWN_OPTIONS(.name = "fetch", .site = &site);
    CHECK_EQ(janus_spawn_with(&nursery, panic_deep, &alive, options, NULL), JANUS_OK);
    return janus_nursery_end(&nursery, NULL);
}

static void run_loudly(void *entry) { (void)!janus_run(NULL, (janus_entry *)entry, NULL, NULL); }

TEST("a panic is one line on stderr: task, place, reason and backtrace")
{
    int         status = 0;
    const char *text = harness_child(run_loudly, (void *)start_named, &status);
    CHECK_EQ(status, 0);
    CHECK(strncmp(text, "janusrt: task 0x", 16) == 0);
    CHECK(strstr(text, " \"fetch\" (there.c:41) panicked: deep down; at ") != NULL);
    CHECK(strchr(text, '\n') == text + strlen(text) - 1);
}

static int64_t overflow(void *argument)
{
    (void)argument;
    return recurse(NULL, 0);
}

TEST("an overflow is one line on stderr, with the frames it ended in")
{
    RIG_OVERFLOWS();
    int         status = 0;
    const char *text = harness_child(run_loudly, (void *)overflow, &status);
    CHECK_EQ(status, 0);
    CHECK(strstr(text, "panicked: its stack overflowed: spawn it with a larger stack_bytes; at ") !=
          NULL);
    CHECK(strchr(text, '\n') == text + strlen(text) - 1);
}

/* In one second of the engine's clock 25 children panic, and one more panics in the next. */
static int64_t panic_often(void *argument)
{
    janus_nursery nursery;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&nursery, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
    for (int i = 0; i < 25; i++) CHECK_EQ(janus_spawn(&nursery, panic_deep, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&nursery, NULL), JANUS_CHILD_FAILED);
    CHECK_EQ(janus_sleep(UINT64_C(1000000000)), JANUS_OK);
    return panic_deep(NULL);
}

/* Prints how many panics stderr got, and how many it did not get, as it reports. */
static void count_panics(void *argument)
{
    char  line[1024];
    int   panics = 0, left_out = 0, old = dup(STDERR_FILENO);
    FILE *file = tmpfile();
    (void)argument;
    CHECK(file != NULL && old >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    (void)!janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .deterministic_seed = 1),
                     panic_often, NULL, NULL);
    CHECK(dup2(old, STDERR_FILENO) >= 0);
    rewind(file);
    while (fgets(line, sizeof line, file) != NULL) {
        panics += strstr(line, " panicked: ") != NULL;
        (void)sscanf(line, "janusrt: %d panics were not shown", &left_out);
    }
    fprintf(stderr, "%d shown, %d told", panics, left_out);
}

TEST("stderr gets 20 panics in a second, and in the next one the number of the others")
{
    int status = 0;
    CHECK_STR(harness_child(count_panics, NULL, &status), "21 shown, 5 told");
    CHECK_EQ(status, 0);
}

static void run_quietly(void *entry)
{
    const janus_scheduler_options *options = JANUS_SCHEDULER_OPTIONS(.quiet_panics = true);
    (void)!janus_run(options, (janus_entry *)entry, NULL, NULL);
}

TEST("a scheduler with quiet_panics reports no panic")
{
    int status = 0;
    CHECK_STR(harness_child(run_quietly, (void *)start_named, &status), "");
    CHECK_EQ(status, 0);
}

static void panic_as_reporter(void *argument, const janus_panic_report *report)
{
    atomic_fetch_add((atomic_int *)argument, 1);
    janus_panic(report->text);
}

TEST("an on_panic that panics does not change how the task ends")
{
    atomic_int                     count = 0;
    const janus_scheduler_options *options =
        JANUS_SCHEDULER_OPTIONS(.on_panic = panic_as_reporter, .on_panic_argument = &count);
    CHECK_EQ(janus_run(options, start_named, NULL, NULL), JANUS_CHILD_FAILED);
    CHECK_EQ(atomic_load(&count), 1);
}

static int dive(volatile char *above, ptrdiff_t left)
{
    volatile char frame[256];
    frame[0] = above != NULL ? above[0] : 1;
    if (left == -bottom) return 0;
    if (left <= 0) janus_panic("at the brink");
    return dive(frame, left - 256) + frame[0];
}

static int64_t dive_in(void *argument) { return dive(NULL, *(ptrdiff_t *)argument); }

TEST("a panic with little stack left is reported like any other")
{
    if (JRT_ASAN || JRT_TSAN) SKIP("frames have other sizes");
    for (ptrdiff_t depth = 1024; depth <= 10 * 1024; depth += 1024) {
        struct seen                    seen = {.count = 0};
        const janus_scheduler_options *options =
            JANUS_SCHEDULER_OPTIONS(.stack_bytes = 16 * 1024, .on_panic = see,
                                    .on_panic_argument = &seen);
        CHECK_EQ(janus_run(options, dive_in, &depth, NULL), JANUS_CHILD_FAILED);
        CHECK_EQ(atomic_load(&seen.count), 1);
        CHECK_STR(seen.message, "at the brink");
    }
}

static int64_t panic_at_once(void *argument)
{
    (void)argument;
    janus_panic("one of many");
}

static int64_t panic_a_thousand_times(void *argument)
{
    janus_nursery n;
    (void)argument;
    if (janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)) !=
        JANUS_OK) {
        return 0;
    }
    for (int i = 0; i < 1000; i++) {
        if (janus_spawn(&n, panic_at_once, NULL) != JANUS_OK) JANUS_IGNORE(janus_yield());
    }
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    return 0;
}

static void run_the_thousand(void *argument)
{
    (void)argument;
    JANUS_IGNORE(janus_run(NULL, panic_a_thousand_times, NULL, NULL));
}

TEST("a thousand panics are at most some dozen lines on stderr")
{
    int         status, lines = 0;
    const char *text = harness_child(run_the_thousand, NULL, &status);
    CHECK_EQ(status, 0);
    for (const char *at = text; (at = strstr(at, "one of many")) != NULL; at++) lines++;
    CHECK(lines > 0 && lines < HARNESS_TEXT_BYTES / 100);
    CHECK(strlen(text) < HARNESS_TEXT_BYTES - 1 || RIG_SLOW); /* it is not cut: there was no more */
}
