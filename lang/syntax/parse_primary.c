/* SPDX-License-Identifier: MIT */
/* Expressions: literals, names, brackets, closures. */
#include "syntax/parse.h"

#include <string.h>

static struct jl_expr *parse_literal(struct jl_parser *parser, enum jl_expr_kind kind)
{
    struct jl_expr *expr = jl_new_expr(parser, kind, parser->token.at);
    expr->value = parser->token.value;
    expr->number = parser->token.number;
    expr->text = parser->token.text;
    expr->length = parser->token.length;
    jl_advance(parser);
    return jl_done_expr(parser, expr);
}

static struct jl_expr *parse_bool(struct jl_parser *parser)
{
    struct jl_expr *expr = jl_new_expr(parser, JL_E_BOOL, parser->token.at);
    expr->value = jl_at_word(parser, JL_K_true);
    jl_advance(parser);
    return jl_done_expr(parser, expr);
}

static struct jl_expr *parse_null(struct jl_parser *parser)
{
    struct jl_expr *expr = jl_new_expr(parser, JL_E_BAD, parser->token.at);
    jl_complain(parser, "S1010", expr->at, "`%s` is not in this subset of Janus",
                parser->token.name)
        ->help = "say that a value is absent by an error: `return error.NotFound`";
    jl_advance(parser);
    return jl_done_expr(parser, expr);
}

static struct jl_expr *parse_error(struct jl_parser *parser)
{
    struct jl_expr *expr = jl_new_expr(parser, JL_E_ERROR, parser->token.at);
    jl_advance(parser);
    if (!jl_expect_sign(parser, '.', "`.`")) return jl_done_expr(parser, expr);
    expr->name.at = parser->token.at;
    if (parser->token.kind == JL_T_WORD) {
        expr->name.text = parser->token.name;
        jl_advance(parser);
    } else {
        jl_missing(parser, "the name of the error");
    }
    return jl_done_expr(parser, expr);
}

static struct jl_expr *parse_group(struct jl_parser *parser)
{
    uint32_t           begin = parser->token.at.begin;
    struct jl_brackets before = jl_open_brackets(parser);
    struct jl_expr    *expr = jl_parse_expr(parser);
    if (jl_at_sign(parser, ',') && !parser->panicking) {
        jl_complain(parser, "S1010", parser->token.at, "tuples are not in this subset of Janus")
            ->help = "declare `struct Name do field: T end`";
        jl_panic_here(parser);
    }
    jl_close_brackets(parser, before, ')', "`)`");
    if (expr->kind == JL_E_INT || expr->kind == JL_E_FLOAT || expr->kind == JL_E_STRING)
        return expr; /* the printer takes the text of literals from their place */
    expr->at.begin = begin;
    if (parser->end > begin) expr->at.end = parser->end;
    return expr;
}

static struct jl_expr *parse_array(struct jl_parser *parser)
{
    struct jl_expr *expr = jl_new_expr(parser, JL_E_ARRAY, parser->token.at);
    jl_parse_arguments(parser, expr, ']', "`]`");
    for (uint32_t i = 0; i < expr->arg_count && !parser->panicking; i++) {
        if (!expr->args[i].name.text) continue;
        jl_complain(parser, "S1001", expr->args[i].name.at, "an element of an array has no name")
            ->help = "write the value alone";
    }
    if (!parser->panicking && !expr->arg_count && parser->token.kind == JL_T_WORD &&
        !parser->token.keyword && !parser->token.is_first) {
        jl_complain(parser, "S1012", expr->at, "a type does not begin a value")->help =
            "write the elements, `[1, 2]`, or `array(T, n)`";
        jl_panic_here(parser);
    }
    return jl_done_expr(parser, expr);
}

static struct jl_expr *parse_struct(struct jl_parser *parser)
{
    struct jl_expr *expr = jl_new_expr(parser, JL_E_STRUCT, parser->token.at);
    expr->name = (struct jl_name){parser->token.name, parser->token.at};
    jl_advance(parser);
    jl_parse_arguments(parser, expr, '}', "`}`");
    for (uint32_t i = 0; i < expr->arg_count && !parser->panicking; i++) {
        if (expr->args[i].name.text) continue;
        jl_complain(parser, "S1001", expr->args[i].value->at, "a value of a struct has no name")
            ->help = "write `field: value`";
    }
    return jl_done_expr(parser, expr);
}

