/* SPDX-License-Identifier: MIT */
/* Notes for traces. */
#ifndef JRT_TASK_NOTE_H
#define JRT_TASK_NOTE_H

#include "task/worker.h"

/*
 * Notes for traces, in note.c. Without a trace, each note is a load of a word in cache and a
 * branch that is never taken. A worker notes what a task of its scheduler does, or what is done to
 * it. `task` NULL: none.
 */
#define JRT_RECORDS __attribute__((cold)) /* the compiler moves calls of it away */

JRT_RECORDS void jrt_note_now(const struct jrt_worker *worker, enum jrt_trace_kind kind,
                              const struct jrt_task *task, uint64_t object, uint64_t amount);

static inline void jrt_note(const struct jrt_worker *worker, enum jrt_trace_kind kind,
                            const struct jrt_task *task, uint64_t object, uint64_t amount)
{
    if (jrt_unlikely(worker->trace != NULL)) jrt_note_now(worker, kind, task, object, amount);
}

/* Notes by any caller, even a thread that is no worker of the scheduler. The object is the task
 * that runs there. */
JRT_RECORDS void jrt_note_by_caller(janus_scheduler *scheduler, enum jrt_trace_kind kind,
                                    janus_task_id task, uint64_t amount);

/* A task begins on top of `below` (or NULL), begins to wait, or has ended. */
JRT_RECORDS void jrt_note_start(const struct jrt_worker *worker, const struct jrt_task *task,
                                const struct jrt_task *below);
JRT_RECORDS void jrt_note_park(const struct jrt_worker *worker, const struct jrt_task *task);
JRT_RECORDS void jrt_note_complete(const struct jrt_worker *worker, const struct jrt_task *task);

/* The current task goes on because `left` yielded; NULL: no task did. */
JRT_RECORDS void jrt_note_switch(const struct jrt_worker *worker, const struct jrt_task *left);

/* A task was recharged. */
JRT_RECORDS void jrt_note_recharge(const struct jrt_task *task, const janus_budget *amount);

/* The hash of all notes; 0: there is no trace. */
uint64_t jrt_trace_hash_of(const janus_scheduler *scheduler);

#endif
