/* SPDX-License-Identifier: MIT */
/* Workers and their scheduler: the types. What workers do is in work/work.h. */
#ifndef JRT_TASK_WORKER_H
#define JRT_TASK_WORKER_H

#include "audit/audit.h"
#include "budget/account.h"
#include "cap/cap.h"
#include "cap/use.h"
#include "fiber/thread.h"
#include "heap/chunk.h"
#include "plat/seam.h"
#include "sched/bias.h"
#include "sched/blocking.h"
#include "sched/deque.h"
#include "sched/names.h"
#include "sched/shelf.h"
#include "sched/timer.h"
#include "sched/victim.h"
#include "task/herd.h"
#include "task/limit.h"
#include "task/reach.h"
#include "task/roster.h"
#include "task/task.h"
#include "task/turns.h"
#include "trace/trace.h"

enum {
    JRT_LANES = 3, /* HIGH, NORMAL, LOW */
    JRT_LANE_NORMAL = 1,
    JRT_RAID_MAX = 64,      /* tasks taken from a shelf at once, but of a crowd: */
    JRT_RAID_CROWD = 2048,  /* tasks that ran before */
    JRT_STEAL_ATTEMPTS = 4, /* per cycle, or one for each other worker */
    JRT_SHORT_STEALS = 4,   /* in a row, [idle-doze]; then a thief takes only: */
    JRT_SHORT_STEAL_MAX = 8,
};

/* The queues that may have a task: a bit for each lane, and a bit for the public NORMAL queues. */
enum {
    JRT_IN_HIGH = 1,
    JRT_IN_NORMAL = 1 << JRT_LANE_NORMAL,
    JRT_IN_PUBLIC = 1 << JRT_LANES,       /* the NORMAL lane's deques */
    JRT_UNCOUNTED = 1 << (JRT_LANES + 1), /* no queue: `uncounted` is not 0, [crowd-count] */
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
    jrt_own_add(counter, 1); /* readers accept any value */
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

struct jrt_poller;
struct jrt_purse;
struct jrt_seat;

struct jrt_worker { /* NOLINT(clang-analyzer-optin.performance.Padding): hot fields together */
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
    bool                   preempts; /* as the scheduler; constant */
    bool                   patrols;  /* it woke up to look after others, [crew-patrol] */
    struct jrt_quota       quota;
    struct jrt_shelf       again_shelf; /* tasks that ran before, [queue-shelf] */
    struct jrt_task       *left_task;
    struct jrt_counts      stats;
    struct jrt_trace_lane *trace; /* where events go, constant; NULL: no trace */
    int32_t                tolls; /* left until a look at the clock, [turn-toll] */
    uint32_t               tick;  /* picks so far */
    uint32_t               index, others_every;
    struct jrt_strand     *spare;        /* for the next loop; NULL: take one */
    struct jrt_bias       *bias;         /* constant, [bias-slot] */
    struct jrt_task       *handoff;      /* for the fresh loop to run first */
    struct jrt_task       *free_batch;   /* a whole batch more, or NULL */
    uint32_t               until_timers; /* calls of janus_cancelled until timers fire */
    uint32_t               timers_at;    /* whose timers it looks at next, [timer-late] */
    uint32_t               until_clock;  /* waits until the next look at the clock, [peek-time] */
    uint32_t               since;        /* time of the last look, as in struct jrt_task */
    uint32_t               until_split;  /* forks until the next look, [fork-look] */
    uint32_t               split_every;  /* forks from one look to the next */
    enum jrt_left          left;
    _Atomic(bool)          doomed;   /* its thread must end, [replace-doom] */
    bool                   lost;     /* no thread executes it, [replace-lost]; threads_lock */
    uint64_t               split_ns; /* time of the last look at forks */
    struct jrt_turns       turns;
    struct jrt_herd        herd;
    uint32_t               slices;          /* slices that ended here, [turn-balance] */
    uint64_t               picked_ns;       /* time of the last look at timers, [queue-pace] */
    uint64_t               oldest_seen;     /* on the fresh shelf */
    uint64_t               oldest_since_ns; /* since when */
    uint32_t               pile;            /* picks since a new task waited for long; 0: none */
    uint64_t               lone_before;     /* place of the lone task at the last look, + 1 */
    struct jrt_nursery    *uncounted_of;    /* valid if: */
    int64_t  uncounted;  /* children that ended here and that it still counts, [crowd-count] */
    uint64_t spawner_at; /* on the other shelf, + 1: gave way to a crowd, [crowd-back] */
    uint64_t spawner_since_ns; /* when it did */
    uint32_t searches, looks;  /* for work, of picks; so far */
    uint32_t lone_yields;      /* while no other task was here; so far */
    uint32_t watched;          /* index of a worker, for rescue in queue.c */
    uint64_t watched_mark;     /* of what waits there; 0: not seen yet */
    uint32_t prey;             /* index of the worker it stole from last */
    uint32_t stolen;           /* new tasks that it stole; 0: none */
    uint64_t stolen_ns;        /* when it stole them */
    uint32_t short_steals;     /* in a row, not worth it, [idle-doze] */
    unsigned deques_open;
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
    uint32_t waits_at; /* traced: where its task is about to wait, a channel or descriptor */

