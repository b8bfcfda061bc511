/* SPDX-License-Identifier: MIT */
/* Many new tasks on one worker: their spawner gives way, and a loop runs them in a row. The essay
 * is in crowd.c. */
#ifndef JRT_NURSERY_CROWD_H
#define JRT_NURSERY_CROWD_H

#include "work/work.h"

/* Whether enough new tasks lie on the shelf of the spawner's worker for the spawner to give way.
 * `worker` may be NULL. */
static inline bool jrt_crowd_is_there(const struct jrt_worker *worker)
{
    return worker != NULL && jrt_shelf_size(&worker->fresh_shelf) >= JRT_CROWD;
}

/* The current task gives way, if its turn may end here. [worker-again] after it. */
void jrt_crowd_give_way(struct jrt_worker *worker);

/* Whether jrt_crowd_run can run this task, which has not begun and has room on the strand. */
bool jrt_crowd_runs(const struct jrt_worker *worker, const struct jrt_task *task);

/* The loop runs a plain child, and after it the newest siblings on the shelf. Returns the
 * worker. */
struct jrt_worker *jrt_crowd_run(struct jrt_worker *worker, struct jrt_task *task);

#endif
