/* SPDX-License-Identifier: MIT */
/* Decides choices by a plan. The essay is in decider.c. */
#ifndef JRT_EXPLORE_DECIDER_H
#define JRT_EXPLORE_DECIDER_H

#include "base/rng.h"
#include "explore/log.h"
#include "sim/world.h"

enum { JRT_DEPTH_MAX = 64, JRT_DECIDER_PARTS = 256 };

struct jrt_decider {
    struct jrt_strategy    strategy; /* first */
    const struct jrt_plan *plan;     /* borrowed, and so is the next */
    struct jrt_log        *log;
    bool                   keeps; /* logs what was decided, */
    bool                   tells; /* and which parts it concerned */
    struct jrt_rng         random;
    uint32_t               numbers[JRT_DECIDER_PARTS];    /* choices that each part came to */
    uint32_t               last;                          /* the last chosen part, */
    uint32_t               streak;                        /* and how many times in a row */
    uint64_t               changes[JRT_DEPTH_MAX];        /* PCT: when priorities change, */
    int64_t                priorities[JRT_DECIDER_PARTS]; /* 0: not seen yet */
    int64_t                lowest;
};

/* Makes a decider that follows `plan`. The caller sets its faults. */
void jrt_decider_init(struct jrt_decider *decider, const struct jrt_plan *plan,
                      struct jrt_log *log);

#endif
