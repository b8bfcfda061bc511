/* SPDX-License-Identifier: MIT */
/* Public calls, for callers inside the library that hold a lock. */
#ifndef JRT_RT_INSIDE_H
#define JRT_RT_INSIDE_H

#include <janusrt/waitpoint.h>
#include <stddef.h>

/* As janus_discard, for a block that is not NULL. In memory.c. */
void jrt_block_discard(void *block);

/* A detached block goes into a mailbox, and out again, [block-post]. The first returns its cost. In
 * memory.c. */
size_t jrt_block_post(void *block);
void   jrt_block_unpost(void *block);

/* As janus_waitpoint_wake. In point.c. */
void jrt_waitpoint_wake(janus_waitpoint *point);

#endif
