/* SPDX-License-Identifier: MIT */
/* Parking: how a task begins to wait, and waits. The essay is in park.c. */
#ifndef JRT_CANCEL_PARK_H
#define JRT_CANCEL_PARK_H

#include "task/task.h"

/* Announces that the current task is about to wait, before it is registered anywhere. */
void jrt_task_park_begin(struct jrt_task *task, enum jrt_wait wait);

/* Leaves the CPU until woken. Returns the waker's status. A wake since park_begin counts. */
janus_status jrt_task_park(struct jrt_worker *worker, struct jrt_task *task);

/* Takes park_begin back. False: a waker has come already. Then the caller must call park, which
 * returns at once. */
bool jrt_task_park_undo(struct jrt_task *task);

/*
 * Parks the current task, which is registered with its waker and has set PARKING. This is the
 * other half of [cancel-park]. OK comes only from a waker. On any other status (CANCELLED,
 * DEADLOCK, NO_MEMORY, a waker's own), its registration may still exist.
 */
janus_status jrt_task_park_cancellable(struct jrt_task *task);

/* Parks like jrt_task_park_cancellable. `next`, whose wait the caller has ended and which is in no
 * queue, is queued, or runs next: [wait-hand]. */
janus_status jrt_task_park_for(struct jrt_task *task, struct jrt_task *next);

/*
 * Parks like jrt_task_park_cancellable, as the last thing that a call does. When the wait has
 * ended with `ended`, the arriving worker calls finish(worker, task, ended) on the strand. The
 * result goes to the caller, [task-finish].
 */
janus_status jrt_task_park_then(struct jrt_worker *worker, struct jrt_task *task,
                                jrt_finish *finish);

/*
 * Parks like jrt_task_park_then, without its checks. The task can leave the CPU, is linked, and is
 * in no shield and in no fiber of its own. Its worker has no trace. Such a task begins with
 * jrt_task_park_begin_fast, under the lock that it is registered under.
 */
janus_status jrt_task_park_fast(struct jrt_worker *worker, struct jrt_task *task,
                                jrt_finish *finish);

static inline void jrt_task_park_begin_fast(struct jrt_task *task, enum jrt_wait wait)
{
    jrt_store_relaxed(&task->wait, (uint8_t)wait); /* relaxed: for dumps. */
    /* relaxed: nobody knows yet that it waits. Registration makes it visible. */
    jrt_store_relaxed(&task->park, (uint32_t)(JRT_PARKING | JRT_INTERRUPTIBLE | JRT_BREAKABLE));
}

/* Does the work of jrt_task_park_cancellable in a shield. */
janus_status jrt_shield_park(struct jrt_task *task);

#endif
