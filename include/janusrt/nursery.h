/* SPDX-License-Identifier: MIT */
/*
 * Nurseries: scopes that tasks are started in and that end only when all of them have. No task
 * outlives its nursery, no error is lost, and cancelling a nursery reaches everything below it.
 *
 *     static int64_t fetch_both(void *argument)
 *     {
 *         struct pair *pair = argument;
 *         janus_status status;
 *         JANUS_NURSERY(n, status) {
 *             if (janus_spawn(n, fetch, &pair->left) != JANUS_OK) return -1;
 *             if (janus_spawn(n, fetch, &pair->right) != JANUS_OK) return -1;
 *         } // both have ended here; what they wrote can be read
 *         return status;
 *     }
 *
 *     Open -> Closing -> Closed            close, then the last child
 *       \         \
 *        +-> Cancelling -> Cancelled       cancel, an error, the owner's cancellation or a deadline
 *
 * A child that returns a negative number, or panics, has failed: its siblings are cancelled (unless
 * the policy is WAIT_ALL) and the nursery's result is CHILD_FAILED with the first failure. A child
 * that returns JANUS_CANCELLED (-1) has merely obeyed if its scope (its nursery, or any around it)
 * or the child itself (token.h) is cancelled when it ends, or if a call or a token told it so
 * before. Else that number is a failure like any other.
 *
 * The owner is inside the scope, too: once the nursery is cancelled, the owner's own waits return
 * CANCELLED until it ends the nursery, and so do the nurseries that it opened inside. A shield
 * begun inside holds that off, options.owner_apart keeps the owner out. A task that was told for
 * that reason alone is not cancelled itself: afterwards it waits as before, JANUS_CANCEL_UNWIND
 * does not end it, and a CANCELLED that it returns is a failure. A thread that owns a nursery is
 * never told. janus_join of a child that is cancelled with the nursery waits for the child's end.
 *
 * A spawn can be refused, for one when as many tasks live as the scheduler allows (100 unless
 * max_tasks says otherwise): look at what it returns, or let janus_spawn_wait wait for room.
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

/* Lives where its opener puts it, usually on the stack. Nothing in it is for users. */
typedef struct janus_nursery {
    uint64_t opaque[68] __attribute__((aligned(16)));
} janus_nursery;

typedef enum janus_nursery_state {
    JANUS_NURSERY_OPEN = 0,       /* takes children */
    JANUS_NURSERY_CLOSING = 1,    /* takes none, waits for those it has */
    JANUS_NURSERY_CANCELLING = 2, /* told them to end, waits */
    JANUS_NURSERY_CLOSED = 3,     /* all have ended; final */
    JANUS_NURSERY_CANCELLED = 4,  /* all have ended after it was cancelled; final */
} janus_nursery_state;

typedef enum janus_nursery_policy {
    JANUS_CANCEL_ON_ERROR = 0, /* the first failure cancels the others */
    JANUS_WAIT_ALL,            /* the others go on; the failure is in the result */
} janus_nursery_policy;

/* What a spawn meets at a limit: max_children of its nursery, or TASK_LIMIT. */
typedef enum janus_when_full {
    JANUS_FULL_REFUSE = 0, /* the spawn returns FULL or TASK_LIMIT */
    JANUS_FULL_WAIT, /* the spawn waits until a task has ended; the first to wait goes first */
} janus_when_full;

typedef enum janus_result_kind {
    JANUS_RESULT_SUCCESS = 0,
    JANUS_RESULT_CHILD_FAILED,
    JANUS_RESULT_CANCELLED,
    JANUS_RESULT_PENDING, /* children are still running */
} janus_result_kind;

/* How a nursery ended. A failure counts before a cancellation, whichever came first. */
typedef struct janus_nursery_result {
    janus_result_kind   kind;
    janus_cancel_reason reason; /* CANCELLED: why */
    int64_t             error;  /* CHILD_FAILED: what the first to fail returned */
    janus_task_id       task;   /* CHILD_FAILED: which */
    uint64_t            errors; /* how many failed */
    janus_panic_info    panic;  /* CHILD_FAILED by a panic: which; else kind NONE */
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
    janus_component  lacks; /* BUDGET_EXHAUSTED: of what it had too little; else NONE */
    uint64_t         used;  /* of that, of all it got, */
    uint64_t         limit; /* so much */
} janus_failure;

