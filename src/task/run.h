/* SPDX-License-Identifier: MIT */
/* A scheduler for one call; janus_run is explore/run.c. */
#ifndef JRT_TASK_RUN_H
#define JRT_TASK_RUN_H

#include <janusrt/nursery.h>
#include <janusrt/scheduler.h>

/* How it went. */
struct jrt_run_end {
    bool                 began;  /* the entry was called, */
    int64_t              result; /* and returned this */
    janus_nursery_result first;  /* how its task ended */
    janus_status         closed; /* STATE: nurseries of the scheduler are still open */
};

/* As janus_run. */
janus_status jrt_run(const janus_scheduler_options *options, janus_entry *entry, void *argument,
                     struct jrt_run_end *out);

#endif
