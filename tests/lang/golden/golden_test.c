/* SPDX-License-Identifier: MIT */
/*
 * Lowering. Each NAME.jan of this folder gives NAME.high.ir, NAME.mid.ir and NAME.low.ir, byte for
 * byte, and each of them reads back to the same text. JANUSRT_UPDATE_GOLDEN=1 writes them anew.
 */
#include "harness.h"
#include "host/prelude.h"
#include "lower/lower.h"
#include "meaning/meaning.h"
#include "syntax/syntax.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct program {
    struct jl_arena       arena;
    struct jl_names       names;
    struct jl_types       types;
    struct jl_host_table  host;
    struct jl_source      source;
    struct jl_diagnostics diagnostics;
    struct qt_module      module;
    const char           *why;
};

static void open_program(struct program *p, const char *path, const char *text, size_t length)
{
    memset(p, 0, sizeof *p);
    p->names.arena = &p->arena;
    jl_types_init(&p->types, &p->arena);
    CHECK(jl_host_add(&p->host, &p->types, &p->names, jl_prelude_rows, jl_prelude_row_count,
                      &p->why));
    jl_source_of(&p->arena, path, text, length, &p->source);
    p->diagnostics = (struct jl_diagnostics){.arena = &p->arena, .source = &p->source};
    qt_module_init(&p->module, &p->arena, &p->types, &p->names, &p->host);
}

static void checked(bool is_right, const struct program *p)
{
    if (!is_right) puts(p->why);
    CHECK(is_right);
}

static void lower(struct program *p, const char *path, const char *text, size_t length)
{
    open_program(p, path, text, length);
    struct jl_unit         *unit = jl_parse(&p->source, &p->arena, &p->names, &p->diagnostics);
    struct jl_check_options options = {.host = &p->host};
    unit->types = &p->types;
    jl_check(unit, &options, &p->diagnostics);
    if (p->diagnostics.errors) jl_diagnostics_print(&p->diagnostics, JL_DIAGNOSTIC_TEXT, stdout);
    CHECK_EQ(p->diagnostics.errors, 0);
    jl_lower(unit, &p->module);
    checked(qt_verify(&p->module, &p->why), p);
}

static char *printed(const struct program *p)
{
    char  *text = NULL;
    size_t length;
    FILE  *out = open_memstream(&text, &length);
    CHECK(out != NULL);
    qt_print(&p->module, false, out);
    fclose(out);
    return text;
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);
    CHECK(text != NULL);
    if (file) {
        CHECK(fread(text, 1, (1 << 20) - 1, file) < (1 << 20) - 1);
        fclose(file);
    }
    return text;
}

static const char head[] = "; SPDX-License-Identifier: MIT\n";

static void compare(const char *path, const char *text)
{
    if (getenv("JANUSRT_UPDATE_GOLDEN")) {
        FILE *file = fopen(path, "wb");
        CHECK(file != NULL);
        fputs(head, file);
        fputs(text, file);
        fclose(file);
    }
    char  *wanted = read_file(path);
    size_t length = strlen(head);
    bool   is_same = !strncmp(wanted, head, length) && !strcmp(wanted + length, text);
    if (!is_same) printf("%s differs; the text is now:\n%s%s", path, head, text);
    CHECK(is_same);
    free(wanted);
}

static void read_back(const char *path, const char *text)
{
    struct program p;
    open_program(&p, path, text, strlen(text));
    bool is_right = qt_parse(&p.module, &p.source, &p.diagnostics);
    if (!is_right) jl_diagnostics_print(&p.diagnostics, JL_DIAGNOSTIC_TEXT, stdout);
    CHECK(is_right);
    checked(qt_verify(&p.module, &p.why), &p);
    char *again = printed(&p);
    CHECK(!strcmp(again, text));
    free(again);
    jl_arena_free(&p.arena);
}

