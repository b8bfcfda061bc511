/* SPDX-License-Identifier: MIT */
/* A second stack for signal handlers, one per thread: a fiber that ran out of its own stack
 * cannot lend it to the handler that finds out. */
#ifndef JRT_PLAT_ALTSTACK_H
#define JRT_PLAT_ALTSTACK_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct jrt_altstack {
    void   *base; /* the mapping, guard page first; NULL: the thread has one of its own */
    size_t  bytes;
    stack_t former; /* the thread's own, if it was too small to keep */
};

/* The most a signal frame takes on this machine; grows with the vector registers. Callable from
 * signal handlers. */
size_t jrt_signal_frame_bytes(void);

/* Gives the calling thread an alternate signal stack, unless it has a large enough one, which
 * stays. False when the system refuses memory. */
bool jrt_altstack_open(struct jrt_altstack *altstack);

/* For tests. The next `count` that would be made are refused. */
void jrt_altstacks_refuse(unsigned count);

/* Takes it back, on the same thread. */
void jrt_altstack_close(struct jrt_altstack *altstack);

#endif
