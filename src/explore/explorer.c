/* SPDX-License-Identifier: MIT */
/*
 * The explorer: runs schedules until one fails, minimises that one and reports it.
 *
 * It does not know how a schedule is run. In this process (explore.c) it is fast. In a child
 * (session.c) it survives whatever the program does.
 *
 * A failed schedule is run again with a log of its choices. If it does not fail in the same way,
 * something that no schedule decides has an influence. The explorer reports that too.
 */
#include "explore/explorer.h"

#include "plat/seam.h"

#include <stdlib.h>
#include <string.h>

/* The schedule with this number, from 0. PCT: the first one only measures. */
static struct jrt_plan plan_of(const struct jrt_explorer *explorer, uint64_t number,
                               uint64_t length)
{
    const janus_explore_options *options = &explorer->options;
    struct jrt_plan              plan = {.worker_count = options->worker_count,
                                         .faults = options->faults,
                                         .faults_every = options->faults_every,
                                         .depth = options->depth};
    switch (options->strategy) {
    case JANUS_STRATEGY_PCT: plan.kind = JRT_PLAN_PCT; break;
    case JANUS_STRATEGY_EXHAUSTIVE: plan.kind = JRT_PLAN_SEARCH; break;
    default: plan.kind = JRT_PLAN_RANDOM; break;
    }
    plan.seed = options->seed;
    if (plan.kind != JRT_PLAN_SEARCH) plan.seed += number; /* a search has one system */
    if (plan.seed == 0) plan.seed = 1;
    plan.length = length;
    plan.max_steps = options->max_steps != JRT_STEPS_MAX ? options->max_steps : 0;
    plan.stale_allowed = options->stale_allowed;
    plan.panics_allowed = options->panics_allowed;
    return plan;
}

bool jrt_explorer_same(const struct jrt_explorer *explorer)
{
    return explorer->log->failing == explorer->failing &&
           strcmp(explorer->log->message, explorer->message) == 0;
}

static void note_failing(struct jrt_explorer *explorer)
{
    const struct jrt_log *log = explorer->log;
    explorer->failing = log->failing;
    memcpy(explorer->message, log->message, sizeof explorer->message);
    explorer->hash = log->hash;
    explorer->choices = log->choices;
}

/* Moves the choices from the log into the plan. */
static bool take_choices(struct jrt_explorer *explorer)
{
    const struct jrt_log   *log = explorer->log;
    size_t                  bytes = log->kept * sizeof *explorer->made;
    struct jrt_choice_made *made = malloc(bytes > 0 ? bytes : 1);
    if (made == NULL) return false;
    memcpy(made, log->made, bytes);
    jrt_choices_sort(made, log->kept);
    free(explorer->made);
    explorer->made = made;
    explorer->plan.kind = JRT_PLAN_CHOICES;
    explorer->plan.made = made;
    explorer->plan.made_count = log->kept;
    return true;
}

/* The plan has failed: runs it again, then minimises it. */
static janus_status found(struct jrt_explorer *explorer, const struct jrt_plan *plan)
{
    explorer->plan = *plan;
    note_failing(explorer);
    if (plan->kind == JRT_PLAN_SEARCH) {
        jrt_log_unroll(explorer->log);
        if (!take_choices(explorer)) return JANUS_NO_MEMORY;
    }
    jrt_log_clear(explorer->log);
    if (!explorer->attempt(explorer, &explorer->plan, JRT_HOW_KEEP)) return JANUS_NO_MEMORY;
    bool same_way = plan->kind == JRT_PLAN_SEARCH || explorer->log->hash == explorer->hash;
    explorer->unsteady = !jrt_explorer_same(explorer) || !same_way;
    /* Of a schedule without an end each try takes all steps, and none says more. */
    bool ends = explorer->failing != JANUS_FAILING_STEPS;
    if (ends && !explorer->unsteady && !explorer->options.no_minimising && !explorer->log->full) {
        if (!take_choices(explorer) || !jrt_minimise(explorer)) return JANUS_NO_MEMORY;
    }
    jrt_log_clear(explorer->log);
    if (!explorer->attempt(explorer, &explorer->plan, JRT_HOW_TELL)) return JANUS_NO_MEMORY;
    if (!explorer->unsteady) {
        explorer->hash = explorer->log->hash;
    }
    return JANUS_CHILD_FAILED;
}

static bool time_is_up(const struct jrt_explorer *explorer)
{
    uint64_t wall_ns = explorer->options.wall_ns;
    return wall_ns != 0 && jrt_clock_now_ns() - explorer->began_ns >= wall_ns;
}

janus_status jrt_explore_all(struct jrt_explorer *explorer)
{
    const janus_explore_options *options = &explorer->options;
    struct jrt_log              *log = explorer->log;
    uint64_t                     length = 1;
    bool                         cut = false; /* a search knew only the beginning of a schedule */
    jrt_explore_begun(true);
    jrt_report_begin(explorer);
    while (explorer->schedules < options->schedules && !time_is_up(explorer)) {
        struct jrt_plan plan = plan_of(explorer, explorer->schedules, length);
        jrt_log_clear(log);
        if (!explorer->attempt(explorer, &plan, JRT_HOW_FAST)) return JANUS_NO_MEMORY;
        explorer->schedules++;
        explorer->steps += log->steps;
        if (log->failing != JANUS_FAILING_NOT) return found(explorer, &plan);
        if (log->status != JANUS_OK && options->faults == 0) return log->status;
        if (log->threads > length) length = log->threads;
        jrt_report_progress(explorer);
        if (plan.kind != JRT_PLAN_SEARCH) continue;
        explorer->unsteady |= log->differs;
        cut |= log->full;
        if (jrt_log_next(log, options->depth)) continue;
        explorer->complete = !explorer->unsteady && !cut;
        break;
    }
    return JANUS_OK;
}

bool jrt_explore_read(struct jrt_explorer *explorer, struct jrt_plan *out)
{
    janus_explore_options *options = &explorer->options;
    if (!jrt_plan_read(options->replay, out, &explorer->made)) return false;
    if (out->max_steps != 0) options->max_steps = out->max_steps;
    options->stale_allowed |= out->stale_allowed;
    options->panics_allowed |= out->panics_allowed;
    return true;
}

janus_status jrt_explore_replay(struct jrt_explorer *explorer)
{
    struct jrt_log *log = explorer->log;
    if (!jrt_explore_read(explorer, &explorer->plan)) {
        jrt_explore_begun(false);
        jrt_report_refused(explorer);
        return JANUS_INVALID;
    }
    jrt_explore_begun(true);
    jrt_log_clear(log);
    if (!explorer->attempt(explorer, &explorer->plan, JRT_HOW_TELL)) return JANUS_NO_MEMORY;
    explorer->schedules = 1;
    explorer->steps = log->steps;
    note_failing(explorer);
    if (log->failing != JANUS_FAILING_NOT) return JANUS_CHILD_FAILED;
    return explorer->plan.faults == 0 ? log->status : JANUS_OK;
}

void jrt_explorer_fini(struct jrt_explorer *explorer)
{
    jrt_log_free(explorer->log);
    free(explorer->made);
}
