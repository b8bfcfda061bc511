/* SPDX-License-Identifier: MIT */
/*
 * Locks and signals between tasks: mutex, semaphore, condition, event, wait group, broadcast, once.
 *
 *     static janus_mutex lock = JANUS_MUTEX_INIT("accounts");
 *
 *     janus_status status = janus_mutex_lock(&lock);
 *     if (status != JANUS_OK) return status;              // CANCELLED, most likely
 *     if (janus_mutex_is_abandoned(&lock)) repair();      // a holder ended with it
 *     transfer();
 *     (void)janus_mutex_unlock(&lock);
 *
 * A task that waits leaves its worker to others. If its task is cancelled, a wait returns
 * CANCELLED, and nothing happened. In a task that is already cancelled, and not shielded, every
 * wait returns CANCELLED at once. If a grant comes at the same moment as a cancel, the call returns
 * OK, so nothing is lost. The first to wait goes first. Plain threads can use all objects too: they
 * block, and cannot be cancelled.
 *
 * The objects live in memory of the program and must not move while they are in use. They need no
 * destroy call: free the memory when every call on the object has returned. A name (NULL: none) is
 * for dumps. The library borrows it, so it must live as long as the object; a literal does. Dumps
 * copy it cut and escaped, see JANUS_NAME_BYTES.
 *
 * barrier.h has barriers, rwlock.h has reader-writer locks.
 *
 * The deadlock check: a mutex knows its holder. For all other objects their maker says which
 * callers may end a wait (janus_waker, waitpoint.h). By default any thread may, and no wait is a
 * deadlock.
 */
#ifndef JANUSRT_SYNC_H
#define JANUSRT_SYNC_H

#include <janusrt/export.h>
#include <janusrt/fiber.h>
#include <janusrt/status.h>
#include <janusrt/waitpoint.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The fields of these objects are private. */
typedef struct janus_mutex {
    const char *name;
    uint64_t    opaque[6];
} janus_mutex;

typedef struct janus_semaphore {
    const char *name;
    uint64_t    opaque[2];
} janus_semaphore;

typedef struct janus_condition {
    const char *name;
    uint64_t    opaque[2];
} janus_condition;

typedef struct janus_event {
    const char *name;
    uint64_t    opaque[2];
} janus_event;

typedef struct janus_group {
    const char *name;
    uint64_t    opaque[2];
} janus_group;

typedef struct janus_broadcast {
    const char *name;
    uint64_t    opaque[2];
} janus_broadcast;

typedef struct janus_once {
    const char *name;
    uint64_t    opaque[7];
} janus_once;

/* The largest number of permits of a semaphore, and of things to do of a group. */
#define JANUS_PERMITS_MAX UINT32_C(0x7fffffff)
#define JANUS_GROUP_MAX UINT32_C(0x7fffffff)

/* How often the holder of a recursive mutex can lock it. */
#define JANUS_MUTEX_DEPTH_MAX UINT32_C(0x7fffffff)

/* Initialise static objects as the functions ending in _init do. */
/* clang-format off */
#define JANUS_MUTEX_INIT(name) {(name), {0}}
#define JANUS_MUTEX_RECURSIVE_INIT(name) {(name), {0, 0, 0, 0, 0, UINT64_C(1) << 32}}
#define JANUS_ONCE_INIT(name) {(name), {0}}
#define JANUS_SEMAPHORE_INIT(permits, waker, name)                                                \
    {(name), {(uint64_t)(permits) * 64 + ((waker) == JANUS_WAKER_TASKS ? 4 : 0), 0}}
#define JANUS_CONDITION_INIT(waker, name) JANUS_SEMAPHORE_INIT(0, waker, name)
#define JANUS_EVENT_INIT(waker, name) JANUS_SEMAPHORE_INIT(0, waker, name)
#define JANUS_GROUP_INIT(waker, name) JANUS_SEMAPHORE_INIT(0, waker, name)
#define JANUS_BROADCAST_INIT(waker, name) JANUS_SEMAPHORE_INIT(0, waker, name)
/* clang-format on */

JANUS_BEGIN_DECLS

/* Mutexes. */

/*
 * Makes an unlocked mutex. A variable of all zeros is also a mutex.
 *
 * Context: anyone, any thread. No other task or thread uses the object at that time.
 * Yields:  never.
 * Owns:    the memory stays the caller's; `name` is borrowed.
 * Cost:    a few stores.
 * Errors:  none. If `mutex` is NULL, the task panics.
 */
JANUS_API void janus_mutex_init(janus_mutex *mutex, const char *name);