static void check_level(const struct program *p, const char *base, const char *level)
{
    char path[512];
    snprintf(path, sizeof path, "%s.%s.ir", base, level);
    char *text = printed(p);
    compare(path, text);
    read_back(path, text);
    free(text);
}

/* What the printer prints means the same. */
static void check_printed(const char *name, const char *text)
{
    struct program p;
    char          *again = NULL, *first, *second;
    size_t         length;
    FILE          *out = open_memstream(&again, &length);
    CHECK(out != NULL);
    lower(&p, name, text, strlen(text));
    first = printed(&p);
    jl_arena_free(&p.arena);
    open_program(&p, name, text, strlen(text));
    jl_print_unit(jl_parse(&p.source, &p.arena, &p.names, &p.diagnostics), out);
    fclose(out);
    jl_arena_free(&p.arena);
    lower(&p, name, again, length);
    second = printed(&p);
    CHECK(!strcmp(first, second));
    jl_arena_free(&p.arena);
    free(again);
    free(first);
    free(second);
}

static void check_program(const char *name)
{
    char           base[256], path[512];
    struct program p;
    snprintf(base, sizeof base, "%s/golden/%.*s", LANG_TESTS, (int)strlen(name) - 4, name);
    snprintf(path, sizeof path, "%s.jan", base);
    char *text = read_file(path);
    check_printed(name, text);
    lower(&p, name, text, strlen(text));
    check_level(&p, base, "high");
    checked(qt_insert_budget(&p.module, &p.why) && qt_verify(&p.module, &p.why), &p);
    check_level(&p, base, "mid");
    checked(qt_lower_tasks(&p.module, &p.why) && qt_verify(&p.module, &p.why), &p);
    check_level(&p, base, "low");
    free(text);
    jl_arena_free(&p.arena);
}

TEST("each program lowers to its three files, and they read back to the same text")
{
    DIR           *folder = opendir(LANG_TESTS "/golden");
    struct dirent *entry;
    int            count = 0;
    CHECK(folder != NULL);
    while ((entry = readdir(folder))) {
        size_t length = strlen(entry->d_name);
        if (length < 5 || strcmp(entry->d_name + length - 4, ".jan") != 0) continue;
        check_program(entry->d_name);
        count++;
    }
    closedir(folder);
    CHECK(count >= 10);
}

static char *high_of(const char *source)
{
    struct program p;
    lower(&p, "x.jan", source, strlen(source));
    char *text = printed(&p);
    jl_arena_free(&p.arena);
    return text;
}

TEST("the example of two spawns in the README gives its four lines")
{
    char *text =
        high_of("{.profile: service.}\n"
                "func compute(n: i64) do end\n"
                "func both(x: i64, y: i64) do\n"
                "    nursery {\n        spawn compute(x)\n        spawn compute(y)\n    }\n"
                "end\n");
    CHECK(strstr(text, "  %1 = Nursery_Begin\n"
                       "  %2 = Spawn @compute, %x\n"
                       "  %3 = Spawn @compute, %y\n"
                       "  %4 = Nursery_End %1\n") != NULL);
    free(text);
}

TEST("braces and do ... end give the same module")
{
    char *braces = high_of("{.profile: service.}\nfunc f(n: i64) {\n nursery { spawn f(n) }\n"
                           " if n == 1 { log(\"a\") } else { log(\"b\") }\n}\n");
    char *words =
        high_of("{.profile: service.}\nfunc f(n: i64) do\n nursery do\n spawn f(n)\n end\n"
                " if n == 1 do\n log(\"a\")\n else\n log(\"b\")\n end\nend\n");
    CHECK(!strcmp(braces, words));
    free(braces);
    free(words);
}

/* How often `part` stands in `text`. */
static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (; (text = strstr(text, part)); text += strlen(part)) count++;
    return count;
}

