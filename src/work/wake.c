/* SPDX-License-Identifier: MIT */
/* Begins and ends a task's wait: the waker's part of [task-park]. */
#include "task/note.h"
#include "task/nursery.h"
#include "task/state.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/work.h"

/* Ends the wait. If *out_parked is set, the caller must queue the task. False: it was awake, or
 * this waker may not end the wait. */
static inline bool end_wait(struct jrt_task *task, janus_status status, uint32_t required,
                            bool *out_parked)
{
    uint32_t awake = (uint32_t)(-(int)status) << 8 | JRT_AWAKE;
    uint32_t park = jrt_load_relaxed(&task->park); /* relaxed: a first look, the cas decides. */
    do {
        if ((park & JRT_PARK_MASK) == JRT_AWAKE || (park & required) != required) return false;
        /* acq_rel [park-wake]: the waker's writes come before the woken task goes on. The next
         * worker sees what the task wrote on its strand. */
    } while (!jrt_cas_acq_rel(&task->park, &park, awake));
    *out_parked = (park & JRT_PARK_MASK) == JRT_PARKED;
    /* The task left a strand behind, which its next worker enters. */
    jrt_debug_invariant("park-wake", !*out_parked || jrt_task_began(task) || task->resident);
    if (*out_parked) jrt_task_move(task, JANUS_TASK_STATE_READY);
    return true;
}

/* Ends the wait, and queues the task. `server`: the worker for jrt_task_serve, or NULL. */
__attribute__((noinline)) static bool wake(struct jrt_worker *server, struct jrt_task *task,
                                           janus_status status, uint32_t required)
{
    bool             parked = false;
    janus_scheduler *scheduler = task->nursery->scheduler;
    janus_task_id    id = jrt_task_id(task); /* once awake, the task may end */
    if (!end_wait(task, status, required, &parked)) return false;
    jrt_note_by_caller(scheduler, JRT_TRACE_WAKE, id, (uint64_t)-(int64_t)status);
    if (parked && server != NULL) {
        jrt_submit_served(server, task);
    } else if (parked) {
        jrt_submit_woken(task);
    }
    return true;
}

void jrt_task_wake_quietly(struct jrt_worker *worker, struct jrt_task *task, janus_status status)
{
    bool             parked = false;
    janus_scheduler *scheduler = worker->scheduler;
    janus_task_id    id = jrt_task_id(task); /* once awake, the task may end */
    if (!end_wait(task, status, 0, &parked)) return;
    jrt_note_by_caller(scheduler, JRT_TRACE_WAKE, id, (uint64_t)-(int64_t)status);
    if (!parked) return;
    if (jrt_unlikely(task->lane != JRT_LANE_NORMAL ||
                     !jrt_shelf_push(&worker->again_shelf, task))) {
        jrt_submit_slow(worker, worker->again, task);
        return;
    }
    worker->lanes |= JRT_IN_NORMAL;
}

bool jrt_task_wake(struct jrt_task *task, janus_status status)
{
    return wake(NULL, task, status, 0);
}

bool jrt_task_serve(struct jrt_worker *worker, struct jrt_task *task)
{
    bool parked = false;
    if (jrt_unlikely(worker->trace != NULL)) return wake(worker, task, JANUS_OK, 0);
    bool ended_it = end_wait(task, JANUS_OK, 0, &parked);
    if (parked) jrt_submit_served(worker, task);
    return ended_it;
}

/* Rare cases of jrt_task_serve_fast. */

__attribute__((noinline)) static bool submit_slow(struct jrt_worker *worker, struct jrt_task *task)
{
    jrt_submit_again(worker, task);
    return true;
}

__attribute__((noinline)) static bool tell_idlers(struct jrt_worker *worker, bool lone)
{
    if (lone) {
        jrt_idle_notify_lone(worker);
    } else {
        jrt_idle_feed(worker);
    }
    return true;
}

