/* SPDX-License-Identifier: MIT */
/* Written types, and type variables. */
#include "meaning/check.h"

#include <string.h>

/* Variables. */

jl_type jl_new_var(struct jl_checker *c, struct jl_span at)
{
    if (c->var_used == c->var_count) { /* else one of an earlier function serves again */
        jl_type type = jl_named(c->types, JL_BAD, "?");
        JL_PUSH(c->arena, c->vars, c->var_count, c->var_room) = (struct jl_var){.type = type};
        c->types->infos[type].of = c->var_count;
    }
    struct jl_var *var = &c->vars[c->var_used++];
    *var = (struct jl_var){.type = var->type, .at = at};
    return var->type;
}

bool jl_is_var(const struct jl_checker *c, jl_type type)
{
    return type >= JL_SIMPLE_KINDS && jl_kind_of(c->types, type) == JL_BAD;
}

struct jl_var *jl_var_of(struct jl_checker *c, jl_type type)
{
    return &c->vars[jl_info(c->types, type)->of - 1];
}

static bool has_var(const struct jl_checker *c, jl_type type)
{
    const struct jl_type_info *info = jl_info(c->types, type);
    switch (info->kind) {
    case JL_BAD: return type != JL_BAD;
    case JL_SLICE:
    case JL_FALLIBLE:
    case JL_TASK:
    case JL_CHANNEL: return has_var(c, info->of);
    case JL_FN:
        for (uint32_t i = 0; i < info->param_count; i++)
            if (has_var(c, info->params[i])) return true;
        return has_var(c, info->of);
    default: return false;
    }
}

static jl_type resolve_fn(struct jl_checker *c, jl_type type)
{
    struct jl_type_info info = *jl_info(c->types, type);
    jl_type            *params = jl_new(c->arena, info.param_count * sizeof *params);
    for (uint32_t i = 0; i < info.param_count; i++) params[i] = jl_resolve(c, info.params[i]);
    return jl_fn_of(c->types, params, info.param_count, jl_resolve(c, info.of));
}

jl_type jl_resolve(struct jl_checker *c, jl_type type)
{
    if (!has_var(c, type)) return type;
    jl_type of = jl_info(c->types, type)->of;
    switch (jl_kind_of(c->types, type)) {
    case JL_SLICE: return jl_slice_of(c->types, jl_resolve(c, of));
    case JL_FALLIBLE: return jl_fallible_of(c->types, jl_resolve(c, of));
    case JL_TASK: return jl_task_of(c->types, jl_resolve(c, of));
    case JL_CHANNEL: return jl_channel_of(c->types, jl_resolve(c, of));
    case JL_FN: return resolve_fn(c, type);
    default: break;
    }
    const struct jl_var *var = jl_var_of(c, type);
    if (var->is_bad) return JL_BAD;
    return var->bound ? jl_resolve(c, var->bound) : type;
}

void jl_note_slot(struct jl_checker *c, jl_type *slot)
{
    if (has_var(c, *slot)) JL_PUSH(c->arena, c->slots, c->slot_count, c->slot_room) = slot;
}

static bool occurs(const struct jl_checker *c, jl_type var, jl_type in)
{
    const struct jl_type_info *info = jl_info(c->types, in);
    if (var == in) return true;
    switch (info->kind) {
    case JL_SLICE:
    case JL_FALLIBLE:
    case JL_TASK:
    case JL_CHANNEL: return occurs(c, var, info->of);
    case JL_FN:
        for (uint32_t i = 0; i < info->param_count; i++)
            if (occurs(c, var, info->params[i])) return true;
        return occurs(c, var, info->of);
    default: return false;
    }
}

static bool bind(struct jl_checker *c, jl_type var, jl_type to)
{
    if (occurs(c, var, to)) return false;
    struct jl_var *from = jl_var_of(c, var);
    if (jl_is_var(c, to)) {
        struct jl_var *other = jl_var_of(c, to);
        other->is_number |= from->is_number;
        other->is_array |= from->is_array;
    } else if (from->is_number && !jl_is_number(to)) {
        return false;
    }
    from->bound = to;
    return true;
}

