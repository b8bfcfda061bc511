/* SPDX-License-Identifier: MIT */
/*
 * How a worker chooses the next task: strands, queues, sleepers, timers, and how a wait ends. The
 * essays are in leave.c, queue.c, idle.c and strand.c.
 */
#ifndef JRT_WORK_WORK_H
#define JRT_WORK_WORK_H

#include "task/nursery.h"

/*
 * [stack-reserve]  The stack that a public call, and the code that arrives on the strand it leaves,
 *   may need. A task with less overflows here, where no lock is held and nobody switches: the
 *   check touches the guard. It compares first, so that a task that waits near the top of its
 *   stack commits no page.
 */
enum { JRT_STACK_RESERVE = 3072 * JRT_STACK_FACTOR };
/* Bytes between the frame that looks for room and the frame of the child's entry. */
enum { JRT_CALL_BYTES = 512 * JRT_STACK_FACTOR };

/* The slow path: below the floor, or in a fiber of the task's own. In a world every call comes
 * here, because the beginning of a call is a place where another thread may go on, [sim-point]. */
void jrt_worker_stack_look(const struct jrt_worker *worker, const char *frame);

static inline void jrt_worker_stack_check(const struct jrt_worker *worker)
{
    const char *frame = __builtin_frame_address(0);
    if (jrt_unlikely((uintptr_t)frame < worker->strand->floor || worker->thread->current != NULL)) {
        jrt_worker_stack_look(worker, frame);
    }
}
/* Whether the check has nothing to do. For callers that then need no frame. */
static inline __attribute__((always_inline)) bool jrt_worker_stack_is_fine(
    const struct jrt_worker *worker)
{
    uintptr_t frame = (uintptr_t)__builtin_dwarf_cfa();
    return frame >= worker->strand->floor && worker->thread->current == NULL;
}

/* A strand that can run a loop, without a task on it. NULL: memory refused. */
struct jrt_strand *jrt_strand_take(struct jrt_worker *worker);
struct jrt_strand *jrt_strand_of_class(struct jrt_worker *worker, unsigned class);
void               jrt_strand_give(struct jrt_worker *worker, struct jrt_strand *strand);

/* Frees its stack, even if it could be kept as the spare. */
void jrt_strand_drop(struct jrt_worker *worker, struct jrt_strand *strand);

/* The loop calls this: frees spare stacks if janus_scheduler_trim asked for it, [strand-trim]. */
void jrt_worker_trim(struct jrt_worker *worker);

/* Makes sure that an overflow on this worker can be survived. False: memory refused. */
bool jrt_worker_rescue_ready(struct jrt_worker *worker);
/* Makes sure that the current task can leave the CPU. False: memory refused. */
bool jrt_worker_can_leave(struct jrt_worker *worker);

/* For a task that must leave the CPU: if memory is refused, the worker uses its last strand. */
void jrt_worker_must_leave(struct jrt_worker *worker);
/* Makes sure that the worker has a last strand. False: memory refused. */
bool jrt_worker_last_ready(struct jrt_worker *worker);

/* Handles an overflow of the current task, or of the fiber it runs. */
__attribute__((noreturn)) void jrt_worker_overflowed(struct jrt_worker *worker);

/*
 * Whether the current strand has room for a child on top, with all the stack that it was
 * promised: [stack-eighth] in stack/stack.c.
 *
 * [room-world]  The size of frames depends on the compiler and its options. In a world an execution
 *   must not. There strands have room for JRT_NESTED_MAX tasks on top of one, each with all that
 *   it was promised. A task runs in place unless JRT_NESTED_MAX + 1 tasks, or a multiple, are
 *   around it. So there are never more on one strand.
 */
enum { JRT_NESTED_MAX = 3, JRT_NESTED_CLASSES = 2 };
_Static_assert(JRT_NESTED_MAX + 1 == 1 << JRT_NESTED_CLASSES, "a class has twice the last one");

