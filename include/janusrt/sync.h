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
 * A task that waits leaves its worker to others. Every wait ends with CANCELLED when its task is
 * cancelled, and then nothing happened; a task that is cancelled already is told so before anything
 * else, unless it is shielded. What was granted at the same moment is not lost: then the call
 * returns OK. Of those who wait, who came first goes first. Plain threads can use all of them too:
 * they block, and are not cancelled.
 *
 * The objects live where their owner puts them and must not move while they are used. They need no
 * destroying: an object may go when every call on it has returned. A name (NULL: none) is for
 * dumps. It is borrowed and must live as long as the object; a literal does. Dumps copy it cut and
 * escaped, see JANUS_NAME_BYTES. Of a name that was freed they show what lies there.
 *
 * barrier.h has barriers, rwlock.h has reader-writer locks.
 *
 * For the deadlock check: a mutex knows who holds it. For all others their maker says who may end a
 * wait (janus_opener, waitpoint.h); by default that is anybody, and no wait is a deadlock.
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

/* Nothing in these is for users. */
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

/* A semaphore never has more permits, a group never more things to do. */
#define JANUS_PERMITS_MAX UINT32_C(0x7fffffff)
#define JANUS_GROUP_MAX UINT32_C(0x7fffffff)

/* A recursive mutex can be locked this often by its holder. */
#define JANUS_MUTEX_DEPTH_MAX UINT32_C(0x7fffffff)

/* For static objects, and others; the same as the functions ending in _init. */
/* clang-format off */
#define JANUS_MUTEX_INIT(name) {(name), {0}}
#define JANUS_MUTEX_RECURSIVE_INIT(name) {(name), {0, 0, 0, 0, 0, UINT64_C(1) << 32}}
#define JANUS_ONCE_INIT(name) {(name), {0}}
#define JANUS_SEMAPHORE_INIT(permits, opener, name)                                                \
    {(name), {(uint64_t)(permits) * 64 + ((opener) == JANUS_OPENED_BY_TASKS ? 4 : 0), 0}}
#define JANUS_CONDITION_INIT(opener, name) JANUS_SEMAPHORE_INIT(0, opener, name)
#define JANUS_EVENT_INIT(opener, name) JANUS_SEMAPHORE_INIT(0, opener, name)
#define JANUS_GROUP_INIT(opener, name) JANUS_SEMAPHORE_INIT(0, opener, name)
#define JANUS_BROADCAST_INIT(opener, name) JANUS_SEMAPHORE_INIT(0, opener, name)
/* clang-format on */

JANUS_BEGIN_DECLS

/* Mutexes. */

/*
 * Makes a mutex, unlocked. A variable that is all zeros is one too.
 *
 * Context: anyone, any thread; nobody else knows it yet, or any more.
 * Yields:  never.
 * Owns:    the memory stays the caller's; `name` is borrowed.
 * Cost:    a few stores.
 * Errors:  none.
 */
JANUS_API void janus_mutex_init(janus_mutex *mutex, const char *name);

/*
 * Makes a recursive mutex, unlocked: its holder may lock it again, and unlocks it as often as it
 * locked it. janus_condition_wait refuses a mutex that its holder has locked more than once.
 *
 * Context: anyone, any thread; nobody else knows it yet, or any more.
 * Yields:  never.
 * Owns:    the memory stays the caller's; `name` is borrowed.
 * Cost:    a few stores.
 * Errors:  none.
 */
JANUS_API void janus_mutex_init_recursive(janus_mutex *mutex, const char *name);

/*
 * Locks the mutex; waits while another task or thread holds it. Unlock wakes the longest waiter.
 * Until it runs, others may take the lock; if it loses once, the next unlock hands the lock to it.
 * A thread that holds the mutex and waits for its nursery is not seen as part of a deadlock.
 *
 * A task or thread that ends while it holds the mutex, however it ends, abandons it: the next
 * caller gets the lock, and OK. What the mutex guards may be half done. janus_mutex_is_abandoned
 * tells so, to this holder and all later ones, until one calls janus_mutex_repaired.
 *
 * Context: any thread or task.
 * Yields:  if another has it.
 * Owns:    the lock, until janus_mutex_unlock by the same task, or the same thread.
 * Cost:    two atomic operations for lock and unlock together where nobody else wants it; a switch
 *          each way where somebody has it.
 * Errors:  CANCELLED  the task is cancelled
 *          STATE      the caller has it already, and it is not recursive
 *          FULL       recursive, and the caller has it JANUS_MUTEX_DEPTH_MAX times
 *          DEADLOCK   nothing can happen any more; the cycle was told on the standard error output
 *          NO_MEMORY  memory was refused
 *          INVALID    `mutex` is NULL
 *          On any error it is not locked.
 */
