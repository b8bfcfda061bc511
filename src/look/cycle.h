/* SPDX-License-Identifier: MIT */
/* Circles of tasks that wait for each other. The essay is in cycle.c. */
#ifndef JRT_LOOK_CYCLE_H
#define JRT_LOOK_CYCLE_H

#include "means/holder.h"

enum { JRT_CYCLES_TOLD = 8 };

/* Passes each circle to `line` as lines of text. Returns the number of circles, at most
 * JRT_CYCLES_TOLD. Neither the caller nor this function holds a lock of the library when `line`
 * runs. */
unsigned jrt_cycles_tell(janus_scheduler *scheduler, void (*line)(void *subject, const char *text),
                         void *subject);

#endif
