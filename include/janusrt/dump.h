/* SPDX-License-Identifier: MIT */
/*
 * Looking inside: what every task is doing, as text.
 *
 *     janusrt: scheduler 0x5581e0: 2 workers
 *     worker 0: task 0x100000001, executed 7 (2 in place), skipped 0, stolen 1, ...
 *     worker 1: idle, executed 3 (0 in place), ...
 *     nursery "root" of a thread: closing, 1 child
 *       task "main" 0x100000001: blocked, waits for its children, for 3.2 s, last on worker 1
 *         nursery "requests": closing, 3 children
 *           task "task" 0x200000001: blocked, waits for the clock, for 12 ms, last on worker 0
 *           and 2 more that are queued, running, or never waited
 *     janusrt: end of dump
 *
 * A line names what its task waits for and, if known, the holder: "waits for mutex "accounts" held
 * by task "teller" 0x300000001 (bank.c:40)". One dump names at most 4096 channels.
 *
 * The dump only counts tasks that never had to wait, because no list holds them. Each line ends
 * with the place where its task was started. Times come from a clock that ticks every 1 to 10 ms. A
 * task notes the time only when it begins to wait. For a task that no longer waits the dump shows a
 * bound, "for at most 3.2 s".
 */
#ifndef JANUSRT_DUMP_H
#define JANUSRT_DUMP_H

#include <janusrt/export.h>
#include <janusrt/nursery.h>
#include <janusrt/options.h>
#include <janusrt/scheduler.h>
#include <janusrt/status.h>
#include <janusrt/task.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * The largest dump. A longer one is cut and says so. It is collected in memory, so that no lock
 * waits for `fd`.
 */
#define JANUS_DUMP_BYTES_MAX ((size_t)1 << 20)

/* Nurseries deeper than this are not shown; the dump says so. */
#define JANUS_DUMP_DEPTH_MAX 48

/* What the library knows about one task. */
typedef struct janus_task_info {
    size_t           struct_bytes; /* sizeof this struct; JANUS_TASK_INFO sets it */
    janus_task_id    id;
    janus_task_state state;
    char             wait[JANUS_NAME_BYTES]; /* BLOCKED: for what, as "the clock"; else "nothing" */
    char             name[JANUS_NAME_BYTES]; /* as kept, or "task" */
    janus_site       site;                   /* where it was started; file NULL: unknown */
    janus_priority   priority;               /* never DEFAULT */
    janus_cancel_reason cancel;      /* why it was cancelled, shielded or not; NONE: it was not */
    size_t              stack_bytes; /* promised to the task */
    janus_nursery      *nursery;     /* whose child it is; NULL: a hidden one's. Another task's: to
                                      compare only */
    char                nursery_name[JANUS_NAME_BYTES]; /* as kept, or "nursery" */
    janus_task_id       parent;    /* the task that owns that nursery; 0: a thread does */
    janus_nursery      *owned;     /* its innermost; NULL: none. Another task's: one of them, which
                                      may have ended, to compare only */
    uint32_t            nurseries; /* open, not hidden. Another task's: those where a task waited */
    uint32_t            worker;    /* on which it runs, or last began to wait; UINT32_MAX: unknown.
                                      THREADED tasks have numbers after those of the workers */
    uint64_t            state_ns;  /* how long it has been in its state; 0: unknown */
    bool                at_most;   /* state_ns is a bound, because the task does not wait */
    bool                has_result; /* it has ended and was not joined; result and panic are set */
    int64_t             result;
    janus_panic_kind    panic;        /* NONE: it returned */
    bool                budget_known; /* for the caller and for exhausted children */
    janus_component     lacks;        /* exhausted: the component that is missing */
    janus_budget        budget;       /* what is left */
} janus_task_info;
#define JANUS_TASK_INFO() JANUS_SIZED_(janus_task_info)

