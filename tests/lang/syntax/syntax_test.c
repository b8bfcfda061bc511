/* SPDX-License-Identifier: MIT */
/* The parser's recovery and the canonical printer. */
#include "harness.h"
#include "syntax/syntax.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct parsed {
    struct jl_arena       arena;
    struct jl_names       names;
    struct jl_source      source;
    struct jl_diagnostics diagnostics;
    struct jl_unit       *unit;
};

static void parse(struct parsed *p, const char *text, size_t length)
{
    memset(p, 0, sizeof *p);
    p->names.arena = &p->arena;
    jl_source_of(&p->arena, "x.jan", text, length, &p->source);
    p->diagnostics = (struct jl_diagnostics){.arena = &p->arena, .source = &p->source};
    p->unit = jl_parse(&p->source, &p->arena, &p->names, &p->diagnostics);
}

/* The diagnostics as "S1001@3 S1002@7": code and line, in the order of their places. */
static char *errors_of(const char *text)
{
    struct parsed p;
    char         *json = NULL, *out = calloc(1, 1024);
    size_t        length;
    parse(&p, text, strlen(text));
    FILE *file = open_memstream(&json, &length);
    CHECK(file != NULL && out != NULL);
    jl_diagnostics_print(&p.diagnostics, JL_DIAGNOSTIC_JSON, file);
    fclose(file);
    for (char *at = json; (at = strstr(at, "\n {\"file\"")); at++) {
        int         line = atoi(strstr(at, "\"line\": ") + 8);
        const char *code = strstr(at, "\"code\": \"") + 9;
        snprintf(out + strlen(out), 1024 - strlen(out), "%s%.5s@%d", *out ? " " : "", code, line);
    }
    free(json);
    jl_arena_free(&p.arena);
    return out;
}

static const struct {
    const char *source, *errors;
} broken[] = {
    {"func f() do\n    g()\n", "S1002@1"},
    {"func f() do\n    nursery do\n        g()\nend\nfunc h() do\nend\n", "S1002@2"},
    {"func f() do\n    if a do\n        g()\n    h()\nend\nlet x = 1\n", "S1002@2"},
    {"func f() do\n    g()\nfunc h() do\n    g()\nend\n", "S1002@1"},
    {"actor A do\n    func a() do\n        b()\n    func c() do\n    end\nend\nf()\n", "S1002@2"},
    {"func f() {\n    g()\n}\nend\nh()\n", "S1003@4"},
    {"func f() do\n    g()\n}\n", "S1002@3"},
    {"let = 1\nlet y = \nlet z = (1\nlet w = 2\n", "S1001@1 S1001@2 S1001@3"},
    {"for i 0..3 do\n    let x = ,\n    f(\n    g()\nend\nh(]\n",
     "S1001@1 S1001@2 S1001@4 S1001@6"},
    {"func f()\n    g()\nend\nfunc h() -> do\nend\n", "S1001@1 S1001@4"},
    {"if a = b do\n    f()\nend\n", "S1001@1"},
    {"let s = P{\n    a: ,\n    b: 2\n}\nlet t = \"open\nlet u = 1\n", "S1001@2 S1005@5"},
    {"match x do\n    a => b\n    c => do\n    end\nend\nlet y = match x { a => 1 }\nf()\n",
     "S1010@1 S1010@6"},
    {"import std.io\nconst a = 1\nfn f() do\nend\n", "S1010@1 S1010@2 S1011@3"},
    {"nursery {\n    spawn task() { g() }\n    go f(x)\n}\n", "S1011@2 S1011@3"},
    {"outer_nursery {\n    spawn {\n        inner_nursery {\n        }\n    }\n}\n",
     "S1011@1 S1011@3"},
    {"let a = b && c || not !d\nlet e = f ?? g\nlet h = i & j\n",
     "S1012@1 S1012@1 S1012@1 S1010@2 S1010@3"},
    {"let a = 18446744073709551616\nlet b = 0x10\nlet c = 18446744073709551615\n",
     "S1004@1 S1004@2"},
    {"let a = 'x'\nlet b = \"\\q\"\nlet \xc3\xa9 = 1\n", "S1012@1 S1006@2 S1007@3"},
    {"let a = 1\n{.profile: service.}\n", "S1021@2"},
    {"{.profile: fast.}\n", "S1021@1"},
    {"1 = 2\nf() += 3\n", "S1022@1 S1022@2"},
    {"spawn x\n", "S1023@1"},
    {"let a = b < c < d\n", "S1015@1"},
    {"if a do\n    f()\nelif b do\n    g()\nelse\n    h()\nend\n", "S1012@3"},
    {"func f<T>(a: T) -> T do\n    return a\nend\nlet x: List<i64> = y\n", "S1010@1 S1010@4"},
    {"func f() do\n    func g() do\n    end\n    h()\nend\n", "S1013@2"},
};

