/* SPDX-License-Identifier: MIT */
/* The guard ladder chooses the guard of new stacks, and steps down when a rung is used up. */
#ifndef JRT_STACK_GUARD_H
#define JRT_STACK_GUARD_H

#include "plat/memory.h"

#include <janusrt/stack.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One pool's place on the ladder. Guarded by the depot's lock. */
struct jrt_ladder {
    janus_guard rung;        /* the rung to try first */
    size_t      process_max; /* how many all pools together may have on it */
    bool        fixed;       /* the user named it: no step down */
    size_t      guarded;     /* stacks on the MPROTECT rung now */
    size_t      guarded_max; /* the limit for `guarded` */
};

/* Finds the first rung. UNAVAILABLE: this machine lacks the rung that `wanted` names. */
janus_status jrt_ladder_open(struct jrt_ladder *ladder, janus_guard wanted, size_t guarded_max);

/*
 * Guards the first ranges of an array, all on one rung. Returns how many, and stores the rung.
 * Zero: nothing could be guarded. *out_status is then FULL if a mapping budget is spent, otherwise
 * NO_MEMORY.
 */
size_t jrt_ladder_guard(struct jrt_ladder *ladder, const struct iovec *ranges, size_t count,
                        janus_guard *out_rung, janus_status *out_status);

/* The rung that jrt_ladder_guard would use now. */
janus_guard jrt_ladder_next(const struct jrt_ladder *ladder);

/* Records that `count` guards of a rung were unmapped. */
void jrt_ladder_forget(struct jrt_ladder *ladder, janus_guard rung, size_t count);

#endif
