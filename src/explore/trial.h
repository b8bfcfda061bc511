/* SPDX-License-Identifier: MIT */
/* One schedule. */
#ifndef JRT_EXPLORE_TRIAL_H
#define JRT_EXPLORE_TRIAL_H

#include "explore/decider.h"
#include "rt/run.h"

struct jrt_trial {
    struct jrt_decider            *decider; /* its log is filled in */
    struct jrt_spare              *spare;   /* from one to the next; NULL: there is one only */
    uint64_t                       steps_max, time_max_ns;
    bool                           stale_allowed, panics_allowed;
    bool                           loud;      /* a deadlock is told on stderr */
    bool                           program;   /* what the entry returns is not for us to judge, nor
                                               what is still open afterwards */
    const janus_scheduler_options *scheduler; /* NULL: the defaults */
    janus_entry                   *entry;
    void                          *argument;
    struct jrt_run_end             end; /* out */
};

/* Makes the calling thread's world tell what a schedule is judged by. */
void jrt_trial_watch(const struct jrt_trial *trial);

/* The options of its scheduler, under the plan. */
janus_scheduler_options jrt_trial_options(const struct jrt_trial *trial);

/* Says in the log how a schedule ended. */
struct jrt_world_run;
void jrt_trial_judge(const struct jrt_trial *trial, const struct jrt_world_run *run,
                     enum jrt_world_end end);

/* Runs it, and says in the log how that went. False: no memory to begin with. */
bool jrt_trial_run(struct jrt_trial *trial);

/* "expectation", "deadlock"; as it is told. */
const char *jrt_failing_name(janus_failing failing);

#endif
