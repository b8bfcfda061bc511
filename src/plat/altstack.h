/* SPDX-License-Identifier: MIT */
/* A second stack for signal handlers, one per thread: a fiber that ran out of its own stack
 * cannot lend it to the handler that finds out. */
#ifndef JRT_PLAT_ALTSTACK_H
#define JRT_PLAT_ALTSTACK_H

#include <stdbool.h>
#include <stddef.h>

struct jrt_altstack {
    void  *base; /* the mapping, guard page first; NULL: the thread has one of its own */
    size_t bytes;
};

/* Gives the calling thread an alternate signal stack, unless it has one already, which stays.
 * False when the system refuses memory. */
bool jrt_altstack_open(struct jrt_altstack *altstack);

/* Takes it back, on the same thread. */
void jrt_altstack_close(struct jrt_altstack *altstack);

#endif
