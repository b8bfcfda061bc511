/* SPDX-License-Identifier: MIT */
/*
 * C++ tasks that end their thread, or throw without catching. Destructors of the task's own frames
 * run; those of a task that runs it in place do not.
 */
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <janusrt/janus.h>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <unistd.h>

extern "C" {
#include "harness.h"
}

struct Guard {
    static std::atomic<int> alive;
    Guard() { alive++; }
    Guard(const Guard &) = delete;
    ~Guard() { alive--; }
};
std::atomic<int> Guard::alive;

/* By cancelling: ThreadSanitizer's pthread_exit refuses any stack but the thread's own. */
__attribute__((noinline)) static int end_thread_below(int depth)
{
    Guard guard;
    if (depth > 0) return end_thread_below(depth - 1) + Guard::alive;
    try {
        pthread_cancel(pthread_self());
        pthread_testcancel();
    } catch (const std::exception &) {
        CHECK_STR("an exception", "none");
    }
    return 0;
}

static int64_t end_thread(void *)
{
    (void)end_thread_below(5);
    return 0;
}

static int64_t rethrow_end(void *)
{
    try {
        (void)end_thread_below(5);
    } catch (...) { /* the C library demands that it is thrown again */
        CHECK_EQ(Guard::alive, 2);
        throw;
    }
    return 0;
}

static int64_t parent(void *argument)
{
    auto  entry = reinterpret_cast<janus_entry *>(argument);
    Guard guard;
    for (int i = 0; i < 10; i++) {
        janus_nursery        n;
        janus_nursery_result result;
        Guard                inner;
        CHECK_EQ(janus_nursery_open(&n, nullptr), JANUS_OK);
        CHECK_EQ(janus_spawn_at(&n, i % 2 == 0 ? entry : rethrow_end, nullptr, nullptr), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
        CHECK_EQ(result.panic.kind, JANUS_PANIC_KIND_EXPLICIT);
        CHECK_EQ(Guard::alive, 2); /* the owner's, untouched */
        try {
            throw std::runtime_error("as usual");
        } catch (const std::runtime_error &error) {
            CHECK_STR(error.what(), "as usual");
        }
    }
    return 0;
}

static int64_t panic_in_handler(void *)
{
    try {
        throw std::runtime_error("old");
    } catch (...) {
        janus_panic("inside a handler");
    }
    return 0;
}

static int64_t sees_no_exception(void *)
{
    CHECK(std::current_exception() == nullptr);
    CHECK_EQ(std::uncaught_exceptions(), 0);
    return 0;
}

static void run_child(janus_entry *entry, janus_status expected)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, nullptr), JANUS_OK);
    CHECK_EQ(janus_spawn_at(&n, entry, nullptr, nullptr), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, nullptr), expected);
}

static int64_t handles_one(void *)
{
    try {
        throw std::runtime_error("ours");
    } catch (const std::runtime_error &) {
        run_child(sees_no_exception, JANUS_OK);
        run_child(panic_in_handler, JANUS_CHILD_FAILED);
        run_child(sees_no_exception, JANUS_OK);
        try {
            throw;
        } catch (const std::runtime_error &again) {
            CHECK_STR(again.what(), "ours");
        }
    }
    return sees_no_exception(nullptr);
}

TEST("a child does not see its parent's exception, and a panic in a handler leaves none behind")
{
    for (uint32_t workers = 1; workers <= 2; workers++) {
        janus_scheduler_options options{};
        options.struct_bytes = sizeof options;
        options.worker_count = workers;
        CHECK_EQ(janus_run(&options, handles_one, nullptr, nullptr), JANUS_OK);
    }
}

TEST("a task that ends its thread runs its own destructors, not those of the parent below it")
{
    if (getenv("JANUSRT_SEED") != nullptr) SKIP("simulated: the one thread cannot be ended");
    janus_scheduler_options options = {};
    options.struct_bytes = sizeof options;
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        options.worker_count = workers;
        CHECK_EQ(janus_run(&options, parent, reinterpret_cast<void *>(end_thread), nullptr),
                 JANUS_OK);
        CHECK_EQ(Guard::alive, 0);
    }
}

static int64_t throw_it(void *) { throw std::runtime_error("out of the task"); }

static int64_t catch_below(void *)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, nullptr), JANUS_OK);
    CHECK_EQ(janus_spawn_at(&n, throw_it, nullptr, nullptr), JANUS_OK);
    try {
        JANUS_IGNORE(janus_nursery_end(&n, nullptr));
    } catch (...) {
        _exit(77); /* in the middle of the library */
    }
    return 0;
}

static void run_thrower(void *)
{
    janus_scheduler_options options = {};
    options.struct_bytes = sizeof options;
    options.worker_count = 1; /* in place */
    JANUS_IGNORE(janus_run(&options, catch_below, nullptr, nullptr));
}

TEST("an exception that a task does not catch ends the process, even if its parent would catch it")
{
    int         status = 0;
    const char *text = harness_child(run_thrower, nullptr, &status);
    CHECK(status != 0 && status != 77 << 8);
    CHECK(strstr(text, "out of the task") != nullptr);
}