/* Closures. */

static void parse_closure_params(struct jl_parser *parser, struct jl_function *function)
{
    uint32_t room = 0;
    if (jl_take_sign(parser, JL_SIGN2('|', '|'))) return;
    jl_advance(parser);
    while (!jl_at_sign(parser, '|') && !parser->panicking && parser->token.kind != JL_T_END) {
        struct jl_param param = {.name = jl_expect_name(parser, "a parameter")};
        if (jl_take_sign(parser, ':')) param.written = jl_parse_type(parser);
        JL_PUSH(parser->arena, function->params, function->param_count, room) = param;
        if (!jl_take_sign(parser, ',')) break;
    }
    jl_expect_sign(parser, '|', "`|`");
}

/* `|x| expr`: a block with a return, whose keyword is empty. */
static struct jl_block *parse_short_body(struct jl_parser *parser)
{
    struct jl_block     *block = jl_new(parser->arena, sizeof *block);
    struct jl_statement *only = jl_new(parser->arena, sizeof *only);
    uint32_t             begin = parser->token.at.begin;
    only->kind = JL_S_RETURN;
    only->value = jl_parse_expr(parser);
    only->at = (struct jl_span){begin, parser->end > begin ? parser->end : begin};
    only->keyword = (struct jl_span){begin, begin};
    block->at = only->at;
    JL_PUSH(parser->arena, block->statements, block->count, block->room) = only;
    return block;
}

static struct jl_expr *parse_closure(struct jl_parser *parser)
{
    struct jl_expr     *expr = jl_new_expr(parser, JL_E_CLOSURE, parser->token.at);
    struct jl_function *function = jl_new_function(parser, JL_F_CLOSURE);
    uint32_t            before = parser->tallest;
    expr->function = function;
    parse_closure_params(parser, function);
    if (!parser->panicking && jl_take_sign(parser, JL_SIGN2('-', '>')))
        function->result = jl_parse_type(parser);
    function->head.end = parser->end;
    parser->tallest = 0;
    if (parser->panicking)
        function->body = jl_new(parser->arena, sizeof *function->body);
    else if (jl_at_block(parser))
        function->body = jl_parse_block(parser, "the parameters", false);
    else
        function->body = parse_short_body(parser);
    function->at.end = parser->end > function->at.begin ? parser->end : function->at.begin;
    expr->height = parser->tallest;
    if (before > parser->tallest) parser->tallest = before;
    return jl_done_expr(parser, expr);
}

/* Builtins that take a type. */

/* Whether the next argument is a type: T, and a comma after it. */
static bool at_type_argument(const struct jl_parser *parser)
{
    if (jl_at_sign(parser, '[')) {
        struct jl_token next = jl_peek(parser);
        return next.kind == JL_T_SIGN && next.sign == ']';
    }
    if (jl_at_word(parser, JL_K_fn) || jl_at_sign(parser, '!')) return true;
    if (parser->token.kind != JL_T_WORD || parser->token.keyword) return false;
    struct jl_token next = jl_peek(parser);
    if (next.kind == JL_T_SIGN) return next.sign == ',';
    return next.kind == JL_T_WORD && (jl_at_name(parser, "channel") || jl_at_name(parser, "task"));
}

/* `channel(T, n)` */
static struct jl_expr *parse_channel(struct jl_parser *parser)
{
    struct jl_expr *expr = jl_new_expr(parser, JL_E_CHANNEL, parser->token.at);
    jl_advance(parser);
    struct jl_brackets before = jl_open_brackets(parser);
    expr->written = jl_parse_type(parser);
    if (!parser->panicking && !jl_take_sign(parser, ',')) {
        jl_complain(parser, "S1001", parser->token.at, "the capacity of the channel is missing")
            ->help = "write `channel(T, 1)`";
        jl_panic_here(parser);
    }
    expr->left =
        parser->panicking ? jl_new_expr(parser, JL_E_BAD, parser->token.at) : jl_parse_expr(parser);
    jl_close_brackets(parser, before, ')', "`)`");
    return jl_done_expr(parser, expr);
}

