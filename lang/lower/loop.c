/* SPDX-License-Identifier: MIT */
/* Loops. A loop variable is a new value in each round. */
#include "lower/body.h"

#include <janusrt/status.h>

/* The body between the loop's own blocks. `next` is where `continue` goes. */
static void lower_rounds(struct jl_body *body, const struct jl_block *block, uint32_t next,
                         uint32_t after)
{
    struct jl_scope_of scope = {
        .nursery = JL_NO_NODE, .is_loop = true, .at_break = after, .at_continue = next};
    jl_low_enter(body, &scope);
    jl_low_block(body, block, JL_NO_NODE);
    jl_low_close(body);
    if (!body->dead) jl_low_jump(body, next);
}

void jl_low_while(struct jl_body *body, const struct jl_statement *statement)
{
    uint32_t head = jl_low_new_block(body), after = jl_low_new_block(body);
    jl_low_jump(body, head);
    jl_low_start(body, head);
    if (statement->kind == JL_S_WHILE) {
        uint32_t inside = jl_low_new_block(body);
        jl_low_condition(body, statement->value, inside, after);
        jl_low_start(body, inside);
    }
    lower_rounds(body, statement->body, head, after);
    jl_low_start(body, after);
}

/* for i in a..b: the limit is computed once. An inclusive range ends before the step, so that the
 * largest number of the type is no overflow. */
static void lower_range(struct jl_body *body, const struct jl_statement *statement)
{
    const struct jl_expr *range = statement->value;
    jl_type               type = statement->symbol->type;
    uint32_t              first = jl_low_expr(body, range->left);
    uint32_t              limit = jl_low_expr(body, range->right);
    uint32_t              head = jl_low_new_block(body), inside = jl_low_new_block(body),
             next = jl_low_new_block(body), after = jl_low_new_block(body);
    jl_low_at(body, range->at);
    uint32_t counter = jl_low_open(body, QT_Local, type);
    jl_low_emit(body, QT_Store, JL_VOID, counter, first, JL_NO_NODE);
    jl_low_jump(body, head);
    jl_low_start(body, head);
    uint32_t item = jl_low_emit(body, QT_Load, type, counter, JL_NO_NODE, JL_NO_NODE);
    uint32_t goes_on =
        jl_low_emit(body, range->inclusive ? QT_Le : QT_Lt, JL_BOOL, item, limit, JL_NO_NODE);
    jl_low_branch(body, QT_Branch, goes_on, inside, after);
    jl_low_start(body, inside);
    jl_low_name(body, item, statement->name.text);
    jl_low_bind(body, statement->symbol, item, false);
    lower_rounds(body, statement->body, next, after);
    jl_low_start(body, next);
    jl_low_at(body, range->at);
    if (range->inclusive) {
        uint32_t step = jl_low_new_block(body);
        uint32_t is_last = jl_low_emit(body, QT_Eq, JL_BOOL, item, limit, JL_NO_NODE);
        jl_low_branch(body, QT_Branch, is_last, after, step);
        jl_low_start(body, step);
    }
    uint32_t one = jl_low_const(body, type, 1);
    uint32_t more = jl_low_emit(body, QT_Add, type, item, one, JL_NO_NODE);
    jl_low_emit(body, QT_Store, JL_VOID, counter, more, JL_NO_NODE);
    jl_low_jump(body, head);
    jl_low_start(body, after);
}

static void lower_slice(struct jl_body *body, const struct jl_statement *statement)
{
    uint32_t slice = jl_low_expr(body, statement->value);
    uint32_t head = jl_low_new_block(body), inside = jl_low_new_block(body),
             next = jl_low_new_block(body), after = jl_low_new_block(body);
    jl_low_at(body, statement->value->at);
    uint32_t length = jl_low_emit(body, QT_Slice_Len, JL_I64, slice, JL_NO_NODE, JL_NO_NODE);
    uint32_t counter = jl_low_open(body, QT_Local, JL_I64);
    uint32_t zero = jl_low_const(body, JL_I64, 0);
    jl_low_emit(body, QT_Store, JL_VOID, counter, zero, JL_NO_NODE);
    jl_low_jump(body, head);
    jl_low_start(body, head);
    uint32_t index = jl_low_emit(body, QT_Load, JL_I64, counter, JL_NO_NODE, JL_NO_NODE);
    uint32_t goes_on = jl_low_emit(body, QT_Lt, JL_BOOL, index, length, JL_NO_NODE);
    jl_low_branch(body, QT_Branch, goes_on, inside, after);
    jl_low_start(body, inside);
    uint32_t item = jl_low_emit(body, QT_Slice_Get, 0, slice, index, JL_NO_NODE);
    jl_low_name(body, item, statement->name.text);
    jl_low_bind(body, statement->symbol, item, false);
    lower_rounds(body, statement->body, next, after);
    jl_low_start(body, next);
    jl_low_at(body, statement->value->at);
    uint32_t one = jl_low_const(body, JL_I64, 1);
    uint32_t more = jl_low_emit(body, QT_Add, JL_I64, index, one, JL_NO_NODE);
    jl_low_emit(body, QT_Store, JL_VOID, counter, more, JL_NO_NODE);
    jl_low_jump(body, head);
    jl_low_start(body, after);
}

/* for v in channel: until it is closed. Another error goes on. */
static void lower_channel(struct jl_body *body, const struct jl_statement *statement)
{
    uint32_t channel = jl_low_expr(body, statement->value);
    uint32_t head = jl_low_new_block(body), inside = jl_low_new_block(body),
             wrong = jl_low_new_block(body), other = jl_low_new_block(body),
             after = jl_low_new_block(body);
    jl_low_jump(body, head);
    jl_low_start(body, head);
    jl_low_at(body, statement->value->at);
    uint32_t got = jl_low_emit(body, QT_Channel_Recv, 0, channel, JL_NO_NODE, JL_NO_NODE);
    jl_low_branch(body, QT_Branch_Error, got, wrong, inside);
    jl_low_start(body, wrong);
    uint32_t error = jl_low_emit(body, QT_Error_Of, JL_ERROR, got, JL_NO_NODE, JL_NO_NODE);
    uint32_t closed = jl_low_open(body, QT_Error, JL_ERROR);
    jl_low_node(body, closed)->literal = JANUS_CLOSED;
    qt_add_error(body->module, "Closed", JANUS_CLOSED);
    uint32_t is_closed = jl_low_emit(body, QT_Eq, JL_BOOL, error, closed, JL_NO_NODE);
    jl_low_branch(body, QT_Branch, is_closed, after, other);
    jl_low_start(body, other);
    jl_low_fail(body, error);
    jl_low_start(body, inside);
    uint32_t item =
        jl_low_emit(body, QT_Value_Of, statement->symbol->type, got, JL_NO_NODE, JL_NO_NODE);
    jl_low_name(body, item, statement->name.text);
    jl_low_bind(body, statement->symbol, item, false);
    lower_rounds(body, statement->body, head, after);
    jl_low_start(body, after);
}

void jl_low_for(struct jl_body *body, const struct jl_statement *statement)
{
    const struct jl_expr *value = statement->value;
    if (value->kind == JL_E_RANGE)
        lower_range(body, statement);
    else if (jl_kind_of(body->types, value->type) == JL_CHANNEL)
        lower_channel(body, statement);
    else
        lower_slice(body, statement);
}
