/* SPDX-License-Identifier: MIT */
/*
 * Schedulers: a few threads that run any number of tasks. Several can exist in one process; they do
 * not know each other.
 *
 *     static int64_t hello(void *argument) { puts(argument); return 0; }
 *
 *     int main(void) { return janus_run(NULL, hello, "hello", NULL) == JANUS_OK ? 0 : 1; }
 *
 * Deterministic runs. With a `deterministic_seed` the thread that created the scheduler simulates
 * the workers and all other threads of the scheduler. The same program, seed, worker count and
 * budgets give the same order of all calls of this library, in every build. A switch happens only
 * where a call of the library begins, waits or ends. The seed decides.
 *
 *  - That thread runs them whenever it waits in a call of this library: in janus_run,
 *    janus_nursery_end, janus_join, janus_sleep. A task or thread that waits without such a call
 *    (in a loop, for another lock, in read) waits for ever.
 *  - Other threads get STATE from janus_nursery_open_in, janus_scheduler_start and _stop. Other
 *    calls (wake a waitpoint, use a channel) work, but make runs differ.
 *  - janus_now_ns is a simulated clock that begins with the scheduler. It stands still while
 *    code runs and jumps when all wait, so sleeping takes no time. It does not compare with earlier
 *    times.
 *  - Blocking calls run on the same thread, and all others wait for them. If a task ends its thread
 *    (pthread_exit, pthread_cancel), the process ends.
 *  - Schedulers that exist at the same time on one thread share the clock and the seed of the
 *    first. A task of a parallel scheduler cannot create a deterministic one: STATE.
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

/* The order in which an idle worker chooses a victim to steal from. */
typedef enum janus_victims {
    JANUS_VICTIMS_DEFAULT = 0,  /* RANDOM */
    JANUS_VICTIMS_RANDOM,       /* by a seeded generator */
    JANUS_VICTIMS_ROUND_ROBIN,  /* each in turn */
    JANUS_VICTIMS_LEAST_LOADED, /* the worker with the longest queue */
} janus_victims;

/* What happens to a task that cannot pay. charge.h describes it. */
typedef enum janus_exhaustion {
    JANUS_EXHAUSTION_DEFAULT = 0, /* the profile's: AUTO, in :cluster SUPERVISE (AUTO for the first
                                     task of a run, which has no supervisor), in :sovereign
                                     MANUAL */
    JANUS_EXHAUSTION_AUTO,        /* it gets more, while there is some */
    JANUS_EXHAUSTION_SUPERVISE,   /* the nursery's owner learns of it and decides */
    JANUS_EXHAUSTION_MANUAL,      /* it waits until somebody recharges it */
    JANUS_EXHAUSTION_END,         /* as AUTO, and when there is no more it ends */
} janus_exhaustion;

/* A task that panics or overflows its stack. The pointers are valid until the callback returns. */
typedef struct janus_panic_report {
    uint64_t           task;                   /* its id; 0: a token's callback, as `name` says */
    char               name[JANUS_NAME_BYTES]; /* the task's, or "task" */
    const char        *file;                   /* where it was started; NULL: unknown */
    int                line;
    janus_panic_kind   kind;        /* EXPLICIT: janus_panic, or a broken contract */
    const char        *message;     /* why, in a sentence */
    const void *const *frames;      /* code addresses of the calls it was in, innermost first */
    uint32_t           frame_count; /* at most 16; 0: unknown */
    const char        *text;        /* all of it in one line, as stderr would get it */
} janus_panic_report;

/*
 * The library calls it in the task that panics, before the task's nurseries and defers end. It must
 * not wait. The task pays for what it calls. If it panics itself, the task ends with the first
 * panic.
 */
typedef void janus_on_panic(void *argument, const janus_panic_report *report);

/* In a limit of janus_scheduler_options: no limit. */
#define JANUS_UNLIMITED UINT64_MAX

