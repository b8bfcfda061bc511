/* SPDX-License-Identifier: MIT */
/*
 * Books of a run.
 *
 * [books-first]  The task that raises `failures` from 0 describes itself, and sets `described` when
 *   it is done. A task notes its failure before the nursery counts it off. So the first failure
 *   noted is where an error began, not a task above that passed the error on. Names and nurseries
 *   still exist then.
 */
#include "books/books.h"

#include "means/trouble.h"
#include "plat/name.h"
#include "task/nursery.h"
#include "task/purse.h"
#include "task/task.h"
#include "task/worker.h"

#include <stdlib.h>
#include <string.h>

void jrt_failure_describe(janus_failure *failure, const struct jrt_task *task)
{
    *failure = (janus_failure){.task = jrt_task_id(task), .error = task->landing.result};
    failure->panic = (janus_panic_kind)task->panic;
    jrt_name_again(failure->name, sizeof failure->name, jrt_task_name(task));
    if (task->site != NULL) failure->site = *task->site;
    if (task->purse == NULL || task->landing.result != JANUS_BUDGET_EXHAUSTED) return;
    const struct jrt_purse *purse = task->purse;
    failure->lacks = purse->lacks;
    if (purse->rare == NULL) return;
    failure->limit = purse->rare->limit;
    failure->used = failure->limit - janus_budget_get(&purse->rare->had, purse->lacks);
}

void jrt_panic_describe(janus_panic_detail *panic, const struct jrt_task *task)
{
    panic->kind = (janus_panic_kind)task->panic;
    panic->task = true;
    panic->fiber_id = jrt_task_id(task);
    const struct jrt_stack_class *classes = task->nursery->scheduler->depot->classes;
    panic->stack_bytes = classes[task->stack_class].promised_bytes;
    jrt_name_again(panic->name, sizeof panic->name, jrt_task_name(task));
    if (task->panic == JANUS_PANIC_KIND_STACK_OVERFLOW) {
        panic->fault_address = task->fault_data;
        panic->code_address = task->fault_code;
        bool seen = task->fault_code != NULL; /* otherwise a canary found it, [strand-canary] */
        panic->guard = seen ? task->nursery->scheduler->depot->ladder.rung : JANUS_GUARD_CANARY;
    } else if (task->fault_data != NULL) {
        (void)jrt_text_copy(panic->message, sizeof panic->message, task->fault_data);
    }
}

/* Why a task panicked. */
static const char *panic_reason(const struct jrt_task *task)
{
    if (task->panic == JANUS_PANIC_KIND_STACK_OVERFLOW)
        return "its stack overflowed: spawn it with a larger stack_bytes";
    return task->fault_data != NULL ? task->fault_data
                                    : "the reason is lost: the system refused memory for it";
}

void jrt_books_failure(struct jrt_nursery *n, const struct jrt_task *task)
{
    struct jrt_run_books *books = n->scheduler->books;
    /* relaxed: [books-first] orders the rest. */
    if (jrt_fetch_add_relaxed(&books->failures, (uint64_t)1) != 0) return;
    /* relaxed: only the first writes it, and that is we. */
    jrt_debug_invariant("books-first", !jrt_load_relaxed(&books->described));
    janus_run_failure *first = &books->first;
    janus_failure      failure = {.task = 0};
    jrt_failure_describe(&failure, task);
    first->task = failure.task;
    first->error = failure.error;
    first->panic = failure.panic;
    first->line = failure.site.line;
    jrt_name_again(first->name, sizeof first->name, failure.name);
    if (failure.site.file != NULL) {
        (void)jrt_name_copy(first->file, sizeof first->file, failure.site.file);
        failure.site.file = first->file;
    }
    char reason[JRT_MESSAGE_BYTES];
    (void)jrt_text_copy(reason, sizeof reason, panic_reason(task));
    jrt_failure_sentence(n, &failure, reason, first->text, sizeof first->text);
    jrt_store_release(&books->described, true); /* release: *first. */
}

void jrt_books_deadlock(struct jrt_run_books *books, char *report)
{
    if (books == NULL || books->deadlock != NULL) {
        free(report);
        return;
    }
    books->deadlock = report;
}

/* Copies whole lines, as many as fit. */
static void copy_lines(char *to, size_t size, const char *from)
{
    size_t length = strnlen(from, size - 1);
    if (from[length] != '\0') {
        while (length > 0 && from[length - 1] != '\n') length--;
    }
    memcpy(to, from, length);
    to[length] = '\0';
}

void jrt_books_read(const struct jrt_run_books *books, janus_run_result *out)
{
    out->failures = jrt_load_relaxed(&books->failures); /* relaxed: a count. */
    /* acquire: `first`. */
    if (jrt_load_acquire(&books->described)) out->first = books->first;
    if (books->deadlock == NULL) return;
    copy_lines(out->deadlock_text, sizeof out->deadlock_text, books->deadlock);
}

void jrt_books_free(struct jrt_run_books *books)
{
    if (books != NULL) free(books->deadlock);
    free(books);
}
