/* SPDX-License-Identifier: MIT */
/*
 * Memory that belongs to a task. It counts in the task's budget, and the library frees it when the
 * task ends, however it ends.
 *
 *     char *line = janus_alloc(4096);   // one op and 4096 bytes
 *     janus_free(line);                 // the bytes come back
 *
 * A block costs its size rounded up to a multiple of 16. To pass a block on, one task detaches it
 * and another adopts it. So a child passes its result to its parent.
 *
 *     out->text = janus_detach(text);   // the child
 *     janus_adopt(out->text)            // its parent, after the child has ended
 */
#ifndef JANUSRT_MEMORY_H
#define JANUSRT_MEMORY_H

#include <janusrt/export.h>
#include <janusrt/options.h>
#include <janusrt/status.h>
#include <stddef.h>
#include <stdint.h>

/* The memory of a task, and the memory that the library holds for it. */
typedef struct janus_memory_info {
    size_t struct_bytes; /* sizeof this struct; JANUS_MEMORY_INFO sets it */
    size_t live_bytes;   /* its blocks, which its budget pays for */
    size_t held_bytes;   /* taken from the system for the blocks */
    size_t stack_bytes;  /* reserved for its stack */
    size_t record_bytes; /* its record, books, defers, shields and open nurseries */
    size_t frame_count;  /* open nurseries, and shields with a deadline: in frames of the task */
    size_t left_bytes;   /* of the memory in its budget, which blocks and handles are paid from */
    size_t lock_count;   /* mutexes and reader-writer locks that it holds */
} janus_memory_info;
#define JANUS_MEMORY_INFO() JANUS_SIZED_(janus_memory_info)

JANUS_BEGIN_DECLS

/*
 * Allocates a block of at least `size` bytes, aligned to 16, not cleared. A task that cannot pay is
 * exhausted (charge.h): it waits for more budget, or ends here.
 *
 * Context: inside a task.
 * Yields:  if the budget, or the turn, is used up; before the memory is taken.
 * Owns:    the block is the task's until it is freed, detached, or the task ends.
 * Cost:    about 10 ns for small blocks, without a lock.
 * Errors:  NULL: not inside a task, cancelled while exhausted, or the system refused memory
 */
JANUS_API void *janus_alloc(size_t size) __attribute__((malloc, alloc_size(1)));

/*
 * Allocates a cleared array of `count` elements, as janus_alloc.
 *
 * Context: as janus_alloc.
 * Yields:  as janus_alloc.
 * Owns:    as janus_alloc.
 * Cost:    as janus_alloc, and the clearing.
 * Errors:  as janus_alloc; NULL also if count * size is too large
 */
JANUS_API void *janus_alloc_zeroed(size_t count, size_t size)
    __attribute__((malloc, alloc_size(1, 2)));

/*
 * Allocates with an alignment, a power of two, as janus_alloc. Above 16 the block costs as many
 * bytes more.
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
 * Allocates if the budget suffices. It never waits or ends the task.
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
 * Makes a block larger or smaller. The block may move. If `block` is NULL, it is janus_alloc.
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
 * Errors:  NULL: the system refused memory, or too much is detached. The tasks of a pool, ended
 *          ones included, may leave behind as much as the pool has memory. Tasks outside of pools
 *          share what the scheduler's implicit tasks may have together (64 MiB at least). On NULL
 *          the block is still the task's, at the same address.
 */
JANUS_API void *janus_detach(void *block);

/*
 * Adopts a detached block. From now on the calling task pays for it.
 *
 * Context: inside a task.
 * Yields:  only if the turn is over.
 * Owns:    on OK the task owns the block; else it stays detached. A block that was not detached
 *          makes the task panic.
 * Cost:    about 10 ns.
 * Errors:  BUDGET_EXHAUSTED  ops or memory are short
 *          NO_MEMORY         the system refused
 *          STATE             not inside a task
 */
JANUS_NODISCARD JANUS_API janus_status janus_adopt(void *block);

/*
 * Frees a detached block.
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
 * Reads the memory of the current task.
 *
 * Context: inside a task.
 * Yields:  only if the turn is over.
 * Owns:    *out is the caller's; set out->struct_bytes before.
 * Cost:    some ns.
 * Errors:  STATE  not inside a task; INVALID  `out` is NULL, or out->struct_bytes is no size of it
 */
JANUS_NODISCARD JANUS_API janus_status janus_memory_inspect(janus_memory_info *out);

JANUS_END_DECLS
#endif
