/* SPDX-License-Identifier: MIT */
/* Members, indexes, slices, structs, and places that can be assigned. */
#include "meaning/check.h"

#include <string.h>

/* Members. */

static void guess_members(struct jl_checker *c, struct jl_guess *guess, jl_type type)
{
    const struct jl_type_info *info = jl_info(c->types, type);
    for (uint32_t i = 0; i < info->field_count && info->kind == JL_STRUCT; i++)
        jl_guess(guess, info->fields[i].name);
    for (uint32_t i = 0; i < info->method_count; i++) jl_guess(guess, info->methods[i].name);
    if (info->kind == JL_CHANNEL) {
        jl_guess(guess, "send");
        jl_guess(guess, "recv");
        jl_guess(guess, "close");
    } else if (info->kind == JL_SLICE || type == JL_STR) {
        jl_guess(guess, "len");
    } else if (info->kind == JL_BUDGET) {
        for (unsigned i = 0; i < 5; i++) {
            jl_guess(guess, jl_budget_fields[i]);
            jl_guess(guess, jl_format(c->arena, "with_%s", jl_budget_fields[i]));
        }
    } else if (type == JL_CAP_BUDGET) {
        jl_guess(guess, "toBudget");
    } else if (type == JL_SUPERVISOR) {
        jl_guess(guess, "spawn");
    }
    for (uint32_t i = 0; c->host && i < c->host->count; i++)
        if (c->host->entries[i].receiver == type) jl_guess(guess, c->host->entries[i].name);
}

void jl_check_no_member(struct jl_checker *c, struct jl_expr *member, jl_type type)
{
    if (type == JL_BAD || !member->name.text) return;
    if (jl_is_var(c, type)) {
        jl_report_unknown(c, member->left->at, type);
        return;
    }
    struct jl_guess guess = jl_guess_of(member->name.text);
    if (c->diagnostics->errors < JL_DIAGNOSTICS_MAX) guess_members(c, &guess, type);
    struct jl_diagnostic *wrong = JL_WRONG(c, "N1007", member->name.at, "%s has no member `%.60s`",
                                           jl_show(c, type), member->name.text);
    wrong->help = jl_did_you_mean(c, guess.best);
    if (guess.best) return;
    enum jl_kind kind = jl_kind_of(c->types, type);
    if (kind == JL_SLICE || type == JL_STR) {
        const char *name = member->name.text;
        bool is_length = !strcmp(name, "length") || !strcmp(name, "size") || !strcmp(name, "count");
        wrong->help = is_length ? "write `len`, without brackets"
                                : "it has `len` and keeps its length; `array(n)` makes a slice";
        return;
    }
    if (kind == JL_ACTOR)
        wrong->help = "the state of an actor is its own: add a method that returns it";
    else if (kind == JL_HOST && strstr(jl_info(c->types, type)->name, "Plugin"))
        wrong->help = "give the plugin to a function as an `interface` that declares this method";
    else
        wrong->help = "look for the member's name in the type's declaration";
}

jl_type jl_check_member(struct jl_checker *c, struct jl_expr *e)
{
    jl_type      type = jl_check_value(c, e->left, 0);
    const char  *name = e->name.text;
    enum jl_kind kind = jl_kind_of(c->types, type);
    if (!name || type == JL_BAD) return JL_BAD;
    if ((kind == JL_SLICE || type == JL_STR) && !strcmp(name, "len")) {
        e->is_len = true;
        return JL_I64;
    }
    const struct jl_type_info *info = jl_info(c->types, type);
    for (uint32_t i = 0; kind == JL_STRUCT && i < info->field_count; i++) {
        if (info->fields[i].name != name) continue;
        e->method = i;
        return info->fields[i].type;
    }
    for (uint32_t i = 0; kind == JL_BUDGET && i < 5; i++) {
        if (strcmp(jl_budget_fields[i], name) != 0) continue;
        e->method = i;
        return JL_I64;
    }
    for (uint32_t i = 0; i < info->method_count; i++) {
        if (info->methods[i].name != name) continue;
        JL_WRONG(c, "T4005", e->name.at, "`%s` is a method and no value", name)->help =
            jl_format(c->arena, "call it: `%s()`", jl_snip(c, e->at));
        return JL_BAD;
    }
    jl_check_no_member(c, e, type);
    return JL_BAD;
}

/* Indexes and ranges. */

