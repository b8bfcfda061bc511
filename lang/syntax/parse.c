/* SPDX-License-Identifier: MIT */
/* Tokens, errors and recovery of the parser. */
#include "syntax/parse.h"

#include <string.h>

void jl_advance(struct jl_parser *parser)
{
    if (parser->token.kind != JL_T_NEWLINE) parser->end = parser->token.at.end;
    do {
        parser->token = jl_lex(&parser->lexer);
        if (parser->token.kind == JL_T_BAD) jl_panic_here(parser); /* it was reported */
    } while (parser->token.kind == JL_T_BAD ||
             (parser->quiet && parser->token.kind == JL_T_NEWLINE));
}

void jl_skip_newlines(struct jl_parser *parser)
{
    while (parser->token.kind == JL_T_NEWLINE) jl_advance(parser);
}

struct jl_token jl_peek(const struct jl_parser *parser)
{
    struct jl_lexer copy = parser->lexer;
    return jl_lex(&copy);
}

bool jl_at_sign(const struct jl_parser *parser, uint32_t sign)
{
    return parser->token.kind == JL_T_SIGN && parser->token.sign == sign;
}

bool jl_at_word(const struct jl_parser *parser, enum jl_keyword keyword)
{
    return parser->token.kind == JL_T_WORD && parser->token.keyword == keyword;
}

bool jl_at_name(const struct jl_parser *parser, const char *name)
{
    return parser->token.kind == JL_T_WORD && !strcmp(parser->token.name, name);
}

bool jl_take_sign(struct jl_parser *parser, uint32_t sign)
{
    if (!jl_at_sign(parser, sign)) return false;
    jl_advance(parser);
    return true;
}

bool jl_take_word(struct jl_parser *parser, enum jl_keyword keyword)
{
    if (!jl_at_word(parser, keyword)) return false;
    jl_advance(parser);
    return true;
}

/* Errors. */

struct jl_diagnostic *jl_complain(struct jl_parser *parser, const char *code, struct jl_span at,
                                  const char *format, ...)
{
    static _Thread_local struct jl_diagnostic dummy;
    if (parser->panicking || parser->gave_up) return &dummy;
    char    text[256];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return jl_report(parser->diagnostics, JL_ERROR_SEVERITY, code, at, "%s", text);
}

void jl_panic_here(struct jl_parser *parser)
{
    if (parser->panicking) return;
    parser->panicking = true;
    parser->lost = parser->brackets;
}

/* What is missing after an error in the same line is a consequence of it. */
static bool follows_error(const struct jl_parser *parser, struct jl_span at)
{
    const struct jl_diagnostics *all = parser->diagnostics;
    if (!all->count) return false;
    if (all->errors >= JL_DIAGNOSTICS_MAX) return false; /* it is only counted */
    uint32_t begin = all->items[all->count - 1].at.begin;
    if (at.begin > begin + 400) return false; /* a long line has more than one error */
    return begin <= at.begin && !memchr(parser->lexer.source->text + begin, '\n', at.begin - begin);
}

static const char *describe(struct jl_parser *parser)
{
    const struct jl_token *token = &parser->token;
    uint32_t               length = token->at.end - token->at.begin;
    switch (token->kind) {
    case JL_T_END: return "the end of the file";
    case JL_T_NEWLINE: return "the end of the line";
    case JL_T_STRING: return "a string";
    default:
        return jl_format(parser->arena, "`%.*s`", (int)(length < 40 ? length : 40),
                         parser->lexer.source->text + token->at.begin);
    }
}

void jl_missing(struct jl_parser *parser, const char *what)
{
    struct jl_span at = parser->token.at;
    bool is_after = parser->token.kind == JL_T_NEWLINE || parser->token.kind == JL_T_END ||
                    parser->token.is_first;
    if (is_after) at = (struct jl_span){parser->end, parser->end};
    if (!follows_error(parser, at))
        jl_complain(parser, "S1001", at, "%s is missing before %s", what, describe(parser))->help =
            jl_format(parser->arena, "write %s here, or remove what is too much", what);
    jl_panic_here(parser);
}

bool jl_expect_sign(struct jl_parser *parser, uint32_t sign, const char *shown)
{
    if (jl_take_sign(parser, sign)) return true;
    jl_missing(parser, shown);
    return false;
}

struct jl_name jl_expect_name(struct jl_parser *parser, const char *what)
{
    struct jl_name name = {.text = NULL, .at = parser->token.at};
    if (parser->token.kind == JL_T_WORD && !parser->token.keyword) {
        name.text = parser->token.name;
        jl_advance(parser);
    } else if (parser->token.kind == JL_T_WORD && !parser->token.is_first) {
        jl_complain(parser, "S1001", name.at, "`%s` is a word of the language, not %s",
                    parser->token.name, what)
            ->help = "choose another name";
        jl_panic_here(parser);
    } else {
        jl_missing(parser, what);
    }
    return name;
}

