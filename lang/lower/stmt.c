/* SPDX-License-Identifier: MIT */
/* Statements. */
#include "lower/body.h"

void jl_low_block(struct jl_body *body, const struct jl_block *block, uint32_t nursery)
{
    struct jl_scope_of scope = {.nursery = nursery};
    jl_low_enter(body, &scope);
    for (uint32_t i = 0; i < block->count && !body->dead; i++)
        jl_low_statement(body, block->statements[i]);
    jl_low_close(body);
}

static void lower_let(struct jl_body *body, const struct jl_statement *statement)
{
    uint32_t value = jl_low_expr(body, statement->value);
    jl_low_name(body, value, statement->name.text);
    jl_low_bind(body, statement->symbol, value, false);
}

static void lower_var(struct jl_body *body, const struct jl_statement *statement)
{
    uint32_t value = jl_low_expr(body, statement->value);
    jl_low_at(body, statement->at);
    uint32_t local = jl_low_open(body, QT_Local, statement->symbol->type);
    jl_low_name(body, local, statement->name.text);
    jl_low_emit(body, QT_Store, JL_VOID, local, value, JL_NO_NODE);
    jl_low_bind(body, statement->symbol, local, true);
}

/* `nursery with cap` is the scope of C37. A plain nursery in :sovereign uses the capability in
 * scope for its children. */
static void lower_nursery(struct jl_body *body, const struct jl_statement *statement)
{
    uint32_t cap = JL_NO_NODE;
    if (statement->value)
        cap = jl_low_expr(body, statement->value);
    else if (statement->symbol)
        cap = jl_low_symbol(body, statement->symbol);
    jl_low_at(body, statement->at);
    uint32_t nursery = jl_low_emit(body, QT_Nursery_Begin, JL_NURSERY, cap, JL_NO_NODE, JL_NO_NODE);
    if (statement->value) jl_low_node(body, nursery)->flags = QT_F_WITH_CAP;
    jl_low_block(body, statement->body, nursery);
}

static void lower_if(struct jl_body *body, const struct jl_statement *statement)
{
    uint32_t yes = jl_low_new_block(body), no = jl_low_new_block(body);
    uint32_t join = statement->otherwise ? jl_low_new_block(body) : no;
    jl_low_condition(body, statement->value, yes, no);
    jl_low_start(body, yes);
    jl_low_block(body, statement->body, JL_NO_NODE);
    bool goes_on = !body->dead;
    if (goes_on) jl_low_jump(body, join);
    if (statement->otherwise) {
        jl_low_start(body, no);
        jl_low_block(body, statement->otherwise, JL_NO_NODE);
        if (body->dead && !goes_on) return;
        if (!body->dead) jl_low_jump(body, join);
    }
    jl_low_start(body, join);
}

void jl_low_return(struct jl_body *body, uint32_t value)
{
    jl_type result = body->module->functions[body->index].result;
    if (result == JL_VOID) {
        jl_low_end(body, QT_Return, JL_NO_NODE);
    } else if (value != JL_NO_NODE) {
        jl_low_end(body, QT_Return, value);
    } else if (result == JL_I64 && body->is_unit) {
        jl_low_end(body, QT_Return, jl_low_const(body, JL_I64, 0));
    } else {
        jl_low_end(body, QT_Unreachable, JL_NO_NODE); /* the checker knows that nothing gets here */
    }
}

static void lower_return(struct jl_body *body, const struct jl_statement *statement)
{
    uint32_t value = JL_NO_NODE;
    jl_type  type = JL_VOID;
    if (statement->value) {
        value = jl_low_expr(body, statement->value);
        type = statement->value->type;
    }
    jl_low_at(body, statement->at);
    if (body->dead) return;
    if (type == JL_ERROR && body->fails) {
        jl_low_fail(body, value);
        return;
    }
    jl_low_leave(body, NULL);
    jl_low_return(body, value);
}

static void lower_jump(struct jl_body *body, bool is_break)
{
    struct jl_scope_of *scope = body->scope;
    while (scope && !scope->is_loop) scope = scope->outer;
    if (!scope) return; /* the checker refuses it */
    jl_low_leave(body, scope);
    jl_low_jump(body, is_break ? scope->at_break : scope->at_continue);
}

static void lower_defer(struct jl_body *body, const struct jl_statement *statement)
{
    uint32_t node = jl_low_open(body, QT_Defer_Push, JL_VOID);
    jl_low_add_function(body, node, statement->function->lowered - 1);
    jl_low_push_captures(body, node, statement->function);
    body->scope->defers++;
}

void jl_low_statement(struct jl_body *body, const struct jl_statement *statement)
{
    jl_low_at(body, statement->at);
    switch (statement->kind) {
    case JL_S_BAD: break;
    case JL_S_LET: lower_let(body, statement); break;
    case JL_S_VAR: lower_var(body, statement); break;
    case JL_S_ASSIGN: jl_low_assign(body, statement); break;
    case JL_S_EXPR: jl_low_expr(body, statement->value); break;
    case JL_S_NURSERY: lower_nursery(body, statement); break;
    case JL_S_FOR: jl_low_for(body, statement); break;
    case JL_S_WHILE:
    case JL_S_LOOP: jl_low_while(body, statement); break;
    case JL_S_IF: lower_if(body, statement); break;
    case JL_S_RETURN: lower_return(body, statement); break;
    case JL_S_DEFER: lower_defer(body, statement); break;
    case JL_S_YIELD:
        jl_low_emit(body, QT_Yield, JL_VOID, JL_NO_NODE, JL_NO_NODE, JL_NO_NODE);
        break;
    case JL_S_BREAK: lower_jump(body, true); break;
    case JL_S_CONTINUE: lower_jump(body, false); break;
    }
}
