/* SPDX-License-Identifier: MIT */
/*
 * QTJIR as text.
 *
 * What must hold for all bytes: the reader comes back. What it has read, prints as a text that
 * reads and prints to the same. The verifier says yes, or one sentence. A module that it takes at
 * level High it also takes after each pass.
 */
#include "qtjir/qtjir.h"
#include "rows.h"

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

struct reading {
    struct jl_arena       arena;
    struct jl_names       names;
    struct jl_types       types;
    struct jl_host_table  host;
    struct jl_source      source;
    struct jl_diagnostics diagnostics;
    struct qt_module      module;
};

static bool read_text(struct reading *reading, const char *bytes, size_t length)
{
    const char *why = NULL;
    *reading = (struct reading){0};
    reading->names.arena = &reading->arena;
    reading->diagnostics =
        (struct jl_diagnostics){.arena = &reading->arena, .source = &reading->source};
    jl_types_init(&reading->types, &reading->arena);
    MUST(jl_host_add(&reading->host, &reading->types, &reading->names, rows, ROW_COUNT, &why));
    jl_source_of(&reading->arena, "x.ir", bytes, length, &reading->source);
    qt_module_init(&reading->module, &reading->arena, &reading->types, &reading->names,
                   &reading->host);
    return qt_parse(&reading->module, &reading->source, &reading->diagnostics);
}

static char *print(const struct qt_module *module, size_t *length)
{
    char *bytes = NULL;
    FILE *out = open_memstream(&bytes, length);
    MUST(out != NULL);
    qt_print(module, false, out);
    fclose(out);
    return bytes;
}

static void must_print_again(const struct qt_module *module)
{
    struct reading again;
    size_t         first_length = 0, second_length = 0;
    char          *first = print(module, &first_length);
    bool           is_read = read_text(&again, first, first_length);
    if (!is_read) fprintf(stderr, "%s\n", first);
    MUST(is_read);
    char *second = print(&again.module, &second_length);
    MUST(first_length == second_length && !memcmp(first, second, first_length));
    free(first);
    free(second);
    jl_arena_free(&again.arena);
}

static void must_pass(struct qt_module *module)
{
    const char *why = NULL;
    bool        is_good = true;
    if (module->level == QT_HIGH) {
        qt_place_tenancies(module);
        is_good = qt_insert_budget(module, &why) && qt_verify(module, &why);
    }
    if (is_good && module->level == QT_MID)
        is_good = qt_lower_tasks(module, &why) && qt_verify(module, &why);
    if (!is_good) fprintf(stderr, "%s\n", why);
    MUST(is_good);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reading reading;
    const char    *why = NULL;
    if (read_text(&reading, (const char *)data, size)) {
        bool is_good = qt_verify(&reading.module, &why);
        MUST(is_good || (why && why[0] == 'Q'));
        if (is_good) {
            must_print_again(&reading.module);
            must_pass(&reading.module);
        }
    }
    jl_arena_free(&reading.arena);
    return 0;
}
