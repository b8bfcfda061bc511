/* SPDX-License-Identifier: MIT */
/* Shapes of types, for the interpreter. Emitted C writes its own. */
#ifndef JANUSRT_LANG_HOST_SHAPE_H
#define JANUSRT_LANG_HOST_SHAPE_H

#include "host/support.h"
#include "type/type.h"

/* The shape of a value that crosses tasks; NULL: its bytes are enough. It lives in the table's
 * arena. The type contains itself nowhere. */
const struct jl_shape *jl_shape_of(struct jl_types *types, jl_type type);

#endif