bool jrt_task_serve_fast(struct jrt_worker *worker, struct jrt_task *task)
{
    struct jrt_shelf *shelf = &worker->again_shelf;
    uint32_t          park = jrt_load_relaxed(&task->park); /* relaxed: the cas decides. */
    if (jrt_unlikely((park & JRT_PARK_MASK) != JRT_PARKED || worker->trace != NULL ||
                     task->nursery->scheduler != worker->scheduler)) {
        return false;
    }
    /* acq_rel: [park-wake]. */
    if (jrt_unlikely(!jrt_cas_acq_rel(&task->park, &park, (uint32_t)JRT_AWAKE))) return false;
    jrt_task_move(task, JANUS_TASK_STATE_READY);
    bool lone = jrt_shelf_size(shelf) == 0; /* [queue-served] */
    if (jrt_unlikely(task->lane != JRT_LANE_NORMAL || !jrt_shelf_push(shelf, task))) {
        return submit_slow(worker, task);
    }
    worker->lanes |= JRT_IN_NORMAL;
    if (worker->alone) return true;
    jrt_fence_light_seq_cst();                                      /* seq_cst: [idle-submit]. */
    uint64_t idlers = jrt_load_relaxed(&worker->scheduler->idlers); /* relaxed: after the fence. */
    return jrt_likely(idlers == 0) || tell_idlers(worker, lone);
}

bool jrt_task_serve_quietly(struct jrt_worker *worker, struct jrt_task *task)
{
    uint32_t park = jrt_load_relaxed(&task->park); /* relaxed: the cas decides. */
    if ((park & JRT_PARK_MASK) != JRT_PARKED || worker->trace != NULL || worker->current != NULL ||
        task->nursery->scheduler != worker->scheduler || task->lane != JRT_LANE_NORMAL) {
        return false;
    }
    jrt_debug_invariant("poll-quiet", worker == jrt_worker_self());
    /* acq_rel: [park-wake]. */
    if (!jrt_cas_acq_rel(&task->park, &park, (uint32_t)JRT_AWAKE)) return false;
    jrt_task_move(task, JANUS_TASK_STATE_READY);
    if (jrt_likely(jrt_shelf_push(&worker->again_shelf, task))) {
        worker->lanes |= JRT_IN_NORMAL;
        return true;
    }
    return submit_slow(worker, task);
}

bool jrt_task_claim(struct jrt_task *task)
{
    bool parked = false;
    return end_wait(task, JANUS_OK, 0, &parked) && parked;
}

bool jrt_task_interrupt(struct jrt_task *task, janus_status status)
{
    return wake(NULL, task, status, JRT_INTERRUPTIBLE);
}

/* Whether a cancel of a nursery with that many shields around it may end the wait. */
static bool is_in_scope(uint32_t park, uint16_t level)
{
    if ((park & JRT_PARK_MASK) == JRT_AWAKE) return false;
    if ((park & JRT_INTERRUPTIBLE) != 0) return true;
    return (park & JRT_SCOPED) != 0 && park >> 8 <= level; /* [scope-shield] */
}

void jrt_task_interrupt_owner(struct jrt_task *task, uint16_t level)
{
    const uint32_t awake = (uint32_t)(-(int)JANUS_CANCELLED) << 8 | JRT_AWAKE;
    uint32_t       park = jrt_load_relaxed(&task->park); /* relaxed: the cas decides. */
    janus_task_id  id = jrt_task_id(task);
    do {
        if (!is_in_scope(park, level)) return;
        /* acq_rel: [park-wake]. */
    } while (!jrt_cas_acq_rel(&task->park, &park, awake));
    bool parked = (park & JRT_PARK_MASK) == JRT_PARKED;
    if (parked) jrt_task_move(task, JANUS_TASK_STATE_READY);
    jrt_note_by_caller(task->nursery->scheduler, JRT_TRACE_WAKE, id,
                       (uint64_t)-(int64_t)JANUS_CANCELLED);
    if (parked) jrt_submit_woken(task);
}

bool jrt_task_break_wait(struct jrt_task *task)
{
    return wake(NULL, task, JANUS_DEADLOCK, JRT_BREAKABLE);
}
