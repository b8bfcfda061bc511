/* SPDX-License-Identifier: MIT */
/*
 * Signals of the system, as something to wait for. Only the task waits. A server that stops
 * gracefully is:
 *
 *     static int64_t stop_on_signal(void *listener)
 *     {
 *         janus_status status = janus_signal_wait(SIGTERM, JANUS_IO_NEVER);
 *         if (status != JANUS_OK) return status;
 *         return janus_io_close(*(janus_io *)listener); // janus_serve ends with its last child
 *     }
 *
 * While a task waits for a signal, the process catches it. Then the signal has the effect again
 * that it had before. So a second Ctrl-C ends a process whose graceful stop takes too long. A
 * program that waits for a signal again and again catches it once with janus_signal_catch, and then
 * loses none in between.
 *
 * The process gets a signal once, and all waiting tasks see it. Several signals that come fast may
 * count as one. Some thread of the process must not block the signal. The first thread usually
 * does not, and the library's threads do.
 *
 * Some numbers are refused: SIGKILL and SIGSTOP, faults (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP,
 * SIGSYS), and those that the C library keeps for itself.
 *
 * In a simulated run no signal of the system is seen. janus_signal_raise raises one there.
 */
#ifndef JANUSRT_SIGNAL_H
#define JANUSRT_SIGNAL_H

#include <janusrt/export.h>
#include <janusrt/io.h>
#include <janusrt/status.h>
#include <stdint.h>

JANUS_BEGIN_DECLS

/*
 * Waits until the process gets the next signal with this number.
 *
 * Context: a task with the right process.signal, or a plain thread, which blocks.
 * Yields:  always.
 * Owns:    the signal's effect, until the call returns.
 * Cost:    1 op and 1 syscall of the budget; a thread while anybody catches signals.
 * Errors:  DEADLINE        `deadline_ns` passed first. JANUS_IO_NEVER: no deadline
 *          CANCELLED       the task is cancelled
 *          INVALID         this number is refused
 *          NO_PROCESS_CAP  the task may not; CAP_RIGHT and the like, too
 *          UNAVAILABLE     the system has no descriptor left
 *          DEADLOCK        simulated runs: no task is left that could raise it
 *          STATE           a callback calls it
 *          NO_MEMORY, BUDGET_EXHAUSTED
 */
JANUS_NODISCARD JANUS_API janus_status janus_signal_wait(int number, uint64_t deadline_ns);

/*
 * Catches a signal from now on: it ends nothing any more, and is counted. *out_count is the number
 * of signals so far, for janus_signal_wait_next; it may be NULL.
 *
 * Context: anyone with the right process.signal.
 * Yields:  only if the turn is over.
 * Owns:    the signal's effect, until janus_signal_release. Several may catch the same signal.
 * Cost:    1 op and 1 syscall of the budget; a thread for all caught signals together.
 * Errors:  INVALID, NO_PROCESS_CAP, UNAVAILABLE, STATE, NO_MEMORY, BUDGET_EXHAUSTED as
 *          janus_signal_wait
 */
JANUS_NODISCARD JANUS_API janus_status janus_signal_catch(int number, uint64_t *out_count);

/*
 * Waits until more signals were counted than *count, and sets *count. A signal that came since the
 * last call is seen at once.
 *
 *     uint64_t count;
 *     if (janus_signal_catch(SIGHUP, &count) != JANUS_OK) return -100;
 *     while (janus_signal_wait_next(SIGHUP, &count, JANUS_IO_NEVER) == JANUS_OK) reload();
 *
 * Context: as janus_signal_wait. Somebody has caught the signal, and has not released it.
 * Yields:  if none came since.
 * Owns:    *count stays the caller's. On an error it is not changed.
 * Cost:    1 op; a switch each way.
 * Errors:  as janus_signal_wait. STATE: nobody catches it.
 */
JANUS_NODISCARD JANUS_API janus_status janus_signal_wait_next(int number, uint64_t *count,
                                                              uint64_t deadline_ns);

/*
 * Undoes one janus_signal_catch. After the last one the signal has its old effect again, unless the
 * program has installed a handler meanwhile. Signals that were sent before do not have it.
 *
 * Context: anyone with the right process.signal. It ends no wait of another task.
 * Yields:  only if the turn is over.
 * Owns:    returns what janus_signal_catch took.
 * Cost:    some system calls.
 * Errors:  STATE  nobody has caught it so
 *          INVALID, NO_PROCESS_CAP as janus_signal_wait
 */
JANUS_API janus_status janus_signal_release(int number);

/*
 * Sends a signal to this process. In a simulated run, only the tasks of that run see it.
 *
 * Context: anyone with the right process.signal.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    1 op and 1 syscall of the budget; a system call.
 * Errors:  INVALID, NO_PROCESS_CAP, BUDGET_EXHAUSTED as janus_signal_wait
 */
JANUS_NODISCARD JANUS_API janus_status janus_signal_raise(int number);

JANUS_END_DECLS
#endif
