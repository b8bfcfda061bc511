/* SPDX-License-Identifier: MIT */
/* Reads the rows of a host table: signatures as Janus writes them. */
#include "type/host_table.h"

#include <ctype.h>
#include <string.h>

/* In the order of enum jl_effect (syntax/ast.h): word i is bit i. */
static const char *const effect_words[] = {
    "spawn", "nursery", "await", "channel", "alloc", "io", "mint", "recharge", "native", "fails",
};
enum { EFFECT_WORDS = sizeof effect_words / sizeof effect_words[0], EFFECT_FAILS = 512 };

enum { PARAMS_MAX = 16, NESTING = 20 };

struct reader {
    const char      *at;
    struct jl_types *types;
    struct jl_names *names;
    const char      *wrong; /* the first thing that is wrong */
};

static void blanks(struct reader *reader)
{
    while (*reader->at == ' ') reader->at++;
}

static bool take(struct reader *reader, const char *text)
{
    blanks(reader);
    size_t length = strlen(text);
    if (strncmp(reader->at, text, length) != 0) return false;
    if (isalpha((unsigned char)*text) &&
        (isalnum((unsigned char)reader->at[length]) || reader->at[length] == '_'))
        return false;
    reader->at += length;
    return true;
}

static void expect(struct reader *reader, const char *text)
{
    if (take(reader, text) || reader->wrong) return;
    reader->wrong = jl_format(reader->names->arena, "`%s` is missing before `%.20s`", text,
                              *reader->at ? reader->at : "the end");
}

static const char *word(struct reader *reader)
{
    blanks(reader);
    const char *begin = reader->at;
    while (isalnum((unsigned char)*reader->at) || *reader->at == '_') reader->at++;
    if (begin == reader->at && !reader->wrong) reader->wrong = "a name is missing";
    return jl_intern(reader->names, begin, (size_t)(reader->at - begin));
}

static jl_type find_type(struct reader *reader, const char *name)
{
    for (jl_type type = 1; type < reader->types->count; type++) {
        const struct jl_type_info *info = &reader->types->infos[type];
        if (info->name && info->kind != JL_START && !strcmp(info->name, name)) return type;
    }
    if (!reader->wrong)
        reader->wrong = jl_format(reader->names->arena, "the type `%s` is unknown", name);
    return JL_BAD;
}

static jl_type read_type(struct reader *reader, unsigned depth);

static jl_type read_fn(struct reader *reader, unsigned depth)
{
    jl_type  params[PARAMS_MAX], result = JL_VOID;
    uint32_t count = 0;
    expect(reader, "(");
    while (!reader->wrong && !take(reader, ")")) {
        if (count) expect(reader, ",");
        if (count == PARAMS_MAX)
            reader->wrong = "there are too many parameters";
        else
            params[count++] = read_type(reader, depth + 1);
    }
    if (take(reader, "->")) result = read_type(reader, depth + 1);
    return jl_fn_of(reader->types, params, count, result);
}

static jl_type read_type(struct reader *reader, unsigned depth)
{
    if (depth > NESTING && !reader->wrong) reader->wrong = "the type is nested too deeply";
    if (reader->wrong) return JL_BAD;
    struct jl_types *types = reader->types;
    if (take(reader, "[")) {
        expect(reader, "]");
        return jl_slice_of(types, read_type(reader, depth + 1));
    }
    if (take(reader, "!")) {
        blanks(reader);
        bool is_word = isalpha((unsigned char)*reader->at) || *reader->at == '[';
        return jl_fallible_of(types, is_word ? read_type(reader, depth + 1) : JL_VOID);
    }
    if (take(reader, "fn")) return read_fn(reader, depth);
    if (take(reader, "channel")) return jl_channel_of(types, read_type(reader, depth + 1));
    if (take(reader, "task")) return jl_task_of(types, read_type(reader, depth + 1));
    return find_type(reader, word(reader));
}

static void read_signature(struct reader *reader, struct jl_host_entry *entry)
{
    jl_type     params[PARAMS_MAX];
    const char *names[PARAMS_MAX];
    uint32_t    count = 0;
    entry->kind = JL_HOST_FUNCTION;
    entry->name = word(reader);
    if (take(reader, ".")) {
        entry->receiver = find_type(reader, entry->name);
        entry->name = word(reader);
    }
    expect(reader, "(");
    while (!reader->wrong && !take(reader, ")")) {
        if (count) expect(reader, ",");
        if (count == PARAMS_MAX) {
            reader->wrong = "there are too many parameters";
            return;
        }
        names[count] = word(reader);
        expect(reader, ":");
        params[count++] = read_type(reader, 0);
    }
    jl_type result = take(reader, "->") ? read_type(reader, 0) : JL_VOID;
    if (jl_kind_of(reader->types, result) == JL_FALLIBLE) entry->effects |= EFFECT_FAILS;
    entry->fn = jl_fn_of(reader->types, params, count, result);
    entry->param_names = jl_new(reader->names->arena, count * sizeof(char *));
    for (uint32_t i = 0; i < count; i++) entry->param_names[i] = names[i];
}

static void read_effects(struct reader *reader, const char *text, struct jl_host_entry *entry)
{
    reader->at = text;
    for (blanks(reader); *reader->at && !reader->wrong; blanks(reader)) {
        const char *name = word(reader);
        unsigned    i = 0;
        while (i < EFFECT_WORDS && strcmp(effect_words[i], name) != 0) i++;
        if (i < EFFECT_WORDS)
            entry->effects |= 1u << i;
        else if (!reader->wrong)
            reader->wrong = jl_format(reader->names->arena, "the effect `%s` is unknown", name);
    }
}

static void read_row(struct reader *reader, struct jl_host_entry *entry)
{
    const struct jl_host_row *row = entry->row;
    if (row->signature) {
        read_signature(reader, entry);
    } else if (row->value) {
        entry->kind = JL_HOST_VALUE;
        entry->name = word(reader);
        expect(reader, ":");
        entry->type = read_type(reader, 0);
    } else {
        entry->kind = JL_HOST_TYPE;
        entry->name = word(reader);
        entry->type = jl_named(reader->types, JL_HOST, entry->name);
    }
    blanks(reader);
    if (*reader->at && !reader->wrong)
        reader->wrong = jl_format(reader->names->arena, "`%.20s` is too much", reader->at);
    if (row->effects && !reader->wrong) read_effects(reader, row->effects, entry);
    if (row->signature && !row->code && !reader->wrong) reader->wrong = "it has no code";
    if (row->value && !row->address && !reader->wrong) reader->wrong = "it has no address";
}

bool jl_host_add(struct jl_host_table *table, struct jl_types *types, struct jl_names *names,
                 const struct jl_host_row *rows, uint32_t count, const char **why)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct jl_host_row *row = &rows[i];
        const char *text = row->signature ? row->signature : row->value ? row->value : row->type;
        if (!text) {
            *why = jl_format(names->arena, "row %u of the host table is empty", i);
            return false;
        }
        struct reader        reader = {.at = text, .types = types, .names = names};
        struct jl_host_entry entry = {.row = row};
        read_row(&reader, &entry);
        if (reader.wrong) {
            *why = jl_format(names->arena, "row %u of the host table, `%s`: %s", i, text,
                             reader.wrong);
            return false;
        }
        JL_PUSH(names->arena, table->entries, table->count, table->room) = entry;
    }
    return true;
}
