/* SPDX-License-Identifier: MIT */
/* Blocks, and which of them an `end` closes. */
#include "syntax/parse.h"

#include <string.h>

bool jl_at_block(const struct jl_parser *parser)
{
    return jl_at_word(parser, JL_K_do) || jl_at_sign(parser, '{');
}

/* At a brace: `}` or `name :` follows. */
bool jl_looks_like_struct(const struct jl_parser *parser)
{
    struct jl_lexer copy = parser->lexer;
    struct jl_token token;
    do token = jl_lex(&copy);
    while (token.kind == JL_T_NEWLINE);
    if (token.kind == JL_T_SIGN) return token.sign == '}';
    if (token.kind != JL_T_WORD) return false;
    token = jl_lex(&copy);
    return token.kind == JL_T_SIGN && token.sign == ':';
}

bool jl_at_declaration(const struct jl_parser *parser)
{
    if (jl_at_word(parser, JL_K_func)) return true;
    if (jl_at_word(parser, JL_K_async)) {
        struct jl_token next = jl_peek(parser);
        return next.kind == JL_T_WORD && next.keyword == JL_K_func;
    }
    return jl_at_word(parser, JL_K_actor) || jl_at_word(parser, JL_K_interface) ||
           jl_at_word(parser, JL_K_struct);
}

static const char *closer_of(const struct jl_open *open) { return open->braces ? "}" : "end"; }

void jl_report_open(struct jl_parser *parser, const struct jl_open *open)
{
    if (parser->missing_at == parser->token.at.begin) return;
    parser->missing_at = parser->token.at.begin;
    struct jl_diagnostic *item = jl_complain(parser, "S1002", open->at, "this `%s` has no `%s`",
                                             open->braces ? "{" : "do", closer_of(open));
    if (parser->diagnostics->errors > JL_DIAGNOSTICS_MAX) return; /* nobody sees the help */
    uint32_t line, column;
    jl_source_place(parser->lexer.source, parser->token.at.begin, &line, &column);
    item->help = jl_format(parser->arena, "write `%s` before line %u", closer_of(open), line);
    if (parser->token.kind == JL_T_END)
        item->help =
            jl_format(parser->arena, "write `%s` before the end of the file", closer_of(open));
}

/* Whether `end` or `}` belongs to a block further out, which then shows that this one is open. */
static bool closes_outer(const struct jl_parser *parser, const struct jl_open *open, bool brace)
{
    const struct jl_token *token = &parser->token;
    bool                   is_dedent = token->is_first && token->indent < open->indent;
    bool                   fits = brace == open->braces;
    if (token->is_first && token->indent == open->indent) return false;
    for (const struct jl_open *outer = open->outer; outer; outer = outer->outer) {
        if (is_dedent && outer->indent == token->indent) return true;
        if (!fits && outer->braces == brace && !token->is_first) return true;
    }
    return false;
}

/* The token closes a block: this one (taken), or an outer one. */
static void close_block(struct jl_parser *parser, struct jl_open *open, bool brace)
{
    if (closes_outer(parser, open, brace)) {
        jl_report_open(parser, open);
        return;
    }
    if (brace != open->braces) {
        struct jl_diagnostic *item = jl_complain(parser, "S1002", parser->token.at,
                                                 "a block that begins with `%s` ends "
                                                 "with `%s`",
                                                 open->braces ? "{" : "do", closer_of(open));
        item->help = jl_format(parser->arena, "write `%s`", closer_of(open));
        item->also = open->at;
        item->also_text = "the block begins here";
    }
    parser->open = open->outer;
    open->closed = true;
    jl_advance(parser);
}

bool jl_at_else(const struct jl_parser *parser)
{
    return jl_at_word(parser, JL_K_else) || jl_at_name(parser, "elif") ||
           jl_at_name(parser, "elsif") || jl_at_name(parser, "elseif");
}

bool jl_block_goes_on(struct jl_parser *parser, struct jl_open *open)
{
    parser->panicking = false;
    jl_skip_newlines(parser);
    if (parser->token.kind == JL_T_END) {
        jl_report_open(parser, open);
        return false;
    }
    if (jl_at_word(parser, JL_K_end) || jl_at_sign(parser, '}')) {
        close_block(parser, open, jl_at_sign(parser, '}'));
        return false;
    }
    return !(open->is_then && jl_at_else(parser));
}

