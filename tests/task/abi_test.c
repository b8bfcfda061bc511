/* SPDX-License-Identifier: MIT */
/* The entry points for generated code, through their header and the shared library. */
#include "rig.h"

#include <janusrt/abi.h>
#include <pthread.h>
#include <stdio.h>

#if JRT_ASAN || JRT_TSAN || defined(__aarch64__)
enum { MANY = 10000 };
#else
enum { MANY = 1000000 };
#endif

static janus_scheduler *create(uint32_t workers)
{
    janus_scheduler *scheduler = janus_scheduler_create(
        (janus_scheduler_config){.worker_count = workers, .max_tasks = JANUS_UNLIMITED});
    CHECK(scheduler != NULL);
    return scheduler;
}

/* Runs `entry` as the only child of a root and returns how it ended. */
static janus_await_result run(janus_scheduler *scheduler, janus_entry *entry, void *argument)
{
    janus_nursery *root = janus_nursery_create_in(scheduler);
    CHECK(root != NULL);
    CHECK(janus_nursery_spawn(root, entry, argument) != NULL);
    janus_await_result result = janus_nursery_await(root);
    CHECK_EQ(janus_nursery_destroy(root), JANUS_OK);
    return result;
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

static int64_t panic_now(void *argument) { janus_panic(argument); }

static int64_t wait_long(void *argument)
{
    (void)argument;
    return janus_sleep(UINT64_C(3600) * 1000000000);
}

static int64_t yield_until_cancelled(void *argument)
{
    (void)argument;
    int status;
    do status = janus_scheduler_yield();
    while (status == 0);
    return status;
}

TEST("a configuration with unknown bits or numbers is refused")
{
    janus_scheduler_config config = {.worker_count = 1};
    config.reserved[1] = 1;
    CHECK(janus_scheduler_create(config) == NULL);
    CHECK(janus_scheduler_create((janus_scheduler_config){.flags = 1u << 31}) == NULL);
    CHECK(janus_scheduler_create((janus_scheduler_config){.worker_count = 5000}) == NULL);
    CHECK(janus_scheduler_create((janus_scheduler_config){.profile = JANUS_PROFILE_CORE}) == NULL);
    CHECK(janus_scheduler_create((janus_scheduler_config){.victims = 99}) == NULL);
    CHECK_EQ(janus_scheduler_shutdown(NULL), JANUS_OK);
}

TEST("several schedulers live side by side")
{
    janus_scheduler *first = create(1), *second = create(2);
    atomic_int       sum = 0;
    CHECK_EQ(run(first, one, &sum).kind, JANUS_RESULT_KIND_SUCCESS);
    CHECK_EQ(run(second, one, &sum).kind, JANUS_RESULT_KIND_SUCCESS);
    CHECK_EQ(janus_scheduler_shutdown(first), JANUS_OK);
    CHECK_EQ(run(second, one, &sum).kind, JANUS_RESULT_KIND_SUCCESS);
    CHECK_EQ(janus_scheduler_shutdown(second), JANUS_OK);
    CHECK_EQ(sum, 3);
}

TEST("a nursery's result says how its children ended")
{
    janus_scheduler   *scheduler = create(2);
    janus_await_result result = run(scheduler, fail, NULL);
    CHECK_EQ(result.kind, JANUS_RESULT_KIND_CHILD_FAILED);
    CHECK_EQ(result.detail, 1);
    CHECK_EQ(result.value, -7);
    result = run(scheduler, panic_now, "no");
    CHECK_EQ(result.kind, JANUS_RESULT_KIND_CHILD_FAILED);
    CHECK_EQ(result.value, INT64_MIN);
    janus_nursery *root = janus_nursery_create_in(scheduler);
    CHECK(janus_nursery_spawn(root, wait_long, NULL) != NULL);
    CHECK_EQ(janus_nursery_propagate_cancel(root), JANUS_OK);
    CHECK_EQ(janus_nursery_propagate_cancel(root), JANUS_STATE);
    result = janus_nursery_await(root);
    CHECK_EQ(result.kind, JANUS_RESULT_KIND_CANCELLED);
    CHECK_EQ(result.detail, JANUS_CANCEL_REASON_PARENT);
    CHECK_EQ(result.value, 0);
    CHECK_EQ(janus_nursery_destroy(root), JANUS_OK);
    CHECK_EQ(janus_scheduler_shutdown(scheduler), JANUS_OK);
}

TEST("shutdown ends tasks that run, wait or are queued, and frees forgotten nurseries")
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        janus_scheduler *scheduler = create(workers);
        for (int i = 0; i < 3; i++) {
            janus_nursery *root = janus_nursery_create_in(scheduler);
            for (int k = 0; k < 50; k++) {
                CHECK(janus_nursery_spawn(root, k % 2 ? wait_long : yield_until_cancelled, NULL) !=
                      NULL);
            }
        }
        CHECK_EQ(janus_scheduler_shutdown(scheduler), JANUS_OK);
    }
}

