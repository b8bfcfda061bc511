/* SPDX-License-Identifier: MIT */
/* Backtraces of what runs on a stack of ours; the essay is in frames.c. */
#ifndef JRT_FIBER_FRAMES_H
#define JRT_FIBER_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

enum {
    JRT_FRAMES_MAX = 16,          /* that are kept, the innermost */
    JRT_FRAMES_STACK = 12 * 1024, /* bytes that a walk, and a report about it, may need */
};

/* Code addresses, innermost first, of who called janus_panic; and, in a signal handler, of what the
 * signal interrupted. They end where the task or the fiber began. Return how many. */
unsigned jrt_frames_of_panic(const void **out, unsigned room);
unsigned jrt_frames_of_signal(const void **out, unsigned room);

#endif
