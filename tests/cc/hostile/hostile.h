/* SPDX-License-Identifier: MIT */
/*
 * Programs that would keep a worker for ever, or for very long. `janusrt cc` compiles them, and
 * hostile.c runs each as a task with a budget, beside a neighbour.
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <stdint.h>

/* For code of the test inside of counted files. */
#define NO_OPS __attribute__((annotate("janus.no_ops")))

struct hostile {
    const char *name;
    uint64_t    (*run)(uint64_t n); /* returns a value that every right execution returns */
    uint64_t    n;                  /* it ends by itself, after more than HOSTILE_BUDGET ops;
                                    HOSTILE_ENDLESS: it never does */
    uint64_t    ops;                /* of each tick, at least. 0: it does not tick */
};

#define HOSTILE_BUDGET UINT64_C(1000000)
#define HOSTILE_ENDLESS UINT64_MAX

#ifdef __cplusplus
extern "C" {
#endif

extern const struct hostile hostile_loops[], hostile_calls[], hostile_library[], hostile_cxx[];

/* A tick is work that was done. The compiler cannot remove it. */
extern volatile uint64_t hostile_ticks;
extern volatile int      hostile_zero, hostile_one; /* the compiler does not know 0 and 1 */

#ifdef __cplusplus
}
#endif

#define TICK() (hostile_ticks = hostile_ticks + 1)

#endif