/* The class of the stack of such a strand. */
static inline unsigned jrt_strand_stack_class(const janus_scheduler *scheduler, unsigned class)
{
    unsigned larger = class + (scheduler->world != NULL ? JRT_NESTED_CLASSES : 0);
    return larger < JRT_STACK_CLASSES ? larger : JRT_STACK_CLASSES - 1;
}

/* Decides about room in a world. In strand.c. */
bool jrt_worker_has_room_by_number(const struct jrt_worker *worker, const struct jrt_task *child);

static inline bool jrt_worker_has_room(const struct jrt_worker *worker,
                                       const struct jrt_task   *child)
{
    const char *here = __builtin_frame_address(0);
    size_t      left = (size_t)(here - jrt_stack_low(worker->strand->stack));
    if (jrt_likely(left >= worker->scheduler->room[child->stack_class])) return true;
    return jrt_worker_has_room_by_number(worker, child);
}

/* Queue a new, or a woken, task where a worker will find it. Any thread may call these. */
void jrt_submit_outside(janus_scheduler *scheduler, struct jrt_task *task);
void jrt_submit_woken(struct jrt_task *task);

/* Queues a task whose seat is gone for all workers, seat.h. */
void jrt_submit_to_all(janus_scheduler *scheduler, struct jrt_task *task);

/* The worker's thread queues on deques that others can take from, `fresh` or `again`. */
void jrt_submit_slow(struct jrt_worker *worker, struct jrt_deque *deques, struct jrt_task *task);

/* The newest fresh task of a lane of the worker's own queues; NULL: none. */
static inline struct jrt_task *jrt_take_newest(struct jrt_worker *worker, unsigned lane)
{
    if (jrt_likely(lane == JRT_LANE_NORMAL)) {
        struct jrt_task *task = jrt_shelf_pop_newest(&worker->fresh_shelf);
        if (jrt_likely(task != NULL)) return task;
    }
    return jrt_deque_pop(&worker->fresh[lane]);
}

/* The next task for this worker; NULL: none now. `stays`: the current task can go on. */
struct jrt_task *jrt_pick(struct jrt_worker *worker, bool stays);

/* Picks in the easy case: a shelf's oldest task, if no other has a claim. NULL: ask jrt_pick.
 * `full`: as in jrt_fence_light_as_seq_cst. */
static inline __attribute__((always_inline)) struct jrt_task *jrt_pick_fast(
    struct jrt_worker *worker, bool full)
{
    void *task = NULL;
    if (worker->lanes != JRT_IN_NORMAL || worker->until_others == 1) return NULL;
    if (jrt_shelf_size(&worker->fresh_shelf) != 0) return NULL;
    worker->tick++;
    worker->until_others--;
    return jrt_shelf_pop_oldest_fast(&worker->again_shelf, full, &task) ? task : NULL;
}

/* For a task that runs others one after the other without picking. Every so often it asks whether
 * tasks that ran before, or were injected, wait. */
bool jrt_look_for_others(struct jrt_worker *worker);

static inline bool jrt_others_wait(struct jrt_worker *worker)
{
    return jrt_unlikely(--worker->until_others == 0) && jrt_look_for_others(worker);
}

/* Lets other tasks run. The current task goes to the back of the queue. */
void jrt_task_give_way(struct jrt_worker *worker, struct jrt_task *task);

/* Whether tasks wait that ran before, were injected, are of other lanes or waited long. */
bool jrt_turn_wanted(struct jrt_worker *worker);

/* At the end of a turn: takes some tasks from a worker that has clearly more, [turn-balance]. */
void jrt_balance(struct jrt_worker *worker);

/* Steals a task of another worker; NULL: none found. `raid`: also from shelves. */
struct jrt_task *jrt_steal(struct jrt_worker *thief, bool raid);
/* Takes the current task, which can leave, off the CPU. `next` runs then; NULL: the loop. */
janus_status jrt_task_leave(struct jrt_worker *worker, struct jrt_task *task, struct jrt_task *next,
                            enum jrt_left how);