TEST("a nursery ends on each way out, and an error cancels it first")
{
    char *text = high_of("{.profile: service.}\n"
                         "func may() -> !i64 do return error.No end\n"
                         "func f(n: i64) -> !i64 do\n"
                         "    nursery do\n"
                         "        if n == 1 do\n            return 1\n        end\n"
                         "        let v = try may()\n"
                         "        if v == 2 do\n            return error.Two\n        end\n"
                         "    end\n"
                         "    return 0\n"
                         "end\n");
    CHECK_EQ(count_of(text, "Nursery_End"), 4); /* return, try, error, the end */
    CHECK_EQ(count_of(text, "Nursery_Cancel"), 2);
    free(text);
}

TEST("what follows an endless loop is dropped")
{
    char *text = high_of("func f() do\n    loop do\n    end\n    log(\"never\")\nend\n");
    CHECK_EQ(count_of(text, "never"), 0);
    free(text);
}

/* Damage: a line or a word of one of the programs goes elsewhere. What still checks must lower to a
 * module that the verifier accepts at each level. */

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* The begin and the end of a word or a line around a random place. */
static void pick(const char *text, size_t length, uint64_t *state, size_t *begin, size_t *end)
{
    const char *stop = next(state) % 2 ? "\n" : " ,()[].\n";
    size_t      at = next(state) % length;
    *begin = *end = at;
    while (*begin > 0 && !strchr(stop, text[*begin - 1])) --*begin;
    while (*end < length && !strchr(stop, text[*end])) ++*end;
}

static size_t damage(const char *text, size_t length, uint64_t *state, char *out)
{
    size_t from, to, at, at_end, used = 0;
    pick(text, length, state, &from, &to);
    pick(text, length, state, &at, &at_end);
    bool keeps = next(state) % 2;
    memcpy(out, text, at);
    used = at;
    memcpy(out + used, text + from, to - from);
    used += to - from;
    size_t rest = keeps ? at : at_end;
    memcpy(out + used, text + rest, length - rest);
    return used + length - rest;
}

static int checked_well;

static void try_damaged(const char *text, size_t length)
{
    struct program p;
    open_program(&p, "damaged.jan", text, length);
    struct jl_unit         *unit = jl_parse(&p.source, &p.arena, &p.names, &p.diagnostics);
    struct jl_check_options options = {.host = &p.host};
    unit->types = &p.types;
    if (!p.diagnostics.errors && jl_check(unit, &options, &p.diagnostics)) {
        jl_lower(unit, &p.module);
        bool is_right = qt_verify(&p.module, &p.why) && qt_insert_budget(&p.module, &p.why) &&
                        qt_verify(&p.module, &p.why) && qt_lower_tasks(&p.module, &p.why) &&
                        qt_verify(&p.module, &p.why);
        if (!is_right) printf("%.*s\n%s\n", (int)length, text, p.why);
        CHECK(is_right);
        checked_well++;
    }
    jl_arena_free(&p.arena);
}

static void damage_program(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/golden/%s", LANG_TESTS, name);
    char       *text = read_file(path);
    size_t      length = strlen(text);
    char       *out = malloc(4 * length + 16);
    uint64_t    state = length;
    const char *more = getenv("JANUSRT_DAMAGE_ROUNDS");
    CHECK(out != NULL && length > 0);
    for (int round = more ? atoi(more) : 60; round > 0; round--) {
        size_t damaged = damage(text, length, &state, out);
        try_damaged(out, damaged);
    }
    free(out);
    free(text);
}

TEST("damaged programs that still check lower to verified modules")
{
    DIR           *folder = opendir(LANG_TESTS "/golden");
    struct dirent *entry;
    CHECK(folder != NULL);
    while ((entry = readdir(folder))) {
        size_t length = strlen(entry->d_name);
        if (length < 5 || strcmp(entry->d_name + length - 4, ".jan") != 0) continue;
        damage_program(entry->d_name);
    }
    closedir(folder);
    CHECK(checked_well > 50);
}