/* Options of a scheduler. Zero in any field selects the default named beside it. */
typedef struct janus_scheduler_options {
    size_t        struct_bytes;         /* sizeof this struct; JANUS_SCHEDULER_OPTIONS sets it */
    uint32_t      worker_count;         /* 0: the CPUs really available, with a seed 4; at most
                                           1024 */
    janus_profile profile;              /* 0: SERVICE; CORE is refused with PROFILE */
    uint64_t      deterministic_seed;   /* not 0: everything on one thread, the same each time, see
                                           above. 0: JANUSRT_SEED in the environment, else no */
    janus_victims victims;              /* 0: RANDOM */
    bool          no_stealing;          /* workers do not steal */
    size_t        stack_bytes;          /* of tasks that ask for no size. No budget pays for it;
                                           max_tasks bounds them all. 0: the profile's */
    janus_guard   guard;                /* 0: the best rung of this machine */
    uint32_t      max_blocking_threads; /* helper threads for janus_blocking, which shares
                                           them. At least 2, so that one nursery cannot take
                                           them all. 0: 64 */
    uint32_t      max_blocking_extra;   /* helper threads above it, one for each nursery
                                           with terms whose first call finds none free.
                                           0: 256 */
    uint32_t      max_blocking_queue;   /* calls that may wait for a thread, in each
                                           outermost nursery with terms, and outside of
                                           them. 0: 65536 */
    bool          no_deadlock_check;    /* tasks in a deadlock wait for ever */
    uint64_t      grace_ns; /* how long defers and shields hold off a cancel. 0: no bound */

    /* What tasks have by default. */
    uint64_t max_tasks;                 /* live at a time. 0: the profile's, 100 or 10,000;
                                           JANUS_UNLIMITED: any number. :sovereign has none */
    uint64_t max_channels;              /* live at a time, outside of pools and in each pool. 0: the
                                           profile's, 1,000 or 10,000; JANUS_UNLIMITED: as many as
                                           the process can have, 2^20 */
    uint64_t max_channel_values;        /* in one channel. 0: the profile's, 10,000 or 100,000;
                                           JANUS_UNLIMITED: any number */
    uint64_t max_handles;               /* live at a time, of sockets and of files each, outside of
                                           pools and in each pool. 0: 65,536, but in a pool at most
                                           a quarter of RLIMIT_NOFILE; JANUS_UNLIMITED: as many as
                                           the process can have */
    uint64_t max_processes;             /* child processes, alive at a time, in the same way. 0:
                                           1,024 */
    uint32_t max_derived_caps;          /* live derived capabilities under each nursery with terms,
                                           and of each child with its own capabilities. Nurseries
                                           around count them too. 0: 1024 */
    const janus_budget *task_budget;    /* of each task. NULL: the profile's */
    const janus_budget *max_budget;     /* the largest that a task gets. NULL: the profile's */
    janus_exhaustion    exhaustion;     /* 0: the profile's */
    uint32_t            yield_interval; /* iterations between checks. 0: the profile's; :sovereign
                                           has none, and must be given one */
    janus_audit        *audit; /* the log for capabilities and budgets; borrowed. NULL: none */
    uint32_t            max_threads; /* live THREADED children, outside of pools and in each
                                        pool. 0: 256 */
    uint32_t            max_nesting; /* nurseries that one task has open at a time. 0: 1,000 */
    size_t       idle_stack_bytes;   /* memory of unused stacks that the scheduler keeps, beside
                                             up to 8 MiB in each worker's cache. Past half of it,
                                             stacks of more than 1 MiB keep their upper 16 KiB.
                                             Past all of it, a worker that has nothing to do
                                             gives the rest back to the system. Until then the
                                             next tasks use it. If no worker idles for a
                                             second, busy workers take turns: each gives memory
                                             back in a sixteenth of its time. A group of 32 MiB
                                             stays while few of its stacks are idle. 0:
                                             JANUS_IDLE_STACK_BYTES */
    janus_trace *trace; /* records what tasks do; borrowed. It serves only this scheduler and
                                  outlives it. NULL: none */

    /*
     * The library writes one line to stderr for a panic or an overflow of a task: task, place,
     * reason, backtrace. It writes at most 20 lines a second. The next line says how many were left
     * out.
     */
    janus_on_panic *on_panic; /* called instead. NULL: stderr */
    void           *on_panic_argument;
    bool            quiet_panics; /* write nothing, if on_panic is NULL */

    uint64_t turn_ns;    /* how long a task keeps its worker while others are ready, if it checks or
                         calls the library: 1 us to one hour. A long turn costs fewer switches
                         and lets neighbours wait longer. 0: JANUS_TURN_NS */
    uint32_t max_slice;  /* the most operations of a slice, JANUS_SLICE to JANUS_SLICE_MAX; see
                           yield.h. 0: JANUS_SLICE_MAX, with a seed JANUS_SLICE */
    bool preempt_checks; /* with a seed: a slice may end at any check, as the seed decides. So an
                            exploration finds races of code that only checks. Always on in programs
                            with counted code, see janus_counted_code */
} janus_scheduler_options;