unsigned     jrt_victim_choose(struct jrt_worker *thief, uint32_t attempt);

/* The number of new tasks, or of tasks that ran before, in a lane; out of date at once. */
static inline uint64_t jrt_count_fresh(const struct jrt_worker *worker, unsigned lane)
{
    uint64_t count = jrt_deque_size(&worker->fresh[lane]);
    return lane == JRT_LANE_NORMAL ? count + jrt_shelf_size(&worker->fresh_shelf) : count;
}

static inline uint64_t jrt_count_again(const struct jrt_worker *worker, unsigned lane)
{
    uint64_t count = jrt_deque_size(&worker->again[lane]);
    return lane == JRT_LANE_NORMAL ? count + jrt_shelf_size(&worker->again_shelf) : count;
}

/* Whether a queue this worker may take from has something. After a fence. */
bool jrt_work_for(const struct jrt_worker *worker);

/* Tells idle workers that a task was put on a public queue. In idle.c. */
void jrt_idle_notify(janus_scheduler *scheduler);

/* Gives idle workers tasks from a shelf. */
void jrt_idle_feed(struct jrt_worker *worker);

/* Whether some worker is idle. `full`: as in jrt_fence_light_as_seq_cst. */
static inline __attribute__((always_inline)) bool jrt_idle_somebody(const struct jrt_worker *worker,
                                                                    bool                     full)
{
    if (worker->alone) return false;
    jrt_fence_light_as_seq_cst(full);                         /* seq_cst: [idle-submit]. */
    return jrt_load_relaxed(&worker->scheduler->idlers) != 0; /* relaxed: after the fence. */
}

static inline void jrt_idle_notify_shelf(struct jrt_worker *worker)
{
    if (jrt_unlikely(jrt_idle_somebody(worker, !jrt_fences_are_light()))) jrt_idle_feed(worker);
}

/* Judges whether stolen tasks, which have run, were worth stealing, [idle-doze]. In idle.c. */
void jrt_idle_judge(struct jrt_worker *worker);

/* The worker's thread puts a task on its queue for new tasks, or for tasks that ran before. */
static inline void jrt_submit_on(struct jrt_worker *worker, struct jrt_shelf *shelf,
                                 struct jrt_deque *deques, struct jrt_task *task)
{
    if (jrt_unlikely(task->lane != JRT_LANE_NORMAL || !jrt_shelf_push(shelf, task))) {
        jrt_submit_slow(worker, deques, task);
        return;
    }
    worker->lanes |= JRT_IN_NORMAL;
    jrt_idle_notify_shelf(worker);
}

static inline void jrt_submit_fresh(struct jrt_worker *worker, struct jrt_task *task)
{
    jrt_submit_on(worker, &worker->fresh_shelf, worker->fresh, task);
}

static inline void jrt_submit_again(struct jrt_worker *worker, struct jrt_task *task)
{
    jrt_submit_on(worker, &worker->again_shelf, worker->again, task);
}

/* Queues a task that a task of this worker has just served. It will run here as soon as the server
 * waits, [queue-served]. */
static inline void jrt_submit_served(struct jrt_worker *worker, struct jrt_task *task)
{
    bool lone = !worker->alone && jrt_shelf_size(&worker->again_shelf) == 0 &&
                task->lane == JRT_LANE_NORMAL;
    if (jrt_unlikely(!lone || !jrt_shelf_push(&worker->again_shelf, task))) {
        jrt_submit_again(worker, task);
        return;
    }
    jrt_debug_invariant("queue-served", jrt_shelf_size(&worker->again_shelf) <= 1);
    worker->lanes |= JRT_IN_NORMAL;
    jrt_idle_notify(worker->scheduler);
}

