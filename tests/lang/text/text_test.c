/* SPDX-License-Identifier: MIT */
/* Places, diagnostics, the arena, and the reader of host signatures. */
#include "harness.h"
#include "type/host_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
    struct jl_arena       arena;
    struct jl_source      source;
    struct jl_diagnostics diagnostics;
};

static void open_text(struct text *t, const char *text, size_t length)
{
    memset(t, 0, sizeof *t);
    jl_source_of(&t->arena, "x.jan", text, length, &t->source);
    t->diagnostics = (struct jl_diagnostics){.arena = &t->arena, .source = &t->source};
}

static struct jl_diagnostic *report(struct text *t, uint32_t begin, uint32_t end, const char *text)
{
    struct jl_span at = {begin, end};
    return jl_report(&t->diagnostics, JL_ERROR_SEVERITY, "S1001", at, "%s", text);
}

__attribute__((noinline)) static char *printed(const struct text        *t,
                                               enum jl_diagnostic_format format)
{
    char  *out = NULL;
    size_t length;
    FILE  *file = open_memstream(&out, &length);
    CHECK(file != NULL);
    jl_diagnostics_print(&t->diagnostics, format, file);
    fclose(file);
    return out;
}

static void check_printed(struct text *t, enum jl_diagnostic_format format, const char *wanted)
{
    char *out = printed(t, format);
    if (strcmp(out, wanted) != 0) puts(out);
    CHECK(!strcmp(out, wanted));
    free(out);
    jl_arena_free(&t->arena);
}

static void check_place(const struct jl_source *source, uint32_t offset, uint32_t line,
                        uint32_t column)
{
    uint32_t got_line, got_column;
    jl_source_place(source, offset, &got_line, &got_column);
    CHECK_EQ(got_line, line);
    CHECK_EQ(got_column, column);
}

TEST("lines and columns begin with 1, and a code point is one column")
{
    struct text t;
    open_text(&t, "a\n\xc3\xa9x\r\n\nlast", 12);
    check_place(&t.source, 0, 1, 1);
    check_place(&t.source, 1, 1, 2);
    check_place(&t.source, 4, 2, 2);
    check_place(&t.source, 7, 3, 1);
    check_place(&t.source, 8, 4, 1);
    check_place(&t.source, 12, 4, 5);
    check_place(&t.source, 99, 4, 5);
    jl_arena_free(&t.arena);
}

TEST("a diagnostic shows its line, a caret, another place and one line of help")
{
    static const char source[] = "{.profile: core.}\n\tlet caf\xc3\xa9 = f(x)\n";
    struct text       t;
    open_text(&t, source, sizeof source - 1);
    struct jl_diagnostic *item = report(&t, 31, 35, "`f` needs more");
    item->help = "write `f(x, y)`";
    item->also = (struct jl_span){0, 17};
    item->also_text = "the file is :core";
    check_printed(&t, JL_DIAGNOSTIC_TEXT,
                  "x.jan:2:13: error[S1001]: `f` needs more\n"
                  "  2 |     let caf\xc3\xa9 = f(x)\n"
                  "    |                ^~~~\n"
                  "x.jan:1:1: note: the file is :core\n"
                  "  1 | {.profile: core.}\n"
                  "    | ^~~~~~~~~~~~~~~~~\n"
                  "help: write `f(x, y)`\n");
}

TEST("JSON has the same, and any bytes are valid in it")
{
    struct text t;
    open_text(&t, "ab\ncd\n", 6);
    report(&t, 3, 5, "a \"quoted\" \\ \x01 \xff \xc3\xa9")->help = "do";
    check_printed(&t, JL_DIAGNOSTIC_JSON,
                  "[\n {\"file\": \"x.jan\", \"line\": 2, \"column\": 1, \"end_line\": 2, "
                  "\"end_column\": 3, \"severity\": \"error\", \"code\": \"S1001\", \"message\": "
                  "\"a \\\"quoted\\\" \\\\ \\u0001 \\ufffd \xc3\xa9\", \"help\": \"do\"}\n]\n");
    open_text(&t, "", 0);
    check_printed(&t, JL_DIAGNOSTIC_JSON, "[]\n");
}

TEST("colour stands around the words, and control bytes of the source do not reach a terminal")
{
    struct text t;
    open_text(&t, "a\033[2Jb\n", 7);
    report(&t, 1, 2, "no\033[2J");
    char *out = printed(&t, JL_DIAGNOSTIC_COLOUR);
    CHECK(strstr(out, "\033[1;31merror[S1001]:\033[0m") != NULL);
    CHECK(strstr(out, "\033[2J") == NULL);
    CHECK(strstr(out, "a?[2Jb") != NULL);
    free(out);
    jl_arena_free(&t.arena);
}

TEST("of a long line only the part around the place is shown")
{
    char        line[5000];
    struct text t;
    memset(line, 'x', sizeof line);
    open_text(&t, line, sizeof line);
    report(&t, 2500, 4900, "long");
    char *out = printed(&t, JL_DIAGNOSTIC_TEXT);
    CHECK(strlen(out) < 600);
    CHECK(strstr(out, "x.jan:1:2501:") != NULL);
    free(out);
    jl_arena_free(&t.arena);
}

static long place_of(const char *text, const char *part)
{
    const char *found = strstr(text, part);
    return found ? found - text : -1;
}

