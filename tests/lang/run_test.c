/* SPDX-License-Identifier: MIT */
/*
 * The interpreter. A file of run/ begins with what its program prints and its exit status:
 *
 *     ; status 3
 *     ; out: hello
 *     ; err: a part of a line on stderr
 *
 * Each program runs at level Mid and at level Low.
 */
#include "harness.h"
#include "host/prelude.h"
#include "run/run.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 20, OUTPUT_MAX = 1 << 16 };

/* Reads, verifies, lowers and runs a module; the exit status, or 99 with a sentence on stderr. */
static int run_text(const char *text, size_t length, enum qt_level level, bool quiet)
{
    struct jl_arena       arena = {0};
    struct jl_types       types;
    struct jl_names       names = {.arena = &arena};
    struct jl_host_table  host = {0};
    struct jl_source      source;
    struct qt_module      module;
    struct jl_code       *code;
    struct jl_diagnostics diagnostics = {.arena = &arena, .source = &source};
    const char           *why = "";
    int                   status = 99;
    jl_types_init(&types, &arena);
    if (!jl_host_add(&host, &types, &names, jl_prelude_rows, jl_prelude_row_count, &why)) return 98;
    qt_module_init(&module, &arena, &types, &names, &host);
    jl_source_of(&arena, "test.ir", text, length, &source);
    bool right = qt_parse(&module, &source, &diagnostics) && qt_verify(&module, &why);
    if (right && module.level == QT_HIGH) right = qt_insert_budget(&module, &why);
    if (right && level == QT_LOW && module.level == QT_MID) right = qt_lower_tasks(&module, &why);
    if (right && jl_code_make(&module, &code, &why))
        status = jl_code_run(code);
    else if (!quiet)
        jl_diagnostics_print(&diagnostics, JL_DIAGNOSTIC_TEXT, stderr);
    if (status == 99 && !quiet) fprintf(stderr, "%s\n", why);
    jl_arena_free(&arena);
    return status;
}

