/* SPDX-License-Identifier: MIT */
/*
 * The end of a task's call. The call returns, panics, is unwound, or overflows the stack. Then the
 * library ends the task's nurseries, runs its defers, and its nursery counts it off.
 *
 * On an overflow, the signal handler continues on the worker's rescue strand. It cannot use the
 * overflowed stack, because the task's open nurseries lie there. The rescuer ends them. Then the
 * call is broken off where it began.
 *
 * [rescue-late]  The rescuer may wait, and other tasks run meanwhile. So the worker makes a second
 *   rescue strand first. If the system refuses the memory, the worker goes on without. It tries
 *   again when the rescuer has finished, and whenever it needs a stack. A second overflow before
 *   that ends the process, with a message.
 *
 * [ending-open]  A task that returns with a nursery open has left the frame that holds the nursery,
 *   and its children still use it. So nothing may be written there before they have ended. The
 *   caller of the task's entry switches straight to the rescue strand. The frame of that switch
 *   lies where that of jrt_ctx_call lay, above the entry's. The rescuer ends the nurseries, and
 *   the task counts as panicked. The rule holds for a defer, too.
 *   A function that the task called earlier may also have left a nursery behind. The library finds
 *   that here, unless its frame was overwritten meanwhile. Then the process ends, because the
 *   books of its children are gone. ThreadSanitizer's own calls write there.
 */
#include "cancel/cancel.h"
#include "fiber/exception.h"
#include "means/callback.h"
#include "means/holder.h"
#include "nursery/fork.h"
#include "nursery/nursery.h"
#include "nursery/pay.h"
#include "nursery/run.h"
#include "task/nursery.h"
#include "task/task.h"
#include "task/tell.h"
#include "task/upcalls.h"
#include "task/worker.h"
#include "work/leave.h"
#include "work/turn.h"
#include "work/work.h"

#include <stdio.h>
#include <stdlib.h>

static bool was_rescued(int how) { return how == JRT_ENDED_OVERFLOWED || how == JRT_ENDED_RESCUED; }

static int64_t call_defer(void *argument)
{
    struct jrt_defer defer = *(struct jrt_defer *)argument;
    free(argument);
    defer.function(defer.argument);
    return 0;
}

/* Only the first panic counts. */
static void note_panic(struct jrt_task *task, enum jrt_ending how)
{
    if (task->panic != JANUS_PANIC_KIND_NONE) return;
    if (how == JRT_ENDED_PANICKED || how == JRT_ENDED_RESCUED)
        task->panic = JANUS_PANIC_KIND_EXPLICIT;
    if (how == JRT_ENDED_OVERFLOWED) task->panic = JANUS_PANIC_KIND_STACK_OVERFLOW;
}

/* Notes the task's first panic, and reports it. */
static void begin_panic(struct jrt_task *task, janus_panic_kind kind, const char *message,
                        const void *const *frames, unsigned frame_count)
{
    jrt_panicked(message);
    task->dirty = true;
    if (task->panic != JANUS_PANIC_KIND_NONE)
        return; /* a panic of a defer does not replace the first */
    task->panic = (uint8_t)kind;
    /* NULL where memory is short. Nobody pays for the copy. So it is only a little longer than what
     * reports show. */
    if (kind == JANUS_PANIC_KIND_EXPLICIT)
        task->fault_data = jrt_strndup(message, (size_t)2 * JRT_MESSAGE_BYTES);
    jrt_tell_panic(task, kind, message, frames, frame_count);
}

/* Ends the holds of a task whose call has ended. A task that returned with one open panics. */
static int end_holds(struct jrt_task *task, int how)
{
    struct jrt_purse *purse = task->dirty ? task->purse : NULL;
    if (jrt_likely(purse == NULL || purse->holds == 0)) return how;
    purse->holds = 0;
    purse->hold_due = purse->hold_over = false;
    if (how != 0) return how;
    begin_panic(task, JANUS_PANIC_KIND_EXPLICIT,
                "it returned with a hold open: janus_hold_end is missing", NULL, 0);
    return JRT_ENDED_PANICKED;
}

/* A call that was broken off in the middle of a check leaves a negative word, [fuel-sign]. */
static void mend_word(int how)
{
    if (how != 0 && jrt_fuel_get() < 0) jrt_fuel_set(0);
}

/* A defer that panics ends there, the task has failed, and the other defers still run. A defer may
 * also use up the cleanup allowance, or get no memory for its books. Then it ends, too, and this
 * function returns that as a status. */
