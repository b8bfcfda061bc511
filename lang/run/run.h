/* SPDX-License-Identifier: MIT */
/* The interpreter. */
#ifndef JANUSRT_LANG_RUN_H
#define JANUSRT_LANG_RUN_H

#include "qtjir/qtjir.h"

/* Makes register code of a verified module (Mid or Low). The result lives in the module's arena.
 * False: *why names what it cannot run. */
struct jl_code;
bool jl_code_make(struct qt_module *module, struct jl_code **out, const char **why);

/* For tests: code without joined variables and instructions, which must do the same. */
extern bool jl_run_plain;

/* Runs main; returns the exit status of the process (host/support.h). */
int jl_code_run(struct jl_code *code);

#endif
