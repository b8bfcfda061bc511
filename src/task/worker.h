/* SPDX-License-Identifier: MIT */
/* Workers and their scheduler. The essay is in worker.c; idle.c is about sleeping and waking. */
#ifndef JRT_TASK_WORKER_H
#define JRT_TASK_WORKER_H

#include "audit/audit.h"
#include "budget/account.h"
#include "cap/cap.h"
#include "cap/use.h"
#include "fiber/thread.h"
#include "heap/chunk.h"
#include "plat/seam.h"
#include "sched/blocking.h"
#include "sched/deque.h"
#include "sched/shelf.h"
#include "sched/victim.h"
#include "task/limit.h"
#include "task/reach.h"
#include "task/roster.h"
#include "task/task.h"
#include "task/turns.h"
#include "trace/trace.h"

enum {
    JRT_LANES = 3, /* HIGH, NORMAL, LOW */
    JRT_LANE_NORMAL = 1,
    JRT_RAID_MAX = 64,      /* tasks taken from a shelf at once */
    JRT_STEAL_ATTEMPTS = 4, /* per cycle, or one for each other worker */
    JRT_POOR_FEW = 4,       /* loots in a row, [idle-doze]; then a thief takes only: */
    JRT_POOR_LOOT = 8,
};

/* The queues that may have a task: a bit for each lane, and a bit for the public NORMAL queues. */
enum {
    JRT_IN_HIGH = 1,
    JRT_IN_NORMAL = 1 << JRT_LANE_NORMAL,
    JRT_IN_PUBLIC = 1 << JRT_LANES, /* the NORMAL lane's deques */
};

/* The counter of cancels: begun ones in the low bits, finished ones above, beginning with 1. */
#define JRT_CANCELS_BEGUN UINT64_C(0xffff)
#define JRT_CANCELS_ONE UINT64_C(0x10000)

/* What to do for the strand that was just left, now that it is off the CPU. */
enum jrt_left {
    JRT_LEFT_NOTHING,
    JRT_LEFT_YIELDED, /* queue the task */
    JRT_LEFT_PARKING, /* the arriver's part of [task-park] */
    JRT_LEFT_STRAND,  /* its loop ended: the stack is free */
};

/* A worker's counters. Its thread writes them, and any thread reads them. */
struct jrt_counts {
    _Atomic(uint64_t) tasks_executed, tasks_by_loop, tasks_cancelled, tasks_stolen;
    _Atomic(uint64_t) steals_failed, switches, parks, yields, restarts;
    _Atomic(uint64_t) exhaustions, recharges, refusals;
};

static inline void jrt_count(_Atomic(uint64_t) *counter)
{
    /* relaxed, both: one writer. Readers accept any value. */
    uint64_t value = jrt_load_relaxed(counter);
    jrt_store_relaxed(counter, value + 1); /* relaxed: as above. */
}

/*
 * [worker-plain]  How plainly tasks are started, run in place and ended. PLAIN: no trace, no
 *   simulation, no C++ exceptions, and light fences are free. The paths that run a hundred million
 *   times a second ask this once. FENCED: light fences cost something.
 */
enum jrt_plainness {
    JRT_NOT_PLAIN,
    JRT_PLAIN_FENCED,
    JRT_PLAIN,
};

struct jrt_purse;
struct jrt_seat;

