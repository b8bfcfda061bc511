/* SPDX-License-Identifier: MIT */
/* Dumps: what they show, that they disturb nobody, and that a signal asks for one. */
#include "cancel/cancel.h"
#include "cancel/park.h"
#include "dumped.h"
#include "plat/seam.h"
#include "rig.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/work.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if JRT_ASAN || JRT_TSAN || defined(__aarch64__)
enum { DUMPS = 50, CROWD = 2000 };
#else
enum { DUMPS = 1000, CROWD = 20000 };
#endif

static janus_scheduler *start(uint32_t workers)
{
    janus_scheduler         *scheduler;
    janus_scheduler_options *options =
        JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .max_tasks = JANUS_UNLIMITED);
    CHECK_EQ(janus_scheduler_create_with(options, &scheduler), JANUS_OK);
    CHECK_EQ(janus_scheduler_start(scheduler), JANUS_OK);
    return scheduler;
}

static int64_t sleep_long(void *argument)
{
    if (argument != NULL) atomic_fetch_add((atomic_int *)argument, 1);
    return janus_sleep(UINT64_C(3600) * 1000000000);
}

static int64_t spin(void *argument)
{
    atomic_int *word = argument;
    atomic_fetch_add(word, 1);
    while (atomic_load(word) < 1000) jrt_thread_yield();
    return 0;
}

static int64_t family(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.name = "inner")), JANUS_OK);
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_spawn(&n, sleep_long, argument), JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    return JANUS_CANCELLED;
}

static unsigned occurrences(const char *text, const char *word)
{
    unsigned found = 0;
    for (; (text = strstr(text, word)) != NULL; text++) found++;
    return found;
}

TEST("a dump shows nurseries, tasks, what they wait for and where they were started")
{
    janus_scheduler *scheduler = start(2);
    janus_nursery    root;
    atomic_int       ready = 0;
    CHECK_EQ(janus_nursery_open_in(scheduler, &root, JANUS_NURSERY_OPTIONS(.name = "outer")),
             JANUS_OK);
    static const janus_site site = {"here.c", 42};
    CHECK_EQ(janus_spawn_with(&root, family, &ready,
                              JANUS_SPAWN_OPTIONS(.name = "parent", .site = &site), NULL),
             JANUS_OK);
    char *text = NULL;
    do { /* until the last of them sleeps */
        free(text);
        text = dumped(scheduler);
        jrt_thread_yield();
    } while (occurrences(text, "blocked, waits for the clock") < 3 ||
             occurrences(text, "waits for its children") < 1);
    CHECK(strstr(text, "2 workers\n") != NULL);
    CHECK(strstr(text, "worker 1: ") != NULL);
    CHECK(strstr(text, "\nnursery \"outer\" of a thread: open, 1 child\n") != NULL);
    CHECK(strstr(text, "\n  task \"parent\" 0x") != NULL);
    CHECK(strstr(text, ": blocked, waits for its children") != NULL);
    CHECK_EQ(occurrences(text, ", here.c:42\n"), 1);
    CHECK_EQ(occurrences(text, ", waits for the clock, for "), 3);
    CHECK(occurrences(text, ", last on worker ") >= 3);
    CHECK(strstr(text, "\n    nursery \"inner\": open, 3 children\n") != NULL ||
          strstr(text, "\n    nursery \"inner\": closing, 3 children\n") != NULL);
    CHECK_EQ(occurrences(text, "\n      task \"task\" 0x"), 3);
    CHECK_EQ(occurrences(text, "tests/task/dump_test.c:"), 3);
    CHECK(strstr(text, " more that are") == NULL);
    CHECK(strstr(text, "janusrt: end of dump\n") != NULL);
    free(text);
    CHECK_EQ(janus_nursery_cancel(&root), JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&root, NULL));
    text = dumped(scheduler);
    CHECK(strstr(text, "nursery") == NULL);
    free(text);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