/*
 * Makes an unlocked recursive mutex. Its holder may lock it again, and unlocks it as often.
 * janus_condition_wait refuses a mutex that its holder has locked more than once.
 *
 * Context: anyone, any thread. No other task or thread uses the object at that time.
 * Yields:  never.
 * Owns:    the memory stays the caller's; `name` is borrowed.
 * Cost:    a few stores.
 * Errors:  none. If `mutex` is NULL, the task panics.
 */
JANUS_API void janus_mutex_init_recursive(janus_mutex *mutex, const char *name);

/*
 * Locks the mutex; waits while another task or thread holds it. Unlock wakes the longest waiter.
 * Until it runs, others may take the lock; if it loses once, the next unlock hands the lock to it.
 * The deadlock check ignores a thread that holds the mutex and waits for its nursery.
 *
 * A task or thread that ends while it holds the mutex, however it ends, abandons it: the next
 * caller gets the lock, and OK. What the mutex guards may be half done. janus_mutex_is_abandoned
 * returns true for this holder and all later ones, until one calls janus_mutex_repaired.
 *
 * Context: any thread or task.
 * Yields:  if another has it.
 * Owns:    the lock, until janus_mutex_unlock by the same task, or the same thread.
 * Cost:    two atomic operations for lock and unlock together, if nobody else wants it; else a
 *          switch each way.
 * Errors:  CANCELLED  the task is cancelled
 *          STATE      the caller has it already, and it is not recursive
 *          FULL       recursive, and the caller has it JANUS_MUTEX_DEPTH_MAX times
 *          DEADLOCK   every task waits, and no event can come; the library wrote the cycle to
 *                     standard error
 *          NO_MEMORY  memory was refused
 *          INVALID    `mutex` is NULL
 *          On any error it is not locked.
 */
JANUS_NODISCARD JANUS_API janus_status janus_mutex_lock(janus_mutex *mutex);

/*
 * Locks as janus_mutex_lock, at most until the clock (janus_now_ns) reaches `deadline_ns`.
 *
 * Context: as janus_mutex_lock.
 * Yields:  as janus_mutex_lock; not after the deadline.
 * Owns:    as janus_mutex_lock.
 * Cost:    as janus_mutex_lock, and a timer for a wait.
 * Errors:  DEADLINE  it passed first; nothing happened
 *          and those of janus_mutex_lock
 */
JANUS_NODISCARD JANUS_API janus_status janus_mutex_lock_until(janus_mutex *mutex,
                                                              uint64_t     deadline_ns);

/*
 * Locks the mutex if nobody has it. The call ignores a cancel.
 *
 * Context: any thread or task.
 * Yields:  only if the turn is over.
 * Owns:    as janus_mutex_lock.
 * Cost:    two atomic operations.
 * Errors:  WOULD_WAIT  another has it
 *          STATE, FULL, NO_MEMORY, INVALID  as janus_mutex_lock
 */
JANUS_NODISCARD JANUS_API janus_status janus_mutex_try_lock(janus_mutex *mutex);

/*
 * Whether a task or thread ended while it held the mutex, and no holder has repaired it since.
 *
 * Context: any thread or task; the answer holds for as long as the caller has the mutex.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a load.
 * Errors:  none; false for NULL.
 */
JANUS_API bool janus_mutex_is_abandoned(const janus_mutex *mutex);

/*
 * Declares that what the mutex guards is consistent again. The mutex is no longer abandoned.
 *
 * Context: the task or thread that has the mutex.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a store.
 * Errors:  STATE    the caller does not have it; nothing happened
 *          INVALID  `mutex` is NULL
 */
JANUS_API janus_status janus_mutex_repaired(janus_mutex *mutex);

/*
 * Unlocks the mutex once. If others wait, the call wakes the longest waiter.
 *
 * Context: any thread or task.
 * Yields:  only if the turn is over.
 * Owns:    gives the lock back.
 * Cost:    an atomic operation; a wake-up if a task waits.
 * Errors:  STATE    the caller does not have it; nothing happened
 *          INVALID  `mutex` is NULL
 */
JANUS_API janus_status janus_mutex_unlock(janus_mutex *mutex);

/* Semaphores. */

/*
 * Makes a semaphore with `permits` permits, at most JANUS_PERMITS_MAX.
 *
 * Context: anyone, any thread. No other task or thread uses the object at that time.
 * Yields:  never.
 * Owns:    the memory stays the caller's; `name` is borrowed.
 * Cost:    a few stores.
 * Errors:  none. If `semaphore` is NULL, the task panics.
 */
JANUS_API void janus_semaphore_init(janus_semaphore *semaphore, uint32_t permits, janus_waker waker,
                                    const char *name);

