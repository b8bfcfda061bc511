/* SPDX-License-Identifier: MIT */
/*
 * Finds a smaller schedule that fails in the same way: with fewer unusual choices.
 *
 * First it draws a few of all choices: one, two, four, and so on. Most bugs need only few, and a
 * list that fails with a few is nearly minimal. Then it leaves out runs of choices, long ones
 * first, and keeps what still fails. This is Zeller's delta debugging, without its complements.
 * Leaving a choice out changes what comes after it. Later choices may then concern something else,
 * or not occur. The list is what the schedule really did. "In the same way" means: the same kind
 * and the same words.
 */
#include "explore/explorer.h"

#include "base/rng.h"
#include "plat/seam.h"

#include <stdlib.h>
#include <string.h>

enum { TRIES_MAX = 1000, DRAWS = 40 };

static const uint64_t patience_ns = UINT64_C(3000000000);

/* What is known to fail, and the list being tried. */
struct search {
    struct jrt_explorer    *explorer;
    struct jrt_choice_made *tried;
    struct jrt_rng          random;
    uint64_t                until_ns;
    bool                    refused;
};

static bool may_go_on(const struct search *search)
{
    return !search->refused && search->explorer->tries < TRIES_MAX &&
           jrt_clock_now_ns() < search->until_ns;
}

/* Whether the first `count` of `tried` alone still fail. If so, they become what is known. */
static bool fails_with(struct search *search, size_t count)
{
    struct jrt_explorer *explorer = search->explorer;
    struct jrt_plan     *known = &explorer->plan;
    struct jrt_plan      plan = *known;
    plan.made = search->tried;
    plan.made_count = count;
    jrt_log_clear(explorer->log);
    explorer->tries++;
    search->refused = !explorer->attempt(explorer, &plan, JRT_HOW_KEEP);
    if (search->refused || !jrt_explorer_same(explorer)) return false;
    known->made_count = explorer->log->kept; /* at most as many as were listed */
    memcpy(explorer->made, explorer->log->made, known->made_count * sizeof *explorer->made);
    jrt_choices_sort(explorer->made, known->made_count);
    return true;
}

/* Leaves out `count` choices from `at` on. True: it fails without them. */
static bool fails_without(struct search *search, size_t at, size_t count)
{
    const struct jrt_explorer *explorer = search->explorer;
    size_t                     rest = explorer->plan.made_count - at - count;
    memcpy(search->tried, explorer->made, at * sizeof *search->tried);
    memcpy(search->tried + at, explorer->made + at + count, rest * sizeof *search->tried);
    return fails_with(search, at + rest);
}

/* Draws about `few` of the choices, several times. */
static bool fails_with_few(struct search *search, uint32_t few)
{
    const struct jrt_explorer *explorer = search->explorer;
    uint32_t                   all = (uint32_t)explorer->plan.made_count;
    for (int i = 0; i < DRAWS && may_go_on(search); i++) {
        size_t count = 0;
        for (uint32_t at = 0; at < all; at++) {
            bool drawn = jrt_rng_below(&search->random, all) < few;
            if (drawn) search->tried[count++] = explorer->made[at];
        }
        if (count > 0 && fails_with(search, count)) return true;
    }
    return false;
}

/* Leaves out `count` choices at a time, from the end to the beginning. Returns whether any could
 * go. */
static bool pass_over(struct search *search, size_t count)
{
    const struct jrt_plan *plan = &search->explorer->plan;
    bool                   any = false;
    size_t                 end = plan->made_count;
    while (end > 0 && may_go_on(search)) {
        size_t at = end > count ? end - count : 0;
        any |= fails_without(search, at, end - at);
        end = at < plan->made_count ? at : plan->made_count;
    }
    return any;
}

bool jrt_minimise(struct jrt_explorer *explorer)
{
    size_t        count = explorer->plan.made_count;
    struct search search = {.explorer = explorer,
                            .tried = malloc((count > 0 ? count : 1) * sizeof *search.tried),
                            .until_ns = jrt_clock_now_ns() + patience_ns};
    if (search.tried == NULL) return false;
    jrt_rng_seed(&search.random, explorer->plan.seed);
    if (count == 0 || fails_with(&search, 0)) count = 0;
    for (uint32_t few = 1; few < count / 2 && !fails_with_few(&search, few);) few *= 2;
    count = explorer->plan.made_count;
    for (; count > 1 && may_go_on(&search); count = (count + 1) / 2)
        (void)pass_over(&search, count);
    while (pass_over(&search, 1)) continue;
    free(search.tried);
    explorer->minimised = true;
    return !search.refused;
}
