/* SPDX-License-Identifier: MIT */
/* What is kept of failures: of each in its nursery, of the first in the books of a run. */
#ifndef JRT_NURSERY_BOOKS_H
#define JRT_NURSERY_BOOKS_H

#include "task/task.h"

#include <janusrt/nursery.h>
#include <janusrt/scheduler.h>

/* Written by the run's tasks and workers, read when they have ended. */
struct jrt_run_books {
    _Atomic(uint64_t) failures;
    _Atomic(bool)     described; /* `first` is complete */
    janus_run_failure first;
    char             *deadlock; /* owned; the report of the first; roots_lock. NULL: none */
};

/* The failure of a task that is about to be counted off; `name` and `site` stay borrowed. */
void jrt_failure_describe(janus_failure *failure, const struct jrt_task *task);

/* The panic of such a task; *panic is zero before. */
void jrt_panic_describe(janus_panic_info *panic, const struct jrt_task *task);

/* A child of `n` failed, and the scheduler has books. */
void jrt_books_failure(struct jrt_nursery *n, const struct jrt_task *task);

/* A deadlock was broken. Takes the report; NULL: there was no memory for it. roots_lock. */
void jrt_books_deadlock(struct jrt_run_books *books, char *report);

/* Copies what the books say to *out. */
void jrt_books_read(const struct jrt_run_books *books, janus_run_result *out);

/* NULL: does nothing. */
void jrt_books_free(struct jrt_run_books *books);

#endif