/*
 * Takes a permit. It waits while no permit is free.
 *
 * Context: any thread or task.
 * Yields:  if no permit is free.
 * Owns:    a permit, which any task or thread may give back.
 * Cost:    an atomic operation; or a switch each way.
 * Errors:  CANCELLED  the task is cancelled
 *          DEADLOCK   every task waits, and only tasks could end this wait
 *          NO_MEMORY  memory was refused
 *          INVALID    an argument is NULL
 *          On any error nothing happened.
 */
JANUS_NODISCARD JANUS_API janus_status janus_semaphore_acquire(janus_semaphore *semaphore);

/*
 * Takes a permit as janus_semaphore_acquire, at most until the clock (janus_now_ns) reaches
 * `deadline_ns`.
 *
 * Context: as janus_semaphore_acquire.
 * Yields:  as janus_semaphore_acquire; not after the deadline.
 * Owns:    as janus_semaphore_acquire.
 * Cost:    as janus_semaphore_acquire, and a timer for a wait.
 * Errors:  DEADLINE  it passed first; nothing happened
 *          and those of janus_semaphore_acquire
 */
JANUS_NODISCARD JANUS_API janus_status janus_semaphore_acquire_until(janus_semaphore *semaphore,
                                                                     uint64_t         deadline_ns);

/*
 * Takes a permit if one is free. The call ignores a cancel.
 *
 * Context: any thread or task.
 * Yields:  only if the turn is over.
 * Owns:    as janus_semaphore_acquire.
 * Cost:    an atomic operation.
 * Errors:  WOULD_WAIT  no permit is free
 *          INVALID     `semaphore` is NULL
 */
JANUS_NODISCARD JANUS_API janus_status janus_semaphore_try_acquire(janus_semaphore *semaphore);

/*
 * Gives `count` permits. The longest waiters get them.
 *
 * Context: any thread or task.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    an atomic operation; a wake-up for each waiter.
 * Errors:  FULL     there would be more than JANUS_PERMITS_MAX; nothing happened
 *          INVALID  `semaphore` is NULL, or `count` is 0
 */
JANUS_API janus_status janus_semaphore_release(janus_semaphore *semaphore, uint32_t count);

/*
 * Reads the number of free permits.
 *
 * Context: any thread or task.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a load. The answer may be out of date at once.
 * Errors:  none; NULL has 0.
 */
JANUS_API uint32_t janus_semaphore_permits(const janus_semaphore *semaphore);

/* Conditions. */

/*
 * Makes a condition.
 *
 * Context: anyone, any thread. No other task or thread uses the object at that time.
 * Yields:  never.
 * Owns:    the memory stays the caller's; `name` is borrowed.
 * Cost:    a few stores.
 * Errors:  none. If `condition` is NULL, the task panics.
 */
JANUS_API void janus_condition_init(janus_condition *condition, janus_waker waker,
                                    const char *name);

/*
 * Unlocks `mutex` and waits for a signal, in one step, so it misses no later signal. It locks the
 * mutex again before it returns, whatever it returns, also in a cancelled task. It never wakes
 * without a signal. But what was true at the signal may have changed since: check again.
 *
 * Context: any thread or task that has `mutex`.
 * Yields:  always.
 * Owns:    the mutex, as before.
 * Cost:    two switches, or four.
 * Errors:  CANCELLED  the task is cancelled
 *          DEADLOCK   every task waits, and only tasks could end this wait. In this case alone the
 *                     mutex may be unlocked, because its holder waits too
 *          STATE      the caller does not have the mutex, or has it more than once; nothing
 *                     happened
 *          NO_MEMORY  memory was refused; the mutex stayed locked
 *          INVALID    an argument is NULL
 */
JANUS_NODISCARD JANUS_API janus_status janus_condition_wait(janus_condition *condition,
                                                            janus_mutex     *mutex);

/*
 * Waits as janus_condition_wait, at most until the clock (janus_now_ns) reaches `deadline_ns`.
 *
 * Context: as janus_condition_wait.
 * Yields:  as janus_condition_wait; not after the deadline.
 * Owns:    as janus_condition_wait.
 * Cost:    as janus_condition_wait, and a timer for a wait.
 * Errors:  DEADLINE  it passed first; nothing happened
 *          and those of janus_condition_wait
 */
JANUS_NODISCARD JANUS_API janus_status janus_condition_wait_until(janus_condition *condition,
                                                                  janus_mutex     *mutex,
                                                                  uint64_t         deadline_ns);

