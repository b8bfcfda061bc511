/* SPDX-License-Identifier: MIT */
/*
 * Looking inside: what every task is doing, as text for people.
 *
 *     janusrt: scheduler 0x5581e0: 2 workers
 *     worker 0: task 0x100000001, executed 7 (2 in place), skipped 0, stolen 1, ...
 *     worker 1: idle, executed 3 (0 in place), ...
 *     nursery "root" of a thread: closing, 1 child
 *       task "main" 0x100000001: blocked, waits for its children, for 3.2 s, last on worker 1
 *         nursery "requests": closing, 3 children
 *           task "task" 0x200000001: blocked, waits for the clock, for 12 ms, last on worker 0
 *           and 2 more that are queued, run, or never had to wait
 *     janusrt: end of dump
 *
 * What a task waits for is shown with its name and who holds it, where that is known: "blocked,
 * waits for mutex "accounts" held by task "teller" 0x300000001 (bank.c:40)", "waits for channel
 * "orders" to receive from". Of one dump at most 4096 waits for channels are shown with names.
 *
 * Tasks that never had to wait are in no list, which is why they cost so little; they are counted.
 * Each line ends with where its task was started. Times are by a clock that moves at the kernel's
 * ticks, every 1 to 10 ms, and a task notes one only when it begins to wait: for one that does not
 * wait any more they are a bound, "for at most 3.2 s".
 */
#ifndef JANUSRT_DUMP_H
#define JANUSRT_DUMP_H

#include <janusrt/export.h>
#include <janusrt/nursery.h>
#include <janusrt/scheduler.h>
#include <janusrt/status.h>
#include <janusrt/task.h>
#include <stdbool.h>
#include <stddef.h>

/* A dump is cut here, and says so. It is collected in memory, so that nothing waits for `fd`. */
#define JANUS_DUMP_BYTES_MAX ((size_t)1 << 20)

/* Nurseries deeper than this are not shown; the dump says so. */
#define JANUS_DUMP_DEPTH_MAX 48

/* What is known about one task. */
typedef struct janus_task_info {
    size_t              struct_bytes; /* in: sizeof this struct; the call fills no more than that */
    janus_task_id       id;
    janus_task_state    state;
    char                wait[JANUS_NAME_BYTES]; /* BLOCKED: for what, "the clock"; else "nothing" */
    char                name[JANUS_NAME_BYTES]; /* as kept, or "task" */
    janus_site          site;                   /* where it was started; file NULL: unknown */
    janus_priority      priority;               /* never DEFAULT */
    janus_cancel_reason cancel;      /* why it shall end, shielded or not; NONE: it shall not */
    size_t              stack_bytes; /* that it was promised */
    janus_nursery      *nursery;     /* that it is a child of; of others': to compare only */
    char                nursery_name[JANUS_NAME_BYTES]; /* as kept, or "nursery" */
    janus_task_id       parent;    /* the task that owns that nursery; 0: a thread does */
    janus_nursery      *owned;     /* the innermost of its own; NULL: none. Of others': one of them,
                                      which may be gone by now: to compare only */
    uint32_t            nurseries; /* it has open; of others': those that somebody had to wait in */
    uint32_t            worker;    /* it runs on, or last began to wait on; UINT32_MAX: unknown. A
                                      thread of its own has a number behind those of the workers */
    uint64_t            state_ns;  /* in its state, within a tick of the kernel; 0: unknown */
    bool                at_most;   /* state_ns is a bound: it does not wait */
    bool                has_result; /* it has ended and was not joined: the next two are set */
    int64_t             result;
    janus_panic_kind    panic;        /* NONE: it returned */
    bool                budget_known; /* of oneself, and of children that are exhausted: then */
    janus_component     lacks;        /* exhausted: of what it has too little */
    janus_budget        budget;       /* what it may still do */
} janus_task_info;

/* What is known about one nursery. */
typedef struct janus_nursery_info {
    size_t               struct_bytes; /* in: as above */
    janus_nursery_state  state;
    janus_cancel_reason  reason; /* CANCELLING or CANCELLED: why */
    janus_nursery_policy policy;
    uint32_t             max_children;           /* 0: no limit */
    char                 name[JANUS_NAME_BYTES]; /* as kept, or "nursery" */
    size_t               stack_bytes;            /* for children that ask for nothing */
    uint64_t             children;               /* that have not ended; not their children */
    janus_task_id        owner;                  /* 0: a plain thread */
    janus_nursery       *parent;     /* the owner's next one around it, or else the one the owner is
                                          a child of; NULL: none. To compare only */
    uint64_t             errors;     /* children that failed */
    int64_t              error;      /* of the first of them */
    janus_task_id        error_task; /* which that was */
} janus_nursery_info;

