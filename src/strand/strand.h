/* SPDX-License-Identifier: MIT */
/* A worker's strands: taking and giving them, and the room that is left on one. The essay is in
 * strand.c. */
#ifndef JRT_STRAND_STRAND_H
#define JRT_STRAND_STRAND_H

#include "task/nursery.h"
#include "task/worker.h"

/*
 * [stack-reserve]  The stack that a public call, and the code that arrives on the strand it leaves,
 *   may need. A task with less overflows here, where no lock is held and nobody switches: the
 *   check touches the guard. It compares first, so that a task that waits near the top of its
 *   stack commits no page.
 */
enum { JRT_STACK_RESERVE = 3072 * JRT_STACK_FACTOR };
/* Bytes between the frame that looks for room and the frame of the child's entry. */
enum { JRT_CALL_BYTES = 512 * JRT_STACK_FACTOR };

/* The slow path: below the floor, or in a fiber of the task's own. In a world every call comes
 * here, because the beginning of a call is a place where another thread may go on, [sim-point]. */
void jrt_worker_stack_look(const struct jrt_worker *worker, const char *frame);

static inline void jrt_worker_stack_check(const struct jrt_worker *worker)
{
    const char *frame = __builtin_frame_address(0);
    if (jrt_unlikely((uintptr_t)frame < worker->strand->floor || worker->thread->current != NULL)) {
        jrt_worker_stack_look(worker, frame);
    }
}
/* Whether the check has nothing to do. For callers that then need no frame. */
static inline __attribute__((always_inline)) bool jrt_worker_stack_is_fine(
    const struct jrt_worker *worker)
{
    uintptr_t frame = (uintptr_t)__builtin_dwarf_cfa();
    return frame >= worker->strand->floor && worker->thread->current == NULL;
}

/* A strand that can run a loop, without a task on it. NULL: memory refused. */
struct jrt_strand *jrt_strand_take(struct jrt_worker *worker);
struct jrt_strand *jrt_strand_of_class(struct jrt_worker *worker, unsigned class);
void               jrt_strand_give(struct jrt_worker *worker, struct jrt_strand *strand);

/* Frees its stack, even if it could be kept as the spare. */
void jrt_strand_drop(struct jrt_worker *worker, struct jrt_strand *strand);

/* The loop calls this: frees spare stacks if janus_scheduler_trim asked for it, [strand-trim]. */
void jrt_worker_trim(struct jrt_worker *worker);

/* Makes sure that an overflow on this worker can be survived. False: memory refused. */
bool jrt_worker_rescue_ready(struct jrt_worker *worker);
/* Makes sure that the current task can leave the CPU. False: memory refused. */
bool jrt_worker_can_leave(struct jrt_worker *worker);

/* For a task that must leave the CPU: if memory is refused, the worker uses its last strand. */
void jrt_worker_must_leave(struct jrt_worker *worker);
/* Makes sure that the worker has a last strand. False: memory refused. */
bool jrt_worker_last_ready(struct jrt_worker *worker);

/* Handles an overflow of the current task, or of the fiber it runs. */
__attribute__((noreturn)) void jrt_worker_overflowed(struct jrt_worker *worker);

/*
 * Whether the current strand has room for a child on top, with all the stack that it was
 * promised: [stack-eighth] in stack/stack.c.
 *
 * [room-world]  The size of frames depends on the compiler and its options. In a world an execution
 *   must not. There strands have room for JRT_NESTED_MAX tasks on top of one, each with all that
 *   it was promised. A task runs in place unless JRT_NESTED_MAX + 1 tasks, or a multiple, are
 *   around it. So there are never more on one strand.
 */
enum { JRT_NESTED_MAX = 3, JRT_NESTED_CLASSES = 2 };
_Static_assert(JRT_NESTED_MAX + 1 == 1 << JRT_NESTED_CLASSES, "a class has twice the last one");

/* The class of the stack of such a strand. */
static inline unsigned jrt_strand_stack_class(const janus_scheduler *scheduler, unsigned class)
{
    unsigned larger = class + (scheduler->world != NULL ? JRT_NESTED_CLASSES : 0);
    return larger < JRT_STACK_CLASSES ? larger : JRT_STACK_CLASSES - 1;
}

/* Decides about room in a world. */
bool jrt_worker_has_room_by_number(const struct jrt_worker *worker, const struct jrt_task *child);

static inline bool jrt_worker_has_room(const struct jrt_worker *worker,
                                       const struct jrt_task   *child)
{
    const char *here = __builtin_frame_address(0);
    size_t      left = (size_t)(here - jrt_stack_low(worker->strand->stack));
    if (jrt_likely(left >= worker->scheduler->room[child->stack_class])) return true;
    return jrt_worker_has_room_by_number(worker, child);
}

#endif
