/* SPDX-License-Identifier: MIT */
/*
 * The parser's parts. It is one recursive descent over tokens.
 *
 * Recovery. The first error of a statement sets `panicking`; until the statement's end nothing is
 * reported. Every block is parsed as a block even if the head before it is broken, so that its
 * `end` is never left over. A block without `end` is found by the indentation of the next `end`,
 * or by a declaration inside of a block.
 */
#ifndef JANUSRT_LANG_PARSE_H
#define JANUSRT_LANG_PARSE_H

#include "syntax/lex.h"
#include "syntax/syntax.h"

/* A block that is being read. */
struct jl_open {
    struct jl_open *outer;
    struct jl_span  at; /* `do` or `{` */
    uint32_t        indent;
    bool            braces;
    bool            is_then; /* `else` ends it, too */
    bool            closed;  /* its `end` was taken */
};

struct jl_parser {
    struct jl_lexer        lexer;
    struct jl_token        token; /* the next one */
    uint32_t               end;   /* of the last one that was taken */
    struct jl_arena       *arena;
    struct jl_diagnostics *diagnostics;
    struct jl_unit        *unit;
    struct jl_open        *open;
    uint32_t               missing_at; /* the token at which a missing end was reported */
    uint32_t               tallest;    /* the height of the tallest expression so far */
    unsigned               depth;
    unsigned               brackets; /* that are open: ( [ and the braces of structs */
    unsigned               lost;     /* brackets that were open at the error */
    bool                   quiet;    /* newlines mean nothing here */
    bool                   is_head;  /* of a statement: a brace begins its block */
    bool                   panicking;
    bool                   gave_up;
    bool                   extra_end; /* was reported */
};

/* parse.c: tokens and errors. */
void            jl_advance(struct jl_parser *parser);
void            jl_skip_newlines(struct jl_parser *parser);
struct jl_token jl_peek(const struct jl_parser *parser); /* the token after the next one */
bool            jl_at_sign(const struct jl_parser *parser, uint32_t sign);
bool            jl_at_word(const struct jl_parser *parser, enum jl_keyword keyword);
bool            jl_at_name(const struct jl_parser *parser, const char *name);
bool            jl_take_sign(struct jl_parser *parser, uint32_t sign);
bool            jl_take_word(struct jl_parser *parser, enum jl_keyword keyword);
/* Reports without panic: the parser goes on as if the right thing stood there. */
__attribute__((format(printf, 4, 5))) struct jl_diagnostic *jl_complain(struct jl_parser *parser,
                                                                        const char       *code,
                                                                        struct jl_span    at,
                                                                        const char *format, ...);
/* Reports "`what` is missing before `token`" and panics. */
void           jl_missing(struct jl_parser *parser, const char *what);
void           jl_panic_here(struct jl_parser *parser); /* after a complaint */
bool           jl_expect_sign(struct jl_parser *parser, uint32_t sign, const char *shown);
struct jl_name jl_expect_name(struct jl_parser *parser, const char *what);
/* Brackets: newlines mean nothing until the closing one. */
struct jl_brackets {
    bool quiet, is_head;
};
struct jl_brackets jl_open_brackets(struct jl_parser *parser);
bool jl_close_brackets(struct jl_parser *parser, struct jl_brackets before, uint32_t sign,
                       const char *shown);
/* One level deeper; false: too deep, and the parser has given up. */
bool jl_enter(struct jl_parser *parser);
void jl_leave(struct jl_parser *parser);
void jl_give_up(struct jl_parser *parser, const char *text);
/* To the end of a statement that began on a line with this indent. */
void jl_synchronise(struct jl_parser *parser, uint32_t indent);
/* Passes over a construct that is not in the subset, with its blocks. */
void jl_skip_construct(struct jl_parser *parser, uint32_t indent);

/* parse_block.c */
struct jl_block *jl_parse_block(struct jl_parser *parser, const char *after, bool is_then);
/* Of a declaration: opens a block, and says whether there is another item in it. */
bool jl_open_block(struct jl_parser *parser, struct jl_open *open, const char *after);
bool jl_block_goes_on(struct jl_parser *parser, struct jl_open *open);
void jl_report_open(struct jl_parser *parser, const struct jl_open *open);
bool jl_at_block(const struct jl_parser *parser);
bool jl_at_else(const struct jl_parser *parser); /* also at `elif` */
bool jl_at_declaration(const struct jl_parser *parser);
bool jl_looks_like_struct(const struct jl_parser *parser);
void jl_parse_body(struct jl_parser *parser, struct jl_open *open, struct jl_block *block);

/* parse_decl.c */
void                jl_parse_top(struct jl_parser *parser);
void                jl_parse_declaration(struct jl_parser *parser); /* at one */
struct jl_written  *jl_parse_type(struct jl_parser *parser);
struct jl_function *jl_new_function(struct jl_parser *parser, enum jl_function_kind kind);

/* parse_stmt.c */
struct jl_statement *jl_parse_statement(struct jl_parser *parser);
struct jl_statement *jl_parse_variable(struct jl_parser *parser);

/* parse_expr.c, parse_primary.c */
struct jl_expr *jl_parse_expr(struct jl_parser *parser);
struct jl_expr *jl_parse_head(struct jl_parser *parser); /* a block follows */
struct jl_expr *jl_parse_postfix(struct jl_parser *parser);
struct jl_expr *jl_parse_primary(struct jl_parser *parser);
void            jl_parse_arguments(struct jl_parser *parser, struct jl_expr *call, uint32_t sign,
                                   const char *shown);
struct jl_expr *jl_new_expr(struct jl_parser *parser, enum jl_expr_kind kind, struct jl_span at);
/* Sets the end of its place and its height. */
struct jl_expr     *jl_done_expr(struct jl_parser *parser, struct jl_expr *expr);
struct jl_function *jl_block_function(struct jl_parser *parser, enum jl_function_kind kind);

/* parse_foreign.c: words and signs that this subset has not. */
bool jl_parse_foreign(struct jl_parser *parser); /* at the begin of a statement */
bool jl_parse_foreign_value(struct jl_parser *parser);

#endif
