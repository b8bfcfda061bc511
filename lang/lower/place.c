/* SPDX-License-Identifier: MIT */
/* Assignments. A field of a struct is changed by storing a changed copy of the struct. */
#include "lower/body.h"

uint32_t jl_low_binary_of(struct jl_body *body, enum jl_binary binary, jl_type type, uint32_t left,
                          uint32_t right)
{
    static const enum qt_op ops[] = {
        [JL_ADD] = QT_Add, [JL_SUB] = QT_Sub, [JL_MUL] = QT_Mul, [JL_DIV] = QT_Div,
        [JL_REM] = QT_Rem, [JL_EQ] = QT_Eq,   [JL_NE] = QT_Ne,   [JL_LT] = QT_Lt,
        [JL_LE] = QT_Le,   [JL_GT] = QT_Lt,   [JL_GE] = QT_Le,   [JL_AND] = QT_And,
        [JL_OR] = QT_Or,
    };
    if (binary == JL_ADD && type == JL_STR)
        return jl_low_emit(body, QT_Concat, JL_STR, left, right, JL_NO_NODE);
    bool is_swapped = binary == JL_GT || binary == JL_GE;
    bool is_bool = binary >= JL_EQ;
    return jl_low_emit(body, ops[binary], is_bool ? (jl_type)JL_BOOL : type,
                       is_swapped ? right : left, is_swapped ? left : right, JL_NO_NODE);
}

/* A place whose parts are evaluated. A field lies in the place `outer`. */
struct place {
    const struct jl_expr *expr;
    uint32_t              slice, index; /* INDEX */
    struct place         *outer;        /* MEMBER */
};

static void prepare(struct jl_body *body, const struct jl_expr *expr, struct place *place)
{
    *place = (struct place){.expr = expr, .slice = JL_NO_NODE, .index = JL_NO_NODE};
    if (expr->kind == JL_E_MEMBER) {
        place->outer = jl_new(body->low->arena, sizeof *place);
        prepare(body, expr->left, place->outer);
    } else if (expr->kind == JL_E_INDEX) {
        place->slice = jl_low_expr(body, expr->left);
        place->index = jl_low_expr(body, expr->right);
    }
}

static uint32_t read_place(struct jl_body *body, const struct place *place)
{
    const struct jl_expr *expr = place->expr;
    if (expr->kind == JL_E_INDEX) {
        jl_low_at(body, expr->at);
        return jl_low_emit(body, QT_Slice_Get, expr->type, place->slice, place->index, JL_NO_NODE);
    }
    if (expr->kind == JL_E_NAME) return jl_low_symbol(body, expr->symbol);
    uint32_t owner = read_place(body, place->outer);
    uint32_t node = jl_low_open(body, QT_Field_Get, expr->type);
    jl_low_node(body, node)->literal = expr->method;
    jl_low_add(body, node, owner);
    return node;
}

static void write_place(struct jl_body *body, const struct place *place, uint32_t value)
{
    const struct jl_expr *expr = place->expr;
    jl_low_at(body, expr->at);
    if (expr->kind == JL_E_INDEX) {
        jl_low_emit(body, QT_Slice_Set, JL_VOID, place->slice, place->index, value);
    } else if (expr->kind == JL_E_NAME && expr->symbol->kind == JL_SYMBOL_STATE) {
        uint32_t node = jl_low_emit(body, QT_State_Set, JL_VOID, value, JL_NO_NODE, JL_NO_NODE);
        jl_low_node(body, node)->literal = expr->symbol->index;
    } else if (expr->kind == JL_E_NAME) {
        uint32_t local = jl_low_binding(expr->symbol)->node;
        jl_low_emit(body, QT_Store, JL_VOID, local, value, JL_NO_NODE);
    } else {
        uint32_t owner = read_place(body, place->outer);
        uint32_t changed = jl_low_open(body, QT_Field_With, place->outer->expr->type);
        jl_low_node(body, changed)->literal = expr->method;
        jl_low_add(body, changed, owner);
        jl_low_add(body, changed, value);
        write_place(body, place->outer, changed);
    }
}

void jl_low_assign(struct jl_body *body, const struct jl_statement *statement)
{
    struct place place;
    uint32_t     before = JL_NO_NODE;
    prepare(body, statement->target, &place);
    if (statement->compound) before = read_place(body, &place);
    uint32_t value = jl_low_expr(body, statement->value);
    if (statement->compound) {
        jl_low_at(body, statement->at);
        value = jl_low_binary_of(body, statement->binary, statement->target->type, before, value);
    }
    write_place(body, &place, value);
}
