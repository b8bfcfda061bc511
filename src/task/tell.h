/* SPDX-License-Identifier: MIT */
/* What is said by itself when something goes wrong: a panic, a callback that broke off. */
#ifndef JRT_TASK_TELL_H
#define JRT_TASK_TELL_H

#include "task/task.h"

/*
 * The current task is about to end by a panic: the scheduler's on_panic is called, or one line is
 * written to stderr, as the options say. Needs JRT_FRAMES_STACK of stack.
 */
void jrt_tell_panic(const struct jrt_task *task, janus_panic_kind kind, const char *message,
                    const void *const *frames, unsigned frame_count);

/* The same for a callback that belongs to no task. */
void jrt_tell_callback(const char *what, const char *why);

#endif