static bool unify_fn(struct jl_checker *c, jl_type wanted, jl_type found)
{
    uint32_t count = jl_info(c->types, wanted)->param_count;
    if (count != jl_info(c->types, found)->param_count) return false;
    for (uint32_t i = 0; i < count; i++)
        if (!jl_unify(c, jl_info(c->types, wanted)->params[i], jl_info(c->types, found)->params[i]))
            return false;
    return jl_unify(c, jl_info(c->types, wanted)->of, jl_info(c->types, found)->of);
}

bool jl_unify(struct jl_checker *c, jl_type wanted, jl_type found)
{
    wanted = jl_resolve(c, wanted);
    found = jl_resolve(c, found);
    if (wanted == found || wanted == JL_BAD || found == JL_BAD) return true;
    if (jl_is_var(c, wanted)) return bind(c, wanted, found);
    if (jl_is_var(c, found)) return bind(c, found, wanted);
    enum jl_kind kind = jl_kind_of(c->types, wanted);
    if (kind != jl_kind_of(c->types, found)) return false;
    jl_type left = jl_info(c->types, wanted)->of, right = jl_info(c->types, found)->of;
    switch (kind) {
    case JL_SLICE:
    case JL_FALLIBLE:
    case JL_TASK:
    case JL_CHANNEL: return jl_unify(c, left, right);
    case JL_FN: return unify_fn(c, wanted, found);
    default: return false;
    }
}

/* Questions. */

/* The type with i64 for elements that only literals speak of. */
static jl_type default_of(struct jl_checker *c, jl_type type)
{
    if (jl_is_var(c, type)) return jl_var_of(c, type)->is_number ? JL_I64 : type;
    if (jl_kind_of(c->types, type) != JL_SLICE || !has_var(c, type)) return type;
    return jl_slice_of(c->types, default_of(c, jl_info(c->types, type)->of));
}

const char *jl_show(struct jl_checker *c, jl_type type)
{
    type = jl_resolve(c, type);
    if (jl_is_var(c, type)) return jl_var_of(c, type)->is_number ? "an integer" : "unknown";
    return jl_type_text(c->types, default_of(c, type));
}

bool jl_is_fallible(const struct jl_checker *c, jl_type type)
{
    return jl_kind_of(c->types, type) == JL_FALLIBLE;
}

jl_type jl_value_type(const struct jl_checker *c, jl_type type)
{
    return jl_is_fallible(c, type) ? jl_info(c->types, type)->of : type;
}

static bool search(struct jl_checker *c, jl_type type, uint64_t kinds)
{
    const struct jl_type_info *info = jl_info(c->types, type);
    if (kinds >> info->kind & 1) return true;
    if (type < JL_SIMPLE_KINDS || c->marks[type] == c->mark) return false;
    c->marks[type] = c->mark;
    switch (info->kind) {
    case JL_SLICE:
    case JL_FALLIBLE:
    case JL_TASK:
    case JL_CHANNEL: return search(c, info->of, kinds);
    case JL_STRUCT:
        for (uint32_t i = 0; i < info->field_count; i++)
            if (search(c, info->fields[i].type, kinds)) return true;
        return false;
    default: return false;
    }
}

bool jl_holds(struct jl_checker *c, jl_type type, uint64_t kinds)
{
    type = jl_resolve(c, type);
    if (c->mark_room < c->types->count) {
        c->mark_room = 2 * c->types->count;
        c->marks = jl_new(c->arena, c->mark_room * sizeof *c->marks);
        c->mark = 0;
    }
    c->mark++;
    return search(c, type, kinds);
}

