/* SPDX-License-Identifier: MIT */
/* What a worker knows of the workers that it meets in channels. The essay is in work/herd.c. */
#ifndef JRT_TASK_HERD_H
#define JRT_TASK_HERD_H

#include <stdbool.h>
#include <stdint.h>

struct jrt_herd {
    const void *met;   /* the worker before it in a channel, last time; compared, not followed */
    uint32_t    meets; /* entered channels where another worker had been, since the last look */
    uint64_t    waited_ns;   /* for channels that were taken, since the last look */
    uint64_t    own_ns, ops; /* operations, and the time without waiting; over the last looks */
    uint32_t    retreats;    /* in a row, each soon after the last */
    bool        wanted;      /* the worker gives its tasks away when the current task waits */
};

#endif
