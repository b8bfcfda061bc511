/* SPDX-License-Identifier: MIT */
/* Expressions. */
#include "lower/body.h"

#include <string.h>

uint32_t jl_low_symbol(struct jl_body *body, const struct jl_symbol *symbol)
{
    if (symbol->kind == JL_SYMBOL_STATE) {
        uint32_t node = jl_low_open(body, QT_State_Get, symbol->type);
        jl_low_node(body, node)->literal = symbol->index;
        return node;
    }
    const struct jl_binding *binding = jl_low_binding(symbol);
    if (!binding->is_local) return binding->node;
    return jl_low_emit(body, QT_Load, symbol->type, binding->node, JL_NO_NODE, JL_NO_NODE);
}

static uint32_t lower_name(struct jl_body *body, const struct jl_expr *expr)
{
    const struct jl_symbol *symbol = expr->symbol;
    uint32_t                node;
    switch (symbol->kind) {
    case JL_SYMBOL_FUNCTION:
        node = jl_low_open(body, QT_Closure_New, expr->type);
        jl_low_add_function(body, node, symbol->function->lowered - 1);
        return node;
    case JL_SYMBOL_HOST_VALUE:
        node = jl_low_open(body, QT_Host_Value, expr->type);
        jl_low_node(body, node)->literal = symbol->index;
        return node;
    default: return jl_low_symbol(body, symbol);
    }
}

static uint32_t lower_float(struct jl_body *body, double number)
{
    int64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return jl_low_const(body, JL_F64, bits);
}

static uint32_t lower_string(struct jl_body *body, const struct jl_expr *expr)
{
    uint32_t        node = jl_low_open(body, QT_Str, JL_STR);
    struct qt_node *made = jl_low_node(body, node);
    made->text = expr->text;
    made->text_length = expr->length;
    return node;
}

static uint32_t lower_error(struct jl_body *body, const struct jl_expr *expr)
{
    uint32_t node = jl_low_open(body, QT_Error, JL_ERROR);
    jl_low_node(body, node)->literal = expr->error;
    qt_add_error(body->module, expr->name.text, expr->error);
    return node;
}

static uint32_t lower_member(struct jl_body *body, const struct jl_expr *expr)
{
    uint32_t left = jl_low_expr(body, expr->left);
    jl_low_at(body, expr->at);
    if (expr->is_len)
        return jl_low_emit(body, expr->left->type == JL_STR ? QT_Str_Len : QT_Slice_Len, JL_I64,
                           left, JL_NO_NODE, JL_NO_NODE);
    uint32_t node = jl_low_open(body, QT_Field_Get, expr->type);
    jl_low_node(body, node)->literal = expr->method;
    jl_low_add(body, node, left);
    return node;
}

static uint32_t lower_index(struct jl_body *body, const struct jl_expr *expr)
{
    const struct jl_expr *index = expr->right;
    uint32_t              left = jl_low_expr(body, expr->left);
    if (index->kind != JL_E_RANGE) {
        uint32_t at = jl_low_expr(body, index);
        jl_low_at(body, expr->at);
        return jl_low_emit(body, QT_Slice_Get, expr->type, left, at, JL_NO_NODE);
    }
    uint32_t from = jl_low_expr(body, index->left), to = jl_low_expr(body, index->right);
    jl_low_at(body, expr->at);
    if (index->inclusive) {
        uint32_t one = jl_low_const(body, JL_I64, 1);
        to = jl_low_emit(body, QT_Add, JL_I64, to, one, JL_NO_NODE);
    }
    return jl_low_emit(body, QT_Slice_Part, expr->type, left, from, to);
}

/* and, or, not */

static bool is_short_circuit(const struct jl_expr *expr)
{
    return expr->kind == JL_E_BINARY && (expr->binary == JL_AND || expr->binary == JL_OR);
}

static bool is_not(const struct jl_expr *expr)
{
    return expr->kind == JL_E_UNARY && expr->unary == JL_NOT;
}

void jl_low_condition(struct jl_body *body, const struct jl_expr *expr, uint32_t yes, uint32_t no)
{
    if (is_not(expr)) {
        jl_low_condition(body, expr->left, no, yes);
    } else if (is_short_circuit(expr)) {
        uint32_t second = jl_low_new_block(body);
        bool     is_and = expr->binary == JL_AND;
        jl_low_condition(body, expr->left, is_and ? second : yes, is_and ? no : second);
        jl_low_start(body, second);
        jl_low_condition(body, expr->right, yes, no);
    } else if (expr->kind == JL_E_BOOL) {
        jl_low_jump(body, expr->value ? yes : no);
    } else {
        uint32_t value = jl_low_expr(body, expr);
        jl_low_branch(body, QT_Branch, value, yes, no);
    }
}

