/* SPDX-License-Identifier: MIT */
/* Option structs begin with their size, so that they can grow. */
#ifndef JRT_BASE_OPTIONS_H
#define JRT_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a caller's struct_bytes is possible. It must cover at least itself and at most the fields
 * that we know, and must not end inside a field. All fields are words or padded to words. */
static inline bool jrt_options_sane(size_t struct_bytes, size_t known_bytes)
{
    return struct_bytes >= sizeof(size_t) && struct_bytes <= known_bytes &&
           struct_bytes % sizeof(size_t) == 0;
}

#endif
