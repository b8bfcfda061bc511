/* SPDX-License-Identifier: MIT */
/* The counting runtime of the tests of the pass: see counting.c. */
#ifndef COUNTING_H
#define COUNTING_H

#include <stdint.h>

#define NO_OPS __attribute__((annotate("janus.no_ops")))

#ifdef __cplusplus
extern "C" {
#endif

extern __thread int64_t janus_fuel __attribute__((tls_model("initial-exec")));

void     janus_check_stub(uint64_t cost);
uint64_t janus_strip_slow(uint64_t rounds, uint64_t cost);
void     janus_op(uint64_t cost);
void     count_slow(uint64_t cost);

/* A program may define it: it runs when the budget is used up. */
void count_at_end(void);

/* All ops of the process so far. */
uint64_t count_spent(void);

#ifdef __cplusplus
}
#endif

#endif
