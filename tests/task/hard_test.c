/* SPDX-License-Identifier: MIT */
/*
 * Hard cases: the end of the stack inside calls, busy workers, old tasks behind new ones, refused
 * memory, waits in shields that nothing can end.
 */
#include "rig.h"
#include "task/task.h"
#include "task/worker.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

/* The end of the stack. */

enum call {
    CALL_ON_CANCEL,
    CALL_NURSERY,
    CALL_DEADLINE,
    CALL_TOKEN,
    CALL_SLEEP,
    CALL_BLOCKING,
    CALL_JOIN,
    CALL_CANCEL,
    CALL_YIELD,
    CALL_WAITPOINT,
    CALL_MUTEX,
    CALL_CONDITION,
    CALLS,
};

static janus_token    *token;
static enum call       which;
static janus_mutex     theirs = JANUS_MUTEX_INIT("theirs"), ours = JANUS_MUTEX_INIT("ours");
static janus_condition never = JANUS_CONDITION_INIT(JANUS_WAKER_TASKS, "never");

static void call_back(void *argument) { (void)argument; }

static void with_nursery(void)
{
    janus_nursery n;
    janus_token  *own;
    janus_task_id id;
    uint64_t      far = janus_now_ns() + 3600000 * rig_ms;
    janus_status  status = janus_nursery_open(
        &n, which == CALL_DEADLINE ? JANUS_NURSERY_OPTIONS(.deadline_ns = far) : NULL);
    if (status != JANUS_OK) return;
    if (which == CALL_NURSERY || which == CALL_CANCEL) JANUS_IGNORE(janus_spawn(&n, nothing, NULL));
    if (which == CALL_TOKEN && janus_nursery_token(&n, &own) == JANUS_OK) janus_token_release(own);
    if (which == CALL_CANCEL) (void)janus_nursery_cancel(&n);
    if (which == CALL_JOIN && janus_spawn_with(&n, nothing, NULL, NULL, &id) == JANUS_OK) {
        JANUS_IGNORE(janus_join(&n, id, NULL));
    }
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
}

static void do_call(void)
{
    janus_token_handle handle;
    janus_waitpoint    point;
    switch (which) {
    case CALL_ON_CANCEL:
        if (janus_token_on_cancel(token, call_back, NULL, &handle) == JANUS_OK) {
            (void)janus_token_remove(token, handle);
        }
        break;
    case CALL_SLEEP: JANUS_IGNORE(janus_sleep(1000)); break;
    case CALL_BLOCKING: JANUS_IGNORE(janus_blocking(nothing, NULL, NULL)); break;
    case CALL_YIELD: JANUS_IGNORE(janus_yield()); break;
    case CALL_WAITPOINT:
        janus_waitpoint_init(&point, JANUS_WAKER_TASKS);
        (void)!janus_waitpoint_wait_until(&point, "nobody", janus_now_ns() + 1000);
        break;
    case CALL_MUTEX: (void)!janus_mutex_lock_until(&theirs, janus_now_ns() + 1000); break;
    case CALL_CONDITION: /* a task that overflows inside leaves it abandoned */
        if (janus_mutex_lock(&ours) < JANUS_OK) break;
        (void)!janus_condition_wait_until(&never, &ours, janus_now_ns() + 1000);
        (void)janus_mutex_unlock(&ours);
        break;
    default: with_nursery(); break;
    }
}

__attribute__((noinline)) static int64_t call_deeper(size_t bytes)
{
    volatile char *frame = __builtin_alloca(bytes);
    frame[0] = 1;
    do_call();
    if (frame[0] == 0) return 0; /* never */
    return call_deeper(bytes) + frame[0];
}

static int64_t call_down(void *argument) { return call_deeper((size_t)(uintptr_t)argument); }

static int64_t overflow_in_calls(void *argument)
{
    (void)argument;
    for (which = CALL_ON_CANCEL; which < CALLS; which++) {
        if (JRT_ASAN && which == CALL_TOKEN) continue; /* a token is lost with its task: a leak */
        for (uintptr_t i = 0; i < (RIG_SLOW ? 10 : 100); i++) {
            janus_nursery        n;
            janus_nursery_result result;
            CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
            CHECK_EQ(janus_spawn(&n, call_down, (void *)(16 + i * 37 % 1500)), JANUS_OK);
            CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
            CHECK_EQ(result.panic.kind, JANUS_PANIC_KIND_STACK_OVERFLOW);
        }
    }
    return 0;
}

