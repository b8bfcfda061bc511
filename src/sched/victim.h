/* SPDX-License-Identifier: MIT */
/*
 * Chooses the victim of a thief. A worker is never its own victim: it draws among the others, so
 * that no attempt of a cycle is wasted.
 */
#ifndef JRT_SCHED_VICTIM_H
#define JRT_SCHED_VICTIM_H

#include "base/rng.h"

#include <stdint.h>

enum jrt_victim_strategy {
    JRT_VICTIM_RANDOM,       /* the default: self + 1 + jrt_rng_below(count - 1), mod count */
    JRT_VICTIM_ROUND_ROBIN,  /* the workers after this one, in turn */
    JRT_VICTIM_LEAST_LOADED, /* the longest queue first; after a failed attempt the next */
    JRT_VICTIM_STRATEGIES
};

/* One for each worker, which alone uses it. */
struct jrt_victims {
    enum jrt_victim_strategy strategy;
    unsigned                 turn; /* ROUND_ROBIN: the next victim is this many workers after us */
    struct jrt_rng           rng;  /* RANDOM */
};

void jrt_victims_init(struct jrt_victims *v, enum jrt_victim_strategy strategy, uint64_t seed);

/*
 * Returns the next victim of worker `self` among `count` workers, at least two. `attempt` counts
 * from 0 in each cycle of stealing. `loads` has the length of every worker's queue and may be NULL
 * except for LEAST_LOADED. Of equally long queues, the nearest after `self` comes first.
 */
unsigned jrt_victim_next(struct jrt_victims *v, unsigned self, unsigned count, unsigned attempt,
                         const uint32_t *loads);

#endif
