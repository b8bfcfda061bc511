/* SPDX-License-Identifier: MIT */
/* Reports that the library makes by itself: a panic, a callback that broke off. */
#ifndef JRT_TASK_TELL_H
#define JRT_TASK_TELL_H

#include "task/task.h"

/*
 * Reports that the current task is about to end by a panic. Calls the scheduler's on_panic, or
 * writes one line to stderr, as the options say. Needs JRT_FRAMES_STACK of stack.
 */
void jrt_tell_panic(const struct jrt_task *task, janus_panic_kind kind, const char *message,
                    const void *const *frames, unsigned frame_count);

/* Writes a line to stderr, unless the scheduler is quiet, reports panics elsewhere, or is
 * simulated. */
void jrt_tell_line(const janus_scheduler *scheduler, const char *who, const char *what);

/* Reports a broken callback, which belongs to no task. */
void jrt_tell_callback(const char *what, const char *why);

#endif