#define JANUS_SCHEDULER_OPTIONS(...) JANUS_OPTIONS_(janus_scheduler_options, __VA_ARGS__)

/* Sizes of the texts in a janus_run_result, with their zero. Longer texts are cut. */
#define JANUS_RUN_FILE_BYTES 128
#define JANUS_RUN_TEXT_BYTES 512
#define JANUS_RUN_DEADLOCK_BYTES 4096

/* A failed task of a run. */
typedef struct janus_run_failure {
    uint64_t         task;                       /* its id; 0: no task failed */
    int64_t          error;                      /* what it returned; INT64_MIN for a panic */
    janus_panic_kind panic;                      /* NONE: it returned */
    int              line;                       /* where it was started, */
    char             file[JANUS_RUN_FILE_BYTES]; /* and in which file; "": unknown */
    char             name[JANUS_NAME_BYTES];     /* as kept, or "task" */
    char             text[JANUS_RUN_TEXT_BYTES]; /* the failure in a sentence */
} janus_run_failure;

/* How a run ended. It holds copies, which stay valid after the scheduler has ended. */
typedef struct janus_run_result {
    size_t            struct_bytes; /* sizeof this struct; JANUS_RUN_RESULT sets it */
    janus_status      status;       /* what janus_run_with returned */
    bool              returned;     /* the entry was called, and returned */
    bool              deadlock;     /* a deadlock was broken */
    int64_t           result;       /* what the entry returned; 0 if it did not return */
    uint64_t          failures;     /* how many tasks failed, handled failures included */
    janus_run_failure first;        /* the first failed task */
    char deadlock_text[JANUS_RUN_DEADLOCK_BYTES]; /* the report of the first deadlock, as on
                                                                  stderr; cut after a whole line */
} janus_run_result;
#define JANUS_RUN_RESULT() JANUS_SIZED_(janus_run_result)

JANUS_BEGIN_DECLS

/*
 * Creates a scheduler. It does not run yet.
 *
 * A task that a capability, a pool or a scope restricts needs an executor capability with the right
 * executor.configure. That also holds for other objects that its limits do not bound: pools of
 * fibers, tables of capabilities, audit logs and traces.
 *
 * Context: any thread.
 * Yields:  only if the turn is over.
 * Owns:    *out is the library's until janus_scheduler_destroy; `options` is only read.
 * Cost:    some 20 KiB for each worker.
 * Errors:  INVALID      a field is out of range
 *          STATE        a task of a parallel scheduler creates a deterministic one. Or another
 *                       scheduler has options->trace, or a file was read into it
 *          PROFILE      options->profile is CORE, which has no scheduler
 *          NO_EXECUTOR_CAP, CAP_…  a restricted task without executor.configure
 *          UNAVAILABLE  this machine does not have the guard
 *          NO_MEMORY    memory was refused
 *          On any error *out is untouched and nothing was made.
 */
JANUS_NODISCARD JANUS_API janus_status
janus_scheduler_create_with(const janus_scheduler_options *options, janus_scheduler **out);

/*
 * Starts the workers' threads.
 *
 * Context: any thread, once.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a thread for each worker; the call waits until all of them run.
 * Errors:  STATE      it was started or stopped before, or it is deterministic and another thread
 *                     created it
 *          NO_MEMORY  a thread or its alternate signal stack was refused; no thread is left
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
 * Errors:  STATE  called inside a task of this scheduler or its blocking call, or it is
 *                 deterministic and another thread created it
 *          INVALID  `scheduler` is NULL
 */
JANUS_API janus_status janus_scheduler_stop(janus_scheduler *scheduler);

/*
 * Stops the scheduler, if it still runs, and frees it.
 *
 * Context: any thread that is not a worker of this scheduler. No other thread uses it any more, and
 *          none of its nurseries is open.
 * Yields:  only if the turn is over.
 * Owns:    takes `scheduler` when it returns OK; NULL does nothing.
 * Cost:    as janus_scheduler_stop.
 * Errors:  STATE  called inside a task of this scheduler, or a nursery is still open
 */
JANUS_API janus_status janus_scheduler_destroy(janus_scheduler *scheduler);

