/* SPDX-License-Identifier: MIT */
/*
 * Schedulers: a few threads that run any number of tasks. Several can exist in one process and know
 * nothing of each other.
 *
 *     static int64_t hello(void *argument) { puts(argument); return 0; }
 *
 *     int main(void) { return janus_run(NULL, hello, "hello", NULL) == JANUS_OK ? 0 : 1; }
 *
 * Deterministic runs. With a `deterministic_seed` the workers, and all other threads of the
 * scheduler, are simulated on the thread that opened it: the same program, seed, worker count and
 * budgets give the same order of everything that goes through this library, in every build. One
 * may take over from another only where a call of the library begins, waits or ends; it is the
 * seed that decides.
 *
 *  - That thread runs them whenever it waits in a call of this library: in janus_run,
 *    janus_nursery_end, janus_join, janus_sleep. A task, or the thread, that waits for another
 *    without such a call (in a loop, for a lock of its own, in read) waits for ever.
 *  - Other threads get STATE from janus_nursery_open_in, janus_scheduler_start and _stop. What else
 *    they do (open a waitpoint, use a channel) works, but is not the same each time.
 *  - janus_now_ns is a clock of its own, from the opening on. It stands still while code runs and
 *    jumps when all wait, so that sleeping takes no time. Times from before do not compare.
 *  - Blocking calls run on the same thread, and all others wait for them. A task cannot end its
 *    thread (pthread_exit, pthread_cancel): that ends the process.
 *  - Schedulers that are open at the same time on a thread share the clock and the first one's
 *    seed. A task of a scheduler that is not deterministic cannot open one that is: STATE.
 */
#ifndef JANUSRT_SCHEDULER_H
#define JANUSRT_SCHEDULER_H

#include <janusrt/audit.h>
#include <janusrt/budget.h>
#include <janusrt/export.h>
#include <janusrt/fiber.h>
#include <janusrt/options.h>
#include <janusrt/profile.h>
#include <janusrt/status.h>
#include <janusrt/trace.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct janus_scheduler janus_scheduler;

/* Whom a worker without work steals from. */
typedef enum janus_victims {
    JANUS_VICTIMS_DEFAULT = 0,  /* RANDOM */
    JANUS_VICTIMS_RANDOM,       /* by a seeded generator */
    JANUS_VICTIMS_ROUND_ROBIN,  /* one after the other */
    JANUS_VICTIMS_LEAST_LOADED, /* the one with the longest queue */
} janus_victims;

/* What becomes of a task that cannot pay; charge.h says more. */
typedef enum janus_exhaustion {
    JANUS_EXHAUSTION_DEFAULT = 0, /* the profile's: AUTO, in :cluster SUPERVISE, in :sovereign
                                     MANUAL */
    JANUS_EXHAUSTION_AUTO,        /* it gets more, if there is any */
    JANUS_EXHAUSTION_SUPERVISE,   /* the nursery's owner is told and decides */
    JANUS_EXHAUSTION_MANUAL,      /* it waits until it is recharged */
} janus_exhaustion;

/* A task that panics, or overflows its stack. All of it is good until the callback returns. */
typedef struct janus_panic_report {
    uint64_t           task; /* its id; 0: a token's callback, and `name` says so */
    char               name[JANUS_NAME_BYTES]; /* the task's, or "task" */
    const char        *file;                   /* where it was started; NULL: unknown */
    int                line;
    janus_panic_kind   kind;        /* EXPLICIT: janus_panic, or a broken contract */
    const char        *message;     /* why, in a sentence */
    const void *const *frames;      /* code addresses of the calls it was in, innermost first */
    uint32_t           frame_count; /* at most 16; 0: they could not be had */
    const char        *text;        /* all of that in one line, as stderr would get it */
} janus_panic_report;

/* Called in the task that panics, before its nurseries and defers end. It must not wait. What it
 * calls is charged to the task; if it panics itself, the task ends as it would have. */
typedef void janus_on_panic(void *argument, const janus_panic_report *report);

/* In max_tasks. */
#define JANUS_UNLIMITED UINT64_MAX

