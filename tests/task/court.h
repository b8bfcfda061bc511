/* SPDX-License-Identifier: MIT */
/* Helpers for tests of backends: a :sovereign first task that holds all capabilities, and thread
 * counts. */
#ifndef JANUSRT_TESTS_TASK_COURT_H
#define JANUSRT_TESTS_TASK_COURT_H

#include "town.h"

#include <dirent.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

static const janus_backend court_backends[] = {JANUS_BACKEND_COOPERATIVE, JANUS_BACKEND_BLOCKING,
                                               JANUS_BACKEND_THREADED};
enum { COURT_BACKENDS = sizeof court_backends / sizeof court_backends[0] };

/* The capabilities of the first task. */
struct court {
    janus_authority *authority;
    janus_cap        spawn, budget, executor;
};

static struct court court;

static inline janus_cap court_mint(janus_cap_kind kind, uint32_t rights, janus_cap_limits limits)
{
    janus_cap    cap;
    janus_status status =
        janus_cap_mint(court.authority, 0,
                       JANUS_CAP_GRANT(.kind = kind, .rights = rights, .limits = &limits), &cap);
    CHECK_EQ(status, JANUS_OK);
    return cap;
}

static inline janus_cap court_executor(uint32_t rights, uint64_t set)
{
    return court_mint(JANUS_CAP_KIND_EXECUTOR, rights,
                      (janus_cap_limits){.executor = {.allowed_backends = set}});
}

/* A scheduler for the test's own thread, which holds its authority. */
static inline janus_scheduler *court_open(uint32_t workers)
{
    janus_scheduler *scheduler;
    CHECK_EQ(janus_scheduler_create_with(JANUS_SCHEDULER_OPTIONS(.worker_count = workers,
                                                                 .profile = JANUS_PROFILE_SOVEREIGN,
                                                                 .yield_interval = 100,
                                                                 .turn_ns = town_turn_ns),
                                         &scheduler),
             JANUS_OK);
    CHECK_EQ(janus_authority_take(scheduler, &court.authority), JANUS_OK);
    CHECK_EQ(janus_scheduler_start(scheduler), JANUS_OK);
    return scheduler;
}

struct court_case {
    janus_entry *entry;
    void        *argument;
};

static inline int64_t court_first(void *argument)
{
    struct court_case *first = argument;
    CHECK_EQ(janus_authority_take(NULL, &court.authority), JANUS_OK);
    janus_cap_limits spawn = {
        .spawn = {.max_tasks = 1000,
                  .task_budget = JANUS_BUDGET(.ops = 1000000, .memory = 1 << 20, .syscalls = 10,
                                              .spawn_count = 100)}};
    janus_cap_limits budget = {.budget = {.cpu_budget = 100000000,
                                          .spawn_limit = 10000,
                                          .memory_budget = 1 << 30,
                                          .channel_budget = 1000,
                                          .syscall_budget = 1000}};
    court.spawn = court_mint(JANUS_CAP_KIND_SPAWN, JANUS_RIGHTS_ALL, spawn);
    court.budget = court_mint(JANUS_CAP_KIND_BUDGET, JANUS_RIGHTS_ALL, budget);
    court.executor =
        court_executor(JANUS_RIGHTS_ALL, JANUS_BACKEND_SET(JANUS_BACKEND_COUNT) - 1); /* all */
    return first->entry(first->argument);
}

static inline int court_threads(void)
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
static inline int court_settle(void)
{
    static int quiet;
    uint64_t   limit = janus_now_ns() + town_patience;
    if (quiet == 0) quiet = court_threads(); /* there was none the first time */
    /* Its own thread comes with the first of the scheduler's. */
    if (JRT_TSAN && quiet == 1) quiet = 2;
    while (court_threads() > quiet) {
        CHECK(janus_now_ns() < limit);
        sched_yield();
    }
    return quiet;
}

/* Runs `entry(argument)` as the first task of a :sovereign scheduler. */
static inline void court_run(uint32_t workers, janus_entry *entry, void *argument)
{
    struct court_case first = {entry, argument};
    (void)court_settle();
    janus_status status = janus_run(
        JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .profile = JANUS_PROFILE_SOVEREIGN,
                                .yield_interval = 100, .max_threads = 40, .turn_ns = town_turn_ns),
        court_first, &first, NULL);
    CHECK(status == JANUS_OK || status == JANUS_DEADLOCK); /* some entries want one */
}

/* Opens a nursery of the first task with a backend and further options. */
#define COURT_OPEN(nursery, which, ...)                                                            \
    CHECK_EQ(janus_nursery_open(                                                                   \
                 nursery,                                                                          \
                 JANUS_NURSERY_OPTIONS(.spawn_cap = court.spawn, .executor_cap = court.executor,   \
                                       .backend = JANUS_BACKEND_SET(which), __VA_ARGS__)),         \
             JANUS_OK)

/* Yields until there are this many threads. Threads that end take a moment. */
static inline bool court_threads_become(int count)
{
    uint64_t limit = janus_now_ns() + town_patience;
    while (court_threads() != count && janus_now_ns() < limit) JANUS_IGNORE(janus_yield());
    return court_threads() == count;
}

/* Not pthread_self, which compilers call only once. */
static inline pid_t court_thread(void) { return (pid_t)syscall(SYS_gettid); }

#endif