struct jrt_worker {
    /* New NORMAL tasks, the worker's own until another worker wants them; [queue-shelf]. */
    struct jrt_shelf fresh_shelf;
    /* Only the worker's own thread writes these. */
    struct jrt_task       *current; /* the running task; NULL: in the loop */
    struct jrt_strand     *strand;  /* the strand that runs */
    struct jrt_task       *free;    /* clean spare records, fewer than JRT_FREE_MAX */
    struct jrt_thread     *thread;
    int                   *error_at; /* errno of that thread, [task-errno] */
    janus_scheduler       *scheduler;
    int64_t                slice;        /* fuel of a task without a purse; constant */
    uint32_t               free_room;    /* JRT_FREE_MAX less the spare records */
    uint32_t               until_others; /* picks until others come first, [queue-pace] */
    uint32_t               lanes;        /* JRT_IN_*: queues that may have a task */
    uint8_t                plain;        /* enum jrt_plainness; constant */
    bool                   alone;        /* the only worker: nobody steals */
    bool                   gave_way; /* its task leaves because others come first, [queue-served] */
    uint8_t                forks;    /* enum jrt_forking; constant */
    struct jrt_quota       quota;
    struct jrt_shelf       again_shelf; /* tasks that ran before, [queue-shelf] */
    struct jrt_task       *left_task;
    struct jrt_counts      stats;
    struct jrt_trace_lane *trace; /* where events go, constant; NULL: no trace */
    int32_t                tolls; /* left until a look at the clock, [turn-toll] */
    uint32_t               tick;  /* picks so far */
    uint32_t               index, others_every;
    struct jrt_strand     *spare;        /* for the next loop; NULL: take one */
    struct jrt_task       *handoff;      /* for the fresh loop to run first */
    struct jrt_task       *free_batch;   /* a whole batch more, or NULL */
    uint32_t               until_timers; /* calls of janus_cancelled until timers fire */
    uint32_t               until_clock;  /* waits until the next look at the clock, [peek-time] */
    uint32_t               since;        /* time of the last look, as in struct jrt_task */
    uint32_t               until_split;  /* forks until the next look, [fork-look] */
    uint32_t               split_every;  /* forks from one look to the next */
    enum jrt_left          left;
    _Atomic(bool)          doomed;   /* its thread must end, [replace-doom] */
    bool                   lost;     /* no thread executes it, [replace-lost]; threads_lock */
    uint64_t               split_ns; /* time of the last look at forks */
    struct jrt_turns       turns;
    uint32_t               slices;          /* slices that ended here, [turn-balance] */
    uint64_t               picked_ns;       /* time of the last look at timers, [queue-pace] */
    uint64_t               oldest_seen;     /* on the fresh shelf */
    uint64_t               oldest_since_ns; /* since when */
    uint64_t               lone_before; /* on the other shelf, + 1, at the last look for others */
    uint32_t               searches, looks; /* for work, of picks; so far */
    uint32_t               watched;         /* index of a worker, [queue-rescue] */
    uint64_t               watched_oldest;  /* its oldest task, + 1; 0: not seen yet */
    uint32_t               loot;            /* new tasks that it stole; 0: none */
    uint64_t               loot_ns;         /* when it stole them */
    uint32_t               poor;            /* poor loots in a row, [idle-doze] */
    unsigned               deques_open;
    struct jrt_context    *left_context;
    struct jrt_context    *entered_context;
    struct jrt_strand     *rescue; /* cleans up after a task that overflowed */
    struct jrt_strand     *last;   /* for refused memory, [strand-last]; NULL: in use */
    struct jrt_context     root;   /* the thread's own stack, while strands run */
    struct jrt_victims     victims;
    struct jrt_rng         choices; /* of selects */
    struct jrt_stack_cache stacks;
    struct jrt_heap_cache  heaps;
    struct jrt_purse      *purses;       /* owned; spare ones, [purse-spare] */
    uint32_t               purses_count; /* number of spare ones */
    uint32_t               trims;        /* requests seen, [strand-trim] */
    uint32_t               waits_at;     /* traced: channel at which its task is about to wait */

    /* New tasks, newest first; tasks that ran before, oldest first. Thieves take from all. */
    struct jrt_deque fresh[JRT_LANES];
    struct jrt_deque again[JRT_LANES];

    /* Others write these, too. */
    _Alignas(64) _Atomic(uint32_t) signal; /* [idle-sleep] 1: it was woken */
    _Atomic(uint64_t)    lone_seen; /* [queue-served] the lone task that others saw last, + 1 */
    struct jrt_worker   *next_sleeper;
    struct jrt_os_thread os_thread;
    struct jrt_arrivals *arrivals; /* borrowed; a starter waits for its thread, [replace-arrive] */

