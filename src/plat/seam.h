/* SPDX-License-Identifier: MIT */
/*
 * What the outside world offers to the scheduler, besides memory (plat/memory.h): a clock, random
 * numbers, a word to sleep on, threads, and fences. Nothing above this room asks the system itself,
 * so that a simulated world can stand here instead. linux.c is the real one and holds the essay.
 */
#ifndef JRT_PLAT_SEAM_H
#define JRT_PLAT_SEAM_H

#include "base/assert.h"
#include "base/atomic.h"
#include "plat/world.h"

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Nanoseconds since some moment in the past; never goes back. Every deadline is on this clock. */
uint64_t jrt_clock_now_ns(void);

/* The same clock as it stood at the kernel's last tick, up to 10 ms ago: a quarter of the price. */
uint64_t jrt_clock_coarse_ns(void);

/* Fills `bytes`, at most 256, with numbers nobody can guess. False when the system has none. */
bool jrt_random_fill(void *out, size_t bytes);

/* Writes to a descriptor: how many bytes it took, or -1. Retries when a signal came first. */
ptrdiff_t jrt_fd_write(int fd, const void *bytes, size_t count);

/* No deadline: later than any. */
#define JRT_NEVER UINT64_MAX

/*
 * Sleeps while *word is `expected`, until somebody wakes the word. May also return for no reason
 * (a signal, a late wake-up meant for an earlier sleeper): callers look at the word again, in a
 * loop. A change of the word that comes before the matching wake is never slept through.
 */
void jrt_futex_wait(_Atomic(uint32_t) *word, uint32_t expected);

/* The same, at the latest until `deadline_ns`, an absolute time; JRT_NEVER: no limit. False when
 * the deadline passed; true otherwise, which, as above, promises nothing about the word. */
bool jrt_futex_wait_until(_Atomic(uint32_t) *word, uint32_t expected, uint64_t deadline_ns);

/* Wakes up to `count` sleepers of the word; JRT_WAKE_ALL: all. It only looks at the address, so
 * the word may be gone already; the thread that then sleeps at that address wakes for no reason. */
void jrt_futex_wake(_Atomic(uint32_t) *word, int count);

#define JRT_WAKE_ALL INT_MAX

/* The same two without asking the world, for the world; and its bell, on which it waits for those
 * outside: see [bell]. */
bool jrt_real_wait_until(_Atomic(uint32_t) *word, uint32_t expected, uint64_t deadline_ns);
void jrt_real_wake(_Atomic(uint32_t) *word, int count);
void jrt_bell_ring(void);
extern _Atomic(uint32_t) jrt_bells, jrt_bell;

/* In a loop that waits for another core: a few dozen cycles in which this one leaves the memory
 * and its sibling alone. In cpu_<cpu>.c. Other threads of a world go on meanwhile. */
void jrt_cpu_relax(void);

/* Lets another thread have this core, if one wants it. */
void jrt_thread_yield(void);

/* How long this thread ran. A system call. 0 where the system does not say, and in a world. */
uint64_t jrt_thread_cpu_ns(void);

/* A thread of the system. The record is the caller's and stays put until joined. */
struct jrt_os_thread {
    pthread_t id;
    void      (*main)(void *argument);
    void     *argument;
    char      name[16]; /* as debuggers and top show it; longer ones are cut */
    void     *part;     /* of a world, which it was started in; NULL: a real one */
};

/*
 * Starts a thread that runs main(argument). False when the system refuses; then nothing happened.
 * The thread takes no signals but faults and SIGPROF ([thread-mask] says why).
 */
bool jrt_os_thread_start(struct jrt_os_thread *thread, void (*main)(void *argument), void *argument,
                         const char *name);

/* Waits until its main has returned. No cancellation point: callers hold locks. */
void jrt_os_thread_join(struct jrt_os_thread *thread);

/* Joins it if it has ended; false: it has not. */
bool jrt_os_thread_try_join(struct jrt_os_thread *thread);

/*
 * Two fences for the pattern "I write mine, then read yours; you write yours, then read mine":
 * between one thread's light fence and another's heavy fence there is an order as between two
 * seq_cst fences, so at least one of the two sees the other's write. Two light fences give
 * nothing. Where the system has membarrier, light costs nothing and heavy is a system call;
 * elsewhere both are full fences. See [fence-mode].
 */
static inline void jrt_fence_light_seq_cst(void);
void               jrt_fence_heavy_seq_cst(void);

/* Whether light is cheaper than heavy. The first call here, or of the heavy fence, decides it
 * for the process; until then light is a full fence. A scheduler asks once when it starts. */
bool jrt_fences_asymmetric(void);

/* Behind the light fence. */
extern _Atomic(bool)     jrt_fences_membarrier;
extern _Atomic(uint32_t) jrt_fences_meeting;

/* [fence-meeting] TSan does not model fences. There both sides add nothing to one shared word
 * instead: of any two, the later sees all that came before the earlier. */
static inline void jrt_fences_full(void)
{
    if (JRT_TSAN) {
        (void)jrt_fetch_add_seq_cst(&jrt_fences_meeting, 0); /* seq_cst: [fence-meeting]. */
    } else {
        jrt_fence_seq_cst(); /* seq_cst: what light and heavy promise. */
    }
}

/* Whether a light one is nothing; once true it stays so. */
static inline bool jrt_fences_are_light(void)
{
    /* relaxed: both answers are right, see [fence-mode]. */
    return jrt_likely(jrt_load_relaxed(&jrt_fences_membarrier));
}

/* seq_cst: the light one, for who has asked that; `full` is a constant. */
static inline __attribute__((always_inline)) void jrt_fence_light_as_seq_cst(bool full)
{
    if (full) {
        jrt_fences_full();
    } else {
        jrt_fence_compiler_seq_cst(); /* seq_cst: membarrier makes it one, [fence-mode]. */
    }
}

static inline void jrt_fence_light_seq_cst(void)
{
    if (jrt_fences_are_light()) {
        jrt_fence_light_as_seq_cst(false); /* seq_cst: what it promises. */
    } else {
        jrt_fence_light_as_seq_cst(true); /* seq_cst: as above. */
    }
}

#endif
