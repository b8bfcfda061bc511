/* SPDX-License-Identifier: MIT */
/*
 * Yield checks: calls in a loop, by hand or by a compiler, so that no task keeps its worker.
 *
 *     for (size_t i = 0; i < n; i++) {
 *         if (janus_check() != JANUS_OK) return JANUS_CANCELLED;
 *         sum += work(i);
 *     }
 *
 * The ABI, for generated code. Each thread has a word, janus_fuel: how many operations its task may
 * do before it must enter the library. A check subtracts its cost from the word:
 *
 *     @janus_fuel = external thread_local(initialexec) global i64
 *
 *     sub  $1, %fs:(janus_fuel)     ; one iteration, or one call
 *     jb   slow                     ; slow: janus_check_or_end_slow(1)
 *
 *   - The word belongs to the running task: the scheduler saves and sets it at every switch.
 *   - Every call into the library may switch, and the task may continue on another thread. So code
 *     must not keep the address of the word across a call. It may keep the offset from the thread
 *     pointer, which is the same for all threads.
 *   - The word is never negative while a task runs. If the subtraction borrows, the code calls
 *     janus_check_or_end_slow with the cost. That call gives the cost back, refills the word, lets
 *     others run, and takes the cost again. A task that was cancelled, or that nobody recharges,
 *     ends inside, because generated code cannot return early. Its defers run.
 *   - A loop can pay in batches: count iterations, pay every janus_yield_interval() iterations, and
 *     pay the rest after the loop.
 *   - Outside of tasks the word has any value; the slow path makes it large.
 *
 * The word holds a part of the task's ops, at most JANUS_SLICE_MAX. The task's record has the rest.
 * janus_budget_get_current adds both. counted.h has slow paths that keep registers, and that pay
 * for a part of a loop.
 */
#ifndef JANUSRT_YIELD_H
#define JANUSRT_YIELD_H

#include <janusrt/export.h>
#include <janusrt/status.h>
#include <stdint.h>

/*
 * A slice: the operations that a task gets at once. The first has 32. Slices grow while they are
 * short, to JANUS_SLICE. The rounds of a vector loop take much less time than others. While a slice
 * lasts for less than half of a turn, the next one is longer, up to
 * janus_scheduler_options.max_slice. After that many operations in a turn, others that are ready
 * run.
 */
#define JANUS_SLICE 10000
#define JANUS_SLICE_MAX (1 << 17)

/* The default length of a turn, in nanoseconds; see janus_scheduler_options.turn_ns. */
#define JANUS_TURN_NS UINT64_C(20000)

JANUS_BEGIN_DECLS

/* * The fuel word.
 *
 * Context: generated code. C code uses the functions below, because C compilers keep addresses.
 * Yields:  never.
 * Owns:    the running task.
 * Cost:    none.
 * Errors:  none.
 */
JANUS_API extern __thread int64_t janus_fuel __attribute__((tls_model("initial-exec")));

/*
 * janus_check calls it when the word has run out. It gives `cost` back, lets others run, refills
 * the word and takes `cost`.
 *
 * Context: anyone, any thread; outside of tasks it does nothing.
 * Yields:  if others are ready; may come back on another thread.
 * Owns:    nothing.
 * Cost:    reading the clock, and a switch if others are ready.
 * Errors:  CANCELLED  the task was cancelled; nothing was taken
 *          A task whose budget is used up waits here until it gets more, and ends here when nobody
 *          will give it any: see janus_exhaustion.
 */
JANUS_API janus_status janus_check_slow(uint64_t cost);

/*
 * janus_check_slow for generated code: a cancelled task ends here, whatever its mode.
 *
 * Context: as janus_check_slow.
 * Yields:  as janus_check_slow.
 * Owns:    nothing.
 * Cost:    as janus_check_slow.
 * Errors:  none. It may not return.
 */
JANUS_API void janus_check_or_end_slow(uint64_t cost);

/*
 * How many iterations a loop may run between two checks. It is the scheduler's option; by profile
 * 1024 or 512.
 *
 * Context: anyone, any thread.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    two loads.
 * Errors:  1024 outside of tasks.
 */
JANUS_API uint32_t janus_yield_interval(void);

JANUS_END_DECLS

/*
 * The offset of the word from the thread pointer. It is the same on every thread, so code may keep
 * it.
 */
#if defined(__x86_64__)
#define JANUS_FUEL_OFFSET(at) __asm__("movq janus_fuel@gottpoff(%%rip), %0" : "=r"(at))
#elif defined(__aarch64__)
#define JANUS_FUEL_OFFSET(at)                                                                      \
    __asm__("adrp %0, :gottprel:janus_fuel\n\tldr %0, [%0, #:gottprel_lo12:janus_fuel]" : "=r"(at))
#endif

/*
 * Takes `count` from the word and returns what is left. Nobody can put fuel back: if the word holds
 * more than the library put there, the task panics. It is assembly, so that no compiler keeps the
 * word's address across a switch.
 */
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
 * Pays for `count` operations, as iterations of a loop or calls. A cancelled task learns of it at
 * the end of its slice: within JANUS_SLICE operations, or half of a turn if these are more.
 *
 * Context: anyone, any thread; outside of tasks it does nothing.
 * Yields:  at the end of a slice, after `max_slice` operations or when the turn has lasted
 *          `turn_ns`, if others are ready; may come back on another thread.
 * Owns:    nothing.
 * Cost:    a subtraction and a branch, some 0.3 ns; one op of the task's budget.
 * Errors:  CANCELLED  the task was cancelled
 *          A task whose budget is used up waits here, and may end here: see janus_check_slow.
 */
JANUS_NODISCARD static inline __attribute__((always_inline)) janus_status
janus_check_n(uint32_t count)
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

JANUS_NODISCARD static inline __attribute__((always_inline)) janus_status janus_check(void)
{
    return janus_check_n(1);
}

/* Pays as generated code does. It has no result, and it may not return. */
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
 * A loop that pays in batches:
 *
 *     janus_batch batch = janus_batch_begin();
 *     for (...) {
 *         if (janus_batch_next(&batch) != JANUS_OK) break;
 *         ...
 *     }
 *     status = janus_batch_end(&batch);
 *
 * The loop pays for exactly the iterations that it began, in portions of janus_yield_interval(). If
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

JANUS_NODISCARD static inline janus_status janus_batch_end(janus_batch *batch)
{
    uint32_t due = batch->due;
    batch->due = 0;
    return due > 0 ? janus_check_n(due) : JANUS_OK;
}

JANUS_NODISCARD static inline janus_status janus_batch_next(janus_batch *batch)
{
    if (__builtin_expect(++batch->due < batch->interval, 1)) return JANUS_OK;
    return janus_batch_end(batch);
}

#endif
