/* SPDX-License-Identifier: MIT */
/*
 * Sources. The first byte of the input chooses the profile.
 *
 * What must hold for all bytes: the parser and the checker come back, with errors or with a tree. A
 * tree without syntax errors prints as a source that parses to the same print. A program without
 * errors lowers to a module that the verifier takes at each level.
 */
#include "lower/lower.h"
#include "meaning/meaning.h"
#include "rows.h"
#include "syntax/syntax.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: must hold: %s\n", __FILE__, __LINE__, #condition);             \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct text {
    char  *bytes;
    size_t length;
};

static struct text print(const struct jl_unit *unit)
{
    struct text text = {0};
    FILE       *out = open_memstream(&text.bytes, &text.length);
    MUST(out != NULL);
    jl_print_unit(unit, out);
    fclose(out);
    return text;
}

static struct jl_unit *parse(struct jl_arena *arena, struct jl_names *names,
                             struct jl_source *source, struct jl_diagnostics *diagnostics,
                             const char *bytes, size_t length)
{
    *diagnostics = (struct jl_diagnostics){.arena = arena, .source = source};
    names->arena = arena;
    jl_source_of(arena, "x.jan", bytes, length, source);
    return jl_parse(source, arena, names, diagnostics);
}

static void must_print_again(const struct jl_unit *unit)
{
    struct jl_arena       arena = {0};
    struct jl_names       names = {0};
    struct jl_source      source;
    struct jl_diagnostics diagnostics;
    struct text           first = print(unit);
    struct jl_unit *again = parse(&arena, &names, &source, &diagnostics, first.bytes, first.length);
    if (diagnostics.errors) fprintf(stderr, "%s\n", first.bytes);
    MUST(diagnostics.errors == 0);
    struct text second = print(again);
    MUST(first.length == second.length && !memcmp(first.bytes, second.bytes, first.length));
    free(first.bytes);
    free(second.bytes);
    jl_arena_free(&arena);
}

static void must_lower(struct jl_unit *unit, const struct jl_host_table *host)
{
    struct qt_module module;
    const char      *why = NULL;
    qt_module_init(&module, unit->arena, unit->types, unit->names, host);
    module.profile = (int)unit->profile;
    module.interval = 1024;
    jl_lower(unit, &module);
    qt_place_tenancies(&module);
    bool is_good = qt_verify(&module, &why) && qt_insert_budget(&module, &why) &&
                   qt_verify(&module, &why) && qt_lower_tasks(&module, &why) &&
                   qt_verify(&module, &why);
    if (!is_good) fprintf(stderr, "%s\n", why);
    MUST(is_good);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct jl_arena       arena = {0};
    struct jl_names       names = {0};
    struct jl_source      source;
    struct jl_diagnostics diagnostics;
    struct jl_types       types;
    struct jl_host_table  host = {0};
    const char           *why = NULL;
    if (size == 0) return 0;
    struct jl_unit *unit =
        parse(&arena, &names, &source, &diagnostics, (const char *)data + 1, size - 1);
    if (diagnostics.errors == 0) must_print_again(unit);
    jl_types_init(&types, &arena);
    MUST(jl_host_add(&host, &types, &names, rows, ROW_COUNT, &why));
    unit->types = &types;
    struct jl_check_options options = {.host = &host,
                                       .override_profile = (data[0] & 3) != 0,
                                       .profile = (enum jl_profile)(data[0] & 3)};
    if (jl_check(unit, &options, &diagnostics)) must_lower(unit, &host);
    struct text said = {0};
    FILE       *out = open_memstream(&said.bytes, &said.length);
    MUST(out != NULL);
    jl_diagnostics_print(&diagnostics, data[0] & 4 ? JL_DIAGNOSTIC_JSON : JL_DIAGNOSTIC_TEXT, out);
    fclose(out);
    free(said.bytes);
    jl_arena_free(&arena);
    return 0;
}
