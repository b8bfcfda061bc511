/* SPDX-License-Identifier: MIT */
/* Spawning: a record, a count, a queue; in this order, so that a refusal leaves nothing behind. */
#include "base/options.h"
#include "task/nursery.h"

#include <string.h>

/* Counts one more live child where that is limited. */
static inline janus_status count_in(struct jrt_nursery *n)
{
    return jrt_likely(!n->limited) ? JANUS_OK : jrt_room_take(n);
}

/* The few words that make a clean record a task, [task-clean]. */
static inline void fill(struct jrt_task *task, struct jrt_nursery *n, janus_entry *entry,
                        void *argument, const janus_site *site)
{
    task->entry = entry;
    task->argument = argument;
    task->nursery = n;
    task->site = site;
    task->birth = n->birth;
}

/* Counts a child that is about to start, [nursery-count]. False: the nursery has been closed. */
static bool enter(struct jrt_nursery *n, struct jrt_worker *worker)
{
    if (jrt_likely(n->owner != NULL)) {
        if (worker != NULL && worker->current == n->owner && !n->folded) {
            n->local++;
        } else {
            /* relaxed: a living child starts it, so it cannot be the last to end. */
            jrt_fetch_add_relaxed(&n->pending, (int64_t)1);
        }
        return true;
    }
    /* A root: [sched-stop] changes the state and then looks at the count, we do the mirror
     * image. seq_cst: one of the two sees the other. */
    jrt_fetch_add_seq_cst(&n->pending, (int64_t)1);
    uint8_t state = jrt_load_seq_cst(&n->state); /* seq_cst: as above. */
    if (jrt_likely(state == JANUS_NURSERY_OPEN)) return true;
    jrt_nursery_count_off(n);
    return false;
}

static void start(struct jrt_nursery *n, struct jrt_worker *worker, struct jrt_task *task)
{
    if (worker != NULL && worker->scheduler == n->scheduler) {
        jrt_submit_fresh(worker, task);
    } else {
        jrt_submit_outside(n->scheduler, task);
    }
}

/* Takes back what a refused spawn has taken. */
static void refuse(struct jrt_nursery *n, struct jrt_worker *worker, struct jrt_task *task)
{
    if (task != NULL) jrt_task_retire(n->scheduler, worker, task);
    if (n->limited) jrt_room_give(n);
}

/* From elsewhere than the owner's hand, into a nursery that counts apart, or with no record at
 * hand. */
__attribute__((noinline)) static janus_status spawn_slowly(struct jrt_nursery *n,
                                                           janus_entry *entry, void *argument,
                                                           const janus_site *site)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (entry == NULL) return JANUS_INVALID;
    if (jrt_nursery_state(n) != JANUS_NURSERY_OPEN) return JANUS_CLOSED;
    janus_status status = count_in(n);
    if (status != JANUS_OK) return status;
    struct jrt_worker *worker = jrt_worker_self();
    struct jrt_task   *task = jrt_task_alloc(n->scheduler, worker);
    if (task == NULL) status = JANUS_NO_MEMORY;
    if (task != NULL) fill(task, n, entry, argument, site);
    if (task != NULL && !enter(n, worker)) status = JANUS_CLOSED;
    if (status != JANUS_OK) {
        refuse(n, worker, task);
        return status;
    }
    start(n, worker, task);
    return JANUS_OK;
}

janus_status janus_spawn_at(janus_nursery *nursery, janus_entry *entry, void *argument,
                            const janus_site *site)
{
    struct jrt_nursery *n = jrt_nursery_of(nursery);
    struct jrt_worker  *worker = jrt_worker_self();
    if (jrt_unlikely(worker == NULL || worker->current != n->owner || n->counted_apart != 0)) {
        return spawn_slowly(n, entry, argument, site);
    }
    jrt_worker_stack_check(worker); /* [stack-reserve] */
    struct jrt_task *task = worker->free;
    if (jrt_unlikely(task == NULL || entry == NULL || jrt_nursery_state(n) != JANUS_NURSERY_OPEN)) {
        return spawn_slowly(n, entry, argument, site);
    }
    worker->free = jrt_task_next(task);
    worker->free_count--;
    fill(task, n, entry, argument, site);
    n->local++;
    jrt_submit_fresh(worker, task);
    return JANUS_OK;
}

static janus_status decode_spawn(const janus_spawn_options *given, struct jrt_task *task,
                                 bool *unjoinable)
{
    janus_spawn_options options = {0};
    if (given == NULL) return JANUS_OK;
    if (!jrt_options_sane(given->struct_bytes, sizeof options)) return JANUS_INVALID;
    memcpy(&options, given, given->struct_bytes);
    if ((unsigned)options.priority > JANUS_PRIORITY_LOW) return JANUS_INVALID;
    if ((unsigned)options.cancel > JANUS_CANCEL_UNWIND) return JANUS_INVALID;
    if (options.stack_bytes != 0) {
        unsigned class = jrt_pool_stack_class(options.stack_bytes);
        if (class >= JRT_STACK_CLASSES) return JANUS_INVALID;
        task->stack_class = (uint8_t)class;
    }
    if (options.priority != JANUS_PRIORITY_DEFAULT) task->lane = (uint8_t)(options.priority - 1);
    task->cancel_mode = (uint8_t)options.cancel;
    *unjoinable = options.unjoinable;
    task->touched = true;
    task->name = options.name;
    task->site = options.site;
    return JANUS_OK;
}

janus_status janus_spawn_with(janus_nursery *nursery, janus_entry *entry, void *argument,
                              const janus_spawn_options *options, janus_task_id *out)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_nursery *n = jrt_nursery_of(nursery);
    if (nursery == NULL || entry == NULL) return JANUS_INVALID;
    if (jrt_nursery_state(n) != JANUS_NURSERY_OPEN) return JANUS_CLOSED;
    janus_status status = count_in(n);
    if (status != JANUS_OK) return status;
    struct jrt_worker *worker = jrt_worker_self();
    struct jrt_task   *task = jrt_task_alloc(n->scheduler, worker);
    bool               unjoinable = false;
    status = JANUS_NO_MEMORY;
    if (task != NULL) fill(task, n, entry, argument, NULL);
    if (task != NULL) status = decode_spawn(options, task, &unjoinable);
    if (status == JANUS_OK && !enter(n, worker)) status = JANUS_CLOSED;
    if (status != JANUS_OK) {
        refuse(n, worker, task);
        return status;
    }
    if (out != NULL) {
        task->joinable = !unjoinable;
        *out = jrt_task_id(task);
    }
    start(n, worker, task);
    return JANUS_OK;
}