/* How a scheduler is made. Zero in any field asks for the default named beside it. */
typedef struct janus_scheduler_options {
    size_t        struct_bytes;         /* sizeof this struct; JANUS_SCHEDULER_OPTIONS sets it */
    uint32_t      worker_count;         /* 0: the CPUs really available, with a seed 4; at most
                                           1024 */
    janus_profile profile;              /* 0: SERVICE; CORE is refused with PROFILE */
    uint64_t      deterministic_seed;   /* not 0: everything on one thread, the same each time, see
                                           above. 0: JANUSRT_SEED in the environment, else no */
    janus_victims victims;              /* 0: RANDOM */
    bool          no_stealing;          /* workers keep what they have */
    size_t        stack_bytes;          /* of tasks that ask for nothing: part of what a task is,
                                           so max_tasks bounds them. 0: the profile's */
    janus_guard   guard;                /* 0: the best rung there is */
    uint32_t      blocking_threads_max; /* helper threads for janus_blocking, shared as
                                           said there: at least 2, so that one nursery
                                           cannot take them all. 0: 64 */
    uint32_t      blocking_extra_max;   /* helper threads above it, one for each nursery
                                           with terms whose first call finds none free.
                                           0: 256 */
    uint32_t      blocking_queue_max;   /* calls that may wait for a thread, in each
                                           outermost nursery with terms, and outside of
                                           them. 0: 65536 */
    bool          no_deadlock_check;    /* wait for ever where nothing can happen any more */
    uint64_t      grace_ns; /* how long defers and shields hold a cancel off. 0: any time */

    /* What tasks have without being given it. */
    uint64_t            max_tasks;    /* live at a time. 0: the profile's, 100 or 10,000;
                                           JANUS_UNLIMITED: any number. :sovereign has none */
    uint64_t            max_channels; /* live at a time, outside of pools and in each pool. 0: the
                                           profile's, 1,000 or 10,000; JANUS_UNLIMITED: as many as
                                           the process can have, 2^20 */
    uint64_t            max_channel_values; /* in one channel. 0: the profile's, 10,000 or 100,000;
                                           JANUS_UNLIMITED: any number */
    uint32_t            max_derived_caps;   /* capabilities that tasks derive and that live, under
                                           each nursery with terms, and each child with
                                           capabilities of its own; those around count them
                                           too. 0: 1024 */
    const janus_budget *task_budget;        /* of each. NULL: the profile's */
    const janus_budget *budget_max;         /* most that can be asked for. NULL: the profile's */
    janus_exhaustion    exhaustion;         /* 0: the profile's */
    uint32_t            yield_interval; /* iterations between checks. 0: the profile's; :sovereign
                                           has none, and must be given one */
    janus_audit        *audit;       /* what happens to capabilities and budgets is written there;
                                           borrowed. NULL: nowhere */
    uint32_t            threads_max; /* children with a thread of their own, alive, outside of
                                        pools and in each pool. 0: 256 */
    uint32_t            nesting_max; /* nurseries that one task has open at a time. 0: 1,000 */
    size_t              idle_stack_bytes; /* memory of unused stacks that the scheduler keeps,
                                             beside up to 8 MiB at hand of each worker. Past half
                                             of it a stack of more than 1 MiB keeps its upper
                                             16 KiB; past all of it stacks go back to the system,
                                             but for some 32 MiB groups, four at most, that were
                                             used last.
                                             0: JANUS_IDLE_STACK_BYTES */
    janus_trace        *trace; /* what tasks do is recorded there; borrowed, no other scheduler has
                                  it, and it outlives this one. NULL: nowhere */

    /* A panic or an overflow of a task is one line on stderr: task, place, reason, backtrace. At
     * most 20 lines a second are written; the next one tells how many were left out. */
    janus_on_panic *on_panic; /* gets it instead. NULL: stderr */
    void           *on_panic_argument;
    bool            quiet_panics; /* nobody gets it, where on_panic is NULL */

    uint64_t turn_ns; /* how long a task keeps its worker while others are ready, if it checks or
                         calls the library: 1 us to one hour. A long turn costs fewer switches
                         and lets neighbours wait longer. 0: JANUS_TURN_NS */
} janus_scheduler_options;

#define JANUS_SCHEDULER_OPTIONS(...) JANUS_OPTIONS_(janus_scheduler_options, __VA_ARGS__)

/* Bytes of the texts in a janus_run_result, with the zero at their end. Longer texts are cut. */
#define JANUS_RUN_FILE_BYTES 128
#define JANUS_RUN_TEXT_BYTES 512
#define JANUS_RUN_DEADLOCK_BYTES 4096

/* A task of a run that failed. */
typedef struct janus_run_failure {
    uint64_t         task;                       /* its id; 0: no task failed */
    int64_t          error;                      /* what it returned; INT64_MIN for a panic */
    janus_panic_kind panic;                      /* NONE: it returned */
    int              line;                       /* where it was started, */
    char             file[JANUS_RUN_FILE_BYTES]; /* and in which file; "": unknown */
    char             name[JANUS_NAME_BYTES];     /* as kept, or "task" */
    char             text[JANUS_RUN_TEXT_BYTES]; /* all of it and why, in a sentence */
} janus_run_failure;

