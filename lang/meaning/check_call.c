/* SPDX-License-Identifier: MIT */
/* Calls: of functions, closures, the host, and the words of the language. */
#include "meaning/check.h"

#include <string.h>

static const char *const ordinals[] = {"first", "second", "third", "fourth", "fifth", "sixth"};

static const char *ordinal(uint32_t index)
{
    return index < sizeof ordinals / sizeof ordinals[0] ? ordinals[index] : "last";
}

/* A name before an argument must be that of the parameter. */
static void check_argument_name(struct jl_checker *c, const struct jl_argument *arg,
                                const char *wanted, const char *callee)
{
    if (!arg->name.text || arg->name.text == wanted) return;
    struct jl_diagnostic *wrong = JL_WRONG(
        c, "T4022", arg->name.at, "no parameter `%.60s` of %s stands here", arg->name.text, callee);
    wrong->help = wanted ? jl_format(c->arena, "the parameter here is `%.60s`", wanted)
                         : "write the argument without a name";
}

static void check_one(struct jl_checker *c, struct jl_expr *value, jl_type wanted,
                      const char *callee, bool outward, struct jl_function *function,
                      uint32_t index)
{
    if (!jl_check_is(c, value, wanted, "this argument")) return;
    if (outward)
        jl_check_outward(c, value,
                         jl_format(c->arena, "%s, which is outside of the program", callee));
    else if (function && jl_is_cap(jl_resolve(c, wanted)))
        jl_note_flow(c, value, function, index);
}

/* Whether the argument is meant for the next parameter: the capability was left out. */
static bool lacks_cap(struct jl_checker *c, const struct jl_expr *e, jl_type wanted, uint32_t index,
                      uint32_t params)
{
    if (!jl_is_cap(wanted)) return false;
    if (index >= e->arg_count) return true;
    const struct jl_expr *value = e->args[index].value;
    if (e->arg_count >= params) { /* nothing is left out: it is of another type then */
        const struct jl_symbol *symbol =
            value->kind == JL_E_NAME ? jl_look_up(c, value->name.text) : NULL;
        return symbol && symbol->kind <= JL_SYMBOL_STATE && symbol->type != JL_BAD &&
               !jl_is_cap(symbol->type);
    }
    if (value->kind == JL_E_NAME) {
        const struct jl_symbol *symbol = jl_look_up(c, value->name.text);
        return !symbol || symbol->type != wanted;
    }
    return value->kind != JL_E_STRUCT && value->kind != JL_E_CALL;
}

static void report_no_cap(struct jl_checker *c, const struct jl_expr *e, jl_type wanted,
                          uint32_t index, const char *callee)
{
    const char *name = jl_show(c, wanted);
    const char *better = jl_format(c->arena, "%s(", jl_snip(c, e->left->at));
    const char *rest = "";
    for (uint32_t i = 0; i < index && i < e->arg_count; i++)
        better = jl_format(c->arena, "%s%s, ", better, jl_snip(c, e->args[i].value->at));
    if (index < e->arg_count) {
        struct jl_span left = {e->args[index].value->at.begin,
                               e->args[e->arg_count - 1].value->at.end};
        rest = jl_format(c->arena, ", %s", jl_snip(c, left));
    }
    JL_WRONG(c, "C3002", e->left->at, "%s requires %s as its %s argument", callee, name,
             ordinal(index))
        ->help = jl_format(c->arena, "pass a capability: `%scap%s)`", better, rest);
}

static void report_count(struct jl_checker *c, const struct jl_expr *e, uint32_t params,
                         const char *callee)
{
    uint32_t       count = e->arg_count;
    struct jl_span at = count > params ? e->args[params].value->at : e->left->at;
    JL_WRONG(c, "T4004", at, "%s takes %u argument%s, but %u %s given", callee, params,
             params == 1 ? "" : "s", count, count == 1 ? "is" : "are")
        ->help = count > params ? "remove what is too much" : "add what is missing";
}

void jl_check_args(struct jl_checker *c, struct jl_expr *e, jl_type fn, const char **names,
                   const char *callee, bool outward, struct jl_function *function)
{
    uint32_t params = jl_info(c->types, fn)->param_count;
    uint32_t arg = 0, missing = 0;
    for (uint32_t i = 0; i < params; i++) {
        jl_type wanted = jl_info(c->types, fn)->params[i];
        if (lacks_cap(c, e, wanted, arg, params - missing)) {
            if (!missing++) report_no_cap(c, e, wanted, i, callee);
            if (e->arg_count < params) continue;
        }
        if (arg >= e->arg_count) continue;
        struct jl_argument *given = &e->args[arg++];
        check_argument_name(c, given, names ? names[i] : NULL, callee);
        if (missing && jl_is_cap(wanted))
            jl_check_value(c, given->value, 0);
        else
            check_one(c, given->value, wanted, callee, outward, function, i);
    }
    for (; arg < e->arg_count; arg++) jl_check_value(c, e->args[arg].value, 0);
    if (e->arg_count != params && !missing) report_count(c, e, params, callee);
}