/* Of each nursery the first so many are kept; all are counted. All nurseries under the same terms
 * together keep 4096. */
#define JANUS_FAILURES_KEPT 64

/* A child that cannot pay for what it wants to do. */
typedef struct janus_exhausted {
    janus_task_id   task;
    char            name[JANUS_NAME_BYTES]; /* as kept, or "task" */
    janus_site      site;                   /* where it was started; file NULL: unknown */
    janus_component lacks;                  /* what it has too little of */
    uint64_t        needs;                  /* of that, for what it wants to do now */
    janus_budget    left;                   /* what it has */
    janus_budget    granted;                /* what it got in all */
} janus_exhausted;

/* What a supervisor wants done with it. */
typedef enum janus_verdict {
    JANUS_VERDICT_IGNORE = 0, /* it stays exhausted, until somebody recharges it or the nursery is
                                 waited for */
    JANUS_VERDICT_RECHARGE,   /* it gets *grant */
    JANUS_VERDICT_CANCEL,     /* it ends, cancelled */
} janus_verdict;

/* Called in the child when it is exhausted; must not wait. It has JANUS_SLICE operations; if it
 * uses them up, the child ends there. The child pays for those it used, out of *grant. A grant that
 * does not cover them, or has nothing of what the child lacks, counts as JANUS_VERDICT_IGNORE. */
typedef janus_verdict janus_on_exhausted(void *argument, const janus_exhausted *child,
                                         janus_budget *grant);

/* How a nursery is opened. Zero in any field asks for the default named beside it. */
typedef struct janus_nursery_options {
    size_t               struct_bytes; /* sizeof this struct; JANUS_NURSERY_OPTIONS sets it */
    janus_nursery_policy policy;       /* 0: CANCEL_ON_ERROR */
    uint32_t             max_children; /* live at a time; see when_full. 0: no limit */
    uint64_t             deadline_ns;  /* cancelled when the clock reaches it. 0: none */
    size_t               stack_bytes;  /* for children that ask for nothing; they pay as those of
                                          janus_spawn_options.stack_bytes. 0: scheduler's */
    const char          *name;         /* NULL: "nursery"; copied, see JANUS_NAME_BYTES */
    janus_when_full      when_full;    /* 0: REFUSE */

    /* Budgets, charge.h. A pool is carved from that of the nurseries around it, if they have one;
     * cut to what the budget capability allows: *granted tells what it got. */
    const janus_budget *budget;       /* a pool of its own for the children. NULL: that of the
                                         nurseries around it; without one, implicit budgets */
    janus_budget       *granted;      /* out: the pool it got. NULL: not wanted */
    janus_exhaustion    exhaustion;   /* what becomes of exhausted children. 0: as around it */
    janus_on_exhausted *on_exhausted; /* SUPERVISE: who decides. NULL: whoever polls or waits */
    void               *on_exhausted_argument;

    /* Capabilities of the opener, for everything started inside instead of those around it. Zero:
     * as around it. */
    janus_cap spawn_cap, budget_cap, channel_cap, executor_cap;
    bool      scope;   /* with spawn_cap: until the nursery ends its owner, too, has only that
                          capability's task_budget. It restrains code that the owner trusts: whoever
                          runs in the owner can end the nursery. Run plugins as children. */
    uint64_t  backend; /* JANUS_BACKEND_SET of the one that runs the children, see below. 0: as
                          around it, at the root COOPERATIVE */
    bool owner_apart;  /* the owner's own waits in the block go on when the nursery is cancelled */
    bool cancel_by_owner; /* of all tasks only the owner may cancel it; so it is anyway with a
                             budget or a capability, see janus_nursery_cancel */
    uint32_t threads_max; /* THREADED: threads of children here and below, alive at a time; takes
                              the right executor.configure. 0: what holds around it */
    janus_nursery_result *result; /* JANUS_NURSERY: how it ended, set with the block's status;
                                     janus_nursery_open returns INVALID. NULL: not wanted */
} janus_nursery_options;

