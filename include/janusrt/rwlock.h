/* SPDX-License-Identifier: MIT */
/*
 * Reader-writer locks: many tasks read together, or one task writes alone.
 *
 *     static janus_rwlock lock = JANUS_RWLOCK_INIT("routes");
 *
 *     janus_status status = janus_rwlock_read_lock(&lock);
 *     if (status != JANUS_OK) return status;              // CANCELLED, most likely
 *     look_up();
 *     (void)janus_rwlock_unlock(&lock);
 *
 * The lock is phase-fair: readers and writers take turns. While a writer waits, new readers wait
 * too. When a writer unlocks, all waiting readers go first, together. When the last of them has
 * unlocked, the writer that waited longest goes next. So neither side starves:
 *
 *   - A reader waits for the present readers and one writer at most.
 *   - A writer waits for the writers before it, and for one phase of readers before each writer.
 *
 * A task may lock for reading again what it reads already. It gets the lock at once, also while a
 * writer waits, and unlocks as often as it locked. A reader cannot become a writer, nor a writer a
 * reader: the call returns STATE and does not wait for itself.
 *
 * A task or thread that ends, however it ends, gives back every lock it still holds. If it was the
 * writer, the lock is abandoned: what the lock guards may be half done.
 *
 * sync.h says what holds for all objects that tasks wait for: cancelling, plain threads, memory,
 * names. Each reader and writer is known, so the deadlock check covers these locks.
 */
#ifndef JANUSRT_RWLOCK_H
#define JANUSRT_RWLOCK_H

#include <janusrt/export.h>
#include <janusrt/status.h>
#include <stdbool.h>
#include <stdint.h>

/* Its fields are private. */
typedef struct janus_rwlock {
    const char *name;
    uint64_t    opaque[5];
} janus_rwlock;

/* A task or thread holds at most this many reader-writer locks at a time. */
#define JANUS_RWLOCK_HOLDS_MAX 64

/* A task or thread can lock one lock for reading at most this often. */
#define JANUS_RWLOCK_DEPTH_MAX UINT32_C(0x7fffffff)

/* Initialises a static object as janus_rwlock_init does. */
/* clang-format off */
#define JANUS_RWLOCK_INIT(name) {(name), {0, 0, 0, 0, 0}}
/* clang-format on */

JANUS_BEGIN_DECLS

/*
 * Makes a lock that nobody holds. A variable of all zeros is also a lock.
 *
 * Context: anyone, any thread. No other task or thread uses the lock at that time.
 * Yields:  never.
 * Owns:    the memory stays the caller's; `name` is borrowed.
 * Cost:    a few stores.
 * Errors:  INVALID  `lock` is NULL
 */
JANUS_NODISCARD JANUS_API janus_status janus_rwlock_init(janus_rwlock *lock, const char *name);

/*
 * Locks for reading; waits while a writer holds the lock or waits for it.
 *
 * Context: any thread or task.
 * Yields:  if a writer holds the lock or waits for it, and the caller does not read already.
 * Owns:    a share of the lock, until janus_rwlock_unlock by the same task, or the same thread.
 * Cost:    four atomic operations; a switch each way if the caller waits.
 * Errors:  CANCELLED  the task is cancelled
 *          STATE      the caller holds the lock for writing
 *          FULL       the caller holds JANUS_RWLOCK_HOLDS_MAX locks, or this one
 *                     JANUS_RWLOCK_DEPTH_MAX times
 *          DEADLOCK   every task waits, and no event can come; the library wrote a report to the
 *                     standard error output
 *          NO_MEMORY  memory was refused
 *          INVALID    `lock` is NULL
 *          On any error the caller holds what it held before.
 */
JANUS_NODISCARD JANUS_API janus_status janus_rwlock_read_lock(janus_rwlock *lock);

/*
 * Locks for reading, and waits at most until the clock (janus_now_ns) reaches `deadline_ns`.
 *
 * Context: as janus_rwlock_read_lock.
 * Yields:  as janus_rwlock_read_lock; not after the deadline.
 * Owns:    as janus_rwlock_read_lock.
 * Cost:    as janus_rwlock_read_lock, and a timer for a wait.
 * Errors:  DEADLINE  it passed first; nothing happened
 *          and those of janus_rwlock_read_lock
 */
