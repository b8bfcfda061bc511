/* SPDX-License-Identifier: MIT */
/* Values, arithmetic and data in C. */
#include "emit/c.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* "    v3_x = " */
static void begin(struct jl_emitter *e)
{
    jl_c_put(e, "    ");
    jl_c_put_result(e);
    jl_c_put(e, " = ");
}

static void put_float(struct jl_emitter *e, int64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    if (isfinite(value)) {
        jl_c_put(e, "%a", value);
    } else {
        jl_c_put(e, "jl_f64_of_bits(INT64_C(%" PRId64 "))", bits);
    }
}

static void put_const(struct jl_emitter *e)
{
    int64_t number = e->node->literal;
    begin(e);
    switch (jl_kind_of(e->types, e->node->type)) {
    case JL_F64: put_float(e, number); break;
    case JL_BOOL: jl_c_put(e, number ? "true" : "false"); break;
    case JL_U64: jl_c_put(e, "UINT64_C(%" PRIu64 ")", (uint64_t)number); break;
    default:
        if (number == INT64_MIN) {
            jl_c_put(e, "INT64_MIN");
        } else if (number >= INT32_MIN && number <= INT32_MAX) {
            jl_c_put(e, "%" PRId64, number);
        } else {
            jl_c_put(e, "INT64_C(%" PRId64 ")", number);
        }
        break;
    }
    jl_c_put(e, ";\n");
}

static void put_binary(struct jl_emitter *e, const char *operator)
{
    begin(e);
    jl_c_put_operand(e, 0);
    jl_c_put(e, " %s ", operator);
    jl_c_put_operand(e, 1);
    jl_c_put(e, ";\n");
}

/* Integers trap on overflow. */
static void put_checked(struct jl_emitter *e, const char *builtin, const char *operator)
{
    if (e->node->type == JL_F64) {
        put_binary(e, operator);
        return;
    }
    jl_c_put(e, "    if (UNLIKELY(__builtin_%s_overflow(", builtin);
    jl_c_put_operand(e, 0);
    jl_c_put(e, ", ");
    jl_c_put_operand(e, 1);
    jl_c_put(e, ", &");
    jl_c_put_result(e);
    jl_c_put(e, "))) jl_trap_overflow(\"%s\", ", operator);
    jl_c_put_place(e);
    jl_c_put(e, ");\n");
}

static const char *least_of(jl_type type)
{
    switch (type) {
    case JL_I8: return "INT8_MIN";
    case JL_I16: return "INT16_MIN";
    case JL_I32: return "INT32_MIN";
    default: return "INT64_MIN";
    }
}

static void put_division(struct jl_emitter *e, const char *operator)
{
    if (e->node->type == JL_F64) {
        put_binary(e, operator);
        return;
    }
    jl_c_put(e, "    if (UNLIKELY(");
    jl_c_put_operand(e, 1);
    jl_c_put(e, " == 0)) jl_trap_zero(");
    jl_c_put_place(e);
    jl_c_put(e, ");\n");
    if (jl_is_signed(e->node->type)) {
        jl_c_put(e, "    if (UNLIKELY(");
        jl_c_put_operand(e, 1);
        jl_c_put(e, " == -1 && ");
        jl_c_put_operand(e, 0);
        jl_c_put(e, " == %s)) jl_trap_overflow(\"%s\", ", least_of(e->node->type), operator);
        jl_c_put_place(e);
        jl_c_put(e, ");\n");
    }
    put_binary(e, operator);
}

static void put_negation(struct jl_emitter *e)
{
    if (e->node->type == JL_F64) {
        begin(e);
        jl_c_put(e, "-");
        jl_c_put_operand(e, 0);
        jl_c_put(e, ";\n");
        return;
    }
    jl_c_put(e, "    if (UNLIKELY(__builtin_sub_overflow(0, ");
    jl_c_put_operand(e, 0);
    jl_c_put(e, ", &");
    jl_c_put_result(e);
    jl_c_put(e, "))) jl_trap_overflow(\"-\", ");
    jl_c_put_place(e);
    jl_c_put(e, ");\n");
}