/*
 * How children are run. A program does the same with each; only who runs when is different. Which
 * one may be chosen is said by the executor capability (right executor.select) or the profile;
 * nurseries below inherit it. janus_context_read tells it.
 *
 *   COOPERATIVE  tasks on the scheduler's workers.
 *   BLOCKING     one after the other: a spawn returns when the child has ended, with OK also if the
 *                child has failed; then, with CANCEL_ON_ERROR, the next is refused with CLOSED. The
 *                child runs on its spawner's stack, or where that has no room on another, and no
 *                thread is ever added. A child that waits for something that only its spawner would
 *                do next waits for ever, which is told as a deadlock. Exhausted children end: their
 *                owner cannot recharge them. Of plain threads only the owner may spawn,
 *                and a blocking call of a task.
 *   THREADED     a thread of the system for each child, on which nothing else runs, but what the
 *                child runs with BLOCKING inside. All of this library works there, towards all
 *                other tasks of the scheduler too. A thread is made by the spawn, which says
 *                NO_MEMORY where the system has none, and FULL where threads_max children have
 *                one; it ends with the child, and is joined later. If the system ends it in the
 *                middle (pthread_exit) and gives no other, the workers run the child's end.
 *   EVENTED      UNAVAILABLE
 */

/* What a cancelled child meets at the calls that wait. */
typedef enum janus_cancel_mode {
    JANUS_CANCEL_RETURN = 0, /* they return CANCELLED, and it returns by itself */
    JANUS_CANCEL_UNWIND,     /* they end the task on the spot; its defers run */
} janus_cancel_mode;

/*
 * Called once with the child's argument if the child ends without its entry having been called:
 * its nursery was cancelled or the scheduler stopped before it began, or there was no stack to
 * begin with. Never called if the spawn returned an error: then the argument is still the caller's.
 * The argument has been dropped when janus_nursery_end returns.
 *
 * It runs in the middle of another task or of a worker's loop, on the child's behalf: it may do
 * what the child may. It must not wait: calls that would wait return an error. It has a small slice
 * of operations. If it panics or uses up its slice it ends there, which is reported, and the
 * child's nursery goes on.
 */
typedef void janus_drop(void *argument);

/* How one child is started. Zero in any field asks for the default named beside it. */
typedef struct janus_spawn_options {
    size_t              struct_bytes; /* sizeof this struct; JANUS_SPAWN_OPTIONS sets it */
    size_t              stack_bytes;  /* at least so much, wherever the child runs; rounded up to
                                         a power of two. The child's share pays for what lies
                                         beyond the scheduler's stack_bytes from its memory, and
                                         has it back when the child ends; else SPAWN_BUDGET.
                                         0: the nursery's */
    janus_priority      priority;     /* 0: NORMAL. HIGH: not from a task of lower priority that a
                                         capability, a pool or a scope restricts, unless it holds
                                         the right executor.configure */
    janus_cancel_mode   cancel;       /* 0: RETURN */
    const char         *name;         /* NULL: "task"; copied, see JANUS_NAME_BYTES */
    const janus_site   *site;         /* NULL: unknown; borrowed */
    bool                unjoinable;   /* nothing is kept for a join, also if the id is asked for */
    const janus_budget *budget;       /* what it gets, explicitly, within what the capability and
                                         the pool allow. NULL: the capability's task_budget */
    janus_drop         *drop; /* what becomes of the argument of a child that never ran. NULL: it is
                                  left */
    janus_when_full     when_full; /* what the spawn does at TASK_LIMIT, see janus_spawn_wait. At
                                  max_children the nursery's when_full decides. 0: REFUSE */
    bool                inherit_local; /* the child begins with the pointer in the spawning task's
                                  janus_task_local; from a thread or a callback, with NULL */

    /* with_cap: what the child holds instead of what the nursery does; of the spawner's own, and
     * never more than the nursery has. Zero: the nursery's. */
    janus_cap spawn_cap, budget_cap, channel_cap, executor_cap;
} janus_spawn_options;

