/* SPDX-License-Identifier: MIT */
/*
 * Nurseries: scopes in which tasks are started. A nursery ends only when all its children have
 * ended. No task outlives its nursery, no error is lost, and a cancel reaches everything below it.
 *
 *     static int64_t fetch_both(void *argument)
 *     {
 *         struct pair *pair = argument;
 *         janus_status status;
 *         JANUS_NURSERY(n, status) {
 *             if (janus_spawn(n, fetch, &pair->left) != JANUS_OK) return -100;
 *             if (janus_spawn(n, fetch, &pair->right) != JANUS_OK) return -100;
 *         } // both have ended here; what they wrote can be read
 *         return status;
 *     }
 *
 *     Open -> Closing -> Closed            close, then the last child
 *       \         \
 *        +-> Cancelling -> Cancelled       cancel, an error, the owner's cancellation or a deadline
 *
 * A child that returns a negative number, or panics, has failed. The nursery then cancels its
 * siblings (unless the policy is WAIT_ALL), and its result is CHILD_FAILED with the first failure.
 * A child that was cancelled and returns JANUS_CANCELLED (-1) has not failed: it obeyed. It was
 * cancelled if its nursery, any nursery around it or the child itself (token.h) was. Otherwise -1
 * is a failure like any other number.
 *
 * The owner is inside the scope too. Once the nursery is cancelled, the owner's waits return
 * CANCELLED until it ends the nursery. Nurseries that it opened inside are cancelled as well. A
 * shield begun inside holds this off, and options.owner_apart excludes the owner. The owner task
 * itself is not cancelled: after the nursery's end it waits as before, and JANUS_CANCEL_MODE_UNWIND
 * does not end it. If it returns CANCELLED nevertheless, that is a failure. Waits of a plain thread
 * that owns a nursery are never interrupted. janus_join of a child that is cancelled with the
 * nursery waits for the child's end.
 *
 * A spawn can be refused, for example when the scheduler's max_tasks (100 by default) are alive.
 * Check what it returns, or let janus_spawn_wait wait for room.
 */
#ifndef JANUSRT_NURSERY_H
#define JANUSRT_NURSERY_H

#include <janusrt/budget.h>
#include <janusrt/cap.h>
#include <janusrt/export.h>
#include <janusrt/options.h>
#include <janusrt/scheduler.h>
#include <janusrt/status.h>
#include <janusrt/task.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A nursery, in memory of its opener, usually on the stack. Its fields are private. */
typedef struct janus_nursery {
    uint64_t opaque[68] __attribute__((aligned(16)));
} janus_nursery;

typedef enum janus_nursery_state {
    JANUS_NURSERY_STATE_OPEN = 0,       /* takes children */
    JANUS_NURSERY_STATE_CLOSING = 1,    /* takes no more children, waits for those it has */
    JANUS_NURSERY_STATE_CANCELLING = 2, /* has cancelled its children, waits for them */
    JANUS_NURSERY_STATE_CLOSED = 3,     /* all children have ended; final */
    JANUS_NURSERY_STATE_CANCELLED = 4,  /* all children have ended after a cancel; final */
} janus_nursery_state;

typedef enum janus_policy {
    JANUS_POLICY_CANCEL_ON_ERROR = 0, /* the first failure cancels the others */
    JANUS_POLICY_WAIT_ALL,            /* the others go on; the failure is in the result */
} janus_policy;

/* What a spawn does at a limit: max_children of its nursery, or TASK_LIMIT. */
typedef enum janus_when_full {
    JANUS_WHEN_FULL_REFUSE = 0, /* the spawn returns FULL or TASK_LIMIT */
    JANUS_WHEN_FULL_WAIT,       /* the spawn waits for room; the first to wait goes first */
} janus_when_full;

typedef enum janus_result_kind {
    JANUS_RESULT_KIND_SUCCESS = 0,
    JANUS_RESULT_KIND_CHILD_FAILED,
    JANUS_RESULT_KIND_CANCELLED,
    JANUS_RESULT_KIND_PENDING, /* children are still running */
} janus_result_kind;

