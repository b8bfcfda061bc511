/* SPDX-License-Identifier: MIT */
/*
 * One program under each backend, with the same results. What BLOCKING promises, and the right to
 * choose. Threads are in thread_test.c.
 */
#include "backends.h"

#include "../audit/sink.h"

/* The program. It shows everything that its outcome tells, in an order that no schedule changes. */

enum { NUMBERS = 64 };

struct outcome {
    int64_t numbers[NUMBERS];
    int     count;
};

static void note(struct outcome *outcome, int64_t number)
{
    CHECK(outcome->count < NUMBERS);
    outcome->numbers[outcome->count++] = number;
}

struct fib {
    int64_t n, result;
};

static int64_t fib(void *argument)
{
    struct fib   *f = argument;
    struct fib    left = {f->n - 1, 0}, right = {f->n - 2, 0};
    janus_nursery n;
    f->result = f->n;
    if (f->n < 2) return f->n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, fib, &left), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, fib, &right), JANUS_OK);
    janus_status status = janus_nursery_end(&n, NULL);
    f->result = left.result + right.result;
    return status == JANUS_OK ? f->result : status;
}

static void tree(struct outcome *outcome, janus_backend backend)
{
    janus_nursery n;
    struct fib    f = {6, 0};
    janus_task_id id;
    int64_t       result = 0;
    BACKEND_OPEN(&n, backend, .name = "tree");
    CHECK_EQ(janus_spawn_with(&n, fib, &f, NULL, &id), JANUS_OK);
    note(outcome, janus_join(&n, id, &result));
    note(outcome, result);
    note(outcome, janus_join(&n, id, &result));
    note(outcome, janus_nursery_end(&n, NULL));
    CHECK_EQ(f.result, 8);
}

/* Ends in one of many ways. */
enum way { RETURNS, FAILS, PANICS, SLEEPS, UNWINDS, SPENDS, WAYS };

struct child {
    enum way     way;
    int64_t      told; /* what the call returned */
    int64_t      trace;
    janus_budget budget;
};

static void digit(void *argument)
{
    struct child *child = argument;
    child->trace = child->trace * 10 + 1;
}

static void other_digit(void *argument)
{
    struct child *child = argument;
    child->trace = child->trace * 10 + 2 + (janus_sleep(1000) == JANUS_OK);
}

static int64_t end_so(void *argument)
{
    struct child *child = argument;
    child->budget = janus_budget_get_current();
    CHECK_EQ(janus_defer(digit, child), JANUS_OK);
    CHECK_EQ(janus_defer(other_digit, child), JANUS_OK);
    switch (child->way) {
    case RETURNS: child->told = janus_sleep(100000); return 5;
    case FAILS: child->told = janus_yield(); return -7;
    case PANICS: janus_panic("on purpose");
    case SLEEPS: child->told = janus_sleep(UINT64_C(3600000) * rig_ms); return child->told;
    case UNWINDS: child->told = janus_sleep(UINT64_C(3600000) * rig_ms); return 0;
    case SPENDS: child->told = janus_charge(janus_budget_of(0, 0, 0, 0, 11)); return 0;
    case WAYS: break;
    }
    return 0;
}

static void all_ways(struct outcome *outcome, janus_backend backend)
{
    for (enum way way = RETURNS; way < WAYS; way++) {
        struct child         child = {.way = way, .told = 99};
        uint64_t             wait_ns = 2 * rig_ms;
        janus_nursery        n;
        janus_nursery_result result;
        janus_cancel_mode    mode =
            way == UNWINDS ? JANUS_CANCEL_MODE_UNWIND : JANUS_CANCEL_MODE_RETURN;
        bool         late = way == SLEEPS || way == UNWINDS;
        janus_status status;
        do { /* on a busy machine it may not have begun */
            BACKEND_OPEN(&n, backend, .policy = JANUS_POLICY_WAIT_ALL,
                         .deadline_ns = late ? janus_now_ns() + wait_ns : 0);
            status =
                janus_spawn_with(&n, end_so, &child, JANUS_SPAWN_OPTIONS(.cancel = mode), NULL);
            CHECK(status == JANUS_OK || (late && status == JANUS_CLOSED));
            status = janus_nursery_end(&n, &result);
            wait_ns *= 2;
        } while (late && child.trace == 0);
        note(outcome, status);
        note(outcome, result.kind);
        note(outcome, result.error);
        note(outcome, result.reason);
        note(outcome, result.panic.kind);
        note(outcome, child.told);
        note(outcome, child.trace);
        note(outcome, (int64_t)child.budget.syscalls);
    }
}