/* Moves some of the shelves' oldest tasks to the deques. False: the deques had some, or the shelves
 * are empty. */
bool jrt_publish(struct jrt_worker *worker);

/* Looks for work, sleeps, looks again. NULL: the scheduler has stopped. */
struct jrt_task *jrt_idle(struct jrt_worker *worker);

/* Wake all sleepers, for the end; wake the keeper, to look at the timers again. */
void jrt_idle_wake_all(janus_scheduler *scheduler);
void jrt_idle_wake_keeper(janus_scheduler *scheduler);

/* Wakes a worker, if it sleeps, to look again. */
void jrt_idle_wake_up(struct jrt_worker *worker);

/* Arm, disarm, and fire due timers. The last returns the time, or 0 if it did not read the
 * clock. */
bool jrt_sched_timer_arm(janus_scheduler *scheduler, struct jrt_timer *timer, uint64_t deadline_ns);
void jrt_sched_timer_disarm(janus_scheduler *scheduler, struct jrt_timer *timer);
uint64_t jrt_sched_timers_fire(janus_scheduler *scheduler);

/* 0, or in a deadlock a number that stays the same while no sleeper gets up. In idle.c. */
uint32_t jrt_idle_stuck(janus_scheduler *scheduler);

/* Counts one off `outside`. Only now may a deadlock be found. In idle.c. */
void jrt_outside_less(janus_scheduler *scheduler);

/* Ends a task's wait with a status. False: it was awake, or another waker was first. The caller
 * must know that it ends the right wait: it holds what the task must take before it can wait
 * again. */
bool jrt_task_wake(struct jrt_task *task, janus_status status);

/* Wakes a task with OK, by a worker of its scheduler, when the caller has done what the task waited
 * for: [queue-served]. */
bool jrt_task_serve(struct jrt_worker *worker, struct jrt_task *task);

/* Wakes a task already removed from its wait queue, so that no other serves it. False: nothing
 * done; call jrt_task_serve. It ends in a call, if it makes one. */
bool jrt_task_serve_fast(struct jrt_worker *worker, struct jrt_task *task);

/* Wakes a task with OK, by the loop of a worker of its scheduler, without a word to sleepers:
 * see [poll-quiet]. The caller has taken it from where it waited. False: nothing done; call
 * jrt_task_serve. */
bool jrt_task_serve_quietly(struct jrt_worker *worker, struct jrt_task *task);

/* Ends the wait of a task at rest, [task-rest]. True: the caller queues it, by jrt_submit_served or
 * jrt_submit_outside, when it holds no lock. False: it was awake. */
bool jrt_task_claim(struct jrt_task *task);

/* Ends a wait with a status, if the wait may be interrupted. */
bool jrt_task_interrupt(struct jrt_task *task, janus_status status);

/* Ends a wait with DEADLOCK, even in a shield: nothing else ever will. */
bool jrt_task_break_wait(struct jrt_task *task);

/* Ends the wait of the owner of a cancelled nursery. It does not end a wait in a shield that began
 * after the nursery, which was opened with `level` shields. */
void jrt_task_interrupt_owner(struct jrt_task *task, uint16_t level);

/* Calls jrt_task_serve from any thread, even if it is no worker of the task's scheduler. */
static inline bool jrt_task_serve_from_anywhere(struct jrt_task *task)
{
    janus_scheduler   *scheduler = task->nursery->scheduler;
    struct jrt_worker *worker = jrt_worker_self();
    if (jrt_likely(worker != NULL && worker->scheduler == scheduler)) {
        return jrt_task_serve(worker, task);
    }
    jrt_fetch_add_relaxed(&scheduler->guests, 1u); /* relaxed: before the wake, [point-guest]. */
    bool woken = jrt_task_wake(task, JANUS_OK);
    jrt_fetch_sub_release(&scheduler->guests, 1u); /* release: the last touch. */
    return woken;
}

#endif
