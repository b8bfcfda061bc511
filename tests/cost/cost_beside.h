/* SPDX-License-Identifier: MIT */
/* What is around the walks of cost_paths.c: the system as it always is, and a second worker. */
#ifndef TESTS_COST_BESIDE_H
#define TESTS_COST_BESIDE_H

#include <janusrt/janus.h>

/* What a task does beside the second worker. */
struct cost_beside {
    janus_entry *entry;
    void        *argument;
};

/* The entry of a first task, with a struct cost_beside: while it runs, a task sleeps in the kernel
 * on the second worker. */
int64_t cost_beside(void *argument);

#endif
