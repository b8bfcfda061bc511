/* SPDX-License-Identifier: MIT */
/* Names, types, effects, profiles and capabilities. */
#ifndef JANUSRT_LANG_MEANING_H
#define JANUSRT_LANG_MEANING_H

#include "syntax/ast.h"
#include "type/host_table.h"

struct jl_check_options {
    const struct jl_host_table *host;
    bool                        override_profile; /* `profile` counts, not the pragma's */
    enum jl_profile             profile;
};

/* Checks a unit and fills its "Checked" fields. False: there were errors. A unit that has errors
 * must not be lowered. */
bool jl_check(struct jl_unit *unit, const struct jl_check_options *options,
              struct jl_diagnostics *diagnostics);

/* One line for each function: `main: spawn nursery await io fails`. */
void jl_print_effects(const struct jl_unit *unit, FILE *out);

#endif
