/* SPDX-License-Identifier: MIT */
/* Counts of attempts that tests let fail: of threads, seats and alternate stacks. */
#ifndef JRT_BASE_REFUSE_H
#define JRT_BASE_REFUSE_H

#include "base/atomic.h"

#include <stdbool.h>
#include <stdint.h>

/* Lets the next `count` attempts fail. */
static inline void jrt_refuse(_Atomic(uint32_t) *left, uint32_t count)
{
    jrt_store_relaxed(left, count); /* relaxed: a count. Tests order the rest. */
}

/* Whether this attempt must fail. */
static inline bool jrt_refused(_Atomic(uint32_t) *left)
{
    uint32_t now = jrt_load_relaxed(left); /* relaxed: as above. */
    do {
        if (now == 0) return false;
    } while (!jrt_cas_relaxed(left, &now, now - 1)); /* relaxed: as above. */
    return true;
}

#endif
