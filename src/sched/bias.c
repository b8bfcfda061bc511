/* SPDX-License-Identifier: MIT */
/*
 * Slots for workers, [bias-slot].
 *
 * Locks: slots_lock.
 */
#include "sched/bias.h"

#include "base/assert.h"
#include "plat/seam.h"

#include <stddef.h>

enum { SLOTS = 256 };

struct jrt_bias jrt_bias_none;

static struct jrt_bias slots[SLOTS];
static pthread_mutex_t slots_lock = PTHREAD_MUTEX_INITIALIZER;

struct jrt_bias *jrt_bias_take(void)
{
    struct jrt_bias *bias = &jrt_bias_none;
    jrt_lock(&slots_lock);
    for (size_t i = 0; i < SLOTS && bias == &jrt_bias_none; i++) {
        if (!slots[i].taken) bias = &slots[i];
    }
    bias->taken = true;
    jrt_unlock(&slots_lock);
    return bias;
}

void jrt_bias_give(struct jrt_bias *bias)
{
    if (bias == NULL || bias == &jrt_bias_none) return;
    jrt_lock(&slots_lock);
    jrt_invariant("bias-slot", jrt_load_relaxed(&bias->inside) == 0); /* relaxed: it has ended. */
    bias->taken = false;
    jrt_unlock(&slots_lock);
}
