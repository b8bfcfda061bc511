/* SPDX-License-Identifier: MIT */
/* The records of failures: each in its nursery, the first also in the books of a run. */
#ifndef JRT_BOOKS_BOOKS_H
#define JRT_BOOKS_BOOKS_H

#include "task/task.h"

#include <janusrt/nursery.h>
#include <janusrt/scheduler.h>

/* The run's tasks and workers write the books. They are read when all have ended. */
struct jrt_run_books {
    _Atomic(uint64_t) failures;
    _Atomic(bool)     described; /* `first` is complete */
    janus_run_failure first;
    char             *deadlock; /* owned, report of the first deadlock, or NULL; roots_lock */
};

/* Describes the failure of a task that is about to be counted off. `name` and `site` stay
 * borrowed. */
void jrt_failure_describe(janus_failure *failure, const struct jrt_task *task);

/* Describes the panic of a task that is about to be counted off. The caller has zeroed *panic. */
void jrt_panic_describe(janus_panic_detail *panic, const struct jrt_task *task);

/* Keeps the failure that `n` counted last, if there is room. Under the lock of `n`. */
void jrt_failures_keep(struct jrt_nursery *n, const struct jrt_task *task);
void jrt_failures_free(struct jrt_nursery *n);

/* Notes that a child of `n` failed. The scheduler has books. */
void jrt_books_failure(struct jrt_nursery *n, const struct jrt_task *task);

/* Notes that a deadlock was broken. Takes the report; NULL: there was no memory for it. Under
 * roots_lock. */
void jrt_books_deadlock(struct jrt_run_books *books, char *report);

/* Copies the books to *out. */
void jrt_books_read(const struct jrt_run_books *books, janus_run_result *out);

/* NULL does nothing. */
void jrt_books_free(struct jrt_run_books *books);

#endif