/* Passes over what stands before the block in a broken head. */
static void find_block(struct jl_parser *parser)
{
    unsigned nested = parser->lost;
    parser->panicking = false;
    parser->lost = 0;
    while (parser->token.kind != JL_T_END && parser->token.kind != JL_T_NEWLINE &&
           !parser->token.is_first) {
        bool is_brace = jl_at_sign(parser, '{');
        if (jl_at_word(parser, JL_K_do) || jl_at_word(parser, JL_K_end)) return;
        if (is_brace && !nested && !jl_looks_like_struct(parser)) return;
        if (is_brace || jl_at_sign(parser, '(') || jl_at_sign(parser, '['))
            nested++;
        else if (nested &&
                 (jl_at_sign(parser, '}') || jl_at_sign(parser, ')') || jl_at_sign(parser, ']')))
            nested--;
        jl_advance(parser);
    }
}

static void report_no_block(struct jl_parser *parser, const char *after)
{
    struct jl_span at = {parser->end, parser->end};
    if (!parser->token.is_first && parser->token.kind != JL_T_NEWLINE) at = parser->token.at;
    jl_complain(parser, "S1001", at, "`do` is missing after %s", after)->help =
        "a block is `do ... end` or `{ ... }`";
}

bool jl_open_block(struct jl_parser *parser, struct jl_open *open, const char *after)
{
    uint32_t indent = parser->token.indent;
    if (parser->panicking || !jl_at_block(parser)) {
        report_no_block(parser, after);
        find_block(parser);
    }
    *open = (struct jl_open){.outer = parser->open,
                             .at = parser->token.at,
                             .indent = indent,
                             .braces = jl_at_sign(parser, '{')};
    if (jl_at_block(parser)) {
        parser->open = open;
        jl_advance(parser);
        return true;
    }
    open->at = (struct jl_span){parser->end, parser->end};
    jl_skip_newlines(parser); /* a body that is indented was meant as the block */
    bool has_body = parser->token.is_first &&
                    (parser->token.indent > indent ||
                     (jl_at_word(parser, JL_K_end) && parser->token.indent == indent));
    if (has_body) parser->open = open;
    return has_body;
}

/* A declaration that is not further in than the block shows that the block has no end. */
static bool is_after_block(struct jl_parser *parser, const struct jl_open *open)
{
    while (jl_at_declaration(parser) && parser->token.is_first &&
           parser->token.indent > open->indent) {
        jl_complain(parser, "S1013", parser->token.at, "a `%s` stands outside of all blocks",
                    parser->token.name)
            ->help = "move it out; inside of a function write a closure: `|x| x + 1`";
        jl_parse_declaration(parser);
        jl_skip_newlines(parser);
    }
    if (!jl_at_declaration(parser)) return false;
    jl_report_open(parser, open);
    return true;
}

void jl_parse_body(struct jl_parser *parser, struct jl_open *open, struct jl_block *block)
{
    while (jl_block_goes_on(parser, open) && !is_after_block(parser, open)) {
        if (!jl_block_goes_on(parser, open)) break;
        uint32_t             begin = parser->token.at.begin;
        struct jl_statement *statement = jl_parse_statement(parser);
        if (statement)
            JL_PUSH(parser->arena, block->statements, block->count, block->room) = statement;
        if (parser->token.at.begin == begin && !jl_at_declaration(parser) &&
            parser->token.kind != JL_T_END)
            jl_advance(parser);
    }
    parser->open = open->outer;
}

struct jl_block *jl_parse_block(struct jl_parser *parser, const char *after, bool is_then)
{
    struct jl_block *block = jl_new(parser->arena, sizeof *block);
    bool             quiet = parser->quiet, is_head = parser->is_head;
    unsigned         brackets = parser->brackets;
    struct jl_open   open;
    parser->quiet = parser->is_head = false;
    parser->brackets = 0;
    block->at.begin = parser->token.at.begin;
    if (jl_enter(parser) && jl_open_block(parser, &open, after)) {
        open.is_then = is_then;
        block->braces = open.braces;
        block->at.begin = open.at.begin;
        jl_parse_body(parser, &open, block);
    }
    jl_leave(parser);
    parser->is_head = is_head;
    parser->brackets = brackets;
    parser->quiet = quiet;
    if (quiet) jl_skip_newlines(parser);
    block->at.end = parser->end > block->at.begin ? parser->end : block->at.begin;
    return block;
}
