/* SPDX-License-Identifier: MIT */
/* What is told to traces. */
#ifndef JRT_TASK_NOTE_H
#define JRT_TASK_NOTE_H

#include "task/worker.h"

/*
 * For traces, from note.c. Where nothing is recorded, each is a load of a word that is at hand and
 * a branch that is never taken. By a worker: what a task of its scheduler does, or what is done to
 * it. `task` NULL: none.
 */
#define JRT_RECORDS __attribute__((cold)) /* calls of it are put out of the way */

JRT_RECORDS void jrt_note_now(const struct jrt_worker *worker, enum jrt_trace_kind kind,
                              const struct jrt_task *task, uint64_t object, uint64_t amount);

static inline void jrt_note(const struct jrt_worker *worker, enum jrt_trace_kind kind,
                            const struct jrt_task *task, uint64_t object, uint64_t amount)
{
    if (jrt_unlikely(worker->trace != NULL)) jrt_note_now(worker, kind, task, object, amount);
}

/* The same by whoever calls, also a thread that is no worker of the scheduler. The object is the
 * task that runs there. */
JRT_RECORDS void jrt_note_by_caller(janus_scheduler *scheduler, enum jrt_trace_kind kind,
                                    janus_task_id task, uint64_t amount);

/* A task begins on top of `below`, or NULL; waits; has ended. */
JRT_RECORDS void jrt_note_start(const struct jrt_worker *worker, const struct jrt_task *task,
                                const struct jrt_task *below);
JRT_RECORDS void jrt_note_park(const struct jrt_worker *worker, const struct jrt_task *task);
JRT_RECORDS void jrt_note_complete(const struct jrt_worker *worker, const struct jrt_task *task);

/* The current task goes on, for which `left` gave way; NULL: nobody did. */
JRT_RECORDS void jrt_note_switch(const struct jrt_worker *worker, const struct jrt_task *left);

/* A task got more. */
JRT_RECORDS void jrt_note_recharge(const struct jrt_task *task, const janus_budget *amount);

/* The hash of all that; 0: nothing is recorded. */
uint64_t jrt_trace_hash_of(const janus_scheduler *scheduler);

#endif
