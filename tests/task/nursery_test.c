/* SPDX-License-Identifier: MIT */
/* Nurseries and tasks as a user meets them, with one worker, two and eight. */
#include "rig.h"

#include <string.h>

#if JRT_ASAN || JRT_TSAN || defined(__aarch64__)
enum { REPEATS = 50, MANY = 2000 };
#else
enum { REPEATS = 1000, MANY = 100000 };
#endif

/* The scenarios of the nursery's document run this often on each number of workers. gcc's
 * ThreadSanitizer takes a millisecond to create a fiber, clang's does not. */
#if JRT_TSAN && !defined(__clang__)
enum { SCENARIOS = 100 };
#else
enum { SCENARIOS = 1000 };
#endif

static const uint32_t worker_counts[] = {1, 2, 8};

/* Runs a scenario as the first task, `times` times on each number of workers. */
static void scenario(janus_entry *entry, int times)
{
    for (size_t i = 0; i < 3; i++) {
        janus_scheduler *scheduler;
        CHECK_EQ(
            janus_scheduler_create_with(JANUS_SCHEDULER_OPTIONS(.worker_count = worker_counts[i],
                                                                .max_tasks = JANUS_UNLIMITED),
                                        &scheduler),
            JANUS_OK);
        CHECK_EQ(janus_scheduler_start(scheduler), JANUS_OK);
        for (int k = 0; k < (int)rig_few((uint64_t)times); k++) {
            janus_nursery        root;
            janus_nursery_result result;
            CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
            CHECK_EQ(janus_spawn(&root, entry, NULL), JANUS_OK);
            CHECK_EQ(janus_nursery_end(&root, &result), JANUS_OK);
        }
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

static int64_t one(void *argument)
{
    if (argument != NULL) atomic_fetch_add((atomic_int *)argument, 1);
    return 1;
}

static int64_t fail(void *argument)
{
    (void)argument;
    return -7;
}

static int64_t basic_completion(void *argument)
{
    (void)argument;
    atomic_int           sum = 0;
    janus_nursery        n;
    janus_nursery_result result;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, one, &sum), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, one, &sum), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_OK);
    CHECK_EQ(result.kind, JANUS_RESULT_KIND_SUCCESS);
    CHECK_EQ(janus_nursery_state_of(&n), JANUS_NURSERY_STATE_CLOSED);
    CHECK_EQ(sum, 2);
    return 0;
}

TEST("two children that succeed make a nursery that succeeds")
{
    scenario(basic_completion, SCENARIOS);
}

static int64_t child_error(void *argument)
{
    (void)argument;
    janus_nursery        n;
    janus_nursery_result result;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, one, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, fail, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.kind, JANUS_RESULT_KIND_CHILD_FAILED);
    CHECK_EQ(result.error, -7);
    CHECK_EQ(result.errors, 1);
    return 0;
}

TEST("one child that fails makes a nursery that fails with its code")
{
    scenario(child_error, SCENARIOS);
}

static int64_t explicit_cancel(void *argument)
{
    (void)argument;
    janus_nursery        n;
    janus_nursery_result result;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, yield_for_ever, NULL), JANUS_OK);
    CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_STATE);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CANCELLED);
    CHECK_EQ(result.kind, JANUS_RESULT_KIND_CANCELLED);
    CHECK_EQ(result.reason, JANUS_CANCEL_REASON_EXPLICIT);
    CHECK_EQ(janus_nursery_state_of(&n), JANUS_NURSERY_STATE_CANCELLED);
    return 0;
}

TEST("cancelling a nursery ends a child that yields for ever")
{
    scenario(explicit_cancel, SCENARIOS);
}

static int64_t inner_owner(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, yield_for_ever, NULL), JANUS_OK);
    atomic_store((atomic_int *)argument, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return JANUS_CANCELLED;
}

static int64_t nested_cancel(void *argument)
{
    (void)argument;
    janus_nursery n;
    atomic_int    ready = 0;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, inner_owner, &ready), JANUS_OK);
    while (!atomic_load(&ready)) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    janus_nursery_result result;
    janus_status         status = janus_nursery_end(&n, &result);
    CHECK(status == JANUS_CANCELLED || status == JANUS_CHILD_FAILED);
    return 0;
}

TEST("cancelling an outer nursery reaches the children of an inner one")
{
    scenario(nested_cancel, SCENARIOS);
}

static int64_t sleep_long(void *argument)
{
    (void)argument;
    return janus_sleep(UINT64_C(3600) * 1000000000);
}

