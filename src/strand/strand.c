/* SPDX-License-Identifier: MIT */
/*
 * Strands: where they come from and go, and whether one has room for a task on top.
 *
 * [strand-last]  A worker whose task has to wait needs a stack for its loop, and the system may
 *   refuse one. Most waits then return NO_MEMORY. Some cannot:
 *   - the end of a nursery, whose children live in the owner's frames;
 *   - a mutex that a condition must take back;
 *   - a thread that ends.
 *
 *   For these every worker has one more strand from its opening on, the last one. Only the loop
 *   runs there. It resumes a task that has a stack of its own, and the last strand is free again.
 *   A task that has not begun gets a stack, if the system has one now. Otherwise the loop takes a
 *   task that has begun in its place. Otherwise the task ends with NO_MEMORY before it has begun,
 *   and its nursery reports that. So:
 *
 *    - whenever a task runs, the worker's last strand is free, and the task can leave;
 *    - every task that the loop finds on it goes on or ends at once, so the loop never waits for
 *      memory;
 *    - a task that others wait for has begun, or is queued and will be found.
 *
 *   So a wait ends if it would end with enough memory, unless the system refused a stack to a task
 *   it needs. That is a failure, which the task's nursery reports. Nobody spins, and nobody waits
 *   for a stack.
 *   Rejected: to run any task on top of the waiting one. If it waited for that one in turn, both
 *   would wait for ever.
 *
 * [strand-canary]  No page that faults lies below a stack on the CANARY rung. Such a strand has no
 *   limit that a frame can be above. So every call that may wait comes to jrt_worker_stack_look,
 *   which reads the canary, and no child runs on the plainest path. A worker that runs a task
 *   there checks all that a guard would cover before the task counts as ended
 *   (jrt_task_run_watched). Strands with a guard pay nothing for it.
 *
 * [strand-trim]  Only a worker's thread uses its cached stacks, so nobody else can free them. A
 *   caller that wants them back writes how much may stay, raises `trims` and wakes all workers. A
 *   worker that is about to sleep and finds a new count empties its cache and trims the depot.
 */
#include "strand/strand.h"

#include "base/options.h"
#include "task/nursery.h"
#include "task/task.h"
#include "task/upcalls.h"
#include "task/worker.h"

#include <string.h>

/* Whether the current strand's stack is as large as [room-world] demands. */
static bool is_large(const struct jrt_worker *worker)
{
    const struct jrt_strand *strand = worker->strand;
    unsigned                 larger = jrt_strand_stack_class(worker->scheduler, strand->class);
    return strand->stack->slab->class == &worker->scheduler->depot->classes[larger];
}

bool jrt_worker_has_room_by_number(const struct jrt_worker *worker, const struct jrt_task *child)
{
    if (worker->scheduler->world == NULL) return false;
    unsigned depth = 0; /* [room-world] */
    for (const struct jrt_nursery *n = child->nursery; n->owner != NULL; n = n->owner->nursery) {
        depth++;
    }
    bool room = child->stack_class <= worker->strand->class && depth % (JRT_NESTED_MAX + 1) != 0;
    jrt_debug_invariant("room-world", !room || is_large(worker));
    return room;
}

struct jrt_strand *jrt_strand_of_class(struct jrt_worker *worker, unsigned class)
{
    struct jrt_stack *stack = NULL;
    unsigned          larger = jrt_strand_stack_class(worker->scheduler, class);
    if (jrt_stack_take(&worker->stacks, worker->scheduler->depot, larger, &stack) != JANUS_OK) {
        return NULL;
    }
    size_t             colour = (size_t)(stack - stack->slab->stacks) % 16 * 64;
    char              *low = jrt_stack_low(stack);
    char              *top = stack->top - colour - JRT_LODGING_BYTES - JRT_STRAND_BYTES;
    struct jrt_strand *strand = (struct jrt_strand *)(void *)top;
    strand->stack = stack;
    strand->class = (uint8_t)class;
    strand->left = &strand->context;
    strand->floor = (uintptr_t)low + JRT_STACK_RESERVE;
    strand->child_floor = (uintptr_t)low + worker->scheduler->room[worker->scheduler->stack_class];
    strand->watched = stack->guard == JANUS_GUARD_CANARY;
    strand->last = false;
    strand->lodging = JRT_LODGING_FREE;
    if (jrt_unlikely(worker->scheduler->world != NULL || strand->watched)) {
        strand->floor = strand->child_floor = UINTPTR_MAX;
    }
    strand->fuel = 0;
    strand->finish = NULL;
    strand->forks = strand->unsplit = &strand->no_fork;
    jrt_sanitizer_attach(&strand->context.sanitizer, low, (size_t)(stack->top - low));
    return strand;
}

struct jrt_strand *jrt_strand_take(struct jrt_worker *worker)
{
    struct jrt_strand *strand = worker->spare;
    worker->spare = NULL;
    if (strand != NULL) return strand;
    return jrt_strand_of_class(worker, worker->scheduler->stack_class);
}

