/* SPDX-License-Identifier: MIT */
/* Expressions: literals, names, operators, closures. */
#include "meaning/check.h"

#include <string.h>

const char *jl_snip(struct jl_checker *c, struct jl_span at)
{
    enum { LONGEST = 40 };
    const char *text = c->unit->source->text + at.begin;
    size_t      length = at.end > at.begin ? at.end - at.begin : 0;
    const char *newline = memchr(text, '\n', length);
    bool        is_cut = length > LONGEST || newline;
    if (newline) length = (size_t)(newline - text);
    if (length > LONGEST) length = LONGEST;
    while (is_cut && length && ((unsigned char)text[length] & 0xC0) == 0x80) length--;
    const char *copy = jl_copy_text(c->arena, text, length);
    return is_cut ? jl_format(c->arena, "%s...", copy) : copy;
}

/* Literals. */

/* An integer literal takes the type that is wanted, if that is one of integers. */
static jl_type check_int(struct jl_checker *c, struct jl_expr *e, jl_type wanted, bool negative)
{
    uint64_t magnitude = e->value;
    if (negative) e->value = 0 - e->value;
    wanted = jl_resolve(c, wanted);
    if (jl_is_var(c, wanted)) {
        jl_var_of(c, wanted)->is_number = true;
        JL_PUSH(c->arena, c->later, c->later_count, c->later_room) =
            (struct jl_later){.kind = JL_LATER_FITS,
                              .type = wanted,
                              .at = e->at,
                              .magnitude = magnitude,
                              .negative = negative};
        return wanted;
    }
    jl_type type = jl_is_integer(wanted) ? wanted : JL_I64;
    if (!jl_literal_fits(type, magnitude, negative)) {
        jl_report_literal(c, e->at, type, negative);
        return JL_BAD;
    }
    return type;
}

/* A number without a type of its own. */
static bool is_literal(const struct jl_expr *e, unsigned depth)
{
    if (!e || depth > 20) return false;
    if (e->kind == JL_E_INT) return true;
    if (e->kind == JL_E_UNARY) return e->unary == JL_NEGATE && is_literal(e->left, depth + 1);
    return e->kind == JL_E_BINARY && e->binary <= JL_REM && is_literal(e->left, depth + 1) &&
           is_literal(e->right, depth + 1);
}

/* Names. */

static jl_type check_function_value(struct jl_checker *c, struct jl_expr *e)
{
    struct jl_function *function = e->symbol->function;
    jl_type             type = e->symbol->type;
    for (uint32_t i = 0; type && i < jl_info(c->types, type)->param_count; i++) {
        if (!jl_is_cap(jl_info(c->types, type)->params[i])) continue;
        JL_PUSH(c->arena, c->flows, c->flow_count, c->flow_room) =
            (struct jl_flow){.at = e->at,
                             .callee = function,
                             .index = i,
                             .type = jl_info(c->types, type)->params[i]};
    }
    jl_add_call(c, function);
    JL_PUSH(c->arena, c->values, c->value_count, c->value_room) = function;
    return type;
}

static jl_type check_name(struct jl_checker *c, struct jl_expr *e)
{
    struct jl_symbol *symbol = e->symbol = jl_use(c, (struct jl_name){e->name.text, e->at});
    if (!symbol) return JL_BAD;
    switch (symbol->kind) {
    case JL_SYMBOL_LET:
    case JL_SYMBOL_VAR:
    case JL_SYMBOL_PARAM:
    case JL_SYMBOL_LOOP:
    case JL_SYMBOL_STATE: return symbol->type;
    case JL_SYMBOL_FUNCTION: return check_function_value(c, e);
    case JL_SYMBOL_HOST_VALUE: e->host = symbol->index; return symbol->type;
    case JL_SYMBOL_HOST_FUNCTION:
        JL_WRONG(c, "T4005", e->at, "`%s` is a function of the host and no value", symbol->name)
            ->help = jl_format(c->arena, "call it, or wrap it: `|x| %s(x)`", symbol->name);
        return JL_BAD;
    default:
        JL_WRONG(c, "T4005", e->at, "`%s` is no value", symbol->name)->help =
            symbol->kind == JL_SYMBOL_ACTOR
                ? jl_format(c->arena, "write `%s.new()`", symbol->name)
                : "a type or a word of the language stands in calls and declarations only";
        return JL_BAD;
    }
}

/* Operators. */

