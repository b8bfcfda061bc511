/* SPDX-License-Identifier: MIT */
/*
 * Barriers: a fixed number of parties meet, and go on together.
 *
 *     static janus_barrier step = JANUS_BARRIER_INIT(4, JANUS_WAKER_TASKS, "step");
 *
 *     bool leads;
 *     janus_status status = janus_barrier_wait(&step, &leads);
 *     if (status != JANUS_OK) return status;
 *     if (leads) swap_the_buffers();                     // one of the four, the last that came
 *
 * A barrier is ready for the next meeting at once. If a cancel or a deadline ends a wait, the
 * barrier takes that arrival back, and the others wait for another party. sync.h describes what
 * holds for all such objects: cancelling, plain threads, memory, names, the deadlock check.
 */
#ifndef JANUSRT_BARRIER_H
#define JANUSRT_BARRIER_H

#include <janusrt/export.h>
#include <janusrt/status.h>
#include <janusrt/waitpoint.h>
#include <stdbool.h>
#include <stdint.h>

/* Its fields are private. */
typedef struct janus_barrier {
    const char *name;
    uint64_t    opaque[3];
} janus_barrier;

/* The largest number of parties. */
#define JANUS_PARTIES_MAX UINT32_C(0x7fffffff)

/* Initialises a static object as janus_barrier_init does. */
/* clang-format off */
#define JANUS_BARRIER_INIT(parties, waker, name)                                                  \
    {(name), {(waker) == JANUS_WAKER_TASKS ? 4 : 0, 0, (uint32_t)(parties)}}
/* clang-format on */

JANUS_BEGIN_DECLS

/*
 * Makes a barrier for `parties` tasks or threads.
 *
 * Context: anyone, any thread. No other task or thread uses the barrier at that time.
 * Yields:  never.
 * Owns:    the memory stays the caller's; `name` is borrowed.
 * Cost:    a few stores.
 * Errors:  INVALID  `barrier` is NULL, or `parties` is 0 or more than JANUS_PARTIES_MAX; nothing
 *                   happened
 */
JANUS_NODISCARD JANUS_API janus_status janus_barrier_init(janus_barrier *barrier, uint32_t parties,
                                                          janus_waker waker, const char *name);

/*
 * Arrives, and waits until all parties have arrived. *out_leads (NULL: not wanted) is true for the
 * last to arrive.
 *
 * Context: any thread or task.
 * Yields:  unless it is the last to arrive.
 * Owns:    nothing. What each party wrote before it arrived can be read by all.
 * Cost:    two atomic operations; a switch each way, or a wake-up for each waiting party.
 * Errors:  CANCELLED  the task is cancelled; it has not arrived
 *          DEADLOCK   every task waits, and only tasks could end this wait; it has not arrived
 *          NO_MEMORY  memory was refused; it has not arrived
 *          INVALID    `barrier` is NULL, or was never made
 */
JANUS_NODISCARD JANUS_API janus_status janus_barrier_wait(janus_barrier *barrier, bool *out_leads);

/*
 * Arrives, and waits until all parties have arrived or the clock (janus_now_ns) reaches
 * `deadline_ns`.
 *
 * Context: as janus_barrier_wait.
 * Yields:  as janus_barrier_wait; not after the deadline.
 * Owns:    as janus_barrier_wait.
 * Cost:    as janus_barrier_wait, and a timer for a wait.
 * Errors:  DEADLINE  it passed first; the caller has not arrived
 *          and those of janus_barrier_wait
 */
JANUS_NODISCARD JANUS_API janus_status janus_barrier_wait_until(janus_barrier *barrier,
                                                                bool          *out_leads,
                                                                uint64_t       deadline_ns);

JANUS_END_DECLS
#endif
