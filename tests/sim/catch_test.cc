/* SPDX-License-Identifier: MIT */
/* Exploring in C++: a schedule that is given up while exceptions are handled takes them with it. */
#include <cstdint>
#include <cstring>
#include <exception>
#include <janusrt/janus.h>
#include <stdexcept>

extern "C" {
#include "harness.h"
}

static int64_t fail_in_handler(void *)
{
    try {
        throw std::runtime_error("inner");
    } catch (const std::exception &) {
        JANUS_IGNORE(janus_sleep(1000));
        JANUS_EXPECT(false);
    }
    return 0;
}

static int64_t wait_in_handler(void *)
{
    try {
        throw std::runtime_error("outer");
    } catch (const std::exception &) {
        janus_nursery nursery;
        if (janus_nursery_open(&nursery, nullptr) != JANUS_OK) return 0;
        JANUS_IGNORE(janus_spawn(&nursery, fail_in_handler, nullptr));
        JANUS_IGNORE(janus_nursery_end(&nursery, nullptr));
    }
    return 0;
}

static void explore(janus_entry *entry)
{
    janus_explore_options options = {};
    options.struct_bytes = sizeof options;
    options.quiet = true;
    CHECK_EQ(janus_explore(&options, entry, nullptr, nullptr), JANUS_CHILD_FAILED);
}

TEST("what a thread handles is the same before and after a schedule that failed in a handler")
{
    int caught = 0;
    explore(fail_in_handler);
    explore(wait_in_handler);
    CHECK(std::current_exception() == nullptr);
    try {
        throw 5;
    } catch (int) {
        explore(wait_in_handler);
        try {
            throw;
        } catch (int value) {
            caught = value;
        } catch (const std::exception &) {
            caught = -1;
        }
    }
    CHECK_EQ(caught, 5);
    CHECK(std::current_exception() == nullptr);
}