TEST("tasks that run or are queued are counted, and the running one is named")
{
    janus_scheduler *scheduler = start(1);
    janus_nursery    root;
    atomic_int       word = 0;
    CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
    for (int i = 0; i < 4; i++) CHECK_EQ(janus_spawn(&root, spin, &word), JANUS_OK);
    while (atomic_load(&word) == 0) jrt_thread_yield();
    char *text = dumped(scheduler);
    CHECK(strstr(text, "worker 0: task 0x") != NULL);
    CHECK(strstr(text, "nursery \"nursery\" of a thread: open, 4 children\n") != NULL);
    CHECK(strstr(text, "  and 4 more that are queued, running, or never waited\n") != NULL);
    free(text);
    atomic_store(&word, 1000);
    CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_OK);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

static int64_t churn(void *argument)
{
    int depth = (int)(intptr_t)argument;
    if (depth == 0) return janus_sleep(1000);
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(janus_spawn(&n, churn, (void *)(intptr_t)(depth - 1)), JANUS_OK);
    }
    JANUS_IGNORE(janus_yield());
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    return 0;
}

struct churn {
    janus_scheduler *scheduler;
    int              nowhere;
    atomic_bool      stop;
};

static int64_t churn_on(void *argument)
{
    struct churn *all = argument;
    while (!atomic_load(&all->stop)) {
        (void)churn((void *)4);
        CHECK_EQ(janus_scheduler_dump(all->scheduler, all->nowhere), JANUS_OK);
    }
    return 0;
}

TEST("threads and tasks may dump while everything runs")
{
    RIG_REAL("a thread outside takes part");
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        janus_scheduler *scheduler = start(workers);
        janus_nursery    root;
        struct churn     all = {.scheduler = scheduler, .nowhere = open("/dev/null", O_WRONLY)};
        CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
        for (int i = 0; i < 3; i++) CHECK_EQ(janus_spawn(&root, churn_on, &all), JANUS_OK);
        for (int i = 0; i < DUMPS; i++) {
            char *text = dumped(scheduler);
            CHECK(strstr(text, "janusrt: end of dump\n") != NULL);
            free(text);
        }
        atomic_store(&all.stop, true);
        CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_OK);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
        (void)close(all.nowhere);
    }
}

TEST("a dump of a crowd is cut and says so")
{
    janus_scheduler *scheduler = start(1);
    janus_nursery    root;
    atomic_int       ready = 0;
    char             name[61];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
    for (int i = 0; i < CROWD; i++) {
        CHECK_EQ(
            janus_spawn_with(&root, sleep_long, &ready, JANUS_SPAWN_OPTIONS(.name = name), NULL),
            JANUS_OK);
    }
    while (atomic_load(&ready) < CROWD) jrt_thread_yield();
    char *text = dumped(scheduler);
    CHECK(strlen(text) <= JANUS_DUMP_BYTES_MAX);
    if (CROWD >= 20000) {
        CHECK(strlen(text) > JANUS_DUMP_BYTES_MAX - 400);
        CHECK(strstr(text, "janusrt: the dump is cut after ") != NULL);
    }
    free(text);
    CHECK_EQ(janus_nursery_cancel(&root), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_CANCELLED);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

struct nest {
    int        depth;
    atomic_int ready;
};

static int64_t nest(void *argument)
{
    struct nest *all = argument;
    if (all->depth-- == 0) return sleep_long(&all->ready);
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, nest, all), JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    return JANUS_CANCELLED;
}

TEST("a dump of nurseries in nurseries ends at a depth")
{
    janus_scheduler *scheduler = start(1);
    janus_nursery    root;
    struct nest      all = {.depth = 55};
    CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&root, nest, &all), JANUS_OK);
    while (atomic_load(&all.ready) == 0) jrt_thread_yield();
    char *text = NULL;
    do {
        free(text);
        text = dumped(scheduler);
        jrt_thread_yield();
    } while (strstr(text, "and more below, not shown\n") == NULL);
    CHECK_EQ(occurrences(text, "nursery \""), JANUS_DUMP_DEPTH_MAX);
    free(text);
    CHECK_EQ(janus_nursery_cancel(&root), JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&root, NULL));
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