    /* New tasks, newest first; tasks that ran before, oldest first. Thieves take from all. */
    struct jrt_deque fresh[JRT_LANES];
    struct jrt_deque again[JRT_LANES];

    /* Others write these, too. */
    _Alignas(64) _Atomic(uint32_t) signal; /* [idle-sleep] 1: it was woken */
    _Atomic(uint64_t)    lone_seen;   /* [queue-served] the lone task that others saw last, + 1 */
    _Atomic(uint64_t)    patrol_mark; /* of what waited here at the patrol's last look */
    _Atomic(uint32_t)    offered;     /* [herd-gather] 1 + the worker that offers tasks; 0: none */
    struct jrt_worker   *next_sleeper;
    struct jrt_os_thread os_thread;
    struct jrt_arrivals *arrivals; /* borrowed; a starter waits for its thread, [replace-arrive] */
    _Atomic(struct jrt_poller *) poller; /* owned; NULL: no descriptor yet, [poll-set] */
    bool                         in_set; /* it sleeps there; idle_lock, [poll-sleep] */

    /* The worker's own again, on another line. */
    struct jrt_holder       *holder;   /* spare, for a task; NULL: none */
    struct jrt_seat         *seat;     /* the seat that it is, constant, or NULL */
    struct jrt_audit_writer *audit;    /* NULL: nothing is recorded */
    uint32_t                *loads;    /* owned; LEAST_LOADED only, else NULL */
    void                   **booty;    /* owned; room for a large raid, or NULL */
    int64_t                  seized;   /* of its quota, just now, [limit-seize]; the limit's lock */
    void                    *question; /* a spare one, actor/question.c; NULL: none */
    uint64_t                 keys, keys_end; /* of questions: from the next to the one behind */
    /* Tasks that began here to wait for a descriptor, less those that went on here, [poll-stuck] */
    _Atomic(int64_t) io_waits;

    struct jrt_timer_set timers; /* that were armed here, [timer-sets]; unused in a seat */
};

struct janus_scheduler {
    /* Never change after creation. */
    uint32_t      worker_count;
    janus_profile profile;
    unsigned      stack_class;
    uint32_t      initial;                 /* of a task that asks for nothing */
    size_t        room[JRT_STACK_CLASSES]; /* that a child that runs in place must find */
    bool          stealing, deadlock_check, quiet_panics;
    int64_t       max_nesting;       /* [nursery-nested] */
    uint32_t      max_slice;         /* ops, [turn-pace] */
    bool          preempts;          /* a slice may end at any check, [preempt-check] */
    uint64_t      turn_ns, grace_ns; /* for defers of cancelled tasks; 0: any time */

    /* Implicit means of tasks; constant, too. */
    janus_budget         task_budget; /* of each task */
    janus_budget         max_budget;  /* the largest possible request */
    janus_channel_limits channel_limits;
    uint64_t             max_handles, max_processes;
    uint64_t             pool_handles;   /* in each pool, [handle-share] */
    uint64_t             unowned_max;    /* bytes, [ledger-pool] */
    uint64_t             backends;       /* a set */
    uint32_t             implicit;       /* bits 1 << kind: held without a capability */
    uint32_t             yield_interval; /* iterations */
    uint8_t              exhaustion;     /* janus_exhaustion */
    bool                 supervisors;    /* they recharge without a capability */
    struct jrt_terms    *terms;          /* owned, of root nurseries; NULL: implicit */
    uint32_t             derived_max;    /* capabilities derived under terms; constant */
    struct jrt_terms    *counter;        /* owned; counts channels, handles without a capability */

