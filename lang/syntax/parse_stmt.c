/* SPDX-License-Identifier: MIT */
/* Statements. */
#include "syntax/parse.h"

#include <string.h>

static struct jl_statement *new_statement(struct jl_parser *parser, enum jl_statement_kind kind)
{
    struct jl_statement *statement = jl_new(parser->arena, sizeof *statement);
    statement->kind = kind;
    statement->at = statement->keyword = parser->token.at;
    return statement;
}

/* After the keyword: whether an expression follows, and not the end of the statement. */
static bool has_operand(const struct jl_parser *parser)
{
    return parser->token.kind != JL_T_NEWLINE && parser->token.kind != JL_T_END &&
           !jl_at_word(parser, JL_K_end) && !jl_at_word(parser, JL_K_else) &&
           !jl_at_sign(parser, '}');
}

struct jl_statement *jl_parse_variable(struct jl_parser *parser)
{
    bool                 is_var = jl_at_word(parser, JL_K_var);
    struct jl_statement *statement = new_statement(parser, is_var ? JL_S_VAR : JL_S_LET);
    jl_advance(parser);
    if (jl_at_name(parser, "mut") && jl_peek(parser).kind == JL_T_WORD) {
        jl_complain(parser, "S1012", parser->token.at, "`let` has no `mut`")->help = "write `var`";
        jl_advance(parser);
    }
    statement->name = jl_expect_name(parser, "a name");
    if (jl_at_sign(parser, JL_SIGN2(':', '='))) {
        jl_complain(parser, "S1012", parser->token.at, "`:=` is not in Janus")->help = "write `=`";
        parser->token.sign = '=';
    } else if (jl_take_sign(parser, ':')) {
        statement->written = jl_parse_type(parser);
    }
    if (!jl_expect_sign(parser, '=', "`=`")) return statement;
    jl_skip_newlines(parser);
    statement->value = jl_parse_expr(parser);
    return statement;
}

static struct jl_statement *parse_nursery(struct jl_parser *parser)
{
    struct jl_statement *statement = new_statement(parser, JL_S_NURSERY);
    jl_advance(parser);
    if (jl_at_name(parser, "with")) {
        jl_advance(parser);
        statement->value = jl_parse_head(parser);
    }
    statement->body = jl_parse_block(parser, "`nursery`", false);
    return statement;
}

static struct jl_statement *parse_for(struct jl_parser *parser)
{
    struct jl_statement *statement = new_statement(parser, JL_S_FOR);
    jl_advance(parser);
    statement->name = jl_expect_name(parser, "a name");
    if (jl_take_word(parser, JL_K_in))
        statement->value = jl_parse_head(parser);
    else
        jl_missing(parser, "`in`");
    statement->body = jl_parse_block(parser, "the head of `for`", false);
    return statement;
}

static struct jl_statement *parse_while(struct jl_parser *parser)
{
    struct jl_statement *statement = new_statement(parser, JL_S_WHILE);
    jl_advance(parser);
    statement->value = jl_parse_head(parser);
    statement->body = jl_parse_block(parser, "the condition of `while`", false);
    return statement;
}

static struct jl_statement *parse_loop(struct jl_parser *parser)
{
    struct jl_statement *statement = new_statement(parser, JL_S_LOOP);
    jl_advance(parser);
    statement->body = jl_parse_block(parser, "`loop`", false);
    return statement;
}

static struct jl_statement *parse_if(struct jl_parser *parser);

/* At `else`: a block, or a block with one `if`. `open` is that of the `do` which it shares. */
static struct jl_block *parse_else(struct jl_parser *parser, struct jl_open *open)
{
    struct jl_block *block = jl_new(parser->arena, sizeof *block);
    block->at = parser->token.at;
    struct jl_token *token = &parser->token;
    if (jl_at_word(parser, JL_K_else)) {
        jl_advance(parser);
    } else {
        jl_complain(parser, "S1012", token->at, "`%s` is not in Janus", token->name)->help =
            "write `else if`";
        token->keyword = JL_K_if;
        token->is_first = false;
    }
    if (jl_at_word(parser, JL_K_if) && !token->is_first) {
        struct jl_statement *statement = parse_if(parser);
        JL_PUSH(parser->arena, block->statements, block->count, block->room) = statement;
    } else if (open && (!jl_at_block(parser) || token->is_first)) {
        open->is_then = false;
        parser->open = open;
        jl_parse_body(parser, open, block);
    } else {
        block = jl_parse_block(parser, "`else`", false);
    }
    block->at.end = parser->end > block->at.begin ? parser->end : block->at.begin;
    return block;
}

