/* SPDX-License-Identifier: MIT */
/* The rules of profiles, nurseries and capabilities, as the checker enforces them. */
#include "harness.h"
#include "meaning/meaning.h"
#include "rows.h"
#include "syntax/syntax.h"

#include <janusrt/status.h>
#include <stdlib.h>
#include <string.h>

/* What the checker says: "P2001@2:5 N1001@7:9", in the order of the text. "" is nothing. */
static char answer[1024];

static int by_place(const void *left, const void *right)
{
    const struct jl_diagnostic *a = left, *b = right;
    return a->at.begin < b->at.begin ? -1 : a->at.begin > b->at.begin;
}

struct compiled {
    struct jl_arena       arena;
    struct jl_source      source;
    struct jl_names       names;
    struct jl_types       types;
    struct jl_diagnostics diagnostics;
    struct jl_unit       *unit;
};

static void compile(struct compiled *c, const char *text)
{
    struct jl_host_table host = {0};
    const char          *why = NULL;
    *c = (struct compiled){0};
    c->names.arena = &c->arena;
    c->diagnostics = (struct jl_diagnostics){.arena = &c->arena, .source = &c->source};
    jl_types_init(&c->types, &c->arena);
    CHECK(jl_host_add(&host, &c->types, &c->names, rows, ROW_COUNT, &why));
    jl_source_of(&c->arena, "x.jan", text, strlen(text), &c->source);
    c->unit = jl_parse(&c->source, &c->arena, &c->names, &c->diagnostics);
    c->unit->types = &c->types;
    struct jl_check_options options = {.host = &host};
    jl_check(c->unit, &options, &c->diagnostics);
    if (c->diagnostics.count)
        qsort(c->diagnostics.items, c->diagnostics.count, sizeof c->diagnostics.items[0], by_place);
}

static const char *said(const char *text)
{
    struct compiled c;
    size_t          at = 0;
    compile(&c, text);
    answer[0] = 0;
    for (uint32_t i = 0; i < c.diagnostics.count; i++) {
        const struct jl_diagnostic *item = &c.diagnostics.items[i];
        uint32_t                    line, column;
        jl_source_place(&c.source, item->at.begin, &line, &column);
        at += (size_t)snprintf(answer + at, sizeof answer - at, "%s%s@%u:%u", at ? " " : "",
                               item->code, line, column);
    }
    jl_arena_free(&c.arena);
    return answer;
}

#define CORE "{.profile: core.}\n"
#define SERVICE "{.profile: service.}\n"
#define CLUSTER "{.profile: cluster.}\n"
#define SOVEREIGN "{.profile: sovereign.}\n"

/* Profiles. */

static const char every_construct[] = "async func work() do\n"        /* line 2 */
                                      "    let q = channel(i64, 1)\n" /* 3 */
                                      "    nursery do\n"              /* 4 */
                                      "        spawn work()\n"        /* 5 */
                                      "        await work()\n"        /* 6 */
                                      "    end\n"
                                      "end\n"
                                      "actor A do\n" /* 9 */
                                      "end\n";

TEST("in :core spawn, nursery, channel, async, await and actor are errors")
{
    char text[1024];
    snprintf(text, sizeof text, CORE "%s", every_construct);
    CHECK_STR(said(text), "P2001@2:1 P2001@3:13 P2001@4:5 P2001@5:9 P2001@6:9 P2001@9:7");
}

TEST("a file without a pragma is of profile :core")
{
    CHECK_STR(said(every_construct),
              "P2001@1:1 P2001@2:13 P2001@3:5 P2001@4:9 P2001@5:9 P2001@8:7");
}

TEST("each error of :core points at the line of the pragma")
{
    struct compiled c;
    char            text[1024];
    snprintf(text, sizeof text, CORE "%s", every_construct);
    compile(&c, text);
    CHECK_EQ(c.diagnostics.count, 6);
    for (uint32_t i = 0; i < c.diagnostics.count; i++) {
        uint32_t line, column;
        CHECK(c.diagnostics.items[i].also_text != NULL);
        jl_source_place(&c.source, c.diagnostics.items[i].also.begin, &line, &column);
        CHECK_EQ(line, 1);
        CHECK_EQ(column, 1);
    }
    jl_arena_free(&c.arena);
}

TEST("in :core no capability is made or named")
{
    CHECK_STR(said(CORE "func main() do\n    let cap = CapSpawn{ max_tasks: 1 }\nend\n"),
              "P2002@3:15");
    CHECK_STR(said(CORE "func f(cap: CapBudget) do\nend\n"), "P2002@2:13");
}

TEST("in :service and :cluster tasks, channels and actors need no capability")
{
    char text[1024];
    snprintf(text, sizeof text, SERVICE "%s", every_construct);
    CHECK_STR(said(text), "");
    snprintf(text, sizeof text, CLUSTER "%s", every_construct);
    CHECK_STR(said(text), "");
}

