/* SPDX-License-Identifier: MIT */
/* Calls, closures and interfaces in C. */
#include "emit/c.h"

/* "    v3 = ", or "    v3_error = " of a type !T; nothing if there is no value. */
static void begin_call(struct jl_emitter *e)
{
    bool fails = jl_kind_of(e->types, e->node->type) == JL_FALLIBLE;
    jl_c_put(e, "    ");
    if (!fails && !jl_c_has_value(e, e->node->type)) return;
    jl_c_put_result(e);
    jl_c_put(e, fails ? "_error = " : " = ");
}

/* "&v3, " if the callee writes the value there. */
static void put_out(struct jl_emitter *e)
{
    bool fails = jl_kind_of(e->types, e->node->type) == JL_FALLIBLE;
    if (!fails || !jl_c_has_value(e, e->node->type)) return;
    jl_c_put(e, "&");
    jl_c_put_result(e);
}

struct list {
    struct jl_emitter *e;
    bool               any;
};

static void comma(struct list *list)
{
    if (list->any) jl_c_put(list->e, ", ");
    list->any = true;
}

static void put_operands(struct list *list, uint32_t first)
{
    for (uint32_t i = first; i < list->e->node->operand_count; i++) {
        comma(list);
        jl_c_put_operand(list->e, i);
    }
}

static bool takes_out(const struct jl_emitter *e)
{
    return jl_kind_of(e->types, e->node->type) == JL_FALLIBLE && jl_c_has_value(e, e->node->type);
}

static void put_function_call(struct jl_emitter *e)
{
    uint32_t    callee = e->node->operands[0].index;
    struct list list = {e, false};
    begin_call(e);
    jl_c_put_function_name(e, "f", callee);
    jl_c_put(e, "(");
    if (takes_out(e)) {
        comma(&list);
        put_out(e);
    }
    if (e->module->functions[callee].actor) {
        comma(&list);
        jl_c_put(e, "self");
    }
    put_operands(&list, 1);
    jl_c_put(e, ");\n");
}

/* The C type of a closure's code. */
static void put_code_type(struct jl_emitter *e, jl_type fn)
{
    const struct jl_type_info *info = jl_info(e->types, fn);
    bool                       fails = jl_kind_of(e->types, info->of) == JL_FALLIBLE;
    if (fails) {
        jl_c_put(e, "int64_t");
    } else if (jl_c_has_value(e, info->of)) {
        jl_c_put_type(e, info->of);
    } else {
        jl_c_put(e, "void");
    }
    jl_c_put(e, " (*)(");
    if (fails && jl_c_has_value(e, info->of)) {
        jl_c_put_type(e, info->of);
        jl_c_put(e, " *, ");
    }
    jl_c_put(e, "void *");
    for (uint32_t i = 0; i < info->param_count; i++) {
        jl_c_put(e, ", ");
        jl_c_put_type(e, info->params[i]);
    }
    jl_c_put(e, ")");
}

static void put_value_call(struct jl_emitter *e)
{
    struct list list = {e, false};
    begin_call(e);
    jl_c_put(e, "((");
    put_code_type(e, jl_c_operand_type(e, 0));
    jl_c_put(e, ")(uintptr_t)");
    jl_c_put_operand(e, 0);
    jl_c_put(e, ".code)(");
    if (takes_out(e)) {
        comma(&list);
        put_out(e);
    }
    comma(&list);
    jl_c_put_operand(e, 0);
    jl_c_put(e, ".environment");
    put_operands(&list, 1);
    jl_c_put(e, ");\n");
}

/* The addresses of the arguments from `first` on: "arguments". */
static void put_addresses(struct jl_emitter *e, uint32_t first)
{
    jl_c_put(e, "        const void *arguments[] = {");
    for (uint32_t i = first; i < e->node->operand_count; i++) {
        jl_c_put(e, "%s&", i > first ? ", " : "");
        jl_c_put_operand(e, i);
    }
    if (e->node->operand_count <= first) jl_c_put(e, "NULL");
    jl_c_put(e, "};\n");
}

static void put_out_address(struct jl_emitter *e)
{
    if (jl_c_has_value(e, e->node->type)) {
        jl_c_put(e, "&");
        jl_c_put_result(e);
    } else {
        jl_c_put(e, "NULL");
    }
}

