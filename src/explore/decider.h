/* SPDX-License-Identifier: MIT */
/* Who decides, by a plan; the essay is in decider.c. */
#ifndef JRT_EXPLORE_DECIDER_H
#define JRT_EXPLORE_DECIDER_H

#include "base/rng.h"
#include "explore/log.h"
#include "sim/world.h"

enum { JRT_DEPTH_MAX = 64, JRT_DECIDER_PARTS = 256 };

struct jrt_decider {
    struct jrt_strategy    strategy; /* first */
    const struct jrt_plan *plan;     /* borrowed, as is the next */
    struct jrt_log        *log;
    bool                   keeps; /* writes down what was decided, */
    bool                   tells; /* and who it was about */
    struct jrt_rng         random;
    uint32_t               numbers[JRT_DECIDER_PARTS];    /* choices that each thread came to */
    uint32_t               last;                          /* who was chosen last, */
    uint32_t               streak;                        /* so many times in a row */
    uint64_t               changes[JRT_DEPTH_MAX];        /* PCT: when, */
    int64_t                priorities[JRT_DECIDER_PARTS]; /* 0: not seen yet */
    int64_t                lowest;
};

/* Makes one that follows `plan`; its faults are still to be set. */
void jrt_decider_init(struct jrt_decider *decider, const struct jrt_plan *plan,
                      struct jrt_log *log);

#endif
