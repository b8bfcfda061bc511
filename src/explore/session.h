/* SPDX-License-Identifier: MIT */
/* Programs that are explored or replayed from outside. The essay is in session.c. */
#ifndef JRT_EXPLORE_SESSION_H
#define JRT_EXPLORE_SESSION_H

#include "rt/run.h"
#include "task/worker.h"

/*
 * Whether the environment asks for a session, for a run that begins on this thread. If it asks to
 * explore, the first call returns only in child processes, once in each.
 */
bool jrt_session_wanted(void);

/* As jrt_run, under the requested schedule. Ends the process if the schedule fails. */
janus_status jrt_session_run(const janus_scheduler_options *options, janus_entry *entry,
                             void *argument, struct jrt_run_end *out);

/* As jrt_scheduler_open, in a session under the requested schedule, [explore-open]. */
janus_status jrt_session_open(const janus_scheduler_options *options, janus_scheduler **out);

/* Called when a scheduler was started, and when one was closed. */
void jrt_session_started(void);
void jrt_session_closed(void);

#endif