static int64_t pay_ten(void *argument)
{
    (void)argument;
    CHECK_EQ(janus_charge(janus_budget_of(10, 0, 0, 0, 2)), JANUS_OK);
    void *block = janus_alloc(100);
    CHECK(block != NULL);
    return 0;
}

static void pool(struct outcome *outcome, janus_backend backend)
{
    janus_nursery           n;
    janus_nursery_pool_info books = JANUS_NURSERY_POOL_INFO();
    janus_budget            all =
        JANUS_BUDGET(.ops = 10000000, .memory = 10 << 20, .spawn_count = 1000, .syscalls = 100);
    BACKEND_OPEN(&n, backend, .budget = &all, .budget_cap = first_caps.budget);
    for (int i = 0; i < 4; i++) CHECK_EQ(janus_spawn(&n, pay_ten, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_pool_inspect(&n, &books), JANUS_OK);
    note(outcome, (int64_t)books.spent.ops);
    note(outcome, (int64_t)books.spent.syscalls);
    note(outcome, (int64_t)books.spent.spawn_count);
    note(outcome, (int64_t)books.left.memory);
    note(outcome, janus_nursery_end(&n, NULL));
}

struct run {
    janus_backend  backend;
    struct outcome outcome;
};

static int64_t program(void *argument)
{
    struct run *run = argument;
    tree(&run->outcome, run->backend);
    all_ways(&run->outcome, run->backend);
    pool(&run->outcome, run->backend);
    return 0;
}

TEST("one program has the same results, failures, cleanups and books under each backend")
{
    struct run first = {.backend = JANUS_BACKEND_COOPERATIVE};
    backend_run(1, program, &first);
    CHECK_EQ(first.outcome.numbers[1], 8);
    CHECK(first.outcome.count > 50);
    for (uint32_t workers = 1; workers <= 4; workers *= 2) {
        for (int i = 0; i < BACKENDS; i++) {
            struct run run = {.backend = every_backend[i]};
            backend_run(workers, program, &run);
            CHECK_EQ(run.outcome.count, first.outcome.count);
            for (int j = 0; j < run.outcome.count; j++) {
                CHECK_EQ(run.outcome.numbers[j], first.outcome.numbers[j]);
            }
        }
    }
}

/* Inheritance. */

static int64_t tell_backend(void *argument)
{
    janus_context_info info = JANUS_CONTEXT_INFO();
    CHECK_EQ(janus_context_inspect(&info), JANUS_OK);
    *(janus_backend *)argument = info.backend;
    return 0;
}

static int64_t tell_below(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
    CHECK_EQ(janus_spawn(&n, tell_backend, argument), JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

static int64_t inherit(void *argument)
{
    (void)argument;
    janus_backend told = JANUS_BACKEND_COUNT;
    (void)tell_backend(&told);
    CHECK_EQ(told, JANUS_BACKEND_COOPERATIVE);
    for (int i = 0; i < BACKENDS; i++) {
        janus_nursery n, inner;
        BACKEND_OPEN(&n, every_backend[i], .policy = JANUS_POLICY_WAIT_ALL);
        (void)tell_backend(&told);
        CHECK_EQ(told, every_backend[i]); /* what this task would start children under */
        told = JANUS_BACKEND_COUNT;
        CHECK_EQ(janus_spawn(&n, tell_below, &told), JANUS_OK);
        CHECK_EQ(janus_nursery_open(&inner, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        CHECK_EQ(told, every_backend[i]);
    }
    return 0;
}

TEST("inner nurseries and their tasks have the backend of the nursery around them")
{
    backend_run(1, inherit, NULL);
    backend_run(2, inherit, NULL);
}

/* Blocking. */

struct steps {
    janus_nursery *nursery;
    int            steps[8];
    int            count;
    int            depth;
};

static void step(struct steps *steps, int number) { steps->steps[steps->count++] = number; }

static int64_t inner_step(void *argument)
{
    step(argument, 2);
    CHECK_EQ(janus_sleep(100000), JANUS_OK);
    step(argument, 3);
    return 0;
}

static int64_t outer_step(void *argument)
{
    struct steps *steps = argument;
    step(steps, 1);
    CHECK_EQ(janus_spawn(steps->nursery, inner_step, steps), JANUS_OK); /* its parent's */
    step(steps, 4);
    CHECK_EQ(janus_yield(), JANUS_OK);
    return 0;
}

static int64_t in_order(void *argument)
{
    janus_nursery n;
    struct steps  steps = {.nursery = &n};
    int           before = backend_threads();
    (void)argument;
    BACKEND_OPEN(&n, JANUS_BACKEND_BLOCKING, .max_children = 2);
    step(&steps, 0);
    CHECK_EQ(janus_spawn(&n, outer_step, &steps), JANUS_OK);
    step(&steps, 5);
    CHECK_EQ(backend_threads(), before);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(steps.count, 6);
    for (int i = 0; i < steps.count; i++) CHECK_EQ(steps.steps[i], i);
    return 0;
}

TEST("a blocking spawn returns when the child and the children that it started have ended")
{
    for (uint32_t workers = 1; workers <= 4; workers *= 2) backend_run(workers, in_order, NULL);
}

static int64_t fail_in_order(void *argument)
{
    janus_nursery        n;
    janus_nursery_result result;
    janus_task_id        id;
    int64_t              value = 0;
    atomic_int           ran = 0;
    (void)argument;
    BACKEND_OPEN(&n, JANUS_BACKEND_BLOCKING, .name = "strict");
    CHECK_EQ(janus_spawn(&n, count_me, &ran), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, minus_seven, NULL, NULL, &id), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, count_me, &ran), JANUS_CLOSED);
    CHECK_EQ(janus_join(&n, id, &value), JANUS_CHILD_FAILED);
    CHECK_EQ(value, -7);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.errors, 1);
    CHECK_EQ(ran, 1);
    return 0;
}

TEST("a blocking spawn of a child that fails succeeds, and the next one finds the nursery closed")
{
    backend_run(1, fail_in_order, NULL);
    backend_run(2, fail_in_order, NULL);
}

/* Deeper than any stack: each level starts the next. */
static int64_t descend(void *argument)
{
    struct steps *steps = argument;
    char          frame[256];
    if (++steps->depth == 300) return 0;
    memset(frame, steps->depth & 0xff, sizeof frame);
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, descend, steps), JANUS_OK);
    CHECK_EQ(steps->depth, 300); /* it has ended */
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    for (size_t i = 1; i < sizeof frame; i++) CHECK(frame[i] == frame[0]);
    return 0;
}

