/* SPDX-License-Identifier: MIT */
/* Circles of tasks that wait for each other. The essay is in cycle.c. */
#ifndef JRT_LOOK_CYCLE_H
#define JRT_LOOK_CYCLE_H

#include "means/holder.h"

enum { JRT_CYCLES_TOLD = 8 };

/* Says each circle in some lines of text; how many it found, at most JRT_CYCLES_TOLD. No lock of
 * ours is held, neither by the caller nor when `line` is called. */
unsigned jrt_cycles_tell(janus_scheduler *scheduler, void (*line)(void *subject, const char *text),
                         void *subject);

#endif
