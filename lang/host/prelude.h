/* SPDX-License-Identifier: MIT */
/* What every program may call: a host table. */
#ifndef JANUSRT_LANG_HOST_PRELUDE_H
#define JANUSRT_LANG_HOST_PRELUDE_H

#include "type/host_table.h"

extern const struct jl_host_row jl_prelude_rows[];
extern const uint32_t           jl_prelude_row_count;

/* As in host/support.h, for code that has the tree of a program as well. */
void jl_set_arguments(int count, char **words);

#endif
