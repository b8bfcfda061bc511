/* SPDX-License-Identifier: MIT */
/* How far up in the tree the latest cancels were. The essay is in reach.c. */
#ifndef JRT_TASK_REACH_H
#define JRT_TASK_REACH_H

#include "base/atomic.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { JRT_REACH_PLACES = 16 };

/* All zero: nothing was cancelled. */
struct jrt_reach {
    pthread_mutex_t   lock; /* for writers */
    _Atomic(uint64_t) places[JRT_REACH_PLACES];
};

/* Notes a cancel at this depth. `count` is a multiple of JRT_CANCELS_ONE. The caller has begun a
 * cancel and has not finished it, [cancel-sticky]. */
void jrt_reach_note(struct jrt_reach *reach, uint64_t count, uint32_t depth);

/* Whether every cancel after `count` was deeper than `depth`. False: perhaps not. */
bool jrt_reach_is_deeper(const struct jrt_reach *reach, uint64_t count, uint32_t depth);

#endif
