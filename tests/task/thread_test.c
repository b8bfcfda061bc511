/* SPDX-License-Identifier: MIT */
/*
 * The backend THREADED: a thread for each child, all calls on it, its limits, its end.
 * executor_test.c has what all backends share.
 */
#include "backends.h"
#include "plat/seam.h"
#include "task/worker.h"
#include "work/crew.h"
#include "work/seat.h"

#include <pthread.h>
#include <string.h>

enum { REPEATS = RIG_SLOW ? 20 : 200, CHILDREN = 5 };

static void backend_all(janus_entry *entry)
{
    for (uint32_t workers = 1; workers <= 4; workers *= 2) backend_run(workers, entry, NULL);
}

/* One more for each. */

static int64_t count_threads(void *argument)
{
    struct gate   gate = {.result = 0};
    janus_nursery n;
    int           before = backend_threads();
    (void)argument;
    BACKEND_OPEN(&n, JANUS_BACKEND_THREADED, .name = "counted");
    for (int i = 1; i <= CHILDREN; i++) {
        CHECK_EQ(janus_spawn(&n, at_gate, &gate), JANUS_OK);
        CHECK_EQ(backend_threads(), before + i);
    }
    atomic_store(&gate.open, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK(backend_threads_become(before));
    CHECK_EQ(gate.arrived, CHILDREN);
    return 0;
}

TEST("each living child has one thread, and when all have ended there are as many as before")
{
    RIG_REAL("threads of the system are counted");
    backend_all(count_threads);
}

/* Its own. */

struct home {
    pid_t      thread, inside;
    atomic_int others, elsewhere;
};

static int64_t tell_thread(void *argument)
{
    *(pid_t *)argument = backend_thread();
    CHECK_EQ(janus_sleep(1000), JANUS_OK);
    CHECK_EQ(janus_yield(), JANUS_OK);
    return *(pid_t *)argument == backend_thread() ? 0 : -1;
}

static int64_t note_elsewhere(void *argument)
{
    atomic_store((atomic_int *)argument, backend_thread());
    return 0;
}

/* Deeper than the stack, so that some run on another strand of the same thread. */
static int64_t nest(void *argument)
{
    struct home  *home = argument;
    janus_nursery n;
    if (home->thread != backend_thread()) return -1;
    CHECK_EQ(janus_sleep(1000), JANUS_OK);
    if (home->thread != backend_thread()) return -2;
    if (atomic_fetch_add(&home->others, 1) > 40) return tell_thread(&home->inside);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, nest, home), JANUS_OK);
    if (home->thread != backend_thread()) return -3;
    return janus_nursery_end(&n, NULL);
}

static int64_t stay(void *argument)
{
    struct home  *home = argument;
    janus_nursery n;
    home->thread = backend_thread();
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK_EQ(janus_sleep(1000), JANUS_OK);
        CHECK_EQ(home->thread, backend_thread());
    }
    CHECK_EQ(janus_nursery_open(
                 &n, JANUS_NURSERY_OPTIONS(.backend = JANUS_BACKEND_SET(JANUS_BACKEND_BLOCKING))),
             JANUS_OK);
    CHECK_EQ(janus_spawn(&n, nest, home), JANUS_OK);
    CHECK_EQ(home->thread, backend_thread());
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(home->inside, home->thread);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.backend = JANUS_BACKEND_SET(
                                                              JANUS_BACKEND_COOPERATIVE))),
             JANUS_OK);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(janus_spawn(&n, note_elsewhere, &home->elsewhere), JANUS_OK);
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK(home->elsewhere != home->thread);
    CHECK_EQ(home->thread, backend_thread());
    return 0;
}

