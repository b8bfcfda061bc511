/* SPDX-License-Identifier: MIT */
/*
 * What counted code calls: the ABI between the runtime and code that a compiler filled with checks.
 * yield.h describes the word that all checks count down, janus_fuel.
 *
 *     sub  $cost, %fs:(janus_fuel)
 *     jb   cold                     ; the word does not hold the cost
 *     ...
 *     cold: mov $cost, %edi
 *           call janus_check_stub   ; keeps every general register but r11
 *
 *   - The word is never negative while a task runs, and at most JANUS_SLICE_MAX. So the borrow of
 *     the subtraction decides (jb, b.lo), for costs up to 2^64 - 1.
 *   - On AArch64, code must read the thread pointer again for each access to the word. Compilers
 *     keep it, and after a slow path the task may be on another thread.
 *   - A loop whose rounds are known pays ahead, in strips. A strip that the word does not hold is
 *     paid in part by janus_strip_slow. So a task ends after exactly the rounds that it could pay.
 *   - Outside of tasks the slow paths do not block and do not switch: on plain threads, in
 *     constructors, and in a signal handler on an alternate stack, even if it interrupts a task.
 *     A handler that runs on the stack of a task must not be counted: mark it JANUS_NO_OPS.
 *
 * Holds. A check may let other tasks run on this thread. Ordinary C must not be stopped while it
 * holds a lock of the thread, as a pthread mutex or that of a stream. The next task that wants the
 * lock would block the thread for ever. Between janus_hold_begin and janus_hold_end checks pay as
 * always, but no other task gets the thread. A task cannot keep its worker by a hold, and cannot
 * escape its budget:
 *
 *   - A task whose budget is used up in a hold goes on with ops that it owes: at most JANUS_SLICE,
 *     and at most as many as it ever got. It pays them at the outermost end, and ends there if
 *     nobody recharges it. A task that would owe more is exhausted in the middle of the hold.
 *   - A hold that has lasted for JANUS_HOLD_TURNS turns, 10 ms by default, is over: others run at
 *     its next check, and the library reports it once, by the task's name. The task owes them the
 *     time, as after any long turn.
 *   - A task that is cancelled in a hold ends at the outermost end.
 *   - A hold concerns checks only. A call that waits, or janus_yield, gives the thread away.
 *   - A task that returns with a hold open panics.
 */
#ifndef JANUSRT_COUNTED_H
#define JANUSRT_COUNTED_H

#include <janusrt/export.h>
#include <janusrt/yield.h>
#include <stdbool.h>
#include <stdint.h>

/* Marks a function whose loops and calls `janusrt cc` does not count, as a signal handler. */
#if defined(__clang__)
#define JANUS_NO_OPS __attribute__((annotate("janus.no_ops")))
#else
#define JANUS_NO_OPS
#endif

/*
 * Marks a function that says itself what it costs, by janus_op. `janusrt cc` counts neither its
 * loops nor its calls. Each payment stays between the same two calls. Emitters of C use it, so that
 * a program costs the same ops with every compiler.
 */
#if defined(__clang__)
#define JANUS_OWN_OPS __attribute__((annotate("janus.own_ops")))
#else
#define JANUS_OWN_OPS
#endif

/* How deep holds may be nested. One more panics. */
#define JANUS_HOLDS_MAX 1000

/* How many turns a hold may last; see above. */
#define JANUS_HOLD_TURNS 500

JANUS_BEGIN_DECLS

/*
 * The slow path of one check. The caller has taken `cost` from the word, and the subtraction
 * borrowed. It keeps all general registers but r11 (x86-64) or x16 and x17 (AArch64), and no vector
 * registers and flags: on x86-64 that is LLVM's preserve_most. C code calls janus_check_or_end.
 *
 * Context: generated code, anywhere.
 * Yields:  as janus_check_slow.
 * Owns:    nothing.
 * Cost:    as janus_check_slow, and some stores.
 * Errors:  none. A task that was cancelled, or cannot pay, ends inside.
 */
JANUS_API void janus_check_stub(uint64_t cost);

/*
 * Pays for as many of `rounds` rounds as the task can, at `cost` ops each. The caller found that
 * the word does not hold rounds * cost, and has taken them or not. Returns how many rounds are
 * paid, at least 1.
 *
 * Context: generated code, anywhere. rounds * cost does not overflow.
 * Yields:  as janus_check_slow.
 * Owns:    nothing.
 * Cost:    as janus_check_slow.
 * Errors:  none. A task that was cancelled, or cannot pay for one round, ends inside.
 */
JANUS_API uint64_t janus_strip_slow(uint64_t rounds, uint64_t cost);

/*
 * Pays for `cost` operations, as janus_check_or_end does. In code that `janusrt cc` compiles it is
 * a mark with that cost, which is paid together with others.
 *
 * Context: anyone, any thread; outside of tasks it does nothing.
 * Yields:  as janus_check_n.
 * Owns:    nothing.
 * Cost:    `cost` ops of the task's budget; some ns.
 * Errors:  none. A task that was cancelled, or cannot pay, ends inside.
 */
JANUS_API void janus_op(uint64_t cost);

/*
 * Begins a hold, see above. Each begin needs its end, in the same task. Holds nest.
 *
 * Context: anyone; outside of tasks it does nothing.
 * Yields:  only if the turn is over, before the hold begins.
 * Owns:    nothing.
 * Cost:    some loads and a store. The first allocates the task's books.
 * Errors:  none. The task panics at more than JANUS_HOLDS_MAX. If the system refuses memory for the
 *          books, the task ends as if it had returned JANUS_NO_MEMORY.
 */
JANUS_API void janus_hold_begin(void);

/*
 * Ends the innermost hold. The end of the outermost hold settles: it pays what the task owes, and
 * lets others run if a turn was over meanwhile.
 *
 * Context: as janus_hold_begin.
 * Yields:  the outermost end, as janus_check_slow.
 * Owns:    nothing.
 * Cost:    some loads and a store; if a slice ended in the hold, as janus_check_slow.
 * Errors:  none. A task that was cancelled, or cannot pay, ends inside. An end without a begin does
 *          nothing: counted code may release a lock that other code took.
 */
JANUS_API void janus_hold_end(void);

/*
 * Says that a lock of threads is taken. In a deterministic run all workers share one thread, and a
 * call that blocks it would block the lock's holder, too. There this lets another worker go on and
 * returns true: try again. Elsewhere it returns false: call what blocks.
 *
 *     while ((error = pthread_mutex_trylock(lock)) == EBUSY && janus_hold_pass()) {
 *     }
 *     if (error == EBUSY) error = pthread_mutex_lock(lock);
 *
 * Context: anyone, any thread.
 * Yields:  never to tasks of the same worker.
 * Owns:    nothing.
 * Cost:    a load, outside of deterministic runs.
 * Errors:  none.
 */
JANUS_API bool janus_hold_pass(void);

/*
 * Says that the program has counted code. In deterministic runs of schedulers that are created
 * later, a slice may then end at any check: the schedule decides (`preempt_checks` in scheduler.h).
 * `janusrt cc` links a constructor that calls it.
 *
 * Context: anyone, any thread.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a store.
 * Errors:  none.
 */
JANUS_API void janus_counted_code(void);

JANUS_END_DECLS
#endif
