/* SPDX-License-Identifier: MIT */
/*
 * Watching signals.
 *
 * The handler does only what a handler may: it sets a bit and adds to an eventfd. While there are
 * watches, a thread reads the eventfd and calls the watches' functions. So these functions may
 * lock, allocate and print.
 *
 * [signal-event]  the eventfd is made once and never closed. A handler on another thread may write
 *   to it after the last watch is gone, and must not write to another file.
 *
 * [signal-late]  a signal may wait for a thread that is slow to run the handler. If the old effect
 *   came back meanwhile, the signal would have it, and often end the process. So the last watch
 *   takes such a signal first.
 *
 * Rejected: signalfd and sigwait. Both need the signal blocked in every thread of the program.
 *
 * Locks: change_lock around adding and removing, with list_lock inside. Watches' functions run
 * under list_lock.
 */
#include "plat/signal.h"

#include "base/assert.h"
#include "base/atomic.h"
#include "plat/seam.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { SIGNALS = 64 };

static pthread_mutex_t          change_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t          list_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the next two */
static struct jrt_signal_watch *watches;
static bool                     quitting;

static struct jrt_os_thread thread;       /* under change_lock; runs while there are watches */
static struct sigaction     old[SIGNALS]; /* by number - 1; under change_lock */
static _Atomic(int)         event = -1;   /* [signal-event] */
static _Atomic(uint64_t)    raised;       /* bit by number - 1 */

static void ring(void)
{
    uint64_t one = 1;
    /* acquire: the eventfd was made before the handler was installed. The write fails only after
     * 2^64 signals. */
    int     fd = jrt_load_acquire(&event);
    ssize_t written = write(fd, &one, sizeof one);
    jrt_debug_invariant("signal-event", fd >= 0 && written == (ssize_t)sizeof one);
    (void)written;
}

static void on_signal(int number)
{
    int saved = errno;
    jrt_fetch_or_acq_rel(&raised, UINT64_C(1) << (number - 1)); /* acq_rel: before the write. */
    ring();
    errno = saved;
}

static void watch_main(void *argument)
{
    (void)argument;
    bool quit = false;
    while (!quit) {
        uint64_t count;
        ssize_t  got = read(jrt_load_acquire(&event), &count, sizeof count); /* acquire: the eventfd
                                                                             * was made before this
                                                                             * thread. */
        if (got < 0 && errno != EINTR) return;
        uint64_t now = jrt_exchange_acq_rel(&raised, (uint64_t)0); /* acq_rel: pairs with the
                                                                    * handler. */
        pthread_mutex_lock(&list_lock);
        for (struct jrt_signal_watch *watch = watches; watch != NULL; watch = watch->next) {
            if (now >> (watch->number - 1) & 1) watch->call(watch->subject);
        }
        quit = quitting;
        pthread_mutex_unlock(&list_lock);
    }
}

bool jrt_signal_can_watch(int number)
{
    static const int never[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    if (number < 1 || number > SIGNALS) return false;
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
        if (number == never[i]) return false;
    }
    return true;
}

static bool is_watched(int number)
{
    for (struct jrt_signal_watch *watch = watches; watch != NULL; watch = watch->next) {
        if (watch->number == number) return true;
    }
    return false;
}

static janus_status start_thread(void)
{
    if (jrt_load_relaxed(&event) < 0) { /* relaxed: under change_lock. */
        int made = eventfd(0, EFD_CLOEXEC);
        if (made < 0) return JANUS_UNAVAILABLE;
        jrt_store_release(&event, made); /* release: pairs with the handler. */
    }
    quitting = false;
    if (!jrt_os_thread_start(&thread, watch_main, NULL, "janus-signals")) return JANUS_NO_MEMORY;
    return JANUS_OK;
}

static void stop_thread(void)
{
    pthread_mutex_lock(&list_lock);
    quitting = true;
    pthread_mutex_unlock(&list_lock);
    ring();
    jrt_os_thread_join(&thread);
}

janus_status jrt_signal_watch_add(struct jrt_signal_watch *watch)
{
    if (!jrt_signal_can_watch(watch->number)) return JANUS_INVALID;
    pthread_mutex_lock(&change_lock);
    bool         first = watches == NULL;
    janus_status status = first ? start_thread() : JANUS_OK;
    if (status == JANUS_OK && !is_watched(watch->number)) {
        struct sigaction ours = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_ONSTACK};
        sigfillset(&ours.sa_mask);
        if (sigaction(watch->number, &ours, &old[watch->number - 1]) != 0) {
            status = JANUS_INVALID; /* the C library keeps this signal for itself */
            if (first) stop_thread();
        }
    }
    if (status == JANUS_OK) {
        pthread_mutex_lock(&list_lock);
        watch->next = watches;
        watches = watch;
        pthread_mutex_unlock(&list_lock);
    }
    pthread_mutex_unlock(&change_lock);
    return status;
}

/* Takes a signal that was sent while it was watched, and whose handler has not run yet, by
 * the rule [signal-late]. */
static void swallow(int number)
{
    const struct timespec none = {0};
    sigset_t              one, before;
    sigemptyset(&one);
    sigaddset(&one, number);
    jrt_debug_invariant("signal-late", !is_watched(number));
    (void)pthread_sigmask(SIG_BLOCK, &one, &before);
    while (sigtimedwait(&one, NULL, &none) > 0 || errno == EINTR) continue;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void jrt_signal_watch_remove(struct jrt_signal_watch *watch)
{
    pthread_mutex_lock(&change_lock);
    pthread_mutex_lock(&list_lock);
    struct jrt_signal_watch **at = &watches;
    while (*at != watch) at = &(*at)->next;
    *at = watch->next;
    pthread_mutex_unlock(&list_lock);
    if (!is_watched(watch->number)) {
        struct sigaction now;
        /* If the program installed its own handler over ours, that handler stays. */
        bool ours = sigaction(watch->number, NULL, &now) == 0 && now.sa_handler == on_signal;
        if (ours) swallow(watch->number);
        if (ours) (void)sigaction(watch->number, &old[watch->number - 1], NULL);
    }
    if (watches == NULL) stop_thread();
    pthread_mutex_unlock(&change_lock);
}

bool jrt_write_all(int fd, const char *bytes, size_t count)
{
    while (count > 0) {
        ptrdiff_t written = jrt_fd_write(fd, bytes, count);
        if (written <= 0) return false;
        bytes += written;
        count -= (size_t)written;
    }
    return true;
}