    /* The worker's own again, on another line. */
    struct jrt_holder       *holder; /* spare, for a task; NULL: none */
    struct jrt_seat         *seat;   /* the seat that it is, constant, or NULL */
    struct jrt_audit_writer *audit;  /* NULL: nothing is recorded */
    uint32_t                *loads;  /* owned; LEAST_LOADED only, else NULL */
    int64_t                  seized; /* of its quota, just now, [limit-seize]; the limit's lock */
};

struct janus_scheduler {
    /* Never change after creation. */
    uint32_t      worker_count;
    janus_profile profile;
    unsigned      stack_class;
    uint32_t      birth;                   /* of a task that asks for nothing */
    size_t        room[JRT_STACK_CLASSES]; /* that a child that runs in place must find */
    bool          stealing, deadlock_check, quiet_panics;
    int64_t       nesting_max;       /* [nursery-nested] */
    uint64_t      turn_ns, grace_ns; /* for defers of cancelled tasks; 0: any time */

    /* Implicit means of tasks; constant, too. */
    janus_budget         task_budget; /* of each task */
    janus_budget         budget_max;  /* the largest possible request */
    janus_channel_limits channel_limits;
    uint64_t             unowned_max;    /* bytes, [ledger-pool] */
    uint64_t             backends;       /* a set */
    uint32_t             implicit;       /* bits 1 << kind: held without a capability */
    uint32_t             yield_interval; /* iterations */
    uint8_t              exhaustion;     /* janus_exhaustion */
    bool                 supervisors;    /* they recharge without a capability */
    struct jrt_terms    *terms;          /* owned, of root nurseries; NULL: implicit */
    uint32_t             derived_max;    /* capabilities derived under terms; constant */
    struct jrt_terms    *counter;        /* owned; counts channels without a capability */

    struct jrt_limit        limit; /* tasks that live without a capability */
    struct jrt_pool_account bank;  /* source of every explicit budget */
    struct jrt_heap_depot   heaps;
    janus_cap_table        *caps;      /* owned */
    janus_authority        *authority; /* the table's; NULL: taken. roots_lock */
    janus_audit            *audit;     /* borrowed, or NULL */
    janus_on_panic         *on_panic;  /* NULL: stderr, unless quiet_panics */
    void                   *on_panic_argument;
    struct jrt_run_books   *books; /* of janus_run_with, which reads them at the end; NULL: none */
    struct jrt_task        *first; /* of janus_run; it may take the authority */
    bool                    implicit_open;

    /* Debug builds call this at every change of a task's state. NULL: nobody. Set before the
     * start. */
    void (*on_move)(const struct jrt_task *task, janus_task_state from, janus_task_state to);

    pthread_mutex_t      seats_lock; /* guards the seats, [seat-end] */
    struct jrt_list_node seats;
    uint32_t             seats_made, threads_max; /* threads_max: constant */
    _Atomic(uint32_t)    threads;                 /* children with a thread of their own */
    struct jrt_counts    seat_stats;              /* of seats that have ended */

    struct jrt_world   *world;      /* simulates all its threads; NULL: they are real */
    struct jrt_depot   *depot;      /* owned */
    _Atomic(uint32_t)   trims;      /* requests so far, [strand-trim] */
    _Atomic(size_t)     trim_bytes; /* that the last request leaves */
    struct jrt_tracer   tracer;
    struct jrt_roster   roster;
    struct jrt_blocking blocking;

    pthread_mutex_t  inject_lock; /* guards the injected tasks */
    struct jrt_task *inject_first[JRT_LANES], *inject_last[JRT_LANES];
    uint32_t         inject_tick;
    _Alignas(64) _Atomic(uint32_t) injected; /* number of injected tasks */

    pthread_mutex_t   timer_lock; /* guards the timers */
    struct jrt_timers timers;
    _Atomic(uint64_t) timer_next; /* earliest deadline, for a look without the lock */

