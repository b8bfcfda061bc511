/* SPDX-License-Identifier: MIT */
/* A second stack for signal handlers, one for each thread. If a fiber has used up its stack, the
 * handler that reports it needs another one. */
#ifndef JRT_PLAT_ALTSTACK_H
#define JRT_PLAT_ALTSTACK_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct jrt_altstack {
    void   *base; /* the mapping, guard page first; NULL: the thread has its own */
    size_t  bytes;
    stack_t former; /* the thread's own stack, if it was too small to keep */
};

/* The largest signal frame of this machine. It grows with the vector registers. Signal handlers may
 * call this. */
size_t jrt_signal_frame_bytes(void);

/* Gives the calling thread an alternate signal stack. A stack that the thread already has stays if
 * it is large enough. Returns false if the system refuses memory. */
bool jrt_altstack_open(struct jrt_altstack *altstack);

/* Whether the caller is a signal handler on the thread's alternate stack. A system call. */
bool jrt_altstack_in_use(void);

/* For tests: refuses the next `count` stacks that jrt_altstack_open would make. */
void jrt_altstacks_refuse(unsigned count);

/* Removes the stack, on the same thread. */
void jrt_altstack_close(struct jrt_altstack *altstack);

#endif
