/* SPDX-License-Identifier: MIT */
/* C17 from a verified module, level Mid. */
#ifndef JANUSRT_LANG_EMIT_H
#define JANUSRT_LANG_EMIT_H

#include "qtjir/qtjir.h"

/*
 * Writes one C file: it includes <janusrt/lang_support.h> (host/support.h as installed), compiles
 * without a warning under gcc and clang with -Wall -Wextra, and has #line directives that lead to
 * the Janus source. Ops are paid by janus_op. A function of the host table without `symbol` makes
 * it fail: false, and *why names it.
 */
bool jl_emit_c(struct qt_module *module, FILE *out, const char **why);

#endif
