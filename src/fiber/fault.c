/* SPDX-License-Identifier: MIT */
/*
 * Stack overflow: from a SIGSEGV to a panic of one fiber.
 *
 * The handler runs on the thread's alternate stack, because the fiber's own is used up. A fault
 * address in the guard of the running fiber is an overflow. The address alone decides, because
 * guard markers fault as SEGV_MAPERR and protected pages as SEGV_ACCERR. The handler rewrites the
 * interrupted registers. Its return then continues in the resumer, as after any other switch. It
 * calls nothing that locks or allocates. The return restores the signal mask.
 *
 * If a signal's frame does not fit on the fiber's stack, the kernel also sends a SIGSEGV, without
 * an address. If the stack pointer is near the end, that is an overflow too.
 *
 * The handler forwards every other SIGSEGV to the handler before it, with the same arguments, and
 * honours its mask and flags. If that was the default, it restores the default, and the instruction
 * runs again. So a core file shows the place.
 *
 * [fault-once]  the handler is installed once. When the last pool closes, a later handler may lie
 *   on top and forward faults to ours for ever. Then ours stays installed, `previous` stays
 *   unchanged, and the next pool changes nothing.
 *
 * [fault-locked]  an overflow while this thread holds a lock of the library would leave it locked
 *   for ever. So it ends the process with a message, not only the fiber.
 *
 * Limits: a fiber that overflows while it holds a foreign lock (malloc's, stdio's) leaves it
 * locked. The library's own calls probe the stack before they lock. A fiber that overflows inside a
 * signal handler on its own stack leaves that handler's signal mask.
 *
 * Signal handlers belong to the process, so this file has global state: how many pools want the
 * handler, and which handler it replaced.
 */
#include "base/assert.h"
#include "base/atomic.h"
#include "fiber/fiber.h"
#include "plat/peek.h"
#include "plat/world.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

static pthread_mutex_t  lock = PTHREAD_MUTEX_INITIALIZER; /* guards the next two */
static unsigned         users;
static bool             installed;
static struct sigaction previous;       /* written before the installation, never after */
static _Atomic(bool)    previous_spent; /* SA_RESETHAND: its one call is used up */

/* Beyond the signal frame: what the kernel needs to store it, and the red zone. */
enum { FRAME_SLACK = 1024 };

static bool is_overflow(const struct jrt_stack *stack, const siginfo_t *info,
                        const ucontext_t *interrupted)
{
    const char *low = jrt_stack_low(stack);
    const char *guard = low - stack->slab->class->guard_bytes;
    if (info->si_code == SEGV_MAPERR || info->si_code == SEGV_ACCERR) {
        const char *address = info->si_addr;
        return address >= guard && address < low;
    }
    if (info->si_code != SI_KERNEL) return false;
    const char *sp = jrt_ctx_signal_sp(interrupted);
    return sp >= guard && sp < low + jrt_signal_frame_bytes() + FRAME_SLACK;
}

bool janus_fault_claim(int signal_number, void *siginfo, void *context)
{
    const siginfo_t        *info = siginfo;
    ucontext_t             *interrupted = context;
    struct jrt_thread      *thread = jrt_thread_self();
    const struct jrt_stack *stack = thread->watch.stack;
    if (signal_number != SIGSEGV || info == NULL || interrupted == NULL) return false;
    if (jrt_peek_recover(interrupted)) return true; /* [peek-fault] */
    if (stack == NULL) return false;
    if (!is_overflow(stack, info, interrupted)) return false;
    jrt_demand(thread->holding == 0,
               "a fiber ran out of stack inside a call to janusrt"); /* [fault-locked] */
    thread->fault_address = info->si_addr;
    thread->fault_code = jrt_ctx_signal_pc(interrupted);
    if (thread->watch.landing == NULL) { /* a task's overflow is reported */
        thread->fault_frame_count = jrt_frames_of_signal(thread->fault_frames, JRT_FRAMES_MAX);
    }
    void **landing = thread->watch.landing != NULL ? thread->watch.landing : thread->rescue;
    jrt_contract(
        landing != NULL,
        "a task overflowed its stack; the rescue stack is used up by the "
        "overflow before it, and the system refused memory for another"); /* [rescue-late] */
    jrt_ctx_land_from_signal(interrupted, *landing, JRT_ARRIVED_OVERFLOWED);
    return true;
}

/* Does what would happen without this handler. */
static void by_default(int number, const siginfo_t *info)
{
    struct sigaction action = {.sa_handler = SIG_DFL};
    (void)sigaction(number, &action, NULL);
    /* A real fault repeats by itself. A signal that was sent, or could not be delivered, does
     * not. */
    if (info->si_code <= 0 || info->si_code == SI_KERNEL) (void)raise(number);
}

static void call_previous(int number, siginfo_t *info, void *context)
{
    sigset_t mask;
    sigset_t fault;
    sigemptyset(&fault);
    sigaddset(&fault, number);
    (void)pthread_sigmask(SIG_BLOCK, &previous.sa_mask, &mask);
    if (previous.sa_flags & SA_NODEFER) (void)pthread_sigmask(SIG_UNBLOCK, &fault, NULL);
    if (previous.sa_flags & SA_SIGINFO) {
        previous.sa_sigaction(number, info, context);
    } else {
        previous.sa_handler(number);
    }
    (void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

static void pass_on(int number, siginfo_t *info, void *context)
{
    bool with_info = (previous.sa_flags & SA_SIGINFO) != 0;
    bool ignored = !with_info && previous.sa_handler == SIG_IGN;
    if (ignored && info->si_code <= 0) return; /* sent, not caused by a fault */
    bool spent = false;
    if (previous.sa_flags & (int)SA_RESETHAND) {
        /* relaxed: one of all faults wins. Nothing else depends on the order. */
        spent = jrt_exchange_relaxed(&previous_spent, true);
    }
    if (spent || ignored || (!with_info && previous.sa_handler == SIG_DFL)) {
        by_default(number, info);
    } else {
        call_previous(number, info, context);
    }
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
    jrt_contract_watch();
    jrt_lock(&lock);
    if (!installed) { /* [fault-once] */
        struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
        sigemptyset(&action.sa_mask);
        works = sigaction(SIGSEGV, NULL, &previous) == 0 && sigaction(SIGSEGV, &action, NULL) == 0;
        installed = works;
        /* relaxed: no thread is in the handler before it is installed. */
        jrt_store_relaxed(&previous_spent, false);
    }
    if (works) users++;
    jrt_unlock(&lock);
    return works;
}

void jrt_fault_close(void)
{
    jrt_lock(&lock);
    jrt_invariant("fault-once", users > 0);
    struct sigaction now;
    if (--users == 0 && sigaction(SIGSEGV, NULL, &now) == 0 && is_ours(&now)) {
        installed = sigaction(SIGSEGV, &previous, NULL) != 0;
    }
    jrt_unlock(&lock);
}
