/* SPDX-License-Identifier: MIT */
/* Structs, budgets, capabilities, arrays, closures. */
#include "lower/body.h"

#include <janusrt/budget.h>

static uint32_t *lower_args(struct jl_body *body, const struct jl_expr *expr)
{
    uint32_t *nodes = jl_new(body->low->arena, (expr->arg_count + 1) * sizeof *nodes);
    for (uint32_t i = 0; i < expr->arg_count; i++)
        nodes[i] = jl_low_expr(body, expr->args[i].value);
    return nodes;
}

/* Arguments are evaluated as they stand; the node of a field's value, or JL_NO_NODE. */
static uint32_t field_node(const struct jl_expr *expr, const uint32_t *nodes, uint32_t field)
{
    if (field >= expr->field_count || !expr->fields[field]) return JL_NO_NODE;
    for (uint32_t i = 0; i < expr->arg_count; i++)
        if (expr->args[i].value == expr->fields[field]) return nodes[i];
    return JL_NO_NODE;
}

static const int64_t budget_defaults[5] = {
    (int64_t)JANUS_DEFAULT_OPS,         (int64_t)JANUS_DEFAULT_MEMORY,
    (int64_t)JANUS_DEFAULT_SPAWN_COUNT, (int64_t)JANUS_DEFAULT_CHANNEL_OPS,
    (int64_t)JANUS_DEFAULT_SYSCALLS,
};
enum { DEFAULT_MAX_TASKS = 100, DEFAULT_BUFFER = 10000, DEFAULT_CHANNELS = 1000 };

static uint32_t default_budget(struct jl_body *body)
{
    uint32_t numbers[5];
    for (unsigned i = 0; i < 5; i++) numbers[i] = jl_low_const(body, JL_I64, budget_defaults[i]);
    uint32_t node = jl_low_open(body, QT_Budget_New, JL_BUDGET);
    for (unsigned i = 0; i < 5; i++) jl_low_add(body, node, numbers[i]);
    return node;
}

static uint32_t default_field(struct jl_body *body, jl_type type, uint32_t field)
{
    switch (type) {
    case JL_CAP_SPAWN:
        return field ? default_budget(body) : jl_low_const(body, JL_I64, DEFAULT_MAX_TASKS);
    case JL_CAP_CHANNEL:
        return jl_low_const(body, JL_I64, field ? DEFAULT_CHANNELS : DEFAULT_BUFFER);
    case JL_CAP_EXECUTOR: return jl_low_const(body, JL_I64, INT64_MAX); /* all back ends */
    default: return jl_low_const(body, JL_I64, budget_defaults[field]);
    }
}

/* `Budget{...}`, and capabilities. `CapSpawn.delegatable(...)` is a call. */
static uint32_t lower_literal(struct jl_body *body, const struct jl_expr *expr)
{
    uint32_t  count = expr->type == JL_BUDGET || expr->type == JL_CAP_BUDGET       ? 5
                      : expr->type == JL_CAP_SPAWN || expr->type == JL_CAP_CHANNEL ? 2
                                                                                   : 1;
    uint32_t *nodes = lower_args(body, expr), fields[5];
    jl_low_at(body, expr->at);
    for (uint32_t i = 0; i < count; i++) {
        fields[i] = field_node(expr, nodes, i);
        if (fields[i] == JL_NO_NODE) fields[i] = default_field(body, expr->type, i);
    }
    bool     is_budget = expr->type == JL_BUDGET;
    uint32_t parent = JL_NO_NODE;
    if (!is_budget && expr->authority) parent = jl_low_symbol(body, expr->authority);
    uint32_t node = jl_low_open(body, is_budget ? QT_Budget_New : QT_Cap_New, expr->type);
    for (uint32_t i = 0; i < count; i++) jl_low_add(body, node, fields[i]);
    if (parent != JL_NO_NODE) {
        jl_low_add(body, node, parent);
        jl_low_node(body, node)->flags |= QT_F_PARENT;
    }
    if (expr->kind == JL_E_CALL) jl_low_node(body, node)->flags |= QT_F_DELEGATABLE;
    return node;
}

uint32_t jl_low_struct(struct jl_body *body, const struct jl_expr *expr)
{
    if (jl_kind_of(body->types, expr->type) != JL_STRUCT) return lower_literal(body, expr);
    uint32_t *nodes = lower_args(body, expr);
    jl_low_at(body, expr->at);
    uint32_t node = jl_low_open(body, QT_Struct_New, expr->type);
    for (uint32_t i = 0; i < expr->field_count; i++)
        jl_low_add(body, node, field_node(expr, nodes, i));
    return node;
}

uint32_t jl_low_array(struct jl_body *body, const struct jl_expr *expr)
{
    uint32_t *nodes = lower_args(body, expr);
    jl_low_at(body, expr->at);
    uint32_t node = jl_low_open(body, QT_Slice_Of, expr->type);
    for (uint32_t i = 0; i < expr->arg_count; i++) jl_low_add(body, node, nodes[i]);
    return node;
}

uint32_t jl_low_closure(struct jl_body *body, const struct jl_expr *expr)
{
    uint32_t node = jl_low_open(body, QT_Closure_New, expr->type);
    jl_low_add_function(body, node, expr->function->lowered - 1);
    jl_low_push_captures(body, node, expr->function);
    return node;
}
