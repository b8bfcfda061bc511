/* SPDX-License-Identifier: MIT */
/* Workers and their scheduler. The essay is in worker.c; sleeping and waking in idle.c. */
#ifndef JRT_TASK_WORKER_H
#define JRT_TASK_WORKER_H

#include "fiber/thread.h"
#include "plat/seam.h"
#include "sched/blocking.h"
#include "sched/deque.h"
#include "sched/victim.h"
#include "task/task.h"

enum {
    JRT_LANES = 3,          /* HIGH, NORMAL, LOW */
    JRT_STEAL_ATTEMPTS = 4, /* per cycle, or one for each other worker */
};

/* What the strand that was just left wants done, now that it is off the CPU. */
enum jrt_left {
    JRT_LEFT_NOTHING,
    JRT_LEFT_YIELDED, /* queue the task */
    JRT_LEFT_PARKING, /* [task-park] the arriver's part */
    JRT_LEFT_STRAND,  /* its loop ended: the stack is free */
};

/* A worker's counters: written by its thread, read by anybody. */
struct jrt_counts {
    _Atomic(uint64_t) tasks_executed, tasks_in_place, tasks_cancelled, tasks_stolen;
    _Atomic(uint64_t) steals_failed, switches, parks, yields;
};

static inline void jrt_count(_Atomic(uint64_t) *counter)
{
    /* relaxed, both: one writer; readers take what they get. */
    uint64_t value = jrt_load_relaxed(counter);
    jrt_store_relaxed(counter, value + 1); /* relaxed: as above. */
}

struct jrt_worker {
    /* Written by the worker's own thread alone. */
    struct jrt_task       *current; /* the task that runs, NULL in the loop */
    struct jrt_strand     *strand;  /* we are running on */
    struct jrt_strand     *spare;   /* for the next loop; NULL: take one */
    struct jrt_task       *handoff; /* for the fresh loop to run first */
    struct jrt_task       *free;    /* task records at hand */
    struct jrt_thread     *thread;
    janus_scheduler       *scheduler;
    uint32_t               index;
    uint32_t               free_count;
    uint32_t               tick;         /* picks so far */
    uint32_t               until_others; /* picks until others come first */
    bool                   alone;        /* the only worker: nobody steals */
    uint32_t               lanes;        /* bit by lane: its queues may have something */
    enum jrt_left          left;
    struct jrt_task       *left_task;
    struct jrt_context    *left_context;
    struct jrt_strand     *rescue; /* where a task that overflowed is cleaned up */
    struct jrt_context     root;   /* the thread's own stack, while strands run */
    struct jrt_victims     victims;
    uint32_t              *loads; /* owned; LEAST_LOADED only, else NULL */
    struct jrt_counts      stats;
    struct jrt_stack_cache stacks;
    unsigned               deques_open;

    /* New tasks, newest first; tasks that ran before, oldest first. Thieves take from both. */
    struct jrt_deque fresh[JRT_LANES];
    struct jrt_deque again[JRT_LANES];

    /* Written by others too. */
    _Alignas(64) _Atomic(uint32_t) signal; /* [idle-sleep] 1: somebody woke us */
    struct jrt_worker   *next_sleeper;
    struct jrt_os_thread os_thread;
};

struct janus_scheduler {
    /* Never change after creation. */
    uint32_t      worker_count;
    janus_profile profile;
    unsigned      stack_class;
    bool          stealing;
    bool          deadlock_check;

    struct jrt_depot    depot;
    struct jrt_records  records;
    struct jrt_blocking blocking;

    pthread_mutex_t  inject_lock; /* guards the injected tasks */
    struct jrt_task *inject_first[JRT_LANES], *inject_last[JRT_LANES];
    uint32_t         inject_tick;
    _Alignas(64) _Atomic(uint32_t) injected; /* how many */

    pthread_mutex_t   timer_lock; /* guards the timers */
    struct jrt_timers timers;
    _Atomic(uint64_t) timer_next; /* the earliest deadline, for a look without the lock */

    pthread_mutex_t    idle_lock; /* guards the sleepers */
    struct jrt_worker *sleepers;
    uint32_t           epoch;
    struct jrt_worker *keeper;               /* the one that sleeps until timer_next */
    _Alignas(64) _Atomic(uint32_t) sleeping; /* how many sleep */
    _Atomic(uint32_t) searching;             /* how many look for work */