TEST("outside a task the short forms are refused")
{
    CHECK(!janus_in_task());
    CHECK_EQ(janus_task_current_id(), 0);
    CHECK(janus_task_current() == NULL);
    CHECK_EQ(janus_scheduler_spawn(one, NULL), JANUS_STATE);
    CHECK_EQ(janus_scheduler_yield(), JANUS_STATE);
    CHECK(janus_nursery_create() == NULL);
    CHECK(janus_nursery_create_in(NULL) == NULL);
    CHECK(janus_nursery_spawn(NULL, one, NULL) == NULL);
    CHECK_EQ(janus_nursery_await(NULL).kind, JANUS_INVALID);
    CHECK_EQ(janus_nursery_destroy(NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_propagate_cancel(NULL), JANUS_INVALID);
}

static int64_t same_task(void *argument)
{
    (void)argument;
    janus_task *self = janus_task_current();
    CHECK(janus_in_task());
    CHECK(self != NULL);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(janus_scheduler_yield(), JANUS_OK);
        CHECK(janus_task_current() == self);
        CHECK_EQ(janus_task_current_id(), janus_task_id_of(self));
    }
    return 0;
}

static int64_t short_forms(void *argument)
{
    CHECK_EQ(janus_scheduler_spawn(one, argument), JANUS_NO_NURSERY);
    janus_nursery *outer = janus_nursery_create(), *inner = janus_nursery_create();
    CHECK_EQ(janus_scheduler_spawn(NULL, argument), JANUS_INVALID);
    CHECK_EQ(janus_scheduler_spawn(one, argument), JANUS_OK);
    CHECK_EQ(janus_nursery_destroy(outer), JANUS_STATE); /* not the innermost */
    CHECK_EQ(janus_nursery_await(inner).kind, JANUS_RESULT_KIND_SUCCESS);
    CHECK_EQ(atomic_load((atomic_int *)argument), 1); /* the inner nursery's child */
    CHECK_EQ(janus_scheduler_spawn(one, argument), JANUS_CLOSED);
    CHECK_EQ(janus_nursery_destroy(inner), JANUS_OK);
    for (int i = 0; i < 10; i++) CHECK_EQ(janus_scheduler_spawn(same_task, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_destroy(outer), JANUS_OK); /* joins them */
    janus_nursery own;
    CHECK_EQ(janus_nursery_open(&own, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_destroy(&own), JANUS_STATE); /* the library owns it */
    CHECK_EQ(janus_nursery_end(&own, NULL), JANUS_OK);
    return 0;
}

TEST("the short forms act on the innermost nursery, and a task stays itself")
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        janus_scheduler *scheduler = create(workers);
        atomic_int       sum = 0;
        CHECK_EQ(run(scheduler, short_forms, &sum).kind, JANUS_RESULT_KIND_SUCCESS);
        CHECK_EQ(janus_scheduler_shutdown(scheduler), JANUS_OK);
    }
}

