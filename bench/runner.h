/* SPDX-License-Identifier: MIT */
/*
 * A contestant in the race of tools/bench.py, in C and C++. It lists the works that it knows, runs
 * one of them, and prints one JSON line for each measurement.
 *
 *     PROGRAM works                        a line for each: its name, its maximum of workers
 *     PROGRAM run WORK WORKERS full|quick  measures
 *
 * A line on stderr that begins with "note: " stands below the table.
 *
 * Smaller values are better, everywhere.
 */
#ifndef JANUSRT_BENCH_RUNNER_H
#define JANUSRT_BENCH_RUNNER_H

#include "bench.h"

#include <stdbool.h>

/* The sizes, the same for all contestants. */
enum {
    RUNNER_BATCH = 1000,
    RUNNER_MILLION = 1000000,
    RUNNER_SKYNET_LEAVES = 1000000,
    RUNNER_SKYNET_WIDTH = 10,
};

struct runner_work {
    const char *name;
    unsigned    workers_max; /* 0: any number */
    void        (*run)(void);
};

/* The request. */
static struct {
    const char *system, *version, *work;
    unsigned    workers;
    bool        quick;
} runner;

static inline int runner_batches(void) { return runner.quick ? 100 : 300; }
static inline int runner_yields(void) { return runner.quick ? 200000 : 1000000; } /* of each task */
static inline int runner_fib(void) { return runner.quick ? 27 : 32; }

/* How many spawns fib(n) takes if every call spawns one of its two: fib(n + 1) - 1. */
static inline double runner_fib_spawns(int n)
{
    double previous = 0, current = 1;
    for (int i = 1; i <= n; i++) {
        double next = previous + current;
        previous = current;
        current = next;
    }
    return current - 1;
}

/* For a program that runs more than one system. */
static inline void runner_say_as(const char *system, const char *version, const char *metric,
                                 const char *unit, double value)
{
    printf("{\"work\":\"%s\",\"system\":\"%s\",\"version\":\"%s\",\"workers\":%u,"
           "\"metric\":\"%s\",\"unit\":\"%s\",\"value\":%.3f}\n",
           runner.work, system, version, runner.workers, metric, unit, value);
    fflush(stdout);
}

static inline void runner_say(const char *metric, const char *unit, double value)
{
    runner_say_as(runner.system, runner.version, metric, unit, value);
}

static inline void runner_need(bool right, const char *what)
{
    if (right) return;
    fprintf(stderr, "%s, %s: %s\n", runner.system, runner.work, what);
    exit(1);
}

/* The memory of the process, VmRSS + VmPTE, in bytes. */
static inline double runner_footprint(void)
{
    char   line[256];
    size_t kib = 0, sum = 0;
    FILE  *file = fopen("/proc/self/status", "r");
    runner_need(file != NULL, "cannot read /proc/self/status");
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "VmRSS: %zu", &kib) == 1) sum += kib;
        if (sscanf(line, "VmPTE: %zu", &kib) == 1) sum += kib;
    }
    fclose(file);
    return (double)sum * 1024;
}

/* Runs some turns, more if they are short. A first one warms up and is not reported. */
static inline void runner_turns(const char *metric, const char *unit, double (*once)(void))
{
    uint64_t enough = runner.quick ? 50000000 : 300000000;
    uint64_t start = bench_now_ns();
    double   value = once();
    if (bench_now_ns() - start > enough) {
        runner_say(metric, unit, value);
        return;
    }
    start = bench_now_ns();
    for (int turn = 0; turn < 40; turn++) {
        runner_say(metric, unit, once());
        uint64_t spent = bench_now_ns() - start;
        if (spent > enough || (turn >= 4 && spent > enough / 3)) return;
    }
}

/* One of several contestants inside one program, which take turns. */
struct runner_side {
    const char *system, *version, *metric;
    double      (*run)(void); /* nanoseconds a unit of work */
};

/* A first turn of each warms up and is not reported. Then come five turns. */
static inline void runner_sides(const struct runner_side *sides, size_t count)
{
    for (int turn = -1; turn < 5; turn++) {
        for (size_t i = 0; i < count; i++) {
            const struct runner_side *side = &sides[i];
            double                    value = side->run();
            if (turn >= 0) runner_say_as(side->system, side->version, side->metric, "ns", value);
        }
    }
}

/* `works` ends with an entry without a name. */
static inline int runner_main(int argc, char **argv, const char *system, const char *version,
                              const struct runner_work *works)
{
    runner.system = system;
    runner.version = version;
    if (argc == 2 && strcmp(argv[1], "works") == 0) {
        for (; works->name != NULL; works++) printf("%s %u\n", works->name, works->workers_max);
        return 0;
    }
    for (; argc == 5 && works->name != NULL; works++) {
        if (strcmp(works->name, argv[2]) != 0) continue;
        runner.work = works->name;
        runner.workers = (unsigned)strtoul(argv[3], NULL, 10);
        runner.quick = strcmp(argv[4], "quick") == 0;
        works->run();
        return 0;
    }
    fprintf(stderr, "usage: %s works | run WORK WORKERS full|quick\n", argv[0]);
    return 2;
}

#endif