static void put_host_call(struct jl_emitter *e)
{
    const struct jl_host_entry *entry = &e->module->host->entries[e->node->literal];
    if (!entry->row->symbol) {
        jl_c_cannot(e, "the host's function `%s` has no C name, so a built program cannot call it",
                    entry->name);
        return;
    }
    bool fails = jl_kind_of(e->types, e->node->type) == JL_FALLIBLE;
    jl_c_put(e, "    {\n");
    put_addresses(e, 0);
    jl_c_put(e, "        int64_t error = %s(", entry->row->symbol);
    put_out_address(e);
    jl_c_put(e, ", arguments);\n");
    if (fails) {
        jl_c_put(e, "        ");
        jl_c_put_result(e);
        jl_c_put(e, "_error = error < 0 ? error : 0;\n    }\n");
        return;
    }
    jl_c_put(e, "        if (UNLIKELY(error < 0)) jl_host_failed(\"%s\", error, ", entry->name);
    jl_c_put_place(e);
    jl_c_put(e, ");\n    }\n");
}

static void put_host_value(struct jl_emitter *e)
{
    const struct jl_host_entry *entry = &e->module->host->entries[e->node->literal];
    if (!entry->row->symbol) {
        jl_c_cannot(e, "the host's value `%s` has no C name, so a built program cannot use it",
                    entry->name);
        return;
    }
    jl_c_put(e, "    ");
    jl_c_put_result(e);
    jl_c_put(e, " = %s;\n", entry->row->symbol);
}

static void put_interface_call(struct jl_emitter *e)
{
    jl_c_put(e, "    {\n");
    put_addresses(e, 1);
    jl_c_put(e, "        ");
    jl_c_put_result(e);
    jl_c_put(e, "_error = jl_interface_call(");
    jl_c_put_operand(e, 0);
    jl_c_put(e, ", %u, arguments, ", (unsigned)e->node->literal);
    put_out_address(e);
    jl_c_put(e, ");\n    }\n");
}

static void put_to_interface(struct jl_emitter *e)
{
    jl_c_put(e, "    ");
    jl_c_put_result(e);
    jl_c_put(e, " = jl_to_interface(");
    jl_c_put_operand(e, 0);
    jl_c_put(e, ", &interface_%u, ", e->node->type);
    jl_c_put_place(e);
    jl_c_put(e, ");\n");
}

/* Fills "captures", a pointer to an environment; NULL if nothing is captured. */
static void put_environment(struct jl_emitter *e, uint32_t function, bool with_self)
{
    if (e->node->operand_count < 2 && !with_self) {
        jl_c_put(e, "        void *captures = NULL;\n");
        return;
    }
    jl_c_put(e, "        struct ");
    jl_c_put_function_name(e, "E", function);
    jl_c_put(e, " *captures = jl_environment(sizeof *captures);\n");
    if (with_self) jl_c_put(e, "        captures->self = self;\n");
    for (uint32_t i = 1; i < e->node->operand_count; i++) {
        jl_c_put(e, "        captures->a%u = ", i - 1);
        jl_c_put_operand(e, i);
        jl_c_put(e, ";\n");
    }
}

static void put_closure(struct jl_emitter *e)
{
    uint32_t function = e->node->operands[0].index;
    jl_c_put(e, "    {\n");
    put_environment(e, function, false);
    jl_c_put(e, "        ");
    jl_c_put_result(e);
    jl_c_put(e, " = (struct jl_closure){(const void *)(uintptr_t)");
    jl_c_put_function_name(e, "c", function);
    jl_c_put(e, ", captures};\n    }\n");
}

static void put_defer(struct jl_emitter *e)
{
    uint32_t function = e->node->operands[0].index;
    jl_c_put(e, "    {\n");
    put_environment(e, function, e->module->functions[function].actor != 0);
    jl_c_put(e, "        jl_defer_push(");
    jl_c_put_function_name(e, "d", function);
    jl_c_put(e, ", captures);\n    }\n");
}

void jl_c_put_call(struct jl_emitter *e)
{
    switch (e->node->op) {
    case QT_Call: put_function_call(e); break;
    case QT_Call_Value: put_value_call(e); break;
    case QT_Call_Host: put_host_call(e); break;
    case QT_Host_Value: put_host_value(e); break;
    case QT_Interface_Call: put_interface_call(e); break;
    case QT_To_Interface: put_to_interface(e); break;
    case QT_Closure_New: put_closure(e); break;
    default: put_defer(e); break;
    }
}
