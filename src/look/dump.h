/* SPDX-License-Identifier: MIT */
/* The task tree as text, for dumps and deadlocks. The essay is in dump.c. */
#ifndef JRT_LOOK_DUMP_H
#define JRT_LOOK_DUMP_H

#include "task/nursery.h"

/* Writes a heading and the tree below the scheduler's roots to stderr. The caller holds no lock of
 * the library. If the scheduler has books, returns a copy of the beginning, which the caller frees.
 * Otherwise returns NULL. */
char *jrt_dump_deadlock(janus_scheduler *scheduler, const char *heading);

/* Ends what janus_scheduler_dump_on began. */
void jrt_dump_off(janus_scheduler *scheduler);

/* Whether any task waits, and no thread outside could act. In deadlock.c. */
bool jrt_anybody_waits(janus_scheduler *scheduler);

/* Reports a deadlock and ends the waits. In deadlock.c. */
bool jrt_deadlock_break(janus_scheduler *scheduler);

#endif
