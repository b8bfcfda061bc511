/* SPDX-License-Identifier: MIT */
/*
 * Locks of threads. A task that holds one must stay on its thread: if a check switched tasks there,
 * the next task that wants the lock would block the thread for ever. So a hold begins before the
 * lock and ends after the unlock. Checks inside count, and do not switch.
 *
 * A lock may be taken in other code than it is released. janus_hold_end without a begin does
 * nothing.
 *
 * A deterministic run has one thread for all workers. So a lock that is taken is tried again until
 * its holder has given it up; deadlines are not looked at. Recursive locks, as those of streams,
 * know the thread only.
 */
#include "cc/support/support.h"

#include <errno.h>
#include <janusrt/task.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <threads.h>
#include <time.h>

/* A lock: the hold stays if the lock was taken. */
#define LOCK(type, name, parameters, arguments, taken)                                             \
    type janus_cc_##name parameters;                                                               \
    type janus_cc_##name parameters                                                                \
    {                                                                                              \
        janus_hold_begin();                                                                        \
        type result = name arguments;                                                              \
        if (!(taken)) janus_hold_end();                                                            \
        return result;                                                                             \
    }

/* The same for a lock that blocks. In a deterministic run it must not block the thread. */
#define WAIT(type, name, try, parameters, arguments, taken, busy)                                  \
    type janus_cc_##name parameters;                                                               \
    type janus_cc_##name parameters                                                                \
    {                                                                                              \
        type result;                                                                               \
        janus_hold_begin();                                                                        \
        while ((result = try(lock)) == (busy) && janus_hold_pass()) {                              \
        }                                                                                          \
        if (result == (busy)) result = name arguments;                                             \
        if (!(taken)) janus_hold_end();                                                            \
        return result;                                                                             \
    }

/* An unlock: the hold ends if the lock was given up. */
#define UNLOCK(type, name, parameters, arguments, given)                                           \
    type janus_cc_##name parameters;                                                               \
    type janus_cc_##name parameters                                                                \
    {                                                                                              \
        type result = name arguments;                                                              \
        if (given) janus_hold_end();                                                               \
        return result;                                                                             \
    }

/* EOWNERDEAD: a robust mutex is taken, and its last owner died. */
#define TAKEN_OR_DEAD (result == 0 || result == EOWNERDEAD)

WAIT(int, pthread_mutex_lock, pthread_mutex_trylock, (pthread_mutex_t * lock), (lock),
     TAKEN_OR_DEAD, EBUSY)
LOCK(int, pthread_mutex_trylock, (pthread_mutex_t * lock), (lock), TAKEN_OR_DEAD)
WAIT(int, pthread_mutex_timedlock, pthread_mutex_trylock,
     (pthread_mutex_t * lock, const struct timespec *until), (lock, until), TAKEN_OR_DEAD, EBUSY)
WAIT(int, pthread_mutex_clocklock, pthread_mutex_trylock,
     (pthread_mutex_t * lock, clockid_t clock, const struct timespec *until), (lock, clock, until),
     TAKEN_OR_DEAD, EBUSY)
UNLOCK(int, pthread_mutex_unlock, (pthread_mutex_t * lock), (lock), result == 0)

WAIT(int, pthread_rwlock_rdlock, pthread_rwlock_tryrdlock, (pthread_rwlock_t * lock), (lock),
     result == 0, EBUSY)
WAIT(int, pthread_rwlock_wrlock, pthread_rwlock_trywrlock, (pthread_rwlock_t * lock), (lock),
     result == 0, EBUSY)
LOCK(int, pthread_rwlock_tryrdlock, (pthread_rwlock_t * lock), (lock), result == 0)
LOCK(int, pthread_rwlock_trywrlock, (pthread_rwlock_t * lock), (lock), result == 0)
WAIT(int, pthread_rwlock_timedrdlock, pthread_rwlock_tryrdlock,
     (pthread_rwlock_t * lock, const struct timespec *until), (lock, until), result == 0, EBUSY)
WAIT(int, pthread_rwlock_timedwrlock, pthread_rwlock_trywrlock,
     (pthread_rwlock_t * lock, const struct timespec *until), (lock, until), result == 0, EBUSY)
WAIT(int, pthread_rwlock_clockrdlock, pthread_rwlock_tryrdlock,
     (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *until), (lock, clock, until),
     result == 0, EBUSY)
