/* SPDX-License-Identifier: MIT */
/* The text form, the verifier and the passes. Each file of verify/ breaks one rule. */
#include "harness.h"
#include "qtjir/qtjir.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

struct world {
    struct jl_arena      arena;
    struct jl_types      types;
    struct jl_names      names;
    struct jl_host_table host;
    struct jl_source     source;
    struct qt_module     module;
    const char          *why;
};

static int64_t nothing(void *result, const void *const *arguments)
{
    (void)result;
    (void)arguments;
    return 0;
}

static const int64_t            the_value = 7;
static const struct jl_host_row rows[] = {
    {.type = "Server"},
    {.signature = "bind(address: str) -> !Server", .code = nothing, .effects = "io"},
    {.signature = "Server.close()", .code = nothing},
    {.signature = "log(text: str)", .code = nothing},
    {.value = "limit: i64", .address = &the_value},
};

static void open_world(struct world *w)
{
    memset(w, 0, sizeof *w);
    jl_types_init(&w->types, &w->arena);
    w->names.arena = &w->arena;
    CHECK(jl_host_add(&w->host, &w->types, &w->names, rows, sizeof rows / sizeof *rows, &w->why));
    qt_module_init(&w->module, &w->arena, &w->types, &w->names, &w->host);
}

/* Reads a module; false: *why is the first diagnostic. */
static bool read_text(struct world *w, const char *text, size_t length)
{
    struct jl_diagnostics diagnostics = {.arena = &w->arena, .source = &w->source};
    open_world(w);
    jl_source_of(&w->arena, "test.ir", text, length, &w->source);
    if (qt_parse(&w->module, &w->source, &diagnostics)) return true;
    uint32_t line, column;
    CHECK(diagnostics.count > 0);
    jl_source_place(&w->source, diagnostics.items[0].at.begin, &line, &column);
    w->why = jl_format(&w->arena, "%s at %u: %s", diagnostics.items[0].code, line,
                       diagnostics.items[0].text);
    return false;
}

static char *printed(const struct world *w, bool places)
{
    char  *text = NULL;
    size_t length = 0;
    FILE  *out = open_memstream(&text, &length);
    CHECK(out != NULL);
    qt_print(&w->module, places, out);
    fclose(out);
    return text;
}

/* Printing, reading and printing again gives the same text. */
static void check_round(const struct world *w, bool places)
{
    struct world again;
    char        *first = printed(w, places);
    if (!read_text(&again, first, strlen(first))) {
        puts(first);
        CHECK_STR(again.why, "");
    }
    char *second = printed(&again, places);
    CHECK_STR(second, first);
    if (!qt_verify(&again.module, &again.why)) CHECK_STR(again.why, "");
    free(first);
    free(second);
    jl_arena_free(&again.arena);
}

static char *file_of(const char *folder, const char *name, size_t *length)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s/%s", LANG_TESTS, folder, name);
    FILE *in = fopen(path, "rb");
    CHECK(in != NULL);
    char *text = calloc(1, 1 << 20);
    CHECK(text != NULL);
    *length = fread(text, 1, (1 << 20) - 1, in);
    fclose(in);
    return text;
}

static void for_each_file(const char *folder,
                          void        (*body)(const char *name, const char *text, size_t length))
{
    char           path[4096];
    struct dirent *entry;
    int            count = 0;
    snprintf(path, sizeof path, "%s/%s", LANG_TESTS, folder);
    DIR *all = opendir(path);
    CHECK(all != NULL);
    while ((entry = readdir(all)) != NULL) {
        size_t length, name = strlen(entry->d_name);
        if (name < 3 || strcmp(entry->d_name + name - 3, ".ir") != 0) continue;
        char *text = file_of(folder, entry->d_name, &length);
        body(entry->d_name, text, length);
        free(text);
        count++;
    }
    closedir(all);
    CHECK(count > 0);
}

static void round_trip(const char *name, const char *text, size_t length)
{
    struct world w;
    (void)name;
    if (!read_text(&w, text, length) || !qt_verify(&w.module, &w.why)) {
        puts(name);
        CHECK_STR(w.why, "");
    }
    check_round(&w, false);
    check_round(&w, true);
    if (w.module.level == QT_HIGH && !qt_insert_budget(&w.module, &w.why)) CHECK_STR(w.why, "");
    check_round(&w, false);
    if (w.module.level == QT_MID && !qt_lower_tasks(&w.module, &w.why)) CHECK_STR(w.why, "");
    check_round(&w, false);
    qt_place_tenancies(&w.module);
    if (!qt_verify(&w.module, &w.why)) CHECK_STR(w.why, "");
    jl_arena_free(&w.arena);
}

