/* SPDX-License-Identifier: MIT */
/* Register code of single nodes: numbers, data and control. */
#include "run/make.h"

#include <string.h>

const char *const jl_run_whats[] = {"+",   "-",   "*",  "/",   "%",   "i8", "i16",
                                    "i32", "i64", "u8", "u16", "u32", "u64"};

static uint32_t destination(const struct maker *k, uint32_t node) { return jl_run_slot(k, node); }

/* After arithmetic of 64 bits: whether the result is one of the type. */
static void put_fit(struct maker *k, uint32_t slot, jl_type type, unsigned what)
{
    static const uint8_t fits[] = {[JL_I8] = R_FitI8, [JL_I16] = R_FitI16, [JL_I32] = R_FitI32,
                                   [JL_U8] = R_FitU8, [JL_U16] = R_FitU16, [JL_U32] = R_FitU32};
    if (type >= sizeof fits || fits[type] == 0) return;
    jl_run_put(k, fits[type], slot, slot, 0);
    jl_run_what(k, what);
}

/* The instruction for two slots. Narrow results are checked by it (i32), or by the next one. */
static unsigned arithmetic_of(jl_type type, unsigned which)
{
    static const uint8_t words[] = {R_Add, R_Sub, R_Mul, R_Div, R_Rem};
    static const uint8_t halves[] = {R_Add32, R_Sub32, R_Mul32, R_Div, R_Rem};
    static const uint8_t unsigneds[] = {R_AddU, R_SubU, R_MulU, R_DivU, R_RemU};
    static const uint8_t floats[] = {R_AddF, R_SubF, R_MulF, R_DivF, R_Stuck};
    if (type == JL_F64) return floats[which];
    if (type == JL_U64) return unsigneds[which];
    return type == JL_I32 ? halves[which] : words[which];
}

static bool put_arithmetic(struct maker *k, uint32_t node)
{
    static const uint8_t  constants[] = {R_AddK, R_SubK, R_MulK, R_DivK, R_RemK};
    static const uint8_t  halves[] = {R_AddK32, R_SubK32, R_MulK32, R_DivK, R_RemK};
    const struct qt_node *n = node_at(k, node);
    unsigned              which = (unsigned)(n->op - QT_Add);
    unsigned              op = n->type == JL_I32 ? halves[which] : constants[which];
    uint32_t              to = destination(k, node);
    /* MIN % -1 traps. The loop sees it for 64 bits. */
    if (n->op == QT_Rem && jl_is_signed(n->type) && jl_bits(n->type) < 64 &&
        !jl_run_is_constant(k, node, 1))
        return jl_run_make_slow(k, node);
    if (jl_run_is_constant(k, node, 1)) {
        jl_run_put(k, op, to, slot_of(k, node, 0), (int32_t)constant(k, node, 1));
    } else if (jl_run_is_constant(k, node, 0)) { /* Add and Mul */
        jl_run_put(k, op, to, slot_of(k, node, 1), (int32_t)constant(k, node, 0));
    } else {
        op = arithmetic_of(n->type, which);
        jl_run_put(k, op, to, slot_of(k, node, 0), (int32_t)slot_of(k, node, 1));
    }
    jl_run_what(k, WHAT_ADD + which);
    bool checked = n->type == JL_F64 || n->op == QT_Rem || (n->type == JL_I32 && n->op != QT_Div);
    if (!checked) put_fit(k, to, n->type, WHAT_ADD + which);
    return true;
}

/* Comparisons: the opcode for two slots, and for a slot and a constant. */
struct compare {
    uint8_t slots, constant, mirrored; /* mirrored: the constant is on the left */
};