TEST("a dump refuses a bad scheduler, file descriptor or signal")
{
    janus_scheduler *scheduler = start(1);
    CHECK_EQ(janus_scheduler_dump(NULL, 2), JANUS_INVALID);
    CHECK_EQ(janus_scheduler_dump(scheduler, -1), JANUS_INVALID);
    static const int bad[] = {0, -1, 65, SIGKILL, SIGSTOP, SIGSEGV, 32};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_EQ(janus_scheduler_dump_on(scheduler, bad[i]), JANUS_INVALID);
    }
    CHECK_EQ(janus_scheduler_dump_on(NULL, SIGUSR1), JANUS_INVALID);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* Signals. */

static atomic_int before_us;

static void handler_before_us(int number)
{
    (void)number;
    atomic_fetch_add(&before_us, 1);
}

/* Reads from a pipe until `word` was seen `times` times. */
static void read_until(int fd, const char *word, unsigned times)
{
    static char text[65536];
    size_t      used = 0;
    memset(text, 0, sizeof text);
    while (occurrences(text, word) < times) {
        ssize_t got = read(fd, text + used, sizeof text - 1 - used);
        CHECK(got > 0);
        used += (size_t)got;
    }
}

TEST("a signal asks for a dump of every scheduler that wants one, until it is closed")
{
    RIG_REAL("a test that waits in read lets nobody go on");
    int pipes[2], saved = dup(STDERR_FILENO);
    CHECK_EQ(pipe(pipes), 0);
    CHECK(dup2(pipes[1], STDERR_FILENO) >= 0);
    struct sigaction action = {.sa_handler = handler_before_us};
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    janus_scheduler *first = start(1), *second = start(2);
    CHECK_EQ(janus_scheduler_dump_on(first, SIGUSR1), JANUS_OK);
    CHECK_EQ(janus_scheduler_dump_on(first, SIGUSR2), JANUS_STATE);
    CHECK_EQ(janus_scheduler_dump_on(second, SIGUSR1), JANUS_OK);
    CHECK_EQ(raise(SIGUSR1), 0);
    read_until(pipes[0], "janusrt: end of dump\n", 2);
    CHECK_EQ(janus_scheduler_destroy(first), JANUS_OK);
    CHECK_EQ(raise(SIGUSR1), 0);
    read_until(pipes[0], "2 workers\n", 1);
    CHECK_EQ(atomic_load(&before_us), 0);
    CHECK_EQ(janus_scheduler_destroy(second), JANUS_OK);
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK_EQ(atomic_load(&before_us), 1);
    CHECK(dup2(saved, STDERR_FILENO) >= 0);
    (void)close(saved);
    (void)close(pipes[0]);
    (void)close(pipes[1]);
}

/* Nothing in the library waits for ever yet, so the test parks a task by hand. */
static int64_t wait_for_ever(void *argument)
{
    (void)argument;
    struct jrt_worker *worker = jrt_worker_self();
    struct jrt_task   *task = worker->current;
    CHECK(jrt_worker_can_leave(worker));
    jrt_task_park_begin(task, JRT_WAIT_JOIN);
    jrt_task_link(task);
    CHECK_EQ(jrt_task_park(worker, task), JANUS_DEADLOCK);
    return 0;
}

static void deadlock(void *argument)
{
    (void)argument;
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 2), wait_for_ever, NULL, NULL),
             JANUS_DEADLOCK);
}

TEST("a deadlock is reported with the same tree, and ended")
{
    int         status = -1;
    const char *text = harness_child(deadlock, NULL, &status);
    CHECK_EQ(status, 0);
    CHECK(strstr(text, "janusrt: deadlock: every task waits\n") != NULL);
    CHECK(strstr(text, "  task \"main\" 0x") != NULL);
    CHECK(strstr(text, "blocked, waits for a child") != NULL);
}

