/* SPDX-License-Identifier: MIT */
/* The type of each node, by the rule of its opcode. */
#include "qtjir/inner.h"

#include <stdarg.h>
#include <stdlib.h>

jl_type qt_refuse(struct qt_rule *r, const char *format, ...)
{
    char    text[300];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    r->why = jl_format(r->module->arena, "%s", text);
    return JL_BAD;
}

bool qt_is_storable(const struct jl_types *types, jl_type type)
{
    switch (jl_kind_of(types, type)) {
    case JL_BAD:
    case JL_VOID:
    case JL_NEVER:
    case JL_NURSERY:
    case JL_FALLIBLE:
    case JL_START: return false;
    default: return true;
    }
}

static bool holds_directly(const struct jl_types *types, const uint8_t *holds, jl_type type)
{
    const struct jl_type_info *info = jl_info(types, type);
    if (info->kind == JL_TASK) return true;
    if (info->kind == JL_SLICE || info->kind == JL_FALLIBLE) return holds[info->of] != 0;
    for (uint32_t i = 0; info->kind == JL_STRUCT && i < info->field_count; i++)
        if (holds[info->fields[i].type]) return true;
    return false;
}

/* Structs may contain each other through slices, so answers are found for all types together. */
bool qt_holds_task(const struct qt_module *module, jl_type type)
{
    const struct jl_types *types = module->types;
    struct qt_task_types  *known = module->task_types;
    if (type < known->count) return known->holds[type] != 0;
    uint8_t *holds = jl_new(module->arena, 2 * (size_t)types->count);
    bool     changed = true;
    for (jl_type t = 0; t < known->count; t++) holds[t] = known->holds[t];
    while (changed) {
        changed = false;
        for (jl_type t = known->count; t < types->count; t++)
            if (!holds[t] && holds_directly(types, holds, t)) holds[t] = changed = true;
    }
    known->holds = holds;
    known->count = types->count;
    return holds[type] != 0;
}

/* How many values a copy has, if each slice had one element; NO_WAY: it cannot be copied, or
 * contains itself. */
enum { NO_WAY = 10000, DEPTH_MAX = 100 };

static uint32_t weight(const struct jl_types *types, uint32_t *weights, jl_type type,
                       unsigned depth)
{
    const struct jl_type_info *info = jl_info(types, type);
    if (weights[type] != 0) return weights[type];
    if (depth > DEPTH_MAX) return NO_WAY;
    weights[type] = NO_WAY; /* for the types inside it */
    uint32_t sum = 1;
    switch (info->kind) {
    case JL_FN:
    case JL_TASK:
    case JL_IFACE:
    case JL_HOST:
    case JL_SUPERVISOR:
    case JL_NURSERY: return NO_WAY;
    case JL_SLICE:
    case JL_FALLIBLE: sum += weight(types, weights, info->of, depth + 1); break;
    case JL_STRUCT:
        for (uint32_t i = 0; i < info->field_count && sum < NO_WAY; i++)
            sum += weight(types, weights, info->fields[i].type, depth + 1);
        break;
    default: break;
    }
    weights[type] = sum < NO_WAY ? sum : NO_WAY;
    return weights[type];
}

bool qt_may_travel(const struct qt_module *module, jl_type type)
{
    struct qt_task_types *known = module->task_types;
    if (type >= known->weight_count) {
        known->weight_count = module->types->count;
        known->weights = jl_new(module->arena, known->weight_count * sizeof *known->weights);
    }
    return weight(module->types, known->weights, type, 0) < NO_WAY;
}

jl_type qt_operand_type(const struct qt_rule *r, uint32_t position)
{
    if (position >= r->node->operand_count) return JL_BAD;
    if (r->node->operands[position].kind != QT_NODE) return JL_BAD; /* a block or a function */
    return r->function->nodes[r->node->operands[position].index].type;
}

bool qt_wants(struct qt_rule *r, uint32_t position, jl_type type)
{
    jl_type is = qt_operand_type(r, position);
    if (is == type && is != JL_BAD) return true;
    qt_refuse(r, "operand %u is %s, and must be %s", position + 1, qt_type_text(r->module, is),
              qt_type_text(r->module, type));
    return false;
}

