/* SPDX-License-Identifier: MIT */
/*
 * Blocks that change owners. The library relinks a large block. A small block stays in the chunk of
 * the heap that made it. Its new owner notes it in a register, an array. The block's word holds its
 * place there, so forgetting a block means moving the last entry to its place. A freed block
 * returns to its chunk ([chunk-away]). The heap that made it finds it there when it next runs out
 * of blocks.
 *
 * A small block keeps a chunk of up to 64 KiB alive, and its new owner pays for the block alone. A
 * task that collects small blocks of many ended heaps would hold more than it pays for. So tasks
 * set a small block apart before they give it: it moves into memory of its own.
 */
#include "heap/block.h"
#include "plat/peek.h"
#include "plat/world.h"

#include <stdlib.h>
#include <string.h>

void jrt_adopted_forget(struct jrt_heap *heap, void *block, uint64_t word)
{
    uint64_t place = word & JRT_TAG_MASK;
    void    *last = heap->adopted[--heap->adopted_count];
    if (last == block) return;
    heap->adopted[place] = last;
    jrt_block_mark(last, (jrt_block_word(last) & ~JRT_TAG_MASK) | place);
}

/* An unused register stays until the heap ends. */
static bool adopted_note(struct jrt_heap *heap, void *block, uint64_t word)
{
    if (heap->adopted_count == heap->adopted_room) {
        uint32_t room = heap->adopted_room == 0 ? 8 : heap->adopted_room * 2;
        void   **more = jrt_realloc(heap->adopted, room * sizeof *more);
        if (more == NULL) return false;
        heap->held += (room - heap->adopted_room) * sizeof *more;
        heap->adopted = more;
        heap->adopted_room = room;
    }
    jrt_block_mark(block,
                   (word & ~JRT_OWNER_MASK) | JRT_STATE(JRT_BLOCK_ADOPTED) | heap->adopted_count);
    heap->adopted[heap->adopted_count++] = block;
    return true;
}

void jrt_block_send_home(struct jrt_heap_cache *cache, void *block, uint64_t word)
{
    struct jrt_chunk *chunk = jrt_block_chunk(block, word);
    jrt_poison(block, jrt_strides[jrt_word_class(word)] - 8u);
    jrt_block_mark(block, word & ~JRT_OWNER_MASK); /* FREE, without an owner */

    void *head = jrt_load_relaxed(&chunk->returned); /* relaxed: the cas reads it again. */
    do jrt_block_link(block, head);
    /* release [home-push]: the link and the word are written before the block can be found. */
    while (!jrt_cas_release(&chunk->returned, &head, block));

    /* acq_rel: see [chunk-away]. All our accesses to the chunk come before its release. If we
     * release it, the accesses of all others come before too. */
    if (jrt_fetch_sub_acq_rel(&chunk->away, 1) == (JRT_AWAY_ORPHAN | 1)) {
        jrt_chunk_give(cache, chunk);
    }
}

void jrt_heap_collect(struct jrt_heap *heap, struct jrt_chunk *chunk)
{
    if (jrt_load_relaxed(&chunk->returned) == NULL) return; /* relaxed: a hint. */
    /* acquire: pairs with [home-push]. */
    void *block = jrt_exchange_acquire(&chunk->returned, NULL);
    while (block != NULL) {
        void    *next = jrt_block_next(block);
        unsigned grade = jrt_word_class(jrt_block_word(block));
        jrt_block_link(block, heap->free[grade]);
        heap->free[grade] = block;
        heap->idle += jrt_strides[grade];
        block = next;
    }
}

void jrt_heap_detach(struct jrt_heap *heap, void *block)
{
    uint64_t away = jrt_block_tag(JRT_COOKIE_AWAY, block);
    (void)jrt_heap_usable(heap, block); /* or ends here */
    uint64_t word = jrt_block_word(block);
    if (jrt_word_class(word) == JRT_CLASS_LARGE) {
        jrt_heap_refund(heap, jrt_large_of(block)->cost);
        jrt_large_unlink(heap, block);
    } else {
        jrt_heap_refund(heap, jrt_word_cost(word));
        if ((word & JRT_STATE_MASK) == JRT_STATE(JRT_BLOCK_ADOPTED)) {
            jrt_adopted_forget(heap, block, word);
        } else {
            struct jrt_chunk *chunk = jrt_block_chunk(block, word);
            /* relaxed: the new owner learns of the block in some ordered way, and so sees this
             * count. */
            (void)jrt_fetch_add_relaxed(&chunk->away, 1);
            if (!chunk->lends) {
                chunk->lends = true;
                chunk->next_lender = heap->lenders;
                heap->lenders = chunk;
            }
        }
    }
    jrt_block_mark(block, (word & ~JRT_OWNER_MASK) | away);
}

void *jrt_heap_set_apart(struct jrt_heap *heap, struct jrt_heap_cache *cache, void *block)
{
    size_t size = jrt_heap_usable(heap, block); /* or ends here */
    if (jrt_word_class(jrt_block_word(block)) == JRT_CLASS_LARGE) return block;
    void *apart = jrt_large_take(heap, JRT_UNIT, size, false);
    if (apart == NULL) return NULL;
    memcpy(apart, block, size);
    jrt_heap_free(heap, cache, block);
    bool charged = jrt_heap_charge(heap, jrt_large_of(apart)->cost); /* cannot fail */
    jrt_invariant("block-word", charged);
    return apart;
}

/* The word of a detached block. */
static uint64_t away_word(const void *block)
{
    jrt_contract((uintptr_t)block % JRT_UNIT == 0,
                 "a pointer that is not aligned to 16 bytes is not a block");
    uint64_t word = (uint64_t)jrt_peek_word((const uint64_t *)block - 1);
    jrt_contract(((word ^ jrt_block_tag(JRT_COOKIE_AWAY, block)) & JRT_OWNER_MASK) == 0,
                 "only memory that was given away can be adopted or discarded");
    return word;
}

void **jrt_heap_tab(void *block)
{
    jrt_contract(jrt_word_class(away_word(block)) == JRT_CLASS_LARGE,
                 "a task adopted or discarded a block that was not given away");
    return &jrt_large_of(block)->tab;
}

size_t jrt_heap_block_cost(struct jrt_heap *heap, void *block)
{
    (void)jrt_heap_usable(heap, block); /* or ends here */
    uint64_t word = jrt_block_word(block);
    bool     large = jrt_word_class(word) == JRT_CLASS_LARGE;
    return large ? jrt_large_of(block)->cost : jrt_word_cost(word);
}

size_t jrt_heap_detached_cost(void *block)
{
    uint64_t word = away_word(block);
    bool     large = jrt_word_class(word) == JRT_CLASS_LARGE;
    return large ? jrt_large_of(block)->cost : jrt_word_cost(word);
}

bool jrt_heap_adopt(struct jrt_heap *heap, void *block)
{
    uint64_t word = away_word(block);
    bool     large = jrt_word_class(word) == JRT_CLASS_LARGE;
    size_t   cost = jrt_heap_detached_cost(block);
    if (!jrt_heap_charge(heap, cost)) return false;
    if (large) {
        jrt_large_link(heap, block);
    } else if (!adopted_note(heap, block, word)) {
        jrt_heap_refund(heap, cost);
        return false;
    }
    return true;
}

void jrt_heap_discard(struct jrt_heap_cache *cache, void *block)
{
    uint64_t word = away_word(block);
    if (jrt_word_class(word) == JRT_CLASS_LARGE) {
        jrt_large_drop(block);
    } else {
        jrt_block_send_home(cache, block, word);
    }
}