/* Runs in a child; what it printed comes to `out` and `err`. */
static int run_child(const char *text, size_t length, enum qt_level level, char *out, char *err)
{
    FILE *files[2] = {tmpfile(), tmpfile()};
    char *texts[2] = {out, err};
    int   status;
    CHECK(files[0] != NULL && files[1] != NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        dup2(fileno(files[0]), 1);
        dup2(fileno(files[1]), 2);
        alarm(100);
        setenv("JANUSRT_SEED", "1", 1);
        setenv("JANUSRT_LANG_REPORT", "1", 1);
        int result = run_text(text, length, level, false);
        fflush(NULL);
        _exit(result);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    for (int i = 0; i < 2; i++) {
        rewind(files[i]);
        texts[i][fread(texts[i], 1, OUTPUT_MAX - 1, files[i])] = 0;
        fclose(files[i]);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static char out[OUTPUT_MAX], err[OUTPUT_MAX], expected_out[OUTPUT_MAX];

static void check_program(const char *name, const char *text, size_t length)
{
    int  expected = -1;
    char line[400], expected_err[400] = "";
    expected_out[0] = 0;
    for (const char *at = text; *at == ';'; at = strchr(at, '\n') + 1) {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
        if (strncmp(line, "; status ", 9) == 0) expected = atoi(line + 9);
        if (strncmp(line, "; err: ", 7) == 0) strcpy(expected_err, line + 7);
        if (strncmp(line, "; out: ", 7) == 0) strcat(strcat(expected_out, line + 7), "\n");
    }
    for (int level = QT_MID; level <= QT_LOW; level++) {
        int status = run_child(text, length, (enum qt_level)level, out, err);
        if (status != expected || strcmp(out, expected_out) != 0) printf("# %s: %s\n", name, err);
        CHECK_EQ(status, expected);
        CHECK_STR(out, expected_out);
        if (strstr(err, expected_err) == NULL) CHECK_STR(err, expected_err);
    }
}

static void for_each_program(void (*body)(const char *name, const char *text, size_t length))
{
    char           path[4096];
    struct dirent *entry;
    int            count = 0;
    const char    *folder = getenv("JANUS_LANG_PROGRAMS"); /* other programs to mutate */
    if (folder == NULL) folder = LANG_TESTS "/run";
    DIR *all = opendir(folder);
    CHECK(all != NULL);
    while ((entry = readdir(all)) != NULL) {
        size_t name = strlen(entry->d_name);
        if (name < 3 || strcmp(entry->d_name + name - 3, ".ir") != 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        FILE *in = fopen(path, "rb");
        char *text = calloc(1, FILE_MAX);
        CHECK(in != NULL && text != NULL);
        body(entry->d_name, text, fread(text, 1, FILE_MAX - 1, in));
        fclose(in);
        free(text);
        count++;
    }
    closedir(all);
    CHECK(count > 0);
}

TEST("each program of run/ prints and ends as its head says, at two levels")
{
    const char *file = getenv("JANUS_LANG_FILE"); /* for measuring: one file, in this process */
    if (file != NULL) {
        FILE *in = fopen(file, "rb");
        char *text = calloc(1, FILE_MAX);
        CHECK(in != NULL && text != NULL);
        size_t length = fread(text, 1, FILE_MAX - 1, in);
        exit(run_text(text, length, QT_MID, false));
    }
    for_each_program(check_program);
}

/* What the reader and the verifier accept of a mutated program runs under a small budget. */
static uint64_t random_state = 88172645463325252u;
static uint32_t random_below(uint32_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32) % limit;
}

/* Numbers, names of values and opcodes change places; whole lines come twice or not at all. */
static void mutate(char *text, size_t length)
{
    for (uint32_t i = 1 + random_below(4); i > 0; i--) {
        size_t at = random_below((uint32_t)length), from = random_below((uint32_t)length);
        size_t count = random_below(4) == 0 ? strcspn(text + from, "\n") : 1 + random_below(4);
        if (at + count > length) count = length - at;
        if (from + count > length) count = length - from;
        if (text[at] >= '0' && text[at] <= '9' && random_below(2) == 0)
            text[at] = (char)('0' + random_below(10));
        else
            memmove(text + at, text + from, count);
    }
}

static const janus_budget mutant_budget = {
    .ops = 20000, .memory = 1 << 20, .spawn_count = 100, .channel_ops = 1000, .syscalls = 100};

/* Runs in a child. What it printed comes to `to`, behind its status. */
static int run_mutant(const char *copy, size_t length, enum qt_level level, bool plain, char *to)
{
    FILE *messages = tmpfile();
    int   status;
    CHECK(messages != NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        dup2(fileno(messages), 1);
        dup2(fileno(messages), 2);
        alarm(60);
        setenv("JANUSRT_SEED", "1", 1);
        setenv("JANUSRT_LANG_REPORT", "1", 1);
        jl_run_plain = plain;
        jl_set_budget(&mutant_budget);
        int result = run_text(copy, length, level, true);
        fflush(NULL);
        _exit(result);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    rewind(messages);
    int head = sprintf(to, "status %d\n", status);
    to[head + (int)fread(to + head, 1, OUTPUT_MAX - 100, messages)] = 0;
    fclose(messages);
    return status;
}

static void keep_mutant(const char *name, const char *copy, size_t length)
{
    char path[100];
    snprintf(path, sizeof path, "/tmp/janus-mutant-%d.ir", (int)getpid());
    FILE *keep = fopen(path, "w");
    if (keep != NULL) fwrite(copy, 1, length, keep), fclose(keep);
    printf("# %s: see %s\n# %s\n", name, path, out);
}

/* A signal, or a sanitizer's report. */
static bool is_crash(int status, const char *text)
{
    return !WIFEXITED(status) || strstr(text, "Sanitizer") != NULL ||
           strstr(text, "runtime error") != NULL;
}

static uint32_t ran, refused;

static void mutate_program(const char *name, const char *text, size_t length)
{
    const char *wanted = getenv("JANUS_LANG_MUTATIONS");
    int         rounds = wanted != NULL ? atoi(wanted) : 40, status;
    char       *copy = malloc(length + 1);
    CHECK(copy != NULL);
    if (strstr(text, "profile core") != NULL) rounds = 0; /* nothing bounds them */
    for (int i = 0; i < rounds; i++) {
        memcpy(copy, text, length + 1);
        mutate(copy, length);
        enum qt_level level = random_below(2) == 0 ? QT_MID : QT_LOW;
        status = run_mutant(copy, length, level, false, out);
        bool wrong = is_crash(status, out);
        if (!wrong && WEXITSTATUS(status) != 99) {
            run_mutant(copy, length, level, true, err);
            wrong = strcmp(out, err) != 0;
        }
        if (wrong) keep_mutant(name, copy, length);
        if (wrong) CHECK_STR(out, err);
        CHECK(!wrong);
        *(WEXITSTATUS(status) == 99 ? &refused : &ran) += 1;
    }
    free(copy);
}

TEST("mutated programs that verify do not crash, and do the same in plain code")
{
    for_each_program(mutate_program);
    CHECK(ran > 0);
    CHECK(refused > 0);
}
