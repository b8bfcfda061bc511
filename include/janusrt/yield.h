/* SPDX-License-Identifier: MIT */
/*
 * Yield checks: what a loop calls, or a compiler inserts, so that no task keeps its worker.
 *
 *     for (size_t i = 0; i < n; i++) {
 *         if (janus_check() != JANUS_OK) return JANUS_CANCELLED;
 *         sum += work(i);
 *     }
 *
 * The ABI, for those who generate code. Each thread has a word, janus_fuel: how many operations the
 * task that runs there may do before somebody looks. A check takes what it costs from the word and
 * looks at the sign, nothing else:
 *
 *     @janus_fuel = external thread_local(initialexec) global i64
 *
 *     sub  $1, %fs:(janus_fuel)     ; one iteration, or one call
 *     js   slow                     ; slow: janus_check_or_end_slow(1)
 *
 *   - The word belongs to the task that runs: the scheduler saves and sets it at every switch.
 *   - Every call into the library may be such a switch, and the task may go on on another thread.
 *     The address of the word must not be kept across a call. (Its offset from the thread pointer
 *     may: it is the same for all threads.)
 *   - When the result is negative, janus_check_or_end_slow is called with what was taken. It gives
 *     that back, sees to it that it can be paid, lets others run, and takes it again. A task that
 *     was cancelled, or that nobody will give more to, ends inside: generated code has no way to
 *     return early. Its defers run.
 *   - Iterations can be charged in batches: count them, take all at once every
 *     janus_yield_interval() iterations, and what is left over after the loop.
 *   - Outside of tasks the word is whatever it is; the slow path makes it large.
 *
 * What the word holds is a part of the task's ops: at most JANUS_SLICE. The rest of its budget lies
 * elsewhere, and janus_budget_get_current adds them up.
 */
#ifndef JANUSRT_YIELD_H
#define JANUSRT_YIELD_H

#include <janusrt/export.h>
#include <janusrt/status.h>
#include <stdint.h>

/* Operations between two looks. */
#define JANUS_SLICE 10000

/* How long a turn lasts, in nanoseconds, where the scheduler's options do not say otherwise. */
#define JANUS_TURN_NS UINT64_C(20000)

JANUS_BEGIN_DECLS

/*
 * The word.
 *
 * Context: generated code; C uses what is below, because its compilers keep addresses.
 * Yields:  never.
 * Owns:    the task that runs.
 * Cost:    none.
 * Errors:  none.
 */
JANUS_API extern __thread int64_t janus_fuel __attribute__((tls_model("initial-exec")));

/*
 * What janus_check calls when the word has run out: gives `cost` back, lets others run, gets more,
 * and takes it.
 *
 * Context: anyone, any thread; outside of tasks it does nothing.
 * Yields:  if others are ready; may come back on another thread.
 * Owns:    nothing.
 * Cost:    a look at the clock, and a switch if others are ready.
 * Errors:  CANCELLED  the task was cancelled; nothing was taken
 *          A task whose budget is used up waits here until it gets more, and ends here when nobody
 *          will give it any: see janus_exhaustion.
 */
JANUS_API janus_status janus_check_slow(uint64_t cost);

/*
 * The same for generated code: a task that was cancelled ends here, whatever its mode.
 *
 * Context: as janus_check_slow.
 * Yields:  as janus_check_slow.
 * Owns:    nothing.
 * Cost:    as janus_check_slow.
 * Errors:  none; it may not return.
 */
JANUS_API void janus_check_or_end_slow(uint64_t cost);

/*
 * How many iterations a loop may run between two checks: the scheduler's, by profile 1024 or 512.
 *
 * Context: anyone, any thread.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    two loads.
 * Errors:  1024 outside of tasks.
 */
JANUS_API uint32_t janus_yield_interval(void);

JANUS_END_DECLS

/* Where the word lies, from the thread pointer: the same on every thread, so it may be kept. */
#if defined(__x86_64__)
#define JANUS_FUEL_OFFSET(at) __asm__("movq janus_fuel@gottpoff(%%rip), %0" : "=r"(at))
#elif defined(__aarch64__)
#define JANUS_FUEL_OFFSET(at)                                                                      \
    __asm__("adrp %0, :gottprel:janus_fuel\n\tldr %0, [%0, #:gottprel_lo12:janus_fuel]" : "=r"(at))