/* `array(n)`, `array(T, n)` */
static struct jl_expr *parse_array_call(struct jl_parser *parser)
{
    struct jl_expr *call = jl_new_expr(parser, JL_E_CALL, parser->token.at);
    uint32_t        room = 0;
    call->left = jl_new_expr(parser, JL_E_NAME, parser->token.at);
    call->left->name = (struct jl_name){parser->token.name, parser->token.at};
    jl_advance(parser);
    jl_done_expr(parser, call->left);
    struct jl_brackets before = jl_open_brackets(parser);
    if (at_type_argument(parser)) {
        call->written = jl_parse_type(parser);
        if (!parser->panicking) jl_expect_sign(parser, ',', "`,`");
    }
    while (!jl_at_sign(parser, ')') && !parser->panicking && parser->token.kind != JL_T_END) {
        struct jl_argument argument = {.value = jl_parse_expr(parser)};
        JL_PUSH(parser->arena, call->args, call->arg_count, room) = argument;
        if (!jl_take_sign(parser, ',')) break;
    }
    jl_close_brackets(parser, before, ')', "`)`");
    return jl_done_expr(parser, call);
}

static struct jl_expr *parse_name(struct jl_parser *parser)
{
    struct jl_token next = jl_peek(parser);
    if (next.kind == JL_T_SIGN && next.sign == '(') {
        if (jl_at_name(parser, "channel")) return parse_channel(parser);
        if (jl_at_name(parser, "array")) return parse_array_call(parser);
    }
    if (jl_at_name(parser, "nil") && next.kind != JL_T_WORD) return parse_null(parser);
    struct jl_expr *expr = jl_new_expr(parser, JL_E_NAME, parser->token.at);
    if (jl_parse_foreign_value(parser)) {
        expr->kind = JL_E_BAD;
        return jl_done_expr(parser, expr);
    }
    expr->name = (struct jl_name){parser->token.name, parser->token.at};
    if (next.kind == JL_T_SIGN && next.sign == '{' && !parser->is_head) {
        struct jl_parser copy = *parser;
        copy.token = jl_lex(&copy.lexer);
        if (jl_looks_like_struct(&copy)) return parse_struct(parser);
    }
    jl_advance(parser);
    return jl_done_expr(parser, expr);
}

static struct jl_expr *parse_misplaced(struct jl_parser *parser)
{
    struct jl_expr *expr = jl_new_expr(parser, JL_E_BAD, parser->token.at);
    if (jl_at_word(parser, JL_K_fn)) {
        jl_complain(parser, "S1012", expr->at, "`fn` begins a type, not a value")->help =
            "write a closure: `|x| x + 1`";
        jl_panic_here(parser);
    } else if (jl_at_word(parser, JL_K_if) && !parser->token.is_first) {
        jl_complain(parser, "S1012", expr->at, "`if` is a statement and has no value")->help =
            "assign in both branches";
        jl_skip_construct(parser, parser->token.indent);
    } else if (jl_at_block(parser) && !parser->token.is_first) {
        jl_complain(parser, "S1012", expr->at, "a block has no value")->help =
            "write a struct as `Name{ field: value }`, a closure as `|| do ... end`";
        jl_panic_here(parser);
    } else {
        jl_missing(parser, "a value");
    }
    return jl_done_expr(parser, expr);
}

struct jl_expr *jl_parse_primary(struct jl_parser *parser)
{
    switch (parser->token.kind) {
    case JL_T_INT: return parse_literal(parser, JL_E_INT);
    case JL_T_FLOAT: return parse_literal(parser, JL_E_FLOAT);
    case JL_T_STRING: return parse_literal(parser, JL_E_STRING);
    case JL_T_WORD:
        switch (parser->token.keyword) {
        case JL_K_none: return parse_name(parser);
        case JL_K_true:
        case JL_K_false: return parse_bool(parser);
        case JL_K_null: return parse_null(parser);
        case JL_K_error: return parse_error(parser);
        default: return parse_misplaced(parser);
        }
    case JL_T_SIGN:
        if (jl_at_sign(parser, '(')) return parse_group(parser);
        if (jl_at_sign(parser, '[')) return parse_array(parser);
        if (jl_at_sign(parser, '|') || jl_at_sign(parser, JL_SIGN2('|', '|')))
            return parse_closure(parser);
        return parse_misplaced(parser);
    default: return parse_misplaced(parser);
    }
}
