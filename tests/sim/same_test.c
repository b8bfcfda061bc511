/* SPDX-License-Identifier: MIT */
/*
 * Equal input, seed and number of workers give the same execution, in every run and in every build.
 * same.expected has the numbers of the release build. SAME_WRITE=FILE writes them anew.
 */
#include "fair.h"

#include <stdio.h>
#include <stdlib.h>

enum { RUNS = JRT_TSAN ? 3 : RIG_SLOW ? 10 : 100 };

static const uint32_t counts[] = {1, 2, 4, 8};
enum { COUNTS = sizeof counts / sizeof counts[0], SEEDS = 3 };

static const struct same_row {
    uint32_t workers;
    uint64_t seed, seen, dived;
} rows[] = {
#include "same.expected"
};

/* SCHED:1.1.1b, SCHED:9.1.1. */
TEST("the same seed gives the same execution, a hundred times, for 1, 2, 4 and 8 workers")
{
    for (int i = 0; i < COUNTS; i++) {
        uint64_t seen = fair_run(counts[i], 7);
        for (int run = 1; run < RUNS; run++) CHECK_EQ(fair_run(counts[i], 7), seen);
    }
}

/* SCHED:7.3.2, SCHED:9.2.1/rng, SCHED:9.3.1. */
TEST("another seed, and another number of workers, give another execution")
{
    uint64_t seen[COUNTS * SEEDS];
    for (int i = 0; i < COUNTS * SEEDS; i++) {
        seen[i] = fair_run(counts[i / SEEDS], (uint64_t)(i % SEEDS) + 1);
        for (int j = 0; j < i; j++) CHECK(seen[i] != seen[j]);
    }
}

static void write_rows(const char *path)
{
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    fprintf(file, "/* SPDX-License-Identifier: MIT */\n");
    for (int i = 0; i < COUNTS * SEEDS; i++) {
        uint32_t workers = counts[i / SEEDS];
        uint64_t seed = (uint64_t)(i % SEEDS) + 1;
        fprintf(file, "{%u, %llu, UINT64_C(0x%016llx), UINT64_C(0x%016llx)},\n", workers,
                (unsigned long long)seed, (unsigned long long)fair_run(workers, seed),
                (unsigned long long)fair_dive(workers, seed));
    }
    CHECK_EQ(fclose(file), 0);
}

/* Not in the order of the table: earlier runs must not matter. */
TEST("every build gives the executions of the release build")
{
    if (getenv("SAME_WRITE") != NULL) {
        write_rows(getenv("SAME_WRITE"));
        SKIP("same.expected was written, not compared with");
    }
    for (size_t i = sizeof rows / sizeof rows[0]; i > 0; i--) {
        const struct same_row *row = &rows[i - 1];
        CHECK_EQ(fair_run(row->workers, row->seed), row->seen);
        CHECK_EQ(fair_dive(row->workers, row->seed), row->dived);
    }
}