static janus_status run_defers(struct jrt_task *task)
{
    struct jrt_shield grace;
    janus_status      broken = JANUS_OK;
    jrt_shield_for_cleanup(task, &grace);
    while (task->defers != NULL) {
        struct jrt_defer *defer = task->defers;
        task->defers = defer->next;
        int how = jrt_ctx_call(&task->landing, call_defer, defer);
        JRT_TASK_LEFT_OPEN(task, how);
        if (was_rescued(how)) jrt_arrive_from_rescue();
        mend_word(how);
        how = end_holds(task, how);
        if (how != 0) note_panic(task, (enum jrt_ending)how);
        if (how == JRT_ENDED_EXHAUSTED) broken = JANUS_BUDGET_EXHAUSTED;
        if (how == JRT_ENDED_NO_MEMORY) broken = JANUS_NO_MEMORY;
        jrt_shield_only(task, &grace); /* the defer may have left shields of its own */
    }
    return broken;
}

/* Cleans up after the task's call has ended. The task is still current and may wait. */
static void clean_up(struct jrt_task *task, enum jrt_ending how)
{
    task->ending = task->dirty = true;
    note_panic(task, how);
    int64_t result = task->landing.result; /* defers have results of their own */
    if (how == JRT_ENDED_UNWOUND) result = JANUS_CANCELLED;
    if (how == JRT_ENDED_EXHAUSTED) result = JANUS_BUDGET_EXHAUSTED;
    if (how == JRT_ENDED_NO_MEMORY) result = JANUS_NO_MEMORY;
    if (jrt_unlikely(task->defers != NULL)) {
        janus_status broken = run_defers(task);
        if (result >= 0 && broken != JANUS_OK) result = broken;
    }
    task->landing.result = task->panic != JANUS_PANIC_KIND_NONE ? INT64_MIN : result;
}

/* A child does not see the exception that its parent is handling. If it is broken off inside a
 * handler, it leaves nothing behind. */
int jrt_task_call_aside(struct jrt_task *task)
{
    struct jrt_exceptions handled = jrt_exceptions_take();
    int                   how = jrt_ctx_call(&task->landing, task->entry, task->argument);
    JRT_TASK_LEFT_OPEN(task, how);
    if (how != 0) jrt_exceptions_drop();
    jrt_exceptions_put(handled);
    return how;
}

struct jrt_worker *jrt_task_run_traced(struct jrt_worker *worker, struct jrt_task *task,
                                       struct jrt_nursery *n, struct jrt_task *owner)
{
    return jrt_task_run_as(worker, task, n, owner, true);
}

int jrt_task_look_below(struct jrt_task *task, const struct jrt_strand *strand, int how)
{
    /* An overflow that was found before is mended. An overflow of a task that panics changes
     * nothing. */
    if (how == JRT_ENDED_OVERFLOWED || jrt_stack_intact_all(strand->stack)) return how;
    jrt_stack_mend(strand->stack);
    if (how == JRT_ENDED_PANICKED || task->panic != JANUS_PANIC_KIND_NONE) return how;
    task->fault_data = task->fault_code = NULL; /* nobody saw the place */
    begin_panic(task, JANUS_PANIC_KIND_STACK_OVERFLOW,
                "its stack overflowed: spawn it with a larger stack_bytes", NULL, 0);
    return how == 0 ? JRT_ENDED_PANICKED : how;
}

/*
 * [ending-drop]  A spawn can name a function that drops the argument of a child whose entry is
 *   never called. The record holds the function until the child starts. It runs before the child's
 *   end is counted. So the owner finds the argument dropped after janus_nursery_end. It runs as a
 *   callback of the child ([callback-plain]), on the stack of the thread that found the child
 *   cancelled. The keeper of a resident child may drop later, but before that end is counted.
 */
void jrt_task_drop(struct jrt_task *task, void (*drop)(void *), void *argument)
{
    (void)jrt_callback_run_for(task, drop, argument, "a spawn's drop function");
}

void jrt_task_drop_argument(struct jrt_task *task)
{
    void (*drop)(void *) = task->dirty ? task->drop : NULL;
    jrt_debug_invariant("ending-drop", !jrt_task_began(task));
    if (drop != NULL) jrt_task_drop(task, drop, task->argument);
}

/* Ends a task that was cancelled before it started. A resident task cleans up after itself. */
struct jrt_worker *jrt_task_skip(struct jrt_worker *worker, struct jrt_task *task,
                                 struct jrt_task *below)
{
    if (jrt_task_is_resident(task)) {
        return jrt_task_run_anyway(worker, task, task->nursery, below, true);
    }
    jrt_count(&worker->stats.tasks_cancelled);
    jrt_task_drop_argument(task); /* before the result, which replaces the argument */
    task->landing.result = JANUS_CANCELLED;
    task->saw_cancel = task->dirty = true;
    jrt_nursery_follow(task->nursery);
    jrt_nursery_child_done(worker, task, below);
    return worker;
}