/* What the library knows about one nursery. */
typedef struct janus_nursery_info {
    size_t              struct_bytes; /* sizeof this struct; JANUS_NURSERY_INFO sets it */
    janus_nursery_state state;
    janus_cancel_reason reason; /* CANCELLING or CANCELLED: why */
    janus_policy        policy;
    uint32_t            max_children;           /* 0: no limit */
    char                name[JANUS_NAME_BYTES]; /* as kept, or "nursery" */
    size_t              stack_bytes;            /* of children that ask for no size */
    uint64_t            children;               /* direct children that have not ended */
    janus_task_id       owner;                  /* 0: a plain thread */
    janus_nursery      *parent;     /* around it, not hidden; NULL: none. To compare only */
    uint64_t            errors;     /* children that failed */
    int64_t             error;      /* result of the first child that failed */
    janus_task_id       error_task; /* the first child that failed */
} janus_nursery_info;
#define JANUS_NURSERY_INFO() JANUS_SIZED_(janus_nursery_info)

/* For janus_worker_inspect: the sum of all workers. */
#define JANUS_ALL_WORKERS UINT32_MAX

/* What is known about one worker, or about all. In the sum are also the threads of children that
 * have ended; those that live are counted when they end. */
typedef struct janus_worker_info {
    size_t        struct_bytes;    /* sizeof this struct; JANUS_WORKER_INFO sets it */
    uint32_t      index;           /* from 0; JANUS_ALL_WORKERS: the sum */
    bool          stealing;        /* it may take from others */
    janus_task_id task;            /* it runs; 0: none, or the sum */
    uint64_t      queued;          /* tasks in its own queues */
    uint64_t      tasks_executed;  /* started here */
    uint64_t      tasks_in_place;  /* of these, run on their parent's stack without a switch */
    uint64_t      tasks_cancelled; /* skipped: cancelled before they started */
    uint64_t      tasks_stolen;    /* taken from another worker */
    uint64_t      steals_failed;   /* attempts that found nothing or lost a race */
    uint64_t      switches;        /* from one task to another or to the worker's loop */
    uint64_t      parks;           /* times the worker's thread went to sleep */
    uint64_t      yields;          /* tasks that gave way */
    uint64_t      restarts;    /* threads that ended under the worker and were replaced: 0, unless a
                                 task calls pthread_exit or its thread is cancelled */
    uint64_t      exhaustions; /* times a task could not pay */
    uint64_t      recharges;   /* times one got more */
    uint64_t      refusals;    /* spawns that a limit or a missing capability refused */
} janus_worker_info;
#define JANUS_WORKER_INFO() JANUS_SIZED_(janus_worker_info)

JANUS_BEGIN_DECLS

/*
 * Writes the workers, their counters and the tree of nurseries and tasks to a file descriptor. A
 * task dumps its own scheduler like this:
 *
 *     static int64_t serve(void *argument)
 *     {
 *         if (janus_scheduler_dump(janus_scheduler_current(), STDERR_FILENO) != JANUS_OK) ...
 *
 * Context: any thread or task, until janus_scheduler_destroy. Tasks go on meanwhile, so two
 *          lines may show different moments. Not in a signal handler.
 * Yields:  only if the turn is over; writing may block the thread, but no lock is held then.
 * Owns:    `fd` stays the caller's.
 * Cost:    about 0.3 us for each line, in which its nursery's lock and those above are held.
 * Errors:  INVALID    `scheduler` is NULL, or `fd` cannot be written to
 *          NO_MEMORY  memory was refused
 */
JANUS_API janus_status janus_scheduler_dump(janus_scheduler *scheduler, int fd);

