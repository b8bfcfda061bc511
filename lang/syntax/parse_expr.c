/* SPDX-License-Identifier: MIT */
/* Expressions: operators, calls, members, spawn and async. */
#include "syntax/parse.h"

#include <string.h>

struct jl_expr *jl_new_expr(struct jl_parser *parser, enum jl_expr_kind kind, struct jl_span at)
{
    struct jl_expr *expr = jl_new(parser->arena, sizeof *expr);
    expr->kind = kind;
    expr->at = at;
    return expr;
}

static uint32_t taller(uint32_t height, const struct jl_expr *part)
{
    return part && part->height > height ? part->height : height;
}

struct jl_expr *jl_done_expr(struct jl_parser *parser, struct jl_expr *expr)
{
    uint32_t height = taller(taller(taller(expr->height, expr->left), expr->right), expr->cap);
    for (uint32_t i = 0; i < expr->arg_count; i++) height = taller(height, expr->args[i].value);
    expr->height = height + 1;
    if (expr->height > parser->tallest) parser->tallest = expr->height;
    if (parser->end > expr->at.begin) expr->at.end = parser->end;
    if (expr->height > JL_HEIGHT_MAX)
        jl_give_up(parser, "an expression has at most 400 operators in a chain");
    return expr;
}

/* The block of a spawn, a defer, or a closure. The height of what is in it counts outside, too. */
struct jl_function *jl_block_function(struct jl_parser *parser, enum jl_function_kind kind)
{
    struct jl_function *function = jl_new_function(parser, kind);
    function->body = jl_parse_block(parser, "this", false);
    function->head.end = function->head.begin;
    function->at.end = parser->end;
    return function;
}

/* Operators. */

struct operator_row {
    uint32_t       sign;
    int            binds;
    enum jl_binary binary;
    const char    *help; /* NULL: it is in the subset */
};

static const char bits_help[] = "write it with `+`, `*`, `/` and `%`";

static const struct operator_row operators[] = {
    {JL_SIGN2('=', '='), 3, JL_EQ, NULL},
    {JL_SIGN2('!', '='), 3, JL_NE, NULL},
    {'<', 3, JL_LT, NULL},
    {JL_SIGN2('<', '='), 3, JL_LE, NULL},
    {'>', 3, JL_GT, NULL},
    {JL_SIGN2('>', '='), 3, JL_GE, NULL},
    {'+', 4, JL_ADD, NULL},
    {'-', 4, JL_SUB, NULL},
    {'*', 5, JL_MUL, NULL},
    {'/', 5, JL_DIV, NULL},
    {'%', 5, JL_REM, NULL},
    {JL_SIGN2('&', '&'), 2, JL_AND, "write `and`"},
    {JL_SIGN2('|', '|'), 1, JL_OR, "write `or`"},
    {'&', 4, JL_ADD, bits_help},
    {'|', 4, JL_ADD, bits_help},
    {'^', 4, JL_ADD, bits_help},
    {JL_SIGN2('<', '<'), 4, JL_ADD, "multiply by a power of two"},
    {JL_SIGN2('>', '>'), 4, JL_ADD, "divide by a power of two"},
    {JL_SIGN2('*', '*'), 5, JL_ADD, "multiply in a loop"},
    {JL_SIGN2('|', '>'), 1, JL_ADD, "write the call: `f(x)`"},
    {JL_SIGN2('?', '?'), 1, JL_ADD, "pass an error on with `try`"},
};

enum { BINDS_OR = 1, BINDS_AND = 2, BINDS_COMPARE = 3 };

static const struct operator_row *operator_at(const struct jl_parser *parser)
{
    static const struct operator_row or_row = {0, BINDS_OR, JL_OR, NULL},
                                     and_row = {0, BINDS_AND, JL_AND, NULL};
    if (jl_at_word(parser, JL_K_or)) return &or_row;
    if (jl_at_word(parser, JL_K_and)) return &and_row;
    if (parser->token.kind != JL_T_SIGN) return NULL;
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++)
        if (operators[i].sign == parser->token.sign) return &operators[i];
    return NULL;
}

