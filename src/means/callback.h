/* SPDX-License-Identifier: MIT */
/* Callbacks: functions that the cancelling thread calls. The essay is in callback.c. */
#ifndef JRT_MEANS_CALLBACK_H
#define JRT_MEANS_CALLBACK_H

#include "means/ledger.h"

/* What was registered, and for which task. */
struct jrt_callback {
    void               (*function)(void *);
    void              *argument;
    struct jrt_ledger *ledger; /* the paying task's; NULL: a plain thread registered it */
    struct jrt_terms  *terms;  /* a reference to what the task may do; NULL: no restriction */
    const char        *kind;   /* for reports; NULL: "a token's callback" */
};

/* Registers a callback for the calling task and charges it `bytes`. OK, NO_MEMORY,
 * BUDGET_EXHAUSTED, STATE. */
janus_status jrt_callback_make(struct jrt_callback *out, void (*function)(void *), void *argument,
                               uint64_t bytes);

/* Forgets the callback and refunds `bytes`. */
void jrt_callback_drop(struct jrt_callback *callback, uint64_t bytes);

/* Calls the callback, unless its task has ended. */
void jrt_callback_run(const struct jrt_callback *callback);

/* Calls function(argument) for a task that has not started, on the task's terms and with a
 * callback's slice. Returns however the call ends: the operations that it used. */
uint64_t jrt_callback_run_for(struct jrt_task *task, void (*function)(void *), void *argument,
                              const char *kind);

#endif
