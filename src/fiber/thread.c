/* SPDX-License-Identifier: MIT */
#include "fiber/thread.h"

#include "base/assert.h"
#include "base/atomic.h"
#include "plat/name.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

_Static_assert(sizeof(struct jrt_thread) <= JRT_THREAD_BYTES, "it fits; see ctx_<cpu>.S");

static pthread_once_t exit_hook_once = PTHREAD_ONCE_INIT;
static pthread_key_t  exit_hook;
static bool           exit_hook_works;

static _Atomic(unsigned) threads_seen;

_Thread_local struct jrt_sanitizer_spares jrt_sanitizer_spares;

__attribute__((noinline)) struct jrt_thread *jrt_thread_self(void)
{
    struct jrt_thread *thread = &jrt_thread_here;
    /* Not pure: even a compiler that sees the body must not merge two calls. */
    __asm__ volatile("" : "+r"(thread) : : "memory");
    return thread;
}

void jrt_thread_keep_message(struct jrt_thread *thread, const char *message)
{
    (void)jrt_text_copy(thread->panic_message, sizeof thread->panic_message, message);
}

enum { DEAD_BYTES = 16384 }; /* of a thread's own stack: its frames are few */

/* Runs at thread exit. If a later destructor resumes a fiber, the thread attaches again. */
static void detach(void *value)
{
    struct jrt_thread *thread = value;
    /* The system may have left frames below this one in the middle. */
    char *here = __builtin_frame_address(0);
    jrt_sanitizer_unwind(here - DEAD_BYTES, here);
    jrt_demand(thread->on_exit == NULL, /* [exit-blind] in exit.c */
               "a thread ended (pthread_exit, pthread_cancel) in code without unwind tables");
    jrt_demand(thread->current == NULL, "a thread ended inside a fiber (pthread_exit?)");
    jrt_altstack_close(&thread->altstack);
    jrt_sanitizer_thread_ends();
    thread->attached = false;
}

static void make_exit_hook(void) { exit_hook_works = pthread_key_create(&exit_hook, detach) == 0; }

unsigned jrt_thread_number(struct jrt_thread *thread)
{
    if (jrt_unlikely(thread->number == 0)) {
        /* relaxed: only needs a number of its own. */
        unsigned number = jrt_fetch_add_relaxed(&threads_seen, 1u) + 1;
        thread->number = number != 0 ? number : 1; /* after 2^32 threads */
    }
    return thread->number;
}

bool jrt_thread_watch_exit(struct jrt_thread *thread)
{
    pthread_once(&exit_hook_once, make_exit_hook);
    return exit_hook_works && pthread_setspecific(exit_hook, thread) == 0;
}

bool jrt_thread_attach_now(struct jrt_thread *thread)
{
    if (!jrt_thread_watch_exit(thread)) return false;
    if (!jrt_altstack_open(&thread->altstack)) return false;
    /* A fault whose signal is blocked ends the process, and servers often block all signals. */
    sigset_t fault;
    sigemptyset(&fault);
    sigaddset(&fault, SIGSEGV);
    (void)pthread_sigmask(SIG_UNBLOCK, &fault, NULL);
    thread->attached = true;
    return true;
}