TEST("in :cluster only a supervisor recharges budgets, and in :service nobody does")
{
    CHECK_STR(said(CLUSTER "func f() do\n    recharge_child(10)\nend\n"), "P2010@3:5");
    CHECK_STR(said(CLUSTER "func f(boss: Supervisor) do\n    recharge_child(10)\n"
                           "    boss.recharge(10)\nend\n"),
              "");
    CHECK_STR(said(SERVICE "func f(boss: Supervisor) do\n    recharge_child(10)\nend\n"),
              "P2010@3:5");
}

TEST("in :service the executor is fixed, and in :sovereign a program chooses it")
{
    static const char choice[] =
        "func main() do\n    let cap = CapExecutor{ allowed_backends: 1 }\nend\n";
    char text[256];
    snprintf(text, sizeof text, SERVICE "%s", choice);
    CHECK_STR(said(text), "P2011@3:15");
    snprintf(text, sizeof text, SOVEREIGN "%s", choice);
    CHECK_STR(said(text), "");
}

/* Nurseries. */

TEST("a spawn needs a nursery of its own function, whatever the caller has open")
{
    CHECK_STR(said(SERVICE "func helper() do\n    spawn task()\nend\n"
                           "func main() do\n    nursery do\n        helper()\n    end\nend\n"),
              "N1001@3:5");
    CHECK_STR(said(SERVICE "nursery do\n    spawn do\n        spawn task()\n    end\nend\n"),
              "N1001@4:9");
}

TEST("an await stands in async functions only, and awaits tasks only")
{
    CHECK_STR(said(SERVICE "async func one() -> i64 do\n    return 1\nend\n"
                           "func f() do\n    let n = await one()\nend\n"),
              "N1002@6:13");
    CHECK_STR(said(SERVICE "async func f() do\n    let n = await 3\nend\n"), "T4011@3:19");
}

TEST("await of a handle gives the value of the call, with its type")
{
    CHECK_STR(said(SERVICE "async func minus() -> i32 do\n    return -5\nend\n"
                           "async func main() do\n    nursery do\n"
                           "        let handle = async minus()\n"
                           "        let n: i32 = await handle\n"
                           "        let m: i64 = await handle\n    end\nend\n"),
              "T4001@9:22");
}

TEST("a range that is half-open goes up to the length of a slice")
{
    CHECK_STR(said("func f(items: []i32) -> []i32 do\n    let out = array(items.len)\n"
                   "    for i in 0..items.len do out[i] = items[i] end\n"
                   "    for i in 0..<items.len do out[i] = 1 end\n"
                   "    return out[0..items.len]\nend\n"),
              "");
}

/* Capabilities. */

TEST("in :sovereign tasks, channels and recharges need their capabilities in scope")
{
    CHECK_STR(said(SOVEREIGN "func f() do\n    nursery do\n        spawn task()\n    end\n"
                             "    let q = channel(i64, 1)\n    recharge_child(1)\nend\n"),
              "C3001@3:5 C3001@6:13 C3001@7:5");
    CHECK_STR(said(SOVEREIGN "func f(a: CapSpawn, b: CapChannel, c: CapBudget) do\n"
                             "    nursery do\n        spawn task()\n    end\n"
                             "    let q = channel(i64, 1)\n    recharge_child(1)\nend\n"),
              "");
    CHECK_STR(said(SOVEREIGN "func main() do\n    nursery do\n    end\nend\n"), "C3001@3:5");
}

#define PARALLEL_MAP                                                                               \
    "func parallel_map(cap: CapSpawn, items: []i32, f: fn(i32) -> i32) -> []i32 do\n"              \
    "    let results = array(items.len)\n"                                                         \
    "    nursery do\n"                                                                             \
    "        for i in 0..items.len do\n"                                                           \
    "            spawn do\n"                                                                       \
    "                results[i] = f(items[i])\n"                                                   \
    "            end\n"                                                                            \
    "        end\n"                                                                                \
    "    end\n"                                                                                    \
    "    return results\n"                                                                         \
    "end\n"

TEST("a function takes a capability as a parameter, and its tasks use it")
{
    CHECK_STR(said(SOVEREIGN PARALLEL_MAP), "");
}

TEST("a call without its capability is an error at the name of the function")
{
    CHECK_STR(said(SOVEREIGN PARALLEL_MAP "func main() do\n    let items = [1, 2, 3, 4]\n"
                                          "    let r = parallel_map(items, |x| x * 2)\nend\n"),
              "C3002@15:13");
    CHECK_STR(said(SOVEREIGN PARALLEL_MAP "func main() do\n    let items = [1, 2, 3, 4]\n"
                                          "    let cap = CapSpawn{ max_tasks: 10 }\n"
                                          "    let r = parallel_map(cap, items, |x| x * 2)\nend\n"),
              "");
}

