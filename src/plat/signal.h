/* SPDX-License-Identifier: MIT */
/* Calls on a thread of its own when the process gets a signal. The essay is in signal.c. */
#ifndef JRT_PLAT_SIGNAL_H
#define JRT_PLAT_SIGNAL_H

#include <janusrt/status.h>
#include <stdbool.h>
#include <stddef.h>

/* The caller's memory; stays put between add and remove. The caller sets the last three. */
struct jrt_signal_watch {
    struct jrt_signal_watch *next;
    int                      number; /* of the signal */
    void                     (*call)(void *subject);
    void                    *subject;
};

/* From now on, until removed: each signal leads to a call soon, several signals maybe to one. The
 * first watch of a signal takes its handler, the last puts the old one back. INVALID: no signal to
 * watch; UNAVAILABLE, NO_MEMORY: the system refused. */
janus_status jrt_signal_watch_add(struct jrt_signal_watch *watch);

/* When it returns no call is running, and none comes. Not from inside a call. */
void jrt_signal_watch_remove(struct jrt_signal_watch *watch);

/* Writes all of it, through interruptions and short writes. False: the descriptor refused. */
bool jrt_write_all(int fd, const char *bytes, size_t count);

#endif