TEST("diagnostics are printed by place, one at a place, and the rest is counted")
{
    char        text[100], *out;
    struct text t;
    memset(text, '\n', sizeof text);
    open_text(&t, text, sizeof text);
    report(&t, 50, 51, "second");
    report(&t, 10, 11, "first");
    report(&t, 10, 12, "again");
    CHECK_EQ(t.diagnostics.errors, 2);
    for (uint32_t i = 0; i < 40; i++) report(&t, 55 + i, 56 + i, "more");
    CHECK_EQ(t.diagnostics.errors, 42);
    CHECK_EQ(t.diagnostics.count, JL_DIAGNOSTICS_MAX);
    out = printed(&t, JL_DIAGNOSTIC_TEXT);
    CHECK(place_of(out, "first") > 0 && place_of(out, "second") > place_of(out, "first"));
    CHECK(strstr(out, "again") == NULL);
    CHECK(strstr(out, "22 more errors are not shown") != NULL);
    free(out);
    jl_arena_free(&t.arena);
}

TEST("equal names have one pointer, also after the table grew")
{
    struct jl_arena arena = {0};
    struct jl_names names = {.arena = &arena};
    const char     *first = jl_intern(&names, "first", 5);
    char            name[16];
    for (int i = 0; i < 5000; i++)
        jl_intern(&names, name, (size_t)snprintf(name, sizeof name, "n%d", i));
    CHECK(jl_intern(&names, "first one", 5) == first);
    CHECK(jl_intern(&names, "fir", 3) != first);
    jl_arena_free(&arena);
}

static void exhaust(void *argument)
{
    struct jl_arena arena = {.max_bytes = 1 << 20};
    (void)argument;
    for (;;) jl_new(&arena, 1000);
}

TEST("an arena that is full ends the process with a sentence")
{
    int         status;
    const char *out = harness_child(exhaust, NULL, &status);
    CHECK_EQ(status, 2 << 8);
    CHECK(strstr(out, "memory limit") != NULL);
}

/* Signatures. */

static int64_t nothing(void *result, const void *const *arguments)
{
    (void)result;
    (void)arguments;
    return 0;
}

struct world {
    struct jl_arena      arena;
    struct jl_types      types;
    struct jl_names      names;
    struct jl_host_table table;
};

static const char *add(struct world *w, const struct jl_host_row *rows, uint32_t count)
{
    const char *why = NULL;
    memset(w, 0, sizeof *w);
    jl_types_init(&w->types, &w->arena);
    w->names.arena = &w->arena;
    return jl_host_add(&w->table, &w->types, &w->names, rows, count, &why) ? NULL : why;
}

TEST("signatures are read as Janus writes them")
{
    static const int64_t            value = 1;
    static const struct jl_host_row rows[] = {
        {.type = "Server"},
        {.signature =
             "Server.map(cap: CapSpawn, f: fn([]u8, !str) -> !i64, c: channel task i8) -> !",
         .code = nothing,
         .effects = " io  await"},
        {.value = "limits: []fn() -> void", .address = &value},
    };
    struct world w;
    CHECK_STR(add(&w, rows, 3), NULL);
    const struct jl_host_entry *entry = &w.table.entries[1];
    CHECK_STR(entry->name, "map");
    CHECK_EQ(entry->receiver, w.table.entries[0].type);
    CHECK_STR(jl_type_text(&w.types, entry->fn),
              "fn(CapSpawn, fn([]u8, !str) -> !i64, channel task i8) -> !void");
    CHECK_EQ(entry->effects, 32 + 4 + 512); /* io await fails */
    CHECK_STR(entry->param_names[2], "c");
    CHECK_STR(jl_type_text(&w.types, w.table.entries[2].type), "[]fn() -> void");
    jl_arena_free(&w.arena);
}

TEST("a row with a mistake is refused with its number and its text")
{
    static const char *const wrong[] = {
        "f(a: i64", "f(a i64)", "f(a: Unknown)",    "f(a: i64) -> ",     "f() extra",
        "(a: i64)", "",         "Nobody.f(a: i64)", "f(a: i64,, b: i8)", "f(a: []) ",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct jl_host_row row = {.signature = wrong[i], .code = nothing};
        struct world       w;
        const char        *why = add(&w, &row, 1);
        CHECK(why != NULL && strstr(why, "row 0 of the host table") != NULL);
        jl_arena_free(&w.arena);
    }
    struct jl_host_row row = {.signature = "f()", .code = nothing, .effects = "io magic"};
    struct world       w;
    CHECK(strstr(add(&w, &row, 1), "`magic`") != NULL);
    jl_arena_free(&w.arena);
}

TEST("structs are laid out as in C, and a struct that contains itself is refused")
{
    struct world w;
    CHECK_STR(add(&w, NULL, 0), NULL);
    struct jl_field fields[] = {
        {.name = "a", .type = JL_U8}, {.name = "b", .type = JL_STR}, {.name = "c", .type = JL_I16}};
    jl_type type = jl_named(&w.types, JL_STRUCT, "S");
    w.types.infos[type].fields = fields;
    w.types.infos[type].field_count = 3;
    CHECK(jl_layout(&w.types, type));
    CHECK_EQ(fields[1].offset, 8);
    CHECK_EQ(fields[2].offset, 24);
    CHECK_EQ(jl_size(&w.types, type), 32);
    CHECK(!jl_is_plain(&w.types, type));
    jl_type         self = jl_named(&w.types, JL_STRUCT, "Self");
    struct jl_field inside = {.name = "me", .type = self};
    w.types.infos[self].fields = &inside;
    w.types.infos[self].field_count = 1;
    CHECK(!jl_layout(&w.types, self));
    CHECK_EQ(jl_slice_of(&w.types, type), jl_slice_of(&w.types, type));
    CHECK_EQ(jl_bits(JL_U16), 16);
    jl_arena_free(&w.arena);
}
