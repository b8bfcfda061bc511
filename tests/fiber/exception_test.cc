/* SPDX-License-Identifier: MIT */
/*
 * C++ exceptions in fibers.
 *
 * What works: throwing and catching within a fiber, with any number of suspends and other fibers'
 * exceptions between try, throw and catch. An exception does not leave its fiber: if no function of
 * the fiber catches it, std::terminate ends the process.
 *
 * Suspending inside a catch handler works too, in any order and with a change of threads. The
 * exceptions being handled go with the fiber (src/fiber/exception.h).
 */
#include <cstdint>
#include <cstring>
#include <exception>
#include <janusrt/janus.h>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/wait.h>

extern "C" {
#include "world.h"
}

static void suspend() { CHECK_EQ(janus_fiber_suspend(nullptr, nullptr), JANUS_OK); }

/* Counts those that are alive. */
struct Guard {
    static int alive;
    Guard() { alive++; }
    Guard(const Guard &) = delete;
    ~Guard() { alive--; }
};
int Guard::alive;

struct Problem : std::runtime_error {
    int owner;
    explicit Problem(int who) : std::runtime_error("problem " + std::to_string(who)), owner(who) {}
};

__attribute__((noinline)) static int fail_below(int depth, int who, bool suspends)
{
    Guard guard;
    if (suspends) suspend();
    if (depth == 0) throw Problem(who);
    return fail_below(depth - 1, who, suspends) + Guard::alive;
}

static int64_t throw_and_catch(void *)
{
    int64_t caught = 0;
    for (int i = 0; i < 100; i++) {
        try {
            fail_below(i % 10, i, false);
        } catch (const Problem &problem) {
            CHECK_EQ(problem.owner, i);
            caught++;
        }
        CHECK_EQ(Guard::alive, 0);
    }
    return caught;
}

TEST("an exception is thrown and caught within a fiber, and what lies between is destroyed")
{
    janus_fiber_pool *pool = pool_new();
    CHECK_EQ(run_once(pool, throw_and_catch, nullptr).result, 100);
    pool_close(pool);
}

/* Suspends after entering the try block, at every depth on the way down, after the handler. */
static int64_t throw_between_suspends(void *argument)
{
    int     who = *static_cast<int *>(argument);
    int64_t caught = 0;
    for (int i = 0; i < 20; i++) {
        try {
            suspend();
            fail_below(5 + who, who, true);
        } catch (const Problem &problem) {
            CHECK_EQ(problem.owner, who);
            CHECK(problem.what() == "problem " + std::to_string(who));
            caught++;
        }
        CHECK_EQ(std::uncaught_exceptions(), 0);
        suspend();
    }
    return caught;
}

TEST("interleaved fibers, each inside its own try block, catch their own exceptions")
{
    janus_fiber_pool *pool = pool_new();
    int               numbers[] = {0, 1};
    janus_fiber      *fibers[2];
    janus_outcome     outcomes[2];
    for (int i = 0; i < 2; i++) {
        fibers[i] = fiber_new(pool, throw_between_suspends, &numbers[i]);
        outcomes[i] = resume(fibers[i], nullptr);
    }
    while (outcomes[0].state == JANUS_FIBER_STATE_SUSPENDED ||
           outcomes[1].state == JANUS_FIBER_STATE_SUSPENDED) {
        for (int i = 0; i < 2; i++) {
            if (outcomes[i].state == JANUS_FIBER_STATE_SUSPENDED)
                outcomes[i] = resume(fibers[i], nullptr);
        }
    }
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(outcomes[i].result, 20);
        CHECK_EQ(janus_fiber_destroy(fibers[i]), JANUS_OK);
    }
    CHECK_EQ(Guard::alive, 0);
    pool_close(pool);
}

static void *resume_to_the_end(void *fiber)
{
    janus_outcome outcome;
    do {
        outcome = resume(static_cast<janus_fiber *>(fiber), nullptr);
    } while (outcome.state == JANUS_FIBER_STATE_SUSPENDED);
    CHECK_EQ(outcome.result, 20);
    return nullptr;
}

