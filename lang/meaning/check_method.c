/* SPDX-License-Identifier: MIT */
/* Calls of the form x.name(...). */
#include "meaning/check.h"

#include <string.h>

static bool is(const struct jl_expr *e, const char *name)
{
    return e->left->name.text && !strcmp(e->left->name.text, name);
}

static jl_type drop_args(struct jl_checker *c, struct jl_expr *e)
{
    for (uint32_t i = 0; i < e->arg_count; i++) jl_check_value(c, e->args[i].value, 0);
    return JL_BAD;
}

/* Checks arguments against a list of types. */
static void check_args(struct jl_checker *c, struct jl_expr *e, const jl_type *params,
                       uint32_t count)
{
    jl_type fn = jl_fn_of(c->types, params, count, JL_VOID);
    jl_check_args(c, e, fn, NULL, jl_format(c->arena, "`%s`", e->left->name.text), false, NULL);
}

/* Name.method(...), where Name is a type. */
static jl_type call_static(struct jl_checker *c, struct jl_expr *e, struct jl_symbol *symbol)
{
    symbol->is_used = true;
    if (symbol->kind == JL_SYMBOL_ACTOR && is(e, "new")) {
        e->call = JL_CALL_ACTOR_NEW;
        check_args(c, e, NULL, 0);
        return jl_start_of(c->types, symbol->type);
    }
    if (symbol->type == JL_SUPERVISOR && is(e, "new")) {
        e->call = JL_CALL_SUPERVISOR_NEW;
        check_args(c, e, NULL, 0);
        jl_need_tasks(c, e->left->at, "Supervisor");
        return JL_SUPERVISOR;
    }
    if (jl_is_cap(symbol->type) && is(e, "delegatable")) {
        e->call = JL_CALL_CAP_NEW;
        return jl_check_cap(c, e, symbol->type, true);
    }
    drop_args(c, e);
    struct jl_guess guess = jl_guess_of(e->left->name.text);
    if (symbol->kind == JL_SYMBOL_ACTOR || symbol->type == JL_SUPERVISOR) jl_guess(&guess, "new");
    if (jl_is_cap(symbol->type)) jl_guess(&guess, "delegatable");
    struct jl_diagnostic *wrong =
        JL_WRONG(c, "N1007", e->left->name.at, "the type `%s` has no function `%.60s`",
                 symbol->name, e->left->name.text);
    wrong->help = jl_did_you_mean(c, guess.best);
    if (!guess.best)
        wrong->help = symbol->kind == JL_SYMBOL_ACTOR
                          ? jl_format(c->arena,
                                      "start one with `supervisor.spawn(%s.new())`, and "
                                      "call its methods",
                                      symbol->name)
                          : "call the methods of a value of this type";
    return JL_BAD;
}

static bool is_type(const struct jl_symbol *symbol)
{
    return symbol->kind == JL_SYMBOL_ACTOR || symbol->kind == JL_SYMBOL_INTERFACE ||
           symbol->kind == JL_SYMBOL_STRUCT || symbol->kind == JL_SYMBOL_HOST_TYPE ||
           (symbol->kind == JL_SYMBOL_BUILTIN && symbol->type);
}

static jl_type call_channel(struct jl_checker *c, struct jl_expr *e, jl_type type)
{
    jl_type element = jl_info(c->types, type)->of;
    jl_add_effect(c, JL_EFFECT_CHANNEL);
    if (is(e, "send")) {
        e->call = JL_CALL_SEND;
        check_args(c, e, &element, 1);
        if (e->arg_count == 1) jl_check_outward(c, e->args[0].value, "a channel");
        return jl_fallible_of(c->types, JL_VOID);
    }
    if (is(e, "recv") || is(e, "close")) {
        bool is_recv = is(e, "recv");
        e->call = is_recv ? JL_CALL_RECV : JL_CALL_CLOSE;
        check_args(c, e, NULL, 0);
        return is_recv ? jl_fallible_of(c->types, element) : JL_VOID;
    }
    jl_check_no_member(c, e->left, type);
    return drop_args(c, e);
}

static jl_type call_supervisor(struct jl_checker *c, struct jl_expr *e)
{
    e->call = JL_CALL_SUPERVISOR_SPAWN;
    jl_need_nursery(c, e->left->at, "supervisor.spawn");
    jl_add_effect(c, JL_EFFECT_SPAWN);
    jl_type type = e->arg_count ? jl_check_value(c, e->args[0].value, 0) : JL_BAD;
    for (uint32_t i = 1; i < e->arg_count; i++) jl_check_value(c, e->args[i].value, 0);
    if (e->arg_count != 1) {
        JL_WRONG(c, "T4004", e->left->at,
                 "`spawn` of a supervisor takes 1 argument, but %u are given", e->arg_count)
            ->help = "write `supervisor.spawn(Name.new())`";
        return JL_BAD;
    }
    if (type == JL_BAD) return JL_BAD;
    if (jl_kind_of(c->types, type) != JL_START) {
        JL_WRONG(c, "T4014", e->args[0].value->at, "a supervisor starts actors, but this is %s",
                 jl_show(c, type))
            ->help = "write `supervisor.spawn(Name.new())` with the name of an actor";
        return JL_BAD;
    }
    jl_type actor = jl_info(c->types, type)->of;
    return c->tried == e ? jl_fallible_of(c->types, actor) : actor;
}