/* An `else` on the line after `end` belongs to the `if` around, if that one waits for it. */
static bool has_else(struct jl_parser *parser)
{
    if (jl_at_else(parser)) return true;
    if (parser->token.kind != JL_T_NEWLINE || (parser->open && parser->open->is_then)) return false;
    struct jl_lexer copy = parser->lexer;
    struct jl_token token;
    do token = jl_lex(&copy);
    while (token.kind == JL_T_NEWLINE);
    if (token.kind != JL_T_WORD) return false;
    struct jl_parser ahead = *parser;
    ahead.token = token;
    if (!jl_at_else(&ahead)) return false;
    jl_skip_newlines(parser);
    return true;
}

static void parse_branches(struct jl_parser *parser, struct jl_statement *statement)
{
    struct jl_block *body = statement->body = jl_new(parser->arena, sizeof *body);
    struct jl_open   open;
    body->at.begin = parser->token.at.begin;
    if (jl_open_block(parser, &open, "the condition of `if`")) {
        body->braces = open.braces;
        open.is_then = !open.braces;
        jl_parse_body(parser, &open, body);
    }
    body->at.end = parser->end > body->at.begin ? parser->end : body->at.begin;
    bool is_shared = open.is_then && !open.closed && jl_at_else(parser);
    if (is_shared || has_else(parser))
        statement->otherwise = parse_else(parser, is_shared ? &open : NULL);
}

static struct jl_statement *parse_if(struct jl_parser *parser)
{
    struct jl_statement *statement = new_statement(parser, JL_S_IF);
    bool                 quiet = parser->quiet;
    jl_advance(parser);
    statement->value = jl_parse_head(parser);
    if (jl_enter(parser)) parse_branches(parser, statement);
    jl_leave(parser);
    parser->quiet = quiet;
    statement->at.end = parser->end;
    return statement;
}

static struct jl_statement *parse_return(struct jl_parser *parser)
{
    struct jl_statement *statement = new_statement(parser, JL_S_RETURN);
    jl_advance(parser);
    if (has_operand(parser)) statement->value = jl_parse_expr(parser);
    return statement;
}

static struct jl_statement *parse_defer(struct jl_parser *parser)
{
    struct jl_statement *statement = new_statement(parser, JL_S_DEFER);
    jl_advance(parser);
    if (jl_at_block(parser)) {
        statement->function = jl_block_function(parser, JL_F_DEFER);
        return statement;
    }
    struct jl_function  *function = jl_new_function(parser, JL_F_DEFER);
    struct jl_block     *block = function->body = jl_new(parser->arena, sizeof *block);
    struct jl_statement *only = new_statement(parser, JL_S_EXPR);
    only->value = jl_parse_expr(parser);
    only->at.end = function->at.end = parser->end;
    only->keyword.end = only->keyword.begin;
    block->at = only->at;
    JL_PUSH(parser->arena, block->statements, block->count, block->room) = only;
    statement->function = function;
    return statement;
}

static struct jl_statement *parse_word(struct jl_parser *parser, enum jl_statement_kind kind)
{
    struct jl_statement *statement = new_statement(parser, kind);
    jl_advance(parser);
    if (kind == JL_S_YIELD && jl_at_sign(parser, '(')) {
        struct jl_brackets before = jl_open_brackets(parser);
        jl_close_brackets(parser, before, ')', "`)`");
    }
    return statement;
}

/* The operator of `+=` and its like; false: it is `=`. */
static bool compound_of(uint32_t sign, enum jl_binary *binary)
{
    switch (sign) {
    case JL_SIGN2('+', '='): *binary = JL_ADD; return true;
    case JL_SIGN2('-', '='): *binary = JL_SUB; return true;
    case JL_SIGN2('*', '='): *binary = JL_MUL; return true;
    case JL_SIGN2('/', '='): *binary = JL_DIV; return true;
    case JL_SIGN2('%', '='): *binary = JL_REM; return true;
    default: return false;
    }
}

static bool is_place(const struct jl_expr *expr)
{
    return expr->kind == JL_E_NAME || expr->kind == JL_E_MEMBER || expr->kind == JL_E_INDEX ||
           expr->kind == JL_E_BAD;
}