/*
 * Makes a signal write a dump to standard error, by a thread of the library. Destroying the
 * scheduler ends that and restores the handler that was installed before. Several schedulers may
 * ask for the same signal.
 *
 * Context: any thread, once for a scheduler.
 * Yields:  only if the turn is over.
 * Owns:    the signal's handler, until the last scheduler that asked for it is destroyed.
 * Cost:    a thread for all schedulers together, which sleeps; a file descriptor for ever.
 * Errors:  INVALID      the signal does not exist, cannot be caught, or reports a fault
 *          STATE        this scheduler already has a signal
 *          UNAVAILABLE  no file descriptor left
 *          NO_MEMORY    no memory, or no thread could be started
 *          NO_EXECUTOR_CAP  a restricted task without executor.configure, see scheduler.h
 */
JANUS_NODISCARD JANUS_API janus_status janus_scheduler_dump_on(janus_scheduler *scheduler,
                                                               int              signal_number);

/*
 * Looks at a child by its id. It finds a joinable child until that is joined. It finds another
 * child while that lives, if it ever had to wait.
 *
 * Context: the nursery's owner.
 * Yields:  only if the turn is over.
 * Owns:    *out stays the caller's; set out->struct_bytes before.
 * Cost:    a lock; a look at each of the nursery's children that waited or ended.
 * Errors:  STALE    no such child of this nursery, or it cannot be found
 *          STATE    not the owner
 *          INVALID  an argument is NULL, or out->struct_bytes is no size of it
 */
JANUS_NODISCARD JANUS_API janus_status janus_task_inspect(janus_nursery *nursery,
                                                          janus_task_id task, janus_task_info *out);

/*
 * Looks at the current task. `nurseries` is exact; `state_ns` is unknown.
 *
 * Context: inside a task.
 * Yields:  only if the turn is over.
 * Owns:    *out stays the caller's; set out->struct_bytes before.
 * Cost:    a step for each nursery that it has open, and for each around it.
 * Errors:  STATE    not inside a task
 *          INVALID  `out` is NULL, or out->struct_bytes is no size of it
 */
JANUS_NODISCARD JANUS_API janus_status janus_task_inspect_current(janus_task_info *out);

/*
 * Looks at a nursery.
 *
 * Context: the nursery's owner.
 * Yields:  only if the turn is over.
 * Owns:    *out stays the caller's; set out->struct_bytes before.
 * Cost:    a lock.
 * Errors:  STATE    not the owner
 *          INVALID  an argument is NULL, or out->struct_bytes is no size of it
 */
JANUS_NODISCARD JANUS_API janus_status janus_nursery_inspect(janus_nursery      *nursery,
                                                             janus_nursery_info *out);

/*
 * Looks at a worker, by its number from 0, or with JANUS_ALL_WORKERS at the sum of all.
 *
 * Context: any thread or task, until janus_scheduler_destroy. Tasks go on meanwhile.
 * Yields:  only if the turn is over.
 * Owns:    *out stays the caller's; set out->struct_bytes before.
 * Cost:    some twenty loads for each worker.
 * Errors:  INVALID  no such worker, an argument is NULL, or out->struct_bytes is no size of it
 */
JANUS_NODISCARD JANUS_API janus_status janus_worker_inspect(const janus_scheduler *scheduler,
                                                            uint32_t               worker,
                                                            janus_worker_info     *out);

/*
 * A task state's name: "ready", "running", "blocked", "budget exhausted", "completed", "cancelled".
 *
 * Context: anyone, any thread.
 * Yields:  never.
 * Owns:    the text is the library's, constant for ever.
 * Cost:    a table look-up.
 * Errors:  none; a number that is no state gives "?".
 */
JANUS_API const char *janus_task_state_name(janus_task_state state);

/*
 * A nursery state's name: "open", "closing", "cancelling", "closed", "cancelled".
 *
 * Context: anyone, any thread.
 * Yields:  never.
 * Owns:    the text is the library's, constant for ever.
 * Cost:    a table look-up.
 * Errors:  none; a number that is no state gives "?".
 */
JANUS_API const char *janus_nursery_state_name(janus_nursery_state state);

JANUS_END_DECLS
#endif
