/* SPDX-License-Identifier: MIT */
/*
 * Tasks: the calls of a running task. A nursery starts tasks (nursery.h), and a scheduler runs them
 * (scheduler.h).
 *
 * In a cancelled task every call that waits returns JANUS_CANCELLED at once, each time:
 * cancellation is sticky. A shield holds it off for a while.
 *
 * A task that breaks a contract panics with a sentence, and the process goes on. A task that
 * returns with a nursery open panics too; the library cancels and awaits the children first. A
 * panic ends the task like a failure. The scheduler reports it in one line on stderr (on_panic in
 * scheduler.h).
 *
 * A cancelled task has JANUS_SLICE operations to clean up with, once in its life. With an explicit
 * budget it has as many as it was granted before, at least 32 and at most JANUS_SLICE. Each
 * CANCELLED that a call returns costs one of them. A task that has used them up ends in the call:
 * the library unwinds it, whatever its mode, and its defers run.
 */
#ifndef JANUSRT_TASK_H
#define JANUSRT_TASK_H

#include <janusrt/export.h>
#include <janusrt/fiber.h>
#include <janusrt/status.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The id of a task: a slot and its generation. No other task ever has it. 0 names no task. The
 * library refuses a stale id. Its texts show ids in hexadecimal: 0x200000001.
 */
typedef uint64_t janus_task_id;

/* The states of a task. */
typedef enum janus_task_state {
    JANUS_TASK_STATE_READY = 0,
    JANUS_TASK_STATE_RUNNING,
    JANUS_TASK_STATE_BLOCKED,
    JANUS_TASK_STATE_BUDGET_EXHAUSTED,
    JANUS_TASK_STATE_COMPLETED,
    JANUS_TASK_STATE_CANCELLED,
} janus_task_state;

typedef enum janus_priority {
    JANUS_PRIORITY_DEFAULT = 0, /* NORMAL */
    JANUS_PRIORITY_HIGH,
    JANUS_PRIORITY_NORMAL,
    JANUS_PRIORITY_LOW, /* waits longer, but never starves */
} janus_priority;

/* A shield with a deadline, in the frame that begins and ends it. Its fields are private. */
typedef struct janus_shield {
    uint64_t opaque[3];
} janus_shield;

/* Durations in nanoseconds, as all calls take them: janus_sleep(5 * JANUS_MS). */
#define JANUS_US UINT64_C(1000)
#define JANUS_MS UINT64_C(1000000)
#define JANUS_SECONDS UINT64_C(1000000000)

/* Why a task was cancelled. */
typedef enum janus_cancel_reason {
    JANUS_CANCEL_REASON_NONE = 0,
    JANUS_CANCEL_REASON_EXPLICIT,      /* a task or thread called a cancel function */
    JANUS_CANCEL_REASON_PARENT,        /* the task that owns the nursery was cancelled */
    JANUS_CANCEL_REASON_SIBLING_ERROR, /* another child of the nursery failed */
    JANUS_CANCEL_REASON_DEADLINE,      /* the nursery's deadline passed */
    JANUS_CANCEL_REASON_SHUTDOWN,      /* the scheduler is being stopped */
} janus_cancel_reason;

JANUS_BEGIN_DECLS

/*
 * Lets other tasks run. This task goes to the back of the queue.
 *
 * Context: inside a task.
 * Yields:  always, if anything else is ready; may come back on another thread.
 * Owns:    nothing.
 * Cost:    one switch, about 15 ns; no budget.
 * Errors:  CANCELLED  the task was cancelled; it did not yield
 *          STATE      not inside a task
 */
JANUS_NODISCARD JANUS_API janus_status janus_yield(void);

/*
 * Waits until the clock (janus_now_ns) reaches `deadline_ns`.
 *
 * Context: inside a task; on a plain thread it blocks the thread.
 * Yields:  always, unless the deadline has passed.
 * Owns:    nothing.
 * Cost:    a timer, O(log of the timers).
 * Errors:  CANCELLED  cancelled before or while waiting
 *          DEADLINE   the caller is a token's callback or a drop: these never wait, so the call
 *                     returned at once
 *          DEADLOCK   never: a timer will end it
 *          NO_MEMORY  memory for the timer was refused
 */
