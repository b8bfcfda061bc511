/* SPDX-License-Identifier: MIT */
/* What a scheduler's tasks have without being given it, and the table of what they are given. */
#ifndef JRT_MEANS_IMPLICIT_H
#define JRT_MEANS_IMPLICIT_H

#include "task/worker.h"

/* Whether the options about it can be. */
bool jrt_implicit_sane(const janus_scheduler_options *options);

/* Part of making a scheduler; OK, NO_MEMORY, UNAVAILABLE. Part of its end, also half made. */
janus_status jrt_implicit_open(janus_scheduler *scheduler, const janus_scheduler_options *options);
void         jrt_implicit_close(janus_scheduler *scheduler);

/* A worker's part. False: memory refused. */
bool jrt_implicit_open_worker(struct jrt_worker *worker);

#endif
