/* SPDX-License-Identifier: MIT */
/* The table of types: one number for each type, its layout and its text. */
#include "type/type.h"

#include <string.h>

enum { POINTER = 8, PAIR = 16, BUDGET = 40 };

static const struct {
    const char *name;
    uint32_t    size, align;
} simple[JL_SIMPLE_KINDS] = {
    [JL_BAD] = {"?", 0, 1},
    [JL_VOID] = {"void", 0, 1},
    [JL_NEVER] = {"never", 0, 1},
    [JL_BOOL] = {"bool", 1, 1},
    [JL_I8] = {"i8", 1, 1},
    [JL_I16] = {"i16", 2, 2},
    [JL_I32] = {"i32", 4, 4},
    [JL_I64] = {"i64", 8, 8},
    [JL_U8] = {"u8", 1, 1},
    [JL_U16] = {"u16", 2, 2},
    [JL_U32] = {"u32", 4, 4},
    [JL_U64] = {"u64", 8, 8},
    [JL_F64] = {"f64", 8, 8},
    [JL_STR] = {"str", PAIR, 8},
    [JL_ERROR] = {"error", 8, 8},
    [JL_NURSERY] = {"nursery", POINTER, 8},
    [JL_BUDGET] = {"Budget", BUDGET, 8},
    [JL_CAP_SPAWN] = {"CapSpawn", PAIR, 8},
    [JL_CAP_BUDGET] = {"CapBudget", PAIR, 8},
    [JL_CAP_CHANNEL] = {"CapChannel", PAIR, 8},
    [JL_CAP_EXECUTOR] = {"CapExecutor", PAIR, 8},
    [JL_SUPERVISOR] = {"Supervisor", POINTER, 8},
};

static jl_type add(struct jl_types *types, struct jl_type_info info)
{
    jl_type type = types->count;
    JL_PUSH(types->arena, types->infos, types->count, types->room) = info;
    return type;
}

void jl_types_init(struct jl_types *types, struct jl_arena *arena)
{
    *types = (struct jl_types){.arena = arena};
    for (unsigned kind = 0; kind < JL_SIMPLE_KINDS; kind++)
        add(types, (struct jl_type_info){
                       .kind = (enum jl_kind)kind,
                       .name = simple[kind].name,
                       .size = simple[kind].size,
                       .align = simple[kind].align,
                       .laid_out = true,
                   });
}

/* A type made of one other type. */
static jl_type made_of(struct jl_types *types, enum jl_kind kind, jl_type of, uint32_t size,
                       uint32_t align)
{
    for (jl_type type = JL_SIMPLE_KINDS; type < types->count; type++)
        if (types->infos[type].kind == kind && types->infos[type].of == of) return type;
    return add(types, (struct jl_type_info){
                          .kind = kind, .of = of, .size = size, .align = align, .laid_out = true});
}

jl_type jl_slice_of(struct jl_types *types, jl_type element)
{
    return made_of(types, JL_SLICE, element, PAIR, 8);
}

jl_type jl_fallible_of(struct jl_types *types, jl_type value)
{
    if (jl_kind_of(types, value) == JL_FALLIBLE) return value;
    return made_of(types, JL_FALLIBLE, value, 0, 1);
}

jl_type jl_task_of(struct jl_types *types, jl_type value)
{
    return made_of(types, JL_TASK, value, POINTER, 8);
}

jl_type jl_channel_of(struct jl_types *types, jl_type element)
{
    return made_of(types, JL_CHANNEL, element, PAIR, 8);
}

jl_type jl_start_of(struct jl_types *types, jl_type actor)
{
    jl_type type = made_of(types, JL_START, actor, 0, 1);
    types->infos[type].name = types->infos[actor].name;
    return type;
}

jl_type jl_fn_of(struct jl_types *types, const jl_type *params, uint32_t count, jl_type result)
{
    size_t bytes = count * sizeof *params;
    for (jl_type type = JL_SIMPLE_KINDS; type < types->count; type++) {
        const struct jl_type_info *info = &types->infos[type];
        if (info->kind != JL_FN || info->of != result || info->param_count != count) continue;
        if (!count || !memcmp(info->params, params, bytes)) return type;
    }
    jl_type *copy = jl_new(types->arena, bytes);
    if (count) memcpy(copy, params, bytes);
    return add(types, (struct jl_type_info){
                          .kind = JL_FN,
                          .of = result,
                          .params = copy,
                          .param_count = count,
                          .size = PAIR,
                          .align = 8,
                          .laid_out = true,
                      });
}