/* How a nursery ended. A failure takes precedence over a cancellation, whichever came first. */
typedef struct janus_nursery_result {
    janus_result_kind   kind;
    janus_cancel_reason reason; /* CANCELLED: why */
    int64_t             error;  /* CHILD_FAILED: what the first failed child returned */
    janus_task_id       task;   /* CHILD_FAILED: the first failed child */
    uint64_t            errors; /* how many children failed */
    janus_panic_detail  panic;  /* why the first failed child panicked; else kind NONE */
} janus_nursery_result;

/* Where a task was started, for dumps. */
typedef struct janus_site {
    const char *file;
    int         line;
} janus_site;

/* One child that failed. */
typedef struct janus_failure {
    janus_task_id    task;
    int64_t          error;                  /* what it returned; INT64_MIN for a panic */
    janus_panic_kind panic;                  /* NONE: it returned */
    char             name[JANUS_NAME_BYTES]; /* as kept, or "task" */
    janus_site       site;                   /* where it was started; file NULL: unknown */
    janus_component  lacks; /* BUDGET_EXHAUSTED: the missing component; else NONE */
    uint64_t         used;  /* amount of `lacks` consumed */
    uint64_t         limit; /* amount of `lacks` granted */
} janus_failure;

/*
 * Each nursery keeps its first failures, up to this number, and counts all. The nurseries under one
 * pool together keep 4096.
 */
#define JANUS_FAILURES_KEPT 64

/* An exhausted child: it cannot pay for what it wants to do. */
typedef struct janus_exhausted {
    janus_task_id   task;
    char            name[JANUS_NAME_BYTES]; /* as kept, or "task" */
    janus_site      site;                   /* where it was started; file NULL: unknown */
    janus_component lacks;                  /* the missing component */
    uint64_t        needs;                  /* amount of `lacks` that the next operation needs */
    janus_budget    left;                   /* what it has left */
    janus_budget    granted;                /* all that it ever got */
} janus_exhausted;

/* The decision of a supervisor about an exhausted child. */
typedef enum janus_verdict {
    JANUS_VERDICT_IGNORE = 0, /* it stays exhausted until somebody recharges it, or the owner
                                 awaits the nursery */
    JANUS_VERDICT_RECHARGE,   /* it gets *grant */
    JANUS_VERDICT_CANCEL,     /* it ends, cancelled */
    JANUS_VERDICT_RESTART,    /* it ends as if it had returned BUDGET_EXHAUSTED; a supervisor
                                 (supervisor.h) starts it again */
} janus_verdict;

/*
 * The library calls it in an exhausted child. It must not wait. It has JANUS_SLICE operations; if
 * it uses them up, the child ends there. The child pays for the used operations out of *grant. A
 * grant that does not cover them, or has nothing of what the child lacks, counts as
 * JANUS_VERDICT_IGNORE.
 */
typedef janus_verdict janus_on_exhausted(void *argument, const janus_exhausted *child,
                                         janus_budget *grant);