static void put_equal(struct jl_emitter *e, bool equal)
{
    if (jl_c_operand_type(e, 0) != JL_STR) {
        put_binary(e, equal ? "==" : "!=");
        return;
    }
    begin(e);
    jl_c_put(e, "%sjl_text_equal(", equal ? "" : "!");
    jl_c_put_operand(e, 0);
    jl_c_put(e, ", ");
    jl_c_put_operand(e, 1);
    jl_c_put(e, ");\n");
}

static void put_to_text(struct jl_emitter *e, jl_type from)
{
    const char *call = from == JL_F64       ? "jl_text_of_f64"
                       : from == JL_BOOL    ? "jl_text_of_bool"
                       : from == JL_ERROR   ? "jl_text_of_error"
                       : jl_is_signed(from) ? "jl_text_of_i64"
                                            : "jl_text_of_u64";
    begin(e);
    if (from == JL_STR) {
        jl_c_put_operand(e, 0);
    } else {
        jl_c_put(e, "%s(", call);
        jl_c_put_operand(e, 0);
        jl_c_put(e, ")");
    }
    jl_c_put(e, ";\n");
}

/* The numbers that become an integer when what is behind the point is cut off: low < x < high. */
static void put_float_to_integer(struct jl_emitter *e, jl_type to)
{
    int    bits = (int)jl_bits(to);
    double high = ldexp(1.0, jl_is_signed(to) ? bits - 1 : bits);
    double low = jl_is_signed(to) ? -high : 0;
    jl_c_put(e, "    if (UNLIKELY(!(");
    jl_c_put_operand(e, 0);
    if (bits == 64 && jl_is_signed(to)) {
        jl_c_put(e, " >= %a", low);
    } else {
        jl_c_put(e, " > %a", low - 1);
    }
    jl_c_put(e, " && ");
    jl_c_put_operand(e, 0);
    jl_c_put(e, " < %a))) jl_trap_overflow(\"%s\", ", high, jl_type_text(e->types, to));
    jl_c_put_place(e);
    jl_c_put(e, ");\n");
    begin(e);
    jl_c_put(e, "(");
    jl_c_put_type(e, to);
    jl_c_put(e, ")");
    jl_c_put_operand(e, 0);
    jl_c_put(e, ";\n");
}

static void put_conversion(struct jl_emitter *e)
{
    jl_type from = jl_c_operand_type(e, 0), to = e->node->type;
    if (to == JL_STR) {
        put_to_text(e, from);
    } else if (to == JL_F64) {
        begin(e);
        jl_c_put(e, "(double)");
        jl_c_put_operand(e, 0);
        jl_c_put(e, ";\n");
    } else if (from == JL_F64) {
        put_float_to_integer(e, to);
    } else {
        jl_c_put(e, "    if (UNLIKELY(__builtin_add_overflow(");
        jl_c_put_operand(e, 0);
        jl_c_put(e, ", 0, &");
        jl_c_put_result(e);
        jl_c_put(e, "))) jl_trap_overflow(\"%s\", ", jl_type_text(e->types, to));
        jl_c_put_place(e);
        jl_c_put(e, ");\n");
    }
}

static void put_field_name(struct jl_emitter *e, jl_type type, int64_t field)
{
    const struct jl_type_info *info = jl_info(e->types, type);
    jl_c_put(e, "f%u_", (unsigned)field);
    jl_c_put_word(e, info->fields[field].name);
}

static void put_struct_new(struct jl_emitter *e)
{
    for (uint32_t i = 0; i < e->node->operand_count; i++) {
        jl_c_put(e, "    ");
        jl_c_put_result(e);
        jl_c_put(e, ".");
        put_field_name(e, e->node->type, i);
        jl_c_put(e, " = ");
        jl_c_put_operand(e, i);
        jl_c_put(e, ";\n");
    }
}

static void put_field(struct jl_emitter *e)
{
    jl_type type = jl_c_operand_type(e, 0);
    begin(e);
    if (type == JL_BUDGET) {
        jl_c_put(e, "jl_budget_get(");
        jl_c_put_operand(e, 0);
        jl_c_put(e, ", %u);\n", (unsigned)e->node->literal);
        return;
    }
    jl_c_put_operand(e, 0);
    jl_c_put(e, ".");
    put_field_name(e, type, e->node->literal);
    jl_c_put(e, ";\n");
}