JANUS_NODISCARD JANUS_API janus_status janus_mutex_lock(janus_mutex *mutex);

/*
 * The same, at the latest until the clock (janus_now_ns) reaches `deadline_ns`.
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
 * Locks it if nobody has it. It is not cancelled.
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
 * Whether a task or thread ended while it held the mutex, and nobody has repaired it since.
 *
 * Context: any thread or task; the answer holds for as long as the caller has the mutex.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a load.
 * Errors:  none; false for NULL.
 */
JANUS_API bool janus_mutex_is_abandoned(const janus_mutex *mutex);

/*
 * Says that what the mutex guards is whole again: it is abandoned no more.
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
 * Unlocks it, once. If others wait, the first of them is woken.
 *
 * Context: any thread or task.
 * Yields:  only if the turn is over.
 * Owns:    gives the lock back.
 * Cost:    an atomic operation; if somebody waits, a wake-up.
 * Errors:  STATE    the caller does not have it; nothing happened
 *          INVALID  `mutex` is NULL
 */
JANUS_API janus_status janus_mutex_unlock(janus_mutex *mutex);

/* Semaphores. */

/*
 * Makes a semaphore with so many permits, at most JANUS_PERMITS_MAX.
 *
 * Context: anyone, any thread; nobody else knows it yet, or any more.
 * Yields:  never.
 * Owns:    the memory stays the caller's; `name` is borrowed.
 * Cost:    a few stores.
 * Errors:  none.
 */
JANUS_API void janus_semaphore_init(janus_semaphore *semaphore, uint32_t permits,
                                    janus_opener opener, const char *name);

/*
 * Takes a permit; waits while there is none.
 *
 * Context: any thread or task.
 * Yields:  if there is none.
 * Owns:    a permit, which anybody may give back.
 * Cost:    an atomic operation; or a switch each way.
 * Errors:  CANCELLED  the task is cancelled
 *          DEADLOCK   nothing can happen any more, and only tasks could end the wait
 *          NO_MEMORY  memory was refused
 *          INVALID    an argument is NULL
 *          On any error nothing happened.
 */
JANUS_NODISCARD JANUS_API janus_status janus_semaphore_acquire(janus_semaphore *semaphore);

/*
 * The same, at the latest until the clock (janus_now_ns) reaches `deadline_ns`.
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
 * Takes a permit if there is one. It is not cancelled.
 *
 * Context: any thread or task.
 * Yields:  only if the turn is over.
 * Owns:    as janus_semaphore_acquire.
 * Cost:    an atomic operation.
 * Errors:  WOULD_WAIT  there is none
 *          INVALID     `semaphore` is NULL
 */
JANUS_NODISCARD JANUS_API janus_status janus_semaphore_try_acquire(janus_semaphore *semaphore);

/*
 * Gives `count` permits; the first who wait get them.
 *
 * Context: any thread or task.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    an atomic operation; a wake-up for each who waits.
 * Errors:  FULL     there would be more than JANUS_PERMITS_MAX; nothing happened
 *          INVALID  `semaphore` is NULL, or `count` is 0
 */
JANUS_API janus_status janus_semaphore_release(janus_semaphore *semaphore, uint32_t count);

/*
 * How many permits there are now.
 *
 * Context: any thread or task.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a load; out of date at once.
 * Errors:  none.
 */
JANUS_API uint32_t janus_semaphore_permits(const janus_semaphore *semaphore);

/* Conditions. */

/*
 * Makes a condition.
 *
 * Context: anyone, any thread; nobody else knows it yet, or any more.
 * Yields:  never.
 * Owns:    the memory stays the caller's; `name` is borrowed.
 * Cost:    a few stores.
 * Errors:  none.
 */
