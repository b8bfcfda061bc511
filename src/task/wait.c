/* SPDX-License-Identifier: MIT */
/* What the current task can do: sleep, call what blocks, defer, shield, join. */
#include "fiber/exit.h"
#include "task/nursery.h"

#include <stdlib.h>

static struct jrt_task *current(void)
{
    struct jrt_worker *worker = jrt_worker_self();
    return worker != NULL ? worker->current : NULL;
}

/*
 * Parks the current task, which is registered where somebody will wake it and has said PARKING. The
 * other half of [cancel-park]. CANCELLED: its registration is still there.
 */
static janus_status park_unless_cancelled(struct jrt_task *task)
{
    jrt_task_link(task);
    jrt_fence_light_seq_cst(); /* seq_cst: [cancel-park]. */
    bool cancelled = jrt_task_cancel_reason(task) != JANUS_CANCEL_NONE;
    if (cancelled && jrt_task_park_cancel(task)) return JANUS_CANCELLED;
    return jrt_task_park(jrt_worker_self(), task);
}

uint64_t janus_now_ns(void) { return jrt_clock_now_ns(); }

static void ring_sleeper(struct jrt_alarm *alarm) { (void)jrt_task_wake(alarm->subject, JANUS_OK); }

static janus_status sleep_thread(uint64_t deadline_ns)
{
    _Atomic(uint32_t) word = 0;
    while (jrt_futex_wait_until(&word, 0, deadline_ns)) continue;
    return JANUS_OK;
}

janus_status janus_sleep_until(uint64_t deadline_ns)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (worker == NULL) return sleep_thread(deadline_ns);
    struct jrt_task *task = worker->current;
    if (jrt_task_cancel_reason(task) != JANUS_CANCEL_NONE) return jrt_task_obey(task);
    if (jrt_clock_now_ns() >= deadline_ns) return janus_yield();
    if (!jrt_worker_can_leave(worker)) return JANUS_NO_MEMORY;
    struct jrt_alarm alarm = {.ring = ring_sleeper, .subject = task};
    jrt_task_park_begin(task, JRT_WAIT_SLEEP);
    if (!jrt_sched_timer_arm(worker->scheduler, &alarm.timer, deadline_ns)) {
        (void)jrt_task_park_cancel(task);
        return JANUS_NO_MEMORY;
    }
    janus_scheduler *scheduler = worker->scheduler;
    janus_status     status = park_unless_cancelled(task);
    jrt_sched_timer_disarm(scheduler, &alarm.timer);
    return status == JANUS_CANCELLED ? jrt_task_obey(task) : status;
}

janus_status janus_sleep(uint64_t duration_ns)
{
    uint64_t now = jrt_clock_now_ns();
    return janus_sleep_until(now + duration_ns < now ? JRT_NEVER - 1 : now + duration_ns);
}

/* Blocking calls. */

struct call {
    struct jrt_blocking_job job; /* first */
    struct jrt_task        *task;
    janus_scheduler        *scheduler;
    janus_entry            *function;
    void                   *argument;
    int64_t                 result;
    _Atomic(bool)           done;
};

static void run_call(struct jrt_blocking_job *job)
{
    struct call       *call = (struct call *)job;
    struct jrt_thread *thread = jrt_thread_self();
    thread->helps = call->scheduler; /* one call after the other, so it was NULL */
    job->spoilt = !jrt_call_guarded(call->function, call->argument, &call->result);
    thread->helps = NULL;
}

static void call_done(struct jrt_blocking_job *job)
{
    struct call     *call = (struct call *)job;
    struct jrt_task *task = call->task;
    janus_scheduler *scheduler = call->scheduler;
    jrt_store_release(&call->done, true);                  /* release: the result. */
    (void)jrt_task_wake(task, JANUS_OK);                   /* the call's memory may be gone */
    jrt_fetch_sub_relaxed(&scheduler->blocking_calls, 1u); /* relaxed: a count. */
}

