/* SPDX-License-Identifier: MIT */
/* What every program may call: a host table. */
#ifndef JANUSRT_LANG_HOST_PRELUDE_H
#define JANUSRT_LANG_HOST_PRELUDE_H

#include "type/host_table.h"

#include <janusrt/budget.h>

extern const struct jl_host_row jl_prelude_rows[];
extern const uint32_t           jl_prelude_row_count;

/* As in host/support.h, for code that has the tree of a program as well. */
void jl_set_arguments(int count, char **words);
/* The pool of programs that this thread runs from now on. NULL: that of the environment. */
void jl_set_budget(const janus_budget *budget);

#endif
