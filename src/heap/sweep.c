/* SPDX-License-Identifier: MIT */
/*
 * Returns chunks while the task lives.
 *
 * [heap-idle]  a heap keeps up to JRT_SWEEP_MIN of freed memory. Above that it sweeps in three
 *   cases:
 * - idle memory has doubled since the last sweep and grown by an eighth of the heap;
 * - less than a sixteenth of the heap is in use;
 * - nothing is in use.
 *
 *   So idle memory above the minimum is bounded: it lay between live blocks at the last sweep, plus
 *   as much again or an eighth. The frees before a sweep have paid for it.
 *
 * Free blocks do not know whether their chunk is empty. So a sweep walks each chunk from block to
 * block up to the first live one. If enough chunks are empty, the sweep takes their blocks off the
 * free lists and returns the chunks. It keeps the current chunk, and the first, which holds the
 * heap. If everything is free, it searches nothing and keeps only the first chunk.
 *
 * Rejected: counting the live blocks of each chunk at every alloc and free. It finds empty chunks
 * at once. But frees of blocks outside the CPU's cache then wait for each other, also in heaps that
 * never sweep. Measured: 15 ns instead of 9 for 1000 blocks of 64 bytes in random order.
 *
 * Rejected: counting the free bytes of each chunk by a walk over the lists. It takes a cache miss
 * for every free block, even if it finds nothing.
 */
#include "heap/block.h"

/* Whether no block is on its way back to the chunk. */
static bool is_quiet(const struct jrt_chunk *chunk)
{
    /* acquire: 0 also means that no thread that returned a block will touch the chunk again. */
    return !chunk->lends || jrt_load_acquire(&chunk->away) == 0;
}

static size_t carved_bytes(const struct jrt_heap *heap, const struct jrt_chunk *chunk)
{
    return chunk == heap->current ? jrt_heap_carved(heap) : chunk->carved;
}

/* The bytes carved in all chunks. *out_quiet: no block is on its way back. */
static size_t survey(const struct jrt_heap *heap, bool *out_quiet)
{
    size_t carved = 0;
    *out_quiet = true;
    for (const struct jrt_chunk *c = heap->chunks; c != NULL; c = c->next) {
        carved += carved_bytes(heap, c);
        *out_quiet = *out_quiet && is_quiet(c);
    }
    return carved;
}

/* Resets a heap in which everything is free. */
static void start_over(struct jrt_heap *heap, struct jrt_heap_cache *cache)
{
    while (heap->chunks->next != NULL) {
        struct jrt_chunk *chunk = heap->chunks;
        heap->chunks = chunk->next;
        heap->held -= jrt_chunk_bytes(chunk->kind);
        jrt_chunk_give(cache, chunk);
    }
    for (unsigned grade = 0; grade < JRT_CLASSES; grade++) heap->free[grade] = NULL;
    heap->idle = 0;
    heap->lenders = heap->lender = NULL;
    heap->chunks->lends = false;
    jrt_heap_rewind(heap);
}

/* Whether no block of a quiet chunk lives. */
static bool is_empty(struct jrt_chunk *chunk)
{
    char *block = (char *)chunk + JRT_CHUNK_HEAD + 8, *end = block + chunk->carved;
    while (block < end) {
        uint64_t word = jrt_block_word(block);
        if ((word & JRT_STATE_MASK) != JRT_STATE(JRT_BLOCK_FREE)) return false;
        block += jrt_strides[jrt_word_class(word)];
    }
    return true;
}

/* Marks the chunks that can go. Returns whether they are worth a walk over the free lists. */
static bool doom(struct jrt_heap *heap)
{
    size_t bytes = 0;
    for (struct jrt_chunk *c = heap->chunks; c->next != NULL; c = c->next) {
        c->doomed = c != heap->current && is_quiet(c) && is_empty(c);
        if (c->doomed) bytes += c->carved;
    }
    return bytes > heap->idle / 8;
}

/* Takes the blocks of doomed chunks off the free lists. */
static void filter(struct jrt_heap *heap)
{
    for (unsigned grade = 0; grade < JRT_CLASSES; grade++) {
        void *kept = NULL, *last = NULL;
        for (void *b = heap->free[grade]; b != NULL; b = jrt_block_next(b)) {
            if (jrt_block_chunk(b, jrt_block_word(b))->doomed) {
                heap->idle -= jrt_strides[grade];
                continue;
            }
            if (last == NULL)
                kept = b;
            else
                jrt_block_link(last, b);
            last = b;
        }
        if (last != NULL) jrt_block_link(last, NULL);
        heap->free[grade] = kept;
    }
}

/* Returns the doomed chunks and rebuilds the list of lenders. */
static void give_doomed(struct jrt_heap *heap, struct jrt_heap_cache *cache)
{
    heap->lenders = heap->lender = NULL;
    for (struct jrt_chunk **at = &heap->chunks; *at != NULL;) {
        struct jrt_chunk *chunk = *at;
        if (chunk->doomed) {
            *at = chunk->next;
            heap->chunk_count--;
            heap->held -= jrt_chunk_bytes(chunk->kind);
            jrt_chunk_give(cache, chunk);
            continue;
        }
        if (chunk->lends) {
            chunk->next_lender = heap->lenders;
            heap->lenders = chunk;
        }
        at = &chunk->next;
    }
}

/* The three conditions of [heap-idle] as one number of idle bytes. */
static size_t next_sweep(size_t idle, size_t carved)
{
    size_t few = carved - carved / 16, grown = idle + carved / 8;
    size_t next = idle * 2 > grown ? idle * 2 : grown;
    if (next > few) next = few;
    if (idle >= few && carved > 0) next = carved - 1;
    return next > JRT_SWEEP_MIN ? next : JRT_SWEEP_MIN;
}

/* The bytes on the free lists. */
static size_t bytes_on_lists(const struct jrt_heap *heap)
{
    size_t bytes = 0;
    for (unsigned grade = 0; grade < JRT_CLASSES; grade++) {
        for (void *b = heap->free[grade]; b != NULL; b = jrt_block_next(b)) {
            bytes += jrt_strides[grade];
        }
    }
    return bytes;
}

void jrt_heap_sweep(struct jrt_heap *heap, struct jrt_heap_cache *cache)
{
    bool quiet;
    for (struct jrt_chunk *c = heap->lenders; c != NULL; c = c->next_lender) {
        jrt_heap_collect(heap, c);
    }
    size_t carved = survey(heap, &quiet);
    if (quiet && heap->idle == carved) {
        start_over(heap, cache);
        carved = 0;
    } else {
        if (doom(heap)) {
            filter(heap);
            give_doomed(heap, cache);
            carved = survey(heap, &quiet);
        }
    }
    heap->sweep_at = next_sweep(heap->idle, carved);
    jrt_debug_invariant("heap-idle", heap->idle == bytes_on_lists(heap) && heap->idle <= carved);
}
