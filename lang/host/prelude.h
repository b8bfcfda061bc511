/* SPDX-License-Identifier: MIT */
/* What every program may call: a host table. */
#ifndef JANUSRT_LANG_HOST_PRELUDE_H
#define JANUSRT_LANG_HOST_PRELUDE_H

#include "type/host_table.h"

extern const struct jl_host_row jl_prelude_rows[];
extern const uint32_t           jl_prelude_row_count;

/* What args() gives: the words behind the program's name. They stay the caller's. */
void jl_set_arguments(int count, char **words);
/* What input_data is: the bytes for programs that work on one input. They stay the caller's. */
void jl_set_input(const void *bytes, size_t count);

#endif
