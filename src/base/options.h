/* SPDX-License-Identifier: MIT */
/* Option structs begin with their size, so that they can grow. */
#ifndef JRT_BASE_OPTIONS_H
#define JRT_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether a caller's struct_bytes can be: at least itself, no larger than what we know, and not
 * ending inside a field (all fields are, or are padded to, words). */
static inline bool jrt_options_sane(size_t struct_bytes, size_t known_bytes)
{
    return struct_bytes >= sizeof(size_t) && struct_bytes <= known_bytes &&
           struct_bytes % sizeof(size_t) == 0;
}

#endif
