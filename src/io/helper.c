/* SPDX-License-Identifier: MIT */
/*
 * Calls that may block, on helper threads.
 *
 * [help-begun]  The task waits in a readiness of its own, in its frame. A cancel ends the wait. If
 *   no helper has begun the job, the task takes it back, and nothing happened. Otherwise the task
 *   waits to the end of the call, because the helper uses the task's buffers, and the call's result
 *   counts. No cancel ends that second wait: a task may be cancelled more than once.
 */
#include "io/io.h"

#include "means/terms.h"
#include "nursery/nursery.h"
#include "sched/blocking.h"
#include "task/worker.h"

struct help {
    struct jrt_blocking_job job; /* first */
    struct jrt_ready        ready;
    janus_scheduler        *scheduler;
    void                    (*run)(void *argument);
    void                   *argument;
};

static void run_help(struct jrt_blocking_job *job)
{
    struct help *help = (struct help *)job;
    help->run(help->argument);
}

static void help_done(struct jrt_blocking_job *job)
{
    struct help     *help = (struct help *)job;
    janus_scheduler *scheduler = help->scheduler;
    jrt_ready_tell(&help->ready, JRT_READY_READ);          /* the task's frame may be gone */
    jrt_fetch_sub_relaxed(&scheduler->blocking_calls, 1u); /* relaxed: a count. */
}

janus_status jrt_io_help(void (*run)(void *argument), void *argument)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (worker == NULL) {
        run(argument);
        return JANUS_OK;
    }
    struct jrt_task *task = worker->current;
    janus_scheduler *scheduler = worker->scheduler;
    if (jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE) {
        return jrt_task_cancelled_only(task);
    }
    struct help help = {
        .job = {.run = run_help, .done = help_done, .party = jrt_terms_blocking(task)},
        .scheduler = scheduler,
        .run = run,
        .argument = argument,
    };
    jrt_fetch_add_relaxed(&scheduler->blocking_calls, 1u); /* relaxed: a count. */
    janus_status status = jrt_blocking_submit(&scheduler->blocking, &help.job);
    if (status != JANUS_OK) {
        jrt_fetch_sub_relaxed(&scheduler->blocking_calls, 1u); /* relaxed: as above. */
        return jrt_terms_blocking_refused(scheduler, &help.job, status);
    }
    status = jrt_io_pause(&help.ready, JRT_NEVER, JRT_WAIT_FILE);
    if (status == JANUS_OK) return JANUS_OK;
    if (jrt_blocking_withdraw(&scheduler->blocking, &help.job)) { /* [help-begun] */
        jrt_fetch_sub_relaxed(&scheduler->blocking_calls, 1u);    /* relaxed: as above. */
        return status;
    }
    jrt_io_pause_to_end(&help.ready);
    jrt_debug_invariant("help-begun", jrt_list_empty(&help.job.item.link));
    return JANUS_OK;
}