bool jl_has_zero(struct jl_checker *c, jl_type type)
{
    type = jl_resolve(c, type);
    if (jl_kind_of(c->types, type) == JL_SLICE) return true; /* an empty one */
    uint64_t without = 1u << JL_VOID | 1u << JL_NEVER | 1u << JL_ERROR | 1u << JL_CAP_SPAWN |
                       1u << JL_CAP_BUDGET | 1u << JL_CAP_CHANNEL | 1u << JL_CAP_EXECUTOR |
                       1u << JL_SUPERVISOR | (uint64_t)1 << JL_FN | (uint64_t)1 << JL_TASK |
                       (uint64_t)1 << JL_CHANNEL | (uint64_t)1 << JL_ACTOR |
                       (uint64_t)1 << JL_START | (uint64_t)1 << JL_IFACE | (uint64_t)1 << JL_HOST;
    return !jl_holds(c, type, without);
}

/* Whether a copy has an end: no type within itself, and less than WEIGHT_MAX parts. The verifier of
 * QTJIR counts in the same way. */
enum { WEIGHT_MAX = 10000, WEIGHT_DEPTH = 100 };

static bool weighs_little(const struct jl_checker *c, jl_type type, unsigned depth, uint32_t *parts)
{
    const struct jl_type_info *info = jl_info(c->types, type);
    if (depth > WEIGHT_DEPTH || ++*parts >= WEIGHT_MAX) return false;
    if (info->kind == JL_SLICE || info->kind == JL_FALLIBLE)
        return weighs_little(c, info->of, depth + 1, parts);
    for (uint32_t i = 0; info->kind == JL_STRUCT && i < info->field_count; i++)
        if (!weighs_little(c, info->fields[i].type, depth + 1, parts)) return false;
    return true;
}

bool jl_crosses(struct jl_checker *c, jl_type type)
{
    uint32_t parts = 0;
    return weighs_little(c, jl_resolve(c, type), 0, &parts) &&
           !jl_holds(c, type,
                     1u << JL_SUPERVISOR | (uint64_t)1 << JL_FN | (uint64_t)1 << JL_TASK |
                         (uint64_t)1 << JL_START | (uint64_t)1 << JL_IFACE |
                         (uint64_t)1 << JL_HOST);
}

/* A member, a call or a loop needs to know the type at once. */
void jl_report_unknown(struct jl_checker *c, struct jl_span at, jl_type var)
{
    const char *param = jl_var_of(c, jl_resolve(c, var))->param;
    JL_WRONG(c, "T4010", at, "nothing before this place says which type `%s` has", jl_snip(c, at))
        ->help = param ? jl_format(c->arena, "write its type: `|%.60s: T|`", param)
                       : "write the type where the value is declared, as `array(T, n)`";
}

enum { TYPE_DEPTH = 50 };

bool jl_is_deep(struct jl_checker *c, jl_type type, struct jl_span at)
{
    type = jl_resolve(c, type);
    for (unsigned depth = 0; type >= JL_SIMPLE_KINDS; depth++) {
        if (depth == TYPE_DEPTH) {
            JL_WRONG(c, "T4026", at, "the type of this value is nested more than %d times",
                     TYPE_DEPTH)
                ->help = "use a struct";
            return true;
        }
        enum jl_kind kind = jl_kind_of(c->types, type);
        if (kind != JL_SLICE && kind != JL_FN && kind != JL_TASK && kind != JL_FALLIBLE) break;
        type = jl_info(c->types, type)->of;
    }
    return false;
}

/* Written types. */

