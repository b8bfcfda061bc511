/* SPDX-License-Identifier: MIT */
/* Which schedule: what a text to replay says. */
#ifndef JRT_EXPLORE_PLAN_H
#define JRT_EXPLORE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JRT_STEPS_MAX = 100000 }; /* where no other number is asked for */

enum jrt_plan_kind {
    JRT_PLAN_RANDOM,  /* all choices come from the seed */
    JRT_PLAN_PCT,     /* priorities do, and where they change */
    JRT_PLAN_CHOICES, /* as listed; where nothing is listed, the usual one */
    JRT_PLAN_SEARCH,  /* as the log of the one before says; never a text */
};

/*
 * A choice that is not the usual one. It is named by the thread that comes to it, as the world
 * numbers them, and by how many that thread came to before: so it stays the same one when others
 * elsewhere are left out. Between threads the value is the number of who goes on.
 */
struct jrt_choice_made {
    uint32_t thread, number, value;
};

struct jrt_plan {
    enum jrt_plan_kind kind;
    uint32_t           worker_count;
    uint64_t           steps_max;                     /* 0: JRT_STEPS_MAX */
    bool               stale_allowed, panics_allowed; /* as the options */
    uint32_t           faults, faults_every;
    uint64_t           seed;   /* of choices, and of workers; not 0 */
    uint32_t           depth;  /* PCT: one more than there are changes, */
    uint64_t           length; /* among so many choices */
    /* CHOICES, in order; borrowed from whoever made the plan. */
    const struct jrt_choice_made *made;
    size_t                        made_count;
};

/*
 * The plan as text; the caller's: free(). NULL: no memory. The parts stand between slashes:
 *
 *     1                 this is version 1
 *     w4                four workers
 *     n500              at most so many steps, if not JRT_STEPS_MAX
 *     a                 handles may be used after their end
 *     f17.100           faults: which, and one in how many
 *     s37               random, from seed 37
 *     p37.3.812         priorities from seed 37, depth 3, 812 choices long
 *     s37/c2.40:1,3.7:2 choice 40 of thread 2 is 1, choice 7 of thread 3 is 2, all others are the
 *                       usual ones; workers of seed 37 choose whom to steal from
 */
char *jrt_plan_text(const struct jrt_plan *plan);

/* Puts choices into the order that a plan has them in. */
void jrt_choices_sort(struct jrt_choice_made *made, size_t count);

/* The one a plan has for this choice of a thread; NULL: the usual one. */
const struct jrt_choice_made *jrt_plan_find(const struct jrt_plan *plan, uint32_t thread,
                                            uint32_t number);

/* Reads it. *out_made, which is the caller's, is what plan->made is in: free(). False: it is no
 * such text, or there is no memory for it. */
bool jrt_plan_read(const char *text, struct jrt_plan *out, struct jrt_choice_made **out_made);

#endif
