/* SPDX-License-Identifier: MIT */
/* From bytes to tokens. A lexer is a small value: a copy of it looks ahead. */
#ifndef JANUSRT_LANG_LEX_H
#define JANUSRT_LANG_LEX_H

#include "text/text.h"

/* Words with a meaning of their own: X(name). After a dot they are names like all others. */
#define JL_KEYWORDS(X)                                                                             \
    X(actor) X(and) X(async) X(await) X(break) X(continue) X(defer) X(do) X(else) X(end)           \
    X(error) X(false) X(fn) X(for) X(func) X(if) X(in) X(interface) X(let) X(loop) X(not)          \
    X(null) X(nursery) X(or) X(return) X(spawn) X(struct) X(true) X(try) X(var) X(while) X(yield)

enum jl_keyword {
    JL_K_none,
#define JL_KEYWORD(name) JL_K_##name,
    JL_KEYWORDS(JL_KEYWORD)
#undef JL_KEYWORD
};

enum jl_token_kind {
    JL_T_END,     /* of the source */
    JL_T_NEWLINE, /* or `;` */
    JL_T_WORD,    /* a name or a keyword */
    JL_T_INT,
    JL_T_FLOAT,
    JL_T_STRING,
    JL_T_SIGN, /* `sign`: up to three characters */
    JL_T_BAD,  /* was reported */
};

/* A sign as a number: its characters, the last in the low byte. */
#define JL_SIGN1(a) ((uint32_t)(a))
#define JL_SIGN2(a, b) ((uint32_t)(a) << 8 | (uint32_t)(b))
#define JL_SIGN3(a, b, c) ((uint32_t)(a) << 16 | JL_SIGN2(b, c))

struct jl_token {
    enum jl_token_kind kind;
    struct jl_span     at;
    enum jl_keyword    keyword;
    uint32_t           sign;
    uint32_t           indent;   /* of the line that it is on: the blanks before its first token */
    bool               is_first; /* of its line */
    const char        *name;     /* WORD, interned */
    uint64_t           value;    /* INT */
    double             number;   /* FLOAT */
    const char        *text;     /* STRING, after escapes */
    uint32_t           length;
};

struct jl_lexer {
    const struct jl_source *source;
    struct jl_arena        *arena;
    struct jl_names        *names;
    struct jl_diagnostics  *diagnostics;
    uint32_t                at;
    uint32_t                indent;
    bool                    fresh; /* no token of this line was read */
};

void jl_lexer_init(struct jl_lexer *lexer, const struct jl_source *source, struct jl_arena *arena,
                   struct jl_names *names, struct jl_diagnostics *diagnostics);
struct jl_token jl_lex(struct jl_lexer *lexer);

/* The next comment that begins at or after *at: its place without the line end. False: none. The
 * printer keeps comments with it. */
bool jl_next_comment(const struct jl_source *source, uint32_t *at, struct jl_span *out);

#endif
