/* SPDX-License-Identifier: MIT */
/*
 * Waitpoints: one task waits, somebody opens. What locks, channels and the runtimes of languages
 * are made of. An opening that comes before the wait is not lost.
 *
 *     janus_waitpoint point;
 *     janus_waitpoint_init(&point, JANUS_OPENED_BY_ANYBODY);
 *     lock(queue); add(queue, &point); unlock(queue);            // where openers find it
 *     janus_status status = janus_waitpoint_wait(&point, "a free connection");
 *     if (status != JANUS_OK) {
 *         lock(queue); bool mine = take_out(queue, &point); unlock(queue);
 *         if (!mine) { // an opener has it already: it will open
 *             janus_shield_begin();
 *             (void)janus_waitpoint_wait(&point, "a free connection"); // OK
 *             janus_shield_end();
 *         }
 *     }
 *
 * Lifetime. When a wait has returned OK, the opener no longer touches the waitpoint: it can be
 * freed, or made new, at once. When a wait has returned anything else nobody is in it either, but
 * an opener may still come: its owner keeps it until none can, as above. OK is returned exactly if
 * it was opened, also to a task that is cancelled at the same moment, so what an opening hands
 * over is never lost.
 */
#ifndef JANUSRT_WAITPOINT_H
#define JANUSRT_WAITPOINT_H

#include <janusrt/export.h>
#include <janusrt/status.h>
#include <stdint.h>

/* Lives where its owner puts it. Nothing in it is for users. */
typedef struct janus_waitpoint {
    uint64_t opaque[2];
} janus_waitpoint;

/* Who may open it; for the deadlock check. */
typedef enum janus_opener {
    JANUS_OPENED_BY_ANYBODY = 0, /* other threads too: no wait for it is a deadlock */
    JANUS_OPENED_BY_TASKS,       /* tasks of the waiter's scheduler only: it may be one */
} janus_opener;

JANUS_BEGIN_DECLS

/*
 * Makes a waitpoint, closed, with nobody waiting.
 *
 * Context: anyone, any thread; nobody else knows it yet, or any more.
 * Yields:  never.
 * Owns:    *point stays the caller's memory; it must not move while others know it.
 * Cost:    two stores.
 * Errors:  none.
 */
JANUS_API void janus_waitpoint_init(janus_waitpoint *point, janus_opener opener);

/*
 * Waits until it is open; if it is already, it returns at once. `reason` (NULL: "a waitpoint") is
 * what dumps and janus_task_inspect say the task waits for. CANCELLED is returned in both cancel
 * modes, so that the waitpoint can be taken from where openers find it; a task that is to be
 * unwound ends at its next call that waits.
 *
 * Context: a task, or a plain thread, which is blocked then and cannot be cancelled. One at a time.
 * Yields:  always, unless it is open.
 * Owns:    `reason` is borrowed and must outlive the task; a literal does. Dumps copy it cut and
 *          escaped, see JANUS_NAME_BYTES. Of a reason that was freed they show what lies there.
 * Cost:    two atomic operations and a switch each way.
 * Errors:  CANCELLED  the task was cancelled, and nobody has opened it
 *          DEADLOCK   nothing can happen any more, and only tasks open it
 *          STATE      somebody waits there already; nothing happened
 *          NO_MEMORY  no memory for a stack to go on with, or a timer
 *          INVALID    `point` is NULL
 */
JANUS_NODISCARD JANUS_API janus_status janus_waitpoint_wait(janus_waitpoint *point,
                                                            const char      *reason);

/*
 * The same, at the latest until the clock (janus_now_ns) reaches `deadline_ns`.
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
 * Opens it for good and wakes who waits. Opening an open one does nothing.
 *
 * Context: any thread or task, once; again only if the caller knows that the waitpoint is still
 *          there.
 * Yields:  only if the turn is over.
 * Owns:    nothing. What was written before can be read by whoever waited.
 * Cost:    an atomic operation; if somebody waits, a wake-up.
 * Errors:  none.
 */
JANUS_API void janus_waitpoint_open(janus_waitpoint *point);

JANUS_END_DECLS
#endif
