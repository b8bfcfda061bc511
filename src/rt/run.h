/* SPDX-License-Identifier: MIT */
/* A scheduler for one call. janus_run is in rt/run.c. */
#ifndef JRT_RT_RUN_H
#define JRT_RT_RUN_H

#include "task/worker.h"

#include <janusrt/nursery.h>
#include <janusrt/scheduler.h>

/* The outcome of a run. */
struct jrt_run_end {
    janus_run_result    *told;  /* in: further results to fill in; NULL: none */
    bool                 began; /* the entry was called */
    bool                 returned;
    int64_t              result; /* what the entry returned */
    janus_nursery_result first;  /* how the first task ended */
    janus_status         closed; /* STATE: nurseries of the scheduler are still open */
};

/* The work behind the public calls of these names in rt/run.c, which may explore the run. */
janus_status jrt_scheduler_open(const janus_scheduler_options *options, janus_scheduler **out);
janus_status jrt_scheduler_start(janus_scheduler *scheduler);
janus_status jrt_scheduler_close(janus_scheduler *scheduler);

/* The work behind janus_run. On an error *out->told may be untouched. */
janus_status jrt_run(const janus_scheduler_options *options, janus_entry *entry, void *argument,
                     struct jrt_run_end *out);

/* Opens a worker, except its queues. Closes it, even if it is half open. */
bool jrt_worker_open(struct jrt_worker *worker);
void jrt_worker_close(struct jrt_worker *worker);

#endif
