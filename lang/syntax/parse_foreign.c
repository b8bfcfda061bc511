/* SPDX-License-Identifier: MIT */
/* Words of Janus that this subset has not, words of other languages, and pseudo-code of the
 * documents: each gets a sentence that says what to write. */
#include "syntax/parse.h"

#include <string.h>

enum reading { SKIP, AS_REST, AS_LET, AS_FUNC, AS_NURSERY, AS_SPAWN };

struct foreign {
    const char  *word, *help;
    enum reading reading;
};

static const char host_help[] =
    "a program is one file; its host offers functions without an import";
static const char if_help[] = "write `if a == 1 do ... else if a == 2 do ... end`";
static const char type_help[] = "declare `struct Name do field: T end`";
static const char iface_help[] = "declare an `interface`, or write functions";
static const char func_help[] = "a function begins with `func`";

static const struct foreign foreign[] = {
    {"match", if_help, SKIP},
    {"switch", if_help, SKIP},
    {"when", "write `if`", SKIP},
    {"unless", "write `if not`", SKIP},
    {"import", host_help, SKIP},
    {"use", host_help, SKIP},
    {"using", host_help, SKIP},
    {"module", host_help, SKIP},
    {"package", host_help, SKIP},
    {"extern", host_help, SKIP},
    {"zig", host_help, SKIP},
    {"graft", host_help, SKIP},
    {"enum", "write constants with `let`, or a `struct`", SKIP},
    {"union", type_help, SKIP},
    {"type", type_help, SKIP},
    {"trait", iface_help, SKIP},
    {"impl", iface_help, SKIP},
    {"select", "give each channel a task that receives from it", SKIP},
    {"test", "write a function, and call it from `main`", SKIP},
    {"const", "write `let`", AS_LET},
    {"pub", "leave it out: a program is one file", AS_REST},
    {"shared", "share by a channel or an actor", AS_REST},
    {"ghost", "leave it out", AS_REST},
    {"function", func_help, AS_FUNC},
    {"fun", func_help, AS_FUNC},
    {"def", func_help, AS_FUNC},
    {"fn", func_help, AS_FUNC},
    {"go", "write `spawn f(x)` inside of `nursery do ... end`", AS_SPAWN},
    {"outer_nursery", "write `nursery do ... end` or `nursery { ... }`", AS_NURSERY},
    {"inner_nursery", "write `nursery do ... end` or `nursery { ... }`", AS_NURSERY},
};

static const struct foreign *find(const struct jl_token *token)
{
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++)
        if (!strcmp(foreign[i].word, token->name)) return &foreign[i];
    return NULL;
}

/* As a word of its own, and not as the name of a variable or a function. */
static bool is_used(const struct jl_token *next, const struct foreign *word)
{
    if (word->reading == AS_NURSERY)
        return (next->kind == JL_T_SIGN && next->sign == '{') || next->keyword == JL_K_do;
    if (next->kind == JL_T_SIGN) return next->sign == '{' && word->reading == SKIP;
    if (next->kind == JL_T_WORD)
        return next->keyword != JL_K_and && next->keyword != JL_K_or && next->keyword != JL_K_in;
    return next->kind == JL_T_STRING || next->kind == JL_T_INT;
}

static const char *sentence_of(const struct foreign *word)
{
    switch (word->reading) {
    case AS_NURSERY: return "`%s` stands in the documents for `nursery`; it is not a word of Janus";
    case AS_FUNC: return "`%s` does not begin a function";
    case AS_SPAWN: return "`%s` starts no task in Janus: a task belongs to a nursery";
    default: return "`%s` is not in this subset of Janus";
    }
}

bool jl_parse_foreign_value(struct jl_parser *parser)
{
    const struct foreign *word = find(&parser->token);
    if (!word || word->reading != SKIP) return false;
    struct jl_token next = jl_peek(parser);
    if (next.kind != JL_T_WORD || next.keyword) return false;
    uint32_t indent = parser->token.indent;
    jl_complain(parser, "S1010", parser->token.at, "`%s` is not in this subset of Janus",
                word->word)
        ->help = word->help;
    jl_advance(parser);
    jl_skip_construct(parser, indent);
    return true;
}

bool jl_parse_foreign(struct jl_parser *parser)
{
    if (parser->token.kind != JL_T_WORD) return false;
    const struct foreign *word = find(&parser->token);
    if (!word) return false;
    struct jl_token next = jl_peek(parser);
    if (!is_used(&next, word)) return false;
    uint32_t    indent = parser->token.indent;
    bool        is_pseudo = word->reading >= AS_FUNC;
    const char *text = jl_format(parser->arena, sentence_of(word), word->word);
    jl_complain(parser, is_pseudo ? "S1011" : "S1010", parser->token.at, "%s", text)->help =
        word->help;
    switch (word->reading) {
    case SKIP:
        jl_advance(parser);
        jl_skip_construct(parser, indent);
        break;
    case AS_REST: jl_advance(parser); break;
    case AS_LET: parser->token.keyword = JL_K_let; break;
    case AS_FUNC: parser->token.keyword = JL_K_func; break;
    case AS_NURSERY: parser->token.keyword = JL_K_nursery; break;
    case AS_SPAWN: parser->token.keyword = JL_K_spawn; break;
    }
    return word->reading == SKIP;
}
