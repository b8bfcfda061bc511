/* SPDX-License-Identifier: MIT */
/* The works whose scaling is predicted. The same code runs on the real machine. */
#ifndef JANUSRT_SCALE_WORKS_H
#define JANUSRT_SCALE_WORKS_H

#include <stdbool.h>
#include <stdint.h>

struct work {
    const char *name, *operation;
    /* Runs inside a task with as many workers. `size` is the amount of work, of at most 100.
     * Returns the number of operations. */
    uint64_t (*run)(unsigned workers, unsigned size);
};

extern const struct work works[]; /* ends with an entry without a name */

/* Calls `work` in a scheduler. Returns ps for each operation. The median of `turns`, at most 31. */
uint64_t works_time(const struct work *work, unsigned workers, unsigned size, unsigned turns);

/* Called before and after the timed part. */
extern void (*works_begin)(void);
extern void (*works_end)(void);

#endif
