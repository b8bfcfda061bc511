/* SPDX-License-Identifier: MIT */
/*
 * Stack overflow: from a SIGSEGV to a panic of one fiber.
 *
 * The handler runs on the thread's alternate stack, for the fiber's own is used up. A fault
 * address in the guard of the fiber that runs here is an overflow; it is told by the address
 * alone, since guard markers fault as SEGV_MAPERR and protected pages as SEGV_ACCERR. The handler
 * then rewrites the interrupted registers so that returning from it goes on in the resumer, as
 * after any other switch. It calls nothing that locks or allocates, and leaves the signal mask
 * to the return, which restores it.
 *
 * Every other SIGSEGV is passed to whoever had the signal before us, with its arguments as they
 * came, its mask applied; where that was the default, the default is put back and the
 * instruction runs again, so that a core file shows the place.
 *
 * What this cannot mend: a fiber that overflows while inside somebody else's lock (malloc's, or
 * stdio's) leaves it locked. Our own calls probe the stack before they lock.
 *
 * Signal handlers belong to the process, so this is the one piece of global state: how many
 * pools want the handler, and whom it replaced.
 */
#include "base/assert.h"
#include "fiber/fiber.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

static pthread_mutex_t  lock = PTHREAD_MUTEX_INITIALIZER; /* guards users and the two calls */
static unsigned         users;
static struct sigaction previous; /* written before the handler is installed */

bool janus_fault_claim(int signal_number, void *siginfo, void *context)
{
    const siginfo_t *info = siginfo;
    if (signal_number != SIGSEGV) return false;
    if (info->si_code != SEGV_MAPERR && info->si_code != SEGV_ACCERR) return false;
    struct jrt_thread        *thread = jrt_thread_self();
    const struct janus_fiber *fiber = thread->current;
    if (fiber == NULL) return false;
    const char *address = info->si_addr;
    const char *low = jrt_stack_low(fiber->stack);
    if (address >= low || address < low - fiber->stack->slab->class->guard_bytes) return false;

    ucontext_t *interrupted = context;
    thread->fault_address = address;
    thread->fault_code = jrt_ctx_signal_pc(interrupted);
    jrt_ctx_land_from_signal(interrupted, fiber->resumer->sp, JRT_ARRIVED_OVERFLOWED);
    return true;
}

/* [fault-loop] Whom we replaced may have been installed after an earlier us and pass on in turn
 * to us, by a plain call. That call's frame lies below the one that passed on; a new signal,
 * even after the old handler was left by longjmp, starts at the alternate stack's top again. */
static bool comes_round(struct jrt_thread *thread, const char *frame)
{
    const char *passing = thread->passing_frame;
    thread->passing_frame = frame;
    return passing != NULL && frame < passing && passing - frame < (1 << 20);
}

static void pass_on(int number, siginfo_t *info, void *context)
{
    bool loop = comes_round(jrt_thread_self(), __builtin_frame_address(0)); /* [fault-loop] */
    bool by_default = !(previous.sa_flags & SA_SIGINFO) &&
                      (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN);
    if (by_default || loop) {
        struct sigaction action = {.sa_handler = SIG_DFL};
        (void)sigaction(number, &action, NULL);
        /* A real fault comes again by itself; one that was sent has to be sent again. */
        if (info->si_code <= 0) (void)raise(number);
        return;
    }
    sigset_t mask;
    (void)pthread_sigmask(SIG_BLOCK, &previous.sa_mask, &mask);
    if (previous.sa_flags & SA_SIGINFO) {
        previous.sa_sigaction(number, info, context);
    } else {
        previous.sa_handler(number);
    }
    (void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
    jrt_thread_self()->passing_frame = NULL;
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    int error = errno;
    if (!janus_fault_claim(number, info, context)) pass_on(number, info, context);
    errno = error;
}

static bool is_ours(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == on_fault;
}

bool jrt_fault_open(void)
{
    bool works = true;
    pthread_mutex_lock(&lock);
    if (users == 0) {
        struct sigaction now;
        works = sigaction(SIGSEGV, NULL, &now) == 0;
        if (works && !is_ours(&now)) {
            struct sigaction action = {.sa_sigaction = on_fault,
                                       .sa_flags = SA_SIGINFO | SA_ONSTACK};
            sigemptyset(&action.sa_mask);
            previous = now;
            works = sigaction(SIGSEGV, &action, NULL) == 0;
        }
    }
    if (works) users++;
    pthread_mutex_unlock(&lock);
    return works;
}

void jrt_fault_close(void)
{
    pthread_mutex_lock(&lock);
    jrt_invariant("fault-users", users > 0);
    if (--users == 0) {
        /* [fault-users] Somebody who came after us keeps the signal; he may still call us, and
         * `previous` stays good for that. */
        struct sigaction now;
        if (sigaction(SIGSEGV, NULL, &now) == 0 && is_ours(&now)) {
            (void)sigaction(SIGSEGV, &previous, NULL);
        }
    }
    pthread_mutex_unlock(&lock);
}
