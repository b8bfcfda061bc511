/* SPDX-License-Identifier: MIT */
/* Callbacks: functions that somebody else's thread calls. The essay is in callback.c. */
#ifndef JRT_MEANS_CALLBACK_H
#define JRT_MEANS_CALLBACK_H

#include "means/ledger.h"

/* What a callback was registered with, and by whom. */
struct jrt_callback {
    void               (*function)(void *);
    void              *argument;
    struct jrt_ledger *ledger; /* of the task that pays; NULL: a plain thread's */
    struct jrt_terms  *terms;  /* a reference: what the task may; NULL: nothing restricts it */
    const char        *kind;   /* for reports; NULL: "a token's callback" */
};

/* For the caller, who is charged `bytes`. OK, NO_MEMORY, BUDGET_EXHAUSTED, STATE. */
janus_status jrt_callback_make(struct jrt_callback *out, void (*function)(void *), void *argument,
                               uint64_t bytes);

/* It is not needed any more; `bytes` are refunded. */
void jrt_callback_drop(struct jrt_callback *callback, uint64_t bytes);

/* Calls it, unless its task has ended. */
void jrt_callback_run(const struct jrt_callback *callback);

/* Calls function(argument) for a task that has not started: on its terms, and with the slice of a
 * callback. It comes back however the call ends. */
void jrt_callback_run_for(struct jrt_task *task, void (*function)(void *), void *argument,
                          const char *kind);

#endif
