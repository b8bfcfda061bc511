/* SPDX-License-Identifier: MIT */
/*
 * Structs that begin with their size.
 *
 * Callers fill options, the library fills infos and results. Each such struct begins with
 * struct_bytes, so that it can grow: a program that was built with an older header has a shorter
 * struct. All calls accept the same sizes, and refuse the others with INVALID.
 */
#ifndef JRT_BASE_OPTIONS_H
#define JRT_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Whether some version of the struct had this size. It holds at least the field itself, has no more
 * bytes than this library knows, and is made of whole words, as all fields are. */
static inline bool jrt_struct_sane(size_t struct_bytes, size_t known_bytes)
{
    return struct_bytes >= sizeof(size_t) && struct_bytes <= known_bytes &&
           struct_bytes % sizeof(size_t) == 0;
}

/* Copies *known to the caller's *out, as many bytes as the caller's struct_bytes says. The call has
 * accepted that number with jrt_struct_sane; it stays as it is. */
static inline void jrt_struct_give(void *out, void *known)
{
    size_t bytes;
    memcpy(&bytes, out, sizeof bytes);
    memcpy(known, &bytes, sizeof bytes);
    memcpy(out, known, bytes);
}

#endif