static int64_t stay_all(void *argument)
{
    struct home   homes[CHILDREN] = {{0}};
    janus_nursery n;
    (void)argument;
    BACKEND_OPEN(&n, JANUS_BACKEND_THREADED, .name = "homes");
    for (int i = 0; i < CHILDREN; i++) CHECK_EQ(janus_spawn(&n, stay, &homes[i]), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    for (int i = 0; i < CHILDREN; i++) {
        for (int j = 0; j < i; j++) CHECK(homes[i].thread != homes[j].thread);
        CHECK(homes[i].thread != backend_thread());
    }
    return 0;
}

TEST("a child stays on its thread, alone with the children that it runs synchronously")
{
    RIG_REAL("threads of the system are counted");
    backend_run(1, stay_all, NULL);
    backend_run(2, stay_all, NULL);
}

/* Cancelling, deadlocks, timers. */

static int64_t cancel_sleepers(void *argument)
{
    atomic_int    asleep = 0;
    janus_nursery n;
    (void)argument;
    BACKEND_OPEN(&n, JANUS_BACKEND_THREADED, .name = "sleepers");
    for (int i = 0; i < CHILDREN; i++) CHECK_EQ(janus_spawn(&n, sleep_an_hour, &asleep), JANUS_OK);
    while (asleep < CHILDREN) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("a cancel wakes children that sleep on threads of their own") { backend_all(cancel_sleepers); }

static int64_t wait_for_nobody(void *argument) { return janus_waitpoint_wait(argument, "nobody"); }

static int64_t stuck(void *argument)
{
    janus_nursery        n;
    janus_nursery_result result;
    janus_waitpoint      points[2];
    (void)argument;
    BACKEND_OPEN(&n, JANUS_BACKEND_THREADED, .policy = JANUS_POLICY_WAIT_ALL);
    for (int i = 0; i < 2; i++) {
        janus_waitpoint_init(&points[i], JANUS_WAKER_TASKS);
        CHECK_EQ(janus_spawn(&n, wait_for_nobody, &points[i]), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.error, JANUS_DEADLOCK);
    CHECK_EQ(result.errors, 2);
    return 0;
}

TEST("when all threads and all workers wait, a deadlock is reported") { backend_all(stuck); }

static int64_t work_then_open(void *argument)
{
    uint64_t until = janus_now_ns() + 5 * rig_ms;
    while (janus_now_ns() < until) continue; /* meanwhile no worker has anything to do */
    janus_waitpoint_wake(argument);
    return 0;
}

static int64_t not_stuck(void *argument)
{
    janus_nursery   n;
    janus_waitpoint point;
    (void)argument;
    janus_waitpoint_init(&point, JANUS_WAKER_TASKS);
    BACKEND_OPEN(&n, JANUS_BACKEND_THREADED, .name = "busy");
    CHECK_EQ(janus_spawn(&n, work_then_open, &point), JANUS_OK);
    CHECK_EQ(janus_waitpoint_wait(&point, "a thread"), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("while a thread computes, no deadlock is reported") { backend_all(not_stuck); }

static int64_t sleep_and_open(void *argument)
{
    struct gate *gate = argument;
    while (atomic_load(&gate->arrived) == 0) CHECK_EQ(janus_yield(), JANUS_OK);
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_sleep(100000), JANUS_OK);
    atomic_store(&gate->open, 1);
    return 0;
}

static int64_t busy_worker(void *argument)
{
    struct gate   gate = {.result = 0};
    janus_nursery n;
    (void)argument;
    BACKEND_OPEN(&n, JANUS_BACKEND_THREADED, .name = "timers");
    CHECK_EQ(janus_spawn(&n, sleep_and_open, &gate), JANUS_OK);
    CHECK_EQ(keep_worker(&gate), 0); /* the only one */
    return janus_nursery_end(&n, NULL);
}

TEST("a child wakes up in time although the only worker is busy")
{
    backend_run(1, busy_worker, NULL);
}

/* Failures. */

static int64_t overflow(void *argument)
{
    volatile char frame[512];
    frame[0] = 1;
    return argument == (void *)frame ? 0 : overflow((void *)(uintptr_t)frame) + frame[0];
}

static int64_t fail_all(void *argument)
{
    janus_nursery        n;
    janus_nursery_result result;
    (void)argument;
    for (int i = 0; i < 3; i++) {
        BACKEND_OPEN(&n, JANUS_BACKEND_THREADED, .policy = JANUS_POLICY_WAIT_ALL);
        CHECK_EQ(janus_spawn(&n, overflow, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
        CHECK_EQ(result.panic.kind, JANUS_PANIC_KIND_STACK_OVERFLOW);
    }
    return 0;
}

TEST("a stack overflow on a thread ends the child alone")
{
    RIG_OVERFLOWS();
    backend_all(fail_all);
}

static atomic_int mourned;

static void mourn(void *argument)
{
    (void)argument;
    atomic_fetch_add(&mourned, 1);
}

/* pthread_exit is not allowed by ThreadSanitizer on any stack but a thread's own. */
static int64_t end_thread(void *argument)
{
    (void)argument;
    CHECK_EQ(janus_defer(mourn, NULL), JANUS_OK);
    CHECK_EQ(pthread_cancel(pthread_self()), 0);
    pthread_testcancel();
    return 0;
}

/* Below it, on the same strand, lies a task that goes on. */
static int64_t end_thread_inside(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(
                 &n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL,
                                           .backend = JANUS_BACKEND_SET(JANUS_BACKEND_BLOCKING))),
             JANUS_OK);
    CHECK_EQ(janus_spawn(&n, end_thread, argument), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_sleep(1000), JANUS_OK);
    return 0;
}

static void end_threads(int times, bool replaced)
{
    janus_nursery        n;
    janus_nursery_result result;
    for (int i = 0; i < times; i++) {
        mourned = 0;
        if (!replaced) jrt_replacements_refuse(1);
        BACKEND_OPEN(&n, JANUS_BACKEND_THREADED, .policy = JANUS_POLICY_WAIT_ALL);
        CHECK_EQ(janus_spawn(&n, end_thread, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
        CHECK_EQ(result.panic.kind, JANUS_PANIC_KIND_EXPLICIT);
        if (!replaced) jrt_replacements_refuse(1);
        BACKEND_OPEN(&n, JANUS_BACKEND_THREADED, .policy = JANUS_POLICY_WAIT_ALL);
        CHECK_EQ(janus_spawn(&n, end_thread_inside, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, &result), JANUS_OK);
        CHECK_EQ(mourned, 2);
    }
}

static int64_t end_replaced(void *argument)
{
    (void)argument;
    end_threads(RIG_SLOW ? 2 : 10, true);
    return 0;
}

static int64_t end_lost(void *argument)
{
    (void)argument;
    end_threads(RIG_SLOW ? 2 : 10, false);
    return 0;
}

TEST("a child that ends its thread has panicked, on another thread")
{
    RIG_REAL("the one thread cannot be ended");
    backend_all(end_replaced);
}

TEST("if its thread cannot be replaced, the workers run the child's end")
{
    RIG_REAL("the one thread cannot be ended");
    backend_all(end_lost);
}

static int64_t refused_thread(void *argument)
{
    janus_nursery      n;
    atomic_int         ran = 0;
    int                before = backend_threads();
    janus_context_info info = JANUS_CONTEXT_INFO();
    (void)argument;
    BACKEND_OPEN(&n, JANUS_BACKEND_THREADED, .max_children = 1, .max_threads = 1);
    jrt_seats_refuse(2);
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_spawn(&n, count_me, &ran), JANUS_NO_MEMORY);
    CHECK_EQ(backend_threads(), before);
    CHECK_EQ(janus_context_inspect(&info), JANUS_OK);
    CHECK_EQ(info.tasks_alive, 0);
    CHECK_EQ(janus_spawn(&n, count_me, &ran), JANUS_OK); /* nothing was left taken */
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(ran, 1);
    return 0;
}

TEST("a spawn for which there is no thread is refused, and nothing happened")
{
    backend_all(refused_thread);
}

/* Numbers of threads. */

static int64_t fill_up(void *argument)
{
    struct gate   gate = {.result = 0};
    janus_nursery n, inner;
    janus_task_id first;
    char          text[400];
    (void)argument;
    BACKEND_OPEN(&n, JANUS_BACKEND_THREADED, .max_threads = 3);
    CHECK_EQ(janus_spawn_with(&n, nothing, NULL, NULL, &first), JANUS_OK);
    CHECK_EQ(janus_join(&n, first, NULL), JANUS_OK);
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_spawn(&n, at_gate, &gate), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&inner, JANUS_NURSERY_OPTIONS(.executor_cap = first_caps.executor,
                                                              .max_threads = 9)),
             JANUS_OK);
    CHECK_EQ(janus_spawn(&inner, at_gate, &gate), JANUS_OK);
    CHECK_EQ(janus_spawn(&inner, at_gate, &gate), JANUS_FULL); /* of what is around it */
    CHECK(janus_explain(text, sizeof text) > 0);
    CHECK(strstr(text, "3 of 3 used") != NULL);
    CHECK(strstr(text, "max_threads") != NULL);
    CHECK_EQ(janus_spawn(&n, at_gate, &gate), JANUS_FULL);
    atomic_store(&gate.open, 1);
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(gate.arrived, 3);
    return 0;
}

TEST("max_threads children have a thread, here and below, and one more is refused")
{
    backend_all(fill_up);
}

static int64_t fill_scheduler(void *argument)
{
    struct gate   gate = {.result = 0};
    janus_nursery n;
    int           before = backend_threads();
    (void)argument;
    BACKEND_OPEN(&n, JANUS_BACKEND_THREADED, .name = "all");
    for (int i = 0; i < 40; i++) CHECK_EQ(janus_spawn(&n, at_gate, &gate), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, at_gate, &gate), JANUS_FULL);
    CHECK_EQ(backend_threads(), before + 40);
    atomic_store(&gate.open, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a scheduler has no more threads for children than its options allow")
{
    RIG_REAL("threads of the system are counted");
    backend_run(2, fill_scheduler, NULL);
}

/* Inspection. */

static int64_t look(void *argument)
{
    struct gate     gate = {.result = 0};
    janus_nursery   n;
    janus_task_id   id;
    janus_task_info info = JANUS_TASK_INFO();
    char            text[8192] = "";
    int             ends[2];
    (void)argument;
    BACKEND_OPEN(&n, JANUS_BACKEND_THREADED, .name = "seen");
    CHECK_EQ(janus_spawn_with(&n, at_gate, &gate,
                              JANUS_SPAWN_OPTIONS(.name = "it", .priority = JANUS_PRIORITY_LOW),
                              &id),
             JANUS_OK);
    while (atomic_load(&gate.arrived) == 0) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_task_inspect(&n, id, &info), JANUS_OK);
    CHECK_EQ(info.priority, JANUS_PRIORITY_LOW);
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(janus_scheduler_dump(jrt_worker_self()->scheduler, ends[1]), JANUS_OK);
    CHECK(read(ends[0], text, sizeof text - 1) > 0);
    CHECK(strstr(text, "thread ") != NULL);
    close(ends[0]);
    close(ends[1]);
    atomic_store(&gate.open, 1);
    return janus_nursery_end(&n, NULL);
}

TEST("dumps show threads, and a child's priority is what it was given") { backend_all(look); }

static int64_t sum_up(void *argument)
{
    janus_worker_info stats = JANUS_WORKER_INFO();
    janus_nursery     n;
    int               before = backend_threads();
    (void)argument;
    BACKEND_OPEN(&n, JANUS_BACKEND_THREADED, .name = "books");
    for (int i = 0; i < CHILDREN; i++) CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK(backend_threads_become(before));
    CHECK_EQ(janus_worker_inspect(jrt_worker_self()->scheduler, JANUS_ALL_WORKERS, &stats),
             JANUS_OK);
    CHECK_EQ(stats.tasks_executed, CHILDREN + 1);
    return 0;
}

TEST("the scheduler's statistics include the threads of children that have ended")
{
    RIG_REAL("threads of the system are counted");
    backend_run(2, sum_up, NULL);
}

/* Stopping. */

/* A scheduler with a nursery of the test's own thread. */
static janus_scheduler *open_outside(janus_nursery *n)
{
    const uint64_t   threaded = JANUS_BACKEND_SET(JANUS_BACKEND_THREADED);
    janus_scheduler *scheduler = backend_open(1);
    first_caps.spawn =
        backend_mint(JANUS_CAP_KIND_SPAWN, JANUS_RIGHTS_ALL,
                     (janus_cap_limits){.spawn = {.max_tasks = 8, .task_budget = JANUS_BUDGET()}});
    first_caps.executor = backend_executor(JANUS_RIGHTS_ALL, threaded);
    CHECK_EQ(janus_nursery_open_in(scheduler, n,
                                   JANUS_NURSERY_OPTIONS(.spawn_cap = first_caps.spawn,
                                                         .executor_cap = first_caps.executor,
                                                         .backend = threaded)),
             JANUS_OK);
    return scheduler;
}

TEST("stopping a scheduler ends children that wait, or compute, on threads of their own")
{
    RIG_REAL("threads of the system are counted");
    for (int i = 0; i < (RIG_SLOW ? 3 : 20); i++) {
        janus_nursery    n;
        atomic_int       there = 0;
        int              before = backend_settle();
        janus_scheduler *scheduler = open_outside(&n);
        CHECK_EQ(janus_spawn(&n, sleep_an_hour, &there), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, yield_for_ever, &there), JANUS_OK);
        while (i % 2 == 0 && atomic_load(&there) < 2) jrt_thread_yield();
        CHECK_EQ(backend_threads(), before + 3);
        CHECK_EQ(janus_scheduler_stop(scheduler), JANUS_OK);
        CHECK_EQ(backend_settle(), before);
        CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_CLOSED);
        CHECK_EQ(backend_settle(), before);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

static void *stop_it(void *argument)
{
    CHECK_EQ(janus_scheduler_stop(argument), JANUS_OK);
    return NULL;
}

TEST("stopping a scheduler while threads are made for children loses no thread and no child")
{
    RIG_REAL("a thread outside takes part");
    for (int i = 0; i < (RIG_SLOW ? 10 : 100); i++) {
        atomic_int       ran = 0;
        int              started = 0;
        janus_nursery    n;
        janus_scheduler *scheduler = open_outside(&n);
        pthread_t        stopper;
        janus_status     status;
        CHECK_EQ(pthread_create(&stopper, NULL, stop_it, scheduler), 0);
        while ((status = janus_spawn(&n, count_me, &ran)) != JANUS_CLOSED) {
            if (status == JANUS_OK) started++;
            if (status != JANUS_OK) CHECK_EQ(status, JANUS_TASK_LIMIT);
        }
        CHECK_EQ(pthread_join(stopper, NULL), 0);
        CHECK(ran <= started);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

/* All at once. */

struct storm {
    janus_backend backend;
    unsigned      seed;
    int           depth;
    atomic_int   *born;
};

static unsigned dice(unsigned *seed) { return (*seed = *seed * 1103515245u + 12345u) >> 16; }

static int64_t storm(void *argument)
{
    struct storm  here = *(struct storm *)argument;
    struct storm  below[3];
    janus_nursery n;
    unsigned      seed = here.seed;
    janus_task_id id = 0;
    atomic_fetch_add(here.born, 1);
    if (dice(&seed) % 4 == 0) JANUS_IGNORE(janus_sleep(dice(&seed) % 50000));
    if (here.depth == 0) return dice(&seed) % 16 == 0 ? -1 : 0;
    uint64_t     deadline = dice(&seed) % 4 == 0 ? janus_now_ns() + dice(&seed) % 200000 : 0;
    janus_status status = janus_nursery_open(
        &n, JANUS_NURSERY_OPTIONS(.deadline_ns = deadline, .policy = dice(&seed) % 2,
                                  .backend = JANUS_BACKEND_SET(every_backend[dice(&seed) % 3])));
    CHECK_EQ(status, JANUS_OK);
    for (int i = 0; i < 3; i++) {
        below[i] = (struct storm){.seed = dice(&seed), .depth = here.depth - 1, .born = here.born};
        status = janus_spawn_with(&n, storm, &below[i], NULL, i == 0 ? &id : NULL);
        CHECK(status == JANUS_OK || status == JANUS_CLOSED || status == JANUS_FULL ||
              status == JANUS_CANCELLED);
        if (status != JANUS_OK) break;
    }
    if (id != 0 && dice(&seed) % 2 == 0) JANUS_IGNORE(janus_join(&n, id, NULL));
    if (dice(&seed) % 8 == 0) (void)janus_nursery_cancel(&n);
    status = janus_nursery_end(&n, NULL);
    CHECK(status == JANUS_OK || status == JANUS_CHILD_FAILED || status == JANUS_CANCELLED);
    return janus_cancelled() ? JANUS_CANCELLED : 0;
}

static int64_t storms(void *argument)
{
    unsigned *seed = argument;
    int       before = backend_threads();
    for (int i = 0; i < REPEATS; i++) {
        janus_nursery n;
        atomic_int    born = 0;
        struct storm  first = {.seed = (*seed)++, .depth = 3, .born = &born};
        BACKEND_OPEN(&n, every_backend[i % BACKENDS], .policy = JANUS_POLICY_WAIT_ALL);
        CHECK_EQ(janus_spawn(&n, storm, &first), JANUS_OK);
        JANUS_IGNORE(janus_nursery_end(&n, NULL));
        CHECK(born > 0);
    }
    CHECK(backend_threads_become(before));
    return 0;
}

TEST("trees of all backends, with sleeps, deadlines, failures, joins and cancels, end")
{
    unsigned seed = 1;
    for (uint32_t workers = 1; workers <= 4; workers *= 2) backend_run(workers, storms, &seed);
}
