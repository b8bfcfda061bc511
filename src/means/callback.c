/* SPDX-License-Identifier: MIT */
/*
 * Callbacks of tokens.
 *
 * [callback-plain]  A callback interrupts whatever the thread was doing. The thread may run a task,
 *   or a worker's loop without a task, or it may be parking a task. Meanwhile the thread counts as
 *   a plain one. So a callback cannot leave the CPU or touch the task that was running. Calls that
 *   would wait return STATE.
 *
 * [callback-account]  A callback that a task registered runs for that task. The task pays for the
 *   callback's memory (ledger.c). Spawns that the task may not make are refused to the callback,
 *   too. The callback makes no channels and no tokens. It has a slice of CALLBACK_OPS, which
 *   checks and library calls use up. If it panics, overflows the stack or uses up its slice, it
 *   ends alone, and the canceller goes on with the next callback.
 *
 * [callback-hold]  A callback that a task registered holds locks in its own name. Locks that it
 *   still holds at its end are abandoned. In the thread's name they would stay locked, because the
 *   thread goes on. The callback could then also unlock what the thread holds.
 *
 * [callback-time]  A nursery's deadline runs callbacks on whatever worker looks at the clock. That
 *   takes time from tasks that have nothing to do with them. So the task that registered a callback
 *   owes that time. It stands aside for as long at the end of its next turn ([aside-owe]). If the
 *   task itself runs the callback, the time is a part of its own turn.
 *
 * A callback that a plain thread registered belongs to the host: it has no slice.
 */
#include "means/callback.h"

#include "fiber/exit.h"
#include "fiber/fuel.h"
#include "means/call.h"
#include "means/holder.h"
#include "means/ledger.h"
#include "means/terms.h"
#include "task/nursery.h"
#include "task/task.h"
#include "task/tell.h"
#include "task/worker.h"

#include <errno.h>

enum { CALLBACK_OPS = 1000 };

janus_status jrt_callback_make(struct jrt_callback *out, void (*function)(void *), void *argument,
                               uint64_t bytes)
{
    const struct jrt_thread *thread = jrt_thread_self();
    const struct jrt_worker *worker = thread->worker;
    const struct jrt_task   *task = worker != NULL ? worker->current : thread->behalf;
    *out = (struct jrt_callback){.function = function, .argument = argument};
    janus_status status = jrt_ledger_charge(bytes, &out->ledger);
    if (status != JANUS_OK || out->ledger == NULL) return status;
    out->terms = jrt_terms_here(task);
    if (out->terms != NULL) jrt_fetch_add_relaxed(&out->terms->refs, 1u); /* relaxed: alive. */
    return JANUS_OK;
}

void jrt_callback_drop(struct jrt_callback *callback, uint64_t bytes)
{
    jrt_terms_put(callback->terms);
    jrt_ledger_refund(callback->ledger, bytes);
    callback->function = NULL;
    callback->terms = NULL;
    callback->ledger = NULL;
}

static int64_t call(void *argument)
{
    const struct jrt_callback *callback = argument;
    callback->function(callback->argument);
    return 0;
}

/* Reports the broken callback; the caller's walk over callbacks goes on. */
static void tell_broken(const struct jrt_thread *thread, const char *kind, enum jrt_guarded_end end)
{
    const char *why = thread->panic_message;
    if (end == JRT_GUARDED_EXITED) why = "it ended its thread (pthread_exit or pthread_cancel)";
    if (end == JRT_GUARDED_OVERFLOWED) why = "it overflowed the stack";
    jrt_tell_callback(kind != NULL ? kind : "a token's callback", why);
}

/* *used: the operations of its slice. */
static enum jrt_guarded_end call_counted(const struct jrt_callback *callback,
                                         const struct jrt_stack *stack, uint64_t *used)
{
    int64_t result, fuel = jrt_fuel_get();
    *used = 0;
    if (callback->ledger != NULL) jrt_fuel_set(CALLBACK_OPS);
    enum jrt_guarded_end end = jrt_call_guarded(call, (void *)(uintptr_t)callback, stack, &result);
    if (callback->ledger != NULL) {
        jrt_debug_invariant("callback-account", jrt_fuel_get() <= CALLBACK_OPS);
        int64_t left = jrt_fuel_get();
        *used = (uint64_t)(CALLBACK_OPS - (left > 0 ? left : 0));
        jrt_fuel_set(fuel);
    }
    return end;
}