TEST("several errors are found in one run, and none is a consequence of another")
{
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        char *errors = errors_of(broken[i].source);
        if (strcmp(errors, broken[i].errors) != 0) printf("%s", broken[i].source);
        CHECK_STR(errors, broken[i].errors);
        free(errors);
    }
}

TEST("at most 20 errors are shown, and the rest is counted")
{
    char text[1024] = "";
    for (int i = 0; i < 30; i++) strcat(text, "let = 1\n");
    struct parsed p;
    parse(&p, text, strlen(text));
    CHECK_EQ(p.diagnostics.count, JL_DIAGNOSTICS_MAX);
    CHECK_EQ(p.diagnostics.errors, 30);
    jl_arena_free(&p.arena);
}

/* Depth. */

static void check_deep(const char *part, int count)
{
    struct parsed p;
    size_t        length = strlen(part) * (size_t)count;
    char         *text = malloc(length + 1);
    CHECK(text != NULL);
    for (int i = 0; i < count; i++) memcpy(text + strlen(part) * (size_t)i, part, strlen(part));
    text[length] = 0;
    parse(&p, text, length);
    CHECK(p.diagnostics.errors > 0);
    jl_arena_free(&p.arena);
    free(text);
}

TEST("nesting without an end is refused")
{
    static const char *const parts[] = {
        "(",
        "[",
        "if a {",
        "nursery do\n",
        "let a = |x| ",
        "let a: []",
        "-",
        "f(",
        "!",
        "a + ",
        "a.b(",
        "spawn {",
        "fn(",
        "else if a {",
        "x{ a: ",
        "not ",
        "a[",
        "actor A do\n",
        "func f() {",
        "if a do\nelse ",
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) check_deep(parts[i], 20000);
}

/* The printer. */

static char *printed(const char *text)
{
    struct parsed p;
    char         *out = NULL;
    size_t        length;
    parse(&p, text, strlen(text));
    if (p.diagnostics.errors) jl_diagnostics_print(&p.diagnostics, JL_DIAGNOSTIC_TEXT, stdout);
    CHECK_EQ(p.diagnostics.errors, 0);
    FILE *file = open_memstream(&out, &length);
    CHECK(file != NULL);
    jl_print_unit(p.unit, file);
    fclose(file);
    jl_arena_free(&p.arena);
    return out;
}

