/* SPDX-License-Identifier: MIT */
/* Exploring: what a report says of a failure. */
#include "explore/explorer.h"
#include "scout.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int64_t read_after_close(void *argument)
{
    janus_io                ends[2];
    char                    byte;
    size_t                  got;
    const janus_io_options *options = JANUS_IO_OPTIONS(.name = "link");
    (void)argument;
    CHECK_EQ(janus_io_pair(options, ends), JANUS_OK);
    CHECK_EQ(janus_io_close(ends[0]), JANUS_OK);
    CHECK_EQ(janus_io_close(ends[1]), JANUS_OK);
    JANUS_IGNORE(janus_io_read(ends[0], &byte, 1, &got));
    return 0;
}

static int64_t spawn_a_reader(void *argument)
{
    janus_nursery              n;
    const janus_spawn_options *options =
        JANUS_SPAWN_OPTIONS(.name = "reader", .site = JANUS_SITE_HERE);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    JANUS_IGNORE(janus_spawn_with(&n, read_after_close, argument, options, NULL));
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    return 0;
}

TEST("a stale handle of I/O is reported with its name, the call, the task and its site")
{
    static const char wanted[] = "(janus_io_read of \"link\" by task \"reader\" of report_test.c:";
    janus_explore_options options = {.schedules = 3};
    janus_explore_result  found = scout(options, spawn_a_reader);
    CHECK_EQ(found.failing, JANUS_FAILING_STALE);
    if (strstr(found.message, wanted) == NULL) CHECK_STR(found.message, wanted);
    free(found.replay);
    options.stale_allowed = true;
    CHECK_EQ(scout(options, spawn_a_reader).failing, JANUS_FAILING_NOT);
}

static int64_t go_round(void *argument)
{
    (void)argument;
    for (;;) JANUS_IGNORE(janus_yield());
    return 0;
}

/* What an exploration, or a report of one, writes to standard error. */
static void heard(void (*call)(void), char *text, size_t bytes)
{
    int file = memfd_create("stderr", 0), before = dup(2);
    CHECK(file >= 0 && before >= 0);
    CHECK_EQ(dup2(file, 2), 2);
    call();
    CHECK_EQ(dup2(before, 2), 2);
    CHECK(lseek(file, 0, SEEK_END) < (off_t)bytes);
    CHECK(pread(file, text, bytes - 1, 0) > 0);
    (void)close(file);
    (void)close(before);
}

static void explore_without_end(void)
{
    const janus_explore_options options = {.struct_bytes = sizeof options, .max_steps = 2000};
    janus_explore_result        result = JANUS_EXPLORE_RESULT();
    CHECK_EQ(janus_explore(&options, go_round, NULL, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.failing, JANUS_FAILING_STEPS);
    CHECK_EQ(result.choices_kept, 0);
    free(result.replay);
}

TEST("a schedule that took all its steps is not minimised, and the report says what to do")
{
    static char text[4096];
    heard(explore_without_end, text, sizeof text);
    CHECK(strstr(text, "choices matter") == NULL);
    CHECK(strstr(text, "raise --steps, or make the test smaller") != NULL);
}

static int64_t panic_at_once(void *argument)
{
    (void)argument;
    janus_panic("on purpose");
}

static int64_t spawn_a_panic(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    JANUS_IGNORE(janus_spawn(&n, panic_at_once, argument));
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    return 0;
}

static void explore_a_panic(void)
{
    const janus_explore_options options = {.struct_bytes = sizeof options, .schedules = 3};
    janus_explore_result        result = JANUS_EXPLORE_RESULT();
    CHECK_EQ(janus_explore(&options, spawn_a_panic, NULL, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.failing, JANUS_FAILING_PANIC);
    free(result.replay);
}

static void explore_a_stale_handle(void)
{
    const janus_explore_options options = {.struct_bytes = sizeof options, .schedules = 3};
    janus_explore_result        result = JANUS_EXPLORE_RESULT();
    CHECK_EQ(janus_explore(&options, spawn_a_reader, NULL, &result), JANUS_CHILD_FAILED);
    free(result.replay);
}

TEST("the report of a panic or a stale handle names the option that allows it")
{
    static char panic[4096], stale[4096], neither[4096];
    heard(explore_a_panic, panic, sizeof panic);
    CHECK(strstr(panic, "explore with --panics (panics_allowed)\n") != NULL);
    CHECK(strstr(panic, "--stale") == NULL);
    heard(explore_a_stale_handle, stale, sizeof stale);
    CHECK(strstr(stale, "explore with --stale (stale_allowed)\n") != NULL);
    heard(explore_without_end, neither, sizeof neither);
    CHECK(strstr(neither, "explore with") == NULL);
}

static void report_a_long_text(void)
{
    static struct jrt_explorer explorer = {
        .options = {.strategy = JANUS_STRATEGY_RANDOM, .seed = 1, .worker_count = 4},
        .failing = JANUS_FAILING_RESULT,
        .plan = {.seed = 8},
        .schedules = 8};
    static char replay[(64 << 10) + 2];
    memset(replay, '7', sizeof replay - 1);
    jrt_report_end(&explorer, replay);
}

TEST("instead of a schedule longer than 64 KiB the report has the seed that finds it again")
{
    static char text[4096];
    heard(report_a_long_text, text, sizeof text);
    CHECK(strstr(text, "JANUSRT_REPLAY") == NULL);
    CHECK(strstr(text, "so explore seed 8 again") != NULL);
    CHECK(strstr(text, "JANUSRT_EXPLORE=strategy=1,seed=8,schedules=1,workers=4,") != NULL);
}