static int64_t yields_cancelled(void *argument)
{
    (void)argument;
    janus_nursery *nursery = janus_nursery_create();
    CHECK(janus_nursery_spawn(nursery, yield_until_cancelled, NULL) != NULL);
    CHECK_EQ(janus_scheduler_yield(), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(nursery), JANUS_OK);
    janus_await_result result = janus_nursery_await(nursery);
    CHECK_EQ(result.kind, JANUS_RESULT_KIND_CANCELLED);
    CHECK_EQ(result.detail, JANUS_CANCEL_REASON_EXPLICIT);
    CHECK(janus_nursery_spawn(nursery, one, NULL) == NULL);
    CHECK_EQ(janus_nursery_destroy(nursery), JANUS_OK);
    return 0;
}

TEST("a yield returns CANCELLED in a cancelled task")
{
    janus_scheduler *scheduler = create(2);
    CHECK_EQ(run(scheduler, yields_cancelled, NULL).kind, JANUS_RESULT_KIND_SUCCESS);
    CHECK_EQ(janus_scheduler_shutdown(scheduler), JANUS_OK);
}

static int64_t panic_inside(void *argument)
{
    (void)janus_nursery_create();
    CHECK(janus_nursery_spawn(janus_nursery_create(), wait_long, NULL) != NULL);
    janus_panic(argument);
}

TEST("a panic ends and frees the nurseries that its task created and did not destroy")
{
    janus_scheduler *scheduler = create(2);
    CHECK_EQ(run(scheduler, panic_inside, "left open").value, INT64_MIN);
    CHECK_EQ(janus_scheduler_shutdown(scheduler), JANUS_OK);
}

static size_t resident_pages(void)
{
    unsigned long size = 0, resident = 0;
    FILE         *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL);
    CHECK_EQ(fscanf(file, "%lu %lu", &size, &resident), 2);
    (void)fclose(file);
    return resident;
}

static int64_t spawn_many(void *argument)
{
    janus_nursery *nursery = janus_nursery_create();
    size_t         before = 0;
    for (int i = 0; i < MANY; i++) {
        CHECK(janus_nursery_spawn(nursery, one, argument) != NULL);
        if (i % 20 == 0) CHECK_EQ(janus_scheduler_yield(), JANUS_OK);
        if (i == MANY / 10) before = resident_pages();
    }
    while (atomic_load((atomic_int *)argument) < MANY) CHECK_EQ(janus_scheduler_yield(), 0);
    if (!JRT_ASAN && !JRT_TSAN) CHECK(resident_pages() < before + 2000);
    CHECK_EQ(janus_nursery_await(nursery).kind, JANUS_RESULT_KIND_SUCCESS);
    CHECK_EQ(janus_nursery_destroy(nursery), JANUS_OK);
    return 0;
}

TEST("a million tasks of one nursery, one after another, leave nothing behind")
{
    janus_scheduler *scheduler = create(1);
    atomic_int       sum = 0;
    CHECK_EQ(run(scheduler, spawn_many, &sum).kind, JANUS_RESULT_KIND_SUCCESS);
    CHECK_EQ(sum, MANY);
    CHECK_EQ(janus_scheduler_shutdown(scheduler), JANUS_OK);
}

/* On a worker's own stack, on a thread of the program, on a helper thread. */

static void *not_in_task(void *argument)
{
    CHECK(!janus_in_task());
    CHECK(janus_task_current() == NULL);
    CHECK_EQ(janus_task_current_id(), 0);
    return argument;
}

static int64_t not_in_call(void *argument) { return not_in_task(argument) == argument; }

static int64_t migrate(void *argument)
{
    atomic_int *moved = argument;
    int         first = rig_place();
    janus_task *self = janus_task_current();
    int64_t     result = 0;
    CHECK(janus_in_task());
    for (long i = 0; i < 100000 && atomic_load(moved) == 0; i++) {
        CHECK_EQ(janus_scheduler_yield(), JANUS_OK);
        CHECK_EQ(janus_blocking(not_in_call, NULL, &result), JANUS_OK); /* any worker goes on */
        CHECK_EQ(result, 1);
        CHECK(janus_in_task());
        CHECK(janus_task_current() == self);
        if (rig_place() != first) atomic_store(moved, 1);
    }
    return 0;
}

