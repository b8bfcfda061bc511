/* SPDX-License-Identifier: MIT */
/* Strands: where they come from and go, and whether one has room for a task on top. */
#include "task/nursery.h"
#include "task/worker.h"

static const uint64_t patience_ns = 10000000000; /* where memory for a stack is refused */

bool jrt_worker_has_room_by_number(const struct jrt_worker *worker, const struct jrt_task *child)
{
    if (worker->scheduler->world == NULL) return false;
    unsigned depth = 0; /* [room-world] */
    for (const struct jrt_nursery *n = child->nursery; n->owner != NULL; n = n->owner->nursery) {
        depth++;
    }
    return child->stack_class <= worker->strand->class && depth % (JRT_NESTED_MAX + 1) != 0;
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
    char              *top = stack->top - colour - JRT_STRAND_BYTES;
    struct jrt_strand *strand = (struct jrt_strand *)(void *)top;
    strand->stack = stack;
    strand->class = class;
    strand->left = &strand->context;
    strand->brink = (uintptr_t)low + JRT_STACK_RESERVE;
    strand->ample = (uintptr_t)low + worker->scheduler->room[worker->scheduler->stack_class];
    if (jrt_unlikely(worker->scheduler->world != NULL)) strand->brink = strand->ample = UINTPTR_MAX;
    strand->fuel = 0;
    strand->finish = NULL;
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
    jrt_sanitizer_detach(&strand->context.sanitizer, low, (size_t)(stack->top - low));
    jrt_stack_give(&worker->stacks, worker->scheduler->depot,
                   jrt_strand_stack_class(worker->scheduler, strand->class), stack);
}

void jrt_strand_give(struct jrt_worker *worker, struct jrt_strand *strand)
{
    if (worker->spare == NULL && strand->class == worker->scheduler->stack_class) {
        jrt_sanitizer_renew(&strand->context.sanitizer);
        worker->spare = strand;
        return;
    }
    jrt_strand_drop(worker, strand);
}

void jrt_worker_stack_look(const struct jrt_worker *worker, const char *frame)
{
    const char *low = jrt_stack_low(worker->strand->stack);
    if (worker->thread->current != NULL) { /* in a fiber of its own */
        low = jrt_stack_low(worker->thread->watch.stack);
    }
    if ((size_t)(frame - low) < JRT_STACK_RESERVE) *(volatile char *)(uintptr_t)(low - 1) = 0;
    jrt_point();
}

bool jrt_worker_can_leave(struct jrt_worker *worker)
{
    if (worker->spare == NULL) worker->spare = jrt_strand_take(worker);
    return worker->spare != NULL;
}

void jrt_worker_must_leave(struct jrt_worker *worker)
{
    if (jrt_likely(jrt_worker_can_leave(worker))) return;
    uint64_t limit = jrt_clock_now_ns() + patience_ns;
    while (!jrt_worker_can_leave(worker)) {
        if (jrt_clock_now_ns() > limit) {
            jrt_die("out of memory", "no stack to go on with while a task waits", __FILE__,
                    __LINE__);
        }
        jrt_thread_yield(); /* others may end and give theirs back */
    }
}
