/* SPDX-License-Identifier: MIT */
/* Types, shapes and interfaces in C. */
#include "emit/c.h"

#include <stdarg.h>
#include <string.h>

void jl_c_put(struct jl_emitter *e, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vfprintf(e->out, format, arguments);
    va_end(arguments);
}

void jl_c_cannot(struct jl_emitter *e, const char *format, ...)
{
    char    text[256];
    va_list arguments;
    if (e->why) return;
    va_start(arguments, format);
    int used = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    size_t length = used < 0 ? 0 : (size_t)used < sizeof text ? (size_t)used : sizeof text - 1;
    e->why = jl_copy_text(e->module->arena, text, length);
}

jl_type jl_c_value_type(const struct jl_emitter *e, jl_type type)
{
    const struct jl_type_info *info = jl_info(e->types, type);
    return info->kind == JL_FALLIBLE ? info->of : type;
}

bool jl_c_has_value(const struct jl_emitter *e, jl_type type)
{
    switch (jl_kind_of(e->types, jl_c_value_type(e, type))) {
    case JL_BAD:
    case JL_VOID:
    case JL_NEVER:
    case JL_START:
    case JL_NURSERY: return false;
    default: return true;
    }
}

static const char *simple_type(enum jl_kind kind)
{
    switch (kind) {
    case JL_BOOL: return "bool";
    case JL_I8: return "int8_t";
    case JL_I16: return "int16_t";
    case JL_I32: return "int32_t";
    case JL_I64: return "int64_t";
    case JL_U8: return "uint8_t";
    case JL_U16: return "uint16_t";
    case JL_U32: return "uint32_t";
    case JL_U64: return "uint64_t";
    case JL_F64: return "double";
    case JL_STR: return "struct jl_text";
    case JL_ERROR: return "int64_t";
    case JL_BUDGET: return "janus_budget";
    case JL_CAP_SPAWN:
    case JL_CAP_BUDGET:
    case JL_CAP_CHANNEL:
    case JL_CAP_EXECUTOR: return "janus_cap";
    case JL_SUPERVISOR: return "struct jl_supervisor *";
    case JL_SLICE: return "struct jl_slice";
    case JL_FN: return "struct jl_closure";
    case JL_TASK: return "struct jl_call *";
    case JL_CHANNEL: return "janus_channel";
    case JL_ACTOR: return "janus_actor";
    case JL_IFACE: return "struct jl_instance *";
    case JL_HOST: return "struct jl_handle";
    default: return "void";
    }
}

void jl_c_put_type(struct jl_emitter *e, jl_type type)
{
    type = jl_c_value_type(e, type);
    const struct jl_type_info *info = jl_info(e->types, type);
    if (info->kind != JL_STRUCT) {
        jl_c_put(e, "%s", simple_type(info->kind));
        return;
    }
    jl_c_put(e, "struct S%u_", type);
    jl_c_put_word(e, info->name);
}

static void put_fields(struct jl_emitter *e, const struct jl_type_info *info)
{
    for (uint32_t i = 0; i < info->field_count; i++) {
        jl_c_put(e, "    ");
        jl_c_put_type(e, info->fields[i].type);
        jl_c_put(e, " f%u_", i);
        jl_c_put_word(e, info->fields[i].name);
        jl_c_put(e, ";\n");
    }
    if (info->field_count == 0) jl_c_put(e, "    char nothing;\n");
}

/* A struct stands behind those that its fields have. No struct contains itself. */
static void put_struct(struct jl_emitter *e, jl_type type)
{
    if (e->states[type]) return;
    e->states[type] = 1;
    const struct jl_type_info *info = jl_info(e->types, type);
    for (uint32_t i = 0; i < info->field_count; i++) {
        if (jl_kind_of(e->types, info->fields[i].type) == JL_STRUCT) {
            put_struct(e, info->fields[i].type);
        }
    }
    if (info->kind == JL_STRUCT) {
        jl_c_put_type(e, type);
    } else {
        jl_c_put(e, "struct actor_%u", type);
    }
    jl_c_put(e, " {\n");
    put_fields(e, info);
    jl_c_put(e, "};\n");
}

void jl_c_put_structs(struct jl_emitter *e)
{
    for (jl_type type = 0; type < e->types->count; type++) {
        enum jl_kind kind = jl_kind_of(e->types, type);
        if (kind == JL_STRUCT || kind == JL_ACTOR) put_struct(e, type);
    }
}

/* Shapes. A struct's texts and slices are listed with those of its fields. */

static bool has_shape(const struct jl_emitter *e, jl_type type)
{
    const struct jl_type_info *info = jl_info(e->types, type);
    if (info->kind == JL_STR || info->kind == JL_SLICE) return true;
    if (info->kind != JL_STRUCT) return false;
    for (uint32_t i = 0; i < info->field_count; i++) {
        if (has_shape(e, info->fields[i].type)) return true;
    }
    return false;
}

void jl_c_put_shape(struct jl_emitter *e, jl_type type)
{
    type = jl_c_value_type(e, type);
    if (has_shape(e, type)) {
        jl_c_put(e, "&shape_%u", type);
    } else {
        jl_c_put(e, "NULL");
    }
}