bool qt_wants_all(struct qt_rule *r, uint32_t first, uint32_t count, const jl_type *types,
                  uint32_t type_count, const char *what)
{
    if (count != type_count) {
        qt_refuse(r, "%s takes %u values, and gets %u", what, type_count, count);
        return false;
    }
    for (uint32_t i = 0; i < count; i++)
        if (!qt_wants(r, first + i, types[i])) return false;
    return true;
}

bool qt_shape_holds(const struct qt_module *module, uint32_t function, uint32_t node,
                    const char **why)
{
    const struct qt_function *f = &module->functions[function];
    const struct qt_node     *n = &f->nodes[node];
    struct qt_rule            r = {module, f, n, NULL};
    const struct qt_op_info  *info = &qt_ops[n->op];
    if (n->operand_count < info->least || (info->most != QT_MANY && n->operand_count > info->most))
        qt_refuse(&r, "it has %u operands", n->operand_count);
    for (uint32_t i = 0; i < n->operand_count && r.why == NULL; i++) {
        enum qt_operand_kind kind = qt_kind_at((enum qt_op)n->op, i);
        uint32_t             limit = kind == QT_NODE    ? f->node_count
                                     : kind == QT_BLOCK ? f->block_count
                                                        : module->function_count;
        if (n->operands[i].kind != (uint32_t)kind)
            qt_refuse(&r, "operand %u must be a %s", i + 1,
                      kind == QT_NODE    ? "value"
                      : kind == QT_BLOCK ? "block"
                                         : "function");
        else if (n->operands[i].index >= limit)
            qt_refuse(&r, "operand %u does not exist", i + 1);
        else if (kind == QT_NODE && !qt_has_value(&f->nodes[n->operands[i].index]))
            qt_refuse(&r, "operand %u has no value", i + 1);
    }
    if (why != NULL) *why = r.why;
    return r.why == NULL;
}

static jl_type numbers_rule(struct qt_rule *r)
{
    jl_type first = qt_operand_type(r, 0);
    switch (r->node->op) {
    case QT_Add:
    case QT_Sub:
    case QT_Mul:
    case QT_Div:
        if (!jl_is_number(first)) return qt_refuse(r, "operand 1 must be a number");
        return qt_wants(r, 1, first) ? first : (jl_type)JL_BAD;
    case QT_Rem:
        if (!jl_is_integer(first)) return qt_refuse(r, "operand 1 must be an integer");
        return qt_wants(r, 1, first) ? first : (jl_type)JL_BAD;
    case QT_Neg: return jl_is_number(first) ? first : qt_refuse(r, "operand 1 must be a number");
    case QT_Eq:
    case QT_Ne:
        if (!jl_is_number(first) && first != JL_BOOL && first != JL_STR && first != JL_ERROR)
            return qt_refuse(r, "values of %s cannot be compared", qt_type_text(r->module, first));
        return qt_wants(r, 1, first) ? JL_BOOL : JL_BAD;
    case QT_Lt:
    case QT_Le:
        if (!jl_is_number(first)) return qt_refuse(r, "operand 1 must be a number");
        return qt_wants(r, 1, first) ? JL_BOOL : JL_BAD;
    case QT_And:
    case QT_Or: return qt_wants(r, 0, JL_BOOL) && qt_wants(r, 1, JL_BOOL) ? JL_BOOL : JL_BAD;
    default: return qt_wants(r, 0, JL_BOOL) ? JL_BOOL : JL_BAD; /* Not */
    }
}

static jl_type value_rule(struct qt_rule *r)
{
    jl_type type = r->node->type, first = qt_operand_type(r, 0);
    switch (r->node->op) {
    case QT_Const:
        return jl_is_number(type) || type == JL_BOOL
                   ? type
                   : qt_refuse(r, "a constant is no %s", qt_type_text(r->module, type));
    case QT_Str: return JL_STR;
    case QT_Error: return JL_ERROR;
    case QT_Param: return type;
    case QT_Local:
        return qt_is_storable(r->module->types, type)
                   ? type
                   : qt_refuse(r, "a variable cannot be %s", qt_type_text(r->module, type));
    case QT_Load: return first;
    case QT_Store: return qt_wants(r, 1, first) ? JL_VOID : JL_BAD;
    case QT_Convert:
        if (jl_is_number(type) && jl_is_number(first)) return type;
        if (type == JL_STR &&
            (jl_is_number(first) || first == JL_BOOL || first == JL_ERROR || first == JL_STR))
            return type;
        return qt_refuse(r, "%s does not become %s", qt_type_text(r->module, first),
                         qt_type_text(r->module, type));
    case QT_Concat: return qt_wants(r, 0, JL_STR) && qt_wants(r, 1, JL_STR) ? JL_STR : JL_BAD;
    case QT_Str_Len: return qt_wants(r, 0, JL_STR) ? JL_I64 : JL_BAD;
    default: return numbers_rule(r);
    }
}

