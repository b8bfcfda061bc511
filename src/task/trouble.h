/* SPDX-License-Identifier: MIT */
/* What was refused last, for janus_explain. Facts only: the sentence is made when somebody asks. */
#ifndef JRT_TASK_TROUBLE_H
#define JRT_TASK_TROUBLE_H

#include "fiber/thread.h"

#include <janusrt/budget.h>
#include <janusrt/status.h>

struct janus_failure;
struct jrt_nursery;
struct jrt_terms;

/* What many tasks share, and may find full. */
enum jrt_table {
    JRT_TABLE_NONE,
    JRT_TABLE_BLOCKING, /* blocking calls that wait */
    JRT_TABLE_THREADS,  /* children with a thread of their own */
    JRT_TABLE_CHANNELS,
    JRT_TABLE_CAPS, /* derived capabilities */
    JRT_TABLE_KEPT, /* bytes held for tasks, ledger.c */
    JRT_TABLES
};

/* A child of `n` failed: the sentence for it. `why` is the reason of a panic. No lock is needed
 * before the child is counted off: the nurseries around it cannot end. */
void jrt_failure_sentence(struct jrt_nursery *n, const struct janus_failure *failure,
                          const char *why, char *buffer, size_t size);

/* Behind jrt_trouble. */
void jrt_trouble_note(janus_status status, janus_component component, uint64_t used,
                      uint64_t limit);

/* Notes that a table is full: for the terms whose limit was met; NULL, or the scheduler's counter:
 * for all tasks that no terms count. Returns the status. */
janus_status jrt_trouble_full(janus_status status, enum jrt_table table,
                              const struct jrt_terms *terms, uint64_t used, uint64_t limit);

/* Notes a refusal, of which so much is used of so much (0 of 0: there are no numbers); what was
 * noted with numbers is not overwritten by the same status without. Returns the status. */
static inline janus_status jrt_trouble(janus_status status, janus_component component,
                                       uint64_t used, uint64_t limit)
{
    if (jrt_unlikely(status < 0)) jrt_trouble_note(status, component, used, limit);
    return status;
}

#endif