JANUS_NODISCARD JANUS_API janus_status janus_rwlock_read_lock_until(janus_rwlock *lock,
                                                                    uint64_t      deadline_ns);

/*
 * Locks for reading if the caller need not wait. The call ignores a cancel.
 *
 * Context: any thread or task.
 * Yields:  only if the turn is over.
 * Owns:    as janus_rwlock_read_lock.
 * Cost:    four atomic operations.
 * Errors:  WOULD_WAIT  a writer holds the lock or waits for it
 *          STATE, FULL, NO_MEMORY, INVALID  as janus_rwlock_read_lock
 */
JANUS_NODISCARD JANUS_API janus_status janus_rwlock_try_read_lock(janus_rwlock *lock);

/*
 * Locks for writing; waits while another task or thread holds the lock.
 *
 * Context: any thread or task.
 * Yields:  if another holds the lock.
 * Owns:    the lock, until janus_rwlock_unlock by the same task, or the same thread.
 * Cost:    four atomic operations; a switch each way if the caller waits.
 * Errors:  CANCELLED  the task is cancelled
 *          STATE      the caller holds the lock already, for reading or for writing
 *          FULL       the caller holds JANUS_RWLOCK_HOLDS_MAX locks
 *          DEADLOCK   every task waits, and no event can come; the library wrote a report to the
 *                     standard error output
 *          NO_MEMORY  memory was refused
 *          INVALID    `lock` is NULL
 *          On any error the caller holds what it held before.
 */
JANUS_NODISCARD JANUS_API janus_status janus_rwlock_write_lock(janus_rwlock *lock);

/*
 * Locks for writing, and waits at most until the clock (janus_now_ns) reaches `deadline_ns`.
 *
 * Context: as janus_rwlock_write_lock.
 * Yields:  as janus_rwlock_write_lock; not after the deadline.
 * Owns:    as janus_rwlock_write_lock.
 * Cost:    as janus_rwlock_write_lock, and a timer for a wait.
 * Errors:  DEADLINE  it passed first; nothing happened
 *          and those of janus_rwlock_write_lock
 */
JANUS_NODISCARD JANUS_API janus_status janus_rwlock_write_lock_until(janus_rwlock *lock,
                                                                     uint64_t      deadline_ns);

/*
 * Locks for writing if nobody holds the lock. The call ignores a cancel.
 *
 * Context: any thread or task.
 * Yields:  only if the turn is over.
 * Owns:    as janus_rwlock_write_lock.
 * Cost:    four atomic operations.
 * Errors:  WOULD_WAIT  another holds the lock
 *          STATE, FULL, NO_MEMORY, INVALID  as janus_rwlock_write_lock
 */
JANUS_NODISCARD JANUS_API janus_status janus_rwlock_try_write_lock(janus_rwlock *lock);

/*
 * Gives back the caller's share of the lock, read or written, once. If nobody holds the lock then,
 * the next phase begins, and the caller wakes its waiters.
 *
 * Context: any thread or task.
 * Yields:  only if the turn is over.
 * Owns:    gives the share back.
 * Cost:    three atomic operations; a wake-up for each waiter whose turn it is.
 * Errors:  STATE    the caller does not hold the lock; nothing happened
 *          INVALID  `lock` is NULL
 */
JANUS_API janus_status janus_rwlock_unlock(janus_rwlock *lock);

/*
 * Whether a task or thread ended while it held the lock for writing, and no writer has called
 * janus_rwlock_repaired since.
 *
 * Context: any thread or task; the answer holds for as long as the caller holds the lock.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a load.
 * Errors:  none; false for NULL.
 */
JANUS_API bool janus_rwlock_is_abandoned(const janus_rwlock *lock);

/*
 * Declares that what the lock guards is consistent again. The lock is no longer abandoned.
 *
 * Context: the task or thread that holds the lock for writing.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a store.
 * Errors:  STATE    the caller does not hold the lock for writing; nothing happened
 *          INVALID  `lock` is NULL
 */
JANUS_API janus_status janus_rwlock_repaired(janus_rwlock *lock);

JANUS_END_DECLS
#endif