#define JANUS_NURSERY_OPTIONS(...) JANUS_OPTIONS_(janus_nursery_options, __VA_ARGS__)
#define JANUS_SPAWN_OPTIONS(...) JANUS_OPTIONS_(janus_spawn_options, __VA_ARGS__)

JANUS_BEGIN_DECLS

/*
 * Opens a nursery in *nursery, inside the current task; `options` may be NULL.
 *
 * Context: inside a task, which becomes its owner. A task may have several open, one in the other.
 * Yields:  only if the turn is over.
 * Owns:    *nursery stays the caller's memory and must not move until janus_nursery_end.
 * Cost:    a few stores; for one that lies above another open one of the task in memory, also a
 *          look at each of these.
 * Errors:  STATE      not inside a task, or the task has *nursery open already
 *          INVALID    a field is out of range
 *          FULL       the task has as many nurseries open as the scheduler's nesting_max allows
 *          NO_MEMORY  no memory for the timer of a deadline, the nursery's or its shield's, or for
 *                     its terms
 *          BUDGET_EXHAUSTED  the pool around it has less than options.budget; or the task has 16
 *                     nurseries with such options open, and too little memory left for another
 *          NO_BUDGET_CAP, NO_SPAWN_CAP, CAP_…  as janus_cap_check, for the capabilities it needs or
 *                     was given; CAP_WIDENS: more than is held around it, or in a pool that is
 *                     shared a policy that asks its owner less
 *          CANCELLED  options.scope, and the task is cancelled or ending
 *          UNAVAILABLE  the backend is not built
 *          NO_EXECUTOR_CAP, CAP_LIMIT  the backend, or threads_max, may not be chosen
 */
JANUS_NODISCARD JANUS_API janus_status janus_nursery_open(janus_nursery               *nursery,
                                                          const janus_nursery_options *options);

/*
 * Opens a nursery from a thread that is no worker; the thread becomes its owner.
 *
 * Context: any thread outside tasks, while the scheduler runs.
 * Yields:  never.
 * Owns:    as janus_nursery_open.
 * Cost:    a lock, and a look at each nursery that threads have open.
 * Errors:  STATE      inside a task, the scheduler does not run, or it is deterministic and was
 *                     opened by another thread; or *nursery is open already
 *          INVALID    a field is out of range
 *          NO_MEMORY  no memory for the timer of a deadline
 *          NO_EXECUTOR_CAP  a blocking call, or a callback, of a restricted task; scheduler.h
 *          and those of janus_nursery_open
 */
JANUS_NODISCARD JANUS_API janus_status janus_nursery_open_in(janus_scheduler             *scheduler,
                                                             janus_nursery               *nursery,
                                                             const janus_nursery_options *options);

/*
 * Starts `entry(argument)` as a child of `nursery`. *out (NULL: not wanted) is its id; a child
 * whose id was asked for keeps its result until it is joined or the nursery ends. A child that is
 * cancelled before a worker took it never calls its entry; options.drop learns of that.
 *
 * With options.when_full WAIT it waits for room, tasks and the owning thread in the order they
 * came; any other thread is refused. Children that all wait to start siblings wait for themselves:
 * that is a deadlock, and is told as one.
 *
 * Context: the nursery's owner, or any task below it.
 * Yields:  if the task's turn, or its ops, are used up; with when_full WAIT, if the nursery is
 *          full; with the backend BLOCKING as long as the child runs.
 * Owns:    `argument` stays the caller's; it must live until the child has ended. With
 *          options.drop the child owns it once this returned OK.
 * Cost:    about 20 ns; no stack before it runs. With when_full WAIT a lock, here and at the
 *          child's end.
 * Errors:  CLOSED     the nursery is not Open, or left Open while this waited
 *          FULL       options.max_children are alive; or threads_max have a thread
 *          STATE      BLOCKING, from where nobody can wait: a token's callback, another scheduler
 *          CANCELLED  this task was cancelled: while, or before, it waited for room, or as its turn
 *                     ended here
 *          DEADLOCK   it waited for room, and nothing can happen any more
 *          INVALID    an argument is out of range, or `nursery` or `entry` is NULL
 *          NO_MEMORY  memory was refused
 *          TASK_LIMIT      as many tasks live as the scheduler, or the capability, allows
 *          CAP_WIDENS      a capability or a pool restricts the calling task, and does not
 *                          restrict the children of this nursery
 *          SPAWN_BUDGET    the pool has no spawn_count, or no ops, for another child; or the
 *                          child's share has no memory for a stack larger than the scheduler's
 *          NO_EXECUTOR_CAP  options.priority is HIGH, and may not be chosen
 *          NO_SPAWN_CAP, CAP_…  as janus_cap_check
 *          On any error nothing was started.
 */