static void report_operator(struct jl_parser *parser, const struct operator_row *row)
{
    const char *text = parser->lexer.source->text + parser->token.at.begin;
    int         length = (int)(parser->token.at.end - parser->token.at.begin);
    bool        is_other = row->binary != JL_ADD;
    jl_complain(parser, is_other ? "S1012" : "S1010", parser->token.at,
                is_other ? "`%.*s` is not in Janus" : "`%.*s` is not in this subset of Janus",
                length, text)
        ->help = row->help;
}

static struct jl_expr *parse_unary(struct jl_parser *parser);

static struct jl_expr *parse_binary(struct jl_parser *parser, int least)
{
    struct jl_expr            *left = parse_unary(parser);
    const struct operator_row *row;
    while (!parser->panicking && (row = operator_at(parser)) && row->binds >= least) {
        if (row->help) report_operator(parser, row);
        struct jl_expr *expr = jl_new_expr(parser, JL_E_BINARY, left->at);
        expr->binary = row->binary;
        if (row->help && row->binary == JL_ADD) expr->kind = JL_E_BAD;
        jl_advance(parser);
        jl_skip_newlines(parser);
        expr->left = left;
        expr->right = parse_binary(parser, row->binds + 1);
        left = jl_done_expr(parser, expr);
        const struct operator_row *next = operator_at(parser);
        if (row->binds != BINDS_COMPARE || !next || next->binds != BINDS_COMPARE) continue;
        jl_complain(parser, "S1015", parser->token.at, "comparisons do not chain")->help =
            "write `a < b and b < c`";
        jl_panic_here(parser);
    }
    return left;
}

/* `a..b` and its like; no bound may be left out. */
static struct jl_expr *parse_range(struct jl_parser *parser)
{
    struct jl_expr *left = parse_binary(parser, BINDS_OR);
    if (parser->panicking || parser->token.kind != JL_T_SIGN) return left;
    uint32_t sign = parser->token.sign;
    if (sign == JL_SIGN3('.', '.', '.')) {
        jl_complain(parser, "S1012", parser->token.at, "`...` is not in Janus")->help =
            "write `..` without the last number, or `..=` with it";
        sign = JL_SIGN2('.', '.');
    }
    if (sign != JL_SIGN2('.', '.') && sign != JL_SIGN3('.', '.', '<') &&
        sign != JL_SIGN3('.', '.', '='))
        return left;
    struct jl_expr *expr = jl_new_expr(parser, JL_E_RANGE, left->at);
    expr->inclusive = sign == JL_SIGN3('.', '.', '=');
    jl_advance(parser);
    jl_skip_newlines(parser);
    expr->left = left;
    expr->right = parse_binary(parser, BINDS_OR);
    return jl_done_expr(parser, expr);
}

struct jl_expr *jl_parse_expr(struct jl_parser *parser) { return parse_range(parser); }

/* `if a = b`: read as a comparison. */
static struct jl_expr *parse_equals(struct jl_parser *parser, struct jl_expr *left)
{
    struct jl_expr *expr = jl_new_expr(parser, JL_E_BINARY, left->at);
    jl_complain(parser, "S1001", parser->token.at, "`=` assigns; it does not compare")->help =
        "write `==`";
    jl_advance(parser);
    expr->binary = JL_EQ;
    expr->left = left;
    expr->right = jl_parse_expr(parser);
    return jl_done_expr(parser, expr);
}

struct jl_expr *jl_parse_head(struct jl_parser *parser)
{
    bool before = parser->is_head;
    parser->is_head = true;
    struct jl_expr *expr = jl_parse_expr(parser);
    if (jl_at_sign(parser, '=') && !parser->panicking) expr = parse_equals(parser, expr);
    parser->is_head = before;
    return expr;
}

/* Spawn and async. */

static bool is_call(const struct jl_expr *expr)
{
    return expr->kind == JL_E_CALL || expr->kind == JL_E_BAD;
}

