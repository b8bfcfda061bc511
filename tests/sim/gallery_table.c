/* SPDX-License-Identifier: MIT */
/*
 * Measures how soon the bugs of the gallery are found and how often ordinary runs show them, and
 * prints the first part of docs/gallery.md:
 *
 *     build/gcc-release/tests/sim/gallery_table
 *
 * Only seeds decide what is found, so that is the same everywhere. How often a bug shows itself was
 * measured on one machine.
 */
#include "gallery/gallery.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    STARTS = 20,       /* seeds to begin from */
    APART = 1000000,   /* distance between them */
    SCHEDULES = 10000, /* beyond this, a bug counts as not found */
    RUNS = 2000,       /* ordinary runs */
};

static const struct gallery_bug *const bugs[] = {
#define X(name) &gallery_##name,
    GALLERY(X)
#undef X
};

static const char *const failings[] = {
    [JANUS_FAILING_NOT] = "-",
    [JANUS_FAILING_EXPECTATION] = "expectation",
    [JANUS_FAILING_RESULT] = "result",
    [JANUS_FAILING_PANIC] = "panic",
    [JANUS_FAILING_DEADLOCK] = "deadlock",
    [JANUS_FAILING_STEPS] = "steps",
    [JANUS_FAILING_TIME] = "time",
    [JANUS_FAILING_CONTRACT] = "contract",
    [JANUS_FAILING_LEAK] = "leak",
    [JANUS_FAILING_STALE] = "stale handle",
};

struct found {
    uint64_t      median, worst, median_ns; /* schedules, schedules, time */
    janus_failing failing;
};

static int compare(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static uint64_t clock_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * JANUS_SECONDS + (uint64_t)now.tv_nsec;
}

/* Sorts, and returns the median of STARTS numbers. */
static uint64_t median_of(uint64_t *numbers)
{
    qsort(numbers, STARTS, sizeof numbers[0], compare);
    return (numbers[STARTS / 2 - 1] + numbers[STARTS / 2] + 1) / 2;
}

static struct found find(const struct gallery_bug *bug, janus_strategy strategy)
{
    uint64_t     counts[STARTS], times[STARTS];
    struct found found = {.failing = JANUS_FAILING_NOT};
    for (uint64_t i = 0; i < STARTS; i++) {
        janus_explore_result result = JANUS_EXPLORE_RESULT();
        uint64_t             begun = clock_ns();
        JANUS_IGNORE(
            janus_explore(JANUS_EXPLORE_OPTIONS(.strategy = strategy, .seed = 1 + i * APART,
                                                .schedules = SCHEDULES, .no_minimising = true,
                                                .quiet = true, .scheduler = gallery_options(bug)),
                          bug->entry, NULL, &result));
        times[i] = clock_ns() - begun;
        counts[i] = result.failing != JANUS_FAILING_NOT ? result.schedules : UINT64_MAX;
        if (result.failing != JANUS_FAILING_NOT) found.failing = result.failing;
        free(result.replay);
    }
    found.median = median_of(counts);
    found.median_ns = median_of(times);
    found.worst = counts[STARTS - 1];
    return found;
}

/* Runs it up to `left` times and exits with the number of failures. If a run kills the
 * process... */
static void run_fast(const struct gallery_bug *bug, uint32_t workers, int left, int out)
{
    for (; left > 0; left--) {
        int64_t      result = 0;
        janus_status status =
            janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers), bug->entry, NULL, &result);
        char how = status == JANUS_OK && result >= 0 ? '.' : 'x';
        if (write(out, &how, 1) != 1) _exit(2);
    }
    _exit(0);
}

/* ...the next process continues. Returns how many of RUNS failed. */
static int count_plainly(const struct gallery_bug *bug, uint32_t workers)
{
    int failed = 0;
    for (int left = RUNS; left > 0;) {
        int  ends[2], how = 0;
        char told;
        if (pipe(ends) != 0) abort();
        pid_t child = fork();
        if (child == 0) {
            if (freopen("/dev/null", "w", stderr) == NULL) _exit(2);
            run_fast(bug, workers, left, ends[1]);
        }
        close(ends[1]);
        while (read(ends[0], &told, 1) == 1) {
            left--;
            failed += told == 'x';
        }
        close(ends[0]);
        (void)waitpid(child, &how, 0);
        if (how != 0) {
            left--;
            failed++;
        }
    }
    return failed;
}

static const char head[] =
    "<!-- SPDX-License-Identifier: MIT -->\n"
    "# The gallery of bugs\n\n"
    "`tests/sim/gallery` has small programs with one concurrency bug each, and the mended\n"
    "version of each. The table shows how many schedules `janus_explore` needs to find a bug,\n"
    "over %d starting seeds, with 4 workers. It also shows the median time of random schedules. "
    "The\n"
    "last columns show how many of %d ordinary runs have the bug. `tests/sim/gallery_test.c`\n"
    "checks that each bug is found within a promised number of schedules and can be replayed. It\n"
    "also checks that mended versions never fail.\n\n"
    "The bugs from new_mailbox on are those of actors and supervisors written by hand. Those from\n"
    "lost_sum on are in loops that make no call: another task runs at their checks, as in code\n"
    "that a compiler counted (`preempt_checks`).\n\n"
    "Written by `gallery_table`.\n\n"
    "| bug | what is wrong | found as | random: median | worst | ms | PCT: median | worst "
    "| ordinary: 2 workers | 4 workers |\n"
    "|---|---|---|---:|---:|---:|---:|---:|---:|---:|\n";

int main(int argc, char **argv)
{
    printf(head, STARTS, RUNS);
    for (size_t i = 0; i < sizeof bugs / sizeof bugs[0]; i++) {
        const struct gallery_bug *bug = bugs[i];
        if (argc > 1 && strcmp(argv[1], bug->name) != 0) continue;
        struct found random = find(bug, JANUS_STRATEGY_RANDOM);
        struct found pct = find(bug, JANUS_STRATEGY_PCT);
        printf("| %s | %s | %s | %lld | %lld | %.1f | %lld | %lld | %d | %d |\n", bug->name,
               bug->text, failings[random.failing], (long long)random.median,
               (long long)random.worst, (double)random.median_ns / (double)JANUS_MS,
               (long long)pct.median, (long long)pct.worst, count_plainly(bug, 2),
               count_plainly(bug, 4));
        fflush(stdout);
    }
    return 0;
}
