/* SPDX-License-Identifier: MIT */
/* Schedulers for one call, and the public calls that make and end them: they may be explored. */
#include "rt/run.h"

#include "base/options.h"
#include "base/outside.h"
#include "books/books.h"
#include "nursery/nursery.h"
#include "task/upcalls.h"
#include "task/worker.h"

#include <stdlib.h>

struct first_task {
    janus_entry        *entry;
    void               *argument;
    struct jrt_run_end *end;
};

static int64_t run_first(void *argument)
{
    struct first_task *first = argument;
    struct jrt_worker *worker = jrt_worker_self();
    worker->scheduler->first = worker->current;
    first->end->began = true;
    first->end->result = first->entry(first->argument);
    first->end->returned = true;
    return first->end->result;
}

/* Runs the first task in an open scheduler. */
static janus_status run_in(janus_scheduler *scheduler, struct first_task *first,
                           struct jrt_run_end *out)
{
    janus_nursery nursery;
    janus_status  status = jrt_scheduler_start(scheduler);
    if (status == JANUS_OK) {
        status = janus_nursery_open_in(scheduler, &nursery, JANUS_NURSERY_OPTIONS(.name = "run"));
    }
    if (status != JANUS_OK) return status;
    janus_status spawned = jrt_spawn_first(&nursery, run_first, first);
    status = janus_nursery_end(&nursery, &out->first);
    if (spawned != JANUS_OK) status = spawned;
    /* relaxed: its tasks have ended. A run with a deadlock is no success, however its tasks
     * reacted. */
    if (jrt_load_relaxed(&scheduler->deadlocked)) status = JANUS_DEADLOCK;
    return status;
}

static void tell(const struct jrt_run_end *end, const struct jrt_run_books *books,
                 janus_status status)
{
    janus_run_result *told = end->told;
    told->deadlock = status == JANUS_DEADLOCK;
    told->returned = end->returned;
    told->result = end->result;
    jrt_books_read(books, told);
}

janus_status jrt_run(const janus_scheduler_options *options, janus_entry *entry, void *argument,
                     struct jrt_run_end *out)
{
    janus_scheduler      *scheduler;
    struct jrt_run_books *books = NULL;
    struct first_task     first = {entry, argument, out};
    *out = (struct jrt_run_end){.told = out->told, .closed = JANUS_OK};
    if (entry == NULL) return JANUS_INVALID;
    if (jrt_worker_self() != NULL) return JANUS_STATE;
    if (out->told != NULL) {
        books = jrt_calloc(1, sizeof *books);
        if (books == NULL) return JANUS_NO_MEMORY;
    }
    janus_status status = jrt_scheduler_open(options, &scheduler);
    if (status == JANUS_OK) {
        scheduler->books = books; /* before its threads start */
        status = run_in(scheduler, &first, out);
        out->closed = jrt_scheduler_close(scheduler);
        if (books != NULL) tell(out, books, status);
    }
    /* A scheduler that cannot be closed stays behind, and its tasks may still fail. */
    if (out->closed == JANUS_OK) jrt_books_free(books);
    return status;
}

/* The public calls. */

/* As it is, or as the explorer wants it that watches this process. */
static janus_status run(const janus_scheduler_options *options, janus_entry *entry, void *argument,
                        struct jrt_run_end *end)
{
    jrt_outside_call_long(); /* [turn-call] */
    return jrt_upcalls.explored() ? jrt_upcalls.explored_run(options, entry, argument, end)
                                  : jrt_run(options, entry, argument, end);
}

janus_status janus_run(const janus_scheduler_options *options, janus_entry *entry, void *argument,
                       int64_t *out_result)
{
    struct jrt_run_end end = {.told = NULL};
    janus_status       status = run(options, entry, argument, &end);
    if (out_result != NULL) *out_result = end.result;
    return status;
}

janus_status janus_run_with(const janus_scheduler_options *options, janus_entry *entry,
                            void *argument, janus_run_result *out)
{
    janus_run_result   told = {.struct_bytes = 0};
    struct jrt_run_end end = {.told = &told};
    if (out == NULL || !jrt_struct_sane(out->struct_bytes, sizeof told)) {
        jrt_outside_call(); /* [turn-call] */
        return JANUS_INVALID;
    }
    told.status = run(options, entry, argument, &end);
    jrt_struct_give(out, &told);
    return told.status;
}

janus_status janus_scheduler_create_with(const janus_scheduler_options *options,
                                         janus_scheduler              **out)
{
    jrt_outside_call_long(); /* [turn-call] */
    return jrt_upcalls.explored_open(options, out);
}

janus_status janus_scheduler_start(janus_scheduler *scheduler)
{
    jrt_outside_call_long(); /* [turn-call] */
    if (scheduler == NULL) return JANUS_INVALID;
    janus_status status = jrt_scheduler_start(scheduler);
    if (status == JANUS_OK) jrt_upcalls.explored_started();
    return status;
}

janus_status janus_scheduler_destroy(janus_scheduler *scheduler)
{
    jrt_outside_call_long(); /* [turn-call] */
    janus_status status = jrt_scheduler_close(scheduler);
    if (status == JANUS_OK && scheduler != NULL) jrt_upcalls.explored_closed();
    return status;
}