static void expect_call(struct jl_parser *parser, const struct jl_expr *expr, const char *word)
{
    if (is_call(expr) || parser->panicking) return;
    jl_complain(parser, "S1023", expr->at, "`%s` needs a call", word)->help =
        jl_format(parser->arena, "write `%s f(x)`", word);
}

static void parse_with_cap(struct jl_parser *parser, struct jl_expr *expr)
{
    jl_advance(parser);
    struct jl_brackets before = jl_open_brackets(parser);
    expr->cap = jl_parse_expr(parser);
    jl_close_brackets(parser, before, ')', "`)`");
}

/* The block of `spawn`, whose height counts for the expression. */
static void spawn_block(struct jl_parser *parser, struct jl_expr *expr)
{
    uint32_t before = parser->tallest;
    parser->tallest = 0;
    expr->function = jl_block_function(parser, JL_F_SPAWN);
    expr->height = parser->tallest;
    if (before > parser->tallest) parser->tallest = before;
}

static struct jl_expr *parse_spawn(struct jl_parser *parser)
{
    struct jl_expr *expr = jl_new_expr(parser, JL_E_SPAWN, parser->token.at);
    jl_advance(parser);
    if (jl_at_name(parser, "with_cap")) {
        struct jl_token next = jl_peek(parser);
        if (next.kind == JL_T_SIGN && next.sign == '(') parse_with_cap(parser, expr);
    }
    if (parser->panicking) return jl_done_expr(parser, expr);
    if (jl_at_block(parser)) {
        spawn_block(parser, expr);
        return jl_done_expr(parser, expr);
    }
    bool before = parser->is_head;
    parser->is_head = true; /* `spawn f {` is not a struct */
    expr->left = jl_parse_postfix(parser);
    parser->is_head = before;
    expect_call(parser, expr->left, "spawn");
    if (!before && jl_at_block(parser) && !parser->panicking) {
        jl_complain(parser, "S1011", parser->token.at,
                    "`spawn` takes a call or a block, and not both")
            ->help = "write `spawn do ... end`, or declare the function and write `spawn f()`";
        jl_parse_block(parser, "", false);
    }
    return jl_done_expr(parser, expr);
}

static struct jl_expr *parse_async(struct jl_parser *parser)
{
    struct jl_expr *expr = jl_new_expr(parser, JL_E_ASYNC, parser->token.at);
    jl_advance(parser);
    expr->left = jl_parse_postfix(parser);
    expect_call(parser, expr->left, "async");
    return jl_done_expr(parser, expr);
}

/* Unary operators. */

static struct jl_expr *parse_prefix(struct jl_parser *parser, enum jl_expr_kind kind,
                                    enum jl_unary unary)
{
    struct jl_expr *expr = jl_new_expr(parser, kind, parser->token.at);
    expr->unary = unary;
    jl_advance(parser);
    expr->left = parse_unary(parser);
    if (kind == JL_E_TRY && expr->left->kind == JL_E_SPAWN) expr->left->try_spawn = true;
    return jl_done_expr(parser, expr);
}

static struct jl_expr *parse_foreign_prefix(struct jl_parser *parser)
{
    uint32_t sign = parser->token.sign;
    if (sign == '!') {
        jl_complain(parser, "S1012", parser->token.at, "`!` is not in Janus")->help = "write `not`";
        return parse_prefix(parser, JL_E_UNARY, JL_NOT);
    }
    const char *help = sign == '~'   ? bits_help
                       : sign == '+' ? "leave it out"
                                     : "Janus has no pointers: values are copied";
    jl_complain(parser, "S1010", parser->token.at, "`%c` does not begin a value", (char)sign)
        ->help = help;
    return parse_prefix(parser, JL_E_BAD, JL_NOT);
}