static jl_type read_name(struct jl_checker *c, const struct jl_written *written)
{
    const struct jl_symbol *symbol = jl_look_up(c, written->name);
    if (!strcmp(written->name, "void")) return JL_VOID;
    if (!strcmp(written->name, "error")) return JL_ERROR;
    if (symbol) {
        switch (symbol->kind) {
        case JL_SYMBOL_ACTOR:
        case JL_SYMBOL_INTERFACE:
        case JL_SYMBOL_STRUCT:
        case JL_SYMBOL_HOST_TYPE: return symbol->type;
        case JL_SYMBOL_BUILTIN:
            if (symbol->index != JL_BUILTIN_TYPE) break;
            jl_may_hold_caps(c, written->at, written->name);
            return symbol->type;
        default: break;
        }
        JL_WRONG(c, "N1008", written->at, "`%.60s` is a value and not a type", written->name)
            ->help = "write the name of a type, as i64, str or []u8";
        return JL_BAD;
    }
    struct jl_guess guess = jl_guess_of(written->name);
    for (uint32_t i = 0; i < c->binding_count; i++) {
        enum jl_symbol_kind kind = c->bindings[i].symbol->kind;
        bool                is_type = kind == JL_SYMBOL_ACTOR || kind == JL_SYMBOL_INTERFACE ||
                       kind == JL_SYMBOL_STRUCT || kind == JL_SYMBOL_HOST_TYPE ||
                       (kind == JL_SYMBOL_BUILTIN && c->bindings[i].symbol->type);
        if (is_type) jl_guess(&guess, c->bindings[i].name);
    }
    struct jl_diagnostic *wrong =
        JL_WRONG(c, "N1008", written->at, "the type `%.60s` is unknown", written->name);
    const char *own = jl_own_type(written->name);
    wrong->help = own ? jl_format(c->arena, "write `%s`", own) : jl_did_you_mean(c, guess.best);
    if (!wrong->help) wrong->help = "declare a struct, an actor or an interface with this name";
    return JL_BAD;
}

static jl_type read_fn(struct jl_checker *c, const struct jl_written *written)
{
    jl_type *params = jl_new(c->arena, written->param_count * sizeof *params);
    for (uint32_t i = 0; i < written->param_count; i++)
        params[i] = jl_read_type(c, written->params[i], 0);
    jl_type result = jl_read_type(c, written->of, JL_AS_RESULT);
    return jl_fn_of(c->types, params, written->param_count, result);
}

/* The element of a slice, a channel or a task. */
static jl_type read_element(struct jl_checker *c, const struct jl_written *written, bool is_task)
{
    jl_type type = jl_read_type(c, written->of, 0);
    if (type == JL_VOID && !is_task) {
        JL_WRONG(c, "T4015", written->of ? written->of->at : written->at,
                 "void has no values, so nothing can be made of it")
            ->help = "write the type of the elements";
        return JL_BAD;
    }
    return type;
}

static jl_type read_channel(struct jl_checker *c, const struct jl_written *written)
{
    jl_need_tasks(c, written->at, "channel");
    jl_type type = read_element(c, written, false);
    if (type == JL_BAD) return JL_BAD;
    if (jl_crosses(c, type)) return jl_channel_of(c->types, type);
    JL_WRONG(c, "T4031", written->at, "%s cannot be copied to another task, so no channel takes it",
             jl_show(c, type))
        ->help = "send numbers, str, slices or structs of these";
    return JL_BAD;
}

jl_type jl_read_type(struct jl_checker *c, const struct jl_written *written, unsigned flags)
{
    jl_type of;
    if (!written) return JL_VOID;
    switch (written->kind) {
    case JL_WRITTEN_BAD: return JL_BAD;
    case JL_WRITTEN_NAME: return read_name(c, written);
    case JL_WRITTEN_SLICE:
        of = read_element(c, written, false);
        return of ? jl_slice_of(c->types, of) : JL_BAD;
    case JL_WRITTEN_FN: return read_fn(c, written);
    case JL_WRITTEN_FALLIBLE:
        of = jl_read_type(c, written->of, 0);
        if (flags & JL_AS_RESULT) return of || !written->of ? jl_fallible_of(c->types, of) : JL_BAD;
        JL_WRONG(c, "T4025", written->at, "only the result of a function can be `%s`",
                 jl_snip(c, written->at))
            ->help = "write the type without `!`, and `try` where the value is made";
        return of;
    case JL_WRITTEN_CHANNEL: return read_channel(c, written);
    case JL_WRITTEN_TASK:
        jl_need_tasks(c, written->at, "task");
        of = read_element(c, written, true);
        return of || !written->of ? jl_task_of(c->types, of) : JL_BAD;
    }
    return JL_BAD;
}
