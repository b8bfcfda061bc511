/* SPDX-License-Identifier: MIT */
/*
 * A smaller schedule that fails in the same way: with fewer unusual choices.
 *
 * Runs of choices are left out, long ones first, and what still fails is kept. (Zeller's delta
 * debugging, without its complements.) Leaving one out changes what comes after it, so later choices
 * may then be about something else, or be none; the list is what the schedule really did. "In the
 * same way" means: the same kind and the same words.
 */
#include "explore/explorer.h"

#include "plat/seam.h"

#include <stdlib.h>
#include <string.h>

enum { TRIES_MAX = 1000 };

static const uint64_t patience_ns = UINT64_C(3000000000);

/* What is known to fail, and the list that is tried. */
struct search {
    struct jrt_explorer    *explorer;
    struct jrt_choice_made *tried;
    uint64_t                until_ns;
    bool                    refused;
};

static bool same_failing(const struct jrt_explorer *explorer)
{
    return explorer->log->failing == explorer->failing &&
           strcmp(explorer->log->message, explorer->message) == 0;
}

static bool may_go_on(const struct search *search)
{
    return !search->refused && search->explorer->tries < TRIES_MAX &&
           jrt_clock_now_ns() < search->until_ns;
}

/* Leaves out `count` choices from `at` on; true: it fails without them. */
static bool fails_without(struct search *search, size_t at, size_t count)
{
    struct jrt_explorer *explorer = search->explorer;
    struct jrt_plan     *known = &explorer->plan;
    struct jrt_plan      plan = *known;
    size_t               rest = known->made_count - at - count;
    memcpy(search->tried, explorer->made, at * sizeof *search->tried);
    memcpy(search->tried + at, explorer->made + at + count, rest * sizeof *search->tried);
    plan.made = search->tried;
    plan.made_count = at + rest;
    jrt_log_clear(explorer->log);
    explorer->tries++;
    search->refused = !explorer->attempt(explorer, &plan, JRT_HOW_KEEP);
    if (search->refused || !same_failing(explorer)) return false;
    known->made_count = explorer->log->kept; /* at most as many as were listed */
    memcpy(explorer->made, explorer->log->made, known->made_count * sizeof *explorer->made);
    jrt_choices_sort(explorer->made, known->made_count);
    return true;
}

/* From the end to the beginning, `count` at a time; whether any could go. */
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
    for (; count > 1 && may_go_on(&search); count = (count + 1) / 2)
        (void)pass_over(&search, count);
    while (pass_over(&search, 1)) continue;
    free(search.tried);
    explorer->minimised = true;
    return !search.refused;
}