TEST("a capability is made in main, or from a capability, and is never wider")
{
    CHECK_STR(said(SOVEREIGN "func f() do\n    let cap = CapSpawn{ max_tasks: 1 }\nend\n"),
              "C3003@3:15");
    CHECK_STR(said(SOVEREIGN "func f(cap: CapBudget) do\n"
                             "    let a = CapSpawn{ max_tasks: 5, task_budget: cap.toBudget() }\n"
                             "    let b = CapSpawn{ max_tasks: 4 }\n"
                             "    let c = CapSpawn{ max_tasks: 5 }\nend\n"),
              "C3004@5:13");
    CHECK_STR(said(SOVEREIGN "func f(cap: CapChannel) do\n    let a = CapSpawn{ max_tasks: 5 }\n"
                             "end\n"),
              "C3003@3:13");
}

TEST("a capability goes to the host, to a plugin or into a channel only if it is delegatable")
{
    static const char outward[] =
        "interface P do\n    func run(cap: CapSpawn)\nend\n"
        "func use(p: P, queue: channel CapSpawn, up: CapSpawn) -> !i64 do\n"
        "    let cap = CapSpawn%s\n"
        "    p.run(cap)\n    try queue.send(cap)\n    return scan(cap, \"x\")\nend\n";
    char text[512];
    snprintf(text, sizeof text, SOVEREIGN "%s", outward);
    char filled[600];
    snprintf(filled, sizeof filled, "%.*s%s%s", (int)(strstr(text, "%s") - text), text,
             "{ max_tasks: 1 }", strstr(text, "%s") + 2);
    CHECK_STR(said(filled), "C3005@7:11 C3005@8:20 C3005@9:17");
    snprintf(filled, sizeof filled, "%.*s%s%s", (int)(strstr(text, "%s") - text), text,
             ".delegatable(max_tasks: 1)", strstr(text, "%s") + 2);
    CHECK_STR(said(filled), "");
}

TEST("a function that gives its capability to the host asks its callers for a delegatable one")
{
    static const char chain[] =
        "func a(cap: CapSpawn) -> i64 do\n    return scan(cap, \"x\")\nend\n"
        "func b(cap: CapSpawn) -> i64 do\n    return a(cap)\nend\n";
    char text[512];
    snprintf(text, sizeof text,
             SOVEREIGN "%sfunc main() do\n    let cap = CapSpawn{ max_tasks: 1 }\n"
                       "    let n = b(cap)\nend\n",
             chain);
    CHECK_STR(said(text), "C3005@10:15");
    snprintf(text, sizeof text,
             SOVEREIGN "%sfunc main() do\n    let cap = CapSpawn.delegatable(max_tasks: 1)\n"
                       "    let n = b(cap)\nend\n",
             chain);
    CHECK_STR(said(text), "");
}

TEST("with_cap and nursery with take a CapSpawn and nothing else")
{
    CHECK_STR(said(SERVICE "func f(cap: CapBudget) do\n    nursery with cap do\n"
                           "        spawn with_cap(cap) task()\n    end\nend\n"),
              "T4020@3:18 T4020@4:24");
}

/* Memory. */

#define TEXTS(line)                                                                                \
    SERVICE "func put(out: []str, i: i64) do\n"                                                    \
            "    out[i] = str(i)\n"                                                                \
            "end\n"                                                                                \
            "func f(n: i64) -> []str do\n"                                                         \
            "    let out = array(n)\n"                                                             \
            "    out[0] = str(n)\n"                                                                \
            "    let call = |i| put(out, i)\n"                                                     \
            "    nursery do\n"                                                                     \
            "        " line "\n"                                                                   \
            "    end\n"                                                                            \
            "    return out\n"                                                                     \
            "end\n"

TEST("a task does not leave values of its memory in a slice of another task")
{
    CHECK_STR(said(TEXTS("put(out, 1)")), "");
    CHECK_STR(said(TEXTS("spawn log(out[0])")), "");
    CHECK_STR(said(TEXTS("spawn do log(out[0]) end")), "");
    CHECK_STR(said(TEXTS("spawn put(out, 1)")), "T4032@10:9");
    CHECK_STR(said(TEXTS("spawn do put(out, 1) end")), "T4032@10:9");
    CHECK_STR(said(TEXTS("spawn do out[1] = \"a\" + \"b\" end")), "T4032@10:9");
    CHECK_STR(said(TEXTS("spawn do call(1) end")), "T4032@10:9");
    CHECK_STR(said(TEXTS("spawn call(1)")), "T4032@10:9");
    CHECK_STR(said(TEXTS("spawn do out[1] = \"a\" end")), "T4032@10:9");
    CHECK_STR(said(TEXTS("spawn do let own = array(2); own[0] = str(n); log(own[0]) end")), "");
    CHECK_STR(said(TEXTS("spawn do let own = array(2); own[0] = str(n); log(out[0]) end")), "");
    CHECK_STR(said(TEXTS("spawn do let own = array(str, 2); put(own, 1) end")), "");
}

