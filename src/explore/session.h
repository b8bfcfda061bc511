/* SPDX-License-Identifier: MIT */
/* Programs that are explored, or replayed, from outside; the essay is in session.c. */
#ifndef JRT_EXPLORE_SESSION_H
#define JRT_EXPLORE_SESSION_H

#include "rt/run.h"

/*
 * Whether the environment asks for it, for a run that begins on this thread. Where it asks to
 * explore, the first call does not return in this process, but in children of it, once each.
 */
bool jrt_session_wanted(void);

/* As jrt_run, under the schedule that is asked for. Ends the process where that fails. */
janus_status jrt_session_run(const janus_scheduler_options *options, janus_entry *entry,
                             void *argument, struct jrt_run_end *out);

/* As jrt_scheduler_open; in a session under the schedule that is asked for, [explore-open]. */
janus_status jrt_session_open(const janus_scheduler_options *options, janus_scheduler **out);

/* A scheduler was started; one was closed. */
void jrt_session_started(void);
void jrt_session_closed(void);

#endif
