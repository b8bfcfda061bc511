/* SPDX-License-Identifier: MIT */
/* The end of a top-level function: every type is known now, or that is an error. */
#include "meaning/check.h"

const char *const jl_binary_text[] = {
    [JL_ADD] = "+", [JL_SUB] = "-",   [JL_MUL] = "*", [JL_DIV] = "/", [JL_REM] = "%",
    [JL_EQ] = "==", [JL_NE] = "!=",   [JL_LT] = "<",  [JL_LE] = "<=", [JL_GT] = ">",
    [JL_GE] = ">=", [JL_AND] = "and", [JL_OR] = "or",
};

/* The largest value, and the size of the smallest. */
static uint64_t largest(jl_type type)
{
    unsigned bits = jl_bits(type) - (jl_is_signed(type) ? 1 : 0);
    return bits >= 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
}

bool jl_literal_fits(jl_type type, uint64_t magnitude, bool negative)
{
    if (!jl_is_integer(type)) return true;
    if (!negative || magnitude == 0) return magnitude <= largest(type);
    return jl_is_signed(type) && magnitude <= largest(type) + 1;
}

void jl_report_literal(struct jl_checker *c, struct jl_span at, jl_type type, bool negative)
{
    const char *name = jl_show(c, type);
    if (negative && !jl_is_signed(type)) {
        JL_WRONG(c, "T4002", at, "%s has no values below 0", name)->help =
            "use a signed type, as i64";
    } else if (negative) {
        JL_WRONG(c, "T4002", at, "this number does not fit in %s: the smallest is -%llu", name,
                 (unsigned long long)largest(type) + 1)
            ->help = "use a wider type or a larger number";
    } else {
        JL_WRONG(c, "T4002", at, "this number does not fit in %s: the largest is %llu", name,
                 (unsigned long long)largest(type))
            ->help = type == JL_U64 ? "use a smaller number" : "use a wider type, as u64";
    }
}

bool jl_operator_takes(enum jl_binary binary, jl_type type)
{
    switch (binary) {
    case JL_ADD: return jl_is_number(type) || type == JL_STR;
    case JL_SUB:
    case JL_MUL:
    case JL_DIV: return jl_is_number(type);
    case JL_REM: return jl_is_integer(type);
    case JL_EQ:
    case JL_NE: return jl_is_number(type) || type == JL_BOOL || type == JL_STR || type == JL_ERROR;
    case JL_LT:
    case JL_LE:
    case JL_GT:
    case JL_GE: return jl_is_number(type);
    default: return type == JL_BOOL;
    }
}

void jl_report_operator(struct jl_checker *c, struct jl_span at, enum jl_binary binary,
                        jl_type type)
{
    const char *help = "numbers have this operator";
    if (binary == JL_ADD) help = "numbers have this operator, and str";
    if (binary == JL_REM) help = "integers have this operator";
    if (binary == JL_EQ || binary == JL_NE)
        help = "compare numbers, bool, str or errors; of other types compare the parts";
    if (binary >= JL_AND) help = "write a comparison on each side";
    JL_WRONG(c, "T4003", at, "the operator `%s` does not take %s", jl_binary_text[binary],
             jl_show(c, type))
        ->help = help;
}

static void check_later(struct jl_checker *c, const struct jl_later *later)
{
    jl_type type = jl_resolve(c, later->type);
    if (type == JL_BAD || jl_is_var(c, type)) return;
    if (later->kind == JL_LATER_FITS) {
        if (!jl_literal_fits(type, later->magnitude, later->negative))
            jl_report_literal(c, later->at, type, later->negative);
        if (type == JL_F64)
            JL_WRONG(c, "T4001", later->at, "this must be f64, but an integer stands here")->help =
                "write the number with a point, as 1.0";
    } else if (later->kind == JL_LATER_NUMBER && !jl_operator_takes(later->binary, type)) {
        jl_report_operator(c, later->at, later->binary, type);
    }
}

static void settle_var(struct jl_checker *c, struct jl_var *var)
{
    jl_type type = jl_resolve(c, var->type);
    if (jl_is_var(c, type)) {
        struct jl_var *last = jl_var_of(c, type);
        bool           is_number = last->is_number;
        const char    *param = var->param;
        if (!is_number && param)
            JL_WRONG(c, "T4010", var->at, "nothing here says which type `%.60s` has", param)->help =
                jl_format(c->arena, "write its type: `|%.60s: i64|`", param);
        else if (!is_number)
            JL_WRONG(c, "T4006", var->at, "nothing here says what the elements are")->help =
                "write their type: `array(i64, n)`, or `let x: []i64 = []`";
        last->bound = JL_I64;
        last->is_bad = !is_number;
    } else if (var->is_array && type != JL_BAD && !jl_has_zero(c, type)) {
        JL_WRONG(c, "T4007", var->at, "array() cannot make elements of %s: it has no zero value",
                 jl_show(c, type))
            ->help = "write the elements: `[first, second]`";
    }
}

void jl_settle(struct jl_checker *c)
{
    for (uint32_t i = 0; i < c->var_used; i++) settle_var(c, &c->vars[i]);
    for (uint32_t i = 0; i < c->later_count; i++) check_later(c, &c->later[i]);
    for (uint32_t i = 0; i < c->slot_count; i++) *c->slots[i] = jl_resolve(c, *c->slots[i]);
    c->later_count = c->slot_count = c->var_used = 0;
}
