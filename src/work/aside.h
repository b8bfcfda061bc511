/* SPDX-License-Identifier: MIT */
/* Standing aside: a task that kept its worker too long lets the others run as long. The essay is in
 * aside.c. */
#ifndef JRT_WORK_ASIDE_H
#define JRT_WORK_ASIDE_H

#include "task/worker.h"

/* The current task is about to leave the CPU after a turn of `turn` ns, [aside-owe]. */
void jrt_aside_owe(struct jrt_worker *worker, struct jrt_task *task, uint64_t now, uint64_t turn);

/* A task has ended in a turn of `turn` ns, [aside-fresh]. */
void jrt_aside_ended(struct jrt_worker *worker, uint64_t now, uint64_t turn);

/* Whether a pick takes new tasks last. `yields`: the current task has called janus_yield. */
bool jrt_aside_fresh_last(struct jrt_worker *worker, bool yields, uint64_t now);

/* Whether a picked task must let the others run once more, [aside-owe]. */
bool jrt_aside_owes(struct jrt_worker *worker, const struct jrt_task *task, uint64_t now);

#endif
