/* SPDX-License-Identifier: MIT */
/* A plan: a schedule as data, and as a text to replay. */
#ifndef JRT_EXPLORE_PLAN_H
#define JRT_EXPLORE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JRT_STEPS_MAX = 100000 }; /* the default */

enum jrt_plan_kind {
    JRT_PLAN_RANDOM,  /* all choices come from the seed */
    JRT_PLAN_PCT,     /* priorities and their changes come from the seed */
    JRT_PLAN_CHOICES, /* as listed; otherwise the usual answer */
    JRT_PLAN_SEARCH,  /* as the log of the schedule before says; has no text */
};

/*
 * An unusual choice. Its name is the part that comes to it, by the world's number, and how many
 * choices that part came to before. So the name stays the same when other choices are left out.
 * Choices of the network have names of their own, jrt_sim_choice. Between threads the value is the
 * number of the part that goes on.
 */
struct jrt_choice_made {
    uint32_t thread, number, value;
};

struct jrt_plan {
    enum jrt_plan_kind kind;
    uint32_t           worker_count;
    uint64_t           max_steps;                     /* 0: JRT_STEPS_MAX */
    bool               stale_allowed, panics_allowed; /* as the options */
    uint32_t           faults, faults_every;
    uint64_t           seed;   /* of choices and of workers; not 0 */
    uint32_t           depth;  /* PCT: one more than the changes, */
    uint64_t           length; /* and the number of choices they spread over */
    /* CHOICES, in order; borrowed from the maker of the plan. */
    const struct jrt_choice_made *made;
    size_t                        made_count;
};

/*
 * Returns the plan as text, which the caller frees. NULL: no memory. The parts stand between
 * slashes:
 *
 *     1                 this is version 1
 *     w4                four workers
 *     n500              at most this many steps, if not JRT_STEPS_MAX
 *     a                 handles may be used after their end
 *     f17.100           faults: which, and one in how many
 *     s37               random, from seed 37
 *     p37.3.812         priorities from seed 37, depth 3, 812 choices long
 *     s37/c2.40:1,3.7:2 choice 40 of thread 2 is 1, choice 7 of thread 3 is 2, all others are the
 *                       usual ones; workers choose their victims by seed 37
 */
char *jrt_plan_text(const struct jrt_plan *plan);

/* Sorts choices into a plan's order. */
void jrt_choices_sort(struct jrt_choice_made *made, size_t count);

/* The plan's entry for this choice of a part; NULL: the usual one. */
const struct jrt_choice_made *jrt_plan_find(const struct jrt_plan *plan, uint32_t thread,
                                            uint32_t number);

/* Reads a plan. *out_made holds plan->made, and the caller frees it. False: not a valid text, or no
 * memory. */
bool jrt_plan_read(const char *text, struct jrt_plan *out, struct jrt_choice_made **out_made);

#endif