jl_type jl_check_range(struct jl_checker *c, struct jl_expr *e, jl_type wanted)
{
    jl_fill(c, &e->left, e->at);
    jl_fill(c, &e->right, e->at);
    bool            right_first = e->left->kind == JL_E_INT && e->right->kind != JL_E_INT;
    struct jl_expr *first = right_first ? e->right : e->left;
    struct jl_expr *second = right_first ? e->left : e->right;
    jl_type         one = jl_check_value(c, first, wanted);
    jl_type         two = jl_check_value(c, second, one);
    e->type = JL_BAD;
    if (one == JL_BAD || two == JL_BAD) return JL_BAD;
    if (!jl_unify(c, one, two)) {
        JL_WRONG(c, "T4001", e->at, "both ends of a range have one type, but these are %s and %s",
                 jl_show(c, right_first ? two : one), jl_show(c, right_first ? one : two))
            ->help = jl_format(c->arena, "convert one of them: `%s(%s)`", jl_show(c, one),
                               jl_snip(c, second->at));
        return JL_BAD;
    }
    one = jl_resolve(c, one);
    if (jl_is_integer(one) || jl_is_var(c, one)) {
        e->type = one;
        jl_note_slot(c, &e->type);
        return one;
    }
    JL_WRONG(c, "T4003", e->at, "the ends of a range are integers, but this is %s", jl_show(c, one))
        ->help = "convert them with `i64(x)`";
    return JL_BAD;
}

static void check_part(struct jl_checker *c, struct jl_expr *range)
{
    jl_fill(c, &range->left, range->at);
    jl_fill(c, &range->right, range->at);
    jl_check_is(c, range->left, JL_I64, "the begin of a part");
    jl_check_is(c, range->right, JL_I64, "the end of a part");
    range->type = JL_I64;
}

jl_type jl_check_index(struct jl_checker *c, struct jl_expr *e)
{
    jl_type type = jl_check_value(c, e->left, 0);
    if (e->right && e->right->kind == JL_E_RANGE)
        check_part(c, e->right);
    else
        jl_check_is(c, e->right, JL_I64, "an index");
    if (jl_is_var(c, type)) jl_report_unknown(c, e->left->at, type);
    if (type == JL_BAD || jl_is_var(c, type)) return JL_BAD;
    bool is_slice = jl_kind_of(c->types, type) == JL_SLICE;
    if (!is_slice && type != JL_STR) {
        JL_WRONG(c, "T4009", e->at, "%s has no elements to index", jl_show(c, type))->help =
            "slices and str have elements";
        return JL_BAD;
    }
    if (e->right && e->right->kind == JL_E_RANGE) return type;
    return is_slice ? jl_info(c->types, type)->of : JL_U8;
}

/* Arrays. */

jl_type jl_check_array(struct jl_checker *c, struct jl_expr *e, jl_type wanted)
{
    wanted = jl_resolve(c, wanted);
    bool    is_slice = jl_kind_of(c->types, wanted) == JL_SLICE;
    jl_type element = is_slice ? jl_info(c->types, wanted)->of : jl_new_var(c, e->at);
    bool    is_good = true;
    jl_add_effect(c, JL_EFFECT_ALLOC);
    for (uint32_t i = 0; i < e->arg_count; i++)
        if (!jl_check_is(c, e->args[i].value, element, "this element")) is_good = false;
    jl_type found = jl_resolve(c, element);
    bool    is_unknown = found != JL_BAD && jl_is_var(c, found);
    if (is_unknown && !is_good) {
        jl_var_of(c, found)->is_bad = true;
        return JL_BAD;
    }
    if (jl_is_deep(c, found, e->at)) return JL_BAD;
    return jl_slice_of(c->types, found);
}

/* Structs. */

static uint32_t field_index(const struct jl_type_info *info, const char *name)
{
    uint32_t i = 0;
    while (i < info->field_count && info->fields[i].name != name) i++;
    return i;
}

static void report_field(struct jl_checker *c, jl_type type, struct jl_name name)
{
    struct jl_guess guess = jl_guess_of(name.text);
    guess_members(c, &guess, type);
    struct jl_diagnostic *wrong = JL_WRONG(c, "T4017", name.at, "%s has no field `%.60s`",
                                           jl_show(c, type), name.text ? name.text : "?");
    wrong->help = jl_did_you_mean(c, guess.best);
    if (!guess.best) wrong->help = "look for the field's name in the declaration of the struct";
}

static void report_missing(struct jl_checker *c, const struct jl_expr *e, jl_type type)
{
    const struct jl_type_info *info = jl_info(c->types, type);
    for (uint32_t i = 0; i < info->field_count; i++) {
        if (e->fields[i] || !info->fields[i].name) continue;
        JL_WRONG(c, "T4017", e->name.at, "the field `%.60s` of %s has no value here",
                 info->fields[i].name, jl_show(c, type))
            ->help = jl_format(c->arena, "add `%.60s: ...`", info->fields[i].name);
        return;
    }
}