TEST("a task whose stack ends inside any library call panics, and nothing stays locked")
{
    RIG_OVERFLOWS();
    CHECK_EQ(janus_token_create(&token), JANUS_OK);
    CHECK_EQ(janus_mutex_lock(&theirs), JANUS_OK);
    janus_scheduler *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .stack_bytes = 16384));
    rig_do(scheduler, overflow_in_calls, NULL);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    CHECK_EQ(janus_mutex_unlock(&theirs), JANUS_OK);
    CHECK_EQ(janus_mutex_try_lock(&theirs), JANUS_OK);
    CHECK(janus_mutex_try_lock(&ours) >= JANUS_OK);
    janus_token_release(token);
}

/* Workers that never look up. */

static int64_t compute(void *argument)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    (void)argument;
    while (!janus_cancelled()) CHECK(janus_now_ns() < limit);
    return JANUS_CANCELLED;
}

static int64_t deadline_over_computing(void *argument)
{
    janus_nursery        n;
    janus_nursery_result result;
    uint64_t             soon = janus_now_ns() + 10 * rig_ms;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.deadline_ns = soon)), JANUS_OK);
    for (int i = 0; i < *(int *)argument; i++) {
        CHECK_EQ(janus_spawn(&n, compute, NULL), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CANCELLED);
    CHECK_EQ(result.reason, JANUS_CANCEL_REASON_DEADLINE);
    return 0;
}

TEST("a deadline fires although every worker only computes and calls janus_cancelled")
{
    for (int workers = 1; workers <= 2; workers++) {
        rig_run((uint32_t)workers, deadline_over_computing, &workers, 3);
    }
}

/* Old tasks behind new ones. */

static int64_t behind_new_ones(void *argument)
{
    janus_nursery n;
    atomic_int    ran = 0;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, count_me, &ran,
                              JANUS_SPAWN_OPTIONS(.priority = *(janus_priority *)argument), NULL),
             JANUS_OK);
    uint64_t limit = janus_now_ns() + rig_patience;
    while (!atomic_load(&ran) && janus_now_ns() < limit) {
        janus_status ended;
        JANUS_NURSERY(inner, ended) { JANUS_IGNORE(janus_spawn(inner, nothing, NULL)); }
        CHECK_EQ(ended, JANUS_OK);
    }
    CHECK_EQ(atomic_load(&ran), 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a sibling's endless new children do not starve a task in the queue")
{
    janus_priority priorities[] = {JANUS_PRIORITY_HIGH, JANUS_PRIORITY_NORMAL, JANUS_PRIORITY_LOW};
    for (int i = 0; i < 3; i++) {
        for (uint32_t workers = 1; workers <= 2; workers++) {
            janus_scheduler *scheduler =
                rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .no_stealing = true));
            rig_do(scheduler, behind_new_ones, &priorities[i]);
            CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
        }
    }
}

/* Memory that is refused. */

