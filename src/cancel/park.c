/* SPDX-License-Identifier: MIT */
/* How a task says that it waits, and leaves the CPU until a waker comes: [task-park]. */
#include "cancel/park.h"

#include "base/assert.h"
#include "base/atomic.h"
#include "base/wait.h"
#include "cancel/cancel.h"
#include "cancel/wait.h"
#include "fiber/exception.h"
#include "plat/seam.h"
#include "task/nursery.h"
#include "task/state.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/leave.h"
#include "work/work.h"

void jrt_task_park_begin(struct jrt_task *task, enum jrt_wait wait)
{
    bool breakable = wait != JRT_WAIT_NURSERY && wait != JRT_WAIT_BLOCKING && wait != JRT_WAIT_RUN;
    bool can_end = breakable &&
                   /* relaxed: its own. [task-interrupt] */
                   (jrt_load_relaxed(&task->shield) == 0 || !jrt_shield_holds(task));
    /* If a waker comes before the task leaves, the status stays in the park word, [task-clean]. */
    task->dirty = true;
    jrt_store_relaxed(&task->wait, (uint8_t)wait); /* relaxed: for dumps. */
    /* relaxed: its own. */
    uint32_t shields = breakable && !can_end ? jrt_load_relaxed(&task->shield) : 0u;
    uint32_t scoped = shields != 0 ? shields << 8 | JRT_SCOPED : 0u; /* [scope-shield] */
    /* relaxed: nobody knows yet that it waits; registration makes it visible. */
    jrt_store_relaxed(&task->park, JRT_PARKING | (can_end ? JRT_INTERRUPTIBLE : 0u) |
                                       (breakable ? JRT_BREAKABLE : 0u) | scoped);
}

bool jrt_task_park_undo(struct jrt_task *task)
{
    uint32_t expected = jrt_load_relaxed(&task->park); /* relaxed: the cas decides. */
    do {
        if ((expected & JRT_PARK_MASK) != JRT_PARKING) return false;
        /* acq_rel: a waker's writes come before the caller's next step. */
    } while (!jrt_cas_acq_rel(&task->park, &expected, (uint32_t)JRT_AWAKE));
    jrt_store_relaxed(&task->wait, (uint8_t)JRT_WAIT_NONE); /* relaxed: for dumps. */
    return true;
}

/* Whether nobody has woken the task meanwhile, so that it leaves the CPU. */
static inline bool still_parking(const struct jrt_task *task)
{
    uint32_t park = jrt_load_acquire(&task->park); /* acquire: pairs with [park-wake]. */
    return (park & JRT_PARK_MASK) == JRT_PARKING;
}

static inline struct jrt_task *pick_next(struct jrt_worker *worker)
{
    struct jrt_task *next = jrt_pick_fast(worker, !jrt_fences_are_light());
    return next != NULL ? next : jrt_pick(worker, false);
}

janus_status jrt_task_park(struct jrt_worker *worker, struct jrt_task *task)
{
    if (still_parking(task)) {
        jrt_task_move_to_wait(task, worker);
        struct jrt_task *next = pick_next(worker);
        (void)jrt_task_leave(worker, task, next, JRT_LEFT_PARKING);
    }
    return jrt_park_ended(task);
}

__attribute__((noinline)) static janus_status park_slow(struct jrt_task *task, jrt_finish *finish)
{
    janus_status status = jrt_task_park_cancellable(task);
    return finish(jrt_worker_self(), task, status); /* [worker-again] */
}

/* Leaves a waiting task when there is no easy task to go to. */
__attribute__((noinline)) static janus_status leave_to_any(struct jrt_worker *worker,
                                                           struct jrt_task   *task,
                                                           struct jrt_task   *next)
{
    if (next == NULL) next = jrt_pick(worker, false);
    return jrt_leave(worker, task, next, JRT_LEFT_PARKING);
}

