/* SPDX-License-Identifier: MIT */
/* The printer's parts. */
#ifndef JANUSRT_LANG_PRINT_H
#define JANUSRT_LANG_PRINT_H

#include "syntax/lex.h"
#include "syntax/syntax.h"

struct jl_printer {
    const struct jl_unit   *unit;
    const struct jl_source *source;
    FILE                   *out;
    unsigned                indent;
    uint32_t                last;       /* the end of what was printed last, in the source */
    uint32_t                comment_at; /* where the next comment is looked for */
    struct jl_span          comment;    /* the next one */
    bool                    has_comment;
    bool                    is_first; /* of its block: no empty line before it */
    bool                    is_head;  /* a struct or a block needs parentheses */
};

/* print.c */
void jl_put(struct jl_printer *printer, const char *text);
void jl_put_span(struct jl_printer *printer, struct jl_span at);
/* A new line at the present indent, after the comments that stand before `begin`. */
void jl_begin_line(struct jl_printer *printer, uint32_t begin);
/* The line's end, with the comments that belong to it. */
void jl_end_line(struct jl_printer *printer, uint32_t end);
void jl_put_comments(struct jl_printer *printer, uint32_t before);
bool jl_has_line_between(const struct jl_printer *printer, uint32_t begin, uint32_t end);
void jl_put_statement(struct jl_printer *printer, const struct jl_statement *statement);
/* ` do ... end`, or in braces; `before_end` is where comments of the block end. */
void jl_put_block(struct jl_printer *printer, const struct jl_block *block);

/* print_expr.c */
void jl_put_expr(struct jl_printer *printer, const struct jl_expr *expr);
void jl_put_head(struct jl_printer *printer, const struct jl_expr *expr);
void jl_put_type(struct jl_printer *printer, const struct jl_written *written);
void jl_put_result(struct jl_printer *printer, const struct jl_written *written);

#endif