/* Options of a nursery. Zero in any field selects the default named beside it. */
typedef struct janus_nursery_options {
    size_t          struct_bytes; /* sizeof this struct; JANUS_NURSERY_OPTIONS sets it */
    janus_policy    policy;       /* 0: CANCEL_ON_ERROR */
    uint32_t        max_children; /* live at a time; see when_full. 0: no limit */
    uint64_t        deadline_ns;  /* the moment that cancels it. 0: none */
    size_t          stack_bytes;  /* of children that ask for no size; they pay for it, see
                                          janus_spawn_options.stack_bytes. 0: scheduler's */
    const char     *name;         /* NULL: "nursery"; copied, see JANUS_NAME_BYTES */
    janus_when_full when_full;    /* 0: REFUSE */

    /*
     * Budgets, charge.h. A pool takes its budget from the pool around it, if there is one. It gets
     * at most what the budget capability allows; *granted is what it got.
     */
    const janus_budget *budget;       /* a pool for the children. NULL: that of the nurseries
                                         around it; if they have none, implicit budgets */
    janus_budget       *granted;      /* out: the pool it got. NULL: not wanted */
    janus_exhaustion    exhaustion;   /* the policy for exhausted children. 0: as around it */
    janus_on_exhausted *on_exhausted; /* SUPERVISE: it decides. NULL: the owner polls or waits */
    void               *on_exhausted_argument;

    /*
     * Capabilities of the opener. They replace those around the nursery for everything started
     * inside. Zero: as around it.
     */
    janus_cap spawn_cap, budget_cap, channel_cap, executor_cap, net_cap, file_cap, process_cap;
    bool      scope;       /* with spawn_cap: until the nursery ends, its owner also has only that
                          capability's task_budget. A scope restrains trusted code, because code in
                          the owner can end the nursery. Run plugins as children. */
    uint64_t  backend;     /* JANUS_BACKEND_SET of the children's backend, see below. 0: as around
                          it, at the root COOPERATIVE */
    bool      owner_apart; /* a cancel of the nursery does not interrupt the owner's own waits */
    bool     cancel_by_owner; /* of all tasks only the owner may cancel it. A budget or a capability
                             implies it, see janus_nursery_cancel */
    uint32_t max_threads;     /* THREADED: live threads of children here and below. Setting it needs
                              the right executor.configure. 0: as around it */
    uint32_t max_tasks;       /* live tasks here and below; another spawn finds TASK_LIMIT. The
                              limits around it hold as well. 0: as around it */
    janus_nursery_result *result;   /* for JANUS_NURSERY, which sets it with the block's status;
                                     janus_nursery_open returns INVALID. NULL: not wanted */
    janus_cap             name_cap; /* as the capabilities above */
    uint32_t max_handles; /* live sockets here and below, and as many files, and as many processes;
                             the next finds HANDLE_LIMIT. The limits around it hold as well. 0: as
                             around it */
    bool     hidden; /* inspections do not show it, and calls that start a task in the innermost
                             nursery pass over it. A library hides the nurseries in which its task
                             calls functions of others. Otherwise such a function could end them */
} janus_nursery_options;

/*
 * Backends: how children are run. A program works with each; only the order of running differs. The
 * executor capability (right executor.select) or the profile decides which backends may be chosen.
 * Nurseries below inherit it. janus_context_inspect reports it.
 *
 *   COOPERATIVE  Workers of the scheduler run the children.
 *   BLOCKING     One child after the other: a spawn returns when its child has ended. It returns OK
 *                also if the child failed; with CANCEL_ON_ERROR the next spawn returns CLOSED. The
 *                child runs on its spawner's stack, or on another if that has too little room. No
 *                thread is added. A child that waits for its spawner waits for ever, which is
 *                reported as a deadlock. Exhausted children end, because their owner cannot
 *                recharge them. Of plain threads only the owner may spawn, and a task's blocking
 *                call.
 *   THREADED     A thread of the system for each child. Nothing else runs on it, but children that
 *                the child itself runs with BLOCKING. The whole library works there, also towards
 *                tasks on workers. The spawn starts the thread. It returns NO_MEMORY if the system
 *                refuses one, and FULL if max_threads children have one. If the thread ends early
 *                (pthread_exit) and the system refuses another, a worker runs the child's end.
 *   EVENTED      As COOPERATIVE, with the promise that there is a poller: the nursery is not opened
 *                where the system refuses one. Calls of io.h work under every backend.
 */

/* What calls that wait do in a cancelled child. */
typedef enum janus_cancel_mode {
    JANUS_CANCEL_MODE_RETURN = 0, /* they return CANCELLED, and the child returns by itself */
    JANUS_CANCEL_MODE_UNWIND,     /* they end the task on the spot; its defers run */
} janus_cancel_mode;

/*
 * The library calls it once with the child's argument if the child ends before its entry was
 * called. That happens if a cancel came first, the scheduler stopped, or no stack was available. If
 * the spawn returned an error, the caller still owns the argument, and this is not called. It has
 * run when janus_nursery_end returns.
 *
 * It runs inside another task or a worker's loop, with the rights of the child. It must not wait:
 * calls that would wait return an error. It has a small slice of operations. If it panics or uses
 * up its slice, it ends there. The library reports that, and the child's nursery goes on.
 */