/*
 * Wakes the longest waiter, if a task or thread waits.
 *
 * Context: any thread or task. It need not have the mutex.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    an atomic operation; a wake-up.
 * Errors:  none. If `condition` is NULL, the task panics.
 */
JANUS_API void janus_condition_signal(janus_condition *condition);

/*
 * Wakes all waiters.
 *
 * Context: any thread or task. It need not have the mutex.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    an atomic operation; a wake-up for each waiter.
 * Errors:  none. If `condition` is NULL, the task panics.
 */
JANUS_API void janus_condition_broadcast(janus_condition *condition);

/* Events: set or not, until reset. */

/*
 * Makes an event that is not set.
 *
 * Context: anyone, any thread. No other task or thread uses the object at that time.
 * Yields:  never.
 * Owns:    the memory stays the caller's; `name` is borrowed.
 * Cost:    a few stores.
 * Errors:  none. If `event` is NULL, the task panics.
 */
JANUS_API void janus_event_init(janus_event *event, janus_waker waker, const char *name);

/*
 * Waits until the event is set. A waiter that was woken returns OK, also if the event was reset
 * since.
 *
 * Context: any thread or task.
 * Yields:  if it is not set.
 * Owns:    nothing. What was written before it was set can be read.
 * Cost:    a load; or a switch each way.
 * Errors:  CANCELLED  the task is cancelled
 *          DEADLOCK   every task waits, and only tasks could end this wait
 *          NO_MEMORY  memory was refused
 *          INVALID    an argument is NULL
 *          On any error nothing happened.
 */
JANUS_NODISCARD JANUS_API janus_status janus_event_wait(janus_event *event);

/*
 * Waits as janus_event_wait, at most until the clock (janus_now_ns) reaches `deadline_ns`.
 *
 * Context: as janus_event_wait.
 * Yields:  as janus_event_wait; not after the deadline.
 * Owns:    as janus_event_wait.
 * Cost:    as janus_event_wait, and a timer for a wait.
 * Errors:  DEADLINE  it passed first; nothing happened
 *          and those of janus_event_wait
 */
JANUS_NODISCARD JANUS_API janus_status janus_event_wait_until(janus_event *event,
                                                              uint64_t     deadline_ns);

/*
 * Whether the event is set.
 *
 * Context: any thread or task.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a load.
 * Errors:  none; false for NULL.
 */
JANUS_API bool janus_event_is_set(const janus_event *event);

/*
 * Sets the event and wakes all waiters.
 *
 * Context: any thread or task.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    two atomic operations; a wake-up for each waiter.
 * Errors:  none. If `event` is NULL, the task panics.
 */
JANUS_API void janus_event_set(janus_event *event);

/*
 * Resets the event: later waits wait.
 *
 * Context: any thread or task.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    two atomic operations.
 * Errors:  none. If `event` is NULL, the task panics.
 */
JANUS_API void janus_event_reset(janus_event *event);

/* Wait groups: they count things to do. */

/*
 * Makes a wait group with nothing to do.
 *
 * Context: anyone, any thread. No other task or thread uses the object at that time.
 * Yields:  never.
 * Owns:    the memory stays the caller's; `name` is borrowed.
 * Cost:    a few stores.
 * Errors:  none. If `group` is NULL, the task panics.
 */
JANUS_API void janus_group_init(janus_group *group, janus_waker waker, const char *name);

/*
 * Adds `count` things to do. Call it before anybody waits, or while other things are left.
 *
 * Context: any thread or task.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    two atomic operations.
 * Errors:  FULL     there would be more than JANUS_GROUP_MAX; nothing happened
 *          INVALID  `group` is NULL
 */
JANUS_API janus_status janus_group_add(janus_group *group, uint32_t count);

/*
 * Reports one thing as done. The last one wakes all waiters.
 *
 * Context: any thread or task.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    two atomic operations; a wake-up for each waiter.
 * Errors:  STATE    nothing was left to do; nothing happened
 *          INVALID  `group` is NULL
 */
JANUS_API janus_status janus_group_done(janus_group *group);

/*
 * Waits until nothing is left to do.
 *
 * Context: any thread or task.
 * Yields:  if something is left to do.
 * Owns:    nothing. What was written before the last was done can be read.
 * Cost:    a load; or a switch each way.
 * Errors:  CANCELLED  the task is cancelled
 *          DEADLOCK   every task waits, and only tasks could end this wait
 *          NO_MEMORY  memory was refused
 *          INVALID    an argument is NULL
 *          On any error nothing happened.
 */
JANUS_NODISCARD JANUS_API janus_status janus_group_wait(janus_group *group);

