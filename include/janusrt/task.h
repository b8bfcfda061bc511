/* SPDX-License-Identifier: MIT */
/*
 * Tasks: what a running task can do and ask. Tasks are started by nurseries (nursery.h) and run by
 * a scheduler (scheduler.h).
 *
 * Every call that waits returns JANUS_CANCELLED in a task that was cancelled, at once and each time
 * it is called: cancellation is sticky. A shield holds it off for a while.
 *
 * A task that breaks a contract panics with a sentence, and the process lives. So does a task that
 * returns with a nursery open: its children are cancelled and awaited first. A panic ends the task
 * like a failure. The scheduler reports it in one line on stderr (on_panic in scheduler.h).
 *
 * A cancelled task has JANUS_SLICE operations to clean up with, once in its life. With an explicit
 * budget it has as many as it was granted before, at least 32 and at most JANUS_SLICE. Each
 * CANCELLED that a call returns costs one of them. A task that goes on until it has used them up
 * ends in the call: it is unwound, whatever its mode, and its defers run.
 */
#ifndef JANUSRT_TASK_H
#define JANUSRT_TASK_H

#include <janusrt/export.h>
#include <janusrt/fiber.h>
#include <janusrt/status.h>
#include <stdbool.h>
#include <stdint.h>

/* Names a task for ever: a slot and its generation. 0 names none. A stale one is refused. Texts of
 * the library show it in hexadecimal: 0x200000001. */
typedef uint64_t janus_task_id;

/* The six states. */
typedef enum janus_task_state {
    JANUS_TASK_READY = 0,
    JANUS_TASK_RUNNING,
    JANUS_TASK_BLOCKED,
    JANUS_TASK_BUDGET_EXHAUSTED,
    JANUS_TASK_COMPLETED,
    JANUS_TASK_CANCELLED,
} janus_task_state;

typedef enum janus_priority {
    JANUS_PRIORITY_DEFAULT = 0, /* NORMAL */
    JANUS_PRIORITY_HIGH,
    JANUS_PRIORITY_NORMAL,
    JANUS_PRIORITY_LOW, /* waits longer, but is never starved */
} janus_priority;

/* A shield with a deadline; lives in the frame that begins and ends it. Nothing is for users. */
typedef struct janus_shield {
    uint64_t opaque[3];
} janus_shield;

/* Durations in nanoseconds, as all calls take them: janus_sleep(5 * JANUS_MS). */
#define JANUS_US UINT64_C(1000)
#define JANUS_MS UINT64_C(1000000)
#define JANUS_SECONDS UINT64_C(1000000000)

/* Why a task was cancelled. */
typedef enum janus_cancel_reason {
    JANUS_CANCEL_NONE = 0,
    JANUS_CANCEL_EXPLICIT,      /* somebody called cancel */
    JANUS_CANCEL_PARENT,        /* the task that owns the nursery was cancelled */
    JANUS_CANCEL_SIBLING_ERROR, /* another child of the nursery failed */
    JANUS_CANCEL_DEADLINE,      /* the nursery's deadline passed */
    JANUS_CANCEL_SHUTDOWN,      /* the scheduler is being stopped */
} janus_cancel_reason;

JANUS_BEGIN_DECLS

/*
 * Lets other tasks run; this one goes to the back of the queue.
 *
 * Context: inside a task.
 * Yields:  always, if anything else is ready; may come back on another thread.
 * Owns:    nothing.
 * Cost:    one switch, about 15 ns; no budget.
 * Errors:  CANCELLED  the task was cancelled; it did not yield
 *          STATE      not inside a task
 */
JANUS_API janus_status janus_yield(void);

/*
 * Waits until the clock (janus_now_ns) reaches `deadline_ns`.
 *
 * Context: inside a task; on a plain thread it blocks the thread.
 * Yields:  always, unless the deadline has passed.
 * Owns:    nothing.
 * Cost:    a timer, O(log of the timers).
 * Errors:  CANCELLED  cancelled before or while waiting
 *          DEADLOCK   never: a timer will end it
 *          NO_MEMORY  no memory for the timer
 */
JANUS_API janus_status janus_sleep_until(uint64_t deadline_ns);

/* janus_sleep_until `duration_ns` from now.
 *
 * Context: inside a task; on a plain thread it blocks the thread.
 * Yields:  always.
 * Owns:    nothing.
 * Cost:    as janus_sleep_until, and reading the clock.
 * Errors:  as janus_sleep_until
 */
JANUS_API janus_status janus_sleep(uint64_t duration_ns);

/*
 * Nanoseconds on the clock that deadlines are measured by; it never goes back.
 *
 * Context: anyone, any thread.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    reading the clock, about 20 ns.
 * Errors:  none.
 */
JANUS_API uint64_t janus_now_ns(void);

/*
 * Runs `function(argument)` on a helper thread and waits for it, so that a call that blocks the
 * thread blocks only this task. Once it runs it cannot be stopped: cancellation is seen after it.
 *
 * Children of a nursery with terms (a pool, a capability and so on) share helper threads with
 * others. Such a nursery begins a call only while it runs fewer calls than there are free
 * threads. Its other calls wait behind its own. So calls that never return leave threads to
 * other tasks: one nursery takes at most half of them. A nursery that runs no call can always begin
 * one: if no thread is free, the scheduler starts another, up to options.blocking_extra_max.
 * Nurseries inside such a nursery get extra threads while the outer one runs fewer than 8 calls.
 *
 * Context: inside a task; on a plain thread it just calls the function.
 * Yields:  always.
 * Owns:    `argument` stays the caller's. *out_result (NULL: not wanted) is what it returned.
 * Cost:    two thread switches, some 10 us; one op and one system call of the task's budget.
 * Errors:  CANCELLED  cancelled before it was queued: it does not run
 *          FULL       the outermost nursery with terms has options.blocking_queue_max calls that
 *                     wait, or all tasks outside have; janus_explain names whose limit was met
 *          NO_MEMORY  no helper thread could be started
 *          A function that ends its thread (pthread_exit) is a panic of the task.
 *          errno is what the function left there.
 */