janus_status jrt_task_park_fast(struct jrt_worker *worker, struct jrt_task *task,
                                jrt_finish *finish)
{
    jrt_fence_light_seq_cst(); /* seq_cst: [cancel-park]. */
    if (jrt_unlikely(jrt_exceptions_exist() || !jrt_task_is_clean(task) || !still_parking(task) ||
                     !jrt_task_move_to_wait_fast(task, worker))) {
        return jrt_task_park_then(worker, task, finish);
    }
    jrt_debug_invariant("task-finish", worker->strand->finish == NULL);
    worker->strand->finish = finish;
    struct jrt_task *next = jrt_pick_fast(worker, !jrt_fences_are_light());
    if (jrt_unlikely(next == NULL || !jrt_task_began(next))) {
        return leave_to_any(worker, task, next);
    }
    return jrt_go_fast(worker, task, next, jrt_arrive_from_park);
}

janus_status jrt_task_park_then(struct jrt_worker *worker, struct jrt_task *task,
                                jrt_finish *finish)
{
    /* acquire: everything above is linked. relaxed: its own. */
    bool plain = jrt_load_acquire(&task->linked) && jrt_load_relaxed(&task->shield) == 0;
    if (jrt_unlikely(!plain || jrt_worker_has_more(worker))) return park_slow(task, finish);
    jrt_fence_light_seq_cst(); /* seq_cst: [cancel-park]. */
    bool cancelled = jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE;
    if (jrt_unlikely(cancelled || !still_parking(task))) return park_slow(task, finish);
    jrt_task_move_to_wait(task, worker);
    struct jrt_task *next = pick_next(worker);
    worker->strand->finish = finish;
    if (jrt_likely(next != NULL && jrt_task_began(next))) {
        return jrt_go_fast(worker, task, next, jrt_arrive_from_park);
    }
    return jrt_leave(worker, task, next, JRT_LEFT_PARKING);
}

janus_status jrt_task_park_cancellable(struct jrt_task *task)
{
    jrt_task_link(task);
    if (jrt_unlikely(jrt_load_relaxed(&task->shield) > 0)) { /* relaxed: its own. */
        return jrt_shield_park(task);
    }
    jrt_fence_light_seq_cst(); /* seq_cst: [cancel-park]. */
    bool cancelled = jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE;
    if (cancelled && jrt_task_park_undo(task)) return JANUS_CANCELLED;
    return jrt_task_park(jrt_worker_self(), task);
}

/* Whether a pick would take `next` now, if it were queued, [wait-hand]. */
static bool would_pick(const struct jrt_worker *worker, const struct jrt_task *next)
{
    uint32_t others = worker->lanes & ~(uint32_t)JRT_IN_NORMAL;
    return others == 0 && worker->until_others > 1 && next->lane == JRT_LANE_NORMAL &&
           worker->seat == NULL && jrt_shelf_size(&worker->again_shelf) == 0 &&
           jrt_shelf_size(&worker->fresh_shelf) == 0;
}

janus_status jrt_task_park_for(struct jrt_task *task, struct jrt_task *next)
{
    struct jrt_worker *worker = jrt_worker_self();
    /* relaxed: nobody else can run it. */
    jrt_debug_invariant("wait-hand",
                        next != task && jrt_load_relaxed(&next->state) == JANUS_TASK_STATE_READY);
    jrt_task_link(task);
    bool shielded = jrt_load_relaxed(&task->shield) > 0; /* relaxed: its own. */
    jrt_fence_light_seq_cst();                           /* seq_cst: [cancel-park]. */
    if (jrt_unlikely(shielded || !would_pick(worker, next) || !still_parking(task) ||
                     jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE)) {
        jrt_submit_served(worker, next);
        return jrt_task_park_cancellable(task);
    }
    worker->tick++;
    worker->until_others--;
    jrt_task_move_to_wait(task, worker);
    (void)jrt_task_leave(worker, task, next, JRT_LEFT_PARKING);
    return jrt_park_ended(task);
}