/* Without effects and traps: it may be evaluated even if its value is not needed. */
static bool is_harmless(const struct jl_expr *expr)
{
    switch (expr->kind) {
    case JL_E_INT:
    case JL_E_FLOAT:
    case JL_E_BOOL: return true;
    case JL_E_NAME: return expr->type == JL_BOOL || jl_is_number(expr->type);
    case JL_E_UNARY: return expr->unary == JL_NOT && is_harmless(expr->left);
    case JL_E_BINARY:
        return expr->binary >= JL_EQ && is_harmless(expr->left) && is_harmless(expr->right);
    default: return false;
    }
}

static uint32_t lower_short_circuit(struct jl_body *body, const struct jl_expr *expr)
{
    bool is_and = expr->binary == JL_AND;
    if (is_harmless(expr->right)) {
        uint32_t left = jl_low_expr(body, expr->left), right = jl_low_expr(body, expr->right);
        return jl_low_emit(body, is_and ? QT_And : QT_Or, JL_BOOL, left, right, JL_NO_NODE);
    }
    uint32_t second = jl_low_new_block(body), after = jl_low_new_block(body);
    uint32_t result = jl_low_open(body, QT_Local, JL_BOOL);
    uint32_t left = jl_low_expr(body, expr->left);
    jl_low_emit(body, QT_Store, JL_VOID, result, left, JL_NO_NODE);
    jl_low_branch(body, QT_Branch, left, is_and ? second : after, is_and ? after : second);
    jl_low_start(body, second);
    uint32_t right = jl_low_expr(body, expr->right);
    jl_low_emit(body, QT_Store, JL_VOID, result, right, JL_NO_NODE);
    jl_low_jump(body, after);
    jl_low_start(body, after);
    return jl_low_emit(body, QT_Load, JL_BOOL, result, JL_NO_NODE, JL_NO_NODE);
}

static uint32_t lower_binary(struct jl_body *body, const struct jl_expr *expr)
{
    if (is_short_circuit(expr)) return lower_short_circuit(body, expr);
    uint32_t left = jl_low_expr(body, expr->left), right = jl_low_expr(body, expr->right);
    jl_low_at(body, expr->at);
    return jl_low_binary_of(body, expr->binary, expr->left->type, left, right);
}

static uint32_t lower_unary(struct jl_body *body, const struct jl_expr *expr)
{
    uint32_t left = jl_low_expr(body, expr->left);
    jl_low_at(body, expr->at);
    enum qt_op op = expr->unary == JL_NOT ? QT_Not : QT_Neg;
    return jl_low_emit(body, op, expr->type, left, JL_NO_NODE, JL_NO_NODE);
}

static uint32_t lower_channel(struct jl_body *body, const struct jl_expr *expr)
{
    uint32_t capacity = jl_low_expr(body, expr->left);
    uint32_t cap = expr->symbol ? jl_low_symbol(body, expr->symbol) : JL_NO_NODE;
    jl_low_at(body, expr->at);
    return jl_low_emit(body, QT_Channel_New, expr->type, capacity, cap, JL_NO_NODE);
}

static uint32_t lower_kind(struct jl_body *body, const struct jl_expr *expr)
{
    switch (expr->kind) {
    case JL_E_INT:
    case JL_E_BOOL: return jl_low_const(body, expr->type, (int64_t)expr->value);
    case JL_E_FLOAT: return lower_float(body, expr->number);
    case JL_E_STRING: return lower_string(body, expr);
    case JL_E_NAME: return lower_name(body, expr);
    case JL_E_MEMBER: return lower_member(body, expr);
    case JL_E_INDEX: return lower_index(body, expr);
    case JL_E_CALL: return jl_low_call(body, expr);
    case JL_E_UNARY: return lower_unary(body, expr);
    case JL_E_BINARY: return lower_binary(body, expr);
    case JL_E_TRY: return jl_low_try(body, expr);
    case JL_E_AWAIT: return jl_low_await(body, expr);
    case JL_E_ASYNC: return jl_low_async(body, expr->left);
    case JL_E_SPAWN: return jl_low_spawn(body, expr);
    case JL_E_ARRAY: return jl_low_array(body, expr);
    case JL_E_STRUCT: return jl_low_struct(body, expr);
    case JL_E_CLOSURE: return jl_low_closure(body, expr);
    case JL_E_ERROR: return lower_error(body, expr);
    case JL_E_CHANNEL: return lower_channel(body, expr);
    case JL_E_RANGE:
    case JL_E_NULL:
    case JL_E_BAD: break;
    }
    return jl_low_const(body, JL_I64, 0); /* the checker refuses these */
}

uint32_t jl_low_expr(struct jl_body *body, const struct jl_expr *expr)
{
    jl_low_at(body, expr->at);
    uint32_t node = lower_kind(body, expr);
    if (expr->type == JL_NEVER && !body->dead)
        jl_low_end(body, QT_Unreachable, JL_NO_NODE); /* a call that does not come back */
    if (!expr->coerce || node == JL_NO_NODE) return node;
    jl_low_at(body, expr->at);
    return jl_low_emit(body, QT_To_Interface, expr->coerce, node, JL_NO_NODE, JL_NO_NODE);
}