static int64_t wait_far_below(void *argument)
{
    intptr_t depth = (intptr_t)argument;
    if (depth == 0) return wait_for_ever(NULL);
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, wait_far_below, (void *)(depth - 1)), JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

static void deep_deadlock(void *argument)
{
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .stack_bytes = 65536,
                                               .max_tasks = JANUS_UNLIMITED),
                       wait_far_below, argument, NULL),
             JANUS_DEADLOCK);
}

TEST("a deadlock at the bottom of 2000 nested nurseries is ended on a small stack")
{
    int         status = -1;
    intptr_t    depth = JRT_TSAN ? 40 : 2000; /* ThreadSanitizer allows at most 64 held locks */
    const char *text = harness_child(deep_deadlock, (void *)depth, &status);
    CHECK_EQ(status, 0);
    CHECK(strstr(text, "janusrt: deadlock: every task waits\n") != NULL);
}

/* Inspecting. */

static int64_t return_one(void *argument)
{
    (void)argument;
    return 1;
}

static int64_t inspect(void *argument)
{
    (void)argument;
    janus_nursery           n, other;
    janus_task_id           id, quick;
    janus_task_info         info = JANUS_TASK_INFO();
    static const janus_site site = {"there.c", 7};
    CHECK_EQ(janus_nursery_open(&other, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, sleep_long, NULL,
                              JANUS_SPAWN_OPTIONS(.name = "sleeper", .site = &site), &id),
             JANUS_OK);
    CHECK_EQ(janus_task_inspect(&n, id, &info), JANUS_OK);
    CHECK_STR(info.name, "sleeper");
    while (info.state != JANUS_TASK_STATE_BLOCKED) {
        CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK_EQ(janus_task_inspect(&n, id, &info), JANUS_OK);
    }
    CHECK_STR(info.wait, "the clock");
    CHECK_STR(info.site.file, "there.c");
    CHECK_EQ(info.site.line, 7);
    CHECK_EQ(info.id, id);
    CHECK_EQ(janus_task_inspect(&other, id, &info), JANUS_STALE);
    CHECK_EQ(janus_task_inspect(&n, 0, &info), JANUS_STALE);
    CHECK_EQ(janus_task_inspect(&n, id + 1, &info), JANUS_STALE);
    CHECK_EQ(janus_task_inspect(&n, UINT64_MAX, &info), JANUS_STALE);
    CHECK_EQ(janus_task_inspect(&n, id, NULL), JANUS_INVALID);

    CHECK_EQ(janus_spawn_with(&n, return_one, NULL, NULL, &quick), JANUS_OK);
    do {
        CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK_EQ(janus_task_inspect(&n, quick, &info), JANUS_OK);
    } while (!janus_task_is_finished(info.state));
    CHECK_EQ(info.state, JANUS_TASK_STATE_COMPLETED);
    CHECK_STR(info.wait, "nothing");
    CHECK_STR(info.name, "task");
    CHECK(info.site.file == NULL);
    CHECK_EQ(janus_join(&n, quick, NULL), JANUS_OK);
    CHECK_EQ(janus_task_inspect(&n, quick, &info), JANUS_STALE);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    CHECK_EQ(janus_nursery_end(&other, NULL), JANUS_OK);
    return 0;
}

TEST("the owner of a nursery can inspect its own children only")
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers), inspect, NULL, NULL),
                 JANUS_OK);
    }
    CHECK_STR(janus_task_state_name(JANUS_TASK_STATE_BUDGET_EXHAUSTED), "budget exhausted");
    CHECK_STR(janus_task_state_name((janus_task_state)9), "?");
    CHECK_STR(janus_nursery_state_name(JANUS_NURSERY_STATE_CANCELLING), "cancelling");
    CHECK_STR(janus_nursery_state_name((janus_nursery_state)9), "?");
}