    struct jrt_limit        limit; /* tasks that live without a capability */
    struct jrt_pool_account bank;  /* source of every explicit budget */
    struct jrt_heap_depot   heaps;
    struct jrt_names        names;     /* of actors */
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
    uint32_t             seats_made, max_threads; /* max_threads: constant */
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

    uint64_t          armings;       /* in a world, of all sets, [timer-world] */
    struct jrt_alarm  watch;         /* [poll-others]; the lock of its set */
    _Atomic(uint32_t) watching;      /* 1: the watch is armed. 2: it has rung */
    _Atomic(bool)     polls;         /* some worker has a set */
    _Atomic(int64_t)  seat_io_waits; /* as io_waits, for all seats */

    pthread_mutex_t    idle_lock; /* guards the sleepers */
    struct jrt_worker *sleepers;
    uint32_t           epoch;  /* changes when a sleeper gets up */
    uint32_t           told;   /* the epoch, | 1, whose deadlock was reported */
    struct jrt_worker *keeper; /* the sleeper that wakes at the next timer */
    uint64_t           keeper_until;
    bool               patrols;        /* the keeper does, or will as soon as it sleeps again */
    bool               crew_lost;      /* a worker was lost, [crew-lost] */
    _Atomic(uint32_t)  asleep, beyond; /* sleepers; workers that have no processor, [crew-full] */
    /* The number of searchers, and in units of JRT_SLEEPER the number of sleepers that may be
     * woken for a task. One word, because every submit reads both. */
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

/* The fuel of a task without a purse when it starts: a first slice of its budget. */
static inline int64_t jrt_first_slice(const janus_scheduler *scheduler)
{
    uint64_t most = scheduler->preempts ? 0 : JRT_FIRST_SLICE; /* [preempt-check] */
    return (int64_t)(scheduler->task_budget.ops < most ? scheduler->task_budget.ops : most);
}

/* The calling thread's worker; NULL on other threads. Do not keep it across a wait. */
static inline struct jrt_worker *jrt_worker_self(void) { return jrt_thread_worker(); }

static inline struct jrt_bias *jrt_worker_bias(const struct jrt_worker *worker)
{
    return worker != NULL ? worker->bias : NULL;
}

/* The task that this thread runs, or NULL. */
static inline struct jrt_task *jrt_task_current(void)
{
    struct jrt_worker *worker = jrt_worker_self();
    return worker != NULL ? worker->current : NULL;
}

#define JRT_SLEEPER ((uint64_t)1 << 32)
static inline uint32_t jrt_sleeping(uint64_t idlers) { return (uint32_t)(idlers >> 32); }
static inline uint32_t jrt_searching(uint64_t idlers) { return (uint32_t)idlers; }
/* The lane, stack and mode of a child that asks for nothing. */
static inline uint32_t jrt_initial(unsigned stack_class)
{
    struct jrt_task like = {.lane = JRT_LANE_NORMAL, .stack_class = (uint8_t)stack_class};
    return like.initial;
}

static inline unsigned jrt_initial_class(uint32_t initial)
{
    struct jrt_task like = {.initial = initial};
    return like.stack_class;
}

/* Take and free a task record. NULL: memory refused. */
struct jrt_task *jrt_task_alloc(janus_scheduler *scheduler, struct jrt_worker *worker);
void jrt_task_free(janus_scheduler *scheduler, struct jrt_worker *worker, struct jrt_task *task);

/* The number of spare records at which a worker puts a batch aside. */
enum { JRT_FREE_KEPT = 16, JRT_FREE_MAX = JRT_ROSTER_BATCH + JRT_FREE_KEPT };
void jrt_worker_free_full(struct jrt_worker *worker);

/* Takes a batch for a worker without spare records. False: memory refused. */
bool jrt_worker_free_refill(struct jrt_worker *worker);

static inline void jrt_task_free_here(struct jrt_worker *worker, struct jrt_task *task)
{
    /* From here on the old id is stale. Lookups are under a lock. */
    if (jrt_unlikely(jrt_own_next_is_zero(&task->record.generation))) {
        jrt_roster_drop(&worker->scheduler->roster, task);
        return;
    }
    task->record.next = (struct jrt_record *)worker->free;
    worker->free = task;
    if (jrt_unlikely(--worker->free_room == 0)) jrt_worker_free_full(worker);
}

#endif