/* Calls by name. */

static jl_type call_function(struct jl_checker *c, struct jl_expr *e, struct jl_function *function,
                             jl_type fn)
{
    const char **names = jl_new(c->arena, function->param_count * sizeof(char *));
    for (uint32_t i = 0; i < function->param_count; i++) names[i] = function->params[i].name.text;
    e->callee_function = function;
    jl_add_call(c, function);
    jl_note_call(c, e, function);
    if (fn == JL_BAD) return JL_BAD;
    jl_check_args(c, e, fn, names, jl_format(c->arena, "`%.60s`", function->name.text), false,
                  function);
    return jl_info(c->types, fn)->of;
}

static jl_type call_host(struct jl_checker *c, struct jl_expr *e, uint32_t index)
{
    const struct jl_host_entry *entry = &c->host->entries[index];
    e->call = JL_CALL_HOST;
    e->host = index;
    jl_check_args(c, e, entry->fn, entry->param_names, jl_format(c->arena, "`%s`", entry->name),
                  !entry->row->trusted_only, NULL);
    jl_check_host_effects(c, e, entry);
    return jl_info(c->types, entry->fn)->of;
}

static jl_type call_value(struct jl_checker *c, struct jl_expr *e)
{
    jl_type     fn = jl_check_value(c, e->left, 0);
    const char *callee = jl_format(c->arena, "`%s`", jl_snip(c, e->left->at));
    e->call = JL_CALL_VALUE;
    jl_note_call(c, e, NULL);
    if (jl_kind_of(c->types, fn) == JL_FN) {
        jl_check_args(c, e, fn, NULL, callee, false, NULL);
        return jl_info(c->types, fn)->of;
    }
    for (uint32_t i = 0; i < e->arg_count; i++) jl_check_value(c, e->args[i].value, 0);
    if (jl_is_var(c, fn))
        jl_report_unknown(c, e->left->at, fn);
    else if (fn != JL_BAD)
        JL_WRONG(c, "T4005", e->left->at, "%s is %s and cannot be called", callee, jl_show(c, fn))
            ->help = "functions and closures can be called";
    return JL_BAD;
}

/* The words of the language. */

static bool check_count(struct jl_checker *c, struct jl_expr *e, uint32_t least, uint32_t most)
{
    if (e->arg_count >= least && e->arg_count <= most) return true;
    for (uint32_t i = 0; i < e->arg_count; i++) jl_check_value(c, e->args[i].value, 0);
    report_count(c, e, least, jl_format(c->arena, "`%s`", e->left->name.text));
    return false;
}

static jl_type call_convert(struct jl_checker *c, struct jl_expr *e, jl_type to)
{
    e->call = JL_CALL_CONVERT;
    if (!check_count(c, e, 1, 1)) return to;
    struct jl_expr *value = e->args[0].value;
    bool            is_int = value->kind == JL_E_INT ||
                  (value->kind == JL_E_UNARY && value->left && value->left->kind == JL_E_INT);
    jl_type from = jl_check_value(c, value, is_int ? to : 0);
    if (from == JL_BAD) return to;
    if (to == JL_STR) jl_add_effect(c, JL_EFFECT_ALLOC);
    bool to_text = to == JL_STR && (from == JL_BOOL || from == JL_ERROR || from == JL_STR);
    if (to_text || jl_is_var(c, from) || (jl_is_number(from) && to != JL_BOOL)) {
        if (jl_is_var(c, from)) jl_var_of(c, from)->is_number = true;
        return to;
    }
    JL_WRONG(c, "T4003", value->at, "`%s(...)` does not take %s", jl_show(c, to), jl_show(c, from))
        ->help = to == JL_STR    ? "str() makes text of numbers, bool and errors"
                 : to == JL_BOOL ? "write a comparison, as `n != 0`"
                                 : "numbers are converted to numbers";
    return to;
}

/* array(n), array(T, n): T is read as a type, so it must be a name or a slice's bracket pair. */
static jl_type call_array(struct jl_checker *c, struct jl_expr *e, jl_type wanted)
{
    e->call = JL_CALL_ARRAY;
    jl_add_effect(c, JL_EFFECT_ALLOC);
    if (!e->written) {
        if (!check_count(c, e, 1, 2)) return JL_BAD;
    }
    jl_type element = JL_BAD;
    if (e->written) {
        element = jl_read_type(c, e->written, 0);
    } else if (e->arg_count == 2) {
        struct jl_expr   *name = e->args[0].value;
        struct jl_written written = {
            .kind = JL_WRITTEN_NAME, .at = name->at, .name = name->name.text};
        if (name->kind == JL_E_NAME)
            element = jl_read_type(c, &written, 0);
        else
            JL_WRONG(c, "N1008", name->at, "the first of two arguments of `array` is a type")
                ->help = "write `array(i64, n)`";
    } else {
        element = jl_new_var(c, e->at);
        jl_var_of(c, element)->is_array = true;
        wanted = jl_resolve(c, wanted);
        if (jl_kind_of(c->types, wanted) == JL_SLICE)
            jl_unify(c, element, jl_info(c->types, wanted)->of);
    }
    if (e->arg_count)
        jl_check_is(c, e->args[e->arg_count - 1].value, JL_I64, "the length of an array");
    if (element == JL_BAD) return JL_BAD;
    if (!jl_is_var(c, element) && !jl_has_zero(c, element)) {
        JL_WRONG(c, "T4007", e->at, "array() cannot make elements of %s: it has no zero value",
                 jl_show(c, element))
            ->help = "write the elements: `[first, second]`";
        return JL_BAD;
    }
    return jl_slice_of(c->types, element);
}