/* How a run went. It holds copies only: all of it stays good after the scheduler is gone. */
typedef struct janus_run_result {
    size_t            struct_bytes; /* in: sizeof this struct */
    janus_status      status;       /* what janus_run_with returned */
    bool              returned;     /* the entry was called, and returned */
    bool              deadlock;     /* a deadlock was broken */
    int64_t           result;       /* what the entry returned; 0: it did not */
    uint64_t          failures;     /* how many tasks failed, also where somebody handled it */
    janus_run_failure first;        /* the first of them */
    char              deadlock_text[JANUS_RUN_DEADLOCK_BYTES]; /* the report of the first one, as on
                                                                  stderr; cut after a whole line */
} janus_run_result;

/* One worker's counters, or the sum of all. In the sum is also what threads of children that have
 * ended did; those that live are counted when they end. */
typedef struct janus_worker_stats {
    size_t   struct_bytes;    /* in: sizeof this struct */
    uint64_t tasks_executed;  /* started here */
    uint64_t tasks_in_place;  /* of these, run on their parent's stack without a switch */
    uint64_t tasks_cancelled; /* skipped: cancelled before they started */
    uint64_t tasks_stolen;    /* taken from another worker */
    uint64_t steals_failed;   /* attempts that found nothing or lost a race */
    uint64_t switches;        /* from one task to another or to the worker's loop */
    uint64_t parks;           /* times the worker's thread went to sleep */
    uint64_t yields;          /* tasks that gave way */
    uint64_t restarts;        /* threads that ended under the worker and were replaced: 0, unless a
                                 task calls pthread_exit or its thread is cancelled */
    uint64_t exhaustions;     /* times a task could not pay */
    uint64_t recharges;       /* times one got more */
    uint64_t refusals;        /* spawns that a limit or a missing capability refused */
} janus_worker_stats;

JANUS_BEGIN_DECLS

/*
 * Makes a scheduler; it does not run yet.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    *out is the library's until janus_scheduler_close; `options` is only read.
 * Cost:    some 20 KiB for each worker.
 * Errors:  INVALID      a field is out of range
 *          STATE        a deterministic one, in a task of one that is not; another scheduler has
 *                       options->trace, or it was read from a file
 *          PROFILE      options->profile is CORE, which has no scheduler
 *          NO_EXECUTOR_CAP, CAP_…  a task that a capability, a pool or a scope restricts makes
 *                       something that its limits do not bound: a scheduler, a pool of fibers, a
 *                       table of capabilities, an audit log, a trace. It needs an executor
 *                       capability with the right executor.configure.
 *          UNAVAILABLE  the guard is not to be had
 *          NO_MEMORY    memory was refused
 *          On any error *out is untouched and nothing was made.
 */
JANUS_NODISCARD JANUS_API janus_status janus_scheduler_open(const janus_scheduler_options *options,
                                                            janus_scheduler              **out);

/*
 * Starts the workers' threads.
 *
 * Context: any thread, once.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a thread for each worker; the call waits until all of them run.
 * Errors:  STATE      it was started or stopped before, or is deterministic and another thread's
 *          NO_MEMORY  a thread, or the alternate signal stack of one, was refused; none is left
 *                     behind
 *          INVALID    `scheduler` is NULL
 */
JANUS_NODISCARD JANUS_API janus_status janus_scheduler_start(janus_scheduler *scheduler);

/*
 * Cancels every task, waits until all have ended, and ends the threads. Calling it again does
 * nothing.
 *
 * Context: any thread that is not a worker of this scheduler, outside of its blocking calls.
 * Yields:  only if the turn is over; it blocks the thread until the last task has ended.
 * Owns:    nothing.
 * Cost:    as long as the slowest task takes to notice.
 * Errors:  STATE  called inside a task of this scheduler or a blocking call of one, or it is
 *                 deterministic and another thread's
 *          INVALID  `scheduler` is NULL
 */
JANUS_API janus_status janus_scheduler_stop(janus_scheduler *scheduler);

/*
 * Stops it if need be and gives everything back.
 *
 * Context: any thread that is not a worker of this scheduler, when no other uses it any more and
 *          no nursery of it is open.
 * Yields:  only if the turn is over.
 * Owns:    takes `scheduler` when it returns OK; NULL does nothing.
 * Cost:    as janus_scheduler_stop.
 * Errors:  STATE  called inside a task of this scheduler, or a nursery is still open
 */
JANUS_API janus_status janus_scheduler_close(janus_scheduler *scheduler);

