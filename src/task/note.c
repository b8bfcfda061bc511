/* SPDX-License-Identifier: MIT */
/* Notes for traces, if there is one; trace/trace.h. */
#include "task/note.h"

#include "task/nursery.h"
#include "task/task.h"
#include "task/worker.h"

void jrt_note_now(const struct jrt_worker *worker, enum jrt_trace_kind kind,
                  const struct jrt_task *task, uint64_t object, uint64_t amount)
{
    janus_task_id id = task != NULL ? jrt_task_id(task) : 0;
    jrt_trace_record(worker->trace, kind, worker->index, id, object, amount);
}

static uint64_t id_of(const struct jrt_task *task) { return task != NULL ? jrt_task_id(task) : 0; }

void jrt_note_by_caller(janus_scheduler *scheduler, enum jrt_trace_kind kind, janus_task_id task,
                        uint64_t amount)
{
    const struct jrt_worker *worker = jrt_worker_self();
    struct jrt_trace_lane   *outside = jrt_trace_lane(&scheduler->tracer, JRT_TRACE_OUTSIDE);
    if (outside == NULL) return;
    if (worker != NULL && worker->scheduler == scheduler) {
        jrt_trace_record(worker->trace, kind, worker->index, task, id_of(worker->current), amount);
    } else {
        jrt_trace_record(outside, kind, JRT_TRACE_OUTSIDE, task, 0, amount);
    }
}

void jrt_note_start(const struct jrt_worker *worker, const struct jrt_task *task,
                    const struct jrt_task *below)
{
    jrt_note_now(worker, JRT_TRACE_START, task, id_of(below), 0);
}

void jrt_note_park(const struct jrt_worker *worker, const struct jrt_task *task)
{
    /* relaxed: its own. */
    unsigned wait = jrt_load_relaxed(&task->wait) & ~(unsigned)JRT_WAIT_AT_REST;
    bool     at_channel = wait == JRT_WAIT_SEND || wait == JRT_WAIT_RECV;
    bool     at_handle = wait >= JRT_WAIT_READ && wait <= JRT_WAIT_CONNECT;
    jrt_note_now(worker, JRT_TRACE_PARK, task, at_channel || at_handle ? worker->waits_at : 0,
                 wait);
}

void jrt_note_complete(const struct jrt_worker *worker, const struct jrt_task *task)
{
    enum jrt_trace_end end = JRT_TRACE_END_OK;
    if (task->landing.result < 0) end = JRT_TRACE_END_FAILED;
    if (task->landing.result == JANUS_BUDGET_EXHAUSTED) end = JRT_TRACE_END_EXHAUSTED;
    if (task->landing.result == JANUS_CANCELLED && task->saw_cancel) end = JRT_TRACE_END_CANCELLED;
    if (task->panic == JANUS_PANIC_KIND_EXPLICIT) end = JRT_TRACE_END_PANICKED;
    if (task->panic == JANUS_PANIC_KIND_STACK_OVERFLOW) end = JRT_TRACE_END_OVERFLOWED;
    jrt_note_now(worker, JRT_TRACE_COMPLETE, task, 0, end);
}

void jrt_note_switch(const struct jrt_worker *worker, const struct jrt_task *left)
{
    if (left != NULL) jrt_note_now(worker, JRT_TRACE_YIELD, left, 0, 0);
    if (worker->current != NULL) jrt_note_now(worker, JRT_TRACE_RESUME, worker->current, 0, 0);
}

void jrt_note_recharge(const struct jrt_task *task, const janus_budget *amount)
{
    const struct jrt_worker *worker = jrt_worker_self();
    const janus_scheduler   *scheduler = task->nursery->scheduler;
    bool                     ours = worker != NULL && worker->scheduler == scheduler;
    struct jrt_trace_lane   *lane =
        ours ? worker->trace : jrt_trace_lane(&scheduler->tracer, JRT_TRACE_OUTSIDE);
    uint32_t index = ours ? worker->index : JRT_TRACE_OUTSIDE;
    if (lane == NULL) return;
    for (unsigned c = JANUS_COMPONENT_OPS; c <= JANUS_COMPONENT_SYSCALLS; c++) {
        uint64_t more = janus_budget_get(amount, (janus_component)c);
        if (more == 0) continue;
        jrt_trace_record(lane, JRT_TRACE_RECHARGE, index, jrt_task_id(task), c, more);
    }
}

uint64_t jrt_trace_hash_of(const janus_scheduler *scheduler)
{
    return jrt_trace_hash(&scheduler->tracer);
}

uint64_t janus_scheduler_trace_hash(const janus_scheduler *scheduler)
{
    return scheduler != NULL ? jrt_trace_hash_of(scheduler) : 0;
}
