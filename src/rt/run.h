/* SPDX-License-Identifier: MIT */
/* A scheduler for one call; janus_run is explore/run.c. */
#ifndef JRT_RT_RUN_H
#define JRT_RT_RUN_H

#include <janusrt/nursery.h>
#include <janusrt/scheduler.h>

/* How it went. */
struct jrt_run_end {
    janus_run_result    *told;  /* in: what is to be filled in besides; NULL: nothing */
    bool                 began; /* the entry was called, */
    bool                 returned;
    int64_t              result; /* and returned this */
    janus_nursery_result first;  /* how its task ended */
    janus_status         closed; /* STATE: nurseries of the scheduler are still open */
};

/* As the public calls of these names, which are in explore/run.c: they may be explored. */
janus_status jrt_scheduler_open(const janus_scheduler_options *options, janus_scheduler **out);
janus_status jrt_scheduler_start(janus_scheduler *scheduler);
janus_status jrt_scheduler_close(janus_scheduler *scheduler);

/* As janus_run. On an error *out->told may be untouched. */
janus_status jrt_run(const janus_scheduler_options *options, janus_entry *entry, void *argument,
                     struct jrt_run_end *out);

#endif
