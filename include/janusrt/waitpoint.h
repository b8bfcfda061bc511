/* SPDX-License-Identifier: MIT */
/*
 * Waitpoints: one task waits until another task or thread opens the waitpoint. Locks, channels and
 * language runtimes are made of them. If the opening comes before the wait, the wait returns at
 * once.
 *
 *     janus_waitpoint point;
 *     janus_waitpoint_init(&point, JANUS_OPENED_BY_ANYBODY);
 *     lock(queue); add(queue, &point); unlock(queue);            // where openers find it
 *     janus_status status = janus_waitpoint_wait(&point, "a free connection");
 *     if (status != JANUS_OK) {
 *         lock(queue); bool mine = take_out(queue, &point); unlock(queue);
 *         if (!mine) { // an opener took it: it will open it
 *             janus_shield_begin();
 *             (void)janus_waitpoint_wait(&point, "a free connection"); // OK
 *             janus_shield_end();
 *         }
 *     }
 *
 * Lifetime. When a wait has returned OK, the opener no longer touches the waitpoint: its owner may
 * free it, or init it again, at once. After any other status an opener may still come, so the owner
 * keeps the waitpoint until none can, as above. A wait returns OK exactly if the waitpoint was
 * opened, even if its task is cancelled at the same moment. So what an opening hands over is never
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

/* Which callers may open it, for the deadlock check. */
typedef enum janus_opener {
    JANUS_OPENED_BY_ANYBODY = 0, /* any thread: no wait for it is a deadlock */
    JANUS_OPENED_BY_TASKS,       /* only tasks of the waiter's scheduler: a wait may be one */
} janus_opener;

JANUS_BEGIN_DECLS

/*
 * Makes a closed waitpoint.
 *
 * Context: anyone, any thread. No other task or thread uses it at that time.
 * Yields:  never.
 * Owns:    *point stays the caller's memory; it must not move while others know it.
 * Cost:    two stores.
 * Errors:  none.
 */
JANUS_API void janus_waitpoint_init(janus_waitpoint *point, janus_opener opener);

/*
 * Waits until the waitpoint is open. If it is open already, the call returns at once. Dumps and
 * janus_task_inspect show `reason` (NULL: "a waitpoint"). The call returns CANCELLED in both cancel
 * modes, so that the task can remove the waitpoint from where openers find it. In the mode UNWIND
 * the task ends at its next wait.
 *
 * Context: a task, or a plain thread, which blocks and cannot be cancelled. One waiter at a time.
 * Yields:  always, unless it is open.
 * Owns:    `reason` is borrowed and must outlive the task; a literal does. Dumps copy it cut and
 *          escaped, see JANUS_NAME_BYTES.
 * Cost:    two atomic operations and a switch each way.
 * Errors:  CANCELLED  the task was cancelled, and nobody has opened it
 *          DEADLOCK   every task waits, and only tasks could open it
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
 * Yields:  always, unless it is open or the deadline has passed.
 * Owns:    as janus_waitpoint_wait.
 * Cost:    as janus_waitpoint_wait, and a timer.
 * Errors:  DEADLINE  it passed, and nobody has opened it
 *          and those of janus_waitpoint_wait
 */
JANUS_NODISCARD JANUS_API janus_status janus_waitpoint_wait_until(janus_waitpoint *point,
                                                                  const char      *reason,
                                                                  uint64_t         deadline_ns);

/*
 * Opens a waitpoint and wakes its waiter. Opening an open waitpoint does nothing.
 *
 * Context: any thread or task, once. Again only if the caller knows that the waitpoint still
 *          exists.
 * Yields:  only if the turn is over.
 * Owns:    nothing. The waiter may read what the opener wrote before.
 * Cost:    an atomic operation; a wake-up if a task waits.
 * Errors:  none.
 */
JANUS_API void janus_waitpoint_open(janus_waitpoint *point);

JANUS_END_DECLS
#endif
