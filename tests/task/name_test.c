/* SPDX-License-Identifier: MIT */
/* Names are copied, cut and escaped: the library never reads a name that its giver has freed. */
#include "dumped.h"
#include "rig.h"

#include "plat/name.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* How these tests keep names. */
static const char wild[] = "a\nb\x1b[2J\"c\\d\xff";
static const char tame[] = "a\\nb\\x1b[2J\\\"c\\\\d\\xff";

/* Whether text can stand in a terminal: lines of printable characters only. */
static void check_clean(const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        bool control = ((unsigned char)*at < ' ' && *at != '\n') || *at == 0x7f;
        if (control || (unsigned char)*at >= 0x80) CHECK_STR("a control character in", text);
    }
}

static void check_says(const char *text, const char *words)
{
    if (strstr(text, words) == NULL) CHECK_STR(text, words);
}

/* A name in memory of its own, which `forget` frees. */
static char *name_of(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char  *name = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(name != MAP_FAILED);
    memcpy(name, text, bytes);
    return name;
}

static void forget(char *name, const char *text) { CHECK_EQ(munmap(name, strlen(text) + 1), 0); }

/* Dumps until the words appear. */
static void check_dump_says(janus_scheduler *scheduler, const char *words)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    for (;;) {
        char *text = dumped(scheduler);
        bool  there = strstr(text, words) != NULL;
        check_clean(text);
        if (!there && janus_now_ns() > limit) CHECK_STR(text, words);
        free(text);
        if (there) return;
        JANUS_IGNORE(janus_yield());
    }
}

/* Tasks and nurseries. */

static int64_t fail_named(void *argument)
{
    const char           *text = argument;
    char                 *name = name_of(text);
    janus_nursery         n;
    janus_nursery_options options = {
        .struct_bytes = sizeof options, .name = name, .policy = JANUS_POLICY_WAIT_ALL};
    janus_failure      failure;
    janus_nursery_info info = JANUS_NURSERY_INFO();
    char               kept[JANUS_NAME_BYTES], said[1000], quoted[JANUS_NAME_BYTES + 2];
    (void)jrt_name_copy(kept, sizeof kept, text);
    CHECK_EQ(janus_nursery_open(&n, &options), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, minus_seven, NULL, JANUS_SPAWN_OPTIONS(.name = name), NULL),
             JANUS_OK);
    forget(name, text);
    CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_CHILD_FAILED);
    CHECK_EQ(janus_nursery_failures(&n, &failure, 1), 1);
    CHECK_STR(failure.name, kept);
    (void)janus_failure_text(&n, &failure, said, sizeof said);
    check_clean(said);
    (void)snprintf(quoted, sizeof quoted, "\"%s\"", kept);
    check_says(said, quoted);
    CHECK_EQ(janus_nursery_inspect(&n, &info), JANUS_OK);
    CHECK_STR(info.name, kept);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    CHECK_STR(failure.name, kept); /* the task and its nursery are gone */
    return 0;
}

TEST("a failure has the right name although the name was unmapped right after the spawn")
{
    rig_all(fail_named, (void *)(uintptr_t)"worker of the week", 10);
}

TEST("newlines, escapes, quotes and bytes that are no UTF-8 reach no message")
{
    char kept[JANUS_NAME_BYTES];
    (void)jrt_name_copy(kept, sizeof kept, wild);
    CHECK_STR(kept, tame);
    rig_all(fail_named, (void *)(uintptr_t)wild, 10);
}

TEST("a name of 10,000 bytes is cut")
{
    char *large = malloc(10001);
    memset(large, '\n', 10000);
    large[10000] = 0;
    rig_all(fail_named, large, 3);
    free(large);
}

/* A name that ends with the page, without a zero. */
static int64_t unterminated(void *argument)
{
    size_t        page = (size_t)sysconf(_SC_PAGESIZE);
    janus_nursery n;
    janus_failure failure;
    (void)argument;
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED);
    CHECK_EQ(mprotect(pages + page, page, PROT_NONE), 0);
    memcpy(pages + page - 5, "brink", 5);
    for (int i = 0; i < 2; i++) { /* the second page is unmapped */
        const char *name = pages + page - (i == 0 ? 5 : 0);
        CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.name = name)), JANUS_OK);
        CHECK_EQ(janus_spawn_with(&n, minus_seven, NULL, JANUS_SPAWN_OPTIONS(.name = name), NULL),
                 JANUS_OK);
        CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_CHILD_FAILED);
        CHECK_EQ(janus_nursery_failures(&n, &failure, 1), 1);
        CHECK_STR(failure.name, i == 0 ? "brink" : "?");
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    }
    CHECK_EQ(munmap(pages, 2 * page), 0);
    return 0;
}

TEST("a name that runs into unmapped memory ends before it")
{
    if (JRT_TSAN) SKIP("ThreadSanitizer delays the handler of the fault");
    rig_all(unterminated, NULL, 3);
}

/* Dumps and inspections. */

struct scene {
    janus_scheduler *scheduler;
    janus_waitpoint  point;
    const char      *reason;
    atomic_int       arrived;
};

