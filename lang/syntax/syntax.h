/* SPDX-License-Identifier: MIT */
/* From text to tree and back. */
#ifndef JANUSRT_LANG_SYNTAX_H
#define JANUSRT_LANG_SYNTAX_H

#include "syntax/ast.h"

/*
 * Parses a source. It always returns a unit; what could not be understood is a BAD node and has a
 * diagnostic (codes S1xxx). `names` interns every word. Blocks, brackets and types
 * nest at most JL_DEPTH_MAX deep, and an expression is at most JL_HEIGHT_MAX high: recursion over
 * a tree needs no more than JL_HEIGHT_MAX + 2 * JL_DEPTH_MAX frames of each kind.
 */
enum { JL_DEPTH_MAX = 200, JL_HEIGHT_MAX = 400 };
struct jl_unit *jl_parse(const struct jl_source *source, struct jl_arena *arena,
                         struct jl_names *names, struct jl_diagnostics *diagnostics);

/* Prints the tree as source, in the one canonical form, with its comments. Parsing the result
 * gives an equal tree, and printing that gives the same text. */
void jl_print_unit(const struct jl_unit *unit, FILE *out);

#endif