/*
 * Waits as janus_group_wait, at most until the clock (janus_now_ns) reaches `deadline_ns`.
 *
 * Context: as janus_group_wait.
 * Yields:  as janus_group_wait; not after the deadline.
 * Owns:    as janus_group_wait.
 * Cost:    as janus_group_wait, and a timer for a wait.
 * Errors:  DEADLINE  it passed first; nothing happened
 *          and those of janus_group_wait
 */
JANUS_NODISCARD JANUS_API janus_status janus_group_wait_until(janus_group *group,
                                                              uint64_t     deadline_ns);

/* Broadcasts: each listener learns once that something was sent since it last looked. */

/*
 * Makes a broadcast that was never sent.
 *
 * Context: anyone, any thread. No other task or thread uses the object at that time.
 * Yields:  never.
 * Owns:    the memory stays the caller's; `name` is borrowed.
 * Cost:    a few stores.
 * Errors:  none. If `broadcast` is NULL, the task panics.
 */
JANUS_API void janus_broadcast_init(janus_broadcast *broadcast, janus_waker waker,
                                    const char *name);

/*
 * How often the broadcast was sent. A listener begins with this number.
 *
 * Context: any thread or task.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a load.
 * Errors:  none; 0 for NULL.
 */
JANUS_API uint64_t janus_broadcast_count(const janus_broadcast *broadcast);

/*
 * Sends: wakes all waiters. The next wait of every other listener returns at once.
 *
 * Context: any thread or task.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    two atomic operations; a wake-up for each waiter.
 * Errors:  none. If `broadcast` is NULL, the task panics.
 */
JANUS_API void janus_broadcast_send(janus_broadcast *broadcast);

/*
 * Waits until the broadcast was sent more often than *seen, and sets *seen to the present number.
 * Begin with janus_broadcast_count, or with 0 to learn of earlier sends.
 *
 * Context: any thread or task.
 * Yields:  if nothing was sent since.
 * Owns:    *seen stays the caller's.
 * Cost:    two atomic operations; or a switch each way.
 * Errors:  CANCELLED  the task is cancelled
 *          DEADLOCK   every task waits, and only tasks could end this wait
 *          NO_MEMORY  memory was refused
 *          INVALID    an argument is NULL, or *seen is larger than the number of sends
 *          On any error nothing happened.
 */
JANUS_NODISCARD JANUS_API janus_status janus_broadcast_wait(janus_broadcast *broadcast,
                                                            uint64_t        *seen);

/*
 * Waits as janus_broadcast_wait, at most until the clock (janus_now_ns) reaches `deadline_ns`.
 *
 * Context: as janus_broadcast_wait.
 * Yields:  as janus_broadcast_wait; not after the deadline.
 * Owns:    as janus_broadcast_wait.
 * Cost:    as janus_broadcast_wait, and a timer for a wait.
 * Errors:  DEADLINE  it passed first; nothing happened
 *          and those of janus_broadcast_wait
 */
JANUS_NODISCARD JANUS_API janus_status janus_broadcast_wait_until(janus_broadcast *broadcast,
                                                                  uint64_t        *seen,
                                                                  uint64_t         deadline_ns);

/* Once. */

/*
 * Makes a once that is not done. A variable of all zeros is also a once.
 *
 * Context: anyone, any thread. No other task or thread uses the object at that time.
 * Yields:  never.
 * Owns:    the memory stays the caller's; `name` is borrowed.
 * Cost:    a few stores.
 * Errors:  none. If `once` is NULL, the task panics.
 */
JANUS_API void janus_once_init(janus_once *once, const char *name);

/*
 * Runs `function(argument)` unless an earlier call did so with success. Other callers wait
 * meanwhile. If the function returns a negative number, or its task ends in the middle, the once is
 * not done. The next caller, or the longest waiter, runs it.
 *
 * Context: any thread or task. Not inside the function.
 * Yields:  if another caller runs it, and as the function does.
 * Owns:    `argument` stays the caller's. *out_result (NULL: not wanted) is what the function
 *          returned; 0 if it was done before.
 * Cost:    a load, once it is done.
 * Errors:  CHILD_FAILED  the function ran here and failed
 *          CANCELLED     the task is cancelled, and the once is not done
 *          STATE         called inside the function
 *          DEADLOCK      every task waits, and no event can come
 *          NO_MEMORY     memory was refused
 *          INVALID       an argument is NULL
 *          On any error but CHILD_FAILED the function did not run here.
 */
JANUS_NODISCARD JANUS_API janus_status janus_once_call(janus_once *once, janus_entry *function,
                                                       void *argument, int64_t *out_result);

JANUS_END_DECLS
#endif
