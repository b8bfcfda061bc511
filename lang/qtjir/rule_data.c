/* SPDX-License-Identifier: MIT */
/* The types of structs, slices and the state of actors. */
#include "qtjir/inner.h"

static jl_type field_of(struct qt_rule *r, jl_type owner)
{
    const struct jl_type_info *info = jl_info(r->module->types, owner);
    int64_t                    i = r->node->literal;
    if (owner == JL_BUDGET)
        return i >= 0 && i < 5 ? (jl_type)JL_I64 : qt_refuse(r, "a Budget has no such field");
    if (info->kind != JL_STRUCT && info->kind != JL_ACTOR)
        return qt_refuse(r, "%s has no fields", qt_type_text(r->module, owner));
    if (i < 0 || i >= info->field_count)
        return qt_refuse(r, "%s has no such field", qt_type_text(r->module, owner));
    return info->fields[i].type;
}

static jl_type state_rule(struct qt_rule *r)
{
    if (r->function->actor == 0) return qt_refuse(r, "the function belongs to no actor");
    jl_type type = field_of(r, r->function->actor);
    if (r->node->op == QT_State_Get || type == JL_BAD) return type;
    return qt_wants(r, 0, type) ? JL_VOID : JL_BAD;
}

static jl_type struct_rule(struct qt_rule *r)
{
    const struct jl_type_info *info = jl_info(r->module->types, r->node->type);
    if (info->kind != JL_STRUCT)
        return qt_refuse(r, "%s is no struct", qt_type_text(r->module, r->node->type));
    if (r->node->operand_count != info->field_count)
        return qt_refuse(r, "%s has %u fields", info->name, info->field_count);
    for (uint32_t i = 0; i < info->field_count; i++)
        if (!qt_wants(r, i, info->fields[i].type)) return JL_BAD;
    return r->node->type;
}

/* The element of a slice or a str; BAD: it is neither. */
static jl_type element_of(struct qt_rule *r, jl_type type)
{
    if (type == JL_STR) return JL_U8;
    const struct jl_type_info *info = jl_info(r->module->types, type);
    if (info->kind == JL_SLICE) return info->of;
    return qt_refuse(r, "%s is no slice", qt_type_text(r->module, type));
}

static jl_type slice_rule(struct qt_rule *r)
{
    jl_type first = qt_operand_type(r, 0), type = r->node->type, element;
    switch (r->node->op) {
    case QT_Slice_New:
    case QT_Slice_Of:
        if (jl_kind_of(r->module->types, type) != JL_SLICE)
            return qt_refuse(r, "%s is no slice", qt_type_text(r->module, type));
        element = jl_info(r->module->types, type)->of;
        if (!qt_is_storable(r->module->types, element))
            return qt_refuse(r, "an element cannot be %s", qt_type_text(r->module, element));
        if (r->node->op == QT_Slice_New) return qt_wants(r, 0, JL_I64) ? type : (jl_type)JL_BAD;
        for (uint32_t i = 0; i < r->node->operand_count; i++)
            if (!qt_wants(r, i, element)) return JL_BAD;
        return type;
    case QT_Slice_Len:
        if (jl_kind_of(r->module->types, first) != JL_SLICE)
            return qt_refuse(r, "%s is no slice", qt_type_text(r->module, first));
        return JL_I64;
    case QT_Slice_Get:
        element = element_of(r, first);
        return qt_wants(r, 1, JL_I64) ? element : (jl_type)JL_BAD;
    case QT_Slice_Set:
        if (jl_kind_of(r->module->types, first) != JL_SLICE)
            return qt_refuse(r, "%s is no slice", qt_type_text(r->module, first));
        element = jl_info(r->module->types, first)->of;
        return qt_wants(r, 1, JL_I64) && qt_wants(r, 2, element) ? JL_VOID : JL_BAD;
    default: /* Slice_Part */
        if (element_of(r, first) == JL_BAD) return JL_BAD;
        return qt_wants(r, 1, JL_I64) && qt_wants(r, 2, JL_I64) ? first : (jl_type)JL_BAD;
    }
}

jl_type qt_rule_data(struct qt_rule *r)
{
    jl_type first = qt_operand_type(r, 0), field;
    switch (r->node->op) {
    case QT_State_Get:
    case QT_State_Set: return state_rule(r);
    case QT_Struct_New: return struct_rule(r);
    case QT_Field_Get:
    case QT_Field_With:
        if (jl_kind_of(r->module->types, first) == JL_ACTOR)
            return qt_refuse(r, "fields of an actor belong to its methods");
        field = field_of(r, first);
        if (r->node->op == QT_Field_Get || field == JL_BAD) return field;
        return qt_wants(r, 1, field) ? first : (jl_type)JL_BAD;
    default: return slice_rule(r);
    }
}
