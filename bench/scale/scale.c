/* SPDX-License-Identifier: MIT */
/*
 * One work on one simulated machine: machine.h.
 *
 *     scale WORK WORKERS SIZE [NAME=VALUE...]   with these costs instead of the usual ones, in ps
 *     scale costs                               lists the costs
 *
 * Prints the ps for each operation. Then it prints what was busy, busiest first: for which share of
 * the time, and how many cores waited for it on average.
 */
#include "machine.h"
#include "works.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <unistd.h>

enum { FINDINGS = 8 };

struct cost {
    const char *name, *meaning;
    uint64_t    usual;
    size_t      at;
};

static const struct cost table[] = {
#define X(name, value, meaning) {#name, meaning, value, offsetof(struct machine_costs, name)},
    MACHINE_COSTS(X)
#undef X
};

enum { COSTS = sizeof table / sizeof *table };

static void set(struct machine_costs *costs, const struct cost *cost, uint64_t value)
{
    memcpy((char *)costs + cost->at, &value, sizeof value);
}

static bool set_by_text(struct machine_costs *costs, const char *text)
{
    for (size_t i = 0; i < COSTS; i++) {
        size_t length = strlen(table[i].name);
        if (strncmp(text, table[i].name, length) != 0 || text[length] != '=') continue;
        set(costs, &table[i], strtoull(text + length + 1, NULL, 10));
        return true;
    }
    return false;
}

static int list(void)
{
    for (size_t i = 0; i < COSTS; i++)
        printf("%s=%llu %s\n", table[i].name, (unsigned long long)table[i].usual, table[i].meaning);
    return 0;
}

/* Addresses decide which cache lines objects share. They are to be the same in each run. */
static void fix_addresses(char **argv)
{
    int now = personality(0xffffffff);
    if (now < 0 || (now & ADDR_NO_RANDOMIZE) != 0) return;
    if (personality((unsigned long)now | ADDR_NO_RANDOMIZE) < 0) return;
    (void)execv("/proc/self/exe", argv);
}

static void begin(void)
{
    machine_know();
    machine_begin();
}

static void run(const struct work *work, unsigned workers, unsigned size,
                const struct machine_costs *costs)
{
    struct machine_finding found[FINDINGS];
    works_begin = begin;
    works_end = machine_end;
    machine_start(costs);
    uint64_t ps = works_time(work, workers, size, 1);
    machine_on = false;
    unsigned count = machine_findings(found, FINDINGS);
    printf("%llu\n", (unsigned long long)ps);
    for (unsigned i = 0; i < count; i++)
        printf("%.3f %.2f %s\n", found[i].busy, found[i].waited, found[i].what);
    (void)fflush(stdout);
    _exit(0); /* the donors still wait */
}

int main(int argc, char **argv)
{
    struct machine_costs costs;
    if (argc == 2 && strcmp(argv[1], "costs") == 0) return list();
    fix_addresses(argv);
    for (size_t i = 0; i < COSTS; i++) set(&costs, &table[i], table[i].usual);
    bool right = argc >= 4;
    for (int i = 4; i < argc; i++) right = right && set_by_text(&costs, argv[i]);
    const struct work *work = works;
    while (right && work->name != NULL && strcmp(work->name, argv[1]) != 0) work++;
    unsigned workers = right ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    if (!right || work->name == NULL || workers == 0 || workers >= MACHINE_CORES) {
        (void)fprintf(stderr, "usage: %s WORK WORKERS SIZE [NAME=VALUE...] | costs\n", argv[0]);
        return 2;
    }
    run(work, workers, (unsigned)strtoul(argv[3], NULL, 10), &costs);
}
