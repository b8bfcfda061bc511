/* SPDX-License-Identifier: MIT */
/* The implicit means of a scheduler's tasks, and the table of explicit ones. */
#ifndef JRT_MEANS_IMPLICIT_H
#define JRT_MEANS_IMPLICIT_H

#include "task/worker.h"

/* Whether the options about implicit means are valid. */
bool jrt_implicit_sane(const janus_scheduler_options *options);

/* Opens and closes these parts of a scheduler. Close also accepts a half-opened scheduler. OK,
 * NO_MEMORY, UNAVAILABLE. */
janus_status jrt_implicit_open(janus_scheduler *scheduler, const janus_scheduler_options *options);
void         jrt_implicit_close(janus_scheduler *scheduler);

/* Opens a worker's part. False: memory refused. */
bool jrt_implicit_open_worker(struct jrt_worker *worker);

#endif