static jl_type check_unary(struct jl_checker *c, struct jl_expr *e, jl_type wanted)
{
    struct jl_expr *left = e->left;
    if (e->unary == JL_NEGATE && left->kind == JL_E_INT) {
        struct jl_expr literal = *left; /* folded, so that the smallest number is no overflow */
        literal.at = e->at;
        *e = literal;
        return check_int(c, e, wanted, true);
    }
    jl_type type = jl_check_value(c, left, e->unary == JL_NOT ? JL_BOOL : wanted);
    if (type == JL_BAD) return JL_BAD;
    if (e->unary == JL_NOT) {
        if (type == JL_BOOL) return type;
        JL_WRONG(c, "T4003", e->at, "`not` takes bool, but this is %s", jl_show(c, type))->help =
            "write a comparison after `not`";
        return JL_BAD;
    }
    if (jl_is_var(c, type) || type == JL_F64 || jl_is_signed(type)) return type;
    JL_WRONG(c, "T4003", e->at, "`-` does not take %s", jl_show(c, type))->help =
        jl_is_integer(type) ? "convert it to a signed type first: `-i64(x)`"
                            : "signed integers and f64 have this operator";
    return JL_BAD;
}

/* Whether the first number type is the better one to convert to. */
static bool is_wider(jl_type one, jl_type other)
{
    if (one == JL_F64 || other == JL_F64) return one == JL_F64;
    return jl_bits(one) > jl_bits(other) || (jl_bits(one) == jl_bits(other) && jl_is_signed(one));
}

static jl_type report_mixed(struct jl_checker *c, const struct jl_expr *e, jl_type left,
                            jl_type right)
{
    struct jl_diagnostic *wrong =
        JL_WRONG(c, "T4001", e->at, "`%s` takes two values of one type, but these are %s and %s",
                 jl_binary_text[e->binary], jl_show(c, left), jl_show(c, right));
    if (left == JL_STR && e->binary == JL_ADD)
        wrong->help = jl_format(c->arena, "write `str(%s)`", jl_snip(c, e->right->at));
    else if (left == JL_F64 && e->right->kind == JL_E_INT)
        wrong->help = jl_format(c->arena, "write `%s.0`", jl_snip(c, e->right->at));
    else if (right == JL_F64 && e->left->kind == JL_E_INT)
        wrong->help = jl_format(c->arena, "write `%s.0`", jl_snip(c, e->left->at));
    else if (right == JL_STR && e->binary == JL_ADD)
        wrong->help = jl_format(c->arena, "write `str(%s)`", jl_snip(c, e->left->at));
    else if (jl_is_number(left) && jl_is_number(right) && is_wider(left, right))
        wrong->help = jl_format(c->arena, "convert one of them: `%s(%s)`", jl_show(c, left),
                                jl_snip(c, e->right->at));
    else if (jl_is_number(left) && jl_is_number(right))
        wrong->help = jl_format(c->arena, "convert one of them: `%s(%s)`", jl_show(c, right),
                                jl_snip(c, e->left->at));
    else
        wrong->help = "no value is converted by itself";
    return JL_BAD;
}

static jl_type check_logic(struct jl_checker *c, struct jl_expr *e)
{
    struct jl_expr *sides[2] = {e->left, e->right};
    for (int i = 0; i < 2; i++) {
        jl_type type = jl_check_value(c, sides[i], JL_BOOL);
        if (type != JL_BOOL && type != JL_BAD) jl_report_operator(c, sides[i]->at, e->binary, type);
    }
    return JL_BOOL;
}

static jl_type check_binary(struct jl_checker *c, struct jl_expr *e, jl_type wanted)
{
    if (e->binary >= JL_AND) return check_logic(c, e);
    bool            is_arithmetic = e->binary <= JL_REM;
    bool            right_first = is_literal(e->left, 0) && !is_literal(e->right, 0);
    struct jl_expr *first = right_first ? e->right : e->left;
    struct jl_expr *second = right_first ? e->left : e->right;
    jl_type         one = jl_check_value(c, first, is_arithmetic ? wanted : 0);
    jl_type         two = jl_check_value(c, second, one);
    if (one == JL_BAD || two == JL_BAD) return is_arithmetic ? JL_BAD : JL_BOOL;
    if (!jl_unify(c, one, two))
        return report_mixed(c, e, right_first ? two : one, right_first ? one : two);
    jl_type type = jl_resolve(c, one);
    if (jl_is_var(c, type))
        JL_PUSH(c->arena, c->later, c->later_count, c->later_room) = (struct jl_later){
            .kind = JL_LATER_NUMBER, .type = type, .at = e->at, .binary = e->binary};
    else if (!jl_operator_takes(e->binary, type)) {
        jl_report_operator(c, e->at, e->binary, type);
        return is_arithmetic ? JL_BAD : JL_BOOL;
    }
    if (type == JL_STR && e->binary == JL_ADD) jl_add_effect(c, JL_EFFECT_ALLOC);
    return is_arithmetic ? type : JL_BOOL;
}

/* Closures. */

