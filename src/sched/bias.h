/* SPDX-License-Identifier: MIT */
/* Locks that belong to a worker: where a worker says which of its own locks it is inside of. The
 * protocol is in chan/lock.h. */
#ifndef JRT_SCHED_BIAS_H
#define JRT_SCHED_BIAS_H

#include "base/atomic.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * [bias-slot]  A lock outlives the worker that owns it, and its owner is looked at by others. So a
 *   slot is never unmapped. It belongs to one worker at a time, and only that worker's thread
 *   writes `inside`. A later worker in the same slot inherits the locks, which is as good.
 */
struct jrt_bias {
    /* Stands for the lock that the worker holds as its owner; 0: none. */
    _Alignas(64) _Atomic(uint32_t) inside;
    bool taken;
};

/* The slot of workers that own no locks. No lock belongs to it. */
extern struct jrt_bias jrt_bias_none;

/* A slot for a worker. If all are taken, jrt_bias_none. */
struct jrt_bias *jrt_bias_take(void);

/* The worker has ended. NULL and jrt_bias_none: nothing happens. */
void jrt_bias_give(struct jrt_bias *bias);

#endif