typedef void janus_drop(void *argument);

/* Options of one child. Zero in any field selects the default named beside it. */
typedef struct janus_spawn_options {
    size_t            struct_bytes; /* sizeof this struct; JANUS_SPAWN_OPTIONS sets it */
    size_t            stack_bytes;  /* at least this much, wherever the child runs; rounded up to
                                         a power of two. The child's memory pays for what exceeds
                                         the scheduler's stack_bytes, until the child ends; else
                                         SPAWN_BUDGET. 0: the nursery's */
    janus_priority    priority;     /* 0: NORMAL. A task that a capability, a pool or a scope
                                         restricts needs the right executor.configure for HIGH,
                                         or is HIGH itself */
    janus_cancel_mode cancel;       /* 0: RETURN */
    const char       *name;         /* NULL: "task"; copied, see JANUS_NAME_BYTES */
    const janus_site *site;         /* NULL: unknown; borrowed */
    bool              unjoinable; /* the child keeps no result for a join, even if `out` is given */
    const janus_budget *budget;   /* its explicit budget, within what the capability and the
                                         pool allow. NULL: the capability's task_budget */
    janus_drop
        *drop; /* called for the argument of a child that never ran. NULL: nothing is called */
    janus_when_full when_full;     /* what the spawn does at TASK_LIMIT, see janus_spawn_wait. At
                                  max_children the nursery's when_full decides. 0: REFUSE */
    bool            inherit_local; /* the child begins with the pointer in the spawning task's
                                  janus_task_local; from a thread or a callback, with NULL */

    /*
     * with_cap: capabilities of the spawner that the child holds instead of the nursery's. They
     * never allow more than the nursery's do. Zero: the nursery's.
     */
    janus_cap spawn_cap, budget_cap, channel_cap, executor_cap, net_cap, file_cap, process_cap;
    janus_cap name_cap;
} janus_spawn_options;

#define JANUS_NURSERY_OPTIONS(...) JANUS_OPTIONS_(janus_nursery_options, __VA_ARGS__)
#define JANUS_SPAWN_OPTIONS(...) JANUS_OPTIONS_(janus_spawn_options, __VA_ARGS__)

JANUS_BEGIN_DECLS

/*
 * Opens a nursery in *nursery, inside the current task; `options` may be NULL.
 *
 * Context: inside a task, which becomes the owner. A task may have several nurseries open, one in
 *          the other.
 * Yields:  only if the turn is over.
 * Owns:    *nursery stays the caller's memory and must not move until janus_nursery_end.
 * Cost:    a few stores. If the task has open nurseries at lower addresses, also a step for each.
 * Errors:  STATE      not inside a task, or the task has *nursery open already
 *          INVALID    a field is out of range
 *          FULL       the task has as many nurseries open as the scheduler's max_nesting allows
 *          NO_MEMORY  memory for the timer of a deadline, or for the nursery's terms, was refused
 *          BUDGET_EXHAUSTED  the pool around it has less than options.budget. Or the task has 16
 *                     such nurseries open, and too little memory for another
 *          NO_BUDGET_CAP, NO_SPAWN_CAP, CAP_…  as janus_cap_check_in, for its capabilities
 *          CAP_WIDENS  it would allow more than what is around it, or ask the owner of a shared
 *                     pool less
 *          CANCELLED  options.scope, and the task is cancelled or ending
 *          UNAVAILABLE  the backend is EVENTED, and the system has no descriptor for a poller
 *          NO_EXECUTOR_CAP, CAP_LIMIT  the backend, or max_threads, may not be chosen
 */
JANUS_NODISCARD JANUS_API janus_status janus_nursery_open(janus_nursery               *nursery,
                                                          const janus_nursery_options *options);