static jl_type closure_param(struct jl_checker *c, const struct jl_param *param, jl_type wanted)
{
    jl_type type = param->written ? jl_read_type(c, param->written, 0) : wanted;
    if (type || param->written) return type;
    type = jl_new_var(c, param->name.at);
    jl_var_of(c, type)->param = param->name.text ? param->name.text : "?";
    return type;
}

jl_type jl_check_closure(struct jl_checker *c, struct jl_expr *e, jl_type wanted)
{
    struct jl_function *function = e->function;
    if (!function) return JL_BAD;
    wanted = jl_resolve(c, wanted);
    bool has_wanted = wanted && jl_kind_of(c->types, wanted) == JL_FN &&
                      jl_info(c->types, wanted)->param_count == function->param_count;
    jl_type         result = has_wanted ? jl_info(c->types, wanted)->of : JL_VOID;
    jl_type        *params = jl_new(c->arena, function->param_count * sizeof *params);
    struct jl_frame frame = {.function = function, .outer = c->frame};
    struct jl_scope scope = jl_scope_open(c);
    jl_add_call(c, function);
    if (function->result) result = jl_read_type(c, function->result, JL_AS_RESULT);
    frame.infers = !has_wanted && !function->result;
    if (jl_is_fallible(c, result)) function->fails = true;
    function->result_type = jl_value_type(c, result);
    jl_note_slot(c, &function->result_type);
    c->frame = &frame;
    for (uint32_t i = 0; i < function->param_count; i++) {
        jl_type from = has_wanted ? jl_info(c->types, wanted)->params[i] : JL_BAD;
        params[i] = closure_param(c, &function->params[i], from);
        function->params[i].symbol =
            jl_declare(c, JL_SYMBOL_PARAM, function->params[i].name, params[i]);
        function->params[i].symbol->index = i;
    }
    jl_check_block(c, function->body);
    c->frame = frame.outer;
    jl_scope_close(c, scope);
    jl_type value = function->result_type;
    if (value && value != JL_VOID && !frame.infers && !jl_block_ends(function->body))
        JL_WRONG(c, "T4016", e->at, "this closure can reach its end without returning its %s",
                 jl_show(c, value))
            ->help = "end it with `return`";
    if (function->capture_count) jl_add_effect(c, JL_EFFECT_ALLOC);
    if (function->fails && (value || !frame.infers)) value = jl_fallible_of(c->types, value);
    if (jl_is_deep(c, value, e->at)) return JL_BAD;
    return jl_fn_of(c->types, params, function->param_count, value);
}

/* All. */

static jl_type check_kind(struct jl_checker *c, struct jl_expr *e, jl_type wanted)
{
    switch (e->kind) {
    case JL_E_BAD: return JL_BAD;
    case JL_E_INT: return check_int(c, e, wanted, false);
    case JL_E_FLOAT: return JL_F64;
    case JL_E_STRING: return JL_STR;
    case JL_E_BOOL: return JL_BOOL;
    case JL_E_NULL: return JL_BAD; /* the parser reported it */
    case JL_E_NAME: return check_name(c, e);
    case JL_E_MEMBER: return jl_check_member(c, e);
    case JL_E_INDEX: return jl_check_index(c, e);
    case JL_E_CALL: return jl_check_call(c, e, wanted);
    case JL_E_UNARY: return check_unary(c, e, wanted);
    case JL_E_BINARY: return check_binary(c, e, wanted);
    case JL_E_RANGE:
        jl_check_range(c, e, 0);
        JL_WRONG(c, "T4009", e->at, "a range is no value")->help =
            "use it in `for i in a..b`, or in `items[a..b]`";
        return JL_BAD;
    case JL_E_TRY: return jl_check_try(c, e, wanted);
    case JL_E_AWAIT: return jl_check_await(c, e, wanted);
    case JL_E_ASYNC: return jl_check_async(c, e);
    case JL_E_SPAWN: return jl_check_spawn(c, e);
    case JL_E_ARRAY: return jl_check_array(c, e, wanted);
    case JL_E_STRUCT: return jl_check_struct(c, e);
    case JL_E_CLOSURE: return jl_check_closure(c, e, wanted);
    case JL_E_ERROR: e->error = jl_error_number(c, e->name.text); return JL_ERROR;
    case JL_E_CHANNEL: return jl_check_channel(c, e);
    }
    return JL_BAD;
}

/* After a syntax error a part may be missing. */
void jl_fill(struct jl_checker *c, struct jl_expr **e, struct jl_span at)
{
    if (*e) return;
    *e = jl_new(c->arena, sizeof **e);
    (*e)->kind = JL_E_BAD;
    (*e)->at = at;
}