void jrt_strand_drop(struct jrt_worker *worker, struct jrt_strand *strand)
{
    struct jrt_stack *stack = strand->stack;
    char             *low = jrt_stack_low(stack);
    jrt_debug_invariant("purse-lodged", strand->lodging != JRT_LODGING_USED);
    jrt_sanitizer_detach(&strand->context.sanitizer, low, (size_t)(stack->top - low));
    jrt_stack_give(&worker->stacks, worker->scheduler->depot,
                   jrt_strand_stack_class(worker->scheduler, strand->class), stack);
}

void jrt_strand_give(struct jrt_worker *worker, struct jrt_strand *strand)
{
    if (jrt_unlikely(strand->last)) { /* [strand-last]: it always belongs to the same worker */
        jrt_sanitizer_renew(&strand->context.sanitizer);
        jrt_sanitizer_unwind(jrt_stack_low(strand->stack), strand); /* frames it was left in */
        worker->last = strand;
        return;
    }
    jrt_debug_invariant("purse-lodged", strand->lodging != JRT_LODGING_USED);
    if (worker->spare == NULL && strand->class == worker->scheduler->stack_class) {
        strand->lodging = JRT_LODGING_FREE; /* a rescuer's was barred */
        jrt_sanitizer_renew(&strand->context.sanitizer);
        jrt_sanitizer_unwind(jrt_stack_low(strand->stack), strand); /* frames it was left in */
        worker->spare = strand;
        return;
    }
    jrt_strand_drop(worker, strand);
}

void jrt_worker_stack_look(const struct jrt_worker *worker, const char *frame)
{
    const struct jrt_stack *stack = worker->strand->stack;
    if (worker->thread->current != NULL) stack = worker->thread->watch.stack; /* in a fiber */
    const char *low = jrt_stack_low(stack);
    jrt_debug_invariant("stack-reserve", jrt_locks_held() == 0);
    if (jrt_unlikely(stack->guard == JANUS_GUARD_CANARY)) { /* [strand-canary] */
        if (frame < low + JRT_STACK_RESERVE || !jrt_stack_intact(stack)) {
            jrt_worker_overflowed(jrt_worker_self());
        }
    } else if ((size_t)(frame - low) < JRT_STACK_RESERVE) {
        *(volatile char *)(uintptr_t)(low - 1) = 0;
    }
    jrt_point();
}

bool jrt_worker_can_leave(struct jrt_worker *worker)
{
    if (jrt_likely(worker->spare != NULL)) return true;
    if (jrt_unlikely(worker->rescue == NULL)) (void)jrt_worker_rescue_ready(worker);
    worker->spare = jrt_strand_take(worker);
    return worker->spare != NULL;
}

bool jrt_worker_last_ready(struct jrt_worker *worker)
{
    if (worker->last == NULL)
        worker->last = jrt_strand_of_class(worker, worker->scheduler->stack_class);
    if (worker->last != NULL) worker->last->last = true;
    return worker->last != NULL;
}

void jrt_worker_must_leave(struct jrt_worker *worker)
{
    if (jrt_likely(jrt_worker_can_leave(worker))) return;
    jrt_invariant("strand-last", worker->last != NULL);
    worker->spare = worker->last;
    worker->last = NULL;
}

/* Trimming. */

void jrt_worker_trim(struct jrt_worker *worker)
{
    janus_scheduler *scheduler = worker->scheduler;
    uint32_t         trims = jrt_load_acquire(&scheduler->trims); /* acquire: how much may stay. */
    if (jrt_likely(trims == worker->trims)) return;
    jrt_debug_invariant("strand-trim", worker == jrt_worker_self());
    worker->trims = trims;
    jrt_stack_cache_flush(&worker->stacks, scheduler->depot);
    /* relaxed: written before the count. */
    (void)jrt_depot_trim(scheduler->depot, jrt_load_relaxed(&scheduler->trim_bytes));
}

/* The rescue strand; what runs there is in ending.c. */

void jrt_worker_overflowed(struct jrt_worker *worker)
{
    struct jrt_thread *thread = worker->thread;
    void **landing = thread->watch.landing != NULL ? thread->watch.landing : thread->rescue;
    void  *nowhere;
    thread->fault_address = NULL;
    thread->fault_code = NULL;
    (void)jrt_ctx_switch(&nowhere, *landing, JRT_ARRIVED_OVERFLOWED);
    jrt_die("invariant [strand-canary] broken", "an overflowed stack was entered", __FILE__,
            __LINE__);
}

bool jrt_worker_rescue_ready(struct jrt_worker *worker)
{
    if (worker->rescue != NULL) return true;
    bool spare = worker->spare != NULL && !worker->spare->last;
    worker->rescue = spare ? jrt_strand_take(worker)
                           : jrt_strand_of_class(worker, worker->scheduler->stack_class);
    if (worker->thread != NULL) worker->thread->rescue = NULL;
    if (worker->rescue == NULL) return false;
    worker->rescue->lodging = JRT_LODGING_BARRED; /* [purse-lodged] */
    worker->rescue->context.sp = jrt_ctx_make(worker->rescue, jrt_upcalls.rescue, worker->rescue);
    if (worker->thread != NULL) worker->thread->rescue = &worker->rescue->context.sp;
    return true;
}
