/* SPDX-License-Identifier: MIT */
/*
 * A program in which a bit of everything happens at once: ten tasks with channels, select, sleeps,
 * a cancel and blocking calls. Budgets run out and are recharged. It has a mutex and a condition, a
 * child with a thread of its own, and deeply nested nurseries. One number covers what its tasks
 * see, when they see it, and what its trace says.
 */
#ifndef JANUSRT_TESTS_SIM_FAIR_H
#define JANUSRT_TESTS_SIM_FAIR_H

#include "../task/rig.h"

struct fair {
    uint64_t        seen; /* one number for everything noted, in order */
    uint64_t        events;
    janus_channel   meet, box; /* without room, and with room for two */
    janus_mutex     lock;
    janus_condition changed;
    int             stock;
};

/* Runs it once and returns the number. */
uint64_t fair_run(uint32_t workers, uint64_t seed);

/* Runs only nested nurseries, whose tasks run on their owners' stacks. Returns the number. */
uint64_t fair_dive(uint32_t workers, uint64_t seed);

#endif