/* What is known about one worker. Its counters: janus_scheduler_stats. */
typedef struct janus_worker_info {
    size_t        struct_bytes; /* in: as above */
    uint32_t      index;        /* from 0 */
    bool          stealing;     /* it may take from others */
    janus_task_id task;         /* it runs; 0: none */
    uint64_t      queued;       /* tasks in its own queues */
} janus_worker_info;

JANUS_BEGIN_DECLS

/*
 * Writes the workers, their counters and the tree of nurseries and tasks to a file descriptor. A
 * task of janus_run dumps its own scheduler:
 *
 *     static int64_t serve(void *argument)
 *     {
 *         if (janus_scheduler_dump(janus_scheduler_current(), STDERR_FILENO) != JANUS_OK) ...
 *
 * Context: any thread or task, while the scheduler is not closed; everything goes on meanwhile, so
 *          two lines need not be of the same moment. Not in a signal handler.
 * Yields:  only if the turn is over; writing may block the thread, but no lock is held then.
 * Owns:    `fd` stays the caller's.
 * Cost:    about 0.3 us for each line, in which its nursery's lock and those above are held.
 * Errors:  INVALID    `scheduler` is NULL, or `fd` cannot be written to
 *          NO_MEMORY  memory was refused
 */
JANUS_API janus_status janus_scheduler_dump(janus_scheduler *scheduler, int fd);

/*
 * From now on the signal leads to a dump on the standard error output, written by a thread that
 * is there for it. Closing the scheduler ends it and puts back the handler that was there before.
 * Several schedulers may ask for the same signal.
 *
 * Context: any thread, once for a scheduler.
 * Yields:  only if the turn is over.
 * Owns:    the signal's handler, until the last scheduler that asked for it is closed.
 * Cost:    a thread for all schedulers together, which sleeps; a file descriptor for ever.
 * Errors:  INVALID      no such signal, or one that cannot be caught, or a fault
 *          STATE        it was called before for this scheduler
 *          UNAVAILABLE  no file descriptor left
 *          NO_MEMORY    no memory, or no thread could be started
 *          NO_EXECUTOR_CAP  a restricted task without executor.configure, see scheduler.h
 */
JANUS_NODISCARD JANUS_API janus_status janus_scheduler_dump_on(janus_scheduler *scheduler,
                                                               int              signal_number);

/*
 * Looks at a child by its id. Children that can be joined are found until they are; others while
 * they wait, or have waited, and have not ended.
 *
 * Context: the nursery's owner.
 * Yields:  only if the turn is over.
 * Owns:    *out stays the caller's; set out->struct_bytes before.
 * Cost:    a lock; a look at each of the nursery's children that waited or ended.
 * Errors:  STALE    no such child of this nursery, or none that can be found
 *          STATE    not the owner
 *          INVALID  an argument is NULL, or out->struct_bytes is too small
 */
JANUS_API janus_status janus_task_inspect(janus_nursery *nursery, janus_task_id task,
                                          janus_task_info *out);

/*
 * Looks at the current task. Its nurseries are counted exactly; state_ns is not known.
 *
 * Context: inside a task.
 * Yields:  only if the turn is over.
 * Owns:    *out stays the caller's; set out->struct_bytes before.
 * Cost:    a look at each nursery it has open and each around it.
 * Errors:  STATE    not inside a task
 *          INVALID  `out` is NULL, or out->struct_bytes is too small
 */
JANUS_API janus_status janus_task_inspect_current(janus_task_info *out);

/*
 * Looks at a nursery.
 *
 * Context: the nursery's owner.
 * Yields:  only if the turn is over.
 * Owns:    *out stays the caller's; set out->struct_bytes before.
 * Cost:    a lock.
 * Errors:  STATE    not the owner
 *          INVALID  an argument is NULL, or out->struct_bytes is too small
 */
JANUS_API janus_status janus_nursery_inspect(janus_nursery *nursery, janus_nursery_info *out);

/*
 * Looks at a worker, by its number from 0.
 *
 * Context: any thread or task, while the scheduler is not closed; it goes on meanwhile.
 * Yields:  only if the turn is over.
 * Owns:    *out stays the caller's; set out->struct_bytes before.
 * Cost:    a few loads.
 * Errors:  INVALID  no such worker, an argument is NULL, or out->struct_bytes is too small
 */
JANUS_API janus_status janus_worker_inspect(const janus_scheduler *scheduler, uint32_t worker,
                                            janus_worker_info *out);

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