static jl_type return_rule(struct qt_rule *r)
{
    const struct qt_function *f = r->function;
    if (f->result == JL_VOID || f->result == JL_NEVER)
        return r->node->operand_count == 0 ? JL_VOID : qt_refuse(r, "the function has no result");
    if (r->node->operand_count == 0)
        return qt_refuse(r, "the function's result is %s", qt_type_text(r->module, f->result));
    return qt_wants(r, 0, f->result) ? JL_VOID : JL_BAD;
}

static jl_type control_rule(struct qt_rule *r)
{
    const struct jl_types *types = r->module->types;
    jl_type                first = qt_operand_type(r, 0);
    switch (r->node->op) {
    case QT_Branch: return qt_wants(r, 0, JL_BOOL) ? JL_VOID : JL_BAD;
    case QT_Branch_Error:
    case QT_Error_Of:
    case QT_Value_Of:
        if (jl_kind_of(types, first) != JL_FALLIBLE)
            return qt_refuse(r, "operand 1 is %s, which cannot fail",
                             qt_type_text(r->module, first));
        if (r->node->op == QT_Branch_Error) return JL_VOID;
        if (r->node->op == QT_Error_Of) return JL_ERROR;
        first = jl_info(types, first)->of;
        return first == JL_VOID ? qt_refuse(r, "operand 1 holds no value") : first;
    case QT_Return: return return_rule(r);
    case QT_Fail:
        if (!r->function->fails) return qt_refuse(r, "the function does not fail");
        return qt_wants(r, 0, JL_ERROR) ? JL_VOID : JL_BAD;
    case QT_End_Task: return qt_wants(r, 0, JL_ERROR) ? JL_VOID : JL_BAD;
    case QT_Panic: return qt_wants(r, 0, JL_STR) ? JL_VOID : JL_BAD;
    default: return JL_VOID; /* Jump, Unreachable, Budget_ */
    }
}

static jl_type by_group(struct qt_rule *r)
{
    switch (r->node->op) {
    case QT_Jump:
    case QT_Branch:
    case QT_Branch_Error:
    case QT_Return:
    case QT_Fail:
    case QT_End_Task:
    case QT_Panic:
    case QT_Unreachable:
    case QT_Error_Of:
    case QT_Value_Of:
    case QT_Budget_Decrement:
    case QT_Budget_Check: return control_rule(r);
    case QT_Call:
    case QT_Call_Value:
    case QT_Call_Host:
    case QT_Host_Value:
    case QT_Closure_New:
    case QT_Defer_Push:
    case QT_Defer_Pop:
    case QT_Interface_Call:
    case QT_To_Interface: return qt_rule_call(r);
    case QT_Actor_New:
    case QT_Actor_Send:
    case QT_Actor_Call:
    case QT_Supervisor_New:
    case QT_Supervisor_Spawn:
    case QT_Cap_New:
    case QT_Cap_Budget:
    case QT_Budget_New: return qt_rule_actor(r);
    default: break;
    }
    if (r->node->op < QT_Struct_New && r->node->op != QT_State_Get && r->node->op != QT_State_Set)
        return value_rule(r);
    if (r->node->op < QT_Jump) return qt_rule_data(r);
    return qt_rule_task(r);
}

jl_type qt_rule_type(const struct qt_module *module, uint32_t function, uint32_t node,
                     const char **why)
{
    const struct qt_function *f = &module->functions[function];
    struct qt_rule            r = {module, f, &f->nodes[node], NULL};
    jl_type                   type = JL_BAD;
    if (qt_shape_holds(module, function, node, &r.why)) type = by_group(&r);
    if (type == JL_BAD && r.why == NULL) r.why = "it has no type";
    if (why != NULL) *why = r.why;
    return type;
}
