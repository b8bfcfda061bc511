/* SPDX-License-Identifier: MIT */
/*
 * The records of purses.
 *
 * [purse-spare]  A worker keeps the purses of tasks that ended on it for tasks that it starts.
 *   Allocated and freed by the thousand, malloc would return them to the system every time.
 *
 * [purse-lodged]  A task that needs a purse while it runs has a stack, whose upper page it has
 *   touched. So its purse lies there, above the strand, and costs no memory. A purse from malloc
 *   would be a sixteenth of a task that waits for a message. A task's end closes its purse, on its
 *   own strand, before that is free. These purses come from malloc:
 *   - of a task that has not begun: it has no stack yet;
 *   - of a task on top of one whose purse lies there already;
 *   - of a resident task, which may rest without a stack;
 *   - those made on a rescue strand, where the task does not end;
 *   - those of scopes: a task may have many scopes.
 */
#include "task/purse.h"

#include "base/assert.h"
#include "heap/poison.h"
#include "plat/world.h"
#include "task/nursery.h"
#include "task/task.h"
#include "task/worker.h"

#include <stdlib.h>
#include <string.h>

enum { PURSES_MAX = 1024 }; /* spare purses of a worker, [purse-spare]; some 300 KiB */

/* Whether the books have no more of a share than the share has: without limits, they have none. */
static bool is_booked(const struct jrt_admission *admission)
{
    if (admission->account == NULL) return true;
    return janus_budget_lacks(admission->share, admission->booked) == JANUS_COMPONENT_NONE;
}

/* The place for the purse of a task that runs on this worker's strand; NULL: no place is free. */
static struct jrt_purse *lodge(const struct jrt_worker *worker, const struct jrt_task *task)
{
    if (worker == NULL || worker->current != task) return NULL;
    /* relaxed: its own. */
    if (jrt_load_relaxed(&task->state) != JANUS_TASK_STATE_RUNNING) return NULL;
    struct jrt_strand *strand = worker->strand;
    if (strand->lodging != JRT_LODGING_FREE || (task->dirty && task->resident)) return NULL;
    strand->lodging = JRT_LODGING_USED;
    struct jrt_purse *purse = (struct jrt_purse *)(void *)((char *)strand + JRT_STRAND_BYTES);
    memset(purse, 0, sizeof *purse);
    purse->lodged = true;
    return purse;
}

static void move_out(struct jrt_purse *purse)
{
    struct jrt_strand *strand = (struct jrt_strand *)(void *)((char *)purse - JRT_STRAND_BYTES);
    jrt_debug_invariant("purse-lodged", strand->lodging == JRT_LODGING_USED);
    strand->lodging = JRT_LODGING_FREE;
}

/* Only the link of a spare purse is touched; AddressSanitizer guards the rest. */
static struct jrt_purse *take(struct jrt_worker *worker)
{
    if (worker == NULL || worker->purses == NULL) return jrt_calloc(1, sizeof(struct jrt_purse));
    struct jrt_purse *purse = worker->purses;
    jrt_debug_invariant("purse-spare", worker->purses_count > 0);
    worker->purses = purse->next;
    worker->purses_count--;
    jrt_unpoison(purse, sizeof *purse);
    memset(purse, 0, sizeof *purse);
    return purse;
}

void jrt_purse_put_aside(struct jrt_worker *worker, struct jrt_purse *purse)
{
    if (purse->lodged) {
        move_out(purse);
        return;
    }
    if (worker == NULL || worker->purses_count == PURSES_MAX) {
        free(purse);
        return;
    }
    purse->next = worker->purses;
    worker->purses = purse;
    worker->purses_count++;
    jrt_poison(&purse->left, sizeof *purse - offsetof(struct jrt_purse, left));
}

void jrt_purses_drop(struct jrt_worker *worker)
{
    while (worker->purses != NULL) {
        struct jrt_purse *purse = worker->purses;
        worker->purses = purse->next;
        jrt_unpoison(purse, sizeof *purse);
        free(purse);
    }
    worker->purses_count = 0;
}

static struct jrt_purse *make(struct jrt_task *task, struct jrt_purse *purse)
{
    if (purse == NULL) purse = take(jrt_worker_self());
    if (purse == NULL) return NULL;
    purse->task = task;
    task->purse = purse;
    task->dirty = true;
    return purse;
}

struct jrt_purse_rare *jrt_purse_rare(struct jrt_purse *purse)
{
    if (purse->rare == NULL) purse->rare = jrt_calloc(1, sizeof *purse->rare);
    return purse->rare;
}

struct jrt_purse *jrt_purse_need(struct jrt_task *task)
{
    if (task->purse != NULL) return task->purse;
    struct jrt_purse *purse = make(task, lodge(jrt_worker_self(), task));
    if (purse == NULL) return NULL;
    const janus_budget *given = &task->nursery->scheduler->task_budget;
    purse->left = purse->granted = *given;
    purse->handed = jrt_first_slice(task->nursery->scheduler); /* [purse-fuel] */
    purse->left.ops -= (uint64_t)purse->handed;
    purse->started = true;
    return purse;
}

struct jrt_purse *jrt_purse_make(struct jrt_task *task, const struct jrt_admission *admission)
{
    struct jrt_purse *purse = make(task, NULL);
    if (purse == NULL) return NULL;
    jrt_debug_invariant("terms-energy", is_booked(admission));
    purse->left = admission->share;
    purse->granted = admission->account != NULL ? admission->booked : admission->share;
    purse->account = admission->account;
    purse->hard = admission->account != NULL;
    return purse;
}