static void fill_parts(struct jl_checker *c, struct jl_expr *e)
{
    bool has_right = e->kind == JL_E_BINARY || e->kind == JL_E_RANGE || e->kind == JL_E_INDEX;
    bool has_left = has_right || e->kind == JL_E_MEMBER || e->kind == JL_E_CALL ||
                    e->kind == JL_E_UNARY || e->kind == JL_E_TRY || e->kind == JL_E_AWAIT ||
                    e->kind == JL_E_ASYNC;
    if (has_left) jl_fill(c, &e->left, e->at);
    if (has_right) jl_fill(c, &e->right, e->at);
    for (uint32_t i = 0; i < e->arg_count; i++) jl_fill(c, &e->args[i].value, e->at);
}

jl_type jl_check_expr(struct jl_checker *c, struct jl_expr *e, jl_type wanted)
{
    if (!e) return JL_BAD;
    fill_parts(c, e);
    if (c->depth >= JL_CHECK_DEPTH) {
        JL_WRONG(c, "T4026", e->at, "this expression has more than %d operators in a row",
                 JL_CHECK_DEPTH)
            ->help = "split it with `let`";
        return e->type = JL_BAD;
    }
    c->depth++;
    jl_type type = jl_resolve(c, check_kind(c, e, wanted));
    c->depth--;
    e->type = type;
    jl_note_slot(c, &e->type);
    return type;
}

static const char *value_help(struct jl_checker *c, const struct jl_expr *e)
{
    if (e->kind == JL_E_SPAWN && e->left)
        return jl_format(c->arena, "write `async %s`, and `await` the handle later",
                         jl_snip(c, e->left->at));
    return "use it as a statement of its own";
}

jl_type jl_check_value(struct jl_checker *c, struct jl_expr *e, jl_type wanted)
{
    if (!e) return JL_BAD;
    jl_type type = e->type ? e->type : jl_check_expr(c, e, wanted);
    if (jl_is_fallible(c, type)) {
        JL_WRONG(c, "T4012", e->at, "this call can fail, and nothing here takes its error")->help =
            jl_format(c->arena, "write `try %s`", jl_snip(c, e->at));
        type = jl_info(c->types, type)->of;
        if (type == JL_VOID) return JL_BAD;
    }
    if (type == JL_VOID) {
        JL_WRONG(c, "T4015", e->at, "%s gives no value",
                 e->kind == JL_E_SPAWN ? "`spawn`" : "this call")
            ->help = value_help(c, e);
        return JL_BAD;
    }
    return type;
}

static const char *mismatch_help(struct jl_checker *c, const struct jl_expr *e, jl_type wanted,
                                 jl_type found)
{
    const char *text = jl_snip(c, e->at);
    if (wanted == JL_F64 && e->kind == JL_E_INT) return jl_format(c->arena, "write `%s.0`", text);
    if (jl_is_number(wanted) && jl_is_number(found))
        return jl_format(c->arena, "write `%s(%s)`: the task panics if the value does not fit",
                         jl_show(c, wanted), text);
    if (wanted == JL_STR && (jl_is_number(found) || found == JL_BOOL || found == JL_ERROR))
        return jl_format(c->arena, "write `str(%s)`", text);
    if (jl_kind_of(c->types, found) == JL_TASK && jl_info(c->types, found)->of == wanted)
        return jl_format(c->arena, "write `await %s`", text);
    if (jl_kind_of(c->types, wanted) == JL_FN && jl_kind_of(c->types, found) == JL_FN &&
        jl_info(c->types, wanted)->param_count != jl_info(c->types, found)->param_count)
        return jl_format(c->arena, "the function needs %u parameter%s here",
                         jl_info(c->types, wanted)->param_count,
                         jl_info(c->types, wanted)->param_count == 1 ? "" : "s");
    if (found == JL_ERROR) return "declare the function's result with `!` before the type";
    if (wanted == JL_BUDGET && found == JL_CAP_BUDGET)
        return jl_format(c->arena, "write `%s.toBudget()`", text);
    return "give a value of that type; no value is converted by itself";
}

/* A host's plugin handle becomes an interface at its first use as one. */
static bool coerces(const struct jl_checker *c, jl_type wanted, jl_type found)
{
    return jl_kind_of(c->types, wanted) == JL_IFACE && jl_kind_of(c->types, found) == JL_HOST &&
           strstr(jl_info(c->types, found)->name, "Plugin");
}

bool jl_check_is(struct jl_checker *c, struct jl_expr *e, jl_type wanted, const char *what)
{
    jl_type found = jl_check_value(c, e, wanted);
    if (found == JL_BAD || found == JL_NEVER || jl_unify(c, wanted, found)) return found != JL_BAD;
    wanted = jl_resolve(c, wanted);
    if (coerces(c, wanted, found)) {
        e->coerce = wanted;
        return true;
    }
    JL_WRONG(c, "T4001", e->at, "%s must be %s, but this is %s", what ? what : "this value",
             jl_show(c, wanted), jl_show(c, found))
        ->help = mismatch_help(c, e, wanted, found);
    return false;
}
