/* SPDX-License-Identifier: MIT */
/* Calls that may end their thread in the middle. The essay is in exit.c. */
#ifndef JRT_FIBER_EXIT_H
#define JRT_FIBER_EXIT_H

#include "fiber/thread.h"

#include <stdint.h>

/*
 * Calls entry(argument) on this stack and thread, and comes back even where the call ends the
 * thread: false, and the thread is spoilt, [exit-spoilt]. Otherwise *out_result is what it
 * returned. The call must not leave this thread.
 */
bool jrt_call_guarded(int64_t (*entry)(void *), void *argument, int64_t *out_result);

#endif
