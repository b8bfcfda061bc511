/* SPDX-License-Identifier: MIT */
/*
 * The checker on programs that nobody wrote: pieces of the gallery and of the documents, cut, mixed
 * and damaged. It must come back, and a program without errors must be typed all over. Such a
 * program also lowers to a module that the verifier takes, at every level.
 */
#include "harness.h"
#include "lower/lower.h"
#include "meaning/meaning.h"
#include "rows.h"
#include "syntax/syntax.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { FILES_MAX = 400, TEXT_MAX = 1 << 16, LINES_MAX = 4096 };

static char    *texts[FILES_MAX];
static size_t   lengths[FILES_MAX];
static unsigned file_count, accepted_count;
static char    *lines[LINES_MAX];
static unsigned line_count;

static void read_folder(const char *folder)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", LANG_TESTS, folder);
    DIR *dir = opendir(path);
    CHECK(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir)) && file_count < FILES_MAX;) {
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".jan") != 0) continue;
        snprintf(path, sizeof path, "%s/%s/%s", LANG_TESTS, folder, entry->d_name);
        FILE *file = fopen(path, "rb");
        CHECK(file != NULL);
        char  *text = malloc(TEXT_MAX);
        size_t length = fread(text, 1, TEXT_MAX - 1, file);
        text[length] = 0;
        fclose(file);
        texts[file_count] = text;
        lengths[file_count++] = length;
    }
    closedir(dir);
}

static void split_lines(void)
{
    for (unsigned i = 0; i < file_count; i++) {
        char *at = texts[i];
        while (*at && line_count < LINES_MAX) {
            size_t length = strcspn(at, "\n");
            if (length) lines[line_count++] = strndup(at, length);
            at += length + (at[length] == '\n');
        }
    }
}

static uint64_t random_state;
static unsigned random_below(unsigned limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((random_state >> 33) % limit);
}

/* The invariant of a program without errors. */

static const struct jl_types *types;

static bool is_settled(jl_type type)
{
    const struct jl_type_info *info = jl_info(types, type);
    switch (info->kind) {
    case JL_BAD: return false;
    case JL_SLICE:
    case JL_FALLIBLE:
    case JL_TASK:
    case JL_CHANNEL: return is_settled(info->of);
    case JL_FN:
        for (uint32_t i = 0; i < info->param_count; i++)
            if (!is_settled(info->params[i])) return false;
        return is_settled(info->of);
    default: return true;
    }
}

static void walk_block(const struct jl_block *block);

static void walk_expr(const struct jl_expr *e)
{
    if (!e) return;
    CHECK(e->kind != JL_E_BAD);
    CHECK(is_settled(e->type));
    CHECK(e->kind != JL_E_NAME || e->symbol);
    bool is_call = e->kind == JL_E_CALL;
    CHECK(!is_call || e->call != JL_CALL_UNKNOWN);
    if (is_call && e->call != JL_CALL_VALUE)
        walk_expr(e->receiver);
    else if (is_call && e->left->kind == JL_E_MEMBER)
        walk_expr(e->left->left);
    else
        walk_expr(e->left);
    walk_expr(e->right);
    walk_expr(e->cap);
    for (uint32_t i = 0; i < e->arg_count; i++) walk_expr(e->args[i].value);
}

static void walk_block(const struct jl_block *block)
{
    for (uint32_t i = 0; block && i < block->count; i++) {
        const struct jl_statement *s = block->statements[i];
        CHECK(s->kind != JL_S_BAD);
        CHECK(!s->symbol || is_settled(s->symbol->type));
        walk_expr(s->target);
        walk_expr(s->value);
        walk_block(s->body);
        walk_block(s->otherwise);
    }
}

static void walk_unit(const struct jl_unit *unit)
{
    types = unit->types;
    for (uint32_t i = 0; i < unit->all_count; i++) {
        const struct jl_function *function = unit->all[i];
        walk_block(function->body);
        CHECK(is_settled(function->result_type));
        for (uint32_t k = 0; k < function->param_count; k++)
            CHECK(function->params[k].symbol && is_settled(function->params[k].symbol->type));
        for (uint32_t k = 0; k < function->capture_count; k++)
            CHECK(function->captures[k]->function != function);
    }
}