static int64_t inspect_all(void *argument)
{
    struct scene   *scene = argument;
    char           *name = name_of(wild);
    janus_nursery   n;
    janus_task_id   id;
    janus_task_info info = JANUS_TASK_INFO();
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.name = name)), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, sleep_an_hour, &scene->arrived, JANUS_SPAWN_OPTIONS(.name = name),
                              &id),
             JANUS_OK);
    forget(name, wild);
    CHECK(rig_wait(&scene->arrived));
    check_dump_says(scene->scheduler, "nursery \"a\\nb\\x1b[2J\\\"c\\\\d\\xff\"");
    check_dump_says(scene->scheduler, "task \"a\\nb\\x1b[2J\\\"c\\\\d\\xff\" 0x");
    CHECK_EQ(janus_task_inspect(&n, id, &info), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    CHECK_STR(info.name, tame); /* the task and its nursery are gone */
    CHECK_STR(info.nursery_name, tame);
    return 0;
}

/* Runs on a scheduler of its own with this many workers. */
static void play(uint32_t workers, janus_entry *entry)
{
    struct scene scene = {.arrived = 0};
    scene.scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers));
    rig_do(scene.scheduler, entry, &scene);
    CHECK_EQ(janus_scheduler_destroy(scene.scheduler), JANUS_OK);
}

TEST("dumps and inspections show clean copies of names that were unmapped")
{
    play(1, inspect_all);
    play(2, inspect_all);
    play(8, inspect_all);
}

static int64_t wait_for_reason(void *argument)
{
    struct scene *scene = argument;
    atomic_fetch_add(&scene->arrived, 1);
    return janus_waitpoint_wait(&scene->point, scene->reason);
}

static int64_t lose_reason(void *argument)
{
    struct scene *scene = argument;
    char         *reason = name_of(wild);
    janus_nursery n;
    scene->reason = reason;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    janus_waitpoint_init(&scene->point, JANUS_WAKER_TASKS);
    CHECK_EQ(janus_spawn(&n, wait_for_reason, scene), JANUS_OK);
    CHECK(rig_wait(&scene->arrived));
    check_dump_says(scene->scheduler, "waits for a\\nb\\x1b[2J\\\"c\\\\d\\xff");
    forget(reason, wild);
    check_dump_says(scene->scheduler, "waits for ?");
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    return 0;
}

TEST("a dump survives a waitpoint's reason that was unmapped while a task waits")
{
    if (JRT_TSAN) SKIP("ThreadSanitizer delays the handler of the fault");
    play(1, lose_reason);
    play(2, lose_reason);
}

static int64_t wait_for_mutex(void *argument)
{
    janus_mutex *mutex = argument;
    janus_status status = janus_mutex_lock(mutex);
    if (status == JANUS_OK) (void)janus_mutex_unlock(mutex);
    return 0;
}

static int64_t lose_object_name(void *argument)
{
    struct scene *scene = argument;
    char         *name = name_of(wild);
    janus_nursery n;
    janus_mutex   mutex;
    janus_mutex_init(&mutex, name);
    CHECK_EQ(janus_mutex_lock(&mutex), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, wait_for_mutex, &mutex), JANUS_OK);
    check_dump_says(scene->scheduler, "waits for mutex \"a\\nb\\x1b[2J\\\"c\\\\d\\xff\" held by");
    forget(name, wild);
    check_dump_says(scene->scheduler, "waits for mutex \"?\" held by");
    CHECK_EQ(janus_mutex_unlock(&mutex), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a dump survives the name of a mutex that was unmapped while a task waits")
{
    if (JRT_TSAN) SKIP("ThreadSanitizer delays the handler of the fault");
    play(1, lose_object_name);
    play(2, lose_object_name);
}

/* Panics and refusals. */

static int64_t panic_wildly(void *argument)
{
    (void)argument;
    janus_panic(wild);
}

static char reported[2000], reported_name[JANUS_NAME_BYTES];

static void keep_report(void *argument, const janus_panic_report *report)
{
    (void)argument;
    (void)snprintf(reported, sizeof reported, "%s", report->text);
    (void)snprintf(reported_name, sizeof reported_name, "%s", report->name);
}

static int64_t panic_named(void *argument)
{
    char                *name = name_of(wild);
    janus_nursery        n;
    janus_nursery_result result;
    char                 text[1000];
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, panic_wildly, NULL, JANUS_SPAWN_OPTIONS(.name = name), NULL),
             JANUS_OK);
    forget(name, wild);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_STR(result.panic.name, tame);
    (void)janus_panic_text(&result.panic, text, sizeof text);
    check_clean(text);
    CHECK(strchr(text, '\n') == NULL);
    return 0;
}

TEST("a report of a panic is one line, whatever the name and the message are")
{
    const janus_scheduler_options *options =
        JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .on_panic = keep_report);
    CHECK_EQ(janus_run(options, panic_named, NULL, NULL), JANUS_OK);
    CHECK_STR(reported_name, tame);
    check_clean(reported);
    check_says(reported, tame);
    CHECK(strchr(reported, '\n') == NULL);
}

static int64_t refused(void *argument)
{
    janus_nursery n;
    char          text[1000];
    (void)argument;
    if (janus_nursery_open(&n, NULL) != JANUS_OK) return -1;
    CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_TASK_LIMIT);
    (void)janus_explain(text, sizeof text);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    check_clean(text);
    check_says(text, tame);
    CHECK(strchr(text, '\n') == NULL);
    return 0;
}

static int64_t explain_named(void *argument)
{
    char         *name = name_of(wild);
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.name = name)), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, refused, NULL, JANUS_SPAWN_OPTIONS(.name = name), NULL),
             JANUS_OK);
    forget(name, wild);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("an explanation has clean copies of names that were unmapped")
{
    const janus_scheduler_options *options =
        JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .max_tasks = 2);
    CHECK_EQ(janus_run(options, explain_named, NULL, NULL), JANUS_OK);
}