static struct compare compare_of(unsigned op, jl_type type, bool branch)
{
    bool word = type != JL_F64 && type != JL_U64;
    if (branch) {
        switch (op) {
        case QT_Eq: return (struct compare){R_BrEq, R_BrEqK, R_BrEqK};
        case QT_Ne: return (struct compare){R_BrNe, R_BrNeK, R_BrNeK};
        case QT_Lt: return (struct compare){R_BrLt, R_BrLtK, R_BrGtK};
        default: return (struct compare){R_BrLe, R_BrLeK, R_BrGeK};
        }
    }
    switch (op) {
    case QT_Eq: return (struct compare){type == JL_F64 ? R_EqF : R_Eq, R_EqK, R_EqK};
    case QT_Ne: return (struct compare){type == JL_F64 ? R_NeF : R_Ne, R_NeK, R_NeK};
    case QT_Lt: return (struct compare){word ? R_Lt : type == JL_F64 ? R_LtF : R_LtU, R_LtK, R_GtK};
    default: return (struct compare){word ? R_Le : type == JL_F64 ? R_LeF : R_LeU, R_LeK, R_GeK};
    }
}

static bool put_compare(struct maker *k, uint32_t node)
{
    const struct qt_node *n = node_at(k, node);
    jl_type               type = operand_type(k, node, 0);
    struct compare        c = compare_of(n->op, type, false);
    uint32_t              to;
    if (k->plans[node].fused) return true;
    if (type == JL_STR) return jl_run_make_slow(k, node);
    to = destination(k, node);
    if (jl_run_is_constant(k, node, 1))
        jl_run_put(k, c.constant, to, slot_of(k, node, 0), (int32_t)constant(k, node, 1));
    else if (jl_run_is_constant(k, node, 0))
        jl_run_put(k, c.mirrored, to, slot_of(k, node, 1), (int32_t)constant(k, node, 0));
    else
        jl_run_put(k, c.slots, to, slot_of(k, node, 0), (int32_t)slot_of(k, node, 1));
    return true;
}

static bool put_convert(struct maker *k, uint32_t node)
{
    const struct qt_node *n = node_at(k, node);
    jl_type               from = operand_type(k, node, 0), to = n->type;
    if (from == JL_F64 || to == JL_STR) return jl_run_make_slow(k, node);
    uint32_t             a = destination(k, node), b = slot_of(k, node, 0);
    static const uint8_t fits[] = {
        [JL_I8] = R_FitI8, [JL_I16] = R_FitI16, [JL_I32] = R_FitI32, [JL_I64] = R_FitU64,
        [JL_U8] = R_FitU8, [JL_U16] = R_FitU16, [JL_U32] = R_FitU32, [JL_U64] = R_FitU64};
    if (to == JL_F64) {
        jl_run_put(k, from == JL_U64 ? R_UnsignedToF : R_IntToF, a, b, 0);
        return true;
    }
    bool big = from == JL_U64 && to != JL_U64; /* a negative slot is a large number */
    if (to == JL_I64 ? !big : to == JL_U64 && !jl_is_signed(from)) {
        jl_run_move(k, a, b, 1);
        return true;
    }
    unsigned what = WHAT_TYPES + (unsigned)(to - JL_I8);
    if (big) {
        jl_run_put(k, R_FitU64, a, b, 0);
        jl_run_what(k, what);
        b = a;
    }
    jl_run_put(k, fits[to], a, b, 0);
    jl_run_what(k, what);
    return true;
}

/* Structs. A byte offset in the frame is 8 * slot + offset. */

static void put_field(struct maker *k, uint32_t to, uint32_t offset, jl_type type, uint32_t from)
{
    uint32_t bytes = jl_size(k->types, type);
    int32_t  at = (int32_t)(8 * to + offset);
    if (bytes > UINT16_MAX) jl_run_refuse(k, "has a struct of more than 64 KiB");
    switch (bytes) {
    case 1: jl_run_put(k, R_Put8, from, 0, at); break;
    case 2: jl_run_put(k, R_Put16, from, 0, at); break;
    case 4: jl_run_put(k, R_Put32, from, 0, at); break;
    case 8: jl_run_put(k, R_Put64, from, 0, at); break;
    default: jl_run_put(k, R_PutBytes, from, bytes, at); break;
    }
}