static int64_t migrate_crowd(void *argument)
{
    janus_nursery *nursery = janus_nursery_create();
    for (int i = 0; i < 8; i++) CHECK(janus_nursery_spawn(nursery, migrate, argument) != NULL);
    CHECK_EQ(janus_nursery_destroy(nursery), JANUS_OK);
    return 0;
}

TEST("a task finds itself as the current task on every thread, and a plain thread finds none")
{
    janus_scheduler *scheduler = create(2);
    atomic_int       moved = 0;
    pthread_t        thread;
    CHECK_EQ(run(scheduler, migrate_crowd, &moved).kind, JANUS_RESULT_KIND_SUCCESS);
    CHECK_EQ(moved, 1);
    CHECK_EQ(pthread_create(&thread, NULL, not_in_task, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    (void)not_in_task(NULL);
    CHECK_EQ(janus_scheduler_shutdown(scheduler), JANUS_OK);
}

static int64_t propagate_to_empty(void *argument)
{
    for (int way = 0; way < 2; way++) { /* like cancel, except for the reason */
        janus_nursery       *nursery = janus_nursery_create();
        janus_nursery_result result;
        CHECK_EQ(way == 0 ? (int)janus_nursery_cancel(nursery)
                          : janus_nursery_propagate_cancel(nursery),
                 JANUS_OK);
        CHECK(janus_nursery_try_await(nursery, &result));
        CHECK_EQ(result.kind, JANUS_RESULT_KIND_CANCELLED);
        CHECK_EQ(result.reason,
                 way == 0 ? JANUS_CANCEL_REASON_EXPLICIT : JANUS_CANCEL_REASON_PARENT);
        CHECK_EQ(janus_nursery_destroy(nursery), JANUS_OK);
    }
    (void)argument;
    return 0;
}

TEST("an empty nursery is final as soon as a cancel is propagated to it")
{
    janus_scheduler *scheduler = create(1);
    CHECK_EQ(run(scheduler, propagate_to_empty, NULL).kind, JANUS_RESULT_KIND_SUCCESS);
    CHECK_EQ(janus_scheduler_shutdown(scheduler), JANUS_OK);
}

TEST("completed and cancelled are the finished states")
{
    for (int state = JANUS_TASK_STATE_READY; state <= JANUS_TASK_STATE_CANCELLED; state++) {
        bool finished = state == JANUS_TASK_STATE_COMPLETED || state == JANUS_TASK_STATE_CANCELLED;
        CHECK_EQ(janus_task_is_finished((janus_task_state)state), finished);
    }
    CHECK_STR(janus_status_name(JANUS_NO_NURSERY), "JANUS_NO_NURSERY");
}

/* Cancelled tasks that make nurseries until the library ends them, perhaps in that call. */

static int64_t create_for_ever(void *argument)
{
    janus_nursery *outer = janus_nursery_create();
    CHECK(outer != NULL);
    atomic_store((atomic_int *)argument, 1);
    while (janus_yield() == JANUS_OK) continue;
    for (;;) {
        janus_nursery *inner = janus_nursery_create();
        if (inner != NULL) (void)janus_nursery_destroy(inner);
    }
}

static int64_t cancel_creators(void *argument)
{
    (void)argument;
    for (int i = 0; i < 20; i++) {
        atomic_int    begun = 0;
        janus_nursery n;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, create_for_ever, &begun), JANUS_OK);
        CHECK(rig_wait(&begun));
        CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    }
    return 0;
}

/* LeakSanitizer finds nurseries that are lost. */
TEST("a cancelled task that makes nurseries for ever ends, and no nursery is lost")
{
    rig_all(cancel_creators, NULL, 1);
}