/* Ends a call in any way but the plainest. */
static struct jrt_worker *end_call(struct jrt_task *task, int how, struct jrt_task *below)
{
    if (jrt_unlikely(was_rescued(how))) jrt_arrive_from_rescue();
    if (jrt_unlikely(how != 0)) { /* the call may have ended in a fiber of its own */
        struct jrt_worker *worker = jrt_worker_self();
        worker->thread->current = NULL;
        worker->thread->watch = (struct jrt_watch){worker->strand->stack, NULL};
    }
    mend_word(how);
    how = end_holds(task, how);
    if (jrt_unlikely(jrt_task_is_resident(task)) && jrt_rest_wanted(task, how)) {
        return jrt_rest(task, below);
    }
    if (how != 0 || task->defers != NULL) {
        clean_up(task, (enum jrt_ending)how);
    }
    if (jrt_unlikely(task->dirty)) jrt_turn_ends(task);
    struct jrt_worker *worker = jrt_worker_self(); /* [worker-again] */
    /* relaxed: its own. */
    if (jrt_unlikely(task->dirty) && jrt_load_relaxed(&task->record.holder) != NULL) {
        jrt_holder_end(worker, task);
    }
    worker->current = below;
    jrt_nursery_child_done(worker, task, below);
    return worker;
}

struct jrt_worker *jrt_task_ran_slow(struct jrt_task *task, int how, struct jrt_task *owner,
                                     int64_t below)
{
    struct jrt_worker *worker = end_call(task, how, owner);
    jrt_fuel_set(below);
    if (owner != NULL) jrt_turn_toll(worker, JRT_TOLL_ENDING);
    return worker;
}

void jrt_nurseries_abandon(struct jrt_task *task)
{
    jrt_shield_whole(task);
    struct jrt_nursery *n = task->innermost;
    while (n != NULL) {
        struct jrt_nursery *outer = jrt_nursery_outer(n);
        enum jrt_on_heap    on_heap = (enum jrt_on_heap)n->on_heap;
        if (on_heap == JRT_SUPERVISED) jrt_upcalls.supervisor_abandon(n);
        (void)jrt_nursery_cancel(n, JANUS_CANCEL_REASON_PARENT);
        (void)jrt_nursery_end(n, NULL);
        if (on_heap != JRT_NOT_ON_HEAP) jrt_nursery_free(n, on_heap);
        n = outer;
    }
    task->innermost = NULL;
}

void jrt_task_break_off(struct jrt_task *task, enum jrt_ending how)
{
    jrt_forks_drop(jrt_worker_self()->strand, task);
    jrt_nurseries_abandon(task);
    struct jrt_worker *worker = jrt_worker_self(); /* [worker-again] */
    void              *nowhere;
    jrt_sanitizer_unwind(jrt_stack_low(worker->strand->stack), task->landing.sp);
    (void)jrt_ctx_switch(&nowhere, task->landing.sp, (int)how);
    jrt_die("invariant [worker-again] broken", "a broken call went on", __FILE__, __LINE__);
}

janus_status jrt_task_cancelled_only(struct jrt_task *task)
{
    if (jrt_task_only_in_scope(task)) {
        struct jrt_nursery *scope = jrt_task_cancelled_scope(task);
        jrt_scopes_tell(task, scope);
        jrt_nursery_merge(scope); /* others see at once whether its children have ended */
        return JANUS_CANCELLED;
    }
    task->saw_cancel = task->dirty = true;
    /* Found further up: the nurseries between are cancelled, too. */
    jrt_nursery_follow(task->nursery);
    jrt_scopes_tell(task, NULL);
    return JANUS_CANCELLED;
}

janus_status jrt_task_cancelled_again(struct jrt_task *task)
{
    (void)jrt_task_cancelled_only(task);
    jrt_purse_bear(task); /* [cancel-patience] */
    return JANUS_CANCELLED;
}

janus_status jrt_task_cancelled_or_end(struct jrt_task *task)
{
    bool unwind = task->cancel_mode == JANUS_CANCEL_MODE_UNWIND && !task->ending;
    if (unwind && !jrt_task_only_in_scope(task)) {
        (void)jrt_task_cancelled_only(task);
        jrt_task_break_off(task, JRT_ENDED_UNWOUND);
    }
    return jrt_task_cancelled_again(task);
}

/* Endings that cannot go on on the task's own stack: [ending-open], an overflow, a panic close to
 * the stack's end. */

