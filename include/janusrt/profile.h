/* SPDX-License-Identifier: MIT */
/* The four profiles of the Janus language, and how much stack each reserves for a task. */
#ifndef JANUSRT_PROFILE_H
#define JANUSRT_PROFILE_H

#include <janusrt/export.h>
#include <stddef.h>

typedef enum janus_profile {
    JANUS_PROFILE_DEFAULT = 0, /* SERVICE */
    JANUS_PROFILE_CORE,        /* compute only */
    JANUS_PROFILE_SERVICE,     /* servers and tools */
    JANUS_PROFILE_CLUSTER,     /* actors and supervisors */
    JANUS_PROFILE_SOVEREIGN,   /* every right explicit; scrubs stacks between tasks */
} janus_profile;

/*
 * Address space reserved for one stack. Memory is committed page by page as it is touched, so a
 * task that uses 3 KiB of its 256 KiB costs one page.
 */
#define JANUS_STACK_BYTES_CORE ((size_t)64 * 1024)
#define JANUS_STACK_BYTES_SERVICE ((size_t)256 * 1024)
#define JANUS_STACK_BYTES_CLUSTER ((size_t)256 * 1024)
#define JANUS_STACK_BYTES_SOVEREIGN ((size_t)512 * 1024)

/* The smallest and the largest stack. The library refuses other requests with JANUS_INVALID. */
#define JANUS_STACK_BYTES_MIN ((size_t)8 * 1024)
#define JANUS_STACK_BYTES_MAX ((size_t)1024 * 1024 * 1024)

JANUS_BEGIN_DECLS

/*
 * The stack that a profile reserves for a task that asks for no size.
 *
 * Context: anyone, any thread.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a table look-up.
 * Errors:  0 for a number that is no profile.
 */
JANUS_API size_t janus_profile_stack_bytes(janus_profile profile);

/*
 * The profile as the language spells it: ":service".
 *
 * Context: anyone, any thread.
 * Yields:  never.
 * Owns:    the text is the library's, constant for ever.
 * Cost:    a table look-up.
 * Errors:  ":?" for a number that is no profile.
 */
JANUS_API const char *janus_profile_name(janus_profile profile);

JANUS_END_DECLS
#endif