struct jl_brackets jl_open_brackets(struct jl_parser *parser)
{
    struct jl_brackets before = {parser->quiet, parser->is_head};
    parser->quiet = true;
    parser->is_head = false;
    parser->brackets++;
    jl_advance(parser);
    return before;
}

bool jl_close_brackets(struct jl_parser *parser, struct jl_brackets before, uint32_t sign,
                       const char *shown)
{
    parser->is_head = before.is_head;
    parser->quiet = before.quiet;
    bool done = jl_expect_sign(parser, sign, shown);
    parser->brackets--;
    return done;
}

bool jl_enter(struct jl_parser *parser)
{
    parser->depth++;
    if (parser->depth <= JL_DEPTH_MAX) return true;
    jl_give_up(parser, "blocks and brackets nest at most 200 deep");
    return false;
}

void jl_leave(struct jl_parser *parser) { parser->depth--; }

void jl_give_up(struct jl_parser *parser, const char *text)
{
    parser->panicking = false;
    jl_complain(parser, "S1020", parser->token.at, "%s", text)->help =
        "split it into smaller functions";
    parser->gave_up = true;
    parser->lexer.at = parser->lexer.source->length;
    parser->token = jl_lex(&parser->lexer);
}

/* Recovery. */

static bool begins_statement(const struct jl_token *token)
{
    if (token->kind != JL_T_WORD) return false;
    switch (token->keyword) {
    case JL_K_actor:
    case JL_K_break:
    case JL_K_continue:
    case JL_K_defer:
    case JL_K_else:
    case JL_K_end:
    case JL_K_for:
    case JL_K_func:
    case JL_K_if:
    case JL_K_interface:
    case JL_K_let:
    case JL_K_loop:
    case JL_K_nursery:
    case JL_K_return:
    case JL_K_var:
    case JL_K_while:
    case JL_K_yield: return true;
    default: return false;
    }
}

static bool is_closing(const struct jl_token *token)
{
    return token->kind == JL_T_SIGN &&
           (token->sign == ')' || token->sign == ']' || token->sign == '}');
}

/* Whether a token that is the first of its line begins something new. */
static bool begins_anew(const struct jl_token *token, uint32_t indent)
{
    if (!token->is_first || is_closing(token)) return false;
    return token->indent <= indent || begins_statement(token);
}

static void skip_token(struct jl_parser *parser)
{
    bool is_dot = jl_at_sign(parser, '.');
    jl_advance(parser);
    if (is_dot && parser->token.kind == JL_T_WORD) jl_advance(parser); /* a member's name */
}

void jl_synchronise(struct jl_parser *parser, uint32_t indent)
{
    uint32_t begin = parser->token.at.begin, nested = parser->lost;
    parser->panicking = false;
    parser->lost = 0;
    while (parser->token.kind != JL_T_END) {
        if (parser->token.kind == JL_T_NEWLINE && !nested) return;
        if (begins_anew(&parser->token, indent) &&
            (parser->token.at.begin > begin || begins_statement(&parser->token)))
            return;
        if (!nested && (jl_at_word(parser, JL_K_end) || jl_at_word(parser, JL_K_else) ||
                        jl_at_sign(parser, '}')))
            return;
        if (jl_at_word(parser, JL_K_do) ||
            (jl_at_sign(parser, '{') && !nested && !jl_looks_like_struct(parser))) {
            jl_parse_block(parser, "", false);
            continue;
        }
        if (jl_at_sign(parser, '(') || jl_at_sign(parser, '[') || jl_at_sign(parser, '{'))
            nested++;
        else if (is_closing(&parser->token) && nested)
            nested--;
        skip_token(parser);
    }
}

void jl_skip_construct(struct jl_parser *parser, uint32_t indent)
{
    uint32_t begin = parser->token.at.begin;
    unsigned nested = 0;
    while (parser->token.kind != JL_T_END) {
        bool opens = jl_at_word(parser, JL_K_do) || jl_at_sign(parser, '{') ||
                     jl_at_sign(parser, '(') || jl_at_sign(parser, '[');
        bool closes = jl_at_word(parser, JL_K_end) || is_closing(&parser->token);
        if (parser->token.kind == JL_T_NEWLINE && !nested) return;
        if (closes && !nested) return;
        if (parser->token.at.begin > begin && !closes && parser->token.is_first &&
            parser->token.indent <= indent)
            return;
        if (opens) nested++;
        if (closes) nested--;
        skip_token(parser);
    }
}

struct jl_unit *jl_parse(const struct jl_source *source, struct jl_arena *arena,
                         struct jl_names *names, struct jl_diagnostics *diagnostics)
{
    struct jl_unit  *unit = jl_new(arena, sizeof *unit);
    struct jl_parser parser = {
        .arena = arena, .diagnostics = diagnostics, .unit = unit, .missing_at = UINT32_MAX};
    *unit = (struct jl_unit){.arena = arena, .source = source, .names = names};
    jl_lexer_init(&parser.lexer, source, arena, names, diagnostics);
    jl_advance(&parser);
    jl_parse_top(&parser);
    return unit;
}