static int64_t deep(void *argument)
{
    struct steps  steps = {.count = 0};
    janus_nursery n;
    int           before = backend_threads();
    (void)argument;
    BACKEND_OPEN(&n, JANUS_BACKEND_BLOCKING, .name = "deep");
    CHECK_EQ(janus_spawn(&n, descend, &steps), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(backend_threads(), before);
    return 0;
}

TEST("a child for which the stack has no room runs on another stack, and its spawner waits")
{
    backend_run(1, deep, NULL);
    backend_run(2, deep, NULL);
}

struct inside {
    janus_nursery nursery;
    atomic_int    ran;
};

static int64_t spawn_inside(void *argument)
{
    struct inside *inside = argument;
    CHECK_EQ(janus_spawn(&inside->nursery, count_me, &inside->ran), JANUS_OK);
    CHECK_EQ(inside->ran, 1);
    return 0;
}

static int64_t from_fiber(void *argument)
{
    struct inside     inside = {.ran = 0};
    janus_fiber_pool *fibers;
    janus_fiber      *fiber;
    janus_outcome     outcome;
    (void)argument;
    BACKEND_OPEN(&inside.nursery, JANUS_BACKEND_BLOCKING, .name = "fiber");
    CHECK_EQ(janus_fiber_pool_create(NULL, &fibers), JANUS_OK);
    CHECK_EQ(janus_fiber_create(fibers, spawn_inside, &inside, NULL, &fiber), JANUS_OK);
    CHECK_EQ(janus_fiber_resume(fiber, NULL, &outcome), JANUS_OK);
    CHECK_EQ(janus_fiber_destroy(fiber), JANUS_OK);
    CHECK_EQ(janus_fiber_pool_destroy(fibers), JANUS_OK);
    return janus_nursery_end(&inside.nursery, NULL);
}

TEST("a blocking spawn from a fiber of the task's own waits for the child, too")
{
    backend_run(1, from_fiber, NULL);
    backend_run(2, from_fiber, NULL);
}

static int64_t spawn_in_call(void *argument)
{
    struct inside *inside = argument;
    CHECK_EQ(janus_task_current_id(), 0); /* on a helper thread */
    CHECK_EQ(janus_spawn(&inside->nursery, count_me, &inside->ran), JANUS_OK);
    return inside->ran;
}

static void spawn_in_callback(void *argument)
{
    struct inside *inside = argument;
    CHECK_EQ(janus_spawn(&inside->nursery, count_me, &inside->ran), JANUS_STATE);
}

static int64_t from_elsewhere(void *argument)
{
    struct inside inside = {.ran = 0};
    int64_t       result = 0;
    janus_token  *token;
    (void)argument;
    BACKEND_OPEN(&inside.nursery, JANUS_BACKEND_BLOCKING, .max_children = 1);
    CHECK_EQ(janus_blocking(spawn_in_call, &inside, &result), JANUS_OK);
    CHECK_EQ(result, 1);
    CHECK_EQ(janus_token_create(&token), JANUS_OK);
    CHECK_EQ(janus_token_on_cancel(token, spawn_in_callback, &inside, NULL), JANUS_OK);
    CHECK_EQ(janus_token_cancel(token, JANUS_CANCEL_REASON_EXPLICIT), JANUS_OK);
    janus_token_release(token);
    CHECK_EQ(inside.ran, 1);
    CHECK_EQ(janus_spawn(&inside.nursery, count_me, &inside.ran), JANUS_OK); /* there is room */
    CHECK_EQ(inside.ran, 2);
    return janus_nursery_end(&inside.nursery, NULL);
}

TEST("a blocking spawn from a blocking call waits, and from a token's callback is refused")
{
    backend_run(1, from_elsewhere, NULL);
    backend_run(2, from_elsewhere, NULL);
}

static int64_t wait_for_spawner(void *argument)
{
    return janus_waitpoint_wait(argument, "what its spawner would do next");
}

static int64_t stuck(void *argument)
{
    janus_nursery        n;
    janus_nursery_result result;
    janus_waitpoint      point;
    (void)argument;
    janus_waitpoint_init(&point, JANUS_WAKER_TASKS);
    BACKEND_OPEN(&n, JANUS_BACKEND_BLOCKING, .name = "stuck");
    CHECK_EQ(janus_spawn(&n, wait_for_spawner, &point), JANUS_OK);
    janus_waitpoint_wake(&point);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.error, JANUS_DEADLOCK);
    return 0;
}