static void lower_unit(struct jl_unit *unit, struct jl_host_table *host, const char *text)
{
    struct qt_module module;
    const char      *why = NULL;
    qt_module_init(&module, unit->arena, unit->types, unit->names, host);
    module.profile = (int)unit->profile;
    module.interval = 1024;
    module.level = QT_HIGH;
    jl_lower(unit, &module);
    qt_place_tenancies(&module);
    bool is_good = qt_verify(&module, &why) && qt_insert_budget(&module, &why) &&
                   qt_verify(&module, &why) && qt_lower_tasks(&module, &why) &&
                   qt_verify(&module, &why);
    if (!is_good) fprintf(stderr, "%s\n%s\n", text, why);
    CHECK(is_good);
}

static bool check_text(const char *text, size_t length, enum jl_profile profile)
{
    struct jl_arena       arena = {0};
    struct jl_names       names = {.arena = &arena};
    struct jl_types       table;
    struct jl_host_table  host = {0};
    struct jl_source      source;
    const char           *why = NULL;
    struct jl_diagnostics diagnostics = {.arena = &arena, .source = &source};
    jl_types_init(&table, &arena);
    CHECK(jl_host_add(&host, &table, &names, rows, ROW_COUNT, &why));
    struct jl_check_options options = {
        .host = &host, .override_profile = profile != JL_CORE, .profile = profile};
    jl_source_of(&arena, "x.jan", text, length, &source);
    struct jl_unit *unit = jl_parse(&source, &arena, &names, &diagnostics);
    unit->types = &table;
    bool is_good = jl_check(unit, &options, &diagnostics);
    CHECK(is_good == (diagnostics.errors == 0));
    if (is_good && getenv("SHOW")) fwrite(text, 1, length, stderr);
    if (is_good) {
        walk_unit(unit);
        lower_unit(unit, &host, text);
    }
    jl_arena_free(&arena);
    return is_good;
}

/* Mutants. */

static char   mutant[2 * TEXT_MAX];
static size_t mutant_length;

static void replace(size_t at, size_t gone, const char *text)
{
    size_t length = strlen(text);
    if (mutant_length + length + 1 >= sizeof mutant || at + gone > mutant_length) return;
    memmove(mutant + at + length, mutant + at + gone, mutant_length - at - gone);
    memcpy(mutant + at, text, length);
    mutant_length += length - gone;
    mutant[mutant_length] = 0;
}

static const char *const words[] = {
    "do",    "end",   "{",     "}",    "(",      ")",        "[",     "]",      "|x|",
    "await", "spawn", "async", "try",  "return", "nursery",  "var",   "let",    "error.Odd",
    "0",     "-1",    "1.5",   "i32",  "str",    "array(",   "x",     "y",      "self",
    "..",    "=",     "==",    "+",    ",",      ":",        ".len",  "\"t\"",  "CapSpawn{",
    "defer", "for",   "if",    "else", "while",  "loop",     "break", "func",   "actor",
    "fn",    "!",     "task ", "true", "not",    "cancel()", "[]",    ".new()", "channel(i64, 1)",
};

