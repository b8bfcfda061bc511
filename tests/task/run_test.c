/* SPDX-License-Identifier: MIT */
/* The result of a run, read after the run. */
#include "rig.h"

#include <janusrt/sync.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static janus_run_result result;

static janus_status run(uint32_t workers, janus_entry *entry, void *argument)
{
    memset(&result, 0xa5, sizeof result); /* all of it is written */
    result.struct_bytes = sizeof result;
    const janus_scheduler_options *options =
        JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .quiet_panics = true);
    janus_status status = janus_run_with(options, entry, argument, &result);
    CHECK_EQ(result.status, status);
    return status;
}

static int64_t give(void *argument) { return *(int64_t *)argument; }

TEST("the result of a successful run has the entry's result and no failure")
{
    int64_t seven = 7;
    CHECK_EQ(run(2, give, &seven), JANUS_OK);
    CHECK(result.returned && !result.deadlock);
    CHECK_EQ(result.result, 7);
    CHECK_EQ(result.failures, 0);
    CHECK_EQ(result.first.task, 0);
    CHECK_STR(result.first.text, "");
    CHECK_STR(result.deadlock_text, "");
}

/* An error that rises through DEPTH nurseries. The name is freed before the run ends. */

enum { DEPTH = 5, SITE_LINE = 41 };

static const janus_site site = {"plugin.c", SITE_LINE};

struct fall {
    janus_entry *last;
    unsigned     depth;
};

static int64_t fall(void *argument)
{
    struct fall *here = argument, below = {here->last, here->depth - 1};
    janus_status status;
    char        *name = strdup("deep \"one\"\n");
    bool         last = here->depth == 1;
    CHECK(name != NULL);
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn_with(n, last ? here->last : fall, last ? NULL : &below,
                                  JANUS_SPAWN_OPTIONS(.name = last ? name : "link", .site = &site),
                                  NULL),
                 JANUS_OK);
    }
    memset(name, 'x', strlen(name));
    free(name);
    return status;
}

static int64_t fail_plainly(void *argument)
{
    (void)argument;
    return -4711;
}

static int64_t panic_plainly(void *argument)
{
    (void)argument;
    janus_panic("the plugin's table is empty");
}

static void check_first(int64_t error, janus_panic_kind kind, const char *words)
{
    CHECK(!result.deadlock);
    CHECK_EQ(result.result, JANUS_CHILD_FAILED); /* what the entry made of it */
    CHECK_EQ(result.failures, DEPTH + 1);        /* each level passed it on */
    CHECK(result.first.task != 0);
    CHECK_EQ(result.first.error, error);
    CHECK_EQ(result.first.panic, kind);
    CHECK_EQ(result.first.line, SITE_LINE);
    CHECK_STR(result.first.file, "plugin.c");
    CHECK_STR(result.first.name, "deep \\\"one\\\"\\n");
    if (strstr(result.first.text, words) == NULL) CHECK_STR(result.first.text, words);
    CHECK(strstr(result.first.text, "(plugin.c:41)") != NULL);
}

TEST("the first failure of a run names the task where the error began, with copies of its names")
{
    struct fall error = {fail_plainly, DEPTH}, panic = {panic_plainly, DEPTH};
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        CHECK_EQ(run(workers, fall, &error), JANUS_CHILD_FAILED);
        check_first(-4711, JANUS_PANIC_KIND_NONE, "returned -4711");
        CHECK_EQ(run(workers, fall, &panic), JANUS_CHILD_FAILED);
        check_first(INT64_MIN, JANUS_PANIC_KIND_EXPLICIT, "the plugin's table is empty");
    }
}

static int64_t handle(void *argument)
{
    struct fall *fallen = argument;
    CHECK_EQ(fall(fallen), JANUS_CHILD_FAILED);
    return 0;
}

TEST("a failure that the entry handled is in the result, and the run succeeds")
{
    struct fall error = {fail_plainly, 1};
    CHECK_EQ(run(2, handle, &error), JANUS_OK);
    CHECK_EQ(result.failures, 1);
    CHECK_EQ(result.first.error, -4711);
}

TEST("an entry that panics has not returned")
{
    CHECK_EQ(run(2, panic_plainly, NULL), JANUS_CHILD_FAILED);
    CHECK(!result.returned);
    CHECK_EQ(result.result, 0);
    CHECK_EQ(result.first.panic, JANUS_PANIC_KIND_EXPLICIT);
}

/* Many tasks fail at once: the result describes one of them completely. */

enum { CROWD = 64 };

static int64_t crowd(void *argument)
{
    static int64_t errors[CROWD];
    janus_status   status;
    (void)argument;
    JANUS_NURSERY(n, status, .policy = JANUS_POLICY_WAIT_ALL)
    {
        for (int i = 0; i < CROWD; i++) {
            errors[i] = -1000 - i;
            CHECK_EQ(janus_spawn(n, give, &errors[i]), JANUS_OK);
        }
    }
    return status;
}

TEST("if many tasks fail at once, the result describes one of them completely and counts all")
{
    for (unsigned i = 0; i < rig_few(200); i++) {
        char words[32];
        CHECK_EQ(run(8, crowd, NULL), JANUS_CHILD_FAILED);
        CHECK_EQ(result.failures, CROWD + 1);
        snprintf(words, sizeof words, "returned %lld", (long long)result.first.error);
        CHECK(result.first.error <= -1000 && strstr(result.first.text, words) != NULL);
    }
}

static int64_t wait_for_nobody(void *argument)
{
    janus_event event;
    (void)argument;
    janus_event_init(&event, JANUS_WAKER_TASKS, NULL);
    CHECK_EQ(janus_event_wait(&event), JANUS_DEADLOCK);
    return 5;
}

TEST("the report of a deadlock that was broken can be read after the run")
{
    CHECK_EQ(run(2, wait_for_nobody, NULL), JANUS_DEADLOCK);
    CHECK(result.deadlock && result.returned);
    CHECK_EQ(result.result, 5);
    CHECK(strstr(result.deadlock_text, "janusrt: deadlock: every task waits\n") != NULL);
    CHECK(strstr(result.deadlock_text, "waits for") != NULL);
}

static int64_t wait_in_a_crowd(void *argument)
{
    janus_status status;
    (void)argument;
    JANUS_NURSERY(n, status)
    {
        for (int i = 0; i < CROWD; i++) CHECK_EQ(janus_spawn(n, wait_for_nobody, NULL), JANUS_OK);
    }
    return status;
}

TEST("a report of a deadlock that is too long is cut after a whole line")
{
    CHECK_EQ(run(2, wait_in_a_crowd, NULL), JANUS_DEADLOCK);
    size_t length = strlen(result.deadlock_text);
    CHECK(length > JANUS_RUN_DEADLOCK_BYTES / 2 && length < JANUS_RUN_DEADLOCK_BYTES);
    CHECK_EQ(result.deadlock_text[length - 1], '\n');
}

TEST("a run with bad options is refused, and so is a run without a result")
{
    janus_run_result short_one = {.struct_bytes = 3};
    memset(&result, 0, sizeof result);
    result.struct_bytes = sizeof result;
    CHECK_EQ(janus_run_with(JANUS_SCHEDULER_OPTIONS(.worker_count = 5000), wait_for_nobody, NULL,
                            &result),
             JANUS_INVALID);
    CHECK_EQ(result.status, JANUS_INVALID);
    CHECK(!result.returned);
    CHECK_EQ(janus_run_with(NULL, wait_for_nobody, NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_run_with(NULL, wait_for_nobody, NULL, &short_one), JANUS_INVALID);
}