JANUS_API void janus_condition_init(janus_condition *condition, janus_opener opener,
                                    const char *name);

/*
 * Unlocks `mutex` and waits for a signal, in one step: none that comes after that is missed.
 * Locks the mutex again before it returns, whatever it returns, also in a cancelled task. There are
 * no wake-ups without a signal, but what was true at the signal may have changed since: look again.
 *
 * Context: any thread or task that has `mutex`.
 * Yields:  always.
 * Owns:    the mutex, as before.
 * Cost:    two switches, or four.
 * Errors:  CANCELLED  the task is cancelled
 *          DEADLOCK   nothing can happen any more, and only tasks could end the wait. Then alone
 *                     the mutex may not be locked: it is held by one who waits, too
 *          STATE      the caller does not have the mutex, or has it more than once; nothing
 *                     happened
 *          NO_MEMORY  memory was refused; the mutex stayed locked
 *          INVALID    an argument is NULL
 */
JANUS_NODISCARD JANUS_API janus_status janus_condition_wait(janus_condition *condition,
                                                            janus_mutex     *mutex);

/*
 * The same, at the latest until the clock (janus_now_ns) reaches `deadline_ns`.
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
 * Wakes the one that has waited longest, if any waits.
 *
 * Context: any thread or task. It need not have the mutex.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    an atomic operation; a wake-up.
 * Errors:  none.
 */
JANUS_API void janus_condition_signal(janus_condition *condition);

/*
 * Wakes all who wait.
 *
 * Context: any thread or task. It need not have the mutex.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    an atomic operation; a wake-up for each.
 * Errors:  none.
 */
JANUS_API void janus_condition_broadcast(janus_condition *condition);

/* Events: set or not, until reset. */

/*
 * Makes an event, not set.
 *
 * Context: anyone, any thread; nobody else knows it yet, or any more.
 * Yields:  never.
 * Owns:    the memory stays the caller's; `name` is borrowed.
 * Cost:    a few stores.
 * Errors:  none.
 */
JANUS_API void janus_event_init(janus_event *event, janus_opener opener, const char *name);

/*
 * Waits until it is set. Who was let go returns OK, also if it was reset since.
 *
 * Context: any thread or task.
 * Yields:  if it is not set.
 * Owns:    nothing. What was written before it was set can be read.
 * Cost:    a load; or a switch each way.
 * Errors:  CANCELLED  the task is cancelled
 *          DEADLOCK   nothing can happen any more, and only tasks could end the wait
 *          NO_MEMORY  memory was refused
 *          INVALID    an argument is NULL
 *          On any error nothing happened.
 */
JANUS_NODISCARD JANUS_API janus_status janus_event_wait(janus_event *event);

/*
 * The same, at the latest until the clock (janus_now_ns) reaches `deadline_ns`.
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
 * Whether it is set.
 *
 * Context: any thread or task.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a load.
 * Errors:  none.
 */
JANUS_API bool janus_event_is_set(const janus_event *event);

/*
 * Sets it and lets all go who wait.
 *
 * Context: any thread or task.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    two atomic operations; a wake-up for each who waits.
 * Errors:  none.
 */
JANUS_API void janus_event_set(janus_event *event);

/*
 * From now on it is not set.
 *
 * Context: any thread or task.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    two atomic operations.
 * Errors:  none.
 */
JANUS_API void janus_event_reset(janus_event *event);

/* Wait groups: a number of things to be done. */

/*
 * Makes a wait group with nothing to be done.
 *
 * Context: anyone, any thread; nobody else knows it yet, or any more.
 * Yields:  never.
 * Owns:    the memory stays the caller's; `name` is borrowed.
 * Cost:    a few stores.
 * Errors:  none.
 */
JANUS_API void janus_group_init(janus_group *group, janus_opener opener, const char *name);

/*
 * So many things more are to be done. Before anybody waits, or while there are others.
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
 * One of them is done; the last lets all go who wait.
 *
 * Context: any thread or task.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    two atomic operations; a wake-up for each who waits.
 * Errors:  STATE    nothing was to be done; nothing happened
 *          INVALID  `group` is NULL
 */
