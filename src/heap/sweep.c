/* SPDX-License-Identifier: MIT */
/*
 * Giving chunks back while the task lives.
 *
 * [heap-idle]  freed memory is kept up to JRT_SWEEP_MIN. Beyond that the heap sweeps whenever what
 *   is idle has doubled since the last sweep, or what is not has halved. So what it hoards beyond
 *   the minimum lies between blocks that live or lived a moment ago, and the cost of a sweep is
 *   paid by the frees before it.
 *
 * Free blocks do not know whether their chunk is empty, so a sweep counts: the bytes of every free
 * block for its chunk; a chunk of which all carved bytes are free is empty. Its blocks leave the
 * free lists, and it goes. The current chunk stays, and the first, in which the heap lies.
 */
#include "heap/block.h"

static void count_idle(struct jrt_heap *heap)
{
    for (struct jrt_chunk *c = heap->lenders; c != NULL; c = c->next_lender) {
        jrt_heap_collect(heap, c);
    }
    for (struct jrt_chunk *c = heap->chunks; c != NULL; c = c->next) c->idle = 0;
    for (unsigned grade = 0; grade < JRT_CLASSES; grade++) {
        for (void *b = heap->free[grade]; b != NULL; b = jrt_block_next(b)) {
            jrt_block_chunk(b, jrt_block_word(b))->idle += jrt_strides[grade];
        }
    }
}

/* Marks the chunks that can go. Whether there are any. */
static bool doom(struct jrt_heap *heap)
{
    bool any = false;
    for (struct jrt_chunk *c = heap->chunks; c->next != NULL; c = c->next) {
        if (c == heap->current || c->idle != c->carved) continue;
        /* acquire: 0 also means that nobody who sent a block home will look at the chunk again. */
        if (c->lends && jrt_load_acquire(&c->away) != 0) continue;
        any = c->doomed = true;
    }
    return any;
}

/* Takes the blocks of doomed chunks off the free lists. */
static void filter(struct jrt_heap *heap)
{
    for (unsigned grade = 0; grade < JRT_CLASSES; grade++) {
        void *kept = NULL, *last = NULL;
        for (void *b = heap->free[grade]; b != NULL; b = jrt_block_next(b)) {
            if (jrt_block_chunk(b, jrt_block_word(b))->doomed) continue;
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

/* As [heap-idle] wants it; both halves as a number of idle bytes. */
static size_t next_sweep(const struct jrt_heap *heap)
{
    size_t idle = heap->idle, carved = jrt_heap_carved(heap);
    for (const struct jrt_chunk *c = heap->chunks; c != NULL; c = c->next) {
        if (c != heap->current) carved += c->carved;
    }
    size_t doubled = idle * 2, halved = idle + (carved - idle) / 2;
    size_t next = doubled < halved ? doubled : halved;
    return next > JRT_SWEEP_MIN ? next : JRT_SWEEP_MIN;
}

void jrt_heap_sweep(struct jrt_heap *heap, struct jrt_heap_cache *cache)
{
    count_idle(heap);
    if (doom(heap)) {
        struct jrt_chunk **at = &heap->chunks;
        filter(heap);
        heap->lenders = heap->lender = NULL;
        while (*at != NULL) {
            struct jrt_chunk *chunk = *at;
            if (chunk->doomed) {
                *at = chunk->next;
                heap->chunk_count--;
                heap->idle -= chunk->idle;
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
    heap->sweep_at = next_sweep(heap);
}