JANUS_NODISCARD JANUS_API janus_status janus_spawn_with(janus_nursery *nursery, janus_entry *entry,
                                                        void                      *argument,
                                                        const janus_spawn_options *options,
                                                        janus_task_id             *out);

/*
 * The short form, with the place in the source that dumps show. janus_spawn() fills it in.
 *
 * Context: as janus_spawn_with.
 * Yields:  as janus_spawn_with.
 * Owns:    as janus_spawn_with; `site` must live for ever.
 * Cost:    as janus_spawn_with.
 * Errors:  as janus_spawn_with
 */
JANUS_NODISCARD JANUS_API janus_status janus_spawn_at(janus_nursery *nursery, janus_entry *entry,
                                                      void *argument, const janus_site *site);

/*
 * The form that waits for room: where janus_spawn_at returns TASK_LIMIT, this waits until a task
 * has ended under the limit that is reached. janus_spawn_wait() fills the place in.
 *
 * The first to wait is the first to get room. Spawns that do not wait may come before. A task that
 * waits is alive itself: if all tasks under a limit wait for room, that is a deadlock, and all are
 * told. A worker that computes without any call delays the news of children that ended on it, by
 * about a millisecond.
 *
 * Context: as janus_spawn_with. A thread that does not own the nursery, a token's callback and a
 *          task of another scheduler do not wait: they get TASK_LIMIT.
 * Yields:  as janus_spawn_with, and while there is no room.
 * Owns:    as janus_spawn_with; `site` must live for ever.
 * Cost:    as janus_spawn_with; if it waits, a lock here and a fence of all workers.
 * Errors:  CANCELLED  this task was cancelled while, or before, it waited
 *          DEADLOCK   it waited, and nothing can happen any more
 *          CLOSED     the nursery is not Open, also after the wait
 *          and those of janus_spawn_with
 */
JANUS_NODISCARD JANUS_API janus_status janus_spawn_wait_at(janus_nursery *nursery,
                                                           janus_entry *entry, void *argument,
                                                           const janus_site *site);

/* The place in the source where this stands. */
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
 * No more children.
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
 * Tells every child, and everything below them, to end. It does not wait.
 *
 * These may cancel a nursery:
 *   - its owner;
 *   - a plain thread, which is the host's;
 *   - a task below it, unless options.cancel_by_owner, a budget or a capability keeps the right for
 *     the owner. A nursery that keeps it so also keeps its children from cancelling what lies
 *     around it. A child that was spawned with capabilities of its own cancels only its own
 *     nurseries, and those that they hold for.
 * So a host that gives a plugin a pool or a capability need not fear for the plugin's neighbours,
 * and tasks that trust each other can stop their common search. A blocking call and a token's
 * callback have the right of the task that made them. To share the right, the owner binds a token
 * (janus_nursery_cancel_with) and passes it on. A child that fails cancels its siblings all the
 * same, unless the policy is WAIT_ALL.
 *
 * Context: any thread or task, while the nursery has not ended.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a visit to each task below that ever waited; from a task below it, a look at each
 *          nursery between.
 * Errors:  STATE    it was cancelled before or is final, or the caller has not the right; nothing
 *                   happened
 *          INVALID  `nursery` is NULL
 */
JANUS_API janus_status janus_nursery_cancel(janus_nursery *nursery);

