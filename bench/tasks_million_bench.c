/* SPDX-License-Identifier: MIT */
/*
 * What do 1,000,000 sleeping tasks (quick: 100,000) cost, in memory and in time?
 *
 * Timed: starting all and letting each run until it sleeps (create+block). Cancelling all, the call
 *        alone and until the last has ended. Waking all by the clock. On stacks of 256 KiB and of
 *        16 KiB by the scheduler's default, and of 16 KiB by the nursery's options. Memory is VmRSS
 *        + VmPTE less the value before, for tasks that never ran and for waiting tasks. Every task
 *        counts when it starts and when it ends. First the bench touches as many pages, equally far
 *        apart: the kernel's cost alone.
 * Moves it: the first touch of a page (about 2 us), guards, page tables. Then the heap of timers
 *        and the nursery's lock, which every task takes.
 * Expect: 5 KiB for a waiting task with 256 KiB of stack, 4.4 KiB with 16 KiB, 256 bytes for a task
 *        that never ran. 2.2 us to create and block. The same for each of 100,000 and of 1,000,000.
 */
#include "runner.h"

#include <janusrt/janus.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const uint64_t far = UINT64_MAX / 2;

static struct {
    int         tasks;
    size_t      by_default, by_nursery; /* bytes of stack; 0: the default */
    const char *stack;
    uint64_t    deadline;     /* they sleep until then */
    uint64_t    create_block; /* the total time */
} crowd;

static _Atomic(int) started, ended, cancelled;

static void tell(const char *what, const char *unit, double all)
{
    char metric[128];
    snprintf(metric, sizeof metric, "%s, %s, %d tasks", what, crowd.stack, crowd.tasks);
    runner_say(metric, unit, all / (double)crowd.tasks);
}

static int64_t sleeper(void *argument)
{
    (void)argument;
    atomic_fetch_add_explicit(&started, 1, memory_order_relaxed);
    janus_status status = janus_sleep_until(crowd.deadline);
    if (status == JANUS_CANCELLED) atomic_fetch_add_explicit(&cancelled, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&ended, 1, memory_order_relaxed);
    return status;
}

static void open_and_spawn(janus_nursery *n)
{
    janus_status status =
        janus_nursery_open(n, JANUS_NURSERY_OPTIONS(.stack_bytes = crowd.by_nursery));
    for (int i = 0; i < crowd.tasks && status == JANUS_OK; i++) {
        status = janus_spawn(n, sleeper, NULL);
    }
    runner_need(status == JANUS_OK, janus_status_text(status));
}

static void until_all_started(void)
{
    while (atomic_load(&started) < crowd.tasks) {
        runner_need(janus_yield() == JANUS_OK, "cannot yield");
    }
    JANUS_IGNORE(janus_yield()); /* the last one is off the CPU too */
}

static int64_t cancel_all(void *argument)
{
    (void)argument;
    janus_nursery n;
    double        base = runner_footprint();
    uint64_t      start = bench_now_ns();
    open_and_spawn(&n);
    double unstarted = runner_footprint();
    if (runner.workers == 1) tell("memory, never ran", "B", unstarted - base);
    until_all_started();
    crowd.create_block = bench_now_ns() - start;
    tell("create and block", "ns", (double)crowd.create_block);
    tell("memory, waiting", "B", runner_footprint() - base);
    start = bench_now_ns();
    (void)janus_nursery_cancel(&n);
    tell("cancel, the call", "ns", (double)(bench_now_ns() - start));
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    tell("cancel, until all have ended", "ns", (double)(bench_now_ns() - start));
    runner_need(atomic_load(&ended) == crowd.tasks, "not all tasks ended");
    runner_need(atomic_load(&cancelled) == crowd.tasks, "not all tasks were cancelled");
    return 0;
}

/* Again, on warm stacks. The deadline leaves twice the time of the cold start. */
static int64_t wake_all(void *argument)
{
    (void)argument;
    janus_nursery n;
    uint64_t      start = bench_now_ns();
    crowd.deadline = start + 2 * crowd.create_block;
    open_and_spawn(&n);
    until_all_started();
    tell("create and block again, warm", "ns", (double)(bench_now_ns() - start));
    runner_need(atomic_load(&ended) == 0, "some woke before all slept");
    while (bench_now_ns() < crowd.deadline) continue;
    start = bench_now_ns();
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    tell("woken by the clock, until all have ended", "ns", (double)(bench_now_ns() - start));
    runner_need(atomic_load(&ended) == crowd.tasks, "not all tasks ended");
    runner_need(atomic_load(&cancelled) == 0, "some were cancelled");
    return 0;
}

static int64_t both(void *argument)
{
    crowd.deadline = far;
    (void)cancel_all(argument);
    started = ended = cancelled = 0;
    return wake_all(argument);
}

/* The kernel's cost of the first touch of as many pages, as far apart as stacks. */
static void touch_pages(void)
{
    size_t spacing = crowd.by_default + (size_t)16 * 1024;
    size_t bytes = spacing * (size_t)crowd.tasks;
    char  *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    runner_need(base != MAP_FAILED, "no address space");
    (void)madvise(base, bytes, MADV_NOHUGEPAGE);
    uint64_t start = bench_now_ns();
    for (size_t at = spacing; at <= bytes; at += spacing) ((volatile char *)base)[at - 8] = 1;
    tell("touching a page, the kernel alone", "ns", (double)(bench_now_ns() - start));
    munmap(base, bytes);
}

/* In a process of its own, so that memory starts from nothing. */
static void run_crowd(const char *stack, size_t by_default, size_t by_nursery)
{
    pid_t child = fork();
    int   status = 0;
    runner_need(child >= 0, "cannot fork");
    if (child == 0) {
        crowd.tasks = runner.quick ? 100000 : 1000000;
        crowd.stack = stack;
        crowd.by_default = by_default;
        crowd.by_nursery = by_nursery;
        touch_pages();
        janus_status ran = janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = runner.workers,
                                                             .max_tasks = JANUS_UNLIMITED,
                                                             .stack_bytes = crowd.by_default),
                                     both, NULL, NULL);
        runner_need(ran == JANUS_OK, janus_status_text(ran));
        exit(0);
    }
    runner_need(waitpid(child, &status, 0) == child && status == 0, "a run failed");
}

static void run_sleepers(void)
{
    run_crowd("256 KiB", (size_t)256 * 1024, 0);
    run_crowd("16 KiB", (size_t)16 * 1024, 0);
    run_crowd("16 KiB by the nursery", (size_t)256 * 1024, (size_t)16 * 1024);
}

int main(int argc, char **argv)
{
    static const struct runner_work works[] = {{"sleepers", 0, run_sleepers}, {NULL, 0, NULL}};
    return runner_main(argc, argv, "janusrt", JANUS_VERSION_STRING, works);
}