static void mutate(void)
{
    size_t at = random_below((unsigned)mutant_length + 1);
    switch (random_below(5)) {
    case 0: replace(at, 1, ""); break;
    case 1: replace(at, 0, words[random_below(sizeof words / sizeof words[0])]); break;
    case 2:
        while (at && mutant[at - 1] != '\n') at--;
        replace(at, 0, lines[random_below(line_count)]);
        break;
    case 3: {
        while (at && mutant[at - 1] != '\n') at--;
        const char *end = memchr(mutant + at, '\n', mutant_length - at);
        replace(at, end ? (size_t)(end - mutant) - at : 0, lines[random_below(line_count)]);
        break;
    }
    default: {
        size_t end = at;
        while (at && mutant[at - 1] > ' ') at--;
        while (end < mutant_length && mutant[end] > ' ') end++;
        replace(at, end - at, words[random_below(sizeof words / sizeof words[0])]);
    }
    }
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* The bounds of the word at a place, or of the bytes between words. */
static size_t piece_at(size_t *at)
{
    if (!mutant_length) return 0;
    size_t begin = *at < mutant_length ? *at : mutant_length - 1, end = begin;
    bool   kind = is_word(mutant[begin]);
    while (begin && is_word(mutant[begin - 1]) == kind) begin--;
    while (end < mutant_length && is_word(mutant[end]) == kind) end++;
    *at = begin;
    return end - begin;
}

/* Changes that often leave a program well formed: a word or a line of itself, elsewhere. */
static void mutate_gently(void)
{
    size_t at = random_below((unsigned)mutant_length + 1);
    size_t from = random_below((unsigned)mutant_length + 1);
    char   piece[512];
    if (random_below(3)) {
        size_t gone = piece_at(&at), length = piece_at(&from);
        if (!gone || is_word(mutant[at]) != is_word(mutant[from])) return;
        snprintf(piece, sizeof piece, "%.*s", (int)length, mutant + from);
        replace(at, gone, piece);
        return;
    }
    while (at && mutant[at - 1] != '\n') at--;
    while (from && mutant[from - 1] != '\n') from--;
    size_t length = strcspn(mutant + from, "\n");
    snprintf(piece, sizeof piece, "%.*s\n", (int)length, mutant + from);
    if (random_below(2))
        replace(from, length + 1, "");
    else
        replace(at, 0, piece);
}

static unsigned try_mutants(unsigned count, unsigned most)
{
    unsigned good = 0;
    for (unsigned i = 0; i < count; i++) {
        random_state = i;
        unsigned file = random_below(i % 2 ? file_count : accepted_count);
        mutant_length = lengths[file];
        memcpy(mutant, texts[file], mutant_length + 1);
        for (unsigned n = 1 + random_below(most); n; n--) i % 4 < 2 ? mutate_gently() : mutate();
        static const enum jl_profile profiles[] = {JL_SERVICE, JL_CLUSTER, JL_SOVEREIGN};
        if (check_text(mutant, mutant_length, profiles[random_below(3)])) good++;
    }
    return good;
}

TEST("damaged programs come back with diagnostics, or are typed all over")
{
    const char *more = getenv("MUTANTS");
    read_folder("accepted");
    for (unsigned i = 0; i < file_count; i++)
        CHECK(check_text(texts[i], lengths[i], JL_CORE)); /* the pragma counts */
    accepted_count = file_count;
    read_folder("gallery");
    read_folder("documents");
    split_lines();
    CHECK(file_count > 60);
    unsigned few = try_mutants(more ? (unsigned)atoi(more) : 4000, 3);
    unsigned many = try_mutants(more ? (unsigned)atoi(more) : 2000, 40);
    printf("# without errors: %u of few changes, %u of many\n", few, many);
    CHECK(few > 100);
}

/* Programs of one pattern, many times: nothing is quadratic, nothing recurses without a limit. */

static void repeat(const char *head, const char *line, unsigned count, const char *tail)
{
    size_t room = strlen(head) + (strlen(line) + 24) * count + strlen(tail) + 1;
    char  *text = malloc(room);
    size_t at = (size_t)snprintf(text, room, "%s", head);
    for (unsigned i = 0; i < count; i++)
        at += (size_t)snprintf(text + at, room - at, line, i, i ? i - 1 : 0);
    at += (size_t)snprintf(text + at, room - at, "%s", tail);
    check_text(text, at, JL_SERVICE);
    free(text);
}

TEST("large programs of one pattern are checked")
{
    repeat("", "func f%u() do f%u() end\n", 20000, "");
    repeat("func main() do\n", "let a%u = [1, a%u]\n", 5000, "end\n");
    repeat("func main() do\n let a = 1\n", "let f%u = |x| x + a\n", 5000, "end\n");
    repeat("func main() do\n nursery do\n", "spawn do log(\"%u\") end\n", 5000, "end\nend\n");
    repeat("func main() do\n return ", "1 + %u +\n", 20000, "1\nend\n");
    repeat("func main() do\n let x = ", "(%u", 20000, "");
    repeat("func main() do\n if false do\n", "else if true do log(\"%u\")\n", 20000, "end\nend\n");
    repeat("", "struct S%u do next: S%u end\n", 5000, "");
    repeat("func f() do\n return error.A\n", "return error.E%u\n", 20000, "end\n");
    repeat("func main() do\n let v0 = 1\n", "let w%u = v0 + missing%u\n", 20000, "end\n");
}