TEST("the golden modules print as they are read, at three levels")
{
    for_each_file("ir", round_trip);
}

/* The first line of a file is "; " and the sentence. */
static void breaks_rule(const char *name, const char *text, size_t length)
{
    struct world w;
    char         expected[400] = "";
    CHECK(length > 2 && text[0] == ';');
    snprintf(expected, sizeof expected, "%.*s", (int)strcspn(text + 2, "\n"), text + 2);
    if (read_text(&w, text, length) && qt_verify(&w.module, &w.why)) w.why = "";
    if (strcmp(w.why, expected) != 0) printf("# %s\n", name);
    CHECK_STR(w.why, expected);
    jl_arena_free(&w.arena);
}

TEST("each file of verify/ breaks the rule that it names") { for_each_file("verify", breaks_rule); }

/* What no text can say is broken in memory. */
static void check_why(struct world *w, const char *expected)
{
    CHECK(!qt_verify(&w->module, &w->why));
    CHECK_STR(w->why, expected);
    jl_arena_free(&w->arena);
}

static void open_function(struct world *w)
{
    open_world(w);
    w->module.profile = 1;
    qt_add_function(&w->module, "f");
    qt_add_block(&w->module, 0);
}

TEST("the verifier finds what no text can say")
{
    struct world w;
    open_function(&w);
    qt_add_node(&w.module, 0, 0, QT_Str, JL_I64);
    qt_add_node(&w.module, 0, 0, QT_Return, JL_VOID);
    check_why(&w, "Q2013 result-type: @f: %1 = Str \"\": its type is str");

    open_function(&w);
    qt_add_node(&w.module, 0, 0, QT_Return, JL_VOID);
    w.module.functions[0].blocks[0].nodes[0] = 5;
    check_why(&w, "Q2006 blocks: @f: bb0 holds what is no node");

    open_function(&w);
    w.module.functions[0].name = "a b";
    check_why(&w, "Q2002 names: a function's name is no word");

    open_function(&w);
    qt_name_node(&w.module, 0, qt_add_node(&w.module, 0, 0, QT_Str, JL_STR), "x y");
    qt_add_node(&w.module, 0, 0, QT_Return, JL_VOID);
    check_why(&w, "Q2002 names: @f: a value's name is no word");

    open_function(&w);
    jl_type actor = jl_named(&w.types, JL_ACTOR, "A");
    qt_add_node(&w.module, 0, 0, QT_Actor_New, jl_start_of(&w.types, actor));
    qt_add_node(&w.module, 0, 0, QT_Return, JL_VOID);
    check_why(&w, "Q2010 literal: @f: %1 = Actor_New : start A: the actor has no functions");
}

TEST("a name that is taken gets a number")
{
    struct world w;
    open_function(&w);
    qt_add_param(&w.module, 0, "x", JL_I64);
    for (int i = 0; i < 2; i++)
        qt_name_node(&w.module, 0, qt_add_node(&w.module, 0, 0, QT_Str, JL_STR), "x");
    CHECK_STR(w.module.functions[0].nodes[1].name, "x.2");
    CHECK_STR(w.module.functions[0].nodes[2].name, "x.3");
    jl_arena_free(&w.arena);
}

/* The functions of ir/pair.ir. */
enum { MAIN, FETCH_BOTH, COMPUTE, COUNTER_INIT };

static void read_pair(struct world *w)
{
    size_t length;
    char  *text = file_of("ir", "pair.ir", &length);
    CHECK(read_text(w, text, length));
    CHECK(qt_verify(&w->module, &w->why));
    free(text);
}

static uint32_t count_of(const struct world *w, uint32_t function, enum qt_op op, int64_t literal)
{
    const struct qt_function *f = &w->module.functions[function];
    uint32_t                  count = 0;
    for (uint32_t b = 0; b < f->block_count; b++)
        for (uint32_t i = 0; i < f->blocks[b].count; i++) {
            const struct qt_node *n = &f->nodes[f->blocks[b].nodes[i]];
            count += n->op == op && n->literal == literal;
        }
    return count;
}

TEST("the example of the documents prints its four lines")
{
    struct world w;
    read_pair(&w);
    char *text = printed(&w, false);
    CHECK(strstr(text, "  %1 = Nursery_Begin\n"
                       "  %2 = Spawn @compute, %x\n"
                       "  %3 = Spawn @compute, %y\n"
                       "  %4 = Nursery_End %1\n") != NULL);
    free(text);
    jl_arena_free(&w.arena);
}