static void put_struct(struct maker *k, uint32_t node)
{
    const struct jl_type_info *info = jl_info(k->types, node_at(k, node)->type);
    uint32_t                   to = destination(k, node);
    for (uint32_t i = 0; i < info->field_count; i++)
        put_field(k, to, info->fields[i].offset, info->fields[i].type, slot_of(k, node, i));
}

static bool put_field_with(struct maker *k, uint32_t node)
{
    const struct qt_node      *n = node_at(k, node);
    const struct jl_type_info *info = jl_info(k->types, n->type);
    uint32_t                   to = destination(k, node);
    if (n->type == JL_BUDGET) return jl_run_make_slow(k, node);
    jl_run_move(k, to, slot_of(k, node, 0), k->plans[node].words);
    put_field(k, to, info->fields[n->literal].offset, info->fields[n->literal].type,
              slot_of(k, node, 1));
    return true;
}

static bool put_field_get(struct maker *k, uint32_t node)
{
    static const uint8_t gets[] = {
        [W_I8] = R_GetI8,   [W_U8] = R_GetU8,   [W_I16] = R_GetI16, [W_U16] = R_GetU16,
        [W_I32] = R_GetI32, [W_U32] = R_GetU32, [W_64] = R_Get64,   [W_BYTES] = R_GetBytes};
    if (k->plans[node].alias != 0) return true;
    jl_type owner = operand_type(k, node, 0);
    if (owner == JL_BUDGET) return jl_run_make_slow(k, node);
    const struct jl_field *field = &jl_info(k->types, owner)->fields[node_at(k, node)->literal];
    struct field           f = jl_run_field(k->types, field->type);
    if (f.bytes > UINT16_MAX) return jl_run_refuse(k, "has a struct of more than 64 KiB");
    jl_run_put(k, gets[f.width], destination(k, node), f.bytes,
               (int32_t)(8 * slot_of(k, node, 0) + field->offset));
    return true;
}

static bool put_index(struct maker *k, uint32_t node)
{
    static const uint8_t gets[] = {
        [W_I8] = R_IndexI8,   [W_U8] = R_IndexU8,   [W_I16] = R_IndexI16, [W_U16] = R_IndexU16,
        [W_I32] = R_IndexI32, [W_U32] = R_IndexU32, [W_64] = R_Index64,   [W_BYTES] = 0};
    static const uint8_t sets[] = {
        [W_I8] = R_SetIndex8,   [W_U8] = R_SetIndex8,   [W_I16] = R_SetIndex16,
        [W_U16] = R_SetIndex16, [W_I32] = R_SetIndex32, [W_U32] = R_SetIndex32,
        [W_64] = R_SetIndex64,  [W_BYTES] = 0};
    bool     get = node_at(k, node)->op == QT_Slice_Get;
    jl_type  element = get ? node_at(k, node)->type : operand_type(k, node, 2);
    unsigned width = jl_run_field(k->types, element).width;
    if (width == W_BYTES) return jl_run_make_slow(k, node);
    uint32_t slice = slot_of(k, node, 0), index = slot_of(k, node, 1);
    if (get)
        jl_run_put(k, gets[width], destination(k, node), slice, (int32_t)index);
    else
        jl_run_put(k, sets[width], slice, index, (int32_t)slot_of(k, node, 2));
    return true;
}

/* Variables. */

/* A variable needs no zero if a Store follows before anything reads it. */
static bool is_set_next(const struct maker *k, uint32_t local)
{
    const struct qt_block *b = &k->f->blocks[k->block];
    for (uint32_t i = k->position + 1; i < b->count && i < k->position + 200; i++) {
        const struct qt_node *n = node_at(k, b->nodes[i]);
        if (n->op == QT_Store && operand(k, b->nodes[i], 0) == local) return true;
        for (uint32_t o = 0; o < n->operand_count; o++)
            if (n->operands[o].kind == QT_NODE && n->operands[o].index == local) return false;
    }
    return false;
}