    pthread_mutex_t          roots_lock; /* guards the nurseries of plain threads and the state */
    struct jrt_list_node     roots;
    _Atomic(uint32_t)        blocking_calls; /* tasks that wait for one */
    _Atomic(uint32_t)        outside; /* of these, those whose thread is not waiting in them */
    bool                     started, stopped;
    _Atomic(bool)            stopping;
    _Atomic(uint64_t)        cancels;   /* how many there were, plus 1; [cancel-epoch] */
    _Atomic(uint32_t)        root_done; /* futex: changes when a root nursery has no child left */
    bool                     depot_open, records_open, blocking_open, fault_open;
    uint32_t                 workers_open;
    struct jrt_signal_watch *dump_watch; /* owned; janus_scheduler_dump_on made it */

    struct jrt_worker workers[];
};

/* The calling thread's worker; NULL on other threads. Not to be kept across a wait. */
static inline struct jrt_worker *jrt_worker_self(void) { return jrt_thread_self()->worker; }

/* The thread of a worker. */
void jrt_worker_main(void *worker);

/* A strand that can run a loop, with no task on it. NULL: memory refused. */
struct jrt_strand *jrt_strand_take(struct jrt_worker *worker);
void               jrt_strand_give(struct jrt_worker *worker, struct jrt_strand *strand);

/* Makes sure that an overflow on this worker can be survived. False: memory refused. */
bool jrt_worker_rescue_ready(struct jrt_worker *worker);

/* Makes sure that the current task can leave the CPU. False: memory refused. */
bool jrt_worker_can_leave(struct jrt_worker *worker);

/* Runs a task that never ran, here and now, on the current strand. The worker may be another one
 * afterwards. */
void jrt_task_run_here(struct jrt_worker *worker, struct jrt_task *task);

/* What is below the stack pointer on the current strand. */
size_t jrt_worker_stack_left(const struct jrt_worker *worker);

/* Puts a new task, or one that goes on, where a worker will find it. */
void jrt_submit_fresh(struct jrt_worker *worker, struct jrt_task *task);
void jrt_submit_again(janus_scheduler *scheduler, struct jrt_task *task);

/* A task record, and back. NULL: memory refused. */
struct jrt_task *jrt_task_alloc(janus_scheduler *scheduler, struct jrt_worker *worker);
void jrt_task_free(janus_scheduler *scheduler, struct jrt_worker *worker, struct jrt_task *task);

/* The newest fresh task of a lane of the own queue; NULL: there is none. */
static inline struct jrt_task *jrt_take_newest(struct jrt_worker *worker, unsigned lane)
{
    struct jrt_deque *deque = &worker->fresh[lane];
    return worker->alone ? jrt_deque_pop_alone(deque) : jrt_deque_pop(deque);
}

/* The next task for this worker; NULL: there is none now. */
struct jrt_task *jrt_pick(struct jrt_worker *worker);

/* Every so often, for those who run one task after the other without picking: whether tasks that
 * ran before, or were injected, wait. */
bool jrt_others_wait(struct jrt_worker *worker);

/* Lets those run; the current task goes to the back of the queue. */
void jrt_task_give_way(struct jrt_worker *worker, struct jrt_task *task);

/* A task of another worker; NULL: none found. */
struct jrt_task *jrt_steal(struct jrt_worker *thief);
unsigned         jrt_victim_choose(struct jrt_worker *thief, uint32_t attempt);

/* Whether a queue this worker may take from has something, after a fence. */
bool jrt_work_for(const struct jrt_worker *worker);

/* From idle.c: after a task was put on a queue others may take from. */
void jrt_idle_notify(janus_scheduler *scheduler);

/* Looks for work, sleeps, looks again. NULL: the scheduler has stopped. */
struct jrt_task *jrt_idle(struct jrt_worker *worker);

/* Wakes everybody, for the end. */
void jrt_idle_wake_all(janus_scheduler *scheduler);

/* The sleeper that waits for the next timer looks again. */
void jrt_idle_wake_keeper(janus_scheduler *scheduler);

/* A timer and what it does, under the timers' lock: wake, or note something. */
struct jrt_alarm {
    struct jrt_timer timer; /* first */
    void             (*ring)(struct jrt_alarm *alarm);
    void            *subject;
};

/* Arms, disarms, fires what is due. */
bool jrt_sched_timer_arm(janus_scheduler *scheduler, struct jrt_timer *timer, uint64_t deadline_ns);
void jrt_sched_timer_disarm(janus_scheduler *scheduler, struct jrt_timer *timer);
void jrt_sched_timers_fire(janus_scheduler *scheduler);

/* A task has ended; from nursery.c. The record is the nursery's from here on. `below` is the task
 * that ran it in place, or NULL. */
void jrt_nursery_child_done(struct jrt_worker *worker, struct jrt_task *task,
                            const struct jrt_task *below);

/* Nothing can happen any more: say so and end the waits; from deadlock.c. */
bool jrt_deadlock_break(janus_scheduler *scheduler);

#endif