JANUS_NODISCARD JANUS_API janus_status janus_sleep_until(uint64_t deadline_ns);

/*
 * Sleeps as janus_sleep_until, for `duration_ns` from now.
 *
 * Context: inside a task; on a plain thread it blocks the thread.
 * Yields:  always.
 * Owns:    nothing.
 * Cost:    as janus_sleep_until, and reading the clock.
 * Errors:  as janus_sleep_until
 */
JANUS_NODISCARD JANUS_API janus_status janus_sleep(uint64_t duration_ns);

/*
 * Nanoseconds on the clock of all deadlines. It never goes back.
 *
 * Context: anyone, any thread.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    reading the clock, about 20 ns.
 * Errors:  none.
 */
JANUS_API uint64_t janus_now_ns(void);

/*
 * Runs `function(argument)` on a helper thread and waits for it. So a call that blocks its thread
 * blocks only this task. Nothing can stop the function once it runs; a cancel takes effect after
 * it.
 *
 * Children of a nursery with terms (a pool, a capability and so on) share helper threads with
 * others. Such a nursery begins a call only while it runs fewer calls than there are free
 * threads. Its other calls wait behind its own. So calls that never return leave threads to
 * other tasks: one nursery takes at most half of them. A nursery that runs no call can always begin
 * one: if no thread is free, the scheduler starts another, up to options.max_blocking_extra.
 * Nurseries inside such a nursery get extra threads while the outer one runs fewer than 8 calls.
 *
 * After the call errno is what the function left. If the function ends its thread (pthread_exit),
 * the task panics.
 *
 * Context: inside a task; on a plain thread it just calls the function.
 * Yields:  always.
 * Owns:    `argument` stays the caller's. *out_result (NULL: not wanted) is what it returned.
 * Cost:    two thread switches, some 10 us; one op and one system call of the task's budget.
 * Errors:  CANCELLED  cancelled before it was queued: it does not run
 *          FULL       options.max_blocking_queue calls wait, of the outermost nursery with terms,
 *                     or of all tasks outside; janus_explain says which
 *          NO_MEMORY  no helper thread could be started
 */
JANUS_NODISCARD JANUS_API janus_status janus_blocking(janus_entry *function, void *argument,
                                                      int64_t *out_result);

/*
 * Registers `function(argument)` to run when the current task ends, however it ends. The last
 * registered function runs first. Defers run shielded. If the scheduler has options.grace_ns, that
 * shield ends grace_ns after the task's function. A defer that goes on and uses up the operations
 * for cleaning up is broken off; the next defer runs.
 *
 * Context: inside a task.
 * Yields:  only if the turn is over.
 * Owns:    `argument` stays the caller's. It must not lie in a frame of the task's functions, which
 *          have returned by then.
 * Cost:    a small allocation.
 * Errors:  NO_MEMORY  not registered
 *          FULL       the task has 4,096 defers
 *          STATE      not inside a task
 */
JANUS_NODISCARD JANUS_API janus_status janus_defer(void (*function)(void *), void *argument);

/*
 * Takes back a defer of the current task: the last one with this function and argument. It does not
 * run when the task ends. So a call can clean up for a task that ends inside of it.
 *
 * Context: inside a task.
 * Yields:  only if the turn is over; before the defer is taken back.
 * Owns:    nothing.
 * Cost:    a step for each defer that was registered later.
 * Errors:  NOT_FOUND  the task has no such defer, or it has run
 *          INVALID    `function` is NULL
 *          STATE      not inside a task
 */
JANUS_NODISCARD JANUS_API janus_status janus_undefer(void (*function)(void *), void *argument);

/*
 * Holds off a cancel of the current task until janus_shield_end: waits work as if it was not
 * cancelled. A nursery opened inside is shielded with all its children until it ends.
 *
 * Shields nest, up to 65535, and only the innermost counts: a plain shield inside a shield with a
 * deadline has no deadline. If the scheduler has options.grace_ns, a plain shield holds that long
 * after the task could first have learned of the cancel.
 *
 * Context: inside a task; elsewhere it does nothing.
 * Yields:  only if the turn is over.
 * Owns:    nothing. The task's end ends its shields.
 * Cost:    a counter.
 * Errors:  none.
 */
