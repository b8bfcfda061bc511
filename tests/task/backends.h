/* SPDX-License-Identifier: MIT */
/* Helpers for tests of backends: a :sovereign first task that holds all capabilities, and thread
 * counts. */
#ifndef JANUSRT_TESTS_TASK_BACKENDS_H
#define JANUSRT_TESTS_TASK_BACKENDS_H

#include "rig.h"

#include <dirent.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

static const janus_backend every_backend[] = {JANUS_BACKEND_COOPERATIVE, JANUS_BACKEND_BLOCKING,
                                              JANUS_BACKEND_THREADED, JANUS_BACKEND_EVENTED};
enum { BACKENDS = sizeof every_backend / sizeof every_backend[0] };

/* The capabilities of the first task. */
struct first_caps {
    janus_authority *authority;
    janus_cap        spawn, budget, executor;
};

static struct first_caps first_caps;

static inline janus_cap backend_mint(janus_cap_kind kind, uint32_t rights, janus_cap_limits limits)
{
    janus_cap    cap;
    janus_status status =
        janus_cap_mint(first_caps.authority, 0,
                       JANUS_CAP_GRANT(.kind = kind, .rights = rights, .limits = &limits), &cap);
    CHECK_EQ(status, JANUS_OK);
    return cap;
}

static inline janus_cap backend_executor(uint32_t rights, uint64_t set)
{
    return backend_mint(JANUS_CAP_KIND_EXECUTOR, rights,
                        (janus_cap_limits){.executor = {.allowed_backends = set}});
}

/* A scheduler for the test's own thread, which holds its authority. */
static inline janus_scheduler *backend_open(uint32_t workers)
{
    janus_scheduler *scheduler;
    CHECK_EQ(janus_scheduler_create_with(JANUS_SCHEDULER_OPTIONS(.worker_count = workers,
                                                                 .profile = JANUS_PROFILE_SOVEREIGN,
                                                                 .yield_interval = 100),
                                         &scheduler),
             JANUS_OK);
    CHECK_EQ(janus_authority_take(scheduler, &first_caps.authority), JANUS_OK);
    CHECK_EQ(janus_scheduler_start(scheduler), JANUS_OK);
    return scheduler;
}

struct backend_case {
    janus_entry *entry;
    void        *argument;
};

static inline int64_t backend_first(void *argument)
{
    struct backend_case *first = argument;
    CHECK_EQ(janus_authority_take(NULL, &first_caps.authority), JANUS_OK);
    janus_cap_limits spawn = {
        .spawn = {.max_tasks = 1000,
                  .task_budget = JANUS_BUDGET(.ops = 1000000, .memory = 1 << 20, .syscalls = 10,
                                              .spawn_count = 100)}};
    janus_cap_limits budget = {.budget = {.cpu_budget = 100000000,
                                          .spawn_limit = 10000,
                                          .memory_budget = 1 << 30,
                                          .channel_budget = 1000,
                                          .syscall_budget = 1000}};
    first_caps.spawn = backend_mint(JANUS_CAP_KIND_SPAWN, JANUS_RIGHTS_ALL, spawn);
    first_caps.budget = backend_mint(JANUS_CAP_KIND_BUDGET, JANUS_RIGHTS_ALL, budget);
    first_caps.executor =
        backend_executor(JANUS_RIGHTS_ALL, JANUS_BACKEND_SET(JANUS_BACKEND_COUNT) - 1); /* all */
    return first->entry(first->argument);
}

static inline int backend_threads(void)
{
    int  count = 0;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

/* Between schedulers: waits until the threads of the last one are gone, and returns how many are
 * left. A joined thread may exist for a moment more. */
static inline int backend_settle(void)
{
    static int quiet;
    uint64_t   limit = janus_now_ns() + rig_patience;
    if (quiet == 0) quiet = backend_threads(); /* there was none the first time */
    /* Its own thread comes with the first of the scheduler's. */
    if (JRT_TSAN && quiet == 1) quiet = 2;
    while (backend_threads() > quiet) {
        CHECK(janus_now_ns() < limit);
        sched_yield();
    }
    return quiet;
}

/* Runs `entry(argument)` as the first task of a :sovereign scheduler. */
static inline void backend_run(uint32_t workers, janus_entry *entry, void *argument)
{
    struct backend_case first = {entry, argument};
    (void)backend_settle();
    janus_status status = janus_run(
        JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .profile = JANUS_PROFILE_SOVEREIGN,
                                .yield_interval = 100, .max_threads = 40),
        backend_first, &first, NULL);
    CHECK(status == JANUS_OK || status == JANUS_DEADLOCK); /* some entries want one */
}

/* Opens a nursery of the first task with a backend and further options. */
#define BACKEND_OPEN(nursery, which, ...)                                                          \
    CHECK_EQ(                                                                                      \
        janus_nursery_open(nursery, JANUS_NURSERY_OPTIONS(.spawn_cap = first_caps.spawn,           \
                                                          .executor_cap = first_caps.executor,     \
                                                          .backend = JANUS_BACKEND_SET(which),     \
                                                          __VA_ARGS__)),                           \
        JANUS_OK)

/* Yields until there are this many threads. Threads that end take a moment. */
static inline bool backend_threads_become(int count)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    /* One look decides: a list of threads that is read while threads end may lack some. */
    while (backend_threads() != count) {
        if (janus_now_ns() >= limit) return false;
        JANUS_IGNORE(janus_yield());
    }
    return true;
}

/* Not pthread_self, which compilers call only once. */
static inline pid_t backend_thread(void) { return (pid_t)syscall(SYS_gettid); }

#endif