/*
 * The common case: makes a scheduler, runs `entry(argument)` as its first task, waits for it and
 * gives everything back.
 *
 * Context: any thread that is no worker.
 * Yields:  only if the turn is over; it blocks the thread until the task has ended.
 * Owns:    `argument` stays the caller's. *out_result (NULL: not wanted) is what entry returned.
 * Cost:    making a scheduler.
 * Errors:  as janus_scheduler_open and janus_scheduler_start; CHILD_FAILED when the task returned
 *          a negative number or panicked; DEADLOCK when nothing could happen any
 *          more and waits were ended for it, whatever the tasks returned then.
 *          janus_run_with tells which task failed first, and why
 */
JANUS_API janus_status janus_run(const janus_scheduler_options *options, janus_entry *entry,
                                 void *argument, int64_t *out_result);

/*
 * janus_run for a caller that wants to know why a run failed:
 *
 *     janus_run_result run = {.struct_bytes = sizeof run};
 *     if (janus_run_with(NULL, serve, &config, &run) != JANUS_OK) {
 *         fprintf(stderr, "server: %s\n", run.failures > 0 ? run.first.text
 *                                                         : janus_status_text(run.status));
 *     }
 *
 * `out->first` is the task that failed before all others. An error that rose through several
 * nurseries is shown where it began.
 *
 * Context: any thread that is no worker.
 * Yields:  only if the turn is over; it blocks the thread until the task has ended.
 * Owns:    `argument` and *out stay the caller's; set out->struct_bytes before.
 * Cost:    as janus_run, and 5 KiB of copies.
 * Errors:  as janus_run, and in out->status too; INVALID when `out` is NULL or out->struct_bytes
 *          is no size of it: then nothing was run and *out is untouched
 */
JANUS_API janus_status janus_run_with(const janus_scheduler_options *options, janus_entry *entry,
                                      void *argument, janus_run_result *out);

/*
 * The scheduler that runs the current task; for dumps (dump.h) and statistics of janus_run's.
 *
 * A task that is restricted by a capability, a pool or a scope gets NULL, unless it holds the right
 * executor.configure: a dump shows the names of others, and trimming costs them time. Inside its
 * tasks no scheduler can be stopped or closed, and no nursery of a thread can be opened: STATE.
 *
 * Context: inside a task; NULL elsewhere.
 * Yields:  only if the turn is over.
 * Owns:    the scheduler stays its owner's. The pointer is good until the task ends; it is of no
 *          use to threads that may outlive the scheduler.
 * Cost:    a thread-local load and a look at what restricts the task.
 * Errors:  NULL outside a task, and in one that is restricted.
 */
JANUS_API janus_scheduler *janus_scheduler_current(void);

/*
 * How many workers it has.
 *
 * Context: any thread.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a load.
 * Errors:  none; 0 where `scheduler` is NULL, as janus_scheduler_current is for a restricted task.
 */
JANUS_API uint32_t janus_scheduler_worker_count(const janus_scheduler *scheduler);

/*
 * Reads one worker's counters, or with `worker` = UINT32_MAX the sum of all.
 *
 * Context: any thread; the counters move while they are read.
 * Yields:  only if the turn is over.
 * Owns:    *out stays the caller's; set out->struct_bytes before.
 * Cost:    a few loads for each worker.
 * Errors:  INVALID  no such worker, or `out` is NULL or too short
 */
JANUS_API janus_status janus_scheduler_stats(const janus_scheduler *scheduler, uint32_t worker,
                                             janus_worker_stats *out);

/*
 * Reads how many stacks the scheduler has, and how much memory the idle ones may hold.
 *
 * Context: any thread; the numbers move while they are read.
 * Yields:  only if the turn is over.
 * Owns:    *out stays the caller's; set out->struct_bytes before.
 * Cost:    takes the lock of the scheduler's stacks once, about 50 ns.
 * Errors:  INVALID  `scheduler` is NULL, or `out` is NULL or too short
 */
JANUS_API janus_status janus_scheduler_stacks(janus_scheduler *scheduler, janus_stack_stats *out);

/*
 * Gives memory of idle stacks back to the system now, until they hold at most `keep_bytes`. The
 * call also asks every worker for the stacks that it has at hand: a worker gives them back, down
 * to the same limit, when it next has nothing to do.
 *
 * Context: any thread; a task too. One that is deterministic: the thread that opened it.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a system call for each run of idle stacks, under the lock of the scheduler's stacks;
 *          it wakes the workers that sleep.
 * Errors:  none; returns how many bytes it gave back itself, at most. 0: nothing was idle, or
 *          `scheduler` is NULL or another thread's.
 */
JANUS_API size_t janus_scheduler_trim(janus_scheduler *scheduler, size_t keep_bytes);

JANUS_END_DECLS
#endif
