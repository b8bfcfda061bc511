/* SPDX-License-Identifier: MIT */
/*
 * Threads that end in the middle of a call: by pthread_exit, or by pthread_cancel at a cancellation
 * point.
 *
 * The C library then walks up the stack and runs every cleanup handler and destructor ("forced
 * unwinding"). At the end of the stack it jumps to the thread's own stack, runs the destructors of
 * thread-specific data and ends the thread. On a stack of ours that walk would go through every
 * caller: a task that runs another in place, and the worker's loop. It would leave all of them
 * without a thread.
 *
 * [exit-boundary]  so the walk stops where the call began. jrt_ctx_call and jrt_ctx_entry carry a
 *   personality routine, which the walk asks before it passes them. At that moment the called code
 *   has been cleaned up and its callers are untouched. If the thread has an on_exit function, that
 *   function leaves the stack and does not return. The walk stays unfinished.
 *
 * [exit-exception]  if a call does not catch an exception, no caller further down may catch it,
 *   past everything in between. The search for a catcher ends at the boundary as at the end of the
 *   stack: with std::terminate.
 *
 * [exit-spoilt]  a thread whose walk was stopped must still end soon. The C library takes it for an
 *   ending thread and, for example, no longer applies a setuid to it. A part of a world
 *   (sim/world.c) cannot end alone, and the other parts need the real thread. There the process
 *   ends, with a message.
 *
 * [exit-blind]  the walk ends early at a function without unwind tables. Then it asks no boundary,
 *   and the thread's exit hook (thread.c) finds on_exit still set. The hook does not know where the
 *   call began or what it left open. So the process ends, with a message.
 *
 * Rejected: continuing from the exit hook. By then the walk has run through every caller.
 */
#include "fiber/exit.h"

#include "base/assert.h"
#include "plat/world.h"
#include "stack/stack.h"

#include <unwind.h>

/* ctx_<cpu>.S names it. */
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
                   "the thread of a deterministic scheduler ended (pthread_exit, "
                   "pthread_cancel)");
        thread->on_exit();
    }
    /* Without a catcher, only a forced walk comes here after the search. */
    jrt_debug_invariant("exit-exception", (actions & (_UA_SEARCH_PHASE | _UA_FORCE_UNWIND)) != 0);
    if (actions & _UA_SEARCH_PHASE) return _URC_FATAL_PHASE1_ERROR; /* [exit-exception] */
    return _URC_CONTINUE_UNWIND;
}

/* A call on the stack of a thread that continues after it. */
struct jrt_guarded {
    struct jrt_landing  landing;
    struct janus_fiber *fiber; /* the fiber that the thread was in */
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
    (void)jrt_thread_watch_exit(thread); /* if refused, [exit-blind] goes unnoticed */
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
    case JRT_ARRIVED_OVERFLOWED: /* the signal handler landed here and reported nothing */
        jrt_sanitizer_unwind(jrt_stack_low(stack), guarded.landing.sp);
        return JRT_GUARDED_OVERFLOWED;
    default: return JRT_GUARDED_PANICKED;
    }
}