/*
 * Opens a nursery from a plain thread, which becomes its owner.
 *
 * Context: any thread outside tasks, while the scheduler runs.
 * Yields:  never.
 * Owns:    as janus_nursery_open.
 * Cost:    a lock, and a step for each nursery that threads have open.
 * Errors:  STATE      inside a task, the scheduler does not run, another thread opened a
 *                     deterministic scheduler, or *nursery is already open
 *          INVALID    a field is out of range
 *          NO_MEMORY  memory for the timer of a deadline was refused
 *          NO_EXECUTOR_CAP  a blocking call, or a callback, of a restricted task; scheduler.h
 *          and those of janus_nursery_open
 */
JANUS_NODISCARD JANUS_API janus_status janus_nursery_open_in(janus_scheduler             *scheduler,
                                                             janus_nursery               *nursery,
                                                             const janus_nursery_options *options);

/*
 * Starts `entry(argument)` as a child of `nursery`. *out (NULL: not wanted) is its id. With `out`,
 * the child keeps its result until it is joined or the nursery ends. If a cancel comes before a
 * worker took the child, its entry is never called; options.drop is.
 *
 * With options.when_full WAIT a task or the owning thread waits for room; the first to wait goes
 * first. Any other thread is refused. If all children wait to start siblings, they wait for
 * themselves, and the library reports a deadlock.
 *
 * Context: the nursery's owner, or any task below it.
 * Yields:  if the task's turn or its ops are used up. If a thousand new tasks wait on its worker:
 *          then about half of them run first, newest first. With when_full WAIT, if the nursery is
 *          full. With the backend BLOCKING, while the child runs. In a hold (counted.h) it yields
 *          for neither of the first two reasons.
 * Owns:    `argument` stays the caller's; it must live until the child has ended. With
 *          options.drop the child owns it once this returned OK.
 * Cost:    some 60 ns, where janus_spawn takes about 20; no stack before it runs. With when_full
 *          WAIT also a lock here and at the child's end.
 * Errors:  CLOSED     the nursery is not Open, or left Open while this waited
 *          FULL       max_children are alive, or max_threads have a thread
 *          STATE      BLOCKING in a place that cannot wait: a token's callback, another scheduler
 *          CANCELLED  this task was cancelled before or while it waited for room, or when its turn
 *                     ended here
 *          DEADLOCK   it waited for room, every task waits, and no event can come
 *          INVALID    an argument is out of range, or `nursery` or `entry` is NULL
 *          NO_MEMORY  memory was refused
 *          TASK_LIMIT      the limit of live tasks is reached: the scheduler's, the capability's,
 *                          or max_tasks of a nursery around the child
 *          CAP_WIDENS      a capability or a pool restricts the calling task, but not the children
 *                          of this nursery
 *          SPAWN_BUDGET    the pool has no spawn_count or no ops for another child, or the child's
 *                          share has no memory for its large stack
 *          NO_EXECUTOR_CAP  options.priority is HIGH, and the task may not choose it
 *          NO_SPAWN_CAP, CAP_…  as janus_cap_check_in
 *          On any error nothing was started.
 */
JANUS_NODISCARD JANUS_API janus_status janus_spawn_with(janus_nursery *nursery, janus_entry *entry,
                                                        void                      *argument,
                                                        const janus_spawn_options *options,
                                                        janus_task_id             *out);

/*
 * Starts a child without options. Dumps show `site`, the place of the spawn; janus_spawn() fills it
 * in.
 *
 * Context: as janus_spawn_with.
 * Yields:  as janus_spawn_with.
 * Owns:    as janus_spawn_with; `site` must live for ever.
 * Cost:    about 20 ns; no stack before it runs.
 * Errors:  as janus_spawn_with
 */
JANUS_NODISCARD JANUS_API janus_status janus_spawn_at(janus_nursery *nursery, janus_entry *entry,
                                                      void *argument, const janus_site *site);