/*
 * Creates a scheduler, runs `entry(argument)` as its first task, waits for its end and destroys the
 * scheduler.
 *
 * Context: any plain thread.
 * Yields:  only if the turn is over; it blocks the thread until the task has ended.
 * Owns:    `argument` stays the caller's. *out_result (NULL: not wanted) is what entry returned.
 * Cost:    creating a scheduler.
 * Errors:  CHILD_FAILED  the task returned a negative number or panicked; janus_run_with says which
 *                        task failed first, and why
 *          DEADLOCK      every task waited and no event could come, so the library ended waits;
 *                        whatever the tasks returned then
 *          and those of janus_scheduler_create_with and janus_scheduler_start
 */
JANUS_NODISCARD JANUS_API janus_status janus_run(const janus_scheduler_options *options,
                                                 janus_entry *entry, void *argument,
                                                 int64_t *out_result);

/*
 * Runs as janus_run, and reports why a run failed:
 *
 *     janus_run_result run = JANUS_RUN_RESULT();
 *     if (janus_run_with(NULL, serve, &config, &run) != JANUS_OK) {
 *         fprintf(stderr, "server: %s\n", run.failures > 0 ? run.first.text
 *                                                         : janus_status_text(run.status));
 *     }
 *
 * `out->first` is the task that failed first. If an error rose through several nurseries, it is the
 * task where the error began.
 *
 * Context: any plain thread.
 * Yields:  only if the turn is over; it blocks the thread until the task has ended.
 * Owns:    `argument` and *out stay the caller's; set out->struct_bytes before.
 * Cost:    as janus_run, and 5 KiB of copies.
 * Errors:  as janus_run, and in out->status too. INVALID also if `out` is NULL or out->struct_bytes
 *          is wrong; then nothing ran, and *out is untouched
 */
JANUS_NODISCARD JANUS_API janus_status janus_run_with(const janus_scheduler_options *options,
                                                      janus_entry *entry, void *argument,
                                                      janus_run_result *out);

/*
 * The scheduler that runs the current task, for dumps (dump.h) and statistics inside janus_run.
 *
 * A task that a capability, a pool or a scope restricts gets NULL, unless it holds the right
 * executor.configure. A dump would show the names of others, and trimming costs them time. Inside
 * its tasks a scheduler cannot be stopped or destroyed, and no nursery of a thread can be opened:
 * STATE.
 *
 * Context: inside a task; NULL elsewhere.
 * Yields:  only if the turn is over.
 * Owns:    the scheduler stays its owner's. The pointer is valid until the task ends. Do not pass
 *          it to threads that may outlive the scheduler.
 * Cost:    a thread-local load, and some for the restrictions of the task.
 * Errors:  NULL outside a task, and in a restricted task.
 */
JANUS_API janus_scheduler *janus_scheduler_current(void);

/*
 * The number of workers of a scheduler.
 *
 * Context: any thread.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a load.
 * Errors:  none. 0 if `scheduler` is NULL, as janus_scheduler_current is for a restricted task.
 */
JANUS_API uint32_t janus_scheduler_worker_count(const janus_scheduler *scheduler);

/*
 * Reads how many stacks the scheduler has, and how much memory the idle ones may hold.
 *
 * Context: any thread; the numbers move while they are read.
 * Yields:  only if the turn is over.
 * Owns:    *out stays the caller's; set out->struct_bytes before.
 * Cost:    takes the lock of the scheduler's stacks once, about 50 ns.
 * Errors:  INVALID  `scheduler` is NULL, or `out` is NULL or too short
 */
JANUS_NODISCARD JANUS_API janus_status
janus_scheduler_stacks_inspect(janus_scheduler *scheduler, janus_scheduler_stacks_info *out);

/*
 * Gives memory of idle stacks back to the system now, until they hold at most `keep_bytes`. The
 * call also asks every worker for the stacks in its cache. A worker gives them back, down to the
 * same limit, when it is next idle.
 *
 * Context: any thread or task. For a deterministic scheduler only the thread that created it.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a system call for each run of idle stacks, under the lock of the scheduler's stacks. It
 *          wakes sleeping workers.
 * Errors:  none. Returns how many bytes it gave back itself, at most. 0: nothing was idle,
 *          `scheduler` is NULL, or another thread created it.
 */
JANUS_API size_t janus_scheduler_trim(janus_scheduler *scheduler, size_t keep_bytes);

JANUS_END_DECLS
#endif