jl_type jl_named(struct jl_types *types, enum jl_kind kind, const char *name)
{
    uint32_t size = kind == JL_STRUCT ? 0 : kind == JL_IFACE ? POINTER : PAIR;
    return add(types, (struct jl_type_info){
                          .kind = kind,
                          .name = name,
                          .size = size,
                          .align = kind == JL_STRUCT ? 1 : 8,
                          .laid_out = kind == JL_IFACE || kind == JL_HOST,
                      });
}

/* Layout. */

enum { NESTING = 200 };

static bool lay_out(struct jl_types *types, jl_type type, unsigned depth)
{
    struct jl_type_info *info = &types->infos[type];
    if (info->laid_out) return true;
    if (depth > NESTING) return false;
    uint64_t size = 0;
    uint32_t align = 1;
    bool     is_plain = true;
    for (uint32_t i = 0; i < info->field_count; i++) {
        struct jl_field *field = &info->fields[i];
        if (!lay_out(types, field->type, depth + 1)) return false;
        uint32_t own = jl_align(types, field->type);
        size = (size + own - 1) & ~(uint64_t)(own - 1);
        field->offset = (uint32_t)size;
        size += jl_size(types, field->type);
        if (own > align) align = own;
        if (size > INT32_MAX) return false;
        is_plain = is_plain && jl_is_plain(types, field->type);
    }
    size = (size + align - 1) & ~(uint64_t)(align - 1);
    if (info->kind == JL_ACTOR) {
        info->state_size = (uint32_t)size;
    } else {
        info->size = size ? (uint32_t)size : 1; /* a struct without fields is one byte in C */
        info->align = align;
    }
    info->is_plain = is_plain;
    info->laid_out = true;
    return true;
}

bool jl_layout(struct jl_types *types, jl_type type) { return lay_out(types, type, 0); }

uint32_t jl_size(const struct jl_types *types, jl_type type) { return types->infos[type].size; }

uint32_t jl_align(const struct jl_types *types, jl_type type)
{
    uint32_t align = types->infos[type].align;
    return align ? align : 1;
}

/* Questions. */

bool     jl_is_integer(jl_type type) { return type >= JL_I8 && type <= JL_U64; }
bool     jl_is_signed(jl_type type) { return type >= JL_I8 && type <= JL_I64; }
bool     jl_is_number(jl_type type) { return jl_is_integer(type) || type == JL_F64; }
bool     jl_is_cap(jl_type type) { return type >= JL_CAP_SPAWN && type <= JL_CAP_EXECUTOR; }
unsigned jl_bits(jl_type type)
{
    if (!jl_is_integer(type)) return 0;
    return 8u << ((type - JL_I8) & 3);
}
_Static_assert(JL_U8 - JL_I8 == 4, "jl_bits counts in fours");

bool jl_is_plain(const struct jl_types *types, jl_type type)
{
    const struct jl_type_info *info = &types->infos[type];
    switch (info->kind) {
    case JL_STR:
    case JL_SUPERVISOR:
    case JL_NURSERY:
    case JL_SLICE:
    case JL_FN:
    case JL_TASK:
    case JL_IFACE: return false;
    case JL_STRUCT: return info->is_plain;
    case JL_FALLIBLE: return jl_is_plain(types, info->of); /* never of a fallible type */
    default: return true;
    }
}

/* Text. */

static const char *text_at(const struct jl_types *types, jl_type type, unsigned depth)
{
    const struct jl_type_info *info = &types->infos[type];
    struct jl_arena           *arena = types->arena;
    if (depth > NESTING) return "...";
    switch (info->kind) {
    case JL_SLICE: return jl_format(arena, "[]%s", text_at(types, info->of, depth + 1));
    case JL_FALLIBLE: return jl_format(arena, "!%s", text_at(types, info->of, depth + 1));
    case JL_TASK: return jl_format(arena, "task %s", text_at(types, info->of, depth + 1));
    case JL_CHANNEL: return jl_format(arena, "channel %s", text_at(types, info->of, depth + 1));
    case JL_START: return jl_format(arena, "start %s", info->name);
    case JL_FN: {
        const char *params = "";
        for (uint32_t i = 0; i < info->param_count; i++)
            params = jl_format(arena, "%s%s%s", params, i ? ", " : "",
                               text_at(types, info->params[i], depth + 1));
        return jl_format(arena, "fn(%s) -> %s", params, text_at(types, info->of, depth + 1));
    }
    default: return info->name;
    }
}

const char *jl_type_text(const struct jl_types *types, jl_type type)
{
    return text_at(types, type, 0);
}
