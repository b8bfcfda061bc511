/* SPDX-License-Identifier: MIT */
/*
 * Victims are counted from the thief: 0 is the worker after it, count - 2 the worker before it.
 * This leaves out the thief itself, and thieves that move in step have different victims.
 */
#include "sched/victim.h"

#include <stdbool.h>
#include <stddef.h>

void jrt_victims_init(struct jrt_victims *v, enum jrt_victim_strategy strategy, uint64_t seed)
{
    jrt_demand(strategy < JRT_VICTIM_STRATEGIES, "unknown strategy for choosing a victim");
    v->strategy = strategy;
    v->turn = 0;
    jrt_rng_seed(&v->rng, seed);
}

static unsigned worker_after(unsigned self, unsigned count, unsigned distance)
{
    return (unsigned)(((uint64_t)self + 1 + distance) % count);
}

/* The worker at place `rank` among all others, ordered by falling load, then by rising distance. */
static unsigned loaded_distance(unsigned self, unsigned count, unsigned rank, const uint32_t *loads)
{
    unsigned others = count - 1;
    unsigned chosen = 0;
    uint32_t chosen_load = 0;
    for (unsigned i = 0; i <= rank; i++) {
        unsigned best = others;
        uint32_t best_load = 0;
        for (unsigned distance = 0; distance < others; distance++) {
            uint32_t load = loads[worker_after(self, count, distance)];
            bool     before = load < chosen_load || (load == chosen_load && distance > chosen);
            if (i > 0 && !before) continue; /* its place came earlier */
            if (best != others && load <= best_load) continue;
            best = distance;
            best_load = load;
        }
        chosen = best;
        chosen_load = best_load;
    }
    return chosen;
}

unsigned jrt_victim_next(struct jrt_victims *v, unsigned self, unsigned count, unsigned attempt,
                         const uint32_t *loads)
{
    jrt_demand(count >= 2 && self < count, "stealing needs another worker");
    unsigned others = count - 1;
    unsigned distance = 0;
    switch (v->strategy) {
    case JRT_VICTIM_RANDOM: distance = jrt_rng_below(&v->rng, others); break;
    case JRT_VICTIM_ROUND_ROBIN:
        distance = v->turn % others;
        v->turn = distance + 1;
        break;
    case JRT_VICTIM_LEAST_LOADED:
        jrt_demand(loads != NULL, "LEAST_LOADED needs the lengths of the queues");
        distance = loaded_distance(self, count, attempt % others, loads);
        break;
    case JRT_VICTIM_STRATEGIES: break;
    }
    return worker_after(self, count, distance);
}