static int64_t cancel_sleepers(void *argument)
{
    (void)argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 20; i++) CHECK_EQ(janus_spawn(&n, sleep_long, NULL), JANUS_OK);
    CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("cancelling ends waits at once") { scenario(cancel_sleepers, REPEATS); }

static int64_t nap(void *argument)
{
    (void)argument;
    return janus_sleep(1000);
}

static int64_t many_naps(void *argument)
{
    (void)argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 100; i++) CHECK_EQ(janus_spawn(&n, nap, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("sleepers wake when their time has come") { scenario(many_naps, REPEATS / 10); }

static int64_t spawn_many(void *argument)
{
    (void)argument;
    atomic_int    sum = 0;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < (int)rig_few(MANY); i++) CHECK_EQ(janus_spawn(&n, one, &sum), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(sum, (long long)rig_few(MANY));
    return 0;
}

TEST("a hundred thousand children of one nursery all run once") { scenario(spawn_many, 3); }

static int64_t fib(void *argument)
{
    int64_t *n = argument;
    if (*n < 2) return 0;
    int64_t       left = *n - 1, right = *n - 2;
    janus_nursery nursery;
    CHECK_EQ(janus_nursery_open(&nursery, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&nursery, fib, &left), JANUS_OK);
    (void)fib(&right);
    CHECK_EQ(janus_nursery_end(&nursery, NULL), JANUS_OK);
    *n = left + right;
    return 0;
}

static int64_t fib_of_twenty(void *argument)
{
    (void)argument;
    int64_t n = 20;
    (void)fib(&n);
    CHECK_EQ(n, 6765);
    return 0;
}

TEST("tasks that spawn and wait recursively compute what they should")
{
    scenario(fib_of_twenty, REPEATS / 50 + 1);
}

static int64_t panic_now(void *argument) { janus_panic(argument); }

static int64_t contain_panic(void *argument)
{
    (void)argument;
    janus_nursery        n;
    janus_nursery_result result;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, panic_now, "no luck"), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.panic.kind, JANUS_PANIC_KIND_EXPLICIT);
    CHECK_STR(result.panic.message, "no luck");
    return 0;
}

TEST("a child's panic is its nursery's failure and nobody else's")
{
    scenario(contain_panic, REPEATS);
}

__attribute__((noinline)) static int64_t dig(int64_t depth)
{
    static volatile bool bottomless = true;
    volatile char        room[400];
    room[0] = (char)depth;
    return (bottomless ? dig(depth + 1) : 0) + room[0];
}

static int64_t overflow_with_nursery(void *argument)
{
    (void)argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, yield_for_ever, NULL), JANUS_OK);
    return dig(0);
}

static int64_t contain_overflow(void *argument)
{
    (void)argument;
    janus_nursery        n;
    janus_nursery_result result;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, overflow_with_nursery, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.panic.kind, JANUS_PANIC_KIND_STACK_OVERFLOW);
    return 0;
}

TEST("a child's stack overflow ends the child and its open nursery")
{
    if (JRT_TSAN) SKIP("ThreadSanitizer's own code dies where the stack ends, locks held");
    scenario(contain_overflow, REPEATS / 10);
}

static char       defer_log[16];
static atomic_int defer_count;

static void log_letter(void *argument)
{
    defer_log[atomic_fetch_add(&defer_count, 1)] = *(const char *)argument;
}

static int64_t defer_and_end(void *argument)
{
    CHECK_EQ(janus_defer(log_letter, "a"), JANUS_OK);
    CHECK_EQ(janus_defer(log_letter, "b"), JANUS_OK);
    CHECK_EQ(janus_defer(log_letter, "c"), JANUS_OK);
    if (argument != NULL) janus_panic("early");
    return 0;
}

static int64_t defers_run(void *argument)
{
    (void)argument;
    for (int panics = 0; panics < 2; panics++) {
        janus_nursery n;
        defer_count = 0;
        memset(defer_log, 0, sizeof defer_log);
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, defer_and_end, panics ? &n : NULL), JANUS_OK);
        JANUS_IGNORE(janus_nursery_end(&n, NULL));
        CHECK_STR(defer_log, "cba");
    }
    return 0;
}

TEST("a task's defers run in reverse order, however it ends")
{
    scenario(defers_run, REPEATS / 10);
}