static jl_type call_budget(struct jl_checker *c, struct jl_expr *e, jl_type type)
{
    static const jl_type number = JL_I64;
    const char          *name = e->left->name.text;
    if (type == JL_CAP_BUDGET && is(e, "toBudget")) {
        e->call = JL_CALL_TO_BUDGET;
        check_args(c, e, NULL, 0);
        return JL_BUDGET;
    }
    for (uint32_t i = 0; type == JL_BUDGET && name && i < 5; i++) {
        if (strncmp(name, "with_", 5) != 0 || strcmp(name + 5, jl_budget_fields[i]) != 0) continue;
        e->call = JL_CALL_WITH;
        e->method = i;
        check_args(c, e, &number, 1);
        return JL_BUDGET;
    }
    jl_check_no_member(c, e->left, type);
    return drop_args(c, e);
}

static struct jl_function *actor_method(const struct jl_checker *c, jl_type type, uint32_t index)
{
    for (uint32_t i = 0; i < c->unit->actor_count; i++)
        if (c->unit->actors[i]->type == type) return c->unit->actors[i]->methods[index];
    return NULL;
}

static jl_type call_named(struct jl_checker *c, struct jl_expr *e, jl_type type)
{
    bool        is_actor = jl_kind_of(c->types, type) == JL_ACTOR;
    const char *name = e->left->name.text;
    uint32_t    count = jl_info(c->types, type)->method_count, i = 0;
    while (i < count && jl_info(c->types, type)->methods[i].name != name) i++;
    if (i == count) {
        jl_check_no_member(c, e->left, type);
        return drop_args(c, e);
    }
    jl_type     fn = jl_info(c->types, type)->methods[i].fn;
    jl_type     result = jl_info(c->types, fn)->of;
    const char *callee = jl_format(c->arena, "`%.60s`", name);
    e->method = i;
    if (!is_actor) {
        e->call = JL_CALL_INTERFACE;
        callee = jl_format(c->arena, "`%.60s` of the interface %s", name, jl_show(c, type));
        jl_check_args(c, e, fn, NULL, callee, true, NULL);
        jl_add_effect(c, JL_EFFECT_NATIVE);
        return result;
    }
    e->callee_function = actor_method(c, type, i);
    e->call = result == JL_VOID ? JL_CALL_ACTOR_SEND : JL_CALL_ACTOR_CALL;
    jl_check_args(c, e, fn, NULL, callee, false, e->callee_function);
    jl_add_effect(c, JL_EFFECT_AWAIT);
    bool is_bad = result == JL_BAD;
    return is_bad ? JL_BAD : jl_fallible_of(c->types, result);
}

static bool call_host_method(struct jl_checker *c, struct jl_expr *e, jl_type type, jl_type *result)
{
    for (uint32_t i = 0; c->host && i < c->host->count; i++) {
        const struct jl_host_entry *entry = &c->host->entries[i];
        if (entry->receiver != type || entry->kind != JL_HOST_FUNCTION || !e->left->name.text ||
            strcmp(entry->name, e->left->name.text) != 0)
            continue;
        e->call = JL_CALL_HOST;
        e->host = i;
        jl_check_args(c, e, entry->fn, entry->param_names, jl_format(c->arena, "`%s`", entry->name),
                      !entry->row->trusted_only, NULL);
        jl_check_host_effects(c, e, entry);
        *result = jl_info(c->types, entry->fn)->of;
        return true;
    }
    return false;
}

/* A field that holds a closure is called like a method. */
static jl_type call_field(struct jl_checker *c, struct jl_expr *e, jl_type type)
{
    const struct jl_type_info *info = jl_info(c->types, type);
    for (uint32_t i = 0; i < info->field_count; i++) {
        jl_type fn = info->fields[i].type;
        if (info->fields[i].name != e->left->name.text) continue;
        e->left->method = i;
        e->left->type = fn;
        e->receiver = NULL;
        e->call = JL_CALL_VALUE;
        jl_note_call(c, e, NULL);
        if (jl_kind_of(c->types, fn) == JL_FN) {
            jl_check_args(c, e, fn, NULL, jl_format(c->arena, "`%s`", e->left->name.text), false,
                          NULL);
            return jl_info(c->types, fn)->of;
        }
        if (fn != JL_BAD)
            JL_WRONG(c, "T4005", e->left->name.at, "the field `%s` is %s and cannot be called",
                     e->left->name.text, jl_show(c, fn))
                ->help = "remove the brackets";
        return drop_args(c, e);
    }
    jl_check_no_member(c, e->left, type);
    return drop_args(c, e);
}

jl_type jl_check_method(struct jl_checker *c, struct jl_expr *e)
{
    struct jl_expr *receiver = e->left->left;
    if (receiver->kind == JL_E_NAME) {
        struct jl_symbol *symbol = jl_look_up(c, receiver->name.text);
        if (symbol && is_type(symbol)) return call_static(c, e, symbol);
    }
    jl_type type = jl_check_value(c, receiver, 0);
    jl_type result = JL_BAD;
    e->receiver = receiver;
    if (type == JL_BAD) return drop_args(c, e);
    if (call_host_method(c, e, type, &result)) return result;
    switch (jl_kind_of(c->types, type)) {
    case JL_CHANNEL: return call_channel(c, e, type);
    case JL_ACTOR:
    case JL_IFACE: return call_named(c, e, type);
    case JL_STRUCT: return call_field(c, e, type);
    case JL_SUPERVISOR:
        if (is(e, "spawn")) return call_supervisor(c, e);
        break;
    case JL_BUDGET:
    case JL_CAP_BUDGET: return call_budget(c, e, type);
    default: break;
    }
    jl_check_no_member(c, e->left, type);
    return drop_args(c, e);
}