JANUS_API janus_status janus_group_done(janus_group *group);

/*
 * Waits until nothing is to be done.
 *
 * Context: any thread or task.
 * Yields:  if there is something.
 * Owns:    nothing. What was written before the last was done can be read.
 * Cost:    a load; or a switch each way.
 * Errors:  CANCELLED  the task is cancelled
 *          DEADLOCK   nothing can happen any more, and only tasks could end the wait
 *          NO_MEMORY  memory was refused
 *          INVALID    an argument is NULL
 *          On any error nothing happened.
 */
JANUS_NODISCARD JANUS_API janus_status janus_group_wait(janus_group *group);

/*
 * The same, at the latest until the clock (janus_now_ns) reaches `deadline_ns`.
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

/* Broadcasts: each who listens hears that something was sent since it last heard, once. */

/*
 * Makes a broadcast that was never sent.
 *
 * Context: anyone, any thread; nobody else knows it yet, or any more.
 * Yields:  never.
 * Owns:    the memory stays the caller's; `name` is borrowed.
 * Cost:    a few stores.
 * Errors:  none.
 */
JANUS_API void janus_broadcast_init(janus_broadcast *broadcast, janus_opener opener,
                                    const char *name);

/*
 * How often it was sent: what a listener begins with.
 *
 * Context: any thread or task.
 * Yields:  never.
 * Owns:    nothing.
 * Cost:    a load.
 * Errors:  none.
 */
JANUS_API uint64_t janus_broadcast_count(const janus_broadcast *broadcast);

/*
 * Sends: all who wait go on, and who waits next for something newer than before does not wait.
 *
 * Context: any thread or task.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    two atomic operations; a wake-up for each who waits.
 * Errors:  none.
 */
JANUS_API void janus_broadcast_send(janus_broadcast *broadcast);

/*
 * Waits until it was sent more often than *seen, and makes that the number of now. Begin with
 * janus_broadcast_count, or with 0 to hear of what was sent before.
 *
 * Context: any thread or task.
 * Yields:  if nothing was sent since.
 * Owns:    *seen stays the caller's.
 * Cost:    two atomic operations; or a switch each way.
 * Errors:  CANCELLED  the task is cancelled
 *          DEADLOCK   nothing can happen any more, and only tasks could end the wait
 *          NO_MEMORY  memory was refused
 *          INVALID    an argument is NULL; or *seen is more than it was ever sent, so no number of
 *                     this broadcast, or of one that was made anew since
 *          On any error nothing happened.
 */
JANUS_NODISCARD JANUS_API janus_status janus_broadcast_wait(janus_broadcast *broadcast,
                                                            uint64_t        *seen);

/*
 * The same, at the latest until the clock (janus_now_ns) reaches `deadline_ns`.
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
 * Makes a once, not done. A variable that is all zeros is one too.
 *
 * Context: anyone, any thread; nobody else knows it yet, or any more.
 * Yields:  never.
 * Owns:    the memory stays the caller's; `name` is borrowed.
 * Cost:    a few stores.
 * Errors:  none.
 */
JANUS_API void janus_once_init(janus_once *once, const char *name);

/*
 * Runs `function(argument)`, unless a call has done so with success; who calls meanwhile waits for
 * it. A function that returns a negative number has failed, and one whose task ended in the middle
 * of it counts as never begun: the next caller, or the first who waits, runs it.
 *
 * Context: any thread or task. Not inside the function.
 * Yields:  if another runs it; and as the function does.
 * Owns:    `argument` stays the caller's. *out_result (NULL: not wanted) is what it returned here;
 *          0 where it was done before.
 * Cost:    a load, once it is done.
 * Errors:  CHILD_FAILED  it ran here and failed
 *          CANCELLED     the task is cancelled, and it is not done
 *          STATE         called inside the function
 *          DEADLOCK      nothing can happen any more
 *          NO_MEMORY     memory was refused
 *          INVALID       an argument is NULL
 *          On any of them but CHILD_FAILED it did not run here.
 */
JANUS_API janus_status janus_once_call(janus_once *once, janus_entry *function, void *argument,
                                       int64_t *out_result);

JANUS_END_DECLS
#endif