JANUS_API void janus_shield_begin(void);

/*
 * Begins a shield that ends when the clock (janus_now_ns) reaches `deadline_ns`. Then the calls of
 * a cancelled task that wait return CANCELLED, or unwind it, and a wait that is going on ends. The
 * deadline also ends the shield of nurseries opened inside. It does nothing to a task that is not
 * cancelled.
 *
 * Context: inside a task; elsewhere it does nothing.
 * Yields:  only if the turn is over.
 * Owns:    *shield stays the caller's memory and must live until janus_shield_end.
 * Cost:    a counter. Each wait and each nursery inside needs a timer and may return NO_MEMORY.
 * Errors:  none. If `shield` is NULL, the task panics.
 */
JANUS_API void janus_shield_begin_until(janus_shield *shield, uint64_t deadline_ns);

/*
 * Ends the innermost shield, of either kind. If the task has none, it panics.
 *
 * Context: inside a task; elsewhere it does nothing.
 * Yields:  never.
 * Owns:    gives the memory of janus_shield_begin_until back.
 * Cost:    a counter.
 * Errors:  none.
 */
JANUS_API void janus_shield_end(void);

/*
 * Whether the current task was cancelled, for loops that do not wait. Now and then it also runs due
 * timers. Otherwise loops on all workers would keep deadlines from passing. Callbacks of tokens may
 * run inside it.
 *
 * Context: anyone; false outside a task.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    three loads. After a cancel anywhere, once, some for each nursery around the task.
 * Errors:  none.
 */
JANUS_API bool janus_cancelled(void);

/*
 * Why the calls of the current task return CANCELLED; NONE while they do not. The innermost
 * cancelled nursery decides, of those that the task has open and those around it. PARENT means that
 * a nursery further out was cancelled first.
 *
 * Context: anyone; NONE outside a task.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    as janus_cancelled, without the timers.
 * Errors:  none.
 */
JANUS_API janus_cancel_reason janus_cancelled_reason(void);

/*
 * A reason in words: "its deadline passed". JANUS_CANCEL_REASON_NONE is "not cancelled".
 *
 * Context: anyone, any thread.
 * Yields:  never.
 * Owns:    the text is constant.
 * Cost:    a load.
 * Errors:  "?" for a number that is no reason.
 */
JANUS_API const char *janus_cancel_reason_text(janus_cancel_reason reason);

/*
 * The current task's id, 0 outside a task.
 *
 * Context: anyone, any thread.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a thread-local load.
 * Errors:  none.
 */
JANUS_API janus_task_id janus_task_current_id(void);

/*
 * The task-local pointer, which moves with the task from thread to thread. Each task has one; let
 * it point to a struct.
 *
 * Thread-locals and the signal mask stay with the thread. A task may continue on another thread
 * after every call that may wait or yield. Do not keep the address of a thread-local across such a
 * call. A compiler may do that by itself inside one function.
 *
 * errno moves with the task. A call that waits or yields leaves it as it was, and so do children
 * and callbacks that run meanwhile. After janus_blocking it is what the function left. A compiler
 * may keep the address of errno within one function. So a function that waits reads errno through a
 * function that is not inlined. In a new task errno has any value.
 *
 * The signal mask belongs to the worker. The threads of a scheduler block every signal but SIGPROF
 * and faults (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS). So a signal to the process reaches
 * a thread of the program. A task that changes the mask changes it for the worker's next task:
 * restore it before the next call that may wait. No wait and no switch of the library changes a
 * mask. A deterministic scheduler runs its tasks with the mask of the thread that opened it.
 *
 * Context: inside a task; NULL elsewhere.
 * Yields:  never.
 * Owns:    the address is valid until the task ends; what it points to is the caller's.
 * Cost:    a thread-local load.
 * Errors:  NULL outside a task.
 */
JANUS_API void **janus_task_local(void);

JANUS_END_DECLS
#endif