janus_status janus_blocking(janus_entry *function, void *argument, int64_t *out_result)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (function == NULL) return JANUS_INVALID;
    if (worker == NULL) {
        int64_t result = function(argument);
        if (out_result != NULL) *out_result = result;
        return JANUS_OK;
    }
    struct jrt_task *task = worker->current;
    if (jrt_task_cancel_reason(task) != JANUS_CANCEL_NONE) return jrt_task_obey(task);
    if (!jrt_worker_can_leave(worker)) return JANUS_NO_MEMORY;
    struct call call = {.job = {.run = run_call, .done = call_done},
                        .task = task,
                        .scheduler = worker->scheduler,
                        .function = function,
                        .argument = argument};
    jrt_task_park_begin(task, JRT_WAIT_BLOCKING);
    jrt_fetch_add_relaxed(&worker->scheduler->blocking_calls, 1u); /* relaxed: a count. */
    janus_status status = jrt_blocking_submit(&worker->scheduler->blocking, &call.job);
    if (status != JANUS_OK) {
        jrt_fetch_sub_relaxed(&worker->scheduler->blocking_calls, 1u); /* relaxed: as above. */
        (void)jrt_task_park_cancel(task);
        return status;
    }
    jrt_task_link(task);
    (void)jrt_task_park(worker, task);
    jrt_invariant("task-park", jrt_load_acquire(&call.done)); /* acquire: the result. */
    if (jrt_unlikely(call.job.spoilt)) {
        janus_panic("a blocking call ended its thread (pthread_exit or pthread_cancel)");
    }
    if (out_result != NULL) *out_result = call.result;
    return JANUS_OK;
}

/* Defers, shields, what belongs to the task. */

janus_status janus_defer(void (*function)(void *), void *argument)
{
    struct jrt_task *task = current();
    if (function == NULL) return JANUS_INVALID;
    if (task == NULL) return JANUS_STATE;
    struct jrt_defer *defer = malloc(sizeof *defer);
    if (defer == NULL) return JANUS_NO_MEMORY;
    *defer = (struct jrt_defer){task->defers, function, argument};
    task->defers = defer;
    task->touched = true;
    return JANUS_OK;
}

void janus_shield_begin(void)
{
    struct jrt_task *task = current();
    if (task != NULL) jrt_task_shield(task, 1);
}

void janus_shield_end(void)
{
    struct jrt_task *task = current();
    if (task != NULL) jrt_task_shield(task, -1);
}

janus_task_id janus_task_self(void)
{
    struct jrt_task *task = current();
    return task != NULL ? jrt_task_id(task) : 0;
}

void **janus_task_local(void)
{
    struct jrt_task *task = current();
    if (task == NULL) return NULL;
    task->touched = true; /* the caller may write there */
    return &task->local;
}

/* Joining. */

/* Takes an ended child off the nursery's list; under its lock. */
static struct jrt_task *take_finished(struct jrt_nursery *n, janus_task_id id)
{
    struct jrt_record *before = NULL;
    struct jrt_record *record = n->finished != NULL ? &n->finished->record : NULL;
    for (; record != NULL; before = record, record = record->next) {
        struct jrt_task *task = (struct jrt_task *)record;
        if (jrt_task_id(task) != id) continue;
        if (before != NULL) before->next = record->next;
        if (before == NULL) n->finished = (struct jrt_task *)record->next;
        return task;
    }
    return NULL;
}

/* Whether an id names a child of this nursery that has not ended; under its lock. */
static bool is_running_child(struct jrt_nursery *n, janus_task_id id)
{
    uint32_t index = (uint32_t)(id >> 32);
    if (index == 0) return false;
    struct jrt_task *task = jrt_roster_find(&n->scheduler->roster, index - 1);
    return task != NULL && jrt_task_peek_joinable(task, n, id);
}

janus_status janus_join(janus_nursery *nursery, janus_task_id id, int64_t *out_result)
{
    struct jrt_nursery *n = jrt_nursery_of(nursery);
    struct jrt_task    *task = current();
    if (n->owner != task || task == NULL) return JANUS_STATE;
    for (;;) {
        struct jrt_worker *worker = jrt_worker_self();
        if (!jrt_worker_can_leave(worker)) return JANUS_NO_MEMORY;
        jrt_task_park_begin(task, JRT_WAIT_JOIN);
        pthread_mutex_lock(&n->lock);
        struct jrt_task *child = take_finished(n, id);
        bool             running = child == NULL && is_running_child(n, id);
        if (running) n->waiter = task;
        pthread_mutex_unlock(&n->lock);
        if (child != NULL || !running) (void)jrt_task_park_cancel(task);
        if (child != NULL) {
            int64_t result = child->landing.result;
            bool    failed = child->panic != JANUS_PANIC_NONE || result < 0;
            jrt_task_retire(n->scheduler, worker, child);
            if (out_result != NULL) *out_result = result;
            return failed ? JANUS_CHILD_FAILED : JANUS_OK;
        }
        if (!running) return JANUS_STALE;
        if (park_unless_cancelled(task) != JANUS_CANCELLED) continue;
        pthread_mutex_lock(&n->lock);
        if (n->waiter == task) n->waiter = NULL;
        pthread_mutex_unlock(&n->lock);
        return jrt_task_obey(task);
    }
}