    pthread_mutex_t    idle_lock; /* guards the sleepers */
    struct jrt_worker *sleepers;
    uint32_t           epoch;  /* changes when a sleeper gets up */
    uint32_t           told;   /* the epoch, | 1, whose deadlock was reported */
    struct jrt_worker *keeper; /* the sleeper that wakes at timer_next */
    /* The number of searchers, and in units of JRT_SLEEPER the number of sleepers. One word,
     * because every submit reads both. */
    _Alignas(64) _Atomic(uint64_t) idlers;
    _Atomic(uint32_t) fed; /* changes when searchers were given tasks */

    pthread_mutex_t    threads_lock; /* guards the workers' threads, [replace-join] */
    struct jrt_former *formers;      /* owned; replaced threads that are not joined yet */
    uint32_t           threadless;   /* workers whose thread could not be replaced */
    union {                          /* what workers look after now and then */
        struct {
            _Atomic(uint32_t) lost, wishes; /* workers with empty queues; [limit-wish] */
        };
        _Atomic(uint64_t) cares; /* both */
    };
    _Atomic(uint64_t) revive_next; /* when to look for threads for lost workers again */

    pthread_mutex_t      roots_lock; /* guards the nurseries of plain threads and the state */
    struct jrt_list_node roots;
    _Atomic(uint32_t)    blocking_calls; /* tasks that wait for a blocking call */
    /* Counts what can act although no worker runs: nurseries whose threads do not wait in them,
     * tokens that cancel a nursery, public waitpoints. */
    _Atomic(uint32_t)        outside;
    _Atomic(uint32_t)        guests; /* [point-guest] */
    bool                     started, stopped;
    _Atomic(bool)            stopping, deadlocked; /* deadlocked: a deadlock was broken */
    _Atomic(uint64_t)        cancels;   /* JRT_CANCELS_*; [cancel-epoch], [cancel-sticky] */
    struct jrt_reach         reach;     /* how far up cancels were */
    _Atomic(uint32_t)        root_done; /* futex: changes when a root has no child left */
    bool                     roster_open, blocking_open, fault_open;
    uint32_t                 workers_open;
    struct jrt_signal_watch *dump_watch; /* owned; made by janus_scheduler_dump_on */

    struct jrt_worker workers[];
};

/* The calling thread's worker; NULL on other threads. Do not keep it across a wait. */
static inline struct jrt_worker *jrt_worker_self(void) { return jrt_thread_worker(); }

/* The task that this thread runs, or NULL. */
static inline struct jrt_task *jrt_task_current(void)
{
    struct jrt_worker *worker = jrt_worker_self();
    return worker != NULL ? worker->current : NULL;
}

/* Whether the scheduler is simulated, and another thread opened it. In scheduler.c. */
bool jrt_scheduler_is_elsewhere(const janus_scheduler *scheduler);

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

void jrt_plain_check(int64_t cost);            /* no worker: a point, in a task's callback an op */
void jrt_turn_call(struct jrt_worker *worker); /* [worker-again] after it */
static inline void jrt_call_check(struct jrt_worker *worker) /* of a task, [turn-call] */
{
    jrt_worker_stack_check(worker);
    if (jrt_unlikely((worker->tolls -= 4) < 0)) jrt_turn_call(worker);
}
static inline void jrt_stack_check(void)
{
    struct jrt_worker *worker = jrt_worker_self();
    worker == NULL ? jrt_plain_check(1) : jrt_call_check(worker);
}
janus_status jrt_unpaid(janus_status status); /* refused before anybody paid, [turn-call] */
void         jrt_callback_check(void);        /* no worker: in a task's callback an op */

#define JRT_SLEEPER ((uint64_t)1 << 32)
static inline uint32_t jrt_sleeping(uint64_t idlers) { return (uint32_t)(idlers >> 32); }
static inline uint32_t jrt_searching(uint64_t idlers) { return (uint32_t)idlers; }
/* The lane, stack and mode of a child that asks for nothing. */
static inline uint32_t jrt_birth(unsigned stack_class)
{
    struct jrt_task like = {.lane = JRT_LANE_NORMAL, .stack_class = (uint8_t)stack_class};
    return like.birth;
}

