/* SPDX-License-Identifier: MIT */
/*
 * Waitpoints: one task waits until another task or thread wakes the waitpoint. Locks, channels and
 * language runtimes are made of them. If the wake comes before the wait, the wait returns at
 * once.
 *
 *     janus_waitpoint point;
 *     janus_waitpoint_init(&point, JANUS_WAKER_ANYBODY);
 *     lock(queue); add(queue, &point); unlock(queue);            // where wakers find it
 *     janus_status status = janus_waitpoint_wait(&point, "a free connection");
 *     if (status != JANUS_OK) {
 *         lock(queue); bool mine = take_out(queue, &point); unlock(queue);
 *         if (!mine) { // a waker took it and will wake it
 *             janus_shield_begin();
 *             (void)janus_waitpoint_wait(&point, "a free connection"); // OK
 *             janus_shield_end();
 *         }
 *     }
 *
 * Lifetime. When a wait has returned OK, the waker no longer touches the waitpoint: its owner may
 * free it, or init it again, at once. After any other status a waker may still come, so the owner
 * keeps the waitpoint until none can, as above. A wait returns OK exactly if the waitpoint was
 * woken, even if its task is cancelled at the same moment. So what a wake hands over is never
 * lost.
 */
#ifndef JANUSRT_WAITPOINT_H
#define JANUSRT_WAITPOINT_H

#include <janusrt/export.h>
#include <janusrt/status.h>
#include <stdint.h>

/* A waitpoint, in memory of its owner. Its fields are private. */
typedef struct janus_waitpoint {
    uint64_t opaque[2];
} janus_waitpoint;

/* Which callers may wake it, for the deadlock check. */
typedef enum janus_waker {
    JANUS_WAKER_ANYBODY = 0, /* any thread: no wait for it is a deadlock */
    JANUS_WAKER_TASKS,       /* only tasks of the waiter's scheduler: a wait may be one */
} janus_waker;

JANUS_BEGIN_DECLS

/*
 * Makes a waitpoint that nobody has woken.
 *
 * Context: anyone, any thread. No other task or thread uses it at that time.
 * Yields:  never.
 * Owns:    *point stays the caller's memory; it must not move while others know it.
 * Cost:    two stores.
 * Errors:  none. If `point` is NULL, the task panics.
 */
JANUS_API void janus_waitpoint_init(janus_waitpoint *point, janus_waker waker);

/*
 * Waits until somebody wakes the waitpoint. After a wake, the call returns at once. Dumps and
 * janus_task_inspect show `reason` (NULL: "a waitpoint"). The call returns CANCELLED in both cancel
 * modes, so that the task can remove the waitpoint from where wakers find it. In the mode UNWIND
 * the task ends at its next wait.
 *
 * Context: a task, or a plain thread, which blocks and cannot be cancelled. One waiter at a time.
 * Yields:  always, unless it was woken before.
 * Owns:    `reason` is borrowed and must outlive the task; a literal does. Dumps copy it cut and
 *          escaped, see JANUS_NAME_BYTES.
 * Cost:    two atomic operations and a switch each way.
 * Errors:  CANCELLED  the task was cancelled, and nobody has woken it
 *          DEADLOCK   every task waits, and only tasks could wake it
 *          STATE      another task or thread waits there; nothing happened
 *          NO_MEMORY  memory for a stack or a timer was refused
 *          INVALID    `point` is NULL
 */
JANUS_NODISCARD JANUS_API janus_status janus_waitpoint_wait(janus_waitpoint *point,
                                                            const char      *reason);

/*
 * Waits as janus_waitpoint_wait, at most until the clock (janus_now_ns) reaches `deadline_ns`.
 *
 * Context: as janus_waitpoint_wait.
 * Yields:  always, unless it was woken or the deadline has passed.
 * Owns:    as janus_waitpoint_wait.
 * Cost:    as janus_waitpoint_wait, and a timer.
 * Errors:  DEADLINE  it passed, and nobody has woken it
 *          and those of janus_waitpoint_wait
 */
JANUS_NODISCARD JANUS_API janus_status janus_waitpoint_wait_until(janus_waitpoint *point,
                                                                  const char      *reason,
                                                                  uint64_t         deadline_ns);

/*
 * Wakes the waiter. The waitpoint stays woken: later waits return at once, and further wakes do
 * nothing, until janus_waitpoint_init.
 *
 * Context: any thread or task, once. Again only if the caller knows that the waitpoint still
 *          exists.
 * Yields:  only if the turn is over.
 * Owns:    nothing. The waiter may read what the waker wrote before.
 * Cost:    an atomic operation; a wake-up if a task waits.
 * Errors:  none. If `point` is NULL, the task panics.
 */
JANUS_API void janus_waitpoint_wake(janus_waitpoint *point);

JANUS_END_DECLS
#endif