TEST("a child whose stack is refused fails with NO_MEMORY")
{
    if (JRT_ASAN || JRT_TSAN) SKIP("a sanitizer's own address space is beyond any limit");
    struct rlimit        old, tight;
    janus_nursery        n;
    janus_nursery_result result;
    const janus_budget   budget = {.ops = 1000, .memory = UINT64_C(2) << 30}; /* pays for it */
    janus_scheduler     *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .task_budget = &budget));
    rig_do(scheduler, nothing, NULL);
    CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_OK);
    CHECK(getrlimit(RLIMIT_AS, &old) == 0);
    tight = old;
    tight.rlim_cur = (rlim_t)1 << 30;
    CHECK(setrlimit(RLIMIT_AS, &tight) == 0);
    void *far = mmap(NULL, (size_t)1 << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (far != MAP_FAILED) {
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
        SKIP("emulators do not limit the address space");
    }
    CHECK_EQ(janus_spawn_with(&n, nothing, NULL,
                              JANUS_SPAWN_OPTIONS(.stack_bytes = (size_t)1 << 30), NULL),
             JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK(setrlimit(RLIMIT_AS, &old) == 0);
    CHECK_EQ(result.error, JANUS_NO_MEMORY);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* Waits in shields. */

static int64_t wait_for_nobody(void *argument)
{
    janus_waitpoint point;
    (void)argument;
    janus_waitpoint_init(&point, JANUS_WAKER_TASKS);
    janus_shield_begin();
    CHECK_EQ(janus_waitpoint_wait(&point, "nobody"), JANUS_DEADLOCK);
    janus_shield_end();
    return 0;
}

TEST("a wait in a shield that nothing can end ends as a deadlock")
{
    rig_all(wait_for_nobody, NULL, 1);
}

/* Joins against the order of the children's ends. */

enum { JOINS = RIG_SLOW ? 2000 : 40000 };

/* The process's: the kernel may run others in the middle. */
static uint64_t cpu_ns(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static int64_t join_backwards(void *argument)
{
    janus_task_id *ids = argument;
    janus_nursery  n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < JOINS; i++) {
        CHECK_EQ(janus_spawn_with(&n, nothing, NULL, NULL, &ids[i]), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_OK);
    uint64_t spent[2];
    for (int half = 0; half < 2; half++) { /* both directions; one is against the order */
        uint64_t start = cpu_ns();
        for (int i = 0; i < JOINS / 2; i++) {
            CHECK_EQ(janus_join(&n, ids[half == 0 ? i : JOINS - 1 - i], NULL), JANUS_OK);
        }
        spent[half] = cpu_ns() - start + 1;
    }
    if (!RIG_SLOW) CHECK(spent[0] < spent[1] * 50 && spent[1] < spent[0] * 50);
    CHECK_EQ(janus_join(&n, ids[0], NULL), JANUS_STALE);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("joining children costs the same in whatever order they ended")
{
    janus_task_id *ids = calloc(JOINS, sizeof *ids);
    CHECK(ids != NULL);
    rig_run(1, join_backwards, ids, 1);
    free(ids);
}

/* Failures. */

static int64_t fail_with(void *argument) { return -(int64_t)(intptr_t)argument; }

static int64_t many_failures(void *argument)
{
    (void)argument;
    janus_nursery        n;
    janus_nursery_result result;
    janus_failure        failures[3];
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
    CHECK_EQ(janus_nursery_failures(&n, failures, 3), 0);
    for (intptr_t i = 1; i <= 100; i++) {
        CHECK_EQ(janus_spawn(&n, fail_with, (void *)(i + 10)), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_await_with(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.errors, 100);
    CHECK_EQ(janus_nursery_failures(&n, NULL, 0), JANUS_FAILURES_KEPT);
    CHECK_EQ(janus_nursery_failures(&n, failures, 3), JANUS_FAILURES_KEPT);
    CHECK_EQ(failures[0].error, result.error);
    CHECK_EQ(failures[0].task, result.task);
    CHECK(failures[1].error != failures[0].error && failures[1].error < -10);
    CHECK(failures[2].site.file != NULL);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    return 0;
}

TEST("later failures can be read, and the result has the first")
{
    rig_all(many_failures, NULL, 3);
}

/* Ids. */

TEST("a record that has had every generation is not used again")
{
    janus_scheduler *scheduler = NULL;
    CHECK_EQ(janus_scheduler_create_with(JANUS_SCHEDULER_OPTIONS(.worker_count = 1), &scheduler),
             JANUS_OK);
    struct jrt_worker *worker = &scheduler->workers[0];
    for (int own = 0; own < 2; own++) {
        struct jrt_task *task = jrt_task_alloc(scheduler, own ? worker : NULL);
        atomic_store(&task->record.generation, UINT32_MAX);
        jrt_task_free(scheduler, own ? worker : NULL, task);
        struct jrt_task *others[200];
        for (int i = 0; i < 200; i++) {
            others[i] = jrt_task_alloc(scheduler, own ? worker : NULL);
            CHECK(others[i] != NULL && others[i] != task);
        }
        for (int i = 0; i < 200; i++) jrt_task_free(scheduler, own ? worker : NULL, others[i]);
    }
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* Many waits. */

static int64_t wait_often(void *argument)
{
    for (int i = 0; i < *(int *)argument; i++) {
        CHECK_EQ(janus_sleep_until(janus_now_ns() + 1), JANUS_OK);
    }
    return 0;
}

TEST("a task may wait a hundred thousand times")
{
    int times = 100000;
    rig_run(1, wait_often, &times, 1);
}

static void stop_it(void *argument) { CHECK_EQ(janus_scheduler_stop(argument), JANUS_STATE); }

static int64_t stop_from_callback(void *argument)
{
    janus_token       *own;
    janus_token_handle handle;
    CHECK_EQ(janus_token_create(&own), JANUS_OK);
    CHECK_EQ(janus_token_on_cancel(own, stop_it, argument, &handle), JANUS_OK);
    CHECK_EQ(janus_token_cancel(own, JANUS_CANCEL_REASON_EXPLICIT), JANUS_OK);
    janus_token_release(own);
    return 0;
}

TEST("a token's callback in one of its tasks cannot stop a scheduler")
{
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
    rig_do(scheduler, stop_from_callback, scheduler);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}
