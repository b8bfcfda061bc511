/* SPDX-License-Identifier: MIT */
/*
 * Heaps: memory that one task owns. Only the task itself allocates and frees, so no call takes a
 * lock or an atomic step. When the task ends, in whatever way, the heap frees everything at once.
 * The task may move between threads. `cache` belongs to the worker it runs on now, or is NULL.
 *
 * The heap charges the owner for a block before it takes memory, and refunds the same amount. The
 * amount is the block's size rounded up to a multiple of 16, at least 16 (jrt_heap_cost).
 * jrt_heap_stats reports what the heap holds beyond that: words before blocks, rounding to size
 * classes, the rest of chunks.
 *
 * Freeing a pointer that is not a live block of this heap breaks a contract.
 */
#ifndef JRT_HEAP_HEAP_H
#define JRT_HEAP_HEAP_H

#include "heap/chunk.h"

#include <stdbool.h>
#include <stddef.h>

struct jrt_heap;

/* How to charge the owner. If both functions are NULL, nothing is charged. */
struct jrt_heap_rules {
    bool (*may)(void *owner, size_t bytes);  /* charges; false: refused, nothing happened */
    void (*back)(void *owner, size_t bytes); /* refunds */
    bool scrub;                              /* zero chunks before another heap gets them */
};

/* Opens a heap of 1 KiB, for a task that allocates for the first time. NULL: no memory. */
struct jrt_heap *jrt_heap_open(struct jrt_heap_cache *cache, const struct jrt_heap_rules *rules,
                               void *owner);

/* Frees every block and the heap, with one refund for all. The time depends on the number of
 * chunks, large blocks and adopted blocks. Blocks given to other tasks live on. */
void jrt_heap_close(struct jrt_heap *heap, struct jrt_heap_cache *cache);

/* Returns a block of at least `size` bytes, aligned to 16. NULL: the owner refused the charge, or
 * there is no memory; nothing happened. Blocks of up to 8200 bytes lie in chunks. */
void *jrt_heap_alloc(struct jrt_heap *heap, struct jrt_heap_cache *cache, size_t size);
void *jrt_heap_alloc_zeroed(struct jrt_heap *heap, struct jrt_heap_cache *cache, size_t size);

/* Allocates with another alignment, a power of two. Above 16, malloc serves the block, whatever its
 * size. */
void *jrt_heap_alloc_aligned(struct jrt_heap *heap, struct jrt_heap_cache *cache, size_t alignment,
                             size_t size);

/* Returns a block with the same content and another size, and charges or refunds the difference.
 * NULL: refused, or no memory; the old block is unchanged. `block` NULL: jrt_heap_alloc. A block
 * that moves is aligned to 16 again. */
void *jrt_heap_realloc(struct jrt_heap *heap, struct jrt_heap_cache *cache, void *block,
                       size_t size);

void jrt_heap_free(struct jrt_heap *heap, struct jrt_heap_cache *cache, void *block);

/* How many bytes of the block may be used: at least the requested size. */
size_t jrt_heap_usable(struct jrt_heap *heap, void *block);

/* The charge for a block of that size. */
static inline size_t jrt_heap_cost(size_t size)
{
    return size == 0 ? 16 : (size + 15) & ~(size_t)15;
}

/*
 * A task gives a block to another task in two steps. They may happen on different threads and at
 * any distance of time, the first before the second. In between, the block has no owner and is
 * charged to no task.
 *
 *     detach    the owner releases it and gets a refund
 *     adopt     charges the new owner; false: refused, or no memory, and the block stays detached
 *     discard   frees it instead
 *
 * The block does not move, unless it is set apart first. A small block stays in the chunk of the
 * heap that made it. The chunk lives as long as any of its blocks, even after that heap.
 */
void jrt_heap_detach(struct jrt_heap *heap, void *block);

/* Before a detach: moves a small block out of its chunk, so that it keeps no other memory alive.
 * The charge stays the same. Returns the block; NULL: no memory, nothing happened. */
void *jrt_heap_set_apart(struct jrt_heap *heap, struct jrt_heap_cache *cache, void *block);

/* A word that a detached block carries, if it was set apart. */
void **jrt_heap_tab(void *block);
bool   jrt_heap_adopt(struct jrt_heap *heap, void *block);
void   jrt_heap_discard(struct jrt_heap_cache *cache, void *block);

/* The charge of a live block of this heap. */
size_t jrt_heap_block_cost(struct jrt_heap *heap, void *block);

/* The charge for the task that adopts this detached block. */
size_t jrt_heap_detached_cost(void *block);

/* For dumps and tests. */
struct jrt_heap_stats {
    size_t live_bytes; /* charged */
    size_t held_bytes; /* taken for it from the system or a cache */
    size_t idle_bytes; /* of these, in freed blocks */
    size_t chunks;
    size_t adopted; /* blocks made by other heaps */
};

void jrt_heap_read(const struct jrt_heap *heap, struct jrt_heap_stats *out);

#endif