TEST("each call and back-edge pays once, and each spawn has a check")
{
    struct world w;
    read_pair(&w);
    w.module.interval = 512;
    CHECK(qt_insert_budget(&w.module, &w.why));
    CHECK_EQ(count_of(&w, MAIN, QT_Budget_Decrement, 1), 1);
    CHECK_EQ(count_of(&w, MAIN, QT_Budget_Check, 0), 1);
    CHECK_EQ(count_of(&w, FETCH_BOTH, QT_Budget_Decrement, 1), 0);
    CHECK_EQ(count_of(&w, FETCH_BOTH, QT_Budget_Check, 0), 2);
    CHECK_EQ(count_of(&w, COMPUTE, QT_Budget_Decrement, 1), 1);
    CHECK_EQ(count_of(&w, COMPUTE, QT_Budget_Check, 512), 1);
    CHECK(!qt_insert_budget(&w.module, &w.why));
    CHECK_STR(w.why, "the module has budget operations already");
    jl_arena_free(&w.arena);

    read_pair(&w);
    CHECK(!qt_lower_tasks(&w.module, &w.why));
    w.module.interval = 0;
    CHECK(!qt_insert_budget(&w.module, &w.why));
    CHECK_STR(w.why, "the interval must not be 0");
    jl_arena_free(&w.arena);
}

TEST("what is spawned, what it calls and actors are CPU_Parallel")
{
    struct world w;
    read_pair(&w);
    for (uint32_t i = 0; i < w.module.function_count; i++)
        w.module.functions[i].tenancy = QT_CPU_PARALLEL;
    qt_place_tenancies(&w.module);
    CHECK_EQ(w.module.functions[MAIN].tenancy, QT_CPU_SERIAL);
    CHECK_EQ(w.module.functions[FETCH_BOTH].tenancy, QT_CPU_SERIAL);
    CHECK_EQ(w.module.functions[COMPUTE].tenancy, QT_CPU_PARALLEL);
    CHECK_EQ(w.module.functions[COUNTER_INIT].tenancy, QT_CPU_PARALLEL);
    CHECK(qt_verify(&w.module, &w.why));
    jl_arena_free(&w.arena);
}

/* Mutations: whole lines, words and bytes move. Nothing may crash, and what is accepted verifies
 * and prints. */
static uint64_t random_state = 88172645463325252u;
static uint32_t random_below(uint32_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32) % limit;
}

static size_t mutate(char *text, size_t length, size_t room)
{
    for (uint32_t i = 1 + random_below(3); i > 0 && length > 8; i--) {
        size_t at = random_below((uint32_t)length), from = random_below((uint32_t)length);
        size_t count = random_below(random_below(4) == 0 ? 60 : 6);
        if (at + count > length) count = length - at;
        if (from + count > length) count = length - from;
        switch (random_below(4)) {
        case 0: memmove(text + at, text + from, count); break;
        case 1: text[at] = (char)random_below(256); break;
        case 2: text[at] = "%@:,.b!=0123456789"[random_below(18)]; break;
        default:
            if (length + count >= room) break;
            memmove(text + at + count, text + at, length - at);
            memmove(text + at, text + from, count);
            length += count;
        }
    }
    return length;
}

static uint32_t accepted;

static void try_text(const char *text, size_t length)
{
    struct world w;
    if (read_text(&w, text, length)) {
        char *first = printed(&w, true);
        free(first);
        if (qt_verify(&w.module, &w.why)) {
            accepted++;
            check_round(&w, false);
            if (w.module.level == QT_HIGH && !qt_insert_budget(&w.module, &w.why))
                CHECK_STR(w.why, "");
            if (w.module.level == QT_MID && !qt_lower_tasks(&w.module, &w.why))
                CHECK_STR(w.why, "");
            check_round(&w, false);
        }
    }
    jl_arena_free(&w.arena);
}

static void mutate_file(const char *name, const char *text, size_t length)
{
    (void)name;
    const char *wanted = getenv("JANUS_LANG_MUTATIONS");
    int         rounds = wanted != NULL ? atoi(wanted) : 300;
    for (int i = 0; i < rounds; i++) {
        char  *copy = malloc(length + 512);
        size_t size;
        CHECK(copy != NULL);
        memcpy(copy, text, length);
        size = mutate(copy, length, length + 500);
        try_text(copy, size);
        free(copy);
    }
}

TEST("no mutation of a module crashes the reader, the verifier or the passes")
{
    for_each_file("ir", mutate_file);
    CHECK(accepted > 0);
}
