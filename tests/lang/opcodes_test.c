/* SPDX-License-Identifier: MIT */
/* The opcodes of SPEC-021 11.1: a module that has all five is built, printed, verified and run. */
#include "harness.h"
#include "host/prelude.h"
#include "host/support.h"
#include "run/run.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct world {
    struct jl_arena      arena;
    struct jl_types      types;
    struct jl_names      names;
    struct jl_host_table host;
    struct qt_module     module;
};

enum { CHILD, MAIN, NONE = -1, COST = 100000, OUTPUT_MAX = 4096 };

static struct world *world_new(void)
{
    static struct world w;
    const char         *why = "";
    w = (struct world){0};
    w.names.arena = &w.arena;
    jl_types_init(&w.types, &w.arena);
    if (!jl_host_add(&w.host, &w.types, &w.names, jl_prelude_rows, jl_prelude_row_count, &why))
        CHECK_STR(why, "");
    qt_module_init(&w.module, &w.arena, &w.types, &w.names, &w.host);
    w.module.source = "opcodes.jan";
    w.module.profile = JL_PROFILE_SERVICE;
    w.module.level = QT_LOW;
    w.module.interval = 1024;
    return &w;
}

/* Adds a node with operands that are nodes; NONE ends the list. */
static int put(struct world *w, uint32_t function, uint32_t block, enum qt_op op, int64_t literal,
               ...)
{
    uint32_t node = qt_add_node(&w->module, function, block, op, JL_VOID);
    va_list  operands;
    w->module.functions[function].nodes[node].literal = literal;
    va_start(operands, literal);
    for (int one = va_arg(operands, int); one != NONE; one = va_arg(operands, int))
        qt_add_operand(&w->module, function, node, QT_NODE, (uint32_t)one);
    va_end(operands);
    const char *why = "";
    jl_type     type = op == QT_Const ? JL_I64 : qt_rule_type(&w->module, function, node, &why);
    if (type == JL_BAD) CHECK_STR(why, "");
    w->module.functions[function].nodes[node].type = type;
    return (int)node;
}

static void pay(struct world *w, uint32_t function, uint32_t block, int64_t ops)
{
    (void)put(w, function, block, QT_Budget_Decrement, ops, NONE);
    (void)put(w, function, block, QT_Budget_Check, 0, NONE);
}

static void print_line(struct world *w, uint32_t function, uint32_t block, const char *line)
{
    int             text = put(w, function, block, QT_Str, 0, NONE);
    struct qt_node *node = &w->module.functions[function].nodes[text];
    int64_t         row = 0;
    node->text = line;
    node->text_length = (uint32_t)strlen(line);
    while (strcmp(w->host.entries[row].name, "print") != 0) row++;
    pay(w, function, block, 1);
    (void)put(w, function, block, QT_Call_Host, row, text, NONE);
}

/* Branches on a fallible value: the task ends with its error. Returns the other block. */
static uint32_t branch(struct world *w, uint32_t block, int value)
{
    uint32_t failed = qt_add_block(&w->module, MAIN), next = qt_add_block(&w->module, MAIN);
    uint32_t node = qt_add_node(&w->module, MAIN, block, QT_Branch_Error, JL_VOID);
    qt_add_operand(&w->module, MAIN, node, QT_NODE, (uint32_t)value);
    qt_add_operand(&w->module, MAIN, node, QT_BLOCK, failed);
    qt_add_operand(&w->module, MAIN, node, QT_BLOCK, next);
    int error = put(w, MAIN, failed, QT_Error_Of, 0, value, NONE);
    (void)put(w, MAIN, failed, QT_End_Task, 0, error, NONE);
    return next;
}

static int create(struct world *w, int nursery, int budget)
{
    (void)put(w, MAIN, 0, QT_Budget_Check, 0, NONE);
    uint32_t task = qt_add_node(&w->module, MAIN, 0, QT_Task_Create, JL_VOID);
    qt_add_operand(&w->module, MAIN, task, QT_NODE, (uint32_t)nursery);
    qt_add_operand(&w->module, MAIN, task, QT_FUNCTION, CHILD);
    qt_add_operand(&w->module, MAIN, task, QT_NODE, (uint32_t)budget);
    struct qt_node *node = &w->module.functions[MAIN].nodes[task];
    node->flags = QT_F_ASYNC;
    node->tenancy = QT_CPU_PARALLEL;
    node->type = jl_task_of(&w->types, JL_I64);
    return (int)task;
}