static struct jl_expr *parse_operand(struct jl_parser *parser)
{
    if (parser->token.kind == JL_T_WORD) {
        switch (parser->token.keyword) {
        case JL_K_not: return parse_prefix(parser, JL_E_UNARY, JL_NOT);
        case JL_K_try: return parse_prefix(parser, JL_E_TRY, JL_NOT);
        case JL_K_await: return parse_prefix(parser, JL_E_AWAIT, JL_NOT);
        case JL_K_spawn: return parse_spawn(parser);
        case JL_K_async: return parse_async(parser);
        default: return jl_parse_postfix(parser);
        }
    }
    if (jl_at_sign(parser, '-')) return parse_prefix(parser, JL_E_UNARY, JL_NEGATE);
    if (jl_at_sign(parser, '!') || jl_at_sign(parser, '~') || jl_at_sign(parser, '&') ||
        jl_at_sign(parser, '*') || jl_at_sign(parser, '+'))
        return parse_foreign_prefix(parser);
    return jl_parse_postfix(parser);
}

static struct jl_expr *parse_unary(struct jl_parser *parser)
{
    struct jl_expr *expr = NULL;
    if (jl_enter(parser)) expr = parse_operand(parser);
    jl_leave(parser);
    return expr ? expr : jl_new_expr(parser, JL_E_BAD, parser->token.at);
}

/* Calls, indexes and members. */

void jl_parse_arguments(struct jl_parser *parser, struct jl_expr *call, uint32_t sign,
                        const char *shown)
{
    uint32_t           room = call->arg_count;
    struct jl_brackets before = jl_open_brackets(parser);
    while (!jl_at_sign(parser, sign) && !parser->panicking && parser->token.kind != JL_T_END) {
        struct jl_argument argument = {0};
        struct jl_token    next = {0};
        if (parser->token.kind == JL_T_WORD) next = jl_peek(parser);
        if (next.kind == JL_T_SIGN && next.sign == ':') {
            argument.name = (struct jl_name){parser->token.name, parser->token.at};
            jl_advance(parser);
            jl_advance(parser);
        }
        argument.value = jl_parse_expr(parser);
        JL_PUSH(parser->arena, call->args, call->arg_count, room) = argument;
        if (!jl_take_sign(parser, ',')) break;
    }
    jl_close_brackets(parser, before, sign, shown);
}

static struct jl_expr *parse_index(struct jl_parser *parser, struct jl_expr *left)
{
    struct jl_expr    *expr = jl_new_expr(parser, JL_E_INDEX, left->at);
    struct jl_brackets before = jl_open_brackets(parser);
    expr->left = left;
    expr->right = jl_parse_expr(parser);
    jl_close_brackets(parser, before, ']', "`]`");
    return jl_done_expr(parser, expr);
}

static struct jl_expr *parse_member(struct jl_parser *parser, struct jl_expr *left)
{
    struct jl_expr *expr = jl_new_expr(parser, JL_E_MEMBER, left->at);
    jl_advance(parser);
    expr->left = left;
    expr->name.at = parser->token.at;
    if (parser->token.kind == JL_T_WORD) {
        expr->name.text = parser->token.name;
        jl_advance(parser);
    } else {
        jl_missing(parser, "a name");
    }
    return jl_done_expr(parser, expr);
}

struct jl_expr *jl_parse_postfix(struct jl_parser *parser)
{
    struct jl_expr *expr = jl_parse_primary(parser);
    while (!parser->panicking && parser->token.kind == JL_T_SIGN) {
        if (jl_at_sign(parser, '(')) {
            struct jl_expr *call = jl_new_expr(parser, JL_E_CALL, expr->at);
            call->left = expr;
            jl_parse_arguments(parser, call, ')', "`)`");
            expr = jl_done_expr(parser, call);
        } else if (jl_at_sign(parser, '[')) {
            expr = parse_index(parser, expr);
        } else if (jl_at_sign(parser, '.')) {
            expr = parse_member(parser, expr);
        } else if (jl_at_sign(parser, '?') || jl_at_sign(parser, JL_SIGN2('?', '.'))) {
            jl_complain(parser, "S1010", parser->token.at, "`?` is not in this subset of Janus")
                ->help = "pass an error on with `try`";
            if (jl_at_sign(parser, '?'))
                jl_advance(parser);
            else
                parser->token.sign = '.';
        } else {
            break;
        }
    }
    return expr;
}
