/* SPDX-License-Identifier: MIT */
/*
 * What benches share: time, repetition, and two outputs, a line for people and a line for machines.
 *
 * Contenders take turns, so that a slow moment of the machine hits all of them. A bench reports the
 * minimum and the median of all turns for each, and the ratio of minima to the first.
 */
#ifndef JANUSRT_BENCH_H
#define JANUSRT_BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BENCH_TURNS = 15 };

struct contender {
    const char *name;
    double      (*run)(void); /* nanoseconds per unit of work */
    double      turns[BENCH_TURNS];
};

static inline uint64_t bench_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline int bench_compare(const void *left, const void *right)
{
    double l = *(const double *)left;
    double r = *(const double *)right;
    return (l > r) - (l < r);
}

static inline void bench_say(const char *bench, const char *name, double value, const char *unit)
{
    printf("%-40s %12.1f %s\n", name, value, unit);
    printf("{\"bench\":\"%s\",\"name\":\"%s\",\"value\":%.2f,\"unit\":\"%s\"}\n", bench, name,
           value, unit);
}

static inline void bench_race(const char *bench, struct contender *contenders, size_t count)
{
    for (size_t i = 0; i < count; i++) (void)contenders[i].run(); /* warms up */
    for (int turn = 0; turn < BENCH_TURNS; turn++) {
        for (size_t i = 0; i < count; i++) contenders[i].turns[turn] = contenders[i].run();
    }
    for (size_t i = 0; i < count; i++) {
        struct contender *c = &contenders[i];
        qsort(c->turns, BENCH_TURNS, sizeof c->turns[0], bench_compare);
        double ratio = c->turns[0] / contenders[0].turns[0];
        printf("%-40s min %8.2f ns   median %8.2f ns   %6.2f x the first\n", c->name, c->turns[0],
               c->turns[BENCH_TURNS / 2], ratio);
        printf("{\"bench\":\"%s\",\"name\":\"%s\",\"min_ns\":%.3f,\"median_ns\":%.3f,"
               "\"ratio\":%.3f}\n",
               bench, c->name, c->turns[0], c->turns[BENCH_TURNS / 2], ratio);
    }
}

#endif
