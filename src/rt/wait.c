/* SPDX-License-Identifier: MIT */
/* Waits of the current task: sleep, blocking calls. */
#include "cancel/wait.h"
#include "cancel/cancel.h"
#include "fiber/exit.h"
#include "means/call.h"
#include "means/holder.h"
#include "means/terms.h"
#include "means/trouble.h"
#include "nursery/nursery.h"
#include "nursery/pay.h"
#include "task/purse.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/work.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

uint64_t janus_now_ns(void)
{
    jrt_point(); /* a task that polls the clock lets others go on, [sim-time] */
    return jrt_clock_now_ns();
}

static janus_status join_nobody(struct jrt_waiting *waiting, struct jrt_task *task)
{
    (void)waiting, (void)task;
    return JANUS_WOULD_WAIT;
}

static janus_status as_it_ended(struct jrt_waiting *waiting, struct jrt_task *task,
                                janus_status ended)
{
    (void)waiting, (void)task;
    return ended;
}

static janus_status sleep_thread(uint64_t deadline_ns)
{
    _Atomic(uint32_t) word = 0;
    if (jrt_thread_self()->calls_back) return JANUS_DEADLINE; /* [callback-plain] */
    while (jrt_futex_wait_until(&word, 0, deadline_ns)) continue;
    return JANUS_OK;
}

janus_status janus_sleep_until(uint64_t deadline_ns)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_worker *worker = jrt_worker_self();
    if (deadline_ns == JRT_NEVER) deadline_ns = JRT_NEVER - 1; /* the timer needs a finite time */
    if (worker == NULL) return sleep_thread(deadline_ns);
    struct jrt_task *task = worker->current;
    if (jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE)
        return jrt_task_cancelled_or_end(task);
    if (jrt_clock_now_ns() >= deadline_ns) return janus_yield();
    struct jrt_waiting waiting = {.why = JRT_WAIT_SLEEP,
                                  .sleeps = true,
                                  .deadline_ns = deadline_ns,
                                  .join = join_nobody,
                                  .leave = as_it_ended};
    janus_status       status = jrt_wait(worker, &waiting);
    return status == JANUS_CANCELLED ? jrt_task_cancelled_or_end(task) : status;
}

janus_status janus_sleep(uint64_t duration_ns)
{
    uint64_t now = jrt_clock_now_ns();
    return janus_sleep_until(now + duration_ns < now ? JRT_NEVER - 1 : now + duration_ns);
}

/* Blocking calls. */

struct call {
    struct jrt_blocking_job job; /* first */
    struct jrt_waiting      waiting;
    struct jrt_task        *task;
    janus_scheduler        *scheduler;
    janus_entry            *function;
    void                   *argument;
    int64_t                 result;
    enum jrt_guarded_end    end;
    int                     error; /* errno, before and after the call */
    _Atomic(bool)           done;
    char                    panic[JRT_MESSAGE_BYTES]; /* PANICKED: the reason */
};

static void run_call(struct jrt_blocking_job *job)
{
    struct call       *call = (struct call *)job;
    struct jrt_thread *thread = jrt_thread_self();
    thread->helps = call->scheduler; /* a helper makes one call after the other, so it was NULL */
    thread->behalf = call->task;     /* the waiting task, whose limits hold here, too */
    errno = call->error;
    call->end = jrt_call_guarded(call->function, call->argument, NULL, &call->result);
    call->error = errno; /* a helper stays on its thread */
    job->spoilt = call->end == JRT_GUARDED_EXITED;
    if (call->end == JRT_GUARDED_PANICKED) {
        memcpy(call->panic, thread->panic_message, sizeof call->panic);
    }
    thread->helps = NULL;
    thread->behalf = NULL;
    jrt_holder_thread_over(); /* the thread serves another task next */
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

static janus_status submit_call(struct jrt_waiting *waiting, struct jrt_task *task)
{
    struct call     *call = jrt_list_entry(waiting, struct call, waiting);
    janus_scheduler *scheduler = call->scheduler;
    (void)task;
    jrt_fetch_add_relaxed(&scheduler->blocking_calls, 1u); /* relaxed: a count. */
    janus_status status = jrt_blocking_submit(&scheduler->blocking, &call->job);
    if (status == JANUS_OK) return JANUS_WOULD_WAIT;
    jrt_fetch_sub_relaxed(&scheduler->blocking_calls, 1u); /* relaxed: as above. */
    return status;
}

/* The call did not take place: the system call comes back. The op paid for the attempt. */
static janus_status refund_call(const struct jrt_task *task, janus_status status)
{
    struct jrt_purse *purse = task->purse;
    if (purse != NULL) purse->left.syscalls = janus_units_add(purse->left.syscalls, 1);
    return status;
}

janus_status janus_blocking(janus_entry *function, void *argument, int64_t *out_result)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_worker *worker = jrt_worker_self();
    if (function == NULL) return JANUS_INVALID;
    if (worker == NULL) {
        int64_t result = function(argument);
        if (out_result != NULL) *out_result = result;
        return JANUS_OK;
    }
    struct jrt_task   *task = worker->current;
    const janus_budget price = janus_price_file_io();
    if (jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE)
        return jrt_task_cancelled_or_end(task);
    janus_status paid = jrt_pay(task, &price);
    if (paid != JANUS_OK) return paid;
    worker = jrt_worker_self(); /* [worker-again] */
    if (!jrt_worker_can_leave(worker)) return refund_call(task, JANUS_NO_MEMORY);
    struct call call = {
        .job = {.run = run_call, .done = call_done, .party = jrt_terms_blocking(task)},
        .waiting = {.why = JRT_WAIT_BLOCKING,
                    .to_its_end = true,
                    .deadline_ns = JRT_NEVER,
                    .join = submit_call,
                    .leave = as_it_ended},
        .task = task,
        .scheduler = worker->scheduler,
        .function = function,
        .argument = argument,
        .error = *worker->error_at};
    janus_status status = jrt_wait(worker, &call.waiting);
    if (status != JANUS_OK) {
        status = refund_call(task, status);
        return jrt_terms_blocking_refused(worker->scheduler, &call.job, status);
    }
    jrt_invariant("task-park", jrt_load_acquire(&call.done)); /* acquire: the result. */
    if (jrt_unlikely(call.end != JRT_GUARDED_RETURNED)) {
        bool exited = call.end == JRT_GUARDED_EXITED;
        janus_panic(exited ? "a blocking call ended its thread (pthread_exit or pthread_cancel)"
                           : call.panic);
    }
    if (out_result != NULL) *out_result = call.result;
    *jrt_worker_self()->error_at = call.error; /* [worker-again] */
    return JANUS_OK;
}
