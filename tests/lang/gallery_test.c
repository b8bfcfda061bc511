/* SPDX-License-Identifier: MIT */
/*
 * Programs and what the checker says about them: the gallery of wrong programs, byte for byte, and
 * the code blocks of the documents. With GALLERY_WRITE=1 in the environment the expected texts are
 * written instead of compared.
 */
#include "harness.h"
#include "meaning/meaning.h"
#include "rows.h"
#include "syntax/syntax.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

struct result {
    struct jl_arena       arena;
    struct jl_source      source;
    struct jl_diagnostics diagnostics;
    struct jl_unit       *unit;
    bool                  is_good;
    char                 *text, *effects;
    size_t                length, effects_length;
};

static void print_result(struct result *result)
{
    FILE *out = open_memstream(&result->text, &result->length);
    CHECK(out != NULL);
    jl_diagnostics_print(&result->diagnostics, JL_DIAGNOSTIC_TEXT, out);
    fclose(out);
    out = open_memstream(&result->effects, &result->effects_length);
    CHECK(out != NULL);
    jl_print_effects(result->unit, out);
    fclose(out);
}

/* profile: NULL means that of the pragma. */
static void check_text(struct result *result, const char *name, const char *text, size_t length,
                       const char *profile)
{
    static const char *const profiles[] = {"core", "service", "cluster", "sovereign"};
    struct jl_names          names = {.arena = &result->arena};
    struct jl_types         *types = jl_new(&result->arena, sizeof *types);
    struct jl_host_table     host = {0};
    const char              *why = "";
    jl_types_init(types, &result->arena);
    CHECK_STR(jl_host_add(&host, types, &names, rows, ROW_COUNT, &why) ? "" : why, "");
    struct jl_check_options options = {.host = &host, .override_profile = profile != NULL};
    for (unsigned i = 0; profile && i < 4; i++)
        if (!strcmp(profiles[i], profile)) options.profile = (enum jl_profile)i;
    jl_source_of(&result->arena, name, text, length, &result->source);
    result->diagnostics =
        (struct jl_diagnostics){.arena = &result->arena, .source = &result->source};
    result->unit = jl_parse(&result->source, &result->arena, &names, &result->diagnostics);
    result->unit->types = types;
    result->is_good = jl_check(result->unit, &options, &result->diagnostics);
    print_result(result);
}

static void release(struct result *result)
{
    free(result->text);
    free(result->effects);
    jl_arena_free(&result->arena);
    *result = (struct result){0};
}

static char *read_file(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    char  *text = NULL;
    FILE  *out = open_memstream(&text, length);
    char   block[4096];
    size_t bytes;
    CHECK(out != NULL);
    while ((bytes = fread(block, 1, sizeof block, file)) > 0) fwrite(block, 1, bytes, out);
    fclose(out);
    fclose(file);
    return text;
}

/* Compares, or writes. False: the difference was printed. */
static bool is_expected(const char *path, const struct result *result)
{
    size_t length = 0;
    if (getenv("GALLERY_WRITE")) {
        FILE *file = fopen(path, "wb");
        CHECK(file != NULL);
        fwrite(result->text, 1, result->length, file);
        fclose(file);
        return true;
    }
    char *expected = read_file(path, &length);
    bool  is_same = expected && length == result->length && !memcmp(expected, result->text, length);
    if (!is_same)
        printf("# %s differs\n# expected:\n%s# found:\n%s", path, expected ? expected : "(none)\n",
               result->text);
    free(expected);
    return is_same;
}

static bool has_help(const struct jl_diagnostics *diagnostics)
{
    bool all = true;
    for (uint32_t i = 0; i < diagnostics->count; i++) {
        const struct jl_diagnostic *item = &diagnostics->items[i];
        if (item->help && !strchr(item->help, '\n')) continue;
        printf("# %s: %s: no help line\n", diagnostics->source->path, item->text);
        all = false;
    }
    return all;
}