#endif

/* Takes `count` from the word and returns what is left. Nothing can be put back: a task whose word
 * holds more than the library put there panics. Assembly, so that no compiler keeps the word's
 * address across a switch. */
static inline __attribute__((always_inline)) int64_t janus_fuel_take(uint32_t count)
{
    uint64_t at, cost = count;
    int64_t  left;
    JANUS_FUEL_OFFSET(at);
#if defined(__x86_64__)
    left = -(int64_t)cost;
    __asm__ volatile("xaddq %0, %%fs:(%1)" : "+r"(left) : "r"(at) : "cc");
    return left - (int64_t)cost;
#else
    uint64_t thread;
    __asm__ volatile("mrs %0, tpidr_el0\n\tldr %1, [%0, %2]\n\tsub %1, %1, %3\n\tstr %1, [%0, %2]"
                     : "=&r"(thread), "=&r"(left)
                     : "r"(at), "r"(cost));
    return left;
#endif
}

/*
 * One operation: a loop's iteration, a call. In C code by hand; a task that is cancelled is told
 * within JANUS_SLICE operations.
 *
 * Context: anyone, any thread; outside of tasks it does nothing.
 * Yields:  every JANUS_SLICE operations, or when its turn has lasted `turn_ns`, if others are
 *          ready; may come back on another thread.
 * Owns:    nothing.
 * Cost:    a subtraction and a branch, some 0.3 ns; one op of the task's budget.
 * Errors:  CANCELLED  the task was cancelled
 *          A task whose budget is used up waits here, and may end here: see janus_check_slow.
 */
static inline __attribute__((always_inline)) janus_status janus_check_n(uint32_t count)
{
#if defined(__x86_64__)
    uint64_t at;
    JANUS_FUEL_OFFSET(at);
    __asm__ goto("subq %1, %%fs:(%0)\n\tjs %l[slow]"
                 :
                 : "r"(at), "er"((uint64_t)count)
                 : "cc"
                 : slow);
    return JANUS_OK;
slow:
    return janus_check_slow(count);
#else
    if (__builtin_expect(janus_fuel_take(count) >= 0, 1)) return JANUS_OK;
    return janus_check_slow(count);
#endif
}

static inline __attribute__((always_inline)) janus_status janus_check(void)
{
    return janus_check_n(1);
}

/* The same as generated code does it: it returns nothing, and may not return. */
static inline __attribute__((always_inline)) void janus_check_or_end(uint32_t count)
{
#if defined(__x86_64__)
    uint64_t at;
    JANUS_FUEL_OFFSET(at);
    __asm__ goto("subq %1, %%fs:(%0)\n\tjs %l[slow]"
                 :
                 : "r"(at), "er"((uint64_t)count)
                 : "cc"
                 : slow);
    return;
slow:
    janus_check_or_end_slow(count);
#else
    if (__builtin_expect(janus_fuel_take(count) < 0, 0)) janus_check_or_end_slow(count);
#endif
}

/*
 * A loop that is charged in batches:
 *
 *     janus_batch batch = janus_batch_begin();
 *     for (...) {
 *         if (janus_batch_next(&batch) != JANUS_OK) break;
 *         ...
 *     }
 *     status = janus_batch_end(&batch);
 *
 * Exactly the iterations that were begun are paid for, in portions of janus_yield_interval(). Where
 * their number is known before, strips cost nothing in the inner loop:
 *
 *     for (uint64_t i = 0; i < n;) {
 *         uint64_t end = n - i < interval ? n : i + interval;  // janus_yield_interval()
 *         if (janus_check_n((uint32_t)(end - i)) != JANUS_OK) break;
 *         for (; i < end; i++) ...
 *     }
 */
typedef struct janus_batch {
    uint32_t due, interval;
} janus_batch;

static inline janus_batch janus_batch_begin(void)
{
    janus_batch batch = {0, janus_yield_interval()};
    return batch;
}

static inline janus_status janus_batch_end(janus_batch *batch)
{
    uint32_t due = batch->due;
    batch->due = 0;
    return due > 0 ? janus_check_n(due) : JANUS_OK;
}

static inline janus_status janus_batch_next(janus_batch *batch)
{
    if (__builtin_expect(++batch->due < batch->interval, 1)) return JANUS_OK;
    return janus_batch_end(batch);
}

#endif