static void put_field_with(struct jl_emitter *e)
{
    begin(e);
    if (e->node->type == JL_BUDGET) {
        jl_c_put(e, "jl_budget_with(");
        jl_c_put_operand(e, 0);
        jl_c_put(e, ", %u, ", (unsigned)e->node->literal);
        jl_c_put_operand(e, 1);
        jl_c_put(e, ");\n");
        return;
    }
    jl_c_put_operand(e, 0);
    jl_c_put(e, ";\n    ");
    jl_c_put_result(e);
    jl_c_put(e, ".");
    put_field_name(e, e->node->type, e->node->literal);
    jl_c_put(e, " = ");
    jl_c_put_operand(e, 1);
    jl_c_put(e, ";\n");
}

static jl_type element_of(const struct jl_emitter *e, jl_type slice)
{
    return jl_info(e->types, slice)->of;
}

/* "((int32_t *)v3_items.items)" */
static void put_items(struct jl_emitter *e, uint32_t operand, jl_type element)
{
    jl_c_put(e, "((");
    jl_c_put_type(e, element);
    jl_c_put(e, " *)");
    if (operand == UINT32_MAX) {
        jl_c_put_result(e);
    } else {
        jl_c_put_operand(e, operand);
    }
    jl_c_put(e, ".items)");
}

static void put_slice_new(struct jl_emitter *e, bool of_elements)
{
    jl_type element = element_of(e, e->node->type);
    begin(e);
    jl_c_put(e, "jl_slice_new(");
    if (of_elements) {
        jl_c_put(e, "%u", e->node->operand_count);
    } else {
        jl_c_put_operand(e, 0);
    }
    jl_c_put(e, ", %u, ", jl_size(e->types, element));
    jl_c_put_place(e);
    jl_c_put(e, ");\n");
    for (uint32_t i = 0; of_elements && i < e->node->operand_count; i++) {
        jl_c_put(e, "    ");
        put_items(e, UINT32_MAX, element);
        jl_c_put(e, "[%u] = ", i);
        jl_c_put_operand(e, i);
        jl_c_put(e, ";\n");
    }
}

static void put_bound(struct jl_emitter *e)
{
    jl_c_put(e, "    if (UNLIKELY((uint64_t)");
    jl_c_put_operand(e, 1);
    jl_c_put(e, " >= (uint64_t)");
    jl_c_put_operand(e, 0);
    jl_c_put(e, ".length)) jl_trap_index((int64_t)");
    jl_c_put_operand(e, 1);
    jl_c_put(e, ", ");
    jl_c_put_operand(e, 0);
    jl_c_put(e, ".length, ");
    jl_c_put_place(e);
    jl_c_put(e, ");\n");
}

static void put_element(struct jl_emitter *e, bool sets)
{
    jl_type type = jl_c_operand_type(e, 0);
    put_bound(e);
    if (sets) {
        jl_c_put(e, "    ");
    } else {
        begin(e);
    }
    if (type == JL_STR) {
        jl_c_put(e, "(uint8_t)");
        jl_c_put_operand(e, 0);
        jl_c_put(e, ".bytes");
    } else {
        put_items(e, 0, element_of(e, type));
    }
    jl_c_put(e, "[");
    jl_c_put_operand(e, 1);
    jl_c_put(e, "]");
    if (sets) {
        jl_c_put(e, " = ");
        jl_c_put_operand(e, 2);
    }
    jl_c_put(e, ";\n");
}

static void put_part(struct jl_emitter *e)
{
    begin(e);
    jl_c_put(e, e->node->type == JL_STR ? "jl_text_part(" : "jl_slice_part(");
    for (uint32_t i = 0; i < 3; i++) {
        jl_c_put_operand(e, i);
        jl_c_put(e, ", ");
    }
    if (e->node->type != JL_STR) {
        jl_c_put(e, "%u, ", jl_size(e->types, element_of(e, e->node->type)));
    }
    jl_c_put_place(e);
    jl_c_put(e, ");\n");
}

