/* SPDX-License-Identifier: MIT */
#include "task/run.h"

#include "task/nursery.h"

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
    return first->end->result;
}

janus_status jrt_run(const janus_scheduler_options *options, janus_entry *entry, void *argument,
                     struct jrt_run_end *out)
{
    janus_scheduler  *scheduler;
    janus_nursery     nursery;
    struct first_task first = {entry, argument, out};
    *out = (struct jrt_run_end){.closed = JANUS_OK};
    if (entry == NULL) return JANUS_INVALID;
    if (jrt_worker_self() != NULL) return JANUS_STATE;
    janus_status status = janus_scheduler_open(options, &scheduler);
    if (status != JANUS_OK) return status;
    status = janus_scheduler_start(scheduler);
    if (status == JANUS_OK) status = janus_nursery_open_in(scheduler, &nursery, NULL);
    if (status == JANUS_OK) {
        janus_status spawned = jrt_spawn_first(&nursery, run_first, &first);
        status = janus_nursery_end(&nursery, &out->first);
        if (spawned != JANUS_OK) status = spawned;
        /* relaxed: its tasks have ended. However they took it, that run was no success. */
        if (jrt_load_relaxed(&scheduler->deadlocked)) status = JANUS_DEADLOCK;
    }
    out->closed = janus_scheduler_close(scheduler);
    return status;
}