WAIT(int, pthread_rwlock_clockwrlock, pthread_rwlock_trywrlock,
     (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *until), (lock, clock, until),
     result == 0, EBUSY)
UNLOCK(int, pthread_rwlock_unlock, (pthread_rwlock_t * lock), (lock), result == 0)

WAIT(int, pthread_spin_lock, pthread_spin_trylock, (pthread_spinlock_t * lock), (lock), result == 0,
     EBUSY)
LOCK(int, pthread_spin_trylock, (pthread_spinlock_t * lock), (lock), result == 0)
UNLOCK(int, pthread_spin_unlock, (pthread_spinlock_t * lock), (lock), result == 0)

WAIT(int, mtx_lock, mtx_trylock, (mtx_t * lock), (lock), result == thrd_success, thrd_busy)
LOCK(int, mtx_trylock, (mtx_t * lock), (lock), result == thrd_success)
WAIT(int, mtx_timedlock, mtx_trylock, (mtx_t * lock, const struct timespec *until), (lock, until),
     result == thrd_success, thrd_busy)
UNLOCK(int, mtx_unlock, (mtx_t * lock), (lock), result == thrd_success)

LOCK(int, ftrylockfile, (FILE * file), (file), result == 0)

void janus_cc_flockfile(FILE *file);
void janus_cc_funlockfile(FILE *file);
int  janus_cc_pthread_once(pthread_once_t *once, void (*function)(void));
void janus_cc_call_once(once_flag *once, void (*function)(void));
int  janus_cc_dl_iterate_phdr(int   (*function)(struct dl_phdr_info *, size_t, void *),
                              void *argument);
int  janus_cc_pthread_sigmask(int how, const sigset_t *set, sigset_t *old);
int  janus_cc_sigprocmask(int how, const sigset_t *set, sigset_t *old);

void janus_cc_flockfile(FILE *file)
{
    janus_hold_begin();
    flockfile(file);
}

void janus_cc_funlockfile(FILE *file)
{
    funlockfile(file);
    janus_hold_end();
}

/* The library holds a lock while it calls the function. */
int janus_cc_pthread_once(pthread_once_t *once, void (*function)(void))
{
    janus_hold_begin();
    int result = pthread_once(once, function);
    janus_hold_end();
    return result;
}

void janus_cc_call_once(once_flag *once, void (*function)(void))
{
    janus_hold_begin();
    call_once(once, function);
    janus_hold_end();
}

int janus_cc_dl_iterate_phdr(int (*function)(struct dl_phdr_info *, size_t, void *), void *argument)
{
    janus_hold_begin();
    int result = dl_iterate_phdr(function, argument);
    janus_hold_end();
    return result;
}

/*
 * The signal mask belongs to the thread. While a task has blocked more signals than before, it
 * must stay there, and others must not run with its mask. Both variables are read and written
 * inside a hold only, so the task cannot change threads between.
 */
static __thread bool     masked; /* by the task that runs now, which is in a hold */
static __thread sigset_t before; /* the mask that ends the hold */

static bool blocks_more(const sigset_t *now, const sigset_t *than)
{
    for (int number = 1; number <= SIGRTMAX; number++) {
        if (sigismember(now, number) == 1 && sigismember(than, number) == 0) return true;
    }
    return false;
}

/* A handler on an alternate stack. Its mask ends with it, and holds do nothing there. */
static bool in_handler(void)
{
    stack_t stack;
    return sigaltstack(NULL, &stack) == 0 && (stack.ss_flags & SS_ONSTACK) != 0;
}

int janus_cc_pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    sigset_t was, now;
    if (set == NULL || janus_task_current_id() == 0 || in_handler()) {
        return pthread_sigmask(how, set, old);
    }
    janus_hold_begin();
    int error = pthread_sigmask(how, set, &was);
    if (error == 0 && old != NULL) *old = was;
    if (error == 0) error = pthread_sigmask(SIG_SETMASK, NULL, &now);
    if (error == 0 && !masked && blocks_more(&now, &was)) {
        masked = true;
        before = was;
        return 0; /* the hold stays */
    }
    if (error == 0 && masked && !blocks_more(&now, &before)) {
        masked = false;
        janus_hold_end();
    }
    janus_hold_end();
    return error;
}

int janus_cc_sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    int error = janus_cc_pthread_sigmask(how, set, old);
    if (error == 0) return 0;
    errno = error;
    return -1;
}