static jl_type check_struct_fields(struct jl_checker *c, struct jl_expr *e, jl_type type)
{
    uint32_t count = jl_info(c->types, type)->field_count;
    bool     is_good = true;
    e->field_count = count;
    e->fields = jl_new(c->arena, count * sizeof(struct jl_expr *));
    for (uint32_t i = 0; i < e->arg_count; i++) {
        struct jl_argument *arg = &e->args[i];
        uint32_t            field = field_index(jl_info(c->types, type), arg->name.text);
        if (field == count) {
            report_field(c, type, arg->name);
            jl_check_value(c, arg->value, 0);
            is_good = false;
            continue;
        }
        if (e->fields[field]) {
            JL_WRONG(c, "T4017", arg->name.at, "the field `%.60s` is given twice", arg->name.text)
                ->help = "remove one of them";
            is_good = false;
        }
        jl_check_is(c, arg->value, jl_info(c->types, type)->fields[field].type, NULL);
        e->fields[field] = arg->value;
    }
    if (is_good) report_missing(c, e, type);
    return type;
}

jl_type jl_check_struct(struct jl_checker *c, struct jl_expr *e)
{
    struct jl_symbol *symbol = jl_look_up(c, e->name.text);
    if (symbol && symbol->kind == JL_SYMBOL_STRUCT) {
        symbol->is_used = true;
        return check_struct_fields(c, e, symbol->type);
    }
    bool is_literal = symbol && symbol->kind == JL_SYMBOL_BUILTIN &&
                      (symbol->type == JL_BUDGET || jl_is_cap(symbol->type));
    if (is_literal) return jl_check_cap(c, e, symbol->type, false);
    for (uint32_t i = 0; i < e->arg_count; i++) jl_check_value(c, e->args[i].value, 0);
    if (symbol) {
        JL_WRONG(c, "N1008", e->name.at, "`%.60s` is no struct", e->name.text)->help =
            symbol->kind == JL_SYMBOL_ACTOR
                ? jl_format(c->arena, "write `%.60s.new()`", e->name.text)
                : "a literal with fields begins with the name of a struct";
        return JL_BAD;
    }
    struct jl_guess guess = jl_guess_of(e->name.text);
    for (uint32_t i = 0; i < c->unit->struct_count; i++)
        jl_guess(&guess, c->unit->structs[i]->name.text);
    for (jl_type type = JL_BUDGET; type <= JL_CAP_EXECUTOR; type++)
        jl_guess(&guess, jl_type_text(c->types, type));
    struct jl_diagnostic *wrong =
        JL_WRONG(c, "N1008", e->name.at, "the struct `%.60s` is unknown", e->name.text);
    wrong->help = jl_did_you_mean(c, guess.best);
    if (!guess.best)
        wrong->help = jl_format(c->arena, "declare it: `struct %.60s do ... end`", e->name.text);
    return JL_BAD;
}

/* Places. */

static void report_fixed(struct jl_checker *c, const struct jl_expr *e)
{
    const char *name = e->symbol->name;
    switch (e->symbol->kind) {
    case JL_SYMBOL_LET:
        JL_WRONG(c, "N1011", e->at, "`%s` was declared with `let`, so it cannot change", name)
            ->help = jl_format(c->arena, "declare it with `var %s`", name);
        break;
    case JL_SYMBOL_PARAM:
        JL_WRONG(c, "N1011", e->at, "the parameter `%s` cannot change", name)->help =
            jl_format(c->arena, "copy it first: `var %s_now = %s`", name, name);
        break;
    case JL_SYMBOL_LOOP:
        JL_WRONG(c, "N1011", e->at, "the loop variable `%s` cannot change; each round has its own",
                 name)
            ->help = jl_format(c->arena, "copy it first: `var %s_now = %s`", name, name);
        break;
    default:
        JL_WRONG(c, "T4008", e->at, "`%s` cannot be assigned", name)->help =
            "a `var`, an element of a slice or a field of those stands before `=`";
    }
}

bool jl_check_place(struct jl_checker *c, struct jl_expr *e)
{
    while (e->kind == JL_E_MEMBER && !e->is_len && jl_kind_of(c->types, e->left->type) == JL_STRUCT)
        e = e->left;
    bool is_part = e->kind == JL_E_INDEX && e->right && e->right->kind == JL_E_RANGE;
    if (e->kind == JL_E_INDEX && !is_part) {
        if (jl_kind_of(c->types, jl_resolve(c, e->left->type)) == JL_SLICE) return true;
        JL_WRONG(c, "T4008", e->at, "the bytes of a str cannot change")->help =
            "build a new str with `+`";
        return false;
    }
    if (e->kind == JL_E_NAME && e->symbol) {
        if (e->symbol->kind == JL_SYMBOL_VAR || e->symbol->kind == JL_SYMBOL_STATE) return true;
        report_fixed(c, e);
        return false;
    }
    JL_WRONG(c, "T4008", e->at, "this cannot be assigned")->help =
        e->type == JL_I64 && e->is_len ? "a slice keeps its length: make a new one with `array(n)`"
                                       : "a `var`, an element of a slice or a field of those "
                                         "stands before `=`";
    return false;
}
