/* SPDX-License-Identifier: MIT */
/* spawn, async, await, try, cancel. */
#include "lower/body.h"

void jl_low_cancel(struct jl_body *body)
{
    const struct jl_scope_of *scope = body->scope;
    while (scope && scope->nursery == JL_NO_NODE) scope = scope->outer;
    if (!scope) return; /* the checker refuses it */
    jl_low_emit(body, QT_Nursery_Cancel, JL_VOID, scope->nursery, JL_NO_NODE, JL_NO_NODE);
}

/* Adds the arguments of a call, a receiver or a closure first, to `nodes`. */
static uint32_t collect(struct jl_body *body, const struct jl_expr *call, uint32_t *nodes)
{
    uint32_t count = 0;
    if (call->call == JL_CALL_VALUE) nodes[count++] = jl_low_expr(body, call->left);
    if (call->call == JL_CALL_HOST && call->receiver)
        nodes[count++] = jl_low_expr(body, call->receiver);
    for (uint32_t i = 0; i < call->arg_count; i++)
        nodes[count++] = jl_low_expr(body, call->args[i].value);
    return count;
}

/* A task runs a function of the program. This makes one that calls the host, or a closure. */
static uint32_t add_thunk(struct jl_body *body, const struct jl_expr *call, const uint32_t *nodes,
                          uint32_t count)
{
    enum { THUNK = 3 };
    struct jl_lowering *low = body->low;
    struct jl_body      thunk;
    uint32_t            index = jl_low_add_child(low, body->index, "call", THUNK);
    bool                is_host = call->call == JL_CALL_HOST;
    jl_type             fn = is_host ? low->module->host->entries[call->host].fn : call->left->type;
    jl_type             result = jl_info(low->types, fn)->of;
    for (uint32_t i = 0; i < count; i++)
        qt_add_param(low->module, index, jl_format(low->arena, "a%u", i + 1),
                     jl_low_node(body, nodes[i])->type);
    struct qt_function *made = &low->module->functions[index];
    made->line = body->line;
    made->fails = jl_kind_of(low->types, result) == JL_FALLIBLE;
    jl_low_begin(&thunk, low, index);
    thunk.line = body->line;
    thunk.column = body->column;
    uint32_t node = jl_low_open(&thunk, is_host ? QT_Call_Host : QT_Call_Value, JL_BAD);
    jl_low_node(&thunk, node)->literal = is_host ? call->host : 0;
    for (uint32_t i = 0; i < count; i++) jl_low_add(&thunk, node, i);
    jl_low_type(&thunk, node);
    jl_low_unwrap(&thunk, node);
    jl_low_end(&thunk, result == JL_NEVER ? QT_Unreachable : QT_Return, JL_NO_NODE);
    jl_low_finish(&thunk);
    return index;
}

/* Spawn or Async_Call of a call. */
static uint32_t start_call(struct jl_body *body, const struct jl_expr *call, enum qt_op op)
{
    uint32_t *nodes = jl_new(body->low->arena, (call->arg_count + 2) * sizeof *nodes);
    uint32_t  count = collect(body, call, nodes);
    bool      is_plain = call->call == JL_CALL_FUNCTION;
    jl_low_at(body, call->at);
    uint32_t function =
        is_plain ? call->callee_function->lowered - 1 : add_thunk(body, call, nodes, count);
    uint32_t node = jl_low_open(body, op, JL_BAD);
    jl_low_add_function(body, node, function);
    for (uint32_t i = 0; i < count; i++) jl_low_add(body, node, nodes[i]);
    return node;
}

uint32_t jl_low_spawn(struct jl_body *body, const struct jl_expr *expr)
{
    uint32_t cap = expr->cap ? jl_low_expr(body, expr->cap) : JL_NO_NODE, node;
    if (expr->function) {
        jl_low_at(body, expr->at);
        node = jl_low_open(body, QT_Spawn, JL_BAD);
        jl_low_add_function(body, node, expr->function->lowered - 1);
        jl_low_push_captures(body, node, expr->function);
    } else {
        node = start_call(body, expr->left, QT_Spawn);
    }
    struct qt_node *made = jl_low_node(body, node);
    if (expr->try_spawn) made->flags |= QT_F_TRY;
    if (expr->cap) {
        made->flags |= QT_F_WITH_CAP;
        jl_low_add(body, node, cap);
    }
    return jl_low_type(body, node);
}

uint32_t jl_low_async(struct jl_body *body, const struct jl_expr *call)
{
    return jl_low_type(body, start_call(body, call, QT_Async_Call));
}

/* Whether awaiting the call starts a task; a call of the host or of an actor waits by itself. */
static bool starts_task(const struct jl_expr *await)
{
    const struct jl_expr *left = await->left;
    return left->kind == JL_E_CALL && left->call == JL_CALL_FUNCTION && !await->direct;
}

uint32_t jl_low_await(struct jl_body *body, const struct jl_expr *expr)
{
    const struct jl_expr *left = expr->left;
    bool                  is_task = starts_task(expr);
    uint32_t              node = is_task ? jl_low_async(body, left) : jl_low_expr(body, left);
    if (node == JL_NO_NODE) return node;
    jl_low_at(body, expr->at);
    if (jl_kind_of(body->types, jl_low_node(body, node)->type) == JL_TASK)
        node = jl_low_emit(body, QT_Await, JL_BAD, node, JL_NO_NODE, JL_NO_NODE);
    return jl_low_unwrap(body, node);
}

uint32_t jl_low_try(struct jl_body *body, const struct jl_expr *expr)
{
    uint32_t node = jl_low_expr(body, expr->left);
    jl_low_at(body, expr->at);
    return jl_low_unwrap(body, node);
}
