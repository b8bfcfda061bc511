/* SPDX-License-Identifier: MIT */
/* How a public call begins, of a task or a plain thread. */
#ifndef JRT_MEANS_CALL_H
#define JRT_MEANS_CALL_H

#include "work/turn.h"

/* No worker: a point. In a task's callback it costs `cost` ops. In callback.c. */
void jrt_plain_check(int64_t cost);

/* No worker: in a task's callback an op. In callback.c. */
void jrt_callback_check(void);

static inline void jrt_stack_check(void)
{
    struct jrt_worker *worker = jrt_worker_self();
    worker == NULL ? jrt_plain_check(1) : jrt_call_check(worker);
}

/* As jrt_stack_check, of a call that prints a sentence into a buffer. */
static inline void jrt_sentence_check(void)
{
    jrt_turn_toll(jrt_worker_self(), JRT_TOLL_SENTENCE);
    jrt_stack_check();
}

#endif