/* Calls it as [callback-plain] demands. */
static uint64_t call_plain(const struct jrt_callback *callback)
{
    uint64_t           used;
    struct jrt_thread *thread = jrt_thread_self();
    struct jrt_worker *worker = thread->worker;
    const void        *helps = thread->helps;
    const char        *kind = callback->kind;
    void              *behalf = thread->behalf;
    const void        *outer = thread->callback;
    bool               calls_back = thread->calls_back;
    void               (*on_panic)(const char *) = thread->on_panic;
    /* A callback must not stop this scheduler. */
    if (worker != NULL) thread->helps = worker->scheduler;
    thread->worker = NULL;
    thread->behalf = NULL;
    thread->on_panic = NULL;
    thread->calls_back = true;
    thread->callback = callback->ledger != NULL ? callback : NULL;
    void *holder = thread->holder;
    if (callback->ledger != NULL) thread->holder = NULL; /* [callback-hold] */
    const struct jrt_stack *stack = worker != NULL ? thread->watch.stack : NULL;
    enum jrt_guarded_end    end = call_counted(callback, stack, &used);
    jrt_debug_invariant("callback-plain", jrt_thread_self() == thread && thread->worker == NULL);
    if (callback->ledger != NULL) {
        jrt_debug_invariant("callback-hold", holder == NULL || thread->holder != holder);
        jrt_holder_thread_over();
        thread->holder = holder;
    }
    thread->on_panic = on_panic;
    thread->worker = worker;
    thread->helps = helps;
    thread->behalf = behalf;
    thread->calls_back = calls_back;
    thread->callback = outer;
    if (jrt_likely(end == JRT_GUARDED_RETURNED)) return used;
    if (end == JRT_GUARDED_EXITED) {
        /* A thread that the program owns can neither go on nor end here. A worker ends its thread
         * in its loop. */
        jrt_demand(worker != NULL, "a token's callback ended its thread (pthread_exit)");
        (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
        jrt_store_relaxed(&worker->doomed, true); /* relaxed: its own, [replace-doom]. */
    }
    tell_broken(thread, kind, end);
    return used;
}

uint64_t jrt_callback_run_for(struct jrt_task *task, void (*function)(void *), void *argument,
                              const char *kind)
{
    struct jrt_terms   *terms = jrt_terms_here(task); /* alive: the task is */
    struct jrt_ledger   ledger = {.scheduler = task->nursery->scheduler, .task = task};
    struct jrt_callback callback = {function, argument, &ledger, terms, kind};
    return call_plain(&callback);
}

void jrt_callback_run(const struct jrt_callback *callback)
{
    struct jrt_ledger *ledger = callback->ledger;
    if (ledger != NULL && !jrt_ledger_enter(ledger)) return;
    const struct jrt_worker *worker = jrt_worker_self();
    const struct jrt_task   *task = worker != NULL ? worker->current : NULL;
    bool     owes = worker != NULL && ledger != NULL && (task == NULL || ledger->task != task);
    uint64_t began_ns = owes ? jrt_clock_now_ns() : 0;
    int      error = errno; /* the interrupted code's; a callback stays on its thread */
    (void)call_plain(callback);
    errno = error;
    jrt_debug_invariant("callback-time", jrt_worker_self() == worker);
    if (owes) {
        /* relaxed: a time. */
        jrt_fetch_add_relaxed(&ledger->owed_ns, jrt_clock_now_ns() - began_ns);
    }
    if (ledger != NULL) jrt_ledger_leave(ledger);
}

/* jrt_stack_check and janus_check call this on a thread that is no worker. */
void jrt_plain_check(int64_t cost)
{
    jrt_point(); /* [sim-point] */
    if (jrt_likely(jrt_thread_self()->callback == NULL)) return;
    int64_t left = jrt_fuel_get() - cost;
    jrt_fuel_set(left > 0 ? left : 0); /* [fuel-sign] */
    if (left < 0) janus_panic("a callback used up its slice: it must make fewer library calls");
}

void jrt_callback_check(void)
{
    if (jrt_unlikely(jrt_thread_self()->callback != NULL)) jrt_plain_check(1);
}
