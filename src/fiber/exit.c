/* SPDX-License-Identifier: MIT */
/*
 * Threads that are ended in the middle of a call: pthread_exit, or pthread_cancel at a point where
 * it takes effect.
 *
 * The C library then walks up the stack and runs every cleanup handler and destructor it finds
 * ("forced unwinding"); at the end of the stack it jumps to the thread's own stack, runs the
 * destructors of thread-specific data, and the thread is gone. On a stack of ours that walk would
 * go through everybody below: a task that runs another in place, the worker's loop, and it would
 * leave all of them without anybody who goes on.
 *
 * [exit-boundary]  so the walk is stopped where the call began. jrt_ctx_call and jrt_ctx_entry
 *   carry a personality routine, which the walk asks before it goes past them. What was called has
 *   been cleaned up by then, what is below has not been touched. If the thread has an on_exit, that
 *   does not return: it leaves the stack, and the walk stays unfinished.
 *
 * [exit-exception]  an exception that the call does not catch must not be caught further down
 *   either, behind the back of everything between. Its search for a catcher ends here as it would
 *   at the end of the stack: with std::terminate.
 *
 * [exit-spoilt]  a thread of which such a walk was stopped must end soon all the same: the C
 *   library believes that it is ending and, for one thing, does not tell it of a setuid any more.
 *   A simulated thread (sim/world.c) cannot be ended alone, and the real one is needed by all the
 *   others: there it is the end, with a sentence.
 *
 * [exit-blind]  the walk ends early at a function without unwind tables. Then no boundary is asked,
 *   and the thread's exit hook (thread.c) finds on_exit still set. Where the call began and what it
 *   left open is not known there: that is the end, with a sentence.
 *
 * Rejected: going on from the exit hook. By then the walk has run through everybody below.
 */
#include "fiber/exit.h"

#include "base/assert.h"
#include "fiber/stack.h"
#include "plat/world.h"

#include <unwind.h>

/* Named by ctx_<cpu>.S. */
_Unwind_Reason_Code jrt_ctx_personality(int version, _Unwind_Action actions,
                                        _Unwind_Exception_Class class,
                                        struct _Unwind_Exception *exception,
                                        struct _Unwind_Context   *context);

_Unwind_Reason_Code jrt_ctx_personality(int version, _Unwind_Action actions,
                                        _Unwind_Exception_Class class,
                                        struct _Unwind_Exception *exception,
                                        struct _Unwind_Context   *context)
{
    (void)version, (void)class, (void)exception, (void)context;
    struct jrt_thread *thread = jrt_thread_self();
    if ((actions & _UA_FORCE_UNWIND) && thread->on_exit != NULL) {
        jrt_demand(jrt_world_now() == NULL, /* [exit-spoilt] */
                   "the thread of a deterministic scheduler was ended (pthread_exit, "
                   "pthread_cancel)");
        thread->on_exit();
    }
    if (actions & _UA_SEARCH_PHASE) return _URC_FATAL_PHASE1_ERROR; /* [exit-exception] */
    return _URC_CONTINUE_UNWIND;
}

/* A call on the stack of a thread that goes on after it. */
struct jrt_guarded {
    struct jrt_landing  landing;
    struct janus_fiber *fiber; /* that the thread was in */
};

enum { EXITED = 64 }; /* beside enum jrt_arrival */

static void land_in_guarded(void)
{
    struct jrt_thread  *thread = jrt_thread_self();
    struct jrt_guarded *guarded = thread->guarded;
    void               *nowhere;
    jrt_demand(thread->current == guarded->fiber,
               "a thread ended inside a fiber (pthread_exit, pthread_cancel)");
    jrt_sanitizer_unwind(__builtin_frame_address(0), guarded->landing.sp);
    (void)jrt_ctx_switch(&nowhere, guarded->landing.sp, EXITED);
    jrt_die("invariant [exit-boundary] broken", "a broken call went on", __FILE__, __LINE__);
}

void jrt_guarded_panic(struct jrt_thread *thread, const char *message)
{
    struct jrt_guarded *guarded = thread->guarded;
    void               *nowhere;
    if (guarded == NULL || thread->current != guarded->fiber) return;
    jrt_thread_keep_message(thread, message);
    jrt_sanitizer_unwind(__builtin_frame_address(0), guarded->landing.sp);
    (void)jrt_ctx_switch(&nowhere, guarded->landing.sp, JRT_ARRIVED_PANICKED);
    jrt_die("invariant [exit-boundary] broken", "a broken call went on", __FILE__, __LINE__);
}

enum jrt_guarded_end jrt_call_guarded(int64_t (*entry)(void *), void *argument,
                                      const struct jrt_stack *stack, int64_t *out_result)
{
    struct jrt_thread  *thread = jrt_thread_self();
    struct jrt_guarded *outer = thread->guarded;
    struct jrt_watch    watch = thread->watch;
    void                (*on_exit)(void) = thread->on_exit;
    struct jrt_guarded  guarded = {.fiber = thread->current};
    (void)jrt_thread_watch_exit(thread); /* where it cannot be: [exit-blind] goes unnoticed */
    thread->guarded = &guarded;
    thread->on_exit = land_in_guarded;
    thread->watch = (struct jrt_watch){stack, &guarded.landing.sp};
    int how = jrt_ctx_call(&guarded.landing, entry, argument);
    thread->watch = watch;
    thread->on_exit = on_exit;
    thread->guarded = outer;
    switch (how) {
    case 0: *out_result = guarded.landing.result; return JRT_GUARDED_RETURNED;
    case EXITED: return JRT_GUARDED_EXITED;
    case JRT_ARRIVED_OVERFLOWED: /* the signal handler landed us here, and told nobody */
        jrt_sanitizer_unwind(jrt_stack_low(stack), guarded.landing.sp);
        return JRT_GUARDED_OVERFLOWED;
    default: return JRT_GUARDED_PANICKED;
    }
}