TEST("a fiber that entered its try block on one thread throws and catches on another")
{
    janus_fiber_pool *pool = pool_new();
    int               number = 3;
    janus_fiber      *fiber = fiber_new(pool, throw_between_suspends, &number);
    CHECK_EQ(resume(fiber, nullptr).state, JANUS_FIBER_STATE_SUSPENDED);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, nullptr, resume_to_the_end, fiber), 0);
    CHECK_EQ(pthread_join(thread, nullptr), 0);
    CHECK_EQ(janus_fiber_destroy(fiber), JANUS_OK);
    pool_close(pool);
}

static int64_t let_it_out(void *) { return fail_below(3, 9, false); }

static void run_let_it_out(void *)
{
    janus_fiber_pool *pool = pool_new();
    try {
        (void)run_once(pool, let_it_out, nullptr);
    } catch (...) {
        _exit(3); /* it reached the resumer */
    }
}

TEST("an exception that leaves a fiber's entry ends the process, and not in the resumer")
{
    int         status = 0;
    const char *text = harness_child(run_let_it_out, nullptr, &status);
    CHECK(WIFSIGNALED(status));
    CHECK_EQ(WTERMSIG(status), SIGABRT);
    CHECK(strstr(text, "problem 9") != nullptr);
}

/* Suspends in a handler and wants the same exception to be there afterwards. */
static int64_t suspend_in_handler(void *argument)
{
    int who = *static_cast<int *>(argument);
    try {
        try {
            throw Problem(who);
        } catch (const Problem &) {
            suspend();
            throw;
        }
    } catch (const Problem &problem) {
        return problem.owner;
    }
    return -1;
}

static void interleave_handlers(void *)
{
    janus_fiber_pool *pool = pool_new();
    int               numbers[] = {100, 101};
    janus_fiber      *fibers[2];
    for (int i = 0; i < 2; i++) {
        fibers[i] = fiber_new(pool, suspend_in_handler, &numbers[i]);
        CHECK_EQ(resume(fibers[i], nullptr).state, JANUS_FIBER_STATE_SUSPENDED);
    }
    for (int i = 0; i < 2; i++) CHECK_EQ(resume(fibers[i], nullptr).result, numbers[i]);
}

static void *resume_here(void *fiber)
{
    CHECK_EQ(resume(static_cast<janus_fiber *>(fiber), nullptr).result, 100);
    return nullptr;
}

static void move_in_handler(void *)
{
    janus_fiber_pool *pool = pool_new();
    int               number = 100;
    janus_fiber      *fiber = fiber_new(pool, suspend_in_handler, &number);
    CHECK_EQ(resume(fiber, nullptr).state, JANUS_FIBER_STATE_SUSPENDED);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, nullptr, resume_here, fiber), 0);
    CHECK_EQ(pthread_join(thread, nullptr), 0);
}

static void nest_handlers(void *)
{
    janus_fiber_pool *pool = pool_new();
    int               numbers[] = {100, 101};
    janus_fiber      *fibers[2];
    for (int i = 0; i < 2; i++) {
        fibers[i] = fiber_new(pool, suspend_in_handler, &numbers[i]);
        CHECK_EQ(resume(fibers[i], nullptr).state, JANUS_FIBER_STATE_SUSPENDED);
    }
    for (int i = 1; i >= 0; i--) CHECK_EQ(resume(fibers[i], nullptr).result, numbers[i]);
}

TEST("handlers that suspend and end in reverse order keep their exceptions")
{
    int status = 0;
    harness_child(nest_handlers, nullptr, &status);
    CHECK_EQ(status, 0);
}

TEST("handlers that suspend and end in any order keep their exceptions")
{
    int status = 0;
    harness_child(interleave_handlers, nullptr, &status);
    CHECK_EQ(status, 0);
}

TEST("a handler that suspends and goes on on another thread keeps its exception")
{
    int status = 0;
    harness_child(move_in_handler, nullptr, &status);
    CHECK_EQ(status, 0);
}
