/* SPDX-License-Identifier: MIT */
/* Blocks and option macros in C++17: the same words as in C, and exceptions as one more way out. */
#include <atomic>
#include <cstdint>
#include <cstring>
#include <janusrt/janus.h>
#include <stdexcept>

extern "C" {
#include "harness.h"
}

static int64_t fail_seven(void *) { return -7; }

static int64_t add_one(void *argument)
{
    ++*static_cast<std::atomic<int> *>(argument);
    return 0;
}

static int64_t sleep_long(void *argument)
{
    janus_status status = janus_sleep(UINT64_MAX);
    if (status == JANUS_CANCELLED) ++*static_cast<std::atomic<int> *>(argument);
    return status;
}

static int64_t use_blocks(void *argument)
{
    janus_status status = JANUS_STALE;
    uint32_t     most = 1; /* a local that the options mention */
    JANUS_NURSERY(n, status) { CHECK_EQ(janus_spawn(n, fail_seven, nullptr), JANUS_OK); }
    CHECK_EQ(status, JANUS_CHILD_FAILED);
    JANUS_NURSERY(n, status, .max_children = most, .policy = JANUS_POLICY_WAIT_ALL)
    {
        CHECK_EQ(janus_spawn(n, add_one, argument), JANUS_OK);
        break;
    }
    CHECK_EQ(status, JANUS_OK);
    JANUS_NURSERY(n, status, .policy = static_cast<janus_policy>(99))
    CHECK(n == nullptr);
    CHECK_EQ(status, JANUS_INVALID);
    janus_nursery_result result = {};
    JANUS_NURSERY(n, status, .result = &result)
    CHECK_EQ(janus_spawn(n, fail_seven, nullptr), JANUS_OK);
    CHECK_EQ(result.error, -7);
    return 0;
}

static void run(janus_entry *entry, void *argument)
{
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .max_tasks = 50), entry, argument,
                       nullptr),
             JANUS_OK);
}

TEST("a block in C++ has a status and options")
{
    std::atomic<int> count{0};
    run(use_blocks, &count);
    CHECK_EQ(count.load(), 1);
}

static int64_t throw_past(void *argument)
{
    janus_status status = JANUS_OK;
    bool         caught = false;
    try {
        JANUS_NURSERY(n, status)
        {
            CHECK_EQ(janus_spawn(n, sleep_long, argument), JANUS_OK);
            while (janus_yield() == JANUS_OK) throw std::runtime_error("out");
        }
    } catch (const std::runtime_error &) {
        caught = true;
    }
    CHECK(caught);
    return status;
}

TEST("an exception out of a block cancels the children and waits for them")
{
    std::atomic<int> count{0};
    run(throw_past, &count);
    CHECK(count.load() <= 1); /* a child that had not begun was skipped */
}

static int64_t return_past(janus_entry *child, void *argument)
{
    janus_status status = JANUS_OK;
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn(n, child, argument), JANUS_OK);
        if (child != nullptr) return 5;
    }
    return status;
}

static int64_t return_well(void *argument)
{
    CHECK_EQ(return_past(add_one, argument), 5);
    CHECK_EQ(static_cast<std::atomic<int> *>(argument)->load(), 1);
    return 0;
}

static int64_t return_badly(void *argument) { return return_past(fail_seven, argument); }

TEST("a return out of a block in C++ ends the nursery, and panics past a failure")
{
    std::atomic<int> count{0};
    run(return_well, &count);
    CHECK_EQ(janus_run(nullptr, return_badly, &count, nullptr), JANUS_CHILD_FAILED);
}

static int64_t use_every_macro(void *argument)
{
    janus_budget pool = JANUS_BUDGET(.ops = 5000, .syscalls = 0);
    CHECK_EQ(pool.ops, 5000);
    CHECK_EQ(pool.syscalls, 0);
    CHECK_EQ(pool.memory, JANUS_DEFAULT_MEMORY);
    CHECK_EQ(JANUS_BUDGET().ops, JANUS_DEFAULT_OPS);
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.name = "all", .max_children = 3)),
             JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, add_one, argument,
                              JANUS_SPAWN_OPTIONS(.name = "child", .stack_bytes = 65536), nullptr),
             JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, nullptr), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS()), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, nullptr), JANUS_OK);
    janus_channel channel;
    CHECK_EQ(janus_channel_create(4, 1, JANUS_CHANNEL_OPTIONS(.outside = true), &channel),
             JANUS_OK);
    CHECK_EQ(janus_channel_destroy(channel), JANUS_OK);
    return 0;
}

static int64_t answer(void *, void *value)
{
    *static_cast<int *>(value) = 42;
    return 0;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wmissing-field-initializers" /* part of -Wextra */
static int64_t use_calls(void *)
{
    int          value = 0;
    int64_t      number = 0;
    janus_async  first, second;
    janus_status status = JANUS_STALE;
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_async_start(n, &first, answer, nullptr, &value), JANUS_OK);
        CHECK_EQ(janus_async_start_number(n, &second, fail_seven, nullptr), JANUS_OK);
        CHECK_EQ(janus_await(&first, nullptr), JANUS_OK);
        CHECK_EQ(janus_await(&second, &number), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_OK);
    CHECK_EQ(value, 42);
    CHECK_EQ(number, -7);
    return 0;
}
#pragma GCC diagnostic pop

TEST("a call with a value begins in C++ without a warning") { run(use_calls, nullptr); }

TEST("every option macro exists in C++")
{
    std::atomic<int>     count{0};
    janus_explore_result found = {};
    found.struct_bytes = sizeof found;
    run(use_every_macro, &count);
    CHECK_EQ(count.load(), 1);
    CHECK_EQ(janus_explore(JANUS_EXPLORE_OPTIONS(.schedules = 2, .quiet = true), use_every_macro,
                           &count, &found),
             JANUS_OK);
    janus_fiber_pool *pool = nullptr;
    CHECK_EQ(janus_fiber_pool_create(JANUS_FIBER_POOL_OPTIONS(.idle_stack_bytes = 8 << 14), &pool),
             JANUS_OK);
    CHECK_EQ(janus_fiber_pool_destroy(pool), JANUS_OK);
    CHECK(JANUS_FIBER_OPTIONS()->struct_bytes == sizeof(janus_fiber_options));
    CHECK(JANUS_TRACE_OPTIONS() != nullptr && JANUS_AUDIT_OPTIONS() != nullptr);
    CHECK(JANUS_CAP_GRANT() != nullptr && JANUS_CAP_TABLE_OPTIONS() != nullptr);
}