TEST("what tasks share of texts, their parent does not change while they run")
{
    CHECK_STR(said(TEXTS("spawn do log(out[0]) end; out[1] = \"a\"")), "T4033@10:9");
    CHECK_STR(said(TEXTS("spawn do log(out[0]) end; put(out, 1)")), "T4033@10:9");
    CHECK_STR(said(TEXTS("spawn do log(out[0]) end; call(1)")), "T4033@10:9");
    CHECK_STR(said(TEXTS("spawn do log(out[0]) end; log(out[1])")), "");
    CHECK_STR(said(TEXTS("spawn do log(\"a\") end; put(out, 1)")), "");
}

/* `spawn worker(box)`, where a struct or a slice holds the slice that the worker stores to. */
#define BOXES(type, made, line)                                                                    \
    SERVICE "struct Box { items: []str, n: i64 }\n"                                                \
            "func put(out: []str) do out[0] = str(1) end\n"                                        \
            "func worker(box: " type ") do " line " end\n"                                         \
            "func main() do\n"                                                                     \
            "    let items = array(str, 2)\n"                                                      \
            "    let box = " made "\n"                                                             \
            "    nursery do spawn worker(box) end\n"                                               \
            "end\n"

TEST("what a task is given inside of structs and slices is shared too")
{
    CHECK_STR(said(BOXES("Box", "Box{ items: items, n: 1 }", "put(box.items)")), "T4032@8:16");
    CHECK_STR(said(BOXES("[]Box", "[Box{ items: items, n: 1 }]", "put(box[0].items)")),
              "T4032@8:16");
    CHECK_STR(said(BOXES("[][]str", "[items]", "put(box[0])")), "T4032@8:16");
    CHECK_STR(said(BOXES("Box", "Box{ items: items, n: 1 }", "log(box.items[0])")), "");
}

TEST("a closure, which can become a task, takes no supervisor")
{
    CHECK_STR(said(SERVICE "actor A do\nend\nfunc main() do\n"
                           "    let boss = Supervisor.new()\n"
                           "    let more = || do\n"
                           "        nursery do let a = boss.spawn(A.new()) end\n"
                           "    end\n"
                           "    nursery do spawn more() end\nend\n"),
              "T4031@7:28");
}

TEST("a value that could hold itself is not copied to another task")
{
#define TREE SERVICE "struct Tree { parts: []Tree, text: str }\n"
    CHECK_STR(said(TREE "func f() do\n    let queue = channel(Tree, 1)\nend\n"), "T4031@4:17");
    CHECK_STR(said(TREE "actor A do\n    func put(tree: Tree) do\n    end\nend\n"), "T4031@4:20");
    CHECK_STR(said(TREE "func see(tree: Tree) do log(tree.text) end\n"
                        "func f(tree: Tree) do\n    nursery do spawn see(tree) end\nend\n"),
              "");
}

/* Numbers of errors. */

static int64_t number_of(const char *name)
{
    struct compiled c;
    char            text[128];
    snprintf(text, sizeof text, "func f() -> !i64 do\n    return error.%s\nend\n", name);
    compile(&c, text);
    CHECK_EQ(c.diagnostics.count, 0);
    int64_t number = c.unit->functions[0]->body->statements[0]->value->error;
    jl_arena_free(&c.arena);
    return number;
}

TEST("errors that the runtime knows have its numbers, and others begin at -100")
{
    CHECK_EQ(number_of("NoSpawnCapability"), JANUS_NO_SPAWN_CAP);
    CHECK_EQ(number_of("TaskLimitExceeded"), JANUS_TASK_LIMIT);
    CHECK_EQ(number_of("Closed"), JANUS_CLOSED);
    CHECK_EQ(number_of("Odd"), -100);
}

/* Twenty errors, and the profile of the command line. */

TEST("at most twenty errors are shown, and all are counted")
{
    char text[2048] = "func main() do\n";
    for (int i = 0; i < 30; i++) {
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "    missing%d()\n", i);
    }
    strcat(text, "end\n");
    struct compiled c;
    compile(&c, text);
    CHECK_EQ(c.diagnostics.count, JL_DIAGNOSTICS_MAX);
    CHECK_EQ(c.diagnostics.errors, 30);
    jl_arena_free(&c.arena);
}