TEST("a blocking child that waits for its spawner is reported as a deadlock")
{
    backend_run(1, stuck, NULL);
    backend_run(2, stuck, NULL);
}

TEST("a plain thread that spawns into a blocking nursery waits for the child")
{
    janus_scheduler *scheduler = backend_open(2);
    first_caps.spawn = backend_mint(
        JANUS_CAP_KIND_SPAWN, JANUS_RIGHTS_ALL,
        (janus_cap_limits){.spawn = {.max_tasks = 1, .task_budget = JANUS_BUDGET(.ops = 1000)}});
    first_caps.executor =
        backend_executor(JANUS_RIGHTS_ALL, JANUS_BACKEND_SET(JANUS_BACKEND_BLOCKING));
    janus_nursery n;
    atomic_int    ran = 0;
    CHECK_EQ(janus_nursery_open_in(
                 scheduler, &n,
                 JANUS_NURSERY_OPTIONS(.spawn_cap = first_caps.spawn,
                                       .executor_cap = first_caps.executor,
                                       .backend = JANUS_BACKEND_SET(JANUS_BACKEND_BLOCKING))),
             JANUS_OK);
    for (int i = 1; i <= 1000; i++) { /* one at a time: more are not allowed */
        CHECK_EQ(janus_spawn(&n, count_me, &ran), JANUS_OK);
        CHECK_EQ(ran, i);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* The right to choose. */

static janus_status try_open(janus_cap executor, uint64_t set, uint32_t max_threads)
{
    janus_nursery n;
    janus_status  status = janus_nursery_open(
        &n, JANUS_NURSERY_OPTIONS(.spawn_cap = first_caps.spawn, .executor_cap = executor,
                                   .backend = set, .max_threads = max_threads));
    if (status == JANUS_OK) CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return status;
}

static int64_t choose(void *argument)
{
    const uint64_t  threaded = JANUS_BACKEND_SET(JANUS_BACKEND_THREADED);
    const uint64_t  blocking = JANUS_BACKEND_SET(JANUS_BACKEND_BLOCKING);
    const janus_cap none = {0};
    janus_cap       select = backend_executor(JANUS_RIGHT_EXECUTOR_SELECT, threaded);
    janus_cap       configure = backend_executor(JANUS_RIGHT_EXECUTOR_CONFIGURE, threaded);
    (void)argument;
    CHECK_EQ(try_open(none, threaded, 0), JANUS_NO_EXECUTOR_CAP);
    CHECK_EQ(try_open(select, threaded, 0), JANUS_OK);
    CHECK_EQ(try_open(select, blocking, 0), JANUS_CAP_LIMIT);
    CHECK_EQ(try_open(configure, threaded, 0), JANUS_CAP_RIGHT);
    CHECK_EQ(try_open(select, threaded, 4), JANUS_CAP_RIGHT); /* takes executor.configure */
    CHECK_EQ(try_open(first_caps.executor, threaded, 4), JANUS_OK);
    CHECK_EQ(try_open(first_caps.executor, blocking, 4), JANUS_INVALID);
    CHECK_EQ(try_open(first_caps.executor, 0, 4), JANUS_INVALID);
    CHECK_EQ(try_open(first_caps.executor, threaded | blocking, 0), JANUS_INVALID);
    CHECK_EQ(try_open(first_caps.executor, JANUS_BACKEND_SET(JANUS_BACKEND_COUNT), 0),
             JANUS_INVALID);
    CHECK_EQ(try_open(first_caps.executor, JANUS_BACKEND_SET(JANUS_BACKEND_EVENTED), 0), JANUS_OK);
    return 0;
}

TEST("a backend is chosen with executor.select, configured with executor.configure, or not at all")
{
    backend_run(1, choose, NULL);
}

static int64_t choose_in_service(void *argument)
{
    (void)argument;
    const janus_cap none = {0};
    first_caps.spawn = none;
    CHECK_EQ(try_open(none, JANUS_BACKEND_SET(JANUS_BACKEND_THREADED), 0), JANUS_CAP_LIMIT);
    CHECK_EQ(try_open(none, JANUS_BACKEND_SET(JANUS_BACKEND_BLOCKING), 0), JANUS_CAP_LIMIT);
    CHECK_EQ(try_open(none, JANUS_BACKEND_SET(JANUS_BACKEND_COOPERATIVE), 0), JANUS_OK);
    return 0;
}

TEST("in :service and :cluster only the cooperative backend can be chosen")
{
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 1), choose_in_service, NULL, NULL),
             JANUS_OK);
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .profile = JANUS_PROFILE_CLUSTER),
                       choose_in_service, NULL, NULL),
             JANUS_OK);
}

TEST("choosing a backend is in the audit log, and so is a refusal")
{
    struct sink         sink = {.room = -1};
    janus_audit        *audit;
    struct backend_case first = {choose, NULL};
    CHECK_EQ(janus_audit_create(JANUS_AUDIT_OPTIONS(.sink = sink_take, .argument = &sink), &audit),
             JANUS_OK);
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .audit = audit,
                                               .profile = JANUS_PROFILE_SOVEREIGN,
                                               .yield_interval = 100),
                       backend_first, &first, NULL),
             JANUS_OK);
    CHECK_EQ(janus_audit_destroy(audit), JANUS_OK);
    int uses = 0, denials = 0;
    for (int i = 0; i < sink.count; i++) {
        if (strstr(sink.lines[i], "executor.") == NULL) continue;
        uses += strstr(sink.lines[i], "\"use\"") != NULL;
        denials += strstr(sink.lines[i], "\"denial\"") != NULL;
    }
    CHECK(uses >= 2);     /* select, configure */
    CHECK_EQ(denials, 4); /* no capability, not in the set, two rights */
    sink_empty(&sink);
}