/*
 * Starts a child as janus_spawn_at, but waits for room instead of returning TASK_LIMIT.
 * janus_spawn_wait() fills in `site`.
 *
 * The first to wait gets room first, but spawns that do not wait may overtake it. A task that waits
 * is itself alive: if all tasks under a limit wait for room, all of them get DEADLOCK. A worker
 * that computes without any call delays the news of children that ended on it by about a
 * millisecond.
 *
 * Context: as janus_spawn_with. A thread that does not own the nursery, a token's callback and a
 *          task of another scheduler do not wait: they get TASK_LIMIT.
 * Yields:  as janus_spawn_with, and while it waits for room.
 * Owns:    as janus_spawn_with; `site` must live for ever.
 * Cost:    as janus_spawn_with; if it waits, a lock here and a fence of all workers.
 * Errors:  CANCELLED  this task was cancelled while, or before, it waited
 *          DEADLOCK   it waited, every task waits, and no event can come
 *          CLOSED     the nursery is not Open, also after the wait
 *          and those of janus_spawn_with
 */
JANUS_NODISCARD JANUS_API janus_status janus_spawn_wait_at(janus_nursery *nursery,
                                                           janus_entry *entry, void *argument,
                                                           const janus_site *site);

/* The place in the source where this macro is used. */
#define JANUS_SITE_HERE                                                                            \
    __extension__({                                                                                \
        static const janus_site janus_site_here = {__FILE__, __LINE__};                            \
        &janus_site_here;                                                                          \
    })

#define janus_spawn(nursery, entry, argument)                                                      \
    janus_spawn_at(nursery, entry, argument, JANUS_SITE_HERE)

#define janus_spawn_wait(nursery, entry, argument)                                                 \
    janus_spawn_wait_at(nursery, entry, argument, JANUS_SITE_HERE)

/*
 * Closes a nursery: no more children may start.
 *
 * Context: the owner.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    an atomic operation.
 * Errors:  STATE    it is not Open; nothing happened
 *          INVALID  `nursery` is NULL
 */
JANUS_API janus_status janus_nursery_close(janus_nursery *nursery);

/*
 * Cancels every child, and everything below them. It does not wait for their end.
 *
 * These may cancel a nursery:
 *   - its owner;
 *   - any plain thread;
 *   - a task below it, unless options.cancel_by_owner, a budget or a capability reserves the right
 *     for the owner. A nursery that reserves it also keeps its children from cancelling nurseries
 *     around it. A child with its own capabilities may cancel only its own nurseries, and those
 *     that inherit these capabilities.
 * So a plugin with a pool or a capability cannot cancel its neighbours, and tasks that trust each
 * other can stop their common search. A blocking call and a token's callback have the right of the
 * task that made them. To share the right, the owner binds a token (janus_nursery_cancel_on) and
 * passes it on. A child that fails always cancels its siblings, unless the policy is WAIT_ALL.
 *
 * Context: any thread or task, while the nursery has not ended.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a visit to each task below that ever waited. From a task below it, also a step for each
 *          nursery between.
 * Errors:  STATE    it was cancelled before or is final, or the caller does not have the right;
 *                   nothing happened
 *          INVALID  `nursery` is NULL
 */
JANUS_API janus_status janus_nursery_cancel(janus_nursery *nursery);

/*
 * Closes the nursery and waits until all children have ended. Then the owner may read what they
 * wrote.
 *
 * Context: the owner. In a task, the call runs children that no worker has taken yet.
 * Yields:  if there is something to wait for; on a plain thread it blocks the thread.
 * Owns:    *out (NULL: not wanted) stays the caller's.
 * Cost:    no polling; one wake-up.
 * Errors:  CHILD_FAILED  see out->error
 *          CANCELLED     it was cancelled, and no child failed. If the caller was cancelled too and
 *                        its mode is UNWIND, the call does not return
 *          STATE         not the owner; nothing happened
 *          INVALID       `nursery` is NULL
 */
JANUS_NODISCARD JANUS_API janus_status janus_nursery_await_with(janus_nursery        *nursery,
                                                                janus_nursery_result *out);

/*
 * Reads the result so far. Its kind is PENDING until all children have ended, then it is what await
 * gives.
 *
 * Context: any thread or task, while the nursery has not ended.
 * Yields:  only if the turn is over.
 * Owns:    *out stays the caller's.
 * Cost:    a lock.
 * Errors:  none; returns whether it is final.
 */
