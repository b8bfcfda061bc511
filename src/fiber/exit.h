/* SPDX-License-Identifier: MIT */
/* Calls that may end their thread in the middle. The essay is in exit.c. */
#ifndef JRT_FIBER_EXIT_H
#define JRT_FIBER_EXIT_H

#include "fiber/thread.h"

#include <stdint.h>

/* How a guarded call ended. */
enum jrt_guarded_end {
    JRT_GUARDED_RETURNED,   /* *out_result is what it returned */
    JRT_GUARDED_EXITED,     /* it ended its thread, which is spoilt, [exit-spoilt] */
    JRT_GUARDED_PANICKED,   /* thread->panic_message says why */
    JRT_GUARDED_OVERFLOWED, /* it used up `stack` */
};

/*
 * Calls entry(argument) on this stack and thread, and returns in whatever way the call ends.
 * `stack` is the library's stack that the caller runs on. NULL: the thread's own stack, whose
 * overflow is a fault. The call must not leave this thread.
 */
enum jrt_guarded_end jrt_call_guarded(int64_t (*entry)(void *), void *argument,
                                      const struct jrt_stack *stack, int64_t *out_result);

/* For janus_panic: ends the innermost guarded call if that call is running, otherwise returns. */
void jrt_guarded_panic(struct jrt_thread *thread, const char *message);

#endif