static void build(struct world *w)
{
    CHECK_EQ(qt_add_function(&w->module, "child"), CHILD);
    CHECK_EQ(qt_add_function(&w->module, "main"), MAIN);
    for (uint32_t i = 0; i < 2; i++) {
        w->module.functions[i].result = JL_I64;
        w->module.functions[i].is_async = true;
        w->module.functions[i].tenancy = i == CHILD ? QT_CPU_PARALLEL : QT_CPU_SERIAL;
        CHECK_EQ(qt_add_block(&w->module, i), 0);
    }
    w->module.main = 1 + MAIN;
    print_line(w, CHILD, 0, "child");
    (void)put(w, CHILD, 0, QT_Return, 0, put(w, CHILD, 0, QT_Const, 42, NONE), NONE);

    int nursery = put(w, MAIN, 0, QT_Nursery_Open, 0, NONE);
    int task = create(w, nursery, put(w, MAIN, 0, QT_Budget_Default, 0, NONE));
    (void)put(w, MAIN, 0, QT_Yield, 0, NONE);
    print_line(w, MAIN, 0, "parent");
    pay(w, MAIN, 0, COST);
    int      joined = put(w, MAIN, 0, QT_Task_Join, 0, task, NONE);
    uint32_t good = branch(w, 0, joined);
    int      value = put(w, MAIN, good, QT_Value_Of, 0, joined, NONE);
    int      ended = put(w, MAIN, good, QT_Nursery_Await, 0, nursery, NONE);
    uint32_t last = branch(w, good, ended);
    print_line(w, MAIN, last, "joined");
    (void)put(w, MAIN, last, QT_Return, 0, value, NONE);
    qt_place_tenancies(&w->module);
}

static char *printed(const struct world *w)
{
    char  *text = NULL;
    size_t length = 0;
    FILE  *out = open_memstream(&text, &length);
    CHECK(out != NULL);
    qt_print(&w->module, false, out);
    fclose(out);
    return text;
}

static const char *const lines[] = {
    "  Budget_Check 0\n  %3 = Task_Create async %1, @child, %2\n  Yield\n  %4 = Str \"parent\"\n",
    ("  Budget_Decrement 100000\n  Budget_Check 0\n  %5 = Task_Join %3\n"
     "  Branch_Error %5, bb1, bb2\n"),
    "async func @child() -> i64 tenancy CPU_Parallel {\n",
};

TEST("the five opcodes of the scheduler are built, printed and verified, and read again")
{
    struct world *w = world_new();
    const char   *why = "";
    build(w);
    if (!qt_verify(&w->module, &why)) CHECK_STR(why, "");
    char *text = printed(w);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (strstr(text, lines[i]) == NULL) CHECK_STR(text, lines[i]);
    struct world    *again = calloc(1, sizeof *again);
    struct jl_source source;
    CHECK(again != NULL);
    *again = *w;
    struct jl_diagnostics diagnostics = {.arena = &w->arena, .source = &source};
    qt_module_init(&again->module, &w->arena, &w->types, &w->names, &w->host);
    jl_source_of(&w->arena, "opcodes.ir", text, strlen(text), &source);
    CHECK(qt_parse(&again->module, &source, &diagnostics));
    char *second = printed(again);
    CHECK_STR(second, text);
    free(text);
    free(second);
    free(again);
    jl_arena_free(&w->arena);
}

/* Runs the module in a child on one worker, with this budget; what it prints comes to `out`. */
static int run(int64_t ops, char *out)
{
    int   status = 0;
    FILE *file = tmpfile();
    CHECK(file != NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        const janus_budget budget = {.ops = (uint64_t)ops,
                                     .memory = 1 << 24,
                                     .spawn_count = 10,
                                     .channel_ops = 10,
                                     .syscalls = 100};
        struct world      *w = world_new();
        struct jl_code    *code = NULL;
        const char        *why = "";
        dup2(fileno(file), 1);
        dup2(fileno(file), 2);
        alarm(100);
        setenv("JANUS_WORKERS", "1", 1);
        build(w);
        if (!qt_verify(&w->module, &why) || !jl_code_make(&w->module, &code, &why)) _exit(99);
        jl_set_budget(&budget);
        int result = jl_code_run(code);
        fflush(NULL);
        _exit(result);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    rewind(file);
    out[fread(out, 1, OUTPUT_MAX - 1, file)] = 0;
    fclose(file);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static char out[OUTPUT_MAX];

TEST("Task_Create starts a task, Yield lets it run first, and Task_Join gives its value")
{
    CHECK_EQ(run(4 * COST, out), 42);
    CHECK_STR(out, "child\nparent\njoined\n");
}

TEST("Budget_Decrement takes its cost, and Budget_Check ends a task that cannot pay")
{
    CHECK_EQ(run(COST - 1, out), 3);
    CHECK(strstr(out, "parent\n") != NULL);
    CHECK(strstr(out, "joined\n") == NULL);
    CHECK(strstr(out, "has used up its budget: ops") != NULL);
}