JANUS_API bool janus_nursery_try_await(janus_nursery *nursery, janus_nursery_result *out);

/*
 * Reads the children that have failed so far, in the order of failing. The first is that of the
 * result.
 *
 * Context: the nursery's owner, before it ends the nursery.
 * Yields:  only if the turn is over.
 * Owns:    `out` stays the caller's; the call writes up to `room` failures.
 * Cost:    a lock.
 * Errors:  none. Returns how many are kept, at most JANUS_FAILURES_KEPT. 0: no failure, not the
 *          owner, or memory was refused.
 */
JANUS_API size_t janus_nursery_failures(janus_nursery *nursery, janus_failure *out, size_t room);

/*
 * Awaits the children, then ends the nursery. Its memory is the caller's again.
 *
 * Context: the owner; inner nurseries before outer ones.
 * Yields:  as janus_nursery_await_with.
 * Owns:    takes *nursery.
 * Cost:    as janus_nursery_await_with.
 * Errors:  as janus_nursery_await_with; on STATE nothing happened
 */
JANUS_NODISCARD JANUS_API janus_status janus_nursery_end(janus_nursery        *nursery,
                                                         janus_nursery_result *out);

/*
 * Ends a nursery where no status can be returned. It calls janus_nursery_end; on CHILD_FAILED the
 * task panics with a sentence that says so. JANUS_NURSERY calls it when `return` or `goto` leaves
 * its block.
 *
 * Context: the owner; inner nurseries before outer ones.
 * Yields:  as janus_nursery_await_with.
 * Owns:    takes *nursery.
 * Cost:    as janus_nursery_await_with.
 * Errors:  none. If a child failed, or the caller may not end the nursery, the task panics.
 */
JANUS_API void janus_nursery_leave(janus_nursery *nursery);

/*
 * The nursery's deadline on the clock of janus_now_ns.
 *
 * Context: the owner.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a load.
 * Errors:  0  it has none, or the caller is not the owner
 */
JANUS_API uint64_t janus_nursery_deadline(const janus_nursery *nursery);

/*
 * Moves the nursery's deadline; 0 removes it. A deadline in the past cancels the nursery soon.
 *
 * Context: the owner.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a timer, O(log of the timers).
 * Errors:  STATE      not the owner, or the nursery is cancelled or final
 *          INVALID    `nursery` is NULL
 *          NO_MEMORY  memory for the timer was refused; the deadline is as before
 */
JANUS_NODISCARD JANUS_API janus_status janus_nursery_set_deadline(janus_nursery *nursery,
                                                                  uint64_t       deadline_ns);

/*
 * The nursery's state.
 *
 * Context: any thread or task, while the nursery has not ended.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a load.
 * Errors:  none; CLOSED for NULL.
 */
JANUS_API janus_nursery_state janus_nursery_state_of(const janus_nursery *nursery);

/*
 * Whether the nursery, or any around it, was cancelled.
 *
 * Context: any thread or task, while the nursery has not ended.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    some loads. After a cancel anywhere, once, some for each nursery around it.
 * Errors:  none.
 */
JANUS_API bool janus_nursery_is_cancelled(const janus_nursery *nursery);

/*
 * Waits for one child and reads what it returned.
 *
 * Context: the nursery's owner. On a plain thread it blocks the thread, and is not cancelled.
 * Yields:  if the child has not ended.
 * Owns:    takes the child's record; its id is stale afterwards.
 * Cost:    a lock.
 * Errors:  STALE         no such child, or it was joined before
 *          CANCELLED     this task was cancelled while waiting; the child can still be joined
 *          CHILD_FAILED  it panicked or returned a negative number; *out_result is that number
 *          CHILD_CANCELLED  it was cancelled and obeyed; *out_result is CANCELLED
 *          STATE         not the owner
 *          NO_MEMORY     memory for a stack, or for a shield's timer, was refused
 */
JANUS_NODISCARD JANUS_API janus_status janus_join(janus_nursery *nursery, janus_task_id task,
                                                  int64_t *out_result);

JANUS_END_DECLS

#include <janusrt/block.h>

#endif