static inline unsigned jrt_birth_class(uint32_t birth)
{
    struct jrt_task like = {.birth = birth};
    return like.stack_class;
}

/* Opens a worker, except its queues. Closes it, even if it is half open. */
bool jrt_worker_open(struct jrt_worker *worker);
void jrt_worker_close(struct jrt_worker *worker);

/* The main function of a worker's thread. */
void jrt_worker_main(void *worker);

/* A strand that can run a loop, without a task on it. NULL: memory refused. */
struct jrt_strand *jrt_strand_take(struct jrt_worker *worker);
struct jrt_strand *jrt_strand_of_class(struct jrt_worker *worker, unsigned class);
void               jrt_strand_give(struct jrt_worker *worker, struct jrt_strand *strand);

/* Frees its stack, even if it could be kept as the spare. */
void jrt_strand_drop(struct jrt_worker *worker, struct jrt_strand *strand);

/* Runs on the entered strand: the left one is off the CPU. In worker.c. */
int jrt_worker_arrive(void *worker);

/* janus_panic calls this in a task. In ending.c. */
void jrt_task_on_panic(const char *message);
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

/* Handles an overflow of the current task, or of the fiber it runs. In ending.c. */
__attribute__((noreturn)) void jrt_worker_overflowed(struct jrt_worker *worker);

/*
 * Whether the current strand has room for a child on top, with all the stack that it was
 * promised: [stack-eighth] in fiber/stack.c.
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

/* Take and free a task record. NULL: memory refused. */
struct jrt_task *jrt_task_alloc(janus_scheduler *scheduler, struct jrt_worker *worker);
void jrt_task_free(janus_scheduler *scheduler, struct jrt_worker *worker, struct jrt_task *task);

/* The number of spare records at which a worker puts a batch aside. */
enum { JRT_FREE_KEPT = 16, JRT_FREE_MAX = JRT_ROSTER_BATCH + JRT_FREE_KEPT };
void jrt_worker_free_full(struct jrt_worker *worker);

static inline void jrt_task_free_here(struct jrt_worker *worker, struct jrt_task *task)
{
    /* relaxed: from here on the old id is stale. Lookups are under a lock. */
    uint32_t generation = jrt_load_relaxed(&task->record.generation) + 1;
    jrt_store_relaxed(&task->record.generation, generation); /* relaxed: as above. */
    if (jrt_unlikely(generation == 0)) {
        jrt_roster_drop(&worker->scheduler->roster, task);
        return;
    }
    task->record.next = (struct jrt_record *)worker->free;
    worker->free = task;
    if (jrt_unlikely(--worker->free_room == 0)) jrt_worker_free_full(worker);
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

/* Judges whether a loot, which has run, was worth stealing, [idle-doze]. In idle.c. */
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

/* Arm, disarm, and fire due timers. The last returns the time, or 0 if it did not read the
 * clock. */
bool jrt_sched_timer_arm(janus_scheduler *scheduler, struct jrt_timer *timer, uint64_t deadline_ns);
void jrt_sched_timer_disarm(janus_scheduler *scheduler, struct jrt_timer *timer);
uint64_t jrt_sched_timers_fire(janus_scheduler *scheduler);

/* Ends a task, however its call ended. The nursery owns the record from here on. `below` is the
 * task that ran it in place, or NULL. In nursery.c. */
void jrt_nursery_child_done(struct jrt_worker *worker, struct jrt_task *task,
                            const struct jrt_task *below);

/* Whether any task waits, and no thread outside could act. In deadlock.c. */
bool jrt_anybody_waits(janus_scheduler *scheduler);

/* Reports a deadlock and ends the waits. In deadlock.c. */
bool jrt_deadlock_break(janus_scheduler *scheduler);

/* 0, or in a deadlock a number that stays the same while no sleeper gets up. In idle.c. */
uint32_t jrt_idle_stuck(janus_scheduler *scheduler);

/* Counts one off `outside`. Only now may a deadlock be found. In idle.c. */
void jrt_outside_less(janus_scheduler *scheduler);

#endif
