/* SPDX-License-Identifier: MIT */
/*
 * What the scheduler needs from the system besides memory (plat/memory.h): a clock, random numbers,
 * a word to sleep on, threads, and fences. No room above this one asks the system itself, so a
 * simulated world can answer instead. linux.c is the real system and holds the essay.
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

/* Nanoseconds since some moment in the past. The clock never goes back. Every deadline is on this
 * clock. */
uint64_t jrt_clock_now_ns(void);

/* The same clock at the kernel's last tick, up to 10 ms ago. It costs a quarter. */
uint64_t jrt_clock_coarse_ns(void);

/* Fills `bytes`, at most 256, with unpredictable numbers. Returns false if the system has none. */
bool jrt_random_fill(void *out, size_t bytes);

/* Writes to a descriptor and retries after signals. Returns how many bytes it took, or -1. */
ptrdiff_t jrt_fd_write(int fd, const void *bytes, size_t count);

/* No deadline: later than any other. */
#define JRT_NEVER UINT64_MAX

/*
 * Sleeps while *word is `expected`, until another thread wakes the word. It may also return for no
 * reason (a signal, or a late wake-up for an earlier sleeper). So callers read the word again, in a
 * loop. If the word changes before the matching wake, the sleeper does not miss it.
 */
void jrt_futex_wait(_Atomic(uint32_t) *word, uint32_t expected);

/* Sleeps as jrt_futex_wait, at most until `deadline_ns`, an absolute time. JRT_NEVER: no limit.
 * Returns false if the deadline passed. True promises nothing about the word. */
bool jrt_futex_wait_until(_Atomic(uint32_t) *word, uint32_t expected, uint64_t deadline_ns);

/* Wakes up to `count` sleepers of the word; JRT_WAKE_ALL: all. It uses only the address, so the
 * word's memory may be gone. A thread that then sleeps at that address wakes for no reason. */
void jrt_futex_wake(_Atomic(uint32_t) *word, int count);

#define JRT_WAKE_ALL INT_MAX

/* Wait and wake without asking the world, for the world's own use. It waits for outside threads on
 * its bell, [bell]. */
bool jrt_real_wait_until(_Atomic(uint32_t) *word, uint32_t expected, uint64_t deadline_ns);
void jrt_real_wake(_Atomic(uint32_t) *word, int count);
void jrt_bell_ring(void);
extern _Atomic(uint32_t) jrt_bells, jrt_bell;

/* Pauses for a few dozen cycles in a loop that waits for another core. The pause leaves memory and
 * the sibling core alone. In a world, other parts run meanwhile. In cpu_<cpu>.c. */
void jrt_cpu_relax(void);

/* Lets another thread use this core, if one is ready. */
void jrt_thread_yield(void);

/* Whether the process has no other thread. False: it may have one. */
bool jrt_thread_is_alone(void);

/* The CPU time of this thread. A system call. 0 in a world, and if the system does not report
 * it. */
uint64_t jrt_thread_cpu_ns(void);

/* A thread of the system. The caller owns the record and keeps it in place until it joins the
 * thread. */
struct jrt_os_thread {
    pthread_t id;
    void      (*main)(void *argument);
    void     *argument;
    char      name[16]; /* as debuggers and top show it; a longer name is cut */
    void     *part;     /* the world's part; NULL: a real thread */
};

/*
 * Starts a thread that runs main(argument). Returns false if the system refuses; then nothing
 * happened. The thread blocks all signals except faults and SIGPROF, [thread-mask].
 */
bool jrt_os_thread_start(struct jrt_os_thread *thread, void (*main)(void *argument), void *argument,
                         const char *name);

/* Waits until the thread's main has returned. Not a cancellation point: callers hold locks. */
void jrt_os_thread_join(struct jrt_os_thread *thread);

/* Joins the thread if it has ended. False: it still runs. */
bool jrt_os_thread_try_join(struct jrt_os_thread *thread);

/*
 * Two fences for the pattern "I write mine, then read yours; you write yours, then read mine". A
 * light fence of one thread and a heavy fence of another order as two seq_cst fences. So at least
 * one of the two threads sees the other's write. Two light fences order nothing. With membarrier
 * the light fence is free and the heavy one is a system call. Without it both are full fences.
 * See [fence-mode].
 */
static inline void jrt_fence_light_seq_cst(void);
void               jrt_fence_heavy_seq_cst(void);

/* Whether light is cheaper than heavy. The first call of this function or of the heavy fence
 * decides it for the process. Until then light is a full fence. A scheduler asks once when it
 * starts. */
bool jrt_fences_asymmetric(void);

/* For the light fence. */
extern _Atomic(bool)     jrt_fences_membarrier;
extern _Atomic(uint32_t) jrt_fences_meeting;

/* [fence-meeting] TSan does not model fences. Under TSan both sides add 0 to one shared word
 * instead. Of any two such additions, the later sees everything before the earlier. */
static inline void jrt_fences_full(void)
{
    if (JRT_TSAN) {
        uint32_t met =
            jrt_fetch_add_seq_cst(&jrt_fences_meeting, 0); /* seq_cst: [fence-meeting]. */
        jrt_debug_invariant("fence-meeting", met == 0);
        (void)met;
    } else {
        jrt_fence_seq_cst(); /* seq_cst: light and heavy promise it. */
    }
}

/* Whether a light fence is free. Once true, it stays true. */
static inline bool jrt_fences_are_light(void)
{
    /* relaxed: both answers are right, see [fence-mode]. */
    return jrt_likely(jrt_load_relaxed(&jrt_fences_membarrier));
}

/* seq_cst: the light fence, for a caller that knows whether it is free. `full` is a constant. */
static inline __attribute__((always_inline)) void jrt_fence_light_as_seq_cst(bool full)
{
    if (full) {
        jrt_fences_full();
    } else {
        jrt_fence_compiler_seq_cst(); /* seq_cst: membarrier makes this a fence, [fence-mode]. */
    }
}

static inline void jrt_fence_light_seq_cst(void)
{
    if (jrt_fences_are_light()) {
        jrt_fence_light_as_seq_cst(false); /* seq_cst: what the light fence promises. */
    } else {
        jrt_fence_light_as_seq_cst(true); /* seq_cst: what the light fence promises. */
    }
}

#endif
