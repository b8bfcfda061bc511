/* SPDX-License-Identifier: MIT */
/* What users of tasks read: texts, durations, and their scheduler. */
#include "rig.h"

#include <janusrt/dump.h>
#include <janusrt/explain.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile bool deeper = true; /* hides from the compiler that it never ends */

static int64_t overflow(void *argument)
{
    volatile char frame[1024];
    frame[0] = (char)(argument != NULL);
    if (!deeper) return 0;
    return frame[0] + overflow((void *)(uintptr_t)frame);
}

static int64_t panic_plainly(void *argument)
{
    (void)argument;
    janus_panic("no table");
}

static int64_t read_panics(void *argument)
{
    (void)argument;
    janus_entry *const entries[] = {panic_plainly, overflow};
    for (int i = 0; i < 2; i++) {
        janus_nursery        n;
        janus_nursery_result result;
        janus_task_id        id;
        char                 text[400], who[64];
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn_with(&n, entries[i], NULL, JANUS_SPAWN_OPTIONS(.name = "plugin"), &id),
                 JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
        CHECK(janus_panic_text(&result.panic, text, sizeof text) < sizeof text);
        snprintf(who, sizeof who, "task %#llx \"plugin\" ", (unsigned long long)id);
        if (strncmp(text, who, strlen(who)) != 0) CHECK_STR(text, who);
        CHECK(strstr(text, "fiber") == NULL);
        CHECK(strstr(text, i == 0 ? "panicked: no table" : "janus_spawn_options.stack_bytes"));
    }
    return 0;
}

TEST("the text of a task's panic names the task as dumps do, and names no fiber")
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .quiet_panics = true),
                           read_panics, NULL, NULL),
                 JANUS_OK);
    }
}

TEST("every reason of a cancellation and every kind of result has a text of its own")
{
    for (int i = 0; i <= JANUS_CANCEL_REASON_SHUTDOWN; i++) {
        const char *text = janus_cancel_reason_text((janus_cancel_reason)i);
        CHECK(strlen(text) > 1);
        for (int j = 0; j < i; j++) {
            CHECK(strcmp(text, janus_cancel_reason_text((janus_cancel_reason)j)) != 0);
        }
    }
    for (int i = 0; i <= JANUS_RESULT_KIND_PENDING; i++) {
        const char *text = janus_result_kind_text((janus_result_kind)i);
        CHECK(strlen(text) > 1);
        for (int j = 0; j < i; j++) {
            CHECK(strcmp(text, janus_result_kind_text((janus_result_kind)j)) != 0);
        }
    }
    CHECK_STR(janus_cancel_reason_text((janus_cancel_reason)-1), "?");
    CHECK_STR(janus_cancel_reason_text((janus_cancel_reason)99), "?");
    CHECK_STR(janus_result_kind_text((janus_result_kind)-1), "?");
    CHECK_STR(janus_result_kind_text((janus_result_kind)99), "?");
}

TEST("durations are nanoseconds in 64 bits, however large the factor")
{
    uint64_t hour = 3600 * JANUS_SECONDS; /* would not fit 32 bits */
    CHECK_EQ(hour, 3600000000000);
    CHECK_EQ(JANUS_SECONDS, 1000 * JANUS_MS);
    CHECK_EQ(JANUS_MS, 1000 * JANUS_US);
    CHECK_EQ(sizeof(1 * JANUS_US), sizeof(uint64_t));
}

/* The scheduler. */

static int64_t dump_own(void *argument)
{
    static char      text[1 << 16];
    janus_scheduler *scheduler = janus_scheduler_current();
    FILE            *file = argument;
    CHECK(scheduler != NULL);
    CHECK_EQ(janus_scheduler_worker_count(scheduler), 2);
    CHECK_EQ(janus_scheduler_dump(scheduler, fileno(file)), JANUS_OK);
    ssize_t bytes = pread(fileno(file), text, sizeof text - 1, 0);
    CHECK(bytes > 0);
    text[bytes] = '\0';
    CHECK(strstr(text, ": 2 workers\n") != NULL && strstr(text, "end of dump") != NULL);
    return 0;
}

TEST("a task of janus_run dumps the scheduler that runs it")
{
    FILE *file = tmpfile();
    CHECK(file != NULL);
    CHECK(janus_scheduler_current() == NULL);
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 2), dump_own, file, NULL), JANUS_OK);
    CHECK(janus_scheduler_current() == NULL);
    (void)fclose(file);
}

static janus_scheduler *outer;

static int64_t misuse(void *argument)
{
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_scheduler_stop(outer), JANUS_STATE);
    CHECK_EQ(janus_scheduler_destroy(outer), JANUS_STATE);
    CHECK_EQ(janus_nursery_open_in(outer, &n, NULL), JANUS_STATE);
    CHECK_EQ(janus_scheduler_start(outer), JANUS_STATE);
    return 0;
}

static int64_t find_none(void *argument)
{
    (void)argument;
    CHECK(janus_scheduler_current() == NULL);
    return 0;
}

static int64_t restrict_child(void *argument)
{
    janus_status       status;
    const janus_budget budget = JANUS_BUDGET(.ops = 100000, .spawn_count = 10);
    (void)argument;
    outer = janus_scheduler_current();
    CHECK(outer != NULL);
    CHECK_EQ(misuse(NULL), 0);
    JANUS_NURSERY(n, status, .budget = &budget)
    {
        CHECK_EQ(janus_spawn(n, find_none, NULL), JANUS_OK);
    }
    return status;
}

TEST("a restricted task cannot get its scheduler, and no task can stop, close or start it")
{
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 2), restrict_child, NULL, NULL),
             JANUS_OK);
}
