/* SPDX-License-Identifier: MIT */
/* Exploring in this process. */
#include "base/options.h"
#include "base/outside.h"
#include "explore/explorer.h"
#include "explore/trial.h"
#include "fiber/fiber.h"
#include "fiber/thread.h"

#include <stdlib.h>
#include <string.h>

struct local {
    struct jrt_explorer     explorer; /* first */
    janus_scheduler_options scheduler;
    janus_entry            *entry;
    void                   *argument;
    struct jrt_spare        spare;
};

/* LeakSanitizer, if the program has it. A schedule that is given up leaks everything it held. */
extern void __lsan_disable(void) __attribute__((weak));
extern void __lsan_enable(void) __attribute__((weak));

static bool attempt(struct jrt_explorer *explorer, const struct jrt_plan *plan, enum jrt_how how)
{
    struct local      *local = (struct local *)explorer;
    struct jrt_decider decider;
    /* If memory may be refused, every piece is requested anew. What earlier schedules left must not
     * decide how often that is. */
    bool asked = (plan->faults & (JANUS_FAULT_MEMORY | JANUS_FAULT_MAPPING)) != 0;
    jrt_decider_init(&decider, plan, explorer->log);
    decider.keeps = how != JRT_HOW_FAST;
    decider.tells = how == JRT_HOW_TELL;
    struct jrt_trial trial = {.decider = &decider,
                              .spare = asked ? NULL : &local->spare,
                              .max_steps = explorer->options.max_steps,
                              .max_time_ns = explorer->options.max_time_ns,
                              .stale_allowed = explorer->options.stale_allowed,
                              .panics_allowed = explorer->options.panics_allowed,
                              .loud = how == JRT_HOW_TELL && !explorer->options.quiet,
                              .scheduler = &local->scheduler,
                              .entry = local->entry,
                              .argument = local->argument};
    if (__lsan_disable != NULL) __lsan_disable();
    bool began = jrt_trial_run(&trial);
    if (__lsan_enable != NULL) __lsan_enable();
    return began;
}

static bool read_scheduler(const janus_scheduler_options *given, janus_scheduler_options *out)
{
    if (given != NULL) {
        if (!jrt_struct_sane(given->struct_bytes, sizeof *out)) return false;
        memcpy(out, given, given->struct_bytes);
    }
    out->struct_bytes = sizeof *out;
    return true;
}

static void give(const struct jrt_explorer *explorer, janus_explore_result *out, char *replay)
{
    janus_explore_result result = {.struct_bytes = out->struct_bytes,
                                   .schedules = explorer->schedules,
                                   .steps = explorer->steps,
                                   .complete = explorer->complete,
                                   .unsteady = explorer->unsteady,
                                   .failing = explorer->failing,
                                   .seed = explorer->plan.seed,
                                   .hash = explorer->hash,
                                   .choices = explorer->choices,
                                   .choices_kept = explorer->plan.made_count,
                                   .replay = replay};
    memcpy(result.message, explorer->message, sizeof result.message);
    memcpy(out, &result, out->struct_bytes < sizeof result ? out->struct_bytes : sizeof result);
}

static janus_status explore(struct local *local, janus_explore_result *out)
{
    struct jrt_explorer *explorer = &local->explorer;
    bool                 again = explorer->options.replay != NULL;
    janus_status         status = again ? jrt_explore_replay(explorer) : jrt_explore_all(explorer);
    bool                 failed = status == JANUS_CHILD_FAILED;
    char                *replay = failed ? jrt_plan_text(&explorer->plan) : NULL;
    if (failed && replay == NULL) return JANUS_NO_MEMORY;
    if (status == JANUS_OK || failed) {
        jrt_report_end(explorer, replay);
        bool wanted = out != NULL && out->struct_bytes == sizeof *out;
        if (out != NULL) give(explorer, out, wanted ? replay : NULL);
        if (!wanted) free(replay);
    }
    return status;
}

janus_status janus_explore(const janus_explore_options *options, janus_entry *entry, void *argument,
                           janus_explore_result *out)
{
    struct local local = {.entry = entry, .argument = argument};
    jrt_outside_call(); /* [turn-call] */
    if (entry == NULL) return JANUS_INVALID;
    if (out != NULL && !jrt_struct_sane(out->struct_bytes, sizeof *out)) return JANUS_INVALID;
    if (jrt_world_now() != NULL || jrt_thread_self()->worker != NULL) return JANUS_STATE;
    janus_status status = jrt_outside_ask(); /* before anything is printed */
    if (status != JANUS_OK) return status;
    status = jrt_explore_decode(options, &local.explorer.options);
    if (status != JANUS_OK) return status;
    if (!read_scheduler(local.explorer.options.scheduler, &local.scheduler)) return JANUS_INVALID;
    if (!jrt_fault_open()) return JANUS_UNAVAILABLE; /* once for all schedules */
    local.explorer.attempt = attempt;
    local.explorer.log = jrt_log_make();
    status = local.explorer.log == NULL ? JANUS_NO_MEMORY : explore(&local, out);
    jrt_explorer_fini(&local.explorer);
    jrt_spare_drop(&local.spare);
    jrt_fault_close();
    return status;
}
