/* SPDX-License-Identifier: MIT */
/* Which children can simply be called: in their owner's end, and by a loop. */
#ifndef JRT_NURSERY_PLAIN_H
#define JRT_NURSERY_PLAIN_H

#include "task/nursery.h"

/* Whether a taken task can simply be called as a child of `n`. It must be of this nursery, have no
 * flag set, and not be cancelled. */
static inline bool jrt_child_is_ordinary(const struct jrt_nursery *n, const struct jrt_task *child)
{
    const janus_scheduler *scheduler = n->scheduler;
    if (jrt_unlikely(child->nursery != n || child->beginning != scheduler->initial)) return false;
    uint64_t epoch = jrt_load_acquire(&scheduler->cancels);  /* acquire: [cancel-epoch]. */
    return jrt_likely(jrt_load_relaxed(&n->clean) == epoch); /* relaxed: [cancel-epoch]. */
}

#endif
