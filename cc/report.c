/* SPDX-License-Identifier: MIT */
/*
 * Prints the lines that the pass has written as tables. A line is a fact, its fields are separated
 * by tabs:
 *
 *     function NAME FILE:LINE marks N folded N stripped N register N quick N
 *     external NAME FILE:LINE unknown|known|wrapped
 *     thread-local NAME FILE:LINE
 *     asm FUNCTION FILE:LINE
 */
#include "cc/cc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS_MAX = 12, NAME_COLUMNS = 30, PLACE_COLUMNS = 22 };

struct fact {
    char  *field[FIELDS_MAX];
    size_t fields;
};

struct facts {
    struct fact *at;
    size_t       count, capacity;
};

static void add_line(struct facts *facts, char *line)
{
    if (facts->count == facts->capacity) {
        facts->capacity = facts->capacity < 64 ? 64 : facts->capacity * 2;
        facts->at = cc_grow(facts->at, facts->capacity, sizeof *facts->at);
    }
    struct fact *fact = &facts->at[facts->count];
    memset(fact, 0, sizeof *fact);
    for (char *at = cc_join("%s", line); at != NULL && fact->fields < FIELDS_MAX;) {
        fact->field[fact->fields++] = strsep(&at, "\t");
    }
    for (size_t i = fact->fields; i < FIELDS_MAX; i++) fact->field[i] = "";
    if (fact->field[0][0] != '\0') facts->count++;
}

static bool read_facts(struct facts *facts, const char *path)
{
    FILE  *file = fopen(path, "re");
    char  *line = NULL;
    size_t bytes = 0;
    if (file == NULL) {
        cc_say("%s: %s", path, strerror(errno));
        return false;
    }
    while (getline(&line, &bytes, file) >= 0) {
        line[strcspn(line, "\n")] = '\0';
        add_line(facts, line);
    }
    bool good = !ferror(file);
    if (!good) cc_say("%s: %s", path, strerror(errno));
    free(line);
    (void)fclose(file);
    return good;
}

/* The number of "marks N" among the fields, or 0. */
static unsigned long long number_of(const struct fact *fact, const char *key)
{
    size_t length = strlen(key);
    for (size_t i = 3; i < fact->fields; i++) {
        if (strncmp(fact->field[i], key, length) == 0 && fact->field[i][length] == ' ') {
            return strtoull(fact->field[i] + length + 1, NULL, 10);
        }
    }
    return 0;
}

static const char *const columns[] = {"marks", "folded", "stripped", "register", "quick"};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

static void print_functions(const struct facts *facts)
{
    unsigned long long sums[COLUMNS] = {0};
    size_t             functions = 0;
    for (size_t i = 0; i < facts->count; i++) {
        const struct fact *fact = &facts->at[i];
        if (strcmp(fact->field[0], "function") != 0) continue;
        if (functions++ == 0) {
            fprintf(stderr, "%-*s %-*s", NAME_COLUMNS, "function", PLACE_COLUMNS, "place");
            for (size_t k = 0; k < COLUMNS; k++) fprintf(stderr, " %8s", columns[k]);
            fputc('\n', stderr);
        }
        fprintf(stderr, "%-*s %-*s", NAME_COLUMNS, fact->field[1], PLACE_COLUMNS, fact->field[2]);
        for (size_t k = 0; k < COLUMNS; k++) {
            unsigned long long number = number_of(fact, columns[k]);
            sums[k] += number;
            fprintf(stderr, " %8llu", number);
        }
        fputc('\n', stderr);
    }
    if (functions < 2) return;
    fprintf(stderr, "%-*s %-*s", NAME_COLUMNS, "all", PLACE_COLUMNS, "");
    for (size_t k = 0; k < COLUMNS; k++) fprintf(stderr, " %8llu", sums[k]);
    fputc('\n', stderr);
}

static bool is_same(const struct fact *fact, const struct fact *other)
{
    return strcmp(fact->field[0], other->field[0]) == 0 &&
           strcmp(fact->field[1], other->field[1]) == 0 &&
           strcmp(fact->field[3], other->field[3]) == 0;
}

/* Each name once, with the place of its first fact. */
static void print_names(const struct facts *facts, const char *kind, const char *class,
                        const char *title)
{
    bool begun = false;
    for (size_t i = 0; i < facts->count; i++) {
        const struct fact *fact = &facts->at[i];
        if (strcmp(fact->field[0], kind) != 0) continue;
        if (class != NULL && strcmp(fact->field[3], class) != 0) continue;
        size_t first = 0, times = 0;
        while (!is_same(&facts->at[first], fact)) first++;
        if (first < i) continue;
        for (size_t k = i; k < facts->count; k++) times += is_same(&facts->at[k], fact);
        if (!begun) fprintf(stderr, "\n%s\n", title);
        begun = true;
        fprintf(stderr, "    %-*s %s", NAME_COLUMNS - 4, fact->field[1], fact->field[2]);
        if (times > 1) fprintf(stderr, " and %zu more", times - 1);
        fputc('\n', stderr);
    }
}

/* Says which line the pass cannot have written. A file without a line is a report of nothing. */
static bool is_report(const struct facts *facts, const char *path)
{
    static const char *const kinds[] = {"function", "external", "thread-local", "asm"};
    enum { KINDS = sizeof kinds / sizeof kinds[0] };
    for (size_t i = 0; i < facts->count; i++) {
        size_t kind = 0;
        while (kind < KINDS && strcmp(facts->at[i].field[0], kinds[kind]) != 0) kind++;
        if (kind < KINDS) continue;
        cc_say("%s is not a report: it has the line \"%.40s\"; --report=FILE writes reports", path,
               facts->at[i].field[0]);
        return false;
    }
    return true;
}

bool cc_report_print(const char *path)
{
    struct facts facts = {.at = NULL};
    if (!read_facts(&facts, path)) return false;
    if (!is_report(&facts, path)) return false;
    print_functions(&facts);
    print_names(&facts, "external", "unknown",
                "unknown functions: each call pays one operation, whatever it does inside");
    print_names(&facts, "external", "wrapped",
                "functions that libjanusrt_cc wraps: they pay for their work, or hold off yields");
    print_names(&facts, "thread-local", NULL,
                "thread-local data: a task that yields may find another thread's copy");
    print_names(&facts, "asm", NULL, "inline assembly: its loops have no checks");
    return true;
}