/*
 * Closes the nursery and waits until all children have ended. What they wrote can be read then.
 *
 * Context: the owner. In a task, children that nobody has taken yet run right here.
 * Yields:  if there is something to wait for; on a plain thread it blocks the thread.
 * Owns:    *out (NULL: not wanted) stays the caller's.
 * Cost:    no polling; one wake-up.
 * Errors:  CHILD_FAILED  see out->error
 *          CANCELLED     it was cancelled, and no child failed; if the caller was cancelled too and
 *                        is to be unwound, it does not return
 *          STATE         not the owner; nothing happened
 *          INVALID       `nursery` is NULL
 */
JANUS_API janus_status janus_nursery_await_with(janus_nursery *nursery, janus_nursery_result *out);

/*
 * The result so far: kind PENDING until all children have ended, then what await gives.
 *
 * Context: any thread or task, while the nursery has not ended.
 * Yields:  only if the turn is over.
 * Owns:    *out stays the caller's.
 * Cost:    a lock.
 * Errors:  none; returns whether it is final.
 */
JANUS_API bool janus_nursery_try_result(janus_nursery *nursery, janus_nursery_result *out);

/*
 * The children that have failed so far, in the order they did; the first is the one of the result.
 *
 * Context: the nursery's owner, before it ends the nursery.
 * Yields:  only if the turn is over.
 * Owns:    `out` stays the caller's; up to `room` of them are written.
 * Cost:    a lock.
 * Errors:  none; returns how many are kept, at most JANUS_FAILURES_KEPT. 0: none, not the owner,
 *          or memory was refused.
 */
JANUS_API size_t janus_nursery_failures(janus_nursery *nursery, janus_failure *out, size_t room);

/*
 * Awaits, then ends the nursery: its memory is the caller's again.
 *
 * Context: the owner; inner nurseries before outer ones.
 * Yields:  as janus_nursery_await_with.
 * Owns:    takes *nursery.
 * Cost:    as janus_nursery_await_with.
 * Errors:  as janus_nursery_await_with; on STATE nothing happened
 */
JANUS_API janus_status janus_nursery_end(janus_nursery *nursery, janus_nursery_result *out);

/*
 * Ends a nursery on a way out that has no place for a status: janus_nursery_end, and where that
 * returns CHILD_FAILED the task panics with a sentence that says so.
 * JANUS_NURSERY calls it when its block is left by `return` or `goto`.
 *
 * Context: the owner; inner nurseries before outer ones.
 * Yields:  as janus_nursery_await_with.
 * Owns:    takes *nursery.
 * Cost:    as janus_nursery_await_with.
 * Errors:  none; a child that failed, or a caller that may not end it, is a panic of the task.
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
 * Moves the nursery's deadline; 0 takes it away. One that has passed cancels the nursery soon.
 *
 * Context: the owner.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a timer, O(log of the timers).
 * Errors:  STATE      not the owner, or the nursery is cancelled or final
 *          INVALID    `nursery` is NULL
 *          NO_MEMORY  no memory for the timer; the deadline is as before
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
 * Errors:  none.
 */
JANUS_API janus_nursery_state janus_nursery_state_of(const janus_nursery *nursery);

/*
 * Whether it was cancelled, itself or by something around it.
 *
 * Context: any thread or task, while the nursery has not ended.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    some loads; after somebody was cancelled, once, a few for each nursery around it.
 * Errors:  none.
 */
JANUS_API bool janus_nursery_is_cancelled(const janus_nursery *nursery);

/*
 * Waits for one child and gives what it returned.
 *
 * Context: the nursery's owner. On a plain thread it blocks the thread, and is not cancelled.
 * Yields:  if the child has not ended.
 * Owns:    the child's record is given back; its id is stale afterwards.
 * Cost:    a lock.
 * Errors:  STALE         no such child, or it was joined before
 *          CANCELLED     this task was cancelled while waiting; the child can still be joined
 *          CHILD_FAILED  it panicked or returned a negative number; *out_result is that number
 *          CHILD_CANCELLED  it was cancelled and has obeyed; *out_result is CANCELLED
 *          STATE         not the owner
 *          NO_MEMORY     no memory for a stack to go on with, or a shield's timer
 */
JANUS_API janus_status janus_join(janus_nursery *nursery, janus_task_id task, int64_t *out_result);

JANUS_END_DECLS

#include <janusrt/block.h>

#endif
