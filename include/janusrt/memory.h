/* SPDX-License-Identifier: MIT */
/*
 * Memory that belongs to a task: counted in its budget while it lives, and freed when the task
 * ends, however it ends.
 *
 *     char *line = janus_alloc(4096);   // one op and 4096 bytes
 *     janus_free(line);                 // the bytes come back
 *
 * A block costs its size rounded up to a multiple of 16. To hand it on, a task lets go of it and
 * another adopts it: a child its result to its parent, a sender what it sent.
 *
 *     out->text = janus_detach(text);   // the child
 *     janus_adopt(out->text)            // its parent, after the child has ended
 */
#ifndef JANUSRT_MEMORY_H
#define JANUSRT_MEMORY_H

#include <janusrt/export.h>
#include <janusrt/status.h>
#include <stddef.h>
#include <stdint.h>

/* What a task holds, and what the runtime holds for it. */
typedef struct janus_memory_info {
    size_t struct_bytes; /* in: sizeof this struct */
    size_t live_bytes;   /* of its blocks: what its budget is charged with */
    size_t held_bytes;   /* taken from the system for them */
    size_t stack_bytes;  /* reserved for its stack */
    size_t record_bytes; /* its record, its books, what it has deferred */
} janus_memory_info;

JANUS_BEGIN_DECLS

/*
 * A block of at least `size` bytes, aligned to 16, not cleared. What cannot be paid exhausts the
 * task (charge.h): it waits for more, or ends here.
 *
 * Context: inside a task.
 * Yields:  if the budget, or the turn, is used up; before the memory is taken.
 * Owns:    the block is the task's until it is freed, detached, or the task ends.
 * Cost:    about 10 ns for small blocks, without a lock.
 * Errors:  NULL: not inside a task, cancelled while it was exhausted, or the system has no memory
 */
JANUS_API void *janus_alloc(size_t size) __attribute__((malloc, alloc_size(1)));

/* The same, cleared.
 *
 * Context: as janus_alloc.
 * Yields:  as janus_alloc.
 * Owns:    as janus_alloc.
 * Cost:    as janus_alloc, and the clearing.
 * Errors:  as janus_alloc; NULL also if count * size is too large
 */
JANUS_API void *janus_alloc_zeroed(size_t count, size_t size)
    __attribute__((malloc, alloc_size(1, 2)));

/* The same with an alignment, a power of two. Above 16 the block costs so much more.
 *
 * Context: as janus_alloc.
 * Yields:  as janus_alloc.
 * Owns:    as janus_alloc.
 * Cost:    as janus_alloc up to 16; above, malloc's.
 * Errors:  as janus_alloc; NULL also if it is no power of two
 */
JANUS_API void *janus_alloc_aligned(size_t alignment, size_t size)
    __attribute__((malloc, alloc_size(2)));

/*
 * Allocates if the budget as it is allows it, and never waits or ends the task.
 *
 * Context: inside a task.
 * Yields:  only if the turn is over.
 * Owns:    as janus_alloc; *out is untouched on any error.
 * Cost:    as janus_alloc.
 * Errors:  BUDGET_EXHAUSTED  ops or memory are short; nothing was taken
 *          NO_MEMORY         the system refused
 *          STATE             not inside a task
 *          INVALID           `out` is NULL
 */
JANUS_NODISCARD JANUS_API janus_status janus_try_alloc(size_t size, void **out);

/*
 * Makes a block larger or smaller; it may move. NULL as `block`: janus_alloc.
 *
 * Context: inside the task that owns it.
 * Yields:  as janus_alloc.
 * Owns:    takes `block` if it returns another; on any error it is untouched.
 * Cost:    one op and the difference in bytes; maybe a copy.
 * Errors:  as janus_alloc
 */
JANUS_API void *janus_realloc(void *block, size_t size) __attribute__((alloc_size(2)));

/*
 * Gives a block back, and its bytes to the budget.
 *
 * Context: inside the task that owns it; NULL does nothing.
 * Yields:  never.
 * Owns:    takes `block`. If it is not a live block of this task, the task panics.
 * Cost:    about 5 ns.
 * Errors:  none.
 */
JANUS_API void janus_free(void *block);

/*
 * Detaches a block, so that another task can adopt it. Returns the block, which may have moved: a
 * block of up to 8 KiB moves into memory of its own. The task stays charged until somebody adopts
 * or discards the block, or the task ends.
 *
 * Context: inside the task that owns it; NULL does nothing.
 * Yields:  only if the turn is over.
 * Owns:    takes `block` if it returns another address. The caller must see to it that somebody
 *          adopts or discards what it returns.
 * Cost:    about 50 ns, and a copy of up to 8 KiB; no copy above that.
 * Errors:  NULL: the system has no memory, or the tasks of the pool, ended ones included, have left
 *          as much behind as the pool has memory. Tasks outside of pools leave behind what the
 *          scheduler's implicit tasks may have together (64 MiB at least). The block is still the
 *          task's, at the same address.
 */
JANUS_API void *janus_detach(void *block);

/*
 * Adopts a detached block. The calling task is charged for it; the task that detached it no more.
 *
 * Context: inside a task.
 * Yields:  only if the turn is over.
 * Owns:    the block is the task's if it returns OK; else still nobody's. A block that was not
 *          detached makes the task panic.
 * Cost:    about 10 ns.
 * Errors:  BUDGET_EXHAUSTED  ops or memory are short
 *          NO_MEMORY         the system refused
 *          STATE             not inside a task
 */
JANUS_NODISCARD JANUS_API janus_status janus_adopt(void *block);

/*
 * Frees a block that was detached.
 *
 * Context: anyone, any thread; NULL does nothing.
 * Yields:  only if the turn is over.
 * Owns:    takes `block`. A block that was not detached makes the task panic; on a plain thread it
 *          ends the process.
 * Cost:    about 20 ns.
 * Errors:  none.
 */
JANUS_API void janus_discard(void *block);

/*
 * What the current task holds.
 *
 * Context: inside a task.
 * Yields:  only if the turn is over.
 * Owns:    *out is the caller's; set out->struct_bytes before.
 * Cost:    some ns.
 * Errors:  STATE  not inside a task; INVALID  `out` is NULL or too short
 */
JANUS_API janus_status janus_memory_read(janus_memory_info *out);

JANUS_END_DECLS
#endif