static jl_type call_cancel(struct jl_checker *c, struct jl_expr *e)
{
    e->call = JL_CALL_CANCEL;
    check_count(c, e, 0, 0);
    jl_need_nursery(c, e->left->at, "cancel()");
    return JL_VOID;
}

static jl_type call_panic(struct jl_checker *c, struct jl_expr *e)
{
    e->call = JL_CALL_PANIC;
    if (check_count(c, e, 1, 1)) jl_check_is(c, e->args[0].value, JL_STR, "the text of a panic");
    return JL_NEVER;
}

static jl_type call_builtin(struct jl_checker *c, struct jl_expr *e, const struct jl_symbol *symbol,
                            jl_type wanted)
{
    switch (symbol->index) {
    case JL_BUILTIN_ARRAY: return call_array(c, e, wanted);
    case JL_BUILTIN_CANCEL: return call_cancel(c, e);
    case JL_BUILTIN_PANIC: return call_panic(c, e);
    default: break;
    }
    if (jl_is_number(symbol->type) || symbol->type == JL_STR || symbol->type == JL_BOOL)
        return call_convert(c, e, symbol->type);
    for (uint32_t i = 0; i < e->arg_count; i++) jl_check_value(c, e->args[i].value, 0);
    JL_WRONG(c, "T4005", e->left->at, "`%s` cannot be called", symbol->name)->help =
        symbol->type == JL_SUPERVISOR ? "write `Supervisor.new()`"
                                      : jl_format(c->arena, "write `%s{ ... }`", symbol->name);
    return JL_BAD;
}

/* A method of the same actor is called by its name alone. */
static struct jl_function *own_method(const struct jl_checker *c, const char *name)
{
    for (uint32_t i = 0; c->actor && i < c->actor->method_count; i++)
        if (c->actor->methods[i]->name.text == name) return c->actor->methods[i];
    return NULL;
}

static jl_type call_self(struct jl_checker *c, struct jl_expr *e, struct jl_function *method)
{
    for (const struct jl_frame *frame = c->frame; frame; frame = frame->outer) {
        enum jl_function_kind kind = frame->function->kind;
        if (kind != JL_F_CLOSURE && kind != JL_F_SPAWN) continue;
        JL_WRONG(c, "T4030", e->left->at,
                 "`%.60s` uses the state of its actor, so %s cannot call it", method->name.text,
                 kind == JL_F_SPAWN ? "a spawned block" : "a closure")
            ->help = "call it outside of the block, or send the actor a message";
        return JL_BAD;
    }
    e->call = JL_CALL_SELF;
    jl_type result = call_function(c, e, method, method->symbol->type);
    return method->fails ? jl_fallible_of(c->types, result) : result;
}

static jl_type call_name(struct jl_checker *c, struct jl_expr *e, jl_type wanted)
{
    struct jl_name      name = {e->left->name.text, e->left->at};
    struct jl_symbol   *symbol = jl_look_up(c, name.text);
    struct jl_function *method = own_method(c, name.text);
    if (method && (!symbol || symbol->kind > JL_SYMBOL_STATE)) return call_self(c, e, method);
    if (symbol && symbol->kind == JL_SYMBOL_FUNCTION) {
        e->call = JL_CALL_FUNCTION;
        e->left->symbol = symbol;
        e->left->type = symbol->type;
        symbol->is_used = true;
        return call_function(c, e, symbol->function, symbol->type);
    }
    if (symbol && symbol->kind == JL_SYMBOL_HOST_FUNCTION) return call_host(c, e, symbol->index);
    if (symbol && symbol->kind == JL_SYMBOL_BUILTIN) return call_builtin(c, e, symbol, wanted);
    return call_value(c, e);
}

jl_type jl_check_call(struct jl_checker *c, struct jl_expr *e, jl_type wanted)
{
    if (!e->left) return JL_BAD;
    jl_type type;
    if (e->left->kind == JL_E_NAME)
        type = call_name(c, e, wanted);
    else if (e->left->kind == JL_E_MEMBER)
        type = jl_check_method(c, e);
    else
        type = call_value(c, e);
    return type;
}
