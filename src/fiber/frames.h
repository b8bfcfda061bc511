/* SPDX-License-Identifier: MIT */
/* Backtraces of code that runs on the library's stacks. The essay is in frames.c. */
#ifndef JRT_FIBER_FRAMES_H
#define JRT_FIBER_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

enum {
    JRT_FRAMES_MAX = 16,          /* the innermost frames that are kept */
    JRT_FRAMES_STACK = 12 * 1024, /* bytes that a walk and its report may need */
};

/* Store code addresses, innermost first: the callers of janus_panic, or in a signal handler the
 * interrupted code and its callers. They end where the task or fiber began. Return how many. */
unsigned jrt_frames_of_panic(const void **out, unsigned room);
unsigned jrt_frames_of_signal(const void **out, unsigned room);

#endif