static void parse_step(struct jl_parser *parser)
{
    bool is_more = jl_at_sign(parser, JL_SIGN2('+', '+'));
    jl_complain(parser, "S1012", parser->token.at, "`%s` is not in Janus", is_more ? "++" : "--")
        ->help = is_more ? "write `+= 1`" : "write `-= 1`";
    jl_advance(parser);
}

static struct jl_statement *parse_simple(struct jl_parser *parser)
{
    struct jl_statement *statement = new_statement(parser, JL_S_EXPR);
    statement->keyword.end = statement->keyword.begin;
    struct jl_expr *expr = jl_parse_expr(parser);
    statement->value = expr;
    if (parser->token.kind != JL_T_SIGN) return statement;
    uint32_t sign = parser->token.sign;
    if (sign == JL_SIGN2('+', '+') || sign == JL_SIGN2('-', '-')) {
        parse_step(parser);
        return statement;
    }
    if (sign == JL_SIGN2(':', '=') && !parser->panicking) {
        jl_complain(parser, "S1012", parser->token.at, "`:=` is not in Janus")->help =
            "write `let name = value`";
        sign = '=';
    }
    statement->compound = compound_of(sign, &statement->binary);
    if ((!statement->compound && sign != '=') || parser->panicking) return statement;
    if (!is_place(expr))
        jl_complain(parser, "S1022", expr->at, "the left side of an assignment is no variable")
            ->help = "assign to a variable, a field, or an element";
    jl_advance(parser);
    jl_skip_newlines(parser);
    statement->kind = JL_S_ASSIGN;
    statement->target = expr;
    statement->value = jl_parse_expr(parser);
    return statement;
}

static struct jl_statement *parse_else_alone(struct jl_parser *parser)
{
    jl_complain(parser, "S1003", parser->token.at, "this `%s` belongs to no `if`",
                parser->token.name);
    jl_advance(parser);
    if (jl_at_word(parser, JL_K_if)) return parse_if(parser);
    if (jl_at_block(parser)) jl_parse_block(parser, "`else`", false);
    return NULL;
}

static struct jl_statement *parse_kind(struct jl_parser *parser)
{
    if (parser->token.kind != JL_T_WORD) return parse_simple(parser);
    switch (parser->token.keyword) {
    case JL_K_let:
    case JL_K_var: return jl_parse_variable(parser);
    case JL_K_nursery: return parse_nursery(parser);
    case JL_K_for: return parse_for(parser);
    case JL_K_while: return parse_while(parser);
    case JL_K_loop: return parse_loop(parser);
    case JL_K_if: return parse_if(parser);
    case JL_K_else: return parse_else_alone(parser);
    case JL_K_return: return parse_return(parser);
    case JL_K_defer: return parse_defer(parser);
    case JL_K_yield: return parse_word(parser, JL_S_YIELD);
    case JL_K_break: return parse_word(parser, JL_S_BREAK);
    case JL_K_continue: return parse_word(parser, JL_S_CONTINUE);
    default: return parse_simple(parser);
    }
}

/* The statement must be over here. */
static void expect_end(struct jl_parser *parser)
{
    if (parser->panicking || !has_operand(parser)) return;
    if (parser->token.is_first && jl_at_declaration(parser)) return;
    if (parser->token.kind == JL_T_WORD && !strcmp(parser->token.name, "catch")) {
        jl_complain(parser, "S1010", parser->token.at, "`catch` is not in this subset of Janus")
            ->help = "pass the error on with `try`, or return a value that says what happened";
        jl_panic_here(parser);
        return;
    }
    uint32_t length = parser->token.at.end - parser->token.at.begin;
    jl_complain(parser, "S1001", parser->token.at, "the statement should end before `%.*s`",
                (int)(length < 40 ? length : 40),
                parser->lexer.source->text + parser->token.at.begin)
        ->help = "a statement ends with its line, or with `;`";
    jl_panic_here(parser);
}

struct jl_statement *jl_parse_statement(struct jl_parser *parser)
{
    uint32_t indent = parser->token.indent;
    if (jl_parse_foreign(parser)) return NULL;
    if (jl_at_declaration(parser)) return NULL; /* `fn f()`: the caller takes it as `func` */
    struct jl_statement *statement = parse_kind(parser);
    if (statement) statement->at.end = parser->end;
    expect_end(parser);
    if (parser->panicking) jl_synchronise(parser, indent);
    return statement;
}