JANUS_API janus_status janus_blocking(janus_entry *function, void *argument, int64_t *out_result);

/*
 * Has `function(argument)` called when the current task ends, however it ends: returned,
 * cancelled or panicked. The last one registered runs first. They run shielded; where the scheduler
 * has options.grace_ns, in a shield that ends so long after the task's call did. A defer that goes
 * on after that, and uses up what there is to clean up with, is broken off; the next one runs.
 *
 * Context: inside a task.
 * Yields:  only if the turn is over.
 * Owns:    `argument` stays the caller's; it must not lie in the frame of the task's functions,
 *          which are gone by then.
 * Cost:    a small allocation.
 * Errors:  NO_MEMORY  not registered
 *          FULL       the task has asked for 4097
 *          STATE      not inside a task
 */
JANUS_NODISCARD JANUS_API janus_status janus_defer(void (*function)(void *), void *argument);

/*
 * Until janus_shield_end, cancellation is held off for the current task: waits work as if it was
 * not cancelled. A nursery opened inside is shielded with all its children until it ends.
 *
 * Shields nest, up to 65535, and the innermost alone decides: a plain one inside one with a
 * deadline holds for as long as it lasts. Where the scheduler has options.grace_ns, a plain shield
 * holds for so long after the task could first have learned that it is cancelled.
 *
 * Context: inside a task; elsewhere it does nothing.
 * Yields:  only if the turn is over.
 * Owns:    nothing. The task's end ends its shields.
 * Cost:    a counter.
 * Errors:  none.
 */
JANUS_API void janus_shield_begin(void);

/*
 * The same until the clock (janus_now_ns) reaches `deadline_ns`: time to clean up, not for ever.
 * From then on a cancelled task is told as outside of a shield: its calls that wait return
 * CANCELLED, or unwind it, and a wait that is going on ends at that moment. A nursery opened inside
 * is shielded until then too, and cancelled then if its owner is. To a task that is not cancelled
 * the deadline does nothing.
 *
 * Context: inside a task; elsewhere it does nothing.
 * Yields:  only if the turn is over.
 * Owns:    *shield stays the caller's memory and must be there until janus_shield_end.
 * Cost:    a counter; then a timer for each wait and each nursery inside, for which NO_MEMORY is
 *          possible there.
 * Errors:  none.
 */
JANUS_API void janus_shield_begin_until(janus_shield *shield, uint64_t deadline_ns);

/* Ends the innermost shield, of either kind. To end one that was not begun breaks the contract: the
 * task panics.
 *
 * Context: inside a task; elsewhere it does nothing.
 * Yields:  never.
 * Owns:    gives the memory of janus_shield_begin_until back.
 * Cost:    a counter.
 * Errors:  none.
 */
JANUS_API void janus_shield_end(void);

/*
 * Whether the current task was cancelled, for loops that do not wait. It does not end anything.
 * Every so often it also lets due timers ring, lest a loop on every worker keeps a deadline from
 * passing; callbacks of tokens may then run inside of it.
 *
 * Context: anyone; false outside a task.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    three loads; more after somebody, anywhere, was cancelled, once for each nursery around.
 * Errors:  none.
 */
JANUS_API bool janus_cancelled(void);

/*
 * Why the calls of the current task return CANCELLED; NONE while they do not. Of the nurseries that
 * it has open and those around it, the innermost that is cancelled decides: PARENT means that one
 * further out was the first.
 *
 * Context: anyone; NONE outside a task.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    as janus_cancelled, without the timers.
 * Errors:  none.
 */
JANUS_API janus_cancel_reason janus_cancelled_reason(void);

/*
 * A reason in words: "its deadline passed". Of JANUS_CANCEL_NONE: "not cancelled".
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
 * A pointer of the task's own that goes with it from thread to thread; what thread-locals are for
 * threads. One per task; put a struct behind it.
 *
 * What belongs to the thread does not go with the task: thread-locals and the signal mask. A task
 * may go on on another thread after every call that may wait or yield. Do not keep the address of a
 * thread-local across such a call: a compiler may do that by itself inside one function.
 *
 * errno goes with the task. A call that waits or yields leaves it as it was, children and callbacks
 * that run meanwhile do not touch it, and after janus_blocking it is what the function left. A
 * compiler may keep the address of errno within one function: in a function that waits, read errno
 * through a function that is not inlined. A new task begins with any errno.
 *
 * The signal mask is the worker's. The threads of a scheduler block every signal but SIGPROF and
 * the faults of an instruction (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS), so a signal sent
 * to the process reaches a thread that the program made. A task that changes the mask changes it
 * for whatever that worker runs next: restore it before the next call that may wait. No wait and
 * no switch of the library changes a mask. A deterministic scheduler runs its tasks with the mask
 * of the thread that opened it.
 *
 * Context: inside a task; NULL elsewhere.
 * Yields:  never.
 * Owns:    the address is good until the task ends; what it points to is the caller's.
 * Cost:    a thread-local load.
 * Errors:  NULL outside a task.
 */
JANUS_API void **janus_task_local(void);

JANUS_END_DECLS
#endif