static void put_one(struct jl_emitter *e, const char *before, const char *after)
{
    begin(e);
    jl_c_put(e, "%s", before);
    jl_c_put_operand(e, 0);
    jl_c_put(e, "%s;\n", after);
}

static void put_text(struct jl_emitter *e)
{
    begin(e);
    jl_c_put(e, "(struct jl_text){");
    jl_c_put_string(e, e->node->text, e->node->text_length);
    jl_c_put(e, ", %u};\n", e->node->text_length);
}

static void put_store(struct jl_emitter *e)
{
    if (!jl_c_has_value(e, jl_c_operand_type(e, 1))) return;
    jl_c_put(e, "    ");
    jl_c_put_operand(e, 0);
    jl_c_put(e, " = ");
    jl_c_put_operand(e, 1);
    jl_c_put(e, ";\n");
}

static void put_local(struct jl_emitter *e)
{
    jl_c_put(e, "    memset(&");
    jl_c_put_result(e);
    jl_c_put(e, ", 0, sizeof ");
    jl_c_put_result(e);
    jl_c_put(e, ");\n");
}

static void put_state(struct jl_emitter *e, bool sets)
{
    jl_type actor = e->function->actor;
    if (!sets) begin(e);
    if (sets) jl_c_put(e, "    ");
    jl_c_put(e, "self->");
    put_field_name(e, actor, e->node->literal);
    if (sets) {
        jl_c_put(e, " = ");
        jl_c_put_operand(e, 0);
    }
    jl_c_put(e, ";\n");
}

static void put_concat(struct jl_emitter *e)
{
    begin(e);
    jl_c_put(e, "jl_concat(");
    jl_c_put_operand(e, 0);
    jl_c_put(e, ", ");
    jl_c_put_operand(e, 1);
    jl_c_put(e, ");\n");
}

static void put_arithmetic(struct jl_emitter *e)
{
    switch (e->node->op) {
    case QT_Add: put_checked(e, "add", "+"); break;
    case QT_Sub: put_checked(e, "sub", "-"); break;
    case QT_Mul: put_checked(e, "mul", "*"); break;
    case QT_Div: put_division(e, "/"); break;
    case QT_Rem: put_division(e, "%"); break;
    case QT_Neg: put_negation(e); break;
    case QT_Eq: put_equal(e, true); break;
    case QT_Ne: put_equal(e, false); break;
    case QT_Lt: put_binary(e, "<"); break;
    case QT_Le: put_binary(e, "<="); break;
    case QT_And: put_binary(e, "&"); break;
    case QT_Or: put_binary(e, "|"); break;
    case QT_Not: put_one(e, "!", ""); break;
    default: put_conversion(e); break;
    }
}

void jl_c_put_data(struct jl_emitter *e)
{
    if (e->node->op >= QT_Add && e->node->op <= QT_Convert) {
        put_arithmetic(e);
        return;
    }
    switch (e->node->op) {
    case QT_Const:
    case QT_Error: put_const(e); break;
    case QT_Str: put_text(e); break;
    case QT_Local: put_local(e); break;
    case QT_Load: put_one(e, "", ""); break;
    case QT_Store: put_store(e); break;
    case QT_State_Get: put_state(e, false); break;
    case QT_State_Set: put_state(e, true); break;
    case QT_Concat: put_concat(e); break;
    case QT_Str_Len:
    case QT_Slice_Len: put_one(e, "", ".length"); break;
    case QT_Struct_New: put_struct_new(e); break;
    case QT_Field_Get: put_field(e); break;
    case QT_Field_With: put_field_with(e); break;
    case QT_Slice_New: put_slice_new(e, false); break;
    case QT_Slice_Of: put_slice_new(e, true); break;
    case QT_Slice_Get: put_element(e, false); break;
    case QT_Slice_Set: put_element(e, true); break;
    case QT_Slice_Part: put_part(e); break;
    case QT_Value_Of: put_one(e, "", ""); break;
    case QT_Error_Of: put_one(e, "", "_error"); break;
    default: jl_c_cannot(e, "%s has no form in C", qt_ops[e->node->op].name); break;
    }
}