static uint32_t put_parts(struct jl_emitter *e, jl_type type, uint32_t offset)
{
    const struct jl_type_info *info = jl_info(e->types, type);
    uint32_t                   count = 0;
    if (info->kind == JL_STR) {
        jl_c_put(e, "    {%u, 1, NULL},\n", offset);
        return 1;
    }
    if (info->kind == JL_SLICE) {
        jl_c_put(e, "    {%u, %u, ", offset, jl_size(e->types, info->of));
        jl_c_put_shape(e, info->of);
        jl_c_put(e, "},\n");
        return 1;
    }
    if (info->kind != JL_STRUCT) return 0;
    for (uint32_t i = 0; i < info->field_count; i++) {
        count += put_parts(e, info->fields[i].type, offset + info->fields[i].offset);
    }
    return count;
}

static bool may_be_stored(const struct jl_emitter *e, jl_type type)
{
    enum jl_kind kind = jl_kind_of(e->types, type);
    return kind == JL_STR || kind == JL_SLICE || kind == JL_STRUCT;
}

bool jl_c_put_shape_of(struct jl_emitter *e, jl_type type, uint32_t first, uint32_t second)
{
    if (!has_shape(e, type)) return false;
    jl_c_put(e, "static const struct jl_part parts_%u_%u[] = {\n", first, second);
    uint32_t count = put_parts(e, type, 0);
    jl_c_put(e, "};\nstatic const struct jl_shape shape_%u_%u = {%u, %u, parts_%u_%u};\n", first,
             second, jl_size(e->types, type), count, first, second);
    return true;
}

void jl_c_put_shapes(struct jl_emitter *e)
{
    for (jl_type type = 0; type < e->types->count; type++) {
        if (may_be_stored(e, type) && has_shape(e, type)) {
            jl_c_put(e, "static const struct jl_shape shape_%u;\n", type);
        }
    }
    for (jl_type type = 0; type < e->types->count; type++) {
        if (!may_be_stored(e, type) || !has_shape(e, type)) continue;
        jl_c_put(e, "static const struct jl_part parts_%u[] = {\n", type);
        uint32_t count = put_parts(e, type, 0);
        jl_c_put(e, "};\nstatic const struct jl_shape shape_%u = {%u, %u, parts_%u};\n", type,
                 jl_size(e->types, type), count, type);
    }
}

/* How a value crosses to a plugin. */
static void put_cross(struct jl_emitter *e, const struct jl_type_info *iface, jl_type type)
{
    type = jl_c_value_type(e, type);
    const struct jl_type_info *info = jl_info(e->types, type);
    if (info->kind == JL_VOID) {
        jl_c_put(e, "{JL_CROSS_VOID, 0}");
    } else if (info->kind == JL_F64) {
        jl_c_put(e, "{JL_CROSS_F64, 8}");
    } else if (info->kind == JL_STR) {
        jl_c_put(e, "{JL_CROSS_SLICE, 1}");
    } else if (info->kind == JL_BOOL) {
        jl_c_put(e, "{JL_CROSS_WORD, 1 | JL_CROSS_UNSIGNED}");
    } else if (jl_is_integer(type)) {
        jl_c_put(e, "{JL_CROSS_WORD, %u%s}", jl_bits(type) / 8,
                 jl_is_signed(type) ? "" : " | JL_CROSS_UNSIGNED");
    } else if (info->kind == JL_SLICE && (jl_is_number(info->of) || info->of == JL_BOOL)) {
        jl_c_put(e, "{JL_CROSS_SLICE, %u}", jl_size(e->types, info->of));
    } else {
        jl_c_cannot(e, "a method of %s has a value of type %s, which cannot cross to a plugin",
                    iface->name, jl_type_text(e->types, type));
    }
}

static void put_interface(struct jl_emitter *e, jl_type type)
{
    const struct jl_type_info *iface = jl_info(e->types, type);
    jl_c_put(e, "static const struct jl_method methods_%u[] = {\n", type);
    for (uint32_t i = 0; i < iface->method_count; i++) {
        const struct jl_type_info *fn = jl_info(e->types, iface->methods[i].fn);
        if (fn->param_count > 8) {
            jl_c_cannot(e, "the method %s of %s has more than 8 parameters", iface->methods[i].name,
                        iface->name);
            return;
        }
        jl_c_put(e, "    {\"%s\", %u, {", iface->methods[i].name, fn->param_count);
        for (uint32_t k = 0; k < fn->param_count; k++) {
            jl_c_put(e, "%s", k > 0 ? ", " : "");
            put_cross(e, iface, fn->params[k]);
        }
        jl_c_put(e, "%s}, ", fn->param_count == 0 ? "{0, 0}" : "");
        put_cross(e, iface, fn->of);
        jl_c_put(e, "},\n");
    }
    if (iface->method_count == 0) jl_c_put(e, "    {NULL, 0, {{0, 0}}, {0, 0}},\n");
    jl_c_put(e,
             "};\nstatic const struct jl_interface_type interface_%u = {\"%s\", methods_%u, %u};\n",
             type, iface->name, type, iface->method_count);
}

void jl_c_put_interfaces(struct jl_emitter *e)
{
    for (jl_type type = 0; type < e->types->count; type++) {
        if (jl_kind_of(e->types, type) == JL_IFACE) put_interface(e, type);
    }
}
