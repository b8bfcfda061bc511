/* SPDX-License-Identifier: MIT */
/* One schedule. */
#ifndef JRT_EXPLORE_TRIAL_H
#define JRT_EXPLORE_TRIAL_H

#include "explore/decider.h"
#include "rt/run.h"

struct jrt_trial {
    struct jrt_decider            *decider; /* its log is filled in */
    struct jrt_spare              *spare; /* kept for the next schedule; NULL: there is only one */
    uint64_t                       max_steps, max_time_ns;
    bool                           stale_allowed, panics_allowed;
    bool                           loud;      /* print a deadlock on stderr */
    bool                           program;   /* a whole program: judge neither what the entry
                                               * returns nor what is still open afterwards */
    const janus_scheduler_options *scheduler; /* NULL: the defaults */
    janus_entry                   *entry;
    void                          *argument;
    struct jrt_run_end             end; /* out */
};

/* Makes the calling thread's world report what a schedule is judged by. */
void jrt_trial_watch(const struct jrt_trial *trial);

/* The options of the plan's scheduler. */
janus_scheduler_options jrt_trial_options(const struct jrt_trial *trial);

/* Writes to the log how a schedule ended. */
struct jrt_world_run;
void jrt_trial_judge(const struct jrt_trial *trial, const struct jrt_world_run *run,
                     enum jrt_world_end end);

/* Runs a schedule and writes the result to the log. False: no memory to begin. */
bool jrt_trial_run(struct jrt_trial *trial);

/* The name for reports: "expectation", "deadlock". */
const char *jrt_failing_name(janus_failing failing);

#endif