static int64_t take_back(void *argument)
{
    static char letters[] = "abc";
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_defer(log_letter, &letters[i]), JANUS_OK);
    CHECK_EQ(janus_defer(log_letter, &letters[0]), JANUS_OK);
    CHECK_EQ(janus_undefer(log_letter, &letters[1]), JANUS_OK);
    CHECK_EQ(janus_undefer(log_letter, &letters[1]), JANUS_NOT_FOUND);
    CHECK_EQ(janus_undefer(log_letter, &letters[0]), JANUS_OK); /* the last one */
    CHECK_EQ(janus_undefer(NULL, NULL), JANUS_INVALID);
    for (int i = 0; i < 10000; i++) { /* more than a task may have at a time */
        CHECK_EQ(janus_defer(log_letter, argument), JANUS_OK);
        CHECK_EQ(janus_undefer(log_letter, argument), JANUS_OK);
    }
    return 0;
}

static int64_t defers_return(void *argument)
{
    janus_nursery n;
    defer_count = 0;
    memset(defer_log, 0, sizeof defer_log);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, take_back, argument), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_STR(defer_log, "ca");
    return 0;
}

TEST("a defer that was taken back does not run, and the others do")
{
    scenario(defers_return, REPEATS / 10);
    CHECK_EQ(janus_undefer(log_letter, NULL), JANUS_STATE);
}

static int64_t unwind_loop(void *argument)
{
    while (argument == NULL) JANUS_IGNORE(janus_yield());
    return 0;
}

static int64_t unwinding(void *argument)
{
    (void)argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, unwind_loop, NULL,
                              JANUS_SPAWN_OPTIONS(.cancel = JANUS_CANCEL_MODE_UNWIND), NULL),
             JANUS_OK);
    CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("a task in unwind mode that ignores its cancellation is ended")
{
    scenario(unwinding, REPEATS);
}

static int64_t join_children(void *argument)
{
    (void)argument;
    janus_nursery n;
    janus_task_id ids[3];
    int64_t       result = 0;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(janus_spawn_with(&n, one, NULL, NULL, &ids[i]), JANUS_OK);
    }
    CHECK_EQ(janus_join(&n, ids[1], &result), JANUS_OK);
    CHECK_EQ(result, 1);
    CHECK_EQ(janus_join(&n, ids[1], &result), JANUS_STALE);
    CHECK_EQ(janus_join(&n, ids[1] + 1, &result), JANUS_STALE); /* the record's next name */
    CHECK_EQ(janus_join(&n, 12345, &result), JANUS_STALE);
    CHECK_EQ(janus_join(&n, ids[0], &result), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a child can be joined once, by its id") { scenario(join_children, REPEATS); }

static int64_t twice(void *argument) { return (intptr_t)argument * 2; }

static int64_t blocking_calls(void *argument)
{
    (void)argument;
    int64_t result = 0;
    CHECK_EQ(janus_blocking(twice, (void *)21, &result), JANUS_OK);
    CHECK_EQ(result, 42);
    return 0;
}

TEST("a blocking call returns its result and blocks no other task")
{
    scenario(blocking_calls, REPEATS / 10);
}

TEST("the common case is one call")
{
    int64_t result = 0;
    CHECK_EQ(janus_run(NULL, one, NULL, &result), JANUS_OK);
    CHECK_EQ(result, 1);
    CHECK_EQ(janus_run(NULL, fail, NULL, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result, -7);
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.profile = JANUS_PROFILE_CORE), one, NULL, NULL),
             JANUS_PROFILE);
}

TEST("stopping a scheduler ends tasks that run, wait or are queued")
{
    for (size_t i = 0; i < 3; i++) {
        janus_scheduler *scheduler;
        janus_nursery    root;
        CHECK_EQ(
            janus_scheduler_create_with(JANUS_SCHEDULER_OPTIONS(.worker_count = worker_counts[i],
                                                                .max_tasks = JANUS_UNLIMITED),
                                        &scheduler),
            JANUS_OK);
        CHECK_EQ(janus_scheduler_start(scheduler), JANUS_OK);
        CHECK_EQ(janus_scheduler_start(scheduler), JANUS_STATE);
        CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
        for (int k = 0; k < 100; k++) {
            CHECK_EQ(janus_spawn(&root, k % 2 ? sleep_long : yield_for_ever, NULL), JANUS_OK);
        }
        CHECK_EQ(janus_scheduler_stop(scheduler), JANUS_OK);
        CHECK_EQ(janus_scheduler_stop(scheduler), JANUS_OK);
        janus_nursery_result result;
        CHECK_EQ(janus_nursery_end(&root, &result), JANUS_CANCELLED);
        CHECK_EQ(result.reason, JANUS_CANCEL_REASON_SHUTDOWN);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}
