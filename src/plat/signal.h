/* SPDX-License-Identifier: MIT */
/* Calls a function on a thread of its own when the process gets a signal. The essay is in
 * signal.c. */
#ifndef JRT_PLAT_SIGNAL_H
#define JRT_PLAT_SIGNAL_H

#include <janusrt/status.h>
#include <stdbool.h>
#include <stddef.h>

/* The caller owns the memory and keeps it in place between add and remove. The caller sets the last
 * three fields. */
struct jrt_signal_watch {
    struct jrt_signal_watch *next;
    int                      number;
    void                     (*call)(void *subject);
    void                    *subject;
};

/* Whether there is such a signal, and a program may catch it. The C library keeps some more for
 * itself. */
bool jrt_signal_can_watch(int number);

/* Until removed, each signal leads to a call soon; several signals may lead to one. The first watch
 * of a signal installs a handler, and the last one restores the old handler. INVALID: this signal
 * cannot be watched. UNAVAILABLE, NO_MEMORY: the system refused. */
janus_status jrt_signal_watch_add(struct jrt_signal_watch *watch);

/* When it returns, no call runs and none will come. Not from inside a call. */
void jrt_signal_watch_remove(struct jrt_signal_watch *watch);

/* Writes all bytes, despite interruptions and short writes. False: the descriptor refused. */
bool jrt_write_all(int fd, const char *bytes, size_t count);

#endif
