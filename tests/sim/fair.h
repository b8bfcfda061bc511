/* SPDX-License-Identifier: MIT */
/*
 * A program in which a bit of everything happens at the same time: ten tasks with channels, select,
 * sleeps, a cancel, budgets that run out and are filled again, blocking calls, a mutex and a
 * condition, a child with a thread of its own, and nurseries deep inside each other. What its tasks
 * see, and when, is folded into one number.
 */
#ifndef JANUSRT_TESTS_SIM_FAIR_H
#define JANUSRT_TESTS_SIM_FAIR_H

#include "../task/town.h"

struct fair {
    uint64_t        seen; /* a number for all that was noted, in order */
    uint64_t        events;
    janus_channel   meet, box; /* without room, and with room for two */
    janus_mutex     lock;
    janus_condition changed;
    int             stock;
};

/* Runs it once; the number. */
uint64_t fair_run(uint32_t workers, uint64_t seed);

/* The same of nurseries inside nurseries alone, whose tasks run on their owners' stacks. */
uint64_t fair_dive(uint32_t workers, uint64_t seed);

#endif
