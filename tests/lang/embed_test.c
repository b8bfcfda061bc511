/* SPDX-License-Identifier: MIT */
/* The language inside of a C program. */
#include "harness.h"

#include <janusrt/explain.h>
#include <janusrt/lang.h>
#include <string.h>

static int64_t seen;

static int64_t scan(void *result, const void *const *arguments)
{
    const janus_lang_text *path = arguments[0];
    seen += path->length;
    *(int64_t *)result = path->length * 2;
    return 0;
}

static int64_t always_fails(void *result, const void *const *arguments)
{
    (void)result;
    (void)arguments;
    return JANUS_NOT_FOUND;
}

static const int64_t          numbers[] = {1, 2, 39};
static const janus_lang_slice input = {(void *)(uintptr_t)numbers, 3};

static const janus_lang_row rows[] = {
    {.signature = "scan(path: str) -> i64", .code = scan, .effects = "io"},
    {.signature = "lost() -> !i64", .code = always_fails},
    {.value = "numbers: []i64", .address = &input},
};
#define ROWS .rows = rows, .row_count = sizeof rows / sizeof rows[0]

TEST("a host offers functions and values, and gets main's number")
{
    int exit_status = -1;
    seen = 0;
    CHECK_EQ(janus_lang_run(JANUS_LANG_OPTIONS(ROWS), "rules.jan",
                            "func main() -> i64 do\n    var sum = scan(\"abc\") - 6\n"
                            "    for n in numbers do\n        sum += n\n    end\n"
                            "    return sum\nend\n",
                            &exit_status),
             JANUS_OK);
    CHECK_EQ(exit_status, 42);
    CHECK_EQ(seen, 3);
}

TEST("an error of a host function is an error of the program")
{
    int exit_status = -1;
    CHECK_EQ(janus_lang_run(JANUS_LANG_OPTIONS(ROWS, .profile = JANUS_PROFILE_SERVICE), "lost.jan",
                            "func main() do\n    nursery do\n        spawn do\n"
                            "            let n = try lost()\n            print(str(n))\n"
                            "        end\n    end\nend\n",
                            &exit_status),
             JANUS_OK);
    CHECK_EQ(exit_status, 1);
}

TEST("a budget bounds the whole program")
{
    const janus_budget budget = JANUS_BUDGET(.ops = 5000, .spawn_count = 10);
    int                exit_status = -1;
    CHECK_EQ(janus_lang_run(JANUS_LANG_OPTIONS(.profile = JANUS_PROFILE_SERVICE, .budget = &budget),
                            "loop.jan", "func main() do\n    loop do\n    end\nend\n",
                            &exit_status),
             JANUS_OK);
    CHECK_EQ(exit_status, 3);
}

/* LeakSanitizer looks on. */
TEST("a program whose main panics while its tasks run leaves nothing behind")
{
    for (int i = 0; i < 3; i++) {
        int exit_status = -1;
        CHECK_EQ(janus_lang_run(JANUS_LANG_OPTIONS(.profile = JANUS_PROFILE_SERVICE), "panic.jan",
                                "func f() do\n    yield\nend\nfunc main() do\n"
                                "    let items = [1, 2]\n    nursery do\n        spawn f()\n"
                                "        print(str(items[items.len]))\n    end\nend\n",
                                &exit_status),
                 JANUS_OK);
        CHECK_EQ(exit_status, 1);
    }
}

TEST("wrong programs and wrong arguments are refused")
{
    static const janus_lang_row wrong[] = {{.signature = "f(a: what)", .code = scan}};
    char                        why[256];
    CHECK_EQ(janus_lang_check(NULL, "a.jan", "func main() do end"), JANUS_OK);
    CHECK_EQ(janus_lang_check(NULL, "a.jan", "func main() do nursery do end end"), JANUS_REFUSED);
    CHECK_EQ(janus_lang_check(NULL, NULL, ""), JANUS_INVALID);
    CHECK_EQ(janus_lang_check(JANUS_LANG_OPTIONS(.rows = wrong, .row_count = 1), "a.jan", ""),
             JANUS_INVALID);
    CHECK(janus_explain(why, sizeof why) > 0);
    CHECK_EQ(janus_lang_check(JANUS_LANG_OPTIONS(.row_count = 1), "a.jan", ""), JANUS_INVALID);
    CHECK_EQ(janus_lang_run(NULL, "a.jan", "func f() do end", NULL), JANUS_REFUSED);
}
