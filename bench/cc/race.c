/* SPDX-License-Identifier: MIT */
/*
 * Runs builds of one kernel in turn, in one process: A B C C B A. race.py compiles the builds and
 * defines RACE_BUILDS, a list X(name) X(name). The first build is the one to compare with.
 *
 * Prints for each build its name, the minimum in ms, the ratio of minima, the median of the ratios
 * of neighbours, and the ops.
 */
#include "counting.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define X(name) uint64_t kernel_##name(void);
RACE_BUILDS
#undef X

enum { ROUNDS_MAX = 400, BUILDS_MAX = 32 };

struct build {
    const char *name;
    uint64_t    (*run)(void);
    uint64_t    ops;
    double      ms[ROUNDS_MAX];
};

static struct build builds[BUILDS_MAX] = {
#define X(name) {#name, kernel_##name, 0, {0}},
    RACE_BUILDS
#undef X
};

static double now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double minimum(const double *values, int count)
{
    double least = values[0];
    for (int i = 1; i < count; i++)
        if (values[i] < least) least = values[i];
    return least;
}

int main(int count, char **arguments)
{
    int rounds = count > 1 ? atoi(arguments[1]) : 15, n = 0;
    if (rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "race: 1 to %d rounds, not %s\n", ROUNDS_MAX, arguments[1]);
        return 2;
    }
    uint64_t expected = 0;
    for (; builds[n].run != NULL; n++) {
        uint64_t before = count_spent(), result = builds[n].run();
        builds[n].ops = count_spent() - before;
        if (n == 0) expected = result;
        if (result != expected) {
            fprintf(stderr, "race: %s computed something else\n", builds[n].name);
            return 1;
        }
    }
    for (int round = 0; round < rounds; round++)
        for (int k = 0; k < n; k++) {
            struct build *one = &builds[round % 2 ? n - 1 - k : k];
            double        begin = now_ms();
            one->run();
            one->ms[round] = now_ms() - begin;
        }
    for (int i = 0; i < n; i++) {
        double ratios[ROUNDS_MAX], least = minimum(builds[i].ms, rounds);
        for (int r = 0; r < rounds; r++) ratios[r] = builds[i].ms[r] / builds[0].ms[r];
        qsort(ratios, (size_t)rounds, sizeof ratios[0], compare);
        printf("%s %.3f %.4f %.4f %llu\n", builds[i].name, least,
               least / minimum(builds[0].ms, rounds), ratios[rounds / 2],
               (unsigned long long)builds[i].ops);
    }
    return 0;
}