static const struct {
    const char *source, *printed;
} shapes[] = {
    {"{.profile:  :service .}", "{.profile: service.}\n"},
    {"let   a:[]i32=[1,2 , 3,]", "let a: []i32 = [1, 2, 3]\n"},
    {"let a=((b+c))*d-(e-f)", "let a = (b + c) * d - (e - f)\n"},
    {"let a = (b or c) and d or e", "let a = (b or c) and d or e\n"},
    {"let a = - (-b) % -1", "let a = -(-b) % -1\n"},
    {"let a = not (b == c)", "let a = not (b == c)\n"},
    {"let a = (|x|x+1)(2)", "let a = (|x| x + 1)(2)\n"},
    {"for i in (P{a:1}).b..=3 { break }", "for i in (P{ a: 1 }).b..=3 { break }\n"},
    {"if a {\nb()\n}\nelse {\nc()\n}", "if a {\n    b()\n} else {\n    c()\n}\n"},
    {"if a do\nb()\nend else do\nc()\nend", "if a do\n    b()\nelse\n    c()\nend\n"},
    {"if a do\nb()\nelse if c do\nd()\nelse\ne()\nend",
     "if a do\n    b()\nelse if c do\n    d()\nelse\n    e()\nend\n"},
    {"// one\n\n\n\nf()//two\n// three\n", "// one\n\nf()  //two\n// three\n"},
    {"let s = P{ // why\na: 1, // one\n// two\nb: 2\n// end\n}",
     "let s = P{  // why\n    a: 1,  // one\n    // two\n    b: 2\n    // end\n}\n"},
    {"func f(a:i64)->i64!E{return a}", "func f(a: i64) -> i64 ! E { return a }\n"},
    {"func f(a: channel(i64), b: task i64) -> !void do end",
     "func f(a: channel i64, b: task i64) -> !void do end\n"},
    {"defer log(\"a\")\ndefer { log(\"b\") }\ndefer do\nlog(\"c\")\nend",
     "defer log(\"a\")\ndefer { log(\"b\") }\ndefer do\n    log(\"c\")\nend\n"},
    {"try spawn with_cap( c ) f(1 , 2)", "try spawn with_cap(c) f(1, 2)\n"},
    {"let a = array(i32 , 3)\nlet b = channel( []u8,1)",
     "let a = array(i32, 3)\nlet b = channel([]u8, 1)\n"},
    {"conn.end . do(1)[2 .. 3]", "conn.end.do(1)[2..3]\n"},
    {"struct P { x: i64, y: fn(i64)->bool }",
     "struct P do\n    x: i64\n    y: fn(i64) -> bool\nend\n"},
    {"let a = 1_000 + 1MB; let b = 1.5e-3", "let a = 1_000 + 1MB\nlet b = 1.5e-3\n"},
    {"yield()\nreturn\n", "yield\nreturn\n"},
};

TEST("the printer has one form, which it prints again as it is")
{
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        char       *once = printed(shapes[i].source);
        const char *wanted = shapes[i].printed;
        if (strcmp(once, wanted) != 0) printf("%s\n%s", shapes[i].source, once);
        CHECK(!strcmp(once, wanted));
        char *twice = printed(once);
        CHECK(!strcmp(once, twice));
        free(once);
        free(twice);
    }
}

/* Any bytes. */

static uint64_t next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

TEST("damaged programs give diagnostics or a tree, and the tree prints to a text that parses")
{
    static const char *const words[] = {
        "do",    "end",   "{",   "}",     "(",      ")",     "[", "]",  "\n",      "func",
        "if",    "else",  "let", "spawn", "=",      "|",     ",", ":",  ".",       "async",
        "actor", "\"",    "for", "in",    "..",     "x",     "1", "!",  "nursery", "struct",
        "try",   "await", "//",  "\xff",  "return", "defer", "-", "->",
    };
    uint64_t state = 7;
    for (int round = 0; round < 3000; round++) {
        char   text[600] = "";
        size_t length = 0;
        for (uint64_t count = next(&state) % 60; count > 0; count--) {
            const char *word = words[next(&state) % (sizeof words / sizeof words[0])];
            length += (size_t)snprintf(text + length, sizeof text - length, "%s ", word);
        }
        struct parsed p;
        parse(&p, text, length);
        bool is_good = p.diagnostics.errors == 0;
        jl_arena_free(&p.arena);
        if (!is_good) continue;
        char *once = printed(text), *twice = printed(once);
        if (strcmp(once, twice) != 0) printf("%s\n--\n%s\n--\n%s\n", text, once, twice);
        CHECK(!strcmp(once, twice));
        free(once);
        free(twice);
    }
}
