/* SPDX-License-Identifier: MIT */
/*
 * How a worker chooses the next task: queues, sleepers, timers, and how a wait ends. The
 * essays are in leave.c, queue.c, steal.c and idle.c.
 */
#ifndef JRT_WORK_WORK_H
#define JRT_WORK_WORK_H

#include "strand/strand.h"
#include "task/nursery.h"

/* Queue a new, or a woken, task where a worker will find it. Any thread may call these. */
void jrt_submit_outside(janus_scheduler *scheduler, struct jrt_task *task);
void jrt_submit_woken(struct jrt_task *task);

/* Puts a task on the queue for all workers, and tells nobody. */
void jrt_inject(janus_scheduler *scheduler, struct jrt_task *task);

/* Queues a task whose seat is gone for all workers, seat.h. */
void jrt_submit_to_all(janus_scheduler *scheduler, struct jrt_task *task);

/* The worker's thread queues on deques that others can take from, `fresh` or `again`. */
void jrt_submit_slow(struct jrt_worker *worker, struct jrt_deque *deques, struct jrt_task *task);

/* For a child that leaves the CPU: counts the siblings off that ended before it in the same
 * loop; see [crowd-count]. */
static inline void jrt_crowd_count(struct jrt_worker *worker)
{
    worker->lanes &= ~(uint32_t)JRT_UNCOUNTED;
    if (worker->uncounted == 0) return;
    struct jrt_nursery *n = worker->uncounted_of;
    /* acq_rel: what these children wrote. The child that leaves is still counted. */
    int64_t left = jrt_fetch_sub_acq_rel(&n->pending, worker->uncounted) - worker->uncounted;
    jrt_debug_invariant("crowd-count", left > 0);
    (void)left;
    worker->uncounted = 0;
}

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

enum { JRT_FAR = 256 }; /* more tasks on a shelf than caches hold */

/* Whether jrt_pick is worth its price: of a crowd it fetches what comes next ahead. */
static inline bool jrt_again_is_crowd(const struct jrt_worker *worker)
{
    return jrt_shelf_size(&worker->again_shelf) > JRT_FAR;
}

/* For a task that runs others one after the other without picking. Every so often it asks whether
 * tasks that ran before, or were injected, wait. */
bool jrt_look_for_others(struct jrt_worker *worker);

static inline bool jrt_others_wait(struct jrt_worker *worker)
{
    return jrt_unlikely(--worker->until_others == 0) && jrt_look_for_others(worker);
}

/* How many new tasks make a spawner give way, and with how many left it comes back; crowd.c. */
enum { JRT_CROWD = 1024, JRT_CROWD_LEFT = JRT_CROWD / 2 };

/* Lets other tasks run. The current task goes to the back of the queue. */
void jrt_task_give_way(struct jrt_worker *worker, struct jrt_task *task);

/* Whether tasks wait that ran before, were injected, are of other lanes or waited long. */
bool jrt_turn_wanted(struct jrt_worker *worker);

/* Taking from other workers, in steal.c. */

/* Looks at one other worker, in turn. If nothing has moved there since the last look, takes some of
 * its tasks. */
void jrt_rescue(struct jrt_worker *worker);

/* At the end of a turn: takes some tasks from a worker that has clearly more, [turn-balance]. */
void jrt_balance(struct jrt_worker *worker);

/* Moves up to `want` NORMAL tasks that ran before, from another worker's public queue to this
 * worker. */
size_t jrt_pull_public(struct jrt_worker *worker, struct jrt_worker *from, size_t want);

/* Steals a task of another worker; NULL: none found. `raid`: also from shelves. */
struct jrt_task *jrt_steal(struct jrt_worker *thief, bool raid);
struct jrt_task *jrt_steal_from(struct jrt_worker *thief, struct jrt_worker *victim, bool raid);
/* Steals from a worker if nothing has moved there since a look that `notes`. */
struct jrt_task *jrt_steal_stuck(struct jrt_worker *thief, uint32_t victim, bool notes);
unsigned         jrt_victim_choose(struct jrt_worker *thief, uint32_t attempt);

/* Takes the current task, which can leave, off the CPU. `next` runs then; NULL: the loop. */
janus_status jrt_task_leave(struct jrt_worker *worker, struct jrt_task *task, struct jrt_task *next,
                            enum jrt_left how);

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

/* Tells idle workers of a lone task on the shelf, [queue-served]: searchers see it there, a sleeper
 * is given it. */
void jrt_idle_notify_lone(struct jrt_worker *worker);

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
    jrt_idle_notify_lone(worker);
}

/* Moves some of the shelves' oldest tasks to the deques. False: the deques had some, or the shelves
 * are empty. */
bool jrt_publish(struct jrt_worker *worker);

/* Looks for work, sleeps, looks again. NULL: the scheduler has stopped. */
struct jrt_task *jrt_idle(struct jrt_worker *worker);

/* Wake all sleepers, for the end; wake the keeper, if it sleeps beyond a deadline, to look at the
 * timers again. */
void jrt_idle_wake_all(janus_scheduler *scheduler);
void jrt_idle_wake_keeper(janus_scheduler *scheduler, uint64_t deadline_ns);

/* Wakes a worker, if it sleeps, to look again. */
void jrt_idle_wake_up(struct jrt_worker *worker);

/* Ends the sleep of a worker whose signal is set. `in_set`: as read under idle_lock. */
void jrt_idle_rouse(struct jrt_worker *worker, bool in_set);

/* The sets of timers, in timers.c. Closing disarms the watch; no other timer may be armed. */
void jrt_sched_timers_open(janus_scheduler *scheduler);
void jrt_sched_timers_close(janus_scheduler *scheduler);

/* Arms a timer, or moves it. Calls for one timer do not overlap. A timer that was armed in another
 * scheduler was disarmed there. False: no memory. Then it is as it was. */
bool jrt_sched_timer_arm(janus_scheduler *scheduler, struct jrt_timer *timer, uint64_t deadline_ns);
/* Disarms a timer. Afterwards nobody touches it. */
void jrt_sched_timer_disarm(janus_scheduler *scheduler, struct jrt_timer *timer);

/* A worker's look: fires what is due in its set, and what is late in another. Returns the time, or
 * 0 if it did not read the clock. */
uint64_t jrt_sched_timers_fire(janus_scheduler *scheduler);
/* The look of an idle worker: fires what is due in any set. */
void jrt_sched_timers_fire_all(janus_scheduler *scheduler);

/* The earliest deadline of all sets. */
static inline uint64_t jrt_sched_timers_next(const janus_scheduler *scheduler)
{
    uint64_t next = JRT_NEVER;
    for (uint32_t i = 0; i < scheduler->worker_count; i++) {
        /* relaxed: a hint, or see [timer-keeper]. */
        uint64_t first = jrt_load_relaxed(&scheduler->workers[i].timers.next);
        if (first < next) next = first;
    }
    return next;
}

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

/* Ends a wait with a status, and queues the task on the worker's shelf without a word to others.
 * The caller tells them afterwards, by jrt_idle_notify_shelf. */
void jrt_task_wake_quietly(struct jrt_worker *worker, struct jrt_task *task, janus_status status);

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
