/* SPDX-License-Identifier: MIT */
/* Tasks of several workers that always meet in channels run on one. The essay is in herd.c. */
#ifndef JRT_WORK_HERD_H
#define JRT_WORK_HERD_H

#include "work/work.h"

/* Retreats in a row that still make a doze longer, [idle-doze]. */
enum { JRT_RETREATS_MAX = 7 };

/* Judges the operations of the current task since the last look: `ops` in `lasted_ns`. */
void jrt_herd_judge(struct jrt_worker *worker, struct jrt_task *task, uint64_t lasted_ns,
                    uint64_t ops);

/* For a pick, when the current task leaves the CPU or no task runs. True: the worker takes no task
 * that waits here. It goes to its loop, offers them to the worker that was met, and is idle. */
bool jrt_herd_leaves(struct jrt_worker *worker);

/* Takes the tasks of the worker that offers them. */
void jrt_herd_take(struct jrt_worker *worker);

/* A worker that retreated has found tasks again: looks soon whether they herd. */
void jrt_herd_begin(struct jrt_worker *worker);

/* How often the shortest doze is doubled, + 1, after retreats; 0: no doze. */
static inline uint32_t jrt_herd_doublings(const struct jrt_worker *worker)
{
    return worker->herd.retreats != 0 ? worker->herd.retreats + 3 : 0;
}

/* At a look at the clock. */
static inline void jrt_herd_look(struct jrt_worker *worker, struct jrt_task *task,
                                 uint64_t lasted_ns, uint64_t ops)
{
    /* relaxed: a hint; taking it acquires. */
    if (jrt_unlikely(jrt_load_relaxed(&worker->offered) != 0)) jrt_herd_take(worker);
    if (jrt_likely(task == NULL)) return;
    if (jrt_unlikely(worker->herd.waited_ns != 0 ||
                     (worker->herd.meets | worker->herd.retreats) != 0 || task->herds)) {
        jrt_herd_judge(worker, task, lasted_ns, ops);
    }
}

#endif