/* Checks that nobody has overwritten the task's open nurseries. */
static void check_open(const struct jrt_task *task)
{
    for (const struct jrt_nursery *n = task->innermost; n != NULL; n = jrt_nursery_outer(n)) {
        if (n->owner == task && n->scheduler == task->nursery->scheduler) continue;
        jrt_die("memory overwritten",
                "a function returned with a nursery open, and its frame was "
                "used again while children ran",
                __FILE__, __LINE__);
    }
}

static void panic_open(struct jrt_task *task)
{
    char message[JRT_MESSAGE_BYTES];
    bool supervises = task->innermost->on_heap == JRT_SUPERVISED;
    check_open(task);
    if (jrt_die_hook != NULL) { /* an explorer reports it as a broken contract */
        jrt_die("contract broken",
                supervises ? "a task returned with a supervisor open"
                           : "a task returned with a nursery open",
                __FILE__, __LINE__);
    }
    (void)snprintf(message, sizeof message, "it returned with its %s \"%s\" open",
                   supervises ? "supervisor" : "nursery", jrt_nursery_name(task->innermost));
    begin_panic(task, JANUS_PANIC_KIND_EXPLICIT, message, NULL, 0);
}

static void panic_overflow(struct jrt_task *task, struct jrt_thread *thread)
{
    if (task->panic == JANUS_PANIC_KIND_NONE) {
        task->fault_data = thread->fault_address;
        task->fault_code = thread->fault_code;
    }
    begin_panic(task, JANUS_PANIC_KIND_STACK_OVERFLOW,
                "its stack overflowed: spawn it with a larger stack_bytes", thread->fault_frames,
                thread->fault_frame_count);
}

void jrt_rescue_main(void *argument, int message)
{
    struct jrt_strand *rescue = argument;
    struct jrt_worker *worker = jrt_worker_self();
    struct jrt_task   *task = worker->current;
    struct jrt_strand *dead = worker->strand;
    jrt_sanitizer_leave(&dead->context.sanitizer, &rescue->context.sanitizer, false);
    jrt_sanitizer_arrive(&rescue->context.sanitizer, &dead->context.sanitizer);
    if (task == NULL) jrt_die("stack overflow", "in a worker's loop", __FILE__, __LINE__);
    worker->strand = rescue;
    jrt_debug_invariant("rescue-late", worker->rescue == rescue);
    worker->rescue = NULL;
    (void)jrt_worker_rescue_ready(worker); /* refused: [rescue-late] */
    worker->thread->watch = (struct jrt_watch){rescue->stack, NULL};
    if (dead->watched) jrt_stack_mend(dead->stack);
    jrt_forks_drop(dead, task);
    if (message == JRT_ENDED_OVERFLOWED) panic_overflow(task, worker->thread);
    if (message == JRT_ENDED_RESCUED) panic_open(task);
    if (message == JRT_ENDED_PANICKED) {
        begin_panic(task, JANUS_PANIC_KIND_EXPLICIT, worker->thread->panic_message, NULL, 0);
    }
    jrt_nurseries_abandon(task);

    worker = jrt_worker_self(); /* [worker-again] */
    worker->strand = dead;
    worker->left = JRT_LEFT_STRAND;
    worker->left_context = &rescue->context;
    worker->entered_context = &dead->context;
    int how = message == JRT_ENDED_OVERFLOWED ? JRT_ENDED_OVERFLOWED : JRT_ENDED_RESCUED;
    jrt_sanitizer_unwind(jrt_stack_low(dead->stack), task->landing.sp);
    jrt_sanitizer_leave(&rescue->context.sanitizer, &dead->context.sanitizer, true);
    (void)jrt_ctx_switch(&rescue->context.sp, task->landing.sp, how);
    jrt_die("invariant [worker-again] broken", "a rescuer was entered twice", __FILE__, __LINE__);
}

/* janus_panic calls this. */
void jrt_task_on_panic(const char *message)
{
    struct jrt_worker *worker = jrt_worker_self();
    struct jrt_task   *task = worker->current;
    const char        *here = __builtin_frame_address(0);
    const void        *frames[JRT_FRAMES_MAX];
    bool               room = here - jrt_stack_low(worker->strand->stack) >= JRT_FRAMES_STACK;
    if (!room && worker->rescue != NULL) { /* NULL: the report must fit here, [rescue-late] */
        void *nowhere;                     /* the report takes more stack than is left */
        jrt_thread_keep_message(worker->thread, message);
        (void)jrt_ctx_switch(&nowhere, worker->rescue->context.sp, JRT_ENDED_PANICKED);
        jrt_die("invariant [worker-again] broken", "a broken call went on", __FILE__, __LINE__);
    }
    begin_panic(task, JANUS_PANIC_KIND_EXPLICIT, message, frames,
                jrt_frames_of_panic(frames, JRT_FRAMES_MAX));
    jrt_task_break_off(task, JRT_ENDED_PANICKED);
}