static void put_local(struct maker *k, uint32_t node)
{
    uint32_t to = destination(k, node);
    if (is_set_next(k, node)) return;
    uint32_t words = k->plans[node].words;
    if (words > 2) jl_run_put(k, R_MovN, to, 0, -(int32_t)words); /* zeros */
    for (uint32_t i = 0; i < words && words <= 2; i++) jl_run_constant(k, to + i, 0);
}

static void put_store(struct maker *k, uint32_t node)
{
    uint32_t to = slot_of(k, node, 0);
    if (jl_run_is_constant(k, node, 1))
        jl_run_constant(k, to, constant(k, node, 1));
    else
        jl_run_move(k, to, slot_of(k, node, 1), k->plans[operand(k, node, 0)].words);
}

static bool put_value(struct maker *k, uint32_t node)
{
    const struct qt_node *n = node_at(k, node);
    uint32_t              to = k->plans[node].slot;
    switch (n->op) {
    case QT_Const:
    case QT_Error:
        if (to != NO_SLOT && !k->plans[node].hoisted) jl_run_constant(k, to, n->literal);
        return true;
    case QT_Str:
        jl_run_constant(k, to, (int64_t)(intptr_t)n->text);
        jl_run_constant(k, to + 1, n->text_length);
        return true;
    case QT_Local: put_local(k, node); return true;
    case QT_Load:
        if (k->plans[node].alias == 0)
            jl_run_move(k, destination(k, node), slot_of(k, node, 0), k->plans[node].words);
        return true;
    case QT_Store: put_store(k, node); return true;
    case QT_Neg:
        if (n->type == JL_U64 || (n->type != JL_F64 && !jl_is_signed(n->type)))
            return jl_run_make_slow(k, node);
        jl_run_put(k, n->type == JL_F64 ? R_NegF : R_Neg, destination(k, node), slot_of(k, node, 0),
                   0);
        jl_run_what(k, WHAT_SUB);
        put_fit(k, destination(k, node), n->type, WHAT_SUB);
        return true;
    case QT_And:
    case QT_Or:
        jl_run_put(k, n->op == QT_And ? R_And : R_Or, destination(k, node), slot_of(k, node, 0),
                   (int32_t)slot_of(k, node, 1));
        return true;
    default: /* Not */
        jl_run_put(k, R_Not, destination(k, node), slot_of(k, node, 0), 0);
        return true;
    }
}

bool jl_run_make_node(struct maker *k, uint32_t node)
{
    switch (node_at(k, node)->op) {
    case QT_Const:
    case QT_Error:
    case QT_Str:
    case QT_Local:
    case QT_Load:
    case QT_Store:
    case QT_Neg:
    case QT_And:
    case QT_Or:
    case QT_Not: return put_value(k, node);
    case QT_Add:
    case QT_Sub:
    case QT_Mul:
    case QT_Div:
    case QT_Rem: return put_arithmetic(k, node);
    case QT_Eq:
    case QT_Ne:
    case QT_Lt:
    case QT_Le: return put_compare(k, node);
    case QT_Convert: return put_convert(k, node);
    case QT_Struct_New: put_struct(k, node); return true;
    case QT_Field_With: return put_field_with(k, node);
    case QT_Field_Get: return put_field_get(k, node);
    case QT_Slice_Get:
    case QT_Slice_Set: return put_index(k, node);
    case QT_Error_Of:
    case QT_Value_Of:
    case QT_Slice_Len:
    case QT_Str_Len: return true; /* aliases */
    case QT_Jump:
    case QT_Branch:
    case QT_Branch_Error:
    case QT_Return:
    case QT_Unreachable:
    case QT_Fail:
    case QT_Call:
    case QT_Call_Value:
    case QT_Budget_Check:
    case QT_Budget_Decrement: return jl_run_make_control(k, node);
    default: return jl_run_make_slow(k, node);
    }
}
