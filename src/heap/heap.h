/* SPDX-License-Identifier: MIT */
/*
 * Heaps: memory that one task owns. Only the task itself allocates and frees, so no call takes a
 * lock or an atomic step; when the task ends, however it ends, everything goes at once. The task
 * may move between threads; `cache` is that of the worker it runs on now, or NULL.
 *
 * Every block is charged to the owner before memory is taken: its size rounded up to a multiple of
 * 16, at least 16 (jrt_heap_cost), and the same amount is refunded. What the heap holds beyond that
 * (words before blocks, rounding to size classes, the rest of chunks) can be asked for.
 *
 * Freeing what is not a live block of this heap ends the process with a sentence.
 */
#ifndef JRT_HEAP_HEAP_H
#define JRT_HEAP_HEAP_H

#include "heap/chunk.h"

#include <stdbool.h>
#include <stddef.h>

struct jrt_heap;

/* Whom to ask. Both may be NULL: then nothing is charged. */
struct jrt_heap_rules {
    bool (*may)(void *owner, size_t bytes);  /* charges; false: refused, nothing happened */
    void (*back)(void *owner, size_t bytes); /* refunds */
    bool scrub;                              /* zero chunks before another heap gets them */
};

/* A heap, for a task that allocates for the first time; 1 KiB. NULL: no memory. */
struct jrt_heap *jrt_heap_open(struct jrt_heap_cache *cache, const struct jrt_heap_rules *rules,
                               void *owner);

/* Frees every block and the heap, with one refund for all. Time: its chunks, its large blocks and
 * the blocks it adopted. Blocks it gave to others live on. */
void jrt_heap_close(struct jrt_heap *heap, struct jrt_heap_cache *cache);

/* A block of at least `size` bytes, aligned to 16. NULL: refused, or no memory; nothing happened.
 * The owner knows whether it refused. Small ones (up to 8200 bytes) lie in chunks. */
void *jrt_heap_alloc(struct jrt_heap *heap, struct jrt_heap_cache *cache, size_t size);
void *jrt_heap_alloc_zeroed(struct jrt_heap *heap, struct jrt_heap_cache *cache, size_t size);

/* The same with another alignment, a power of two. Above 16 the block is malloc's, whatever its
 * size. */
void *jrt_heap_alloc_aligned(struct jrt_heap *heap, struct jrt_heap_cache *cache, size_t alignment,
                             size_t size);

/* A block with the same content and another size; the difference is charged or refunded. NULL: as
 * above, the old block is untouched. `block` NULL: jrt_heap_alloc. Alignment is 16 again if it
 * moves. */
void *jrt_heap_realloc(struct jrt_heap *heap, struct jrt_heap_cache *cache, void *block,
                       size_t size);

void jrt_heap_free(struct jrt_heap *heap, struct jrt_heap_cache *cache, void *block);

/* How much of the block may be used: what was asked for or a little more. */
size_t jrt_heap_usable(struct jrt_heap *heap, void *block);

/* What a block of that size costs. */
static inline size_t jrt_heap_cost(size_t size)
{
    return size == 0 ? 16 : (size + 15) & ~(size_t)15;
}

/*
 * Giving a block to another task, in two steps that may be on different threads at any distance of
 * time, provided the second comes after the first. In between nobody owns it and nobody is charged.
 *
 *     detach    its owner lets it go, and is refunded
 *     adopt     its new owner is charged; false: refused, or no memory, and it is still nobody's
 *     discard   frees it instead
 *
 * The block does not move, unless it is set apart before.
 * A small one stays in the chunk of the heap that made it: the chunk lives
 * as long as any of its blocks, also after that heap.
 */
void jrt_heap_detach(struct jrt_heap *heap, void *block);

/* Before it is detached: moves a small block out of its chunk, so that it keeps nothing alive but
 * itself. The charge stays the same. Returns the block; NULL: no memory, nothing happened. */
void *jrt_heap_set_apart(struct jrt_heap *heap, struct jrt_heap_cache *cache, void *block);

/* A word that a detached block which was set apart carries. */
void **jrt_heap_tab(void *block);
bool   jrt_heap_adopt(struct jrt_heap *heap, void *block);
void   jrt_heap_discard(struct jrt_heap_cache *cache, void *block);

/* What a live block of this heap is charged with. */
size_t jrt_heap_block_cost(struct jrt_heap *heap, void *block);

/* What a block in between will cost who adopts it. */
size_t jrt_heap_detached_cost(void *block);

/* For dumps and tests. */
struct jrt_heap_stats {
    size_t live_bytes; /* charged */
    size_t held_bytes; /* taken from the system, or a cache, for it */
    size_t idle_bytes; /* of these, in freed blocks */
    size_t chunks;
    size_t adopted; /* blocks made by other heaps */
};

void jrt_heap_read(const struct jrt_heap *heap, struct jrt_heap_stats *out);

#endif