static bool check_file(const char *folder, const char *name, const char *profile, bool is_wrong)
{
    struct result result = {0};
    char          path[512];
    size_t        length = 0;
    snprintf(path, sizeof path, LANG_TESTS "/%s/%s.jan", folder, name);
    char *text = read_file(path, &length);
    CHECK(text != NULL);
    char shown[256];
    snprintf(shown, sizeof shown, "%s.jan", name);
    check_text(&result, shown, text, length, profile);
    snprintf(path, sizeof path, LANG_TESTS "/%s/%s.txt", folder, name);
    bool is_good = true;
    if (is_wrong) {
        is_good = is_expected(path, &result) && has_help(&result.diagnostics);
        is_good = is_good && result.diagnostics.count > 0;
    } else if (!result.is_good || result.length) {
        printf("# %s: %s", name, result.text);
        is_good = false;
    }
    free(text);
    release(&result);
    return is_good;
}

static int is_program(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && !strcmp(dot, ".jan");
}

TEST("each wrong program of the gallery has its diagnostics, byte for byte, and each has help")
{
    struct dirent **entries;
    int             count = scandir(LANG_TESTS "/gallery", &entries, is_program, alphasort);
    int             wrong = 0;
    CHECK(count >= 60);
    for (int i = 0; i < count; i++) {
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)strlen(entries[i]->d_name) - 4,
                 entries[i]->d_name);
        if (!check_file("gallery", name, NULL, true)) wrong++;
        free(entries[i]);
    }
    free(entries);
    CHECK_EQ(wrong, 0);
}

TEST("each code block of the documents passes, or gets the diagnostic that is listed")
{
    FILE *list = fopen(LANG_TESTS "/documents/list.txt", "r");
    char  line[256], name[64], profile[16], expected[16];
    int   blocks = 0, wrong = 0;
    CHECK(list != NULL);
    while (fgets(line, sizeof line, list)) {
        if (line[0] == '#' || line[0] == '\n') continue;
        CHECK_EQ(sscanf(line, "%63s %*s %*s %15s %15s", name, profile, expected), 3);
        bool is_wrong = strcmp(expected, "passes") != 0;
        if (!check_file("documents", name, strcmp(profile, "-") ? profile : NULL, is_wrong))
            wrong++;
        blocks++;
    }
    fclose(list);
    CHECK_EQ(blocks, 17);
    CHECK_EQ(wrong, 0);
}

static void check_effects(const char *text, const char *effects)
{
    struct result result = {0};
    check_text(&result, "x.jan", text, strlen(text), "service");
    CHECK_STR(result.text, "");
    CHECK_STR(result.effects, effects);
    release(&result);
}

TEST("functions that call each other have the effects of both")
{
    check_effects("func even(n: i64) -> bool do\n"
                  "    if n == 0 { return true }\n"
                  "    log(str(n))\n"
                  "    return odd(n - 1)\n"
                  "end\n"
                  "func odd(n: i64) -> bool do\n"
                  "    let queue = channel(i64, 1)\n"
                  "    queue.close()\n"
                  "    return even(n - 1)\n"
                  "end\n"
                  "func pure(n: i64) -> i64 do\n"
                  "    return n * 2\n"
                  "end\n",
                  "even: channel alloc io\nodd: channel alloc io\npure: none\n");
}

TEST("a function fails if it awaits a function that fails, through others")
{
    check_effects("async func one() -> i64 do\n    return try zero()\nend\n"
                  "async func two() -> i64 do\n    return await one()\nend\n"
                  "async func three() -> i64 do\n    return await two()\nend\n"
                  "func zero() -> i64 do\n    return error.Zero\nend\n"
                  "func calm() -> i64 do\n    return 1\nend\n",
                  "one: fails\ntwo: await fails\nthree: await fails\nzero: fails\ncalm: none\n");
}

TEST("the elements of array(n) and of literals are known from later use")
{
    check_effects("func a(n: i64) -> []i32 do\n"
                  "    let results = array(n)\n"
                  "    for i in 0..n do results[i] = 7 end\n"
                  "    return results\n"
                  "end\n"
                  "func b() -> i64 do\n"
                  "    let items = [1, 2, 3]\n"
                  "    let more = []\n"
                  "    var all = more\n"
                  "    all = items\n"
                  "    let twice = |x| x * 2\n"
                  "    return twice(items[0] + all.len)\n"
                  "end\n"
                  "func c() -> u8 do\n"
                  "    let small = [1, 2, 255]\n"
                  "    return small[0]\n"
                  "end\n",
                  "a: alloc\nb: alloc\nc: alloc\n");
}
