/* SPDX-License-Identifier: MIT */
/* Calls. Operands are evaluated from left to right, the callee or receiver first. */
#include "lower/body.h"

static uint32_t *lower_args(struct jl_body *body, const struct jl_expr *expr)
{
    uint32_t *nodes = jl_new(body->low->arena, (expr->arg_count + 1) * sizeof *nodes);
    for (uint32_t i = 0; i < expr->arg_count; i++)
        nodes[i] = jl_low_expr(body, expr->args[i].value);
    jl_low_at(body, expr->at);
    return nodes;
}

/* `first`: a callee or a receiver before the arguments, or JL_NO_NODE. */
static uint32_t lower_with(struct jl_body *body, const struct jl_expr *expr, enum qt_op op,
                           uint32_t first, int64_t literal)
{
    uint32_t *nodes = lower_args(body, expr);
    uint32_t  node = jl_low_open(body, op, JL_BAD);
    jl_low_node(body, node)->literal = literal;
    if (first != JL_NO_NODE) jl_low_add(body, node, first);
    for (uint32_t i = 0; i < expr->arg_count; i++) jl_low_add(body, node, nodes[i]);
    return jl_low_type(body, node);
}

static uint32_t lower_function(struct jl_body *body, const struct jl_expr *expr)
{
    uint32_t *nodes = lower_args(body, expr);
    uint32_t  node = jl_low_open(body, QT_Call, JL_BAD);
    jl_low_add_function(body, node, expr->callee_function->lowered - 1);
    for (uint32_t i = 0; i < expr->arg_count; i++) jl_low_add(body, node, nodes[i]);
    return jl_low_type(body, node);
}

static uint32_t lower_receiver(struct jl_body *body, const struct jl_expr *expr)
{
    return expr->receiver ? jl_low_expr(body, expr->receiver) : JL_NO_NODE;
}

/* The last argument, as that of `array(T, n)`. */
static uint32_t last_argument(struct jl_body *body, const struct jl_expr *expr)
{
    uint32_t node = jl_low_expr(body, expr->args[expr->arg_count - 1].value);
    jl_low_at(body, expr->at);
    return node;
}

static uint32_t lower_convert(struct jl_body *body, const struct jl_expr *expr)
{
    uint32_t value = last_argument(body, expr);
    if (expr->args[0].value->type == expr->type) return value;
    return jl_low_emit(body, QT_Convert, expr->type, value, JL_NO_NODE, JL_NO_NODE);
}

static uint32_t lower_start(struct jl_body *body, const struct jl_expr *expr)
{
    uint32_t                node = jl_low_open(body, QT_Actor_New, expr->type);
    jl_type                 actor = jl_info(body->types, expr->type)->of;
    const struct qt_module *module = body->module;
    for (uint32_t i = 0; i < module->actor_count; i++)
        if (module->actors[i].type == actor) jl_low_node(body, node)->literal = i;
    return node;
}

/* An interface's call, or a supervisor's spawn: if its type is not fallible, its error leaves. */
static uint32_t lower_outward(struct jl_body *body, const struct jl_expr *expr, uint32_t node)
{
    bool is_kept = jl_kind_of(body->types, expr->type) == JL_FALLIBLE;
    return is_kept ? node : jl_low_unwrap(body, node);
}

static uint32_t lower_method(struct jl_body *body, const struct jl_expr *expr)
{
    uint32_t receiver = lower_receiver(body, expr);
    switch (expr->call) {
    case JL_CALL_HOST: return lower_with(body, expr, QT_Call_Host, receiver, expr->host);
    case JL_CALL_SEND: return lower_with(body, expr, QT_Channel_Send, receiver, 0);
    case JL_CALL_RECV: return lower_with(body, expr, QT_Channel_Recv, receiver, 0);
    case JL_CALL_CLOSE: lower_with(body, expr, QT_Channel_Close, receiver, 0); return JL_NO_NODE;
    case JL_CALL_ACTOR_SEND: return lower_with(body, expr, QT_Actor_Send, receiver, expr->method);
    case JL_CALL_ACTOR_CALL: return lower_with(body, expr, QT_Actor_Call, receiver, expr->method);
    case JL_CALL_SUPERVISOR_SPAWN:
        return lower_outward(body, expr, lower_with(body, expr, QT_Supervisor_Spawn, receiver, 0));
    case JL_CALL_INTERFACE:
        return lower_outward(body, expr,
                             lower_with(body, expr, QT_Interface_Call, receiver, expr->method));
    case JL_CALL_TO_BUDGET: return lower_with(body, expr, QT_Cap_Budget, receiver, 0);
    default: /* JL_CALL_WITH */
        return lower_with(body, expr, QT_Field_With, receiver, expr->method);
    }
}

static uint32_t lower_kind(struct jl_body *body, const struct jl_expr *expr)
{
    switch (expr->call) {
    case JL_CALL_FUNCTION:
    case JL_CALL_SELF: return lower_function(body, expr);
    case JL_CALL_VALUE:
        return lower_with(body, expr, QT_Call_Value, jl_low_expr(body, expr->left), 0);
    case JL_CALL_CONVERT: return lower_convert(body, expr);
    case JL_CALL_ARRAY:
        return jl_low_emit(body, QT_Slice_New, expr->type, last_argument(body, expr), JL_NO_NODE,
                           JL_NO_NODE);
    case JL_CALL_CANCEL: jl_low_cancel(body); return JL_NO_NODE;
    case JL_CALL_PANIC: jl_low_end(body, QT_Panic, last_argument(body, expr)); return JL_NO_NODE;
    case JL_CALL_ACTOR_NEW: return lower_start(body, expr);
    case JL_CALL_SUPERVISOR_NEW:
        return jl_low_emit(body, QT_Supervisor_New, JL_SUPERVISOR, JL_NO_NODE, JL_NO_NODE,
                           JL_NO_NODE);
    case JL_CALL_CAP_NEW: return jl_low_struct(body, expr);
    default: return lower_method(body, expr);
    }
}

uint32_t jl_low_call(struct jl_body *body, const struct jl_expr *expr)
{
    uint32_t node = lower_kind(body, expr);
    jl_type  type = node == JL_NO_NODE ? (jl_type)JL_VOID : jl_low_node(body, node)->type;
    return type == JL_VOID || type == JL_NEVER ? JL_NO_NODE : node;
}
